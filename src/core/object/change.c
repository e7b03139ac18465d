/* change.c - creates, replaces and deletes stored objects. */
#include "core/object/internal.h"

#include "core/words/limits.h"

/* --- finalizers ----------------------------------------------------------------------------------------- */

bool object_has_finalizer(const struct doc *document, const char *name)
{
    const struct doc *list = doc_path(document, "metadata", "finalizers", NULL);
    for (size_t i = 0; i < doc_len(list); i++)
        if (str_is(doc_str(doc_at(list, i), STR("")), name))
            return true;
    return false;
}

void finalizer_add(struct arena *arena, struct doc *document, const char *name)
{
    struct doc *metadata = doc_need_object(arena, document, "metadata");
    if (object_has_finalizer(document, name))
        return;
    struct doc *list = doc_get(metadata, "finalizers");
    if (!list || list->kind != DOC_ARRAY) {
        list = doc_new(arena, DOC_ARRAY);
        doc_set(arena, metadata, STR("finalizers"), list);
    }
    doc_push(arena, list, doc_new_str(arena, str_from(name)));
}

void finalizer_drop(struct doc *document, const char *name)
{
    struct doc *list = doc_path(document, "metadata", "finalizers", NULL);
    if (!list || list->kind != DOC_ARRAY)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < list->array.len; i++)
        if (!str_is(doc_str(list->array.items[i], STR("")), name))
            list->array.items[kept++] = list->array.items[i];
    list->array.len = kept;
    if (kept == 0)
        doc_unset(doc_get(document, "metadata"), "finalizers");
}

/* Returns whether the object has finalizers. A Namespace also has the list spec.finalizers. */
static bool is_held(const struct object *object)
{
    return doc_len(doc_path(object->document, "metadata", "finalizers", NULL)) > 0 ||
           (object->kind == OBJECT_NAMESPACE &&
            doc_len(doc_path(object->document, "spec", "finalizers", NULL)) > 0);
}

/* --- changes -------------------------------------------------------------------------------------------- */

/* Puts a new object into the store. */
static void enter(struct step *step, struct object *object)
{
    object->created_ns = step->now_ns;
    object->generation = object_kind_info(object->kind)->counts_generations ? 1 : 0;
    object_insert(step->objects, object);
    objects_doubt(step->objects, object->uid, object->document);
    step_changed(step, CHANGE_ADDED, ref_object(object));
}

struct object *object_create(struct step *step, enum object_kind kind, struct arena *arena,
                             struct doc *document)
{
    struct object *object = object_make(step->objects, kind, step_uid(step), document);
    vec_push(&step->objects->dead_arenas, *arena); /* the caller may still read its document */
    *arena = (struct arena){0};
    enter(step, object);
    return object;
}

void object_remove(struct step *step, struct object *object)
{
    struct object_store *store = step->objects;
    CHECK(!object->removed);
    object_take_out(store, object);
    objects_waits_no_more(store, object->uid);
    object->removed = true;
    vec_push(&store->dead, object);
    objects_owner_gone(store, object->uid);
    step_changed(step, CHANGE_DELETED, ref_object(object));
    CHECK(!object_find_uid(store, object->uid));
}

/* Compares everything except metadata and status: the content whose changes a generation counts. */
static bool same_content(const struct doc *a, const struct doc *b)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *left = doc_clone(&arena, a), *right = doc_clone(&arena, b);
    doc_unset(left, "metadata");
    doc_unset(right, "metadata");
    doc_unset(left, "status");
    doc_unset(right, "status");
    return spec_equal(left, right);
}

void object_replace(struct step *step, struct object *object, struct arena *arena, struct doc *document)
{
    CHECK(!object->removed && document != object->document);
    const struct doc *status = doc_get(object->document, "status");
    if (status)
        doc_set(arena, document, STR("status"), doc_clone(arena, status));
    if (spec_equal(object->document, document))
        return;
    if (object->generation && !same_content(object->document, document))
        object->generation++;
    owners_change(step->objects, object->uid, object->document, document);
    object_set_document(step->objects, object, document);
    vec_push(&step->objects->dead_arenas, *arena);
    *arena = (struct arena){0};
    step->objects->kinds[object->kind].version++;
    step->schedule |= object->kind == OBJECT_NAMESPACE; /* its labels may forbid or allow Pods */
    if (object->deleted_ns && !is_held(object)) {
        object_remove(step, object);
        return;
    }
    objects_doubt(step->objects, object->uid, document);
    step_changed(step, CHANGE_MODIFIED, ref_object(object));
}

void object_release(struct step *step, const struct object *held, const char *finalizer)
{
    struct object *object = u64_map_get(&step->objects->by_uid, held->uid);
    struct arena arena ARENA_CLEANUP = {0};
    CHECK(object == held && !object->removed);
    struct doc *document = doc_clone(&arena, object->document);
    finalizer_drop(document, finalizer);
    object_replace(step, object, &arena, document);
}

void object_set_status(struct step *step, const struct object *shown, const struct doc *status)
{
    struct object *object = u64_map_get(&step->objects->by_uid, shown->uid);
    CHECK(object == shown && !object->removed);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, object->document);
    doc_set(&arena, document, STR("status"), doc_clone(&arena, status));
    object_set_document(step->objects, object, document);
    step->objects->kinds[object->kind].version++;
    if (object->changed_seq !=
        step->seq) /* otherwise this step notifies watchers already, and they see the final state */
        step_changed(step, CHANGE_MODIFIED, ref_object(object));
}

void object_touch(struct step *step, const struct object *object)
{
    if (!object->removed)
        step_changed(step, CHANGE_MODIFIED, ref_object(object));
}

static void set_finalizer(struct step *step, struct object *object, const char *name)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, object->document);
    finalizer_add(&arena, document, name);
    owners_change(step->objects, object->uid, object->document, document);
    object_set_document(step->objects, object, document);
}

void object_delete(struct step *step, const struct object *deleted, enum propagation propagation)
{
    struct object *object = u64_map_get(&step->objects->by_uid, deleted->uid);
    if (!object)
        return; /* it was removed earlier in this step */
    CHECK(object == deleted && !object->removed);
    bool first = object->deleted_ns == 0;
    if (object->kind == OBJECT_NAMESPACE) /* its content is always deleted first */
        propagation = PROPAGATION_BACKGROUND;
    if (propagation == PROPAGATION_FOREGROUND && first)
        set_finalizer(step, object, FINALIZER_FOREGROUND);
    else if (propagation == PROPAGATION_ORPHAN && first)
        set_finalizer(step, object, FINALIZER_ORPHAN);
    if (!is_held(object)) {
        object->deleted_ns = step->now_ns;
        object_remove(step, object);
        return;
    }
    if (!first)
        return;
    object->deleted_ns = step->now_ns;
    step->objects->kinds[object->kind].version++;
    objects_wait(step->objects, object->uid);
    step_changed(step, CHANGE_MODIFIED, ref_object(object));
}

/* --- the control plane's own ---------------------------------------------------------------------------- */

static bool is_full(const struct step *step, enum object_kind kind, struct str namespace_)
{
    const struct resource *info = object_kind_info(kind);
    if (object_count(step->objects, kind) < info->per_namespace_max)
        return false; /* all namespaces together have fewer than one may have */
    return object_count_in(step->objects, kind, info->namespaced ? namespace_ : STR("")) >=
           info->per_namespace_max;
}

static struct str namespace_of(const struct doc *document)
{
    return doc_str(doc_path(document, "metadata", "namespace", NULL), STR("default"));
}

const struct object *object_put_checked(struct step *step, enum object_kind kind, struct arena *arena,
                                        struct doc *document)
{
    CHECK(object_kind_info(kind));
    if (is_full(step, kind, namespace_of(document)))
        return NULL;
    struct object *object = object_adopt(kind, step_uid(step), arena, document);
    enter(step, object);
    return object;
}

int object_put(struct step *step, enum object_kind kind, const struct doc *given,
               const struct object **ret_object, struct error *error)
{
    const struct resource *info = object_kind_info(kind);
    CHECK(info);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, given);
    struct field_errors errors = {.arena = &arena};
    object_convert(&arena, kind, document);
    stored_default(&arena, document);
    stored_check(document, &errors);
    int rc = 0;
    if (errors.list.len) {
        struct field_error *first = &errors.list.items[0];
        rc = error_set(error, ERROR_INVALID, "%s: " STR_FORMAT ": " STR_FORMAT, info->kind,
                       STR_ARG(first->path), STR_ARG(first->message));
    }
    field_errors_done(&errors);
    if (rc < 0)
        return rc;
    struct str ns = namespace_of(document);
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    struct object *object = (struct object *)object_find(step->objects, kind, ns, name);
    if (!object && is_full(step, kind, ns))
        return error_set(error, ERROR_LIMIT, "there are %u %s already", info->per_namespace_max,
                         info->plural);
    if (object)
        object_replace(step, object, &arena, document);
    else
        object = object_create(step, kind, &arena, document);
    if (ret_object)
        *ret_object = object;
    return 0;
}
