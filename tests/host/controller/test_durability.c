/* A write that the controller has acknowledged is never lost: restarts, kill -9, full disks, snapshots,
 * clocks set back. */
#include "host/controller/world.h"

#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <sqlite3.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "base/rng.h"

/* --- restarts --------------------------------------------------------------------------------- */

static void test_restart_touches_no_task(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    world_check_replay(&w);
    uint64_t epoch = agents[0]->epoch;
    for (int round = 0; round < 3; round++) {
        world_restart(&w);
        assert_int_equal(world_tasks(&w, TASK_RUNNING), 3);
        assert_int_equal(world_state(&w, "m-1"), MACHINE_AWAY);
        for (int i = 0; i < 3; i++)
            fake_join(agents[i]);
        for (int i = 0; i < 3; i++)
            world_pass(&w);
        assert_int_equal(world_tasks(&w, TASK_RUNNING), 3);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(agents[i]->epoch >= epoch + 3);
        assert_int_equal(fake_count(agents[i], FROM_CONTROLLER_START), 1);
        assert_int_equal(fake_count(agents[i], FROM_CONTROLLER_STOP), 0);
    }
    world_done(&w);
}

/* A cluster file that takes a busy machine away is refused: the old one holds, and the operator is told. */
static void test_unfit_cluster_file(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_train(&w, agents);
    world_stop(&w);
    char *count = strstr(w.cluster, "\"machines\":4");
    assert_non_null(count);
    count[strlen("\"machines\":")] = '2';
    char said[256] = "";
    int ends[2], old = dup(2);
    assert_int_equal(pipe(ends), 0);
    dup2(ends[1], 2);
    world_start(&w);
    dup2(old, 2);
    assert_true(read(ends[0], said, sizeof(said) - 1) > 0);
    assert_non_null(strstr(said, "ClusterFileRefused"));
    for (int i = 0; i < 3; i++)
        fake_join(agents[i]);
    assert_int_equal(world_tasks(&w, TASK_RUNNING), 3);
    close(ends[0]);
    close(ends[1]);
    close(old);
    world_done(&w);
}

static void test_lost_start_is_repeated(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_join_three(&w, agents);
    for (int i = 0; i < 3; i++)
        agents[i]->obeys = false; /* the order never arrives */
    assert_int_equal(world_create(&w, "train", 3), 201);
    RUN_UNTIL(&w, fake_count(agents[0], FROM_CONTROLLER_START) == 1);
    world_restart(&w);
    for (int i = 0; i < 3; i++) {
        agents[i]->obeys = true;
        fake_join(agents[i]);
    }
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 3);
    assert_int_equal(fake_count(agents[0], FROM_CONTROLLER_START), 2);
    assert_int_equal(agents[0]->running.len, 1);
    world_done(&w);
}

static void test_machine_that_stays_away_after_a_restart_is_lost(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_init(&w);
    world_join_three(&w, agents);
    assert_int_equal(world_create(&w, "train", 2), 201);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 2);
    world_restart(&w);
    fake_join(agents[1]);
    fake_join(agents[2]);
    world_pass(&w);
    world_wait(&w, 20);
    assert_int_equal(world_state(&w, "m-1"), MACHINE_AWAY);
    world_pass(&w);
    RUN_UNTIL(&w, world_state(&w, "m-1") == MACHINE_LOST);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 2);
    world_done(&w);
}

/* The wall clock is an hour behind what the log says: stamps go on, and so do timers. */
static void test_clock_set_back(void **state)
{
    struct world w;
    world_init(&w);
    w.controller->driver->clock_offset_ns += 3600 * NS_PER_SECOND;
    assert_int_equal(world_create(&w, "ahead", 1), 201);
    int64_t before_ns = core_now(w.controller->core);
    world_restart(&w);
    assert_true(core_now(w.controller->core) >= before_ns);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 1);
    struct buf text = {0};
    jobset_text(&text, "short", 1);
    const char *spec = strstr(text.data, "\"failurePolicy\"");
    struct buf ttl = {0};
    buf_printf(&ttl, "%.*s\"ttlSecondsAfterFinished\":1,%s", (int)(spec - text.data), text.data, spec);
    struct fake *other = fake_new(&w, "m-2");
    fake_join(other);
    assert_int_equal(world_http(&w, "POST", JOBSETS, ttl.data), 201);
    RUN_UNTIL(&w, other->running.len == 1);
    fake_report(other, REPORT_EXITED, other->running.items[0], 0);
    RUN_UNTIL(&w,
              !jobs_find(core_jobs(w.controller->core), STR("default"), STR("short"))); /* a second later */
    assert_true(core_now(w.controller->core) - before_ns < 60 * NS_PER_SECOND);
    buf_done(&text);
    buf_done(&ttl);
    world_done(&w);
}

static void expect_no_start(struct world *w, const struct controller_options *options, const char *why)
{
    struct controller *controller = NULL;
    struct error error = {0};
    assert_true(controller_new(&w->loop, options, &controller, &error) < 0);
    assert_null(controller);
    if (!strstr(error.text, why))
        fail_msg("\"%s\" does not say \"%s\"", error.text, why);
    for (int i = 0; i < 4; i++)
        uv_run(&w->loop, UV_RUN_NOWAIT);
}

static void test_failed_starts_leave_nothing(void **state)
{
    struct world w;
    world_prepare(&w, PATIENT_LEASE_MS);
    struct controller_options options = w.options;
    options.cluster_json = STR("");
    expect_no_start(&w, &options, "no cluster");
    options.cluster_json = STR("{\"spec\":");
    expect_no_start(&w, &options, "the cluster document");
    options = w.options;
    options.agent_address = "not an address";
    expect_no_start(&w, &options, "listening for agents");
    options = w.options;
    options.data_dir = "/proc/nowhere/data";
    expect_no_start(&w, &options, "/proc/nowhere/data");
    world_start(&w);
    expect_no_start(&w, &w.options, "opening the log"); /* one controller a log */
    char other[80];
    snprintf(other, sizeof(other), "%s/other", w.dir);
    options.data_dir = other;
    options.agent_port = controller_agent_port(w.controller);
    expect_no_start(&w, &options, "listening for agents");
    options.agent_port = 0;
    options.api_port = controller_api_port(w.controller);
    expect_no_start(&w, &options, "listening for the API");
    world_done(&w);
}

/* --- kill -9 at any moment -------------------------------------------------------------------- */

static _Noreturn void be_controller(const struct controller_options *options, int ready)
{
    uv_loop_t loop;
    struct controller *controller;
    struct error error = {0};
    signal(SIGPIPE, SIG_IGN);
    uv_loop_init(&loop);
    if (controller_new(&loop, options, &controller, &error) < 0) {
        fprintf(stderr, "%s\n", error.text);
        _exit(1);
    }
    dprintf(ready, "%u\n", controller_api_port(controller));
    close(ready);
    uv_run(&loop, UV_RUN_DEFAULT);
    _exit(0);
}

static pid_t start_controller(const struct controller_options *options, uint16_t *ret_port)
{
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        close(ready[0]);
        be_controller(options, ready[1]);
    }
    close(ready[1]);
    char text[16] = "";
    assert_true(read(ready[0], text, sizeof(text) - 1) > 0);
    close(ready[0]);
    *ret_port = (uint16_t)strtoul(text, NULL, 10);
    return pid;
}

static int post_begin(uint16_t port, const char *name)
{
    struct sockaddr_in address;
    uv_ip4_addr("127.0.0.1", port, &address);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    struct buf body = {0};
    jobset_text(&body, name, 1);
    dprintf(fd,
            "POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: "
            "%zu\r\n\r\n%s",
            JOBSETS, body.len, body.data);
    buf_done(&body);
    return fd;
}

/* Is it acknowledged within the time? */
static bool post_end(int fd, int64_t wait_ns)
{
    struct pollfd ready = {fd, POLLIN, 0};
    struct timespec wait = {wait_ns / NS_PER_SECOND, wait_ns % NS_PER_SECOND};
    char text[16] = "";
    bool created = ppoll(&ready, 1, &wait, NULL) == 1 && read(fd, text, sizeof(text) - 1) > 12 &&
                   strncmp(text, "HTTP/1.1 201", 12) == 0;
    close(fd);
    return created;
}

static void test_kill_9_loses_nothing_acknowledged(void **state)
{
    enum { ROUNDS = 12, POSTS = 60, AT_ONCE = 4 };
    static bool acknowledged[ROUNDS * POSTS];
    struct world w;
    struct rng rng;
    world_prepare(&w, PATIENT_LEASE_MS);
    w.options.snapshot_every = 40; /* kills meet snapshots too */
    rng_seed(&rng, 7);
    int count = 0, sure = 0;
    for (int round = 0; round < ROUNDS; round++) {
        uint16_t port;
        pid_t pid = start_controller(&w.options, &port);
        int last = (int)rng_range(&rng, 1, POSTS / AT_ONCE - 1);
        for (int group = 0; group <= last; group++) {
            int fds[AT_ONCE];
            for (int i = 0; i < AT_ONCE; i++) {
                char name[32];
                snprintf(name, sizeof(name), "job-%d", count + i);
                fds[i] = post_begin(port, name);
            }
            for (int i = 0; i < AT_ONCE; i++) {
                if (group == last && i == 0) /* now, or a little later */
                    acknowledged[count + i] = post_end(fds[i], rng_range(&rng, 0, 4 * NS_PER_MS));
                if (group == last && i == 0)
                    kill(pid, SIGKILL);
                else
                    acknowledged[count + i] = post_end(fds[i], PATIENCE_S * NS_PER_SECOND);
                sure += acknowledged[count + i];
            }
            count += AT_ONCE;
        }
        assert_int_equal(waitpid(pid, NULL, 0), pid);
    }
    assert_true(sure > count / 2);
    world_start(&w);
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "job-%d", i);
        if (acknowledged[i])
            assert_non_null(jobs_find(core_jobs(w.controller->core), STR("default"), str_from(name)));
    }
    world_done(&w);
}

/* --- a full disk ------------------------------------------------------------------------------ */

static void fill(const char *path)
{
    static char block[65536];
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    assert_true(fd >= 0);
    for (size_t size = sizeof(block); size > 0; size /= 2)
        while (write(fd, block, size) == (ssize_t)size)
            ;
    close(fd);
}

static void fill_until_refused(struct world *w, const char *path)
{
    char name[32];
    for (int i = 0; i < 5000; i++) {
        fill(path);
        snprintf(name, sizeof(name), "filler-%d", i);
        if (world_create(w, name, 1) != 201)
            return;
    }
    fail_msg("the disk does not become full");
}

static void test_full_disk(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_prepare(&w, PATIENT_LEASE_MS);
    if (unshare(CLONE_NEWNS) < 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", w.dir, "tmpfs", 0, "size=12m") < 0) {
        world_start(&w);
        world_done(&w);
        skip(); /* not root */
    }
    world_start(&w);
    world_join_three(&w, agents);
    assert_int_equal(world_create(&w, "train", 3), 201);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 3);
    char path[128];
    snprintf(path, sizeof(path), "%s/fill", w.dir);
    fill_until_refused(&w, path);
    assert_int_equal(w.code, 507);
    assert_non_null(strstr(w.answer.data, "\"reason\":\"InsufficientStorage\""));
    assert_non_null(strstr(w.answer.data, "free some space"));
    assert_true(w.controller->driver->blocked_since_ns > 0);
    /* News is kept, unacknowledged, as long as it lasts; heartbeats go on; reads go on. */
    uint64_t acked = agents[0]->acked, seq = core_seq(w.controller->core);
    int acks = agents[0]->acks;
    fake_report(agents[0], REPORT_EXITED, agents[0]->running.items[0], 9);
    agents[0]->running.len = 0;
    for (int i = 0; i < 3; i++)
        world_pass(&w);
    RUN_UNTIL(&w, agents[0]->acks > acks + 5);
    world_wait(&w, 500); /* it tries again all the while */
    assert_true(agents[0]->acked == acked && core_seq(w.controller->core) == seq);
    assert_int_equal(world_http(&w, "GET", JOBSETS "/train", ""), 200);
    assert_int_equal(world_create(&w, "one-more", 1), 507);
    /* An agent that comes back again and again leaves one hello. */
    for (int i = 0; i < 10; i++) {
        fake_cut(agents[1], &agents[1]->conn, false);
        RUN_UNTIL(&w, !fake_sessions(agents[1])->session);
        agents[1]->connection++;
        fake_hello(agents[1]);
        RUN_UNTIL(&w, fake_sessions(agents[1])->session);
    }
    assert_int_equal(fake_sessions(agents[1])->hellos, 1);
    assert_true(w.controller->driver->queue.len < 30);
    assert_int_equal(agents[1]->welcomes, 1);
    assert_int_equal(unlink(path), 0);
    RUN_UNTIL(&w, agents[0]->acked == acked + 1);
    RUN_UNTIL(&w, agents[1]->welcomes == 2);
    assert_int_equal(world_create(&w, "after", 1), 201);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 3);
    assert_int_equal(agents[0]->running.len, 1);
    world_done(&w);
    umount(w.dir);
    rmdir(w.dir);
}

/* An operator's shell holds the file in a write transaction. */
static void test_log_held_by_another_program(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    char path[128];
    sqlite3 *shell;
    snprintf(path, sizeof(path), "%s/log.db", w.dir);
    assert_int_equal(sqlite3_open(path, &shell), SQLITE_OK);
    assert_int_equal(sqlite3_exec(shell, "BEGIN IMMEDIATE", NULL, NULL, NULL), SQLITE_OK);
    assert_int_equal(world_create(&w, "train", 1), 503);
    assert_non_null(strstr(w.answer.data, "\"reason\":\"ServiceUnavailable\""));
    fake_report(agent, REPORT_STARTED, 99, 0);
    assert_int_equal(sqlite3_exec(shell, "ROLLBACK", NULL, NULL, NULL), SQLITE_OK);
    RUN_UNTIL(&w, agent->acked == 1);
    assert_int_equal(world_create(&w, "train", 1), 201);
    assert_int_equal(sqlite3_close(shell), SQLITE_OK);
    world_done(&w);
}

/* Agents report so much while the log takes nothing that some reports are dropped: they are sent again. */
static void test_more_news_than_room(void **state)
{
    struct world w;
    world_init(&w);
    struct fake *agent = fake_new(&w, "m-1");
    fake_join(agent);
    assert_int_equal(world_create(&w, "train", 1), 201);
    RUN_UNTIL(&w, world_tasks(&w, TASK_RUNNING) == 1);
    uint64_t acked = agent->acked;
    w.controller->driver->queue_bytes += 1 << 30; /* as if */
    agent->beats = false;
    fake_report(agent, REPORT_STARTED, 99, 0);
    fake_report(agent, REPORT_STARTED, 98, 0);
    fake_beat(agent, 4711);
    RUN_UNTIL(&w, agent->ack_sent_ns == 4711);
    assert_true(fake_sessions(agent)->missed_news && agent->acked == acked);
    assert_int_equal(w.controller->driver->missing_news, 1);
    w.controller->driver->queue_bytes -= 1 << 30;
    RUN_UNTIL(&w, !agent->conn);
    fake_join(agent);
    assert_int_equal(w.controller->driver->missing_news, 0);
    assert_int_equal(world_tasks(&w, TASK_RUNNING), 1);
    world_done(&w);
}

/* --- snapshots -------------------------------------------------------------------------------- */

static struct store_stats stats_of(const struct world *w)
{
    struct store_stats stats;
    struct error error;
    assert_int_equal(w->controller->log.stats(w->controller->log.context, &stats, &error), 0);
    return stats;
}

static void churn(struct world *w, int from, int count)
{
    for (int i = from; i < from + count; i++) {
        char name[32], path[128];
        snprintf(name, sizeof(name), "job-%d", i);
        assert_int_equal(world_create(w, name, 1 + i % 3), 201);
        snprintf(path, sizeof(path), JOBSETS "/job-%d", i - 5);
        if (i - 5 >= from)
            assert_int_equal(world_http(w, "DELETE", path, ""), 200);
    }
}

static void test_snapshots_tell_what_the_log_tells(void **state)
{
    struct world w;
    struct fake *agents[3];
    world_prepare(&w, PATIENT_LEASE_MS);
    w.options.snapshot_every = 30;
    world_start(&w);
    world_join_three(&w, agents);
    for (int round = 0; round < 3; round++) {
        churn(&w, 100 * round, 40);
        const struct driver *driver = w.controller->driver;
        RUN_UNTIL(&w, !w.controller->snapshot && core_seq(w.controller->core) - driver->snapshot_seq < 30);
        assert_true(stats_of(&w).snapshot_seq > 0 && stats_of(&w).first_seq == 1);
        world_check_replay(&w); /* from the first record, and from the newest snapshot */
        world_restart(&w);
        assert_true(w.controller->driver->snapshot_seq == stats_of(&w).snapshot_seq);
        for (int i = 0; i < 3; i++)
            fake_join(agents[i]);
    }
    world_done(&w);
}

static void test_log_is_bounded(void **state)
{
    struct world w;
    world_prepare(&w, PATIENT_LEASE_MS);
    w.options.snapshot_every = 30;
    w.options.keep_log_ns = 1;
    world_start(&w);
    for (int round = 0; round < 15; round++) { /* of more than 40 records each */
        churn(&w, 100 * round, 25);
        RUN_UNTIL(&w, stats_of(&w).last_seq - stats_of(&w).snapshot_seq < 30 && !w.controller->trimming &&
                          !w.controller->snapshot);
        assert_true(stats_of(&w).last_seq + 1 - stats_of(&w).first_seq < 4 * 100);
        if (round % 5 == 4)
            world_restart(&w);
    }
    assert_true(stats_of(&w).first_seq > 200);
    world_done(&w);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kill_9_loses_nothing_acknowledged),
        cmocka_unit_test(test_restart_touches_no_task),
        cmocka_unit_test(test_unfit_cluster_file),
        cmocka_unit_test(test_lost_start_is_repeated),
        cmocka_unit_test(test_machine_that_stays_away_after_a_restart_is_lost),
        cmocka_unit_test(test_clock_set_back),
        cmocka_unit_test(test_failed_starts_leave_nothing),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_log_held_by_another_program),
        cmocka_unit_test(test_more_news_than_room),
        cmocka_unit_test(test_snapshots_tell_what_the_log_tells),
        cmocka_unit_test(test_log_is_bounded),
    };
    if (argc > 1)
        cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
