/* plan.h - analysis of a function before it runs. Private to src/flow/exec.
 *
 * Compiling a function makes plans of it and of all functions that it calls. A plan determines:
 *   - that every operation can be computed for its types; otherwise compile fails and names operation, type
 *     and place;
 *   - the last use of each value, after which the interpreter frees it;
 *   - the peak of the bytes that temporaries and results hold at once;
 *   - the depth of nested regions and calls, which bounds the stack.
 *
 * Plans are immutable, and any thread may read them.
 */
#ifndef PHX_FLOW_EXEC_PLAN_H
#define PHX_FLOW_EXEC_PLAN_H

#include "flow/ir/ir.h"

/* Bound of nested regions and calls; one level takes the interpreter less than a kilobyte of stack. */
enum { PLAN_DEPTH_MAX = 1024 };

/* A value whose last use is inside a region of an operation of the value's own block. */
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
    int64_t peak; /* most bytes of operations' results at once, including the function's results */
};

/* The plans of a function and of its callees. */
struct plans {
    const struct ir_module *module;
    struct plan **items; /* sorted by the function's address */
    uint32_t count, room;
};

/* Plans `function` and its callees. On failure nothing remains allocated. ERROR_UNSUPPORTED names operation,
 * type and place; ERROR_LIMIT is returned for depth and memory. */
int plans_make(struct plans *plans, const struct ir_module *module, const struct ir_function *function,
               struct error *error);
void plans_free(struct plans *plans);

/* Returns the plan of a function, which plans_make must have planned. */
const struct plan *plans_find(const struct plans *plans, const struct ir_function *function);

/* Sets *first to the captures of an operation, and returns their number. */
uint32_t plan_captures(const struct plan *plan, const struct ir_op *op, const struct plan_capture **first);

/* Returns an upper estimate of the steps that one run of the operation takes, without its regions and
 * callees. A launch with a work limit is charged these steps. Saturates. */
uint64_t plan_work(const struct ir_op *op);

/* Returns whether the operation can be computed for its types. *what is the element type that decided. */
bool plan_supported(const struct ir_op *op, enum ir_element *what);

#endif
