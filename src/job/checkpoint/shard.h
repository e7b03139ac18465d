/* shard.h - the files of checkpoints: names, format, writing, reading, deletion.
 *
 *     DIR/step-<N>/attempt-<A>-rank-<R>.shard   one rank's part of step N, written by attempt A
 *     DIR/step-<N>/attempt-<A>.commit           stand-alone only: step N of attempt A is whole
 *
 * Under Phalanx the controller's log records which checkpoints are whole, and there are no commit files. N, A
 * and R are decimal without leading zeros. The number of the attempt is in the name, so an attempt never
 * touches the files of a newer one: this is the fence on the storage side.
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
 * (docs/formats/checkpoint.md has the whole format.) A shard file is valid if and only if its size is 64 +
 * data length, both checksums are right, magic, version and header size are these, and step, attempt and rank
 * are those of its name. A file gets its name (rename) only after its contents are durable, and the name is
 * durable (fsync of the directory) before shard_write returns. A file that ends in ".tmp" is an unfinished
 * write.
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

/* Reads a header. Returns PHX_ERROR_CORRUPT, with `path` in the message, if it is not valid. */
int shard_header_decode(const uint8_t bytes[SHARD_HEADER_SIZE], const char *path,
                        struct shard_header *ret_header, struct phx_error *error);

struct shard_id {
    const char *dir;
    uint64_t step;
    uint32_t attempt, rank, world;
    uint64_t key; /* for writing alone; 0: none */
};

/* Writes a shard, whose data is `count` parts, one after the other. *ret_size is the size of the file. Data
 * of BLOCKS_SMALL bytes or more is written by several threads, past the page cache if possible (blocks.h). */
int shard_write(const struct shard_id *id, const struct iovec *data, size_t count, uint64_t *ret_size,
                struct phx_error *error);
/* As shard_write, but reads the file back before it gets its name. Returns PHX_ERROR_CORRUPT if the contents
 * differ; the file is then removed. */
int shard_write_verified(const struct shard_id *id, const struct iovec *data, size_t count,
                         uint64_t *ret_size, struct phx_error *error);

/* Writes a complete shard file of `size` bytes as this shard's. `file` begins at a page, and its last page
 * must be readable to the end. The checksum is not computed again, so damage to this memory is found when the
 * shard is read. `verify`: as shard_write_verified. */
int shard_write_sealed(const struct shard_id *id, bool verify, const uint8_t *file, size_t size,
                       struct phx_error *error);

/* Reads the length of the data from the header. Returns PHX_ERROR_CORRUPT if the file is missing or its
 * header is not valid. */
int shard_length(const struct shard_id *id, size_t *ret_len, struct phx_error *error);

/* Reads the header and the first bytes of the data, at most `cap`, which are not verified. With id->world 0
 * the shard may be of any world. */
int shard_front(const struct shard_id *id, void *buf, size_t cap, struct shard_header *ret_header,
                size_t *ret_got, struct phx_error *error);

/* Reads and verifies the data. Returns PHX_ERROR_CORRUPT if the file is missing or damaged, and
 * PHX_ERROR_SPACE, with *ret_len set, if the buffer is too small. */
int shard_read(const struct shard_id *id, void *buf, size_t cap, size_t *ret_len, struct phx_error *error);

/* As shard_read, without keeping the data. */
int shard_verify(const struct shard_id *id, struct phx_error *error);

/* Changes step and attempt to those of the newest shard of any rank that is older (a lower step, or the same
 * and a lower attempt), by file names alone. Returns false if there is none. */
bool shard_find_older(struct shard_id *id);

/* Deletes files of steps before keep_from and of attempts up to id->attempt: those of this rank, and those of
 * higher ranks that the world no longer has and that are equal to this rank modulo the world. Keeps multiples
 * of `every` (0: none). With `commits` deletes commit files too. Files that cannot be deleted stay until the
 * next call. */
void shard_delete_before(const struct shard_id *id, uint64_t keep_from, uint64_t every, bool commits);

/* ---- stand-alone ---- */

/* Writes the commit file of step id->step and attempt id->attempt. */
int shard_mark_committed(const struct shard_id *id, struct phx_error *error);

struct shard_survey {
    bool committed; /* a commit file was found; step and attempt are those of the newest */
    uint64_t step;
    uint32_t attempt;
    uint32_t next_attempt; /* above every attempt that left a file */
};

/* Finds the newest commit and the next attempt. A directory that does not exist counts as empty. */
int shard_survey(const char *dir, struct shard_survey *ret_survey, struct phx_error *error);

#endif
