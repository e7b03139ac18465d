/* ucx.h - declarations shared by ucx.c and ucx_hub.c; private to them.
 *
 * Messages have this header, followed by their bytes:
 *
 *     DATA     at: place in the stream                 bytes
 *     CREDIT   at: bytes that this side has read       none
 */
#ifndef PHX_FLOW_WIRE_UCX_H
#define PHX_FLOW_WIRE_UCX_H

#include "base/map.h"
#include "flow/wire/hub.h"
#include "flow/wire/stream.h"
#include "flow/wire/ucx_api.h"

enum { UCX_KEY_BYTES = 16, UCX_VERSION = 1, UCX_MESSAGE = 0 /* id of the one handler */ };
enum ucx_kind { UCX_DATA = 1, UCX_CREDIT };

struct ucx_header {
    uint64_t to; /* the receiver's number of the connection */
    uint8_t key[UCX_KEY_BYTES];
    uint32_t kind, zero;
    uint64_t at;
};
_Static_assert(sizeof(struct ucx_header) == 40, "a message's header has 40 bytes");

/* The bytes of OFFER and ANSWER; the address of the sender's worker follows. */
struct ucx_greeting {
    uint32_t version, zero;
    uint64_t number;
    uint8_t key[UCX_KEY_BYTES];
};
_Static_assert(sizeof(struct ucx_greeting) == 32, "a greeting has 32 bytes");

struct ucx_carrier {
    struct wire_hub *hub;
    struct wire *wire; /* NULL: the wire has been freed; sent bytes are still on their way */
    int fd;
    struct ucx_greeting own, peer;
    ucp_ep_h endpoint; /* NULL: not made yet, or closed */
    struct stream stream;
    uint32_t running;            /* operations of UCX in progress that refer to this carrier */
    bool offered, reads, writes; /* OFFER was sent; which directions have moved */
    bool broken, ready;
    bool ended; /* the peer's stream ends at ends_at */
    uint64_t ends_at;
    char last[sizeof(struct wire_header)]; /* bytes received on the socket after the move */
    size_t last_len;
    int64_t closed_ns;
};

struct wire_hub {
    ucp_context_h context;
    ucp_worker_h worker;
    ucp_address_t *address;
    size_t address_len;
    int fd, worker_fd; /* fd: an epoll set of worker_fd and the sockets of closed carriers */
    bool hosts_alone;  /* WIRE_BY_AUTO: unix sockets do not move to UCX */
    uint64_t numbers;
    struct u64_map by_number;
    VEC(struct ucx_carrier *) carriers;
    VEC(struct ucx_carrier *) ready;
};

/* --- ucx_hub.c */
/* Adds a new carrier to the hub, and gives it a number and a key. */
void hub_add(struct wire_hub *hub, struct ucx_carrier *carrier);
/* Queues the carrier for wire_hub_next. */
void hub_wake(struct wire_hub *hub, struct ucx_carrier *carrier);
/* Removes the carrier from that queue, when its owner has handled it. */
void hub_settle(struct wire_hub *hub, struct ucx_carrier *carrier);
/* Takes over a carrier whose wire is being freed. The hub keeps its socket until the peer has all bytes. */
void hub_let_go(struct wire_hub *hub, struct ucx_carrier *carrier);
/* Makes the endpoint. Returns false if UCX refuses the address. */
bool hub_reach(struct wire_hub *hub, struct ucx_carrier *carrier, struct str address);
/* Sends a message of copied bytes, or of `len` bytes of the tensor from `from` on. */
void hub_send(struct ucx_carrier *carrier, enum ucx_kind kind, uint64_t at, const void *data, size_t len);
void hub_send_tensor(struct ucx_carrier *carrier, uint64_t at, struct tensor *tensor, size_t from,
                     size_t len);

/* --- ucx.c */
/* Reads the socket after the move. Returns false if it has ended, or carries anything but a valid END. */
bool carrier_hear(struct ucx_carrier *carrier);

#endif
