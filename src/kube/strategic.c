/* Strategic merge patch: a merge patch that knows which lists are keyed, with its directives.
 * Source: Kubernetes documentation "Update API Objects in Place Using kubectl patch", and the design document
 * "Preserve Order in Strategic Merge Patch" ($setElementOrder, $deleteFromPrimitiveList, $retainKeys).
 *
 * A keyed list is merged by the first of its keys, which is what Kubernetes' patchMergeKey is for each of
 * them.
 */
#include "doc/json.h"
#include "kube/members.h"
#include "kube/patch.h"

#define ORDER_PREFIX  "$setElementOrder/"
#define DELETE_PREFIX "$deleteFromPrimitiveList/"

struct merging {
    struct arena *arena;
    struct error *error;
};

static int merge_object(struct merging *merging, const struct schema *schema, struct doc *target,
                        const struct doc *patch, struct doc **ret_node);

/* The text by which an item of this list is known; .data NULL: it has none. */
static struct str item_key(struct merging *merging, const struct schema_field *field, const struct doc *item)
{
    if (field->list == SCHEMA_KEYED) {
        struct str first = str_from(field->keys), rest;
        (void)str_cut(first, ',', &first, &rest);
        item = doc_get_str(item, first);
    }
    if (!item || item->kind == DOC_NULL || item->kind == DOC_ARRAY || item->kind == DOC_OBJECT)
        return (struct str){0};
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, item);
    return arena_str(merging->arena, buf_str(&text));
}

static bool directive_is(const struct doc *object, const char *word)
{
    return str_is(doc_str(doc_get(object, "$patch"), STR("")), word);
}

/* --- lists ------------------------------------------------------------------------------------- */

/* Items by key, in order; gone items are NULL. */
struct listing {
    VEC(struct doc *) items;
    VEC(struct str) keys;
    struct str_map places; /* key -> place + 1 */
};

static void listing_add(struct listing *listing, struct str key, struct doc *item)
{
    vec_push(&listing->items, item);
    vec_push(&listing->keys, key);
    if (key.data)
        str_map_put(&listing->places, key, (void *)(uintptr_t)listing->items.len);
}

static struct doc **listing_find(struct listing *listing, struct str key)
{
    uintptr_t place = key.data ? (uintptr_t)str_map_get(&listing->places, key) : 0;
    return place ? &listing->items.items[place - 1] : NULL;
}

static void listing_done(struct listing *listing)
{
    vec_done(&listing->items);
    vec_done(&listing->keys);
    str_map_done(&listing->places);
}

static int merge_item(struct merging *merging, const struct schema_field *field, struct listing *listing,
                      const struct doc *item)
{
    struct str key = item_key(merging, field, item);
    struct doc **place = listing_find(listing, key), *node = NULL;
    if (!key.data)
        return error_set(merging->error, ERROR_INVALID, "map: %s does not contain declared merge key: %s",
                         field->name, field->keys ? field->keys : "value");
    if (directive_is(item, "delete")) {
        if (place)
            *place = NULL;
        return 0;
    }
    if (field->list == SCHEMA_SET) {
        if (!place)
            listing_add(listing, key, doc_clone(merging->arena, item));
        return 0;
    }
    int rc = merge_object(merging, field->object, place ? *place : NULL, item, &node);
    if (rc == 0 && place)
        *place = node;
    else if (rc == 0)
        listing_add(listing, key, node);
    return rc;
}

/* Sorts items in the order that the client saw; items that it did not know of keep their place between. */
static struct doc *in_order(struct merging *merging, const struct schema_field *field,
                            struct listing *listing, const struct doc *order)
{
    struct doc *result = doc_new(merging->arena, DOC_ARRAY);
    struct str_map ordered = {0};
    size_t at = 0, count = order && order->kind == DOC_ARRAY ? order->array.len : 0;
    struct str *keys = ARENA_ARRAY(merging->arena, struct str, count);
    for (size_t i = 0; i < count; i++) {
        keys[i] = item_key(merging, field, order->array.items[i]);
        if (keys[i].data && str_map_put(&ordered, keys[i], &keys[i]))
            keys[i].data = NULL; /* named twice */
    }
    for (size_t i = 0; i <= count; i++) {
        struct doc **place = i < count ? listing_find(listing, keys[i]) : NULL;
        size_t end = i == count ? listing->items.len : place ? (size_t)(place - listing->items.items) : at;
        for (; at < end; at++)
            if (listing->items.items[at] &&
                (!listing->keys.items[at].data || !str_map_get(&ordered, listing->keys.items[at])))
                doc_push(merging->arena, result, listing->items.items[at]);
        if (place && *place)
            doc_push(merging->arena, result, *place);
    }
    str_map_done(&ordered);
    return result;
}

static bool replaces_list(const struct doc *patch)
{
    for (size_t i = 0; i < patch->array.len; i++)
        if (directive_is(patch->array.items[i], "replace"))
            return true;
    return false;
}

/* `patch`, `order` and `gone` may each be NULL. */
static int merge_list(struct merging *merging, const struct schema_field *field, const struct doc *target,
                      const struct doc *patch, const struct doc *order, const struct doc *gone,
                      struct doc **ret_node)
{
    struct listing listing = {0};
    int rc = 0;
    bool replaces = patch && replaces_list(patch);
    for (size_t i = 0; !replaces && target && i < target->array.len; i++)
        listing_add(&listing, item_key(merging, field, target->array.items[i]), target->array.items[i]);
    for (size_t i = 0; gone && gone->kind == DOC_ARRAY && i < gone->array.len; i++) {
        struct doc **place = listing_find(&listing, item_key(merging, field, gone->array.items[i]));
        if (place)
            *place = NULL;
    }
    for (size_t i = 0; rc == 0 && patch && i < patch->array.len; i++)
        if (!directive_is(patch->array.items[i], "replace"))
            rc = merge_item(merging, field, &listing, patch->array.items[i]);
    if (rc == 0)
        *ret_node = in_order(merging, field, &listing, order);
    listing_done(&listing);
    return rc;
}

/* --- objects ----------------------------------------------------------------------------------- */

static bool merges(const struct schema_field *field)
{
    return field && (field->list == SCHEMA_KEYED || field->list == SCHEMA_SET);
}

/* A member of the patch that is no directive. */
static int merge_member(struct merging *merging, const struct schema *schema, struct members *members,
                        const struct doc *patch, const struct doc_member *member)
{
    const struct schema_field *field = schema ? schema_field_of(schema, member->key) : NULL;
    struct doc *old = members_get(members, member->key), *node = NULL;
    int rc = 0;
    if (merges(field) && member->value->kind == DOC_ARRAY) {
        struct str order = arena_printf(merging->arena, ORDER_PREFIX STR_FORMAT, STR_ARG(member->key));
        struct str gone = arena_printf(merging->arena, DELETE_PREFIX STR_FORMAT, STR_ARG(member->key));
        rc = merge_list(merging, field, old && old->kind == DOC_ARRAY ? old : NULL, member->value,
                        doc_get_str(patch, order), doc_get_str(patch, gone), &node);
    } else if (member->value->kind == DOC_OBJECT && (!field || field->list == SCHEMA_SINGLE)) {
        const struct schema *below = field && field->kind == SCHEMA_OBJECT ? field->object : NULL;
        rc = merge_object(merging, below, old, member->value, &node);
    } else {
        node = doc_clone(merging->arena, member->value);
    }
    if (rc == 0)
        members_set(merging->arena, members, member->key, node);
    return rc;
}

/* "$setElementOrder/x" and "$deleteFromPrimitiveList/x" of a list that the patch says nothing else about. */
static int order_member(struct merging *merging, const struct schema *schema, struct members *members,
                        const struct doc *patch, struct str key)
{
    struct str name, head;
    struct doc *node = NULL;
    if (!str_cut(key, '/', &head, &name) || !schema || doc_get_str(patch, name))
        return 0;
    const struct schema_field *field = schema_field_of(schema, name);
    struct doc *old = members_get(members, name);
    if (!merges(field) || !old || old->kind != DOC_ARRAY)
        return 0;
    struct str order = arena_printf(merging->arena, ORDER_PREFIX STR_FORMAT, STR_ARG(name));
    struct str gone = arena_printf(merging->arena, DELETE_PREFIX STR_FORMAT, STR_ARG(name));
    int rc =
        merge_list(merging, field, old, NULL, doc_get_str(patch, order), doc_get_str(patch, gone), &node);
    if (rc == 0)
        members_set(merging->arena, members, name, node);
    return rc;
}

static void retain_keys(struct doc *target, const struct doc *names)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->object.len; i++) {
        bool named = false;
        for (size_t k = 0; k < names->array.len && !named; k++)
            named = str_equal(doc_str(names->array.items[k], STR("")), target->object.members[i].key);
        if (named)
            target->object.members[kept++] = target->object.members[i];
    }
    target->object.len = kept;
}

static bool is_directive(struct str key)
{
    return str_is(key, "$patch") || str_is(key, "$retainKeys") || str_starts(key, STR(ORDER_PREFIX)) ||
           str_starts(key, STR(DELETE_PREFIX));
}

static void drop_nulls(struct doc *target)
{
    size_t kept = 0;
    for (size_t i = 0; i < target->object.len; i++)
        if (target->object.members[i].value->kind != DOC_NULL)
            target->object.members[kept++] = target->object.members[i];
    target->object.len = kept;
}

static int merge_object(struct merging *merging, const struct schema *schema, struct doc *target,
                        const struct doc *patch, struct doc **ret_node)
{
    const struct doc *retained = doc_get(patch, "$retainKeys");
    if (directive_is(patch, "delete")) {
        *ret_node = doc_new(merging->arena, DOC_NULL);
        return 0;
    }
    if (!target || target->kind != DOC_OBJECT || directive_is(patch, "replace"))
        target = doc_new(merging->arena, DOC_OBJECT);
    if (retained && retained->kind == DOC_ARRAY)
        retain_keys(target, retained);
    struct members members MEMBERS_CLEANUP = members_of(target);
    for (size_t i = 0; i < patch->object.len; i++) {
        const struct doc_member *member = &patch->object.members[i];
        int rc = is_directive(member->key) ? order_member(merging, schema, &members, patch, member->key)
                                           : merge_member(merging, schema, &members, patch, member);
        if (rc < 0)
            return rc;
    }
    drop_nulls(target); /* a null in a patch deletes */
    *ret_node = target;
    return 0;
}

int patch_strategic(struct arena *arena, const struct schema *schema, struct doc **target,
                    const struct doc *patch, struct error *error)
{
    struct merging merging = {arena, error};
    if (patch->kind != DOC_OBJECT)
        return error_set(error, ERROR_INVALID, "a strategic merge patch is an object");
    return merge_object(&merging, schema, *target, patch, target);
}
