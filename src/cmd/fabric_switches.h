/* fabric_switches.h - the optical switches that a command line of `phalanx fabric` means. */
#ifndef PHX_CMD_FABRIC_SWITCHES_H
#define PHX_CMD_FABRIC_SWITCHES_H

#include "host/fabric/switches.h"

/* Finds the pod of a cluster file, and the number of its cubes; false, after a message. `in`: the pod's name;
 * NULL: its only pod with switches. */
bool fabric_switches_pod(const char *cluster, const char *in, uint32_t *ret_cubes);
/* Takes the switches from a cluster file, or else (`cluster` NULL) from a list; false, after a message.
 * *ret_cubes: of the file's pod; a list leaves it as it was. NULL: not wanted. */
bool fabric_switches_find(const char *list, const char *cluster, const char *in,
                          struct switches *ret_switches, uint32_t *ret_cubes);

#endif
