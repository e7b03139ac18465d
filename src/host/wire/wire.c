#include "host/wire/internal.h"

#include <stdio.h>

enum { LISTEN_BACKLOG = 4096 };

static const char *const reason_names[] = {
    [WIRE_UNREACHABLE] = "unreachable",
    [WIRE_EOF] = "eof",
    [WIRE_RESET] = "reset",
    [WIRE_TIMEOUT] = "timeout",
    [WIRE_PROTOCOL] = "protocol error",
    [WIRE_OVERFLOW] = "peer too slow",
    [WIRE_PEER_TLS] = "peer speaks TLS",
    [WIRE_PEER_PLAIN] = "peer speaks no TLS",
    [WIRE_PEER_HTTP] = "peer speaks HTTP",
};

const char *wire_reason_name(enum wire_reason reason)
{
    CHECK((size_t)reason < sizeof reason_names / sizeof *reason_names);
    return reason_names[reason];
}

/* --- the end of things ---------------------------------------------------------------------------- */

void wire_release(struct wire *wire)
{
    CHECK(wire->handles_open > 0);
    if (--wire->handles_open > 0)
        return;
    CHECK(wire->shut_down);
    arena_done(&wire->arena);
    mem_free(wire->read_buffer);
    mem_free(wire);
}

void wire_conn_count(struct wire_conn *conn, size_t bytes)
{
    conn->wire->stranger_bytes += bytes - conn->counted;
    conn->counted = bytes;
}

void wire_conn_free(struct wire_conn *conn)
{
    struct wire *wire = conn->wire;
    if (conn->beside) {
        conn->orphan = true;
        return;
    }
    wire_conn_count(conn, 0);
    buf_done(&conn->in);
    buf_done(&conn->out);
    buf_done(&conn->tls_server);
    if (conn->tls)
        wire_tls_end(conn->tls);
    mem_free(conn);
    wire_release(wire);
}

static void conn_closed(uv_handle_t *handle)
{
    wire_conn_free(handle->data);
}

void wire_conn_leaves_crowd(struct wire_conn *conn)
{
    if (conn->crowded) {
        conn->wire->crowd.counts[conn->place]--;
        conn->wire->shaking--;
    }
    conn->crowded = false;
}

/* Counts a connection whose handshake begins. Returns false if there are too many of these, in all or of its
 * source address. */
static bool join_crowd(struct wire_conn *conn)
{
    struct crowd *crowd = &conn->wire->crowd;
    if (!conn->tls_settings || conn->peer.ss_family == 0)
        return true;
    conn->place = crowd_place(crowd, (struct sockaddr *)&conn->peer);
    if (conn->wire->shaking >= conn->wire->shaking_max ||
        crowd->counts[conn->place] >= conn->wire->shaking_of_address_max)
        return false;
    conn->wire->shaking++;
    crowd->counts[conn->place]++;
    conn->crowded = true;
    return true;
}

void wire_conn_learn_peer(struct wire_conn *conn)
{
    int len = sizeof conn->peer;
    if (uv_tcp_getpeername(&conn->tcp, (struct sockaddr *)&conn->peer, &len) < 0)
        conn->peer.ss_family = 0;
}

void wire_conn_drop(struct wire_conn *conn)
{
    CHECK(conn->state != CONN_CLOSING);
    if (conn->state != CONN_OPEN) {
        conn->wire->connecting--;
        conn->connector->conn = NULL;
        if (conn->state == CONN_RESOLVING)
            uv_cancel((uv_req_t *)&conn->connector->resolve);
        conn->connector = NULL; /* its callback frees it */
    }
    if (conn->shaking)
        conn->wire->connecting--;
    conn->shaking = false;
    wire_conn_leaves_crowd(conn);
    conn->state = CONN_CLOSING;
    list_remove(&conn->node);
    list_remove(&conn->dirty_node);
    list_remove(&conn->kept_node);
    if (conn->has_handle)
        uv_close((uv_handle_t *)&conn->tcp, conn_closed);
    else
        wire_conn_free(conn);
}

void wire_conn_fail(struct wire_conn *conn, enum wire_reason reason, const char *why)
{
    CHECK(conn->state != CONN_CLOSING && !conn->failing);
    conn->failing = true;
    if (!conn->accepted || !conn->tls || wire_tls_established(conn->tls)) {
        conn->handlers->closed(conn, reason, why);
    } else if (conn->handlers->refused) { /* its owner does not know it yet */
        char peer[WIRE_ADDRESS_MAX];
        wire_conn_peer(conn, peer);
        conn->handlers->refused(conn->context, peer, why);
    }
    wire_conn_drop(conn);
}
/* --- connections ---------------------------------------------------------------------------------- */

struct wire_conn *wire_conn_new(struct wire *wire, const struct wire_handlers *handlers, void *context)
{
    CHECK(!wire->shut_down);
    CHECK(handlers->closed && (!handlers->from_agent) != (!handlers->from_controller));
    struct wire_conn *conn = mem_alloc(sizeof *conn);
    conn->wire = wire;
    conn->handlers = handlers;
    conn->context = context;
    conn->limit = WIRE_QUEUE_DEFAULT;
    list_append(&wire->conns, &conn->node);
    list_init(&conn->dirty_node);
    list_init(&conn->kept_node);
    list_init(&conn->shaker_node);
    wire->handles_open++;
    return conn;
}
void *wire_conn_context(const struct wire_conn *conn)
{
    return conn->context;
}

void wire_conn_set_context(struct wire_conn *conn, void *context)
{
    conn->context = context;
}

void wire_conn_peer(const struct wire_conn *conn, char ret_text[WIRE_ADDRESS_MAX])
{
    const struct sockaddr_storage *address = &conn->peer;
    char host[WIRE_ADDRESS_MAX - 8] = "";
    ret_text[0] = 0;
    if (conn->state != CONN_OPEN || address->ss_family == 0)
        return;
    bool v6 = address->ss_family == AF_INET6;
    if (v6)
        uv_ip6_name((const struct sockaddr_in6 *)address, host, sizeof host);
    else
        uv_ip4_name((const struct sockaddr_in *)address, host, sizeof host);
    unsigned port = ntohs(v6 ? ((const struct sockaddr_in6 *)address)->sin6_port
                             : ((const struct sockaddr_in *)address)->sin_port);
    snprintf(ret_text, WIRE_ADDRESS_MAX, v6 ? "[%s]:%u" : "%s:%u", host, port);
}

int wire_conn_fd(const struct wire_conn *conn)
{
    uv_os_fd_t fd;
    return conn->has_handle && uv_fileno((const uv_handle_t *)&conn->tcp, &fd) == 0 ? fd : -1;
}

size_t wire_conn_queued(const struct wire_conn *conn)
{
    return conn->out.len + conn->in_flight + (conn->tls ? wire_tls_waiting(conn->tls) : 0);
}

void wire_conn_set_limit(struct wire_conn *conn, size_t queue_bytes)
{
    conn->limit = queue_bytes;
}

/* --- listening ------------------------------------------------------------------------------------ */

bool wire_parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address)
{
    struct sockaddr_storage address = {0};
    if (uv_ip4_addr(text, port, (struct sockaddr_in *)&address) < 0 &&
        uv_ip6_addr(text, port, (struct sockaddr_in6 *)&address) < 0)
        return false;
    *ret_address = address;
    return true;
}

static void take_connection(struct wire_listener *listener)
{
    struct wire_conn *conn = wire_conn_new(listener->wire, listener->handlers, listener->context);
    conn->state = CONN_OPEN; /* so that a failure below drops it like any other */
    int rc = uv_tcp_init(listener->wire->loop, &conn->tcp);
    CHECK(rc == 0);
    conn->tcp.data = conn;
    conn->has_handle = true;
    conn->accepted = true;
    conn->tls_settings = listener->tls;
    rc = uv_accept((uv_stream_t *)&listener->tcp, (uv_stream_t *)&conn->tcp);
    wire_conn_learn_peer(conn);
    if (rc < 0 || !join_crowd(conn))
        wire_conn_drop(conn);
    else
        wire_conn_open(conn);
}

/* Accepts a connection, or leaves it to the next turn. libuv takes no further connection from the kernel
 * until this one is accepted, so in a flood the kernel keeps them and the loop gets its turns. */
static void on_connection(uv_stream_t *server, int status)
{
    struct wire_listener *listener = server->data;
    if (status < 0)
        return; /* the peer left before it was accepted, or descriptors ran out: libuv keeps listening */
    listener->holds = listener->wire->accepts >= ACCEPTS_A_TURN;
    if (listener->holds)
        return;
    listener->wire->accepts++;
    take_connection(listener);
}

static void take_held(struct wire *wire)
{
    wire->accepts = 0;
    list_for_each_safe(node, after, &wire->listeners)
    {
        struct wire_listener *listener = container_of(node, struct wire_listener, node);
        if (!listener->holds)
            continue;
        listener->holds = false;
        take_connection(listener);
    }
}

static void listener_closed(uv_handle_t *handle)
{
    struct wire_listener *listener = handle->data;
    struct wire *wire = listener->wire;
    mem_free(listener);
    wire_release(wire);
}

void wire_set_limits(struct wire *wire, uint32_t shaking_max, uint32_t shaking_of_address_max)
{
    wire->shaking_max = shaking_max ? shaking_max : SHAKING_MAX;
    wire->shaking_of_address_max = shaking_of_address_max ? shaking_of_address_max : SHAKING_OF_ADDRESS_MAX;
}

void wire_listener_set_tls(struct wire_listener *listener, struct wire_tls *tls)
{
    listener->tls = tls;
    if (tls && !listener->wire->shaker)
        listener->wire->shaker = shaker_new(listener->wire);
}

const char *wire_conn_peer_name(const struct wire_conn *conn)
{
    return conn->tls ? wire_tls_name(conn->tls) : "";
}

int wire_conn_check_peer(const struct wire_conn *conn, struct error *error)
{
    return conn->tls ? wire_tls_check(conn->tls, error) : 0;
}

int64_t wire_conn_peer_ends_s(const struct wire_conn *conn)
{
    return conn->tls ? wire_tls_ends_s(conn->tls) : INT64_MAX;
}

void wire_listener_close(struct wire_listener *listener)
{
    list_remove(&listener->node);
    uv_close((uv_handle_t *)&listener->tcp, listener_closed);
}

int wire_listen(struct wire *wire, const char *address, uint16_t port, const struct wire_handlers *handlers,
                void *context, struct wire_listener **ret_listener, uint16_t *ret_port, struct error *error)
{
    struct sockaddr_storage where;
    if (!wire_parse_address(address, port, &where))
        return error_set(error, ERROR_INVALID, "address to listen on: \"%s\"", address);
    struct wire_listener *listener = mem_alloc(sizeof *listener);
    *listener = (struct wire_listener){.wire = wire, .handlers = handlers, .context = context};
    int rc = uv_tcp_init(wire->loop, &listener->tcp);
    CHECK(rc == 0);
    listener->tcp.data = listener;
    list_append(&wire->listeners, &listener->node);
    wire->handles_open++;
    int len = sizeof where;
    rc = uv_tcp_bind(&listener->tcp, (struct sockaddr *)&where, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&listener->tcp, LISTEN_BACKLOG, on_connection);
    if (rc == 0)
        rc = uv_tcp_getsockname(&listener->tcp, (struct sockaddr *)&where, &len);
    if (rc < 0) {
        wire_listener_close(listener);
        return error_set(error, rc == UV_EADDRINUSE ? ERROR_CONFLICT : ERROR_IO, "listening on %s:%u: %s",
                         address, port, uv_strerror(rc));
    }
    if (ret_port)
        *ret_port = ntohs(where.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&where)->sin6_port
                                                      : ((struct sockaddr_in *)&where)->sin_port);
    *ret_listener = listener;
    return 0;
}

/* --- start and end -------------------------------------------------------------------------------- */

static void on_prepare(uv_prepare_t *prepare)
{
    struct wire *wire = prepare->data;
    take_held(wire);
    wire_flush(wire);
}

struct wire *wire_new(uv_loop_t *loop)
{
    struct wire *wire = mem_alloc(sizeof *wire);
    wire->loop = loop;
    list_init(&wire->conns);
    list_init(&wire->dirty);
    list_init(&wire->listeners);
    list_init(&wire->kept);
    wire_set_limits(wire, 0, 0);
    wire->crowd.seed = uv_hrtime() ^ (uint64_t)(uintptr_t)wire;
    wire->read_buffer = mem_alloc(READ_BYTES);
    wire->prepare.data = wire->idle.data = wire->sweep.data = wire;
    uv_prepare_init(loop, &wire->prepare);
    uv_idle_init(loop, &wire->idle);
    uv_timer_init(loop, &wire->sweep);
    wire->handles_open = 3;
    uv_prepare_start(&wire->prepare, on_prepare);
    uv_unref((uv_handle_t *)&wire->prepare); /* it alone keeps no loop alive */
    return wire;
}

static void handle_closed(uv_handle_t *handle)
{
    wire_release(handle->data);
}

void wire_shutdown(struct wire *wire)
{
    CHECK(!wire->shut_down);
    wire->shut_down = true;
    if (wire->shaker)
        shaker_close(wire->shaker);
    list_for_each_safe(node, after, &wire->conns) wire_close(container_of(node, struct wire_conn, node));
    list_for_each_safe(node, after, &wire->listeners)
        wire_listener_close(container_of(node, struct wire_listener, node));
    uv_close((uv_handle_t *)&wire->prepare, handle_closed);
    uv_close((uv_handle_t *)&wire->idle, handle_closed);
    uv_close((uv_handle_t *)&wire->sweep, handle_closed);
}
