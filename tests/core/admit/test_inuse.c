/* Queue objects that are deleted while they are used, and what ClusterQueues count meanwhile. */
#include "queues.h"

#define TOPOLOGY                                                                                             \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Topology\nmetadata: {name: t}\nspec:\n"                       \
    "  levels: [{nodeLabel: phalanx.dev/pod}, {nodeLabel: kubernetes.io/hostname}]\n---\n"                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: v5e}\n"                      \
    "spec: {topologyName: t, nodeLabels: {phalanx.dev/pod: pod-1}}\n---\n"
#define CHECK_OBJECT                                                                                         \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: budget}\n"                   \
    "spec: {controllerName: example.com/budget}\n---\n"
#define CLASS(name, value)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: " name                \
    "}\nvalue: " value "\n---\n"
#define WITHIN "  preemption: {withinClusterQueue: LowerPriority}\n"

static void begin(struct harness *h, const char *objects)
{
    harness_init(h, 2, 4, 0);
    set_queues(h, 2, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, CLASS("low", "1") CLASS("high", "9"));
    must_apply(h, objects);
}

static bool there(struct harness *h, enum object_kind kind, const char *name)
{
    return exists(h, kind, STR(""), str_from(name));
}

static void assert_deletes(struct harness *h, enum object_kind kind, const char *name, bool stays)
{
    assert_int_equal(post(h, WRITE_DELETE, kind, "", name, STR("")), 200);
    if (there(h, kind, name) != stays)
        fail_msg("%s %s", name, stays ? "went" : "stays");
}

/* A ClusterQueue that is deleted stays, and admits nobody, until its last workload has ended. */
static void test_a_queue_stays_while_it_is_used(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "") LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, "");
    harness_run_all(&h);
    assert_deletes(&h, OBJECT_CLUSTER_QUEUE, "cq", true);
    assert_deletes(&h, OBJECT_CLUSTER_QUEUE, "cq", true);
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "a", "admitted");
    assert_state(&h, "b", "pending");
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "Suspended");
    finish_all(&h, "a", 1);
    assert_false(there(&h, OBJECT_CLUSTER_QUEUE, "cq"));
    assert_state(&h, "b", "pending");
    assert_string_equal(message_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "ClusterQueue cq doesn't exist");
    must_apply(&h, CLUSTER_QUEUE("cq", "8", ""));
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

/* A chain of objects that name each other goes with its head, in one step. */
static void test_what_is_named_goes_with_who_names_it(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, TOPOLOGY CHECK_OBJECT CLUSTER_QUEUE(
                  "cq", "8", "  admissionChecksStrategy: {admissionChecks: [{name: budget}]}\n"));
    assert_deletes(&h, OBJECT_TOPOLOGY, "t", true);
    assert_deletes(&h, OBJECT_RESOURCE_FLAVOR, "v5e", true);
    assert_deletes(&h, OBJECT_ADMISSION_CHECK, "budget", true);
    assert_deletes(&h, OBJECT_CLUSTER_QUEUE, "cq", false);
    assert_false(there(&h, OBJECT_RESOURCE_FLAVOR, "v5e"));
    assert_false(there(&h, OBJECT_ADMISSION_CHECK, "budget"));
    assert_false(there(&h, OBJECT_TOPOLOGY, "t"));
    harness_done(&h);
}

/* An object that nobody uses goes at once; another's finalizer holds it as ever. */
static void test_unused_ones_go_at_once(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, FLAVOR("v5e") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: "
                            "held, finalizers: [example.com/hold]}\n");
    assert_deletes(&h, OBJECT_RESOURCE_FLAVOR, "v5e", false);
    assert_deletes(&h, OBJECT_RESOURCE_FLAVOR, "held", true);
    const struct object *held =
        object_find(core_objects(h.core), OBJECT_RESOURCE_FLAVOR, STR(""), STR("held"));
    assert_false(object_has_finalizer(held->document, "kueue.x-k8s.io/resource-in-use"));
    assert_true(object_has_finalizer(held->document, "example.com/hold"));
    harness_done(&h);
}

static struct queue_counts counts_of(struct harness *h, enum object_kind kind, const char *name)
{
    struct queue_condition condition;
    struct queue_counts counts;
    const struct object *object = object_find(
        core_objects(h->core), kind, kind == OBJECT_LOCAL_QUEUE ? STR("default") : STR(""), str_from(name));
    assert_true(queue_status(core_admit(h->core), object, &condition, &counts));
    return counts;
}

#define assert_counts(h, kind, name, p, r, a)                                                                \
    do {                                                                                                     \
        struct queue_counts is = counts_of(h, kind, name);                                                   \
        if (is.pending != (p) || is.reserving != (r) || is.admitted != (a))                                  \
            fail_msg("%u pending, %u reserving, %u admitted", is.pending, is.reserving, is.admitted);        \
    } while (0)

static void sum_usage(void *context, const struct queue_usage *usage)
{
    *(int64_t *)context += usage->reserved;
}

/* While a victim ends it has its quota, and the preemptor is pending. */
static void test_victims_count_until_they_have_ended(void **state)
{
    (void)state;
    struct harness h;
    int64_t used = 0;
    begin(&h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", WITHIN) LOCAL_QUEUE("lq", "cq"));
    submit(&h, "low", "lq", 1, 3, "    kueue.x-k8s.io/priority-class: low\n");
    harness_run_all(&h);
    submit(&h, "high", "lq", 1, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "high", "holding");
    assert_counts(&h, OBJECT_CLUSTER_QUEUE, "cq", 1, 1, 1);
    assert_counts(&h, OBJECT_LOCAL_QUEUE, "lq", 1, 1, 1);
    const struct object *queue = object_find(core_objects(h.core), OBJECT_CLUSTER_QUEUE, STR(""), STR("cq"));
    queue_usage_visit(core_admit(h.core), queue, sum_usage, &used);
    assert_int_equal(used, 3);
    harness_run_all(&h);
    assert_state(&h, "high", "admitted");
    assert_counts(&h, OBJECT_CLUSTER_QUEUE, "cq", 1, 1, 1); /* the other way round */
    harness_done(&h);
}

/* Workloads of a stopped LocalQueue, and deactivated ones, wait for nothing: they are not pending. */
static void test_stopped_ones_are_not_pending(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", "") LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 2, 4, "");
    assert_counts(&h, OBJECT_CLUSTER_QUEUE, "cq", 1, 0, 0);
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, namespace: "
                   "default}\nspec: {clusterQueue: cq, stopPolicy: Hold}\n");
    assert_counts(&h, OBJECT_CLUSTER_QUEUE, "cq", 0, 0, 0);
    assert_counts(&h, OBJECT_LOCAL_QUEUE, "lq", 0, 0, 0);
    must_apply(&h, LOCAL_QUEUE("lq", "cq"));
    assert_counts(&h, OBJECT_LOCAL_QUEUE, "lq", 1, 0, 0);
    harness_done(&h);
}

/* Everything that keeps a queue from admitting is told at once. */
static void test_every_complaint_is_told(void **state)
{
    (void)state;
    struct harness h;
    struct queue_condition condition;
    struct queue_counts counts;
    begin(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n"
              "  namespaceSelector: {}\n  admissionChecksStrategy: {admissionChecks: [{name: nobody}]}\n"
              "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n    flavors:\n"
              "    - {name: a, resources: [{name: google.com/tpu, nominalQuota: 4}]}\n"
              "    - {name: b, resources: [{name: google.com/tpu, nominalQuota: 4}]}\n");
    const struct object *queue = object_find(core_objects(h.core), OBJECT_CLUSTER_QUEUE, STR(""), STR("cq"));
    assert_true(queue_status(core_admit(h.core), queue, &condition, &counts));
    assert_string_equal(condition.reason, "FlavorNotFound");
    assert_true(str_is(condition.message,
                       "Can't admit new workloads: references missing ResourceFlavor(s): a,b, references "
                       "missing AdmissionCheck(s): nobody."));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_queue_stays_while_it_is_used),
        cmocka_unit_test(test_what_is_named_goes_with_who_names_it),
        cmocka_unit_test(test_unused_ones_go_at_once),
        cmocka_unit_test(test_victims_count_until_they_have_ended),
        cmocka_unit_test(test_stopped_ones_are_not_pending),
        cmocka_unit_test(test_every_complaint_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
