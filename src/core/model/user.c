/* user.c - a machine's metadata that users set through the API: labels, taints, annotations and field
 * owners, owned by the machine. */
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

struct machine_user machine_user(const struct machine *machine)
{
    return (struct machine_user){machine->user_labels, machine->annotations, machine->taints,
                                 machine->taint_count, machine->managed_fields};
}

void machine_set_user(struct machine *machine, const struct machine_user *user)
{
    CHECK(user->labels.len <= LABELS_MAX && user->taint_count <= LABELS_MAX);
    /* Copied before the old metadata is freed, because the new one may point into it. */
    struct arena fresh = {0};
    struct machine_user copy = {.labels = copy_labels(&fresh, user->labels.items, user->labels.len),
                                .annotations =
                                    copy_labels(&fresh, user->annotations.items, user->annotations.len),
                                .taints = copy_taints(&fresh, user->taints, user->taint_count),
                                .managed_fields = arena_str(&fresh, user->managed_fields)};
    arena_done(&machine->user);
    machine->user = fresh;
    machine->user_labels = copy.labels;
    machine->annotations = copy.annotations;
    machine->taints = copy.taints;
    machine->taint_count = user->taint_count;
    machine->managed_fields = copy.managed_fields;
    machine_changed(machine);
}

static bool same_labels(const struct labels *a, const struct labels *b)
{
    bool same = a->len == b->len;
    for (size_t i = 0; same && i < a->len; i++)
        same = str_equal(a->items[i].key, b->items[i].key) && str_equal(a->items[i].value, b->items[i].value);
    return same;
}

bool machine_user_equal(const struct machine_user *a, const struct machine_user *b)
{
    bool same = same_labels(&a->labels, &b->labels) && same_labels(&a->annotations, &b->annotations) &&
                a->taint_count == b->taint_count && str_equal(a->managed_fields, b->managed_fields);
    for (size_t i = 0; same && i < a->taint_count; i++)
        same = str_equal(a->taints[i].key, b->taints[i].key) &&
               str_equal(a->taints[i].value, b->taints[i].value) &&
               str_equal(a->taints[i].effect, b->taints[i].effect);
    return same;
}
