/* net.c - connections between agents and the controller.
 *
 * A connection keeps its order; different connections do not. Sent bytes reach the peer while both kernels
 * live and the network is not cut, whatever happens to the sender's process. The FIN of a process that ended
 * follows them. A cut holds everything back without notice. A frame can be damaged on the way; its checksum
 * then fails and the receiver closes the connection. A paused or blocked process does not read. */
#include "sim/world.h"

#include "base/units.h"

struct conn *net_find(const struct world *world, uint64_t id)
{
    return id ? u64_map_get(&world->conns_by_id, id) : NULL;
}

bool net_reachable(const struct world *world, const struct sim_machine *machine)
{
    return machine->powered && !machine->cut_up && !machine->cut_down;
}

static int64_t draw_delay(struct world *world)
{
    const struct swarm *swarm = &world->swarm;
    int64_t delay_ns = world_draw(world, swarm->delay_min_ns, swarm->delay_max_ns);
    if (!world->healing && world_chance(world, swarm->spike_ppm))
        delay_ns += world_draw(world, 0, swarm->spike_max_ns);
    return delay_ns;
}

static bool blocked(const struct world *world, const struct conn *conn, bool to_agent)
{
    const struct sim_machine *machine = &world->machines[conn->machine];
    const struct lane *lane = to_agent ? &conn->to_agent : &conn->to_controller;
    bool local = lane->packets.len && lane->packets.items[0].kind == PACKET_TIMEOUT;
    if (to_agent)
        return (machine->cut_down && !local) ||
               (machine->agent && machine->agent_life == conn->agent_life && !machine_reads(machine));
    return (machine->cut_up && !local) || !controller_reads(world);
}

static void arm(struct world *world, struct conn *conn, bool to_agent)
{
    struct lane *lane = to_agent ? &conn->to_agent : &conn->to_controller;
    if (lane->armed || lane->packets.len == 0 || blocked(world, conn, to_agent))
        return;
    lane->armed = true;
    world_at(world, lane->packets.items[0].due_ns, SIM_ARRIVE, conn->machine, conn->id, to_agent);
}

void net_unblock(struct world *world)
{
    for (size_t i = 0; i < world->conns.len; i++) {
        arm(world, world->conns.items[i], false);
        arm(world, world->conns.items[i], true);
    }
}

static void put(struct world *world, struct conn *conn, bool to_agent, enum packet_kind kind,
                struct buf bytes)
{
    struct lane *lane = to_agent ? &conn->to_agent : &conn->to_controller;
    if (lane->broken) {
        buf_done(&bytes);
        return;
    }
    int64_t due_ns = world->now_ns + draw_delay(world);
    if (lane->packets.len && vec_last(&lane->packets).due_ns > due_ns)
        due_ns = vec_last(&lane->packets).due_ns;
    if (kind == PACKET_DATA && bytes.len > 0 && !world->healing &&
        world_chance(world, world->swarm.corrupt_ppm))
        bytes.data[rng_below(&world->rng, bytes.len)] ^= (char)(1 << rng_below(&world->rng, 8));
    struct packet packet = {bytes, kind, due_ns, false};
    vec_push(&lane->packets, packet);
    lane->broken = kind != PACKET_DATA;
    arm(world, conn, to_agent);
}

struct conn *net_open(struct world *world, struct sim_machine *machine, bool tether)
{
    struct conn *conn = mem_alloc(sizeof(*conn));
    conn->id = ++world->next_id;
    conn->machine = machine->index;
    conn->tether = tether;
    conn->agent_open = conn->controller_open = true;
    conn->agent_life = machine->agent_life;
    conn->controller_life = world->controller.life;
    vec_push(&world->conns, conn);
    u64_map_put(&world->conns_by_id, conn->id, conn);
    return conn;
}

static void lane_done(struct lane *lane)
{
    for (size_t i = 0; i < lane->packets.len; i++)
        buf_done(&lane->packets.items[i].bytes);
    vec_done(&lane->packets);
}

static void forget_if_closed(struct world *world, struct conn *conn)
{
    if (conn->agent_open || conn->shims || conn->controller_open)
        return;
    u64_map_remove(&world->conns_by_id, conn->id);
    for (size_t i = 0; i < world->conns.len; i++) {
        if (world->conns.items[i] == conn) {
            vec_remove(&world->conns, i);
            break;
        }
    }
    lane_done(&conn->to_agent);
    lane_done(&conn->to_controller);
    mem_free(conn);
}

/* --- sending and closing ---------------------------------------------------------------------- */

void net_send_agent(struct world *world, struct conn *conn, const struct from_agent *message)
{
    struct buf bytes = {0};
    struct error error = {0};
    if (codec_put_agent(&bytes, message, &error) < 0) {
        world_fail(world, TORTURE_SAFETY, "an agent's message cannot be encoded: %s", error.text);
        buf_done(&bytes);
        return;
    }
    put(world, conn, false, PACKET_DATA, bytes);
}

void net_send_controller(struct world *world, struct conn *conn, const struct from_controller *message)
{
    struct buf bytes = {0};
    struct error error = {0};
    if (codec_put_controller(&bytes, message, &error) < 0) {
        world_fail(world, TORTURE_SAFETY, "a controller's message cannot be encoded: %s", error.text);
        buf_done(&bytes);
        return;
    }
    put(world, conn, true, PACKET_DATA, bytes);
}

static void agent_side_closed(struct world *world, struct conn *conn)
{
    if (!conn->agent_open && conn->shims == 0)
        put(world, conn, false, PACKET_FIN, (struct buf){0});
    forget_if_closed(world, conn);
}

void net_close_agent(struct world *world, struct conn *conn)
{
    if (!conn->agent_open)
        return;
    conn->agent_open = false;
    agent_side_closed(world, conn);
}

void net_release_shim(struct world *world, uint64_t id)
{
    struct conn *conn = net_find(world, id);
    if (!conn)
        return;
    CHECK(conn->shims > 0);
    conn->shims--;
    agent_side_closed(world, conn);
}

void net_close_controller(struct world *world, struct conn *conn)
{
    if (!conn->controller_open)
        return;
    conn->controller_open = false;
    put(world, conn, true, PACKET_FIN, (struct buf){0});
    forget_if_closed(world, conn);
}

/* The machine's kernel has died, so bytes that were sent and not acknowledged are lost. Once the machine is
 * back, a reset answers what the controller sends, unless the controller's kernel gives up first. Until then
 * the controller receives nothing. */
void net_vanish(struct world *world, struct sim_machine *machine)
{
    for (size_t i = world->conns.len; i-- > 0;) {
        struct conn *conn = world->conns.items[i];
        if (conn->machine != machine->index)
            continue;
        conn->agent_open = false;
        conn->shims = 0;
        lane_done(&conn->to_agent);
        conn->to_controller.broken = conn->to_agent.broken = true;
        forget_if_closed(world, conn);
    }
}

/* Drops the packets that are on their way, except those that the stand-in has read. */
static void lose_packets(struct lane *lane)
{
    while (lane->packets.len && !vec_last(&lane->packets).seen) {
        buf_done(&vec_last(&lane->packets).bytes);
        lane->packets.len--;
    }
}

/* Retransmissions ran out. Each side learns it separately, and it proves nothing about the other side. */
void net_timeout(struct world *world, struct conn *conn)
{
    lose_packets(&conn->to_controller);
    lane_done(&conn->to_agent);
    conn->to_controller.armed = conn->to_agent.armed = false;
    conn->to_controller.broken = conn->to_agent.broken = false;
    put(world, conn, false, PACKET_TIMEOUT, (struct buf){0});
    put(world, conn, true, PACKET_TIMEOUT, (struct buf){0});
}

/* --- arriving --------------------------------------------------------------------------------- */

static void broken_frame(struct world *world, struct conn *conn, bool to_agent, const struct error *error)
{
    world_trace(world, "conn %llu of m-%u: %s", (unsigned long long)conn->id, conn->machine + 1, error->text);
    if (to_agent) {
        machine_conn_closed(world, conn);
        return;
    }
    uint64_t id = conn->id;
    controller_conn_closed(world, conn, false);
    conn = net_find(world, id);
    if (conn)
        net_close_controller(world, conn);
}

static void deliver_frame(struct world *world, struct conn *conn, bool to_agent, const struct packet *packet)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = CODEC_ARENA_BYTES};
    struct error error = {0};
    struct str bytes;
    size_t used;
    int rc = codec_frame(packet->bytes.data, packet->bytes.len, &bytes, &used, &error);
    /* The length is damaged: the receiver waits for bytes of the next frames, which then make no sense. */
    if (rc == 0)
        rc = error_set(&error, ERROR_CORRUPT, "a frame's length is wrong");
    struct from_agent from_agent;
    struct from_controller from_controller;
    if (rc > 0)
        rc = to_agent ? codec_get_controller(&arena, bytes, &from_controller, &error)
                      : codec_get_agent(&arena, bytes, &from_agent, &error);
    if (rc < 0) {
        broken_frame(world, conn, to_agent, &error);
        return;
    }
    if (to_agent)
        machine_hears(world, conn, &from_controller);
    else
        controller_message(world, conn, &from_agent);
}

static void deliver(struct world *world, struct conn *conn, bool to_agent, const struct packet *packet)
{
    if (to_agent ? !conn->agent_open : !conn->controller_open)
        return;
    if (packet->kind == PACKET_DATA) {
        deliver_frame(world, conn, to_agent, packet);
    } else if (to_agent) {
        machine_conn_closed(world, conn);
    } else {
        uint64_t id = conn->id;
        controller_conn_closed(world, conn, packet->kind == PACKET_FIN);
        conn = net_find(world, id);
        if (conn)
            net_close_controller(world, conn);
    }
}

/* Delivers the first packet. The connection may no longer exist afterwards. */
static void take_first(struct world *world, struct conn *conn, bool to_agent)
{
    struct lane *lane = to_agent ? &conn->to_agent : &conn->to_controller;
    struct packet packet = lane->packets.items[0];
    vec_remove(&lane->packets, 0);
    deliver(world, conn, to_agent, &packet);
    buf_done(&packet.bytes);
}

void net_hand_over(struct world *world)
{
    for (size_t i = world->conns.len; i-- > 0;) {
        uint64_t id = i < world->conns.len ? world->conns.items[i]->id : 0;
        struct conn *conn = net_find(world, id);
        while (conn && conn->to_controller.packets.len && conn->to_controller.packets.items[0].seen) {
            take_first(world, conn, false);
            conn = net_find(world, id);
        }
    }
}

void net_arrive(struct world *world, const struct sim_event *event)
{
    struct conn *conn = net_find(world, event->id);
    bool to_agent = event->number;
    if (!conn)
        return;
    struct lane *lane = to_agent ? &conn->to_agent : &conn->to_controller;
    if (!lane->armed)
        return;
    lane->armed = false;
    if (lane->packets.len == 0 || blocked(world, conn, to_agent))
        return; /* net_unblock() arms it again */
    if (lane->packets.items[0].due_ns > world->now_ns) {
        arm(world, conn, to_agent);
        return;
    }
    take_first(world, conn, to_agent);
    conn = net_find(world, event->id);
    if (conn)
        arm(world, conn, to_agent);
}

/* Lets the stand-in answer a packet. Returns false if the controller will close the connection at this
 * packet, so that later ones must not be answered. */
static bool attend_packet(struct world *world, struct conn *conn, const struct packet *packet)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = CODEC_ARENA_BYTES};
    struct error error = {0};
    struct str bytes;
    size_t used;
    struct from_agent message;
    struct from_controller answer;
    if (codec_frame(packet->bytes.data, packet->bytes.len, &bytes, &used, &error) <= 0 ||
        codec_get_agent(&arena, bytes, &message, &error) < 0)
        return false;
    if (driver_stand_in(world->controller.driver, conn->id, &message, &answer)) {
        world->outcome->reached[REACH_ATTENDED]++;
        net_send_controller(world, conn, &answer);
    }
    return true;
}

/* The packets stay in the lane for the controller, which receives them when it continues. */
void net_attend(struct world *world)
{
    for (size_t i = 0; i < world->conns.len; i++) {
        struct conn *conn = world->conns.items[i];
        struct lane *lane = &conn->to_controller;
        bool arrives = conn->controller_open && !world->machines[conn->machine].cut_up;
        for (size_t k = 0; arrives && k < lane->packets.len; k++) {
            struct packet *packet = &lane->packets.items[k];
            if (packet->kind != PACKET_DATA || packet->due_ns > world->now_ns)
                break;
            if (!packet->seen && !attend_packet(world, conn, packet))
                break;
            packet->seen = true;
        }
    }
}

void net_done(struct world *world)
{
    for (size_t i = 0; i < world->conns.len; i++) {
        lane_done(&world->conns.items[i]->to_agent);
        lane_done(&world->conns.items[i]->to_controller);
        mem_free(world->conns.items[i]);
    }
    vec_done(&world->conns);
    u64_map_done(&world->conns_by_id);
}
