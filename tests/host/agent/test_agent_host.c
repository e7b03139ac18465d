/* Real agents, real tasks, real kills, against a controller that is only a few answers. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "host/agent/agent_process.h"
#include "host/agent/fake.h"
#include "host/process.h"
#include "job/link/wire.h"

/* Chips and host name of the next task: none starts beside another that has either. */
static uint64_t start_chips = 1;
static const char *start_host = "work-0";

static void start_command(struct fake *fake, uint64_t task, int32_t attempt, const char *command)
{
    struct str argv[] = {STR("/bin/sh"), STR("-c"), str_from(command)};
    struct env_var env[] = {{.name = STR("GREETING"), .value = STR("good morning")}};
    struct rank_table_entry entries[] = {{str_from(start_host), STR("127.0.0.1"), STR("m-1"), 1, 0}};
    struct task_launch launch = {.task = task,
                                 .jobset = 1,
                                 .attempt = attempt,
                                 .name = STR("work-0-abcde"),
                                 .namespace_ = STR("default"),
                                 .checkpoint_folder = STR("train"),
                                 .argv = argv,
                                 .argc = 3,
                                 .env = env,
                                 .env_count = 1,
                                 .run_as_user = -1,
                                 .run_as_group = -1,
                                 .chips = start_chips,
                                 .grace_ns = 2 * NS_PER_SECOND,
                                 .world = 1,
                                 .restore_step = -1,
                                 .rank_table = {STR("train"), STR("default"), entries, 1}};
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

/* --- state ----------------------------------------------------------------------------------------- */

static void make_state(char ret_path[64])
{
    snprintf(ret_path, 64, "/tmp/phx-agent-test-XXXXXX");
    assert_non_null(mkdtemp(ret_path));
}

/* --- tests ---------------------------------------------------------------------------------------- */

static void test_life_of_a_task(void **state)
{
    struct fake fake;
    char directory[64], peer[WIRE_ADDRESS_MAX];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent && fake.tethers == 1);
    wire_conn_peer(fake.agent, peer);
    assert_memory_equal(peer, AGENT_ADDRESS ":", 10);
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
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent = agent_spawn(fake.port, directory);
    int hellos = fake.hellos;
    RUN_UNTIL(&fake, fake.hellos > hellos);
    assert_int_equal(fake.last_inventory, 0);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

static void test_commands_that_cannot_run(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
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
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
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
    pid_t agent = agent_spawn(fake.port, directory);
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
    assert_int_equal(agent_end(agent, SIGKILL), -SIGKILL);
    RUN_UNTIL(&fake, fake.closed == 1); /* the connection; the shims hold the tether */
    int fd = open(pipe_path, O_WRONLY); /* the second task ends while nobody looks */
    assert_int_equal(write(fd, "x\n", 2), 2);
    close(fd);
    agent = agent_spawn(fake.port, directory);
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
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    RUN_UNTIL(&fake, fake.closed == 4); /* both connections, both tethers: everything is dead */
    agent_remove_state(directory);
    fake_done(&fake);
}

/* The agent dies while it forgets a task: the log is among those kept, the start record is still there. */
static void test_agent_is_killed_while_it_forgets(void **state)
{
    struct fake fake;
    char directory[64], record[128], copy[128];
    fake_init(&fake);
    make_state(directory);
    snprintf(record, sizeof record, "%s/starts/1", directory);
    snprintf(copy, sizeof copy, "%s/record", directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exit 0");
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(link(record, copy), 0);
    forget(&fake, 1);
    stop_task(&fake, 4711, 0); /* unknown: the answer comes behind the forgetting */
    RUN_UNTIL(&fake, told(&fake, 4711)->exited);
    assert_int_equal(agent_end(agent, SIGKILL), -SIGKILL);
    assert_int_equal(link(copy, record), 0);
    setenv(AGENT_STOP_TASKS, "1", 1);
    agent = agent_spawn(fake.port, directory);
    unsetenv(AGENT_STOP_TASKS);
    int hellos = fake.hellos;
    RUN_UNTIL(&fake, fake.hellos > hellos);
    assert_int_equal(fake.last_inventory, 0);
    assert_int_equal(access(record, F_OK), -1);
    start_command(&fake, 2, 0, "exec sleep 1000"); /* on the chips of the first */
    RUN_UNTIL(&fake, told(&fake, 2)->started);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

static void stop_the_first(struct fake *fake, struct wire_conn *conn)
{
    stop_task(fake, 1, 0);
}

/* The next agent knows from the state directory whose the machine is. What another cluster's controller says
 * is not done, and the task goes on for its own. */
static void test_controller_of_another_cluster(void **state)
{
    struct fake fake;
    char directory[64], path[128], wrong[160];
    fake_init(&fake);
    make_state(directory);
    snprintf(path, sizeof path, "%s/cluster", directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    int64_t pid = told(&fake, 1)->pid;
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(agent_end(agent, SIGKILL), -SIGKILL);
    fake.cluster = FAKE_CLUSTER + 1;
    fake.on_hello = stop_the_first;
    int hellos = fake.hellos, beats = fake.heartbeats;
    agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.hellos >= hellos + 3); /* it comes again */
    assert_true(fake.cluster_said == FAKE_CLUSTER && fake.heartbeats == beats);
    fake.cluster = FAKE_CLUSTER;
    fake.on_hello = NULL;
    RUN_UNTIL(&fake, fake.heartbeats > beats);
    assert_int_equal(told(&fake, 1)->exited, 0);
    assert_int_equal(kill((pid_t)pid, 0), 0);
    stop_task(&fake, 1, 0);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    snprintf(wrong, sizeof wrong, "echo nothing > %s", path);
    assert_int_equal(system(wrong), 0);
    assert_int_equal(agent_end(agent_spawn(fake.port, directory), 0), 1);
    agent_remove_state(directory);
    fake_done(&fake);
}

/* Heartbeats keep a task beyond its first lease. False: they came so slowly that nothing is proven. */
static bool outlives_its_lease(int64_t lease_ns)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    fake.lease_ns = lease_ns;
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    uint64_t until_ns = uv_hrtime() + (uint64_t)(lease_ns + lease_ns / 4);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->exited || uv_hrtime() > until_ns);
    bool lived = told(&fake, 1)->started && !told(&fake, 1)->exited;
    assert_true(lived || longest_gap(&fake) > (uint64_t)lease_ns / 2);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
    return lived;
}

static void test_lease_is_renewed(void **state)
{
    for (int64_t lease_ns = NS_PER_SECOND; !outlives_its_lease(lease_ns); lease_ns *= 2)
        assert_true(lease_ns < 32 * NS_PER_SECOND);
}

/* The leader stands still, and its connection stays open. It is kept while no other controller takes agents,
 * and left with all tasks for the first that does. */
static void test_a_leader_that_stands_still(void **state)
{
    struct fake leader, next;
    char directory[64], text[8];
    fake_init(&leader);
    fake_init(&next);
    make_state(directory);
    uint16_t port = next.port;
    wire_listener_close(next.listener);
    snprintf(text, sizeof text, "%u", leader.port);
    setenv(AGENT_ASKS_FIRST, text, 1);
    setenv(AGENT_STOP_TASKS, "1", 1);
    pid_t agent = agent_spawn(port, directory);
    unsetenv(AGENT_ASKS_FIRST);
    unsetenv(AGENT_STOP_TASKS);
    RUN_UNTIL(&leader, leader.agent);
    start_command(&leader, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&leader, told(&leader, 1)->started);
    leader.silent = true;
    int beats = leader.heartbeats;
    RUN_UNTIL(&leader, leader.heartbeats >= beats + 5);
    assert_true(leader.agent && leader.hellos == 1);
    struct error error;
    assert_int_equal(
        wire_listen(next.wire, "127.0.0.1", port, &handlers, &next, &next.listener, NULL, &error), 0);
    RUN_UNTIL(&leader, !leader.agent);
    RUN_UNTIL(&next, next.agent);
    assert_int_equal(next.last_inventory, 1);
    assert_true(told(&next, 1)->started && !told(&next, 1)->exited);
    beats = next.heartbeats;
    RUN_UNTIL(&next, next.heartbeats >= beats + 5);
    assert_true(next.agent && next.hellos == 1);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&leader);
    fake_done(&next);
}

/* As a controller does: what was started and did not end is said again on a new connection. */
static void start_again(struct fake *fake, struct wire_conn *conn)
{
    uint64_t task = *(uint64_t *)fake->context;
    if (!told(fake, task)->started && !told(fake, task)->exited)
        start_command(fake, task, 0, "trap '' TERM; while :; do sleep 1000; done");
}

/* Without acknowledgements the tasks die with the lease: by the agent, and by the shims when it is dead. */
static void test_fence(void **state)
{
    struct fake fake;
    char directory[64];
    uint64_t task = 1;
    fake_init(&fake);
    fake.lease_ns = 2 * NS_PER_SECOND;
    fake.on_hello = start_again;
    fake.context = &task;
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, told(&fake, 1)->started || told(&fake, 1)->exited);
    fake.silent = true;
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_true(told(&fake, 1)->fenced);
    fake.silent = false;
    task = 2;
    if (fake.agent)
        start_again(&fake, fake.agent);
    RUN_UNTIL(&fake, told(&fake, 2)->started || told(&fake, 2)->exited);
    assert_int_equal(agent_end(agent, SIGKILL), -SIGKILL);
    if (told(&fake, 2)->started)
        RUN_UNTIL(&fake, process_gone((pid_t)told(&fake, 2)->pid));
    agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, told(&fake, 2)->exited);
    assert_true(told(&fake, 2)->fenced);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
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
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent && fake.tethers == 1);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    pid_t task = (pid_t)told(&fake, 1)->pid, shim_pid = find_shim(directory, 1);
    assert_true(shim_pid > 0 && shim_pid != task);
    uint64_t killed_ns = uv_hrtime();
    kill(agent, SIGKILL);
    kill(shim_pid, SIGKILL);
    RUN_UNTIL(&fake, fake.closed == 2);
    printf("connection and tether seen closed %.1f ms after the kill\n",
           (double)(uv_hrtime() - killed_ns) / 1e6);
    assert_int_equal(agent_end(agent, 0), -SIGKILL);
    agent = agent_spawn(fake.port, directory); /* the machine comes back: it knows that the task is lost */
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGKILL);
    RUN_UNTIL(&fake, process_gone(task)); /* a task never outlives its shim */
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

static void note_closed(void *context)
{
    *(bool *)context = true;
}

/* The launcher tells of a loss before the agent's first tick, as it does where a look at all processes takes
 * its time: the agent boots all the same. */
static void test_loss_before_the_first_tick(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    pid_t shim_pid = find_shim(directory, 1);
    assert_true(shim_pid > 0);
    assert_int_equal(agent_end(agent, SIGKILL), -SIGKILL);
    assert_int_equal(kill(shim_pid, SIGKILL), 0);
    RUN_UNTIL(&fake, process_gone((pid_t)told(&fake, 1)->pid));
    struct agent_host *host;
    struct error error;
    struct agent_host_options options = {.allow_root_tasks = true,
                                         .isolation_off = true, /* tasks meet the test in the state folder */
                                         .machine = "m-1",
                                         .controller = "127.0.0.1",
                                         .port = fake.port,
                                         .state = directory,
                                         .shim = agent_shim,
                                         .memory_dir = "",
                                         .chips = 4,
                                         .quiet = true};
    int hellos = fake.hellos;
    static bool closed;
    uv_update_time(&fake.loop);
    poll(NULL, 0, 50); /* timers count from the time that the loop knows: the launcher's is due at once */
    if (agent_host_new(&fake.loop, &options, &host, &error) < 0)
        fail_msg("%s", error.text);
    RUN_UNTIL(&fake, fake.hellos > hellos && told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGKILL);
    agent_host_shutdown(host, false, note_closed, &closed);
    RUN_UNTIL(&fake, closed);
    agent_remove_state(directory);
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
    pid_t agent = agent_spawn(fake.port, directory);
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
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

/* --- a task that speaks libphalanx's protocol ----------------------------------------------------- */

enum { LENT = 2 };

/* In a task: connects to its agent twice, hands the connections to the test that listens at the abstract
 * name, and stays. Only a task's process may connect. */
static int lend_connections(const char *name)
{
    struct sockaddr_un agent = {.sun_family = AF_UNIX}, test = {.sun_family = AF_UNIX};
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(LENT * sizeof(int))];
    } control = {.header = {CMSG_LEN(LENT * sizeof(int)), SOL_SOCKET, SCM_RIGHTS}};
    struct iovec byte = {"", 1};
    struct msghdr message = {
        .msg_iov = &byte, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int fds[LENT], fd = socket(AF_UNIX, SOCK_STREAM, 0);
    snprintf(agent.sun_path, sizeof agent.sun_path, "%s", getenv("PHX_AGENT_SOCKET"));
    snprintf(test.sun_path + 1, sizeof test.sun_path - 1, "%s", name);
    for (int i = 0; i < LENT; i++) {
        fds[i] = socket(AF_UNIX, SOCK_STREAM, 0);
        if (connect(fds[i], (struct sockaddr *)&agent, sizeof agent) < 0)
            return 1;
    }
    memcpy(CMSG_DATA(&control.header), fds, sizeof fds);
    if (connect(fd, (struct sockaddr *)&test, sizeof test) < 0 || sendmsg(fd, &message, 0) != 1)
        return 1;
    for (;;)
        pause();
}

/* Starts a task, and takes over its connections. */
static void borrow_connections(struct fake *fake, uint64_t task, int32_t attempt, int ret_fds[LENT])
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    char path[PATH_MAX] = "", command[PATH_MAX + 64], byte;
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(LENT * sizeof(int))];
    } control;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    int fd = -1, listener = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    snprintf(address.sun_path + 1, sizeof address.sun_path - 1, "phx-lend-%d", (int)getpid());
    assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_true(readlink("/proc/self/exe", path, sizeof path - 1) > 0);
    snprintf(command, sizeof command, "exec %s lend %s", path, address.sun_path + 1);
    start_command(fake, task, attempt, command);
    RUN_UNTIL(fake, told(fake, task)->exited || (fd = accept(listener, NULL, NULL)) >= 0);
    assert_true(fd >= 0);
    assert_int_equal(recvmsg(fd, &message, MSG_CMSG_CLOEXEC), 1);
    memcpy(ret_fds, CMSG_DATA(&control.header), LENT * sizeof(int));
    close(fd);
    close(listener);
}

/* The connections' end as the task sees it: the agent has closed it. */
static bool is_closed(int fd)
{
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) == 0;
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

/* The task opens a session of its chips and hears that the controller knows it; then it has the tables. */
static void say_routes(struct fake *fake, int fd, struct task_notice notice)
{
    struct jobwire_message says = {.type = JOBWIRE_ROUTES, .routes = {.session = 9, .open = true}};
    client_say(fd, says);
    RUN_UNTIL(fake, told(fake, 1)->routes.session == 9);
    notice.session = 9; /* with the same tables once more */
    wire_send_controller(fake->agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    struct jobwire_message answer = client_hear(fake, fd);
    assert_int_equal(answer.type, JOBWIRE_TABLES);
    assert_int_equal(answer.tables.session, 9);
    says.routes.tables = 2;
    says.routes.without = 1u << 5;
    client_say(fd, says);
    RUN_UNTIL(fake, told(fake, 1)->routes.tables == 2);
    assert_int_equal(told(fake, 1)->routes.without, 1u << 5);
}

static void test_clients(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    int fds[LENT];
    borrow_connections(&fake, 1, 4, fds);
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    int stale = fds[0], fd = fds[1];
    client_say(stale, (struct jobwire_message){.type = JOBWIRE_JOIN, .join = {.task_uid = 1, .attempt = 3}});
    struct jobwire_message answer = client_hear(&fake, stale);
    assert_int_equal(answer.type, JOBWIRE_FENCED);
    assert_int_equal(answer.fenced.attempt, 4);
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
    struct task_notice notice = {.kind = NOTICE_CHECKPOINT_COMMITTED, .task = 1, .step = 5};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_CHECKPOINT_COMMITTED);
    assert_int_equal(answer.committed.step, 5);
    notice = (struct task_notice){
        .kind = NOTICE_DRAIN, .task = 1, .deadline_ns = 30 * NS_PER_SECOND, .reason = DRAIN_MAINTENANCE};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_DRAIN);
    assert_true(answer.drain.deadline_ms > 25000 && answer.drain.deadline_ms <= 30000);
    notice =
        (struct task_notice){.kind = NOTICE_TABLES, .task = 1, .step = 2, .tables = STR("4x4x8 without x5")};
    wire_send_controller(fake.agent,
                         &(struct from_controller){.kind = FROM_CONTROLLER_NOTICE, .notice = notice});
    answer = client_hear(&fake, fd);
    assert_int_equal(answer.type, JOBWIRE_TABLES);
    assert_int_equal(answer.tables.number, 2);
    assert_string_equal(answer.tables.name, "4x4x8 without x5");
    say_routes(&fake, fd, notice);
    assert_int_equal(write(stale, "\xff\xff\xff\xff garbage", 12), 12); /* harms nobody else */
    step.step.step = 6;
    client_say(fd, step);
    RUN_UNTIL(&fake, told(&fake, 1)->step == 6);
    close(stale);
    close(fd);
    setenv(AGENT_STOP_TASKS, "1", 1);
    stop_task(&fake, 1, 0);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    unsetenv(AGENT_STOP_TASKS);
    agent_remove_state(directory);
    fake_done(&fake);
}

/* A task's own process speaks for its task alone, and a stranger's for none. */
static void test_clients_of_others(void **state)
{
    struct fake fake;
    char directory[64], folder[128];
    int fds[LENT], stranger = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    struct stat info;
    fake_init(&fake);
    make_state(directory);
    pid_t agent = agent_spawn(fake.port, directory);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exec sleep 1000");
    start_chips = 2;
    start_host = "work-1";
    borrow_connections(&fake, 2, 0, fds);
    start_chips = 1;
    start_host = "work-0";
    RUN_UNTIL(&fake, told(&fake, 1)->started && told(&fake, 2)->started);
    client_say(fds[0], (struct jobwire_message){.type = JOBWIRE_JOIN, .join = {.task_uid = 1}});
    RUN_UNTIL(&fake, is_closed(fds[0]));
    client_say(fds[1], (struct jobwire_message){.type = JOBWIRE_SHARD_SAVED, .shard_saved = {.step = 7}});
    RUN_UNTIL(&fake, is_closed(fds[1]));
    snprintf(address.sun_path, sizeof address.sun_path, "%s/sockets/1/agent.sock", directory);
    assert_int_equal(stat(address.sun_path, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0600);
    snprintf(folder, sizeof folder, "%s/sockets/1", directory);
    assert_int_equal(stat(folder, &info), 0);
    assert_int_equal(info.st_mode & 07777, 0700);
    assert_int_equal(connect(stranger, (struct sockaddr *)&address, sizeof address), 0);
    RUN_UNTIL(&fake, is_closed(stranger));
    assert_int_equal(told(&fake, 1)->joined, 0);
    assert_int_equal(told(&fake, 2)->saved_step, -1);
    for (int i = 0; i < LENT; i++)
        close(fds[i]);
    close(stranger);
    stop_task(&fake, 1, 0);
    stop_task(&fake, 2, 0);
    RUN_UNTIL(&fake, told(&fake, 1)->exited && told(&fake, 2)->exited);
    forget(&fake, 1);
    RUN_UNTIL(&fake, stat(folder, &info) < 0);
    assert_int_equal(agent_end(agent, SIGTERM), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

static void test_stop_tasks_at_the_end(void **state)
{
    struct fake fake;
    char directory[64];
    fake_init(&fake);
    make_state(directory);
    setenv(AGENT_STOP_TASKS, "1", 1);
    pid_t agent = agent_spawn(fake.port, directory);
    unsetenv(AGENT_STOP_TASKS);
    RUN_UNTIL(&fake, fake.agent);
    start_command(&fake, 1, 0, "exec sleep 1000");
    RUN_UNTIL(&fake, told(&fake, 1)->started);
    kill(agent, SIGTERM);
    RUN_UNTIL(&fake, told(&fake, 1)->exited);
    assert_int_equal(told(&fake, 1)->signal, SIGTERM);
    assert_int_equal(agent_end(agent, 0), 0);
    agent_remove_state(directory);
    fake_done(&fake);
}

static void test_wrong_options(void **state)
{
    uv_loop_t loop;
    struct agent_host *host;
    struct error error;
    uv_loop_init(&loop);
    struct agent_host_options options = {.allow_root_tasks = true,
                                         .isolation_off = true,
                                         .machine = "m",
                                         .machines = 3,
                                         .controller = "127.0.0.1",
                                         .port = 1,
                                         .state = "/tmp"};
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
    if (argc == 3 && strcmp(argv[1], "lend") == 0)
        return lend_connections(argv[2]);
    agent_process_main(argc, argv);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_life_of_a_task),
        cmocka_unit_test(test_commands_that_cannot_run),
        cmocka_unit_test(test_agent_is_killed),
        cmocka_unit_test(test_agent_is_killed_while_it_forgets),
        cmocka_unit_test(test_controller_of_another_cluster),
        cmocka_unit_test(test_lease_is_renewed),
        cmocka_unit_test(test_a_leader_that_stands_still),
        cmocka_unit_test(test_fence),
        cmocka_unit_test(test_machine_dies),
        cmocka_unit_test(test_loss_before_the_first_tick),
        cmocka_unit_test(test_logs),
        cmocka_unit_test(test_clients),
        cmocka_unit_test(test_clients_of_others),
        cmocka_unit_test(test_stop_tasks_at_the_end),
        cmocka_unit_test(test_wrong_options),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
