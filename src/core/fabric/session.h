/* session.h - brings up, keeps and ends the chip network of one slice: a state machine without I/O.
 *
 *     fabric_session_new(&terms, &session, &error)
 *     while (fabric_session_order(session, &order)) carry it out on order.chip
 *     fabric_session_neighbours(session, chip, neighbours)     a chip answers what its six ports see
 *     fabric_session_done(session, chip, kind, number)         an order is done
 *     fabric_session_link_down(session, chip, port)            a link has lost its light
 *     fabric_session_stop(session)
 *
 *   DISCOVER ─► LOAD ─► START ─► RUN ─► STOP ─► ENDED
 *                ▲─────────┴──────┘ a link is down: new tables, a new session number
 *   any state ─► FAILED: fabric_session_error() names what is wrong
 *
 * DISCOVER asks chips for their neighbours, breadth first from the slice's first chip. A chip is known by its
 * label, 64 x cube + place in the cube. Each answer is compared with the shape and cubes of the terms. A link
 * that leads to another chip or port is a wrong wire, even if the links together form a torus. In a slice
 * that is part of a cube, links that lead out of the part belong to other slices and are ignored.
 *
 * LOAD gives each chip its number in the slice, the session number, tables that are built and proved for the
 * links with light, a flow-control buffer for each port, and its place in the clock tree. START is one order,
 * to the root of the clock tree, which is the slice's first chip. Each chip passes the start on, waits
 * `wait_ns` and then lets data flow, so all chips begin at the same moment. All chips then answer with
 * fabric_session_done(). STOP takes the tables away.
 *
 * A buffer holds what its link carries in one round trip, plus one packet. The clock tree is a minimum
 * spanning tree of the live links by round-trip time (Prim 1957). Among links of equal time, the one nearest
 * to the root is taken.
 *
 * Packets carry the session number, and chips refuse packets with another number. A session uses `number`,
 * and one more for each re-route, so callers leave FABRIC_REROUTES_MAX numbers between sessions. Answers with
 * an old number are ignored, and repeated answers change nothing.
 *
 * A session has one owner, and its functions must not be called concurrently. They are deterministic: equal
 * calls give equal orders.
 */
#ifndef PHX_CORE_FABRIC_SESSION_H
#define PHX_CORE_FABRIC_SESSION_H

#include "core/fabric/crossconnect.h"
#include "core/fabric/prove.h"

enum fabric_session_state {
    FABRIC_SESSION_DISCOVER,
    FABRIC_SESSION_LOAD,
    FABRIC_SESSION_START,
    FABRIC_SESSION_RUN,
    FABRIC_SESSION_STOP,
    FABRIC_SESSION_ENDED,
    FABRIC_SESSION_FAILED,
    FABRIC_SESSION_STATES
};
extern const char *const fabric_session_state_names[FABRIC_SESSION_STATES];

enum {
    FABRIC_REROUTES_MAX = 1024,
    FABRIC_RTT_NS_MAX = 1000000, /* an answer with a longer round trip is an error */
    FABRIC_BYTES_PER_US_MAX = 10000000,
    FABRIC_NO_PORT = 0xff,
};

struct fabric_session_terms {
    const struct cube_slice *slice; /* the shape, and the cube at each place */
    uint8_t origin[AXES];           /* part of a cube: its first chip within the cube; else 0 */
    uint32_t number;                /* the session number, see above */
    uint32_t bytes_per_us;          /* of a link, 1 to FABRIC_BYTES_PER_US_MAX: 50,000 at 50 GB/s */
    uint32_t packet_bytes;          /* the largest packet */
    bool route_around; /* route around links without light; otherwise such a link fails the session */
    const struct str *patterns; /* solved patterns (pattern.h) to try; borrowed for the session's life */
    uint32_t pattern_count;
};

/* The neighbour that a chip sees at one port, if the link has light. */
struct fabric_neighbour {
    bool light;
    uint8_t port;
    uint32_t chip;   /* label */
    uint32_t rtt_ns; /* of a small frame and its answer */
};

enum fabric_order_kind { FABRIC_ASK, FABRIC_LOAD, FABRIC_START, FABRIC_STOP };
struct fabric_order {
    enum fabric_order_kind kind;
    uint32_t chip; /* label */
    uint16_t chip_number;
    uint32_t number; /* of the session */
    /* FABRIC_LOAD: data must not flow until the start */
    /* owned by the session: valid until tables are built again, or fabric_session_free() */
    const struct route *route;
    uint32_t buffer_bytes[CHIP_PORTS];
    uint8_t parent;   /* port that leads to the root of the clock tree; FABRIC_NO_PORT at the root */
    uint8_t children; /* bits: ports to which the start is passed on */
    int64_t wait_ns;  /* from the start's arrival to the first data */
};

struct fabric_session_summary {
    uint32_t chips, links, dark; /* links counted once for both directions; dark: without light */
    uint32_t rtt_ns_max;
    int64_t tree_ns;           /* from the root to the last chip of the clock tree, one way */
    uint32_t buffer_bytes_max; /* of one port and virtual channel */
    uint32_t reroutes;
    bool from_pattern; /* the tables came from one of the patterns */
    struct error refused; /* why the last pattern was refused; code 0: none was */
    struct proof proof;
};
struct fabric_session;

/* Makes a session in DISCOVER. Copies `terms` and its slice, but not the patterns. Returns ERROR_INVALID if
 * the shape is invalid, its cubes or origin do not fit, or a term is out of range. */
int fabric_session_new(const struct fabric_session_terms *terms, struct fabric_session **ret_session,
                       struct error *error);
void fabric_session_free(struct fabric_session *session);

enum fabric_session_state fabric_session_state(const struct fabric_session *session);
const char *fabric_session_error(const struct fabric_session *session); /* "" if it has not FAILED */
void fabric_session_summary(const struct fabric_session *session, struct fabric_session_summary *ret_summary);

/* Writes the next order to *ret_order. Returns false if there is none until more answers arrive. Orders of
 * one state are independent of each other. The first call after links went down builds and proves tables that
 * avoid all of them. */
bool fabric_session_order(struct fabric_session *session, struct fabric_order *ret_order);

/* Take a chip's answers. Return false, and change nothing, if the answer was not asked for, is late, or was
 * given before. */
bool fabric_session_neighbours(struct fabric_session *session, uint32_t chip,
                               const struct fabric_neighbour neighbours[CHIP_PORTS]);
bool fabric_session_done(struct fabric_session *session, uint32_t chip, enum fabric_order_kind kind,
                         uint32_t number);
bool fabric_session_link_down(struct fabric_session *session, uint32_t chip, uint32_t port);
/* Ends the session, even one that FAILED. Returns false if it is ending or has ended. */
bool fabric_session_stop(struct fabric_session *session);

#endif
