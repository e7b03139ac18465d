/* Workloads that users make, and the jobs that take them over. */
#include "queues.h"

#define QUEUE(quota, more) FLAVOR("v5e") CLUSTER_QUEUE("cq", quota, more) LOCAL_QUEUE("lq", "cq")
#define PREEMPTS           "  preemption: {withinClusterQueue: LowerPriority}\n"
#define NAMES(workload)    "    kueue.x-k8s.io/prebuilt-workload-name: " workload "\n"
#define CHECKED                                                                                              \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: AdmissionCheck\nmetadata: {name: budget}\n"                   \
    "spec: {controllerName: example.com/budget}\n---\n" FLAVOR("v5e")                                        \
        CLUSTER_QUEUE("cq", "8", "  admissionChecksStrategy: {admissionChecks: [{name: budget}]}\n")         \
            LOCAL_QUEUE("lq", "cq")

#define OTHER_QUEUE CLUSTER_QUEUE("cq2", "8", "") LOCAL_QUEUE("lq2", "cq2")

static void begin(struct harness *h, int machines, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, "{\"minimumRunTime\":\"0s\"}");
    must_apply(h, objects);
}

/* Writes a Workload of one PodSet: `tasks` tasks of `chips` chips each; `spec` adds members, with commas. */
static int put(struct harness *h, enum write_verb verb, const char *name, int tasks, int chips,
               const char *spec)
{
    char body[2048];
    snprintf(body, sizeof(body),
             "{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"%s\","
             "\"labels\":{\"team\":\"a\"}},\"spec\":{%s\"queueName\":\"lq\",\"podSets\":[{\"name\":\"ranks\","
             "\"count\":%d,\"template\":{\"spec\":{\"restartPolicy\":\"Never\",\"containers\":[{\"name\":"
             "\"c\",\"image\":\"i\",\"resources\":{\"limits\":{\"google.com/tpu\":%d}}}]}}}]}}",
             name, spec, tasks, chips);
    return post(h, verb, OBJECT_WORKLOAD, "default", verb == WRITE_CREATE ? "" : name, str_from(body));
}

static void make(struct harness *h, const char *name, int tasks, int chips, const char *spec)
{
    if (put(h, WRITE_CREATE, name, tasks, chips, spec) != 201)
        fail_msg("%s: %d %s", name, h->last_code, h->last_message);
}

static int drop(struct harness *h, const char *name)
{
    return post(h, WRITE_DELETE, OBJECT_WORKLOAD, "default", name, STR(""));
}

static const struct workload *named(struct harness *h, const char *name)
{
    return workload_find(core_admit(h->core), STR("default"), str_from(name));
}

static const char *life(struct harness *h, const char *name)
{
    static const char *const names[] = {"pending", "holding", "admitted", "leaving", "finished"};
    const struct workload *workload = named(h, name);
    return workload ? names[workload->state] : "none";
}

static const char *finished_by(struct harness *h, const char *name)
{
    const char *reason = named(h, name)->conditions[WORKLOAD_IS_FINISHED].reason;
    return reason ? reason : "";
}

static struct queue_counts counts_of(struct harness *h, const char *queue)
{
    const struct object *object =
        object_find(core_objects(h->core), OBJECT_CLUSTER_QUEUE, STR(""), str_from(queue));
    struct queue_condition condition;
    struct queue_counts counts;
    assert_true(queue_status(core_admit(h->core), object, &condition, &counts));
    return counts;
}

static int64_t used(struct harness *h, const char *queue)
{
    return counts_of(h, queue).admitted;
}

static size_t jobsets_seen(struct harness *h)
{
    size_t seen = 0;
    for (size_t i = 0; i < core_jobs(h->core)->jobsets.len; i++)
        seen += jobset_is_seen(core_jobs(h->core)->jobsets.items[i]);
    return seen;
}

/* --- alone -------------------------------------------------------------------------------------- */

static void test_queues_without_a_job(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(used(&h, "cq"), 1);
    assert_int_equal(jobsets_seen(&h), 0);
    make(&h, "b", 1, 4, "");
    assert_string_equal(life(&h, "b"), "pending");
    assert_int_equal(put(&h, WRITE_CREATE, "a", 1, 1, ""), 409);
    submit(&h, "c", "lq", 1, 4, "");
    assert_state(&h, "c", "pending");
    assert_int_equal(drop(&h, "a"), 200);
    assert_null(named(&h, "a"));
    assert_string_equal(life(&h, "b"), "admitted");
    assert_state(&h, "c", "admitted");
    assert_int_equal(drop(&h, "nobody"), 404);
    harness_done(&h);
}

#define HELD_BY(finalizers)                                                                                  \
    STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":{\"name\":\"a\","     \
        "\"finalizers\":[" finalizers "]},\"spec\":{\"queueName\":\"lq\",\"podSets\":[{\"name\":\"x\","      \
        "\"count\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\"}]}}}]}}")

/* A Workload that had quota when it was deleted is back in its queue until its last finalizer is dropped. */
static void test_deleted_but_kept(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 1, QUEUE("4", ""));
    assert_int_equal(post(&h, WRITE_CREATE, OBJECT_WORKLOAD, "default", "", HELD_BY("\"example.com/hold\"")),
                     201);
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(counts_of(&h, "cq").pending, 0);
    assert_int_equal(drop(&h, "a"), 200);
    assert_string_equal(life(&h, "a"), "pending");
    assert_int_equal(used(&h, "cq"), 0);
    assert_int_equal(counts_of(&h, "cq").pending, 1);
    assert_int_equal(post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", "a", HELD_BY("")), 200);
    assert_string_equal(life(&h, "a"), "none");
    assert_int_equal(counts_of(&h, "cq").pending, 0);
    harness_done(&h);
}

/* Machines are kept with the quota: what belongs to no queue finds none. */
static void test_keeps_machines(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    harness_create(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: thief}\nspec:\n"
                       "  replicatedJobs:\n  - {name: w, template: {spec: {template: {spec: {restartPolicy: "
                       "Never, containers: [{name: c, image: i, command: [run], resources: {limits: "
                       "{google.com/tpu: 1}}}]}}}}}\n");
    assert_int_equal(harness_task(&h, "thief-w-0-0")->state, TASK_PENDING);
    drop(&h, "a");
    assert_int_equal(harness_task(&h, "thief-w-0-0")->state, TASK_STARTING);
    harness_done(&h);
}

/* A Workload gives its machines back to all queues, also to one that shares no quota with its own. */
static void test_gives_machines_back(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", "") OTHER_QUEUE);
    make(&h, "a", 2, 4, "");
    submit(&h, "j", "lq2", 2, 4, "");
    assert_state(&h, "j", "pending");
    assert_non_null(strstr(message_of(&h, "j", WORKLOAD_QUOTA_RESERVED), "2 reserved for others"));
    drop(&h, "a");
    assert_state(&h, "j", "admitted");
    harness_done(&h);
}

static void test_deactivated_and_back(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "\"active\":false,");
    assert_string_equal(life(&h, "a"), "pending");
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 4, "\"active\":true,"), 200);
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 4, "\"active\":false,"), 200);
    assert_string_equal(life(&h, "a"), "pending");
    assert_string_equal(named(&h, "a")->conditions[WORKLOAD_EVICTED].reason, "Deactivated");
    assert_int_equal(used(&h, "cq"), 0);
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 1, 4, ""), 200);
    assert_string_equal(life(&h, "a"), "admitted");
    harness_done(&h);
}

static void test_preempted(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", PREEMPTS));
    make(&h, "low", 2, 4, "\"priority\":1,");
    assert_string_equal(life(&h, "low"), "admitted");
    make(&h, "high", 1, 4, "\"priority\":7,");
    assert_string_equal(life(&h, "high"), "admitted");
    assert_string_equal(life(&h, "low"), "pending");
    assert_string_equal(named(&h, "low")->conditions[WORKLOAD_EVICTED].reason, "Preempted");
    drop(&h, "high");
    assert_string_equal(life(&h, "low"), "admitted");
    harness_done(&h);
}

/* --- what may change ---------------------------------------------------------------------------- */

#define OF_CLASS                                                                                             \
    "\"priorityClassRef\":{\"group\":\"kueue.x-k8s.io\",\"kind\":\"WorkloadPriorityClass\",\"name\":\"x\"},"

static void test_rules_of_changes(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 1, 4, ""), 422);
    assert_non_null(strstr(h.last_message, "spec.podSets"));
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 4, "\"priority\":5,"), 200);
    assert_int_equal(named(&h, "a")->priority, 5);
    make(&h, "b", 2, 4, "");
    assert_int_equal(put(&h, WRITE_REPLACE, "b", 1, 2, ""), 200); /* it has no quota yet */
    assert_int_equal(named(&h, "b")->podsets[0].count, 1);
    assert_int_equal(put(&h, WRITE_CREATE, "c", -1, 4, ""), 422);
    assert_int_equal(put(&h, WRITE_CREATE, "c", 1, 4, "\"maximumExecutionTimeSeconds\":0,"), 422);
    assert_int_equal(put(&h, WRITE_CREATE, "c", 1, 4, OF_CLASS), 422);
    assert_non_null(strstr(h.last_message, "priority should not be nil when priorityClassRef is set"));
    assert_int_equal(put(&h, WRITE_REPLACE, "b", 1, 2, OF_CLASS), 422);
    assert_int_equal(put(&h, WRITE_CREATE, "c", 1, 4, OF_CLASS "\"priority\":3,"), 201);
    assert_int_equal(post(&h, WRITE_CREATE, OBJECT_WORKLOAD, "default", "",
                          STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\","
                              "\"metadata\":{\"name\":\"c\"},\"spec\":{\"podSets\":[]}}")),
                     422);
    harness_done(&h);
}

static void test_more_podsets_while_it_waits(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("4", ""));
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "pending");
#define SET(name, count)                                                                                     \
    "{\"name\":\"" name "\",\"count\":" count ",\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","    \
    "\"image\":\"i\",\"resources\":{\"limits\":{\"google.com/tpu\":1}}}]}}}"
    assert_int_equal(post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", "a",
                          STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":"
                              "{\"name\":\"a\"},\"spec\":{\"queueName\":\"lq\",\"podSets\":[" SET(
                                  "x", "1") "," SET("y", "2") "]}}")),
                     200);
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(named(&h, "a")->podsets[1].admitted, 2);
    harness_done(&h);
}

/* A running JobSet has to end before the Workload "high" gets its machines. */
static void begin_preempting(struct harness *h)
{
    begin(h, 2, QUEUE("8", PREEMPTS));
    submit(h, "low", "lq", 2, 4, "");
    harness_run_all(h);
    make(h, "high", 2, 4, "\"priority\":7,");
    assert_state(h, "low", "leaving");
    assert_string_equal(life(h, "high"), "holding");
}

/* A hold is for the tasks of the old PodSets, so a changed Workload is tried anew with the new ones. */
static void test_changed_while_it_preempts(void **state)
{
    (void)state;
    for (int tasks = 0; tasks <= 3; tasks++) {
        struct harness h;
        begin_preempting(&h);
        assert_int_equal(put(&h, WRITE_REPLACE, "high", tasks, tasks ? 2 : 4, "\"priority\":7,"), 200);
        assert_int_equal(named(&h, "high")->podsets[0].count, tasks);
        harness_check_replay(&h);
        harness_run_all(&h);
        assert_string_equal(life(&h, "high"), "admitted");
        assert_int_equal(named(&h, "high")->podsets[0].admitted, tasks);
        harness_done(&h);
    }
}

static void test_same_podsets_while_it_preempts(void **state)
{
    (void)state;
    struct harness h;
    begin_preempting(&h);
    assert_int_equal(put(&h, WRITE_REPLACE, "high", 2, 4, "\"priority\":9,"), 200);
    assert_string_equal(life(&h, "high"), "holding"); /* its PodSets are the same */
    harness_done(&h);
}

static void test_more_podsets_while_its_job_preempts(void **state)
{
    (void)state;
    struct harness h;
    begin_preempting(&h);
    submit(&h, "j", "lq", 2, 4, NAMES("high"));
    assert_state(&h, "j", "holding");
    assert_int_equal(post(&h, WRITE_REPLACE, OBJECT_WORKLOAD, "default", "high",
                          STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":"
                              "{\"name\":\"high\"},\"spec\":{\"queueName\":\"lq\",\"podSets\":[" SET(
                                  "x", "1") "," SET("y", "2") "]}}")),
                     200);
    harness_check_replay(&h);
    assert_string_equal(finished_by(&h, "high"), "OutOfSync");
    harness_run_all(&h);
    harness_done(&h);
}

/* --- a job ---------------------------------------------------------------------------------------- */

static void test_job_waits_for_its_workload(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_null(workload_named(&h, "j"));
    assert_true(harness_jobset(&h, "j")->spec.suspend);
    make(&h, "a", 2, 4, "");
    const struct workload *workload = workload_named(&h, "j");
    assert_ptr_equal(workload, named(&h, "a"));
    assert_state(&h, "j", "admitted");
    assert_string_equal(workload->podsets[0].name.data ? "ranks" : "", "ranks");
    assert_true(object_has_finalizer(workload->own->document, FINALIZER_IN_USE));
    harness_run_all(&h);
    finish_all(&h, "j", 2);
    assert_state(&h, "j", "finished");
    assert_string_equal(finished_by(&h, "a"), "Succeeded");
    assert_int_equal(harness_write(&h, WRITE_DELETE, "j", NULL), 200);
    harness_run_all(&h);
    assert_null(named(&h, "a")); /* its owner is gone */
    harness_done(&h);
}

/* The Jobs of a waiting JobSet stay when it is deleted with propagationPolicy Orphan, but nothing would ever
 * give the quota and the machines of the Workload back. */
static void test_orphans_do_not_take_it(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_int_equal(harness_delete_orphaning(&h, OBJECT_JOBSET, "j"), 200);
    assert_non_null(jobs_find_job(core_jobs(h.core), STR("default"), STR("j-w-0")));
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "admitted");
    assert_true(workload_is_bare(named(&h, "a")));
    core_check_invariants(h.core);
    harness_check_replay(&h);
    submit(&h, "k", "lq", 2, 4, NAMES("a"));
    assert_state(&h, "k", "admitted");
    harness_done(&h);
}

static void test_job_starts_where_it_was_admitted(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "admitted");
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_state(&h, "j", "admitted");
    assert_int_equal(harness_task(&h, "j-w-0-1")->state, TASK_STARTING);
    assert_int_equal(used(&h, "cq"), 1);
    submit(&h, "k", "lq", 2, 4, NAMES("a")); /* it is taken */
    assert_null(workload_named(&h, "k"));
    harness_run_all(&h);
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 4, "\"active\":false,"), 200);
    harness_run_all(&h);
    assert_state(&h, "j", "pending");
    assert_true(harness_jobset(&h, "j")->spec.suspend);
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 4, "\"active\":true,"), 200);
    assert_state(&h, "j", "admitted");
    harness_done(&h);
}

/* The labels of a Job's flavour have changed since machines were reserved for it, and no machine has them:
 * other Jobs may have the machines. Torture seed 121053948. */
static void test_job_starts_where_its_flavor_is_now(void **state)
{
    (void)state;
    static const char nowhere[] = "{\"apiVersion\":\"kueue.x-k8s.io/"
                                  "v1beta2\",\"kind\":\"ResourceFlavor\",\"metadata\":{\"name\":\"v5e\"},"
                                  "\"spec\":{\"nodeLabels\":{\"kubernetes.io/hostname\":\"m-9\"}}}";
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    assert_int_equal((int)named(&h, "a")->jobset->grant.reserved_count, 2);
    assert_int_equal(post(&h, WRITE_REPLACE, OBJECT_RESOURCE_FLAVOR, "", "v5e", str_from(nowhere)), 200);
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_state(&h, "j", "admitted");
    assert_int_equal((int)harness_jobset(&h, "j")->grant.reserved_count, 0);
    harness_done(&h);
}

static void test_out_of_sync(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    submit(&h, "j", "lq", 2, 2, NAMES("a"));
    assert_string_equal(life(&h, "a"), "finished");
    assert_string_equal(finished_by(&h, "a"), "OutOfSync");
    assert_int_equal(used(&h, "cq"), 0);
    assert_true(harness_jobset(&h, "j")->spec.suspend);
    assert_int_equal(drop(&h, "a"), 200);
    make(&h, "a", 2, 2, "");
    assert_state(&h, "j", "admitted");
    harness_done(&h);
}

/* A job that waits is changed, or its Workload is. */
static void test_out_of_sync_later(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("0", ""));
    make(&h, "a", 2, 4, "");
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_state(&h, "j", "pending");
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 2, 2, ""), 200);
    assert_string_equal(finished_by(&h, "a"), "OutOfSync");
    assert_null(workload_named(&h, "j"));
    harness_done(&h);
}

static void test_deleted_under_a_job(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    harness_run_all(&h);
    assert_state(&h, "j", "admitted");
    assert_int_equal(drop(&h, "a"), 200);
    assert_string_equal(life(&h, "a"), "leaving"); /* its tasks end first */
    harness_run_all(&h);
    assert_null(named(&h, "a"));
    assert_null(workload_named(&h, "j"));
    assert_true(harness_jobset(&h, "j")->spec.suspend);
    make(&h, "a", 2, 4, "");
    assert_state(&h, "j", "admitted");
    harness_run_all(&h);
    assert_int_equal(harness_task(&h, "j-w-0-0")->state, TASK_RUNNING);
    harness_done(&h);
}

static void test_job_deleted_while_it_runs(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 2, 4, "");
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    harness_run_all(&h);
    assert_int_equal(harness_write(&h, WRITE_DELETE, "j", NULL), 200);
    harness_run_all(&h);
    assert_null(named(&h, "a"));
    assert_int_equal(used(&h, "cq"), 0);
    make(&h, "b", 2, 4, "");
    assert_string_equal(life(&h, "b"), "admitted");
    harness_done(&h);
}

/* A job takes over a Workload that holds quota for its checks, with the quota. */
static void test_taken_over_while_it_holds(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, CHECKED);
    set_check_active(&h, "budget", true);
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "holding");
    submit(&h, "j", "lq", 2, 4, NAMES("a"));
    assert_state(&h, "j", "holding");
    assert_int_equal(post(&h, WRITE_STATUS, OBJECT_WORKLOAD, "default", "a",
                          STR("{\"status\":{\"admissionChecks\":[{\"name\":\"budget\",\"state\":\"Ready\","
                              "\"message\":\"because\"}]}}")),
                     200);
    assert_state(&h, "j", "admitted");
    assert_int_equal(harness_task(&h, "j-w-0-0")->state, TASK_STARTING);
    harness_done(&h);
}

static void answer(struct harness *h, const char *name, const char *state)
{
    char body[256];
    snprintf(body, sizeof(body),
             "{\"status\":{\"admissionChecks\":[{\"name\":\"budget\",\"state\":\"%s\",\"message\":"
             "\"because\"}]}}",
             state);
    assert_int_equal(post(h, WRITE_STATUS, OBJECT_WORKLOAD, "default", name, str_from(body)), 200);
}

/* The same holds for machines that were kept until its checks were answered. */
static void test_gives_held_machines_back(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, CHECKED OTHER_QUEUE);
    set_check_active(&h, "budget", true);
    make(&h, "a", 2, 4, "");
    assert_string_equal(life(&h, "a"), "holding");
    submit(&h, "j", "lq2", 2, 4, "");
    assert_state(&h, "j", "pending");
    answer(&h, "a", "Rejected");
    assert_string_equal(life(&h, "a"), "pending");
    assert_state(&h, "j", "admitted");
    harness_done(&h);
}

/* Half a machine is kept for it, but in the end the other half of a used one fits better. */
static void test_gives_back_what_it_does_not_take(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, CHECKED OTHER_QUEUE);
    set_check_active(&h, "budget", true);
    make(&h, "a", 1, 2, "");
    assert_string_equal(life(&h, "a"), "holding");
    machine_id kept = named(&h, "a")->jobset->grant.reserved[0].machine;
    char yaml[512];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: v1\nkind: Pod\nmetadata: {name: half}\nspec: {restartPolicy: Never, nodeSelector: "
             "{kubernetes.io/hostname: m-%u}, containers: [{name: c, image: i, command: [run], resources: "
             "{limits: {google.com/tpu: 2}}}]}\n",
             2 - kept);
    must_apply(&h, yaml);
    submit(&h, "j", "lq2", 1, 4, "");
    assert_state(&h, "j", "pending");
    answer(&h, "a", "Ready");
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_not_equal(named(&h, "a")->jobset->grant.reserved[0].machine, kept);
    assert_state(&h, "j", "admitted");
    harness_done(&h);
}

#define ONE_POD(more)                                                                                        \
    "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]" more

static void test_pod_takes_it_over(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    must_apply(
        &h, "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels:\n"
            "    kueue.x-k8s.io/queue-name: lq\n" NAMES("a") "spec: {restartPolicy: Never, " ONE_POD("}\n"));
    struct task *task = jobs_find_pod(core_jobs(h.core), STR("default"), STR("p"));
    assert_int_equal(task->state, TASK_PENDING);
    assert_string_equal(life(&h, "a"), "none");
    make(&h, "a", 1, 4, "");
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(task->state, TASK_STARTING);
    harness_run_all(&h);
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 1, 4, "\"active\":false,"), 200);
    harness_run_all(&h);
    assert_string_equal(life(&h, "a"), "none"); /* an evicted Pod is deleted, and its Workload with it */
    harness_done(&h);
}

/* As few tasks as the Workload and the job allow. */
static void test_partial_admission(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    assert_int_equal(
        post(&h, WRITE_CREATE, OBJECT_WORKLOAD, "default", "",
             STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta2\",\"kind\":\"Workload\",\"metadata\":"
                 "{\"name\":\"a\"},\"spec\":{\"queueName\":\"lq\",\"podSets\":[{\"name\":\"main\","
                 "\"count\":4,\"minCount\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\","
                 "\"image\":\"i\",\"resources\":{\"limits\":{\"google.com/tpu\":4}}}]}}}]}}")),
        201);
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(named(&h, "a")->podsets[0].admitted, 2);
    must_apply(&h, "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: j\n  labels:\n"
                   "    kueue.x-k8s.io/queue-name: lq\n" NAMES(
                       "a") "  annotations: "
                            "{kueue.x-k8s.io/job-min-parallelism: '1'}\nspec: {parallelism: 4, completions: "
                            "4, template: "
                            "{spec: {restartPolicy: Never, " ONE_POD("}}}\n"));
    const struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("j"));
    assert_int_equal(job->rjob->job.parallelism, 2);
    assert_int_equal(job->tasks.len, 2);
    assert_string_equal(life(&h, "a"), "admitted");
    assert_int_equal(put(&h, WRITE_REPLACE, "a", 4, 4, "\"active\":false,"),
                     422); /* another name, no minCount */
    harness_run_all(&h);
    assert_int_equal(drop(&h, "a"), 200);
    harness_run_all(&h);
    assert_string_equal(life(&h, "a"), "none");
    assert_int_equal(job->rjob->job.parallelism, 4); /* as its user wrote it */
    harness_done(&h);
}

/* A group of Pods has one Workload of its name: the name is taken. */
static void test_group_of_that_name(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    make(&h, "a", 1, 4, "");
    assert_int_equal(harness_write_checked(&h, OBJECT_POD, WRITE_CREATE, "",
                                           "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p\n  labels: "
                                           "{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/pod-group-name: a}"
                                           "\n  annotations: {kueue.x-k8s.io/pod-group-total-count: '1'}\n"
                                           "spec: {restartPolicy: Never, " ONE_POD("}\n")),
                     409);
    harness_done(&h);
}

static void test_namespace_takes_it_along(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, QUEUE("8", ""));
    must_apply(&h, "apiVersion: v1\nkind: Namespace\nmetadata: {name: team}\n---\n"
                   "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, namespace: "
                   "team}\nspec: {clusterQueue: cq}\n");
    assert_int_equal(post(&h, WRITE_CREATE, OBJECT_WORKLOAD, "team", "",
                          STR("{\"apiVersion\":\"kueue.x-k8s.io/v1beta1\",\"kind\":\"Workload\",\"metadata\":"
                              "{\"generateName\":\"a-\",\"namespace\":\"team\"},\"spec\":{\"queueName\":"
                              "\"lq\",\"priority\":0,\"priorityClassName\":\"none\",\"priorityClassSource\":"
                              "\"scheduling.k8s.io/priorityclass\",\"podSets\":[" SET("x", "2") "]}}")),
                     201);
    assert_int_equal(used(&h, "cq"), 1);
    assert_int_equal(post(&h, WRITE_DELETE, OBJECT_NAMESPACE, "", "team", STR("")), 200);
    assert_int_equal(used(&h, "cq"), 0);
    assert_int_equal(core_jobs(h.core)->jobsets.len, 0);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_queues_without_a_job),
        cmocka_unit_test(test_deleted_but_kept),
        cmocka_unit_test(test_keeps_machines),
        cmocka_unit_test(test_gives_machines_back),
        cmocka_unit_test(test_deactivated_and_back),
        cmocka_unit_test(test_preempted),
        cmocka_unit_test(test_rules_of_changes),
        cmocka_unit_test(test_more_podsets_while_it_waits),
        cmocka_unit_test(test_changed_while_it_preempts),
        cmocka_unit_test(test_same_podsets_while_it_preempts),
        cmocka_unit_test(test_more_podsets_while_its_job_preempts),
        cmocka_unit_test(test_job_waits_for_its_workload),
        cmocka_unit_test(test_orphans_do_not_take_it),
        cmocka_unit_test(test_job_starts_where_it_was_admitted),
        cmocka_unit_test(test_job_starts_where_its_flavor_is_now),
        cmocka_unit_test(test_out_of_sync),
        cmocka_unit_test(test_out_of_sync_later),
        cmocka_unit_test(test_deleted_under_a_job),
        cmocka_unit_test(test_job_deleted_while_it_runs),
        cmocka_unit_test(test_taken_over_while_it_holds),
        cmocka_unit_test(test_gives_held_machines_back),
        cmocka_unit_test(test_gives_back_what_it_does_not_take),
        cmocka_unit_test(test_pod_takes_it_over),
        cmocka_unit_test(test_partial_admission),
        cmocka_unit_test(test_group_of_that_name),
        cmocka_unit_test(test_namespace_takes_it_along),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
