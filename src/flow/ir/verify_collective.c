/* verify_collective.c - operations among replicas and partitions. */
#include "flow/ir/verify.h"

static bool verify_groups(struct verifier *v)
{
    const struct ir_groups *groups = &v->op->attributes.collective.groups;
    uint64_t count = (uint64_t)groups->count * groups->size;
    if (count > IR_VALUES_MAX)
        return verify_fail(v, "replica_groups has more than %d ids", IR_VALUES_MAX);
    int64_t most = -1;
    for (uint64_t i = 0; i < count; i++) {
        if (groups->ids[i] < -1 || groups->ids[i] > INT32_MAX)
            return verify_fail(v, "replica_groups has the id %lld", (long long)groups->ids[i]);
        if (groups->ids[i] == -1 && i % groups->size == 0)
            return verify_fail(v, "replica_groups has an empty group");
        most = groups->ids[i] > most ? groups->ids[i] : most;
    }
    if (most >= (int64_t)count)
        return verify_fail(v, "replica_groups has the id %lld of %llu", (long long)most,
                           (unsigned long long)count);
    unsigned char *seen = mem_alloc((size_t)count + 1);
    bool twice = false;
    for (uint64_t i = 0; i < count; i++) {
        if (groups->ids[i] >= 0)
            twice |= seen[groups->ids[i]]++;
    }
    mem_free(seen);
    if (twice)
        return verify_fail(v, "replica_groups names an id twice");
    return !groups->use_global_ids || groups->channel > 0 ||
           verify_fail(v, "use_global_device_ids needs a channel above 0");
}

/* Checks that the results are the operands with one dimension scaled by numerator / denominator; 0: any
 * multiple. */
static bool verify_scaled(struct verifier *v, int64_t dimension, int64_t numerator, int64_t denominator)
{
    if (v->op->result_count != v->op->operand_count)
        return verify_fail(v, "%u operands, but %u results", v->op->operand_count, v->op->result_count);
    for (uint32_t i = 0; i < v->op->operand_count; i++) {
        struct ir_type wanted = *verify_operand(v, i);
        const struct ir_type *result = verify_result(v, i);
        if (!verify_axis(v, "the dimension", dimension, wanted.rank))
            return false;
        int64_t size = wanted.dims[dimension];
        if (denominator == 0 || numerator == 0) { /* the size of the groups is not known here */
            wanted.dims[dimension] = result->rank == wanted.rank ? result->dims[dimension] : size;
            if (numerator == 0 ? size && wanted.dims[dimension] % size
                               : wanted.dims[dimension] && size % wanted.dims[dimension])
                return verify_fail(v, "size %lld does not become %lld", (long long)size,
                                   (long long)wanted.dims[dimension]);
        } else {
            if (size % denominator || size > IR_ELEMENTS_MAX / numerator)
                return verify_fail(v, "size %lld of dimension %lld is no multiple of %lld", (long long)size,
                                   (long long)dimension, (long long)denominator);
            wanted.dims[dimension] = size / denominator * numerator;
        }
        if (!verify_is(v, "result", i, result, &wanted))
            return false;
    }
    return true;
}

static bool verify_all_to_all(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    int64_t count = a->collective.split_count;
    const struct ir_groups *groups = &a->collective.groups;
    if (count < 1 || count > IR_VALUES_MAX || (groups->count > 0 && groups->size != count))
        return verify_fail(v, "split_count is %lld, and a group has %u members", (long long)count,
                           groups->size);
    if (v->op->result_count != v->op->operand_count)
        return verify_fail(v, "%u operands, but %u results", v->op->operand_count, v->op->result_count);
    for (uint32_t i = 0; i < v->op->operand_count; i++) {
        struct ir_type wanted = *verify_operand(v, i);
        int64_t split = a->collective.split_dimension, concat = a->collective.concat_dimension;
        if (!verify_axis(v, "split_dimension", split, wanted.rank) ||
            !verify_axis(v, "concat_dimension", concat, wanted.rank))
            return false;
        if (wanted.dims[split] % count)
            return verify_fail(v, "size %lld of dimension %lld is no multiple of %lld",
                               (long long)wanted.dims[split], (long long)split, (long long)count);
        wanted.dims[split] /= count;
        if (wanted.dims[concat] > IR_ELEMENTS_MAX / count)
            return verify_fail(v, "the result is too large");
        wanted.dims[concat] *= count;
        if (!verify_is(v, "result", i, verify_result(v, i), &wanted))
            return false;
    }
    return true;
}

static bool verify_computation(struct verifier *v)
{
    const struct ir_type *first = verify_operand(v, 0), *pair[2] = {first, first};
    for (uint32_t i = 1; i < v->op->operand_count; i++) {
        if (verify_operand(v, i)->element != first->element)
            return verify_fail(v, "operand %u has another element type than operand 0", i);
    }
    return verify_region(v, 0, pair, 2, pair, 1, false);
}

static bool verify_permute(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    int64_t most = 0;
    for (uint32_t side = 0; side < 2; side++) {
        for (uint32_t i = 0; i < a->permute.count; i++) {
            int64_t id = a->permute.pairs[i][side];
            if (id < 0 || id > IR_VALUES_MAX)
                return verify_fail(v, "source_target_pairs has the id %lld", (long long)id);
            most = id > most ? id : most;
        }
    }
    unsigned char *seen = mem_alloc((size_t)most + 1);
    bool twice = false;
    for (uint32_t i = 0; i < a->permute.count; i++) {
        unsigned char *source = &seen[a->permute.pairs[i][0]], *target = &seen[a->permute.pairs[i][1]];
        twice |= *source & 1 || *target & 2;
        *source |= 1;
        *target |= 2;
    }
    mem_free(seen);
    return twice ? verify_fail(v, "source_target_pairs names a source or a target twice")
                 : verify_results_are_operands(v);
}

bool verify_collective(struct verifier *v)
{
    const union ir_attributes *a = &v->op->attributes;
    int64_t size = a->collective.groups.size;
    if (v->op->kind == IR_OP_PARTITION_ID || v->op->kind == IR_OP_REPLICA_ID)
        return verify_scalar(v, "result", 0, verify_result(v, 0), IR_U32);
    if (v->op->kind == IR_OP_COLLECTIVE_PERMUTE)
        return verify_permute(v);
    if (!verify_groups(v))
        return false;
    switch (v->op->kind) {
    case IR_OP_ALL_GATHER:
        return verify_scaled(v, a->collective.dimension, size, 1);
    case IR_OP_REDUCE_SCATTER:
        return verify_computation(v) && verify_scaled(v, a->collective.dimension, 1, size);
    case IR_OP_ALL_TO_ALL:
        return verify_all_to_all(v);
    case IR_OP_ALL_REDUCE:
        return verify_computation(v) && verify_results_are_operands(v);
    default:
        return verify_results_are_operands(v);
    }
}
