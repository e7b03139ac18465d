/* process.c - the shims of tasks and their processes: they start late, step, save shards, fail, ignore
 * SIGTERM, and die by the fence whether their agent lives or not. The command of a process defines its
 * behaviour: sim RUN_MS FAIL_PPM STEP_MS CHECKPOINT_EVERY (spec_pod.c). */
#include "sim/world.h"

#include <signal.h>

#include "base/hash.h"
#include "base/units.h"

enum { FENCE_ACT_MS_MAX = 20 };
/* In the second phase tasks end soon: less than a job's deadline (spec.c). */
#define HASTE_NS       (300 * NS_PER_MS)
#define STEPS_A_DAMAGE 1500

bool process_lives(const struct process *process)
{
    return process->state != PROCESS_DEAD;
}

struct process *process_find(const struct sim_machine *machine, obj_id task, uint32_t container)
{
    for (size_t i = 0; i < machine->processes.len; i++)
        if (machine->processes.items[i]->task == task && machine->processes.items[i]->container == container)
            return machine->processes.items[i];
    return NULL;
}

static struct process *find_armed(const struct sim_machine *machine, uint64_t armed)
{
    for (size_t i = 0; i < machine->processes.len; i++)
        if (machine->processes.items[i]->armed == armed)
            return machine->processes.items[i];
    return NULL;
}

void process_free(struct process *process)
{
    arena_done(&process->arena);
    mem_free(process);
}

/* Removes a process from its machine. Callers may still refer to it, so it is freed after the world's
 * event. */
static void bury(struct world *world, struct sim_machine *machine, size_t index)
{
    vec_push(&world->buried, machine->processes.items[index]);
    vec_remove(&machine->processes, index);
}

void process_bury_all(struct world *world)
{
    for (size_t i = 0; i < world->buried.len; i++)
        process_free(world->buried.items[i]);
    vec_clear(&world->buried);
}

void process_forget(struct world *world, struct sim_machine *machine, obj_id task)
{
    for (size_t i = machine->processes.len; i-- > 0;) {
        const struct process *process = machine->processes.items[i];
        if (process->task == task && !process_lives(process))
            bury(world, machine, i);
    }
}

/* --- time ------------------------------------------------------------------------------------- */

/* Returns the true time at which the shim acts on the fence; INT64_MAX if there is none. */
static int64_t fence_due(const struct world *world, const struct sim_machine *machine)
{
    if (!machine->fence_boot_ns || world->options.plant == PLANT_SKIP_FENCE)
        return INT64_MAX;
    return clock_when(&machine->boot, (int64_t)machine->fence_boot_ns);
}

static int64_t earliest(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

void process_arm(struct world *world, struct sim_machine *machine, struct process *process)
{
    int64_t due_ns = earliest(process->kill_ns, process->ends_ns);
    due_ns = earliest(due_ns, process->due_ns);
    due_ns = earliest(due_ns, process->rejoin_ns);
    due_ns = earliest(due_ns, process->routes.act_ns);
    if (!process->fenced)
        due_ns = earliest(due_ns, fence_due(world, machine));
    process->armed = ++world->next_id;
    process->wakes_ns = due_ns;
    world_at(world, due_ns, SIM_PROCESS, machine->index, process->task, process->armed);
}

void process_fence_moved(struct world *world, struct sim_machine *machine)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        if (process_lives(process) && fence_due(world, machine) < process->wakes_ns)
            process_arm(world, machine, process);
    }
}

/* --- life and death --------------------------------------------------------------------------- */

void process_tell(struct world *world, struct sim_machine *machine, struct process *process)
{
    if (!machine_reads(machine))
        return;
    if (!process->told_started && process->started_wall_ns && process->state != PROCESS_DEAD) {
        process->told_started = true;
        struct agent_event event = {
            .kind = AGENT_TASK_STARTED, .container = process->container, .run = process->run};
        event.started.task = process->task;
        event.started.pid = (int64_t)process->number;
        event.started.started_ns = process->started_wall_ns;
        machine_event(world, machine, &event);
    }
    if (!process->told_exited && process->state == PROCESS_DEAD) {
        process->told_exited = true;
        struct agent_event event = {
            .kind = AGENT_TASK_EXITED, .container = process->container, .run = process->run};
        const struct signature signature = {
            (enum signature_kind)world_draw(world, SIGNATURE_MEMORY, SIGNATURE_TEARDOWN), STR("said")};
        event.exited = (struct agent_exit){.task = process->task,
                                           .signatures = &signature,
                                           .signature_count = process->exit_code > 0,
                                           .stopped = process->stopping,
                                           .start_failed = process->start_fails && !process->started_wall_ns,
                                           .fenced = process->fenced,
                                           .exit_code = process->exit_code,
                                           .signal = process->signal,
                                           .started_ns = process->started_wall_ns,
                                           .finished_ns = process->finished_wall_ns,
                                           .pid = (int64_t)process->number,
                                           .message = STR("")};
        machine_event(world, machine, &event);
    }
}

static void tell_peers(struct world *world, const struct sim_machine *machine, const struct process *dead);

static void die(struct world *world, struct sim_machine *machine, struct process *process, int32_t exit_code,
                int32_t signal_number)
{
    if (!process_lives(process))
        return;
    process->state = PROCESS_DEAD;
    process->exit_code = signal_number ? -1 : exit_code;
    process->signal = signal_number;
    process->finished_wall_ns = machine_wall_ns(world, machine);
    world_trace(world, "%s: " STR_FORMAT " dies, %s %d", machine->name, STR_ARG(process->launch.name),
                signal_number ? "signal" : "exit code", signal_number ? signal_number : exit_code);
    uint64_t tether = process->tether;
    process->tether = 0;
    if (tether)
        net_release_shim(world, tether);
    process_tell(world, machine, process);
    tell_peers(world, machine, process);
}

void process_kill(struct world *world, struct sim_machine *machine, struct process *process)
{
    die(world, machine, process, 0, SIGKILL);
}

static const struct container_launch *container_of_process(const struct process *process)
{
    return process->launch.container_count ? &process->launch.containers[process->container] : NULL;
}

static int64_t argument(const struct process *process, size_t i, int64_t fallback)
{
    const struct container_launch *container = container_of_process(process);
    const struct str *argv = container ? container->argv : process->launch.argv;
    int64_t value = fallback;
    if (i < (container ? container->argc : process->launch.argc))
        str_to_i64(argv[i], 0, INT64_C(1) << 40, &value);
    return value;
}

/* Returns whether a process never ends by itself: a sidecar, or a main container that always restarts. */
static bool runs_for_ever(const struct process *process)
{
    const struct container_launch *container = container_of_process(process);
    return container && (container->role == CONTAINER_SIDECAR ||
                         (container->role == CONTAINER_MAIN && container->restart == RERUN_ALWAYS));
}

/* Draws whether a process can rejoin: all ranks of some JobSets can, none of others, and some ranks of a
 * few. */
static bool draw_rejoin(struct world *world, const struct process *process)
{
    uint32_t share = (uint32_t)(hash_mix(process->jobset ^ world->options.seed) % 1000000);
    if (share < world->swarm.rejoin_ppm)
        return true;
    return share < world->swarm.rejoin_ppm + world->swarm.rejoin_ppm / 8 && world_chance(world, 500000);
}

static bool is_spare(const struct process *process)
{
    return process->container == 0 && process->launch.rank >= process->launch.world;
}

static void draw_life(struct world *world, struct process *process)
{
    const struct swarm *swarm = &world->swarm;
    const struct container_launch *container = container_of_process(process);
    int64_t run_ns = argument(process, 1, 1000) * NS_PER_MS;
    process->can_rejoin = process->container == 0 && draw_rejoin(world, process);
    process->spare = is_spare(process);
    /* otherwise all ranks end at about the same time, so that more of them rejoin */
    if (!process->can_rejoin)
        run_ns = world_draw(world, run_ns / 2, run_ns);
    if (container && container->role == CONTAINER_INIT)
        run_ns = world_draw(world, 0, run_ns / 4);
    if (runs_for_ever(process) && world_chance(world, world->healing ? 1000000 : 700000))
        run_ns = INT64_C(1000000) * NS_PER_SECOND;
    else if (world->healing && run_ns > HASTE_NS)
        run_ns = HASTE_NS;
    process->start_fails = !world->healing && world_chance(world, swarm->start_fail_ppm);
    process->ignores_term = world_chance(world, swarm->ignore_term_ppm);
    if (!world->healing && world_chance(world, (uint32_t)argument(process, 2, 0))) {
        static const int32_t codes[] = {1, 2, 42, 137};
        process->exit_code = codes[rng_below(&world->rng, 4)];
        run_ns = world_draw(world, 0, run_ns);
    }
    process->due_ns = world->now_ns + world_draw(world, NS_PER_MS, 30 * NS_PER_MS);
    process->run_ns = run_ns;
    process->ends_ns = process->spare && process->exit_code == 0 ? INT64_MAX : process->due_ns + run_ns;
    process->kill_ns = INT64_MAX;
    process->step_ns = process->container == 0 ? argument(process, 3, 0) * NS_PER_MS : 0;
    process->checkpoint_every = (uint32_t)argument(process, 4, 0);
    process->step = process->saved_step = process->stand_step = -1;
    process->rejoin_ns = process->routes.act_ns = INT64_MAX;
    process->total = process->step_ns ? run_ns / process->step_ns : 0;
}

static uint64_t own_name_hash(const struct task_launch *launch)
{
    for (size_t i = 0; i < launch->rank_table.count; i++)
        if (launch->rank_table.entries[i].rank == launch->rank)
            return hash64(launch->jobset, launch->rank_table.entries[i].hostname.data,
                          launch->rank_table.entries[i].hostname.len);
    return hash64(launch->jobset, launch->name.data, launch->name.len);
}

/* Removes the record of the container's previous run. Returns false if the launcher knows this run already,
 * or the previous one lives. */
static bool make_room(struct world *world, struct sim_machine *machine, obj_id task, uint32_t container,
                      uint32_t run)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        const struct process *process = machine->processes.items[i];
        if (process->task != task || process->container != container)
            continue;
        if (process_lives(process) || process->run >= run)
            return false;
        bury(world, machine, i);
        return true;
    }
    return true;
}

void process_spawn(struct world *world, struct sim_machine *machine, const struct task_launch *launch,
                   uint32_t container, uint32_t run)
{
    if (!make_room(world, machine, launch->task, container, run))
        return; /* the launcher knows it already */
    struct process *process = mem_alloc(sizeof(*process));
    task_launch_copy(&process->arena, launch, &process->launch);
    process->container = container;
    process->run = run;
    process->task = launch->task;
    process->jobset = launch->jobset;
    process->attempt = process->writes_as = launch->attempt;
    process->rank = launch->rank;
    process->chips = launch->chips;
    process->number = ++world->next_id;
    process->name_hash = own_name_hash(launch);
    process->state = PROCESS_SPAWNING;
    draw_life(world, process);
    uint64_t newest = machine->next_tether ? machine->next_tether : machine->kept_tether;
    struct conn *tether = net_find(world, newest);
    if (tether) {
        process->tether = tether->id;
        tether->shims++;
    }
    world->outcome->starts++;
    world_trace(world,
                "%s: spawns " STR_FORMAT
                " of attempt %d, rank %u among %zu hosts, on chips %llx, container %u, run %u",
                machine->name, STR_ARG(launch->name), launch->attempt, launch->rank, launch->rank_table.count,
                (unsigned long long)launch->chips, container, run);
    oracle_spawned(world, machine, process);
    vec_push(&machine->processes, process);
    process_arm(world, machine, process);
}

void process_stop(struct world *world, struct sim_machine *machine, obj_id task, uint32_t container,
                  int64_t grace_ns)
{
    struct process *process = process_find(machine, task, container);
    if (!process || !process_lives(process))
        return;
    process->stopping = true;
    int64_t kill_ns = world->now_ns + grace_ns + world_draw(world, 0, 5 * NS_PER_MS) + machine->slow_ns;
    process->kill_ns = earliest(process->kill_ns, kill_ns);
    if (!process->ignores_term && grace_ns > 0 && process->state == PROCESS_RUNNING) {
        int64_t ends_ns = world->now_ns + world_draw(world, 0, 300 * NS_PER_MS);
        process->ends_ns = earliest(process->ends_ns, ends_ns);
        process->exit_code = world_chance(world, 500000) ? 143 : 0;
    }
    process_arm(world, machine, process);
}

/* --- what it does ----------------------------------------------------------------------------- */

static void say(struct world *world, struct sim_machine *machine, struct process *process,
                enum agent_event_kind kind)
{
    if (!process->client || !machine_reads(machine))
        return;
    struct agent_event event = {.kind = kind};
    event.client.client = process->client;
    event.client.task = process->task;
    event.client.attempt = process->attempt;
    event.client.can_rejoin = process->can_rejoin;
    event.client.spare = process->spare;
    event.client.step.step = process->step;
    event.client.step.total = process->total;
    event.client.step.pace = process->pace;
    event.client.saved_step = process->saved_step;
    event.client.peer_rank = process->lost_rank;
    machine_event(world, machine, &event);
}

/* The kernel closes the connections of a dead process. Its peers notice, if the network allows, and report
 * it. */
static void tell_peers(struct world *world, const struct sim_machine *machine, const struct process *dead)
{
    bool left = dead->exit_code == 0; /* it said goodbye */
    if (!dead->joined || dead->spare || left || !net_reachable(world, machine))
        return;
    for (uint32_t m = 0; m < world->swarm.machines; m++) {
        struct sim_machine *other_machine = &world->machines[m];
        if (!net_reachable(world, other_machine))
            continue;
        for (size_t i = 0; i < other_machine->processes.len; i++) {
            struct process *peer = other_machine->processes.items[i];
            if (peer == dead || peer->state != PROCESS_RUNNING || !peer->joined || peer->spare ||
                peer->jobset != dead->jobset || peer->attempt != dead->attempt ||
                peer->launch.world != dead->launch.world)
                continue;
            peer->lost_rank = dead->rank;
            say(world, other_machine, peer, AGENT_CLIENT_PEER_GONE);
        }
    }
}

static void join(struct world *world, struct sim_machine *machine, struct process *process)
{
    if (process->client || !machine_reads(machine))
        return;
    process->client = ++world->next_id;
    process->rejoins = process->joined;
    say(world, machine, process, AGENT_CLIENT_JOIN);
    /* The process repeats what an earlier agent may not have passed on. */
    if (process->joined && process->rejoins && process->saved_step >= 0)
        say(world, machine, process, AGENT_CLIENT_SHARD_SAVED);
    if (process->asked)
        say(world, machine, process, AGENT_CLIENT_RETRY);
    routes_say(world, machine, process);
}

void process_welcome(struct world *world, struct sim_machine *machine, uint64_t client, int64_t restore_step)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        if (process->client != client)
            continue;
        if (!process->joined)
            process->step = restore_step;
        process->joined = true;
    }
}

/* Returns the hash of the host name for the rank that a spare is told to take. The rank table of the spare's
 * start has it if no replicas were away then and none are now, because two worlds of the same size may lack
 * different replicas. A process that is told again before it has rejoined keeps the name that it was to
 * have. */
static uint64_t told_name(const struct process *spare, uint32_t full_world)
{
    const struct gang_rank_table *rank_table = &spare->launch.rank_table;
    bool whole = rank_table->count == full_world && spare->told_world == full_world;
    for (size_t i = 0; i < rank_table->count && whole; i++)
        if (rank_table->entries[i].rank == spare->told_rank)
            return hash64(spare->jobset, rank_table->entries[i].hostname.data,
                          rank_table->entries[i].hostname.len);
    return spare->told_name;
}

#define REJOIN_SLOW_NS (40 * NS_PER_SECOND)
#define STAND_NS       (30 * NS_PER_SECOND) /* how long it waits where it has saved, as libphalanx does */

/* Schedules the rejoin. Until then the process continues under its present attempt. */
void process_rejoin(struct world *world, struct sim_machine *machine, uint64_t client,
                    const struct task_rejoin *order)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        if (process->client != client || !process_lives(process) || order->attempt <= process->attempt)
            continue;
        if (!process->can_rejoin)
            world_fail(world, TORTURE_SAFETY, "%s: " STR_FORMAT " is told to rejoin and cannot",
                       machine->name, STR_ARG(process->launch.name));
        bool slow = !world->healing && world_chance(world, world->swarm.rejoin_slow_ppm);
        process->told_attempt = order->attempt;
        process->told_rank = order->rank;
        process->told_world = order->world;
        process->told_step = order->restore_step;
        process->told_dump = order->flags & REJOIN_DUMP ? order->world : 0;
        process->rejoin_ns = world->now_ns + world_draw(world, 0, slow ? REJOIN_SLOW_NS : 50 * NS_PER_MS);
        world_trace(world, "%s: " STR_FORMAT " is told of attempt %d, rank %u", machine->name,
                    STR_ARG(process->launch.name), order->attempt, order->rank);
        if (process->spare) {
            process->told_name = told_name(process, order->full_world);
            oracle_takes_rank(world, machine, process);
        }
        process_arm(world, machine, process);
    }
}

/* Makes a spare the rank that it was told to take. */
static void take_rank(struct world *world, struct process *process)
{
    process->spare = false;
    process->step = process->told_step;
    if (process->told_name)
        process->name_hash = process->told_name;
    if (process->ends_ns == INT64_MAX)
        process->ends_ns =
            world->now_ns + (world->healing ? earliest(process->run_ns, HASTE_NS) : process->run_ns);
    world->outcome->reached[REACH_SPARE_USED]++;
}

static bool dumps_with(const struct process *process, const struct process *other)
{
    return other->state == PROCESS_RUNNING && other->jobset == process->jobset &&
           other->attempt == process->attempt && other->dump_world > 0;
}

/* Ends a dying checkpoint once all its ranks have met: the newest step that any of them holds is saved by
 * all, or the checkpoint fails. */
static void dump(struct world *world, struct process *process)
{
    uint32_t met = 0;
    int64_t newest = -1;
    for (uint32_t m = 0; m < world->swarm.machines; m++)
        for (size_t i = 0; i < world->machines[m].processes.len; i++) {
            const struct process *other = world->machines[m].processes.items[i];
            if (!dumps_with(process, other))
                continue;
            met++;
            newest = other->step > newest ? other->step : newest;
        }
    if (met < process->dump_world)
        return;
    bool whole = newest > process->told_step && world_chance(world, 800000);
    world->outcome->reached[REACH_DUMPED] += whole;
    for (uint32_t m = 0; m < world->swarm.machines; m++)
        for (size_t i = 0; i < world->machines[m].processes.len; i++) {
            struct process *other = world->machines[m].processes.items[i];
            if (!dumps_with(process, other))
                continue;
            if (whole) {
                other->saved_step = newest;
                oracle_saved(world, other);
                say(world, &world->machines[m], other, AGENT_CLIENT_SHARD_SAVED);
            } else {
                other->ends_ns = world->now_ns + NS_PER_MS;
                other->exit_code = 75;
                process_arm(world, &world->machines[m], other);
            }
        }
}

/* Continues under the new attempt, from the step in memory. */
static void rejoin(struct world *world, struct sim_machine *machine, struct process *process)
{
    CHECK(process->told_attempt > process->attempt);
    process->rejoin_ns = INT64_MAX;
    process->attempt = process->told_attempt;
    if (world->options.plant != PLANT_OLD_SHARD)
        process->writes_as = process->attempt;
    process->rank = process->told_rank;
    process->saved_step = process->stand_step = -1;
    process->asked = false;
    if (process->spare)
        take_rank(world, process);
    process->dump_world = process->told_dump;
    world->outcome->reached[REACH_REJOINED]++;
    world_trace(world, "%s: " STR_FORMAT " goes on as attempt %d", machine->name,
                STR_ARG(process->launch.name), process->attempt);
    oracle_rejoined(world, process);
    say(world, machine, process, AGENT_CLIENT_JOIN);
    routes_rejoined(world, machine, process);
    if (process->dump_world == 0)
        return;
    if (!world->healing && !process->stopping)
        process->ends_ns = INT64_MAX; /* its end is up to the controller */
    dump(world, process);
}

void process_fenced_client(struct world *world, struct sim_machine *machine, uint64_t client)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        if (process->client != client || !process_lives(process))
            continue;
        process->client = 0;
        process->ends_ns = world->now_ns + NS_PER_MS;
        process->exit_code = 1;
        process_arm(world, machine, process);
    }
}

/* Returns whether this step finds its state damaged. Uses no random draw, so seeds without such steps are
 * unchanged. */
static bool finds_damage(const struct world *world, const struct process *process)
{
    uint64_t numbers[] = {process->task, (uint64_t)process->attempt, (uint64_t)process->step};
    return process->can_rejoin && !world->healing && hash64(0, numbers, sizeof numbers) % STEPS_A_DAMAGE == 0;
}

static bool steps_with(const struct process *process, const struct process *other)
{
    return other->state == PROCESS_RUNNING && other->jobset == process->jobset &&
           other->attempt == process->attempt && other->joined && !other->spare;
}

/* Makes the ranks agree to save at the first step that none of them has made. */
static void agree(struct world *world, const struct process *process)
{
    int64_t newest = -1;
    for (int round = 0; round < 2; round++)
        for (uint32_t m = 0; m < world->swarm.machines; m++)
            for (size_t i = 0; i < world->machines[m].processes.len; i++) {
                struct process *other = world->machines[m].processes.items[i];
                if (!steps_with(process, other))
                    continue;
                newest = other->step > newest ? other->step : newest;
                if (round == 0)
                    continue;
                other->stand_step = newest + 1;
                other->stand_ns = world->now_ns + STAND_NS;
            }
}

void process_drain(struct world *world, struct sim_machine *machine, uint64_t client)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        const struct process *process = machine->processes.items[i];
        bool agreed = process->stand_step >= process->step && world->now_ns < process->stand_ns;
        if (process->client == client && process->checkpoint_every && steps_with(process, process) && !agreed)
            agree(world, process);
    }
}

/* Returns whether the machine is slow at present. For some heartbeats at a time some machines are, and a
 * rank's own work takes longer there. */
static bool is_slow(const struct world *world, const struct sim_machine *machine)
{
    int64_t spell_ns = 4 * NS_PER_SECOND + 5 * world->swarm.heartbeat_ns;
    uint64_t spell = (uint64_t)(world->now_ns / spell_ns);
    return !world->healing && hash_mix(machine->index * 31 + spell) % 6 == 0;
}

static void make_step(struct world *world, struct sim_machine *machine, struct process *process)
{
    process->due_ns = world->now_ns + world_draw(world, process->step_ns / 2, process->step_ns);
    join(world, machine, process);
    bool stands = process->step == process->stand_step && world->now_ns < process->stand_ns;
    if (!process->joined || process->spare || process->dump_world > 0 || stands)
        return;
    if (process->asked)
        return;
    if (finds_damage(world, process)) {
        process->asked = true;
        say(world, machine, process, AGENT_CLIENT_RETRY);
        return;
    }
    process->step++;
    process->pace.steps++;
    process->pace.own_us += is_slow(world, machine) ? 2000 : 1000;
    say(world, machine, process, AGENT_CLIENT_STEP);
    uint32_t every = process->checkpoint_every;
    bool due = every > 0 && process->step > 0 && process->step % every == 0;
    if (due || process->step == process->stand_step) {
        process->saved_step = process->step;
        oracle_saved(world, process);
        say(world, machine, process, AGENT_CLIENT_SHARD_SAVED);
    }
}

static void become_running(struct world *world, struct sim_machine *machine, struct process *process)
{
    if (process->start_fails) {
        die(world, machine, process, 127, 0);
        return;
    }
    process->state = PROCESS_RUNNING;
    process->started_wall_ns = machine_wall_ns(world, machine);
    process->due_ns = process->step_ns ? world->now_ns + world_draw(world, 0, process->step_ns) : INT64_MAX;
    process_tell(world, machine, process);
}

void process_act(struct world *world, const struct sim_event *event)
{
    struct sim_machine *machine = &world->machines[event->machine];
    struct process *process = find_armed(machine, event->number);
    if (!process || !process_lives(process))
        return;
    if (!process->fenced && fence_due(world, machine) <= world->now_ns) {
        process->fenced = true;
        oracle_fence(world, machine);
        int64_t act_ns = world_draw(world, 0, FENCE_ACT_MS_MAX * NS_PER_MS);
        process->kill_ns = earliest(process->kill_ns, world->now_ns + act_ns);
    }
    if (process->kill_ns <= world->now_ns) {
        process_kill(world, machine, process);
    } else if (process->state == PROCESS_SPAWNING && process->due_ns <= world->now_ns) {
        become_running(world, machine, process);
    } else if (process->state == PROCESS_RUNNING && process->ends_ns <= world->now_ns) {
        if (process->exit_code == 0 && process->joined)
            say(world, machine, process, AGENT_CLIENT_LEFT);
        die(world, machine, process, process->exit_code, 0);
    } else if (process->state == PROCESS_RUNNING && process->rejoin_ns <= world->now_ns) {
        rejoin(world, machine, process);
    } else if (process->state == PROCESS_RUNNING && process->routes.act_ns <= world->now_ns) {
        routes_act(world, machine, process);
    } else if (process->state == PROCESS_RUNNING && process->due_ns <= world->now_ns) {
        make_step(world, machine, process);
    }
    if (process_lives(process)) /* a buried process is dead */
        process_arm(world, machine, process);
}

void process_hasten(struct world *world)
{
    for (uint32_t m = 0; m < world->swarm.machines; m++) {
        struct sim_machine *machine = &world->machines[m];
        for (size_t i = 0; i < machine->processes.len; i++) {
            struct process *process = machine->processes.items[i];
            int64_t soon_ns = world->now_ns + world_draw(world, 0, HASTE_NS);
            if (!process_lives(process) || process->state != PROCESS_RUNNING || process->spare ||
                process->ends_ns <= soon_ns || runs_for_ever(process))
                continue;
            process->ends_ns = soon_ns;
            process_arm(world, machine, process);
        }
    }
}
