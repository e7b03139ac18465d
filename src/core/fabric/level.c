/* Levels the loads of links by choosing the first hop of each pair, by local search.
 *
 * A link's cost grows exponentially with its load, so the sum of costs along a route is least if no link is
 * busier than others. Pairs are handled destination by destination. For one destination the dimension order
 * of all chips is a tree. The cost of the route from each chip is summed up along the tree once, so each
 * source compares its six first hops by one addition each. A source moves, unless the new route is more
 * expensive once the source's own load has been removed.
 *
 * Neighbours keep their own link while it works. Rings of neighbours (all-reduce) would pay the full price of
 * a detour, and the few pairs hardly help to level all-to-all.
 *
 * If the dead links of all cubes are alike, links at the same place of a cube have equal loads by symmetry.
 * Loads are then counted by place, and only the destinations of one cube are computed.
 */
#include "core/fabric/internal.h"

enum {
    STEPS_OF_TARGET = 1024, /* steps of the cost table from load 0 to the target */
    COST_STEPS = 2 * STEPS_OF_TARGET,
    SWEEPS_MAX = 16,
    SWEEPS_SINGLE = 3, /* for patterns that do not repeat */
    NOWHERE = 0xffff,
};

struct level {
    const struct builder *builder;
    uint64_t cost_of_step[COST_STEPS];
    uint64_t steps_of_unit; /* steps for each unit of load, times 2^32 */
    uint16_t *place;        /* [chips] place at which the loads of a chip's links are counted */
    uint32_t *load;         /* [places * CHIP_PORTS] */
    uint64_t *cost;         /* [places * CHIP_PORTS] */
    uint8_t *takes_part;
    /* for the current destination */
    uint16_t *next;  /* [chips] next chip by dimension order, or NOWHERE */
    uint32_t *link;  /* [chips] index into load */
    uint64_t *chain; /* [chips] cost of the route to the destination */
    uint16_t *tree;  /* chips with a route, each after its next chip */
    uint32_t tree_count;
};

/* The cost is 2^24 at the target and e^20 times as much at twice the target. It is at least 1, so that hops
 * are never free. */
static void fill_costs(struct level *level)
{
    enum { RATIO = 66828 }; /* e^(20/1024), times 2^16 */
    uint64_t up = 1 << 24, down = 1 << 24;
    for (uint32_t i = 0; i < STEPS_OF_TARGET; i++) {
        level->cost_of_step[STEPS_OF_TARGET + i] = up + 1;
        level->cost_of_step[STEPS_OF_TARGET - i] = down + 1;
        up = up * RATIO >> 16;
        down = (down << 16) / RATIO;
    }
    level->cost_of_step[0] = 1;
}

static inline void add_load(struct level *level, uint32_t link, int32_t units)
{
    level->load[link] = (uint32_t)((int32_t)level->load[link] + units);
    uint64_t step = level->load[link] * level->steps_of_unit >> 32;
    level->cost[link] = level->cost_of_step[step < COST_STEPS ? step : COST_STEPS - 1];
}

static void use_places(struct level *level)
{
    const struct torus *torus = level->builder->torus;
    uint32_t links = (level->builder->repeats ? CUBE_CHIPS : torus->chips) * (uint32_t)CHIP_PORTS;
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        level->place[chip] = !level->builder->repeats
                                 ? (uint16_t)chip
                                 : (uint16_t)(torus->at[0][chip] % 4 + 4 * (torus->at[1][chip] % 4) +
                                              16 * (torus->at[2][chip] % 4));
    level->load = ARENA_ARRAY(level->builder->arena, uint32_t, links);
    level->cost = ARENA_ARRAY(level->builder->arena, uint64_t, links);
    for (uint32_t link = 0; link < links; link++)
        add_load(level, link, 0);
}

/* Makes the tree of dimension order to one destination, and the cost of the route from every chip. */
static void plant_tree(struct level *level, uint16_t destination, const uint8_t *row)
{
    const struct torus *torus = level->builder->torus;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        level->chain[chip] = 0;
        level->next[chip] =
            row[chip] < ROUTE_NONE ? torus->next[chip * CHIP_PORTS + route_port(row[chip])] : NOWHERE;
        level->link[chip] = level->place[chip] * (uint32_t)CHIP_PORTS + (row[chip] & 7);
    }
    level->tree_count = 0;
    level->next[destination] = destination;
    uint16_t *stack = level->tree + torus->chips;
    for (uint32_t first = 0; first < torus->chips; first++) {
        uint32_t depth = 0;
        uint16_t chip = (uint16_t)first;
        while (level->next[chip] != NOWHERE && chip != destination && level->chain[chip] == 0) {
            CHECK(depth < torus->chips);
            stack[depth++] = chip;
            chip = level->next[chip];
        }
        uint64_t cost = level->chain[chip];
        while (depth > 0) {
            chip = stack[--depth];
            level->chain[chip] = cost += level->cost[level->link[chip]];
            level->tree[level->tree_count++] = chip;
        }
    }
    CHECK(level->tree_count < torus->chips);
}

/* Starts with dimension order for every pair that has a route by it. */
static void start(struct level *level, uint16_t destination, const uint8_t *row, uint8_t *first_hops,
                  uint32_t *flow)
{
    uint32_t chips = level->builder->torus->chips;
    plant_tree(level, destination, row);
    CHECK(row[destination] == ROUTE_SELF);
    memset(first_hops, ROUTE_NONE, chips);
    memset(flow, 0, chips * sizeof *flow);
    first_hops[destination] = ROUTE_SELF;
    for (uint32_t i = level->tree_count; i-- > 0;) {
        uint16_t chip = level->tree[i];
        first_hops[chip] = (uint8_t)route_port(row[chip]);
        flow[level->next[chip]] += ++flow[chip];
        level->load[level->link[chip]] += flow[chip];
    }
}

static void shift_way(struct level *level, uint16_t source, uint32_t port, uint16_t destination,
                      int32_t units)
{
    add_load(level, level->place[source] * (uint32_t)CHIP_PORTS + port, units);
    uint16_t chip = level->builder->torus->next[source * CHIP_PORTS + port];
    for (; chip != destination; chip = level->next[chip])
        add_load(level, level->link[chip], units);
}

static uint64_t cost_of_way(const struct level *level, uint16_t source, uint32_t port, uint16_t destination)
{
    uint64_t cost = level->cost[level->place[source] * (uint32_t)CHIP_PORTS + port];
    uint16_t chip = level->builder->torus->next[source * CHIP_PORTS + port];
    for (; chip != destination; chip = level->next[chip])
        cost += level->cost[level->link[chip]];
    return cost;
}

/* Moves one pair to its cheapest first hop. A different hop of equal cost is preferred, because such moves
 * lead out of many local optima. Returns false if the pair stays. */
static bool improve(struct level *level, uint16_t source, uint16_t destination, uint8_t *first_hop)
{
    const struct torus *torus = level->builder->torus;
    const uint16_t *next = torus->next + source * CHIP_PORTS;
    const uint64_t *cost = level->cost + level->place[source] * CHIP_PORTS;
    uint64_t best = UINT64_MAX, now = UINT64_MAX;
    uint32_t best_port = 0;
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint16_t chip = next[port];
        if (!torus_link_live(torus, source, port) || level->next[chip] == NOWHERE ||
            (level->next[chip] == source && chip != destination))
            continue;
        uint64_t sum = cost[port] + level->chain[chip];
        if (port == *first_hop)
            now = sum;
        if (sum < best || (sum == best && port != *first_hop)) {
            best = sum;
            best_port = port;
        }
    }
    if (best == UINT64_MAX || best > now || best_port == *first_hop)
        return false;
    if (now != UINT64_MAX) {
        shift_way(level, source, *first_hop, destination, -1);
        if (cost_of_way(level, source, best_port, destination) >
            cost_of_way(level, source, *first_hop, destination)) {
            shift_way(level, source, *first_hop, destination, 1);
            return false;
        }
    }
    shift_way(level, source, best_port, destination, 1);
    *first_hop = (uint8_t)best_port;
    return true;
}

/* Chooses the sources that may leave a working dimension order: all, or those nearest to dead links. */
static void choose_sources(struct level *level)
{
    const struct torus *torus = level->builder->torus;
    uint32_t budget = ROUTE_PAIRS_MAX / torus->chips, count = 0, done = 0;
    if (level->builder->repeats || torus->chips <= budget) {
        memset(level->takes_part, 1, torus->chips);
        return;
    }
    uint16_t *queue = level->tree;
    for (uint32_t link = 0; link < torus->chips * CHIP_PORTS && count < budget; link++) {
        uint16_t first = (uint16_t)(link / CHIP_PORTS);
        if (torus_link_live(torus, first, link % CHIP_PORTS) || level->takes_part[first])
            continue;
        for (uint16_t chip = first; !level->takes_part[chip] && count < budget;
             chip = torus->next[chip * CHIP_PORTS + link % CHIP_PORTS]) {
            level->takes_part[chip] = 1;
            queue[count++] = chip;
        }
    }
    while (done < count) {
        uint16_t chip = queue[done++];
        for (uint32_t port = 0; port < CHIP_PORTS && count < budget; port++) {
            uint16_t next = torus->next[chip * CHIP_PORTS + port];
            if (next != TORUS_NONE && !level->takes_part[next]) {
                level->takes_part[next] = 1;
                queue[count++] = next;
            }
        }
    }
    CHECK(count <= budget);
}

static bool is_neighbour_hop(const struct torus *torus, uint32_t source, uint32_t destination, uint8_t hop)
{
    return hop < CHIP_PORTS && torus->next[source * CHIP_PORTS + hop] == destination;
}

static void sweep_all(struct level *level, const uint16_t *destinations, uint32_t count)
{
    const struct route *route = level->builder->route;
    uint32_t sweeps = level->builder->repeats ? SWEEPS_MAX : SWEEPS_SINGLE;
    for (uint32_t sweep = 0, moved = 1; sweep < sweeps && moved > 0; sweep++) {
        moved = 0;
        for (uint32_t i = 0; i < count; i++) {
            const uint8_t *row = route->transit + (size_t)destinations[i] * route->chips;
            uint8_t *first_hops = route->inject + (size_t)destinations[i] * route->chips;
            plant_tree(level, destinations[i], row);
            for (uint32_t source = 0; source < route->chips; source++)
                if (source != destinations[i] &&
                    (level->takes_part[source] || first_hops[source] == ROUTE_NONE) &&
                    !is_neighbour_hop(level->builder->torus, source, destinations[i], first_hops[source]))
                    moved += improve(level, (uint16_t)source, destinations[i], &first_hops[source]);
        }
    }
}

void level_loads(struct builder *builder, const uint16_t *destinations, uint32_t count)
{
    const struct route *route = builder->route;
    struct level *level = ARENA_NEW(builder->arena, struct level);
    CHECK(count > 0 && route->inject);
    *level = (struct level){
        .builder = builder,
        .steps_of_unit =
            ((uint64_t)STEPS_OF_TARGET << 32) / load_bound_ceiling(torus_load_bound(builder->torus)) + 1,
        .place = ARENA_ARRAY(builder->arena, uint16_t, route->chips),
        .takes_part = ARENA_ARRAY(builder->arena, uint8_t, route->chips),
        .next = ARENA_ARRAY(builder->arena, uint16_t, route->chips),
        .link = ARENA_ARRAY(builder->arena, uint32_t, route->chips),
        .chain = ARENA_ARRAY(builder->arena, uint64_t, route->chips),
        .tree = ARENA_ARRAY(builder->arena, uint16_t, 2 * (size_t)route->chips),
    };
    fill_costs(level);
    CHECK(level->steps_of_unit > 0);
    use_places(level);
    choose_sources(level);
    uint32_t *flow = ARENA_ARRAY(builder->arena, uint32_t, route->chips);
    for (uint32_t i = 0; i < count; i++)
        start(level, destinations[i], route->transit + (size_t)destinations[i] * route->chips,
              route->inject + (size_t)destinations[i] * route->chips, flow);
    uint32_t links = (builder->repeats ? CUBE_CHIPS : route->chips) * (uint32_t)CHIP_PORTS;
    for (uint32_t link = 0; link < links; link++)
        add_load(level, link, 0);
    sweep_all(level, destinations, count);
}
