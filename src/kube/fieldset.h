/* fieldset.h - sets of field paths of an object, as metadata.managedFields records them. Private to kube;
 * pure.
 *
 * A set is a tree. The edges are path elements in the form that FieldsV1 writes them:
 *     f:name            a member of an object or map
 *     k:{"name":"x"}    the item with these keys in a keyed list
 *     v:"x"             the item with this value in a list that is a set
 *     i:3               an item by its index (only if keys are missing)
 * A node that is a `member` is itself in the set (FieldsV1 writes "." or an empty object). Every other node
 * has children. Children are sorted by element, so every operation is a merge of two sorted lists.
 *
 * Format: k8s.io/apimachinery meta/v1 FieldsV1; sigs.k8s.io/structured-merge-diff describes the meaning. All
 * nodes and texts live in arenas. Sets share nodes, so no node is changed after it was made.
 */
#ifndef PHX_KUBE_FIELDSET_H
#define PHX_KUBE_FIELDSET_H

#include "doc/doc.h"
#include "base/error.h"
#include "core/spec/schema.h"

struct fieldset {
    bool member;
    struct fieldset_item *items; /* sorted by element */
    size_t len, cap;
};
struct fieldset_item {
    struct str element;
    struct fieldset set;
};

static inline bool fieldset_empty(const struct fieldset *set)
{
    return !set || (!set->member && set->len == 0);
}
const struct fieldset *fieldset_find(const struct fieldset *set,
                                     struct str element); /* NULL: nothing there */

/* Parses FieldsV1. ERROR_INVALID: malformed. */
int fieldset_parse(struct arena *arena, const struct doc *fields, struct fieldset *ret_set,
                   struct error *error);
struct doc *fieldset_doc(struct arena *arena, const struct fieldset *set);

struct fieldset fieldset_union(struct arena *arena, const struct fieldset *a, const struct fieldset *b);
struct fieldset fieldset_minus(struct arena *arena, const struct fieldset *a, const struct fieldset *b);
struct fieldset fieldset_common(struct arena *arena, const struct fieldset *a, const struct fieldset *b);
bool fieldset_equal(const struct fieldset *a, const struct fieldset *b);

/* Stores the path element that identifies an item of a list; `field` is that of the list. Returns false, with
 * "i:INDEX" in *ret_element, if the item lacks a key or the list is atomic. */
bool fieldset_item_element(struct arena *arena, const struct schema_field *field, const struct doc *item,
                           size_t index, struct str *ret_element);

/* Returns every field that `object` sets. */
struct fieldset fieldset_of(struct arena *arena, const struct schema *schema, const struct doc *object);
/* The difference between two objects; `before` may be NULL. */
struct fieldset_change {
    struct fieldset set; /* added, or with another value */
    struct fieldset removed;
};
struct fieldset_change fieldset_compare(struct arena *arena, const struct schema *schema,
                                        const struct doc *before, const struct doc *after);

/* Calls `visit` with the path of each member, as messages show it: `.spec.containers[name="a"].image`. */
void fieldset_visit(struct arena *arena, const struct fieldset *set,
                    void (*visit)(void *context, struct str path), void *context);

#endif
