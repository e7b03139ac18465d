#include "host/api/tls.h"

#include <gnutls/x509.h>
#include <pthread.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/units.h"

#define CHECK_AGAIN_NS (60 * NS_PER_SECOND) /* a certificate that ends ends its connections about then */

/* A certificate and its key; stays until the last session that began with it has ended. */
struct served {
    struct pki_identity *identity;
    uint32_t users; /* api_tls.served counts as one */
    bool ask_clients;
};

struct api_tls {
    const char *cert_path, *key_path;
    gnutls_certificate_credentials_t credentials; /* ask give_certificate() */
    gnutls_priority_t priorities;
    struct stat cert_info, key_info;
    bool ask_clients;
    pthread_mutex_t mutex; /* of `served` and of the users of each */
    struct served *served;
};

struct api_tls_peer {
    struct arena arena;
    struct access_user user;
    struct api_tls_chain chain;
    bool checked, good;
    uint64_t generation;
    int64_t checked_ns;
};

/* --- the certificate ------------------------------------------------------------------------------------ */

static void look(const struct api_tls *tls, struct stat *ret_cert, struct stat *ret_key)
{
    memset(ret_cert, 0, sizeof *ret_cert);
    memset(ret_key, 0, sizeof *ret_key);
    (void)stat(tls->cert_path, ret_cert);
    (void)stat(tls->key_path, ret_key);
}

static bool differs(const struct stat *a, const struct stat *b)
{
    return a->st_ino != b->st_ino || a->st_size != b->st_size || a->st_mtim.tv_sec != b->st_mtim.tv_sec ||
           a->st_mtim.tv_nsec != b->st_mtim.tv_nsec;
}

bool api_tls_files_changed(const struct api_tls *tls)
{
    struct stat cert, key;
    look(tls, &cert, &key);
    return differs(&cert, &tls->cert_info) || differs(&key, &tls->key_info);
}

static void served_release(struct api_tls *tls, struct served *served)
{
    if (!served)
        return;
    pthread_mutex_lock(&tls->mutex);
    bool last = --served->users == 0;
    pthread_mutex_unlock(&tls->mutex);
    if (!last)
        return;
    pki_identity_free(served->identity);
    mem_free(served);
}

int api_tls_reload(struct api_tls *tls, struct error *error)
{
    struct pki_identity *identity;
    look(tls, &tls->cert_info, &tls->key_info);
    int rc = pki_identity_load(tls->cert_path, tls->key_path, &identity, error);
    if (rc < 0)
        return rc;
    struct served *served = mem_alloc(sizeof *served);
    *served = (struct served){.identity = identity, .users = 1, .ask_clients = tls->ask_clients};
    pthread_mutex_lock(&tls->mutex);
    struct served *before = tls->served;
    tls->served = served;
    pthread_mutex_unlock(&tls->mutex);
    served_release(tls, before);
    return 0;
}

/* gnutls_certificate_retrieve_function2: called while the client's first message is read, in time to ask for
 * a certificate. No authorities are named: clients then show what they have, also one of an authority that
 * was added since they connected last. */
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

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error)
{
    struct api_tls *tls = mem_alloc(sizeof *tls);
    tls->cert_path = cert_path;
    tls->key_path = key_path;
    tls->ask_clients = ask_clients;
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
    gnutls_session_t session;
    CHECK(gnutls_init(&session, GNUTLS_SERVER | GNUTLS_NONBLOCK | GNUTLS_NO_SIGNAL | GNUTLS_NO_TICKETS) == 0);
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

/* --- clients -------------------------------------------------------------------------------------------- */

void api_tls_chain_take(gnutls_session_t session, struct api_tls_chain *ret_chain)
{
    unsigned count = 0;
    const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
    *ret_chain = (struct api_tls_chain){0};
    for (unsigned i = 0; chain && i < count && i < PKI_CHAIN_MAX; i++)
        buf_add(&ret_chain->certs[ret_chain->count++], chain[i].data, chain[i].size);
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

const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access, int64_t now_ns,
                                            bool *ret_bad)
{
    uint64_t generation = access_generation(access);
    bool shown = peer->chain.count > 0;
    if (!peer->checked || peer->generation != generation || now_ns - peer->checked_ns > CHECK_AGAIN_NS) {
        struct access_blob blobs[PKI_CHAIN_MAX];
        struct error error;
        arena_done(&peer->arena);
        for (unsigned i = 0; i < peer->chain.count; i++)
            blobs[i] = (struct access_blob){(const unsigned char *)peer->chain.certs[i].data,
                                            peer->chain.certs[i].len};
        peer->good = shown && access_check_certificate(access, blobs, peer->chain.count, &peer->arena,
                                                       &peer->user, &error) == 0;
        peer->checked = true;
        peer->generation = generation;
        peer->checked_ns = now_ns;
    }
    *ret_bad = shown && !peer->good;
    return peer->good ? &peer->user : NULL;
}
