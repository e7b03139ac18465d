#include "base/rng.h"

#include "base/check.h"
#include "base/hash.h"

static uint64_t rotate_left(uint64_t value, int bits)
{
    return value << bits | value >> (64 - bits);
}

void rng_seed(struct rng *rng, uint64_t seed)
{
    for (int i = 0; i < 4; i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        rng->state[i] = hash_mix(seed);
    }
}

uint64_t rng_next(struct rng *rng)
{
    uint64_t *s = rng->state;
    uint64_t result = rotate_left(s[1] * 5, 7) * 9, shifted = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= shifted;
    s[3] = rotate_left(s[3], 45);
    return result;
}

/* Multiplies, and rejects the short first interval (Lemire, "Fast random integer generation in an interval",
 * 2019). */
uint64_t rng_below(struct rng *rng, uint64_t bound)
{
    CHECK(bound > 0);
    unsigned __int128 product = (unsigned __int128)rng_next(rng) * bound;
    if ((uint64_t)product < bound) {
        uint64_t threshold = -bound % bound;
        while ((uint64_t)product < threshold)
            product = (unsigned __int128)rng_next(rng) * bound;
    }
    return (uint64_t)(product >> 64);
}

int64_t rng_range(struct rng *rng, int64_t low, int64_t high)
{
    CHECK(low <= high);
    uint64_t span = (uint64_t)high - (uint64_t)low;
    uint64_t offset = span == UINT64_MAX ? rng_next(rng) : rng_below(rng, span + 1);
    return (int64_t)((uint64_t)low + offset);
}

bool rng_chance(struct rng *rng, uint32_t ppm)
{
    return rng_below(rng, 1000000) < ppm;
}

double rng_unit(struct rng *rng)
{
    return (double)(rng_next(rng) >> 11) * 0x1.0p-53;
}
