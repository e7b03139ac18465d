/* api_world.h - a small cluster with an API and no sockets, for the fuzz targets of requests.
 *
 *     world_begin(&world);                   two machines, a JobSet; everybody may do everything
 *     world_ask(&world, STR("METHOD URL\nheader: value\n\nbody"), &answer);
 *     world_end(&world);
 *
 * Accepted writes step the core at once. What says that it is JSON must be JSON, and what a stream gives is
 * read until it has nothing more.
 */
#ifndef PHX_TESTS_FUZZ_API_WORLD_H
#define PHX_TESTS_FUZZ_API_WORLD_H

#include "host/api/guard.h"
#include "host/api/request.h"

struct api_world {
    struct core *core;
    struct api *api;
    uint64_t seq;
    /* Called with each write before the core has it; NULL: nobody looks. */
    void (*saw)(struct api_world *world, const struct write_event *write);
    void *context;
};

static inline int64_t world_now(void *context)
{
    const struct api_world *world = context;
    return INT64_C(1800000000) * NS_PER_SECOND + (int64_t)world->seq * NS_PER_MS;
}

static inline void world_step(struct api_world *world, struct event *event, struct api_request *request)
{
    struct effects effects = {0};
    world->seq++;
    event->seq = world->seq;
    event->stamp_ns = world_now(world);
    core_step(world->core, event, &effects);
    for (size_t i = 0; i < effects.list.len; i++) {
        if (effects.list.items[i].kind == EFFECT_CHANGED && world->api)
            api_changed(world->api, &effects.list.items[i]);
        else if (effects.list.items[i].kind == EFFECT_REPLY && request)
            api_reply(request, &effects.list.items[i]);
    }
    vec_done(&effects.list);
}

static inline struct core *world_core(void *context)
{
    return ((struct api_world *)context)->core;
}

static inline void world_submit(void *context, const struct write_event *write, struct api_request *request)
{
    struct api_world *world = context;
    struct event event = {.kind = EVENT_WRITE, .write = *write};
    if (world->saw)
        world->saw(world, write);
    world_step(world, &event, request);
    prepared_write_free(event.write.prepared);
}

static inline void world_logs(void *context, const struct task *task, const struct api_log_options *options,
                              struct api_stream *stream)
{
    api_log_data(stream, STR("a line\n"), !options->follow, NULL);
}

static inline void world_logs_closed(void *context, struct api_stream *stream)
{
}

static inline void world_begin(struct api_world *world)
{
    static const char cluster[] =
        "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"f\"},"
        "\"spec\":{\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
        "\"pods\":[{\"racks\":[{\"machines\":2,\"chips\":2}]}]}}";
    static const char jobset[] =
        "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"a\","
        "\"namespace\":\"default\"},\"spec\":{\"replicatedJobs\":[{\"name\":\"w\","
        "\"template\":{\"spec\":{\"parallelism\":1,"
        "\"completions\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\","
        "\"command\":[\"x\"]}]}}}}}]}}";
    struct event event = {.kind = EVENT_BOOT};
    *world = (struct api_world){.core = core_new(), .saw = world->saw, .context = world->context};
    event.boot.epoch = 1;
    event.boot.version = STR("fuzz");
    world_step(world, &event, NULL);
    event = (struct event){.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(cluster);
    world_step(world, &event, NULL);
    world->api = api_new_bare(
        &(struct api_hooks){world, world_core, world_now, world_submit, world_logs, world_logs_closed});
    event = (struct event){.kind = EVENT_WRITE,
                           .write = {.verb = WRITE_CREATE,
                                     .object = OBJECT_JOBSET,
                                     .namespace_ = STR("default"),
                                     .name = STR("a"),
                                     .body = str_from(jobset)}};
    world_step(world, &event, NULL);
}

static inline void world_end(struct api_world *world)
{
    core_check_invariants(world->core);
    api_free_bare(world->api);
    core_free(world->core);
    world->api = NULL;
    world->core = NULL;
}

/* --- a request ------------------------------------------------------------------------------------------ */

static inline enum method world_method(struct str name)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i]))
            return (enum method)i;
    return METHOD_OTHER;
}

static inline void world_take_header(struct api_request *request, struct guard_headers *headers,
                                     struct str key, struct str value)
{
    enum { GROUPS_MAX = 8 };
    if (str_is(key, "accept"))
        request->accept = value;
    else if (str_is(key, "content-type"))
        request->content_type = value;
    else if (str_is(key, "authorization"))
        headers->authorization = value;
    else if (str_is(key, "impersonate-user"))
        headers->as_user = value;
    else if (str_is(key, "impersonate-uid"))
        headers->as_uid = value;
    else if (str_is(key, "impersonate-group") && headers->as_group_count < GROUPS_MAX) {
        if (!headers->as_groups)
            headers->as_groups = ARENA_ARRAY(&request->arena, struct str, GROUPS_MAX);
        headers->as_groups[headers->as_group_count++] = value;
    }
}

static inline void world_read_stream(struct api_request *request, struct buf *ret_answer)
{
    char data[4096];
    for (int i = 0; i < 1000; i++) {
        ssize_t len = request->stream->read(request->stream, data, sizeof data);
        if (len <= 0)
            break;
        buf_add(ret_answer, data, (size_t)len);
    }
}

static inline void world_check_answer(const struct api_request *request)
{
    if (strcmp(request->answer_type, ANSWER_JSON) != 0 || request->code == 304)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *doc;
    CHECK(request->code >= 200 && request->code < 600);
    CHECK(json_parse(&arena, buf_str(&request->answer), &doc, NULL) == 0);
}

/* Carries the request out, and appends its answer. Returns its code; 0: the text is no request. */
static inline int world_ask(struct api_world *world, struct str input, struct buf *ret_answer)
{
    struct api_request request;
    struct guard_headers headers = {0};
    struct str line, rest = input, method, url, key, value;
    if (!str_cut(rest, '\n', &line, &rest) || !str_cut(line, ' ', &method, &url))
        return 0;
    request_init(&request, world->api, world_method(method), url);
    while (str_cut(rest, '\n', &line, &rest) && line.len)
        if (str_cut(line, ':', &key, &value))
            world_take_header(&request, &headers, key, arena_str(&request.arena, str_trim(value)));
    request.headers = &headers;
    buf_add_str(&request.body, rest);
    request_handle(&request);
    for (int i = 0; i < 64 && world->api->retries.len; i++)
        write_run_retries(world->api);
    CHECK(request.outcome != OUTCOME_PENDING || request.stream);
    if (request.outcome == OUTCOME_STREAM)
        world_read_stream(&request, ret_answer);
    else if (request.outcome == OUTCOME_READY)
        world_check_answer(&request);
    buf_add_str(ret_answer, buf_str(&request.answer));
    int code = request.code;
    request_done(&request);
    return code;
}

#endif
