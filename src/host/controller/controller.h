/* controller.h - the live controller: a driver (drive/drive.h) in a libuv loop, with real sockets, a real
 * clock and a log on SQLite.
 *
 *     during one turn of the loop, events (API writes, agents' reports, timers) are handed to the driver
 *       -> before the loop sleeps: driver_turn() makes them durable in one commit, applies them, and has
 *          their effects carried out in order
 * so no effect leaves whose cause could be lost, and one fdatasync serves a whole turn (group commit). While
 * the disk is full, agents' reports stay queued and writes are answered with 507 (503 while another program
 * holds the log's file). Heartbeats are acknowledged all the while, so no task is fenced. Any other failure
 * of the disk ends the process: what is durable is then unknown, and a restart finds out.
 *
 *   controller.c  start, stop, hand-over, the loop's hooks, the API's hooks
 *   log.c         the driver's log: the store; snapshots and trimming
 *   peers.c       the driver's network: connections of agents
 *   lease.c       the stand-in: answers heartbeats while the loop is busy
 *   sinks.c       the driver's output to the API and to readers of streams
 *   readers.c     log streams from agents to API readers
 *   execs.c       commands in a task's containers (kubectl exec)
 *   faultfile.c   the fault table as a watched file; faulttable.c reads it
 *   switches.c    the driver's port to optical switches
 *   replay.c      state from snapshot and log (also for `phalanx log replay`)
 *
 * Threading: all functions on the loop's thread. The stand-in's thread touches only the agents' connections.
 */
#ifndef PHX_HOST_CONTROLLER_CONTROLLER_H
#define PHX_HOST_CONTROLLER_CONTROLLER_H

#include <uv.h>

#include "core/core.h"
#include "core/spec/pod_security.h"
#include "host/access/access.h"
#include "host/store/log_store.h"

struct controller;
struct relay;
struct relay_client;
struct api_tls;

/* A log that several controllers share; the caller has taken the lead (host/standby). Log and core stay the
 * caller's, who must not touch them until controller_free(). */
struct controller_shared {
    struct log_store log;
    struct core *core; /* the state after the log's last record */
    int listening_fd;  /* the API's socket; the caller must not accept on it meanwhile; 0: none */
    const char *place; /* ADDRESS:PORT of this controller's API, recorded in the log */
    int64_t owed_ns;   /* how long an earlier leader may continue to answer heartbeats */
    void *context;
    /* Returns the CLOCK_MONOTONIC time until which no other controller can lead. Heartbeats are answered
     * until then. Called from any thread. */
    int64_t (*leads_until_ns)(void *context);
    /* A hand-over begins: the caller must accept the clients that connect from now on. */
    void (*hands_over)(void *context);
    /* Take over a client's socket with the received part of its next request, and the TLS sessions. As
     * api_heir (host/api/api.h). */
    void (*pass_on)(void *context, int fd, struct str bytes, const struct relay_client *tls);
    bool (*take_relay)(void *context, struct relay *relay, struct api_tls *tls);
    void (*resign)(void *context);                /* everything is committed: give up the lead */
    void (*lost)(void *context, const char *why); /* another controller may lead; must not return */
};

struct controller_options {
    const struct controller_shared *shared; /* NULL: the log is data_dir/log.db, not shared */
    const char *data_dir;    /* created if absent; holds log.db and, by default, checkpoints/ */
    struct str cluster_json; /* the cluster document; empty: the one in the log */
    const char *api_address;
    uint16_t api_port;            /* 0: any */
    const char *const *api_names; /* further names of the API; see api_options */
    size_t api_name_count;
    bool loopback_http; /* see api_options */
    /* TLS handshakes under way at once, at each port: in all, and of one source address; 0: the defaults of
     * api_options and wire_set_limits() */
    uint32_t handshakes_max, handshakes_of_address_max;
    enum pod_security_level pod_security; /* see api_options */
    const char *agent_address;
    uint16_t agent_port;     /* 0: any */
    int64_t keep_log_ns;     /* age below which records are kept although a snapshot covers them; 0: 7 days */
    uint64_t log_bytes_max;  /* size above which that age does not count; 0: 4 GiB */
    uint32_t snapshot_every; /* records between snapshots; 0: 20,000 */
    int64_t stand_in_ns;     /* how long heartbeats are answered without a turn of the loop; 0: 30 s */
    /* PEM files for the API's HTTPS and the agents' TLS; NULL: neither. */
    const char *tls_cert, *tls_key;
    const char *encryption_keys;  /* key file that the log is encrypted with (store.h); NULL: no encryption */
    const char *faults;           /* file of the fault table, watched; NULL: none */
    bool authenticate;            /* users must authenticate, and agents too if there is TLS */
    struct access_options access; /* files of users, roles, audit */
};

/* Makes the access control that the options ask for. Sets *ret_access to NULL if they ask for none: every
 * user may then do everything, and there is no audit log. Without an account key in the options,
 * ServiceAccounts have no tokens. */
int controller_access(const struct controller_options *options, struct access **ret_access,
                      struct error *error);

/* Opens the log, replays it, and listens. Run the loop afterwards: to serve, or, after a failure, once, so
 * that handles finish closing. `options` is copied; what it points to must outlive the controller. */
int controller_new(uv_loop_t *loop, const struct controller_options *options,
                   struct controller **ret_controller, struct error *error);
/* Commits what is queued, gives up a shared lead, and closes every connection. Tasks continue to run. The
 * loop then ends by itself; call controller_free() after uv_run() has returned. */
void controller_stop(struct controller *controller);
/* Gives the lead of a shared log to another controller, without failing requests:
 *   - requests that have begun are carried out and answered; one that takes more than half a second may be
 *     answered with 503;
 *   - between two requests, each client is passed to shared->pass_on(). TLS clients that it cannot take are
 *     told to reconnect, and may send one more request within TLS_NS (controller.c);
 *   - then everything is committed, and the lead is given up;
 *   - watches end as complete answers, logs and commands end with a message, agents are disconnected.
 * Calls `ended` on the loop when the controller has left it: controller_free() is then allowed, but not from
 * inside `ended`. A second call does nothing. */
void controller_hand_over(struct controller *controller, void (*ended)(void *context), void *context);
/* Frees a controller after controller_stop() and the loop's end, or after a hand-over. NULL is fine. */
void controller_free(struct controller *controller);
/* Reads certificates, tokens and roles again. What cannot be read stays in use as it was. */
int controller_reload(struct controller *controller, struct error *error);

uint32_t controller_level(const struct controller *controller); /* of the log (core/log/record.h) */
/* Raises the log's level. Every controller that shares the log must be able to read `level`. */
void controller_raise_level(struct controller *controller, uint32_t level);

uint16_t controller_api_port(const struct controller *controller);
uint16_t controller_agent_port(const struct controller *controller);

/* Reads a fault table from a file, for `phalanx controller --faults` and `phalanx check --faults`. The file
 * is one YAML document, a FaultTable or its spec alone. Returns the document as the API would store it, in
 * `arena`, for fault_table_new(). Returns NULL after a mistake: `why` then has a line for each, with
 * FILE:LINE:COLUMN where that is known. */
struct doc *fault_table_read(const char *path, struct arena *arena, struct buf *why);

/* Loads the newest snapshot of a record up to `until` into a new core. ERROR_NOT_FOUND: there is none. */
int controller_load(const struct log_store *log, uint64_t until, struct core *core, struct error *error);
typedef void controller_replay_step(void *context, struct core *core, const struct event *event,
                                    const struct effects *effects);
/* Applies the records after core_seq(), up to record `until` (UINT64_MAX: the end) and up to the stamp
 * `until_ns` (INT64_MAX: the end). Calls `step` (may be NULL) after each event, with the event's effects. */
int controller_apply(const struct log_store *log, uint64_t until, int64_t until_ns, struct core *core,
                     controller_replay_step *step, void *context, struct error *error);
/* Brings a new core to the state after record `until`: from the newest snapshot and the records after it, or,
 * unless `from_snapshot`, from the log's first record on. */
int controller_replay(const struct log_store *log, uint64_t until, bool from_snapshot, struct core *core,
                      controller_replay_step *step, void *context, struct error *error);

#endif
