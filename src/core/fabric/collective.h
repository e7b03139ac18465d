/* collective.h - plans of collective operations on a slice, and their cost by the load of links.
 *
 *     plan = collective_plan(&torus, op, algorithm, elements)
 *     for (step = 0; step < plan.steps; step++)
 *         count = collective_transfers(&plan, step, transfers)     all at the same time; then the next step
 *     collective_cost(&plan, &route, &rates, &cost)
 *
 * Every chip has an array of `elements` numbers. For all-to-all, a second array of that size follows it for
 * the result.
 *
 *   reduce-scatter  each chip ends with the sums of its own part of the array (collective_owned())
 *   all-gather      each chip begins with its own part, and ends with all parts
 *   all-reduce      a reduce-scatter, then an all-gather of the sums: all chips have all sums
 *   all-to-all      part j of chip i goes to part i of chip j's second array
 *
 * The first three handle one axis after the other. Along an axis of n chips the array is cut into n parts,
 * which travel round the line of chips in n - 1 steps. On the way, parts are added up (reduce-scatter) or
 * copied (all-gather). The next axis continues with the part that the chip then holds. Algorithms differ in
 * how many links work at the same time: the array is first cut into `colors`, each of which has an order of
 * axes and a direction.
 *
 *   one-way    1 color: X, Y, Z; plus
 *   two-way    2 colors: plus and minus
 *   rotated    6 colors: XYZ, YZX, ZXY, each plus and minus, so that all links of a torus work in each step
 *
 * In a step, each link carries the bytes of all transfers that the tables route over it. The step takes the
 * time of the busiest link, plus the hops of the longest route. All-to-all is a single step.
 *
 * The tables close the lines: a ring by its wrap, and lines of meshes and twisted shapes by a longer route,
 * which the cost includes. Pure functions; integers only. A plan is a value that owns no memory.
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
    const struct torus *torus; /* borrowed */
    enum collective_op op;
    enum collective_algorithm algorithm;
    uint32_t elements; /* elements of each chip's array */
    uint32_t colors, steps;
};
struct collective_transfer {
    uint16_t from, to;
    bool add;                             /* added to the target's elements; else copied over them */
    uint32_t from_first, to_first, count; /* elements */
};
struct collective_rates {
    uint32_t element_bytes;
    uint32_t bytes_per_us; /* of a link: 50,000 at 50 GB/s */
    uint32_t hop_ns;
};
struct collective_cost {
    uint64_t ns;
    uint64_t link_bytes; /* bytes of the busiest link, summed over all steps */
};

/* Makes the plan of an operation. `elements` is 1 to 2^31 - 1. All-to-all ignores the algorithm and requires
 * a multiple of the number of chips. The plan refers to `torus`. */
struct collective_plan collective_plan(const struct torus *torus, enum collective_op op,
                                       enum collective_algorithm algorithm, uint32_t elements);
/* Returns an upper bound for the transfers of a step. */
uint32_t collective_transfers_max(const struct collective_plan *plan);
/* Writes the transfers of a step to ret_transfers[collective_transfers_max()] and returns their number.
 * Transfers without elements are left out. All-to-all includes transfers from a chip to itself. */
uint32_t collective_transfers(const struct collective_plan *plan, uint32_t step,
                              struct collective_transfer *ret_transfers);
/* Returns the part of a color that a chip owns after a reduce-scatter and before an all-gather. Not for
 * all-to-all. */
void collective_owned(const struct collective_plan *plan, uint16_t chip, uint32_t color, uint32_t *ret_first,
                      uint32_t *ret_count);

/* Returns the time and the link bytes of a plan. The tables must be proved (prove.h): the walk along them
 * aborts on a fault. */
void collective_cost(const struct collective_plan *plan, const struct route *route,
                     const struct collective_rates *rates, struct collective_cost *ret_cost);
/* Returns the algorithm with the least time, and writes its cost. */
enum collective_algorithm collective_best(const struct torus *torus, const struct route *route,
                                          enum collective_op op, uint32_t elements,
                                          const struct collective_rates *rates,
                                          struct collective_cost *ret_cost);

#endif
