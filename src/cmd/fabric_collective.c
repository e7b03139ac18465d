#include "cmd/fabric_collective.h"

#include "doc/json.h"
#include "base/units.h"

enum { ELEMENT_BYTES = 4, RATE_BYTES_PER_US = 50000, HOP_NS = 250 };

struct listing {
    struct buf *out;
    struct json_writer writer;
    const struct torus *torus;
    const struct route *route;
    uint32_t elements;
    bool json;
};

static void put_cost(struct listing *listing, const struct collective_plan *plan,
                     const struct collective_cost *cost, bool best)
{
    bool all_to_all = plan->op == COLLECTIVE_ALL_TO_ALL;
    const char *algorithm = all_to_all ? "direct" : collective_algorithm_names[plan->algorithm];
    double gb_per_second = (double)plan->elements * ELEMENT_BYTES / (double)(cost->ns ? cost->ns : 1);
    char link[24];
    if (!listing->json) {
        bytes_format(cost->link_bytes, link);
        buf_printf(listing->out, "%-15s %-8s %5u steps %12.1f us  %10s on the busiest link  %6.1f GB/s%s\n",
                   collective_op_names[plan->op], algorithm, plan->steps, (double)cost->ns / 1e3, link,
                   gb_per_second, best ? "  *" : "");
        return;
    }
    json_begin_object(&listing->writer);
    json_pair_text(&listing->writer, "operation", collective_op_names[plan->op]);
    json_pair_text(&listing->writer, "algorithm", algorithm);
    json_pair_int(&listing->writer, "steps", plan->steps);
    json_pair_int(&listing->writer, "nanoseconds", (int64_t)cost->ns);
    json_pair_int(&listing->writer, "linkBytes", (int64_t)cost->link_bytes);
    json_pair_float(&listing->writer, "gigabytesPerSecond", gb_per_second);
    json_pair_bool(&listing->writer, "best", best);
    json_end_object(&listing->writer);
}

static void put_operation(struct listing *listing, enum collective_op op)
{
    struct collective_rates rates = {ELEMENT_BYTES, RATE_BYTES_PER_US, HOP_NS};
    struct collective_cost cost;
    uint32_t elements = listing->elements, chips = listing->torus->chips;
    if (op == COLLECTIVE_ALL_TO_ALL)
        elements = (elements + chips - 1) / chips * chips;
    enum collective_algorithm best =
        collective_best(listing->torus, listing->route, op, elements, &rates, &cost);
    for (uint32_t i = 0; i < (op == COLLECTIVE_ALL_TO_ALL ? 1 : COLLECTIVE_ALGORITHMS); i++) {
        struct collective_plan plan = collective_plan(listing->torus, op, i, elements);
        collective_cost(&plan, listing->route, &rates, &cost);
        put_cost(listing, &plan, &cost, i == best);
    }
}

void fabric_collective(struct buf *out, const struct torus *torus, const struct route *route, uint32_t bytes,
                       bool json)
{
    struct listing listing = {.out = out,
                              .writer = {.out = out},
                              .torus = torus,
                              .route = route,
                              .elements = (bytes + ELEMENT_BYTES - 1) / ELEMENT_BYTES,
                              .json = json};
    char shape[SHAPE_TEXT_MAX], size[24];
    slice_shape_format(&torus->shape, shape);
    bytes_format(bytes, size);
    if (json) {
        json_begin_object(&listing.writer);
        json_pair_text(&listing.writer, "shape", shape);
        json_pair_int(&listing.writer, "bytes", bytes);
        json_key(&listing.writer, "costs");
        json_begin_array(&listing.writer);
    } else {
        buf_printf(out, "%s: %u chips, %u dead links, %s on each chip; * costs least\n", shape, torus->chips,
                   torus->dead[0] + torus->dead[1] + torus->dead[2], size);
    }
    for (uint32_t op = 0; op < COLLECTIVE_OPS; op++)
        put_operation(&listing, op);
    if (json) {
        json_end_array(&listing.writer);
        json_end_object(&listing.writer);
        buf_add_char(out, '\n');
    }
}
