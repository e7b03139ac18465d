/* switches.c - optical switches of the simulated world. They answer, stop, lie, answer late, twice, or for
 * another request, and lose their circuits. A separate oracle checks the circuits that they hold.
 *
 * A request takes a while to arrive, is carried out, and its answer takes a while to return; both are lost
 * with the controller. A switch never carries out an older request after a newer one (core/words/switch.h).
 */
#include "sim/world.h"

#include "base/units.h"
#include "core/slice/slice.h"

enum { SIM_RESTORE, SIM_CARRY_OUT, SIM_ANSWER, SIM_BREAK, SIM_LIGHT, SIM_LOOK };

static struct sim_switch *switch_at(struct world *world, uint32_t which)
{
    CHECK(which < POD_SWITCHES);
    return &world->switches[which];
}

static const struct optical_switch *config_of(const struct world *world, uint32_t which)
{
    return &core_cluster(world->controller.core)->switches[which];
}

static struct sim_request *find_request(struct world *world, uint64_t id, size_t *ret_at)
{
    for (size_t i = 0; i < world->switch_requests.len; i++)
        if (world->switch_requests.items[i].id == id) {
            *ret_at = i;
            return &world->switch_requests.items[i];
        }
    return NULL;
}

static void drop_request(struct world *world, size_t at)
{
    vec_done(&world->switch_requests.items[at].breaks);
    vec_done(&world->switch_requests.items[at].makes);
    vec_remove(&world->switch_requests, at);
}

/* --- the oracle ----------------------------------------------------------------------------------------- */

/* Returns whether a connected slice needs the circuit; ports are those of a pod of up to 64 cubes. */
static bool is_needed(const struct world *world, uint32_t which, struct circuit circuit)
{
    const struct slices *slices = core_slices(world->controller.core);
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        const struct cube_slice *cubes = &slice->place.cubes;
        if (slice->phase != SLICE_CONNECTED || !slice_shape_is_whole(&cubes->shape))
            continue;
        for (uint32_t place = 0; place < cubes->count; place++) {
            uint16_t next = cubes->cube[slice_next_place(&cubes->shape, place, which / FACE_LINKS)];
            if (circuit.plus == 1 + cubes->cube[place] && circuit.minus == 65 + next)
                return true;
        }
    }
    return false;
}

static void judge_request(struct world *world, uint32_t which, const struct switch_apply *apply)
{
    for (size_t i = 0; i < apply->break_count; i++)
        if (is_needed(world, which, apply->breaks[i]))
            world_fail(world, TORTURE_SAFETY, "switch %u is told to break circuit %u-%u of a running slice",
                       which, apply->breaks[i].plus, apply->breaks[i].minus);
}

void sim_switches_judge_start(struct world *world, const struct task *task)
{
    const struct slice *slice = slice_find(core_slices(world->controller.core), task->job->jobset->uid);
    if (!slice)
        return;
    if (slice->phase != SLICE_CONNECTED) {
        world_fail(world, TORTURE_SAFETY, STR_FORMAT " starts before its slice is connected",
                   STR_ARG(task->name));
        return;
    }
    for (uint32_t which = 0; which < POD_SWITCHES; which++) {
        const struct sim_switch *one = switch_at(world, which);
        const struct cube_slice *cubes = &slice->place.cubes;
        /* Circuits that the switch has lost since the slice began may be unnoticed. */
        if ((slice->left_out >> which & 1) || one->broke_at >= slice->reads_from ||
            !slice_shape_is_whole(&cubes->shape))
            continue;
        for (uint32_t place = 0; place < cubes->count; place++) {
            uint16_t next = cubes->cube[slice_next_place(&cubes->shape, place, which / FACE_LINKS)];
            if (one->to[1 + cubes->cube[place]] != 65 + next)
                world_fail(world, TORTURE_SAFETY,
                           STR_FORMAT " starts, and switch %u does not join cube %u with cube %u",
                           STR_ARG(task->name), which, cubes->cube[place], next);
        }
    }
}

/* --- a request ------------------------------------------------------------------------------------------ */

/* Draws whether something goes wrong. Rare in worlds of whole cubes, where a slice needs 48 answers. */
static bool goes_wrong(struct world *world, uint32_t ppm)
{
    return !world->healing && world_chance(world, world->swarm.whole_ppm ? ppm / 10 : ppm);
}

void sim_switches_apply(void *context, const struct switch_apply *apply)
{
    struct world *world = context;
    uint32_t which = apply->place.id;
    struct sim_request request = {.id = ++world->next_id, .which = which, .operation = apply->operation};
    judge_request(world, which, apply);
    for (size_t i = 0; i < apply->break_count; i++)
        vec_push(&request.breaks, apply->breaks[i]);
    for (size_t i = 0; i < apply->make_count; i++)
        vec_push(&request.makes, apply->makes[i]);
    vec_push(&world->switch_requests, request);
    if (switch_at(world, which)->watched != world->controller.life) {
        switch_at(world, which)->watched = world->controller.life;
        world_after(world, world_draw(world, 1, 20) * NS_PER_MS, SIM_SWITCH, which, 0, SIM_LOOK);
    }
    bool late = goes_wrong(world, 30000);
    world_after(world, late ? world_draw(world, 1, 8) * NS_PER_SECOND : world_draw(world, 1, 20) * NS_PER_MS,
                SIM_SWITCH, which, request.id, SIM_CARRY_OUT);
}

static bool minus_is_free(const struct sim_switch *one, uint16_t minus)
{
    for (uint32_t plus = 1; plus <= SIM_SWITCH_PORTS; plus++)
        if (one->to[plus] == minus)
            return false;
    return true;
}

/* Carries out the first `count` changes. Returns whether all succeeded. */
static bool change(struct sim_switch *one, const struct sim_request *request, size_t count)
{
    bool all = true;
    for (size_t i = 0; i < count; i++) {
        bool make = i >= request->breaks.len;
        struct circuit circuit =
            make ? request->makes.items[i - request->breaks.len] : request->breaks.items[i];
        CHECK(circuit.plus <= SIM_SWITCH_PORTS);
        if (!make && one->to[circuit.plus] == circuit.minus)
            one->to[circuit.plus] = 0;
        else if (make && one->to[circuit.plus] == 0 && minus_is_free(one, circuit.minus))
            one->to[circuit.plus] = circuit.minus;
        else
            all &= make ? one->to[circuit.plus] == circuit.minus : true;
    }
    return all;
}

static void carry_out(struct world *world, uint32_t which, uint64_t id)
{
    size_t at;
    struct sim_switch *one = switch_at(world, which);
    struct sim_request *request = find_request(world, id, &at);
    if (!request)
        return;
    size_t count = request->breaks.len + request->makes.len;
    bool lies = goes_wrong(world, 20000);
    bool breaks_off = goes_wrong(world, 20000);
    if (request->operation < one->newest || (goes_wrong(world, 10000))) {
        drop_request(world, at); /* the host has abandoned it, or no answer ever arrives */
        return;
    }
    one->newest = request->operation;
    request->outcome = SWITCH_DONE;
    if (one->down || breaks_off)
        request->outcome = SWITCH_UNREACHABLE;
    if (breaks_off && count)
        count = (size_t)world_draw(world, 0, (int64_t)count);
    if (!one->down && !lies && !change(one, request, count))
        request->outcome = SWITCH_REFUSED;
    world_after(world, world_draw(world, 1, 20) * NS_PER_MS, SIM_SWITCH, which, id, SIM_ANSWER);
    if (goes_wrong(world, 30000))
        world_after(world, world_draw(world, 1, 9000) * NS_PER_MS, SIM_SWITCH, which, id, SIM_ANSWER);
}

static void answer(struct world *world, uint32_t which, uint64_t id)
{
    size_t at;
    struct sim_switch *one = switch_at(world, which);
    struct sim_request *request = find_request(world, id, &at);
    struct circuit present[SIM_SWITCH_PORTS];
    if (!request || !world->controller.driver || !driver_is_open(world->controller.driver))
        return;
    struct switch_report report = {.name = config_of(world, which)->name,
                                   .operation = request->operation,
                                   .outcome = request->outcome,
                                   .read = request->outcome != SWITCH_UNREACHABLE,
                                   .present = present,
                                   .reason = request->outcome ? STR("so it goes") : STR("")};
    for (uint16_t plus = 1; report.read && plus <= SIM_SWITCH_PORTS; plus++)
        if (one->to[plus])
            present[report.present_count++] = (struct circuit){plus, one->to[plus]};
    if (goes_wrong(world, 10000))
        report.operation += (uint64_t)world_draw(world, 1, 5); /* of another request */
    driver_switch_report(world->controller.driver, &report);
    controller_switch_spoke(world);
}

/* --- breaking and coming back --------------------------------------------------------------------------- */

/* Reports the health of a switch. A controller inspects a switch after its first request to it, and receives
 * each later change (host/fabric/desk.h). */
static void tell_health(struct world *world, uint32_t which)
{
    const struct sim_switch *one = switch_at(world, which);
    if (!world->controller.driver || !driver_is_open(world->controller.driver) ||
        one->watched != world->controller.life)
        return;
    uint16_t bad[SIM_BAD_PORTS_MAX];
    struct switch_health health = {.name = config_of(world, which)->name,
                                   .state = one->down ? SWITCH_DOWN : SWITCH_UP,
                                   .bad_ports = bad};
    for (uint16_t port = 1; port < sizeof one->dark && health.bad_port_count < SIM_BAD_PORTS_MAX; port++)
        if (one->dark[port] && !one->down)
            bad[health.bad_port_count++] = port;
    if (health.bad_port_count)
        health.state = SWITCH_DEGRADED;
    driver_switch_health(world->controller.driver, &health);
    controller_switch_spoke(world);
}

/* Takes the light of a cube's port for a while. */
static void darken_one(struct world *world)
{
    uint32_t which = (uint32_t)world_draw(world, 0, POD_SWITCHES - 1);
    uint32_t cube = (uint32_t)world_draw(world, 0, world->swarm.cubes - 1);
    uint32_t port = (world_chance(world, 500000) ? 1 : SIM_SWITCH_PORTS + 1) + cube;
    struct sim_switch *one = switch_at(world, which);
    CHECK(port < sizeof one->dark);
    one->dark[port] = true;
    world_trace(world, "port %u of switch %u is dark", port, which);
    tell_health(world, which);
    world_after(world, world_draw(world, 1, 20) * NS_PER_SECOND, SIM_SWITCH, which, 0, SIM_LIGHT);
}

static void light_all(struct world *world, uint32_t which)
{
    struct sim_switch *one = switch_at(world, which);
    memset(one->dark, 0, sizeof one->dark);
    tell_health(world, which);
}

/* Returns whether a slice of whole cubes runs that is routed around the switch. */
static bool runs_without(const struct slices *slices, uint32_t which)
{
    for (size_t i = 0; i < slices->list.len; i++) {
        const struct slice *slice = slices->list.items[i];
        if (slice->phase == SLICE_CONNECTED && slice_shape_is_whole(&slice->place.cubes.shape) &&
            (slice->tables_out >> which & 1))
            return true;
    }
    return false;
}

void sim_switches_maintain(struct world *world)
{
    if (!world->controller.driver || !driver_is_open(world->controller.driver))
        return;
    const struct slices *slices = core_slices(world->controller.core);
    const struct pod_now *pod = slices->pod_count ? slices->pods[0] : NULL;
    bool cube = world->swarm.cubes > 1 && world_chance(world, 400000);
    uint32_t which = (uint32_t)world_draw(world, 0, cube ? world->swarm.cubes - 1 : POD_SWITCHES - 1);
    int drained = 0;
    for (uint32_t i = 0; pod && pod->switches && i < (cube ? pod->cubes : POD_SWITCHES); i++)
        if (cube ? pod->all_cubes[i].drain : pod->switches[i].drain) {
            which = world_chance(world, 500000) ? i : which;
            drained++;
        }
    if (!pod || !pod->switches)
        return;
    bool on = !(cube ? pod->all_cubes[which].drain : pod->switches[which].drain);
    const struct shown *shown = cube ? &pod->all_cubes[which].shown : &pod->switches[which].shown;
    world->outcome->reached[REACH_DRAINED] += !on && shown->drained == SHOWN_TRUE;
    world->outcome->reached[REACH_DRAINED_AROUND] +=
        !on && !cube && shown->drained == SHOWN_TRUE && runs_without(slices, which);
    if (on && drained >= (cube ? 1 : 2))
        return;
    client_drain(world, cube, shown->name, on);
}

/* Returns the core's newest request, or UINT64_MAX if there is no core and its memory is lost. */
static uint64_t newest_request(const struct world *world)
{
    const struct core *core = world->controller.core;
    return core ? core_slices(core)->operations : UINT64_MAX;
}

static void break_one(struct world *world)
{
    uint32_t which = (uint32_t)world_draw(world, 0, POD_SWITCHES - 1);
    struct sim_switch *one = switch_at(world, which);
    if (world->healing)
        return;
    if (world_chance(world, 250000))
        darken_one(world);
    if (world_chance(world, world->swarm.whole_ppm ? 300000 : 600000))
        sim_switches_maintain(world);
    if (!one->down) {
        one->down = true;
        one->broke_at = newest_request(world);
        if (world_chance(world, 500000))
            memset(one->to, 0, sizeof one->to);
        if (world_chance(world, 700000))
            tell_health(world, which);
        world_trace(world, "switch %u breaks", which);
        int64_t down_max_s = world->swarm.whole_ppm ? 8 : 20;
        world_after(world, world_draw(world, 1, down_max_s) * NS_PER_SECOND, SIM_SWITCH, which, 0,
                    SIM_RESTORE);
    }
    /* A running slice can do without one switch, so the next one breaks when most have returned. */
    bool rare = world->swarm.whole_ppm && world_chance(world, 800000);
    world_after(world, world_draw(world, rare ? 6000 : 500, 20000) * NS_PER_MS, SIM_SWITCH, 0, 0, SIM_BREAK);
}

static void restore_one(struct world *world, uint32_t which)
{
    switch_at(world, which)->down = false;
    switch_at(world, which)->broke_at = newest_request(world);
    tell_health(world, which);
}

void sim_switches_begin(struct world *world)
{
    if (world->swarm.cubes > 0)
        world_after(world, 5 * NS_PER_SECOND, SIM_SWITCH, 0, 0, SIM_BREAK);
}

void sim_switches_heal(struct world *world)
{
    for (uint32_t which = 0; world->swarm.cubes > 0 && which < POD_SWITCHES; which++)
    {
        world_after(world, world_draw(world, 1, 500) * NS_PER_MS, SIM_SWITCH, which, 0, SIM_LIGHT);
        world_after(world, world_draw(world, 1, 500) * NS_PER_MS, SIM_SWITCH, which, 0, SIM_RESTORE);
    }
}

void sim_switches_event(struct world *world, const struct sim_event *event)
{
    switch (event->number) {
    case SIM_RESTORE:
        restore_one(world, event->machine);
        break;
    case SIM_CARRY_OUT:
        carry_out(world, event->machine, event->id);
        break;
    case SIM_ANSWER:
        answer(world, event->machine, event->id);
        break;
    case SIM_BREAK:
        break_one(world);
        break;
    case SIM_LOOK:
        tell_health(world, event->machine);
        break;
    case SIM_LIGHT:
        light_all(world, event->machine);
        break;
    default:
        CHECK(false);
    }
}

void sim_switches_done(struct world *world)
{
    while (world->switch_requests.len > 0)
        drop_request(world, world->switch_requests.len - 1);
    vec_done(&world->switch_requests);
    vec_done(&world->given_tables);
}
