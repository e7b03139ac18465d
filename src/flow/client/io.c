/* Writing to the head and to workers, and handling their messages. */
#include "flow/client/client.h"

#include <errno.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "base/units.h"
#include "flow/wire/clock.h"

static void client_wake_thread(phx_flow *flow)
{
    uint64_t one = 1;
    if (write(flow->wake, &one, sizeof one) < 0)
        CHECK(errno == EAGAIN);
}

int64_t client_deadline_ns(int64_t timeout_ms)
{
    return timeout_ms < 0 || timeout_ms > INT64_MAX / NS_PER_MS / 2 ? INT64_MAX
                                                                    : flow_now_ns() + timeout_ms * NS_PER_MS;
}

void client_moved(phx_flow *flow)
{
    flow->moves++;
    pthread_cond_broadcast(&flow->moved);
}

/* Collects the connections over rings. Returns 0 if there are none, or too many to poll. */
static size_t client_rings(phx_flow *flow, struct client_connection **ret)
{
    size_t count = 0;
    for (size_t i = 0; i < flow->connections.len; i++) {
        struct client_connection *connection = flow->connections.items[i];
        if (connection->dead || !connection->wire->ops->is_ready)
            continue;
        if (count == CLIENT_SPIN_RINGS_MAX)
            return 0;
        ret[count++] = connection;
    }
    return count;
}

/* Polls the rings for a while, and reads those that have messages. */
static void client_spin(phx_flow *flow, struct client_connection **rings, size_t count, int64_t end_ns)
{
    bool found = false;
    for (size_t i = 0; i < count; i++)
        rings[i]->wire->ops->doze(rings[i]->wire, false);
    while (!found && spin_lasts(end_ns))
        for (size_t i = 0; i < count && !found; i++)
            found = rings[i]->wire->ops->is_ready(rings[i]->wire);
    for (size_t i = 0; i < count; i++)
        if (!rings[i]->wire->ops->doze(rings[i]->wire, true)) {
            client_read(flow, rings[i]);
            client_write_rest(flow, rings[i]);
        }
}

bool client_wait(phx_flow *flow, int64_t deadline_ns)
{
    int64_t now_ns = flow_now_ns();
    if (flow->broken || now_ns >= deadline_ns)
        return false;
    struct client_connection *rings[CLIENT_SPIN_RINGS_MAX];
    size_t count = spin_may(&flow->spin, now_ns) ? client_rings(flow, rings) : 0;
    if (count > 0) {
        uint64_t moves = flow->moves;
        pthread_mutex_unlock(&flow->mutex);
        if (pthread_mutex_trylock(&flow->reading) == 0) {
            client_spin(flow, rings, count, now_ns + SPIN_NS);
            pthread_mutex_unlock(&flow->reading);
        }
        pthread_mutex_lock(&flow->mutex);
        if (flow->moves != moves)
            return true;
    }
    if (deadline_ns == INT64_MAX) {
        pthread_cond_wait(&flow->moved, &flow->mutex);
        return true;
    }
    struct timespec until = {deadline_ns / NS_PER_SECOND, deadline_ns % NS_PER_SECOND};
    pthread_cond_timedwait(&flow->moved, &flow->mutex, &until);
    return true;
}

static void client_connection_flush(phx_flow *flow, struct client_connection *connection)
{
    if (connection->dead || connection->writing || flow_wire_flush(connection->wire) <= 0 ||
        connection->wire->ops->is_ready)
        return; /* the reader detects a broken connection, and a ring with space becomes readable */
    connection->writing = true;
    struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = connection};
    epoll_ctl(flow->epoll, EPOLL_CTL_MOD, connection->wire->fd, &event);
}

void client_write_rest(phx_flow *flow, struct client_connection *connection)
{
    pthread_mutex_lock(&flow->mutex);
    int rc = connection->dead ? 0 : flow_wire_flush(connection->wire);
    if (rc == 0 && !connection->dead && connection->writing) {
        connection->writing = false;
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
        epoll_ctl(flow->epoll, EPOLL_CTL_MOD, connection->wire->fd, &event);
    }
    pthread_mutex_unlock(&flow->mutex);
}

void client_flush(phx_flow *flow)
{
    client_flush_releases(flow);
    flow->unflushed = false;
    client_connection_flush(flow, &flow->head);
}

void client_send_entry(phx_flow *flow, struct client_connection *connection, const struct flow_entry *entry,
                       struct str tail, bool urgent)
{
    if (connection->dead)
        return;
    if (connection == &flow->head && entry->kind != ENTRY_RELEASE)
        client_flush_releases(flow);
    flow_wire_put(connection->wire, entry, tail, NULL);
    if (urgent || connection->wire->frame_entries == WIRE_FRAME_ENTRIES) {
        client_connection_flush(flow, connection);
        if (connection == &flow->head)
            flow->unflushed = false;
        return;
    }
    if (flow->unflushed)
        return;
    int64_t now_ns = flow_now_ns();
    bool alone = now_ns - flow->launched_ns > CLIENT_FLUSH_US * NS_PER_US;
    flow->launched_ns = now_ns;
    if (alone) { /* no entry preceded it shortly before, so none is likely to follow: send it at once */
        client_connection_flush(flow, connection);
        return;
    }
    flow->unflushed = true;
    client_wake_thread(flow);
}

void client_report_down(phx_flow *flow, uint32_t host)
{
    struct flow_entry down = {.kind = ENTRY_HOST, .flags = ENTRY_IS_DOWN, .node = host};
    client_send_entry(flow, &flow->head, &down, (struct str){0}, true);
}

void client_flush_releases(phx_flow *flow)
{
    if (flow->releases.len == 0 || flow->head.dead)
        return;
    struct flow_entry entry = {.kind = ENTRY_RELEASE};
    flow_wire_put(flow->head.wire, &entry, buf_str(&flow->releases), NULL);
    buf_clear(&flow->releases);
}

struct client_host *client_host(phx_flow *flow, uint32_t host)
{
    for (size_t i = 0; i < flow->hosts.len; i++)
        if (flow->hosts.items[i]->id == host)
            return flow->hosts.items[i];
    return NULL;
}

struct client_connection *client_connection_of(phx_flow *flow, uint32_t number)
{
    struct client_host *host = client_host(flow, number);
    if (!host || !host->alive)
        return NULL;
    if (host->connection && !host->connection->dead)
        return host->connection;
    struct wire *wire;
    bool reached = flow_wire_connect(host->address, &wire, NULL) == 0;
    if (host->connection && host->connection->dead_ns) {
        /* Values fetched over the broken connection are lost; if no worker listens any more, together
             * with their devices. */
        host->connection->dead_ns = 0;
        client_host_lost(flow, host, reached ? FAULT_CANCELLED : FAULT_DEVICE_LOST);
    }
    if (!reached)
        return NULL;
    struct client_connection *connection = mem_alloc(sizeof *connection);
    connection->wire = wire;
    connection->host = number;
    host->connection = connection;
    vec_push(&flow->connections, connection);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = connection};
    CHECK(epoll_ctl(flow->epoll, EPOLL_CTL_ADD, wire->fd, &event) == 0);
    struct flow_entry hello = {.kind = ENTRY_HELLO_PEER, .client = flow->id, .args = {flow->token}};
    flow_wire_put(wire, &hello, (struct str){0}, NULL);
    return connection;
}

static void client_host_told(phx_flow *flow, const struct flow_entry *entry, struct str tail)
{
    struct client_host *host = client_host(flow, entry->node);
    if (!host) {
        host = mem_alloc(sizeof *host);
        host->id = entry->node;
        vec_push(&flow->hosts, host);
    }
    if (host->birth != entry->args[1] && host->birth != 0) {
        /* After a loss of the head, another worker has this number. */
        client_host_lost(flow, host, FAULT_DEVICE_LOST);
        if (host->connection)
            host->connection->dead_ns = 0;
        host->connection = NULL; /* remains in the list of connections, which is freed at the end */
    }
    host->birth = entry->args[1];
    host->island = entry->program;
    host->incarnation = entry->epoch;
    host->first_device = (uint32_t)entry->args[0];
    host->alive = !(entry->flags & ENTRY_IS_DOWN);
    snprintf(host->address, sizeof host->address, STR_FORMAT, STR_ARG(tail));
    if (host->alive)
        return;
    if (host->connection)
        host->connection->dead_ns = 0;
    client_host_lost(flow, host, FAULT_DEVICE_LOST);
}

bool client_judge_suspects(phx_flow *flow)
{
    bool some = false;
    for (size_t i = 0; i < flow->connections.len; i++) {
        struct client_connection *connection = flow->connections.items[i];
        if (connection->dead_ns == 0)
            continue;
        if (flow_now_ns() - connection->dead_ns < CLIENT_SUSPECT_NS) {
            some = true;
            continue;
        }
        connection->dead_ns = 0;
        client_host_lost(flow, client_host(flow, connection->host), FAULT_CANCELLED);
        client_moved(flow);
    }
    return some;
}

static void client_failed(phx_flow *flow, const struct flow_entry *entry, struct str tail)
{
    struct fault fault;
    fault_decode(tail, &fault);
    for (uint32_t i = 0; i < entry->count; i++) {
        struct client_value *value = u64_map_get(&flow->values, entry->handle + i);
        if (value)
            client_value_fail(flow, value, &fault);
    }
}

static void client_answered(phx_flow *flow, const struct flow_entry *entry, struct str tail)
{
    for (struct client_request *request = flow->requests; request; request = request->next) {
        if (request->number != entry->launch)
            continue;
        request->answered = true;
        request->failed = (entry->flags & ENTRY_IS_FAILED) != 0;
        request->mesh = entry->node;
        if (request->failed)
            fault_decode(tail, &request->fault);
        else
            buf_add_str(&request->tail, tail);
    }
}

struct client_reading {
    phx_flow *flow;
    struct client_connection *connection;
};

static bool client_took(void *context, const struct flow_entry *entry, struct str tail)
{
    struct client_reading *reading = context;
    phx_flow *flow = reading->flow;
    pthread_mutex_lock(&flow->mutex);
    switch (entry->kind) {
    case ENTRY_WELCOME:
        if (entry->flags & ENTRY_IS_FAILED) {
            flow->refused = true;
            if (flow->joins)
                client_give_up(flow);
            break;
        }
        if (flow->joins) {
            client_rejoin(flow, entry);
            break;
        }
        flow->id = entry->client;
        flow->token = entry->args[0];
        break;
    case ENTRY_HOST:
        client_host_told(flow, entry, tail);
        break;
    case ENTRY_MESH:
        if (!(entry->flags & ENTRY_IS_FAILED))
            client_mesh_told(flow, entry, tail);
        client_answered(flow, entry, tail);
        break;
    case ENTRY_ISLANDS:
        client_answered(flow, entry, tail);
        break;
    case ENTRY_SUSPEND:
        client_suspend(flow, entry);
        break;
    case ENTRY_RESUME:
        flow->suspended = false;
        break;
    case ENTRY_PROGRESS:
        flow->finished = entry->launch;
        break;
    case ENTRY_FAILED:
        client_failed(flow, entry, tail);
        break;
    case ENTRY_SHARD:
        client_shard(flow, reading->connection->host, entry, tail);
        break;
    }
    flow->moves++;
    pthread_mutex_unlock(&flow->mutex);
    return true;
}

void client_read(phx_flow *flow, struct client_connection *connection)
{
    struct client_reading reading = {flow, connection};
    if (connection->dead && !(connection == &flow->head && flow->joins))
        return;
    int rc = flow_wire_read(connection->wire, client_took, &reading, NULL);
    /* Without the mutex, so that woken waiters find it free, and once for all entries. */
    pthread_cond_broadcast(&flow->moved);
    if (rc == 0)
        return;
    pthread_mutex_lock(&flow->mutex);
    connection->dead = true;
    epoll_ctl(flow->epoll, EPOLL_CTL_DEL, connection->wire->fd, NULL);
    if (connection == &flow->head) {
        client_head_lost(flow);
    } else { /* the head will report whether the host is lost */
        const struct client_host *host = client_host(flow, connection->host);
        connection->dead_ns = host && host->alive ? flow_now_ns() : 0;
        client_report_down(flow, connection->host); /* earlier puts may be lost */
    }
    client_wake_thread(flow); /* it handles broken connections, and may not be the thread that reads */
    client_moved(flow);
    pthread_mutex_unlock(&flow->mutex);
}
