/* token.h - the secret by which a head knows its workers and clients: 32 random bytes.
 *
 * In a file, in an environment variable and in a Kubernetes Secret the token is 64 hexadecimal digits. In a
 * HELLO to the head it is the last 32 bytes of the tail (ENTRY_HAS_TOKEN), in the clear: who can listen on
 * the network between them learns it.
 */
#ifndef PHX_FLOW_WIRE_TOKEN_H
#define PHX_FLOW_WIRE_TOKEN_H

#include <stdint.h>

#include "base/error.h"
#include "flow/island/entry.h"

enum { FLOW_TOKEN_BYTES = 32, FLOW_TOKEN_DIGITS = 2 * FLOW_TOKEN_BYTES };
#define FLOW_TOKEN_FILE "token" /* beside the unix socket of a head that `phalanx flow up` started */

struct flow_token {
    bool set;
    uint8_t bytes[FLOW_TOKEN_BYTES];
};

/* Finds the token: in the file `path`; where that is NULL beside the socket of `beside` ("unix:PATH"; NULL:
 * not there), in $PHX_FLOW_TOKEN, or in the file that $PHX_FLOW_TOKEN_FILE names; else it is not set.
 * ERROR_INVALID: it is no token, or others may read its file. */
int flow_token_find(const char *path, const char *beside, struct flow_token *ret_token, struct error *error);
/* Writes a new token to a new file, for its user alone. */
int flow_token_make(const char *path, struct error *error);
/* Adds the token to the tail of a HELLO, if it is set. */
void flow_token_sign(const struct flow_token *token, struct flow_entry *hello, struct buf *tail);
/* Takes the token off the tail of a HELLO. Returns whether it is this one, or none is asked for. The time
 * does not tell how much of a wrong one was right. */
bool flow_token_take(const struct flow_token *token, struct flow_entry *hello, struct str *tail);

#endif
