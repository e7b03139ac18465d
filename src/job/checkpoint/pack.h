/* pack.h - data for another machine in pieces compressed by zstd. The library needs libc alone, so libzstd is
 * loaded (dlopen) when it is first needed; a job goes on without it.
 *
 * The data is cut into pieces of PACK_PIECE bytes, the last one shorter; both sides know where. On the wire:
 *
 *     u32 n (little-endian), n bytes: the piece itself if n is its length, a zstd frame of it if n is less
 *
 * and nothing else is valid. So neither side needs memory for more than one piece, and a piece that would not
 * get smaller is sent as it is. A frame is unpacked into exactly the place of its piece, never beyond.
 *
 * One owner each. Blocks only by the processor's time.
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

/* `library`: as dlopen takes it. PHX_ERROR_NONE: it is not there, or another one than expected; the message
 * says which. Given to pack_close, which takes NULL too. */
int pack_open(const char *library, int level, struct pack **ret_pack, struct phx_error *error);
void pack_close(struct pack *pack);

/* A piece, 1 to PACK_PIECE bytes, as it goes on the wire. *ret_head: valid until the next call; *ret_body: in
 * the piece itself or as long as *ret_head. Returns the length of the body. */
size_t pack_piece(struct pack *pack, const uint8_t *piece, size_t len, const uint8_t **ret_head,
                  const uint8_t **ret_body);

/* ---- the other side ---- */

/* A piece that comes, in whatever parts. All zero at the beginning; the room is made by pack_room. */
struct pack_inbox {
    uint8_t head[PACK_HEAD];
    size_t have, size; /* of head and body; of the body, known with the head */
    uint8_t *room;     /* [PACK_PIECE] */
};

bool pack_room(struct pack_inbox *inbox); /* false: there is no memory */
void pack_room_done(struct pack_inbox *inbox);
/* Where the next bytes go, and how many at most: more than 0. */
uint8_t *pack_next(struct pack_inbox *inbox, size_t *ret_len);
/* Tells the inbox that `count` bytes arrived of a piece whose length is `len` bytes (1 to PACK_PIECE).
 * Returns -1 if they are no piece, 0 if more bytes must come, 1 if the piece is whole: take it before the
 * next. */
int pack_came(struct pack_inbox *inbox, size_t count, size_t len);
/* Puts the piece to its place, `len` bytes, and goes on with their checksum. False: they are no piece. */
bool pack_take(struct pack *pack, struct pack_inbox *inbox, uint8_t *to, size_t len, uint32_t *crc);

#endif
