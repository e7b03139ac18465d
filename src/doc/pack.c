#include "doc/pack.h"

#include "base/check.h"
#include "doc/json.h"

struct doc *doc_packed(struct arena *arena, const struct doc *node)
{
    if (node->kind != DOC_ARRAY && node->kind != DOC_OBJECT)
        return doc_clone(arena, node);
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, node);
    struct doc *packed = doc_new(arena, DOC_PACKED);
    packed->packed_len = doc_len(node);
    packed->text = arena_str(arena, buf_str(&text));
    CHECK(packed->text.len >= 2);
    return packed;
}

const struct doc *doc_unpacked(struct arena *arena, const struct doc *node)
{
    struct doc *tree;
    if (!node || node->kind != DOC_PACKED)
        return node;
    CHECK(json_parse(arena, node->text, &tree, NULL) == 0 && doc_len(tree) == node->packed_len);
    return tree;
}

size_t doc_bytes(const struct doc *node)
{
    size_t bytes = DOC_NODE_BYTES + node->text.len;
    for (size_t i = 0; node->kind == DOC_ARRAY && i < node->array.len; i++)
        bytes += doc_bytes(node->array.items[i]);
    for (size_t i = 0; node->kind == DOC_OBJECT && i < node->object.len; i++)
        bytes += node->object.members[i].key.len + doc_bytes(node->object.members[i].value);
    return bytes;
}
