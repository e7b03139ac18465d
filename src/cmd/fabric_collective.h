/* fabric_collective.h - `phalanx fabric collective`: what collective operations cost on a slice. */
#ifndef PHX_CMD_FABRIC_COLLECTIVE_H
#define PHX_CMD_FABRIC_COLLECTIVE_H

#include "base/str.h"
#include "core/fabric/collective.h"

enum { COLLECTIVE_BYTES_MAX = 1 << 30 };

/* Appends a line, or a JSON object, for each operation and algorithm; `bytes` of each chip, of elements of 4
 * bytes, at most COLLECTIVE_BYTES_MAX. The tables are proved. */
void fabric_collective(struct buf *out, const struct torus *torus, const struct route *route, uint32_t bytes,
                       bool json);

#endif
