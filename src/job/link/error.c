#include "job/link/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

const char *phx_code_name(int code)
{
    switch (code) {
    case PHX_OK:
        return "ok";
    case PHX_ERROR_INVALID:
        return "invalid argument";
    case PHX_ERROR_MEMORY:
        return "out of memory";
    case PHX_ERROR_IO:
        return "input/output error";
    case PHX_ERROR_TIMEOUT:
        return "timed out";
    case PHX_ERROR_PEER:
        return "peer lost";
    case PHX_ERROR_FENCED:
        return "fenced";
    case PHX_ERROR_NONE:
        return "not found";
    case PHX_ERROR_CORRUPT:
        return "corrupt";
    case PHX_ERROR_REJOIN:
        return "membership changes";
    case PHX_ERROR_RETRY:
        return "to be made again";
    case PHX_ERROR_SPACE:
        return "buffer too small";
    default:
        return "unknown error";
    }
}

static void fill(struct phx_error *error, int code, const char *format, va_list arguments)
{
    error->code = code;
    error->rank = -1;
    vsnprintf(error->message, sizeof error->message, format, arguments);
}

int job_fail(struct phx_error *error, int code, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        fill(error, code, format, arguments);
        va_end(arguments);
    }
    return code;
}

int job_fail_errno(struct phx_error *error, int errnum, const char *format, ...)
{
    if (error != NULL) {
        va_list arguments;
        va_start(arguments, format);
        fill(error, PHX_ERROR_IO, format, arguments);
        va_end(arguments);
        char reason[128];
        size_t len = strlen(error->message);
        snprintf(error->message + len, sizeof error->message - len, ": %s",
                 strerror_r(errnum, reason, sizeof reason));
    }
    return PHX_ERROR_IO;
}

int job_fail_peer(struct phx_error *error, uint32_t rank, const char *what)
{
    job_fail(error, PHX_ERROR_PEER, "rank %u %s", rank, what);
    if (error != NULL)
        error->rank = (int)rank;
    return PHX_ERROR_PEER;
}
