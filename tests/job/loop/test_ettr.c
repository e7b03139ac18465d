#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "job/loop/ettr.h"
#include "base/rng.h"

#define MINUTE 60.0

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

/* The published figures, their draws and inverses are in tests/sim/model. */
static void a_job_of_2000_machines(void **state)
{
    struct ettr_terms terms = {
        .failures_per_s = 13.0 / 86400, .interval_s = 60 * MINUTE, .restart_s = 5 * MINUTE};
    near(ettr_exact(&terms), 0.7202, 1e-4);
    terms.interval_s = 5 * MINUTE;
    near(ettr_exact(&terms), 0.9345, 1e-4);
}

static void the_best_interval_is_the_published_one(void **state)
{
    struct ettr_terms terms = {.failures_per_s = 1 / (110.8 * MINUTE), .write_s = 10};
    near(ettr_best_interval(&terms) / MINUTE, 5.95, 0.0595);
    terms.write_s = 5 * MINUTE;
    near(ettr_best_interval(&terms) / MINUTE, 30.05, 0.3005);
}

static void no_other_interval_is_better(void **state)
{
    struct rng rng;
    rng_seed(&rng, 13);
    for (int i = 0; i < 2000; i++) {
        struct ettr_terms terms = {
            .failures_per_s = exp(-4 - 14 * rng_unit(&rng)),
            .write_s = 0.001 + (rng_below(&rng, 3) ? exp(6 * rng_unit(&rng)) : 0),
            .restart_s = 2000 * rng_unit(&rng),
            .queue_s = 1000 * rng_unit(&rng),
        };
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_of_2000_machines),
        cmocka_unit_test(the_best_interval_is_the_published_one),
        cmocka_unit_test(no_other_interval_is_better),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
