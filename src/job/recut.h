/* recut.h - a checkpoint in storage that another number of ranks has saved: how many they were, and whether
 * it is whole. What is made of its parts is reshard.h's.
 *
 * Each rank of the new gang reads its share of the old shards through, those whose rank is its own modulo the
 * number of new ranks: together they have read each shard once, as they do where the number is the same.
 *
 * Blocking file operations; no state; any thread.
 */
#ifndef PHX_JOB_RECUT_H
#define PHX_JOB_RECUT_H

#include "job/shard.h"

/* How many ranks have saved the checkpoint (step, attempt) of `id`: by the shard of its rank, or, where that
 * rank has none, of rank 0. PHX_ERROR_CORRUPT: neither is readable. id->world does not matter. */
int recut_world(const struct shard_id *id, uint32_t *ret_world, struct phx_error *error);

/* Is the share of rank id->rank of id->world whole? As shard_verify where the world is the same. */
int recut_verify(const struct shard_id *id, struct phx_error *error);

#endif
