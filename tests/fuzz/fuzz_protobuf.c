/* fuzz_protobuf.c - any bytes as a protobuf body: an object that is JSON, or an error. */
#include <stddef.h>
#include <stdint.h>

#include "base/check.h"
#include "doc/json.h"
#include "kube/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct str body, bool options)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct buf text BUF_CLEANUP = {0};
    struct doc *object, *again;
    if (protobuf_read(&arena, body, options, &object, &error) < 0)
        return;
    json_write(&text, object);
    CHECK(json_parse(&arena, buf_str(&text), &again, &error) == 0 && doc_equal(object, again));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct str body = {(const char *)data, size};
    check(body, false);
    check(body, true);
    (void)protobuf_review(&arena, body, false);
    (void)protobuf_review(&arena, body, true);
    return 0;
}
