/* Shardings: the part of a value that each device of a mesh holds. */
#include "flow/ir/program.h"

uint32_t flow_mesh_devices(const struct flow_mesh *mesh)
{
    uint32_t count = 1;
    for (int32_t a = 0; a < mesh->rank; a++)
        count *= mesh->dims[a];
    return count;
}

int flow_sharding_verify(const struct ir_type *type, const struct flow_sharding *sharding,
                         const struct flow_mesh *mesh, struct error *error)
{
    if (type->rank < 0 || type->rank > IR_RANK_MAX || type->element >= IR_TOKEN)
        return error_set(error, ERROR_INVALID, "its type has no such rank or element");
    unsigned used = 0;
    for (int32_t d = 0; d < IR_RANK_MAX; d++) {
        unsigned axes = sharding->axes[d];
        if (axes && d >= type->rank)
            return error_set(error, ERROR_INVALID, "dimension %d of rank %d is divided", d, type->rank);
        if (axes >> mesh->rank)
            return error_set(error, ERROR_INVALID, "dimension %d is divided by an axis that mesh %u lacks", d,
                             mesh->id);
        if (axes & used)
            return error_set(error, ERROR_INVALID, "an axis of mesh %u divides two dimensions", mesh->id);
        used |= axes;
        if (d < type->rank && type->dims[d] % flow_sharding_parts(sharding, mesh, d) != 0)
            return error_set(error, ERROR_INVALID, "dimension %d of %lld does not divide by %u", d,
                             (long long)type->dims[d], flow_sharding_parts(sharding, mesh, d));
    }
    return 0;
}

uint32_t flow_sharding_parts(const struct flow_sharding *sharding, const struct flow_mesh *mesh, int32_t d)
{
    uint32_t parts = 1;
    for (int32_t a = 0; a < mesh->rank; a++)
        if (sharding->axes[d] & 1u << a)
            parts *= mesh->dims[a];
    return parts;
}

struct ir_type flow_shard_type(const struct ir_type *type, const struct flow_sharding *sharding,
                               const struct flow_mesh *mesh)
{
    struct ir_type shard = *type;
    for (int32_t d = 0; d < type->rank; d++)
        shard.dims[d] /= flow_sharding_parts(sharding, mesh, d);
    return shard;
}

struct flow_box flow_shard_box(const struct ir_type *type, const struct flow_sharding *sharding,
                               const struct flow_mesh *mesh, uint32_t device, uint32_t *ret_tile)
{
    uint32_t at[PROGRAM_MESH_RANK_MAX] = {0};
    for (int32_t a = mesh->rank - 1; a >= 0; a--) {
        at[a] = device % mesh->dims[a];
        device /= mesh->dims[a];
    }
    struct flow_box box = {0};
    uint32_t tile = 0;
    for (int32_t d = 0; d < type->rank; d++) {
        uint32_t parts = 1, part = 0;
        for (int32_t a = 0; a < mesh->rank; a++)
            if (sharding->axes[d] & 1u << a) {
                part = part * mesh->dims[a] + at[a];
                parts *= mesh->dims[a];
            }
        box.size[d] = type->dims[d] / parts;
        box.start[d] = part * box.size[d];
        tile = tile * parts + part;
    }
    if (ret_tile)
        *ret_tile = tile;
    return box;
}

bool flow_box_meet(const struct flow_box *a, const struct flow_box *b, int32_t rank, struct flow_box *ret)
{
    struct flow_box met = {0};
    for (int32_t d = 0; d < rank; d++) {
        int64_t end_a = a->start[d] + a->size[d], end_b = b->start[d] + b->size[d];
        int64_t start = a->start[d] > b->start[d] ? a->start[d] : b->start[d];
        int64_t end = end_a < end_b ? end_a : end_b;
        if (start >= end)
            return false;
        met.start[d] = start;
        met.size[d] = end - start;
    }
    *ret = met;
    return true;
}

int64_t flow_box_bytes(const struct ir_type *type, const struct flow_box *box)
{
    int64_t bytes = ir_element_size(type->element);
    for (int32_t d = 0; d < type->rank; d++)
        bytes *= box->size[d];
    return bytes;
}

void flow_box_copy(const struct ir_type *type, const struct flow_box *box, const void *from,
                   const struct flow_box *from_box, void *to, const struct flow_box *to_box)
{
    /* Rows: the longest run of inner dimensions that is contiguous on both sides is copied at once. */
    int32_t rank = type->rank, inner = rank;
    int64_t run = ir_element_size(type->element);
    while (inner > 0) {
        inner--;
        run *= box->size[inner];
        if (box->size[inner] != from_box->size[inner] || box->size[inner] != to_box->size[inner])
            break;
    }
    int64_t at[IR_RANK_MAX] = {0}, rows = 1;
    for (int32_t d = 0; d < inner; d++)
        rows *= box->size[d];
    for (int64_t row = 0; row < rows; row++) {
        int64_t source = 0, target = 0;
        for (int32_t d = 0; d < rank; d++) {
            source = source * from_box->size[d] + box->start[d] + at[d] - from_box->start[d];
            target = target * to_box->size[d] + box->start[d] + at[d] - to_box->start[d];
        }
        int64_t size = ir_element_size(type->element);
        mem_copy((char *)to + target * size, (const char *)from + source * size, (size_t)run);
        for (int32_t d = inner - 1; d >= 0 && ++at[d] == box->size[d]; d--)
            at[d] = 0;
    }
}
