/* connection.c - the life of a connection; http.h draws its states. */
#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include "host/http/internal.h"

enum { STEPS_A_TURN = 16, LINES_BYTES = 256 };
enum progress {
    GOES_ON, /* take another step */
    YIELDS,  /* take another step after other connections */
    STANDS,  /* wait for the client or the owner */
    ENDS,    /* end the connection */
};

/* --- the end ------------------------------------------------------------------------------------------- */

void http_enter_stage(struct http_connection *connection, int stage)
{
    struct http *http = connection->http;
    list_remove(&connection->stage_node);
    connection->since_ns = http->now_ns;
    if (stage < HTTP_STAGES_ALL)
        list_append(&http->stages[stage], &connection->stage_node);
}

static void connection_end_request(struct http_connection *connection)
{
    void *request = connection->request;
    connection->request = NULL;
    connection->source = (struct http_source){0};
    if (request)
        connection->http->options.ended(request);
}

static void connection_free(struct http_connection *connection)
{
    buf_done(&connection->in);
    mem_free(connection);
}

/* Removes a connection from the server. Closes the socket unless it was given away. */
static void connection_leave(struct http_connection *connection, bool closes)
{
    struct http *http = connection->http;
    CHECK(connection->state != HTTP_OVER);
    connection_end_request(connection);
    http->lingering -= connection->state == HTTP_LINGERS;
    connection->state = HTTP_OVER;
    list_remove(&connection->ready_node);
    list_remove(&connection->stage_node);
    list_remove(&connection->node);
    /* A child process before its exec may hold the socket; its events would refer to freed memory. */
    (void)epoll_ctl(http->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    if (closes)
        close(connection->fd);
    buf_done(&connection->out);
    buf_done(&connection->body);
    http->options.left(http->options.context, connection->peer);
    if (http->running) /* an event of this turn may still refer to it */
        list_append(&http->dead, &connection->node);
    else
        connection_free(connection);
}

void http_end(struct http_connection *connection)
{
    connection_leave(connection, true);
}

/* Returns whether the client may still be sending, so that a close would reset the connection. */
static bool connection_has_unread(const struct http_connection *connection)
{
    char byte;
    ssize_t count = recv(connection->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return count > 0 || (count < 0 && errno == EAGAIN && !connection->whole);
}

/* Ends a connection whose last answer was sent: drains it first if its client may still send. */
static enum progress connection_finish(struct http_connection *connection)
{
    struct http *http = connection->http;
    connection_end_request(connection);
    if (http->lingering == HTTP_LINGERING_MAX || !connection_has_unread(connection) ||
        shutdown(connection->fd, SHUT_WR) < 0)
        return ENDS;
    connection->state = HTTP_LINGERS;
    connection->readable = true;
    buf_done(&connection->in);
    http->lingering++;
    http_enter_stage(connection, HTTP_STAGE_LINGER);
    return GOES_ON;
}

static enum progress connection_linger(struct http_connection *connection)
{
    struct http *http = connection->http;
    if (!connection->readable)
        return STANDS;
    ssize_t count = recv(connection->fd, http->in, sizeof http->in, MSG_DONTWAIT);
    if (count > 0)
        return YIELDS;
    connection->readable = false;
    return count < 0 && (errno == EAGAIN || errno == EINTR) ? STANDS : ENDS;
}

/* --- answers ------------------------------------------------------------------------------------------- */

static const char *status_text(int code)
{
    static const struct {
        int code;
        const char *text;
    } known[] = {{101, "Switching Protocols"},
                 {200, "OK"},
                 {201, "Created"},
                 {202, "Accepted"},
                 {204, "No Content"},
                 {304, "Not Modified"},
                 {400, "Bad Request"},
                 {401, "Unauthorized"},
                 {403, "Forbidden"},
                 {404, "Not Found"},
                 {405, "Method Not Allowed"},
                 {406, "Not Acceptable"},
                 {409, "Conflict"},
                 {410, "Gone"},
                 {411, "Length Required"},
                 {413, "Content Too Large"},
                 {414, "URI Too Long"},
                 {415, "Unsupported Media Type"},
                 {421, "Misdirected Request"},
                 {422, "Unprocessable Content"},
                 {429, "Too Many Requests"},
                 {431, "Request Header Fields Too Large"},
                 {500, "Internal Server Error"},
                 {501, "Not Implemented"},
                 {503, "Service Unavailable"},
                 {504, "Gateway Timeout"},
                 {505, "HTTP Version Not Supported"},
                 {507, "Insufficient Storage"}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].code == code)
            return known[i].text;
    return "Error";
}

/* Writes the head of an answer, without the lines about its body. */
static void answer_begin_head(struct http_connection *connection, int code, struct str lines)
{
    struct buf *out = &connection->out;
    char digits[DECIMAL_TEXT_MAX];
    CHECK(connection->state < HTTP_SENDS && connection->body.len == 0);
    if (!connection->whole)
        connection->keeps = false;
    buf_reserve(out, LINES_BYTES + lines.len);
    buf_add_str(out, STR("HTTP/1.1 ")); /* printf would cost a noticeable part of a small answer */
    buf_add_str(out, str_decimal(code, digits));
    buf_add_char(out, ' ');
    buf_add_str(out, str_from(status_text(code)));
    buf_add_str(out, STR("\r\n"));
    buf_add_str(out, http_date_line(connection->http));
    buf_add_str(out, lines);
    connection->bare = connection->bare || code == 204 || code == 304;
}

static void answer_goes(struct http_connection *connection)
{
    if (!connection->keeps)
        buf_add_str(&connection->out, STR("Connection: close\r\n"));
    buf_add_str(&connection->out, STR("\r\n"));
    connection->state = HTTP_SENDS;
    http_enter_stage(connection, HTTP_STAGES_ALL);
    http_make_ready(connection);
}

void http_answer(struct http_connection *connection, int code, struct str lines, struct buf *body)
{
    char digits[DECIMAL_TEXT_MAX];
    answer_begin_head(connection, code, lines);
    if (code != 204 && code != 304) {
        buf_add_str(&connection->out, STR("Content-Length: "));
        buf_add_str(&connection->out, str_decimal((int64_t)body->len, digits));
        buf_add_str(&connection->out, STR("\r\n"));
    }
    if (connection->bare)
        buf_done(body);
    connection->body = *body;
    *body = (struct buf){0};
    answer_goes(connection);
}

void http_stream(struct http_connection *connection, int code, struct str lines, struct http_source source)
{
    answer_begin_head(connection, code, lines);
    if (connection->chunked)
        buf_add_str(&connection->out, STR("Transfer-Encoding: chunked\r\n"));
    else
        connection->keeps = false;
    if (!connection->bare)
        connection->source = source;
    answer_goes(connection);
}

void http_upgrade(struct http_connection *connection, struct str lines)
{
    answer_begin_head(connection, 101, lines);
    buf_add_str(&connection->out, STR("Connection: Upgrade\r\n"));
    connection->upgrades = true;
    connection->keeps = true;
    answer_goes(connection);
}

void http_wake(struct http_connection *connection)
{
    connection->woken = true;
    http_make_ready(connection);
}

void http_drop(struct http_connection *connection)
{
    connection->dropped = true;
    http_make_ready(connection);
}

/* Refuses a head or a body that cannot be read. */
static void answer_refusal(struct http_connection *connection, int code)
{
    struct buf text = {0};
    connection->keeps = connection->whole = false;
    buf_printf(&text, "%s\n", status_text(code));
    http_answer(connection, code, STR("Content-Type: text/plain; charset=utf-8\r\n"), &text);
}

void http_refuse_bodies(struct http *http)
{
    list_for_each(node, &http->connections)
    {
        struct http_connection *connection = container_of(node, struct http_connection, node);
        if (connection->state == HTTP_BODY)
            answer_refusal(connection, 503);
    }
}

/* --- receiving ----------------------------------------------------------------------------------------- */

/* Reads a head from the front of the text. Returns the number of bytes used. */
static size_t connection_take_head(struct http_connection *connection, struct str text)
{
    struct http *http = connection->http;
    struct http_head *head = &http->head;
    size_t len = 0;
    bool first = connection->scanned == 0;
    int rc = http_head_parse(text, connection->scanned, http->options.head_bytes_max, head, &len);
    connection->scanned = rc == 0 ? text.len : 0;
    if (rc == 0) {
        if (first) /* the head's first bytes, which may have arrived with the previous request */
            http_enter_stage(connection, HTTP_STAGE_HEAD);
        return 0;
    }
    connection->chunked = connection->bare = connection->woken = false;
    if (rc < 0) {
        answer_refusal(connection, -rc);
        return text.len;
    }
    connection->keeps = head->keeps && !http->give;
    connection->chunked = head->minor >= 1;
    connection->bare = str_is(head->method, "HEAD");
    connection->body_left = head->content_length;
    connection->chunks = (struct http_chunks){0};
    connection->whole = head->content_length == 0;
    connection->state = connection->whole ? HTTP_WAITS : HTTP_BODY;
    bool continues = head->continues && text.len == len;
    connection->request = http->options.begins(http->options.context, connection, head);
    if (connection->state == HTTP_WAITS) {
        http_enter_stage(connection, HTTP_STAGES_ALL);
        http->options.whole(connection->request);
    } else if (connection->state == HTTP_BODY) {
        http_enter_stage(connection, HTTP_STAGE_BODY);
        if (continues) /* if the socket cannot take 25 bytes, the client will not get an answer either */
            (void)send(connection->fd, "HTTP/1.1 100 Continue\r\n\r\n", 25, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    return len;
}

/* Takes the body's next part from the front of *text. Returns as http_chunks_take() does. */
static int connection_next_part(struct http_connection *connection, struct str *text, struct str *ret_data)
{
    if (connection->body_left == HTTP_CHUNKED)
        return http_chunks_take(&connection->chunks, text, ret_data);
    size_t len = text->len < (uint64_t)connection->body_left ? text->len : (size_t)connection->body_left;
    *ret_data = (struct str){text->data, len};
    *text = (struct str){text->data + len, text->len - len};
    connection->body_left -= (int64_t)len;
    return connection->body_left == 0;
}

static size_t connection_take_body(struct http_connection *connection, struct str text)
{
    const struct http_options *owner = &connection->http->options;
    struct str rest = text, data;
    int rc = 0;
    while (rc == 0 && rest.len && connection->state == HTTP_BODY) {
        rc = connection_next_part(connection, &rest, &data);
        if (data.len)
            owner->body(connection->request, data);
    }
    if (connection->state != HTTP_BODY)
        return text.len; /* the owner has answered early */
    if (rc < 0) {
        answer_refusal(connection, -rc);
    } else if (rc > 0) {
        connection->whole = true;
        connection->state = HTTP_WAITS;
        http_enter_stage(connection, HTTP_STAGES_ALL);
        owner->whole(connection->request);
    }
    return text.len - rest.len;
}

/* Keeps the unused rest of the text, which is all of `in`, or new bytes while `in` was empty. */
static void connection_keep(struct http_connection *connection, struct str text, size_t used)
{
    if (used == text.len)
        buf_done(&connection->in);
    else if (text.data == connection->in.data)
        buf_drop_front(&connection->in, used);
    else
        buf_add(&connection->in, text.data + used, text.len - used);
}

/* Receives into the server's buffer. Returns 0 if there are no bytes, a negative value if the connection has
 * ended. */
static ssize_t connection_receive(struct http_connection *connection)
{
    struct http *http = connection->http;
    if (!connection->readable)
        return 0;
    ssize_t count = recv(connection->fd, http->in, sizeof http->in, MSG_DONTWAIT);
    if (count < 0 && errno == EINTR)
        return 0;
    if (count < 0 && errno == EAGAIN) {
        connection->readable = false;
        return 0;
    }
    /* Fewer bytes than requested: there are no more now, and epoll will report new ones. */
    if (count > 0 && (size_t)count < sizeof http->in && !connection->hung)
        connection->readable = false;
    return count > 0 ? count : -1;
}

static enum progress connection_read(struct http_connection *connection)
{
    struct str text = buf_str(&connection->in);
    if (!connection->fresh) {
        ssize_t count = connection_receive(connection);
        if (count <= 0)
            return count < 0 ? ENDS : STANDS;
        text = (struct str){connection->http->in, (size_t)count};
        if (connection->in.len) {
            buf_add_str(&connection->in, text);
            text = buf_str(&connection->in);
        }
    }
    size_t used = connection->state == HTTP_HEAD ? connection_take_head(connection, text)
                                                 : connection_take_body(connection, text);
    connection_keep(connection, text, used);
    connection->fresh = used > 0 && connection->in.len > 0;
    return GOES_ON;
}

/* --- sending ------------------------------------------------------------------------------------------- */

static size_t connection_unsent(const struct http_connection *connection)
{
    return connection->out.len + connection->body.len - connection->sent;
}

/* Handles a socket that takes no more bytes now. `progress`: it has taken some since the last time. */
static enum progress connection_blocks(struct http_connection *connection, bool progress)
{
    connection->writable = false;
    if (progress || list_empty(&connection->stage_node))
        http_enter_stage(connection, HTTP_STAGE_ANSWER);
    return STANDS;
}

static enum progress connection_flush(struct http_connection *connection)
{
    struct buf *out = &connection->out, *body = &connection->body;
    size_t before = connection->sent;
    while (connection_unsent(connection)) {
        if (!connection->writable)
            return STANDS;
        size_t first = connection->sent < out->len ? connection->sent : out->len;
        size_t second = connection->sent - first;
        struct iovec parts[2] = {{out->data + first, out->len - first}, {NULL, body->len - second}};
        if (body->data)
            parts[1].iov_base = body->data + second;
        struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
        ssize_t count = sendmsg(connection->fd, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
        if (count < 0 && errno == EAGAIN)
            return connection_blocks(connection, connection->sent > before);
        if (count < 0 && errno != EINTR)
            return ENDS;
        connection->sent += count > 0 ? (size_t)count : 0;
    }
    buf_done(out);
    buf_done(body);
    connection->sent = 0;
    return GOES_ON;
}

/* Writes one chunk of the stream to `out`, which has space for HTTP_BLOCK_BYTES. Returns its length, 0 if
 * the stream has nothing now. */
static size_t connection_put_chunk(struct http_connection *connection, char *out, size_t room)
{
    static const char digits[] = "0123456789abcdef";
    bool chunked = connection->chunked;
    char *data = chunked ? out + HTTP_CHUNK_HEAD : out;
    int64_t len = connection->source.read(connection->source.context, data, room);
    if (len < 0) {
        connection->source = (struct http_source){0};
        memcpy(out, "0\r\n\r\n", HTTP_LAST_CHUNK);
        return chunked ? HTTP_LAST_CHUNK : 0;
    }
    if (len == 0 || !chunked)
        return (size_t)len;
    for (int i = 0; i < HTTP_CHUNK_DIGITS; i++)
        out[i] = digits[len >> (4 * (HTTP_CHUNK_DIGITS - 1 - i)) & 15];
    memcpy(out + HTTP_CHUNK_DIGITS, "\r\n", 2);
    memcpy(data + len, "\r\n", 2);
    return (size_t)len + HTTP_CHUNK_ROOM;
}

/* Sends a block of the stream, after the head if that is unsent. */
static enum progress connection_send_stream(struct http_connection *connection)
{
    struct http *http = connection->http;
    size_t len = connection_unsent(connection), added = 1;
    CHECK(len < HTTP_BLOCK_BYTES / 2 && connection->sent == 0);
    if (len)
        memcpy(http->out, connection->out.data, len);
    while (added && connection->source.read && len < HTTP_BLOCK_BYTES / 2) {
        added = connection_put_chunk(connection, http->out + len, HTTP_BLOCK_BYTES - len);
        len += added;
    }
    buf_done(&connection->out);
    if (len == 0 && connection->source.read)
        return connection->hung ? ENDS : STANDS;
    ssize_t count = len ? send(connection->fd, http->out, len, MSG_DONTWAIT | MSG_NOSIGNAL) : 0;
    if (count < 0 && errno != EAGAIN && errno != EINTR)
        return ENDS;
    size_t sent = count > 0 ? (size_t)count : 0;
    if (sent < len) {
        buf_add(&connection->out, http->out + sent, len - sent);
        return connection_blocks(connection, sent > 0);
    }
    return connection->source.read ? YIELDS : GOES_ON;
}

static enum progress connection_lend(struct http_connection *connection)
{
    struct buf first = connection->in;
    connection->in = (struct buf){0};
    connection->state = HTTP_LENT;
    (void)!epoll_ctl(connection->http->epoll_fd, EPOLL_CTL_DEL, connection->fd, NULL);
    connection->http->options.upgraded(connection->request, connection->fd, buf_str(&first));
    buf_done(&first);
    return STANDS;
}

static enum progress connection_send(struct http_connection *connection)
{
    bool begins = connection->source.read && connection->sent == 0 &&
                  connection_unsent(connection) < HTTP_BLOCK_BYTES / 2 && connection->writable;
    if (!begins) {
        enum progress progress = connection_flush(connection);
        if (progress != GOES_ON)
            return progress;
    }
    http_enter_stage(connection, HTTP_STAGES_ALL);
    if (connection->source.read)
        return connection_send_stream(connection);
    if (connection->upgrades)
        return connection_lend(connection);
    if (!connection->keeps || connection->http->closing)
        return connection_finish(connection);
    connection_end_request(connection);
    connection->state = HTTP_HEAD;
    connection->fresh = connection->in.len > 0;
    http_enter_stage(connection, HTTP_STAGE_QUIET);
    return GOES_ON;
}

void http_release(struct http_connection *connection)
{
    CHECK(connection->state == HTTP_LENT);
    http_drop(connection);
}

/* --- steps --------------------------------------------------------------------------------------------- */

static enum progress connection_wait(struct http_connection *connection)
{
    const struct http_options *owner = &connection->http->options;
    if (connection->hung && owner->gone(connection->request))
        return ENDS;
    if (connection->woken) {
        connection->woken = false;
        owner->woken(connection->request);
    }
    return connection->state == HTTP_WAITS ? STANDS : GOES_ON;
}

/* Asks the receiving server about a connection that is ready for its next head. */
static enum progress connection_give(struct http_connection *connection)
{
    const struct http *http = connection->http;
    switch (http->give(http->give_context, connection->peer, connection->fd, buf_str(&connection->in))) {
    case HTTP_GIVEN:
        connection_leave(connection, false);
        return STANDS;
    case HTTP_SERVED:
        return connection_read(connection);
    case HTTP_CLOSED:
        return ENDS;
    }
    CHECK_UNREACHABLE();
}

static enum progress connection_step(struct http_connection *connection)
{
    if (connection->dropped)
        return ENDS;
    switch ((enum http_state)connection->state) {
    case HTTP_HEAD:
        return connection->http->give ? connection_give(connection) : connection_read(connection);
    case HTTP_BODY:
        return connection_read(connection);
    case HTTP_WAITS:
        return connection_wait(connection);
    case HTTP_SENDS:
        return connection_send(connection);
    case HTTP_LINGERS:
        return connection_linger(connection);
    case HTTP_LENT:
    case HTTP_OVER:
        return STANDS;
    }
    CHECK_UNREACHABLE();
}

void http_go_on(struct http_connection *connection)
{
    struct http *http = connection->http;
    enum progress progress = GOES_ON;
    if (connection->state == HTTP_OVER)
        return;
    http->current = connection;
    for (int i = 0; i < STEPS_A_TURN && progress == GOES_ON; i++) {
        connection->again = false;
        progress = connection_step(connection);
        /* The next request, if the client has sent it ahead, begins in this turn only if there is time
         * left. */
        if (progress == GOES_ON && connection->state == HTTP_HEAD &&
            (int64_t)uv_hrtime() >= http->turn_end_ns)
            progress = YIELDS;
    }
    http->current = NULL;
    if (progress == STANDS && connection->again)
        progress = YIELDS;
    if (progress == ENDS)
        http_end(connection);
    else if (progress != STANDS)
        http_make_ready(connection);
}
