/* Preemption against a brute-force oracle on small random clusters: the classic search takes exactly the
 * victims that the documented order gives, none that was not needed; by fair sharing nobody is preempted for
 * a queue that would then stand above theirs. */
#include "queues.h"

#include "base/rng.h"

enum { GANGS_MAX = 24, SEEDS = 90 };
static const char *const priorities[] = {"p0", "p1", "p2", "p9"};
static const int values[] = {0, 1, 2, 9};

struct gang_shape {
    char name[16];
    int tasks, priority, queue;
    bool admitted;
    int64_t since_ns;
    obj_id uid;
};
struct model {
    struct gang_shape gangs[GANGS_MAX];
    int count, machines, quota, foreign;
};

static void make_classes(struct harness *h)
{
    for (int i = 0; i < 4; i++) {
        char yaml[256];
        snprintf(yaml, sizeof(yaml),
                 "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: %s}\n"
                 "value: %d\n",
                 priorities[i], values[i]);
        must_apply(h, yaml);
    }
}

static void submit_shape(struct harness *h, const struct gang_shape *gang)
{
    char labels[128], queue[8];
    snprintf(labels, sizeof(labels), "    kueue.x-k8s.io/priority-class: %s\n", priorities[gang->priority]);
    snprintf(queue, sizeof(queue), "q%d", gang->queue);
    submit(h, gang->name, queue, gang->tasks, 4, labels);
    harness_wait(h, NS_PER_MS);
}

/* --- the classic search ----------------------------------------------------------------------- */

static void set_policy(struct harness *h, int quota, const char *policy)
{
    char yaml[1024];
    snprintf(yaml, sizeof(yaml),
             "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: team}\nspec:\n"
             "  namespaceSelector: {}\n  preemption: {withinClusterQueue: %s}\n  resourceGroups:\n"
             "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"
             "      resources: [{name: google.com/tpu, nominalQuota: %d}]\n",
             policy, quota);
    must_apply(h, yaml);
}

static bool oracle_fits(const struct model *model, const bool *gone, int tasks)
{
    int used = 0;
    for (int g = 0; g < model->count; g++)
        used += model->gangs[g].admitted && !gone[g] ? model->gangs[g].tasks : 0;
    return (used + tasks) * 4 <= model->quota && used + tasks + model->foreign <= model->machines;
}

static bool goes_before(const struct gang_shape *a, const struct gang_shape *b)
{
    if (values[a->priority] != values[b->priority])
        return values[a->priority] < values[b->priority];
    return a->since_ns != b->since_ns ? a->since_ns > b->since_ns : a->uid < b->uid;
}

/* Marks the victims; false: nobody is taken. */
static bool oracle_victims(const struct model *model, int tasks, int priority, bool *gone)
{
    int row[GANGS_MAX], len = 0;
    bool taken[GANGS_MAX] = {0};
    for (int g = 0; g < model->count; g++) {
        if (!model->gangs[g].admitted || values[model->gangs[g].priority] >= values[priority])
            continue;
        int at = len++;
        for (; at > 0 && goes_before(&model->gangs[g], &model->gangs[row[at - 1]]); at--)
            row[at] = row[at - 1];
        row[at] = g;
    }
    int need = 0;
    while (need < len && !oracle_fits(model, taken, tasks))
        taken[row[need++]] = true;
    if (need == 0 || !oracle_fits(model, taken, tasks))
        return false;
    for (int i = need - 2; i >= 0; i--) {
        taken[row[i]] = false;
        taken[row[i]] = !oracle_fits(model, taken, tasks);
    }
    memcpy(gone, taken, sizeof(taken));
    return true;
}

static void fill(struct harness *h, struct model *model, struct rng *rng)
{
    model->machines = 3 + (int)rng_below(rng, 6);
    model->quota = 4 * (2 + (int)rng_below(rng, (uint64_t)model->machines + 2));
    harness_init(h, model->machines, 4, 0);
    set_queues(h, model->machines, 4, "{\"minimumRunTime\":0}");
    must_apply(h, FLAVOR("v5e") LOCAL_QUEUE("q0", "team"));
    make_classes(h);
    set_policy(h, model->quota, "Never");
    int wanted = 2 + (int)rng_below(rng, 6);
    for (int g = 0; g < wanted; g++) {
        struct gang_shape *gang = &model->gangs[model->count];
        *gang = (struct gang_shape){.tasks = 1 + (int)rng_below(rng, 3), .priority = (int)rng_below(rng, 3)};
        snprintf(gang->name, sizeof(gang->name), "g%d", g);
        submit_shape(h, gang);
        const struct workload *workload = workload_named(h, gang->name);
        gang->admitted = workload->state == WORKLOAD_ADMITTED;
        gang->since_ns = workload->admitted_ns;
        gang->uid = workload->uid;
        model->count += gang->admitted;
        if (!gang->admitted)
            post(h, WRITE_DELETE, OBJECT_JOBSET, "default", gang->name, STR(""));
    }
    harness_run_all(h);
}

static void test_classic_takes_who_is_needed(void **state)
{
    (void)state;
    int preempted = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct harness h;
        struct model model = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        fill(&h, &model, &rng);
        set_policy(&h, model.quota, "LowerPriority");
        struct gang_shape last = {.name = "last", .tasks = 1 + (int)rng_below(&rng, 6)};
        last.priority = 1 + (int)rng_below(&rng, 3);
        bool gone[GANGS_MAX] = {0}, none[GANGS_MAX] = {0};
        bool fits = oracle_fits(&model, none, last.tasks);
        bool found = !fits && oracle_victims(&model, last.tasks, last.priority, gone);
        submit_shape(&h, &last);
        assert_state(&h, "last", fits ? "admitted" : found ? "holding" : "pending");
        for (int g = 0; g < model.count; g++)
            assert_state(&h, model.gangs[g].name, gone[g] ? "leaving" : "admitted");
        preempted += found;
        harness_done(&h);
    }
    assert_true(preempted >= 3); /* else the seeds say nothing */
}

/* --- fair sharing ----------------------------------------------------------------------------- */

enum { FAIR_QUEUES = 3 };
static const int nominal[FAIR_QUEUES] = {8, 4, 12};

static int64_t share_of(const int *used, int queue)
{
    int total = 0, over = used[queue] * 4 - nominal[queue];
    for (int q = 0; q < FAIR_QUEUES; q++)
        total += nominal[q];
    return over > 0 ? (int64_t)over * 1000 / total : 0;
}

static void check_step(struct harness *h, const struct model *model, const int *before, int *ret_victims)
{
    int after[FAIR_QUEUES];
    memcpy(after, before, sizeof(after));
    const struct gang_shape *last = &model->gangs[model->count - 1];
    after[last->queue] += last->tasks;
    for (int g = 0; g + 1 < model->count; g++) {
        const struct gang_shape *gang = &model->gangs[g];
        if (gang->admitted && strcmp(state_of(h, gang->name), "leaving") == 0)
            after[gang->queue] -= gang->tasks;
    }
    for (int g = 0; g + 1 < model->count; g++) {
        const struct gang_shape *gang = &model->gangs[g];
        if (!gang->admitted || strcmp(state_of(h, gang->name), "leaving") != 0)
            continue;
        assert_int_not_equal(gang->queue, last->queue);
        bool entitled = (before[last->queue] + last->tasks) * 4 <= nominal[last->queue];
        assert_string_equal(reason_of(h, gang->name, WORKLOAD_PREEMPTED),
                            entitled ? "InCohortReclamation" : "InCohortFairSharing");
        assert_true(share_of(before, gang->queue) > 0); /* it borrowed */
        if (!entitled && share_of(after, last->queue) > share_of(before, gang->queue))
            fail_msg("%s went for %s", gang->name, last->name);
        ++*ret_victims;
    }
}

static void test_fair_sharing_takes_from_above(void **state)
{
    (void)state;
    int preempted = 0;
    for (uint64_t seed = 1; seed <= SEEDS / 3; seed++) {
        struct harness h;
        struct model model = {0};
        struct rng rng;
        rng_seed(&rng, seed);
        harness_init(&h, 10, 4, 0);
        set_queues(&h, 10, 4, "{\"minimumRunTime\":0,\"fairSharing\":{\"enable\":true}}");
        make_classes(&h);
        for (int q = 0; q < FAIR_QUEUES; q++) {
            char yaml[1024];
            snprintf(yaml, sizeof(yaml),
                     FLAVOR("v5e") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: "
                                   "c%d}\nspec:\n  namespaceSelector: {}\n  cohortName: all\n  preemption: "
                                   "{reclaimWithinCohort: Any}\n  resourceGroups:\n  - coveredResources: "
                                   "[google.com/tpu]\n    flavors:\n    - name: v5e\n      resources: "
                                   "[{name: google.com/tpu, nominalQuota: %d}]\n---\napiVersion: "
                                   "kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: q%d, "
                                   "namespace: default}\nspec: {clusterQueue: c%d}\n",
                     q, nominal[q], q, q);
            must_apply(&h, yaml);
        }
        while (model.count < 12) {
            int before[FAIR_QUEUES] = {0};
            for (int g = 0; g < model.count; g++) {
                struct gang_shape *gang = &model.gangs[g];
                gang->admitted = strcmp(state_of(&h, gang->name), "admitted") == 0;
                before[gang->queue] += gang->admitted ? gang->tasks : 0;
            }
            struct gang_shape *gang = &model.gangs[model.count];
            *gang = (struct gang_shape){.tasks = 1 + (int)rng_below(&rng, 2)};
            gang->queue = (int)rng_below(&rng, FAIR_QUEUES);
            snprintf(gang->name, sizeof(gang->name), "g%d", model.count++);
            submit_shape(&h, gang);
            check_step(&h, &model, before, &preempted);
            harness_run_all(&h);
        }
        harness_done(&h);
    }
    assert_true(preempted >= 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_classic_takes_who_is_needed),
        cmocka_unit_test(test_fair_sharing_takes_from_above),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
