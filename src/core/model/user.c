/* user.c - what users add to a machine through the API: labels and taints, owned by the machine. */
#include "base/check.h"
#include "core/model/model.h"

static struct labels copy_labels(struct arena *arena, const struct label *items, size_t count)
{
    struct labels labels = {ARENA_ARRAY(arena, struct label, count), count};
    for (size_t i = 0; i < count; i++)
        labels.items[i] = (struct label){arena_str(arena, items[i].key), arena_str(arena, items[i].value)};
    return labels;
}

static struct taint *copy_taints(struct arena *arena, const struct taint *items, size_t count)
{
    struct taint *taints = ARENA_ARRAY(arena, struct taint, count);
    for (size_t i = 0; i < count; i++)
        taints[i] = (struct taint){arena_str(arena, items[i].key), arena_str(arena, items[i].value),
                                   arena_str(arena, items[i].effect)};
    return taints;
}

void machine_set_user(struct machine *machine, const struct label *labels, size_t label_count,
                      const struct taint *taints, size_t taint_count)
{
    CHECK((labels || label_count == 0) && (taints || taint_count == 0));
    CHECK(label_count <= LABELS_MAX && taint_count <= LABELS_MAX);
    /* Copied before the old ones go, because the new ones may point into them. */
    struct arena fresh = {0};
    struct labels new_labels = copy_labels(&fresh, labels, label_count);
    struct taint *new_taints = copy_taints(&fresh, taints, taint_count);
    arena_done(&machine->user);
    machine->user = fresh;
    machine->user_labels = new_labels;
    machine->taints = new_taints;
    machine->taint_count = taint_count;
}
