/* traffic.h - patterns of traffic for cycle.h, and the least time that any routing needs for them.
 *
 *   all-to-all   every chip sends `packets` packets to every other chip, all chips by the same steps
 *                (seed), at a pace that the links can carry. Without a pace, or each in an order of its
 *                own, full buffers hold up packets that could move, and it takes up to twice as long
 *   all-reduce   the rings of all axes in both directions at once. A chip sends 2 (n - 1) chunks of `packets`
 *                packets round a ring of n chips, each chunk only after the one before it has come
 *   permutation  every chip sends `packets` packets to one other chip, and each gets as many (seed)
 *   mirror       every chip sends `packets` packets to the chip opposite through the middle of the slice
 *   halfway      every chip sends `packets` packets half-way round along every axis
 *
 * The bound is in units of packets on the busiest link. All-to-all has the bound of core/fabric/bound.h. The
 * others have the larger of two: the sum of all distances over the live links, and for each chip the packets
 * that it sends or gets over its live links.
 *
 * Pure: equal arguments give equal traffic. One owner; traffic_done() frees, after the net.
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
    uint64_t packets;      /* 0: without end */
    uint32_t pace_percent; /* of the bound; all-to-all alone; 0: as fast as links take them */
    uint64_t seed;
};
enum { TRAFFIC_PACE_PERCENT = 97 };

struct traffic {
    uint16_t *to;            /* destinations of all lanes */
    struct load_bound bound; /* of one packet in place of `packets` */
    uint64_t packets;        /* all packets of one round: of `packets` equal to 1 */
};

/* Gives the lanes of a pattern to a net without lanes. ERROR_INVALID: the pattern does not exist on this
 * shape. */
int traffic_offer(struct cycle_net *net, const struct torus *torus, const struct route *route,
                  const struct traffic_order *order, struct traffic *ret_traffic, struct error *error);
void traffic_done(struct traffic *traffic);

#endif
