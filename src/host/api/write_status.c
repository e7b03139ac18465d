/* write_status.c - PUT and PATCH of status. The control plane sets the status of its own objects: a client's
 * status is parsed and then ignored, with a warning, as a Kubernetes controller would overwrite it a moment
 * later. A client's status is stored for a JobSet or Job that another controller manages (spec.managedBy),
 * for the AdmissionChecks of a Workload whose queue asks for them, and for an AdmissionCheck itself. */
#include "host/api/write.h"

/* Returns whether the body has the text somewhere: it is not parsed yet. */
static bool request_tells(const struct api_request *request, const char *text)
{
    return request->body.len && memmem(request->body.data, request->body.len, text, strlen(text));
}

static void overrule(struct api_request *request)
{
    struct doc *body = NULL;
    struct object_ref object;
    if (!body_parse(request, &body))
        return;
    if (!request_find(request, &object)) {
        answer_not_found(request);
        return;
    }
    request_warn(request, "the status of %s belongs to the control plane; the change is ignored",
                 request->resource->plural);
    answer_object(request, 200, object, request->name);
}

/* Returns the code with which a write of this status would be refused, or 0. */
static int refusal_of(struct api_request *request, struct str body)
{
    struct effects effects = {0};
    struct write_event write = {.verb = WRITE_STATUS,
                                .object = request->resource->object,
                                .namespace_ = request->namespace_,
                                .name = request->name,
                                .body = body};
    int code = 0;
    if (!core_check_write(request->api->hooks.core(request->api->hooks.context), &write, request_now(request),
                          &effects, NULL))
        code = effects.list.len ? vec_last(&effects.list).reply.code : 403;
    vec_done(&effects.list);
    return code;
}

/* Returns whether another controller writes the object's status, so that the core takes it. */
static bool status_is_foreign(struct api_request *request)
{
    enum object_kind kind = request->resource->object;
    if (kind != OBJECT_JOBSET && kind != OBJECT_JOB && kind != OBJECT_WORKLOAD &&
        kind != OBJECT_ADMISSION_CHECK)
        return false;
    if (refusal_of(request, STR("{\"status\":{}}")) == 0)
        return true;
    /* The second probe names no PodSet, and is Invalid where reclaimable Pods may be told. */
    return kind == OBJECT_WORKLOAD && request_tells(request, "reclaimablePods") &&
           refusal_of(request, STR("{\"status\":{\"reclaimablePods\":[{}]}}")) == 422;
}

bool status_accept(struct api_request *request, const struct doc *object, struct write_event *write)
{
    const struct doc *metadata = doc_get(object, "metadata"), *status = doc_get(object, "status");
    struct str version_text = doc_str(doc_get(metadata, "resourceVersion"), STR(""));
    struct str name = doc_str(doc_get(metadata, "name"), request->name);
    int64_t version = 0;
    if (!status || status->kind != DOC_OBJECT) {
        answer_status(request, 400, "BadRequest", "status must be an object");
        return false;
    }
    if (!str_equal(name, request->name)) {
        answer_status(request, 400, "BadRequest",
                      "the name of the object (" STR_FORMAT
                      ") does not match the name on the URL (" STR_FORMAT ")",
                      STR_ARG(name), STR_ARG(request->name));
        return false;
    }
    if (version_text.len && !str_to_i64(version_text, 0, INT64_MAX, &version)) {
        answer_status(request, 400, "BadRequest", "metadata.resourceVersion is a decimal number");
        return false;
    }
    struct buf text BUF_CLEANUP = {0};
    struct json_writer out = {.out = &text};
    json_begin_object(&out);
    json_key(&out, "status");
    json_put_doc(&out, status);
    json_end_object(&out);
    write->name = request->name;
    write->if_version = (uint64_t)version;
    write->uid_text = arena_str(&request->arena, doc_str(doc_get(metadata, "uid"), STR("")));
    write->body = arena_str(&request->arena, buf_str(&text));
    return true;
}

void handle_status(struct api_request *request)
{
    struct doc *object = NULL;
    struct object_ref found;
    if (!status_is_foreign(request)) {
        overrule(request);
        return;
    }
    CHECK(request_find(request, &found));
    if (str_is(request_query(request, "dryRun"), "All")) { /* the object does not change, and is the answer */
        answer_object(request, 200, found, request->name);
        return;
    }
    if (request->method == METHOD_PATCH) {
        handle_patch(request);
        return;
    }
    if (!body_parse(request, &object))
        return;
    struct write_job *job = write_job_new(request, WRITE_STATUS);
    job->status = true;
    if (status_accept(request, object, &job->event))
        write_submit(request);
}
