/* checkpoint_mirror.h - what is in an object store, as a folder that the other verbs of phalanx checkpoint
 * read: of each shard its header alone, in a file of its size with a hole behind, or all of it.
 *
 * One thread; it blocks for as long as the store takes.
 */
#ifndef PHX_CMD_CHECKPOINT_MIRROR_H
#define PHX_CMD_CHECKPOINT_MIRROR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/error.h"

/* Into `folder`, which is there. step -1: every step. With `whole` what does not come whole is left as a file
 * that is no shard. ERROR_NOT_FOUND: the store has no shard of it. */
int checkpoint_mirror(const char *address, const char *folder, int64_t step, bool whole, struct error *error);
/* With all that is in it. */
void checkpoint_mirror_remove(const char *folder);

#endif
