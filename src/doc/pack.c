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

/* Returns the bytes of an array's items or an object's members. Most are scalars, which cost no call. */
static size_t bytes_below(const struct doc *node)
{
    bool is_array = node->kind == DOC_ARRAY;
    size_t bytes = 0, len = is_array ? node->array.len : node->object.len;
    for (size_t i = 0; i < len; i++) {
        const struct doc *inner = is_array ? node->array.items[i] : node->object.members[i].value;
        bytes += DOC_NODE_BYTES + inner->text.len + (is_array ? 0 : node->object.members[i].key.len);
        if (inner->kind == DOC_ARRAY || inner->kind == DOC_OBJECT)
            bytes += bytes_below(inner);
    }
    return bytes;
}

size_t doc_bytes(const struct doc *node)
{
    bool holds = node->kind == DOC_ARRAY || node->kind == DOC_OBJECT;
    return DOC_NODE_BYTES + node->text.len + (holds ? bytes_below(node) : 0);
}
