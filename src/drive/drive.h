/* drive.h - runs a core in any world: START HERE for what happens around core_step.
 *
 * A driver is what a host does between a core and the world: it queues what happened, stamps and encodes it,
 * has it made durable, applies it, and carries out the effects. It keeps agents' sessions, leases and
 * evidence of death, coalesces steps of ranks, and turns effects into messages. It does no I/O, reads no
 * clock, draws no number and starts no thread: the world is behind ports (ports.h), and time and completions
 * come in as calls. So the code that ships is the code that is tortured, simulated and replayed.
 *
 * The story of a turn.
 *     input    driver_message, driver_closed, driver_write    queued; heartbeats are answered at once
 *     timers   driver_timers                                  leases, steps of ranks, the core's tick
 *     turn     driver_turn: the queue is stamped and encoded, one append for as much as a turn may take
 *                  -> the log says now (APPEND_DONE) or later (driver_appended) that it is durable
 *                  -> for each record, in order: core_step, then its effects, in order
 *     wait     driver_wait: until when the host may wait for input
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
 * While an append is under way, input is queued behind it. When the log takes nothing (a full disk, a lost
 * leader), agents' news waits, as they will not say it again on this session; writes are refused with 507 or
 * 503; the append is tried again every DRIVE_RETRY_NS. Heartbeats are acknowledged all the while, so no task
 * is fenced. Beyond queue_bytes_max reports are thrown away, and their agents are made to say Hello again
 * once there is room. A failed append that may have succeeded ends the driver: the next start finds out.
 *
 * Invariants.
 *   - The log is ahead of the core: an event is applied only when its record and all before are durable.
 *   - Records have sequence numbers without gaps, and stamps that never run back, whatever the wall clock
 *     does.
 *   - Effects leave in the order of their records and of core_step; a Welcome is ahead of what its Hello
 *     caused.
 *   - Each write is answered or refused exactly once, unless the process ends; each report is acknowledged
 *     only when it has been applied, and on the session that brought it.
 *   - A machine has at most one current session: the newest Hello's. Nothing is sent before its Welcome.
 *   - A machine is reported GONE only by evidence (health/evidence.h), SILENT only after all input was handed
 *     over that had come when its lease, and all that it was granted on top of it, ran out.
 *
 * Files.
 *     ports.h       what a world has to provide
 *     driver.c      start, clocks, timers, the end of a turn
 *     queue.c       events that wait for their record
 *     commit.c      append, apply, a log that takes nothing, snapshots
 *     dispatch.c    effects to messages
 *     sessions.c    hello, welcome, lease, tethers, evidence, missed news
 *     stand_in.h    when somebody else answers heartbeats while the host is at work
 *     progress.c    steps of ranks made one event a JobSet; paces.c: how long they work on a step
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
    DRIVE_QUEUE_BYTES_MAX = 256 * 1024 * 1024, /* 16,384 machines that lose all their tasks fill a tenth */
    DRIVE_RANK_TABLE_INSIDE_MAX = 16,          /* it costs no more than the message beside it */
    DRIVE_SNAPSHOT_EVERY = 20000,
    DRIVE_SNAPSHOT_BYTES = 64 * 1024 * 1024,
};
#define DRIVE_RETRY_NS (200 * NS_PER_MS)

struct driver;

/* 0 of a limit: the default above. */
struct driver_options {
    struct str version;        /* of the software, for the log; must outlive the driver */
    struct str place; /* ADDRESS:PORT of the API, for the log; empty: none is said; must outlive it */
    uint32_t turn_records_max; /* of one append, so that none takes long or much memory */
    size_t turn_bytes_max;
    size_t queue_bytes_max;    /* above, what agents report is thrown away and asked for again */
    uint32_t rank_table_inside_max; /* ranks up to which a gang's rank table travels within each START */
    /* A snapshot is due after so many records, or after so many bytes of them where that is more than twice
     * the newest snapshot: large objects that are rewritten often fill no disk, and a large state is not
     * written down all the time. */
    uint32_t snapshot_every;
    size_t snapshot_bytes;
    uint64_t snapshot_seq;     /* of the newest snapshot of the log; 0: none */
    bool restored;             /* the log was restored from a backup: it may lack its newest part */
    int64_t owed_ns;           /* so long an earlier controller may have gone on answering heartbeats */
};

/* `core` is the caller's, and is changed by nobody else while there is a driver. */
struct driver *driver_new(const struct driver_options *options, const struct driver_ports *ports,
                          struct core *core);
void driver_free(struct driver *driver); /* says nothing to anybody; NULL is allowed */

/* Takes over the log: queues the boot and, unless it is empty, the cluster document. `identity`: random bits
 * (event.h). Agents and clients may come when driver_is_open(). */
void driver_start(struct driver *driver, uint64_t identity, const uint8_t secret[GANG_KEY_BYTES],
                  struct str cluster_json);
/* Every replica of the log reads up to `level` (core/log/record.h): queues the record that opens it, unless
 * that was done. The driver is open. */
void driver_raise_level(struct driver *driver, uint32_t level);
bool driver_is_open(const struct driver *driver); /* the records of its start have been applied */

/* --- the loop --------------------------------------------------------------------------------- */

/* Appends what waits, and applies what is durable. A host that stood still for nearly a lease (it was
 * stopped, or its computer was) is found here: machines count as away until their agents have spoken again,
 * as after a restart. */
void driver_turn(struct driver *driver);
bool driver_has_work(const struct driver *driver); /* something waits, and the log may take it now */
/* The turn is over: returns the monotonic time until which the host may wait, at most `host_due_ns` (when it
 * has something to do itself). Messages that come from now on are handed over before the next
 * driver_timers(). */
int64_t driver_wait(struct driver *driver, int64_t host_due_ns);
void driver_timers(struct driver *driver);
void driver_maintain(struct driver *driver); /* what can wait: begins a snapshot when one is due */

/* The append that returned APPEND_LATER is over: `rc` APPEND_DONE or an error, as of log_port.append. */
void driver_appended(struct driver *driver, int rc, const struct error *error);
bool driver_is_appending(const struct driver *driver);
void driver_snapshot_ended(struct driver *driver);

/* --- input ------------------------------------------------------------------------------------ */

/* The first message of a session is its Hello, or makes it a tether; the driver refuses all else. */
void driver_message(struct driver *driver, drive_session session, const struct from_agent *message);
/* The session has ended from the other side. `proves`: the peer's kernel closed it (evidence.h). Sessions
 * that the driver has not heard of, or has closed itself, are ignored. */
void driver_closed(struct driver *driver, drive_session session, bool proves, const char *why);
/* A heartbeat that a stand-in of the host may answer while the driver's thread is at work elsewhere: true,
 * and the answer. It says what the last answer said and grants nothing new. Changes nothing, and may be
 * called from another thread while no function of this header runs, or from within log_port.append, or
 * between sink_port.before_step and after_step. The message itself is handed to driver_message() all the
 * same, before the next driver_timers(). */
bool driver_stand_in(const struct driver *driver, drive_session session, const struct from_agent *message,
                     struct from_controller *ret_answer);
/* Since driver_wait(), a stand-in has answered heartbeats for so long: the host did not stand still. */
void driver_attended(struct driver *driver, int64_t attended_ns);
/* A write that core_check_write has let pass. Strings are copied, `document` is not looked at, and
 * `prepared` is the driver's from now on. `request` 0: nobody waits. */
void driver_write(struct driver *driver, const struct write_event *write, drive_request request);

/* An optical switch has answered a request or failed to; its health has changed (core/words/switch.h). All is
 * copied; texts beyond SWITCH_TEXT_MAX are cut. */
void driver_switch_report(struct driver *driver, const struct switch_report *report);
void driver_switch_health(struct driver *driver, const struct switch_health *health);

/* --- what a host may ask ---------------------------------------------------------------------- */

/* The clock of stamps and of the core's deadlines: the wall clock, except that it never runs back and never
 * stops. When the wall clock is set back it goes on at its own pace, ahead of it, until the next start. */
int64_t driver_stamp_ns(struct driver *driver);
drive_session driver_session(const struct driver *driver, machine_id machine); /* welcome; 0: none */
const struct evidence *driver_evidence(const struct driver *driver, machine_id machine);
/* The machine's agent has confirmed the hold of the leases as it stands (health/lease_hold.h). */
bool driver_hold_counts(const struct driver *driver, machine_id machine);
const struct error *driver_refusal(const struct driver *driver); /* why the log takes nothing, or NULL */

/* How often what happens rarely has happened since driver_new(). */
struct driver_stats {
    uint64_t cut_turns;      /* appends that a limit of the turn made smaller */
    uint64_t failed_appends; /* at once */
    uint64_t late_failures;  /* of appends that had returned APPEND_LATER */
    uint64_t refused_writes;
    uint64_t missed_news; /* reports that were thrown away for lack of room */
    uint64_t known_aways; /* agents that died alone on machines that were away already */
    uint64_t pauses;      /* the host stood still */
    uint64_t rank_tables; /* rank tables that were sent by themselves */
};
const struct driver_stats *driver_stats(const struct driver *driver);

/* --- replay ----------------------------------------------------------------------------------- */

/* Applies the next record of a log to a core; the effects are the caller's to look at, and none is carried
 * out. `seen` (may be NULL): called after the step. ERROR_CORRUPT, ERROR_UNSUPPORTED name the record. */
typedef void drive_seen(void *context, struct core *core, const struct event *event,
                        const struct effects *effects);
int drive_replay(struct core *core, const struct drive_record *record, struct effects *effects,
                 drive_seen *seen, void *context, struct error *error);

#endif
