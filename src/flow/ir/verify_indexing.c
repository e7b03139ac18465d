/* verify_indexing.c - gather and scatter, which name dimensions in the same way. */
#include "flow/ir/verify.h"

/* The operands and dimension lists that both operations have, by gather's names. */
struct indexing {
    const struct ir_type *operand, *indices;
    struct ir_ints window_dims; /* offset_dims, update_window_dims: of the gathered or scattered tensor */
    struct ir_ints collapsed;   /* collapsed_slice_dims, inserted_window_dims */
    struct ir_ints operand_batching, indices_batching;
    struct ir_ints map; /* start_index_map, scatter_dims_to_operand_dims */
    int64_t vector_dim;
};

static bool verify_disjoint(struct verifier *v, const char *name, struct ir_ints a, struct ir_ints b)
{
    for (uint32_t i = 0; i < a.count; i++) {
        if (ir_ints_have(b, a.items[i]))
            return verify_fail(v, "%s names dimension %lld, which another list has", name,
                               (long long)a.items[i]);
    }
    return true;
}

static bool verify_indexing_batch(struct verifier *v, const struct indexing *x)
{
    if (x->operand_batching.count != x->indices_batching.count)
        return verify_fail(v, "the operand has %u batching dimensions, the indices have %u",
                           x->operand_batching.count, x->indices_batching.count);
    for (uint32_t i = 0; i < x->operand_batching.count; i++) {
        if (x->operand->dims[x->operand_batching.items[i]] != x->indices->dims[x->indices_batching.items[i]])
            return verify_fail(v, "batching dimension %u has two sizes", i);
    }
    return !ir_ints_have(x->indices_batching, x->vector_dim) ||
           verify_fail(v, "index_vector_dim is a batching dimension");
}

static bool verify_indexing_common(struct verifier *v, const struct indexing *x, int32_t window_rank)
{
    int32_t rank = x->operand->rank, indices_rank = x->indices->rank;
    if (!verify_class(v, "operand", v->op->kind == IR_OP_GATHER ? 1 : v->op->operand_count / 2, x->indices,
                      CLASS_INTEGER) ||
        !verify_axis(v, "index_vector_dim", x->vector_dim, (int64_t)indices_rank + 1) ||
        !verify_dims(v, "window dimensions", x->window_dims, window_rank, true) ||
        !verify_dims(v, "collapsed or inserted dimensions", x->collapsed, rank, true) ||
        !verify_dims(v, "operand batching dimensions", x->operand_batching, rank, true) ||
        !verify_dims(v, "indices batching dimensions", x->indices_batching, indices_rank, false) ||
        !verify_dims(v, "index map", x->map, rank, false) ||
        !verify_disjoint(v, "operand batching dimensions", x->operand_batching, x->collapsed) ||
        !verify_disjoint(v, "index map", x->map, x->operand_batching) || !verify_indexing_batch(v, x))
        return false;
    int64_t vector = x->vector_dim < indices_rank ? x->indices->dims[x->vector_dim] : 1;
    if (x->map.count != (uint64_t)vector)
        return verify_fail(v, "the index map has %u dimensions, an index has %lld", x->map.count,
                           (long long)vector);
    if (x->window_dims.count + x->collapsed.count + x->operand_batching.count != (uint32_t)rank)
        return verify_fail(v, "%u window, %u collapsed and %u batching dimensions are not the operand's %d",
                           x->window_dims.count, x->collapsed.count, x->operand_batching.count, (int)rank);
    int64_t batch = indices_rank - (x->vector_dim < indices_rank);
    return window_rank == batch + x->window_dims.count ||
           verify_fail(v, "rank %d, expected %lld", (int)window_rank,
                       (long long)(batch + x->window_dims.count));
}

/* Returns the type formed by the indices and the window's sizes, one for each kept dimension of the
 * operand. */
static struct ir_type indexing_type(const struct indexing *x, const int64_t *window, int32_t rank)
{
    struct ir_type type = {.element = x->operand->element, .rank = rank};
    int32_t at = 0;
    for (int32_t i = 0; i < rank; i++) {
        if (ir_ints_have(x->window_dims, i)) {
            type.dims[i] = *window++;
            continue;
        }
        if (at == x->vector_dim)
            at++;
        type.dims[i] = x->indices->dims[at++];
    }
    return type;
}

static bool verify_gather(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    struct indexing x = {verify_operand(v, 0),
                         verify_operand(v, 1),
                         a->gather.offset_dims,
                         a->gather.collapsed_slice_dims,
                         a->gather.operand_batching_dims,
                         a->gather.start_indices_batching_dims,
                         a->gather.start_index_map,
                         a->gather.index_vector_dim};
    const struct ir_type *result = verify_result(v, 0);
    int64_t window[IR_RANK_MAX];
    uint32_t count = 0;
    if (!verify_list(v, "slice_sizes", a->gather.slice_sizes, x.operand->rank, 0) ||
        !verify_indexing_common(v, &x, result->rank))
        return false;
    for (int32_t i = 0; i < x.operand->rank; i++) {
        int64_t size = a->gather.slice_sizes.items[i];
        bool kept = !ir_ints_have(x.collapsed, i) && !ir_ints_have(x.operand_batching, i);
        if (size > x.operand->dims[i] || (!kept && size > 1))
            return verify_fail(v, "slice_sizes has %lld for dimension %d of size %lld", (long long)size,
                               (int)i, (long long)x.operand->dims[i]);
        if (kept)
            window[count++] = size;
    }
    struct ir_type wanted = indexing_type(&x, window, result->rank);
    return verify_is(v, "result", 0, result, &wanted);
}

static bool verify_scatter_updates(struct verifier *v, const struct indexing *x, uint32_t inputs)
{
    const struct ir_type *update = verify_operand(v, inputs + 1);
    int64_t window[IR_RANK_MAX];
    uint32_t count = 0;
    for (int32_t i = 0; i < x->operand->rank; i++) {
        if (ir_ints_have(x->collapsed, i) || ir_ints_have(x->operand_batching, i))
            continue;
        int64_t size = update->dims[x->window_dims.items[count]];
        if (size > x->operand->dims[i])
            return verify_fail(v, "an update of size %lld for dimension %d of size %lld", (long long)size,
                               (int)i, (long long)x->operand->dims[i]);
        window[count++] = size;
    }
    struct ir_type wanted = indexing_type(x, window, update->rank);
    for (uint32_t i = 0; i < inputs; i++) {
        wanted.element = verify_operand(v, i)->element;
        if (!verify_is(v, "operand", inputs + 1 + i, verify_operand(v, inputs + 1 + i), &wanted))
            return false;
    }
    return true;
}

static bool verify_scatter(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    uint32_t inputs = v->op->operand_count / 2;
    const struct ir_type *elements[IR_OPERANDS_MAX];
    if (v->op->operand_count % 2 == 0 || v->op->operand_count > IR_OPERANDS_MAX ||
        v->op->result_count != inputs)
        return verify_fail(v, "%u operands and %u results: expected inputs, indices and as many updates",
                           v->op->operand_count, v->op->result_count);
    struct indexing x = {verify_operand(v, 0),
                         verify_operand(v, inputs),
                         a->scatter.update_window_dims,
                         a->scatter.inserted_window_dims,
                         a->scatter.input_batching_dims,
                         a->scatter.scatter_indices_batching_dims,
                         a->scatter.scatter_dims_to_operand_dims,
                         a->scatter.index_vector_dim};
    for (uint32_t i = 0; i < inputs; i++) {
        elements[i] = elements[inputs + i] = verify_operand(v, i);
        if (!verify_same_shape(v, "operand", i, verify_operand(v, i), x.operand) ||
            !verify_is(v, "result", i, verify_result(v, i), verify_operand(v, i)))
            return false;
    }
    return verify_indexing_common(v, &x, verify_operand(v, inputs + 1)->rank) &&
           verify_scatter_updates(v, &x, inputs) &&
           verify_region(v, 0, elements, 2 * inputs, elements, inputs, false);
}

bool verify_indexing(struct verifier *v)
{
    return v->op->kind == IR_OP_GATHER ? verify_gather(v) : verify_scatter(v);
}
