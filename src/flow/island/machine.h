/* machine.h - head and workers of a flow runtime as machines: START HERE for src/flow/island.
 *
 *     head_step(head, &event, &effects);       worker_step(worker, &event, &effects);
 *
 * A machine does no I/O, reads no clock, starts no thread: it changes its state and says what is to be done.
 * host/ runs them in processes; tests/flow/island runs the same code in a world that breaks.
 *
 * Story of a launch. The client names the results itself and sends one LAUNCH to the head. The head checks
 * the arguments, queues it, and, once every device of the gang can reserve the program's peak memory, stamps
 * it with the island's next ticket and sends one LAUNCH to each host of the gang. Where memory is short,
 * values that no launch under way uses, the least recently used first, leave it for host memory. Each worker
 * makes an instance of its plan: arguments are the cells of objects, results become cells of new objects.
 * Devices run their RUN steps strictly in the order of arrival, which is the order of tickets, so two gangs
 * never wait for each other. Each host says DONE, once for several launches where they end together. Values
 * go between worker and client directly.
 *
 * Files.
 *     entry.h, entry.c       the messages
 *     head.c                 hosts, clients, requests          head.h: the state of the head
 *     head_mesh.c            virtual devices on physical ones
 *     head_launch.c          programs, the scheduler
 *     head_object.c          values, and what they weigh
 *     head_spill.c           values that leave devices for host memory, and come back
 *     head_rejoin.c          a head in the place of a lost one
 *     head_break.c           connections that broke between others
 *     head_suspend.c         clients that leave their devices for a while
 *     head_watch.c           watchers: accounts, traces          status.h, trace.h: what they get
 *     head_status.c          rows of the status                  status.c: as bytes
 *     worker.c               hellos, functions, messages       worker.h: the state of a worker
 *     worker_launch.c        instances of plans
 *     worker_store.c         objects and their cells
 *     worker_watch.c         what a worker counts and records
 *     worker_suspend.c       shards on disk, and on their way to other hosts
 *     worker_window.c        how many of them are in memory at a time
 *
 * Invariants.
 *   - Tickets of an island are stamped without a gap, and never wait for memory or for a value that a client
 *     has yet to put.
 *   - A cell settles once: with a tensor or with a fault. What waits for it goes on either way.
 *   - A launch that has been stamped ends on every host of its gang, or the host is lost.
 *   - A value is in the memory of devices or spilled to that of its hosts, all of its shards alike. Launches
 *     under way have theirs on devices: the head says FILL before LAUNCH, and no SPILL before DONE.
 *   - A launch ends with its head. What workers send each other for a launch names the head that has stamped
 *     it; a worker that has another head by then drops it, because no launch will ever claim it.
 *   - A handle belongs to one client; no other can name it.
 *
 * Peers. A machine names whom it talks to by a number: for the head that of the connection; for a worker
 * PEER_HEAD, peer_host(h), peer_client(c), or peer_guest(n) for a connection that has not said who it is.
 */
#ifndef PHX_FLOW_ISLAND_MACHINE_H
#define PHX_FLOW_ISLAND_MACHINE_H

#include "base/vec.h"
#include "flow/exec/executor.h"
#include "flow/island/entry.h"
#include "flow/island/status.h"

#define PEER_HEAD UINT64_C(0)
static inline uint64_t peer_host(uint32_t host)
{
    return UINT64_C(1) << 32 | host;
}
static inline uint64_t peer_client(uint32_t client)
{
    return UINT64_C(2) << 32 | client;
}
static inline uint64_t peer_guest(uint32_t number)
{
    return UINT64_C(3) << 32 | number;
}

/* Names a run of a launch. */
struct run_id {
    uint32_t client;
    uint64_t launch;
    uint32_t step; /* of the plan */
    uint32_t node; /* of the program */
    uint32_t partition;
    uint64_t head; /* the secret of the head that has stamped the launch */
};

enum flow_event_kind {
    FLOW_OPENED,   /* a connection; `token` is random */
    FLOW_ENTRY,    /* a message from `peer`; the tail is the caller's */
    FLOW_CLOSED,   /* no more from `peer` */
    FLOW_TICK,     /* time has passed */
    FLOW_COMPILED, /* worker: of `client`'s function `handle`: executable, or fault */
    FLOW_RAN,      /* worker: `device` has finished `run`: results (references are handed over), or fault */
    FLOW_SAVED,    /* worker: of SAVE `handle`: what LOAD takes, in `executable`; or fault */
    FLOW_LOADED,   /* worker: of LOAD `handle`: results[0] (the reference is handed over), or fault */
};
struct flow_event {
    enum flow_event_kind kind;
    uint64_t peer;
    int64_t now_ns;
    uint64_t token;
    const struct flow_entry *entry;
    struct str tail;
    /* COMPILED */
    uint32_t client;
    uint64_t handle;
    void *executable;
    bool reused; /* it was there already, compiled for the same text */
    /* RAN */
    uint32_t device;
    struct run_id run;
    struct tensor **results;
    uint32_t result_count;
    int64_t device_ns;
    const struct fault *fault;
};

enum flow_effect_kind {
    FLOW_SEND,    /* entry and tail to `peer` */
    FLOW_CLOSE,   /* end the connection */
    FLOW_BIND,    /* worker: the guest `peer` is `as` from now on */
    FLOW_MEET,    /* worker: host `as` is at the address in tail, and at place `handle` of its machine (0:
                   * unknown); connect when there is something to send */
    FLOW_COMPILE, /* worker: the tail (name NUL text) for client's function `handle`; answer COMPILED */
    FLOW_DROP,    /* worker: release `executable` */
    FLOW_RUN,     /* worker: run on `device`; answer RAN. `args`: references, `hosts`: of the gang */
    FLOW_ABORT,   /* worker: collectives of `run` (its step and partition do not count) fail with `fault` */
    FLOW_FORGET,  /* worker: nothing of launch `run` is under way here any more */
    FLOW_SAVE,    /* worker: write `payload` outside memory; answer SAVED `handle` */
    FLOW_LOAD,    /* worker: read what SAVED has given as `executable`; answer LOADED `handle` */
    FLOW_SCRAP,   /* worker: release what SAVED has given as `executable` */
    FLOW_EVICT,   /* worker: no device holds `payload` from now on, host memory does; before what follows */
};
struct flow_effect {
    enum flow_effect_kind kind;
    uint64_t peer, as;
    struct flow_entry entry;
    struct buf tail;        /* owned */
    struct tensor *payload; /* SEND: bytes behind the tail, a reference; NULL: none */
    uint32_t client;
    uint64_t handle;
    void *executable;
    uint32_t device;
    struct run_id run;
    struct tensor **args; /* owned, with references */
    uint32_t arg_count, gang_count;
    uint32_t *gang_hosts; /* owned */
    struct fault fault;
};
struct flow_effects {
    VEC(struct flow_effect) list;
};
/* Frees what the effects own, and empties the list: after they have been carried out. */
void flow_effects_clear(struct flow_effects *effects);
void flow_effects_done(struct flow_effects *effects);
/* Adds a SEND with an empty tail; the pointer is valid until the next effect is added. */
struct flow_effect *flow_send(struct flow_effects *effects, uint64_t peer, const struct flow_entry *entry);
struct flow_effect *flow_add(struct flow_effects *effects, enum flow_effect_kind kind);

struct head;
struct head_options {
    uint32_t window;        /* launches of an island under way at once; 0: 64 */
    int64_t memory_wait_ns; /* how long a launch waits for memory; 0: 10 s */
    uint64_t secret;        /* random, not 0: by it workers know one another */
    int64_t rejoin_ns;      /* how long those whom a head before has known may take to come; 0: 10 s */
    uint32_t first_client;  /* numbers of new clients begin behind it */
    int64_t day_ns;         /* from the clock of its events to that of the day, for traces */
};
struct head *head_new(const struct head_options *options);
void head_free(struct head *head);
void head_step(struct head *head, const struct flow_event *event, struct flow_effects *effects);
/* Numbers for tests and for people. */
struct head_counts {
    uint64_t hosts, clients, suspended, meshes, programs, objects, running, tickets;
    uint64_t queued, loads; /* launches of clients that run; virtual devices on physical ones */
    int64_t used_bytes;
    int64_t spilled_bytes;  /* on hosts now */
    int64_t idle_bytes;     /* of used_bytes: of values that no launch under way takes */
    uint64_t spills, fills; /* of values, since the head began */
};
struct head_counts head_count(const struct head *head);
/* Whether the value is in host memory, and known to be whole; for tests. */
bool head_has_spilled(const struct head *head, uint64_t handle);
/* Fills an empty status (status.h), which the caller frees with flow_status_done. */
void head_status(const struct head *head, struct flow_status *ret_status);

struct worker;
/* `devices` of `device_bytes` each, on island `island`; peers reach it at `address`. */
struct worker *worker_new(const char *island, const char *address, uint32_t devices, uint64_t device_bytes);
/* Host memory for spilled shards; before the first event. 0, as without a call: none is spilled. */
void worker_set_host_memory(struct worker *worker, uint64_t bytes);
/* How many bytes of saved shards are loaded, or on their way to other hosts, at a time: 64 MiB without a
 * call, and 256 shards at most. A larger shard goes alone. */
void worker_set_window(struct worker *worker, uint64_t bytes);
/* The worker's place on its machine (host/board.h), which other hosts hear of; before the first event. */
void worker_set_place(struct worker *worker, uint64_t place);
/* Nanoseconds from the clock of its events to that of the day, which traces of several machines share. */
void worker_set_clock(struct worker *worker, int64_t day_ns);
/* Adds to `effects` what is to be released outside. */
void worker_free(struct worker *worker, struct flow_effects *effects);
/* The first event is OPENED of PEER_HEAD. After CLOSED of it another OPENED may follow: the head that takes
 * the place of the lost one is told what is here. */
void worker_step(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Whether something of a launch that `head` has stamped may still come: the launch is not over here, and
 * neither its client nor its head has gone. */
bool worker_expects(struct worker *worker, uint32_t client, uint64_t launch, uint64_t head);
struct worker_counts {
    uint64_t clients, objects, instances, functions, programs, cells;
    uint64_t moving_bytes; /* of saved shards that are being loaded, or on their way to other hosts */
};
struct worker_counts worker_count(const struct worker *worker);
/* Whether the value is spilled here, for tests. */
bool worker_has_spilled(const struct worker *worker, uint64_t handle);

#endif
