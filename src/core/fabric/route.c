#include "core/fabric/internal.h"

static bool same_in_every_cube(const struct torus *torus)
{
    if (!slice_shape_is_whole(&torus->shape))
        return false;
    for (uint32_t chip = 0; chip < torus->chips; chip++) {
        uint16_t first =
            torus_chip(torus, torus->at[0][chip] % 4u, torus->at[1][chip] % 4u, torus->at[2][chip] % 4u);
        if (torus->live[chip] != torus->live[first])
            return false;
    }
    return true;
}

/* Sorts axes with the most dead links first, and longer ones before shorter ones, because their links are
 * busier: the first axis has the most freedom to detour. Without faults Z comes first, because a row of the
 * table is then filled along memory. */
static void choose_order(struct builder *builder)
{
    const uint32_t *dead = builder->torus->dead;
    const uint16_t *extent = builder->torus->shape.extent;
    uint8_t *order = builder->route->order;
    for (uint8_t i = 0; i < AXES; i++)
        order[i] = (uint8_t)(AXES - 1 - i);
    for (int i = 1; i < AXES; i++)
        for (int j = i;
             j > 0 && dead[order[j]] * extent[order[j]] > dead[order[j - 1]] * extent[order[j - 1]]; j--) {
            uint8_t axis = order[j];
            order[j] = order[j - 1];
            order[j - 1] = axis;
        }
    builder->whole = slice_shape_is_whole(&builder->torus->shape);
    for (int axis = 0; axis < AXES; axis++) {
        builder->clean[axis] = slice_shape_is_whole(&builder->torus->shape) && dead[axis] == 0;
        builder->whole = builder->whole && dead[axis] == 0;
    }
    CHECK(order[0] + order[1] + order[2] == 3);
}

/* Returns the entry of a first hop: on the transit table's VC if the transit table takes the same port, else
 * on the detour VC. */
static inline uint8_t entry_of_hop(uint8_t hop, uint8_t transit)
{
    return hop >= ROUTE_NONE                                    ? hop
           : transit < ROUTE_NONE && route_port(transit) == hop ? transit
                                                                : route_entry(hop, ROUTE_VC_DETOUR);
}

/* Copies the first hops for destination `from`, a chip of the first cube, to the destination at the same
 * place of another cube. */
static void copy_hops(const struct builder *builder, uint16_t from, uint16_t destination)
{
    const struct torus *torus = builder->torus;
    const struct route *route = builder->route;
    const uint8_t *hops = route->inject + (size_t)from * route->chips;
    const uint8_t *transit = route->transit + (size_t)destination * route->chips;
    uint8_t *inject = route->inject + (size_t)destination * route->chips;
    CHECK(from != destination && transit[destination] == ROUTE_SELF);
    uint32_t shift[AXES], extent_x = torus->shape.extent[0];
    for (int axis = 0; axis < AXES; axis++)
        shift[axis] = torus->at[axis][destination] - torus->at[axis][from];
    uint16_t by = torus_chip(torus, shift[0], shift[1], shift[2]);
    for (uint32_t line = 0; line < torus->chips; line += extent_x) {
        uint32_t to = torus_add(torus, (uint16_t)line, by), x = 0;
        for (; x < extent_x - shift[0]; x++)
            inject[to + x] = entry_of_hop(hops[line + x], transit[to + x]);
        if (x == extent_x)
            continue;
        to = torus_add(torus, (uint16_t)(line + x), by);
        for (uint32_t i = 0; x < extent_x; x++, i++)
            inject[to + i] = entry_of_hop(hops[line + x], transit[to + i]);
    }
}

uint32_t route_solved(const struct torus *torus, struct solved *ret_solved)
{
    uint32_t count = 0;
    ret_solved->repeats = same_in_every_cube(torus);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        if (!ret_solved->repeats || (torus->at[0][chip] < CUBE_SIDE && torus->at[1][chip] < CUBE_SIDE &&
                                     torus->at[2][chip] < CUBE_SIDE))
            ret_solved->destinations[count++] = (uint16_t)chip;
    CHECK(count == (ret_solved->repeats ? CUBE_CHIPS : torus->chips));
    ret_solved->count = count;
    /* Dimension order alone is optimal on meshes and plain tori. */
    bool faults = torus->dead[0] + torus->dead[1] + torus->dead[2] > 0;
    return faults || torus->shape.twisted ? count : 0;
}

static void make_injection(struct builder *builder, const struct solved *solved, const uint8_t *hops)
{
    const struct torus *torus = builder->torus;
    struct route *route = builder->route;
    route->inject = mem_alloc((size_t)route->chips * route->chips);
    for (size_t i = 0; i < solved->count && hops; i++)
        mem_copy(route->inject + (size_t)solved->destinations[i] * route->chips, hops + i * route->chips,
                 route->chips);
    if (!hops)
        level_loads(builder, solved->destinations, solved->count);
    for (uint32_t to = 0; to < route->chips && builder->repeats; to++) {
        uint16_t from =
            torus_chip(torus, torus->at[0][to] % 4u, torus->at[1][to] % 4u, torus->at[2][to] % 4u);
        if (from != to)
            copy_hops(builder, from, (uint16_t)to);
    }
    for (uint32_t i = 0; i < solved->count; i++)
        for (size_t chip = 0, row = (size_t)solved->destinations[i] * route->chips; chip < route->chips;
             chip++)
            route->inject[row + chip] = entry_of_hop(route->inject[row + chip], route->transit[row + chip]);
}

/* Fills the entries of pairs that neither dimension order nor a detour serves. */
static void fill_gaps(struct builder *builder)
{
    struct route *route = builder->route;
    struct updown updown = {0};
    for (uint32_t to = 0; to < route->chips; to++)
        if (memchr(route->inject + (size_t)to * route->chips, ROUTE_NONE, route->chips)) {
            if (!updown.rank)
                updown_prepare(builder, &updown);
            updown_row(builder, &updown, (uint16_t)to);
        }
}

/* Builds the tables. `solved` must be the result of route_solved() for `torus`. */
static void build_tables(const struct torus *torus, const struct solved *solved, bool search,
                         const uint8_t *hops, struct route *ret_route)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct route route = {.chips = torus->chips};
    struct builder builder = {.torus = torus, .route = &route, .arena = &arena};
    choose_order(&builder);
    builder.repeats = solved->repeats;
    order_prepare(&builder);
    route.transit = mem_alloc((size_t)route.chips * route.chips);
    for (uint32_t to = 0; to < route.chips; to++)
        order_row(&builder, (uint16_t)to, route.transit + (size_t)to * route.chips);
    CHECK(route.transit[0] == ROUTE_SELF);
    if (search) {
        make_injection(&builder, solved, hops);
        fill_gaps(&builder);
    }
    *ret_route = route;
}

int route_build_with(const struct torus *torus, const uint8_t *hops, struct route *ret_route,
                     struct error *error)
{
    char shape[SHAPE_TEXT_MAX];
    slice_shape_format(&torus->shape, shape);
    if (!torus_connected(torus))
        return error_set(
            error, ERROR_UNAVAILABLE,
            "slice %s: its live links do not connect all %u chips: repair a link, or take other cubes", shape,
            torus->chips);
    struct solved *solved = mem_alloc(sizeof *solved);
    bool search = route_solved(torus, solved) > 0;
    uint16_t shift = route_shift(torus, solved);
    if (shift == 0) {
        build_tables(torus, solved, search, hops, ret_route);
    } else {
        struct torus canonical;
        torus_shifted(torus, shift, &canonical);
        build_tables(&canonical, solved, search, hops, ret_route);
        route_shift_tables(torus, shift, ret_route);
        torus_done(&canonical);
    }
    mem_free(solved);
    return 0;
}

int route_build(const struct torus *torus, struct route *ret_route, struct error *error)
{
    return route_build_with(torus, NULL, ret_route, error);
}

void route_done(struct route *route)
{
    mem_free(route->transit);
    mem_free(route->inject);
    *route = (struct route){0};
}

void route_chip_table(const struct route *route, uint16_t chip, bool inject, uint8_t *ret_entries)
{
    CHECK(chip < route->chips);
    const uint8_t *table = inject && route->inject ? route->inject : route->transit;
    for (uint32_t to = 0; to < route->chips; to++)
        ret_entries[to] = table[(size_t)to * route->chips + chip];
}
