/* clients.c - connections of libphalanx; each is that of one task's process (sockets.c). */
#include <stdio.h>
#include <sys/socket.h>

#include "host/agent/internal.h"
#include "host/agent/values.h"
#include "job/link/wire.h"

enum { CLIENT_READ_BYTES = 16 * 1024, CLIENT_QUEUE_MAX = 256 * 1024 };

struct client {
    uv_pipe_t pipe;
    struct live *live;
    struct list_node node;
    uint64_t id;
    struct buf in; /* the beginning of a frame */
    bool closing;
    obj_id task;       /* the task whose socket it connected to */
    struct ucred peer; /* the process that connected */
    bool joined;       /* it has sent JOIN */
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

/* Closes the connection of a process that speaks for a task without being one of its processes. Notes at most
 * one a second, so that strangers cannot fill the log. */
static void client_refuse(struct client *client, const char *did)
{
    struct live *live = client->live;
    int64_t now_ns = local_boot_ns();
    struct buf text BUF_CLEANUP = {0};
    if (now_ns - live->refused_ns >= NS_PER_SECOND || live->refused_ns == 0) {
        buf_printf(&text, "refused at the socket of task %llu: process %lld of user %lld %s",
                   (unsigned long long)client->task, (long long)client->peer.pid, (long long)client->peer.uid,
                   did);
        local_warn(live->machine, buf_str(&text));
        live->refused_ns = now_ns;
    }
    client_left(client);
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
        return; /* a task that does not read loses notices, but costs no memory */
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
    memcpy(message.rejoin.key, order->gang_key, sizeof message.rejoin.key);
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
        memcpy(message.welcome.key, effect->client.gang_key, sizeof message.welcome.key);
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
    case AGENT_CLIENT_TABLES:
        message.type = JOBWIRE_TABLES;
        message.tables.number = (uint64_t)effect->tables.number;
        mem_copy(message.tables.name, effect->tables.name.data, effect->tables.name.len);
        message.tables.session = effect->tables.session;
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

/* Copies a step. Its names point into the message. */
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
    bool joins = message->type == JOBWIRE_JOIN;
    if (joins && message->join.task_uid != client->task) {
        client_refuse(client, "sent a JOIN of another task");
        return;
    }
    if (!joins && !client->joined) {
        client_refuse(client, "sent a report before its JOIN");
        return;
    }
    client->joined = true;
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
    case JOBWIRE_ROUTES:
        event.kind = AGENT_CLIENT_ROUTES;
        event.client.routes =
            (struct rank_routes){message->routes.session, message->routes.open, message->routes.tables,
                                 message->routes.without, message->routes.wrong};
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
    static char shared[CLIENT_READ_BYTES]; /* bytes are read and passed on at once, always on one thread */
    *buffer = uv_buf_init(shared, sizeof shared);
}

/* --- beginning of a connection ---------------------------------------------------------------------- */

/* Returns whether the process that made the connection belongs to the task. */
static bool is_of_task(const struct client *client)
{
    obj_id task;
    uint32_t index;
    uint64_t of = launch_find_process(client->live->launcher, client->peer.pid);
    local_container_of(of, &task, &index);
    return of != 0 && task == client->task;
}

void local_client_accept(struct live *live, uint64_t container, uv_stream_t *listener)
{
    struct agent_host *host = live->machine->host;
    struct client *client = mem_alloc(sizeof *client);
    socklen_t len = sizeof client->peer;
    uint32_t index;
    uv_os_fd_t fd;
    client->live = live;
    client->id = ++live->next_client;
    local_container_of(container, &client->task, &index);
    uv_pipe_init(host->loop, &client->pipe, 0);
    client->pipe.data = client;
    host->open_parts++;
    live->client_count++;
    list_append(&live->clients, &client->node);
    if (uv_accept(listener, (uv_stream_t *)&client->pipe) < 0 || live->client_count > CLIENTS_MAX ||
        uv_fileno((uv_handle_t *)&client->pipe, &fd) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &client->peer, &len) < 0)
        client_close(client);
    else if (!is_of_task(client))
        client_refuse(client, "connected, and is no process of that task");
    else if (uv_read_start((uv_stream_t *)&client->pipe, on_client_alloc, on_client_read) < 0)
        client_close(client);
}

void local_clients_close(struct live *live)
{
    list_for_each_safe(node, after, &live->clients) client_close(container_of(node, struct client, node));
}
