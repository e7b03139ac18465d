/* flow.h - the dataflow client: one program over many devices, from one process.
 *
 * A client connects to the head of a flow runtime (`phalanx flow up` starts one), asks for virtual devices,
 * hands over functions (StableHLO text), groups calls of them in programs, and launches programs. The client
 * names every result itself, so no call waits for a reply; a failure comes back where a value is fetched.
 *
 *     struct phx_error error;
 *     phx_flow *flow;
 *     phx_flow_connect("unix:/run/flow.sock", NULL, &flow, &error);
 *     struct phx_flow_mesh mesh;                         // 4 virtual devices in one island
 *     phx_flow_mesh_new(flow, &(struct phx_flow_mesh_options){.rank = 1, .dims = {4}}, &mesh, &error);
 *     uint64_t square;                                   // runs on every device, on its shard
 *     phx_flow_function(flow, text, text_len, "main", &square, &error);
 *     phx_flow_program *program = phx_flow_program_new(flow);
 *     uint32_t x = phx_flow_program_arg(program, &type, &sharding);
 *     uint32_t y[1]; // and its sharding
 *     phx_flow_program_call(program, square, mesh.id, &x, 1, &sharding, y, 1, &error);
 *     phx_flow_program_result(program, y[0]);
 *     phx_flow_program_finish(program, &error);
 *     uint64_t in = phx_flow_put(flow, &type, &sharding, data, sizeof data, &error), out;
 *     phx_flow_launch(flow, program, &in, 1, &out, 1, &error);
 *     phx_flow_get(flow, out, result, sizeof result, -1, &failure, &error);
 *     phx_flow_release(flow, out);
 *
 * Results. Functions that can fail return 0 or a negative enum phx_code (phalanx.h) and describe it in
 * *error, which may be NULL. Handles are never 0; 0 stands for a failure where a handle is returned.
 *
 * Ownership. Arguments are copied before a function returns. A handle is a reference to a sharded value;
 * phx_flow_release gives it back. A program may be launched any number of times.
 *
 * Threads. Any thread may call any function of a connection at any time. A connection has one thread of its
 * own for replies; it blocks all signals.
 */
#ifndef PHALANX_FLOW_H
#define PHALANX_FLOW_H

#include "phalanx/phalanx.h"

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

enum { PHX_FLOW_RANK_MAX = 16, PHX_FLOW_MESH_RANK_MAX = 3 };

typedef struct phx_flow phx_flow;
typedef struct phx_flow_program phx_flow_program;

enum phx_flow_element {
    PHX_FLOW_BOOL,
    PHX_FLOW_INT8,
    PHX_FLOW_INT16,
    PHX_FLOW_INT32,
    PHX_FLOW_INT64,
    PHX_FLOW_UINT8,
    PHX_FLOW_UINT16,
    PHX_FLOW_UINT32,
    PHX_FLOW_UINT64,
    PHX_FLOW_BFLOAT16,
    PHX_FLOW_FLOAT16,
    PHX_FLOW_FLOAT32,
    PHX_FLOW_FLOAT64,
    PHX_FLOW_COMPLEX64,
    PHX_FLOW_COMPLEX128,
};

/* A value's type: row-major, host byte order. */
struct phx_flow_type {
    enum phx_flow_element element;
    int32_t rank;
    int64_t dims[PHX_FLOW_RANK_MAX];
};

/* How a value lies on a mesh: bit a of axes[d] says that mesh axis a divides dimension d (several axes: the
 * lowest is the outermost). The value is replicated over axes that divide nothing. Dimensions must divide
 * evenly. An axis divides at most one dimension. */
struct phx_flow_sharding {
    uint32_t mesh;
    uint8_t axes[PHX_FLOW_RANK_MAX];
};

struct phx_flow_options {
    const char *name; /* of the client, for accounts; NULL: the program's */
    uint32_t weight;  /* share of the devices under contention; 0: 1 */
    int32_t priority; /* higher goes first */
    /* How long a head that is gone is sought. Calls that need a head wait meanwhile, and fail with
     * PHX_ERROR_IO afterwards. 0: 30 s. */
    uint32_t head_grace_ms;
    /* Lineage: launches that may go again, of themselves, to make one lost value; at most 4096. 0: none, and
     * a value that is lost with a device or a head fails. */
    uint32_t rerun_launches;
    /* Memory of this process for values that were put or checkpointed, from which lineage begins; what was
     * put beyond it cannot be made again. 0: 256 MiB. */
    uint64_t rerun_bytes;
};

/* Connects to a head: "unix:PATH" or "HOST:PORT". The head's token is taken from the file "token" beside the
 * socket, from the variable PHX_FLOW_TOKEN, or from the file that PHX_FLOW_TOKEN_FILE names. PHX_ERROR_IO
 * when no head answers; PHX_ERROR_INVALID when it refuses the token, or the token cannot be read. */
int phx_flow_connect(const char *address, const struct phx_flow_options *options, phx_flow **ret_flow,
                     struct phx_error *error);
/* Ends the connection: its values and programs are freed on the devices. NULL allowed. */
void phx_flow_close(phx_flow *flow);

/* An island that the head manages. */
struct phx_flow_island {
    uint32_t id, hosts, devices, free_devices;
    char name[64];
};
/* Fills up to `max` islands; *ret_count is how many there are. */
int phx_flow_islands(phx_flow *flow, struct phx_flow_island *islands, uint32_t max, uint32_t *ret_count,
                     struct phx_error *error);

struct phx_flow_mesh_options {
    int32_t rank; /* 1 to PHX_FLOW_MESH_RANK_MAX */
    uint32_t dims[PHX_FLOW_MESH_RANK_MAX];
    const char *island; /* NULL: the least loaded one that is large enough */
};
struct phx_flow_mesh {
    uint32_t id;
    int32_t rank;
    uint32_t dims[PHX_FLOW_MESH_RANK_MAX];
    char island[64];
};
/* Virtual devices inside one island, balanced over its physical ones. The head may map them to others later
 * (loss, suspension, migration) without the client's doing. */
int phx_flow_mesh_new(phx_flow *flow, const struct phx_flow_mesh_options *options,
                      struct phx_flow_mesh *ret_mesh, struct phx_error *error);
/* A part of a mesh: `start` and `dims` per axis. It shares the devices of `mesh`. */
int phx_flow_mesh_slice(phx_flow *flow, uint32_t mesh, const uint32_t *start, const uint32_t *dims,
                        struct phx_flow_mesh *ret_mesh, struct phx_error *error);
void phx_flow_mesh_free(phx_flow *flow, uint32_t mesh);

/* Registers function `name` of a StableHLO module; workers compile it in the background. The function takes
 * and gives shards (one call runs on every device of a mesh); partition_id tells it which. PHX_ERROR_INVALID
 * with line and column. An operation that no executor can run is named, with its place, by the failure of the
 * first launch. In place of StableHLO, `text` may declare functions of a shared object (flow_user.h). */
int phx_flow_function(phx_flow *flow, const char *text, size_t len, const char *name, uint64_t *ret_function,
                      struct phx_error *error);

/* A program is built node by node; the numbers returned name values of the program. A failure is kept and
 * reported by phx_flow_program_finish. */
phx_flow_program *phx_flow_program_new(phx_flow *flow);
uint32_t phx_flow_program_arg(phx_flow_program *program, const struct phx_flow_type *type,
                              const struct phx_flow_sharding *sharding);
/* Calls `function` on every device of `mesh`. Arguments must lie on that mesh. `result_shardings` says how
 * the results lie; one for each result. */
int phx_flow_program_call(phx_flow_program *program, uint64_t function, uint32_t mesh, const uint32_t *args,
                          uint32_t arg_count, const struct phx_flow_sharding *result_shardings,
                          uint32_t *ret_results, uint32_t result_count, struct phx_error *error);
/* The same value on another mesh or in another sharding. */
uint32_t phx_flow_program_reshard(phx_flow_program *program, uint32_t value,
                                  const struct phx_flow_sharding *sharding);
void phx_flow_program_result(phx_flow_program *program, uint32_t value);
/* Verifies the program and hands it to the head; no node can be added afterwards. */
int phx_flow_program_finish(phx_flow_program *program, struct phx_error *error);
void phx_flow_program_free(phx_flow_program *program); /* launches under way go on */

/* A value from the client's memory: `len` bytes of the whole (unsharded) value. 0 with *error on failure. */
uint64_t phx_flow_put(phx_flow *flow, const struct phx_flow_type *type,
                      const struct phx_flow_sharding *sharding, const void *data, size_t len,
                      struct phx_error *error);

/* Launches a program; returns at once with handles of the results. Blocks only while the window of launches
 * under way is full. */
int phx_flow_launch(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                    uint64_t *ret_results, uint32_t result_count, struct phx_error *error);

enum phx_flow_reason {
    PHX_FLOW_FAILED_NOT,      /* the value is there */
    PHX_FLOW_DEVICE_LOST,     /* a device of the gang is gone; the program may be launched again */
    PHX_FLOW_FUNCTION_FAILED, /* the function itself failed: an executor's message */
    PHX_FLOW_ARGUMENT_FAILED, /* an argument of the launch has failed; `call` is the first one that did */
    PHX_FLOW_CANCELLED,
    PHX_FLOW_OUT_OF_MEMORY,
};
struct phx_flow_failure {
    enum phx_flow_reason reason;
    uint32_t island, device, incarnation; /* UINT32_MAX: none in particular */
    uint64_t launch;                      /* number of the launch that failed first, from 1 */
    uint32_t node;                        /* the call in its program */
    char message[248];
};
/* Waits for a value and copies the whole of it (`len` must be its size). timeout_ms as in phalanx.h. On
 * failure of its computation: PHX_ERROR_PEER and *failure (NULL allowed). */
int phx_flow_get(phx_flow *flow, uint64_t value, void *data, size_t len, int64_t timeout_ms,
                 struct phx_flow_failure *failure, struct phx_error *error);
/* Waits until the value is there or has failed, without copying it. */
int phx_flow_wait(phx_flow *flow, uint64_t value, int64_t timeout_ms, struct phx_flow_failure *failure,
                  struct phx_error *error);
/* Brings the value to the client's memory, as phx_flow_get, and keeps it there until it is released: with
 * options.rerun_launches, lineage begins at it from now on, and what had made it is forgotten.
 * PHX_ERROR_INVALID: it does not fit rerun_bytes. */
int phx_flow_checkpoint(phx_flow *flow, uint64_t value, int64_t timeout_ms, struct phx_flow_failure *failure,
                        struct phx_error *error);
/* The numbers of values and launches that lineage has made again on this connection so far. */
struct phx_flow_reruns {
    uint64_t losses;   /* lost values that were waited for, or taken by a launch */
    uint64_t launches; /* that went again for them */
    uint64_t puts;     /* values that were put again */
};
void phx_flow_count_reruns(phx_flow *flow, struct phx_flow_reruns *ret_reruns);
/* Asks for the value to be brought to the client as soon as it is there, ahead of phx_flow_get. */
int phx_flow_fetch(phx_flow *flow, uint64_t value, struct phx_error *error);
/* Gives a handle back; in batches. */
void phx_flow_release(phx_flow *flow, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
