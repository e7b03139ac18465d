/* controller.h - the live controller: a driver (drive/drive.h) in a libuv loop, with real sockets, a real
 * clock and a log on SQLite.
 *
 *     events (API writes, agents, timers) are handed to the driver during one turn of the loop
 *       -> before the loop sleeps: driver_turn() makes them durable in one commit, applies them, and has
 *          their effects carried out in order
 * so nothing leaves that could be lost, and one fdatasync serves a whole turn (group commit). A full disk
 * leaves agents' news queued and answers writes with 507 until space returns (503 while another program holds
 * the log's file); heartbeats are acknowledged all the while, so no task is fenced. Any other failure of the
 * disk ends the process: what is durable is unknown then, and a restart finds out.
 *
 *   controller.c  start, stop, the loop's hooks, the API's hooks
 *   log.c         the driver's log: the store; snapshots and trimming
 *   peers.c       the driver's network: connections of agents
 *   lease.c       the stand-in: answers heartbeats while the loop is at work elsewhere
 *   sinks.c       what the driver says to the API and to readers
 *   readers.c     log streams from agents to API readers
 *   execs.c       commands beside tasks
 *   faultfile.c   the fault table as a file
 *   replay.c      state from snapshot and log (also for `phalanx log replay`)
 * One thread, one loop, and the stand-in's thread, which touches the agents' connections alone.
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

/* A log that several controllers share: the caller has taken the lead (host/standby). Log and core stay the
 * caller's; nobody else touches them until controller_free(). */
struct controller_shared {
    struct log_store log;
    struct core *core;    /* the state after the log's last record */
    int listening_fd;     /* of the API; shared with the caller, who accepts nobody meanwhile; 0: none */
    const char *place;    /* ADDRESS:PORT of this controller's API, for the log */
    int64_t owed_ns;      /* so long an earlier leader may go on answering heartbeats */
    void *context;
    /* The monotonic time until which nobody else can lead; heartbeats are answered until then. Any thread. */
    int64_t (*leads_until_ns)(void *context);
    /* Called when a hand-over begins: clients that connect from now on are the caller's. */
    void (*hands_over)(void *context);
    /* A client's socket, the caller's from now on, and what of its next request was received; and the
     * sessions of TLS. As api_heir (host/api/api.h). */
    void (*pass_on)(void *context, int fd, struct str bytes, const struct relay_client *tls);
    bool (*take_relay)(void *context, struct relay *relay, struct api_tls *tls);
    void (*resign)(void *context);                /* all is committed: another one may lead */
    void (*lost)(void *context, const char *why); /* it is not known who leads; does not return */
};

struct controller_options {
    const struct controller_shared *shared; /* NULL: the log is DIR/log.db, ours alone */
    const char *data_dir;    /* made when absent; holds log.db and, by default, checkpoints/ */
    struct str cluster_json; /* the cluster document; empty: the one in the log */
    const char *api_address;
    uint16_t api_port;            /* 0: any */
    const char *const *api_names; /* further names of the API; see api_options */
    size_t api_name_count;
    bool loopback_http; /* see api_options */
    /* TLS handshakes under way at once, at each port: in all, and of one source address; 0: the defaults of
     * api_options and wire_set_limits() */
    uint32_t handshakes_max, handshakes_of_address_max;
    enum pod_security_level pod_security; /* likewise */
    const char *agent_address;
    uint16_t agent_port;     /* 0: any */
    int64_t keep_log_ns;     /* records younger than this stay behind the snapshots; 0: 7 days */
    uint64_t log_bytes_max;  /* above, the age limit is given up; 0: 4 GiB */
    uint32_t snapshot_every; /* records between snapshots; 0: 20,000 */
    int64_t stand_in_ns;     /* heartbeats are answered for so long without a turn of the loop; 0: 30 s */
    /* The API's HTTPS and the agents' TLS: PEM files; NULL: neither. */
    const char *tls_cert, *tls_key;
    const char *encryption_keys;  /* file of keys that the log is encrypted with (store.h); NULL: none */
    const char *faults;           /* file of the fault table, watched; NULL: none */
    bool authenticate;            /* users must say who they are, and agents if there is TLS */
    struct access_options access; /* files of users, roles, audit */
};

/* Makes the access control that the options ask for; *ret_access NULL: every user may do everything, and
 * nothing is written of it. Without an account key in the options no ServiceAccount has tokens. */
int controller_access(const struct controller_options *options, struct access **ret_access,
                      struct error *error);

/* Opens the log, replays it, and listens. The loop must be run by the caller afterwards (once, when this
 * fails: closing handles go then). The options' strings must outlive the controller. */
int controller_new(uv_loop_t *loop, const struct controller_options *options,
                   struct controller **ret_controller, struct error *error);
/* Commits what is queued, then closes every connection; tasks run on. The loop then ends by itself; free
 * after uv_run returned. */
void controller_stop(struct controller *controller);
/* Gives the lead of a shared log to another controller, without a request that fails. Clients
 * go to shared->pass_on() one by one, between two requests; those with TLS that the caller cannot take are
 * told to connect anew, and have TLS_NS (controller.c) to ask. Those requests that have begun are
 * carried out and answered first, for half a second at most; then the log has all and the lead is
 * given up. Watches end as whole answers; logs and commands end with a word about it; agents are let go.
 * `ended`: nothing of it is left in the loop; controller_free() is allowed, but not from inside. */
void controller_hand_over(struct controller *controller, void (*ended)(void *context), void *context);
/* After controller_stop() and the loop's end, or after a hand-over has ended. */
void controller_free(struct controller *controller);
/* Reads certificates, tokens and roles again. On failure what there was serves on. */
int controller_reload(struct controller *controller, struct error *error);

/* The level of the log (core/log/record.h), and its raise: every controller that shares the log reads
 * `level`. */
uint32_t controller_level(const struct controller *controller);
void controller_raise_level(struct controller *controller, uint32_t level);

uint16_t controller_api_port(const struct controller *controller);
uint16_t controller_agent_port(const struct controller *controller);

/* Reads a fault table from a file, of `phalanx controller --faults` and `phalanx check --faults`: one YAML
 * document, a FaultTable or its spec alone. Returns the document as the API would keep it, in `arena`, for
 * fault_table_new(). NULL: `why` has a line for each mistake, as FILE:LINE:COLUMN where it has a place. */
struct doc *fault_table_read(const char *path, struct arena *arena, struct buf *why);

/* Brings a fresh core to the newest snapshot of a record up to `until`. ERROR_NOT_FOUND: there is none. */
int controller_load(const struct log_store *log, uint64_t until, struct core *core, struct error *error);
typedef void controller_replay_step(void *context, struct core *core, const struct event *event,
                                    const struct effects *effects);
/* Applies the records behind the core's own, up to record `until` (UINT64_MAX: the end) and up to the stamp
 * `until_ns` (INT64_MAX: the end). `step` (may be NULL) sees every event after it was applied, with its
 * effects. */
int controller_apply(const struct log_store *log, uint64_t until, int64_t until_ns, struct core *core,
                     controller_replay_step *step, void *context, struct error *error);
/* Both: brings a fresh core to the state after record `until`. */
int controller_replay(const struct log_store *log, uint64_t until, bool from_snapshot, struct core *core,
                      controller_replay_step *step, void *context, struct error *error);

#endif
