/* fabric_drain.h - `phalanx drain` and `uncordon` of a switch or cube of a pod: planned maintenance. */
#ifndef PHX_CMD_FABRIC_DRAIN_H
#define PHX_CMD_FABRIC_DRAIN_H

#include "cmd/client.h"

/* Splits "switch/NAME" or "cube/NAME"; *ret_name points into the text. Returns false if the text names
 * anything else. */
bool fabric_thing(const char *text, const struct resource **ret_kind, struct str *ret_name);
/* Begins or ends the drain, and prints that. Returns an exit code. */
int fabric_set_drain(struct client *client, const struct resource *kind, struct str name, bool drain);
/* Waits until the condition "Drained" or "Ready" has the status True. Returns an exit code: EXIT_TIMEOUT,
 * after a message with the condition's own, at `deadline_ns` of client_clock; EXIT_FAILED if the object was
 * deleted. */
int fabric_wait(struct client *client, const struct resource *kind, struct str name, const char *condition,
                int64_t deadline_ns);

#endif
