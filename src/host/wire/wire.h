/* wire.h - framed connections between controller and agents, on one libuv loop.
 *
 *     struct wire *wire = wire_new(loop);
 *     wire_listen(wire, "0.0.0.0", 7600, &handlers, context, &listener, error);         // the controller
 *     wire_connect(wire, &(struct wire_target){.host = "10.0.0.1", .port = 7600}, &handlers, context, &conn,
 * error); wire_send_agent(conn, &message);
 *
 * Built for 16,384 connections with a heartbeat a second each. The whole loop has one read buffer; a
 * connection holds only its handle and the bytes of an incomplete frame. Messages sent during one turn of the
 * loop leave in one write per connection before the loop sleeps. TCP_NODELAY is on; keepalive is off, as
 * heartbeats do its work.
 *
 * Callbacks are called from the loop, never from inside a call of this header except wire_flush() and
 * wire_gather(). A message is valid during its callback only. `closed` is the last callback of a connection
 * and is called exactly once, unless wire_close() was called; the connection is freed afterwards. Frames of
 * unknown kinds are skipped; broken frames close the connection. All calls are on the loop's thread, except
 * wire_attend().
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
    WIRE_RESET,       /* broken by the peer's kernel or the network (right after data perhaps WIRE_EOF) */
    WIRE_TIMEOUT,     /* no answer to connect, or the kernel gave up sending */
    WIRE_PROTOCOL,    /* the peer sent bytes that are no frame or message, or TLS failed */
    WIRE_OVERFLOW,    /* the peer reads too slowly: the queue's limit was exceeded */
    WIRE_PEER_TLS,    /* the peer's first bytes are TLS, which this side does not speak */
    WIRE_PEER_PLAIN,  /* the peer's first bytes are not TLS, which this side speaks */
    WIRE_PEER_HTTP,   /* the peer's first bytes are an HTTP response: the port is wrong */
};
const char *wire_reason_name(enum wire_reason reason); /* "eof", "protocol error" ... */

/* Returns whether a stand-in may answer the message, and stores the answer. Called by wire_attend(), on its
 * thread. */
typedef bool wire_stand_in(const struct wire_conn *conn, const struct from_agent *message,
                           struct from_controller *ret_answer);

struct wire_handlers {
    /* May be NULL; connected or accepted: messages flow from now on. */
    void (*opened)(struct wire_conn *conn);
    /* Exactly one of these two is set: it tells what the peer is. */
    void (*from_agent)(struct wire_conn *conn, const struct from_agent *message);
    void (*from_controller)(struct wire_conn *conn, const struct from_controller *message);
    wire_stand_in *stand_in;                 /* NULL: no stand-in answers for the owner */
    void (*drained)(struct wire_conn *conn); /* may be NULL; the send queue has become empty */
    void (*closed)(struct wire_conn *conn, enum wire_reason reason, const char *why);
    /* May be NULL; a listener refused a connection in its TLS handshake, before it was open. */
    void (*refused)(void *context, const char *peer, const char *why);
};

/* TLS 1.3 with certificates on both sides (PEM files). A peer's certificate must be signed by an authority of
 * `ca` for its side's purpose and be valid now; a connecting side also requires the target's name or address
 * in it. A process has one wire_tls for each side. The object must outlive the wire, and the paths must
 * outlive the object. A reload applies to new connections. */
struct wire_tls_options {
    const char *ca, *cert, *key;
};
/* Reads the files. ERROR_INVALID, ERROR_IO and others: the message names the file. */
int wire_tls_new(const struct wire_tls_options *options, struct wire_tls **ret_tls, struct error *error);
int wire_tls_reload(struct wire_tls *tls, struct error *error); /* on failure the old files stay in use */
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
/* Closes all connections and listeners without callbacks; the loop frees the memory later. */
void wire_shutdown(struct wire *wire);

/* Listens on an IPv4 or IPv6 address. `handlers` must outlive the connections. *ret_port (may be NULL) is the
 * port in use, which the kernel chooses if `port` is 0. Accepted connections start with the listener's
 * `context`. ERROR_INVALID: the address; ERROR_CONFLICT: the port is in use; ERROR_IO. */
int wire_listen(struct wire *wire, const char *address, uint16_t port, const struct wire_handlers *handlers,
                void *context, struct wire_listener **ret_listener, uint16_t *ret_port, struct error *error);
void wire_listener_close(struct wire_listener *listener);
/* Limits the accepted connections whose TLS handshake is not complete, in all and per source address
 * (crowd.h); more are closed at once. 0: 4096, 1024. Handshakes of accepted connections run on a separate
 * thread. */
void wire_set_limits(struct wire *wire, uint32_t shaking_max, uint32_t shaking_of_address_max);
/* Makes accepted connections speak TLS. Call it right after wire_listen(). */
void wire_listener_set_tls(struct wire_listener *listener, struct wire_tls *tls);

/* Starts connecting. Returns ERROR_INVALID for a bad source address and ERROR_UNAVAILABLE if the attempt
 * cannot begin; later failures are reported by `closed`. Messages may be sent at once: they wait for the
 * connection. */
int wire_connect(struct wire *wire, const struct wire_target *target, const struct wire_handlers *handlers,
                 void *context, struct wire_conn **ret_conn, struct error *error);

void *wire_conn_context(const struct wire_conn *conn);
void wire_conn_set_context(struct wire_conn *conn, void *context);
/* Writes the peer's address, "10.0.0.7:41234"; "" before the connection is made. */
void wire_conn_peer(const struct wire_conn *conn, char ret_text[WIRE_ADDRESS_MAX]);
/* Returns the common name of the peer's certificate, which was verified; "" without TLS. The text lives as
 * long as the connection. */
const char *wire_conn_peer_name(const struct wire_conn *conn);
/* Checks the peer's certificate again, against the authority and its revocations as they were last read.
 * Returns 0, or ERROR_DENIED with the reason; always 0 without TLS. Costs the check of a signature. */
int wire_conn_check_peer(const struct wire_conn *conn, struct error *error);
/* Returns when the peer's certificate expires, in seconds since 1970; INT64_MAX: never, or there is none. */
int64_t wire_conn_peer_ends_s(const struct wire_conn *conn);
int wire_conn_fd(const struct wire_conn *conn);                       /* -1: none */
size_t wire_conn_queued(const struct wire_conn *conn);                /* bytes that wait to be sent */
void wire_conn_set_limit(struct wire_conn *conn, size_t queue_bytes); /* instead of WIRE_QUEUE_DEFAULT */

/* Queue one message. ERROR_LIMIT: the message is larger than a frame may be, or the queue is full (the
 * connection then closes with WIRE_OVERFLOW soon). ERROR_UNAVAILABLE: the connection is closing. Callers may
 * ignore the result. */
int wire_send_agent(struct wire_conn *conn, const struct from_agent *message);
int wire_send_controller(struct wire_conn *conn, const struct from_controller *message);

/* Writes as much of the queue as the kernel takes without waiting, then closes the connection. No callback
 * follows. */
void wire_close(struct wire_conn *conn);

/* Writes all queues now instead of before the loop sleeps. May call `drained` and `closed`. */
void wire_flush(struct wire *wire);

/* --- while the loop's thread is at work elsewhere ----------------------------------------------- */

/* Another thread may serve the connections while the loop's thread has lent the wire, that is, promises to
 * stay outside of this header and its callbacks. wire_attend() reads the bytes that have arrived on
 * connections whose handlers have a stand-in, without waiting, and sends the stand-in's answers. All bytes
 * read are kept and delivered to the owner in order, with the next bytes or with wire_gather(), whichever is
 * first. The loop handles ends of connections. */
struct wire_attendant;
struct wire_attendant *wire_attendant_new(void); /* holds the other thread's memory */
void wire_attendant_free(struct wire_attendant *attendant);
void wire_attend(struct wire *wire, struct wire_attendant *attendant);
void wire_gather(struct wire *wire);         /* on the loop's thread: calls callbacks */
bool wire_has_kept(const struct wire *wire); /* there is something to gather */
#endif
