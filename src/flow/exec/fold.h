/* fold.h - applies a region of scalars to elements of tensors. Private to src/flow/exec.
 *
 *     struct folding folding;
 *     int code = folding_begin(&folding, run, op, &op->regions[0], true);
 *     for (...; code == 0; ...)
 *         code = fold_element(&folding, inputs, from, results, to);
 *     folding_end(&folding);                                   // after a failure too
 *
 * A region that is one commutative operation of its two arguments (a sum, a maximum) is computed at once; any
 * other region is run by interpret_block with scalar tensors, which are made once.
 */
#ifndef PHX_FLOW_EXEC_FOLD_H
#define PHX_FLOW_EXEC_FOLD_H

#include "flow/exec/interpret.h"

struct folding {
    struct interpretation *run;
    const struct ir_op *op;
    const struct ir_block *region;
    enum ir_op_kind binary; /* the region is this operation of its two arguments; IR_OP_KINDS: it is not */
    struct tensor **args;   /* scalars for the region; NULL where it is one operation */
    struct tensor **folded; /* room for its results */
};

/* The commutative operation of its two arguments that the region is, or IR_OP_KINDS. */
enum ir_op_kind fold_binary(const struct ir_block *region);

/* `folds`: for the fold_* functions; otherwise for folding_set, folding_apply and folding_holds. */
int folding_begin(struct folding *folding, struct interpretation *run, const struct ir_op *op,
                  const struct ir_block *region, bool folds);
void folding_end(struct folding *folding);

/* Sets argument `index` of the region to element `at` of a tensor of the same element type. */
void folding_set(struct folding *folding, uint32_t index, const struct tensor *tensor, int64_t at);
/* Runs the region with its arguments; the caller owns the results. */
int folding_apply(struct folding *folding, struct tensor **results);
/* The same for a region with one boolean result. */
int folding_holds(struct folding *folding, bool *holds);

/* Replaces element `to` of each result k by region(results[k][to]…, inputs[k][from]…), for the half of the
 * region's arguments that are results. */
int fold_element(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
                 int64_t to);
/* The same for `count` neighbours of the inputs from `from` on, in order: into the one element `to`, or into
 * as many neighbours from `to` on. */
int fold_line(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
              int64_t to, int64_t count);
int fold_lines(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
               int64_t to, int64_t count);
/* Folds every element of `input` into the same element of `result`, both of one type. */
int fold_tensor(struct folding *folding, struct tensor *input, struct tensor *result);

/* Copies one element; both tensors have the same element type. */
void element_copy(struct tensor *to, int64_t to_at, const struct tensor *from, int64_t from_at);

#endif
