/* forward.c - clients of a standby, joined to the leader byte for byte. */
#include "host/standby/internal.h"

#include "base/arena.h"
#include "base/check.h"

enum { FORWARD_BACKLOG = 512, FORWARD_CLIENTS_MAX = 4096, FORWARD_BYTES = 64 << 10, RETRY_MS = 20 };

/* A client and its way to the leader. Bytes are read from one side when the other has written the last. */
struct forward_pair {
    struct forward *forward;
    struct list_node node;
    uv_tcp_t client, leader;
    uv_connect_t connect;
    int open;    /* handles that are not closed yet */
    bool joined; /* the leader has taken the connection */
    bool begun;  /* a connection to it is under way or stands */
    bool closing;
};

/* A write under way, with its bytes. */
struct forward_write {
    uv_write_t request;
    struct forward_pair *pair;
    uv_stream_t *from;
    char *bytes;
};

struct forward {
    uv_loop_t *loop;
    uv_tcp_t listener;
    bool listening, closed;
    uint16_t port;
    uint32_t pairs_len;
    struct list_node pairs;
    uv_timer_t retry; /* clients that wait for a leader try again */
    bool has_leader;
    struct sockaddr_storage leader;
};

/* --- a pair ------------------------------------------------------------------------------------------- */

static void pair_closed(uv_handle_t *handle)
{
    struct forward_pair *pair = handle->data;
    if (--pair->open > 0)
        return;
    pair->forward->pairs_len--;
    list_remove(&pair->node);
    mem_free(pair);
}

static void pair_close(struct forward_pair *pair)
{
    if (pair->closing)
        return;
    pair->closing = true;
    uv_close((uv_handle_t *)&pair->client, pair_closed);
    if (pair->begun && !uv_is_closing((uv_handle_t *)&pair->leader))
        uv_close((uv_handle_t *)&pair->leader, pair_closed);
}

static void pair_room(uv_handle_t *handle, size_t suggested, uv_buf_t *buf)
{
    buf->base = mem_alloc(FORWARD_BYTES);
    buf->len = FORWARD_BYTES;
}

static void pair_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf);

static void pair_written(uv_write_t *request, int status)
{
    struct forward_write *write = (struct forward_write *)request->data;
    struct forward_pair *pair = write->pair;
    if (status < 0)
        pair_close(pair);
    else if (!pair->closing)
        uv_read_start(write->from, pair_room, pair_read);
    mem_free(write->bytes);
    mem_free(write);
}

static void pair_shut(uv_shutdown_t *request, int status)
{
    mem_free(request);
}

/* One side has ended its half: the other learns of it, and may go on. When both have, the pair ends. */
static void pair_half_end(struct forward_pair *pair, uv_stream_t *from, uv_stream_t *to)
{
    uv_read_stop(from);
    uv_shutdown_t *request = mem_alloc(sizeof *request);
    if (from == (uv_stream_t *)&pair->leader || uv_shutdown(request, to, pair_shut) < 0) {
        mem_free(request);
        pair_close(pair);
    }
}

static void pair_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buf)
{
    struct forward_pair *pair = stream->data;
    bool from_client = stream == (uv_stream_t *)&pair->client;
    uv_stream_t *to = from_client ? (uv_stream_t *)&pair->leader : (uv_stream_t *)&pair->client;
    if (count <= 0) {
        mem_free(buf->base);
        if (count == UV_EOF)
            pair_half_end(pair, stream, to);
        else if (count < 0)
            pair_close(pair);
        return;
    }
    struct forward_write *write = mem_alloc(sizeof *write);
    *write = (struct forward_write){.pair = pair, .from = stream, .bytes = buf->base};
    write->request.data = write;
    uv_read_stop(stream);
    uv_buf_t out = uv_buf_init(buf->base, (unsigned)count);
    if (uv_write(&write->request, to, &out, 1, pair_written) < 0) {
        mem_free(write->bytes);
        mem_free(write);
        pair_close(pair);
    }
}

static void leader_closed(uv_handle_t *handle)
{
    struct forward_pair *pair = handle->data;
    pair->begun = false;
    if (pair->closing)
        pair_closed(handle);
    else
        pair->open--;
}

static void pair_connected(uv_connect_t *request, int status)
{
    struct forward_pair *pair = request->data;
    if (pair->closing)
        return;
    if (status < 0) { /* nothing was sent: it waits for a leader that takes it */
        uv_close((uv_handle_t *)&pair->leader, leader_closed);
        return;
    }
    pair->joined = true;
    uv_tcp_nodelay(&pair->leader, 1);
    uv_read_start((uv_stream_t *)&pair->client, pair_room, pair_read);
    uv_read_start((uv_stream_t *)&pair->leader, pair_room, pair_read);
}

static void pair_try(struct forward_pair *pair)
{
    struct forward *forward = pair->forward;
    if (pair->begun || pair->closing || !forward->has_leader)
        return;
    uv_tcp_init(forward->loop, &pair->leader);
    pair->leader.data = pair;
    pair->open++;
    pair->begun = true;
    pair->connect.data = pair;
    if (uv_tcp_connect(&pair->connect, &pair->leader, (struct sockaddr *)&forward->leader, pair_connected) <
        0)
        uv_close((uv_handle_t *)&pair->leader, leader_closed);
}

/* --- all of them -------------------------------------------------------------------------------------- */

static void forward_accept(uv_stream_t *listener, int status)
{
    struct forward *forward = listener->data;
    if (status < 0)
        return;
    struct forward_pair *pair = mem_alloc(sizeof *pair);
    pair->forward = forward;
    uv_tcp_init(forward->loop, &pair->client);
    pair->client.data = pair;
    pair->open = 1;
    forward->pairs_len++;
    list_append(&forward->pairs, &pair->node);
    if (uv_accept(listener, (uv_stream_t *)&pair->client) < 0 || forward->pairs_len > FORWARD_CLIENTS_MAX) {
        pair_close(pair);
        return;
    }
    uv_tcp_nodelay(&pair->client, 1);
    pair_try(pair);
}

static void forward_retry(uv_timer_t *timer)
{
    struct forward *forward = timer->data;
    list_for_each(node, &forward->pairs) pair_try(container_of(node, struct forward_pair, node));
}

int forward_new(uv_loop_t *loop, const char *address, uint16_t port, struct forward **ret_forward,
                struct error *error)
{
    struct forward *forward = mem_alloc(sizeof *forward);
    struct sockaddr_storage place;
    int len = sizeof place;
    forward->loop = loop;
    list_init(&forward->pairs);
    int rc = uv_ip4_addr(address, port, (struct sockaddr_in *)&place);
    if (rc < 0)
        rc = uv_ip6_addr(address, port, (struct sockaddr_in6 *)&place);
    if (rc < 0) {
        mem_free(forward);
        return error_set(error, ERROR_INVALID, "\"%s\" is no address", address);
    }
    uv_tcp_init(loop, &forward->listener);
    uv_timer_init(loop, &forward->retry);
    forward->listener.data = forward->retry.data = forward;
    rc = uv_tcp_bind(&forward->listener, (struct sockaddr *)&place, 0);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&forward->listener, FORWARD_BACKLOG, forward_accept);
    if (rc == 0)
        rc = uv_tcp_getsockname(&forward->listener, (struct sockaddr *)&place, &len);
    forward->listening = true;
    *ret_forward = forward;
    if (rc < 0)
        return error_set(error, ERROR_IO, "listening at %s:%u: %s", address, port, uv_strerror(rc));
    forward->port = ntohs(place.ss_family == AF_INET ? ((struct sockaddr_in *)&place)->sin_port
                                                     : ((struct sockaddr_in6 *)&place)->sin6_port);
    uv_timer_start(&forward->retry, forward_retry, RETRY_MS, RETRY_MS);
    return 0;
}

uint16_t forward_port(const struct forward *forward)
{
    return forward->port;
}

void forward_to(struct forward *forward, const struct sockaddr_storage *leader)
{
    forward->has_leader = leader != NULL;
    if (leader)
        forward->leader = *leader;
    forward_retry(&forward->retry);
}

void forward_unlisten(struct forward *forward)
{
    if (!forward->listening)
        return;
    forward->listening = false;
    uv_close((uv_handle_t *)&forward->listener, NULL);
}

void forward_close(struct forward *forward)
{
    if (!forward || forward->closed)
        return;
    forward->closed = true;
    forward_unlisten(forward);
    uv_close((uv_handle_t *)&forward->retry, NULL);
    list_for_each(node, &forward->pairs) pair_close(container_of(node, struct forward_pair, node));
}

void forward_free(struct forward *forward)
{
    if (!forward)
        return;
    CHECK(forward->closed && forward->pairs_len == 0);
    mem_free(forward);
}
