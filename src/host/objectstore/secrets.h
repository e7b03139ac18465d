/* secrets.h - the credentials of a store: from a file or the environment (objectstore.h has the order).
 * secrets_forget() overwrites them; messages never contain them.
 *
 * secrets_read is pure; secrets_load reads the environment, so, like getenv, it must not run beside a setenv.
 */
#ifndef PHX_HOST_OBJECTSTORE_SECRETS_H
#define PHX_HOST_OBJECTSTORE_SECRETS_H

#include "host/objectstore/objectstore.h"

struct store_secrets {
    char access_key[256], secret_key[256];
    char token[4096]; /* empty: none */
};

/* Reads a profile of a file like ~/.aws/credentials: "[NAME]", then "aws_access_key_id = ..." and so on.
 * Returns false if the profile is missing or incomplete. */
bool secrets_read(struct str text, const char *profile, struct store_secrets *ret);
/* Loads the credentials of a place. ERROR_NOT_FOUND: none are configured. ERROR_INVALID, ERROR_IO: the file
 * or the variables are wrong. */
int secrets_load(const struct store_place *place, struct store_secrets *ret, struct error *error);
void secrets_forget(struct store_secrets *secrets);

#endif
