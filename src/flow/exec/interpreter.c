/* interpreter.c - walks the blocks of a function: the executor that every other one is compared with. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

/* What computes each kind of operation; NULL: return, which ends a block. */
static interpret_op *const COMPUTES[IR_OP_KINDS] = {
    [IR_OP_ABS] = interpret_unary,
    [IR_OP_CBRT] = interpret_unary,
    [IR_OP_CEIL] = interpret_unary,
    [IR_OP_CONVERT] = interpret_convert,
    [IR_OP_COSINE] = interpret_unary,
    [IR_OP_COUNT_LEADING_ZEROS] = interpret_unary,
    [IR_OP_EXPONENTIAL] = interpret_unary,
    [IR_OP_EXPONENTIAL_MINUS_ONE] = interpret_unary,
    [IR_OP_FLOOR] = interpret_unary,
    [IR_OP_IMAG] = interpret_unary,
    [IR_OP_IS_FINITE] = interpret_unary,
    [IR_OP_LOG] = interpret_unary,
    [IR_OP_LOG_PLUS_ONE] = interpret_unary,
    [IR_OP_LOGISTIC] = interpret_unary,
    [IR_OP_NEGATE] = interpret_unary,
    [IR_OP_NOT] = interpret_unary,
    [IR_OP_POPCNT] = interpret_unary,
    [IR_OP_REAL] = interpret_unary,
    [IR_OP_REDUCE_PRECISION] = interpret_precision,
    [IR_OP_ROUND_NEAREST_AFZ] = interpret_unary,
    [IR_OP_ROUND_NEAREST_EVEN] = interpret_unary,
    [IR_OP_RSQRT] = interpret_unary,
    [IR_OP_SIGN] = interpret_unary,
    [IR_OP_SINE] = interpret_unary,
    [IR_OP_SQRT] = interpret_unary,
    [IR_OP_TAN] = interpret_unary,
    [IR_OP_TANH] = interpret_unary,
    [IR_OP_ADD] = interpret_binary,
    [IR_OP_AND] = interpret_binary,
    [IR_OP_ATAN2] = interpret_binary,
    [IR_OP_COMPARE] = interpret_compare,
    [IR_OP_COMPLEX] = interpret_binary,
    [IR_OP_DIVIDE] = interpret_binary,
    [IR_OP_MAXIMUM] = interpret_binary,
    [IR_OP_MINIMUM] = interpret_binary,
    [IR_OP_MULTIPLY] = interpret_binary,
    [IR_OP_OR] = interpret_binary,
    [IR_OP_POWER] = interpret_binary,
    [IR_OP_REMAINDER] = interpret_binary,
    [IR_OP_SHIFT_LEFT] = interpret_binary,
    [IR_OP_SHIFT_RIGHT_ARITHMETIC] = interpret_binary,
    [IR_OP_SHIFT_RIGHT_LOGICAL] = interpret_binary,
    [IR_OP_SUBTRACT] = interpret_binary,
    [IR_OP_XOR] = interpret_binary,
    [IR_OP_CLAMP] = interpret_clamp,
    [IR_OP_SELECT] = interpret_select,
    [IR_OP_BITCAST_CONVERT] = interpret_bitcast,
    [IR_OP_BROADCAST_IN_DIM] = interpret_broadcast,
    [IR_OP_CONCATENATE] = interpret_concatenate,
    [IR_OP_CONSTANT] = interpret_constant,
    [IR_OP_DYNAMIC_SLICE] = interpret_dynamic_slice,
    [IR_OP_DYNAMIC_UPDATE_SLICE] = interpret_dynamic_update,
    [IR_OP_GATHER] = interpret_gather,
    [IR_OP_IOTA] = interpret_iota,
    [IR_OP_PAD] = interpret_pad,
    [IR_OP_RESHAPE] = interpret_reshape,
    [IR_OP_REVERSE] = interpret_reverse,
    [IR_OP_SCATTER] = interpret_scatter,
    [IR_OP_SLICE] = interpret_slice,
    [IR_OP_TRANSPOSE] = interpret_transpose,
    [IR_OP_BATCH_NORM_GRAD] = interpret_batch_norm_grad,
    [IR_OP_BATCH_NORM_INFERENCE] = interpret_batch_norm,
    [IR_OP_BATCH_NORM_TRAINING] = interpret_batch_norm_training,
    [IR_OP_CHOLESKY] = interpret_cholesky,
    [IR_OP_CONVOLUTION] = interpret_convolution,
    [IR_OP_DOT_GENERAL] = interpret_dot,
    [IR_OP_FFT] = interpret_fft,
    [IR_OP_MAP] = interpret_map,
    [IR_OP_REDUCE] = interpret_reduce,
    [IR_OP_REDUCE_WINDOW] = interpret_reduce_window,
    [IR_OP_RNG_BIT_GENERATOR] = interpret_rng,
    [IR_OP_SELECT_AND_SCATTER] = interpret_select_and_scatter,
    [IR_OP_SORT] = interpret_sort,
    [IR_OP_TRIANGULAR_SOLVE] = interpret_triangular,
    [IR_OP_AFTER_ALL] = interpret_token,
    [IR_OP_CALL] = interpret_call,
    [IR_OP_CASE] = interpret_case,
    [IR_OP_CUSTOM_CALL] = interpret_custom,
    [IR_OP_IF] = interpret_if,
    [IR_OP_OPTIMIZATION_BARRIER] = interpret_barrier,
    [IR_OP_WHILE] = interpret_while,
    [IR_OP_ALL_GATHER] = interpret_all_gather,
    [IR_OP_ALL_REDUCE] = interpret_all_reduce,
    [IR_OP_ALL_TO_ALL] = interpret_all_to_all,
    [IR_OP_COLLECTIVE_BROADCAST] = interpret_collective_broadcast,
    [IR_OP_COLLECTIVE_PERMUTE] = interpret_permute,
    [IR_OP_PARTITION_ID] = interpret_member_id,
    [IR_OP_REDUCE_SCATTER] = interpret_reduce_scatter,
    [IR_OP_REPLICA_ID] = interpret_member_id,
    [IR_OP_EXPECT_EQ] = interpret_expect,
    [IR_OP_EXPECT_CLOSE] = interpret_expect,
    [IR_OP_EXPECT_ALMOST_EQ] = interpret_expect,
    [IR_OP_RUN_PARALLEL] = interpret_parallel,
};

/* --- shared by the files of the interpreter */

int interpret_fail(struct interpretation *run, const struct ir_op *op, enum error_code code,
                   const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    return error_set(run->error, code, "%.*s:%u:%u: %s: %s", STR_ARG(run->module->file), op->place.line,
                     op->place.column, ir_op_name(op->kind), text);
}

struct tensor *interpret_result(struct interpretation *run, const struct ir_op *op, uint32_t index)
{
    CHECK(index < op->result_count);
    struct tensor *tensor = tensor_new(&op->results[index].type);
    if (!tensor)
        interpret_fail(run, op, ERROR_LIMIT, "no memory for %lld bytes",
                       (long long)ir_type_bytes(&op->results[index].type));
    return tensor;
}

void strides_of(const struct ir_type *type, int64_t strides[IR_RANK_MAX])
{
    int64_t stride = 1;
    for (int32_t d = type->rank; d-- > 0;) {
        strides[d] = stride;
        stride *= type->dims[d];
    }
}

bool index_next(int64_t *index, const int64_t *dims, int32_t rank)
{
    for (int32_t d = rank; d-- > 0;) {
        if (++index[d] < dims[d])
            return true;
        index[d] = 0;
    }
    return false;
}

int64_t tensor_integer(const struct tensor *tensor, int64_t at)
{
    union lanes lanes;
    lanes_load(&lanes, tensor->type.element, tensor->data, at, 0, 1);
    if (lane_class_of(tensor->type.element) == LANE_SIGNED)
        return lanes.i[0];
    return lanes.u[0] > INT64_MAX ? INT64_MAX : lanes.i[0];
}

/* --- blocks */

static void value_set(struct interpretation *run, const struct ir_value *value, struct tensor *tensor)
{
    tensor_unref(run->values[value->number]); /* of the iteration before */
    run->values[value->number] = tensor;
}

static int run_operation(struct interpretation *run, const struct ir_op *op)
{
    struct tensor *operands[IR_OPERANDS_MAX], *results[IR_OPERANDS_MAX];
    for (uint32_t i = 0; i < op->operand_count; i++) {
        operands[i] = run->values[op->operands[i]->number];
        CHECK(operands[i] != NULL);
    }
    int code = COMPUTES[op->kind](run, op, operands, results);
    if (code < 0)
        return code;
    for (uint32_t i = 0; i < op->result_count; i++) {
        CHECK(ir_type_equal(&results[i]->type, &op->results[i].type));
        value_set(run, &op->results[i], results[i]);
    }
    return 0;
}

int interpret_block(struct interpretation *run, const struct ir_block *block, struct tensor *const *args,
                    struct tensor **results)
{
    for (uint32_t i = 0; i < block->arg_count; i++)
        value_set(run, &block->args[i], tensor_ref(args[i]));
    const struct ir_op *op = block->first;
    for (; op && op->kind != IR_OP_RETURN; op = op->next) {
        int code = run_operation(run, op);
        if (code < 0)
            return code;
    }
    for (uint32_t i = 0; op && i < op->operand_count; i++)
        results[i] = tensor_ref(run->values[op->operands[i]->number]);
    for (uint32_t i = 0; i < block->arg_count; i++)
        value_set(run, &block->args[i], NULL); /* the caller may use their memory again */
    return 0;
}

int interpret_function(struct interpretation *run, const struct ir_function *function,
                       struct tensor *const *args, struct tensor **results)
{
    struct interpretation inner = *run;
    inner.values = calloc(function->value_count + 1, sizeof *inner.values);
    if (!inner.values)
        return error_set(run->error, ERROR_LIMIT, "no memory for the values of @%.*s",
                         STR_ARG(function->name));
    int code = interpret_block(&inner, &function->body, args, results);
    for (uint32_t i = 0; i < function->value_count; i++)
        tensor_unref(inner.values[i]);
    free(inner.values);
    return code;
}

/* --- the executor */

struct executable {
    const struct ir_module *module;
    const struct ir_function *function;
};

static int interpreter_compile(const struct executor *executor, const struct ir_module *module,
                               const struct ir_function *function, struct executable **executable,
                               struct error *error)
{
    struct executable *made = malloc(sizeof *made);
    if (!made)
        return error_set(error, ERROR_LIMIT, "no memory for an executable");
    *made = (struct executable){.module = module, .function = function};
    *executable = made;
    return 0;
}

static void interpreter_launch(struct executable *executable, const struct flow_launch *launch)
{
    const struct ir_function *function = executable->function;
    struct tensor *results[IR_OPERANDS_MAX];
    struct flow_failure failure = {.island = UINT32_MAX, .device = UINT32_MAX, .incarnation = UINT32_MAX};
    uint64_t collectives = 0;
    struct interpretation run = {.module = executable->module,
                                 .gang = launch->gang,
                                 .collectives = &collectives,
                                 .error = &failure.error};
    if (interpret_function(&run, function, launch->args, results) < 0)
        launch->done(launch->arg, NULL, 0, &failure);
    else
        launch->done(launch->arg, results, function->result_count, NULL);
}

static void interpreter_release(struct executable *executable)
{
    free(executable);
}

/* Every value of the function at once: the interpreter frees its values when the function ends. */
static int64_t block_bytes(const struct ir_block *block)
{
    int64_t bytes = 0;
    for (const struct ir_op *op = block->first; op; op = op->next) {
        for (uint32_t i = 0; i < op->result_count; i++)
            bytes += ir_type_bytes(&op->results[i].type);
        for (uint32_t i = 0; i < op->region_count; i++)
            bytes += block_bytes(&op->regions[i]);
    }
    return bytes;
}

static int64_t interpreter_peak(const struct executable *executable)
{
    return block_bytes(&executable->function->body);
}

static const struct executor INTERPRETER = {.name = "interpreter",
                                            .compile = interpreter_compile,
                                            .launch = interpreter_launch,
                                            .release = interpreter_release,
                                            .peak_bytes = interpreter_peak};

const struct executor *executor_named(const char *name)
{
    return strcmp(name, INTERPRETER.name) == 0 ? &INTERPRETER : NULL;
}
