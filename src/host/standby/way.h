/* way.h - a pair's way to whoever answers it: the leader, over plain HTTP or TLS, or the API here. Private to
 * pair.c and way.c.
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

/* A client and its way to the leader, or to the API here. */
struct pair {
    struct pairs *all;
    struct list_node node;
    uv_tcp_t client, leader;
    uv_connect_t connect;
    uint64_t since_ms; /* when it came to its state, or last passed bytes */
    uint8_t state;     /* enum pair_state */
    uint8_t way;       /* enum way_state of `leader` */
    uint8_t open;      /* handles that are not closed yet */
    uint8_t kind;      /* enum pair_kind */
    uint32_t place;    /* of its address, which our listener counts; PAIR_NO_PLACE: not accepted here */
    struct relay_client secure;  /* of a PAIR_SECURE */
    struct secure_call *calling; /* WAY_BEGUN over TLS: `leader` is no handle then */
    bool closing;
    bool trusted;              /* the client is a controller: its requests' heads name their clients */
    bool here;                 /* the way is to the API here */
    bool stale;                /* the way is to a former leader: it serves the request at hand, no other */
    bool client_ended;         /* its half of the connection, behind a whole request */
    bool to_leader, to_client; /* a write is under way */
    bool reads_client, reads_leader;
    bool refused; /* the leader's computer took no connection: the next tick tries again */
    struct request_bounds request;
    struct answer_bounds answer;
    struct read_rule rule; /* of the request; `here` is taken back when the leader has to be asked */
    bool looked;           /* the state is new enough for it */
    bool keeps;            /* the request is a write that may be sent again */
    size_t kept_bytes;     /* of it, in pairs.kept_bytes */
    uint64_t first_ms;     /* when it was sent first; 0: it was not */
    bool again;            /* it was sent to an earlier leader too */
    struct buf asked;      /* a read here, or such a write, that was passed on and has no answer yet */
    struct buf in;         /* of the client, not passed on yet */
    size_t scanned, head_len;
};

/* Begins a way for the request at hand, unless there is one, or nobody to ask. */
void way_begin(struct pair *pair);
/* Ends the way; pair_go_on() follows when it was open. */
void way_close(struct pair *pair);
/* Gives up a session with the leader that has not begun. False: there is none. */
bool way_hang_up(struct pair *pair);

/* pair.c */
void pair_go_on(struct pair *pair); /* does what can be done now, and waits for the rest */
void pair_handle_closed(uv_handle_t *handle);
/* Answers a request that no leader takes, for the reason `why`, and ends the connection: with 503 if nothing
 * of it was done, with 504 if that is not known. */
void pair_refuse_untaken(struct pair *pair, const char *why);

#endif
