/* slow.h - slow clients: a connection either makes progress with its request or is closed. Private to
 * server.c.
 *
 * libmicrohttpd's own time limit begins again with each byte, so a byte now and then would hold a connection
 * for ever ("slowloris"). Here the limit is for each stage as a whole: silence or half a request line,
 * headers, body. A request that is being answered, a watch among them, is in none of them.
 */
#ifndef PHX_HOST_API_SLOW_H
#define PHX_HOST_API_SLOW_H

#include <microhttpd.h>
#include <stdint.h>

#include "base/list.h"

enum slow_stage { SLOW_QUIET, SLOW_HEADERS, SLOW_BODY, SLOW_STAGES };

struct slow {
    struct list_node stages[SLOW_STAGES]; /* the one that came first is first */
};
struct slow_peer {
    struct list_node node;
    struct MHD_Connection *connection;
    int64_t since_ns; /* when it came into its stage */
};

void slow_init(struct slow *slow);
/* A connection is new, or comes into another stage. SLOW_STAGES: its request is being answered. */
void slow_move(struct slow *slow, struct slow_peer *peer, enum slow_stage stage, int64_t now_ns);
/* Call once a second: shuts down connections whose time is over; libmicrohttpd then closes them. */
void slow_tick(struct slow *slow, int64_t now_ns);

#endif
