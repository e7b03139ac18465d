/* Lists of effects. */
#include "flow/island/machine.h"

struct flow_effect *flow_add(struct flow_effects *effects, enum flow_effect_kind kind)
{
    vec_push(&effects->list, ((struct flow_effect){.kind = kind}));
    return &vec_last(&effects->list);
}

struct flow_effect *flow_send(struct flow_effects *effects, uint64_t peer, const struct flow_entry *entry)
{
    struct flow_effect *effect = flow_add(effects, FLOW_SEND);
    effect->peer = peer;
    effect->entry = *entry;
    return effect;
}

void flow_effects_clear(struct flow_effects *effects)
{
    for (size_t i = 0; i < effects->list.len; i++) {
        struct flow_effect *effect = &effects->list.items[i];
        buf_done(&effect->tail);
        tensor_unref(effect->payload);
        for (uint32_t k = 0; k < effect->arg_count; k++)
            tensor_unref(effect->args[k]);
        mem_free(effect->args);
        mem_free(effect->gang_hosts);
    }
    vec_clear(&effects->list);
}

void flow_effects_done(struct flow_effects *effects)
{
    flow_effects_clear(effects);
    vec_done(&effects->list);
}
