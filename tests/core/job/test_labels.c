/* The labels of every Job and Pod; kubectl and users' selectors live on them. */
#include "story.h"

static void assert_label(const struct labels *labels, const char *key, const char *value)
{
    struct str found = labels_get(labels, str_from(key), STR("(absent)"));
    if (!str_is(found, value))
        fail_msg("%s is " STR_FORMAT ", not %s", key, STR_ARG(found), value);
}

#define PREFIX "jobset.sigs.k8s.io/"

static void all_of_them(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec: {failurePolicy: "
            "{maxRestarts: 1}, "
            "coordinator: {replicatedJob: z, jobIndex: 0, podIndex: 0}, replicatedJobs: ["
            "{name: x, replicas: 2, groupName: g, template: {metadata: {labels: {team: blue}}, spec: "
            "{parallelism: 1, completions: 1, "
            "backoffLimit: 0, template: {metadata: {labels: {color: red}}, spec: {containers: [{name: main, "
            "image: none, command: [run]}]}}}}},"
            "{name: z, replicas: 1, groupName: g, template: {spec: {parallelism: 2, completions: 2, "
            "backoffLimit: 0, "
            "template: {spec: {containers: [{name: main, image: none, command: [run]}]}}}}}]}\n");
    harness_run_all(&h);
    exits(&h, "a-x-0-0", 1); /* labels tell the attempt */
    harness_run_all(&h);
    struct arena arena = {0};
    const struct job *job = job_of(&h, "a-z-0");
    const struct task *task = harness_task(&h, "a-z-0-1");
    char jobset_uid[UID_TEXT_MAX], job_uid[UID_TEXT_MAX];
    uid_text(jobset->uid, jobset_uid);
    uid_text(job->uid, job_uid);
    for (int pod = 0; pod < 2; pod++) {
        struct labels labels = job_labels(job, pod ? task : NULL, &arena);
        assert_label(&labels, PREFIX "jobset-name", "a");
        assert_label(&labels, PREFIX "jobset-uid", jobset_uid);
        assert_label(&labels, PREFIX "replicatedjob-name", "z");
        assert_label(&labels, PREFIX "replicatedjob-replicas", "1");
        assert_label(&labels, PREFIX "global-replicas", "3");
        assert_label(&labels, PREFIX "job-index", "0");
        assert_label(&labels, PREFIX "job-global-index", "2");
        assert_label(&labels, PREFIX "job-key", "fbd3362c8d0e532921071debd51887d419290168");
        assert_label(&labels, PREFIX "group-name", "g");
        assert_label(&labels, PREFIX "group-replicas", "3");
        assert_label(&labels, PREFIX "job-group-index", "2");
        assert_label(&labels, PREFIX "restart-attempt", "1");
        assert_label(&labels, PREFIX "coordinator", "a-z-0-0.a");
        assert_label(&labels, "batch.kubernetes.io/job-name", pod ? "a-z-0" : "(absent)");
        assert_label(&labels, "job-name", pod ? "a-z-0" : "(absent)");
        assert_label(&labels, "controller-uid", pod ? job_uid : "(absent)");
        assert_label(&labels, "batch.kubernetes.io/controller-uid", pod ? job_uid : "(absent)");
        assert_label(&labels, "batch.kubernetes.io/job-completion-index", pod ? "1" : "(absent)");
        for (size_t i = 1; i < labels.len; i++)
            assert_true(str_compare(labels.items[i - 1].key, labels.items[i].key) < 0);
    }
    struct labels first = job_labels(job_of(&h, "a-x-1"), harness_task(&h, "a-x-1-0"), &arena);
    assert_label(&first, "team", "blue");
    assert_label(&first, "color", "red");
    assert_label(&first, PREFIX "job-index", "1");
    assert_label(&first, PREFIX "job-global-index", "1");
    struct labels of_job = job_labels(job_of(&h, "a-x-1"), NULL, &arena);
    assert_label(&of_job, "color", "(absent)");
    arena_done(&arena);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(all_of_them)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
