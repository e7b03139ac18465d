/* chips.h - an emulated chip-to-chip network: chips of a pod, their six links, and the packets on them.
 *
 *     net = chips_new(&settings)
 *     chips_follow(net, switch_number, &ocs)      light: what an emulated switch joins now
 *     chips_ask(net, chip, port, true)            data flows when both ends of a link ask
 *     chips_load(net, chip, number, session, &route)          tables, and the chip's number in its slice
 *     chips_write(net, chip, to, address, bytes, len, tag)    a write into the memory of another chip
 *     chips_run(net, until_ns)
 *     while (chips_take_done(net, &done)) ...
 *
 * Chips are numbered 64 x cube + chip of the cube (wiring.h). The copper links of a cube always have light.
 * An optical link has light while a switch joins its two ends. The ends of a link with new light train: they
 * tell each other their chip and port, and measure their round trip, for at least CHIPS_TRAIN_NS. Then each
 * knows its neighbour: chips_neighbor().
 *
 * A write is cut into packets of CHIPS_PACKET_BYTES. At each chip a packet waits in the buffer of the link
 * and virtual channel (VC) on which it arrived, until its next link is free and the next buffer has space;
 * the sender holds a credit for each place. A packet that starts at a chip waits in the chip's memory. Only
 * the tables determine the route of a packet, so a table with a circle of channels does deadlock.
 *
 * The link layer numbers frames and keeps them until they are acknowledged. A frame that arrives damaged
 * (loss_ppm) is requested again, and all frames after it are sent again in order, so each packet is delivered
 * once. When a link loses its light, frames that were not acknowledged are lost, and so are their writes.
 *
 * A chip accepts only packets of its own session. Others are counted and dropped, so nothing from an earlier
 * session reaches the memory of a later one.
 *
 * A net has one of two forms. The net of a whole pod lives in virtual time: equal settings and calls give
 * equal results. The net of one machine (`machine`) contains only that machine's chips, and uses its owner's
 * clock: chips_run(net, now). Its links to other machines lead outside, and the owner carries their light and
 * frames:
 *
 *     chips_light(net, chip, port, true)          the link has light from now on; so has its other end
 *     while (chips_take_frame(net, &chip, &port, &bytes)) ...      frames to send to the other end
 *     chips_put_frame(net, chip, port, bytes, len)                 a frame from the other end
 *     while (chips_take_lost(net, &lost)) ...     packets of other machines' writes that were dropped here:
 *                                                 chips_put_lost() at the writer
 *
 * The carrier must keep frames in order, and deliver none of an earlier light. The link ends are the same
 * code in both forms. A net has one owner.
 */
#ifndef PHX_SIM_FABRIC_CHIPS_H
#define PHX_SIM_FABRIC_CHIPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/str.h"
#include "core/fabric/route.h"
#include "core/fabric/wiring.h"
#include "sim/fabric/ocs.h"

enum {
    CHIPS_PACKET_BYTES = 4096,
    CHIPS_MEMORY_MAX = 1 << 24, /* bytes of one chip */
    CHIPS_BUFFERS_MAX = 64,     /* packets of one link and VC */
    CHIPS_TRAIN_NS = 1000000,
    CHIPS_RTT_MAX_NS = 1000000, /* a link whose best round trip is longer keeps training */
    CHIPS_TRAIN_MAX_NS = 2000000000,
    CHIPS_WRITE_PACKETS_MAX = CHIPS_MEMORY_MAX / CHIPS_PACKET_BYTES,
    CHIPS_NONE = UINT32_MAX,
};

struct chips_settings {
    uint32_t cubes;
    bool one_machine;               /* only the chips of `machine` are in the net */
    uint32_t machine;               /* 16 x cube + machine of the cube */
    uint32_t memory_bytes;          /* of each chip */
    uint32_t buffers;               /* limit of packets for each link and VC, see chips_set_buffer() */
    uint32_t packet_ns;             /* time of a whole packet on a link: 82 at 50 GB/s; 0: no time */
    uint32_t copper_ns, optical_ns; /* one way */
    uint32_t loss_ppm;              /* share of frames that arrive damaged */
    uint32_t pings;                 /* round trips that are measured in training; 0: one */
    uint64_t seed;
};

struct chips_done {
    uint64_t tag;
    uint32_t from, at; /* the writing and the written chip; `at` is CHIPS_NONE if not delivered */
    uint32_t session;  /* session of `from` at the time of the write */
    bool delivered;    /* false: a part was lost or refused, and the writer is still in that session */
    int64_t at_ns;
};
/* A chip that lets data flow after a start. */
struct chips_begun {
    uint32_t chip, number; /* of the session */
    int64_t at_ns;
};
/* A write that lost a packet. */
struct chips_lost {
    uint32_t from, serial, session; /* of the write; `from` is the label of the writing chip */
    uint64_t tag;
};
struct chips_counts {
    uint64_t hops;      /* frames accepted by a chip */
    uint64_t delivered; /* packets */
    uint64_t resent;    /* frames */
    uint64_t lost;      /* packets on links that lost their light */
    uint64_t refused;   /* packets without a table or route, or of another session */
    uint64_t waiting;   /* packets in buffers, on links and in chips' memories */
};
struct chips;

struct chips *chips_new(const struct chips_settings *settings);
void chips_free(struct chips *net);

/* Gives and takes the light of optical links according to the switch's present cross-connects. Returns
 * whether any link changed. */
bool chips_follow(struct chips *net, uint32_t switch_number, const struct ocs *ocs);
/* Returns the cube whose minus end a switch joins with the plus end of `cube`, with light between them, or
 * CHIPS_NONE. */
uint32_t chips_joined(uint32_t cubes, uint32_t switch_number, const struct ocs *ocs, uint16_t cube);
/* Sets whether a chip asks for data at a port. Data flows when both ends of the link ask. */
void chips_ask(struct chips *net, uint32_t chip, enum chip_port port, bool asked);
/* Returns whether a link has light and is in training. After CHIPS_TRAIN_MAX_NS of training the link counts
 * as dark until it has trained. */
bool chips_training(const struct chips *net, uint32_t chip, enum chip_port port);
/* Finds the chip and port at the other end of a trained link. Returns false if the link has no light or is
 * still in training. */
bool chips_neighbor(const struct chips *net, uint32_t chip, enum chip_port port, uint32_t *ret_chip,
                    enum chip_port *ret_port);
/* Returns the best measured time of a small frame to the neighbour and back. */
int64_t chips_rtt_ns(const struct chips *net, uint32_t chip, enum chip_port port);

/* Loads tables, which are borrowed while they are loaded. If `route` is NULL the chip leaves its session.
 * Packets that wait at the chip are refused. */
void chips_load(struct chips *net, uint32_t chip, uint16_t number, uint32_t session,
                const struct route *route);

/* As chips_load(), with only this chip's tables, which are copied: entries[chips] by destination. If `inject`
 * is NULL, `transit` serves both. */
void chips_load_own(struct chips *net, uint32_t chip, uint16_t number, uint32_t session, uint16_t chips,
                    const uint8_t *transit, const uint8_t *inject);

/* Sets the buffer size of each VC of the link at a port, until the chip leaves its session. `bytes` is
 * rounded up to whole packets, at least one and at most the limit of the settings, which is the initial size.
 * A smaller buffer takes effect as credits become free, by holding them back from the sender. */
void chips_set_buffer(struct chips *net, uint32_t chip, enum chip_port port, uint32_t bytes);

/* Begins a write to the chip with number `to` of the same session. Copies the bytes. The outcome appears in
 * chips_take_done(). */
void chips_write(struct chips *net, uint32_t chip, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag);
const uint8_t *chips_memory(const struct chips *net, uint32_t chip);

/* Gives a chip its part of a session's start. When a start of `number` arrives, the chip passes it on to the
 * ports in the bits of `children`, waits `wait_ns`, and then asks for data at all ports. Takes effect
 * once. */
void chips_arm(struct chips *net, uint32_t chip, uint32_t number, uint8_t children, int64_t wait_ns);
void chips_disarm(struct chips *net, uint32_t chip);
/* Begins a start at a chip. Returns false if the chip is not armed for it. */
bool chips_start(struct chips *net, uint32_t chip, uint32_t number);
/* Takes the next chip that has begun, in order. Returns false if there is none. */
bool chips_take_begun(struct chips *net, struct chips_begun *ret_begun);

/* Runs until `until_ns`, or for INT64_MAX until no event is left. Returns the time at the end. */
int64_t chips_run(struct chips *net, int64_t until_ns);
int64_t chips_now_ns(const struct chips *net);
int64_t chips_next_ns(const struct chips *net); /* time of the next event; INT64_MAX: none */
/* Takes the next write that has ended, in order. Returns false if there is none. */
bool chips_take_done(struct chips *net, struct chips_done *ret_done);
void chips_count(const struct chips *net, struct chips_counts *ret_counts);

/* --- the net of one machine: what leads outside ------------------------------------------------------- */

/* Returns the machine of a chip: 16 x cube + machine of the cube. */
static inline uint32_t chips_machine(uint32_t chip)
{
    return chip / CUBE_CHIPS * CUBE_MACHINES + cube_chip_machine(chip % CUBE_CHIPS);
}
/* Returns the chip at the other end of a copper link, or CHIPS_NONE if the port has an optical link. */
uint32_t chips_copper(uint32_t chip, enum chip_port port);
/* Returns whether a port of a chip of this net leads outside. */
bool chips_leads_outside(const struct chips *net, uint32_t chip, enum chip_port port);
/* Gives or takes the light of a link that leads outside. If the link has light already, `light` true replaces
 * it by a new light: frames of the old one are lost, and the link trains again. */
void chips_light(struct chips *net, uint32_t chip, enum chip_port port, bool light);
/* Appends the next frame to be sent to *bytes. Returns false if there is none. */
bool chips_take_frame(struct chips *net, uint32_t *ret_chip, enum chip_port *ret_port, struct buf *bytes);
/* Takes a frame from the other end. Returns ERROR_CORRUPT for a frame that no working end sends; the link
 * then has no light. */
int chips_put_frame(struct chips *net, uint32_t chip, enum chip_port port, const void *bytes, size_t len);
bool chips_take_lost(struct chips *net, struct chips_lost *ret_lost);
void chips_put_lost(struct chips *net, const struct chips_lost *lost);

#endif
