/* fault.c - faults, and how they heal. */
#include "sim/ha/world.h"

enum ha_fault {
    FAULT_KILL,
    FAULT_KILL_LEADER,
    FAULT_STOP,      /* a process is paused, and its lease expires meanwhile */
    FAULT_BUSY,      /* a main loop is busy; the lease is still renewed */
    FAULT_CUT,       /* two places do not reach each other, both ways or one */
    FAULT_CUT_OFF,   /* one place reaches no other */
    FAULT_SPLIT,     /* a leader reaches its agents, but neither etcd nor other controllers */
    FAULT_MEMBER,    /* a member of etcd is down */
    FAULT_ELECTION,  /* etcd elects its own leader */
    FAULT_FULL,      /* etcd's quota is used up */
    FAULT_SUSPICION, /* a standby takes a living leader for dead */
    FAULT_STEP_DOWN, /* an operator asks the leader to hand over */
    FAULT_TERM,      /* a leader gets SIGTERM */
    FAULT_CLOCK,     /* a wall clock is set */
    FAULT_AGENT,     /* the process of an agent is killed */
    FAULT_TASK,      /* a task is killed */
    HA_FAULTS
};

const char *ha_fault_name(int kind)
{
    static const char *const names[HA_FAULTS] = {
        "kill",     "kill-leader", "stop",      "busy",      "cut",  "cut-off",    "split", "member",
        "election", "full",        "suspicion", "step-down", "term", "clock-jump", "agent", "task"};
    CHECK((unsigned)kind < HA_FAULTS);
    return names[kind];
}

int ha_fault_kinds(void)
{
    _Static_assert(HA_FAULTS <= sizeof(((struct ha_swarm *)0)->weights) / sizeof(uint32_t), "a weight each");
    return HA_FAULTS;
}

void ha_fault_suspicion_alone(uint32_t *weights)
{
    for (int kind = 0; kind < HA_FAULTS; kind++)
        weights[kind] = kind == FAULT_SUSPICION;
}

void ha_fault_next(struct ha_world *world)
{
    if (world->swarm.fault_every_ns && !world->healing)
        ha_after(world, ha_draw_about(world, world->swarm.fault_every_ns), HA_FAULT, 0, 0, 0);
}

static int draw_fault(struct ha_world *world)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < HA_FAULTS; kind++)
        sum += world->swarm.weights[kind];
    if (sum == 0)
        return HA_FAULTS;
    uint64_t at = rng_below(&world->rng, sum);
    for (int kind = 0; kind < HA_FAULTS; kind++) {
        if (at < world->swarm.weights[kind])
            return kind;
        at -= world->swarm.weights[kind];
    }
    CHECK_UNREACHABLE();
}

static struct ha_controller *any_controller(struct ha_world *world)
{
    return &world->controllers[rng_below(&world->rng, world->swarm.controllers)];
}

/* Returns a controller that believes it leads, or NULL. */
static struct ha_controller *any_leader(struct ha_world *world)
{
    uint32_t first = (uint32_t)rng_below(&world->rng, world->swarm.controllers);
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        struct ha_controller *controller = &world->controllers[(first + i) % world->swarm.controllers];
        if (controller->state == HA_LEADS)
            return controller;
    }
    return NULL;
}

static void kill_controller(struct ha_world *world, struct ha_controller *controller)
{
    if (!controller || controller->state == HA_DOWN)
        return;
    ha_reach(world, HA_KILLED);
    ha_end(controller, ha_draw_about(world, 2 * world->swarm.ttl_ns), "is killed");
}

static void stop_controller(struct ha_world *world, struct ha_controller *controller, bool busy)
{
    int64_t until_ns = world->now_ns + ha_draw_about(world, 2 * world->swarm.ttl_ns);
    if (!controller || controller->state == HA_DOWN)
        return;
    ha_reach(world, HA_STOPPED);
    ha_trace(world, "c-%u: %s until %.3f s", controller->index + 1, busy ? "is at work" : "stands still",
             (double)until_ns / 1e9);
    if (busy)
        controller->busy_until_ns = until_ns;
    else
        controller->stopped_until_ns = until_ns;
}

static void cut(struct ha_world *world, uint32_t from, uint32_t to, int64_t until_ns)
{
    ha_reach(world, HA_CUT);
    if (world->cut_until_ns[from][to] < until_ns)
        world->cut_until_ns[from][to] = until_ns;
}

static void cut_two(struct ha_world *world)
{
    uint32_t from = (uint32_t)rng_below(&world->rng, HA_PLACES),
             to = (uint32_t)rng_below(&world->rng, HA_PLACES);
    int64_t until_ns = world->now_ns + ha_draw_about(world, 2 * world->swarm.ttl_ns);
    ha_trace(world, "places %u and %u are cut off from each other until %.3f s", from, to,
             (double)until_ns / 1e9);
    if (ha_chance(world, 700000))
        cut(world, from, to, until_ns);
    if (ha_chance(world, 700000))
        cut(world, to, from, until_ns);
}

static void cut_off_place(struct ha_world *world, uint32_t place)
{
    int64_t until_ns = world->now_ns + ha_draw_about(world, 2 * world->swarm.ttl_ns),
            way = ha_draw(world, 0, 2);
    ha_trace(world, "place %u is cut off until %.3f s", place, (double)until_ns / 1e9);
    for (uint32_t other = 0; other < HA_PLACES; other++) {
        if (way != 1)
            cut(world, place, other, until_ns);
        if (way != 2)
            cut(world, other, place, until_ns);
    }
}

static void suspect(struct ha_world *world);

/* Cuts a leader off from etcd and from the other controllers, which may take it for dead. */
static void split(struct ha_world *world, const struct ha_controller *leader)
{
    int64_t until_ns = world->now_ns + ha_draw_about(world, 3 * world->swarm.ttl_ns);
    if (!leader)
        return;
    ha_trace(world, "c-%u: reaches its agents alone until %.3f s", leader->index + 1, (double)until_ns / 1e9);
    for (uint32_t place = 0; place < HA_PLACE_CLIENT; place++) {
        cut(world, leader->index, place, until_ns);
        cut(world, place, leader->index, until_ns);
    }
    if (ha_chance(world, 500000))
        suspect(world);
}

static void stop_member(struct ha_world *world)
{
    uint32_t member = (uint32_t)rng_below(&world->rng, HA_MEMBERS);
    ha_reach(world, HA_MEMBER);
    world->etcd.down_until_ns[member] = world->now_ns + ha_draw_about(world, 2 * world->swarm.ttl_ns);
    if (ha_chance(world, 330000))
        etcd_sim_elect(world, ha_draw(world, NS_PER_MS, world->swarm.ttl_ns));
}

/* Makes a standby believe that the process of the leader it has seen has ended. */
static void suspect(struct ha_world *world)
{
    const struct ha_controller *controller = any_controller(world);
    if (controller->state != HA_FOLLOWS || !controller->seen.leader_term)
        return;
    ha_reach(world, HA_FROM_LIVING);
    ha_trace(world, "c-%u: takes the leader for dead", controller->index + 1);
    ha_after(world, 0, HA_DEATH, controller->index, controller->life, (uint64_t)controller->seen.leader_term);
}

/* Puts the step-down key for the present leader, as the operator's command does; it may arrive too late. */
static void ask_step_down(struct ha_world *world)
{
    const struct sim_pair *leader = sim_pair_find(&world->etcd.pairs, SIM_LEADER, 0);
    if (!leader || world->now_ns < world->etcd.full_until_ns)
        return;
    struct ha_message *message = ha_message_new();
    message->controller = (uint32_t)rng_below(&world->rng, world->swarm.controllers);
    message->member = (uint32_t)rng_below(&world->rng, HA_MEMBERS);
    message->txn = sim_txn_new();
    sim_txn_if(message->txn, SIM_LEADER, leader->mod);
    sim_txn_put(message->txn, SIM_STEP_DOWN, 0, (struct str){(const char *)&leader->mod, sizeof(leader->mod)},
                0);
    ha_after(world, ha_delay(world), HA_REQUEST, message->member, 0, 0)->message = message;
}

static void set_clock(struct ha_world *world)
{
    any_controller(world)->wall.offset_ns += ha_draw(world, -20 * NS_PER_SECOND, 20 * NS_PER_SECOND);
}

static void end_leader(struct ha_controller *leader)
{
    if (!leader)
        return;
    leader->resigns = leader->ends = true;
    ha_turn_soon(leader);
}

static void happen_now(struct ha_world *world, int kind)
{
    switch ((enum ha_fault)kind) {
    case FAULT_KILL:
        kill_controller(world, any_controller(world));
        break;
    case FAULT_KILL_LEADER:
        kill_controller(world, any_leader(world));
        break;
    case FAULT_STOP:
        stop_controller(world, ha_chance(world, 700000) ? any_leader(world) : any_controller(world), false);
        break;
    case FAULT_BUSY:
        stop_controller(world, any_controller(world), true);
        break;
    case FAULT_CUT:
        cut_two(world);
        break;
    case FAULT_CUT_OFF:
        cut_off_place(world, (uint32_t)rng_below(&world->rng, HA_PLACES));
        break;
    case FAULT_SPLIT:
        split(world, any_leader(world));
        break;
    case FAULT_MEMBER:
        stop_member(world);
        break;
    case FAULT_ELECTION:
        etcd_sim_elect(world, ha_draw(world, NS_PER_MS, world->swarm.ttl_ns));
        break;
    case FAULT_FULL:
        ha_reach(world, HA_NO_SPACE);
        world->etcd.full_until_ns = world->now_ns + ha_draw_about(world, world->swarm.ttl_ns);
        break;
    case FAULT_SUSPICION:
        suspect(world);
        break;
    case FAULT_STEP_DOWN:
        ask_step_down(world);
        break;
    case FAULT_TERM:
        end_leader(any_leader(world));
        break;
    case FAULT_CLOCK:
        set_clock(world);
        break;
    case FAULT_AGENT:
        ha_machine_crash(&world->machines[rng_below(&world->rng, HA_MACHINES)]);
        break;
    case FAULT_TASK:
        ha_machine_kill_task(&world->machines[rng_below(&world->rng, HA_MACHINES)]);
        break;
    case HA_FAULTS:
        break;
    }
}

void ha_fault_happen(struct ha_world *world)
{
    if (world->healing)
        return;
    world->outcome->faults++;
    happen_now(world, draw_fault(world));
    ha_fault_next(world);
}

void ha_fault_heal(struct ha_world *world)
{
    memset(world->cut_until_ns, 0, sizeof(world->cut_until_ns));
    memset(world->etcd.down_until_ns, 0, sizeof(world->etcd.down_until_ns));
    world->etcd.stalled_until_ns = world->etcd.full_until_ns = 0;
    for (uint32_t i = 0; i < world->swarm.controllers; i++) {
        struct ha_controller *controller = &world->controllers[i];
        controller->stopped_until_ns = controller->busy_until_ns =
            0; /* its events happen at their original times */
        if (controller->state == HA_DOWN)
            ha_after(world, 0, HA_START, i, 0, 0);
    }
    for (uint32_t i = 0; i < HA_MACHINES; i++)
        ha_after(world, 0, HA_AGENT, i, 0, 0);
}
