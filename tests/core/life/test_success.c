/* When a JobSet is Completed: operator All and Any, targets, and what happens to the rest. */
#include "core/job/story.h"

static void all_jobs(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "", RJOB("x", 2, "", 1, "") "," RJOB("z", 1, "", 2, "")));
    harness_run_all(&h);
    assert_int_equal(jobset->rjob_status[0].ready, 2);
    assert_int_equal(jobset->rjob_status[0].active, 2);
    assert_int_equal(jobset->rjob_status[1].ready, 1);
    exits(&h, "a-x-0-0", 0);
    exits(&h, "a-x-1-0", 0);
    exits(&h, "a-z-0-1", 0);
    assert_int_equal(jobset->rjob_status[0].succeeded, 2);
    assert_int_equal(jobset->rjob_status[0].active, 0);
    assert_int_equal(jobset->rjob_status[1].ready, 1); /* succeeded tasks count as ready ones */
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    exits(&h, "a-z-0-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_condition(jobset, CONDITION_COMPLETED, true, "AllJobsCompleted", "jobset completed successfully");
    assert_note(&h, false, "AllJobsCompleted", "jobset completed successfully");
    assert_no_condition(jobset, CONDITION_FAILED);
    assert_int_equal((int)idle_chips(&h), 8);
    assert_non_null(job_of(&h, "a-x-0")); /* finished jobs stay */
    harness_done(&h);
}

static void any_job_ends_the_others(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "successPolicy: {operator: Any}, ",
                                                      RJOB("x", 2, "", 1, "") "," RJOB("z", 1, "", 2, "")));
    harness_run_all(&h);
    exits(&h, "a-x-1-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_true(job_of(&h, "a-z-0")->doomed); /* active jobs are deleted */
    assert_non_null(job_of(&h, "a-x-1"));
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_DRAINING], 3);
    harness_run_all(&h);
    assert_null(job_of(&h, "a-z-0"));
    assert_int_equal((int)idle_chips(&h), 8);
    harness_done(&h);
}

static void targets_decide(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "successPolicy: {operator: All, targetReplicatedJobs: [x]}, ",
                                  RJOB("x", 2, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    harness_run_all(&h);
    exits(&h, "a-z-0-0", 0);
    exits(&h, "a-x-0-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    exits(&h, "a-x-1-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* Judged only once a Job has succeeded, as upstream: a JobSet without tasks never completes. */
static void nothing_never_completes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", RJOB("x", 0, "", 1, "")));
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    struct jobset *targeted =
        harness_create(&h, JOBSET("b", "successPolicy: {operator: All, targetReplicatedJobs: [x]}, ",
                                  RJOB("x", 0, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    harness_run_all(&h);
    assert_int_equal(targeted->terminal_state, TERMINAL_NONE);
    exits(&h, "b-z-0-0", 0);
    assert_int_equal(targeted->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_jobs),
        cmocka_unit_test(any_job_ends_the_others),
        cmocka_unit_test(targets_decide),
        cmocka_unit_test(nothing_never_completes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
