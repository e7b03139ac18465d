/* Pod groups: Pods of one name are admitted together and go together. */
#include "queues.h"

#include "core/object/object.h"

static void make_pod(struct harness *h, const char *name, const char *group, int total, const char *labels,
                     const char *notes, int chips)
{
    struct buf yaml = {0};
    buf_printf(
        &yaml,
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: %s\n  namespace: default\n  labels: {"
        "kueue.x-k8s.io/queue-name: q, kueue.x-k8s.io/pod-group-name: %s%s}\n  annotations: {"
        "kueue.x-k8s.io/pod-group-total-count: \"%d\"%s}\nspec:\n  restartPolicy: Never\n  containers: [{"
        "name: c, image: i, command: [run], resources: {limits: {google.com/tpu: %d}}}]\n",
        name, group, labels, total, notes, chips);
    must_apply(h, yaml.data);
    core_check_invariants(h->core);
    buf_done(&yaml);
}

static void setup(struct harness *h, int machines, const char *quota, const char *policy)
{
    struct buf yaml = {0};
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, "{\"minimumRunTime\":\"0s\"}");
    buf_printf(
        &yaml,
        FLAVOR("v5e") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: team}\n"
                      "spec:\n  namespaceSelector: {}\n  preemption: {withinClusterQueue: %s}\n"
                      "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n    flavors: [{name: "
                      "v5e, resources: [{name: google.com/tpu, nominalQuota: %s}]}]\n---\n" LOCAL_QUEUE(
                          "q", "team") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                                       "metadata: {name: high}\nvalue: 100\n",
        policy, quota);
    must_apply(h, yaml.data);
    buf_done(&yaml);
}

static struct task *pod(struct harness *h, const char *name)
{
    return jobs_find_pod(core_jobs(h->core), STR("default"), str_from(name));
}

static const struct workload *of(struct harness *h, const char *name)
{
    const struct task *task = pod(h, name);
    return task ? workload_of(core_admit(h->core), task->job->jobset->uid) : NULL;
}

static const char *why(struct harness *h, const char *name)
{
    const struct workload_condition *condition = &of(h, name)->conditions[WORKLOAD_QUOTA_RESERVED];
    return condition->message.data ? condition->message.data : "";
}

#define assert_pods(h, wanted, ...)                                                                          \
    do {                                                                                                     \
        static const char *const names[] = {__VA_ARGS__};                                                    \
        for (size_t n = 0; n < sizeof(names) / sizeof(*names); n++)                                          \
            if (!of(h, names[n]) || of(h, names[n])->state != (wanted))                                      \
                fail_msg("%s: %s", names[n], of(h, names[n]) ? why(h, names[n]) : "none");                   \
    } while (0)

static void test_waits_until_all_are_there(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 3, "", "", 4);
    make_pod(&h, "b", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "a", "b");
    assert_string_equal(why(&h, "a"), "Group default/g has 2 of 3 Pods");
    harness_check_replay(&h);
    make_pod(&h, "c", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "c");
    assert_int_equal(pod(&h, "a")->state, TASK_STARTING);
    assert_int_equal(pod(&h, "c")->state, TASK_STARTING);
    make_pod(&h, "d", "g", 3, "", "", 4); /* one too many */
    assert_null(pod(&h, "d"));
    harness_check_replay(&h);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "a"), 0);
    assert_pods(&h, WORKLOAD_FINISHED, "a");
    make_pod(&h, "e", "g", 3, "", "", 4);
    assert_null(pod(&h, "e")); /* it has succeeded: nothing lacks */
    harness_exit(&h, pod(&h, "b"), 1);
    make_pod(&h, "f", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "f"); /* in the place of the one that failed */
    harness_check_replay(&h);
    harness_done(&h);
}

/* Quota or machines for two of three are none. */
static void test_all_or_none(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "8", "Never");
    make_pod(&h, "a", "g", 3, "", "", 4);
    make_pod(&h, "b", "g", 3, "", "", 4);
    make_pod(&h, "c", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "a", "b", "c");
    assert_non_null(strstr(why(&h, "a"), "request > maximum capacity (12 > 8)"));
    assert_string_equal(why(&h, "b"), why(&h, "a"));
    make_pod(&h, "small", "h", 1, "", "", 4); /* others pass */
    assert_pods(&h, WORKLOAD_ADMITTED, "small");
    must_apply(&h, CLUSTER_QUEUE("team", "100", ""));
    assert_pods(&h, WORKLOAD_PENDING, "a", "b", "c");
    assert_non_null(strstr(why(&h, "c"), "needs 3 machines with 4 free google.com/tpu chips"));
    harness_check_replay(&h);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "small"), 0);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "c");
    harness_check_replay(&h);
    harness_done(&h);
}

static void test_must_agree(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 2, "", "", 4);
    make_pod(&h, "b", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "a", "b");
    assert_non_null(strstr(why(&h, "a"), "must agree"));
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "b", STR("")) < 300);
    assert_string_equal(why(&h, "a"), "Group default/g has 1 of 2 Pods");
    make_pod(&h, "c", "g", 2, "", "", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "c");
    harness_done(&h);
}

/* The whole group makes room, and a whole group has room made for it. */
static void test_preempted_as_a_whole(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 4, "16", "LowerPriority");
    make_pod(&h, "a", "low", 2, "", "", 4);
    make_pod(&h, "b", "low", 2, "", "", 4);
    make_pod(&h, "alone", "other", 1, "", "", 4);
    harness_run_all(&h);
    h.now_ns += NS_PER_SECOND;
    make_pod(&h, "px", "top", 3, ", kueue.x-k8s.io/priority-class: high", "", 4);
    make_pod(&h, "py", "top", 3, ", kueue.x-k8s.io/priority-class: high", "", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "alone");
    make_pod(&h, "pz", "top", 3, ", kueue.x-k8s.io/priority-class: high", "", 4);
    assert_pods(&h, WORKLOAD_HOLDING, "px", "py", "pz");
    assert_pods(&h, WORKLOAD_LEAVING, "a", "b");
    assert_pods(&h, WORKLOAD_ADMITTED, "alone"); /* two are enough */
    harness_check_replay(&h);
    harness_exit(&h, pod(&h, "a"), 143);
    assert_pods(&h, WORKLOAD_HOLDING, "px", "py", "pz");
    harness_check_replay(&h);
    harness_exit(&h, pod(&h, "b"), 143);
    assert_pods(&h, WORKLOAD_ADMITTED, "px", "py", "pz");
    assert_null(pod(&h, "a")); /* Pods are deleted when they are evicted */
    harness_check_replay(&h);
    harness_done(&h);
}

/* A member of a group that holds quota is deleted: the others give their quota up, and the room of its
 * victims goes to nobody. */
static void test_one_that_holds_goes(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 2, "8", "LowerPriority");
    make_pod(&h, "a", "low", 2, "", "", 4);
    make_pod(&h, "b", "low", 2, "", "", 4);
    harness_run_all(&h);
    make_pod(&h, "px", "top", 2, ", kueue.x-k8s.io/priority-class: high", "", 4);
    make_pod(&h, "py", "top", 2, ", kueue.x-k8s.io/priority-class: high", "", 4);
    assert_pods(&h, WORKLOAD_HOLDING, "px", "py");
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "px", STR("")) < 300);
    assert_pods(&h, WORKLOAD_PENDING, "py");
    assert_string_equal(why(&h, "py"), "Group default/top has 1 of 2 Pods");
    harness_check_replay(&h);
    make_pod(&h, "pz", "top", 2, ", kueue.x-k8s.io/priority-class: high", "", 4);
    harness_run_all(&h);
    assert_pods(&h, WORKLOAD_ADMITTED, "py", "pz");
    harness_check_replay(&h);
    harness_done(&h);
}

/* A required topology holds for all of them together. */
static void test_one_domain(void **state)
{
    (void)state;
    struct harness h;
    static const char in_one_rack[] = ", kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack";
    static const char cluster[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"queues\":{\"minimumRunTime\":\"0s\"},\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
        "\"pods\":[{\"racks\":[{\"name\":\"r1\",\"machines\":2,\"chips\":4},{\"name\":\"r2\",\"machines\":3,"
        "\"chips\":4}]}]}}";
    setup(&h, 5, "100", "Never");
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(cluster);
    harness_step(&h, &event);
    make_pod(&h, "a", "g", 3, "", in_one_rack, 4);
    make_pod(&h, "b", "g", 3, "", in_one_rack, 4);
    make_pod(&h, "c", "g", 3, "", in_one_rack, 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "c");
    const struct cluster *after = core_cluster(h.core);
    for (const char *const *name = (const char *const[]){"a", "b", "c", NULL}; *name; name++) {
        assert_int_equal(pod(&h, *name)->state, TASK_STARTING);
        assert_int_equal(after->machines[pod(&h, *name)->machine].block, after->machines[4].block);
    }
    make_pod(&h, "d", "h", 3, "", in_one_rack, 4);
    make_pod(&h, "e", "h", 3, "", in_one_rack, 4);
    make_pod(&h, "f", "h", 3, "", in_one_rack, 4);
    assert_pods(&h, WORKLOAD_PENDING, "d", "e", "f");
    assert_non_null(strstr(why(&h, "d"), "in one rack"));
    harness_done(&h);
}

/* Stopped queues evict all of it. */
static void test_drained(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 2, "8", "Never");
    make_pod(&h, "a", "g", 2, "", "", 4);
    make_pod(&h, "b", "g", 2, "", "", 4);
    harness_run_all(&h);
    char name[300];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(of(&h, "b")->name));
    post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", name, STR("{\"spec\":{\"active\":false}}"));
    assert_pods(&h, WORKLOAD_LEAVING, "a", "b");
    harness_run_all(&h);
    assert_null(pod(&h, "a"));
    assert_null(pod(&h, "b"));
    harness_check_replay(&h);
    harness_done(&h);
}

/* A Pod with retriable-in-group: false speaks for its group: failed Pods keep their places. */
static void test_one_try(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 2, "", ", kueue.x-k8s.io/retriable-in-group: \"false\"", 4);
    make_pod(&h, "b", "g", 2, "", "", 4);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "b"), 1);
    make_pod(&h, "c", "g", 2, "", "", 4);
    assert_null(pod(&h, "c"));
    assert_pods(&h, WORKLOAD_ADMITTED, "a");
    harness_check_replay(&h);
    harness_done(&h);
}

/* The Pods that exist need not wait for those that do not. */
static void test_fast_admission(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "8", "Never");
    make_pod(&h, "a", "g", 3, "", ", kueue.x-k8s.io/pod-group-fast-admission: \"true\"", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "a");
    make_pod(&h, "b", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_ADMITTED, "b");
    make_pod(&h, "c", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "c"); /* no quota is left */
    make_pod(&h, "d", "g", 3, "", "", 4);
    assert_null(pod(&h, "d"));
    harness_check_replay(&h);
    must_apply(&h, CLUSTER_QUEUE("team", "12", ""));
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "c");
    harness_done(&h);
}

/* Returns a core that goes on from a snapshot of the harness' core. */
static struct core *restored(struct harness *h)
{
    struct buf bytes = {0};
    struct error error = {0};
    struct core *copy = core_new();
    core_snapshot_write(h->core, &bytes);
    if (core_snapshot_read(copy, buf_str(&bytes), &error) < 0)
        fail_msg("%s", error.text);
    buf_done(&bytes);
    return copy;
}

/* Pods that came one by one hold machines one by one, and go on so when another comes and when the controller
 * starts anew: a gang of them all would look for other machines than those that are kept for its members. */
static void test_fast_admission_with_a_check(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 2, "8", "Never");
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: budget}\n"
                   "spec: {controllerName: example.com/budget}\n");
    set_check_active(&h, "budget", true);
    must_apply(
        &h, CLUSTER_QUEUE("team", "8", "  admissionChecksStrategy: {admissionChecks: [{name: budget}]}\n"));
    make_pod(&h, "a", "g", 3, "", ", kueue.x-k8s.io/pod-group-fast-admission: \"true\"", 4);
    make_pod(&h, "b", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_HOLDING, "a", "b");
    assert_ptr_equal(of(&h, "b")->leader, of(&h, "b"));
    struct core *copy = restored(&h);
    const struct workload *b = workload_of(core_admit(copy), of(&h, "b")->jobset->uid);
    assert_ptr_equal(b->leader, b);
    core_check_invariants(copy);
    core_free(copy);
    make_pod(&h, "c", "g", 3, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "c"); /* no quota is left */
    assert_ptr_equal(of(&h, "b")->leader, of(&h, "b"));
    assert_int_equal(post(&h, WRITE_STATUS, OBJECT_WORKLOAD, "default", "g",
                          STR("{\"status\":{\"admissionChecks\":[{\"name\":\"budget\",\"state\":\"Ready\","
                              "\"message\":\"\"}]}}")),
                     200);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b");
    assert_pods(&h, WORKLOAD_PENDING, "c");
    harness_check_replay(&h);
    harness_done(&h);
}

/* The changes that watchers of Workloads are told. */
struct heard {
    int added, deleted;
    obj_id uid; /* of the newest */
};

static void listen(struct harness *h, const struct event *event)
{
    struct heard *heard = h->context;
    (void)event;
    for (size_t i = 0; i < h->effects.list.len; i++) {
        const struct effect *effect = &h->effects.list.items[i];
        if (effect->kind != EFFECT_CHANGED || effect->changed.object.kind != OBJECT_WORKLOAD)
            continue;
        struct object_name name = object_name(effect->changed.object);
        assert_true(str_is(name.name, "g"));
        assert_int_equal(name.version, core_seq(h->core));
        heard->added += effect->changed.type == CHANGE_ADDED;
        heard->deleted += effect->changed.type == CHANGE_DELETED;
        assert_true(effect->changed.type == CHANGE_ADDED || name.uid == heard->uid);
        heard->uid = name.uid;
    }
}

static const struct workload *shown(struct harness *h)
{
    return workload_find(core_admit(h->core), STR("default"), STR("g"));
}

/* The Workload of a group stays while one Pod after the other is replaced, and goes with the last. */
static void test_one_workload(void **state)
{
    (void)state;
    struct harness h;
    struct heard heard = {0};
    const struct workload *const *members;
    setup(&h, 3, "12", "Never");
    h.context = &heard;
    h.after = listen;
    make_pod(&h, "a", "g", 2, "", "", 4);
    obj_id uid = heard.uid;
    make_pod(&h, "b", "g", 2, "", "", 4);
    assert_int_equal(shown(&h)->state, WORKLOAD_ADMITTED);
    assert_int_equal(workload_members(shown(&h), &members), 2);
    struct queue_counts counts;
    struct queue_condition active;
    assert_true(queue_status(core_admit(h.core),
                             object_find(core_objects(h.core), OBJECT_CLUSTER_QUEUE, STR(""), STR("team")),
                             &active, &counts));
    assert_int_equal(counts.admitted, 1); /* whatever number of Pods it has */
    assert_int_equal(counts.pending, 0);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "a"), 1);
    assert_int_equal(shown(&h)->state, WORKLOAD_ADMITTED); /* one runs */
    assert_false(workload_group_end(shown(&h)).finished);
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "a", STR("")) < 300);
    make_pod(&h, "c", "g", 2, "", "", 4);
    harness_run_all(&h);
    harness_check_replay(&h);
    harness_exit(&h, pod(&h, "b"), 0);
    harness_exit(&h, pod(&h, "c"), 0);
    struct group_end end = workload_group_end(shown(&h));
    assert_true(end.finished && end.well && end.succeeded == 2 && end.total == 2);
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "b", STR("")) < 300);
    assert_int_equal(heard.deleted, 0);
    assert_true(post(&h, WRITE_DELETE, OBJECT_POD, "default", "c", STR("")) < 300);
    assert_int_equal(heard.added, 1);
    assert_int_equal(heard.deleted, 1);
    assert_true(heard.uid == uid);
    assert_null(shown(&h));
    harness_done(&h);
}

/* Pods of equal shape are one PodSet; what is written of the Workload is written of all. */
static void test_roles(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 4, "16", "Never");
    make_pod(&h, "a", "g", 3, "", "", 4);
    make_pod(&h, "b", "g", 3, "", ", example.com/other: note", 4);
    make_pod(&h, "c", "g", 3, "", "", 2);
    assert_string_equal(of(&h, "a")->role, of(&h, "b")->role);
    assert_string_not_equal(of(&h, "a")->role, of(&h, "c")->role);
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "b", "c");
    obj_id uid = workload_shown_uid(shown(&h));
    assert_true(post(&h, WRITE_DELETE, OBJECT_WORKLOAD, "default", "g", STR("")) < 300);
    assert_pods(&h, WORKLOAD_LEAVING, "a", "b", "c");
    harness_run_all(&h);
    assert_null(shown(&h)); /* and Pods that are evicted are deleted */
    make_pod(&h, "d", "g", 2, "", "", 4);
    assert_true(workload_shown_uid(shown(&h)) != uid);
    post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", "g", STR("{\"spec\":{\"active\":false}}"));
    make_pod(&h, "e", "g", 2, "", "", 4);
    assert_pods(&h, WORKLOAD_PENDING, "d", "e");
    post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", "g", STR("{\"spec\":{\"active\":true}}"));
    assert_pods(&h, WORKLOAD_ADMITTED, "d", "e");
    harness_done(&h);
}

/* Name and size go together. */
static void test_form(void **state)
{
    (void)state;
    static const char *const wrong[][2] = {
        {"labels: {kueue.x-k8s.io/pod-group-name: g}", "annotations[kueue.x-k8s.io/pod-group-total-count]"},
        {"annotations: {kueue.x-k8s.io/pod-group-total-count: '2'}", "labels[kueue.x-k8s.io/pod-group-name]"},
        {"labels: {kueue.x-k8s.io/pod-group-name: g}, annotations: {kueue.x-k8s.io/pod-group-total-count: "
         "'0'}",
         "greater than zero"},
        {"labels: {kueue.x-k8s.io/pod-group-name: g}, annotations: {kueue.x-k8s.io/pod-group-total-count: "
         "two}",
         "greater than zero"},
    };
    struct harness h;
    setup(&h, 2, "8", "Never");
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        char yaml[512];
        snprintf(yaml, sizeof(yaml),
                 "apiVersion: v1\nkind: Pod\nmetadata: {name: p, namespace: default, %s}\nspec: {containers: "
                 "[{name: c, image: i, command: [run]}]}\n",
                 wrong[i][0]);
        assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "", yaml), 422);
        assert_non_null(strstr(h.last_message, wrong[i][1]));
    }
    harness_done(&h);
}

static void remove_pod(struct harness *h, const char *name)
{
    assert_true(post(h, WRITE_DELETE, OBJECT_POD, "default", name, STR("")) < 300);
    core_check_invariants(h->core);
}

static void assert_waits(struct harness *h, const char *name, bool waits)
{
    const struct workload_condition *condition = &of(h, name)->conditions[WORKLOAD_WAITS_FOR_PODS];
    assert_true(condition->present);
    assert_int_equal(condition->status, waits);
    assert_string_equal(condition->reason, waits ? "PodsFailed" : "PodsReady");
    assert_string_equal(condition->message.data,
                        waits ? "Some Failed pods need replacement" : "No pods need replacement");
}

static bool is_held(struct harness *h, const char *name)
{
    return object_has_finalizer(pod(h, name)->job->jobset->document, "kueue.x-k8s.io/managed");
}

/* A Pod that is over is kept by its finalizer until another one has taken its place, or the group is over. */
static void test_held_until_replaced(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 2, "", "", 4);
    make_pod(&h, "b", "g", 2, "", "", 4);
    assert_true(is_held(&h, "a"));
    assert_false(of(&h, "a")->conditions[WORKLOAD_WAITS_FOR_PODS].present);
    harness_run_all(&h);
    remove_pod(&h, "b");
    assert_int_equal(pod(&h, "b")->state, TASK_STOPPING);
    harness_exit(&h, pod(&h, "b"), 143);
    assert_int_equal(pod(&h, "b")->state, TASK_FAILED);
    assert_true(pod(&h, "b")->job->jobset->deleted_ns > 0);
    assert_waits(&h, "a", true);
    assert_waits(&h, "b", true);
    harness_check_replay(&h);
    make_pod(&h, "c", "g", 2, "", "", 4); /* in its place */
    assert_pods(&h, WORKLOAD_ADMITTED, "a", "c");
    assert_null(pod(&h, "b"));
    assert_waits(&h, "c", false);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "a"), 0);
    remove_pod(&h, "a"); /* its success is still wanted */
    assert_int_equal(pod(&h, "a")->state, TASK_SUCCEEDED);
    assert_waits(&h, "c", false);
    harness_check_replay(&h);
    harness_exit(&h, pod(&h, "c"), 0);
    assert_null(pod(&h, "a"));
    assert_false(is_held(&h, "c"));
    remove_pod(&h, "c");
    assert_null(pod(&h, "c"));
    harness_done(&h);
}

/* A failed Pod loses the finalizer when it is replaced, and stays until its user deletes it. */
static void test_failed_and_replaced(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 2, "", "", 4);
    make_pod(&h, "b", "g", 2, "", "", 4);
    harness_run_all(&h);
    harness_exit(&h, pod(&h, "b"), 1);
    assert_true(is_held(&h, "b"));
    assert_waits(&h, "a", true);
    make_pod(&h, "c", "g", 2, "", "", 4);
    assert_false(is_held(&h, "b"));
    assert_waits(&h, "a", false);
    assert_int_equal(pod(&h, "b")->state, TASK_FAILED);
    remove_pod(&h, "b");
    assert_null(pod(&h, "b"));
    harness_done(&h);
}

/* A Pod that Kueue no longer manages keeps no finalizer, because nothing would take it away. */
static void test_unmanaged_is_not_held(void **state)
{
    (void)state;
    struct harness h;
    setup(&h, 3, "12", "Never");
    make_pod(&h, "a", "g", 2, "", "", 4);
    must_apply(&h, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: a\n  namespace: default\n  labels: {"
                   "kueue.x-k8s.io/pod-group-name: g}\n  annotations: {kueue.x-k8s.io/pod-group-total-count: "
                   "\"2\"}\n  finalizers: [kueue.x-k8s.io/managed]\nspec:\n  restartPolicy: Never\n  "
                   "schedulingGates: [{name: kueue.x-k8s.io/admission}]\n  containers: [{name: c, image: i, "
                   "command: [run], resources: {limits: {google.com/tpu: 4}}}]\n");
    assert_null(of(&h, "a"));
    assert_false(is_held(&h, "a"));
    harness_done(&h);
}

/* All Pods of a group go when none is left to be replaced, and when the Workload is deleted. */
static void test_not_held_for_nothing(void **state)
{
    (void)state;
    for (int workload = 0; workload < 2; workload++) {
        struct harness h;
        setup(&h, 3, "12", "Never");
        make_pod(&h, "a", "g", 2, "", "", 4);
        remove_pod(&h, "a"); /* it waits */
        assert_null(pod(&h, "a"));
        make_pod(&h, "a", "g", 2, "", "", 4);
        make_pod(&h, "b", "g", 2, "", "", 4);
        harness_run_all(&h);
        remove_pod(&h, "b");
        harness_exit(&h, pod(&h, "b"), 143);
        assert_non_null(pod(&h, "b"));
        if (workload)
            assert_true(post(&h, WRITE_DELETE, OBJECT_WORKLOAD, "default", "g", STR("")) < 300);
        else
            remove_pod(&h, "a");
        harness_exit(&h, pod(&h, "a"), 143);
        assert_null(pod(&h, "a"));
        assert_null(pod(&h, "b"));
        harness_check_replay(&h);
        harness_done(&h);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_held_until_replaced),
        cmocka_unit_test(test_failed_and_replaced),
        cmocka_unit_test(test_not_held_for_nothing),
        cmocka_unit_test(test_unmanaged_is_not_held),
        cmocka_unit_test(test_waits_until_all_are_there),
        cmocka_unit_test(test_all_or_none),
        cmocka_unit_test(test_must_agree),
        cmocka_unit_test(test_preempted_as_a_whole),
        cmocka_unit_test(test_one_that_holds_goes),
        cmocka_unit_test(test_one_domain),
        cmocka_unit_test(test_drained),
        cmocka_unit_test(test_one_try),
        cmocka_unit_test(test_fast_admission),
        cmocka_unit_test(test_fast_admission_with_a_check),
        cmocka_unit_test(test_one_workload),
        cmocka_unit_test(test_roles),
        cmocka_unit_test(test_form),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
