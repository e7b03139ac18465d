/* internal.h - the wire's own structures; private to this folder.
 *   wire.c      the loop's side, lifetimes, listening
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
    SHAKING_READ_BYTES = 16 * 1024,        /* of an unverified peer; they wait for the shaker */
    STRANGER_FRAME_MAX = 1024 * 1024,      /* the first frame of an accepted connection without TLS */
    STRANGER_BYTES_MAX = 32 * 1024 * 1024, /* incomplete first frames of all accepted connections together */
    SHAKING_MAX = 4096,                    /* accepted connections whose handshake is not complete */
    SHAKING_OF_ADDRESS_MAX = 1024,         /* of these, per source address */
    ACCEPTS_A_TURN = 64,                   /* takes some milliseconds */
    ENDED_A_SWEEP = 64,                    /* as above */
    WIRE_SWEEP_MS = 250,                   /* resolution of the timeouts of connections being made */
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
    size_t stranger_bytes; /* of incomplete first frames of accepted connections */
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
    bool holds;           /* libuv holds a connection that waits for the next turn */
};

enum conn_state { CONN_RESOLVING, CONN_CONNECTING, CONN_OPEN, CONN_CLOSING };

struct connector { /* exists while the connection is being made */
    uv_getaddrinfo_t resolve;
    uv_connect_t connect;
    struct wire_conn *conn; /* NULL: the connection was dropped */
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
    struct buf in;  /* the beginning of an incomplete frame */
    size_t counted; /* of `in`, in wire->stranger_bytes */
    struct buf out; /* queued, not handed to the kernel */
    size_t seen;    /* bytes of `in` that an attendant has examined, in complete frames */
    int broke;      /* errno that the attendant got from the socket, which reports it only once; 0: none */
    bool garbled;   /* the attendant could not open what the peer sealed */
    size_t in_flight, limit;
    struct conn_tls *tls;          /* NULL: plain */
    struct wire_tls *tls_settings; /* of one being made: TLS begins when it is connected */
    struct buf tls_server;
    struct sockaddr_storage peer; /* its address, kept for use after a reset; family 0: not known */
    uint8_t state;
    bool accepted;   /* by a listener; the owner learns of it once it is open */
    uint32_t place;  /* of its address in the crowd, while `crowded` */
    bool crowded;    /* it is counted in the crowd */
    bool shaking;    /* counted in wire->connecting for its handshake */
    bool has_handle; /* tcp was initialised */
    bool beside;     /* the shaker has its TLS; the loop does not read from it */
    bool orphan;     /* it ended while `beside`: freed when the shaker returns it */
    int shake_rc;    /* result of the shaker, with `shake_error` */
    struct error shake_error;
    bool heard;      /* the peer has sent something */
    bool framed;     /* a complete frame has arrived: its protocol is known */
    bool overflowed;
    bool failing; /* inside its `closed` callback: wire_close has nothing left to do */
};

/* wire.c */
void wire_conn_free(struct wire_conn *conn); /* frees it, or marks it as an orphan while `beside` */
/* Counts one of its handles as closed; the last one frees the wire. */
void wire_release(struct wire *wire);
/* Updates wire->stranger_bytes: this connection now holds `bytes`. */
void wire_conn_count(struct wire_conn *conn, size_t bytes);
struct wire_conn *wire_conn_new(struct wire *wire, const struct wire_handlers *handlers, void *context);
/* Removes the connection from all lists and closes its handle; its memory is freed once libuv has closed
 * it. */
void wire_conn_drop(struct wire_conn *conn);
void wire_conn_leaves_crowd(struct wire_conn *conn); /* call it once it is open or dropped */
/* Calls the owner's `closed` (or `refused`, before the connection was open), then drops the connection. From
 * the loop only. */
void wire_conn_fail(struct wire_conn *conn, enum wire_reason reason, const char *why);
/* Parses an IPv4 or IPv6 address. Returns false if it is neither. */
bool wire_parse_address(const char *text, uint16_t port, struct sockaddr_storage *ret_address);

/* stream.c */
/* Stores the address of the peer to which the socket was just connected. */
void wire_conn_learn_peer(struct wire_conn *conn);
void wire_conn_open(struct wire_conn *conn);       /* starts reading, after its socket was connected */
void wire_conn_mark_dirty(struct wire_conn *conn); /* its queue is to be flushed */
void wire_flush_sometimes(struct wire *wire);
void wire_conn_shaken(struct wire_conn *conn); /* continues after the shaker has returned it */
/* Delivers what an attendant has read to the owner. The connection may be closing afterwards. */
void wire_conn_take_kept(struct wire_conn *conn);

/* shaker.c: a thread that does the TLS handshakes of accepted connections. */
struct shaker *shaker_new(struct wire *wire);
/* Gives the connection's TLS to the thread until wire_conn_shaken(). */
void shaker_give(struct shaker *shaker, struct wire_conn *conn);
/* Ends the thread and returns all connections, without wire_conn_shaken(). The loop frees its memory
 * later. */
void shaker_close(struct shaker *shaker);

/* tls.c. `out` of the connection receives sealed bytes. */
struct conn_tls *wire_tls_begin(struct wire_conn *conn, struct wire_tls *settings, const char *server_name);
void wire_tls_end(struct conn_tls *tls);
/* Continues the handshake. Touches nothing but `tls`, so any one thread at a time may call it. Returns 1 if
 * the handshake is done, 0 if it waits for bytes, or ERROR_DENIED. */
int wire_tls_step(struct conn_tls *tls, struct error *error);
/* Moves the bytes that wire_tls_step() produced to the connection's `out`; `rc` is its result. Returns 1 if
 * the connection is open, otherwise 0 or ERROR_DENIED as above. */
int wire_tls_finish(struct conn_tls *tls, int rc, struct error *error);
void wire_tls_take(struct conn_tls *tls, const char *data, size_t len); /* bytes of the socket */
/* Decrypts received bytes. Returns how many plain bytes it stored, 0 if there are no more, or
 * ERROR_CORRUPT. */
ssize_t wire_tls_open(struct conn_tls *tls, char *data, size_t max, struct error *error);
struct buf *wire_tls_plain(struct conn_tls *tls); /* the buffer for bytes to send */
size_t wire_tls_waiting(const struct conn_tls *tls);
/* Encrypts waiting bytes into records in the connection's `out`. Does nothing before the handshake is
 * complete, or after the peer has sent a record that cannot be opened: such a connection only ends. */
void wire_tls_seal(struct conn_tls *tls);
bool wire_tls_established(const struct conn_tls *tls);
bool wire_tls_is_late(const struct conn_tls *tls, int64_t now_ms);
const char *wire_tls_name(const struct conn_tls *tls);
/* Checks the peer's certificate by the current settings, which may be newer than the handshake. */
int wire_tls_check(const struct conn_tls *tls, struct error *error);
int64_t wire_tls_ends_s(const struct conn_tls *tls);

/* first.c. Returns whether the first bytes show that the peer speaks another protocol, and stores which. */
bool wire_first_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                      const char **ret_why);
/* As wire_first_wrong, for a connection that ended after these bytes without a complete frame. */
bool wire_last_wrong(const struct wire_conn *conn, struct str bytes, enum wire_reason *ret_reason,
                     const char **ret_why);
/* Returns the bytes with which a listener refuses a peer that speaks another protocol; empty: none. */
struct str wire_first_answer(enum wire_reason reason);

/* connect.c */
void wire_on_sweep(uv_timer_t *timer); /* gives up connections that take too long */

#endif
