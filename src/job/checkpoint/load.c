/* Fills the registered regions from the checkpoint that the gang has agreed on. If this rank's shard has the
 * same regions, it is copied byte for byte. Otherwise the regions are put together from all shards that
 * contain parts of them (reshard.h), all of one step and attempt. These are in storage or, if the gang has
 * agreed on a checkpoint of another world, with any rank (old_world.c). Blocking; without the mutex. */
#include "job/context.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "job/link/error.h"
#include "job/checkpoint/old_share.h"
#include "job/checkpoint/reshard.h"

#define FRONT_SIZE ((size_t)16384) /* most headers are shorter */

/* The shards of one checkpoint. */
struct old {
    struct phx_context *ctx; /* finds shards of the other world; NULL: shards are in storage */
    const struct job_regions *regions;
    uint32_t rank;       /* the rank of the shard that this rank was given */
    const uint8_t *held; /* that shard, if it is in memory; else NULL */
    size_t held_len;
    struct shard_id id; /* in storage: `rank` is set for each shard, `world` is the checkpoint's */
    uint8_t *buf;       /* data of the shard read last */
    size_t cap;
};

static bool in_memory(const struct old *old, uint32_t rank)
{
    return old->held != NULL && rank == old->rank;
}

static int make_room(struct old *old, size_t len, struct phx_error *error)
{
    if (len <= old->cap)
        return 0;
    free(old->buf);
    old->buf = malloc(len);
    old->cap = old->buf == NULL ? 0 : len;
    return old->buf != NULL ? 0 : job_fail(error, PHX_ERROR_MEMORY, "out of memory for %zu bytes", len);
}

/* Reads the beginning of a shard, as much as old->buf can take. */
static int front(struct old *old, uint32_t rank, size_t *ret_got, uint64_t *ret_len, struct phx_error *error)
{
    struct shard_header header = {0};
    if (old->ctx != NULL)
        return job_old_world_front(old->ctx, rank, old->buf, old->cap, ret_got, ret_len, error);
    old->id.rank = rank;
    int status = shard_front(&old->id, old->buf, old->cap, &header, ret_got, error);
    *ret_len = header.len;
    return status;
}

/* Returns the header of regions of a rank's shard, from memory or read into old->buf. */
static int read_front(struct old *old, uint32_t rank, const uint8_t **ret_data, size_t *ret_len,
                      uint64_t *ret_data_len, struct phx_error *error)
{
    uint64_t data_len = old->held_len;
    const uint8_t *data = old->held;
    size_t got = old->held_len, len = 0;
    if (!in_memory(old, rank)) {
        int status = make_room(old, FRONT_SIZE, error);
        if (status == 0)
            status = front(old, rank, &got, &data_len, error);
        if (status == 0)
            len = got < 8 ? 0 : safetensors_header_len(old->buf, data_len);
        if (status == 0 && len > got && (status = make_room(old, len, error)) == 0)
            status = front(old, rank, &got, &data_len, error);
        if (status != 0)
            return status;
        data = old->buf;
    }
    len = got < 8 ? 0 : safetensors_header_len(data, data_len);
    if (len == 0 || len > got)
        return job_fail(error, PHX_ERROR_INVALID,
                        "the checkpoint of step %llu holds no named regions in the shard of rank %u: "
                        "phx_checkpoint_restore reads it",
                        (unsigned long long)old->id.step, rank);
    *ret_data = data;
    *ret_len = len;
    *ret_data_len = data_len;
    return 0;
}

static int add_shard(struct old *old, struct reshard *reshard, uint32_t rank, struct phx_error *error)
{
    struct safetensors tensors;
    const uint8_t *data;
    char where[96];
    size_t len;
    uint64_t data_len;
    int status = read_front(old, rank, &data, &len, &data_len, error);
    snprintf(where, sizeof where, "step %llu of attempt %u, rank %u", (unsigned long long)old->id.step,
             old->id.attempt, rank);
    if (status == 0)
        status = safetensors_read(data, len, data_len, where, &tensors, error);
    if (status != 0)
        return status;
    status = reshard_add(reshard, rank, &tensors, error);
    safetensors_done(&tensors);
    return status;
}

static int read_all(struct old *old, uint32_t rank, size_t *ret_len, struct phx_error *error)
{
    bool agreed = old->ctx != NULL;
    old->id.rank = rank;
    int status = agreed ? job_old_world_length(old->ctx, rank, ret_len, error)
                        : shard_length(&old->id, ret_len, error);
    if (status == 0)
        status = make_room(old, *ret_len, error);
    if (status != 0)
        return status;
    return agreed ? job_old_world_read(old->ctx, rank, old->buf, *ret_len, error)
                  : shard_read(&old->id, old->buf, old->cap, ret_len, error);
}

/* Fills the regions from one shard. Its data is verified: in memory by the negotiation, otherwise here. */
static int fill_from(struct old *old, struct reshard *reshard, uint32_t rank, struct phx_error *error)
{
    size_t len = 0;
    if (in_memory(old, rank))
        return reshard_fill(reshard, old->held, old->held_len, error);
    int status = read_all(old, rank, &len, error);
    return status == 0 ? reshard_fill(reshard, old->buf, len, error) : status;
}

/* Finds the number of ranks that have saved the checkpoint. */
static int find_world(struct old *old, struct phx_error *error)
{
    uint32_t world;
    old->id.rank = old->rank;
    if (old->ctx != NULL) {
        old->id.world = old->ctx->negotiation.old_world.world;
        return 0;
    }
    /* The data in memory may be the shard of another rank or world: storage has the truth. */
    if (old_share_world(&old->id, &world, NULL) == 0)
        old->held = NULL;
    return old->held == NULL ? old_share_world(&old->id, &old->id.world, error) : 0;
}

/* Adds shards until all parts are known. Every rank begins at another shard, its own if it has one, so each
 * replica is read by few ranks. Shards on this machine (`far` false) are added first. */
static int add_shards(struct old *old, struct reshard *reshard, bool far, struct phx_error *error)
{
    int status = 0;
    for (uint32_t i = 0; status == 0 && i < old->id.world && !reshard_complete(reshard); i++) {
        uint32_t rank = (old->rank + i) % old->id.world;
        if ((old->ctx != NULL && job_old_world_far(old->ctx, rank)) == far)
            status = add_shard(old, reshard, rank, error);
    }
    return status;
}

static int load_cut(struct old *old, struct phx_error *error)
{
    struct reshard *reshard = NULL;
    uint32_t rank;
    int status = find_world(old, error);
    if (status == 0)
        status = reshard_new(old->regions, &reshard, error);
    if (status == 0)
        status = add_shards(old, reshard, false, error);
    if (status == 0)
        status = add_shards(old, reshard, true, error);
    if (status == 0)
        status = reshard_plan(reshard, error);
    while (status == 0 && reshard_next(reshard, &rank))
        status = fill_from(old, reshard, rank, error);
    reshard_free(reshard);
    return status;
}

/* Returns true if this rank's shard has the same regions, split in the same way, according to its header. */
static bool is_same(struct old *old)
{
    const struct iovec *header = &old->regions->parts[0];
    const uint8_t *data;
    size_t len;
    uint64_t data_len;
    return read_front(old, old->rank, &data, &len, &data_len, NULL) == 0 && data_len == old->regions->len &&
           len == header->iov_len && memcmp(data, header->iov_base, len) == 0;
}

static int load_same(struct old *old, struct phx_error *error)
{
    size_t len = 0;
    if (old->held != NULL)
        return job_regions_fill(old->regions, old->held, old->held_len, error);
    int status = make_room(old, old->regions->len, error);
    if (status == 0)
        status = shard_read(&old->id, old->buf, old->cap, &len, error);
    return status == 0 ? job_regions_fill(old->regions, old->buf, len, error) : status;
}

int job_load(struct phx_context *ctx, const struct job_regions *regions, const uint8_t *held, size_t len,
             const struct shard_id *id, struct phx_error *error)
{
    struct old old = {.regions = regions, .rank = id->rank, .held = held, .held_len = len, .id = *id};
    if (ctx != NULL && ctx->negotiation.old_world.world > 0)
        old.ctx = ctx;
    int status = old.ctx == NULL && is_same(&old) ? load_same(&old, error) : load_cut(&old, error);
    free(old.buf);
    return status;
}
