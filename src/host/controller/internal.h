/* internal.h - the controller's state and what its files say to each other. See controller.h. */
#ifndef PHX_HOST_CONTROLLER_INTERNAL_H
#define PHX_HOST_CONTROLLER_INTERNAL_H

#include "base/list.h"
#include "drive/drive.h"
#include "host/api/api.h"
#include "host/controller/controller.h"
#include "host/wire/wire.h"

/* A wire connection's context, and the driver's handle of it. In controller->strangers until its first
 * message, then in ->peers. */
struct peer {
    struct controller *controller;
    struct wire_conn *conn;
    struct list_node node;
    bool introduced;   /* its first message has come */
    int64_t opened_ns; /* monotonic */
    uint64_t round;    /* of the checks of certificates in which its own was good */
};

struct desk;
struct fault_file;
struct stand_in;

struct log_stream { /* a reader has several while machines are asked for the log of an earlier attempt */
    uint64_t number;
    machine_id machine;
    struct api_stream *reader;
    obj_id task;
    bool first, earlier;            /* nothing has come yet; it is for an earlier attempt */
    bool likely;                    /* `earlier`: only likely machines were asked, and the others are next */
    struct api_log_options options; /* strings live until the answer begins */
};

struct exec_stream {
    uint64_t number;
    machine_id machine;
    struct api_exec *reader;
};

/* LEAVE_NOT -> LEAVE_ANSWERS: requests that have begun are answered -> LEAVE_RESIGNED: answers are taken by
 * their clients -> LEAVE_CLOSED. */
enum controller_leave { LEAVE_NOT, LEAVE_ANSWERS, LEAVE_RESIGNED, LEAVE_CLOSED };

struct controller {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer; /* leases, core deadline, steps, retries */
    struct controller_options options;
    char *data_dir;
    struct buf account_key;        /* path, where no other was given */
    struct fault_file *fault_file; /* NULL: the fault table is not a file's */
    struct store_keys *store_keys; /* NULL: the log is not encrypted */
    struct log_store log;          /* `context` NULL: it is not open */
    struct core *core;
    struct driver *driver; /* NULL while the log is opened */
    struct access *access; /* NULL: everybody may do everything, and nothing is written of it */
    struct api *api;
    struct wire *wire;
    struct desk *desk;         /* of optical switches */
    struct stand_in *stand_in; /* NULL: it is not running */
    struct wire_tls *wire_tls; /* NULL: agents connect in the clear and are believed */
    struct wire_listener *listener;
    uint16_t agent_port;
    bool log_refuses;    /* it has been said that the log takes nothing */
    int64_t maintain_ns; /* monotonic: when snapshots, trimming and strangers are looked at next */
    void *snapshot;      /* the writer of the one under way */
    struct buf snapshot_bytes;
    bool trimming;
    int64_t trim_ns;
    int64_t turn_ended_ns, turn_idle_ns; /* monotonic; what the loop had waited until then */
    struct list_node strangers, peers;
    uint64_t peers_round;     /* grows when the agents' TLS was read again */
    int64_t peers_checked_ns; /* monotonic: when ends of certificates were looked at */
    int64_t refusal_logged_ns;
    VEC(struct log_stream) streams;
    VEC(struct exec_stream) execs;
    uint64_t next_stream;
    enum controller_leave leave;
    int64_t leave_ns; /* monotonic: when the present state of leaving is given up */
    int64_t tls_ns;   /* monotonic: until when clients with TLS are waited for */
    void (*ended)(void *context);
    void *ended_context;
    int open_parts; /* of a hand-over: what has not been closed yet */
    bool stopping;
};

int64_t controller_mono_ns(void);
int64_t controller_wall_ns(void); /* may jump */
uint64_t controller_draw(void);   /* random bits for events */
/* Whether no other controller can lead now. From any thread. */
bool controller_leads(const struct controller *controller);

/* log.c */
struct log_port log_port(struct controller *controller);
void log_maintain(struct controller *controller); /* snapshots and trimming, in slices */
void log_done(struct controller *controller);

/* sinks.c */
struct sink_port sink_port(struct controller *controller);
/* switches.c: begins to carry requests to optical switches out; ends it, after what is under way. */
struct switch_port switches_begin(struct controller *controller);
void switches_end(struct controller *controller);
void switches_follow(struct controller *controller); /* reaches them as the core's cluster file says now */

/* faultfile.c. Reads options.faults, if there is one, and watches it; bad content is not a failure. */
int fault_file_open(struct controller *controller, struct error *error);
void fault_file_look(struct controller *controller); /* reads it when it has changed */
void fault_file_close(
    struct controller *controller); /* nothing comes any more; the handle goes with the loop */
void fault_file_free(struct controller *controller);

/* peers.c */
struct net_port net_port(struct controller *controller);
int peers_listen(struct controller *controller, struct error *error);
/* To the machine's agent, if its session is welcome. False: there is none. */
bool peers_send(struct controller *controller, machine_id machine, const struct from_controller *message);
void peers_check(struct controller *controller);      /* those that say nothing, those that may no more */
bool peers_left(const struct controller *controller); /* there is more of that to do soon */
void peers_done(struct controller *controller);

/* lease.c: a thread that answers heartbeats while the loop is at work elsewhere. The wire and the driver's
 * sessions may be touched between lease_take() and lease_lend() only; they are held at first. Both do
 * nothing where that is so already, and while there is no thread. */
int lease_start(struct controller *controller, struct error *error);
void lease_stop(struct controller *controller);
void lease_lend(struct controller *controller);
bool lease_take(struct controller *controller); /* true: it was lent */
void lease_turn(struct controller *controller); /* the loop has looked at its sockets, or will at once */

/* readers.c */
void readers_open(void *context, const struct task *task, const struct api_log_options *options,
                  struct api_stream *stream);
/* Why nothing can be asked of the task's machine now. */
int readers_unreachable(const struct controller *controller, const struct task *task, struct error *error);
void readers_closed(void *context, struct api_stream *stream);
void readers_data(struct controller *controller, machine_id machine, const struct log_data *data);
void readers_machine_gone(struct controller *controller,
                          machine_id machine); /* its connection is gone: its streams end */
void readers_end(struct controller *controller, const char *why); /* all streams */

/* execs.c: the API's hooks, and what an agent says */
void execs_open(void *context, const struct task *task, const struct api_exec_options *options,
                struct api_exec *reader);
void execs_input(void *context, struct api_exec *reader, struct str bytes, bool end);
void execs_credit(void *context, struct api_exec *reader, uint64_t bytes);
void execs_resize(void *context, struct api_exec *reader, uint16_t width, uint16_t height);
void execs_closed(void *context, struct api_exec *reader);
void execs_data(struct controller *controller, machine_id machine, const struct exec_data *data);
void execs_end(struct controller *controller, machine_id machine, const struct exec_end *end);
void execs_machine_gone(struct controller *controller, machine_id machine);
void execs_finish(struct controller *controller, const char *why); /* all commands */

#endif
