/* bench/crashloop - what does a large job cost its neighbours that is lost again and again? Target 11 of the
 * reliability report: a job of 1,024 GPUs (128 machines of 8) loses a machine 35 times, in a cluster that is
 * full of small jobs which may be preempted. At Meta one such job cost 548 preemptions, 15.7 each time.
 *
 * Everything goes through the controller's core in virtual time: queues, placements, preemptions, restarts.
 * The job loses a machine whenever it has run for half an hour, and the machine comes back an hour later.
 * Three ways to live with that:
 *   requeue   as a queue does that knows no better: what is not whole after a minute is evicted and queued
 *             again, and takes what it needs from whoever took its place
 *   guarded   the same, but a job is left alone for its first two hours (minimumRunTime)
 *   ladder    the defaults: the same two hours; a job that loses a part keeps its quota and its places
 *             (docs/recovery.md)
 *
 * One JSON object a line (bench/run gives the form); means over SEEDS seeds. With a folder it draws how the
 * preemptions grow from loss to loss, with what the paper says beside: DIR/crashloop.svg and .csv.
 *
 *     bench_crashloop [SEEDS [DIR]]
 */
#include <math.h>
#include <stdio.h>

#include <stdlib.h>

#include "base/map.h"
#include "base/rng.h"
#include "core/admit/admit.h"
#include "sim/figure/figure.h"

#include "world.h"

enum { MACHINES = 160, WIDTH = 128, LOSSES = 35, BACKLOG = 8, SEEDS = 5, BODY_MAX = 2048, DAYS_MAX = 21 };
enum { QUOTED = 548 }; /* preemptions after 35 requeues */
#define MINUTE_NS (INT64_C(60) * NS_PER_SECOND)
#define HOUR_NS   (60 * MINUTE_NS)

struct way {
    const char *name, *queues, *annotations;
};
#define REQUEUES                                                                                             \
    "\"waitForPodsReady\":{\"enable\":true,\"timeout\":\"100h\",\"recoveryTimeout\":\"1m\","                 \
    "\"requeuingStrategy\":{\"backoffBaseSeconds\":60,\"backoffMaxSeconds\":60}}"
static const struct way ways[] = {
    {"requeue", "{\"minimumRunTime\":\"0s\",\"maximumLifetime\":\"0s\"," REQUEUES "}",
     "phalanx.dev/recovery: \"off\""},
    {"guarded", "{\"minimumRunTime\":\"2h\",\"maximumLifetime\":\"0s\"," REQUEUES "}",
     "phalanx.dev/recovery: \"off\""},
    {"ladder", "{\"maximumLifetime\":\"0s\"}", "phalanx.dev/recovery: \"replace-machine,requeue\""},
};
enum { WAYS = sizeof ways / sizeof *ways };

struct neighbours {
    struct world world;
    struct rng rng;
    struct u64_map running;    /* tasks of each JobSet, by its uid */
    int64_t back_ns[MACHINES]; /* lost until then; 0: it is there */
    struct small {
        obj_id jobset;
        int64_t left_ns; /* of running time */
    } * small;           /* [small_count] those that have not ended */
    size_t small_count, small_made;
    obj_id large;
    int64_t lost;                  /* machines under the large job */
    int64_t victims, victims_seen; /* seen: since it was queued last */
    int64_t waited_ns;             /* that the large job did not run */
};

/* Sums over all seeds. */
struct score {
    int64_t lost, victims, waited_ns;
    int64_t victims_after[LOSSES + 1]; /* by the time that the next machine was lost */
};

/* --- the cluster and its queue ---------------------------------------------------------------- */

/* The large job's victims since it was queued last; it begins anew with each time that it is queued. */
static void count_victims(struct world *world)
{
    struct neighbours *all = container_of(world, struct neighbours, world);
    const struct workload *workload = workload_of(core_admit(world->core), all->large);
    int64_t seen = workload ? workload->preempted : 0;
    all->victims += seen > all->victims_seen ? seen - all->victims_seen : 0;
    all->victims_seen = seen;
}

static void begin(struct neighbours *all, const struct way *way, uint64_t seed)
{
    char text[1024];
    struct world *world = &all->world;
    *all = (struct neighbours){
        .world = {.core = core_new(), .now_ns = 1000 * HOUR_NS, .stepped = count_victims}};
    rng_seed(&all->rng, seed);
    snprintf(text, sizeof text,
             "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"b\"},"
             "\"spec\":{\"settings\":{\"chipResource\":\"nvidia.com/gpu\"},\"queues\":%s,\"machineNames\":"
             "\"m-{n}\",\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":8}]}]}}",
             way->queues, MACHINES);
    world_cluster(world, text);
    for (machine_id m = 0; m < MACHINES; m++)
        world_hello(world, m);
    world_create(world, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ResourceFlavor\nmetadata: {name: gpu}\n");
    world_create(world, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                        "metadata: {name: low}\nvalue: 1\n");
    world_create(world, "apiVersion: kueue.x-k8s.io/v1beta2\nkind: WorkloadPriorityClass\n"
                        "metadata: {name: high}\nvalue: 9\n");
    snprintf(text, sizeof text,
             "apiVersion: kueue.x-k8s.io/v1beta2\nkind: ClusterQueue\nmetadata: {name: cq}\nspec:\n"
             "  namespaceSelector: {}\n  queueingStrategy: StrictFIFO\n  preemption: {withinClusterQueue: "
             "LowerPriority}\n"
             "  resourceGroups: [{coveredResources: [nvidia.com/gpu], flavors: [{name: gpu, resources: "
             "[{name: nvidia.com/gpu, nominalQuota: %d}]}]}]\n",
             8 * MACHINES);
    world_create(world, text);
    world_create(world,
                 "apiVersion: kueue.x-k8s.io/v1beta2\nkind: LocalQueue\nmetadata: {name: lq, namespace: "
                 "default}\nspec: {clusterQueue: cq}\n");
}

static obj_id submit(struct world *world, const char *name, int tasks, const char *priority,
                     const char *annotations)
{
    char yaml[BODY_MAX];
    snprintf(yaml, sizeof yaml,
             "apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata:\n  name: %s\n  labels: "
             "{kueue.x-k8s.io/queue-name: lq, kueue.x-k8s.io/priority-class: %s}\n  annotations: {%s}\n"
             "spec:\n  ttlSecondsAfterFinished: 0\n  failurePolicy: {maxRestarts: 1000}\n"
             "  replicatedJobs:\n  - name: w\n    template: {spec: {parallelism: %d, completions: %d, "
             "backoffLimit: 0, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i, "
             "command: [run], resources: {limits: {nvidia.com/gpu: 8}}}]}}}}\n",
             name, priority, annotations, tasks, tasks);
    world_create(world, yaml);
    return vec_last(&core_jobs(world->core)->jobsets)->uid;
}

/* --- time ------------------------------------------------------------------------------------- */

/* Counts the running tasks of each JobSet anew; what ends or starts a job makes the counts old. */
static void count_running(struct neighbours *all)
{
    const struct world *world = &all->world;
    u64_map_done(&all->running);
    for (machine_id m = 0; m < MACHINES; m++) {
        const struct task *task =
            world->running[m] ? jobs_find_task(core_jobs(world->core), world->running[m]) : NULL;
        if (!task || task->state != TASK_RUNNING)
            continue;
        obj_id jobset = task->job->jobset->uid;
        uintptr_t count = (uintptr_t)u64_map_get(&all->running, jobset);
        CHECK(count < MACHINES);
        u64_map_put(&all->running, jobset, (void *)(count + 1));
    }
}

/* How many of its tasks ran when they were counted last. */
static uintptr_t running_of(const struct neighbours *all, obj_id jobset)
{
    return (uintptr_t)u64_map_get(&all->running, jobset);
}

static void end_small(struct world *world, obj_id jobset)
{
    for (machine_id m = 0; m < MACHINES; m++) {
        const struct task *task =
            world->running[m] ? jobs_find_task(core_jobs(world->core), world->running[m]) : NULL;
        if (!task || task->job->jobset->uid != jobset)
            continue;
        world_end(world, m);
    }
    world_settle(world);
}

/* Runs the small jobs. They make progress and end, others arrive so that the queue is never empty, and at
 * each requeue about as many take the large job's places as at Meta. Two thirds have two machines: 13 GPUs,
 * as the report's victims had. They run for two hours in the mean. */
static void small_jobs(struct neighbours *all)
{
    struct world *world = &all->world;
    size_t kept = 0, idle = 0;
    count_running(all);
    for (size_t i = 0; i < all->small_count; i++) {
        struct small *small = &all->small[i];
        bool runs = running_of(all, small->jobset) > 0;
        small->left_ns -= runs ? MINUTE_NS : 0;
        idle += !runs;
        if (small->left_ns > 0) {
            all->small[kept++] = *small;
            continue;
        }
        end_small(world, small->jobset);
        count_running(all);
    }
    all->small_count = kept;
    for (; idle < BACKLOG; idle++) {
        char name[32];
        snprintf(name, sizeof name, "s%zu", all->small_made++);
        double hours = -2 * log(1 - rng_unit(&all->rng));
        struct small small = {.left_ns = (int64_t)(hours * (double)HOUR_NS) + MINUTE_NS};
        small.jobset = submit(world, name, rng_below(&all->rng, 3) ? 2 : 1, "low", "");
        all->small = mem_realloc(all->small, (all->small_count + 1) * sizeof *all->small);
        all->small[all->small_count++] = small;
    }
}

static void lose_one(struct neighbours *all)
{
    struct world *world = &all->world;
    for (;;) {
        machine_id machine = (machine_id)rng_below(&all->rng, MACHINES);
        const struct task *task =
            world->running[machine] ? jobs_find_task(core_jobs(world->core), world->running[machine]) : NULL;
        if (!task || task->job->jobset->uid != all->large)
            continue;
        all->back_ns[machine] = world->now_ns + HOUR_NS;
        world_lose(world, machine);
        world_settle(world);
        all->lost++;
        return;
    }
}

static void come_back(struct neighbours *all)
{
    struct world *world = &all->world;
    for (machine_id m = 0; m < MACHINES; m++) {
        if (!all->back_ns[m] || all->back_ns[m] > world->now_ns)
            continue;
        all->back_ns[m] = 0;
        world_hello(world, m);
        world_settle(world);
    }
}

/* Minute by minute, until the large job has lost so many machines and runs again. */
static void one_seed(const struct way *way, uint64_t seed, struct score *score)
{
    struct neighbours all;
    struct world *world = &all.world;
    int64_t ran_ns = 0, victims_after[LOSSES + 1] = {0};
    bool runs = false;
    begin(&all, way, seed);
    all.large = submit(world, "large", WIDTH, "high", way->annotations);
    int64_t end_ns = world->now_ns + DAYS_MAX * 24 * HOUR_NS;
    while ((all.lost < LOSSES || !runs) && world->now_ns < end_ns &&
           jobs_find_uid(core_jobs(world->core), all.large)) {
        world->now_ns += MINUTE_NS;
        world_settle(world);
        come_back(&all);
        small_jobs(&all);
        count_running(&all);
        runs = running_of(&all, all.large) == WIDTH;
        ran_ns = runs ? ran_ns + MINUTE_NS : 0;
        all.waited_ns += runs ? 0 : MINUTE_NS;
        victims_after[all.lost] = all.victims;
        if (ran_ns >= HOUR_NS / 2 && all.lost < LOSSES) {
            lose_one(&all);
            ran_ns = 0;
            runs = false;
        }
    }
    score->lost += all.lost;
    score->victims += all.victims;
    score->waited_ns += all.waited_ns;
    for (int lost = 0; lost <= LOSSES; lost++)
        score->victims_after[lost] += victims_after[lost];
    world_done(world);
    u64_map_done(&all.running);
    mem_free(all.small);
}

/* --- what is said --------------------------------------------------------------------------------------- */

static void say(const char *way, const char *name, double value, const char *unit)
{
    printf("{\"bench\":\"crashloop\",\"case\":\"%s: %s\",\"value\":%.4f,\"unit\":\"%s\"}\n", way, name, value,
           unit);
    fflush(stdout);
}

static void say_all(const struct score scores[WAYS], double count)
{
    for (size_t way = 0; way < WAYS; way++) {
        const struct score *score = &scores[way];
        say(ways[way].name, "machines lost under the job", (double)score->lost / count, "");
        say(ways[way].name, "small jobs preempted", (double)score->victims / count, "");
        say(ways[way].name, "hours in which it did not run",
            (double)score->waited_ns / (double)HOUR_NS / count, "h");
        if (way > 0)
            say(ways[way].name, "fewer preemptions than requeue",
                100 * (1 - (double)score->victims / (double)scores[0].victims), "%");
    }
}

static void write_text(const char *folder, const char *name, const struct buf *text)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "wb");
    if (!file || fwrite(text->data, 1, text->len, file) != text->len || fclose(file) != 0) {
        fprintf(stderr, "bench: %s cannot be written\n", path);
        exit(1);
    }
}

/* How the preemptions grow from loss to loss. */
static void draw(const struct score scores[WAYS], double count, const char *folder)
{
    struct figure figure = {.name = "crashloop",
                            .title = "A job of 1,024 GPUs is lost 35 times: preempted neighbours",
                            .x_label = "machines lost under the job",
                            .y_label = "jobs preempted so far"};
    struct buf csv BUF_CLEANUP = {0}, svg BUF_CLEANUP = {0};
    figure_add_column(&figure, "lost", FIGURE_HIDDEN, 0);
    for (size_t way = 0; way < WAYS; way++)
        figure_add_column(&figure, ways[way].name, FIGURE_LINE, 1);
    figure_add_column(&figure, "quoted", FIGURE_QUOTED, 0);
    for (int lost = 0; lost <= LOSSES; lost++) {
        figure_add(&figure, lost);
        for (size_t way = 0; way < WAYS; way++)
            figure_add(&figure, (double)scores[way].victims_after[lost] / count);
        figure_add(&figure, lost == LOSSES ? QUOTED : NAN);
    }
    figure_add_note(&figure,
                    "requeue: evicted and queued again; guarded: left alone for its first two hours "
                    "(minimumRunTime); ladder: the defaults. Means of %.0f seeds.",
                    count);
    figure_csv(&figure, &csv);
    figure_svg(&figure, &svg);
    write_text(folder, "crashloop.csv", &csv);
    write_text(folder, "crashloop.svg", &svg);
    figure_done(&figure);
}

int main(int argc, char **argv)
{
    struct score scores[WAYS] = {0};
    int64_t seeds = SEEDS;
    if (argc > 3 || (argc > 1 && !str_to_i64(str_from(argv[1]), 1, 100000, &seeds)))
        return 2;
    for (size_t way = 0; way < WAYS; way++)
        for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++)
            one_seed(&ways[way], seed, &scores[way]);
    say_all(scores, (double)seeds);
    if (argc > 2)
        draw(scores, (double)seeds, argv[2]);
    return 0;
}
