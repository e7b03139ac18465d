/* fuzz_http.c - any bytes as a request to the API: an answer, in bounded memory, and a consistent core.
 *
 * Input: "METHOD URL\n", header lines "accept: ..." and "content-type: ...", an empty line, the body.
 * Requests run against one small cluster with a jobset; accepted writes step the core at once. What says it
 * is JSON must be JSON, and what a stream gives is read until it has nothing more.
 */
#include <stddef.h>
#include <stdint.h>

#include "host/api/request.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static struct core *the_core;
static struct api *the_api;
static uint64_t the_seq;
#define NOW_NS (INT64_C(1800000000) * NS_PER_SECOND)

static void step(struct event *event, struct api_request *request)
{
    struct effects effects = {0};
    event->seq = ++the_seq;
    event->stamp_ns = NOW_NS + (int64_t)the_seq * NS_PER_MS;
    core_step(the_core, event, &effects);
    for (size_t i = 0; i < effects.list.len; i++) {
        if (effects.list.items[i].kind == EFFECT_CHANGED && the_api)
            api_changed(the_api, &effects.list.items[i]);
        else if (effects.list.items[i].kind == EFFECT_REPLY && request)
            api_reply(request, &effects.list.items[i]);
    }
    vec_done(&effects.list);
}

static struct core *get_core(void *context)
{
    return the_core;
}

static int64_t get_now(void *context)
{
    return NOW_NS + (int64_t)the_seq * NS_PER_MS;
}

static void submit(void *context, const struct write_event *write, struct api_request *request)
{
    struct event event = {.kind = EVENT_WRITE, .write = *write};
    step(&event, request);
    prepared_write_free(event.write.prepared);
}

static void logs(void *context, const struct task *task, const struct api_log_options *options,
                 struct api_stream *stream)
{
    api_log_data(stream, STR("a line\n"), !options->follow, NULL);
}

static void logs_closed(void *context, struct api_stream *stream)
{
}

static const char cluster[] =
    "{\"apiVersion\":\"phalanx.dev/v1\",\"kind\":\"Cluster\",\"metadata\":{\"name\":\"f\"},"
    "\"spec\":{\"machineNames\":\"m-{n}\",\"addresses\":\"127.0.1.1\","
    "\"pods\":[{\"racks\":[{\"machines\":2,\"chips\":2}]}]}}";
static const char jobset[] =
    "{\"apiVersion\":\"jobset.x-k8s.io/v1alpha2\",\"kind\":\"JobSet\",\"metadata\":{\"name\":\"a\","
    "\"namespace\":\"default\"},\"spec\":{\"replicatedJobs\":[{\"name\":\"w\","
    "\"template\":{\"spec\":{\"parallelism\":1,"
    "\"completions\":1,\"template\":{\"spec\":{\"containers\":[{\"name\":\"c\",\"image\":\"i\",\"command\":["
    "\"x\"]}]}}}}}]}}";

static void begin(void)
{
    struct event event = {.kind = EVENT_BOOT};
    the_seq = 0;
    the_core = core_new();
    event.boot.epoch = 1;
    event.boot.version = STR("fuzz");
    step(&event, NULL);
    event = (struct event){.kind = EVENT_CLUSTER};
    event.cluster.document = str_from(cluster);
    step(&event, NULL);
    the_api = api_new_bare(&(struct api_hooks){NULL, get_core, get_now, submit, logs, logs_closed});
    event = (struct event){.kind = EVENT_WRITE,
                           .write = {.verb = WRITE_CREATE,
                                     .object = OBJECT_JOBSET,
                                     .namespace_ = STR("default"),
                                     .name = STR("a"),
                                     .body = str_from(jobset)}};
    step(&event, NULL);
}

static void end(void)
{
    api_free_bare(the_api);
    core_free(the_core);
    the_api = NULL;
    the_core = NULL;
}

static enum method method_of(struct str name)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i]))
            return (enum method)i;
    return METHOD_OTHER;
}

static void read_stream(struct api_request *request)
{
    char data[4096];
    for (int i = 0; i < 1000; i++)
        if (request->stream->read(request->stream, data, sizeof data) <= 0)
            break;
}

static void run(struct str input)
{
    struct api_request request;
    struct str line, rest = input, method, url, key, value;
    if (!str_cut(rest, '\n', &line, &rest) || !str_cut(line, ' ', &method, &url))
        return;
    request_init(&request, the_api, method_of(method), url);
    while (str_cut(rest, '\n', &line, &rest) && line.len) {
        if (!str_cut(line, ':', &key, &value))
            continue;
        value = arena_str(&request.arena, str_trim(value));
        if (str_is(key, "accept"))
            request.accept = value;
        else if (str_is(key, "content-type"))
            request.content_type = value;
    }
    buf_add_str(&request.body, rest);
    request_handle(&request);
    for (int i = 0; i < 64 && the_api->retries.len; i++)
        write_run_retries(the_api);
    CHECK(request.outcome != OUTCOME_PENDING || request.stream);
    if (request.outcome == OUTCOME_STREAM)
        read_stream(&request);
    else if (request.outcome == OUTCOME_READY && strcmp(request.answer_type, ANSWER_JSON) == 0 &&
             request.code != 304) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *doc;
        CHECK(request.code >= 200 && request.code < 600);
        CHECK(json_parse(&arena, buf_str(&request.answer), &doc, NULL) == 0);
    }
    request_done(&request);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size > 256 * 1024)
        return 0;
    begin();
    run((struct str){(const char *)data, size});
    core_check_invariants(the_core);
    end();
    return 0;
}
