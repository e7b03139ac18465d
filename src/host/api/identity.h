/* identity.h - the client of a connection, and of each of its requests. Private to api.
 *
 * A connection belongs to one client, whose certificate came with the handshake; or to a controller, which
 * forwards requests and names the client of each in the request's head (forwarded.h).
 */
#ifndef PHX_HOST_API_IDENTITY_H
#define PHX_HOST_API_IDENTITY_H

#include <netinet/in.h>

#include "host/api/guard.h"
#include "host/api/tls.h"
#include "host/http/http.h"

enum { IDENTITY_CONTROLLERS = 5 };

/* The certificates of controllers that forward requests. A controller opens a connection for each of its
 * clients; its certificate is checked once for all of them. */
struct identity_controllers {
    struct api_tls_peer *known[IDENTITY_CONTROLLERS];
    unsigned next; /* index in `known` that the next certificate replaces */
};
void identity_controllers_done(struct identity_controllers *controllers);

struct identity {
    struct api_tls_peer *tls; /* NULL: the connection has no TLS */
    struct identity_controllers *controllers;
    bool forwards; /* API_TLS_FORWARDS was negotiated */
    char address[INET6_ADDRSTRLEN];
    /* The client of the newest forwarded request: */
    struct api_tls_peer *client;           /* NULL: none yet */
    char client_address[INET6_ADDRSTRLEN]; /* empty: unknown */
};

/* Reads what a head states about its client, except the certificate's user (identity_certificate()). Strings
 * are copied to the arena. Returns 0, or the HTTP status of a refusal: 421 if the connection forwards
 * requests but its certificate is not, or no longer, a controller's; 400 if the client's certificates are
 * malformed. */
int identity_read(struct identity *identity, struct access *access, int64_t now_ns,
                  const struct http_head *head, struct arena *arena, struct guard_headers *ret_headers);
/* Returns the user whom the certificate of the newest request's client names now. Returns NULL if there is no
 * certificate or, *ret_bad being set, if it is not accepted. On a connection that forwards requests, the
 * controller's own certificate names no user. */
const struct access_user *identity_certificate(const struct identity *identity, struct access *access,
                                               int64_t now_ns, bool *ret_bad);
void identity_done(struct identity *identity);

#endif
