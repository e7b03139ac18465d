/* cycle.h - simulates the network of a slice cycle by cycle: finite buffers, credits, virtual channels,
 * waits.
 *
 *     net = cycle_net_new(&torus, &route, &terms)
 *     cycle_net_lane(net, from, to, count, rounds, ...)      what a chip sends (traffic.h has whole patterns)
 *     cycle_net_run(net, until)
 *     cycle_net_count(net, &counts); cycle_net_circle(net, ...)
 *
 * A cycle is the time of one flit on a link: 256 bytes at 50 GB/s, 5.12 ns. A packet has `packet_cycles`
 * flits and occupies its link for as many cycles. Chips cut through: the head of a packet may leave before
 * its tail has arrived. At the end of each link is a buffer of `buffers` packets for each virtual channel
 * (VC). The sender holds a credit for each free place. A place becomes free when the tail has left it, and
 * the credit takes as long back as a flit takes there. A packet in a buffer waits in the queue of its next
 * link and VC, so it waits only for packets for the same link and VC. A free link takes the oldest of the
 * first packets of its VCs, and a packet that starts at the chip if none of them can go. A chip's memory
 * accepts everything that its six links deliver.
 *
 * The tables alone (core/fabric/route.h) determine the routes, and no wait times out, so a table with a
 * circle of channels deadlocks here. cycle_net_circle() finds the circle while the rest of the slice still
 * moves.
 *
 * Time is a wheel of events, so idle links cost nothing. Deterministic: equal calls give equal results.
 * Single-threaded. Torus, route and lists of destinations must outlive the net.
 */
#ifndef PHX_SIM_CYCLE_CYCLE_H
#define PHX_SIM_CYCLE_CYCLE_H

#include <stdbool.h>
#include <stdint.h>

#include "core/fabric/route.h"

enum {
    CYCLE_BUFFERS_MAX = 1024,
    CYCLE_DELAY_MAX = 1000, /* limit of each time in struct cycle_terms */
    CYCLE_NONE = UINT32_MAX,
};

struct cycle_terms {
    uint32_t buffers;        /* packets for each link and VC, 1 to CYCLE_BUFFERS_MAX */
    uint32_t packet_cycles;  /* time of a packet on a link, 1 to CYCLE_DELAY_MAX */
    uint32_t copper_cycles;  /* one way, inside a cube */
    uint32_t optical_cycles; /* one way, through a switch */
    uint32_t chip_cycles;    /* from a link to the next queue */
};
/* Packets of 4 KiB, 20 ns of copper, 200 ns of fibre, 40 ns in a chip, 64 KiB for each link and VC. */
#define CYCLE_TERMS_DEFAULT                                                                                  \
    {                                                                                                        \
        .buffers = 16, .packet_cycles = 16, .copper_cycles = 4, .optical_cycles = 39, .chip_cycles = 8       \
    }

struct cycle_counts {
    uint64_t now;       /* cycles that have passed */
    uint64_t end;       /* cycle of the last tail's arrival */
    uint64_t delivered; /* packets */
    uint64_t hops;      /* packets sent, counted at each link */
    uint64_t moving;    /* packets on links and in buffers */
    uint64_t waiting;   /* packets that lanes have still to send; UINT64_MAX if a lane is endless */
    uint64_t time_max;  /* cycles from birth to arrival of the slowest packet */
};
/* A link and VC whose buffer is full. */
struct cycle_channel {
    uint16_t chip; /* the sending chip */
    uint8_t port, vc;
};
struct cycle_net;

/* Makes a net without packets, at cycle 0. Aborts if a term is outside its limits. Free it with
 * cycle_net_free(). */
struct cycle_net *cycle_net_new(const struct torus *torus, const struct route *route,
                                const struct cycle_terms *terms);
void cycle_net_free(struct cycle_net *net);

/* Adds a lane: chip `from` sends one packet to each of to[count], in this order, `rounds` times (0: without
 * end). All packets must leave by the same port of the tables. Returns the lane's number.
 *
 * `allowed` is the number of packets that may be sent at once; the others wait for cycle_net_feed().
 * UINT64_MAX allows all. */
uint32_t cycle_net_lane(struct cycle_net *net, uint16_t from, const uint16_t *to, uint32_t count,
                        uint64_t rounds, uint64_t allowed);
/* Makes each arriving packet of `lane` allow one more packet of lane `fed`, which starts at the chip of
 * arrival. */
void cycle_net_feed(struct cycle_net *net, uint32_t lane, uint32_t fed);

/* Limits a lane to `packets` packets in the time in which a link carries `of`, evenly spread. A delayed lane
 * catches up. Call before the first cycle. */
void cycle_net_pace(struct cycle_net *net, uint32_t lane, uint64_t packets, uint64_t of);

/* Runs until cycle `until`, or until no event is left: packets that remain then wait forever. */
void cycle_net_run(struct cycle_net *net, uint64_t until);
void cycle_net_count(const struct cycle_net *net, struct cycle_counts *ret_counts);
/* Returns the packets sent on each link so far, [chips * CHIP_PORTS]. The array belongs to the net. */
const uint64_t *cycle_net_link_packets(const struct cycle_net *net);

/* Finds packets that can never move. Returns the length of a circle of channels that wait for each other, or
 * 0 if there is none, and writes the first `max` channels to ret_circle. Takes time in proportion to the
 * links. */
uint32_t cycle_net_circle(const struct cycle_net *net, struct cycle_channel *ret_circle, uint32_t max);

#endif
