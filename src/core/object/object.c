#include "core/object/internal.h"

#include "doc/pack.h"
#include "core/words/limits.h"

struct object_store *object_store_new(void)
{
    struct object_store *store = mem_alloc(sizeof(*store));
    list_init(&store->owner_entries);
    list_init(&store->kept);
    list_init(&store->charge_list);
    return store;
}

void object_free(struct object *object)
{
    arena_done(&object->arena);
    mem_free((char *)object->key.data);
    mem_free(object);
}

void objects_bury(struct object_store *store)
{
    for (size_t i = 0; i < store->dead.len; i++) {
        CHECK(store->dead.items[i]->removed);
        object_free(store->dead.items[i]);
    }
    for (size_t i = 0; i < store->dead_arenas.len; i++)
        arena_done(&store->dead_arenas.items[i]);
    vec_clear(&store->dead);
    vec_clear(&store->dead_arenas);
}

void object_store_free(struct object_store *store)
{
    if (!store)
        return;
    objects_bury(store);
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        for (size_t i = 0; i < store->kinds[kind].sorted.len; i++)
            object_free(store->kinds[kind].sorted.items[i]);
        vec_done(&store->kinds[kind].sorted);
    }
    list_for_each_safe(node, after, &store->owner_entries)
    {
        struct owner_entry *entry = container_of(node, struct owner_entry, node);
        vec_done(&entry->uids);
        mem_free(entry);
    }
    u64_map_done(&store->by_uid);
    u64_map_done(&store->owners);
    vec_done(&store->gone.uids);
    vec_done(&store->doubtful.uids);
    vec_done(&store->waiting);
    vec_done(&store->dead);
    vec_done(&store->dead_arenas);
    kept_done(store);
    mem_free(store);
}

/* --- the sorted lists ----------------------------------------------------------------------------------- */

size_t object_place(const struct object_list *list, struct str namespace_, struct str name, bool *ret_found)
{
    size_t low = 0, high = list->sorted.len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const struct object *object = list->sorted.items[middle];
        int order = str_compare(object->namespace_, namespace_);
        if (order == 0)
            order = str_compare(object->name, name);
        if (order == 0) {
            *ret_found = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    *ret_found = false;
    return low;
}

void object_insert(struct object_store *store, struct object *object)
{
    struct object_list *list = &store->kinds[object->kind];
    bool found;
    size_t at = object_place(list, object->namespace_, object->name, &found);
    CHECK(!found);
    vec_push(&list->sorted, NULL);
    memmove(&list->sorted.items[at + 1], &list->sorted.items[at],
            (list->sorted.len - 1 - at) * sizeof(*list->sorted.items));
    list->sorted.items[at] = object;
    list->version++;
    const struct object *same_uid = u64_map_put(&store->by_uid, object->uid, object);
    CHECK(!same_uid);
    kept_add(store, object->namespace_, object->bytes);
    owners_change(store, object->uid, NULL, object->document);
}

void object_take_out(struct object_store *store, struct object *object)
{
    CHECK(u64_map_get(&store->by_uid, object->uid) == object);
    struct object_list *list = &store->kinds[object->kind];
    bool found;
    size_t at = object_place(list, object->namespace_, object->name, &found);
    CHECK(found && list->sorted.items[at] == object);
    vec_remove(&list->sorted, at);
    list->version++;
    u64_map_remove(&store->by_uid, object->uid);
    kept_drop(store, object->namespace_, object->bytes);
    owners_change(store, object->uid, object->document, NULL);
}

void object_set_document(struct object_store *store, struct object *object, const struct doc *document)
{
    struct arena arena = {0};
    struct doc *kept = object_kept_form(&arena, object->kind, document);
    bool stored = u64_map_get(&store->by_uid, object->uid) == object;
    if (stored) {
        kept_drop(store, object->namespace_, object->bytes);
        vec_push(&store->dead_arenas, object->arena);
    }
    object->arena = arena;
    object->document = kept;
    object->bytes = doc_bytes(kept);
    if (stored)
        kept_add(store, object->namespace_, object->bytes);
}

static struct object *object_new(enum object_kind kind, obj_id uid, const struct doc *document)
{
    const struct resource *info = object_kind_info(kind);
    CHECK(info && uid != 0);
    struct object *object = mem_alloc(sizeof(*object));
    const struct doc *metadata = doc_get(document, "metadata");
    struct str ns = info->namespaced ? doc_str(doc_get(metadata, "namespace"), STR("default")) : STR("");
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    struct buf key = {0};
    buf_reserve(&key, ns.len + 1 + name.len);
    if (info->namespaced) {
        buf_add_str(&key, ns);
        buf_add_char(&key, '/');
    }
    buf_add_str(&key, name);
    object->key = buf_str(&key);
    object->namespace_ = (struct str){key.data, ns.len};
    object->name = (struct str){key.data + (key.len - name.len), name.len};
    object->kind = kind;
    object->uid = uid;
    return object;
}

struct object *object_adopt(enum object_kind kind, obj_id uid, struct arena *arena, struct doc *document)
{
    struct object *object = object_new(kind, uid, document);
    CHECK(object_is_kept_form(kind, document));
    object->arena = *arena;
    *arena = (struct arena){0};
    object->document = document;
    object->bytes = doc_bytes(document);
    return object;
}

struct object *object_make(struct object_store *store, enum object_kind kind, obj_id uid,
                           const struct doc *document)
{
    struct object *object = object_new(kind, uid, document);
    object_set_document(store, object, document);
    return object;
}

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct object *object_find(const struct object_store *store, enum object_kind kind,
                                 struct str namespace_, struct str name)
{
    const struct resource *info = object_kind_info(kind);
    if (!info)
        return NULL;
    bool found;
    const struct object_list *list = &store->kinds[kind];
    size_t at = object_place(list, info->namespaced ? namespace_ : STR(""), name, &found);
    return found ? list->sorted.items[at] : NULL;
}

const struct object *object_find_uid(const struct object_store *store, obj_id uid)
{
    return u64_map_get(&store->by_uid, uid);
}

void object_visit(const struct object_store *store, enum object_kind kind, struct str namespace_,
                  void (*visit)(void *context, const struct object *object), void *context)
{
    CHECK((unsigned)kind < OBJECT_KINDS);
    const struct object_list *list = &store->kinds[kind];
    bool found;
    for (size_t i = object_place(list, namespace_, STR(""), &found); i < list->sorted.len; i++) {
        const struct object *object = list->sorted.items[i];
        if (namespace_.len && !str_equal(object->namespace_, namespace_))
            return;
        visit(context, object);
    }
}

void objects_visit_all(const struct object_store *store,
                       void (*visit)(void *context, const struct object *object), void *context)
{
    for (int kind = 0; kind < OBJECT_KINDS; kind++)
        object_visit(store, (enum object_kind)kind, STR(""), visit, context);
}

size_t object_count(const struct object_store *store, enum object_kind kind)
{
    CHECK((unsigned)kind < OBJECT_KINDS);
    return store->kinds[kind].sorted.len;
}

size_t objects_total(const struct object_store *store)
{
    return store->by_uid.len;
}

size_t object_count_in(const struct object_store *store, enum object_kind kind, struct str namespace_)
{
    CHECK((unsigned)kind < OBJECT_KINDS);
    const struct object_list *list = &store->kinds[kind];
    bool found;
    size_t first = object_place(list, namespace_, STR(""), &found), last = first, high = list->sorted.len;
    while (last < high) { /* the first object outside of the namespace */
        size_t middle = last + (high - last) / 2;
        if (str_equal(list->sorted.items[middle]->namespace_, namespace_))
            last = middle + 1;
        else
            high = middle;
    }
    CHECK(first <= last && last <= list->sorted.len);
    return last - first;
}

uint64_t object_kind_version(const struct object_store *store, enum object_kind kind)
{
    CHECK((unsigned)kind < OBJECT_KINDS);
    return store->kinds[kind].version;
}

/* --- snapshots, invariants ------------------------------------------------------------------------------ */

struct object *object_restore(struct object_store *store, enum object_kind kind, obj_id uid,
                              struct arena *arena, struct doc *document)
{
    const struct resource *info = object_kind_info(kind);
    if (!info || uid == 0 || object_find_uid(store, uid))
        return NULL;
    const struct doc *metadata = doc_get(document, "metadata");
    struct str ns = doc_str(doc_get(metadata, "namespace"), STR(""));
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    if (name.len == 0 || name.len > NAME_MAX_BYTES || (info->namespaced && (ns.len == 0 || ns.len > 63)) ||
        object_find(store, kind, ns, name))
        return NULL;
    struct object *object = object_make(store, kind, uid, document);
    arena_done(arena);
    object_insert(store, object);
    return object;
}

void objects_check(const struct object_store *store)
{
    size_t count = 0;
    for (int kind = 0; kind < OBJECT_KINDS; kind++) {
        const struct object_list *list = &store->kinds[kind];
        count += list->sorted.len;
        for (size_t i = 0; i < list->sorted.len; i++) {
            const struct object *object = list->sorted.items[i];
            CHECK((int)object->kind == kind && !object->removed && object_kind_info(object->kind));
            CHECK(u64_map_get(&store->by_uid, object->uid) == object);
            if (i == 0)
                continue;
            const struct object *before = list->sorted.items[i - 1];
            int order = str_compare(before->namespace_, object->namespace_);
            CHECK(order < 0 || (order == 0 && str_compare(before->name, object->name) < 0));
        }
    }
    CHECK(store->by_uid.len == count && !store->awake);
    kept_check(store);
}
