/* ring.h - the carrier through shared memory; private to src/flow/wire.
 *
 * A connection over a unix socket begins with it: the connecting side calls wire_ring_offer, and the
 * accepting side wire_ring_accept when the first bytes come.
 */
#ifndef PHX_FLOW_WIRE_RING_H
#define PHX_FLOW_WIRE_RING_H

#include "flow/wire/wire.h"

/* Offers rings to the peer and uses them from now on; where the kernel makes none, the socket stays in use.
 * False: the connection is broken. */
bool wire_ring_offer(struct wire *wire);

/* Looks at the first bytes. 1: the carrier is known, sockets or the rings that were offered; 0: no byte yet;
 * -1: the connection has ended, or the offer is not sound. */
int wire_ring_accept(struct wire *wire);

#endif
