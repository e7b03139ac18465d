/* pack.h - data for another machine in pieces compressed by zstd. libphalanx links libc alone, so libzstd is
 * loaded (dlopen) when it is first needed; a job works without it.
 *
 * The data is cut into pieces of PACK_PIECE bytes, the last one shorter. On the wire, each piece is
 *
 *     u32 n (little-endian), n bytes: the piece itself if n is its length, a zstd frame of it if n is less
 *
 * and nothing else is valid. Neither side needs memory for more than one piece, and a piece that would not
 * become smaller is sent uncompressed. A frame is never unpacked beyond the place of its piece.
 *
 * A struct has one owner, which uses it from one thread at a time. Functions compute and do not wait.
 */
#ifndef PHX_JOB_CHECKPOINT_PACK_H
#define PHX_JOB_CHECKPOINT_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "phalanx/phalanx.h"

#define PACK_PIECE     ((size_t)1 << 20)
#define PACK_HEAD      ((size_t)4)
#define PACK_LEVEL_MAX 22
#define PACK_LIBRARY   "libzstd.so.1"

/* A loaded compression library. */
struct pack;

/* Loads `library`, a name as dlopen takes it. The caller frees *ret_pack with pack_close, which accepts NULL.
 * Returns PHX_ERROR_NONE if the library is missing or is not the expected one; the message says which. */
int pack_open(const char *library, int level, struct pack **ret_pack, struct phx_error *error);
void pack_close(struct pack *pack);

/* Compresses a piece of 1 to PACK_PIECE bytes. Its form on the wire is *ret_head (PACK_HEAD bytes), then
 * *ret_body, whose length is returned. Both are valid until the next call, and while the piece itself is. */
size_t pack_piece(struct pack *pack, const uint8_t *piece, size_t len, const uint8_t **ret_head,
                  const uint8_t **ret_body);

/* ---- the other side ---- */

/* A piece that is being received, in parts of any length. Begins as all zeros; pack_room allocates its
 * buffer. */
struct pack_inbox {
    uint8_t head[PACK_HEAD];
    size_t have, size; /* bytes of head and body that have arrived; length of the body, known with the head */
    uint8_t *room;     /* [PACK_PIECE] */
};

bool pack_room(struct pack_inbox *inbox); /* returns false if there is no memory */
void pack_room_done(struct pack_inbox *inbox);
/* Returns where to put the next bytes; *ret_len is the most of them, above 0. */
uint8_t *pack_next(struct pack_inbox *inbox, size_t *ret_len);
/* Tells the inbox that `count` bytes arrived of a piece whose length is `len` bytes (1 to PACK_PIECE).
 * Returns -1 if they are no piece, 0 if more bytes must come, 1 if the piece is whole: take it before the
 * next. */
int pack_came(struct pack_inbox *inbox, size_t count, size_t len);
/* Unpacks the piece into `to`, `len` bytes, and adds them to the checksum *crc. Returns false if the piece is
 * not valid. */
bool pack_take(struct pack *pack, struct pack_inbox *inbox, uint8_t *to, size_t len, uint32_t *crc);

#endif
