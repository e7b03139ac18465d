/* fabric_switches.h - finds the optical switches that a command line of `phalanx fabric` names. */
#ifndef PHX_CMD_FABRIC_SWITCHES_H
#define PHX_CMD_FABRIC_SWITCHES_H

#include "host/fabric/switches.h"

/* Finds the number of cubes of a pod in a cluster file. `in` is the pod's name; NULL: its only pod with
 * switches. Returns false, after a message, if there is no such pod. */
bool fabric_switches_pod(const char *cluster, const char *in, uint32_t *ret_cubes);
/* Reads the switches from a cluster file or, if `cluster` is NULL, from a list. *ret_cubes (may be NULL)
 * receives the number of cubes of the file's pod; a list leaves it untouched. Returns false, after a message,
 * on failure. */
bool fabric_switches_find(const char *list, const char *cluster, const char *in,
                          struct switches *ret_switches, uint32_t *ret_cubes);

#endif
