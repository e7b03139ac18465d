/* error.h - errors as values: one closed table of codes, a message, and its chain of causes.
 *
 * Convention: a function that can fail returns 0 or a negative `enum error_code`, and takes a `struct
 * error *` last (NULL allowed) in which it leaves a message. Result parameters stay untouched on failure.
 *
 *     if (store_open(&store, path, error) < 0)
 *         return error_wrap(error, "starting the controller");
 *
 * leaves "starting the controller: <cause>". Not thread-safe per object; objects are independent.
 */
#ifndef PHX_BASE_ERROR_H
#define PHX_BASE_ERROR_H

#include <stdarg.h>

enum error_code {
    ERROR_NONE = 0,
    ERROR_INVALID = -1,      /* the input breaks a rule: correct it */
    ERROR_NOT_FOUND = -2,    /* the thing named does not exist */
    ERROR_EXISTS = -3,       /* the name is taken */
    ERROR_CONFLICT = -4,     /* the object has changed: read it again */
    ERROR_LIMIT = -5,        /* a documented limit (limits.h) would be exceeded */
    ERROR_FENCED = -6,       /* a newer attempt exists: stop */
    ERROR_UNAVAILABLE = -7,  /* a peer cannot be reached now: try again */
    ERROR_TIMEOUT = -8,      /* the time allowed ran out */
    ERROR_IO = -9,           /* the operating system refused; the message names the call's reason */
    ERROR_NO_SPACE = -10,    /* the disk is full: free space, and the work continues by itself */
    ERROR_CORRUPT = -11,     /* stored or received bytes are damaged */
    ERROR_UNSUPPORTED = -12, /* a version or feature that this build does not know */
    ERROR_DENIED = -13,      /* the caller may not do this */
};

enum { ERROR_TEXT_MAX = 512 };

struct error {
    enum error_code code;
    char text[ERROR_TEXT_MAX]; /* UTF-8, NUL-terminated, no newline; truncated with "..." when too long */
};

/* Returns the name of a code, such as "NOT_FOUND", in static storage. */
const char *error_name(int code);

/* Sets code and message; returns `code`, so that `return error_set(...)` reads well. `error` may be NULL. */
int error_set(struct error *error, enum error_code code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* As error_set with ERROR_IO (ERROR_NO_SPACE for ENOSPC/EDQUOT), appending strerror(errno_value). */
int error_set_errno(struct error *error, int errno_value, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Puts "context: " before the error's message; returns the error's code. If `error` is NULL the code is not
 * known and ERROR_INVALID is returned, so a caller that acts on the code must keep the callee's result. */
int error_wrap(struct error *error, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
