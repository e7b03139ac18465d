/* write.c - the parts of API writes that all kinds share: refusals, preconditions and documents. route.c
 * calls the file of each kind.
 *
 * Status codes and reasons are Kubernetes' (API conventions, "HTTP Status codes"; metav1.StatusReason).
 */
#include "core/write/write.h"

#include "doc/json.h"
#include "core/words/limits.h"
#include "core/object/life.h"

bool write_refuse(const struct writing *writing, int code, const char *reason,
                  const struct field_errors *causes, const char *format, ...)
{
    CHECK(code >= 400 && code < 600 && reason && reason[0]);
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    struct effect *effect = effect_add(writing->step->effects, EFFECT_REPLY);
    effect->reply.code = code;
    effect->reply.reason = reason;
    effect->reply.message = arena_str(writing->reply, buf_str(&text));
    effect->reply.causes = causes;
    return false;
}

bool write_accept(const struct writing *writing, int code, struct object_ref object)
{
    CHECK(code >= 200 && code < 300 && object.any && !writing->dry);
    struct effect *effect = effect_add(writing->step->effects, EFFECT_REPLY);
    effect->reply.code = code;
    effect->reply.object = object;
    return true;
}

bool write_refuse_missing(const struct writing *writing)
{
    return write_refuse(writing, 404, "NotFound", NULL, "%s \"" STR_FORMAT "\" not found",
                        object_kind_title(writing->write->object), STR_ARG(writing->write->name));
}

bool write_refuse_verb(const struct writing *writing)
{
    return write_refuse(writing, 405, "MethodNotAllowed", NULL, "%s cannot be written that way",
                        object_kind_title(writing->write->object));
}

bool write_still_holds(const struct writing *writing, struct object_ref ref)
{
    CHECK(ref.any);
    struct object_name name = object_name(ref);
    char uid[UID_TEXT_MAX];
    uid_text(name.uid, uid);
    if (writing->write->if_version && writing->write->if_version != name.version)
        return write_refuse(
            writing, 409, "Conflict", NULL,
            "Operation cannot be fulfilled on %s \"" STR_FORMAT
            "\": the object has been modified; please apply your changes to the latest version and try again",
            object_kind_title(name.kind), STR_ARG(name.name));
    if (writing->write->uid_text.len && !str_is(writing->write->uid_text, uid))
        return write_refuse(writing, 409, "Conflict", NULL,
                            "Precondition failed: UID in precondition: " STR_FORMAT
                            ", UID in object meta: %s",
                            STR_ARG(writing->write->uid_text), uid);
    return true;
}

bool write_refuse_taken(const struct writing *writing, const char *title, struct str name)
{
    CHECK(title && title[0]);
    return write_refuse(writing, 409, "AlreadyExists", NULL, "%s \"" STR_FORMAT "\" already exists", title,
                        STR_ARG(name));
}

bool write_refuse_kind(const struct writing *writing, const char *expected, const struct doc *document)
{
    CHECK(expected && expected[0]);
    struct str kind = doc_str(doc_get(document, "kind"), STR("")),
               version = doc_str(doc_get(document, "apiVersion"), STR(""));
    return write_refuse(writing, 400, "BadRequest", NULL,
                        "expected kind %s, got kind \"" STR_FORMAT "\" of apiVersion \"" STR_FORMAT "\"",
                        expected, STR_ARG(kind), STR_ARG(version));
}

/* --- documents ------------------------------------------------------------------------------------------ */

/* Removes the fields that only the server sets from a user's document. */
static void strip_server_fields(struct doc *document)
{
    static const char *const fields[] = {"uid",
                                         "resourceVersion",
                                         "generation",
                                         "creationTimestamp",
                                         "selfLink",
                                         "deletionTimestamp",
                                         "deletionGracePeriodSeconds"};
    struct doc *metadata = doc_get(document, "metadata");
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        doc_unset(metadata, fields[i]);
    doc_unset(document, "status");
}

struct str write_namespace(const struct writing *writing)
{
    return writing->write->namespace_.len ? writing->write->namespace_ : STR("default");
}

void write_set_name(const struct writing *writing, struct arena *arena, struct doc *document, bool namespaced)
{
    struct doc *metadata = doc_need_object(arena, document, "metadata");
    if (!metadata)
        return; /* metadata is not an object: the check of types reports it */
    if (namespaced)
        doc_set(arena, metadata, STR("namespace"), doc_new_str(arena, write_namespace(writing)));
    else
        doc_unset(metadata, "namespace");
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    struct str prefix = doc_str(doc_get(metadata, "generateName"), STR(""));
    if (!name.len && prefix.len)
        doc_set(arena, metadata, STR("name"),
                doc_new_str(arena, generated_name(arena, prefix, writing->write->draw)));
}

bool write_parse(const struct writing *writing, struct arena *arena, size_t bytes_max,
                 struct doc **ret_document)
{
    CHECK(bytes_max > 0);
    struct error error = {0};
    struct doc *document;
    if (writing->write->body.len > bytes_max)
        return write_refuse(writing, 413, "RequestEntityTooLarge", NULL,
                            "the object is larger than %zu bytes", bytes_max);
    if (writing->dry && writing->write->document)
        document = doc_clone(arena, writing->write->document);
    else if (json_parse(arena, writing->write->body, &document, &error) < 0)
        document = NULL;
    if (!document || document->kind != DOC_OBJECT)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    strip_server_fields(document);
    *ret_document = document;
    return true;
}

struct field_errors *write_new_errors(const struct writing *writing)
{
    struct field_errors *errors = ARENA_NEW(writing->reply, struct field_errors);
    errors->arena = writing->reply;
    return errors;
}

/* Returns the kind's name in refusals: "JobSet.jobset.x-k8s.io", "Job.batch", "Pod". */
static struct str kind_name(struct arena *arena, enum object_kind kind)
{
    struct str title = str_from(object_kind_title(kind)), plural, group;
    const char *name = object_kind_name(kind);
    return str_cut(title, '.', &plural, &group) ? arena_printf(arena, "%s." STR_FORMAT, name, STR_ARG(group))
                                                : str_from(name);
}

static void move_into_reply(const struct writing *writing, struct field_errors *errors)
{
    size_t count = errors->list.len;
    struct field_error *items = ARENA_ARRAY(writing->reply, struct field_error, count);
    mem_copy(items, errors->list.items, count * sizeof(*items));
    field_errors_done(errors);
    errors->list.items = items;
    errors->list.len = errors->list.cap = count;
}

bool write_refuse_causes(const struct writing *writing, int code, const char *reason,
                         struct field_errors *causes, const char *message)
{
    CHECK(causes->list.len > 0);
    move_into_reply(writing, causes);
    return write_refuse(writing, code, reason, causes, "%s", message);
}

bool write_refuse_invalid(const struct writing *writing, struct field_errors *errors, struct str name)
{
    CHECK(errors->list.len > 0);
    move_into_reply(writing, errors);
    struct field_error *items = errors->list.items;
    return write_refuse(writing, 422, "Invalid", errors,
                        STR_FORMAT " \"" STR_FORMAT "\" is invalid: " STR_FORMAT ": " STR_FORMAT,
                        STR_ARG(kind_name(writing->reply, writing->write->object)), STR_ARG(name),
                        STR_ARG(items[0].path), STR_ARG(items[0].message));
}
