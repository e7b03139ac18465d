/* Spares: closed forms beside a simulation of every machine, and what they answer. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#include "sim/model/spares.h"
#include "base/rng.h"

#define DAY 86400.0

static void near(double found, double expected, double tolerance)
{
    if (!(fabs(found - expected) <= tolerance))
        fail_msg("found %.6f, expected %.6f +- %g", found, expected, tolerance);
}

static struct spares_terms cluster(uint32_t machines, double rate, double repair_days, bool cold)
{
    return (struct spares_terms){.machines = machines,
                                 .failures_per_s = rate / 1000 / DAY,
                                 .repair_s = repair_days * DAY,
                                 .cold = cold};
}

/* Repairs of the draw are spread, those of the formulas are not asked how. */
static void machines_agree_with_the_closed_forms(void **state)
{
    static const struct {
        uint32_t machines, spares;
        double rate, repair_days;
    } cases[] = {{64, 0, 6.5, 1}, {64, 2, 6.5, 2}, {100, 1, 20, 1}, {32, 3, 50, 1.5}, {8, 2, 200, 2}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (int cold = 0; cold < 2; cold++) {
            struct spares_terms terms = cluster(cases[i].machines, cases[i].rate, cases[i].repair_days, cold);
            double exact = spares_waiting(&terms, cases[i].spares);
            double drawn = spares_draw(&terms, cases[i].spares, 300000, 17 + i);
            near(drawn, exact, 0.03 * exact + 2e-4);
        }
}

static void known_values(void **state)
{
    /* Binomial by hand: 3 machines, each down with 1/4; more than one down: 3 (1/4)^2 (3/4) + (1/4)^3. */
    struct spares_terms hot = {.machines = 2, .failures_per_s = 1, .repair_s = 1.0 / 3};
    near(spares_waiting(&hot, 1), 10.0 / 64, 1e-12);
    /* Erlang's table: B(10, 4.4612) is 1 %. */
    struct spares_terms cold = {.machines = 4, .failures_per_s = 4.4612 / 4, .repair_s = 1, .cold = true};
    near(spares_waiting(&cold, 9), 0.01, 1e-5);
    /* No spare of a cold job: up 1/(n r), down T. */
    near(spares_waiting(&cold, 0), 4.4612 / 5.4612, 1e-12);
    /* Both sums, from below and from above the mean, are of one distribution. */
    struct spares_terms large = cluster(100000, 6.5, 2, false);
    double before = 1;
    for (uint32_t spares = 1000; spares < 1600; spares += 7) {
        double waiting = spares_waiting(&large, spares);
        assert_true(waiting >= 0 && waiting <= before);
        before = waiting;
    }
    assert_true(before < 1e-6);
}

static void answers_are_least_and_longest(void **state)
{
    struct rng rng;
    rng_seed(&rng, 31);
    for (int i = 0; i < 500; i++) {
        struct spares_terms terms = cluster(1 + (uint32_t)rng_below(&rng, 4000), exp(4 * rng_unit(&rng)),
                                            exp(3 * rng_unit(&rng) - 2), rng_below(&rng, 2));
        double target = 1 - exp(-8 * rng_unit(&rng)) / 2;
        uint32_t spares = spares_for(&terms, target);
        assert_true(spares <= SPARES_MAX);
        assert_true(1 - spares_waiting(&terms, spares) >= target);
        assert_true(spares == 0 || 1 - spares_waiting(&terms, spares - 1) < target);
        double longest = spares_repair_for(&terms, spares, target);
        assert_true(longest >= terms.repair_s * (1 - 1e-9));
        terms.repair_s = longest * 1.001;
        assert_true(1 - spares_waiting(&terms, spares) < target);
    }
    struct spares_terms hopeless = cluster(1000000, 1e6, 1e3, false);
    assert_int_equal(spares_for(&hopeless, 0.9), SPARES_MAX + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(machines_agree_with_the_closed_forms),
        cmocka_unit_test(known_values),
        cmocka_unit_test(answers_are_least_and_longest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
