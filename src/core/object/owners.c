/* owners.c - the index of dependents by the owner's uid, over all kinds, and the work for react/collect.c. */
#include "core/object/internal.h"

static size_t place_of(const obj_id *uids, size_t count, obj_id uid)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (uids[middle] < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void add(struct object_store *store, obj_id owner, obj_id dependent)
{
    CHECK(dependent != 0);
    struct owner_entry *entry = u64_map_get(&store->owners, owner);
    if (!entry) {
        entry = mem_alloc(sizeof(*entry));
        entry->owner = owner;
        list_append(&store->owner_entries, &entry->node);
        u64_map_put(&store->owners, owner, entry);
    }
    size_t at = place_of(entry->uids.items, entry->uids.len, dependent);
    if (at < entry->uids.len && entry->uids.items[at] == dependent)
        return; /* it names the owner twice */
    vec_push(&entry->uids, 0);
    memmove(&entry->uids.items[at + 1], &entry->uids.items[at],
            (entry->uids.len - 1 - at) * sizeof(*entry->uids.items));
    entry->uids.items[at] = dependent;
    CHECK(at == 0 || entry->uids.items[at - 1] < dependent); /* ascending, each once */
}

static void drop(struct object_store *store, obj_id owner, obj_id dependent)
{
    struct owner_entry *entry = u64_map_get(&store->owners, owner);
    size_t at = entry ? place_of(entry->uids.items, entry->uids.len, dependent) : 0;
    if (!entry || at == entry->uids.len || entry->uids.items[at] != dependent)
        return;
    vec_remove(&entry->uids, at);
    if (entry->uids.len > 0)
        return;
    u64_map_remove(&store->owners, owner);
    list_remove(&entry->node);
    vec_done(&entry->uids);
    mem_free(entry);
}

void owners_change(struct object_store *store, obj_id uid, const struct doc *was, const struct doc *is)
{
    CHECK(uid != 0);
    const struct doc *before = doc_path(was, "metadata", "ownerReferences", NULL);
    const struct doc *after = doc_path(is, "metadata", "ownerReferences", NULL);
    obj_id owner;
    for (size_t i = 0; i < doc_len(before); i++)
        if (uid_parse(doc_str(doc_get(doc_at(before, i), "uid"), STR("")), &owner))
            drop(store, owner, uid);
    for (size_t i = 0; i < doc_len(after); i++)
        if (uid_parse(doc_str(doc_get(doc_at(after, i), "uid"), STR("")), &owner))
            add(store, owner, uid);
    if (!u64_map_get(&store->by_uid, uid))
        kept_charge(store, uid, is);
}

struct dependents owners_dependents(const struct object_store *store, obj_id owner)
{
    const struct owner_entry *entry = u64_map_get(&store->owners, owner);
    CHECK(!entry || entry->uids.len > 0); /* an owner without dependents has no entry */
    return entry ? (struct dependents){entry->uids.items, entry->uids.len} : (struct dependents){0};
}

/* --- work for core/react/collect.c ---------------------------------------------------------------------- */

static bool take(struct uid_queue *queue, obj_id *ret_uid)
{
    CHECK(queue->next <= queue->uids.len);
    if (queue->next == queue->uids.len) {
        vec_clear(&queue->uids);
        queue->next = 0;
        return false;
    }
    *ret_uid = queue->uids.items[queue->next++];
    return true;
}

bool objects_take_gone(struct object_store *store, obj_id *ret_uid)
{
    return take(&store->gone, ret_uid);
}

bool objects_take_doubtful(struct object_store *store, obj_id *ret_uid)
{
    return take(&store->doubtful, ret_uid);
}

bool objects_awake(struct object_store *store)
{
    bool awake = store->awake;
    store->awake = false;
    return awake;
}

const struct object *objects_removed(const struct object_store *store, size_t index)
{
    return index < store->dead.len ? store->dead.items[index] : NULL;
}

void objects_owner_gone(struct object_store *store, obj_id uid)
{
    vec_push(&store->gone.uids, uid);
    store->awake = true;
}

void objects_doubt(struct object_store *store, obj_id uid, const struct doc *document)
{
    if (doc_len(doc_path(document, "metadata", "ownerReferences", NULL)) == 0)
        return;
    vec_push(&store->doubtful.uids, uid);
    store->awake = true;
}

void objects_wait(struct object_store *store, obj_id uid)
{
    CHECK(uid != 0);
    store->awake = true;
    size_t at = place_of(store->waiting.items, store->waiting.len, uid);
    if (at < store->waiting.len && store->waiting.items[at] == uid)
        return;
    vec_push(&store->waiting, 0);
    memmove(&store->waiting.items[at + 1], &store->waiting.items[at],
            (store->waiting.len - 1 - at) * sizeof(*store->waiting.items));
    store->waiting.items[at] = uid;
}

void objects_waits_no_more(struct object_store *store, obj_id uid)
{
    size_t at = place_of(store->waiting.items, store->waiting.len, uid);
    if (at < store->waiting.len && store->waiting.items[at] == uid)
        vec_remove(&store->waiting, at);
}

const obj_id *objects_waiting(const struct object_store *store, size_t *ret_count)
{
    *ret_count = store->waiting.len;
    return store->waiting.items;
}
