/* The pieces of a stream, in order. */
#include "flow/wire/stream.h"

#include <stdlib.h>
#include <string.h>

static struct stream_piece *piece_new(uint64_t at, size_t len)
{
    size_t room = len > STREAM_PIECE_ROOM ? len : STREAM_PIECE_ROOM;
    struct stream_piece *piece =
        malloc(sizeof *piece + room); /* not mem_alloc, whose zeroing costs as much as a copy */
    CHECK(piece);
    *piece = (struct stream_piece){.at = at, .len = len, .room = room};
    return piece;
}

void stream_done(struct stream *stream)
{
    for (size_t i = 0; i < stream->pieces.len; i++)
        free(stream->pieces.items[i]);
    vec_done(&stream->pieces);
}

/* Whether bytes at this place are new and inside the window; *ret_index is the index for their piece. */
static bool stream_allows(const struct stream *stream, uint64_t at, size_t len, size_t *ret_index)
{
    uint64_t end = stream->taken + STREAM_WINDOW;
    if (len == 0 || at < stream->taken || at > end || len > end - at)
        return false;
    size_t count = stream->pieces.len;
    size_t index = sorted_place(count, i, stream->pieces.items[i]->at, at);
    if (index < count && len > stream->pieces.items[index]->at - at)
        return false;
    if (index > 0) {
        const struct stream_piece *before = stream->pieces.items[index - 1];
        if (before->at + before->len > at)
            return false;
    }
    *ret_index = index;
    return true;
}

static struct stream_piece *stream_insert(struct stream *stream, size_t index, uint64_t at, size_t len)
{
    if (stream->pieces.len == STREAM_PIECES_MAX)
        return NULL;
    struct stream_piece *piece = piece_new(at, len);
    vec_push(&stream->pieces, piece);
    struct stream_piece **items = stream->pieces.items;
    memmove(items + index + 1, items + index, (stream->pieces.len - 1 - index) * sizeof *items);
    items[index] = piece;
    return piece;
}

struct stream_piece *stream_piece(struct stream *stream, uint64_t at, size_t len)
{
    size_t index;
    return stream_allows(stream, at, len, &index) ? stream_insert(stream, index, at, len) : NULL;
}

bool stream_take(struct stream *stream, uint64_t at, const void *data, size_t len)
{
    size_t index;
    if (!stream_allows(stream, at, len, &index))
        return false;
    struct stream_piece *before = index > 0 ? stream->pieces.items[index - 1] : NULL;
    if (before && before->whole && before->at + before->len == at && before->room - before->len >= len) {
        memcpy(before->data + before->len, data, len);
        before->len += len;
        return true;
    }
    struct stream_piece *piece = stream_insert(stream, index, at, len);
    if (!piece)
        return false;
    memcpy(piece->data, data, len);
    piece->whole = true;
    return true;
}

bool stream_has(const struct stream *stream)
{
    const struct stream_piece *first = stream->pieces.len ? stream->pieces.items[0] : NULL;
    return first && first->whole && first->at + stream->read == stream->taken;
}

size_t stream_read(struct stream *stream, void *data, size_t len)
{
    size_t done = 0, over = 0;
    while (done < len && over < stream->pieces.len) {
        struct stream_piece *piece = stream->pieces.items[over];
        if (!piece->whole || piece->at + stream->read != stream->taken)
            break;
        size_t left = piece->len - stream->read, moved = left < len - done ? left : len - done;
        memcpy((char *)data + done, piece->data + stream->read, moved);
        done += moved;
        stream->read += moved;
        stream->taken += moved;
        if (stream->read < piece->len)
            break;
        stream->read = 0;
        free(piece);
        over++;
    }
    if (over > 0) {
        stream->pieces.len -= over;
        memmove(stream->pieces.items, stream->pieces.items + over,
                stream->pieces.len * sizeof *stream->pieces.items);
    }
    return done;
}

bool stream_owes(const struct stream *stream)
{
    return stream->taken - stream->told >= STREAM_WINDOW / 4;
}

uint64_t stream_tell(struct stream *stream)
{
    return stream->told = stream->taken;
}

size_t stream_room(const struct stream *stream)
{
    return (size_t)(STREAM_WINDOW - (stream->sent - stream->peer_taken));
}

void stream_sent(struct stream *stream, size_t len)
{
    CHECK(len <= stream_room(stream));
    stream->sent += len;
}

bool stream_credit(struct stream *stream, uint64_t taken)
{
    if (taken > stream->sent || taken < stream->peer_taken)
        return false;
    stream->peer_taken = taken;
    return true;
}
