/* world.c - the loop of a world of several controllers: time, chance, which places reach each other, the two
 * phases. */
#include "sim/ha/world.h"

#include "base/hash.h"

/* Limit of the second phase in virtual time. */
#define HEAL_MAX_NS   (120 * NS_PER_SECOND)
#define HEAL_CHECK_NS (200 * NS_PER_MS)
enum { STEPS_DEFAULT = 6000, HEAL_EVENTS_MAX = 400000 };

const char *torture_ha_reach_name(enum torture_ha_reach reach)
{
    static const char *const names[HA_REACHES] = {
        "lead taken",
        "taken from a living controller",
        "two believed that they led",
        "write of a deposed leader refused",
        "leader found itself deposed",
        "handed over to a successor",
        "handed over to nobody",
        "controller killed",
        "controller stopped",
        "places cut off",
        "member of etcd down",
        "lease ended late",
        "outcome unknown",
        "append sent again was there",
        "etcd full",
        "group in parts",
        "snapshot saved",
        "standby loaded a snapshot",
        "level raised",
        "write acknowledged",
        "write sent again",
        "refused by a controller that was replaced",
        "write that came again was answered by its receipt",
    };
    CHECK((unsigned)reach < HA_REACHES);
    return names[reach];
}

/* --- time and chance -------------------------------------------------------------------------- */

struct ha_event *ha_at(struct ha_world *world, int64_t true_ns, enum ha_what what, uint32_t who, uint64_t id,
                       uint64_t number)
{
    struct ha_event *event = mem_alloc(sizeof(*event));
    event->node.key = true_ns > world->now_ns ? true_ns : world->now_ns;
    event->node.tie = ++world->next_tie;
    event->what = what;
    event->who = who;
    event->id = id;
    event->number = number;
    heap_insert(&world->events, &event->node);
    return event;
}

struct ha_event *ha_after(struct ha_world *world, int64_t delay_ns, enum ha_what what, uint32_t who,
                          uint64_t id, uint64_t number)
{
    return ha_at(world, world->now_ns + delay_ns, what, who, id, number);
}

int64_t ha_draw(struct ha_world *world, int64_t low, int64_t high)
{
    return high <= low ? low : rng_range(&world->rng, low, high);
}

int64_t ha_draw_about(struct ha_world *world, int64_t mean_ns)
{
    /* A geometric number of halves of the mean: memoryless, without a float. */
    int64_t drawn_ns = ha_draw(world, 0, mean_ns / 2);
    for (int i = 0; i < 15 && rng_chance(&world->rng, 630000); i++)
        drawn_ns += mean_ns / 2;
    return drawn_ns;
}

bool ha_chance(struct ha_world *world, uint32_t ppm)
{
    return ppm > 0 && rng_chance(&world->rng, ppm);
}

int64_t ha_delay(struct ha_world *world)
{
    const struct ha_swarm *swarm = &world->swarm;
    int64_t delay_ns = ha_draw(world, swarm->delay_min_ns, swarm->delay_max_ns);
    if (!world->healing && ha_chance(world, swarm->spike_ppm))
        delay_ns += ha_draw(world, 0, swarm->spike_max_ns);
    return delay_ns;
}

bool ha_passes(struct ha_world *world, uint32_t from, uint32_t to, bool lose)
{
    if (world->now_ns < world->cut_until_ns[from][to])
        return false;
    return !lose || world->healing || !ha_chance(world, world->swarm.lose_ppm);
}

/* --- messages --------------------------------------------------------------------------------- */

struct ha_message *ha_message_new(void)
{
    return mem_alloc(sizeof(struct ha_message));
}

void ha_message_free(struct ha_message *message)
{
    if (!message)
        return;
    sim_txn_unref(message->txn);
    for (size_t i = 0; i < message->pairs.len; i++)
        buf_done(&message->pairs.items[i].value);
    vec_done(&message->pairs);
    vec_done(&message->leases);
    arena_done(&message->arena);
    mem_free(message);
}

/* --- what is said ----------------------------------------------------------------------------- */

bool ha_failed(const struct ha_world *world)
{
    return world->outcome->result != TORTURE_OK;
}

void ha_fail(struct ha_world *world, enum torture_result result, const char *format, ...)
{
    if (ha_failed(world))
        return; /* the first failure is the cause */
    world->outcome->result = result;
    va_list args;
    va_start(args, format);
    vsnprintf(world->outcome->why, sizeof(world->outcome->why), format, args);
    va_end(args);
    ha_trace(world, "FAILED: %s", world->outcome->why);
}

void ha_trace(struct ha_world *world, const char *format, ...)
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

void ha_reach(struct ha_world *world, enum torture_ha_reach reach)
{
    world->outcome->ha[reach]++;
}

/* --- the run ---------------------------------------------------------------------------------- */

/* Handles an event of a controller, unless the controller is paused. */
static void ha_dispatch_controller(struct ha_world *world, struct ha_event *event)
{
    if (ha_stands(&world->controllers[event->who], event, event->what == HA_RENEW))
        return;
    switch (event->what) {
    case HA_NEWS:
        lead_news(world, event);
        break;
    case HA_RENEW:
        lead_renew(world, event);
        break;
    case HA_LOOK:
        lead_look(world, event);
        break;
    case HA_DEATH:
        lead_death(world, event);
        break;
    case HA_TURN:
        ha_turn(world, event);
        break;
    default:
        CHECK_UNREACHABLE();
    }
}

static void ha_dispatch(struct ha_world *world, struct ha_event *event)
{
    switch (event->what) {
    case HA_REQUEST:
        etcd_sim_request(world, event);
        break;
    case HA_ANSWER:
        call_answered(world, event);
        break;
    case HA_SILENCE:
        call_silence(world, event);
        break;
    case HA_LEASE:
        etcd_sim_lease(world, event);
        break;
    case HA_START:
        ha_start(world, event->who);
        break;
    case HA_CLIENT:
        ha_client_act(world, event);
        break;
    case HA_WRITE:
        ha_write_arrives(world, event);
        break;
    case HA_REPLY:
        ha_client_hears(world, event);
        break;
    case HA_FAULT:
        ha_fault_happen(world);
        break;
    case HA_PACKET:
        ha_conn_packet(world, event);
        break;
    case HA_CONNECT:
        ha_machine_connected(world, event);
        break;
    case HA_AGENT:
        ha_machine_start(world, event->who);
        break;
    case HA_TICK:
        ha_machine_tick(world, event);
        break;
    case HA_PROCESS:
        ha_machine_act(world, event);
        break;
    default:
        ha_dispatch_controller(world, event);
    }
}

/* Handles the next event. Returns false if none is left. */
static bool ha_advance(struct ha_world *world)
{
    struct heap_node *node = heap_min(&world->events);
    if (!node)
        return false;
    struct ha_event *event = container_of(node, struct ha_event, node);
    heap_remove(&world->events, node);
    CHECK(node->key >= world->now_ns);
    world->now_ns = node->key;
    world->outcome->events++;
    ha_dispatch(world, event);
    ha_machine_bury(world);
    ha_message_free(event->message);
    mem_free(event);
    return true;
}

static void ha_safety_phase(struct ha_world *world)
{
    uint64_t steps = world->options.steps ? world->options.steps : STEPS_DEFAULT;
    while (world->outcome->events < steps && !ha_failed(world) && ha_advance(world))
        ;
}

static void ha_liveness_phase(struct ha_world *world)
{
    world->healing = true;
    ha_trace(world, "--- faults end; everything heals ---");
    ha_fault_heal(world);
    int64_t give_up_ns = world->now_ns + HEAL_MAX_NS, check_ns = world->now_ns;
    uint64_t events_max = world->outcome->events + HEAL_EVENTS_MAX;
    char why[TORTURE_WHY_MAX / 2] = "";
    while (!ha_failed(world)) {
        if (world->now_ns >= check_ns) {
            check_ns = world->now_ns + HEAL_CHECK_NS;
            if (ha_oracle_alive(world, why, sizeof(why)))
                return;
        }
        if (world->now_ns > give_up_ns || world->outcome->events > events_max || !ha_advance(world)) {
            ha_fail(world, TORTURE_LIVENESS, "%s, %.0f virtual seconds after everything healed", why,
                    (double)(world->now_ns - (give_up_ns - HEAL_MAX_NS)) / 1e9);
            return;
        }
    }
}

static void ha_seed(struct rng *rng, uint64_t seed)
{
    rng_seed(rng, seed * UINT64_C(0x9e3779b97f4a7c15) + 0x4a);
}

void ha_draw_text(uint64_t seed, uint32_t controllers, char *ret_text, size_t size)
{
    struct rng rng;
    struct ha_swarm swarm = {0};
    ha_seed(&rng, seed);
    ha_swarm_draw(&swarm, &rng, controllers);
    ha_swarm_describe(&swarm, ret_text, size);
}

static void ha_init(struct ha_world *world)
{
    struct ha_swarm *swarm = &world->swarm;
    ha_seed(&world->rng, world->options.seed);
    ha_swarm_draw(swarm, &world->rng, world->options.controllers);
    ha_swarm_describe(swarm, world->outcome->drawn, sizeof(world->outcome->drawn));
    ha_trace(world, "seed %llu: %s", (unsigned long long)world->options.seed, world->outcome->drawn);
    for (uint32_t i = 0; i < swarm->controllers; i++) {
        struct ha_controller *controller = &world->controllers[i];
        int64_t drift_ppm = ha_draw(world, -(int64_t)swarm->drift_ppm, swarm->drift_ppm);
        controller->world = world;
        controller->index = i;
        controller->old = swarm->old && ha_chance(world, 500000);
        controller->mono = (struct sim_clock){0, ha_draw(world, 1, 1000) * NS_PER_SECOND, drift_ppm};
        controller->wall = (struct sim_clock){
            0, INT64_C(1700000000) * NS_PER_SECOND + ha_draw(world, 0, 2 * NS_PER_SECOND), drift_ppm};
        ha_after(world, ha_draw(world, 0, 200 * NS_PER_MS), HA_START, i, 0, 0);
    }
    world->shared = machine_shared_new();
    for (uint32_t i = 0; i < HA_MACHINES; i++)
        ha_machine_init(world, i);
    for (uint32_t i = 0; i < swarm->clients; i++)
        ha_after(world, ha_draw(world, 0, NS_PER_SECOND), HA_CLIENT, i, 0, 0);
    ha_fault_next(world);
}

static void ha_done(struct ha_world *world)
{
    for (uint32_t i = 0; i < world->swarm.controllers; i++)
        ha_controller_done(&world->controllers[i]);
    for (uint32_t i = 0; i < HA_MACHINES; i++)
        ha_machine_done(&world->machines[i]);
    machine_shared_free(world->shared);
    ha_machine_bury(world);
    vec_done(&world->buried);
    ha_conn_done(world);
    etcd_sim_done(&world->etcd);
    while (heap_min(&world->events)) {
        struct ha_event *event = container_of(heap_min(&world->events), struct ha_event, node);
        heap_remove(&world->events, &event->node);
        ha_message_free(event->message);
        mem_free(event);
    }
    heap_done(&world->events);
    vec_done(&world->history);
}

void ha_run(const struct torture_options *options, struct torture_outcome *ret_outcome)
{
    CHECK(options->controllers >= 1 && options->controllers <= HA_CONTROLLERS_MAX);
    *ret_outcome = (struct torture_outcome){0};
    struct ha_world *world = mem_alloc(sizeof(*world));
    world->options = *options;
    world->outcome = ret_outcome;
    ha_init(world);
    ha_safety_phase(world);
    if (!ha_failed(world))
        ha_liveness_phase(world);
    if (!ha_failed(world))
        ha_oracle_final(world);
    ret_outcome->virtual_ns = world->now_ns;
    ret_outcome->records = world->history.len;
    ha_done(world);
    mem_free(world);
}
