/* fabric_simulate.h - `phalanx fabric simulate`: simulates traffic through the tables of a slice, cycle by
 * cycle, and reports the result. */
#ifndef PHX_CMD_FABRIC_SIMULATE_H
#define PHX_CMD_FABRIC_SIMULATE_H

#include "sim/cycle/traffic.h"

struct simulate_order {
    struct cycle_terms terms;
    struct traffic_order traffic;
    uint64_t cycles; /* 0: until all packets have arrived */
    bool json;
};
enum { SIMULATE_PACKETS = 4 }; /* for each destination, by default */

/* Simulates, and appends text or JSON to `out`. ret_load receives the packets by link, in thousandths of the
 * link's capacity. Returns an exit status: EXIT_FAILED, after a message, for a deadlock or for traffic that
 * does not exist on the shape. */
int fabric_simulate(const struct torus *torus, const struct route *route, const struct simulate_order *order,
                    uint32_t *ret_load, struct buf *out);

#endif
