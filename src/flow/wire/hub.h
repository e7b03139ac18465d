/* hub.h - UCX for the connections of one thread: shared memory, TCP or RDMA, as UCX finds best.
 *
 *     struct wire_hub *hub;                                   // NULL: sockets and rings alone
 *     rc = wire_hub_new(WIRE_BY_UCX, &hub, &error);
 *     rc = wire_hub_connect(hub, address, &wire, &error);     // the connecting side
 *     wire_hub_offer(hub, wire);                              // the other side, once it trusts the peer
 *     bool rests = wire_hub_turn(hub);                        // before each wait for wire_hub_fd(hub)
 *     while ((wire = wire_hub_next(hub))) ...                 // read and flush it
 *
 * A connection begins on a socket and moves to UCX between two frames, in four steps:
 *
 *     connecting side                                accepting side
 *     ANNOUNCE, HELLO ...      ──── socket ───►
 *                              ◄─── socket ────      OFFER, once the owner trusts the peer
 *     ANSWER                   ──── socket ───►
 *     frames                   ════   UCX  ═══►
 *                              ◄─── socket ────      SWITCH
 *                              ◄═══   UCX  ════      frames
 *     END                      ──── socket ───►      (or the other way round)
 *
 * OFFER and ANSWER hold the address of the sender's UCX worker, a number for the connection and 16 random
 * bytes, its key. Every message names the number and bears the key, so whoever reaches the ports of UCX
 * without having been sent a key is heard by nobody. A peer that the owner does not trust never sees an
 * OFFER, and none of its bytes reaches UCX. The socket stays: its end is the peer's end, as with rings.
 *
 * Bytes go as active messages: those of frames are copied, tensors are sent from where they are, by
 * rendezvous, in which the receiver gets them from the sender's memory where the hardware can. At most
 * STREAM_WINDOW bytes of a connection are on their way or unread.
 *
 * Files.
 *     stream.c      order and window; no UCX
 *     ucx.c         the carrier: steps, reading, writing, ends
 *     ucx_hub.c     the worker of UCX, its messages and events
 *     ucx_api.c     libucp, loaded when it is first needed
 *     ucx_none.c    in place of these three where <ucp/api/ucp.h> is not installed
 *
 * One thread at a time. UCX starts a thread of its own for its connections.
 */
#ifndef PHX_FLOW_WIRE_HUB_H
#define PHX_FLOW_WIRE_HUB_H

#include "flow/wire/wire.h"

/* How connections between processes that both can do it go. */
enum wire_transport {
    WIRE_BY_SOCKET, /* sockets, and rings on one machine */
    WIRE_BY_UCX,    /* UCX, also on one machine */
    WIRE_BY_AUTO,   /* UCX for HOST:PORT where this machine has RDMA hardware, else as WIRE_BY_SOCKET */
};
enum { WIRE_HUB_AGAIN_MS = 1 };

struct wire_hub;

/* Reads "socket", "ucx" or "auto". */
bool wire_transport_parse(const char *name, enum wire_transport *ret);

/* *ret_hub is NULL for WIRE_BY_SOCKET, and for WIRE_BY_AUTO where UCX cannot help. ERROR_UNSUPPORTED: this
 * build has no UCX, or libucp cannot be loaded; ERROR_IO: UCX cannot start here. */
int wire_hub_new(enum wire_transport transport, struct wire_hub **ret_hub, struct error *error);
/* After its wires were freed. Waits until peers have what was sent to them, 2 s at most. NULL allowed. */
void wire_hub_free(struct wire_hub *hub);

/* As flow_wire_connect; with a hub the connection moves to UCX if the peer offers that. */
int wire_hub_connect(struct wire_hub *hub, const char *address, struct wire **ret_wire, struct error *error);
/* Offers UCX to a peer that has connected and announced it; the caller flushes the wire. Nothing happens for
 * another peer, or without a hub. */
void wire_hub_offer(struct wire_hub *hub, struct wire *wire);

/* Readable: wire_hub_turn has something to do. */
int wire_hub_fd(const struct wire_hub *hub);
/* Lets UCX work. Returns whether its owner may wait for the descriptor; else it should come back at once if
 * wire_hub_next has something, or after WIRE_HUB_AGAIN_MS. */
bool wire_hub_turn(struct wire_hub *hub);
/* A wire that has bytes to read, room to write, or has broken, since it was last named; NULL: no more. */
struct wire *wire_hub_next(struct wire_hub *hub);

#endif
