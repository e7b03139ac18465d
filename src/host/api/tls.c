#include "host/api/tls.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/units.h"

/* an expired certificate ends its connections after about this time */
#define CHECK_AGAIN_NS (60 * NS_PER_SECOND)

enum { WATCHED_FILES = 4 }; /* certificate, key, authorities, their revocation list */

/* A certificate and its key, kept until the last session that began with them has ended. */
struct served {
    struct pki_identity *identity;
    gnutls_x509_trust_list_t trust; /* of a client side; NULL: a server */
    uint32_t users;                 /* sessions, and one for api_tls.served */
    bool ask_clients;
};

struct api_tls {
    const char *cert_path, *key_path;
    const char *ca_path;                          /* of a client side; NULL: a server */
    gnutls_certificate_credentials_t credentials; /* uses give_certificate() */
    gnutls_priority_t priorities;
    struct stat infos[WATCHED_FILES]; /* the files as they were when last read */
    bool ask_clients, forwards;       /* forwards: API_TLS_FORWARDS is offered or accepted */
    pthread_mutex_t mutex;            /* for `served`, and the `users` of each */
    struct served *served;
};

struct api_tls_peer {
    struct arena arena;
    struct access_user user;
    struct api_tls_chain chain;
    bool checked, good, controls;
    uint64_t generation;
    int64_t checked_ns;
};

/* --- the certificate ------------------------------------------------------------------------------------ */

static void look(const struct api_tls *tls, struct stat ret_infos[WATCHED_FILES])
{
    char revoked[PKI_PATH_MAX];
    const char *paths[WATCHED_FILES] = {tls->cert_path, tls->key_path, tls->ca_path,
                                        tls->ca_path ? revoked : NULL};
    if (tls->ca_path)
        pki_revoked_path(tls->ca_path, revoked);
    memset(ret_infos, 0, WATCHED_FILES * sizeof *ret_infos);
    for (int i = 0; i < WATCHED_FILES; i++)
        if (paths[i])
            (void)stat(paths[i], &ret_infos[i]);
}

static bool differs(const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

bool api_tls_files_changed(const struct api_tls *tls)
{
    struct stat infos[WATCHED_FILES];
    bool changed = false;
    look(tls, infos);
    for (int i = 0; i < WATCHED_FILES; i++)
        changed = changed || differs(&infos[i], &tls->infos[i]);
    return changed;
}

static void served_free(struct served *served)
{
    pki_identity_free(served->identity);
    if (served->trust)
        gnutls_x509_trust_list_deinit(served->trust, 1);
    mem_free(served);
}

static void served_release(struct api_tls *tls, struct served *served)
{
    if (!served)
        return;
    pthread_mutex_lock(&tls->mutex);
    bool last = --served->users == 0;
    pthread_mutex_unlock(&tls->mutex);
    if (last)
        served_free(served);
}

/* Checks that our certificate is a controller's by our own authorities: other controllers use the same
 * ones. */
static int check_own(const struct served *served, const char *cert_path, struct error *error)
{
    gnutls_datum_t chain[PKI_CHAIN_MAX];
    for (unsigned i = 0; i < served->identity->cert_count; i++)
        chain[i] = served->identity->certs[i].cert;
    int rc = pki_check_controller(served->trust, chain, served->identity->cert_count, error);
    return rc < 0 ? error_wrap(error, "%s", cert_path) : 0;
}

int api_tls_reload(struct api_tls *tls, struct error *error)
{
    look(tls, tls->infos);
    struct served *served = mem_alloc(sizeof *served);
    *served = (struct served){.users = 1, .ask_clients = tls->ask_clients};
    int rc = pki_identity_load(tls->cert_path, tls->key_path, &served->identity, error);
    if (rc == 0 && tls->ca_path)
        rc = pki_trust_load(tls->ca_path, &served->trust, error);
    if (rc == 0 && tls->ca_path)
        rc = check_own(served, tls->cert_path, error);
    if (rc < 0) {
        served_free(served);
        return rc;
    }
    pthread_mutex_lock(&tls->mutex);
    struct served *before = tls->served;
    tls->served = served;
    pthread_mutex_unlock(&tls->mutex);
    served_release(tls, before);
    return 0;
}

/* A gnutls_certificate_retrieve_function2: called while the client's first message is read, in time to ask
 * for a certificate. Names no authorities, so that clients show any certificate they have, also one of an
 * authority that was added since. */
static int give_certificate(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
                            const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                            gnutls_pcert_st **ret_certs, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    const struct served *served = gnutls_session_get_ptr(session);
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    if (served->ask_clients) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_certificate_send_x509_rdn_sequence(session, 1);
    }
    *ret_certs = served->identity->certs;
    *ret_count = served->identity->cert_count;
    *ret_key = served->identity->key;
    return 0;
}

/* Copies `settings`, which name the files, and loads them. */
static int tls_open(const struct api_tls *settings, struct api_tls **ret_tls, struct error *error)
{
    struct api_tls *tls = mem_alloc(sizeof *tls);
    *tls = *settings;
    CHECK(pthread_mutex_init(&tls->mutex, NULL) == 0);
    int rc = api_tls_reload(tls, error);
    if (rc < 0) {
        pthread_mutex_destroy(&tls->mutex);
        mem_free(tls);
        return rc;
    }
    CHECK(gnutls_certificate_allocate_credentials(&tls->credentials) == 0);
    gnutls_certificate_set_retrieve_function2(tls->credentials, give_certificate);
    CHECK(gnutls_priority_init(&tls->priorities, "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2", NULL) == 0);
    *ret_tls = tls;
    return 0;
}

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error)
{
    const struct api_tls settings = {
        .cert_path = cert_path, .key_path = key_path, .ask_clients = ask_clients};
    return tls_open(&settings, ret_tls, error);
}

int api_tls_new_client(const char *cert_path, const char *key_path, const char *ca_path,
                       struct api_tls **ret_tls, struct error *error)
{
    const struct api_tls settings = {
        .cert_path = cert_path, .key_path = key_path, .ca_path = ca_path, .forwards = true};
    return tls_open(&settings, ret_tls, error);
}

void api_tls_take_forwards(struct api_tls *tls)
{
    CHECK(tls->ask_clients); /* otherwise controllers could not be distinguished from other clients */
    tls->forwards = true;
}

bool api_tls_connects(const struct api_tls *tls)
{
    return tls->ca_path != NULL;
}

void api_tls_free(struct api_tls *tls)
{
    if (!tls)
        return;
    CHECK(tls->served->users == 1);
    served_release(tls, tls->served);
    gnutls_certificate_free_credentials(tls->credentials);
    gnutls_priority_deinit(tls->priorities);
    pthread_mutex_destroy(&tls->mutex);
    mem_free(tls);
}

gnutls_session_t api_tls_begin(struct api_tls *tls, int fd)
{
    static unsigned char forwards[] = API_TLS_FORWARDS;
    const gnutls_datum_t protocol = {forwards, sizeof forwards - 1};
    unsigned side = api_tls_connects(tls) ? GNUTLS_CLIENT : GNUTLS_SERVER;
    gnutls_session_t session;
    CHECK(gnutls_init(&session, side | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) == 0);
    if (tls->forwards)
        CHECK(gnutls_alpn_set_protocols(session, &protocol, 1, 0) == 0);
    CHECK(gnutls_priority_set(session, tls->priorities) == 0);
    CHECK(gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, tls->credentials) == 0);
    gnutls_transport_set_int(session, fd);
    pthread_mutex_lock(&tls->mutex);
    struct served *served = tls->served;
    served->users++;
    pthread_mutex_unlock(&tls->mutex);
    gnutls_session_set_ptr(session, served);
    return session;
}

void api_tls_end(struct api_tls *tls, gnutls_session_t session)
{
    struct served *served = gnutls_session_get_ptr(session);
    gnutls_deinit(session);
    served_release(tls, served);
}

bool api_tls_forwards(gnutls_session_t session)
{
    gnutls_datum_t protocol;
    return gnutls_alpn_get_selected_protocol(session, &protocol) == 0 &&
           str_is((struct str){(const char *)protocol.data, protocol.size}, API_TLS_FORWARDS);
}

int api_tls_check_leader(gnutls_session_t session, struct error *error)
{
    const struct served *served = gnutls_session_get_ptr(session);
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    if (!api_tls_forwards(session))
        return error_set(error, ERROR_DENIED,
                         "it does not take requests that other controllers pass on: it is of an earlier "
                         "release, or has no --client-ca");
    return pki_check_controller(served->trust, chain, chain ? count : 0, error);
}

bool api_tls_is_controller(struct api_tls *tls, const struct api_tls_chain *chain)
{
    gnutls_datum_t data[PKI_CHAIN_MAX];
    struct error error;
    for (unsigned i = 0; i < chain->count; i++)
        data[i] = (gnutls_datum_t){(unsigned char *)chain->certs[i].data, (unsigned)chain->certs[i].len};
    return pki_check_controller(tls->served->trust, data, chain->count, &error) == 0;
}

/* --- clients -------------------------------------------------------------------------------------------- */

void api_tls_chain_take(gnutls_session_t session, struct api_tls_chain *ret_chain)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    *ret_chain = (struct api_tls_chain){0};
    for (unsigned i = 0; chain && i < count && i < PKI_CHAIN_MAX; i++)
        buf_add(&ret_chain->certs[ret_chain->count++], chain[i].data, chain[i].size);
}

struct api_tls_chain api_tls_chain_copy(const struct api_tls_chain *chain)
{
    struct api_tls_chain copy = {.count = chain->count};
    for (unsigned i = 0; i < chain->count; i++)
        buf_add_str(&copy.certs[i], buf_str(&chain->certs[i]));
    return copy;
}

bool api_tls_chain_equal(const struct api_tls_chain *a, const struct api_tls_chain *b)
{
    bool equal = a->count == b->count;
    for (unsigned i = 0; equal && i < a->count; i++)
        equal = str_equal(buf_str(&a->certs[i]), buf_str(&b->certs[i]));
    return equal;
}

void api_tls_chain_done(struct api_tls_chain *chain)
{
    for (unsigned i = 0; i < chain->count; i++)
        buf_done(&chain->certs[i]);
    chain->count = 0;
}

struct api_tls_peer *api_tls_peer_new(struct api_tls_chain *chain)
{
    struct api_tls_peer *peer = mem_alloc(sizeof *peer);
    peer->chain = *chain;
    *chain = (struct api_tls_chain){0};
    return peer;
}

void api_tls_peer_free(struct api_tls_peer *peer)
{
    if (!peer)
        return;
    api_tls_chain_done(&peer->chain);
    arena_done(&peer->arena);
    mem_free(peer);
}

/* Checks the chain, unless it was checked a short time ago. */
static void peer_check(struct api_tls_peer *peer, struct access *access, int64_t now_ns)
{
    uint64_t generation = access_generation(access);
    struct access_blob blobs[PKI_CHAIN_MAX];
    struct error error;
    unsigned count = peer->chain.count;
    if (peer->checked && peer->generation == generation && now_ns - peer->checked_ns <= CHECK_AGAIN_NS)
        return;
    arena_done(&peer->arena);
    for (unsigned i = 0; i < count; i++)
        blobs[i] =
            (struct access_blob){(const unsigned char *)peer->chain.certs[i].data, peer->chain.certs[i].len};
    peer->good =
        count > 0 && access_check_certificate(access, blobs, count, &peer->arena, &peer->user, &error) == 0;
    peer->controls = peer->good && access_in_group(&peer->user, PKI_CONTROLLERS) &&
                     access_check_controller(access, blobs, count, &error) == 0;
    peer->checked = true;
    peer->generation = generation;
    peer->checked_ns = now_ns;
}

const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access, int64_t now_ns,
                                            bool *ret_bad)
{
    peer_check(peer, access, now_ns);
    *ret_bad = peer->chain.count > 0 && !peer->good;
    return peer->good ? &peer->user : NULL;
}

bool api_tls_peer_controls(struct api_tls_peer *peer, struct access *access, int64_t now_ns)
{
    peer_check(peer, access, now_ns);
    return peer->controls;
}

const struct api_tls_chain *api_tls_peer_chain(const struct api_tls_peer *peer)
{
    return &peer->chain;
}
