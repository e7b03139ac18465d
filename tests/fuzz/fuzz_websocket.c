/* Bytes of a websocket peer: the same events however they are cut, and never more than was sent. */
#include <stdint.h>
#include <stdlib.h>

#include "base/check.h"
#include "net/websocket.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Everything that came, in an order that the cuts do not change. */
static void read_all(enum websocket_role role, const uint8_t *data, size_t size, size_t piece,
                     struct buf *out)
{
    struct websocket socket;
    websocket_init(&socket, role, 1 << 16);
    struct buf copy BUF_CLEANUP = {0};
    buf_add(&copy, data, size);
    for (size_t at = 0; at < size;) {
        size_t end = size - at < piece ? size : at + piece, used;
        struct websocket_event event;
        do {
            websocket_next(&socket, copy.data + at, end - at, &used, &event);
            CHECK(used <= end - at);
            at += used;
            if (event.kind != WEBSOCKET_MORE && event.kind != WEBSOCKET_DATA)
                buf_printf(out, "[%d %u]", (int)event.kind, event.code);
            else if (event.first)
                buf_printf(out, "[%d]", event.text);
            buf_add_str(out, event.bytes);
            if (event.last)
                buf_printf(out, "[end]");
        } while (event.kind != WEBSOCKET_MORE);
        CHECK(at == end);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    enum websocket_role role = data[0] & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
    size_t piece = 1 + data[0] / 8;
    struct buf whole BUF_CLEANUP = {0}, cut BUF_CLEANUP = {0};
    read_all(role, data + 1, size - 1, size, &whole);
    read_all(role, data + 1, size - 1, piece, &cut);
    CHECK(str_equal(buf_str(&whole), buf_str(&cut)));
    return 0;
}
