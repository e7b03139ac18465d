/* Torture: some seeds hold, a seed is a seed, and seeds that once found something still hold. The long run is
 * `phalanx torture --count 1000 --jobs 2`. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "sim/campaign.h"

static void expect_all_hold(const struct campaign_options *options)
{
    struct campaign_outcome outcome;
    assert_int_equal(campaign_run(options, &outcome), 0);
    for (size_t i = 0; i < outcome.failure_count; i++)
        print_error("seed %llu: %s\n", (unsigned long long)outcome.failures[i].seed, outcome.failures[i].why);
    assert_int_equal(outcome.failure_count, 0);
    assert_int_equal(outcome.seeds, options->count);
    /* The seeds were worth running: there were faults, restarts of the controller, and work that came to its
     * end. */
    assert_true(outcome.faults > options->count && outcome.boots > options->count);
    assert_true(outcome.jobsets > options->count && outcome.finished > 0 && outcome.restarts > 0);
    /* Ranks retry by themselves: that the core decides it takes a rare course. Restored logs, drains and
     * slices of whole cubes have tests of their own. */
    for (int reach = REACH_RESTART_PROCESS; reach < REACH_DRAINED; reach++) {
        if (reach >= REACH_RESTORED && reach <= REACH_CAUGHT_UP)
            continue;
        if (outcome.reached[reach] == 0)
            print_error("no seed reaches: %s\n", torture_reach_name(reach));
        assert_true(outcome.reached[reach] > 0);
    }
}

static void test_seeds_hold(void **state)
{
    expect_all_hold(&(struct campaign_options){.first_seed = 100000, .count = 150, .jobs = 2, .steps = 3000});
}

/* Runs the worlds of 500 seeds whose draw names `part`; each part of `from` ... `to` must be reached. */
static void expect_reached(uint64_t first, const char *part, enum torture_reach from, enum torture_reach to)
{
    uint64_t reached[REACHES] = {0};
    int worlds = 0;
    for (uint64_t seed = first; seed < first + 500; seed++) {
        char drawn[TORTURE_DRAW_MAX];
        struct campaign_outcome outcome;
        struct campaign_options options = {.first_seed = seed, .count = 1, .jobs = 1, .steps = 10000};
        torture_draw(seed, drawn, sizeof(drawn));
        if (!strstr(drawn, part))
            continue;
        worlds++;
        assert_int_equal(campaign_run(&options, &outcome), 0);
        if (outcome.failure_count)
            print_error("seed %llu: %s\n", (unsigned long long)seed, outcome.failures[0].why);
        assert_int_equal(outcome.result, TORTURE_OK);
        for (int reach = 0; reach < REACHES; reach++)
            reached[reach] += outcome.reached[reach];
    }
    assert_true(worlds > 20);
    for (int reach = (int)from; reach <= (int)to; reach++) {
        if (reached[reach] == 0)
            print_error("no world with \"%s\" reaches: %s\n", part, torture_reach_name(reach));
        assert_true(reached[reach] > 0);
    }
}

/* Worlds of whole cubes: switches and cubes are drained, wires are wrong, and running slices are routed
 * around switches and back, are lost, and leave drained cubes. Other worlds seldom have a whole cube at
 * work when a switch breaks. Drains of switches seldom last until ranks are overdue: core/slice/test_drain
 * has that. */
static void test_slices_of_whole_cubes(void **state)
{
    expect_reached(300000, " whole=", REACH_DRAINED, REACH_DRAIN_ANSWERED);
}

/* Backups are put back while tasks run that only the lost part of the log knows. */
static void test_restored_logs(void **state)
{
    expect_reached(350200000, " restore=", REACH_RESTORED, REACH_CAUGHT_UP);
}

/* One process, one sequence: the same options give the same world, event by event; another seed gives
 * another. */
static void test_a_seed_is_a_seed(void **state)
{
    struct torture_outcome first, again, other;
    torture_run(&(struct torture_options){.seed = 5, .steps = 2000}, &first);
    torture_run(&(struct torture_options){.seed = 5, .steps = 2000}, &again);
    torture_run(&(struct torture_options){.seed = 6, .steps = 2000}, &other);
    assert_int_equal(first.result, TORTURE_OK);
    assert_memory_equal(&first, &again, sizeof(first));
    assert_true(first.digest != 0 && first.digest != other.digest);
    assert_string_not_equal(first.drawn, other.drawn);
    char drawn[TORTURE_DRAW_MAX];
    torture_draw(5, drawn, sizeof(drawn));
    assert_string_equal(drawn, first.drawn);
}

/* The bug that each seed found is described in the commit that quotes it. Later changes give a seed another
 * course, but the seeds that were hard once tend to stay so. */
static void test_seeds_that_found_something(void **state)
{
    static const uint64_t seeds[] = {
        1,         9,         16,        23,        33,        82,        83,        110,       127,
        131,       174,       273,       285,       318,       675,       736,       904,       1201,
        1218,      1227,      1348,      1472,      1484,      1655,      2247,      2359,      4052,
        4317,      6617,      6939,      9685,      11887,     13159,     14705,     19387,     77,
        89,        175,       283,       482,       496,       3059,      5597,      7469,      7675,
        7711,      8262,      2310,      40000676,  47000121,  47004228,  5040,      53000251,  53000337,
        53000843,  60001848,  61002258,  20536,     20833,     32113,     20428,     110000095, 110000347,
        42093,     120004304, 121053948, 330,       800008885, 781,       800001130, 1374,      800014798,
        90000047,  840004152, 800019697, 90005009,  200000853, 200002014, 202002147, 202003286, 202008600,
        204008909, 220002258, 220007325, 220008211, 220011823, 221000117, 221013907, 230000893, 240000476,
        240004333, 240004789, 220007330, 260000520, 260000656, 260000818, 260001386, 260002667, 260004099,
        261000992, 262003397, 262003452, 290026476, 300003279, 300010534, 330001635, 350305377, 360001416,
        367002438, 375009449, 385043098, 385056177, 385059221, 385062197, 387001042, 389015751};
    for (size_t i = 0; i < sizeof(seeds) / sizeof(*seeds); i++) {
        struct campaign_outcome outcome;
        struct campaign_options options = {.first_seed = seeds[i], .count = 1, .jobs = 1, .steps = 10000};
        assert_int_equal(campaign_run(&options, &outcome), 0);
        if (outcome.failure_count)
            print_error("seed %llu: %s\n", (unsigned long long)seeds[i], outcome.failures[0].why);
        assert_int_equal(outcome.result, TORTURE_OK);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_seeds_hold),
        cmocka_unit_test(test_slices_of_whole_cubes),
        cmocka_unit_test(test_restored_logs),
        cmocka_unit_test(test_a_seed_is_a_seed),
        cmocka_unit_test(test_seeds_that_found_something),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
