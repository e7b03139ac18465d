/* wire.h - framed connections between controller and agents, on one libuv loop.
 *
 *     struct wire *wire = wire_new(loop);
 *     wire_listen(wire, "0.0.0.0", 7600, &handlers, context, &listener, error);         // the controller
 *     wire_connect(wire, &(struct wire_target){.host = "10.0.0.1", .port = 7600}, &handlers, context, &conn,
 * error); wire_send_agent(conn, &message);
 *
 * Built for 16,384 connections with a heartbeat a second each: one read buffer for the whole loop, per
 * connection only the handle and what is left of a frame that is not whole yet; what is sent during one turn
 * of the loop leaves in one write per connection before the loop sleeps. TCP_NODELAY is on, keepalive off
 * (heartbeats do its work).
 *
 * Callbacks come from the loop, never from inside a call of this header. A message is valid during its
 * callback only. `closed` is the last callback of a connection, and comes exactly once unless wire_close()
 * was called; the connection is gone afterwards. Frames of kinds that this build does not know are skipped;
 * broken frames close the connection. Everything on the loop's thread, but for wire_attend().
 */
#ifndef PHX_HOST_WIRE_WIRE_H
#define PHX_HOST_WIRE_WIRE_H

#include <uv.h>

#include "base/error.h"
#include "core/agent/message.h"

struct wire;
struct wire_conn;
struct wire_listener;
struct wire_tls;

enum { WIRE_QUEUE_DEFAULT = 64 * 1024 * 1024, WIRE_CONNECT_TIMEOUT_MS = 5000, WIRE_ADDRESS_MAX = 64 };

enum wire_reason {
    WIRE_UNREACHABLE, /* the connection could not be made */
    WIRE_EOF,         /* the peer closed it: it ended, or its process was killed */
    WIRE_RESET,   /* broken by the peer's kernel or the network (right behind data it can come as WIRE_EOF) */
    WIRE_TIMEOUT, /* no answer to connect, or the kernel gave up sending */
    WIRE_PROTOCOL,   /* the peer sent bytes that are no frame or message */
    WIRE_OVERFLOW,   /* the peer reads too slowly: the queue's limit was passed */
    WIRE_PEER_TLS,   /* its first bytes are TLS's, and this side speaks none */
    WIRE_PEER_PLAIN, /* its first bytes are none of TLS, which this side speaks */
    WIRE_PEER_HTTP,  /* its first bytes are an answer of HTTP: another port was meant */
};
const char *wire_reason_name(enum wire_reason reason); /* "eof", "protocol error" ... */

/* Whether a stand-in may answer the message, and with what; called by wire_attend(). */
typedef bool wire_stand_in(const struct wire_conn *conn, const struct from_agent *message,
                           struct from_controller *ret_answer);

struct wire_handlers {
    void (*opened)(struct wire_conn *conn); /* may be NULL; made or accepted: from now on messages flow */
    /* Exactly one of these two: what the peer is. */
    void (*from_agent)(struct wire_conn *conn, const struct from_agent *message);
    void (*from_controller)(struct wire_conn *conn, const struct from_controller *message);
    wire_stand_in *stand_in;                 /* may be NULL: nobody answers for the owner */
    void (*drained)(struct wire_conn *conn); /* may be NULL; the send queue has become empty */
    void (*closed)(struct wire_conn *conn, enum wire_reason reason, const char *why);
    /* May be NULL; a listener refused a connection in its TLS handshake, before it was open. */
    void (*refused)(void *context, const char *peer, const char *why);
};

/* TLS 1.3 with certificates on both sides (PEM files): a peer must show one that an authority of `ca`
 * signed, for its side's purpose, and that is valid now; a connecting side also wants the target's name
 * or address in it. One for each side of a process; it must outlive the wire, and may be read again:
 * that is for new connections. */
struct wire_tls_options {
    const char *ca, *cert, *key;
};
int wire_tls_new(const struct wire_tls_options *options, struct wire_tls **ret_tls, struct error *error);
int wire_tls_reload(struct wire_tls *tls, struct error *error); /* on failure nothing changes */
bool wire_tls_files_changed(const struct wire_tls *tls);        /* since they were read */
void wire_tls_free(struct wire_tls *tls);                       /* NULL is allowed */

struct wire_target {
    const char *host; /* IPv4, IPv6 or a name */
    uint16_t port;
    const char *source;   /* own address to connect from; NULL: the kernel's choice */
    int64_t timeout_ms;   /* 0: WIRE_CONNECT_TIMEOUT_MS */
    struct wire_tls *tls; /* NULL: plain */
};

struct wire *wire_new(uv_loop_t *loop);
/* Closes all connections and listeners without callbacks; the memory goes when the loop has run. */
void wire_shutdown(struct wire *wire);

/* `handlers` must outlive the connections. *ret_port (may be NULL) is the port that was taken when
 * `port` is 0. Accepted connections start with the listener's `context`. */
int wire_listen(struct wire *wire, const char *address, uint16_t port, const struct wire_handlers *handlers,
                void *context, struct wire_listener **ret_listener, uint16_t *ret_port, struct error *error);
void wire_listener_close(struct wire_listener *listener);
/* Bounds the accepted connections whose TLS handshake is not over, in all and of one source address
 * (crowd.h); more are closed unheard. 0: 4096, 1024. Handshakes of accepted connections run on a thread of
 * their own. */
void wire_set_limits(struct wire *wire, uint32_t shaking_max, uint32_t shaking_of_address_max);
/* From now on accepted connections speak TLS. Call it right after wire_listen(). */
void wire_listener_set_tls(struct wire_listener *listener, struct wire_tls *tls);

/* Starts connecting; a failure that is not one of the arguments comes as closed(WIRE_UNREACHABLE). Messages
 * may be sent at once: they wait. */
int wire_connect(struct wire *wire, const struct wire_target *target, const struct wire_handlers *handlers,
                 void *context, struct wire_conn **ret_conn, struct error *error);

void *wire_conn_context(const struct wire_conn *conn);
void wire_conn_set_context(struct wire_conn *conn, void *context);
/* "10.0.0.7:41234" of the peer; "" before it is connected. */
void wire_conn_peer(const struct wire_conn *conn, char ret_text[WIRE_ADDRESS_MAX]);
/* The common name of the peer's certificate, which was verified; "" without TLS. */
const char *wire_conn_peer_name(const struct wire_conn *conn);
/* Is what the peer showed still good, by the authority and what it took back as they were read last?
 * ERROR_DENIED says why not. Without TLS it is. Costs a signature's check. */
int wire_conn_check_peer(const struct wire_conn *conn, struct error *error);
/* When the peer's certificate ends, seconds since 1970; INT64_MAX: it does not, or there is none. */
int64_t wire_conn_peer_ends_s(const struct wire_conn *conn);
int wire_conn_fd(const struct wire_conn *conn);                       /* -1: none */
size_t wire_conn_queued(const struct wire_conn *conn);                /* bytes that wait to be sent */
void wire_conn_set_limit(struct wire_conn *conn, size_t queue_bytes); /* instead of WIRE_QUEUE_DEFAULT */

/* Queues one message. ERROR_LIMIT: larger than a frame may be, or the queue is full (then the connection
 * closes with WIRE_OVERFLOW soon); ERROR_UNAVAILABLE: it is closing. Callers need not look at the result. */
int wire_send_agent(struct wire_conn *conn, const struct from_agent *message);
int wire_send_controller(struct wire_conn *conn, const struct from_controller *message);

/* Writes what is queued as far as the kernel takes it without waiting, then closes. No callback follows. */
void wire_close(struct wire_conn *conn);

/* Writes what is queued now instead of before the loop sleeps. */
void wire_flush(struct wire *wire);

/* --- while the loop's thread is at work elsewhere ----------------------------------------------- */

/* Another thread may serve the connections while the loop's thread is outside of this header and of its
 * callbacks, and says so: the wire is lent. wire_attend() reads what has come on connections whose handlers
 * have a stand-in, without waiting, and sends what that answers. Everything read is kept, and comes to the
 * owner in order with the next bytes or with wire_gather(), whichever is first. Ends of connections are left
 * to the loop. */
struct wire_attendant;
struct wire_attendant *wire_attendant_new(void); /* the other thread's memory */
void wire_attendant_free(struct wire_attendant *attendant);
void wire_attend(struct wire *wire, struct wire_attendant *attendant);
void wire_gather(struct wire *wire);         /* the loop's thread: callbacks come from inside it */
bool wire_has_kept(const struct wire *wire); /* there is something to gather */
#endif
