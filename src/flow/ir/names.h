/* names.h - names of a text and what they stand for, in nested scopes.
 *
 * Names are pushed and cut again at the end of their scope, as a stack; finding one is a hash away. A zeroed
 * struct names is empty and ready. Texts and values are the caller's. Not thread-safe. Private to flow/ir.
 */
#ifndef PHX_FLOW_IR_NAMES_H
#define PHX_FLOW_IR_NAMES_H

#include "base/vec.h"

struct name {
    struct str text;
    void *value;
    uint32_t count; /* for the owner: how many values stand behind `value` */
    uint32_t next;  /* in the bucket, plus one; 0: the last */
};
struct names {
    VEC(struct name) list;
    VEC(uint32_t) buckets; /* index into `list`, plus one; 0: empty */
};

const struct name *names_find(const struct names *names, struct str text); /* NULL: unknown */
void names_push(struct names *names, struct str text, void *value, uint32_t count);
void names_cut(struct names *names, size_t len); /* forgets all names but the first `len` */
void ir_names_done(struct names *names);         /* frees; empty and usable again */

#endif
