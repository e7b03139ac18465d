/* fabric_availability.h - `phalanx fabric availability`: the share of a pod that works when hosts fail, as a
 * table, JSON, and a plot. */
#ifndef PHX_CMD_FABRIC_AVAILABILITY_H
#define PHX_CMD_FABRIC_AVAILABILITY_H

#include "base/str.h"
#include "sim/capacity/availability.h"

enum { AVAILABILITY_HOSTS_MAX = 8, AVAILABILITY_SLICES_MAX = 32 };

struct availability_order {
    double hosts[AVAILABILITY_HOSTS_MAX]; /* probabilities that a host is up; `whole` adds one */
    uint32_t host_count;                  /* 0: 0.99, 0.995 and 0.999, unless `whole` is set */
    uint32_t cubes;
    uint32_t whole;    /* adds the host probability at which so many cubes are whole; 0: none */
    double confidence; /* probability with which cubes must be whole */
    double switch_up;  /* probability that one of the 48 switches is up */
    uint32_t trials;   /* of the Monte Carlo simulation; 0: closed forms only */
    uint64_t seed;
    const char *plot; /* file of an SVG; NULL: none */
    bool json;
};

/* Prints the table or JSON, and writes the plot. Returns an exit status. */
int fabric_availability(struct availability_order *order);

#endif
