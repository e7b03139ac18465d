/* dot.c - a dot_general as products of matrices. */
#include "flow/exec/dot.h"

#include "base/check.h"

/* The order of an operand's dimensions: batch first, then free and contracted ones, or these two swapped. */
struct dot_order {
    int64_t dims[IR_RANK_MAX];
    int32_t count;
};

static bool dims_name(const struct ir_ints *dims, int64_t d)
{
    for (uint32_t k = 0; k < dims->count; k++)
        if (dims->items[k] == d)
            return true;
    return false;
}

static void order_add(struct dot_order *order, const struct ir_ints *dims)
{
    for (uint32_t k = 0; k < dims->count; k++)
        order->dims[order->count++] = dims->items[k];
}

/* Adds the dimensions that are neither batch nor contracted; returns the product of their sizes. */
static int64_t order_add_free(struct dot_order *order, const struct ir_type *type,
                              const struct ir_ints *batch, const struct ir_ints *contract)
{
    int64_t size = 1;
    for (int32_t d = 0; d < type->rank; d++)
        if (!dims_name(batch, d) && !dims_name(contract, d)) {
            order->dims[order->count++] = d;
            size *= type->dims[d];
        }
    return size;
}

static int64_t dims_size(const struct ir_type *type, const struct ir_ints *dims)
{
    int64_t size = 1;
    for (uint32_t k = 0; k < dims->count; k++)
        size *= type->dims[dims->items[k]];
    return size;
}

struct dot_shape dot_shape_of(const struct ir_op *op)
{
    __typeof__(&op->attributes.dot) how = &op->attributes.dot;
    const struct ir_type *lhs = &op->operands[0]->type, *rhs = &op->operands[1]->type;
    struct dot_order unused = {.count = 0};
    struct dot_shape shape = {.batch = dims_size(lhs, &how->lhs_batch),
                              .inner = dims_size(lhs, &how->lhs_contract)};
    shape.rows = order_add_free(&unused, lhs, &how->lhs_batch, &how->lhs_contract);
    unused.count = 0;
    shape.columns = order_add_free(&unused, rhs, &how->rhs_batch, &how->rhs_contract);
    CHECK(shape.inner == dims_size(rhs, &how->rhs_contract));
    return shape;
}

/* Returns the operand with its dimensions in that order: a copy, or a reference if the order is the same. */
static struct tensor *dot_pack(struct tensor *operand, const struct dot_order *order)
{
    struct ir_type type = {.element = operand->type.element, .rank = operand->type.rank};
    int64_t strides[IR_RANK_MAX], of_operand[IR_RANK_MAX];
    bool sorted = true;
    CHECK(order->count == type.rank);
    strides_of(&operand->type, of_operand);
    for (int32_t d = 0; d < type.rank; d++) {
        type.dims[d] = operand->type.dims[order->dims[d]];
        strides[d] = of_operand[order->dims[d]];
        sorted = sorted && order->dims[d] == d;
    }
    if (sorted)
        return tensor_ref(operand);
    struct tensor *packed = tensor_new(&type);
    if (packed)
        strided_copy(packed, operand, 0, strides);
    return packed;
}

int dot_matrices_make(struct dot_matrices *dot, struct interpretation *run, const struct ir_op *op,
                      struct tensor *const *operands)
{
    __typeof__(&op->attributes.dot) how = &op->attributes.dot;
    struct dot_order left = {.count = 0}, right = {.count = 0};
    order_add(&left, &how->lhs_batch);
    order_add_free(&left, &operands[0]->type, &how->lhs_batch, &how->lhs_contract);
    order_add(&left, &how->lhs_contract);
    order_add(&right, &how->rhs_batch);
    order_add(&right, &how->rhs_contract);
    order_add_free(&right, &operands[1]->type, &how->rhs_batch, &how->rhs_contract);
    *dot = (struct dot_matrices){.shape = dot_shape_of(op)};
    dot->lhs = dot_pack(operands[0], &left);
    dot->rhs = dot_pack(operands[1], &right);
    if (dot->lhs && dot->rhs)
        return 0;
    dot_matrices_free(dot);
    return interpret_fail(run, op, ERROR_LIMIT, "no memory for the operands");
}

void dot_matrices_free(struct dot_matrices *dot)
{
    tensor_unref(dot->lhs);
    tensor_unref(dot->rhs);
}
