/* trial.h - asks a leader, in a session that shows our certificate, whether it takes requests that we pass
 * on. Private to secure.c.
 *
 * The request is one that every server answers to everybody. Only a leader that does not believe that we are
 * a controller answers it with 421.
 */
#ifndef PHX_HOST_STANDBY_TRIAL_H
#define PHX_HOST_STANDBY_TRIAL_H

#include <uv.h>

struct trial;
/* Asks by the session's plain end, and owns it. `ended` is called once, by the loop, with the status of the
 * answer, 0: none came. The trial is gone then. */
struct trial *trial_begin(uv_loop_t *loop, int fd, void (*ended)(void *context, int status), void *context);
void trial_cancel(struct trial *trial); /* `ended` is not called; NULL is fine */

#endif
