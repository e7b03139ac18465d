/* One batch/v1 Job: completions, work queues, back-off, deadlines and every reason to fail. */
#include "core/job/story.h"

#define JOB(fields) "{name: x, replicas: 1, template: {spec: {" fields POD_OF("", "1") "}}}"

static void more_completions_than_parallelism(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, JOBSET("a", "", JOB("parallelism: 2, completions: 5, ")));
    for (int i = 0; i < 5; i++) {
        harness_run_all(&h);
        assert_int_equal(living(job_of(&h, "a-x-0")), i < 4 ? 2 : 1);
        assert_int_equal(jobset->rjob_status[0].ready, 1);
        char name[32];
        snprintf(name, sizeof(name), "a-x-0-%d", i); /* lowest missing index first */
        exits(&h, name, 0);
    }
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_note(&h, false, "Completed", "Job completed");
    harness_done(&h);
}

/* No completions: any success ends the queue once all tasks have ended. */
static void work_queue(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "", JOB("parallelism: 3, completionMode: NonIndexed, backoffLimit: 5, ")));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 0);
    assert_int_equal(living(job_of(&h, "a-x-0")), 2);
    exits(&h, "a-x-0-0", 1); /* not replaced: the queue is draining */
    harness_wait(&h, 60 * NS_PER_SECOND);
    assert_int_equal(living(job_of(&h, "a-x-0")), 1);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    exits(&h, "a-x-0-2", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

/* 10 s, 20 s, ... between retries; beyond backoffLimit the Job fails. */
static void back_off(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "", JOB("parallelism: 1, completions: 1, backoffLimit: 2, ")));
    int64_t wait_s[] = {10, 20};
    for (int i = 0; i < 2; i++) {
        harness_run_all(&h);
        exits(&h, "a-x-0-0", 1);
        assert_null(harness_task(&h, "a-x-0-0"));
        assert_true(core_deadline(h.core) == h.now_ns + wait_s[i] * NS_PER_SECOND);
        harness_wait(&h, wait_s[i] * NS_PER_SECOND - 1);
        assert_null(harness_task(&h, "a-x-0-0"));
        harness_wait(&h, 1);
        assert_non_null(harness_task(&h, "a-x-0-0"));
        assert_int_equal((int)harness_task(&h, "a-x-0-0")->retry, i + 1);
    }
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_job_failed(&h, "a-x-0", "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_int_equal(notes(&h, "Failed"), 3);
    harness_done(&h);
}

static void deadline(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, JOBSET("a", "", JOB("parallelism: 1, completions: 1, activeDeadlineSeconds: 60, ")));
    harness_run_all(&h);
    harness_wait(&h, 59 * NS_PER_SECOND);
    assert_int_equal(living(job_of(&h, "a-x-0")), 1);
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_run_all(&h);
    assert_job_failed(&h, "a-x-0", "DeadlineExceeded", "Job was active longer than specified deadline");
    assert_note(&h, true, "DeadlineExceeded", "Job was active longer than specified deadline");
    harness_done(&h);
}

#define DEADLINE(suspend)                                                                                    \
    JOBSET("a", "suspend: " suspend ", ", JOB("parallelism: 1, completions: 1, activeDeadlineSeconds: 60, "))
static void no_deadline_while_suspended(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, DEADLINE("false"));
    harness_run_all(&h);
    harness_wait(&h, 50 * NS_PER_SECOND);
    harness_write(&h, WRITE_REPLACE, "a", DEADLINE("true"));
    harness_run_all(&h);
    harness_wait(&h, 1000 * NS_PER_SECOND);
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    harness_write(&h, WRITE_REPLACE, "a", DEADLINE("false"));
    harness_run_all(&h);
    harness_wait(&h, 59 * NS_PER_SECOND); /* it began anew */
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    harness_done(&h);
}

#define PER_INDEX(fields) "parallelism: 3, completions: 3, backoffLimitPerIndex: 0, " fields
static void failed_indexes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", JOB(PER_INDEX(""))));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 1);
    assert_int_equal(living(job_of(&h, "a-x-0")), 2); /* the others go on */
    harness_wait(&h, 600 * NS_PER_SECOND);
    assert_null(harness_task(&h, "a-x-0-1"));
    exits(&h, "a-x-0-0", 0);
    exits(&h, "a-x-0-2", 0);
    assert_job_failed(&h, "a-x-0", "FailedIndexes", "Job has failed indexes");
    harness_done(&h);
}

/* With backoffLimitPerIndex each index waits for itself, by its own failures. */
static void indexes_back_off_alone(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", JOB("parallelism: 2, completions: 4, backoffLimitPerIndex: 3, ")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_null(harness_task(&h, "a-x-0-0"));
    assert_non_null(harness_task(&h, "a-x-0-2")); /* has its turn at once */
    harness_wait(&h, 9 * NS_PER_SECOND);
    exits(&h, "a-x-0-2", 0);
    exits(&h, "a-x-0-1", 1); /* and waits 10 s from now */
    harness_check_replay(&h);
    harness_wait(&h, NS_PER_SECOND);
    assert_non_null(harness_task(&h, "a-x-0-0"));
    assert_null(harness_task(&h, "a-x-0-1"));
    exits(&h, "a-x-0-0", 1); /* the second time: 20 s */
    harness_wait(&h, 9 * NS_PER_SECOND);
    assert_non_null(harness_task(&h, "a-x-0-1"));
    assert_null(harness_task(&h, "a-x-0-0"));
    exits(&h, "a-x-0-3", 0);
    harness_wait(&h, 11 * NS_PER_SECOND);
    assert_non_null(harness_task(&h, "a-x-0-0"));
    harness_done(&h);
}

static void too_many_failed_indexes(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", JOB(PER_INDEX("maxFailedIndexes: 1, "))));
    harness_run_all(&h);
    exits(&h, "a-x-0-1", 1);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_ACTIVE);
    exits(&h, "a-x-0-0", 1);
    harness_run_all(&h);
    assert_job_failed(&h, "a-x-0", "MaxFailedIndexesExceeded",
                      "Job has exceeded the specified maximal number of failed indexes");
    harness_done(&h);
}

/* FailureTarget: the JobSet acts at once, the Job is Failed only when its tasks have ended. */
static void failing_then_failed(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "", JOB("parallelism: 2, completions: 2, backoffLimit: 0, ")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_FAILING);
    assert_int_equal(harness_task(&h, "a-x-0-1")->state, TASK_STOPPING);
    assert_int_equal(notes(&h, "BackoffLimitExceeded"), 0); /* the event tells of the end */
    harness_run_all(&h);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_FAILED);
    assert_note(&h, true, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    harness_done(&h);
}

/* A Job that its JobSet takes away before that tells of its failure then. */
static void a_failure_that_is_acted_on_is_told(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("x", 1, "", 2, "")));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    assert_note(&h, true, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    harness_run_all(&h);
    assert_int_equal(notes(&h, "BackoffLimitExceeded"), 1);
    harness_done(&h);
}

/* `kubectl delete pod` counts as a failure, as upstream; a deleted Job is made anew. */
static void deletions_by_the_user(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "failurePolicy: {maxRestarts: 1}, ", RJOB("x", 2, "", 1, "")));
    harness_run_all(&h);
    obj_id job = job_of(&h, "a-x-0")->uid;
    assert_int_equal(delete_object(&h, OBJECT_JOB, STR("a-x-0")), 200);
    harness_run_all(&h);
    assert_true(job_of(&h, "a-x-0")->uid != job);
    assert_int_equal(jobset->restarts, 0);
    assert_int_equal(delete_object(&h, OBJECT_POD, harness_task(&h, "a-x-1-0")->name), 200);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_string_equal(jobset->history.records[0].cause, "Evicted");
    assert_int_equal(delete_object(&h, OBJECT_POD, STR("nothing")), 404);
    assert_int_equal(delete_object(&h, OBJECT_JOB, STR("nothing")), 404);
    harness_done(&h);
}

static void none_wanted(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *none = harness_create(&h, JOBSET("a", "", JOB("parallelism: 0, completions: 2, ")));
    assert_int_equal(living(job_of(&h, "a-x-0")), 0);
    assert_int_equal(none->terminal_state, TERMINAL_NONE);
    struct jobset *zero = harness_create(&h, JOBSET("b", "", JOB("parallelism: 2, completions: 0, ")));
    assert_int_equal(zero->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(more_completions_than_parallelism),
        cmocka_unit_test(work_queue),
        cmocka_unit_test(back_off),
        cmocka_unit_test(deadline),
        cmocka_unit_test(no_deadline_while_suspended),
        cmocka_unit_test(failed_indexes),
        cmocka_unit_test(indexes_back_off_alone),
        cmocka_unit_test(too_many_failed_indexes),
        cmocka_unit_test(failing_then_failed),
        cmocka_unit_test(a_failure_that_is_acted_on_is_told),
        cmocka_unit_test(deletions_by_the_user),
        cmocka_unit_test(none_wanted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
