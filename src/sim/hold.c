/* hold.c - planned restarts of the controller. An operator requests a hold of the leases
 * (core/health/lease_hold.h), waits until each ready machine has confirmed it, and stops the controller for
 * longer than the lease. No task of these machines may end by its fence before the hold ends, on clocks that
 * differ by up to a twentieth. Meanwhile some machines are cut off, and some holds are ended early. */
#include "sim/world.h"

#include "base/units.h"

void hold_void(struct world *world)
{
    world->hold.waits = false;
    world->hold.until_ns = 0;
}

static void name_hold(const struct world *world, char ret_name[32])
{
    snprintf(ret_name, 32, "hold-%llu", (unsigned long long)world->hold.number);
}

static bool in_force(const struct world *world)
{
    return controller_reads(world) && core_lease_hold(world->controller.core)->until_ns > 0;
}

static void end_early(struct world *world)
{
    char name[32];
    name_hold(world, name);
    hold_void(world);
    client_send(world, WRITE_DELETE, OBJECT_MAINTENANCE, STR(""), str_from(name), STR(""));
    world_trace(world, "operator: ends %s", name);
}

void hold_tidy(struct world *world)
{
    hold_void(world);
    if (in_force(world))
        end_early(world);
}

static void look_again(struct world *world)
{
    world_after(world, world->swarm.heartbeat_ns, SIM_HOLD, 0, 0, world->hold.number);
}

void hold_plan(struct world *world)
{
    struct buf body BUF_CLEANUP = {0};
    char name[32];
    if (!controller_reads(world) || world->hold.waits)
        return;
    if (in_force(world)) {
        if (world_chance(world, 400000))
            end_early(world);
        return;
    }
    world->hold.number++;
    world->hold.waits = true;
    world->hold.asked_ns = world->now_ns;
    world->hold.length_ns = world_draw(world, 4, 10) * world->swarm.lease_ns;
    world->hold.until_ns = 0;
    name_hold(world, name);
    buf_printf(&body,
               "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Maintenance\",\"metadata\":{\"name\":\"%s\"},"
               "\"spec\":{\"controller\":\"%llds\"}}",
               name, (long long)(world->hold.length_ns / NS_PER_SECOND));
    client_send(world, WRITE_CREATE, OBJECT_MAINTENANCE, STR(""), str_from(name), buf_str(&body));
    world_trace(world, "operator: %s: %s", name, body.data);
    look_again(world);
}

static bool is_confirmed(const struct world *world)
{
    const struct cluster *cluster = core_cluster(world->controller.core);
    bool all = in_force(world);
    for (size_t i = 0; all && i < cluster->machine_count; i++)
        all = cluster->machines[i].state != MACHINE_READY ||
              driver_hold_counts(world->controller.driver, (machine_id)i);
    return all;
}

/* Draws a machine, preferably one with tasks. */
static struct sim_machine *draw_machine(struct world *world)
{
    uint32_t first = (uint32_t)rng_below(&world->rng, world->swarm.machines), m = 0;
    while (m < world->swarm.machines &&
           world->machines[(first + m) % world->swarm.machines].processes.len == 0)
        m++;
    return &world->machines[(first + m) % world->swarm.machines];
}

static void leave(struct world *world)
{
    /* An agent's clock may be fast, and its fence acts before the end of its lease. */
    int64_t safe_ns = world->hold.asked_ns + world->hold.length_ns / 100 * 85,
            left_ns = safe_ns - world->now_ns;
    if (left_ns < 2 * world->swarm.lease_ns)
        return;
    world->hold.until_ns = safe_ns;
    for (uint32_t m = 0; m < world->swarm.machines; m++) {
        const struct machine *known =
            cluster_find(core_cluster(world->controller.core), str_from(world->machines[m].name));
        world->machines[m].held = known && driver_hold_counts(world->controller.driver, known->id);
    }
    int64_t away_ns = world_draw(world, world->swarm.lease_ns, left_ns / 10 * 9);
    world_trace(world, "operator: restarts the controller, away for %.3f s", (double)away_ns / 1e9);
    controller_leave(world, away_ns);
    if (world_chance(world, 500000))
        fault_cut_off(world, draw_machine(world), away_ns + world_draw(world, 0, 6 * world->swarm.lease_ns));
}

void hold_look(struct world *world, const struct sim_event *event)
{
    if (!world->hold.waits || event->number != world->hold.number)
        return;
    if (is_confirmed(world)) {
        world->hold.waits = false;
        leave(world);
    } else if (world->now_ns - world->hold.asked_ns < world->hold.length_ns) {
        look_again(world);
    } else {
        world->hold.waits = false;
    }
}
