#include "host/http/door.h"

#include "base/arena.h"
#include "host/http/http.h"
#include "host/http/listener.h"

struct door {
    struct http *http;
    struct listener *listener;
    door_handler *handler;
    void *context;
    int open_parts; /* open ones of http and listener */
    void (*closed)(void *context);
    void *closed_context;
};

struct door_exchange {
    struct door *door;
    struct http_connection *connection;
    struct buf method, path, body;
};

static void door_say(struct door_exchange *exchange, struct door_answer *answer)
{
    struct buf lines BUF_CLEANUP = {0};
    buf_printf(&lines, "Content-Type: %s\r\n", answer->type);
    if (answer->retry_after_s)
        buf_printf(&lines, "Retry-After: %d\r\n", answer->retry_after_s);
    http_answer(exchange->connection, answer->code, buf_str(&lines), &answer->body);
}

static void door_refuse_size(struct door_exchange *exchange)
{
    struct door_answer answer = {.code = 413, .type = "text/plain; charset=utf-8"};
    buf_printf(&answer.body, "the body has more than %d bytes\n", DOOR_BODY_MAX);
    door_say(exchange, &answer);
}

static void *door_begins(void *context, struct http_connection *connection, const struct http_head *head)
{
    struct door_exchange *exchange = mem_alloc(sizeof *exchange);
    struct str path = head->target, query;
    exchange->door = context;
    exchange->connection = connection;
    (void)str_cut(head->target, '?', &path, &query);
    buf_add_str(&exchange->method, head->method);
    buf_add_str(&exchange->path, path);
    if (head->content_length > DOOR_BODY_MAX)
        door_refuse_size(exchange);
    return exchange;
}

static void door_body(void *request, struct str bytes)
{
    struct door_exchange *exchange = request;
    if (exchange->body.len + bytes.len > DOOR_BODY_MAX)
        door_refuse_size(exchange);
    else
        buf_add_str(&exchange->body, bytes);
}

static void door_whole(void *request)
{
    struct door_exchange *exchange = request;
    const struct door *door = exchange->door;
    struct door_request asked = {buf_str(&exchange->method), buf_str(&exchange->path),
                                 buf_str(&exchange->body)};
    struct door_answer answer = {.code = 200, .type = "text/plain; charset=utf-8"};
    door->handler(door->context, &asked, &answer);
    door_say(exchange, &answer);
}

static bool door_gone(void *request)
{
    return true; /* cannot happen: the handler answers at once */
}

static void door_ended(void *request)
{
    struct door_exchange *exchange = request;
    buf_done(&exchange->method);
    buf_done(&exchange->path);
    buf_done(&exchange->body);
    mem_free(exchange);
}

static void door_left(void *context, void *peer)
{
    struct door *door = context;
    if (door->listener)
        listener_left(door->listener, 1);
}

static uint32_t door_taken(void *context, int fd, const struct sockaddr_storage *address, socklen_t len)
{
    struct door *door = context;
    http_take(door->http, fd, NULL);
    return 1;
}

static int door_new(uv_loop_t *loop, door_handler *handler, void *context, struct door **ret_door,
                    struct error *error)
{
    struct door *door = mem_alloc(sizeof *door);
    const struct http_options options = {
        .context = door,
        .begins = door_begins,
        .body = door_body,
        .whole = door_whole,
        .gone = door_gone,
        .ended = door_ended,
        .left = door_left,
        .head_bytes_max = DOOR_HEAD_MAX,
        .stages_s = {DOOR_SECONDS, DOOR_SECONDS, DOOR_SECONDS, DOOR_SECONDS},
    };
    door->handler = handler;
    door->context = context;
    int rc = http_new(loop, &options, &door->http, error);
    if (rc < 0)
        mem_free(door);
    else
        *ret_door = door;
    return rc;
}

static struct listener_options door_listening(struct door *door)
{
    return (struct listener_options){.taken = door_taken, .context = door, .open_max = DOOR_CONNECTIONS_MAX};
}

int door_open_unix(uv_loop_t *loop, const char *path, unsigned mode, door_handler *handler, void *context,
                   struct door **ret_door, struct error *error)
{
    struct door *door;
    int rc = door_new(loop, handler, context, &door, error);
    if (rc < 0)
        return rc;
    const struct listener_options options = door_listening(door);
    rc = listener_open_unix(loop, path, mode, &options, &door->listener, error);
    if (rc < 0)
        door_close(door, NULL, NULL);
    else
        *ret_door = door;
    return rc;
}

int door_open_tcp(uv_loop_t *loop, const char *address, uint16_t port, door_handler *handler, void *context,
                  struct door **ret_door, uint16_t *ret_port, struct error *error)
{
    struct door *door;
    int rc = door_new(loop, handler, context, &door, error);
    if (rc < 0)
        return rc;
    const struct listener_options options = door_listening(door);
    rc = listener_open_tcp(loop, address, port, &options, &door->listener, ret_port, error);
    if (rc < 0)
        door_close(door, NULL, NULL);
    else
        *ret_door = door;
    return rc;
}

static void door_part_closed(void *context)
{
    struct door *door = context;
    if (--door->open_parts > 0)
        return;
    void (*closed)(void *context) = door->closed;
    void *closed_context = door->closed_context;
    mem_free(door);
    if (closed)
        closed(closed_context);
}

void door_close(struct door *door, void (*closed)(void *context), void *context)
{
    struct listener *listener = door->listener;
    door->closed = closed;
    door->closed_context = context;
    door->open_parts = 1 + (listener != NULL);
    door->listener = NULL; /* connections that end now are not counted */
    http_close(door->http, door_part_closed, door);
    if (listener)
        listener_close(listener, door_part_closed, door);
}
