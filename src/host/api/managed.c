/* managed.c - metadata.managedFields of what is written: applies apply.h to the API's requests. */
#include <stdlib.h>

#include "base/units.h"
#include "kube/apply.h"
#include "host/api/write.h"

static struct apply_manager who_writes(struct api_request *request, bool applies)
{
    char now[32];
    time_format(request_now(request), now);
    return (struct apply_manager){
        .name = request->write->manager,
        .api_version = str_from(resource_api_version(request->resource)),
        .time = arena_str(&request->arena, str_from(now)),
        .subresource = request->subresource,
        .applies = applies,
    };
}

static struct doc *managed_of(const struct doc *object)
{
    return doc_path(object, "metadata", "managedFields", NULL);
}

/* Returns whether the value is [{}], which removes all owners, as in Kubernetes. */
static bool is_reset(const struct doc *given)
{
    return doc_len(given) == 1 && doc_len(doc_at(given, 0)) == 0;
}

static bool read_managers(struct api_request *request, const struct doc *fields,
                          struct apply_managers *managers)
{
    struct error error = {0};
    if (!fields || is_reset(fields))
        return true;
    if (apply_managers_read(&request->arena, fields, managers, &error) == 0)
        return true;
    answer_status(request, 422, "Invalid",
                  "%s \"" STR_FORMAT "\" is invalid: metadata.managedFields: Invalid value: %s",
                  request->resource->kind, STR_ARG(request->name), error.text);
    return false;
}

static void set_managed(struct api_request *request, struct doc *object, struct doc *managed)
{
    struct doc *metadata = doc_need_object(&request->arena, object, "metadata");
    doc_unset(metadata, "managedFields");
    if (managed)
        doc_set(&request->arena, metadata, STR("managedFields"), managed);
}

/* Returns whether two objects are equal. */
static bool same_content(const struct schema *schema, const struct doc *a, const struct doc *b)
{
    return schema ? schema_object_equal(schema, a, b) : doc_equal(a, b);
}

bool managed_update(struct api_request *request, struct doc *object, const struct doc *given, bool creating)
{
    struct arena *arena = &request->arena;
    struct apply_managers managers = {0};
    struct doc *live = NULL, *kept = NULL;
    const struct schema *schema = schema_of(object);
    if (request->write->managed) {
        set_managed(request, object, request->write->managed);
        return true;
    }
    if (!creating && !write_read_current(request, &live))
        return true; /* the core reports that the object does not exist */
    if (live) {
        kept = managed_of(live);
        body_strip(request->resource, live);
        set_managed(request, live, NULL);
    }
    set_managed(request, object, NULL);
    const struct doc *base = doc_len(given) ? given : kept;
    if (live && same_content(schema, live, object)) {
        set_managed(request, object, base && !is_reset(base) ? doc_clone(arena, base) : NULL);
        return true;
    }
    struct apply_manager who = who_writes(request, false);
    if (!read_managers(request, base, &managers))
        return false;
    apply_managers_expand(arena, &managers, live ? live : object);
    apply_update(arena, schema, live, object, &who, &managers);
    apply_managers_collapse(arena, &managers, object);
    set_managed(request, object, apply_managers_doc(arena, &managers));
    apply_managers_done(&managers);
    return true;
}

/* --- apply ------------------------------------------------------------------------------------- */

static int compare_conflicts(const void *a, const void *b)
{
    return str_compare(((const struct apply_conflict *)a)->manager,
                       ((const struct apply_conflict *)b)->manager);
}

/* Answers in the words of Kubernetes; kubectl appends its help. */
static void answer_conflicts(struct api_request *request, struct apply_conflicts *conflicts)
{
    struct field_errors causes = {.arena = &request->arena};
    struct buf text BUF_CLEANUP = {0};
    size_t count = conflicts->list.len;
    struct apply_conflict *items = conflicts->list.items;
    qsort(items, count, sizeof *items, compare_conflicts);
    for (size_t i = 0; i < count; i++)
        field_error_add(&causes, items[i].path, "FieldManagerConflict", NULL, "conflict with " STR_FORMAT,
                        STR_ARG(items[i].manager));
    if (count == 1)
        buf_printf(&text, "Apply failed with 1 conflict: conflict with " STR_FORMAT ": " STR_FORMAT,
                   STR_ARG(items[0].manager), STR_ARG(items[0].path));
    else
        buf_printf(&text, "Apply failed with %zu conflicts: ", count);
    for (size_t i = 0; count > 1 && i < count; i++) {
        if (i == 0 || !str_equal(items[i].manager, items[i - 1].manager))
            buf_printf(&text, "%sconflicts with " STR_FORMAT ":", i ? "\n" : "", STR_ARG(items[i].manager));
        buf_printf(&text, "\n- " STR_FORMAT, STR_ARG(items[i].path));
    }
    answer_status_causes(request, 409, "Conflict", buf_str(&text), &causes);
    field_errors_done(&causes);
}

/* Updates the annotation in which client-side apply keeps the last applied document, so that a client-side
 * apply can follow a `kubectl apply --server-side`. */
static void set_last_applied(struct api_request *request, const struct doc *live, struct doc *object)
{
    struct doc *config = doc_clone(&request->arena, request->write->patch);
    if (!str_is(request->write->manager, "kubectl") ||
        !doc_get(doc_path(live, "metadata", "annotations", NULL), APPLY_LAST_APPLIED))
        return;
    struct doc *said = doc_path(config, "metadata", "annotations", NULL);
    doc_unset(said, APPLY_LAST_APPLIED);
    doc_unset(doc_get(config, "metadata"), "managedFields");
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, config);
    buf_add_char(&text, '\n');
    struct doc *metadata = doc_need_object(&request->arena, object, "metadata");
    struct doc *annotations = doc_need_object(&request->arena, metadata, "annotations");
    if (annotations)
        doc_set(&request->arena, annotations, STR(APPLY_LAST_APPLIED),
                doc_new_str(&request->arena, buf_str(&text)));
}

bool managed_apply(struct api_request *request, const struct doc *live, struct doc **ret_object)
{
    struct write_job *job = request->write;
    struct apply_managers managers = {0};
    struct apply_conflicts conflicts = {0};
    struct error error = {0};
    struct doc *bare = live ? doc_clone(&request->arena, live) : NULL;
    struct apply_request apply = {.schema = schema_of(job->patch),
                                  .live = bare,
                                  .config = job->patch,
                                  .who = who_writes(request, true),
                                  .force = job->force};
    if (!read_managers(request, managed_of(live), &managers))
        return false;
    apply_managers_expand(&request->arena, &managers, live);
    if (bare) {
        body_strip(request->resource, bare);
        set_managed(request, bare, NULL);
    }
    int rc = apply_merge(&request->arena, &apply, &managers, ret_object, &conflicts, &error);
    if (rc == 0) {
        apply_managers_collapse(&request->arena, &managers, *ret_object);
        job->managed = apply_managers_doc(&request->arena, &managers);
        set_last_applied(request, live, *ret_object);
    } else if (rc == ERROR_CONFLICT) {
        answer_conflicts(request, &conflicts);
    } else {
        answer_status(request, 400, "BadRequest", "failed to create typed patch object: %s", error.text);
    }
    vec_done(&conflicts.list);
    apply_managers_done(&managers);
    return rc == 0;
}
