/* poly1305.c - the message, taken as digits of 2^128 with a bit above each, is evaluated as a polynomial at
 * r, modulo the prime 2^130 - 5 (p). Limbs have 44, 44 and 42 bits, so products of two fit into 128 bits with
 * space for sums. The part above 2^130 is added again times 5; for limbs at 2^132 that is times 20.
 */
#include "base/poly1305.h"

#include <string.h>

__extension__ typedef unsigned __int128 uint128;

#define MASK_44 UINT64_C(0xfffffffffff)
#define MASK_42 UINT64_C(0x3ffffffffff)
#define ABOVE   (UINT64_C(1) << 40) /* 2^128 in the third limb, at 2^88 */

static uint64_t little_endian(const uint8_t *bytes)
{
    uint64_t value = 0;
    for (int i = 7; i >= 0; i--)
        value = value << 8 | bytes[i];
    return value;
}

void poly1305_begin(struct poly1305 *sum, const uint8_t key[POLY1305_KEY_SIZE])
{
    uint64_t low = little_endian(key) & UINT64_C(0x0ffffffc0fffffff);
    uint64_t high = little_endian(key + 8) & UINT64_C(0x0ffffffc0ffffffc);
    *sum = (struct poly1305){.r = {low & MASK_44, (low >> 44 | high << 20) & MASK_44, high >> 24},
                             .pad = {little_endian(key + 16), little_endian(key + 24)}};
}

static void blocks(struct poly1305 *sum, const uint8_t *data, size_t count, uint64_t above)
{
    const uint64_t r0 = sum->r[0], r1 = sum->r[1], r2 = sum->r[2], s1 = r1 * 20, s2 = r2 * 20;
    uint64_t h0 = sum->h[0], h1 = sum->h[1], h2 = sum->h[2];
    for (; count > 0; count--, data += POLY1305_BLOCK) {
        uint64_t low = little_endian(data), high = little_endian(data + 8);
        h0 += low & MASK_44;
        h1 += (low >> 44 | high << 20) & MASK_44;
        h2 += high >> 24 | above;
        uint128 d0 = (uint128)h0 * r0 + (uint128)h1 * s2 + (uint128)h2 * s1;
        uint128 d1 = (uint128)h0 * r1 + (uint128)h1 * r0 + (uint128)h2 * s2;
        uint128 d2 = (uint128)h0 * r2 + (uint128)h1 * r1 + (uint128)h2 * r0;
        d1 += (uint64_t)(d0 >> 44);
        d2 += (uint64_t)(d1 >> 44);
        h0 = ((uint64_t)d0 & MASK_44) + (uint64_t)(d2 >> 42) * 5;
        h1 = ((uint64_t)d1 & MASK_44) + (h0 >> 44);
        h0 &= MASK_44;
        h2 = (uint64_t)d2 & MASK_42;
    }
    sum->h[0] = h0;
    sum->h[1] = h1;
    sum->h[2] = h2;
}

void poly1305_add(struct poly1305 *sum, const void *data, size_t len)
{
    const uint8_t *bytes = data;
    if (sum->part_len > 0) {
        size_t room = POLY1305_BLOCK - sum->part_len, part = len < room ? len : room;
        memcpy(sum->part + sum->part_len, bytes, part);
        sum->part_len += part;
        bytes += part;
        len -= part;
        if (sum->part_len < POLY1305_BLOCK)
            return;
        blocks(sum, sum->part, 1, ABOVE);
        sum->part_len = 0;
    }
    blocks(sum, bytes, len / POLY1305_BLOCK, ABOVE);
    sum->part_len = len % POLY1305_BLOCK;
    if (sum->part_len > 0)
        memcpy(sum->part, bytes + len - sum->part_len, sum->part_len);
}

/* Reduces the number below p. */
static void reduce(uint64_t h[3])
{
    for (int i = 0; i < 2; i++) {
        h[1] += h[0] >> 44;
        h[0] &= MASK_44;
        h[2] += h[1] >> 44;
        h[1] &= MASK_44;
        h[0] += (h[2] >> 42) * 5;
        h[2] &= MASK_42;
    }
    h[1] += h[0] >> 44;
    h[0] &= MASK_44;
    uint64_t g0 = h[0] + 5, g1 = h[1] + (g0 >> 44), g2 = h[2] + (g1 >> 44); /* h - p, and 2^130 */
    uint64_t take = 0 - (g2 >> 42 & 1);                                     /* all bits if h was p or more */
    h[0] = (h[0] & ~take) | (g0 & MASK_44 & take);
    h[1] = (h[1] & ~take) | (g1 & MASK_44 & take);
    h[2] = (h[2] & ~take) | (g2 & MASK_42 & take);
}

void poly1305_end(struct poly1305 *sum, uint8_t ret_tag[POLY1305_TAG_SIZE])
{
    if (sum->part_len > 0) {
        sum->part[sum->part_len] = 1;
        memset(sum->part + sum->part_len + 1, 0, POLY1305_BLOCK - sum->part_len - 1);
        blocks(sum, sum->part, 1, 0);
        sum->part_len = 0;
    }
    reduce(sum->h);
    uint64_t low = sum->h[0] | sum->h[1] << 44, high = sum->h[1] >> 20 | sum->h[2] << 24;
    uint128 tag = ((uint128)high << 64 | low) + ((uint128)sum->pad[1] << 64 | sum->pad[0]);
    for (int i = 0; i < POLY1305_TAG_SIZE; i++)
        ret_tag[i] = (uint8_t)(tag >> (8 * i));
}
