/* ettr_draw.c - simulates jobs failure by failure, to check the formulas of ettr_forms.c. */
#include <math.h>

#include "base/check.h"
#include "base/rng.h"
#include "sim/model/ettr_forms.h"

/* Sums for a ratio of two means, sum(kept) / sum(all), and its standard error by the delta method. */
struct ratio {
    double kept, all;
    double kept_kept, kept_all, all_all; /* sums of products */
    uint32_t count;
};

static void ratio_add(struct ratio *ratio, double kept, double all)
{
    ratio->kept += kept;
    ratio->all += all;
    ratio->kept_kept += kept * kept;
    ratio->kept_all += kept * all;
    ratio->all_all += all * all;
    ratio->count++;
}

static struct ettr_drawn ratio_of(const struct ratio *ratio)
{
    double mean = ratio->kept / ratio->all;
    double square = ratio->kept_kept - 2 * mean * ratio->kept_all + mean * mean * ratio->all_all;
    return (struct ettr_drawn){.ettr = mean, .deviation = sqrt(fmax(square, 0)) / ratio->all};
}

static double draw_failure(const struct ettr_terms *terms, struct rng *rng)
{
    return -log1p(-rng_unit(rng)) / terms->failures_per_s;
}

/* Each draw is the time from one failure to the next: queue, restart, whole segments, and the time that the
 * next failure loses. */
struct ettr_drawn ettr_draw(const struct ettr_terms *terms, uint32_t failures, uint64_t seed)
{
    CHECK(failures > 1);
    struct ratio ratio = {0};
    struct rng rng;
    rng_seed(&rng, seed);
    for (uint32_t i = 0; i < failures; i++) {
        double exposed_s = draw_failure(terms, &rng);
        double segments = floor((exposed_s - terms->restart_s) / (terms->interval_s + terms->write_s));
        ratio_add(&ratio, fmax(segments, 0) * terms->interval_s, exposed_s + terms->queue_s);
    }
    return ratio_of(&ratio);
}

static double draw_run(const struct ettr_terms *terms, double segments, struct rng *rng)
{
    double all_s = 0, segment_s = terms->interval_s + terms->write_s;
    for (;;) {
        double exposed_s = draw_failure(terms, rng);
        double wanted_s = terms->restart_s + segments * segment_s;
        if (exposed_s >= wanted_s)
            return all_s + terms->queue_s + wanted_s;
        all_s += terms->queue_s + exposed_s;
        segments -= fmax(floor((exposed_s - terms->restart_s) / segment_s), 0);
    }
}

struct ettr_drawn ettr_draw_runs(const struct ettr_terms *terms, double productive_s, uint32_t runs,
                                 uint64_t seed)
{
    CHECK(runs > 1 && productive_s > 0);
    double segments = ceil(productive_s / terms->interval_s - 1e-9);
    struct ratio ratio = {0};
    struct rng rng;
    rng_seed(&rng, seed);
    for (uint32_t i = 0; i < runs; i++)
        ratio_add(&ratio, segments * terms->interval_s, draw_run(terms, segments, &rng));
    return ratio_of(&ratio);
}
