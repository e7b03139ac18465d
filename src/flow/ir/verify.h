/* verify.h - what the files of the verifier share. Private to flow/ir.
 *
 * Each family of operations has one function, which checks the operation `v->op` against the rules of the
 * StableHLO specification and returns false after verify_fail. Counts of operands, results and regions are
 * right already, and every type is one that verify_type accepts.
 */
#ifndef PHX_FLOW_IR_VERIFY_H
#define PHX_FLOW_IR_VERIFY_H

#include "flow/ir/ir.h"

struct verifier {
    const struct ir_module *module;
    const struct ir_function *function;
    const struct ir_op *op;
    const struct ir_value **visible; /* by number: the values that may be named here */
    struct error *error;
    int code;
    uint32_t depth;
};

/* Classes of element types, as bits of a mask. */
enum {
    CLASS_BOOL = 1,
    CLASS_SIGNED = 2,
    CLASS_UNSIGNED = 4,
    CLASS_FLOAT = 8,
    CLASS_COMPLEX = 16,
    CLASS_TOKEN = 32,
    CLASS_INTEGER = CLASS_SIGNED | CLASS_UNSIGNED,
    CLASS_NUMBER = CLASS_INTEGER | CLASS_FLOAT | CLASS_COMPLEX,
};
unsigned element_class(enum ir_element element);

/* "FILE:LINE:COLUMN: operation: message"; returns false. */
bool verify_fail(struct verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Type of operand or result `i`, which exists. */
const struct ir_type *verify_operand(const struct verifier *v, uint32_t i);
const struct ir_type *verify_result(const struct verifier *v, uint32_t i);

/* Each says what is wrong with `what`, operand or result number `i`. */
bool verify_is(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
               const struct ir_type *wanted);
bool verify_class(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                  unsigned mask);
bool verify_scalar(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                   enum ir_element element);
bool verify_same_shape(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                       const struct ir_type *wanted);
bool verify_results_are_operands(struct verifier *v);

/* Dimension numbers: each in [0, limit) and named once; `sorted`: rising. */
bool verify_dims(struct verifier *v, const char *name, struct ir_ints dims, int64_t limit, bool sorted);
/* A list with `count` items, each in [least, IR_ELEMENTS_MAX]. */
bool verify_list(struct verifier *v, const char *name, struct ir_ints list, int64_t count, int64_t least);
bool verify_axis(struct verifier *v, const char *name, int64_t axis, int64_t limit);

/* Region `i` takes scalars of the elements of `args` (or values of those types, if whole) and returns such of
 * `results`. */
bool verify_region(struct verifier *v, uint32_t i, const struct ir_type *const *args, uint32_t arg_count,
                   const struct ir_type *const *results, uint32_t result_count, bool whole);

/* The size of a dimension after a window: -1 where it is beyond the limits. */
int64_t window_size(const struct ir_window *window, uint32_t i, int64_t dim, int64_t size);
bool verify_window(struct verifier *v, const struct ir_window *window, int64_t rank);

/* A type within the limits: rank, dimensions, elements. */
bool verify_type(struct verifier *v, const struct ir_type *type);

/* --- families */
bool verify_elementwise(struct verifier *v);
bool verify_movement(struct verifier *v);
bool verify_indexing(struct verifier *v);    /* gather, scatter */
bool verify_contraction(struct verifier *v); /* dot_general, convolution, linear algebra, fft */
bool verify_reduction(struct verifier *v);   /* reduce, windows, sort, map, batch norms */
bool verify_control(struct verifier *v);
bool verify_collective(struct verifier *v);

/* --- verify_calls.c */
/* No function calls itself, through others or not; calls and regions nest no deeper than IR_NESTING_MAX. */
bool verify_calls(struct verifier *v);

#endif
