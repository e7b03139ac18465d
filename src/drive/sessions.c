/* sessions.c - agents' sessions: their kinds, the current one of each machine, its tethers, its lease.
 * core/health/evidence.h decides what they prove; the clocks and the handles are here.
 *
 *     (unknown) ── Hello ──► current ── applied ──► welcome ── a newer Hello, silence, the peer ──► closed
 *         ├────── Tether ──► tether  ────────────────────────────────────────────── the peer ──► closed
 *         └── anything else, an old Hello, a machine of none or another cluster ──► refused
 */
#include "drive/internal.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/agent/agent.h"
#include "core/health/lease_hold.h"

enum { MESSAGE_BYTES_MAX = 1024 }; /* of a report's text; longer ones are cut */

static struct machine *machine_at(const struct driver *driver, machine_id id)
{
    return &core_cluster(driver->core)->machines[id];
}

static int64_t lease_of(const struct driver *driver)
{
    return core_cluster(driver->core)->policy.lease_ns;
}

/* Returns whether the core counts on the machine, now or once its queued Hello has been applied. */
static bool counted_on(const struct driver *driver, machine_id id)
{
    uint8_t state = machine_at(driver, id)->state;
    return state == MACHINE_READY || state == MACHINE_AWAY || driver->machines[id].hellos > 0;
}

static void queue_news(struct driver *driver, enum event_kind kind, machine_id id, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
static void queue_news(struct driver *driver, enum event_kind kind, machine_id id, const char *format, ...)
{
    struct pending *pending = pending_new(kind);
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    pending->event.machine.machine = arena_str(&pending->arena, machine_at(driver, id)->name);
    pending->event.machine.evidence = arena_str(&pending->arena, buf_str(&text));
    queue_put(driver, pending);
}

static void queue_silence(struct driver *driver, machine_id id, int64_t silent_ns)
{
    int64_t tenths = (silent_ns + 50 * NS_PER_MS) / (100 * NS_PER_MS);
    queue_news(driver, EVENT_MACHINE_SILENT, id, "no sign of life for %lld.%lld s", (long long)(tenths / 10),
               (long long)(tenths % 10));
}

static void send(struct driver *driver, drive_session session, const struct from_controller *message)
{
    driver->ports.net.send(driver->ports.net.context, session, message);
}

const struct evidence *driver_evidence(const struct driver *driver, machine_id machine)
{
    return &driver->machines[machine].evidence;
}

/* --- handles ---------------------------------------------------------------------------------- */

static struct session *session_find(const struct driver *driver, drive_session handle)
{
    return u64_map_get(&driver->sessions_by_handle, handle);
}

static void session_add(struct driver *driver, drive_session handle, machine_id machine, bool tether)
{
    struct session *session = mem_alloc(sizeof(*session));
    session->handle = handle;
    session->machine = machine;
    session->tether = tether;
    list_append(&driver->sessions, &session->node);
    CHECK(!u64_map_put(&driver->sessions_by_handle, handle, session));
}

static void session_free(struct driver *driver, struct session *session)
{
    CHECK(u64_map_remove(&driver->sessions_by_handle, session->handle) == session);
    list_remove(&session->node);
    mem_free(session);
}

static void refuse(struct driver *driver, drive_session session, const char *why)
{
    struct from_controller message = {.kind = FROM_CONTROLLER_REFUSED, .text = str_from(why)};
    message.cluster = core_identity(driver->core);
    send(driver, session, &message);
    driver->ports.net.close(driver->ports.net.context, session, why);
}

/* Forgets the machine's current session, which either side has ended. */
static void current_ends(struct driver *driver, machine_id id)
{
    struct machine_sessions *sessions = &driver->machines[id];
    queue_forget_session(driver, sessions);
    session_free(driver, session_find(driver, sessions->session));
    sessions->session = 0;
    sessions->welcomed = false;
    driver->missing_news -= sessions->missed_news;
    sessions->missed_news = false;
    if (driver->ports.sinks.session_over)
        driver->ports.sinks.session_over(driver->ports.sinks.context, id);
}

/* Ends the machine's current session, if there is one, from the driver's side. */
static void current_drop(struct driver *driver, machine_id id)
{
    struct machine_sessions *sessions = &driver->machines[id];
    drive_session handle = sessions->session;
    if (!handle)
        return;
    current_ends(driver, id);
    evidence_dropped(&sessions->evidence);
    driver->ports.net.close(driver->ports.net.context, handle, NULL);
}

/* --- leases ----------------------------------------------------------------------------------- */

/* Puts a lease into the heap. A renewed lease keeps its place in the heap and is examined again when it falls
 * due; a lease that now ends earlier, because a hold has ended, is moved. */
static void lease_arm(struct driver *driver, machine_id id)
{
    struct machine_sessions *sessions = &driver->machines[id];
    int64_t silent_ns = evidence_silent_at(&sessions->evidence, lease_of(driver));
    if (heap_has(&sessions->lease)) {
        if (sessions->lease.key <= silent_ns)
            return;
        heap_remove(&driver->leases, &sessions->lease);
    }
    sessions->lease.key = silent_ns;
    sessions->lease.tie = id;
    heap_insert(&driver->leases, &sessions->lease);
}

static void lease_drop(struct driver *driver, machine_id id)
{
    if (heap_has(&driver->machines[id].lease))
        heap_remove(&driver->leases, &driver->machines[id].lease);
}

int64_t sessions_deadline(const struct driver *driver)
{
    struct heap_node *node = heap_min(&driver->leases);
    bool first = node && node->key < driver->hold_over_ns;
    return first ? node->key : driver->hold_over_ns;
}

/* --- holds of the leases (core/health/lease_hold.h) ------------------------------------------- */

/* Returns the grant for the machine's agent in the answer to its last message. */
static struct lease_grant grant_lease(struct driver *driver, struct machine_sessions *sessions)
{
    struct lease_grant grant = lease_hold_grant(core_lease_hold(driver->core), driver_stamp_ns(driver));
    evidence_granted(&sessions->evidence, &grant, lease_of(driver));
    return grant;
}

/* Follows changes of the hold. With each change the owed time is counted from the start: at its end every
 * earlier grant has ended. */
static void follow_hold(struct driver *driver)
{
    const struct lease_hold *hold = core_lease_hold(driver->core);
    if (driver->hold_number != hold->number) {
        int64_t owed_ns = evidence_span_ns(lease_of(driver) + hold->owed_ns);
        driver->hold_number = hold->number;
        driver->hold_over_ns = hold->owed_ns ? driver_mono_ns(driver) + owed_ns : INT64_MAX;
    }
    if (driver->listened_ns < driver->hold_over_ns)
        return;
    driver->hold_over_ns = INT64_MAX;
    struct pending *pending = pending_new(EVENT_HOLD_OVER);
    pending->event.hold_over = hold->number;
    queue_put(driver, pending);
}

bool driver_hold_counts(const struct driver *driver, machine_id machine)
{
    const struct machine_sessions *sessions = &driver->machines[machine];
    return sessions->welcomed && sessions->evidence.counted == core_lease_hold(driver->core)->number;
}

/* Ends leases that have expired. "Now" is when the host last began to wait: heartbeats that arrived while it
 * was busy (or its process was stopped) have been handed over before they can be missed. */
static void check_leases(struct driver *driver)
{
    int64_t now_ns = driver->listened_ns, lease_ns = lease_of(driver);
    struct heap_node *node;
    while ((node = heap_min(&driver->leases)) && node->key <= now_ns) {
        struct machine_sessions *sessions = container_of(node, struct machine_sessions, lease);
        machine_id id = (machine_id)(sessions - driver->machines);
        heap_remove(&driver->leases, node);
        if (!evidence_is_silent(&sessions->evidence, lease_ns, now_ns)) {
            lease_arm(driver, id);
            continue;
        }
        current_drop(driver, id);
        if (counted_on(driver, id))
            queue_silence(driver, id, now_ns - sessions->evidence.renewed_ns);
    }
}

/* Once there is space again, ends the sessions of agents whose reports were dropped: with a new Hello they
 * report everything. */
static void check_missed(struct driver *driver)
{
    if (driver->missing_news == 0 || driver->blocked_since_ns || !queue_has_room(driver))
        return;
    size_t count = core_cluster(driver->core)->machine_count;
    for (size_t i = 0; i < count; i++)
        if (driver->machines[i].missed_news)
            current_drop(driver, (machine_id)i);
    CHECK(driver->missing_news == 0);
}

void sessions_check(struct driver *driver)
{
    follow_hold(driver);
    check_leases(driver);
    check_missed(driver);
}

void sessions_open(struct driver *driver)
{
    size_t count = core_cluster(driver->core)->machine_count;
    int64_t now_ns = driver_mono_ns(driver), owed_ns = core_lease_hold(driver->core)->owed_ns;
    if (owed_ns < driver->options.owed_ns)
        owed_ns = driver->options.owed_ns;
    driver->machines = mem_alloc((count + 1) * sizeof(*driver->machines));
    driver->hold_over_ns = INT64_MAX;
    for (size_t i = 0; i < count; i++)
        if (counted_on(driver, (machine_id)i)) {
            evidence_renew(&driver->machines[i].evidence, now_ns);
            evidence_owed(&driver->machines[i].evidence, owed_ns, lease_of(driver), now_ns);
            lease_arm(driver, (machine_id)i);
        }
}

/* Drops sessions whose Hello is being appended: it is applied before the boot, which makes the machine away
 * again. */
static void drop_those_in_flight(struct driver *driver)
{
    for (size_t i = 0; i < driver->in_flight; i++) {
        const struct pending *pending = driver->queue.items[i];
        if (pending->event.kind == EVENT_MACHINE_HELLO && pending->session)
            current_drop(driver, pending->machine);
    }
}

void sessions_resume(struct driver *driver)
{
    drop_those_in_flight(driver);
    size_t count = core_cluster(driver->core)->machine_count;
    for (size_t i = 0; i < count; i++) {
        struct machine_sessions *sessions = &driver->machines[i];
        if (sessions->welcomed)
            current_drop(driver, (machine_id)i);
        evidence_renew(&sessions->evidence, driver_mono_ns(driver));
        if (counted_on(driver, (machine_id)i))
            lease_arm(driver, (machine_id)i);
    }
}

void sessions_done(struct driver *driver)
{
    list_for_each_safe(node, after, &driver->sessions)
        session_free(driver, container_of(node, struct session, node));
    u64_map_done(&driver->sessions_by_handle);
    heap_done(&driver->leases);
    mem_free(driver->machines);
}

/* --- evidence --------------------------------------------------------------------------------- */

static void pass_verdict(struct driver *driver, machine_id id, enum verdict verdict, const char *why)
{
    uint32_t tethers = driver->machines[id].evidence.tethers;
    if (verdict == VERDICT_NONE || !counted_on(driver, id))
        return;
    if (verdict == VERDICT_GONE) {
        lease_drop(driver, id);
        queue_news(driver, EVENT_MACHINE_GONE, id, "connection and tethers closed (%s)", why);
    } else if (machine_at(driver, id)->state != MACHINE_AWAY || driver->machines[id].hellos > 0) {
        queue_news(driver, EVENT_MACHINE_AWAY, id, "the agent's connection broke (%s), %u tether%s open", why,
                   tethers, tethers == 1 ? " is" : "s are");
    } else {
        driver->stats.known_aways++;
    }
}

/* Returns the stamp of the oldest start of a task that may live on the machine. A log that was restored from
 * a backup does not know all tasks before every machine has reported. */
static int64_t oldest_start(const struct driver *driver, machine_id id)
{
    return core_is_hearing(driver->core) ? 0 : jobs_oldest_start(core_jobs(driver->core), id);
}

void driver_closed(struct driver *driver, drive_session handle, bool proves, const char *why)
{
    struct session *session = session_find(driver, handle);
    if (!session)
        return;
    machine_id id = session->machine;
    struct evidence *evidence = &driver->machines[id].evidence;
    int64_t oldest_ns = oldest_start(driver, id);
    enum verdict verdict;
    if (session->tether) {
        session_free(driver, session);
        verdict = evidence_tether_closed(evidence, proves, oldest_ns);
    } else {
        CHECK(driver->machines[id].session == handle);
        current_ends(driver, id);
        verdict = evidence_closed(evidence, proves, oldest_ns);
    }
    pass_verdict(driver, id, verdict, why);
}

/* --- first messages --------------------------------------------------------------------------- */

/* Refuses a machine that has belonged to another cluster, and may run its tasks: its agent would accept no
 * orders from here. */
static bool belongs_here(struct driver *driver, drive_session session, const struct hello *hello)
{
    uint64_t identity = core_identity(driver->core);
    char why[NAME_MAX_BYTES + 128];
    if (hello->cluster == 0 || hello->cluster == identity)
        return true;
    snprintf(why, sizeof why,
             "machine " STR_FORMAT " belongs to cluster %016llx, and this controller is of cluster %016llx",
             STR_ARG(hello->machine), (unsigned long long)hello->cluster, (unsigned long long)identity);
    refuse(driver, session, why);
    return false;
}

static void refuse_release(struct driver *driver, drive_session session, const struct hello *hello)
{
    char why[160];
    snprintf(why, sizeof why,
             "the agent speaks version %" PRIu32 " of the wire, this controller version %" PRIu32
             ": their releases are not neighbours",
             hello->version, this_release.wire);
    refuse(driver, session, why);
}

/* Returns the machine of a Hello, or NULL after refusing the session. */
static struct machine *find_machine(struct driver *driver, drive_session session, const struct hello *hello)
{
    struct machine *machine = cluster_find(core_cluster(driver->core), hello->machine);
    if (!machine)
        refuse(driver, session, "this machine is not in the cluster file");
    else if (!release_speaks(hello->version))
        refuse_release(driver, session, hello);
    else if (belongs_here(driver, session, hello))
        return machine;
    return NULL;
}

static void on_tether(struct driver *driver, drive_session session, const struct hello *hello)
{
    const struct machine *machine = find_machine(driver, session, hello);
    if (!machine)
        return;
    session_add(driver, session, machine->id, true);
    evidence_tether_opened(&driver->machines[machine->id].evidence, hello, driver_stamp_ns(driver));
}

/* Takes a Hello. The newest session of a machine is the current one: a delayed Hello of an older session is
 * refused. Of two agents with one name the later stays, or they would take turns for ever. */
static void on_hello(struct driver *driver, drive_session session, const struct hello *hello)
{
    const struct machine *machine = find_machine(driver, session, hello);
    if (!machine)
        return;
    struct machine_sessions *sessions = &driver->machines[machine->id];
    if (evidence_is_older(&sessions->evidence, hello, lease_of(driver), driver_mono_ns(driver))) {
        refuse(driver, session, "a later connection of this machine has been heard");
        return;
    }
    if (!queue_has_room(driver)) { /* the agent comes again */
        driver->ports.net.close(driver->ports.net.context, session, NULL);
        return;
    }
    current_drop(driver, machine->id);
    queue_forget_hellos(driver, machine->id);
    session_add(driver, session, machine->id, false);
    sessions->session = session;
    sessions->takes_rank_tables = hello->rank_tables;
    sessions->rank_table = 0;
    evidence_hello(&sessions->evidence, hello, driver_mono_ns(driver));
    lease_arm(driver, machine->id);
    struct pending *pending = pending_new(EVENT_MACHINE_HELLO);
    hello_copy(&pending->arena, hello, MESSAGE_BYTES_MAX, &pending->event.machine_hello.hello);
    pending->event.machine_hello.hello.cluster = 0; /* it was checked, and the log belongs to that cluster */
    pending->machine = machine->id;
    pending->session = session;
    queue_put(driver, pending);
}

void sessions_hello_applied(struct driver *driver, const struct pending *pending)
{
    if (!pending->session)
        return;
    struct machine_sessions *sessions = &driver->machines[pending->machine];
    CHECK(sessions->session == pending->session);
    sessions->welcomed = true;
    const struct cluster *cluster = core_cluster(driver->core);
    struct from_controller message = {
        .kind = FROM_CONTROLLER_WELCOME,
        .welcome = {core_epoch(driver->core), cluster->policy.lease_ns, cluster->policy.heartbeat_ns,
                    cluster->machines[pending->machine].chip_count + 1, grant_lease(driver, sessions),
                    core_identity(driver->core), this_release.wire},
    };
    send(driver, pending->session, &message);
}

/* --- later messages --------------------------------------------------------------------------- */

static struct from_controller heartbeat_ack(const struct driver *driver, const struct heartbeat *heartbeat,
                                            struct lease_grant grant)
{
    const struct clock_port *clock = &driver->ports.clock;
    return (struct from_controller){.kind = FROM_CONTROLLER_HEARTBEAT_ACK,
                                    .sent_ns = heartbeat->sent_ns,
                                    .clock_ns = clock->wall_ns(clock->context),
                                    .grant = grant};
}

static void on_heartbeat(struct driver *driver, machine_id id, const struct from_agent *message)
{
    struct machine_sessions *sessions = &driver->machines[id];
    const struct heartbeat *heartbeat = &message->heartbeat;
    evidence_renew(&sessions->evidence, driver_mono_ns(driver));
    evidence_counted(&sessions->evidence, heartbeat->grant);
    struct from_controller ack = heartbeat_ack(driver, heartbeat, grant_lease(driver, sessions));
    if (heap_has(&sessions->lease))
        lease_arm(driver, id);
    send(driver, sessions->session, &ack);
    if (heartbeat->step_count)
        job_steps_report(driver, id, heartbeat);
    if (heartbeat->usage.window_ns > 0 && driver->ports.sinks.said)
        driver->ports.sinks.said(driver->ports.sinks.context, id, message);
}

/* A machine that was declared silent, or whose connection broke, has no current session any more. So the
 * verdict reaches the stand-in before any task is started elsewhere. */
bool driver_stand_in(const struct driver *driver, drive_session handle, const struct from_agent *message,
                     struct from_controller *ret_answer)
{
    const struct session *session = session_find(driver, handle);
    if (!session || session->tether || message->kind != FROM_AGENT_HEARTBEAT)
        return false;
    const struct machine_sessions *sessions = &driver->machines[session->machine];
    CHECK(sessions->session == handle);
    if (!sessions->welcomed)
        return false;
    struct lease_grant last = {.number = sessions->evidence.grant};
    *ret_answer = heartbeat_ack(driver, &message->heartbeat, last);
    return true;
}

static void on_reports(struct driver *driver, machine_id id, const struct reports *reports)
{
    struct machine_sessions *sessions = &driver->machines[id];
    if (sessions->missed_news || !queue_has_room(driver)) { /* never acknowledged, so it will be sent again */
        driver->stats.missed_news++;
        driver->missing_news += !sessions->missed_news;
        sessions->missed_news = true;
        return;
    }
    job_steps_before_end(driver, reports);
    struct pending *pending = pending_new(EVENT_REPORTS);
    pending->event.reports.machine = arena_str(&pending->arena, machine_at(driver, id)->name);
    reports_copy(&pending->arena, reports, MESSAGE_BYTES_MAX, &pending->event.reports.reports);
    pending->machine = id;
    pending->session = sessions->session;
    queue_put(driver, pending);
}

static void on_message(struct driver *driver, machine_id id, const struct from_agent *message)
{
    switch (message->kind) {
    case FROM_AGENT_HEARTBEAT:
        on_heartbeat(driver, id, message);
        break;
    case FROM_AGENT_STEPS:
        job_steps_report(driver, id, &message->heartbeat);
        break;
    case FROM_AGENT_REPORTS:
        on_reports(driver, id, &message->reports);
        break;
    case FROM_AGENT_LOG_DATA:
    case FROM_AGENT_EXEC_DATA:
    case FROM_AGENT_EXEC_END:
        if (driver->ports.sinks.said)
            driver->ports.sinks.said(driver->ports.sinks.context, id, message);
        break;
    case FROM_AGENT_HELLO:
    case FROM_AGENT_TETHER:
        CHECK_UNREACHABLE();
    }
}

static void on_first_message(struct driver *driver, drive_session session, const struct from_agent *message)
{
    if (message->kind == FROM_AGENT_HELLO)
        on_hello(driver, session, &message->hello);
    else if (message->kind == FROM_AGENT_TETHER)
        on_tether(driver, session, &message->hello);
    else
        refuse(driver, session, "say hello first");
}

void driver_message(struct driver *driver, drive_session handle, const struct from_agent *message)
{
    CHECK(driver->open && handle != 0);
    const struct session *session = session_find(driver, handle);
    if (!session) {
        on_first_message(driver, handle, message);
    } else if (session->tether || message->kind == FROM_AGENT_HELLO || message->kind == FROM_AGENT_TETHER) {
        const char *why = session->tether ? "a tether says nothing" : "one hello a connection";
        driver_closed(driver, handle, false, why);
        refuse(driver, handle, why);
    } else {
        on_message(driver, session->machine, message);
    }
}
