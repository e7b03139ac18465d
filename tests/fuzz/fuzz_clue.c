/* Any bytes as the end of a log: no crash, valid clues, at most one of a kind, strongest first; and the same
 * whether or not the text stands behind a line of something else. */
#include "base/check.h"
#include "core/health/clue.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct buf behind BUF_CLEANUP = {0};
    struct clue clues[CLUES_MAX], again[CLUES_MAX];
    struct str text = {(const char *)data, size};
    size_t count = clues_read(&arena, text, clues);
    CHECK(count <= CLUES_MAX);
    for (size_t i = 0; i < count; i++) {
        CHECK(clue_is_valid(&clues[i]));
        CHECK(i == 0 || clue_weight(clues[i].kind) <= clue_weight(clues[i - 1].kind));
        for (size_t j = 0; j < i; j++)
            CHECK(clues[j].kind != clues[i].kind);
    }
    buf_add_str(&behind, STR("step 1\n"));
    buf_add_str(&behind, text);
    CHECK(clues_read(&arena, buf_str(&behind), again) == count);
    for (size_t i = 0; i < count; i++)
        CHECK(again[i].kind == clues[i].kind && str_equal(again[i].line, clues[i].line));
    return 0;
}
