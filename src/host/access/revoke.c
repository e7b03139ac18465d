/* revoke.c - revoked certificates, as a certificate revocation list (RFC 5280) next to the authority's
 * certificate. */
#include <gnutls/x509.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/check.h"
#include "host/access/pki.h"
#include "os/file.h"

enum { LIST_BYTES_MAX = 16 * 1024 * 1024, SERIAL_BYTES_MAX = 64, LIST_DAYS = PKI_AUTHORITY_DAYS };
#define DAY_S 86400

static int wrong(struct error *error, int rc, const char *what)
{
    return error_set(error, ERROR_INVALID, "%s: %s", what, gnutls_strerror(rc));
}

void pki_revoked_path(const char *authority_cert, char ret_path[PKI_PATH_MAX])
{
    const char *slash = strrchr(authority_cert, '/');
    snprintf(ret_path, PKI_PATH_MAX, "%.*srevoked.crl", slash ? (int)(slash - authority_cert) + 1 : 0,
             authority_cert);
}

int pki_trust_add_revoked(gnutls_x509_trust_list_t trust, const char *authority_cert, struct error *error)
{
    char path[PKI_PATH_MAX];
    struct buf text BUF_CLEANUP = {0};
    pki_revoked_path(authority_cert, path);
    if (access(path, F_OK) != 0)
        return 0;
    int rc = os_file_read(path, LIST_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    rc = gnutls_x509_trust_list_add_trust_mem(trust, NULL, &data, GNUTLS_X509_FMT_PEM, GNUTLS_TL_VERIFY_CRL,
                                              0);
    if (rc < 0)
        return wrong(error, rc, path);
    return rc > 0 ? 0 : error_set(error, ERROR_INVALID, "%s: not a list that the authority signed", path);
}

static int read_cert(const char *path, gnutls_x509_crt_t *ret_cert, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    int rc = os_file_read(path, LIST_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    CHECK(gnutls_x509_crt_init(ret_cert) == 0);
    rc = gnutls_x509_crt_import(*ret_cert, &data, GNUTLS_X509_FMT_PEM);
    if (rc == 0)
        return 0;
    gnutls_x509_crt_deinit(*ret_cert);
    return wrong(error, rc, path);
}

static int read_key(const char *path, gnutls_x509_privkey_t *ret_key, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    int rc = os_file_read(path, LIST_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    CHECK(gnutls_x509_privkey_init(ret_key) == 0);
    rc = gnutls_x509_privkey_import(*ret_key, &data, GNUTLS_X509_FMT_PEM);
    explicit_bzero(text.data, text.len);
    if (rc == 0)
        return 0;
    gnutls_x509_privkey_deinit(*ret_key);
    return wrong(error, rc, path);
}

/* Copies the revocations in the file, which is absent before the first one. */
static int copy_old(const char *path, gnutls_x509_crl_t to, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    gnutls_x509_crl_t old;
    gnutls_x509_crl_iter_t at = NULL;
    unsigned char serial[SERIAL_BYTES_MAX];
    size_t len = sizeof serial;
    time_t since;
    if (access(path, F_OK) != 0)
        return 0;
    int rc = os_file_read(path, LIST_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    CHECK(gnutls_x509_crl_init(&old) == 0);
    rc = gnutls_x509_crl_import(old, &data, GNUTLS_X509_FMT_PEM);
    while (rc == 0 && gnutls_x509_crl_iter_crt_serial(old, &at, serial, &len, &since) == 0) {
        rc = gnutls_x509_crl_set_crt_serial(to, serial, len, since);
        len = sizeof serial;
    }
    if (at)
        gnutls_x509_crl_iter_deinit(at);
    gnutls_x509_crl_deinit(old);
    return rc < 0 ? wrong(error, rc, path) : 0;
}

static int sign(gnutls_x509_crl_t list, gnutls_x509_crt_t authority, gnutls_x509_privkey_t key, time_t now,
                struct error *error)
{
    unsigned char number[8];
    for (int i = 0; i < 8; i++)
        number[i] = (unsigned char)((uint64_t)now >> (56 - 8 * i));
    int rc = gnutls_x509_crl_set_version(list, 2);
    rc = rc < 0 ? rc : gnutls_x509_crl_set_this_update(list, now);
    rc = rc < 0 ? rc : gnutls_x509_crl_set_next_update(list, now + (time_t)LIST_DAYS * DAY_S);
    rc = rc < 0 ? rc : gnutls_x509_crl_set_number(list, number, sizeof number);
    rc = rc < 0 ? rc : gnutls_x509_crl_sign2(list, authority, key, GNUTLS_DIG_SHA256, 0);
    return rc < 0 ? wrong(error, rc, "the revocation list cannot be signed") : 0;
}

static int write_list(const char *path, gnutls_x509_crl_t list, struct error *error)
{
    gnutls_datum_t pem = {0};
    int rc = gnutls_x509_crl_export2(list, GNUTLS_X509_FMT_PEM, &pem);
    if (rc < 0)
        return wrong(error, rc, path);
    rc = os_file_write(path, (struct str){(const char *)pem.data, pem.size}, 0644, true, error);
    gnutls_free(pem.data);
    return rc;
}

int pki_revoke(const char *authority_cert, const char *authority_key, const char *cert_path,
               struct error *error)
{
    char path[PKI_PATH_MAX];
    gnutls_x509_crt_t authority = NULL, cert = NULL;
    gnutls_x509_privkey_t key = NULL;
    gnutls_x509_crl_t list;
    time_t now = time(NULL);
    pki_revoked_path(authority_cert, path);
    CHECK(gnutls_x509_crl_init(&list) == 0);
    int rc = read_cert(authority_cert, &authority, error);
    if (rc < 0)
        authority = NULL;
    if (rc == 0 && (rc = read_key(authority_key, &key, error)) < 0)
        key = NULL;
    if (rc == 0 && (rc = read_cert(cert_path, &cert, error)) < 0)
        cert = NULL;
    if (rc == 0 && !gnutls_x509_crt_check_issuer(cert, authority))
        rc = error_set(error, ERROR_INVALID, "%s: another authority signed it", cert_path);
    if (rc == 0)
        rc = copy_old(path, list, error);
    if (rc == 0 && (rc = gnutls_x509_crl_set_crt(list, cert, now)) < 0)
        rc = wrong(error, rc, cert_path);
    if (rc == 0)
        rc = sign(list, authority, key, now, error);
    if (rc == 0)
        rc = write_list(path, list, error);
    gnutls_x509_crl_deinit(list);
    if (authority)
        gnutls_x509_crt_deinit(authority);
    if (cert)
        gnutls_x509_crt_deinit(cert);
    if (key)
        gnutls_x509_privkey_deinit(key);
    return rc;
}
