/* tls.h - the server's side of TLS: its certificate, and the users that clients' certificates name. Private
 * to api.
 *
 * libmicrohttpd runs the handshakes. It asks a function for the certificate that has no context of ours, so
 * api_tls_enter() names the server before each run; there may be several servers, all on one thread.
 *
 * Clients are asked for a certificate when there is an authority to check it by, and never refused for it in
 * the handshake: a bad one is answered with 401, which clients can show.
 */
#ifndef PHX_HOST_API_TLS_H
#define PHX_HOST_API_TLS_H

#include <gnutls/gnutls.h>
#include <microhttpd.h>

#include "host/access/access.h"

struct api_tls;
enum { API_TLS_OPTIONS = 3 }; /* entries that api_tls_options() fills, its end included */

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error);
void api_tls_free(struct api_tls *tls);
int api_tls_reload(struct api_tls *tls, struct error *error);
bool api_tls_files_changed(const struct api_tls *tls);
void api_tls_options(struct MHD_OptionItem options[API_TLS_OPTIONS]);
void api_tls_enter(struct api_tls *tls);

/* The identity of a connection's peer; kept with the connection, so that a chain is checked once. */
struct api_tls_peer;
struct api_tls_peer *api_tls_peer_new(void);
void api_tls_peer_free(struct api_tls_peer *peer);
/* NULL: no certificate was shown, or (*ret_bad) one that is not accepted. */
const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access,
                                            gnutls_session_t session, int64_t now_ns, bool *ret_bad);

#endif
