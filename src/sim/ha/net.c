/* net.c - connections between agents and the leading controller. A connection keeps its order. While its two
 * places are cut off from each other, sent bytes wait, because kernels retransmit them; neither side is
 * notified. When a process ends, its kernel closes the connection after everything sent before. */
#include "sim/ha/world.h"

struct ha_conn *ha_conn_find(const struct ha_world *world, uint64_t id)
{
    return id ? u64_map_get(&world->conns_by_id, id) : NULL;
}

static void lane_clear(struct ha_lane *lane)
{
    for (size_t i = 0; i < lane->packets.len; i++)
        buf_done(&lane->packets.items[i].bytes);
    vec_done(&lane->packets);
    lane->arrived = 0;
}

static void conn_free(struct ha_conn *conn)
{
    lane_clear(&conn->to_agent);
    lane_clear(&conn->to_controller);
    mem_free(conn);
}

/* Forgets a connection that neither side has open. */
static void forget_closed(struct ha_world *world, struct ha_conn *conn)
{
    if (conn->agent_open || conn->shims || conn->controller_open)
        return;
    u64_map_remove(&world->conns_by_id, conn->id);
    for (size_t i = 0; i < world->conns.len; i++)
        if (world->conns.items[i] == conn) {
            vec_remove(&world->conns, i);
            break;
        }
    conn_free(conn);
}

static struct ha_lane *lane_of(struct ha_conn *conn, bool to_agent)
{
    return to_agent ? &conn->to_agent : &conn->to_controller;
}

/* Returns the true time until which nothing passes in this direction. */
static int64_t lane_cut_until(const struct ha_world *world, const struct ha_conn *conn, bool to_agent)
{
    uint32_t machine = HA_PLACE_MACHINE + conn->machine, controller = conn->controller;
    return to_agent ? world->cut_until_ns[controller][machine] : world->cut_until_ns[machine][controller];
}

static void lane_arm(struct ha_world *world, struct ha_conn *conn, bool to_agent)
{
    struct ha_lane *lane = lane_of(conn, to_agent);
    if (lane->armed || lane->arrived == lane->packets.len)
        return;
    int64_t due_ns = lane->packets.items[lane->arrived].due_ns,
            cut_ns = lane_cut_until(world, conn, to_agent);
    due_ns = due_ns > cut_ns ? due_ns : cut_ns;
    lane->armed = true;
    ha_at(world, due_ns, HA_PACKET, 0, conn->id, to_agent);
}

static void lane_put(struct ha_world *world, struct ha_conn *conn, bool to_agent, struct buf bytes, bool end)
{
    struct ha_lane *lane = lane_of(conn, to_agent);
    if (lane->ended) {
        buf_done(&bytes);
        return;
    }
    struct ha_packet packet = {bytes, end, world->now_ns + ha_delay(world)};
    if (lane->packets.len && vec_last(&lane->packets).due_ns > packet.due_ns)
        packet.due_ns = vec_last(&lane->packets).due_ns;
    vec_push(&lane->packets, packet);
    lane->ended = end;
    lane_arm(world, conn, to_agent);
}

struct ha_conn *ha_conn_open(struct ha_machine *machine, struct ha_controller *controller, bool tether)
{
    struct ha_world *world = machine->world;
    struct ha_conn *conn = mem_alloc(sizeof(*conn));
    conn->id = ++world->next_id;
    conn->machine = machine->index;
    conn->controller = controller->index;
    conn->agent_life = machine->agent_life;
    conn->controller_life = controller->life;
    conn->tether = tether;
    conn->agent_open = conn->controller_open = true;
    vec_push(&world->conns, conn);
    u64_map_put(&world->conns_by_id, conn->id, conn);
    return conn;
}

/* --- sending and closing ---------------------------------------------------------------------- */

void ha_conn_send_agent(struct ha_world *world, struct ha_conn *conn, const struct from_agent *message)
{
    struct buf bytes = {0};
    struct error error = {0};
    if (codec_put_agent(&bytes, message, &error) < 0)
        ha_fail(world, TORTURE_SAFETY, "an agent's message cannot be encoded: %s", error.text);
    lane_put(world, conn, false, bytes, false);
}

void ha_conn_send_controller(struct ha_world *world, struct ha_conn *conn,
                             const struct from_controller *message)
{
    struct buf bytes = {0};
    struct error error = {0};
    if (codec_put_controller(&bytes, message, &error) < 0)
        ha_fail(world, TORTURE_SAFETY, "a controller's message cannot be encoded: %s", error.text);
    lane_put(world, conn, true, bytes, false);
}

static void agent_side_closed(struct ha_world *world, struct ha_conn *conn)
{
    if (!conn->agent_open && conn->shims == 0 && conn->controller_open)
        lane_put(world, conn, false, (struct buf){0}, true);
    forget_closed(world, conn);
}

void ha_conn_close_agent(struct ha_world *world, uint64_t id)
{
    struct ha_conn *conn = ha_conn_find(world, id);
    if (!conn || !conn->agent_open)
        return;
    conn->agent_open = false;
    agent_side_closed(world, conn);
}

void ha_conn_release(struct ha_world *world, uint64_t id)
{
    struct ha_conn *conn = ha_conn_find(world, id);
    if (!conn)
        return;
    CHECK(conn->shims > 0);
    conn->shims--;
    agent_side_closed(world, conn);
}

void ha_conn_close_controller(struct ha_world *world, struct ha_conn *conn)
{
    if (!conn->controller_open)
        return;
    conn->controller_open = false;
    lane_clear(&conn->to_controller);
    lane_put(world, conn, true, (struct buf){0}, true);
    forget_closed(world, conn);
}

void ha_conn_end_of(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    for (size_t i = world->conns.len; i-- > 0;) {
        struct ha_conn *conn = world->conns.items[i];
        if (conn->controller == controller->index && conn->controller_open)
            ha_conn_close_controller(world, conn);
    }
}

/* --- arriving --------------------------------------------------------------------------------- */

static void agent_reads(struct ha_world *world, struct ha_conn *conn, const struct ha_packet *packet)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = CODEC_ARENA_BYTES};
    struct from_controller message;
    struct error error = {0};
    struct str bytes;
    size_t used;
    if (packet->end) {
        ha_machine_closed(world, conn);
        return;
    }
    CHECK(codec_frame(packet->bytes.data, packet->bytes.len, &bytes, &used, &error) == 1);
    CHECK(codec_get_controller(&arena, bytes, &message, &error) == 0);
    ha_machine_hears(world, conn, &message);
}

void ha_conn_packet(struct ha_world *world, const struct ha_event *event)
{
    struct ha_conn *conn = ha_conn_find(world, event->id);
    bool to_agent = event->number;
    if (!conn)
        return;
    struct ha_lane *lane = lane_of(conn, to_agent);
    lane->armed = false;
    bool here =
        lane->arrived < lane->packets.len && lane->packets.items[lane->arrived].due_ns <= world->now_ns;
    if (here && world->now_ns >= lane_cut_until(world, conn, to_agent)) {
        if (to_agent) {
            struct ha_packet packet = lane->packets.items[0];
            vec_remove(&lane->packets, 0);
            agent_reads(world, conn, &packet);
            buf_done(&packet.bytes);
        } else {
            lane->arrived++;
            ha_turn_soon(&world->controllers[conn->controller]);
        }
    }
    conn = ha_conn_find(world, event->id);
    if (conn)
        lane_arm(world, conn, to_agent);
}

static void controller_reads(struct ha_controller *controller, uint64_t id, const struct ha_packet *packet)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = CODEC_ARENA_BYTES};
    struct ha_world *world = controller->world;
    struct from_agent message;
    struct error error = {0};
    struct str bytes;
    size_t used;
    if (packet->end) {
        driver_closed(controller->driver, id, true, "the connection closed");
        struct ha_conn *conn = ha_conn_find(world, id);
        if (conn)
            ha_conn_close_controller(world, conn);
        return;
    }
    CHECK(codec_frame(packet->bytes.data, packet->bytes.len, &bytes, &used, &error) == 1);
    CHECK(codec_get_agent(&arena, bytes, &message, &error) == 0);
    driver_message(controller->driver, id, &message);
}

void ha_conn_gather(struct ha_controller *controller)
{
    struct ha_world *world = controller->world;
    for (size_t i = world->conns.len; i-- > 0;) {
        uint64_t id = i < world->conns.len ? world->conns.items[i]->id : 0;
        struct ha_conn *conn = ha_conn_find(world, id);
        while (conn && conn->controller == controller->index && conn->controller_open &&
               conn->to_controller.arrived > 0) {
            struct ha_packet packet = conn->to_controller.packets.items[0];
            vec_remove(&conn->to_controller.packets, 0);
            conn->to_controller.arrived--;
            controller_reads(controller, id, &packet);
            buf_done(&packet.bytes);
            conn = ha_conn_find(world, id);
        }
    }
}

void ha_conn_done(struct ha_world *world)
{
    for (size_t i = 0; i < world->conns.len; i++)
        conn_free(world->conns.items[i]);
    vec_done(&world->conns);
    u64_map_done(&world->conns_by_id);
}
