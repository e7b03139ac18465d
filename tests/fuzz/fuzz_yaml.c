/* Any bytes to yaml_parse_all: no crash, memory within the limit, a place in every refusal; what is accepted
 * is the same after being written as YAML, and as JSON, and read again. */
#include <stdint.h>
#include <stdio.h>

#include "base/check.h"
#include "doc/json.h"
#include "doc/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { LIMIT = 16 << 20 };

static void check_node(const struct doc *node, int depth)
{
    CHECK(depth <= YAML_DEPTH_MAX && node->line > 0 && node->column > 0);
    CHECK(str_is_utf8(node->text) && (!node->text.len || !memchr(node->text.data, 0, node->text.len)));
    for (size_t i = 0; i < doc_len(node); i++) {
        if (node->kind == DOC_ARRAY) {
            check_node(node->array.items[i], depth + 1);
            continue;
        }
        const struct doc_member *member = &node->object.members[i];
        CHECK(str_is_utf8(member->key) &&
              (!member->key.len || !memchr(member->key.data, 0, member->key.len)));
        if (i < 50)
            CHECK(doc_get_str(node, member->key) == member->value); /* unique */
        check_node(member->value, depth + 1);
    }
}

static void check_error(const struct error *error, int code)
{
    unsigned line, column;
    CHECK((code == ERROR_INVALID || code == ERROR_LIMIT) && error->code == code);
    CHECK(sscanf(error->text, "%u:%u: ", &line, &column) == 2 && line > 0 && column > 0);
}

static void check_round_trips(const struct doc *doc)
{
    struct arena ARENA_CLEANUP arena = {0};
    struct buf BUF_CLEANUP yaml = {0}, json = {0};
    struct doc_list docs;
    struct doc *back;
    struct error error;
    /* In an array, as a text that begins with '{' or '[' would be read as JSON. */
    struct doc *array = doc_new(&arena, DOC_ARRAY);
    doc_push(&arena, array, doc_clone(&arena, doc));
    json_write(&json, doc);
    CHECK(json_parse(&arena, buf_str(&json), &back, &error) == 0 && doc_equal(doc, back));
    yaml_write(&yaml, array);
    int code = yaml_parse_all(&arena, buf_str(&yaml), &docs, &error);
    CHECK(code == 0 || code == ERROR_LIMIT); /* one level deeper */
    if (code == 0)
        CHECK(docs.len == 1 && doc_equal(docs.items[0], array));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct arena ARENA_CLEANUP arena = {.limit_bytes = LIMIT};
    struct doc_list docs = {0};
    struct error error;
    int code = yaml_parse_all(&arena, (struct str){(const char *)data, size}, &docs, &error);
    CHECK(arena.used_bytes <= LIMIT);
    if (code < 0) {
        CHECK(!docs.items);
        check_error(&error, code);
        return 0;
    }
    CHECK(docs.len <= YAML_DOCUMENTS_MAX);
    for (size_t i = 0; i < docs.len; i++) {
        CHECK(docs.items[i]->kind != DOC_NULL);
        check_node(docs.items[i], 0);
        if (i < 4)
            check_round_trips(docs.items[i]);
    }
    return 0;
}
