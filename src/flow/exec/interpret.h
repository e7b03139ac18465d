/* interpret.h - the internals of the interpreter. Private to src/flow/exec.
 *
 * Each operation has a function that computes its results from its operands; interpreter.c walks the blocks.
 * Results are new tensors or references to operands, which are immutable. On failure no result remains.
 */
#ifndef PHX_FLOW_EXEC_INTERPRET_H
#define PHX_FLOW_EXEC_INTERPRET_H

#include "flow/exec/executor.h"
#include "flow/exec/plan.h"

/* Computes dot_general and convolution in place of the interpreter (onednn.c). Returns 0 with the result, 1
 * if the interpreter must compute the operation, or a negative error. */
struct dense;
union lanes;
struct interpretation;
typedef int dense_compute(const struct dense *dense, struct interpretation *run, const struct ir_op *op,
                          struct tensor *const *operands, struct tensor **results);
struct dense {
    dense_compute *compute;
};

/* A run of one function. */
struct interpretation {
    const struct ir_module *module;
    const struct plans *plans;
    const struct plan *plan;   /* of the current function */
    const struct dense *dense; /* NULL: the interpreter computes all operations */
    struct tensor **values;    /* by number; NULL: not computed yet, or freed after the last use */
    uint64_t *work;            /* remaining steps; NULL: no limit */
    struct flow_gang *gang;    /* NULL: alone */
    uint64_t *collectives;     /* collectives executed by the launch so far; used as their key */
    struct error *error;
};

typedef int interpret_op(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results);

/* Runs a block with `args` (borrowed) as its arguments. Writes one tensor for each operand of the block's
 * return to `results`; the caller owns a reference to each. */
int interpret_block(struct interpretation *run, const struct ir_block *block, struct tensor *const *args,
                    struct tensor **results);

/* Runs a function of the module with its own table of values; otherwise as interpret_block. */
int interpret_function(struct interpretation *run, const struct ir_function *function,
                       struct tensor *const *args, struct tensor **results);

/* Sets the error of an operation, with "file:line:column: name: " before the message, and returns its
 * code. */
int interpret_fail(struct interpretation *run, const struct ir_op *op, enum error_code code,
                   const char *format, ...) __attribute__((format(printf, 4, 5)));

/* Runs a planned function and calls launch->done. The executors of this folder are built on it. */
void interpret_launch(const struct plans *plans, const struct ir_function *function,
                      const struct dense *dense, const struct flow_launch *launch);

/* Computes an operation on `count` single elements: x[k] has the numbers of operand k, of type `element`; the
 * results go to x[0]. */
typedef void lanes_step(const struct ir_op *op, enum ir_element element, union lanes *x, uint32_t count);
/* Computes an operation with at most three operands and one result by such steps, and passes `result` on as
 * its result. A scalar operand beside tensors is repeated. Returns ERROR_LIMIT if `result` is NULL, else
 * 0. */
int interpret_by_lanes(const struct ir_op *op, struct tensor *const *operands, lanes_step *step,
                       struct tensor *result, struct tensor **results);

/* Returns a tensor for the operation's result `index`, with undefined elements, or NULL with the error set
 * (ERROR_LIMIT) if memory is exhausted. */
struct tensor *interpret_result(struct interpretation *run, const struct ir_op *op, uint32_t index);

/* Computes row-major strides in elements; all are 0 for a tensor without elements. */
void strides_of(const struct ir_type *type, int64_t strides[IR_RANK_MAX]);
/* Advances the index in row-major order below `dims`. Returns false, with the index back at 0, after the
 * last. */
bool index_next(int64_t *index, const int64_t *dims, int32_t rank);
/* Copies, for every index of `to` in order, the element of `from` at `offset` + sum of index[d] * strides[d].
 * Both have the same element type. In interpret_move.c. */
void strided_copy(struct tensor *to, const struct tensor *from, int64_t offset, const int64_t *strides);
/* Returns an element of an integer tensor (i1 included); unsigned values beyond INT64_MAX become
 * INT64_MAX. */
int64_t tensor_integer(const struct tensor *tensor, int64_t at);

/* interpret_elementwise.c */
interpret_op interpret_unary, interpret_binary, interpret_compare, interpret_select, interpret_clamp,
    interpret_convert, interpret_bitcast, interpret_precision;
/* interpret_move.c */
interpret_op interpret_broadcast, interpret_concatenate, interpret_constant, interpret_dynamic_slice,
    interpret_dynamic_update, interpret_gather, interpret_iota, interpret_pad, interpret_reshape,
    interpret_reverse, interpret_scatter, interpret_slice, interpret_transpose;
/* interpret_contract.c */
interpret_op interpret_convolution, interpret_dot, interpret_cholesky, interpret_triangular, interpret_fft,
    interpret_batch_norm, interpret_batch_norm_grad, interpret_batch_norm_training;
/* interpret_reduce.c */
interpret_op interpret_map, interpret_reduce, interpret_reduce_window, interpret_select_and_scatter,
    interpret_sort;
/* interpret_control.c */
interpret_op interpret_barrier, interpret_call, interpret_case, interpret_if, interpret_rng, interpret_token,
    interpret_while;
/* interpret_collective.c */
interpret_op interpret_all_gather, interpret_all_reduce, interpret_all_to_all, interpret_collective_broadcast,
    interpret_permute, interpret_member_id, interpret_reduce_scatter, interpret_parallel;
/* interpret_custom.c */
interpret_op interpret_custom;
/* interpret_expect.c */
interpret_op interpret_expect;

/* onednn.c: returns the executor, or NULL if oneDNN does not run on this machine. */
const struct executor *executor_onednn(void);
/* Points to executor_onednn, or is NULL if the build has no oneDNN. CMakeLists.txt writes its definition. */
extern const struct executor *(*const executor_of_onednn)(void);

#endif
