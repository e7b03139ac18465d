/* lemon_study.c - see lemon_study.h. */
#include "sim/model/lemon_study.h"

#include <math.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/rng.h"
#include "sim/model/gamma.h"

/* Returns the probability that a job fails if a share `lemons` of all machines are lemons. */
static double failed_share(const struct lemon_terms *terms, double lemons)
{
    double worse = -expm1(-(terms->lemon_rate - terms->good_rate) * terms->job_days);
    return 1 - exp(-(double)terms->job_machines * terms->good_rate * terms->job_days) *
                   pow(1 - lemons * worse, terms->job_machines);
}

struct lemon_verdicts lemon_study_exact(const struct lemon_terms *terms, uint32_t threshold)
{
    CHECK(threshold > 0 && terms->lemons < terms->machines);
    double good = terms->machines - terms->lemons;
    /* A Poisson count reaches k if the k-th event, a gamma variable, occurs in time. */
    struct lemon_verdicts verdicts = {
        .recall = gamma_below(threshold, terms->lemon_rate * terms->days),
        .false_positives = good * gamma_below(threshold, terms->good_rate * terms->days),
        .failed_before = failed_share(terms, (double)terms->lemons / terms->machines),
    };
    double right = verdicts.recall * terms->lemons, called = right + verdicts.false_positives;
    verdicts.precision = called > 0 ? right / called : 1;
    verdicts.failed_after = failed_share(terms, (terms->lemons - right) / (terms->machines - called));
    return verdicts;
}

/* --- Monte-Carlo ---------------------------------------------------------------------------------------- */

static uint32_t draw_count(struct rng *rng, double mean)
{
    uint32_t count = 0;
    for (double at = 0; (at -= log1p(-rng_unit(rng))) < mean;)
        count++;
    return count;
}

/* Returns the share of `jobs`, on machines drawn from ids[count], that fail. Ids below terms->lemons are
 * lemons. */
static double failing_share(const struct lemon_terms *terms, uint32_t *ids, uint32_t count, uint32_t jobs,
                            struct rng *rng)
{
    uint32_t failed = 0;
    CHECK(count >= terms->job_machines);
    for (uint32_t job = 0; job < jobs; job++) {
        double rate = 0;
        for (uint32_t i = 0; i < terms->job_machines; i++) {
            uint32_t other = i + (uint32_t)rng_below(rng, count - i), id = ids[other];
            ids[other] = ids[i];
            ids[i] = id;
            rate += id < terms->lemons ? terms->lemon_rate : terms->good_rate;
        }
        failed += rng_unit(rng) < -expm1(-rate * terms->job_days);
    }
    return (double)failed / jobs;
}

struct lemon_verdicts lemon_study_draw(const struct lemon_terms *terms, uint32_t threshold, uint32_t trials,
                                       uint32_t jobs, uint64_t seed)
{
    struct lemon_verdicts sums = {0};
    struct rng rng;
    double right = 0;
    uint32_t *ids = mem_alloc(terms->machines * sizeof *ids);
    rng_seed(&rng, seed);
    for (uint32_t trial = 0; trial < trials; trial++) {
        for (uint32_t id = 0; id < terms->machines; id++)
            ids[id] = id;
        sums.failed_before += failing_share(terms, ids, terms->machines, jobs, &rng);
        uint32_t kept = 0;
        for (uint32_t id = 0; id < terms->machines; id++) {
            bool lemon = id < terms->lemons;
            uint32_t count = draw_count(&rng, (lemon ? terms->lemon_rate : terms->good_rate) * terms->days);
            if (count < threshold)
                ids[kept++] = id;
            right += lemon && count >= threshold;
            sums.false_positives += !lemon && count >= threshold;
        }
        sums.failed_after += failing_share(terms, ids, kept, jobs, &rng);
    }
    mem_free(ids);
    sums.recall = right / ((double)terms->lemons * trials);
    sums.precision = right > 0 ? right / (right + sums.false_positives) : 1;
    sums.false_positives /= trials;
    sums.failed_before /= trials;
    sums.failed_after /= trials;
    return sums;
}
