/* entry.h - new connections: taken from the listening socket, and given to a daemon of libmicrohttpd, or
 * first to the relay, which speaks TLS (relay.h). Private to server.c.
 *
 * The two daemons of plain HTTP differ in the memory that a connection has for its request line and headers.
 *
 * A watch holds that memory as long as it is open, and there are thousands; a command's URL is as long as
 * its script. So a connection whose first bytes hold whole headers goes where memory is small, and any
 * other where it is large. The kernel hands out a connection when its first bytes are there
 * (TCP_DEFER_ACCEPT, tcp(7)), or after a second without any, which counts as small.
 *
 * Where both are served, the first byte tells TLS (22, a handshake's record) from HTTP. Plain HTTP is for
 * clients on this computer alone: any other connection goes to the relay, whatever it says. A client of the
 * relay comes to a daemon with the first bytes of its request.
 */
#ifndef PHX_HOST_API_ENTRY_H
#define PHX_HOST_API_ENTRY_H

#include <microhttpd.h>
#include <uv.h>

#include "host/api/relay.h"

enum {
    ENTRY_SMALL_BYTES = 5 * 1024,  /* of request line and headers, and of a stream's chunks */
    ENTRY_LARGE_BYTES = 32 * 1024, /* URL_BYTES_MAX and the headers; a word of a command takes 80 */
};

struct entry {
    int fd;
    uint32_t open, open_max; /* descriptors of connections */
    struct MHD_Daemon *small, *large;
    struct relay *relay;            /* NULL: no TLS */
    bool plain;                     /* HTTP without TLS is served */
    void (*entered)(void *context); /* a daemon has a new connection */
    void *context;
    uv_poll_t poll;
};

/* `entry` is filled in but for `poll`, and owns `fd`. */
void entry_open(struct entry *entry, uv_loop_t *loop);
/* Gives a connected socket, with the first bytes of its request, to a daemon, which closes it. */
void entry_give(struct entry *entry, int fd, const struct sockaddr *address, socklen_t len);
/* Tells that `files` descriptors of connections are closed. */
void entry_left(struct entry *entry, uint32_t files);
/* `closed` is called with the handle, whose `data` is the context, by the loop. */
void entry_close(struct entry *entry, uv_close_cb closed);

#endif
