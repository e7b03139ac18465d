#include "host/agent/http.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "base/units.h"

enum { SWEEP_MS = 1000, BACKLOG = 64, READ_BYTES = 16 * 1024 };

struct http_server {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    };
    uv_timer_t sweep;
    http_handler *handler;
    void *context;
    struct list_node conns;
    int conn_count, open_handles;
    bool is_unix;
    void (*closed)(void *context);
    void *closed_context;
};

struct conn {
    union {
        uv_handle_t handle;
        uv_stream_t stream;
        uv_pipe_t pipe;
        uv_tcp_t tcp;
    };
    struct http_server *server;
    struct list_node node;
    struct buf in, out;
    uv_write_t write;
    uint64_t deadline_ms;
    bool answered;
};

/* --- requests ------------------------------------------------------------------------------------------- */

static bool equal_fold(struct str text, const char *word)
{
    return text.len == strlen(word) && strncasecmp(text.data, word, text.len) == 0;
}

/* The body's length as the head has it; negative: a status. */
static int64_t body_length(struct str lines)
{
    int64_t length = -1;
    while (lines.len) {
        struct str line = lines, rest = {0}, name, value;
        str_cut(lines, '\n', &line, &rest);
        lines = rest;
        line = str_trim(line);
        if (line.len == 0)
            continue;
        if (!str_cut(line, ':', &name, &value))
            return -400;
        value = str_trim(value);
        if (equal_fold(name, "transfer-encoding"))
            return -411;
        if (!equal_fold(name, "content-length"))
            continue;
        int64_t said;
        if (!str_to_i64(value, 0, INT64_MAX, &said) || (length >= 0 && said != length))
            return -400;
        length = said;
    }
    return length < 0 ? 0 : length > HTTP_BODY_MAX ? -413 : length;
}

int http_parse(struct str bytes, struct http_request *ret_request)
{
    const char *end = bytes.len ? memmem(bytes.data, bytes.len, "\r\n\r\n", 4) : NULL;
    size_t head_len = end ? (size_t)(end - bytes.data) : bytes.len;
    struct str first, rest = {0}, method, target, version, query;
    if (head_len > HTTP_HEAD_MAX)
        return -431;
    if (!end)
        return 0;
    struct str head = {bytes.data, head_len};
    if (!str_cut(head, '\n', &first, &rest))
        first = head;
    first = str_trim(first);
    if (!str_cut(first, ' ', &method, &target) || !str_cut(target, ' ', &target, &version) || !method.len ||
        !target.len || target.data[0] != '/' || !str_starts(version, STR("HTTP/1.")))
        return -400;
    int64_t length = body_length(rest);
    if (length < 0)
        return (int)length;
    if (bytes.len - head_len - 4 < (size_t)length)
        return 0;
    (void)str_cut(target, '?', &target, &query);
    *ret_request = (struct http_request){method, target, {bytes.data + head_len + 4, (size_t)length}};
    return 1;
}

/* --- connections ---------------------------------------------------------------------------------------- */

static void one_closed(struct http_server *server)
{
    if (--server->open_handles > 0)
        return;
    void (*closed)(void *) = server->closed;
    void *context = server->closed_context;
    mem_free(server);
    if (closed)
        closed(context);
}

static void on_conn_closed(uv_handle_t *handle)
{
    struct conn *conn = handle->data;
    struct http_server *server = conn->server;
    buf_done(&conn->in);
    buf_done(&conn->out);
    mem_free(conn);
    one_closed(server);
}

static void conn_close(struct conn *conn)
{
    if (uv_is_closing(&conn->handle))
        return;
    conn->server->conn_count--;
    list_remove(&conn->node);
    uv_close(&conn->handle, on_conn_closed);
}

static void on_written(uv_write_t *write, int status)
{
    conn_close(write->data);
}

static const char *status_text(int code)
{
    static const struct {
        int code;
        const char *text;
    } known[] = {{200, "OK"},
                 {202, "Accepted"},
                 {400, "Bad Request"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return "Error";
}

static void answer(struct conn *conn, struct http_answer *what)
{
    conn->answered = true;
    uv_read_stop(&conn->stream);
    buf_printf(&conn->out,
               "HTTP/1.1 %d %s\r\nContent-Type: %s\r\nContent-Length: %zu\r\nConnection: close\r\n",
               what->code, status_text(what->code), what->type, what->body.len);
    if (what->retry_after_s)
        buf_printf(&conn->out, "Retry-After: %d\r\n", what->retry_after_s);
    buf_add_str(&conn->out, STR("\r\n"));
    buf_add_str(&conn->out, buf_str(&what->body));
    buf_done(&what->body);
    uv_buf_t whole = uv_buf_init(conn->out.data, (unsigned)conn->out.len);
    conn->write.data = conn;
    if (uv_write(&conn->write, &conn->stream, &whole, 1, on_written) < 0)
        conn_close(conn);
}

static void on_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char shared[READ_BYTES]; /* read and copied at once, always on one thread */
    *buffer = uv_buf_init(shared, sizeof shared);
}

static void on_read(uv_stream_t *stream, ssize_t len, const uv_buf_t *buffer)
{
    struct conn *conn = stream->data;
    struct http_request request;
    struct http_answer what = {.code = 200, .type = "text/plain; charset=utf-8"};
    if (len < 0) {
        conn_close(conn);
        return;
    }
    buf_add(&conn->in, buffer->base, (size_t)len);
    int rc = http_parse(buf_str(&conn->in), &request);
    if (rc == 0)
        return;
    if (rc > 0) {
        conn->server->handler(conn->server->context, &request, &what);
    } else {
        what.code = -rc;
        buf_printf(&what.body, "%s\n", status_text(what.code));
    }
    answer(conn, &what);
}

static void on_sweep(uv_timer_t *timer)
{
    struct http_server *server = timer->data;
    uint64_t now_ms = uv_now(timer->loop);
    list_for_each_safe(node, after, &server->conns)
    {
        struct conn *conn = container_of(node, struct conn, node);
        if (conn->deadline_ms <= now_ms)
            conn_close(conn);
    }
    if (server->conn_count == 0)
        uv_timer_stop(timer);
}

static void on_connection(uv_stream_t *listener, int status)
{
    struct http_server *server = listener->data;
    if (status < 0)
        return;
    struct conn *conn = mem_alloc(sizeof *conn);
    conn->server = server;
    if (server->is_unix)
        uv_pipe_init(listener->loop, &conn->pipe, 0);
    else
        uv_tcp_init(listener->loop, &conn->tcp);
    conn->handle.data = conn;
    conn->deadline_ms = uv_now(listener->loop) + HTTP_SECONDS * 1000;
    server->open_handles++;
    server->conn_count++;
    list_append(&server->conns, &conn->node);
    if (uv_accept(listener, &conn->stream) < 0 || server->conn_count > HTTP_CONNS_MAX ||
        uv_read_start(&conn->stream, on_alloc, on_read) < 0)
        conn_close(conn);
    else if (!uv_is_active((uv_handle_t *)&server->sweep))
        uv_timer_start(&server->sweep, on_sweep, SWEEP_MS, SWEEP_MS);
}

/* --- listening ------------------------------------------------------------------------------------------ */

static struct http_server *server_new(uv_loop_t *loop, bool is_unix, http_handler *handler, void *context)
{
    struct http_server *server = mem_alloc(sizeof *server);
    server->handler = handler;
    server->context = context;
    server->is_unix = is_unix;
    server->open_handles = 2;
    list_init(&server->conns);
    if (is_unix)
        uv_pipe_init(loop, &server->pipe, 0);
    else
        uv_tcp_init(loop, &server->tcp);
    uv_timer_init(loop, &server->sweep);
    server->handle.data = server->sweep.data = server;
    return server;
}

static int begin(struct http_server *server, int rc, const char *where, struct http_server **ret_server,
                 struct error *error)
{
    if (rc == 0)
        rc = uv_listen(&server->stream, BACKLOG, on_connection);
    if (rc == 0) {
        *ret_server = server;
        return 0;
    }
    http_close(server, NULL, NULL);
    return error_set(error, ERROR_IO, "listening on %s: %s", where, uv_strerror(rc));
}

int http_listen_unix(uv_loop_t *loop, const char *path, unsigned mode, http_handler *handler, void *context,
                     struct http_server **ret_server, struct error *error)
{
    struct http_server *server = server_new(loop, true, handler, context);
    unlink(path);
    int rc = uv_pipe_bind(&server->pipe, path);
    if (rc == 0 && chmod(path, mode) < 0) /* before anybody can connect */
        rc = -errno;
    return begin(server, rc, path, ret_server, error);
}

int http_listen_tcp(uv_loop_t *loop, const char *address, uint16_t port, http_handler *handler, void *context,
                    struct http_server **ret_server, uint16_t *ret_port, struct error *error)
{
    struct http_server *server = server_new(loop, false, handler, context);
    struct sockaddr_storage place;
    int len = sizeof place;
    int rc = uv_ip4_addr(address, port, (struct sockaddr_in *)&place);
    if (rc < 0)
        rc = uv_ip6_addr(address, port, (struct sockaddr_in6 *)&place);
    if (rc == 0)
        rc = uv_tcp_bind(&server->tcp, (struct sockaddr *)&place, 0);
    rc = begin(server, rc, address, ret_server, error);
    if (rc == 0 && ret_port && uv_tcp_getsockname(&server->tcp, (struct sockaddr *)&place, &len) == 0)
        *ret_port = ntohs(place.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&place)->sin6_port
                                                      : ((struct sockaddr_in *)&place)->sin_port);
    return rc;
}

static void on_handle_closed(uv_handle_t *handle)
{
    one_closed(handle->data);
}

void http_close(struct http_server *server, void (*closed)(void *context), void *context)
{
    server->closed = closed;
    server->closed_context = context;
    list_for_each_safe(node, after, &server->conns) conn_close(container_of(node, struct conn, node));
    uv_close(&server->handle, on_handle_closed); /* unlinks a Unix socket's path */
    uv_close((uv_handle_t *)&server->sweep, on_handle_closed);
}
