/* Admission: quota and machines together, order of queues, who may not, eviction and coming back. */
#include "queues.h"

static void one_queue(struct harness *h, const char *quota_yaml)
{
    harness_init(h, 6, 4, 0);
    must_apply(h, quota_yaml);
}

#define PLAIN(quota) FLAVOR("v5e") CLUSTER_QUEUE("cq", quota, "") LOCAL_QUEUE("lq", "cq")

static void test_admitted_in_one_step(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("16"));
    submit(&h, "a", "lq", 4, 4, "");
    assert_state(&h, "a", "admitted");
    struct jobset *jobset = harness_jobset(&h, "a");
    assert_false(jobset->spec.suspend);
    assert_int_equal(jobset->gangs.items[0]->state, GANG_PLACED); /* in the step of its creation */
    assert_true(holds(&h, "a", WORKLOAD_QUOTA_RESERVED) && holds(&h, "a", WORKLOAD_IS_ADMITTED));
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "Quota reserved in ClusterQueue cq");
    assert_false(holds(&h, "a", WORKLOAD_PODS_READY));
    harness_run_all(&h);
    assert_true(holds(&h, "a", WORKLOAD_PODS_READY));
    submit(&h, "b", "lq", 1, 1, "");
    assert_state(&h, "b", "pending");
    assert_true(harness_jobset(&h, "b")->spec.suspend);
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "WaitingForQuota");
    assert_string_equal(
        message_of(&h, "b", WORKLOAD_QUOTA_RESERVED),
        "couldn't assign flavors to pod set w: insufficient unused quota for google.com/tpu in "
        "flavor v5e, 1 more needed (ClusterQueue cq: google.com/tpu in flavor v5e: needs 1, 0 "
        "of 16 free, may borrow 0)");
    finish_all(&h, "a", 4);
    assert_state(&h, "a", "finished");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_IS_FINISHED), "Succeeded");
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

/* Quota without machines admits nobody. */
static void test_no_quota_without_machines(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("100"));
    harness_news(&h, EVENT_MACHINE_GONE, "m-1");
    submit(&h, "a", "lq", 6, 4, "");
    assert_state(&h, "a", "pending");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "TopologyPlacementFailed");
    assert_non_null(strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "needs 6 machines"));
    harness_hello(&h, "m-1", NULL, 0);
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

static void test_users_resume_is_set_back(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("4"));
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "b", "pending");
    struct buf json = {0};
    struct arena arena = {0};
    struct doc *document = doc_clone(&arena, harness_jobset(&h, "b")->document);
    doc_set(&arena, doc_get(document, "spec"), STR("suspend"), doc_new_bool(&arena, false));
    json_write(&json, document);
    assert_int_equal(post(&h, WRITE_REPLACE, OBJECT_JOBSET, "default", "b", buf_str(&json)), 200);
    assert_true(harness_jobset(&h, "b")->spec.suspend);
    assert_int_equal(harness_jobset(&h, "b")->generation, 1); /* what was refused is no change */
    buf_done(&json);
    arena_done(&arena);
    harness_done(&h);
}

static void test_best_effort_lets_smaller_pass(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("8"));
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "large", "lq", 2, 4, "");
    submit(&h, "small", "lq", 1, 4, "");
    assert_state(&h, "large", "pending");
    assert_state(&h, "small", "admitted");
    harness_run_all(&h);
    finish_all(&h, "a", 1);
    assert_state(&h, "large", "pending");
    finish_all(&h, "small", 1);
    assert_state(&h, "large", "admitted");
    harness_done(&h);
}

static void test_strict_head_blocks(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "  queueingStrategy: StrictFIFO\n")
                      LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "large", "lq", 2, 4, "");
    submit(&h, "small", "lq", 1, 4, "");
    assert_state(&h, "small", "pending");
    harness_run_all(&h);
    finish_all(&h, "a", 1);
    assert_state(&h, "large", "admitted");
    assert_state(&h, "small", "pending");
    harness_done(&h);
}

static void test_priority_goes_first(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("4"));
    must_apply(&h,
               "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: urgent}\n"
               "value: 100\n");
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "b", "lq", 1, 4, "");
    submit(&h, "c", "lq", 1, 4, "    kueue.x-k8s.io/priority-class: urgent\n");
    harness_run_all(&h);
    finish_all(&h, "a", 1);
    assert_state(&h, "b", "pending");
    assert_state(&h, "c", "admitted");
    harness_done(&h);
}

/* Queues that do not exist yet, are stopped, or do not want the namespace. */
static void test_queues_come_and_stop(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    submit(&h, "a", "lq", 1, 4, "");
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "LocalQueue lq doesn't exist");
    must_apply(&h, LOCAL_QUEUE("lq", "cq"));
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "ClusterQueue cq doesn't exist");
    must_apply(&h, CLUSTER_QUEUE("cq", "8", ""));
    assert_non_null(strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "missing ResourceFlavor(s): v5e"));
    must_apply(&h, FLAVOR("v5e"));
    assert_state(&h, "a", "admitted");
    harness_run_all(&h);
    must_apply(&h, CLUSTER_QUEUE("cq", "8", "  stopPolicy: Hold\n"));
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "a", "admitted");
    assert_state(&h, "b", "pending");
    must_apply(&h, CLUSTER_QUEUE("cq", "8", "  stopPolicy: HoldAndDrain\n"));
    assert_state(&h, "a", "leaving");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "ClusterQueueStopped");
    harness_run_all(&h);
    assert_state(&h, "a", "pending");
    assert_int_equal(harness_jobset(&h, "a")->restarts, 0);
    must_apply(&h, CLUSTER_QUEUE("cq", "8", ""));
    assert_state(&h, "a", "admitted");
    assert_state(&h, "b", "admitted");
    harness_run_all(&h);
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, namespace: "
                   "default}\nspec: {clusterQueue: cq, stopPolicy: HoldAndDrain}\n");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "LocalQueueStopped");
    harness_run_all(&h);
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\n"
                   "spec: {resourceGroups: []}\n");
    must_apply(&h, LOCAL_QUEUE("lq", "cq"));
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED),
                        "Workload namespace doesn't match ClusterQueue selector");
    harness_done(&h);
}

/* A JobSet that nobody manages is as it always was. */
static void test_without_a_queue(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("0"));
    harness_create(&h,
                   "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec:\n"
                   "  replicatedJobs:\n  - name: w\n    template: {spec: {template: {spec: {containers: "
                   "[{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}\n");
    assert_null(workload_named(&h, "a"));
    assert_int_equal(harness_jobset(&h, "a")->gangs.items[0]->state, GANG_PLACED);
    harness_done(&h);
}

static void test_deletion_gives_quota_back(void **state)
{
    (void)state;
    struct harness h;
    one_queue(&h, PLAIN("4"));
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "b", "lq", 1, 4, "");
    submit(&h, "c", "lq", 1, 4, "");
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "b", NULL), 200);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "a", NULL), 200);
    assert_state(&h, "c", "pending"); /* its task still ends */
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "a"));
    assert_state(&h, "c", "admitted");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_admitted_in_one_step),
        cmocka_unit_test(test_no_quota_without_machines),
        cmocka_unit_test(test_users_resume_is_set_back),
        cmocka_unit_test(test_best_effort_lets_smaller_pass),
        cmocka_unit_test(test_strict_head_blocks),
        cmocka_unit_test(test_priority_goes_first),
        cmocka_unit_test(test_queues_come_and_stop),
        cmocka_unit_test(test_without_a_queue),
        cmocka_unit_test(test_deletion_gives_quota_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
