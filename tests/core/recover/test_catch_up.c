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

/* Other machines may have seen more. */
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

static void boot(struct harness *h, uint64_t epoch)
{
    harness_step(h, &(struct event){.kind = EVENT_BOOT, .boot = {.epoch = epoch, .version = STR("test")}});
}

/* The agent of the machine comes back, and has seen this attempt; its tasks that are known are gone. */
static void comes_back(struct harness *h, const char *machine, const struct jobset *jobset, int32_t attempt,
                       uint64_t epoch)
{
    struct attempt_seen seen[] = {{4711, 3, epoch}, {jobset->uid, attempt, epoch}}; /* and a stranger's */
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                               .machine = str_from(machine),
                                               .incarnation = (uint64_t)h->now_ns,
                                               .chips = 1,
                                               .seen = seen,
                                               .seen_count = 2};
    machine_id id = cluster_find(core_cluster(h->core), str_from(machine))->id;
    for (size_t i = 0; i < h->told.len; i++)
        if (h->told.items[i].machine == id)
            h->told.items[i].ended = true;
    harness_step(h, &event);
    core_check_invariants(h->core);
}

/* Machines without a task of this log say what they have seen, too: no refusal would tell. */
static void a_hello_tells_of_lost_attempts(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    boot(&h, 100);
    comes_back(&h, "m-4", jobset, 7, 1);
    assert_int_equal(jobset->attempt, 8);
    for (int i = 0; i < 4; i++) {
        char name[8];
        snprintf(name, sizeof name, "m-%d", (int[]){1, 2, 3, 5}[i]);
        comes_back(&h, name, jobset, 2 * i, 1);
    }
    assert_goes_on(&h, jobset, 8);
    assert_int_equal(jobset->history.record_count, 1);
    assert_string_equal(jobset->history.records[0].cause, "LogRestored");
    assert_int_equal(jobset->restarts_counted + jobset->recovery.in_place_counted, 0);
    harness_done(&h);
}

/* An agent that names an attempt which no log has begun in its life is not believed: the numbers end. */
static void a_leap_is_not_believed(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    boot(&h, 100);
    comes_back(&h, "m-4", jobset, INT32_MAX - 1, 1);
    assert_int_equal(notes(&h, "AttemptNotBelieved"), 1);
    assert_int_equal(notes(&h, "LogRestored"), 0);
    harness_run_all(&h);
    assert_true(jobset->attempt < 10);
    harness_done(&h);
}

/* The machine whose hello comes first has lost its task and has seen attempt 1; the log goes on as attempt
 * 2. That is a number that the lost part had as well: another machine has seen it, from an older epoch. */
static void a_lost_attempt_of_the_same_number_is_another(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    harness_run_all(&h);
    boot(&h, 100);
    comes_back(&h, "m-2", jobset, 1, 1);
    assert_int_equal(jobset->attempt, 2);
    comes_back(&h, "m-1", jobset, 2, 100); /* was told it by this controller */
    assert_int_equal(jobset->attempt, 2);
    comes_back(&h, "m-5", jobset, 2, 0); /* was told it by nobody knows whom */
    assert_int_equal(jobset->attempt, 2);
    struct core *twin = core_new();
    struct buf bytes BUF_CLEANUP = {0};
    core_snapshot_write(h.core, &bytes);
    assert_int_equal(core_snapshot_read(twin, buf_str(&bytes), NULL), 0);
    assert_true(core_digest(twin) == core_digest(h.core));
    core_free(twin);
    comes_back(&h, "m-4", jobset, 2, 1);
    assert_int_equal(jobset->attempt, 3);
    comes_back(&h, "m-3", jobset, 2, 1); /* older now */
    assert_goes_on(&h, jobset, 3);
    harness_done(&h);
}

/* An attempt that an earlier controller began, and this log knows, is no lost one. */
static void a_known_attempt_is_none_of_a_lost_log(void **state)
{
    struct harness h;
    harness_init(&h, 5, 1, 0);
    struct jobset *jobset = harness_create(&h, SET);
    refuses(&h, "a-x-0-1", 7);
    assert_goes_on(&h, jobset, 8);
    boot(&h, 100);
    int64_t restarts = jobset->history.record_count;
    comes_back(&h, "m-4", jobset, 8, 1);
    comes_back(&h, "m-5", jobset, 3, 1);
    assert_int_equal(jobset->attempt, 8);
    assert_int_equal(jobset->history.record_count, restarts);
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
        cmocka_unit_test(a_hello_tells_of_lost_attempts),
        cmocka_unit_test(a_leap_is_not_believed),
        cmocka_unit_test(a_lost_attempt_of_the_same_number_is_another),
        cmocka_unit_test(a_known_attempt_is_none_of_a_lost_log),
        cmocka_unit_test(a_job_of_its_own_goes_on_too),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
