#include "host/access/pki.h"

#include <arpa/inet.h>
#include <gnutls/crypto.h>
#include <gnutls/x509.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/check.h"
#include "os/file.h"

enum {
    SERIAL_BYTES = 16,
    CLOCK_SKEW_S = 300,
    DAY_S = 86400,
    PEM_BYTES_MAX = 1 << 20,
    ORGANIZATIONS_MAX = 64
};

static int tls_error(struct error *error, int rc, const char *doing)
{
    return error_set(error, rc == GNUTLS_E_FILE_ERROR ? ERROR_IO : ERROR_INVALID, "%s: %s", doing,
                     gnutls_strerror(rc));
}

/* --- issuing -------------------------------------------------------------------------------------------- */

struct pair {
    gnutls_x509_crt_t cert;
    gnutls_x509_privkey_t key;
};

static void pair_done(struct pair *pair)
{
    if (pair->cert)
        gnutls_x509_crt_deinit(pair->cert);
    if (pair->key)
        gnutls_x509_privkey_deinit(pair->key);
}

static int pair_load(const char *cert_path, const char *key_path, struct pair *ret_pair, struct error *error)
{
    struct pair pair = {0};
    struct buf cert BUF_CLEANUP = {0}, key BUF_CLEANUP = {0};
    int rc = os_file_read(cert_path, PEM_BYTES_MAX, &cert, error);
    if (rc == 0)
        rc = os_file_read(key_path, PEM_BYTES_MAX, &key, error);
    if (rc < 0)
        return rc;
    CHECK(gnutls_x509_crt_init(&pair.cert) == 0 && gnutls_x509_privkey_init(&pair.key) == 0);
    gnutls_datum_t data = {(unsigned char *)cert.data, (unsigned)cert.len};
    rc = gnutls_x509_crt_import(pair.cert, &data, GNUTLS_X509_FMT_PEM);
    const char *bad = cert_path;
    if (rc == 0) {
        bad = key_path;
        data = (gnutls_datum_t){(unsigned char *)key.data, (unsigned)key.len};
        rc = gnutls_x509_privkey_import2(pair.key, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (key.data)
        gnutls_memset(key.data, 0, key.len);
    if (rc < 0) {
        pair_done(&pair);
        return tls_error(error, rc, bad);
    }
    *ret_pair = pair;
    return 0;
}

/* Begins a version 3 certificate with a new key, a random serial number and a lifetime. */
static void pair_begin(struct pair *pair, int days)
{
    unsigned char serial[SERIAL_BYTES], id[64];
    size_t id_len = sizeof id;
    time_t now = time(NULL);
    CHECK(gnutls_x509_crt_init(&pair->cert) == 0 && gnutls_x509_privkey_init(&pair->key) == 0);
    CHECK(gnutls_x509_privkey_generate(pair->key, GNUTLS_PK_ECDSA,
                                       GNUTLS_CURVE_TO_BITS(GNUTLS_ECC_CURVE_SECP256R1), 0) == 0);
    CHECK(gnutls_rnd(GNUTLS_RND_NONCE, serial, sizeof serial) == 0);
    serial[0] &= 0x7f; /* a serial number is positive */
    serial[0] |= 0x40;
    CHECK(gnutls_x509_crt_set_version(pair->cert, 3) == 0);
    CHECK(gnutls_x509_crt_set_key(pair->cert, pair->key) == 0);
    CHECK(gnutls_x509_crt_set_serial(pair->cert, serial, sizeof serial) == 0);
    CHECK(gnutls_x509_crt_set_activation_time(pair->cert, now - CLOCK_SKEW_S) == 0);
    CHECK(gnutls_x509_crt_set_expiration_time(pair->cert, now + (time_t)days * DAY_S) == 0);
    CHECK(gnutls_x509_crt_get_key_id(pair->cert, GNUTLS_KEYID_USE_SHA256, id, &id_len) == 0);
    CHECK(gnutls_x509_crt_set_subject_key_id(pair->cert, id, 20) == 0);
}

static int set_name(gnutls_x509_crt_t cert, const char *oid, const char *text, struct error *error)
{
    int rc = gnutls_x509_crt_set_dn_by_oid(cert, oid, 0, text, (unsigned)strlen(text));
    return rc < 0 ? tls_error(error, rc, text) : 0;
}

static int set_host(gnutls_x509_crt_t cert, const char *host, struct error *error)
{
    unsigned char address[16];
    int rc;
    if (inet_pton(AF_INET, host, address) == 1)
        rc = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address, 4, GNUTLS_FSAN_APPEND);
    else if (inet_pton(AF_INET6, host, address) == 1)
        rc =
            gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_IPADDRESS, address, 16, GNUTLS_FSAN_APPEND);
    else
        rc = gnutls_x509_crt_set_subject_alt_name(cert, GNUTLS_SAN_DNSNAME, host, (unsigned)strlen(host),
                                                  GNUTLS_FSAN_APPEND);
    return rc < 0 ? tls_error(error, rc, host) : 0;
}

enum { P256_BYTES = 32 };

/* Writes a number in exactly P256_BYTES bytes. */
static uint8_t *put_number(uint8_t *at, const gnutls_datum_t *number)
{
    size_t skip = 0, len = number->size;
    while (len - skip > P256_BYTES && number->data[skip] == 0)
        skip++;
    len -= skip;
    CHECK(len <= P256_BYTES);
    memset(at, 0, P256_BYTES - len);
    memcpy(at + P256_BYTES - len, number->data + skip, len);
    return at + P256_BYTES;
}

/* Writes a P-256 key in the form of RFC 5915, with its scalar in 32 bytes. GnuTLS prepends a zero to a
 * scalar whose top bit is set, which other libraries refuse. */
static void export_key(gnutls_x509_privkey_t key, gnutls_datum_t *ret_pem)
{
    static const uint8_t head[] = {0x30, 0x77, 2, 1, 1, 4, P256_BYTES}; /* version 1, then the scalar */
    /* the name of the curve */
    static const uint8_t curve[] = {0xa0, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
    /* The public key. */
    static const uint8_t point[] = {0xa1, 0x44, 3, 0x42, 0, 4};
    uint8_t der[sizeof head + sizeof curve + sizeof point + 3 * P256_BYTES], *at = der;
    gnutls_datum_t x, y, k;
    gnutls_ecc_curve_t of;
    CHECK(gnutls_x509_privkey_export_ecc_raw(key, &of, &x, &y, &k) == 0 && of == GNUTLS_ECC_CURVE_SECP256R1);
    memcpy(at, head, sizeof head);
    at = put_number(at + sizeof head, &k);
    memcpy(at, curve, sizeof curve);
    memcpy(at + sizeof curve, point, sizeof point);
    at = put_number(at + sizeof curve + sizeof point, &x);
    at = put_number(at, &y);
    CHECK(at == der + sizeof der);
    gnutls_datum_t plain = {der, sizeof der};
    CHECK(gnutls_pem_base64_encode2("EC PRIVATE KEY", &plain, ret_pem) == 0);
    gnutls_memset(der, 0, sizeof der);
    gnutls_memset(k.data, 0, k.size);
    gnutls_free(x.data);
    gnutls_free(y.data);
    gnutls_free(k.data);
}

static int pair_write(const struct pair *pair, const char *cert_path, const char *key_path,
                      struct error *error)
{
    gnutls_datum_t cert = {0}, key = {0};
    CHECK(gnutls_x509_crt_export2(pair->cert, GNUTLS_X509_FMT_PEM, &cert) == 0);
    export_key(pair->key, &key);
    int rc = os_file_write(key_path, (struct str){(char *)key.data, key.size}, 0600, false, error);
    if (rc == 0) {
        rc = os_file_write(cert_path, (struct str){(char *)cert.data, cert.size}, 0644, true, error);
        if (rc < 0)
            unlink(key_path);
    }
    gnutls_memset(key.data, 0, key.size);
    gnutls_free(key.data);
    gnutls_free(cert.data);
    return rc;
}

int pki_authority(const char *name, const char *cert_path, const char *key_path, struct error *error)
{
    if (access(cert_path, F_OK) == 0 && access(key_path, F_OK) == 0)
        return 0;
    struct pair pair = {0};
    pair_begin(&pair, PKI_AUTHORITY_DAYS);
    int rc = set_name(pair.cert, GNUTLS_OID_X520_COMMON_NAME, name, error);
    if (rc == 0) {
        CHECK(gnutls_x509_crt_set_basic_constraints(pair.cert, 1, 0) == 0);
        CHECK(gnutls_x509_crt_set_key_usage(pair.cert, GNUTLS_KEY_KEY_CERT_SIGN | GNUTLS_KEY_CRL_SIGN) == 0);
        CHECK(gnutls_x509_crt_sign2(pair.cert, pair.cert, pair.key, GNUTLS_DIG_SHA256, 0) == 0);
        rc = pair_write(&pair, cert_path, key_path, error);
    }
    pair_done(&pair);
    return rc;
}

static int describe(struct pair *pair, const struct pki_request *request, struct error *error)
{
    int rc = set_name(pair->cert, GNUTLS_OID_X520_COMMON_NAME, request->name, error);
    for (size_t i = 0; rc == 0 && i < request->organization_count; i++)
        rc = set_name(pair->cert, GNUTLS_OID_X520_ORGANIZATION_NAME, request->organizations[i], error);
    for (size_t i = 0; rc == 0 && i < request->host_count; i++)
        rc = set_host(pair->cert, request->hosts[i], error);
    if (rc < 0)
        return rc;
    CHECK(gnutls_x509_crt_set_basic_constraints(pair->cert, 0, -1) == 0);
    CHECK(gnutls_x509_crt_set_key_usage(pair->cert, GNUTLS_KEY_DIGITAL_SIGNATURE) == 0);
    CHECK(gnutls_x509_crt_set_key_purpose_oid(pair->cert, GNUTLS_KP_TLS_WWW_CLIENT, 0) == 0);
    if (request->host_count)
        CHECK(gnutls_x509_crt_set_key_purpose_oid(pair->cert, GNUTLS_KP_TLS_WWW_SERVER, 0) == 0);
    return 0;
}

int pki_issue(const char *authority_cert, const char *authority_key, const struct pki_request *request,
              const char *cert_path, const char *key_path, struct error *error)
{
    struct pair authority = {0}, pair = {0};
    int rc = pair_load(authority_cert, authority_key, &authority, error);
    if (rc < 0)
        return rc;
    pair_begin(&pair, request->days);
    rc = describe(&pair, request, error);
    if (rc == 0) {
        unsigned char id[64];
        size_t id_len = sizeof id;
        if (gnutls_x509_crt_get_subject_key_id(authority.cert, id, &id_len, NULL) == 0)
            gnutls_x509_crt_set_authority_key_id(pair.cert, id, id_len);
        rc = gnutls_x509_crt_sign2(pair.cert, authority.cert, authority.key, GNUTLS_DIG_SHA256, 0);
        rc = rc < 0 ? tls_error(error, rc, "signing") : pair_write(&pair, cert_path, key_path, error);
    }
    pair_done(&pair);
    pair_done(&authority);
    return rc;
}

/* Reads a certificate, which the caller deinitialises. */
static bool cert_read(const char *path, gnutls_x509_crt_t *ret_cert)
{
    struct buf text BUF_CLEANUP = {0};
    if (os_file_read(path, PEM_BYTES_MAX, &text, NULL) < 0)
        return false;
    CHECK(gnutls_x509_crt_init(ret_cert) == 0);
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    bool read = gnutls_x509_crt_import(*ret_cert, &data, GNUTLS_X509_FMT_PEM) == 0;
    if (!read)
        gnutls_x509_crt_deinit(*ret_cert);
    return read;
}

bool pki_is_valid_for(const char *cert_path, int days)
{
    gnutls_x509_crt_t cert;
    if (!cert_read(cert_path, &cert))
        return false;
    bool valid = gnutls_x509_crt_get_expiration_time(cert) > time(NULL) + (time_t)days * DAY_S;
    gnutls_x509_crt_deinit(cert);
    return valid;
}

bool pki_names_hosts(const char *cert_path, const char *const *hosts, size_t host_count)
{
    gnutls_x509_crt_t cert;
    if (!cert_read(cert_path, &cert))
        return false;
    bool all = true;
    for (size_t i = 0; i < host_count && all; i++)
        all = gnutls_x509_crt_check_hostname2(cert, hosts[i], GNUTLS_VERIFY_DO_NOT_ALLOW_WILDCARDS) != 0;
    gnutls_x509_crt_deinit(cert);
    return all;
}

void pki_random_token(char ret_text[PKI_TOKEN_TEXT])
{
    static const char letters[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    unsigned char bytes[PKI_TOKEN_TEXT - 1];
    CHECK(gnutls_rnd(GNUTLS_RND_KEY, bytes, sizeof bytes) == 0);
    for (size_t i = 0; i < sizeof bytes; i++)
        ret_text[i] = letters[bytes[i] & 63];
    ret_text[sizeof bytes] = 0;
    gnutls_memset(bytes, 0, sizeof bytes);
}

/* --- using ---------------------------------------------------------------------------------------------- */

int pki_identity_load(const char *cert_path, const char *key_path, struct pki_identity **ret_identity,
                      struct error *error)
{
    struct buf cert BUF_CLEANUP = {0}, key BUF_CLEANUP = {0};
    int rc = os_file_read(cert_path, PEM_BYTES_MAX, &cert, error);
    if (rc == 0)
        rc = os_file_read(key_path, PEM_BYTES_MAX, &key, error);
    if (rc < 0)
        return rc;
    struct pki_identity *identity = mem_alloc(sizeof *identity);
    identity->cert_count = PKI_CHAIN_MAX;
    gnutls_datum_t data = {(unsigned char *)cert.data, (unsigned)cert.len};
    const char *bad = cert_path;
    rc = gnutls_pcert_list_import_x509_raw(identity->certs, &identity->cert_count, &data, GNUTLS_X509_FMT_PEM,
                                           GNUTLS_X509_CRT_LIST_FAIL_IF_UNSORTED);
    if (rc < 0)
        identity->cert_count = 0;
    CHECK(gnutls_privkey_init(&identity->key) == 0);
    if (rc == 0) {
        bad = key_path;
        data = (gnutls_datum_t){(unsigned char *)key.data, (unsigned)key.len};
        rc = gnutls_privkey_import_x509_raw(identity->key, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    }
    if (key.data)
        gnutls_memset(key.data, 0, key.len);
    if (rc == 0) {
        /* Otherwise a key of another certificate would show only at the first handshake. */
        unsigned char of_cert[64], of_key[64];
        size_t cert_len = sizeof of_cert, key_len = sizeof of_key;
        gnutls_pubkey_t pubkey;
        CHECK(gnutls_pubkey_init(&pubkey) == 0);
        bool same = gnutls_pubkey_import_privkey(pubkey, identity->key, 0, 0) == 0 &&
                    gnutls_pubkey_get_key_id(pubkey, 0, of_key, &key_len) == 0 &&
                    gnutls_pubkey_get_key_id(identity->certs[0].pubkey, 0, of_cert, &cert_len) == 0 &&
                    cert_len == key_len && memcmp(of_cert, of_key, key_len) == 0;
        gnutls_pubkey_deinit(pubkey);
        if (!same) {
            pki_identity_free(identity);
            return error_set(error, ERROR_INVALID, "%s is not the key of %s", key_path, cert_path);
        }
        *ret_identity = identity;
        return 0;
    }
    pki_identity_free(identity);
    return tls_error(error, rc, bad);
}

void pki_identity_free(struct pki_identity *identity)
{
    if (!identity)
        return;
    for (unsigned i = 0; i < identity->cert_count; i++)
        gnutls_pcert_deinit(&identity->certs[i]);
    gnutls_privkey_deinit(identity->key);
    mem_free(identity);
}

int pki_trust_load(const char *path, gnutls_x509_trust_list_t *ret_trust, struct error *error)
{
    gnutls_x509_trust_list_t trust;
    struct buf text BUF_CLEANUP = {0};
    int rc = os_file_read(path, PEM_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    CHECK(gnutls_x509_trust_list_init(&trust, 0) == 0);
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    rc = gnutls_x509_trust_list_add_trust_mem(trust, &data, NULL, GNUTLS_X509_FMT_PEM, 0, 0);
    if (rc <= 0) {
        gnutls_x509_trust_list_deinit(trust, 1);
        return rc < 0 ? tls_error(error, rc, path)
                      : error_set(error, ERROR_INVALID, "%s: contains no certificate", path);
    }
    rc = pki_trust_add_revoked(trust, path, error);
    if (rc < 0) {
        gnutls_x509_trust_list_deinit(trust, 1);
        return rc;
    }
    *ret_trust = trust;
    return 0;
}

static int refused(struct error *error, unsigned status)
{
    gnutls_datum_t text = {0};
    if (gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) < 0)
        return error_set(error, ERROR_DENIED, "the certificate is not trusted");
    error_set(error, ERROR_DENIED, "%.*s", (int)text.size, (const char *)text.data);
    gnutls_free(text.data);
    return ERROR_DENIED;
}

int pki_check_chain(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                    const char *purpose, gnutls_x509_crt_t *ret_leaf, struct error *error)
{
    gnutls_x509_crt_t certs[PKI_CHAIN_MAX];
    unsigned made = 0, status = 0;
    int rc = 0;
    if (count == 0 || count > PKI_CHAIN_MAX)
        return error_set(error, ERROR_DENIED, "a chain of %zu certificates", count);
    for (; rc == 0 && made < count; made++) {
        CHECK(gnutls_x509_crt_init(&certs[made]) == 0);
        rc = gnutls_x509_crt_import(certs[made], &chain[made], GNUTLS_X509_FMT_DER);
    }
    if (rc == 0) {
        gnutls_typed_vdata_st wanted = {.type = GNUTLS_DT_KEY_PURPOSE_OID, .data = (unsigned char *)purpose};
        rc = gnutls_x509_trust_list_verify_crt2(trust, certs, made, &wanted, 1, 0, &status, NULL);
    }
    bool good = rc == 0 && status == 0;
    for (unsigned i = good ? 1 : 0; i < made; i++)
        gnutls_x509_crt_deinit(certs[i]);
    if (good) {
        *ret_leaf = certs[0];
        return 0;
    }
    return rc < 0 ? error_set(error, ERROR_DENIED, "the certificate: %s", gnutls_strerror(rc))
                  : refused(error, status);
}

static bool has_organization(gnutls_x509_crt_t cert, const char *organization)
{
    char text[sizeof PKI_CONTROLLERS];
    int rc = 0;
    for (unsigned i = 0; rc != GNUTLS_E_REQUESTED_DATA_NOT_AVAILABLE && i < ORGANIZATIONS_MAX; i++) {
        size_t len = sizeof text;
        rc = gnutls_x509_crt_get_dn_by_oid(cert, GNUTLS_OID_X520_ORGANIZATION_NAME, i, 0, text, &len);
        if (rc == 0 && str_is((struct str){text, len}, organization))
            return true; /* a longer name does not fit, and so differs */
    }
    return false;
}

int pki_check_controller(gnutls_x509_trust_list_t trust, const gnutls_datum_t *chain, size_t count,
                         struct error *error)
{
    static const char *const purposes[] = {GNUTLS_KP_TLS_WWW_SERVER, GNUTLS_KP_TLS_WWW_CLIENT};
    for (size_t i = 0; i < sizeof purposes / sizeof *purposes; i++) {
        gnutls_x509_crt_t leaf;
        int rc = pki_check_chain(trust, chain, count, purposes[i], &leaf, error);
        if (rc < 0)
            return rc;
        bool named = has_organization(leaf, PKI_CONTROLLERS);
        gnutls_x509_crt_deinit(leaf);
        if (!named)
            return error_set(error, ERROR_DENIED, "its certificate lacks the organization %s",
                             PKI_CONTROLLERS);
    }
    return 0;
}
