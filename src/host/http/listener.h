/* listener.h - a listening socket on the loop, with a limit on the descriptors of its connections.
 *
 *     listener_open_tcp(...) or listener_open_unix(...)
 *       a client    -> taken(context, fd, address, len) = descriptors that the connection holds; 0: refused
 *     listener_left(listener, descriptors)         when they are closed
 *
 * Two listeners may share a socket (listener_open_shared()), so that its port refuses no client while one
 * replaces the other. The one that must not accept rests.
 *
 * At `open_max` descriptors further clients wait in the kernel's queue. If the process or the system lacks a
 * descriptor or memory for another one, clients wait for LISTENER_PAUSE_MS or until a connection ends.
 *
 * Call all functions on the loop's thread.
 */
#ifndef PHX_HOST_HTTP_LISTENER_H
#define PHX_HOST_HTTP_LISTENER_H

#include <stdbool.h>
#include <sys/socket.h>
#include <uv.h>

#include "base/error.h"

struct listener;

enum { LISTENER_PAUSE_MS = 100 };

struct listener_options {
    /* Takes over a connected socket, non-blocking and close-on-exec. Returns how many descriptors the
     * connection holds, or 0 if it is refused: the listener then closes the socket. */
    uint32_t (*taken)(void *context, int fd, const struct sockaddr_storage *address, socklen_t len);
    /* accept() has failed for lack of descriptors or memory: nothing is accepted for a while. May be NULL. */
    void (*paused)(void *context, int errno_code);
    void *context;
    uint32_t open_max;
    /* Clients send first: accept a client with its first bytes, or after a second without any. */
    bool deferred;
};

/* Listens on a numeric address. `port` 0: any; *ret_port (may be NULL) is the port. Connections detect a dead
 * peer within two minutes. ERROR_INVALID: the address is malformed. Other errors: it cannot be bound. */
int listener_open_tcp(uv_loop_t *loop, const char *address, uint16_t port,
                      const struct listener_options *options, struct listener **ret_listener,
                      uint16_t *ret_port, struct error *error);
/* Listens on another listener's socket `fd`. The socket stays open until both are closed. Fails if no
 * descriptor is left. */
int listener_open_shared(uv_loop_t *loop, int fd, const struct listener_options *options,
                         struct listener **ret_listener, uint16_t *ret_port, struct error *error);
int listener_socket(const struct listener *listener); /* the listener's; do not close it */
/* While the listener rests, clients wait in the kernel's queue. */
void listener_rest(struct listener *listener, bool rests);
/* Accepts later clients when they connect, not with their first bytes (`deferred`): a client that the kernel
 * holds back for its first bytes would be lost when the socket is closed. */
void listener_prompt(struct listener *listener);
void listener_drain(struct listener *listener); /* accepts all clients that wait in the kernel's queue */
/* Listens on a Unix socket with this mode. Removes a file at the path first, and the socket's file when the
 * listener is closed. */
int listener_open_unix(uv_loop_t *loop, const char *path, unsigned mode,
                       const struct listener_options *options, struct listener **ret_listener,
                       struct error *error);
/* Reports that `descriptors` descriptors of connections are closed. */
void listener_left(struct listener *listener, uint32_t descriptors);
/* Closes the socket at once. The loop calls `closed` (may be NULL) when the memory is freed. */
void listener_close(struct listener *listener, void (*closed)(void *context), void *context);

#endif
