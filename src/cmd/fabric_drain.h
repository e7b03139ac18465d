/* fabric_drain.h - `phalanx drain` and `uncordon` of a switch or cube of a pod: planned maintenance. */
#ifndef PHX_CMD_FABRIC_DRAIN_H
#define PHX_CMD_FABRIC_DRAIN_H

#include "cmd/client.h"

/* Takes "switch/NAME" or "cube/NAME" apart; false: the text names something else. *ret_name points into
 * it. */
bool fabric_thing(const char *text, const struct resource **ret_kind, struct str *ret_name);
/* Asks for the drain, or ends it, and tells. Returns an exit code. */
int fabric_set_drain(struct client *client, const struct resource *kind, struct str name, bool drain);
/* Waits until the condition has the status True, "Drained" or "Ready". Returns an exit code; EXIT_TIMEOUT at
 * `deadline_ns` of client_clock, with what is waited for. */
int fabric_wait(struct client *client, const struct resource *kind, struct str name, const char *condition,
                int64_t deadline_ns);

#endif
