/* worker.h - the state of a worker; private to src/flow/island.
 *
 * A cell is a future: empty at first, then settled with a tensor or a fault. Objects and instances share
 * cells by reference, so binding an argument copies nothing, and a result appears in its object without a
 * transfer.
 */
#ifndef PHX_FLOW_ISLAND_WORKER_H
#define PHX_FLOW_ISLAND_WORKER_H

#include "base/list.h"
#include "base/map.h"
#include "flow/island/machine.h"
#include "flow/island/trace.h"
#include "flow/lower/lower.h"

enum {
    WORKER_CLIENT_OBJECTS_MAX = 1 << 21, /* values of one client; twice HEAD_CLIENT_OBJECTS_MAX */
    WORKER_GONE_MAX = 1 << 14,           /* ended clients remembered, because late messages may name them */
    WORKER_WINDOW = 64 << 20,            /* bytes of shards that move at a time */
    WORKER_WINDOW_SHARDS = 256,          /* number of shards that move at a time */
};
/* How long a sent shard counts against the window without a confirmation from its new host. */
#define WORKER_SENT_NS (INT64_C(10) * 1000 * 1000 * 1000)

struct instance;

/* A waiter for a cell: a step of an instance, or a FETCH of a client. */
struct cell_waiter {
    struct instance *instance; /* NULL: a client, whose FETCH is in `fetch` */
    uint32_t step;
    struct flow_entry fetch;
};
/* The location of a cell's tensor. A saved cell is empty until it has been loaded. */
enum cell_home { CELL_IN_MEMORY, CELL_SAVING, CELL_SAVED, CELL_QUEUED, CELL_LOADING };
struct cell {
    uint32_t references;
    enum cell_home home;
    uint64_t saved_bytes;      /* SAVED, QUEUED, LOADING: size of the tensor */
    void *saved;               /* SAVED, QUEUED, LOADING: the saved form from FLOW_SAVED */
    struct worker_move *moves; /* moves that wait until the tensor is in memory */
    struct tensor *tensor;
    struct fault *fault; /* tensor and fault both NULL: the cell is empty */
    uint64_t put_bytes;  /* size of a tensor that a client has put; 0 otherwise */
    /* The first step that waits; most cells have only one. Further waiters are in `waiters`. */
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
    bool released; /* released before it was put; it ends when it has been put */
    bool spilled;  /* the head charges it to host memory */
    uint64_t head; /* the secret of the head that has moved the object here; 0: none has */
    VEC(struct worker_shard) shards;
};

enum function_state { FUNCTION_COMPILING, FUNCTION_READY, FUNCTION_FAILED };
struct worker_function {
    uint64_t id, order; /* `order`: of its COMPILE */
    enum function_state state;
    void *executable;
    struct fault fault;
    uint32_t running;
    bool freed;
};

struct worker_program {
    uint32_t id;
    struct plan *plan;
    uint32_t references; /* of its client's table and of instances */
    VEC(uint32_t) recvs; /* RECV steps in ascending order of their tags */
};

struct early_data { /* DATA that arrived before its LAUNCH */
    struct flow_entry entry;
    struct buf tail;
};

struct instance {
    struct list_node node; /* of the worker's list */
    uint32_t client;
    uint64_t launch;
    uint64_t head;                  /* the secret of the head that has stamped the launch */
    struct worker_program *program; /* NULL: the LAUNCH has not arrived; only early data has */
    struct cell **cells;            /* by slot; owns one allocation with the five arrays below */
    struct tensor **made;           /* by slot: a tensor that is partly written */
    uint32_t *uses, *writers;       /* by slot: reads and writes still to come */
    uint32_t *pending;              /* by step: empty cells that it waits for */
    bool *done;                     /* by step */
    uint32_t left;                  /* steps that are not done */
    int64_t device_ns;
    struct fault *lost; /* why the gang is incomplete; NULL: it is complete */
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
    int64_t started_ns;        /* of the current run */
    uint64_t busy_ns, told_ns; /* total of completed runs; total last reported to the head */
};

struct worker_client {
    uint32_t id;
    uint64_t token; /* 0: known only from another host's message; the head's CLIENT is still to come */
    uint64_t last_launch;
    bool gone;                  /* ended; freed after its last instance */
    uint32_t suspension, saves; /* the head's number of the suspension, 0: none; saves in progress */
    uint64_t saved_bytes;
    struct fault save_fault;
    uint32_t instances;
    struct u64_map objects, functions, programs, instances_by_launch;
    VEC(struct worker_object *) object_list;
    VEC(struct worker_function *) function_list;
    VEC(struct worker_program *) program_list;
};

/* A save or load in progress; holds a reference to its cell. */
struct worker_transfer {
    uint32_t client;
    struct cell *cell; /* NULL: this number is free */
};
/* An order to bring a shard into memory, here or on another host. Holds a reference to the shard's cell. */
struct worker_move {
    struct worker_move *next; /* of the same cell */
    uint32_t client, shard, to;
    uint64_t handle;
    bool quiet; /* no PUT_DONE is sent to the head */
};

/* A shard on its way to another host. */
struct worker_sent {
    uint32_t to, shard;
    uint64_t handle;
    /* Shards that share a tensor have the same number; one of them counts its bytes, the others 0. */
    uint64_t load;
    uint64_t bytes;
    int64_t since_ns;
};
/* The shards that move at present, and their limit (worker_window.c). */
struct worker_window {
    uint64_t next_load;
    size_t loading;                    /* shards that are being loaded */
    uint64_t bytes, most;              /* bytes being loaded or on their way; limit of these bytes */
    VEC(struct worker_transfer) loads; /* loads that wait; their cells are QUEUED */
    VEC(struct worker_sent) sent;
};

/* A connection whose HELLO_PEER cannot be checked before the head has sent more. */
struct worker_guest {
    uint64_t peer;
    struct flow_entry hello;
};

struct worker {
    char *island, *address;
    uint32_t host, incarnation, device_count;
    uint64_t birth; /* given by the head */
    bool rejoins;   /* the head is lost, or its replacement has not been greeted yet */
    bool greets;    /* a head is connected, and receives HELLO once no launch runs */
    uint64_t device_bytes, host_bytes, secret, place;
    struct worker_device *devices;
    VEC(struct worker_client *) clients;
    struct u64_map client_index;
    struct u64_map gone; /* ids of the last WORKER_GONE_MAX ended clients, each mapped to itself */
    VEC(uint32_t) gone_list;
    uint32_t gone_next; /* index of the oldest id in a full list */
    struct list_node instances;
    VEC(struct device_turn) ready; /* COPY and SEND steps that can execute at once */
    VEC(struct worker_guest) guests;
    VEC(struct worker_function *) compiling; /* by their orders; freed ones were of clients that have ended */
    uint64_t orders;                         /* number of the newest order */
    uint64_t instance_count, program_count, function_count;
    uint64_t cells; /* number of cells alive, for tests */
    VEC(struct cell *) spare_cells;
    struct worker_window window;
    VEC(struct worker_transfer) transfers; /* by number */
    VEC(uint32_t) spare_transfers;         /* free numbers */
    VEC(void *) scraps;                    /* saved forms to release with SCRAP */
    uint64_t put_bytes;                    /* total over all cells */
    int64_t now_ns, day_ns;
    uint64_t load[LOAD_NUMBERS]; /* counters; LOAD_VALUES and LOAD_CELLS stay 0 here */
    bool traces;
    uint32_t trace_epoch; /* of the head's last TRACE order */
    struct trace_list traced;
};

/* Indexes of the counters in `load` and in the tail of LOAD. */
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

/* worker_store.c: objects and cells, counted by references */
/* Returns an empty cell with one reference. */
struct cell *cell_new(struct worker *worker);
struct cell *cell_ref(struct cell *cell);
/* Makes a step wait for an empty cell. */
void cell_wait(struct cell *cell, struct instance *instance, uint32_t step);
/* Drops a reference. The last one frees the cell and adds its saved form to `scraps`. NULL is allowed. */
void cell_unref(struct worker *worker, struct cell *cell);
bool cell_settled(const struct cell *cell);
/* Settles a cell with a tensor, whose reference it takes over, or with a copy of a fault; the other is NULL.
 * Releases the steps that wait, and answers the clients. Changes nothing if the cell is settled. */
void cell_settle(struct worker *worker, struct cell *cell, struct tensor *tensor, const struct fault *fault,
                 struct flow_effects *effects);
/* Returns the client's object of that handle. If there is none, adds one without shards (`make`), or returns
 * NULL. */
struct worker_object *worker_object(struct worker_client *client, uint64_t handle, bool make);
/* Returns the cell of a shard, which the object owns; adds an empty cell if there is none. */
struct cell *worker_object_cell(struct worker *worker, struct worker_object *object, uint32_t shard);
/* Makes `cell` the cell of a shard, with a new reference. Its former cell passes its waiting FETCHes on. */
void worker_object_set(struct worker *worker, struct worker_object *object, uint32_t shard, struct cell *cell,
                       struct flow_effects *effects);
/* Frees an object, and drops its references to cells. */
void worker_object_end(struct worker *worker, struct worker_client *client, struct worker_object *object);
/* Answers a FETCH from a settled cell. */
void worker_send_shard(struct worker *worker, const struct cell *cell, const struct flow_entry *fetch,
                       struct flow_effects *effects);
/* Handle PUT and FETCH of a client. */
void worker_put(struct worker *worker, struct worker_client *client, const struct flow_event *event,
                struct flow_effects *effects);
void worker_fetch(struct worker *worker, struct worker_client *client, const struct flow_entry *entry,
                  struct flow_effects *effects);
/* Handles RELEASE. An object that is still being put ends when it has been put, unless its value is `kept`: a
 * value from before the head was lost, for which no more PUTs will arrive. */
void worker_release(struct worker *worker, struct worker_client *client, struct str tail, bool kept);

/* Handles SPILL (`leaves`) and FILL. Shards that arrive later follow the last of them. */
void worker_spill(struct worker *worker, struct str tail, bool leaves, struct flow_effects *effects);

/* worker_launch.c */
/* Handle LAUNCH of the head, DATA of another host, LOST of the head. */
void worker_launch(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_data(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_lost(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Fails all launches when their head is lost, because no other head knows of them. */
void worker_launches_lost(struct worker *worker, struct flow_effects *effects);
/* Cuts off the launches of a client that ends. Runs that have begun finish, and their devices are free:
 * members of a collective that would never be complete stop to wait for each other. */
void worker_launches_end(struct worker *worker, const struct worker_client *client,
                         struct flow_effects *effects);
/* Drops the early data for launches of any head but the current one. */
void worker_launches_forget(struct worker *worker);
/* Drops the early data for launches of the client up to number `last`: none of them will arrive. */
void worker_launches_over(struct worker *worker, struct worker_client *client, uint64_t last);
/* Handle RAN, and SKIP of another host. */
void worker_ran(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_skip(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Executes the steps that are ready, and starts the runs whose turn has come, until none is left. */
void worker_pump(struct worker *worker, struct flow_effects *effects);
/* Counts one cell less that the step waits for. A COPY or SEND that waits for none becomes ready. */
void instance_cell_settled(struct worker *worker, struct instance *instance, uint32_t step);
/* Frees an instance, and its client if that has ended and this was its last instance. */
void instance_free(struct worker *worker, struct instance *instance);
void worker_program_unref(struct worker *worker, struct worker_program *program);

/* worker_watch.c: the worker's counters, and its records while the head wants a trace */
/* Counts and records a completed run. */
void worker_note_run(struct worker *worker, const struct instance *instance, const struct plan_step *step,
                     const struct flow_event *event, struct flow_effects *effects);
/* Adds the record's bytes to the counter `load`, and records the transfer of a shard. The caller fills the
 * record except its times, which are set to now. */
void worker_note_move(struct worker *worker, enum worker_load load, struct trace_record record,
                      struct flow_effects *effects);
/* Handles TRACE of the head: sends the remaining records, begins or ends recording, and confirms. */
void worker_trace(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects);
/* Sends LOAD and the accumulated records to the head. Called at each tick. */
void worker_watch_tick(struct worker *worker, struct flow_effects *effects);

/* worker_suspend.c */
/* Handle SAVE and MOVE of the head, and MOVED of another host. */
void worker_save(struct worker *worker, const struct flow_entry *entry, struct flow_effects *effects);
void worker_move(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_moved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Handle SAVED and LOADED. */
void worker_saved(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
void worker_loaded(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Begins to load a saved cell. */
void worker_load(struct worker *worker, uint32_t client, struct cell *cell, struct flow_effects *effects);
/* Drops the moves that wait for a cell. The caller holds a reference to the cell. */
void cell_drop_moves(struct worker *worker, struct cell *cell);
/* Ends all suspensions when the head is lost: saved shards, and shards about to move, stay here in memory. */
void worker_suspensions_lost(struct worker *worker, struct flow_effects *effects);
/* Drops the moves of a client. */
void worker_moves_drop(struct worker *worker, const struct worker_client *client);
/* Ends all transfers without their answers, when the worker is freed. */
void worker_transfers_drop(struct worker *worker);
/* Adds a SCRAP for each saved form that is no longer needed. */
void worker_scrap(struct worker *worker, struct flow_effects *effects);

/* worker_window.c */
/* Queues a saved cell to be loaded when the window has space. */
void window_await_load(struct worker *worker, uint32_t client, struct cell *cell);
/* Counts a load of `bytes` as complete. */
void window_loaded(struct worker *worker, uint64_t bytes);
/* Counts a shard as on its way from when it is sent until its new host confirms its arrival. */
void window_sent(struct worker *worker, const struct worker_move *move, uint64_t load, uint64_t bytes);
void window_arrived(struct worker *worker, uint32_t host, const struct flow_entry *entry);
/* Stop counting the shards sent to a host that is lost or disconnected; all shards sent, when the head is
 * lost; and those without a confirmation for WORKER_SENT_NS. */
void window_host_lost(struct worker *worker, uint32_t host);
void window_head_lost(struct worker *worker);
void window_tick(struct worker *worker);
/* Removes the queued loads of a client (NULL: of all clients), and drops the moves of their cells. */
void window_drop_loads(struct worker *worker, const struct worker_client *client);
/* Begins the queued loads for which the window has space. Called at the end of each step. */
void window_go(struct worker *worker, struct flow_effects *effects);

/* worker.c */
/* Returns NULL if the client is unknown. */
struct worker_client *worker_client(struct worker *worker, uint32_t id);
struct worker_client *worker_client_new(struct worker *worker, uint32_t id);
/* Returns whether the head's CLIENT for an unknown client may still arrive: the client has not ended. */
bool worker_client_may_come(const struct worker *worker, uint32_t id);
/* Frees a client that has ended and has no instances left. */
void worker_client_rest(struct worker *worker, struct worker_client *client);
/* Drops a function that is freed and not running. */
void worker_function_rest(struct worker *worker, struct worker_function *function,
                          struct flow_effects *effects);

#endif
