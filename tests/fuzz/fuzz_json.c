/* Any bytes to json_parse: no crash, memory within the limit, a place in every refusal; what is accepted is a
 * document of valid strings that is the same after writing and reading, and writing is a fixed point. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20 };

static void check_node(const struct doc *node)
{
    CHECK(node->line > 0 && node->column > 0);
    CHECK(str_is_utf8(node->text) && (!node->text.len || !memchr(node->text.data, 0, node->text.len)));
    for (size_t i = 0; i < doc_len(node); i++) {
        if (node->kind == DOC_ARRAY) {
            check_node(node->array.items[i]);
            continue;
        }
        const struct doc_member *member = &node->object.members[i];
        CHECK(str_is_utf8(member->key) &&
              (!member->key.len || !memchr(member->key.data, 0, member->key.len)));
        if (i < 50)
            CHECK(doc_get_str(node, member->key) == member->value); /* unique */
        check_node(member->value);
    }
}

static void check_error(const struct error *error, int code)
{
    unsigned line, column;
    CHECK((code == ERROR_INVALID || code == ERROR_LIMIT) && error->code == code);
    CHECK(sscanf(error->text, "%u:%u: ", &line, &column) == 2 && line > 0 && column > 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct buf BUF_CLEANUP compact = {0}, pretty = {0}, again = {0};
    struct doc *doc = NULL, *back = NULL;
    struct error error;
    int code = json_parse(&arena, (struct str){(const char *)data, size}, &doc, &error);
    CHECK(arena.used_bytes <= LIMIT);
    if (code < 0) {
        CHECK(!doc);
        check_error(&error, code);
        return 0;
    }
    arena.limit_bytes = 0;
    check_node(doc);
    json_write(&compact, doc);
    json_write_pretty(&pretty, doc);
    CHECK(json_parse(&arena, buf_str(&compact), &back, &error) == 0 && doc_equal(doc, back));
    json_write(&again, back);
    CHECK(str_equal(buf_str(&compact), buf_str(&again)));
    CHECK(json_parse(&arena, buf_str(&pretty), &back, &error) == 0 && doc_equal(doc, back));
    CHECK(doc_equal(doc, doc_clone(&arena, doc)));
    return 0;
}
