/* Any bytes as the end of a log: no crash, valid signatures, at most one of a kind, strongest first; and the
 * same whether or not the text stands behind a line of something else. */
#include "base/check.h"
#include "core/health/signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf behind BUF_CLEANUP = {0};
    struct signature signatures[SIGNATURES_MAX], again[SIGNATURES_MAX];
    struct str text = {(const char *)data, size};
    size_t count = signatures_read(&arena, text, signatures);
    CHECK(count <= SIGNATURES_MAX);
    for (size_t i = 0; i < count; i++) {
        CHECK(signature_is_valid(&signatures[i]));
        CHECK(i == 0 || signature_weight(signatures[i].kind) <= signature_weight(signatures[i - 1].kind));
        for (size_t j = 0; j < i; j++)
            CHECK(signatures[j].kind != signatures[i].kind);
    }
    buf_add_str(&behind, STR("step 1\n"));
    buf_add_str(&behind, text);
    CHECK(signatures_read(&arena, buf_str(&behind), again) == count);
    for (size_t i = 0; i < count; i++)
        CHECK(again[i].kind == signatures[i].kind && str_equal(again[i].line, signatures[i].line));
    return 0;
}
