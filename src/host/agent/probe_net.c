/* probe_net.c - probes that test whether a container accepts a connection, or answers an HTTP request with
 * 200 to 399. One request on one connection (RFC 9112); of the answer only the status line is read. TLS
 * checks no certificate, as in kubelet's probes. */
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

#include "host/agent/probe.h"

enum { STATUS_LINE_MAX = 1024 };

static void advance(struct probe_run *probe);

void probe_net_end(struct probe_run *probe)
{
    if (probe->tls)
        gnutls_deinit(probe->tls);
    if (probe->credentials)
        gnutls_certificate_free_credentials(probe->credentials);
}

static void fail(struct probe_run *probe, const char *what, const char *why)
{
    struct error text;
    error_set(&text, ERROR_IO, "%s: %s", what, why);
    probe_done(probe, false, text.text);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    advance(poll->data);
}

/* --- bytes, plain or in TLS: > 0, 0 at the end, -EAGAIN, or another error ------------------------- */

static long tls_result(ssize_t count)
{
    return count == GNUTLS_E_AGAIN || count == GNUTLS_E_INTERRUPTED ? -EAGAIN : count < 0 ? -EPROTO : count;
}

static long send_some(struct probe_run *probe, const char *data, size_t len)
{
    if (probe->tls)
        return tls_result(gnutls_record_send(probe->tls, data, len));
    ssize_t count = send(probe->fd, data, len, MSG_NOSIGNAL);
    return count < 0 ? -errno : count;
}

static long receive_some(struct probe_run *probe, char *data, size_t len)
{
    if (probe->tls)
        return tls_result(gnutls_record_recv(probe->tls, data, len));
    ssize_t count = recv(probe->fd, data, len, 0);
    return count < 0 ? -errno : count;
}

static int begin_tls(struct probe_run *probe)
{
    if (gnutls_certificate_allocate_credentials(&probe->credentials) < 0 ||
        gnutls_init(&probe->tls, GNUTLS_CLIENT | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL) < 0 ||
        gnutls_set_default_priority(probe->tls) < 0 ||
        gnutls_credentials_set(probe->tls, GNUTLS_CRD_CERTIFICATE, probe->credentials) < 0)
        return ERROR_IO;
    gnutls_transport_set_int(probe->tls, probe->fd);
    return 0;
}

/* --- HTTP ----------------------------------------------------------------------------------------- */

static bool has_header(const struct container_action *action, const char *name)
{
    for (size_t i = 0; i < action->header_count; i++)
        if (action->headers[i].name.len == strlen(name) &&
            strncasecmp(action->headers[i].name.data, name, strlen(name)) == 0)
            return true;
    return false;
}

/* Composes the request. Returns false for a header with a line end in it. */
static bool compose_request(struct probe_run *probe, const char *host)
{
    const struct container_action *action = probe->action;
    struct str path = action->path.len > 0 ? action->path : STR("/");
    buf_printf(&probe->request, "GET %s" STR_FORMAT " HTTP/1.1\r\n", path.data[0] == '/' ? "" : "/",
               STR_ARG(path));
    if (!has_header(action, "Host"))
        buf_printf(&probe->request, "Host: %s:%u\r\n", host, action->port);
    if (!has_header(action, "User-Agent"))
        buf_printf(&probe->request, "User-Agent: phalanx-probe\r\n");
    if (!has_header(action, "Accept"))
        buf_printf(&probe->request, "Accept: */*\r\n");
    for (size_t i = 0; i < action->header_count; i++)
        buf_printf(&probe->request, STR_FORMAT ": " STR_FORMAT "\r\n", STR_ARG(action->headers[i].name),
                   STR_ARG(action->headers[i].value));
    buf_printf(&probe->request, "Connection: close\r\n\r\n");
    size_t lines = 0;
    for (size_t i = 0; i < probe->request.len; i++)
        lines += probe->request.data[i] == '\n';
    size_t wanted = 3 + action->header_count + !has_header(action, "Host") +
                    !has_header(action, "User-Agent") + !has_header(action, "Accept");
    return lines == wanted;
}

static void judge(struct probe_run *probe)
{
    int status = 0;
    struct str line = buf_str(&probe->in);
    char text[32] = "";
    snprintf(text, sizeof text, STR_FORMAT, STR_ARG(line));
    if (sscanf(text, "HTTP/%*1[0-9].%*1[0-9] %3d", &status) != 1) {
        probe_done(probe, false, "the answer is not HTTP");
        return;
    }
    char why[64];
    snprintf(why, sizeof why, "HTTP probe failed with statuscode: %d", status);
    probe_done(probe, status >= 200 && status < 400, why);
}

static void exchange(struct probe_run *probe)
{
    while (probe->sent < probe->request.len) {
        long count = send_some(probe, probe->request.data + probe->sent, probe->request.len - probe->sent);
        if (count == -EAGAIN) {
            probe_watch(probe, UV_WRITABLE, on_poll);
            return;
        }
        if (count <= 0) {
            fail(probe, "sending the request", strerror(count < 0 ? (int)-count : EPIPE));
            return;
        }
        probe->sent += (size_t)count;
    }
    char block[STATUS_LINE_MAX];
    for (;;) {
        long count = receive_some(probe, block, sizeof block);
        if (count == -EINTR)
            continue;
        if (count == -EAGAIN) {
            probe_watch(probe, UV_READABLE, on_poll);
            return;
        }
        if (count > 0)
            buf_add(&probe->in, block, (size_t)count);
        if (count <= 0 || probe->in.len >= STATUS_LINE_MAX || memchr(probe->in.data, '\n', probe->in.len)) {
            judge(probe);
            return;
        }
    }
}

static void advance(struct probe_run *probe)
{
    if (!probe->connected) {
        int code = 0;
        socklen_t len = sizeof code;
        getsockopt(probe->fd, SOL_SOCKET, SO_ERROR, &code, &len);
        if (code != 0) {
            fail(probe, "connecting", strerror(code));
            return;
        }
        probe->connected = true;
        if (probe->action->kind == ACTION_TCP) {
            probe_done(probe, true, "");
            return;
        }
        if (probe->action->tls && begin_tls(probe) < 0) {
            probe_done(probe, false, "TLS is not available");
            return;
        }
    }
    if (probe->tls && !probe->shaken) {
        int code = gnutls_handshake(probe->tls);
        if (code == GNUTLS_E_AGAIN || code == GNUTLS_E_INTERRUPTED) {
            probe_watch(probe, gnutls_record_get_direction(probe->tls) ? UV_WRITABLE : UV_READABLE, on_poll);
            return;
        }
        if (code < 0) {
            fail(probe, "TLS", gnutls_strerror(code));
            return;
        }
        probe->shaken = true;
    }
    exchange(probe);
}

/* --- connecting ----------------------------------------------------------------------------------- */

/* Returns whether the address is link-local, where clouds serve machines' credentials (169.254.169.254,
 * fd00:ec2::254). */
static bool is_link_local(const struct sockaddr *address)
{
    static const uint8_t metadata[] = {0xfd, 0, 0x0e, 0xc2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0x54};
    if (address->sa_family == AF_INET)
        return ntohl(((const struct sockaddr_in *)(const void *)address)->sin_addr.s_addr) >> 16 == 0xa9fe;
    if (address->sa_family != AF_INET6)
        return false;
    const struct in6_addr *v6 = &((const struct sockaddr_in6 *)(const void *)address)->sin6_addr;
    return IN6_IS_ADDR_LINKLOCAL(v6) || memcmp(v6, metadata, sizeof metadata) == 0 ||
           (IN6_IS_ADDR_V4MAPPED(v6) && v6->s6_addr[12] == 169 && v6->s6_addr[13] == 254);
}

static void connect_to(struct probe_run *probe, const struct addrinfo *address)
{
    if (is_link_local(address->ai_addr) && !probe->live->machine->host->probe_link_local) {
        probe_done(probe, false,
                   "the host is a link-local address, which this agent probes only with --probe-link-local");
        return;
    }
    probe->fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (probe->fd < 0) {
        fail(probe, "connecting", strerror(errno));
        return;
    }
    if (connect(probe->fd, address->ai_addr, address->ai_addrlen) < 0 && errno != EINPROGRESS)
        fail(probe, "connecting", strerror(errno));
    else
        probe_watch(probe, UV_WRITABLE, on_poll);
}

static void on_found(uv_getaddrinfo_t *lookup, int status, struct addrinfo *found)
{
    struct probe_run *probe = lookup->data;
    if (!probe->gone && status < 0)
        fail(probe, "looking up the host", uv_strerror(status));
    else if (!probe->gone)
        connect_to(probe, found);
    uv_freeaddrinfo(found);
    probe_handle_gone(probe);
}

void probe_net_begin(struct probe_run *probe)
{
    const struct container_action *action = probe->action;
    struct agent_host *host = probe->live->machine->host;
    const char *name = action->host.len > 0 ? arena_strdup(&probe->arena, action->host)
                       : host->address      ? host->address
                                            : "127.0.0.1";
    if (action->kind == ACTION_HTTP && !compose_request(probe, name)) {
        probe_done(probe, false, "the request's path or a header of it holds a line end");
        return;
    }
    if (action->port == 0) {
        probe_done(probe, false, "the container has no port of that name");
        return;
    }
    char port[8];
    snprintf(port, sizeof port, "%u", action->port);
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV};
    probe->lookup.data = probe;
    int rc = uv_getaddrinfo(host->loop, &probe->lookup, on_found, name, port, &hints);
    if (rc < 0)
        fail(probe, "looking up the host", uv_strerror(rc));
    else
        probe->handles++;
}
