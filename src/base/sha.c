/* sha.c - SHA-1 and SHA-256 (FIPS 180-4), and HMAC (RFC 2104): both hashes split the message into 64-byte
 * blocks with the same padding. */
#include "base/hash.h"

#include <string.h>

enum { BLOCK = SHA256_BLOCK };

static uint32_t rotate_left(uint32_t value, int bits)
{
    return value << bits | value >> (32 - bits);
}

static uint32_t rotate_right(uint32_t value, int bits)
{
    return value >> bits | value << (32 - bits);
}

static uint32_t load_be32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

static void store_be32(uint8_t *p, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        p[i] = (uint8_t)(value >> (24 - 8 * i));
}

static void sha1_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[80];
    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 80; t++)
        w[t] = rotate_left(w[t - 3] ^ w[t - 8] ^ w[t - 14] ^ w[t - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int t = 0; t < 80; t++) {
        uint32_t f, k;
        if (t < 20) {
            f = (b & c) | (~b & d);
            k = 0x5a827999;
        } else if (t < 40) {
            f = b ^ c ^ d;
            k = 0x6ed9eba1;
        } else if (t < 60) {
            f = (b & c) | (b & d) | (c & d);
            k = 0x8f1bbcdc;
        } else {
            f = b ^ c ^ d;
            k = 0xca62c1d6;
        }
        uint32_t next = rotate_left(a, 5) + f + e + k + w[t];
        e = d;
        d = c;
        c = rotate_left(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* Fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static void sha256_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    for (int t = 0; t < 16; t++)
        w[t] = load_be32(block + 4 * t);
    for (int t = 16; t < 64; t++) {
        uint32_t s0 = rotate_right(w[t - 15], 7) ^ rotate_right(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate_right(w[t - 2], 17) ^ rotate_right(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = w[t - 16] + s0 + w[t - 7] + s1;
    }
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < 64; t++) {
        uint32_t s1 = rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25);
        uint32_t first = h + s1 + ((e & f) ^ (~e & g)) + round_constants[t] + w[t];
        uint32_t s0 = rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22);
        uint32_t second = s0 + ((a & b) ^ (a & c) ^ (b & c));
        h = g;
        g = f;
        f = e;
        e = d + first;
        d = c;
        c = b;
        b = a;
        a = first + second;
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += sum[i];
}

/* Returns how many bytes of padding end a message: a one bit, zeros, and the length in bits. */
static size_t pad(uint64_t len, uint8_t tail[2 * BLOCK])
{
    size_t rest = (size_t)(len % BLOCK), size = (rest + 9 <= BLOCK ? BLOCK : 2 * BLOCK) - rest;
    memset(tail, 0, 2 * BLOCK);
    tail[0] = 0x80;
    store_be32(tail + size - 8, (uint32_t)(len >> 29));
    store_be32(tail + size - 4, (uint32_t)(len << 3));
    return size;
}

void sha1(const void *data, size_t len, uint8_t ret_digest[20])
{
    uint32_t state[8] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};
    const uint8_t *bytes = data;
    size_t whole = len / BLOCK * BLOCK;
    for (size_t at = 0; at < whole; at += BLOCK)
        sha1_block(state, bytes + at);
    uint8_t last[3 * BLOCK];
    if (len > whole)
        memcpy(last, bytes + whole, len - whole);
    size_t last_len = len - whole + pad(len, last + (len - whole));
    for (size_t at = 0; at < last_len; at += BLOCK)
        sha1_block(state, last + at);
    for (int i = 0; i < 5; i++)
        store_be32(ret_digest + 4 * i, state[i]);
}

void sha256_begin(struct sha256 *sum)
{
    *sum = (struct sha256){.state = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c,
                                     0x1f83d9ab, 0x5be0cd19}};
}

void sha256_add(struct sha256 *sum, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    size_t held = (size_t)(sum->len % BLOCK);
    sum->len += len;
    if (held > 0) {
        size_t part = len < BLOCK - held ? len : BLOCK - held;
        if (part > 0)
            memcpy(sum->block + held, bytes, part);
        if (held + part < BLOCK)
            return;
        sha256_block(sum->state, sum->block);
        bytes += part;
        len -= part;
    }
    for (; len >= BLOCK; bytes += BLOCK, len -= BLOCK)
        sha256_block(sum->state, bytes);
    if (len > 0)
        memcpy(sum->block, bytes, len);
}

void sha256_end(struct sha256 *sum, uint8_t ret_digest[SHA256_SIZE])
{
    uint8_t tail[2 * BLOCK];
    size_t size = pad(sum->len, tail);
    sha256_add(sum, tail, size);
    for (int i = 0; i < 8; i++)
        store_be32(ret_digest + 4 * i, sum->state[i]);
}

void sha256(const void *data, size_t len, uint8_t ret_digest[SHA256_SIZE])
{
    struct sha256 sum;
    sha256_begin(&sum);
    sha256_add(&sum, data, len);
    sha256_end(&sum, ret_digest);
}

/* A key longer than a block is replaced by its digest (RFC 2104 section 2). */
void hmac_begin(struct hmac *hmac, const void *key, size_t len)
{
    uint8_t block[BLOCK] = {0};
    if (len > BLOCK)
        sha256(key, len, block);
    else if (len > 0)
        memcpy(block, key, len);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36;
    sha256_begin(&hmac->inner);
    sha256_add(&hmac->inner, block, BLOCK);
    for (int i = 0; i < BLOCK; i++)
        block[i] ^= 0x36 ^ 0x5c;
    sha256_begin(&hmac->outer);
    sha256_add(&hmac->outer, block, BLOCK);
}

void hmac_sum(const struct hmac *hmac, const void *data, size_t len, uint8_t ret_sum[SHA256_SIZE])
{
    struct sha256 inner = hmac->inner, outer = hmac->outer;
    uint8_t digest[SHA256_SIZE];
    sha256_add(&inner, data, len);
    sha256_end(&inner, digest);
    sha256_add(&outer, digest, sizeof digest);
    sha256_end(&outer, ret_sum);
}
