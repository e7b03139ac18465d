/* apply_managers.c - reads and writes metadata.managedFields, and keeps it small. */
#include <stdlib.h>

#include "kube/apply.h"

void apply_managers_done(struct apply_managers *managers)
{
    vec_done(&managers->list);
}

int apply_managers_read(struct arena *arena, const struct doc *fields, struct apply_managers *ret_managers,
                        struct error *error)
{
    if (doc_len(fields) > APPLY_MANAGERS_MAX)
        return error_set(error, ERROR_INVALID, "more than %d managers", APPLY_MANAGERS_MAX);
    for (size_t i = 0; fields && fields->kind == DOC_ARRAY && i < fields->array.len; i++) {
        const struct doc *entry = fields->array.items[i];
        struct apply_manager manager = {
            .name = doc_str(doc_get(entry, "manager"), STR("")),
            .api_version = doc_str(doc_get(entry, "apiVersion"), STR("")),
            .time = doc_str(doc_get(entry, "time"), STR("")),
            .subresource = doc_str(doc_get(entry, "subresource"), STR("")),
            .applies = str_is(doc_str(doc_get(entry, "operation"), STR("")), "Apply"),
        };
        int rc = fieldset_parse(arena, doc_get(entry, "fieldsV1"), &manager.set, error);
        if (rc < 0) {
            vec_done(&ret_managers->list);
            return rc;
        }
        vec_push(&ret_managers->list, manager);
    }
    return 0;
}

static int compare_managers(const void *left, const void *right)
{
    const struct apply_manager *a = left, *b = right;
    if (a->applies != b->applies)
        return a->applies ? -1 : 1;
    int order = str_compare(a->time, b->time);
    if (order == 0)
        order = str_compare(a->name, b->name);
    return order ? order : str_compare(a->subresource, b->subresource);
}

static void set_text(struct arena *arena, struct doc *entry, const char *key, struct str text)
{
    if (text.len)
        doc_set(arena, entry, str_from(key), doc_new_str(arena, text));
}

struct doc *apply_managers_doc(struct arena *arena, struct apply_managers *managers)
{
    if (managers->list.len == 0)
        return NULL;
    qsort(managers->list.items, managers->list.len, sizeof *managers->list.items, compare_managers);
    struct doc *fields = doc_new(arena, DOC_ARRAY);
    for (size_t i = 0; i < managers->list.len; i++) {
        const struct apply_manager *manager = &managers->list.items[i];
        struct doc *entry = doc_new(arena, DOC_OBJECT);
        set_text(arena, entry, "manager", manager->name);
        set_text(arena, entry, "operation", manager->applies ? STR("Apply") : STR("Update"));
        set_text(arena, entry, "apiVersion", manager->api_version);
        set_text(arena, entry, "time", manager->time);
        set_text(arena, entry, "fieldsType", STR("FieldsV1"));
        doc_set(arena, entry, STR("fieldsV1"), fieldset_doc(arena, &manager->set));
        set_text(arena, entry, "subresource", manager->subresource);
        doc_push(arena, fields, entry);
    }
    return fields;
}

struct apply_manager *apply_managers_find(struct apply_managers *managers, const struct apply_manager *who)
{
    for (size_t i = 0; i < managers->list.len; i++) {
        struct apply_manager *manager = &managers->list.items[i];
        if (manager->applies == who->applies && str_equal(manager->name, who->name) &&
            str_equal(manager->subresource, who->subresource))
            return manager;
    }
    return NULL;
}

void apply_managers_drop_empty(struct apply_managers *managers)
{
    size_t kept = 0;
    for (size_t i = 0; i < managers->list.len; i++)
        if (!fieldset_empty(&managers->list.items[i].set))
            managers->list.items[kept++] = managers->list.items[i];
    managers->list.len = kept;
}

void apply_managers_cap(struct arena *arena, struct apply_managers *managers)
{
    size_t count = 0;
    for (size_t i = 0; i < managers->list.len; i++)
        count += !managers->list.items[i].applies;
    if (count <= APPLY_UPDATERS_MAX)
        return;
    qsort(managers->list.items, managers->list.len, sizeof *managers->list.items, compare_managers);
    struct apply_manager old = {.name = STR("ancient-changes")};
    size_t kept = 0, merged = 0;
    for (size_t i = 0; i < managers->list.len; i++) {
        struct apply_manager *manager = &managers->list.items[i];
        if (manager->applies || merged > count - APPLY_UPDATERS_MAX) {
            managers->list.items[kept++] = *manager;
            continue;
        }
        merged++;
        old.api_version = manager->api_version;
        old.time = manager->time;
        old.set = fieldset_union(arena, &old.set, &manager->set);
    }
    managers->list.len = kept;
    vec_push(&managers->list, old);
}
/* --- large maps --------------------------------------------------------------------------------------- */

static const char *const large_maps[] = {"data", "binaryData"};
enum { LARGE_MAPS = sizeof large_maps / sizeof *large_maps };
enum { COLLAPSED_MAX = 4 }; /* per map, so that a client's text cannot expand to many times its size */
#define EVERY_KEY STR("f:") /* the path element of a key without a name, which no map has */

static int compare_elements(const void *left, const void *right)
{
    return str_compare(((const struct fieldset_item *)left)->element,
                       ((const struct fieldset_item *)right)->element);
}

/* Returns the set of all keys of a map, without the map itself. */
static struct fieldset keys_of(struct arena *arena, const struct doc *map)
{
    size_t count = doc_len(map);
    struct fieldset set = {
        .items = ARENA_ARRAY(arena, struct fieldset_item, count), .len = count, .cap = count};
    for (size_t i = 0; i < count; i++)
        set.items[i] = (struct fieldset_item){
            .element = arena_printf(arena, "f:" STR_FORMAT, STR_ARG(map->object.members[i].key)),
            .set = {.member = true}};
    qsort(set.items, count, sizeof *set.items, compare_elements);
    return set;
}

/* Replaces the part of a set below one of its elements; sets share nodes, so the items are copied. */
static void replace_below(struct arena *arena, struct fieldset *set, struct str element,
                          struct fieldset below)
{
    struct fieldset_item *items = ARENA_ARRAY(arena, struct fieldset_item, set->len);
    for (size_t i = 0; i < set->len; i++) {
        items[i] = set->items[i];
        if (str_equal(items[i].element, element))
            items[i].set = below;
    }
    set->items = items;
    set->cap = set->len;
}

static const struct doc *large_map(const struct doc *object, size_t which, struct str *ret_element,
                                   struct arena *arena)
{
    const struct doc *map = doc_get(object, large_maps[which]);
    *ret_element = arena_printf(arena, "f:%s", large_maps[which]);
    return map && map->kind == DOC_OBJECT ? map : NULL;
}

void apply_managers_collapse(struct arena *arena, struct apply_managers *managers, const struct doc *object)
{
    for (size_t which = 0; which < LARGE_MAPS; which++) {
        struct str element;
        const struct doc *map = large_map(object, which, &element, arena);
        if (doc_len(map) <= APPLY_KEYS_MAX)
            continue;
        struct fieldset all = keys_of(arena, map);
        int collapsed = 0;
        for (size_t i = 0; i < managers->list.len && collapsed < COLLAPSED_MAX; i++) {
            const struct fieldset *below = fieldset_find(&managers->list.items[i].set, element);
            if (!below || below->len != all.len)
                continue;
            struct fieldset every = {.member = below->member};
            all.member = below->member;
            if (!fieldset_equal(below, &all))
                continue;
            every.items = ARENA_NEW(arena, struct fieldset_item);
            every.items[0] = (struct fieldset_item){.element = EVERY_KEY, .set = {.member = true}};
            every.len = every.cap = 1;
            collapsed++;
            replace_below(arena, &managers->list.items[i].set, element, every);
        }
    }
}

void apply_managers_expand(struct arena *arena, struct apply_managers *managers, const struct doc *object)
{
    for (size_t which = 0; which < LARGE_MAPS; which++) {
        struct str element;
        const struct doc *map = large_map(object, which, &element, arena);
        struct fieldset all = {0};
        int expanded = 0;
        for (size_t i = 0; i < managers->list.len; i++) {
            const struct fieldset *below = fieldset_find(&managers->list.items[i].set, element);
            if (!below || !fieldset_find(below, EVERY_KEY))
                continue;
            if (map && expanded == 0)
                all = keys_of(arena, map);
            struct fieldset whole = expanded++ < COLLAPSED_MAX ? all : (struct fieldset){0};
            whole.member = below->member || whole.len == 0;
            replace_below(arena, &managers->list.items[i].set, element, whole);
        }
    }
}
