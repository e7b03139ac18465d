/* Effects of a failed Job on its JobSet: rules, restarts, their limits and their words. */
#include "core/job/story.h"

#define ONE RJOB("x", 1, "", 2, "")
#define TWO RJOB("x", 2, "", 1, "") "," RJOB("z", 1, "", 1, "")

static void without_policy(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", ONE));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 2);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_condition(jobset, CONDITION_FAILED, true, "FailedJobs",
                     "jobset failed due to one or more job failures (first failed job: a-x-0)");
    assert_note(&h, true, "FailedJobs",
                "jobset failed due to one or more job failures (first failed job: a-x-0)");
    assert_no_condition(jobset, CONDITION_RESTARTING);
    harness_run_all(&h);
    assert_job_failed(&h, "a-x-0", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    assert_int_equal((int)idle_chips(&h), 8);
    harness_done(&h);
}

static void default_rule_restarts(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", ONE));
    harness_run_all(&h);
    obj_id old = job_of(&h, "a-x-0")->uid;
    exits(&h, "a-x-0-1", 2);
    const char *text = "applying RestartJobSet failure policy action (first failed job: a-x-0)";
    assert_condition(jobset, CONDITION_RESTARTING, true, "DefaultFailurePolicy", text);
    assert_note(&h, true, "DefaultFailurePolicy", text);
    assert_note(&h, true, "RestartJobSetFailurePolicyAction", text);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->restarts_counted, 1);
    assert_true(job_of(&h, "a-x-0")->uid == old); /* it is terminating */
    harness_run_all(&h);
    assert_true(job_of(&h, "a-x-0")->uid != old);
    assert_int_equal(job_of(&h, "a-x-0")->attempt, 1);
    assert_condition(jobset, CONDITION_RESTARTING, false, "JobsReady", "all jobs are ready");
    assert_note(&h, false, "JobsReady", "all jobs are ready");
    exits(&h, "a-x-0-0", 2);
    assert_condition(jobset, CONDITION_FAILED, true, "ReachedMaxRestarts",
                     "jobset failed due to reaching max number of restarts (first failed job: a-x-0)");
    assert_int_equal(notes(&h, "RestartJobSetFailurePolicyAction"), 1);
    assert_int_equal(jobset->restarts, 1);
    harness_done(&h);
}

static void fail_while_restarting(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", ONE));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 2);
    report_task(&h, "a-x-0-1",
                (struct task_report){.kind = REPORT_START_FAILED, .message = STR("no such file")});
    assert_string_equal(jobset->history.records[0].cause, "TaskFailed");
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_condition(jobset, CONDITION_RESTARTING, false, "JobSetFailed", "jobset failed");
    harness_done(&h);
}

static void first_matching_rule_wins(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h,
        JOBSET("a",
               "failurePolicy: {maxRestarts: 5, rules: ["
               "{name: onZ, action: FailJobSet, targetReplicatedJobs: [z]},"
               "{name: deadline, action: FailJobSet, onJobFailureReasons: [DeadlineExceeded]},"
               "{name: pattern, action: FailJobSet, onJobFailureMessagePatterns: ['[bad', 'exit code 9 m']},"
               "{name: others, action: RestartJobSetAndIgnoreMaxRestarts,"
               " onJobFailureMessagePatterns: ['specified back.ff']}]}, ",
               TWO));
    harness_run_all(&h);
    exits(&h, "a-x-1-0", 2);
    const char *text = "applying RestartJobSet failure policy action (first failed job: a-x-1)";
    assert_condition(jobset, CONDITION_RESTARTING, true, "FailurePolicy_others", text);
    assert_note(&h, true, "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
                "applying RestartJobSetAndIgnoreMaxRestarts failure policy action (first failed job: a-x-1)");
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->restarts_counted, 0);
    harness_run_all(&h);
    exits(&h, "a-z-0-0", 2);
    assert_condition(jobset, CONDITION_FAILED, true, "FailJobSetFailurePolicyAction",
                     "applying FailJobSet failure policy action (first failed job: a-z-0)");
    assert_note(&h, true, "FailJobSetFailurePolicyAction",
                "applying FailJobSet failure policy action (first failed job: a-z-0)");
    harness_done(&h);
}

static void ignored_restarts_have_no_limit(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a",
                                                      "failurePolicy: {maxRestarts: 0, rules: [{name: r, "
                                                      "action: RestartJobSetAndIgnoreMaxRestarts}]}, ",
                                                      ONE));
    for (int i = 0; i < 20; i++) {
        harness_run_all(&h);
        exits(&h, "a-x-0-0", 1);
        harness_wait(&h, 5 * NS_PER_SECOND);
    }
    assert_int_equal(jobset->restarts, 20);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    assert_int_equal((int)jobset->history.record_count, 20);
    harness_done(&h);
}

/* A JobSet that fails as soon as it starts, and may do so for ever, does not keep the controller busy. */
static void crash_loops_wait(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a",
                                                      "failurePolicy: {maxRestarts: 0, rules: [{name: r, "
                                                      "action: RestartJobSetAndIgnoreMaxRestarts}]}, ",
                                                      RJOB("x", 1, "", 2, "activeDeadlineSeconds: 0, ")));
    assert_int_equal(jobset->restarts, RESTART_RECORDS_MAX);
    assert_note(&h, true, "CrashLoopBackOff",
                "16 restarts in less than 60 s: the next attempt begins in 60 s");
    assert_null(job_of(&h, "a-x-0"));
    assert_true(core_deadline(h.core) == h.now_ns + 60 * NS_PER_SECOND);
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(jobset->restarts, 2 * RESTART_RECORDS_MAX);
    harness_write(&h, WRITE_DELETE, "a", NULL);
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "a"));
    harness_done(&h);
}

static void one_job_restarts_alone(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "failurePolicy: {maxRestarts: 1, rules: [{name: r, action: RestartJob}]}, ", TWO));
    harness_run_all(&h);
    obj_id other = harness_task(&h, "a-x-0-0")->uid, failed = job_of(&h, "a-x-1")->uid;
    harness_wait(&h, NS_PER_SECOND);
    exits(&h, "a-x-1-0", 1);
    assert_int_equal(jobset->restarts, 0);
    assert_int_equal(jobset->job_attempts[1], 1);
    assert_no_condition(jobset, CONDITION_RESTARTING);
    assert_note(&h, true, "RestartJobFailurePolicyAction",
                "applying RestartJob failure policy action (first failed job: a-x-1)");
    assert_true(job_of(&h, "a-x-1")->uid != failed);
    assert_true(harness_task(&h, "a-x-0-0")->uid == other);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_RESTARTING], 3);
    harness_wait(&h, NS_PER_SECOND);
    harness_run_all(&h);
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_UNKEPT], 3); /* all are productive again */
    assert_int_equal(jobset->history.records[0].attempt, 0);
    assert_true(jobset->history.records[0].started_ns == h.now_ns);
    exits(&h, "a-z-0-0", 1);
    assert_condition(jobset, CONDITION_FAILED, true, "ReachedMaxRestarts",
                     "jobset failed due to reaching max number of restarts (first failed job: a-z-0)");
    harness_run_all(&h);
    assert_int_equal((int)idle_chips(&h), 8);
    harness_done(&h);
}

/* Recreate: each Job as soon as its own predecessor is gone; BlockingRecreate: none while any is there. */
static void strategies(void **state)
{
    for (int blocking = 0; blocking < 2; blocking++) {
        struct harness h;
        harness_init(&h, 2, 4, 0);
        struct jobset *jobset = harness_create(
            &h, blocking
                    ? JOBSET("a", "failurePolicy: {maxRestarts: 1, restartStrategy: BlockingRecreate}, ", TWO)
                    : JOBSET("a", "failurePolicy: {maxRestarts: 1, restartStrategy: Recreate}, ", TWO));
        harness_run_all(&h);
        exits(&h, "a-x-0-0", 1);
        const struct job *old = job_of(&h, "a-z-0"), *first = job_of(&h, "a-x-0");
        assert_true(old->doomed && old->doomed_ns == h.now_ns && old->attempt == 0); /* it is terminating */
        assert_int_equal(jobset->made > 0, !blocking);
        assert_int_equal(first != NULL, !blocking); /* its only Pod has ended */
        assert_true(!first || first->attempt == 1);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_int_equal(job_of(&h, "a-z-0")->attempt, 1);
        assert_int_equal(harness_task(&h, "a-z-0-0")->state, TASK_RUNNING);
        harness_done(&h);
    }
}

/* The failed Job that failed first names the restart. */
static void the_earliest_failure_is_named(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a",
                                  "suspend: false, failurePolicy: {maxRestarts: 0, rules: [{name: r, action: "
                                  "RestartJob, targetReplicatedJobs: [z]}]}, ",
                                  TWO));
    harness_run_all(&h);
    exits(&h, "a-x-1-0", 1);
    assert_condition(jobset, CONDITION_FAILED, true, "ReachedMaxRestarts",
                     "jobset failed due to reaching max number of restarts (first failed job: a-x-1)");
    harness_done(&h);
}

/* When the attempt begins that follows the last crash. */
static int64_t crash_wait(struct harness *h, const struct jobset *jobset)
{
    int64_t crashed_ns = h->now_ns;
    int32_t attempt = jobset->attempt;
    exits(h, "a-x-0-1", 2);
    assert_int_equal(jobset->attempt, attempt + 1);
    harness_run_all(h);
    assert_non_null(harness_task(h, "a-x-0-1"));
    return h->now_ns - crashed_ns;
}

/* The first crash is answered at once, each further one later, so that lives outlast what is away for a
 * while. */
static void crashes_in_a_row_are_held_back(void **state)
{
    static const int seconds[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300};
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 20}, ", ONE));
    harness_run_all(&h);
    for (size_t i = 0; i < sizeof seconds / sizeof *seconds; i++)
        assert_int_equal(crash_wait(&h, jobset) / NS_PER_SECOND, seconds[i]);
    assert_note(&h, true, "CrashLoopBackOff",
                "11 crashes in a row without a new step: the next attempt begins in 300 s");
    /* A lost machine is no crash. */
    int64_t lost_ns = h.now_ns;
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-x-0-0")->machine].name.data);
    harness_run_all(&h);
    assert_int_equal(h.now_ns, lost_ns);
    /* A long run ends the row. */
    harness_wait(&h, LADDER_RUN_NS);
    assert_int_equal(crash_wait(&h, jobset), 0);
    assert_int_equal(crash_wait(&h, jobset) / NS_PER_SECOND, 1);
    harness_done(&h);
}

static void the_back_off_is_the_users_to_say(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
            "{phalanx.dev/restart-backoff: 20s/30s}}\nspec: {failurePolicy: {maxRestarts: 20}, "
            "replicatedJobs: [" ONE "]}\n");
    harness_run_all(&h);
    assert_int_equal(crash_wait(&h, jobset), 0);
    assert_int_equal(crash_wait(&h, jobset) / NS_PER_SECOND, 20);
    assert_int_equal(crash_wait(&h, jobset) / NS_PER_SECOND, 30);
    assert_int_equal(crash_wait(&h, jobset) / NS_PER_SECOND, 30);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(crashes_in_a_row_are_held_back),
        cmocka_unit_test(the_back_off_is_the_users_to_say),
        cmocka_unit_test(without_policy),
        cmocka_unit_test(default_rule_restarts),
        cmocka_unit_test(fail_while_restarting),
        cmocka_unit_test(first_matching_rule_wins),
        cmocka_unit_test(ignored_restarts_have_no_limit),
        cmocka_unit_test(crash_loops_wait),
        cmocka_unit_test(one_job_restarts_alone),
        cmocka_unit_test(strategies),
        cmocka_unit_test(the_earliest_failure_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
