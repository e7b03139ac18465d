/* checkpoint_mirror.h - the shards of an object store as a folder that the other actions of phalanx
 * checkpoint read: either the header of each shard alone, in a file of its size with a hole behind, or the
 * whole shard.
 *
 * One thread; it blocks for as long as the store takes.
 */
#ifndef PHX_CMD_CHECKPOINT_MIRROR_H
#define PHX_CMD_CHECKPOINT_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Copies into `folder`, which must exist. step -1: every step. With `whole` a shard that does not arrive
 * whole is left as a file that is no shard. ERROR_NOT_FOUND: the store has no shard of the step. */
int checkpoint_mirror(const char *address, const char *folder, int64_t step, bool whole, struct error *error);
/* With all that is in it. */
void checkpoint_mirror_remove(const char *folder);

#endif
