/* Rules of Kueue, one story each, that no other test tells. */
#include "queues.h"

#define AT_ONCE "{\"minimumRunTime\":\"0s\"}"
#define CLASS(name, value)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: " name                \
    "}\nvalue: " value "\n---\n"
#define CLASSES CLASS("low", "1") CLASS("high", "9")
#define LOW     "    kueue.x-k8s.io/priority-class: low\n"
#define HIGH    "    kueue.x-k8s.io/priority-class: high\n"

static void begin(struct harness *h, int machines, const char *settings, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, settings);
    must_apply(h, CLASSES);
    must_apply(h, objects);
}

/* LowerOrNewerEqualPriority: of those alike the newer make room for an older one. */
static void test_newer_equals_make_room(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, AT_ONCE,
          FLAVOR("v5e")
              CLUSTER_QUEUE("cq", "0", "  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}\n")
                  LOCAL_QUEUE("lq", "cq"));
    submit(&h, "old", "lq", 2, 4, LOW); /* waits: there is no quota yet */
    h.now_ns += NS_PER_SECOND;
    submit(&h, "new", "lq", 1, 4, LOW);
    must_apply(&h,
               CLUSTER_QUEUE("cq", "4", "  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}\n"));
    assert_state(&h, "new", "admitted");
    harness_run_all(&h);
    must_apply(&h,
               CLUSTER_QUEUE("cq", "8", "  preemption: {withinClusterQueue: LowerOrNewerEqualPriority}\n"));
    assert_state(&h, "new", "leaving");
    harness_run_all(&h);
    assert_state(&h, "old", "admitted");
    submit(&h, "newer", "lq", 1, 4, LOW); /* not the other way round */
    assert_state(&h, "old", "admitted");
    assert_state(&h, "newer", "pending");
    harness_done(&h);
}

#define BORROWERS(policy)                                                                                    \
    FLAVOR("v5e")                                                                                            \
    CLUSTER_QUEUE("a", "4", "  cohortName: all\n")                                                           \
    CLUSTER_QUEUE("b", "4", "  cohortName: all\n  preemption: {reclaimWithinCohort: " policy "}\n")          \
    LOCAL_QUEUE("qa", "a") LOCAL_QUEUE("qb", "b")

/* reclaimWithinCohort: a borrower goes for whose quota it is: Never, of lower priority, or in any case. */
static void test_reclaim_policies(void **state)
{
    (void)state;
    static const struct {
        const char *objects, *borrower, *then;
    } rows[] = {
        {BORROWERS("Never"), LOW, "admitted"},
        {BORROWERS("LowerPriority"), HIGH, "admitted"},
        {BORROWERS("LowerPriority"), LOW, "leaving"},
        {BORROWERS("Any"), HIGH, "leaving"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct harness h;
        begin(&h, 4, AT_ONCE, rows[i].objects);
        submit(&h, "borrower", "qa", 2, 4, rows[i].borrower);
        harness_run_all(&h);
        submit(&h, "owner", "qb", 1, 4, HIGH);
        assert_state(&h, "borrower", rows[i].then);
        harness_done(&h);
    }
}

#define FLAVORS_QUEUE(more)                                                                                  \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n"                  \
    "  namespaceSelector: {}\n  cohortName: all\n" more "  resourceGroups:\n"                                \
    "  - coveredResources: [google.com/tpu]\n    flavors:\n"                                                 \
    "    - {name: first, resources: [{name: google.com/tpu, nominalQuota: 4}]}\n"                            \
    "    - {name: second, resources: [{name: google.com/tpu, nominalQuota: 8}]}\n---\n"
#define LENDER                                                                                               \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: lender}\nspec:\n"              \
    "  namespaceSelector: {}\n  cohortName: all\n  resourceGroups:\n"                                        \
    "  - coveredResources: [google.com/tpu]\n    flavors:\n"                                                 \
    "    - {name: first, resources: [{name: google.com/tpu, nominalQuota: 16}]}\n"                           \
    "    - {name: second, resources: [{name: google.com/tpu, nominalQuota: 0}]}\n---\n"

static const char *flavor_of(struct harness *h, const char *jobset)
{
    struct str flavor = workload_named(h, jobset)->podsets[0].resources[0].flavor;
    return flavor.len ? flavor.data : "";
}

/* whenCanBorrow: take the first flavour on credit, or the second that is one's own. */
static void test_borrow_or_next_flavor(void **state)
{
    (void)state;
    for (int next = 0; next < 2; next++) {
        struct harness h;
        begin(&h, 6, AT_ONCE, FLAVOR("first") FLAVOR("second") LENDER LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, next ? FLAVORS_QUEUE("  flavorFungibility: {whenCanBorrow: TryNextFlavor}\n")
                            : FLAVORS_QUEUE(""));
        submit(&h, "a", "lq", 2, 4, "");
        assert_string_equal(flavor_of(&h, "a"), next ? "second" : "first");
        harness_done(&h);
    }
}

/* whenCanPreempt: go on to a flavour that is free, or preempt in the first. */
static void test_preempt_or_next_flavor(void **state)
{
    (void)state;
    for (int stop = 0; stop < 2; stop++) {
        struct harness h;
        begin(&h, 6, AT_ONCE, FLAVOR("first") FLAVOR("second") LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, stop ? FLAVORS_QUEUE("  flavorFungibility: {whenCanPreempt: MayStopSearch}\n"
                                            "  preemption: {withinClusterQueue: LowerPriority}\n")
                            : FLAVORS_QUEUE("  preemption: {withinClusterQueue: LowerPriority}\n"));
        submit(&h, "low", "lq", 1, 4, LOW);
        harness_run_all(&h);
        assert_string_equal(flavor_of(&h, "low"), "first");
        submit(&h, "high", "lq", 1, 4, HIGH);
        assert_state(&h, "low", stop ? "leaving" : "admitted");
        assert_string_equal(flavor_of(&h, "high"), stop ? "first" : "second");
        harness_done(&h);
    }
}

/* MayStopSearch stops at a flavour where somebody can be preempted; where nobody can, the search goes on. */
static void test_stops_only_where_preemption_helps(void **state)
{
    (void)state;
    static const struct {
        const char *runs, *asks, *then;
    } rows[] = {
        {LOW, HIGH, "first"},
        {HIGH, HIGH, "second"},
        {HIGH, LOW, "second"},
        {LOW, LOW, "second"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct harness h;
        begin(&h, 6, AT_ONCE, FLAVOR("first") FLAVOR("second") LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, FLAVORS_QUEUE("  flavorFungibility: {whenCanPreempt: MayStopSearch}\n"
                                     "  preemption: {withinClusterQueue: LowerPriority}\n"));
        submit(&h, "runs", "lq", 1, 4, rows[i].runs);
        harness_run_all(&h);
        submit(&h, "asks", "lq", 1, 4, rows[i].asks);
        assert_string_equal(flavor_of(&h, "asks"), rows[i].then);
        harness_done(&h);
    }
}

/* A workload that has just begun cannot be preempted either. */
static void test_goes_on_where_victims_are_protected(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 6, "{\"minimumRunTime\":\"1h\"}", FLAVOR("first") FLAVOR("second") LOCAL_QUEUE("lq", "cq"));
    must_apply(&h, FLAVORS_QUEUE("  flavorFungibility: {whenCanPreempt: MayStopSearch}\n"
                                 "  preemption: {withinClusterQueue: LowerPriority}\n"));
    submit(&h, "runs", "lq", 1, 4, LOW);
    harness_run_all(&h);
    submit(&h, "asks", "lq", 1, 4, HIGH);
    assert_state(&h, "asks", "admitted");
    assert_string_equal(flavor_of(&h, "asks"), "second");
    harness_done(&h);
}

#define STRICT_AND_BORROWER(preemption)                                                                      \
    FLAVOR("v5e")                                                                                            \
    CLUSTER_QUEUE("strict", "8", "  cohortName: all\n  queueingStrategy: StrictFIFO\n" preemption)           \
    CLUSTER_QUEUE("borrower", "0", "  cohortName: all\n")                                                    \
    LOCAL_QUEUE("ls", "strict") LOCAL_QUEUE("lb", "borrower")

/* The head of a StrictFIFO queue that waits keeps its queue's quota from borrowers, however often they come,
 * unless its queue can take it back at any time. */
static void test_strict_head_keeps_its_quota(void **state)
{
    (void)state;
    static const struct {
        const char *objects, *then;
    } rows[] = {
        {STRICT_AND_BORROWER(""), "pending"},
        {STRICT_AND_BORROWER("  preemption: {reclaimWithinCohort: LowerPriority}\n"), "pending"},
        {STRICT_AND_BORROWER("  preemption: {reclaimWithinCohort: Any}\n"), "admitted"},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
        struct harness h;
        begin(&h, 4, AT_ONCE, rows[i].objects);
        submit(&h, "runs", "ls", 1, 4, "");
        harness_run_all(&h);
        submit(&h, "head", "ls", 2, 4, "");
        assert_state(&h, "head", "pending");
        submit(&h, "x", "lb", 1, 4, "");
        assert_state(&h, "x", rows[i].then);
        submit(&h, "z", "lb", 1, 4, ""); /* the second as the first, though nothing has changed since */
        assert_state(&h, "z", "pending");
        harness_wait(&h, 600 * NS_PER_SECOND);
        assert_state(&h, "x", rows[i].then);
        finish_all(&h, "runs", 1);
        assert_state(&h, "head", i < 2 ? "admitted" : "holding");
        harness_done(&h);
    }
}

/* Resources that the head kept are free when it goes. */
static void test_strict_head_goes(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 4, AT_ONCE, STRICT_AND_BORROWER(""));
    submit(&h, "runs", "ls", 1, 4, "");
    submit(&h, "head", "ls", 2, 4, "");
    submit(&h, "x", "lb", 1, 4, "");
    assert_state(&h, "x", "pending");
    assert_int_equal(harness_write(&h, WRITE_DELETE, "head", NULL), 200);
    assert_state(&h, "x", "admitted");
    harness_done(&h);
}

/* preference: when one flavour can be had by borrowing and another by preempting. */
static void test_preemption_over_borrowing(void **state)
{
    (void)state;
    for (int preempts = 0; preempts < 2; preempts++) {
        struct harness h;
        begin(&h, 8, AT_ONCE, FLAVOR("first") FLAVOR("second") LENDER LOCAL_QUEUE("lq", "cq"));
        must_apply(&h, FLAVORS_QUEUE("  preemption: {withinClusterQueue: LowerPriority}\n"));
        submit(&h, "one", "lq", 1, 4, HIGH); /* all that is its own of the first */
        submit(&h, "two", "lq", 2, 4, LOW);  /* larger than the rest of it: borrows */
        assert_string_equal(flavor_of(&h, "two"), "first");
        must_apply(&h, FLAVORS_QUEUE("  flavorFungibility: {whenCanBorrow: TryNextFlavor}\n"
                                     "  preemption: {withinClusterQueue: LowerPriority}\n"));
        submit(&h, "three", "lq", 2, 4, LOW); /* its own of the second */
        assert_string_equal(flavor_of(&h, "three"), "second");
        harness_run_all(&h);
        must_apply(&h, preempts
                           ? FLAVORS_QUEUE("  flavorFungibility: {whenCanBorrow: TryNextFlavor, preference: "
                                           "PreemptionOverBorrowing}\n"
                                           "  preemption: {withinClusterQueue: LowerPriority}\n")
                           : FLAVORS_QUEUE("  flavorFungibility: {whenCanBorrow: TryNextFlavor}\n"
                                           "  preemption: {withinClusterQueue: LowerPriority}\n"));
        submit(&h, "four", "lq", 1, 4, HIGH);
        assert_string_equal(flavor_of(&h, "four"), preempts ? "second" : "first");
        assert_state(&h, "three", preempts ? "leaving" : "admitted");
        harness_done(&h);
    }
}

#define WEIGHTED(name, weight)                                                                               \
    CLUSTER_QUEUE(                                                                                           \
        name, "0",                                                                                           \
        "  cohortName: all\n  preemption: {reclaimWithinCohort: Any}\n  fairSharing: {weight: " weight       \
        "}\n")

/* fairSharing.weight: three parts of four go to who weighs three times as much; weight 0 borrows last. */
static void test_weights(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 8, "{\"minimumRunTime\":\"0s\",\"fairSharing\":{\"enable\":true}}",
          FLAVOR("v5e") CLUSTER_QUEUE("pool", "32", "  cohortName: all\n") WEIGHTED("a", "3")
              WEIGHTED("b", "1") WEIGHTED("z", "0") LOCAL_QUEUE("qa", "a") LOCAL_QUEUE("qb", "b")
                  LOCAL_QUEUE("qz", "z"));
    char name[16];
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "z%d", i);
        submit(&h, name, "qz", 1, 4, ""); /* all of it, while nobody else asks */
        h.now_ns += NS_PER_SECOND;
    }
    harness_run_all(&h);
    for (int i = 0; i < 8; i++) {
        snprintf(name, sizeof(name), "a%d", i);
        submit(&h, name, "qa", 1, 4, "");
        snprintf(name, sizeof(name), "b%d", i);
        submit(&h, name, "qb", 1, 4, "");
        h.now_ns += NS_PER_SECOND;
        harness_run_all(&h);
    }
    int counts[3] = {0};
    for (int i = 0; i < 8; i++) {
        for (int q = 0; q < 3; q++) {
            snprintf(name, sizeof(name), "%c%d", "abz"[q], i);
            counts[q] += strcmp(state_of(&h, name), "admitted") == 0;
        }
    }
    assert_int_equal(counts[0], 6);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 0);
    harness_done(&h);
}

/* waitForPodsReady.recoveryTimeout: one that loses a task and does not get it back in time goes. */
static void test_recovery_timeout(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2,
          "{\"waitForPodsReady\":{\"enable\":true,\"recoveryTimeout\":\"60s\",\"requeuingStrategy\":{"
          "\"timestamp\":\"Creation\",\"backoffBaseSeconds\":0}}}",
          FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "") LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 2, 4, "");
    submit(&h, "b", "lq", 2, 4, "");
    harness_run_all(&h);
    assert_true(holds(&h, "a", WORKLOAD_PODS_READY));
    harness_lose(&h, "m-2"); /* there is no other */
    assert_false(holds(&h, "a", WORKLOAD_PODS_READY));
    assert_string_equal(reason_of(&h, "a", WORKLOAD_PODS_READY), "WaitForRecovery");
    harness_run_all(&h);
    harness_wait(&h, 59 * NS_PER_SECOND);
    assert_state(&h, "a", "admitted");
    harness_wait(&h, NS_PER_SECOND);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "PodsReadyTimeout");
    harness_run_all(&h);
    harness_hello(&h, "m-2", NULL, 0);
    assert_state(&h, "a", "admitted"); /* by its creation it stands before the other */
    assert_state(&h, "b", "pending");
    harness_done(&h);
}

/* Without a class of its own a Workload has the first priority class of its Pods. */
static void test_priority_of_pods(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "8", "") LOCAL_QUEUE("lq", "cq"));
    must_apply(
        &h, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 77\n");
    must_apply(
        &h,
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: a, labels: "
        "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n"
        "  - {name: first, template: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, "
        "image: i, command: [run]}]}}}}}\n"
        "  - {name: second, template: {spec: {template: {spec: {priorityClassName: urgent, restartPolicy: "
        "Never, containers: [{name: c, image: i, command: [run]}]}}}}}\n");
    assert_int_equal(workload_named(&h, "a")->priority, 77);
    /* A core that is restored from a snapshot derives the priority from the class as it is now. */
    assert_int_equal(post(&h, WRITE_DELETE, OBJECT_PRIORITY_CLASS, "", "urgent", STR("")), 200);
    assert_int_equal(workload_named(&h, "a")->priority, 0);
    must_apply(
        &h, "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: urgent}\nvalue: 78\n");
    assert_int_equal(workload_named(&h, "a")->priority, 78);
    harness_done(&h);
}

/* stopPolicy of a LocalQueue: Hold admits nobody, HoldAndDrain evicts too; None lets all go on. */
static void test_local_queue_stops(void **state)
{
    (void)state;
    static const char yaml[] = "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, "
                               "namespace: default}\nspec: {clusterQueue: cq, stopPolicy: %s}\n";
    char text[512];
    struct harness h;
    begin(&h, 4, AT_ONCE, FLAVOR("v5e") CLUSTER_QUEUE("cq", "16", "") LOCAL_QUEUE("lq", "cq"));
    submit(&h, "a", "lq", 1, 4, "");
    harness_run_all(&h);
    snprintf(text, sizeof(text), yaml, "Hold");
    must_apply(&h, text);
    submit(&h, "b", "lq", 1, 4, "");
    assert_state(&h, "a", "admitted");
    assert_string_equal(reason_of(&h, "b", WORKLOAD_QUOTA_RESERVED), "Suspended");
    snprintf(text, sizeof(text), yaml, "HoldAndDrain");
    must_apply(&h, text);
    assert_string_equal(reason_of(&h, "a", WORKLOAD_EVICTED), "LocalQueueStopped");
    harness_run_all(&h);
    snprintf(text, sizeof(text), yaml, "None");
    must_apply(&h, text);
    assert_state(&h, "a", "admitted");
    assert_state(&h, "b", "admitted");
    harness_done(&h);
}

/* Workloads that borrow less go first, whatever their priority. */
static void test_borrows_least_goes_first(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE,
          FLAVOR("v5e") CLUSTER_QUEUE("a", "0", "  cohortName: all\n  stopPolicy: Hold\n")
              CLUSTER_QUEUE("b", "8", "  cohortName: all\n  stopPolicy: Hold\n") LOCAL_QUEUE("qa", "a")
                  LOCAL_QUEUE("qb", "b"));
    submit(&h, "borrows", "qa", 2, 4, HIGH);
    h.now_ns += NS_PER_SECOND;
    submit(&h, "owns", "qb", 2, 4, LOW);
    must_apply(&h,
               CLUSTER_QUEUE("a", "0", "  cohortName: all\n") CLUSTER_QUEUE("b", "8", "  cohortName: all\n"));
    harness_run_all(&h);
    /* The queues open one after the other: the first that could, did; now both wait at once. */
    const char *runs = strcmp(state_of(&h, "borrows"), "admitted") == 0 ? "borrows" : "owns";
    submit(&h, "borrows2", "qa", 2, 4, HIGH);
    submit(&h, "owns2", "qb", 2, 4, LOW);
    finish_all(&h, runs, 2);
    harness_run_all(&h);
    assert_state(&h, strcmp(runs, "owns") == 0 ? "owns2" : "owns", "admitted");
    assert_state(&h, "borrows2", "pending");
    harness_done(&h);
}

/* Racks of one name in two pods are two domains. */
static void test_domains_are_paths(void **state)
{
    (void)state;
    static const char cluster[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"test\"},\"spec\":{"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\",\"pods\":["
        "{\"name\":\"p1\",\"racks\":[{\"name\":\"r1\",\"machines\":2,\"chips\":4}]},"
        "{\"name\":\"p2\",\"racks\":[{\"name\":\"r1\",\"machines\":2,\"chips\":4}]}]}}";
    struct harness h;
    begin(&h, 4, "{}", FLAVOR("v5e") CLUSTER_QUEUE("cq", "100", "") LOCAL_QUEUE("lq", "cq"));
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(cluster);
    harness_step(&h, &event);
    for (int tasks = 2; tasks <= 3; tasks++) {
        char yaml[1024];
        snprintf(
            yaml, sizeof(yaml),
            "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: of%d, labels: "
            "{kueue.x-k8s.io/queue-name: lq}}\nspec:\n  replicatedJobs:\n  - name: w\n    template: {spec: "
            "{parallelism: %d, completions: %d, template: {metadata: {annotations: "
            "{kueue.x-k8s.io/podset-required-topology: phalanx.dev/rack}}, spec: {restartPolicy: Never, "
            "containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: "
            "4}}}]}}}}\n",
            tasks, tasks, tasks);
        must_apply(&h, yaml);
    }
    assert_state(&h, "of2", "admitted");
    assert_state(&h, "of3", "pending"); /* though three machines stand in racks of this name */
    harness_done(&h);
}

static void submit_at(struct harness *h, const char *name, const char *machine, int chips)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: batch/v1\nkind: Job\nmetadata: {name: %s}\nspec: {template: {spec: {restartPolicy: "
             "Never, nodeSelector: {kubernetes.io/hostname: %s}, containers: [{name: c, image: i, command: "
             "[run], resources: {limits: {google.com/tpu: %d}}}]}}}\n",
             name, machine, chips);
    must_apply(h, yaml);
}

/* BestFit: of two hosts that hold as many whole slices, the one on which the fewest places are left over. */
static void test_best_fit_of_equal_domains(void **state)
{
    (void)state;
    struct harness h;
    harness_init(&h, 3, 4, 0);
    submit_at(&h, "full", "m-3", 4);
    submit_at(&h, "one", "m-1", 1); /* 3 are free: a slice of 2, and one more */
    submit_at(&h, "two", "m-2", 2); /* 2 are free: a slice */
    must_apply(&h,
               "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {parallelism: 2, completions: "
               "2, template: {metadata: {annotations: "
               "{kueue.x-k8s.io/podset-required-topology: kubernetes.io/hostname, "
               "kueue.x-k8s.io/podset-slice-required-topology: kubernetes.io/hostname, "
               "kueue.x-k8s.io/podset-slice-size: \"2\"}}, spec: {restartPolicy: Never, containers: "
               "[{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: 1}}}]}}}\n");
    const struct job *job = jobs_find_job(core_jobs(h.core), STR("default"), STR("j"));
    for (size_t t = 0; t < 2; t++)
        assert_int_equal(job->tasks.items[t]->machine, 1);
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newer_equals_make_room),
        cmocka_unit_test(test_reclaim_policies),
        cmocka_unit_test(test_borrow_or_next_flavor),
        cmocka_unit_test(test_preempt_or_next_flavor),
        cmocka_unit_test(test_stops_only_where_preemption_helps),
        cmocka_unit_test(test_goes_on_where_victims_are_protected),
        cmocka_unit_test(test_strict_head_keeps_its_quota),
        cmocka_unit_test(test_strict_head_goes),
        cmocka_unit_test(test_preemption_over_borrowing),
        cmocka_unit_test(test_weights),
        cmocka_unit_test(test_recovery_timeout),
        cmocka_unit_test(test_priority_of_pods),
        cmocka_unit_test(test_local_queue_stops),
        cmocka_unit_test(test_borrows_least_goes_first),
        cmocka_unit_test(test_best_fit_of_equal_domains),
        cmocka_unit_test(test_domains_are_paths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
