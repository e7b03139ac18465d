#include "cmd/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#include "cmd/full.h"
#include "cmd/https.h"
#include "cmd/usage.h"
#include "core/words/release.h"

enum { CALL_TIMEOUT_MS = 60000, REPLY_MEMORY_MAX = 1 << 30, KEY_TEXT_MAX = 33, HANDSHAKES_MAX = 3 };
#define AGAIN_NS       (30 * NS_PER_SECOND) /* how long a request without an answer is sent again */
#define AGAIN_PAUSE_NS (50 * NS_PER_MS)     /* between two tries */

/* `phalanx` has no HTTPS: full.h. */
#pragma weak https_client_new
#pragma weak https_client_call
#pragma weak https_client_free

bool client_option(struct client_options *options, int letter, const char *value)
{
    switch (letter) {
    case 's':
        options->server = value;
        return true;
    case 'n':
        options->namespace_ = value;
        return true;
    case 'A':
        options->all_namespaces = true;
        return true;
    case 'h':
        options->help = true;
        return true;
    default:
        return false;
    }
}

const char *client_namespace(const struct client_options *options)
{
    if (options->all_namespaces)
        return NULL;
    return options->namespace_ ? options->namespace_ : "default";
}

void say(const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    fflush(stdout);
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    output_clean(&text, false);
    fprintf(stderr, "phalanx: %s%s%s\n", usage_command(), *usage_command() ? ": " : "",
            text.data ? text.data : "");
}

int64_t client_clock(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

int64_t client_wall(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

/* --- one handle -------------------------------------------------------------------------------- */

/* Returns the text of a quoted string without its quotes and backslashes (RFC 9110 section 5.6.4). */
static struct str unquote(struct buf *out, struct str text)
{
    struct str head, rest;
    if (str_cut(text, '"', &head, &rest))
        text = rest;
    if (text.len && text.data[text.len - 1] == '"')
        text.len--;
    for (size_t i = 0; i < text.len; i++) {
        i += text.data[i] == '\\' && i + 1 < text.len;
        buf_add_char(out, text.data[i]);
    }
    return buf_str(out);
}

static void warn(struct str warning)
{
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "warning: " STR_FORMAT "\n", STR_ARG(warning));
    output_clean(&text, false);
    fputs(text.data, stderr);
}

/* Prints the text of a header "Warning: 299 - "text"" (RFC 7234 section 5.5), as API servers send it. */
static void say_warning(struct client *client, struct str value)
{
    struct buf plain BUF_CLEANUP = {0};
    struct str text = unquote(&plain, value);
    bool image = str_starts(text, STR("container image "));
    if (!image || !client->image_said)
        warn(text);
    client->image_said |= image;
}

/* Chooses the client for the server's URL. A failure ends the process, since no command has begun anything
 * yet. */
static void connect_to(struct client *client)
{
    struct error error;
    if (str_starts(buf_str(&client->server), STR("http://"))) {
        if (http_client_new(buf_str(&client->server), &client->http, &error) < 0) {
            say("%s", error.text);
            exit(EXIT_USAGE);
        }
        return;
    }
    if (!https_client_new)
        exit(full_run());
    client->https = https_client_new(client);
}

/* Keeps the first server of a comma-separated list to which a connection can be made, or else the last. Each
 * server forwards to the controller that leads. */
static void choose_server(struct buf *server)
{
    struct str rest = buf_str(server), one = rest, tail;
    struct buf chosen = {0};
    while (rest.len > 0) {
        bool more = str_cut(rest, ',', &one, &tail);
        one = more ? one : rest;
        rest = more ? tail : (struct str){0};
        buf_clear(&chosen);
        if (!memmem(one.data, one.len, "://", 3))
            buf_add_str(&chosen, STR("http://"));
        buf_add_str(&chosen, one);
        if (rest.len == 0 || http_reachable(buf_str(&chosen), CLIENT_CONNECT_MS))
            break;
    }
    buf_done(server);
    *server = chosen;
}

static void choose_and_connect(struct client *client)
{
    if (memchr(client->server.data, ',', client->server.len))
        choose_server(&client->server);
    while (client->server.len && client->server.data[client->server.len - 1] == '/')
        client->server.data[--client->server.len] = 0;
    connect_to(client);
}

int client_open(struct client *client, const struct client_options *options)
{
    const char *server = options->server ? options->server : getenv("PHALANX_SERVER");
    *client = (struct client){.ca_fd = -1, .cert_fd = -1, .key_fd = -1};
    if (server && !*server)
        server = NULL;
    if (!client_read_config(client, server))
        exit(EXIT_FAILED); /* no command has begun anything yet */
    if (client->server.len == 0) {
        server = server ? server : CLIENT_SERVER_DEFAULT;
        if (!strstr(server, "://"))
            buf_add_str(&client->server, STR("http://"));
        buf_add_str(&client->server, str_from(server));
    }
    buf_add_str(&client->servers, buf_str(&client->server));
    choose_and_connect(client);
    return EXIT_OK;
}

static void disconnect(struct client *client)
{
    http_client_free(client->http);
    if (client->https)
        https_client_free(client->https);
    client->http = NULL;
    client->https = NULL;
}

void client_close(struct client *client)
{
    int files[] = {client->ca_fd, client->cert_fd, client->key_fd};
    disconnect(client);
    buf_done(&client->server);
    buf_done(&client->servers);
    buf_done(&client->bearer);
    for (size_t i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
}

/* Returns true if the server speaks plain HTTP: it breaks the handshake and answers a plain request, which a
 * TLS server answers with 400 at most. */
static bool answers_without_tls(const struct client *client)
{
    struct buf url BUF_CLEANUP = {0};
    struct str server = buf_str(&client->server), https = STR("https://");
    struct http_client *http;
    struct error error;
    int code = 0;
    if (!str_starts(server, https))
        return false;
    buf_printf(&url, "http://" STR_FORMAT,
               STR_ARG(((struct str){server.data + https.len, server.len - https.len})));
    if (http_client_new(buf_str(&url), &http, &error) < 0)
        return false;
    struct http_request request = {
        .path = STR("/version"), .timeout_ms = CLIENT_CONNECT_MS, .connect_ms = CLIENT_CONNECT_MS};
    bool answers = http_client_call(http, &request, &code, &error) == HTTP_ANSWERED && code != 400;
    http_client_free(http);
    return answers;
}

static int unreachable(struct client *client, enum http_result result, const struct error *error)
{
    bool tls = !client->quiet && client->http && (result == HTTP_NOT_HTTP || result == HTTP_BROKE) &&
               http_client_meets_tls(client->http, CLIENT_CONNECT_MS);
    if (tls)
        say("%s: it speaks HTTPS; set PHALANX_CONFIG to a kubeconfig file for it (`phalanx up` "
            "writes DIR/kubeconfig)",
            client->server.data);
    else if (!client->quiet && result == HTTP_NO_TLS && answers_without_tls(client))
        say("%s: it speaks plain HTTP, without TLS; name it as http:// with --server, PHALANX_SERVER or in "
            "the kubeconfig file",
            client->server.data);
    else if (!client->quiet)
        say("no controller answers at %s: %s", client->server.data, error->text);
    return EXIT_UNREACHABLE;
}

/* --- calls ------------------------------------------------------------------------------------- */

/* An exchange with the server: the context of its callbacks. */
struct exchange {
    struct client *client;
    struct client_reply *reply;  /* a call's, else NULL */
    struct streaming *streaming; /* a stream's, else NULL */
};

static void on_field(void *context, struct str name, struct str value)
{
    struct exchange *exchange = context;
    if (name.len == 7 && strncasecmp(name.data, "warning", 7) == 0)
        say_warning(exchange->client, value);
}

static enum http_result perform(struct client *client, struct http_request *request, int *ret_code,
                                struct error *error)
{
    request->agent = this_release.user_agent;
    request->bearer = client->bearer.data;
    request->connect_ms = CLIENT_CONNECT_MS;
    request->on_field = on_field;
    if (client->https)
        return https_client_call(client->https, request, ret_code, error);
    return http_client_call(client->http, request, ret_code, error);
}

static bool on_body(void *context, int code, struct str bytes)
{
    struct exchange *exchange = context;
    buf_add_str(&exchange->reply->text, bytes);
    return exchange->reply->text.len <= REPLY_MEMORY_MAX;
}

/* Returns true if the controller ended before it answered. A handshake that fails because the server is
 * ending looks like one that the server refuses; the latter fails HANDSHAKES_MAX times in a row. */
static bool went_unanswered(struct client *client, const struct http_request *call, enum http_result result,
                            int handshakes)
{
    if (call->resent_ms > 0 && result == HTTP_NO_SERVER)
        return true; /* the server is not back yet */
    if (result == HTTP_NO_TLS)
        return handshakes < HANDSHAKES_MAX && !answers_without_tls(client);
    if (!client->http)
        return result == HTTP_BROKE;
    return (result == HTTP_BROKE || result == HTTP_NOT_HTTP) && /* silence is no answer in HTTP */
           !http_client_meets_tls(client->http, CLIENT_CONNECT_MS);
}

static void make_key(char ret_key[KEY_TEXT_MAX])
{
    uint8_t bytes[(KEY_TEXT_MAX - 1) / 2];
    CHECK(getrandom(bytes, sizeof bytes, 0) == sizeof bytes); /* a request this small is never cut short */
    for (size_t i = 0; i < sizeof bytes; i++)
        snprintf(ret_key + 2 * i, 3, "%02x", bytes[i]);
}

/* Performs a request, a write with an idempotency key, and repeats it while there is no answer. */
static enum http_result perform_until_answered(struct client *client, struct http_request *call,
                                               struct client_reply *reply, struct error *error)
{
    char key[KEY_TEXT_MAX];
    bool writes = call->method && strcmp(call->method, "GET") != 0;
    make_key(key);
    call->key = writes ? key : NULL;
    const struct timespec pause = {.tv_nsec = AGAIN_PAUSE_NS};
    int64_t first_ns = client_clock();
    int handshakes = 0;
    for (;;) {
        enum http_result result = perform(client, call, &reply->code, error);
        int64_t spent_ns = client_clock() - first_ns;
        handshakes = result == HTTP_NO_TLS ? handshakes + 1 : 0;
        if (!went_unanswered(client, call, result, handshakes) || spent_ns >= AGAIN_NS)
            return result;
        if (call->resent_ms == 0 && !client->quiet)
            say("the controller went before it answered; the request is sent again%s",
                writes ? ", and carried out once" : "");
        nanosleep(&pause, NULL);
        call->resent_ms = (client_clock() - first_ns) / NS_PER_MS + 1;
        buf_clear(&reply->text);
        disconnect(client);
        buf_clear(&client->server);
        buf_add_str(&client->server, buf_str(&client->servers));
        choose_and_connect(client);
    }
}

int client_call(struct client *client, const struct client_request *request, struct client_reply *ret_reply)
{
    *ret_reply = (struct client_reply){.arena = {.limit_bytes = REPLY_MEMORY_MAX}};
    struct exchange exchange = {.client = client, .reply = ret_reply};
    struct http_request call = {.method = request->method,
                                .path = request->path,
                                .accept = request->accept,
                                .content_type = request->content_type,
                                .body = request->body,
                                .timeout_ms = request->timeout_ms ? request->timeout_ms : CALL_TIMEOUT_MS,
                                .context = &exchange,
                                .on_body = on_body};
    struct error error = {0};
    enum http_result result = perform_until_answered(client, &call, ret_reply, &error);
    if (result != HTTP_ANSWERED) {
        if (result == HTTP_STOPPED)
            error_set(&error, ERROR_LIMIT, "the answer is larger than %d bytes", REPLY_MEMORY_MAX);
        client_reply_done(ret_reply);
        return unreachable(client, result, &error);
    }
    if (json_parse(&ret_reply->arena, buf_str(&ret_reply->text), &ret_reply->doc, NULL) < 0)
        ret_reply->doc = NULL;
    return EXIT_OK;
}

void client_reply_done(struct client_reply *reply)
{
    buf_done(&reply->text);
    arena_done(&reply->arena);
    reply->doc = NULL;
}

int client_refused(const struct client_reply *reply, const char *doing)
{
    struct str message = doc_text(reply->doc, "message");
    const struct doc *causes = doc_dotted(reply->doc, "details.causes");
    if (message.len == 0)
        message = (struct str){reply->text.data, reply->text.len < 200 ? reply->text.len : 200};
    if (doc_len(causes) == 0) {
        say("%s%s" STR_FORMAT, doing ? doing : "", doing ? ": " : "", STR_ARG(message));
    } else {
        say("%s%sthe object is not valid:", doing ? doing : "", doing ? ": " : "");
        for (size_t i = 0; i < doc_len(causes); i++) {
            struct str field = doc_text(doc_at(causes, i), "field"),
                       why = doc_text(doc_at(causes, i), "message");
            struct buf line BUF_CLEANUP = {0};
            buf_printf(&line, "  " STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(field), STR_ARG(why));
            output_clean(&line, false);
            fputs(line.data, stderr);
        }
    }
    if (reply->code == 401)
        fprintf(stderr, "  set PHALANX_CONFIG to a kubeconfig file with credentials (`phalanx up` writes "
                        "DIR/kubeconfig)\n");
    return reply->code == 404 ? EXIT_NOT_FOUND : EXIT_FAILED;
}

int client_do(struct client *client, const struct client_request *request, struct client_reply *ret_reply)
{
    int rc = client_call(client, request, ret_reply);
    if (rc != EXIT_OK || (ret_reply->code < 400 && ret_reply->doc))
        return rc;
    rc = client_refused(ret_reply, NULL);
    client_reply_done(ret_reply);
    return rc;
}

int client_get(struct client *client, struct str path, struct client_reply *ret_reply)
{
    return client_do(client, &(struct client_request){.path = path}, ret_reply);
}

/* --- streams ----------------------------------------------------------------------------------- */

struct streaming {
    struct buf text;
    client_line_fn *on_line;
    void *context;
    bool ended, refused;
};

static bool on_stream(void *context, int code, struct str bytes)
{
    struct streaming *streaming = ((struct exchange *)context)->streaming;
    buf_add_str(&streaming->text, bytes);
    if (code >= 400) {
        streaming->refused = true;
        return true;
    }
    size_t used = 0;
    char *end;
    while (!streaming->ended &&
           (end = memchr(streaming->text.data + used, '\n', streaming->text.len - used))) {
        struct str line = {streaming->text.data + used, (size_t)(end - streaming->text.data) - used};
        used += line.len + 1;
        streaming->ended = !streaming->on_line(streaming->context, line);
    }
    buf_drop_front(&streaming->text, used);
    return !streaming->ended;
}

static void on_tick(void *context)
{
    const struct client *client = ((struct exchange *)context)->client;
    client->on_tick(client->tick_context);
}

int client_stream(struct client *client, struct str path, const char *accept, int64_t timeout_ms,
                  client_line_fn *on_line, void *context, bool *ret_ended)
{
    struct streaming streaming = {.on_line = on_line, .context = context};
    struct exchange exchange = {.client = client, .streaming = &streaming};
    struct http_request call = {.path = path,
                                .accept = accept,
                                .timeout_ms = timeout_ms,
                                .context = &exchange,
                                .on_body = on_stream,
                                .on_tick = client->on_tick ? on_tick : NULL};
    struct error error = {0};
    int code;
    enum http_result result = perform(client, &call, &code, &error);
    *ret_ended = streaming.ended;
    if (streaming.refused) {
        struct client_reply reply = {.code = code, .text = streaming.text};
        if (json_parse(&reply.arena, buf_str(&reply.text), &reply.doc, NULL) < 0)
            reply.doc = NULL;
        int rc = code == 410 ? EXIT_OK : client_refused(&reply, NULL);
        client_reply_done(&reply);
        return rc;
    }
    buf_done(&streaming.text);
    if (result == HTTP_TIMED_OUT)
        return EXIT_TIMEOUT;
    return result == HTTP_NO_SERVER ? unreachable(client, result, &error) : EXIT_OK;
}

/* --- watching ---------------------------------------------------------------------------------- */

struct watching {
    watch_fn *on_object;
    void *context;
};

static bool on_change(void *context, struct str line)
{
    struct watching *watching = context;
    struct arena arena ARENA_CLEANUP = {.limit_bytes = REPLY_MEMORY_MAX};
    struct doc *change;
    if (json_parse(&arena, line, &change, NULL) < 0)
        return true;
    struct str type = doc_text(change, "type");
    if (!str_is(type, "ADDED") && !str_is(type, "MODIFIED") && !str_is(type, "DELETED"))
        return true;
    return watching->on_object(watching->context, arena_strdup(&arena, type), doc_get(change, "object"));
}

static void watch_path(struct buf *out, struct str list_path, struct str query, struct str version)
{
    buf_printf(out, STR_FORMAT "?watch=true&resourceVersion=" STR_FORMAT "%s" STR_FORMAT, STR_ARG(list_path),
               STR_ARG(version), query.len ? "&" : "", STR_ARG(query));
}

int client_watch(struct client *client, struct str list_path, struct str query, int64_t deadline_ns,
                 watch_fn *on_object, void *context)
{
    struct watching watching = {on_object, context};
    for (bool first = true;; first = false) {
        struct buf path BUF_CLEANUP = {0};
        struct client_reply list;
        buf_printf(&path, STR_FORMAT "%s" STR_FORMAT, STR_ARG(list_path), query.len ? "?" : "",
                   STR_ARG(query));
        int rc = client_get(client, buf_str(&path), &list);
        if (rc == EXIT_UNREACHABLE && !first && client_clock() < deadline_ns) {
            /* The controller is being restarted, and its tasks continue: so does the watch. */
            client->quiet = true;
            nanosleep(&(struct timespec){.tv_nsec = 300 * NS_PER_MS}, NULL);
            continue;
        }
        client->quiet = false;
        if (rc != EXIT_OK)
            return rc;
        const struct doc *items = doc_get(list.doc, "items");
        bool ended = !on_object(context, "BEGIN", NULL);
        for (size_t i = 0; i < doc_len(items) && !ended; i++)
            ended = !on_object(context, "ADDED", doc_at(items, i));
        ended = ended || !on_object(context, "SYNCED", NULL);
        buf_clear(&path);
        watch_path(&path, list_path, query, doc_text(list.doc, "metadata.resourceVersion"));
        client_reply_done(&list);
        if (ended)
            return EXIT_OK;
        int64_t left_ns = deadline_ns - client_clock();
        if (left_ns <= 0)
            return EXIT_TIMEOUT;
        int64_t left_ms = deadline_ns == INT64_MAX ? 0 : left_ns / NS_PER_MS + 1;
        rc = client_stream(client, buf_str(&path), NULL, left_ms, on_change, &watching, &ended);
        if (ended || (rc != EXIT_OK && rc != EXIT_UNREACHABLE))
            return ended ? EXIT_OK : rc;
    }
}
