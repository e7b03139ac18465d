#include "job/checkpoint/reshard.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"

/* A part of a region in the checkpoint. */
struct part {
    bool known;
    uint32_t rank;   /* the rank whose shard contains it */
    uint64_t len;    /* elements along the axis */
    uint64_t offset; /* of its bytes in the shard's data */
};

struct wanted {
    const struct safetensors_region *own; /* as registered */
    uint8_t *memory;
    /* as the checkpoint has it */
    struct part *parts; /* [count]; NULL: no shard was seen with it */
    uint32_t axis, count, known;
    uint64_t shape[PHX_REGION_DIMS_MAX]; /* of the whole region; along the axis only once planned */
    uint64_t begin;                      /* where the own part begins along own->axis; once planned */
};

/* An old part that overlaps the wanted part. */
struct piece {
    uint32_t rank, wanted, part;
    uint64_t begin; /* of the part along its axis */
};

struct reshard {
    struct safetensors own;
    struct wanted *wanted; /* by name */
    size_t count;
    size_t incomplete;    /* number of wanted regions with unknown parts */
    struct piece *pieces; /* by rank */
    size_t piece_count, piece_cap, filled;
};

static int by_name(const void *left, const void *right)
{
    const struct wanted *a = left, *b = right;
    return strcmp(a->own->name, b->own->name);
}

static int by_rank(const void *left, const void *right)
{
    const struct piece *a = left, *b = right;
    return a->rank != b->rank ? (a->rank < b->rank ? -1 : 1)
                              : (a->wanted > b->wanted) - (a->wanted < b->wanted);
}

int reshard_new(const struct job_regions *regions, struct reshard **ret_reshard, struct phx_error *error)
{
    struct reshard *reshard = calloc(1, sizeof *reshard);
    if (reshard == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    int status = safetensors_read(regions->parts[0].iov_base, regions->parts[0].iov_len, regions->len,
                                  "what is registered", &reshard->own, error);
    reshard->wanted = calloc(reshard->own.count + 1, sizeof *reshard->wanted);
    if (status == 0 && reshard->wanted == NULL)
        status = job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    if (status != 0) {
        reshard_free(reshard);
        return status;
    }
    reshard->count = reshard->own.count;
    for (size_t i = 0; i < reshard->count; i++)
        reshard->wanted[i] =
            (struct wanted){.own = &reshard->own.regions[i], .memory = regions->parts[i + 1].iov_base};
    qsort(reshard->wanted, reshard->count, sizeof *reshard->wanted, by_name);
    reshard->incomplete = reshard->count;
    *ret_reshard = reshard;
    return 0;
}

void reshard_free(struct reshard *reshard)
{
    if (reshard == NULL)
        return;
    for (size_t i = 0; reshard->wanted != NULL && i < reshard->count; i++)
        free(reshard->wanted[i].parts);
    free(reshard->wanted);
    free(reshard->pieces);
    safetensors_done(&reshard->own);
    free(reshard);
}

bool reshard_complete(const struct reshard *reshard)
{
    return reshard->incomplete == 0;
}

/* ---- the parts in the checkpoint ---- */

static struct wanted *find(struct reshard *reshard, const char *name)
{
    struct wanted key = {.own = &(struct safetensors_region){.name = name}};
    return bsearch(&key, reshard->wanted, reshard->count, sizeof key, by_name);
}

/* Takes the region's split from the first shard that contains it. */
static int begin_region(struct wanted *wanted, const struct safetensors_region *region,
                        struct phx_error *error)
{
    const struct safetensors_region *own = wanted->own;
    if (region->dtype != own->dtype || region->dims != own->dims)
        return job_fail(error, PHX_ERROR_INVALID,
                        "region %.100s is %s of %u dimensions in the checkpoint, here %s of %u", own->name,
                        safetensors_dtypes[region->dtype].name, region->dims,
                        safetensors_dtypes[own->dtype].name, own->dims);
    wanted->parts = calloc(region->count, sizeof *wanted->parts);
    if (wanted->parts == NULL)
        return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
    wanted->axis = region->count > 1 ? region->axis : 0;
    wanted->count = region->count;
    memcpy(wanted->shape, region->shape, sizeof wanted->shape);
    return 0;
}

static bool agrees(const struct wanted *wanted, const struct safetensors_region *region)
{
    const struct part *part = &wanted->parts[region->index];
    if (region->dtype != wanted->own->dtype || region->dims != wanted->own->dims ||
        region->count != wanted->count || (region->count > 1 && region->axis != wanted->axis))
        return false;
    for (uint32_t d = 0; d < region->dims; d++)
        if (region->shape[d] != wanted->shape[d] && (d != wanted->axis || wanted->count == 1))
            return false;
    return !part->known || region->dims == 0 || part->len == region->shape[wanted->axis];
}

static int add_part(struct reshard *reshard, struct wanted *wanted, uint32_t rank,
                    const struct safetensors_region *region, struct phx_error *error)
{
    int status = wanted->parts == NULL ? begin_region(wanted, region, error) : 0;
    if (status != 0)
        return status;
    if (!agrees(wanted, region))
        return job_fail(error, PHX_ERROR_CORRUPT,
                        "region %.120s: rank %u's shard describes it differently from other shards",
                        region->name, rank);
    struct part *part = &wanted->parts[region->index];
    if (part->known) /* replicas are equal */
        return 0;
    *part = (struct part){true, rank, region->dims > 0 ? region->shape[wanted->axis] : 1, region->begin};
    if (++wanted->known == wanted->count)
        reshard->incomplete--;
    return 0;
}

int reshard_add(struct reshard *reshard, uint32_t rank, const struct safetensors *tensors,
                struct phx_error *error)
{
    int status = 0;
    for (size_t i = 0; i < tensors->count && status == 0; i++) {
        struct wanted *wanted = find(reshard, tensors->regions[i].name);
        if (wanted != NULL)
            status = add_part(reshard, wanted, rank, &tensors->regions[i], error);
    }
    return status;
}

size_t reshard_pass_over(struct reshard *reshard)
{
    size_t count = 0;
    for (size_t i = 0; i < reshard->count; i++)
        if (reshard->wanted[i].parts != NULL)
            reshard->wanted[count++] = reshard->wanted[i];
    reshard->incomplete -= reshard->count - count;
    reshard->count = count;
    return count;
}

/* ---- the plan ---- */

static int check_parts(struct wanted *wanted, struct phx_error *error)
{
    uint64_t len = 0;
    if (wanted->parts == NULL)
        return job_fail(error, PHX_ERROR_INVALID, "the checkpoint has no region %.120s", wanted->own->name);
    for (uint32_t i = 0; i < wanted->count; i++) {
        if (!wanted->parts[i].known)
            return job_fail(error, PHX_ERROR_CORRUPT, "region %.120s: part %u of %u is in no shard",
                            wanted->own->name, i, wanted->count);
        if (__builtin_add_overflow(len, wanted->parts[i].len, &len))
            return job_fail(error, PHX_ERROR_CORRUPT, "region %.120s: its parts are too long",
                            wanted->own->name);
    }
    if (wanted->own->dims > 0)
        wanted->shape[wanted->axis] = len;
    return 0;
}

static int fail_shape(const struct wanted *wanted, uint32_t dim, uint64_t expected, struct phx_error *error)
{
    const struct safetensors_region *own = wanted->own;
    char part[64] = "";
    if (own->count > 1)
        snprintf(part, sizeof part, " for part %u of %u along axis %u", own->index, own->count, own->axis);
    return job_fail(error, PHX_ERROR_INVALID,
                    "region %.90s: the checkpoint has %llu along dimension %u%s, here are %llu", own->name,
                    (unsigned long long)expected, dim, part, (unsigned long long)own->shape[dim]);
}

/* Finds where the own part begins, and checks that its shape fits the whole region. */
static int place_own(struct wanted *wanted, struct phx_error *error)
{
    const struct safetensors_region *own = wanted->own;
    for (uint32_t d = 0; d < own->dims; d++) {
        uint64_t expected = wanted->shape[d];
        if (own->count > 1 && d == own->axis) {
            uint64_t each = expected / own->count, more = expected % own->count;
            wanted->begin = own->index * each + (own->index < more ? own->index : more);
            expected = each + (own->index < more);
        }
        if (own->shape[d] != expected)
            return fail_shape(wanted, d, expected, error);
    }
    return 0;
}

/* The box of elements that an old part and the own part share. */
struct box {
    /* its origin in the old part, and in the own part */
    uint64_t from[PHX_REGION_DIMS_MAX], to[PHX_REGION_DIMS_MAX];
    uint64_t from_shape[PHX_REGION_DIMS_MAX];
    uint64_t len[PHX_REGION_DIMS_MAX];
};

/* Computes the box of an old part and the own part. Returns false if they share nothing. */
static bool intersect(const struct wanted *wanted, uint32_t index, uint64_t begin, struct box *ret_box)
{
    const struct safetensors_region *own = wanted->own;
    for (uint32_t d = 0; d < own->dims; d++) {
        bool cut = d == wanted->axis, own_cut = own->count > 1 && d == own->axis;
        uint64_t low = cut ? begin : 0, own_low = own_cut ? wanted->begin : 0;
        ret_box->from_shape[d] = cut ? wanted->parts[index].len : wanted->shape[d];
        uint64_t high = low + ret_box->from_shape[d], own_high = own_low + own->shape[d];
        uint64_t first = low > own_low ? low : own_low, end = high < own_high ? high : own_high;
        if (first >= end)
            return false;
        ret_box->from[d] = first - low;
        ret_box->to[d] = first - own_low;
        ret_box->len[d] = end - first;
    }
    return true;
}

static int add_piece(struct reshard *reshard, const struct piece *piece, struct phx_error *error)
{
    if (reshard->piece_count == reshard->piece_cap) {
        size_t cap = reshard->piece_cap == 0 ? 64 : 2 * reshard->piece_cap;
        struct piece *more = reallocarray(reshard->pieces, cap, sizeof *more);
        if (more == NULL)
            return job_fail(error, PHX_ERROR_MEMORY, "out of memory");
        reshard->pieces = more;
        reshard->piece_cap = cap;
    }
    reshard->pieces[reshard->piece_count++] = *piece;
    return 0;
}

static int plan_region(struct reshard *reshard, size_t index, struct phx_error *error)
{
    struct wanted *wanted = &reshard->wanted[index];
    uint64_t begin = 0;
    struct box box;
    int status = check_parts(wanted, error);
    if (status == 0)
        status = place_own(wanted, error);
    for (uint32_t i = 0; i < wanted->count && status == 0; begin += wanted->parts[i++].len) {
        struct piece piece = {wanted->parts[i].rank, (uint32_t)index, i, begin};
        if (intersect(wanted, i, begin, &box))
            status = add_piece(reshard, &piece, error);
    }
    return status;
}

int reshard_plan(struct reshard *reshard, struct phx_error *error)
{
    int status = 0;
    for (size_t i = 0; i < reshard->count && status == 0; i++)
        status = plan_region(reshard, i, error);
    if (status == 0 && reshard->piece_count > 0)
        qsort(reshard->pieces, reshard->piece_count, sizeof *reshard->pieces, by_rank);
    return status;
}

/* ---- the data ---- */

bool reshard_next(const struct reshard *reshard, uint32_t *ret_rank)
{
    if (reshard->filled == reshard->piece_count)
        return false;
    *ret_rank = reshard->pieces[reshard->filled].rank;
    return true;
}

/* Copies a box of elements, row by row: the last dimensions that are whole on both sides are one run. */
static void copy_box(const struct wanted *wanted, const struct box *box, const uint8_t *from)
{
    const struct safetensors_region *own = wanted->own;
    uint64_t at[PHX_REGION_DIMS_MAX] = {0}, run = safetensors_dtypes[own->dtype].size;
    uint32_t outer = own->dims; /* dimensions that are iterated */
    bool whole = true;
    while (outer > 0 && whole) {
        outer--;
        run *= box->len[outer];
        whole = box->len[outer] == own->shape[outer] && box->len[outer] == box->from_shape[outer];
    }
    for (;;) {
        uint64_t source = 0, target = 0;
        for (uint32_t d = 0; d < own->dims; d++) {
            source = source * box->from_shape[d] + box->from[d] + at[d];
            target = target * own->shape[d] + box->to[d] + at[d];
        }
        size_t size = safetensors_dtypes[own->dtype].size;
        memcpy(wanted->memory + target * size, from + source * size, run);
        uint32_t d = outer;
        while (d > 0 && ++at[d - 1] == box->len[d - 1])
            at[--d] = 0;
        if (d == 0)
            return;
    }
}

static uint64_t part_size(const struct wanted *wanted, const struct box *box)
{
    uint64_t size = safetensors_dtypes[wanted->own->dtype].size;
    for (uint32_t d = 0; d < wanted->own->dims; d++)
        size *= box->from_shape[d];
    return size;
}

int reshard_fill(struct reshard *reshard, const uint8_t *data, size_t len, struct phx_error *error)
{
    uint32_t rank, next;
    struct box box;
    if (!reshard_next(reshard, &rank))
        return 0;
    while (reshard_next(reshard, &next) && next == rank) {
        const struct piece *piece = &reshard->pieces[reshard->filled];
        const struct wanted *wanted = &reshard->wanted[piece->wanted];
        const struct part *part = &wanted->parts[piece->part];
        intersect(wanted, piece->part, piece->begin, &box);
        if (part->offset > len || part_size(wanted, &box) > len - part->offset)
            return job_fail(error, PHX_ERROR_CORRUPT, "region %.120s: the shard of rank %u is truncated",
                            wanted->own->name, rank);
        copy_box(wanted, &box, data + part->offset);
        reshard->filled++;
    }
    return 0;
}
