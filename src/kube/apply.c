#include "kube/apply.h"

#include <stdlib.h>

#include "doc/json.h"
#include "kube/members.h"

/* --- fields without an owner ----------------------------------------------------------------------- */

static bool is_server_field(struct str element)
{
    static const char *const names[] = {
        "f:name",       "f:namespace",       "f:generateName",      "f:uid",
        "f:generation", "f:resourceVersion", "f:creationTimestamp", "f:deletionTimestamp",
        "f:selfLink",   "f:managedFields",   "f:clusterName",       "f:deletionGracePeriodSeconds"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(element, names[i]))
            return true;
    return false;
}

static struct fieldset strip(struct arena *arena, struct fieldset set)
{
    struct fieldset kept = {.items = ARENA_ARRAY(arena, struct fieldset_item, set.len)};
    for (size_t i = 0; i < set.len; i++) {
        struct fieldset_item item = set.items[i];
        if (str_is(item.element, "f:apiVersion") || str_is(item.element, "f:kind") ||
            str_is(item.element, "f:status"))
            continue;
        if (str_is(item.element, "f:metadata")) {
            struct fieldset metadata = {.items = ARENA_ARRAY(arena, struct fieldset_item, item.set.len)};
            for (size_t k = 0; k < item.set.len; k++)
                if (!is_server_field(item.set.items[k].element))
                    metadata.items[metadata.len++] = item.set.items[k];
            metadata.cap = metadata.len;
            item.set = metadata;
            if (metadata.len == 0)
                continue;
        }
        kept.items[kept.len++] = item;
    }
    kept.cap = kept.len;
    return kept;
}

/* --- update ------------------------------------------------------------------------------------ */

void apply_update(struct arena *arena, const struct schema *schema, const struct doc *before,
                  const struct doc *after, const struct apply_manager *who, struct apply_managers *managers)
{
    struct fieldset_change change = fieldset_compare(arena, schema, before, after);
    change.set = strip(arena, change.set);
    change.removed = strip(arena, change.removed);
    if (fieldset_empty(&change.set) && fieldset_empty(&change.removed))
        return;
    struct fieldset lost = fieldset_union(arena, &change.set, &change.removed);
    for (size_t i = 0; i < managers->list.len; i++) {
        struct fieldset *set = &managers->list.items[i].set;
        *set = fieldset_minus(arena, set, &lost);
    }
    struct apply_manager *manager = apply_managers_find(managers, who);
    if (!manager) {
        vec_push(&managers->list, *who);
        manager = &vec_last(&managers->list);
        manager->set = (struct fieldset){0};
    }
    manager->set = fieldset_union(arena, &manager->set, &change.set);
    manager->time = who->time;
    manager->api_version = who->api_version;
    apply_managers_drop_empty(managers);
    apply_managers_cap(arena, managers);
}

/* --- merging ----------------------------------------------------------------------------------- */

struct merging {
    struct arena *arena;
    struct error *error;
};

static const struct schema_field *field_below(const struct schema *schema, struct str name)
{
    return schema ? schema_field_of(schema, name) : NULL;
}
static const struct schema *schema_below(const struct schema_field *field)
{
    return field && field->kind == SCHEMA_OBJECT ? field->object : NULL;
}

static int merge(struct merging *merging, const struct schema *schema, const struct schema_field *field,
                 struct doc *live, const struct doc *config, struct doc **ret_node);

static int merge_members(struct merging *merging, const struct schema *schema, struct doc *live,
                         const struct doc *config, struct doc **ret_node)
{
    struct doc *result = live ? live : doc_new(merging->arena, DOC_OBJECT);
    struct members members MEMBERS_CLEANUP = members_of(result);
    for (size_t i = 0; i < config->object.len; i++) {
        const struct doc_member *member = &config->object.members[i];
        const struct schema_field *field = field_below(schema, member->key);
        struct doc *node = NULL;
        int rc = merge(merging, schema_below(field), field, members_get(&members, member->key), member->value,
                       &node);
        if (rc < 0)
            return rc;
        members_set(merging->arena, &members, member->key, node);
    }
    *ret_node = result;
    return 0;
}

/* Items of both lists, identified by their elements. */
struct pairing {
    struct str *live_elements, *config_elements;
    struct str_map live, config; /* element -> place + 1 */
};

static void pairing_done(struct pairing *pairing)
{
    str_map_done(&pairing->live);
    str_map_done(&pairing->config);
}

static int pair_up(struct merging *merging, const struct schema_field *field, const struct doc *live,
                   const struct doc *config, struct pairing *pairing)
{
    size_t live_len = doc_len(live);
    pairing->live_elements = ARENA_ARRAY(merging->arena, struct str, live_len);
    pairing->config_elements = ARENA_ARRAY(merging->arena, struct str, config->array.len);
    for (size_t i = 0; i < live_len; i++) {
        fieldset_item_element(merging->arena, field, live->array.items[i], i, &pairing->live_elements[i]);
        str_map_put(&pairing->live, pairing->live_elements[i], (void *)(uintptr_t)(i + 1));
    }
    for (size_t i = 0; i < config->array.len; i++) {
        struct str *element = &pairing->config_elements[i];
        if (!fieldset_item_element(merging->arena, field, config->array.items[i], i, element))
            return error_set(merging->error, ERROR_INVALID,
                             "element %zu of list \"%s\" lacks a key field (%s)", i, field->name,
                             field->keys ? field->keys : "its value");
        if (str_map_put(&pairing->config, *element, (void *)(uintptr_t)(i + 1)))
            return error_set(merging->error, ERROR_INVALID, "list \"%s\" has duplicate entries for key %.*s",
                             field->name, (int)element->len - 2, element->data + 2);
    }
    return 0;
}

/* Keeps the items [*at, end) of the live list that the applied one does not have. */
static void keep_others(struct merging *merging, const struct pairing *pairing, const struct doc *live,
                        size_t *at, size_t end, struct doc *result)
{
    for (; *at < end; (*at)++)
        if (!str_map_get(&pairing->config, pairing->live_elements[*at]))
            doc_push(merging->arena, result, live->array.items[*at]);
}

/* Merges two lists. Applied items keep their order; items that only the live list has keep their place
 * between them. */
static int merge_items(struct merging *merging, const struct schema_field *field, const struct doc *live,
                       const struct doc *config, const struct pairing *pairing, struct doc *result)
{
    const struct schema *schema = field->list == SCHEMA_KEYED ? field->object : NULL;
    static const struct schema_field scalar = {.kind = SCHEMA_STRING};
    size_t at = 0;
    for (size_t i = 0; i < config->array.len; i++) {
        uintptr_t place = (uintptr_t)str_map_get(&pairing->live, pairing->config_elements[i]);
        struct doc *node = NULL;
        if (place)
            keep_others(merging, pairing, live, &at, place - 1, result);
        int rc = merge(merging, schema, schema ? NULL : &scalar, place ? live->array.items[place - 1] : NULL,
                       config->array.items[i], &node);
        if (rc < 0)
            return rc;
        doc_push(merging->arena, result, node);
    }
    keep_others(merging, pairing, live, &at, doc_len(live), result);
    return 0;
}

static int merge(struct merging *merging, const struct schema *schema, const struct schema_field *field,
                 struct doc *live, const struct doc *config, struct doc **ret_node)
{
    bool list = field && (field->list == SCHEMA_KEYED || field->list == SCHEMA_SET);
    bool members = !field || field->list == SCHEMA_SINGLE;
    if (list && config->kind == DOC_ARRAY) {
        struct pairing pairing = {0};
        struct doc *result = doc_new(merging->arena, DOC_ARRAY);
        bool mergeable = live && live->kind == DOC_ARRAY;
        int rc = pair_up(merging, field, mergeable ? live : NULL, config, &pairing);
        if (rc == 0)
            rc = merge_items(merging, field, mergeable ? live : NULL, config, &pairing, result);
        pairing_done(&pairing);
        if (rc == 0)
            *ret_node = result;
        return rc;
    }
    if (members && config->kind == DOC_OBJECT)
        return merge_members(merging, schema, live && live->kind == DOC_OBJECT ? live : NULL, config,
                             ret_node);
    *ret_node = doc_clone(merging->arena, config);
    return 0;
}

/* --- pruning ----------------------------------------------------------------------------------- */

/* Removes from `node` the fields that are in `last` and not in `keep`. An item of a list is removed only if
 * it was itself applied and no other manager owns a field in it; so is a member, with its defaults. Members
 * named in `safe` stay: an item's keys, the object's metadata. */
static void prune(struct arena *arena, const struct schema *schema, const struct schema_field *field,
                  struct doc *node, const struct fieldset *last, const struct fieldset *keep,
                  const char *safe);

static bool goes(const struct fieldset *last, const struct fieldset *keep, bool item)
{
    return last && !keep && (last->member || !item);
}

static void prune_members(struct arena *arena, const struct schema *schema, struct doc *node,
                          const struct fieldset *last, const struct fieldset *keep, const char *safe)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->object.len; i++) {
        struct doc_member member = node->object.members[i];
        struct str element = arena_printf(arena, "f:" STR_FORMAT, STR_ARG(member.key));
        const struct fieldset *here = fieldset_find(last, element), *kept_here = fieldset_find(keep, element);
        bool identity = safe && path_one_of(member.key, safe);
        if (goes(here, kept_here, false) && !identity)
            continue;
        if (here) {
            const struct schema_field *field = field_below(schema, member.key);
            size_t before = doc_len(member.value);
            prune(arena, schema_below(field), field, member.value, here, kept_here, NULL);
            if (before && doc_len(member.value) == 0 && !(kept_here && kept_here->member) && !identity)
                continue;
        }
        node->object.members[kept++] = member;
    }
    node->object.len = kept;
}

static void prune_items(struct arena *arena, const struct schema_field *field, struct doc *node,
                        const struct fieldset *last, const struct fieldset *keep)
{
    size_t kept = 0;
    for (size_t i = 0; i < node->array.len; i++) {
        struct str element;
        struct doc *item = node->array.items[i];
        fieldset_item_element(arena, field, item, i, &element);
        const struct fieldset *here = fieldset_find(last, element), *kept_here = fieldset_find(keep, element);
        if (goes(here, kept_here, true))
            continue;
        if (here && field->list == SCHEMA_KEYED)
            prune(arena, field->object, NULL, item, here, kept_here, field->keys);
        node->array.items[kept++] = item;
    }
    node->array.len = kept;
}

static void prune(struct arena *arena, const struct schema *schema, const struct schema_field *field,
                  struct doc *node, const struct fieldset *last, const struct fieldset *keep,
                  const char *safe)
{
    bool list = field && (field->list == SCHEMA_KEYED || field->list == SCHEMA_SET);
    if (list && node->kind == DOC_ARRAY)
        prune_items(arena, field, node, last, keep);
    else if ((!field || field->list == SCHEMA_SINGLE) && node->kind == DOC_OBJECT)
        prune_members(arena, schema, node, last, keep, safe);
}

/* --- conflicts --------------------------------------------------------------------------------- */

struct naming {
    struct apply_conflicts *conflicts;
    struct str manager;
};

static void name_conflict(void *context, struct str path)
{
    struct naming *naming = context;
    struct apply_conflict conflict = {naming->manager, path};
    vec_push(&naming->conflicts->list, conflict);
}

static struct str manager_title(struct arena *arena, const struct apply_manager *manager)
{
    struct buf text BUF_CLEANUP = {0};
    json_write_str(&text, manager->name);
    if (manager->subresource.len)
        buf_printf(&text, " with subresource \"" STR_FORMAT "\"", STR_ARG(manager->subresource));
    if (!manager->applies)
        buf_printf(&text, " using " STR_FORMAT, STR_ARG(manager->api_version));
    return arena_str(arena, buf_str(&text));
}

/* Returns the fields that kubectl's client-side apply last set, if the object still records them: `kubectl
 * apply --server-side` may take them over without a conflict. */
static struct fieldset taken_over(struct arena *arena, const struct apply_request *request)
{
    struct doc *last;
    struct str text = doc_str(
        doc_get_str(doc_path(request->live, "metadata", "annotations", NULL), STR(APPLY_LAST_APPLIED)),
        STR(""));
    if (!str_is(request->who.name, "kubectl") || text.len == 0 || json_parse(arena, text, &last, NULL) < 0 ||
        last->kind != DOC_OBJECT)
        return (struct fieldset){0};
    struct fieldset said = fieldset_of(arena, request->schema, last);
    struct fieldset_change change = fieldset_compare(arena, request->schema, last, request->live);
    struct fieldset differs = fieldset_union(arena, &change.set, &change.removed);
    return fieldset_minus(arena, &said, &differs);
}

/* Finds conflicts. Returns true if there are none, after taking changed fields from their owners. */
static bool settle_conflicts(struct arena *arena, const struct apply_request *request,
                             struct apply_managers *managers, const struct doc *merged,
                             struct apply_conflicts *conflicts)
{
    struct fieldset_change change = fieldset_compare(arena, request->schema, request->live, merged);
    change.set = strip(arena, change.set);
    change.removed = strip(arena, change.removed);
    struct fieldset lost = fieldset_union(arena, &change.set, &change.removed);
    struct fieldset allowed = taken_over(arena, request);
    for (size_t i = 0; i < managers->list.len; i++) {
        struct apply_manager *manager = &managers->list.items[i];
        if (manager == apply_managers_find(managers, &request->who))
            continue;
        struct fieldset conflict = fieldset_common(arena, &manager->set, &change.set);
        conflict = fieldset_minus(arena, &conflict, &allowed);
        if (!request->force && !fieldset_empty(&conflict)) {
            struct naming naming = {conflicts, manager_title(arena, manager)};
            fieldset_visit(arena, &conflict, name_conflict, &naming);
        }
    }
    if (conflicts->list.len)
        return false;
    for (size_t i = 0; i < managers->list.len; i++) {
        struct apply_manager *manager = &managers->list.items[i];
        if (manager != apply_managers_find(managers, &request->who))
            manager->set = fieldset_minus(arena, &manager->set, &lost);
    }
    return true;
}

/* --- apply ------------------------------------------------------------------------------------- */

static struct doc *clean_config(struct arena *arena, const struct doc *config)
{
    static const char *const names[] = {"managedFields",     "resourceVersion", "uid",
                                        "creationTimestamp", "generation",      "selfLink"};
    struct doc *object = doc_clone(arena, config);
    struct doc *metadata = doc_get(object, "metadata");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        doc_unset(metadata, names[i]);
    doc_unset(object, "status");
    return object;
}

static void drop_nulls(struct doc *node)
{
    size_t kept = 0;
    for (size_t i = 0; node->kind == DOC_ARRAY && i < node->array.len; i++)
        drop_nulls(node->array.items[i]);
    if (node->kind != DOC_OBJECT)
        return;
    for (size_t i = 0; i < node->object.len; i++) {
        if (node->object.members[i].value->kind == DOC_NULL)
            continue;
        drop_nulls(node->object.members[i].value);
        node->object.members[kept++] = node->object.members[i];
    }
    node->object.len = kept;
}

int apply_merge(struct arena *arena, const struct apply_request *request, struct apply_managers *managers,
                struct doc **ret_object, struct apply_conflicts *ret_conflicts, struct error *error)
{
    struct merging merging = {arena, error};
    struct doc *config = clean_config(arena, request->config), *object = NULL;
    drop_nulls(config);
    struct doc *live = request->live ? doc_clone(arena, request->live) : NULL;
    int rc = merge(&merging, request->schema, NULL, live, config, &object);
    if (rc < 0)
        return rc;
    struct fieldset own = strip(arena, fieldset_of(arena, request->schema, config));
    if (request->live && managers->list.len == 0) {
        struct apply_manager before = {.name = STR("before-first-apply"),
                                       .api_version = request->who.api_version,
                                       .time = request->who.time};
        before.set = strip(arena, fieldset_of(arena, request->schema, request->live));
        vec_push(&managers->list, before);
    }
    struct apply_manager *manager = apply_managers_find(managers, &request->who);
    struct fieldset last = manager ? manager->set : (struct fieldset){0}, keep = own;
    for (size_t i = 0; i < managers->list.len; i++)
        if (&managers->list.items[i] != manager)
            keep = fieldset_union(arena, &keep, &managers->list.items[i].set);
    prune(arena, request->schema, NULL, object, &last, &keep, "apiVersion,kind,metadata");
    if (request->live && !settle_conflicts(arena, request, managers, object, ret_conflicts))
        return error_set(error, ERROR_CONFLICT, "%zu fields are managed by others", ret_conflicts->list.len);
    if (!manager) {
        vec_push(&managers->list, request->who);
    } else if (!fieldset_equal(&manager->set, &own)) {
        manager->time = request->who.time;
        manager->api_version = request->who.api_version;
    }
    apply_managers_find(managers, &request->who)->set = own;
    apply_managers_drop_empty(managers);
    *ret_object = object;
    return 0;
}
