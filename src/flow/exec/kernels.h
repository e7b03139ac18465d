/* kernels.h - the most frequent loops of training, for f32 and f64, without widening. Private to
 * src/flow/exec.
 *
 * Every kernel gives the digits of the general code: +, -, *, / and the square root of f32 are correctly
 * rounded either way (lanes.h), and sums run in the same order. The file is built with -O3, so that the
 * compiler vectorises the loops; -ffp-contract=off keeps the two roundings of a product and a sum.
 *
 * Threads: pure functions of their arguments.
 */
#ifndef PHX_FLOW_EXEC_KERNELS_H
#define PHX_FLOW_EXEC_KERNELS_H

#include <stddef.h>

#include "flow/ir/ir.h"

/* out[k] = x[k] op y[k]; `out` may be `x`. Returns false, and writes nothing, if there is no such kernel. */
bool kernel_binary(enum ir_op_kind kind, enum ir_element element, const void *x, const void *y, int64_t count,
                   void *out);
/* out[k] = op x[k]. Returns false if there is no such kernel. */
bool kernel_unary(enum ir_op_kind kind, enum ir_element element, const void *x, int64_t count, void *out);
/* *sum = ((*sum op x[0]) op x[1]) … Returns false if there is no such kernel. */
bool kernel_fold(enum ir_op_kind kind, enum ir_element element, const void *x, int64_t count, void *sum);

/* out[k] = chosen[k] ? x[k] : y[k], elements of `size` bytes. Returns false if there is no such kernel. */
bool kernel_select(size_t size, const uint8_t *chosen, const void *x, const void *y, int64_t count,
                   void *out);

/* out[k] = from[k * step], elements of `size` bytes; step 0 repeats one element. */
void kernel_copy(size_t size, const void *from, int64_t step, int64_t count, void *out);

/* c[i][j] = sum over p of a[i][p] * b[p][j], rows without gaps, p ascending, in f32. */
void kernel_matmul(int64_t rows, int64_t columns, int64_t inner, const float *a, const float *b, float *c);

#endif
