/* relay.h - TLS outside the loop: handshakes and records of the API's connections, on two threads. For api
 * and host/standby.
 *
 *     relay_take(relay, fd, address, len)     a new client's socket
 *     → the shaking thread does the handshake, and waits for the first bytes of a request
 *     → hooks.ready(context, client)          on the loop: client->fd is the connection's plain end
 *     → the carrying thread encrypts and decrypts until one side ends
 *     → hooks.gone(context, address)          on the loop
 *
 *   client ══ TLS ══ outer │ thread │ inner ── a pair of sockets ── client->fd ── host/http ── the loop
 *
 * A relay with the client side of TLS (api_tls_new_client()) opens connections instead:
 *
 *     relay_connect(relay, address, call)     to a controller
 *     → connected, handshake done, and the leader checked (api_tls_check_leader())
 *     → hooks.ready(context, client)          on the loop: nothing has been sent yet
 *       or hooks.failed(context, call, why)
 *
 * A handshake costs the server hundreds of microseconds, and the client as little as a copy of an old
 * message. A flood of handshakes may delay other handshakes, but neither the loop nor open connections: the
 * shaking thread also has a lower priority (nice(2)). Its memory is bounded by relay_limits, and by 20
 * seconds from the connection to the first byte of a request. An open connection holds one record per
 * direction, and the kernel's buffers of two sockets.
 *
 * Call all functions on the loop's thread. Hooks are called by the loop, never from inside a function.
 */
#ifndef PHX_HOST_API_RELAY_H
#define PHX_HOST_API_RELAY_H

#include <sys/socket.h>
#include <uv.h>

#include "host/api/tls.h"
#include "net/crowd.h"

enum {
    RELAY_SHAKING_MAX = 2048,           /* connections without a request, in all */
    RELAY_SHAKING_OF_ADDRESS_MAX = 128, /* and of one source address (crowd.h) */
    RELAY_FILES = 3,                    /* descriptors of a connection */
    RELAY_REST_MS = 60 * 1000,          /* time for a client to take the rest of an answer */
};

struct relay;

/* The limits of what clients may hold; 0: the values above. */
struct relay_limits {
    uint32_t shaking, shaking_of_address; /* connections that have sent no request yet */
    uint32_t rest_ms; /* from the server's close of a connection until the client has taken the rest */
};

/* A client that has completed the handshake and begun a request. */
struct relay_client {
    int fd; /* the connection's plain end, non-blocking; its owner closes it */
    struct sockaddr_storage address;
    struct api_tls_chain chain;
    bool forwards; /* API_TLS_FORWARDS was negotiated */
    void *call;    /* as passed to relay_connect(); NULL: relay_take() */
};

struct relay_hooks {
    void *context;
    /* A connection is ready. The hook owns client->fd. It may take client->chain, which is released
     * otherwise. */
    void (*ready)(void *context, struct relay_client *client);
    /* A connection has ended, whether it was ready or not. */
    void (*gone)(void *context, const struct sockaddr_storage *address);
    /* A connection of relay_connect() has failed before it was ready; `gone` follows. ERROR_DENIED: the peer
     * is not a leader that takes forwarded requests. May be NULL if relay_connect() is not used. */
    void (*failed)(void *context, void *call, const struct error *why);
};

/* Starts the threads. `tls` must outlive the relay. Fails if the system gives no thread or descriptor. */
int relay_new(uv_loop_t *loop, struct api_tls *tls, const struct relay_hooks *hooks,
              const struct relay_limits *limits, struct relay **ret_relay, struct error *error);
/* Takes over a connected, non-blocking socket. Returns false, and leaves the socket to the caller, if too
 * many handshakes are under way, of this address or in all. */
bool relay_take(struct relay *relay, int fd, const struct sockaddr *address, socklen_t len);
/* Connects to a controller. Either hooks.ready or hooks.failed reports the result, with `call` (not NULL).
 * Returns false, and calls no hook, if too many handshakes are under way or no socket can be opened. */
bool relay_connect(struct relay *relay, const struct sockaddr_storage *address, void *call);
/* Replaces the hooks, for open connections too: the relay gets another owner. */
void relay_set_hooks(struct relay *relay, const struct relay_hooks *hooks);
uint32_t relay_open(const struct relay *relay); /* connections that have not ended (hooks.gone) */
/* Returns the number of connections that have sent no request yet. */
uint32_t relay_shaking(const struct relay *relay);
/* Sends what is left in the plain ends, as far as clients take it at once; then ends all connections and both
 * threads. No hook is called any more. The loop calls `closed` last, with a handle whose `data` is
 * `context`. */
void relay_close(struct relay *relay, uv_close_cb closed, void *context);

#endif
