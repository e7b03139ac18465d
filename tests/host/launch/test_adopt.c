/* Parts that outlive the agent: adoption, fence, tether; and what happens when the shim itself is killed. */
#include <sys/file.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "host/launch/fixture.h"
#include "host/launch/shim.h"

/* An agent in a process of its own that spawns tasks, says that they have started, and lives until it is
 * killed. */
struct agent {
    pid_t pid;
};

static void agent_body(struct fixture *f, const struct launch_spec *const *specs, size_t count,
                       uint64_t fence_ns, int tether, int started)
{
    launcher_open(f);
    if (fence_ns)
        launch_set_fence(f->launcher, fence_ns);
    if (tether >= 0 && launcher_set_tether(f->launcher, tether, NULL) < 0)
        _exit(2);
    for (size_t i = 0; i < count; i++)
        spawn(f, specs[i]);
    for (size_t i = 0; i < count; i++)
        PATIENT_UNTIL(&f->patience, find_event(f, LAUNCH_STARTED, specs[i]->uid) ||
                                        find_event(f, LAUNCH_EXITED, specs[i]->uid));
    if (write(started, "s", 1) != 1)
        _exit(2);
    for (;;)
        uv_run(&f->loop, UV_RUN_ONCE);
}

static struct agent agents_start(struct fixture *f, const struct launch_spec *const *specs, size_t count,
                                 uint64_t fence_ns, int tether)
{
    int fds[2];
    assert_int_equal(pipe2(fds, O_CLOEXEC), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        close(fds[0]);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        agent_body(f, specs, count, fence_ns, tether, fds[1]);
        _exit(2);
    }
    close(fds[1]);
    char c;
    assert_int_equal(read(fds[0], &c, 1), 1);
    close(fds[0]);
    return (struct agent){.pid = pid};
}

static struct agent agent_start(struct fixture *f, const struct launch_spec *spec, uint64_t fence_ns,
                                int tether)
{
    return agents_start(f, &spec, 1, fence_ns, tether);
}

static void agent_kill(struct agent *agent)
{
    int status;
    assert_int_equal(kill(agent->pid, SIGKILL), 0);
    assert_int_equal(waitpid(agent->pid, &status, 0), agent->pid);
}

static int bare_setup(void **state)
{
    *state = fixture_bare();
    return 0;
}

/* Until every task that has the FIFO of words open is dead. */
static void await_silence(struct fixture *f)
{
    for (;;) {
        struct pollfd fd = {f->words_fd, POLLIN, 0};
        assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
        char block[64];
        if (read(f->words_fd, block, sizeof block) == 0)
            return;
    }
}

/* The exit is reported a moment before the shim itself is gone. */
static void await_shim_gone(struct fixture *f, int uid)
{
    char path[256];
    snprintf(path, sizeof path, "%s/tasks/%d/task", f->directory, uid);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    close(fd);
}

static void running_task_is_adopted(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char word[64];
    script(f, &args, 7,
           "trap 'exit 42' TERM; exec 3>$WORDS; echo ready >&3; while :; do sleep 1000 & wait $!; done");
    struct agent agent = agent_start(f, &args.spec, 0, -1);
    await_word(f, word);
    agent_kill(&agent);
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 1);
    const struct seen *adopted = find_event(f, LAUNCH_ADOPTED, 7);
    assert_non_null(adopted);
    assert_true(adopted->event.pid > 0 && adopted->event.started_ns > 0);
    assert_int_equal(adopted->event.attempt, 3);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0); /* again: nothing new */
    assert_int_equal(f->seen_len, 1);
    assert_int_equal(launch_spawn(f->launcher, &args.spec, NULL), ERROR_EXISTS);
    assert_int_equal(launch_stop(f->launcher, 7, 30 * NS_PER_SECOND, NULL), 0);
    assert_int_equal(await(f, LAUNCH_EXITED, 7)->event.exit.exit_code, 42);
    assert_int_equal(launch_forget(f->launcher, 7, NULL), 0);
}

/* In the place of the shim: waits for a word on the FIFO "go" before it becomes the shim. */
static void make_slow_shim(struct fixture *f)
{
    char path[160];
    snprintf(path, sizeof path, "%s/go", f->directory);
    assert_int_equal(mkfifo(path, 0600), 0);
    snprintf(f->shim, sizeof f->shim, "%s/slow-shim", f->directory);
    FILE *file = fopen(f->shim, "w");
    assert_non_null(file);
    fprintf(file, "#!/bin/sh\nread word <%s\nexec %s \"$@\"\n", path, shim_path());
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(f->shim, 0755), 0);
}

/* An agent that dies between the start of a shim and its exec; the next is told to stop the task. */
static void stopped_before_its_exec(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char path[160];
    make_slow_shim(f);
    script(f, &args, 7, "exec sleep 1000");
    launcher_open(f);
    spawn(f, &args.spec);
    launcher_shut(f); /* as after a kill: nothing of it is written down */
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 1);
    assert_int_equal(f->seen_len, 0);
    assert_true(launch_has(f->launcher, 7));
    assert_int_equal(launch_signal(f->launcher, 7, SIGUSR1, NULL), ERROR_UNAVAILABLE);
    assert_int_equal(launch_stop(f->launcher, 7, -1, NULL), 0);
    assert_int_equal(launch_stop(f->launcher, 7, 30 * NS_PER_SECOND, NULL), 0);
    snprintf(path, sizeof path, "%s/go", f->directory);
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    assert_int_equal(write(fd, "go\n", 3), 3);
    close(fd);
    const struct seen *exited = await(f, LAUNCH_EXITED, 7);
    assert_non_null(find_event(f, LAUNCH_STARTED, 7));
    assert_true(exited->event.exit.signaled && exited->event.exit.stopped);
    assert_int_equal(exited->event.exit.signal, SIGTERM);
    assert_int_equal(launch_forget(f->launcher, 7, NULL), 0);
    assert_false(launch_has(f->launcher, 7));
}

static void finished_meanwhile_is_collected(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char word[64], go[160];
    snprintf(go, sizeof go, "%s/go", f->directory);
    assert_int_equal(mkfifo(go, 0600), 0);
    int go_fd = open(go, O_RDWR | O_CLOEXEC);
    script(f, &args, 7, "exec 3>$WORDS; echo ready >&3; read line <$GO; exit 33");
    char variable[192];
    snprintf(variable, sizeof variable, "GO=%s", go);
    args.env[1] = variable;
    struct agent agent = agent_start(f, &args.spec, 0, -1);
    await_word(f, word);
    agent_kill(&agent);
    assert_int_equal(write(go_fd, "\n", 1), 1);
    await_silence(f);
    for (int round = 0; round < 2; round++) { /* reported until it is forgotten */
        launcher_open(f);
        launch_adopt(f->launcher, NULL);
        assert_int_equal(await(f, LAUNCH_EXITED, 7)->event.exit.exit_code, 33);
        assert_int_equal(f->seen_len, find_event(f, LAUNCH_ADOPTED, 7) ? 2 : 1);
        if (round == 0)
            launcher_shut(f);
    }
    assert_int_equal(launch_forget(f->launcher, 7, NULL), 0);
    launcher_shut(f);
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    assert_int_equal(f->seen_len, 0);
    close(go_fd);
}

static pid_t recorded_task(struct fixture *f, uint64_t uid)
{
    char path[256];
    struct shim_start start = {0};
    snprintf(path, sizeof path, "%s/tasks/%d/task", f->directory, (int)uid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &start, sizeof start, SHIM_START_OFFSET), sizeof start);
    close(fd);
    return start.task_pid;
}

/* False: the fence had passed before the agent was dead, so nothing is proven. */
static bool is_fenced_without_agent(struct fixture *f, uint64_t uid, uint64_t fence_ns)
{
    struct task_args args;
    script(f, &args, uid, "trap '' TERM; while :; do sleep 1000; done");
    uint64_t deadline = boottime_ns() + fence_ns;
    struct agent agent = agent_start(f, &args.spec, deadline, -1);
    agent_kill(&agent);
    bool proves = boottime_ns() < deadline;
    pid_t task = recorded_task(f, uid);
    while (proves && !process_gone(task)) /* nothing tells of the end of another's child */
        poll(NULL, 0, 5);
    assert_true(!proves || boottime_ns() >= deadline);
    launcher_open(f);
    launch_adopt(f->launcher, NULL);
    const struct seen *seen = await(f, LAUNCH_EXITED, uid);
    assert_true(seen->event.exit.fenced && seen->event.exit.signaled && !seen->event.exit.lost);
    return proves;
}

static void fence_kills_without_agent(void **state)
{
    struct fixture *f = *state;
    uint64_t uid = 7;
    for (uint64_t fence_ns = NS_PER_SECOND; !is_fenced_without_agent(f, uid, fence_ns); fence_ns *= 2, uid++)
        launcher_shut(f);
    struct task_args late; /* and nothing starts behind a fence that has passed */
    script(f, &late, 100, "echo never >$WORDS");
    spawn(f, &late.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 100);
    assert_true(seen->event.exit.fenced);
    assert_int_equal(seen->event.exit.started_ns, 0);
    assert_null(find_event(f, LAUNCH_STARTED, 100));
}

/* The first fence moves forward before it passes, and the task lives on behind it. False: that took too long.
 * */
static bool outlives_its_first_fence(struct fixture *f, uint64_t uid, uint64_t fence_ns)
{
    launch_set_fence(f->launcher, 0);
    spawn_script(f, uid, "exec sleep 1000");
    await(f, LAUNCH_STARTED, uid);
    uint64_t deadline = boottime_ns() + fence_ns;
    launch_set_fence(f->launcher, deadline); /* from none to one */
    launch_set_fence(f->launcher, boottime_ns() + 3600 * (uint64_t)NS_PER_SECOND);
    bool moved = boottime_ns() < deadline;
    PATIENT_UNTIL(&f->patience, boottime_ns() > deadline + 100 * (uint64_t)NS_PER_MS);
    assert_true(!moved || !find_event(f, LAUNCH_EXITED, uid));
    launch_set_fence(f->launcher, 1); /* backwards, into the past */
    assert_true(await(f, LAUNCH_EXITED, uid)->event.exit.fenced);
    return moved;
}

static void fence_moves(void **state)
{
    struct fixture *f = *state;
    uint64_t uid = 1;
    launcher_open(f);
    for (uint64_t fence_ns = 100 * NS_PER_MS; !outlives_its_first_fence(f, uid, fence_ns); fence_ns *= 2)
        uid++;
    launch_set_fence(f->launcher, 0);
    assert_int_equal(run_script(f, 100, "exit 0")->event.exit.exit_code, 0);
}

static void tether_holds_until_the_last(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    char word[64];
    script(f, &args, 7, "exec 3>$WORDS; ls -l /proc/self/fd | grep -c socket >&3; read line <$GO");
    char go[160], variable[192];
    snprintf(go, sizeof go, "%s/go", f->directory);
    assert_int_equal(mkfifo(go, 0600), 0);
    int go_fd = open(go, O_RDWR | O_CLOEXEC);
    snprintf(variable, sizeof variable, "GO=%s", go);
    args.env[1] = variable;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct agent agent = agent_start(f, &args.spec, 0, pair[1]);
    close(pair[1]);
    await_word(f, word);
    assert_string_equal(word, "0"); /* the task has no socket */
    agent_kill(&agent);
    struct pollfd fd = {pair[0], POLLIN, 0};
    assert_int_equal(poll(&fd, 1, 100), 0); /* the shim holds it */
    assert_int_equal(write(go_fd, "\n", 1), 1);
    assert_int_equal(poll(&fd, 1, PATIENCE_S * 1000), 1);
    char c;
    assert_int_equal(read(pair[0], &c, 1), 0);
    close(pair[0]);
    close(go_fd);
}

/* With the shim gone its task must not live on, nor what that one started, however far away. */
static void killed_shim_takes_all_along(void **state)
{
    struct fixture *f = *state;
    launcher_open(f);
    for (uint64_t uid = 1; uid <= 2; uid++) {
        struct task_args args;
        script(f, &args, uid,
               "setsid sh -c 'trap \"\" TERM HUP; echo $$ >$WORDS; while :; do sleep 1000; done' & "
               "echo $PPID >$WORDS; trap '' HUP TERM; while :; do sleep 1000; done");
        args.spec.set_user =
            uid == 2 && geteuid() == 0; /* a change of user clears the death signal set before it */
        args.spec.user_id = args.spec.group_id = 65534;
        spawn(f, &args.spec);
        pid_t first = await_pid(f), second = await_pid(f);
        pid_t task = await(f, LAUNCH_STARTED, uid)->event.pid;
        char link[64], target[512] = "";
        snprintf(link, sizeof link, "/proc/%d/exe", first);
        assert_true(readlink(link, target, sizeof target - 1) > 0);
        pid_t shim = strstr(target, "phalanx-shim") ? first : second;
        pid_t grandchild = shim == first ? second : first;
        assert_int_equal(kill(shim, SIGKILL), 0);
        const struct seen *seen = await(f, LAUNCH_EXITED, uid);
        assert_true(seen->event.exit.lost && seen->event.exit.signaled);
        assert_true(seen->event.exit.started_ns > 0);
        assert_true(process_gone(task));
        assert_true(process_gone(grandchild));
    }
    launcher_shut(f);
    launcher_open(f); /* the same is reported again */
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    assert_true(find_event(f, LAUNCH_EXITED, 1)->event.exit.lost);
}

static void killed_shim_while_no_agent(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 7, "echo $PPID >$WORDS; exec 3>$WORDS; setsid sleep 1000 & exec sleep 1000");
    struct agent agent = agent_start(f, &args.spec, 0, -1);
    pid_t shim = await_pid(f);
    agent_kill(&agent);
    assert_int_equal(kill(shim, SIGKILL), 0);
    launcher_open(f);
    launch_adopt(f->launcher, NULL);
    assert_true(await(f, LAUNCH_EXITED, 7)->event.exit.lost);
    await_silence(f); /* the orphan that held the FIFO is dead too */
}

/* Whether nobody has the FIFO of words open any more. */
static bool is_silent(struct fixture *f)
{
    char block[256];
    ssize_t got;
    while ((got = read(f->words_fd, block, sizeof block)) > 0)
        ;
    return got == 0;
}

enum { FORKING_TASKS = 12, FORKING_ROUNDS = 3 };

/* Shims killed while their tasks fork as fast as they can, far from their first process, with no agent there:
 * the next one hunts down processes that come, exec and go while it looks. All are dead when it says so. */
static void killed_shim_amid_forks(void **state)
{
    struct fixture *f = *state;
    static const char forking[] =
        "exec 3>$WORDS; "
        "setsid sh -c 'setsid sleep 1000 & while :; do /bin/true & /bin/true & wait %2 %3; done' & "
        "echo $PPID >&3; while :; do /bin/true & wait $!; done";
    for (uint64_t round = 0; round < FORKING_ROUNDS; round++) {
        struct task_args args[FORKING_TASKS];
        const struct launch_spec *specs[FORKING_TASKS];
        pid_t shims[FORKING_TASKS];
        for (uint64_t i = 0; i < FORKING_TASKS; i++) {
            script(f, &args[i], round * FORKING_TASKS + i + 1, forking);
            specs[i] = &args[i].spec;
        }
        struct agent agent = agents_start(f, specs, FORKING_TASKS, 0, -1);
        for (int i = 0; i < FORKING_TASKS; i++)
            shims[i] = await_pid(f);
        agent_kill(&agent);
        for (int i = 0; i < FORKING_TASKS; i++)
            assert_int_equal(kill(shims[i], SIGKILL), 0);
        launcher_open(f);
        launch_adopt(f->launcher, NULL);
        for (int i = 0; i < FORKING_TASKS; i++)
            assert_true(await(f, LAUNCH_EXITED, specs[i]->uid)->event.exit.lost);
        assert_true(is_silent(f));
        launcher_shut(f);
    }
}

/* More processes are left than the launcher has descriptors for. */
static void killed_shim_with_few_descriptors(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 7,
           "exec 3>$WORDS; i=0; while [ $i -lt 100 ]; do setsid sleep 1000 & i=$((i+1)); done; "
           "echo $PPID >&3; exec sleep 1000");
    struct agent agent = agent_start(f, &args.spec, 0, -1);
    pid_t shim = await_pid(f);
    agent_kill(&agent);
    assert_int_equal(kill(shim, SIGKILL), 0);
    launcher_open(f);
    struct rlimit before, few;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    int next = dup(0);
    few = before;
    few.rlim_cur = 32; /* the launcher has taken what it needs: some 20 */
    assert_true(next >= 0 && next < 20);
    close(next);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
    launch_adopt(f->launcher, NULL);
    bool lost = await(f, LAUNCH_EXITED, 7)->event.exit.lost;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_true(lost && is_silent(f));
}

/* A task file whose shim is long gone and whose pids belong to strangers now. */
static void reused_pid_is_not_touched(void **state)
{
    struct fixture *f = *state;
    launcher_open(f);
    run_script(f, 7, "exit 0");
    await_shim_gone(f, 7);
    launcher_shut(f);
    pid_t stranger = fork();
    if (stranger == 0) {
        setsid();
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        execl("/bin/sleep", "sleep", "1000", (char *)NULL);
        _exit(1);
    }
    char path[256];
    snprintf(path, sizeof path, "%s/tasks/7/task", f->directory);
    int fd = open(path, O_RDWR | O_CLOEXEC);
    struct shim_start start;
    struct shim_exit none = {0};
    assert_int_equal(pread(fd, &start, sizeof start, SHIM_START_OFFSET), sizeof start);
    start.shim_pid = start.task_pid = stranger;
    assert_int_equal(pwrite(fd, &start, sizeof start, SHIM_START_OFFSET), sizeof start);
    assert_int_equal(pwrite(fd, &none, sizeof none, SHIM_EXIT_OFFSET), sizeof none);
    close(fd);
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    assert_true(await(f, LAUNCH_EXITED, 7)->event.exit.lost);
    assert_int_equal(launch_stop(f->launcher, 7, 0, NULL), 0);
    assert_int_equal(waitpid(stranger, NULL, WNOHANG), 0); /* lives */
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

/* Files that no launcher wrote, or that it did not finish. */
static void broken_task_files(void **state)
{
    struct fixture *f = *state;
    launcher_open(f);
    run_script(f, 1, "exit 6");
    await_shim_gone(f, 1);
    launcher_shut(f);
    char path[256], whole_path[256];
    snprintf(whole_path, sizeof whole_path, "%s/tasks/1/task", f->directory);
    size_t len = 0;
    char *whole = slurp(whole_path, &len);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/tasks/%d", f->directory, 10 + i);
        assert_int_equal(mkdir(path, 0755), 0);
        if (i == 0)
            continue; /* an empty directory */
        snprintf(path, sizeof path, "%s/tasks/%d/task", f->directory, 10 + i);
        int fd = open(path, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
        size_t cut = i == 1   ? 0
                     : i == 2 ? 100
                     : i == 3 ? len - 1
                              : len; /* 4: a foreign uid; 5: no strings' end */
        assert_int_equal(write(fd, whole, cut), cut);
        if (i == 5)
            for (off_t at = SHIM_STRINGS_OFFSET; at < (off_t)len; at++)
                assert_int_equal(pwrite(fd, "x", 1, at), 1);
        close(fd);
    }
    free(whole);
    launcher_open(f);
    assert_int_equal(launch_adopt(f->launcher, NULL), 0);
    assert_int_equal(f->seen_len, 1);
    assert_int_equal(find_event(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 6);
    for (int i = 0; i < 6; i++) {
        snprintf(path, sizeof path, "%s/tasks/%d", f->directory, 10 + i);
        assert_int_equal(access(path, F_OK), -1);
    }
}

/* The exit status has its place on the disk before the task starts. */
static void full_disk_loses_output_only(void **state)
{
    struct fixture *f = *state;
    char state_dir[sizeof f->directory], filler[256];
    snprintf(state_dir, sizeof state_dir, "%.100s/small", f->directory);
    assert_int_equal(mkdir(state_dir, 0755), 0);
    if (geteuid() != 0 || mount("none", state_dir, "tmpfs", 0, "size=256k") < 0) {
        print_message("skipped: mounting a small file system needs root\n");
        skip();
    }
    char whole[sizeof f->directory];
    memcpy(whole, f->directory, sizeof whole);
    snprintf(f->directory, sizeof f->directory, "%s", state_dir);
    f->options.kept_attempts = -1;
    launcher_open(f);
    spawn_script(f, 1, "head -c 2000000 /dev/zero; exit 21");
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_int_equal(seen->event.exit.exit_code, 21);
    assert_true(seen->event.exit.log_dropped_bytes > 1000000);
    assert_non_null(strstr(seen->text, "could not be written"));
    snprintf(filler, sizeof filler, "%s/filler", state_dir);
    int fd = open(filler, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    char block[1024] = {0};
    while (write(fd, block, sizeof block) > 0)
        ;
    close(fd);
    struct task_args args;
    struct error error = {0};
    script(f, &args, 2, "exit 0");
    assert_int_equal(launch_spawn(f->launcher, &args.spec, &error), ERROR_NO_SPACE);
    assert_int_equal(unlink(filler), 0);
    await_shim_gone(f, 1);
    assert_int_equal(launch_forget(f->launcher, 1, NULL), 0);              /* its log was most of it */
    assert_int_equal(run_script(f, 2, "exit 0")->event.exit.exit_code, 0); /* goes on when space returns */
    launcher_shut(f);
    memcpy(f->directory, whole, sizeof whole);
    assert_int_equal(umount2(state_dir, MNT_DETACH), 0);
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, bare_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(running_task_is_adopted),
        CASE(stopped_before_its_exec),
        CASE(finished_meanwhile_is_collected),
        CASE(fence_kills_without_agent),
        CASE(fence_moves),
        CASE(tether_holds_until_the_last),
        CASE(killed_shim_takes_all_along),
        CASE(killed_shim_while_no_agent),
        CASE(killed_shim_amid_forks),
        CASE(killed_shim_with_few_descriptors),
        CASE(reused_pid_is_not_touched),
        CASE(broken_task_files),
        CASE(full_disk_loses_output_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
