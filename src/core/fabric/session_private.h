/* session_private.h - the insides of session.h, shared by the state machine (session.c), the check of what
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
    uint8_t light;    /* bits: ports that lead where they should */
    uint8_t parent;   /* in the clock tree */
    uint8_t children; /* bits */
    bool asked, answered, done;
    int64_t path_ns; /* from the root, one way */
};

struct fabric_session {
    struct fabric_session_terms terms;
    struct cube_slice slice;
    struct torus torus;
    struct route route;
    struct session_chip *chips;
    uint16_t *queue; /* chips in the order in which they are asked */
    uint32_t queued, sent, answers;
    uint32_t wrong;                   /* wires */
    uint16_t place_of[POD_CUBES_MAX]; /* of a cube; SLICE_CUBES_MAX: not of the slice */
    uint8_t state;
    bool failed;
    bool stale; /* links went down since the tables were built */
    struct fabric_session_summary summary;
    struct error error;
};

/* The number of a label in the slice; false: the label is not of the slice. */
bool session_chip_of(const struct fabric_session *session, uint32_t label, uint16_t *ret_chip);

/* Takes a chip's answer; lists neighbours that were not asked yet. A wrong wire or an impossible answer is
 * counted, and the first one kept in session->error. */
void session_check_answer(struct fabric_session *session, uint16_t chip, const struct fabric_neighbour *seen);
/* After the last answer: kills links without light at one of their ends. ERROR_UNAVAILABLE, ERROR_CORRUPT:
 * why the session cannot go on. */
int session_check_end(struct fabric_session *session, struct error *error);

/* Makes the clock tree of the live links, which connect all chips. */
void session_clock_tree(struct fabric_session *session);

#endif
