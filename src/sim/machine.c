/* machine.c - one machine: its power, its clocks, and the process of its agent, with the ports around
 * agent_step(). */
#include "sim/world.h"

#include "base/units.h"

#define CONNECT_TIMEOUT_NS (2 * NS_PER_SECOND)

int64_t machine_boot_ns(const struct world *world, const struct sim_machine *machine)
{
    return clock_at(&machine->boot, world->now_ns);
}

int64_t machine_wall_ns(const struct world *world, const struct sim_machine *machine)
{
    return clock_at(&machine->wall, world->now_ns);
}

bool machine_reads(const struct sim_machine *machine)
{
    return machine->agent && !machine->paused;
}

void machine_init(struct world *world, uint32_t index)
{
    struct sim_machine *machine = &world->machines[index];
    machine->index = index;
    snprintf(machine->name, sizeof(machine->name), "m-%u", index + 1);
    int64_t drift_ppm = world_draw(world, -(int64_t)world->swarm.drift_ppm, world->swarm.drift_ppm);
    machine->boot.drift_ppm = drift_ppm;
    machine->wall = (struct sim_clock){
        0, INT64_C(1700000000) * NS_PER_SECOND + world_draw(world, 0, NS_PER_SECOND), drift_ppm};
    machine->slow_ns = world_chance(world, 200000) ? world_draw(world, 0, 10 * NS_PER_MS) : 0;
}

/* --- the agent's step ------------------------------------------------------------------------- */

static void arm_tick(struct world *world, struct sim_machine *machine)
{
    int64_t due_ns = agent_deadline(machine->agent);
    if (due_ns == INT64_MAX)
        return;
    world_at(world, clock_when(&machine->boot, due_ns) + machine->slow_ns, SIM_AGENT_TICK, machine->index,
             machine->agent_life, ++machine->tick_number);
}

static void port_send(void *context, const struct from_agent *message)
{
    struct sim_machine *machine = context;
    struct conn *conn = net_find(machine->world, machine->conn);
    if (conn && conn->agent_open)
        net_send_agent(machine->world, conn, message);
}

static bool port_connect(void *context)
{
    struct sim_machine *machine = context;
    struct world *world = machine->world;
    int64_t delay_ns = world_draw(world, world->swarm.delay_min_ns, 2 * world->swarm.delay_max_ns);
    world_after(world, delay_ns, SIM_CONNECTED, machine->index, machine->agent_life,
                ++machine->connect_number);
    return true;
}

static void close_one(struct world *world, uint64_t id)
{
    struct conn *conn = net_find(world, id);
    if (conn)
        net_close_agent(world, conn);
}

/* The host keeps a descriptor of the tether until the controller has welcomed the next one. */
static void port_close(void *context)
{
    struct sim_machine *machine = context;
    close_one(machine->world, machine->conn);
    machine->conn = machine->tether = 0;
    machine->connect_number++; /* a connection attempt under way is void */
}

/* PLANT_SKIP_FENCE: no task is killed because a lease has expired. */
static bool fence_is_skipped(const struct world *world, const struct sim_machine *machine,
                             const struct task_stop *stop)
{
    return world->options.plant == PLANT_SKIP_FENCE && stop->grace_ns == 0 &&
           !agent_is_welcome(machine->agent);
}

/* --- probes and hooks ------------------------------------------------------------------------- */

static void act_begin(struct world *world, struct sim_machine *machine, const struct agent_effect *effect)
{
    int64_t most_ns = effect->act.timeout_ns < NS_PER_SECOND ? effect->act.timeout_ns : NS_PER_SECOND;
    int64_t takes_ns = world_draw(world, 0, world_chance(world, 900000) ? most_ns / 20 : most_ns);
    struct sim_act act = {++world->next_id, effect->act.task, effect->container, effect->run,
                          effect->act.act};
    vec_push(&machine->acts, act);
    world_after(world, takes_ns, SIM_ACTED, machine->index, act.id, machine->agent_life);
}

static void act_cancel(struct sim_machine *machine, obj_id task, uint32_t container)
{
    for (size_t i = machine->acts.len; i-- > 0;)
        if (machine->acts.items[i].task == task && machine->acts.items[i].container == container)
            vec_remove(&machine->acts, i);
}

void machine_acted(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    size_t at = 0;
    while (at < machine->acts.len && machine->acts.items[at].id != event->id)
        at++;
    if (!machine->agent || event->number != machine->agent_life || at == machine->acts.len)
        return;
    if (machine->paused) {
        world_after(world, 50 * NS_PER_MS, SIM_ACTED, event->machine, event->id, event->number);
        return;
    }
    struct sim_act act = machine->acts.items[at];
    vec_remove(&machine->acts, at);
    const struct process *process = process_find(machine, act.task, act.container);
    bool fails = !process || process->state != PROCESS_RUNNING || process->run != act.run ||
                 (!world->healing && world_chance(world, world->swarm.probe_fail_ppm));
    struct agent_event acted = {.kind = AGENT_ACTED, .container = act.container, .run = act.run};
    acted.acted.task = act.task;
    acted.acted.act = act.act;
    acted.acted.ok = !fails;
    acted.acted.message = fails ? STR("it said no") : STR("");
    machine_event(world, machine, &acted);
}

/* --- errands ---------------------------------------------------------------------------------- */

static void errand_begin(struct world *world, struct sim_machine *machine, const struct errand_start *start)
{
    /* After everything has healed, tests before a gang's start must leave it time to become ready. */
    int64_t limit_ns = world->healing ? NS_PER_SECOND / 4 : 4 * NS_PER_SECOND;
    int64_t most_ns = start->timeout_ns < limit_ns ? start->timeout_ns : limit_ns;
    struct sim_errand errand = {start->errand, start->kind};
    vec_push(&machine->errands, errand);
    world_trace(world, "%s: errand of kind %d", machine->name, (int)start->kind);
    world_after(world, world_draw(world, 0, most_ns), SIM_ERRAND_ENDED, machine->index, start->errand,
                machine->agent_life);
}

/* Removes an errand. Returns false if it does not run, or no longer runs. */
static bool errand_stop(struct sim_machine *machine, obj_id errand, enum errand_kind *ret_kind)
{
    for (size_t i = 0; i < machine->errands.len; i++)
        if (machine->errands.items[i].uid == errand) {
            *ret_kind = machine->errands.items[i].kind;
            vec_remove(&machine->errands, i);
            return true;
        }
    return false;
}

/* Writes the record of a diagnosis, at times malformed. */
static struct str errand_record(struct world *world, struct buf *out)
{
    static const char states[] = "RSSSTD";
    if (!world->healing && world_chance(world, world->swarm.probe_fail_ppm))
        return STR("{\"ranks\":[{\"rank\":\"0\"},");
    buf_printf(out, "{\"ranks\":[{\"rank\":%lld,\"state\":\"%c\",\"step\":%lld,\"stepAgeMs\":9000}]}",
               (long long)world_draw(world, 0, 3),
               world->healing ? 'S' : states[world_draw(world, 0, (int64_t)sizeof states - 2)],
               (long long)world_draw(world, 1, world->healing ? 1 : 2));
    return buf_str(out);
}

void machine_errand_ended(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    if (!machine->agent || event->number != machine->agent_life)
        return;
    if (machine->paused) {
        world_after(world, 50 * NS_PER_MS, SIM_ERRAND_ENDED, event->machine, event->id, event->number);
        return;
    }
    enum errand_kind kind;
    if (!errand_stop(machine, event->id, &kind))
        return; /* the errand was stopped */
    char output[128];
    int64_t slow = world->healing || world_chance(world, 950000) ? 1 : 20;
    snprintf(output, sizeof output, "{\"tests\":[{\"test\":\"cpu\",\"workNanoseconds\":%lld}]}",
             (long long)(slow * world_draw(world, 100, 150)));
    struct buf record BUF_CLEANUP = {0};
    struct errand_end end = {.errand = event->id, .outcome = ERRAND_OK, .output = str_from(output)};
    if (kind == ERRAND_DIAGNOSE)
        end.output = errand_record(world, &record);
    if (!world->healing && world_chance(world, world->swarm.probe_fail_ppm)) {
        bool late = world_chance(world, 300000);
        end.outcome = late ? ERRAND_TIMED_OUT : ERRAND_FAILED;
        end.exit_code = late ? 0 : 1;
        end.output = world_chance(world, 500000)
                         ? STR("{\"tests\":[{\"test\":\"cpu\",\"result\":\"failed\"}]}")
                         : STR("it did not go well");
    }
    machine_event(world, machine, &(struct agent_event){.kind = AGENT_ERRAND_ENDED, .errand_ended = &end});
}

/* --- effects ---------------------------------------------------------------------------------- */

/* Checks that the offset which the agent measured is true, within its stated error and the drift of the
 * clocks meanwhile. */
static void check_clock(struct world *world, const struct sim_machine *machine,
                        const struct agent_effect *effect)
{
    int64_t error_ns = effect->clock.error_ns;
    int64_t ahead_ns = machine_wall_ns(world, machine) - clock_at(&world->controller.wall, world->now_ns);
    if (world->now_ns - world->jumped_ns <= 3 * error_ns) /* a clock was set in between */
        return;
    int64_t off_ns = effect->clock.ahead_ns - ahead_ns;
    if (off_ns > error_ns * 3 / 2 + NS_PER_US || off_ns < -error_ns * 3 / 2 - NS_PER_US)
        world_fail(world, TORTURE_SAFETY, "%s: its clock is %lld ns ahead, but it measured %lld +- %lld",
                   machine->name, (long long)ahead_ns, (long long)effect->clock.ahead_ns,
                   (long long)error_ns);
}

static void move_fence(struct world *world, struct sim_machine *machine, int64_t fence_ns)
{
    machine->fence_boot_ns = (uint64_t)fence_ns;
    oracle_fence(world, machine);
    process_fence_moved(world, machine);
}

static void fail_stranger(struct world *world, const struct sim_machine *machine,
                          const struct agent_effect *effect)
{
    world_fail(world, TORTURE_SAFETY, "%s: the controller is of cluster %016llx, not %016llx", machine->name,
               (unsigned long long)effect->cluster, (unsigned long long)machine->cluster);
}

static void port_carry_out(void *context, const struct agent_effect *effect)
{
    struct sim_machine *machine = context;
    struct world *world = machine->world;
    switch (effect->kind) {
    case AGENT_CONNECT:
    case AGENT_CLOSE:
    case AGENT_SEND:
        CHECK_UNREACHABLE(); /* handled by the driver */
    case AGENT_FENCE:
        move_fence(world, machine, effect->fence_ns);
        break;
    case AGENT_LAUNCH:
        process_spawn(world, machine, effect->launch, effect->container, effect->run);
        break;
    case AGENT_STOP:
        if (!fence_is_skipped(world, machine, &effect->stop))
            process_stop(world, machine, effect->stop.task, effect->container, effect->stop.grace_ns);
        break;
    case AGENT_FORGET:
        process_forget(world, machine, effect->task);
        break;
    case AGENT_CLIENT_WELCOME:
        process_welcome(world, machine, effect->client.client, effect->client.restore_step);
        break;
    case AGENT_CLIENT_REJOIN:
        process_rejoin(world, machine, effect->rejoin.client, effect->rejoin.order);
        break;
    case AGENT_CLIENT_FENCED:
        process_fenced_client(world, machine, effect->client.client);
        break;
    case AGENT_NOTE:
        world_trace(world, "%s: " STR_FORMAT, machine->name, STR_ARG(effect->note));
        break;
    case AGENT_CLIENT_DRAIN:
        process_drain(world, machine, effect->client.client);
        break;
    case AGENT_CLIENT_TABLES:
        routes_told(world, machine, effect);
        break;
    case AGENT_CLIENT_COMMITTED:
    case AGENT_LOG_OPEN:
    case AGENT_LOG_CLOSE:
        break;
    case AGENT_ACT:
        act_begin(world, machine, effect);
        break;
    case AGENT_ACT_CANCEL:
        act_cancel(machine, effect->task, effect->container);
        break;
    case AGENT_CLOCK:
        check_clock(world, machine, effect);
        break;
    case AGENT_ERRAND_START:
        errand_begin(world, machine, effect->errand_start);
        break;
    case AGENT_SAY_AGAIN:
        world_after(world, world_draw(world, 0, NS_PER_SECOND), SIM_SAY_AGAIN, machine->index, 0, 0);
        break;
    case AGENT_ERRAND_STOP:
        (void)errand_stop(machine, effect->task, &(enum errand_kind){0});
        break;
    case AGENT_KEEP_CLUSTER:
        machine->cluster = effect->cluster;
        break;
    case AGENT_STRANGER:
        fail_stranger(world, machine, effect);
        break;
    }
}

static void port_tether(void *context, const struct from_agent *message)
{
    struct sim_machine *machine = context;
    struct world *world = machine->world;
    close_one(world, machine->next_tether);
    machine->next_tether = machine->tether;
    net_send_agent(world, net_find(world, machine->tether), message);
}

static void port_tether_welcome(void *context)
{
    struct sim_machine *machine = context;
    close_one(machine->world, machine->kept_tether);
    machine->kept_tether = machine->next_tether;
    machine->next_tether = 0;
}

static void port_note(void *context, const char *text)
{
    const struct sim_machine *machine = context;
    world_trace(machine->world, "%s: %s", machine->name, text);
}

static void port_fed(void *context)
{
    struct sim_machine *machine = context;
    agent_check_invariants(machine->agent);
    arm_tick(machine->world, machine);
}

static int64_t port_boot_ns(void *context)
{
    const struct sim_machine *machine = context;
    return machine_boot_ns(machine->world, machine);
}

static int64_t port_wall_ns(void *context)
{
    const struct sim_machine *machine = context;
    return machine_wall_ns(machine->world, machine);
}

static void drive(struct world *world, struct sim_machine *machine)
{
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
    machine->world = world;
    machine_driver_init(&machine->driver, machine->agent, &ports, world->shared, true);
}

void machine_event(struct world *world, struct sim_machine *machine, struct agent_event *event)
{
    CHECK(machine_reads(machine));
    machine_feed(&machine->driver, event);
}

void machine_tick(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    if (!machine_reads(machine) || event->id != machine->agent_life || event->number != machine->tick_number)
        return;
    machine_event(world, machine, &(struct agent_event){.kind = AGENT_TICK});
}

/* --- the connection --------------------------------------------------------------------------- */

void machine_connected(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    if (!machine->agent || event->id != machine->agent_life || event->number != machine->connect_number)
        return;
    if (machine->paused) {
        world_after(world, 50 * NS_PER_MS, SIM_CONNECTED, machine->index, event->id, event->number);
        return;
    }
    if (!net_reachable(world, machine)) {
        /* The kernel repeats attempts; if the network heals meanwhile, the connection is made late. */
        int64_t wait_ns = world_draw(world, 0, CONNECT_TIMEOUT_NS);
        if (world_chance(world, 500000)) {
            world_after(world, wait_ns, SIM_CONNECTED, machine->index, event->id, event->number);
            return;
        }
        machine_closed(&machine->driver);
        return;
    }
    if (!controller_is_open(world)) {
        machine_closed(&machine->driver);
        return;
    }
    machine->tether = net_open(world, machine, true)->id;
    machine_opened(&machine->driver, true);
    machine->conn = net_open(world, machine, false)->id;
    machine_opened(&machine->driver, false);
}

void machine_conn_closed(struct world *world, struct conn *conn)
{
    struct sim_machine *machine = &world->machines[conn->machine];
    bool own = machine_reads(machine) && (machine->conn == conn->id || machine->tether == conn->id);
    net_close_agent(world, conn);
    if (!own)
        return;
    machine_closed(&machine->driver);
}

void machine_hears(struct world *world, struct conn *conn, const struct from_controller *message)
{
    struct sim_machine *machine = &world->machines[conn->machine];
    if (machine_reads(machine) && (machine->conn == conn->id || machine->tether == conn->id))
        machine_message(&machine->driver, machine->tether == conn->id, message);
}

/* --- the agent's process ---------------------------------------------------------------------- */

static void adopt_task(struct world *world, struct sim_machine *machine, const struct process *process)
{
    struct agent_event event = {.kind = AGENT_ADOPTED};
    event.adopted.task = process->task;
    event.adopted.attempt = process->launch.attempt; /* the record has the attempt of its start */
    event.adopted.name = process->launch.name;
    event.adopted.launch = &process->launch;
    if (process->launch.container_count == 0) {
        event.adopted.pid = (int64_t)process->number;
        event.adopted.started_ns = process->started_wall_ns;
    }
    machine_event(world, machine, &event);
}

static void adopt(struct world *world, struct sim_machine *machine, struct process *process)
{
    bool contained = process->launch.container_count > 0;
    if (contained && !agent_task_known(machine->agent, process->task))
        adopt_task(world, machine, process);
    if (contained || !process_lives(process)) {
        process_tell(world, machine, process);
        return;
    }
    process->told_started = process->state == PROCESS_RUNNING;
    adopt_task(world, machine, process);
}

void machine_agent_start(struct world *world, struct sim_machine *machine)
{
    machine->start_due = false;
    if (machine->agent || !machine->powered)
        return;
    machine->agent_life++;
    machine->paused = false;
    int64_t wall_ns = machine_wall_ns(world, machine);
    machine->incarnation = (uint64_t)wall_ns;
    struct agent_config config = {.machine = str_from(machine->name),
                                  .software = STR("torture"),
                                  .incarnation = machine->incarnation,
                                  .chips = world->swarm.chips,
                                  .cpu_milli = 64000,
                                  .memory_bytes = INT64_C(1) << 40,
                                  .cluster = machine->cluster,
                                  .seed = rng_next(&world->rng)};
    machine->agent = agent_new(&config);
    drive(world, machine);
    world_trace(world, "%s: agent starts", machine->name);
    for (size_t i = 0; i < machine->processes.len; i++)
        adopt(world, machine, machine->processes.items[i]);
    machine_event(world, machine, &(struct agent_event){.kind = AGENT_BOOT});
}

static void agent_ends(struct sim_machine *machine)
{
    agent_free(machine->agent);
    machine_driver_done(&machine->driver);
    vec_clear(&machine->acts);
    vec_clear(&machine->errands);
    machine->agent = NULL;
    machine->paused = false;
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        process->told_started = process->told_exited = false;
        process->client = 0;
    }
}

static void plan_start(struct world *world, struct sim_machine *machine, int64_t low_ns, int64_t high_ns)
{
    if (machine->start_due)
        return;
    machine->start_due = true;
    world_after(world, world_draw(world, low_ns, high_ns), SIM_AGENT_START, machine->index, 0, 0);
}

void machine_agent_crash(struct world *world, struct sim_machine *machine)
{
    if (!machine->agent)
        return;
    world_trace(world, "%s: agent is killed", machine->name);
    agent_ends(machine);
    port_close(machine);
    close_one(world, machine->kept_tether);
    close_one(world, machine->next_tether);
    machine->kept_tether = machine->next_tether = 0;
    plan_start(world, machine, 10 * NS_PER_MS, 2 * world->swarm.lease_ns);
}

void machine_resume(struct world *world, struct sim_machine *machine)
{
    if (!machine->agent || !machine->paused)
        return;
    machine->paused = false;
    machine_event(world, machine, &(struct agent_event){.kind = AGENT_TICK});
    for (size_t i = 0; i < machine->processes.len && machine_reads(machine);) {
        struct process *process = machine->processes.items[i];
        bool dead = process->state == PROCESS_DEAD;
        bool owed = dead ? !process->told_exited : !process->told_started && process->started_wall_ns;
        /* the agent may have started and removed others: begin again */
        process_tell(world, machine, process);
        i = owed ? 0 : i + 1;
    }
    net_unblock(world);
}

/* --- the whole machine ------------------------------------------------------------------------ */

void machine_kill_all(struct world *world, struct sim_machine *machine)
{
    if (!machine->powered)
        return;
    world_trace(world, "%s: everything on it is killed", machine->name);
    machine_agent_crash(world, machine);
    for (size_t i = 0; i < machine->processes.len; i++)
        process_kill(world, machine, machine->processes.items[i]);
}

void machine_power_off(struct world *world, struct sim_machine *machine)
{
    if (!machine->powered)
        return;
    world_trace(world, "%s: power is lost", machine->name);
    machine->powered = false;
    net_vanish(world, machine);
    if (machine->agent)
        agent_ends(machine);
    machine->conn = machine->tether = machine->kept_tether = machine->next_tether = 0;
    machine->fence_boot_ns = 0;
    bool forgets = world_chance(world, world->swarm.reboot_forgets_ppm);
    machine->cluster = forgets ? 0 : machine->cluster;
    for (size_t i = machine->processes.len; i-- > 0;) {
        struct process *process = machine->processes.items[i];
        process->tether = 0;
        process_kill(world, machine, process);
        if (forgets) {
            vec_remove(&machine->processes, i);
            process_free(process);
        }
    }
    world_after(world, world_draw(world, 100 * NS_PER_MS, 4 * world->swarm.lease_ns), SIM_MACHINE_START,
                machine->index, 0, 0);
}

void machine_power_on(struct world *world, struct sim_machine *machine)
{
    if (machine->powered)
        return;
    machine->powered = true;
    machine->boot.base_ns = world->now_ns;
    machine->boot.offset_ns = NS_PER_SECOND;
    plan_start(world, machine, 0, 500 * NS_PER_MS);
}

void machine_done(struct sim_machine *machine)
{
    if (machine->agent)
        agent_ends(machine);
    for (size_t i = 0; i < machine->processes.len; i++)
        process_free(machine->processes.items[i]);
    vec_done(&machine->processes);
    vec_done(&machine->acts);
    vec_done(&machine->errands);
}
