/* ops.h - the table of operations. verify.c has the rules that a row does not express.
 *
 * A row: id, name in text without "stablehlo.", fewest and most operands, regions; IR_ANY means any number.
 * Operations have one result; call, case, custom_call, if, map, optimization_barrier, reduce, reduce_window,
 * run_parallel, scatter, sort, while and collectives of several operands have as many as the text names;
 * rng_bit_generator has two, batch_norm_training and batch_norm_grad three, return and checks none.
 *
 * The parser maps some forms to others, so that executors support fewer operations:
 *     func.call, call, stablehlo.composite                        CALL (a composite calls its decomposition)
 *     func.return, return, stablehlo.return                       RETURN
 *     stablehlo.dot                                               DOT_GENERAL
 *     stablehlo.broadcast                                         BROADCAST_IN_DIM
 *     stablehlo.create_token                                      AFTER_ALL without operands
 *     check.expect_eq_const, expect_close_const, ...              EXPECT_* with one operand and a literal
 *     custom_call @check.expect_eq, ...                           EXPECT_*
 *     custom_call @mhlo.tan, chlo.tan                             TAN
 *     chlo.erf, chlo.top_k, ...                                   CUSTOM_CALL @mhlo.erf, @mhlo.topk, ...
 *     sdy.sharding_constraint, custom_call @Sharding              no operation: its result is its operand
 */
#ifndef PHX_FLOW_IR_OPS_H
#define PHX_FLOW_IR_OPS_H

enum { IR_ANY = 255 };

/* clang-format off */
#define IR_OPS(X)                                                 \
    /* elementwise of one operand */                               \
    X(ABS, "abs", 1, 1, 0)                                         \
    X(CBRT, "cbrt", 1, 1, 0)                                       \
    X(CEIL, "ceil", 1, 1, 0)                                       \
    X(CONVERT, "convert", 1, 1, 0)                                 \
    X(COSINE, "cosine", 1, 1, 0)                                   \
    X(COUNT_LEADING_ZEROS, "count_leading_zeros", 1, 1, 0)         \
    X(EXPONENTIAL, "exponential", 1, 1, 0)                         \
    X(EXPONENTIAL_MINUS_ONE, "exponential_minus_one", 1, 1, 0)     \
    X(FLOOR, "floor", 1, 1, 0)                                     \
    X(IMAG, "imag", 1, 1, 0)                                       \
    X(IS_FINITE, "is_finite", 1, 1, 0)                             \
    X(LOG, "log", 1, 1, 0)                                         \
    X(LOG_PLUS_ONE, "log_plus_one", 1, 1, 0)                       \
    X(LOGISTIC, "logistic", 1, 1, 0)                               \
    X(NEGATE, "negate", 1, 1, 0)                                   \
    X(NOT, "not", 1, 1, 0)                                         \
    X(POPCNT, "popcnt", 1, 1, 0)                                   \
    X(REAL, "real", 1, 1, 0)                                       \
    X(REDUCE_PRECISION, "reduce_precision", 1, 1, 0)               \
    X(ROUND_NEAREST_AFZ, "round_nearest_afz", 1, 1, 0)             \
    X(ROUND_NEAREST_EVEN, "round_nearest_even", 1, 1, 0)           \
    X(RSQRT, "rsqrt", 1, 1, 0)                                     \
    X(SIGN, "sign", 1, 1, 0)                                       \
    X(SINE, "sine", 1, 1, 0)                                       \
    X(SQRT, "sqrt", 1, 1, 0)                                       \
    X(TAN, "tan", 1, 1, 0)                                         \
    X(TANH, "tanh", 1, 1, 0)                                       \
    /* elementwise of two or three */                              \
    X(ADD, "add", 2, 2, 0)                                         \
    X(AND, "and", 2, 2, 0)                                         \
    X(ATAN2, "atan2", 2, 2, 0)                                     \
    X(COMPARE, "compare", 2, 2, 0)                                 \
    X(COMPLEX, "complex", 2, 2, 0)                                 \
    X(DIVIDE, "divide", 2, 2, 0)                                   \
    X(MAXIMUM, "maximum", 2, 2, 0)                                 \
    X(MINIMUM, "minimum", 2, 2, 0)                                 \
    X(MULTIPLY, "multiply", 2, 2, 0)                               \
    X(OR, "or", 2, 2, 0)                                           \
    X(POWER, "power", 2, 2, 0)                                     \
    X(REMAINDER, "remainder", 2, 2, 0)                             \
    X(SHIFT_LEFT, "shift_left", 2, 2, 0)                           \
    X(SHIFT_RIGHT_ARITHMETIC, "shift_right_arithmetic", 2, 2, 0)   \
    X(SHIFT_RIGHT_LOGICAL, "shift_right_logical", 2, 2, 0)         \
    X(SUBTRACT, "subtract", 2, 2, 0)                               \
    X(XOR, "xor", 2, 2, 0)                                         \
    X(CLAMP, "clamp", 3, 3, 0)                                     \
    X(SELECT, "select", 3, 3, 0)                                   \
    /* data movement */                                            \
    X(BITCAST_CONVERT, "bitcast_convert", 1, 1, 0)                 \
    X(BROADCAST_IN_DIM, "broadcast_in_dim", 1, 1, 0)               \
    X(CONCATENATE, "concatenate", 1, IR_ANY, 0)                    \
    X(CONSTANT, "constant", 0, 0, 0)                               \
    X(DYNAMIC_SLICE, "dynamic_slice", 1, IR_ANY, 0)                \
    X(DYNAMIC_UPDATE_SLICE, "dynamic_update_slice", 2, IR_ANY, 0)  \
    X(GATHER, "gather", 2, 2, 0)                                   \
    X(IOTA, "iota", 0, 0, 0)                                       \
    X(PAD, "pad", 2, 2, 0)                                         \
    X(RESHAPE, "reshape", 1, 1, 0)                                 \
    X(REVERSE, "reverse", 1, 1, 0)                                 \
    X(SCATTER, "scatter", 3, IR_ANY, 1)                            \
    X(SLICE, "slice", 1, 1, 0)                                     \
    X(TRANSPOSE, "transpose", 1, 1, 0)                             \
    /* contraction, reduction, windows */                          \
    X(BATCH_NORM_GRAD, "batch_norm_grad", 5, 5, 0)                 \
    X(BATCH_NORM_INFERENCE, "batch_norm_inference", 5, 5, 0)       \
    X(BATCH_NORM_TRAINING, "batch_norm_training", 3, 3, 0)         \
    X(CHOLESKY, "cholesky", 1, 1, 0)                               \
    X(CONVOLUTION, "convolution", 2, 2, 0)                         \
    X(DOT_GENERAL, "dot_general", 2, 2, 0)                         \
    X(FFT, "fft", 1, 1, 0)                                         \
    X(MAP, "map", 1, IR_ANY, 1)                                    \
    X(REDUCE, "reduce", 2, IR_ANY, 1)                              \
    X(REDUCE_WINDOW, "reduce_window", 2, IR_ANY, 1)                \
    X(RNG_BIT_GENERATOR, "rng_bit_generator", 1, 1, 0)             \
    X(SELECT_AND_SCATTER, "select_and_scatter", 3, 3, 2)           \
    X(SORT, "sort", 1, IR_ANY, 1)                                  \
    X(TRIANGULAR_SOLVE, "triangular_solve", 2, 2, 0)               \
    /* control and structure */                                    \
    X(AFTER_ALL, "after_all", 0, IR_ANY, 0)                        \
    X(CALL, "func.call", 0, IR_ANY, 0)                             \
    X(CASE, "case", 1, 1, IR_ANY)                                  \
    X(CUSTOM_CALL, "custom_call", 0, IR_ANY, 0)                    \
    X(IF, "if", 1, 1, 2)                                           \
    X(OPTIMIZATION_BARRIER, "optimization_barrier", 0, IR_ANY, 0)  \
    X(RETURN, "return", 0, IR_ANY, 0)                              \
    X(WHILE, "while", 0, IR_ANY, 2)                                \
    /* collectives */                                              \
    X(ALL_GATHER, "all_gather", 1, IR_ANY, 0)                      \
    X(ALL_REDUCE, "all_reduce", 1, IR_ANY, 1)                      \
    X(ALL_TO_ALL, "all_to_all", 1, IR_ANY, 0)                      \
    X(COLLECTIVE_BROADCAST, "collective_broadcast", 1, 1, 0)       \
    X(COLLECTIVE_PERMUTE, "collective_permute", 1, 1, 0)           \
    X(PARTITION_ID, "partition_id", 0, 0, 0)                       \
    X(REDUCE_SCATTER, "reduce_scatter", 1, 1, 1)                   \
    X(REPLICA_ID, "replica_id", 0, 0, 0)                           \
    /* checks of test programs, and parallel runs */               \
    X(EXPECT_EQ, "check.expect_eq", 1, 2, 0)                       \
    X(EXPECT_CLOSE, "check.expect_close", 1, 2, 0)                 \
    X(EXPECT_ALMOST_EQ, "check.expect_almost_eq", 1, 2, 0)         \
    X(RUN_PARALLEL, "interpreter.run_parallel", 0, IR_ANY, 0)
/* clang-format on */

enum ir_op_kind {
#define IR_OP(id, name, least, most, regions) IR_OP_##id,
    IR_OPS(IR_OP)
#undef IR_OP
        IR_OP_KINDS
};
const char *ir_op_name(enum ir_op_kind kind); /* as in IR_OPS; static storage */

#endif
