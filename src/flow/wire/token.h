/* token.h - the secret by which a head recognises its workers and clients: 32 random bytes.
 *
 * In a file, in an environment variable and in a Kubernetes Secret the token is 64 hexadecimal digits. In a
 * HELLO to the head it is the last 32 bytes of the tail (ENTRY_HAS_TOKEN), in the clear. Anyone who can read
 * the network traffic between them learns it.
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

/* Finds the token, in this order: in the file `path`, and nowhere else if that is not NULL; in the file next
 * to the socket `beside` ("unix:PATH"; NULL: not there); in $PHX_FLOW_TOKEN; in the file that
 * $PHX_FLOW_TOKEN_FILE names. Otherwise the token is not set. Returns ERROR_INVALID if the text is not a
 * token or its file is accessible to others, or an error of reading the file. */
int flow_token_find(const char *path, const char *beside, struct flow_token *ret_token, struct error *error);
/* Writes a new token to a new file that only its user can read; replaces a file at that path. */
int flow_token_make(const char *path, struct error *error);
/* Appends the token to the tail of a HELLO, if it is set. */
void flow_token_sign(const struct flow_token *token, struct flow_entry *hello, struct buf *tail);
/* Removes the token from the tail of a HELLO. Returns whether it equals `token`, or `token` is not set. Takes
 * constant time, which reveals nothing about a wrong token. */
bool flow_token_take(const struct flow_token *token, struct flow_entry *hello, struct str *tail);

#endif
