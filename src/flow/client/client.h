/* client.h - the state of a connection; private to src/flow/client.
 *
 * Calls write to the head and to workers themselves, under the connection's one mutex. The connection's
 * thread reads. It also flushes entries that were held back for up to 50 us, so that several leave in one
 * frame. A call that waits may read in the thread's place.
 * Files:
 *     connect.c   connecting, the thread, closing
 *     io.c        writing, flushing, incoming messages
 *     mesh.c      islands, meshes
 *     program.c   functions, programs, launches
 *     value.c     putting, fetching, releasing
 *     rejoin.c    reconnecting to a head that replaces a lost one
 *     lineage.c   recomputing lost values
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
    CLIENT_WINDOW = 1024, /* launches sent and not over */
    CLIENT_FLUSH_US = 50,
    CLIENT_RELEASES_MAX = 512, /* handles in one RELEASE */
    CLIENT_SPIN_RINGS_MAX = 32,
    CLIENT_RERUNS_MAX = 4096, /* launches of one recomputation, and so the depth of its recursion */
    CLIENT_RERUN_BYTES = 256 << 20,
};
/* After the connection to a worker broke, how long the head may take to report the worker as lost. */
#define CLIENT_SUSPECT_NS (INT64_C(5) * 1000 * 1000 * 1000)

/* How long the client tries to reach a head after a loss, unless the options say otherwise. */
#define CLIENT_RECONNECT_NS (INT64_C(30) * 1000 * 1000 * 1000)

struct client_place {
    uint32_t host, device;
    uint64_t birth; /* of the host's worker */
};
/* The devices of a mesh at one time. The values made on them share this record. Counted by references. */
struct client_places {
    uint32_t references, count;
    struct flow_mesh shape;
    struct client_place items[];
};
struct client_mesh {
    uint32_t id;
    uint32_t parent, start[PROGRAM_MESH_RANK_MAX]; /* of a slice; parent 0: the mesh is not a slice */
    char island[64];
    struct client_places *places;
};

struct client_connection { /* to the head, or to a host's worker */
    struct wire *wire;
    bool writing, dead;
    int64_t dead_ns; /* when it broke; 0 once the fate of the host is known */
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
    uint64_t handle; /* the runtime's name of the value; changes when the value is recomputed */
    uint64_t name;   /* the caller's name of the value: its first handle */
    size_t index;    /* in the connection's list */
    enum client_value_state state;
    struct program_value value;
    struct client_places *places;
    uint64_t launch; /* that makes the value; 0: it was put */
    struct fault fault;
    bool released;
    bool asked, asked_quiet;         /* FETCH was sent, for the bytes; for the existence only */
    uint32_t missing, missing_quiet; /* shards for which the answer to that FETCH is missing */
    uint32_t asks;                   /* number of the current request; answers to earlier ones are ignored */
    uint32_t waiters;                /* calls that wait for the value */
    char *data;                      /* the bytes of the whole value; NULL until asked for */
    /* Lineage. */
    /* Released here and on the workers; remembered for launches that may be repeated. */
    bool ghost;
    bool seen;                   /* all shards have been confirmed by workers */
    uint32_t holds;              /* launches that have the value as an argument */
    uint32_t tries;              /* recomputations since the value was last fetched */
    struct client_launch *maker; /* NULL: a root, or older than the bound of the lineage */
    uint32_t of_maker;           /* index among the maker's results */
    char *kept;                  /* a root's bytes; NULL: not a root */
};

/* A remembered launch, which can be repeated. */
struct client_launch {
    uint64_t number;     /* under which it was sent last */
    uint32_t references; /* results that are remembered */
    uint32_t depth;      /* launches on the longest path from a root */
    uint32_t arg_count, result_count;
    phx_flow_program *program;
    struct client_value **args, **results; /* results: NULL where no longer remembered */
    uint64_t looked, planned;              /* the last recomputation that examined it; that planned it */
    bool failed, doubted;
};

struct client_function {
    uint64_t id;
    struct ir_module *module;
    const struct ir_function *function;
    struct buf text; /* the tail of its FUNCTION entry, which a new head receives again */
};

struct phx_flow_program {
    phx_flow *flow;
    uint32_t id;
    bool finished, freed;
    uint32_t launches; /* remembered launches of the program */
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
    uint64_t moves; /* counts the changes that waiting calls may wait for */
    struct spin spin;
    pthread_t thread;
    bool refused; /* the head has refused the token */
    bool started, stop, broken;
    char *address;
    struct flow_entry hello; /* the HELLO_CLIENT, which a new head receives again */
    struct buf hello_tail;
    /* away: the head is lost and a new one sought, since away_ns and for at most reconnect_ns. joins: a
     * connection is made, but its WELCOME has not arrived. */
    bool away, joins;
    int64_t away_ns, reconnect_ns;
    uint64_t rejoins;
    bool suspended; /* nothing may be put until the head sends RESUME */
    int epoll, wake;
    uint32_t id, epoch;
    uint64_t token;
    struct client_connection head;
    bool unflushed;      /* entries are held back; the thread flushes them soon */
    int64_t launched_ns; /* when an entry that is not urgent was last sent at once, or first held back */
    VEC(struct client_connection *) connections;
    VEC(struct client_host *) hosts;
    VEC(struct client_mesh *) meshes;
    VEC(struct client_function) functions;
    VEC(phx_flow_program *) programs;  /* that the head knows */
    struct u64_map mesh_index, values; /* by id; by handle */
    struct u64_map names;              /* values whose handle is no longer their name, by name */
    uint32_t rerun_launches;           /* bound of the lineage; 0: none is kept */
    uint64_t rerun_bytes, kept_bytes, rerun_number;
    struct phx_flow_reruns reruns;
    VEC(struct client_value *) value_list; /* all values, in no order */
    uint64_t next_value, next_put, next_function, next_request, launched, finished;
    uint32_t next_program;
    struct client_request *requests;
    struct buf releases; /* handles for the next RELEASE */
};

/* Sets a public error, unless `error` is NULL, and returns the code. */
int client_error(struct phx_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Sets a public error from an internal one, and returns its public code. */
int client_error_of(struct phx_error *error, const struct error *from);

/* io.c. The caller holds the mutex, unless the comment says otherwise. */
/* Queues an entry, or drops it if the connection is dead. Flushes at once if it is `urgent`, if the frame is
 * full, or if no entry preceded it within CLIENT_FLUSH_US; otherwise the thread flushes soon. */
void client_send_entry(phx_flow *flow, struct client_connection *connection, const struct flow_entry *entry,
                       struct str tail, bool urgent);
/* Tells the head that this client has no connection to the host, so its shards do not come. */
void client_report_down(phx_flow *flow, uint32_t host);
/* Flushes releases and entries to the head. */
void client_flush(phx_flow *flow);
/* Returns the connection to the host's worker, and connects first if necessary. Returns NULL if the host is
 * lost or cannot be reached. May fail values that were being fetched on a broken connection. */
struct client_connection *client_connection_of(phx_flow *flow, uint32_t host);
/* Returns NULL if the head has not reported such a host. */
struct client_host *client_host(phx_flow *flow, uint32_t host);
/* Moves the pending handles into a RELEASE to the head. */
void client_flush_releases(phx_flow *flow);
/* Reads and handles the messages that have arrived. The caller holds `reading` and not the mutex. */
void client_read(phx_flow *flow, struct client_connection *connection);
/* Writes as much as the connection accepts now. The caller does not hold the mutex. */
void client_write_rest(phx_flow *flow, struct client_connection *connection);
/* Waits for a change, at most until `deadline_ns` of the monotonic clock (INT64_MAX: for ever); may also
 * return without a change. Returns false if the deadline has passed or the connection is broken. Releases the
 * mutex meanwhile. If a core is idle, first polls the rings itself for a while, which saves a wake-up. */
bool client_wait(phx_flow *flow, int64_t deadline_ns);
/* Wakes the calls that wait. */
void client_moved(phx_flow *flow);
/* Returns the deadline for a timeout from now; INT64_MAX if the timeout is negative. Needs no mutex. */
int64_t client_deadline_ns(int64_t timeout_ms);
/* Fails fetches from workers whose connection broke CLIENT_SUSPECT_NS ago, and which the head has not
 * reported as lost. Returns true if more such connections are younger than that. */
bool client_judge_suspects(phx_flow *flow);

/* mesh.c. The caller holds the mutex. */
/* Sends a request and waits for its answer, from a new head if the first one is lost. Returns 0,
 * PHX_ERROR_IO, or PHX_ERROR_INVALID if the head refuses. The caller frees request->tail. */
int client_ask(phx_flow *flow, struct flow_entry *entry, struct str tail, struct client_request *request,
               struct phx_error *error);
/* Handles MESH: adds the mesh, or gives it new places. */
void client_mesh_told(phx_flow *flow, const struct flow_entry *entry, struct str tail);
/* Handles SUSPEND: stops puts, and confirms this to the head. All earlier puts have been sent. */
void client_suspend(phx_flow *flow, const struct flow_entry *entry);
/* Returns NULL if there is no such mesh. */
struct client_mesh *client_mesh(phx_flow *flow, uint32_t id);
struct client_places *client_places_ref(struct client_places *places);
void client_places_unref(struct client_places *places);

/* value.c. The caller holds the mutex. */
/* Enters a pending value under a new handle. The connection owns it. */
struct client_value *client_value_new(phx_flow *flow, uint64_t handle, const struct program_value *value,
                                      struct client_places *places);
/* Frees a value at once, without a RELEASE. */
void client_value_free(phx_flow *flow, struct client_value *value);
/* Fails a value. Frees it if it was released and only waited for shards. */
void client_value_fail(phx_flow *flow, struct client_value *value, const struct fault *fault);
/* Returns the place at which a walk down `value_list` continues after the value at `at`. The end of that
 * value may have freed further values, which only its lineage kept. */
static inline size_t client_walk_on(const phx_flow *flow, size_t at)
{
    return at < flow->value_list.len ? at : flow->value_list.len;
}
/* Handles SHARD. */
void client_shard(phx_flow *flow, uint32_t host, const struct flow_entry *entry, struct str tail);
/* Moves the values at `from` to `to`. Their outstanding fetches are void, and calls that wait send new
 * ones. */
void client_values_moved(phx_flow *flow, const struct client_places *from, struct client_places *to);
/* Fails the values that are being fetched and have shards on a lost host. */
void client_host_lost(phx_flow *flow, const struct client_host *host, enum fault_reason reason);

/* rejoin.c. The caller holds the mutex, except for client_seek_head. */
/* Handles the loss of the connection to the head: the thread begins to seek a new one, or the connection is
 * broken for good. */
void client_head_lost(phx_flow *flow);
/* Tries once to connect to a new head, and gives up after reconnect_ns. On the connection's thread, without
 * `reading` and the mutex. */
void client_seek_head(phx_flow *flow);
/* Marks the connection broken: every call that waits fails. */
void client_give_up(phx_flow *flow);
/* Handles WELCOME of a new head: sends it the functions, meshes, programs and values of this client. If the
 * head does not know the client, its values have failed. */
void client_rejoin(phx_flow *flow, const struct flow_entry *welcome);
/* Waits until a head is connected or the connection is broken. */
void client_wait_for_head(phx_flow *flow);
/* As client_wait_for_head, and until the client is not suspended. */
void client_wait_to_run(phx_flow *flow);

/* value.c, continued. */
/* Sends VALUE to the head, and the shards of `data` to the workers. */
void client_value_send(phx_flow *flow, struct client_value *value, const void *data);
/* Releases a value that the caller has released, once nothing waits for it. Frees it once no remembered
 * launch takes it. */
void client_value_rest(phx_flow *flow, struct client_value *value);
/* Waits for one answer of the head, so that its earlier messages, such as new places of meshes, are known. */
void client_catch_up(phx_flow *flow);

/* lineage.c. The caller holds the mutex, except for client_args_today. */
/* Returns NULL if no value has that name. */
struct client_value *client_value_of(phx_flow *flow, uint64_t name);
/* Remembers a launch that has been sent, if all its arguments are remembered and the bound allows it. `args`
 * are the caller's names. */
void client_lineage_add(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                        const struct flow_entry *entry);
/* Forgets the maker of the value, and the launch itself with its last result. */
void client_lineage_drop(phx_flow *flow, struct client_value *value);
/* Copies the bytes and makes the value a root. Returns false if they do not fit rerun_bytes. */
bool client_value_keep(phx_flow *flow, struct client_value *value, const void *data, size_t len);
/* Recomputes a lost value: repeats the puts and launches that are needed. Returns false, and sends nothing,
 * if that is impossible. The caller has counted itself in value->waiters. */
bool client_rerun(phx_flow *flow, struct client_value *value, int64_t deadline_ns);
/* Returns the current handles of the arguments, and recomputes those that are lost. The caller does not hold
 * the mutex, and frees the array. */
uint64_t *client_args_today(phx_flow *flow, const uint64_t *args, uint32_t arg_count);

/* program.c */
void client_functions_free(phx_flow *flow);
/* Frees a program that the caller has freed, once no remembered launch needs it. The caller holds the
 * mutex. */
void client_program_rest(phx_flow_program *program);
/* Sends a launch with `entry->node` results under the next launch number and handles, which are set in
 * *entry. Waits while the window is full or no head is connected. The caller holds the mutex. */
void client_launch_send(phx_flow *flow, const phx_flow_program *program, const uint64_t *args,
                        uint32_t arg_count, struct flow_entry *entry);

#endif
