/* hold.h - ends streams (logs and commands) whose user has lost the right to them. Private to api. watch.c
 * checks watches itself, before each change.
 *
 *     hold_begin(&stream->hold, request, end_stream);   // when the request was allowed
 *     hold_done(&stream->hold);                         // when the stream has ended; may be called twice
 *
 * Rights are checked once a second if roles, tokens or files have changed, and otherwise once a minute, as
 * certificates expire. Without access control a hold does nothing.
 */
#ifndef PHX_HOST_API_HOLD_H
#define PHX_HOST_API_HOLD_H

#include "host/api/guard.h"

struct hold {
    struct list_node node;   /* in api->holds while `pass` is set */
    struct guard_pass *pass; /* NULL: no access control, or done */
    struct api *api;
    const struct transport *transport; /* the stream's */
    void (*end)(struct hold *hold, int code);
};

/* Begins to check the right to a stream. When it is lost, the loop calls `end` once, with 401 or 403. The
 * hold is done by then, and `end` may free its owner. */
void hold_begin(struct hold *hold, const struct api_request *request,
                void (*end)(struct hold *hold, int code));
void hold_done(struct hold *hold);
/* Ends the streams whose users have lost the right. Called by the loop. */
void holds_check(struct api *api);

#endif
