/* machine.h - the head and the workers of a flow runtime as state machines: START HERE for src/flow/island.
 *
 *     head_step(head, &event, &effects);       worker_step(worker, &event, &effects);
 *
 * A machine does no I/O, reads no clock and starts no thread: a step changes the machine's state and appends
 * the effects that its host must carry out, in their order. host/ runs the machines in processes;
 * tests/flow/island runs the same code in a world that injects failures.
 *
 * Story of a launch. The client names the results itself and sends one LAUNCH to the head. The head checks
 * the arguments and queues the launch. Once every device of the gang can reserve the program's peak memory,
 * the head stamps the launch with the island's next ticket and sends one LAUNCH to each host of the gang.
 * Where device memory is short, values that no running launch uses move to host memory, least recently used
 * first. Each worker makes an instance of its plan: arguments are the cells of objects, results become cells
 * of new objects. Devices execute their RUN steps strictly in the order of arrival, which is the order of
 * tickets, so two gangs never wait for each other. Each host sends DONE; one DONE may cover several launches.
 * Values travel between worker and client directly.
 *
 * Files.
 *     entry.h, entry.c       the messages
 *     head.c                 hosts, clients, requests          head.h: the state of the head
 *     head_mesh.c            placement of virtual devices on physical ones
 *     head_launch.c          programs, the scheduler
 *     head_object.c          values and their memory accounting
 *     head_spill.c           values that move to host memory and return
 *     head_rejoin.c          a head that replaces a lost one
 *     head_break.c           broken connections between two other parties
 *     head_suspend.c         clients that give up their devices for a while
 *     head_watch.c           watchers: accounts, traces        status.h, trace.h: the data they receive
 *     head_status.c          rows of the status                status.c: their binary form
 *     worker.c               hellos, functions, messages       worker.h: the state of a worker
 *     worker_launch.c        instances of plans
 *     worker_store.c         objects and their cells
 *     worker_watch.c         a worker's counters and trace records
 *     worker_suspend.c       shards saved to disk, and shards on their way to other hosts
 *     worker_window.c        limit on how many of these shards are in memory at a time
 *
 * Invariants.
 *   - Tickets of an island are stamped without a gap. A stamped launch waits neither for memory nor for a
 *     value that a client has yet to put.
 *   - A cell settles once, with a tensor or with a fault. Either one releases the steps that wait for it.
 *   - A launch that has been stamped ends on every host of its gang, or the host is lost.
 *   - A value is in the memory of devices or spilled to the memory of its hosts, all of its shards alike. The
 *     arguments of a running launch are on devices: the head sends FILL before LAUNCH, and no SPILL before
 *     DONE.
 *   - A launch ends with its head. Messages between workers about a launch carry the secret of the head that
 *     has stamped it. A worker that has another head by then drops them, because no launch will claim them.
 *   - A handle belongs to one client; no other client can name it.
 *
 * Peers. A machine names its peers by numbers. The head uses the number of the connection. A worker uses
 * PEER_HEAD, peer_host(h), peer_client(c), or peer_guest(n) for a connection that is not yet identified.
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

/* Names one run: the execution of a RUN step by one device during a launch. */
struct run_id {
    uint32_t client;
    uint64_t launch;
    uint32_t step; /* of the plan */
    uint32_t node; /* of the program */
    uint32_t partition;
    uint64_t head; /* the secret of the head that has stamped the launch */
};

enum flow_event_kind {
    FLOW_OPENED,   /* `peer` has connected; head: `token` is random and not 0 */
    FLOW_ENTRY,    /* a message from `peer`; entry and tail stay the caller's */
    FLOW_CLOSED,   /* the connection of `peer` has ended */
    FLOW_TICK,     /* time has passed */
    FLOW_COMPILED, /* worker: answers COMPILE of order `handle`: executable, or fault */
    FLOW_RAN,      /* worker: `device` ended `run`: results (references pass to the worker), or fault */
    FLOW_SAVED,    /* worker: answers SAVE `handle`: `executable` is the saved form for LOAD; or fault */
    FLOW_LOADED,   /* worker: answers LOAD `handle`: results[0] (reference passes to the worker), or fault */
};
struct flow_event {
    enum flow_event_kind kind;
    uint64_t peer;
    int64_t now_ns;
    uint64_t token;
    const struct flow_entry *entry;
    struct str tail;
    /* COMPILED */
    uint64_t handle;
    void *executable;
    bool reused; /* the executable had been compiled before, for the same text */
    /* RAN */
    uint32_t device;
    struct run_id run;
    struct tensor **results;
    uint32_t result_count;
    int64_t device_ns;
    const struct fault *fault;
};

/* A host carries effects out in their order. */
enum flow_effect_kind {
    FLOW_SEND,    /* send entry, tail and payload to `peer` */
    FLOW_CLOSE,   /* end the connection of `peer` */
    FLOW_BIND,    /* worker: the guest `peer` is `as` from now on */
    FLOW_MEET,    /* worker: host `as` has the address in tail, and place `handle` on its machine (0: none);
                   * connect when there is something to send, and send `entry` first */
    FLOW_COMPILE, /* worker: compile tail (name NUL text) as client's function `handle`; answer COMPILED with
                   * the number `as` of this order */
    FLOW_DROP,    /* worker: release `executable` */
    FLOW_RUN,     /* worker: run `executable` on `device` with `args`, in a gang; answer RAN */
    FLOW_ABORT,   /* worker: fail the collectives of `run`, whatever its step and partition, with `fault` */
    FLOW_FORGET,  /* worker: launch `run` is over here; release its data */
    FLOW_SAVE,    /* worker: write `payload` outside memory; answer SAVED `handle` */
    FLOW_LOAD,    /* worker: read back the saved form `executable` from SAVED; answer LOADED `handle` */
    FLOW_SCRAP,   /* worker: release the saved form `executable` from SAVED */
    FLOW_EVICT,   /* worker: move `payload` from device to host memory before the next effect */
};
struct flow_effect {
    enum flow_effect_kind kind;
    uint64_t peer, as;
    struct flow_entry entry;
    struct buf tail;        /* owned */
    struct tensor *payload; /* SEND: bytes sent after the tail; the effect owns a reference; NULL: none */
    uint32_t client;
    uint64_t handle;
    void *executable;
    uint32_t device;
    struct run_id run;
    struct tensor **args; /* owned, with one reference to each tensor */
    uint32_t arg_count, gang_count;
    uint32_t *gang_hosts; /* owned: the host of each member of the gang */
    struct fault fault;
};
struct flow_effects {
    VEC(struct flow_effect) list;
};
/* Frees the contents of the effects and empties the list. Called after the effects have been carried out. */
void flow_effects_clear(struct flow_effects *effects);
/* Clears the effects and frees the list. */
void flow_effects_done(struct flow_effects *effects);
/* Appends a SEND with an empty tail. The returned pointer is valid until the next effect is added. */
struct flow_effect *flow_send(struct flow_effects *effects, uint64_t peer, const struct flow_entry *entry);
/* Appends an effect whose other fields are 0. The returned pointer is valid until the next effect is
 * added. */
struct flow_effect *flow_add(struct flow_effects *effects, enum flow_effect_kind kind);

struct head;
struct head_options {
    uint32_t window;        /* running launches of one island at most; 0: 64 */
    int64_t memory_wait_ns; /* how long a launch waits for memory before it fails; 0: 10 s */
    uint64_t secret;        /* random, not 0: workers of this head recognise each other by it */
    /* How long the workers and clients of a lost head may take to reconnect; 0: 10 s. */
    int64_t rejoin_ns;
    uint32_t first_client; /* new clients get the numbers above this one */
    int64_t day_ns;        /* offset from the clock of the events to the time of day, for traces */
};
/* Copies the options. The caller frees the head with head_free. */
struct head *head_new(const struct head_options *options);
/* Frees the head, and sends nothing. NULL is allowed. */
void head_free(struct head *head);
/* Applies one event, and appends the resulting effects. Only OPENED, ENTRY, CLOSED and TICK reach a head. */
void head_step(struct head *head, const struct flow_event *event, struct flow_effects *effects);
/* Counts for tests and diagnostics. */
struct head_counts {
    uint64_t hosts, clients, suspended, meshes, programs, objects, running, tickets;
    uint64_t queued, loads; /* queued launches of clients not suspended; virtual devices on physical ones */
    int64_t used_bytes;
    int64_t spilled_bytes;  /* currently in the memory of hosts */
    int64_t idle_bytes;     /* the part of used_bytes in values that no running launch takes */
    uint64_t spills, fills; /* of values, since the head began */
};
struct head_counts head_count(const struct head *head);
/* Returns whether the value is charged to host memory. For tests. */
bool head_has_spilled(const struct head *head, uint64_t handle);
/* Fills an empty status (status.h), which the caller frees with flow_status_done. */
void head_status(const struct head *head, struct flow_status *ret_status);

struct worker;
/* Makes a worker with `devices` devices of `device_bytes` each on `island`; peers reach it at `address`.
 * Copies the texts. The caller frees the worker with worker_free. */
struct worker *worker_new(const char *island, const char *address, uint32_t devices, uint64_t device_bytes);
/* Sets the host memory for spilled shards; called before the first event. With 0, the default, no shard is
 * spilled. */
void worker_set_host_memory(struct worker *worker, uint64_t bytes);
/* Limits the bytes of saved shards that are being loaded, or are on their way to other hosts, at a time. The
 * default is 64 MiB; at most 256 shards move at a time. A larger shard moves alone. */
void worker_set_window(struct worker *worker, uint64_t bytes);
/* Sets the worker's place on its machine (host/board.h), which the head passes to other hosts; called before
 * the first event. */
void worker_set_place(struct worker *worker, uint64_t place);
/* Sets the offset in nanoseconds from the clock of the events to the time of day, on which traces of several
 * machines agree. */
void worker_set_clock(struct worker *worker, int64_t day_ns);
/* Frees the worker. Appends DROP and SCRAP effects for the executables and saved tensors that it held. */
void worker_free(struct worker *worker, struct flow_effects *effects);
/* Applies one event, and appends the resulting effects. The first event is OPENED of PEER_HEAD. After CLOSED
 * of PEER_HEAD, another OPENED may follow: the worker then reports its clients and shards to the new head. */
void worker_step(struct worker *worker, const struct flow_event *event, struct flow_effects *effects);
/* Returns whether messages about a launch that `head` has stamped may still arrive: the launch is not over
 * here, and neither its client nor its head is gone. */
bool worker_expects(struct worker *worker, uint32_t client, uint64_t launch, uint64_t head);
struct worker_counts {
    uint64_t clients, objects, instances, functions, programs, cells;
    uint64_t moving_bytes; /* of saved shards that are being loaded, or on their way to other hosts */
};
struct worker_counts worker_count(const struct worker *worker);
/* Returns whether the value is spilled here. For tests. */
bool worker_has_spilled(const struct worker *worker, uint64_t handle);

#endif
