/* traffic.h - traffic patterns for cycle.h, and the least time that any routing needs for them.
 *
 *   all-to-all   every chip sends `packets` packets to every other chip. All chips use the same sequence of
 *                steps (seed), at a pace that the links can carry. Without a pace, or with different
 *                sequences, full buffers block packets that could move, and the pattern takes up to twice
 *                as long
 *   all-reduce   the rings of all axes in both directions at once. A chip sends 2 (n - 1) chunks of `packets`
 *                packets round a ring of n chips, each chunk only after the previous one
 *   permutation every chip sends `packets` packets to one chip, by a random permutation (seed); a chip that
 *   is mapped to itself sends none
 *   mirror       every chip sends `packets` packets to the chip opposite through the middle of the slice
 *   halfway      every chip sends `packets` packets half-way round along every axis
 *
 * The bound is in packets on the busiest link. All-to-all has the bound of core/fabric/bound.h. The others
 * have the larger of two bounds: the sum of all distances over the live links, and, for each chip, the
 * packets that it sends or receives over its live links.
 *
 * Deterministic: equal arguments give equal traffic. One owner, which calls traffic_done() after the net is
 * freed.
 */
#ifndef PHX_SIM_CYCLE_TRAFFIC_H
#define PHX_SIM_CYCLE_TRAFFIC_H

#include "core/fabric/bound.h"
#include "sim/cycle/cycle.h"

enum traffic_pattern {
    TRAFFIC_ALL_TO_ALL,
    TRAFFIC_ALL_REDUCE,
    TRAFFIC_PERMUTATION,
    TRAFFIC_MIRROR,
    TRAFFIC_HALFWAY,
    TRAFFIC_PATTERNS
};
extern const char *const traffic_names[TRAFFIC_PATTERNS];

struct traffic_order {
    enum traffic_pattern pattern;
    uint64_t packets;      /* 0: endless */
    uint32_t pace_percent; /* percent of the bound, for all-to-all only; 0: as fast as links accept packets */
    uint64_t seed;
};
enum { TRAFFIC_PACE_PERCENT = 97 };

struct traffic {
    uint16_t *to;            /* destinations of all lanes */
    struct load_bound bound; /* bound for `packets` equal to 1 */
    uint64_t packets;        /* all packets of the pattern for `packets` equal to 1 */
};

/* Adds the lanes of a pattern to a net without lanes. Returns ERROR_INVALID if this shape does not have the
 * pattern. */
int traffic_offer(struct cycle_net *net, const struct torus *torus, const struct route *route,
                  const struct traffic_order *order, struct traffic *ret_traffic, struct error *error);
void traffic_done(struct traffic *traffic);

#endif
