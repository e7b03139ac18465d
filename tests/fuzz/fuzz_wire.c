/* Bytes from a peer: a stream of frames, and the messages in them. What decodes must encode again to
 * something that decodes to the same bytes. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "core/agent/codec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 1 << 20 };

static void round_trip_agent(struct str bytes)
{
    ARENA_CLEANUP struct arena arena = {.limit_bytes = LIMIT};
    struct from_agent message;
    struct error error;
    if (codec_get_agent(&arena, bytes, &message, &error) < 0)
        return;
    BUF_CLEANUP struct buf first = {0}, second = {0};
    CHECK(codec_put_agent(&first, &message, &error) == 0);
    ARENA_CLEANUP struct arena again = {0};
    struct str inner;
    size_t used;
    CHECK(codec_frame(first.data, first.len, &inner, &used, &error) == 1 && used == first.len);
    CHECK(codec_get_agent(&again, inner, &message, &error) == 0);
    CHECK(codec_put_agent(&second, &message, &error) == 0);
    CHECK(str_equal(buf_str(&first), buf_str(&second)));
}

static void round_trip_controller(struct str bytes)
{
    ARENA_CLEANUP struct arena arena = {.limit_bytes = LIMIT};
    struct from_controller message;
    struct error error;
    if (codec_get_controller(&arena, bytes, &message, &error) < 0)
        return;
    BUF_CLEANUP struct buf first = {0}, second = {0};
    CHECK(codec_put_controller(&first, &message, &error) == 0);
    ARENA_CLEANUP struct arena again = {0};
    struct str inner;
    size_t used;
    CHECK(codec_frame(first.data, first.len, &inner, &used, &error) == 1 && used == first.len);
    CHECK(codec_get_controller(&again, inner, &message, &error) == 0);
    CHECK(codec_put_controller(&second, &message, &error) == 0);
    CHECK(str_equal(buf_str(&first), buf_str(&second)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct str bytes = {(const char *)data, size};
    struct str inner;
    size_t used;
    struct error error;
    size_t pos = 0;
    while (codec_frame(bytes.data + pos, size - pos, &inner, &used, &error) == 1)
        pos += used;
    round_trip_agent(bytes);
    round_trip_controller(bytes);
    return 0;
}
