/* accounts.h - tokens of ServiceAccounts: signed, with an end, for an audience.
 *
 * A token is a JSON Web Token (RFC 7519) in the compact form of RFC 7515, signed with Ed25519 ("EdDSA", RFC
 * 8037), with the claims that Kubernetes' have:
 *     {"aud":["phalanx"],"exp":1767229200,"iat":...,"iss":"phalanx","jti":"...","kubernetes.io":{"namespace":
 *      "default","pod":{"name":"p","uid":"..."},"serviceaccount":{"name":"x","uid":"..."}},"nbf":...,
 *      "sub":"system:serviceaccount:default:x"}
 * What a token says was true when it was signed; whether its account and what it is bound to still live is
 * access.c's to ask.
 *
 * One thread.
 */
#ifndef PHX_HOST_ACCESS_ACCOUNTS_H
#define PHX_HOST_ACCESS_ACCOUNTS_H

#include "base/arena.h"
#include "base/error.h"
#include "core/words/ids.h"

#define ACCOUNT_AUDIENCE "phalanx" /* of tokens for this API, and who issues them */
enum { ACCOUNT_TOKEN_BYTES_MAX = 16 * 1024, ACCOUNT_AUDIENCES_MAX = 64 };

struct account_claims {
    struct str namespace_, name; /* of the ServiceAccount */
    obj_id uid;
    struct str bound_kind, bound_name; /* "Pod", "Secret"; empty: bound to nothing else */
    obj_id bound_uid;
    struct str id; /* of the token, unique */
    struct str *audiences;
    size_t audience_count;
    int64_t from_s, until_s; /* seconds since 1970 */
};

struct account_key;
/* The key of this file (PEM, PKCS #8), which is made with mode 0600 when it is absent. ERROR_INVALID: it
 * holds no Ed25519 key. */
int account_key_open(const char *path, struct account_key **ret_key, struct error *error);
void account_key_free(struct account_key *key); /* NULL is allowed */

void account_token_write(const struct account_key *key, const struct account_claims *claims, struct buf *out);
/* A token that this key signed, with claims of the form above; they live in `arena`. Its times and
 * audiences are not judged. ERROR_DENIED. `key` NULL: the signature is not looked at (for fuzzing). */
int account_token_read(const struct account_key *key, struct arena *arena, struct str token,
                       struct account_claims *ret_claims, struct error *error);
/* May it look like one: two dots, no other characters than base64url's? */
bool account_token_is_like(struct str token);

#endif
