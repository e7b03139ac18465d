#include "sim/world.h"

#include <signal.h>

#include "base/units.h"

void fault_next(struct world *world)
{
    if (world->swarm.fault_every_ns && !world->healing)
        world_after(world, world_draw_about(world, world->swarm.fault_every_ns), SIM_FAULT, 0, 0, 0);
}

static enum fault_kind draw_kind(struct world *world)
{
    uint64_t sum = 0;
    for (int kind = 0; kind < FAULT_KINDS; kind++)
        sum += world->swarm.weights[kind];
    if (sum == 0)
        return FAULT_KINDS;
    uint64_t at = rng_below(&world->rng, sum);
    for (int kind = 0; kind < FAULT_KINDS; kind++) {
        if (at < world->swarm.weights[kind])
            return kind;
        at -= world->swarm.weights[kind];
    }
    CHECK_UNREACHABLE();
}

static struct sim_machine *any_machine(struct world *world)
{
    return &world->machines[rng_below(&world->rng, world->swarm.machines)];
}

/* --- single faults ---------------------------------------------------------------------------- */

static void pause_controller(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->core || controller->paused)
        return;
    int64_t pause_ns = world_draw_about(world, world->swarm.lease_ns / 2);
    bool at_work = pause_ns & 1;
    pause_ns = at_work ? 4 * pause_ns : pause_ns;
    world_trace(world, "controller %s for %.3f s", at_work ? "is at work" : "stands still",
                (double)pause_ns / 1e9);
    controller_pause(world, pause_ns, at_work);
}

static void pause_agent(struct world *world, struct sim_machine *machine)
{
    if (!machine_reads(machine))
        return;
    machine->paused = true;
    int64_t pause_ns = world_draw_about(world, world->swarm.lease_ns);
    world_trace(world, "%s: agent stands still for %.3f s", machine->name, (double)pause_ns / 1e9);
    world_after(world, pause_ns, SIM_AGENT_RESUME, machine->index, 0, 0);
}

void fault_cut_off(struct world *world, struct sim_machine *machine, int64_t cut_ns)
{
    static const char *const ways[] = {"both ways", "towards the controller", "from the controller"};
    int64_t way = world_draw(world, 0, 2);
    machine->cut_up |= way != 2;
    machine->cut_down |= way != 1;
    world_trace(world, "%s: cut off %s for %.3f s", machine->name, ways[way], (double)cut_ns / 1e9);
    world_after(world, cut_ns, SIM_PARTITION_END, machine->index, ++machine->cut_number, 0);
}

static void partition(struct world *world, struct sim_machine *machine)
{
    fault_cut_off(world, machine, world_draw_about(world, 2 * world->swarm.lease_ns));
}

static void heal_partition(struct world *world, struct sim_machine *machine)
{
    if (!machine->cut_up && !machine->cut_down)
        return;
    machine->cut_up = machine->cut_down = false;
    world_trace(world, "%s: reachable again", machine->name);
    net_unblock(world);
}

void fault_partition_end(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    if (event->id == machine->cut_number)
        heal_partition(world, machine);
}

static void time_out_conn(struct world *world)
{
    if (world->conns.len == 0)
        return;
    struct conn *conn = world->conns.items[rng_below(&world->rng, world->conns.len)];
    world_trace(world, "conn %llu of m-%u (%s) times out", (unsigned long long)conn->id, conn->machine + 1,
                conn->tether ? "tether" : "agent");
    net_timeout(world, conn);
}

static void kill_task(struct world *world, struct sim_machine *machine)
{
    if (machine->processes.len == 0)
        return;
    struct process *process = machine->processes.items[rng_below(&world->rng, machine->processes.len)];
    if (process_lives(process))
        process_kill(world, machine, process);
}

static void fill_disk(struct world *world)
{
    if (world->disk.full)
        return;
    world->disk.full = true;
    world->disk.busy = world_chance(world, 300000);
    world_trace(world, "the controller's disk is %s", world->disk.busy ? "held by another program" : "full");
    world_after(world, world_draw_about(world, world->swarm.lease_ns), SIM_DISK_ROOM, 0, 0, 0);
}

/* Sets a wall clock. Monotonic clocks are never set. */
static void jump_clock(struct world *world)
{
    struct sim_clock *clock =
        world_chance(world, 300000) ? &world->controller.wall : &any_machine(world)->wall;
    int64_t jump_ns = world_draw(world, -20 * NS_PER_SECOND, 20 * NS_PER_SECOND);
    world_trace(world, "%s wall clock jumps by %.3f s",
                clock == &world->controller.wall ? "the controller's" : "a machine's", (double)jump_ns / 1e9);
    clock->offset_ns += jump_ns;
    if (clock == &world->controller.wall)
        hold_void(world);
    world->jumped_ns = world->now_ns;
}

/* Delays the packets on the way to or from one machine, in each direction of a connection with even
 * chance. */
static void hold_up(struct world *world, struct sim_machine *machine)
{
    int64_t delay_ns = world_draw_about(world, world->swarm.lease_ns / 2);
    for (size_t i = 0; i < world->conns.len; i++) {
        struct conn *conn = world->conns.items[i];
        struct lane *lanes[] = {&conn->to_controller, &conn->to_agent};
        for (int lane = 0; lane < 2 && conn->machine == machine->index; lane++)
            if (world_chance(world, 500000))
                for (size_t p = 0; p < lanes[lane]->packets.len; p++)
                    lanes[lane]->packets.items[p].due_ns += delay_ns;
    }
}

static const char *const codes[] = {"xid/79",     "xid/94",  "xid/95",       "ib/port-down",
                                    "pcie/fatal", "fs/full", "disk/timeout", "cpu/lockup",
                                    "odd/thing",  "mem/oom", "cpu/thermal"};
static const char *const places[] = {"", "gpu/0", "gpu/1"};
enum { CODES = sizeof(codes) / sizeof(*codes), PLACES = sizeof(places) / sizeof(*places) };
_Static_assert((int)CODES *(int)PLACES <= 64, "a bit of sim_machine.standing each");

static void say(struct world *world, struct sim_machine *machine, uint32_t which,
                enum signal_assertion assertion)
{
    int64_t now_ns = machine_wall_ns(world, machine);
    struct signal signal = {
        .code = str_from(codes[which % CODES]),
        .place = str_from(places[which / CODES]),
        .evidence = STR("seen"),
        .assertion = assertion,
        .severity = (enum signal_severity)world_draw(world, SEVERITY_NOTICE, SEVERITY_CRITICAL),
        .chip = (int32_t)world_draw(world, -1, (int64_t)world->swarm.chips),
        .first_ns = now_ns,
        .last_ns = now_ns,
        .count = (uint32_t)world_draw(world, 1, 3),
    };
    world_trace(world, "%s: a probe sees " STR_FORMAT " at \"" STR_FORMAT "\" (%d)", machine->name,
                STR_ARG(signal.code), STR_ARG(signal.place), (int)signal.assertion);
    if (assertion == SIGNAL_OCCUR)
        machine->standing |= UINT64_C(1) << which;
    else if (assertion == SIGNAL_RECOVER)
        machine->standing &= ~(UINT64_C(1) << which);
    machine_event(world, machine, &(struct agent_event){.kind = AGENT_SAW, .saw = &signal});
}

/* Makes a probe of the machine report a condition, or its end. */
static void see(struct world *world, struct sim_machine *machine)
{
    if (machine_reads(machine))
        say(world, machine, (uint32_t)rng_below(&world->rng, CODES * PLACES),
            (enum signal_assertion)world_draw(world, SIGNAL_OCCUR, SIGNAL_ONCE));
}

void fault_say_again(struct world *world, struct sim_machine *machine)
{
    for (uint32_t which = 0; which < CODES * PLACES && machine_reads(machine); which++) {
        if (!(machine->standing >> which & 1))
            continue;
        if (!world->healing && world_chance(world, 300000))
            say(world, machine, which, SIGNAL_OCCUR);
        else
            machine->standing &= ~(UINT64_C(1) << which); /* the repair has ended the condition */
    }
}

/* Reports more places at once than an agent keeps signals for, or a machine faults. */
static void see_storm(struct world *world, struct sim_machine *machine)
{
    int64_t now_ns = machine_wall_ns(world, machine), count = world_draw(world, 100, 600);
    if (!machine_reads(machine))
        return;
    world_trace(world, "%s: its probes see %lld things at once", machine->name, (long long)count);
    for (int64_t i = 0; i < count; i++) {
        char place[48];
        snprintf(place, sizeof(place), "process/rank-%lld", (long long)i);
        struct signal signal = {
            .code = STR("mem/oom"),
            .place = str_from(place),
            .evidence = STR("killed"),
            .assertion = SIGNAL_ONCE,
            .severity = (enum signal_severity)world_draw(world, SEVERITY_NOTICE, SEVERITY_CRITICAL),
            .chip = -1,
            .first_ns = now_ns,
            .last_ns = now_ns,
            .count = 1};
        machine_event(world, machine, &(struct agent_event){.kind = AGENT_SAW, .saw = &signal});
    }
}

static void happen(struct world *world, enum fault_kind kind)
{
    switch (kind) {
    case FAULT_CONTROLLER_CRASH:
        controller_crash(world);
        break;
    case FAULT_CONTROLLER_PAUSE:
        pause_controller(world);
        break;
    case FAULT_AGENT_CRASH:
        machine_agent_crash(world, any_machine(world));
        break;
    case FAULT_AGENT_PAUSE:
        pause_agent(world, any_machine(world));
        break;
    case FAULT_MACHINE_CRASH:
        machine_kill_all(world, any_machine(world));
        break;
    case FAULT_MACHINE_POWER:
        machine_power_off(world, any_machine(world));
        break;
    case FAULT_PARTITION:
        partition(world, any_machine(world));
        break;
    case FAULT_CONN_TIMEOUT:
        time_out_conn(world);
        break;
    case FAULT_TASK_KILL:
        kill_task(world, any_machine(world));
        break;
    case FAULT_DISK_FULL:
        fill_disk(world);
        break;
    case FAULT_CLOCK_JUMP:
        jump_clock(world);
        break;
    case FAULT_DELAY_SPIKE:
        hold_up(world, any_machine(world));
        break;
    case FAULT_SIGNAL:
        if (world_chance(world, 20000))
            see_storm(world, any_machine(world));
        else
            see(world, any_machine(world));
        break;
    case FAULT_HOLD:
        hold_plan(world);
        break;
    case FAULT_RESTORE:
        controller_restore(world);
        break;
    case FAULT_KINDS:
        break;
    }
}

void fault_happen(struct world *world)
{
    if (world->healing)
        return;
    enum fault_kind kind = draw_kind(world);
    if (kind == FAULT_KINDS)
        return;
    world->outcome->faults++;
    happen(world, kind);
    fault_next(world);
}

/* Ends all faults: whatever would return later returns now. */
void fault_heal(struct world *world)
{
    world->disk.full = world->disk.busy = false;
    if (world->controller.paused) {
        controller_go_on(world);
        controller_turn_soon(world);
    }
    if (!world->controller.core)
        world_after(world, 0, SIM_CONTROLLER_START, 0, 0, 0);
    for (uint32_t i = 0; i < world->swarm.machines; i++) {
        struct sim_machine *machine = &world->machines[i];
        heal_partition(world, machine);
        if (!machine->powered)
            world_after(world, 0, SIM_MACHINE_START, i, 0, 0);
        else if (!machine->agent)
            world_after(world, 0, SIM_AGENT_START, i, 0, 0);
        else
            machine_resume(world, machine);
    }
    net_unblock(world);
}
