/* hash.h - hashes with fixed definitions: the same bytes give the same value everywhere and in every version.
 *
 * hash64: 64-bit FNV-1a finished with the splitmix64 mixer; for short texts whose hash is shown or stored.
 *
 * hash_words: eight bytes at a time, several times as fast; for indexes and digests. Neither withstands
 * adversaries.
 *
 * sha1: FIPS 180-4, only where a format asks for it (the job-key label).
 *
 * sha256: FIPS 180-4, for content that must not be forged.
 */
#ifndef PHX_BASE_HASH_H
#define PHX_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

uint64_t hash64(uint64_t seed, const void *data, size_t len);
uint64_t hash_words(uint64_t seed, const void *data, size_t len);
uint64_t hash_mix(uint64_t value);                                    /* splitmix64 finaliser: a bijection */
void sha1(const void *data, size_t len, uint8_t ret_digest[20]);
void sha256(const void *data, size_t len, uint8_t ret_digest[32]);
void hex_encode(const uint8_t *data, size_t len, char *ret_text); /* 2*len chars and a NUL */

#endif
