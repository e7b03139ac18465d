/* error.h - how libphalanx describes a failure to its caller. Any thread. */
#ifndef PHX_JOB_LINK_ERROR_H
#define PHX_JOB_LINK_ERROR_H

#include "phalanx/phalanx.h"

/* Fills *error, when it isn't NULL, and returns code, so that `return job_fail(...)` is one statement. */
int job_fail(struct phx_error *error, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As job_fail with PHX_ERROR_IO, with the text of `errnum` after the message. */
int job_fail_errno(struct phx_error *error, int errnum, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As job_fail with PHX_ERROR_PEER, for a rank that is lost or has left; `what` says which. */
int job_fail_peer(struct phx_error *error, uint32_t rank, const char *what);

#endif
