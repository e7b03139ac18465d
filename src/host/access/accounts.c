#include "host/access/accounts.h"

#include <gnutls/abstract.h>
#include <stdio.h>
#include <unistd.h>

#include "base/base64.h"
#include "base/check.h"
#include "doc/json.h"
#include "host/access/access.h"
#include "host/access/pki.h"
#include "os/file.h"

enum { KEY_FILE_BYTES_MAX = 16 * 1024, CLAIMS_MEMORY_MAX = 1024 * 1024 };

struct account_key {
    gnutls_privkey_t sign;
    gnutls_pubkey_t verify;
};

/* --- the key ------------------------------------------------------------------------------------------ */

static int wrong(struct error *error, int rc, const char *path)
{
    return error_set(error, ERROR_INVALID, "%s: %s", path, gnutls_strerror(rc));
}

static int make_key(const char *path, struct error *error)
{
    gnutls_x509_privkey_t key;
    gnutls_datum_t pem = {0};
    CHECK(gnutls_x509_privkey_init(&key) == 0);
    int rc = gnutls_x509_privkey_generate(key, GNUTLS_PK_EDDSA_ED25519, 0, 0);
    if (rc == 0)
        rc = gnutls_x509_privkey_export2_pkcs8(key, GNUTLS_X509_FMT_PEM, NULL, GNUTLS_PKCS_PLAIN, &pem);
    gnutls_x509_privkey_deinit(key);
    if (rc < 0)
        return wrong(error, rc, path);
    rc = os_file_write(path, (struct str){(char *)pem.data, pem.size}, 0600, false, error);
    gnutls_memset(pem.data, 0, pem.size);
    gnutls_free(pem.data);
    return rc;
}

int account_key_open(const char *path, struct account_key **ret_key, struct error *error)
{
    struct buf text BUF_CLEANUP = {0};
    int rc = access(path, F_OK) == 0 ? 0 : make_key(path, error);
    if (rc < 0 && access(path, F_OK) == 0)
        rc = 0; /* another controller that shares the folder has just created the file, completely */
    if (rc == 0)
        rc = os_file_read(path, KEY_FILE_BYTES_MAX, &text, error);
    if (rc < 0)
        return rc;
    struct account_key *key = mem_alloc(sizeof *key);
    CHECK(gnutls_privkey_init(&key->sign) == 0 && gnutls_pubkey_init(&key->verify) == 0);
    gnutls_datum_t data = {(unsigned char *)text.data, (unsigned)text.len};
    rc = gnutls_privkey_import_x509_raw(key->sign, &data, GNUTLS_X509_FMT_PEM, NULL, 0);
    gnutls_memset(text.data, 0, text.len);
    if (rc == 0)
        rc = gnutls_pubkey_import_privkey(key->verify, key->sign, 0, 0);
    if (rc < 0)
        rc = wrong(error, rc, path);
    else if (gnutls_privkey_get_pk_algorithm(key->sign, NULL) != GNUTLS_PK_EDDSA_ED25519)
        rc = error_set(error, ERROR_INVALID, "%s: tokens are signed with an Ed25519 key, this is another",
                       path);
    if (rc < 0)
        account_key_free(key);
    else
        *ret_key = key;
    return rc;
}

void account_key_free(struct account_key *key)
{
    if (!key)
        return;
    gnutls_privkey_deinit(key->sign);
    gnutls_pubkey_deinit(key->verify);
    mem_free(key);
}

/* --- writing ------------------------------------------------------------------------------------------ */

static void put_reference(struct json_writer *out, const char *key, struct str name, obj_id uid)
{
    char text[UID_TEXT_MAX];
    uid_text(uid, text);
    json_key(out, key);
    json_begin_object(out);
    json_pair_str(out, "name", name);
    json_pair_text(out, "uid", text);
    json_end_object(out);
}

static void write_claims(struct json_writer *out, const struct account_claims *claims)
{
    struct buf subject BUF_CLEANUP = {0};
    buf_printf(&subject, ACCESS_ACCOUNT_PREFIX STR_FORMAT ":" STR_FORMAT, STR_ARG(claims->namespace_),
               STR_ARG(claims->name));
    json_begin_object(out);
    json_key(out, "aud");
    json_begin_array(out);
    for (size_t i = 0; i < claims->audience_count; i++)
        json_put_str(out, claims->audiences[i]);
    json_end_array(out);
    json_pair_int(out, "exp", claims->until_s);
    json_pair_int(out, "iat", claims->from_s);
    json_pair_text(out, "iss", ACCOUNT_AUDIENCE);
    json_pair_str(out, "jti", claims->id);
    json_key(out, "kubernetes.io");
    json_begin_object(out);
    json_pair_str(out, "namespace", claims->namespace_);
    if (claims->bound_kind.len)
        put_reference(out, str_is(claims->bound_kind, "Pod") ? "pod" : "secret", claims->bound_name,
                      claims->bound_uid);
    put_reference(out, "serviceaccount", claims->name, claims->uid);
    json_end_object(out);
    json_pair_int(out, "nbf", claims->from_s);
    json_pair_str(out, "sub", buf_str(&subject));
    json_end_object(out);
}

void account_token_write(const struct account_key *key, const struct account_claims *claims, struct buf *out)
{
    struct buf text BUF_CLEANUP = {0};
    struct json_writer json = {.out = &text};
    gnutls_datum_t signature;
    size_t start = out->len;
    write_claims(&json, claims);
    base64url_encode(STR("{\"alg\":\"EdDSA\",\"typ\":\"JWT\"}"), out);
    buf_add_char(out, '.');
    base64url_encode(buf_str(&text), out);
    gnutls_datum_t data = {(unsigned char *)out->data + start, (unsigned)(out->len - start)};
    CHECK(gnutls_privkey_sign_data2(key->sign, GNUTLS_SIGN_EDDSA_ED25519, 0, &data, &signature) == 0);
    buf_add_char(out, '.');
    base64url_encode((struct str){(char *)signature.data, signature.size}, out);
    gnutls_free(signature.data);
}

/* --- reading ------------------------------------------------------------------------------------------ */

/* Splits a token into its three parts. Returns false if there are not three. */
static bool split(struct str token, struct str *ret_header, struct str *ret_claims, struct str *ret_signature)
{
    struct str rest;
    return token.len <= ACCOUNT_TOKEN_BYTES_MAX && str_cut(token, '.', ret_header, &rest) &&
           str_cut(rest, '.', ret_claims, ret_signature) && ret_header->len && ret_claims->len;
}

bool account_token_is_like(struct str token)
{
    struct str header, claims, signature;
    return split(token, &header, &claims, &signature) && base64url_decode(header, NULL) &&
           base64url_decode(claims, NULL) && base64url_decode(signature, NULL);
}

static bool is_signed(const struct account_key *key, struct str token, struct str signature)
{
    struct buf bytes BUF_CLEANUP = {0};
    if (!base64url_decode(signature, &bytes) || bytes.len == 0)
        return false;
    gnutls_datum_t data = {(unsigned char *)token.data, (unsigned)(signature.data - token.data) - 1};
    gnutls_datum_t given = {(unsigned char *)bytes.data, (unsigned)bytes.len};
    return gnutls_pubkey_verify_data2(key->verify, GNUTLS_SIGN_EDDSA_ED25519, 0, &data, &given) >= 0;
}

static struct doc *read_part(struct arena *arena, struct str part)
{
    struct buf text BUF_CLEANUP = {0};
    struct doc *document;
    if (!base64url_decode(part, &text) ||
        json_parse(arena, arena_str(arena, buf_str(&text)), &document, NULL) < 0)
        return NULL;
    return document;
}

static bool read_reference(const struct doc *node, struct str *ret_name, obj_id *ret_uid)
{
    *ret_name = doc_str(doc_get(node, "name"), STR(""));
    return ret_name->len && uid_parse(doc_str(doc_get(node, "uid"), STR("")), ret_uid);
}

static bool read_claims(struct arena *arena, const struct doc *node, struct account_claims *ret_claims)
{
    const struct doc *ours = doc_get(node, "kubernetes.io"), *audiences = doc_get(node, "aud");
    const struct doc *pod = doc_get(ours, "pod"), *secret = doc_get(ours, "secret");
    struct account_claims claims = {.namespace_ = doc_str(doc_get(ours, "namespace"), STR("")),
                                    .id = doc_str(doc_get(node, "jti"), STR("")),
                                    .from_s = doc_int(doc_get(node, "nbf"), INT64_MAX),
                                    .until_s = doc_int(doc_get(node, "exp"), 0)};
    if (!str_is(doc_str(doc_get(node, "iss"), STR("")), ACCOUNT_AUDIENCE) || !claims.namespace_.len ||
        !read_reference(doc_get(ours, "serviceaccount"), &claims.name, &claims.uid) || (pod && secret) ||
        doc_len(audiences) == 0 || doc_len(audiences) > ACCOUNT_AUDIENCES_MAX)
        return false;
    if (pod || secret) {
        claims.bound_kind = pod ? STR("Pod") : STR("Secret");
        if (!read_reference(pod ? pod : secret, &claims.bound_name, &claims.bound_uid))
            return false;
    }
    claims.audiences = ARENA_ARRAY(arena, struct str, doc_len(audiences));
    for (; claims.audience_count < doc_len(audiences); claims.audience_count++)
        claims.audiences[claims.audience_count] = doc_str(doc_at(audiences, claims.audience_count), STR(""));
    *ret_claims = claims;
    return true;
}

int account_token_read(const struct account_key *key, struct arena *arena, struct str token,
                       struct account_claims *ret_claims, struct error *error)
{
    struct str header, payload, signature;
    if (!split(token, &header, &payload, &signature))
        return error_set(error, ERROR_DENIED, "it is not a signed token");
    if (key && !is_signed(key, token, signature)) /* before its content is read */
        return error_set(error, ERROR_DENIED, "its signature is not ours");
    size_t limit_bytes = arena->limit_bytes;
    arena->limit_bytes = arena->used_bytes + CLAIMS_MEMORY_MAX;
    const struct doc *head = read_part(arena, header), *claims = read_part(arena, payload);
    bool good = head && claims && str_is(doc_str(doc_get(head, "alg"), STR("")), "EdDSA") &&
                read_claims(arena, claims, ret_claims);
    arena->limit_bytes = limit_bytes;
    return good ? 0 : error_set(error, ERROR_DENIED, "its claims are not those of a ServiceAccount");
}
