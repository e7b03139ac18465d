/* Steps, rates, and what each restart cost. */
#include "core/job/story.h"

#define SET JOBSET("a", "failurePolicy: {maxRestarts: 20}, ", RJOB("x", 1, "", 2, ""))

static void records(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    for (int i = 0; i < 2; i++)
        report_task(&h, i ? "a-x-0-1" : "a-x-0-0", (struct task_report){.kind = REPORT_JOINED});
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_STARTING], 2);
    progress_to(&h, jobset, 1);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 2);
    harness_wait(&h, 2 * NS_PER_SECOND);
    progress_to(&h, jobset, 11);
    assert_int_equal((int)progress_rate_milli(&jobset->progress), 5000);
    struct task *task = harness_task(&h, "a-x-0-1");
    struct task_report report = {.kind = REPORT_EXITED,
                                 .task = task->uid,
                                 .exit_code = -1,
                                 .signal = 9,
                                 .oom = true,
                                 .finished_ns = h.now_ns - NS_PER_SECOND};
    harness_told(&h, task->uid)->ended = true;
    harness_report(&h, &report, task->machine);
    const struct restart_record *record = &jobset->history.records[0];
    assert_int_equal(record->attempt, 1);
    assert_string_equal(record->cause, "OutOfMemory");
    assert_true(record->fault_ns == h.now_ns);
    assert_true(record->evidence_ns == h.now_ns - NS_PER_SECOND);
    assert_int_equal((int)record->step_at_fault, 11);
    assert_int_equal((int)record->step_resumed_from, -1);
    assert_true(strstr(record->detail, "out of memory") != NULL);
    assert_true(record->started_ns == 0);
    harness_wait(&h, NS_PER_SECOND);
    harness_run_all(&h);
    assert_true(record->started_ns == h.now_ns);
    assert_true(record->stepped_ns == 0);
    harness_wait(&h, NS_PER_SECOND);
    struct event old = {.kind = EVENT_PROGRESS,
                        .progress = {.jobset = jobset->uid, .attempt = 0, .step = 100}};
    harness_step(&h, &old); /* a step of the old attempt is no step */
    assert_true(record->stepped_ns == 0);
    progress_to(&h, jobset, 1);
    assert_true(record->stepped_ns == h.now_ns);
    assert_int_equal((int)jobset->progress.step, 1);
    harness_done(&h);
}

/* The account that users see moves with the JobSet's changes alone; it is exact when nothing is held. */
static void the_account_as_of_the_last_change(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    progress_to(&h, jobset, 1);
    struct ledger_account before = jobset->usage.shown;
    assert_true(jobset->usage.shown_ns == h.now_ns);
    harness_wait(&h, 5 * NS_PER_SECOND);
    assert_memory_equal(&before, &jobset->usage.shown, sizeof before);
    harness_check_replay(&h);
    progress_to(&h, jobset, 2);
    assert_true(jobset->usage.shown.chip_us[OWNER_UNKEPT] - before.chip_us[OWNER_UNKEPT] ==
                2 * 5 * NS_PER_SECOND / NS_PER_US);
    harness_wait(&h, NS_PER_SECOND);
    exits(&h, "a-x-0-0", 0);
    exits(&h, "a-x-0-1", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_wait(&h, NS_PER_SECOND);
    struct ledger_account now = jobset_account(jobset, h.now_ns);
    assert_memory_equal(now.chip_us, jobset->usage.shown.chip_us, sizeof now.chip_us);
    assert_true(now.chip_us[OWNER_KEPT] > 0);
    harness_done(&h);
}

static void the_newest_are_kept(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    for (int i = 0; i < RESTART_RECORDS_MAX + 3; i++) {
        harness_run_all(&h);
        exits(&h, "a-x-0-0", 1);
        harness_wait(&h, 5 * NS_PER_SECOND);
    }
    assert_int_equal((int)jobset->history.record_count, RESTART_RECORDS_MAX + 3);
    assert_int_equal(jobset->history.records[2].attempt, RESTART_RECORDS_MAX + 3);
    assert_int_equal(jobset->history.records[3].attempt, 4);
    harness_done(&h);
}

static void causes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_string_equal(jobset->history.records[0].cause, "TaskFailed");
    harness_run_all(&h);
    struct task *task = harness_task(&h, "a-x-0-0");
    harness_lose(&h, core_cluster(h.core)->machines[task->machine].name.data);
    assert_string_equal(jobset->history.records[1].cause, "MachineLost");
    report_task(&h, "a-x-0-0",
                (struct task_report){.kind = REPORT_START_FAILED, .message = STR("no such file")});
    assert_string_equal(jobset->history.records[2].cause, "StartFailed");
    assert_true(strstr(jobset->history.records[2].detail, "no such file") != NULL);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(records),
        cmocka_unit_test(the_account_as_of_the_last_change),
        cmocka_unit_test(the_newest_are_kept),
        cmocka_unit_test(causes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
