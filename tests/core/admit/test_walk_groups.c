/* Random lives of pod groups and AdmissionChecks: a group is admitted whole or not at all, nobody runs whom a
 * check has not let pass, what could run is not left waiting, and the log replays to the same state. */
#include "base/rng.h"
#include "queues.h"

enum { MACHINES = 5, GROUPS = 4, PODS = 5, STEPS = 160 };

struct walk {
    struct harness h;
    struct rng rng;
    int made; /* Pods so far: names are never used again */
    int totals[GROUPS];
};

struct finding {
    struct str group;
    struct workload **list;
    size_t count;
};

static void find_member(void *context, const struct workload *workload)
{
    struct finding *finding = context;
    struct str group =
        labels_get(&workload->jobset->spec.labels, STR("kueue.x-k8s.io/pod-group-name"), STR(""));
    if (str_equal(group, finding->group))
        finding->list[finding->count++] = (struct workload *)workload;
}

/* Workloads of a group; its first one, or NULL. */
static struct workload *first_of(struct walk *w, int group, struct workload **list, size_t *ret_count)
{
    char name[16];
    snprintf(name, sizeof(name), "g%d", group);
    struct finding finding = {.group = str_from(name), .list = list};
    workload_visit(core_admit(w->h.core), find_member, &finding);
    *ret_count = finding.count;
    return finding.count ? list[0] : NULL;
}

static void make_pod(struct walk *w, int group)
{
    struct workload *list[512];
    size_t count;
    char yaml[1024];
    const char *class = rng_below(&w->rng, 2) ? "low" : "high";
    if (first_of(w, group, list, &count) == NULL)
        w->totals[group] = 1 + (int)rng_below(&w->rng, 3);
    else if (count > PODS)
        return;
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: v1\nkind: Pod\nmetadata:\n  name: p%d\n  namespace: default\n  labels: {"
        "kueue.x-k8s.io/queue-name: %s, kueue.x-k8s.io/pod-group-name: g%d, kueue.x-k8s.io/priority-class: "
        "%s}\n  annotations: {kueue.x-k8s.io/pod-group-total-count: \"%d\"}\nspec:\n  restartPolicy: Never\n"
        "  containers: [{name: c, image: i, command: [run], resources: {limits: {google.com/tpu: %d}}}]\n",
        w->made++, group % 2 ? "la" : "lb", group, class, w->totals[group], rng_below(&w->rng, 2) ? 4 : 2);
    must_apply(&w->h, yaml);
}

static struct task *task_of(const struct workload *workload)
{
    return workload->jobset->jobs[0] ? workload->jobset->jobs[0]->indexes[0].task : NULL;
}

static void answer(struct walk *w, const struct workload *workload, const char *state)
{
    char name[300], body[200];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload->name));
    snprintf(body, sizeof(body),
             "{\"status\":{\"admissionChecks\":[{\"name\":\"budget\",\"state\":\"%s\"}]}}", state);
    post(&w->h, WRITE_STATUS, OBJECT_WORKLOAD, "default", name, str_from(body));
}

static void touch_one(struct walk *w)
{
    static const char *const states[] = {"Ready", "Ready", "Ready", "Ready", "Retry", "Pending"};
    struct workload *list[512];
    size_t count;
    if (!first_of(w, (int)rng_below(&w->rng, GROUPS), list, &count))
        return;
    struct workload *workload = list[rng_below(&w->rng, count)];
    struct task *task = task_of(workload);
    char name[300];
    snprintf(name, sizeof(name), STR_FORMAT, STR_ARG(workload->jobset->name));
    uint64_t what = rng_below(&w->rng, 10);
    if (what < 5)
        answer(w, workload, states[rng_below(&w->rng, 6)]);
    else if (what < 8 && task && task->state == TASK_RUNNING)
        harness_exit(&w->h, task, rng_below(&w->rng, 4) ? 0 : 1);
    else if (what == 9)
        post(&w->h, WRITE_DELETE, OBJECT_POD, "default", name, STR(""));
}

static void set_queue(struct walk *w, const char *name, int quota, bool checked, const char *stop)
{
    char yaml[1024];
    snprintf(
        yaml, sizeof(yaml),
        "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: %s}\nspec:\n"
        "  namespaceSelector: {}\n  cohortName: all\n  stopPolicy: %s\n%s"
        "  preemption: {withinClusterQueue: LowerPriority, reclaimWithinCohort: Any}\n  resourceGroups:\n"
        "  - coveredResources: [google.com/tpu]\n    flavors:\n    - name: v5e\n"
        "      resources: [{name: google.com/tpu, nominalQuota: %d}]\n",
        name, stop, checked ? "  admissionChecksStrategy: {admissionChecks: [{name: budget}]}\n" : "", quota);
    must_apply(&w->h, yaml);
}

static void one_step(struct walk *w)
{
    static const char *const stop[] = {"None", "None", "None", "Hold", "HoldAndDrain"};
    w->h.now_ns += (int64_t)rng_below(&w->rng, 3) * NS_PER_SECOND;
    uint64_t what = rng_below(&w->rng, 24);
    if (what < 9)
        make_pod(w, (int)rng_below(&w->rng, GROUPS));
    else if (what < 17)
        touch_one(w);
    else if (what < 21)
        harness_run_all(&w->h);
    else if (what < 22)
        set_queue(w, rng_below(&w->rng, 2) ? "qa" : "qb", (int)rng_below(&w->rng, 4) * 4,
                  rng_below(&w->rng, 2) != 0, stop[rng_below(&w->rng, 5)]);
    else
        harness_wait(&w->h, (int64_t)rng_below(&w->rng, 30) * NS_PER_SECOND);
    core_check_invariants(w->h.core);
}

/* The members of a group hold their quota together, and no Pod runs that a check has sent back. */
static void check_groups(struct walk *w)
{
    for (int g = 0; g < GROUPS; g++) {
        struct workload *list[512];
        size_t count, holding = 0, together = 0;
        first_of(w, g, list, &count);
        for (size_t i = 0; i < count; i++) {
            const struct workload *one = list[i];
            holding += one->state == WORKLOAD_HOLDING;
            together += one->state == WORKLOAD_HOLDING && one->leader == list[i]->leader && one->leader;
            if (one->state == WORKLOAD_ADMITTED)
                for (size_t c = 0; c < one->checks.len; c++)
                    assert_true(one->checks.items[c].state != CHECK_RETRY);
        }
        assert_int_equal(holding, together);
    }
}

/* In the end all that can be finished is. */
static void drain(struct walk *w)
{
    set_queue(w, "qa", 20, false, "None");
    set_queue(w, "qb", 20, false, "None");
    for (int round = 0; round < 60; round++) {
        harness_wait(&w->h, 100 * NS_PER_SECOND);
        harness_run_all(&w->h);
        for (int g = 0; g < GROUPS; g++) {
            struct workload *list[512];
            size_t count;
            first_of(w, g, list, &count);
            if (count < (size_t)w->totals[g] && count)
                make_pod(w, g);
            first_of(w, g, list, &count);
            for (size_t i = 0; i < count; i++) {
                struct task *task = task_of(list[i]);
                if (task && task->state == TASK_RUNNING)
                    harness_exit(&w->h, task, 0);
            }
        }
        core_check_invariants(w->h.core);
    }
    for (int g = 0; g < GROUPS; g++) {
        struct workload *list[512];
        size_t count, done = 0;
        if (!first_of(w, g, list, &count))
            continue;
        for (size_t i = 0; i < count; i++)
            done += list[i]->conditions[WORKLOAD_IS_FINISHED].present &&
                    strcmp(list[i]->conditions[WORKLOAD_IS_FINISHED].reason, "Succeeded") == 0;
        size_t failed = 0, waiting = 0;
        for (size_t i = 0; i < count; i++) {
            failed += list[i]->state == WORKLOAD_FINISHED;
            waiting += list[i]->state == WORKLOAD_PENDING;
        }
        failed -= done;
        /* The Pods that still wait are too many, or too few to replace those that failed. */
        if (done < (size_t)w->totals[g] && done + waiting >= (size_t)w->totals[g])
            fail_msg("g%d: %zu of %d have succeeded, %zu failed, %zu wait", g, done, w->totals[g], failed,
                     waiting);
    }
}

static void one_walk(uint64_t seed)
{
    struct walk w = {0};
    rng_seed(&w.rng, seed);
    harness_init(&w.h, MACHINES, 4, 0);
    set_queues(&w.h, MACHINES, 4,
               rng_below(&w.rng, 2) ? "{\"minimumRunTime\":\"0s\",\"fairSharing\":{\"enable\":true}}"
                                    : "{\"minimumRunTime\":\"0s\"}");
    must_apply(&w.h, FLAVOR("v5e") LOCAL_QUEUE("la", "qa")
                         LOCAL_QUEUE("lb", "qb") "apiVersion: kueue.x-k8s.io/v1beta2\nkind: "
                                                 "AdmissionCheck\nmetadata: {name: budget}\nspec: {"
                                                 "controllerName: example.com/budget}\n---\n"
                                                 "apiVersion: kueue.x-k8s.io/v1beta2\nkind: "
                                                 "WorkloadPriorityClass\nmetadata: {name: low}\nvalue: "
                                                 "-5\n---\napiVersion: kueue.x-k8s.io/v1beta2\nkind: "
                                                 "WorkloadPriorityClass\nmetadata: {name: high}\n"
                                                 "value: 5\n");
    set_check_active(&w.h, "budget", true);
    set_queue(&w, "qa", 12, true, "None");
    set_queue(&w, "qb", 8, rng_below(&w.rng, 2) != 0, "None");
    for (int step = 0; step < STEPS; step++) {
        one_step(&w);
        check_groups(&w);
        if (step % 40 == 39)
            harness_check_replay(&w.h);
    }
    drain(&w);
    harness_check_replay(&w.h);
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
