/* gone.h - waits until a deleted object no longer exists. */
#ifndef PHX_CMD_GONE_H
#define PHX_CMD_GONE_H

#include "cmd/client.h"

/* Waits until the object with this uid no longer exists: its name is free, or belongs to another object.
 * Returns EXIT_OK, EXIT_TIMEOUT after a message at `deadline_ns` of client_clock(), or the usual codes. */
int wait_gone(struct client *client, const struct resource *kind, const char *namespace_, struct str name,
              struct str uid, int64_t deadline_ns);

#endif
