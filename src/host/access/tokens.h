/* tokens.h - bearer tokens from a file. Private to access.
 *
 * The format is Kubernetes' static token file: one CSV line for each token,
 *     token,user,uid[,"group1,group2"]
 * with RFC 4180's double quotes; empty lines and lines that begin with '#' are skipped. Instead of the token
 * a line may hold its SHA-256, as "sha256:" and 64 hexadecimal digits. Memory holds digests only, and
 * comparing a token with all of them takes the same time whichever matches.
 */
#ifndef PHX_HOST_ACCESS_TOKENS_H
#define PHX_HOST_ACCESS_TOKENS_H

#include "host/access/access.h"

struct tokens;
enum { TOKENS_MAX = 100000, TOKEN_BYTES_MIN = 8, TOKEN_FILE_BYTES_MAX = 16 * 1024 * 1024 };

/* Parses a token file. ERROR_INVALID names the line and the reason. */
int tokens_parse(struct str text, struct tokens **ret_tokens, struct error *error);
void tokens_free(struct tokens *tokens); /* NULL is fine */
/* Returns the token's user, or NULL if the token is unknown. NULL `tokens` are fine. */
const struct access_user *tokens_find(const struct tokens *tokens, struct str token);
size_t tokens_count(const struct tokens *tokens);

#endif
