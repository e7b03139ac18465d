/* fabric_live.h - plans of cross-connects, compared with real switches and carried out on them. */
#ifndef PHX_CMD_FABRIC_LIVE_H
#define PHX_CMD_FABRIC_LIVE_H

#include "core/fabric/crossconnect.h"

enum live_action {
    LIVE_DIFF,  /* says what would change */
    LIVE_APPLY, /* forms the slice */
    LIVE_CLEAR, /* takes all cross-connects of the cubes away */
};
struct live_order {
    enum live_action action;
    const char *list;         /* file with the switches (host/fabric/switches.h), or else */
    const char *cluster, *in; /* cluster file, and the pod's name; NULL: its only pod with switches */
    struct slice_shape shape; /* but for LIVE_CLEAR */
    const uint16_t *cubes;
    uint32_t cube_count, pod;
    struct crossconnect_limits *limits;
    uint32_t timeout_ms, attempts;
    bool keep; /* leaves what was applied when a switch fails; else takes it back */
    bool json;
};

/* Prints what was done and returns an exit code: EXIT_FAILED if the slice is not as asked for, or for
 * LIVE_DIFF if something would change. */
int fabric_live(const struct live_order *order);

#endif
