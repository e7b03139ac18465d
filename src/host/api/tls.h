/* tls.h - the server's side of TLS: its certificate, its sessions, and the users that clients' certificates
 * name. Private to api.
 *
 * Clients are asked for a certificate when there is an authority to check it by, and never refused for it in
 * the handshake: a bad one is answered with 401, which clients can show.
 *
 * api_tls_begin() and api_tls_end() may be called by any thread (relay.h); everything else is the loop's.
 */
#ifndef PHX_HOST_API_TLS_H
#define PHX_HOST_API_TLS_H

#include <gnutls/gnutls.h>

#include "host/access/access.h"
#include "host/access/pki.h"

struct api_tls;

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error);
/* Every session must have ended. */
void api_tls_free(struct api_tls *tls);
/* Reads certificate and key again, for sessions that begin from now on. */
int api_tls_reload(struct api_tls *tls, struct error *error);
bool api_tls_files_changed(const struct api_tls *tls);
/* Begins the session of a server on a connected socket that does not block. The caller shakes hands, and ends
 * the session with api_tls_end(); the socket stays the caller's. */
gnutls_session_t api_tls_begin(struct api_tls *tls, int fd);
void api_tls_end(struct api_tls *tls, gnutls_session_t session);

/* The certificates that a client has shown, leaf first, in DER. */
struct api_tls_chain {
    struct buf certs[PKI_CHAIN_MAX];
    unsigned count;
};
/* Copies them out of a session whose handshake is over. The caller releases them. */
void api_tls_chain_take(gnutls_session_t session, struct api_tls_chain *ret_chain);
void api_tls_chain_done(struct api_tls_chain *chain);

/* The identity of a connection's peer; kept with the connection, so that a chain is checked once. */
struct api_tls_peer;
/* Takes the certificates out of `chain`. */
struct api_tls_peer *api_tls_peer_new(struct api_tls_chain *chain);
void api_tls_peer_free(struct api_tls_peer *peer);
/* NULL: no certificate was shown, or (*ret_bad) one that is not accepted. */
const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access, int64_t now_ns,
                                            bool *ret_bad);

#endif
