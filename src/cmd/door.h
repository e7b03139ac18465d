/* door.h - faults.sock, the socket at which daemons report faults of a machine to its agent
 * (host/agent/faults.c; docs/faults.md).
 */
#ifndef PHX_CMD_DOOR_H
#define PHX_CMD_DOOR_H

#include <stdint.h>

#include "base/error.h"
#include "base/str.h"
#include "host/agent/agent_host.h"

struct door_report {
    const char *code;
    const char *place, *severity, *assertion; /* NULL: the agent's defaults */
    struct str evidence;
    int64_t chip; /* -1: none */
};
/* Writes the path of the socket of the agent with the state directory `state`. */
void door_path(const char *state, char ret_path[AGENT_SOCKET_PATH_MAX + 1]);
/* Reports a fault. Returns ERROR_UNAVAILABLE if no agent answers, and ERROR_INVALID, with the agent's reason,
 * if it refuses the report. */
int door_report(const char *path, const struct door_report *report, struct error *error);

#endif
