#include "net/http_client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/units.h"
#include "net/http_reply.h"

enum { HOST_BYTES_MAX = 256, PORT_DEFAULT = 80, READ_BYTES = 64 * 1024, TICK_MS = 1000 };

struct http_client {
    char host[HOST_BYTES_MAX]; /* without brackets */
    char port[8];
    struct buf authority; /* for the Host header */
    struct buf prefix;    /* of each path */
    int fd;               /* -1: not connected */
    struct buf out;       /* the request */
    char in[READ_BYTES];
};

/* When a call must end, and the request whose on_tick is called while it waits. */
struct patience {
    int64_t deadline_ns; /* monotonic; INT64_MAX: never */
    const struct http_request *request;
};

/* --- the URL ----------------------------------------------------------------------------------- */

/* Splits "HOST[:PORT]" or "[ADDRESS][:PORT]". Returns false if the text is neither. */
static bool split_authority(struct str authority, struct str *ret_host, struct str *ret_port)
{
    struct str tail = {0};
    *ret_host = authority;
    *ret_port = (struct str){0};
    if (authority.len && authority.data[0] == '[') {
        struct str inside = {authority.data + 1, authority.len - 1};
        if (!str_cut(inside, ']', ret_host, &tail) || (tail.len && tail.data[0] != ':'))
            return false;
        if (tail.len)
            *ret_port = (struct str){tail.data + 1, tail.len - 1};
        return ret_host->len > 0 && (tail.len != 1);
    }
    if (str_cut(authority, ':', ret_host, ret_port) && ret_port->len == 0)
        return false;
    return ret_host->len > 0;
}

int http_client_new(struct str url, struct http_client **ret_client, struct error *error)
{
    struct str scheme = STR("http://"), rest, authority, prefix = {0}, host, port;
    int64_t number = PORT_DEFAULT;
    if (!str_starts(url, scheme))
        return error_set(error, ERROR_INVALID, "" STR_FORMAT ": expected a URL that begins with http://",
                         STR_ARG(url));
    rest = authority = (struct str){url.data + scheme.len, url.len - scheme.len};
    const char *slash = memchr(rest.data, '/', rest.len);
    if (slash) {
        authority.len = (size_t)(slash - rest.data);
        prefix = (struct str){slash, rest.len - authority.len};
    }
    if (!split_authority(authority, &host, &port) || host.len >= HOST_BYTES_MAX ||
        memchr(host.data, '@', host.len) || (port.len && !str_to_i64(port, 1, 65535, &number)))
        return error_set(error, ERROR_INVALID, "" STR_FORMAT ": expected http://HOST:PORT", STR_ARG(url));
    while (prefix.len && prefix.data[prefix.len - 1] == '/')
        prefix.len--;
    struct http_client *client = mem_alloc(sizeof(*client));
    client->fd = -1;
    memcpy(client->host, host.data, host.len);
    snprintf(client->port, sizeof client->port, "%d", (int)number);
    buf_add_str(&client->authority, authority);
    buf_add_str(&client->prefix, prefix);
    *ret_client = client;
    return 0;
}

static void disconnect(struct http_client *client)
{
    if (client->fd >= 0)
        close(client->fd);
    client->fd = -1;
}

void http_client_free(struct http_client *client)
{
    if (!client)
        return;
    disconnect(client);
    buf_done(&client->authority);
    buf_done(&client->prefix);
    buf_done(&client->out);
    mem_free(client);
}

/* --- waiting ----------------------------------------------------------------------------------- */

static int64_t monotonic_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * NS_PER_SECOND + now.tv_nsec;
}

static int64_t deadline_after(int64_t timeout_ms)
{
    return timeout_ms ? monotonic_ns() + timeout_ms * NS_PER_MS : INT64_MAX;
}

/* Waits until the socket is ready for `events`. Returns false if the deadline passes. */
static bool wait_ready(int fd, short events, const struct patience *patience)
{
    for (;;) {
        bool ticks = patience->request && patience->request->on_tick;
        int64_t left_ns =
            patience->deadline_ns == INT64_MAX ? INT64_MAX : patience->deadline_ns - monotonic_ns();
        if (left_ns <= 0)
            return false;
        int64_t wait_ms = left_ns == INT64_MAX ? -1 : left_ns / NS_PER_MS + 1;
        if (wait_ms < 0 || wait_ms > TICK_MS)
            wait_ms = ticks || wait_ms > 0 ? TICK_MS : -1;
        struct pollfd entry = {.fd = fd, .events = events};
        int ready = poll(&entry, 1, (int)wait_ms);
        if (ready > 0)
            return true;
        if (ready == 0 && ticks)
            patience->request->on_tick(patience->request->context);
    }
}

/* --- the connection ---------------------------------------------------------------------------- */

/* Connects to one address. Returns 0, or the errno of the failure. */
static int connect_address(const struct addrinfo *address, int64_t deadline_ns, int *ret_fd)
{
    int fd = socket(address->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return errno;
    int failed = connect(fd, address->ai_addr, address->ai_addrlen) == 0 ? 0 : errno;
    if (failed == EINPROGRESS) {
        socklen_t size = sizeof failed;
        struct patience patience = {.deadline_ns = deadline_ns};
        if (!wait_ready(fd, POLLOUT, &patience))
            failed = ETIMEDOUT;
        else if (getsockopt(fd, SOL_SOCKET, SO_ERROR, &failed, &size) != 0)
            failed = errno;
    }
    if (failed) {
        close(fd);
        return failed;
    }
    int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    *ret_fd = fd;
    return 0;
}

/* Connects to the first address of the host that accepts the connection. */
static bool connect_host(struct http_client *client, int64_t deadline_ns, struct error *error)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *addresses;
    int rc = getaddrinfo(client->host, client->port, &hints, &addresses);
    if (rc != 0) {
        error_set(error, ERROR_UNAVAILABLE, "cannot resolve %s: %s", client->host, gai_strerror(rc));
        return false;
    }
    int failed = EHOSTUNREACH;
    for (struct addrinfo *address = addresses; address && failed; address = address->ai_next)
        failed = connect_address(address, deadline_ns, &client->fd);
    freeaddrinfo(addresses);
    if (failed)
        error_set_errno(error, failed, "cannot connect to %s port %s", client->host, client->port);
    return failed == 0;
}

bool http_reachable(struct str url, int64_t timeout_ms)
{
    struct buf plain BUF_CLEANUP = {0};
    struct http_client *client;
    struct str https = STR("https://");
    if (str_starts(url, https)) {
        buf_printf(&plain, "http://" STR_FORMAT, (int)(url.len - https.len), url.data + https.len);
        url = buf_str(&plain);
    }
    if (http_client_new(url, &client, NULL) < 0)
        return false;
    bool reached = connect_host(client, monotonic_ns() + timeout_ms * NS_PER_MS, NULL);
    http_client_free(client);
    return reached;
}

/* Returns whether a kept connection can be used. One with waiting bytes is closed, or out of step. */
static bool is_usable(const struct http_client *client)
{
    struct pollfd entry = {.fd = client->fd, .events = POLLIN};
    return client->fd >= 0 && poll(&entry, 1, 0) == 0;
}

/* --- one exchange ------------------------------------------------------------------------------ */

static void write_request(struct http_client *client, const struct http_request *request)
{
    struct buf *out = &client->out;
    buf_clear(out);
    buf_printf(out, "%s " STR_FORMAT STR_FORMAT " HTTP/1.1\r\nHost: " STR_FORMAT "\r\n",
               request->method ? request->method : "GET", STR_ARG(buf_str(&client->prefix)),
               STR_ARG(request->path), STR_ARG(buf_str(&client->authority)));
    buf_printf(out, "User-Agent: %s\r\nAccept: %s\r\n", request->agent ? request->agent : "phalanx",
               request->accept ? request->accept : "application/json");
    if (request->bearer && *request->bearer)
        buf_printf(out, "Authorization: Bearer %s\r\n", request->bearer);
    if (request->key)
        buf_printf(out, "Idempotency-Key: %s\r\n", request->key);
    if (request->key && request->resent_ms > 0)
        buf_printf(out, "Phalanx-Resent: %lld\r\n", (long long)request->resent_ms);
    if (request->body.data)
        buf_printf(out, "Content-Type: %s\r\nContent-Length: %zu\r\n",
                   request->content_type ? request->content_type : "application/json", request->body.len);
    buf_add_str(out, STR("\r\n"));
    if (request->body.data)
        buf_add_str(out, request->body);
}

/* Sends the request. A server may answer before it has read all of the request, so a failed write is not yet
 * an error: the answer decides. */
static enum http_result send_request(struct http_client *client, const struct patience *patience)
{
    size_t sent = 0;
    while (sent < client->out.len) {
        ssize_t count = send(client->fd, client->out.data + sent, client->out.len - sent, MSG_NOSIGNAL);
        if (count >= 0)
            sent += (size_t)count;
        else if (errno == EAGAIN && !wait_ready(client->fd, POLLOUT, patience))
            return HTTP_TIMED_OUT;
        else if (errno != EAGAIN && errno != EINTR)
            return HTTP_BROKE;
    }
    return HTTP_ANSWERED;
}

static enum http_result receive_reply(struct http_client *client, struct http_reply *reply,
                                      const struct patience *patience, bool *ret_silent, struct error *error)
{
    const struct http_request *request = patience->request;
    struct http_sink sink = {request->context, request->on_field, request->on_body};
    for (*ret_silent = true; !http_reply_complete(reply);) {
        ssize_t count = recv(client->fd, client->in, sizeof client->in, 0);
        if (count < 0 && errno == EINTR)
            continue;
        if (count < 0 && errno == EAGAIN) {
            if (wait_ready(client->fd, POLLIN, patience))
                continue;
            error_set(error, ERROR_TIMEOUT, "no answer within %lld ms", (long long)request->timeout_ms);
            return HTTP_TIMED_OUT;
        }
        if (count <= 0) {
            if (http_reply_closed(reply, error) == 0)
                break;
            return *ret_silent ? HTTP_NOT_HTTP : HTTP_BROKE;
        }
        *ret_silent = false;
        size_t used;
        int rc = http_reply_take(reply, (struct str){client->in, (size_t)count}, &sink, &used, error);
        if (rc != 0)
            return rc > 0 ? HTTP_STOPPED : HTTP_NOT_HTTP;
        reply->keep_alive &= used == (size_t)count;
    }
    return HTTP_ANSWERED;
}

static enum http_result exchange(struct http_client *client, const struct patience *patience, int *ret_code,
                                 bool *ret_silent, struct error *error)
{
    const char *method = patience->request->method;
    struct http_reply reply;
    http_reply_begin(&reply, method && strcmp(method, "HEAD") == 0);
    enum http_result result = send_request(client, patience);
    *ret_silent = true;
    if (result != HTTP_TIMED_OUT)
        result = receive_reply(client, &reply, patience, ret_silent, error);
    else
        error_set(error, ERROR_TIMEOUT, "the server takes no request");
    *ret_code = reply.code;
    if (result != HTTP_ANSWERED || !reply.keep_alive)
        disconnect(client);
    http_reply_done(&reply);
    return result;
}

enum http_result http_client_call(struct http_client *client, const struct http_request *request,
                                  int *ret_code, struct error *error)
{
    struct patience patience = {deadline_after(request->timeout_ms), request};
    bool repeatable = !request->method || strcmp(request->method, "GET") == 0;
    *ret_code = 0;
    write_request(client, request);
    for (;;) {
        bool kept = is_usable(client), silent;
        if (!kept) {
            disconnect(client);
            int64_t connect_ns = deadline_after(request->connect_ms);
            if (!connect_host(client, connect_ns < patience.deadline_ns ? connect_ns : patience.deadline_ns,
                              error))
                return HTTP_NO_SERVER;
        }
        enum http_result result = exchange(client, &patience, ret_code, &silent, error);
        if (result != HTTP_NOT_HTTP || !kept || !silent || !repeatable)
            return result;
    }
}

/* --- TLS, recognised --------------------------------------------------------------------------- */

/* A ClientHello of TLS 1.3 and 1.2 in one record (RFC 8446 section 4.1.2), which any server finds acceptable:
 * some close the connection without an alert otherwise. An empty key share asks for a HelloRetryRequest. */
/* clang-format off */
enum { HELLO_BYTES = 88 };
static const uint8_t client_hello[] = {
    0x16, 3, 1, 0, HELLO_BYTES,                         /* a handshake record */
    1, 0, 0, HELLO_BYTES - 4, 3, 3,                     /* ClientHello, "TLS 1.2" */
    'p', 'h', 'a', 'l', 'a', 'n', 'x', 0,               /* 32 bytes, random where there are secrets */
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
    0,                                                  /* no session */
    0, 6, 0x13, 1, 0xc0, 0x2b, 0xc0, 0x2f,              /* AES128-GCM: of 1.3, ECDHE-ECDSA, -RSA */
    1, 0,                                               /* no compression */
    0, 37,                                              /* extensions */
    0, 10, 0, 6, 0, 4, 0, 0x17, 0, 0x1d,                /* groups: secp256r1, x25519 */
    0, 13, 0, 8, 0, 6, 4, 3, 8, 4, 4, 1,                /* signatures: ECDSA, RSA-PSS and RSA, with SHA-256 */
    0, 43, 0, 5, 4, 3, 4, 3, 3,                         /* versions: 1.3, 1.2 */
    0, 51, 0, 2, 0, 0,                                  /* no key share */
};
/* clang-format on */
_Static_assert(sizeof client_hello == 5 + HELLO_BYTES, "the record's length says what it holds");

bool http_client_meets_tls(struct http_client *client, int64_t timeout_ms)
{
    struct patience patience = {.deadline_ns = deadline_after(timeout_ms)};
    uint8_t first = 0;
    disconnect(client);
    if (!connect_host(client, patience.deadline_ns, NULL))
        return false;
    bool answered =
        send(client->fd, client_hello, sizeof client_hello, MSG_NOSIGNAL) == sizeof client_hello &&
        wait_ready(client->fd, POLLIN, &patience) && recv(client->fd, &first, 1, 0) == 1;
    disconnect(client);
    return answered && (first == 0x16 || first == 0x15);
}
