#include "host/api/write.h"

static bool read_options(struct api_request *request, struct write_job *job, const struct doc *options)
{
    int64_t grace_s = doc_int(doc_get(options, "gracePeriodSeconds"), -1), version = 0;
    struct str grace = request_query(request, "gracePeriodSeconds");
    if (grace.len && !str_to_i64(grace, 0, INT32_MAX, &grace_s)) {
        answer_status(request, 400, "BadRequest", "gracePeriodSeconds is a number of seconds");
        return false;
    }
    job->event.grace_s = grace_s < 0 ? -1 : grace_s;
    const struct doc *conditions = doc_get(options, "preconditions");
    job->event.uid_text = doc_str(doc_get(conditions, "uid"), (struct str){0});
    if (str_to_i64(doc_str(doc_get(conditions, "resourceVersion"), STR("")), 0, INT64_MAX, &version))
        job->event.if_version = (uint64_t)version;
    static const char *const policies[] = {[PROPAGATION_BACKGROUND] = "Background",
                                           [PROPAGATION_FOREGROUND] = "Foreground",
                                           [PROPAGATION_ORPHAN] = "Orphan"};
    struct str policy =
        doc_str(doc_get(options, "propagationPolicy"), request_query(request, "propagationPolicy"));
    for (size_t i = PROPAGATION_BACKGROUND; i <= PROPAGATION_ORPHAN; i++)
        if (str_is(policy, policies[i]))
            job->event.propagation = (enum propagation)i;
    if (policy.len == 0 && doc_bool(doc_get(options, "orphanDependents"), false))
        job->event.propagation = PROPAGATION_ORPHAN; /* the older option with this meaning */
    if (policy.len && job->event.propagation == PROPAGATION_DEFAULT) {
        answer_status(request, 422, "Invalid",
                      "DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
                      "\"" STR_FORMAT "\": supported values: \"Foreground\", \"Background\", \"Orphan\"",
                      STR_ARG(policy));
        return false;
    }
    const struct doc *dry_run = doc_get(options, "dryRun");
    job->dry_run |= str_is(doc_str(doc_at(dry_run, 0), STR("")), "All");
    return true;
}

static bool read_delete_options(struct api_request *request, struct write_job *job)
{
    struct doc *options = NULL;
    return (request->body.len == 0 || body_parse(request, &options)) && read_options(request, job, options);
}

void handle_delete(struct api_request *request)
{
    struct write_job *job = write_job_new(request, WRITE_DELETE);
    struct object_ref object;
    if (!read_delete_options(request, job))
        return;
    if (!resource_get(request->resource, request_core(request), request->namespace_, request->name,
                      &object)) {
        answer_not_found(request);
        return;
    }
    write_submit(request);
}

/* policy/v1 Eviction, as `kubectl drain` sends it. The task is notified, and may save a checkpoint within
 * its grace period; the Pod is deleted when the task has ended. */
void handle_evict(struct api_request *request)
{
    struct doc *eviction = NULL;
    struct object_ref object;
    struct write_job *job = write_job_new(request, WRITE_DELETE);
    job->eviction = true;
    job->event.evict = true;
    if (!body_parse(request, &eviction))
        return;
    struct str name = doc_str(doc_path(eviction, "metadata", "name", NULL), request->name);
    if (!str_equal(name, request->name)) {
        answer_status(request, 400, "BadRequest",
                      "name in URL does not match name in Eviction object: " STR_FORMAT, STR_ARG(name));
        return;
    }
    if (!read_options(request, job, doc_get(eviction, "deleteOptions")))
        return;
    if (!resource_get(request->resource, request_core(request), request->namespace_, request->name, &object))
        answer_not_found(request);
    else
        write_submit(request);
}

struct collecting {
    struct api_request *request;
    struct selector selector;
    VEC(struct victim) victims;
};

static void collect(void *context, struct object_ref object, struct str name)
{
    struct collecting *collecting = context;
    struct arena *arena = &collecting->request->arena;
    if (collecting->victims.len == DELETE_COLLECTION_MAX ||
        object.kind == OBJECT_EVENT || /* the control plane's own Events stay */
        !select_object(&collecting->selector, request_core(collecting->request), object, name, arena))
        return;
    struct victim victim = {arena_str(arena, object_name(object).namespace_), arena_str(arena, name)};
    vec_push(&collecting->victims, victim);
}

/* Submits the next batch, all of which goes to the log in one commit. */
void write_delete_next(struct api_request *request)
{
    struct write_job *job = request->write;
    while (job->pending < DELETE_BATCH && job->victim_next < job->victim_count && !job->failed_code) {
        struct victim victim = job->victims[job->victim_next++];
        job->event.namespace_ = victim.namespace_;
        job->event.name = victim.name;
        write_submit(request);
    }
    if (job->pending)
        return;
    if (job->failed_code)
        answer_status(request, job->failed_code, job->failed_reason, STR_FORMAT,
                      STR_ARG(job->failed_message));
    else
        answer_success(request, 0);
}

void handle_delete_collection(struct api_request *request)
{
    struct write_job *job = write_job_new(request, WRITE_DELETE); /* without an id: these are many writes */
    struct collecting collecting = {.request = request};
    if (!read_delete_options(request, job) || !request_selector(request, &collecting.selector))
        return;
    resource_visit(request->resource, request_core(request), request->namespace_, collect, &collecting);
    job->victim_count = collecting.victims.len;
    job->victims = ARENA_ARRAY(&request->arena, struct victim, job->victim_count);
    if (job->victim_count)
        memcpy(job->victims, collecting.victims.items, job->victim_count * sizeof *job->victims);
    vec_done(&collecting.victims);
    write_delete_next(request);
}
