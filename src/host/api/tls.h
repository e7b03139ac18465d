/* tls.h - TLS of the API: a server's certificate, its sessions, and the users that clients' certificates
 * name; and a controller's sessions with the one that leads. For api and host/standby.
 *
 * Clients are asked for a certificate when there is an authority to check it by, and never refused for it in
 * the handshake: a bad one is answered with 401, which clients can show.
 *
 * A controller that passes requests on offers the protocol API_TLS_FORWARDS (ALPN, RFC 7301) in its
 * handshake. A server that takes it reads the client of each request from the request's head (forwarded.h),
 * if the peer's certificate is a controller's (host/access/pki.h). An earlier release takes no such protocol.
 *
 * api_tls_begin(), api_tls_end() and api_tls_check_leader() may be called by any thread (relay.h); everything
 * else is the loop's.
 */
#ifndef PHX_HOST_API_TLS_H
#define PHX_HOST_API_TLS_H

#include <gnutls/gnutls.h>

#include "host/access/access.h"
#include "host/access/pki.h"

#define API_TLS_FORWARDS "phalanx-forward/1"

struct api_tls;
struct api_tls_chain;

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error);
/* The client's side of a controller, with the same files. ERROR_DENIED: the authorities of `ca_path` do not
 * certify it as a controller; others: a file cannot be read. */
int api_tls_new_client(const char *cert_path, const char *key_path, const char *ca_path,
                       struct api_tls **ret_tls, struct error *error);
/* A server's sessions take API_TLS_FORWARDS from now on. */
void api_tls_take_forwards(struct api_tls *tls);
bool api_tls_connects(const struct api_tls *tls); /* a client's side */
/* Every session must have ended. */
void api_tls_free(struct api_tls *tls);
/* Reads the files again, for sessions that begin from now on. */
int api_tls_reload(struct api_tls *tls, struct error *error);
bool api_tls_files_changed(const struct api_tls *tls);
/* Begins the session on a connected socket that does not block. The caller shakes hands, and ends
 * the session with api_tls_end(); the socket stays the caller's. */
gnutls_session_t api_tls_begin(struct api_tls *tls, int fd);
void api_tls_end(struct api_tls *tls, gnutls_session_t session);

/* Whether a controller answers in a session whose handshake is over, and takes others' requests:
 * ERROR_DENIED says why not. */
int api_tls_check_leader(gnutls_session_t session, struct error *error);
/* Whether API_TLS_FORWARDS was agreed on. */
bool api_tls_forwards(gnutls_session_t session);
/* Whether the chain is a controller's, as a client's side sees it. */
bool api_tls_is_controller(struct api_tls *tls, const struct api_tls_chain *chain);

/* The certificates that a client has shown, leaf first, in DER. */
struct api_tls_chain {
    struct buf certs[PKI_CHAIN_MAX];
    unsigned count;
};
/* Copies them out of a session whose handshake is over. The caller releases them. */
void api_tls_chain_take(gnutls_session_t session, struct api_tls_chain *ret_chain);
struct api_tls_chain api_tls_chain_copy(const struct api_tls_chain *chain);
bool api_tls_chain_equal(const struct api_tls_chain *a, const struct api_tls_chain *b);
void api_tls_chain_done(struct api_tls_chain *chain);

/* The identity of a connection's peer; kept with the connection, so that a chain is checked once. */
struct api_tls_peer;
/* Takes the certificates out of `chain`. */
struct api_tls_peer *api_tls_peer_new(struct api_tls_chain *chain);
void api_tls_peer_free(struct api_tls_peer *peer);
/* NULL: no certificate was shown, or (*ret_bad) one that is not accepted. */
const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access, int64_t now_ns,
                                            bool *ret_bad);
/* Whether its certificate is a controller's. */
bool api_tls_peer_controls(struct api_tls_peer *peer, struct access *access, int64_t now_ns);
const struct api_tls_chain *api_tls_peer_chain(const struct api_tls_peer *peer);

#endif
