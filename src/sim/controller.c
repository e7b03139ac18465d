/* controller.c - the controller: the driver that ships (drive/drive.h), between ports on a simulated disk,
 * network and clocks; its crashes and starts.
 *
 * Its process may wait for the disk (swarm.log_waits, as the live one does) or keep reading meanwhile. */
#include "sim/world.h"

#include "base/hash.h"
#include "base/units.h"

#define TURN_DELAY_NS  (200 * NS_PER_US)
#define MAINTAIN_NS    (500 * NS_PER_MS) /* the longest time between turns of the live one's loop */
#define PAUSED_LOOK_NS (50 * NS_PER_MS)
#define RESTART_MIN_NS (5 * NS_PER_MS)
#define RESTART_MAX_NS (4 * NS_PER_SECOND)

bool controller_is_open(const struct world *world)
{
    return world->controller.driver && driver_is_open(world->controller.driver);
}

/* Returns whether the host waits until its disk has answered. */
static bool waits(const struct world *world)
{
    return world->swarm.log_waits && driver_is_appending(world->controller.driver);
}

bool controller_reads(const struct world *world)
{
    return controller_is_open(world) && !world->controller.paused && !waits(world);
}

/* --- turns ------------------------------------------------------------------------------------ */

static void arm_turn(struct world *world, int64_t true_ns)
{
    struct sim_controller *controller = &world->controller;
    if (controller->turn_ns <= true_ns)
        return;
    controller->turn_ns = true_ns;
    world_at(world, true_ns, SIM_CONTROLLER_TURN, 0, controller->life, ++controller->turn_number);
}

void controller_turn_soon(struct world *world)
{
    arm_turn(world, world->now_ns + 1 + world_draw(world, 0, TURN_DELAY_NS));
}

/* Arms a turn if the driver has input to handle. */
static void turn_if_asked(struct world *world)
{
    if (driver_has_work(world->controller.driver))
        controller_turn_soon(world);
}

/* Arms the next turn, later than now, so that messages that have arrived are handed over before it. */
static void listen(struct world *world)
{
    const struct sim_controller *controller = &world->controller;
    int64_t mono_ns = clock_at(&controller->mono, world->now_ns);
    int64_t due_ns = clock_when(&controller->mono, driver_wait(controller->driver, mono_ns + MAINTAIN_NS));
    arm_turn(world, due_ns > world->now_ns ? due_ns : world->now_ns + 1);
}

void controller_turn(struct world *world, const struct sim_event *event)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->driver || event->id != controller->life || event->number != controller->turn_number)
        return;
    controller->turn_ns = INT64_MAX;
    if (controller->paused || waits(world))
        return; /* another turn is armed when it runs again */
    driver_timers(controller->driver);
    do
        driver_turn(controller->driver);
    while (driver_has_work(controller->driver));
    driver_maintain(controller->driver);
    if (!waits(world))
        listen(world);
}

/* Only a busy loop, and not a stopped process, has a stand-in that answers heartbeats. */
void controller_pause(struct world *world, int64_t pause_ns, bool at_work)
{
    struct sim_controller *controller = &world->controller;
    controller->paused = true;
    controller->stand_in = (struct stand_in_clock){.limit_ns = 2 * world->swarm.lease_ns};
    if (at_work) {
        stand_in_busy(&controller->stand_in, clock_at(&controller->mono, world->now_ns));
        world_after(world, STAND_IN_PERIOD_NS, SIM_CONTROLLER_ATTEND, 0, controller->life, 0);
    }
    world_after(world, pause_ns, SIM_CONTROLLER_RESUME, 0, controller->life, 0);
}

void controller_attend(struct world *world, const struct sim_event *event)
{
    struct sim_controller *controller = &world->controller;
    int64_t mono_ns = clock_at(&controller->mono, world->now_ns);
    if (event->id != controller->life || !controller->paused || !controller_is_open(world))
        return;
    if (stand_in_due(&controller->stand_in, mono_ns)) {
        net_attend(world);
        stand_in_round(&controller->stand_in, mono_ns);
    }
    world_after(world, STAND_IN_PERIOD_NS, SIM_CONTROLLER_ATTEND, 0, controller->life, 0);
}

void controller_go_on(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    controller->paused = false;
    int64_t attended_ns = stand_in_turn(&controller->stand_in);
    if (!controller->driver)
        return;
    driver_attended(controller->driver, attended_ns);
    net_hand_over(world);
}

void controller_resume(struct world *world, const struct sim_event *event)
{
    if (event->id != world->controller.life)
        return;
    controller_go_on(world);
    controller_turn_soon(world);
    net_unblock(world);
}

/* --- the log ---------------------------------------------------------------------------------- */

static int port_append(void *context, const struct drive_record *records, size_t count, struct error *error)
{
    struct world *world = context;
    if (world->disk.full)
        return error_set(error, world->disk.busy ? ERROR_UNAVAILABLE : ERROR_NO_SPACE, "the disk is full");
    for (size_t i = 0; i < count; i++)
        disk_append(&world->disk, &records[i]);
    world_after(world, world_draw(world, world->swarm.sync_min_ns, world->swarm.sync_max_ns),
                SIM_CONTROLLER_SYNCED, 0, world->controller.life, 0);
    return world->options.plant == PLANT_APPLY_BEFORE_LOG ? APPEND_DONE : APPEND_LATER;
}

static bool port_snapshot(void *context, uint64_t seq, int64_t stamp_ns, struct buf *bytes)
{
    disk_snapshot(context, seq, bytes);
    return false;
}

static void port_refuses(void *context, const struct error *why)
{
    world_trace(context, "controller: the log takes no records: %s", why->text);
}

static void port_takes(void *context, int64_t refused_ns)
{
    world_trace(context, "controller: the log takes records again after %.3f s", (double)refused_ns / 1e9);
}

static void port_lost(void *context, const struct error *why)
{
    world_fail(context, TORTURE_SAFETY, "the driver gives up its log: %s", why->text);
}

/* Ends the append: all of its records are durable, or none is. */
static void append_ends(struct world *world)
{
    struct error error = {0};
    if (world->healing || !world_chance(world, world->swarm.sync_fail_ppm)) {
        disk_synced(&world->disk);
        driver_appended(world->controller.driver, APPEND_DONE, NULL);
        world->disk.restored = false; /* the boot record says so now */
        plant_show_hold(world);
        return;
    }
    disk_fails(&world->disk);
    int rc = error_set(&error, world_chance(world, 500000) ? ERROR_NO_SPACE : ERROR_UNAVAILABLE, "by chance");
    driver_appended(world->controller.driver, rc, &error);
}

void controller_synced(struct world *world, const struct sim_event *event)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->driver || event->id != controller->life)
        return;
    if (controller->paused) {
        world_after(world, PAUSED_LOOK_NS, SIM_CONTROLLER_SYNCED, 0, event->id, 0);
        return;
    }
    if (driver_is_appending(controller->driver))
        append_ends(world);
    else
        disk_synced(&world->disk); /* planted: the records were applied before they were durable */
    driver_maintain(controller->driver);
    controller_turn_soon(world);
    net_unblock(world);
    client_unblock(world);
}

/* --- the network ------------------------------------------------------------------------------ */

static void port_send(void *context, drive_session session, const struct from_controller *message)
{
    struct conn *conn = net_find(context, session);
    if (conn && conn->controller_open)
        net_send_controller(context, conn, message);
}

static void port_close(void *context, drive_session session, const char *refused)
{
    struct conn *conn = net_find(context, session);
    if (conn)
        net_close_controller(context, conn);
}

void controller_message(struct world *world, struct conn *conn, struct from_agent *message)
{
    if (plant_message(world, conn, message))
        return;
    driver_message(world->controller.driver, conn->id, message);
    turn_if_asked(world);
}

static void trace_evidence(struct world *world, uint32_t machine)
{
    const struct machine *known =
        cluster_find(core_cluster(world->controller.core), str_from(world->machines[machine].name));
    if (!world->options.trace || !known)
        return;
    const struct evidence *e = driver_evidence(world->controller.driver, known->id);
    world_trace(world,
                "controller: m-%u: connection %llu, tether %llu of %s incarnation, %u tethers since %.6f%s",
                machine + 1, (unsigned long long)e->connection, (unsigned long long)e->tether_connection,
                e->incarnation == e->tether_incarnation ? "the same" : "another", e->tethers,
                (double)e->tether_since_ns / 1e9, e->tether_blind ? ", blind" : "");
}

void controller_conn_closed(struct world *world, struct conn *conn, bool proves)
{
    uint32_t machine = conn->machine;
    bool tether = conn->tether;
    driver_closed(world->controller.driver, conn->id, proves,
                  tether ? "a tether closed" : "its connection closed");
    trace_evidence(world, machine);
    if (!tether)
        plant_closed(world, machine);
    turn_if_asked(world);
}

/* --- clocks and clients ----------------------------------------------------------------------- */

static int64_t port_mono_ns(void *context)
{
    struct world *world = context;
    plant_hide_hold(world);
    return clock_at(&world->controller.mono, world->now_ns);
}

static int64_t port_wall_ns(void *context)
{
    const struct world *world = context;
    return clock_at(&world->controller.wall, world->now_ns);
}

static void port_reply(void *context, drive_request request, const struct effect *effect)
{
    client_reply(context, effect);
}

static void port_refuse(void *context, drive_request request, int code, const char *reason, const char *why)
{
    world_trace(context, "client: refused: %d %s", code, why);
}

static void port_before_step(void *context, const struct event *event)
{
    oracle_before(context, event);
    plant_before_step(context, event);
}

static void port_after_step(void *context, const struct event *event, const struct drive_record *record,
                            const struct effects *effects)
{
    struct world *world = context;
    plant_after_step(world);
    oracle_applied(world, event, record);
    for (size_t i = 0; i < effects->list.len; i++)
        if (effects->list.items[i].kind == EFFECT_TASK_START) {
            oracle_told_start(world, effects->list.items[i].start);
            sim_switches_judge_start(world, effects->list.items[i].start);
        }
}

void controller_switch_spoke(struct world *world)
{
    turn_if_asked(world);
}

void controller_request(struct world *world, struct request *request)
{
    driver_write(world->controller.driver, &request->write, request->id);
    request->write.prepared = NULL; /* the driver owns it now */
    turn_if_asked(world);
}

/* --- start and crash -------------------------------------------------------------------------- */

static void make_driver(struct world *world)
{
    const struct swarm *swarm = &world->swarm;
    struct driver_options options = {.version = STR("torture"),
                                     .turn_records_max = swarm->turn_records_max,
                                     .turn_bytes_max = swarm->turn_bytes_max,
                                     .queue_bytes_max = swarm->queue_bytes_max,
                                     .rank_table_inside_max = swarm->rank_table_inside_max,
                                     .snapshot_every = swarm->snapshot_every,
                                     .restored =
                                         world->disk.restored && world->options.plant != PLANT_HIDE_RESTORE,
                                     .snapshot_seq = core_seq(world->controller.core)};
    struct driver_ports ports = {
        .log = {world, port_append, port_snapshot, port_refuses, port_takes, port_lost},
        .net = {world, port_send, port_close},
        .clock = {world, port_mono_ns, port_wall_ns},
        .sinks = {.context = world,
                  .reply = port_reply,
                  .refuse = port_refuse,
                  .before_step = port_before_step,
                  .after_step = port_after_step},
        .switches = {world, sim_switches_apply},
    };
    world->controller.planted.opened = false;
    world->controller.driver = driver_new(&options, &ports, world->controller.core);
}

/* Returns whether a starting process may use the state of the previous process. A replay from scratch gives
 * this very state (oracle.c compares them), so it is done only if the log has doubled since the last one.
 * Otherwise long worlds with many crashes would spend their time on replays. */
static bool may_go_on_with_left(const struct world *world, bool from_snapshot)
{
    const struct sim_disk *disk = &world->disk;
    const struct core *left = world->controller.left;
    return left && world->options.plant == PLANT_NONE && core_seq(left) <= disk->log.len &&
           !(from_snapshot && disk->snapshots.len > 0) && disk->log.len < 2 * disk->whole;
}

/* Gives the controller the state of the log: that of the previous process, or one read from the log. */
static bool read_state(struct world *world, bool from_snapshot)
{
    struct sim_controller *controller = &world->controller;
    if (may_go_on_with_left(world, from_snapshot)) {
        controller->core = controller->left;
    } else {
        core_free(controller->left);
        controller->core = core_new();
        if (!from_snapshot || world->disk.snapshots.len == 0)
            world->disk.whole = world->disk.log.len;
    }
    controller->left = NULL;
    return disk_replay(world, from_snapshot && core_seq(controller->core) == 0, controller->core);
}

void controller_start(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    controller->start_due = false;
    if (controller->core)
        return;
    if (world->disk.full && !world->healing) { /* it cannot even write its boot record */
        controller->start_due = true;
        world_after(world, NS_PER_SECOND, SIM_CONTROLLER_START, 0, 0, 0);
        return;
    }
    controller->life++;
    controller->turn_ns = INT64_MAX;
    controller->paused = false;
    (void)stand_in_turn(&controller->stand_in);
    world->outcome->boots++;
    bool from_snapshot = world_chance(world, 700000);
    if (!read_state(world, from_snapshot))
        return;
    make_driver(world);
    world_trace(world, "controller starts: record %llu%s", (unsigned long long)core_seq(controller->core),
                from_snapshot ? ", from a snapshot" : "");
    if (world->disk.restored)
        oracle_restored(world);
    oracle_restarted(world);
    bool tells = core_cluster(controller->core)->machine_count == 0 || world_chance(world, 100000);
    uint8_t secret[GANG_KEY_BYTES];
    for (size_t i = 0; i < sizeof secret; i++)
        secret[i] = (uint8_t)hash_mix(world->options.seed + i);
    driver_start(controller->driver, hash_mix(world->options.seed), secret,
                 tells ? buf_str(&world->cluster_json) : STR(""));
    controller_turn_soon(world);
}

static void end_process(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    if (controller->driver)
        reach_add(world, driver_stats(controller->driver));
    driver_free(controller->driver);
    core_free(controller->left);
    controller->left = controller->core;
    controller->driver = NULL;
    controller->core = NULL;
}

void controller_leave(struct world *world, int64_t away_ns)
{
    struct sim_controller *controller = &world->controller;
    if (!controller->core)
        return;
    world_trace(world, "controller crashes at record %llu", (unsigned long long)core_seq(controller->core));
    end_process(world);
    disk_crash(world);
    for (size_t i = world->conns.len; i-- > 0;)
        if (world->conns.items[i]->controller_open)
            net_close_controller(world, world->conns.items[i]);
    controller->start_due = true;
    world_after(world, away_ns, SIM_CONTROLLER_START, 0, 0, 0);
}

void controller_restore(struct world *world)
{
    if (!world->controller.core)
        return;
    controller_crash(world);
    if (!disk_restore(world))
        return;
    core_free(world->controller.left);
    world->controller.left = NULL;
    world_trace(world, "operator: puts back the log as it was at record %zu", world->disk.log.len);
    oracle_lost(world);
    world->outcome->reached[REACH_RESTORED]++;
}

void controller_crash(struct world *world)
{
    controller_leave(world, world_draw(world, RESTART_MIN_NS, RESTART_MAX_NS));
}

void controller_done(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    if (controller->core)
        end_process(world);
    core_free(controller->left);
    vec_done(&controller->planted.hidden);
}
