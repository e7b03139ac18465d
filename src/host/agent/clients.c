#include <errno.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/hash.h"
#include "host/agent/internal.h"
#include "host/agent/values.h"
#include "job/wire.h"

enum { CLIENT_READ_BYTES = 16 * 1024, CLIENT_QUEUE_MAX = 256 * 1024 };

struct client {
    uv_pipe_t pipe;
    struct live *live;
    struct list_node node;
    uint64_t id;
    struct buf in; /* the beginning of a frame */
    bool closing;
    struct store_client store; /* of its JOIN */
};

struct client_write {
    uv_write_t request;
    size_t len;
    uint8_t bytes[JOBWIRE_FRAME_MAX];
};

/* --- end of a connection -------------------------------------------------------------------------- */

static void on_client_closed(uv_handle_t *handle)
{
    struct client *client = handle->data;
    struct agent_host *host = client->live->machine->host;
    buf_done(&client->in);
    mem_free(client);
    local_part_closed(host);
}

static void client_close(struct client *client)
{
    if (client->closing)
        return;
    client->closing = true;
    client->live->client_count--;
    list_remove(&client->node);
    uv_close((uv_handle_t *)&client->pipe, on_client_closed);
}

static void client_left(struct client *client)
{
    if (client->closing)
        return;
    struct agent_event event = {.kind = AGENT_CLIENT_LEFT, .client = {.client = client->id}};
    struct local_machine *machine = client->live->machine;
    client_close(client);
    local_step(machine, event);
}

/* --- sending -------------------------------------------------------------------------------------- */

static void on_client_written(uv_write_t *request, int status)
{
    mem_free(container_of(request, struct client_write, request)); /* a broken pipe is seen by the reader */
}

static void client_send(struct client *client, const struct jobwire_message *message)
{
    uint8_t bytes[JOBWIRE_FRAME_MAX];
    size_t len = jobwire_encode(message, bytes, sizeof bytes);
    CHECK(len > 0);
    size_t written = 0;
    if (uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) == 0) {
        uv_buf_t whole = uv_buf_init((char *)bytes, (unsigned)len);
        int rc = uv_try_write((uv_stream_t *)&client->pipe, &whole, 1);
        if (rc < 0 && rc != UV_EAGAIN)
            return; /* broken: the reader sees it */
        written = rc > 0 ? (size_t)rc : 0;
    }
    if (written == len || uv_stream_get_write_queue_size((uv_stream_t *)&client->pipe) > CLIENT_QUEUE_MAX)
        return; /* a task that does not read loses notices, not memory of ours */
    struct client_write *rest = mem_alloc(sizeof *rest);
    rest->len = len - written;
    memcpy(rest->bytes, bytes + written, rest->len);
    uv_buf_t buffer = uv_buf_init((char *)rest->bytes, (unsigned)rest->len);
    if (uv_write(&rest->request, (uv_stream_t *)&client->pipe, &buffer, 1, on_client_written) < 0)
        mem_free(rest);
}

static struct client *client_find(const struct live *live, uint64_t id)
{
    list_for_each(node, &live->clients)
    {
        struct client *client = container_of(node, struct client, node);
        if (client->id == id)
            return client;
    }
    return NULL;
}

static void send_rejoin(struct live *live, uint64_t id, const struct task_rejoin *order)
{
    struct client *client = client_find(live, id);
    struct jobwire_message message = {.type = JOBWIRE_REJOIN};
    _Static_assert(RENDEZVOUS_MAX < JOBWIRE_RENDEZVOUS_MAX, "what the agent takes fits into a frame");
    if (!client)
        return;
    message.rejoin = (struct jobwire_rejoin){.attempt = (uint32_t)order->attempt,
                                             .rank = order->rank,
                                             .world = order->world,
                                             .full_world = order->full_world,
                                             .flags = order->flags};
    if (order->restore_step >= 0) {
        message.rejoin.has_restore = true;
        message.rejoin.restore_step = (uint64_t)order->restore_step;
        message.rejoin.restore_attempt = (uint32_t)order->restore_attempt;
    }
    memcpy(message.rejoin.rendezvous, order->rendezvous.data, order->rendezvous.len);
    client_send(client, &message);
}

void local_clients_send(struct live *live, const struct agent_effect *effect)
{
    if (effect->kind == AGENT_CLIENT_REJOIN) {
        send_rejoin(live, effect->rejoin.client, effect->rejoin.order);
        return;
    }
    struct client *client = client_find(live, effect->client.client);
    if (!client)
        return;
    struct jobwire_message message = {0};
    switch (effect->kind) {
    case AGENT_CLIENT_WELCOME:
        message.type = JOBWIRE_WELCOME;
        message.welcome.attempt = (uint32_t)effect->client.attempt;
        message.welcome.has_restore = effect->client.restore_step >= 0;
        if (message.welcome.has_restore) {
            message.welcome.restore_step = (uint64_t)effect->client.restore_step;
            message.welcome.restore_attempt = (uint32_t)effect->client.restore_attempt;
        }
        break;
    case AGENT_CLIENT_FENCED:
        message.type = JOBWIRE_FENCED;
        message.fenced.attempt = (uint32_t)effect->client.attempt;
        break;
    case AGENT_CLIENT_COMMITTED:
        message.type = JOBWIRE_CHECKPOINT_COMMITTED;
        message.committed.step = (uint64_t)effect->client.step;
        message.committed.attempt = (uint32_t)effect->client.attempt;
        break;
    case AGENT_CLIENT_DRAIN:
        message.type = JOBWIRE_DRAIN;
        message.drain.deadline_ms = (uint64_t)(effect->client.deadline_ns / NS_PER_MS);
        message.drain.reason = (uint32_t)effect->client.reason;
        break;
    default:
        CHECK_UNREACHABLE();
    }
    client_send(client, &message);
    if (effect->kind == AGENT_CLIENT_WELCOME)
        local_store_joined(live, &client->store);
    else if (effect->kind == AGENT_CLIENT_COMMITTED)
        local_store_committed(live, &client->store, message.committed.step, message.committed.attempt);
}

void local_clients_moved(struct live *live, uint64_t id, const struct jobwire_message *message)
{
    struct client *client = client_find(live, id);
    if (client)
        client_send(client, message);
}

/* --- receiving ------------------------------------------------------------------------------------ */

static int64_t to_step(uint64_t step)
{
    return step > INT64_MAX ? INT64_MAX : (int64_t)step;
}

/* Names point into the message. */
static void fill_step(const struct jobwire_step *from, struct task_step *ret)
{
    int64_t first = to_step(from->first);
    *ret = (struct task_step){.step = to_step(from->step),
                              .total = to_step(from->total),
                              .first_plus_1 = first < INT64_MAX ? first + 1 : first,
                              .pace = {to_step(from->pace.steps), to_step(from->pace.elapsed_us),
                                       to_step(from->pace.own_us)}};
    for (size_t i = 0; i < from->metric_count; i++)
        step_value(ret, str_from(from->metrics[i].name), from->metrics[i].value);
}

static void client_message(struct client *client, const struct jobwire_message *message)
{
    struct agent_event event = {.client = {.client = client->id}};
    switch (message->type) {
    case JOBWIRE_JOIN:
        event.kind = AGENT_CLIENT_JOIN;
        client->store = (struct store_client){
            .id = client->id, .task = message->join.task_uid, .rank = message->join.rank};
        event.client.task = message->join.task_uid;
        event.client.attempt = message->join.attempt > INT32_MAX ? INT32_MAX : (int32_t)message->join.attempt;
        event.client.can_rejoin = (message->join.flags & JOBWIRE_JOIN_CAN_REJOIN) != 0;
        event.client.spare = (message->join.flags & JOBWIRE_JOIN_SPARE) != 0;
        break;
    case JOBWIRE_STEP:
        event.kind = AGENT_CLIENT_STEP;
        fill_step(&message->step, &event.client.step);
        break;
    case JOBWIRE_SHARD_SAVED:
        event.kind = AGENT_CLIENT_SHARD_SAVED;
        event.client.saved_step = to_step(message->shard_saved.step);
        break;
    case JOBWIRE_PEER_GONE:
        event.kind = AGENT_CLIENT_PEER_GONE;
        event.client.peer_rank = message->peer_gone.rank;
        break;
    case JOBWIRE_RETRY:
        event.kind = AGENT_CLIENT_RETRY;
        event.client.reason = str_from(message->retry.reason);
        break;
    case JOBWIRE_LEAVE:
        event.kind = AGENT_CLIENT_LEFT;
        break;
    case JOBWIRE_STORE:
    case JOBWIRE_FETCH:
        local_store_move(client->live, &client->store, message->type, &message->slot);
        return;
    default:
        return; /* of a later version */
    }
    local_step(client->live->machine, event);
}

static void on_client_read(uv_stream_t *stream, ssize_t count, const uv_buf_t *buffer)
{
    struct client *client = stream->data;
    if (client->closing || count == 0)
        return;
    if (count < 0) {
        client_left(client);
        return;
    }
    buf_add(&client->in, buffer->base, (size_t)count);
    size_t pos = 0;
    int rc = 0;
    while (!client->closing) {
        struct jobwire_message message;
        size_t used;
        rc = jobwire_decode((const uint8_t *)client->in.data + pos, client->in.len - pos, &message, &used);
        if (rc <= 0)
            break;
        pos += used;
        client_message(client, &message);
    }
    if (client->closing)
        return;
    if (rc < 0)
        client_left(client);
    else if (pos == client->in.len)
        buf_done(&client->in);
    else
        buf_drop_front(&client->in, pos);
}

static void on_client_alloc(uv_handle_t *handle, size_t suggested, uv_buf_t *buffer)
{
    static char shared[CLIENT_READ_BYTES]; /* read and handed on at once, always on one thread */
    *buffer = uv_buf_init(shared, sizeof shared);
}

/* --- listening ------------------------------------------------------------------------------------ */

static void on_client(uv_stream_t *listener, int status)
{
    struct live *live = listener->data;
    struct agent_host *host = live->machine->host;
    if (status < 0)
        return;
    struct client *client = mem_alloc(sizeof *client);
    client->live = live;
    client->id = ++live->next_client;
    uv_pipe_init(host->loop, &client->pipe, 0);
    client->pipe.data = client;
    host->open_parts++;
    live->client_count++;
    list_append(&live->clients, &client->node);
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) < 0 || live->client_count > CLIENTS_MAX ||
        uv_read_start((uv_stream_t *)&client->pipe, on_client_alloc, on_client_read) < 0)
        client_close(client);
}

static void on_listener_closed(uv_handle_t *handle)
{
    local_part_closed(handle->data);
}

/* A path in sun_path has 108 bytes; a longer one is replaced by one that the same state directory gives
 * again, so that tasks find a restarted agent. */
void agent_socket_path(const char *directory, const char *name, char ret_path[AGENT_SOCKET_PATH_MAX + 1])
{
    struct buf path BUF_CLEANUP = {0};
    buf_printf(&path, "%s/%s", directory, name);
    if (path.len <= AGENT_SOCKET_PATH_MAX)
        snprintf(ret_path, AGENT_SOCKET_PATH_MAX + 1, "%s", path.data);
    else
        snprintf(ret_path, AGENT_SOCKET_PATH_MAX + 1, "/tmp/phalanx-%016llx.sock",
                 (unsigned long long)hash64(0, path.data, path.len));
}

int local_clients_listen(struct live *live, struct error *error)
{
    struct agent_host *host = live->machine->host;
    agent_socket_path(live->directory, "agent.sock", live->socket_path);
    unlink(live->socket_path); /* of an earlier agent: the launcher's lock says that none lives */
    uv_pipe_init(host->loop, &live->listener, 0);
    live->listener.data = live;
    host->open_parts++;
    live->listening = true;
    int rc = uv_pipe_bind(&live->listener, live->socket_path);
    if (rc == 0)
        rc = uv_listen((uv_stream_t *)&live->listener, 1024, on_client);
    if (rc == 0 &&
        chmod(live->socket_path, 0666) < 0) /* tasks of other users join too; JOIN names uid and attempt */
        rc = -errno;
    local_state_mark(live->socket_path, &live->socket_mark);
    return rc == 0 ? 0
                   : error_set(error, ERROR_IO, "listening on %s: %s", live->socket_path, uv_strerror(rc));
}

/* A path that cannot be listened on is tried again by the next look at it (state.c). */
static void on_renew_closed(uv_handle_t *handle)
{
    struct live *live = handle->data;
    struct agent_host *host = live->machine->host;
    struct error error;
    live->renewing = false;
    if (!host->closing) {
        int rc = local_clients_listen(live, &error);
        local_state_renewed(live, rc < 0 ? &error : NULL);
    }
    local_part_closed(host);
}

void local_clients_renew(struct live *live)
{
    CHECK(live->listening && !live->renewing);
    live->listening = false;
    live->renewing = true;
    uv_close((uv_handle_t *)&live->listener, on_renew_closed);
}

void local_clients_close(struct live *live)
{
    list_for_each_safe(node, after, &live->clients) client_close(container_of(node, struct client, node));
    if (!live->listening)
        return;
    live->listener.data = live->machine->host;
    uv_close((uv_handle_t *)&live->listener, on_listener_closed); /* unlinks the path */
}
