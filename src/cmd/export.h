/* export.h - one safetensors file of all regions of a checkpoint: parts are joined along their axis, regions
 * that every rank had whole are taken once.
 */
#ifndef PHX_CMD_EXPORT_H
#define PHX_CMD_EXPORT_H

#include "cmd/shards.h"

/* Every shard of the set must have been verified. Writes `path` whole or not at all. ERROR_UNSUPPORTED: the
 * shards have no named regions; ERROR_CORRUPT names a region whose parts do not fit or are missing. */
int checkpoint_export(struct shards *shards, const struct shard_set *set, const char *path,
                      struct error *error);

#endif
