/* identity.h - who speaks by a connection, and by each of its requests. Private to api.
 *
 * A connection is one client's, whose certificate came with the handshake; or a controller's, which passes
 * others' requests on and names their clients in each head (forwarded.h).
 */
#ifndef PHX_HOST_API_IDENTITY_H
#define PHX_HOST_API_IDENTITY_H

#include <netinet/in.h>

#include "host/api/guard.h"
#include "host/api/tls.h"
#include "host/http/http.h"

enum { IDENTITY_CONTROLLERS = 5 };

/* Certificates that came with connections which pass requests on. A controller opens one for each of its
 * clients: its certificate is checked once for all of them. */
struct identity_controllers {
    struct api_tls_peer *known[IDENTITY_CONTROLLERS];
    unsigned next; /* of `known`: replaced by the next one */
};
void identity_controllers_done(struct identity_controllers *controllers);

struct identity {
    struct api_tls_peer *tls; /* NULL: it speaks plain HTTP */
    struct identity_controllers *controllers;
    bool forwards;            /* API_TLS_FORWARDS was agreed on */
    char address[INET6_ADDRSTRLEN];
    /* The client of the newest request that was passed on: */
    struct api_tls_peer *client;           /* NULL: there was none */
    char client_address[INET6_ADDRSTRLEN]; /* empty: not known */
};

/* Reads what a head says of its client, but for the certificate's user. Strings are copied to the arena.
 * Returns 0, or the status of a refusal: 421, the connection passes requests on, and its certificate is no
 * controller's or no longer; 400, the client's certificates cannot be read. */
int identity_read(struct identity *identity, struct access *access, int64_t now_ns,
                  const struct http_head *head, struct arena *arena, struct guard_headers *ret_headers);
/* The user whom the certificate of the newest request's client names now; NULL: there is none, or (*ret_bad)
 * it is not accepted. A controller's own certificate is nobody's where it passes requests on. */
const struct access_user *identity_certificate(const struct identity *identity, struct access *access,
                                               int64_t now_ns, bool *ret_bad);
void identity_done(struct identity *identity);

#endif
