/* interpreter.c - walks the blocks of a function: the reference for all other executors. */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/interpret.h"
#include "flow/exec/lanes.h"

/* Computes each kind of operation; NULL: return, which ends a block. */
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
    return error_set(run->error, code, "%.*s:%u:%u: %s%s: %s", STR_ARG(run->module->file), op->place.line,
                     op->place.column, strchr(ir_op_name(op->kind), '.') ? "" : "stablehlo.",
                     ir_op_name(op->kind), text);
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
    int64_t stride = ir_type_elements(type) > 0; /* the other dimensions of an empty tensor may be huge */
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
    tensor_unref(run->values[value->number]); /* left from the previous iteration */
    run->values[value->number] = tensor;
}

/* Frees the values whose last use is this operation. */
static void values_free(struct interpretation *run, const struct ir_op *op)
{
    const struct ir_op **last_use = run->plan->last_use;
    for (uint32_t k = 0; k < op->operand_count; k++)
        if (last_use[op->operands[k]->number] == op)
            value_set(run, op->operands[k], NULL);
    const struct plan_capture *captures = NULL;
    uint32_t count = op->region_count ? plan_captures(run->plan, op, &captures) : 0;
    for (uint32_t k = 0; k < count; k++)
        value_set(run, captures[k].value, NULL);
}

/* Charges the launch for the steps of an operation. Returns ERROR_LIMIT if too few are left. */
static int work_charge(struct interpretation *run, const struct ir_op *op)
{
    uint64_t steps = plan_work(op);
    if (steps > *run->work) {
        *run->work = 0;
        return interpret_fail(run, op, ERROR_LIMIT, "the launch is out of the work that it may do");
    }
    *run->work -= steps;
    return 0;
}

static int operation_compute(struct interpretation *run, const struct ir_op *op, struct tensor **operands,
                             struct tensor **results)
{
    for (uint32_t k = 0; k < op->operand_count; k++) {
        operands[k] = run->values[op->operands[k]->number];
        CHECK(operands[k] != NULL);
    }
    int code = run->work ? work_charge(run, op) : 0;
    if (code < 0)
        return code;
    code = 1;
    if (run->dense && (op->kind == IR_OP_DOT_GENERAL || op->kind == IR_OP_CONVOLUTION))
        code = run->dense->compute(run->dense, run, op, operands, results);
    return code == 1 ? COMPUTES[op->kind](run, op, operands, results) : code;
}

static int run_operation(struct interpretation *run, const struct ir_op *op)
{
    enum { FEW = 16 };
    struct tensor *few[FEW], **tensors = few; /* small, because operations nest on the stack */
    uint32_t count = op->operand_count + op->result_count;
    if (count > FEW && !(tensors = calloc(count, sizeof *tensors)))
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
    struct tensor **results = tensors + op->operand_count;
    int code = operation_compute(run, op, tensors, results);
    if (code == 0) {
        values_free(run, op);
        for (uint32_t k = 0; k < op->result_count; k++) {
            CHECK(ir_type_equal(&results[k]->type, &op->results[k].type));
            if (run->plan->last_use[op->results[k].number])
                value_set(run, &op->results[k], results[k]);
            else
                tensor_unref(results[k]); /* unused */
        }
    }
    if (tensors != few)
        free(tensors);
    return code;
}

int interpret_block(struct interpretation *run, const struct ir_block *block, struct tensor *const *args,
                    struct tensor **results)
{
    if (run->work && (*run->work)-- == 0) {
        *run->work = 0;
        return error_set(run->error, ERROR_LIMIT, "the launch is out of the work that it may do");
    }
    for (uint32_t k = 0; k < block->arg_count; k++)
        value_set(run, &block->args[k], tensor_ref(args[k]));
    const struct ir_op *op = block->first;
    for (; op && op->kind != IR_OP_RETURN; op = op->next) {
        int code = run_operation(run, op);
        if (code < 0)
            return code;
    }
    for (uint32_t k = 0; op && k < op->operand_count; k++)
        results[k] = tensor_ref(run->values[op->operands[k]->number]);
    if (op)
        values_free(run, op);
    for (uint32_t k = 0; k < block->arg_count; k++)
        value_set(run, &block->args[k], NULL); /* so that the caller can reuse their memory */
    return 0;
}

int interpret_function(struct interpretation *run, const struct ir_function *function,
                       struct tensor *const *args, struct tensor **results)
{
    struct interpretation inner = *run;
    inner.plan = plans_find(run->plans, function);
    inner.values = calloc(function->value_count + 1, sizeof *inner.values);
    if (!inner.values)
        return error_set(run->error, ERROR_LIMIT, "no memory for the values of @%.*s",
                         STR_ARG(function->name));
    int code = interpret_block(&inner, &function->body, args, results);
    for (uint32_t k = 0; k < function->value_count; k++)
        tensor_unref(inner.values[k]);
    free(inner.values);
    return code;
}

void interpret_launch(const struct plans *plans, const struct ir_function *function,
                      const struct dense *dense, const struct flow_launch *launch)
{
    struct flow_failure failure = {.island = UINT32_MAX, .device = UINT32_MAX, .incarnation = UINT32_MAX};
    uint64_t collectives = 0, work = launch->work_limit;
    struct tensor **results = calloc(function->result_count + 1, sizeof *results);
    struct interpretation run = {.module = plans->module,
                                 .plans = plans,
                                 .dense = dense,
                                 .gang = launch->gang,
                                 .work = work ? &work : NULL,
                                 .collectives = &collectives,
                                 .error = &failure.error};
    int code = results ? interpret_function(&run, function, launch->args, results)
                       : error_set(&failure.error, ERROR_LIMIT, "no memory for the results");
    if (code < 0)
        launch->done(launch->arg, NULL, 0, &failure);
    else
        launch->done(launch->arg, results, function->result_count, NULL);
    free(results);
}

/* --- the executor */

struct executable {
    const struct ir_function *function;
    struct plans plans;
};

static int interpreter_compile(const struct executor *executor, const struct ir_module *module,
                               const struct ir_function *function, struct executable **executable,
                               struct error *error)
{
    struct executable *made = malloc(sizeof *made);
    if (!made)
        return error_set(error, ERROR_LIMIT, "no memory for an executable");
    made->function = function;
    int code = plans_make(&made->plans, module, function, error);
    if (code < 0)
        free(made);
    else
        *executable = made;
    return code;
}

static void interpreter_launch(struct executable *executable, const struct flow_launch *launch)
{
    interpret_launch(&executable->plans, executable->function, NULL, launch);
}

static void interpreter_release(struct executable *executable)
{
    plans_free(&executable->plans);
    free(executable);
}

static int64_t interpreter_peak(const struct executable *executable)
{
    return plans_find(&executable->plans, executable->function)->peak;
}

static const struct executor INTERPRETER = {.name = "interpreter",
                                            .compile = interpreter_compile,
                                            .launch = interpreter_launch,
                                            .release = interpreter_release,
                                            .peak_bytes = interpreter_peak};

const struct executor *executor_named(const char *name)
{
    if (strcmp(name, INTERPRETER.name) == 0)
        return &INTERPRETER;
    return strcmp(name, "onednn") == 0 && executor_of_onednn ? executor_of_onednn() : NULL;
}
