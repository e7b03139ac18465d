/* pair.h - a client of a controller that does not lead, and its way to whoever answers. Private to standby.
 *
 *     pair_begin(all, fd, ...)     the socket is the pair's from now on
 *     pair_follow(pair)            another one leads, or nobody
 *     pair_tick(pair, now_ms)      now and then
 *     pair_close(pair)             the loop must be run afterwards; the pair frees itself
 *
 * The forwarder owns what all pairs share: it changes that and then tells each of them.
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
    PAIR_NO_PLACE = CROWD_PLACES, /* of a client that was not accepted here */
};

struct pair;

enum pair_kind {
    PAIR_PLAIN,  /* plain HTTP, also to the leader */
    PAIR_SECURE, /* the client's TLS ends in a relay of ours, and its requests go to the leader over TLS */
    PAIR_BYTES,  /* the client's TLS ends at the leader */
};

/* All clients, and what they share. */
struct pairs {
    uv_loop_t *loop;
    struct list_node list;
    uint32_t count;
    bool has_leader, leaving;
    struct sockaddr_storage leader;
    bool repeats;                /* as forward_repeats() */
    uint64_t key, keys;          /* of keys: the random part, and how many were given */
    size_t kept_bytes;           /* of writes that may be sent again */
    struct secure *secure;       /* NULL: plain HTTP alone */
    struct forward_reads reads;  /* `connect` NULL: all requests are the leader's */
    void (*left)(void *context, uint32_t place); /* a client that was accepted is gone */
    void *context;
    struct http_head head;      /* scratch */
    char room[PAIR_READ_BYTES]; /* what is read is used or copied at once */
};

/* Takes a connected client and the bytes that it has sent. `tls`: what is known of a PAIR_SECURE. `place`:
 * its address' in a crowd (net/crowd.h), of which pairs.left tells at its end; PAIR_NO_PLACE: that is not
 * called. NULL: the socket cannot be used, and stays the caller's. */
struct pair *pair_begin(struct pairs *all, enum pair_kind kind, int fd, uint32_t place, struct str bytes,
                        const struct relay_client *tls);
void pair_close(struct pair *pair);
/* Returns the pair behind `pair`, NULL: the first; NULL: there is none. Pairs may be closed on the way. */
struct pair *pairs_next(const struct pairs *all, const struct pair *pair);
void pair_tick(struct pair *pair, uint64_t now_ms);
/* Leaving: a watch that stands between two lines ends here; its client asks another controller. */
void pair_end_watch(struct pair *pair);
/* Leaving: closes a client that begins no request, and refuses one that nobody takes. */
struct pair_leaving {
    uint64_t now_ms, spent_ms, grace_ms;
    bool graced, over; /* who begins nothing is closed; everybody is */
};
void pair_leave(struct pair *pair, const struct pair_leaving *leaving);
void pair_follow(struct pair *pair);                                /* pairs.leader has changed */
void pair_reads_over(struct pair *pair);                            /* pairs.reads was taken away */
void pair_looked(struct pair *pair, bool newest, uint64_t version); /* as forward_looked() */

#endif
