/* podexec.c - pods/<name>/exec and pods/<name>/attach: a command's channels over a websocket (docs/api.md).
 *
 * Subprotocols v5.channel.k8s.io and v4.channel.k8s.io: the first byte of each binary message is the channel.
 * A request is refused before the upgrade, with a Status, if possible. Later failures are sent as a Status on
 * the error channel, after which the connection closes.
 */
#include <stdio.h>

#include "host/api/hold.h"
#include "host/api/podexec.h"
#include "host/api/session.h"

enum channel {
    CHANNEL_INPUT = 0,
    CHANNEL_OUTPUT = 1,
    CHANNEL_ERRORS = 2,
    CHANNEL_STATUS = 3,
    CHANNEL_RESIZE = 4,
    CHANNEL_CLOSE = 255, /* v5 only: the next byte is the channel to close */
    CHANNEL_NONE = 256,
};

enum { RESIZE_BYTES_MAX = 256, ARGUMENTS_MAX = 1024 };

struct api_exec {
    struct api *api;
    struct api_request *request; /* holds our strings; lives as long as the exec */
    struct session *session;     /* NULL: not begun, or ended */
    struct api_stream *log;      /* the log that an attach reads */
    obj_id task;
    bool attach, output, errors, v5;
    bool open; /* the host is running the command */
    struct hold hold;
    struct api_exec_options options;
    int channel; /* channel of the incoming message */
    char resize[RESIZE_BYTES_MAX];
    size_t resize_len;
    struct buf input; /* input that the host has not asked for yet */
    bool input_over, input_end_sent;
    uint64_t credit;  /* bytes of input that the host will take */
    uint64_t unacked; /* output taken, but not yet returned as credit */
    uint64_t allowed; /* output that the host may still pass */
};

/* --- the end -------------------------------------------------------------------------------------- */

/* Writes the result that remote command clients expect: success, NonZeroExitCode with a cause, or a
 * failure. */
static void write_result(struct buf *out, int exit_code, const char *error_text)
{
    struct json_writer json = {.out = out};
    json_begin_object(&json);
    json_key(&json, "metadata");
    json_begin_object(&json);
    json_end_object(&json);
    json_pair_text(&json, "status", exit_code == 0 ? "Success" : "Failure");
    char text[ERROR_TEXT_MAX + 64];
    if (exit_code > 0) {
        snprintf(text, sizeof text, "command terminated with non-zero exit code: exit status %d", exit_code);
        json_pair_text(&json, "message", text);
        json_pair_text(&json, "reason", "NonZeroExitCode");
        json_key(&json, "details");
        json_begin_object(&json);
        json_key(&json, "causes");
        json_begin_array(&json);
        json_begin_object(&json);
        json_pair_text(&json, "reason", "ExitCode");
        snprintf(text, sizeof text, "%d", exit_code);
        json_pair_text(&json, "message", text);
        json_end_object(&json);
        json_end_array(&json);
        json_end_object(&json);
    } else if (exit_code < 0) {
        snprintf(text, sizeof text, "Internal error occurred: %s", error_text);
        json_pair_text(&json, "message", text);
        json_pair_text(&json, "reason", "InternalError");
        json_pair_int(&json, "code", 500);
    }
    json_end_object(&json);
}

void api_exec_end(struct api_exec *exec, int exit_code, const char *error_text)
{
    exec->open = false;
    hold_done(&exec->hold);
    if (!exec->session)
        return;
    struct buf text BUF_CLEANUP = {0};
    write_result(&text, exit_code, error_text ? error_text : "");
    session_send(exec->session, CHANNEL_STATUS, buf_str(&text));
    session_end(exec->session, WEBSOCKET_NORMAL, STR(""));
}

/* --- output --------------------------------------------------------------------------------------- */

bool api_exec_output(struct api_exec *exec, bool errors, struct str bytes)
{
    if (bytes.len > exec->allowed)
        return false;
    exec->allowed -= bytes.len;
    exec->unacked += bytes.len;
    if (exec->session && (errors ? exec->errors : exec->output))
        session_send(exec->session, errors ? CHANNEL_ERRORS : CHANNEL_OUTPUT, bytes);
    return true;
}

static void on_written(void *context)
{
    struct api_exec *exec = context;
    if (!exec->open || exec->attach || exec->unacked == 0 ||
        session_queued(exec->session) > API_EXEC_WINDOW_BYTES / 2)
        return;
    uint64_t bytes = exec->unacked;
    exec->unacked = 0;
    exec->allowed += bytes;
    exec->api->hooks.exec_credit(exec->api->hooks.context, exec, bytes);
}

/* --- input ---------------------------------------------------------------------------------------- */

static void pass_input(struct api_exec *exec)
{
    const struct api_hooks *hooks = &exec->api->hooks;
    size_t len = exec->input.len < exec->credit ? exec->input.len : (size_t)exec->credit;
    bool end = exec->input_over && len == exec->input.len && !exec->input_end_sent;
    if (!exec->open || (len == 0 && !end))
        return;
    exec->credit -= len;
    exec->input_end_sent = end;
    hooks->exec_input(hooks->context, exec, (struct str){exec->input.data, len}, end);
    buf_drop_front(&exec->input, len);
}

static void take_input(struct api_exec *exec, struct str bytes)
{
    if (exec->attach || !exec->options.input || exec->input_over)
        return;
    buf_add_str(&exec->input, bytes);
    pass_input(exec);
    session_pause(exec->session, exec->input.len > 0);
}

void api_exec_credit(struct api_exec *exec, uint64_t bytes)
{
    exec->credit += bytes;
    pass_input(exec);
    if (exec->session)
        session_pause(exec->session, exec->input.len > 0);
}

static void take_resize(struct api_exec *exec)
{
    ARENA_CLEANUP struct arena arena = {.limit_bytes = 65536};
    struct doc *size;
    struct str text = {exec->resize, exec->resize_len};
    if (!exec->open || exec->attach || json_parse(&arena, text, &size, NULL) < 0)
        return;
    int64_t width = doc_int(doc_get(size, "Width"), -1), height = doc_int(doc_get(size, "Height"), -1);
    if (width < 0 || width > UINT16_MAX || height < 0 || height > UINT16_MAX)
        return;
    const struct api_hooks *hooks = &exec->api->hooks;
    hooks->exec_resize(hooks->context, exec, (uint16_t)width, (uint16_t)height);
}

static void on_data(void *context, struct str bytes, bool first, bool last)
{
    struct api_exec *exec = context;
    if (first) {
        exec->channel = bytes.len ? (uint8_t)bytes.data[0] : CHANNEL_NONE;
        exec->resize_len = 0;
        if (bytes.len)
            bytes = (struct str){bytes.data + 1, bytes.len - 1};
    }
    if (exec->channel == CHANNEL_INPUT && bytes.len) {
        take_input(exec, bytes);
    } else if (exec->channel == CHANNEL_RESIZE) {
        size_t room = sizeof exec->resize - exec->resize_len, len = bytes.len < room ? bytes.len : room;
        if (len)
            memcpy(exec->resize + exec->resize_len, bytes.data, len);
        exec->resize_len += len;
        if (last)
            take_resize(exec);
    } else if (exec->channel == CHANNEL_CLOSE && exec->v5 && bytes.len && bytes.data[0] == CHANNEL_INPUT) {
        exec->input_over = true;
        pass_input(exec);
    }
}

/* --- the host ------------------------------------------------------------------------------------- */

/* Tells the host that the client no longer needs the command or log. */
static void abandon(struct api_exec *exec)
{
    bool open = exec->open;
    exec->open = false;
    if (!open || exec->api->closing)
        return;
    if (exec->log)
        log_sink_close(exec->log);
    else
        exec->api->hooks.exec_closed(exec->api->hooks.context, exec);
    exec->log = NULL;
}

static int64_t on_log(void *context, struct str bytes, bool end, const char *error_text)
{
    struct api_exec *exec = context;
    if (end)
        exec->log = NULL;
    if (bytes.len && exec->session && exec->output)
        session_send(exec->session, CHANNEL_OUTPUT, bytes);
    if (end)
        api_exec_end(exec, error_text && *error_text ? -1 : 0, error_text);
    return exec->session && !end ? (int64_t)session_queued(exec->session) : 0;
}

static void begin(struct api_exec *exec)
{
    const struct api_hooks *hooks = &exec->api->hooks;
    const struct task *task = jobs_find_task(core_jobs(hooks->core(hooks->context)), exec->task);
    exec->open = true;
    exec->allowed = API_EXEC_WINDOW_BYTES;
    /* The client waits for a first message to know that the connection works. */
    session_send(exec->session, CHANNEL_OUTPUT, STR(""));
    if (!task) {
        api_exec_end(exec, -1, "the pod has been deleted");
    } else if (exec->attach) {
        struct api_log_options options = {
            .container = exec->options.container, .follow = true, .attempt = -1, .tail_lines = 0};
        exec->log = log_sink_open(exec->request, on_log, exec);
        hooks->logs(hooks->context, task, &options, exec->log);
    } else {
        hooks->exec(hooks->context, task, &exec->options, exec);
    }
}

/* Ends the exec of a user who has lost the right to it, as if the client had left. */
static void on_denied(struct hold *hold, int code)
{
    struct api_exec *exec = container_of(hold, struct api_exec, hold);
    abandon(exec);
    api_exec_end(exec, -1, guard_ended_text(code));
}

/* --- the connection ------------------------------------------------------------------------------- */

static void on_closed(void *context)
{
    struct api_exec *exec = context;
    exec->session = NULL;
    abandon(exec);
}

static void on_release(void *context)
{
    struct api_exec *exec = context;
    exec->session = NULL;
    request_release_upgrade(exec->request);
}

static const struct session_handlers handlers = {on_data, on_written, on_closed, on_release};

void exec_upgraded(struct api_exec *exec, int fd, struct str first)
{
    exec->session = session_new(exec->api->loop, fd, first, &handlers, exec);
    hold_begin(&exec->hold, exec->request, on_denied);
    begin(exec);
}

void exec_drop(struct api_exec *exec)
{
    struct session *session = exec->session;
    exec->session = NULL;
    abandon(exec);
    if (session)
        session_drop(session);
}

void exec_free(struct api_exec *exec)
{
    abandon(exec);
    hold_done(&exec->hold);
    exec->api->stats.streams--;
    buf_done(&exec->input);
    mem_free(exec);
}

/* --- the request ---------------------------------------------------------------------------------- */

/* Returns the newest of the offered protocols that we know, or NULL. */
static const char *choose_protocol(struct str offered)
{
    const char *found = NULL;
    struct str part, rest;
    while (offered.len) {
        if (!str_cut(offered, ',', &part, &rest)) {
            part = offered;
            rest = (struct str){0};
        }
        offered = rest;
        part = str_trim(part);
        if (str_is(part, "v5.channel.k8s.io"))
            return "v5.channel.k8s.io";
        if (str_is(part, "v4.channel.k8s.io"))
            found = "v4.channel.k8s.io";
    }
    return found;
}

static bool equal_fold(struct str text, const char *word)
{
    size_t len = strlen(word);
    for (size_t i = 0; i < len && i < text.len; i++)
        if ((text.data[i] | 0x20) != word[i])
            return false;
    return text.len == len;
}

static bool check_upgrade(struct api_request *request, const char **ret_protocol)
{
    const struct request_upgrade *upgrade = &request->upgrade;
    if (!equal_fold(upgrade->to, "websocket")) {
        answer_status(
            request, 400, "BadRequest",
            "Upgrade request required: exec and attach go over a websocket (kubectl 1.30 or later), "
            "not over \"" STR_FORMAT "\"",
            STR_ARG(upgrade->to));
        return false;
    }
    if (!str_is(upgrade->version, "13") || !websocket_key_valid(upgrade->key)) {
        answer_status(request, 400, "BadRequest", "the websocket handshake is not that of RFC 6455");
        return false;
    }
    *ret_protocol = choose_protocol(upgrade->protocols);
    if (!*ret_protocol)
        answer_status(
            request, 400, "BadRequest",
            "unable to upgrade: none of the subprotocols is v5.channel.k8s.io or v4.channel.k8s.io");
    return *ret_protocol != NULL;
}

static bool read_command(struct api_request *request, struct api_exec_options *options)
{
    options->argv = ARENA_ARRAY(&request->arena, struct str, request->query_count);
    for (size_t i = 0; i < request->query_count; i++)
        if (str_is(request->query[i].name, "command"))
            options->argv[options->argc++] = request->query[i].value;
    if (options->argc == 0)
        answer_status(request, 400, "BadRequest", "you must specify at least one command for the container");
    return options->argc > 0;
}

void handle_exec(struct api_request *request, bool attach)
{
    struct object_ref object;
    struct api_exec_options options = {.tty = request_flag(request, "tty"),
                                       .input = request_flag(request, "stdin")};
    const char *protocol = NULL;
    if (!resource_get(request->resource, request_core(request), request->namespace_, request->name,
                      &object)) {
        answer_not_found(request);
        return;
    }
    const struct task *task = object.task;
    if (!pod_container(request, task, &options.container) || (!attach && !read_command(request, &options)))
        return;
    bool output = request_flag(request, "stdout"), errors = request_flag(request, "stderr");
    if (!output && !errors && !options.input) {
        answer_status(request, 400, "BadRequest", "you must specify at least one of stdin, stdout, stderr");
        return;
    }
    if (!pod_container_runs(request, task, options.container))
        return;
    if (!check_upgrade(request, &protocol))
        return;
    struct api_exec *exec = mem_alloc(sizeof *exec);
    *exec = (struct api_exec){.api = request->api,
                              .request = request,
                              .task = task->uid,
                              .attach = attach,
                              .output = output,
                              .errors = errors,
                              .v5 = strcmp(protocol, "v5.channel.k8s.io") == 0,
                              .options = options,
                              .channel = CHANNEL_NONE};
    exec->options.container = arena_str(&request->arena, options.container);
    request->exec = exec;
    request->upgrade.protocol = protocol;
    request->api->stats.streams++;
    request->code = 101;
    request->outcome = OUTCOME_UPGRADE;
}
