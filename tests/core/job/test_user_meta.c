/* Labels and annotations that users give Jobs and Pods of a JobSet: kept, selectable, gone with it. */
#include "../object/object_test.h"

static const char jobset[] =
    "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: x}, spec: "
    "{failurePolicy: {maxRestarts: 3}, replicatedJobs: [{name: a, template: {spec: "
    "{parallelism: 2, completions: 2, backoffLimit: 0, template: {metadata: {labels: "
    "{app: demo}}, spec: {containers: [{name: c, image: i, command: [x]}]}}}}}]}}";

/* The object's labels as they are, with `key` set to `value` (NULL: taken away). */
static int relabel(struct harness *h, struct job *job, struct task *task, const char *key, const char *value)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct labels labels = job_labels(job, task, &arena), notes = job_annotations(job, task, &arena);
    struct buf json BUF_CLEANUP = {0};
    struct doc *body = doc_new(&arena, DOC_OBJECT), *metadata = doc_need_object(&arena, body, "metadata");
    struct doc *map = doc_need_object(&arena, metadata, "labels");
    struct doc *annotations = doc_need_object(&arena, metadata, "annotations");
    for (size_t i = 0; i < labels.len; i++)
        doc_set(&arena, map, labels.items[i].key, doc_new_str(&arena, labels.items[i].value));
    for (size_t i = 0; i < notes.len; i++)
        doc_set(&arena, annotations, notes.items[i].key, doc_new_str(&arena, notes.items[i].value));
    doc_unset(map, key);
    if (value)
        doc_set(&arena, map, str_from(key), doc_new_str(&arena, str_from(value)));
    doc_set(&arena, annotations, STR("note"), doc_new_str(&arena, STR("n")));
    json_write(&json, body);
    struct event event = {.kind = EVENT_WRITE};
    char name[128];
    struct str of = task ? task->name : job->name;
    snprintf(name, sizeof name, STR_FORMAT, STR_ARG(of));
    event.write = write_of(WRITE_METADATA, task ? OBJECT_POD : OBJECT_JOB, "default", name, buf_str(&json));
    harness_step(h, &event);
    core_check_invariants(h->core);
    return h->last_code;
}

static bool has(struct job *job, struct task *task, const char *key, const char *value)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct labels labels = job_labels(job, task, &arena);
    struct str is = labels_get(&labels, str_from(key), (struct str){0});
    return value ? is.data && str_is(is, value) : !is.data;
}

static void they_are_kept_and_go_with_the_object(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", jobset), 201);
    assert_int_equal(
        put(&h, WRITE_CREATE, OBJECT_DISRUPTION_BUDGET, "default", "b",
            "{apiVersion: policy/v1, kind: PodDisruptionBudget, metadata: {name: b, namespace: default}, "
            "spec: {minAvailable: 1, selector: {matchLabels: {watch: closely}}}}"),
        201);
    harness_run_all(&h);
    struct task *task = harness_task(&h, "x-a-0-0");
    struct job *job = task->job;
    assert_int_equal(relabel(&h, job, task, "watch", "closely"), 200);
    assert_true(has(job, task, "watch", "closely") && has(job, task, "app", "demo"));
    assert_true(has(job, harness_task(&h, "x-a-0-1"), "watch", NULL));
    const struct doc *status =
        doc_get(found(&h, OBJECT_DISRUPTION_BUDGET, "default", "b")->document, "status");
    assert_int_equal(doc_int(doc_get(status, "expectedPods"), -1), 1);
    uint64_t version = task->changed_seq;
    assert_int_equal(relabel(&h, job, task, "watch", "closely"), 200);
    assert_int_equal(task->changed_seq, version); /* it said the same */
    assert_int_equal(relabel(&h, job, task, "app", NULL), 200);
    assert_true(has(job, task, "app", NULL) && has(job, task, "job-name", "x-a-0"));
    assert_int_equal(relabel(&h, job, NULL, "team", "blue"), 200);
    assert_true(has(job, NULL, "team", "blue") && has(job, task, "team", NULL));
    harness_check_replay(&h);
    /* The controllers' own fields stay. */
    assert_int_equal(relabel(&h, job, task, "jobset.sigs.k8s.io/job-index", "7"), 422);
    assert_int_equal(relabel(&h, job, task, "job-name", NULL), 422);
    assert_int_equal(relabel(&h, job, task, "batch.kubernetes.io/mine", "x"), 422);
    assert_int_equal(relabel(&h, job, task, "bad key", "x"), 422);
    /* The next attempt has what its template says. */
    harness_exit(&h, task, 1);
    harness_run_all(&h);
    task = harness_task(&h, "x-a-0-0");
    assert_true(has(task->job, task, "app", "demo") && has(task->job, task, "watch", NULL));
    assert_true(has(task->job, NULL, "team", NULL));
    harness_done(&h);
}

static void only_what_was_made_from_something_else(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "", jobset), 201);
    assert_int_equal(put(&h, WRITE_METADATA, OBJECT_JOBSET, "default", "x", "{metadata: {labels: {a: b}}}"),
                     405);
    assert_int_equal(put(&h, WRITE_METADATA, OBJECT_JOB, "default", "none", "{metadata: {}}"), 404);
    assert_int_equal(put(&h, WRITE_METADATA, OBJECT_CONFIG_MAP, "default", "x", "{metadata: {}}"), 405);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(they_are_kept_and_go_with_the_object),
        cmocka_unit_test(only_what_was_made_from_something_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
