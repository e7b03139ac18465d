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
 * Chips are numbered 64 x cube + chip of the cube (wiring.h). The copper links of a cube always have light;
 * an optical link has it as long as a switch joins its two ends. The ends of a link with new light train:
 * they tell each other chip and port, and measure their round trip, for CHIPS_TRAIN_NS at least. Then each
 * knows its neighbour: chips_neighbor().
 *
 * A write is cut into packets of CHIPS_PACKET_BYTES. At each chip a packet waits in the buffer of the link
 * and virtual channel (VC) on which it came, until its next link is free and the next buffer has room: the
 * sender holds a credit for each place. A packet born at a chip waits in the chip's memory. Nothing but its
 * table decides about the way of a packet, so a table with a circle of channels does deadlock.
 *
 * The link layer numbers frames and keeps them until they are acknowledged. A frame that arrives damaged
 * (loss_ppm) is asked for again, and all frames behind it are sent again, in order: each packet is delivered
 * once. When light goes, frames that were not acknowledged are lost, and so is their write.
 *
 * A chip delivers only packets of its own session. Others are counted and dropped: nothing from an earlier
 * session reaches the memory of a later one.
 *
 * Two forms. The net of a whole pod lives in virtual time: equal settings and calls give equal results. The
 * net of one machine (`machine`) has that machine's chips alone, and its owner's clock: chips_run(net, now).
 * Its links to other machines lead outside; their light and their frames are the owner's to carry:
 *
 *     chips_light(net, chip, port, true)          there is another end, which has light from now on, too
 *     while (chips_take_frame(net, &chip, &port, &bytes)) ...      what it is to be sent
 *     chips_put_frame(net, chip, port, bytes, len)                 what it has sent
 *     while (chips_take_lost(net, &lost)) ...     packets of other machines' writes that were dropped here:
 *                                                 chips_put_lost() at the writer
 *
 * The carrier keeps frames in order, and delivers none of an earlier light. The link ends are the same code
 * in both forms. One owner.
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
    CHIPS_RTT_MAX_NS = 1000000, /* a link whose best round trip is longer goes on training */
    CHIPS_TRAIN_MAX_NS = 2000000000,
    CHIPS_WRITE_PACKETS_MAX = CHIPS_MEMORY_MAX / CHIPS_PACKET_BYTES,
    CHIPS_NONE = UINT32_MAX,
};

struct chips_settings {
    uint32_t cubes;
    bool one_machine;               /* only the chips of `machine` are in the net */
    uint32_t machine;               /* 16 x cube + machine of the cube */
    uint32_t memory_bytes;          /* of each chip */
    uint32_t buffers;               /* packets of one link and VC, at most: chips_set_buffer() */
    uint32_t packet_ns;             /* a whole packet on a link: 82 at 50 GB/s; 0: none */
    uint32_t copper_ns, optical_ns; /* one way */
    uint32_t loss_ppm;              /* frames that arrive damaged */
    uint32_t pings;                 /* round trips that a training measures; 0: one */
    uint64_t seed;
};

struct chips_done {
    uint64_t tag;
    uint32_t from, at; /* the chips that wrote and were written; `at` CHIPS_NONE: not delivered */
    uint32_t session;  /* of `from` when it wrote */
    bool delivered;    /* else some of it was lost or refused, and the writer's session is still the same */
    int64_t at_ns;
};
/* A chip that lets data flow, as a start told it to. */
struct chips_begun {
    uint32_t chip, number; /* of the session */
    int64_t at_ns;
};
/* A write of which a packet was dropped. */
struct chips_lost {
    uint32_t from, serial, session; /* of the write; `from` is the label of the chip that wrote */
    uint64_t tag;
};
struct chips_counts {
    uint64_t hops;      /* frames accepted by a chip */
    uint64_t delivered; /* packets */
    uint64_t resent;    /* frames */
    uint64_t lost;      /* packets: light went */
    uint64_t refused;   /* packets: no table, no way, or another session */
    uint64_t waiting;   /* packets in buffers, on links and in memory */
};
struct chips;

struct chips *chips_new(const struct chips_settings *settings);
void chips_free(struct chips *net);

/* Gives and takes the light of optical links as the switch's cross-connects say now. Returns whether any link
 * changed. */
bool chips_follow(struct chips *net, uint32_t switch_number, const struct ocs *ocs);
/* The cube whose minus end a switch joins with the plus end of `cube`, with light between them; CHIPS_NONE:
 * none. */
uint32_t chips_joined(uint32_t cubes, uint32_t switch_number, const struct ocs *ocs, uint16_t cube);
void chips_ask(struct chips *net, uint32_t chip, enum chip_port port, bool asked);
/* Whether a link has light and is in training, at most for CHIPS_TRAIN_MAX_NS: then it counts as dark until
 * it has trained. */
bool chips_training(const struct chips *net, uint32_t chip, enum chip_port port);
/* The chip and port at the other end of a trained link; false: no light, or still in training. */
bool chips_neighbor(const struct chips *net, uint32_t chip, enum chip_port port, uint32_t *ret_chip,
                    enum chip_port *ret_port);
/* The time of a small frame to the neighbour and back, the best that was measured. */
int64_t chips_rtt_ns(const struct chips *net, uint32_t chip, enum chip_port port);

/* Loads tables, which must live as long as they are loaded; `route` NULL: the chip is in no session. Packets
 * that wait at the chip are refused. */
void chips_load(struct chips *net, uint32_t chip, uint16_t number, uint32_t session,
                const struct route *route);

/* The same with the tables of this chip alone, which are copied: entries[chips] by destination; `inject`
 * NULL: `transit` serves both. */
void chips_load_own(struct chips *net, uint32_t chip, uint16_t number, uint32_t session, uint16_t chips,
                    const uint8_t *transit, const uint8_t *inject);

/* Sets the buffer of each VC of the link at a port, until the chip is in no session: packets of `bytes` in
 * all, rounded up, at least one, and at most those of the settings, which it has before. A smaller buffer
 * holds the sender's credits back as they come free. */
void chips_set_buffer(struct chips *net, uint32_t chip, enum chip_port port, uint32_t bytes);

/* Begins a write to the chip with number `to` of the same session; the bytes are copied. */
void chips_write(struct chips *net, uint32_t chip, uint16_t to, uint32_t address, const void *bytes,
                 uint32_t len, uint64_t tag);
const uint8_t *chips_memory(const struct chips *net, uint32_t chip);

/* Gives a chip its part of a session's start, once: when a start of `number` comes, the chip passes it on at
 * once to the ports in the bits of `children`, waits, and then asks for data at all ports. */
void chips_arm(struct chips *net, uint32_t chip, uint32_t number, uint8_t children, int64_t wait_ns);
void chips_disarm(struct chips *net, uint32_t chip);
/* Begins a start at a chip; false: the chip is not armed for it. */
bool chips_start(struct chips *net, uint32_t chip, uint32_t number);
/* The chips that have begun, in order; false: no more. */
bool chips_take_begun(struct chips *net, struct chips_begun *ret_begun);

/* Lets time pass until `until_ns`; INT64_MAX: until nothing more happens by itself. Returns the time then. */
int64_t chips_run(struct chips *net, int64_t until_ns);
int64_t chips_now_ns(const struct chips *net);
int64_t chips_next_ns(const struct chips *net); /* when something happens next by itself; INT64_MAX: never */
/* The writes that have ended, in order; false: no more. */
bool chips_take_done(struct chips *net, struct chips_done *ret_done);
void chips_count(const struct chips *net, struct chips_counts *ret_counts);

/* --- the net of one machine: what leads outside ------------------------------------------------------- */

/* The machine that has a chip: 16 x cube + machine of the cube. */
static inline uint32_t chips_machine(uint32_t chip)
{
    return chip / CUBE_CHIPS * CUBE_MACHINES + cube_chip_machine(chip % CUBE_CHIPS);
}
/* The chip at the other end of a copper link; CHIPS_NONE: the port has an optical one. */
uint32_t chips_copper(uint32_t chip, enum chip_port port);
/* Whether a port of a chip of this net leads outside. */
bool chips_leads_outside(const struct chips *net, uint32_t chip, enum chip_port port);
/* Gives or takes the light of a link that leads outside; light that is there is given anew. */
void chips_light(struct chips *net, uint32_t chip, enum chip_port port, bool light);
/* Appends the next frame that is to be sent to *bytes; false: no more. */
bool chips_take_frame(struct chips *net, uint32_t *ret_chip, enum chip_port *ret_port, struct buf *bytes);
/* ERROR_CORRUPT: no working end would have sent that. The link has no light any more then. */
int chips_put_frame(struct chips *net, uint32_t chip, enum chip_port port, const void *bytes, size_t len);
bool chips_take_lost(struct chips *net, struct chips_lost *ret_lost);
void chips_put_lost(struct chips *net, const struct chips_lost *lost);

#endif
