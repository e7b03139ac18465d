/* linger.h - connections that were answered before their request was whole: a URL or headers that are too
 * long. Private to server.c.
 *
 * A socket that is closed with unread bytes resets the connection, and the reset can overtake the answer
 * (RFC 9112 section 9.6). So such a socket says that nothing more will come, and what the client still sends
 * is thrown away until it has closed its side too, for a second or two at most. Few may linger at a time, so
 * that nobody holds descriptors by it; the others are closed at once.
 */
#ifndef PHX_HOST_API_LINGER_H
#define PHX_HOST_API_LINGER_H

#include <stdbool.h>
#include <uv.h>

#include "base/list.h"

enum { LINGER_MAX = 64, LINGER_TICKS = 2 };

struct lingering {
    uv_loop_t *loop;
    struct list_node sockets;
    int count;
};

void linger_init(struct lingering *linger, uv_loop_t *loop);
/* `fd` is about to be closed by its owner. `early`: it may have been answered before its client had sent
 * everything; otherwise only bytes that are already there show that. */
void linger_take(struct lingering *linger, int fd, bool early);
/* Once a second. */
void linger_tick(struct lingering *linger);
/* Closes them all; the loop has to run on for their memory. */
void linger_close(struct lingering *linger);

#endif
