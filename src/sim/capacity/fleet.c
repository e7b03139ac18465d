/* fleet.c - the machines: connections, orders of the controller, failures, repairs. */
#include "sim/capacity/internal.h"

#include <stdio.h>

static struct str fleet_name(const struct simulation_world *world, uint32_t machine)
{
    return core_cluster(world->core)->machines[machine].name;
}

void fleet_report(struct simulation_world *world, uint32_t machine, struct task_report *items, size_t count)
{
    struct sim_node *node = &world->nodes[machine];
    if (!node->connected)
        return;
    struct from_agent message = {.kind = FROM_AGENT_REPORTS,
                                 .reports = {.number = ++node->reports, .items = items, .count = count}};
    world_say(world, machine, &message);
}

/* --- connections ---------------------------------------------------------------------------------- */

void fleet_hello(struct simulation_world *world, uint32_t machine)
{
    struct sim_node *node = &world->nodes[machine];
    CHECK(!node->connected && list_empty(&node->ranks));
    struct from_agent message = {.kind = FROM_AGENT_TETHER,
                                 .hello = {.version = this_release.wire,
                                           .machine = fleet_name(world, machine),
                                           .incarnation = (uint64_t)world->now_ns,
                                           .connection = ++node->connection,
                                           .chips = core_cluster(world->core)->machines[machine].chip_count,
                                           .software = STR("simulation"),
                                           .errands = true}};
    node->connected = true;
    node->dead = false;
    node->reports = 0;
    world_say(world, machine, &message);
    message.kind = FROM_AGENT_HELLO;
    world_say(world, machine, &message);
}

void fleet_heartbeats(struct simulation_world *world)
{
    struct from_agent message = {.kind = FROM_AGENT_HEARTBEAT};
    message.heartbeat.sent_ns = message.heartbeat.wall_ns = world->now_ns;
    for (uint32_t machine = 0; machine < world->scenario->machines; machine++) {
        if (!world->nodes[machine].connected)
            continue;
        world->outcome->heartbeats++;
        world_say(world, machine, &message);
    }
}

/* Handles a session that the driver ends: its machine's lease has expired, or it said Hello twice. */
void fleet_closed(struct simulation_world *world, uint32_t machine)
{
    world->nodes[machine].connected = false;
}

static void fleet_disconnect(struct simulation_world *world, uint32_t machine)
{
    drive_session session = 1 + 2 * (drive_session)machine;
    world->nodes[machine].connected = false;
    driver_closed(world->driver, session, true, "the machine died");
    driver_closed(world->driver, session + 1, true, "the machine died");
}

/* --- orders --------------------------------------------------------------------------------------- */

static void fleet_errand(struct simulation_world *world, uint32_t machine, const struct errand_start *start)
{
    struct sim_node *node = &world->nodes[machine];
    if (node->dead)
        return;
    node->errand_uid = start->errand; /* a machine has one errand at a time */
    int64_t takes_ns = 60 * NS_PER_SECOND < start->timeout_ns ? 60 * NS_PER_SECOND : start->timeout_ns / 2;
    due_set(world, &node->errand, DUE_ERRAND, world->now_ns + takes_ns);
}

void fleet_errand_due(struct simulation_world *world, uint32_t machine)
{
    struct sim_node *node = &world->nodes[machine];
    struct errand_end end = {
        .errand = node->errand_uid, .outcome = ERRAND_OK, .output = STR("{\"tests\":[]}")};
    node->errand_uid = 0;
    if (!node->connected || node->dead)
        return;
    struct from_agent message = {.kind = FROM_AGENT_REPORTS,
                                 .reports = {.number = ++node->reports, .errands = &end, .errand_count = 1}};
    world_say(world, machine, &message);
}

void fleet_told(struct simulation_world *world, uint32_t machine, const struct from_controller *message)
{
    struct sim_node *node = &world->nodes[machine];
    if (node->dead)
        return;
    switch (message->kind) {
    case FROM_CONTROLLER_START:
        runs_start(world, machine, &message->start);
        break;
    case FROM_CONTROLLER_STOP:
        runs_stop(world, machine, &message->stop);
        break;
    case FROM_CONTROLLER_REJOIN:
        runs_rejoin(world, &message->rejoin);
        break;
    case FROM_CONTROLLER_NOTICE:
        runs_notice(world, &message->notice);
        break;
    case FROM_CONTROLLER_ERRAND_START:
        fleet_errand(world, machine, &message->errand_start);
        break;
    case FROM_CONTROLLER_ERRAND_STOP:
        due_drop(world, &node->errand);
        break;
    default: /* acknowledgements, and messages for people or processes */
        break;
    }
}

/* --- failures ------------------------------------------------------------------------------------- */

static void fleet_signal(struct simulation_world *world, uint32_t machine, enum signal_assertion assertion)
{
    struct sim_node *node = &world->nodes[machine];
    if (!node->connected)
        return;
    const char *code = node->signal ? node->signal : world->scenario->failures[node->model].signal;
    struct signal signal = {.code = str_from(code),
                            .evidence = STR("simulated"),
                            .assertion = assertion,
                            .severity = SEVERITY_CRITICAL,
                            .chip = -1,
                            .first_ns = node->failed_ns,
                            .last_ns = world->now_ns,
                            .count = 1};
    struct from_agent message = {
        .kind = FROM_AGENT_REPORTS,
        .reports = {.number = ++node->reports, .signals = &signal, .signal_count = 1}};
    world_say(world, machine, &message);
}

static void fleet_kill(struct simulation_world *world, struct sim_node *node, bool all)
{
    list_for_each_safe(at, after, &node->ranks)
    {
        struct rank *rank = container_of(at, struct rank, on_machine);
        runs_crash(world, rank);
        if (!all)
            return;
    }
}

/* Counts the machine as out, or as returned. */
static void fleet_count_down(struct simulation_world *world, uint32_t machine, bool down)
{
    uint32_t chips = core_cluster(world->core)->machines[machine].chip_count;
    world->down_machines = down ? world->down_machines + 1 : world->down_machines - 1;
    world->down_chips = down ? world->down_chips + chips : world->down_chips - chips;
}

/* Begins a hidden corruption: nothing is visible, and the machine continues. */
static void fleet_goes_wrong(struct simulation_world *world, uint32_t machine)
{
    struct sim_node *node = &world->nodes[machine];
    int64_t found_ns = corruption_found_ns(world, &world->scenario->failures[node->model]);
    corruption_begins(world, machine);
    if (found_ns < world->end_ns - world->now_ns)
        due_set(world, &node->due, DUE_MACHINE, world->now_ns + found_ns);
}

void fleet_strike(struct simulation_world *world, uint32_t machine, uint32_t model,
                  const struct planned_failure *planned)
{
    struct sim_node *node = &world->nodes[machine];
    struct simulation_failure *count = &world->outcome->failures[model];
    const struct failure_model *failure = &world->scenario->failures[model];
    if (node->condition != MACHINE_WELL) {
        count->missed++;
        return;
    }
    count->struck++;
    tally_advance(world);
    node->condition = MACHINE_HIDDEN;
    node->model = model;
    node->failed_ns = world->now_ns;
    node->repair_s = planned ? planned->repair_s : -1;
    node->signal = planned ? planned->signal : NULL;
    if (failure->kind == FAILURE_CORRUPTION) {
        fleet_goes_wrong(world, machine);
        return;
    }
    if (failure->kind != FAILURE_PROCESS)
        fleet_count_down(world, machine, true);
    if (failure->kind != FAILURE_FALSE)
        fleet_kill(world, node, failure->kind != FAILURE_PROCESS);
    if (failure->kind == FAILURE_CRASH) {
        node->dead = true;
        due_drop(world, &node->errand);
        list_for_each_safe(at, after, &node->ranks)
            runs_forget(world, container_of(at, struct rank, on_machine));
    }
    due_set(world, &node->due, DUE_MACHINE, world->now_ns + draw_ns(&failure->detection, &world->times));
}

/* Reports the processes that have died, after the signal that explains it. */
static void fleet_report_crashed(struct simulation_world *world, uint32_t machine)
{
    list_for_each_safe(at, after, &world->nodes[machine].ranks)
    {
        struct rank *rank = container_of(at, struct rank, on_machine);
        if (rank->state != RANK_CRASHED)
            continue;
        struct task_report report = {.kind = REPORT_EXITED, .task = rank->task, .exit_code = -1, .signal = 6};
        runs_forget(world, rank);
        fleet_report(world, machine, &report, 1);
    }
}

static void fleet_found_out(struct simulation_world *world, uint32_t machine)
{
    struct sim_node *node = &world->nodes[machine];
    const struct failure_model *failure = &world->scenario->failures[node->model];
    if (failure->kind == FAILURE_PROCESS) {
        node->condition = MACHINE_WELL;
        fleet_report_crashed(world, machine);
        sources_renew(world, machine);
        return;
    }
    node->condition = MACHINE_OUT;
    if (failure->kind == FAILURE_CORRUPTION) {
        tally_advance(world);
        fleet_count_down(world, machine, true);
    }
    if (failure->kind == FAILURE_CRASH) {
        fleet_disconnect(world, machine);
    } else {
        fleet_signal(world, machine, SIGNAL_OCCUR);
        fleet_report_crashed(world, machine);
    }
    if (failure->kind == FAILURE_CORRUPTION)
        corruption_found(world, machine); /* after the signal that explains it */
    int64_t drawn_ns = draw_ns(&failure->repair, &world->times);
    due_set(world, &node->due, DUE_MACHINE,
            world->now_ns + (node->repair_s < 0 ? drawn_ns : (int64_t)(node->repair_s * 1e9)));
}

static void fleet_returns(struct simulation_world *world, uint32_t machine)
{
    struct sim_node *node = &world->nodes[machine];
    tally_advance(world);
    node->condition = MACHINE_WELL;
    fleet_count_down(world, machine, false);
    world->outcome->failures[node->model].out_s += (double)(world->now_ns - node->failed_ns) / 1e9;
    if (world->scenario->failures[node->model].kind == FAILURE_CRASH)
        fleet_hello(world, machine);
    else
        fleet_signal(world, machine, SIGNAL_RECOVER);
    sources_renew(world, machine);
}

void fleet_notice(struct simulation_world *world, uint32_t machine)
{
    CHECK(world->nodes[machine].condition == MACHINE_HIDDEN);
    due_drop(world, &world->nodes[machine].due);
    fleet_found_out(world, machine);
}

void fleet_due(struct simulation_world *world, uint32_t machine)
{
    if (world->nodes[machine].condition == MACHINE_HIDDEN)
        fleet_found_out(world, machine);
    else
        fleet_returns(world, machine);
}

/* --- begin and end -------------------------------------------------------------------------------- */

void fleet_begin(struct simulation_world *world)
{
    world->nodes = mem_alloc(world->scenario->machines * sizeof *world->nodes);
    for (uint32_t machine = 0; machine < world->scenario->machines; machine++) {
        list_init(&world->nodes[machine].ranks);
        fleet_hello(world, machine);
    }
}

void fleet_done(struct simulation_world *world)
{
    mem_free(world->nodes);
}
