/* forwarded.h - the client of a request that one controller passes on to another, in the request's head.
 * Pure. For api and host/standby.
 *
 *   Client-Cert: :BASE64:                     the leaf that the client has shown, in DER (RFC 9440)
 *   Client-Cert-Chain: :BASE64:, :BASE64:     the rest of its chain
 *   X-Forwarded-For: 10.0.0.7                 its address
 *
 * The leader reads these lines where a controller's certificate and API_TLS_FORWARDS came with the connection
 * (tls.h), and nowhere else. It checks the certificates itself, against its own authorities and what they
 * revoked: the controller that passes the request on vouches for one thing, that the client has the leaf's
 * key. Other credentials (Authorization, Impersonate-...) pass unchanged, and mean what they mean in the
 * client's own mouth. Lines of these names that a client sends are removed before the controller adds its
 * own.
 */
#ifndef PHX_HOST_API_FORWARDED_H
#define PHX_HOST_API_FORWARDED_H

#include <sys/socket.h>

#include "host/api/tls.h"
#include "host/http/http.h"

/* Appends the head, whose bytes these are with the empty line, with its client's lines in place of all lines
 * of these names. */
void forwarded_put(struct buf *out, struct str head, const struct api_tls_chain *chain,
                   const struct sockaddr_storage *from);
/* Reads the certificates, of which there may be none. False: the lines are malformed, or repeated. */
bool forwarded_chain(const struct http_head *head, struct api_tls_chain *ret_chain);
/* Returns the address as a text; empty: none that can be read. */
struct str forwarded_address(const struct http_head *head);

#endif
