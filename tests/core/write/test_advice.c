/* Warnings about workloads that are accepted and name what does not exist. */
#include "core/job/story.h"

#define NAMES(pod, resource)                                                                                 \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, namespace: default}\n"          \
    "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 1, completions: 1, "                   \
    "template: {spec: {restartPolicy: Never, " pod "containers: [{name: main, image: none, command: [run], " \
    "resources: {limits: {" resource ": 1}}}]}}}}}]}\n"

static const char claim[] = "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: dataset}\n"
                            "spec: {accessModes: [ReadWriteMany], resources: {requests: {storage: 1Gi}}}\n";

/* Returns the advice of core_check_write about the JobSet, one sentence a line. */
static const char *advice(struct harness *h, const char *yaml)
{
    static char text[1024];
    struct buf json = {0};
    struct write_event write = harness_write_event(OBJECT_JOBSET, WRITE_CREATE, "a", yaml, &json);
    text[0] = 0;
    assert_true(core_check_write(h->core, &write, h->now_ns, &h->effects, NULL));
    for (size_t i = 0; i < h->effects.list.len; i++) {
        assert_int_equal(h->effects.list.items[i].kind, EFFECT_WARNING);
        size_t used = strlen(text);
        snprintf(text + used, sizeof(text) - used, STR_FORMAT "\n",
                 STR_ARG(h->effects.list.items[i].warning));
    }
    buf_done(&json);
    return text;
}

static void what_exists_gives_no_warning(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_string_equal(advice(&h, NAMES("priorityClassName: high, ", "google.com/tpu")), "");
    assert_string_equal(advice(&h, NAMES("priorityClassName: system-node-critical, ", "google.com/tpu")), "");
    harness_done(&h);
}

static void an_unknown_priority_class(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_string_equal(advice(&h, NAMES("priorityClassName: hihg, ", "google.com/tpu")),
                        "priorityClassName: no PriorityClass \"hihg\" exists, so the priority is 0; did you "
                        "mean \"high\"?\n");
    assert_string_equal(advice(&h, NAMES("priorityClassName: nosuch, ", "google.com/tpu")),
                        "priorityClassName: no PriorityClass \"nosuch\" exists, so the priority is 0\n");
    harness_done(&h);
}

#define ANNOTATED(key)                                                                                       \
    "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\n"                                                   \
    "metadata: {name: a, namespace: default, annotations: {" key ": '1'}}\n"                                 \
    "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 1, completions: 1, "                   \
    "template: {spec: {restartPolicy: Never, containers: [{name: main, image: none, command: "               \
    "[run]}]}}}}}]}\n"

static void an_unknown_annotation(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_string_equal(advice(&h, ANNOTATED("phalanx.dev/spares")), "");
    assert_string_equal(advice(&h, ANNOTATED("example.com/spares")), "");
    assert_string_equal(advice(&h, ANNOTATED("phalanx.dev/sparse")),
                        "annotation phalanx.dev/sparse is not known, so it has no effect; did you mean "
                        "phalanx.dev/spares?\n");
    assert_string_equal(advice(&h, ANNOTATED("phalanx.dev/colour")),
                        "annotation phalanx.dev/colour is not known, so it has no effect\n");
    harness_done(&h);
}

static void another_accelerator(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_string_equal(advice(&h, NAMES("", "nvidia.com/gpu")),
                        "this cluster's machines have google.com/tpu: each nvidia.com/gpu that is asked for "
                        "counts as one of them\n");
    harness_done(&h);
}

/* More than any machine has, as its agent told or the cluster file says: probably a slip of the unit. */
static void what_no_machine_has(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_string_equal(advice(&h, NAMES("", "memory: 900Ti, cpu")), ""); /* agents have not told */
    h.found_cpu_milli = 8500;
    h.found_memory_bytes = INT64_C(24559364) << 10;
    harness_hello(&h, "m-2", NULL, 0);
    h.found_memory_bytes = INT64_C(8) << 30;
    harness_hello(&h, "m-1", NULL, 0);
    assert_string_equal(advice(&h, NAMES("", "memory: 23Gi, cpu")), "");
    assert_string_equal(advice(&h, NAMES("", "memory: 900Ti, google.com/tpu")),
                        "memory: each Pod asks for 900.0Ti, and the largest machine has 23.4Gi\n");
    assert_string_equal(advice(&h, NAMES("", "cpu: 9, google.com/tpu")),
                        "cpu: each Pod asks for 9, and the largest machine has 8500m\n");
    harness_check_replay(&h);
    harness_hello(&h, "m-2", NULL, 0); /* a smaller one has taken its place */
    assert_string_equal(advice(&h, NAMES("", "memory: 23Gi, cpu")),
                        "memory: each Pod asks for 23.0Gi, and the largest machine has 8.0Gi\n");
    harness_done(&h);
    harness_init_with(&h, 2, 4, 0, "\"memory\": \"16Gi\",");
    h.found_memory_bytes = INT64_C(8) << 30; /* the cluster file's word counts */
    harness_hello(&h, "m-2", NULL, 0);
    assert_string_equal(advice(&h, NAMES("", "memory: 17Gi, cpu")),
                        "memory: each Pod asks for 17.0Gi, and the largest machine has 16.0Gi\n");
    harness_done(&h);
}

#define MOUNTS(name) "volumes: [{name: d, persistentVolumeClaim: {claimName: " name "}}], "

static void a_claim_that_does_not_exist(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_write_checked(&h, OBJECT_CLAIM, WRITE_CREATE, "dataset", claim);
    assert_int_equal(h.last_code, 201);
    assert_string_equal(advice(&h, NAMES(MOUNTS("dataset"), "google.com/tpu")), "");
    assert_string_equal(advice(&h, NAMES(MOUNTS("datset"), "google.com/tpu")),
                        "volume \"d\": no PersistentVolumeClaim \"datset\" exists in namespace \"default\", "
                        "so its Pods wait until it does; did you mean \"dataset\"?\n");
    harness_done(&h);
}

/* A Pod waits for the claim that it names, and starts when somebody makes it. */
static void its_pods_wait_for_the_claim(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    harness_create(&h, NAMES(MOUNTS("dataset"), "google.com/tpu"));
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-0")->state, TASK_PLACED);
    assert_non_null(
        strstr(last_note(&h, "Failed")->message.data, "persistentvolumeclaim \"dataset\" not found"));
    harness_check_replay(&h);
    harness_write_checked(&h, OBJECT_CLAIM, WRITE_CREATE, "dataset", claim);
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "a-w-0-0")->state, TASK_RUNNING);
    harness_check_replay(&h);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_exists_gives_no_warning), cmocka_unit_test(an_unknown_priority_class),
        cmocka_unit_test(an_unknown_annotation),        cmocka_unit_test(another_accelerator),
        cmocka_unit_test(what_no_machine_has),          cmocka_unit_test(a_claim_that_does_not_exist),
        cmocka_unit_test(its_pods_wait_for_the_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
