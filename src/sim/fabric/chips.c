#include "sim/fabric/chips_private.h"

#include <string.h>

/* --- packets --------------------------------------------------------------------------------------- */

void packet_put(struct packet_queue *queue, const struct packet *packet)
{
    if (queue->count == queue->cap) {
        uint32_t cap = queue->cap ? 2 * queue->cap : 4;
        struct packet *items = mem_alloc(cap * sizeof *items);
        for (uint32_t i = 0; i < queue->count; i++)
            items[i] = queue->items[(queue->first + i) % queue->cap];
        mem_free(queue->items);
        *queue = (struct packet_queue){items, 0, queue->count, cap};
    }
    queue->items[(queue->first + queue->count++) % queue->cap] = *packet;
}

struct packet packet_take(struct packet_queue *queue)
{
    CHECK(queue->count > 0);
    struct packet packet = queue->items[queue->first];
    queue->first = (queue->first + 1) % queue->cap;
    queue->count--;
    return packet;
}

void packet_end(struct chips *net, const struct packet *packet, bool delivered)
{
    struct chips_write *write = packet->write;
    CHECK(write->left > 0 && net->counts.waiting > 0);
    net->counts.waiting--;
    net->counts.delivered += delivered;
    write->failed = write->failed || !delivered;
    if (--write->left)
        return;
    struct chips_done done = {.tag = write->tag,
                              .from = write->from,
                              .at = write->failed ? CHIPS_NONE : write->at,
                              .session = write->session,
                              .delivered = !write->failed,
                              .at_ns = net->now_ns};
    vec_push(&net->done, done);
    mem_free(write);
}

/* Puts a packet into the memory of the chip that it is for. */
static void packet_deliver(struct chips *net, struct chip *chip, const struct packet *packet)
{
    bool fits = packet->address <= net->settings.memory_bytes &&
                packet->len <= net->settings.memory_bytes - packet->address;
    if (fits)
        memcpy(chip->memory + packet->address, packet->write->bytes + packet->offset, packet->len);
    net->counts.refused += !fits;
    packet->write->at = (uint32_t)(chip - net->chips);
    packet_end(net, packet, fits);
}

bool packet_route(struct chips *net, uint32_t chip_index, struct packet *packet, bool born)
{
    struct chip *chip = &net->chips[chip_index];
    if (chip->session != packet->session || packet->to >= chip->table_chips) {
        net->counts.refused++;
        packet_end(net, packet, false);
        return false;
    }
    if (packet->to == chip->number) {
        packet_deliver(net, chip, packet);
        return false;
    }
    packet->entry = (born ? chip->inject : chip->transit)[packet->to * chip->stride];
    if (packet->entry >= ROUTE_NONE || route_port(packet->entry) >= CHIP_PORTS ||
        route_vc(packet->entry) >= ROUTE_VCS) {
        net->counts.refused++;
        packet_end(net, packet, false);
        return false;
    }
    return true;
}

/* --- the pod --------------------------------------------------------------------------------------- */

static uint32_t link_at(uint32_t chip, uint32_t port)
{
    return chip * CHIP_PORTS + port;
}

/* Gives light to the copper links of a cube: those between neighbours along each axis. */
static void light_cube(struct chips *net, uint32_t cube)
{
    static const uint32_t steps[AXES] = {1, CUBE_SIDE, CUBE_SIDE * CUBE_SIDE};
    struct link_end end;
    for (uint32_t chip = 0; chip < CUBE_CHIPS; chip++)
        for (uint32_t axis = 0; axis < AXES; axis++) {
            uint32_t from = cube * CUBE_CHIPS + chip;
            if (!cube_chip_optical((uint16_t)cube, chip, 2 * axis, &end))
                link_light(net, link_at(from, 2 * axis), link_at(from + steps[axis], 2 * axis + 1),
                           net->settings.copper_ns);
        }
}

struct chips *chips_new(const struct chips_settings *settings)
{
    CHECK(settings->cubes >= 1 && settings->cubes <= POD_CUBES_MAX && settings->buffers >= 1 &&
          settings->buffers <= CHIPS_BUFFERS_MAX && settings->memory_bytes <= CHIPS_MEMORY_MAX);
    struct chips *net = mem_alloc(sizeof *net);
    net->settings = *settings;
    net->chip_count = settings->cubes * CUBE_CHIPS;
    net->window = ROUTE_VCS * settings->buffers + 1;
    net->chips = mem_alloc(net->chip_count * sizeof *net->chips);
    net->links = mem_alloc(net->chip_count * CHIP_PORTS * sizeof *net->links);
    rng_seed(&net->rng, settings->seed);
    for (uint32_t chip = 0; chip < net->chip_count; chip++)
        net->chips[chip].memory = mem_alloc(settings->memory_bytes);
    for (uint32_t i = 0; i < net->chip_count * CHIP_PORTS; i++) {
        net->links[i].far = CHIPS_NONE;
        net->links[i].kept = mem_alloc(net->window * sizeof *net->links[i].kept);
    }
    for (uint32_t cube = 0; cube < settings->cubes; cube++)
        light_cube(net, cube);
    return net;
}

static void forget_packets(struct packet_queue *queue)
{
    while (queue->count) {
        struct packet packet = packet_take(queue);
        if (--packet.write->left == 0)
            mem_free(packet.write);
    }
    mem_free(queue->items);
}

void chips_free(struct chips *net)
{
    for (uint32_t i = 0; i < net->chip_count * CHIP_PORTS; i++)
        if (net->links[i].far != CHIPS_NONE)
            link_dark(net, i);
    for (uint32_t i = 0; i < net->chip_count * CHIP_PORTS; i++) {
        for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
            forget_packets(&net->links[i].in[vc]);
        mem_free(net->links[i].kept);
    }
    for (uint32_t chip = 0; chip < net->chip_count; chip++) {
        forget_packets(&net->chips[chip].born);
        mem_free(net->chips[chip].memory);
        mem_free(net->chips[chip].own);
    }
    for (struct heap_node *node; (node = heap_min(&net->events));) {
        heap_remove(&net->events, node);
        mem_free(container_of(node, struct chips_event, node));
    }
    for (struct chips_event *event; (event = net->unused);) {
        net->unused = event->next_unused;
        mem_free(event);
    }
    heap_done(&net->events);
    vec_done(&net->done);
    mem_free(net->chips);
    mem_free(net->links);
    mem_free(net);
}

bool chips_follow(struct chips *net, uint32_t switch_number, const struct ocs *ocs)
{
    struct pod_switch which = pod_switch_at(switch_number);
    bool changed = false;
    for (int pass = 0; pass < 2; pass++) /* first all light that goes, then all that comes */
        for (uint16_t cube = 0; cube < net->settings.cubes; cube++) {
            struct link_end plus = {cube, which.axis, which.index, POLARITY_PLUS}, minus;
            uint32_t one = link_at(cube * CUBE_CHIPS + link_end_chip(plus), 2u * which.axis);
            uint32_t port = link_end_port(net->settings.cubes, plus), peer = ocs_peer(ocs, port);
            uint32_t other = CHIPS_NONE;
            if (peer && !ocs->dead && switch_port_end(net->settings.cubes, which, peer, &minus) &&
                minus.polarity == POLARITY_MINUS && !ocs->port[port].dark &&
                !ocs->port[port].shutter_closed && !ocs->port[peer].shutter_closed)
                other = link_at(minus.cube * CUBE_CHIPS + link_end_chip(minus), 2u * which.axis + 1);
            if (net->links[one].far == other)
                continue;
            changed = true;
            if (pass == 0 && net->links[one].far != CHIPS_NONE)
                link_dark(net, one);
            if (pass == 1 && other != CHIPS_NONE)
                link_light(net, one, other, net->settings.optical_ns);
        }
    return changed;
}

void chips_ask(struct chips *net, uint32_t chip, enum chip_port port, bool asked)
{
    CHECK(chip < net->chip_count && port < CHIP_PORTS);
    struct chip_link *link = &net->links[link_at(chip, port)];
    link->asked = asked;
    link_try(net, link_at(chip, port));
    if (link->far != CHIPS_NONE)
        link_try(net, link->far);
}

bool chips_neighbor(const struct chips *net, uint32_t chip, enum chip_port port, uint32_t *ret_chip,
                    enum chip_port *ret_port)
{
    const struct chip_link *link = &net->links[link_at(chip, port)];
    if (link->far == CHIPS_NONE || net->now_ns < link->trained_ns)
        return false;
    *ret_chip = link->far / CHIP_PORTS;
    *ret_port = link->far % CHIP_PORTS;
    return true;
}

int64_t chips_rtt_ns(const struct chips *net, uint32_t chip, enum chip_port port)
{
    return 2 * (int64_t)net->links[link_at(chip, port)].flight_ns;
}

/* `own`: memory with the tables, which is the chip's from now on. */
static void load_tables(struct chips *net, uint32_t chip, uint32_t chips, size_t stride,
                        const uint8_t *transit, const uint8_t *inject, uint8_t *own)
{
    struct chip *at = &net->chips[chip];
    link_flush(net, chip);
    mem_free(at->own);
    at->own = own;
    at->table_chips = chips;
    at->stride = stride;
    at->transit = transit;
    at->inject = inject ? inject : transit;
}

void chips_load(struct chips *net, uint32_t chip, uint16_t number, uint32_t session,
                const struct route *route)
{
    CHECK(chip < net->chip_count && (!route || number < route->chips));
    net->chips[chip].number = number;
    net->chips[chip].session = session;
    if (route)
        load_tables(net, chip, route->chips, route->chips, route->transit + number,
                    route->inject ? route->inject + number : NULL, NULL);
    else
        load_tables(net, chip, 0, 0, NULL, NULL, NULL);
}

void chips_load_own(struct chips *net, uint32_t chip, uint16_t number, uint32_t session, uint16_t chips,
                    const uint8_t *transit, const uint8_t *inject)
{
    CHECK(chip < net->chip_count && number < chips);
    uint8_t *own = mem_alloc(2 * (size_t)chips);
    memcpy(own, transit, chips);
    memcpy(own + chips, inject ? inject : transit, chips);
    net->chips[chip].number = number;
    net->chips[chip].session = session;
    load_tables(net, chip, chips, 1, own, own + chips, own);
}

/* --- writes and time ------------------------------------------------------------------------------- */

void chips_write(struct chips *net, uint32_t chip, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag)
{
    CHECK(chip < net->chip_count && len > 0 && len <= CHIPS_MEMORY_MAX);
    struct chip *at = &net->chips[chip];
    struct chips_write *write = mem_alloc(sizeof *write + len);
    memcpy(write->bytes, bytes, len);
    write->tag = tag;
    write->from = chip;
    write->at = CHIPS_NONE;
    write->session = at->session;
    write->left = (len + CHIPS_PACKET_BYTES - 1) / CHIPS_PACKET_BYTES;
    net->counts.waiting += write->left;
    for (uint32_t offset = 0; offset < len; offset += CHIPS_PACKET_BYTES) {
        uint32_t rest = len - offset;
        struct packet packet = {.write = write,
                                .session = at->session,
                                .address = address + offset,
                                .offset = offset,
                                .len = rest < CHIPS_PACKET_BYTES ? rest : CHIPS_PACKET_BYTES,
                                .to = to};
        if (!packet_route(net, chip, &packet, true))
            continue;
        packet_put(&at->born, &packet);
        if (at->born.count == 1)
            link_try(net, link_at(chip, route_port(packet.entry)));
    }
}

const uint8_t *chips_memory(const struct chips *net, uint32_t chip)
{
    CHECK(chip < net->chip_count);
    return net->chips[chip].memory;
}

struct chips_event *chips_schedule(struct chips *net, enum chips_event_kind kind, uint32_t link,
                                   int64_t at_ns)
{
    struct chips_event *event = net->unused;
    if (event)
        net->unused = event->next_unused;
    else
        event = mem_alloc(sizeof *event);
    *event = (struct chips_event){.kind = kind, .link = link};
    event->node.key = at_ns;
    event->node.tie = net->made++;
    heap_insert(&net->events, &event->node);
    return event;
}

int64_t chips_run(struct chips *net, int64_t until_ns)
{
    for (struct heap_node *node; (node = heap_min(&net->events)) && node->key <= until_ns;) {
        struct chips_event *event = container_of(node, struct chips_event, node);
        heap_remove(&net->events, node);
        net->now_ns = node->key;
        link_event(net, event);
        event->next_unused = net->unused;
        net->unused = event;
    }
    return net->now_ns;
}

int64_t chips_now_ns(const struct chips *net)
{
    return net->now_ns;
}

bool chips_take_done(struct chips *net, struct chips_done *ret_done)
{
    if (net->done_taken == net->done.len) {
        vec_clear(&net->done);
        net->done_taken = 0;
        return false;
    }
    *ret_done = net->done.items[net->done_taken++];
    return true;
}

void chips_count(const struct chips *net, struct chips_counts *ret_counts)
{
    *ret_counts = net->counts;
}
