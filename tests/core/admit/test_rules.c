/* Single rules of admission: flavours, readiness and its time-outs, limits of time, quota given back early,
 * fewer tasks than asked for, batch Jobs, cohorts in a circle, settings. */
#include "queues.h"

#define PLAIN(quota) FLAVOR("v5e") CLUSTER_QUEUE("cq", quota, "") LOCAL_QUEUE("lq", "cq")

static void begin(struct harness *h, int machines, const char *settings, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, settings);
    must_apply(h, objects);
}

static void test_pods_ready_timeout(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          "{\"waitForPodsReady\":{\"enable\":true,\"timeout\":\"5m\",\"requeuingStrategy\":{"
          "\"backoffLimitCount\":"
          "2,\"backoffBaseSeconds\":60}}}",
          PLAIN("8"));
    submit(&h, "a", "lq", 1, 4, ""); /* its task is told to start and never does */
    for (int count = 1; count <= 2; count++) {
        assert_state(&h, "a", "admitted");
        harness_wait(&h, 299 * NS_PER_SECOND);
        assert_state(&h, "a", "admitted");
        harness_wait(&h, NS_PER_SECOND);
        assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "PodsReadyTimeout");
        for (size_t i = 0; i < h.told.len; i++) /* stopped before it started */
            h.told.items[i].started = true;
        harness_run_all(&h);
        assert_state(&h, "a", "pending");
        assert_false(holds(&h, "a", WORKLOAD_REQUEUED));
        harness_wait(&h, (60 * count - 1) * NS_PER_SECOND); /* 60 s, then twice that */
        assert_state(&h, "a", "pending");
        harness_wait(&h, NS_PER_SECOND);
    }
    assert_state(&h, "a", "admitted");
    harness_wait(&h, 300 * NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "DeactivatedDueToRequeuingLimitExceeded");
    harness_run_all(&h);
    assert_state(&h, "a", "pending");
    assert_false(workload_named(&h, "a")->active);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    assert_state(&h, "a", "pending");
    harness_done(&h);
}

static void test_block_admission(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"waitForPodsReady\":{\"enable\":true,\"blockAdmission\":true}}", PLAIN("8"));
    submit(&h, "a", "lq", 1, 4, "");
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "b", "pending");
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "WaitingForPodsReady");
    harness_run_all(&h);
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

/* A workload of another cohort waits no longer for one that is deleted, though no chip has become free. */
static void test_block_admission_ends_with_a_deletion(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"waitForPodsReady\":{\"enable\":true,\"blockAdmission\":true}}",
          PLAIN("8") "---\n" CLUSTER_QUEUE("cq2", "8", "") LOCAL_QUEUE("lq2", "cq2"));
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Workload\nmetadata: {name: wl}\n"
                   "spec: {queueName: lq, podSets: [{name: p, count: 0, template: {spec: {containers: "
                   "[{name: c, image: i, resources: {limits: {google.com/tpu: 1}}}]}}}]}\n");
    submit(&h, "b", "lq2", 1, 4, "");
    assert_state(&h, "b", "pending");
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "WaitingForPodsReady");
    assert_int_equal(harness_write_checked(&h, OBJECT_WORKLOAD, WRITE_DELETE, "wl", NULL), 200);
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

/* A lifetime that is shorter than the timeout ends an admission that was never ready by the same rule: while
 * it backs off, the others have their turn, whatever their priority. */
static void test_a_short_life_is_a_timeout_too(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          "{\"maximumLifetime\":\"4m\",\"waitForPodsReady\":{\"enable\":true,\"timeout\":\"5m\","
          "\"blockAdmission\":true,\"requeuingStrategy\":{\"backoffBaseSeconds\":60}}}",
          PLAIN("8") "---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                     "metadata: {name: high}\nvalue: 100\n");
    submit(&h, "a", "lq", 1, 4, "    kueue.x-k8s.io/priority-class: high\n"); /* it is never started */
    submit(&h, "b", "lq", 1, 4, "");
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "WaitingForPodsReady");
    harness_wait(&h, 240 * NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "PodsReadyTimeout");
    for (size_t i = 0; i < h.told.len; i++) /* stopped before it started */
        h.told.items[i].started = true;
    harness_run_all(&h);
    assert_false(holds(&h, "a", WORKLOAD_REQUEUED));
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

static void test_times_of_a_run(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"maximumLifetime\":\"1h\"}", PLAIN("8"));
    submit(&h, "short", "lq", 1, 4, "    kueue.x-k8s.io/max-exec-time-seconds: '600'\n");
    submit(&h, "long", "lq", 1, 4, "");
    harness_run_all(&h);
    harness_wait(&h, 600 * NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "short", WORKLOAD_EVICTED),
                        "DeactivatedDueToMaximumExecutionTimeExceeded");
    harness_run_all(&h);
    assert_false(workload_named(&h, "short")->active);
    assert_state(&h, "long", "admitted");
    harness_wait(&h, 3000 * NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "long", WORKLOAD_EVICTED), "MaximumLifetimeExceeded");
    harness_run_all(&h);
    assert_state(&h, "long", "admitted"); /* nobody else wants its place */
    harness_done(&h);
}

/* Ranks that have saved what they were asked to need no more of their grace. */
static void test_saved_is_as_good_as_over(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{\"maximumLifetime\":\"1h\"}", PLAIN("8"));
    submit(&h, "a", "lq", 1, 4, "");
    harness_run_all(&h);
    const struct jobset *jobset = harness_jobset(&h, "a");
    const struct task *task = jobset->jobs[0]->tasks.items[0];
    struct task_report joined = {.kind = REPORT_JOINED, .task = task->uid},
                       saved = {.kind = REPORT_SHARD_SAVED, .task = task->uid, .step = 5};
    harness_report(&h, &joined, task->machine);
    harness_wait(&h, 3600 * NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "MaximumLifetimeExceeded");
    assert_int_equal(task->state, TASK_RUNNING); /* it may save first */
    h.now_ns += NS_PER_SECOND;
    harness_report(&h, &saved, task->machine);
    assert_int_equal(task->state, TASK_STOPPING);
    harness_done(&h);
}

#define TWO_FLAVORS(more)                                                                                    \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: first}\nspec:\n"             \
    "  nodeLabels: {kubernetes.io/hostname: m-1}\n---\n"                                                     \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: second}\nspec:\n"            \
    "  nodeLabels: {kubernetes.io/hostname: m-2}\n---\n"                                                     \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n"                  \
    "  namespaceSelector: {}\n" more "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n"           \
    "    flavors:\n    - {name: first, resources: [{name: google.com/tpu, nominalQuota: 8}]}\n"              \
    "    - {name: second, resources: [{name: google.com/tpu, nominalQuota: 4}]}\n---\n" LOCAL_QUEUE("lq",    \
                                                                                                    "cq")

static void test_flavors(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 3, "{}", TWO_FLAVORS(""));
    submit(&h, "a", "lq", 1, 4, "");
    assert_string_equal(workload_named(&h, "a")->podsets[0].resources[0].flavor.data, "first");
    assert_true(str_is(core_cluster(h.core)->machines[harness_task(&h, "a-w-0-0")->machine].name, "m-1"));
    submit(&h, "b", "lq", 1, 4, ""); /* quota of the first is left, its machine is not */
    assert_true(str_is(core_cluster(h.core)->machines[harness_task(&h, "b-w-0-0")->machine].name, "m-2"));
    submit(&h, "c", "lq", 1, 4, "");
    assert_state(&h, "c", "pending"); /* m-3 is of no flavour */
    harness_done(&h);
}

static void test_node_selector_chooses_flavor(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 3, "{}", TWO_FLAVORS(""));
    must_apply(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, labels: "
        "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n  - name: w\n    template: {spec: "
        "{template: {spec: {nodeSelector: {kubernetes.io/hostname: m-2}, restartPolicy: Never, containers: "
        "[{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 2}}}]}}}}\n");
    assert_state(&h, "a", "admitted");
    assert_string_equal(workload_named(&h, "a")->podsets[0].resources[0].flavor.data, "second");
    harness_done(&h);
}

static void test_taints_of_flavors(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, "{}",
          "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: v5e}\nspec:\n"
          "  nodeTaints: [{key: spot, value: 'true', effect: NoSchedule}]\n---\n" CLUSTER_QUEUE("cq", "8", "")
              LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, "");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "NoMatchingFlavor");
    assert_non_null(strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "untolerated taint"));
    must_apply(&h, FLAVOR("v5e"));
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

/* cpu, memory and pods beside the chips; what is not covered is nobody's. */
static void test_several_groups(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}",
          FLAVOR("v5e") FLAVOR(
              "any") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\n"
                     "metadata: {name: cq}\nspec:\n  namespaceSelector: {}\n  resourceGroups:\n"
                     "  - coveredResources: [google.com/tpu]\n    flavors:\n    - {name: v5e, "
                     "resources: [{name: google.com/tpu, nominalQuota: 100}]}\n"
                     "  - coveredResources: [cpu, memory, pods]\n    flavors:\n"
                     "    - name: any\n      resources: [{name: cpu, nominalQuota: 2500m}, "
                     "{name: memory, nominalQuota: 8Gi}, {name: pods, nominalQuota: 3}]\n---\n" LOCAL_QUEUE(
                         "lq", "cq"));
    static const char job[] =
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, labels: "
        "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n  - name: w\n    template: {spec: "
        "{parallelism: %d, completions: %d, template: {spec: {restartPolicy: Never, containers: [{name: c, "
        "image: "
        "i, command: [run], resources: {requests: {cpu: %s}, limits: {google.com/tpu: 1%s}}}]}}}}\n";
    char yaml[2048];
    snprintf(yaml, sizeof(yaml), job, "a", 2, 2, "1", "");
    must_apply(&h, yaml);
    assert_state(&h, "a", "admitted");
    snprintf(yaml, sizeof(yaml), job, "b", 1, 1, "1", "");
    must_apply(&h, yaml);
    assert_non_null(strstr(message_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "needs 1, 500m of 2500m free"));
    snprintf(yaml, sizeof(yaml), job, "c", 2, 2, "100m", "");
    must_apply(&h, yaml);
    assert_non_null(
        strstr(message_of(&h, "c", WORKLOAD_QUOTA_RESERVED), "pods in flavor any: needs 2, 1 of 3"));
    snprintf(yaml, sizeof(yaml), job, "d", 1, 1, "500m", ", memory: 1Gi");
    must_apply(&h, yaml);
    assert_state(&h, "d", "admitted");
    harness_done(&h);
}

/* Jobs of a JobSet that have succeeded need no quota any more. */
static void test_reclaimable(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}", PLAIN("8"));
    must_apply(&h,
               "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, labels: "
               "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n  - name: w\n    replicas: 2\n"
               "    template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: "
               "i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}\n");
    submit(&h, "b", "lq", 1, 4, "");
    harness_run_all(&h);
    assert_state(&h, "b", "pending");
    harness_exit(&h, harness_task(&h, "a-w-0-0"), 0);
    assert_int_equal(workload_named(&h, "a")->podsets[0].done, 1);
    assert_state(&h, "b", "admitted");
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

#define BATCH_JOB(name, notes)                                                                               \
    "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: " name "\n  namespace: default\n  labels: "         \
    "{kueue.x-k8s.io/queue-name: lq}\n" notes                                                                \
    "spec:\n  parallelism: 4\n  completions: 8\n  template: {spec: "                                         \
    "{restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: {limits: "           \
    "{google.com/tpu: 4}}}]}}\n"

static const struct workload *of_job(struct harness *h, const char *name)
{
    const struct job *job = jobs_find_job(core_jobs(h->core), STR("default"), str_from(name));
    return job ? workload_of(core_admit(h->core), job->jobset->uid) : NULL;
}

static void end_one(struct harness *h, const char *job)
{
    const struct job *found = jobs_find_job(core_jobs(h->core), STR("default"), str_from(job));
    for (size_t t = 0; t < found->tasks.len; t++) {
        if (found->tasks.items[t]->state != TASK_RUNNING)
            continue;
        harness_exit(h, found->tasks.items[t], 0);
        return;
    }
    fail_msg("no task of %s runs", job);
}

/* A batch Job that has fewer completions left than tasks gives the quota of the others back. */
static void test_batch_jobs_give_back(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}", PLAIN("16"));
    must_apply(&h, BATCH_JOB("a", ""));
    submit(&h, "b", "lq", 1, 4, "");
    submit(&h, "c", "lq", 1, 4, "");
    harness_run_all(&h);
    for (int ended = 1; ended <= 4; ended++) {
        end_one(&h, "a");
        harness_run_all(&h);
        assert_int_equal(of_job(&h, "a")->podsets[0].done, 0);
    }
    assert_state(&h, "b", "pending");
    end_one(&h, "a"); /* 3 of 8 are left */
    assert_int_equal(of_job(&h, "a")->podsets[0].done, 1);
    assert_state(&h, "b", "admitted");
    assert_state(&h, "c", "pending");
    end_one(&h, "a");
    assert_state(&h, "c", "admitted");
    harness_done(&h);
}

/* Another controller may say how many Pods need no quota any more: of a known PodSet, and not fewer than
 * before. */
static void test_others_give_back(void **state)
{
    (void)state;
    static const struct {
        const char *list;
        int code;
    } rows[] = {
        {"[{\"name\":\"other\",\"count\":1}]", 422},
        {"[{\"name\":\"w\",\"count\":3}]", 422},
        {"[{\"name\":\"w\",\"count\":1}]", 200},
        {"[{\"name\":\"w\",\"count\":0}]", 422},
        {"[]", 403},
    };
    struct harness h;
    begin(&h, 4, "{}", PLAIN("8"));
    submit(&h, "a", "lq", 2, 4, "");
    submit(&h, "b", "lq", 1, 4, "");
    harness_run_all(&h);
    assert_state(&h, "b", "pending");
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        char body[256], name[300];
        snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload_named(&h, "a")->name));
        snprintf(body, sizeof(body), "{\"status\":{\"reclaimablePods\":%s}}", rows[i].list);
        int code = post(&h, WRITE_STATUS, OBJECT_WORKLOAD, "default", name, str_from(body));
        if (code != rows[i].code)
            fail_msg("%s: %d %s", rows[i].list, code, h.last_message);
    }
    assert_int_equal(workload_named(&h, "a")->podsets[0].done, 1);
    assert_state(&h, "b", "admitted");
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

static void test_batch_job(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}", PLAIN("12"));
    must_apply(&h, BATCH_JOB("a", ""));
    const struct workload *workload = of_job(&h, "a");
    assert_non_null(workload);
    assert_true(str_starts(workload->name, STR("job-a-")));
    assert_int_equal(workload->state, WORKLOAD_PENDING);
    must_apply(&h, CLUSTER_QUEUE("cq", "16", ""));
    assert_int_equal(of_job(&h, "a")->state, WORKLOAD_ADMITTED);
    assert_int_equal(of_job(&h, "a")->podsets[0].admitted, 4);
    harness_done(&h);
}

/* As many tasks as there is quota for, not fewer than it can do with; all of them when it comes back. */
static void test_partial_admission(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}", PLAIN("12"));
    must_apply(&h, BATCH_JOB("a", "  annotations: {kueue.x-k8s.io/job-min-parallelism: '2'}\n"));
    assert_int_equal(of_job(&h, "a")->state, WORKLOAD_ADMITTED);
    assert_int_equal(of_job(&h, "a")->podsets[0].admitted, 3);
    struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("a"));
    assert_int_equal(job->rjob->job.parallelism, 3);
    assert_int_equal(job->active, 3);
    harness_check_replay(&h);
    harness_run_all(&h);
    must_apply(&h, CLUSTER_QUEUE("cq", "12", "  stopPolicy: HoldAndDrain\n"));
    harness_run_all(&h);
    assert_int_equal(of_job(&h, "a")->state, WORKLOAD_PENDING);
    assert_int_equal(job->rjob->job.parallelism, 4);
    must_apply(&h, CLUSTER_QUEUE("cq", "4", ""));
    assert_int_equal(of_job(&h, "a")->state, WORKLOAD_PENDING); /* one is too few */
    must_apply(&h, CLUSTER_QUEUE("cq", "16", ""));
    assert_int_equal(of_job(&h, "a")->podsets[0].admitted, 4);
    harness_done(&h);
}

static int check_job(struct harness *h, const char *spec, const char *notes)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: x\n  namespace: default\n"
             "  labels: {kueue.x-k8s.io/queue-name: lq}\n  annotations: {%s}\nspec:\n  %s\n  template: "
             "{spec: {restartPolicy: Never, containers: [{name: c, image: i, command: [run], resources: "
             "{limits: {google.com/tpu: 4}}}]}}\n",
             notes, spec);
    return harness_write_checked(h, OBJECT_JOB, WRITE_CREATE, "", yaml);
}

/* Indexed ones too; their completions stay, or follow where the annotation says so. */
static void test_partial_admission_of_indexed(void **state)
{
    (void)state;
    static const char indexed[] = "parallelism: 4\n  completions: 4\n  completionMode: Indexed";
    for (int follow = 0; follow < 2; follow++) {
        struct harness h;
        begin(&h, 4, "{}", PLAIN("12"));
        assert_int_equal(check_job(&h, indexed,
                                   follow ? "kueue.x-k8s.io/job-min-parallelism: '2', "
                                            "kueue.x-k8s.io/job-completions-equal-parallelism: 'true'"
                                          : "kueue.x-k8s.io/job-min-parallelism: '2'"),
                         201);
        struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("x"));
        assert_int_equal(of_job(&h, "x")->podsets[0].admitted, 3);
        assert_int_equal(job->rjob->job.parallelism, 3);
        assert_int_equal(job->rjob->job.completions, follow ? 3 : 4);
        assert_int_equal(of_job(&h, "x")->podsets[0].count, 4);
        harness_check_replay(&h);
        harness_run_all(&h);
        must_apply(&h, CLUSTER_QUEUE("cq", "12", "  stopPolicy: HoldAndDrain\n"));
        harness_run_all(&h);
        assert_int_equal(of_job(&h, "x")->state, WORKLOAD_PENDING);
        assert_int_equal(job->rjob->job.parallelism, 4);
        assert_int_equal(job->rjob->job.completions, 4);
        must_apply(&h, CLUSTER_QUEUE("cq", "16", ""));
        assert_int_equal(of_job(&h, "x")->podsets[0].admitted, 4);
        harness_done(&h);
    }
}

/* Writes a Job back as it is read, but for one field of its metadata. */
static int write_back_without(struct harness *h, const struct job *job, const char *field)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf json BUF_CLEANUP = {0};
    struct doc *read = doc_clone(&arena, job->jobset->document);
    doc_unset(doc_get(read, "metadata"), field);
    json_write(&json, read);
    buf_add_char(&json, 0);
    return harness_write_checked(h, OBJECT_JOB, WRITE_REPLACE, "x", json.data);
}

/* The number of Pods that admission chose is in the object that clients read and write back: rules of how
 * slices divide it are for numbers that a user changes. */
static void test_partial_admission_of_slices(void **state)
{
    (void)state;
    static const char sliced[] =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: default, finalizers: [a.b/c],\n"
        "  labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {kueue.x-k8s.io/job-min-parallelism: '2'}}\n"
        "spec: {parallelism: 4, completions: %d, completionMode: Indexed, template: {metadata: {\n"
        "  annotations: {kueue.x-k8s.io/podset-preferred-topology: phalanx.dev/pod,\n"
        "  kueue.x-k8s.io/podset-slice-required-topology: kubernetes.io/hostname,\n"
        "  kueue.x-k8s.io/podset-slice-size: '1'}}, spec: {restartPolicy: Never, containers: [{name: c,\n"
        "  image: i, command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}\n";
    struct harness h;
    char yaml[1024];
    begin(&h, 4, "{}", PLAIN("12"));
    snprintf(yaml, sizeof(yaml), sliced, 5);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", yaml), 422);
    snprintf(yaml, sizeof(yaml), sliced, 4);
    assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", yaml), 201);
    struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("x"));
    assert_int_equal(job->rjob->job.parallelism, 3);
    assert_int_equal(write_back_without(&h, job, "finalizers"), 200);
    harness_done(&h);
}

/* The same goes for replicas: a world that admission made smaller is not judged, a user's change is. */
static void test_partial_admission_of_replicas(void **state)
{
    (void)state;
    static const char replicas[] =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: x, namespace: default, finalizers: [a.b/c],\n"
        "  labels: {kueue.x-k8s.io/queue-name: lq}, annotations: {phalanx.dev/replica-size: '%d',\n"
        "  kueue.x-k8s.io/job-min-parallelism: '1', kueue.x-k8s.io/job-completions-equal-parallelism: "
        "'%s'}}\n"
        "spec: {parallelism: %d, completions: 4, completionMode: Indexed, template: {spec: {\n"
        "  restartPolicy: Never, containers: [{name: c, image: i, command: [run],\n"
        "  resources: {limits: {google.com/tpu: 4}}}]}}}\n";
    for (int follow = 0; follow < 2; follow++) {
        const char *follows = follow ? "true" : "false";
        struct harness h;
        char yaml[1024];
        begin(&h, 4, "{}", PLAIN("12"));
        snprintf(yaml, sizeof(yaml), replicas, 3, follows, 4);
        assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", yaml), 422);
        snprintf(yaml, sizeof(yaml), replicas, 2, follows, 4);
        assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_CREATE, "", yaml), 201);
        struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("x"));
        assert_int_equal(job->rjob->job.parallelism, 3);
        assert_int_equal(write_back_without(&h, job, "finalizers"), 200);
        snprintf(yaml, sizeof(yaml), replicas, 5, follows, 4);
        assert_int_equal(harness_write_checked(&h, OBJECT_JOB, WRITE_REPLACE, "x", yaml), 422);
        assert_non_null(strstr(h.last_message, "phalanx.dev/replica-size"));
        harness_check_replay(&h);
        harness_done(&h);
    }
}

static void test_partial_admission_is_checked(void **state)
{
    (void)state;
    static const struct {
        const char *spec, *notes;
    } wrong[] = {
        {"parallelism: 4", "kueue.x-k8s.io/job-min-parallelism: '4'"},
        {"parallelism: 4", "kueue.x-k8s.io/job-min-parallelism: '0'"},
        {"parallelism: 4", "kueue.x-k8s.io/job-min-parallelism: few"},
        {"parallelism: 4", "kueue.x-k8s.io/job-completions-equal-parallelism: 'true'"},
        {"parallelism: 4\n  completions: 8\n  completionMode: Indexed",
         "kueue.x-k8s.io/job-completions-equal-parallelism: 'true'"},
        {"parallelism: 4", "kueue.x-k8s.io/job-completions-equal-parallelism: perhaps"},
    };
    struct harness h;
    begin(&h, 4, "{}", PLAIN("12"));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(*wrong); i++) {
        assert_int_equal(check_job(&h, wrong[i].spec, wrong[i].notes), 422);
        assert_non_null(strstr(h.last_message, "metadata.annotations[kueue.x-k8s.io/job-"));
    }
    harness_done(&h);
}

/* LocalQueueDefaulting: who names no queue is given the one of that name. */
static void test_default_queue(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}", PLAIN("16"));
    const char *plain =
        "apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s, namespace: default}\nspec: {template: {spec: "
        "{restartPolicy: Never, containers: [{name: c, image: i, command: [run]}]}}}\n";
    char yaml[512];
    snprintf(yaml, sizeof(yaml), plain, "before");
    must_apply(&h, yaml);
    assert_null(of_job(&h, "before"));
    must_apply(&h, LOCAL_QUEUE("default", "cq"));
    assert_null(of_job(&h, "before")); /* new ones alone */
    must_apply(&h, yaml);
    assert_null(of_job(&h, "before"));
    snprintf(yaml, sizeof(yaml), plain, "after");
    must_apply(&h, yaml);
    assert_non_null(of_job(&h, "after"));
    assert_true(str_is(of_job(&h, "after")->queue_name, "default"));
    must_apply(&h, BATCH_JOB("own", ""));
    assert_true(str_is(of_job(&h, "own")->queue_name, "lq"));
    harness_done(&h);
}

static void test_podsets_of_one(void **state)
{
    (void)state;
    struct harness h;
    struct buf yaml BUF_CLEANUP = {0};
    begin(&h, 4, "{}", PLAIN("16"));
    for (int count = 18; count <= 19; count++) {
        buf_clear(&yaml);
        buf_printf(&yaml,
                   "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: s%d, namespace: "
                   "default, labels: {kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n",
                   count);
        for (int i = 0; i < count; i++)
            buf_printf(&yaml,
                       "  - {name: w%d, template: {spec: {template: {spec: {containers: [{name: c, image: i, "
                       "command: [run]}]}}}}}\n",
                       i);
        must_apply(&h, yaml.data);
    }
    assert_string_equal(message_of(&h, "s19", WORKLOAD_QUOTA_RESERVED),
                        "A Workload has at most 18 PodSets; this one would have 19");
    assert_null(strstr(message_of(&h, "s18", WORKLOAD_QUOTA_RESERVED), "PodSets"));
    harness_done(&h);
}

static void test_cohorts_in_a_circle(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, "{}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "  cohortName: x\n")
              LOCAL_QUEUE("lq", "cq") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: "
                                      "x}\nspec: {parentName: z}\n---\n"
                                      "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: "
                                      "z}\nspec: {parentName: x}\n");
    submit(&h, "a", "lq", 1, 4, "");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "Suspended");
    assert_non_null(strstr(message_of(&h, "a", WORKLOAD_QUOTA_RESERVED), "cycle"));
    must_apply(&h, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: z}\nspec: {}\n");
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

/* A cohort's own quota is lent to all below it. */
static void test_cohort_tree(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 6, "{}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", "  cohortName: team\n")
              LOCAL_QUEUE("lq", "cq") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: "
                                      "team}\nspec: {parentName: "
                                      "org}\n---\n"
                                      "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: "
                                      "org}\nspec:\n  resourceGroups:\n"
                                      "  - coveredResources: [google.com/tpu]\n    flavors:\n    - {name: "
                                      "v5e, resources: [{name: "
                                      "google.com/tpu, nominalQuota: 8}]}\n");
    submit(&h, "a", "lq", 3, 4, "");
    assert_state(&h, "a", "admitted");
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "b", "pending");
    harness_done(&h);
}

/* Told to go, a gang that speaks libphalanx has its grace to save a checkpoint, and goes when it has. */
static void test_notice_before_the_end(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 1, "{\"minimumRunTime\":\"0s\"}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "4", "  preemption: {withinClusterQueue: LowerPriority}\n")
              LOCAL_QUEUE("lq", "cq") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                                      "metadata: {name: high}\nvalue: 9\n");
    submit(&h, "a", "lq", 1, 4, "");
    harness_run_all(&h);
    struct task *task = harness_task(&h, "a-w-0-0");
    struct task_report report = {.kind = REPORT_JOINED, .task = task->uid};
    harness_report(&h, &report, task->machine);
    submit(&h, "x", "lq", 1, 4, "    kueue.x-k8s.io/priority-class: high\n");
    assert_state(&h, "a", "leaving");
    assert_int_equal(task->state, TASK_RUNNING);
    harness_wait(&h, 29 * NS_PER_SECOND);
    assert_int_equal(task->state, TASK_RUNNING);
    harness_wait(&h, NS_PER_SECOND);
    assert_int_equal(task->state, TASK_STOPPING);
    harness_run_all(&h);
    assert_state(&h, "x", "admitted");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pods_ready_timeout),
        cmocka_unit_test(test_block_admission),
        cmocka_unit_test(test_block_admission_ends_with_a_deletion),
        cmocka_unit_test(test_times_of_a_run),
        cmocka_unit_test(test_a_short_life_is_a_timeout_too),
        cmocka_unit_test(test_saved_is_as_good_as_over),
        cmocka_unit_test(test_flavors),
        cmocka_unit_test(test_node_selector_chooses_flavor),
        cmocka_unit_test(test_taints_of_flavors),
        cmocka_unit_test(test_several_groups),
        cmocka_unit_test(test_reclaimable),
        cmocka_unit_test(test_batch_jobs_give_back),
        cmocka_unit_test(test_others_give_back),
        cmocka_unit_test(test_batch_job),
        cmocka_unit_test(test_partial_admission),
        cmocka_unit_test(test_partial_admission_of_indexed),
        cmocka_unit_test(test_partial_admission_of_slices),
        cmocka_unit_test(test_partial_admission_of_replicas),
        cmocka_unit_test(test_partial_admission_is_checked),
        cmocka_unit_test(test_default_queue),
        cmocka_unit_test(test_podsets_of_one),
        cmocka_unit_test(test_cohorts_in_a_circle),
        cmocka_unit_test(test_cohort_tree),
        cmocka_unit_test(test_notice_before_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
