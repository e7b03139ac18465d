/* chips_private.h - the insides of chips.h: chips and time (chips.c), the link layer (chips_link.c). */
#ifndef PHX_SIM_FABRIC_CHIPS_PRIVATE_H
#define PHX_SIM_FABRIC_CHIPS_PRIVATE_H

#include "base/heap.h"
#include "base/rng.h"
#include "base/vec.h"
#include "sim/fabric/chips.h"

struct chips_write {
    uint64_t tag;
    uint32_t from, at, session;
    uint32_t left; /* packets that are neither delivered nor dropped */
    bool failed;
    uint8_t bytes[];
};

struct packet {
    struct chips_write *write;
    uint32_t session, address, offset, len;
    uint16_t to;
    uint8_t entry; /* of the table at the chip where it is: next port and VC */
};

/* A ring of packets with a bound (buffers), or one that grows (a chip's memory). */
struct packet_queue {
    struct packet *items;
    uint32_t first, count, cap;
};

enum { SOURCES = CHIP_PORTS * ROUTE_VCS + 1, SOURCE_BORN = SOURCES - 1 };

/* One end of a link: it sends to `far`, and receives what far sends. Frames are numbered from 0. */
struct chip_link {
    uint32_t far;        /* index of the other end; CHIPS_NONE: no light */
    uint32_t generation; /* of the light: what was under way before does not arrive */
    bool asked, resend_due;
    int64_t trained_ns, free_ns;
    uint32_t flight_ns; /* one way */
    uint32_t credits[ROUTE_VCS];
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
};

enum chips_event_kind { CHIPS_FREE, CHIPS_ARRIVES, CHIPS_ACK, CHIPS_NACK, CHIPS_CREDIT };
struct chips_event {
    struct heap_node node; /* by time, then by order of making */
    struct chips_event *next_unused;
    enum chips_event_kind kind;
    uint32_t link, generation, vc;
    uint64_t frame;
    struct packet packet;
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
    struct chips_counts counts;
};

struct chips_event *chips_schedule(struct chips *net, enum chips_event_kind kind, uint32_t link,
                                   int64_t at_ns);
void packet_put(struct packet_queue *queue, const struct packet *packet);
struct packet packet_take(struct packet_queue *queue);
static inline struct packet *packet_first(struct packet_queue *queue)
{
    return queue->count ? &queue->items[queue->first] : NULL;
}
/* Ends one packet of a write. */
void packet_end(struct chips *net, const struct packet *packet, bool delivered);
/* Sets the entry of a packet at a chip; false: it was delivered or dropped there. */
bool packet_route(struct chips *net, uint32_t chip, struct packet *packet, bool born);

void link_light(struct chips *net, uint32_t one, uint32_t other, uint32_t flight_ns);
void link_dark(struct chips *net, uint32_t one);
/* Refuses the packets that wait at a chip: their tables are gone, and with these perhaps their way. */
void link_flush(struct chips *net, uint32_t chip);
void link_try(struct chips *net, uint32_t link); /* sends what can be sent now */
void link_event(struct chips *net, const struct chips_event *event);

#endif
