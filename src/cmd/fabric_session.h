/* fabric_session.h - `phalanx fabric session`: brings a slice up on emulated chips, sends packets through it,
 * and ends it. */
#ifndef PHX_CMD_FABRIC_SESSION_H
#define PHX_CMD_FABRIC_SESSION_H

#include "core/fabric/session.h"

struct session_order {
    struct cube_slice slice;
    bool switch_out[POD_SWITCHES]; /* true: dead, and the session routes around it */
    bool crossed;                  /* two wires are crossed: the plus ends of these cubes, at this switch */
    struct pod_switch crossed_at;
    uint16_t crossed_cubes[2];
    bool json;
};

/* Runs the session and prints its result. Returns EXIT_OK, or EXIT_FAILED after a message if the session
 * fails. */
int fabric_session_emulate(const struct session_order *order);

#endif
