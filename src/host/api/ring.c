#include "host/api/ring.h"

struct watch_ring *watch_ring_new(struct api *api)
{
    struct watch_ring *ring = mem_alloc(sizeof *ring);
    ring->api = api;
    ring->slots = mem_alloc(API_RING_ENTRIES_MAX * sizeof *ring->slots);
    uint64_t seq = core_seq(api->hooks.core(api->hooks.context));
    for (int i = 0; i < RESOURCES; i++) {
        list_init(&ring->watchers[i]);
        ring->floor_seq[i] = seq;
    }
    return ring;
}

static void drop_oldest(struct watch_ring *ring)
{
    struct change **slot = &ring->slots[ring->first++ % API_RING_ENTRIES_MAX];
    uint64_t *floor = &ring->floor_seq[(*slot)->resource];
    if (*floor < (*slot)->seq)
        *floor = (*slot)->seq;
    ring->bytes -= (*slot)->bytes;
    mem_free(*slot);
    *slot = NULL;
}

void watch_ring_free(struct watch_ring *ring)
{
    for (int i = 0; i < RESOURCES; i++)
        CHECK(list_empty(&ring->watchers[i]));
    while (ring->first < ring->next)
        drop_oldest(ring);
    buf_done(&ring->object_text);
    buf_done(&ring->cells_text);
    mem_free(ring->slots);
    mem_free(ring);
}

void watch_ring_interest(struct watch_ring *ring, const struct resource *resource)
{
    ring->interest_ns[resource->id] = ring->api->hooks.now_ns(ring->api->hooks.context) + INTEREST_NS;
}

static struct str put_text(struct change *change, size_t *used, struct str text)
{
    char *place = change->text + *used;
    if (text.len)
        memcpy(place, text.data, text.len);
    *used += text.len;
    return (struct str){place, text.len};
}

static struct change *change_new(struct watch_ring *ring, const struct effect *changed,
                                 struct object_name name, const struct resource *resource)
{
    struct arena scratch = {0};
    struct render render = {.core = ring->api->hooks.core(ring->api->hooks.context),
                            .now_ns = ring->api->hooks.now_ns(ring->api->hooks.context),
                            .scratch = &scratch};
    char event_name[NOTE_NAME_MAX];
    if (changed->changed.object.kind == OBJECT_EVENT) {
        render_note_name(changed->changed.object.note, event_name);
        name.name = str_from(event_name);
        name.namespace_ = render_note_namespace(changed->changed.object.note);
    }
    buf_clear(&ring->object_text);
    render.out = (struct json_writer){.out = &ring->object_text};
    render_object(&render, resource, changed->changed.object, name.name);
    size_t metadata_start = render.metadata_start, metadata_len = render.metadata_len;
    buf_clear(&ring->cells_text);
    render.out = (struct json_writer){.out = &ring->cells_text};
    table_cells(&render, resource, changed->changed.object, name.name);

    size_t used = 0,
           text_len = name.namespace_.len + name.name.len + ring->object_text.len + ring->cells_text.len;
    struct change *change = mem_alloc(sizeof *change + text_len);
    change->seq = changed->seq;
    change->uid = name.uid;
    change->resource = resource->id;
    change->type = resource_is_gone(changed->changed.object) ? CHANGE_DELETED : changed->changed.type;
    change->bytes = sizeof *change + text_len;
    change->namespace_ = put_text(change, &used, name.namespace_);
    change->name = put_text(change, &used, name.name);
    change->object = put_text(change, &used, buf_str(&ring->object_text));
    change->metadata = (struct str){change->object.data + metadata_start, metadata_len};
    change->cells = put_text(change, &used, buf_str(&ring->cells_text));
    CHECK(used == text_len);
    arena_done(&scratch);
    return change;
}

static void add_for(struct watch_ring *ring, const struct effect *changed, const struct resource *resource)
{
    int64_t now_ns = ring->api->hooks.now_ns(ring->api->hooks.context);
    if (ring->watcher_count[resource->id] == 0 && ring->interest_ns[resource->id] <= now_ns) {
        ring->floor_seq[resource->id] = changed->seq;
        return;
    }
    struct change *change = change_new(ring, changed, object_name(changed->changed.object), resource);
    while (ring->first < ring->next && (ring->next - ring->first == API_RING_ENTRIES_MAX ||
                                        ring->bytes + change->bytes > API_RING_BYTES_MAX))
        drop_oldest(ring);
    uint64_t number = ring->next++;
    ring->slots[number % API_RING_ENTRIES_MAX] = change;
    ring->bytes += change->bytes;
    watchers_notice(ring, change, number);
}

void watch_ring_add(struct watch_ring *ring, const struct effect *changed)
{
    CHECK(changed->kind == EFFECT_CHANGED);
    watchers_check_rights(ring); /* a watcher that lost its right by an earlier change gets no later one */
    for (int i = 0; i < RESOURCES; i++)
        if (resource_shows(&resource_table[i], changed->changed.object.kind) &&
            resource_table[i].verbs & VERB_WATCH)
            add_for(ring, changed, &resource_table[i]);
}

void watch_ring_stats(const struct watch_ring *ring, struct api_stats *ret_stats)
{
    ret_stats->ring_entries = ring->next - ring->first;
    ret_stats->ring_bytes = ring->bytes;
}
