/* rng.h - xoshiro256** (Blackman, Vigna 2018), seeded through splitmix64: one seed, one sequence. */
#ifndef PHX_BASE_RNG_H
#define PHX_BASE_RNG_H

#include <stdbool.h>
#include <stdint.h>

struct rng {
    uint64_t state[4];
};
void rng_seed(struct rng *rng, uint64_t seed);
uint64_t rng_next(struct rng *rng);
/* Returns a number that is uniform in [0, bound), bound > 0, without modulo bias. */
uint64_t rng_below(struct rng *rng, uint64_t bound);
int64_t rng_range(struct rng *rng, int64_t low, int64_t high); /* uniform in [low, high] */
bool rng_chance(struct rng *rng, uint32_t ppm);                /* true with probability ppm / 1,000,000 */
double rng_unit(struct rng *rng);                              /* uniform in [0, 1); never in the core */

#endif
