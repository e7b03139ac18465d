/* carry.h - one connection of a relay (relay.h): its handshake, and its bytes in both directions. Private to
 * relay.c. A connection belongs to one thread at a time; nothing here blocks.
 *
 *   CARRY_SHAKES ─ handshake over ─► CARRY_HEARS ─ first bytes ─► CARRY_FLOWS ─ server ended ─► CARRY_PARTS
 *   CARRY_PARTS ─ the client was told ─► CARRY_ENDS
 *
 * A connection is over when it breaks, in each stage, when it stays too long in one but CARRY_FLOWS, and when
 * the client's side ends in CARRY_ENDS.
 */
#ifndef PHX_HOST_API_CARRY_H
#define PHX_HOST_API_CARRY_H

#include "base/list.h"
#include "host/api/relay.h"

enum carry_stage {
    CARRY_SHAKES,
    CARRY_HEARS,
    CARRY_FLOWS,
    CARRY_PARTS, /* TLS's close_notify waits for room in the client's socket */
    CARRY_ENDS
};
enum { CARRY_CHUNK_BYTES = 16 * 1024 }; /* the most that a record holds */

struct carry;
struct carry_end {
    struct carry *carry;
    int fd;          /* -1: none */
    uint32_t events; /* that the thread's epoll set waits for; 0: it does not have the descriptor */
    bool hung;       /* the other side has closed it */
};

struct carry {
    struct relay *relay;
    struct list_node node; /* of its thread, the oldest first */
    struct list_node news; /* of the relay */
    struct carry_end outer, inner;
    gnutls_session_t session; /* NULL: it has not begun */
    enum carry_stage stage;
    size_t unread_bytes; /* received since the last byte of a request */
    int64_t since_ns;    /* when its thread took it, the server's end hung up, or it parted or ended */
    struct buf held;  /* plain bytes that the server has not taken yet; at most CARRY_CHUNK_BYTES */
    size_t held_sent;
    struct buf waiting; /* plain bytes that the client has not taken yet; likewise */
    size_t waiting_sent;
    bool outer_ended; /* the client sends no more */
    /* Members of the loop: */
    uint32_t place; /* in the crowd */
    bool shaking;   /* counted there */
    bool told;      /* hooks.ready was called */
    /* Under the relay's mutex: */
    struct relay_client client; /* fd -1: not ready, or handed out */
    bool ready, gone;
    struct error *why; /* a connection of relay_connect() that fails; NULL: the cause is not known */
};

/* Moves what can be moved; false: the connection is over. `chunk` has CARRY_CHUNK_BYTES. */
bool carry_go_on(struct carry *carry, struct api_tls *tls, char *chunk);
/* The events to wait for now. */
uint32_t carry_outer_events(const struct carry *carry);
uint32_t carry_inner_events(const struct carry *carry);
/* Ends the session and closes the descriptors, but for client.fd. */
void carry_close(struct carry *carry, struct api_tls *tls);

#endif
