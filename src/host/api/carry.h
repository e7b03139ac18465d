/* carry.h - one connection of a relay (relay.h): its handshake, and its bytes in both directions. Private to
 * relay.c. A connection belongs to one thread at a time; nothing here blocks.
 *
 *   CARRY_SHAKES ─ handshake done ─► CARRY_HEARS ─ first bytes ─► CARRY_FLOWS ─ server ended ─► CARRY_PARTS
 *   CARRY_PARTS ─ close_notify sent ─► CARRY_ENDS
 *
 * A connection of relay_connect() goes from CARRY_SHAKES to CARRY_FLOWS directly. A connection ends when it
 * breaks, when it stays too long in any stage but CARRY_FLOWS, and when the client closes it in CARRY_ENDS.
 */
#ifndef PHX_HOST_API_CARRY_H
#define PHX_HOST_API_CARRY_H

#include "base/list.h"
#include "host/api/relay.h"

enum carry_stage {
    CARRY_SHAKES,
    CARRY_HEARS,
    CARRY_FLOWS,
    CARRY_PARTS, /* TLS's close_notify waits for space in the client's socket */
    CARRY_ENDS
};
enum { CARRY_CHUNK_BYTES = 16 * 1024 }; /* the most that a TLS record holds */

struct carry;
struct carry_end {
    struct carry *carry;
    int fd;          /* -1: none */
    uint32_t events; /* what the thread's epoll set waits for; 0: the descriptor is not in the set */
    bool hung;       /* the other side has closed it */
};

struct carry {
    struct relay *relay;
    struct list_node node;         /* in its thread's list */
    struct list_node news;         /* in the relay's list */
    struct carry_end outer, inner; /* the client's socket; our end of the pair of sockets */
    gnutls_session_t session;      /* NULL: not begun */
    enum carry_stage stage;
    size_t unread_bytes; /* received since the last byte of a request */
    int64_t since_ns;    /* when the thread took it, the server hung up, or CARRY_PARTS or CARRY_ENDS began */
    struct buf held;     /* plain bytes that the server has not taken yet; at most CARRY_CHUNK_BYTES */
    size_t held_sent;
    struct buf waiting; /* plain bytes that the client has not taken yet; at most CARRY_CHUNK_BYTES */
    size_t waiting_sent;
    bool outer_ended; /* the client sends no more */
    /* Only for the loop's thread: */
    uint32_t place; /* the address's place in the relay's crowd */
    bool shaking;   /* counted there, as a handshake */
    bool told;      /* hooks.ready was called */
    /* Under the relay's mutex: */
    struct relay_client client; /* fd -1: not ready, or handed out */
    bool ready, gone;
    struct error *why; /* why a connection of relay_connect() has failed; NULL: unknown */
};

/* Moves what can be moved without waiting. Returns false if the connection has ended. `chunk` is scratch
 * memory of CARRY_CHUNK_BYTES. */
bool carry_go_on(struct carry *carry, struct api_tls *tls, char *chunk);
/* Return the epoll events to wait for now on the client's socket, and on our end of the pair. */
uint32_t carry_outer_events(const struct carry *carry);
uint32_t carry_inner_events(const struct carry *carry);
/* Ends the session and closes the descriptors, except client.fd. */
void carry_close(struct carry *carry, struct api_tls *tls);

#endif
