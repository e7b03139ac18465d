/* scope.h - names of a text and what they stand for, in nested scopes.
 *
 * Names are pushed and cut again at the end of their scope, as a stack; finding one is a hash away. A zeroed
 * struct scope is empty and ready. Texts and values are the caller's. Not thread-safe. Private to flow/ir.
 */
#ifndef PHX_FLOW_IR_SCOPE_H
#define PHX_FLOW_IR_SCOPE_H

#include "base/vec.h"

struct scope_name {
    struct str text;
    void *value;
    uint32_t count; /* for the owner: how many values stand behind `value` */
    uint32_t next;  /* in the bucket, plus one; 0: the last */
};
struct scope {
    VEC(struct scope_name) list;
    VEC(uint32_t) buckets; /* index into `list`, plus one; 0: empty */
};

const struct scope_name *scope_find(const struct scope *scope, struct str text); /* NULL: unknown */
void scope_push(struct scope *scope, struct str text, void *value, uint32_t count);
void scope_cut(struct scope *scope, size_t len); /* forgets all names but the first `len` */
void scope_done(struct scope *scope);            /* frees; empty and usable again */

#endif
