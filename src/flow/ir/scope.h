/* scope.h - the names of a text and their values, in nested scopes.
 *
 * Names form a stack: they are pushed, and cut off at the end of their scope. A hash table finds a name. A
 * zeroed struct scope is empty and ready. Texts and values belong to the caller. Not thread-safe. Private to
 * flow/ir.
 */
#ifndef PHX_FLOW_IR_SCOPE_H
#define PHX_FLOW_IR_SCOPE_H

#include "base/vec.h"

struct scope_name {
    struct str text;
    void *value;
    uint32_t count; /* for the owner: number of values in the array at `value` */
    uint32_t next;  /* in the bucket, plus one; 0: the last */
};
struct scope {
    VEC(struct scope_name) list;
    VEC(uint32_t) buckets; /* index into `list`, plus one; 0: empty */
};

const struct scope_name *scope_find(const struct scope *scope, struct str text); /* NULL: not in scope */
void scope_push(struct scope *scope, struct str text, void *value, uint32_t count);
void scope_cut(struct scope *scope, size_t len); /* removes all names but the first `len` */
void scope_done(struct scope *scope);            /* frees the memory; the scope is empty and usable again */

#endif
