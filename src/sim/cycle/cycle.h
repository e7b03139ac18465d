/* cycle.h - the chips of a slice, cycle by cycle: finite buffers, credits, virtual channels, and waits.
 *
 *     net = cycle_net_new(&torus, &route, &terms)
 *     cycle_net_lane(net, from, to, count, rounds, ...)      what a chip sends (traffic.h has whole patterns)
 *     cycle_net_run(net, until)
 *     cycle_net_count(net, &counts); cycle_net_circle(net, ...)
 *
 * A cycle is the time of one flit on a link: 256 bytes at 50 GB/s, 5.12 ns. A packet has `packet_cycles`
 * flits and takes its link for as many cycles. Chips cut through: the head of a packet may leave before its
 * tail has come. At the end of each link is a buffer for each virtual channel (VC), of `buffers` packets. The
 * sender holds a credit for each free place; a place is free when the tail has left it, and the credit takes
 * as long back as a flit takes there. A packet in a buffer waits in the queue of its next link and VC, so it
 * is behind packets for the same link and VC only. A free link takes, of the first packets of its VCs, the
 * oldest, and a packet that is born at the chip when no packet in passing can go. A chip's memory takes all
 * that its six links bring.
 *
 * Nothing but the tables (core/fabric/route.h) decides about ways, and nothing ends a wait: a table with a
 * circle of channels deadlocks here. cycle_net_circle() finds it while the rest of the slice still moves.
 *
 * Time is a wheel of events, so links without packets cost nothing. Pure: equal calls give equal results.
 * Single-threaded; torus, route and lists of destinations must outlive the net.
 */
#ifndef PHX_SIM_CYCLE_CYCLE_H
#define PHX_SIM_CYCLE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fabric/route.h"

enum {
    CYCLE_BUFFERS_MAX = 1024,
    CYCLE_DELAY_MAX = 1000, /* cycles of each of the times in struct cycle_terms */
    CYCLE_NONE = UINT32_MAX,
};

struct cycle_terms {
    uint32_t buffers;        /* packets of one link and VC, 1 to CYCLE_BUFFERS_MAX */
    uint32_t packet_cycles;  /* a packet on a link, 1 to CYCLE_DELAY_MAX */
    uint32_t copper_cycles;  /* one way inside a cube */
    uint32_t optical_cycles; /* one way by a switch */
    uint32_t chip_cycles;    /* from a link to the next queue */
};
/* Packets of 4 KiB, 20 ns of copper, 200 ns of fibre, 40 ns in a chip, 64 KiB for each link and VC. */
#define CYCLE_TERMS_DEFAULT                                                                                  \
    {                                                                                                        \
        .buffers = 16, .packet_cycles = 16, .copper_cycles = 4, .optical_cycles = 39, .chip_cycles = 8       \
    }

struct cycle_counts {
    uint64_t now;       /* cycles that have passed */
    uint64_t end;       /* the cycle in which the last tail arrived */
    uint64_t delivered; /* packets */
    uint64_t hops;      /* packets that were put on a link */
    uint64_t moving;    /* packets on links and in buffers */
    uint64_t waiting;   /* packets that lanes have not sent: UINT64_MAX in an endless lane */
    uint64_t time_max;  /* cycles from birth to arrival of the slowest packet */
};
/* A link and VC whose buffer is full. */
struct cycle_channel {
    uint16_t chip; /* that sends */
    uint8_t port, vc;
};
struct cycle_net;

/* A net at cycle 0 without packets. The terms are within their limits (checked). */
struct cycle_net *cycle_net_new(const struct torus *torus, const struct route *route,
                                const struct cycle_terms *terms);
void cycle_net_free(struct cycle_net *net);

/* Adds a lane: chip `from` sends one packet to each of to[count], in this order, `rounds` times (0: without
 * end). All leave by the same port of the tables. Returns the lane's number.
 *
 * `allowed`: packets that may be sent at once; the others wait for cycle_net_feed(). UINT64_MAX: all may. */
uint32_t cycle_net_lane(struct cycle_net *net, uint16_t from, const uint16_t *to, uint32_t count,
                        uint64_t rounds, uint64_t allowed);
/* Each packet of `lane` that arrives allows one packet more to lane `fed`, which starts where it arrives. */
void cycle_net_feed(struct cycle_net *net, uint32_t lane, uint32_t fed);

/* Lets a lane send at most `packets` packets in the time in which a link carries `of`, evenly spread. A lane
 * that was held up makes good for it. Before the first cycle. */
void cycle_net_pace(struct cycle_net *net, uint32_t lane, uint64_t packets, uint64_t of);

/* Lets cycles pass until `until`, or until nothing more happens: then packets that are left wait for ever. */
void cycle_net_run(struct cycle_net *net, uint64_t until);
void cycle_net_count(const struct cycle_net *net, struct cycle_counts *ret_counts);
/* Packets that were put on each link so far: [chips * CHIP_PORTS], the net's own. */
const uint64_t *cycle_net_link_packets(const struct cycle_net *net);

/* Looks for packets that can never move: returns the length of a circle of channels of which each waits for
 * the next, 0 if there is none. The first `max` of them go to ret_circle. Time grows with the links. */
uint32_t cycle_net_circle(const struct cycle_net *net, struct cycle_channel *ret_circle, uint32_t max);

#endif
