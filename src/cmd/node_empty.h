/* node_empty.h - waits until no pod is left on a node, for `migrate --wait` and `drain`. */
#ifndef PHX_CMD_NODE_EMPTY_H
#define PHX_CMD_NODE_EMPTY_H

#include "cmd/client.h"

/* Appends the query "fieldSelector=..." for the pods on the node that have not ended. */
void node_pods_query(struct buf *out, struct str machine);
/* Watches the pods of the node until none is left, and prints that. Returns EXIT_TIMEOUT if some are left at
 * `deadline_ns`. */
int node_wait_empty(struct client *client, struct str machine, int64_t deadline_ns);
/* Returns NAME of "NAME", or of "node/NAME" with any name of the kind, as `get -o name` prints it. */
struct str node_named(const char *text);
/* Returns EXIT_NOT_FOUND after a message if there is no such node. */
int node_must_exist(struct client *client, struct str machine);

#endif
