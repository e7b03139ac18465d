/* machine.c - machines: the agent that ships between its ports, shims that outlive it and act on its fence,
 * and processes that run for a while. An agent tries the controllers in turn. */
#include "sim/ha/world.h"

#include <signal.h>

enum { FENCE_ACT_MS_MAX = 20 };

static int64_t machine_wall(const struct ha_machine *machine)
{
    return clock_at(&machine->wall, machine->world->now_ns);
}

static int64_t sooner(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* --- processes -------------------------------------------------------------------------------- */

static struct ha_process *process_of(const struct ha_machine *machine, obj_id task)
{
    for (size_t i = 0; i < machine->processes.len; i++)
        if (machine->processes.items[i]->task == task)
            return machine->processes.items[i];
    return NULL;
}

/* Returns the true time at which the shims act on the fence; INT64_MAX if there is none. */
static int64_t fence_true_ns(const struct ha_machine *machine)
{
    return machine->fence_boot_ns ? clock_when(&machine->boot, machine->fence_boot_ns) : INT64_MAX;
}

static void arm_processes(struct ha_machine *machine)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < machine->processes.len; i++) {
        const struct ha_process *process = machine->processes.items[i];
        if (!process->lives)
            continue;
        due_ns = sooner(due_ns, sooner(process->ends_ns, process->kill_ns));
        if (!process->fenced)
            due_ns = sooner(due_ns, fence_true_ns(machine));
    }
    if (due_ns < INT64_MAX)
        ha_at(machine->world, due_ns, HA_PROCESS, machine->index, 0, ++machine->process_number);
}

static void tell_exit(struct ha_machine *machine, struct ha_process *process)
{
    if (!machine->agent || process->told_exited || process->lives)
        return;
    process->told_exited = true;
    struct agent_event event = {.kind = AGENT_TASK_EXITED};
    event.exited = (struct agent_exit){.task = process->task,
                                       .stopped = process->stopping,
                                       .fenced = process->fenced,
                                       .exit_code = process->exit_code,
                                       .signal = process->signal,
                                       .started_ns = process->started_ns,
                                       .finished_ns = process->finished_ns,
                                       .pid = (int64_t)process->number,
                                       .message = STR("")};
    machine_feed(&machine->driver, &event);
}

static void process_dies(struct ha_machine *machine, struct ha_process *process, int32_t signal_number)
{
    process->lives = false;
    process->signal = signal_number;
    process->exit_code = signal_number ? -1 : 0;
    process->finished_ns = machine_wall(machine);
    ha_trace(machine->world, "%s: " STR_FORMAT " ends, signal %d", machine->name,
             STR_ARG(process->launch.name), signal_number);
    uint64_t tether = process->tether;
    process->tether = 0;
    ha_conn_release(machine->world, tether);
    tell_exit(machine, process);
}

void ha_machine_act(struct ha_world *world, const struct ha_event *event)
{
    struct ha_machine *machine = &world->machines[event->who];
    if (event->number != machine->process_number)
        return;
    for (size_t i = machine->processes.len; i-- > 0;) {
        struct ha_process *process = i < machine->processes.len ? machine->processes.items[i] : NULL;
        if (!process || !process->lives)
            continue;
        if (!process->fenced && fence_true_ns(machine) <= world->now_ns) {
            process->fenced = true;
            process->kill_ns =
                sooner(process->kill_ns, world->now_ns + ha_draw(world, 0, FENCE_ACT_MS_MAX * NS_PER_MS));
        }
        if (process->kill_ns <= world->now_ns)
            process_dies(machine, process, SIGKILL);
        else if (process->ends_ns <= world->now_ns)
            process_dies(machine, process, 0);
    }
    arm_processes(machine);
}

static void spawn(struct ha_machine *machine, const struct task_launch *launch)
{
    struct ha_world *world = machine->world;
    int64_t run_ms = 1000;
    if (process_of(machine, launch->task))
        return;
    struct ha_process *process = mem_alloc(sizeof(*process));
    task_launch_copy(&process->arena, launch, &process->launch);
    if (launch->argc > 1)
        str_to_i64(launch->argv[1], 1, 1000000, &run_ms);
    process->task = launch->task;
    process->number = ++world->next_id;
    process->lives = true;
    process->started_ns = machine_wall(machine);
    process->ends_ns = world->now_ns + ha_draw(world, run_ms / 2, run_ms) * NS_PER_MS;
    process->kill_ns = INT64_MAX;
    struct ha_conn *tether =
        ha_conn_find(world, machine->next_tether ? machine->next_tether : machine->kept_tether);
    if (tether) {
        process->tether = tether->id;
        tether->shims++;
    }
    world->outcome->starts++;
    ha_trace(world, "%s: begins " STR_FORMAT " of attempt %d on chips %llx", machine->name,
             STR_ARG(launch->name), launch->attempt, (unsigned long long)launch->chips);
    ha_oracle_spawned(world, machine, process);
    vec_push(&machine->processes, process);
    arm_processes(machine);
}

static void stop_process(struct ha_machine *machine, const struct task_stop *stop)
{
    struct ha_world *world = machine->world;
    struct ha_process *process = process_of(machine, stop->task);
    if (!process || !process->lives)
        return;
    process->stopping = true;
    process->kill_ns =
        sooner(process->kill_ns, world->now_ns + stop->grace_ns + ha_draw(world, 0, 5 * NS_PER_MS));
    if (stop->grace_ns > 0)
        process->ends_ns = sooner(process->ends_ns, world->now_ns + ha_draw(world, 0, 300 * NS_PER_MS));
    arm_processes(machine);
}

static void forget_task(struct ha_machine *machine, obj_id task)
{
    for (size_t i = machine->processes.len; i-- > 0;)
        if (machine->processes.items[i]->task == task && !machine->processes.items[i]->lives) {
            vec_push(&machine->world->buried, machine->processes.items[i]);
            vec_remove(&machine->processes, i);
        }
}

void ha_machine_bury(struct ha_world *world)
{
    for (size_t i = 0; i < world->buried.len; i++) {
        arena_done(&world->buried.items[i]->arena);
        mem_free(world->buried.items[i]);
    }
    vec_clear(&world->buried);
}

/* --- the agent's ports ------------------------------------------------------------------------ */

static int64_t port_boot_ns(void *context)
{
    const struct ha_machine *machine = context;
    return clock_at(&machine->boot, machine->world->now_ns);
}

static int64_t port_wall_ns(void *context)
{
    return machine_wall(context);
}

static bool port_connect(void *context)
{
    struct ha_machine *machine = context;
    ha_after(machine->world, 2 * ha_delay(machine->world), HA_CONNECT, machine->index, machine->agent_life,
             ++machine->connect_number);
    return true;
}

/* A descriptor of the tether stays open until the controller has welcomed the next one. */
static void port_close(void *context)
{
    struct ha_machine *machine = context;
    ha_conn_close_agent(machine->world, machine->conn);
    machine->conn = machine->tether = 0;
    machine->connect_number++; /* a connection attempt under way is void */
}

static void port_send(void *context, const struct from_agent *message)
{
    struct ha_machine *machine = context;
    struct ha_conn *conn = ha_conn_find(machine->world, machine->conn);
    if (conn && conn->agent_open && conn->controller_open)
        ha_conn_send_agent(machine->world, conn, message);
}

static void port_tether(void *context, const struct from_agent *message)
{
    struct ha_machine *machine = context;
    ha_conn_close_agent(machine->world, machine->next_tether);
    machine->next_tether = machine->tether;
    ha_conn_send_agent(machine->world, ha_conn_find(machine->world, machine->tether), message);
}

static void port_tether_welcome(void *context)
{
    struct ha_machine *machine = context;
    ha_conn_close_agent(machine->world, machine->kept_tether);
    machine->kept_tether = machine->next_tether;
    machine->next_tether = 0;
}

static void port_note(void *context, const char *text)
{
    const struct ha_machine *machine = context;
    ha_trace(machine->world, "%s: %s", machine->name, text);
}

static void port_carry_out(void *context, const struct agent_effect *effect)
{
    struct ha_machine *machine = context;
    switch (effect->kind) {
    case AGENT_FENCE:
        machine->fence_boot_ns = effect->fence_ns;
        arm_processes(machine);
        break;
    case AGENT_LAUNCH:
        spawn(machine, effect->launch);
        break;
    case AGENT_STOP:
        stop_process(machine, &effect->stop);
        break;
    case AGENT_FORGET:
        forget_task(machine, effect->task);
        break;
    case AGENT_NOTE:
        ha_trace(machine->world, "%s: " STR_FORMAT, machine->name, STR_ARG(effect->note));
        break;
    case AGENT_KEEP_CLUSTER:
        machine->cluster = effect->cluster;
        break;
    case AGENT_STRANGER:
        ha_fail(machine->world, TORTURE_SAFETY, "%s: a controller is of cluster %016llx, not %016llx",
                machine->name, (unsigned long long)effect->cluster, (unsigned long long)machine->cluster);
        break;
    default: /* no task here has a connection to its agent, and no errand is ordered */
        break;
    }
}

static void port_fed(void *context)
{
    struct ha_machine *machine = context;
    agent_check_invariants(machine->agent);
    int64_t due_ns = agent_deadline(machine->agent);
    if (due_ns < INT64_MAX)
        ha_at(machine->world, clock_when(&machine->boot, due_ns), HA_TICK, machine->index,
              machine->agent_life, ++machine->tick_number);
}

/* --- connections ------------------------------------------------------------------------------ */

void ha_machine_connected(struct ha_world *world, const struct ha_event *event)
{
    struct ha_machine *machine = &world->machines[event->who];
    if (!machine->agent || event->id != machine->agent_life || event->number != machine->connect_number)
        return;
    uint32_t place = HA_PLACE_MACHINE + machine->index;
    struct ha_controller *controller = &world->controllers[machine->at];
    if (!ha_passes(world, place, machine->at, false) || !ha_passes(world, machine->at, place, false) ||
        controller->state != HA_LEADS || !driver_is_open(controller->driver)) {
        machine->at = (machine->at + 1) % world->swarm.controllers;
        machine_closed(&machine->driver);
        return;
    }
    machine->tether = ha_conn_open(machine, controller, true)->id;
    machine_opened(&machine->driver, true);
    machine->conn = ha_conn_open(machine, controller, false)->id;
    machine_opened(&machine->driver, false);
}

static bool is_own(const struct ha_machine *machine, const struct ha_conn *conn)
{
    return machine->agent && (machine->conn == conn->id || machine->tether == conn->id);
}

void ha_machine_closed(struct ha_world *world, struct ha_conn *conn)
{
    struct ha_machine *machine = &world->machines[conn->machine];
    bool own = is_own(machine, conn);
    ha_conn_close_agent(world, conn->id);
    if (own)
        machine_closed(&machine->driver);
}

void ha_machine_hears(struct ha_world *world, struct ha_conn *conn, const struct from_controller *message)
{
    struct ha_machine *machine = &world->machines[conn->machine];
    if (is_own(machine, conn))
        machine_message(&machine->driver, machine->tether == conn->id, message);
}

void ha_machine_tick(struct ha_world *world, const struct ha_event *event)
{
    struct ha_machine *machine = &world->machines[event->who];
    if (machine->agent && event->id == machine->agent_life && event->number == machine->tick_number)
        machine_feed(&machine->driver, &(struct agent_event){.kind = AGENT_TICK});
}

/* --- the agent's process ---------------------------------------------------------------------- */

void ha_machine_init(struct ha_world *world, uint32_t index)
{
    struct ha_machine *machine = &world->machines[index];
    int64_t drift_ppm = ha_draw(world, -(int64_t)world->swarm.drift_ppm, world->swarm.drift_ppm);
    machine->world = world;
    machine->index = index;
    snprintf(machine->name, sizeof(machine->name), "m-%u", index + 1);
    machine->boot = (struct sim_clock){0, NS_PER_SECOND, drift_ppm};
    machine->wall = (struct sim_clock){0, INT64_C(1700000000) * NS_PER_SECOND, drift_ppm};
    machine->at = (uint32_t)ha_draw(world, 0, world->swarm.controllers - 1);
    ha_after(world, ha_draw(world, 0, NS_PER_SECOND), HA_AGENT, index, 0, 0);
}

static void adopt_process(struct ha_machine *machine, struct ha_process *process)
{
    if (!process->lives) {
        tell_exit(machine, process);
        return;
    }
    struct agent_event event = {.kind = AGENT_ADOPTED};
    event.adopted.task = process->task;
    event.adopted.attempt = process->launch.attempt;
    event.adopted.name = process->launch.name;
    event.adopted.launch = &process->launch;
    event.adopted.pid = (int64_t)process->number;
    event.adopted.started_ns = process->started_ns;
    machine_feed(&machine->driver, &event);
}

void ha_machine_start(struct ha_world *world, uint32_t index)
{
    struct ha_machine *machine = &world->machines[index];
    if (machine->agent)
        return;
    struct agent_config config = {.machine = str_from(machine->name),
                                  .software = STR("torture"),
                                  .incarnation = (uint64_t)machine_wall(machine),
                                  .chips = HA_CHIPS,
                                  .cpu_milli = 64000,
                                  .memory_bytes = INT64_C(1) << 40,
                                  .controllers = world->swarm.controllers,
                                  .cluster = machine->cluster,
                                  .seed = rng_next(&world->rng)};
    struct agent_ports ports = {.context = machine,
                                .boot_ns = port_boot_ns,
                                .wall_ns = port_wall_ns,
                                .connect = port_connect,
                                .close = port_close,
                                .send = port_send,
                                .tether = port_tether,
                                .tether_welcome = port_tether_welcome,
                                .note = port_note,
                                .carry_out = port_carry_out,
                                .fed = port_fed};
    machine->agent_life++;
    machine->agent = agent_new(&config);
    machine_driver_init(&machine->driver, machine->agent, &ports, world->shared, true);
    for (size_t i = 0; i < machine->processes.len; i++)
        adopt_process(machine, machine->processes.items[i]);
    machine_feed(&machine->driver, &(struct agent_event){.kind = AGENT_BOOT});
}

static void end_agent(struct ha_machine *machine)
{
    struct ha_world *world = machine->world;
    if (!machine->agent)
        return;
    agent_free(machine->agent);
    machine_driver_done(&machine->driver);
    machine->agent = NULL;
    ha_conn_close_agent(world, machine->conn);
    ha_conn_close_agent(world, machine->tether);
    ha_conn_close_agent(world, machine->kept_tether);
    ha_conn_close_agent(world, machine->next_tether);
    machine->conn = machine->tether = machine->kept_tether = machine->next_tether = 0;
    for (size_t i = 0; i < machine->processes.len; i++)
        machine->processes.items[i]->told_exited = false;
}

void ha_machine_crash(struct ha_machine *machine)
{
    if (!machine->agent)
        return;
    ha_trace(machine->world, "%s: its agent is killed", machine->name);
    end_agent(machine);
    ha_after(machine->world, ha_draw(machine->world, 10 * NS_PER_MS, 5 * NS_PER_SECOND), HA_AGENT,
             machine->index, 0, 0);
}

void ha_machine_kill_task(struct ha_machine *machine)
{
    if (machine->processes.len == 0)
        return;
    struct ha_process *process =
        machine->processes.items[rng_below(&machine->world->rng, machine->processes.len)];
    if (process->lives)
        process_dies(machine, process, SIGKILL);
}

void ha_machine_done(struct ha_machine *machine)
{
    end_agent(machine);
    for (size_t i = 0; i < machine->processes.len; i++)
        vec_push(&machine->world->buried, machine->processes.items[i]);
    vec_done(&machine->processes);
}
