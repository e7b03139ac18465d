/* Torture bites: each known bug that is planted in the hosts is caught within so many seeds, in the way
 * that it must be, and the same seeds hold without it. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>
#include <string.h>

#include "sim/campaign.h"

enum { SEEDS_MAX = 400, FIRST_SEED = 1, FAILURES_MAX = 6 };

/* Returns the first seed that catches the plant in this way. Some bugs show themselves in a second way,
 * too: up to FAILURES_MAX seeds are looked at. */
static uint64_t expect_caught_in(enum torture_plant plant, enum torture_result result, uint64_t steps,
                                 uint64_t first_seed)
{
    struct campaign_options options = {.jobs = 1, .steps = steps, .failures_max = 1, .plant = plant};
    struct campaign_outcome outcome = {.result = TORTURE_OK};
    uint64_t seed = first_seed, end = first_seed + SEEDS_MAX;
    for (int found = 0; found < FAILURES_MAX && outcome.result != result; found++) {
        options.first_seed = seed;
        options.count = end - seed;
        assert_int_equal(campaign_run(&options, &outcome), 0);
        if (outcome.failure_count == 0)
            fail_msg("%s was not caught by %d seeds", torture_plant_name(plant), SEEDS_MAX);
        outcome.result = outcome.failures[0].result;
        seed = outcome.failures[0].seed + 1;
    }
    seed--;
    print_message("%s: caught by seed %llu: %s\n", torture_plant_name(plant), (unsigned long long)seed,
                  outcome.failures[0].why);
    assert_int_equal(outcome.result, result);
    options.plant = PLANT_NONE;
    options.first_seed = seed;
    options.count = 1;
    assert_int_equal(campaign_run(&options, &outcome), 0);
    assert_int_equal(outcome.result, TORTURE_OK);
    return seed;
}

static uint64_t expect_caught(enum torture_plant plant, enum torture_result result)
{
    return expect_caught_in(plant, result, 3000, FIRST_SEED);
}

static void test_skip_fence(void **state)
{
    expect_caught(PLANT_SKIP_FENCE, TORTURE_SAFETY);
}

static void test_apply_before_log(void **state)
{
    expect_caught(PLANT_APPLY_BEFORE_LOG, TORTURE_SAFETY);
}

static void test_forget_release(void **state)
{
    expect_caught(PLANT_FORGET_RELEASE, TORTURE_SAFETY);
}

static void test_start_before_dead(void **state)
{
    expect_caught(PLANT_START_BEFORE_DEAD, TORTURE_SAFETY);
}

static void test_lose_report(void **state)
{
    expect_caught(PLANT_LOSE_REPORT, TORTURE_LIVENESS);
}

static void test_quota_twice(void **state)
{
    expect_caught(PLANT_QUOTA_TWICE, TORTURE_SAFETY);
}

static void test_skip_finalizer(void **state)
{
    expect_caught(PLANT_SKIP_FINALIZER, TORTURE_SAFETY);
}

static void test_ignore_reservation(void **state)
{
    /* Preemption needs some time: of 30 seeds one has a preemptor that waits while others come. */
    expect_caught_in(PLANT_IGNORE_RESERVATION, TORTURE_SAFETY, 10000, FIRST_SEED);
}

static void test_lose_readiness(void **state)
{
    expect_caught(PLANT_LOSE_READINESS, TORTURE_SAFETY);
}

static void test_old_shard(void **state)
{
    /* Ranks that rejoin and save shards both, in time: of the first 120 seeds one has it. */
    expect_caught_in(PLANT_OLD_SHARD, TORTURE_SAFETY, 10000, 88);
}

static void test_forget_hold(void **state)
{
    expect_caught_in(PLANT_FORGET_HOLD, TORTURE_SAFETY, 10000, FIRST_SEED);
}

static void test_hide_restore(void **state)
{
    /* A lost task has to live on a machine that comes late: of the first 1,500 seeds one has it. */
    expect_caught_in(PLANT_HIDE_RESTORE, TORTURE_SAFETY, 3000, 210);
}

static void test_names(void **state)
{
    for (int plant = PLANT_NONE; plant < PLANTS; plant++) {
        enum torture_plant found = PLANTS;
        assert_true(torture_plant_find(torture_plant_name(plant), &found));
        assert_int_equal(found, plant);
    }
    enum torture_plant found = PLANTS;
    assert_false(torture_plant_find("no-such-bug", &found));
    assert_int_equal(found, PLANTS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_skip_fence),     cmocka_unit_test(test_apply_before_log),
        cmocka_unit_test(test_forget_release), cmocka_unit_test(test_start_before_dead),
        cmocka_unit_test(test_lose_report),    cmocka_unit_test(test_quota_twice),
        cmocka_unit_test(test_skip_finalizer), cmocka_unit_test(test_ignore_reservation),
        cmocka_unit_test(test_lose_readiness), cmocka_unit_test(test_old_shard),
        cmocka_unit_test(test_forget_hold),    cmocka_unit_test(test_hide_restore),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
