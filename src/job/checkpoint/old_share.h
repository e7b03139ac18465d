/* old_share.h - a checkpoint in storage that another number of ranks has saved: how many ranks, and whether
 * the checkpoint is whole. reshard.h puts its parts together.
 *
 * Each rank of the new gang verifies its share of the old shards: those whose rank is its own modulo the
 * number of new ranks. Together the new ranks read each shard once, as they do if the number is unchanged.
 *
 * Blocking file operations; no state; any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_OLD_SHARE_H
#define PHX_JOB_CHECKPOINT_OLD_SHARE_H

#include "job/checkpoint/shard.h"

/* Finds how many ranks have saved the checkpoint (step, attempt) of `id`: from the shard of rank id->rank or,
 * if there is none, of rank 0. Returns PHX_ERROR_CORRUPT if neither is readable. id->world does not
 * matter. */
int old_share_world(const struct shard_id *id, uint32_t *ret_world, struct phx_error *error);

/* Returns 0 if the share of rank id->rank of id->world is whole. Same as shard_verify if the world is the
 * same. */
int old_share_verify(const struct shard_id *id, struct phx_error *error);

#endif
