#include "job/checkpoint/old_share.h"

#include "job/link/error.h"
#include "job/link/settings.h"

int old_share_world(const struct shard_id *id, uint32_t *ret_world, struct phx_error *error)
{
    struct shard_id any = *id;
    struct shard_header header;
    size_t got;
    any.world = 0;
    int status = shard_front(&any, NULL, 0, &header, &got, error);
    if (status == PHX_ERROR_CORRUPT && id->rank != 0) {
        any.rank = 0;
        status = shard_front(&any, NULL, 0, &header, &got, error);
    }
    if (status == 0 && (header.world == 0 || header.world > JOB_WORLD_MAX || header.rank >= header.world))
        status = job_fail(error, PHX_ERROR_CORRUPT, "step %llu has a shard of rank %u of %u",
                          (unsigned long long)id->step, header.rank, header.world);
    if (status == 0)
        *ret_world = header.world;
    return status;
}

int old_share_verify(const struct shard_id *id, struct phx_error *error)
{
    struct shard_id old = *id;
    int status = old_share_world(id, &old.world, error);
    if (status == 0 && old.world == id->world)
        return shard_verify(id, error);
    for (uint64_t rank = id->rank; status == 0 && rank < old.world; rank += id->world) {
        old.rank = (uint32_t)rank;
        status = shard_verify(&old, error);
    }
    return status;
}
