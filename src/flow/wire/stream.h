/* stream.h - a stream of bytes over messages that may arrive in any order; private to src/flow/wire.
 *
 *     sender     len = min(len, stream_room(&stream)); send them with their place; stream_sent(&stream, len)
 *     receiver   stream_take(&stream, place, data, len); len = stream_read(&stream, room, size)
 *                if (stream_owes(&stream)) send stream_tell(&stream) to the sender
 *     sender     stream_credit(&stream, that number)
 *
 * Each message carries the place of its bytes in the stream. At most STREAM_WINDOW bytes may be in flight or
 * unread, which bounds the memory of a receiver that does not read. Bytes beyond the window are refused.
 * Bytes that the carrier fetches from the sender's memory get a piece first (stream_piece) and can be read
 * once piece->whole is set. No I/O; not thread-safe.
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
    STREAM_PIECE_ROOM = 4096, /* smallest allocation of a piece, in bytes; small messages share it */
};

/* The bytes of one message, or of several adjacent ones. */
struct stream_piece {
    uint64_t at;
    size_t len, room;
    bool whole; /* all bytes have arrived */
    char data[];
};

struct stream {
    VEC(struct stream_piece *) pieces; /* ordered by place */
    size_t read;                       /* bytes of the first piece that have been read */
    uint64_t taken, told;              /* receiving: total read; total last reported to the sender */
    uint64_t sent, peer_taken;         /* sending: total sent; total that the peer has read */
};

void stream_done(struct stream *stream);

/* Copies the bytes. Returns false if they overlap others or exceed the window, or if there are too many
 * pieces. */
bool stream_take(struct stream *stream, uint64_t at, const void *data, size_t len);
/* Returns a piece for bytes that are to be fetched, or NULL where stream_take would refuse them. The piece
 * stays in place until it is whole. */
struct stream_piece *stream_piece(struct stream *stream, uint64_t at, size_t len);
/* Returns whether the next byte of the stream has arrived. */
bool stream_has(const struct stream *stream);
/* Moves the next bytes to `data`, at most `len` and as far as they have arrived without a gap. Returns their
 * number. */
size_t stream_read(struct stream *stream, void *data, size_t len);

/* Returns whether enough bytes have been read to report it to the sender. */
bool stream_owes(const struct stream *stream);
/* Returns the total of bytes read, and records it as reported. */
uint64_t stream_tell(struct stream *stream);

/* Returns how many bytes may be sent now. */
size_t stream_room(const struct stream *stream);
void stream_sent(struct stream *stream, size_t len);
/* Records that the peer has read `taken` bytes in all. Returns false if that is more than was sent to it, or
 * less than it reported before. */
bool stream_credit(struct stream *stream, uint64_t taken);

#endif
