/* bound.h - the least load that the busiest link can have when every chip sends one unit to every other.
 *
 * Two bounds hold for every routing, and the larger one counts:
 *   cuts       two planes across one axis divide the slice. All pairs on different sides share the links of
 *              the two planes. Twisted shapes have no such planes.
 *   distances  the sum of all distances is spread over all live links.
 * A torus without faults reaches its bound exactly, and a twisted one nearly (docs/fabric.md has the
 * figures).
 *
 * The bound is a fraction, because the core has no floating point. Pure functions.
 */
#ifndef PHX_CORE_FABRIC_BOUND_H
#define PHX_CORE_FABRIC_BOUND_H

#include "core/fabric/torus.h"

struct load_bound {
    uint64_t units, links; /* the load of the busiest link is at least units / links */
};

/* Returns the larger bound for the torus with its dead links. Distances are those of the slice without
 * faults: from chip 0 in a torus, whose chips are alike, and from every chip in a mesh. */
struct load_bound torus_load_bound(const struct torus *torus);

static inline uint64_t load_bound_ceiling(struct load_bound bound)
{
    return (bound.units + bound.links - 1) / bound.links;
}
/* Returns `load` in millionths of the bound: 1,000,000 is optimal. */
static inline uint64_t load_bound_ppm(struct load_bound bound, uint64_t load)
{
    return load * bound.links * 1000000 / bound.units;
}

#endif
