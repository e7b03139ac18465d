/* session.h - brings up the chip network of one slice, keeps it, and ends it: a state machine without I/O.
 *
 *     fabric_session_new(&terms, &session, &error)
 *     while (fabric_session_order(session, &order)) carry it out on order.chip
 *     fabric_session_neighbours(session, chip, neighbours)     what a chip sees at its six ports
 *     fabric_session_done(session, chip, kind, number)         an order of this session number is done
 *     fabric_session_link_down(session, chip, port)            light went
 *     fabric_session_stop(session)
 *
 *   DISCOVER ─► LOAD ─► START ─► RUN ─► STOP ─► ENDED
 *                ▲─────────┴──────┘ a link is down: new tables, a new session number
 *   any state ─► FAILED: fabric_session_error() names what is wrong
 *
 * DISCOVER asks chips for their neighbours, breadth first from the slice's first chip. A chip is known by its
 * label, 64 x cube + place in the cube. Each answer is compared with the shape and the cubes that were
 * requested: a link that leads to another chip or port is a wrong wire, even if the whole would be a torus.
 * Links that lead out of a part of a cube are other slices', and nothing is said of them.
 * LOAD gives each chip its number in the slice, the session number, tables that are built and proved for the
 * links with light, a flow-control buffer for each port, and its place in the clock tree. START begins at the
 * root of the tree, the slice's first chip: each chip passes it on, waits `wait_ns` and then lets data flow,
 * so that all chips begin at the same moment. STOP takes the tables away.
 *
 * Buffers hold what a link carries in one round trip, and one packet more. The clock tree is a minimum
 * spanning tree of the live links by round-trip time (Prim 1957); of equal links the one nearest to the root
 * is taken.
 *
 * Session numbers: packets carry them, and chips refuse packets of other numbers. A session uses `number`,
 * and one more for each re-route: callers leave FABRIC_REROUTES_MAX numbers between sessions. Answers under
 * an old number are not taken, answers that come twice change nothing.
 *
 * A session has one owner. Its functions are pure: equal calls give equal orders.
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
    FABRIC_RTT_NS_MAX = 1000000, /* a longer round trip is not believed */
    FABRIC_BYTES_PER_US_MAX = 10000000,
    FABRIC_NO_PORT = 0xff,
};

struct fabric_session_terms {
    const struct cube_slice *slice; /* the shape, and the cube at each place */
    uint8_t origin[AXES];           /* of a part of a cube: its first chip there; else 0 */
    uint32_t number;                /* of the session, see above */
    uint32_t bytes_per_us;          /* of a link, 1 to FABRIC_BYTES_PER_US_MAX: 50,000 at 50 GB/s */
    uint32_t packet_bytes;          /* the largest packet */
    bool route_around;              /* links without light are routed around; else they fail the session */
    const struct str *patterns;     /* solved patterns (pattern.h) that may fit, borrowed */
    uint32_t pattern_count;
};

/* The neighbour that a chip sees at one port. */
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
    const struct route *route; /* valid until the next load, or the end of the session */
    uint32_t buffer_bytes[CHIP_PORTS];
    uint8_t parent;   /* port that leads to the root of the clock tree; FABRIC_NO_PORT at the root */
    uint8_t children; /* bits: ports to which the start is passed on */
    int64_t wait_ns;  /* from the start's arrival to the first data */
};

struct fabric_session_summary {
    uint32_t chips, links, dark; /* links in one direction each way counted once; without light */
    uint32_t rtt_ns_max;
    int64_t tree_ns;           /* from the root to the last chip of the clock tree, one way */
    uint32_t buffer_bytes_max; /* of one port and virtual channel */
    uint32_t reroutes;
    bool from_pattern; /* the tables came from one of the patterns */
    struct error refused; /* why the last of the patterns did not serve; code 0: none was refused */
    struct proof proof;
};
struct fabric_session;

/* ERROR_INVALID: the shape is none, its cubes or origin do not fit, or the terms are out of range. */
int fabric_session_new(const struct fabric_session_terms *terms, struct fabric_session **ret_session,
                       struct error *error);
void fabric_session_free(struct fabric_session *session);

enum fabric_session_state fabric_session_state(const struct fabric_session *session);
const char *fabric_session_error(const struct fabric_session *session); /* "" unless it FAILED */
void fabric_session_summary(const struct fabric_session *session, struct fabric_session_summary *ret_summary);

/* The next order; false: wait for answers. Orders of a state are independent of each other. The first order
 * after links went down builds and proves the tables for all of them. */
bool fabric_session_order(struct fabric_session *session, struct fabric_order *ret_order);

/* Answers. False: the answer was not asked for, is late, or comes a second time; nothing has changed. */
bool fabric_session_neighbours(struct fabric_session *session, uint32_t chip,
                               const struct fabric_neighbour neighbours[CHIP_PORTS]);
bool fabric_session_done(struct fabric_session *session, uint32_t chip, enum fabric_order_kind kind,
                         uint32_t number);
bool fabric_session_link_down(struct fabric_session *session, uint32_t chip, uint32_t port);
/* Ends the session, also one that FAILED; false: it ends or has ended. */
bool fabric_session_stop(struct fabric_session *session);

#endif
