/* Marks that admission writes on the templates and Pods of a Job, and those that a user's write brings
 * back. */
#include "queues.h"

#include "base/hash.h"
#include "core/gang/trial.h"

#define MARKED_FLAVOR                                                                                        \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: v5e}\nspec:\n"               \
    "  nodeLabels: {phalanx.dev/pod: pod-1}\n  tolerations: [{key: spot, operator: Exists}]\n---\n"
#define JOB(template)                                                                                        \
    "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j, labels: {kueue.x-k8s.io/queue-name: lq}}\nspec:\n" \
    "  template:\n" template "    spec:\n      restartPolicy: Never\n      containers:\n"                    \
                             "      - {name: c, image: i, command: [run], resources: {limits: "              \
                             "{google.com/tpu: 4}}}\n"

static void begin(struct harness *h)
{
    harness_init(h, 2, 4, 0);
    set_queues(h, 2, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, MARKED_FLAVOR CLUSTER_QUEUE("cq", "8", "") LOCAL_QUEUE("lq", "cq"));
}

static struct jobset *behind(struct harness *h, const char *job)
{
    struct job *found = jobs_find_job(core_jobs(h->core), STR("default"), str_from(job));
    return found ? found->jobset : NULL;
}

static void assert_label(const struct doc *template, const char *map, const char *key, const char *value)
{
    const struct doc *metadata = doc_get(template, "metadata");
    struct str found = doc_str(doc_get_str(doc_get(metadata, map), str_from(key)), STR(""));
    if (!str_is(found, value))
        fail_msg("%s is \"" STR_FORMAT "\", not \"%s\"", key, STR_ARG(found), value);
}

/* The PodSet of a Job is called "main"; its Pods say whose they are, and its template what was added. */
static void test_templates_say_what_was_added(void **state)
{
    (void)state;
    struct harness h;
    struct arena arena = {0};
    begin(&h);
    must_apply(&h, JOB(""));
    const struct jobset *jobset = behind(&h, "j");
    const struct workload *workload = workload_of(core_admit(h.core), jobset->uid);
    assert_true(str_is(workload->podsets[0].name, "main"));
    const struct doc *template = workload_pod_template(document_with_terms(&arena, jobset), 0);
    assert_label(template, "labels", "kueue.x-k8s.io/podset", "main");
    assert_label(template, "labels", "kueue.x-k8s.io/local-queue-name", "lq");
    assert_label(template, "labels", "kueue.x-k8s.io/cluster-queue-name", "cq");
    assert_label(template, "annotations", "kueue.x-k8s.io/workload", workload->name.data);
    const struct doc *nodes = doc_path(template, "spec", "nodeSelector", NULL);
    assert_true(str_is(doc_str(doc_get_str(nodes, STR("phalanx.dev/pod")), STR("")), "pod-1"));
    assert_int_equal(doc_len(doc_path(template, "spec", "tolerations", NULL)), 1);
    assert_null(doc_path(jobset->document, "spec", "template", "spec", "nodeSelector", NULL));
    struct labels labels = job_labels(jobset->jobs[0], jobset->jobs[0]->tasks.items[0], &arena);
    assert_true(str_is(labels_get(&labels, STR("kueue.x-k8s.io/podset"), STR("")), "main"));
    arena_done(&arena);
    harness_done(&h);
}

/* A Workload is named as Kueue names it: programs that know the Job know its name. */
static void test_name_ends_with_the_owners_hash(void **state)
{
    (void)state;
    struct harness h;
    begin(&h);
    must_apply(&h, JOB(""));
    char uid[UID_TEXT_MAX], text[256], hex[41], wanted[64];
    uint8_t digest[20];
    uid_text(behind(&h, "j")->jobs[0]->uid, uid);
    snprintf(text, sizeof(text), "Job\nbatch\nj\n%s", uid);
    sha1(text, strlen(text), digest);
    hex_encode(digest, sizeof(digest), hex);
    snprintf(wanted, sizeof(wanted), "job-j-%.5s", hex);
    assert_non_null(workload_find(core_admit(h.core), STR("default"), str_from(wanted)));
    harness_done(&h);
}

static int send_back(struct harness *h, const char *job, struct arena *arena)
{
    struct buf json = {0};
    json_write(&json, document_with_terms(arena, behind(h, job)));
    int code = post(h, WRITE_REPLACE, OBJECT_JOB, "default", job, buf_str(&json));
    buf_done(&json);
    return code;
}

/* A Job is written as it was read, with all that was added: the template has not changed, and keeps nothing
 * of it when the Job is evicted. What the user's own template says stays. */
static void test_what_was_added_may_be_sent_back(void **state)
{
    (void)state;
    static const char *const jobs[] = {JOB(""),
                                       JOB("    metadata: {labels: {team: a}, annotations: {note: b}}\n")};
    for (size_t i = 0; i < 2; i++) {
        struct harness h;
        struct arena arena = {0};
        struct buf before = {0}, after = {0};
        begin(&h);
        must_apply(&h, jobs[i]);
        json_write(&before, doc_path(behind(&h, "j")->document, "spec", "template", NULL));
        assert_int_equal(send_back(&h, "j", &arena), 200);
        json_write(&after, doc_path(behind(&h, "j")->document, "spec", "template", NULL));
        assert_true(str_equal(buf_str(&before), buf_str(&after)));
        assert_non_null(behind(&h, "j")->grant.terms);
        buf_done(&before);
        buf_done(&after);
        arena_done(&arena);
        harness_done(&h);
    }
}

/* Anything else in a running Job's template is refused as ever. */
static void test_other_changes_are_refused(void **state)
{
    (void)state;
    struct harness h;
    begin(&h);
    must_apply(&h, JOB(""));
    assert_int_equal(apply(&h, JOB("    metadata: {labels: {kueue.x-k8s.io/podset: other}}\n")), 422);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_templates_say_what_was_added),
        cmocka_unit_test(test_name_ends_with_the_owners_hash),
        cmocka_unit_test(test_what_was_added_may_be_sent_back),
        cmocka_unit_test(test_other_changes_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
