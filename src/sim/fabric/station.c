#include "sim/fabric/station.h"

#include "base/arena.h"
#include "base/check.h"

/* A chip with the orders that it was given and the light that it saw. */
struct told_chip {
    bool loaded;
    uint32_t number; /* of the session */
    uint8_t children, light;
    int64_t wait_ns, begin_ns;
};
struct stations {
    struct chips *net;
    struct told_chip *chips;
    uint32_t *starting; /* chips that the start has reached */
    uint32_t count;
    int64_t first_ns, last_ns;
};

struct stations *stations_new(struct chips *net, uint32_t cubes)
{
    struct stations *stations = mem_alloc(sizeof *stations);
    stations->net = net;
    stations->count = cubes * CUBE_CHIPS;
    stations->chips = mem_alloc(stations->count * sizeof *stations->chips);
    stations->starting = mem_alloc(stations->count * sizeof *stations->starting);
    return stations;
}

void stations_free(struct stations *stations)
{
    mem_free(stations->chips);
    mem_free(stations->starting);
    mem_free(stations);
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
    CHECK(chip < stations->count && wait_ns >= 0);
    stop_data(stations, chip);
    stations->chips[chip] = (struct told_chip){.loaded = true,
                                               .number = number,
                                               .children = children,
                                               .light = light_of(stations, chip),
                                               .wait_ns = wait_ns};
}

void stations_unload(struct stations *stations, uint32_t chip)
{
    CHECK(chip < stations->count);
    stop_data(stations, chip);
    chips_load(stations->net, chip, 0, 0, NULL);
    stations->chips[chip] = (struct told_chip){.number = stations->chips[chip].number};
}

static bool is_loaded(const struct stations *stations, uint32_t chip, uint32_t number)
{
    return stations->chips[chip].loaded && stations->chips[chip].number == number;
}

/* The start runs down the tree: reached chips pass it on at once, and begin when they have waited. */
static uint32_t spread_start(struct stations *stations, uint32_t root, uint32_t number)
{
    uint32_t reached = 0;
    if (!is_loaded(stations, root, number))
        return 0;
    stations->starting[reached++] = root;
    stations->chips[root].begin_ns = chips_now_ns(stations->net);
    for (uint32_t i = 0; i < reached; i++) {
        struct told_chip *at = &stations->chips[stations->starting[i]];
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint32_t far;
            enum chip_port far_port;
            if (!(at->children >> port & 1) || reached == stations->count ||
                !chips_neighbor(stations->net, stations->starting[i], port, &far, &far_port) ||
                !is_loaded(stations, far, number))
                continue;
            stations->chips[far].begin_ns =
                at->begin_ns + chips_rtt_ns(stations->net, stations->starting[i], port) / 2;
            stations->starting[reached++] = far;
        }
    }
    for (uint32_t i = 0; i < reached; i++)
        stations->chips[stations->starting[i]].begin_ns += stations->chips[stations->starting[i]].wait_ns;
    return reached;
}

/* Lets time pass from one beginning to the next, so that each chip asks for data at its own. */
static void begin_all(struct stations *stations, uint32_t reached)
{
    for (int64_t at_ns = stations->first_ns; at_ns != INT64_MAX;) {
        int64_t next_ns = INT64_MAX;
        chips_run(stations->net, at_ns);
        for (uint32_t i = 0; i < reached; i++) {
            int64_t begin_ns = stations->chips[stations->starting[i]].begin_ns;
            for (uint32_t port = 0; begin_ns == at_ns && port < CHIP_PORTS; port++)
                chips_ask(stations->net, stations->starting[i], port, true);
            next_ns = begin_ns > at_ns && begin_ns < next_ns ? begin_ns : next_ns;
        }
        at_ns = next_ns;
    }
}

uint32_t stations_start(struct stations *stations, uint32_t root, uint32_t number,
                        const uint32_t **ret_reached)
{
    CHECK(root < stations->count);
    uint32_t reached = spread_start(stations, root, number);
    stations->first_ns = INT64_MAX;
    stations->last_ns = 0;
    for (uint32_t i = 0; i < reached; i++) {
        int64_t begin_ns = stations->chips[stations->starting[i]].begin_ns;
        stations->first_ns = begin_ns < stations->first_ns ? begin_ns : stations->first_ns;
        stations->last_ns = begin_ns > stations->last_ns ? begin_ns : stations->last_ns;
    }
    begin_all(stations, reached);
    *ret_reached = stations->starting;
    return reached;
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
