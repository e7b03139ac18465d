/* Bounds of rates, the gamma distribution behind them, and rates from logs of jobs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "sim/model/rate.h"
#include "sim/model/gamma.h"
#include "core/ledger/mttf_bounds.h"
#include "base/arena.h"
#include "base/rng.h"

#define MINUTE 60.0
#define DAY    86400.0

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

/* Shape 1 is the exponential distribution, whole shapes are counts of a Poisson process. */
static void gamma_of_known_shapes(void **state)
{
    for (double x = 1e-6; x < 700; x *= 1.7) {
        near(gamma_below(1, x), -expm1(-x), 1e-14);
        near(gamma_above(1, x) / exp(-x), 1, 1e-12);
        near(gamma_below(0.5, x), erf(sqrt(x)), 1e-13);
        double term = exp(-x), sum = 0;
        for (int k = 0; k < 7; k++, term *= x / k)
            sum += term;
        near(gamma_above(7, x), sum, 1e-13);
    }
    near(gamma_below(1e6, 1e6), 0.5001329808, 1e-9); /* 1/2 + 1/(3 sqrt(2 pi a)) + ... */
    assert_true(gamma_below(3, 0) == 0 && gamma_above(3, 0) == 1);
}

static void quantiles_undo_the_distribution(void **state)
{
    struct rng rng;
    rng_seed(&rng, 5);
    for (int i = 0; i < 4000; i++) {
        double shape = exp(14 * rng_unit(&rng) - 2), tail = exp(-25 * rng_unit(&rng)) / 2;
        near(gamma_below(shape, gamma_quantile_below(shape, tail)) / tail, 1, 1e-8);
        near(gamma_above(shape, gamma_quantile_above(shape, tail)) / tail, 1, 1e-8);
        near(gamma_quantile_below(shape, 0.5), gamma_quantile_above(shape, 0.5),
             1e-9 * gamma_quantile_above(shape, 0.5));
    }
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

/* The controller's report makes the same bounds of integers. */
static void bounds_of_the_report(void **state)
{
    const int64_t exposure_us = INT64_C(86400) * 1000000 * 100000;
    for (uint64_t failures = 0; failures < 100000000; failures += 1 + failures / 7) {
        double low, high;
        mttf_bounds(failures, (double)exposure_us, (double)LEDGER_CONFIDENCE_PPM / 1e6, &low, &high);
        struct ledger_bounds bounds = ledger_mttf_bounds(failures, exposure_us);
        near((double)bounds.low_us / low, 1, 1e-3);
        if (failures > 0)
            near((double)bounds.high_us / high, 1, 1e-3);
        else
            assert_true(isinf(high) && bounds.high_us == -1);
    }
}

/* Counts of a year of a large cluster, and more. */
static void bounds_of_large_counts_are_normal(void **state)
{
    for (double count = 1e5; count < 2e9; count *= 10) {
        double low, high;
        mttf_bounds((uint64_t)count, count, 0.9, &low, &high);
        near((1 / low - 1) * sqrt(count), 1.6449, 0.02);
        near((1 - 1 / high) * sqrt(count), 1.6449, 0.02);
    }
}

/* --- logs of jobs --------------------------------------------------------------------------------------- */

/* Acceptance target 9, its second half: the edges of the window. */
static void the_window_of_attribution(void **state)
{
    static const struct {
        double at_s;
        int attributed;
    } cases[] = {{-601, 0}, {-600, 1}, {-599, 1}, {0, 1}, {299, 1}, {300, 1}, {301, 0}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rate_job job = {.start_s = 0, .end_s = DAY, .machines = 64, .end = RATE_END_FAILED};
        struct rate_check check = {.job = 0, .at_s = DAY + cases[i].at_s};
        struct rate_log log = {&job, 1, &check, 1};
        struct rate_window window = RATE_WINDOW_DEFAULT;
        struct rate_counts counts;
        rate_count(&log, &window, &counts);
        assert_int_equal(counts.attributed, cases[i].attributed);
        assert_int_equal(counts.unexplained, !cases[i].attributed);
        job.end = RATE_END_OTHER; /* a job that ends well has no failure */
        rate_count(&log, &window, &counts);
        assert_int_equal(counts.attributed + counts.unexplained, 0);
        job.end = RATE_END_NODE_FAIL; /* counted once, whatever was found */
        rate_count(&log, &window, &counts);
        assert_int_equal(counts.node_fails, 1);
        assert_int_equal(counts.attributed, 0);
    }
}

static void small_jobs_are_left_out(void **state)
{
    struct rate_job jobs[] = {
        {.end_s = DAY, .machines = 16, .end = RATE_END_NODE_FAIL},
        {.end_s = DAY, .machines = 17, .end = RATE_END_NODE_FAIL},
        {.end_s = 2 * DAY, .machines = 32, .end = RATE_END_OTHER},
    };
    struct rate_log log = {jobs, 3, NULL, 0};
    struct rate_window window = RATE_WINDOW_DEFAULT;
    struct rate_counts counts, classes[RATE_CLASSES];
    rate_count(&log, &window, &counts);
    assert_int_equal(counts.jobs, 2);
    assert_int_equal(counts.node_fails, 1);
    near(counts.machine_s, (17 + 64) * DAY, 1e-6);
    near(counts.job_s, 3 * DAY, 1e-6);
    rate_count_classes(&log, &window, classes);
    assert_int_equal(classes[4].jobs, 2);
    assert_int_equal(classes[4].node_fails, 2);
    assert_int_equal(classes[5].jobs, 1);
    near(classes[5].machine_s, 64 * DAY, 1e-6);
}

enum { JOBS = 600 };

/* A log of jobs of 64 machines for up to two days, whose machines fail 6.5 times in 1,000 days. Half of the
 * failures are NODE_FAIL, half are seen by a check in the window; users fail jobs too, some with an old
 * finding. */
static double drawn_rate(struct rng *rng, double confidence, double *ret_low, double *ret_high)
{
    static struct rate_job jobs[JOBS];
    static struct rate_check checks[JOBS];
    struct rate_log log = {jobs, JOBS, checks, 0};
    struct rate_window window = RATE_WINDOW_DEFAULT;
    struct rate_counts counts;
    for (uint32_t i = 0; i < JOBS; i++) {
        double wanted = 2 * DAY * rng_unit(rng), failure = -log1p(-rng_unit(rng)) / (64 * 6.5e-3 / DAY);
        jobs[i] = (struct rate_job){.end_s = fmin(wanted, failure), .machines = 64};
        double seen_s = jobs[i].end_s - 600 + 900 * rng_unit(rng);
        if (failure < wanted && rng_below(rng, 2)) {
            jobs[i].end = RATE_END_NODE_FAIL;
        } else if (failure < wanted) {
            jobs[i].end = RATE_END_FAILED;
            checks[log.check_count++] = (struct rate_check){.job = i, .at_s = seen_s};
        } else if (rng_below(rng, 4) == 0) {
            jobs[i].end = RATE_END_FAILED;
            checks[log.check_count++] = (struct rate_check){.job = i, .at_s = jobs[i].end_s - 601};
        }
    }
    rate_count(&log, &window, &counts);
    uint64_t failures = counts.node_fails + counts.attributed;
    double low, high, machine_days = counts.machine_s / DAY;
    mttf_bounds(failures, machine_days, confidence, &low, &high);
    *ret_low = 1000 / high;
    *ret_high = 1000 / low;
    return failures / machine_days * 1000;
}

/* Acceptance target 9, its first half: how often the bounds hold the truth. */
static void bounds_cover_the_truth(void **state)
{
    struct rng rng;
    int covered = 0;
    double mean = 0;
    rng_seed(&rng, 23);
    for (int run = 0; run < 1000; run++) {
        double low, high;
        mean += drawn_rate(&rng, 0.9, &low, &high) / 1000;
        covered += low <= 6.5 && 6.5 <= high;
    }
    assert_in_range(covered, 875, 925);
    near(mean, 6.5, 0.1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gamma_of_known_shapes),
        cmocka_unit_test(quantiles_undo_the_distribution),
        cmocka_unit_test(bounds_of_the_mean_time_to_failure),
        cmocka_unit_test(bounds_of_the_report),
        cmocka_unit_test(bounds_of_large_counts_are_normal),
        cmocka_unit_test(the_window_of_attribution),
        cmocka_unit_test(small_jobs_are_left_out),
        cmocka_unit_test(bounds_cover_the_truth),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
