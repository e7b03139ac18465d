/* Schedule, costs, children, settings, external checks: what holds for all probes. */
#include "fixture.h"

#include <dirent.h>
#include <sys/wait.h>
#include <uv.h>

#include "host/probes/internal.h"

static struct probes_standing standing_of(struct fixture *f, const char *name)
{
    struct probes_standing standing;
    for (size_t i = 0; i < probes_count(); i++) {
        probes_standing(f->probes, i, &standing);
        if (strcmp(standing.name, name) == 0)
            return standing;
    }
    fail_msg("unknown probe", name);
    return standing;
}

/* --- settings ------------------------------------------------------------------------------------- */

static void settings_are_checked(void **state)
{
    struct fixture *f = *state;
    static const char *const wrong[][2] = {
        {"probes: {bogus: {}}", "unknown probe \"bogus\""},
        {"probes: {edac: {bogus: 1}}", "unknown setting \"bogus\""},
        {"probes: {edac: {period: soon}}", "a duration"},
        {"probes: {edac: {enabled: 1}}", "true or false"},
        {"probes: {edac: {correctedPerHour: many}}", "an integer"},
        {"probes: {thermal: {maxCelsius: 900}}", "0 to 200"},
        {"probes: 4", "an object"},
        {"bogus: 4", "unknown setting"},
        {"manifest: {bogus: 4}", "unknown setting"},
        {"manifest: {pci: [{width: 4}]}", "address or vendor"},
        {"checks: [{name: A, command: [a]}]", "a name of small letters"},
        {"checks: [{name: a}]", "a list of words"},
        {"checks: [{name: a, command: [a]}, {name: a, command: [a]}]", "two checks"},
        {"probes: {infiniband: {countersPerHour: {bogus: 1}}}", "not a counter"},
        {"probes: {kmsg: {userspace: 7}}", "true or false"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct error error = {0};
        assert_null(probes_with(f, wrong[i][0], NULL, &error));
        if (!strstr(error.text, wrong[i][1]))
            fail_msg("%s: %s", wrong[i][0], error.text);
    }
    struct error error = {0};
    assert_null(probes_with(f, NULL, "edac,bogus", &error));
    assert_non_null(strstr(error.text, "bogus"));
    begin(f, NULL, "probes: {edac: {enabled: false, period: 5}, pcie: {period: 7m, cost: 5ms}}");
    assert_false(standing_of(f, "edac").enabled);
    assert_int_equal(standing_of(f, "pcie").period_ns, 420 * NS_PER_SECOND);
    assert_int_equal(standing_of(f, "pcie").cost_max_ns, 5 * NS_PER_MS);
    assert_false(standing_of(f, "external").enabled); /* there is none */
}

/* --- schedule and cost ---------------------------------------------------------------------------- */

static void periods(void **state)
{
    struct fixture *f = *state;
    put(f, "/proc/sys/fs/file-nr", "1\t0\t100\n");
    begin(f, "files,memory", NULL);
    assert_int_equal(probes_next_ns(f->probes), 0);
    for (f->now_ns = 0; f->now_ns < 60 * NS_PER_SECOND; f->now_ns = probes_next_ns(f->probes))
        settle(f);
    assert_int_equal(standing_of(f, "files").runs, 2);
    assert_int_equal(standing_of(f, "memory").runs, 12);
}

static int64_t dear_cost(void *context)
{
    return ((struct fixture *)context)->cost_ns += 15 * NS_PER_MS; /* each look at it is 15 ms later */
}

static void too_costly(void **state)
{
    struct fixture *f = *state;
    struct error error;
    struct probes_options options = {
        .root = f->root, .only = "files,memory", .wall_ns = fixture_wall, .cost_ns = dear_cost, .context = f};
    put(f, "/proc/sys/fs/file-nr", "1\t0\t100\n");
    f->probes = probes_new(&options, &error);
    settle(f);
    expect_none(f); /* 15 ms are allowed */
    probes_free(f->probes);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc_list documents = {0};
    CHECK(yaml_parse_all(&arena, STR("probes: {files: {cost: 10ms}}"), &documents, NULL) == 0);
    options.settings = documents.items[0];
    f->probes = probes_new(&options, &error);
    settle(f);
    const struct kept *kept = expect_one(f, SIGNAL_ONCE, "os/probe-cost", "probe/files");
    assert_non_null(strstr(kept->evidence, "15.0 ms"));
    assert_true(standing_of(f, "files").off);
    put(f, "/proc/sys/fs/file-nr", "99\t0\t100\n");
    look_after(f, 599);
    expect_none(f);
    look_after(f, 1);
    expect(f, 0, SIGNAL_OCCUR, "os/files", "");
    expect(f, 1, SIGNAL_ONCE, "os/probe-cost", "probe/files");
}

/* --- children ------------------------------------------------------------------------------------- */

static void children_have_no_files_of_ours(void **state)
{
    struct fixture *f = *state;
    char name[160];
    int ends[2];
    snprintf(name, sizeof name, "%s/fds", f->root);
    assert_int_equal(pipe(ends), 0); /* not close-on-exec: a tether is not either */
    char settings[512];
    snprintf(settings, sizeof settings,
             "checks: [{name: fds, command: [sh, -c, 'ls /proc/$$/fd > %s; sleep 100']}]", name);
    begin(f, "external,processes", settings);
    probes_hurry(f->probes);
    probes_round(f->probes, 0, keep, f);
    close(ends[1]);
    struct pollfd ended = {ends[0], POLLIN, 0};
    assert_int_equal(poll(&ended, 1, 60000), 1); /* nobody else has it */
    char byte;
    assert_int_equal(read(ends[0], &byte, 1), 0);
    close(ends[0]);
    vec_clear(&f->kept);
    advance(f, 11); /* and the sleeper is killed, with what it started */
    expect_one(f, SIGNAL_OCCUR, "check/fds", "");
}

static void answers_wake_the_loop(void **state)
{
    struct fixture *f = *state;
    begin(f, "edac", NULL);
    probes_round(f->probes, 0, keep, f);
    assert_true(probes_busy(f->probes));
    while (probes_busy(f->probes)) {
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        probes_round(f->probes, 0, keep, f);
    }
    struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
    assert_int_equal(poll(&ready, 1, 0), 0); /* and nothing is left that would make it spin */
    assert_int_equal(standing_of(f, "edac").runs, 1);
}

struct turn {
    struct fixture *f;
    uv_poll_t poll;
    uv_timer_t deadline;
    bool late;
};
static void on_ready(uv_poll_t *poll, int status, int events)
{
    struct turn *turn = poll->data;
    (void)status;
    (void)events;
    probes_round(turn->f->probes, turn->f->now_ns, keep, turn->f);
    if (!probes_busy(turn->f->probes))
        uv_stop(poll->loop);
}
static void on_deadline(uv_timer_t *timer)
{
    ((struct turn *)timer->data)->late = true;
    uv_stop(timer->loop);
}

static void in_a_loop_of_libuv(void **state)
{
    struct fixture *f = *state;
    uv_loop_t loop;
    struct turn turn = {.f = f};
    begin(f, "edac,pcie,thermal,disk,processes", NULL);
    uv_loop_init(&loop);
    uv_poll_init(&loop, &turn.poll, probes_fd(f->probes));
    uv_timer_init(&loop, &turn.deadline);
    turn.poll.data = turn.deadline.data = &turn;
    uv_timer_start(&turn.deadline, on_deadline, 60000, 0);
    probes_round(f->probes, 0, keep, f);
    uv_poll_start(&turn.poll, UV_READABLE, on_ready);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_false(turn.late);
    assert_int_equal(standing_of(f, "pcie").runs, 1);
    uv_close((uv_handle_t *)&turn.poll, NULL);
    uv_close((uv_handle_t *)&turn.deadline, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
}

/* A machine that was stopped for a minute: what was at work then is not late. */
static void standing_still(void **state)
{
    struct fixture *f = *state;
    begin(f, "external", "checks: [{name: a, command: [sleep, '1000'], timeout: 10s}]");
    f->now_ns = NS_PER_SECOND;
    probes_round(f->probes, f->now_ns, keep, f);
    advance(f, 5);
    f->now_ns += 60 * NS_PER_SECOND;
    probes_round(f->probes, f->now_ns, keep, f);
    advance(f, 3);
    expect_none(f);
    advance(f, 3);
    expect_one(f, SIGNAL_OCCUR, "check/a", "");
}

/* Somebody else reaps all children of the process: what was said whole counts. */
static void reaped_by_others(void **state)
{
    struct fixture *f = *state;
    put(f, "/sys/devices/system/edac/mc/mc0/ue_count", "0\n");
    begin(f, "edac", NULL);
    look_after(f, 0);
    put(f, "/sys/devices/system/edac/mc/mc0/ue_count", "1\n");
    probes_hurry(f->probes);
    probes_round(f->probes, ++f->now_ns, keep, f);
    assert_true(waitpid(-1, NULL, 0) > 0);
    settle(f);
    expect_one(f, SIGNAL_ONCE, "edac/ue", "dimm/mc0");
    assert_int_equal(standing_of(f, "edac").hung, 0);
}

static size_t open_files(void)
{
    size_t count = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

static void nothing_is_left(void **state)
{
    struct fixture *f = *state;
    size_t before = open_files();
    begin(f, NULL, "checks: [{name: a, command: [sleep, '100']}, {name: b, command: ['true']}]");
    probes_round(f->probes, 0, keep, f); /* and ended with all of its children at work */
    probes_free(f->probes);
    f->probes = NULL;
    assert_int_equal(open_files(), before);
    assert_true(waitpid(-1, NULL, WNOHANG) < 0 && errno == ECHILD);
}

/* --- external checks ------------------------------------------------------------------------------ */

static void external_checks(void **state)
{
    struct fixture *f = *state;
    char settings[1024];
    put(f, "/rc", "0");
    snprintf(settings, sizeof settings,
             "checks:\n- {name: rack-door, command: [sh, -c, 'echo door; echo more; exit $(cat %s/rc)'], "
             "period: 10s}\n",
             f->root);
    begin(f, "external", settings);
    look_after(f, 0);
    expect_none(f);
    put(f, "/rc", "1");
    look_after(f, 10);
    const struct kept *kept = expect_one(f, SIGNAL_OCCUR, "check/rack-door", "");
    assert_int_equal(kept->severity, SEVERITY_MINOR);
    assert_string_equal(kept->evidence, "door more");
    look_after(f, 10);
    expect_none(f);
    put(f, "/rc", "2"); /* worse: told again */
    look_after(f, 10);
    assert_int_equal(expect_one(f, SIGNAL_OCCUR, "check/rack-door", "")->severity, SEVERITY_CRITICAL);
    put(f, "/rc", "3"); /* unknown: nothing is known */
    look_after(f, 10);
    expect_none(f);
    put(f, "/rc", "1"); /* better, and not well */
    look_after(f, 10);
    assert_int_equal(f->kept.len, 2);
    expect(f, 0, SIGNAL_RECOVER, "check/rack-door", "");
    expect(f, 1, SIGNAL_OCCUR, "check/rack-door", "");
    put(f, "/rc", "0");
    look_after(f, 10);
    expect_one(f, SIGNAL_RECOVER, "check/rack-door", "");
    put(f, "/rc", "77");
    look_after(f, 10);
    assert_int_equal(expect_one(f, SIGNAL_OCCUR, "check/rack-door", "")->severity, SEVERITY_NOTICE);
}

static void external_checks_that_fail_to_run(void **state)
{
    struct fixture *f = *state;
    begin(f, "external",
          "checks:\n- {name: absent, command: [/no/such/program]}\n"
          "- {name: slow, command: [sh, -c, 'sleep 1000 & sleep 1000'], timeout: 5s}\n"
          "- {name: killed, command: [sh, -c, 'kill -9 $$']}\n");
    probes_hurry(f->probes);
    probes_round(f->probes, 0, keep, f);
    while (f->kept.len < 2) {
        struct pollfd ready = {probes_fd(f->probes), POLLIN, 0};
        assert_int_equal(poll(&ready, 1, 60000), 1);
        probes_round(f->probes, 0, keep, f);
    }
    advance(f, 5);
    assert_int_equal(f->kept.len, 3);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(f->kept.items[i].severity, SEVERITY_NOTICE);
    expect(f, 2, SIGNAL_OCCUR, "check/slow", "");
    assert_string_equal(f->kept.items[2].evidence, "no answer in time");
}

/* --- what lasts ----------------------------------------------------------------------------------- */

static void count_condition(void *context, const struct signal *signal)
{
    assert_true(str_is(signal->code, "os/files"));
    assert_int_equal(signal->first_ns, TEST_WALL_NS + 30 * NS_PER_SECOND);
    ++*(int *)context;
}

static void conditions_that_last(void **state)
{
    struct fixture *f = *state;
    int count = 0;
    put(f, "/proc/sys/fs/file-nr", "1\t0\t100\n");
    begin(f, "files", NULL);
    look_after(f, 0);
    probes_conditions(f->probes, count_condition, &count);
    assert_int_equal(count, 0);
    put(f, "/proc/sys/fs/file-nr", "99\t0\t100\n");
    look_after(f, 30);
    look_after(f, 30);
    probes_conditions(f->probes, count_condition, &count);
    assert_int_equal(count, 1);
    assert_string_equal(probes_speaking(f->probes), "files");
    assert_int_equal(standing_of(f, "files").conditions, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(settings_are_checked),
        CASE(periods),
        CASE(too_costly),
        CASE(children_have_no_files_of_ours),
        CASE(answers_wake_the_loop),
        CASE(in_a_loop_of_libuv),
        CASE(reaped_by_others),
        CASE(standing_still),
        CASE(nothing_is_left),
        CASE(external_checks),
        CASE(external_checks_that_fail_to_run),
        CASE(conditions_that_last),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
