/* accounts.h - tokens of ServiceAccounts: signed, with an expiry time, for an audience.
 *
 * A token is a JSON Web Token (RFC 7519) in the compact form of RFC 7515, signed with Ed25519 ("EdDSA", RFC
 * 8037), with the same claims as Kubernetes' tokens:
 *     {"aud":["phalanx"],"exp":1767229200,"iat":...,"iss":"phalanx","jti":"...","kubernetes.io":{"namespace":
 *      "default","pod":{"name":"p","uid":"..."},"serviceaccount":{"name":"x","uid":"..."}},"nbf":...,
 *      "sub":"system:serviceaccount:default:x"}
 * The claims were true when the token was signed. access.c checks that the account, and the object that the
 * token is bound to, still exist.
 *
 * One thread.
 */
#ifndef PHX_HOST_ACCESS_ACCOUNTS_H
#define PHX_HOST_ACCESS_ACCOUNTS_H

#include "base/arena.h"
#include "base/error.h"
#include "core/words/ids.h"

#define ACCOUNT_AUDIENCE "phalanx" /* audience of tokens for this API, and their issuer */
enum { ACCOUNT_TOKEN_BYTES_MAX = 16 * 1024, ACCOUNT_AUDIENCES_MAX = 64 };

struct account_claims {
    struct str namespace_, name; /* of the ServiceAccount */
    obj_id uid;
    struct str bound_kind, bound_name; /* "Pod" or "Secret"; empty: bound to the account only */
    obj_id bound_uid;
    struct str id; /* of the token, unique */
    struct str *audiences;
    size_t audience_count;
    int64_t from_s, until_s; /* seconds since 1970 */
};

struct account_key;
/* Reads a key file (PEM, PKCS #8); creates it, with mode 0600, if it is absent. ERROR_INVALID: the file holds
 * no Ed25519 key. */
int account_key_open(const char *path, struct account_key **ret_key, struct error *error);
void account_key_free(struct account_key *key); /* NULL is fine */

/* Signs a token, and appends it to `out`. */
void account_token_write(const struct account_key *key, const struct account_claims *claims, struct buf *out);
/* Checks a token's signature and reads its claims, in `arena`. Does not check its times and audiences.
 * ERROR_DENIED: another key signed it, or its claims do not have the form above. `key` NULL: the signature is
 * not checked (for fuzzing). */
int account_token_read(const struct account_key *key, struct arena *arena, struct str token,
                       struct account_claims *ret_claims, struct error *error);
/* Returns whether a text has the form of a token: three parts in base64url, with dots between them. */
bool account_token_is_like(struct str token);

#endif
