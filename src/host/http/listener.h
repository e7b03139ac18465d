/* listener.h - a listening socket on the loop, and who may have how many of its connections at once.
 *
 *     listener_open_tcp(...) or listener_open_unix(...)
 *       a client    -> taken(context, fd, address, len) = descriptors that it holds now; 0: closed at once
 *     listener_left(listener, descriptors)         they are closed
 *
 * Two listeners may share a socket, so that its port refuses nobody while one takes the place of the other:
 * listener_open_shared(); the one that must not accept rests.
 *
 * At `open_max` descriptors further clients wait in the kernel's queue. So they do, for LISTENER_PAUSE_MS or
 * until a connection ends, when the process or the system has no descriptor or memory for another one. All
 * functions are the loop's.
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
    /* Takes a connected socket, which does not block and is closed on exec. Returns how many descriptors the
     * connection holds; 0: it is not wanted, and the listener closes it. */
    uint32_t (*taken)(void *context, int fd, const struct sockaddr_storage *address, socklen_t len);
    /* accept() has failed for want of descriptors or memory, and nothing is accepted for a while. NULL:
     * nobody is told. */
    void (*paused)(void *context, int errno_code);
    void *context;
    uint32_t open_max;
    /* The client speaks first: it is taken with its first bytes, or after a second without any. */
    bool deferred;
};

/* Listens at a numeric address; port 0: any, *ret_port (may be NULL) says which. Connections notice a silent
 * peer within two minutes. ERROR_INVALID: the address is none; ERROR_IO: it cannot be had. */
int listener_open_tcp(uv_loop_t *loop, const char *address, uint16_t port,
                      const struct listener_options *options, struct listener **ret_listener,
                      uint16_t *ret_port, struct error *error);
/* Listens at another listener's socket `fd`, which stays open when either of them is closed. ERROR_IO: no
 * descriptor is left. */
int listener_open_shared(uv_loop_t *loop, int fd, const struct listener_options *options,
                         struct listener **ret_listener, uint16_t *ret_port, struct error *error);
int listener_socket(const struct listener *listener); /* stays the listener's */
/* While it rests, clients wait in the kernel's queue. */
void listener_rest(struct listener *listener, bool rests);
/* Takes clients when they connect from now on, not with their first bytes: those that wait for them would be
 * lost with the socket. */
void listener_prompt(struct listener *listener);
void listener_drain(struct listener *listener); /* takes all clients that wait in the kernel's queue */
/* Listens at a Unix socket of this mode; a file at the path is removed, and the socket with the listener. */
int listener_open_unix(uv_loop_t *loop, const char *path, unsigned mode,
                       const struct listener_options *options, struct listener **ret_listener,
                       struct error *error);
/* Tells that `descriptors` of connections are closed. */
void listener_left(struct listener *listener, uint32_t descriptors);
/* Closes the socket at once; `closed` (may be NULL) comes from the loop when the memory is gone. */
void listener_close(struct listener *listener, void (*closed)(void *context), void *context);

#endif
