/* compiled.h - the compiled functions of a worker, one for each text; private to src/flow/host.
 *
 *     struct compiled *compiled;
 *     bool reused;
 *     if (compiled_get(functions, tail, &compiled, &reused, &error) < 0) ...
 *     compiled->executor->launch(compiled->executable, &launch);
 *     compiled_drop(compiled);
 *
 * Clients and connections that bring the same text share one compiled function: executables are immutable,
 * and all devices of a worker have the same executors. A function is found by the hash of its name and text,
 * and only where both are equal, byte by byte. Functions of shared objects are never shared, for their text
 * does not say what the file holds.
 *
 * The last COMPILED_IDLE_MAX functions that nobody has any more are kept. Texts of more than
 * COMPILED_BYTES_MAX together are not kept: what does not fit is compiled for its client alone.
 *
 * Any thread may drop; one thread at a time may get.
 */
#ifndef PHX_FLOW_HOST_COMPILED_H
#define PHX_FLOW_HOST_COMPILED_H

#include "base/list.h"
#include "flow/exec/executor.h"

enum { COMPILED_IDLE_MAX = 64, COMPILED_BYTES_MAX = 64 << 20 };

/* A compiled function, and the module that it was made of. */
struct compiled {
    const struct executor *executor;
    struct executable *executable;
    struct ir_module *module;
    const struct ir_function *function;
    _Atomic int64_t last_ns; /* of the last run; 0: it has not run */

    struct compiled_functions *all;
    uint32_t references;
    uint64_t hash;
    struct buf tail;       /* name NUL text; empty: it is not shared */
    struct list_node idle; /* in the order of the last drop, while nobody has it */
};

struct compiled_functions;
/* `functions`: folder of shared objects, NULL: none. `pjrt` runs StableHLO, but for what it refuses; NULL:
 * none. */
struct compiled_functions *compiled_functions_new(const char *functions, const struct executor *pjrt);
/* Frees what nobody has; the rest goes with its last drop. */
void compiled_functions_free(struct compiled_functions *all);

/* Finds or compiles the function of a tail (name NUL text); the caller has a reference. *ret_reused: it was
 * there. A failure is an error of the text, and nothing of it is kept. */
int compiled_get(struct compiled_functions *all, struct str tail, struct compiled **ret_compiled,
                 bool *ret_reused, struct error *error);
void compiled_drop(struct compiled *compiled);

#endif
