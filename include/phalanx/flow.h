/* flow.h - the dataflow client: one program over many devices, from one process.
 *
 * A client connects to the head of a flow runtime (`phalanx flow up` starts one), asks for virtual devices,
 * registers functions (StableHLO text), groups calls of them in programs, and launches programs. The client
 * names every result itself, so a launch waits for no reply. The call that fetches a value returns the
 * failure of its computation.
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
 * *error, which may be NULL. Functions that return a handle return 0 on failure; a handle is never 0.
 * PHX_ERROR_IO means that the connection to the head is lost and its grace has expired.
 *
 * Ownership. Arguments are copied before a function returns. A handle is a reference to a sharded value;
 * phx_flow_release releases it. A program may be launched any number of times, and must be freed before its
 * connection is closed.
 *
 * Threads. Any thread may call any function of a connection at any time, except that one thread at a time
 * builds a program, and that no call may run during or after phx_flow_close. A connection has a thread of its
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

/* How a value is split over a mesh. Bit a of axes[d] means that mesh axis a divides dimension d; of several
 * axes the lowest is the outermost. The value is replicated over axes that divide nothing. Dimensions must
 * divide evenly. An axis divides at most one dimension. */
struct phx_flow_sharding {
    uint32_t mesh;
    uint8_t axes[PHX_FLOW_RANK_MAX];
};

/* Zero selects the default of each field. */
struct phx_flow_options {
    const char *name; /* tenant that the use of devices is accounted to; NULL: the program's name */
    uint32_t weight;  /* share of the devices under contention, at most 65535; 0: 1 */
    int32_t priority; /* launches of a higher priority run first */
    /* How long the client tries to reach a lost head, or one in its place. Calls that need a head wait in the
     * meantime, and then fail with PHX_ERROR_IO. 0: 30 s. */
    uint32_t head_grace_ms;
    /* Lineage: how many launches the library may repeat by itself to recompute one lost value; at most 4096.
     * 0: none, and a value that is lost with a device or a head fails. */
    uint32_t rerun_launches;
    /* Memory of this process for values that were put or checkpointed, at which lineage begins. Values put
     * beyond it cannot be restored. 0: 256 MiB. */
    uint64_t rerun_bytes;
};

/* Connects to a head: "unix:PATH" or "HOST:PORT". options may be NULL. The head's token is taken from the
 * file "token" beside the socket, from the variable PHX_FLOW_TOKEN, or from the file that PHX_FLOW_TOKEN_FILE
 * names. Returns PHX_ERROR_IO if no head answers, and PHX_ERROR_INVALID if it refuses the token or the token
 * cannot be read. On success the caller owns *ret_flow and must pass it to phx_flow_close. */
int phx_flow_connect(const char *address, const struct phx_flow_options *options, phx_flow **ret_flow,
                     struct phx_error *error);
/* Ends the connection and frees it; its values and programs are freed on the devices. NULL is allowed. */
void phx_flow_close(phx_flow *flow);

/* An island that the head manages. */
struct phx_flow_island {
    uint32_t id, hosts, devices, free_devices;
    char name[64];
};
/* Fills in up to `max` islands; *ret_count is the number of all islands, and may be larger. */
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
/* Makes a mesh of virtual devices inside one island, balanced over its physical devices. The head may later
 * map them to other devices (after a loss or a suspension) without the client's involvement. */
int phx_flow_mesh_new(phx_flow *flow, const struct phx_flow_mesh_options *options,
                      struct phx_flow_mesh *ret_mesh, struct phx_error *error);
/* Makes a mesh of a part of `mesh`, whose devices it shares: dims[a] devices from start[a] on, for each axis
 * a of the mesh. Returns PHX_ERROR_INVALID if there is no such mesh. */
int phx_flow_mesh_slice(phx_flow *flow, uint32_t mesh, const uint32_t *start, const uint32_t *dims,
                        struct phx_flow_mesh *ret_mesh, struct phx_error *error);
/* Frees a mesh or a slice. Programs that use it must not be launched afterwards. */
void phx_flow_mesh_free(phx_flow *flow, uint32_t mesh);

/* Registers function `name` of a StableHLO module; workers compile it in the background. A call runs on every
 * device of a mesh, with shards as arguments and results; partition_id is the device's number in the mesh.
 * PHX_ERROR_INVALID names line and column. The first launch fails with the name and place of an operation
 * that no executor can run. In place of StableHLO, `text` may declare functions of a shared object
 * (flow_user.h). A function lives until the connection ends. */
int phx_flow_function(phx_flow *flow, const char *text, size_t len, const char *name, uint64_t *ret_function,
                      struct phx_error *error);

/* Begins a program, which is built node by node; the numbers that the functions below return name values of
 * the program. The program keeps its first failure, and phx_flow_program_finish returns it; functions that
 * return a number then return UINT32_MAX. The caller owns the program (phx_flow_program_free). */
phx_flow_program *phx_flow_program_new(phx_flow *flow);
/* Declares the next argument of the program. */
uint32_t phx_flow_program_arg(phx_flow_program *program, const struct phx_flow_type *type,
                              const struct phx_flow_sharding *sharding);
/* Calls `function` on every device of `mesh`. Arguments must be on that mesh. `result_shardings` has the
 * sharding of each result. */
int phx_flow_program_call(phx_flow_program *program, uint64_t function, uint32_t mesh, const uint32_t *args,
                          uint32_t arg_count, const struct phx_flow_sharding *result_shardings,
                          uint32_t *ret_results, uint32_t result_count, struct phx_error *error);
/* Moves a value to another mesh or another sharding. */
uint32_t phx_flow_program_reshard(phx_flow_program *program, uint32_t value,
                                  const struct phx_flow_sharding *sharding);
/* Makes a value the next result of the program. */
void phx_flow_program_result(phx_flow_program *program, uint32_t value);
/* Verifies the program and sends it to the head; no node can be added afterwards. */
int phx_flow_program_finish(phx_flow_program *program, struct phx_error *error);
/* Frees the program. Launches in progress continue. NULL is allowed. */
void phx_flow_program_free(phx_flow_program *program);

/* Sends a value to the devices: `len` bytes of the whole (unsharded) value. Waits while the client is
 * suspended or has no head. Returns a handle, or 0 with *error. */
uint64_t phx_flow_put(phx_flow *flow, const struct phx_flow_type *type,
                      const struct phx_flow_sharding *sharding, const void *data, size_t len,
                      struct phx_error *error);

/* Launches a program and returns handles of the results without waiting for them. Blocks only while 1,024
 * launches are in progress, there is no head, or lineage restores an argument. */
int phx_flow_launch(phx_flow *flow, phx_flow_program *program, const uint64_t *args, uint32_t arg_count,
                    uint64_t *ret_results, uint32_t result_count, struct phx_error *error);

enum phx_flow_reason {
    PHX_FLOW_FAILED_NOT,      /* the value has not failed */
    PHX_FLOW_DEVICE_LOST,     /* a device of the gang is lost; the program may be launched again */
    PHX_FLOW_FUNCTION_FAILED, /* the function itself failed: an executor's message */
    PHX_FLOW_ARGUMENT_FAILED, /* an argument has failed; the fields below are those of the first failure */
    PHX_FLOW_CANCELLED,       /* the program is not valid, or the head or a connection was lost */
    PHX_FLOW_OUT_OF_MEMORY,   /* the devices have no space for the value or the program */
};
struct phx_flow_failure {
    enum phx_flow_reason reason;
    uint32_t island, device, incarnation; /* UINT32_MAX: none in particular */
    uint64_t launch;                      /* number of the launch that failed first, from 1 */
    uint32_t node;                        /* the call in its program */
    char message[248];
};
/* Waits for a value and copies the whole value (`len` must be its size). timeout_ms is as in phalanx.h.
 * Returns PHX_ERROR_PEER with *failure (which may be NULL) if the computation of the value failed,
 * PHX_ERROR_TIMEOUT, or PHX_ERROR_INVALID if the handle or `len` is wrong. */
int phx_flow_get(phx_flow *flow, uint64_t value, void *data, size_t len, int64_t timeout_ms,
                 struct phx_flow_failure *failure, struct phx_error *error);
/* Waits until the value exists or has failed, without copying it. Errors are those of phx_flow_get. */
int phx_flow_wait(phx_flow *flow, uint64_t value, int64_t timeout_ms, struct phx_flow_failure *failure,
                  struct phx_error *error);
/* Copies the value into the library's memory, where it stays until its handle is released. With
 * options.rerun_launches, lineage begins at this value from now on, and the launches that made it are
 * forgotten. Returns PHX_ERROR_INVALID if the value does not fit into rerun_bytes; other errors are those of
 * phx_flow_get. */
int phx_flow_checkpoint(phx_flow *flow, uint64_t value, int64_t timeout_ms, struct phx_flow_failure *failure,
                        struct phx_error *error);
/* Counts of the values and launches that lineage has repeated on this connection so far. */
struct phx_flow_reruns {
    uint64_t losses;   /* lost values that a call waited for or a launch took as an argument */
    uint64_t launches; /* launches repeated for them */
    uint64_t puts;     /* values that were put again */
};
void phx_flow_count_reruns(phx_flow *flow, struct phx_flow_reruns *ret_reruns);
/* Asks the workers to send the value to the client as soon as it exists, ahead of phx_flow_get. Does not
 * block. */
int phx_flow_fetch(phx_flow *flow, uint64_t value, struct phx_error *error);
/* Releases a handle, which must not be used afterwards. Releases are sent in batches. */
void phx_flow_release(phx_flow *flow, uint64_t value);

#pragma GCC visibility pop
#ifdef __cplusplus
}
#endif
#endif
