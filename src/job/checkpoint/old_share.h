/* old_share.h - a checkpoint in storage that another number of ranks has saved: how many they were, and
 * whether it is whole. reshard.h puts its parts together.
 *
 * Each rank of the new gang verifies its share of the old shards, those whose rank is its own modulo the
 * number of new ranks: together the new ranks read each shard once, as they do if the number is the same.
 *
 * Blocking file operations; no state; any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_OLD_SHARE_H
#define PHX_JOB_CHECKPOINT_OLD_SHARE_H

#include "job/checkpoint/shard.h"

/* How many ranks have saved the checkpoint (step, attempt) of `id`: by the shard of its rank, or, where that
 * rank has none, of rank 0. PHX_ERROR_CORRUPT: neither is readable. id->world does not matter. */
int old_share_world(const struct shard_id *id, uint32_t *ret_world, struct phx_error *error);

/* Is the share of rank id->rank of id->world whole? As shard_verify where the world is the same. */
int old_share_verify(const struct shard_id *id, struct phx_error *error);

#endif
