/* describe.h - parts of `phalanx describe`. */
#ifndef PHX_CMD_DESCRIBE_H
#define PHX_CMD_DESCRIBE_H

#include "cmd/client.h"

/* Returns true if the event is about this object, or about a Job or Pod of it. An event about an earlier
 * object of the same name is not. */
bool describe_is_about(const struct doc *event, const struct resource *kind, const struct doc *object);
/* Fetches and appends the events of the object (describe_events.c); prints an error of the server. */
void describe_events(struct client *client, struct buf *out, const struct resource *kind,
                     const struct doc *object);

#endif
