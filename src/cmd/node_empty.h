/* node_empty.h - waiting until no pod is left on a node, as `migrate --wait` and `drain` do. */
#ifndef PHX_CMD_NODE_EMPTY_H
#define PHX_CMD_NODE_EMPTY_H

#include "cmd/client.h"

/* "fieldSelector=...": the pods on the node that have not ended. */
void node_pods_query(struct buf *out, struct str machine);
/* Follows the pods of the node until none is left, and says so. EXIT_TIMEOUT: some were at `deadline_ns`. */
int node_wait_empty(struct client *client, struct str machine, int64_t deadline_ns);
/* Returns NAME of "NAME", or of "node/NAME" with any name of the kind, as `get -o name` prints it. */
struct str node_named(const char *text);
/* Returns EXIT_NOT_FOUND after a message if there is no such node. */
int node_must_exist(struct client *client, struct str machine);

#endif
