/* verify.h - declarations shared by the files of the verifier. Private to flow/ir.
 *
 * Each family of operations has one function, which checks the operation `v->op` against the rules of the
 * StableHLO specification and returns false after verify_fail. The numbers of operands, results and regions
 * have been checked before, and every type has passed verify_type.
 */
#ifndef PHX_FLOW_IR_VERIFY_H
#define PHX_FLOW_IR_VERIFY_H

#include "flow/ir/ir.h"

struct verifier {
    const struct ir_module *module;
    const struct ir_function *function;
    const struct ir_op *op;
    const struct ir_value **visible; /* by number: the values that are in scope */
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

/* Sets the error to "FILE:LINE:COLUMN: operation: message", and returns false. */
bool verify_fail(struct verifier *v, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Return the type of operand or result `i`, which must exist. */
const struct ir_type *verify_operand(const struct verifier *v, uint32_t i);
const struct ir_type *verify_result(const struct verifier *v, uint32_t i);

/* Each checks `what` ("operand" or "result") number `i`, and fails with a message that names it. */
bool verify_is(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
               const struct ir_type *wanted);
bool verify_class(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                  unsigned mask);
bool verify_scalar(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                   enum ir_element element);
bool verify_same_shape(struct verifier *v, const char *what, uint32_t i, const struct ir_type *type,
                       const struct ir_type *wanted);
bool verify_results_are_operands(struct verifier *v);

/* Checks dimension numbers: each is in [0, limit) and occurs once; `sorted`: in ascending order. */
bool verify_dims(struct verifier *v, const char *name, struct ir_ints dims, int64_t limit, bool sorted);
/* Checks that a list has `count` items, each in [least, IR_ELEMENTS_MAX]. */
bool verify_list(struct verifier *v, const char *name, struct ir_ints list, int64_t count, int64_t least);
bool verify_axis(struct verifier *v, const char *name, int64_t axis, int64_t limit);

/* Checks that region `i` takes scalars of the elements of `args` (`whole`: values of those types), and
 * returns scalars or values of `results` in the same way. */
bool verify_region(struct verifier *v, uint32_t i, const struct ir_type *const *args, uint32_t arg_count,
                   const struct ir_type *const *results, uint32_t result_count, bool whole);

/* Returns the size of a dimension after a window, or -1 if it exceeds the limits. */
int64_t window_size(const struct ir_window *window, uint32_t i, int64_t dim, int64_t size);
bool verify_window(struct verifier *v, const struct ir_window *window, int64_t rank);

/* Checks a type against the limits of rank, dimensions and elements. */
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
/* Checks that no function calls itself, directly or through others, and that calls and regions nest at most
 * IR_NESTING_MAX deep. */
bool verify_calls(struct verifier *v);

#endif
