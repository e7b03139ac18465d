/* chips_private.h - the internals of chips.h.
 *
 *     chips.c        the pod: chips, light, tables, time
 *     chips_link.c   one end of a link: frames in, frames out
 *     chips_write.c  packets of writes: cut, routed, delivered, lost
 *     chips_start.c  the start of a session along the clock tree
 *     chips_wire.c   frames as bytes, for links that lead out of the process
 *
 * A link end uses only its chip, its own state and the frames that arrive; it never reads the state of the
 * other end. The same code therefore works whether frames travel through the heap of events, in virtual time,
 * or through sockets between processes.
 */
#ifndef PHX_SIM_FABRIC_CHIPS_PRIVATE_H
#define PHX_SIM_FABRIC_CHIPS_PRIVATE_H

#include "base/heap.h"
#include "base/map.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/fabric/chips.h"

/* The bytes of a write or of a part of it, with the fields that each of its packets carries about the
 * write. */
struct cargo {
    uint32_t refs; /* packets that refer to it */
    uint32_t from; /* label of the writing chip */
    uint32_t serial, session;
    uint64_t tag;
    uint32_t address; /* of bytes[0] */
    uint32_t packets; /* packets of the whole write */
    uint8_t bytes[];
};

struct packet {
    struct cargo *cargo;
    uint32_t offset, len; /* part of the cargo's bytes */
    uint16_t to;
    uint8_t entry; /* table entry at the present chip: next port and VC */
};

/* A ring of packets: bounded for buffers, growing for a chip's memory. */
struct packet_queue {
    struct packet *items;
    uint32_t first, count, cap;
};

enum { SOURCES = CHIP_PORTS * ROUTE_VCS + 1, SOURCE_BORN = SOURCES - 1 };

/* --- frames ------------------------------------------------------------------------------------------- */

enum link_frame_kind {
    LINK_TRAIN = 1, /* label, port, credits; number: the sender's time. Answered by ECHO */
    LINK_ECHO,      /* number: that of the TRAIN frame */
    LINK_ASK,       /* label: 1 the sender asks for data, 0 it no longer does */
    LINK_DATA,      /* vc, packet; number: of the frame */
    LINK_ACK,       /* number: of the next expected frame; all before it are accepted */
    LINK_NACK,      /* number: of the frame that arrived damaged; all before it are accepted */
    LINK_CREDIT,    /* vc: a place in the buffer is free again */
    LINK_START,     /* label: number of the session that starts */
};
struct link_frame {
    uint8_t kind; /* enum link_frame_kind */
    uint8_t port, vc, credits[ROUTE_VCS];
    uint32_t label;
    uint64_t number;
    struct packet packet; /* the sender owns its cargo and keeps it until the frame is acknowledged */
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
    uint32_t generation; /* of the light: frames of an earlier one do not arrive */
    /* training: when it began, the other end, and the best round trip */
    int64_t lit_ns, rtt_ns;
    uint32_t far_label;
    uint8_t far_port, pings;
    bool met, trained; /* `met`: the other end has named itself; `trained`: the round trip is known too */
    bool asked, far_asked;
    int64_t free_ns;
    uint32_t flight_ns; /* one way, INSIDE */
    uint32_t credits[ROUTE_VCS];
    uint32_t room;            /* packets of a VC that the other end may send ahead, see chips_set_buffer() */
    uint32_t held[ROUTE_VCS]; /* credits held back, so that the other end has at most `room` */
    uint64_t next, acked,
        again; /* numbers of frames: the next new one, the first not acknowledged, the next to send */
    struct packet *kept; /* ring of the frames acked .. next */
    uint64_t expected;   /* number of the next frame to receive */
    struct packet_queue in[ROUTE_VCS];
    uint32_t turn; /* the source to try first */
};

struct chip {
    uint16_t number;
    uint32_t session;
    uint32_t table_chips;            /* entries of a table; 0: none is loaded */
    size_t stride;                   /* distance from an entry to that of the next destination */
    const uint8_t *transit, *inject; /* entries for destination 0 */
    uint8_t *own;                    /* copied tables, or NULL */
    struct packet_queue born;
    uint8_t *memory;
    uint32_t serial; /* serial number of the next write */
    /* the chip's part in a start: chips_arm() */
    bool armed;
    uint8_t children;
    uint32_t arming, start_number; /* times that it was armed; number of the session */
    int64_t wait_ns;
    /* writes of several packets that have arrived in part, and own writes that are known to be lost */
    VEC(struct assembly *) assemblies;
    struct u64_map assembly_of, lost;
};

enum chips_event_kind { CHIPS_FREE, CHIPS_TRAINED, CHIPS_FRAME, CHIPS_BEGIN };
struct chips_event {
    struct heap_node node; /* by time, then by order of creation */
    struct chips_event *next_unused;
    enum chips_event_kind kind;
    uint32_t link;       /* BEGIN: a chip */
    uint32_t generation; /* BEGIN: the chip's `arming` */
    struct link_frame frame;
};

/* A frame that waits for chips_take_frame(). */
struct chips_outgoing {
    uint32_t link, generation;
    struct link_frame frame; /* holds a reference to its cargo */
};

struct chips {
    struct chips_settings settings;
    uint32_t chip_count, window; /* window: frames that a link keeps */
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
    VEC(struct chips_lost) notices; /* notices to writers outside */
    size_t notices_taken;
    struct chips_counts counts;
};

/* Returns whether the net has this chip: every chip of the pod, or those of one machine. */
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

/* Refuse a packet at a chip, or drop it when a link loses its light. The caller keeps its reference to the
 * cargo. */
void packet_refuse(struct chips *net, const struct packet *packet);
void packet_lose(struct chips *net, const struct packet *packet);
/* Sets the table entry of a packet at a chip. Returns false if the packet was delivered or refused there. */
bool packet_route(struct chips *net, uint32_t chip, struct packet *packet, bool born);
void chip_forget_writes(struct chip *chip); /* when it leaves its session */

/* --- link ends ---------------------------------------------------------------------------------------- */

void link_light(struct chips *net, uint32_t link, enum link_light light, uint32_t far, uint32_t flight_ns);
void link_begin(struct chips *net, uint32_t link); /* begins the training, once both ends have light */
/* Takes the light away. The other end is known to have accepted the frames before `accepted`. */
void link_dark(struct chips *net, uint32_t link, uint64_t accepted);
void link_ask(struct chips *net, uint32_t link, bool asked);
void link_send(struct chips *net, uint32_t link, const struct link_frame *frame, int64_t at_ns);
/* Takes a frame. Returns false if no working end would have sent it. */
bool link_take(struct chips *net, uint32_t link, const struct link_frame *frame);
/* Sets `room`. Credits are given at once, or held back as they become free. */
void link_set_room(struct chips *net, uint32_t link, uint32_t room);
/* Refuses the packets that wait at a chip, because its tables, and perhaps their routes, have changed. */
void link_flush(struct chips *net, uint32_t chip);
void link_try(struct chips *net, uint32_t link); /* sends what can be sent now */
void link_settle(struct chips *net, uint32_t link); /* ends the training if everything is known */

/* --- the start ---------------------------------------------------------------------------------------- */

void start_arrives(struct chips *net, uint32_t chip, uint32_t number);
void start_begins(struct chips *net, uint32_t chip, uint32_t arming);

/* --- frames as bytes ---------------------------------------------------------------------------------- */

void frame_write(const struct link_frame *frame, struct buf *out);
/* Returns ERROR_CORRUPT if the bytes are not a frame. The cargo of a DATA frame is new and belongs to the
 * caller. */
int frame_read(const uint8_t *bytes, size_t len, struct link_frame *ret_frame);

#endif
