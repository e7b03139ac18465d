/* How tasks end: stops with grace, leftovers, signals, limits. */
#include "host/launch/fixture.h"

static void stop_asks_first(void **state)
{
    struct fixture *f = *state;
    char word[64];
    spawn_script(f, 1,
                 "trap 'echo bye; exit 5' TERM; echo ready >$WORDS; while :; do sleep 1000 & wait $!; done");
    await_word(f, word);
    assert_int_equal(launch_stop(f->launcher, 1, 30 * NS_PER_SECOND, NULL), 0);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_false(seen->event.exit.signaled);
    assert_int_equal(seen->event.exit.exit_code, 5);
    assert_true(seen->event.exit.stopped);
    char *log = log_of(f, 1);
    assert_non_null(strstr(log, "bye\n")); /* the shell may add that its sleep was terminated */
    free(log);
}

/* The task ignores SIGTERM, and so does a grandchild in a session of its own. */
static void stop_insists_after_grace(void **state)
{
    struct fixture *f = *state;
    spawn_script(
        f, 1,
        "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ >$WORDS; while :; do sleep 1000; done' & "
        "while :; do sleep 1000; done");
    pid_t grandchild = await_pid(f);
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    assert_int_equal(launch_stop(f->launcher, 1, 200 * NS_PER_MS, NULL), 0);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    clock_gettime(CLOCK_MONOTONIC, &after);
    assert_true(seen->event.exit.signaled && seen->event.exit.stopped);
    assert_int_equal(seen->event.exit.signal, SIGKILL);
    assert_true(is_dead(grandchild));
    int64_t took_ms = (after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000;
    assert_true(took_ms >= 199);
}

static void stop_at_once_and_shortened(void **state)
{
    struct fixture *f = *state;
    char word[64];
    for (uint64_t uid = 1; uid <= 2; uid++) {
        spawn_script(f, uid, "trap '' TERM; echo ready >$WORDS; while :; do sleep 1000; done");
        await_word(f, word);
        if (uid == 2)
            assert_int_equal(launch_stop(f->launcher, uid, 1000 * NS_PER_SECOND, NULL), 0);
        assert_int_equal(launch_stop(f->launcher, uid, 0, NULL), 0);
        assert_int_equal(await(f, LAUNCH_EXITED, uid)->event.exit.signal, SIGKILL);
    }
}

/* A stop that follows the spawn at once is not lost and kills no shim. */
static void stop_right_after_spawn(void **state)
{
    struct fixture *f = *state;
    for (uint64_t uid = 1; uid <= 20; uid++) {
        spawn_script(f, uid, "exec sleep 1000");
        assert_int_equal(launch_stop(f->launcher, uid, uid % 2 ? 0 : 30 * NS_PER_SECOND, NULL), 0);
    }
    for (uint64_t uid = 1; uid <= 20; uid++) {
        const struct seen *seen = await(f, LAUNCH_EXITED, uid);
        assert_true(seen->event.exit.stopped && seen->event.exit.signaled && !seen->event.exit.lost);
        assert_int_equal(seen->event.exit.signal, uid % 2 ? SIGKILL : SIGTERM);
    }
}

static void suspended_task_can_be_stopped(void **state)
{
    struct fixture *f = *state;
    char word[64];
    spawn_script(f, 1, "trap 'exit 4' TERM; echo ready >$WORDS; while :; do sleep 1000 & wait $!; done");
    await_word(f, word);
    assert_int_equal(launch_signal(f->launcher, 1, SIGSTOP, NULL), 0);
    assert_int_equal(launch_stop(f->launcher, 1, 30 * NS_PER_SECOND, NULL), 0);
    assert_int_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 4);
}

/* Plain SIGTERM to the shim, as an operator or init sends: a stop with the spec's grace. */
static void shim_takes_sigterm_as_stop(void **state)
{
    struct fixture *f = *state;
    struct task_args args;
    script(f, &args, 1, "trap '' TERM; echo $PPID >$WORDS; while :; do sleep 1000; done");
    args.spec.grace_ns = 50 * NS_PER_MS;
    spawn(f, &args.spec);
    assert_int_equal(kill(await_pid(f), SIGTERM), 0);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_true(seen->event.exit.stopped && !seen->event.exit.lost);
    assert_int_equal(seen->event.exit.signal, SIGKILL);
}

static void signals_are_delivered(void **state)
{
    struct fixture *f = *state;
    char word[64];
    spawn_script(f, 1,
                 "trap 'echo usr1 >$WORDS' USR1; trap 'exit 9' USR2; echo ready >$WORDS;"
                 "while :; do sleep 1000 & wait $!; done");
    await_word(f, word);
    assert_int_equal(launch_signal(f->launcher, 1, 0, NULL), ERROR_INVALID);
    assert_int_equal(launch_signal(f->launcher, 1, SIGUSR1, NULL), 0);
    await_word(f, word);
    assert_string_equal(word, "usr1");
    assert_int_equal(launch_signal(f->launcher, 1, SIGUSR2, NULL), 0);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_int_equal(seen->event.exit.exit_code, 9);
    assert_false(seen->event.exit.stopped);
}

/* The first process ends well; a daemon of it, re-parented and in another session, does not survive it. */
static void leftovers_are_killed(void **state)
{
    struct fixture *f = *state;
    spawn_script(
        f, 1,
        "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >$WORDS; while :; do sleep 1000; done' &) ; exit 0");
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_int_equal(seen->event.exit.exit_code, 0);
    struct pollfd fd = {f->words_fd, POLLIN, 0};
    if (poll(&fd, 1, 0) == 1 && (fd.revents & POLLIN)) /* it may have died before its word */
        assert_true(is_dead(await_pid(f)));
    pid_t daemon = 0;
    spawn_script(f, 2,
                 "(setsid sh -c 'trap \"\" TERM HUP; echo $$ >$WORDS; while :; do sleep 1000; done' &) ; "
                 "exec sleep 1000");
    daemon = await_pid(f);
    assert_false(is_dead(daemon));
    assert_int_equal(launch_signal(f->launcher, 2, SIGTERM, NULL), 0);
    assert_int_equal(await(f, LAUNCH_EXITED, 2)->event.exit.signal, SIGTERM);
    assert_true(is_dead(daemon));
}

/* Three generations, each in a session of its own, all ignoring SIGTERM. */
static void deep_leftovers_are_killed(void **state)
{
    struct fixture *f = *state;
    spawn_script(f, 1,
                 "L='trap \"\" TERM HUP; echo $$ >$WORDS; while :; do sleep 1000; done';"
                 "setsid sh -c \"setsid sh -c 'setsid sh -c '\\''$L'\\'' & sleep 1000' & sleep 1000\" & exec "
                 "sleep 1000");
    pid_t deep = await_pid(f);
    assert_int_equal(launch_stop(f->launcher, 1, 0, NULL), 0);
    await(f, LAUNCH_EXITED, 1);
    assert_true(is_dead(deep));
}

static bool has_cgroup(struct fixture *f, const char *controller)
{
    const char *text = launcher_cgroup_text(f->launcher);
    if (strstr(text, "v2") || strstr(text, controller))
        return true;
    print_message("skipped: no writable %s cgroup here (%s)\n", controller, text);
    return false;
}

static void memory_limit_and_blame(void **state)
{
    struct fixture *f = *state;
    if (!has_cgroup(f, "memory"))
        skip();
    struct task_args args;
    script(f, &args, 1, "exec tail -n 1 </dev/zero");
    args.spec.memory_limit_bytes = 48 << 20;
    spawn(f, &args.spec);
    const struct seen *seen = await(f, LAUNCH_EXITED, 1);
    assert_true(seen->event.exit.oom && seen->event.exit.signaled);
    assert_int_equal(seen->event.exit.signal, SIGKILL);
    assert_non_null(strstr(seen->text, "out of memory"));
    assert_null(find_event(f, LAUNCH_NOTE, 1));
    script(f, &args, 2, "exit 3"); /* no blame where there was none */
    args.spec.memory_limit_bytes = 48 << 20;
    spawn(f, &args.spec);
    assert_false(await(f, LAUNCH_EXITED, 2)->event.exit.oom);
}

static void process_limit(void **state)
{
    struct fixture *f = *state;
    if (!has_cgroup(f, "pids"))
        skip();
    struct task_args args;
    script(f, &args, 1, "for i in 1 2 3 4 5 6 7 8 9; do sleep 1000 & done; echo all");
    args.spec.pids_limit = 4;
    spawn(f, &args.spec);
    assert_int_not_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 0);
}

static void cgroups_vanish_with_the_task(void **state)
{
    struct fixture *f = *state;
    if (!has_cgroup(f, "memory"))
        skip();
    struct task_args args;
    script(f, &args, 1, "cat /proc/self/cgroup; sleep 1000 & exit 0");
    args.spec.memory_limit_bytes = 64 << 20;
    args.spec.cpu_limit_milli = 500;
    args.spec.pids_limit = 100;
    spawn(f, &args.spec);
    await(f, LAUNCH_EXITED, 1);
    char *log = log_of(f, 1), *at = strstr(log, ":/phalanx/");
    assert_non_null(at);
    bool memory_v1 = strstr(launcher_cgroup_text(f->launcher), "v1") != NULL;
    char path[512];
    snprintf(path, sizeof path, "/sys/fs/cgroup%s%.*s", memory_v1 ? "/memory" : "",
             (int)strcspn(at + 1, "\n"), at + 1);
    assert_int_equal(access(path, F_OK), -1);
    *strrchr(path, '/') = 0;
    assert_int_equal(access(path, F_OK), 0); /* the path was right: its parent is there */
    free(log);
}

static void limits_without_cgroups_are_said(void **state)
{
    struct fixture *f = *state;
    launcher_shut(f);
    f->options.cgroups = LAUNCH_CGROUPS_NEVER;
    launcher_open(f);
    struct task_args args;
    script(f, &args, 1, "exit 0");
    args.spec.memory_limit_bytes = 64 << 20;
    spawn(f, &args.spec);
    assert_int_equal(await(f, LAUNCH_EXITED, 1)->event.exit.exit_code, 0);
    assert_non_null(find_event(f, LAUNCH_NOTE, 1));
}

int main(void)
{
#define CASE(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)
    const struct CMUnitTest tests[] = {
        CASE(stop_asks_first),
        CASE(stop_insists_after_grace),
        CASE(stop_at_once_and_shortened),
        CASE(stop_right_after_spawn),
        CASE(suspended_task_can_be_stopped),
        CASE(shim_takes_sigterm_as_stop),
        CASE(signals_are_delivered),
        CASE(leftovers_are_killed),
        CASE(deep_leftovers_are_killed),
        CASE(memory_limit_and_blame),
        CASE(process_limit),
        CASE(cgroups_vanish_with_the_task),
        CASE(limits_without_cgroups_are_said),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
