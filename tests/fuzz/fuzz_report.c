/* What an agent answers itself: a request as bytes come, and the reports of daemons in its body. The
 * first byte chooses which. */
#include "base/arena.h"
#include "base/check.h"
#include "host/agent/http.h"
#include "host/agent/report.h"

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

/* What is said of a beginning may only become final, and a whole request stays what it is. */
static void fuzz_head(struct str bytes)
{
    struct http_request request, again;
    int rc = http_parse(bytes, &request);
    CHECK(rc <= 1);
    if (rc != 1)
        return;
    CHECK(request.path.len > 0 && request.path.data[0] == '/' && request.method.len > 0);
    CHECK(request.body.len <= HTTP_BODY_MAX &&
          request.body.data + request.body.len <= bytes.data + bytes.len);
    size_t used = (size_t)(request.body.data + request.body.len - bytes.data);
    CHECK(http_parse((struct str){bytes.data, used}, &again) == 1);
    CHECK(used == 0 || http_parse((struct str){bytes.data, used - 1}, &again) <= 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size == 0)
        return 0;
    struct str text = {(const char *)data + 1, size - 1};
    if (data[0] & 1)
        fuzz_body(text);
    else
        fuzz_head(text);
    return 0;
}
