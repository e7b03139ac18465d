/* fabric_session.h - `phalanx fabric session`: brings a slice up on emulated chips, sends packets through it,
 * and ends it. */
#ifndef PHX_CMD_FABRIC_SESSION_H
#define PHX_CMD_FABRIC_SESSION_H

#include "core/fabric/session.h"

struct session_order {
    struct cube_slice slice;
    bool switch_out[POD_SWITCHES]; /* dead: the session routes around them */
    bool crossed;                  /* two wires are: the plus ends of these cubes, at this switch */
    struct pod_switch crossed_at;
    uint16_t crossed_cubes[2];
    bool json;
};

/* Prints what came of it; returns EXIT_FAILED, after a message, for a session that fails. */
int fabric_session_emulate(const struct session_order *order);

#endif
