/* hash.h - hashes with fixed definitions: the same bytes give the same value everywhere and in every version.
 *
 * hash64: 64-bit FNV-1a finished with the splitmix64 mixer; for short texts whose hash is shown or stored.
 *
 * hash_words: eight bytes at a time, several times as fast; for indexes and digests. Neither withstands
 * adversaries.
 *
 * sha1: FIPS 180-4, only where a format requires it (the job-key label, the WebSocket handshake).
 *
 * sha256: FIPS 180-4, for content that must not be forged; at once, or piece by piece:
 *
 *     sha256_begin(&sum);
 *     sha256_add(&sum, data, len);        // any number of times
 *     sha256_end(&sum, digest);           // `sum` is used up
 *
 * hmac_sum: HMAC-SHA-256 (RFC 2104) under the key of hmac_begin, which is hashed only once and may be used
 * any number of times, by any thread.
 */
#ifndef PHX_BASE_HASH_H
#define PHX_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash64(uint64_t seed, const void *data, size_t len);
uint64_t hash_words(uint64_t seed, const void *data, size_t len);
uint64_t hash_mix(uint64_t value);                                    /* splitmix64 finaliser: a bijection */
void sha1(const void *data, size_t len, uint8_t ret_digest[20]);

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t len; /* bytes so far */
    uint8_t block[SHA256_BLOCK];
};
void sha256(const void *data, size_t len, uint8_t ret_digest[SHA256_SIZE]);
void sha256_begin(struct sha256 *sum);
void sha256_add(struct sha256 *sum, const void *data, size_t len);
void sha256_end(struct sha256 *sum, uint8_t ret_digest[SHA256_SIZE]);

struct hmac {
    struct sha256 inner, outer; /* each has hashed the key's block */
};
void hmac_begin(struct hmac *hmac, const void *key, size_t len);
void hmac_sum(const struct hmac *hmac, const void *data, size_t len, uint8_t ret_sum[SHA256_SIZE]);

void hex_encode(const uint8_t *data, size_t len, char *ret_text); /* 2*len chars and a NUL */

#endif
