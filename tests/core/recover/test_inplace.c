/* restartStrategy InPlaceRestart: what runs again where it is, what is made anew, and when it is given up. */
#include "core/job/story.h"

#define IN_PLACE(fields)                                                                                     \
    JOBSET("a", fields "failurePolicy: {maxRestarts: 2, restartStrategy: InPlaceRestart}, ",                 \
           "{name: w, replicas: 1, template: {spec: {parallelism: 3, completions: 3, backoffLimit: "         \
           "2147483647, podReplacementPolicy: Failed, " POD_OF("", "4") "}}}")

static void all_run_again_where_they_are(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_run_all(&h);
    const struct job *job = jobset->jobs[0];
    struct task *one = harness_task(&h, "a-w-0-1"), *two = harness_task(&h, "a-w-0-2");
    obj_id uid = one->uid, pod = one->pod_uid, job_uid = job->uid;
    machine_id place = one->machine, other = two->machine;
    harness_exit(&h, one, 1);
    assert_true(jobset_parks(jobset));
    assert_int_equal(one->state, TASK_PLACED);
    assert_int_equal(two->state, TASK_STOPPING);
    core_check_invariants(h.core);
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_false(jobset_parks(jobset));
    assert_int_equal(jobset->recovery.in_place_restarts, 1);
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal(jobset->restarts, 0); /* as upstream: nothing was recreated */
    assert_int_equal(jobset->restarts_counted, 0);
    assert_true(jobset->jobs[0] == job && job->uid == job_uid);
    assert_true(one->state == TASK_RUNNING && two->state == TASK_RUNNING);
    assert_true(one->uid != uid && one->pod_uid == pod);
    assert_true(one->machine == place && two->machine == other);
    assert_int_equal(jobset->gangs.items[0]->state, GANG_RUNNING);
    assert_int_equal(job->failed, 0);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void max_restarts_ends_it(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_run_all(&h);
    for (int i = 0; i < 2; i++) {
        exits(&h, "a-w-0-0", 1);
        harness_run_all(&h);
        harness_wait(&h, 10 * NS_PER_SECOND);
    }
    assert_int_equal(jobset->recovery.in_place_restarts, 2);
    exits(&h, "a-w-0-0", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_string_equal(jobset->conditions[CONDITION_FAILED].reason, "ReachedMaxRestarts");
    assert_int_equal(jobset->restarts, 0);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void a_lost_machine_moves_only_its_task(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_run_all(&h);
    struct task *one = harness_task(&h, "a-w-0-1"), *two = harness_task(&h, "a-w-0-2");
    machine_id place = one->machine, lost = two->machine;
    harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
    core_check_invariants(h.core);
    harness_run_all(&h);
    two = harness_task(&h, "a-w-0-2");
    assert_int_equal(one->state, TASK_RUNNING);
    assert_int_equal(one->machine, place);
    assert_int_equal(one->runs_before, 1);
    assert_int_equal(two->state, TASK_RUNNING);
    assert_int_not_equal(two->machine, lost);
    assert_int_equal(jobset->attempt, 1);
    assert_false(jobset_parks(jobset));
    core_check_invariants(h.core);
    harness_done(&h);
}

/* The head of the queue cannot have the machines of ranks that stand idle for want of one more. */
static void idle_ranks_come_before_the_head_of_the_queue(void **state)
{
    struct harness h;
    harness_init(&h, 5, 4, 0);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_create(&h, JOBSET("b", "", RJOB("x", 1, "", 1, "")));
    harness_create(&h, JOBSET("head", "",
                              "{name: x, replicas: 1, template: {spec: {parallelism: 2, completions: 2, "
                              "backoffLimit: 0, " POD_OF("priorityClassName: high, ", "4") "}}}"));
    harness_run_all(&h);
    harness_wait(&h, 2 * core_cluster(h.core)->policy.backfill_window_ns);
    assert_int_equal(harness_task(&h, "head-x-0-0")->machine, MACHINE_NONE);
    machine_id lost = harness_task(&h, "a-w-0-2")->machine;
    harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
    harness_run_all(&h);
    assert_false(jobset_parks(jobset));
    assert_int_equal(harness_task(&h, "a-w-0-2")->state, TASK_RUNNING);
    assert_int_equal(harness_task(&h, "head-x-0-0")->machine, MACHINE_NONE);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* No machine is left for what was lost: the others do not hold theirs for ever. */
static void it_does_not_wait_for_ever(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_run_all(&h);
    harness_lose(&h, core_cluster(h.core)->machines[0].name.data);
    harness_run_all(&h);
    assert_true(jobset_parks(jobset));
    harness_check_replay(&h);
    assert_int_equal(jobset->restarts, 0);
    harness_wait(&h, 301 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_false(jobset_parks(jobset));
    assert_int_equal(jobset->restarts, 1); /* it became one of the whole */
    assert_int_equal(jobset->restarts_counted, 1);
    assert_int_equal(job_of(&h, "a-w-0")->attempt, 1);
    core_check_invariants(h.core);
    for (size_t m = 1; m < 3; m++)
        assert_int_equal(core_cluster(h.core)->machines[m].task_count, 0);
    harness_done(&h);
}

static void suspending_and_deleting_end_it(void **state)
{
    for (int how = 0; how < 2; how++) {
        struct harness h;
        harness_init(&h, 4, 4, 1);
        harness_create(&h, IN_PLACE(""));
        harness_run_all(&h);
        exits(&h, "a-w-0-0", 1);
        if (how)
            assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
        else
            assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", IN_PLACE("suspend: true, ")), 200);
        core_check_invariants(h.core);
        harness_run_all(&h);
        core_check_invariants(h.core);
        for (size_t m = 0; m < 3; m++)
            assert_int_equal(core_cluster(h.core)->machines[m].task_count, 0);
        harness_done(&h);
    }
}

static void it_can_be_disabled(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: a, annotations: {jobset.sigs.k8s.io/disable-in-place-restart: 'true'}}\n"
        "spec: {failurePolicy: {maxRestarts: 2, restartStrategy: InPlaceRestart}, replicatedJobs: [{name: w, "
        "replicas: 1, template: {spec: {parallelism: 1, completions: 1, backoffLimit: 2147483647, "
        "podReplacementPolicy: Failed, " POD_OF("", "4") "}}}]}\n");
    harness_run_all(&h);
    obj_id job = jobset->jobs[0]->uid;
    exits(&h, "a-w-0-0", 1);
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(jobset->recovery.in_place_restarts, 0);
    assert_true(jobset->jobs[0]->uid != job);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Deleted while it waits to run again, and held by a finalizer: nothing is due any more. */
static void deleted_and_held(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"
        "metadata: {name: a, finalizers: [example.com/hold]}\nspec: {failurePolicy: {maxRestarts: 2, "
        "restartStrategy: InPlaceRestart}, replicatedJobs: [{name: w, replicas: 1, template: {spec: "
        "{parallelism: 3, completions: 3, backoffLimit: 2147483647, podReplacementPolicy: Failed, " POD_OF(
            "", "4") "}}}]}\n");
    harness_run_all(&h);
    exits(&h, "a-w-0-1", 1);
    assert_true(jobset_parks(jobset));
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    harness_run_all(&h);
    assert_non_null(harness_jobset(&h, "a"));
    assert_true(core_deadline(h.core) == INT64_MAX);
    harness_done(&h);
}

static void save(struct harness *h, const char *hostname, int64_t step)
{
    report_task(h, hostname, (struct task_report){.kind = REPORT_JOINED});
    report_task(h, hostname, (struct task_report){.kind = REPORT_SHARD_SAVED, .step = step});
}

/* A rank of the attempt before still ends while its peers run as the next one: what it has saved is no part
 * of their checkpoint. */
static void shards_of_the_attempt_before(void **state)
{
    struct harness h;
    harness_init(&h, 4, 4, 1);
    struct jobset *jobset = harness_create(&h, IN_PLACE(""));
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 1);
    exits(&h, "a-w-0-1", 1);
    assert_int_equal(jobset->attempt, 1);
    save(&h, "a-w-0-2", 7);
    struct told *still = harness_told(&h, harness_task(&h, "a-w-0-2")->uid);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", IN_PLACE("suspend: true, ")), 200);
    assert_int_equal(harness_write(&h, WRITE_REPLACE, "a", IN_PLACE("")), 200);
    still->started = true;
    still->stopped = false; /* it takes its time */
    harness_run_all(&h);
    save(&h, "a-w-0-0", 7);
    save(&h, "a-w-0-1", 7);
    assert_int_equal((int)jobset->checkpoint.committed_step, -1);
    core_check_invariants(h.core);
    harness_done(&h);
}

#define ON_FAILURE(limit, failure)                                                                           \
    JOBSET("a", failure,                                                                                     \
           "{name: w, replicas: 2, template: {spec: {parallelism: 2, completions: 2, backoffLimit: " limit   \
           ", template: {spec: {restartPolicy: OnFailure, containers: [{name: main, image: none, command: "  \
           "[run], resources: {limits: {google.com/tpu: 4}}}]}}}}}")

static void reports(struct harness *h, struct task *task, enum report_kind kind, uint32_t restarts)
{
    struct container_status status = {
        .name = STR("main"), .phase = CONTAINER_RUNNING, .ready = true, .restarts = restarts};
    harness_report(
        h,
        &(struct task_report){.kind = kind, .task = task->uid, .containers = &status, .container_count = 1},
        task->machine);
    core_check_invariants(h->core);
}

static void all_join(struct harness *h, const struct jobset *jobset)
{
    harness_run_all(h);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        for (size_t t = 0; t < jobset->jobs[i]->tasks.len; t++)
            reports(h, jobset->jobs[i]->tasks.items[t], REPORT_JOINED, 0);
}

/* Ranks that joined through libphalanx: one fails, all run again as the next attempt; it counts once. */
static void a_rank_takes_its_peers_along(void **state)
{
    struct harness h;
    harness_init(&h, 5, 4, 1);
    struct jobset *jobset = harness_create(&h, ON_FAILURE("3", ""));
    all_join(&h, jobset);
    struct task *one = harness_task(&h, "a-w-0-1"), *far = harness_task(&h, "a-w-1-0");
    obj_id pod = far->pod_uid;
    harness_exit(&h, one, 1);
    assert_true(jobset_parks(jobset) &&
                jobset->recovery.state != RECOVERY_BACKING_OFF); /* the first time at once */
    assert_int_equal(far->state, TASK_STOPPING);
    harness_run_all(&h);
    assert_false(jobset_parks(jobset));
    assert_int_equal(jobset->attempt, 1);
    assert_int_equal(jobset->restarts, 0);
    assert_true(far->state == TASK_RUNNING && far->pod_uid == pod && far->attempt == 1);
    assert_true(one->failed_runs == 1 && far->failed_runs == 0);
    assert_int_equal(one->runs_before, 1);

    all_join(&h, jobset);
    harness_exit(&h, one, 1);
    harness_run_all(&h);
    assert_true(jobset_parks(jobset) && jobset->recovery.state == RECOVERY_BACKING_OFF &&
                one->state == TASK_PLACED);
    harness_check_replay(&h);
    harness_wait(&h, 10 * NS_PER_SECOND);
    harness_run_all(&h);
    assert_true(!jobset_parks(jobset) && one->state == TASK_RUNNING && jobset->attempt == 2);

    all_join(&h, jobset);
    harness_exit(&h, one, 1); /* the third of three */
    harness_run_all(&h);
    assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
    assert_int_equal(notes(&h, "InPlaceRestart"), 2);
    harness_done(&h);
}

/* Reports of peers about the process before are no evidence against its machine. */
static void peers_speak_of_the_process_before(void **state)
{
    struct harness h;
    harness_init(&h, 5, 4, 1);
    struct jobset *jobset = harness_create(&h, ON_FAILURE("3", ""));
    all_join(&h, jobset);
    struct task *one = harness_task(&h, "a-w-0-1"), *peer = harness_task(&h, "a-w-0-0");
    harness_exit(&h, one, 1);
    harness_report(&h,
                   &(struct task_report){.kind = REPORT_PEER_GONE, .task = peer->uid, .peer_rank = one->rank},
                   peer->machine);
    assert_true(one->parked && !one->peers_lost);
    harness_run_all(&h);
    assert_true(one->state == TASK_RUNNING && !one->peers_lost);
    harness_done(&h);
}

/* A rank that has met nobody is restarted by its machine alone; both count towards one limit. */
static void restarts_of_both_kinds_are_one_sum(void **state)
{
    struct harness h;
    harness_init(&h, 5, 4, 1);
    struct jobset *jobset = harness_create(&h, ON_FAILURE("3", "failurePolicy: {maxRestarts: 1}, "));
    harness_run_all(&h);
    struct task *one = harness_task(&h, "a-w-0-1"), *other = harness_task(&h, "a-w-0-0");
    reports(&h, one, REPORT_STARTED, 1);
    assert_true(!jobset_parks(jobset) && one->state == TASK_RUNNING && other->state == TASK_RUNNING);
    all_join(&h, jobset);
    reports(&h, one, REPORT_STARTED, 1);
    harness_exit(&h, one, 1);
    harness_run_all(&h);
    assert_int_equal(jobset->attempt, 1);
    assert_true(one->failed_runs == 2 && one->runs_before == 2 && one->container_count == 0);
    harness_check_replay(&h);
    reports(&h, one, REPORT_STARTED, 1); /* the third: the Job has failed, its JobSet goes by its policy */
    harness_run_all(&h);
    assert_int_equal(jobset->restarts, 1);
    assert_int_equal(notes(&h, "BackoffLimitExceeded"), 1);
    harness_done(&h);
}

/* The place of a rank that was lost with its machine is found anew while its peers wait. */
static void peers_wait_for_a_lost_rank(void **state)
{
    for (int spare = 0; spare < 2; spare++) {
        struct harness h;
        harness_init(&h, 4 + spare, 4, 0);
        struct jobset *jobset = harness_create(&h, ON_FAILURE("6", ""));
        all_join(&h, jobset);
        struct task *stays = harness_task(&h, "a-w-0-0");
        machine_id lost = harness_task(&h, "a-w-1-1")->machine;
        harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
        harness_run_all(&h);
        if (spare) {
            assert_true(!jobset_parks(jobset) && jobset->attempt == 1 && stays->state == TASK_RUNNING);
            assert_int_equal(harness_task(&h, "a-w-1-1")->state, TASK_RUNNING);
        } else {
            assert_true(jobset_parks(jobset));
            harness_wait(&h, 301 * NS_PER_SECOND); /* no Job waits for ever without a policy that says so */
            harness_run_all(&h);
            assert_false(jobset_parks(jobset));
            assert_int_equal(jobset->terminal_state, TERMINAL_FAILED);
        }
        core_check_invariants(h.core);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_run_again_where_they_are),
        cmocka_unit_test(max_restarts_ends_it),
        cmocka_unit_test(a_lost_machine_moves_only_its_task),
        cmocka_unit_test(idle_ranks_come_before_the_head_of_the_queue),
        cmocka_unit_test(it_does_not_wait_for_ever),
        cmocka_unit_test(suspending_and_deleting_end_it),
        cmocka_unit_test(it_can_be_disabled),
        cmocka_unit_test(a_rank_takes_its_peers_along),
        cmocka_unit_test(peers_speak_of_the_process_before),
        cmocka_unit_test(restarts_of_both_kinds_are_one_sum),
        cmocka_unit_test(peers_wait_for_a_lost_rank),
        cmocka_unit_test(deleted_and_held),
        cmocka_unit_test(shards_of_the_attempt_before),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
