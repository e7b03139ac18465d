/* pair.h - one client of a controller that does not lead, and its connection to the leader or to the local
 * API ("way"). Private to standby.
 *
 *     pair_begin(all, kind, fd, ...)   the pair owns the socket
 *     pair_follow(pair)                after the leader has changed
 *     pair_tick(pair, now_ms)          every few milliseconds, for time limits
 *     pair_close(pair)                 then run the loop; the pair frees itself
 *
 * The forwarder owns what all pairs share. It changes `struct pairs`, then notifies each pair.
 */
#ifndef PHX_HOST_STANDBY_PAIR_H
#define PHX_HOST_STANDBY_PAIR_H

#include "host/standby/bounds.h"
#include "host/standby/internal.h"
#include "host/standby/rule.h"
#include "host/standby/secure.h"
#include "net/crowd.h"

enum {
    PAIR_READ_BYTES = 64 << 10,
    PAIR_NO_PLACE = CROWD_PLACES, /* the client was not accepted by this forwarder's listener */
};

struct pair;

enum pair_kind {
    PAIR_PLAIN,  /* plain HTTP, also to the leader */
    PAIR_SECURE, /* the client's TLS ends in our relay; requests go to the leader over TLS of our own */
    PAIR_BYTES,  /* the client's TLS ends at the leader: bytes are passed both ways */
};

/* All clients, and what they share. */
struct pairs {
    uv_loop_t *loop;
    struct list_node list;
    uint32_t count;
    bool has_leader, leaving;
    struct sockaddr_storage leader;
    bool repeats;                /* as forward_repeats() */
    uint64_t key, keys;          /* idempotency keys: the random part, and how many were issued */
    size_t kept_bytes;           /* memory reserved for writes that may be sent again */
    struct secure *secure;       /* NULL: plain HTTP alone */
    struct forward_reads reads;  /* `connect` NULL: the leader answers all requests */
    void (*left)(void *context, uint32_t place); /* an accepted client has left */
    void *context;
    struct http_head head;      /* scratch */
    char room[PAIR_READ_BYTES]; /* read buffer of all pairs: its bytes are used or copied at once */
};

/* Takes over a connected client and the bytes that it has sent. `tls` describes the client of a PAIR_SECURE,
 * and is copied. `place` is the client address's place in a crowd (net/crowd.h), which the pair passes to
 * pairs.left when it ends; for PAIR_NO_PLACE it calls nothing. Returns NULL, and leaves the socket to the
 * caller, if the socket cannot be used. */
struct pair *pair_begin(struct pairs *all, enum pair_kind kind, int fd, uint32_t place, struct str bytes,
                        const struct relay_client *tls);
void pair_close(struct pair *pair);
/* Returns the pair after `pair` (the first one for NULL), or NULL at the end of the list. The loop over all
 * pairs may call pair_close(). */
struct pair *pairs_next(const struct pairs *all, const struct pair *pair);
void pair_tick(struct pair *pair, uint64_t now_ms);
/* Ends the answer of a watch that is between two lines, so that its client asks another controller. Used
 * while the process leaves. */
void pair_end_watch(struct pair *pair);
struct pair_leaving {
    uint64_t now_ms, spent_ms, grace_ms; /* the loop's time; since leaving began; idle for less: kept */
    bool graced, over;                   /* idle clients are closed; all clients are */
};
/* Closes the client while the process leaves, if its time has expired. Answers 503 if its request has waited
 * too long for a leader. */
void pair_leave(struct pair *pair, const struct pair_leaving *leaving);
void pair_follow(struct pair *pair);                                /* pairs.leader has changed */
void pair_reads_over(struct pair *pair);                            /* pairs.reads was removed */
void pair_looked(struct pair *pair, bool newest, uint64_t version); /* as forward_looked() */

#endif
