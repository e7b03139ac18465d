#include "sim/cycle/traffic.h"

#include "base/arena.h"
#include "base/check.h"
#include "base/rng.h"

const char *const traffic_names[TRAFFIC_PATTERNS] = {"all-to-all", "all-reduce", "permutation", "mirror",
                                                     "halfway"};

struct offer {
    struct cycle_net *net;
    const struct torus *torus;
    const struct route *route;
    const struct traffic_order *order;
    struct traffic *traffic;
    struct rng rng;
};

static uint32_t first_port(const struct offer *offer, uint32_t from, uint32_t to)
{
    const uint8_t *table = offer->route->inject ? offer->route->inject : offer->route->transit;
    return route_port(table[(size_t)to * offer->route->chips + from]);
}

static void shuffle(struct rng *rng, uint16_t *items, uint32_t count)
{
    for (uint32_t i = count; i > 1; i--) {
        uint32_t other = (uint32_t)rng_below(rng, i);
        uint16_t item = items[i - 1];
        items[i - 1] = items[other];
        items[other] = item;
    }
}

/* Limits a lane to sending its packets of one round in the time of the bound, divided by the pace. */
static void pace_lane(struct offer *offer, uint32_t lane, uint32_t packets)
{
    struct load_bound bound = offer->traffic->bound;
    if (offer->order->pace_percent > 0)
        cycle_net_pace(offer->net, lane, packets * bound.links * offer->order->pace_percent,
                       bound.units * 100);
}

/* Fills a lane for each port of a chip with the destinations that are reached by that port. `steps` is the
 * order of the destinations as seen from any chip: if all chips use the same steps, no link is busier than
 * others. */
static void offer_to_all(struct offer *offer, uint16_t from, const uint16_t *steps)
{
    uint32_t chips = offer->torus->chips, at[CHIP_PORTS + 1] = {0}, fill[CHIP_PORTS];
    uint16_t *to = offer->traffic->to + (size_t)from * (chips - 1);
    for (uint32_t chip = 0; chip < chips; chip++)
        if (chip != from)
            at[first_port(offer, from, chip) + 1]++;
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        at[port + 1] += at[port];
    CHECK(at[CHIP_PORTS] == chips - 1);
    memcpy(fill, at, sizeof fill);
    for (uint32_t i = 0; i < chips - 1; i++) {
        uint16_t chip = torus_add(offer->torus, from, steps[i]);
        to[fill[first_port(offer, from, chip)]++] = chip;
    }
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        if (at[port + 1] > at[port]) {
            uint32_t count = at[port + 1] - at[port];
            pace_lane(
                offer,
                cycle_net_lane(offer->net, from, to + at[port], count, offer->order->packets, UINT64_MAX),
                count);
        }
}

static void offer_all_to_all(struct offer *offer)
{
    uint32_t chips = offer->torus->chips;
    uint16_t *steps = mem_alloc(chips * sizeof *steps);
    for (uint32_t step = 1; step < chips; step++)
        steps[step - 1] = (uint16_t)step;
    shuffle(&offer->rng, steps, chips - 1);
    offer->traffic->bound = torus_load_bound(offer->torus);
    offer->traffic->to = mem_alloc((size_t)chips * (chips - 1) * sizeof *offer->traffic->to);
    for (uint32_t chip = 0; chip < chips; chip++)
        offer_to_all(offer, (uint16_t)chip, steps);
    offer->traffic->packets = (uint64_t)chips * (chips - 1);
    mem_free(steps);
}

/* Returns the packets that a lane sends for one packet of its pattern. */
static uint64_t lane_packets(const struct offer *offer, uint32_t lane, uint32_t lanes_of_chip)
{
    uint32_t axis = lane % lanes_of_chip / 2;
    return offer->order->pattern == TRAFFIC_ALL_REDUCE
               ? 2 * (uint64_t)(torus_ring_length(offer->torus, axis) - 1)
               : 1;
}

/* Returns the bound of traffic->to, which has `lanes_of_chip` lanes for each chip in turn. */
static struct load_bound bound_of_lanes(const struct offer *offer, uint32_t lanes_of_chip)
{
    const struct torus *torus = offer->torus;
    uint16_t *steps = mem_alloc(2 * torus->chips * sizeof *steps);
    uint64_t *gets = mem_alloc(torus->chips * sizeof *gets), links = 0;
    struct load_bound bound = {0, 1}, chip_bound;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        uint64_t sends = 0;
        torus_distances(torus, (uint16_t)chip, steps + torus->chips, steps);
        for (uint32_t lane = chip * lanes_of_chip; lane < (chip + 1) * lanes_of_chip; lane++) {
            uint64_t packets = lane_packets(offer, lane, lanes_of_chip);
            uint16_t to = offer->traffic->to[lane];
            bound.units += packets * steps[to];
            sends += to == chip ? 0 : packets;
            gets[to] += to == chip ? 0 : packets;
        }
        chip_bound = (struct load_bound){sends, (uint64_t)__builtin_popcount(torus->live[chip])};
        links += chip_bound.links;
        if (chip == 0 ||
            chip_bound.units * offer->traffic->bound.links > offer->traffic->bound.units * chip_bound.links)
            offer->traffic->bound = chip_bound;
    }
    bound.links = links;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        chip_bound = (struct load_bound){gets[chip], (uint64_t)__builtin_popcount(torus->live[chip])};
        if (chip_bound.units * bound.links > bound.units * chip_bound.links)
            bound = chip_bound;
    }
    mem_free(gets);
    mem_free(steps);
    chip_bound = offer->traffic->bound;
    return chip_bound.units * bound.links > bound.units * chip_bound.links ? chip_bound : bound;
}

/* Makes the rings: the lane of a chip's port leads to the next chip of the ring, and feeds that chip's
 * lane. */
static void offer_all_reduce(struct offer *offer)
{
    const struct torus *torus = offer->torus;
    uint32_t lanes = torus->chips * CHIP_PORTS;
    offer->traffic->to = mem_alloc(lanes * sizeof *offer->traffic->to);
    memcpy(offer->traffic->to, torus->next, lanes * sizeof *torus->next);
    for (uint32_t lane = 0; lane < lanes; lane++) {
        uint64_t of_lane = lane_packets(offer, lane, CHIP_PORTS);
        uint64_t window = offer->order->packets ? offer->order->packets : CYCLE_BUFFERS_MAX;
        uint32_t number = cycle_net_lane(offer->net, (uint16_t)(lane / CHIP_PORTS), offer->traffic->to + lane,
                                         1, offer->order->packets * of_lane, window);
        CHECK(number == lane);
        offer->traffic->packets += of_lane;
    }
    for (uint32_t lane = 0; lane < lanes; lane++)
        cycle_net_feed(offer->net, lane, offer->traffic->to[lane] * (uint32_t)CHIP_PORTS + lane % CHIP_PORTS);
    offer->traffic->bound = bound_of_lanes(offer, CHIP_PORTS);
}

static void pair_chips(struct offer *offer)
{
    const struct torus *torus = offer->torus;
    uint16_t *to = offer->traffic->to;
    const uint16_t *extent = torus->shape.extent;
    uint16_t half = torus_chip(torus, extent[0] / 2u, extent[1] / 2u, extent[2] / 2u);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        to[chip] = (uint16_t)(offer->order->pattern == TRAFFIC_MIRROR ? torus->chips - 1 - chip : chip);
    if (offer->order->pattern == TRAFFIC_PERMUTATION)
        shuffle(&offer->rng, to, torus->chips);
    for (uint32_t chip = 0; chip < torus->chips && offer->order->pattern == TRAFFIC_HALFWAY; chip++)
        to[chip] = torus_add(torus, (uint16_t)chip, half);
}

static void offer_pairs(struct offer *offer)
{
    uint32_t chips = offer->torus->chips;
    offer->traffic->to = mem_alloc(chips * sizeof *offer->traffic->to);
    pair_chips(offer);
    for (uint32_t chip = 0; chip < chips; chip++) {
        if (offer->traffic->to[chip] == chip) /* a permutation may leave a chip where it is */
            continue;
        cycle_net_lane(offer->net, (uint16_t)chip, offer->traffic->to + chip, 1, offer->order->packets,
                       UINT64_MAX);
        offer->traffic->packets++;
    }
    offer->traffic->bound = bound_of_lanes(offer, 1);
}

int traffic_offer(struct cycle_net *net, const struct torus *torus, const struct route *route,
                  const struct traffic_order *order, struct traffic *ret_traffic, struct error *error)
{
    struct offer offer = {.net = net, .torus = torus, .route = route, .order = order, .traffic = ret_traffic};
    CHECK(order->pattern < TRAFFIC_PATTERNS && order->pace_percent <= 100);
    if (!slice_shape_is_whole(&torus->shape) &&
        (order->pattern == TRAFFIC_ALL_REDUCE || order->pattern == TRAFFIC_HALFWAY))
        return error_set(error, ERROR_INVALID, "%s needs rings: part of a cube is a mesh and has none",
                         traffic_names[order->pattern]);
    *ret_traffic = (struct traffic){0};
    rng_seed(&offer.rng, order->seed);
    if (order->pattern == TRAFFIC_ALL_TO_ALL)
        offer_all_to_all(&offer);
    else if (order->pattern == TRAFFIC_ALL_REDUCE)
        offer_all_reduce(&offer);
    else
        offer_pairs(&offer);
    return 0;
}

void traffic_done(struct traffic *traffic)
{
    mem_free(traffic->to);
    *traffic = (struct traffic){0};
}
