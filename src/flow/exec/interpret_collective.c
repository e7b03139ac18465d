/* interpret_collective.c - operations of a gang. Each is an all-gather of bytes within its group, followed by
 * the member's own work on the bytes of the others. */
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "flow/exec/fold.h"
#include "flow/exec/gang_threads.h"
#include "flow/exec/interpret.h"

/* The members of this process's group, by global id (replica * partitions + partition). */
struct members {
    uint32_t *ids;
    uint32_t count; /* 0: this process is in no group */
    uint32_t self;  /* its index among them */
};

static struct flow_gang *gang_of(struct interpretation *run)
{
    static struct flow_gang ALONE = {.replicas = 1, .partitions = 1};
    return run->gang ? run->gang : &ALONE;
}

/* The meaning of group ids (StableHLO specification, "Collective ops"). */
enum grouping {
    CROSS_REPLICA,               /* ids of replicas; the same partition */
    CROSS_PARTITION,             /* ids of partitions; the same replica */
    CROSS_REPLICA_AND_PARTITION, /* ids of replicas; all their partitions */
    FLATTENED,                   /* global ids */
};

static enum grouping grouping_of(const struct ir_op *op)
{
    const struct ir_groups *groups = &op->attributes.collective.groups;
    if (op->kind == IR_OP_ALL_TO_ALL || op->kind == IR_OP_COLLECTIVE_BROADCAST)
        return groups->channel > 0 ? CROSS_PARTITION : CROSS_REPLICA;
    if (groups->use_global_ids)
        return FLATTENED;
    return groups->channel > 0 ? CROSS_REPLICA_AND_PARTITION : CROSS_REPLICA;
}

static void member_add(struct members *members, uint32_t id, uint32_t own)
{
    if (id == own)
        members->self = members->count;
    members->ids[members->count++] = id;
}

/* Lists the processes of one row of group ids, in the order of the specification. */
static void members_of_row(const struct flow_gang *gang, enum grouping grouping, const int64_t *row,
                           uint32_t size, struct members *members)
{
    uint32_t own = gang->replica * gang->partitions + gang->partition;
    members->count = 0;
    members->self = UINT32_MAX;
    uint32_t rounds = grouping == CROSS_REPLICA_AND_PARTITION ? gang->partitions : 1;
    for (uint32_t round = 0; round < rounds; round++)
        for (uint32_t k = 0; k < size; k++) {
            if (row[k] < 0)
                continue;
            uint32_t id = (uint32_t)row[k];
            if (grouping == CROSS_REPLICA)
                id = id * gang->partitions + gang->partition;
            else if (grouping == CROSS_PARTITION)
                id = gang->replica * gang->partitions + id;
            else if (grouping == CROSS_REPLICA_AND_PARTITION)
                id = id * gang->partitions + round;
            member_add(members, id, own);
        }
}

/* Finds the group of this process. Without rows, all processes that the grouping covers form it. The caller
 * frees ids. */
static int members_find(struct interpretation *run, const struct ir_op *op, struct members *members)
{
    const struct flow_gang *gang = gang_of(run);
    const struct ir_groups *groups = &op->attributes.collective.groups;
    enum grouping grouping = grouping_of(op);
    uint32_t all = gang->replicas * gang->partitions;
    uint32_t every = grouping == FLATTENED         ? all
                     : grouping == CROSS_PARTITION ? gang->partitions
                                                   : gang->replicas;
    uint32_t widest = groups->count > 0 ? groups->size : every;
    int64_t *whole = calloc(every + 1, sizeof *whole);
    members->ids = calloc((size_t)widest * gang->partitions + 1, sizeof *members->ids);
    if (!whole || !members->ids) {
        free(whole), free(members->ids);
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the group");
    }
    for (uint32_t k = 0; k < every; k++)
        whole[k] = k;
    members->self = UINT32_MAX;
    if (groups->count == 0)
        members_of_row(gang, grouping, whole, every, members);
    for (uint32_t g = 0; g < groups->count && members->self == UINT32_MAX; g++)
        members_of_row(gang, grouping, groups->ids + (size_t)g * groups->size, groups->size, members);
    free(whole);
    if (members->self == UINT32_MAX)
        members->count = 0;
    for (uint32_t k = 0; k < members->count; k++) {
        uint32_t id = members->ids[k];
        if (id < all)
            continue;
        free(members->ids);
        return interpret_fail(run, op, ERROR_INVALID, "process %u is outside of %u replicas x %u partitions",
                              id, gang->replicas, gang->partitions);
    }
    return 0;
}

/* Gathers the bytes of a tensor from every member, in the group's order. The caller frees *all. */
static int gather_bytes(struct interpretation *run, const struct ir_op *op, const struct members *members,
                        const struct tensor *mine, char **all)
{
    struct flow_gang *gang = gang_of(run);
    size_t size = (size_t)ir_type_bytes(&mine->type);
    char *bytes = malloc(size * members->count + 1);
    if (!bytes)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for %u shards", members->count);
    int code = 0;
    uint64_t key = (*run->collectives)++;
    if (members->count > 1)
        code = gang->all_gather(gang, members->ids, members->count, key, mine->data, size, bytes, run->error);
    else if (size > 0)
        memcpy(bytes, mine->data, size);
    if (code < 0) {
        free(bytes);
        return error_wrap(run->error, "%s", ir_op_name(op->kind));
    }
    *all = bytes;
    return 0;
}

/* Returns a tensor over borrowed memory. */
static struct tensor tensor_over(const struct ir_type *type, void *data)
{
    return (struct tensor){.type = *type, .references = 1, .data = data};
}

/* --- all_gather */

/* Joins shards along a dimension. */
static void shards_join(const char *shards, const struct ir_type *shard, uint32_t count, int64_t dimension,
                        struct tensor *result)
{
    size_t row = ir_element_size(shard->element), rows = 1;
    for (int32_t d = (int32_t)dimension; d < shard->rank; d++)
        row *= (size_t)shard->dims[d];
    for (int32_t d = 0; d < dimension; d++)
        rows *= (size_t)shard->dims[d];
    for (size_t r = 0; r < rows && row > 0; r++)
        for (uint32_t k = 0; k < count; k++)
            memcpy((char *)result->data + (r * count + k) * row, shards + (k * rows + r) * row, row);
}

/* Copies part `part` of `count` of a tensor along a dimension. */
static void part_copy(const char *whole, const struct ir_type *type, int64_t dimension, uint32_t part,
                      uint32_t count, char *to)
{
    size_t row = ir_element_size(type->element), rows = 1;
    for (int32_t d = (int32_t)dimension; d < type->rank; d++)
        row *= (size_t)type->dims[d];
    for (int32_t d = 0; d < dimension; d++)
        rows *= (size_t)type->dims[d];
    for (size_t r = 0; r < rows && row > 0; r++)
        memcpy(to + r * (row / count), whole + r * row + part * (row / count), row / count);
}

typedef int member_work(struct interpretation *run, const struct ir_op *op, const struct members *members,
                        char *all, const struct ir_type *shard, struct tensor *result);

/* Gathers each operand, and lets the operation's own function make the result. */
static int collective_run(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                          struct tensor **results, member_work *work)
{
    struct members members;
    int code = members_find(run, op, &members);
    if (code < 0)
        return code;
    uint32_t made = 0;
    for (; made < op->result_count && code == 0; made++) {
        const struct tensor *operand = operands[made];
        char *all = NULL;
        if (!(results[made] = interpret_result(run, op, made)))
            code = ERROR_LIMIT;
        else if (members.count == 0) /* not in any group: zeros, as for collective_broadcast */
            memset(results[made]->data, 0, (size_t)ir_type_bytes(&results[made]->type));
        else if ((code = gather_bytes(run, op, &members, operand, &all)) == 0)
            code = work(run, op, &members, all, &operand->type, results[made]);
        free(all);
    }
    for (uint32_t k = 0; k < made && code < 0; k++)
        tensor_unref(results[k]);
    free(members.ids);
    return code;
}

static int all_gather_work(struct interpretation *run, const struct ir_op *op, const struct members *members,
                           char *all, const struct ir_type *shard, struct tensor *result)
{
    int64_t dimension = op->attributes.collective.dimension;
    if (result->type.dims[dimension] != shard->dims[dimension] * members->count)
        return interpret_fail(run, op, ERROR_INVALID,
                              "dimension %lld of the result has no room for %u members", (long long)dimension,
                              members->count);
    shards_join(all, shard, members->count, dimension, result);
    return 0;
}

int interpret_all_gather(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results)
{
    return collective_run(run, op, operands, results, all_gather_work);
}

/* --- all_reduce and reduce_scatter */

/* Folds all shards into the first, in the group's order, so that every member gets the same digits. */
static int shards_fold(struct interpretation *run, const struct ir_op *op, const struct members *members,
                       char *all, const struct ir_type *shard)
{
    struct folding folding;
    size_t size = (size_t)ir_type_bytes(shard);
    struct tensor sum = tensor_over(shard, all);
    int code = folding_begin(&folding, run, op, &op->regions[0], true);
    for (uint32_t k = 1; k < members->count && code == 0; k++) {
        struct tensor next = tensor_over(shard, all + k * size);
        code = fold_tensor(&folding, &next, &sum);
    }
    folding_end(&folding);
    return code;
}

static int all_reduce_work(struct interpretation *run, const struct ir_op *op, const struct members *members,
                           char *all, const struct ir_type *shard, struct tensor *result)
{
    int code = shards_fold(run, op, members, all, shard);
    if (code == 0)
        memcpy(result->data, all, (size_t)ir_type_bytes(shard));
    return code;
}

int interpret_all_reduce(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results)
{
    return collective_run(run, op, operands, results, all_reduce_work);
}

static int reduce_scatter_work(struct interpretation *run, const struct ir_op *op,
                               const struct members *members, char *all, const struct ir_type *shard,
                               struct tensor *result)
{
    int64_t dimension = op->attributes.collective.dimension;
    if (shard->dims[dimension] != result->type.dims[dimension] * members->count)
        return interpret_fail(run, op, ERROR_INVALID, "dimension %lld does not divide among %u members",
                              (long long)dimension, members->count);
    int code = shards_fold(run, op, members, all, shard);
    if (code == 0)
        part_copy(all, shard, dimension, members->self, members->count, result->data);
    return code;
}

int interpret_reduce_scatter(struct interpretation *run, const struct ir_op *op,
                             struct tensor *const *operands, struct tensor **results)
{
    return collective_run(run, op, operands, results, reduce_scatter_work);
}

/* --- all_to_all, collective_broadcast, collective_permute */

static int all_to_all_work(struct interpretation *run, const struct ir_op *op, const struct members *members,
                           char *all, const struct ir_type *shard, struct tensor *result)
{
    uint32_t count = members->count;
    int64_t split = op->attributes.collective.split_dimension;
    if (shard->dims[split] % count != 0 || op->attributes.collective.split_count != count)
        return interpret_fail(run, op, ERROR_INVALID, "split_count is %lld in a group of %u",
                              (long long)op->attributes.collective.split_count, count);
    struct ir_type part = *shard;
    part.dims[split] /= count;
    size_t size = (size_t)ir_type_bytes(shard), part_size = (size_t)ir_type_bytes(&part);
    char *parts = malloc(size + 1);
    if (!parts)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the parts");
    for (uint32_t k = 0; k < count; k++)
        part_copy(all + k * size, shard, split, members->self, count, parts + k * part_size);
    shards_join(parts, &part, count, op->attributes.collective.concat_dimension, result);
    free(parts);
    return 0;
}

int interpret_all_to_all(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                         struct tensor **results)
{
    return collective_run(run, op, operands, results, all_to_all_work);
}

static int broadcast_work(struct interpretation *run, const struct ir_op *op, const struct members *members,
                          char *all, const struct ir_type *shard, struct tensor *result)
{
    memcpy(result->data, all, (size_t)ir_type_bytes(shard));
    return 0;
}

int interpret_collective_broadcast(struct interpretation *run, const struct ir_op *op,
                                   struct tensor *const *operands, struct tensor **results)
{
    return collective_run(run, op, operands, results, broadcast_work);
}

/* Gives each target its source's tensor. A process that is not a target gets zeros. */
int interpret_permute(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                      struct tensor **results)
{
    struct flow_gang *gang = gang_of(run);
    bool partitions = op->attributes.permute.channel > 0;
    uint32_t own = partitions ? gang->partition : gang->replica,
             count = partitions ? gang->partitions : gang->replicas;
    struct members members = {.ids = calloc(count + 1, sizeof *members.ids), .count = count, .self = own};
    if (!members.ids)
        return interpret_fail(run, op, ERROR_LIMIT, "no memory for the group");
    for (uint32_t k = 0; k < count; k++)
        members.ids[k] =
            partitions ? gang->replica * gang->partitions + k : k * gang->partitions + gang->partition;
    struct tensor *result = interpret_result(run, op, 0);
    char *all = NULL;
    int code = result ? gather_bytes(run, op, &members, operands[0], &all) : ERROR_LIMIT;
    free(members.ids);
    if (!result)
        return code;
    size_t size = (size_t)ir_type_bytes(&result->type);
    memset(result->data, 0, size);
    for (uint32_t k = 0; k < op->attributes.permute.count && code == 0; k++) {
        const int64_t *pair = op->attributes.permute.pairs[k];
        if (pair[1] == own && pair[0] >= 0 && pair[0] < count)
            memcpy(result->data, all + (size_t)pair[0] * size, size);
    }
    free(all);
    if (code < 0)
        tensor_unref(result);
    else
        results[0] = result;
    return code;
}

int interpret_member_id(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                        struct tensor **results)
{
    struct tensor *result = interpret_result(run, op, 0);
    if (!result)
        return ERROR_LIMIT;
    *(uint32_t *)result->data =
        op->kind == IR_OP_REPLICA_ID ? gang_of(run)->replica : gang_of(run)->partition;
    results[0] = result;
    return 0;
}

/* --- run_parallel: a whole gang inside one function, for test programs */

int interpret_parallel(struct interpretation *run, const struct ir_op *op, struct tensor *const *operands,
                       struct tensor **results)
{
    return gang_threads_run(run, op, operands, results);
}
