#include "doc/doc.h"

#include <stdlib.h>

#include "base/check.h"
#include "base/map.h"

const char *doc_kind_name(enum doc_kind kind)
{
    static const char *const names[] = {"null",   "boolean", "integer", "number",
                                        "string", "array",   "object",  "packed"};
    CHECK((unsigned)kind < sizeof names / sizeof *names);
    return names[kind];
}

static bool same_half(const char *a, const char *b)
{
    uint32_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

static bool same_word(const char *a, const char *b)
{
    uint64_t left, right;
    memcpy(&left, a, sizeof left);
    memcpy(&right, b, sizeof right);
    return left == right;
}

/* Compares keys of one length. Keys are short, and a call of memcmp would be most of the cost. */
static bool same_bytes(const char *a, const char *b, size_t len)
{
    if (len > 16)
        return memcmp(a, b, len) == 0;
    if (len >= 8) /* the two words may overlap */
        return same_word(a, b) && same_word(a + len - 8, b + len - 8);
    if (len >= 4)
        return same_half(a, b) && same_half(a + len - 4, b + len - 4);
    for (size_t i = 0; i < len; i++)
        if (a[i] != b[i])
            return false;
    return true;
}

/* Returns the member, without a test of the object's `keys` first. */
static struct doc_member *search(const struct doc *object, struct str key)
{
    CHECK(!object || object->kind != DOC_PACKED);
    if (!object || object->kind != DOC_OBJECT || object->object.len == 0)
        return NULL; /* (an empty one has no members to point at) */
    struct doc_member *end = object->object.members + object->object.len;
    for (struct doc_member *member = object->object.members; member != end; member++) {
        if (member->key.len == key.len && same_bytes(member->key.data, key.data, key.len))
            return member;
    }
    return NULL;
}

static struct doc_member *find(const struct doc *object, struct str key)
{
    bool absent = object && object->kind == DOC_OBJECT && !(object->keys & doc_key_bit(key));
    return absent ? NULL : search(object, key);
}

struct doc *doc_find(const struct doc *object, struct str key)
{
    struct doc_member *member = search(object, key);
    return member ? member->value : NULL;
}

struct doc *doc_at(const struct doc *array, size_t index)
{
    CHECK(!array || array->kind != DOC_PACKED);
    if (!array || array->kind != DOC_ARRAY || index >= array->array.len)
        return NULL;
    return array->array.items[index];
}

size_t doc_len(const struct doc *node)
{
    if (!node)
        return 0;
    if (node->kind == DOC_PACKED)
        return node->packed_len;
    return node->kind == DOC_ARRAY ? node->array.len : node->kind == DOC_OBJECT ? node->object.len : 0;
}

int64_t doc_int(const struct doc *node, int64_t fallback)
{
    return node && node->kind == DOC_INT ? node->integer : fallback;
}

bool doc_bool(const struct doc *node, bool fallback)
{
    return node && node->kind == DOC_BOOL ? node->boolean : fallback;
}

struct str doc_str(const struct doc *node, struct str fallback)
{
    return node && node->kind == DOC_STRING ? node->text : fallback;
}

struct doc *doc_new(struct arena *arena, enum doc_kind kind)
{
    struct doc *node = ARENA_NEW(arena, struct doc);
    node->kind = kind;
    return node;
}

struct doc *doc_try_new(struct arena *arena, enum doc_kind kind)
{
    struct doc *node = arena_try_alloc(arena, sizeof *node);
    if (node)
        node->kind = kind;
    return node;
}

struct doc *doc_new_int(struct arena *arena, int64_t value)
{
    struct doc *node = doc_new(arena, DOC_INT);
    node->integer = value;
    return node;
}

struct doc *doc_new_bool(struct arena *arena, bool value)
{
    struct doc *node = doc_new(arena, DOC_BOOL);
    node->boolean = value;
    return node;
}

struct doc *doc_new_str(struct arena *arena, struct str value)
{
    struct doc *node = doc_new(arena, DOC_STRING);
    node->text = arena_str(arena, value);
    return node;
}

struct doc *doc_new_literal(struct arena *arena, struct str value)
{
    struct doc *node = doc_new(arena, DOC_STRING);
    node->text = value;
    return node;
}

/* Makes space for one more item of `size` bytes after `len` items; the old memory stays unused in the
 * arena. */
static bool grow(struct arena *arena, void **items, uint32_t len, uint32_t *cap, size_t size, bool bounded)
{
    if (len < *cap)
        return true;
    uint32_t grown = *cap ? *cap * 2 : 4;
    size_t bytes;
    CHECK(grown > len && !__builtin_mul_overflow((size_t)grown, size, &bytes));
    void *fresh = bounded ? arena_try_alloc(arena, bytes) : arena_alloc(arena, bytes);
    if (!fresh)
        return false;
    if (len)
        memcpy(fresh, *items, len * size);
    *items = fresh;
    *cap = grown;
    return true;
}

static bool push(struct arena *arena, struct doc *array, struct doc *value, bool bounded)
{
    CHECK(array && array->kind == DOC_ARRAY && value);
    void *items = array->array.items;
    if (!grow(arena, &items, array->array.len, &array->array.cap, sizeof *array->array.items, bounded))
        return false;
    array->array.items = items;
    array->array.items[array->array.len++] = value;
    return true;
}

static bool add(struct arena *arena, struct doc *object, struct doc_member member, bool bounded)
{
    CHECK(object && object->kind == DOC_OBJECT && member.value);
    void *members = object->object.members;
    if (!grow(arena, &members, object->object.len, &object->object.cap, sizeof member, bounded))
        return false;
    object->object.members = members;
    object->object.members[object->object.len++] = member;
    object->keys |= doc_key_bit(member.key);
    return true;
}

bool doc_try_push(struct arena *arena, struct doc *array, struct doc *value)
{
    return push(arena, array, value, true);
}

bool doc_try_add(struct arena *arena, struct doc *object, struct doc_member member)
{
    return add(arena, object, member, true);
}

void doc_push(struct arena *arena, struct doc *array, struct doc *value)
{
    push(arena, array, value, false);
}

void doc_add(struct arena *arena, struct doc *object, struct str key, struct doc *value)
{
    add(arena, object, (struct doc_member){.key = key, .value = value}, false);
}

void doc_set(struct arena *arena, struct doc *object, struct str key, struct doc *value)
{
    CHECK(object && object->kind == DOC_OBJECT && value);
    struct doc_member *member = find(object, key);
    if (member)
        member->value = value;
    else
        add(arena, object, (struct doc_member){.key = arena_str(arena, key), .value = value}, false);
}

bool doc_unset(struct doc *object, const char *key)
{
    struct doc_member *member = find(object, str_from(key));
    if (!member)
        return false;
    size_t behind = (size_t)(object->object.members + object->object.len - member) - 1;
    memmove(member, member + 1, behind * sizeof *member);
    object->object.len--;
    return true;
}

struct doc *doc_clone(struct arena *arena, const struct doc *node)
{
    struct doc *copy = doc_new(arena, node->kind);
    copy->line = node->line;
    copy->column = node->column;
    switch (node->kind) {
    case DOC_NULL:
        break;
    case DOC_BOOL:
        copy->boolean = node->boolean;
        break;
    case DOC_INT:
        copy->integer = node->integer;
        break;
    case DOC_FLOAT:
        copy->number = node->number;
        copy->text = arena_str(arena, node->text);
        break;
    case DOC_STRING:
        copy->text = arena_str(arena, node->text);
        break;
    case DOC_PACKED:
        copy->packed_len = node->packed_len;
        copy->text = arena_str(arena, node->text);
        break;
    case DOC_ARRAY:
        for (size_t i = 0; i < node->array.len; i++)
            doc_push(arena, copy, doc_clone(arena, node->array.items[i]));
        break;
    case DOC_OBJECT:
        for (size_t i = 0; i < node->object.len; i++) {
            struct doc_member member = node->object.members[i];
            member.key = arena_str(arena, member.key);
            member.value = doc_clone(arena, member.value);
            add(arena, copy, member, false);
        }
        break;
    }
    return copy;
}

struct doc *doc_need_object(struct arena *arena, struct doc *object, const char *key)
{
    struct doc *value = doc_get(object, key);
    if (!value) {
        value = doc_new(arena, DOC_OBJECT);
        doc_set(arena, object, str_from(key), value);
    } else if (value->kind == DOC_NULL) {
        struct doc fresh = {.kind = DOC_OBJECT, .line = value->line, .column = value->column};
        *value = fresh;
    }
    return value->kind == DOC_OBJECT ? value : NULL;
}

enum { LINEAR_MAX = 16 }; /* members beyond which sorting them pays */

/* Orders by key, and equal keys by their place in the object, which makes the order total. */
static int compare_members(const void *a, const void *b)
{
    const struct doc_member *left = *(const struct doc_member *const *)a;
    const struct doc_member *right = *(const struct doc_member *const *)b;
    int order = str_compare(left->key, right->key);
    return order ? order : (left > right) - (left < right);
}

static bool duplicate_linear(const struct doc *object, const struct doc_member **ret_second,
                             const struct doc_member **ret_first)
{
    const struct doc_member *members = object->object.members;
    for (size_t i = 1; i < object->object.len; i++) {
        for (size_t k = 0; k < i; k++) {
            if (str_equal(members[i].key, members[k].key)) {
                *ret_second = &members[i];
                *ret_first = &members[k];
                return true;
            }
        }
    }
    return false;
}

bool doc_duplicate(const struct doc *object, const struct doc_member **ret_second,
                   const struct doc_member **ret_first)
{
    CHECK(object->kind == DOC_OBJECT);
    size_t len = object->object.len;
    if (len <= LINEAR_MAX)
        return duplicate_linear(object, ret_second, ret_first);
    const struct doc_member **sorted = mem_alloc(len * sizeof(struct doc_member *));
    for (size_t i = 0; i < len; i++)
        sorted[i] = &object->object.members[i];
    qsort(sorted, len, sizeof *sorted, compare_members);
    const struct doc_member *second = NULL, *first = NULL;
    for (size_t i = 1; i < len; i++) {
        if (str_equal(sorted[i - 1]->key, sorted[i]->key) && (!second || sorted[i] < second)) {
            second = sorted[i];
            first = sorted[i - 1];
        }
    }
    mem_free(sorted);
    if (!second)
        return false;
    *ret_second = second;
    *ret_first = first;
    return true;
}
