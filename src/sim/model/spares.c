/* spares.c - see spares.h. */
#include "sim/model/spares.h"

#include <math.h>

#include "base/check.h"
#include "base/rng.h"

static double log_factorial(double count)
{
    int sign;
    return lgamma_r(count + 1, &sign);
}

/* Returns P[B(count, probability) > bound]. Terms on either side of the mean fall from the bound outwards, so
 * the sum starts there and ends when terms no longer count. */
static double binomial_above(uint32_t count, double probability, uint32_t bound)
{
    if (bound >= count)
        return 0;
    bool tail_is_upper = bound + 1 > count * probability;
    double at = tail_is_upper ? bound + 1.0 : bound, odds = probability / (1 - probability);
    double term = exp(log_factorial(count) - log_factorial(at) - log_factorial(count - at) +
                      at * log(probability) + (count - at) * log1p(-probability));
    double sum = 0;
    while (term > sum * 1e-17) {
        sum += term;
        if (tail_is_upper ? at >= count : at <= 0)
            break;
        term *= tail_is_upper ? (count - at) / (at + 1) * odds : at / (count - at + 1) / odds;
        at += tail_is_upper ? 1 : -1;
    }
    return fmin(fmax(tail_is_upper ? sum : 1 - sum, 0), 1);
}

static double erlang_b(uint32_t servers, double load)
{
    double blocked = 1;
    for (uint32_t k = 1; k <= servers; k++)
        blocked = load * blocked / (k + load * blocked);
    return blocked;
}

double spares_waiting(const struct spares_terms *terms, uint32_t spares)
{
    CHECK(terms->machines > 0 && terms->failures_per_s > 0 && terms->repair_s > 0);
    double away = terms->failures_per_s * terms->repair_s;
    if (terms->cold)
        return erlang_b(spares + 1, terms->machines * away);
    return binomial_above(terms->machines + spares, away / (1 + away), spares);
}

uint32_t spares_for(const struct spares_terms *terms, double target)
{
    CHECK(target >= 0 && target < 1);
    uint32_t low = 0, high = 1; /* more spares never wait longer */
    while (high <= SPARES_MAX && 1 - spares_waiting(terms, high) < target)
        high *= 2;
    high = high < SPARES_MAX + 1 ? high : SPARES_MAX + 1;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (middle <= SPARES_MAX && 1 - spares_waiting(terms, middle) < target)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

double spares_repair_for(const struct spares_terms *terms, uint32_t spares, double target)
{
    struct spares_terms tried = *terms;
    double low = 0, high = 1 / terms->failures_per_s;
    for (tried.repair_s = high; 1 - spares_waiting(&tried, spares) >= target; tried.repair_s = high)
        high *= 2;
    for (int i = 0; i < 200; i++) {
        tried.repair_s = (low + high) / 2;
        if (tried.repair_s <= low || tried.repair_s >= high)
            break;
        if (1 - spares_waiting(&tried, spares) >= target)
            low = tried.repair_s;
        else
            high = tried.repair_s;
    }
    return low;
}

/* --- Monte-Carlo ---------------------------------------------------------------------------------------- */

struct park {
    const struct spares_terms *terms;
    uint32_t all, down;
    double back_s[SPARES_DRAWN_MAX]; /* [down] when each machine in repair returns */
    struct rng rng;
};

/* Returns the index of the machine that returns first. */
static uint32_t first_back(const struct park *park)
{
    uint32_t first = 0;
    for (uint32_t i = 1; i < park->down; i++)
        if (park->back_s[i] < park->back_s[first])
            first = i;
    return first;
}

double spares_draw(const struct spares_terms *terms, uint32_t spares, uint32_t failures, uint64_t seed)
{
    struct park park = {.terms = terms, .all = terms->machines + spares};
    double now_s = 0, waited_s = 0;
    CHECK(park.all <= SPARES_DRAWN_MAX && failures > 0);
    rng_seed(&park.rng, seed);
    while (failures > 0) {
        bool waits = park.down > spares;
        /* Lives are exponential, so the next failure may be drawn again after each change. */
        double exposed = terms->cold ? waits ? 0 : terms->machines : park.all - park.down;
        double failure_s =
            exposed > 0 ? now_s - log1p(-rng_unit(&park.rng)) / (exposed * terms->failures_per_s) : INFINITY;
        uint32_t back = first_back(&park);
        double until_s = park.down && park.back_s[back] < failure_s ? park.back_s[back] : failure_s;
        waited_s += waits ? until_s - now_s : 0;
        now_s = until_s;
        if (until_s < failure_s) {
            park.back_s[back] = park.back_s[--park.down];
        } else {
            park.back_s[park.down++] = now_s + terms->repair_s * (0.2 + 1.6 * rng_unit(&park.rng));
            failures--;
        }
    }
    return waited_s / now_s;
}
