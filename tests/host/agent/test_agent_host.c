/* Real agents, real tasks, real kills, against a controller that is only a few answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "host/agent/agent_host.h"
#include "host/agent/fake.h"
#include "job/wire.h"

static char program[512], shim[512];

static void start_command(struct fake *fake, uint64_t task, int32_t attempt, const char *command)
{
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_from(command)};
    struct env_var env[] = {{.name = STR("GREETING"), .value = STR("good morning")}};
    struct sheet_entry entries[] = {{STR("work-0"), STR("127.0.0.1"), STR("m-1"), 1, 0}};
    struct task_launch launch = {.task = task,
                                 .jobset = 1,
                                 .attempt = attempt,
                                 .name = STR("work-0-abcde"),
                                 .namespace_ = STR("default"),
                                 .jobset_name = STR("train"),
                                 .argv = argv,
                                 .argc = 3,
                                 .env = env,
                                 .env_count = 1,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = 1,
                                 .grace_ns = 2 * NS_PER_SECOND,
                                 .world = 1,
                                 .restore_step = -1,
                                 .sheet = {STR("train"), STR("default"), entries, 1}};
    wire_send_controller(fake->agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
}

static void stop_task(struct fake *fake, uint64_t task, int64_t grace_ns)
{
    wire_send_controller(fake->agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_STOP, .stop = {task, grace_ns}});
}

static void forget(struct fake *fake, uint64_t task)
{
    wire_send_controller(fake->agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_FORGET, .task = task});
}

static void read_log(struct fake *fake, struct log_open open)
{
    buf_clear(&fake->log);
    fake->log_ended = false;
    fake->log_error[0] = 0;
    wire_send_controller(fake->agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_LOG_OPEN, .log_open = open});
}

/* --- an agent in a process of its own ------------------------------------------------------------- */

static void on_term(uv_signal_t *handle, int number)
{
    struct agent_host *host = handle->data;
    agent_host_shutdown(host, getenv("STOP_TASKS") != NULL, NULL, NULL);
    uv_close((uv_handle_t *)handle, NULL);
}

/* argv: agent PORT STATE */
static int run_agent(char **argv)
{
    uv_loop_t loop;
    uv_signal_t term;
    struct agent_host *host;
    struct error error;
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    struct agent_host_options options = {.machine = "m-1",
                                         .controller = "127.0.0.1",
                                         .address = "127.0.0.9",
                                         .port = (uint16_t)strtol(argv[2], NULL, 10),
                                         .state = argv[3],
                                         .shim = shim,
                                         .chips = 4,
                                         .quiet = true};
    int rc = agent_host_new(&loop, &options, &host, &error);
    if (rc < 0) {
        fprintf(stderr, "%s\n", error.text);
        uv_run(&loop, UV_RUN_DEFAULT);
        return 1;
    }
    uv_signal_init(&loop, &term);
    term.data = host;
    uv_signal_start(&term, on_term, SIGTERM);
    uv_run(&loop, UV_RUN_DEFAULT);
    return uv_loop_close(&loop) == 0 ? 0 : 3;
}

static pid_t spawn_agent(const struct fake *fake, const char *state)
{
    char port[8];
    snprintf(port, sizeof port, "%u", fake->port);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        execl(program, program, "agent", port, state, (char *)NULL);
        _exit(127);
    }
    return pid;
}

static int await_agent(pid_t pid, int signal_number)
{
    int status;
    kill(pid, signal_number);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static void make_state(char ret_path[64])
{
    snprintf(ret_path, 64, "/tmp/phx-agent-test-XXXXXX");
    assert_non_null(mkdtemp(ret_path));
}

static int remove_one(const char *path, const struct stat *info, int kind, struct FTW *ftw)
{
    return remove(path);
}

static void remove_state(const char *path)
{
    nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void test_life_of_a_task(void **state)
{
    struct fake fake;
    char directory[64], peer[WIRE_ADDRESS_MAX];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent && fake.tethers == 1);
    wire_conn_peer(fake.agent, peer);
    assert_memory_equal(peer, "127.0.0.9:", 10);
    start_command(
        &fake, 1001, 0,
        "echo $GREETING; pwd; cat $PHX_RANK_TABLE; echo; cat $PHX_HOSTS_FILE; echo $PHX_AGENT_SOCKET; "
        "exit 7");
    RUN_UNTIL(&fake, told(&fake, 1001)->exited);
    assert_int_equal(told(&fake, 1001)->started, 1);
    assert_int_equal(told(&fake, 1001)->exit_code, 7);
    read_log(&fake, (struct log_open){.stream = 1, .task = 1001, .tail_lines = -1});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_memory_equal(fake.log.data, "good morning\n", 13);
    assert_non_null(strstr(fake.log.data, "/work/1001\n"));
    assert_non_null(strstr(fake.log.data, "\"server_count\":\"1\""));
    assert_non_null(
        strstr(fake.log.data, "127.0.0.1 work-0.train.default.svc.cluster.local work-0.train work-0\n"));
    assert_non_null(strstr(fake.log.data, "/agent.sock\n"));
    start_command(&fake, 1002, 0, "kill -SEGV $$");
    RUN_UNTIL(&fake, told(&fake, 1002)->exited);
    assert_int_equal(told(&fake, 1002)->signal, SIGSEGV);
    assert_int_equal(told(&fake, 1002)->exit_code, -1);
    forget(&fake, 1001);
    forget(&fake, 1002);
    stop_task(&fake, 4711, 0); /* unknown */
    RUN_UNTIL(&fake, told(&fake, 4711)->exited);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    agent = spawn_agent(&fake, directory);
    int hellos = fake.hellos;
    RUN_UNTIL(&fake, fake.hellos > hellos);
    assert_int_equal(fake.last_inventory, 0);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    remove_state(directory);
    fake_done(&fake);
}

static void test_commands_that_cannot_run(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent);
    struct str argv[] = {STR("/no/such/program")};
    struct task_launch launch = {.task = 5,
                                 .name = STR("x"),
                                 .argv = argv,
                                 .argc = 1,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .restore_step = -1};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    RUN_UNTIL(&fake, told(&fake, 5)->start_failed);
    assert_true(told(&fake, 5)->message[0] != 0);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    remove_state(directory);
    fake_done(&fake);
}

/* The agent dies alone: tether open, task alive. A new agent takes the task over, exit status included. */
static void test_agent_is_killed(void **state)
{
    struct fake fake;
    char directory[64], pipe_path[128], command[256];
    fake_init(&fake);
    make_state(directory);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", directory);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent && fake.tethers == 1);
    start_command(&fake, 1, 0, "exec sleep 1000");
    snprintf(command, sizeof command, "read line < %s; exit 9", pipe_path);
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_from(command)};
    struct task_launch launch = {.task = 2,
                                 .name = STR("reader"),
                                 .argv = argv,
                                 .argc = 3,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = 6,
                                 .restore_step = -1,
                                 .grace_ns = NS_PER_SECOND};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    RUN_UNTIL(&fake, told(&fake, 1)->started && told(&fake, 2)->started);
    int64_t pid = told(&fake, 1)->pid;
    assert_int_equal(await_agent(agent, SIGKILL), -SIGKILL);
    RUN_UNTIL(&fake, fake.closed == 1); /* the connection; the shims hold the tether */
    int fd = open(pipe_path, O_WRONLY); /* the second task ends while nobody looks */
    assert_int_equal(write(fd, "x\n", 2), 2);
    close(fd);
    agent = spawn_agent(&fake, directory);
    int hellos = fake.hellos;
    RUN_UNTIL(&fake, fake.hellos > hellos && told(&fake, 2)->exited);
    assert_int_equal(fake.closed, 1);
    assert_int_equal(told(&fake, 2)->exit_code, 9);
    assert_int_equal(told(&fake, 1)->pid, pid);
    assert_int_equal(told(&fake, 1)->exited, 0);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    launch.task = 3; /* the new agent knows which chips the old task holds */
    launch.chips = 1;
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_START, .start = launch});
    RUN_UNTIL(&fake, told(&fake, 3)->start_failed);
    stop_task(&fake, 1, 5 * NS_PER_SECOND);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGTERM);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    RUN_UNTIL(&fake, fake.closed == 4); /* both connections, both tethers: everything is dead */
    remove_state(directory);
    fake_done(&fake);
}

/* Without acknowledgements the tasks die with the lease: by the agent, and by the shims when it is dead. */
static void test_fence(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    fake.lease_ns = 2 * NS_PER_SECOND;
    make_state(directory);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "trap '' TERM; while :; do sleep 1000; done");
    RUN_UNTIL(&fake, told(&fake, 1)->started && fake.heartbeats > 14); /* renewed beyond the first lease */
    assert_int_equal(told(&fake, 1)->exited, 0);
    fake.silent = true;
    uint64_t silent_ns = uv_hrtime();
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_true(told(&fake, 1)->fenced);
    double took_s = (double)(uv_hrtime() - silent_ns) / 1e9;
    assert_true(took_s < 4.0);
    fake.silent = false;
    forget(&fake, 1);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 2, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 2)->started);
    pid_t task = (pid_t)told(&fake, 2)->pid;
    assert_int_equal(await_agent(agent, SIGKILL), -SIGKILL);
    uint64_t killed_ns = uv_hrtime();
    int tethers = fake.tethers;
    RUN_UNTIL(&fake, kill(task, 0) < 0 || fake.closed == 2 * tethers); /* tethers end with the shim */
    RUN_UNTIL(&fake, kill(task, 0) < 0);
    assert_true((double)(uv_hrtime() - killed_ns) / 1e9 < 4.0);
    agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, told(&fake, 2)->exited);
    assert_true(told(&fake, 2)->fenced);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    remove_state(directory);
    fake_done(&fake);
}

/* The process in whose working directory the shim of a task stands; 0: none. */
static pid_t find_shim(const char *directory, uint64_t task)
{
    char want[128], path[64], link[256];
    snprintf(want, sizeof want, "%s/tasks/%llu", directory, (unsigned long long)task);
    DIR *proc = opendir("/proc");
    pid_t found = 0;
    for (struct dirent *entry; proc && !found && (entry = readdir(proc));) {
        long pid = strtol(entry->d_name, NULL, 10);
        snprintf(path, sizeof path, "/proc/%ld/cwd", pid);
        ssize_t len = pid > 0 ? readlink(path, link, sizeof link - 1) : -1;
        if (len > 0 && (size_t)len == strlen(want) && memcmp(link, want, (size_t)len) == 0)
            found = (pid_t)pid;
    }
    closedir(proc);
    return found;
}

/* All of a machine dies in one instant: the controller's side sees every connection of it closed at once. */
static void test_machine_dies(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent && fake.tethers == 1);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    pid_t task = (pid_t)told(&fake, 1)->pid, shim_pid = find_shim(directory, 1);
    assert_true(shim_pid > 0 && shim_pid != task);
    uint64_t killed_ns = uv_hrtime();
    kill(agent, SIGKILL);
    kill(shim_pid, SIGKILL);
    RUN_UNTIL(&fake, fake.closed == 2);
    double took_ms = (double)(uv_hrtime() - killed_ns) / 1e6;
    printf("connection and tether seen closed %.1f ms after the kill\n", took_ms);
    assert_true(took_ms < 1000); /* 50 on an idle machine */
    assert_int_equal(await_agent(agent, 0), -SIGKILL);
    agent = spawn_agent(&fake, directory); /* the machine comes back: it knows that the task is lost */
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGKILL);
    RUN_UNTIL(&fake, kill(task, 0) < 0); /* a task never outlives its shim */
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    remove_state(directory);
    fake_done(&fake);
}

static void test_logs(void **state)
{
    struct fake fake;
    char directory[64], pipe_path[128], command[512];
    fake_init(&fake);
    make_state(directory);
    snprintf(pipe_path, sizeof pipe_path, "%s/pipe", directory);
    assert_int_equal(mkfifo(pipe_path, 0600), 0);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent);
    snprintf(command, sizeof command,
             "echo one; echo two >&2; echo three; while read line; do echo $line; done < %s", pipe_path);
    start_command(&fake, 1, 0, command);
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    read_log(&fake, (struct log_open){.stream = 1, .task = 1, .tail_lines = -1, .follow = true});
    RUN_UNTIL(&fake, fake.log.len == 14);
    int fd = open(pipe_path, O_WRONLY);
    assert_int_equal(write(fd, "four\n", 5), 5);
    RUN_UNTIL(&fake, fake.log.len == 19);
    assert_false(fake.log_ended);
    close(fd); /* the task ends, and with it the stream */
    RUN_UNTIL(&fake, fake.log_ended);
    assert_string_equal(fake.log.data, "one\ntwo\nthree\nfour\n");
    read_log(&fake, (struct log_open){.stream = 2, .task = 1, .tail_lines = 2});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_string_equal(fake.log.data, "three\nfour\n");
    read_log(&fake, (struct log_open){.stream = 3, .task = 1, .tail_lines = 0});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_int_equal(fake.log.len, 0);
    read_log(&fake, (struct log_open){.stream = 4, .task = 1, .tail_lines = 99, .limit_bytes = 5});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_string_equal(fake.log.data, "one\nt");
    read_log(&fake, (struct log_open){.stream = 5, .task = 77, .tail_lines = -1});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_true(fake.log_error[0] != 0);
    read_log(&fake, (struct log_open){.stream = 6, .task = 1, .tail_lines = -1, .since_ns = INT64_MAX});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_int_equal(fake.log.len, 0);
    /* 24 MB through three rotations and back-pressure */
    start_command(&fake, 2, 0, "i=0; while [ $i -lt 240 ]; do printf '%0100000d' $i; i=$((i+1)); done");
    RUN_UNTIL(&fake, told(&fake, 2)->started);
    read_log(&fake, (struct log_open){.stream = 7, .task = 2, .tail_lines = -1, .follow = true});
    RUN_UNTIL(&fake, fake.log_ended);
    assert_int_equal(fake.log.len, 24000000);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    remove_state(directory);
    fake_done(&fake);
}

/* --- a task that speaks libphalanx's protocol ----------------------------------------------------- */

static int client_connect(const char *directory)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/agent.sock", directory);
    int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof address), 0);
    return fd;
}

static void client_say(int fd, struct jobwire_message message)
{
    uint8_t bytes[JOBWIRE_FRAME_MAX];
    size_t len = jobwire_encode(&message, bytes, sizeof bytes);
    assert_int_equal(write(fd, bytes, len), len);
}

static struct jobwire_message client_hear(struct fake *fake, int fd)
{
    struct jobwire_message message;
    uint8_t bytes[JOBWIRE_FRAME_MAX];
    size_t len = 0, used;
    while (jobwire_decode(bytes, len, &message, &used) == 0) {
        ssize_t count = recv(fd, bytes + len, 1, MSG_DONTWAIT); /* one frame and no byte more */
        if (count > 0)
            len++;
        else
            uv_run(&fake->loop, UV_RUN_NOWAIT);
        assert_int_not_equal(count, 0);
    }
    return message;
}

static void test_clients(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = spawn_agent(&fake, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 4, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    int stale = client_connect(directory);
    client_say(stale, (struct jobwire_message){.type = JOBWIRE_JOIN, .join = {.task_uid = 1, .attempt = 3}});
    struct jobwire_message answer = client_hear(&fake, stale);
    assert_int_equal(answer.type, JOBWIRE_FENCED);
    assert_int_equal(answer.fenced.attempt, 4);
    int fd = client_connect(directory);
    client_say(fd, (struct jobwire_message){.type = JOBWIRE_JOIN, .join = {.task_uid = 1, .attempt = 4}});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_WELCOME);
    assert_false(answer.welcome.has_restore);
    RUN_UNTIL(&fake, told(&fake, 1)->joined == 1);
    struct jobwire_message step = {.type = JOBWIRE_STEP, .step = {.step = 5, .total = 10, .metric_count = 1}};
    snprintf(step.step.metrics[0].name, JOBWIRE_NAME_MAX, "loss");
    step.step.metrics[0].value = 1.5;
    client_say(fd, step);
    RUN_UNTIL(&fake, told(&fake, 1)->step == 5);
    client_say(fd,
               (struct jobwire_message){.type = JOBWIRE_SHARD_SAVED, .shard_saved = {.step = 5, .bytes = 1}});
    RUN_UNTIL(&fake, told(&fake, 1)->saved_step == 5);
    struct task_notice notice = {NOTICE_CHECKPOINT_COMMITTED, 1, 5, 0};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_CHECKPOINT_COMMITTED);
    assert_int_equal(answer.committed.step, 5);
    notice = (struct task_notice){NOTICE_DRAIN, 1, 0, 30 * NS_PER_SECOND};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_DRAIN);
    assert_true(answer.drain.deadline_ms > 25000 && answer.drain.deadline_ms <= 30000);
    assert_int_equal(write(stale, "\xff\xff\xff\xff garbage", 12), 12); /* harms nobody else */
    step.step.step = 6;
    client_say(fd, step);
    RUN_UNTIL(&fake, told(&fake, 1)->step == 6);
    close(stale);
    close(fd);
    setenv("STOP_TASKS", "1", 1);
    stop_task(&fake, 1, 0);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(await_agent(agent, SIGTERM), 0);
    unsetenv("STOP_TASKS");
    remove_state(directory);
    fake_done(&fake);
}

static void test_stop_tasks_at_the_end(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    setenv("STOP_TASKS", "1", 1);
    pid_t agent = spawn_agent(&fake, directory);
    unsetenv("STOP_TASKS");
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    kill(agent, SIGTERM);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGTERM);
    assert_int_equal(await_agent(agent, 0), 0);
    remove_state(directory);
    fake_done(&fake);
}

static void test_wrong_options(void **state)
{
    uv_loop_t loop;
    struct agent_host *host;
    struct error error;
    uv_loop_init(&loop);
    struct agent_host_options options = {
        .machine = "m", .machines = 3, .controller = "127.0.0.1", .port = 1, .state = "/tmp"};
    assert_int_equal(agent_host_new(&loop, &options, &host, &error), ERROR_INVALID);
    options.machines = 1;
    options.chips = 65;
    assert_int_equal(agent_host_new(&loop, &options, &host, &error), ERROR_INVALID);
    options.chips = 1;
    options.state = "/proc/no-such-place";
    assert_true(agent_host_new(&loop, &options, &host, &error) < 0);
    options.state = NULL;
    assert_int_equal(agent_host_new(&loop, &options, &host, &error), ERROR_INVALID);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

int main(int argc, char **argv)
{
    const char *build = getenv("PHX_BUILD");
    snprintf(shim, sizeof shim, "%s/phalanx-shim", build ? build : "build");
    if (argc == 4 && strcmp(argv[1], "agent") == 0)
        return run_agent(argv);
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len <= 0 || access(shim, X_OK) < 0) {
        fprintf(stderr, "skipped: no %s\n", shim);
        return 77;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_of_a_task),  cmocka_unit_test(test_commands_that_cannot_run),
        cmocka_unit_test(test_agent_is_killed), cmocka_unit_test(test_fence),
        cmocka_unit_test(test_machine_dies),    cmocka_unit_test(test_logs),
        cmocka_unit_test(test_clients),         cmocka_unit_test(test_stop_tasks_at_the_end),
        cmocka_unit_test(test_wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
