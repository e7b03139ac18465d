/* tls.h - TLS of the API: a server's certificate and sessions, and the users that clients' certificates name;
 * and a controller's sessions with the leader. For api and host/standby.
 *
 * The server asks clients for a certificate if it has an authority to check it by. It never refuses a client
 * in the handshake: a bad certificate is answered with 401, which clients can show.
 *
 * A controller that forwards requests offers the protocol API_TLS_FORWARDS (ALPN, RFC 7301) in its handshake.
 * A server that accepts it reads the client of each request from the request's head (forwarded.h), if the
 * peer's certificate is a controller's (host/access/pki.h). Earlier releases do not know the protocol.
 *
 * Threading: api_tls_begin(), api_tls_end() and functions on a session may be called by any thread (relay.h);
 * all others only on the loop's thread.
 */
#ifndef PHX_HOST_API_TLS_H
#define PHX_HOST_API_TLS_H

#include <gnutls/gnutls.h>

#include "host/access/access.h"
#include "host/access/pki.h"

#define API_TLS_FORWARDS "phalanx-forward/1"

struct api_tls;
struct api_tls_chain;

/* Loads a server's certificate and key (PEM). The paths must outlive *ret_tls. `ask_clients`: ask each client
 * for a certificate. */
int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error);
/* Loads a controller's client side, with the same files. ERROR_DENIED: the authorities in `ca_path` do not
 * certify us as a controller. Other errors: a file cannot be read. */
int api_tls_new_client(const char *cert_path, const char *key_path, const char *ca_path,
                       struct api_tls **ret_tls, struct error *error);
/* Lets a server's later sessions accept API_TLS_FORWARDS. Requires `ask_clients`. */
void api_tls_take_forwards(struct api_tls *tls);
bool api_tls_connects(const struct api_tls *tls); /* whether it is a client side */
/* Frees it once every session has ended (CHECKed). NULL is fine. */
void api_tls_free(struct api_tls *tls);
/* Reads the files again, for later sessions. On failure the previous certificate stays in use. */
int api_tls_reload(struct api_tls *tls, struct error *error);
/* Returns whether a file has changed since it was last read. */
bool api_tls_files_changed(const struct api_tls *tls);
/* Begins a session on a connected, non-blocking socket, which stays the caller's. The caller does the
 * handshake, and ends the session with api_tls_end(). */
gnutls_session_t api_tls_begin(struct api_tls *tls, int fd);
void api_tls_end(struct api_tls *tls, gnutls_session_t session);

/* Checks, after the handshake, that the peer is a controller which takes forwarded requests. ERROR_DENIED
 * says why it is not. */
int api_tls_check_leader(gnutls_session_t session, struct error *error);
/* Returns whether API_TLS_FORWARDS was negotiated. */
bool api_tls_forwards(gnutls_session_t session);
/* Returns whether the chain is a controller's. `tls` is a client side. */
bool api_tls_is_controller(struct api_tls *tls, const struct api_tls_chain *chain);

/* A client's certificates, leaf first, in DER. */
struct api_tls_chain {
    struct buf certs[PKI_CHAIN_MAX];
    unsigned count;
};
/* Copies the peer's certificates from a session after its handshake. Release the chain with
 * api_tls_chain_done(). */
void api_tls_chain_take(gnutls_session_t session, struct api_tls_chain *ret_chain);
struct api_tls_chain api_tls_chain_copy(const struct api_tls_chain *chain);
bool api_tls_chain_equal(const struct api_tls_chain *a, const struct api_tls_chain *b);
void api_tls_chain_done(struct api_tls_chain *chain);

/* The identity of a connection's peer, kept with the connection, so that its chain is not checked for each
 * request. */
struct api_tls_peer;
/* Moves the certificates out of `chain`. */
struct api_tls_peer *api_tls_peer_new(struct api_tls_chain *chain);
void api_tls_peer_free(struct api_tls_peer *peer);
/* Returns the user whom the peer's certificate names, or NULL if the peer showed none or, *ret_bad being set,
 * one that is not accepted. The result is valid until the next call with this peer. `now_ns` is monotonic: a
 * chain is checked again after a minute, and when the files of `access` have changed. */
const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access, int64_t now_ns,
                                            bool *ret_bad);
/* Returns whether the peer's certificate is a controller's. */
bool api_tls_peer_controls(struct api_tls_peer *peer, struct access *access, int64_t now_ns);
const struct api_tls_chain *api_tls_peer_chain(const struct api_tls_peer *peer);

#endif
