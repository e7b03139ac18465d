/* shard.h - the files of checkpoints: names, format, writing, reading, deletion.
 *
 *     DIR/step-<N>/attempt-<A>-rank-<R>.shard   one rank's part of step N, written by attempt A
 *     DIR/step-<N>/attempt-<A>.commit           stand-alone only: step N of attempt A is whole
 *
 * Under Phalanx the controller's log records which checkpoints are whole, and there is no such file. N, A and
 * R are decimal without leading zeros. An attempt never touches the files that a newer one writes, since its
 * number is in the name: that is the fence on the storage side.
 *
 * A shard file (little-endian):
 *     offset  0  8 bytes "PHXSHARD"
 *             8  u32 version = 1           12  u32 header size = 64
 *            16  u64 step                  24  u32 attempt
 *            28  u32 rank                  32  u32 world
 *            36  u32 CRC-32C of the data   40  u64 data length
 *            48  u64 key of the regions (regions.h; 0: bytes)
 *            56  4 bytes, zero             60  u32 CRC-32C of the 60 bytes before
 *            64  data
 * (docs/formats/checkpoint.md has all of it.) It is valid if and only if its size is 64 + data length, both
 * checksums are right, magic, version and header size are these, and step, attempt and rank are those of
 * its name. A file gets its name (rename) only after its contents are durable, and the name is durable
 * (fsync of the directory) before shard_write returns. A file that ends in ".tmp" is a write that didn't
 * finish.
 *
 * Blocking file operations; no state; any thread.
 */
#ifndef PHX_JOB_CHECKPOINT_SHARD_H
#define PHX_JOB_CHECKPOINT_SHARD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#include "job/checkpoint/shard_format.h"
#include "phalanx/phalanx.h"

/* PHX_ERROR_CORRUPT names `path`. */
int shard_header_decode(const uint8_t bytes[SHARD_HEADER_SIZE], const char *path,
                        struct shard_header *ret_header, struct phx_error *error);

struct shard_id {
    const char *dir;
    uint64_t step;
    uint32_t attempt, rank, world;
    uint64_t key; /* for writing alone; 0: none */
};

/* The data is `count` parts, one after the other. ret_size: of the file. From BLOCKS_SMALL on several threads
 * write it, past the page cache where the file system can (blocks.h). */
int shard_write(const struct shard_id *id, const struct iovec *data, size_t count, uint64_t *ret_size,
                struct phx_error *error);
/* As shard_write, but reads the file back before it gets its name. PHX_ERROR_CORRUPT: the contents differ,
 * and the file was removed. */
int shard_write_verified(const struct shard_id *id, const struct iovec *data, size_t count,
                         uint64_t *ret_size, struct phx_error *error);

/* Writes a complete shard file as this shard's: `size` bytes at the beginning of a page, whose last page must
 * be readable to the end. The checksum is not made again, so damage to this memory is found when the shard is
 * read. `verify`: as shard_write_verified. */
int shard_write_sealed(const struct shard_id *id, bool verify, const uint8_t *file, size_t size,
                       struct phx_error *error);

/* Length of the data, from a valid header. PHX_ERROR_CORRUPT when the file is missing or not as above. */
int shard_length(const struct shard_id *id, size_t *ret_len, struct phx_error *error);

/* The header and the first bytes of the data, at most `cap`, which are not verified. With id->world 0 the
 * shard may be of any world. */
int shard_front(const struct shard_id *id, void *buf, size_t cap, struct shard_header *ret_header,
                size_t *ret_got, struct phx_error *error);

/* Reads and verifies. PHX_ERROR_SPACE sets *ret_len too. */
int shard_read(const struct shard_id *id, void *buf, size_t cap, size_t *ret_len, struct phx_error *error);

/* Reads the whole file and discards the data: returns what shard_read would, except for the buffer's size. */
int shard_verify(const struct shard_id *id, struct phx_error *error);

/* Moves step and attempt to those of the newest shard of any rank that is older (a lower step, or the same
 * and a lower attempt), by name alone; false when there is none. */
bool shard_find_older(struct shard_id *id);

/* Deletes the rank's files of steps before keep_from, of attempts up to id->attempt, and those of ranks that
 * are no more (its own number modulo the world), but for multiples of `every` (0: none are kept); with
 * `commits` the commit marks too. Files that cannot be deleted now stay for the next time. */
void shard_delete_before(const struct shard_id *id, uint64_t keep_from, uint64_t every, bool commits);

/* ---- stand-alone ---- */

int shard_mark_committed(const struct shard_id *id, struct phx_error *error);

struct shard_survey {
    bool committed; /* a commit mark was found; the newest is: */
    uint64_t step;
    uint32_t attempt;
    uint32_t next_attempt; /* above every attempt that left a file */
};

/* A directory that doesn't exist is empty. */
int shard_survey(const char *dir, struct shard_survey *ret_survey, struct phx_error *error);

#endif
