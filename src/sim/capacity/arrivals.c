/* arrivals.c - jobs: drawn from the workload model or listed, written as JobSets, and removed. */
#include "sim/capacity/internal.h"

#include <math.h>
#include <stdio.h>

#include "doc/json.h"

#define DAY_S           86400.0
#define ARRIVALS_OBJECT UINT64_MAX /* request number of writes that belong to no job */

/* --- the next job --------------------------------------------------------------------------------- */

/* Draws a run time, which is lognormal with the mean that gives the job's size its share of all time. */
static double arrivals_draw_runtime(struct simulation_world *world, const struct job_size *size)
{
    const struct workload_model *workload = &world->scenario->workload;
    double mean_s = size->time_share * workload->chip_hours * 3600 / (size->job_share * size->chips);
    double sigma = workload->runtime_sigma;
    struct draw draw = {.kind = DRAW_LOGNORMAL, .a = mean_s * exp(-sigma * sigma / 2), .b = sigma};
    double runtime_s = draw_seconds(&draw, &world->arrivals);
    runtime_s = runtime_s < workload->runtime_max_s ? runtime_s : workload->runtime_max_s;
    return runtime_s > 1 ? runtime_s : 1;
}

static const struct job_size *arrivals_draw_size(struct simulation_world *world)
{
    const struct workload_model *workload = &world->scenario->workload;
    double at = rng_unit(&world->arrivals);
    uint32_t size = 0;
    while (size + 1 < workload->size_count && at >= workload->sizes[size].job_share)
        at -= workload->sizes[size++].job_share;
    return &workload->sizes[size];
}

static struct listed_job arrivals_draw(struct simulation_world *world)
{
    const struct workload_model *workload = &world->scenario->workload;
    const struct job_size *size = arrivals_draw_size(world);
    struct listed_job job = {.chips = size->chips,
                             .runtime_s = arrivals_draw_runtime(world, size),
                             .queue = workload->queue,
                             .priority = workload->priority};
    double fate = rng_unit(&world->arrivals);
    job.fails = fate < workload->failed;
    job.cancelled = !job.fails && fate < workload->failed + workload->cancelled;
    return job;
}

/* --- writes --------------------------------------------------------------------------------------- */

/* Checks a write as a host does before logging. Returns whether the core accepts it. */
static bool arrivals_is_taken(struct simulation_world *world, struct write_event *write)
{
    write->grace_s = -1;
    write->user = STR("simulation");
    return core_check_write(world->core, write, world->now_ns, &world->checked, &write->prepared);
}

/* Returns the write of the object with this number, see sim_scenario_object(). */
static struct write_event arrivals_object(const struct sim_scenario *scenario, size_t number,
                                          struct buf *body, const char **ret_at)
{
    static const enum object_kind kinds[] = {[SIM_FLAVOR] = OBJECT_RESOURCE_FLAVOR,
                                             [SIM_CLUSTER_QUEUE] = OBJECT_CLUSTER_QUEUE,
                                             [SIM_LOCAL_QUEUE] = OBJECT_LOCAL_QUEUE,
                                             [SIM_PRIORITY_CLASS] = OBJECT_PRIORITY_CLASS};
    enum sim_object kind;
    sim_scenario_object(scenario, number, body, &kind, ret_at);
    return (struct write_event){.verb = WRITE_CREATE,
                                .object = kinds[kind],
                                .namespace_ = kind == SIM_LOCAL_QUEUE ? STR("default") : STR(""),
                                .body = buf_str(body)};
}

int arrivals_check(struct simulation_world *world, struct error *error)
{
    for (size_t i = 0; i < sim_scenario_object_count(world->scenario); i++) {
        struct buf body BUF_CLEANUP = {0};
        const char *at;
        struct write_event write = arrivals_object(world->scenario, i, &body, &at);
        bool taken = arrivals_is_taken(world, &write);
        prepared_write_free(write.prepared);
        if (!taken)
            return error_set(error, ERROR_INVALID, "%s%s" STR_FORMAT, at ? at : "", at ? ": " : "",
                             STR_ARG(world->checked.list.items[0].reply.message));
    }
    return 0;
}

void arrivals_prepare(struct simulation_world *world)
{
    for (size_t i = 0; i < sim_scenario_object_count(world->scenario); i++) {
        struct buf body BUF_CLEANUP = {0};
        const char *at;
        struct write_event write = arrivals_object(world->scenario, i, &body, &at);
        CHECK(arrivals_is_taken(world, &write));
        driver_write(world->driver, &write, ARRIVALS_OBJECT);
    }
}

/* Checks and sends a write. Returns whether the core accepts it. */
static bool arrivals_write(struct simulation_world *world, struct write_event *write, uint64_t number)
{
    write->namespace_ = STR("default");
    if (!arrivals_is_taken(world, write))
        return false;
    driver_write(world->driver, write, number + 1);
    return true;
}

static void arrivals_enter(struct simulation_world *world, struct sim_job *job)
{
    u64_map_put(&world->jobs_by_number, job->number, job);
    vec_push(&world->live, job);
    u64_map_put(&world->live_places, job->number, (void *)(uintptr_t)world->live.len);
}

static void arrivals_leave(struct simulation_world *world, struct sim_job *job)
{
    uintptr_t place = (uintptr_t)u64_map_remove(&world->live_places, job->number);
    struct sim_job *last = vec_last(&world->live);
    CHECK(place > 0 && world->live.items[place - 1] == job);
    world->live.items[place - 1] = last;
    world->live.len--;
    if (last != job)
        u64_map_put(&world->live_places, last->number, (void *)place);
    u64_map_remove(&world->jobs_by_number, job->number);
    if (job->uid)
        u64_map_remove(&world->jobs_by_uid, job->uid);
}

static int64_t arrivals_span(int64_t known_us, double usual_s)
{
    return known_us >= 0 ? known_us * NS_PER_US : (int64_t)(usual_s * 1e9);
}

/* Sets how long the job's phases take: as in its history, or else as in the workload model. */
static void arrivals_set_times(const struct simulation_world *world, struct sim_job *job)
{
    const struct workload_model *workload = &world->scenario->workload;
    const struct history_job *known = job->known;
    bool saves = known ? known->save_us > 0 : job->chips >= workload->checkpoint_chips;
    job->launch_ns = arrivals_span(known ? known->launch_us : -1, workload->launch_s);
    job->load_ns = arrivals_span(known ? known->load_us : -1, workload->load_s);
    job->stop_ns = arrivals_span(known ? known->stop_us : -1, workload->stop_s);
    job->interval_ns = saves ? arrivals_span(known ? known->save_us : -1, workload->interval_s) : 0;
    job->write_ns = arrivals_span(known ? known->write_us : -1, workload->write_s);
    if (known && known->end == HISTORY_RUNNING) /* more work than the simulation has time for */
        job->work_ns = 2 * (world->end_ns - world->began_ns);
}

static void arrivals_submit(struct simulation_world *world, const struct listed_job *listed)
{
    struct job_shape shape = sim_scenario_shape(world->scenario, listed);
    struct sim_job *job = mem_alloc(sizeof *job);
    struct buf body BUF_CLEANUP = {0};
    job->number = world->jobs_made++;
    job->chips = listed->chips;
    job->width = shape.ranks;
    job->chips_of_rank = shape.chips;
    job->bucket = simulation_bucket_of(listed->chips);
    job->queue = listed->queue;
    job->plan = listed->fails ? FATE_FAILED : listed->cancelled ? FATE_CANCELLED : FATE_COMPLETED;
    job->submit_ns = world->now_ns;
    job->work_ns = (int64_t)(listed->runtime_s * 1e9);
    job->known = listed->known;
    arrivals_set_times(world, job);
    sim_scenario_jobset(world->scenario, listed, job->number, &body);
    struct write_event write = {.verb = WRITE_CREATE, .object = OBJECT_JOBSET, .body = buf_str(&body)};
    if (!arrivals_write(world, &write, job->number)) {
        world->outcome->refused++;
        mem_free(job);
        return;
    }
    world->outcome->jobs++;
    arrivals_enter(world, job);
}

void arrivals_reply(struct simulation_world *world, uint64_t number, const struct effect *effect)
{
    struct sim_job *job = u64_map_get(&world->jobs_by_number, number);
    if (!job || job->uid || effect->reply.code >= 300 || effect->reply.object.kind != OBJECT_JOBSET)
        return;
    job->uid = effect->reply.object.jobset->uid;
    u64_map_put(&world->jobs_by_uid, job->uid, job);
}

void arrivals_cancel(struct simulation_world *world, struct sim_job *job)
{
    char name[32];
    int len = snprintf(name, sizeof name, "j%llu", (unsigned long long)job->number);
    struct write_event write = {.verb = WRITE_DELETE, .object = OBJECT_JOBSET, .name = {name, (size_t)len}};
    CHECK(arrivals_write(world, &write, job->number));
}

void arrivals_gone(struct simulation_world *world, obj_id jobset)
{
    struct sim_job *job = u64_map_get(&world->jobs_by_uid, jobset);
    if (!job)
        return;
    tally_job(world, job, job->ended ? job->plan : FATE_GAVE_UP);
    arrivals_leave(world, job);
    if (job->run)
        job->run->job = NULL;
    mem_free(job);
}

/* --- time ----------------------------------------------------------------------------------------- */

/* Returns the arrival of the next listed job; INT64_MAX if there is none. */
static int64_t arrivals_listed_ns(const struct simulation_world *world)
{
    const struct sim_scenario *scenario = world->scenario;
    if (world->next_listed == scenario->jobs.len)
        return INT64_MAX;
    return world->began_ns + (int64_t)(scenario->jobs.items[world->next_listed].submit_s * 1e9);
}

/* Sets the timer to the earlier of the next drawn and the next listed job. */
static void arrivals_arm(struct simulation_world *world)
{
    int64_t due_ns = world->next_arrival_ns, listed_ns = arrivals_listed_ns(world);
    due_ns = listed_ns < due_ns ? listed_ns : due_ns;
    if (due_ns < world->end_ns)
        due_set(world, &world->arrival, DUE_ARRIVAL, due_ns);
}

static void arrivals_next_drawn(struct simulation_world *world)
{
    double per_day = world->scenario->workload.jobs_per_day;
    if (per_day <= 0) {
        world->next_arrival_ns = INT64_MAX;
        return;
    }
    struct draw gap = {.kind = DRAW_EXPONENTIAL, .a = DAY_S / per_day};
    world->next_arrival_ns = world->now_ns + draw_ns(&gap, &world->arrivals);
}

void arrivals_due(struct simulation_world *world)
{
    const struct sim_scenario *scenario = world->scenario;
    if (world->now_ns >= world->next_arrival_ns) {
        struct listed_job job = arrivals_draw(world);
        arrivals_submit(world, &job);
        arrivals_next_drawn(world);
    }
    while (arrivals_listed_ns(world) <= world->now_ns)
        arrivals_submit(world, &scenario->jobs.items[world->next_listed++]);
    arrivals_arm(world);
}

void arrivals_begin(struct simulation_world *world)
{
    arrivals_next_drawn(world);
    arrivals_arm(world);
}

void arrivals_done(struct simulation_world *world)
{
    for (size_t i = 0; i < world->live.len; i++)
        mem_free(world->live.items[i]);
    vec_done(&world->live);
    u64_map_done(&world->jobs_by_uid);
    u64_map_done(&world->jobs_by_number);
    u64_map_done(&world->live_places);
    u64_map_done(&world->ranks);
}
