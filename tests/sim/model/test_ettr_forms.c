/* ETTR: published figures, properties over random jobs, inverses, and lives of jobs beside the formulas. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdbool.h>

#include "sim/model/ettr_forms.h"
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

/* Acceptance target 1. */
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

static void the_formulas_give_the_published_figures(void **state)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ettr_terms terms = terms_of(&table[i]);
        near(ettr_exact(&terms), table[i].exact, 1e-4);
        near(ettr_linear(&terms), table[i].linear, 1e-4);
        if (table[i].write == 0)
            near(ettr_version_1(&terms, INFINITY), table[i].linear, 1e-4);
        if (table[i].queue == 0)
            near(ettr_version_2(&terms), table[i].linear, 1e-4);
    }
}

/* Acceptance target 4: 0.002, and three standard errors. */
static void lives_agree_with_the_exact_formula(void **state)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ettr_terms terms = terms_of(&table[i]);
        struct ettr_drawn drawn = ettr_draw(&terms, 400000, 7 + i);
        near(drawn.ettr, ettr_exact(&terms), 3 * drawn.deviation);
        near(drawn.ettr, ettr_exact(&terms), 0.002);
        assert_true(drawn.deviation > 0 && drawn.deviation < 0.002);
    }
}

/* The standard error that a draw states is the deviation of draws with other seeds. */
static void the_deviation_of_a_draw_is_what_it_says(void **state)
{
    struct ettr_terms terms = terms_of(&table[0]);
    double square = 0, stated = 0;
    for (uint64_t seed = 0; seed < 400; seed++) {
        struct ettr_drawn drawn = ettr_draw(&terms, 1000, seed);
        square += (drawn.ettr - ettr_exact(&terms)) * (drawn.ettr - ettr_exact(&terms)) / 400;
        stated += drawn.deviation / 400;
    }
    near(sqrt(square), stated, 0.12 * stated);
}

static void short_runs_agree_with_their_formula(void **state)
{
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        struct ettr_terms terms = terms_of(&table[i]);
        double productive_s = 20 * terms.interval_s;
        struct ettr_drawn drawn = ettr_draw_runs(&terms, productive_s, 40000, 3 + i);
        near(drawn.ettr, ettr_exact_run(&terms, productive_s), 3.5 * drawn.deviation);
        assert_true(ettr_exact_run(&terms, productive_s) < ettr_exact(&terms));
        near(ettr_exact_run(&terms, 1e15), ettr_exact(&terms), 1e-9);
        assert_true(ettr_version_1(&terms, productive_s) < ettr_version_1(&terms, INFINITY));
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
static void the_linear_forms_are_bounds_and_the_exact_one_falls(void **state)
{
    struct rng rng;
    rng_seed(&rng, 11);
    for (int i = 0; i < 20000; i++) {
        struct ettr_terms terms = random_terms(&rng), bare = terms;
        bare.write_s = bare.queue_s = 0;
        if (bare.failures_per_s * (bare.restart_s + bare.interval_s / 2) < 1)
            assert_true(ettr_linear(&bare) <= ettr_exact(&bare) + 1e-12);
        if (bare.failures_per_s * (bare.restart_s + bare.interval_s / 2) < 1)
            assert_true(ettr_version_1(&bare, INFINITY) <= ettr_exact(&bare) + 1e-12);
        assert_true(ettr_at_best(&terms) >= ettr_exact(&terms) - 1e-12);
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
static void estimates_of_the_best_interval(void **state)
{
    struct ettr_terms terms = {.failures_per_s = 1 / (110.8 * MINUTE), .write_s = 10};
    near(ettr_daly_interval(&terms) / MINUTE, 5.97, 0.0597);
    near(ettr_young_interval(&terms) / MINUTE, 6.08, 0.0608);
    near(ettr_best_interval(&terms), ettr_daly_interval(&terms), 0.01 * ettr_daly_interval(&terms));
    terms.write_s = 5 * MINUTE;
    near(ettr_daly_interval(&terms) / MINUTE, 30.04, 0.3004);
    near(ettr_young_interval(&terms) / MINUTE, 33.3, 0.333);
    near(ettr_best_interval(&terms), ettr_daly_interval(&terms), 0.01 * ettr_daly_interval(&terms));
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

static double *term_of(struct ettr_terms *terms, enum ettr_unknown unknown)
{
    double *const all[ETTR_UNKNOWNS] = {&terms->failures_per_s, &terms->write_s, &terms->restart_s,
                                        &terms->queue_s};
    return all[unknown];
}

/* Each answer reaches the target exactly, or the question has none. */
static void inverses_undo_the_formula(void **state)
{
    struct rng rng;
    int answers = 0;
    rng_seed(&rng, 29);
    for (int i = 0; i < 400; i++) {
        struct ettr_terms terms = random_terms(&rng);
        double target = 0.05 + 0.9 * rng_unit(&rng);
        for (int unknown = 0; unknown < ETTR_UNKNOWNS; unknown++) {
            bool best = rng_below(&rng, 2);
            double largest = ettr_largest(&terms, (enum ettr_unknown)unknown, target, best);
            struct ettr_terms answered = terms;
            *term_of(&answered, (enum ettr_unknown)unknown) = fmax(largest, 0);
            if (largest > 0)
                near(best ? ettr_at_best(&answered) : ettr_exact(&answered), target, 1e-9);
            else if (unknown != ETTR_OF_RATE)
                assert_true((best ? ettr_at_best(&answered) : ettr_exact(&answered)) <= target + 1e-9);
            answers += largest > 0;
        }
        double longest = ettr_interval_for(&terms, target, false);
        if (longest > 0 && terms.write_s > 0) {
            terms.interval_s = ettr_least_interval_for(&terms, target);
            assert_true(terms.interval_s <= longest);
            near(ettr_exact(&terms), target, 1e-6);
        }
    }
    assert_true(answers > 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(mttf_of_clusters),
        cmocka_unit_test(the_formulas_give_the_published_figures),
        cmocka_unit_test(lives_agree_with_the_exact_formula),
        cmocka_unit_test(the_deviation_of_a_draw_is_what_it_says),
        cmocka_unit_test(short_runs_agree_with_their_formula),
        cmocka_unit_test(the_linear_forms_are_bounds_and_the_exact_one_falls),
        cmocka_unit_test(estimates_of_the_best_interval),
        cmocka_unit_test(intervals_for_an_ettr),
        cmocka_unit_test(inverses_undo_the_formula),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
