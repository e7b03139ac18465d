#include "sim/fabric/bring_up.h"

#include "base/arena.h"
#include "base/check.h"

/* A chip with the orders that it was given and the neighbours that it saw. */
struct told_chip {
    bool loaded;
    uint32_t number; /* of the session */
    uint8_t children, light;
    int64_t wait_ns, begin_ns;
};
struct bring_up {
    struct chips *net;
    struct told_chip *chips;
    uint32_t *starting; /* chips that the start has reached */
    uint32_t count;
    int64_t now_ns, first_ns, last_ns;
};

struct bring_up *bring_up_new(struct chips *net, uint32_t cubes)
{
    struct bring_up *up = mem_alloc(sizeof *up);
    up->net = net;
    up->count = cubes * CUBE_CHIPS;
    up->chips = mem_alloc(up->count * sizeof *up->chips);
    up->starting = mem_alloc(up->count * sizeof *up->starting);
    return up;
}

void bring_up_free(struct bring_up *up)
{
    mem_free(up->chips);
    mem_free(up->starting);
    mem_free(up);
}

static uint8_t light_of(const struct bring_up *up, uint32_t chip)
{
    uint8_t light = 0;
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint32_t far;
        enum chip_port far_port;
        light |= (uint8_t)(chips_neighbor(up->net, chip, port, &far, &far_port) << port);
    }
    return light;
}

static void answer_ask(struct bring_up *up, struct fabric_session *session, uint32_t chip)
{
    struct fabric_neighbour seen[CHIP_PORTS] = {0};
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        enum chip_port far_port = 0;
        seen[port].light = chips_neighbor(up->net, chip, port, &seen[port].chip, &far_port);
        seen[port].port = (uint8_t)far_port;
        seen[port].rtt_ns = (uint32_t)chips_rtt_ns(up->net, chip, port);
    }
    fabric_session_neighbours(session, chip, seen);
}

static void stop_data(struct bring_up *up, uint32_t chip)
{
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        chips_ask(up->net, chip, port, false);
}

static void load_chip(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    stop_data(up, order->chip);
    chips_load(up->net, order->chip, order->chip_number, order->number, order->route);
    up->chips[order->chip] = (struct told_chip){.loaded = true,
                                                .number = order->number,
                                                .children = order->children,
                                                .light = light_of(up, order->chip),
                                                .wait_ns = order->wait_ns};
    fabric_session_done(session, order->chip, FABRIC_LOAD, order->number);
}

/* The start runs down the tree: reached chips pass it on at once, and begin when they have waited. */
static uint32_t spread_start(struct bring_up *up, uint32_t root)
{
    uint32_t reached = 0;
    up->starting[reached++] = root;
    up->chips[root].begin_ns = up->now_ns;
    for (uint32_t i = 0; i < reached; i++) {
        struct told_chip *at = &up->chips[up->starting[i]];
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint32_t far;
            enum chip_port far_port;
            if (!(at->children >> port & 1) ||
                !chips_neighbor(up->net, up->starting[i], port, &far, &far_port))
                continue;
            CHECK(reached < up->count && up->chips[far].number == at->number);
            up->chips[far].begin_ns = at->begin_ns + chips_rtt_ns(up->net, up->starting[i], port) / 2;
            up->starting[reached++] = far;
        }
    }
    for (uint32_t i = 0; i < reached; i++)
        up->chips[up->starting[i]].begin_ns += up->chips[up->starting[i]].wait_ns;
    return reached;
}

static void start_all(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    up->now_ns = chips_now_ns(up->net);
    uint32_t reached = spread_start(up, order->chip);
    up->first_ns = INT64_MAX;
    up->last_ns = 0;
    for (uint32_t i = 0; i < reached; i++) {
        int64_t begin_ns = up->chips[up->starting[i]].begin_ns;
        up->first_ns = begin_ns < up->first_ns ? begin_ns : up->first_ns;
        up->last_ns = begin_ns > up->last_ns ? begin_ns : up->last_ns;
    }
    for (int64_t at_ns = up->first_ns; at_ns != INT64_MAX;) {
        int64_t next_ns = INT64_MAX;
        chips_run(up->net, at_ns);
        for (uint32_t i = 0; i < reached; i++) {
            int64_t begin_ns = up->chips[up->starting[i]].begin_ns;
            for (uint32_t port = 0; begin_ns == at_ns && port < CHIP_PORTS; port++)
                chips_ask(up->net, up->starting[i], port, true);
            next_ns = begin_ns > at_ns && begin_ns < next_ns ? begin_ns : next_ns;
        }
        at_ns = next_ns;
    }
    for (uint32_t i = 0; i < reached; i++)
        fabric_session_done(session, up->starting[i], FABRIC_START, order->number);
}

static void unload_chip(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    stop_data(up, order->chip);
    chips_load(up->net, order->chip, 0, 0, NULL);
    up->chips[order->chip] = (struct told_chip){0};
    fabric_session_done(session, order->chip, FABRIC_STOP, order->number);
}

void bring_up_carry_out(struct bring_up *up, struct fabric_session *session)
{
    for (struct fabric_order order; fabric_session_order(session, &order);) {
        CHECK(order.chip < up->count);
        if (order.kind == FABRIC_ASK)
            answer_ask(up, session, order.chip);
        else if (order.kind == FABRIC_LOAD)
            load_chip(up, session, &order);
        else if (order.kind == FABRIC_START)
            start_all(up, session, &order);
        else
            unload_chip(up, session, &order);
    }
}

uint32_t bring_up_watch(struct bring_up *up, struct fabric_session *session)
{
    uint32_t dark = 0;
    for (uint32_t chip = 0; chip < up->count; chip++) {
        uint8_t light = up->chips[chip].loaded ? light_of(up, chip) : 0;
        for (uint8_t gone = up->chips[chip].light & (uint8_t)~light; gone; gone &= (uint8_t)(gone - 1))
            dark += fabric_session_link_down(session, chip, (uint32_t)__builtin_ctz(gone));
        up->chips[chip].light = light;
    }
    return dark;
}

void bring_up_started(const struct bring_up *up, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
    *ret_first_ns = up->first_ns;
    *ret_last_ns = up->last_ns;
}
