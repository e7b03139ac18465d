/* Any JSON, packed and unpacked again: the same document, whatever its numbers and strings, also as members
 * of another one and as a copy; and it is charged alike. */
#include "doc/json.h"
#include "doc/pack.h"

static struct str text_of(struct arena *arena, const struct doc *node)
{
    struct buf text = {0};
    json_write(&text, node);
    struct str copy = arena_str(arena, buf_str(&text));
    buf_done(&text);
    return copy;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 64 << 20};
    struct error error;
    struct doc *tree;
    if (json_parse(&arena, (struct str){(const char *)data, size}, &tree, &error) < 0)
        return 0;
    struct doc *packed = doc_packed(&arena, tree);
    CHECK(doc_equal(packed, tree) && doc_equal(tree, packed));
    CHECK(doc_len(packed) == doc_len(tree));
    CHECK(doc_equal(doc_unpacked(&arena, packed), tree));
    CHECK(doc_equal(doc_clone(&arena, packed), tree));
    CHECK(str_equal(text_of(&arena, packed), text_of(&arena, tree)));
    return 0;
}
