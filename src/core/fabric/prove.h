/* prove.h - a proof that forwarding tables work, independent of how they were built.
 *
 * A proof holds if and only if
 *   - every chip's packets reach every other chip: each entry that a packet meets names a port with a live
 *     link and a known virtual channel, and the transit table leads no packet to the same chip twice;
 *   - the channel dependency graph has no circle. Its nodes are the pairs (link, virtual channel). An edge
 *     leads from the channel on which some packet arrives at a chip to the channel on which that packet
 *     leaves. Routes are fixed, so no circle means no deadlock (Dally and Seitz).
 * Entries that no packet meets are not checked.
 *
 * The walk also counts the load of every link when each chip sends one unit to each other chip. The proof
 * reads only the tables and the torus. Its time and memory grow with the number of pairs and of links.
 */
#ifndef PHX_CORE_FABRIC_PROVE_H
#define PHX_CORE_FABRIC_PROVE_H

#include "core/fabric/route.h"

struct proof {
    uint64_t pairs;    /* pairs of chips whose packets arrive */
    uint64_t hops_sum; /* over all pairs */
    uint32_t hops_max;
    uint32_t vcs;      /* used */
    uint32_t load_max; /* of a link, all virtual channels together */
    uint64_t detours;  /* pairs whose first hop is on ROUTE_VC_DETOUR */
    uint32_t tables;   /* tables of a chip: 1 or 2 */
};

/* Proves the tables. Returns ERROR_CORRUPT, which names chip, destination and reason, if the proof fails.
 * ret_load may be NULL; otherwise it receives [chips * CHIP_PORTS] units by link. */
int route_prove(const struct torus *torus, const struct route *route, struct proof *ret_proof,
                uint32_t *ret_load, struct error *error);

#endif
