#include "core/effect.h"

#include "base/check.h"

struct effect *effect_add(struct effects *effects, enum effect_kind kind)
{
    CHECK(kind >= EFFECT_REPLY && kind <= EFFECT_TASK_REJOIN);
    CHECK(effects->list.len < UINT32_MAX); /* the index is half of the effect's id */
    struct effect effect = {.kind = kind, .seq = effects->seq, .index = (uint32_t)effects->list.len};
    vec_push(&effects->list, effect);
    return &vec_last(&effects->list);
}
