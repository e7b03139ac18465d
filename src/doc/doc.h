/* doc.h - a document: the tree that YAML and JSON texts become, with the place of each node in its text.
 *
 * All nodes and strings live in the arena in which they were made. Objects keep their members in order of
 * appearance, and keys are unique (parsers refuse duplicates, doc_set replaces). Strings are valid UTF-8
 * without NUL. Reading functions accept NULL for "absent" and then return NULL / the fallback, so paths can
 * be chained:
 *
 *     doc_int(doc_get(doc_get(root, "spec"), "replicas"), 1)
 */
#ifndef PHX_DOC_DOC_H
#define PHX_DOC_DOC_H

#include "base/arena.h"
#include "base/check.h"

/* DOC_PACKED: an array or object kept as its JSON text, see pack.h. Parsers never make one. */
enum doc_kind { DOC_NULL, DOC_BOOL, DOC_INT, DOC_FLOAT, DOC_STRING, DOC_ARRAY, DOC_OBJECT, DOC_PACKED };

struct doc_member;
struct doc {
    enum doc_kind kind;
    uint32_t line, column; /* 1-based; 0 where the node was not read from a text */
    union {
        bool boolean;
        int64_t integer;
        double number; /* DOC_FLOAT; its source text is kept in `text` too, so that writing it is lossless */
        struct {
            struct doc **items;
            uint32_t len, cap;
        } array;
        struct {
            struct doc_member *members;
            uint32_t len, cap;
        } object;
        size_t packed_len; /* DOC_PACKED: items or members in its text */
    };
    union {
        /* DOC_STRING: the string; DOC_FLOAT: the number as written; DOC_PACKED: compact JSON. Others: length
         * 0. */
        struct str text;
        uint64_t keys; /* DOC_OBJECT: doc_key_bit of every member, and perhaps of removed ones */
    };
};
_Static_assert(sizeof(struct doc) == 48, "a JobSet has some sixty nodes");
struct doc_member {
    struct str key;
    uint32_t line, column; /* of the key */
    struct doc *value;
};

const char *doc_kind_name(enum doc_kind kind); /* "string", "integer", "object": for messages */

/* Returns the bit of a key: an object without this bit has no such member. Most fields of a schema are absent
 * from most objects, and the bit saves the search for them. */
static inline uint64_t doc_key_bit(struct str key)
{
    return UINT64_C(1) << (key.len ? (key.len * 5 + (unsigned char)key.data[0]) % 64 : 0);
}

/* Reading. A look into a packed node aborts: call doc_unpacked first. */
struct doc *doc_find(const struct doc *object, struct str key); /* doc_get_str without the check of the bit */
/* Returns the member `key`, or NULL if it is absent or `object` is not an object. Inline, like doc_get and
 * doc_path, so that the length and the bit of a literal key cost nothing. */
static inline struct doc *doc_get_str(const struct doc *object, struct str key)
{
    if (!object || (object->kind == DOC_OBJECT && !(object->keys & doc_key_bit(key))))
        return NULL;
    return doc_find(object, key);
}
static inline struct doc *doc_get(const struct doc *object, const char *key)
{
    return doc_get_str(object, str_from(key));
}
struct doc *doc_at(const struct doc *array, size_t index); /* NULL: outside, or not an array */
/* doc_path(root, "spec", "network", "subdomain", NULL) is doc_get along at most six keys. It is spelled out,
 * because a loop would not turn literals into constants. */
#define doc_path(...) DOC_PATH_KEYS(__VA_ARGS__, NULL, NULL, NULL, NULL, NULL, NULL)
#define DOC_PATH_KEYS(object, first, second, third, fourth, fifth, sixth, end, ...)                          \
    doc_along((object), (first), (second), (third), (fourth), (fifth), (sixth), (end))
static inline __attribute__((always_inline)) struct doc *
doc_along(const struct doc *object, const char *first, const char *second, const char *third,
          const char *fourth, const char *fifth, const char *sixth, const char *end)
{
    CHECK(!end);
    const struct doc *at = first ? doc_get(object, first) : object;
    at = second ? doc_get(at, second) : at;
    at = third ? doc_get(at, third) : at;
    at = fourth ? doc_get(at, fourth) : at;
    at = fifth ? doc_get(at, fifth) : at;
    at = sixth ? doc_get(at, sixth) : at;
    return (struct doc *)at;
}
size_t doc_len(const struct doc *node); /* items or members; 0 for others and NULL */
int64_t doc_int(const struct doc *node, int64_t fallback);
bool doc_bool(const struct doc *node, bool fallback);
struct str doc_str(const struct doc *node, struct str fallback);
/* Returns whether the content is the same, whatever the order of members and whether a part is packed
 * (doc_equal.c). */
bool doc_equal(const struct doc *a, const struct doc *b);

/* Building. Every function allocates from `arena`; strings are copied. */
struct doc *doc_new(struct arena *arena, enum doc_kind kind);
struct doc *doc_new_int(struct arena *arena, int64_t value);
struct doc *doc_new_bool(struct arena *arena, bool value);
struct doc *doc_new_str(struct arena *arena, struct str value);
/* As doc_new_str without a copy, for text that lives as long as `arena`, such as a literal. */
struct doc *doc_new_literal(struct arena *arena, struct str value);
/* Adds a member whose key must not exist yet. The key is neither searched for nor copied. */
void doc_add(struct arena *arena, struct doc *object, struct str key, struct doc *value);
/* Adds or replaces a member; a new key is copied. */
void doc_set(struct arena *arena, struct doc *object, struct str key, struct doc *value);
bool doc_unset(struct doc *object, const char *key); /* returns true if it existed */
void doc_push(struct arena *arena, struct doc *array, struct doc *value);
struct doc *doc_clone(struct arena *arena, const struct doc *node); /* deep copy */
/* Returns the member `key`, made as an empty object if it is absent or null; NULL if it is not an object. */
struct doc *doc_need_object(struct arena *arena, struct doc *object, const char *key);

/* For parsers of untrusted bytes: these functions stay within arena->limit_bytes and do not search for the
 * key. */
struct doc *doc_try_new(struct arena *arena, enum doc_kind kind); /* NULL: beyond the limit */
bool doc_try_push(struct arena *arena, struct doc *array, struct doc *value);
bool doc_try_add(struct arena *arena, struct doc *object, struct doc_member member); /* key not copied */
/* Finds the first member whose key occurred before, and that earlier member. Returns false if all keys are
 * unique. O(n log n) for any keys, since an adversary may choose them. */
bool doc_duplicate(const struct doc *object, const struct doc_member **ret_second,
                   const struct doc_member **ret_first);

#endif
