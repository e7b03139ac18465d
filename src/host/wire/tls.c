/* tls.c - TLS over connections of the wire (GnuTLS over memory; libuv owns the socket).
 *
 * Plain bytes wait in tls->plain and become records just before they are written; received bytes go through
 * tls->in and are decrypted to the bytes of frames. A connection is open once its handshake has succeeded:
 * both sides have then proved a certificate of the same authority, and a fresh key protects each byte against
 * reading, changing and replay.
 */
#include <errno.h>
#include <gnutls/x509.h>
#include <sys/stat.h>

#include "host/access/pki.h"
#include "host/wire/internal.h"

enum { RECORD_BYTES = 16 * 1024, PEER_NAME_MAX = 256, HANDSHAKE_MS = WIRE_CONNECT_TIMEOUT_MS };
/* Limits bytes of handshakes and records that bring no plain byte; a certificate chain has a few thousand. */
enum { UNREAD_BYTES_MAX = 32 * 1024 };

struct credentials { /* shared by the connections that began with them */
    gnutls_certificate_credentials_t handle;
    gnutls_x509_trust_list_t trust; /* the handle's */
    uint32_t users;
};

enum { WATCHED_FILES = 4 }; /* authority, what it revoked, certificate, key */
struct wire_tls {
    const char *ca, *cert, *key;
    struct credentials *current;
    struct timespec changed[WATCHED_FILES]; /* when they were read */
};

struct conn_tls {
    struct wire_conn *conn;
    struct wire_tls *settings;
    struct credentials *credentials;
    gnutls_session_t session; /* NULL: no step of the handshake has been done */
    struct buf plain, in; /* to be sealed; received, sealed */
    struct buf flight;    /* bytes that the handshake sends */
    size_t in_used;
    size_t unread_bytes;             /* taken from `in` since the last plain byte */
    gnutls_typed_vdata_st wanted[2]; /* GnuTLS keeps pointers to these */
    struct buf server_name;
    int64_t deadline_ms;
    bool connects; /* else it was accepted */
    bool established;
    int64_t ends_s; /* of the peer's certificate */
    char name[PEER_NAME_MAX];
};

/* --- credentials ---------------------------------------------------------------------------------- */

static void credentials_release(struct credentials *credentials)
{
    if (!credentials || --credentials->users > 0)
        return;
    gnutls_certificate_free_credentials(credentials->handle);
    mem_free(credentials);
}

static void look(const struct wire_tls *tls, struct timespec ret_changed[WATCHED_FILES])
{
    char revoked[PKI_PATH_MAX];
    const char *paths[WATCHED_FILES] = {tls->ca, revoked, tls->cert, tls->key};
    pki_revoked_path(tls->ca, revoked);
    for (int i = 0; i < WATCHED_FILES; i++) {
        struct stat info = {0};
        (void)stat(paths[i], &info);
        ret_changed[i] = info.st_mtim;
    }
}

bool wire_tls_files_changed(const struct wire_tls *tls)
{
    struct timespec now[WATCHED_FILES];
    look(tls, now);
    for (int i = 0; i < WATCHED_FILES; i++)
        if (now[i].tv_sec != tls->changed[i].tv_sec || now[i].tv_nsec != tls->changed[i].tv_nsec)
            return true;
    return false;
}

int wire_tls_reload(struct wire_tls *tls, struct error *error)
{
    look(tls, tls->changed);       /* first, so that a change during the reload is seen next time */
    struct pki_identity *identity; /* gives the best message about wrong files */
    gnutls_x509_trust_list_t trust;
    int rc = pki_identity_load(tls->cert, tls->key, &identity, error);
    if (rc < 0)
        return rc;
    pki_identity_free(identity);
    rc = pki_trust_load(tls->ca, &trust, error);
    if (rc < 0)
        return rc;
    struct credentials *credentials = mem_alloc(sizeof *credentials);
    CHECK(gnutls_certificate_allocate_credentials(&credentials->handle) == 0);
    credentials->users = 1;
    credentials->trust = trust;
    gnutls_certificate_set_trust_list(credentials->handle, trust, 0); /* owns it from now on */
    rc = gnutls_certificate_set_x509_key_file(credentials->handle, tls->cert, tls->key, GNUTLS_X509_FMT_PEM);
    if (rc < 0) {
        credentials_release(credentials);
        return error_set(error, ERROR_INVALID, "%s: %s", tls->cert, gnutls_strerror(rc));
    }
    credentials_release(tls->current);
    tls->current = credentials;
    return 0;
}

int wire_tls_new(const struct wire_tls_options *options, struct wire_tls **ret_tls, struct error *error)
{
    struct wire_tls *tls = mem_alloc(sizeof *tls);
    tls->ca = options->ca;
    tls->cert = options->cert;
    tls->key = options->key;
    int rc = wire_tls_reload(tls, error);
    if (rc < 0)
        mem_free(tls);
    else
        *ret_tls = tls;
    return rc;
}

void wire_tls_free(struct wire_tls *tls)
{
    if (!tls)
        return;
    credentials_release(tls->current);
    mem_free(tls);
}

/* --- bytes ---------------------------------------------------------------------------------------- */

static ssize_t push(gnutls_transport_ptr_t transport, const void *data, size_t len)
{
    struct conn_tls *tls = transport;
    buf_add(tls->established ? &tls->conn->out : &tls->flight, data, len);
    return (ssize_t)len;
}

static ssize_t pull(gnutls_transport_ptr_t transport, void *data, size_t len)
{
    struct conn_tls *tls = transport;
    size_t left = tls->in.len - tls->in_used;
    if (left == 0) {
        gnutls_transport_set_errno(tls->session, EAGAIN);
        return -1;
    }
    if (left < len)
        len = left;
    /* GnuTLS keeps an incomplete handshake message, which may announce 16 MiB, even after the handshake. */
    tls->unread_bytes += len;
    if (tls->unread_bytes > UNREAD_BYTES_MAX) {
        gnutls_transport_set_errno(tls->session, ECONNABORTED);
        return -1;
    }
    memcpy(data, tls->in.data + tls->in_used, len);
    tls->in_used += len;
    return (ssize_t)len;
}

static int pull_ready(gnutls_transport_ptr_t transport, unsigned wait_ms)
{
    struct conn_tls *tls = transport;
    (void)wait_ms;
    return tls->in.len > tls->in_used;
}

struct buf *wire_tls_plain(struct conn_tls *tls)
{
    return &tls->plain;
}

size_t wire_tls_waiting(const struct conn_tls *tls)
{
    return tls->plain.len;
}

void wire_tls_seal(struct conn_tls *tls)
{
    size_t done = 0;
    if (!tls->established || tls->conn->garbled) /* GnuTLS seals nothing after a record that it cannot open */
        return;
    while (done < tls->plain.len) {
        size_t len = tls->plain.len - done < RECORD_BYTES ? tls->plain.len - done : RECORD_BYTES;
        ssize_t sent = gnutls_record_send(tls->session, tls->plain.data + done, len);
        CHECK(sent > 0); /* the transport is memory */
        done += (size_t)sent;
    }
    buf_done(&tls->plain);
}

/* --- handshakes ----------------------------------------------------------------------------------- */

struct conn_tls *wire_tls_begin(struct wire_conn *conn, struct wire_tls *settings, const char *server_name)
{
    struct conn_tls *tls = mem_alloc(sizeof *tls);
    tls->conn = conn;
    tls->settings = settings;
    tls->credentials = settings->current;
    tls->credentials->users++;
    tls->wanted[0].type = GNUTLS_DT_KEY_PURPOSE_OID;
    tls->wanted[0].data =
        (unsigned char *)(server_name ? GNUTLS_KP_TLS_WWW_SERVER : GNUTLS_KP_TLS_WWW_CLIENT);
    tls->connects = server_name != NULL;
    if (server_name) {
        buf_add_str(&tls->server_name, str_from(server_name));
        tls->wanted[1].type = GNUTLS_DT_DNS_HOSTNAME; /* addresses too */
        tls->wanted[1].data = (unsigned char *)tls->server_name.data;
    }
    tls->deadline_ms = (int64_t)uv_now(conn->wire->loop) + HANDSHAKE_MS;
    return tls;
}

/* Makes the session with the first step of its handshake, by the thread that does the step. */
static void session_begin(struct conn_tls *tls)
{
    unsigned flags = GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS;
    CHECK(gnutls_init(&tls->session, flags | (tls->connects ? GNUTLS_CLIENT : GNUTLS_SERVER)) == 0);
    CHECK(gnutls_priority_set_direct(tls->session, "NORMAL:-VERS-ALL:+VERS-TLS1.3", NULL) == 0);
    CHECK(gnutls_credentials_set(tls->session, GNUTLS_CRD_CERTIFICATE, tls->credentials->handle) == 0);
    gnutls_transport_set_ptr(tls->session, tls);
    gnutls_transport_set_push_function(tls->session, push);
    gnutls_transport_set_pull_function(tls->session, pull);
    gnutls_transport_set_pull_timeout_function(tls->session, pull_ready);
    if (!tls->connects)
        gnutls_certificate_server_set_request(tls->session, GNUTLS_CERT_REQUIRE);
    gnutls_session_set_verify_cert2(tls->session, tls->wanted, tls->connects ? 2 : 1, 0);
}

void wire_tls_end(struct conn_tls *tls)
{
    if (tls->session)
        gnutls_deinit(tls->session);
    credentials_release(tls->credentials);
    buf_done(&tls->plain);
    buf_done(&tls->in);
    buf_done(&tls->flight);
    buf_done(&tls->server_name);
    mem_free(tls);
}

/* Reads the common name and the expiry of the peer's certificate, which the handshake has verified. */
static bool read_name(struct conn_tls *tls)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls->session, &count);
    gnutls_x509_crt_t leaf;
    size_t len = sizeof tls->name;
    if (!chain || count == 0)
        return false;
    CHECK(gnutls_x509_crt_init(&leaf) == 0);
    bool good =
        gnutls_x509_crt_import(leaf, &chain[0], GNUTLS_X509_FMT_DER) == 0 &&
        gnutls_x509_crt_get_dn_by_oid(leaf, GNUTLS_OID_X520_COMMON_NAME, 0, 0, tls->name, &len) == 0 &&
        strlen(tls->name) == len;
    time_t ends = good ? gnutls_x509_crt_get_expiration_time(leaf) : (time_t)-1;
    tls->ends_s = ends == (time_t)-1 ? INT64_MAX : (int64_t)ends;
    gnutls_x509_crt_deinit(leaf);
    return good;
}

/* Explains a TLS error in words that an operator can act on. */
static int explain(struct conn_tls *tls, int rc, struct error *error)
{
    unsigned status = gnutls_session_get_verify_cert_status(tls->session);
    gnutls_datum_t text = {0};
    if (rc == GNUTLS_E_CERTIFICATE_VERIFICATION_ERROR &&
        gnutls_certificate_verification_status_print(status, GNUTLS_CRT_X509, &text, 0) == 0) {
        error_set(error, ERROR_DENIED, "TLS: %s", (const char *)text.data);
        gnutls_free(text.data);
        return ERROR_DENIED;
    }
    if (rc == GNUTLS_E_FATAL_ALERT_RECEIVED) {
        const char *alert = gnutls_alert_get_name(gnutls_alert_get(tls->session));
        return error_set(error, ERROR_DENIED, "TLS: the peer refused: %s", alert ? alert : "unknown alert");
    }
    if (tls->unread_bytes > UNREAD_BYTES_MAX)
        return error_set(error, ERROR_DENIED, "TLS: a handshake of more than %d bytes", UNREAD_BYTES_MAX);
    return error_set(error, ERROR_DENIED, "TLS: %s", gnutls_strerror(rc));
}

int wire_tls_step(struct conn_tls *tls, struct error *error)
{
    if (!tls->session)
        session_begin(tls);
    int rc = gnutls_handshake(tls->session);
    if (rc == GNUTLS_E_AGAIN || rc == GNUTLS_E_INTERRUPTED)
        return 0;
    if (rc < 0) {
        explain(tls, rc, error);
        gnutls_alert_send_appropriate(tls->session, rc);
        return ERROR_DENIED;
    }
    tls->unread_bytes = 0;
    if (!read_name(tls))
        return error_set(error, ERROR_DENIED, "TLS: the peer's certificate has no common name");
    return 1;
}

int wire_tls_finish(struct conn_tls *tls, int rc, struct error *error)
{
    buf_add_str(&tls->conn->out, buf_str(&tls->flight));
    buf_done(&tls->flight);
    if (rc <= 0)
        return rc;
    if (tls->credentials != tls->settings->current && wire_tls_check(tls, error) < 0)
        return ERROR_DENIED; /* it was revoked during the handshake */
    tls->established = true;
    return 1;
}

int wire_tls_check(const struct conn_tls *tls, struct error *error)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(tls->session, &count);
    gnutls_x509_crt_t leaf;
    int rc = pki_check_chain(tls->settings->current->trust, chain, chain ? count : 0,
                             (const char *)tls->wanted[0].data, &leaf, error);
    if (rc == 0)
        gnutls_x509_crt_deinit(leaf);
    return rc;
}

int64_t wire_tls_ends_s(const struct conn_tls *tls)
{
    return tls->established ? tls->ends_s : INT64_MAX;
}

void wire_tls_take(struct conn_tls *tls, const char *data, size_t len)
{
    if (tls->in_used == tls->in.len) {
        tls->in_used = 0;
        buf_clear(&tls->in);
    } else if (tls->in_used > RECORD_BYTES) {
        buf_drop_front(&tls->in, tls->in_used);
        tls->in_used = 0;
    }
    buf_add(&tls->in, data, len);
}

ssize_t wire_tls_open(struct conn_tls *tls, char *data, size_t max, struct error *error)
{
    for (;;) {
        ssize_t len = gnutls_record_recv(tls->session, data, max);
        if (len > 0) {
            tls->unread_bytes = 0;
            return len;
        }
        if (len == GNUTLS_E_INTERRUPTED || len == GNUTLS_E_WARNING_ALERT_RECEIVED)
            continue;
        if (tls->in_used == tls->in.len) { /* thousands of connections are idle most of the time */
            tls->in_used = 0;
            buf_done(&tls->in);
        }
        if (len == GNUTLS_E_AGAIN || len == 0) /* 0: close_notify; the socket's end follows */
            return 0;
        return error_set(error, ERROR_CORRUPT, "TLS: %s", gnutls_strerror((int)len));
    }
}

bool wire_tls_established(const struct conn_tls *tls)
{
    return tls->established;
}

bool wire_tls_is_late(const struct conn_tls *tls, int64_t now_ms)
{
    return !tls->established && tls->deadline_ms <= now_ms;
}

const char *wire_tls_name(const struct conn_tls *tls)
{
    return tls->established ? tls->name : "";
}
