/* hash.h - hashes with fixed definitions: the same bytes give the same value everywhere and in every version.
 *
 * hash64: 64-bit FNV-1a finished with the splitmix64 mixer; for short texts whose hash is shown or stored.
 *
 * hash_words: eight bytes at a time, several times as fast; for indexes and digests. Neither withstands
 * adversaries.
 *
 * crc32c: Castagnoli polynomial (RFC 3720), for frames and files.
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
uint32_t crc32c(uint32_t crc, const void *data, size_t len);          /* start with 0; chains */
/* Returns the CRC of the concatenation of two parts: `first` is the CRC of the first, `second` that of the
 * `len` bytes behind it. Both were summed from 0. */
uint32_t crc32c_join(uint32_t first, uint32_t second, size_t len);
uint32_t crc32c_by_table(uint32_t crc, const void *data, size_t len); /* the portable path, for tests */
void sha1(const void *data, size_t len, uint8_t ret_digest[20]);
void sha256(const void *data, size_t len, uint8_t ret_digest[32]);
void hex_encode(const uint8_t *data, size_t len, char *ret_text); /* 2*len chars and a NUL */

#endif
