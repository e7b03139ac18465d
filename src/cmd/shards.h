/* shards.h - a folder of checkpoints as libphalanx leaves it (job/checkpoint/shard.h): its shards, and
 * whether they are whole.
 *
 * Memory belongs to the struct. One thread.
 */
#ifndef PHX_CMD_SHARDS_H
#define PHX_CMD_SHARDS_H

#include "base/arena.h"
#include "doc/doc.h"
#include "base/error.h"
#include "base/vec.h"
#include "job/checkpoint/shard_format.h"

struct shard {
    struct str path;
    uint64_t step;
    uint32_t attempt, rank; /* of its name */
    struct shard_header header;
    const char *damage; /* NULL: none is known; see shard_verify */
    /* Mapped by shard_open; NULL before. `data` has header.len bytes. */
    uint8_t *map;
    const uint8_t *data;
};
/* The shards of one step of one attempt: a range of the list. */
struct shard_set {
    size_t first, count;
    uint32_t world;   /* as most of its headers say; 0: none is readable */
    uint64_t bytes;   /* of the data */
    uint32_t missing; /* ranks that have no whole shard */
    uint32_t missing_first;
};
struct shards {
    struct arena arena;
    VEC(struct shard) list; /* by step, attempt, rank */
    VEC(struct shard_set) sets;
};

/* Names, headers and sizes. ERROR_IO: the folder can't be read; ERROR_NOT_FOUND: no shard is in it. */
int shards_scan(const char *folder, struct shards *ret_shards, struct error *error);
void shards_done(struct shards *shards);
/* The newest one that is complete, or, with `step` from 0, the newest attempt's of that step; NULL: none. */
const struct shard_set *shards_choose(const struct shards *shards, int64_t step);

/* Maps it. False: its damage says why. */
bool shard_open(struct shard *shard);
void shard_close(struct shard *shard);
/* Reads it through: the checksum of the data. False: its damage says why. */
bool shard_verify(struct shard *shard);

/* The header of named regions in a shard that is open (job/checkpoint/regions.h: safetensors); NULL: it holds
 * something else. *ret_data: where the regions' data begins. */
const struct doc *shard_regions(struct shards *shards, const struct shard *shard, const uint8_t **ret_data);

#endif
