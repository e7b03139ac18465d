/* Finds deadlocks: the channels that can never get a credit again.
 *
 * A channel is alive if it has a credit, or if a packet or a credit of it is under way. A packet that waits
 * for a live channel will move, so the channel in whose buffer it holds a place is alive too. Packets that
 * this rule does not reach are dead: their buffer is full of packets that wait for dead channels.
 */
#include "sim/cycle/private.h"

struct search {
    const struct cycle_net *net;
    uint32_t *resident; /* [channels] packets in its buffer that wait */
    uint8_t *alive;
    uint32_t *stack; /* [channels] live channels whose waiting packets are not handled yet */
    uint32_t depth;
};

static void mark_alive(struct search *search, uint32_t channel)
{
    if (search->alive[channel])
        return;
    search->alive[channel] = 1;
    search->stack[search->depth++] = channel;
}

static uint32_t first_waiting(const struct cycle_net *net, uint32_t channel)
{
    return net->links[channel / ROUTE_VCS].queue[channel % ROUTE_VCS].first;
}

static void search_alive(struct search *search, uint32_t channels)
{
    const struct cycle_net *net = search->net;
    for (uint32_t channel = 0; channel < channels; channel++)
        for (uint32_t i = first_waiting(net, channel); i != CYCLE_NONE; i = net->packets[i].next)
            search->resident[net->packets[i].came]++;
    for (uint32_t channel = 0; channel < channels; channel++)
        if (net->terms.buffers > search->resident[channel])
            mark_alive(search, channel);
    while (search->depth > 0) {
        uint32_t channel = search->stack[--search->depth];
        for (uint32_t i = first_waiting(net, channel); i != CYCLE_NONE; i = net->packets[i].next)
            mark_alive(search, net->packets[i].came);
    }
}

/* Finds for each dead channel one of the channels that its packets wait for. */
static void find_waits(const struct search *search, uint32_t channels, uint32_t *waits_for)
{
    const struct cycle_net *net = search->net;
    for (uint32_t channel = 0; channel < channels; channel++)
        for (uint32_t i = first_waiting(net, channel); i != CYCLE_NONE; i = net->packets[i].next)
            waits_for[net->packets[i].came] = channel;
}

uint32_t cycle_net_circle(const struct cycle_net *net, struct cycle_channel *ret_circle, uint32_t max)
{
    struct arena arena ARENA_CLEANUP = {0};
    uint32_t channels = net->torus->chips * CHIP_PORTS * ROUTE_VCS, first = 0, count = 0;
    struct search search = {.net = net,
                            .resident = ARENA_ARRAY(&arena, uint32_t, channels),
                            .alive = ARENA_ARRAY(&arena, uint8_t, channels),
                            .stack = ARENA_ARRAY(&arena, uint32_t, channels)};
    search_alive(&search, channels);
    while (first < channels && search.alive[first])
        first++;
    if (first == channels)
        return 0;
    uint32_t *waits_for = ARENA_ARRAY(&arena, uint32_t, channels);
    find_waits(&search, channels, waits_for);
    for (uint32_t i = 0; i < channels; i++) /* as many steps as channels end within a circle */
        first = waits_for[first];
    for (uint32_t channel = first; count == 0 || channel != first; channel = waits_for[channel]) {
        CHECK(!search.alive[channel] && count < channels);
        if (count < max)
            ret_circle[count] = (struct cycle_channel){(uint16_t)(channel / (CHIP_PORTS * ROUTE_VCS)),
                                                       (uint8_t)(channel / ROUTE_VCS % CHIP_PORTS),
                                                       (uint8_t)(channel % ROUTE_VCS)};
        count++;
    }
    return count;
}
