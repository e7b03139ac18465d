/* podlog.c - GET pods/<name>/log: plain text, as it arrives from the machine's agent.
 *
 * The answer begins with the first bytes, so that an agent that cannot read the log still leads to an error
 * Status.
 */
#include <stdio.h>

#include "host/api/hold.h"
#include "host/api/podexec.h"

struct api_stream {
    struct body_stream stream; /* first: the stream is freed through it */
    struct api *api;
    struct api_request *request; /* NULL: the answer has begun */
    struct hold hold;
    uint64_t tag;
    struct str container; /* in the request's arena; valid until the answer begins */
    log_sink_fn *sink;    /* replaces the answer; NULL: none */
    void *sink_context;
    struct buf text;
    size_t sent;
    bool begun, ended, started; /* the answer has begun; the host has passed `end`; the host was asked */
};

static int64_t stream_read(struct body_stream *body, char *data, size_t max)
{
    struct api_stream *stream = (struct api_stream *)body;
    size_t left = stream->text.len - stream->sent;
    if (left == 0) {
        stream->sent = 0;
        buf_done(&stream->text);
        return stream->ended ? -1 : 0;
    }
    size_t len = left < max ? left : max;
    memcpy(data, stream->text.data + stream->sent, len);
    stream->sent += len;
    if (stream->sent > 256 * 1024) {
        buf_drop_front(&stream->text, stream->sent);
        stream->sent = 0;
    }
    return (int64_t)len;
}

static void stream_free(struct body_stream *body)
{
    struct api_stream *stream = (struct api_stream *)body;
    if (stream->started && !stream->ended && !stream->api->closing)
        stream->api->hooks.logs_closed(stream->api->hooks.context, stream);
    hold_done(&stream->hold);
    stream->api->stats.streams--;
    buf_done(&stream->text);
    mem_free(stream);
}

/* Begins the answer, as a stream. */
static void begin_answer(struct api_stream *stream)
{
    struct api_request *request = stream->request;
    if (stream->begun) {
        transport_wake(stream->stream.transport);
        return;
    }
    stream->begun = true;
    stream->request = NULL;
    (void)answer_begin(request, 200);
    request->answer_type = "text/plain";
    request->outcome = OUTCOME_STREAM;
    request_finish(request);
}

struct api_stream *log_sink_open(struct api_request *request, log_sink_fn *sink, void *context)
{
    struct api_stream *stream = mem_alloc(sizeof *stream);
    stream->request = request;
    stream->api = request->api;
    stream->sink = sink;
    stream->sink_context = context;
    stream->api->stats.streams++;
    return stream;
}

static void sink_free(struct api_stream *stream)
{
    stream->api->stats.streams--;
    mem_free(stream);
}

void log_sink_close(struct api_stream *stream)
{
    stream->api->hooks.logs_closed(stream->api->hooks.context, stream);
    sink_free(stream);
}

static int64_t sink_data(struct api_stream *stream, struct str bytes, bool end, const char *error_text)
{
    int64_t waiting = stream->sink(stream->sink_context, bytes, end, error_text);
    bool cut = !end && waiting > 2 * (int64_t)API_STREAM_BYTES_MAX;
    if (cut)
        stream->sink(stream->sink_context, STR(""), true, "the log was cut here: its reader is too slow");
    if (cut || end)
        sink_free(stream);
    return cut ? -1 : waiting;
}

int64_t api_log_data(struct api_stream *stream, struct str bytes, bool end, const char *error_text)
{
    struct api_request *request = stream->request;
    if (stream->sink)
        return sink_data(stream, bytes, end, error_text);
    CHECK(!stream->ended);
    buf_add_str(&stream->text, bytes);
    stream->ended = end;
    bool failed = end && error_text && *error_text;
    if (failed && !stream->begun && str_is(STR("previous terminated container not found"), error_text)) {
        answer_status(request, 400, "BadRequest",
                      "previous terminated container \"" STR_FORMAT "\" in pod \"" STR_FORMAT "\" not found",
                      STR_ARG(stream->container), STR_ARG(request->name));
        request_finish(request);
        return 0;
    }
    if (failed && !stream->begun && str_is(STR(LOG_NOT_KEPT), error_text)) {
        answer_status(request, 404, "NotFound",
                      "no log of attempt " STR_FORMAT " of pod \"" STR_FORMAT
                      "\" is kept on the machines that are connected",
                      STR_ARG(request_query(request, "attempt")), STR_ARG(request->name));
        request_finish(request);
        return 0;
    }
    if (failed && !stream->begun && stream->text.len == 0) {
        answer_status(request, 500, "InternalError", "%s", error_text);
        request_finish(request);
        return 0;
    }
    if (failed)
        buf_printf(&stream->text, "%sphalanx: the log ends here: %s\n",
                   stream->text.len && stream->text.data[stream->text.len - 1] != '\n' ? "\n" : "",
                   error_text);
    bool cut = !end && stream->text.len - stream->sent > 2 * (size_t)API_STREAM_BYTES_MAX;
    if (cut) {
        buf_add_str(&stream->text, STR("\nphalanx: the log was cut here: its reader is too slow\n"));
        stream->ended = true;
    }
    int64_t waiting = (int64_t)(stream->text.len - stream->sent);
    begin_answer(stream);
    return cut ? -1 : waiting;
}

/* Ends the log of a reader who has lost the right to it. */
static void on_denied(struct hold *hold, int code)
{
    struct api_stream *stream = container_of(hold, struct api_stream, hold);
    if (stream->ended)
        return;
    stream->api->hooks.logs_closed(stream->api->hooks.context, stream);
    stream->ended = true;
    if (stream->begun) {
        buf_printf(&stream->text, "\nphalanx: the log ends here: %s\n", guard_ended_text(code));
        transport_wake(stream->stream.transport);
    } else {
        guard_answer_ended(stream->request, code);
        request_finish(stream->request);
    }
}

void api_stream_set_tag(struct api_stream *stream, uint64_t tag)
{
    stream->tag = tag;
}

uint64_t api_stream_tag(const struct api_stream *stream)
{
    return stream->tag;
}

static bool number_of(struct api_request *request, const char *name, int64_t *ret_value)
{
    struct str text = request_query(request, name);
    if (text.len == 0 || str_to_i64(text, 0, INT64_MAX / NS_PER_SECOND, ret_value))
        return true;
    answer_status(request, 400, "BadRequest", "%s is a number that is not negative", name);
    return false;
}

static bool read_options(struct api_request *request, struct api_log_options *ret_options)
{
    struct api_log_options options = {.tail_lines = -1};
    int64_t since_s = -1, attempt = -1;
    struct str since = request_query(request, "sinceTime");
    options.follow = request_flag(request, "follow");
    options.previous = request_flag(request, "previous");
    if (!number_of(request, "tailLines", &options.tail_lines) ||
        !number_of(request, "sinceSeconds", &since_s) ||
        !number_of(request, "limitBytes", &options.limit_bytes) || !number_of(request, "attempt", &attempt))
        return false;
    options.attempt = attempt < INT32_MAX ? (int32_t)attempt : INT32_MAX;
    if (since.len && !time_parse(since, &options.since_ns)) {
        answer_status(request, 400, "BadRequest", "sinceTime is an RFC 3339 time");
        return false;
    }
    if (since_s >= 0)
        options.since_ns = request_now(request) - since_s * NS_PER_SECOND;
    options.timestamps = request_flag(request, "timestamps");
    *ret_options = options;
    return true;
}

void handle_log(struct api_request *request)
{
    struct object_ref object;
    struct api_log_options options;
    if (!resource_get(request->resource, request_core(request), request->namespace_, request->name,
                      &object)) {
        answer_not_found(request);
        return;
    }
    const struct task *task = object.task;
    struct str ours;
    if (!pod_container(request, task, &ours) || !read_options(request, &options))
        return;
    if (options.attempt == task->attempt)
        options.attempt = -1;
    if (!options.previous && options.attempt < 0 && !pod_container_started(request, task, ours))
        return;
    options.container = ours;
    struct api_stream *stream = mem_alloc(sizeof *stream);
    stream->stream = (struct body_stream){stream_read, stream_free, request->transport};
    stream->request = request;
    stream->api = request->api;
    stream->container = arena_str(&request->arena, ours);
    stream->started = true;
    request->stream = &stream->stream;
    request->api->stats.streams++;
    request->outcome = OUTCOME_PENDING;
    hold_begin(&stream->hold, request, on_denied);
    request->api->hooks.logs(request->api->hooks.context, task, &options, stream);
}
