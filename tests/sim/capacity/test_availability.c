/* Availability and goodput of pods: published figures, and closed forms beside a simulation of every host. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <math.h>

#include "sim/capacity/availability.h"

static void assert_near(double value, double expected, double tolerance)
{
    if (fabs(value - expected) > tolerance)
        fail_msg("%.6f is not %.6f +- %.6f", value, expected, tolerance);
}

/* The chance that a slice finds its cubes in a pod of 64. */
static void test_slices_of_a_pod_of_64(void **state)
{
    static const struct {
        uint32_t slice;
        double host, switched, fixed;
    } cases[] = {{8, .99, 1, .276},   {16, .99, 1, .076},     {32, .99, 1, .006},     {48, .99, .989, 0},
                 {50, .99, .954, 0},  {56, .99, .376, 0},     {60, .99, .030, 0},     {64, .99, 0, 0},
                 {8, .995, 1, .526},  {16, .995, 1, .277},    {32, .995, 1, .077},    {48, .995, 1, .021},
                 {50, .995, 1, .018}, {56, .995, .944, .011}, {60, .995, .446, .008}, {64, .995, .006, .006},
                 {8, .999, 1, .880},  {16, .999, 1, .774},    {32, .999, 1, .599},    {48, .999, 1, .464},
                 {50, .999, 1, .449}, {56, .999, 1, .408},    {60, .999, .996, .383}, {64, .999, .359, .359}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct availability exact = availability_exact(64, cases[i].slice, cases[i].host);
        assert_near(exact.slice, cases[i].switched, .0006);
        assert_near(exact.slice_static, cases[i].fixed, .0006);
    }
}

/* ISCA 2023: half of the pod at 2,048 chips, three quarters at 3,072. */
static void test_goodput_of_a_pod_of_64(void **state)
{
    static const uint32_t slices[] = {1, 4, 8, 16, 32, 48};
    static const double low[] = {.851, .828, .796, .747, .500, .742},
                        high[] = {.984, .960, .920, .840, .679, .750};
    for (int i = 0; i < 6; i++) {
        assert_near(availability_exact(64, slices[i], .99).goodput, low[i], .0006);
        assert_near(availability_exact(64, slices[i], .999).goodput, high[i], .0006);
    }
    assert_near(availability_exact(64, 24, 1).goodput, .75, 1e-9);
    assert_near(availability_exact(64, 24, 1).goodput_static, .75, 1e-9);
}

static void test_130_of_144_cubes(void **state)
{
    double host = availability_host_for(144, 130, .95);
    assert_near(host, .99579, .00001);
    assert_near(pow(host, 16), .9347, .0001);
    assert_int_equal(availability_whole_cubes(144, host, .95), 130);
    assert_int_equal(availability_whole_cubes(64, host, .95), 56);
    assert_int_equal(availability_whole_cubes(140, host, .95), 126);
    assert_int_equal(availability_whole_cubes(150, host, .95), 135);
    assert_int_equal(availability_whole_cubes(144, .99, .95), 115);
    assert_int_equal(availability_whole_cubes(144, .999, .95), 139);
    assert_int_equal(availability_whole_cubes(144, 0, .95), 0);
}

static void test_switches(void **state)
{
    assert_near(availability_switches(.9998, 0), .9904, .0001);
    assert_near(availability_switches(.9998, 1), .999955, .000001);
    assert_near(availability_switches(.9995, 1), .99972, .00001);
    assert_near(availability_switches(.5, 48), 1, 1e-12);
}

static void assert_within(double mean, double exact, double deviation, uint32_t trials)
{
    assert_near(mean, exact, 3 * deviation / sqrt(trials) + 1e-12);
}

static void test_drawn_pods_agree_with_the_closed_forms(void **state)
{
    enum { TRIALS = 20000 };
    static const uint32_t slices[] = {1, 4, 8, 16, 32, 48, 50, 56, 60, 64};
    static const double hosts[] = {.99, .995, .999};
    struct availability means[10];
    for (int h = 0; h < 3; h++) {
        availability_draw(64, slices, 10, hosts[h], TRIALS, 1, means);
        for (int i = 0; i < 10; i++) {
            struct availability exact = availability_exact(64, slices[i], hosts[h]);
            struct availability sigma = availability_deviation(64, slices[i], hosts[h]);
            assert_within(means[i].slice, exact.slice, sigma.slice, TRIALS);
            assert_within(means[i].slice_static, exact.slice_static, sigma.slice_static, TRIALS);
            assert_within(means[i].goodput, exact.goodput, sigma.goodput, TRIALS);
            assert_within(means[i].goodput_static, exact.goodput_static, sigma.goodput_static, TRIALS);
        }
    }
}

static void test_no_probability_exceeds_one(void **state)
{
    for (uint32_t cubes = 1; cubes <= POD_CUBES_MAX; cubes++)
        for (uint32_t slice = 1; slice <= cubes; slice += 7) {
            struct availability exact = availability_exact(cubes, slice, .99);
            assert_true(exact.slice <= 1 && exact.goodput <= 1);
        }
    for (uint32_t out = 0; out <= POD_SWITCHES; out++)
        assert_true(availability_switches(.9998, out) <= 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slices_of_a_pod_of_64),
        cmocka_unit_test(test_goodput_of_a_pod_of_64),
        cmocka_unit_test(test_130_of_144_cubes),
        cmocka_unit_test(test_switches),
        cmocka_unit_test(test_no_probability_exceeds_one),
        cmocka_unit_test(test_drawn_pods_agree_with_the_closed_forms),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
