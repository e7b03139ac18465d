/* The sum of a block has four independent lanes of eight bytes each, which are multiplied and rotated, so a
 * processor computes four products in parallel. At the end the lanes are joined and mixed. Every step is a
 * bijection of its lane, so two blocks that differ in one word never have the same sum. */
#include "job/checkpoint/delta.h"

#include <stdlib.h>
#include <string.h>

#define ODD_A 0x9e3779b185ebca87u
#define ODD_B 0xc2b2ae3d27d4eb4fu

size_t delta_blocks(uint64_t len)
{
    return (size_t)(len / DELTA_BLOCK + (len % DELTA_BLOCK != 0));
}

size_t delta_map_size(uint64_t len)
{
    return (delta_blocks(len) + 7) / 8;
}

static bool map_has(const uint8_t *map, size_t block)
{
    return (map[block / 8] >> block % 8 & 1) != 0;
}

static size_t block_len(uint64_t len, size_t block)
{
    uint64_t left = len - (uint64_t)block * DELTA_BLOCK;
    return left < DELTA_BLOCK ? (size_t)left : DELTA_BLOCK;
}

uint64_t delta_map_run(const uint8_t *map, uint64_t len, uint64_t at, uint64_t most, bool *ret_sent)
{
    bool sent = map_has(map, (size_t)(at / DELTA_BLOCK));
    uint64_t end = at;
    while (end < len && end - at < most && map_has(map, (size_t)(end / DELTA_BLOCK)) == sent)
        end = (end / DELTA_BLOCK + 1) * DELTA_BLOCK;
    end = end < len ? end : len;
    *ret_sent = sent;
    return end - at < most ? end - at : most;
}

uint64_t delta_map_bytes(const uint8_t *map, uint64_t len)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < delta_blocks(len); i++)
        bytes += map_has(map, i) ? block_len(len, i) : 0;
    return bytes;
}

static uint64_t rotate(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

static uint64_t mix(uint64_t lane, uint64_t word)
{
    return rotate(lane + word * ODD_B, 31) * ODD_A;
}

static uint64_t finish(uint64_t sum)
{
    sum = (sum ^ sum >> 33) * ODD_B;
    sum = (sum ^ sum >> 29) * ODD_A;
    return sum ^ sum >> 32;
}

static uint64_t sum_block(const uint8_t *data, size_t len)
{
    uint64_t lanes[4] = {1, 2, 3, 4}, words[4], sum = len;
    size_t at = 0;
    for (; at + sizeof words <= len; at += sizeof words) {
        memcpy(words, data + at, sizeof words);
        for (int i = 0; i < 4; i++)
            lanes[i] = mix(lanes[i], words[i]);
    }
    for (; at < len; at++)
        sum = mix(sum, data[at]);
    for (int i = 0; i < 4; i++)
        sum = mix(sum, finish(lanes[i]));
    return finish(sum);
}

bool delta_sum(uint64_t step, uint32_t attempt, const uint8_t *data, uint64_t len, struct delta *ret_delta)
{
    size_t blocks = delta_blocks(len);
    struct delta delta = {.step = step, .attempt = attempt, .len = len};
    delta.sums = calloc(blocks > 0 ? blocks : 1, sizeof *delta.sums);
    if (delta.sums == NULL)
        return false;
    for (size_t i = 0; i < blocks; i++)
        delta.sums[i] = sum_block(data + i * DELTA_BLOCK, block_len(len, i));
    *ret_delta = delta;
    return true;
}

void delta_done(struct delta *delta)
{
    free(delta->sums);
    *delta = (struct delta){0};
}

void delta_map(const struct delta *delta, const struct delta *base, uint8_t *ret_map)
{
    size_t known = base != NULL ? delta_blocks(base->len) : 0;
    memset(ret_map, 0, delta_map_size(delta->len));
    for (size_t i = 0; i < delta_blocks(delta->len); i++)
        if (i >= known || delta->sums[i] != base->sums[i])
            ret_map[i / 8] |= (uint8_t)(1u << i % 8);
}

const struct delta *delta_find(const struct delta_history *history, uint64_t step, uint32_t attempt)
{
    for (size_t i = 0; i < DELTA_KEPT; i++) {
        const struct delta *sent = &history->sent[i];
        if (sent->sums != NULL && sent->step == step && sent->attempt == attempt)
            return sent;
    }
    return NULL;
}

void delta_remember(struct delta_history *history, struct delta *delta)
{
    delta_done(&history->sent[DELTA_KEPT - 1]);
    memmove(history->sent + 1, history->sent, (DELTA_KEPT - 1) * sizeof *history->sent);
    history->sent[0] = *delta;
    *delta = (struct delta){0};
}

void delta_forget(struct delta_history *history)
{
    for (size_t i = 0; i < DELTA_KEPT; i++)
        delta_done(&history->sent[i]);
}
