/* fabric_collective.h - `phalanx fabric collective`: the cost of collective operations on a slice. */
#ifndef PHX_CMD_FABRIC_COLLECTIVE_H
#define PHX_CMD_FABRIC_COLLECTIVE_H

#include "base/str.h"
#include "core/fabric/collective.h"

enum { COLLECTIVE_BYTES_MAX = 1 << 30 };

/* Appends a line, or a JSON object, for each operation and algorithm. Each chip has `bytes` of data, at most
 * COLLECTIVE_BYTES_MAX, in elements of 4 bytes. The tables must have been proved. */
void fabric_collective(struct buf *out, const struct torus *torus, const struct route *route, uint32_t bytes,
                       bool json);

#endif
