/* world.c - virtual time, the ports of the driver, and the loop. */
#include "sim/capacity/internal.h"

#include <math.h>

#include "base/hash.h"
#include "core/admit/admit.h"
#include "core/spec/spec.h"
#include "doc/json.h"

/* The simulation begins on 2026-01-01T00:00:00Z by the controller's clock. */
#define BEGIN_NS      (INT64_C(1767225600) * NS_PER_SECOND)
#define HEARTBEATS_NS (INT64_C(3000) * NS_PER_SECOND) /* a lease and its margin are 66 minutes */

void due_set(struct simulation_world *world, struct due *due, enum due_kind kind, int64_t at_ns)
{
    due_drop(world, due);
    due->kind = kind;
    due->node.key = at_ns > world->now_ns ? at_ns : world->now_ns;
    due->node.tie = ++world->next_tie;
    heap_insert(&world->due, &due->node);
}

void due_drop(struct simulation_world *world, struct due *due)
{
    if (heap_has(&due->node))
        heap_remove(&world->due, &due->node);
}

/* --- ports ---------------------------------------------------------------------------------------- */

/* Sessions are numbered by machine: odd ones are the agent's, even ones its tether's. */
static uint32_t session_machine(drive_session session)
{
    return (uint32_t)((session - 1) / 2);
}

static int world_append(void *context, const struct drive_record *records, size_t count, struct error *error)
{
    struct simulation_world *world = context;
    for (size_t i = 0; i < count; i++)
        world->record_hash = hash_words(world->record_hash, records[i].bytes.data, records[i].bytes.len);
    world->outcome->records += count;
    if (world->options->keep)
        world->options->keep(world->options->keep_context, records, count);
    return APPEND_DONE;
}

static bool world_snapshot(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes)
{
    CHECK_UNREACHABLE(); /* driver_maintain() is not called: nothing restarts */
}

static void world_log_refuses(void *context, const struct error *why)
{
    CHECK_UNREACHABLE(); /* world_append() accepts everything */
}

static void world_log_takes(void *context, int64_t refused_ns)
{
    CHECK_UNREACHABLE();
}

static void world_send(void *context, drive_session session, const struct from_controller *message)
{
    if (session % 2)
        fleet_told(context, session_machine(session), message);
}

static void world_close(void *context, drive_session session, const char *refused)
{
    if (session % 2)
        fleet_closed(context, session_machine(session));
}

static int64_t world_clock_ns(void *context)
{
    const struct simulation_world *world = context;
    return world->now_ns;
}

static void world_reply(void *context, drive_request request, const struct effect *effect)
{
    arrivals_reply(context, request - 1, effect);
}

/* Counts a note that a workload loses its quota to another one. */
static void world_count_preemption(struct simulation_world *world, const struct note *note)
{
    if (!str_is(note->reason, "Preempted"))
        return;
    const struct workload *workload = workload_find(core_admit(world->core), note->namespace_, note->name);
    const struct sim_job *job =
        workload && workload->jobset ? u64_map_get(&world->jobs_by_uid, workload->jobset->uid) : NULL;
    world->outcome->preempted++;
    world->outcome->queues[job ? job->queue : 0].preempted++;
}

static void world_changed(void *context, const struct event *cause, const struct effect *effect)
{
    struct simulation_world *world = context;
    if (effect->changed.object.kind == OBJECT_EVENT && effect->changed.type != CHANGE_DELETED)
        world_count_preemption(world, effect->changed.object.note);
    if (effect->changed.type == CHANGE_DELETED && effect->changed.object.kind == OBJECT_JOBSET)
        arrivals_gone(context, effect->changed.object.jobset->uid);
}

void world_say(struct simulation_world *world, uint32_t machine, const struct from_agent *message)
{
    bool tether = message->kind == FROM_AGENT_TETHER;
    world->outcome->messages++;
    driver_message(world->driver, 1 + 2 * (drive_session)machine + tether, message);
}

static void world_turn(struct simulation_world *world)
{
    driver_timers(world->driver);
    do
        driver_turn(world->driver);
    while (driver_has_work(world->driver));
    world->outcome->turns++;
}

/* --- begin ---------------------------------------------------------------------------------------- */

static void world_make_driver(struct simulation_world *world)
{
    struct driver_options options = {
        .version = STR("simulation"), .rank_table_inside_max = UINT32_MAX, .snapshot_every = UINT32_MAX};
    struct driver_ports ports = {
        .log = {world, world_append, world_snapshot, world_log_refuses, world_log_takes, world_log_refuses},
        .net = {world, world_send, world_close},
        .clock = {world, world_clock_ns, world_clock_ns},
        .sinks = {.context = world, .reply = world_reply, .changed = world_changed},
    };
    uint8_t secret[GANG_KEY_BYTES] = {1};
    struct buf json BUF_CLEANUP = {0};
    world->core = core_new();
    world->driver = driver_new(&options, &ports, world->core);
    sim_scenario_cluster(world->scenario, true, &json);
    driver_start(world->driver, hash_mix(world->options->seed), secret, buf_str(&json));
    while (driver_has_work(world->driver))
        driver_turn(world->driver);
    CHECK(driver_is_open(world->driver));
    CHECK(core_cluster(world->core)->machine_count == world->scenario->machines);
}

/* Starts the world. Machines connect one second before anything else, because a tether proves only the death
 * of tasks that were started after it. */
static void world_begin(struct simulation_world *world, const struct simulation_options *options)
{
    world->options = options;
    world->scenario = options->scenario;
    world->now_ns = BEGIN_NS - NS_PER_SECOND;
    world->began_ns = world->counted_ns = BEGIN_NS;
    world->end_ns = world->began_ns + options->scenario->duration_ns;
    rng_seed(&world->arrivals, hash_mix(options->seed ^ 1));
    rng_seed(&world->lives, hash_mix(options->seed ^ 2));
    rng_seed(&world->times, hash_mix(options->seed ^ 3));
    world_make_driver(world);
    fleet_begin(world);
    arrivals_prepare(world);
    world_turn(world);
    world->now_ns = BEGIN_NS;
    sources_begin(world);
    arrivals_begin(world);
    due_set(world, &world->heartbeats, DUE_HEARTBEATS, world->now_ns + HEARTBEATS_NS);
    due_set(world, &world->sample, DUE_SAMPLE, world->now_ns);
}

static int world_check_cluster(const struct sim_scenario *scenario, struct error *error)
{
    struct buf json BUF_CLEANUP = {0};
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    struct field_errors errors = {.arena = &arena};
    struct cluster cluster;
    sim_scenario_cluster(scenario, true, &json);
    int rc = json_parse(&arena, buf_str(&json), &document, error);
    if (rc < 0)
        return rc;
    if (cluster_load(document, &cluster, &errors))
        cluster_done(&cluster);
    else
        rc = error_set(error, ERROR_INVALID, "cluster." STR_FORMAT ": " STR_FORMAT,
                       STR_ARG(errors.list.items[0].path), STR_ARG(errors.list.items[0].message));
    field_errors_done(&errors);
    return rc;
}

static void world_done(struct simulation_world *world)
{
    driver_free(world->driver);
    runs_done(world);
    arrivals_done(world);
    fleet_done(world);
    sources_done(world);
    core_free(world->core);
    vec_done(&world->checked.list);
    heap_done(&world->due);
}

int simulation_check(const struct sim_scenario *scenario, const char *file, struct error *error)
{
    int rc = world_check_cluster(scenario, error);
    if (rc < 0)
        return error ? error_wrap(error, "%s", file) : rc;
    if (sim_scenario_object_count(scenario) == 0)
        return 0;
    struct simulation_options options = {.scenario = scenario};
    struct simulation_world *world = mem_alloc(sizeof *world);
    world->outcome = mem_alloc(sizeof *world->outcome);
    world->options = &options;
    world->scenario = scenario;
    world->now_ns = BEGIN_NS;
    world_make_driver(world);
    rc = arrivals_check(world, error);
    mem_free(world->outcome);
    driver_free(world->driver);
    arrivals_done(world);
    core_free(world->core);
    vec_done(&world->checked.list);
    mem_free(world);
    return rc;
}

/* --- the loop ------------------------------------------------------------------------------------- */

static void world_sample(struct simulation_world *world)
{
    tally_sample(world);
    double share = (double)(world->now_ns - world->began_ns) / (double)world->scenario->duration_ns;
    if (world->options->progress)
        world->options->progress(world->options->context, share);
    due_set(world, &world->sample, DUE_SAMPLE,
            world->now_ns + world->scenario->duration_ns / (SIMULATION_SAMPLES - 1));
}

static void world_dispatch(struct simulation_world *world, struct due *due)
{
    switch (due->kind) {
    case DUE_ARRIVAL:
        arrivals_due(world);
        break;
    case DUE_RUN:
        runs_due(world, container_of(due, struct run, due));
        break;
    case DUE_STOP:
        runs_stop_due(world, container_of(due, struct run, stop));
        break;
    case DUE_STRIKE:
        sources_due(world, container_of(due, struct source, due));
        break;
    case DUE_MACHINE:
        fleet_due(world, (uint32_t)(container_of(due, struct sim_node, due) - world->nodes));
        break;
    case DUE_ERRAND:
        fleet_errand_due(world, (uint32_t)(container_of(due, struct sim_node, errand) - world->nodes));
        break;
    case DUE_HEARTBEATS:
        fleet_heartbeats(world);
        due_set(world, &world->heartbeats, DUE_HEARTBEATS, world->now_ns + HEARTBEATS_NS);
        break;
    case DUE_SAMPLE:
        world_sample(world);
        break;
    case DUE_KINDS:
        CHECK_UNREACHABLE();
    }
}

static int64_t world_next(const struct simulation_world *world)
{
    const struct heap_node *node = heap_min(&world->due);
    return node && node->key < world->end_ns ? node->key : world->end_ns;
}

/* Handles all events of the present instant. */
static void world_now(struct simulation_world *world)
{
    struct heap_node *node;
    while ((node = heap_min(&world->due)) && node->key <= world->now_ns) {
        heap_remove(&world->due, node);
        world->outcome->events++;
        world_dispatch(world, container_of(node, struct due, node));
    }
    world_turn(world);
}

void simulation_run(const struct simulation_options *options, struct simulation_outcome *ret_outcome)
{
    struct simulation_world *world = mem_alloc(sizeof *world);
    *ret_outcome = (struct simulation_outcome){.seed = options->seed};
    world->outcome = ret_outcome;
    world_begin(world, options);
    for (;;) {
        int64_t until_ns = driver_wait(world->driver, world_next(world));
        if (until_ns >= world->end_ns)
            break;
        world->now_ns = until_ns > world->now_ns ? until_ns : world->now_ns;
        world_now(world);
    }
    world->now_ns = world->end_ns;
    tally_end(world);
    ret_outcome->digest = hash_mix(world->record_hash ^ core_digest(world->core));
    world_done(world);
    mem_free(world);
}
