/* trial.h - asks a leader, in a session that shows our certificate, whether it takes requests that we
 * forward. Private to secure.c.
 *
 * The request is GET /livez, which every server answers to everybody. Only a leader that does not accept us
 * as a controller answers with 421.
 */
#ifndef PHX_HOST_STANDBY_TRIAL_H
#define PHX_HOST_STANDBY_TRIAL_H

#include <uv.h>

struct trial;
/* Sends the request into `fd`, the session's plain end, and owns that socket. The loop calls `ended` once,
 * with the answer's HTTP status, or with 0 if none came. The trial is invalid from then on. */
struct trial *trial_begin(uv_loop_t *loop, int fd, void (*ended)(void *context, int status), void *context);
void trial_cancel(struct trial *trial); /* `ended` is not called; NULL is fine */

#endif
