/* worker.h - the state of a worker; private to src/flow/island.
 *
 * A cell is a future: empty, then a tensor or a fault. Objects and instances share cells by reference, so an
 * argument costs nothing and a result is where its object is.
 */
#ifndef PHX_FLOW_ISLAND_WORKER_H
#define PHX_FLOW_ISLAND_WORKER_H

#include "base/list.h"
#include "base/map.h"
#include "flow/island/machine.h"
#include "flow/island/trace.h"
#include "flow/lower/lower.h"

enum {
    WORKER_CLIENT_OBJECTS_MAX = 1 << 21, /* the head lets it have half as many */
    WORKER_GONE_MAX = 1 << 14,           /* clients that are gone and remembered: late messages name them */
    WORKER_WINDOW = 64 << 20,            /* bytes of shards that move at a time */
    WORKER_WINDOW_SHARDS = 256,          /* and so many of them */
};
#define WORKER_SENT_NS                                                                                       \
    (INT64_C(10) * 1000 * 1000 * 1000) /* how long a host may take to say that one has come */

struct instance;

/* A step of an instance, or a client, that waits for a cell. */
struct cell_waiter {
    struct instance *instance; /* NULL: the client wants the shard */
    uint32_t step;
    struct flow_entry fetch;
};
/* Where the tensor of a cell is. One that is saved leaves the cell empty until it has been loaded. */
enum cell_home { CELL_IN_MEMORY, CELL_SAVING, CELL_SAVED, CELL_QUEUED, CELL_LOADING };
struct cell {
    uint32_t references;
    enum cell_home home;
    uint64_t saved_bytes;      /* SAVED, QUEUED, LOADING: of the tensor */
    void *saved;               /* what the host's SAVED has given */
    struct worker_move *moves; /* that wait for it to be in memory */
    struct tensor *tensor;
    struct fault *fault; /* both NULL: empty */
    uint64_t put_bytes;  /* of a tensor that a client has put */
    /* Most cells are waited for by one step. The others are in `waiters`. */
    struct instance *first;
    uint32_t first_step;
    VEC(struct cell_waiter) waiters;
};

struct worker_shard {
    uint32_t shard;
    struct cell *cell;
};
struct worker_object {
    uint64_t handle;
    size_t index;  /* in its client's list */
    bool released; /* as soon as it has been put, it goes */
    bool spilled;  /* the head counts it in host memory */
    uint64_t head; /* the secret of the head that has moved it here; 0: none has */
    VEC(struct worker_shard) shards;
};

enum function_state { FUNCTION_COMPILING, FUNCTION_READY, FUNCTION_FAILED };
struct worker_function {
    uint64_t id;
    enum function_state state;
    void *executable;
    struct fault fault;
    uint32_t running;
    bool freed;
};

struct worker_program {
    uint32_t id;
    struct plan *plan;
    uint32_t references; /* its client's table, instances */
    VEC(uint32_t) recvs; /* RECV steps; their tags ascend */
};

struct early_data { /* came before the launch that waits for it */
    struct flow_entry entry;
    struct buf tail;
};

struct instance {
    struct list_node node; /* of the worker's list */
    uint32_t client;
    uint64_t launch;
    uint64_t head;                  /* the secret of the head that has launched it */
    struct worker_program *program; /* NULL: not launched yet, has early data alone */
    struct cell **cells;            /* of each slot; the arrays below are behind it in the same piece */
    struct tensor **made;           /* of each slot: written in part */
    uint32_t *uses, *writers;       /* of each slot: still to come */
    uint32_t *pending;              /* of each step: cells that it waits for */
    bool *done;                     /* of each step */
    uint32_t left;                  /* steps that are not done */
    int64_t device_ns;
    struct fault *lost;
    VEC(struct early_data) early;
};

struct device_turn {
    struct instance *instance;
    uint32_t step;
};
struct worker_device {
    VEC(struct device_turn) queue;
    size_t first;
    bool busy;
    struct instance *running;
    struct worker_function *function;
    int64_t started_ns;        /* of what runs */
    uint64_t busy_ns, told_ns; /* of runs that are over; what the head was told last */
};

struct worker_client {
    uint32_t id;
    uint64_t token; /* 0: another host has named the client, the head is about to */
    uint64_t last_launch;
    bool gone; /* what runs ends */
    uint32_t suspension, saves; /* the head's number of it; saves that are under way */
    uint64_t saved_bytes;
    struct fault save_fault;
    uint32_t instances;
    struct u64_map objects, functions, programs, instances_by_launch;
    VEC(struct worker_object *) object_list;
    VEC(struct worker_function *) function_list;
    VEC(struct worker_program *) program_list;
};

/* A save or load under way; holds a reference to its cell. */
struct worker_transfer {
    uint32_t client;
    struct cell *cell; /* NULL: the place is free */
};
/* A shard that goes to memory, here or on another host. Holds a reference to its cell. */
struct worker_move {
    struct worker_move *next; /* of the same cell */
    uint32_t client, shard, to;
    uint64_t handle;
    bool quiet; /* the head is not told */
};

/* A shard on its way to another host. */
struct worker_sent {
    uint32_t to, shard;
    uint64_t handle;
    uint64_t
        load; /* shards that share a tensor have its number; one of them counts its bytes, the others 0 */
    uint64_t bytes;
    int64_t since_ns;
};
/* The shards that move at a time (worker_window.c). */
struct worker_window {
    uint64_t next_load;
    size_t loading;                    /* shards */
    uint64_t bytes, most;              /* that are being loaded, or on their way; how many may be */
    VEC(struct worker_transfer) loads; /* that wait, with cells QUEUED */
    VEC(struct worker_sent) sent;
};

/* A connection whose hello names a client, or a secret, that the head has yet to tell of. */
struct worker_guest {
    uint64_t peer;
    struct flow_entry hello;
};

struct worker {
    char *island, *address;
    uint32_t host, incarnation, device_count;
    uint64_t birth; /* given by the head */
    bool rejoins;   /* the head is lost, or back and yet to be greeted */
    bool greets;    /* a head is there, and is greeted once nothing runs */
    uint64_t device_bytes, host_bytes, secret, place;
    struct worker_device *devices;
    VEC(struct worker_client *) clients;
    struct u64_map client_index;
    struct u64_map gone; /* ids of clients that are gone, as themselves; the latest WORKER_GONE_MAX */
    VEC(uint32_t) gone_list;
    uint32_t gone_next; /* the oldest one of a full list */
    struct list_node instances;
    VEC(struct device_turn) ready; /* steps to do at once */
    VEC(struct worker_guest) guests;
    VEC(struct worker_function *) orphans; /* compiled for a client that has gone */
    uint64_t instance_count, program_count, function_count;
    uint64_t cells; /* alive, for tests */
    VEC(struct cell *) spare_cells;
    struct worker_window window;
    VEC(struct worker_transfer) transfers; /* by their number */
    VEC(uint32_t) spare_transfers;         /* free places in it */
    VEC(void *) scraps;                    /* saved tensors of cells that are gone */
    uint64_t put_bytes;
    int64_t now_ns, day_ns;
    uint64_t load[LOAD_NUMBERS]; /* counters: those of values and cells stay 0 here */
    bool traces;
    uint32_t trace_epoch; /* of the head's last word about tracing */
    struct trace_list traced;
};

/* The counters of `load` by their place in LOAD. */
enum worker_load {
    LOAD_RUNS,
    LOAD_FAILED,
    LOAD_SENT,
    LOAD_RECEIVED,
    LOAD_PUT,
    LOAD_FETCHED,
    LOAD_COMPILED,
    LOAD_REUSED,
    LOAD_VALUES,
    LOAD_CELLS
};
_Static_assert(LOAD_CELLS + 1 == LOAD_NUMBERS, "one counter for each number");

/* worker_store.c */
struct cell *cell_new(struct worker *worker);
struct cell *cell_ref(struct cell *cell);
/* A step waits for an empty cell. */
void cell_wait(struct cell *cell, struct instance *instance, uint32_t step);
void cell_unref(struct worker *worker, struct cell *cell);
bool cell_settled(const struct cell *cell);
/* Take over the tensor's reference; wake what waits. A settled cell keeps what it has. */
void cell_settle(struct worker *worker, struct cell *cell, struct tensor *tensor, const struct fault *fault,
                 struct flow_effects *effects);
struct worker_object *worker_object(struct worker_client *client, uint64_t handle, bool make);
struct cell *worker_object_cell(struct worker *worker, struct worker_object *object, uint32_t shard);
void worker_object_set(struct worker *worker, struct worker_object *object, uint32_t shard, struct cell *cell,
                       struct flow_effects *effects);
void worker_object_end(struct worker *worker, struct worker_client *client, struct worker_object *object);
void worker_send_shard(struct worker *worker, const struct cell *cell, const struct flow_entry *fetch,
                       struct flow_effects *effects);
void worker_put(struct worker *worker, struct worker_client *client, const struct flow_event *event,
                struct flow_effects *effects);
void worker_fetch(struct worker *worker, struct worker_client *client, const struct flow_entry *entry,
                  struct flow_effects *effects);
/* `kept`: of values from before the head was lost, of which no more will be put. */
void worker_release(struct worker *worker, struct worker_client *client, struct str tail, bool kept);

/* SPILL (`leaves`) and FILL. A value that is still being put, or moved here, is as told when it has come. */
void worker_spill(struct worker *worker, struct str tail, bool leaves, struct flow_effects *effects);

/* worker_launch.c */
void worker_launch(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_data(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_lost(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Ends what was launched by a head that is lost: no other knows of it. */
void worker_launches_lost(struct worker *worker, struct flow_effects *effects);
/* Drops what came early for launches of other heads than the one that is here now. */
void worker_launches_forget(struct worker *worker);
/* No launch of the client up to number `last` will come: what came early for one goes. */
void worker_launches_over(struct worker *worker, struct worker_client *client, uint64_t last);
void worker_ran(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_skip(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_pump(struct worker *worker, struct flow_effects *effects);
void instance_cell_settled(struct worker *worker, struct instance *instance, uint32_t step);
void instance_free(struct worker *worker, struct instance *instance);
void worker_program_unref(struct worker *worker, struct worker_program *program);

/* worker_watch.c: what a worker counts, and records while the head wants a trace */
/* Counts and records a run that is over. */
void worker_note_run(struct worker *worker, const struct instance *instance, const struct plan_step *step,
                     const struct flow_event *event, struct flow_effects *effects);
/* Counts and records a shard that has come or gone; `load` says which. The record's kind, names and bytes are
 * the caller's, the time is now. */
void worker_note_move(struct worker *worker, enum worker_load load, struct trace_record record,
                      struct flow_effects *effects);
/* TRACE of the head. */
void worker_trace(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects);
/* Tells the head what devices do, and what has been recorded. */
void worker_watch_tick(struct worker *worker, struct flow_effects *effects);

/* worker_suspend.c */
/* SAVE, MOVE of the head; MOVED of another host. */
void worker_save(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects);
void worker_move(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_moved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_saved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_loaded(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Begins to load a saved cell. */
void worker_load(struct worker *worker, uint32_t client, struct cell *cell, struct flow_effects *effects);
/* Ends the moves that wait for a cell; the caller has a reference to it. */
void cell_drop_moves(struct worker *worker, struct cell *cell);
/* The head is lost: what it has had saved or moved stays here, in memory. */
void worker_suspensions_lost(struct worker *worker, struct flow_effects *effects);
/* Ends the moves of a client. */
void worker_moves_drop(struct worker *worker, const struct worker_client *client);
/* Ends all transfers: their answers will not come. */
void worker_transfers_drop(struct worker *worker);
/* Hands saved tensors that nothing needs to the host. */
void worker_scrap(struct worker *worker, struct flow_effects *effects);

/* worker_window.c */
/* A saved cell is loaded once there is room for it. */
void window_await_load(struct worker *worker, uint32_t client, struct cell *cell);
void window_loaded(struct worker *worker, uint64_t bytes);
/* A shard leaves for another host, and the host says that it has come. */
void window_sent(struct worker *worker, const struct worker_move *move, uint64_t load, uint64_t bytes);
void window_arrived(struct worker *worker, uint32_t host, const struct flow_entry *entry);
/* A host, or the connection to it, is lost; the head is; time has passed. */
void window_host_lost(struct worker *worker, uint32_t host);
void window_head_lost(struct worker *worker);
void window_tick(struct worker *worker);
/* Ends what waits of a client, with its moves; NULL: of all. */
void window_drop_loads(struct worker *worker, const struct worker_client *client);
/* Begins the loads that there is room for; at the end of each step. */
void window_go(struct worker *worker, struct flow_effects *effects);

/* worker.c */
struct worker_client *worker_client(struct worker *worker, uint32_t id); /* NULL: unknown */
struct worker_client *worker_client_new(struct worker *worker, uint32_t id);
/* Whether the head may yet tell of a client that is unknown here. */
bool worker_client_may_come(const struct worker *worker, uint32_t id);
void worker_client_rest(struct worker *worker,
                        struct worker_client *client); /* frees it if nothing of it runs */
void worker_function_rest(struct worker *worker, struct worker_function *function,
                          struct flow_effects *effects);

#endif
