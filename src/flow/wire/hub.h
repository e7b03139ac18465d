/* hub.h - UCX for the connections of one thread: shared memory, TCP or RDMA, as UCX selects.
 *
 *     struct wire_hub *hub;                                   // NULL: only sockets and rings
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
 * OFFER and ANSWER contain the address of the sender's UCX worker, a number for the connection and its key of
 * 16 random bytes. Every message carries the number and the key. Messages to the ports of UCX without a valid
 * key are therefore ignored. A peer that the owner does not trust never receives an OFFER, and none of its
 * bytes reaches UCX. The socket stays open: its end is the peer's end, as with rings.
 *
 * Bytes travel as active messages. Frames are copied. Tensors are sent from their own memory by rendezvous,
 * in which the receiver reads the sender's memory directly if the hardware can. At most STREAM_WINDOW bytes
 * of a connection are in flight or unread.
 *
 * Files.
 *     stream.c      order and window; independent of UCX
 *     ucx.c         the carrier: steps, reading, writing, ends
 *     ucx_hub.c     the worker of UCX, its messages and events
 *     ucx_api.c     libucp, loaded on first use
 *     ucx_none.c    replaces these three if <ucp/api/ucp.h> is not installed
 *
 * A hub is used by one thread at a time. UCX starts a thread of its own for its connections.
 */
#ifndef PHX_FLOW_WIRE_HUB_H
#define PHX_FLOW_WIRE_HUB_H

#include "flow/wire/wire.h"

/* The transport of connections between two processes that both support it. */
enum wire_transport {
    WIRE_BY_SOCKET, /* sockets, and rings on one machine */
    WIRE_BY_UCX,    /* UCX, also on one machine */
    WIRE_BY_AUTO,   /* UCX for HOST:PORT if this machine has RDMA hardware, otherwise as WIRE_BY_SOCKET */
};
enum { WIRE_HUB_AGAIN_MS = 1 };

struct wire_hub;

/* Reads "socket", "ucx" or "auto". Returns false for any other name. */
bool wire_transport_parse(const char *name, enum wire_transport *ret);

/* Sets *ret_hub, to NULL for WIRE_BY_SOCKET, and for WIRE_BY_AUTO if UCX would not help or cannot start.
 * Returns ERROR_UNSUPPORTED if this build has no UCX or libucp cannot be loaded, ERROR_IO if UCX cannot start
 * here, or ERROR_LIMIT if its address is too long. */
int wire_hub_new(enum wire_transport transport, struct wire_hub **ret_hub, struct error *error);
/* Frees a hub whose wires have been freed. Waits up to 2 s until peers have received the bytes sent to them,
 * and up to 2 s more for the forced end of the others. NULL allowed. */
void wire_hub_free(struct wire_hub *hub);

/* As flow_wire_connect; with a hub the connection moves to UCX if the peer offers that. */
int wire_hub_connect(struct wire_hub *hub, const char *address, struct wire **ret_wire, struct error *error);
/* Offers UCX to a peer that has connected and announced it; the caller flushes the wire. Does nothing for
 * other peers, or without a hub. */
void wire_hub_offer(struct wire_hub *hub, struct wire *wire);

/* Returns a descriptor that is readable when wire_hub_turn has work. */
int wire_hub_fd(const struct wire_hub *hub);
/* Lets UCX make progress. Returns true if the owner may wait for the descriptor. Otherwise the owner should
 * call again at once if wire_hub_next has something, or after WIRE_HUB_AGAIN_MS. */
bool wire_hub_turn(struct wire_hub *hub);
/* Returns a wire that has bytes to read or space to write, or has broken, since it was last returned; NULL if
 * there is none. */
struct wire *wire_hub_next(struct wire_hub *hub);

#endif
