/* origin.h - refuses requests that a web page of another site had a browser send. Private to api.
 *
 * A browser on the controller's computer reaches ports that its user reaches. So a page of any site can send
 * requests here (cross-site request forgery), open websockets, and, with a name of its own that resolves to
 * 127.0.0.1 (DNS rebinding), read the answers. A request is refused if
 *   - its Origin is not the server's own: scheme, host and port of the Host header;
 *   - its Sec-Fetch-Site is neither "same-origin" nor "none";
 *   - over plain HTTP, its Host is no loopback name, not the address of this end of the connection, and none
 *     of the names of the server; with TLS the certificate proves the name;
 *   - over plain HTTP, it has a body without Content-Type: a page sends that without asking first;
 *   - over plain HTTP, it asks for an upgrade and has an Origin, were it the server's own: the server's pages
 *     open no websockets, so only a page that another server left in a browser would. Authorization, which no
 *     page can send with a websocket, tells a library that adds an Origin of its own (Python's
 *     websocket-client).
 * Other clients than browsers and such libraries send neither Origin nor Sec-Fetch-Site.
 */
#ifndef PHX_HOST_API_ORIGIN_H
#define PHX_HOST_API_ORIGIN_H

#include <sys/socket.h>

#include "base/error.h"
#include "base/str.h"

/* The headers that count; .data NULL: absent. */
struct origin_headers {
    struct str host, origin, fetch_site, content_type;
    bool repeated; /* Host or Origin came twice */
    bool body;     /* it has a body */
    bool upgrade;  /* it has Upgrade */
    bool token;    /* it has Authorization */
};

/* The end of the connection that the request came to. */
struct origin_server {
    bool tls;
    const struct sockaddr *address; /* NULL: unknown */
    const char *const *names;       /* further names of the server */
    size_t name_count;
};

/* Returns 0 or the HTTP status of the refusal, whose reason is in `error`. */
int origin_check(const struct origin_headers *headers, const struct origin_server *server,
                 struct error *error);

#endif
