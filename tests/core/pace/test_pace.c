/* Slow ranks are found after exactly three windows, by their peers or their own past; noise is no reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/rng.h"
#include "core/pace/pace.h"

enum { RANKS_MAX = 256, STEP_US = 100000 };

struct world {
    struct pace pace;
    struct rng rng;
    uint32_t ranks;
    uint32_t noise_permille;      /* one sigma */
    uint32_t permille[RANKS_MAX]; /* of each rank's work to that of a well one */
    uint32_t ends[2];
    size_t groups;
    struct arena arena;
    struct pace_finding *findings;
};

static struct world world_of(uint32_t ranks, uint32_t noise_permille, uint64_t seed)
{
    struct world world = {.ranks = ranks, .noise_permille = noise_permille, .ends = {ranks}, .groups = 1};
    rng_seed(&world.rng, seed);
    for (uint32_t i = 0; i < ranks; i++)
        world.permille[i] = 1000;
    return world;
}

static void world_done(struct world *world)
{
    arena_done(&world->arena);
    pace_done(&world->pace);
}

/* Twelve uniform numbers: mean 0, sigma 1000. */
static int64_t gauss(struct world *world)
{
    int64_t sum = -6000;
    for (int i = 0; i < 12; i++)
        sum += (int64_t)rng_below(&world->rng, 1001);
    return sum;
}

static size_t window(struct world *world)
{
    uint32_t own_us[RANKS_MAX];
    for (uint32_t i = 0; i < world->ranks; i++) {
        int64_t own = (int64_t)STEP_US * world->permille[i] / 1000;
        own_us[i] = (uint32_t)(own + own * gauss(world) / 1000 * world->noise_permille / 1000);
    }
    arena_done(&world->arena);
    return pace_window(&world->pace, 0, own_us, world->ranks, world->ends, world->groups, &world->arena,
                       &world->findings);
}

static size_t slow_of(const struct world *world, size_t count)
{
    size_t slow = 0;
    for (size_t i = 0; i < count; i++)
        slow += world->findings[i].slow;
    return slow;
}

static void settle(struct world *world, int windows)
{
    for (int i = 0; i < windows; i++)
        assert_int_equal(slow_of(world, window(world)), 0);
}

/* Every degree from 1.35 to 2, every place, right from the beginning and later. */
static void test_slow_rank_is_found_in_three_windows(void **state)
{
    (void)state;
    for (uint32_t permille = 1350; permille <= 2000; permille += 50)
        for (int before = 0; before <= 30; before += 10) {
            struct world world = world_of(8, 10, permille + (uint64_t)before);
            uint32_t slot = (permille / 50) % 8;
            settle(&world, before);
            world.permille[slot] = permille;
            settle(&world, 2);
            size_t count = window(&world);
            assert_int_equal(slow_of(&world, count), 1);
            for (size_t i = 0; i < count; i++)
                assert_true(!world.findings[i].slow ||
                            (world.findings[i].slot == slot &&
                             world.findings[i].own_us > world.findings[i].usual_us));
            settle(&world, 10); /* said once */
            world.permille[slot] = 1000;
            assert_int_equal(window(&world) + window(&world), 0);
            assert_int_equal(window(&world), 1);
            assert_true(world.findings[0].slot == slot && !world.findings[0].slow);
            world_done(&world);
        }
}

/* Two degrees at once: the slower one does not hide the other. */
static void test_slow_ranks_of_different_degrees(void **state)
{
    (void)state;
    struct world world = world_of(16, 10, 7);
    world.permille[3] = 1500;
    world.permille[9] = 4000;
    settle(&world, 2);
    assert_int_equal(slow_of(&world, window(&world)), 2);
    world_done(&world);
}

static void test_noise_is_no_reason(void **state)
{
    (void)state;
    static const uint32_t noises[] = {10, 50, 100};
    for (size_t n = 0; n < 3; n++)
        for (uint32_t ranks = 2; ranks <= 32; ranks *= 4) {
            struct world world = world_of(ranks, noises[n], 42 + n);
            settle(&world, 10000);
            world_done(&world);
        }
}

/* Stages with work of their own kinds, and a job that becomes slower as a whole. */
static void test_everyone_slower_is_nobody_slow(void **state)
{
    (void)state;
    struct world world = world_of(8, 10, 3);
    settle(&world, 25);
    for (uint32_t i = 0; i < 8; i++)
        world.permille[i] = 1800;
    settle(&world, 25);
    world_done(&world);
    world = world_of(8, 10, 4);
    world.ends[0] = 4;
    world.ends[1] = 8;
    world.groups = 2;
    for (uint32_t i = 4; i < 8; i++)
        world.permille[i] = 3000;
    settle(&world, 25);
    world.permille[5] = 4500; /* among its own kind it is found */
    settle(&world, 2);
    assert_int_equal(slow_of(&world, window(&world)), 1);
    world_done(&world);
}

/* With two ranks, or an even half, only a rank's own past can tell; with one rank nothing can. */
static void test_own_past(void **state)
{
    (void)state;
    struct world world = world_of(1, 20, 5);
    settle(&world, PACE_BASELINE);
    world.permille[0] = 1600;
    settle(&world, 20);
    world_done(&world);
    world = world_of(2, 20, 8);
    settle(&world, 25);
    world.permille[0] = world.permille[1] = 2000; /* another phase of the program */
    settle(&world, 10);
    world.permille[0] = 3600;
    settle(&world, 2);
    assert_int_equal(slow_of(&world, window(&world)), 1);
    assert_true(world.findings[0].by_past && world.findings[0].slot == 0);
    world_done(&world);
    world = world_of(8, 10, 6); /* half are slower by nature: the clusters say nothing ... */
    for (uint32_t i = 4; i < 8; i++)
        world.permille[i] = 2000;
    settle(&world, 25);
    world.permille[1] = 1500; /* ... and this one is no outlier, but slower than it was */
    settle(&world, 2);
    assert_int_equal(slow_of(&world, window(&world)), 1);
    assert_true(world.findings[0].slot == 1 && world.findings[0].by_past);
    world_done(&world);
}

/* Windows without steps say nothing; a new attempt begins anew. */
static void test_gaps_and_attempts(void **state)
{
    (void)state;
    struct pace pace = {0};
    struct arena arena = {0};
    struct pace_finding *findings;
    uint32_t own_us[4] = {100, 100, 100, 200}, none[4] = {0}, few[4] = {0, 0, 0, 200}, end = 4;
    assert_int_equal(pace_window(&pace, 0, own_us, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 0, none, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 0, few, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 0, own_us, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 1, own_us, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 1, own_us, 4, &end, 1, &arena, &findings), 0);
    assert_int_equal(pace_window(&pace, 1, own_us, 4, &end, 1, &arena, &findings), 4); /* three are well */
    assert_true(findings[3].slow && findings[3].slot == 3 && findings[3].usual_us == 100);
    for (size_t i = 0; i < pace.count; i++)
        assert_true(pace_rank_is_valid(&pace.ranks[i]));
    uint32_t huge[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, 1};
    for (int i = 0; i < 100; i++)
        pace_window(&pace, 1, huge, 4, &end, 1, &arena, &findings);
    for (size_t i = 0; i < pace.count; i++)
        assert_true(pace_rank_is_valid(&pace.ranks[i]));
    assert_int_equal(pace_window(&pace, 1, NULL, 0, NULL, 0, &arena, &findings), 0);
    pace_done(&pace);
    arena_done(&arena);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_slow_rank_is_found_in_three_windows),
        cmocka_unit_test(test_slow_ranks_of_different_degrees),
        cmocka_unit_test(test_noise_is_no_reason),
        cmocka_unit_test(test_everyone_slower_is_nobody_slow),
        cmocka_unit_test(test_own_past),
        cmocka_unit_test(test_gaps_and_attempts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
