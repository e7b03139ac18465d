/* door.h - an HTTP server for the few requests that an agent answers: fault reports on a Unix socket, metrics
 * on a port. A simple handler and fixed limits on top of http.h.
 *
 * Limits: DOOR_CONNECTIONS_MAX connections (further ones wait), DOOR_HEAD_MAX bytes of a head, DOOR_BODY_MAX
 * bytes of a body, DOOR_SECONDS for each of a head, a body, silence, and an answer that is not read.
 *
 * Call all functions on the loop's thread. The handler must fill in the answer before it returns.
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
    int code;          /* default 200 */
    const char *type;  /* static storage; default "text/plain; charset=utf-8" */
    int retry_after_s; /* 0: no Retry-After header */
    struct buf body;   /* the door frees it */
};
typedef void door_handler(void *context, const struct door_request *request, struct door_answer *answer);

struct door;
/* Listens on a Unix socket with this mode. Removes a file at the path first. */
int door_open_unix(uv_loop_t *loop, const char *path, unsigned mode, door_handler *handler, void *context,
                   struct door **ret_door, struct error *error);
/* Listens on a numeric address ("127.0.0.1", "::"). `port` 0: any; *ret_port (may be NULL) is the port. */
int door_open_tcp(uv_loop_t *loop, const char *address, uint16_t port, door_handler *handler, void *context,
                  struct door **ret_door, uint16_t *ret_port, struct error *error);
/* Closes all connections. The loop calls `closed` (may be NULL) when the memory is freed. */
void door_close(struct door *door, void (*closed)(void *context), void *context);

#endif
