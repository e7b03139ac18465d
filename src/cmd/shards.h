/* shards.h - reads a folder of checkpoints as libphalanx writes it (job/checkpoint/shard.h): its shards, and
 * whether they are whole.
 *
 * The structs own all memory. One thread.
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
    uint32_t attempt, rank; /* from the file's name */
    struct shard_header header;
    const char *damage; /* a description; NULL: no damage is known (see shard_verify) */
    /* Mapped by shard_open; NULL before. `data` has header.len bytes. */
    uint8_t *map;
    const uint8_t *data;
};
/* The shards of one step of one attempt: a range of the list. */
struct shard_set {
    size_t first, count;
    uint32_t world;   /* the largest in a readable header; 0: no header is readable */
    uint64_t bytes;   /* of the data */
    uint32_t missing; /* ranks that have no whole shard */
    uint32_t missing_first;
};
struct shards {
    struct arena arena;
    VEC(struct shard) list; /* by step, attempt, rank */
    VEC(struct shard_set) sets;
};

/* Reads names, headers and sizes of all shards in the folder. Returns ERROR_IO if the folder cannot be read,
 * and ERROR_NOT_FOUND if it contains no shard. */
int shards_scan(const char *folder, struct shards *ret_shards, struct error *error);
void shards_done(struct shards *shards);
/* Returns the newest complete set (`step` below 0), or the set of the newest attempt of `step`, complete or
 * not. Returns NULL if there is none. */
const struct shard_set *shards_choose(const struct shards *shards, int64_t step);

/* Maps the shard. Returns false, with the reason in shard->damage, if that fails. */
bool shard_open(struct shard *shard);
void shard_close(struct shard *shard);
/* Verifies the checksum of the data. Returns false, with the reason in shard->damage, if it is wrong. */
bool shard_verify(struct shard *shard);

/* Returns the header of named regions in an open shard (safetensors; job/checkpoint/regions.h), and in
 * *ret_data the start of the regions' data. Returns NULL if the shard contains something else. */
const struct doc *shard_regions(struct shards *shards, const struct shard *shard, const uint8_t **ret_data);

#endif
