/* Pods of their own in queues: they wait at Kueue's gate, run when they are admitted, and are deleted when
 * they are evicted. */
#include "queues.h"

#define POD(name, labels, more)                                                                              \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: " name ", namespace: default, labels: {" labels "}}\n"      \
    "spec:\n  restartPolicy: Never\n" more                                                                   \
    "  containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]\n"
#define QUEUED "kueue.x-k8s.io/queue-name: q"

static void setup(struct harness *h, const char *policy)
{
    char yaml[2048];
    harness_init(h, 2, 4, 0);
    set_queues(h, 2, 4, "{\"minimumRunTime\":\"0s\"}");
    snprintf(yaml, sizeof(yaml),
             FLAVOR("v5e") CLUSTER_QUEUE("team", "4", "  preemption: {withinClusterQueue: %s}\n")
                 LOCAL_QUEUE("q", "team") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                                          "metadata: {name: high}\nvalue: 100\n",
             policy);
    must_apply(h, yaml);
}

static struct task *pod(struct harness *h, const char *name)
{
    return jobs_find_pod(core_jobs(h->core), STR("default"), str_from(name));
}

static const struct workload *workload_of_pod(struct harness *h, const char *name)
{
    const struct task *task = pod(h, name);
    return task ? workload_of(core_admit(h->core), task->job->jobset->uid) : NULL;
}

static size_t gates(struct harness *h, const char *name)
{
    const struct jobset *owner = pod(h, name)->job->jobset;
    return doc_len(doc_path(owner->document, "spec", "schedulingGates", NULL));
}

static void test_one_waits_at_its_gate(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "Never");
    must_apply(&h, POD("a", QUEUED, ""));
    assert_int_equal(pod(&h, "a")->state, TASK_STARTING);
    assert_int_equal(gates(&h, "a"), 0);
    assert_int_equal(strncmp(workload_of_pod(&h, "a")->name.data, "pod-a-", 6), 0);
    must_apply(&h, POD("b", QUEUED, "")); /* quota for one */
    assert_int_equal(pod(&h, "b")->state, TASK_PENDING);
    assert_int_equal(gates(&h, "b"), 1);
    assert_int_equal(workload_of_pod(&h, "b")->state, WORKLOAD_PENDING);
    assert_true(str_is(pod(&h, "b")->gang->why,
                       "Scheduling is blocked due to non-empty scheduling gates: kueue.x-k8s.io/admission"));
    must_apply(&h, POD("c", "app: z", "")); /* nobody waits behind a gate */
    assert_int_equal(pod(&h, "c")->state, TASK_STARTING);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "a"), 0);
    assert_int_equal(workload_of_pod(&h, "a")->state, WORKLOAD_FINISHED);
    assert_int_equal(pod(&h, "b")->state, TASK_STARTING);
    assert_int_equal(gates(&h, "b"), 0);
    core_check_invariants(h.core);
    harness_done(&h);
}

static void test_an_evicted_one_is_deleted(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "LowerPriority");
    must_apply(&h, POD("low", QUEUED, ""));
    harness_run_all(&h);
    must_apply(&h, POD("high", QUEUED ", kueue.x-k8s.io/priority-class: high", ""));
    assert_int_equal(workload_of_pod(&h, "low")->state, WORKLOAD_LEAVING);
    assert_int_equal(workload_of_pod(&h, "high")->state, WORKLOAD_HOLDING);
    assert_int_equal(pod(&h, "low")->state, TASK_STOPPING);
    core_check_invariants(h.core);
    harness_exit(&h, pod(&h, "low"), 143);
    assert_null(pod(&h, "low"));
    assert_int_equal(pod(&h, "high")->state, TASK_STARTING);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Deleted by its user while it has its notice: the notice is over, and the time when it would have ended is
 * a time like others. */
#define HELD(finalizers)                                                                                     \
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a, namespace: default, labels: {" QUEUED                    \
    "}, finalizers: " finalizers "}\nspec:\n  restartPolicy: Never\n"                                        \
    "  containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]\n"

/* Evicted and ended, but held by a finalizer: it waits at no gate again, and goes when it is let go. */
static void test_an_evicted_one_is_held(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "LowerPriority");
    must_apply(&h, HELD("[example.com/hold]"));
    harness_run_all(&h);
    must_apply(&h, POD("high", QUEUED ", kueue.x-k8s.io/priority-class: high", ""));
    harness_run_all(&h);
    assert_non_null(pod(&h, "a"));
    assert_true(pod(&h, "a")->job->jobset->deleted_ns != 0);
    must_apply(&h, HELD("[]"));
    assert_null(pod(&h, "a"));
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Deleted and held while it is admitted: at the end of its lifetime its Workload goes, in the same step. */
static void test_a_held_ones_workload_goes(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "Never");
    set_queues(&h, 2, 4, "{\"minimumRunTime\":\"0s\",\"maximumLifetime\":\"1h\"}");
    must_apply(&h, HELD("[example.com/hold]"));
    harness_run_all(&h);
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_DELETE, "a", NULL), 200);
    harness_run_all(&h);
    assert_true(pod(&h, "a")->job->jobset->deleted_ns != 0);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    assert_null(workload_of_pod(&h, "a"));
    harness_done(&h);
}

static void test_one_is_deleted_with_its_notice(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "LowerPriority");
    must_apply(&h, POD("low", QUEUED, ""));
    harness_run_all(&h);
    struct task_report report = {.kind = REPORT_JOINED, .task = pod(&h, "low")->uid};
    harness_report(&h, &report, pod(&h, "low")->machine);
    must_apply(&h, POD("high", QUEUED ", kueue.x-k8s.io/priority-class: high", ""));
    assert_int_equal(workload_of_pod(&h, "low")->state, WORKLOAD_LEAVING);
    assert_int_equal(pod(&h, "low")->state, TASK_RUNNING);
    harness_wait(&h, NS_PER_SECOND);
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "low", STR("")) < 300);
    assert_int_equal(pod(&h, "low")->state, TASK_STOPPING);
    harness_wait(&h, 60 * NS_PER_SECOND); /* it does not die */
    assert_int_equal(pod(&h, "low")->state, TASK_STOPPING);
    harness_check_replay(&h);
    harness_exit(&h, pod(&h, "low"), 143);
    assert_null(pod(&h, "low"));
    assert_int_equal(workload_of_pod(&h, "high")->state, WORKLOAD_ADMITTED);
    harness_done(&h);
}

static void test_gates_of_others_come_first(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "Never");
    must_apply(&h, POD("a", QUEUED, "  schedulingGates: [{name: mine}]\n"));
    assert_int_equal(gates(&h, "a"), 2);
    assert_int_equal(workload_of_pod(&h, "a")->state, WORKLOAD_PENDING);
    must_apply(&h, POD("b", "app: z", "  schedulingGates: [{name: mine}]\n"));
    assert_int_equal(pod(&h, "b")->state, TASK_PENDING);
    assert_null(workload_of_pod(&h, "b"));
    must_apply(&h, POD("b", "app: z", ""));
    assert_int_equal(pod(&h, "b")->state, TASK_STARTING);
    must_apply(&h, POD("a", QUEUED, ""));
    assert_int_equal(workload_of_pod(&h, "a")->state, WORKLOAD_ADMITTED);
    assert_int_equal(pod(&h, "a")->state, TASK_STARTING);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* Deleted while it waits, its Workload goes with it. */
static void test_one_that_waits_is_deleted(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "Never");
    must_apply(&h, POD("a", QUEUED, ""));
    must_apply(&h, POD("b", QUEUED, ""));
    obj_id jobset = pod(&h, "b")->job->jobset->uid;
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "b", STR("")) < 300);
    assert_null(pod(&h, "b"));
    assert_null(workload_of(core_admit(h.core), jobset));
    harness_done(&h);
}

/* The requests of a whole Pod (spec.resources) cost quota and room on machines; containers' requests for
 * the same resource are part of it. */
static void test_resources_of_the_whole_pod(void **state)
{
    (void)state;
    static const struct {
        const char *whole, *container;
        int64_t cpu_milli;
    } rows[] = {
        {"{requests: {cpu: 3}}", "{}", 3000},
        {"{requests: {cpu: 3}}", "{requests: {cpu: 1}}", 3000},
        {"{limits: {cpu: 2}}", "{}", 2000},
        {"{limits: {cpu: 2}}", "{requests: {cpu: 1}}", 1000},
        {"{requests: {memory: 1Gi}}", "{requests: {cpu: 1500m}}", 1500},
        {"{}", "{requests: {cpu: 500m}}", 500},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct harness h;
        char yaml[1024];
        harness_init(&h, 2, 4, 0);
        must_apply(
            &h,
            FLAVOR("any") LOCAL_QUEUE(
                "lq", "cq") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\n"
                            "spec:\n  namespaceSelector: {}\n  resourceGroups:\n  - coveredResources: [cpu, "
                            "memory]\n    flavors:\n    - name: any\n      resources: [{name: cpu, "
                            "nominalQuota: 5}, {name: memory, nominalQuota: 8Gi}]\n");
        for (int pod = 0; pod < 2; pod++) {
            snprintf(yaml, sizeof(yaml),
                     "apiVersion: v1\nkind: Pod\nmetadata: {name: p%d, labels: {kueue.x-k8s.io/queue-name: "
                     "lq}}\nspec: {restartPolicy: Never, resources: %s, containers: [{name: c, image: i, "
                     "command: [run], resources: %s}]}\n",
                     pod, rows[i].whole, rows[i].container);
            must_apply(&h, yaml);
        }
        const struct task *task = jobs_find_pod(core_jobs(h.core), STR("default"), STR("p1"));
        const struct workload *workload = workload_of(core_admit(h.core), task->job->jobset->uid);
        assert_int_equal(workload->podsets[0].resources[0].per_task, rows[i].cpu_milli);
        assert_int_equal(task->job->rjob->job.pod.cpu_request_milli, rows[i].cpu_milli);
        assert_int_equal(workload->state,
                         2 * rows[i].cpu_milli > 5000 ? WORKLOAD_PENDING : WORKLOAD_ADMITTED);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_resources_of_the_whole_pod),
        cmocka_unit_test(test_one_waits_at_its_gate),
        cmocka_unit_test(test_an_evicted_one_is_deleted),
        cmocka_unit_test(test_an_evicted_one_is_held),
        cmocka_unit_test(test_a_held_ones_workload_goes),
        cmocka_unit_test(test_one_is_deleted_with_its_notice),
        cmocka_unit_test(test_gates_of_others_come_first),
        cmocka_unit_test(test_one_that_waits_is_deleted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
