/* Any bytes to pickle_parse: no crash, memory within the limit, a place in every refusal; what is accepted is
 * a document of valid strings without cycles, which JSON can say and read back as the same. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "doc/pickle.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20, SHOWN_MAX = 100000 };

/* Nodes, those that are shared counted each time. */
static size_t check_node(const struct doc *node, int depth)
{
    size_t count = 1;
    CHECK(depth <= PICKLE_DEPTH_MAX);
    CHECK(str_is_utf8(node->text) && (!node->text.len || !memchr(node->text.data, 0, node->text.len)));
    for (size_t i = 0; i < doc_len(node); i++) {
        if (node->kind == DOC_ARRAY) {
            count += check_node(node->array.items[i], depth + 1);
            continue;
        }
        const struct doc_member *member = &node->object.members[i];
        CHECK(str_is_utf8(member->key) &&
              (!member->key.len || !memchr(member->key.data, 0, member->key.len)));
        if (i < 50)
            CHECK(doc_get_str(node, member->key) == member->value); /* unique */
        count += check_node(member->value, depth + 1);
    }
    CHECK(count <= PICKLE_NODES_MAX);
    return count;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct buf BUF_CLEANUP text = {0};
    struct doc *doc = NULL, *back = NULL;
    struct error error;
    size_t at;
    int code = pickle_parse(&arena, (struct str){(const char *)data, size}, &doc, &error);
    CHECK(arena.used_bytes <= LIMIT);
    if (code < 0) {
        CHECK(!doc && error.code == code);
        CHECK(code == ERROR_INVALID || code == ERROR_LIMIT || code == ERROR_UNSUPPORTED);
        CHECK(sscanf(error.text, "byte %zu: ", &at) == 1 && at <= size);
        return 0;
    }
    if (check_node(doc, 1) > SHOWN_MAX)
        return 0;
    arena.limit_bytes = 0;
    json_write(&text, doc);
    CHECK(json_parse(&arena, buf_str(&text), &back, &error) == 0 && doc_equal(doc, back));
    return 0;
}
