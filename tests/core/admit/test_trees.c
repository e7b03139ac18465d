/* Trees of cohorts: whose quota is whose, and fair shares at each level. */
#include "queues.h"

#define AT_ONCE "{\"minimumRunTime\":\"0s\"}"
#define FAIR    "{\"minimumRunTime\":\"0s\",\"fairSharing\":{\"enable\":true}}"
#define CLASS(name, value)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: " name                \
    "}\nvalue: " value "\n---\n"
#define LOW  "    kueue.x-k8s.io/priority-class: low\n"
#define HIGH "    kueue.x-k8s.io/priority-class: high\n"
/* `more`: further fields of the spec, each line with two blanks. */
#define COHORT(name, more)                                                                                   \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: Cohort\nmetadata: {name: " name "}\nspec:\n" more "---\n"
#define OWNS(quota)                                                                                          \
    "  resourceGroups:\n  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"             \
    "      resources: [{name: google.com/tpu, nominalQuota: " quota "}]\n"
#define CHILD_OF(cohort)     "  parentName: " cohort "\n"
#define IN(cohort)           "  cohortName: " cohort "\n"
#define RECLAIMS(policy)     "  preemption: {reclaimWithinCohort: " policy "}\n"
#define QUEUE(name, q, more) CLUSTER_QUEUE(name, q, more) LOCAL_QUEUE(name, name)

static void begin(struct harness *h, int machines, const char *settings, const char *objects)
{
    harness_init(h, machines, 4, 0);
    set_queues(h, machines, 4, settings);
    must_apply(h, CLASS("low", "-1") CLASS("high", "100"));
    must_apply(h, objects);
}

/* Submits JobSets `first`0, `first`1, ... of one chip each. */
static void submit_many(struct harness *h, const char *first, const char *queue, int from, int count,
                        const char *labels)
{
    for (int i = from; i < from + count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s%d", first, i);
        submit(h, name, queue, 1, 1, labels);
        h->now_ns += NS_PER_SECOND;
    }
}

static int count_admitted(struct harness *h, const char *first, int count)
{
    int admitted = 0;
    for (int i = 0; i < count; i++) {
        char name[32];
        snprintf(name, sizeof(name), "%s%d", first, i);
        admitted += strcmp(state_of(h, name), "admitted") == 0;
    }
    return admitted;
}

/* The quota of a Cohort belongs to the queues in it: they take it back from borrowers outside, whatever the
 * priorities, even if their own nominal quota is nothing. */
static void test_quota_of_a_cohort_is_reclaimed(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE,
          FLAVOR("v5e") COHORT("ours", CHILD_OF("root") OWNS("3")) COHORT("theirs", CHILD_OF("root"))
              QUEUE("a", "0", IN("ours") RECLAIMS("Any")) QUEUE("b", "1", IN("theirs")));
    submit_many(&h, "b", "b", 0, 4, HIGH);
    harness_run_all(&h);
    assert_int_equal(count_admitted(&h, "b", 4), 4); /* 1 of its own, 3 of the other cohort */
    submit(&h, "a", "a", 1, 3, LOW);
    assert_state(&h, "b3", "leaving");
    assert_state(&h, "b1", "leaving");
    assert_string_equal(reason_of(&h, "b3", WORKLOAD_PREEMPTED), "InCohortReclamation");
    harness_run_all(&h);
    assert_state(&h, "a", "admitted");
    assert_int_equal(count_admitted(&h, "b", 4), 1);
    harness_done(&h);
}

/* Within one cohort no queue is nearer to the cohort's quota than another: priorities decide. */
static void test_priorities_decide_within_a_cohort(void **state)
{
    (void)state;
    for (int high = 0; high < 2; high++) {
        struct harness h;
        begin(&h, 2, AT_ONCE,
              FLAVOR("v5e") COHORT("ours", OWNS("3"))
                  QUEUE("a", "0",
                        IN("ours") "  preemption: {reclaimWithinCohort: LowerPriority, borrowWithinCohort: "
                                   "{policy: LowerPriority}}\n") QUEUE("b", "0", IN("ours")));
        submit_many(&h, "b", "b", 0, 3, LOW);
        harness_run_all(&h);
        submit(&h, "a", "a", 1, 1, high ? HIGH : LOW);
        assert_state(&h, "b2", high ? "leaving" : "admitted");
        if (high)
            assert_string_equal(reason_of(&h, "b2", WORKLOAD_PREEMPTED), "InCohortReclaimWhileBorrowing");
        harness_done(&h);
    }
}

/* A queue in a cohort that stays within its own is left alone, even if the queue itself borrows there. */
static void test_cohorts_within_their_own_are_spared(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, AT_ONCE,
          FLAVOR("v5e") COHORT("theirs", CHILD_OF("root") OWNS("4")) QUEUE("b", "0", IN("theirs"))
              QUEUE("c", "0", IN("root")) QUEUE("a", "2", IN("root") RECLAIMS("Any")));
    submit_many(&h, "b", "b", 0, 4, LOW); /* what its cohort has */
    submit_many(&h, "c", "c", 0, 2, LOW); /* what a has */
    harness_run_all(&h);
    submit(&h, "a", "a", 1, 2, HIGH);
    assert_int_equal(count_admitted(&h, "b", 4), 4);
    assert_int_equal(count_admitted(&h, "c", 2), 0);
    harness_run_all(&h);
    assert_state(&h, "a", "admitted");
    harness_done(&h);
}

#define FAIR_TREE                                                                                            \
    FLAVOR("v5e")                                                                                            \
    COHORT("root", OWNS("12"))                                                                               \
    COHORT("research", CHILD_OF("root"))                                                                     \
    COHORT("chemistry", CHILD_OF("research"))                                                                \
    COHORT("physics", CHILD_OF("research"))                                                                  \
    COHORT("llm", CHILD_OF("research") "  fairSharing: {weight: '2.0'}\n")                                   \
    COHORT("best-effort", CHILD_OF("root") "  fairSharing: {weight: '0.5'}\n")                               \
    QUEUE("chem", "0", IN("chemistry") RECLAIMS("LowerPriority"))                                            \
    QUEUE("phys", "0", IN("physics") RECLAIMS("LowerPriority"))                                              \
    QUEUE("llm", "0", IN("llm") RECLAIMS("LowerPriority"))                                                   \
    QUEUE("best", "0", IN("best-effort"))

/* Shares are fair with respect to each parent: of 12, two parts of three for research (weight 1 beside 0.5),
 * and of these 2, 2 and 4 (weights 1, 1 and 2). */
static void test_shares_are_fair_at_each_level(void **state)
{
    (void)state;
    static const char *const queues[] = {"chem", "phys", "llm", "best"};
    static const int fair[] = {2, 2, 4, 4};
    struct harness h;
    begin(&h, 3, FAIR, FAIR_TREE);
    for (int i = 0; i < 6; i++) {
        submit_many(&h, "low-best", "best", i, 1, LOW);
        submit_many(&h, "low-phys", "phys", i, 1, LOW);
    }
    harness_run_all(&h);
    assert_int_equal(count_admitted(&h, "low-best", 6), 6);
    assert_int_equal(count_admitted(&h, "low-phys", 6), 6);
    for (int i = 0; i < 6; i++)
        for (int q = 0; q < 4; q++)
            submit_many(&h, queues[q], queues[q], i, 1, HIGH);
    for (int i = 0; i < 12; i++)
        harness_run_all(&h);
    for (int q = 0; q < 4; q++) {
        char low[32];
        snprintf(low, sizeof(low), "low-%s", queues[q]);
        assert_int_equal(count_admitted(&h, queues[q], 6) + count_admitted(&h, low, 6), fair[q]);
    }
    harness_done(&h);
}

#define TWO_RESOURCES(name, chips, cpus)                                                                     \
    "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: " name "}\nspec:\n"            \
    "  namespaceSelector: {}\n  cohortName: all\n  preemption: {reclaimWithinCohort: Any}\n"                 \
    "  resourceGroups:\n  - coveredResources: [google.com/tpu, cpu]\n    flavors:\n    - name: v5e\n"        \
    "      resources:\n      - {name: google.com/tpu, nominalQuota: " chips "}\n"                            \
    "      - {name: cpu, nominalQuota: " cpus "}\n---\n" LOCAL_QUEUE(name, name)

static void submit_both(struct harness *h, const char *name, const char *queue, int chips, int cpus)
{
    char yaml[1024];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: %s\n  labels:\n"
        "    kueue.x-k8s.io/queue-name: %s\nspec:\n  replicatedJobs:\n  - name: w\n    template: {spec: "
        "{backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, "
        "command: [run], resources: {limits: {google.com/tpu: %d, cpu: %d}, requests: {cpu: %d}}}]}}}}\n",
        name, queue, chips, cpus, cpus);
    harness_create(h, yaml);
    core_check_invariants(h->core);
    h->now_ns += NS_PER_SECOND;
}

/* A queue is entitled to what is its own of the resource that lacks, although its share counts what it
 * borrows of another. */
static void test_reclaims_its_own_while_it_borrows_another(void **state)
{
    (void)state;
    struct harness h;
    begin(&h, 2, FAIR, FLAVOR("v5e") TWO_RESOURCES("one", "4", "0") TWO_RESOURCES("two", "0", "4"));
    submit_both(&h, "a", "two", 1, 0);
    submit_both(&h, "b", "two", 1, 0);
    harness_run_all(&h);
    assert_state(&h, "b", "admitted");
    submit_both(&h, "wide", "one", 4, 4);
    assert_state(&h, "a", "leaving");
    assert_state(&h, "b", "leaving");
    assert_string_equal(reason_of(&h, "a", WORKLOAD_PREEMPTED), "InCohortReclamation");
    harness_run_all(&h);
    assert_state(&h, "wide", "admitted");
    harness_done(&h);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_quota_of_a_cohort_is_reclaimed),
        cmocka_unit_test(test_priorities_decide_within_a_cohort),
        cmocka_unit_test(test_cohorts_within_their_own_are_spared),
        cmocka_unit_test(test_shares_are_fair_at_each_level),
        cmocka_unit_test(test_reclaims_its_own_while_it_borrows_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
