/* Consequences of a deletion: dependents, finalizers, namespaces that end. */
#include "object_test.h"

static const char trained[] =
    "apiVersion: jobset.x-k8s.io/v1alpha2\n"
    "kind: JobSet\n"
    "metadata: {name: train}\n"
    "spec: {replicatedJobs: [{name: w, template: {spec: {parallelism: 2, completions: 2,\n"
    "  template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x],\n"
    "  resources: {limits: {google.com/tpu: 4}}}]}}}}}]}\n";

static void uids_have_one_text(void **state)
{
    (void)state;
    uint64_t id = 1;
    for (int i = 0; i < 2000; i++, id = id * UINT64_C(6364136223846793005) + 1442695040888963407u) {
        char text[UID_TEXT_MAX];
        obj_id back = 0;
        uid_text(id, text);
        assert_true(uid_parse(str_from(text), &back) && back == id);
        text[i % 36] = text[i % 36] == '0' ? '1' : '0';
        assert_false(uid_parse(str_from(text), &back) && back == id);
    }
    obj_id none;
    assert_false(uid_parse(STR(""), &none) || uid_parse(STR("c961ebca-bf80-403e-8797-657c4f1ec66X"), &none));
}

static void a_dependent_goes_with_its_last_owner(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(own(&h, "default", "a", NULL, 0), 201);
    assert_int_equal(own(&h, "default", "b", NULL, 0), 201);
    struct owner both[] = {owner_of(&h, "default", "a", false), owner_of(&h, "default", "b", false)};
    assert_int_equal(own(&h, "default", "child", both, 2), 201);
    struct owner child = owner_of(&h, "default", "child", false);
    assert_int_equal(own(&h, "default", "grandchild", &child, 1), 201);
    assert_int_equal(drop(&h, OBJECT_CONFIG_MAP, "default", "a", 0), 200);
    const struct object *kept = found(&h, OBJECT_CONFIG_MAP, "default", "child");
    assert_non_null(kept); /* and has forgotten the owner that is gone */
    assert_int_equal((int)doc_len(doc_path(kept->document, "metadata", "ownerReferences", NULL)), 1);
    assert_int_equal(drop(&h, OBJECT_CONFIG_MAP, "default", "b", PROPAGATION_BACKGROUND), 200);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "child"));
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "grandchild"));
    harness_done(&h);
}

static void an_object_of_an_owner_that_never_was_goes_at_once(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct owner nobody = {"v1", "ConfigMap", "nobody", 12345, false};
    struct owner foreign = {"example.com/v1", "Widget", "w", 12345, false}; /* not ours to judge */
    assert_int_equal(own(&h, "default", "lost", &nobody, 1), 201);
    assert_int_equal(own(&h, "default", "kept", &foreign, 1), 201);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "lost"));
    assert_non_null(found(&h, OBJECT_CONFIG_MAP, "default", "kept"));
    harness_done(&h);
}

/* Workloads as well, of every form; their processes end like those of any that is deleted. */
static void a_workload_of_an_owner_that_never_was_goes_at_once(void **state)
{
    static const char *const forms[] = {
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: w, ownerReferences: [%s]}\n"
        "spec: {replicatedJobs: [{name: x, template: {spec: {template: {spec: {containers: [{name: c, image: "
        "i, command: [x]}]}}}}}]}\n",
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: w, ownerReferences: [%s]}\n"
        "spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x]}]}}}\n",
        "apiVersion: v1\nkind: Pod\nmetadata: {name: w, ownerReferences: [%s]}\n"
        "spec: {containers: [{name: c, image: i, command: [x]}]}\n"};
    static const enum object_kind kinds[] = {OBJECT_JOBSET, OBJECT_JOB, OBJECT_POD};
    for (size_t i = 0; i < 6; i++) {
        struct harness h;
        harness_init(&h, 2, 4, 0);
        assert_int_equal(own(&h, "default", "a", NULL, 0), 201);
        struct owner owner = owner_of(&h, "default", "a", false);
        char reference[256], uid[UID_TEXT_MAX], yaml[1024];
        uid_text(i < 3 ? 12345 : owner.uid, uid);
        snprintf(reference, sizeof(reference), "{apiVersion: v1, kind: ConfigMap, name: a, uid: %s}", uid);
        snprintf(yaml, sizeof(yaml), forms[i % 3], reference);
        assert_int_equal(harness_write_checked(&h, kinds[i % 3], WRITE_CREATE, "", yaml), 201);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_int_equal(core_jobs(h.core)->jobsets.len, i < 3 ? 0 : 1);
        harness_done(&h);
    }
}

static void orphans_stay(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    own(&h, "default", "a", NULL, 0);
    struct owner a = owner_of(&h, "default", "a", true);
    own(&h, "default", "child", &a, 1);
    assert_int_equal(drop(&h, OBJECT_CONFIG_MAP, "default", "a", PROPAGATION_ORPHAN), 200);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "a"));
    const struct object *child = found(&h, OBJECT_CONFIG_MAP, "default", "child");
    assert_non_null(child);
    assert_int_equal((int)doc_len(doc_path(child->document, "metadata", "ownerReferences", NULL)), 0);
    harness_done(&h);
}

static void in_the_foreground_the_owner_goes_last(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    own(&h, "default", "a", NULL, 0);
    struct owner a = owner_of(&h, "default", "a", true);
    own(&h, "default", "child", &a, 1);
    char held[512], uid[UID_TEXT_MAX];
    uid_text(a.uid, uid);
    snprintf(
        held, sizeof held,
        "{apiVersion: v1, kind: ConfigMap, metadata: {name: child, finalizers: [example.com/wait], "
        "ownerReferences: [{apiVersion: v1, kind: ConfigMap, name: a, uid: %s, blockOwnerDeletion: true}]}}",
        uid);
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "child", held), 200);
    assert_int_equal(drop(&h, OBJECT_CONFIG_MAP, "default", "a", PROPAGATION_FOREGROUND), 200);
    const struct object *owner = found(&h, OBJECT_CONFIG_MAP, "default", "a");
    assert_true(owner && owner->deleted_ns && object_has_finalizer(owner->document, "foregroundDeletion"));
    const struct object *child = found(&h, OBJECT_CONFIG_MAP, "default", "child");
    assert_true(child && child->deleted_ns);
    harness_check_replay(&h); /* what waits is in the snapshot */
    /* No finalizer may come now; the last one's end is the end of both. */
    char more[512];
    snprintf(more, sizeof more,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: child, finalizers: "
             "[example.com/wait, example.com/new]}}");
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "child", more), 422);
    snprintf(more, sizeof more,
             "{apiVersion: v1, kind: ConfigMap, metadata: {name: child, ownerReferences: "
             "[{apiVersion: v1, kind: ConfigMap, name: a, uid: %s, blockOwnerDeletion: true}]}}",
             uid);
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_CONFIG_MAP, "default", "child", more), 200);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "child"));
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "a"));
    harness_done(&h);
}

static void what_a_jobset_owns_goes_with_it(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(&h, trained);
    harness_run_all(&h);
    struct owner owner = {"jobset.x-k8s.io/v1alpha2", "JobSet", "train", jobset->uid, true};
    own(&h, "default", "settings", &owner, 1);
    assert_int_equal(drop(&h, OBJECT_JOBSET, "default", "train", PROPAGATION_FOREGROUND), 200);
    assert_non_null(harness_jobset(&h, "train")); /* its tasks run still */
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "settings"));
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_null(harness_jobset(&h, "train"));
    harness_done(&h);
}

static void a_namespace_ends_with_its_content(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    const char *ns = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";
    const char *map = "{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: team}}";
    assert_int_equal(check(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "team", "c", map), 404);
    assert_string_equal(h.last_message, "namespaces \"team\" not found");
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_NAMESPACE, "", "team", ns), 201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "team", "c", map), 201);
    const char *held = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team, "
                       "finalizers: [example.com/wait]}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_SECRET, "team", "s", held), 201);
    struct buf workload BUF_CLEANUP = {0};
    buf_add_str(&workload, str_from(trained));
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "team", "", workload.data), 201);
    harness_run_all(&h);
    assert_int_equal(drop(&h, OBJECT_NAMESPACE, "", "team", 0), 200);
    const struct object *object = found(&h, OBJECT_NAMESPACE, "", "team");
    assert_true(object && object->deleted_ns);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "team", "c"));
    const char *late = "{apiVersion: v1, kind: ConfigMap, metadata: {name: late, namespace: team}}";
    assert_int_equal(check(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "team", "late", late), 403);
    assert_non_null(strstr(h.last_message, "because it is being terminated"));
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_CONFIG_MAP, "team", "late", late), 403);
    harness_check_replay(&h);
    harness_run_all(&h); /* the tasks end */
    assert_null(jobs_find(core_jobs(h.core), STR("team"), STR("train")));
    assert_non_null(found(&h, OBJECT_NAMESPACE, "", "team")); /* the Secret is held */
    const char *freed = "{apiVersion: v1, kind: Secret, metadata: {name: s, namespace: team}}";
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_SECRET, "team", "s", freed), 200);
    assert_null(found(&h, OBJECT_NAMESPACE, "", "team"));
    assert_int_equal(drop(&h, OBJECT_NAMESPACE, "", "default", 0), 403);
    harness_done(&h);
}

static void jobs_and_pods_of_their_own_end_with_their_namespace(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    const char *ns = "{apiVersion: v1, kind: Namespace, metadata: {name: team}}";
    const char *own_job =
        "{apiVersion: batch/v1, kind: Job, metadata: {name: j, namespace: team}, spec: {template: "
        "{spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x]}]}}}}";
    const char *own_pod = "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team, finalizers: "
                          "[example.com/hold]}, spec: {containers: [{name: c, image: i, command: [x]}]}}";
    const char *freed =
        "{apiVersion: v1, kind: Pod, metadata: {name: p, namespace: team}, spec: {containers: "
        "[{name: c, image: i, command: [x]}]}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_NAMESPACE, "", "team", ns), 201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "team", "", own_job), 201);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_POD, "team", "", own_pod), 201);
    harness_run_all(&h);
    assert_int_equal(drop(&h, OBJECT_NAMESPACE, "", "team", 0), 200);
    harness_check_replay(&h);
    harness_run_all(&h);
    harness_wait(&h, NS_PER_SECOND);
    assert_null(jobs_find_job(core_jobs(h.core), STR("team"), STR("j")));
    assert_non_null(found(&h, OBJECT_NAMESPACE, "", "team"));
    assert_int_equal(put(&h, WRITE_REPLACE, OBJECT_POD, "team", "p", freed), 200);
    harness_wait(&h, NS_PER_SECOND);
    assert_null(found(&h, OBJECT_NAMESPACE, "", "team"));
    assert_int_equal((int)core_jobs(h.core)->jobsets.len, 0);
    harness_done(&h);
}

/* A permanent namespace is made when it is needed, no other one is. */
static void a_missing_namespace_takes_nothing(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "absent", "", trained), 404);
    assert_string_equal(h.last_message, "namespaces \"absent\" not found");
    assert_null(found(&h, OBJECT_NAMESPACE, "", "absent"));
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "kube-public", "", trained), 201);
    assert_non_null(found(&h, OBJECT_NAMESPACE, "", "kube-public"));
    harness_done(&h);
}

/* --cascade=orphan: the JobSet goes, its Jobs run on as nobody's, with what they hold; a Job that ends is not
 * restarted, and the last that is deleted is the end of it. */
static void jobs_outlive_their_jobset(void **state)
{
    struct harness h;
    harness_init(&h, 2, 4, 0);
    struct jobset *jobset = harness_create(
        &h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: train}\n"
            "spec: {failurePolicy: {maxRestarts: 5}, replicatedJobs: [{name: w, replicas: 2, "
            "template: {spec: {parallelism: 1, completions: 1, backoffLimit: 0, template: {spec: "
            "{restartPolicy: Never, containers: [{name: c, image: i, command: [x], resources: "
            "{limits: {google.com/tpu: 4}}}]}}}}}]}\n");
    harness_run_all(&h);
    struct owner owner = {"jobset.x-k8s.io/v1alpha2", "JobSet", "train", jobset->uid, true};
    assert_int_equal(own(&h, "default", "settings", &owner, 1), 201);
    struct task *first = harness_task(&h, "train-w-0-0");
    assert_int_equal(drop(&h, OBJECT_JOB, "default", "train-w-0", PROPAGATION_ORPHAN), 403);
    assert_int_equal(drop(&h, OBJECT_JOBSET, "default", "train", PROPAGATION_ORPHAN), 200);
    assert_null(harness_jobset(&h, "train"));
    const struct object *settings = found(&h, OBJECT_CONFIG_MAP, "default", "settings");
    assert_true(settings && !doc_path(settings->document, "metadata", "ownerReferences", NULL));
    const struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("train-w-0"));
    assert_true(job && job->jobset->hidden && first->state == TASK_RUNNING);
    harness_check_replay(&h);
    /* The name of the JobSet is free, those of its Jobs are not. */
    const char *same =
        "{apiVersion: jobset.x-k8s.io/v1alpha2, kind: JobSet, metadata: {name: train}, spec: "
        "{replicatedJobs: [{name: w, template: {spec: {template: {spec: {containers: [{name: c, "
        "image: i, command: [x]}]}}}}}]}}";
    assert_int_equal(check(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "train", same), 409);
    harness_exit(&h, first, 1);
    harness_run_all(&h);
    assert_int_equal(job->state, JOB_FAILED); /* nobody's policy restarts it */
    assert_int_equal(harness_task(&h, "train-w-1-0")->state, TASK_RUNNING);
    assert_int_equal(drop(&h, OBJECT_JOB, "default", "train-w-0", PROPAGATION_BACKGROUND), 200);
    assert_null(jobs_find_job(core_jobs(h.core), STR("default"), STR("train-w-0")));
    assert_int_equal(drop(&h, OBJECT_JOB, "default", "train-w-1", PROPAGATION_BACKGROUND), 200);
    harness_check_replay(&h);
    harness_run_all(&h);
    assert_int_equal(core_jobs(h.core)->jobsets.len, 0);
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOBSET, "default", "train", same), 201);
    harness_done(&h);
}

/* The Pods of a Job outlive it likewise, and none is made anew. */
static void pods_outlive_their_job(void **state)
{
    struct harness h;
    harness_init(&h, 3, 4, 0);
    const char *yaml =
        "{apiVersion: batch/v1, kind: Job, metadata: {name: work}, spec: {parallelism: 3, completions: "
        "3, ttlSecondsAfterFinished: 0, template: {spec: {restartPolicy: Never, containers: [{name: "
        "c, image: i, command: [x]}]}}}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "work", yaml), 201);
    harness_run_all(&h);
    struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("work"));
    struct task *done = job->tasks.items[0], *failed = job->tasks.items[1], *runs = job->tasks.items[2];
    assert_int_equal(drop(&h, OBJECT_JOB, "default", "work", PROPAGATION_ORPHAN), 200);
    assert_null(jobs_find_job(core_jobs(h.core), STR("default"), STR("work")));
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "work", yaml), 201); /* its name is free */
    harness_exit(&h, done, 0);
    harness_exit(&h, failed, 1);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    assert_int_equal(job->tasks.len, 3);
    assert_true(done->state == TASK_SUCCEEDED && failed->state == TASK_FAILED && runs->state == TASK_RUNNING);
    harness_check_replay(&h);
    assert_int_equal(drop(&h, OBJECT_POD, "default", runs->name.data, PROPAGATION_BACKGROUND), 200);
    harness_run_all(&h);
    assert_int_equal(job->tasks.len, 2); /* gone with its process */
    assert_int_equal(drop(&h, OBJECT_POD, "default", done->name.data, PROPAGATION_BACKGROUND), 200);
    assert_int_equal(core_jobs(h.core)->jobsets.len, 2);
    assert_int_equal(drop(&h, OBJECT_POD, "default", failed->name.data, PROPAGATION_BACKGROUND), 200);
    assert_int_equal(core_jobs(h.core)->jobsets.len, 1);
    harness_check_replay(&h);
    harness_done(&h);
}

/* A Pod whose Job is gone has no deadline: nothing is due when the deadline would have passed. */
static void orphans_have_no_deadline(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 4, 0);
    const char *yaml =
        "{apiVersion: batch/v1, kind: Job, metadata: {name: work}, spec: {activeDeadlineSeconds: 600, "
        "template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [x]}]}}}}";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_JOB, "default", "work", yaml), 201);
    harness_run_all(&h);
    assert_true(core_deadline(h.core) <= h.now_ns + 600 * NS_PER_SECOND);
    assert_int_equal(drop(&h, OBJECT_JOB, "default", "work", PROPAGATION_ORPHAN), 200);
    assert_true(core_deadline(h.core) > h.now_ns + 600 * NS_PER_SECOND);
    core_check_invariants(h.core);
    harness_done(&h);
}

/* The Pod goes with the Job that stands behind it. */
static void what_a_pod_owns_goes_with_it(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 2, 4, 0);
    static const char pod[] =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {restartPolicy: Never, containers: "
        "[{name: c, image: i, command: [x], resources: {limits: {google.com/tpu: 4}}}]}\n";
    assert_int_equal(put(&h, WRITE_CREATE, OBJECT_POD, "default", "", pod), 201);
    harness_run_all(&h);
    struct task *task = jobs_find_pod(core_jobs(h.core), STR("default"), STR("p"));
    struct owner owner = {"v1", "Pod", "p", task->pod_uid, false};
    assert_int_equal(own(&h, "default", "child", &owner, 1), 201);
    assert_non_null(found(&h, OBJECT_CONFIG_MAP, "default", "child"));
    assert_int_equal(drop(&h, OBJECT_POD, "default", "p", PROPAGATION_BACKGROUND), 200);
    harness_run_all(&h);
    assert_null(found(&h, OBJECT_CONFIG_MAP, "default", "child"));
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(uids_have_one_text),
        cmocka_unit_test(a_dependent_goes_with_its_last_owner),
        cmocka_unit_test(an_object_of_an_owner_that_never_was_goes_at_once),
        cmocka_unit_test(a_workload_of_an_owner_that_never_was_goes_at_once),
        cmocka_unit_test(orphans_stay),
        cmocka_unit_test(in_the_foreground_the_owner_goes_last),
        cmocka_unit_test(what_a_jobset_owns_goes_with_it),
        cmocka_unit_test(what_a_pod_owns_goes_with_it),
        cmocka_unit_test(jobs_outlive_their_jobset),
        cmocka_unit_test(pods_outlive_their_job),
        cmocka_unit_test(orphans_have_no_deadline),
        cmocka_unit_test(a_namespace_ends_with_its_content),
        cmocka_unit_test(jobs_and_pods_of_their_own_end_with_their_namespace),
        cmocka_unit_test(a_missing_namespace_takes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
