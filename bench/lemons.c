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
#include "core/lemon/lemon.h"

#include "world.h"

enum { MACHINES = 2000, LEMONS = 24, WIDTH = 64, DAYS = 28, DAYS_AFTER = 14, SEEDS = 40, BODY_MAX = 2048 };
static const double GOOD_RATE = 6.4e-4, LEMON_RATE = 0.155; /* failures a machine and day */

struct farm {
    struct world world;
    struct rng rng;
    bool lemon[MACHINES];
    int jobs; /* JobSets of WIDTH machines today */
};

enum judge { DEFAULTS, TWO, THREE, JUDGES };
static const char *const judge_names[JUDGES] = {"default thresholds", "two failures", "three failures"};

/* Over all seeds. */
struct score {
    int64_t jobs[2], failed[2]; /* before and after */
    /* Called lemons, and rightly so: by the default thresholds, and by two and three failed gangs alone. */
    int64_t found[JUDGES], right[JUDGES];
    int64_t lemons;
};

static void set_cluster(struct world *world, bool removes)
{
    char text[512];
    snprintf(
        text, sizeof text,
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"b\"},\"spec\":{"
        "\"settings\":{\"chipResource\":\"nvidia.com/gpu\",\"lemons\":{\"remove\":%s}},\"machineNames\":"
        "\"m-{n}\",\"addresses\":\"10.0.0.1\",\"pods\":[{\"racks\":[{\"machines\":%d,\"chips\":8}]}]}}",
        removes ? "true" : "false", MACHINES);
    world_cluster(world, text);
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
    world_step(world, &event);
}

/* Every machine that takes work has some: jobs of WIDTH, and one of what is left. */
static void submit_all(struct farm *farm, int day)
{
    struct world *world = &farm->world;
    int ready = 0;
    for (size_t m = 0; m < MACHINES; m++)
        ready += machine_schedulable(&core_cluster(world->core)->machines[m]);
    farm->jobs = ready / WIDTH;
    for (int job = 0; job <= farm->jobs; job++)
        if (job < farm->jobs || ready % WIDTH)
            submit(world, day, job, job < farm->jobs ? WIDTH : ready % WIDTH);
    world_settle(world);
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
            if (!world->running[m])
                continue;
            any = true;
            world_end(world, m);
        }
        world_settle(world);
    }
    world->now_ns += NS_PER_SECOND;
    world_settle(world);
    CHECK(core_jobs(world->core)->jobsets.len == 0);
}

static void one_day(struct farm *farm, int day, struct score *score, int phase)
{
    struct world *world = &farm->world;
    int64_t start_ns = (20000 + (int64_t)day) * LEMON_DAY_NS + NS_PER_SECOND;
    VEC(struct failure) failures = {0};
    world->now_ns = start_ns;
    world_settle(world);
    submit_all(farm, day);
    for (machine_id m = 0; m < MACHINES; m++) {
        double rate = farm->lemon[m] ? LEMON_RATE : GOOD_RATE;
        for (double at = -log(1 - rng_unit(&farm->rng)) / rate; at < 0.99;
             at += -log(1 - rng_unit(&farm->rng)) / rate) {
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
        world_settle(world);
        if (!world->running[machine])
            continue; /* it has no job that could fail */
        world_lose(world, machine);
        world->now_ns += NS_PER_SECOND;
        world_hello(world, machine);
        world_settle(world);
    }
    vec_done(&failures);
    score->jobs[phase] += farm->jobs;
    score->failed[phase] += count_failed(world);
    world->now_ns = start_ns + LEMON_DAY_NS - 10 * NS_PER_SECOND;
    end_all(world);
}

static void judge(const struct farm *farm, struct score *score)
{
    const struct core *core = farm->world.core;
    for (size_t m = 0; m < MACHINES; m++) {
        const struct lemon *lemon = lemon_find(core_lemons(core), core_cluster(core)->machines[m].name);
        int64_t failures = lemon ? lemon_value(lemon, LEMON_SIGNAL_MULTI_NODE_FAILURES) : 0;
        bool called[JUDGES] = {lemon && lemon->is_lemon, failures >= 2, failures >= 3};
        score->lemons += farm->lemon[m];
        for (int judge = 0; judge < JUDGES; judge++) {
            score->found[judge] += called[judge];
            score->right[judge] += called[judge] && farm->lemon[m];
        }
    }
}

static void one_seed(uint64_t seed, struct score *score)
{
    struct farm farm = {.world = {.core = core_new(), .now_ns = 20000 * LEMON_DAY_NS}};
    rng_seed(&farm.rng, seed);
    for (int left = LEMONS; left > 0;) {
        size_t m = rng_below(&farm.rng, MACHINES);
        left -= !farm.lemon[m];
        farm.lemon[m] = true;
    }
    set_cluster(&farm.world, false);
    for (machine_id m = 0; m < MACHINES; m++)
        world_hello(&farm.world, m);
    for (int day = 0; day < DAYS; day++)
        one_day(&farm, day, score, 0);
    judge(&farm, score);
    set_cluster(&farm.world, true);
    for (int day = DAYS; day < DAYS + DAYS_AFTER; day++)
        one_day(&farm, day, score, 1);
    world_done(&farm.world);
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
    for (int judge = 0; judge < JUDGES; judge++) {
        char name[64];
        double right = (double)score.right[judge];
        snprintf(name, sizeof name, "precision, %s", judge_names[judge]);
        say(name, right / (double)(score.found[judge] ? score.found[judge] : 1), "of 1");
        snprintf(name, sizeof name, "recall, %s", judge_names[judge]);
        say(name, right / (double)score.lemons, "of 1");
    }
    say_rate(&score, 0, "lemons at work", 14);
    say_rate(&score, 1, "lemons removed", 4);
    return 0;
}
