/* dot.h - a dot_general as products of matrices. Private to src/flow/exec.
 *
 * The result's dimensions are batch, the left operand's free ones, the right operand's free ones: a batch of
 * rows x columns without gaps. The operands become batches of rows x inner and inner x columns, copied only
 * where their dimensions have another order.
 */
#ifndef PHX_FLOW_EXEC_DOT_H
#define PHX_FLOW_EXEC_DOT_H

#include "flow/exec/interpret.h"

struct dot_shape {
    int64_t batch, rows, columns, inner;
};
struct dot_shape dot_shape_of(const struct ir_op *op);

struct dot_matrices {
    struct dot_shape shape;
    struct tensor *lhs, *rhs; /* owned, one reference each */
};

/* Arranges the operands as matrices. Returns ERROR_LIMIT if memory is exhausted; nothing is left to free
 * then. */
int dot_matrices_make(struct dot_matrices *dot, struct interpretation *run, const struct ir_op *op,
                      struct tensor *const *operands);
void dot_matrices_free(struct dot_matrices *dot);

#endif
