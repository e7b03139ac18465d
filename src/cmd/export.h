/* export.h - one safetensors file of all regions of a checkpoint: what was in parts along an axis is put
 * together, what every rank had is taken once.
 */
#ifndef PHX_CMD_EXPORT_H
#define PHX_CMD_EXPORT_H

#include "cmd/shards.h"

/* Every shard of the set has been verified. Writes `path` whole or not at all. ERROR_UNSUPPORTED: the
 * shards are not of named regions; ERROR_CORRUPT names a region whose parts don't fit each other or are not
 * all there. */
int checkpoint_export(struct shards *shards, const struct shard_set *set, const char *path,
                      struct error *error);

#endif
