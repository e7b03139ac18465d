/* hold.h - what stays open behind a request that was allowed, and ends with the right to it: logs and
 * commands (watch.c asks for its own, before each change). Private to api.
 *
 *     hold_begin(&stream->hold, request, end_stream);   // when it is allowed
 *     hold_done(&stream->hold);                         // when it has ended for any reason; again is nothing
 *
 * Looked at once a second, if roles, tokens or files changed or a minute has passed (certificates end by
 * themselves). Where nobody is asked who they are a hold is nothing.
 */
#ifndef PHX_HOST_API_HOLD_H
#define PHX_HOST_API_HOLD_H

#include "host/api/guard.h"

struct hold {
    struct list_node node;   /* in api->holds while `pass` is set */
    struct guard_pass *pass; /* NULL: nobody is asked, or it is done */
    const struct api_request *request;
    void (*end)(struct hold *hold, int code);
};

/* `end` (401 or 403) comes from the loop, once; the hold is done by then, and its owner may be freed. */
void hold_begin(struct hold *hold, const struct api_request *request,
                void (*end)(struct hold *hold, int code));
void hold_done(struct hold *hold);
/* Ends those that may no more. From the loop. */
void holds_check(struct api *api);

#endif
