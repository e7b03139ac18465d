/* entry.h - the messages between head, workers and clients.
 *
 * Every message is one entry: a record of 64 bytes, followed by a tail of `tail_bytes` bytes whose form
 * depends on the kind. Entries travel in frames (wire/wire.h). A launch is one entry for each host, usually
 * without a tail. Fields that a kind does not name are 0.
 *
 *     kind           from → to          fields                                             tail
 *     HELLO_WORKER   worker → head      count: devices, args[0]: bytes of one device,      island NUL address
 *                                       handle: place in its machine's memory or 0,
                                       launch: bytes of host memory for spilled shards
 *     HELLO_CLIENT   client → head      count: weight, node: priority + 2^31               name
 *     HELLO_PEER     any → worker       client or node (host), args[0]: token
 *     WELCOME        head → both        client or node (host), args[0]: token; FAILED: the
 *                                       HELLO has a wrong token; FAILED and DOWN: the head
 *                                       refuses this worker, which counts as lost
 *     HOST           head → both        node: host, count: devices, epoch: incarnation,    address
 *                                       args[0]: its first device, args[1]: its birth,
 *                                       handle: its place, program: island, flags
 *     HOST           both → head        node: host; DOWN: the connection to it has broken
 *     CLIENT         head → worker      client, args[0]: token; DOWN: the client has ended;
 *                                       launch: launches up to this number are over
 *     ISLANDS        client ⇄ head      launch: request                                    flow_island_row...
 *     MESH_NEW       client → head      launch: request, count: rank, tail: dims           u32[rank] name
 *     MESH_SLICE     client → head      launch: request, node: mesh, count: rank           u32[2 * rank]
 *     MESH           head → client      launch: request or 0, node: mesh, count: rank,     u32 dims[rank],
 *                                       epoch, program: island; FAILED: tail is a fault;   {u32 host, device}
 *                                       KEPT: the values on the mesh have moved with it
 *     MESH_FREE      client → head      node: mesh
 *     FUNCTION       client → worker *  client, handle: function                           name NUL text
 *     PROGRAM        client → head      program                                            program.h
 *     PROGRAM_FREE   client → worker *  program
 *     PLAN           head → worker      client, program, epoch                             lower.h
 *     LAUNCH         client → worker *  client, program, epoch, launch, ticket, handle: first result,
 *                                       count: arguments, node: results, args, ENDS_0,
 *                                       ENDS_1: releases args[0], args[1] as well        more than 2: u64[]
 *     PROGRESS       head → client      launch: number of launches that are over
 *     DONE           worker → head      client, launch, count: launches up to this one,
 *                                       or 0 for 1; args[0]: their device time in ns
 *     LOST           head → worker      client, launch                                     fault
 *     FAILED         head → client      launch, handle: first result, count: results       fault
 *     VALUE          client → head      handle: a value that will be put, node: mesh       type, axes
 *     PUT            client → worker    handle, node: shard                                type, bytes
 *     PUT_DONE       worker → head      handle, node: shard; count: 1: it is spilled
 *     FETCH          client → worker    handle, node: shard, epoch: any number
 *     SHARD          worker → client    handle, node: shard, epoch: of the FETCH;          bytes
 *                                       FAILED: tail is a fault
 *     RELEASE        client → worker *                                                     u64 handles[]
 *     SPILL          head → worker      values move from devices to host memory            u64 handles[]
 *     FILL           head → worker      spilled values return to devices                   u64 handles[]
 *     DATA           worker → worker +  client, launch, node: tag; FAILED: a fault         bytes
 *     GATHER         worker → worker +  client, launch, node, handle: key, args: round     parts
 *     SKIP           worker → worker +  client, launch, node: will not take part           fault
 *     LOAD           worker → head      count: devices; about once a second                u64[LOAD_NUMBERS],
 *                                                                                          {u64 busy ns,
 *                                                                                          queued}
 *     HELLO_WATCH    watcher → head                                                        name
 *     STATUS         watcher ⇄ head                                                        status.h
 *     NAME           head → watcher     client, handle: function, or 0: the client         name
 *     TRACE          watcher → head     count: 1 begins, 0 ends
 *     TRACE          head → worker      count: 1 records, 0 does not; epoch of this order
 *     TRACE          both → watcher *   node: host, or UINT32_MAX: the head; epoch of the  trace.h
 *                                       last order received; args[0]: ns from the sender's
 *                                       clock to the time of day; DOWN: end of the trace
 *     SUSPEND        watcher → head     args[0]: time limit in ns                          name of a tenant
 *     RESUME         watcher → head                                                        name of a tenant
 *     SUSPEND,       head → watcher     count: clients, args[0]: bytes saved; FAILED
 *     RESUME                                                                               fault
 *     SUSPEND        head ⇄ client      epoch: number of the suspension; the client's
 *                                       answer: no more values will be put
 *     RESUME         head → client      values may be put again
 *     SAVE           head → worker      client, epoch: number of the suspension
 *     SAVE           worker → head      client, epoch, args[0]: bytes; FAILED              fault
 *     MOVE           head → worker      client: load saved shards and send them to these   {u64 handle, u32
 *                                       hosts; no tail: keep all here, without PUT_DONE    shard, to host}
 *     MOVED          worker → worker +  handle, node: shard; FAILED: a fault               type, bytes
 *     MOVED          worker → worker +  QUIET: handle, node: the shard has arrived
 *     * by way of the head
 *     + ticket: the secret of the head that has stamped the launch, or ordered the move
 *
 * Workers and clients report their state to a head that replaces a lost one (ENTRY_IS_KEPT):
 *     HELLO_WORKER   worker → head      node, epoch: incarnation, args[1]: birth           as above
 *     CLIENT         worker → head      client, args[0]: token; client 0: end of the report
 *     PUT_DONE       worker → head      one for every shard that the worker holds
 *     HELLO_CLIENT   client → head      client, epoch, args[0]: token                      name
 *     MESH           client → head      node: mesh, count: rank, handle: parent or 0;      u32 dims[rank],
 *                                       of a slice the tail ends with u32 start[rank]      places, island
 *     VALUE          client → head      handle, node: mesh, launch                         type, axes, places
 *     PROGRESS       client → head      launch, handle: last numbers used; end of the report
 * A place is u32 host, u32 device, u64 birth of the host's worker. WELCOME and HOST carry the birth in
 * args[1].
 *
 * A handle is client << HANDLE_CLIENT_SHIFT | number; HANDLE_PUT marks values that a client puts.
 */
#ifndef PHX_FLOW_ISLAND_ENTRY_H
#define PHX_FLOW_ISLAND_ENTRY_H

#include "base/error.h"
#include "base/str.h"
#include "flow/ir/pack.h"

enum entry_kind {
    ENTRY_NONE,
    ENTRY_HELLO_WORKER,
    ENTRY_HELLO_CLIENT,
    ENTRY_HELLO_PEER,
    ENTRY_WELCOME,
    ENTRY_HOST,
    ENTRY_CLIENT,
    ENTRY_ISLANDS,
    ENTRY_MESH_NEW,
    ENTRY_MESH_SLICE,
    ENTRY_MESH,
    ENTRY_MESH_FREE,
    ENTRY_FUNCTION,
    ENTRY_PROGRAM,
    ENTRY_PROGRAM_FREE,
    ENTRY_PLAN,
    ENTRY_LAUNCH,
    ENTRY_PROGRESS,
    ENTRY_DONE,
    ENTRY_LOST,
    ENTRY_FAILED,
    ENTRY_VALUE,
    ENTRY_PUT,
    ENTRY_PUT_DONE,
    ENTRY_FETCH,
    ENTRY_SHARD,
    ENTRY_RELEASE,
    ENTRY_DATA,
    ENTRY_GATHER,
    ENTRY_SKIP,
    ENTRY_LOAD,
    ENTRY_HELLO_WATCH,
    ENTRY_STATUS,
    ENTRY_NAME,
    ENTRY_TRACE,
    ENTRY_SUSPEND,
    ENTRY_RESUME,
    ENTRY_SAVE,
    ENTRY_MOVE,
    ENTRY_MOVED,
    ENTRY_SPILL,
    ENTRY_FILL,
    ENTRY_KINDS,
};

enum entry_flags {
    ENTRY_IS_FAILED = 1,  /* the tail is a fault */
    ENTRY_IS_DOWN = 2,    /* the host or client named is lost */
    ENTRY_IS_RANGE = 4,   /* LAUNCH: the arguments are args[0], args[0] + 1, ... */
    ENTRY_IS_QUIET = 8,   /* FETCH: report only that the shard exists; SHARD: without its bytes */
    ENTRY_IS_KEPT = 16,   /* state from before the head was lost */
    ENTRY_HAS_TOKEN = 32, /* HELLO to a head: the tail ends with a token (wire/token.h) */
    ENTRY_ENDS_0 = 64,    /* LAUNCH, set by the head: release args[0] once it is bound */
    ENTRY_ENDS_1 = 128,   /* LAUNCH, set by the head: release args[1] once it is bound */
};

struct flow_entry {
    uint8_t kind, flags;
    uint16_t count;
    uint32_t tail_bytes;
    uint32_t client, program;
    uint32_t epoch, node;
    uint64_t launch, ticket, handle;
    uint64_t args[2];
};
_Static_assert(sizeof(struct flow_entry) == 64, "an entry is one record of 64 bytes");

enum {
    ENTRY_TAIL_MAX = 0x7fffffff,
    ENTRY_ARGS_MAX = 65535,
    ENTRY_ARGS_INLINE = 2,
    HANDLE_CLIENT_SHIFT = 40,
    ENTRY_CLIENTS_MAX = (1 << 24) - 1,
    /* The numbers of LOAD; enum worker_load in worker.h names them. */
    LOAD_NUMBERS = 10,
};
#define HANDLE_PUT    (UINT64_C(1) << (HANDLE_CLIENT_SHIFT - 1))
#define HANDLE_NUMBER (HANDLE_PUT - 1)

/* Returns the number of the client that owns the handle. */
static inline uint32_t handle_client(uint64_t handle)
{
    return (uint32_t)(handle >> HANDLE_CLIENT_SHIFT);
}

/* A row of the answer to ISLANDS. */
struct flow_island_row {
    uint32_t id, hosts, devices, free_devices;
    char name[64];
};

/* The reasons of phalanx/flow.h, in its order. */
enum fault_reason {
    FAULT_NONE,
    FAULT_DEVICE_LOST,
    FAULT_FUNCTION_FAILED,
    FAULT_ARGUMENT_FAILED,
    FAULT_CANCELLED,
    FAULT_OUT_OF_MEMORY,
    FAULT_REASONS,
};
enum { FAULT_TEXT_MAX = 248 };

/* Why a value does not exist. */
struct fault {
    enum fault_reason reason;
    uint32_t island, device, incarnation; /* UINT32_MAX: none in particular */
    uint64_t launch;                      /* the launch that failed first */
    uint32_t node;                        /* the call in its program */
    bool lost; /* the root cause is the loss of a device, connection or head: a retry may succeed */
    char text[FAULT_TEXT_MAX];
};
/* Makes a fault of no device in particular. `lost` is set for FAULT_DEVICE_LOST only. Longer texts are
 * cut. */
struct fault fault_make(enum fault_reason reason, uint64_t launch, uint32_t node, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Appends the fault to `out` as the tail of an entry. */
void fault_encode(const struct fault *fault, struct buf *out);
/* Reads a fault. Returns false if the bytes are not a fault; *ret is then a fault that reports this. */
bool fault_decode(struct str bytes, struct fault *ret);

/* Returns whether kind, tail length and counts are within bounds, for an entry from any sender. */
bool entry_valid(const struct flow_entry *entry);
/* Merges `next` into `done`, which then covers the launches of both. Returns false, and changes nothing,
 * unless both are DONE of the same client and the launches of `next` directly follow those of `done`. */
bool entry_join(struct flow_entry *done, const struct flow_entry *next);
/* Returns the handle of argument i < entry->count of a LAUNCH that entry_valid has accepted. */
uint64_t entry_arg(const struct flow_entry *entry, struct str tail, uint32_t i);

#endif
