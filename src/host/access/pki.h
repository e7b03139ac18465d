/* pki.h - certificates: a small authority of the cluster's own, and what TLS needs of them (GnuTLS).
 *
 * Keys are ECDSA on NIST P-256. A key file is made with mode 0600, appears whole or not at all, and is never
 * overwritten. Certificates follow Kubernetes: a client's name is the common name, its groups are the
 * organizations (RFC 5280; Kubernetes' "X.509 client certificates").
 *
 * One thread.
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
    PKI_TOKEN_TEXT = 44, /* 32 random bytes as text, and a NUL */
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
/* A new key and its certificate, signed by the authority. A certificate with hosts serves as a server's and
 * as a client's. */
int pki_issue(const char *authority_cert, const char *authority_key, const struct pki_request *request,
              const char *cert_path, const char *key_path, struct error *error);
/* False: not readable, or it ends within `days`. */
bool pki_is_valid_for(const char *cert_path, int days);

/* 32 bytes from the system's generator, as text of letters, digits, '-' and '_'. */
void pki_random_token(char ret_text[PKI_TOKEN_TEXT]);

/* A server's or client's certificate chain and key, ready for TLS. */
struct pki_identity {
    gnutls_pcert_st certs[PKI_CHAIN_MAX];
    unsigned cert_count;
    gnutls_privkey_t key;
};
int pki_identity_load(const char *cert_path, const char *key_path, struct pki_identity **ret_identity,
                      struct error *error);
void pki_identity_free(struct pki_identity *identity);

/* The list of certificates that are no longer good: "revoked.crl" beside the authority's certificate (PEM,
 * signed by it). pki_revoke adds one of its certificates; a file that is not there is an empty list. */
enum { PKI_PATH_MAX = 4096 };
void pki_revoked_path(const char *authority_cert, char ret_path[PKI_PATH_MAX]);
int pki_revoke(const char *authority_cert, const char *authority_key, const char *cert_path,
               struct error *error);
int pki_trust_add_revoked(gnutls_x509_trust_list_t trust, const char *authority_cert, struct error *error);

/* Loads the authorities that certify others, without the certificates that they revoked. */
int pki_trust_load(const char *path, gnutls_x509_trust_list_t *ret_trust, struct error *error);
/* Returns the leaf of a DER chain (leaf first) that an authority signed for this purpose (GNUTLS_KP_...) and
 * that is valid now. ERROR_DENIED says why not. The caller deinitialises the result. */
int pki_check_chain(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                    const char *purpose, gnutls_x509_crt_t *ret_leaf, struct error *error);

/* The organization of controllers' certificates. As a group it has no rights. */
#define PKI_CONTROLLERS "system:controllers"
/* Whether a DER chain (leaf first) is a controller's, which may say whose requests it passes on: an authority
 * signed it for clients and for servers, of PKI_CONTROLLERS, and it is valid now. ERROR_DENIED: why not. */
int pki_check_controller(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                         struct error *error);

#endif
