#include "sim/world.h"

#include "base/units.h"

/* Limit of the second phase in virtual time: a retry's back-off is up to ten minutes (batch.c). */
#define HEAL_MAX_NS   (7200 * NS_PER_SECOND)
#define HEAL_CHECK_NS (2 * NS_PER_SECOND)
enum { HEAL_EVENTS_MAX = 3000000 };

const char *torture_plant_name(enum torture_plant plant)
{
    static const char *const names[PLANTS] = {
        "none",          "skip-fence",    "apply-before-log", "forget-release",     "start-before-dead",
        "lose-report",   "quota-twice",   "skip-finalizer",   "ignore-reservation", "lose-readiness",
        "old-shard",     "forget-hold",   "hide-restore",     "append-unguarded",   "trust-silence",
        "skip-catch-up", "late-cleaning", "new-ids",          "overstay",           "revoke-later"};
    return (unsigned)plant < PLANTS ? names[plant] : "?";
}

bool torture_plant_find(const char *name, enum torture_plant *ret_plant)
{
    for (int plant = 0; plant < PLANTS; plant++) {
        if (strcmp(name, torture_plant_name(plant)) != 0)
            continue;
        *ret_plant = plant;
        return true;
    }
    return false;
}

/* --- time and chance -------------------------------------------------------------------------- */

struct sim_event *world_at(struct world *world, int64_t true_ns, enum sim_what what, uint32_t machine,
                           uint64_t id, uint64_t number)
{
    struct sim_event *event = mem_alloc(sizeof(*event));
    event->node.key = true_ns > world->now_ns ? true_ns : world->now_ns;
    event->node.tie = ++world->next_tie;
    event->what = what;
    event->machine = machine;
    event->id = id;
    event->number = number;
    heap_insert(&world->events, &event->node);
    return event;
}

struct sim_event *world_after(struct world *world, int64_t delay_ns, enum sim_what what, uint32_t machine,
                              uint64_t id, uint64_t number)
{
    return world_at(world, world->now_ns + delay_ns, what, machine, id, number);
}

int64_t world_draw(struct world *world, int64_t low, int64_t high)
{
    return high <= low ? low : rng_range(&world->rng, low, high);
}

int64_t world_draw_about(struct world *world, int64_t mean_ns)
{
    /* A geometric number of halves of the mean: memoryless, without a float. */
    int64_t drawn_ns = world_draw(world, 0, mean_ns / 2);
    for (int i = 0; i < 15 && rng_chance(&world->rng, 630000); i++)
        drawn_ns += mean_ns / 2;
    return drawn_ns;
}

bool world_chance(struct world *world, uint32_t ppm)
{
    return ppm > 0 && rng_chance(&world->rng, ppm);
}

/* --- what is said ----------------------------------------------------------------------------- */

bool world_failed(const struct world *world)
{
    return world->outcome->result != TORTURE_OK;
}

void world_fail(struct world *world, enum torture_result result, const char *format, ...)
{
    if (world_failed(world))
        return; /* the first failure is the cause */
    world->outcome->result = result;
    va_list args;
    va_start(args, format);
    vsnprintf(world->outcome->why, sizeof(world->outcome->why), format, args);
    va_end(args);
    world_trace(world, "FAILED: %s", world->outcome->why);
}

void world_trace(struct world *world, const char *format, ...)
{
    FILE *out = world->options.trace;
    if (!out)
        return;
    fprintf(out, "%12.6f  ", (double)world->now_ns / 1e9);
    va_list args;
    va_start(args, format);
    vfprintf(out, format, args);
    va_end(args);
    fputc('\n', out);
    fflush(out); /* a broken invariant aborts */
}

/* --- the run ---------------------------------------------------------------------------------- */

static void dispatch(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    switch (event->what) {
    case SIM_ARRIVE:
        net_arrive(world, event);
        break;
    case SIM_CONNECTED:
        machine_connected(world, event);
        break;
    case SIM_AGENT_START:
        machine_agent_start(world, machine);
        break;
    case SIM_AGENT_TICK:
        machine_tick(world, event);
        break;
    case SIM_AGENT_RESUME:
        machine_resume(world, machine);
        break;
    case SIM_MACHINE_START:
        machine_power_on(world, machine);
        break;
    case SIM_PROCESS:
        process_act(world, event);
        break;
    case SIM_PARTITION_END:
        fault_partition_end(world, event);
        break;
    case SIM_CONTROLLER_START:
        controller_start(world);
        break;
    case SIM_CONTROLLER_TURN:
        controller_turn(world, event);
        break;
    case SIM_CONTROLLER_SYNCED:
        controller_synced(world, event);
        break;
    case SIM_CONTROLLER_ATTEND:
        controller_attend(world, event);
        break;
    case SIM_CONTROLLER_RESUME:
        controller_resume(world, event);
        break;
    case SIM_DISK_ROOM:
        world->disk.full = world->disk.busy = false;
        break;
    case SIM_CLIENT:
        client_act(world);
        break;
    case SIM_REQUEST:
        client_request(world, event);
        break;
    case SIM_FAULT:
        fault_happen(world);
        break;
    case SIM_ACTED:
        machine_acted(world, event);
        break;
    case SIM_ERRAND_ENDED:
        machine_errand_ended(world, event);
        break;
    case SIM_SAY_AGAIN:
        fault_say_again(world, &world->machines[event->machine]);
        break;
    case SIM_HOLD:
        hold_look(world, event);
        break;
    default: /* advance() hands SIM_SWITCH to switches.c */
        CHECK_UNREACHABLE();
    }
}

/* Handles one event. Returns false if none is left. */
static bool advance(struct world *world)
{
    struct heap_node *node = heap_min(&world->events);
    if (!node)
        return false;
    struct sim_event *event = container_of(node, struct sim_event, node);
    heap_remove(&world->events, node);
    CHECK(node->key >= world->now_ns);
    world->now_ns = node->key;
    world->outcome->events++;
    if (event->what == SIM_SWITCH)
        sim_switches_event(world, event);
    else
        dispatch(world, event);
    process_bury_all(world);
    mem_free(event);
    return true;
}

static void safety_phase(struct world *world)
{
    uint64_t steps = world->options.steps ? world->options.steps : TORTURE_STEPS_DEFAULT;
    while (world->outcome->events < steps && !world_failed(world) && advance(world))
        ;
}

static void liveness_phase(struct world *world)
{
    world->healing = true;
    world_trace(world, "--- faults end; everything heals ---");
    fault_heal(world);
    sim_switches_heal(world);
    int64_t give_up_ns = world->now_ns + HEAL_MAX_NS, check_ns = world->now_ns;
    uint64_t events_max = world->outcome->events + HEAL_EVENTS_MAX;
    char why[TORTURE_WHY_MAX] = "";
    while (!world_failed(world)) {
        if (world->now_ns >= check_ns) {
            check_ns = world->now_ns + HEAL_CHECK_NS;
            process_hasten(world);
            if (liveness_reached(world, why, sizeof(why)))
                return;
        }
        if (world->now_ns > give_up_ns || world->outcome->events > events_max || !advance(world)) {
            liveness_trace(world);
            world_fail(world, TORTURE_LIVENESS, "%s, %.0f virtual seconds after everything healed", why,
                       (double)(world->now_ns - (give_up_ns - HEAL_MAX_NS)) / 1e9);
            return;
        }
    }
}

static void seed_rng(struct rng *rng, uint64_t seed)
{
    rng_seed(rng, seed * UINT64_C(0x9e3779b97f4a7c15) + 1);
}

void torture_draw(uint64_t seed, char *ret_text, size_t size)
{
    struct rng rng;
    struct swarm swarm = {0};
    seed_rng(&rng, seed);
    swarm_draw(&swarm, &rng, seed);
    swarm_describe(&swarm, ret_text, size);
}

static void world_init(struct world *world)
{
    seed_rng(&world->rng, world->options.seed);
    swarm_draw(&world->swarm, &world->rng, world->options.seed);
    swarm_describe(&world->swarm, world->outcome->drawn, sizeof(world->outcome->drawn));
    world_trace(world, "seed %llu: %s", (unsigned long long)world->options.seed, world->outcome->drawn);
    spec_cluster(world, &world->cluster_json);
    world->shared = machine_shared_new();
    struct swarm *swarm = &world->swarm;
    world->controller.wall = (struct sim_clock){0, INT64_C(1700000000) * NS_PER_SECOND, 0};
    world->controller.mono = (struct sim_clock){0, 1000 * NS_PER_SECOND, 0};
    for (uint32_t i = 0; i < swarm->machines; i++)
        machine_init(world, i);
    controller_start(world);
    for (uint32_t i = 0; i < swarm->machines; i++)
        world_after(world, world_draw(world, 0, NS_PER_SECOND), SIM_MACHINE_START, i, 0, 0);
    world_after(world, world_draw(world, 0, NS_PER_SECOND), SIM_CLIENT, 0, 0, 0);
    fault_next(world);
    sim_switches_begin(world);
}

static void world_done(struct world *world)
{
    for (uint32_t i = 0; i < world->swarm.machines; i++)
        machine_done(&world->machines[i]);
    machine_shared_free(world->shared);
    process_bury_all(world);
    vec_done(&world->buried);
    controller_done(world);
    sim_switches_done(world);
    client_done(world);
    net_done(world);
    disk_done(&world->disk);
    oracle_done(world);
    while (heap_min(&world->events)) {
        struct heap_node *node = heap_min(&world->events);
        heap_remove(&world->events, node);
        mem_free(container_of(node, struct sim_event, node));
    }
    heap_done(&world->events);
    buf_done(&world->cluster_json);
}

void torture_run(const struct torture_options *options, struct torture_outcome *ret_outcome)
{
    *ret_outcome = (struct torture_outcome){0};
    struct world *world = mem_alloc(sizeof(*world));
    world->options = *options;
    world->outcome = ret_outcome;
    world_init(world);
    safety_phase(world);
    if (!world_failed(world))
        liveness_phase(world);
    if (!world_failed(world))
        oracle_final(world);
    ret_outcome->virtual_ns = world->now_ns;
    ret_outcome->records = world->applied.len;
    world_done(world);
    mem_free(world);
}
