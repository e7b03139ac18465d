#include "host/wire/internal.h"

#include <netinet/in.h>
#include <stdio.h>
#include <sys/socket.h>

static void on_connect(uv_connect_t *request, int status)
{
    struct connector *connector = container_of(request, struct connector, connect);
    struct wire_conn *conn = connector->conn;
    mem_free(connector);
    if (!conn)
        return;
    struct wire *wire = conn->wire;
    conn->connector = NULL;
    wire->connecting--;
    conn->state = CONN_OPEN;
    if (status < 0) {
        wire_conn_fail(conn, status == UV_ETIMEDOUT ? WIRE_TIMEOUT : WIRE_UNREACHABLE, uv_strerror(status));
    } else {
        wire_conn_learn_peer(conn);
        wire_conn_open(conn);
    }
    wire_flush_sometimes(wire);
}

static int conn_init_socket(struct wire_conn *conn, int family)
{
    int rc = uv_tcp_init_ex(conn->wire->loop, &conn->tcp, (unsigned)family);
    if (rc < 0)
        return rc;
    conn->tcp.data = conn;
    conn->has_handle = true;
    const struct connector *connector = conn->connector;
    if (!connector->has_source || connector->source.ss_family != family)
        return 0;
    int on = 1; /* else bind takes a port, and 28,000 connections to all targets exhaust them */
    (void)setsockopt(wire_conn_fd(conn), IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &on, sizeof on);
    return uv_tcp_bind(&conn->tcp, (const struct sockaddr *)&connector->source, 0);
}

static int conn_connect(struct wire_conn *conn, const struct sockaddr *address)
{
    int rc = conn_init_socket(conn, address->sa_family);
    if (rc == 0)
        rc = uv_tcp_connect(&conn->connector->connect, &conn->tcp, address, on_connect);
    if (rc == 0)
        conn->state = CONN_CONNECTING;
    return rc;
}

/* Fails a connection whose connector has no request under way. From the loop only. */
static void connector_fail(struct wire_conn *conn, const char *why)
{
    struct connector *connector = conn->connector;
    conn->connector = NULL;
    conn->wire->connecting--;
    conn->state = CONN_OPEN;
    mem_free(connector);
    wire_conn_fail(conn, WIRE_UNREACHABLE, why);
}

static void on_resolved(uv_getaddrinfo_t *request, int status, struct addrinfo *found)
{
    struct connector *connector = container_of(request, struct connector, resolve);
    struct wire_conn *conn = connector->conn;
    if (!conn) {
        mem_free(connector);
    } else if (status < 0) {
        connector_fail(conn, uv_strerror(status));
    } else {
        int rc = conn_connect(conn, found->ai_addr);
        if (rc < 0)
            connector_fail(conn, uv_strerror(rc));
    }
    if (status == 0)
        uv_freeaddrinfo(found);
}

void wire_on_sweep(uv_timer_t *timer)
{
    struct wire *wire = timer->data;
    int64_t now_ms = (int64_t)uv_now(wire->loop);
    if (wire->connecting == 0)
        uv_timer_stop(timer);
    /* A callback may drop any connection, so the walk starts over after each failure; the next sweep
     * continues. */
    bool again = wire->connecting > 0;
    for (int ended = 0; again && ended < ENDED_A_SWEEP; ended++) {
        again = false;
        list_for_each(node, &wire->conns)
        {
            struct wire_conn *conn = container_of(node, struct wire_conn, node);
            bool late = conn->tls && wire_tls_is_late(conn->tls, now_ms);
            if (late || (conn->connector && conn->connector->deadline_ms <= now_ms)) {
                wire_conn_fail(conn, WIRE_TIMEOUT, late ? "the TLS handshake took too long" : "no answer");
                again = !wire->shut_down;
                break;
            }
        }
    }
}

int wire_connect(struct wire *wire, const struct wire_target *target, const struct wire_handlers *handlers,
                 void *context, struct wire_conn **ret_conn, struct error *error)
{
    struct sockaddr_storage source, address;
    if (target->source && !wire_parse_address(target->source, 0, &source))
        return error_set(error, ERROR_INVALID, "source address \"%s\"", target->source);
    struct wire_conn *conn = wire_conn_new(wire, handlers, context);
    conn->tls_settings = target->tls;
    if (target->tls)
        buf_add_str(&conn->tls_server, str_from(target->host));
    struct connector *connector = conn->connector = mem_alloc(sizeof *connector);
    connector->conn = conn;
    connector->deadline_ms =
        (int64_t)uv_now(wire->loop) + (target->timeout_ms ? target->timeout_ms : WIRE_CONNECT_TIMEOUT_MS);
    connector->has_source = target->source != NULL;
    if (target->source)
        connector->source = source;
    wire->connecting++;
    int rc;
    if (wire_parse_address(target->host, target->port, &address)) {
        rc = conn_connect(conn, (struct sockaddr *)&address);
    } else {
        char port[8];
        snprintf(port, sizeof port, "%u", target->port);
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        conn->state = CONN_RESOLVING;
        rc = uv_getaddrinfo(wire->loop, &connector->resolve, on_resolved, target->host, port, &hints);
    }
    if (rc < 0) {
        conn->connector = NULL;
        conn->state = CONN_OPEN;
        wire->connecting--;
        mem_free(connector);
        wire_conn_drop(conn);
        return error_set(error, ERROR_UNAVAILABLE, "connecting to %s:%u: %s", target->host, target->port,
                         uv_strerror(rc));
    }
    if (!uv_is_active((uv_handle_t *)&wire->sweep))
        uv_timer_start(&wire->sweep, wire_on_sweep, WIRE_SWEEP_MS, WIRE_SWEEP_MS);
    *ret_conn = conn;
    return 0;
}
