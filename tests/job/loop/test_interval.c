/* The interval between checkpoints that is chosen: what was measured, and what base/ettr says of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "job/loop/interval.h"

/* 1,500 machines at the published rate, restarts of 5 minutes: docs/ettr.md's third row. */
static struct interval_measured published(double step_s, double hold_s, double save_s)
{
    struct interval_measured measured = {.mttf_s = INTERVAL_MACHINE_MTTF_S / 1500, .restart_s = 300};
    interval_add(&measured.step, step_s);
    if (hold_s > 0)
        interval_add(&measured.hold.still, hold_s);
    if (save_s > 0)
        interval_add(&measured.save.still, save_s);
    return measured;
}

static void the_median_is_of_the_last_ones(void **unused)
{
    struct interval_window window = {0};
    assert_true(interval_median(&window) == 0);
    interval_add(&window, 60); /* something compiled */
    assert_true(interval_median(&window) == 60);
    interval_add(&window, 1);
    interval_add(&window, 3);
    assert_true(interval_median(&window) == 3);
    interval_add(&window, 2);
    assert_true(interval_median(&window) == 2.5);
    for (int i = 0; i < INTERVAL_SAMPLES; i++)
        interval_add(&window, 4);
    assert_true(interval_median(&window) == 4);
    for (int i = 0; i < INTERVAL_SAMPLES / 2 - 1; i++)
        interval_add(&window, 100);
    assert_true(interval_median(&window) == 4);
}

static void the_best_interval_is_that_of_ettr(void **unused)
{
    struct interval_measured measured = published(1, 0, 0);
    uint64_t steps = interval_steps(&measured, 10); /* 7 min */
    assert_in_range(steps, 410, 425);
    double best = interval_ettr(&measured, 10, steps);
    assert_true(best > 0.92145 && best < 0.92155); /* "0.9215" */
    assert_true(interval_ettr(&measured, 10, steps / 2) < best &&
                interval_ettr(&measured, 10, steps * 2) < best);
    measured.step.values[0] = 7;
    assert_in_range(interval_steps(&measured, 10), 410 / 7, 425 / 7 + 1);
}

static void it_has_bounds(void **unused)
{
    struct interval_measured measured = published(1, 0, 0);
    assert_int_equal(interval_steps(&measured, 0), 1);
    assert_int_equal(interval_steps(&measured, 1e-9), 1);
    assert_int_equal(interval_steps(&measured, 1e6), 3600);
    measured.step.values[0] = 7200; /* a step is longer than an hour */
    assert_int_equal(interval_steps(&measured, 1e6), 1);
    measured.step.values[0] = 0; /* the clock stood still */
    assert_true(interval_steps(&measured, 1e6) == UINT64_C(3600000000));
}

static void both_costs_are_measured_first(void **unused)
{
    struct interval_measured measured = {.mttf_s = 1000};
    struct interval_plan plan = interval_decide(&measured, 7, true, true);
    assert_true(plan.hold_every == 0 && plan.save_every == 0 && plan.next == 8);
    interval_add(&measured.step, 0.1);
    plan = interval_decide(&measured, 8, true, true);
    assert_true(plan.hold_every == 20 && plan.save_every == 40 && plan.next == 68);
    measured.step.values[0] = 2;
    plan = interval_decide(&measured, 8, true, true);
    assert_true(plan.hold_every == 5 && plan.save_every == 10 && plan.next == 23);
    plan = interval_decide(&measured, 8, false, true);
    assert_true(plan.hold_every == 0 && plan.save_every == 5 && plan.next == 18);
    plan = interval_decide(&measured, 8, true, false);
    assert_true(plan.hold_every == 5 && plan.save_every == 0 && plan.next == 18);
    measured.step.values[0] = 1000;
    plan = interval_decide(&measured, 8, true, true);
    assert_true(plan.hold_every == 1 && plan.save_every == 2 && plan.next == 11);
}

/* A copy at a peer stops nobody; every fourth hold has one. Steps that happen to be shorter are no gain. */
static void what_is_behind_counts(void **unused)
{
    struct interval_measured measured = published(1, 0.1, 10);
    uint64_t before = interval_decide(&measured, 100, true, true).hold_every;
    for (int i = 0; i < 4; i++)
        interval_add(&measured.hold.behind, i == 2 ? 4 : -0.01);
    double cost = interval_cost(&measured.hold);
    assert_true(cost > 1.09 && cost < 1.1);
    struct interval_plan plan = interval_decide(&measured, 100, true, true);
    assert_in_range(plan.hold_every, before * 3, before * 4); /* the root of eleven */
    interval_add(&measured.save.behind, -5);
    assert_true(interval_cost(&measured.save) == 10);
}

/* The first hold took longer than the first save: the computer stood still in it. */
static void no_hold_is_rarer_than_a_save(void **unused)
{
    struct interval_measured measured = published(0.015, 0.013, 0.0001);
    struct interval_plan plan = interval_decide(&measured, 100, true, true);
    assert_true(plan.hold_every == plan.save_every && plan.save_every > 1);
    assert_true(interval_decide(&measured, 100, true, false).hold_every > plan.hold_every);
}

static void each_tier_has_its_own(void **unused)
{
    struct interval_measured measured = published(1, 0.1, 10);
    struct interval_plan plan = interval_decide(&measured, 100, true, true);
    assert_in_range(plan.hold_every, 41, 43);
    assert_in_range(plan.save_every, 410, 425);
    assert_true(plan.next == 120);
    for (int i = 1; i < INTERVAL_SAMPLES; i++) {
        interval_add(&measured.hold.still, 0.1);
        interval_add(&measured.save.still, 10);
    }
    assert_true(interval_decide(&measured, 100, true, true).next == 160);
    plan = interval_decide(&measured, 100, false, true);
    assert_true(plan.hold_every == 0 && plan.save_every > 400);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_median_is_of_the_last_ones),
        cmocka_unit_test(the_best_interval_is_that_of_ettr),
        cmocka_unit_test(it_has_bounds),
        cmocka_unit_test(both_costs_are_measured_first),
        cmocka_unit_test(no_hold_is_rarer_than_a_save),
        cmocka_unit_test(each_tier_has_its_own),
        cmocka_unit_test(what_is_behind_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
