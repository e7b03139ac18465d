/* internal.h - inside the wire.
 *   wire.c      the loop's share, lifetimes, listening
 *   stream.c    bytes of an open connection, in and out
 *   connect.c   connections being made
 *   attend.c    connections served by another thread for a while
 *   tls.c       TLS below a connection
 *   shaker.c    handshakes of accepted connections, on a thread
 *   first.c     what the peer speaks, by its first bytes
 */
#ifndef PHX_HOST_WIRE_INTERNAL_H
#define PHX_HOST_WIRE_INTERNAL_H

#include "base/arena.h"
#include "base/check.h"
#include "base/list.h"
#include "host/wire/wire.h"
#include "net/crowd.h"

enum {
    READ_BYTES = 256 * 1024,
    SHAKING_READ_BYTES = 16 * 1024,        /* of a stranger, which wait for the shaker */
    STRANGER_FRAME_MAX = 1024 * 1024,      /* the first frame of an accepted connection */
    STRANGER_BYTES_MAX = 32 * 1024 * 1024, /* half first frames of all of them together */
    SHAKING_MAX = 4096,                    /* accepted connections whose handshake is not over */
    SHAKING_OF_ADDRESS_MAX = 1024,         /* likewise, of one source address */
    ACCEPTS_A_TURN = 64,                   /* some milliseconds */
    ENDED_A_SWEEP = 64,                    /* likewise */
    WIRE_SWEEP_MS = 250,                   /* how exactly timeouts of connections being made are kept */
};

struct wire {
    uv_loop_t *loop;
    uv_prepare_t prepare; /* flushes before the loop sleeps */
    uv_idle_t idle;       /* runs while something is queued, so that the loop does not sleep before a flush */
    uv_timer_t sweep;     /* runs while a connection is being made */
    struct list_node conns, dirty, listeners;
    struct shaker *shaker; /* NULL: no listener has TLS */
    struct crowd crowd;    /* connections with TLS that were accepted and are not open yet */
    uint32_t shaking;      /* all of them */
    uint32_t shaking_max, shaking_of_address_max;
    uint32_t accepts;      /* in this turn of the loop */
    struct list_node kept; /* connections that an attendant has read from */
    struct arena arena; /* of the message in hand */
    char *read_buffer;
    size_t connecting;
    size_t stranger_bytes; /* of half frames of accepted connections that have sent no whole one */
    int unflushed;         /* callbacks since the last flush */
    int handles_open;      /* prepare, idle, sweep, conns, listeners */
    bool shut_down, idling;
};

struct wire_listener {
    uv_tcp_t tcp;
    struct wire *wire;
    struct list_node node;
    const struct wire_handlers *handlers;
    void *context;
    struct wire_tls *tls; /* NULL: none */
    bool holds;           /* libuv has a connection that waits for the next turn */
};

enum conn_state { CONN_RESOLVING, CONN_CONNECTING, CONN_OPEN, CONN_CLOSING };

struct connector { /* exists while the connection is being made */
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    struct wire_conn *conn; /* NULL: the connection was given up */
    struct sockaddr_storage source;
    bool has_source;
    int64_t deadline_ms;
};

struct write {
    uv_write_t request;
    struct wire_conn *conn;
    struct buf bytes;
};

struct wire_conn {
    uv_tcp_t tcp;
    struct wire *wire;
    struct list_node node, dirty_node, kept_node, shaker_node;
    const struct wire_handlers *handlers;
    void *context;
    struct connector *connector;
    struct buf in;  /* the beginning of a frame that is not whole yet */
    size_t counted; /* of `in`, in wire->stranger_bytes */
    struct buf out; /* queued, not handed to the kernel */
    size_t seen;    /* so much of `in` are whole frames that an attendant has looked at */
    int broke;      /* errno that the attendant read, and the loop will not read again; 0: none */
    bool garbled;   /* the attendant could not open what the peer sealed */
    size_t in_flight, limit;
    struct conn_tls *tls;          /* NULL: plain */
    struct wire_tls *tls_settings; /* of one being made: TLS begins when it is connected */
    struct buf tls_server;
    struct sockaddr_storage peer; /* its address, kept for the time after a reset; family 0: not known */
    uint8_t state;
    bool accepted;   /* by a listener: its owner knows of it once it is open */
    uint32_t place;  /* of its address, while it is in the crowd */
    bool crowded;    /* it is */
    bool shaking;    /* counted in wire->connecting for its handshake */
    bool has_handle; /* tcp was initialised */
    bool beside;     /* the shaker has its TLS; nobody reads from it meanwhile */
    bool orphan;     /* it ended meanwhile: freed when the shaker gives it back */
    int shake_rc;    /* of the shaker; `shake_error` too */
    struct error shake_error;
    bool heard;      /* the peer has sent something */
    bool framed;     /* a whole frame has arrived: its protocol is known */
    bool overflowed;
    bool failing; /* inside its `closed` callback: wire_close has nothing left to do */
};

/* wire.c */
void wire_conn_free(struct wire_conn *conn); /* nothing holds it any more */
void wire_release(struct wire *wire);        /* one of its handles is closed */
/* Brings wire->stranger_bytes up to date with `bytes` of this connection. */
void wire_conn_count(struct wire_conn *conn, size_t bytes);
struct wire_conn *wire_conn_new(struct wire *wire, const struct wire_handlers *handlers, void *context);
/* Takes the connection out of everything; its memory goes when libuv lets go of it. */
void wire_conn_drop(struct wire_conn *conn);
void wire_conn_leaves_crowd(struct wire_conn *conn); /* it is open, or gone */
/* Tells its owner, then drops it. From the loop only. */
void wire_conn_fail(struct wire_conn *conn, enum wire_reason reason, const char *why);
bool wire_parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address);

/* stream.c */
/* Keeps the address of the peer to which the socket was just connected. */
void wire_conn_learn_peer(struct wire_conn *conn);
void wire_conn_open(struct wire_conn *conn);       /* its socket is connected: messages flow */
void wire_conn_mark_dirty(struct wire_conn *conn); /* something is queued */
void wire_flush_sometimes(struct wire *wire);
void wire_conn_shaken(struct wire_conn *conn); /* the shaker has given it back */
/* Hands what an attendant has read to the owner. The connection may be closing afterwards. */
void wire_conn_take_kept(struct wire_conn *conn);

/* shaker.c: a thread that shakes hands for accepted connections. */
struct shaker *shaker_new(struct wire *wire);
/* The connection's TLS is the thread's until wire_conn_shaken(). */
void shaker_give(struct shaker *shaker, struct wire_conn *conn);
/* Ends the thread and gives everything back, without wire_conn_shaken(). Its memory goes with the loop. */
void shaker_close(struct shaker *shaker);

/* tls.c. `out` of the connection receives sealed bytes. */
struct conn_tls *wire_tls_begin(struct wire_conn *conn, struct wire_tls *settings, const char *server_name);
void wire_tls_end(struct conn_tls *tls);
/* Goes on with the handshake; touches nothing but `tls`, so any thread may call it while nobody else does. 1:
 * done; 0: waits for bytes; ERROR_DENIED. */
int wire_tls_step(struct conn_tls *tls, struct error *error);
/* Hands what wire_tls_step() had to say to the connection; `rc` is its result. 1: the connection is open; 0
 * and ERROR_DENIED as there. */
int wire_tls_finish(struct conn_tls *tls, int rc, struct error *error);
void wire_tls_take(struct conn_tls *tls, const char *data, size_t len); /* bytes of the socket */
/* Plain bytes out of them; 0: there are no more. ERROR_CORRUPT. */
ssize_t wire_tls_open(struct conn_tls *tls, char *data, size_t max, struct error *error);
struct buf *wire_tls_plain(struct conn_tls *tls); /* bytes to send are put here */
size_t wire_tls_waiting(const struct conn_tls *tls);
/* Moves waiting bytes into records of the connection's `out`, but before the handshake is over, and after the
 * peer has sent a record that cannot be opened: such a connection only ends. */
void wire_tls_seal(struct conn_tls *tls);
bool wire_tls_established(const struct conn_tls *tls);
bool wire_tls_is_late(const struct conn_tls *tls, int64_t now_ms);
const char *wire_tls_name(const struct conn_tls *tls);
/* By the settings as they are now, which may be newer than the handshake. */
int wire_tls_check(const struct conn_tls *tls, struct error *error);
int64_t wire_tls_ends_s(const struct conn_tls *tls);

/* first.c. True: the peer speaks something else than this side, which `ret_reason` and `ret_why` say. */
bool wire_first_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                      const char **ret_why);
/* The last words of a connection without a whole frame, of which these bytes were received. */
bool wire_last_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                     const char **ret_why);
/* Returns the bytes that a listener sends to a peer that speaks another protocol, which tell the peer so. */
struct str wire_first_answer(enum wire_reason reason);

/* connect.c */
void wire_on_sweep(uv_timer_t *timer); /* gives up connections that take too long */

#endif
