#include "host/api/session.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "base/arena.h"
#include "base/check.h"

enum {
    MESSAGE_BYTES_MAX = 4 * 1024 * 1024, /* largest message of a client; clients send 32 KiB at most */
    CHUNK_BYTES = 16 * 1024,
    TURN_CHUNKS = 8,            /* then other connections follow */
    PONG_QUEUE_MAX = 64 * 1024, /* a client that does not read gets no more pongs */
    END_TIMEOUT_MS = 5000,
};

struct session {
    const struct session_handlers *handlers;
    void *context;
    struct websocket websocket;
    int fd;
    uv_poll_t poll;
    uv_timer_t timer; /* passes `first`; later the time limit of session_end() */
    int handles;
    struct buf first, out;
    size_t sent; /* of `out` */
    bool paused, ending, peer_closed, dropped;
};

static void update(struct session *session);

/* --- the end -------------------------------------------------------------------------------------- */

static void on_handle_closed(uv_handle_t *handle)
{
    struct session *session = handle->data;
    if (--session->handles > 0)
        return;
    buf_done(&session->first);
    buf_done(&session->out);
    mem_free(session);
}

void session_drop(struct session *session)
{
    if (session->dropped)
        return;
    session->dropped = session->ending = true;
    uv_close((uv_handle_t *)&session->poll, on_handle_closed);
    uv_close((uv_handle_t *)&session->timer, on_handle_closed);
    session->handlers->release(session->context);
}

/* Ends a session whose client has disconnected. */
static void lose(struct session *session)
{
    bool tell = !session->ending;
    session->ending = true;
    if (tell)
        session->handlers->closed(session->context);
    session_drop(session);
}

static void on_end_timeout(uv_timer_t *timer)
{
    session_drop(timer->data);
}

void session_end(struct session *session, enum websocket_code code, struct str reason)
{
    if (session->ending)
        return;
    session->ending = true;
    session->paused = false;
    websocket_put_close(&session->out, NULL, code, reason);
    uv_timer_start(&session->timer, on_end_timeout, END_TIMEOUT_MS, 0);
    update(session);
}

/* --- writing -------------------------------------------------------------------------------------- */

static bool flush(struct session *session)
{
    while (session->sent < session->out.len) {
        ssize_t count = send(session->fd, session->out.data + session->sent, session->out.len - session->sent,
                             MSG_NOSIGNAL | MSG_DONTWAIT);
        if (count < 0 && errno == EINTR)
            continue;
        if (count <= 0)
            return count < 0 && errno == EAGAIN;
        session->sent += (size_t)count;
    }
    buf_clear(&session->out);
    session->sent = 0;
    return true;
}

size_t session_queued(const struct session *session)
{
    return session->out.len - session->sent;
}

void session_send(struct session *session, uint8_t channel, struct str bytes)
{
    CHECK(!session->ending);
    char head = (char)channel;
    if (session->sent > session->out.len / 2) {
        buf_drop_front(&session->out, session->sent);
        session->sent = 0;
    }
    websocket_put(&session->out, WEBSOCKET_BINARY, NULL, (struct str){&head, 1}, bytes);
    update(session);
}

/* --- reading -------------------------------------------------------------------------------------- */

static void on_event(struct session *session, const struct websocket_event *event)
{
    switch (event->kind) {
    case WEBSOCKET_DATA:
        /* Text messages count too: Python's client sends str in them. */
        if (!session->ending)
            session->handlers->data(session->context, event->bytes, event->first, event->last);
        break;
    case WEBSOCKET_PING:
        if (!session->ending && session_queued(session) < PONG_QUEUE_MAX)
            websocket_put(&session->out, WEBSOCKET_OP_PONG, NULL, STR(""), event->bytes);
        break;
    case WEBSOCKET_CLOSED:
    case WEBSOCKET_BROKEN:
        session->peer_closed = true;
        if (!session->ending) {
            bool broken = event->kind == WEBSOCKET_BROKEN;
            session_end(session, broken ? (enum websocket_code)event->code : WEBSOCKET_NORMAL,
                        broken ? event->bytes : STR(""));
            session->handlers->closed(session->context);
        }
        break;
    case WEBSOCKET_PONG:
    case WEBSOCKET_MORE:
        break;
    }
}

static void feed(struct session *session, char *data, size_t len)
{
    struct websocket_event event;
    size_t used;
    do {
        websocket_next(&session->websocket, data, len, &used, &event);
        data += used;
        len -= used;
        on_event(session, &event);
    } while (event.kind != WEBSOCKET_MORE && !session->dropped);
}

/* Reads and handles bytes. Returns false if the connection has ended. */
static bool read_some(struct session *session)
{
    static char chunk[CHUNK_BYTES];
    for (int i = 0; i < TURN_CHUNKS && !session->paused && !session->dropped; i++) {
        ssize_t count = recv(session->fd, chunk, sizeof chunk, MSG_DONTWAIT);
        if (count <= 0)
            return count < 0 && (errno == EAGAIN || errno == EINTR);
        feed(session, chunk, (size_t)count);
    }
    return true;
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    struct session *session = poll->data;
    bool alive = status >= 0;
    if (alive && events & UV_READABLE)
        alive = read_some(session);
    if (session->dropped)
        return;
    size_t queued = session_queued(session);
    if (!alive || (events & UV_DISCONNECT && session->paused) || !flush(session)) {
        lose(session);
        return;
    }
    if (session_queued(session) < queued && !session->ending)
        session->handlers->written(session->context);
    if (!session->dropped)
        update(session);
}

/* Tells the loop which events to wait for. Ends the session once everything is sent and the client has sent
 * its close frame. */
static void update(struct session *session)
{
    if (session->dropped)
        return;
    int events = UV_DISCONNECT | (session->paused ? 0 : UV_READABLE);
    if (session_queued(session) > 0)
        events |= UV_WRITABLE;
    else if (session->ending && session->peer_closed) {
        uv_timer_start(&session->timer, on_end_timeout, 0, 0);
        events = 0;
    }
    if (events)
        uv_poll_start(&session->poll, events, on_poll);
    else
        uv_poll_stop(&session->poll);
}

void session_pause(struct session *session, bool paused)
{
    session->paused = paused && !session->ending;
    update(session);
}

static void on_start(uv_timer_t *timer)
{
    struct session *session = timer->data;
    if (session->first.len)
        feed(session, session->first.data, session->first.len);
    buf_done(&session->first);
    if (!session->dropped)
        update(session);
}

struct session *session_new(uv_loop_t *loop, int fd, struct str first,
                            const struct session_handlers *handlers, void *context)
{
    struct session *session = mem_alloc(sizeof *session);
    int on = 1;
    session->handlers = handlers;
    session->context = context;
    session->fd = fd;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    session->handles = 2;
    websocket_init(&session->websocket, WEBSOCKET_SERVER, MESSAGE_BYTES_MAX);
    buf_add_str(&session->first, first);
    CHECK(uv_poll_init(loop, &session->poll, fd) == 0 && uv_timer_init(loop, &session->timer) == 0);
    session->poll.data = session->timer.data = session;
    uv_timer_start(&session->timer, on_start, 0, 0);
    return session;
}
