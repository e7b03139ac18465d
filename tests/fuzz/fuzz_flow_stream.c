/* Messages of a peer over UCX, in any place and order, compared with a plain picture of the bytes. Each
 * message is four bytes of place, two of length, and one that says how it comes and how much is read then. */
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "flow/wire/stream.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { MESSAGE_BYTES = 7, FETCHING_MAX = 16 };

static uint8_t byte_at(uint64_t at)
{
    return (uint8_t)(at ^ at >> 8 ^ at >> 16);
}

static void fill(char *data, uint64_t at, size_t len)
{
    for (size_t i = 0; i < len; i++)
        data[i] = (char)byte_at(at + i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char bytes[UINT16_MAX];
    struct stream stream = {0};
    struct stream_piece *fetching[FETCHING_MAX];
    size_t waiting = 0;
    for (; size >= MESSAGE_BYTES; data += MESSAGE_BYTES, size -= MESSAGE_BYTES) {
        uint32_t at;
        uint16_t len;
        memcpy(&at, data, sizeof at);
        memcpy(&len, data + 4, sizeof len);
        uint64_t place = data[6] & 1 ? stream.taken + at % 256 : at; /* near, or anywhere */
        if (data[6] & 2 && waiting < FETCHING_MAX) {
            struct stream_piece *piece = stream_piece(&stream, place, len);
            if (piece)
                fetching[waiting++] = piece;
        } else {
            fill(bytes, place, len);
            stream_take(&stream, place, bytes, len);
        }
        if (data[6] & 4 && waiting > 0) {
            struct stream_piece *piece = fetching[--waiting];
            fill(piece->data, piece->at, piece->len);
            piece->whole = true;
        }
        uint64_t before = stream.taken;
        size_t got = stream_read(&stream, bytes, (size_t)(data[6] >> 3) * 256);
        for (size_t i = 0; i < got; i++)
            CHECK((uint8_t)bytes[i] == byte_at(before + i));
        CHECK(stream.taken == before + got && stream.pieces.len <= STREAM_PIECES_MAX);
        if (stream_owes(&stream))
            CHECK(stream_tell(&stream) == stream.taken);
    }
    stream_done(&stream);
    return 0;
}
