/* client.h - the state of a connection; private to src/flow/client.
 *
 * Calls write to the head and to workers themselves, under the connection's one mutex. The connection's
 * thread reads, and flushes what has waited 50 us for company; a call that waits may read in its place.
 * Files:
 *     connect.c   connecting, the thread, closing
 *     io.c        writing, flushing, what comes in
 *     mesh.c      islands, meshes
 *     program.c   functions, programs, launches
 *     value.c     putting, fetching, releasing
 *     rejoin.c    another head in the place of a lost one
 *     lineage.c   making lost values again
 */
#ifndef PHX_FLOW_CLIENT_CLIENT_H
#define PHX_FLOW_CLIENT_CLIENT_H

#include <pthread.h>

#include "base/map.h"
#include "flow/ir/program.h"
#include "flow/ir/public.h"
#include "flow/wire/spin.h"
#include "flow/wire/wire.h"
#include "phalanx/flow.h"

enum {
    CLIENT_WINDOW = 1024, /* launches under way */
    CLIENT_FLUSH_US = 50,
    CLIENT_RELEASES_MAX = 512, /* of one entry */
    CLIENT_SPIN_RINGS_MAX = 32,
    CLIENT_RERUNS_MAX = 4096, /* launches of one making: it recurses as deep */
    CLIENT_RERUN_BYTES = 256 << 20,
};
/* How long the head may take to say that a worker whose connection broke is lost. */
#define CLIENT_SUSPECT_NS (INT64_C(5) * 1000 * 1000 * 1000)

/* How long a head that is lost is sought. */
#define CLIENT_RECONNECT_NS (INT64_C(30) * 1000 * 1000 * 1000)

struct client_place {
    uint32_t host, device;
    uint64_t birth; /* of the host's worker */
};
/* Where a mesh was when values on it were made. */
struct client_places {
    uint32_t references, count;
    struct flow_mesh shape;
    struct client_place items[];
};
struct client_mesh {
    uint32_t id;
    uint32_t parent, start[PROGRAM_MESH_RANK_MAX]; /* of a slice; 0: it is none */
    char island[64];
    struct client_places *places;
};

struct client_connection { /* to the head, or to a host's worker */
    struct wire *wire;
    bool writing, dead;
    int64_t dead_ns; /* since when; 0 once the head has said what has become of the host */
    uint32_t host;   /* UINT32_MAX: the head */
};
struct client_host {
    uint32_t id, island, incarnation, first_device;
    uint64_t birth;
    bool alive;
    char address[512];
    struct client_connection *connection; /* NULL: not connected */
};

enum client_value_state { CLIENT_PENDING, CLIENT_FAILED };
struct client_launch;
struct client_value {
    uint64_t handle; /* by which the runtime knows it */
    uint64_t name;   /* by which the caller does: the first handle */
    size_t index; /* in the connection's list */
    enum client_value_state state;
    struct program_value value;
    struct client_places *places;
    uint64_t launch; /* that makes it; 0: it was put */
    struct fault fault;
    bool released;
    bool asked, asked_quiet;         /* for its bytes; whether it is there */
    uint32_t missing, missing_quiet; /* shards that have not answered */
    uint32_t asks;                   /* number of the last asking: answers to earlier ones do not count */
    uint32_t waiters;
    char *data; /* the whole value, once asked for */
    /* Lineage. */
    bool ghost;                  /* released here and there; a launch that may go again takes it */
    bool seen;                   /* its workers have said that it is whole */
    uint32_t holds;              /* launches that take it */
    uint32_t tries;              /* how often it was made again in vain */
    struct client_launch *maker; /* NULL: a root, or beyond the bound */
    uint32_t of_maker;           /* which result */
    char *kept;                  /* a root's bytes, or NULL */
};

/* A launch that may go again. */
struct client_launch {
    uint64_t number;     /* the last one under which it went */
    uint32_t references; /* results that are remembered */
    uint32_t depth;      /* of the longest way from a root */
    uint32_t arg_count, result_count;
    phx_flow_program *program;
    struct client_value **args, **results; /* results: NULL where forgotten */
    uint64_t looked, planned;              /* by which making */
    bool failed, doubted;
};

struct client_function {
    uint64_t id;
    struct ir_module *module;
    const struct ir_function *function;
    struct buf text; /* as the head was told: another one is told again */
};

struct phx_flow_program {
    phx_flow *flow;
    uint32_t id;
    bool finished, freed;
    uint32_t launches; /* that are remembered */
    struct program *program;
    struct error wrong; /* the first failure while building */
};

/* A call that waits for the head's answer. */
struct client_request {
    struct client_request *next;
    uint64_t number;
    bool answered, failed;
    struct fault fault;
    uint32_t mesh;
    struct buf tail;
};

struct phx_flow {
    pthread_mutex_t mutex;
    pthread_mutex_t reading; /* held by the thread that reads connections; taken before `mutex` */
    pthread_cond_t moved;
    uint64_t moves; /* how often `moved` was said */
    struct spin spin;
    pthread_t thread;
    bool refused; /* by its token */
    bool started, stop, broken;
    char *address;
    struct flow_entry hello; /* as it was sent to the head: to be sent to another one */
    struct buf hello_tail;
    /* The head is lost and sought; a connection that has yet to be welcomed; since when; how long. */
    bool away, joins;
    int64_t away_ns, reconnect_ns;
    uint64_t rejoins;
    bool suspended; /* nothing is put until the head says that the client runs again */
    int epoll, wake;
    uint32_t id, epoch;
    uint64_t token;
    struct client_connection head;
    bool unflushed;      /* the thread flushes soon */
    int64_t launched_ns; /* when an entry that may wait for company was last sent at once, or began to wait */
    VEC(struct client_connection *) connections;
    VEC(struct client_host *) hosts;
    VEC(struct client_mesh *) meshes;
    VEC(struct client_function) functions;
    VEC(phx_flow_program *) programs; /* that the head knows */
    struct u64_map mesh_index, values;
    struct u64_map names;    /* of values whose handle is another one by now */
    uint32_t rerun_launches; /* 0: no lineage */
    uint64_t rerun_bytes, kept_bytes, rerun_number;
    struct phx_flow_reruns reruns;
    VEC(struct client_value *) value_list; /* for the end: not kept in order */
    uint64_t next_value, next_put, next_function, next_request, launched, finished;
    uint32_t next_program;
    struct client_request *requests;
    struct buf releases; /* handles that wait for company */
};

/* Sets a public error; returns the code. */
int client_error(struct phx_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int client_error_of(struct phx_error *error, const struct error *from);

/* io.c; the caller holds the mutex. */
void client_send_entry(phx_flow *flow, struct client_connection *connection, const struct flow_entry *entry,
                       struct str tail, bool urgent);
void client_flush(phx_flow *flow);
struct client_connection *client_connection_of(phx_flow *flow, uint32_t host); /* NULL: gone */
struct client_host *client_host(phx_flow *flow, uint32_t host);
void client_flush_releases(phx_flow *flow);
/* Reads what has come to a connection: by who holds `reading`, without the mutex. */
void client_read(phx_flow *flow, struct client_connection *connection);
/* Writes what there is room for by now; without the mutex. */
void client_write_rest(phx_flow *flow, struct client_connection *connection);
/* Waits until moved, at most until `deadline_ns` of the monotonic clock (INT64_MAX: for ever). Where a core
 * is free for it, the caller first reads the rings itself for a while: a message then costs no wake-up. */
bool client_wait(phx_flow *flow, int64_t deadline_ns);
void client_moved(phx_flow *flow); /* wakes those who wait */
int64_t client_deadline_ns(int64_t timeout_ms);
/* Fails fetches from workers that have broken off and that the head still takes for alive. True: some are
 * still to be judged. */
bool client_judge_suspects(phx_flow *flow);

/* mesh.c */
/* Sends a request and waits for its answer; the caller frees request->tail. */
int client_ask(phx_flow *flow, struct flow_entry *entry, struct str tail, struct client_request *request,
               struct phx_error *error);
void client_mesh_told(phx_flow *flow, const struct flow_entry *entry, struct str tail);
/* SUSPEND: answers that nothing more is put. All that was put before has been sent. */
void client_suspend(phx_flow *flow, const struct flow_entry *entry);
struct client_mesh *client_mesh(phx_flow *flow, uint32_t id);
struct client_places *client_places_ref(struct client_places *places);
void client_places_unref(struct client_places *places);

/* value.c */
struct client_value *client_value_new(phx_flow *flow, uint64_t handle, const struct program_value *value,
                                      struct client_places *places);
void client_value_free(phx_flow *flow, struct client_value *value);
void client_value_fail(phx_flow *flow, struct client_value *value, const struct fault *fault);
void client_shard(phx_flow *flow, uint32_t host, const struct flow_entry *entry, struct str tail);
/* The values that were at `from` are at `to`; what was asked there is asked again. */
void client_values_moved(phx_flow *flow, const struct client_places *from, struct client_places *to);
/* Fails what is being fetched from a host that is gone. */
void client_host_lost(phx_flow *flow, const struct client_host *host, enum fault_reason reason);

/* rejoin.c; client_seek_head and client_head_lost: on the connection's thread. */
/* The connection to the head is lost; the caller holds the mutex. */
void client_head_lost(phx_flow *flow);
/* Tries to reach a head in the place of the lost one; without the mutex. */
void client_seek_head(phx_flow *flow);
/* No other head is sought: all that waits fails. The caller holds the mutex. */
void client_give_up(phx_flow *flow);
/* WELCOME: tells the head all that the client has there; the caller holds the mutex. */
void client_rejoin(phx_flow *flow, const struct flow_entry *welcome);
/* Waits while there is no head; the caller holds the mutex. */
void client_wait_for_head(phx_flow *flow);
/* Waits while the client is suspended, or there is no head. */
void client_wait_to_run(phx_flow *flow);

/* Tells the head of a value that is put, and sends its shards. */
void client_value_send(phx_flow *flow, struct client_value *value, const void *data);
/* Ends a released value that nothing needs. */
void client_value_rest(phx_flow *flow, struct client_value *value);
/* Waits until the head has been heard: a mesh that has lost devices is on others then. */
void client_catch_up(phx_flow *flow);

/* lineage.c; the caller holds the mutex, but for client_args_today. */
struct client_value *client_value_of(phx_flow *flow, uint64_t name); /* NULL: none */
/* Remembers a launch that has been sent; `args` are names. */
void client_lineage_add(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                        const struct flow_entry *entry);
/* Forgets what has made the value. */
void client_lineage_drop(phx_flow *flow, struct client_value *value);
/* Makes the value a root; false: its bytes are beyond rerun_bytes. */
bool client_value_keep(phx_flow *flow, struct client_value *value, const void *data, size_t len);
/* Makes a lost value again; false: it stays as it is. The value must have a waiter. */
bool client_rerun(phx_flow *flow, struct client_value *value, int64_t deadline_ns);
/* Handles of arguments that are there; what was lost is made again. The caller frees them. */
uint64_t *client_args_today(phx_flow *flow, const uint64_t *args, uint32_t arg_count);

/* program.c */
void client_functions_free(phx_flow *flow);
/* Ends a program that is freed and that no launch needs. */
void client_program_rest(phx_flow_program *program);
/* Sends a launch with `entry->node` results under the next numbers, which it enters into *entry. */
void client_launch_send(phx_flow *flow, const phx_flow_program *program, const uint64_t *args,
                        uint32_t arg_count, struct flow_entry *entry);

#endif
