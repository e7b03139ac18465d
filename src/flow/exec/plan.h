/* plan.h - what is known about a function before it runs. Private to src/flow/exec.
 *
 * A plan is made at compile, for the function and all that it calls:
 *   - every operation can be computed for its types, or compile refuses it by operation, type and place;
 *   - the last use of each value, after which the interpreter frees it;
 *   - the peak of the bytes that temporaries and results hold at once;
 *   - the depth of regions and calls, which bounds the stack.
 *
 * Plans are immutable, and any thread may read them.
 */
#ifndef PHX_FLOW_EXEC_PLAN_H
#define PHX_FLOW_EXEC_PLAN_H

#include "flow/ir/ir.h"

/* Regions and calls inside each other; a level costs the interpreter less than a kilobyte of stack. */
enum { PLAN_DEPTH_MAX = 1024 };

/* A value of a block around the operation whose last use is in one of its regions. */
struct plan_capture {
    const struct ir_op *op;
    const struct ir_value *value;
};

struct plan {
    const struct ir_function *function;
    const struct ir_op **last_use; /* by number: the operation of the value's own block; NULL: never used */
    struct plan_capture *captures; /* sorted by the operation's address */
    uint32_t capture_count;
    uint32_t depth;
    int64_t peak; /* bytes of operations' results at once, those that the function returns included */
};

/* The plans of a function and of its callees. */
struct plans {
    const struct ir_module *module;
    struct plan **items; /* sorted by the function's address */
    uint32_t count, room;
};

/* Plans `function`; on failure nothing is left behind. ERROR_UNSUPPORTED names operation, type and place;
 * ERROR_LIMIT for depth and memory. */
int plans_make(struct plans *plans, const struct ir_module *module, const struct ir_function *function,
               struct error *error);
void plans_free(struct plans *plans);

/* The plan of a function that plans_make has met. */
const struct plan *plans_find(const struct plans *plans, const struct ir_function *function);

/* The captures of an operation; returns how many. */
uint32_t plan_captures(const struct plan *plan, const struct ir_op *op, const struct plan_capture **first);

/* Upper estimate of the steps that one run of the operation takes, without its regions and callees: what a
 * launch with a limit of work is charged. Saturates. */
uint64_t plan_work(const struct ir_op *op);

/* Whether the operation can be computed for its types; otherwise *what is the one for which it cannot. */
bool plan_supported(const struct ir_op *op, enum ir_element *what);

#endif
