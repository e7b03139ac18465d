/* checkpoint_mirror.h - copies the shards of an object store to a folder, for the other actions of phalanx
 * checkpoint: either whole shards, or only their headers, in files of the shards' sizes with a hole after the
 * header.
 *
 * The functions block while the store works, and are called by one thread.
 */
#ifndef PHX_CMD_CHECKPOINT_MIRROR_H
#define PHX_CMD_CHECKPOINT_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Copies shards into `folder`, which must exist. step -1: of every step. With `whole` a damaged shard becomes
 * a file that is not a valid shard. Returns ERROR_NOT_FOUND if the store has no shard of the step. */
int checkpoint_mirror(const char *address, const char *folder, int64_t step, bool whole, struct error *error);
/* Removes the folder with all its contents. */
void checkpoint_mirror_remove(const char *folder);

#endif
