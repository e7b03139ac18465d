/* Topology annotations and spec.scheduling, from the file to the machines. */
#include "core/job/story.h"

/* Racks of machines with four chips each. */
static void hall(struct harness *h, const char *racks)
{
    *h = (struct harness){.core = core_new(), .now_ns = NS_PER_SECOND};
    char json[1024];
    snprintf(
        json, sizeof(json),
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"t\"},\"spec\":{"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\",\"pods\":[{\"racks\":[%s]}]}}",
        racks);
    struct event cluster = {.kind = EVENT_CLUSTER};
    cluster.cluster.document = str_from(json);
    harness_step(h, &cluster);
    for (size_t i = 0; i < core_cluster(h->core)->machine_count; i++)
        harness_hello(h, core_cluster(h->core)->machines[i].name.data, NULL, 0);
}
#define MACHINES(n) "{\"machines\":" #n ",\"chips\":4}"

static struct jobset *create(struct harness *h, const char *name, const char *fields, const char *annotations,
                             int jobs, int tasks)
{
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: {%s"
             "replicatedJobs: [{name: w, replicas: %d, template: {spec: {parallelism: %d, completions: %d, "
             "backoffLimit: 3, template: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never, "
             "containers: [{name: main, image: none, resources: {limits: {google.com/tpu: 4}}}]}}}}}]}\n",
             name, fields, jobs, tasks, tasks, annotations);
    return harness_create(h, yaml);
}

static uint32_t rack_of(struct harness *h, const char *hostname)
{
    const struct task *task = harness_task(h, hostname);
    assert_non_null(task);
    return task->machine == MACHINE_NONE ? UINT32_MAX : core_cluster(h->core)->machines[task->machine].block;
}

/* The smallest rack that takes all; who fits nowhere says what the nearest one lacks. */
static void required_rack(void **state)
{
    struct harness h;
    hall(&h, MACHINES(4) "," MACHINES(2) "," MACHINES(3));
    create(&h, "a", "", "kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack", 1, 3);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a-w-0-%d", i);
        assert_int_equal((int)rack_of(&h, name), 2);
    }
    create(&h, "c", "", "", 1, 1); /* takes the smallest hole: a machine of rack 2 or 1 */
    struct jobset *b = create(&h, "b", "", "kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack", 1, 5);
    assert_int_equal(b->gangs.items[0]->state, GANG_QUEUED);
    assert_string_equal(
        b->gangs.items[0]->why.data,
        "needs 5 machines with 4 free google.com/tpu chips in one rack; pod-1.rack-1 has 4, and no more "
        "machines");
    harness_done(&h);
}

/* A gang that fits, but in no whole slices, is told of the slices. */
static void slices_are_why(void **state)
{
    struct harness h;
    hall(&h, MACHINES(1) "," MACHINES(1) "," MACHINES(1));
    struct jobset *a = create(&h, "a", "",
                              "kueue.x-k8s.io/podset-slice-required-topology: phalanx.dev/rack, "
                              "kueue.x-k8s.io/podset-slice-size: '2'",
                              1, 2);
    assert_string_equal(a->gangs.items[0]->why.data,
                        "needs 2 machines with 4 free google.com/tpu chips in slices of 2 in one rack; "
                        "there is room for 0 in whole slices");
    create(&h, "c", "", "", 1, 1);
    struct jobset *b = create(&h, "b", "",
                              "kueue.x-k8s.io/podset-slice-required-topology: kubernetes.io/hostname, "
                              "kueue.x-k8s.io/podset-slice-size: '2'",
                              1, 2);
    assert_string_equal(b->gangs.items[0]->why.data,
                        "needs room for 2 tasks of 4 free google.com/tpu chips in slices of 2 in one "
                        "machine; there is room for 0 in whole slices: 1 taken by default/c");
    harness_done(&h);
}

/* A task that is tried again comes back into its rack although others have more room; if the rack is full, it
 * waits rather than leave its peers. */
static void retry_stays_in_domain(void **state)
{
    struct harness h;
    hall(&h, MACHINES(3) "," MACHINES(6));
    create(&h, "a", "", "kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack", 1, 3);
    harness_run_all(&h);
    struct task *task = harness_task(&h, "a-w-0-1");
    harness_lose(&h, core_cluster(h.core)->machines[task->machine].name.data);
    harness_wait(&h, 60 * NS_PER_SECOND);
    task = harness_task(&h, "a-w-0-1");
    assert_int_equal(task->state, TASK_PENDING);
    assert_string_equal(task->gang->why.data,
                        "needs 1 machine with 4 free google.com/tpu chips in one rack; "
                        "pod-1.rack-1 has 0: m-1 taken by default/a, m-2 lost, m-3 taken "
                        "by default/a");
    harness_done(&h);
}

static void restart_moves_as_a_whole(void **state)
{
    struct harness h;
    hall(&h, MACHINES(3) "," MACHINES(6));
    create(&h, "a", "failurePolicy: {maxRestarts: 3}, ",
           "kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack", 1, 3);
    harness_run_all(&h);
    assert_int_equal((int)rack_of(&h, "a-w-0-0"), 0);
    machine_id lost = harness_task(&h, "a-w-0-1")->machine;
    for (int failure = 0; failure < 4; failure++) { /* beyond its back-off limit: the JobSet restarts */
        struct task *task = harness_task(&h, "a-w-0-0");
        if (failure == 3)
            harness_lose(&h, core_cluster(h.core)->machines[lost].name.data);
        if (task && harness_told(&h, task->uid) && harness_jobset(&h, "a")->restarts == 0)
            harness_exit(&h, task, 1);
        harness_wait(&h, 700 * NS_PER_SECOND);
        harness_run_all(&h);
    }
    assert_int_equal(harness_jobset(&h, "a")->restarts, 1);
    for (int i = 0; i < 3; i++) {
        char name[16];
        snprintf(name, sizeof(name), "a-w-0-%d", i);
        assert_int_equal((int)rack_of(&h, name), 1);
    }
    harness_done(&h);
}

/* Nodes that are labelled and tainted for a Job; nodeAffinity. */
static void machine_is(struct harness *h, int index, const char *labels, const char *taints)
{
    char json[512];
    const struct machine *machine = &core_cluster(h->core)->machines[index];
    snprintf(json, sizeof(json),
             "apiVersion: v1\nkind: Node\nmetadata: {name: %s, labels: {%s}}\nspec: {taints: [%s]}\n",
             machine->name.data, labels, taints);
    struct arena arena = {0};
    struct buf body = {0};
    struct doc_list docs;
    struct error error = {0};
    if (yaml_parse_all(&arena, str_from(json), &docs, &error) < 0)
        fail_msg("%s: %s", json, error.text);
    json_write(&body, docs.items[0]);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_REPLACE,
                                       .object = OBJECT_NODE,
                                       .name = machine->name,
                                       .body = buf_str(&body),
                                       .grace_s = -1};
    harness_step(h, &event);
    assert_int_equal(h->last_code, 200);
    buf_done(&body);
    arena_done(&arena);
}

static void node_selector_strategy(void **state)
{
    struct harness h;
    hall(&h, MACHINES(3));
    machine_is(&h, 1, "alpha.jobset.sigs.k8s.io/namespaced-job: default_a-w-1",
               "{key: alpha.jobset.sigs.k8s.io/no-schedule, effect: NoSchedule}");
    machine_is(&h, 2, "alpha.jobset.sigs.k8s.io/namespaced-job: default_a-w-0",
               "{key: alpha.jobset.sigs.k8s.io/no-schedule, effect: NoSchedule}");
    harness_create(&h, "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, annotations: "
                       "{alpha.jobset.sigs.k8s.io/exclusive-topology: phalanx.dev/rack, "
                       "alpha.jobset.sigs.k8s.io/node-selector: \"true\"}}\nspec: {replicatedJobs: [" RJOB(
                           "w", 2, "", 1, "") "]}\n");
    assert_int_equal((int)harness_task(&h, "a-w-0-0")->machine, 2);
    assert_int_equal((int)harness_task(&h, "a-w-1-0")->machine, 1);
    create(&h, "b", "", "", 1, 1);
    assert_int_equal((int)harness_task(&h, "b-w-0-0")->machine, 0);
    harness_done(&h);
}

static void affine(struct harness *h, const char *name, const char *terms, machine_id wanted)
{
    char yaml[1024], hostname[32];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s}\nspec: {replicatedJobs: "
        "[{name: w, template: {spec: {parallelism: 1, completions: 1, template: {spec: {restartPolicy: "
        "Never, "
        "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[%s]}}}, "
        "containers: [{name: main, image: none, resources: {limits: {google.com/tpu: 1}}}]}}}}}]}\n",
        name, terms);
    harness_create(h, yaml);
    snprintf(hostname, sizeof(hostname), "%s-w-0-0", name);
    assert_int_equal((int)harness_task(h, hostname)->machine, (int)wanted);
}

static void node_affinity(void **state)
{
    struct harness h;
    hall(&h, MACHINES(3));
    machine_is(&h, 1, "kind: b, num: \"7\"", "");
    machine_is(&h, 2, "kind: c", "");
    affine(&h, "in", "{matchExpressions: [{key: kind, operator: In, values: [x, b]}]}", 1);
    affine(&h, "notin",
           "{matchExpressions: [{key: kind, operator: NotIn, values: [b]}, {key: kind, operator: Exists}]}",
           2);
    affine(&h, "absent", "{matchExpressions: [{key: kind, operator: DoesNotExist}]}", 0);
    affine(&h, "gt", "{matchExpressions: [{key: num, operator: Gt, values: [\"6\"]}]}", 1);
    affine(&h, "lt", "{matchExpressions: [{key: num, operator: Lt, values: [\"7\"]}]}", MACHINE_NONE);
    affine(&h, "or",
           "{matchExpressions: [{key: kind, operator: In, values: [x]}]}, "
           "{matchFields: [{key: metadata.name, operator: In, values: [m-3]}]}",
           2);
    affine(&h, "none", "{}", MACHINE_NONE);
    harness_done(&h);
}

/* A domain is exclusive among Jobs of one priority. */
static void exclusive_by_priority(void **state)
{
    struct harness h;
    hall(&h, MACHINES(2));
    create(&h, "a", "", "", 1, 1);
    const char *const file =
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: %s, annotations: "
        "{alpha.jobset.sigs.k8s.io/exclusive-topology: phalanx.dev/rack}}\nspec: {replicatedJobs: [{name: w, "
        "template: {spec: {parallelism: 1, completions: 1, template: {spec: {priority: %d, restartPolicy: "
        "Never, "
        "containers: [{name: main, image: none, resources: {limits: {google.com/tpu: 4}}}]}}}}}]}\n";
    char yaml[1024];
    snprintf(yaml, sizeof(yaml), file, "same", 0);
    harness_create(&h, yaml);
    assert_int_equal((int)harness_task(&h, "same-w-0-0")->machine, (int)MACHINE_NONE);
    snprintf(yaml, sizeof(yaml), file, "high", 5);
    harness_create(&h, yaml);
    assert_int_equal((int)rack_of(&h, "high-w-0-0"), 0);
    harness_done(&h);
}

#define SCHEDULING(text) "scheduling: {" text "}, "

static int queued(const struct jobset *jobset)
{
    int count = 0;
    for (size_t g = 0; g < jobset->gangs.len; g++)
        count += jobset->gangs.items[g]->state == GANG_QUEUED;
    return count;
}

static int placed(struct harness *h, const struct jobset *jobset)
{
    int count = 0;
    for (uint32_t j = 0; j < jobset->job_count; j++)
        for (size_t t = 0; t < jobset->jobs[j]->tasks.len; t++)
            count += jobset->jobs[j]->tasks.items[t]->holds;
    return count;
}

static void basic_is_no_gang(void **state)
{
    struct harness h;
    hall(&h, MACHINES(3));
    struct jobset *a = create(&h, "a", SCHEDULING("schedulingPolicy: {basic: {}}"), "", 1, 5);
    assert_int_equal((int)a->gangs.len, 5);
    assert_int_equal(placed(&h, a), 3);
    assert_int_equal(queued(a), 2);
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    assert_int_equal(queued(a), 1);
    harness_done(&h);
}

/* Three of five are enough to begin; with two machines nothing begins. */
static void min_count_starts(void **state)
{
    struct harness h;
    hall(&h, MACHINES(4));
    struct jobset *big = create(&h, "big", "", "", 1, 2);
    struct jobset *a = create(&h, "a", SCHEDULING("schedulingPolicy: {gang: {minCount: 3}}"), "", 1, 5);
    assert_int_equal(placed(&h, a), 0);
    assert_int_equal((int)a->gangs.len, 1);
    harness_run_all(&h);
    assert_int_equal(placed(&h, big), 2);
    exits(&h, "big-w-0-0", 0);
    assert_int_equal(placed(&h, a), 3);
    assert_int_equal(queued(a), 2); /* each for itself */
    harness_check_replay(&h);
    exits(&h, "big-w-0-1", 0);
    assert_int_equal(placed(&h, a), 4);
    harness_run_all(&h);
    exits(&h, "a-w-0-0", 0);
    assert_int_equal(placed(&h, a), 4);
    assert_int_equal(queued(a), 0);
    harness_done(&h);
}

/* One gang a Job, each in one rack. */
static void gang_per_job(void **state)
{
    struct harness h;
    hall(&h, MACHINES(2) "," MACHINES(3));
    struct jobset *a =
        create(&h, "a",
               SCHEDULING("replicatedJobs: [{targetReplicatedJobs: [w], job: {schedulingPolicy: {gang: {}}, "
                          "schedulingConstraints: {topology: [{key: phalanx.dev/rack}]}}}]"),
               "", 3, 2);
    assert_int_equal((int)a->gangs.len, 3);
    assert_int_equal(placed(&h, a), 4);
    assert_int_equal(queued(a), 1);
    assert_int_equal((int)rack_of(&h, "a-w-0-0"), (int)rack_of(&h, "a-w-0-1"));
    assert_int_equal((int)rack_of(&h, "a-w-1-0"), (int)rack_of(&h, "a-w-1-1"));
    assert_true(rack_of(&h, "a-w-0-0") != rack_of(&h, "a-w-1-0"));
    harness_done(&h);
}

/* --- what is refused ----------------------------------------------------------------------------------- */

static void refused(const char *fields, const char *annotations, const char *wanted)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc_list docs;
    struct jobset_spec spec;
    char yaml[2048];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a}\nspec: {%s"
             "replicatedJobs: [{name: w, replicas: 2, template: {spec: {parallelism: 4, completions: 4, "
             "template: {metadata: {annotations: {%s}}, spec: {restartPolicy: Never, "
             "containers: [{name: main, image: none}]}}}}}]}\n",
             fields, annotations);
    assert_int_equal(yaml_parse_all(&arena, str_from(yaml), &docs, NULL), 0);
    workload_default(&arena, docs.items[0]);
    assert_true(workload_read(&arena, docs.items[0], &spec, &errors));
    workload_validate_topology(docs.items[0], &spec, NULL, &errors);
    jobset_validate_scheduling(docs.items[0], &spec, &errors);
    struct buf text BUF_CLEANUP = {0};
    field_errors_print(&errors, &text);
    const char *message = text.len ? text.data : "";
    for (int colons = 0; *message && colons < 2; message++) /* LINE:COLUMN */
        colons += *message == ':';
    assert_string_equal(message, wanted);
    field_errors_done(&errors);
}

#define AT_POD " spec.replicatedJobs[0].template.spec.template.metadata.annotations"

static void annotations_are_checked(void **state)
{
    refused("", "kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack", "");
    refused("",
            "kueue.x-k8s.io/podset-slice-required-topology: a.b/c, kueue.x-k8s.io/podset-slice-size: \"4\"",
            "");
    refused("", /* 8 Pods: the last slice has two */
            "kueue.x-k8s.io/podset-slice-required-topology: a.b/c, kueue.x-k8s.io/podset-slice-size: \"3\"",
            "");
    refused("",
            "kueue.x-k8s.io/podset-slice-required-topology-constraints: "
            "'[{\"topology\":\"a/b\",\"size\":\"4\"},{\"topology\":\"a/c\",\"size\":2}]'",
            "");
    refused(
        "", "kueue.x-k8s.io/podset-required-topology: a/b, kueue.x-k8s.io/podset-preferred-topology: a/b",
        AT_POD
        "[kueue.x-k8s.io/podset-preferred-topology]: Invalid value: \"a/b\": must not be set together with "
        "another topology request\n");
    refused("", "kueue.x-k8s.io/podset-slice-size: \"4\"",
            AT_POD "[kueue.x-k8s.io/podset-slice-size]: Invalid value: \"4\": needs "
                   "podset-slice-required-topology\n");
    refused("", "kueue.x-k8s.io/podset-group-name: g",
            AT_POD
            "[kueue.x-k8s.io/podset-group-name]: Invalid value: \"g\": needs podset-required-topology or "
            "podset-preferred-topology\n");
    refused("",
            "kueue.x-k8s.io/podset-slice-required-topology: a.b/c, kueue.x-k8s.io/podset-slice-size: \"9\"",
            AT_POD ": Invalid value: 9: must not be greater than pod set count 8\n");
}

static void affinity_is_checked(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc_list docs;
    struct jobset_spec spec;
    const char *yaml =
        "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: m, image: i}], affinity: "
        "{nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: "
        "[{matchExpressions: "
        "[{key: a, operator: Near}, {key: a, operator: In}, {key: a, operator: Gt, values: [x]}]}]}}}}\n";
    assert_int_equal(yaml_parse_all(&arena, str_from(yaml), &docs, NULL), 0);
    workload_default(&arena, docs.items[0]);
    assert_true(workload_read(&arena, docs.items[0], &spec, &errors));
    workload_validate_topology(docs.items[0], &spec, NULL, &errors);
    assert_int_equal((int)errors.list.len, 3);
    assert_string_equal(errors.list.items[0].path.data,
                        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution."
                        "nodeSelectorTerms[0].matchExpressions[0].operator");
    field_errors_done(&errors);
}

static void scheduling_is_checked(void **state)
{
    refused(SCHEDULING("schedulingPolicy: {gang: {minCount: 8}}"), "", "");
    refused(SCHEDULING("schedulingPolicy: {gang: {minCount: 9}}"), "",
            " spec.scheduling.schedulingPolicy.gang.minCount: Invalid value: 9: must be at least 1 and at "
            "most the "
            "number of pods\n");
    refused(SCHEDULING("schedulingPolicy: {gang: {}, basic: {}}"), "",
            " spec.scheduling.schedulingPolicy: Invalid value: exactly one of gang, basic must be set\n");
    refused(SCHEDULING("schedulingPolicy: {basic: {}}, replicatedJobs: [{targetReplicatedJobs: [w]}]"), "",
            " spec.scheduling.replicatedJobs: Forbidden: may not be set together with terms of the whole "
            "JobSet\n");
    refused(SCHEDULING("replicatedJobs: [{targetReplicatedJobs: [w, w]}]"), "",
            " spec.scheduling.replicatedJobs[0].targetReplicatedJobs[1]: Duplicate value: \"w\"\n");
    refused(
        SCHEDULING("replicatedJobs: [{targetReplicatedJobs: [w], job: {schedulingPolicy: {gang: {minCount: "
                   "5}}}}]"),
        "",
        " spec.scheduling.replicatedJobs[0].job.schedulingPolicy.gang.minCount: Invalid value: 5: must be at "
        "least 1 and at most the number of pods\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(required_rack),
        cmocka_unit_test(slices_are_why),
        cmocka_unit_test(retry_stays_in_domain),
        cmocka_unit_test(restart_moves_as_a_whole),
        cmocka_unit_test(basic_is_no_gang),
        cmocka_unit_test(min_count_starts),
        cmocka_unit_test(gang_per_job),
        cmocka_unit_test(node_selector_strategy),
        cmocka_unit_test(node_affinity),
        cmocka_unit_test(exclusive_by_priority),
        cmocka_unit_test(annotations_are_checked),
        cmocka_unit_test(scheduling_is_checked),
        cmocka_unit_test(affinity_is_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
