/* gone.h - waiting until a deleted object is gone. */
#ifndef PHX_CMD_GONE_H
#define PHX_CMD_GONE_H

#include "cmd/client.h"

/* Returns EXIT_OK when the object with this uid is gone (its name is free, or another object's), EXIT_TIMEOUT
 * (and said so) at `deadline_ns` of client_clock(), else the usual codes. */
int wait_gone(struct client *client, const struct kind *kind, const char *namespace_, struct str name,
              struct str uid, int64_t deadline_ns);

#endif
