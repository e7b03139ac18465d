/* Sockets: libmicrohttpd with external polling, its epoll descriptor polled by the libuv loop.
 *
 * A request whose answer comes later is suspended: libmicrohttpd forgets its socket until it is resumed, so
 * it would not notice that the client has gone. A second epoll set (`hangups`) watches the sockets of
 * suspended requests for that.
 */
#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <microhttpd.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/api/entry.h"
#include "host/api/hold.h"
#include "host/api/linger.h"
#include "host/api/listen.h"
#include "host/api/origin.h"
#include "host/api/podexec.h"
#include "host/api/relay.h"
#include "host/api/request.h"
#include "host/api/slow.h"
#include "host/api/tls.h"
#include "host/api/work.h"

enum {
    STREAM_BLOCK_BYTES = 512, /* for clients that cannot read chunks (HTTP/1.0) */
    HANGUPS_A_TURN = 64,
    RUNS_A_TURN = 16, /* before other work of the loop gets its turn */
};

struct transport {
    struct api_request request;
    struct MHD_Connection *connection;
    struct list_node node;                      /* in server->transports */
    int fd;                                     /* registered in `hangups`; -1: not */
    struct MHD_UpgradeResponseHandle *upgraded; /* NULL: it is not, or not any more */
    bool known;                                 /* headers were seen */
    bool handled, suspended, gone, answered;
};

/* The state of a connection, also between its requests. */
struct peer {
    struct slow_peer slow;    /* first */
    struct api_tls_peer *tls; /* NULL: it speaks plain HTTP */
    char address[INET6_ADDRSTRLEN];
    bool whole; /* its last request was answered when it had all come */
};

enum { DAEMON_SMALL, DAEMON_LARGE, DAEMONS };

struct server {
    struct api *api;
    struct MHD_Daemon *daemons[DAEMONS]; /* see entry.h */
    struct relay *relay;                 /* NULL: plain HTTP alone */
    struct relay_client *coming;         /* whose connection is being made; NULL: one of plain HTTP */
    struct entry entry;
    int hangup_fd;
    uint16_t port;
    uv_poll_t polls[DAEMONS], hangups;
    uv_timer_t timer;
    uv_idle_t idle;
    struct list_node transports;
    struct slow slow;
    struct lingering linger;
    struct api_tls *tls;      /* NULL: plain HTTP */
    const char *const *names; /* api_options.names */
    size_t name_count;
    int64_t looked_ns; /* uv_hrtime() when files were looked at */
    bool running, run_again;
    int open_handles;
    void (*closed)(void *context);
    void *closed_context;
};

static struct peer *peer_of(struct MHD_Connection *connection)
{
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return info ? info->socket_context : NULL;
}

static bool speaks_tls(struct MHD_Connection *connection)
{
    const struct peer *peer = peer_of(connection);
    return peer && peer->tls;
}

/* --- answers ----------------------------------------------------------------------------------- */

static void watch_hangup(struct transport *transport)
{
    struct server *server = transport->request.api->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(transport->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    if (transport->fd >= 0 || !info)
        return;
    struct epoll_event event = {.events = EPOLLRDHUP | EPOLLET, .data.ptr = transport};
    if (epoll_ctl(server->hangup_fd, EPOLL_CTL_ADD, info->connect_fd, &event) == 0)
        transport->fd = info->connect_fd;
}

static void suspend(struct transport *transport)
{
    CHECK(!transport->suspended);
    transport->suspended = true;
    MHD_suspend_connection(transport->connection);
    watch_hangup(transport);
}

static void resume(struct transport *transport)
{
    if (!transport->suspended)
        return;
    transport->suspended = false;
    transport->request.api->server->run_again = true;
    MHD_resume_connection(transport->connection);
}

void request_finish(struct api_request *request)
{
    if (request->transport)
        resume(request->transport);
}

void request_wake(struct api_request *request)
{
    if (request->transport)
        resume(request->transport);
}

static ssize_t read_stream(void *context, uint64_t position, char *data, size_t max)
{
    struct transport *transport = context;
    (void)position;
    if (transport->gone || transport->request.api->closing)
        return MHD_CONTENT_READER_END_WITH_ERROR;
    int64_t len = transport->request.stream->read(transport->request.stream, data, max);
    if (len < 0)
        return MHD_CONTENT_READER_END_OF_STREAM;
    if (len == 0)
        suspend(transport);
    return (ssize_t)len;
}

static void add_headers(struct MHD_Response *response, const struct api_request *request)
{
    MHD_add_response_header(response, "Content-Type", request->answer_type);
    MHD_add_response_header(response, "Cache-Control", "no-cache, private");
    if (request->etag[0])
        MHD_add_response_header(response, "ETag", request->etag);
    if (request->retry_after_s) {
        char seconds[16];
        snprintf(seconds, sizeof seconds, "%d", request->retry_after_s);
        MHD_add_response_header(response, "Retry-After", seconds);
    }
    for (size_t i = 0; i < request->warning_count; i++) {
        struct buf text BUF_CLEANUP = {0};
        buf_add_str(&text, STR("299 - \""));
        for (size_t k = 0; k < request->warnings[i].len; k++) {
            char c = request->warnings[i].data[k];
            if (c == '"' || c == '\\')
                buf_add_char(&text, '\\');
            buf_add_char(&text, (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c);
        }
        buf_add_char(&text, '"');
        MHD_add_response_header(response, "Warning", text.data);
    }
}

static void on_upgraded(void *context, struct MHD_Connection *connection, void *request_context,
                        const char *first, size_t first_len, MHD_socket fd,
                        struct MHD_UpgradeResponseHandle *handle)
{
    struct transport *transport = context;
    (void)connection;
    (void)request_context;
    transport->upgraded = handle;
    int flags = fcntl(fd, F_GETFL);
    if (flags >= 0)
        (void)fcntl(fd, F_SETFL, flags | O_NONBLOCK);
    exec_upgraded(transport->request.exec, fd, (struct str){first, first_len});
}

void request_release_upgrade(struct api_request *request)
{
    struct transport *transport = request->transport;
    CHECK(transport->upgraded);
    MHD_upgrade_action(transport->upgraded, MHD_UPGRADE_ACTION_CLOSE);
    transport->upgraded = NULL;
    request_retry_soon(request->api); /* the daemon has to run to see it */
}

static struct MHD_Response *upgrade_response(struct transport *transport)
{
    const struct request_upgrade *upgrade = &transport->request.upgrade;
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    websocket_accept(upgrade->key, accept);
    struct MHD_Response *response = MHD_create_response_for_upgrade(on_upgraded, transport);
    if (response) {
        MHD_add_response_header(response, "Upgrade", "websocket");
        MHD_add_response_header(response, "Sec-WebSocket-Accept", accept);
        MHD_add_response_header(response, "Sec-WebSocket-Protocol", upgrade->protocol);
    }
    return response;
}

static enum MHD_Result send_answer(struct transport *transport)
{
    struct api_request *request = &transport->request;
    struct MHD_Response *response;
    guard_audit(request);
    if (request->outcome == OUTCOME_STREAM) {
        response = MHD_create_response_from_callback(MHD_SIZE_UNKNOWN, STREAM_BLOCK_BYTES, read_stream,
                                                     transport, NULL);
    } else if (request->outcome == OUTCOME_UPGRADE) {
        response = upgrade_response(transport);
    } else {
        response = MHD_create_response_from_buffer_with_free_callback(request->answer.len,
                                                                      request->answer.data, mem_free);
        if (response)
            request->answer = (struct buf){0};
    }
    if (!response)
        return MHD_NO;
    if (request->outcome != OUTCOME_UPGRADE)
        add_headers(response, request);
    enum MHD_Result result = MHD_queue_response(transport->connection, (unsigned)request->code, response);
    MHD_destroy_response(response);
    transport->answered = true;
    /* A stream needs neither its request's text nor its body any more, and there may be thousands. */
    buf_done(&request->body);
    if (request->outcome == OUTCOME_STREAM) {
        buf_done(&request->answer);
        arena_done(&request->arena);
        request->query_count = request->warning_count = 0;
        request->warnings = NULL;
        request->query = NULL;
        request->headers = NULL;
        request->user = request->impersonator = NULL;
    }
    return result;
}

/* --- requests ---------------------------------------------------------------------------------- */

static void enter_stage(struct server *server, struct MHD_Connection *connection, enum slow_stage stage)
{
    struct peer *peer = peer_of(connection);
    if (peer)
        slow_move(&server->slow, &peer->slow, stage, (int64_t)uv_hrtime());
}

static void *begin_request(void *context, const char *url, struct MHD_Connection *connection)
{
    struct server *server = context;
    struct transport *transport = mem_alloc(sizeof *transport);
    transport->connection = connection;
    transport->fd = -1;
    request_init(&transport->request, server->api, METHOD_OTHER, str_from(url));
    /* The daemon would parse the query once more, into the connection's memory: 80 bytes for a parameter, and
     * where that is too much it breaks off. Ours is done, so for the daemon the query ends here; `url` is the
     * connection's own buffer, which it changes itself behind this call. */
    char *query = (char *)(uintptr_t)strchr(url, '?');
    if (query && query[1])
        query[1] = 0;
    transport->request.transport = transport;
    list_append(&server->transports, &transport->node);
    enter_stage(server, connection, SLOW_HEADERS);
    return transport;
}

static void end_request(void *context, struct MHD_Connection *connection, void **request_context,
                        enum MHD_RequestTerminationCode code)
{
    struct server *server = context;
    struct transport *transport = *request_context;
    struct peer *peer = peer_of(connection);
    if (peer)
        peer->whole =
            code == MHD_REQUEST_TERMINATED_COMPLETED_OK && transport && !transport->request.body_too_large;
    if (!transport)
        return;
    enter_stage(server, connection, SLOW_QUIET);
    if (transport->fd >= 0)
        epoll_ctl(server->hangup_fd, EPOLL_CTL_DEL, transport->fd, NULL);
    list_remove(&transport->node);
    request_done(&transport->request);
    mem_free(transport);
    *request_context = NULL;
}

static struct str header(struct transport *transport, const char *name)
{
    const char *value = MHD_lookup_connection_value(transport->connection, MHD_HEADER_KIND, name);
    return value ? arena_str(&transport->request.arena, str_from(value)) : (struct str){0};
}

enum { AS_GROUPS_MAX = 256, AS_EXTRAS_MAX = 64 };

/* "Impersonate-Extra-acme.org%2fproject": header names know no case, and the key may be escaped. */
static struct str extra_key(struct arena *arena, const char *name)
{
    struct buf key BUF_CLEANUP = {0};
    for (; *name; name++) {
        unsigned code = 0;
        if (name[0] == '%' && isxdigit((unsigned char)name[1]) && isxdigit((unsigned char)name[2])) {
            (void)sscanf(name + 1, "%2x", &code);
            name += 2;
        } else {
            code = (unsigned char)tolower((unsigned char)*name);
        }
        buf_add_char(&key, (char)code);
    }
    return arena_str(arena, buf_str(&key));
}

static void see_extra(struct guard_headers *headers, struct arena *arena, const char *name, const char *value)
{
    struct access_extra extra = {extra_key(arena, name), arena_str(arena, str_from(value))};
    if (headers->as_extra_count == AS_EXTRAS_MAX || !str_is_utf8(extra.key) || !str_is_utf8(extra.value))
        return;
    if (!headers->as_extras)
        headers->as_extras = ARENA_ARRAY(arena, struct access_extra, AS_EXTRAS_MAX);
    headers->as_extras[headers->as_extra_count++] = extra;
}

static enum MHD_Result see_header(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct transport *transport = context;
    struct guard_headers *headers = (struct guard_headers *)transport->request.headers;
    struct arena *arena = &transport->request.arena;
    (void)kind;
    if (!value)
        return MHD_YES;
    if (strcasecmp(key, "Authorization") == 0)
        headers->authorization = arena_str(arena, str_from(value));
    else if (strcasecmp(key, "Impersonate-User") == 0)
        headers->as_user = arena_str(arena, str_from(value));
    else if (strcasecmp(key, "Impersonate-Uid") == 0)
        headers->as_uid = arena_str(arena, str_from(value));
    else if (strncasecmp(key, "Impersonate-Extra-", 18) == 0)
        see_extra(headers, arena, key + 18, value);
    else if (strcasecmp(key, "Impersonate-Group") == 0 && headers->as_group_count < AS_GROUPS_MAX) {
        if (!headers->as_groups)
            headers->as_groups = ARENA_ARRAY(arena, struct str, AS_GROUPS_MAX);
        headers->as_groups[headers->as_group_count++] = arena_str(arena, str_from(value));
    }
    return MHD_YES;
}

const struct access_user *request_certificate(const struct api_request *request, bool *ret_bad)
{
    const struct api *api = request->api;
    const struct transport *transport = request->transport;
    *ret_bad = false;
    if (!transport || !api->access || !api->server || !access_client_ca(api->access))
        return NULL;
    const struct peer *peer = peer_of(transport->connection);
    if (!peer || !peer->tls)
        return NULL;
    return api_tls_peer_user(peer->tls, api->access, (int64_t)uv_hrtime(), ret_bad);
}

/* Reads the client's identity from headers and TLS. */
static void see_identity(struct transport *transport)
{
    struct api_request *request = &transport->request;
    struct api *api = request->api;
    struct guard_headers *headers = ARENA_NEW(&request->arena, struct guard_headers);
    *headers = (struct guard_headers){0};
    request->headers = headers;
    if (!api->access)
        return;
    MHD_get_connection_values(transport->connection, MHD_HEADER_KIND, see_header, transport);
    const struct peer *peer = peer_of(transport->connection);
    headers->source = peer ? arena_str(&request->arena, str_from(peer->address)) : STR("");
    headers->by_cert = request_certificate(request, &headers->bad_cert);
}

static enum MHD_Result see_origin(void *context, enum MHD_ValueKind kind, const char *key, const char *value)
{
    struct origin_headers *headers = context;
    struct str text = value ? str_from(value) : STR("");
    (void)kind;
    bool host = strcasecmp(key, "Host") == 0, origin = strcasecmp(key, "Origin") == 0;
    headers->repeated |= (host && headers->host.data) || (origin && headers->origin.data);
    if (host)
        headers->host = text;
    else if (origin)
        headers->origin = text;
    else if (strcasecmp(key, "Sec-Fetch-Site") == 0)
        headers->fetch_site = text;
    else if (strcasecmp(key, "Content-Type") == 0)
        headers->content_type = text;
    else if (strcasecmp(key, "Content-Length") == 0)
        headers->body |= !str_is(text, "0");
    else if (strcasecmp(key, "Transfer-Encoding") == 0)
        headers->body = true;
    return MHD_YES;
}

/* False: the request was answered, because a web page of another site may have had a browser send it. */
static bool check_origin(struct transport *transport)
{
    struct api_request *request = &transport->request;
    const struct server *server = request->api->server;
    const union MHD_ConnectionInfo *info =
        MHD_get_connection_info(transport->connection, MHD_CONNECTION_INFO_CONNECTION_FD);
    struct sockaddr_storage here;
    socklen_t len = sizeof here;
    struct origin_headers headers = {0};
    struct error error;
    struct origin_server end = {
        .tls = speaks_tls(transport->connection), .names = server->names, .name_count = server->name_count};
    if (info && getsockname(info->connect_fd, (struct sockaddr *)&here, &len) == 0)
        end.address = (const struct sockaddr *)&here;
    MHD_get_connection_values(transport->connection, MHD_HEADER_KIND, see_origin, &headers);
    int code = origin_check(&headers, &end, &error);
    if (code)
        answer_status(request, code,
                      code == 415   ? "UnsupportedMediaType"
                      : code == 403 ? "Forbidden"
                                    : "BadRequest",
                      "%s", error.text);
    return code == 0;
}

static enum method method_of(const char *name)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strcmp(name, names[i]) == 0)
            return (enum method)i;
    return strcmp(name, "HEAD") == 0 ? METHOD_GET : METHOD_OTHER;
}

static enum MHD_Result see_headers(struct transport *transport, const char *method)
{
    struct api_request *request = &transport->request;
    int64_t length = 0;
    transport->known = true;
    enter_stage(request->api->server, transport->connection, SLOW_BODY);
    request->method = method_of(method);
    request->accept = header(transport, "Accept");
    request->content_type = header(transport, "Content-Type");
    request->if_none_match = header(transport, "If-None-Match");
    request->user_agent = header(transport, "User-Agent");
    request->compares = str_is(header(transport, "Kubectl-Command"), "kubectl diff");
    request->upgrade = (struct request_upgrade){.to = header(transport, "Upgrade"),
                                                .key = header(transport, "Sec-WebSocket-Key"),
                                                .version = header(transport, "Sec-WebSocket-Version"),
                                                .protocols = header(transport, "Sec-WebSocket-Protocol")};
    see_identity(transport);
    if (!check_origin(transport)) {
        transport->handled = true;
        return send_answer(transport);
    }
    struct str text = header(transport, "Content-Length");
    bool large = text.len && (!str_to_i64(text, 0, INT64_MAX, &length) || length > OBJECT_BYTES_MAX);
    if (large || (!request->bad_url && !guard_identify(request))) {
        /* Refused before the body is read; libmicrohttpd then closes the connection. */
        request->body_too_large = large && !request->refused;
        transport->handled = true;
        request_handle(request);
        return send_answer(transport);
    }
    return MHD_YES;
}

static enum MHD_Result see_body(struct transport *transport, const char *data, size_t *len)
{
    struct api_request *request = &transport->request;
    if (request->body.len + *len > OBJECT_BYTES_MAX)
        request->body_too_large = true;
    if (!request->body_too_large)
        buf_add(&request->body, data, *len);
    *len = 0;
    return MHD_YES;
}

static enum MHD_Result on_access(void *context, struct MHD_Connection *connection, const char *url,
                                 const char *method, const char *version, const char *data, size_t *len,
                                 void **request_context)
{
    struct transport *transport = *request_context;
    (void)context;
    (void)connection;
    (void)url;
    (void)version;
    if (!transport->known)
        return see_headers(transport, method);
    if (transport->answered) {
        *len = 0;
        return MHD_YES;
    }
    if (*len)
        return see_body(transport, data, len);
    if (transport->gone || transport->request.api->closing)
        return MHD_NO;
    if (!transport->handled) {
        transport->handled = true;
        enter_stage(transport->request.api->server, transport->connection, SLOW_STAGES);
        request_handle(&transport->request);
    }
    if (!request_is_pending(&transport->request))
        return send_answer(transport);
    suspend(transport);
    return MHD_YES;
}

/* --- the loop ---------------------------------------------------------------------------------- */

static void on_idle(uv_idle_t *idle);

/* True: it has more to do at once. */
static bool run_daemon(struct MHD_Daemon *daemon)
{
    MHD_UNSIGNED_LONG_LONG wait_ms = 0;
    return MHD_run(daemon) == MHD_YES && MHD_get_timeout(daemon, &wait_ms) == MHD_YES && wait_ms == 0;
}

static void work_begins(struct server *server)
{
    const struct api_hooks *hooks = &server->api->hooks;
    if (hooks->begins)
        hooks->begins(hooks->context);
}

static void work_ends(struct server *server)
{
    const struct api_hooks *hooks = &server->api->hooks;
    if (hooks->ends)
        hooks->ends(hooks->context);
}

/* Runs what is ready. After a few rounds the rest comes in the next turn of the loop. */
static void run(struct server *server)
{
    if (server->running || server->api->closing)
        return;
    server->running = true;
    work_begins(server);
    bool more = true;
    for (int i = 0; i < RUNS_A_TURN && more; i++) {
        server->run_again = false;
        more = run_daemon(server->daemons[DAEMON_SMALL]);
        more = run_daemon(server->daemons[DAEMON_LARGE]) || more;
        more = more || server->run_again;
    }
    server->running = false;
    work_ends(server);
    if (more || server->api->retries.len)
        uv_idle_start(&server->idle, on_idle);
    else
        uv_idle_stop(&server->idle);
}

static void on_entered(void *context)
{
    struct server *server = context;
    run(server);
}

static void on_idle(uv_idle_t *idle)
{
    struct server *server = idle->data;
    work_begins(server);
    write_run_retries(server->api);
    work_ends(server);
    run(server);
}

void request_retry_soon(struct api *api)
{
    if (api->server)
        uv_idle_start(&api->server->idle, on_idle);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    run(poll->data);
}

static void on_hangup(uv_poll_t *poll, int status, int events)
{
    struct server *server = poll->data;
    struct epoll_event gone[HANGUPS_A_TURN];
    (void)status;
    (void)events;
    int count = epoll_wait(server->hangup_fd, gone, HANGUPS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        struct transport *transport = gone[i].data.ptr;
        transport->gone = true;
        /* A write under way stays until the host has answered it. */
        if (transport->request.write == NULL && transport->request.work == NULL)
            resume(transport);
    }
    run(server);
}

int api_reload(struct api *api, struct error *error)
{
    int rc = api->access ? access_reload(api->access, error) : 0;
    if (rc == 0 && api->server && api->server->tls)
        rc = api_tls_reload(api->server->tls, error);
    return rc;
}

/* Certificates are renewed, and tokens withdrawn, by changing their files. */
static void look_at_files(struct server *server)
{
    struct api *api = server->api;
    struct error error;
    bool changed = api->access && access_files_changed(api->access, (int64_t)uv_hrtime());
    changed = changed || (server->tls && api_tls_files_changed(server->tls));
    if (changed && api_reload(api, &error) < 0)
        fprintf(stderr, "warning: credentials are not read again: %s\n", error.text);
}

static void on_timer(uv_timer_t *timer)
{
    struct server *server = timer->data;
    work_begins(server);
    look_at_files(server);
    watch_ring_tick(server->api->ring);
    holds_check(server->api);
    work_ends(server);
    slow_tick(&server->slow, (int64_t)uv_hrtime());
    linger_tick(&server->linger);
    run(server);
}

void api_flush(struct api *api)
{
    if (api->server && api->server->run_again)
        run(api->server);
}

/* --- opening and closing ----------------------------------------------------------------------- */

static uint32_t connection_limit(uint32_t wanted)
{
    struct rlimit limit;
    bool known = getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY;
    uint64_t most = wanted ? wanted : API_CONNECTIONS_MAX, files = known ? limit.rlim_cur : UINT32_MAX;
    uint64_t room = wanted ? files : files / 2;
    most = most < room ? most : room;
    most = most < API_CONNECTIONS_MAX ? most : API_CONNECTIONS_MAX;
    return most < 16 ? 16 : (uint32_t)most;
}

static void name_address(const struct sockaddr *address, char ret_text[INET6_ADDRSTRLEN])
{
    if (address->sa_family == AF_INET6)
        uv_ip6_name((const struct sockaddr_in6 *)(const void *)address, ret_text, INET6_ADDRSTRLEN);
    else if (address->sa_family == AF_INET)
        uv_ip4_name((const struct sockaddr_in *)(const void *)address, ret_text, INET6_ADDRSTRLEN);
}

static struct peer *peer_new(struct server *server, struct MHD_Connection *connection)
{
    struct peer *peer = mem_alloc(sizeof *peer);
    struct relay_client *client = server->coming;
    const union MHD_ConnectionInfo *from =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    list_init(&peer->slow.node);
    peer->slow.connection = connection;
    if (client) {
        name_address((struct sockaddr *)&client->address, peer->address);
        peer->tls = api_tls_peer_new(&client->chain);
    } else if (from && from->client_addr) {
        name_address(from->client_addr, peer->address);
    }
    return peer;
}

/* Makes and frees the state of a connection with it. */
static void note_connection(void *context, struct MHD_Connection *connection, void **socket_context,
                            enum MHD_ConnectionNotificationCode code)
{
    struct server *server = context;
    if (code == MHD_CONNECTION_NOTIFY_STARTED) {
        struct peer *peer = peer_new(server, connection);
        slow_move(&server->slow, &peer->slow, SLOW_QUIET, (int64_t)uv_hrtime());
        *socket_context = peer;
        server->entry.open += !peer->tls; /* the relay's are counted already */
    } else if (*socket_context) {
        struct peer *peer = *socket_context;
        const union MHD_ConnectionInfo *info =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (info)
            linger_take(&server->linger, info->connect_fd, !peer->whole);
        list_remove(&peer->slow.node);
        if (!peer->tls)
            entry_left(&server->entry, 1);
        api_tls_peer_free(peer->tls);
        mem_free(peer);
        *socket_context = NULL;
    }
}

static void on_relay_ready(void *context, struct relay_client *client)
{
    struct server *server = context;
    struct sockaddr pair = {.sa_family = AF_UNIX};
    server->coming = client;
    entry_give(&server->entry, client->fd, &pair, sizeof pair);
    server->coming = NULL;
    request_retry_soon(server->api); /* the daemon has to run to read from it */
}

static void on_relay_gone(void *context)
{
    struct server *server = context;
    entry_left(&server->entry, RELAY_FILES);
}

static struct MHD_Daemon *start_daemon(struct server *server, int which, uint32_t connections_max)
{
    size_t connection_bytes = which == DAEMON_SMALL ? ENTRY_SMALL_BYTES : ENTRY_LARGE_BYTES;
    return MHD_start_daemon(
        MHD_USE_EPOLL | MHD_USE_NO_LISTEN_SOCKET | MHD_ALLOW_UPGRADE | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
        NULL, on_access, server, MHD_OPTION_CONNECTION_LIMIT, (unsigned)connections_max,
        MHD_OPTION_CONNECTION_MEMORY_LIMIT, connection_bytes, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)API_IDLE_TIMEOUT_S, MHD_OPTION_URI_LOG_CALLBACK, begin_request, server,
        MHD_OPTION_NOTIFY_COMPLETED, end_request, server, MHD_OPTION_NOTIFY_CONNECTION, note_connection,
        server, MHD_OPTION_END);
}

static int start_daemons(struct server *server, const struct api_options *options, int listen_fd,
                         uv_loop_t *loop, struct error *error)
{
    uint32_t most = connection_limit(options->connections_max);
    struct MHD_Daemon **daemons = server->daemons;
    const struct relay_hooks hooks = {server, on_relay_ready, on_relay_gone};
    const struct relay_limits limits = {.shaking = options->handshakes_max,
                                        .shaking_of_address = options->handshakes_of_address_max};
    int rc = 0;
    for (int i = 0; i < DAEMONS; i++)
        daemons[i] = start_daemon(server, i, most);
    if (!daemons[DAEMON_SMALL] || !daemons[DAEMON_LARGE])
        rc = error_set(error, ERROR_IO, "the HTTP server cannot start");
    if (rc == 0 && server->tls)
        rc = relay_new(loop, server->tls, &hooks, &limits, &server->relay, error);
    for (int i = 0; rc < 0 && i < DAEMONS; i++)
        if (daemons[i])
            MHD_stop_daemon(daemons[i]);
    if (rc < 0)
        return rc;
    server->entry = (struct entry){.fd = listen_fd,
                                   .open_max = most,
                                   .small = daemons[DAEMON_SMALL],
                                   .large = daemons[DAEMON_LARGE],
                                   .relay = server->relay,
                                   .plain = !server->tls || options->loopback_http,
                                   .entered = on_entered,
                                   .context = server};
    return 0;
}

static void attach_to_loop(struct server *server, uv_loop_t *loop)
{
    server->open_handles = 4 + (server->relay != NULL); /* hangups, timer, idle, entry */
    for (int i = 0; i < DAEMONS; i++) {
        const union MHD_DaemonInfo *info = MHD_get_daemon_info(server->daemons[i], MHD_DAEMON_INFO_EPOLL_FD);
        CHECK(info && uv_poll_init(loop, &server->polls[i], info->epoll_fd) == 0);
        server->polls[i].data = server;
        uv_poll_start(&server->polls[i], UV_READABLE, on_poll);
        server->open_handles++;
    }
    CHECK(uv_poll_init(loop, &server->hangups, server->hangup_fd) == 0);
    CHECK(uv_timer_init(loop, &server->timer) == 0 && uv_idle_init(loop, &server->idle) == 0);
    server->hangups.data = server->timer.data = server->idle.data = server;
    uv_poll_start(&server->hangups, UV_READABLE, on_hangup);
    uv_timer_start(&server->timer, on_timer, 1000, 1000);
    entry_open(&server->entry, loop);
}

int api_new(uv_loop_t *loop, const struct api_options *options, struct api **ret_api, struct error *error)
{
    uint16_t port = 0;
    struct api_tls *tls = NULL;
    if (options->tls_cert &&
        api_tls_new(options->tls_cert, options->tls_key, options->access && access_client_ca(options->access),
                    &tls, error) < 0)
        return error->code;
    const char *address = options->address ? options->address : "127.0.0.1";
    int listen_fd = api_listen(address, options->port, &port, error);
    if (listen_fd < 0) {
        api_tls_free(tls);
        return listen_fd;
    }
    struct server *server = mem_alloc(sizeof *server);
    server->tls = tls;
    list_init(&server->transports);
    slow_init(&server->slow);
    server->port = port;
    server->names = options->names;
    server->name_count = options->name_count;
    server->hangup_fd = epoll_create1(EPOLL_CLOEXEC);
    int rc = server->hangup_fd < 0 ? error_set_errno(error, errno, "epoll_create1")
                                   : start_daemons(server, options, listen_fd, loop, error);
    if (rc < 0) {
        if (server->hangup_fd >= 0)
            close(server->hangup_fd);
        close(listen_fd);
        api_tls_free(tls);
        mem_free(server);
        return rc;
    }
    struct api *api = api_new_bare(&options->hooks);
    api->loop = loop;
    api->server = server;
    api->access = options->access;
    api->pod_security = options->pod_security;
    server->api = api;
    linger_init(&server->linger, loop);
    attach_to_loop(server, loop);
    *ret_api = api;
    return 0;
}

static void on_closed(uv_handle_t *handle)
{
    struct server *server = handle->data;
    if (--server->open_handles)
        return;
    void (*closed)(void *context) = server->closed;
    void *context = server->closed_context;
    api_free_bare(server->api);
    api_tls_free(server->tls);
    mem_free(server);
    if (closed)
        closed(context);
}

void api_close(struct api *api, void (*closed)(void *context), void *context)
{
    struct server *server = api->server;
    CHECK(!api->closing && !server->running);
    api->closing = true;
    server->closed = closed;
    server->closed_context = context;
    work_close(api);
    list_for_each_safe(node, after, &server->transports)
    {
        struct transport *transport = container_of(node, struct transport, node);
        if (transport->upgraded)
            exec_drop(transport->request.exec);
        resume(transport);
    }
    uv_poll_stop(&server->hangups);
    entry_close(&server->entry, on_closed);
    for (int i = 0; i < DAEMONS; i++) {
        uv_poll_stop(&server->polls[i]);
        uv_close((uv_handle_t *)&server->polls[i], on_closed);
        MHD_stop_daemon(server->daemons[i]);
    }
    if (server->relay)
        relay_close(server->relay, on_closed, server);
    linger_close(&server->linger);
    close(server->hangup_fd);
    uv_close((uv_handle_t *)&server->hangups, on_closed);
    uv_close((uv_handle_t *)&server->timer, on_closed);
    uv_close((uv_handle_t *)&server->idle, on_closed);
}

uint16_t api_port(const struct api *api)
{
    return api->server ? api->server->port : 0;
}
