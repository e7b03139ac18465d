/* strategic.c - strategic merge patch: a merge patch that knows which lists are keyed, with its directives.
 * Source: Kubernetes documentation "Update API Objects in Place Using kubectl patch", and the design document
 * "Preserve Order in Strategic Merge Patch" ($setElementOrder, $deleteFromPrimitiveList, $retainKeys).
 *
 * A keyed list is merged by the first of its keys, which is what Kubernetes' patchMergeKey is for each of
 * them. A patch may name one item of a list many times, and each time the whole item is visited, so every
 * visit is charged to the budget.
 */
#include "doc/json.h"
#include "kube/members.h"
#include "kube/patch.h"
#include "kube/visits.h"

#define ORDER_PREFIX  "$setElementOrder/"
#define DELETE_PREFIX "$deleteFromPrimitiveList/"

enum {
    KEY_BYTES_A_VISIT = 32,
    FEW = 4,             /* up to this many members of a patch are searched, as an index would take longer */
    WALKS_OF_MEMBER = 3, /* of the target, for each of them */
    VISITS_OF_ITEM = 2 * VISITS_OF_INDEXED, /* its key is written as text, too */
};

struct merging {
    struct arena *arena;
    struct visits visits;
    struct error *error;
};

static int merge_object(struct merging *merging, const struct schema *schema, struct doc *target,
                        const struct doc *patch, struct doc **ret_node);

/* Returns the text that identifies an item of this list; .data is NULL if it has none. Counts the visit,
 * which merge_list() checks. */
static struct str item_key(struct merging *merging, const struct schema_field *field, const struct doc *item)
{
    merging->visits.count += VISITS_OF_ITEM + doc_len(item);
    if (field->list == SCHEMA_KEYED) {
        struct str first = str_from(field->keys), rest;
        (void)str_cut(first, ',', &first, &rest);
        item = doc_get_str(item, first);
    }
    if (!item || item->kind == DOC_NULL || item->kind == DOC_ARRAY || item->kind == DOC_OBJECT)
        return (struct str){0};
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, item);
    merging->visits.count += text.len / KEY_BYTES_A_VISIT;
    return arena_str(merging->arena, buf_str(&text));
}

static bool directive_is(const struct doc *object, const char *word)
{
    return str_is(doc_str(doc_get(object, "$patch"), STR("")), word);
}

/* --- lists ------------------------------------------------------------------------------------- */

/* Items by key, in order; removed items are NULL. */
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

/* Sorts items in the order that the client saw; items that it did not know keep their place between them. */
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

/* Merges a list. `patch`, `order` and `gone` may each be NULL. */
static int merge_list(struct merging *merging, const struct schema_field *field, const struct doc *target,
                      const struct doc *patch, const struct doc *order, const struct doc *gone,
                      struct doc **ret_node)
{
    struct listing listing = {0};
    int rc = 0;
    bool replaces = patch && replaces_list(patch);
    merging->visits.count += doc_len(patch);
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
    if (rc == 0)
        rc = visits_charge(&merging->visits, 0);
    listing_done(&listing);
    return rc;
}

/* --- objects ----------------------------------------------------------------------------------- */

static bool merges(const struct schema_field *field)
{
    return field && (field->list == SCHEMA_KEYED || field->list == SCHEMA_SET);
}

/* An object and its patch. */
struct level {
    const struct schema *schema; /* NULL: not known */
    struct members members;      /* of the target */
    const struct doc *patch;
    struct members said; /* of the patch; without an object until the first look-up */
};

static void level_done(struct level *level)
{
    members_done(&level->members);
    members_done(&level->said);
}

/* Returns the patch's member of this key. A patch may be searched once for each of its members. */
static const struct doc *said(struct level *level, struct str key)
{
    if (!level->said.object)
        level->said = members_of((struct doc *)level->patch);
    return members_get(&level->said, key);
}

/* Merges a list by the patch's value for it (NULL: none) and the directives beside that. */
static int merge_list_member(struct merging *merging, struct level *level, const struct schema_field *field,
                             const struct doc *value, struct doc **ret_node)
{
    struct str name = str_from(field->name);
    struct doc *old = members_get(&level->members, name);
    struct str order = arena_printf(merging->arena, ORDER_PREFIX STR_FORMAT, STR_ARG(name));
    struct str gone = arena_printf(merging->arena, DELETE_PREFIX STR_FORMAT, STR_ARG(name));
    return merge_list(merging, field, old && old->kind == DOC_ARRAY ? old : NULL, value, said(level, order),
                      said(level, gone), ret_node);
}

/* Merges a member of the patch that is no directive. */
static int merge_member(struct merging *merging, struct level *level, const struct doc_member *member)
{
    const struct schema_field *field = level->schema ? schema_field_of(level->schema, member->key) : NULL;
    struct doc *node = NULL;
    int rc = 0;
    if (merges(field) && member->value->kind == DOC_ARRAY) {
        rc = merge_list_member(merging, level, field, member->value, &node);
    } else if (member->value->kind == DOC_OBJECT && (!field || field->list == SCHEMA_SINGLE)) {
        const struct schema *below = field && field->kind == SCHEMA_OBJECT ? field->object : NULL;
        rc = merge_object(merging, below, members_get(&level->members, member->key), member->value, &node);
    } else {
        node = doc_clone(merging->arena, member->value);
    }
    if (rc == 0)
        members_set(merging->arena, &level->members, member->key, node);
    return rc;
}

/* Carries out "$setElementOrder/x" and "$deleteFromPrimitiveList/x" of a list that the patch does not name
 * otherwise. */
static int order_member(struct merging *merging, struct level *level, struct str key)
{
    struct str name, head;
    struct doc *node = NULL;
    if (!str_cut(key, '/', &head, &name) || !level->schema || said(level, name))
        return 0;
    const struct schema_field *field = schema_field_of(level->schema, name);
    const struct doc *old = members_get(&level->members, name);
    if (!merges(field) || !old || old->kind != DOC_ARRAY)
        return 0;
    int rc = merge_list_member(merging, level, field, NULL, &node);
    if (rc == 0)
        members_set(merging->arena, &level->members, name, node);
    return rc;
}

/* Removes the members that are not in `names` from the target. */
static int retain_keys(struct merging *merging, struct doc *target, const struct doc *names)
{
    struct str_map places = {0}; /* key -> place + 1 */
    size_t kept = 0, len = doc_len(target);
    bool *named = ARENA_ARRAY(merging->arena, bool, len);
    for (size_t i = 0; i < len; i++)
        str_map_put(&places, target->object.members[i].key, (void *)(uintptr_t)(i + 1));
    for (size_t i = 0; i < doc_len(names); i++) {
        uintptr_t place = (uintptr_t)str_map_get(&places, doc_str(doc_at(names, i), STR("")));
        if (place)
            named[place - 1] = true;
    }
    str_map_done(&places);
    for (size_t i = 0; i < len; i++)
        if (named[i])
            target->object.members[kept++] = target->object.members[i];
    target->object.len = kept;
    return visits_charge(&merging->visits, VISITS_OF_INDEXED * len + doc_len(names));
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

static int merge_members(struct merging *merging, const struct schema *schema, struct doc *target,
                         const struct doc *patch)
{
    bool few = doc_len(patch) <= FEW;
    size_t walks = few ? 1 + WALKS_OF_MEMBER * doc_len(patch) : VISITS_OF_INDEXED;
    int rc = visits_charge(&merging->visits, walks * doc_len(target) + doc_len(patch));
    if (rc < 0)
        return rc;
    struct level level = {
        .schema = schema, .members = few ? members_searched(target) : members_of(target), .patch = patch};
    for (size_t i = 0; i < doc_len(patch) && rc == 0; i++) {
        const struct doc_member *member = &patch->object.members[i];
        rc = is_directive(member->key) ? order_member(merging, &level, member->key)
                                       : merge_member(merging, &level, member);
    }
    level_done(&level);
    return rc;
}

static int merge_object(struct merging *merging, const struct schema *schema, struct doc *target,
                        const struct doc *patch, struct doc **ret_node)
{
    const struct doc *retained = doc_get(patch, "$retainKeys");
    if (directive_is(patch, "delete")) {
        *ret_node = doc_new(merging->arena, DOC_NULL);
        return visits_charge(&merging->visits, doc_len(patch));
    }
    if (!target || target->kind != DOC_OBJECT || directive_is(patch, "replace"))
        target = doc_new(merging->arena, DOC_OBJECT);
    int rc = 0;
    if (retained && retained->kind == DOC_ARRAY)
        rc = retain_keys(merging, target, retained);
    if (rc == 0)
        rc = merge_members(merging, schema, target, patch);
    if (rc < 0)
        return rc;
    drop_nulls(target); /* a null in a patch deletes */
    *ret_node = target;
    return 0;
}

int patch_strategic(struct arena *arena, const struct schema *schema, struct doc **target,
                    const struct doc *patch, struct error *error)
{
    struct merging merging = {.arena = arena, .visits = {.error = error}, .error = error};
    if (patch->kind != DOC_OBJECT)
        return error_set(error, ERROR_INVALID, "a strategic merge patch is an object");
    return merge_object(&merging, schema, *target, patch, target);
}
