/* world.h - head, workers and clients in one process under one seed: the machines that ship, and a scheduler
 * that delays, kills and fills memory. */
#ifndef PHX_TESTS_FLOW_ISLAND_WORLD_H
#define PHX_TESTS_FLOW_ISLAND_WORLD_H

#include "base/rng.h"
#include "flow/exec/executor.h"
#include "flow/island/machine.h"
#include "flow/lower/lower.h"

enum {
    WORLD_WORKERS_MAX = 24,
    WORLD_CLIENTS_MAX = 24,
    WORLD_WATCHER = 1 + WORLD_WORKERS_MAX + WORLD_CLIENTS_MAX, /* the end that suspends clients */
    WORLD_ENDS,
    WORLD_VALUE = 24,   /* elements of every value */
    WORLD_WINDOW = 100, /* bytes of shards that move: one whole value, or several shards */
    /* Functions by handle: each adds 1 to every element. */
    WORLD_PLAIN = 1,
    WORLD_MEETS = 2, /* all members of the gang must have started */
    WORLD_FAILS = 3, /* now and then */
    WORLD_WRONG = 4, /* cannot be compiled */
};

struct world_message {
    struct flow_entry entry;
    struct buf tail;
    bool closed; /* the connection's end */
};
struct world_channel {
    VEC(struct world_message) queue;
    size_t first;
};

struct world_run {
    bool busy;
    struct run_id id;
    uint64_t function;
    uint32_t gang_count;
    struct tensor *arg;
    bool aborted;
    struct fault fault;
};
/* A collective: who has come. */
struct world_gang {
    struct run_id id;
    uint32_t come;
};
struct world_abort {
    struct run_id id;
    struct fault fault;
};
struct world_compile {
    uint64_t function, order;
};
/* A save, or a load of `saved`, that is under way. */
struct world_transfer {
    uint64_t number;
    struct tensor *tensor, *saved;
};
/* A launch that has come to a worker and is not over there. */
struct world_use {
    uint32_t client;
    uint64_t launch, args[2];
    uint32_t count;
};
struct world_worker {
    struct worker *worker;
    bool alive;
    uint32_t host, devices;
    uint64_t birth; /* given by the first head that has welcomed it */
    struct world_run runs[4];
    VEC(struct world_compile) compiles;
    VEC(struct world_abort) aborts;
    VEC(struct world_transfer) transfers;
    VEC(struct world_use) uses;
    uint32_t saved;             /* tensors outside memory */
    uint64_t bound[WORLD_ENDS]; /* by end; 0: a guest */
    bool held[WORLD_ENDS];
    uint64_t ticket;
};

struct world_mesh {
    uint32_t id;
    char island[8];
    struct flow_mesh shape;
    uint32_t hosts[16], devices[16];
    uint64_t births[16]; /* of the hosts' workers */
};
struct world_value {
    uint64_t handle;
    struct flow_sharding sharding;
    int32_t base;
    uint64_t launch;        /* 0: it was put */
    struct world_mesh mesh; /* as it was when the value was made */
    bool failed, released;
    uint32_t asked[16]; /* fetches of each shard without an answer */
    uint32_t asks;      /* number of the last asking */
};
struct world_program {
    uint32_t id, args, results;
    struct flow_sharding arg[2], result[2];
    uint32_t from[2];
    int32_t adds[2];
    struct buf text; /* for another head */
};
struct world_client {
    bool alive, welcome, suspended;
    uint32_t id, epoch;
    uint64_t token, launched, finished, values_made, puts_made;
    uint64_t births[WORLD_WORKERS_MAX * 2]; /* of each host that the head has told of */
    VEC(struct world_mesh) meshes;
    VEC(struct world_value) values;
    VEC(struct world_program) programs;
    bool knows[WORLD_WORKERS_MAX]; /* whom it has said hello to */
};

struct world {
    struct rng rng;
    struct head *head;
    struct world_worker workers[WORLD_WORKERS_MAX];
    struct world_client clients[WORLD_CLIENTS_MAX];
    uint32_t worker_count, client_count;
    struct world_channel channels[WORLD_ENDS][WORLD_ENDS];
    uint32_t host_end[WORLD_WORKERS_MAX * 2]; /* of the worker that has the number now */
    bool connected[WORLD_ENDS];               /* to the head that lives */
    uint32_t idle;                            /* ticks in a row with nothing to do */
    VEC(struct world_gang) gangs;
    struct flow_effects effects;
    int64_t now_ns;
    uint64_t tickets[4]; /* the last one that each island has stamped */
    uint64_t device_bytes, host_bytes;
    bool kills_heads, suspends;
    bool calm;  /* nobody dies, nothing breaks, what is saved can be loaded */
    bool asked; /* the watcher waits for an answer */
    /* what was reached */
    uint64_t launches, shards, failures, kills, client_deaths, memory_failures, lost_failures;
    uint64_t head_deaths, kept, refused, breaks;
    uint64_t suspended, resumed, not_suspended, not_resumed, moved;
    uint64_t spills, fills;
    uint64_t spoiled; /* failures that no function is to blame for */
};

enum world_habits { WORLD_KILLS_HEADS = 1, WORLD_SUSPENDS = 2, WORLD_IS_CALM = 4 };
/* Memory of each device, and of each host for spilled values. */
struct world_memory {
    uint64_t device, host;
};
void world_begin(struct world *world, uint64_t seed, struct world_memory memory, int habits);
/* One random event; `hurt`: also deaths and births. False: nothing can happen any more. */
bool world_step(struct world *world, bool hurt);
void world_end(struct world *world);
void world_kill_client(struct world *world, uint32_t c);
/* Asks the head to suspend a client, or to resume it. */
void world_suspend(struct world *world, uint32_t c, bool resume);

/* world_clients.h */
void world_client_lost_head(struct world *world, uint32_t c);
void world_client_lost_worker(struct world *world, uint32_t c, uint32_t w);
void world_client_took(struct world *world, uint32_t c, const struct flow_entry *entry, struct str tail);
void world_client_act(struct world *world, uint32_t c);
void world_post(struct world *world, uint32_t from, uint32_t to, const struct flow_entry *entry,
                struct str tail);
static inline uint32_t world_worker_end(uint32_t w)
{
    return 1 + w;
}
static inline uint32_t world_client_end(uint32_t c)
{
    return 1 + WORLD_WORKERS_MAX + c;
}

#endif
