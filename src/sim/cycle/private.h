/* private.h - the internals of cycle.h, shared by the engine (cycle.c) and the search for deadlocks
 * (circle.c). */
#ifndef PHX_SIM_CYCLE_PRIVATE_H
#define PHX_SIM_CYCLE_PRIVATE_H

#include "base/check.h"
#include "base/vec.h"
#include "sim/cycle/cycle.h"

/* A channel has the number link * ROUTE_VCS + vc, and a link chip * CHIP_PORTS + port. */
struct cycle_packet {
    uint32_t next; /* next packet of its queue, or of the unused ones */
    uint32_t came; /* channel in whose buffer it holds a place */
    uint32_t lane;
    uint32_t born; /* cycle, modulo 2^32 */
    uint16_t to;
};

struct cycle_lane {
    const uint16_t *to;
    uint64_t left_to_send; /* UINT64_MAX: endless */
    uint64_t allowed;
    uint64_t gap, due; /* time between packets, and of the next one, in 1/1024 cycle */
    uint64_t wake;     /* cycle in which its link is tried again */
    uint32_t count, at;
    uint32_t feeds; /* lane that it feeds, or CYCLE_NONE */
    uint32_t next;  /* next lane of the same link, in a ring */
    uint32_t link;
    uint16_t from;
};

struct cycle_queue {
    uint32_t first, last; /* packets */
};
struct cycle_link {
    struct cycle_queue queue[ROUTE_VCS]; /* packets in its chip's buffers that leave by this link, by VC */
    uint32_t credits[ROUTE_VCS];
    uint32_t lane; /* lane to try first, or CYCLE_NONE */
    uint16_t chip; /* chip at the other end */
    uint16_t flight;
    bool busy;
};

typedef VEC(uint32_t) cycle_events;

struct cycle_net {
    const struct torus *torus;
    const struct route *route;
    struct cycle_terms terms;
    struct cycle_link *links;
    struct cycle_packet *packets;
    uint32_t unused; /* packet */
    VEC(struct cycle_lane) lanes;
    cycle_events *wheel; /* [wheel_mask + 1] by cycle */
    uint32_t wheel_mask;
    uint64_t events; /* number of events on the wheel */
    uint64_t now;
    uint64_t *link_packets;
    struct cycle_counts counts;
};

#endif
