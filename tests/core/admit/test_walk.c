/* Random lives of queues: whatever comes, quota is never given twice, what is admitted has machines, what
 * could run is not left waiting, and the log replays to the same state. */
#include "base/rng.h"
#include "queues.h"

enum { MACHINES = 6, CHIPS = 4, NAMES = 14, STEPS = 150 };

struct walk {
    struct harness h;
    struct rng rng;
    bool up[MACHINES];
};

static const char *const names[NAMES] = {"a0", "a1", "a2", "a3", "a4", "a5", "a6",
                                         "a7", "a8", "a9", "b0", "b1", "b2", "b3"};

static void queue_yaml(char *out, size_t size, struct rng *rng, const char *name)
{
    static const char *const within[] = {"Never", "LowerPriority", "LowerOrNewerEqualPriority"};
    static const char *const reclaim[] = {"Never", "LowerPriority", "Any"};
    static const char *const stop[] = {"None", "None", "None", "None", "Hold", "HoldAndDrain"};
    snprintf(out, size,
             "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: %s}\nspec:\n"
             "  namespaceSelector: {}\n  cohortName: all\n  queueingStrategy: %s\n  stopPolicy: %s\n"
             "  preemption: {withinClusterQueue: %s, reclaimWithinCohort: %s}\n  resourceGroups:\n"
             "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"
             "      resources: [{name: google.com/tpu, nominalQuota: %d%s}]\n",
             name, rng_below(rng, 3) ? "BestEffortFIFO" : "StrictFIFO", stop[rng_below(rng, 6)],
             within[rng_below(rng, 3)], reclaim[rng_below(rng, 3)], (int)rng_below(rng, 4) * 4,
             rng_below(rng, 2) ? "" : ", borrowingLimit: 4");
}

static void change_queue(struct walk *w)
{
    char yaml[1024];
    queue_yaml(yaml, sizeof(yaml), &w->rng, rng_below(&w->rng, 2) ? "qa" : "qb");
    must_apply(&w->h, yaml);
}

static void submit_one(struct walk *w)
{
    static const char *const labels[] = {"", "    kueue.x-k8s.io/priority-class: low\n",
                                         "    kueue.x-k8s.io/priority-class: high\n"};
    const char *name = names[rng_below(&w->rng, NAMES)];
    if (!harness_jobset(&w->h, name))
        submit(&w->h, name, rng_below(&w->rng, 2) ? "la" : "lb", 1 + (int)rng_below(&w->rng, 3),
               rng_below(&w->rng, 2) ? 4 : 2, labels[rng_below(&w->rng, 3)]);
}

/* One running task of some workload ends, well or badly. */
static void end_some(struct walk *w)
{
    struct jobset *jobset = harness_jobset(&w->h, names[rng_below(&w->rng, NAMES)]);
    if (!jobset || !jobset->jobs[0] || jobset->jobs[0]->tasks.len == 0)
        return;
    const struct job *job = jobset->jobs[0];
    struct task *task = job->tasks.items[rng_below(&w->rng, job->tasks.len)];
    if (task->state == TASK_RUNNING)
        harness_exit(&w->h, task, rng_below(&w->rng, 6) ? 0 : 1);
}

static void lose_or_return(struct walk *w)
{
    uint64_t m = rng_below(&w->rng, MACHINES);
    char name[16];
    snprintf(name, sizeof(name), "m-%d", (int)m + 1);
    if (w->up[m])
        harness_lose(&w->h, name);
    else
        harness_hello(&w->h, name, NULL, 0);
    w->up[m] = !w->up[m];
}

static void one_step(struct walk *w)
{
    w->h.now_ns += (int64_t)rng_below(&w->rng, 3) * NS_PER_SECOND;
    uint64_t what = rng_below(&w->rng, 20);
    if (what < 7)
        submit_one(w);
    else if (what < 11)
        end_some(w);
    else if (what < 14)
        harness_run_all(&w->h);
    else if (what < 15)
        change_queue(w);
    else if (what < 16)
        lose_or_return(w);
    else if (what < 17)
        harness_write(&w->h, WRITE_DELETE, names[rng_below(&w->rng, NAMES)], NULL);
    else
        harness_wait(&w->h, (int64_t)rng_below(&w->rng, 90) * NS_PER_SECOND);
    core_check_invariants(w->h.core);
}

/* An admitted workload has its machines: its tasks are placed, or are placed anew after a fault. */
static void check_machines(struct walk *w)
{
    for (int i = 0; i < NAMES; i++) {
        const struct workload *workload = workload_named(&w->h, names[i]);
        if (!workload || workload->state != WORKLOAD_ADMITTED || workload->jobset->restarts)
            continue;
        for (size_t g = 0; g < workload->jobset->gangs.len; g++)
            if (workload->jobset->gangs.items[g]->state == GANG_QUEUED)
                fail_msg("%s is admitted and waits for machines: " STR_FORMAT, names[i],
                         STR_ARG(workload->jobset->gangs.items[g]->why));
    }
}

/* In the end every machine is back and every queue is open: whoever fits runs, sooner or later. */
static void drain(struct walk *w)
{
    char name[16];
    for (int m = 0; m < MACHINES; m++) {
        snprintf(name, sizeof(name), "m-%d", m + 1);
        if (!w->up[m])
            harness_hello(&w->h, name, NULL, 0);
    }
    must_apply(&w->h, CLUSTER_QUEUE("qa", "12", "  cohortName: all\n")
                          CLUSTER_QUEUE("qb", "12", "  cohortName: all\n"));
    for (int round = 0; round < 40; round++) {
        harness_wait(&w->h, 100 * NS_PER_SECOND);
        harness_run_all(&w->h);
        for (int i = 0; i < NAMES; i++) {
            struct jobset *jobset = harness_jobset(&w->h, names[i]);
            const struct job *job = jobset ? jobset->jobs[0] : NULL;
            for (size_t t = 0; job && t < job->tasks.len; t++)
                if (job->tasks.items[t]->state == TASK_RUNNING)
                    harness_exit(&w->h, job->tasks.items[t], 0);
        }
        core_check_invariants(w->h.core);
    }
    for (int i = 0; i < NAMES; i++)
        if (workload_named(&w->h, names[i]) && workload_named(&w->h, names[i])->active)
            assert_state(&w->h, names[i], "finished");
}

static void one_walk(uint64_t seed)
{
    struct walk w = {0};
    char yaml[1024];
    rng_seed(&w.rng, seed);
    harness_init(&w.h, MACHINES, CHIPS, 0);
    set_queues(
        &w.h, MACHINES, CHIPS,
        rng_below(&w.rng, 2)
            ? "{\"minimumRunTime\":\"20s\",\"maximumLifetime\":\"10m\",\"fairSharing\":{\"enable\":true}}"
            : "{\"minimumRunTime\":\"0s\",\"waitForPodsReady\":{\"enable\":true,\"timeout\":\"60s\"}}");
    for (int m = 0; m < MACHINES; m++)
        w.up[m] = true;
    must_apply(
        &w.h,
        FLAVOR("v5e") LOCAL_QUEUE("la", "qa") LOCAL_QUEUE(
            "lb", "qb") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: "
                        "low}\nvalue: -5\n---\napiVersion: kueue.x-k8s.io/v1beta2\n"
                        "kind: WorkloadPriorityClass\nmetadata: {name: high}\nvalue: 5\n");
    queue_yaml(yaml, sizeof(yaml), &w.rng, "qa");
    must_apply(&w.h, yaml);
    queue_yaml(yaml, sizeof(yaml), &w.rng, "qb");
    must_apply(&w.h, yaml);
    for (int step = 0; step < STEPS; step++) {
        one_step(&w);
        check_machines(&w);
        if (step % 50 == 49)
            harness_check_replay(&w.h);
    }
    drain(&w);
    harness_done(&w.h);
}

static void test_walks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++)
        one_walk(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_walks)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
