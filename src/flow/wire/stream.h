/* stream.h - a stream of bytes over messages that may come in any order; private to src/flow/wire.
 *
 *     sender     len = min(len, stream_room(&stream)); send them with their place; stream_sent(&stream, len)
 *     receiver   stream_take(&stream, place, data, len); len = stream_read(&stream, room, size)
 *                if (stream_owes(&stream)) tell the sender stream_tell(&stream)
 *     sender     stream_credit(&stream, so many)
 *
 * Each message names the place of its bytes in the stream. At most STREAM_WINDOW bytes may be on their way
 * or unread, so a receiver that does not read bounds its memory; a sender that passes the window is refused.
 * Bytes that their carrier fetches from the sender's memory have their piece first (stream_piece), and are
 * read once piece->whole is set. No I/O; not thread-safe.
 */
#ifndef PHX_FLOW_WIRE_STREAM_H
#define PHX_FLOW_WIRE_STREAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"

enum {
    STREAM_WINDOW = 4 << 20,
    STREAM_PIECES_MAX = 4096,
    STREAM_PIECE_ROOM = 4096, /* bytes; the least that is allocated, for the small messages that follow */
};

/* Bytes of one message, or of several that follow each other. */
struct stream_piece {
    uint64_t at;
    size_t len, room;
    bool whole; /* its bytes are there */
    char data[];
};

struct stream {
    VEC(struct stream_piece *) pieces; /* by place */
    size_t read;                       /* bytes of the first piece that have been read */
    uint64_t taken, told;              /* bytes read in all; of them, those the sender knows of */
    uint64_t sent, peer_taken;         /* bytes of the other direction */
};

void stream_done(struct stream *stream);

/* Keeps a copy of the bytes. False: they overlap others, or pass the window. */
bool stream_take(struct stream *stream, uint64_t at, const void *data, size_t len);
/* A piece for bytes that are to be fetched; it stays where it is until it is whole. NULL: as above. */
struct stream_piece *stream_piece(struct stream *stream, uint64_t at, size_t len);
/* Whether the next byte is there. */
bool stream_has(const struct stream *stream);
/* Moves up to `len` bytes out; all that are there in order, if they fit. */
size_t stream_read(struct stream *stream, void *data, size_t len);

/* Whether the sender should hear how far this side has read. */
bool stream_owes(const struct stream *stream);
/* The number of bytes to tell, which counts as told. */
uint64_t stream_tell(struct stream *stream);

/* Bytes that may be sent now. */
size_t stream_room(const struct stream *stream);
void stream_sent(struct stream *stream, size_t len);
/* The peer has read so many bytes in all. False: it has not been sent that many, or had read more before. */
bool stream_credit(struct stream *stream, uint64_t taken);

#endif
