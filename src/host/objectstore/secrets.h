/* secrets.h - the credentials of a store: from a file or the environment (objectstore.h says in which order).
 * They are overwritten when they are let go, and stand in no message.
 *
 * secrets_read is pure; secrets_load reads the environment, so like getenv not beside a setenv.
 */
#ifndef PHX_HOST_OBJECTSTORE_SECRETS_H
#define PHX_HOST_OBJECTSTORE_SECRETS_H

#include "host/objectstore/objectstore.h"

struct store_secrets {
    char access_key[256], secret_key[256];
    char token[4096]; /* empty: none */
};

/* The profile of a file like ~/.aws/credentials: "[NAME]", then "aws_access_key_id = ..." and so on. False:
 * the profile is not there, or not whole. */
bool secrets_read(struct str text, const char *profile, struct store_secrets *ret);
/* ERROR_NOT_FOUND: nothing names any. ERROR_INVALID, ERROR_IO: the file. */
int secrets_load(const struct store_place *place, struct store_secrets *ret, struct error *error);
void secrets_forget(struct store_secrets *secrets);

#endif
