/* session_private.h - the internals of session.h, shared by the state machine (session.c), the check of what
 * chips see (session_check.c) and the clock tree (session_clock.c). */
#ifndef PHX_CORE_FABRIC_SESSION_PRIVATE_H
#define PHX_CORE_FABRIC_SESSION_PRIVATE_H

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/session.h"

/* A chip as the session knows it, by its number in the slice. */
struct session_chip {
    uint32_t label;
    uint32_t rtt_ns[CHIP_PORTS];
    uint8_t light;    /* bits: ports that see the expected neighbour */
    uint8_t parent;   /* port towards the root of the clock tree */
    uint8_t children; /* bits */
    bool asked, answered, done;
    int64_t path_ns; /* one-way time from the root */
};

struct fabric_session {
    struct fabric_session_terms terms;
    struct cube_slice slice;
    struct torus torus;
    struct route route;
    struct session_chip *chips;
    uint16_t *queue; /* chips in the order in which they are asked */
    uint32_t queued, sent, answers;
    uint32_t wrong;                   /* number of wrong wires */
    uint16_t place_of[POD_CUBES_MAX]; /* place of each cube; SLICE_CUBES_MAX: not in the slice */
    uint8_t state;
    bool failed;
    bool stale; /* links went down since the tables were built */
    struct fabric_session_summary summary;
    struct error error;
};

/* Converts a label to the chip's number in the slice. Returns false if the slice has no chip with this
 * label. */
bool session_chip_of(const struct fabric_session *session, uint32_t label, uint16_t *ret_chip);

/* Takes a chip's answer, and queues neighbours that were not asked yet. A wrong wire or an impossible answer
 * is counted, and the first one is kept in session->error. */
void session_check_answer(struct fabric_session *session, uint16_t chip, const struct fabric_neighbour *seen);
/* Called after the last answer: kills links that lack light at either end. Returns ERROR_CORRUPT for wrong
 * wires, and ERROR_UNAVAILABLE for a chip that is not reached or, unless the session routes around them, for
 * a link without light. */
int session_check_end(struct fabric_session *session, struct error *error);

/* Makes the clock tree of the live links, which must connect all chips. */
void session_clock_tree(struct fabric_session *session);

#endif
