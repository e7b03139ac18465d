/* select.h - label and field selectors.
 *
 * Grammar of labels: https://kubernetes.io/docs/concepts/overview/working-with-objects/labels/
 *     a=b  a==b  a!=b  a in (x,y)  a notin (x,y)  a  !a         separated by commas, all must hold
 * Fields: path=value, path==value, path!=value, only of paths that the resource lists (resource_table) and
 * metadata.name, metadata.namespace.
 */
#ifndef PHX_KUBE_SELECT_H
#define PHX_KUBE_SELECT_H

#include "base/error.h"
#include "kube/resource.h"

enum select_op { SELECT_IN, SELECT_NOT_IN, SELECT_EXISTS, SELECT_NOT_EXISTS };
enum { SELECT_TERMS_MAX = 64, SELECT_VALUES_MAX = 1024 };
struct select_term {
    struct str key;
    enum select_op op;
    struct str *values;
    size_t value_count;
};
struct selector {
    struct select_term *labels, *fields;
    size_t label_count, field_count;
    struct str name; /* of a metadata.name=x term, whose read needs one look-up; empty: none */
    bool mutable;    /* an object may begin or cease to match while it exists */
};

/* Parses the selectors; either text may be empty. Strings of *ret_selector live in `arena`. ERROR_INVALID
 * says why. */
int select_parse(struct arena *arena, const struct resource *resource, struct str labels, struct str fields,
                 struct selector *ret_selector, struct error *error);

static inline bool select_all(const struct selector *selector)
{
    return selector->label_count == 0 && selector->field_count == 0;
}
/* Returns whether the object matches. Allocates from `scratch`. */
bool select_object(const struct selector *selector, const struct core *core, struct object_ref object,
                   struct str name, struct arena *scratch);
/* Returns whether an object matches by its JSON and its metadata's JSON, as in a change in the watch ring. */
bool select_json(const struct selector *selector, struct str object, struct str metadata);

#endif
