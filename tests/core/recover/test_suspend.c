/* Suspending and resuming: what stops, what stays, what it costs, and who else manages a JobSet. */
#include "core/job/story.h"

#define SET(suspend)                                                                                         \
    JOBSET("a", "suspend: " suspend ", failurePolicy: {maxRestarts: 1}, ", RJOB("x", 1, "", 4, ""))

static void suspend_resume(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET("true"));
    assert_condition(jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    assert_note(&h, false, "SuspendedJobs", "jobset is suspended");
    assert_int_equal((int)h.told.len, 0);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", SET("false")), 200);
    assert_condition(jobset, CONDITION_SUSPENDED, false, "ResumeJobs", "jobset is resumed");
    assert_note(&h, false, "ResumeJobs", "jobset is resumed");
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_STARTING], 4);
    harness_run_all(&h);
    obj_id job = job_of(&h, "a-x-0")->uid;
    harness_wait(&h, NS_PER_SECOND);
    harness_write(&h, WRITE_REPLACE, "a", SET("true"));
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_DRAINING], 4);
    assert_int_equal(jobset->rjob_status[0].suspended, 1);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_STOPPING);
    harness_run_all(&h);
    assert_true(job_of(&h, "a-x-0")->uid == job); /* the Job stays */
    assert_int_equal((int)idle_chips(&h), 8);
    harness_wait(&h, NS_PER_SECOND);
    harness_write(&h, WRITE_REPLACE, "a", SET("false"));
    assert_int_equal((int)core_ledger(h.core)->chips[OWNER_STARTING], 4); /* not a restart */
    assert_int_equal(jobset->restarts, 0);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    /* The job says nothing of its steps: whether that second is made again is not known. */
    assert_int_equal((int)(account.chip_us[OWNER_REDONE] / 1000000), 0);
    assert_int_equal((int)(account.chip_us[OWNER_UNKEPT] / 1000000), 4);
    harness_run_all(&h);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a-x-0-%d", i);
        exits(&h, name, 0);
    }
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_done(&h);
}

#define TRAIN(suspend)                                                                                       \
    JOBSET("a", "suspend: " suspend ", failurePolicy: {maxRestarts: 0}, ",                                   \
           RJOB("x", 1, "", 2, "completionMode: Indexed, "))

static struct jobset *train(struct harness *h, bool can_rejoin)
{
    harness_init(h, 2, 4, 0);
    struct jobset *jobset = harness_create(h, TRAIN("false"));
    harness_run_all(h);
    for (int rank = 0; rank < 2; rank++)
        report_task(
            h, rank ? "a-x-0-1" : "a-x-0-0",
            (struct task_report){.kind = REPORT_JOINED, .attempt_plus_1 = 1, .can_rejoin = can_rejoin});
    progress_to(h, jobset, 5);
    return jobset;
}

static void save(struct harness *h, const char *hostname, int64_t step)
{
    report_task(h, hostname,
                (struct task_report){.kind = REPORT_SHARD_SAVED, .step = step, .attempt_plus_1 = 1});
}

static void assert_told_to_save(const struct harness *h, int count)
{
    int told = 0;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        told += effect->kind == EFFECT_TASK_NOTICE && effect->notice.notice.reason == DRAIN_PREEMPTION;
    }
    assert_int_equal(told, count);
}

/* A rank that goes on from its present step is stopped when that step is committed: nothing is lost. */
static void ranks_save_before_they_are_suspended(void **state)
{
    struct harness h;
    struct jobset *jobset = train(&h, true);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    assert_told_to_save(&h, 2);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_RUNNING);
    assert_int_equal(notes(&h, "SavingBeforeSuspension"), 1);
    assert_no_condition(jobset, CONDITION_SUSPENDED);
    harness_check_replay(&h);
    harness_wait(&h, NS_PER_MS);
    save(&h, "a-x-0-0", 4); /* that was on its way when they were told */
    save(&h, "a-x-0-1", 4);
    assert_int_equal((int)jobset->checkpoint.committed_step, 4);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_RUNNING);
    progress_to(&h, jobset, 6);
    save(&h, "a-x-0-0", 6);
    save(&h, "a-x-0-1", 6);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_STOPPING);
    assert_condition(jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    harness_run_all(&h);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("false"));
    harness_run_all(&h);
    struct ledger_account account = jobset_account(jobset, h.now_ns);
    assert_int_equal((int)account.chip_us[OWNER_REDONE], 0);
    assert_int_equal(jobset->restarts, 0);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A rank that does not save in its grace is stopped then; a rank that never saved and cannot go on is stopped
 * at once. */
static void nobody_is_waited_for_longer_than_its_grace(void **state)
{
    struct harness h;
    struct jobset *jobset = train(&h, true);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    assert_int_equal((int)((core_deadline(h.core) - h.now_ns) / NS_PER_SECOND), 30);
    harness_wait(&h, 30 * NS_PER_SECOND);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_STOPPING);
    assert_condition(jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    harness_check_replay(&h);
    harness_done(&h);

    (void)train(&h, false);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    assert_told_to_save(&h, 0);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_STOPPING);
    harness_done(&h);

    /* The tasks request other resources now: running ones cannot stay. */
    jobset = train(&h, true);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    harness_write(&h, WRITE_REPLACE, "a",
                  JOBSET("a", "suspend: false, failurePolicy: {maxRestarts: 0}, ",
                         "{name: x, template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, "
                         "completionMode: Indexed, " POD_OF("", "2") "}}}"));
    assert_int_equal(h.last_code, 200);
    assert_int_equal(jobset->executions, 1);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_STOPPING);
    harness_done(&h);
}

/* A loss meanwhile is no failure of a JobSet that may not restart: it is suspended, and comes back whole. */
static void a_loss_ends_the_wait(void **state)
{
    struct harness h;
    struct jobset *jobset = train(&h, true);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    harness_lose(&h, core_cluster(h.core)->machines[harness_task(&h, "a-x-0-1")->machine].name.data);
    assert_condition(jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    assert_int_equal(jobset->terminal_state, TERMINAL_NONE);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A job that is resumed while its ranks save goes on. */
static void who_is_resumed_while_it_saves_goes_on(void **state)
{
    struct harness h;
    struct jobset *jobset = train(&h, true);
    obj_id run = harness_task(&h, "a-x-0-0")->uid;
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("false"));
    harness_wait(&h, 40 * NS_PER_SECOND);
    progress_to(&h, jobset, 9);
    assert_true(harness_task(&h, "a-x-0-0")->uid == run);
    assert_int_equal(harness_task(&h, "a-x-0-0")->state, TASK_RUNNING);
    assert_no_condition(jobset, CONDITION_SUSPENDED);
    harness_done(&h);
}

/* A Job that waits for one that was over with its resumption begins with it. */
static void resumed_and_over(void **state)
{
#define QUEUE(suspend)                                                                                       \
    JOBSET("a", "suspend: " suspend ", startupPolicy: {startupPolicyOrder: InOrder}, ",                      \
           "{name: x, template: {spec: {completionMode: NonIndexed, parallelism: 2, template: {spec: {"      \
           "containers: [{name: m, image: i}]}}}}}, " RJOB("z", 1, "", 1, ""))
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, QUEUE("false"));
    harness_run_all(&h);
    harness_exit(&h, job_of(&h, "a-x-0")->tasks.items[0], 0);
    harness_write(&h, WRITE_REPLACE, "a", QUEUE("true"));
    harness_run_all(&h);
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_SUSPENDED);
    harness_write(&h, WRITE_REPLACE, "a", QUEUE("false"));
    assert_int_equal(job_of(&h, "a-x-0")->state, JOB_COMPLETE);
    harness_run_all(&h);
    exits(&h, "a-z-0-0", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    harness_check_replay(&h);
    harness_done(&h);
#undef QUEUE
}

static void suspend_while_restarting(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, SET("false"));
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1);
    harness_write(&h, WRITE_REPLACE, "a", SET("true"));
    assert_condition(jobset, CONDITION_RESTARTING, false, "JobSetSuspended", "jobset is suspended");
    harness_run_all(&h);
    assert_int_equal((int)idle_chips(&h), 8);
    assert_int_equal(job_of(&h, "a-x-0")->attempt, 1);
    harness_done(&h);
}

/* The requests of containers change only where nothing was taken by them: not in the write that suspends, not
 * while pods still end. */
static void suspended_resources(void **state)
{
#define ASKS(suspend, chips)                                                                                 \
    JOBSET("a", "suspend: " suspend ", ",                                                                    \
           "{name: x, template: {spec: {parallelism: 2, completions: 2, backoffLimit: 0, " POD_OF(           \
               "", chips) "}}}")
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, ASKS("true", "4"));
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("true", "3")), 200);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("false", "2")), 200);
    assert_int_equal((int)idle_chips(&h), 4);
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("false", "1")), 422);
    assert_non_null(strstr(h.last_message, "field is immutable"));
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("true", "1")), 200); /* in one write */
    assert_int_equal(living(job_of(&h, "a-x-0")), 2); /* told to stop: they hold what they were given */
    assert_int_equal((int)idle_chips(&h), 4);
    harness_check_replay(&h);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("true", "4")), 200); /* and again */
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", ASKS("false", "3")), 200);
    assert_int_equal((int)idle_chips(&h), 4);
    core_check_invariants(h.core);
    harness_run_all(&h);
    assert_int_equal((int)idle_chips(&h), 2);
    assert_int_equal(living(job_of(&h, "a-x-0")), 2);
    assert_int_equal(jobset->restarts, 0);
    harness_done(&h);
#undef ASKS
}

/* Pods that wait for their first machine, and what others were given of processor and memory. */
static void suspended_resources_of_waiting_pods(void **state)
{
#define ASKS(suspend, parallel, asks)                                                                        \
    JOBSET("a", "suspend: " suspend ", ",                                                                    \
           "{name: x, template: {spec: {parallelism: " parallel ", completions: " parallel                   \
           ", backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, "    \
           "command: [x], resources: {limits: " asks "}}]}}}}}")
    for (int fits = 0; fits < 2; fits++) {
        struct harness h;
        harness_init(&h, 2, 4, 0);
        const char *before = fits ? ASKS("false", "2", "{cpu: 3, memory: 2Gi, google.com/tpu: 2}")
                                  : ASKS("false", "9", "{cpu: 3, memory: 2Gi, google.com/tpu: 2}");
        const char *after = fits ? ASKS("true", "2", "{cpu: 1, memory: 9Gi, google.com/tpu: 4}")
                                 : ASKS("true", "9", "{cpu: 1, memory: 9Gi, google.com/tpu: 4}");
        struct jobset *jobset = harness_create(&h, before);
        assert_int_equal(jobset->gangs.items[0]->state, fits ? GANG_PLACED : GANG_QUEUED);
        if (fits)
            harness_run_all(&h);
        assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", after), 200);
        core_check_invariants(h.core);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_int_equal((int)idle_chips(&h), 8);
        for (size_t m = 0; m < core_cluster(h.core)->machine_count; m++)
            assert_int_equal(core_cluster(h.core)->machines[m].cpu_used_milli, 0);
        harness_done(&h);
    }
#undef ASKS
}

/* Another controller's JobSet is stored and shown, and nothing else. */
static void managed_by_another(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset =
        harness_create(&h, JOBSET("a", "managedBy: example.com/other, ", RJOB("x", 1, "", 4, "")));
    assert_null(job_of(&h, "a-x-0"));
    for (int kind = 0; kind < CONDITION_KINDS; kind++)
        assert_no_condition(jobset, (enum condition_kind)kind);
    /* Another controller writes the JobSet's status; the status that we would write does not appear. */
    static const char status[] = "status: {restarts: 3, conditions: [{type: Completed, status: 'True'}]}\n";
    assert_int_equal(harness_write(&h, WRITE_STATUS, "a", status), 200);
    assert_int_equal(doc_int(doc_get(jobset->foreign.status, "restarts"), 0), 3);
    uint64_t version = jobset->changed_seq;
    harness_check_replay(&h);
    assert_int_equal(harness_write(&h, WRITE_STATUS, "a", status), 200);
    assert_true(jobset->changed_seq == version);
    assert_int_equal(harness_write(&h, WRITE_STATUS, "a", "status: 3\n"), 400);
    assert_int_equal(harness_write(&h, WRITE_STATUS, "none", status), 404);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    assert_null(harness_jobset(&h, "a"));
    harness_create(&h,
                   JOBSET("b", "managedBy: jobset.sigs.k8s.io/jobset-controller, ", RJOB("x", 1, "", 4, "")));
    assert_non_null(job_of(&h, "b-x-0"));
    assert_int_equal(harness_write(&h, WRITE_STATUS, "b", status), 403);
    harness_done(&h);
}

/* A JobSet that ends while its last save is awaited is not suspended any more, whatever is written later. */
static void a_job_that_ends_in_its_grace_is_not_suspended_later(void **state)
{
    struct harness h;
    struct jobset *jobset = train(&h, true);
    harness_write(&h, WRITE_REPLACE, "a", TRAIN("true"));
    assert_told_to_save(&h, 2);
    exits(&h, "a-x-0-0", 0);
    exits(&h, "a-x-0-1", 0);
    assert_int_equal(jobset->terminal_state, TERMINAL_COMPLETED);
    assert_no_condition(jobset, CONDITION_SUSPENDED);
    int code =
        harness_write_checked(&h, OBJECT_JOBSET, WRITE_REPLACE, "a",
                              JOBSET("a", "suspend: true, failurePolicy: {maxRestarts: 0}, ",
                                     "{name: x, template: {spec: {parallelism: 2, completions: 2, "
                                     "backoffLimit: 0, completionMode: Indexed, " POD_OF("", "2") "}}}"));
    assert_int_equal(code, 200);
    assert_no_condition(jobset, CONDITION_SUSPENDED);
    harness_check_replay(&h);
    harness_done(&h);
}

#define ON_FAILURE(suspend)                                                                                  \
    JOBSET("a", "suspend: " suspend ", ",                                                                    \
           "{name: x, template: {spec: {parallelism: 2, completions: 2, completionMode: Indexed, "           \
           "template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: none, command: "    \
           "[run], resources: {limits: {google.com/tpu: 4}}}]}}}}}")

/* The Jobs of a JobSet that is deleted in its grace go on: a rank that fails runs again with its peers.
 * Torture seed 389015751. */
static void orphans_of_a_grace_go_on(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, ON_FAILURE("false"));
    harness_run_all(&h);
    for (int rank = 0; rank < 2; rank++)
        report_task(&h, rank ? "a-x-0-1" : "a-x-0-0",
                    (struct task_report){.kind = REPORT_JOINED, .attempt_plus_1 = 1, .can_rejoin = true});
    progress_to(&h, jobset, 5);
    harness_write(&h, WRITE_REPLACE, "a", ON_FAILURE("true"));
    assert_int_equal(notes(&h, "SavingBeforeSuspension"), 1);
    assert_int_equal(harness_delete_orphaning(&h, OBJECT_JOBSET, "a"), 200);
    assert_true(jobset->hidden);
    struct task *one = jobset->jobs[0]->tasks.items[1];
    harness_exit(&h, one, 1);
    harness_run_all(&h);
    assert_true(one->state == TASK_RUNNING && one->attempt == 1);
    assert_int_equal(jobset->jobs[0]->tasks.items[0]->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(suspend_resume),
        cmocka_unit_test(resumed_and_over),
        cmocka_unit_test(suspend_while_restarting),
        cmocka_unit_test(ranks_save_before_they_are_suspended),
        cmocka_unit_test(nobody_is_waited_for_longer_than_its_grace),
        cmocka_unit_test(a_job_that_ends_in_its_grace_is_not_suspended_later),
        cmocka_unit_test(orphans_of_a_grace_go_on),
        cmocka_unit_test(a_loss_ends_the_wait),
        cmocka_unit_test(who_is_resumed_while_it_saves_goes_on),
        cmocka_unit_test(suspended_resources),
        cmocka_unit_test(suspended_resources_of_waiting_pods),
        cmocka_unit_test(managed_by_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
