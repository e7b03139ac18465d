/* server.c - passes requests between the HTTP server (host/http) and their handlers: a handler's outcome
 * becomes an answer, a stream, or a websocket.
 *
 *   listener ─► plain HTTP ───────────────────────────────► http ─► begin_request ... end_request
 *          └──► relay: TLS, on separate threads (relay.h) ────┘
 */
#include <ctype.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "host/api/entry.h"
#include "host/api/hold.h"
#include "host/api/identity.h"
#include "host/api/origin.h"
#include "host/api/podexec.h"
#include "host/api/relay.h"
#include "host/api/request.h"
#include "host/api/ring.h"
#include "host/api/tls.h"
#include "host/api/work.h"
#include "host/http/http.h"
#include "host/http/listener.h"
#include "net/crowd.h"
#include "base/units.h"

enum {
    HEAD_BYTES_MAX = 32 * 1024, /* URL_BYTES_MAX and the headers */
    /* Memory for unfinished bodies beyond their first parts: in all, and of one address. */
    BODIES_BYTES_MAX = 64 * 1024 * 1024,
    BODIES_OF_ADDRESS_MAX = BODIES_BYTES_MAX / 2,
    BODY_FREE_BYTES = 16 * 1024, /* the first part of a body */
};
#define PAUSE_SAID_NS (60 * NS_PER_SECOND)

/* A request, from its head until its answer was sent. While the answer is a stream, only the stream is kept:
 * there may be thousands of watches. */
struct transport {
    struct api *api;
    struct http_connection *connection;
    struct api_request *request; /* NULL: only the stream is left */
    struct body_stream *stream;  /* NULL: the answer is not a stream */
    uint32_t body_bytes;         /* counted in server->body_bytes */
    struct list_node node;       /* in server->upgrades while a websocket has the connection */
};

/* The state of a connection, kept between its requests. */
struct peer {
    struct identity identity;
    bool relayed; /* the TLS session is in our relay */
    struct sockaddr_storage from;
    uint32_t place;           /* the address's place in server->crowd */
    struct sockaddr_in6 here; /* our end, whose family may differ; all zero: unknown */
};

struct server {
    struct api *api;
    struct http *http;
    struct listener *listener;
    struct relay *relay; /* NULL: plain HTTP only */
    bool plain;          /* plain HTTP is served */
    struct crowd crowd;  /* descriptors of open connections */
    uint32_t of_address_max;
    uint32_t body_bytes, body_bytes_of[CROWD_PLACES]; /* memory for unfinished bodies; see BODIES_BYTES_MAX */
    int64_t pause_said_ns;                            /* when a pause was last reported; 0: never */
    uint16_t port;
    uv_timer_t timer;
    uv_idle_t idle;            /* active while writes are to be tried again */
    struct list_node upgrades; /* transports of websockets */
    struct buf lines;          /* header lines of the current answer */
    struct api_tls *tls;       /* NULL: plain HTTP */
    const char *const *names;  /* api_options.names */
    size_t name_count;
    struct identity_controllers controllers;
    struct api_heir heir; /* `client` NULL: no hand-over */
    bool handed_over;
    int open_parts; /* open ones of handles, http, listener, relay */
    void (*closed)(void *context);
    void *closed_context;
};

static struct peer *peer_of(const struct transport *transport)
{
    return http_peer(transport->connection);
}

/* --- answers ----------------------------------------------------------------------------------- */

void request_finish(struct api_request *request)
{
    if (request->transport)
        http_wake(request->transport->connection);
}

void transport_wake(struct transport *transport)
{
    if (transport)
        http_wake(transport->connection);
}

static int64_t read_stream(void *context, char *data, size_t max)
{
    struct body_stream *stream = context;
    return stream->read(stream, data, max);
}

static void put_warning(struct buf *lines, struct str warning)
{
    buf_add_str(lines, STR("Warning: 299 - \""));
    for (size_t i = 0; i < warning.len; i++) {
        char c = warning.data[i];
        if (c == '"' || c == '\\')
            buf_add_char(lines, '\\');
        buf_add_char(lines, (unsigned char)c < 0x20 || c == 0x7f ? ' ' : c);
    }
    buf_add_str(lines, STR("\"\r\n"));
}

static struct str header_lines(const struct api_request *request)
{
    struct buf *lines = &request->api->server->lines;
    buf_clear(lines);
    buf_add_str(lines, STR("Content-Type: "));
    buf_add_str(lines, str_from(request->answer_type));
    buf_add_str(lines, STR("\r\nCache-Control: no-cache, private\r\n"));
    if (request->etag[0])
        buf_printf(lines, "ETag: %s\r\n", request->etag);
    if (request->retry_after_s)
        buf_printf(lines, "Retry-After: %d\r\n", request->retry_after_s);
    for (size_t i = 0; i < request->warning_count; i++)
        put_warning(lines, request->warnings[i]);
    return buf_str(lines);
}

static void on_upgraded(void *context, int fd, struct str first)
{
    struct transport *transport = context;
    list_append(&transport->api->server->upgrades, &transport->node);
    exec_upgraded(transport->request->exec, fd, first);
}

void request_release_upgrade(struct api_request *request)
{
    list_remove(&request->transport->node);
    http_release(request->transport->connection);
}

static void send_upgrade(struct transport *transport)
{
    const struct request_upgrade *upgrade = &transport->request->upgrade;
    struct buf *lines = &transport->api->server->lines;
    char accept[WEBSOCKET_ACCEPT_BYTES + 1];
    websocket_accept(upgrade->key, accept);
    buf_clear(lines);
    buf_printf(lines, "Upgrade: websocket\r\nSec-WebSocket-Accept: %s\r\nSec-WebSocket-Protocol: %s\r\n",
               accept, upgrade->protocol);
    http_upgrade(transport->connection, buf_str(lines));
}

static void free_request(struct transport *transport)
{
    request_done(transport->request);
    mem_free(transport->request);
    transport->request = NULL;
}

/* Sends the answer, which is complete or begins. */
static void send_answer(struct transport *transport)
{
    struct api_request *request = transport->request;
    guard_audit(request);
    if (request->outcome == OUTCOME_UPGRADE) {
        send_upgrade(transport);
    } else if (request->outcome == OUTCOME_STREAM) {
        transport->stream = request->stream;
        request->stream = NULL;
        http_stream(transport->connection, request->code, header_lines(request),
                    (struct http_source){transport->stream, read_stream});
        free_request(transport);
    } else {
        http_answer(transport->connection, request->code, header_lines(request), &request->answer);
    }
}

/* --- bodies on their way ----------------------------------------------------------------------- */

/* Counts `more` bytes of the body. Returns false if the limit does not allow them. */
static bool count_body(struct transport *transport, size_t more)
{
    struct server *server = transport->api->server;
    size_t len = transport->request->body.len + more;
    uint32_t *of_address = &server->body_bytes_of[peer_of(transport)->place];
    uint32_t counted = len > BODY_FREE_BYTES ? (uint32_t)(len - BODY_FREE_BYTES) : 0;
    uint32_t grown = counted - transport->body_bytes;
    if (grown &&
        (server->body_bytes + grown > BODIES_BYTES_MAX || *of_address + grown > BODIES_OF_ADDRESS_MAX))
        return false;
    server->body_bytes += grown;
    *of_address += grown;
    transport->body_bytes = counted;
    return true;
}

static void uncount_body(struct transport *transport)
{
    struct server *server = transport->api->server;
    server->body_bytes -= transport->body_bytes;
    server->body_bytes_of[peer_of(transport)->place] -= transport->body_bytes;
    transport->body_bytes = 0;
}

/* --- requests ---------------------------------------------------------------------------------- */

static void end_request(void *context)
{
    struct transport *transport = context;
    uncount_body(transport);
    list_remove(&transport->node);
    if (transport->stream)
        transport->stream->free(transport->stream);
    if (transport->request)
        free_request(transport);
    mem_free(transport);
}

/* Returns a header's value, in the request's arena. */
static struct str header(struct api_request *request, const struct http_head *head, const char *name)
{
    struct str value = http_head_value(head, name);
    return value.data ? arena_str(&request->arena, value) : value;
}

const struct access_user *transport_certificate(const struct transport *transport, bool *ret_bad)
{
    const struct api *api = transport ? transport->api : NULL;
    *ret_bad = false;
    if (!api || !api->access || !access_client_ca(api->access))
        return NULL;
    return identity_certificate(&peer_of(transport)->identity, api->access, (int64_t)uv_hrtime(), ret_bad);
}

/* Reads the client's identity from headers and TLS. Returns false if the request was answered. */
static bool see_identity(struct transport *transport, const struct http_head *head)
{
    struct api_request *request = transport->request;
    struct access *access = transport->api->access;
    struct guard_headers *headers = ARENA_NEW(&request->arena, struct guard_headers);
    *headers = (struct guard_headers){0};
    request->headers = headers;
    if (!access)
        return true;
    int refusal = identity_read(&peer_of(transport)->identity, access, (int64_t)uv_hrtime(), head,
                                &request->arena, headers);
    headers->by_cert = transport_certificate(transport, &headers->bad_cert);
    if (refusal == 421)
        answer_status(request, refusal, "MisdirectedRequest",
                      "the certificate of this connection is no controller's: it passes no requests on");
    else if (refusal)
        answer_status(request, refusal, "BadRequest", "the client's certificates cannot be read");
    return refusal == 0;
}

static struct origin_headers origin_of(const struct http_head *head)
{
    struct origin_headers headers = {.host = http_head_value(head, "Host"),
                                     .origin = http_head_value(head, "Origin"),
                                     .fetch_site = http_head_value(head, "Sec-Fetch-Site"),
                                     .content_type = http_head_value(head, "Content-Type"),
                                     .body = head->content_length != 0,
                                     .upgrade = http_head_value(head, "Upgrade").data != NULL,
                                     .token = http_head_value(head, "Authorization").len > 0};
    int origins = 0; /* Host occurs once at most */
    for (size_t i = 0; i < head->header_count; i++)
        origins += http_is_word(head->headers[i].name, "Origin");
    headers.repeated = origins > 1;
    return headers;
}

/* Refuses requests that a web page of another site may have made a browser send. Returns false if the
 * request was answered. */
static bool check_origin(struct transport *transport, const struct http_head *head)
{
    const struct server *server = transport->api->server;
    struct peer *peer = peer_of(transport);
    socklen_t len = sizeof peer->here;
    struct origin_headers headers = origin_of(head);
    struct error error;
    struct origin_server end = {
        .tls = peer->identity.tls != NULL, .names = server->names, .name_count = server->name_count};
    if (peer->here.sin6_family != AF_UNSPEC ||
        getsockname(http_socket(transport->connection), (struct sockaddr *)&peer->here, &len) == 0)
        end.address = (const struct sockaddr *)&peer->here;
    int code = origin_check(&headers, &end, &error);
    if (code)
        answer_status(transport->request, code,
                      code == 415   ? "UnsupportedMediaType"
                      : code == 403 ? "Forbidden"
                                    : "BadRequest",
                      "%s", error.text);
    return code == 0;
}

static enum method method_of(struct str name)
{
    static const char *const names[] = {"GET", "POST", "PUT", "PATCH", "DELETE"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (str_is(name, names[i]))
            return (enum method)i;
    return str_is(name, "HEAD") ? METHOD_GET : METHOD_OTHER;
}

static void see_headers(struct api_request *request, const struct http_head *head)
{
    request->accept = header(request, head, "Accept");
    request->content_type = header(request, head, "Content-Type");
    request->if_none_match = header(request, head, "If-None-Match");
    request->user_agent = header(request, head, "User-Agent");
    if (request->method != METHOD_GET) {
        request->retry.key = header(request, head, "Idempotency-Key");
        request->retry.resent = header(request, head, "Phalanx-Resent");
    }
    request->compares = str_is(http_head_value(head, "Kubectl-Command"), "kubectl diff");
    if (!http_head_value(head, "Upgrade").data)
        return;
    request->upgrade = (struct request_upgrade){.to = header(request, head, "Upgrade"),
                                                .key = header(request, head, "Sec-WebSocket-Key"),
                                                .version = header(request, head, "Sec-WebSocket-Version"),
                                                .protocols = header(request, head, "Sec-WebSocket-Protocol")};
}

static void *begin_request(void *context, struct http_connection *connection, const struct http_head *head)
{
    struct server *server = context;
    struct transport *transport = mem_alloc(sizeof *transport);
    struct api_request *request = transport->request = mem_alloc(sizeof *request);
    transport->api = server->api;
    transport->connection = connection;
    list_init(&transport->node);
    request_init(request, server->api, method_of(head->method), head->target);
    request->transport = transport;
    see_headers(request, head);
    bool large = head->content_length > OBJECT_BYTES_MAX;
    if (!see_identity(transport, head) || !check_origin(transport, head)) {
        send_answer(transport);
    } else if (large || request->bad_url || !guard_identify(request)) { /* answered before the body is read */
        request->body_too_large = large && !request->refused;
        request_handle(request);
        send_answer(transport);
    }
    return transport;
}

static void see_body(void *context, struct str bytes)
{
    struct transport *transport = context;
    struct api_request *request = transport->request;
    if (request->body.len + bytes.len > OBJECT_BYTES_MAX)
        request->body_too_large = true;
    if (request->body_too_large)
        return;
    if (count_body(transport, bytes.len)) {
        buf_add_str(&request->body, bytes);
        return;
    }
    request->retry_after_s = 1;
    answer_status(request, 429, "TooManyRequests",
                  "too many large bodies are on their way: try again in a second");
    send_answer(transport);
}

static void answer_if_ready(void *context)
{
    struct transport *transport = context;
    if (!request_is_pending(transport->request))
        send_answer(transport);
}

static void whole_request(void *context)
{
    struct transport *transport = context;
    uncount_body(transport);
    request_handle(transport->request);
    answer_if_ready(transport);
}

/* Returns whether a request without a client may be dropped. A write stays until the host has answered it. */
static bool client_has_gone(void *context)
{
    const struct transport *transport = context;
    return !transport->request->write && !transport->request->work;
}

/* --- the loop ---------------------------------------------------------------------------------- */

static void work_begins(void *context)
{
    const struct server *server = context;
    const struct api_hooks *hooks = &server->api->hooks;
    if (hooks->begins)
        hooks->begins(hooks->context);
}

static void work_ends(void *context)
{
    const struct server *server = context;
    const struct api_hooks *hooks = &server->api->hooks;
    if (hooks->ends)
        hooks->ends(hooks->context);
}

static void on_idle(uv_idle_t *idle)
{
    struct server *server = idle->data;
    work_begins(server);
    work_next_turn(server->api);
    write_run_retries(server->api);
    work_ends(server);
    if (server->api->retries.len == 0 && work_turn_is_over(server->api))
        uv_idle_stop(idle);
}

void request_retry_soon(struct api *api)
{
    if (api->server)
        uv_idle_start(&api->server->idle, on_idle);
}

int api_reload(struct api *api, struct error *error)
{
    int rc = api->access ? access_reload(api->access, error) : 0;
    if (rc == 0 && api->server && api->server->tls)
        rc = api_tls_reload(api->server->tls, error);
    return rc;
}

/* Reads credentials again after a change: certificates are renewed, and tokens withdrawn, by changing
 * files. */
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
}

void api_flush(struct api *api)
{
    if (api->server && !api->closing)
        http_flush(api->server->http);
}

/* --- connections --------------------------------------------------------------------------------- */

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

static struct peer *peer_new(struct server *server, const struct sockaddr_storage *address)
{
    struct peer *peer = mem_alloc(sizeof *peer);
    peer->from = *address;
    peer->identity.controllers = &server->controllers;
    peer->place = crowd_place(&server->crowd, (const struct sockaddr *)address);
    name_address((const struct sockaddr *)address, peer->identity.address);
    return peer;
}

static uint32_t on_client(void *context, int fd, const struct sockaddr_storage *address, socklen_t len)
{
    struct server *server = context;
    const struct sockaddr *from = (const struct sockaddr *)address;
    uint32_t place = crowd_place(&server->crowd, from);
    bool relayed = server->relay && (!server->plain || entry_begins_tls(fd, address));
    uint32_t files = relayed ? RELAY_FILES : 1;
    if (!crowd_enter(&server->crowd, place, files, server->of_address_max)) {
        server->api->stats.refused_connections++;
        return 0;
    }
    if (relayed && !relay_take(server->relay, fd, from, len)) {
        crowd_leave(&server->crowd, place, files);
        return 0;
    }
    if (!relayed)
        http_take(server->http, fd, peer_new(server, address));
    return files;
}

void api_take(struct api *api, int fd, const struct sockaddr_storage *from,
              const struct sockaddr_storage *here, const struct relay_client *tls)
{
    struct server *server = api->server;
    struct peer *peer = peer_new(server, from);
    server->crowd.counts[peer->place]++;
    if (here)
        mem_copy(&peer->here, here, sizeof peer->here);
    if (tls) {
        struct api_tls_chain chain = api_tls_chain_copy(&tls->chain);
        peer->identity.tls = api_tls_peer_new(&chain);
        peer->identity.forwards = tls->forwards;
    }
    http_take(server->http, fd, peer);
}

static void on_accept_pause(void *context, int errno_code)
{
    struct server *server = context;
    int64_t now_ns = (int64_t)uv_hrtime();
    if (server->api)
        server->api->stats.accept_pauses++;
    if (server->pause_said_ns && now_ns - server->pause_said_ns < PAUSE_SAID_NS)
        return;
    server->pause_said_ns = now_ns;
    fprintf(stderr, "warning: the API accepts no connections for now: %s: raise LimitNOFILE or memory\n",
            strerror(errno_code));
}

static void lower_crowd(struct server *server, uint32_t place, uint32_t files)
{
    crowd_leave(&server->crowd, place, files);
    if (server->listener)
        listener_left(server->listener, files);
}

static void on_left(void *context, void *connection_peer)
{
    struct server *server = context;
    struct peer *peer = connection_peer;
    if (!peer->relayed) /* the relay counts its own connections */
        lower_crowd(server, peer->place, 1);
    identity_done(&peer->identity);
    mem_free(peer);
}

static void on_relay_ready(void *context, struct relay_client *client)
{
    struct server *server = context;
    struct peer *peer = peer_new(server, &client->address);
    peer->identity.tls = api_tls_peer_new(&client->chain);
    peer->relayed = true;
    peer->identity.forwards = client->forwards;
    http_take(server->http, client->fd, peer);
}

static void on_relay_gone(void *context, const struct sockaddr_storage *address)
{
    struct server *server = context;
    uint32_t place = crowd_place(&server->crowd, (const struct sockaddr *)address);
    lower_crowd(server, place, RELAY_FILES);
}

/* --- opening ----------------------------------------------------------------------------------- */

static int open_http(struct server *server, uv_loop_t *loop, struct error *error)
{
    const struct http_options options = {
        .context = server,
        .begins = begin_request,
        .body = see_body,
        .whole = whole_request,
        .gone = client_has_gone,
        .woken = answer_if_ready,
        .ended = end_request,
        .left = on_left,
        .upgraded = on_upgraded,
        .turn_begins = work_begins,
        .turn_ends = work_ends,
        .head_bytes_max = HEAD_BYTES_MAX,
        .stages_s = {[HTTP_STAGE_QUIET] = API_IDLE_TIMEOUT_S,
                     [HTTP_STAGE_HEAD] = API_HEAD_TIMEOUT_S,
                     [HTTP_STAGE_BODY] = API_BODY_TIMEOUT_S,
                     [HTTP_STAGE_ANSWER] = API_IDLE_TIMEOUT_S},
    };
    return http_new(loop, &options, &server->http, error);
}

static int open_relay(struct server *server, uv_loop_t *loop, const struct api_options *options,
                      struct error *error)
{
    const struct relay_hooks hooks = {server, on_relay_ready, on_relay_gone, NULL};
    const struct relay_limits limits = {.shaking = options->handshakes_max,
                                        .shaking_of_address = options->handshakes_of_address_max};
    return server->tls ? relay_new(loop, server->tls, &hooks, &limits, &server->relay, error) : 0;
}

static int open_listener(struct server *server, uv_loop_t *loop, const struct api_options *options,
                         struct error *error)
{
    uint32_t most = connection_limit(options->connections_max), wanted = options->connections_of_address_max;
    /* A standby keeps a silent connection to the leader, whose end tells that the leader has died: accept
     * it. */
    bool deferred = server->plain && (options->listening_fd <= 0 || server->tls);
    const struct listener_options listening = {.taken = on_client,
                                               .paused = on_accept_pause,
                                               .context = server,
                                               .open_max = most,
                                               .deferred = deferred};
    server->crowd.seed = uv_hrtime() ^ (uint64_t)(uintptr_t)server;
    server->of_address_max = wanted && wanted < most ? wanted : wanted ? most : most / 2;
    const char *address = options->address ? options->address : "127.0.0.1";
    if (options->listens_not)
        return 0;
    if (options->listening_fd > 0)
        return listener_open_shared(loop, options->listening_fd, &listening, &server->listener, &server->port,
                                    error);
    return listener_open_tcp(loop, address, options->port, &listening, &server->listener, &server->port,
                             error);
}

static void free_server(struct server *server)
{
    if (server->api)
        api_free_bare(server->api);
    api_tls_free(server->tls);
    identity_controllers_done(&server->controllers);
    buf_done(&server->lines);
    mem_free(server);
}

static void on_part_closed(void *context)
{
    struct server *server = context;
    if (--server->open_parts)
        return;
    void (*closed)(void *context) = server->closed;
    void *closed_context = server->closed_context;
    free_server(server);
    if (closed)
        closed(closed_context);
}

static void on_handle_closed(uv_handle_t *handle)
{
    on_part_closed(handle->data);
}

/* Closes the parts that exist. */
static void close_parts(struct server *server)
{
    struct listener *listener = server->listener;
    server->listener = NULL;
    server->open_parts = 1 + (listener != NULL) + (server->http != NULL) + (server->relay != NULL);
    if (listener)
        listener_close(listener, on_part_closed, server);
    if (server->http)
        http_close(server->http, on_part_closed, server);
    if (server->relay)
        relay_close(server->relay, on_handle_closed, server);
}

int api_new(uv_loop_t *loop, const struct api_options *options, struct api **ret_api, struct error *error)
{
    struct server *server = mem_alloc(sizeof *server);
    list_init(&server->upgrades);
    server->names = options->names;
    server->name_count = options->name_count;
    int rc = options->tls_cert
                 ? api_tls_new(options->tls_cert, options->tls_key,
                               options->access && access_client_ca(options->access), &server->tls, error)
                 : 0;
    if (rc == 0 && server->tls && options->from_controllers && options->access &&
        access_client_ca(options->access))
        api_tls_take_forwards(server->tls);
    server->plain = !server->tls || options->loopback_http;
    if (rc == 0)
        rc = open_listener(server, loop, options, error);
    if (rc == 0)
        rc = open_http(server, loop, error);
    if (rc == 0)
        rc = open_relay(server, loop, options, error);
    if (rc < 0) {
        close_parts(server);
        on_part_closed(server);
        return rc;
    }
    struct api *api = server->api = api_new_bare(&options->hooks);
    api->loop = loop;
    api->server = server;
    api->access = options->access;
    api->pod_security = options->pod_security;
    CHECK(uv_timer_init(loop, &server->timer) == 0 && uv_idle_init(loop, &server->idle) == 0);
    server->timer.data = server->idle.data = server;
    uv_timer_start(&server->timer, on_timer, 1000, 1000);
    *ret_api = api;
    return 0;
}

void api_close(struct api *api, void (*closed)(void *context), void *context)
{
    struct server *server = api->server;
    CHECK(!api->closing);
    api->closing = true;
    server->closed = closed;
    server->closed_context = context;
    work_close(api);
    list_for_each_safe(node, after, &server->upgrades)
    {
        exec_drop(container_of(node, struct transport, node)->request->exec);
    }
    close_parts(server);
    server->open_parts += 1; /* two handles, less the part that close_parts() counts for its caller */
    uv_close((uv_handle_t *)&server->timer, on_handle_closed);
    uv_close((uv_handle_t *)&server->idle, on_handle_closed);
}

static enum http_giving on_give(void *context, void *connection_peer, int fd, struct str bytes)
{
    const struct server *server = context;
    const struct api_heir *heir = &server->heir;
    const struct peer *peer = connection_peer;
    if (!peer->identity.tls) {
        heir->client(heir->context, fd, bytes, NULL);
        return HTTP_GIVEN;
    }
    if (server->relay || !heir->relay) /* the client's session ends with this server */
        return server->handed_over ? HTTP_CLOSED : HTTP_SERVED;
    struct relay_client tls = {.fd = fd, .address = peer->from, .forwards = peer->identity.forwards};
    tls.chain = api_tls_chain_copy(api_tls_peer_chain(peer->identity.tls));
    heir->client(heir->context, fd, bytes, &tls);
    api_tls_chain_done(&tls.chain);
    return HTTP_GIVEN;
}

/* Gives the TLS sessions to the heir, also those in their handshake. Their descriptors are no longer counted
 * here. */
static void give_relay(struct server *server)
{
    struct relay *relay = server->relay;
    struct api_tls *tls = server->tls;
    if (!relay || !server->heir.relay || !server->heir.relay(server->heir.context, relay, tls))
        return;
    server->relay = NULL;
    server->tls = NULL;
}

void api_hand_over(struct api *api, const struct api_heir *heir)
{
    struct server *server = api->server;
    CHECK(!api->closing && !server->heir.client);
    server->heir = *heir;
    give_relay(server);
    if (server->listener)
        listener_close(server->listener, NULL, NULL);
    server->listener = NULL;
    http_give_away(server->http, on_give, server);
}

size_t api_unanswered(const struct api *api)
{
    return http_unanswered(api->server->http);
}

size_t api_tls_connections(const struct api *api)
{
    const struct server *server = api->server;
    return server->relay ? relay_open(server->relay) : 0;
}

void api_handed_over(struct api *api)
{
    struct server *server = api->server;
    CHECK(server->heir.client);
    server->handed_over = true;
    watchers_end(api->ring);
    http_refuse_bodies(server->http);
    http_give_away(server->http, on_give, server);
}

size_t api_connections(const struct api *api)
{
    return http_open(api->server->http);
}

uint16_t api_port(const struct api *api)
{
    return api->server ? api->server->port : 0;
}
