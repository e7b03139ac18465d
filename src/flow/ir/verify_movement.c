/* verify_movement.c - operations that create, move and select elements. */
#include "flow/ir/verify.h"

static bool verify_bitcast(struct verifier *v)
{
    const struct ir_type *from = verify_operand(v, 0), *to = verify_result(v, 0);
    unsigned from_bits = ir_element_bits(from->element), to_bits = ir_element_bits(to->element);
    if (!verify_class(v, "operand", 0, from, ~(unsigned)CLASS_TOKEN) ||
        !verify_class(v, "result", 0, to, ~(unsigned)CLASS_TOKEN))
        return false;
    if ((element_class(from->element) == CLASS_COMPLEX) != (element_class(to->element) == CLASS_COMPLEX))
        return verify_fail(v, "complex numbers have only complex bits");
    if (from_bits == to_bits)
        return verify_same_shape(v, "result", 0, to, from);
    const struct ir_type *wide = from_bits > to_bits ? from : to, *narrow = wide == from ? to : from;
    struct ir_type wanted = *wide;
    unsigned ratio = ir_element_bits(wide->element) / ir_element_bits(narrow->element);
    if (wide->rank == IR_RANK_MAX)
        return verify_fail(v, "more than %d dimensions", IR_RANK_MAX);
    wanted.element = narrow->element;
    wanted.dims[wanted.rank++] = ratio;
    return verify_is(v, wide == from ? "result" : "operand", 0, narrow, &wanted);
}

static bool verify_broadcast(struct verifier *v)
{
    const struct ir_type *from = verify_operand(v, 0), *to = verify_result(v, 0);
    struct ir_ints dims = v->op->attributes.dims.dims;
    if (from->element != to->element)
        return verify_fail(v, "the result has another element type");
    if (dims.count != (uint32_t)from->rank)
        return verify_fail(v, "broadcast_dimensions has %u numbers, expected %d", dims.count,
                           (int)from->rank);
    if (!verify_dims(v, "broadcast_dimensions", dims, to->rank, false))
        return false;
    for (int32_t i = 0; i < from->rank; i++) {
        int64_t size = to->dims[dims.items[i]];
        if (from->dims[i] != 1 && from->dims[i] != size)
            return verify_fail(v, "dimension %d of size %lld cannot become one of size %lld", (int)i,
                               (long long)from->dims[i], (long long)size);
    }
    return true;
}

static bool verify_concatenate(struct verifier *v)
{
    struct ir_type wanted = *verify_operand(v, 0);
    int64_t axis = v->op->attributes.axis.dimension, sum = 0;
    if (!verify_axis(v, "dimension", axis, wanted.rank))
        return false;
    for (uint32_t i = 0; i < v->op->operand_count; i++) {
        const struct ir_type *type = verify_operand(v, i);
        if (type->rank == wanted.rank)
            wanted.dims[axis] = type->dims[axis];
        if (!verify_is(v, "operand", i, type, &wanted))
            return false;
        sum += type->dims[axis];
    }
    wanted.dims[axis] = sum;
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

static bool verify_starts(struct verifier *v, uint32_t first)
{
    int32_t rank = verify_operand(v, 0)->rank;
    if (v->op->operand_count != first + (uint32_t)rank)
        return verify_fail(v, "%u start indices, expected %d", v->op->operand_count - first, (int)rank);
    for (uint32_t i = first; i < v->op->operand_count; i++) {
        if (!verify_class(v, "operand", i, verify_operand(v, i), CLASS_INTEGER) ||
            !verify_scalar(v, "operand", i, verify_operand(v, i), verify_operand(v, first)->element))
            return false;
    }
    return true;
}

static bool verify_dynamic_slice(struct verifier *v)
{
    struct ir_type wanted = *verify_operand(v, 0);
    struct ir_ints sizes = v->op->attributes.dynamic_slice.sizes;
    if (!verify_starts(v, 1) || !verify_list(v, "slice_sizes", sizes, wanted.rank, 0))
        return false;
    for (int32_t i = 0; i < wanted.rank; i++) {
        if (sizes.items[i] > wanted.dims[i])
            return verify_fail(v, "slice_sizes has %lld for dimension %d of size %lld",
                               (long long)sizes.items[i], (int)i, (long long)wanted.dims[i]);
        wanted.dims[i] = sizes.items[i];
    }
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

static bool verify_dynamic_update(struct verifier *v)
{
    const struct ir_type *whole = verify_operand(v, 0), *update = verify_operand(v, 1);
    if (!verify_starts(v, 2))
        return false;
    if (update->rank != whole->rank || update->element != whole->element)
        return verify_fail(v, "the update has another rank or element type than the operand");
    for (int32_t i = 0; i < whole->rank; i++) {
        if (update->dims[i] > whole->dims[i])
            return verify_fail(v, "the update has size %lld in dimension %d of size %lld",
                               (long long)update->dims[i], (int)i, (long long)whole->dims[i]);
    }
    return verify_is(v, "result", 0, verify_result(v, 0), whole);
}

static bool verify_pad(struct verifier *v)
{
    struct ir_type wanted = *verify_operand(v, 0);
    struct ir_ints low = v->op->attributes.pad.low, high = v->op->attributes.pad.high;
    struct ir_ints interior = v->op->attributes.pad.interior;
    if (!verify_scalar(v, "operand", 1, verify_operand(v, 1), wanted.element) ||
        !verify_list(v, "edge_padding_low", low, wanted.rank, -IR_ELEMENTS_MAX) ||
        !verify_list(v, "edge_padding_high", high, wanted.rank, -IR_ELEMENTS_MAX) ||
        !verify_list(v, "interior_padding", interior, wanted.rank, 0))
        return false;
    for (int32_t i = 0; i < wanted.rank; i++) {
        __int128 size = wanted.dims[i];
        size += size > 0 ? (size - 1) * interior.items[i] : 0;
        size += low.items[i] + high.items[i];
        if (size < 0 || size > IR_ELEMENTS_MAX)
            return verify_fail(v, "the padding of dimension %d leaves no valid size", (int)i);
        wanted.dims[i] = (int64_t)size;
    }
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

static bool verify_reshape(struct verifier *v)
{
    const struct ir_type *from = verify_operand(v, 0), *to = verify_result(v, 0);
    if (from->element != to->element)
        return verify_fail(v, "the result has another element type");
    return ir_type_elements(from) == ir_type_elements(to) ||
           verify_fail(v, "%lld elements cannot be %lld", (long long)ir_type_elements(from),
                       (long long)ir_type_elements(to));
}

static bool verify_slice(struct verifier *v)
{
    struct ir_type wanted = *verify_operand(v, 0);
    struct ir_ints starts = v->op->attributes.slice.starts, limits = v->op->attributes.slice.limits;
    struct ir_ints strides = v->op->attributes.slice.strides;
    if (!verify_list(v, "start_indices", starts, wanted.rank, 0) ||
        !verify_list(v, "limit_indices", limits, wanted.rank, 0) ||
        !verify_list(v, "strides", strides, wanted.rank, 1))
        return false;
    for (int32_t i = 0; i < wanted.rank; i++) {
        int64_t start = starts.items[i], limit = limits.items[i], stride = strides.items[i];
        if (start > limit || limit > wanted.dims[i])
            return verify_fail(v, "%lld:%lld is no part of dimension %d of size %lld", (long long)start,
                               (long long)limit, (int)i, (long long)wanted.dims[i]);
        wanted.dims[i] = (limit - start + stride - 1) / stride;
    }
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

static bool verify_transpose(struct verifier *v)
{
    const struct ir_type *from = verify_operand(v, 0);
    struct ir_type wanted = *from;
    struct ir_ints dims = v->op->attributes.dims.dims;
    if (dims.count != (uint32_t)from->rank)
        return verify_fail(v, "permutation has %u numbers, expected %d", dims.count, (int)from->rank);
    if (!verify_dims(v, "permutation", dims, from->rank, false))
        return false;
    for (int32_t i = 0; i < from->rank; i++)
        wanted.dims[i] = from->dims[dims.items[i]];
    return verify_is(v, "result", 0, verify_result(v, 0), &wanted);
}

bool verify_movement(struct verifier *v)
{
    switch (v->op->kind) {
    case IR_OP_BITCAST_CONVERT:
        return verify_bitcast(v);
    case IR_OP_BROADCAST_IN_DIM:
        return verify_broadcast(v);
    case IR_OP_CONCATENATE:
        return verify_concatenate(v);
    case IR_OP_CONSTANT:
        return verify_class(v, "result", 0, verify_result(v, 0), ~(unsigned)CLASS_TOKEN) &&
               verify_is(v, "result", 0, verify_result(v, 0), &v->op->attributes.constant.type);
    case IR_OP_DYNAMIC_SLICE:
        return verify_dynamic_slice(v);
    case IR_OP_DYNAMIC_UPDATE_SLICE:
        return verify_dynamic_update(v);
    case IR_OP_IOTA:
        return verify_class(v, "result", 0, verify_result(v, 0), CLASS_NUMBER) &&
               verify_axis(v, "iota_dimension", v->op->attributes.axis.dimension, verify_result(v, 0)->rank);
    case IR_OP_PAD:
        return verify_pad(v);
    case IR_OP_RESHAPE:
        return verify_reshape(v);
    case IR_OP_REVERSE:
        return verify_dims(v, "dimensions", v->op->attributes.dims.dims, verify_operand(v, 0)->rank, false) &&
               verify_results_are_operands(v);
    case IR_OP_SLICE:
        return verify_slice(v);
    default:
        return verify_transpose(v);
    }
}
