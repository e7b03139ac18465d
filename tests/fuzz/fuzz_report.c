/* Requests that an agent answers itself: a request's head, a body in chunks, and the reports of daemons in
 * one. The first byte chooses which. */
#include "base/arena.h"
#include "base/check.h"
#include "host/agent/report.h"
#include "host/http/head.h"

enum { HEAD_MAX = 8 * 1024 };

static void fuzz_body(struct str text)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct signal *signals;
    size_t count;
    struct error error;
    if (report_parse(&arena, text, 8, 1, &signals, &count, &error) < 0)
        return;
    CHECK(count <= REPORT_SIGNALS_MAX);
    for (size_t i = 0; i < count; i++)
        CHECK(signal_is_valid(&signals[i]) && signals[i].chip < 8);
}

/* A verdict about a beginning may only become final, and a whole head stays what it is. */
static void fuzz_head(struct str bytes)
{
    static struct http_head head, again;
    size_t len, same;
    int rc = http_head_parse(bytes, 0, HEAD_MAX, &head, &len);
    CHECK(rc <= 1);
    if (rc != 1)
        return;
    CHECK(head.target.len > 0 && head.method.len > 0 && len <= bytes.len &&
          head.content_length >= HTTP_CHUNKED);
    for (size_t i = 0; i < head.header_count; i++)
        CHECK(head.headers[i].value.data + head.headers[i].value.len <= bytes.data + len);
    CHECK(http_head_parse((struct str){bytes.data, len}, len - 1, HEAD_MAX, &again, &same) == 1 &&
          same == len);
    CHECK(http_head_parse((struct str){bytes.data, len - 1}, 0, HEAD_MAX, &again, &same) == 0);
}

/* A body in chunks reads the same however it is cut. */
static void fuzz_chunks(struct str bytes)
{
    struct http_chunks whole = {0}, cut = {0};
    struct str rest = bytes, data;
    size_t sum = 0, cut_sum = 0, at = 0;
    int rc = 0, cut_rc = 0;
    while (rest.len && rc == 0) {
        rc = http_chunks_take(&whole, &rest, &data);
        sum += data.len;
    }
    for (; at < bytes.len && cut_rc == 0; at++) {
        struct str one = {bytes.data + at, 1};
        cut_rc = http_chunks_take(&cut, &one, &data);
        cut_sum += data.len;
    }
    CHECK(rc == cut_rc && sum == cut_sum && at == bytes.len - rest.len);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    if (data[0] & 1)
        fuzz_body(text);
    else if (data[0] & 2)
        fuzz_chunks(text);
    else
        fuzz_head(text);
    return 0;
}
