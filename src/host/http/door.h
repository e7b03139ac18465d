/* door.h - an HTTP server for the few requests that an agent answers itself: reports of faults on a Unix
 * socket, metrics on a port. http.h serves it; here are its bounds and its plain handler.
 *
 * Bounded: DOOR_CONNECTIONS_MAX connections (further ones wait), DOOR_HEAD_MAX of a head, DOOR_BODY_MAX of a
 * body, DOOR_SECONDS for each of a head, a body, silence, and an answer that is not taken.
 *
 * On the loop's thread. The handler answers at once.
 */
#ifndef PHX_HOST_HTTP_DOOR_H
#define PHX_HOST_HTTP_DOOR_H

#include <uv.h>

#include "base/error.h"
#include "base/str.h"

enum { DOOR_HEAD_MAX = 8 * 1024, DOOR_BODY_MAX = 256 * 1024, DOOR_CONNECTIONS_MAX = 64, DOOR_SECONDS = 10 };

struct door_request {
    struct str method, path, body; /* path: without the query */
};
struct door_answer {
    int code;          /* 200 unless the handler says otherwise */
    const char *type;  /* static; "text/plain; charset=utf-8" unless the handler says otherwise */
    int retry_after_s; /* 0: nothing is said */
    struct buf body;
};
typedef void door_handler(void *context, const struct door_request *request, struct door_answer *answer);

struct door;
/* Listens at a Unix socket with this mode; a file at the path is removed. */
int door_open_unix(uv_loop_t *loop, const char *path, unsigned mode, door_handler *handler, void *context,
                   struct door **ret_door, struct error *error);
/* At an address ("127.0.0.1", "::"); *ret_port (may be NULL) is the one taken when `port` is 0. */
int door_open_tcp(uv_loop_t *loop, const char *address, uint16_t port, door_handler *handler, void *context,
                  struct door **ret_door, uint16_t *ret_port, struct error *error);
/* Closes everything; `closed` (may be NULL) comes from the loop when the memory is gone. */
void door_close(struct door *door, void (*closed)(void *context), void *context);

#endif
