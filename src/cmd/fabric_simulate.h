/* fabric_simulate.h - `phalanx fabric simulate`: traffic through the tables of a slice, cycle by cycle, and
 * what it says about it. */
#ifndef PHX_CMD_FABRIC_SIMULATE_H
#define PHX_CMD_FABRIC_SIMULATE_H

#include "sim/cycle/traffic.h"

struct simulate_order {
    struct cycle_terms terms;
    struct traffic_order traffic;
    uint64_t cycles; /* 0: until all packets have arrived */
    bool json;
};
enum { SIMULATE_PACKETS = 4 }; /* for each destination, if nothing is asked for */

/* Simulates, and appends text or JSON to `out`. ret_load: packets by link, in thousandths of what the link
 * could have carried. Returns an exit status: EXIT_FAILED for a deadlock, or traffic that does not exist on
 * the shape (both are said). */
int fabric_simulate(const struct torus *torus, const struct route *route, const struct simulate_order *order,
                    uint32_t *ret_load, struct buf *out);

#endif
