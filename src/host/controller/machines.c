/* machines.c - what we know of each machine: its agent's connection, its tethers, its lease. What these prove
 * is core/health/evidence.h's matter; here are the clocks and the connections. */
#include "core/agent/agent.h"
#include "host/controller/internal.h"

enum { MESSAGE_BYTES_MAX = 1024 }; /* of a report's text; longer ones are cut */

static struct machine *machine_at(const struct controller *controller, machine_id id)
{
    return &core_cluster(controller->core)->machines[id];
}

/* Does the core count on it, now or when its hello has been applied? */
static bool counted_on(const struct controller *controller, machine_id id)
{
    uint8_t state = machine_at(controller, id)->state;
    return state == MACHINE_READY || state == MACHINE_AWAY || controller->links[id].hellos > 0;
}

static void queue_news(struct controller *controller, enum event_kind kind, machine_id id, const char *format,
                       ...) __attribute__((format(printf, 4, 5)));
static void queue_news(struct controller *controller, enum event_kind kind, machine_id id, const char *format,
                       ...)
{
    struct pending *pending = pending_new(kind);
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    pending->event.machine.machine = arena_str(&pending->arena, machine_at(controller, id)->name);
    pending->event.machine.evidence = arena_str(&pending->arena, buf_str(&text));
    commit_queue(controller, pending);
}

/* --- leases ----------------------------------------------------------------------------------- */

static int64_t span_ns(const struct controller *controller)
{
    return evidence_span_ns(core_cluster(controller->core)->lease_ns);
}

/* A lease that is renewed stays where it is in the heap and is looked at again when it falls due. */
static void lease_arm(struct controller *controller, machine_id id)
{
    struct link *link = &controller->links[id];
    if (heap_has(&link->lease))
        return;
    link->lease.key = link->evidence.renewed_ns + span_ns(controller);
    link->lease.tie = id;
    heap_insert(&controller->leases, &link->lease);
}

static void lease_drop(struct controller *controller, machine_id id)
{
    if (heap_has(&controller->links[id].lease))
        heap_remove(&controller->leases, &controller->links[id].lease);
}

int64_t machines_deadline(const struct controller *controller)
{
    struct heap_node *node = heap_min(&controller->leases);
    return node ? node->key : INT64_MAX;
}

void machines_conn_drop(struct controller *controller, machine_id id)
{
    struct link *link = &controller->links[id];
    if (!link->conn)
        return;
    commit_forget_conn(controller, link);
    peers_close(link->conn);
    link->conn = NULL;
    link->welcomed = false;
    controller->missing_news -= link->missed_news;
    link->missed_news = false;
    evidence_dropped(&link->evidence);
    readers_machine_gone(controller, id);
    execs_machine_gone(controller, id);
}

/* "Now" is when the loop last began to listen: heartbeats that came while it was busy (or the whole process
 * was stopped) have been read before they can be missed. */
static void check_leases(struct controller *controller)
{
    int64_t now_ns = controller->listened_ns, lease_ns = core_cluster(controller->core)->lease_ns;
    struct heap_node *node;
    while ((node = heap_min(&controller->leases)) && node->key <= now_ns) {
        struct link *link = container_of(node, struct link, lease);
        machine_id id = (machine_id)(link - controller->links);
        heap_remove(&controller->leases, node);
        if (!evidence_is_silent(&link->evidence, lease_ns, now_ns)) {
            lease_arm(controller, id);
            continue;
        }
        machines_conn_drop(controller, id);
        if (counted_on(controller, id))
            queue_news(controller, EVENT_MACHINE_SILENT, id, "no sign of life for %.1f s",
                       (double)(now_ns - link->evidence.renewed_ns) / 1e9);
    }
}

/* There is room again: who has something to say shall say it all again. */
static void check_missed(struct controller *controller)
{
    if (controller->missing_news == 0 || controller->blocked_since_ns || !commit_has_room(controller))
        return;
    size_t count = core_cluster(controller->core)->machine_count;
    for (size_t i = 0; i < count; i++)
        if (controller->links[i].missed_news)
            machines_conn_drop(controller, (machine_id)i);
    CHECK(controller->missing_news == 0);
}

void machines_check(struct controller *controller)
{
    check_leases(controller);
    check_missed(controller);
}

void machines_boot(struct controller *controller)
{
    size_t count = core_cluster(controller->core)->machine_count;
    controller->links = mem_alloc((count + 1) * sizeof(*controller->links));
    for (size_t i = 0; i < count; i++)
        if (counted_on(controller, (machine_id)i)) {
            evidence_renew(&controller->links[i].evidence, controller_mono_ns());
            lease_arm(controller, (machine_id)i);
        }
}

void machines_resume(struct controller *controller)
{
    size_t count = core_cluster(controller->core)->machine_count;
    for (size_t i = 0; i < count; i++) {
        struct link *link = &controller->links[i];
        if (link->conn && link->welcomed)
            machines_conn_drop(controller, (machine_id)i);
        evidence_renew(&link->evidence, controller_mono_ns());
        if (counted_on(controller, (machine_id)i))
            lease_arm(controller, (machine_id)i);
    }
}

void machines_done(struct controller *controller)
{
    heap_done(&controller->leases);
    mem_free(controller->links);
}

/* --- evidence --------------------------------------------------------------------------------- */

static bool proves_death(enum wire_reason reason)
{
    return reason == WIRE_EOF || reason == WIRE_RESET;
}

static void pass_verdict(struct controller *controller, machine_id id, enum verdict verdict, const char *why)
{
    uint32_t tethers = controller->links[id].evidence.tethers;
    if (verdict == VERDICT_NONE || !counted_on(controller, id))
        return;
    if (verdict == VERDICT_GONE) {
        lease_drop(controller, id);
        queue_news(controller, EVENT_MACHINE_GONE, id, "connection and tethers closed (%s)", why);
    } else if (machine_at(controller, id)->state != MACHINE_AWAY || controller->links[id].hellos > 0) {
        queue_news(controller, EVENT_MACHINE_AWAY, id, "the agent's connection broke (%s), %u tether%s open",
                   why, tethers, tethers == 1 ? " is" : "s are");
    }
}

void machines_closed(struct controller *controller, const struct peer *peer, enum wire_reason reason,
                     const char *why)
{
    struct link *link = &controller->links[peer->machine];
    int64_t oldest_ns = jobs_oldest_start(core_jobs(controller->core), peer->machine);
    bool proves = proves_death(reason);
    const char *text = proves ? wire_reason_name(reason) : why;
    if (peer->tether) {
        pass_verdict(controller, peer->machine, evidence_tether_closed(&link->evidence, proves, oldest_ns),
                     text);
        return;
    }
    CHECK(link->conn == peer->conn);
    commit_forget_conn(controller, link);
    link->conn = NULL;
    link->welcomed = false;
    controller->missing_news -= link->missed_news;
    link->missed_news = false;
    readers_machine_gone(controller, peer->machine);
    execs_machine_gone(controller, peer->machine);
    pass_verdict(controller, peer->machine, evidence_closed(&link->evidence, proves, oldest_ns), text);
}

/* --- messages --------------------------------------------------------------------------------- */

static struct machine *find_machine(struct controller *controller, struct wire_conn *conn,
                                    const struct hello *hello)
{
    struct machine *machine = cluster_find(core_cluster(controller->core), hello->machine);
    if (!machine)
        peers_refuse(conn, "this machine is not in the cluster file");
    else if (hello->version > WIRE_VERSION)
        peers_refuse(conn, "the agent speaks a newer protocol than this controller");
    else
        return machine;
    return NULL;
}

void machines_tether(struct controller *controller, struct wire_conn *conn, const struct hello *hello)
{
    struct machine *machine = find_machine(controller, conn, hello);
    if (!machine)
        return;
    struct peer *peer = wire_conn_context(conn);
    peer->machine = machine->id;
    peer->tether = true;
    evidence_tether_opened(&controller->links[machine->id].evidence, hello, controller_stamp_ns(controller));
}

/* The newest connection of a machine counts. What was said on an older one and held up on the way is not
 * news; and of two agents that were given one name the later stays, or they would take turns for ever. */
void machines_hello(struct controller *controller, struct wire_conn *conn, const struct hello *hello)
{
    struct machine *machine = find_machine(controller, conn, hello);
    if (!machine)
        return;
    struct link *link = &controller->links[machine->id];
    if (evidence_is_older(&link->evidence, hello, core_cluster(controller->core)->lease_ns,
                          controller_mono_ns())) {
        peers_refuse(conn, "a later connection of this machine has been heard");
        return;
    }
    if (!commit_has_room(controller)) { /* it comes again */
        peers_close(conn);
        return;
    }
    machines_conn_drop(controller, machine->id);
    commit_forget_hellos(controller, machine->id);
    struct peer *peer = wire_conn_context(conn);
    peer->machine = machine->id;
    link->conn = conn;
    link->knows_sheets = hello->sheets;
    link->sheet = 0;
    evidence_hello(&link->evidence, hello, controller_mono_ns());
    lease_arm(controller, machine->id);
    struct pending *pending = pending_new(EVENT_MACHINE_HELLO);
    hello_copy(&pending->arena, hello, MESSAGE_BYTES_MAX, &pending->event.machine_hello.hello);
    pending->machine = machine->id;
    pending->conn = conn;
    commit_queue(controller, pending);
}

void machines_hello_applied(struct controller *controller, const struct pending *pending)
{
    if (!pending->conn)
        return;
    struct link *link = &controller->links[pending->machine];
    CHECK(link->conn == pending->conn);
    link->welcomed = true;
    const struct cluster *cluster = core_cluster(controller->core);
    struct from_controller message = {
        .kind = FROM_CONTROLLER_WELCOME,
        .welcome = {core_epoch(controller->core), cluster->lease_ns, cluster->heartbeat_ns,
                    cluster->machines[pending->machine].chip_count + 1},
    };
    wire_send_controller(pending->conn, &message);
}

static void on_heartbeat(struct controller *controller, machine_id id, const struct heartbeat *heartbeat)
{
    struct link *link = &controller->links[id];
    evidence_renew(&link->evidence, controller_mono_ns());
    struct from_controller ack = {.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                  .sent_ns = heartbeat->sent_ns,
                                  .clock_ns = controller_wall_ns()};
    wire_send_controller(link->conn, &ack);
    if (heartbeat->step_count)
        tracker_report(controller, id, heartbeat);
    if (heartbeat->usage.window_ns > 0 && controller->api)
        api_usage(controller->api, id, &heartbeat->usage);
}

static void on_reports(struct controller *controller, machine_id id, const struct reports *reports)
{
    struct link *link = &controller->links[id];
    if (link->missed_news ||
        !commit_has_room(controller)) { /* never acknowledged, so it will be said again */
        controller->missing_news += !link->missed_news;
        link->missed_news = true;
        return;
    }
    steps_before_end(controller, reports);
    struct pending *pending = pending_new(EVENT_REPORTS);
    pending->event.reports.machine = arena_str(&pending->arena, machine_at(controller, id)->name);
    reports_copy(&pending->arena, reports, MESSAGE_BYTES_MAX, &pending->event.reports.reports);
    pending->machine = id;
    pending->conn = link->conn;
    commit_queue(controller, pending);
}

void machines_message(struct controller *controller, machine_id id, const struct from_agent *message)
{
    switch (message->kind) {
    case FROM_AGENT_HEARTBEAT:
        on_heartbeat(controller, id, &message->heartbeat);
        break;
    case FROM_AGENT_STEPS:
        tracker_report(controller, id, &message->heartbeat);
        break;
    case FROM_AGENT_REPORTS:
        on_reports(controller, id, &message->reports);
        break;
    case FROM_AGENT_LOG_DATA:
        readers_data(controller, id, &message->log_data);
        break;
    case FROM_AGENT_EXEC_DATA:
        execs_data(controller, id, &message->exec_data);
        break;
    case FROM_AGENT_EXEC_END:
        execs_end(controller, id, &message->exec_end);
        break;
    case FROM_AGENT_HELLO:
    case FROM_AGENT_TETHER:
        break;
    }
}
