/* snapshot_labels.c - labels and annotations in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/log/snapshot.h"
#include "core/spec/spec.h"

#include "base/check.h"

Snapshot__Label **snapshot_write_labels(struct arena *arena, const struct labels *labels, size_t *ret_count)
{
    CHECK(labels->items || labels->len == 0);
    Snapshot__Label **list = ARENA_ARRAY(arena, Snapshot__Label *, labels->len);
    for (size_t i = 0; i < labels->len; i++) {
        Snapshot__Label *label = list[i] = ARENA_NEW(arena, Snapshot__Label);
        snapshot__label__init(label);
        label->key = codec_text(arena, labels->items[i].key);
        label->value = codec_text(arena, labels->items[i].value);
    }
    *ret_count = labels->len;
    return list;
}

struct labels snapshot_read_labels(struct arena *arena, Snapshot__Label *const *list, size_t count)
{
    CHECK(list || count == 0);
    struct labels labels = {ARENA_ARRAY(arena, struct label, count), count};
    for (size_t i = 0; i < count; i++)
        labels.items[i] = (struct label){str_from(list[i]->key), str_from(list[i]->value)};
    return labels;
}
