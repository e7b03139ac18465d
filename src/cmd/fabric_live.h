/* fabric_live.h - compares plans of cross-connects with real switches, and carries them out. */
#ifndef PHX_CMD_FABRIC_LIVE_H
#define PHX_CMD_FABRIC_LIVE_H

#include "core/fabric/crossconnect.h"

enum live_action {
    LIVE_DIFF,  /* prints what would change */
    LIVE_APPLY, /* forms the slice */
    LIVE_CLEAR, /* removes all cross-connects of the cubes */
};
struct live_order {
    enum live_action action;
    const char *list;         /* file with the switches (host/fabric/switches.h); NULL: `cluster` has them */
    const char *cluster, *in; /* cluster file, and the pod's name; NULL: its only pod with switches */
    struct slice_shape shape; /* not for LIVE_CLEAR */
    const uint16_t *cubes;
    uint32_t cube_count, pod;
    struct crossconnect_limits *limits;
    uint32_t timeout_ms, attempts;
    bool keep; /* if a switch fails, keeps what was applied; otherwise undoes it */
    bool json;
};

/* Carries out the order, prints the result and returns an exit code: EXIT_FAILED if the slice is not as
 * ordered, or for LIVE_DIFF if anything would change. */
int fabric_live(const struct live_order *order);

#endif
