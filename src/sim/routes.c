/* routes.c - ranks whose chips forward by the routing tables of their slice, as tasks with libphalanx_fabric
 * do. Ranks open sessions, load the tables that they receive, and report this at once, late, twice, or never.
 * The tables that their chips truly have decide whether a Drained switch is free. */
#include "sim/world.h"

#include "base/hash.h"
#include "base/units.h"
#include "core/slice/slice.h"

/* Returns the switches that tables with this name avoid, such as "4x4x8 without x5,y3". */
static uint64_t switches_without(struct str name)
{
    uint64_t without = 0;
    struct slice_shape shape;
    struct error error;
    const char *end = name.data + name.len, *space = memchr(name.data, ' ', name.len);
    struct str head = {name.data, space ? (size_t)(space - name.data) : name.len};
    CHECK(slice_shape_parse(head, &shape, &error) == 0);
    if (!slice_shape_is_whole(&shape))
        return UINT64_MAX; /* a mesh of copper */
    for (const char *at = space ? space + strlen(" without ") : end; at < end; at++) {
        const char *comma = memchr(at, ',', (size_t)(end - at));
        struct str one = {at, (size_t)((comma ? comma : end) - at)};
        for (uint32_t number = 0; number < POD_SWITCHES; number++)
            if (str_is(one, pod_switch_name(pod_switch_at(number))))
                without |= UINT64_C(1) << number;
        at += one.len;
    }
    return without;
}

static void say(struct world *world, struct sim_machine *machine, const struct process *process,
                const struct rank_routes *routes)
{
    if (!process->client || !machine_reads(machine))
        return;
    struct agent_event event = {.kind = AGENT_CLIENT_ROUTES};
    event.client.client = process->client;
    event.client.task = process->task;
    event.client.attempt = process->attempt;
    event.client.routes = *routes;
    machine_event(world, machine, &event);
}

void routes_say(struct world *world, struct sim_machine *machine, struct process *process)
{
    if (process->routes.said.session)
        say(world, machine, process, &process->routes.said);
}

/* --- what it is told ------------------------------------------------------------------------------------ */

/* Draws the delay of a rank: some check for tables only between long steps, and some never. */
static int64_t draw_delay(struct world *world)
{
    if (world->healing)
        return world_draw(world, 1, 50) * NS_PER_MS;
    if (world_chance(world, 20000))
        return INT64_MAX;
    if (world_chance(world, 100000))
        return world_draw(world, 5, 60) * NS_PER_SECOND;
    return world_draw(world, 1, 500) * NS_PER_MS;
}

static void act_after(struct world *world, struct sim_machine *machine, struct process *process,
                      int64_t delay_ns)
{
    if (delay_ns == INT64_MAX)
        return;
    process->routes.act_ns = world->now_ns + delay_ns;
    process_arm(world, machine, process);
}

static void take_tables(struct world *world, struct sim_machine *machine, struct process *process,
                        const struct agent_effect *effect)
{
    struct sim_routes *routes = &process->routes;
    uint64_t number = (uint64_t)effect->tables.number, session = effect->tables.session;
    bool newer = number > routes->told, answer = session > routes->told_session;
    if (!routes->drawn) {
        routes->drawn = true;
        routes->uses = world_chance(world, 850000);
    }
    if (newer) {
        routes->told = number;
        routes->told_without = switches_without(effect->tables.name);
    }
    if (answer)
        routes->told_session = session;
    if (!routes->uses || !(newer || answer))
        return;
    bool waits = routes->said.open && routes->told_session < routes->said.session;
    if (!waits)
        act_after(world, machine, process, draw_delay(world));
}

void routes_told(struct world *world, struct sim_machine *machine, const struct agent_effect *effect)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        struct process *process = machine->processes.items[i];
        if (process->client == effect->tables.client && process->state == PROCESS_RUNNING && !process->spare)
            take_tables(world, machine, process, effect);
    }
}

/* --- what it does --------------------------------------------------------------------------------------- */

static void set(struct process *process, const struct rank_routes *routes)
{
    process->routes.older = process->routes.said;
    process->routes.said = *routes;
}

/* Reports the tables that its chips have now; at times twice, or with an older report after it. */
static void say_loaded(struct world *world, struct sim_machine *machine, struct process *process)
{
    routes_say(world, machine, process);
    if (world_chance(world, 100000))
        routes_say(world, machine, process);
    if (process->routes.older.tables && world_chance(world, 50000)) {
        say(world, machine, process, &process->routes.older);
        routes_say(world, machine, process);
    }
}

/* Returns the switches over which a rank's chips see wrong neighbours in this session, until the wires are
 * put right. Derived from the numbers alone, so worlds without wrong wires are unchanged. */
static uint64_t wires_of(const struct world *world, const struct process *process, uint64_t session)
{
    uint64_t draw = hash_mix(session ^ process->task << 20);
    if (world->healing || draw % 32 != 0)
        return 0;
    uint64_t wrong = UINT64_C(1) << (draw >> 8) % POD_SWITCHES;
    if ((draw >> 24) % 8 == 0)
        wrong |= UINT64_C(1) << (draw >> 16) % POD_SWITCHES;
    return wrong;
}

/* Reports the switches over which the rank sees wrong neighbours; some time later, that there are none. */
static void say_wires(struct world *world, struct sim_machine *machine, struct process *process,
                      uint64_t wrong)
{
    process->routes.said.wrong = wrong;
    routes_say(world, machine, process);
}

void routes_act(struct world *world, struct sim_machine *machine, struct process *process)
{
    struct sim_routes *routes = &process->routes;
    struct rank_routes next = routes->said;
    routes->act_ns = INT64_MAX;
    if (!process->client || !machine_reads(machine)) {
        routes->act_ns = world->now_ns + world_draw(world, 100, 2000) * NS_PER_MS;
        return;
    }
    if (!next.open) {
        next = (struct rank_routes){.session = ++world->next_id, .open = true};
        set(process, &next);
        routes_say(world, machine, process);
        uint64_t wrong = wires_of(world, process, next.session);
        if (wrong)
            say_wires(world, machine, process, wrong);
    } else if (next.wrong && (next.without & next.wrong) == next.wrong) {
        say_wires(world, machine, process, 0);
    } else if (next.tables < routes->told && routes->told_session >= next.session) {
        next.tables = routes->told;
        next.without = routes->told_without;
        set(process, &next);
        world->outcome->reached[REACH_SESSION]++;
        say_loaded(world, machine, process);
        if (next.wrong)
            routes->act_ns = world->now_ns + (int64_t)(1 + next.wrong % 7) * NS_PER_SECOND;
        if (world_chance(world, 50000))
            /* then it closes the session */
            routes->act_ns = world->now_ns + world_draw(world, 1, 5000) * NS_PER_MS;
    } else if (next.tables > 0) {
        next = (struct rank_routes){.session = next.session};
        set(process, &next);
        routes_say(world, machine, process);
        /* then it opens another session */
        routes->act_ns = world->now_ns + world_draw(world, 1, 5000) * NS_PER_MS;
    }
}

/* Opens another session in another attempt, at once or later. */
void routes_rejoined(struct world *world, struct sim_machine *machine, struct process *process)
{
    struct sim_routes *routes = &process->routes;
    if (routes->said.session == 0)
        return;
    if (routes->said.open && world_chance(world, 700000)) {
        struct rank_routes closed = {.session = routes->said.session};
        set(process, &closed);
        routes->act_ns = world->now_ns + world_draw(world, 1, 500) * NS_PER_MS;
    }
    routes_say(world, machine, process);
}

/* --- the judge ------------------------------------------------------------------------------------------ */

static void judge_machine(struct world *world, const struct sim_machine *machine, const struct pod_now *pod,
                          uint64_t drained)
{
    for (size_t i = 0; i < machine->processes.len; i++) {
        const struct process *process = machine->processes.items[i];
        const struct rank_routes *has = &process->routes.said;
        uint64_t uses = drained & ~has->without;
        if (!process_lives(process) || !has->open || has->tables == 0 || uses == 0)
            continue;
        world_fail(world, TORTURE_SAFETY,
                   STR_FORMAT " is Drained, and rank %u of " STR_FORMAT " on %s has tables with it",
                   STR_ARG(pod->switches[__builtin_ctzll(uses)].shown.name), process->rank,
                   STR_ARG(process->launch.name), machine->name);
    }
}

static void count_drains(struct world *world, const struct pod_now *pod)
{
    uint64_t waits = 0, overdue = 0, leaving = 0;
    if (pod->index >= SIM_PODS_MAX)
        return;
    for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++) {
        const struct switch_now *now = &pod->switches[number];
        leaving |= (uint64_t)now->leaving << number;
        waits |= (uint64_t)(now->users > 0) << number;
        overdue |= (uint64_t)now->overdue << number;
    }
    world->outcome->reached[REACH_DRAIN_ANSWERED] +=
        (world->drains[pod->index].waited & leaving & ~waits) != 0;
    world->outcome->reached[REACH_DRAIN_OVERDUE] += (overdue & ~world->drains[pod->index].overdue) != 0;
    world->drains[pod->index].waited = waits;
    world->drains[pod->index].overdue = overdue;
}

static const struct given_tables *find_given(const struct world *world, uint64_t number)
{
    for (size_t i = world->given_tables.len; i-- > 0;)
        if (world->given_tables.items[i].number == number)
            return &world->given_tables.items[i];
    return NULL;
}

/* Checks that no number was given to two different tables, in all lives of the log. */
static void judge_numbers(struct world *world, const struct slices *slices)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        struct given_tables given = {slice->tables_number, slice->jobset, slice->tables_out};
        const struct given_tables *known = slice->tables ? find_given(world, given.number) : &given;
        if (!known)
            vec_push(&world->given_tables, given);
        else if (known->jobset != given.jobset || known->without != given.without)
            world_fail(world, TORTURE_SAFETY,
                       "number %llu of tables of " STR_FORMAT " stood for others before",
                       (unsigned long long)given.number, STR_ARG(slice->shown.name));
    }
}

void routes_judge(struct world *world)
{
    const struct core *core = world->controller.core;
    const struct slices *slices = core_slices(core);
    const struct cluster *cluster = core_cluster(core);
    judge_numbers(world, slices);
    for (size_t p = 0; p < slices->pod_count; p++) {
        const struct pod_now *pod = slices->pods[p];
        uint64_t drained = 0;
        count_drains(world, pod);
        for (uint32_t number = 0; pod->switches && number < POD_SWITCHES; number++)
            drained |= (uint64_t)(pod->switches[number].shown.drained == SHOWN_TRUE) << number;
        for (uint32_t m = 0; drained && !core_is_hearing(core) && m < world->swarm.machines; m++)
            if (m < cluster->machine_count && cluster->machines[m].pod == p)
                judge_machine(world, &world->machines[m], pod, drained);
    }
}
