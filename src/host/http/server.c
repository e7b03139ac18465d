/* server.c - the server of the connections: the epoll set, turns, time limits, opening and closing. */
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "host/http/internal.h"

enum { EVENTS_A_TURN = 128, TICK_MS = 1000, HTTP_HANDLES = 3 };
#define TURN_NS (2 * NS_PER_MS) /* then other work of the loop follows */

struct str http_date_line(struct http *http)
{
    struct timespec now;
    struct tm parts;
    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    if (now.tv_sec != http->date_s && gmtime_r(&now.tv_sec, &parts)) {
        http->date_s = now.tv_sec;
        (void)strftime(http->date, sizeof http->date, "Date: %a, %d %b %Y %H:%M:%S GMT\r\n", &parts);
    }
    return str_from(http->date);
}

/* --- turns --------------------------------------------------------------------------------------------- */

static void on_http_idle(uv_idle_t *idle);

void http_make_ready(struct http_connection *connection)
{
    struct http *http = connection->http;
    connection->again = true;
    if (connection == http->current || !list_empty(&connection->ready_node))
        return;
    list_append(&http->ready, &connection->ready_node);
    if (!http->running && !http->closing)
        uv_idle_start(&http->idle, on_http_idle);
}

/* Records the events that epoll reports. Returns the number of connections with events. */
static int http_look(struct http *http)
{
    struct epoll_event events[EVENTS_A_TURN];
    int count = epoll_wait(http->epoll_fd, events, EVENTS_A_TURN, 0);
    for (int i = 0; i < count; i++) {
        struct http_connection *connection = events[i].data.ptr;
        if (connection->state == HTTP_OVER)
            continue;
        bool hung = events[i].events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR);
        connection->hung = connection->hung || hung;
        connection->readable = connection->readable || hung || (events[i].events & EPOLLIN);
        connection->writable = connection->writable || hung || (events[i].events & EPOLLOUT);
        http_make_ready(connection);
    }
    return count;
}

static void http_bury(struct http *http)
{
    list_for_each_safe(node, after, &http->dead)
    {
        struct http_connection *connection = container_of(node, struct http_connection, node);
        list_remove(&connection->node);
        buf_done(&connection->in);
        mem_free(connection);
    }
}

static void http_run(struct http *http)
{
    if (http->running || http->closing)
        return;
    int count;
    http->running = true;
    if (http->options.turn_begins)
        http->options.turn_begins(http->options.context);
    http->now_ns = (int64_t)uv_hrtime();
    http->turn_end_ns = http->now_ns + TURN_NS;
    do {
        count = http_look(http);
        while (!list_empty(&http->ready) && http->now_ns < http->turn_end_ns) {
            struct http_connection *connection =
                container_of(http->ready.next, struct http_connection, ready_node);
            list_remove(&connection->ready_node);
            http_go_on(connection);
            http->now_ns = (int64_t)uv_hrtime();
        }
    } while (count == EVENTS_A_TURN && http->now_ns < http->turn_end_ns);
    http->running = false;
    http_bury(http);
    if (http->options.turn_ends)
        http->options.turn_ends(http->options.context);
    if (list_empty(&http->ready))
        uv_idle_stop(&http->idle);
    else
        uv_idle_start(&http->idle, on_http_idle);
}

static void on_http_idle(uv_idle_t *idle)
{
    http_run(idle->data);
}

static void on_http_poll(uv_poll_t *poll, int status, int events)
{
    (void)status;
    (void)events;
    http_run(poll->data);
}

void http_flush(struct http *http)
{
    if (!list_empty(&http->ready))
        http_run(http);
}

/* Ends connections that have exceeded the time limit of their stage. */
static void on_http_tick(uv_timer_t *timer)
{
    struct http *http = timer->data;
    http->now_ns = (int64_t)uv_hrtime();
    http->running = true; /* a hook that flushes must not end connections that this loop visits next */
    for (int i = 0; i < HTTP_STAGES_ALL; i++) {
        int limit_s = i == HTTP_STAGE_LINGER ? HTTP_LINGER_S : http->options.stages_s[i];
        list_for_each_safe(node, after, &http->stages[i])
        {
            struct http_connection *connection = container_of(node, struct http_connection, stage_node);
            if (http->now_ns - connection->since_ns < limit_s * NS_PER_SECOND)
                break;
            http_end(connection);
        }
    }
    http->running = false;
    http_bury(http);
    if (!list_empty(&http->ready))
        uv_idle_start(&http->idle, on_http_idle);
    if (list_empty(&http->connections))
        uv_timer_stop(timer);
}

/* --- connections --------------------------------------------------------------------------------------- */

void http_take(struct http *http, int fd, void *peer)
{
    struct http_connection *connection = mem_alloc(sizeof *connection);
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET, .data.ptr = connection};
    int on = 1;
    CHECK(!http->closing);
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on); /* fails for other sockets */
    connection->http = http;
    connection->fd = fd;
    connection->peer = peer;
    connection->readable = connection->writable = true;
    list_init(&connection->ready_node);
    list_init(&connection->stage_node);
    list_append(&http->connections, &connection->node);
    if (epoll_ctl(http->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        connection->dropped = true; /* ends later: the caller has not counted the connection yet */
    http->now_ns = (int64_t)uv_hrtime();
    http_enter_stage(connection, HTTP_STAGE_QUIET);
    http_make_ready(connection);
    if (!uv_is_active((uv_handle_t *)&http->tick))
        uv_timer_start(&http->tick, on_http_tick, TICK_MS, TICK_MS);
}

void http_give_away(struct http *http, http_give *give, void *context)
{
    http->give = give;
    http->give_context = context;
    list_for_each(node, &http->connections)
    {
        struct http_connection *connection = container_of(node, struct http_connection, node);
        if (connection->state == HTTP_HEAD)
            http_make_ready(connection);
    }
}

size_t http_unanswered(const struct http *http)
{
    size_t count = 0;
    list_for_each(node, &http->connections)
    {
        const struct http_connection *connection = container_of(node, struct http_connection, node);
        count += connection->state == HTTP_BODY || connection->state == HTTP_WAITS;
    }
    return count;
}

size_t http_open(const struct http *http)
{
    size_t count = 0;
    list_for_each(node, &http->connections) count++;
    return count;
}

void *http_peer(const struct http_connection *connection)
{
    return connection->peer;
}

int http_socket(const struct http_connection *connection)
{
    return connection->fd;
}

/* --- opening and closing ------------------------------------------------------------------------------- */

int http_new(uv_loop_t *loop, const struct http_options *options, struct http **ret_http, struct error *error)
{
    int epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (epoll_fd < 0)
        return error_set_errno(error, errno, "epoll_create1");
    struct http *http = mem_alloc(sizeof *http);
    http->loop = loop;
    http->options = *options;
    http->epoll_fd = epoll_fd;
    http->open_handles = HTTP_HANDLES;
    list_init(&http->connections);
    list_init(&http->ready);
    list_init(&http->dead);
    for (int i = 0; i < HTTP_STAGES_ALL; i++)
        list_init(&http->stages[i]);
    CHECK(uv_poll_init(loop, &http->poll, epoll_fd) == 0 && uv_idle_init(loop, &http->idle) == 0 &&
          uv_timer_init(loop, &http->tick) == 0);
    http->poll.data = http->idle.data = http->tick.data = http;
    uv_poll_start(&http->poll, UV_READABLE, on_http_poll);
    *ret_http = http;
    return 0;
}

static void on_http_closed(uv_handle_t *handle)
{
    struct http *http = handle->data;
    if (--http->open_handles)
        return;
    void (*closed)(void *context) = http->closed;
    void *context = http->closed_context;
    mem_free(http);
    if (closed)
        closed(context);
}

void http_close(struct http *http, void (*closed)(void *context), void *context)
{
    CHECK(!http->closing && !http->running);
    http->closing = true;
    http->closed = closed;
    http->closed_context = context;
    list_for_each_safe(node, after, &http->connections)
    {
        http_end(container_of(node, struct http_connection, node));
    }
    uv_poll_stop(&http->poll);
    uv_close((uv_handle_t *)&http->poll, on_http_closed);
    uv_close((uv_handle_t *)&http->idle, on_http_closed);
    uv_close((uv_handle_t *)&http->tick, on_http_closed);
    close(http->epoll_fd);
}
