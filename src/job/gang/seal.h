/* seal.h - proof that bytes between two ranks come from a rank of this attempt.
 *
 * All ranks of an attempt have one secret of SEAL_KEY_SIZE bytes, the gang's key, from their agents (wire.h).
 * The rank that accepts a connection sends a nonce of its own; the rank that has connected answers with its
 * own nonce in its first frame. Both derive one key for each direction of this connection,
 *
 *     HMAC-SHA-256(gang's key, purpose ‖ direction ‖ server's nonce ‖ client's nonce)
 *
 * and every frame ends with a tag of SEAL_TAG_SIZE bytes, the beginning of
 *
 *     HMAC-SHA-256(key of the direction, u64 number of the frame ‖ SHA-256(frame without the tag))
 *
 * A frame of another connection, direction, position, purpose, attempt or gang therefore has a wrong tag. The
 * digest is computed separately, so a frame for many ranks is hashed once.
 *
 * One thread at a time may use a seal.
 */
#ifndef PHX_JOB_GANG_SEAL_H
#define PHX_JOB_GANG_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/poly1305.h"

#define SEAL_KEY_SIZE     SHA256_SIZE
#define SEAL_NONCE_SIZE   16
#define SEAL_TAG_SIZE     16
_Static_assert(SEAL_TAG_SIZE == POLY1305_TAG_SIZE, "tags of frames and of data are alike");
#define SEAL_PURPOSE_SIZE 8 /* names a protocol and its version: its tags are not valid in another */

enum seal_direction { SEAL_FROM_CLIENT = 1, SEAL_FROM_SERVER = 2 };

struct seal {
    struct hmac hmac;
    uint64_t next; /* number of the next frame, from 0 */
};

/* Initialises the seal of one direction of a connection. */
void seal_begin(struct seal *seal, const uint8_t key[SEAL_KEY_SIZE], const char purpose[SEAL_PURPOSE_SIZE],
                enum seal_direction direction, const uint8_t server_nonce[SEAL_NONCE_SIZE],
                const uint8_t client_nonce[SEAL_NONCE_SIZE]);

/* Computes the tag of the next frame to send, from its digest. */
void seal_tag_digest(struct seal *seal, const uint8_t digest[SHA256_SIZE], uint8_t ret_tag[SEAL_TAG_SIZE]);
/* Computes the tag of the next frame to send, from its bytes. */
void seal_tag(struct seal *seal, const void *frame, size_t len, uint8_t ret_tag[SEAL_TAG_SIZE]);

/* Returns true if this is the tag of the next frame to receive. Takes the same time for every wrong tag. */
bool seal_check(struct seal *seal, const void *frame, size_t len, const uint8_t tag[SEAL_TAG_SIZE]);

/* Begins the authentication of bulk data in this direction, at most once for a connection: Poly1305 under
 *     HMAC-SHA-256(key of the direction, "data")
 * whose tag follows the data. For gigabytes of data, this is several times faster than SHA-256. */
void seal_data_begin(const struct seal *seal, struct poly1305 *ret_sum);
/* Returns true if this is the tag of the added data, and ends the sum. Takes the same time for every wrong
 * tag. */
bool seal_data_check(struct poly1305 *sum, const uint8_t tag[SEAL_TAG_SIZE]);

/* Draws a nonce from the kernel. Returns false if the kernel has none. */
bool seal_nonce(uint8_t ret_nonce[SEAL_NONCE_SIZE]);

#endif
