/* forwarded.h - header lines that name the client of a request which one controller forwards to another.
 * Pure. For api and host/standby.
 *
 *   Client-Cert: :BASE64:                     the leaf certificate of the client, in DER (RFC 9440)
 *   Client-Cert-Chain: :BASE64:, :BASE64:     the rest of its chain
 *   X-Forwarded-For: 10.0.0.7                 its address
 *
 * The leader reads these lines only on a connection with a controller's certificate and API_TLS_FORWARDS
 * (tls.h). It checks the certificates itself, against its own authorities and their revocations: the
 * forwarding controller vouches for one thing, that the client has the leaf's key. Other credentials
 * (Authorization, Impersonate-...) pass unchanged, and mean what they mean in the client's own request. Lines
 * of these names that a client sends are removed before the controller adds its own.
 */
#ifndef PHX_HOST_API_FORWARDED_H
#define PHX_HOST_API_FORWARDED_H

#include <sys/socket.h>

#include "host/api/tls.h"
#include "host/http/http.h"

/* Appends `head` (its text, with the empty line at the end) to `out`, and replaces all lines of these names
 * by those of the client. */
void forwarded_put(struct buf *out, struct str head, const struct api_tls_chain *chain,
                   const struct sockaddr_storage *from);
/* Reads the certificates; the caller releases the chain, which may be empty. Returns false if the lines are
 * malformed or repeated. */
bool forwarded_chain(const struct http_head *head, struct api_tls_chain *ret_chain);
/* Returns the client's address as text in `head`, or an empty string if it is absent or malformed. */
struct str forwarded_address(const struct http_head *head);

#endif
