/* relay.h - TLS beside the loop: handshakes and records of the API's connections, on two threads of their
 * own. For api and host/standby.
 *
 *     relay_take(relay, fd, address, len)     a stranger's socket
 *     → the shaking thread shakes hands, and waits for the first bytes of a request
 *     → hooks.ready(context, client)          on the loop: plain bytes come and go at client->fd
 *     → the carrying thread carries them until one side ends
 *     → hooks.gone(context, address)          on the loop
 *
 *   client ══ TLS ══ outer │ thread │ inner ── a pair of sockets ── client->fd ── host/http ── the loop
 *
 * A relay with a client's side of TLS (api_tls_new_client()) goes the other way:
 *
 *     relay_connect(relay, address, call)     to a controller
 *     → connected, hands shaken, and the leader checked (api_tls_check_leader())
 *     → hooks.ready(context, client)          on the loop: nothing was sent yet
 *       or hooks.failed(context, call, why)
 *
 * A handshake costs the server hundreds of microseconds and the client as little as a copy of an old message.
 * A flood of handshakes may delay other handshakes, but neither the loop nor connections that are open: the
 * shaking thread also has a lower priority (nice(2)). Its memory is bounded: relay_limits, and 20 seconds
 * from the connection to the first byte of a request. An open connection holds a record of each direction,
 * and what the kernel keeps for two sockets.
 *
 * All functions are the loop's; hooks are called on the loop, never from inside of them.
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
    RELAY_REST_MS = 60 * 1000,          /* in which a client takes the rest of an answer */
};

struct relay;

/* The limits of what clients may hold; 0: the values above. */
struct relay_limits {
    uint32_t shaking, shaking_of_address; /* connections that have sent no request yet */
    uint32_t rest_ms; /* from the server's end of a connection until the client has taken all that was left */
};

/* A client that has shaken hands and begun a request. */
struct relay_client {
    int fd; /* the server's end, not blocking; its owner closes it */
    struct sockaddr_storage address;
    struct api_tls_chain chain;
    bool forwards; /* API_TLS_FORWARDS was agreed on */
    void *call;    /* of relay_connect(); NULL: relay_take() */
};

struct relay_hooks {
    void *context;
    /* Takes client->fd; may take client->chain, which is released otherwise. */
    void (*ready)(void *context, struct relay_client *client);
    /* A connection that relay_take() took has gone, whether it was ready or not. */
    void (*gone)(void *context, const struct sockaddr_storage *address);
    /* A connection of relay_connect() was never ready; `gone` follows. ERROR_DENIED: no leader to which
     * requests may be passed on answers there. NULL where nothing is connected. */
    void (*failed)(void *context, void *call, const struct error *why);
};

/* Starts the threads. `tls` must outlive the relay. ERROR_IO: no thread can be had. */
int relay_new(uv_loop_t *loop, struct api_tls *tls, const struct relay_hooks *hooks,
              const struct relay_limits *limits, struct relay **ret_relay, struct error *error);
/* Takes a connected socket, which does not block. False: too many connections shake hands, of this address or
 * in all; the socket stays the caller's. */
bool relay_take(struct relay *relay, int fd, const struct sockaddr *address, socklen_t len);
/* Connects. Either `ready` or `failed` tells of it. False: as relay_take(), or no descriptor is left; nobody
 * is told. */
bool relay_connect(struct relay *relay, const struct sockaddr_storage *address, void *call);
/* From now on these hooks are called, also for connections that are there: the relay changes hands. */
void relay_set_hooks(struct relay *relay, const struct relay_hooks *hooks);
uint32_t relay_open(const struct relay *relay); /* connections of which `gone` has not told */
/* Connections that have sent no request yet. */
uint32_t relay_shaking(const struct relay *relay);
/* Sends what the server has left in its ends, as far as clients take it at once, and ends all connections and
 * both threads; no hook is called any more. `closed` is called by the loop with a handle whose `data` is
 * `context`, when the memory is gone. */
void relay_close(struct relay *relay, uv_close_cb closed, void *context);

#endif
