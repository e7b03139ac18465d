/* A command beside a task: it is the task's in all but its files, its end is told once, and it dies with
 * whoever asked for it or with the task. */
#include "host/launch/fixture.h"

struct told {
    int started, ended, failed, value;
    pid_t pid;
    char why[256];
};

struct run {
    struct told told;
    struct launch_exec *exec;
    int out; /* reading end of its output and errors */
};

static void on_exec_event(void *context, enum launch_exec_kind kind, int value, const char *why)
{
    struct told *told = context;
    assert_int_equal(told->ended + told->failed, 0); /* the end is the last */
    told->started += kind == LAUNCH_EXEC_STARTED;
    told->ended += kind == LAUNCH_EXEC_ENDED;
    told->failed += kind == LAUNCH_EXEC_FAILED;
    if (kind == LAUNCH_EXEC_STARTED)
        told->pid = (pid_t)value;
    else
        told->value = value;
    snprintf(told->why, sizeof told->why, "%s", why ? why : "");
}

static int begin_words(struct fixture *f, uint64_t uid, struct run *run, const char *const *argv,
                       struct error *error)
{
    int output[2], input = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(input >= 0 && pipe2(output, O_CLOEXEC) == 0);
    *run = (struct run){.out = output[0]};
    struct launch_exec_options options = {
        .argv = argv, .fds = {input, output[1], output[1]}, .on_event = on_exec_event, .context = &run->told};
    int rc = launch_exec(f->launcher, uid, &options, &run->exec, error);
    close(input);
    close(output[1]);
    return rc;
}

static void begin(struct fixture *f, uint64_t uid, struct run *run, const char *text)
{
    const char *argv[] = {"sh", "-c", text, NULL};
    struct error error = {0};
    if (begin_words(f, uid, run, argv, &error) < 0)
        fail_msg("%s", error.text);
}

#define EXEC_UNTIL(f, condition) PATIENT_UNTIL(&(f)->patience, condition)

/* Waits for its end, then all that it wrote (at most a pipe's worth); NUL-terminated. */
static void end(struct fixture *f, struct run *run, char *ret_text, size_t size)
{
    EXEC_UNTIL(f, run->told.ended + run->told.failed > 0);
    size_t len = 0;
    ssize_t got;
    while (len + 1 < size && (got = read(run->out, ret_text + len, size - 1 - len)) > 0)
        len += (size_t)got;
    ret_text[len] = 0;
    close(run->out);
}

static const char *const forever = "echo up > $WORDS; exec sleep 1000";

static void start_task(struct fixture *f, uint64_t uid)
{
    char word[64];
    struct task_args args;
    script(f, &args, uid, forever);
    args.env[1] = "COLOUR=blue";
    spawn(f, &args.spec);
    await_word(f, word);
    assert_string_equal(word, "up");
    await(f, LAUNCH_STARTED, uid);
}

static void it_is_the_tasks(void **state)
{
    struct fixture *f = *state;
    struct run run;
    char text[1024], command[256], *line;
    start_task(f, 1);
    snprintf(command, sizeof command,
             "echo $COLOUR; echo $PPID; sed -n 's/^PPid:.//p' /proc/%d/status; echo err >&2; exit 7",
             (int)await(f, LAUNCH_STARTED, 1)->event.pid);
    begin(f, 1, &run, command);
    end(f, &run, text, sizeof text);
    assert_int_equal(run.told.started, 1);
    assert_int_equal(run.told.ended, 1);
    assert_int_equal(run.told.value, 7);
    assert_memory_equal(text, "blue\n", 5);
    assert_non_null(strstr(text, "err\n"));
    long parent = strtol(text + 5, &line, 10); /* the shim, which is the task's too */
    assert_true(parent > 1);
    assert_int_equal(strtol(line, NULL, 10), parent);
}

static void ends_come_back(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"true", 0}, {"exit 255", 255}, {"kill -9 $$", 137}, {"kill -TERM $$", 143}};
    start_task(f, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct run run;
        char text[64];
        begin(f, 1, &run, cases[i].text);
        end(f, &run, text, sizeof text);
        assert_int_equal(run.told.ended, 1);
        assert_int_equal(run.told.value, cases[i].value);
    }
    assert_null(find_event(f, LAUNCH_EXITED, 1)); /* the task heard nothing of it */
}

static void what_cannot_be_executed(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *word;
        int value;
    } cases[] = {{"no-such-command", 127}, {"/", 126}};
    start_task(f, 1);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *argv[] = {cases[i].word, NULL};
        struct run run;
        char text[64];
        assert_int_equal(begin_words(f, 1, &run, argv, NULL), 0);
        end(f, &run, text, sizeof text);
        assert_int_equal(run.told.failed, 1);
        assert_int_equal(run.told.value, cases[i].value);
        assert_true(run.told.why[0] != 0);
    }
}

static void refusals(void **state)
{
    struct fixture *f = *state;
    struct run run;
    struct error error;
    const char *none[] = {NULL}, *words[] = {"true", NULL};
    size_t len = 4 * 1024 * 1024;
    char *huge = malloc(len + 1);
    const char *long_words[] = {"true", huge, NULL};
    memset(huge, 'x', len);
    huge[len] = 0;
    start_task(f, 1);
    assert_int_equal(begin_words(f, 1, &run, none, &error), ERROR_INVALID);
    close(run.out);
    assert_int_equal(begin_words(f, 1, &run, long_words, &error), ERROR_LIMIT);
    close(run.out);
    assert_int_equal(begin_words(f, 2, &run, words, &error), ERROR_NOT_FOUND);
    close(run.out);
    run_script(f, 3, "exit 0");
    assert_int_equal(begin_words(f, 3, &run, words, &error), ERROR_UNAVAILABLE);
    close(run.out);
    free(huge);
}

/* Closing kills the command's whole process group, and no end is reported. */
static void closing_kills_it(void **state)
{
    struct fixture *f = *state;
    struct run run;
    start_task(f, 1);
    begin(f, 1, &run, "sleep 1001 & echo $! > $WORDS; wait");
    EXEC_UNTIL(f, run.told.started == 1);
    pid_t child = await_pid(f);
    launch_exec_close(run.exec);
    EXEC_UNTIL(f, process_gone(child));
    EXEC_UNTIL(f, process_gone(run.told.pid));
    assert_int_equal(run.told.ended + run.told.failed, 0);
    assert_null(find_event(f, LAUNCH_EXITED, 1));
    close(run.out);
}

static void it_dies_with_its_task(void **state)
{
    struct fixture *f = *state;
    struct run run;
    char text[64];
    start_task(f, 1);
    begin(f, 1, &run, "echo $$ > $WORDS; exec sleep 1002");
    EXEC_UNTIL(f, run.told.started == 1);
    pid_t pid = await_pid(f);
    assert_int_equal(launch_stop(f->launcher, 1, 0, NULL), 0);
    await(f, LAUNCH_EXITED, 1);
    end(f, &run, text, sizeof text);
    EXEC_UNTIL(f, process_gone(pid));
    assert_true(run.told.ended ? run.told.value == 137 : run.told.value == -1);
}

/* Descriptors of commands that end are those of commands that go on; none may lose its end by that. */
static void many_at_once(void **state)
{
    struct fixture *f = *state;
    enum { RUNS = 12 };
    struct run runs[RUNS];
    start_task(f, 1);
    for (int i = 0; i < RUNS; i++) {
        char command[64];
        snprintf(command, sizeof command, "echo %d; exit %d", i, i);
        begin(f, 1, &runs[i], command);
    }
    for (int i = 0; i < RUNS; i++) {
        char text[64], expected[64];
        end(f, &runs[i], text, sizeof text);
        snprintf(expected, sizeof expected, "%d\n", i);
        assert_string_equal(text, expected);
        assert_int_equal(runs[i].told.started, 1);
        assert_int_equal(runs[i].told.value, i);
    }
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(it_is_the_tasks), CASE(ends_come_back),   CASE(what_cannot_be_executed),
        CASE(refusals),        CASE(closing_kills_it), CASE(it_dies_with_its_task),
        CASE(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
