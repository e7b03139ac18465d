/* pki.h - certificates: a small authority for the cluster, and what TLS needs (GnuTLS).
 *
 * Keys are ECDSA on NIST P-256. A key file is created with mode 0600, appears complete or not at all, and is
 * never overwritten. Certificates follow Kubernetes: the common name is the client's name, the organizations
 * are its groups (RFC 5280; Kubernetes' "X.509 client certificates").
 *
 * The functions keep no state; pki_check_chain() and pki_check_controller() may be called by any thread.
 */
#ifndef PHX_HOST_ACCESS_PKI_H
#define PHX_HOST_ACCESS_PKI_H

#include <gnutls/abstract.h>
#include <gnutls/gnutls.h>

#include "base/error.h"
#include "base/str.h"

enum {
    PKI_AUTHORITY_DAYS = 3650,
    PKI_SERVER_DAYS = 397,
    PKI_CLIENT_DAYS = 365,
    PKI_CHAIN_MAX = 8,
    PKI_TOKEN_TEXT = 44, /* a random token as text, and a NUL */
};

/* Makes an authority's self-signed certificate and key, unless both files exist. */
int pki_authority(const char *name, const char *cert_path, const char *key_path, struct error *error);

struct pki_request {
    const char *name;                 /* common name */
    const char *const *organizations; /* groups of a client; may be NULL */
    size_t organization_count;
    const char *const *hosts; /* a server's names and addresses; none: for clients only */
    size_t host_count;
    int days;
};
/* Makes a key and a certificate signed by the authority. With hosts, the certificate serves a server and a
 * client. Fails if the key file exists. */
int pki_issue(const char *authority_cert, const char *authority_key, const struct pki_request *request,
              const char *cert_path, const char *key_path, struct error *error);
/* Returns false if the certificate cannot be read, or expires within `days`. */
bool pki_is_valid_for(const char *cert_path, int days);
/* Returns whether the certificate can be read and names every host: DNS names and addresses. */
bool pki_names_hosts(const char *cert_path, const char *const *hosts, size_t host_count);

/* Makes a token of random letters, digits, '-' and '_', with 258 bits from the system's generator. */
void pki_random_token(char ret_text[PKI_TOKEN_TEXT]);

/* A server's or client's certificate chain and key, ready for TLS. */
struct pki_identity {
    gnutls_pcert_st certs[PKI_CHAIN_MAX];
    unsigned cert_count;
    gnutls_privkey_t key;
};
/* Loads a PEM chain (leaf first) and its key. ERROR_INVALID: a file is malformed, or they do not match. */
int pki_identity_load(const char *cert_path, const char *key_path, struct pki_identity **ret_identity,
                      struct error *error);
void pki_identity_free(struct pki_identity *identity); /* NULL is fine */

/* The revocation list of an authority: "revoked.crl" next to its certificate (PEM, signed by the authority).
 * If the file is absent, nothing is revoked. */
enum { PKI_PATH_MAX = 4096 };
void pki_revoked_path(const char *authority_cert, char ret_path[PKI_PATH_MAX]);
/* Adds a certificate to the list. ERROR_INVALID: another authority issued it. */
int pki_revoke(const char *authority_cert, const char *authority_key, const char *cert_path,
               struct error *error);
/* Adds the list to `trust`. ERROR_INVALID: the authority has not signed it. */
int pki_trust_add_revoked(gnutls_x509_trust_list_t trust, const char *authority_cert, struct error *error);

/* Loads the authorities in a PEM file, and their revocation list. The caller deinitialises *ret_trust. */
int pki_trust_load(const char *path, gnutls_x509_trust_list_t *ret_trust, struct error *error);
/* Checks that an authority signed a DER chain (leaf first) for this purpose (GNUTLS_KP_...), and that the
 * chain is valid now. Sets *ret_leaf to the leaf, which the caller deinitialises. ERROR_DENIED gives the
 * reason. */
int pki_check_chain(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                    const char *purpose, gnutls_x509_crt_t *ret_leaf, struct error *error);

/* The organization of controllers' certificates. As a group it has no rights. */
#define PKI_CONTROLLERS "system:controllers"
/* Checks that a DER chain (leaf first) is a controller's, which may name the clients of the requests that it
 * forwards: an authority signed it for clients and for servers, its leaf has the organization
 * PKI_CONTROLLERS, and it is valid now. ERROR_DENIED gives the reason. */
int pki_check_controller(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                         struct error *error);

#endif
