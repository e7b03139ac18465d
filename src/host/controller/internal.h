/* internal.h - the controller's state and what its files say to each other. See controller.h. */
#ifndef PHX_HOST_CONTROLLER_INTERNAL_H
#define PHX_HOST_CONTROLLER_INTERNAL_H

#include "base/list.h"
#include "core/health/evidence.h"
#include "host/api/api.h"
#include "host/controller/controller.h"
#include "host/wire/wire.h"

/* An event that waits for its commit. */
struct pending {
    struct event event;
    struct arena arena;          /* owns what the event points to */
    struct api_request *request; /* EVENT_WRITE: whom to answer */
    struct wire_conn *conn;      /* HELLO, REPORTS: whom to answer; NULL when it has closed meanwhile */
    machine_id machine;          /* HELLO, REPORTS: whose */
};

/* One agent's link. Indexed by machine_id. */
struct link {
    struct wire_conn *conn;  /* current connection; NULL: none */
    bool welcomed;           /* its hello has been applied */
    bool missed_news;        /* reports were thrown away for lack of room: it must say hello again */
    uint32_t hellos, queued; /* in the queue: its hellos; what names `conn` */
    bool knows_sheets;       /* its agent understands SHEET */
    uint64_t sheet;          /* number of the newest SHEET that was sent on `conn`; 0: none */
    struct evidence evidence;
    struct heap_node lease; /* in leases while the core counts on the machine */
};

/* What a wire connection is to us: its context. In controller->strangers until its first message, then in
 * ->peers. */
struct peer {
    struct controller *controller;
    struct wire_conn *conn;
    struct list_node node;
    machine_id machine; /* MACHINE_NONE until its first message */
    bool tether;
    int64_t opened_ns; /* monotonic */
    uint64_t round;    /* of the checks of certificates in which its own was good */
};

struct job_steps;
struct fault_file;

struct log_stream { /* a reader has several while machines are asked for the log of an earlier attempt */
    uint64_t number;
    machine_id machine;
    struct api_stream *reader;
    obj_id task;
    bool first, earlier;            /* nothing has come yet; it is for an earlier attempt */
    struct api_log_options options; /* strings live until the answer begins */
};

struct exec_stream {
    uint64_t number;
    machine_id machine;
    struct api_exec *reader;
};

struct controller {
    uv_loop_t *loop;
    uv_prepare_t prepare;
    uv_timer_t timer; /* leases, core deadline, steps, retries */
    struct controller_options options;
    char *data_dir;
    struct buf account_key; /* path, where no other was given */
    struct fault_file *fault_file; /* NULL: the fault table is not a file's */
    struct store_keys *store_keys; /* NULL: the log is not encrypted */
    struct store *store;
    struct core *core;
    struct effects effects;
    struct access *access; /* NULL: everybody may do everything, and nothing is written of it */
    struct api *api;
    struct wire *wire;
    struct wire_tls *wire_tls; /* NULL: agents connect in the clear and are believed */
    struct wire_listener *listener;
    uint16_t agent_port;
    int64_t clock_offset_ns; /* stamp clock less monotonic clock */
    VEC(struct pending *) queue;
    size_t queue_bytes, queued_writes;
    bool tick_queued;
    int64_t blocked_since_ns; /* the log has taken no record since, the disk being full say; 0: it does */
    struct error blocked;     /* why */
    int64_t retry_ns;
    uint64_t snapshot_seq;
    int64_t maintain_ns; /* monotonic: when snapshots, trimming and strangers are looked at next */
    struct store_snapshot_writer *snapshot;
    struct buf snapshot_bytes;
    bool trimming;
    int64_t trim_ns;
    struct link *links; /* [machine_count] */
    struct heap leases;
    int64_t listened_ns; /* monotonic: what arrived before has been read */
    int64_t wait_ns;     /* so long nothing was due then */
    int64_t turn_ended_ns, turn_idle_ns; /* monotonic; what the loop had waited until then */
    struct list_node strangers, peers;
    uint64_t peers_round;     /* grows when the agents' TLS was read again */
    int64_t peers_checked_ns; /* monotonic: when ends of certificates were looked at */
    size_t missing_news; /* links with missed_news */
    int64_t refusal_logged_ns;
    VEC(struct job_steps *) job_steps;
    struct u64_map steps_by_jobset;
    struct heap steps_due;
    struct u64_map paces; /* by JobSet */
    struct heap paces_due;
    VEC(struct log_stream) streams;
    VEC(struct exec_stream) execs;
    uint64_t next_stream;
    bool stopping;
};

int64_t controller_mono_ns(void);
int64_t controller_wall_ns(void); /* may jump */
/* The clock of stamps and of the core's deadlines: the wall clock, except that it never runs back and never
 * stops. When the wall clock is set back it goes on at its own pace, ahead of it, until the next start. */
int64_t controller_stamp_ns(struct controller *controller);
uint64_t controller_draw(void); /* random bits for events */

/* commit.c */
struct pending *pending_new(enum event_kind kind);
void commit_queue(struct controller *controller, struct pending *pending); /* takes it over */
/* Ahead of all that waits. It concerns no machine and no client. */
void commit_queue_first(struct controller *controller, struct pending *pending);
bool commit_has_room(const struct controller *controller); /* for what agents say; see QUEUE_BYTES_MAX */
void commit_turn(struct controller *controller);           /* before the loop sleeps */
/* `link`'s connection closes: what is queued has nobody to answer. */
void commit_forget_conn(struct controller *controller, struct link *link);
void commit_forget_hellos(struct controller *controller, machine_id machine); /* a newer one replaces them */
void commit_maintain(struct controller *controller); /* snapshot and trim, in slices */
void commit_done(struct controller *controller);

/* effects.c */
void effects_carry_out(struct controller *controller, const struct pending *pending);

/* machines.c */
void machines_boot(struct controller *controller);  /* leases for those that the core counts on */
/* After a pause: agents connect anew, and each machine has a whole lease to be heard of. */
void machines_resume(struct controller *controller);
void machines_check(struct controller *controller); /* leases, strangers, missed news */
void machines_hello_applied(struct controller *controller, const struct pending *pending);
int64_t machines_deadline(const struct controller *controller); /* monotonic; INT64_MAX: none */
void machines_conn_drop(struct controller *controller, machine_id id);
void machines_done(struct controller *controller);
/* peers.c gives these: a connection has said what it is; a message of a known one; one has ended. */
void machines_hello(struct controller *controller, struct wire_conn *conn, const struct hello *hello);
void machines_tether(struct controller *controller, struct wire_conn *conn, const struct hello *hello);
void machines_message(struct controller *controller, machine_id id, const struct from_agent *message);
void machines_closed(struct controller *controller, const struct peer *peer, enum wire_reason reason,
                     const char *why);

/* faultfile.c. Reads options.faults, if there is one, and watches it; bad content is not a failure. */
int fault_file_open(struct controller *controller, struct error *error);
void fault_file_look(struct controller *controller); /* reads it when it has changed */
void fault_file_close(
    struct controller *controller); /* nothing comes any more; the handle goes with the loop */
void fault_file_free(struct controller *controller);

/* peers.c */
int peers_listen(struct controller *controller, struct error *error);
void peers_refuse(struct wire_conn *conn, const char *why); /* says so, closes */
void peers_close(struct wire_conn *conn);                   /* without a word */
void peers_check(struct controller *controller);      /* those that say nothing, those that may no more */
bool peers_left(const struct controller *controller); /* there is more of that to do soon */
void peers_done(struct controller *controller);

/* steps.c */
void tracker_report(struct controller *controller, machine_id machine, const struct heartbeat *heartbeat);
void steps_before_end(struct controller *controller, const struct reports *reports);
void tracker_flush(struct controller *controller);
int64_t tracker_deadline(const struct controller *controller);
void steps_forget(struct controller *controller, obj_id jobset);
void tracker_done(struct controller *controller);

/* paces.c: windows of the ranks' pace */
void paces_report(struct controller *controller, const struct task *task, const struct pace_sums *sums);
void paces_flush(struct controller *controller); /* windows that are over become events */
int64_t paces_deadline(const struct controller *controller); /* monotonic; INT64_MAX: none */
void paces_forget(struct controller *controller, obj_id jobset);
void paces_done(struct controller *controller);

/* readers.c */
void readers_open(void *context, const struct task *task, const struct api_log_options *options,
                  struct api_stream *stream);
/* Why nothing can be asked of the task's machine now. */
int readers_unreachable(const struct controller *controller, const struct task *task, struct error *error);
void readers_closed(void *context, struct api_stream *stream);
void readers_data(struct controller *controller, machine_id machine, const struct log_data *data);
void readers_machine_gone(struct controller *controller,
                          machine_id machine); /* its connection is gone: its streams end */

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

#endif
