/* plan_check.c - the operations that the interpreter supports, and the cost of a step. */
#include "base/check.h"
#include "flow/exec/custom.h"
#include "flow/exec/lanes.h"
#include "flow/exec/plan.h"

/* --- what can be computed */

/* For elementwise operations, the functions that compute them are called without elements. */
static const union lanes NONE;

static bool elementwise_known(const struct ir_op *op, enum ir_element element)
{
    union lanes none;
    if (op->kind == IR_OP_COMPLEX)
        return lane_class_of(element) == LANE_FLOAT;
    return op->operand_count == 1 ? lanes_unary(op->kind, element, &none, 0)
                                  : lanes_binary(op->kind, element, &none, &NONE, 0);
}

/* Whether the random bits are supported: a state of two or three words, and results of whole bytes. */
static bool random_known(const struct ir_op *op)
{
    int64_t words = op->operands[0]->type.dims[0];
    enum ir_element element = op->results[1].type.element;
    bool narrow =
        element == IR_I1 || element == IR_I2 || element == IR_U2 || element == IR_I4 || element == IR_U4;
    return (words == 2 || words == 3) && !narrow;
}

bool plan_supported(const struct ir_op *op, enum ir_element *what)
{
    enum ir_element element = op->operand_count  ? op->operands[0]->type.element
                              : op->result_count ? op->results[0].type.element
                                                 : IR_TOKEN;
    *what = element;
    if (op->kind <= IR_OP_XOR && op->kind != IR_OP_CONVERT && op->kind != IR_OP_COMPARE &&
        op->kind != IR_OP_REDUCE_PRECISION)
        return elementwise_known(op, element);
    switch (op->kind) {
    case IR_OP_CLAMP: {
        union lanes none;
        return lanes_binary(IR_OP_MAXIMUM, op->operands[1]->type.element, &none, &NONE, 0);
    }
    case IR_OP_CUSTOM_CALL:
        return custom_known(op);
    case IR_OP_RNG_BIT_GENERATOR:
        *what = op->results[1].type.element;
        return random_known(op);
    default:
        return true;
    }
}

/* --- costs */

static uint64_t add_capped(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? UINT64_MAX : sum;
}

static uint64_t multiply_capped(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? UINT64_MAX : product;
}

static uint64_t product_of(const int64_t *sizes, uint32_t count)
{
    uint64_t product = 1;
    for (uint32_t k = 0; k < count; k++)
        product = multiply_capped(product, (uint64_t)sizes[k]);
    return product;
}

/* Returns the steps for each element of the result. */
static uint64_t steps_each(const struct ir_op *op)
{
    const struct ir_type *first = &op->operands[0]->type;
    uint64_t steps = 1;
    switch (op->kind) {
    case IR_OP_DOT_GENERAL:
        for (uint32_t k = 0; k < op->attributes.dot.lhs_contract.count; k++)
            steps = multiply_capped(steps, (uint64_t)first->dims[op->attributes.dot.lhs_contract.items[k]]);
        return steps;
    case IR_OP_CONVOLUTION:
        return multiply_capped(
            product_of(op->attributes.conv.window.sizes.items, op->attributes.conv.window.sizes.count),
            (uint64_t)op->operands[1]->type.dims[op->attributes.conv.kernel_input_feature]);
    case IR_OP_REDUCE_WINDOW:
        return product_of(op->attributes.window.sizes.items, op->attributes.window.sizes.count);
    case IR_OP_CHOLESKY:
    case IR_OP_TRIANGULAR_SOLVE:
        return (uint64_t)first->dims[first->rank - 1];
    case IR_OP_FFT:
        for (uint32_t k = 0; k < op->attributes.fft.lengths.count; k++)
            steps = add_capped(steps, 16 * (uint64_t)op->attributes.fft.lengths.items[k]);
        return steps;
    case IR_OP_SORT:
        return 64;
    default:
        return 1;
    }
}

uint64_t plan_work(const struct ir_op *op)
{
    uint64_t steps = 1, each = op->operand_count ? steps_each(op) : 1;
    for (uint32_t k = 0; k < op->operand_count; k++)
        steps = add_capped(steps, (uint64_t)ir_type_elements(&op->operands[k]->type));
    for (uint32_t k = 0; k < op->result_count; k++)
        steps = add_capped(steps, multiply_capped((uint64_t)ir_type_elements(&op->results[k].type), each));
    if (op->kind == IR_OP_SELECT_AND_SCATTER) {
        uint64_t window = product_of(op->attributes.window.sizes.items, op->attributes.window.sizes.count);
        steps =
            add_capped(steps, multiply_capped((uint64_t)ir_type_elements(&op->operands[1]->type), window));
    }
    return steps;
}
