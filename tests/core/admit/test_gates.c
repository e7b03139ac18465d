/* kueue.x-k8s.io/admission-gated-by: a workload waits until others let go of it. */
#include "queues.h"

#include "../object/object_test.h"

static const char *job(const char *gates)
{
    static char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, labels: "
             "{kueue.x-k8s.io/queue-name: lq}%s%s%s}\nspec:\n  replicatedJobs:\n  - name: w\n    template: "
             "{spec: {backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
             "i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}\n",
             gates ? ", annotations: {kueue.x-k8s.io/admission-gated-by: \"" : "", gates ? gates : "",
             gates ? "\"}" : "");
    return yaml;
}

static void begin(struct harness *h)
{
    harness_init(h, 2, 4, 0);
    must_apply(h, FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "") LOCAL_QUEUE("lq", "cq"));
}

/* A workload is admitted when its last gate is taken away, and is not pending before. */
static void test_waits_for_its_gates(void **state)
{
    (void)state;
    struct harness h;
    struct queue_condition condition;
    struct queue_counts counts;
    begin(&h);
    must_apply(&h, job("example.com/a, example.com/b"));
    assert_state(&h, "a", "pending");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "AdmissionGated");
    assert_string_equal(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED),
                        "Admission is gated by: example.com/a, example.com/b");
    assert_true(queue_status(core_admit(h.core),
                             object_find(core_objects(h.core), OBJECT_CLUSTER_QUEUE, STR(""), STR("cq")),
                             &condition, &counts));
    assert_int_equal(counts.pending, 0);
    must_apply(&h, job("example.com/b"));
    assert_state(&h, "a", "pending");
    must_apply(&h, job(NULL));
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

/* Gates have names, each once; later ones may only go. */
static void test_gates_have_a_form(void **state)
{
    (void)state;
    static const struct {
        const char *was, *is;
        int code;
    } rows[] = {
        {NULL, "example.com/a", 422},
        {"example.com/a", NULL, 0},
        {"example.com/a", "example.com/a", 0},
        {"example.com/a,example.com/b", "example.com/b", 0},
        {"example.com/a", "example.com/b", 422},
        {"example.com/a", "example.com/a,example.com/b", 422},
    };
    static const char *const wrong[] = {"a", "example.com/a,", "example.com/a,example.com/a", "Bad_/a", "/a"};
    struct harness h;
    begin(&h);
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++)
        if (check(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", job(wrong[i])) != 422)
            fail_msg("%s", wrong[i]);
    assert_int_equal(check(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", job("")), 0);
    harness_done(&h);
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        begin(&h);
        must_apply(&h, job(rows[i].was));
        if (check(&h, WRITE_REPLACE, OBJECT_JOBSET, "default", "a", job(rows[i].is)) != rows[i].code)
            fail_msg("row %zu: %d %s", i, h.last_code, h.last_message);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_waits_for_its_gates),
        cmocka_unit_test(test_gates_have_a_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
