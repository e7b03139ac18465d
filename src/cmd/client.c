#include "cmd/client.h"

#include "cmd/usage.h"
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_SERVER "http://127.0.0.1:7070"
enum { CONNECT_TIMEOUT_MS = 5000, CALL_TIMEOUT_MS = 60000, REPLY_MEMORY_MAX = 1 << 30 };

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
    va_list args;
    fflush(stdout);
    fprintf(stderr, "phalanx: %s%s", usage_command(), *usage_command() ? ": " : "");
    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
    fputc('\n', stderr);
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

/* The text of a quoted string without its quotes and backslashes (RFC 9110 section 5.6.4). */
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

/* Warning: 299 - "text" (RFC 7234 section 5.5), as the API server sends them. */
static size_t on_header(char *data, size_t size, size_t count, void *context)
{
    struct client *client = context;
    struct str line = str_trim((struct str){data, size * count});
    if (line.len < 8 || strncasecmp(line.data, "warning:", 8) != 0)
        return size * count;
    struct buf plain BUF_CLEANUP = {0};
    struct str text = unquote(&plain, (struct str){line.data + 8, line.len - 8});
    bool image = str_starts(text, STR("container image "));
    if (!image || !client->image_said)
        fprintf(stderr, "warning: " STR_FORMAT "\n", STR_ARG(text));
    client->image_said |= image;
    return size * count;
}

/* curl takes files; a kubeconfig has their contents, which lie in memory. */
static void set_file(CURL *curl, CURLoption option, int fd)
{
    char path[32];
    if (fd < 0)
        return;
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    curl_easy_setopt(curl, option, path);
}

static void set_common(struct client *client, CURL *curl)
{
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_USERAGENT, "phalanx/" PHX_VERSION);
    curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_header);
    curl_easy_setopt(curl, CURLOPT_HEADERDATA, client);
    curl_easy_setopt(curl, CURLOPT_TCP_KEEPALIVE, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    set_file(curl, CURLOPT_CAINFO, client->ca_fd);
    set_file(curl, CURLOPT_SSLCERT, client->cert_fd);
    set_file(curl, CURLOPT_SSLKEY, client->key_fd);
    if (client->ca_fd >= 0) /* that authority and no other */
        curl_easy_setopt(curl, CURLOPT_CAPATH, NULL);
    if (client->bearer.len) {
        curl_easy_setopt(curl, CURLOPT_HTTPAUTH, (long)CURLAUTH_BEARER);
        curl_easy_setopt(curl, CURLOPT_XOAUTH2_BEARER, client->bearer.data);
    }
}

int client_open(struct client *client, const struct client_options *options)
{
    const char *server = options->server ? options->server : getenv("PHALANX_SERVER");
    *client = (struct client){.ca_fd = -1, .cert_fd = -1, .key_fd = -1};
    if (!client_read_config(client, server && *server))
        exit(EXIT_FAILED); /* nothing was begun yet, in any command */
    if ((!server || !*server) && client->server.len == 0)
        server = DEFAULT_SERVER;
    if (server && *server) {
        if (!strstr(server, "://"))
            buf_add_str(&client->server, STR("http://"));
        buf_add_str(&client->server, str_from(server));
    }
    while (client->server.len && client->server.data[client->server.len - 1] == '/')
        client->server.data[--client->server.len] = 0;
    client->curl = curl_easy_init();
    CHECK(client->curl);
    return EXIT_OK;
}

void client_close(struct client *client)
{
    int files[] = {client->ca_fd, client->cert_fd, client->key_fd};
    curl_easy_cleanup(client->curl);
    buf_done(&client->server);
    buf_done(&client->bearer);
    for (size_t i = 0; i < 3; i++)
        if (files[i] >= 0)
            close(files[i]);
}

static void set_url(struct client *client, CURL *curl, struct str path)
{
    struct buf url BUF_CLEANUP = {0};
    buf_add_str(&url, buf_str(&client->server));
    buf_add_str(&url, path);
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
}

CURL *client_handle(struct client *client, struct str path)
{
    CURL *curl = curl_easy_init();
    CHECK(curl);
    set_common(client, curl);
    set_url(client, curl, path);
    return curl;
}

/* A server that ends plain HTTP without a word may be one that waits for a TLS handshake. */
static bool speaks_https(const struct client *client, CURLcode rc)
{
    struct buf url BUF_CLEANUP = {0};
    struct str plain = STR("http://"), server = buf_str(&client->server);
    if ((rc != CURLE_GOT_NOTHING && rc != CURLE_RECV_ERROR && rc != CURLE_WEIRD_SERVER_REPLY &&
         rc != CURLE_UNSUPPORTED_PROTOCOL) ||
        !str_starts(server, plain))
        return false;
    CURL *curl = curl_easy_init();
    CHECK(curl);
    buf_printf(&url, "https://" STR_FORMAT,
               STR_ARG(((struct str){server.data + plain.len, server.len - plain.len})));
    curl_easy_setopt(curl, CURLOPT_URL, url.data);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_CONNECT_ONLY, 1L);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)CONNECT_TIMEOUT_MS);
    /* Nothing is sent: whose certificate it is does not matter. */
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
    curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
    bool https = curl_easy_perform(curl) == CURLE_OK;
    curl_easy_cleanup(curl);
    return https;
}

static int unreachable(struct client *client, CURLcode rc)
{
    if (!client->quiet && speaks_https(client, rc))
        say("%s: it speaks HTTPS; set PHALANX_CONFIG to a kubeconfig file for it (`phalanx up --secure` "
            "writes DIR/kubeconfig)",
            client->server.data);
    else if (!client->quiet)
        say("no controller answers at %s: %s", client->server.data,
            client->error_text[0] ? client->error_text : curl_easy_strerror(rc));
    return EXIT_UNREACHABLE;
}

/* --- calls ------------------------------------------------------------------------------------- */

static size_t on_body(char *data, size_t size, size_t count, void *context)
{
    buf_add(context, data, size * count);
    return size * count;
}

static struct curl_slist *header_list(const struct client_request *request)
{
    struct curl_slist *headers = NULL;
    char text[512];
    snprintf(text, sizeof text, "Accept: %s", request->accept ? request->accept : "application/json");
    headers = curl_slist_append(headers, text);
    if (request->body.data) {
        snprintf(text, sizeof text, "Content-Type: %s",
                 request->content_type ? request->content_type : "application/json");
        headers = curl_slist_append(headers, text);
        headers = curl_slist_append(headers, "Expect:");
    }
    return headers;
}

int client_call(struct client *client, const struct client_request *request, struct client_reply *ret_reply)
{
    CURL *curl = client->curl;
    *ret_reply = (struct client_reply){.arena = {.limit_bytes = REPLY_MEMORY_MAX}};
    curl_easy_reset(curl);
    set_common(client, curl);
    set_url(client, curl, request->path);
    client->error_text[0] = 0;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error_text);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &ret_reply->text);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS,
                     (long)(request->timeout_ms ? request->timeout_ms : CALL_TIMEOUT_MS));
    if (request->body.data) {
        curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body.len);
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body.data);
    }
    if (request->method)
        curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, request->method);
    struct curl_slist *headers = header_list(request);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode rc = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    if (rc != CURLE_OK) {
        client_reply_done(ret_reply);
        return unreachable(client, rc);
    }
    curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &ret_reply->code);
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
            fprintf(stderr, "  " STR_FORMAT ": " STR_FORMAT "\n", STR_ARG(field), STR_ARG(why));
        }
    }
    return reply->code == 404 ? EXIT_NOT_FOUND : EXIT_FAILED;
}

int client_get(struct client *client, struct str path, struct client_reply *ret_reply)
{
    int rc = client_call(client, &(struct client_request){.path = path}, ret_reply);
    if (rc != EXIT_OK)
        return rc;
    if (ret_reply->code < 400 && ret_reply->doc)
        return EXIT_OK;
    rc = client_refused(ret_reply, NULL);
    client_reply_done(ret_reply);
    return rc;
}

/* --- streams ----------------------------------------------------------------------------------- */

struct streaming {
    struct buf text;
    client_line_fn *on_line;
    void *context;
    CURL *curl;
    bool ended, refused;
};

static size_t on_stream(char *data, size_t size, size_t count, void *context)
{
    struct streaming *streaming = context;
    long code = 0;
    curl_easy_getinfo(streaming->curl, CURLINFO_RESPONSE_CODE, &code);
    buf_add(&streaming->text, data, size * count);
    if (code >= 400) {
        streaming->refused = true;
        return size * count;
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
    return streaming->ended ? 0 : size * count;
}

static int on_wait(void *context, curl_off_t to_come, curl_off_t came, curl_off_t to_go, curl_off_t went)
{
    const struct client *client = context;
    (void)to_come, (void)came, (void)to_go, (void)went;
    client->on_tick(client->tick_context);
    return 0;
}

int client_stream(struct client *client, struct str path, const char *accept, int64_t timeout_ms,
                  client_line_fn *on_line, void *context, bool *ret_ended)
{
    CURL *curl = client->curl;
    struct streaming streaming = {.on_line = on_line, .context = context, .curl = curl};
    curl_easy_reset(curl);
    set_common(client, curl);
    set_url(client, curl, path);
    client->error_text[0] = 0;
    curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, client->error_text);
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_stream);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, &streaming);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)timeout_ms);
    if (client->on_tick) {
        curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
        curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_wait);
        curl_easy_setopt(curl, CURLOPT_XFERINFODATA, client);
    }
    struct curl_slist *headers = header_list(&(struct client_request){.accept = accept});
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    CURLcode rc = curl_easy_perform(curl);
    curl_slist_free_all(headers);
    int result = EXIT_OK;
    *ret_ended = streaming.ended;
    if (streaming.refused) {
        struct client_reply reply = {.text = streaming.text};
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &reply.code);
        if (json_parse(&reply.arena, buf_str(&reply.text), &reply.doc, NULL) < 0)
            reply.doc = NULL;
        result = reply.code == 410 ? EXIT_OK : client_refused(&reply, NULL);
        client_reply_done(&reply);
        return result;
    }
    if (rc == CURLE_OPERATION_TIMEDOUT)
        result = EXIT_TIMEOUT;
    else if (rc == CURLE_COULDNT_CONNECT || rc == CURLE_COULDNT_RESOLVE_HOST)
        result = unreachable(client, rc);
    buf_done(&streaming.text);
    return result;
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
            /* The controller is being restarted: its tasks go on, and so do we. */
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
