/* drive.h - runs a core in any world: START HERE for what happens around core_step.
 *
 * A driver stands between a core and the world: it queues events, stamps and encodes them, has them made
 * durable, applies them, and carries out their effects. It keeps agents' sessions, leases and evidence of
 * death, coalesces steps of ranks, and turns effects into messages. It does no I/O, reads no clock, draws no
 * random number and starts no thread: the world is behind ports (ports.h), and completions arrive as calls.
 * So the code that ships is the code that is tortured, simulated and replayed.
 *
 * The story of a turn.
 *     input    driver_message, driver_closed, driver_write    queued; heartbeats are answered at once
 *     timers   driver_timers                                  leases, steps of ranks, the core's tick
 *     turn     driver_turn: the queue is stamped and encoded, one append for as much as a turn may take
 *                  -> the log reports now (APPEND_DONE) or later (driver_appended) that it is durable -> for
 *                  each record, in order: core_step, then its effects, in order
 *     wait     driver_wait: how long the host may wait for input
 * so nothing leaves that could be lost, and one flush of the disk serves a whole turn (group commit).
 *
 * A host's loop:
 *     struct driver *driver = driver_new(&options, &ports, core);    // core: after its log was replayed
 *     driver_start(driver, identity, secret, cluster_json);
 *     for (;;) {
 *         do
 *             driver_turn(driver);
 *         while (driver_has_work(driver));
 *         int64_t until_ns = driver_wait(driver, host_due_ns);
 *         ... hand over all input that has come, or wait for some until then ...
 *         driver_timers(driver);
 *     }
 *
 * While an append is under way, input is queued behind it. When the log refuses records (a full disk, a lost
 * leader), agents' reports wait, because agents do not repeat them on the same session; writes are refused
 * with 507 or 503; the append is retried every DRIVE_RETRY_NS. Heartbeats are acknowledged meanwhile, so no
 * task is fenced. Beyond queue_bytes_max reports are dropped, and once there is space their agents must say
 * Hello again. A failed append that may have succeeded ends the driver: the next start finds out.
 *
 * Invariants.
 *   - The log is ahead of the core: an event is applied only when its record and all earlier ones are
 *     durable.
 *   - Records have sequence numbers without gaps, and stamps that never run back, whatever the wall clock
 *     does.
 *   - Effects leave in the order of their records and of core_step; a Welcome leaves before the effects of
 *     its Hello.
 *   - Each write is answered or refused exactly once, unless the process ends; each report is acknowledged
 *     only when it has been applied, and on the session that brought it.
 *   - A machine has at most one current session: the newest Hello's. Nothing is sent before its Welcome.
 *   - A machine is reported GONE only by evidence (health/evidence.h), SILENT only after all input was handed
 *     over that had arrived when its lease, with all time granted on top, ran out.
 *
 * Files.
 *     ports.h       what a world has to provide
 *     driver.c      start, clocks, timers, the end of a turn
 *     queue.c       events that wait for their record
 *     commit.c      append, apply, a log that takes nothing, snapshots
 *     dispatch.c    effects to messages
 *     sessions.c    hello, welcome, lease, tethers, evidence, missed reports
 *     stand_in.h    when a stand-in answers heartbeats while the host is busy
 *     progress.c    coalesces ranks' steps into one event per JobSet; paces.c: their time per step
 *     switches.c    answers and health of optical switches, as events
 *     replay.c      records back into a core
 *     agent.h       the machine's side: machine.c runs an agent, rank_tables.c keeps rank tables
 *
 * Limits: driver_options. One thread; nothing here locks.
 */
#ifndef PHX_DRIVE_DRIVE_H
#define PHX_DRIVE_DRIVE_H

#include "base/units.h"
#include "core/health/evidence.h"
#include "drive/ports.h"

enum {
    DRIVE_TURN_RECORDS_MAX = 4096,
    DRIVE_TURN_BYTES_MAX = 32 * 1024 * 1024,
    /* Reports of 16,384 machines that lose all their tasks fill a tenth. */
    DRIVE_QUEUE_BYTES_MAX = 256 * 1024 * 1024,
    DRIVE_RANK_TABLE_INSIDE_MAX = 16, /* no costlier than a separate message */
    DRIVE_SNAPSHOT_EVERY = 20000,
    DRIVE_SNAPSHOT_BYTES = 64 * 1024 * 1024,
};
#define DRIVE_RETRY_NS (200 * NS_PER_MS)

struct driver;

/* A limit of 0 is the default above. */
struct driver_options {
    struct str version;        /* of the software, for the log; must outlive the driver */
    struct str place; /* ADDRESS:PORT of the API, for the log; empty: none; must outlive the driver */
    uint32_t turn_records_max; /* of one append, to bound its time and memory */
    size_t turn_bytes_max;
    size_t queue_bytes_max;         /* beyond it agents' reports are dropped and asked for again */
    uint32_t rank_table_inside_max; /* ranks up to which a gang's rank table travels within each START */
    /* A snapshot is due after snapshot_every records, or once the bytes of the records since the last exceed
     * both snapshot_bytes and twice the newest snapshot. So large objects that are rewritten often do not
     * fill the disk, and a large state is not written too often. */
    uint32_t snapshot_every;
    size_t snapshot_bytes;
    uint64_t snapshot_seq;     /* of the newest snapshot of the log; 0: none */
    bool restored;             /* the log was restored from a backup and may lack its newest part */
    int64_t owed_ns;           /* how long an earlier controller may have kept answering heartbeats */
};

/* Makes a driver. `core` remains the caller's, but only the driver may change it while the driver exists.
 * `options` and `ports` are copied. */
struct driver *driver_new(const struct driver_options *options, const struct driver_ports *ports,
                          struct core *core);
void driver_free(struct driver *driver); /* queued events are dropped without an answer; NULL is allowed */

/* Takes over the log: queues the boot and, unless it is empty, the cluster document. `identity`: random bits
 * (event.h). Hand over input of agents and clients only once driver_is_open(). */
void driver_start(struct driver *driver, uint64_t identity, const uint8_t secret[GANG_KEY_BYTES],
                  struct str cluster_json);
/* Queues the record that raises the log's level to `level` (core/log/record.h), unless that was done. Every
 * replica must be able to read it, and the driver must be open. */
void driver_raise_level(struct driver *driver, uint32_t level);
bool driver_is_open(const struct driver *driver); /* the records of its start have been applied */

/* --- the loop --------------------------------------------------------------------------------- */

/* Appends queued events, and applies those that are durable. Detects a host that was stopped for nearly a
 * lease: machines then count as away until their agents have reported again, as after a restart. */
void driver_turn(struct driver *driver);
bool driver_has_work(const struct driver *driver); /* events wait, and an append may be tried now */
/* Ends the turn and returns the monotonic time until which the host may wait, at most `host_due_ns` (when the
 * host has its own work). Messages that arrive from now on must be handed over before the next
 * driver_timers(). */
int64_t driver_wait(struct driver *driver, int64_t host_due_ns);
/* Handles leases, steps of ranks and the core's tick that are due. */
void driver_timers(struct driver *driver);
void driver_maintain(struct driver *driver); /* work without haste: begins a snapshot when one is due */

/* The append that returned APPEND_LATER has ended; `rc` is APPEND_DONE or an error, as of log_port.append. */
void driver_appended(struct driver *driver, int rc, const struct error *error);
bool driver_is_appending(const struct driver *driver);
/* The snapshot for which log_port.snapshot returned true has ended, saved or not. */
void driver_snapshot_ended(struct driver *driver);

/* --- input ------------------------------------------------------------------------------------ */

/* Takes a message of a session. The first one must be a Hello, or a Tether, which makes the session a tether;
 * the driver refuses any other. Only while driver_is_open(). */
void driver_message(struct driver *driver, drive_session session, const struct from_agent *message);
/* The peer has ended the session. `proves`: the peer's kernel closed it (evidence.h). Sessions that the
 * driver does not know, or has closed itself, are ignored. */
void driver_closed(struct driver *driver, drive_session session, bool proves, const char *why);
/* Returns whether a stand-in of the host may answer this message, a heartbeat, while the driver's thread is
 * busy elsewhere, and stores the answer. The answer repeats the last grant and grants nothing new. Changes
 * nothing, and may be called from another thread while no function of this header runs, during
 * log_port.append, or between sink_port.before_step and after_step. The message must still be handed to
 * driver_message(), before the next driver_timers(). */
bool driver_stand_in(const struct driver *driver, drive_session session, const struct from_agent *message,
                     struct from_controller *ret_answer);
/* Reports how long a stand-in has answered heartbeats since driver_wait(): in that time the host was not
 * stopped. */
void driver_attended(struct driver *driver, int64_t attended_ns);
/* Queues a write that core_check_write has accepted. Strings are copied, `document` is ignored, and the
 * driver takes over `prepared`. `request` 0: no client waits for the answer. */
void driver_write(struct driver *driver, const struct write_event *write, drive_request request);

/* Queue the answer or failure of an optical switch, or a change of its health (core/words/switch.h). All is
 * copied; texts beyond SWITCH_TEXT_MAX are cut. */
void driver_switch_report(struct driver *driver, const struct switch_report *report);
void driver_switch_health(struct driver *driver, const struct switch_health *health);

/* --- what a host may ask ---------------------------------------------------------------------- */

/* Returns the clock of stamps and of the core's deadlines: the wall clock, except that it never runs back and
 * never stops. If the wall clock is set back, this one keeps its pace, ahead of the wall clock, until the
 * next start. */
int64_t driver_stamp_ns(struct driver *driver);
/* Returns the welcome session; 0: none. */
drive_session driver_session(const struct driver *driver, machine_id machine);
const struct evidence *driver_evidence(const struct driver *driver, machine_id machine);
/* Returns whether the machine's agent has confirmed the current hold of the leases (health/lease_hold.h). */
bool driver_hold_counts(const struct driver *driver, machine_id machine);
/* Returns why the log refuses records, or NULL. */
const struct error *driver_refusal(const struct driver *driver);

/* Counts of rare things since driver_new(). */
struct driver_stats {
    uint64_t cut_turns;      /* appends that a limit of the turn made smaller */
    uint64_t failed_appends; /* at once */
    uint64_t late_failures;  /* of appends that had returned APPEND_LATER */
    uint64_t refused_writes;
    uint64_t missed_news; /* reports that were dropped for lack of space */
    uint64_t known_aways; /* agents that died alone on machines that were already away */
    uint64_t pauses;      /* times that the host was stopped */
    uint64_t rank_tables; /* rank tables that were sent as separate messages */
};
const struct driver_stats *driver_stats(const struct driver *driver);

/* --- replay ----------------------------------------------------------------------------------- */

/* Applies the next record of a log to a core. No effect is carried out; the caller may inspect `effects`.
 * `seen` (may be NULL) is called after the step. The message of ERROR_CORRUPT and ERROR_UNSUPPORTED names the
 * record. */
typedef void drive_seen(void *context, struct core *core, const struct event *event,
                        const struct effects *effects);
int drive_replay(struct core *core, const struct drive_record *record, struct effects *effects,
                 drive_seen *seen, void *context, struct error *error);

#endif
