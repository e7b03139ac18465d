/* Commands beside a real task of a real agent, against a controller that is only a few answers: their bytes
 * spend credit, both ways, and each stream ends once. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "host/agent/agent_host.h"
#include "host/agent/fake.h"
#include "host/process.h"

enum { TASK = 1001, STREAMS_MAX = 80, CREDIT = 64 * 1024 };

static char shim[PATH_MAX];

struct heard { /* of one stream */
    uint64_t out, errors, credit;
    int ends, exit_code;
    char text[256], why[200];
};

struct bed {
    struct fake fake;
    struct agent_host *host;
    char state[64];
    bool closed;
    struct heard heard[STREAMS_MAX];
};

static void on_exec(struct fake *fake, const struct from_agent *message)
{
    struct bed *bed = fake->context;
    bool end = message->kind == FROM_AGENT_EXEC_END;
    uint64_t stream = end ? message->exec_end.stream : message->exec_data.stream;
    assert_true(stream < STREAMS_MAX);
    struct heard *heard = &bed->heard[stream];
    assert_int_equal(heard->ends, 0); /* nothing comes behind the end */
    if (end) {
        heard->ends++;
        heard->exit_code = message->exec_end.exit_code;
        snprintf(heard->why, sizeof heard->why, STR_FORMAT, STR_ARG(message->exec_end.error));
        return;
    }
    const struct exec_data *data = &message->exec_data;
    heard->credit += data->credit;
    for (size_t i = 0; data->channel == EXEC_STDOUT && i < data->bytes.len; i++)
        if (heard->out + i < sizeof heard->text - 1)
            heard->text[heard->out + i] = data->bytes.data[i];
    heard->out += data->channel == EXEC_STDOUT ? data->bytes.len : 0;
    heard->errors += data->channel == EXEC_STDERR ? data->bytes.len : 0;
}

static void say(struct bed *bed, struct from_controller message)
{
    wire_send_controller(bed->fake.agent, &message);
}

static void open_command(struct bed *bed, uint64_t stream, const char *text, uint64_t credit, bool input)
{
    struct str argv[] = {STR("sh"), STR("-c"), str_from(text)};
    say(bed,
        (struct from_controller){
            .kind = FROM_CONTROLLER_EXEC_OPEN,
            .exec_open = {
                .stream = stream, .task = TASK, .argv = argv, .argc = 3, .input = input, .credit = credit}});
}

static void give(struct bed *bed, uint64_t stream, uint64_t credit)
{
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_INPUT,
                                      .exec_data = {.stream = stream, .credit = credit}});
}

static void type(struct bed *bed, uint64_t stream, struct str bytes, bool end)
{
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_INPUT,
                                      .exec_data = {.stream = stream, .bytes = bytes, .end = end}});
}

static int setup(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    struct error error;
    fake_init(&bed->fake);
    bed->fake.on_exec = on_exec;
    bed->fake.context = bed;
    snprintf(bed->state, sizeof bed->state, "/tmp/phx-agent-exec-XXXXXX");
    assert_non_null(mkdtemp(bed->state));
    struct agent_host_options options = {.allow_root_tasks = true,
                                         .isolation_off = true, /* tasks meet the test in the state folder */
                                         .machine = "m-1",
                                         .controller = "127.0.0.1",
                                         .port = bed->fake.port,
                                         .state = bed->state,
                                         .shim = shim,
                                         .memory_dir = "",
                                         .chips = 4,
                                         .quiet = true};
    if (agent_host_new(&bed->fake.loop, &options, &bed->host, &error) < 0)
        fail_msg("%s", error.text);
    RUN_UNTIL(&bed->fake, bed->fake.agent);
    struct str argv[] = {STR("/bin/sleep"), STR("1000")};
    struct task_launch launch = {.task = TASK,
                                 .name = STR("work-0-abcde"),
                                 .namespace_ = STR("default"),
                                 .checkpoint_folder = STR("train"),
                                 .argv = argv,
                                 .argc = 2,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = 1,
                                 .world = 1,
                                 .restore_step = -1};
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    RUN_UNTIL(&bed->fake, told(&bed->fake, TASK)->started);
    *state = bed;
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    return remove(path);
}

static void note_closed(void *context)
{
    *(bool *)context = true;
}

static int teardown(void **state)
{
    struct bed *bed = *state;
    agent_host_shutdown(bed->host, true, note_closed, &bed->closed);
    RUN_UNTIL(&bed->fake, bed->closed);
    fake_done(&bed->fake);
    nftw(bed->state, remove_one, 16, FTW_DEPTH | FTW_PHYS);
    free(bed);
    return 0;
}

static void test_output_and_end(void **state)
{
    struct bed *bed = *state;
    open_command(bed, 1, "echo out; echo err >&2; exit 7", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[1].ends);
    assert_int_equal(bed->heard[1].exit_code, 7);
    assert_string_equal(bed->heard[1].text, "out\n");
    assert_int_equal(bed->heard[1].errors, 4);
}

/* The agent sends as many bytes of output as it has credit for, also when the command has ended. */
static void test_output_waits_for_credit(void **state)
{
    struct bed *bed = *state;
    const uint64_t whole = 300000;
    open_command(bed, 1, "head -c 300000 /dev/zero", 1000, false);
    open_command(bed, 2, "echo other", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[2].ends && bed->heard[1].out == 1000);
    for (uint64_t given = 1000; given < whole; given += 49833) {
        uint64_t due = given + 49833 < whole ? given + 49833 : whole;
        give(bed, 1, 49833);
        RUN_UNTIL(&bed->fake, bed->heard[1].out == due);
    }
    RUN_UNTIL(&bed->fake, bed->heard[1].ends);
    assert_int_equal(bed->heard[1].out, whole);
    assert_int_equal(bed->heard[1].exit_code, 0);
}

static void test_input(void **state)
{
    struct bed *bed = *state;
    struct heard *heard = &bed->heard[1];
    open_command(bed, 1, "read line; echo got $line; wc -c", CREDIT, true);
    RUN_UNTIL(&bed->fake, heard->credit > 0);
    type(bed, 1, STR("first\n"), false);
    RUN_UNTIL(&bed->fake, strstr(heard->text, "got first\n") != NULL);
    static char zeros[CREDIT];
    uint64_t typed = 6, target = 4 * 1024 * 1024 + 6;
    while (typed < target) { /* only what was asked for */
        RUN_UNTIL(&bed->fake, heard->credit > typed);
        uint64_t len = heard->credit - typed < sizeof zeros ? heard->credit - typed : sizeof zeros;
        len = len < target - typed ? len : target - typed;
        type(bed, 1, (struct str){zeros, (size_t)len}, false);
        typed += len;
    }
    type(bed, 1, STR(""), true);
    RUN_UNTIL(&bed->fake, heard->ends);
    assert_non_null(strstr(heard->text, "4194304"));
    assert_int_equal(heard->exit_code, 0);
}

/* Input beyond what was asked for ends the stream, not the agent. */
static void test_too_much_input(void **state)
{
    struct bed *bed = *state;
    static char zeros[CREDIT];
    open_command(bed, 1, "exec sleep 1000", CREDIT, true);
    for (int i = 0; i < 8; i++)
        type(bed, 1, (struct str){zeros, sizeof zeros}, false);
    RUN_UNTIL(&bed->fake, bed->heard[1].ends);
    assert_int_equal(bed->heard[1].exit_code, -1);
    assert_non_null(strstr(bed->heard[1].why, "more input came than was asked for"));
    open_command(bed, 2, "echo still here", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[2].ends);
    assert_string_equal(bed->heard[2].text, "still here\n");
}

static void test_without_input_the_file_ends(void **state)
{
    struct bed *bed = *state;
    open_command(bed, 1, "wc -c", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[1].ends);
    assert_int_equal(strtol(bed->heard[1].text, NULL, 10), 0);
    assert_int_equal(bed->heard[1].exit_code, 0);
}

static void test_closing(void **state)
{
    struct bed *bed = *state;
    open_command(bed, 1, "echo $$; exec sleep 1000", CREDIT, false);
    RUN_UNTIL(&bed->fake, strchr(bed->heard[1].text, '\n') != NULL);
    pid_t pid = (pid_t)strtol(bed->heard[1].text, NULL, 10);
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_CLOSE, .number = 1});
    RUN_UNTIL(&bed->fake, process_gone(pid));
    assert_int_equal(bed->heard[1].ends, 0);
    give(bed, 1, 5); /* crossed on the way */
    type(bed, 1, STR("x"), true);
    open_command(bed, 2, "exit 3", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[2].ends);
    assert_int_equal(bed->heard[2].exit_code, 3);
}

static void test_limits_and_unknown_tasks(void **state)
{
    struct bed *bed = *state;
    for (uint64_t i = 1; i <= 65; i++)
        open_command(bed, i, "exec sleep 1000", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[65].ends);
    assert_non_null(strstr(bed->heard[65].why, "too many commands"));
    for (uint64_t i = 1; i <= 64; i++) {
        assert_int_equal(bed->heard[i].ends, 0);
        say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_CLOSE, .number = i});
    }
    struct str argv[] = {STR("true")};
    say(bed, (struct from_controller){
                 .kind = FROM_CONTROLLER_EXEC_OPEN,
                 .exec_open = {.stream = 70, .task = 7, .argv = argv, .argc = 1, .credit = CREDIT}});
    RUN_UNTIL(&bed->fake, bed->heard[70].ends);
    assert_int_equal(bed->heard[70].exit_code, -1);
    assert_non_null(strstr(bed->heard[70].why, "does not run on this machine"));
}

static void test_terminal(void **state)
{
    struct bed *bed = *state;
    struct str argv[] = {STR("sh"), STR("-c"), STR("test -t 0 && stty size; read line; stty size")};
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_OPEN,
                                      .exec_open = {.stream = 1,
                                                    .task = TASK,
                                                    .argv = argv,
                                                    .argc = 3,
                                                    .tty = true,
                                                    .input = true,
                                                    .credit = CREDIT}});
    RUN_UNTIL(&bed->fake, strchr(bed->heard[1].text, '\n') != NULL);
    say(bed, (struct from_controller){.kind = FROM_CONTROLLER_EXEC_RESIZE, .exec_resize = {1, 77, 33}});
    type(bed, 1, STR("go\n"), false);
    RUN_UNTIL(&bed->fake, bed->heard[1].ends);
    assert_non_null(strstr(bed->heard[1].text, "33 77"));
    assert_int_equal(bed->heard[1].errors, 0);
    assert_int_equal(bed->heard[1].exit_code, 0);
}

/* The controller goes away in the middle: the command goes with it. */
static void test_connection_breaks(void **state)
{
    struct bed *bed = *state;
    open_command(bed, 1, "echo $$; exec sleep 1000", CREDIT, false);
    RUN_UNTIL(&bed->fake, strchr(bed->heard[1].text, '\n') != NULL);
    pid_t pid = (pid_t)strtol(bed->heard[1].text, NULL, 10);
    int hellos = bed->fake.hellos;
    wire_close(bed->fake.agent);
    bed->fake.agent = NULL;
    RUN_UNTIL(&bed->fake, process_gone(pid) && bed->fake.hellos > hellos);
    open_command(bed, 2, "echo again", CREDIT, false);
    RUN_UNTIL(&bed->fake, bed->heard[2].ends);
    assert_string_equal(bed->heard[2].text, "again\n");
}

int main(void)
{
    const char *build = getenv("PHX_BUILD");
    char path[512];
    snprintf(path, sizeof path, "%s/phalanx-shim", build ? build : "build");
    if (!realpath(path, shim) || access(shim, X_OK) < 0) { /* from the root: the agent starts it elsewhere */
        fprintf(stderr, "skipped: no %s\n", path);
        return 77;
    }
#define CASE(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        CASE(test_output_and_end),
        CASE(test_output_waits_for_credit),
        CASE(test_input),
        CASE(test_too_much_input),
        CASE(test_without_input_the_file_ends),
        CASE(test_closing),
        CASE(test_limits_and_unknown_tasks),
        CASE(test_terminal),
        CASE(test_connection_breaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
