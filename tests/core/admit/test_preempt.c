/* Preemption: who goes, who stays, what is held for the preemptor, what is given back; fair sharing. */
#include "queues.h"

#define AT_ONCE "{\"minimumRunTime\":\"0s\"}"
#define CLASSES                                                                                              \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: low}\nvalue: "        \
    "1\n---\n"                                                                                               \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: "       \
    "9\n---\n"
#define LOW    "    kueue.x-k8s.io/priority-class: low\n"
#define HIGH   "    kueue.x-k8s.io/priority-class: high\n"
#define WITHIN "  preemption: {withinClusterQueue: LowerPriority}\n"

static void begin(struct harness *h, int machines, const char *settings, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, settings);
    must_apply(h, CLASSES);
    must_apply(h, objects);
}

static void test_lower_priority_goes(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 6, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "16", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "old", "lq", 2, 4, LOW);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "new", "lq", 2, 4, LOW);
    harness_run_all(&h);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "urgent", "lq", 1, 4, HIGH);
    assert_state(&h, "urgent", "holding");
    assert_state(&h, "new", "leaving"); /* the newest of the lowest */
    assert_state(&h, "old", "admitted");
    assert_string_equal(reason_of(&h, "urgent", WORKLOAD_QUOTA_RESERVED), "WaitingForPreemptedWorkloads");
    assert_string_equal(reason_of(&h, "new", WORKLOAD_EVICTED), "Preempted");
    assert_string_equal(reason_of(&h, "new", WORKLOAD_PREEMPTED), "InClusterQueue");
    submit(&h, "thief", "lq", 2, 4, LOW); /* what was freed is the preemptor's */
    assert_state(&h, "thief", "pending");
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    assert_state(&h, "new", "pending");
    assert_state(&h, "thief", "pending");
    assert_int_equal(harness_jobset(&h, "new")->restarts, 0);
    assert_true(holds(&h, "new", WORKLOAD_REQUEUED));
    harness_run_all(&h);
    finish_all(&h, "urgent", 1);
    assert_state(&h, "new", "admitted"); /* it keeps its place before the thief */
    assert_false(holds(&h, "new", WORKLOAD_PREEMPTED));
    harness_done(&h);
}

/* Quota would be there, machines are not: those of the queue's own lower workloads are taken. */
static void test_machines_are_simulated_too(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 3, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "100", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "b", "lq", 1, 4, LOW);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "c", "lq", 1, 2, LOW);
    harness_run_all(&h);
    submit(&h, "urgent", "lq", 1, 4, HIGH);
    assert_state(&h, "urgent", "holding");
    assert_state(&h, "c", "leaving");
    assert_state(&h, "b", "admitted");
    assert_state(&h, "a", "admitted");
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    assert_state(&h, "c", "pending");
    harness_done(&h);
}

/* The greedy row holds ones that turn out not to be needed: they stay. */
static void test_gives_back(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 6, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "20", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "large", "lq", 4, 4, LOW);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "small", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "urgent", "lq", 4, 4, HIGH);
    assert_state(&h, "large", "leaving");
    assert_state(&h, "small", "admitted");
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    harness_done(&h);
}

static void test_minimum_run_time(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"minimumRunTime\":\"10m\",\"maximumLifetime\":\"0s\"}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "urgent", "lq", 1, 4, HIGH);
    assert_state(&h, "urgent", "pending");
    harness_wait(&h, 599 * NS_PER_SECOND);
    assert_state(&h, "a", "admitted");
    harness_wait(&h, NS_PER_SECOND);
    assert_state(&h, "a", "leaving"); /* without any other event */
    harness_run_all(&h);
    assert_state(&h, "urgent", "admitted");
    harness_done(&h);
}

#define TWO_QUEUES(preemption, limits)                                                                       \
    FLAVOR("v5e")                                                                                            \
    CLUSTER_QUEUE("a", "8" limits, "  cohortName: all\n" preemption)                                         \
    CLUSTER_QUEUE("b", "8" limits, "  cohortName: all\n" preemption)                                         \
    LOCAL_QUEUE("qa", "a") LOCAL_QUEUE("qb", "b")

static void test_reclaim_in_cohort(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 8, AT_ONCE, TWO_QUEUES("  preemption: {reclaimWithinCohort: Any}\n", ""));
    submit(&h, "a1", "qa", 2, 4, HIGH);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "a2", "qa", 2, 4, HIGH); /* borrowed from b */
    harness_run_all(&h);
    assert_state(&h, "a2", "admitted");
    submit(&h, "b1", "qb", 1, 4, LOW); /* its own: whatever the priorities */
    assert_state(&h, "a2", "leaving");
    assert_state(&h, "a1", "admitted");
    assert_string_equal(reason_of(&h, "a2", WORKLOAD_PREEMPTED), "InCohortReclamation");
    harness_run_all(&h);
    assert_state(&h, "b1", "admitted");
    assert_state(&h, "a2", "pending"); /* 8 + 4 are used */
    submit(&h, "b2", "qb", 2, 4, LOW); /* would borrow: reclaims nothing */
    assert_state(&h, "b2", "pending");
    assert_state(&h, "a1", "admitted");
    harness_done(&h);
}

static void test_limits(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 8, AT_ONCE, TWO_QUEUES("", ", borrowingLimit: 4, lendingLimit: 4"));
    submit(&h, "a1", "qa", 4, 4, "");
    assert_state(&h, "a1", "pending");
    assert_string_equal(reason_of(&h, "a1", WORKLOAD_QUOTA_RESERVED), "ExceedsMaxQuota");
    submit(&h, "a2", "qa", 3, 4, "");
    assert_state(&h, "a2", "admitted");
    submit(&h, "b1", "qb", 2, 4, "");
    assert_state(&h, "b1", "pending"); /* 4 of b's 8 are lent */
    submit(&h, "b2", "qb", 1, 4, "");
    assert_state(&h, "b2", "admitted");
    harness_done(&h);
}

static void test_borrow_within_cohort(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 8, AT_ONCE,
          TWO_QUEUES("  preemption: {reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: "
                     "LowerPriority, maxPriorityThreshold: 5}}\n",
                     ""));
    submit(&h, "a1", "qa", 3, 4, LOW); /* borrows 4 */
    harness_run_all(&h);
    submit(&h, "b1", "qb", 3, 4, HIGH); /* borrows too, from one below the threshold */
    assert_state(&h, "a1", "leaving");
    assert_string_equal(reason_of(&h, "a1", WORKLOAD_PREEMPTED), "InCohortReclaimWhileBorrowing");
    harness_run_all(&h);
    assert_state(&h, "b1", "admitted");
    harness_done(&h);
}

/* Never two preemptions over the same room. */
static void test_no_overlap(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "b", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "x", "lq", 1, 4, HIGH);
    submit(&h, "z", "lq", 1, 4, HIGH);
    assert_state(&h, "x", "holding");
    assert_state(&h, "z", "holding");
    assert_state(&h, "a", "leaving");
    assert_state(&h, "b", "leaving");
    harness_run_all(&h);
    assert_state(&h, "x", "admitted");
    assert_state(&h, "z", "admitted");
    harness_done(&h);
}

/* The preemptor goes before its victims have ended: they come back, its room is free. */
static void test_preemptor_goes(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "x", "lq", 1, 4, HIGH);
    assert_state(&h, "x", "holding");
    assert_int_equal(harness_write(&h, WRITE_DELETE, "x", NULL), 200);
    assert_null(harness_jobset(&h, "x"));
    core_check_invariants(h.core);
    harness_run_all(&h);
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

#define HELD "  finalizers: [example.com/hold]\n"

/* The preemptor is deleted before its victims have ended, but stays for its finalizer: it takes nothing any
 * more, and the victims' room goes to nobody. */
static void test_preemptor_is_deleted_and_stays(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "x", "lq", 1, 4, HIGH HELD);
    assert_state(&h, "x", "holding");
    assert_int_equal(harness_write(&h, WRITE_DELETE, "x", NULL), 200);
    core_check_invariants(h.core);
    assert_state(&h, "x", "pending");
    assert_int_equal(workload_named(&h, "a")->preemptor, 0);
    harness_run_all(&h);
    assert_state(&h, "a", "admitted");
    assert_state(&h, "x", "pending");
    core_check_invariants(h.core);
    harness_done(&h);
}

/* A workload that was tried in vain is deleted: room that comes free does not wake it. */
static void test_parked_is_deleted_and_stays(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", "") LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "x", "lq", 1, 4, HIGH HELD);
    assert_true(workload_named(&h, "x")->parked);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "x", NULL), 200);
    assert_false(workload_named(&h, "x")->parked);
    finish_all(&h, "a", 1);
    assert_state(&h, "x", "pending");
    core_check_invariants(h.core);
    harness_done(&h);
}

/* A machine of the held room is lost meanwhile: the preemptor goes back to the queue. */
static void test_held_machine_is_lost(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 1, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "x", "lq", 1, 4, HIGH);
    harness_lose(&h, "m-1");
    core_check_invariants(h.core);
    assert_state(&h, "x", "pending");
    harness_hello(&h, "m-1", NULL, 0);
    assert_state(&h, "x", "admitted");
    assert_state(&h, "a", "pending");
    harness_done(&h);
}

static void test_victims_limit(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"minimumRunTime\":\"0s\",\"preemptionsPerRequeue\":1}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, LOW);
    submit(&h, "b", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "wide", "lq", 2, 4, HIGH);
    assert_state(&h, "wide", "pending");
    submit(&h, "narrow", "lq", 1, 4, HIGH);
    assert_state(&h, "narrow", "holding");
    harness_done(&h);
}

static void test_fair_sharing(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 8, "{\"minimumRunTime\":\"0s\",\"fairSharing\":{\"enable\":true}}",
          FLAVOR("v5e") CLUSTER_QUEUE("pool", "32", "  cohortName: all\n")
              CLUSTER_QUEUE("a", "0", "  cohortName: all\n  preemption: {reclaimWithinCohort: Any}\n")
                  CLUSTER_QUEUE("b", "0", "  cohortName: all\n  preemption: {reclaimWithinCohort: Any}\n")
                      LOCAL_QUEUE("qa", "a") LOCAL_QUEUE("qb", "b"));
    static const char *const as[] = {"a1", "a2", "a3", "a4"}, *const bs[] = {"b1", "b2", "b3"};
    for (int i = 0; i < 4; i++) {
        h.now_ns += NS_PER_SECOND;
        submit(&h, as[i], "qa", 2, 4, ""); /* everything is lent to a */
    }
    harness_run_all(&h);
    for (int i = 0; i < 3; i++) {
        submit(&h, bs[i], "qb", 2, 4, "");
        harness_run_all(&h);
    }
    assert_state(&h, "b1", "admitted");
    assert_state(&h, "b2", "admitted"); /* half each */
    assert_state(&h, "b3", "pending");
    assert_state(&h, "a4", "pending");
    assert_state(&h, "a3", "pending");
    assert_state(&h, "a2", "admitted");
    harness_done(&h);
}

#define RESIZED_JOB                                                                                          \
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  labels:\n    kueue.x-k8s.io/queue-name: "      \
    "lq\n" HIGH "spec: {parallelism: %d, completions: 3, template: {spec: {restartPolicy: Never, "           \
                "containers: [{name: c, "                                                                    \
    "image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}\n"

/* A Job that preempts for two tasks and then asks for fewer or more is tried anew. */
static void test_resized_while_it_preempts(void **state)
{
    (void)state;
    for (int tasks = 0; tasks <= 3; tasks++) {
        struct harness h;
        char before[512], after[512];
        snprintf(before, sizeof(before), RESIZED_JOB, 2);
        snprintf(after, sizeof(after), RESIZED_JOB, tasks);
        begin(&h, 3, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "12", WITHIN) LOCAL_QUEUE("lq", "cq"));
        submit(&h, "low", "lq", 3, 4, LOW);
        harness_run_all(&h);
        must_apply(&h, before);
        const struct jobset *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("j"))->jobset;
        const struct workload *workload = workload_of(core_admit(h.core), job->uid);
        assert_int_equal(workload->state, WORKLOAD_HOLDING);
        must_apply(&h, after);
        assert_int_equal(workload->podsets[0].count, tasks);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_int_equal(workload->state, WORKLOAD_ADMITTED);
        assert_int_equal(workload->podsets[0].admitted, tasks);
        assert_int_equal(job->spec.rjobs[0].job.parallelism, tasks);
        harness_done(&h);
    }
}

/* An admitted Job may become smaller, and has quota for more tasks than it has from then on: in snapshots
 * too, and when it has finished. */
static void test_resized_while_it_runs(void **state)
{
    (void)state;
    struct harness h;
    char before[512], after[512];
    snprintf(before, sizeof(before), RESIZED_JOB, 3);
    snprintf(after, sizeof(after), RESIZED_JOB, 1);
    begin(&h, 3, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "12", WITHIN) LOCAL_QUEUE("lq", "cq"));
    must_apply(&h, before);
    const struct jobset *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("j"))->jobset;
    const struct workload *workload = workload_of(core_admit(h.core), job->uid);
    assert_int_equal(workload->state, WORKLOAD_ADMITTED);
    must_apply(&h, after);
    assert_int_equal(workload->podsets[0].count, 1);
    harness_check_replay(&h);
    harness_run_all(&h);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lower_priority_goes),
        cmocka_unit_test(test_machines_are_simulated_too),
        cmocka_unit_test(test_gives_back),
        cmocka_unit_test(test_minimum_run_time),
        cmocka_unit_test(test_reclaim_in_cohort),
        cmocka_unit_test(test_limits),
        cmocka_unit_test(test_borrow_within_cohort),
        cmocka_unit_test(test_no_overlap),
        cmocka_unit_test(test_preemptor_goes),
        cmocka_unit_test(test_held_machine_is_lost),
        cmocka_unit_test(test_victims_limit),
        cmocka_unit_test(test_fair_sharing),
        cmocka_unit_test(test_preemptor_is_deleted_and_stays),
        cmocka_unit_test(test_parked_is_deleted_and_stays),
        cmocka_unit_test(test_resized_while_it_preempts),
        cmocka_unit_test(test_resized_while_it_runs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
