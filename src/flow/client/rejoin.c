/* Seeks a head that replaces a lost one, and reports this client's state to it. */
#include "flow/client/client.h"

#include <sys/epoll.h>

#include "flow/wire/clock.h"

void client_head_lost(phx_flow *flow)
{
    flow->joins = false;
    if (flow->id == 0 || flow->reconnect_ns == 0) {
        flow->broken = true;
        return;
    }
    if (!flow->away)
        flow->away_ns = flow_now_ns();
    flow->away = true;
}

void client_give_up(phx_flow *flow)
{
    flow->joins = flow->away = false;
    flow->broken = true;
    client_moved(flow);
}

void client_wait_for_head(phx_flow *flow)
{
    while (flow->away && client_wait(flow, INT64_MAX))
        ;
}

void client_wait_to_run(phx_flow *flow)
{
    while ((flow->away || flow->suspended) && client_wait(flow, INT64_MAX))
        ;
}

void client_seek_head(phx_flow *flow)
{
    struct wire *wire = NULL;
    if (flow->joins && flow_now_ns() - flow->away_ns < flow->reconnect_ns)
        return;
    bool found = flow_now_ns() - flow->away_ns < flow->reconnect_ns &&
                 flow_wire_connect(flow->address, &wire, NULL) == 0;
    pthread_mutex_lock(&flow->reading);
    pthread_mutex_lock(&flow->mutex);
    if (found) {
        flow_wire_free(flow->head.wire);
        flow->head.wire = wire;
        flow->head.writing = false;
        flow->joins = true; /* still dead for all other code: the report must precede launches */
        struct epoll_event event = {.events = EPOLLIN, .data.ptr = &flow->head};
        CHECK(epoll_ctl(flow->epoll, EPOLL_CTL_ADD, wire->fd, &event) == 0);
        struct flow_entry hello = flow->hello;
        hello.flags |= ENTRY_IS_KEPT;
        hello.client = flow->id;
        hello.epoch = flow->epoch;
        hello.args[0] = flow->token;
        flow_wire_put(wire, &hello, buf_str(&flow->hello_tail), NULL);
        flow_wire_flush(wire); /* a few bytes, which fit a new connection */
    } else if (flow_now_ns() - flow->away_ns >= flow->reconnect_ns) {
        client_give_up(flow);
    }
    pthread_mutex_unlock(&flow->mutex);
    pthread_mutex_unlock(&flow->reading);
}

/* Fails all values: the head does not know this client, because no worker has kept values of it. */
static void client_forget_values(phx_flow *flow)
{
    struct fault fault =
        fault_make(FAULT_DEVICE_LOST, 0, 0, "the value was lost with the head and the workers");
    for (size_t i = flow->value_list.len; i-- > 0; i = client_walk_on(flow, i))
        client_value_fail(flow, flow->value_list.items[i], &fault);
    for (size_t i = 0; i < flow->hosts.len; i++) {
        struct client_host *host = flow->hosts.items[i];
        host->alive = false;
        if (host->connection)
            host->connection->dead_ns = 0;
        host->connection = NULL;
    }
    buf_clear(&flow->releases);
}

static void client_pack_places(const struct client_places *places, struct buf *tail)
{
    for (uint32_t i = 0; i < places->count; i++) {
        pack_u32(tail, places->items[i].host);
        pack_u32(tail, places->items[i].device);
        pack_u64(tail, places->items[i].birth);
    }
}

static void client_tell_mesh(phx_flow *flow, const struct client_mesh *mesh)
{
    struct flow_entry entry = {.kind = ENTRY_MESH, .flags = ENTRY_IS_KEPT, .node = mesh->id};
    const struct flow_mesh *shape = &mesh->places->shape;
    struct buf tail = {0};
    entry.count = (uint16_t)shape->rank;
    if (mesh->parent && client_mesh(flow, mesh->parent)) /* else its parent has been freed */
        entry.handle = mesh->parent;
    for (int32_t a = 0; a < shape->rank; a++)
        pack_u32(&tail, shape->dims[a]);
    for (int32_t a = 0; a < shape->rank && entry.handle; a++)
        pack_u32(&tail, mesh->start[a]);
    if (!entry.handle) {
        client_pack_places(mesh->places, &tail);
        buf_add_str(&tail, str_from(mesh->island));
    }
    client_send_entry(flow, &flow->head, &entry, buf_str(&tail), false);
    buf_done(&tail);
}

static void client_tell_value(phx_flow *flow, const struct client_value *value)
{
    struct flow_entry entry = {.kind = ENTRY_VALUE, .flags = ENTRY_IS_KEPT, .handle = value->handle};
    struct buf tail = {0};
    entry.node = value->value.sharding.mesh;
    entry.launch = value->launch;
    pack_type(&tail, &value->value.type);
    buf_add(&tail, value->value.sharding.axes, sizeof value->value.sharding.axes);
    client_pack_places(value->places, &tail);
    client_send_entry(flow, &flow->head, &entry, buf_str(&tail), false);
    buf_done(&tail);
}

void client_rejoin(phx_flow *flow, const struct flow_entry *welcome)
{
    flow->joins = flow->away = flow->head.dead = false;
    flow->suspended = false; /* that was the lost head's order */
    flow->rejoins++;
    if (welcome->client != flow->id)
        client_forget_values(flow);
    flow->id = welcome->client;
    flow->token = welcome->args[0];
    for (size_t i = 0; i < flow->functions.len; i++) {
        struct flow_entry entry = {.kind = ENTRY_FUNCTION, .handle = flow->functions.items[i].id};
        client_send_entry(flow, &flow->head, &entry, buf_str(&flow->functions.items[i].text), false);
    }
    for (size_t i = 0; i < flow->meshes.len; i++)
        client_tell_mesh(flow, flow->meshes.items[i]);
    for (size_t i = 0; i < flow->programs.len; i++) {
        struct flow_entry entry = {.kind = ENTRY_PROGRAM, .program = flow->programs.items[i]->id};
        struct buf tail = {0};
        program_encode(flow->programs.items[i]->program, &tail);
        client_send_entry(flow, &flow->head, &entry, buf_str(&tail), false);
        buf_done(&tail);
    }
    for (size_t i = 0; i < flow->value_list.len; i++)
        if (flow->value_list.items[i]->state != CLIENT_FAILED && !flow->value_list.items[i]->ghost)
            client_tell_value(flow, flow->value_list.items[i]);
    struct flow_entry all = {.kind = ENTRY_PROGRESS, .launch = flow->launched, .handle = flow->next_put};
    client_send_entry(flow, &flow->head, &all, (struct str){0}, true);
    flow->finished = flow->launched;
}
