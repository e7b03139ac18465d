/* doc_equal.c - whether two documents have the same content. */
#include "base/check.h"
#include "base/map.h"
#include "doc/pack.h"

/* Beyond this many members an index pays. */
enum { LINEAR_MAX = 16 };

static bool objects_equal(const struct doc *a, const struct doc *b)
{
    size_t len = a->object.len;
    if (len != b->object.len)
        return false;
    struct str_map index = {0};
    bool equal = true;
    for (size_t i = 0; i < len && equal; i++) {
        const struct doc_member *member = &a->object.members[i];
        struct doc *other = NULL;
        if (str_equal(b->object.members[i].key, member->key)) {
            other = b->object.members[i].value;
        } else if (len <= LINEAR_MAX) {
            other = doc_get_str(b, member->key);
        } else {
            for (size_t k = 0; k < len && index.len < len; k++)
                str_map_put(&index, b->object.members[k].key, b->object.members[k].value);
            other = str_map_get(&index, member->key);
        }
        equal = other && doc_equal(member->value, other);
    }
    str_map_done(&index);
    return equal;
}

/* Returns whether two packed texts first differ inside a string that is the value of a member. All text
 * before it is the same, so both objects have the member, with different values. */
static bool first_differ_in_value(struct str a, struct str b)
{
    size_t len = a.len < b.len ? a.len : b.len, start = 0;
    bool quoted = false;
    for (size_t i = 0; i < len && a.data[i] == b.data[i]; i++) {
        if (quoted && a.data[i] == '\\') {
            i++; /* if the texts differ here, they do so inside the string */
            if (i == len || a.data[i] != b.data[i])
                break;
        } else if (a.data[i] == '"') {
            quoted = !quoted;
            start = i;
        }
    }
    return quoted && start > 0 && a.data[start - 1] == ':';
}

/* Compares packed parts. Mostly their texts are equal, or differ in the value of a member; others are
 * compared as trees. */
static bool packed_equal(const struct doc *a, const struct doc *b)
{
    if (a->kind == b->kind && str_equal(a->text, b->text))
        return true;
    if (doc_len(a) != doc_len(b) || (a->kind == b->kind && first_differ_in_value(a->text, b->text)))
        return false;
    struct arena arena ARENA_CLEANUP = {0};
    return doc_equal(doc_unpacked(&arena, a), doc_unpacked(&arena, b));
}

bool doc_equal(const struct doc *a, const struct doc *b)
{
    if (a == b)
        return true;
    if (a && b && (a->kind == DOC_PACKED || b->kind == DOC_PACKED))
        return packed_equal(a, b);
    if (!a || !b || a->kind != b->kind)
        return false;
    switch (a->kind) {
    case DOC_NULL:
        return true;
    case DOC_BOOL:
        return a->boolean == b->boolean;
    case DOC_INT:
        return a->integer == b->integer;
    case DOC_FLOAT:
        return a->number == b->number || (a->text.len && str_equal(a->text, b->text));
    case DOC_STRING:
        return str_equal(a->text, b->text);
    case DOC_ARRAY:
        if (a->array.len != b->array.len)
            return false;
        for (size_t i = 0; i < a->array.len; i++) {
            if (!doc_equal(a->array.items[i], b->array.items[i]))
                return false;
        }
        return true;
    case DOC_OBJECT:
        return objects_equal(a, b);
    case DOC_PACKED:
        break;
    }
    CHECK_UNREACHABLE();
}
