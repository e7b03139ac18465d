/* updates.c - podSetUpdates: the changes that answers to AdmissionChecks make to the Pods of a Workload. As
 * in Kueue, they are merged into the templates after the flavours' terms. A key with two different values is
 * a conflict, and the Workload can never start (kubernetes-sigs/kueue, pkg/podset).
 */
#include "core/admit/internal.h"

static const struct doc *update_of(const struct workload_check *check, struct str podset)
{
    for (size_t u = 0; u < doc_len(check->updates); u++) {
        const struct doc *update = doc_at(check->updates, u);
        if (str_equal(doc_str(doc_get(update, "name"), STR("")), podset))
            return update;
    }
    return NULL;
}

/* --- validation ------------------------------------------------------------------------------- */

static void check_map(const struct doc *map, const char *path, struct field_errors *errors, bool labels)
{
    for (size_t i = 0; map && map->kind == DOC_OBJECT && i < map->object.len; i++) {
        const struct doc_member *member = &map->object.members[i];
        if (!name_is_label_key(member->key))
            field_error_add(errors, str_from(path), "FieldValueInvalid", member->value,
                            "Invalid value: \"" STR_FORMAT "\": is not a qualified name",
                            STR_ARG(member->key));
        else if (member->value->kind != DOC_STRING ||
                 (labels && !name_is_label_value(doc_str(member->value, STR("")))))
            field_error_add(errors, str_from(path), "FieldValueInvalid", member->value,
                            "Invalid value: of \"" STR_FORMAT "\": is not a valid value",
                            STR_ARG(member->key));
    }
    if (map && map->kind != DOC_OBJECT && map->kind != DOC_NULL)
        field_error_add(errors, str_from(path), "FieldValueTypeInvalid", map,
                        "Invalid value: must be an object");
}

static bool has_podset(const struct workload *workload, struct str name)
{
    const struct workload *const *members;
    size_t count = workload_members(workload, &members);
    bool known = false;
    for (size_t m = 0; m < count; m++)
        known |= str_equal(members[m]->podsets[0].name, name);
    for (size_t p = 0; !count && p < workload->jobset->spec.rjob_count; p++)
        known |= str_equal(workload->podsets[p].name, name);
    return known;
}

/* Returns the number of PodSets that the API shows; those of a group are its roles. */
static size_t shown_podsets(const struct workload *workload)
{
    const struct workload *const *members;
    size_t count = workload_members(workload, &members), roles = 0;
    for (size_t m = 0; m < count; m++) {
        bool again = !workload_counts(members[m]);
        for (size_t b = 0; !again && b < m; b++)
            again = workload_counts(members[b]) &&
                    str_equal(members[b]->podsets[0].name, members[m]->podsets[0].name);
        roles += !again;
    }
    CHECK(roles <= count);
    return count ? roles : workload->jobset->spec.rjob_count;
}

void updates_validate(const struct workload *workload, const struct doc *updates, struct str path,
                      struct field_errors *errors)
{
    static const char *const maps[] = {"labels", "annotations", "nodeSelector"};
    size_t count = doc_len(updates), podsets = shown_podsets(workload);
    struct str here = arena_printf(errors->arena, STR_FORMAT ".podSetUpdates", STR_ARG(path));
    if (count && count != podsets)
        field_error_add(errors, here, "FieldValueInvalid", updates,
                        "Invalid value: must have the same number of podSetUpdates as the podSets");
    for (size_t u = 0; u < count; u++) {
        const struct doc *update = doc_at(updates, u);
        struct str name = doc_str(doc_get(update, "name"), STR(""));
        if (!has_podset(workload, name))
            field_error_add(errors, arena_printf(errors->arena, STR_FORMAT "[%zu].name", STR_ARG(here), u),
                            "FieldValueNotSupported", doc_get(update, "name"),
                            "Unsupported value: \"" STR_FORMAT "\": is not a podSet of the Workload",
                            STR_ARG(name));
        for (size_t m = 0; m < sizeof(maps) / sizeof(*maps); m++)
            check_map(doc_get(update, maps[m]),
                      arena_printf(errors->arena, STR_FORMAT "[%zu].%s", STR_ARG(here), u, maps[m]).data,
                      errors, m != 1);
    }
}

/* --- merging ---------------------------------------------------------------------------------- */

static void add_map(struct labels *labels, const struct doc *map, struct arena *arena)
{
    size_t count = map && map->kind == DOC_OBJECT ? map->object.len : 0;
    struct labels all = {ARENA_ARRAY(arena, struct label, labels->len + count), labels->len};
    mem_copy(all.items, labels->items, labels->len * sizeof(*all.items));
    for (size_t i = 0; i < count; i++) {
        const struct doc_member *member = &map->object.members[i];
        if (!labels_get(&all, member->key, (struct str){0}).data)
            all.items[all.len++] = (struct label){member->key, doc_str(member->value, STR(""))};
    }
    *labels = all;
}

static void add_tolerations(struct rjob_terms *terms, const struct doc *list, struct arena *arena)
{
    size_t count = terms->toleration_count;
    struct toleration *all = ARENA_ARRAY(arena, struct toleration, count + doc_len(list));
    mem_copy(all, terms->tolerations, count * sizeof(*all));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        all[count++] = (struct toleration){
            doc_str(doc_get(item, "key"), STR("")), doc_str(doc_get(item, "operator"), STR("Equal")),
            doc_str(doc_get(item, "value"), STR("")), doc_str(doc_get(item, "effect"), STR(""))};
    }
    terms->tolerations = all;
    terms->toleration_count = count;
}

void updates_add_terms(const struct workload *workload, size_t podset, struct rjob_terms *terms,
                       struct arena *arena)
{
    CHECK(podset < workload->jobset->spec.rjob_count);
    for (size_t i = 0; i < workload->checks.len; i++) {
        const struct doc *update = update_of(&workload->checks.items[i], workload->podsets[podset].name);
        add_map(&terms->node_labels, doc_get(update, "nodeSelector"), arena);
        add_map(&terms->labels, doc_get(update, "labels"), arena);
        add_map(&terms->annotations, doc_get(update, "annotations"), arena);
        add_tolerations(terms, doc_get(update, "tolerations"), arena);
    }
}

/* --- conflicts -------------------------------------------------------------------------------- */

static bool contradicts(const struct labels *said, const struct doc *map, const char *what, struct buf *why)
{
    for (size_t i = 0; map && map->kind == DOC_OBJECT && i < map->object.len; i++) {
        const struct doc_member *member = &map->object.members[i];
        struct str value = doc_str(member->value, STR(""));
        struct str was = labels_get(said, member->key, (struct str){0});
        if (!was.data || str_equal(was, value))
            continue;
        buf_printf(why,
                   "invalid podset updates: conflict for %s: key=" STR_FORMAT ", value1=" STR_FORMAT
                   ", value2=" STR_FORMAT,
                   what, STR_ARG(member->key), STR_ARG(was), STR_ARG(value));
        return true;
    }
    return false;
}

static bool podset_conflicts(const struct workload *workload, size_t podset, const struct labels *flavor,
                             struct buf *why)
{
    CHECK(podset < workload->jobset->spec.rjob_count);
    struct arena arena ARENA_CLEANUP = {0};
    const struct pod_spec *pod = &workload->jobset->spec.rjobs[podset].job.pod;
    struct labels labels = pod->labels, notes = pod->annotations, nodes = pod->node_selector;
    struct labels given = {ARENA_ARRAY(&arena, struct label, flavor->len + nodes.len), 0};
    for (size_t i = 0; i < flavor->len; i++)
        given.items[given.len++] = flavor->items[i];
    for (size_t i = 0; i < nodes.len; i++)
        given.items[given.len++] = nodes.items[i];
    for (size_t i = 0; i < workload->checks.len; i++) {
        const struct doc *update = update_of(&workload->checks.items[i], workload->podsets[podset].name);
        const struct doc *own = doc_get(update, "labels"), *own_notes = doc_get(update, "annotations");
        if (contradicts(&labels, own, "labels", why) || contradicts(&notes, own_notes, "annotations", why) ||
            contradicts(&given, doc_get(update, "nodeSelector"), "nodeSelector", why))
            return true;
        add_map(&labels, own, &arena);
        add_map(&notes, own_notes, &arena);
        add_map(&given, doc_get(update, "nodeSelector"), &arena);
    }
    return false;
}

bool updates_conflict(const struct admit *admit, const struct workload *workload, struct buf *why)
{
    struct arena arena ARENA_CLEANUP = {0};
    bool any = false;
    for (size_t p = 0; p < podset_count(workload); p++)
        for (size_t c = 0; c < podset_owner(workload, p)->checks.len; c++)
            any |= podset_owner(workload, p)->checks.items[c].updates != NULL;
    if (!any)
        return false;
    struct rjob_terms *terms = flavor_terms(admit, workload, &arena);
    for (size_t p = 0; terms && p < podset_count(workload); p++)
        if (podset_conflicts(podset_owner(workload, p), workload->gang.len ? 0 : p, &terms[p].node_labels,
                             why))
            return true;
    return false;
}
