/* Disruption budgets: what their status counts as pods start, end and are evicted; which evictions pass. */
#include "core/object/object_test.h"

#define JOB                                                                                                  \
    "{apiVersion: batch/v1, kind: Job, metadata: {name: j}, spec: {parallelism: 3, completions: 3, "         \
    "completionMode: Indexed, template: {metadata: {labels: {app: a}}, spec: {restartPolicy: Never, "        \
    "containers: [{name: c, image: i, command: [x]}]}}}}"

static int put_budget(struct harness *h, enum write_verb verb, const char *spec)
{
    char yaml[512];
    snprintf(yaml, sizeof yaml,
             "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, "
             "spec: %s}",
             spec);
    return put(h, verb, OBJECT_DISRUPTION_BUDGET, "default", "b", yaml);
}

/* "allowed healthy desired expected" */
static void expect(struct harness *h, int allowed, int healthy, int desired, int expected)
{
    const struct doc *status =
        doc_get(found(h, OBJECT_DISRUPTION_BUDGET, "default", "b")->document, "status");
    assert_int_equal(doc_int(doc_get(status, "disruptionsAllowed"), -1), allowed);
    assert_int_equal(doc_int(doc_get(status, "currentHealthy"), -1), healthy);
    assert_int_equal(doc_int(doc_get(status, "desiredHealthy"), -1), desired);
    assert_int_equal(doc_int(doc_get(status, "expectedPods"), -1), expected);
    const struct doc *condition = doc_at(doc_get(status, "conditions"), 0);
    assert_true(str_is(doc_str(doc_get(condition, "status"), STR("")), allowed ? "True" : "False"));
}

static int evict(struct harness *h, const char *hostname)
{
    struct event event = {.kind = EVENT_WRITE};
    char name[64];
    struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(task->name));
    event.write = write_of(WRITE_DELETE, OBJECT_POD, "default", name, STR(""));
    event.write.evict = true;
    h->last_code = 0;
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

static void a_number_of_pods_stays(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: 2, selector: {matchLabels: {app: a}}}"),
                     201);
    expect(&h, 0, 0, 2, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "j", JOB), 201);
    expect(&h, 0, 0, 2, 3);
    harness_run_all(&h);
    expect(&h, 1, 3, 2, 3);
    uint64_t version = found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->changed_seq;
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->changed_seq, version);
    assert_int_equal(evict(&h, "j-0"), 200);
    expect(&h, 0, 2, 2, 3); /* the one that is to come counts as expected */
    assert_int_equal(evict(&h, "j-1"), 429);
    assert_string_equal(h.last_message, "Cannot evict pod as it would violate the pod's disruption budget.");
    assert_int_equal(evict(&h, "j-0"), 200); /* it goes already */
    harness_run_all(&h);                     /* its end, and, after a pause, the next one's start */
    harness_wait(&h, 30 * NS_PER_SECOND);
    harness_run_all(&h);
    expect(&h, 1, 3, 2, 3);
    /* A write that says the same leaves version and status. */
    version = found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->changed_seq;
    assert_int_equal(put_budget(&h, WRITE_REPLACE, "{minAvailable: 2, selector: {matchLabels: {app: a}}}"),
                     200);
    assert_int_equal(found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->changed_seq, version);
    harness_check_replay(&h);
    harness_done(&h);
}

static void shares_are_rounded_up(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "j", JOB), 201);
    harness_run_all(&h);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: 50%, selector: {}}"), 201);
    expect(&h, 1, 3, 2, 3);
    assert_int_equal(put_budget(&h, WRITE_REPLACE, "{maxUnavailable: 50%, selector: {}}"), 200);
    expect(&h, 2, 3, 1, 3);
    assert_int_equal(found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->generation, 2);
    assert_int_equal(put_budget(&h, WRITE_REPLACE, "{maxUnavailable: 7, selector: {}}"), 200);
    expect(&h, 3, 3, 0, 3);
    assert_int_equal(put_budget(&h, WRITE_REPLACE, "{minAvailable: 1}"), 200); /* selects nothing */
    expect(&h, 0, 0, 1, 0);
    /* The pods of one Job apart. */
    assert_int_equal(put_budget(&h, WRITE_REPLACE,
                                "{maxUnavailable: 0, selector: {matchExpressions: [{key: "
                                "batch.kubernetes.io/job-completion-index, operator: In, values: ['1']}]}}"),
                     200);
    expect(&h, 0, 1, 1, 1);
    assert_int_equal(evict(&h, "j-1"), 429);
    assert_int_equal(evict(&h, "j-2"), 200);
    expect(&h, 0, 1, 1, 1);
    assert_int_equal(drop(&h, OBJECT_DISRUPTION_BUDGET, "default", "b", PROPAGATION_DEFAULT), 200);
    assert_int_equal(evict(&h, "j-1"), 200);
    harness_done(&h);
}

static void what_is_refused(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 4, 4, 0);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: 1, maxUnavailable: 1}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: -1}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: '7'}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: 101%}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{minAvailable: '%'}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{unhealthyPodEvictionPolicy: Never}"), 422);
    assert_int_equal(put_budget(&h, WRITE_CREATE,
                                "{selector: {matchExpressions: [{key: a, operator: Like, values: [b]}]}}"),
                     422);
    /* Two budgets of one pod. */
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "j", JOB), 201);
    harness_run_all(&h);
    assert_int_equal(put_budget(&h, WRITE_CREATE, "{maxUnavailable: 3, selector: {}}"), 201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_DISRUPTION_BUDGET, "default", "c",
                         "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: c, namespace: "
                         "default}, spec: {maxUnavailable: 3, selector: {}}}"),
                     201);
    assert_int_equal(evict(&h, "j-0"), 500);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_number_of_pods_stays),
        cmocka_unit_test(shares_are_rounded_up),
        cmocka_unit_test(what_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
