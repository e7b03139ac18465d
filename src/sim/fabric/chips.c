#include "sim/fabric/chips_private.h"

#include <string.h>

/* --- the pod --------------------------------------------------------------------------------------- */

static uint32_t link_at(uint32_t chip, uint32_t port)
{
    return chip * CHIP_PORTS + port;
}

/* Gives light to a link inside the net, at both ends. */
static void join_ends(struct chips *net, uint32_t one, uint32_t other, uint32_t flight_ns)
{
    link_light(net, one, LIGHT_INSIDE, other, flight_ns);
    link_light(net, other, LIGHT_INSIDE, one, flight_ns);
    link_begin(net, one);
    link_begin(net, other);
}

static void part_ends(struct chips *net, uint32_t one)
{
    uint32_t other = net->links[one].far;
    uint64_t accepted[2] = {net->links[other].expected, net->links[one].expected};
    CHECK(net->links[one].light == LIGHT_INSIDE && net->links[other].far == one);
    link_dark(net, one, accepted[0]);
    link_dark(net, other, accepted[1]);
}

uint32_t chips_copper(uint32_t chip, enum chip_port port)
{
    static const uint32_t steps[AXES] = {1, CUBE_SIDE, CUBE_SIDE * CUBE_SIDE};
    struct link_end end;
    if (cube_chip_optical((uint16_t)(chip / CUBE_CHIPS), chip % CUBE_CHIPS, port, &end))
        return CHIPS_NONE;
    return port % 2 == POLARITY_PLUS ? chip + steps[port / 2] : chip - steps[port / 2];
}

/* Gives light to the copper links between neighbours along each axis. */
static void light_copper(struct chips *net)
{
    for (uint32_t chip = 0; chip < net->chip_count; chip++)
        for (uint32_t port = 0; chip_here(net, chip) && port < CHIP_PORTS; port += 2) {
            uint32_t next = chips_copper(chip, port);
            if (next != CHIPS_NONE && chip_here(net, next))
                join_ends(net, link_at(chip, port), link_at(next, port + 1), net->settings.copper_ns);
        }
}

static void place_chip(struct chips *net, uint32_t chip)
{
    net->chips[chip].memory = mem_alloc(net->settings.memory_bytes);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        net->links[link_at(chip, port)].kept = mem_alloc(net->window * sizeof(struct packet));
        net->links[link_at(chip, port)].room = net->settings.buffers;
    }
}

struct chips *chips_new(const struct chips_settings *settings)
{
    CHECK(settings->cubes >= 1 && settings->cubes <= POD_CUBES_MAX && settings->buffers >= 1 &&
          settings->buffers <= CHIPS_BUFFERS_MAX && settings->memory_bytes >= 1 &&
          settings->memory_bytes <= CHIPS_MEMORY_MAX &&
          (!settings->one_machine || settings->machine < settings->cubes * CUBE_MACHINES));
    struct chips *net = mem_alloc(sizeof *net);
    net->settings = *settings;
    net->chip_count = settings->cubes * CUBE_CHIPS;
    net->window = ROUTE_VCS * settings->buffers + 1;
    net->chips = mem_alloc(net->chip_count * sizeof *net->chips);
    net->links = mem_alloc(net->chip_count * CHIP_PORTS * sizeof *net->links);
    rng_seed(&net->rng, settings->seed);
    for (uint32_t chip = 0; chip < net->chip_count; chip++)
        if (!settings->one_machine || chips_machine(chip) == settings->machine)
            place_chip(net, chip);
    light_copper(net);
    return net;
}

static void drop_queue(struct packet_queue *queue)
{
    while (queue->count)
        cargo_release(packet_take(queue).cargo);
    mem_free(queue->items);
}

static void free_links(struct chips *net)
{
    for (uint32_t i = 0; i < net->chip_count * CHIP_PORTS; i++)
        if (net->links[i].light == LIGHT_INSIDE)
            part_ends(net, i);
        else if (net->links[i].light == LIGHT_OUTSIDE)
            link_dark(net, i, 0);
    for (uint32_t i = 0; i < net->chip_count * CHIP_PORTS; i++) {
        for (uint32_t vc = 0; vc < ROUTE_VCS; vc++)
            drop_queue(&net->links[i].in[vc]);
        mem_free(net->links[i].kept);
    }
    for (; net->outgoing_taken < net->outgoing.len; net->outgoing_taken++)
        if (net->outgoing.items[net->outgoing_taken].frame.kind == LINK_DATA)
            cargo_release(net->outgoing.items[net->outgoing_taken].frame.packet.cargo);
    mem_free(net->links);
}

static void free_events(struct chips *net)
{
    for (struct heap_node *node; (node = heap_min(&net->events));) {
        heap_remove(&net->events, node);
        mem_free(container_of(node, struct chips_event, node));
    }
    for (struct chips_event *event; (event = net->unused);) {
        net->unused = event->next_unused;
        mem_free(event);
    }
    heap_done(&net->events);
}

void chips_free(struct chips *net)
{
    free_links(net);
    for (uint32_t chip = 0; chip < net->chip_count; chip++) {
        drop_queue(&net->chips[chip].born);
        chip_forget_writes(&net->chips[chip]);
        mem_free(net->chips[chip].memory);
        mem_free(net->chips[chip].own);
    }
    mem_free(net->chips);
    free_events(net);
    vec_done(&net->done);
    vec_done(&net->begun);
    vec_done(&net->outgoing);
    vec_done(&net->notices);
    mem_free(net);
}

/* --- light -------------------------------------------------------------------------------------------- */

uint32_t chips_joined(uint32_t cubes, uint32_t switch_number, const struct ocs *ocs, uint16_t cube)
{
    struct pod_switch which = pod_switch_at(switch_number);
    struct link_end plus = {cube, which.axis, which.index, POLARITY_PLUS}, minus;
    uint32_t port = ocs_port_of(ocs, link_end_port(cubes, plus)), peer = ocs_peer(ocs, port);
    if (!peer || ocs->dead || !switch_port_end(cubes, which, ocs_fibre_in(ocs, peer), &minus) ||
        minus.polarity != POLARITY_MINUS || ocs->port[port].dark || ocs->port[port].shutter_closed ||
        ocs->port[peer].shutter_closed)
        return CHIPS_NONE;
    return minus.cube;
}

bool chips_follow(struct chips *net, uint32_t switch_number, const struct ocs *ocs)
{
    struct pod_switch which = pod_switch_at(switch_number);
    struct link_end end = {0, which.axis, which.index, POLARITY_PLUS};
    uint32_t chip = link_end_chip(end), far_chip;
    bool changed = false;
    end.polarity = POLARITY_MINUS;
    far_chip = link_end_chip(end);
    for (int pass = 0; pass < 2; pass++) /* first take all old light, then give the new */
        for (uint16_t cube = 0; cube < net->settings.cubes; cube++) {
            uint32_t one = link_at(cube * CUBE_CHIPS + chip, 2u * which.axis), other = CHIPS_NONE;
            uint32_t joined = chips_joined(net->settings.cubes, switch_number, ocs, cube);
            const struct chip_link *link = &net->links[one];
            if (joined != CHIPS_NONE)
                other = link_at(joined * CUBE_CHIPS + far_chip, 2u * which.axis + 1);
            if ((link->light == LIGHT_NONE ? CHIPS_NONE : link->far) == other)
                continue;
            changed = true;
            if (pass == 0 && link->light != LIGHT_NONE)
                part_ends(net, one);
            if (pass == 1 && other != CHIPS_NONE)
                join_ends(net, one, other, net->settings.optical_ns);
        }
    return changed;
}

bool chips_leads_outside(const struct chips *net, uint32_t chip, enum chip_port port)
{
    CHECK(chip < net->chip_count && port < CHIP_PORTS);
    uint32_t next = chips_copper(chip, port);
    return net->settings.one_machine && chip_here(net, chip) && (next == CHIPS_NONE || !chip_here(net, next));
}

void chips_light(struct chips *net, uint32_t chip, enum chip_port port, bool light)
{
    CHECK(chips_leads_outside(net, chip, port));
    uint32_t link = link_at(chip, port);
    if (net->links[link].light != LIGHT_NONE)
        link_dark(net, link, 0); /* the frames that the other end has taken are unknown */
    if (!light)
        return;
    link_light(net, link, LIGHT_OUTSIDE, CHIPS_NONE, 0);
    link_begin(net, link);
}

bool chips_take_frame(struct chips *net, uint32_t *ret_chip, enum chip_port *ret_port, struct buf *bytes)
{
    while (net->outgoing_taken < net->outgoing.len) {
        const struct chips_outgoing *outgoing = &net->outgoing.items[net->outgoing_taken++];
        const struct chip_link *link = &net->links[outgoing->link];
        bool lit = link->light != LIGHT_NONE && link->generation == outgoing->generation;
        *ret_chip = outgoing->link / CHIP_PORTS;
        *ret_port = outgoing->link % CHIP_PORTS;
        if (lit)
            frame_write(&outgoing->frame, bytes);
        if (outgoing->frame.kind == LINK_DATA)
            cargo_release(outgoing->frame.packet.cargo);
        if (lit)
            return true;
    }
    vec_clear(&net->outgoing);
    net->outgoing_taken = 0;
    return false;
}

int chips_put_frame(struct chips *net, uint32_t chip, enum chip_port port, const void *bytes, size_t len)
{
    struct link_frame frame;
    uint32_t link = link_at(chip, port);
    CHECK(chips_leads_outside(net, chip, port));
    if (net->links[link].light == LIGHT_NONE)
        return 0; /* the light was taken before the frame arrived */
    int status = frame_read(bytes, len, &frame);
    if (status == 0 && !link_take(net, link, &frame))
        status = ERROR_CORRUPT;
    if (status < 0)
        link_dark(net, link, 0);
    if (frame.kind == LINK_DATA && frame.packet.cargo)
        cargo_release(frame.packet.cargo);
    return status;
}

void chips_ask(struct chips *net, uint32_t chip, enum chip_port port, bool asked)
{
    CHECK(chip < net->chip_count && chip_here(net, chip) && port < CHIP_PORTS);
    link_ask(net, link_at(chip, port), asked);
}

bool chips_training(const struct chips *net, uint32_t chip, enum chip_port port)
{
    const struct chip_link *link = &net->links[link_at(chip, port)];
    return link->light != LIGHT_NONE && !link->trained && net->now_ns < link->lit_ns + CHIPS_TRAIN_MAX_NS;
}

bool chips_neighbor(const struct chips *net, uint32_t chip, enum chip_port port, uint32_t *ret_chip,
                    enum chip_port *ret_port)
{
    const struct chip_link *link = &net->links[link_at(chip, port)];
    if (!link->trained)
        return false;
    *ret_chip = link->far_label;
    *ret_port = link->far_port;
    return true;
}

int64_t chips_rtt_ns(const struct chips *net, uint32_t chip, enum chip_port port)
{
    return net->links[link_at(chip, port)].rtt_ns;
}

/* --- tables ------------------------------------------------------------------------------------------- */

/* Loads tables. `own` is memory with the tables, which the chip takes, or NULL. */
static void load_tables(struct chips *net, uint32_t chip, uint32_t chips, size_t stride,
                        const uint8_t *transit, const uint8_t *inject, uint8_t *own)
{
    struct chip *at = &net->chips[chip];
    link_flush(net, chip);
    chip_forget_writes(at);
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
    for (uint32_t port = 0; port < CHIP_PORTS && !route; port++)
        link_set_room(net, link_at(chip, port), net->settings.buffers);
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

void chips_set_buffer(struct chips *net, uint32_t chip, enum chip_port port, uint32_t bytes)
{
    CHECK(chip < net->chip_count && chip_here(net, chip) && port < CHIP_PORTS);
    uint32_t packets = bytes / CHIPS_PACKET_BYTES + (bytes % CHIPS_PACKET_BYTES > 0);
    packets = packets < 1 ? 1 : packets > net->settings.buffers ? net->settings.buffers : packets;
    link_set_room(net, link_at(chip, port), packets);
}

/* --- time --------------------------------------------------------------------------------------------- */

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

static void carry_out(struct chips *net, const struct chips_event *event)
{
    if (event->kind == CHIPS_BEGIN) {
        start_begins(net, event->link, event->generation);
        return;
    }
    if (event->generation != net->links[event->link].generation)
        return; /* belongs to an earlier light */
    if (event->kind == CHIPS_FRAME)
        CHECK(link_take(net, event->link, &event->frame));
    else if (event->kind == CHIPS_TRAINED)
        link_settle(net, event->link);
    else
        link_try(net, event->link);
}

int64_t chips_run(struct chips *net, int64_t until_ns)
{
    for (struct heap_node *node; (node = heap_min(&net->events)) && node->key <= until_ns;) {
        struct chips_event *event = container_of(node, struct chips_event, node);
        heap_remove(&net->events, node);
        net->now_ns = node->key > net->now_ns ? node->key : net->now_ns;
        carry_out(net, event);
        event->next_unused = net->unused;
        net->unused = event;
    }
    if (until_ns != INT64_MAX && until_ns > net->now_ns)
        net->now_ns = until_ns;
    return net->now_ns;
}

int64_t chips_now_ns(const struct chips *net)
{
    return net->now_ns;
}

int64_t chips_next_ns(const struct chips *net)
{
    const struct heap_node *node = heap_min(&net->events);
    return node ? node->key : INT64_MAX;
}

void chips_count(const struct chips *net, struct chips_counts *ret_counts)
{
    *ret_counts = net->counts;
}
