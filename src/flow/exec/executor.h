/* executor.h - execution of the functions of a module: START HERE for src/flow/exec.
 *
 * An executor is one way to run tensor functions: the interpreter (plain C loops, the oracle of all others),
 * oneDNN, a shared object of the user, a PJRT plugin. All share one table of functions. Its form is
 * asynchronous, but the executors of this build call `done` before launch() returns, and the runner
 * (host/runner.c) relies on it.
 *
 *     const struct executor *executor = executor_named("interpreter");
 *     struct executable *executable = NULL;
 *     executor->compile(executor, module, function, &executable, &error)
 *     executor->launch(executable, &launch);     // launch.done is called once, on any thread
 *     executor->release(executable);
 *
 * Executables are immutable and may be launched by several threads at once. A launch reads its arguments
 * until `done`. The executor makes the results; the receiver of `done` owns one reference to each.
 *
 * Files.
 *     tensor.c           values in memory
 *     plan.c             liveness and peak of a function; plan_check.c: what is refused, what a step costs
 *     kernels.c          vectorised loops over f32 and f64
 *     interpreter.c      walks a function; interpret_*.c by family of operations; lanes.c: element types
 *     onednn.c           dot_general and convolution by oneDNN primitives, the rest by the interpreter
 *     user.c             a shared object with four functions
 *     gang_threads.c     collectives among threads of one process, for run_parallel and tests
 */
#ifndef PHX_FLOW_EXEC_EXECUTOR_H
#define PHX_FLOW_EXEC_EXECUTOR_H

#include "flow/ir/ir.h"

/* A copy of a tensor in the memory of a device that does not compute in host memory. The tensor's own data is
 * kept beside it. */
struct tensor_copy {
    _Atomic uint32_t references;
    const void *device; /* identifies the device; never dereferenced */
    void (*free)(struct tensor_copy *copy);
};
/* A value: dense, row-major, host byte order, aligned to 64 bytes. Reference-counted with atomic counts;
 * immutable from the moment a second party can see it. */
struct tensor {
    struct ir_type type;
    _Atomic uint32_t references;
    void *data;                             /* ir_type_bytes(&type) bytes */
    void (*release)(struct tensor *tensor); /* frees data and tensor; NULL: one malloc for both */
    void *owner;                            /* for `release` */
    struct tensor_copy *copy;               /* NULL: none; accessed by the functions below only */
};
/* Returns a tensor of that type with one reference and undefined elements, or NULL if memory is exhausted.
 * Executors report that as ERROR_LIMIT; the island's memory accounting makes it rare. */
struct tensor *tensor_new(const struct ir_type *type);
struct tensor *tensor_ref(struct tensor *tensor);
void tensor_unref(struct tensor *tensor); /* NULL allowed */
/* Replaces the tensor's copy by `copy` (NULL: none), whose reference it takes over. The last reference to a
 * tensor drops its copy. This function and the next two may be called from any thread. */
void tensor_copy_set(struct tensor *tensor, struct tensor_copy *copy);
/* Returns a new reference to the tensor's copy on that device, or NULL if the device has none. */
struct tensor_copy *tensor_copy_take(struct tensor *tensor, const void *device);
void tensor_copy_unref(struct tensor_copy *copy); /* NULL allowed */
/* Returns a new tensor with the literal's elements, or NULL if memory is exhausted. */
struct tensor *tensor_of_literal(const struct ir_literal *literal);
/* The bytes of all elements of live tensors made by tensor_new; their maximum since the last
 * tensor_bytes_mark, which restarts the maximum. Any thread may call the three functions. */
int64_t tensor_bytes(void);
int64_t tensor_bytes_peak(void);
void tensor_bytes_mark(void);

/* Why a computation has no value. A poisoned result carries such a failure. */
struct flow_failure {
    struct error error;
    uint32_t island, device, incarnation; /* where; UINT32_MAX: not known */
    uint64_t call_site;                   /* the client's id of the call, for its own stack trace */
};

/* Lets a running function communicate with the other members of its gang. The interpreter calls it from the
 * thread that runs the launch, and may block in it. `key` distinguishes concurrent operations of one launch
 * and is the same on every member. Returns 0, or ERROR_UNAVAILABLE if the gang has lost a member. */
struct flow_gang {
    uint32_t replica, partition; /* this member's place in replicas x partitions */
    uint32_t replicas, partitions;
    /* Gives `mine` (size bytes) to the members of `group` (global ids: replica * partitions + partition,
     * `count` of them, this member among them) and receives the bytes of all, in the group's order, in `all`
     * (count * size bytes). All collectives are built on this function. */
    int (*all_gather)(struct flow_gang *gang, const uint32_t *group, uint32_t count, uint64_t key,
                      const void *mine, size_t size, void *all, struct error *error);
};

struct executable;
struct flow_launch {
    struct tensor *const *args; /* as many as the function's parameters, of their types */
    struct flow_gang *gang;     /* valid until `done`; NULL: alone (replica 0 of 1, partition 0 of 1) */
    /* Limits the steps of the launch, about one for each element that an operation reads, writes or adds. A
     * launch that takes more fails with ERROR_LIMIT. 0: no limit. */
    uint64_t work_limit;
    /* Called once. `failure` is NULL for success; then `results` has one tensor for each result, and the
     * receiver owns a reference to each. The array itself is valid only during the call. */
    void (*done)(void *arg, struct tensor **results, uint32_t count, const struct flow_failure *failure);
    void *arg;
};

struct executor {
    const char *name;
    /* Compiles a function of a verified module, which outlives the executable. Returns ERROR_UNSUPPORTED if
     * an operation cannot run for its types; the message names operation, type and place. */
    int (*compile)(const struct executor *executor, const struct ir_module *module,
                   const struct ir_function *function, struct executable **executable, struct error *error);
    void (*launch)(struct executable *executable, const struct flow_launch *launch);
    void (*release)(struct executable *executable); /* no launch may be running */
    /* Returns the most bytes that temporaries and results hold at once. Arguments do not count, nor does
     * memory inside one operation. Executors of this build free a value after its last use. */
    int64_t (*peak_bytes)(const struct executable *executable);
    /* Frees the copy of a value in the memory of a device; the value is then in host memory only. A launch
     * that takes it makes a new copy. Any thread may call this; launches that read the copy now are not
     * disturbed. NULL: the devices compute in host memory. */
    void (*evict)(struct tensor *tensor);
};

/* Returns the executor of that name ("interpreter", "onednn"), or NULL if it is unknown or not in this
 * build. */
const struct executor *executor_named(const char *name);

#endif
