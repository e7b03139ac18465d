#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "job/loop/ettr.h"
#include "base/rng.h"

#define MINUTE 60.0
#define HOUR   3600.0

/* The reference's figures are of servers with eight GPUs. */
static double rate_of(double gpus, double per_1000_machine_days)
{
    return ettr_failures_per_s(gpus / 8, per_1000_machine_days);
}

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

static void mttf_of_clusters(void **state)
{
    static const struct {
        double gpus, rate, hours;
    } rows[] = {
        {1024, 6.5, 28.846},   {4096, 6.5, 7.212},    {16000, 6.5, 1.846},  {16384, 6.5, 1.803},
        {100000, 6.5, 0.2954}, {131072, 6.5, 0.2254}, {16384, 2.34, 5.008}, {131072, 2.34, 0.626},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        near(1 / rate_of(rows[i].gpus, rows[i].rate) / HOUR, rows[i].hours, rows[i].hours * 1e-3);
}

/* Acceptance targets 2 and 3: times in minutes; interval 0: Young's. */
static const struct row {
    double gpus, rate, interval, write, restart, queue, linear, exact;
} table[] = {
    {16000, 6.5, 60, 0, 5, 0, 0.6840, 0.7202},
    {16000, 6.5, 5, 0, 5, 0, 0.9323, 0.9345},
    {8000, 6.5, 30, 0, 5, 1, 0.9056, 0.9089},
    {4096, 6.5, 60, 0, 5, 0, 0.9191, 0.9216},
    {100000, 6.5, 7, 0, 7, 1, 0.3858, 0.5201},
    {100000, 2.34, 21, 0, 21, 1, 0.3529, 0.5130},
    {100000, 2.34, 2, 0, 2, 1, 0.9204, 0.9221},
    {12000, 6.5, 0, 1.0 / 6, 5, 0, 0.9205, 0.9215},
    {12000, 1.0, 0, 5, 5, 0, 0.8979, 0.8966},
    {16000, 6.5, 0, 5, 5, 0, 0.6995, 0.6957},
    {16384, 3.79, 12.5, 1.0 / 6, 10, 0, 0.9004, 0.9035},
};

static struct ettr_terms terms_of(const struct row *row)
{
    struct ettr_terms terms = {
        .failures_per_s = rate_of(row->gpus, row->rate),
        .interval_s = row->interval * MINUTE,
        .write_s = row->write * MINUTE,
        .restart_s = row->restart * MINUTE,
        .queue_s = row->queue * MINUTE,
    };
    if (row->interval == 0)
        terms.interval_s = ettr_young_interval(&terms);
    return terms;
}

static void both_formulas_give_the_published_figures(void **state)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ettr_terms terms = terms_of(&table[i]);
        near(ettr_exact(&terms), table[i].exact, 1e-4);
        near(ettr_linear(&terms), table[i].linear, 1e-4);
    }
}

/* One life of a job, failure by failure, by the definition alone. */
static double lived(const struct ettr_terms *terms, struct rng *rng, int failures)
{
    double kept = 0, all = 0, left = 0;
    double until = -log(1 - rng_unit(rng)) / terms->failures_per_s;
    while (failures > 0) {
        double wanted = left > 0 ? left : terms->interval_s + terms->write_s;
        if (until >= wanted) {
            until -= wanted;
            all += wanted;
            if (left == 0)
                kept += terms->interval_s;
            left = 0;
            continue;
        }
        all += until + terms->queue_s;
        left = terms->restart_s;
        until = -log(1 - rng_unit(rng)) / terms->failures_per_s;
        failures--;
    }
    return kept / all;
}

/* Acceptance target 4. */
static void lives_agree_with_the_exact_formula(void **state)
{
    struct rng rng;
    rng_seed(&rng, 7);
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ettr_terms terms = terms_of(&table[i]);
        near(lived(&terms, &rng, 200000), ettr_exact(&terms), 0.002);
    }
}

static struct ettr_terms random_terms(struct rng *rng)
{
    return (struct ettr_terms){
        .failures_per_s = exp(-4 - 14 * rng_unit(rng)),
        .interval_s = exp(10 * rng_unit(rng)),
        .write_s = rng_below(rng, 3) ? exp(6 * rng_unit(rng)) : 0,
        .restart_s = 2000 * rng_unit(rng),
        .queue_s = 1000 * rng_unit(rng),
    };
}

/* Acceptance target 5. */
static void the_linear_one_is_a_bound_and_the_exact_one_falls(void **state)
{
    struct rng rng;
    rng_seed(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        struct ettr_terms terms = random_terms(&rng), bare = terms;
        bare.write_s = bare.queue_s = 0;
        if (bare.failures_per_s * (bare.restart_s + bare.interval_s / 2) < 1)
            assert_true(ettr_linear(&bare) <= ettr_exact(&bare) + 1e-12);
        double before = ettr_exact(&terms);
        assert_true(before >= 0 && before <= 1);
        double *const worse[] = {&terms.failures_per_s, &terms.write_s, &terms.restart_s, &terms.queue_s};
        for (size_t k = 0; k < sizeof worse / sizeof *worse; k++) {
            double kept = *worse[k];
            *worse[k] = kept * 1.1 + 1e-6;
            assert_true(ettr_exact(&terms) <= before);
            *worse[k] = kept;
        }
    }
}

/* Acceptance target 6. */
static void the_best_interval_is_the_published_one(void **state)
{
    struct ettr_terms terms = {.failures_per_s = 1 / (110.8 * MINUTE), .write_s = 10};
    near(ettr_best_interval(&terms) / MINUTE, 5.95, 0.0595);
    near(ettr_daly_interval(&terms) / MINUTE, 5.97, 0.0597);
    near(ettr_young_interval(&terms) / MINUTE, 6.08, 0.0608);
    terms.write_s = 5 * MINUTE;
    near(ettr_best_interval(&terms) / MINUTE, 30.05, 0.3005);
    near(ettr_daly_interval(&terms) / MINUTE, 30.04, 0.3004);
    near(ettr_young_interval(&terms) / MINUTE, 33.3, 0.333);
}

static void no_other_interval_is_better(void **state)
{
    struct rng rng;
    rng_seed(&rng, 13);
    for (int i = 0; i < 2000; i++) {
        struct ettr_terms terms = random_terms(&rng);
        terms.write_s += 0.001;
        terms.interval_s = ettr_best_interval(&terms);
        double best = ettr_exact(&terms), interval = terms.interval_s;
        for (double factor = 0.5; factor < 2; factor += 0.13) {
            terms.interval_s = interval * factor;
            assert_true(ettr_exact(&terms) <= best + 1e-12);
        }
    }
    struct ettr_terms freely = {.failures_per_s = 1e-4};
    assert_true(ettr_best_interval(&freely) < 1e-3);
}

/* Acceptance target 7. */
static void intervals_for_an_ettr(void **state)
{
    struct ettr_terms first = {.failures_per_s = rate_of(100000, 6.5), .queue_s = MINUTE};
    struct ettr_terms second = {.failures_per_s = rate_of(100000, 2.34), .queue_s = MINUTE};
    near(ettr_interval_for(&first, 0.5, true) / MINUTE, 7.45, 0.02);
    near(ettr_interval_for(&second, 0.5, true) / MINUTE, 21.82, 0.02);
    near(ettr_interval_for(&second, 0.9, true) / MINUTE, 2.79, 0.02);
    assert_true(ettr_interval_for(&first, 0.999, true) == 0);
    struct ettr_terms written = {.failures_per_s = 1e-4, .write_s = 100, .restart_s = 10};
    written.interval_s = ettr_interval_for(&written, 0.8, false);
    near(ettr_exact(&written), 0.8, 1e-9);
    written.interval_s = ettr_interval_for(&written, 0.5, true);
    written.restart_s = written.interval_s;
    near(ettr_exact(&written), 0.5, 1e-9);
}

/* Acceptance target 8. */
static void bounds_of_the_mean_time_to_failure(void **state)
{
    static const struct {
        uint64_t failures;
        double confidence, low, high;
    } rows[] = {
        {0, 0.9, 333.8, INFINITY}, {1, 0.9, 210.8, 19496},  {3, 0.9, 129.0, 1223},    {10, 0.9, 58.95, 184.3},
        {30, 0.9, 24.58, 46.31},   {100, 0.9, 8.47, 11.89}, {10, 0.95, 54.38, 208.5},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        double low, high;
        mttf_bounds(rows[i].failures, 1000, rows[i].confidence, &low, &high);
        near(low, rows[i].low, rows[i].low * 1e-3);
        if (isinf(rows[i].high))
            assert_true(isinf(high));
        else
            near(high, rows[i].high, rows[i].high * 1e-3);
    }
    double low, high; /* the series of a large count stays whole */
    mttf_bounds(1000000, 1e6, 0.9, &low, &high);
    near(low, 1 - 1.645e-3, 1e-5);
    near(high, 1 + 1.645e-3, 1e-5);
}

/* Acceptance target 9, its first half: how often the bounds hold the truth. */
static void bounds_cover_the_truth(void **state)
{
    struct rng rng;
    rng_seed(&rng, 23);
    int covered = 0;
    for (int run = 0; run < 1000; run++) {
        uint64_t failures = 0;
        for (double at = 0; (at -= log(1 - rng_unit(&rng))) < 12;)
            failures++;
        double low, high;
        mttf_bounds(failures, 12, 0.9, &low, &high);
        covered += low <= 1 && 1 <= high;
    }
    /* Counts are whole numbers, so that the bounds are a little wider than they say. */
    assert_in_range(covered, 880, 950);
}

/* Acceptance target 10. */
static void goodput_that_a_failure_costs(void **state)
{
    near(goodput_loss_chip_hours(600, 512), 85.33, 0.01);
    near(goodput_loss_chip_hours(3 * HOUR, 512), 256, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mttf_of_clusters),
        cmocka_unit_test(both_formulas_give_the_published_figures),
        cmocka_unit_test(lives_agree_with_the_exact_formula),
        cmocka_unit_test(the_linear_one_is_a_bound_and_the_exact_one_falls),
        cmocka_unit_test(the_best_interval_is_the_published_one),
        cmocka_unit_test(no_other_interval_is_better),
        cmocka_unit_test(intervals_for_an_ettr),
        cmocka_unit_test(bounds_of_the_mean_time_to_failure),
        cmocka_unit_test(bounds_cover_the_truth),
        cmocka_unit_test(goodput_that_a_failure_costs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
