/* http.h - a small HTTP/1.1 server for the few requests that an agent answers itself: reports of faults on a
 * Unix socket, metrics on a port. The server of the API (host/api) needs libmicrohttpd and the core; this one
 * shall cost a machine nothing.
 *
 * One request a connection: "Connection: close". Bodies have a Content-Length; chunked ones are refused
 * (411). Bounded: HTTP_CONNS_MAX connections (more are closed at once), HTTP_HEAD_MAX of a head,
 * HTTP_BODY_MAX of a body, HTTP_SECONDS for a whole request, so a slow client holds nothing for long.
 *
 * On the loop's thread. The handler answers at once.
 */
#ifndef PHX_HOST_AGENT_HTTP_H
#define PHX_HOST_AGENT_HTTP_H

#include <uv.h>

#include "base/error.h"
#include "base/str.h"

enum { HTTP_HEAD_MAX = 8 * 1024, HTTP_BODY_MAX = 256 * 1024, HTTP_CONNS_MAX = 64, HTTP_SECONDS = 10 };

struct http_request { /* points into the received bytes */
    struct str method, path, body;
};
/* The bytes of a request as they come: 1: it is whole; 0: more has to come; negative: the status (less its
 * sign) that refuses it. */
int http_parse(struct str bytes, struct http_request *ret_request);

struct http_answer {
    int code;
    const char *type;  /* static; "text/plain; charset=utf-8" unless the handler says otherwise */
    int retry_after_s; /* 0: nothing is said */
    struct buf body;
};
typedef void http_handler(void *context, const struct http_request *request, struct http_answer *answer);

struct http_server;
/* Listens at a Unix socket with this mode; a file at the path is removed. */
int http_listen_unix(uv_loop_t *loop, const char *path, unsigned mode, http_handler *handler, void *context,
                     struct http_server **ret_server, struct error *error);
/* At an address ("127.0.0.1", "::"); *ret_port is the one taken when `port` is 0. */
int http_listen_tcp(uv_loop_t *loop, const char *address, uint16_t port, http_handler *handler, void *context,
                    struct http_server **ret_server, uint16_t *ret_port, struct error *error);
/* Closes everything; `closed` comes from the loop when the memory is gone. */
void http_close(struct http_server *server, void (*closed)(void *context), void *context);

#endif
