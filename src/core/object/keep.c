/* keep.c - the form in which documents are kept, and the sums of their bytes.
 *
 * The store keeps a copy of each document in its own arena, in which these parts are packed (doc/pack.h):
 *     metadata.managedFields            of every kind
 *     data, binaryData                  of ConfigMaps and Secrets
 * An object is charged with doc_bytes of that copy, to its namespace; cluster-wide kinds to the namespace "".
 * Documents that job/ and admit/ keep are charged as they are, whenever their owners are updated (owners.c).
 */
#include "core/object/internal.h"

#include "doc/pack.h"

struct kept_bytes {
    struct str namespace_; /* owned */
    uint64_t bytes;
    struct list_node node; /* in object_store.kept */
};

/* The bytes charged for a document that job/ or admit/ keeps. */
struct charge {
    struct str namespace_; /* of its entry in object_store.kept_by_namespace */
    uint64_t bytes;
    struct list_node node; /* in object_store.charge_list */
};

static bool is_packed(enum object_kind kind, bool metadata, struct str key)
{
    if (metadata)
        return str_is(key, "managedFields");
    return (kind == OBJECT_CONFIG_MAP || kind == OBJECT_SECRET) &&
           (str_is(key, "data") || str_is(key, "binaryData"));
}

/* Returns a copy in the form in which objects are kept. `metadata`: `from` is the metadata of the object. */
static struct doc *keep_members(struct arena *arena, enum object_kind kind, const struct doc *from,
                                bool metadata)
{
    struct doc *kept = doc_new(arena, DOC_OBJECT);
    for (size_t i = 0; i < from->object.len; i++) {
        struct str key = from->object.members[i].key;
        const struct doc *value = from->object.members[i].value;
        bool inner = !metadata && str_is(key, "metadata") && value->kind == DOC_OBJECT;
        CHECK(value);
        doc_set(arena, kept, key,
                inner                            ? keep_members(arena, kind, value, true)
                : is_packed(kind, metadata, key) ? doc_packed(arena, value)
                                                 : doc_clone(arena, value));
    }
    return kept;
}

static bool has_packed(enum object_kind kind, const struct doc *object, bool metadata)
{
    for (size_t i = 0; object && object->kind == DOC_OBJECT && i < object->object.len; i++)
        if (is_packed(kind, metadata, object->object.members[i].key))
            return true;
    return false;
}

bool object_is_kept_form(enum object_kind kind, const struct doc *document)
{
    return !has_packed(kind, document, false) && !has_packed(kind, doc_get(document, "metadata"), true);
}

struct doc *object_kept_form(struct arena *arena, enum object_kind kind, const struct doc *document)
{
    CHECK(document && document->kind == DOC_OBJECT);
    return keep_members(arena, kind, document, false);
}

/* Packs a copy, because the size depends on the packing. */
uint64_t object_kept_bytes(enum object_kind kind, const struct doc *document)
{
    struct arena arena ARENA_CLEANUP = {0};
    return doc_bytes(object_kept_form(&arena, kind, document));
}

/* --- sums ---------------------------------------------------------------------------------------------- */

static struct kept_bytes *add_bytes(struct object_store *store, struct str namespace_, uint64_t bytes)
{
    struct kept_bytes *kept = str_map_get(&store->kept_by_namespace, namespace_);
    if (!kept) {
        struct buf name = {0};
        buf_add_str(&name, namespace_);
        kept = mem_alloc(sizeof(*kept));
        kept->namespace_ = buf_str(&name);
        list_append(&store->kept, &kept->node);
        str_map_put(&store->kept_by_namespace, kept->namespace_, kept);
    }
    kept->bytes += bytes;
    store->kept_bytes += bytes;
    return kept;
}

void kept_add(struct object_store *store, struct str namespace_, uint64_t bytes)
{
    (void)add_bytes(store, namespace_, bytes);
}

static void forget(struct object_store *store, struct kept_bytes *kept)
{
    str_map_remove(&store->kept_by_namespace, kept->namespace_);
    list_remove(&kept->node);
    mem_free((char *)kept->namespace_.data);
    mem_free(kept);
}

void kept_drop(struct object_store *store, struct str namespace_, uint64_t bytes)
{
    struct kept_bytes *kept = str_map_get(&store->kept_by_namespace, namespace_);
    CHECK(kept && kept->bytes >= bytes && store->kept_bytes >= bytes);
    kept->bytes -= bytes;
    store->kept_bytes -= bytes;
    if (kept->bytes == 0)
        forget(store, kept);
}

void kept_charge(struct object_store *store, obj_id uid, const struct doc *document)
{
    struct charge *charge = u64_map_get(&store->charges, uid);
    CHECK(uid != 0 && !object_find_uid(store, uid)); /* stored objects are charged with their own bytes */
    if (charge) {
        kept_drop(store, charge->namespace_, charge->bytes);
        u64_map_remove(&store->charges, uid);
        list_remove(&charge->node);
        mem_free(charge);
    }
    if (!document)
        return;
    struct str ns = doc_str(doc_path(document, "metadata", "namespace", NULL), STR("default"));
    charge = mem_alloc(sizeof(*charge));
    charge->bytes = doc_bytes(document);
    charge->namespace_ = add_bytes(store, ns, charge->bytes)->namespace_;
    u64_map_put(&store->charges, uid, charge);
    list_append(&store->charge_list, &charge->node);
}

uint64_t objects_charge(const struct object_store *store, obj_id uid)
{
    const struct charge *charge = u64_map_get(&store->charges, uid);
    return charge ? charge->bytes : 0;
}

void kept_done(struct object_store *store)
{
    list_for_each_safe(node, after, &store->charge_list) mem_free(container_of(node, struct charge, node));
    u64_map_done(&store->charges);
    list_for_each_safe(node, after, &store->kept) forget(store, container_of(node, struct kept_bytes, node));
    str_map_done(&store->kept_by_namespace);
}

uint64_t objects_bytes(const struct object_store *store)
{
    return store->kept_bytes;
}

uint64_t objects_bytes_in(const struct object_store *store, struct str namespace_)
{
    const struct kept_bytes *kept = str_map_get(&store->kept_by_namespace, namespace_);
    return kept ? kept->bytes : 0;
}

void objects_visit_bytes(const struct object_store *store,
                         void (*visit)(void *context, struct str namespace_, uint64_t bytes), void *context)
{
    list_for_each(node, &store->kept)
    {
        const struct kept_bytes *kept = container_of(node, struct kept_bytes, node);
        visit(context, kept->namespace_, kept->bytes);
    }
}

void kept_check(const struct object_store *store)
{
    struct object_store sums = {0}; /* only its sums are used */
    list_init(&sums.kept);
    list_init(&sums.charge_list);
    for (int kind = 0; kind < OBJECT_KINDS; kind++)
        for (size_t i = 0; i < store->kinds[kind].sorted.len; i++) {
            const struct object *object = store->kinds[kind].sorted.items[i];
            CHECK(object->bytes == doc_bytes(object->document));
            kept_add(&sums, object->namespace_, object->bytes);
        }
    list_for_each(node, &store->charge_list)
    {
        const struct charge *charge = container_of(node, struct charge, node);
        kept_add(&sums, charge->namespace_, charge->bytes);
    }
    CHECK(sums.kept_bytes == store->kept_bytes);
    CHECK(sums.kept_by_namespace.len == store->kept_by_namespace.len);
    list_for_each(node, &sums.kept)
    {
        const struct kept_bytes *kept = container_of(node, struct kept_bytes, node);
        CHECK(kept->bytes > 0 && kept->bytes == objects_bytes_in(store, kept->namespace_));
    }
    kept_done(&sums);
}
