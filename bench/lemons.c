/* bench/lemons - are machines that fail again and again found? Target 12 of the reliability report: 2,000
 * machines of 8 GPUs, 24 of them lemons, 28 days of jobs of 64 machines that last a day; a good machine makes
 * its job fail 6.4e-4 times a day, a lemon 0.155 times (which gives Meta's 4 % and 14 % of failed jobs).
 *
 * Everything goes through the controller's core: JobSets, placements, machines that are lost and come back,
 * restarts. After the 28 days lemons are removed (spec.settings.lemons.remove) and the next days tell what
 * that was worth. One JSON object a line (bench/run gives the form); sums over SEEDS seeds.
 *
 *     bench_lemons [SEEDS]
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/rng.h"
#include "core/core.h"
#include "core/lemon/lemon.h"

enum { MACHINES = 2000, LEMONS = 24, WIDTH = 64, DAYS = 28, DAYS_AFTER = 14, SEEDS = 40, BODY_MAX = 2048 };
static const double GOOD_RATE = 6.4e-4, LEMON_RATE = 0.155; /* failures a machine and day */

struct world {
    struct core *core;
    struct effects effects;
    struct rng rng;
    int64_t now_ns;
    bool lemon[MACHINES];
    obj_id running[MACHINES]; /* one task fills a machine; 0: none */
    VEC(struct task_report) reports;
    VEC(machine_id) machines; /* of those reports */
    int jobs;                 /* JobSets of WIDTH machines today */
};

/* Over all seeds. */
struct score {
    int64_t jobs[2], failed[2]; /* before and after */
    int64_t found[2], right[2]; /* called lemons and rightly so, with the threshold of two and of three */
    int64_t lemons;
};

/* What agents would say about what they are told. */
static void watch(struct world *world)
{
    for (size_t i = 0; i < world->effects.list.len; i++) {
        const struct effect *effect = &world->effects.list.items[i];
        struct task_report report = {0};
        machine_id machine = MACHINE_NONE;
        if (effect->kind == EFFECT_TASK_START) {
            machine = effect->start->machine;
            report = (struct task_report){.kind = REPORT_STARTED, .task = effect->start->uid};
            world->running[machine] = effect->start->uid;
        } else if (effect->kind == EFFECT_TASK_STOP &&
                   world->running[effect->stop.machine] == effect->stop.stop.task) {
            machine = effect->stop.machine;
            report = (struct task_report){
                .kind = REPORT_EXITED, .task = effect->stop.stop.task, .signal = 15, .exit_code = -1};
            world->running[machine] = 0;
        } else if (effect->kind == EFFECT_REPLY) {
            CHECK(effect->reply.code < 300);
        }
        if (machine == MACHINE_NONE)
            continue;
        vec_push(&world->reports, report);
        vec_push(&world->machines, machine);
    }
}

static void step(struct world *world, struct event *event)
{
    event->seq = core_seq(world->core) + 1;
    event->stamp_ns = world->now_ns;
    core_step(world->core, event, &world->effects);
    watch(world);
}

static void report(struct world *world, machine_id machine, struct task_report *item)
{
    struct event event = {.kind = EVENT_REPORTS};
    event.reports.machine = core_cluster(world->core)->machines[machine].name;
    event.reports.reports = (struct reports){.number = 1, .items = item, .count = 1};
    step(world, &event);
}

/* Until nothing is due and nobody has anything left to say. */
static void settle(struct world *world)
{
    for (;;) {
        for (size_t i = 0; i < world->reports.len; i++) { /* grows meanwhile */
            struct task_report item = world->reports.items[i];
            report(world, world->machines.items[i], &item);
        }
        vec_clear(&world->reports);
        vec_clear(&world->machines);
        if (core_deadline(world->core) > world->now_ns)
            return;
        struct event tick = {.kind = EVENT_TICK};
        step(world, &tick);
    }
}

static void set_cluster(struct world *world, bool removes)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"b\"},\"spec\":{"
        "\"settings\":{\"chipResource\":\"nvidia.com/gpu\",\"lemons\":{\"remove\":%s}},\"machineNames\":"
        "\"m-{n}\",\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":8}]}]}}",
        removes ? "true" : "false", MACHINES);
    struct event event = {.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(text);
    step(world, &event);
}

static void hello(struct world *world, machine_id machine)
{
    struct event event = {.kind = EVENT_MACHINE_HELLO};
    event.machine_hello.hello = (struct hello){.version = WIRE_VERSION,
                                               .machine = core_cluster(world->core)->machines[machine].name,
                                               .incarnation = (uint64_t)world->now_ns,
                                               .chips = 8};
    step(world, &event);
}

static void submit(struct world *world, int day, int job, int tasks)
{
    char body[BODY_MAX];
    snprintf(
        body, sizeof body,
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":"
        "\"j%d-%d\",\"namespace\":\"default\"},\"spec\":{\"ttlSecondsAfterFinished\":0,\"failurePolicy\":{"
        "\"maxRestarts\":1000},\"replicatedJobs\":[{\"name\":\"w\",\"template\":{\"spec\":{\"parallelism\":"
        "%d,\"completions\":%d,\"backoffLimit\":0,\"template\":{\"spec\":{\"restartPolicy\":\"Never\","
        "\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":[\"run\"],\"resources\":{\"limits\":{"
        "\"nvidia.com/gpu\":8}}}]}}}}}]}}",
        day, job, tasks, tasks);
    struct event event = {.kind = EVENT_WRITE};
    event.write = (struct write_event){.verb = WRITE_CREATE,
                                       .object = OBJECT_JOBSET,
                                       .namespace_ = STR("default"),
                                       .body = str_from(body),
                                       .grace_s = -1};
    step(world, &event);
}

/* Every machine that takes work has some: jobs of WIDTH, and one of what is left. */
static void submit_all(struct world *world, int day)
{
    int ready = 0;
    for (size_t m = 0; m < MACHINES; m++)
        ready += machine_schedulable(&core_cluster(world->core)->machines[m]);
    world->jobs = ready / WIDTH;
    for (int job = 0; job <= world->jobs; job++)
        if (job < world->jobs || ready % WIDTH)
            submit(world, day, job, job < world->jobs ? WIDTH : ready % WIDTH);
    settle(world);
}

struct failure {
    double at; /* of the day */
    machine_id machine;
};

static int by_time(const void *a, const void *b)
{
    double x = ((const struct failure *)a)->at, y = ((const struct failure *)b)->at;
    return x < y ? -1 : x > y;
}

/* JobSets of full width that have restarted today. */
static int64_t count_failed(const struct world *world)
{
    const struct job_store *jobs = core_jobs(world->core);
    int64_t failed = 0;
    for (size_t i = 0; i < jobs->jobsets.len; i++)
        failed += jobs->jobsets.items[i]->restarts > 0 &&
                  jobs->jobsets.items[i]->spec.rjobs[0].job.parallelism == WIDTH;
    return failed;
}

/* A gang that waited for a machine that was taken out begins when others end, and ends too. */
static void end_all(struct world *world)
{
    for (bool any = true; any;) {
        any = false;
        for (machine_id m = 0; m < MACHINES; m++) {
            struct task_report ended = {.kind = REPORT_EXITED, .task = world->running[m]};
            if (!world->running[m])
                continue;
            any = true;
            world->running[m] = 0;
            report(world, m, &ended);
        }
        settle(world);
    }
    world->now_ns += NS_PER_SECOND;
    settle(world);
    CHECK(core_jobs(world->core)->jobsets.len == 0);
}

static void one_day(struct world *world, int day, struct score *score, int phase)
{
    int64_t start_ns = (20000 + (int64_t)day) * LEMON_DAY_NS + NS_PER_SECOND;
    VEC(struct failure) failures = {0};
    world->now_ns = start_ns;
    settle(world);
    submit_all(world, day);
    for (machine_id m = 0; m < MACHINES; m++) {
        double rate = world->lemon[m] ? LEMON_RATE : GOOD_RATE;
        for (double at = -log(1 - rng_unit(&world->rng)) / rate; at < 0.99;
             at += -log(1 - rng_unit(&world->rng)) / rate) {
            struct failure failure = {at, m};
            vec_push(&failures, failure);
        }
    }
    if (failures.len > 1)
        qsort(failures.items, failures.len, sizeof *failures.items, by_time);
    for (size_t i = 0; i < failures.len; i++) {
        machine_id machine = failures.items[i].machine;
        int64_t at_ns = start_ns + (int64_t)(failures.items[i].at * (double)LEMON_DAY_NS);
        world->now_ns = at_ns > world->now_ns ? at_ns : world->now_ns;
        settle(world);
        if (!world->running[machine])
            continue; /* it has no job that could fail */
        world->running[machine] = 0;
        struct event gone = {.kind = EVENT_MACHINE_GONE};
        gone.machine.machine = core_cluster(world->core)->machines[machine].name;
        gone.machine.evidence = STR("bench");
        step(world, &gone);
        world->now_ns += NS_PER_SECOND;
        hello(world, machine);
        settle(world);
    }
    vec_done(&failures);
    score->jobs[phase] += world->jobs;
    score->failed[phase] += count_failed(world);
    world->now_ns = start_ns + LEMON_DAY_NS - 10 * NS_PER_SECOND;
    end_all(world);
}

static void judge(const struct world *world, struct score *score)
{
    for (size_t m = 0; m < MACHINES; m++) {
        const struct lemon *lemon =
            lemon_find(core_lemons(world->core), core_cluster(world->core)->machines[m].name);
        bool three = lemon && lemon_value(lemon, LEMON_SIGNAL_MULTI_NODE_FAILURES) >= 3;
        score->lemons += world->lemon[m];
        score->found[0] += lemon && lemon->is_lemon;
        score->right[0] += lemon && lemon->is_lemon && world->lemon[m];
        score->found[1] += three;
        score->right[1] += three && world->lemon[m];
    }
}

static void one_seed(uint64_t seed, struct score *score)
{
    struct world world = {.core = core_new(), .now_ns = 20000 * LEMON_DAY_NS};
    rng_seed(&world.rng, seed);
    for (int left = LEMONS; left > 0;) {
        size_t m = rng_below(&world.rng, MACHINES);
        left -= !world.lemon[m];
        world.lemon[m] = true;
    }
    set_cluster(&world, false);
    for (machine_id m = 0; m < MACHINES; m++)
        hello(&world, m);
    for (int day = 0; day < DAYS; day++)
        one_day(&world, day, score, 0);
    judge(&world, score);
    set_cluster(&world, true);
    for (int day = DAYS; day < DAYS + DAYS_AFTER; day++)
        one_day(&world, day, score, 1);
    core_free(world.core);
    vec_done(&world.effects.list);
    vec_done(&world.reports);
    vec_done(&world.machines);
}

static void say(const char *name, double value, const char *unit)
{
    printf("{\"bench\":\"lemons\",\"case\":\"%s\",\"value\":%.4f,\"unit\":\"%s\"}\n", name, value, unit);
    fflush(stdout);
}

static void say_rate(const struct score *score, int phase, const char *when, double reference)
{
    char name[96];
    double rate = 100 * (double)score->failed[phase] / (double)score->jobs[phase];
    snprintf(name, sizeof name, "jobs of 512 GPUs that fail, %s", when);
    say(name, rate, "%");
    snprintf(name, sizeof name, "%s: away from %.0f %%", when, reference);
    say(name, fabs(rate - reference), "points");
}

int main(int argc, char **argv)
{
    struct score score = {0};
    int64_t seeds = SEEDS;
    if (argc > 2 || (argc == 2 && !str_to_i64(str_from(argv[1]), 1, 100000, &seeds)))
        return 2;
    for (uint64_t seed = 1; seed <= (uint64_t)seeds; seed++)
        one_seed(seed, &score);
    double lemons = (double)score.lemons;
    say("precision, two failures", (double)score.right[0] / (double)score.found[0], "of 1");
    say("recall, two failures", (double)score.right[0] / lemons, "of 1");
    say("precision, three failures", (double)score.right[1] / (double)score.found[1], "of 1");
    say("recall, three failures", (double)score.right[1] / lemons, "of 1");
    say_rate(&score, 0, "lemons at work", 14);
    say_rate(&score, 1, "lemons removed", 4);
    return 0;
}
