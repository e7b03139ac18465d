/* object.c - API writes to stored objects. */
#include "doc/json.h"
#include "core/admit/admit.h"
#include "core/words/limits.h"
#include "core/object/life.h"
#include "core/write/write.h"
#include "core/react/react.h"

/* --- namespaces ----------------------------------------------------------------------------------------- */

bool write_namespace_open(const struct writing *writing, struct str ns)
{
    const struct object *object = object_find(writing->core->objects, OBJECT_NAMESPACE, STR(""), ns);
    if (object && object->deleted_ns)
        return write_refuse(
            writing, 403, "Forbidden", NULL,
            "%s \"" STR_FORMAT "\" is forbidden: unable to create new content in namespace " STR_FORMAT
            " because it is being terminated",
            object_kind_title(writing->write->object), STR_ARG(writing->write->name), STR_ARG(ns));
    if (!object && !namespace_is_permanent(ns))
        return write_refuse(writing, 404, "NotFound", NULL, "namespaces \"" STR_FORMAT "\" not found",
                            STR_ARG(ns));
    return true;
}

bool write_finalizers_hold(const struct writing *writing, int64_t deleted_ns, const struct doc *was,
                           const struct doc *is)
{
    const struct doc *list = doc_path(is, "metadata", "finalizers", NULL);
    if (!deleted_ns)
        return true;
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str name = doc_str(doc_at(list, i), STR(""));
        char text[NAME_MAX_BYTES + 1];
        if (name.len > NAME_MAX_BYTES)
            continue; /* too long for an existing name, which the check of names reports */
        mem_copy(text, name.data, name.len);
        text[name.len] = 0;
        if (object_has_finalizer(was, text))
            continue;
        struct field_errors *errors = write_new_errors(writing);
        field_error_add(errors, STR("metadata.finalizers"), "FieldValueForbidden", doc_at(list, i),
                        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
                        "finalizers []string{\"%s\"}",
                        text);
        return write_refuse_invalid(writing, errors,
                                    doc_str(doc_path(is, "metadata", "name", NULL), STR("")));
    }
    return true;
}

/* --- one object ----------------------------------------------------------------------------------------- */

/* Returns the kind under which the store keeps the object: OBJECT_USER_EVENT for a client's Event, because
 * OBJECT_EVENT is for the control plane's notes (note.h). */
static enum object_kind kept_kind(const struct writing *writing)
{
    return writing->write->object == OBJECT_EVENT ? OBJECT_USER_EVENT : writing->write->object;
}

static struct object *find(const struct writing *writing)
{
    return (struct object *)object_find(writing->core->objects, kept_kind(writing),
                                        writing->write->namespace_, writing->write->name);
}

static bool is_of_kind(const struct writing *writing, const struct doc *document)
{
    struct str version = doc_str(doc_get(document, "apiVersion"), STR(""));
    enum object_kind kind = object_kind_of(version, doc_str(doc_get(document, "kind"), STR("")));
    return kind == writing->write->object || kind == kept_kind(writing);
}

/* Reads, converts, defaults and checks the document. Events are not converted yet, because their two forms
 * have different rules. Returns false if the write is refused. */
static bool read_stored(const struct writing *writing, struct arena *arena, struct doc **ret_document)
{
    const struct resource *info = object_kind_info(kept_kind(writing));
    struct doc *document;
    if (!write_parse(writing, arena, info->bytes_max, &document))
        return false;
    if (!is_of_kind(writing, document))
        return write_refuse_kind(writing, info->kind, document);
    if (info->named != OBJECT_USER_EVENT)
        object_convert(arena, info->named, document);
    write_set_name(writing, arena, document, info->namespaced);
    stored_default(arena, document);
    struct field_errors *errors = write_new_errors(writing);
    stored_check(document, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors,
                                    doc_str(doc_path(document, "metadata", "name", NULL), STR("")));
    field_errors_done(errors);
    *ret_document = document;
    return true;
}

struct prepared_write *core_prepare_write(const struct write_event *write)
{
    const struct resource *row = resource_row(write->object);
    bool whole = write->verb == WRITE_CREATE || write->verb == WRITE_REPLACE;
    if (!whole || !row || row->rules != RULES_STORED || write->object == OBJECT_EVENT)
        return NULL;
    /* For these kinds the check adds a finalizer that depends on the state: it would change the document that
     * the step applies later. */
    if (admit_keeps(write->object))
        return NULL;
    struct prepared_write *prepared = mem_alloc(sizeof(*prepared));
    struct effects effects = {0};
    struct step step = {.effects = &effects};
    struct writing writing = {.step = &step, .write = write, .reply = &prepared->arena, .dry = true};
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    prepared->stored = true;
    prepared->draw = write->draw;
    if (read_stored(&writing, &arena, &document))
        prepared->document = object_kept_form(&prepared->arena, write->object, document);
    else
        prepared->refusal = effects.list.items[0];
    vec_done(&effects.list);
    return prepared;
}

/* A document to be written, and its arena: `own`, or that of a prepared write. */
struct draft {
    struct arena own, *arena;
    struct doc *document;
};

static void draft_done(struct draft *draft)
{
    arena_done(&draft->own);
}

#define DRAFT_CLEANUP __attribute__((cleanup(draft_done)))

/* Uses the prepared document, or else reads the body. Returns false if the write is refused. */
static bool draft(const struct writing *writing, struct draft *ret_draft)
{
    struct prepared_write *prepared = writing->write->prepared;
    if (!prepared || prepared->draw != writing->write->draw) {
        ret_draft->arena = &ret_draft->own;
        return read_stored(writing, &ret_draft->own, &ret_draft->document);
    }
    CHECK(prepared->stored && (prepared->document || writing->dry));
    ret_draft->arena = &prepared->arena;
    ret_draft->document = prepared->document;
    if (!prepared->document)
        effect_add(writing->step->effects, EFFECT_REPLY)->reply = prepared->refusal.reply;
    return prepared->document != NULL;
}

struct oldest {
    struct object *event;
};

static void note_oldest(void *context, const struct object *object)
{
    CHECK(object->kind == OBJECT_USER_EVENT);
    struct oldest *oldest = context;
    const struct object *before = oldest->event;
    if (!before || object->changed_seq < before->changed_seq ||
        (object->changed_seq == before->changed_seq && object->uid < before->uid))
        oldest->event = (struct object *)object;
}

/* Removes the oldest Event of the namespace if that is full, else of the cluster if that is full. */
static void make_room(const struct writing *writing, struct str ns)
{
    CHECK(kept_kind(writing) == OBJECT_USER_EVENT);
    const struct object_store *store = writing->core->objects;
    struct oldest oldest = {0};
    if (object_count_in(store, OBJECT_USER_EVENT, ns) >= USER_EVENTS_PER_NAMESPACE_MAX)
        object_visit(store, OBJECT_USER_EVENT, ns, note_oldest, &oldest);
    else if (object_count(store, OBJECT_USER_EVENT) >= USER_EVENTS_MAX)
        object_visit(store, OBJECT_USER_EVENT, STR(""), note_oldest, &oldest);
    if (oldest.event)
        object_remove(writing->step, oldest.event);
}

/* Checks the limits of the kind and namespace for a new object. */
static bool has_room(const struct writing *writing, const struct resource *info, struct str ns,
                     struct str name)
{
    CHECK(info->per_namespace_max > 0 || info->named == OBJECT_USER_EVENT);
    if (info->named == OBJECT_USER_EVENT)
        return true; /* make_room removes an older Event instead */
    if (object_count_in(writing->core->objects, info->named, info->namespaced ? ns : STR("")) >=
        info->per_namespace_max)
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "%s \"" STR_FORMAT "\" is forbidden: there are %u %s already (the limit)",
                            object_kind_title(info->named), STR_ARG(name), info->per_namespace_max,
                            info->plural);
    return !info->namespaced || write_quota_allows(writing, ns, NULL, NULL);
}

static bool create(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_CREATE);
    const struct resource *info = object_kind_info(kept_kind(writing));
    const struct object_store *store = writing->core->objects;
    struct draft made DRAFT_CLEANUP = {0};
    if (!draft(writing, &made))
        return false;
    struct doc *document = made.document;
    struct str ns = doc_str(doc_path(document, "metadata", "namespace", NULL), STR(""));
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (admit_keeps(info->named))
        finalizer_add(made.arena, document, FINALIZER_IN_USE);
    if (object_find(store, info->named, ns, name))
        return write_refuse_taken(writing, object_kind_title(info->named), name);
    if (info->namespaced && !write_namespace_open(writing, ns))
        return false;
    if (!has_room(writing, info, ns, name) ||
        !write_budget_allows(writing, info->namespaced ? ns : STR(""), 0, document))
        return false;
    if (writing->dry)
        return true;
    if (info->namespaced)
        namespace_need(writing->step, ns);
    if (info->named == OBJECT_USER_EVENT) {
        make_room(writing, ns);
        object_convert(made.arena, info->named, document);
    }
    struct object *object = object_create(writing->step, info->named, made.arena, document);
    return write_accept(writing, 201, ref_object(object));
}

static bool check_update(const struct writing *writing, const struct object *object, struct doc *document)
{
    struct field_errors *errors = write_new_errors(writing);
    struct str version = doc_str(doc_get(document, "apiVersion"), STR(""));
    stored_check_update(object_shown(writing->reply, object, version), document, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, object->name);
    field_errors_done(errors);
    return write_finalizers_hold(writing, object->deleted_ns, object->document, document);
}

static bool replace(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_REPLACE);
    struct object *object = find(writing);
    if (!object)
        return write_refuse_missing(writing);
    struct draft made DRAFT_CLEANUP = {0};
    if (!write_still_holds(writing, ref_object(object)) || !draft(writing, &made))
        return false;
    struct doc *document = made.document;
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (!str_equal(name, object->name))
        return write_refuse(writing, 400, "BadRequest", NULL,
                            "the name of the object (" STR_FORMAT
                            ") does not match the name on the URL (" STR_FORMAT ")",
                            STR_ARG(name), STR_ARG(object->name));
    if (admit_keeps(object->kind) && !object->deleted_ns)
        finalizer_add(made.arena, document, FINALIZER_IN_USE);
    if (!check_update(writing, object, document) ||
        !write_budget_allows(writing, object->namespace_, object->bytes, document))
        return false;
    if (writing->dry)
        return true;
    object_convert(made.arena, object->kind, document);
    object_replace(writing->step, object, made.arena, document);
    return write_accept(writing, 200, ref_object(object));
}

/* Sets the status of an AdmissionCheck, in which its controller reports whether it is active. */
static bool set_status(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_STATUS);
    const struct resource *info = object_kind_info(kept_kind(writing));
    const struct object *object = find(writing);
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *document;
    if (!object)
        return write_refuse_missing(writing);
    if (object->kind != OBJECT_ADMISSION_CHECK || !admission_check_served(object))
        return write_refuse(writing, 403, "Forbidden", NULL, "the status of %s is the control plane's own",
                            info->plural);
    if (!write_still_holds(writing, ref_object(object)))
        return false;
    if (writing->write->body.len > info->bytes_max ||
        json_parse(&arena, writing->write->body, &document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    struct field_errors *errors = write_new_errors(writing);
    const struct doc *status = admission_check_status(&arena, document, errors);
    if (!status)
        return write_refuse_invalid(writing, errors, object->name);
    if (writing->dry)
        return true;
    if (!spec_equal(status, doc_get(object->document, "status")))
        object_set_status(writing->step, object, status);
    return write_accept(writing, 200, ref_object(object));
}

static bool delete (const struct writing *writing)
{
    struct object *object = find(writing);
    if (!object)
        return write_refuse_missing(writing);
    if (!write_still_holds(writing, ref_object(object)))
        return false;
    if (object->kind == OBJECT_NAMESPACE && namespace_is_permanent(object->name))
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "namespaces \"" STR_FORMAT "\" is forbidden: this namespace may not be deleted",
                            STR_ARG(object->name));
    if (writing->dry)
        return true;
    object_delete(writing->step, object, writing->write->propagation);
    return write_accept(writing, 200, ref_object(object));
}

bool write_object(const struct writing *writing)
{
    CHECK(object_kind_info(kept_kind(writing)));
    switch (writing->write->verb) {
    case WRITE_CREATE:
        return create(writing);
    case WRITE_REPLACE:
        return replace(writing);
    case WRITE_DELETE:
        return delete (writing);
    case WRITE_STATUS:
        return set_status(writing);
    case WRITE_METADATA:
    case WRITE_DIAGNOSE:
    case WRITE_INJECT:
        break;
    }
    return write_refuse_verb(writing);
}
