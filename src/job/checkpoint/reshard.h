/* reshard.h - puts a rank's regions together from the shards of a checkpoint that was split differently: by
 * another number of ranks, along another axis, or into other counts.
 *
 * Pure: the caller describes the header of each shard and hands in the data of the shards that are asked for.
 *
 *     reshard_new(&regions, &reshard, error);
 *     while (!reshard_complete(reshard))     the shards of the old ranks, in any order
 *         reshard_add(reshard, rank, &tensors, error);
 *     reshard_plan(reshard, error);
 *     while (reshard_next(reshard, &rank))
 *         reshard_fill(reshard, data, len, error);        the data of that rank's shard
 *     reshard_free(reshard);
 *
 * The whole of a region is its old parts one after the other along their axis, of any lengths (as
 * `phalanx checkpoint export` puts them together); a region that old ranks had whole is taken from the first
 * one that is added. The new part `index` of `count` of a length L begins at element index * (L / count) +
 * min(index, L % count): the first L % count parts have one more element. A new part of another length is an
 * error, so a gang in which every rank succeeds has read each element where it belongs.
 *
 * All shards must belong to one checkpoint (step and attempt). One thread at a time.
 */
#ifndef PHX_JOB_CHECKPOINT_RESHARD_H
#define PHX_JOB_CHECKPOINT_RESHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "job/checkpoint/regions.h"
#include "job/checkpoint/safetensors.h"

struct reshard;

/* `regions` and the program's memory must outlive it. *ret_reshard is owned by the caller. */
int reshard_new(const struct job_regions *regions, struct reshard **ret_reshard, struct phx_error *error);
void reshard_free(struct reshard *reshard); /* NULL is allowed */

/* Every part of every wanted region is known: no further shard is needed. */
bool reshard_complete(const struct reshard *reshard);

/* Remembers where the parts in the shard of the old rank `rank` are. Regions that are not wanted don't
 * matter. PHX_ERROR_CORRUPT: other shards say otherwise; PHX_ERROR_INVALID: its dtype or number of dimensions
 * is not that of the registered one. */
int reshard_add(struct reshard *reshard, uint32_t rank, const struct safetensors *tensors,
                struct phx_error *error);

/* Drops the regions that no added shard has; returns how many are left. Call it before reshard_plan. */
size_t reshard_pass_over(struct reshard *reshard);

/* Call it once, after all available shards, or enough of them, were added. PHX_ERROR_INVALID: a region is not
 * in the checkpoint, or has another shape than the registered one; PHX_ERROR_CORRUPT: a part of it is
 * missing. */
int reshard_plan(struct reshard *reshard, struct phx_error *error);

/* Names the next old rank whose shard must be read, each once; false: all regions are filled. */
bool reshard_next(const struct reshard *reshard, uint32_t *ret_rank);

/* Takes the data of the shard that reshard_next has named. PHX_ERROR_CORRUPT: it is shorter than its header
 * says. */
int reshard_fill(struct reshard *reshard, const uint8_t *data, size_t len, struct phx_error *error);

#endif
