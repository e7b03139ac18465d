/* fold.h - applies a region of scalars to elements of tensors. Private to src/flow/exec.
 *
 *     struct folding folding;
 *     int code = folding_begin(&folding, run, op, &op->regions[0], true);
 *     for (...; code == 0; ...)
 *         code = fold_element(&folding, inputs, from, results, to);
 *     folding_end(&folding);                                   // after a failure too
 *
 * A region that is one commutative operation of its two arguments (a sum, a maximum) is computed directly.
 * Any other region is run by interpret_block with scalar tensors, which are allocated once.
 */
#ifndef PHX_FLOW_EXEC_FOLD_H
#define PHX_FLOW_EXEC_FOLD_H

#include "flow/exec/interpret.h"

struct folding {
    struct interpretation *run;
    const struct ir_op *op;
    const struct ir_block *region;
    enum ir_op_kind binary; /* the one operation that the region is; IR_OP_KINDS: it is none */
    struct tensor **args;   /* scalars for the region; NULL if the region is one operation */
    struct tensor **folded; /* space for the region's results */
};

/* Returns the commutative operation of its two arguments that the region is, or IR_OP_KINDS. */
enum ir_op_kind fold_binary(const struct ir_block *region);

/* Prepares a region for the fold_* functions (`folds`), or for folding_set, folding_apply and folding_holds.
 * Returns 0 or ERROR_LIMIT. In both cases folding_end frees the memory. */
int folding_begin(struct folding *folding, struct interpretation *run, const struct ir_op *op,
                  const struct ir_block *region, bool folds);
void folding_end(struct folding *folding);

/* Sets argument `index` of the region to element `at` of a tensor of the same element type. */
void folding_set(struct folding *folding, uint32_t index, const struct tensor *tensor, int64_t at);
/* Runs the region with its arguments. On success the caller owns the results. */
int folding_apply(struct folding *folding, struct tensor **results);
/* Runs a region with one boolean result. */
int folding_holds(struct folding *folding, bool *holds);

/* Replaces element `to` of each result k by region(results[k][to]…, inputs[k][from]…). The first half of the
 * region's arguments are results. */
int fold_element(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
                 int64_t to);
/* Folds `count` neighbouring input elements from `from` on, in order: fold_line into the one element `to`,
 * fold_lines each into its own element from `to` on. */
int fold_line(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
              int64_t to, int64_t count);
int fold_lines(struct folding *folding, struct tensor *const *inputs, int64_t from, struct tensor **results,
               int64_t to, int64_t count);
/* Folds every element of `input` into the same element of `result`, both of one type. */
int fold_tensor(struct folding *folding, struct tensor *input, struct tensor *result);

/* Copies one element; both tensors have the same element type. */
void element_copy(struct tensor *to, int64_t to_at, const struct tensor *from, int64_t from_at);

#endif
