/* reshard.h - puts a rank's regions together from the shards of a checkpoint that was split differently: by
 * another number of ranks, along another axis, or into other counts.
 *
 * Pure: the caller adds the header of each shard, and passes in the data of the shards that reshard_next
 * names.
 *
 *     reshard_new(&regions, &reshard, error);
 *     while (!reshard_complete(reshard))     headers of the shards of the old ranks, in any order
 *         reshard_add(reshard, rank, &tensors, error);
 *     reshard_plan(reshard, error);
 *     while (reshard_next(reshard, &rank))
 *         reshard_fill(reshard, data, len, error);        the data of that rank's shard
 *     reshard_free(reshard);
 *
 * A whole region is its old parts, of any lengths, one after the other along their axis (as in `phalanx
 * checkpoint export`). A region that old ranks had whole is taken from the first of these that is added. The
 * new part `index` of `count` of a length L begins at element index * (L / count) + min(index, L % count):
 * the first L % count parts have one more element. A new part of another length is an error, so a gang in
 * which every rank succeeds has read each element into its right place.
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

/* Begins to fill `regions`, which must outlive the result, as must the program's memory that they describe.
 * The caller frees *ret_reshard. */
int reshard_new(const struct job_regions *regions, struct reshard **ret_reshard, struct phx_error *error);
void reshard_free(struct reshard *reshard); /* NULL is allowed */

/* Returns true if every part of every wanted region is known, so that no further shard is needed. */
bool reshard_complete(const struct reshard *reshard);

/* Records which parts the shard of the old rank `rank` contains. Other regions than the wanted ones are
 * ignored. Returns PHX_ERROR_CORRUPT if the header contradicts another shard's, and PHX_ERROR_INVALID if the
 * dtype or the number of dimensions of a region is not that of the registered region. */
int reshard_add(struct reshard *reshard, uint32_t rank, const struct safetensors *tensors,
                struct phx_error *error);

/* Drops the regions that no added shard has; returns how many remain. Call it before reshard_plan. */
size_t reshard_pass_over(struct reshard *reshard);

/* Plans the reads. Call it once, after all available shards, or enough of them, were added. Returns
 * PHX_ERROR_INVALID if a region is not in the checkpoint or has another shape than the registered region, and
 * PHX_ERROR_CORRUPT if a part of it is missing. */
int reshard_plan(struct reshard *reshard, struct phx_error *error);

/* Names the next old rank whose shard must be read; each is named once. Returns false when all regions are
 * filled. */
bool reshard_next(const struct reshard *reshard, uint32_t *ret_rank);

/* Fills the regions from the data of the shard that reshard_next has named. Returns PHX_ERROR_CORRUPT if the
 * data is shorter than its header says. */
int reshard_fill(struct reshard *reshard, const uint8_t *data, size_t len, struct phx_error *error);

#endif
