/* compiled.h - the compiled functions of a worker, one for each text; private to src/flow/host.
 *
 *     struct compiled *compiled;
 *     bool reused;
 *     if (compiled_get(functions, tail, &compiled, &reused, &error) < 0) ...
 *     compiled->executor->launch(compiled->executable, &launch);
 *     compiled_drop(compiled);
 *
 * Clients and connections that send the same text share one compiled function: executables are immutable, and
 * all devices of a worker have the same executors. Functions are found by a hash of name and text, and shared
 * only if both are equal byte by byte. Functions of shared objects are never shared, because their text does
 * not determine the file's content.
 *
 * The last COMPILED_IDLE_MAX functions without a user are kept. The texts that are kept have at most
 * COMPILED_BYTES_MAX in total; a function beyond that is compiled for its client alone.
 *
 * Any thread may drop a function; one thread at a time may get one.
 */
#ifndef PHX_FLOW_HOST_COMPILED_H
#define PHX_FLOW_HOST_COMPILED_H

#include "base/list.h"
#include "flow/exec/executor.h"

enum { COMPILED_IDLE_MAX = 64, COMPILED_BYTES_MAX = 64 << 20 };

/* A compiled function, with the module that contains it. */
struct compiled {
    const struct executor *executor;
    struct executable *executable;
    struct ir_module *module;
    const struct ir_function *function;
    _Atomic int64_t last_ns; /* duration of the last run; 0: it has not run */

    struct compiled_functions *all;
    uint32_t references;
    uint64_t hash;
    struct buf tail;       /* name NUL text; empty: the function is not shared */
    struct list_node idle; /* while the function has no user; ordered by the time of the last drop */
};

struct compiled_functions;
/* `functions` is the folder of shared objects (NULL: none), borrowed. `pjrt` (NULL: none) runs the StableHLO
 * functions that it does not refuse. */
struct compiled_functions *compiled_functions_new(const char *functions, const struct executor *pjrt);
/* Frees the functions without a user; each of the others is freed when it is dropped. */
void compiled_functions_free(struct compiled_functions *all);

/* Finds or compiles the function of a tail (name NUL text), and gives the caller a reference. Sets
 * *ret_reused if it was compiled before. Returns an error of the text on failure; nothing is kept then. */
int compiled_get(struct compiled_functions *all, struct str tail, struct compiled **ret_compiled,
                 bool *ret_reused, struct error *error);
/* Drops a reference. */
void compiled_drop(struct compiled *compiled);

#endif
