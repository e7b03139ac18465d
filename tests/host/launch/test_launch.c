/* A task gets its command, environment, hosts, user, limits and log, and its course is reported. */
#include "host/launch/fixture.h"
#include "os/namespace.h"

#include <sched.h>
#include <sys/mount.h>

static void exit_codes_come_back(void **state)
{
    struct fixture *f = *state;
    const int codes[] = {0, 1, 7, 128, 255};
    for (size_t i = 0; i < sizeof codes / sizeof codes[0]; i++) {
        char text[32];
        snprintf(text, sizeof text, "exit %d", codes[i]);
        const struct launch_event *event = &run_script(f, 10 + i, text)->event;
        assert_false(event->exit.signaled);
        assert_int_equal(event->exit.exit_code, codes[i]);
        assert_false(event->exit.start_failed || event->exit.stopped || event->exit.lost ||
                     event->exit.fenced);
        const struct seen *started = find_event(f, LAUNCH_STARTED, 10 + i);
        assert_non_null(started);
        assert_true(started < find_event(f, LAUNCH_EXITED, 10 + i));
        assert_int_equal(started->event.pid, event->pid);
        assert_true(event->exit.started_ns > 0 && event->exit.started_ns <= event->exit.finished_ns);
        assert_int_equal(event->exit.started_ns, started->event.started_ns);
        assert_true(event->exit.max_rss_bytes > 0);
        assert_int_equal(event->attempt, 3);
        assert_true(is_dead(event->pid));
    }
}

static void signals_come_back(void **state)
{
    struct fixture *f = *state;
    const int signals[] = {SIGSEGV, SIGKILL, SIGABRT, SIGTERM};
    for (size_t i = 0; i < sizeof signals / sizeof signals[0]; i++) {
        struct task_args args;
        char text[32];
        snprintf(text, sizeof text, "kill -%d $$", signals[i]);
        script(f, &args, 10 + i, text);
        args.spec.core = (struct launch_limit){true, 0};
        spawn(f, &args.spec);
        const struct seen *seen = await(f, LAUNCH_EXITED, 10 + i);
        assert_true(seen->event.exit.signaled);
        assert_int_equal(seen->event.exit.signal, signals[i]);
        assert_non_null(strstr(seen->text, "signal"));
    }
}

static void output_is_kept_in_order(void **state)
{
    struct fixture *f = *state;
    run_script(f, 1, "echo one; echo two >&2; echo three; printf four");
    char *log = log_of(f, 1);
    assert_string_equal(log, "one\ntwo\nthree\nfour");
    free(log);
}

static void much_output_is_kept_whole(void **state)
{
    struct fixture *f = *state;
    run_script(f, 1, "seq 1 100000");
    char *log = log_of(f, 1), *at = log;
    for (int i = 1; i <= 100000; i++) {
        char line[16];
        int len = snprintf(line, sizeof line, "%d\n", i);
        assert_memory_equal(at, line, len);
        at += len;
    }
    assert_int_equal(*at, 0);
    free(log);
}

/* Parts keep to the limit, no line is torn, and together they are the end of what was written. */
static void log_is_rotated(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 1, "seq 100000 120000");
    args.spec.log_limit_bytes = 4096;
    args.spec.log_files = 3;
    spawn(f, &args.spec);
    await(f, LAUNCH_EXITED, 1);
    char path[LAUNCH_PATH_MAX], part[LAUNCH_PATH_MAX + 8];
    assert_int_equal(launch_log_path(f->launcher, 1, path, NULL), 0);
    long next = 0;
    for (int i = 2; i >= 0; i--) {
        snprintf(part, sizeof part, i ? "%s.%d" : "%s", path, i);
        size_t len = 0;
        char *data = slurp(part, &len);
        assert_non_null(data);
        assert_true(len > 0 && len <= 4096 && len % 7 == 0 && data[len - 1] == '\n');
        for (size_t at = 0; at < len; at += 7) {
            long value = strtol(data + at, NULL, 10);
            assert_true(next == 0 || value == next);
            next = value + 1;
        }
        free(data);
    }
    assert_int_equal(next, 120001);
    snprintf(part, sizeof part, "%s.3", path);
    assert_int_equal(access(part, F_OK), -1);
}

static void environment_is_exact(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"env", NULL}, *env[] = {"A=1", "RANK=3", NULL};
    struct launch_spec spec = {
        .uid = 1, .name = "job-0", .argv = argv, .env = env, .rank_table = STR("{}\n")};
    spawn(f, &spec);
    assert_int_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 0);
    char *log = log_of(f, 1), expect[1024];
    snprintf(expect, sizeof expect,
             "A=1\nRANK=3\nPATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n"
             "PHX_TASK_DIR=%s/tasks/1\nPHX_RANK_TABLE=%s/tasks/1/rank_table\n",
             f->directory, f->directory);
    assert_string_equal(log, expect);
    free(log);
}

static void task_starts_clean(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 1,
           "ls /proc/self/fd | wc -l; pwd; readlink /proc/self/fd/0; cat $PHX_RANK_TABLE;"
           "grep -E '^Sig(Blk|Ign)' /proc/self/status; ulimit -n; ps -o pgid=,sid= -p $$ | tr -d ' \\n' ");
    args.spec.directory = "/usr";
    args.spec.rank_table = STR("{\"version\":\"1.0\"}\n");
    args.spec.nofile = (struct launch_limit){true, 512};
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    char *log = log_of(f, 1), expect[512];
    snprintf(expect, sizeof expect,
             "4\n/usr\n/dev/"
             "null\n{\"version\":\"1.0\"}\nSigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n512\n%d%d",
             seen->event.pid, seen->event.pid); /* 0, 1, 2 and that of ls itself */
    assert_string_equal(log, expect);
    free(log);
}

static void hosts_resolve_from_the_first_instant(void **state)
{
    struct fixture *f = *state;
    if (geteuid() != 0)
        skip();
    struct task_args args;
    script(f, &args, 1, "getent hosts train-1.gang && getent hosts localhost");
    args.spec.hosts = STR("127.9.8.7 train-0.gang train-0\n127.9.8.8 train-1.gang train-1\n");
    spawn(f, &args.spec);
    int code = await(f, LAUNCH_EXITED, 1)->event.exit.exit_code;
    if (find_event(f, LAUNCH_NOTE, 1)) {
        print_message("skipped: no mount namespaces here: %s\n", find_event(f, LAUNCH_NOTE, 1)->text);
        skip();
    }
    assert_int_equal(code, 0);
    char *log = log_of(f, 1);
    assert_non_null(strstr(log, "127.9.8.8"));
    free(log);
    char *own = slurp("/etc/hosts", NULL);
    assert_true(!own || !strstr(own, "train-1.gang"));
    free(own);
}

#define UNRESOLVED                                                                                           \
    "names of a job's other tasks do not resolve inside its tasks (the file $PHX_HOSTS_FILE has them): "

static void hosts_file_without_namespace(void **state)
{
    struct fixture *f = *state;
    launcher_shut(f);
    f->options.private_hosts_off = true;
    launcher_open(f);
    struct task_args args;
    for (uint64_t uid = 1; uid <= 2; uid++) {
        script(f, &args, uid, "grep -c train-1.gang $PHX_HOSTS_FILE");
        args.spec.hosts = STR("127.9.8.8 train-1.gang train-1\n");
        spawn(f, &args.spec);
        assert_int_equal(await(f, LAUNCH_EXITED, uid)->event.exit.exit_code, 0);
    }
    assert_non_null(find_event(f, LAUNCH_NOTE, 1)); /* said once */
    assert_null(find_event(f, LAUNCH_NOTE, 2));
    assert_string_equal(
        find_event(f, LAUNCH_NOTE, 1)->text,
        geteuid() == 0
            ? UNRESOLVED "no private mount namespace is allowed (Operation not permitted); give the agent "
                         "CAP_SYS_ADMIN"
            : UNRESOLVED "no private mount namespace is allowed (Operation not permitted); run the agent as "
                         "root, or allow user namespaces (user.max_user_namespaces, "
                         "kernel.unprivileged_userns_clone)");
}

/* Makes /etc empty and read-only for this process and its children. */
static bool hide_etc(void)
{
    return geteuid() == 0 && unshare(CLONE_NEWNS) == 0 &&
           mount(NULL, "/", NULL, MS_SLAVE | MS_REC, NULL) == 0 &&
           mount("none", "/etc", "tmpfs", MS_RDONLY, NULL) == 0;
}

static void hosts_file_without_etc_hosts(void **state)
{
    struct fixture *f = *state;
    if (!hide_etc())
        skip();
    struct task_args args;
    script(f, &args, 1, "grep -c train-1.gang $PHX_HOSTS_FILE && test ! -e /etc/hosts");
    args.spec.hosts = STR("127.9.8.8 train-1.gang train-1\n");
    spawn(f, &args.spec);
    int code = await(f, LAUNCH_EXITED, 1)->event.exit.exit_code;
    assert_int_equal(umount2("/etc", MNT_DETACH), 0);
    assert_int_equal(code, 0);
    assert_string_equal(await(f, LAUNCH_NOTE, 1)->text,
                        UNRESOLVED "there is no /etc/hosts to mount on (No such file or directory); make an "
                                   "empty /etc/hosts");
}

static void bad_commands_say_why(void **state)
{
    struct fixture *f = *state;
    char plain[160];
    snprintf(plain, sizeof plain, "%s/plain", f->directory);
    close(open(plain, O_CREAT | O_WRONLY, 0644));
    const struct {
        const char *command, *directory, *message;
        int code;
    } cases[] = {
        {"no-such-command", NULL, "\"no-such-command\": not found in the task's PATH", 127},
        {"/no/such/file", NULL, "\"/no/such/file\": No such file or directory", 127},
        {"/usr", NULL, "\"/usr\": Permission denied", 126},
        {plain, NULL, "Permission denied", 126},
        {"/bin/true", "/no/such/directory", "\"/no/such/directory\": No such file or directory", 126},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *argv[] = {cases[i].command, NULL};
        struct launch_spec spec = {
            .uid = 20 + i, .name = "job-0", .argv = argv, .directory = cases[i].directory};
        spawn(f, &spec);
        const struct seen *seen = await(f, LAUNCH_EXITED, 20 + i);
        assert_true(seen->event.exit.start_failed);
        assert_int_equal(seen->event.exit.exit_code, cases[i].code);
        assert_int_equal(seen->event.exit.started_ns, 0);
        if (!strstr(seen->text, cases[i].message))
            fail_msg("\"%s\" lacks \"%s\"", seen->text, cases[i].message);
        assert_null(find_event(f, LAUNCH_STARTED, 20 + i));
    }
}

static void large_environment_and_arguments(void **state)
{
    struct fixture *f = *state;
    enum { ARGS = 3000, VARS = 8, VALUE = 100000 };
    static const char *argv[ARGS + 5], *env[VARS + 1];
    static char values[VARS][VALUE + 16];
    argv[0] = "/bin/sh";
    argv[1] = "-c";
    argv[2] = "echo $# ${#V0} ${#V7}";
    argv[3] = "sh";
    for (int i = 0; i < ARGS; i++)
        argv[4 + i] = "argument";
    for (int i = 0; i < VARS; i++) {
        int len = snprintf(values[i], 16, "V%d=", i);
        memset(values[i] + len, 'x', VALUE);
        env[i] = values[i];
    }
    struct launch_spec spec = {.uid = 1, .name = "job-0", .argv = argv, .env = env};
    spawn(f, &spec);
    assert_int_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 0);
    char *log = log_of(f, 1);
    assert_string_equal(log, "3000 100000 100000\n");
    free(log);
    char *huge = malloc(1 << 20); /* one string may have 128 KiB: execve(2) */
    memset(huge, 'y', (1 << 20) - 1);
    huge[(1 << 20) - 1] = 0;
    const char *too_long[] = {"/bin/echo", huge, NULL};
    spec = (struct launch_spec){.uid = 2, .name = "job-0", .argv = too_long};
    spawn(f, &spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 2);
    assert_true(seen->event.exit.start_failed);
    assert_non_null(strstr(seen->text, "Argument list too long"));
    free(huge);
}

static void user_is_changed(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 1, "id -u; id -g; id -G");
    args.spec.set_user = true;
    args.spec.user_id = 65534;
    args.spec.group_id = 65533;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    if (geteuid() != 0) {
        assert_true(seen->event.exit.start_failed);
        return;
    }
    char *log = log_of(f, 1);
    assert_string_equal(log, "65534\n65533\n65533\n");
    free(log);
}

static void spec_is_checked(void **state)
{
    struct fixture *f = *state;
    const char *argv[] = {"/bin/true", NULL}, *nothing[] = {NULL};
    struct launch_spec good = {.uid = 1, .name = "job-0", .argv = argv}, spec;
    struct error error;
    const char *names[] = {NULL, "", "a/b", ".."};
    for (size_t i = 0; i < 4; i++) {
        spec = good;
        spec.name = names[i];
        assert_int_equal(launch_spawn(f->launcher, &spec, &error), ERROR_INVALID);
    }
    spec = good;
    spec.argv = nothing;
    assert_int_equal(launch_spawn(f->launcher, &spec, &error), ERROR_INVALID);
    spec = good;
    spec.hosts = (struct str){"a\0b", 3};
    assert_int_equal(launch_spawn(f->launcher, &spec, &error), ERROR_INVALID);
    spawn(f, &good);
    assert_int_equal(launch_spawn(f->launcher, &good, &error), ERROR_EXISTS);
    await(f, LAUNCH_EXITED, 1);
    assert_int_equal(launch_spawn(f->launcher, &good, &error), ERROR_EXISTS);
    assert_int_equal(launch_stop(f->launcher, 99, 0, &error), ERROR_NOT_FOUND);
    assert_int_equal(launch_stop(f->launcher, 1, 0, &error), 0); /* has ended */
}

static void forgetting_keeps_the_newest_logs(void **state)
{
    struct fixture *f = *state;
    char path[LAUNCH_PATH_MAX], text[32];
    for (uint64_t uid = 1; uid <= 6; uid++) {
        snprintf(text, sizeof text, "echo %d", (int)uid);
        run_script(f, uid, text);
        assert_int_equal(launch_forget(f->launcher, uid, NULL), 0);
        assert_int_equal(launch_forget(f->launcher, uid, NULL), ERROR_NOT_FOUND);
    }
    for (int round = 0; round < 2; round++) { /* the second time with what a new launcher finds */
        for (uint64_t uid = 1; uid <= 6; uid++) {
            assert_int_equal(launch_log_path(f->launcher, uid, path, NULL), uid <= 3 ? ERROR_NOT_FOUND : 0);
            if (uid <= 3)
                continue;
            char *log = log_of(f, uid);
            assert_int_equal(strtol(log, NULL, 10), uid);
            free(log);
        }
        launcher_shut(f);
        launcher_open(f);
        assert_int_equal(launch_adopt(f->launcher, NULL), 0);
        assert_int_equal(f->seen_len, 0);
    }
}

/* State in one place (in memory, say), logs in another; the state vanishes as in a reboot, they do not. */
static void logs_live_elsewhere(void **state)
{
    struct fixture *f = *state;
    launcher_shut(f);
    char logs[192], path[LAUNCH_PATH_MAX], before[LAUNCH_PATH_MAX];
    snprintf(logs, sizeof logs, "%s/disk/logs", f->directory);
    f->options.log_directory = logs;
    launcher_open(f);
    run_script(f, 1, "echo one");
    run_script(f, 2, "echo two");
    assert_int_equal(launch_log_path(f->launcher, 1, before, NULL), 0);
    assert_memory_equal(before, logs, strlen(logs));
    assert_int_equal(launch_forget(f->launcher, 1, NULL), 0);
    launcher_shut(f);
    snprintf(path, sizeof path, "%s/tasks", f->directory);
    assert_int_equal(remove_tree(path), 0);
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    assert_int_equal(f->seen_len, 0);
    for (uint64_t uid = 1; uid <= 2; uid++) {
        char *log = log_of(f, uid);
        assert_string_equal(log, uid == 1 ? "one\n" : "two\n");
        free(log);
    }
}

/* The task's root is not the shim's alone: hosts, log and records are found as ever. */
static void a_root_of_its_own(void **state)
{
    struct fixture *f = *state;
    char place[192], part[224], logs[192];
    snprintf(place, sizeof place, "%s/place", f->directory);
    assert_int_equal(mkdir(place, 0755), 0);
    if (os_root_refused(place))
        skip();
    launcher_shut(f);
    snprintf(logs, sizeof logs, "%s/disk/logs", f->directory);
    f->options.log_directory = logs;
    launcher_open(f);
    struct task_args args;
    struct launch_mount mounts[] = {{.source = place, .target = "/", .root = true},
                                    {.source = "/dev", .target = "/dev"},
                                    {.source = f->directory, .target = "/made/by/it"}};
    script(f, &args, 1,
           "touch /phx-launch-root /made/by/it/reached; mkdir -p /tmp/phx-launch-root; grep -c peer-0 "
           "/etc/hosts; "
           "ls -A / | grep phalanx-machine; echo done");
    args.spec.mounts = mounts;
    args.spec.mount_count = sizeof mounts / sizeof *mounts;
    args.spec.hosts = STR("10.0.0.1 peer-0\n");
    spawn(f, &args.spec);
    assert_int_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 0);
    char *log = log_of(f, 1);
    assert_string_equal(log, "1\ndone\n");
    free(log);
    assert_true(access("/phx-launch-root", F_OK) < 0 && access("/tmp/phx-launch-root", F_OK) < 0 &&
                access("/made", F_OK) < 0);
    snprintf(part, sizeof part, "%s/reached", f->directory);
    assert_int_equal(access(part, F_OK), 0);
}

static void second_launcher_is_refused(void **state)
{
    struct fixture *f = *state;
    struct launcher *other = NULL;
    assert_int_equal(launcher_new(&f->loop, &f->options, &other, NULL), ERROR_CONFLICT);
    assert_null(other);
}

static void many_at_once(void **state)
{
    struct fixture *f = *state;
    enum { TASKS = 40 };
    for (uint64_t uid = 1; uid <= TASKS; uid++) {
        char text[32];
        snprintf(text, sizeof text, "exit %d", (int)uid);
        spawn_script(f, uid, text);
    }
    for (uint64_t uid = 1; uid <= TASKS; uid++)
        assert_int_equal(await(f, LAUNCH_EXITED, uid)->event.exit.exit_code, uid);
    assert_int_equal(f->seen_len, 2 * TASKS);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(exit_codes_come_back),
        CASE(signals_come_back),
        CASE(output_is_kept_in_order),
        CASE(much_output_is_kept_whole),
        CASE(log_is_rotated),
        CASE(environment_is_exact),
        CASE(task_starts_clean),
        CASE(hosts_resolve_from_the_first_instant),
        CASE(hosts_file_without_namespace),
        CASE(hosts_file_without_etc_hosts),
        CASE(bad_commands_say_why),
        CASE(large_environment_and_arguments),
        CASE(user_is_changed),
        CASE(spec_is_checked),
        CASE(forgetting_keeps_the_newest_logs),
        CASE(logs_live_elsewhere),
        CASE(a_root_of_its_own),
        CASE(second_launcher_is_refused),
        CASE(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
