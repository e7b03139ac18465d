/* bench/admit - admission at scale: 2,000 machines full of 700 gangs, 10,000 more that wait in ten queues.
 *
 * One JSON object a line (bench/run gives the form); the median of RUNS. "cycle" is everything that happens
 * after room came (every waiting gang may try again) until nothing is left to try; "preempt" is the arrival
 * of a gang that needs all 2,000 machines: 700 victims are found, checked on quota and machines, told and
 * held. The limit is what any cycle must do at least: look once at every waiting gang and every machine.
 * Kueue's users report 40 s for a cycle of this size (kubernetes-sigs/kueue, issue 13148).
 */
#include <stdio.h>

#include "core/admit/admit.h"

#include "timing.h"
#include "world.h"

enum { RUNS = 5, MACHINES = 2000, RUNNING = 700, WAITING = 10000, QUEUES = 10, SHAPES = 50, BODY_MAX = 4096 };
static const double KUEUE_MS = 40000;

struct bench {
    struct core *core;
    struct effects effects;
    int64_t now_ns;
};

/* Returns how long the step took. */
static int64_t step(struct bench *bench, struct event *event)
{
    event->seq = core_seq(bench->core) + 1;
    event->stamp_ns = bench->now_ns;
    int64_t start_ns = now_ns();
    core_step(bench->core, event, &bench->effects);
    return now_ns() - start_ns;
}

/* Ticks as a host would: until none is due. */
static int64_t settle(struct bench *bench)
{
    int64_t sum_ns = 0;
    while (core_deadline(bench->core) <= bench->now_ns) {
        struct event tick = {.kind = EVENT_TICK};
        sum_ns += step(bench, &tick);
    }
    return sum_ns;
}

static int64_t create(struct bench *bench, const char *yaml)
{
    struct buf json BUF_CLEANUP = {0};
    struct event event = world_create_event(yaml, &json);
    int64_t took_ns = step(bench, &event);
    CHECK(bench->effects.list.len > 0);
    for (size_t i = 0; i < bench->effects.list.len; i++)
        if (bench->effects.list.items[i].kind == EFFECT_REPLY)
            CHECK(bench->effects.list.items[i].reply.code == 201);
    return took_ns + settle(bench);
}

static int64_t submit(struct bench *bench, const char *name, int queue, int tasks, const char *priority)
{
    char yaml[BODY_MAX];
    snprintf(yaml, sizeof yaml,
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: %s\n  labels: "
             "{kueue.x-k8s.io/queue-name: q%d, kueue.x-k8s.io/priority-class: %s}\nspec:\n"
             "  replicatedJobs:\n  - name: w\n    template: {spec: {parallelism: %d, completions: %d, "
             "backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, "
             "command: [run], resources: {limits: {google.com/tpu: 4}}}]}}}}\n",
             name, queue, priority, tasks, tasks);
    return create(bench, yaml);
}

static void make_queues(struct bench *bench, int quota)
{
    char yaml[BODY_MAX];
    create(bench, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: v5e}\n");
    create(bench, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: low}\n"
                  "value: 1\n");
    create(bench, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\nmetadata: {name: high}\n"
                  "value: 9\n");
    for (int q = 0; q < QUEUES; q++) {
        snprintf(
            yaml, sizeof yaml,
            "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq%d}\nspec:\n"
            "  namespaceSelector: {}\n  cohortName: all\n  preemption: {withinClusterQueue: LowerPriority, "
            "reclaimWithinCohort: LowerPriority, borrowWithinCohort: {policy: LowerPriority}}\n"
            "  resourceGroups: [{coveredResources: [google.com/tpu], flavors: [{name: v5e, resources: "
            "[{name: google.com/tpu, nominalQuota: %d}]}]}]\n",
            q, q == 0 ? quota : 0);
        create(bench, yaml);
        snprintf(yaml, sizeof yaml,
                 "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: q%d, namespace: "
                 "default}\nspec: {clusterQueue: cq%d}\n",
                 q, q);
        create(bench, yaml);
    }
}

static void make_machines(struct bench *bench, bool fair)
{
    static const char plain[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"b\"},\"spec\":{"
        "\"queues\":{\"minimumRunTime\":\"0s\"},\"machineNames\":\"m-{n}\",\"addresses\":\"10.0.0.1\","
        "\"pods\":[{\"racks\":[{\"count\":125,\"machines\":16,\"chips\":4}]}]}}";
    static const char sharing[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"b\"},\"spec\":{"
        "\"queues\":{\"minimumRunTime\":\"0s\",\"fairSharing\":{\"enable\":true}},"
        "\"machineNames\":\"m-{n}\",\"addresses\":\"10.0.0.1\","
        "\"pods\":[{\"racks\":[{\"count\":125,\"machines\":16,\"chips\":4}]}]}}";
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(fair ? sharing : plain);
    step(bench, &event);
    CHECK(core_cluster(bench->core)->machine_count == MACHINES);
    for (size_t m = 0; m < MACHINES; m++) {
        const struct machine *machine = &core_cluster(bench->core)->machines[m];
        struct event hello = {.kind = EVENT_MACHINE_HELLO};
        hello.machine_hello.hello =
            (struct hello){.version = WIRE_VERSION, .machine = machine->name, .incarnation = 1, .chips = 4};
        step(bench, &hello);
    }
}

static struct bench make_bench(int quota, bool fair, int64_t *ret_submit_ns)
{
    struct bench bench = {.core = core_new(), .now_ns = INT64_C(1700000000) * NS_PER_SECOND};
    char name[32];
    struct event boot = {.kind = EVENT_BOOT};
    boot.boot.epoch = 1;
    boot.boot.version = STR("bench");
    step(&bench, &boot);
    make_machines(&bench, fair);
    make_queues(&bench, quota);
    for (int i = 0; i < RUNNING; i++) {
        snprintf(name, sizeof name, "run-%d", i);
        submit(&bench, name, 1 + i % (QUEUES - 1), i < RUNNING - 100 ? 3 : 2, "low");
        bench.now_ns += NS_PER_MS;
    }
    *ret_submit_ns = 0;
    for (int i = 0; i < WAITING; i++) {
        snprintf(name, sizeof name, "wait-%d", i);
        *ret_submit_ns += submit(&bench, name, i % QUEUES, 4 + i / QUEUES % SHAPES, "low");
    }
    *ret_submit_ns /= WAITING;
    return bench;
}

/* A machine is cordoned and comes back: room for everybody, as far as anybody knows. */
static int64_t time_cycle(struct bench *bench)
{
    static const char *const bodies[] = {"{\"spec\":{\"unschedulable\":true}}", "{\"spec\":{}}"};
    int64_t took_ns = 0;
    for (int i = 0; i < 2; i++) {
        struct event event = {.kind = EVENT_WRITE};
        event.write = (struct write_event){.verb = WRITE_REPLACE,
                                           .object = OBJECT_NODE,
                                           .name = STR("m-2000"),
                                           .body = str_from(bodies[i]),
                                           .grace_s = -1};
        took_ns = step(bench, &event) + settle(bench);
    }
    return took_ns;
}

static void count_waiting(void *context, const struct workload *workload)
{
    *(size_t *)context += workload->state == WORKLOAD_PENDING;
}

static int64_t time_pass(const struct bench *bench)
{
    int64_t start_ns = now_ns();
    static volatile uint64_t sink;
    uint64_t free = 0;
    size_t waiting = 0;
    const struct cluster *cluster = core_cluster(bench->core);
    for (size_t i = 0; i < cluster->machine_count; i++)
        free += machine_schedulable(&cluster->machines[i])
                    ? (uint64_t)__builtin_popcountll(cluster->machines[i].free_mask)
                    : 0;
    workload_visit(core_admit(bench->core), count_waiting, &waiting);
    sink = free + waiting;
    (void)sink;
    return now_ns() - start_ns;
}

static void report(const char *name, int64_t value_ns, int64_t limit_ns)
{
    printf("{\"bench\":\"admit\",\"case\":\"%s\",\"value\":%.3f,\"unit\":\"ms\",\"limit\":%.3f,"
           "\"ratio_limit\":%.1f,\"peer\":\"Kueue (issue 13148)\",\"peer_value\":%.0f,"
           "\"ratio_peer\":%.0f}\n",
           name, (double)value_ns / 1e6, (double)limit_ns / 1e6,
           (double)value_ns / (double)(limit_ns ? limit_ns : 1), KUEUE_MS,
           KUEUE_MS * 1e6 / (double)(value_ns ? value_ns : 1));
    fflush(stdout);
}

/* The cycle, in a bench whose quota is what its machines have, or more. */
static void bench_cycle(struct bench *bench, const char *lacks, int64_t submit_ns)
{
    int64_t cycles[RUNS], passes[RUNS];
    char name[96];
    for (int run = 0; run < RUNS; run++) {
        passes[run] = time_pass(bench);
        cycles[run] = time_cycle(bench);
    }
    int64_t limit_ns = median_ns(passes, RUNS);
    snprintf(name, sizeof name, "10000 waiting gangs, %s lack: one more", lacks);
    report(name, submit_ns, limit_ns);
    snprintf(name, sizeof name, "10000 waiting gangs, %s lack: cycle", lacks);
    report(name, median_ns(cycles, RUNS), limit_ns);
}

static void bench_preempt(struct bench *bench, const char *name)
{
    int64_t limit_ns = time_pass(bench), took_ns = submit(bench, "all", 0, MACHINES, "high");
    struct jobset *all = jobs_find(core_jobs(bench->core), STR("default"), STR("all"));
    const struct workload *workload = workload_of(core_admit(bench->core), all->uid);
    CHECK(workload->state == WORKLOAD_HOLDING && workload->waits_for == RUNNING);
    report(name, took_ns, limit_ns);
}

int main(void)
{
    static const char *const lacks[] = {"quota", "machines"};
    static const char *const preempts[] = {"10000 waiting gangs, quota lacks: preemption of 700",
                                           "10000 waiting gangs, machines lack: preemption of 700",
                                           "10000 waiting gangs, fair sharing: preemption of 700"};
    for (int i = 0; i < 3; i++) {
        int64_t submit_ns;
        struct bench bench = make_bench(MACHINES * 4 * (i % 2 + 1), i == 2, &submit_ns);
        if (i < 2)
            bench_cycle(&bench, lacks[i], submit_ns);
        bench_preempt(&bench, preempts[i]);
        core_free(bench.core);
        vec_done(&bench.effects.list);
    }
    return 0;
}
