/* ring.h - the carrier over shared memory; private to src/flow/wire.
 *
 * A connection over a unix socket begins with it: the connecting side calls wire_ring_offer, the accepting
 * side calls wire_ring_accept when the first bytes have arrived.
 */
#ifndef PHX_FLOW_WIRE_RING_H
#define PHX_FLOW_WIRE_RING_H

#include "flow/wire/wire.h"

/* Offers rings to the peer and uses them from now on. If the kernel cannot make them, the socket stays in
 * use. Returns false if the connection is broken. */
bool wire_ring_offer(struct wire *wire);

/* Inspects the first bytes. Returns 1 if the carrier is known (sockets, or the rings that were offered), 0 if
 * no byte has arrived, or -1 if the connection has ended or the offer is invalid. */
int wire_ring_accept(struct wire *wire);

#endif
