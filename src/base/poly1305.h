/* poly1305.h - Poly1305, a one-time authenticator (RFC 8439, section 2.5). Pure.
 *
 *     struct poly1305 sum;
 *     poly1305_begin(&sum, key);              a key of POLY1305_KEY_SIZE bytes, for one message alone
 *     poly1305_add(&sum, data, len);          as often as there are pieces; their lengths do not matter
 *     poly1305_end(&sum, tag);
 *
 * Sums some bytes per cycle of a 64-bit processor, without special instructions. Two messages under one key
 * reveal the key: derive each key from a secret and a nonce.
 */
#ifndef PHX_BASE_POLY1305_H
#define PHX_BASE_POLY1305_H

#include <stddef.h>
#include <stdint.h>

enum { POLY1305_KEY_SIZE = 32, POLY1305_TAG_SIZE = 16, POLY1305_BLOCK = 16 };

struct poly1305 {
    uint64_t r[3], h[3]; /* limbs of 44, 44 and 42 bits */
    uint64_t pad[2];
    uint8_t part[POLY1305_BLOCK]; /* the beginning of a block */
    size_t part_len;
};

void poly1305_begin(struct poly1305 *sum, const uint8_t key[POLY1305_KEY_SIZE]);
void poly1305_add(struct poly1305 *sum, const void *data, size_t len);
/* Stores the tag and ends the sum, to which nothing may be added afterwards. */
void poly1305_end(struct poly1305 *sum, uint8_t ret_tag[POLY1305_TAG_SIZE]);

#endif
