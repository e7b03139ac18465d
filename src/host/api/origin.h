/* origin.h - refuses requests that a web page of another site made a browser send. Private to api.
 *
 * A browser on the controller's machine reaches the ports that its user reaches. A page of any site can
 * therefore send requests here (cross-site request forgery), open websockets and, with a host name of its own
 * that resolves to 127.0.0.1 (DNS rebinding), read the answers. A request is refused if
 *   - its Origin is not the server's own: scheme, host and port of the Host header;
 *   - its Sec-Fetch-Site is neither "same-origin" nor "none";
 *   - over plain HTTP, its Host is neither a loopback name, nor the address of our end of the connection, nor
 *     one of the server's names; with TLS the certificate proves the name;
 *   - over plain HTTP, it has a body without Content-Type: a page can send that without a preflight request;
 *   - over plain HTTP, it asks for an upgrade and has an Origin, even the server's own: the server's pages
 *     open no websockets, so it comes from a page that another server left in the browser. A request with
 *     Authorization is allowed: a page cannot send that with a websocket, but a library that adds an Origin
 *     can (Python's websocket-client).
 * Clients other than browsers and such libraries send neither Origin nor Sec-Fetch-Site.
 */
#ifndef PHX_HOST_API_ORIGIN_H
#define PHX_HOST_API_ORIGIN_H

#include <sys/socket.h>

#include "base/error.h"
#include "base/str.h"

/* The headers that matter; .data NULL: absent. */
struct origin_headers {
    struct str host, origin, fetch_site, content_type;
    bool repeated; /* Host or Origin occurs twice */
    bool body;     /* the request has a body */
    bool upgrade;  /* the request has Upgrade */
    bool token;    /* the request has Authorization */
};

/* Our end of the connection. */
struct origin_server {
    bool tls;
    const struct sockaddr *address; /* NULL: unknown */
    const char *const *names;       /* further names of the server */
    size_t name_count;
};

/* Returns 0, or the HTTP status of the refusal, with the reason in `error`. */
int origin_check(const struct origin_headers *headers, const struct origin_server *server,
                 struct error *error);

#endif
