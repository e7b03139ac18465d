/* interpret_move.c - operations that move elements without computing. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/fold.h"
#include "flow/exec/interpret.h"
#include "flow/exec/kernels.h"
#include "flow/exec/lanes.h"

/* Drops dimensions of size 1, and joins neighbours that are contiguous with each other. */
static int32_t dims_join(const struct ir_type *type, const int64_t *strides, int64_t *dims, int64_t *joined)
{
    int32_t rank = 0;
    for (int32_t d = 0; d < type->rank; d++) {
        if (type->dims[d] == 1)
            continue;
        if (rank > 0 && joined[rank - 1] == strides[d] * type->dims[d]) {
            dims[rank - 1] *= type->dims[d];
            joined[rank - 1] = strides[d];
            continue;
        }
        dims[rank] = type->dims[d];
        joined[rank++] = strides[d];
    }
    return rank;
}

void strided_copy(struct tensor *to, const struct tensor *from, int64_t offset, const int64_t *strides)
{
    int64_t elements = ir_type_elements(&to->type), index[IR_RANK_MAX] = {0};
    int64_t dims[IR_RANK_MAX], joined[IR_RANK_MAX];
    size_t size = ir_element_size(to->type.element);
    if (elements == 0)
        return;
    int32_t rank = dims_join(&to->type, strides, dims, joined);
    int64_t row = rank ? dims[rank - 1] : 1, step = rank ? joined[rank - 1] : 0;
    for (int64_t at = 0; at < elements; at += row) {
        int64_t source = offset;
        for (int32_t d = 0; d + 1 < rank; d++)
            source += index[d] * joined[d];
        kernel_copy(size, (const char *)from->data + source * (int64_t)size, step, row,
                    (char *)to->data + (size_t)at * size);
        index_next(index, dims, rank - 1);
    }
}

/* Fills a tensor with one element. */
static void tensor_fill(struct tensor *tensor, const struct tensor *scalar)
{
    kernel_copy(ir_element_size(tensor->type.element), scalar->data, 0, ir_type_elements(&tensor->type),
                tensor->data);
}

int interpret_constant(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                       struct tensor **results)
{
    results[0] = tensor_of_literal(&op->attributes.constant);
    return results[0] ? 0 : interpret_fail(run, op, ERROR_LIMIT, "no memory for the constant");
}

int interpret_iota(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                   struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t elements = ir_type_elements(&result->type), strides[IR_RANK_MAX];
    strides_of(&result->type, strides);
    int64_t dimension = op->attributes.axis.dimension, below = result->type.dims[dimension];
    enum ir_element element = result->type.element;
    for (int64_t first = 0; first < elements; first += LANES) {
        uint32_t count = lanes_count(elements, first);
        union lanes x;
        for (uint32_t k = 0; k < count; k++)
            x.i[k] = (first + k) / strides[dimension] % below;
        lanes_convert(&x, IR_I64, element, count);
        lanes_store(&x, element, result->data, first, count);
    }
    results[0] = result;
    return 0;
}

int interpret_reshape(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    mem_copy(result->data, operands[0]->data, (size_t)ir_type_bytes(&result->type));
    results[0] = result;
    return 0;
}

int interpret_broadcast(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                        struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const struct ir_type *type = &operands[0]->type;
    int64_t of_operand[IR_RANK_MAX], strides[IR_RANK_MAX] = {0};
    strides_of(type, of_operand);
    for (int32_t d = 0; d < type->rank; d++)
        if (type->dims[d] != 1)
            strides[op->attributes.dims.dims.items[d]] = of_operand[d];
    strided_copy(result, operands[0], 0, strides);
    results[0] = result;
    return 0;
}

int interpret_transpose(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                        struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t of_operand[IR_RANK_MAX], strides[IR_RANK_MAX];
    strides_of(&operands[0]->type, of_operand);
    for (int32_t d = 0; d < result->type.rank; d++)
        strides[d] = of_operand[op->attributes.dims.dims.items[d]];
    strided_copy(result, operands[0], 0, strides);
    results[0] = result;
    return 0;
}

int interpret_reverse(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t strides[IR_RANK_MAX], offset = 0;
    strides_of(&result->type, strides);
    const struct ir_ints *dims = &op->attributes.dims.dims;
    for (uint32_t k = 0; k < dims->count && ir_type_elements(&result->type) > 0; k++) {
        int64_t d = dims->items[k];
        offset += (result->type.dims[d] - 1) * strides[d];
        strides[d] = -strides[d];
    }
    strided_copy(result, operands[0], offset, strides);
    results[0] = result;
    return 0;
}

int interpret_slice(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                    struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t strides[IR_RANK_MAX], offset = 0;
    strides_of(&operands[0]->type, strides);
    for (int32_t d = 0; d < result->type.rank; d++) {
        offset += op->attributes.slice.starts.items[d] * strides[d];
        strides[d] *= op->attributes.slice.strides.items[d];
    }
    strided_copy(result, operands[0], offset, strides);
    results[0] = result;
    return 0;
}

/* Reads the starts of a dynamic slice: one scalar per dimension, clamped so that the slice is inside the
 * operand. */
static void dynamic_starts(const struct ir_type *operand, const struct ir_type *slice,
                           struct tensor *const *scalars, int64_t *starts)
{
    for (int32_t d = 0; d < operand->rank; d++) {
        int64_t start = tensor_integer(scalars[d], 0), most = operand->dims[d] - slice->dims[d];
        starts[d] = start < 0 ? 0 : start > most ? most : start;
    }
}

int interpret_dynamic_slice(struct interpretation *run, const struct ir_op *op,
                            struct tensor *const *operands, struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t starts[IR_RANK_MAX], strides[IR_RANK_MAX], offset = 0;
    dynamic_starts(&operands[0]->type, &result->type, operands + 1, starts);
    strides_of(&operands[0]->type, strides);
    for (int32_t d = 0; d < result->type.rank; d++)
        offset += starts[d] * strides[d];
    strided_copy(result, operands[0], offset, strides);
    results[0] = result;
    return 0;
}

/* Writes `from` to `to` at offset + index * strides, a row at a time. The last dimension is contiguous. */
static void strided_write(struct tensor *to, int64_t offset, const int64_t *strides,
                          const struct tensor *from)
{
    int64_t elements = ir_type_elements(&from->type), index[IR_RANK_MAX] = {0};
    int32_t rank = from->type.rank;
    size_t size = ir_element_size(to->type.element);
    int64_t row = rank ? from->type.dims[rank - 1] : 1;
    for (int64_t at = 0; at < elements; at += row) {
        int64_t target = offset;
        for (int32_t d = 0; d + 1 < rank; d++)
            target += index[d] * strides[d];
        memcpy((char *)to->data + (size_t)target * size, (const char *)from->data + (size_t)at * size,
               (size_t)row * size);
        index_next(index, from->type.dims, rank - 1);
    }
}

int interpret_dynamic_update(struct interpretation *run, const struct ir_op *op,
                             struct tensor *const *operands, struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const struct tensor *update = operands[1];
    int64_t starts[IR_RANK_MAX], strides[IR_RANK_MAX], offset = 0;
    memcpy(result->data, operands[0]->data, (size_t)ir_type_bytes(&result->type));
    dynamic_starts(&result->type, &update->type, operands + 2, starts);
    strides_of(&result->type, strides);
    for (int32_t d = 0; d < result->type.rank; d++)
        offset += starts[d] * strides[d];
    strided_write(result, offset, strides, update);
    results[0] = result;
    return 0;
}

int interpret_concatenate(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                          struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    int64_t strides[IR_RANK_MAX], from = 0, dimension = op->attributes.axis.dimension;
    strides_of(&result->type, strides);
    for (uint32_t k = 0; k < op->operand_count; k++) {
        strided_write(result, from * strides[dimension], strides, operands[k]);
        from += operands[k]->type.dims[dimension];
    }
    results[0] = result;
    return 0;
}

/* Pads. Interior padding spreads the operand; edge padding, which may be negative, shifts and crops it. */
int interpret_pad(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                  struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const struct tensor *operand = operands[0];
    int64_t strides[IR_RANK_MAX], index[IR_RANK_MAX] = {0};
    tensor_fill(result, operands[1]);
    strides_of(&result->type, strides);
    int64_t elements = ir_type_elements(&operand->type);
    for (int64_t at = 0; at < elements; at++) {
        int64_t target = 0;
        bool inside = true;
        for (int32_t d = 0; d < operand->type.rank; d++) {
            int64_t to =
                op->attributes.pad.low.items[d] + index[d] * (op->attributes.pad.interior.items[d] + 1);
            inside = inside && to >= 0 && to < result->type.dims[d];
            target += inside ? to * strides[d] : 0;
        }
        if (inside)
            element_copy(result, target, operand, at);
        index_next(index, operand->type.dims, operand->type.rank);
    }
    results[0] = result;
    return 0;
}

/* Returns the element of `indices` at `batch` (the index without index_vector_dim) and component `k`. */
static int64_t index_component(const struct tensor *indices, const int64_t *batch, int64_t vector_dim,
                               int64_t k)
{
    int64_t at = 0, next = 0;
    for (int32_t d = 0; d < indices->type.rank; d++)
        at = at * indices->type.dims[d] + (d == vector_dim ? k : batch[next++]);
    return tensor_integer(indices, at);
}

/* Returns the position of batching dimension `d` of start_indices among its dimensions without
 * index_vector_dim. */
static int64_t batch_position(int64_t d, int64_t vector_dim)
{
    return d < vector_dim ? d : d - 1;
}

int interpret_gather(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                     struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    const struct tensor *operand = operands[0], *indices = operands[1];
    __typeof__(&op->attributes.gather) how = &op->attributes.gather;
    int64_t strides[IR_RANK_MAX], index[IR_RANK_MAX] = {0}, elements = ir_type_elements(&result->type);
    strides_of(&operand->type, strides);
    for (int64_t at = 0; at < elements; at++) {
        int64_t batch[IR_RANK_MAX] = {0}, source[IR_RANK_MAX] = {0}, from = 0;
        uint32_t batches = 0, offsets = 0;
        for (int32_t d = 0; d < result->type.rank; d++)
            if (!ir_ints_have(how->offset_dims, d))
                batch[batches++] = index[d];
        for (uint32_t k = 0; k < how->start_index_map.count; k++) {
            int64_t d = how->start_index_map.items[k];
            int64_t start = index_component(indices, batch, how->index_vector_dim, k);
            int64_t most = operand->type.dims[d] - how->slice_sizes.items[d];
            source[d] = start < 0 ? 0 : start > most ? most : start;
        }
        for (uint32_t k = 0; k < how->operand_batching_dims.count; k++)
            source[how->operand_batching_dims.items[k]] +=
                batch[batch_position(how->start_indices_batching_dims.items[k], how->index_vector_dim)];
        for (int32_t d = 0; d < operand->type.rank; d++) {
            if (!ir_ints_have(how->collapsed_slice_dims, d) && !ir_ints_have(how->operand_batching_dims, d))
                source[d] += index[how->offset_dims.items[offsets++]];
            from += source[d] * strides[d];
        }
        element_copy(result, at, operand, from);
        index_next(index, result->type.dims, result->type.rank);
    }
    results[0] = result;
    return 0;
}

/* Returns the position of the update at `index` in the input, or -1 if it is outside and therefore
 * dropped. */
static int64_t scatter_target(const struct ir_op *op, const struct ir_type *input,
                              const struct tensor *indices, const int64_t *index, int32_t update_rank)
{
    __typeof__(&op->attributes.scatter) how = &op->attributes.scatter;
    int64_t batch[IR_RANK_MAX] = {0}, to[IR_RANK_MAX] = {0}, at = 0;
    uint32_t batches = 0, windows = 0;
    for (int32_t d = 0; d < update_rank; d++)
        if (!ir_ints_have(how->update_window_dims, d))
            batch[batches++] = index[d];
    for (uint32_t k = 0; k < how->scatter_dims_to_operand_dims.count; k++)
        to[how->scatter_dims_to_operand_dims.items[k]] =
            index_component(indices, batch, how->index_vector_dim, k);
    for (uint32_t k = 0; k < how->input_batching_dims.count; k++)
        to[how->input_batching_dims.items[k]] +=
            batch[batch_position(how->scatter_indices_batching_dims.items[k], how->index_vector_dim)];
    for (int32_t d = 0; d < input->rank; d++) {
        if (to[d] < -input->dims[d] || to[d] > input->dims[d]) /* far outside: the sum below could overflow */
            return -1;
        if (!ir_ints_have(how->inserted_window_dims, d) && !ir_ints_have(how->input_batching_dims, d))
            to[d] += index[how->update_window_dims.items[windows++]];
        if (to[d] < 0 || to[d] >= input->dims[d])
            return -1;
        at = at * input->dims[d] + to[d];
    }
    return at;
}

int interpret_scatter(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    uint32_t inputs = op->operand_count / 2, made = 0;
    int code = 0;
    for (; made < inputs && code == 0; made++) {
        results[made] = interpret_result(run, op, made);
        if (!results[made])
            code = ERROR_LIMIT;
        else
            memcpy(results[made]->data, operands[made]->data, (size_t)ir_type_bytes(&results[made]->type));
    }
    const struct tensor *indices = operands[inputs], *updates = operands[inputs + 1];
    int64_t index[IR_RANK_MAX] = {0}, elements = ir_type_elements(&updates->type);
    struct folding folding = {0};
    if (code == 0)
        code = folding_begin(&folding, run, op, &op->regions[0], true);
    for (int64_t from = 0; from < elements && code == 0; from++) {
        int64_t to = scatter_target(op, &operands[0]->type, indices, index, updates->type.rank);
        if (to >= 0)
            code = fold_element(&folding, operands + inputs + 1, from, results, to);
        index_next(index, updates->type.dims, updates->type.rank);
    }
    folding_end(&folding);
    for (uint32_t k = 0; k < made && code < 0; k++)
        tensor_unref(results[k]);
    return code;
}
