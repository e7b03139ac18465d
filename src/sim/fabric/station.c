#include "sim/fabric/station.h"

#include "base/arena.h"
#include "base/check.h"

/* A chip, with its orders and the light that it saw. */
struct told_chip {
    bool loaded;
    uint32_t number; /* of the session */
    uint8_t light;
};
struct stations {
    struct chips *net;
    struct told_chip *chips;
    uint32_t count;
    int64_t first_ns, last_ns;
};

struct stations *stations_new(struct chips *net, uint32_t cubes)
{
    struct stations *stations = mem_alloc(sizeof *stations);
    stations->net = net;
    stations->count = cubes * CUBE_CHIPS;
    stations->chips = mem_alloc(stations->count * sizeof *stations->chips);
    return stations;
}

void stations_free(struct stations *stations)
{
    mem_free(stations->chips);
    mem_free(stations);
}

bool stations_may_look(const struct stations *stations, uint32_t chip)
{
    CHECK(chip < stations->count);
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        if (chips_training(stations->net, chip, port))
            return false;
    return true;
}

void stations_look(const struct stations *stations, uint32_t chip,
                   struct fabric_neighbour ret_seen[CHIP_PORTS])
{
    CHECK(chip < stations->count);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        struct fabric_neighbour *seen = &ret_seen[port];
        enum chip_port far_port = 0;
        *seen = (struct fabric_neighbour){0};
        seen->light = chips_neighbor(stations->net, chip, port, &seen->chip, &far_port);
        seen->port = (uint8_t)far_port;
        seen->rtt_ns = seen->light ? (uint32_t)chips_rtt_ns(stations->net, chip, port) : 0;
    }
}

uint32_t stations_session(const struct stations *stations, uint32_t chip)
{
    CHECK(chip < stations->count);
    return stations->chips[chip].number;
}

static uint8_t light_of(const struct stations *stations, uint32_t chip)
{
    uint8_t light = 0;
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint32_t far;
        enum chip_port far_port;
        light |= (uint8_t)(chips_neighbor(stations->net, chip, port, &far, &far_port) << port);
    }
    return light;
}

static void stop_data(struct stations *stations, uint32_t chip)
{
    for (uint32_t port = 0; port < CHIP_PORTS; port++)
        chips_ask(stations->net, chip, port, false);
}

void stations_load(struct stations *stations, uint32_t chip, uint32_t number, uint8_t children,
                   int64_t wait_ns)
{
    CHECK(chip < stations->count);
    stop_data(stations, chip);
    chips_arm(stations->net, chip, number, children, wait_ns);
    stations->chips[chip] =
        (struct told_chip){.loaded = true, .number = number, .light = light_of(stations, chip)};
}

void stations_unload(struct stations *stations, uint32_t chip)
{
    CHECK(chip < stations->count);
    stop_data(stations, chip);
    chips_disarm(stations->net, chip);
    chips_load(stations->net, chip, 0, 0, NULL);
    stations->chips[chip] = (struct told_chip){.number = stations->chips[chip].number};
}

bool stations_start(struct stations *stations, uint32_t root, uint32_t number)
{
    CHECK(root < stations->count);
    stations->first_ns = INT64_MAX;
    stations->last_ns = 0;
    return chips_start(stations->net, root, number);
}

bool stations_take_started(struct stations *stations, struct chips_begun *ret_begun)
{
    if (!chips_take_begun(stations->net, ret_begun))
        return false;
    int64_t at_ns = ret_begun->at_ns;
    stations->first_ns = at_ns < stations->first_ns ? at_ns : stations->first_ns;
    stations->last_ns = at_ns > stations->last_ns ? at_ns : stations->last_ns;
    return true;
}

void stations_started(const struct stations *stations, int64_t *ret_first_ns, int64_t *ret_last_ns)
{
    *ret_first_ns = stations->first_ns;
    *ret_last_ns = stations->last_ns;
}

uint8_t stations_dark(struct stations *stations, uint32_t chip)
{
    CHECK(chip < stations->count);
    struct told_chip *at = &stations->chips[chip];
    uint8_t light = at->loaded ? light_of(stations, chip) : 0;
    uint8_t gone = at->light & (uint8_t)~light;
    at->light = light;
    return gone;
}
