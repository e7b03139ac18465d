/* executor.h - what runs the functions of a module: START HERE for src/flow/exec.
 *
 * An executor is one way to run tensor functions: the interpreter (plain C loops, the oracle of all others),
 * oneDNN, a shared object of the user, a PJRT plugin. All stand behind one asynchronous table, so that a
 * worker (island/worker.h) enqueues and never waits.
 *
 *     const struct executor *executor = executor_named("interpreter");
 *     struct executable *executable = NULL;
 *     executor->compile(executor, module, function, &executable, &error)
 *     executor->launch(executable, &launch);     // launch.done is called once, on any thread
 *     executor->release(executable);
 *
 * Executables are immutable and may be launched by several threads at once. A launch reads its arguments
 * until `done`; its results are made by the executor, one reference each, and belong to the receiver of
 * `done`.
 *
 * Files.
 *     tensor.c           values in memory
 *     plan.c             liveness and peak of a function; plan_check.c: what is refused, what a step costs
 *     kernels.c          loops over f32 and f64, by vector code
 *     interpreter.c      walks a function; interpret_*.c by family of operations; lanes.c: element types
 *     onednn.c           dot_general and convolution by oneDNN primitives, the rest by the interpreter
 *     user.c             a shared object with four functions
 *     gang_threads.c     collectives among threads of one process, for run_parallel and tests
 */
#ifndef PHX_FLOW_EXEC_EXECUTOR_H
#define PHX_FLOW_EXEC_EXECUTOR_H

#include "flow/ir/ir.h"

/* A copy of a tensor in the memory of a device that has its own, beside the tensor's data. */
struct tensor_copy {
    _Atomic uint32_t references;
    const void *device; /* whose it is; never looked into */
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
    struct tensor_copy *copy;               /* NULL: none; by the functions below alone */
};
/* A tensor of that type with one reference and undefined elements; NULL when memory is exhausted (executors
 * answer it with ERROR_LIMIT, and the island's back-pressure sees to it that it is rare). */
struct tensor *tensor_new(const struct ir_type *type);
struct tensor *tensor_ref(struct tensor *tensor);
void tensor_unref(struct tensor *tensor); /* NULL allowed */
/* Makes `copy` (its reference is handed over; NULL: none) the tensor's, in the place of the one that it has;
 * a tensor that ends gives its copy back. Any thread, as the next ones. */
void tensor_copy_set(struct tensor *tensor, struct tensor_copy *copy);
/* Returns a reference to the tensor's copy on that device; NULL: it has none there. */
struct tensor_copy *tensor_copy_take(struct tensor *tensor, const void *device);
void tensor_copy_unref(struct tensor_copy *copy); /* NULL allowed */
struct tensor *tensor_of_literal(const struct ir_literal *literal);
/* Bytes of all elements of tensors that tensor_new has made and that are alive, and the most since the last
 * tensor_bytes_mark, which starts over from those alive. Any thread. */
int64_t tensor_bytes(void);
int64_t tensor_bytes_peak(void);
void tensor_bytes_mark(void);

/* Why a computation has no value: a poisoned result carries one. */
struct flow_failure {
    struct error error;
    uint32_t island, device, incarnation; /* where; UINT32_MAX: nowhere in particular */
    uint64_t call_site;                   /* the client's id of the call, for its own stack trace */
};

/* How a running function meets the other members of its gang. The interpreter calls it from the thread that
 * runs the launch and may block in it. `key` tells concurrent operations of one launch apart, and is the same
 * on every member. Returns 0, or ERROR_UNAVAILABLE with the failure when the gang has lost a member. */
struct flow_gang {
    uint32_t replica, partition; /* this member's place in replicas x partitions */
    uint32_t replicas, partitions;
    /* Gives `mine` (size bytes) to the members of `group` (global ids: replica * partitions + partition,
     * `count` of them, this member among them) and receives the bytes of all, in the group's order, in `all`
     * (count * size bytes). Every collective is made of it by default. */
    int (*all_gather)(struct flow_gang *gang, const uint32_t *group, uint32_t count, uint64_t key,
                      const void *mine, size_t size, void *all, struct error *error);
};

struct executable;
struct flow_launch {
    struct tensor *const *args; /* as many as the function's parameters, of their types */
    struct flow_gang *gang;     /* NULL: alone (replica 0 of 1, partition 0 of 1) */
    /* Steps that the launch may take, about one for each element that an operation reads, writes or adds; a
     * launch that takes more fails with ERROR_LIMIT. 0: no limit. */
    uint64_t work_limit;
    /* Called once. `failure` is NULL for success; then `results` has one tensor for each result, and the
     * receiver owns a reference to each. The array itself is valid during the call alone. */
    void (*done)(void *arg, struct tensor **results, uint32_t count, const struct flow_failure *failure);
    void *arg;
};

struct executor {
    const char *name;
    /* Decides which operations and types can run: ERROR_UNSUPPORTED names operation, type and
     * place. `module` has been verified and outlives the executable. */
    int (*compile)(const struct executor *executor, const struct ir_module *module,
                   const struct ir_function *function, struct executable **executable, struct error *error);
    void (*launch)(struct executable *executable, const struct flow_launch *launch);
    void (*release)(struct executable *executable);             /* no launch may be under way */
    /* The most bytes that temporaries and results hold at once, arguments not counted; what one operation
     * needs inside itself is not counted either. Executors of this build free a value after its last use. */
    int64_t (*peak_bytes)(const struct executable *executable);
    /* Frees what the memory of devices holds of a value: afterwards it is in host memory alone. A launch that
     * takes it brings it back. Any thread; launches that read it now are not disturbed. NULL: the devices
     * compute in host memory. */
    void (*evict)(struct tensor *tensor);
};

/* The executor of that name ("interpreter", "onednn"), or NULL: unknown, or not in this build. */
const struct executor *executor_named(const char *name);

#endif
