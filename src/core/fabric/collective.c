#include "core/fabric/collective.h"

#include "base/arena.h"
#include "base/check.h"

const char *const collective_op_names[COLLECTIVE_OPS] = {"all-reduce", "reduce-scatter", "all-gather",
                                                         "all-to-all"};
const char *const collective_algorithm_names[COLLECTIVE_ALGORITHMS] = {"one-way", "two-way", "rotated"};

struct span {
    uint32_t first, count;
};

/* Returns part `i` of `n` nearly equal parts. */
static struct span part_of(struct span whole, uint32_t i, uint32_t n)
{
    uint64_t low = (uint64_t)whole.count * i / n, high = (uint64_t)whole.count * (i + 1) / n;
    CHECK(i < n && high <= whole.count);
    return (struct span){whole.first + (uint32_t)low, (uint32_t)(high - low)};
}

/* Returns the axis that a color handles in turn `turn`. */
static uint32_t axis_of(uint32_t color, uint32_t turn)
{
    CHECK(color < COLLECTIVE_COLORS_MAX && turn < AXES);
    return (color / 2 + turn) % AXES;
}

/* Returns a chip's place in its line along an axis, counted in the direction of the color. */
static uint32_t place_in_line(const struct torus *torus, uint32_t axis, uint32_t color, uint16_t chip)
{
    uint32_t at = torus->at[axis][chip];
    CHECK(at < torus->shape.extent[axis]);
    return color % 2 ? torus->shape.extent[axis] - 1u - at : at;
}

/* Returns the next chip in the direction of the color; the first chip follows the last. */
static uint16_t next_in_line(const struct torus *torus, uint32_t axis, uint32_t color, uint16_t chip)
{
    uint32_t at[AXES] = {torus->at[0][chip], torus->at[1][chip], torus->at[2][chip]};
    uint32_t extent = torus->shape.extent[axis];
    at[axis] = (at[axis] + (color % 2 ? extent - 1 : 1)) % extent;
    return torus_chip(torus, at[0], at[1], at[2]);
}

struct collective_plan collective_plan(const struct torus *torus, enum collective_op op,
                                       enum collective_algorithm algorithm, uint32_t elements)
{
    static const uint32_t colors[COLLECTIVE_ALGORITHMS] = {1, 2, COLLECTIVE_COLORS_MAX};
    CHECK(op < COLLECTIVE_OPS && algorithm < COLLECTIVE_ALGORITHMS && elements >= 1 && elements <= INT32_MAX);
    struct collective_plan plan = {
        .torus = torus, .op = op, .algorithm = algorithm, .elements = elements, .colors = colors[algorithm]};
    if (op == COLLECTIVE_ALL_TO_ALL) {
        CHECK(elements % torus->chips == 0);
        plan.colors = plan.steps = 1;
        return plan;
    }
    for (uint32_t axis = 0; axis < AXES; axis++)
        plan.steps += torus->shape.extent[axis] - 1u;
    plan.steps *= op == COLLECTIVE_ALL_REDUCE ? 2 : 1;
    return plan;
}

uint32_t collective_transfers_max(const struct collective_plan *plan)
{
    return plan->torus->chips * (plan->op == COLLECTIVE_ALL_TO_ALL ? plan->torus->chips : plan->colors);
}

/* Returns the span of a color that a chip holds after `turns` axes are reduced. */
static struct span span_held(const struct collective_plan *plan, uint16_t chip, uint32_t color,
                             uint32_t turns)
{
    struct span span = part_of((struct span){0, plan->elements}, color, plan->colors);
    for (uint32_t turn = 0; turn < turns; turn++) {
        uint32_t axis = axis_of(color, turn), extent = plan->torus->shape.extent[axis];
        uint32_t place = place_in_line(plan->torus, axis, color, chip);
        span = part_of(span, (place + 1) % extent, extent);
    }
    return span;
}

void collective_owned(const struct collective_plan *plan, uint16_t chip, uint32_t color, uint32_t *ret_first,
                      uint32_t *ret_count)
{
    CHECK(color < plan->colors && plan->op != COLLECTIVE_ALL_TO_ALL);
    struct span span = span_held(plan, chip, color, AXES);
    *ret_first = span.first;
    *ret_count = span.count;
}

/* Finds the turn to which a step belongs, and the step along that turn's axis. Steps are counted in the order
 * of reducing, also for gathering. */
static uint32_t turn_of(const struct collective_plan *plan, uint32_t color, uint32_t step,
                        uint32_t *ret_along)
{
    uint32_t turn = 0;
    while (step >= plan->torus->shape.extent[axis_of(color, turn)] - 1u) {
        step -= plan->torus->shape.extent[axis_of(color, turn)] - 1u;
        turn++;
        CHECK(turn < AXES);
    }
    *ret_along = step;
    return turn;
}

/* Returns the transfer of a chip in a step. While reducing, a chip at place p sends part p - s in step s, and
 * holds part p + 1 at the end. Gathering takes the steps in reverse. The sums of a transfer from p to p + 1
 * end up at p + 1, and parts now travel in the same direction, starting with part p + 1. */
static struct collective_transfer transfer_of(const struct collective_plan *plan, uint16_t chip,
                                              uint32_t color, uint32_t step)
{
    uint32_t half = plan->op == COLLECTIVE_ALL_REDUCE ? plan->steps / 2 : plan->steps, along;
    bool gathers = plan->op == COLLECTIVE_ALL_GATHER || step >= half;
    uint32_t turn = turn_of(plan, color, gathers ? plan->steps - 1 - step : step, &along);
    uint32_t axis = axis_of(color, turn), extent = plan->torus->shape.extent[axis];
    uint32_t place = place_in_line(plan->torus, axis, color, chip);
    uint32_t part = gathers ? place + 1 + 2 * extent - (extent - 2 - along) : place + extent - along;
    struct span span = part_of(span_held(plan, chip, color, turn), part % extent, extent);
    return (struct collective_transfer){.from = chip,
                                        .to = next_in_line(plan->torus, axis, color, chip),
                                        .add = !gathers,
                                        .from_first = span.first,
                                        .to_first = span.first,
                                        .count = span.count};
}

static uint32_t transfers_of_all_to_all(const struct collective_plan *plan,
                                        struct collective_transfer *transfers)
{
    uint32_t chips = plan->torus->chips, part = plan->elements / chips, count = 0;
    for (uint32_t step = 0; step < chips; step++)
        for (uint32_t from = 0; from < chips; from++) {
            uint16_t to = torus_add(plan->torus, (uint16_t)from, (uint16_t)step);
            transfers[count++] = (struct collective_transfer){.from = (uint16_t)from,
                                                              .to = to,
                                                              .from_first = to * part,
                                                              .to_first = plan->elements + from * part,
                                                              .count = part};
        }
    return count;
}

uint32_t collective_transfers(const struct collective_plan *plan, uint32_t step,
                              struct collective_transfer *ret_transfers)
{
    CHECK(step < plan->steps);
    if (plan->op == COLLECTIVE_ALL_TO_ALL)
        return transfers_of_all_to_all(plan, ret_transfers);
    uint32_t count = 0;
    for (uint32_t chip = 0; chip < plan->torus->chips; chip++)
        for (uint32_t color = 0; color < plan->colors; color++) {
            struct collective_transfer transfer = transfer_of(plan, (uint16_t)chip, color, step);
            if (transfer.count > 0)
                ret_transfers[count++] = transfer;
        }
    CHECK(count <= collective_transfers_max(plan));
    return count;
}

/* --- cost -------------------------------------------------------------------------------------------- */

/* Adds a transfer to the load of the links on its route, and returns the number of hops. */
static uint32_t load_way(const struct torus *torus, const struct route *route,
                         const struct collective_transfer *transfer, uint64_t *load)
{
    const uint8_t *transit = route->transit + (size_t)transfer->to * route->chips;
    const uint8_t *inject = route->inject ? route->inject + (size_t)transfer->to * route->chips : transit;
    uint32_t hops = 0;
    for (uint16_t chip = transfer->from; chip != transfer->to; hops++) {
        uint8_t entry = hops == 0 ? inject[chip] : transit[chip];
        CHECK(entry < ROUTE_NONE && hops < 2 * route->chips);
        uint32_t link = chip * (uint32_t)CHIP_PORTS + route_port(entry);
        load[link] += transfer->count;
        chip = torus->next[link];
    }
    return hops;
}

/* Adds all transfers of a step to the load of the links, and returns the hops of the longest route.
 * All-to-all proceeds by destination, because the tables are in that order. */
static uint32_t load_step(const struct collective_plan *plan, const struct route *route, uint32_t step,
                          struct collective_transfer *transfers, uint64_t *load)
{
    bool all_to_all = plan->op == COLLECTIVE_ALL_TO_ALL;
    uint32_t chips = plan->torus->chips, hops_max = 0;
    for (uint32_t to = 0; to < (all_to_all ? chips : 1); to++) {
        uint32_t count = all_to_all ? chips : collective_transfers(plan, step, transfers);
        for (uint32_t i = 0; i < count; i++) {
            struct collective_transfer way = {
                .from = (uint16_t)i, .to = (uint16_t)to, .count = plan->elements / chips};
            uint32_t hops = load_way(plan->torus, route, all_to_all ? &way : &transfers[i], load);
            hops_max = hops > hops_max ? hops : hops_max;
        }
    }
    return hops_max;
}

void collective_cost(const struct collective_plan *plan, const struct route *route,
                     const struct collective_rates *rates, struct collective_cost *ret_cost)
{
    struct arena arena ARENA_CLEANUP = {0};
    uint32_t links = plan->torus->chips * CHIP_PORTS;
    uint64_t *load = ARENA_ARRAY(&arena, uint64_t, links);
    struct collective_transfer *transfers =
        plan->op == COLLECTIVE_ALL_TO_ALL
            ? NULL
            : ARENA_ARRAY(&arena, struct collective_transfer, collective_transfers_max(plan));
    struct collective_cost cost = {0};
    CHECK(rates->bytes_per_us > 0 && rates->element_bytes > 0 && route->chips == plan->torus->chips);
    for (uint32_t step = 0; step < plan->steps; step++) {
        uint64_t most = 0;
        memset(load, 0, links * sizeof *load);
        uint32_t hops = load_step(plan, route, step, transfers, load);
        for (uint32_t link = 0; link < links; link++)
            most = load[link] > most ? load[link] : most;
        cost.link_bytes += most * rates->element_bytes;
        cost.ns += most * rates->element_bytes * 1000 / rates->bytes_per_us + (uint64_t)hops * rates->hop_ns;
    }
    CHECK(cost.ns > 0 || plan->torus->chips == 1 || rates->hop_ns == 0);
    *ret_cost = cost;
}

enum collective_algorithm collective_best(const struct torus *torus, const struct route *route,
                                          enum collective_op op, uint32_t elements,
                                          const struct collective_rates *rates,
                                          struct collective_cost *ret_cost)
{
    enum collective_algorithm best = COLLECTIVE_ONE_WAY;
    for (uint32_t i = 0; i < COLLECTIVE_ALGORITHMS; i++) {
        struct collective_plan plan = collective_plan(torus, op, i, elements);
        struct collective_cost cost;
        collective_cost(&plan, route, rates, &cost);
        if (i > 0 && cost.ns >= ret_cost->ns)
            continue;
        best = i;
        *ret_cost = cost;
        if (op == COLLECTIVE_ALL_TO_ALL)
            break;
    }
    return best;
}
