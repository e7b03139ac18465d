/* internal.h - the controller's state, and the declarations that its files share. See controller.h. */
#ifndef PHX_HOST_CONTROLLER_INTERNAL_H
#define PHX_HOST_CONTROLLER_INTERNAL_H

#include "base/list.h"
#include "drive/drive.h"
#include "host/api/api.h"
#include "host/controller/controller.h"
#include "host/wire/wire.h"

/* A wire connection's context, and the driver's handle of the connection. In controller->strangers until the
 * first message, then in controller->peers. */
struct peer {
    struct controller *controller;
    struct wire_conn *conn;
    struct list_node node;
    bool introduced;   /* the first message has arrived */
    int64_t opened_ns; /* monotonic */
    uint64_t round;    /* the peers_round in which the certificate was last checked */
};

struct desk;
struct fault_file;
struct stand_in;

struct log_stream { /* a reader has several while machines are asked for the log of an earlier attempt */
    uint64_t number;
    machine_id machine;
    struct api_stream *reader;
    obj_id task;
    bool first, earlier;            /* no data has arrived yet; the log is of an earlier attempt */
    bool likely;                    /* `earlier`: only likely machines were asked, the others follow */
    struct api_log_options options; /* strings live until the answer begins */
};

struct exec_stream {
    uint64_t number;
    machine_id machine;
    struct api_exec *reader;
};

/* Stages of a hand-over: LEAVE_NOT -> LEAVE_ANSWERS (requests that have begun are answered) -> LEAVE_RESIGNED
 * (clients take their answers) -> LEAVE_CLOSED. */
enum controller_leave { LEAVE_NOT, LEAVE_ANSWERS, LEAVE_RESIGNED, LEAVE_CLOSED };

struct controller {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer; /* leases, core deadline, steps, retries */
    struct controller_options options;
    char *data_dir;
    struct buf account_key;        /* default path of the account key */
    struct fault_file *fault_file; /* NULL: no file has the fault table */
    struct store_keys *store_keys; /* NULL: the log is not encrypted */
    struct log_store log;          /* `context` NULL: not open */
    struct core *core;
    struct driver *driver; /* NULL while the log is opened */
    struct access *access; /* NULL: every user may do everything, and there is no audit log */
    struct api *api;
    struct wire *wire;
    struct desk *desk;         /* carries out requests to optical switches */
    struct stand_in *stand_in; /* NULL: not running */
    struct wire_tls *wire_tls; /* NULL: agents connect without TLS and are trusted */
    struct wire_listener *listener;
    uint16_t agent_port;
    bool log_refuses;    /* it was reported that the log takes no records */
    int64_t maintain_ns; /* monotonic: next time for snapshots, trimming and checks of peers */
    void *snapshot;      /* the open snapshot writer; NULL: none */
    struct buf snapshot_bytes;
    bool trimming;
    int64_t trim_ns;
    int64_t turn_ended_ns, turn_idle_ns; /* monotonic; total time that the loop had waited by then */
    struct list_node strangers, peers;
    uint64_t peers_round;     /* counts how often the agents' TLS files were read again */
    int64_t peers_checked_ns; /* monotonic: when certificates were last checked for expiry */
    int64_t refusal_logged_ns;
    VEC(struct log_stream) streams;
    VEC(struct exec_stream) execs;
    uint64_t next_stream;
    enum controller_leave leave;
    int64_t leave_ns; /* monotonic: time limit of the current `leave` stage */
    int64_t tls_ns;   /* monotonic: time limit for TLS clients to send one more request */
    void (*ended)(void *context);
    void *ended_context;
    int open_parts; /* parts that a hand-over has not closed yet */
    bool stopping;
};

int64_t controller_mono_ns(void);
int64_t controller_wall_ns(void); /* may jump */
uint64_t controller_draw(void);   /* random bits for events */
/* Returns whether no other controller can lead now. May be called from any thread. */
bool controller_leads(const struct controller *controller);

/* log.c */
struct log_port log_port(struct controller *controller);
void log_maintain(struct controller *controller); /* snapshots and trimming, in slices */
void log_done(struct controller *controller);

/* sinks.c */
struct sink_port sink_port(struct controller *controller);
/* switches.c */
struct switch_port switches_begin(struct controller *controller);
void switches_end(struct controller *controller); /* requests under way are finished on the loop */
/* takes the switches' addresses from the core's cluster */
void switches_follow(struct controller *controller);

/* faultfile.c */
/* Reads and watches options.faults, if set. Bad content is reported, and is not a failure. */
int fault_file_open(struct controller *controller, struct error *error);
/* Reads the file again if it has changed. */
void fault_file_look(struct controller *controller);
/* Ends the watch; its handle closes on the loop. */
void fault_file_close(struct controller *controller);
void fault_file_free(struct controller *controller);

/* peers.c */
struct net_port net_port(struct controller *controller);
int peers_listen(struct controller *controller, struct error *error);
/* Sends a message to the machine's agent. Returns false if the machine has no session. */
bool peers_send(struct controller *controller, machine_id machine, const struct from_controller *message);
/* Closes connections that stay silent, and those whose certificate has expired or is no longer accepted. */
void peers_check(struct controller *controller);
/* Returns whether peers_check() has more certificates to check: call it again soon. */
bool peers_left(const struct controller *controller);
void peers_done(struct controller *controller);

/* lease.c: a thread that answers heartbeats while the loop is busy. The loop's thread may touch the wire and
 * the driver's sessions only while it holds the wire: from lease_start() to lease_lend(), and from
 * lease_take() on. Lending a lent wire or taking a held one does nothing, and so do both without a thread. */
int lease_start(struct controller *controller, struct error *error);
void lease_stop(struct controller *controller);
void lease_lend(struct controller *controller);
bool lease_take(struct controller *controller); /* returns whether the wire was lent */
void lease_turn(struct controller *controller); /* the loop has polled its sockets, or is about to */

/* readers.c */
void readers_open(void *context, const struct task *task, const struct api_log_options *options,
                  struct api_stream *stream);
/* Sets `error` to the reason why the task's machine cannot be asked now; returns ERROR_UNAVAILABLE. */
int readers_unreachable(const struct controller *controller, const struct task *task, struct error *error);
void readers_closed(void *context, struct api_stream *stream);
void readers_data(struct controller *controller, machine_id machine, const struct log_data *data);
/* Ends the streams of a machine that has lost its connection. */
void readers_machine_gone(struct controller *controller, machine_id machine);
void readers_end(struct controller *controller, const char *why); /* ends all streams */

/* execs.c: the API's hooks, and messages from agents */
void execs_open(void *context, const struct task *task, const struct api_exec_options *options,
                struct api_exec *reader);
void execs_input(void *context, struct api_exec *reader, struct str bytes, bool end);
void execs_credit(void *context, struct api_exec *reader, uint64_t bytes);
void execs_resize(void *context, struct api_exec *reader, uint16_t width, uint16_t height);
void execs_closed(void *context, struct api_exec *reader);
void execs_data(struct controller *controller, machine_id machine, const struct exec_data *data);
void execs_end(struct controller *controller, machine_id machine, const struct exec_end *end);
void execs_machine_gone(struct controller *controller, machine_id machine);
void execs_finish(struct controller *controller, const char *why); /* ends all commands */

#endif
