/* Bytes of an HTTP server: the same response however they are cut, and never more bytes than were sent. */
#include <stdint.h>

#include "base/check.h"
#include "net/http_reply.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void note_field(void *context, struct str name, struct str value)
{
    buf_printf(context, "[" STR_FORMAT ":" STR_FORMAT "]", STR_ARG(name), STR_ARG(value));
}

static bool note_body(void *context, int code, struct str bytes)
{
    CHECK(code >= 200 && bytes.len > 0);
    buf_add_str(context, bytes);
    return true;
}

/* Everything that the parser made of the bytes. */
static void read_all(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
    struct http_sink sink = {out, note_field, note_body};
    struct http_reply reply;
    struct error error;
    size_t at = 0;
    int rc = 0;
    http_reply_begin(&reply, size && data[0] == 'h');
    while (rc == 0 && at < size && !http_reply_complete(&reply)) {
        size_t some = size - at < piece ? size - at : piece, used = 0;
        rc = http_reply_take(&reply, (struct str){(const char *)data + at, some}, &sink, &used, &error);
        CHECK(rc < 0 || used == some || http_reply_complete(&reply));
        at += rc < 0 ? 0 : used;
    }
    if (rc == 0)
        rc = http_reply_closed(&reply, &error);
    buf_printf(out, "{%d %d %d}", rc, reply.code, rc == 0 && reply.keep_alive);
    http_reply_done(&reply);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf whole BUF_CLEANUP = {0}, cut BUF_CLEANUP = {0};
    read_all(data, size, size + 1, &whole);
    read_all(data, size, 1 + size % 7, &cut);
    CHECK(str_equal(buf_str(&whole), buf_str(&cut)));
    return 0;
}
