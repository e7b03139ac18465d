#include "host/api/tls.h"

#include <gnutls/x509.h>
#include <sys/stat.h>

#include "base/check.h"
#include "base/units.h"
#include "host/access/pki.h"

#define CHECK_AGAIN_NS (60 * NS_PER_SECOND) /* a certificate that ends ends its connections about then */

struct api_tls {
    const char *cert_path, *key_path;
    struct pki_identity *identity;
    struct pki_identity *before; /* a handshake that began before a reload still signs with it */
    struct stat cert_info, key_info;
    bool ask_clients;
};

struct api_tls_peer {
    struct arena arena;
    struct access_user user;
    bool checked, shown, good;
    uint64_t generation;
    int64_t checked_ns;
};

static struct api_tls *current; /* see api_tls_enter() */

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

int api_tls_reload(struct api_tls *tls, struct error *error)
{
    struct pki_identity *identity;
    look(tls, &tls->cert_info, &tls->key_info);
    int rc = pki_identity_load(tls->cert_path, tls->key_path, &identity, error);
    if (rc < 0)
        return rc;
    pki_identity_free(tls->before);
    tls->before = tls->identity;
    tls->identity = identity;
    return 0;
}

int api_tls_new(const char *cert_path, const char *key_path, bool ask_clients, struct api_tls **ret_tls,
                struct error *error)
{
    struct api_tls *tls = mem_alloc(sizeof *tls);
    tls->cert_path = cert_path;
    tls->key_path = key_path;
    tls->ask_clients = ask_clients;
    int rc = api_tls_reload(tls, error);
    if (rc < 0)
        mem_free(tls);
    else
        *ret_tls = tls;
    return rc;
}

void api_tls_free(struct api_tls *tls)
{
    if (!tls)
        return;
    if (current == tls)
        current = NULL;
    pki_identity_free(tls->before);
    pki_identity_free(tls->identity);
    mem_free(tls);
}

void api_tls_enter(struct api_tls *tls)
{
    current = tls;
}

/* gnutls_certificate_retrieve_function2: called while the client's first message is read, in time to ask for
 * a certificate. No authorities are named: clients then show what they have, also one of an authority that
 * was added since they connected last. */
static int give_certificate(gnutls_session_t session, const gnutls_datum_t *authorities, int authority_count,
                            const gnutls_pk_algorithm_t *algorithms, int algorithm_count,
                            gnutls_pcert_st **ret_certs, unsigned *ret_count, gnutls_privkey_t *ret_key)
{
    (void)authorities;
    (void)authority_count;
    (void)algorithms;
    (void)algorithm_count;
    if (!current)
        return -1;
    if (current->ask_clients) {
        gnutls_certificate_server_set_request(session, GNUTLS_CERT_REQUEST);
        gnutls_certificate_send_x509_rdn_sequence(session, 1);
    }
    *ret_certs = current->identity->certs;
    *ret_count = current->identity->cert_count;
    *ret_key = current->identity->key;
    return 0;
}

void api_tls_options(struct MHD_OptionItem options[API_TLS_OPTIONS])
{
    static char priorities[] = "NORMAL:-VERS-ALL:+VERS-TLS1.3:+VERS-TLS1.2";
    options[0] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_CERT_CALLBACK, 0, (void *)give_certificate};
    options[1] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_PRIORITIES, 0, priorities};
    options[2] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
}

/* --- clients -------------------------------------------------------------------------------------------- */

struct api_tls_peer *api_tls_peer_new(void)
{
    return mem_alloc(sizeof(struct api_tls_peer));
}

void api_tls_peer_free(struct api_tls_peer *peer)
{
    if (!peer)
        return;
    arena_done(&peer->arena);
    mem_free(peer);
}

const struct access_user *api_tls_peer_user(struct api_tls_peer *peer, struct access *access,
                                            gnutls_session_t session, int64_t now_ns, bool *ret_bad)
{
    uint64_t generation = access_generation(access);
    if (!peer->checked || peer->generation != generation || now_ns - peer->checked_ns > CHECK_AGAIN_NS) {
        unsigned count = 0;
        const gnutls_datum_t *chain = gnutls_certificate_get_peers(session, &count);
        struct access_blob blobs[PKI_CHAIN_MAX];
        struct error error;
        arena_done(&peer->arena);
        for (unsigned i = 0; chain && i < count && i < PKI_CHAIN_MAX; i++)
            blobs[i] = (struct access_blob){chain[i].data, chain[i].size};
        peer->shown = chain && count > 0;
        peer->good = peer->shown &&
                     access_check_certificate(access, blobs, count, &peer->arena, &peer->user, &error) == 0;
        peer->checked = true;
        peer->generation = generation;
        peer->checked_ns = now_ns;
    }
    *ret_bad = peer->shown && !peer->good;
    return peer->good ? &peer->user : NULL;
}
