/* Why a gang waits: exact, in numbers, with names, for who reads it and for who watches. */
#include "queues.h"

#define RACKS "\"racks\":[{\"machines\":4,\"chips\":4},{\"machines\":3,\"chips\":4}]"

static void setup(struct harness *h, const char *quota, const char *more)
{
    char yaml[1024], json[1024];
    harness_init(h, 7, 4, 0);
    snprintf(json, sizeof(json),
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},"
             "\"spec\":{\"settings\":{\"checkpointDir\":\"/ckpt\"},\"machineNames\":\"m-{n}\","
             "\"addresses\":\"127.0.1.1\",\"pods\":[{" RACKS "}]}}");
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(json);
    harness_step(h, &event);
    snprintf(yaml, sizeof(yaml),
             FLAVOR("v5e") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: team}\n"
                           "spec:\n  namespaceSelector: {}\n%s  resourceGroups:\n"
                           "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"
                           "      resources: [{name: google.com/tpu, nominalQuota: %s}]\n---\n" LOCAL_QUEUE(
                               "q", "team"),
             more, quota);
    must_apply(h, yaml);
}

static void submit_rack(struct harness *h, const char *name, int tasks)
{
    char yaml[2048];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, namespace: default, "
        "labels: {kueue.x-k8s.io/queue-name: q}}\nspec:\n  replicatedJobs:\n  - name: w\n    template: "
        "{spec: {parallelism: %d, completions: %d, template: {metadata: {annotations: "
        "{kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack}}, spec: {restartPolicy: Never, "
        "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}\n",
        name, tasks, tasks);
    must_apply(h, yaml);
}

static void assert_explained(struct harness *h, const char *jobset, const char *reason, const char *message)
{
    struct buf out BUF_CLEANUP = {0};
    uint64_t digest = core_digest(h->core);
    const char *found = workload_explain(h->core, workload_named(h, jobset), &out);
    if (!found || strcmp(found, reason) != 0 || !out.data || strcmp(out.data, message) != 0)
        fail_msg("%s: %s: %s", jobset, found ? found : "nothing", out.data ? out.data : "");
    assert_true(core_digest(h->core) == digest); /* reading changes nothing */
}

/* Machines that lack are named, and who has them; what is said follows what happens. */
static void test_machines_are_named(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "100", "");
    submit(&h, "small", "q", 1, 4, ""); /* in the smaller rack */
    submit_rack(&h, "b", 4);
    assert_state(&h, "b", "admitted");
    submit_rack(&h, "c", 3);
    assert_state(&h, "c", "pending");
    const char *taken = "needs 3 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-2 has 2: "
                        "m-5 taken by default/small";
    assert_explained(&h, "c", "TopologyPlacementFailed", taken);
    assert_string_equal(message_of(&h, "c", WORKLOAD_QUOTA_RESERVED), taken);
    must_apply(&h, "apiVersion: v1\nkind: Node\nmetadata: {name: m-7}\nspec: {unschedulable: true}\n");
    assert_explained(&h, "c", "TopologyPlacementFailed",
                     "needs 3 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-2 has 1: "
                     "m-5 taken by default/small, m-7 drained");
    harness_done(&h);
}

/* All that ask for the same say the same, whoever of them was tried. */
static void test_likes_say_the_same(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "12", "");
    submit(&h, "a", "q", 1, 4, "");
    submit(&h, "b", "q", 1, 4, "");
    char names[20][8];
    for (int i = 0; i < 20; i++) {
        snprintf(names[i], sizeof(names[i]), "w-%d", i);
        submit(&h, names[i], "q", 2, 4, "");
    }
    for (int i = 0; i < 20; i++)
        assert_non_null(strstr(message_of(&h, names[i], WORKLOAD_QUOTA_RESERVED), "needs 8, 4 of 12 free"));
    submit(&h, "c", "q", 1, 4, "");
    harness_run_all(&h);
    finish_all(&h, "c", 1);
    finish_all(&h, "b", 1);
    assert_state(&h, "w-0", "admitted");
    for (int i = 1; i < 20; i++) {
        assert_non_null(strstr(message_of(&h, names[i], WORKLOAD_QUOTA_RESERVED), "needs 8, 0 of 12 free"));
        struct buf out BUF_CLEANUP = {0};
        workload_explain(h.core, workload_named(&h, names[i]), &out);
        assert_string_equal(out.data, message_of(&h, names[i], WORKLOAD_QUOTA_RESERVED));
    }
    harness_done(&h);
}

static void test_behind_another(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "12", "  queueingStrategy: StrictFIFO\n");
    submit(&h, "a", "q", 1, 4, "");
    submit(&h, "b", "q", 3, 4, "");
    submit(&h, "c", "q", 1, 4, "");
    assert_state(&h, "c", "pending");
    assert_explained(&h, "c", "PendingEvaluation", "waits behind default/b in StrictFIFO ClusterQueue team");
    harness_done(&h);
}

/* AdmissionChecks are asked of nobody: the queue says so and admits nobody. */
static void test_admission_checks(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "12", "  admissionChecksStrategy: {admissionChecks: [{name: audit}]}\n");
    submit(&h, "a", "q", 1, 4, "");
    assert_state(&h, "a", "pending");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "Suspended");
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED),
                        "ClusterQueue team is inactive: Can't admit new workloads: references missing "
                        "AdmissionCheck(s): audit.");
    must_apply(&h, CLUSTER_QUEUE("team", "12", ""));
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

static void assert_misconfigured(struct harness *h, const char *jobset, const char *message)
{
    assert_string_equal(reason_of(h, jobset, WORKLOAD_QUOTA_RESERVED), "Misconfigured");
    assert_string_equal(message_of(h, jobset, WORKLOAD_QUOTA_RESERVED), message);
    assert_false(holds(h, jobset, WORKLOAD_QUOTA_RESERVED));
    assert_state(h, jobset, "pending");
}

/* A queue that is not there, or not for the namespace, is a mistake of somebody: the Workload says which, and
 * goes on when it is mended. */
static void test_misconfigured(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, "100", "");
    submit(&h, "a", "nowhere", 1, 4, "");
    assert_misconfigured(&h, "a", "LocalQueue nowhere doesn't exist");
    must_apply(&h, LOCAL_QUEUE("nowhere", "gone"));
    assert_misconfigured(&h, "a", "ClusterQueue gone doesn't exist");
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: gone}\nspec:\n"
                   "  namespaceSelector: {matchLabels: {team: blue}}\n  resourceGroups:\n"
                   "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"
                   "      resources: [{name: google.com/tpu, nominalQuota: 4}]\n");
    assert_misconfigured(&h, "a", "Workload namespace doesn't match ClusterQueue selector");
    must_apply(&h, "apiVersion: v1\nkind: Namespace\nmetadata: {name: default, labels: {team: blue}}\n");
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_misconfigured),      cmocka_unit_test(test_machines_are_named),
        cmocka_unit_test(test_likes_say_the_same), cmocka_unit_test(test_behind_another),
        cmocka_unit_test(test_admission_checks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
