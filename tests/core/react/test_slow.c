/* Slow ranks: faults of their machines after three windows, what a job makes of it, and the way back. */
#include "core/job/story.h"

#define NAMED(name, annotation)                                                                              \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: " name ", annotations: {" annotation "}}\n"                                            \
    "spec: {failurePolicy: {maxRestarts: 5}, replicatedJobs: [" RJOB("w", 1, "", 4, "") "]}\n"
#define POLICY(policy) NAMED("a", "phalanx.dev/sub-health: " policy)

/* Rank `slow` needs twice as long; -1: none. */
static void windows(struct harness *h, const struct jobset *jobset, int slow, int count)
{
    for (int i = 0; i < count; i++) {
        uint32_t own_us[4] = {100000, 101000, 99000, 100000};
        if (slow >= 0)
            own_us[slow] *= 2;
        struct event event = {.kind = EVENT_PACE};
        event.pace = (struct pace_event){jobset->uid, jobset->attempt, 30 * NS_PER_SECOND, own_us, 4};
        harness_wait(h, 30 * NS_PER_SECOND);
        harness_step(h, &event);
        core_check_invariants(h->core);
    }
}

static const struct fault *fault_at(const struct harness *h, machine_id machine)
{
    return fault_of_machine(core_health(h->core), core_cluster(h->core)->machines[machine].name);
}

static struct jobset *begin(struct harness *h, int machines, const char *yaml)
{
    harness_init(h, machines, 1, 0);
    struct jobset *jobset = harness_create(h, yaml);
    harness_run_all(h);
    return jobset;
}

static void join_all(struct harness *h)
{
    for (int i = 0; i < 4; i++) {
        char host[16];
        snprintf(host, sizeof host, "a-w-0-%d", i);
        report_task(h, host, (struct task_report){.kind = REPORT_JOINED});
    }
}

static void save_all(struct harness *h, int64_t step)
{
    for (int i = 0; i < 4; i++) {
        char host[16];
        snprintf(host, sizeof host, "a-w-0-%d", i);
        report_task(h, host, (struct task_report){.kind = REPORT_SHARD_SAVED, .step = step});
    }
}

static void a_slow_machine_is_named_and_recovers(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 5, POLICY("ignore"));
    machine_id machine = harness_task(&h, "a-w-0-2")->machine;
    windows(&h, jobset, -1, 5);
    windows(&h, jobset, 2, 2);
    assert_int_equal(fault_count(core_health(h.core)), 0);
    windows(&h, jobset, 2, 1);
    const struct fault *fault = fault_at(&h, machine);
    assert_true(fault && str_is(fault->code, "pace/slow") && fault->level == LEVEL_SUB_HEALTH);
    assert_non_null(strstr(fault->evidence.data, "rank 2 of default/a works 198.000 ms a step, 1.97 times"));
    assert_true(str_is(fault->jobs[0], "default/a"));
    assert_int_equal(core_cluster(h.core)->machines[machine].isolation, ISOLATION_SUSPECT);
    assert_int_equal(notes(&h, "SlowMachine"), 1);
    assert_int_equal(jobset->attempt, 0);
    assert_int_equal(harness_task(&h, "a-w-0-2")->machine, machine);
    windows(&h, jobset, -1, 3);
    assert_null(fault_at(&h, machine));
    assert_int_equal(core_cluster(h.core)->machines[machine].isolation, ISOLATION_HEALTHY);
    harness_done(&h);
}

static void force_exit_moves_at_once(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 5, POLICY("forceExit"));
    machine_id machine = harness_task(&h, "a-w-0-2")->machine;
    windows(&h, jobset, 2, 3);
    assert_int_equal(notes(&h, "LeftSubHealthy"), 1);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 1);
    assert_int_not_equal(harness_task(&h, "a-w-0-2")->machine, machine);
    assert_non_null(strstr(jobset->history.records[0].detail, "moved away from"));
    harness_done(&h);
}

/* Told, saved, moved; without a checkpoint the grace ends it. */
static void grace_exit_waits_for_a_checkpoint(void **state)
{
    for (int saves = 0; saves < 2; saves++) {
        struct harness h;
        struct jobset *jobset = begin(&h, 5, POLICY("graceExit"));
        machine_id machine = harness_task(&h, "a-w-0-2")->machine;
        join_all(&h);
        windows(&h, jobset, 2, 3);
        size_t told = 0;
        for (size_t i = 0; i < h.effects.list.len; i++)
            told += h.effects.list.items[i].kind == EFFECT_TASK_NOTICE;
        assert_int_equal(told, 4); /* all, so that they can agree on a step */
        assert_true(jobset->recovery.move.state != MOVE_NONE && jobset->attempt == 0);
        harness_wait(&h, NS_PER_SECOND);
        if (saves)
            save_all(&h, 50);
        else
            harness_wait(&h, 31 * NS_PER_SECOND);
        assert_int_equal(jobset->recovery.move.state, MOVE_NONE);
        harness_run_all(&h);
        assert_int_equal(jobset->attempt, 1);
        assert_int_not_equal(harness_task(&h, "a-w-0-2")->machine, machine);
        harness_done(&h);
    }
}

static void hot_switch_never_without_room_or_save(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 4, POLICY("hotSwitch"));
    join_all(&h);
    windows(&h, jobset, 1, 3);
    assert_int_equal(notes(&h, "HotSwitchImpossible"), 1);
    assert_int_equal(jobset->attempt, 0);
    harness_done(&h);
    jobset = begin(&h, 5, POLICY("hotSwitch"));
    windows(&h, jobset, 1, 3); /* nobody can save */
    assert_int_equal(notes(&h, "HotSwitchImpossible"), 1);
    harness_done(&h);
    jobset = begin(&h, 5, POLICY("hotSwitch"));
    join_all(&h);
    windows(&h, jobset, 1, 3);
    harness_wait(&h, 901 * NS_PER_SECOND);
    assert_int_equal(notes(&h, "HotSwitchGivenUp"), 1);
    assert_int_equal(jobset->attempt, 0);
    harness_done(&h);
    jobset = begin(&h, 5, POLICY("hotSwitch"));
    machine_id machine = harness_task(&h, "a-w-0-1")->machine;
    join_all(&h);
    windows(&h, jobset, 1, 3);
    harness_wait(&h, NS_PER_SECOND);
    save_all(&h, 50);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal((int)jobset->history.records[0].step_resumed_from, 50);
    assert_int_not_equal(harness_task(&h, "a-w-0-1")->machine, machine);
    harness_done(&h);
}

/* Any fault that makes a machine suspect asks the policy of who works there. */
static void other_sub_health_asks_too(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 5, POLICY("forceExit"));
    machine_id machine = harness_task(&h, "a-w-0-0")->machine;
    struct signal signal = {.code = STR("cpu/thermal"),
                            .assertion = SIGNAL_OCCUR,
                            .severity = SEVERITY_MINOR,
                            .chip = -1,
                            .first_ns = 1,
                            .last_ns = 1,
                            .count = 1};
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(h.core)->machines[machine].name;
    event.reports.reports = (struct reports){.number = 1, .signals = &signal, .signal_count = 1};
    harness_step(&h, &event);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 1);
    assert_int_not_equal(harness_task(&h, "a-w-0-0")->machine, machine);
    harness_done(&h);
}

static void what_is_not_of_this_attempt_is_ignored(void **state)
{
    struct harness h;
    struct jobset *jobset = begin(&h, 5, POLICY("forceExit"));
    uint32_t own_us[5] = {1, 1, 1, 1, 1000};
    const struct pace_event odd[] = {{jobset->uid + 1, 0, NS_PER_SECOND, own_us, 4},
                                     {jobset->uid, 1, NS_PER_SECOND, own_us, 4},
                                     {jobset->uid, 0, NS_PER_SECOND, own_us, 5},
                                     {jobset->uid, 0, -1, own_us, 0},
                                     {0, -1, 0, NULL, 0}};
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        struct event event = {.kind = EVENT_PACE, .pace = odd[i]};
        harness_step(&h, &event);
    }
    assert_null(jobset->pace.ranks);
    harness_done(&h);
}

static void annotations_are_checked(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", POLICY("sometimes")), 422);
    assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/sub-health]"));
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", NAMED("a", "phalanx.dev/step-pattern: \"step (\"")),
                     422);
    assert_non_null(strstr(h.last_message, "metadata.annotations[phalanx.dev/step-pattern]"));
    assert_int_equal(harness_write(&h, WRITE_CREATE, "", NAMED("a", "phalanx.dev/work-pattern: \"x{900}\"")),
                     422);
    assert_int_equal(
        harness_write(&h, WRITE_CREATE, "", NAMED("a", "phalanx.dev/step-pattern: \"^step [0-9]+\"")), 201);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slow_machine_is_named_and_recovers),
        cmocka_unit_test(force_exit_moves_at_once),
        cmocka_unit_test(grace_exit_waits_for_a_checkpoint),
        cmocka_unit_test(hot_switch_never_without_room_or_save),
        cmocka_unit_test(other_sub_health_asks_too),
        cmocka_unit_test(what_is_not_of_this_attempt_is_ignored),
        cmocka_unit_test(annotations_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
