#include "kube/apply.h"
#include "kube/patch.h"
#include "host/api/work.h"
#include "host/api/write.h"

/* Returns the document that a user wrote for a Job or Pod, or NULL if the object has none. The API shows
 * more (the selector, labels, environment), which must not become part of that document. */
static const struct doc *own_document(struct object_ref object)
{
    if (object.kind == OBJECT_JOB && object.job->jobset->form == FORM_JOB)
        return object.job->jobset->document;
    if (object.kind == OBJECT_POD && object.task->job->jobset->form == FORM_POD)
        return object.task->job->jobset->document;
    return NULL;
}

/* Returns `shown` with the fields of the user's document in place of those derived from them. */
static struct doc *as_written(struct api_request *request, const struct doc *shown, const struct doc *written)
{
    static const char *const kept[] = {"name",
                                       "namespace",
                                       "uid",
                                       "generation",
                                       "resourceVersion",
                                       "creationTimestamp",
                                       "deletionTimestamp"};
    struct arena *arena = &request->arena;
    struct doc *object = doc_clone(arena, written), *metadata = doc_need_object(arena, object, "metadata");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        struct doc *value = doc_path(shown, "metadata", kept[i], NULL);
        if (value)
            doc_set(arena, metadata, str_from(kept[i]), value);
    }
    if (doc_get(shown, "status"))
        doc_set(arena, object, STR("status"), doc_get(shown, "status"));
    return object;
}

/* Renders the object as the API shows it. */
static void render_of(struct api_request *request, struct object_ref object, struct buf *text)
{
    struct render render = {.out = {.out = text},
                            .core = request_core(request),
                            .now_ns = request_now(request),
                            .scratch = &request->arena};
    render_object(&render, request->resource, object, request->name);
}

/* Stores the text of the object as it is now, for work on another thread. */
static void take_live(struct api_request *request)
{
    struct object_ref object;
    struct request_live *live = &request->live;
    buf_done(&live->text);
    live->now_ns = request->api->hooks.now_ns(request->api->hooks.context);
    live->there = request_find(request, &object);
    if (live->there)
        render_of(request, object, &live->text);
}

void write_forget_live(struct api_request *request)
{
    request->live.taken = false;
    buf_done(&request->live.text);
}

/* Returns whether the write can be prepared without the core. */
static bool stands_alone(const struct api_request *request)
{
    return resource_is_kept(request->resource) && !request->write->status;
}

void write_beside(struct api_request *request, void (*compute)(struct api_request *request),
                  void (*go_on)(struct api_request *request))
{
    if (stands_alone(request) && request->api->loop) {
        take_live(request);
        if (work_pays(request, request->body.len + request->live.text.len)) {
            request->live.taken = true;
            work_start(request, compute, go_on);
            if (!request_is_pending(request)) /* 429 */
                write_forget_live(request);
            return;
        }
    }
    compute(request);
    go_on(request);
}

static void prepare(struct api_request *request)
{
    struct write_job *job = request->write;
    job->prepared = job->prepare(request);
    if (!job->prepared || !request->live.taken)
        return;
    write_draw_name(job);
    job->event.prepared = core_prepare_write(&job->event);
}

static void prepared(struct api_request *request)
{
    write_forget_live(request);
    if (request->write->prepared)
        write_submit(request);
}

void write_prepare(struct api_request *request, bool (*how)(struct api_request *request))
{
    request->arena.limit_bytes = 0;
    request->write->prepare = how;
    if (stands_alone(request))
        write_beside(request, prepare, prepared);
    else
        work_in_turn(request, prepare, prepared);
}

bool write_read_current(struct api_request *request, struct doc **ret_object)
{
    struct object_ref object;
    struct buf text BUF_CLEANUP = {0};
    struct doc *shown;
    if (request->live.taken) {
        if (request->live.there)
            CHECK(json_parse(&request->arena, buf_str(&request->live.text), ret_object, NULL) == 0);
        return request->live.there;
    }
    if (!request_find(request, &object))
        return false;
    render_of(request, object, &text);
    request->write->live_bytes = text.len;
    CHECK(json_parse(&request->arena, buf_str(&text), &shown, NULL) == 0);
    const struct doc *written = own_document(object);
    *ret_object = written ? as_written(request, shown, written) : shown;
    return true;
}

void write_keep_written(struct api_request *request, struct doc *object)
{
    struct object_ref ref;
    struct buf text BUF_CLEANUP = {0};
    const struct doc *written = request_find(request, &ref) ? own_document(ref) : NULL;
    struct doc *shown, *spec = doc_get(object, "spec");
    if (!written || !spec || spec->kind != DOC_OBJECT)
        return;
    render_of(request, ref, &text);
    CHECK(json_parse(&request->arena, buf_str(&text), &shown, NULL) == 0);
    const struct doc *members = doc_get(shown, "spec"), *own = doc_get(written, "spec");
    for (size_t i = 0; i < doc_len(members); i++) {
        const struct doc_member *member = &members->object.members[i];
        const struct doc *said = doc_get_str(spec, member->key), *was = doc_get_str(own, member->key);
        const char *key = arena_strdup(&request->arena, member->key);
        if (!said || !doc_equal(said, member->value))
            continue;
        if (was)
            doc_set(&request->arena, spec, member->key, doc_clone(&request->arena, was));
        else
            doc_unset(spec, key);
    }
}

/* Returns whether strategic merge applies: Kubernetes has it for its own kinds only, not for custom
 * resources. */
static bool is_built_in(const struct resource *resource)
{
    return !str_ends(str_from(resource->group), STR(".x-k8s.io"));
}

static bool change(struct api_request *request, struct doc **object)
{
    struct write_job *job = request->write;
    struct error error = {0};
    int rc = 0;
    if (job->form == PATCH_MERGE || job->form == PATCH_APPLY) /* of a status: its fields have no owners */
        *object = patch_merge(&request->arena, *object, job->patch);
    else if (job->form == PATCH_STRATEGIC)
        rc = patch_strategic(&request->arena, schema_of(*object), object, job->patch, &error);
    else
        rc = patch_apply(&request->arena, object, job->patch, &error);
    if (rc < 0)
        answer_status(request, rc == ERROR_LIMIT ? 413 : 422, "Invalid", "the patch cannot be applied: %s",
                      error.text);
    else if ((*object)->kind != DOC_OBJECT)
        answer_status(request, 422, "Invalid", "the patched document is not an object");
    return rc == 0 && (*object)->kind == DOC_OBJECT;
}

/* Applies the patch to the object at its present version. The result is written only if the object still has
 * that version. */
static bool prepare_apply(struct api_request *request)
{
    struct write_job *job = request->write;
    struct doc *live = NULL, *object = NULL;
    bool there = write_read_current(request, &live);
    struct str wanted = doc_str(doc_path(job->patch, "metadata", "resourceVersion", NULL), STR(""));
    struct str version = doc_str(doc_path(live, "metadata", "resourceVersion", NULL), STR(""));
    job->managed = NULL;
    if (wanted.len && !str_equal(wanted, version)) {
        answer_status(request, 409, "Conflict",
                      "Operation cannot be fulfilled on %s \"" STR_FORMAT
                      "\": the object has been modified; please apply your changes to the latest version "
                      "and try again",
                      request->resource->plural, STR_ARG(request->name));
        return false;
    }
    if (!managed_apply(request, live, &object))
        return false;
    if (there)
        doc_set(&request->arena, doc_need_object(&request->arena, object, "metadata"), STR("resourceVersion"),
                doc_new_str(&request->arena, version));
    job->event.verb = there ? WRITE_REPLACE : WRITE_CREATE;
    if (!body_accept(request, object, false, &job->event))
        return false;
    if (!there)
        job->event.if_version = 0;
    return true;
}

static bool prepare_patch(struct api_request *request)
{
    struct write_job *job = request->write;
    struct doc *object;
    if (job->form == PATCH_APPLY && !job->status)
        return prepare_apply(request);
    if (!write_read_current(request, &object)) {
        answer_not_found(request);
        return false;
    }
    return change(request, &object) && (job->status ? status_accept(request, object, &job->event)
                                                    : body_accept(request, object, false, &job->event));
}

/* Reads, patches and submits, provided that nothing has changed in between; a conflict starts it again. */
void write_patch_run(struct api_request *request)
{
    write_prepare(request, prepare_patch);
}

static bool patch_form(struct api_request *request, enum patch_form *ret_form)
{
    static const struct {
        const char *type;
        enum patch_form form;
    } types[] = {{"application/json-patch+json", PATCH_JSON},
                 {"application/merge-patch+json", PATCH_MERGE},
                 {"application/apply-patch+yaml", PATCH_APPLY},
                 {"application/strategic-merge-patch+json", PATCH_STRATEGIC}};
    struct str type = body_media_type(request);
    bool strategic = is_built_in(request->resource);
    for (size_t i = 0; i < sizeof types / sizeof *types; i++) {
        if (str_is(type, types[i].type) && (types[i].form != PATCH_STRATEGIC || strategic)) {
            *ret_form = types[i].form;
            return true;
        }
    }
    answer_status(request, 415, "UnsupportedMediaType",
                  "the body of the request was in an unknown format - accepted media types include: "
                  "application/json-patch+json, application/merge-patch+json, %sapplication/apply-patch+yaml",
                  strategic ? "application/strategic-merge-patch+json, " : "");
    return false;
}

/* Checks the parameters that only an apply needs. */
static bool check_apply(struct api_request *request, struct doc *patch)
{
    struct str manager = request_query(request, "fieldManager");
    const char *why = NULL;
    if (manager.len == 0)
        why = "Required value: is required for apply patch";
    else if (manager.len > APPLY_MANAGER_BYTES_MAX)
        why = "Too long: may not be more than 128 bytes";
    if (why)
        answer_status(request, 422, "Invalid", "PatchOptions.meta.k8s.io \"\" is invalid: fieldManager: %s",
                      why);
    else if (doc_len(doc_path(patch, "metadata", "managedFields", NULL)))
        answer_status(request, 400, "BadRequest", "metadata.managedFields must be nil");
    else
        return body_metadata(request, patch) != NULL;
    return false;
}

void handle_patch(struct api_request *request)
{
    enum patch_form form;
    struct doc *patch = NULL;
    if (!patch_form(request, &form) || !body_parse(request, &patch))
        return;
    if (form != PATCH_JSON && patch->kind != DOC_OBJECT) {
        answer_status(request, 400, "BadRequest", "the patch must be an object");
        return;
    }
    if ((form == PATCH_APPLY && !check_apply(request, patch)))
        return;
    bool status = str_is(request->subresource, "status");
    struct write_job *job = write_job_new(request, status ? WRITE_STATUS : WRITE_REPLACE);
    job->status = status;
    job->patch = patch;
    job->form = form;
    job->force = request_flag(request, "force");
    /* A client with a resourceVersion in its patch wants to see the conflict itself. */
    job->own_version = doc_path(patch, "metadata", "resourceVersion", NULL) != NULL;
    write_patch_run(request);
}
