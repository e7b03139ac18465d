#include "sim/cycle/cycle.h"

#include "sim/cycle/private.h"

/* An event is its kind and a number of 30 bits: a packet, a channel, or a link. */
enum { EVENT_ARRIVES, EVENT_CREDIT, EVENT_FREE, EVENT_WAKE, EVENT_SHIFT = 30 };
enum { GAP_SHIFT = 10 }; /* gaps are in 1/1024 of a cycle */
_Static_assert((uint64_t)SLICE_CHIPS_MAX *CHIP_PORTS *ROUTE_VCS *CYCLE_BUFFERS_MAX < 1u << EVENT_SHIFT,
               "a packet's number fits into an event");

static void schedule(struct cycle_net *net, uint32_t delay, uint32_t kind, uint32_t number)
{
    CHECK(delay > 0 && delay <= net->wheel_mask && number >> EVENT_SHIFT == 0);
    vec_push(&net->wheel[(net->now + delay) & net->wheel_mask], kind << EVENT_SHIFT | number);
    net->events++;
}

/* --- making ------------------------------------------------------------------------------------------ */

static void make_links(struct cycle_net *net)
{
    const struct torus *torus = net->torus;
    for (uint32_t i = 0; i < torus->chips * CHIP_PORTS; i++) {
        struct cycle_link *link = &net->links[i];
        struct pod_switch passed;
        bool optical = torus_link_switch(torus, (uint16_t)(i / CHIP_PORTS), i % CHIP_PORTS, &passed);
        link->chip = torus->next[i];
        link->flight = (uint16_t)(optical ? net->terms.optical_cycles : net->terms.copper_cycles);
        link->lane = CYCLE_NONE;
        for (uint32_t vc = 0; vc < ROUTE_VCS; vc++) {
            link->credits[vc] = net->terms.buffers;
            link->queue[vc] = (struct cycle_queue){CYCLE_NONE, CYCLE_NONE};
        }
    }
}

struct cycle_net *cycle_net_new(const struct torus *torus, const struct route *route,
                                const struct cycle_terms *terms)
{
    CHECK(terms->buffers >= 1 && terms->buffers <= CYCLE_BUFFERS_MAX && terms->packet_cycles >= 1);
    CHECK(terms->packet_cycles <= CYCLE_DELAY_MAX && terms->copper_cycles <= CYCLE_DELAY_MAX &&
          terms->optical_cycles <= CYCLE_DELAY_MAX && terms->chip_cycles <= CYCLE_DELAY_MAX);
    CHECK(route->chips == torus->chips);
    struct cycle_net *net = mem_alloc(sizeof *net);
    uint32_t links = torus->chips * CHIP_PORTS, wheel = 1;
    size_t packets = (size_t)links * ROUTE_VCS * terms->buffers;
    while (wheel <=
           terms->packet_cycles + terms->copper_cycles + terms->optical_cycles + terms->chip_cycles + 1)
        wheel *= 2;
    net->torus = torus;
    net->route = route;
    net->terms = *terms;
    net->links = mem_alloc(links * sizeof *net->links);
    net->link_packets = mem_alloc(links * sizeof *net->link_packets);
    net->packets = mem_alloc(packets * sizeof *net->packets);
    net->wheel = mem_alloc(wheel * sizeof *net->wheel);
    net->wheel_mask = wheel - 1;
    for (uint32_t i = 0; i < packets; i++)
        net->packets[i].next = i + 1 < packets ? i + 1 : CYCLE_NONE;
    make_links(net);
    return net;
}

void cycle_net_free(struct cycle_net *net)
{
    for (uint32_t i = 0; i <= net->wheel_mask; i++)
        vec_done(&net->wheel[i]);
    vec_done(&net->lanes);
    mem_free(net->wheel);
    mem_free(net->packets);
    mem_free(net->link_packets);
    mem_free(net->links);
    mem_free(net);
}

/* --- links ------------------------------------------------------------------------------------------- */

static uint8_t entry_at_birth(const struct cycle_net *net, uint16_t from, uint16_t to)
{
    const uint8_t *table = net->route->inject ? net->route->inject : net->route->transit;
    return table[(size_t)to * net->route->chips + from];
}

/* Puts a packet on a link: takes the link's time and a place in the buffer at its end, and frees the packet's
 * old place. */
static void put_packet(struct cycle_net *net, uint32_t index, uint32_t number, uint32_t vc)
{
    struct cycle_link *link = &net->links[index];
    struct cycle_packet *packet = &net->packets[number];
    CHECK(!link->busy && link->credits[vc] > 0);
    link->credits[vc]--;
    link->busy = true;
    schedule(net, net->terms.packet_cycles, EVENT_FREE, index);
    if (packet->came != CYCLE_NONE)
        schedule(net, net->terms.packet_cycles + net->links[packet->came / ROUTE_VCS].flight, EVENT_CREDIT,
                 packet->came);
    packet->came = index * ROUTE_VCS + vc;
    schedule(net, 1 + link->flight + net->terms.chip_cycles, EVENT_ARRIVES, number);
    net->link_packets[index]++;
    net->counts.hops++;
}

/* Removes a lane whose packets are all sent from its link's ring. `before` is the lane before it. */
static void end_lane(struct cycle_net *net, uint32_t before, uint32_t number)
{
    struct cycle_lane *lane = &net->lanes.items[number];
    struct cycle_link *link = &net->links[lane->link];
    net->lanes.items[before].next = lane->next;
    link->lane = before == number ? CYCLE_NONE : lane->next;
    lane->next = CYCLE_NONE;
}

/* Returns whether a lane's next packet may start now. If it is early, the link is tried again when it is
 * due. */
static bool lane_may_send(struct cycle_net *net, struct cycle_lane *lane)
{
    uint64_t now = net->now << GAP_SHIFT;
    if (lane->allowed == 0 || lane->due <= now)
        return lane->allowed > 0;
    uint64_t wait = ((lane->due - now) >> GAP_SHIFT) + 1, wake = net->now + wait;
    if (wait > net->wheel_mask)
        wake = net->now + net->wheel_mask;
    if (lane->wake <= net->now) {
        lane->wake = wake;
        schedule(net, (uint32_t)(wake - net->now), EVENT_WAKE, lane->link);
    }
    return false;
}

static void lane_sent(struct cycle_lane *lane)
{
    lane->due += lane->gap;
    lane->allowed -= lane->allowed != UINT64_MAX;
    lane->left_to_send -= lane->left_to_send != UINT64_MAX;
    lane->at = lane->at + 1 == lane->count ? 0 : lane->at + 1;
}

/* Starts a packet of the first lane that may send; lanes take turns. */
static void send_born(struct cycle_net *net, uint32_t index)
{
    struct cycle_link *link = &net->links[index];
    uint32_t number = link->lane, before;
    if (number == CYCLE_NONE)
        return;
    do {
        struct cycle_lane *lane = &net->lanes.items[number];
        uint16_t to = lane->to[lane->at];
        uint8_t entry = entry_at_birth(net, lane->from, to);
        if (link->credits[route_vc(entry)] > 0 && lane_may_send(net, lane)) {
            uint32_t born = net->unused;
            CHECK(born != CYCLE_NONE && route_port(entry) == index % CHIP_PORTS);
            net->unused = net->packets[born].next;
            net->packets[born] =
                (struct cycle_packet){CYCLE_NONE, CYCLE_NONE, number, (uint32_t)net->now, to};
            net->counts.moving++;
            lane_sent(lane);
            put_packet(net, index, born, route_vc(entry));
            link->lane = lane->next;
            for (before = number; lane->left_to_send == 0 && net->lanes.items[before].next != number;)
                before = net->lanes.items[before].next;
            if (lane->left_to_send == 0)
                end_lane(net, before, number);
            return;
        }
        number = lane->next;
    } while (number != link->lane);
}

static void try_link(struct cycle_net *net, uint32_t index)
{
    struct cycle_link *link = &net->links[index];
    if (link->busy)
        return;
    uint32_t oldest = CYCLE_NONE, vc = 0, age = 0;
    for (uint32_t i = 0; i < ROUTE_VCS; i++) {
        uint32_t number = link->queue[i].first;
        if (number == CYCLE_NONE || link->credits[i] == 0)
            continue;
        if (oldest == CYCLE_NONE || (uint32_t)net->now - net->packets[number].born > age) {
            oldest = number;
            age = (uint32_t)net->now - net->packets[number].born;
            vc = i;
        }
    }
    if (oldest == CYCLE_NONE) {
        send_born(net, index);
        return;
    }
    link->queue[vc].first = net->packets[oldest].next;
    put_packet(net, index, oldest, vc);
}

/* --- events ------------------------------------------------------------------------------------------ */

static void deliver(struct cycle_net *net, uint32_t number)
{
    struct cycle_packet *packet = &net->packets[number];
    uint32_t fed = net->lanes.items[packet->lane].feeds, tail = net->terms.packet_cycles - 1;
    uint64_t time = (uint32_t)net->now - packet->born + tail;
    schedule(net, net->terms.packet_cycles + net->links[packet->came / ROUTE_VCS].flight, EVENT_CREDIT,
             packet->came);
    net->counts.delivered++;
    net->counts.moving--;
    net->counts.end = net->now + tail;
    net->counts.time_max = time > net->counts.time_max ? time : net->counts.time_max;
    packet->next = net->unused;
    net->unused = number;
    if (fed == CYCLE_NONE)
        return;
    net->lanes.items[fed].allowed++;
    try_link(net, net->lanes.items[fed].link);
}

static void packet_arrives(struct cycle_net *net, uint32_t number)
{
    struct cycle_packet *packet = &net->packets[number];
    uint16_t chip = net->links[packet->came / ROUTE_VCS].chip;
    if (packet->to == chip) {
        deliver(net, number);
        return;
    }
    uint8_t entry = net->route->transit[(size_t)packet->to * net->route->chips + chip];
    CHECK(entry < ROUTE_NONE && torus_link_live(net->torus, chip, route_port(entry)));
    uint32_t index = chip * (uint32_t)CHIP_PORTS + route_port(entry);
    struct cycle_queue *queue = &net->links[index].queue[route_vc(entry)];
    packet->next = CYCLE_NONE;
    if (queue->first == CYCLE_NONE)
        queue->first = number;
    else
        net->packets[queue->last].next = number;
    queue->last = number;
    try_link(net, index);
}

static void carry_out(struct cycle_net *net, uint32_t event)
{
    uint32_t number = event & ((1u << EVENT_SHIFT) - 1);
    switch (event >> EVENT_SHIFT) {
    case EVENT_ARRIVES:
        packet_arrives(net, number);
        return;
    case EVENT_CREDIT:
        net->links[number / ROUTE_VCS].credits[number % ROUTE_VCS]++;
        CHECK(net->links[number / ROUTE_VCS].credits[number % ROUTE_VCS] <= net->terms.buffers);
        try_link(net, number / ROUTE_VCS);
        return;
    case EVENT_FREE:
        net->links[number].busy = false;
        try_link(net, number);
        return;
    default:
        CHECK(event >> EVENT_SHIFT == EVENT_WAKE);
        try_link(net, number);
    }
}

void cycle_net_run(struct cycle_net *net, uint64_t until)
{
    for (; net->events > 0 && net->now < until; net->now++) {
        cycle_events *now = &net->wheel[net->now & net->wheel_mask];
        for (size_t i = 0; i < now->len; i++) /* no event is added to its own cycle */
            carry_out(net, now->items[i]);
        net->events -= now->len;
        vec_clear(now);
    }
}

/* --- lanes and counts -------------------------------------------------------------------------------- */

uint32_t cycle_net_lane(struct cycle_net *net, uint16_t from, const uint16_t *to, uint32_t count,
                        uint64_t rounds, uint64_t allowed)
{
    CHECK(count > 0 && from < net->torus->chips && to[0] != from);
    uint8_t entry = entry_at_birth(net, from, to[0]);
    CHECK(entry < ROUTE_NONE && torus_link_live(net->torus, from, route_port(entry)));
    uint32_t number = (uint32_t)net->lanes.len, index = from * (uint32_t)CHIP_PORTS + route_port(entry);
    struct cycle_link *link = &net->links[index];
    struct cycle_lane lane = {.to = to,
                              .left_to_send = rounds ? rounds * count : UINT64_MAX,
                              .allowed = allowed,
                              .count = count,
                              .feeds = CYCLE_NONE,
                              .next = number,
                              .link = index,
                              .from = from};
    vec_push(&net->lanes, lane);
    if (link->lane == CYCLE_NONE) {
        link->lane = number;
    } else {
        net->lanes.items[number].next = net->lanes.items[link->lane].next;
        net->lanes.items[link->lane].next = number;
    }
    if (!link->busy) { /* wakes the link in the next cycle, when all lanes of its chip are known */
        link->busy = true;
        schedule(net, 1, EVENT_FREE, index);
    }
    return number;
}

void cycle_net_feed(struct cycle_net *net, uint32_t lane, uint32_t fed)
{
    CHECK(lane < net->lanes.len && fed < net->lanes.len && net->lanes.items[fed].allowed != UINT64_MAX);
    CHECK(net->lanes.items[lane].feeds == CYCLE_NONE);
    net->lanes.items[lane].feeds = fed;
}

void cycle_net_pace(struct cycle_net *net, uint32_t lane, uint64_t packets, uint64_t of)
{
    CHECK(lane < net->lanes.len && net->now == 0 && packets > 0);
    net->lanes.items[lane].gap = (of * net->terms.packet_cycles << GAP_SHIFT) / packets;
}

void cycle_net_count(const struct cycle_net *net, struct cycle_counts *ret_counts)
{
    *ret_counts = net->counts;
    ret_counts->now = net->now;
    for (size_t i = 0; i < net->lanes.len && ret_counts->waiting != UINT64_MAX; i++) {
        uint64_t left = net->lanes.items[i].left_to_send;
        ret_counts->waiting = left == UINT64_MAX ? left : ret_counts->waiting + left;
    }
}

const uint64_t *cycle_net_link_packets(const struct cycle_net *net)
{
    return net->link_packets;
}
