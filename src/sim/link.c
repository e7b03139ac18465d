/* link.c - the controller's side of agents' connections, as src/host/controller/machines.c; both judge by
 * evidence.h. */
#include "sim/world.h"

#include "base/units.h"

static struct machine *core_machine(const struct world *world, machine_id id)
{
    return &core_cluster(world->controller.core)->machines[id];
}

static int64_t lease_of(const struct world *world)
{
    return core_cluster(world->controller.core)->lease_ns;
}

static void queue_news(struct world *world, enum event_kind kind, machine_id id, const char *why)
{
    static const char *const names[] = {
        [EVENT_MACHINE_AWAY] = "away", [EVENT_MACHINE_GONE] = "gone", [EVENT_MACHINE_SILENT] = "silent"};
    struct pending *pending = controller_queue(world, kind);
    pending->event.machine.machine = arena_str(&pending->arena, core_machine(world, id)->name);
    pending->event.machine.evidence = arena_str(&pending->arena, str_from(why));
    world_trace(world, "controller: m-%u is %s (%s)", id + 1, names[kind], why);
}

static void forget_conn(struct world *world, uint64_t conn)
{
    for (size_t i = 0; i < world->controller.queue.len; i++)
        if (world->controller.queue.items[i]->conn == conn)
            world->controller.queue.items[i]->conn = 0;
}

struct conn *link_conn(const struct world *world, machine_id machine)
{
    if (machine >= world->controller.links.len)
        return NULL; /* its first records are applied before it looks at any link */
    const struct sim_link *link = &world->controller.links.items[machine];
    return link->welcomed ? net_find(world, link->conn) : NULL;
}

/* The host closes it. */
static void drop_conn(struct world *world, struct sim_link *link)
{
    struct conn *conn = net_find(world, link->conn);
    if (!conn)
        return;
    forget_conn(world, link->conn);
    link->conn = 0;
    link->welcomed = false;
    evidence_dropped(&link->evidence);
    net_close_controller(world, conn);
}

static void refuse(struct world *world, struct conn *conn, const char *why)
{
    struct from_controller message = {.kind = FROM_CONTROLLER_REFUSED, .text = str_from(why)};
    net_send_controller(world, conn, &message);
    net_close_controller(world, conn);
}

/* --- leases ----------------------------------------------------------------------------------- */

void link_boot(struct world *world)
{
    size_t count = core_cluster(world->controller.core)->machine_count;
    for (size_t i = 0; i < count; i++) {
        struct sim_link link = {0};
        uint8_t state = core_machine(world, (machine_id)i)->state;
        link.leased = state == MACHINE_READY || state == MACHINE_AWAY;
        evidence_renew(&link.evidence, controller_mono(world));
        if (world->options.plant != PLANT_FORGET_HOLD)
            evidence_owed(&link.evidence, core_lease_hold(world->controller.core)->owed_ns, lease_of(world),
                          controller_mono(world));
        vec_push(&world->controller.links, link);
    }
}

int64_t link_deadline(const struct world *world)
{
    int64_t due_ns = INT64_MAX;
    for (size_t i = 0; i < world->controller.links.len; i++) {
        const struct sim_link *link = &world->controller.links.items[i];
        int64_t at_ns = evidence_silent_at(&link->evidence, lease_of(world));
        if (link->leased && at_ns < due_ns)
            due_ns = at_ns;
    }
    return due_ns;
}

void link_check_leases(struct world *world)
{
    int64_t mono_ns = controller_mono(world);
    for (size_t i = 0; i < world->controller.links.len; i++) {
        struct sim_link *link = &world->controller.links.items[i];
        if (!link->leased || !evidence_is_silent(&link->evidence, lease_of(world), mono_ns))
            continue;
        link->leased = false;
        drop_conn(world, link);
        uint8_t state = core_machine(world, (machine_id)i)->state;
        if (state == MACHINE_READY || state == MACHINE_AWAY)
            queue_news(world, EVENT_MACHINE_SILENT, (machine_id)i, "no sign of life");
    }
}

/* --- holds of the leases ---------------------------------------------------------------------- */

static struct lease_grant grant_lease(struct world *world, struct sim_link *link)
{
    const struct lease_hold *hold = core_lease_hold(world->controller.core);
    struct lease_grant grant = lease_hold_grant(hold, controller_stamp(world));
    evidence_granted(&link->evidence, &grant, lease_of(world));
    return grant;
}

void link_follow_hold(struct world *world)
{
    struct sim_controller *controller = &world->controller;
    const struct lease_hold *hold = core_lease_hold(controller->core);
    int64_t mono_ns = controller_mono(world);
    if (controller->hold_number != hold->number) {
        controller->hold_number = hold->number;
        controller->hold_over_ns =
            hold->owed_ns ? mono_ns + evidence_span_ns(lease_of(world) + hold->owed_ns) : INT64_MAX;
    }
    if (mono_ns < controller->hold_over_ns)
        return;
    controller->hold_over_ns = INT64_MAX;
    controller_queue(world, EVENT_HOLD_OVER)->event.hold_over = hold->number;
}

bool link_hold_counts(const struct world *world, machine_id machine)
{
    const struct sim_link *link = &world->controller.links.items[machine];
    return link_conn(world, machine) &&
           link->evidence.counted == core_lease_hold(world->controller.core)->number;
}

/* --- evidence --------------------------------------------------------------------------------- */

static void pass_verdict(struct world *world, machine_id id, enum verdict verdict, const char *why)
{
    struct sim_link *link = &world->controller.links.items[id];
    const struct evidence *e = &link->evidence;
    world_trace(world,
                "controller: m-%u: connection %llu, tether %llu of %s incarnation, %u tethers since %.6f%s",
                id + 1, (unsigned long long)e->connection, (unsigned long long)e->tether_connection,
                e->incarnation == e->tether_incarnation ? "the same" : "another", e->tethers,
                (double)e->tether_since_ns / 1e9, e->tether_blind ? ", blind" : "");
    if (verdict == VERDICT_AWAY && world->options.plant == PLANT_START_BEFORE_DEAD)
        verdict = VERDICT_GONE;
    if (verdict == VERDICT_GONE) {
        link->leased = false;
        queue_news(world, EVENT_MACHINE_GONE, id, why);
    } else if (verdict == VERDICT_AWAY) {
        queue_news(world, EVENT_MACHINE_AWAY, id, why);
    }
}

void link_closed(struct world *world, struct conn *conn, bool proves)
{
    machine_id id = conn->peer;
    forget_conn(world, conn->id);
    if (id == MACHINE_NONE)
        return;
    struct sim_link *link = &world->controller.links.items[id];
    int64_t oldest_ns = jobs_oldest_start(core_jobs(world->controller.core), id);
    if (conn->tether) {
        pass_verdict(world, id, evidence_tether_closed(&link->evidence, proves, oldest_ns),
                     "a tether closed");
    } else if (link->conn == conn->id) {
        link->conn = 0;
        link->welcomed = false;
        pass_verdict(world, id, evidence_closed(&link->evidence, proves, oldest_ns), "its connection closed");
    }
}

/* --- messages --------------------------------------------------------------------------------- */

static struct machine *find_machine(struct world *world, struct conn *conn, const struct hello *hello)
{
    struct machine *machine = cluster_find(core_cluster(world->controller.core), hello->machine);
    if (!machine)
        refuse(world, conn, "this machine is not in the cluster file");
    return machine;
}

static void on_tether(struct world *world, struct conn *conn, const struct hello *hello)
{
    struct machine *machine = find_machine(world, conn, hello);
    if (!machine)
        return;
    conn->peer = machine->id;
    evidence_tether_opened(&world->controller.links.items[machine->id].evidence, hello,
                           controller_stamp(world));
}

static void on_hello(struct world *world, struct conn *conn, const struct hello *hello)
{
    struct machine *machine = find_machine(world, conn, hello);
    if (!machine)
        return;
    struct sim_link *link = &world->controller.links.items[machine->id];
    if (evidence_is_older(&link->evidence, hello, lease_of(world), controller_mono(world))) {
        refuse(world, conn, "a later connection of this machine has been heard");
        return;
    }
    drop_conn(world, link);
    conn->peer = machine->id;
    link->conn = conn->id;
    link->welcomed = false;
    link->leased = true;
    evidence_hello(&link->evidence, hello, controller_mono(world));
    struct pending *pending = controller_queue(world, EVENT_MACHINE_HELLO);
    hello_copy(&pending->arena, hello, SIZE_MAX, &pending->event.machine_hello.hello);
    pending->conn = conn->id;
}

void link_hello_applied(struct world *world, const struct pending *pending)
{
    const struct cluster *cluster = core_cluster(world->controller.core);
    const struct machine *machine = cluster_find(cluster, pending->event.machine_hello.hello.machine);
    struct conn *conn = net_find(world, pending->conn);
    if (!conn || !machine)
        return;
    struct sim_link *link = &world->controller.links.items[machine->id];
    if (link->conn != conn->id)
        return;
    link->welcomed = true;
    struct from_controller message = {
        .kind = FROM_CONTROLLER_WELCOME,
        .welcome = {core_epoch(world->controller.core), cluster->lease_ns, cluster->heartbeat_ns,
                    machine->chip_count + 1, grant_lease(world, link)},
    };
    net_send_controller(world, conn, &message);
}

static void on_heartbeat(struct world *world, struct conn *conn, const struct heartbeat *heartbeat)
{
    struct sim_link *link = &world->controller.links.items[conn->peer];
    evidence_renew(&link->evidence, controller_mono(world));
    evidence_counted(&link->evidence, heartbeat->grant);
    struct from_controller ack = {.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                  .sent_ns = heartbeat->sent_ns,
                                  .clock_ns = clock_at(&world->controller.wall, world->now_ns),
                                  .grant = grant_lease(world, link)};
    net_send_controller(world, conn, &ack);
    if (heartbeat->step_count)
        steps_report(world, heartbeat);
}

/* PLANT_LOSE_READINESS: everything else of the reports arrives. */
static void plant_unready(struct world *world, struct reports *reports)
{
    for (size_t i = 0; world->options.plant == PLANT_LOSE_READINESS && i < reports->count; i++)
        if (reports->items[i].kind == REPORT_STARTED && world_chance(world, 200000))
            reports->items[i].not_ready = true;
}

static void on_reports(struct world *world, struct conn *conn, const struct reports *reports)
{
    steps_flush(world, true); /* steps that came before an end are booked before it */
    if (world->options.plant == PLANT_LOSE_REPORT && world_chance(world, 50000)) {
        struct from_controller ack = {.kind = FROM_CONTROLLER_REPORTS_ACK, .number = reports->number};
        world_trace(world, "planted: reports %llu of m-%u are lost", (unsigned long long)reports->number,
                    conn->machine + 1);
        net_send_controller(world, conn, &ack);
        return;
    }
    struct pending *pending = controller_queue(world, EVENT_REPORTS);
    struct reports *copy = &pending->event.reports.reports;
    pending->event.reports.machine = arena_str(&pending->arena, core_machine(world, conn->peer)->name);
    reports_copy(&pending->arena, reports, SIZE_MAX, copy);
    plant_unready(world, copy);
    pending->conn = conn->id;
}

void link_message(struct world *world, struct conn *conn, const struct from_agent *message)
{
    if (message->kind == FROM_AGENT_TETHER && conn->tether && conn->peer == MACHINE_NONE) {
        on_tether(world, conn, &message->hello);
        return;
    }
    if (message->kind == FROM_AGENT_HELLO && !conn->tether && conn->peer == MACHINE_NONE) {
        on_hello(world, conn, &message->hello);
        return;
    }
    if (conn->peer == MACHINE_NONE || conn->tether) {
        refuse(world, conn, "say hello first");
        return;
    }
    switch (message->kind) {
    case FROM_AGENT_HEARTBEAT:
        on_heartbeat(world, conn, &message->heartbeat);
        break;
    case FROM_AGENT_STEPS:
        steps_report(world, &message->heartbeat);
        break;
    case FROM_AGENT_REPORTS:
        on_reports(world, conn, &message->reports);
        break;
    default:
        break;
    }
}
