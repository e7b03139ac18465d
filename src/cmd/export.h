/* export.h - writes all regions of a checkpoint to one safetensors file: parts are joined along their axis,
 * and regions that every rank had whole are written once.
 */
#ifndef PHX_CMD_EXPORT_H
#define PHX_CMD_EXPORT_H

#include "cmd/shards.h"

/* Writes the file `path`, whole or not at all. Every shard of the set must have been verified. Returns
 * ERROR_UNSUPPORTED if the shards have no named regions, and ERROR_CORRUPT with the name of a region whose
 * parts are missing or do not fit. */
int checkpoint_export(struct shards *shards, const struct shard_set *set, const char *path,
                      struct error *error);

#endif
