/* collective.h - plans of collective operations on a slice, and what they cost by the load of links.
 *
 *     collective_plan(&torus, op, algorithm, elements, &plan)
 *     for (step = 0; step < plan.steps; step++)
 *         count = collective_transfers(&plan, step, transfers)     all at once; then the next step
 *     collective_cost(&plan, &torus, &route, &rates, &cost)
 *
 * Every chip has an array of `elements` numbers; all-to-all has a second one behind it for the result.
 *
 *   reduce-scatter  each chip ends with the sums of its own part of the array (collective_owned())
 *   all-gather      each chip begins with its own part, and ends with all parts
 *   all-reduce      a reduce-scatter and the all-gather that undoes it: all chips have all sums
 *   all-to-all      part j of chip i goes to part i of chip j's second array
 *
 * The first three go along one axis after the other. Along an axis of n chips the array is cut into n parts,
 * which travel round the line of chips in n - 1 steps, added up on the way (reduce-scatter) or copied
 * (all-gather); the next axis goes on with the part that the chip then holds. Algorithms differ in how many
 * links work at the same time (the array is first cut into `colors`, and each has an order and a direction):
 *
 *   one-way    1 color: X, Y, Z; plus
 *   two-way    2 colors: plus and minus
 *   rotated    6 colors: XYZ, YZX, ZXY, each plus and minus, so that all links of a torus work in each step
 *
 * In a step each link gets the bytes of all transfers whose way by the tables leads over it; the step takes
 * the time of the busiest link, and the hops of the longest way. All-to-all is a single step.
 *
 * Lines are closed by the tables: along a ring by its wrap, in meshes and twisted shapes by a longer way,
 * which the cost counts. Pure; integers only; a plan is a value without memory of its own.
 */
#ifndef PHX_CORE_FABRIC_COLLECTIVE_H
#define PHX_CORE_FABRIC_COLLECTIVE_H

#include "core/fabric/route.h"

enum collective_op {
    COLLECTIVE_ALL_REDUCE,
    COLLECTIVE_REDUCE_SCATTER,
    COLLECTIVE_ALL_GATHER,
    COLLECTIVE_ALL_TO_ALL,
    COLLECTIVE_OPS
};
enum collective_algorithm {
    COLLECTIVE_ONE_WAY,
    COLLECTIVE_TWO_WAY,
    COLLECTIVE_ROTATED,
    COLLECTIVE_ALGORITHMS
};
extern const char *const collective_op_names[COLLECTIVE_OPS];
extern const char *const collective_algorithm_names[COLLECTIVE_ALGORITHMS];

enum { COLLECTIVE_COLORS_MAX = 6 };

struct collective_plan {
    const struct torus *torus; /* the caller's */
    enum collective_op op;
    enum collective_algorithm algorithm;
    uint32_t elements; /* of each chip */
    uint32_t colors, steps;
};
struct collective_transfer {
    uint16_t from, to;
    bool add;                             /* to what is there; else copied over it */
    uint32_t from_first, to_first, count; /* elements */
};
struct collective_rates {
    uint32_t element_bytes;
    uint32_t bytes_per_us; /* of a link: 50,000 at 50 GB/s */
    uint32_t hop_ns;
};
struct collective_cost {
    uint64_t ns;
    uint64_t link_bytes; /* of the busiest link of each step, summed up */
};

/* Elements are 1 to 2^31 - 1; of all-to-all, which has no algorithms, a multiple of the chips. */
struct collective_plan collective_plan(const struct torus *torus, enum collective_op op,
                                       enum collective_algorithm algorithm, uint32_t elements);
/* At most so many transfers belong to a step. */
uint32_t collective_transfers_max(const struct collective_plan *plan);
/* The transfers of a step that move something (all-to-all: also from a chip to itself), to
 * ret_transfers[collective_transfers_max()]. */
uint32_t collective_transfers(const struct collective_plan *plan, uint32_t step,
                              struct collective_transfer *ret_transfers);
/* The part of a color that a chip owns after a reduce-scatter and before an all-gather. */
void collective_owned(const struct collective_plan *plan, uint16_t chip, uint32_t color, uint32_t *ret_first,
                      uint32_t *ret_count);

/* The tables are proved. */
void collective_cost(const struct collective_plan *plan, const struct route *route,
                     const struct collective_rates *rates, struct collective_cost *ret_cost);
/* The algorithm with the least cost, and its cost. */
enum collective_algorithm collective_best(const struct torus *torus, const struct route *route,
                                          enum collective_op op, uint32_t elements,
                                          const struct collective_rates *rates,
                                          struct collective_cost *ret_cost);

#endif
