/* Dimension order with datelines: computes the transit rows, before detours around dead links. */
#include "core/fabric/internal.h"

static void count_runs(struct builder *builder)
{
    const struct torus *torus = builder->torus;
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        uint32_t axis = port / 2, extent = torus->shape.extent[axis];
        uint16_t *run = builder->run[port] = ARENA_ARRAY(builder->arena, uint16_t, torus->chips);
        /* Twice round every ring, against the direction of the port: the second time all runs are right. */
        for (uint32_t first = 0; first < torus->chips; first++) {
            if (torus->at[axis][first] != 0)
                continue;
            uint32_t stride = axis == 0   ? 1
                              : axis == 1 ? torus->shape.extent[0]
                                          : (uint32_t)torus->shape.extent[0] * torus->shape.extent[1];
            uint16_t live = 0;
            for (uint32_t i = 0; i < 2 * extent; i++) {
                uint32_t place = port % 2 == 0 ? 2 * extent - 1 - i : i;
                uint32_t chip = first + place % extent * stride;
                live = !torus_link_live(torus, chip, port) ? 0 : live < extent ? (uint16_t)(live + 1) : live;
                run[chip] = live;
            }
        }
    }
}

/* Returns the port of dimension order at a chip whose destination is `step` away, in a slice without
 * faults. */
static uint8_t port_of_step(const struct builder *builder, const struct torus *whole,
                            const uint16_t *distance, uint16_t step, uint32_t parity)
{
    for (int i = 0; i < AXES; i++) {
        uint32_t plus = 2u * builder->route->order[i], minus = plus + 1;
        bool by_plus = distance[whole->next[step * CHIP_PORTS + plus]] < distance[step];
        bool by_minus = distance[whole->next[step * CHIP_PORTS + minus]] < distance[step];
        if (by_plus || by_minus)
            return (uint8_t)(by_plus && by_minus ? plus + parity : by_plus ? plus : minus);
    }
    CHECK_UNREACHABLE();
}

static void prepare_steps(struct builder *builder)
{
    uint32_t chips = builder->torus->chips;
    struct torus whole;
    torus_init(&whole, &builder->torus->shape);
    uint16_t *distance = ARENA_ARRAY(builder->arena, uint16_t, chips);
    builder->steps = ARENA_ARRAY(builder->arena, uint16_t, chips);
    torus_distances(&whole, 0, builder->steps, distance);
    for (uint32_t parity = 0; parity < 2; parity++) {
        builder->step_port[parity] = ARENA_ARRAY(builder->arena, uint8_t, chips);
        builder->step_hops[parity] = ARENA_ARRAY(builder->arena, uint16_t, chips);
    }
    for (uint32_t i = 1; i < chips; i++)
        for (uint32_t parity = 0; parity < 2; parity++) {
            uint16_t step = builder->steps[i];
            uint8_t port = port_of_step(builder, &whole, distance, step, parity);
            uint16_t next = whole.next[step * CHIP_PORTS + port];
            bool same = next != 0 && builder->step_port[!parity][next] == port;
            builder->step_port[parity][step] = port;
            builder->step_hops[parity][step] = same ? (uint16_t)(builder->step_hops[!parity][next] + 1) : 1;
        }
    torus_done(&whole);
}

void order_prepare(struct builder *builder)
{
    if (builder->torus->shape.twisted)
        prepare_steps(builder);
    else if (!builder->whole)
        count_runs(builder);
}

static inline uint32_t parity_of(const struct torus *torus, uint32_t chip)
{
    return (torus->at[0][chip] + torus->at[1][chip] + torus->at[2][chip]) & 1u;
}

/* Returns the entry from place `at` to `to` along a ring of a plain shape with only live links. */
static uint8_t whole_entry(uint32_t axis, uint32_t extent, uint32_t at, uint32_t to, uint32_t parity)
{
    uint32_t ahead = to > at ? to - at : to - at + extent, back = extent - ahead;
    bool minus = ahead > back || (ahead == back && parity);
    return route_entry(2 * axis + minus, minus ? to < at : to > at);
}

/* As whole_entry(), if links may be dead: takes the long way if the short one is cut. */
static uint8_t cut_entry(const struct builder *builder, uint32_t axis, uint32_t chip, uint32_t at,
                         uint32_t to, uint32_t parity)
{
    uint32_t extent = builder->torus->shape.extent[axis];
    uint32_t hops[2] = {to > at ? to - at : to - at + extent};
    hops[1] = extent - hops[0];
    uint32_t minus = hops[0] > hops[1] || (hops[0] == hops[1] && parity);
    if (builder->run[2 * axis + minus][chip] < hops[minus])
        minus = !minus;
    if (builder->run[2 * axis + minus][chip] < hops[minus])
        return ROUTE_NONE;
    return route_entry(2 * axis + minus, minus ? to < at : to > at);
}

struct walk {
    uint32_t extent[AXES], stride[AXES], to[AXES]; /* in the routing order of the axes */
    uint8_t entry[AXES][2][SLICE_CUBES_MAX * CUBE_SIDE];
};

/* Fills the entries of one line along the last axis, for chips that must still travel along axis `level` of
 * the order. */
static void plain_line(const struct builder *builder, const struct walk *walk, uint32_t level, uint32_t place,
                       uint32_t first, uint8_t *row)
{
    uint32_t axis = builder->route->order[level], stride = walk->stride[2];
    uint32_t parity = parity_of(builder->torus, first);
    /* Distance to the chip after the hops along this axis; modulo 2^32, so that a step back is a large
     * number. */
    uint32_t turn = (walk->to[level] - place) * walk->stride[level];
    const uint8_t whole[2] = {walk->entry[level][parity][place], walk->entry[level][!parity][place]};
    for (uint32_t i = 0, chip = first; i < walk->extent[2]; i++, chip += stride) {
        uint8_t entry = builder->clean[axis]
                            ? whole[i & 1]
                            : cut_entry(builder, axis, chip, place, walk->to[level], (parity + i) & 1);
        row[chip] = !builder->whole && row[chip + turn] == ROUTE_NONE ? ROUTE_NONE : entry;
    }
}

static void plain_last_line(const struct builder *builder, const struct walk *walk, uint32_t first,
                            uint8_t *row)
{
    uint32_t axis = builder->route->order[2], parity = parity_of(builder->torus, first);
    for (uint32_t i = 0; i < walk->extent[2]; i++) {
        uint32_t chip = first + i * walk->stride[2];
        row[chip] = i == walk->to[2]       ? ROUTE_SELF
                    : builder->clean[axis] ? walk->entry[2][(parity + i) & 1][i]
                                           : cut_entry(builder, axis, chip, i, walk->to[2], (parity + i) & 1);
    }
}

static void plain_row(const struct builder *builder, uint16_t destination, uint8_t *row)
{
    const struct torus *torus = builder->torus;
    struct walk walk;
    for (uint32_t level = 0; level < AXES; level++) {
        uint32_t axis = builder->route->order[level];
        walk.extent[level] = torus->shape.extent[axis];
        walk.to[level] = torus->at[axis][destination];
        walk.stride[level] = 1;
        for (uint32_t lower = 0; lower < axis; lower++)
            walk.stride[level] *= torus->shape.extent[lower];
        for (uint32_t parity = 0; parity < 2; parity++)
            for (uint32_t at = 0; at < walk.extent[level]; at++)
                if (at != walk.to[level])
                    walk.entry[level][parity][at] =
                        whole_entry(axis, walk.extent[level], at, walk.to[level], parity);
    }
    /* The destination's line comes first, then its plane, then the others: a row reads the rows that it turns
     * into. */
    for (uint32_t i = 0; i < walk.extent[0]; i++) {
        uint32_t outer = (walk.to[0] + i) % walk.extent[0];
        for (uint32_t j = 0; j < walk.extent[1]; j++) {
            uint32_t inner = (walk.to[1] + j) % walk.extent[1];
            uint32_t first = outer * walk.stride[0] + inner * walk.stride[1];
            if (i > 0)
                plain_line(builder, &walk, 0, outer, first, row);
            else if (j > 0)
                plain_line(builder, &walk, 1, inner, first, row);
            else
                plain_last_line(builder, &walk, first, row);
        }
    }
}

static void twisted_row(const struct builder *builder, uint16_t destination, uint8_t *row)
{
    const struct torus *torus = builder->torus;
    row[destination] = ROUTE_SELF;
    for (uint32_t i = 1; i < torus->chips; i++) {
        uint16_t step = builder->steps[i], chip = torus_add(torus, destination, step);
        uint32_t parity = parity_of(torus, chip), port = builder->step_port[parity][step], axis = port / 2;
        uint32_t at = torus_ring_at(torus, axis, chip), hops = builder->step_hops[parity][step];
        bool ahead = port % 2 ? hops > at : at + hops >= torus_ring_length(torus, axis);
        bool live = builder->whole || (torus_link_live(torus, chip, port) &&
                                       row[torus->next[chip * CHIP_PORTS + port]] != ROUTE_NONE);
        row[chip] = live ? route_entry(port, !ahead) : ROUTE_NONE;
    }
}

void order_row(const struct builder *builder, uint16_t destination, uint8_t *row)
{
    CHECK(destination < builder->torus->chips);
    if (builder->torus->shape.twisted)
        twisted_row(builder, destination, row);
    else
        plain_row(builder, destination, row);
    CHECK(row[destination] == ROUTE_SELF);
}
