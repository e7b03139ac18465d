/* In which order replicated jobs begin: InOrder, dependsOn, and both again after a restart. */
#include "core/job/story.h"

static void in_order(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "startupPolicy: {startupPolicyOrder: InOrder}, failurePolicy: {maxRestarts: 1}, ",
                   RJOB("x", 2, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    assert_condition(jobset, CONDITION_STARTUP_IN_PROGRESS, true, "InOrderStartupPolicyInProgress",
                     "in order startup policy is in progress");
    for (int attempt = 0; attempt < 2; attempt++) {
        const struct job *later = job_of(&h, "a-z-0"); /* the last attempt's is terminating */
        assert_true(attempt > 0 ? later && later->doomed : !later);
        assert_int_equal(attempt > 0 || h.told.len == 2, 1);
        harness_run_all(&h);
        assert_non_null(job_of(&h, "a-z-0"));
        assert_condition(jobset, CONDITION_STARTUP_COMPLETED, true, "InOrderStartupPolicyCompleted",
                         "in order startup policy has completed");
        assert_false(jobset->conditions[CONDITION_STARTUP_IN_PROGRESS].status);
        exits(&h, "a-x-1-0", 1);
        if (attempt == 0) {
            assert_true(jobset->conditions[CONDITION_STARTUP_IN_PROGRESS].status);
            assert_false(jobset->conditions[CONDITION_STARTUP_COMPLETED].status);
        }
    }
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_done(&h);
}

static void depends_on_ready(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h,
        JOBSET("a", "failurePolicy: {maxRestarts: 1}, ",
               RJOB("x", 1, "", 2, "") "," RJOB("z", 1, "dependsOn: [{name: x, status: Ready}], ", 1, "")));
    for (int attempt = 0; attempt < 2; attempt++) {
        assert_null(job_of(&h, "a-z-0"));
        harness_run_all(&h);
        assert_int_equal(harness_task(&h, "a-z-0-0")->state, TASK_RUNNING);
        exits(&h, "a-z-0-0", 1);
    }
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_no_condition(jobset, CONDITION_STARTUP_IN_PROGRESS);
    harness_done(&h);
}

static void depends_on_complete(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "",
                                  RJOB("x", 1, "", 2, "") "," RJOB(
                                      "z", 1, "dependsOn: [{name: x, status: Complete}], ", 1, "")));
    harness_run_all(&h);
    assert_null(job_of(&h, "a-z-0"));
    exits(&h, "a-x-0-0", 0);
    assert_null(job_of(&h, "a-z-0"));
    exits(&h, "a-x-0-1", 0);
    assert_non_null(job_of(&h, "a-z-0"));
    harness_run_all(&h);
    exits(&h, "a-z-0-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* While suspended all Jobs exist, suspended, except those that depend on others. */
static void suspended(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *order =
        harness_create(&h, JOBSET("a", "suspend: true, startupPolicy: {startupPolicyOrder: InOrder}, ",
                                  RJOB("x", 1, "", 1, "") "," RJOB("z", 1, "", 1, "")));
    harness_create(&h, JOBSET("b", "suspend: true, ",
                              RJOB("x", 1, "", 1,
                                   "") "," RJOB("z", 1, "dependsOn: [{name: x, status: Ready}], ", 1, "")));
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_SUSPENDED);
    assert_int_equal(job_of(&h, "a-z-0")->state, JOB_SUSPENDED);
    assert_int_equal(job_of(&h, "b-x-0")->state, JOB_SUSPENDED);
    assert_null(job_of(&h, "b-z-0"));
    assert_int_equal(order->rjob_status[0].suspended, 1);
    assert_no_condition(order, CONDITION_STARTUP_IN_PROGRESS);
    assert_int_equal(
        harness_write(&h, WRITE_REPLACE, "a",
                      JOBSET("a", "suspend: false, startupPolicy: {startupPolicyOrder: InOrder}, ",
                             RJOB("x", 1, "", 1, "") "," RJOB("z", 1, "", 1, ""))),
        200);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_ACTIVE);
    assert_int_equal(job_of(&h, "a-z-0")->state, JOB_SUSPENDED);
    harness_run_all(&h);
    assert_int_equal(job_of(&h, "a-z-0")->state, JOB_ACTIVE);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_order),
        cmocka_unit_test(depends_on_ready),
        cmocka_unit_test(depends_on_complete),
        cmocka_unit_test(suspended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
