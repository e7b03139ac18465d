/* chips_private.h - the insides of chips.h.
 *
 *     chips.c        the pod: chips, light, tables, time
 *     chips_link.c   one end of a link: frames in, frames out
 *     chips_write.c  packets of writes: cut, routed, delivered, lost
 *     chips_start.c  the start of a session along the clock tree
 *     chips_wire.c   frames as bytes, for links that lead out of the process
 *
 * A link end knows its chip, its own state and the frames that come: it never looks at the other end. So it
 * is the same machine whether its frames travel through the heap of events, in virtual time, or through
 * sockets between processes.
 */
#ifndef PHX_SIM_FABRIC_CHIPS_PRIVATE_H
#define PHX_SIM_FABRIC_CHIPS_PRIVATE_H

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/fabric/chips.h"

/* The bytes of a write or of a piece of it, and what each of its packets says about the write. */
struct cargo {
    uint32_t refs; /* packets that hold it */
    uint32_t from; /* label of the chip that wrote */
    uint32_t serial, session;
    uint64_t tag;
    uint32_t address; /* of bytes[0] */
    uint32_t packets; /* of the whole write */
    uint8_t bytes[];
};

struct packet {
    struct cargo *cargo;
    uint32_t offset, len; /* in the cargo */
    uint16_t to;
    uint8_t entry; /* of the table at the chip where it is: next port and VC */
};

/* A ring of packets with a bound (buffers), or one that grows (a chip's memory). */
struct packet_queue {
    struct packet *items;
    uint32_t first, count, cap;
};

enum { SOURCES = CHIP_PORTS * ROUTE_VCS + 1, SOURCE_BORN = SOURCES - 1 };

/* --- frames ------------------------------------------------------------------------------------------- */

enum link_frame_kind {
    LINK_TRAIN = 1, /* label, port, credits; number: the sender's time. Answered by ECHO */
    LINK_ECHO,      /* number: that of TRAIN */
    LINK_ASK,       /* label: 1 the sender asks for data, 0 no longer */
    LINK_DATA,      /* vc, packet; number: of the frame */
    LINK_ACK,       /* number: of the frame that is expected next; all before it are accepted */
    LINK_NACK,      /* number: of the frame that came damaged; all before it are accepted */
    LINK_CREDIT,    /* vc: a place in the buffer is free again */
    LINK_START,     /* label: number of the session that starts */
};
struct link_frame {
    uint8_t kind; /* enum link_frame_kind */
    uint8_t port, vc, credits[ROUTE_VCS];
    uint32_t label;
    uint64_t number;
    struct packet packet; /* its cargo belongs to the sender, who keeps it until the frame is acknowledged */
};

/* --- links -------------------------------------------------------------------------------------------- */

enum link_light {
    LIGHT_NONE,
    LIGHT_INSIDE,  /* the other end is in this net: frames are events */
    LIGHT_OUTSIDE, /* frames are handed to chips_take_frame() */
};
struct chip_link {
    enum link_light light;
    uint32_t far;        /* INSIDE: index of the other end */
    uint32_t generation; /* of the light: what was under way before does not arrive */
    /* training: when it began, who is at the other end, and the best round trip */
    int64_t lit_ns, rtt_ns;
    uint32_t far_label;
    uint8_t far_port, pings;
    bool met, trained; /* the other end has said who it is; and the round trip was measured */
    bool asked, far_asked;
    int64_t free_ns;
    uint32_t flight_ns; /* one way, INSIDE */
    uint32_t credits[ROUTE_VCS];
    uint32_t room; /* packets of a VC that the other end may send ahead: chips_set_buffer() */
    uint32_t held[ROUTE_VCS]; /* credits that are kept back, so that the other end has `room` at most */
    uint64_t next, acked,
        again;           /* frames: the next new one, the first not acknowledged, the next to be sent */
    struct packet *kept; /* ring of the frames acked .. next */
    uint64_t expected;   /* the frame that is received next */
    struct packet_queue in[ROUTE_VCS];
    uint32_t turn; /* the source that is asked first */
};

struct chip {
    uint16_t number;
    uint32_t session;
    uint32_t table_chips;            /* entries of a table; 0: none is loaded */
    size_t stride;                   /* from an entry to that of the next destination */
    const uint8_t *transit, *inject; /* the entry for destination 0 */
    uint8_t *own;                    /* tables that were copied */
    struct packet_queue born;
    uint8_t *memory;
    uint32_t serial; /* of the next write */
    /* the chip's part in a start: chips_arm() */
    bool armed;
    uint8_t children;
    uint32_t arming, start_number; /* counts the times that it was armed; the session's number */
    int64_t wait_ns;
    /* writes of several packets: those of which some have arrived, and own ones that are known to be lost */
    VEC(struct assembly *) assemblies;
    struct u64_map assembly_of, lost;
};

enum chips_event_kind { CHIPS_FREE, CHIPS_TRAINED, CHIPS_FRAME, CHIPS_BEGIN };
struct chips_event {
    struct heap_node node; /* by time, then by order of making */
    struct chips_event *next_unused;
    enum chips_event_kind kind;
    uint32_t link;       /* BEGIN: a chip */
    uint32_t generation; /* BEGIN: the chip's `arming` */
    struct link_frame frame;
};

/* A frame on its way out of the net. */
struct chips_outgoing {
    uint32_t link, generation;
    struct link_frame frame; /* holds its cargo */
};

struct chips {
    struct chips_settings settings;
    uint32_t chip_count, window; /* frames that a link keeps */
    struct chip *chips;
    struct chip_link *links; /* [chip * CHIP_PORTS + port] */
    struct heap events;
    struct chips_event *unused;
    uint64_t made;
    int64_t now_ns;
    struct rng rng;
    VEC(struct chips_done) done;
    size_t done_taken;
    VEC(struct chips_begun) begun;
    size_t begun_taken;
    VEC(struct chips_outgoing) outgoing;
    size_t outgoing_taken;
    VEC(struct chips_lost) notices; /* to writers outside */
    size_t notices_taken;
    struct chips_counts counts;
};

/* Whether the net has this chip: all of the pod, or those of one machine. */
static inline bool chip_here(const struct chips *net, uint32_t chip)
{
    return net->chips[chip].memory != NULL;
}

struct chips_event *chips_schedule(struct chips *net, enum chips_event_kind kind, uint32_t link,
                                   int64_t at_ns);

/* --- packets ------------------------------------------------------------------------------------------ */

void packet_put(struct packet_queue *queue, const struct packet *packet);
struct packet packet_take(struct packet_queue *queue);
static inline struct packet *packet_first(struct packet_queue *queue)
{
    return queue->count ? &queue->items[queue->first] : NULL;
}
struct cargo *cargo_new(uint32_t bytes);
void cargo_release(struct cargo *cargo);

/* Refuses a packet at a chip, or loses it with the light of a link. The cargo stays the caller's. */
void packet_refuse(struct chips *net, const struct packet *packet);
void packet_lose(struct chips *net, const struct packet *packet);
/* Sets the entry of a packet at a chip; false: it was delivered or refused there. */
bool packet_route(struct chips *net, uint32_t chip, struct packet *packet, bool born);
void chip_forget_writes(struct chip *chip); /* of the session that it leaves */

/* --- link ends ---------------------------------------------------------------------------------------- */

void link_light(struct chips *net, uint32_t link, enum link_light light, uint32_t far, uint32_t flight_ns);
void link_begin(struct chips *net, uint32_t link); /* the training: when both ends have light */
/* `accepted`: frames before this one are known to have been taken by the other end. */
void link_dark(struct chips *net, uint32_t link, uint64_t accepted);
void link_ask(struct chips *net, uint32_t link, bool asked);
void link_send(struct chips *net, uint32_t link, const struct link_frame *frame, int64_t at_ns);
/* Takes a frame; false: no working end would have sent it. */
bool link_take(struct chips *net, uint32_t link, const struct link_frame *frame);
/* Sets `room`: credits are given at once, or held back as they come free. */
void link_set_room(struct chips *net, uint32_t link, uint32_t room);
/* Refuses the packets that wait at a chip: their tables are gone, and with these perhaps their way. */
void link_flush(struct chips *net, uint32_t chip);
void link_try(struct chips *net, uint32_t link); /* sends what can be sent now */
void link_settle(struct chips *net, uint32_t link); /* ends the training, if all is known */

/* --- the start ---------------------------------------------------------------------------------------- */

void start_arrives(struct chips *net, uint32_t chip, uint32_t number);
void start_begins(struct chips *net, uint32_t chip, uint32_t arming);

/* --- frames as bytes ---------------------------------------------------------------------------------- */

void frame_write(const struct link_frame *frame, struct buf *out);
/* ERROR_CORRUPT: the bytes are no frame. A frame of DATA has a cargo of its own. */
int frame_read(const uint8_t *bytes, size_t len, struct link_frame *ret_frame);

#endif
