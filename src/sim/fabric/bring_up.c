#include "sim/fabric/bring_up.h"

#include "base/arena.h"
#include "base/check.h"
#include "sim/fabric/station.h"

struct bring_up {
    struct chips *net;
    struct stations *stations;
    uint32_t count;
};

struct bring_up *bring_up_new(struct chips *net, uint32_t cubes)
{
    struct bring_up *up = mem_alloc(sizeof *up);
    up->net = net;
    up->count = cubes * CUBE_CHIPS;
    up->stations = stations_new(net, cubes);
    return up;
}

void bring_up_free(struct bring_up *up)
{
    stations_free(up->stations);
    mem_free(up);
}

static void answer_ask(struct bring_up *up, struct fabric_session *session, uint32_t chip)
{
    struct fabric_neighbour seen[CHIP_PORTS];
    stations_look(up->stations, chip, seen);
    fabric_session_neighbours(session, chip, seen);
}

static void load_chip(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    stations_load(up->stations, order->chip, order->number, order->children, order->wait_ns);
    chips_load(up->net, order->chip, order->chip_number, order->number, order->route);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        chips_set_buffer(up->net, order->chip, port, order->buffer_bytes[port]);
    fabric_session_done(session, order->chip, FABRIC_LOAD, order->number);
}

static void start_all(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    struct chips_begun begun;
    stations_start(up->stations, order->chip, order->number);
    chips_run(up->net, INT64_MAX);
    while (stations_take_started(up->stations, &begun))
        fabric_session_done(session, begun.chip, FABRIC_START, begun.number);
}

static void unload_chip(struct bring_up *up, struct fabric_session *session, const struct fabric_order *order)
{
    stations_unload(up->stations, order->chip);
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
    for (uint32_t chip = 0; chip < up->count; chip++)
        for (uint8_t gone = stations_dark(up->stations, chip); gone; gone &= (uint8_t)(gone - 1))
            dark += fabric_session_link_down(session, chip, (uint32_t)__builtin_ctz(gone));
    return dark;
}

void bring_up_started(const struct bring_up *up, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
    stations_started(up->stations, ret_first_ns, ret_last_ns);
}
