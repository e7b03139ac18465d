/* way.h - a pair's way, its connection to what answers it: the leader, over plain HTTP or TLS, or the local
 * API. Private to pair.c and way.c.
 *
 *   WAY_NONE ─ way_begin() ─► WAY_BEGUN ─ connected ─► WAY_OPEN ─ way_close() ─► WAY_CLOSING ─► WAY_NONE
 *      ▲                         │ refused, given up
 *      └─────────────────────────┘
 */
#ifndef PHX_HOST_STANDBY_WAY_H
#define PHX_HOST_STANDBY_WAY_H

#include "host/standby/pair.h"

enum pair_state { PAIR_HEAD, PAIR_HELD, PAIR_ASKED, PAIR_RAW };
enum way_state { WAY_NONE, WAY_BEGUN, WAY_OPEN, WAY_CLOSING };

/* A client and its way to the leader or to the local API. */
struct pair {
    struct pairs *all;
    struct list_node node;
    uv_tcp_t client, leader;
    uv_connect_t connect;
    uint64_t since_ms; /* when the pair entered its state, or last began or ended a write */
    uint8_t state;     /* enum pair_state */
    uint8_t way;       /* enum way_state of `leader` */
    uint8_t open;      /* handles that are not closed yet */
    uint8_t kind;      /* enum pair_kind */
    uint32_t place;    /* the address's place in the listener's crowd; PAIR_NO_PLACE: not accepted here */
    struct relay_client secure;  /* the client of a PAIR_SECURE */
    struct secure_call *calling; /* set in WAY_BEGUN over TLS: `leader` is then not an open handle */
    bool closing;
    bool trusted;              /* the client is a controller: its requests' heads name their clients */
    bool here;                 /* the way leads to the local API */
    bool stale;                /* the way leads to a former leader: it serves the current request only */
    bool client_ended;         /* the client has closed its half, after a whole request */
    bool to_leader, to_client; /* a write is under way */
    bool reads_client, reads_leader;
    bool refused; /* no connection to the leader could be opened: the next tick tries again */
    struct request_bounds request;
    struct answer_bounds answer;
    struct read_rule rule; /* of the request; `here` is cleared if the leader has to answer it */
    bool looked;           /* the state is new enough for the request */
    bool keeps;            /* the request is a write that may be sent again */
    size_t kept_bytes;     /* the write's share of pairs.kept_bytes */
    uint64_t first_ms;     /* when the write was first sent; 0: not yet */
    bool again;            /* the write was sent to an earlier leader too */
    struct buf asked;      /* bytes of a read here, or of a kept write, that has no answer yet */
    struct buf in;         /* bytes from the client, not passed on yet */
    size_t scanned, head_len;
};

/* Opens a way for the current request, unless the pair has one or nobody leads. */
void way_begin(struct pair *pair);
/* Closes the way. pair_go_on() is called once a connection is closed. */
void way_close(struct pair *pair);
/* Cancels a TLS session with the leader that is being opened. Returns false if there is none. */
bool way_hang_up(struct pair *pair);

/* pair.c */
void pair_go_on(struct pair *pair); /* makes all progress that is possible without waiting */
void pair_handle_closed(uv_handle_t *handle);
/* Answers a request that no leader takes, for the reason `why`, and ends the connection: with 503 if the
 * request had no effect, with 504 if that is not known. */
void pair_refuse_untaken(struct pair *pair, const char *why);

#endif
