#include "host/api/builtin.h"
#include "host/api/write.h"

#include <gnutls/crypto.h>

#include "base/hash.h"
#include "base/units.h"
#include "core/gang/trial.h"

enum { FIELD_MANAGER_BYTES_MAX = 128 };

struct write_job *write_job_new(struct api_request *request, enum write_verb verb)
{
    struct write_job *job = ARENA_NEW(&request->arena, struct write_job);
    struct str manager = request_query(request, "fieldManager"), rest;
    if (manager.len == 0 && !str_cut(request->user_agent, '/', &manager, &rest))
        manager = request->user_agent;
    if (manager.len > FIELD_MANAGER_BYTES_MAX)
        manager.len = FIELD_MANAGER_BYTES_MAX;
    job->manager = manager.len && str_is_utf8(manager) ? manager : STR("unknown");
    job->event = (struct write_event){.verb = verb,
                                      .object = request->resource->object,
                                      .namespace_ = request->namespace_,
                                      .name = request->name,
                                      .grace_s = -1,
                                      .user = job->manager,
                                      .request = request->retry.id,
                                      .content = request->retry.content};
    job->dry_run = str_is(request_query(request, "dryRun"), "All");
    request->write = job;
    return job;
}

/* --- to the core and back ---------------------------------------------------------------------- */

void write_retry_later(struct api_request *request)
{
    request->write->queued = true;
    request->outcome = OUTCOME_PENDING;
    vec_push(&request->api->retries, request);
    request_retry_soon(request->api);
}

static void answer_reply(struct api_request *request, const struct effect *reply)
{
    struct write_job *job = request->write;
    struct object_ref object = reply->reply.object;
    if (reply->reply.receipt) {
        retry_answer(request, reply->reply.receipt);
    } else if (reply->reply.code >= 400) {
        request->retry_after_s = (int)reply->reply.retry_after_s;
        if (request->name.len == 0)
            request->name = job->event.name;
        answer_status_causes(request, reply->reply.code, reply->reply.reason, reply->reply.message,
                             reply->reply.causes);
    } else if (job->eviction) {
        answer_success(request, 0);
        request->code = 201;
    } else if (!object.any) {
        answer_success(request, 0);
    } else if (job->event.verb == WRITE_DELETE) {
        struct object_name name = object_name(object);
        answer_success(request, name.uid);
    } else {
        answer_object(request, reply->reply.code, object, object_name(object).name);
    }
}

/* Records the result of one deletion of many. An object that no longer exists is not a failure. */
static void note_victim(struct api_request *request, int code, const char *reason, struct str message)
{
    struct write_job *job = request->write;
    if (code < 400 || code == 404 || job->failed_code)
        return;
    job->failed_code = code;
    job->failed_reason = reason;
    job->failed_message = arena_str(&request->arena, message);
}

/* Returns whether the write has lost against another one, and is tried again on the new object. */
static bool tries_again(const struct write_job *job, int code)
{
    if (job->own_version || job->tries >= WRITE_TRIES_MAX)
        return false;
    if (job->form == PATCH_APPLY)
        return code == 404 || code == 409; /* the object was created or deleted in between */
    bool generated = job->event.verb == WRITE_CREATE && job->event.name.len == 0;
    return code == 409 && ((job->form && job->event.if_version) || generated);
}

/* Sets the members that the server fills in, as they are or would be. */
static void fill_in(struct api_request *request, struct doc *object, const struct doc *live)
{
    static const char *const kept[] = {"uid", "resourceVersion", "creationTimestamp", "deletionTimestamp",
                                       "generation"};
    struct doc *metadata = doc_need_object(&request->arena, object, "metadata");
    const struct doc *old = doc_get(live, "metadata");
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        if (doc_get(old, kept[i]))
            doc_set(&request->arena, metadata, str_from(kept[i]), doc_get(old, kept[i]));
    int64_t generation = doc_int(doc_get(old, "generation"), 0);
    if (generation && !spec_equal(doc_get(live, "spec"), doc_get(object, "spec")))
        doc_set(&request->arena, metadata, STR("generation"), doc_new_int(&request->arena, generation + 1));
    if (doc_get(live, "status"))
        doc_set(&request->arena, object, STR("status"), doc_get(live, "status"));
    if (!live) {
        char now[32];
        time_format(request_now(request), now);
        doc_set(&request->arena, metadata, STR("creationTimestamp"),
                doc_new_str(&request->arena, str_from(now)));
    }
}

/* Returns `live` with the labels, annotations and scheduling gates of `said`. */
static struct doc *with_metadata(struct arena *arena, const struct doc *live, const struct doc *said)
{
    static const char *const maps[] = {"labels", "annotations"};
    struct doc *object = doc_clone(arena, live), *metadata = doc_need_object(arena, object, "metadata");
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        struct doc *map = doc_path(said, "metadata", maps[i], NULL);
        doc_unset(metadata, maps[i]);
        if (map)
            doc_set(arena, metadata, str_from(maps[i]), map);
    }
    struct doc *gates = doc_path(said, "spec", "schedulingGates", NULL), *spec = doc_get(object, "spec");
    doc_unset(spec, "schedulingGates");
    if (doc_len(gates) > 0)
        doc_set(arena, spec, STR("schedulingGates"), gates);
    return object;
}

/* Answers a dry run with the object as it would be written, with defaults. */
static void answer_dry_run(struct api_request *request)
{
    struct write_job *job = request->write;
    struct doc *object, *live = NULL;
    if (job->event.verb == WRITE_DELETE) {
        answer_success(request, 0);
        request->code = job->eviction ? 201 : 200;
        return;
    }
    object = (struct doc *)job->event.document; /* the tree of event.body, which is not needed any more */
    if (!object)
        CHECK(json_parse(&request->arena, job->event.body, &object, NULL) == 0);
    if (job->event.verb == WRITE_REPLACE || job->event.verb == WRITE_METADATA)
        (void)write_read_current(request, &live);
    if (job->event.verb == WRITE_METADATA && live)
        object = with_metadata(&request->arena, live, object);
    fill_in(request, object, live);
    struct doc *metadata = doc_get(object, "metadata");
    struct str prefix = doc_str(doc_get(metadata, "generateName"), STR(""));
    if (!doc_str(doc_get(metadata, "name"), STR("")).len && prefix.len)
        doc_set(&request->arena, metadata, STR("name"),
                doc_new_str(&request->arena, generated_name(&request->arena, prefix, job->event.draw)));
    struct json_writer out = answer_begin(request, job->event.verb == WRITE_CREATE ? 201 : 200);
    json_put_doc(&out, object);
}

/* Answers 429 if as many writes are pending as the log takes in one commit. The client retries by itself. */
static bool too_many(struct api_request *request)
{
    if (request->api->writes_pending < WRITES_PENDING_MAX)
        return false;
    request->retry_after_s = WRITE_RETRY_AFTER_S;
    answer_status(request, 429, "TooManyRequests",
                  "the server has received too many requests and has asked us to try again later");
    return true;
}

static void refused(struct api_request *request, const struct effect *reply)
{
    struct write_job *job = request->write;
    if (job->victims) {
        note_victim(request, reply->reply.code, reply->reply.reason, reply->reply.message);
    } else if (tries_again(job, reply->reply.code)) {
        job->tries++;
        write_retry_later(request);
    } else {
        answer_reply(request, reply);
    }
}

/* Turns the replacement of a built-in object into a creation: the core does not have built-in objects. */
static void replace_builtin(struct api_request *request)
{
    struct write_event *write = &request->write->event;
    struct object_ref object;
    if (write->verb != WRITE_REPLACE ||
        resource_get(request->resource, request_core(request), write->namespace_, write->name, &object) ||
        !builtin_find(request->resource, request->api->builtins, write->name, &object))
        return;
    write->verb = WRITE_CREATE;
    write->if_version = 0;
    write->uid_text = (struct str){0};
}

/* Refuses writes of the control plane's own Events, which are read-only. Returns true if the write was
 * answered. */
static bool refuse_note(struct api_request *request)
{
    const struct write_job *job = request->write;
    struct object_ref found;
    if (request->resource->object != OBJECT_EVENT || job->event.name.len == 0 ||
        !resource_get(request->resource, request_core(request), job->event.namespace_, job->event.name,
                      &found) ||
        found.kind == OBJECT_USER_EVENT)
        return false;
    if (job->event.verb == WRITE_CREATE)
        answer_status(request, 409, "AlreadyExists", "events \"" STR_FORMAT "\" already exists",
                      STR_ARG(job->event.name));
    else
        answer_status(request, 403, "Forbidden",
                      "events \"" STR_FORMAT "\" is forbidden: it is the control plane's own",
                      STR_ARG(job->event.name));
    return true;
}

void write_draw_name(struct write_job *job)
{
    if (job->event.verb == WRITE_CREATE && job->event.name.len == 0)
        CHECK(gnutls_rnd(GNUTLS_RND_NONCE, &job->event.draw, sizeof job->event.draw) == 0);
}

/* Returns false if the core has refused the write, which was answered or will be tried again. */
static bool check_with_core(struct api_request *request)
{
    struct write_job *job = request->write;
    struct effects effects = {0};
    struct api *api = request->api;
    struct prepared_write **prepared =
        job->dry_run || job->victims || job->event.prepared ? NULL : &job->event.prepared;
    bool passes = core_check_write(api->hooks.core(api->hooks.context), &job->event, request_now(request),
                                   &effects, prepared);
    CHECK(passes || (effects.list.len == 1 && effects.list.items[0].kind == EFFECT_REPLY));
    if (!passes)
        refused(request, &effects.list.items[0]);
    for (size_t i = 0; passes && i < effects.list.len && job->tries == 0; i++)
        request_warn(request, STR_FORMAT, STR_ARG(effects.list.items[i].warning));
    vec_done(&effects.list);
    return passes;
}

void write_drop_prepared(struct api_request *request)
{
    if (!request->write || !request->write->event.prepared)
        return;
    prepared_write_free(request->write->event.prepared);
    request->write->event.prepared = NULL;
}

/* Returns whether the host has taken over the write, with what was prepared of it. */
static bool hand_over(struct api_request *request)
{
    struct write_job *job = request->write;
    struct api *api = request->api;
    replace_builtin(request);
    if (!job->victims && refuse_note(request))
        return false;
    if (!job->event.prepared) /* each try draws another name */
        write_draw_name(job);
    if (!guard_write(request, &job->event) || !check_with_core(request))
        return false;
    if (job->dry_run) {
        write_drop_prepared(request); /* before another thread gets the request */
        if (!job->victims)
            write_beside(request, answer_dry_run, write_forget_live);
        return false;
    }
    if (!job->victims && too_many(request))
        return false;
    job->tries++;
    request->outcome = OUTCOME_PENDING;
    if (job->pending++ == 0)
        list_append(&api->pending, &request->node);
    api->writes_pending++;
    api->hooks.submit(api->hooks.context, &job->event, request);
    return true;
}

void write_submit(struct api_request *request)
{
    if (hand_over(request))
        request->write->event.prepared = NULL;
    else
        write_drop_prepared(request);
}

static void replied(struct api_request *request)
{
    CHECK(request->write && request->write->pending && request->api->writes_pending);
    request->api->writes_pending--;
    if (--request->write->pending == 0)
        list_remove(&request->node);
}

/* Warns if a workload that was just written waits for machines and could not run on an empty cluster. */
static void warn_of_no_room(struct api_request *request, const struct effect *reply)
{
    const struct core *core = request_core(request);
    struct object_ref ref = reply->reply.object;
    bool written = request->write->event.verb == WRITE_CREATE || request->write->event.verb == WRITE_REPLACE;
    const struct jobset *jobset = !written || !ref.any        ? NULL
                                  : ref.kind == OBJECT_JOBSET ? ref.jobset
                                  : ref.kind == OBJECT_JOB    ? ref.job->jobset
                                  : ref.kind == OBJECT_POD    ? ref.task->job->jobset
                                                              : NULL;
    for (size_t g = 0; jobset && g < jobset->gangs.len; g++) {
        const struct gang *gang = jobset->gangs.items[g];
        struct buf why BUF_CLEANUP = {0};
        if (gang->state != GANG_QUEUED || gang_feasible(core_jobs(core), core_cluster(core), gang, &why))
            continue;
        request_warn(request, "it can never start on this cluster: " STR_FORMAT, STR_ARG(buf_str(&why)));
        return;
    }
}

void api_reply(struct api_request *request, const struct effect *reply)
{
    struct write_job *job = request->write;
    CHECK(reply->kind == EFFECT_REPLY);
    replied(request);
    if (job->victims) {
        note_victim(request, reply->reply.code, reply->reply.reason, reply->reply.message);
        if (job->pending == 0)
            write_retry_later(request);
        return;
    }
    if (tries_again(job, reply->reply.code)) {
        write_retry_later(request);
        return;
    }
    if (reply->reply.code < 300)
        warn_of_no_room(request, reply);
    answer_reply(request, reply);
    request_finish(request);
}

void api_reply_error(struct api_request *request, int code, const char *reason, const char *message)
{
    struct write_job *job = request->write;
    replied(request);
    if (job->victims) {
        note_victim(request, code, reason, str_from(message));
        job->victim_next = job->victim_count;
        if (job->pending == 0)
            write_retry_later(request);
        return;
    }
    answer_status(request, code, reason, "%s", message);
    request_finish(request);
}

void write_run_retries(struct api *api)
{
    for (size_t left = api->retries.len; left > 0 && api->retries.len > 0; left--) {
        struct api_request *request = api->retries.items[0];
        vec_remove(&api->retries, 0);
        request->write->queued = false;
        request->outcome = OUTCOME_READY;
        if (request->write->victims)
            write_delete_next(request);
        else if (request->write->form)
            write_patch_run(request);
        else
            write_submit(request);
        if (!request_is_pending(request))
            request_finish(request);
    }
}

void request_forget_write(struct api_request *request)
{
    write_drop_prepared(request);
    if (!request->write || !request->write->queued)
        return;
    for (size_t i = 0; i < request->api->retries.len; i++) {
        if (request->api->retries.items[i] == request) {
            vec_remove(&request->api->retries, i);
            break;
        }
    }
    request->write->queued = false;
}

/* --- create, replace --------------------------------------------------------------------------- */

enum { TOLD_MAX = 4096 }; /* users; beyond that, all are warned again */

/* Returns whether the user was warned about images before. One warning is enough. */
static bool told_of_images(struct api_request *request)
{
    struct str user = request->user ? request->user->name : (struct str){0};
    uint64_t hash = hash64(0, user.data, user.len);
    struct api *api = request->api;
    for (size_t i = 0; i < api->told_of_images.len; i++)
        if (api->told_of_images.items[i] == hash)
            return true;
    if (api->told_of_images.len == TOLD_MAX)
        vec_clear(&api->told_of_images);
    vec_push(&api->told_of_images, hash);
    return false;
}

static void warn_of_images(struct api_request *request, const struct doc *object)
{
    const struct doc *rjobs = doc_path(object, "spec", "replicatedJobs", NULL);
    for (size_t i = 0; i < doc_len(rjobs); i++) {
        const struct doc *containers =
            doc_path(doc_at(rjobs, i), "template", "spec", "template", "spec", "containers", NULL);
        struct str image = doc_str(doc_get(doc_at(containers, 0), "image"), STR(""));
        if (image.len == 0)
            continue;
        if (told_of_images(request))
            return;
        request_warn(request,
                     "container image " STR_FORMAT
                     " is recorded only; the command runs directly on the machine",
                     STR_ARG(image));
        return;
    }
}

static bool prepare_create(struct api_request *request)
{
    if (!body_accept(request, request->write->given, true, &request->write->event))
        return false;
    if (!request->live.taken) /* a workload, which is prepared on the loop */
        warn_of_images(request, request->write->given);
    return true;
}

static bool prepare_replace(struct api_request *request)
{
    if (!request->live.taken)
        write_keep_written(request, request->write->given);
    return body_accept(request, request->write->given, false, &request->write->event);
}

void handle_create(struct api_request *request)
{
    struct doc *object = NULL;
    if (!body_parse(request, &object))
        return;
    if (request->namespace_.len == 0 && request->resource->namespaced)
        request->namespace_ = doc_str(doc_path(object, "metadata", "namespace", NULL), STR("default"));
    struct write_job *job = write_job_new(request, WRITE_CREATE);
    job->given = object;
    write_prepare(request, prepare_create);
}

void handle_replace(struct api_request *request)
{
    struct doc *object = NULL;
    if (!body_parse(request, &object))
        return;
    struct write_job *job = write_job_new(request, WRITE_REPLACE);
    job->given = object;
    write_prepare(request, prepare_replace);
}
