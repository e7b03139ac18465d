/* A log that was restored from a backup: machines have seen newer attempts than it knows, and the workload
 * goes on behind the newest of them, at once, without blame. */
#include "core/job/story.h"

#include "core/health/attribute.h"

#define SET JOBSET("a", "", RJOB("x", 1, "", 3, ""))

/* The agent has seen attempt `seen`, and fences the START of an older one. */
static void refuses(struct harness *h, const char *hostname, int32_t seen)
{
    const struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    struct task_report report = {.kind = REPORT_START_FAILED,
                                 .task = task->uid,
                                 .exit_code = -1,
                                 .fenced = true,
                                 .message = STR("fenced: attempt 7 was started after attempt 0"),
                                 .attempt_plus_1 = (uint32_t)seen + 1};
    machine_id machine = task->machine;
    harness_told(h, task->uid)->ended = true;
    harness_report(h, &report, machine);
    core_check_invariants(h->core);
}

static void assert_goes_on(struct harness *h, const struct jobset *jobset, int32_t attempt)
{
    int64_t now_ns = h->now_ns;
    harness_run_all(h);
    assert_int_equal(h->now_ns, now_ns); /* nothing was waited for */
    assert_int_equal(jobset->attempt, attempt);
    assert_false(jobset->conditions[CONDITION_FAILED].status);
    for (int rank = 0; rank < 3; rank++) {
        char host[16];
        snprintf(host, sizeof(host), "a-x-0-%d", rank);
        const struct task *task = harness_task(h, host);
        assert_non_null(task);
        assert_int_equal(task->state, TASK_RUNNING);
        assert_int_equal(task->attempt, attempt);
    }
}

/* Without a failure policy any failure would end the JobSet. */
static void a_refused_start_is_no_failure(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    refuses(&h, "a-x-0-1", 7);
    assert_goes_on(&h, jobset, 8);
    assert_note(&h, true, "LogRestored",
                "machines have seen attempt 7, the log only 0: it goes on as attempt 8");
    assert_int_equal(jobset->history.record_count, 1);
    assert_int_equal(jobset->restarts + jobset->restarts_counted + jobset->recovery.in_place_counted, 0);
    assert_int_equal(jobset->recovery.ladder.stalled + jobset->recovery.crashes.count, 0);
    assert_int_equal((int)jobset->history.suspect_count, 0);
    for (size_t i = 0; i < core_cluster(h.core)->machine_count; i++)
        assert_int_equal((int)core_cluster(h.core)->machines[i].blamed_job, 0);
    const struct restart_record *record = &jobset->history.records[0];
    struct attribution found;
    assert_string_equal(record->cause, "LogRestored");
    attribute(&record->faults, &record->signatures, str_from(record->machine), record->fault_ns, &found);
    assert_string_equal(found.primary->code, "log-restored");
    harness_done(&h);
}

/* Others may have seen more. */
static void the_newest_that_any_machine_knows_counts(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    refuses(&h, "a-x-0-1", 4);
    assert_int_equal(jobset->attempt, 5);
    refuses(&h, "a-x-0-0", 9);
    assert_goes_on(&h, jobset, 10);
    harness_done(&h);
}

/* The task is known, and goes on under an attempt that is not: nobody can tell which rank it is. */
static void a_process_of_a_newer_attempt_is_stopped(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    const struct task *task = harness_task(&h, "a-x-0-2");
    struct task_report report = {.kind = REPORT_STARTED, .task = task->uid, .attempt_plus_1 = 4};
    harness_report(&h, &report, task->machine);
    core_check_invariants(h.core);
    assert_goes_on(&h, jobset, 4);
    harness_done(&h);
}

/* A Job of its own has its Pods made anew. */
static void a_job_of_its_own_goes_on_too(void **state)
{
    struct harness h;
    harness_init(&h, 3, 1, 0);
    assert_int_equal(
        harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "",
                              "{\"apiVersion\":\"batch/v1\",\"kind\":\"Job\",\"metadata\":{\"name\":\"j\"},"
                              "\"spec\":{\"completionMode\":\"Indexed\",\"completions\":2,\"parallelism\":2,"
                              "\"backoffLimit\":0,\"template\":{\"spec\":{\"restartPolicy\":\"Never\","
                              "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"run\"]}]}}}}"),
        201);
    const struct task *task = NULL;
    for (size_t i = 0; i < h.told.len && !task; i++)
        task = jobs_find_task(core_jobs(h.core), h.told.items[i].task);
    assert_non_null(task);
    struct jobset *jobset = task->job->jobset;
    struct task_report report = {.kind = REPORT_START_FAILED,
                                 .task = task->uid,
                                 .exit_code = -1,
                                 .fenced = true,
                                 .message = STR("fenced"),
                                 .attempt_plus_1 = 6};
    harness_told(&h, task->uid)->ended = true;
    harness_report(&h, &report, task->machine);
    core_check_invariants(h.core);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 6);
    assert_int_equal((int)jobset->jobs[0]->failed, 0);
    assert_int_equal((int)jobset->jobs[0]->ready, 2);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_refused_start_is_no_failure),
        cmocka_unit_test(the_newest_that_any_machine_knows_counts),
        cmocka_unit_test(a_process_of_a_newer_attempt_is_stopped),
        cmocka_unit_test(a_job_of_its_own_goes_on_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
