/* hold.h - streams that stay open behind an allowed request and end with the right to it: logs and commands
 * (watch.c checks its own, before each change). Private to api.
 *
 *     hold_begin(&stream->hold, request, end_stream);   // when it is allowed
 *     hold_done(&stream->hold);                         // when it has ended; a second call does nothing
 *
 * Checked once a second, if roles, tokens or files changed or a minute has passed (certificates end by
 * themselves). Without access control a hold does nothing.
 */
#ifndef PHX_HOST_API_HOLD_H
#define PHX_HOST_API_HOLD_H

#include "host/api/guard.h"

struct hold {
    struct list_node node;   /* in api->holds while `pass` is set */
    struct guard_pass *pass; /* NULL: no access control, or done */
    struct api *api;
    const struct transport *transport; /* of the stream */
    void (*end)(struct hold *hold, int code);
};

/* `end` (401 or 403) comes from the loop, once; the hold is done by then, and its owner may be freed. */
void hold_begin(struct hold *hold, const struct api_request *request,
                void (*end)(struct hold *hold, int code));
void hold_done(struct hold *hold);
/* Ends the streams whose right has ended. Called by the loop. */
void holds_check(struct api *api);

#endif
