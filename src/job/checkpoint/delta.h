/* delta.h - which blocks of a shard differ from those of an older shard that a peer has. The sender keeps and
 * compares 64-bit sums of the blocks that it has sent. A changed block has an equal sum once in 2^64; the
 * receiver verifies the checksum of the whole shard in any case.
 *
 * The map has a bit for each block of DELTA_BLOCK bytes, the lowest bit of byte 0 first; 1: the block is
 * sent.
 */
#ifndef PHX_JOB_CHECKPOINT_DELTA_H
#define PHX_JOB_CHECKPOINT_DELTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DELTA_BLOCK ((size_t)64 << 10)
#define DELTA_KEPT  2 /* as many as a peer has copies of a rank (PEER_SLOTS) */

/* The sums of one shard; all zero: none. */
struct delta {
    uint64_t step;
    uint32_t attempt;
    uint64_t len;
    uint64_t *sums; /* NULL: none */
};

/* The copies that this rank has sent, newest first; all zero at the beginning. One thread owns it. */
struct delta_history {
    struct delta sent[DELTA_KEPT];
};

size_t delta_blocks(uint64_t len);   /* number of blocks in `len` bytes of data */
size_t delta_map_size(uint64_t len); /* bytes of their map */
/* Returns the length of the run that begins at data[at], at most `most` (more than 0) bytes: all of it is
 * sent (*ret_sent), or none of it. */
uint64_t delta_map_run(const uint8_t *map, uint64_t len, uint64_t at, uint64_t most, bool *ret_sent);
/* Returns the total length of the blocks that are sent. */
uint64_t delta_map_bytes(const uint8_t *map, uint64_t len);

/* Computes the sums of a shard. Returns false if there is no memory. The caller frees *ret_delta with
 * delta_done or passes it to delta_remember. */
bool delta_sum(uint64_t step, uint32_t attempt, const uint8_t *data, uint64_t len, struct delta *ret_delta);
void delta_done(struct delta *delta);
/* Marks in *ret_map the blocks that differ from `base`; `base` NULL: all blocks. */
void delta_map(const struct delta *delta, const struct delta *base, uint8_t *ret_map);

/* Returns the sums of the checkpoint, valid until the history changes; NULL if they are not known. */
const struct delta *delta_find(const struct delta_history *history, uint64_t step, uint32_t attempt);
/* Moves the sums into the history, and forgets the oldest. */
void delta_remember(struct delta_history *history, struct delta *delta);
void delta_forget(struct delta_history *history);

#endif
