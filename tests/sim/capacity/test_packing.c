/* Streams of slices: every slice is placed or never fits, equal orders give equal results, switches strand
 * fewer chips than boxes, and moves never harm. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "sim/capacity/packing.h"

static struct packing_result run_of(uint32_t slices, enum packing_way way, double host_up, uint64_t seed)
{
    struct packing_order order = {.slices = slices, .host_up = host_up, .seed = seed, .moves_max = 8};
    struct packing_result result;
    packing_run(&order, way, &result);
    assert_int_equal(result.placed + result.refused, order.slices);
    assert_true(result.busy >= 0 && result.stranded >= 0 && result.busy + result.stranded < 1.000001);
    assert_true(result.choices >= result.placed && result.choose_ns == 0);
    return result;
}

static struct packing_result run(enum packing_way way, double host_up, uint64_t seed)
{
    return run_of(200, way, host_up, seed);
}

static void test_switches_strand_fewer_chips(void **state)
{
    struct packing_result sums[PACKING_WAYS] = {0};
    for (uint64_t seed = 1; seed <= 3; seed++)
        for (int way = 0; way < PACKING_WAYS; way++) {
            struct packing_result one = run(way, .99, seed);
            sums[way].stranded += one.stranded;
            sums[way].busy += one.busy;
            sums[way].refused += one.refused;
        }
    assert_true(sums[PACKING_SWITCHED].stranded < .7 * sums[PACKING_BOXES].stranded);
    assert_true(sums[PACKING_SWITCHED].stranded < .7 * sums[PACKING_BOXES_FREE].stranded);
    assert_true(sums[PACKING_SWITCHED].busy > 1.2 * sums[PACKING_BOXES].busy);
    assert_true(sums[PACKING_BOXES_FREE].refused <= sums[PACKING_BOXES].refused);
    assert_int_equal(sums[PACKING_SWITCHED].refused, 0);
}

static void test_small_slices_move_for_others(void **state)
{
    uint32_t moves = 0, moved_for = 0;
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct packing_result still = run_of(1000, PACKING_SWITCHED, .999, seed),
                              moving = run_of(1000, PACKING_MOVING, .999, seed);
        assert_true(still.moves == 0 && still.moved_for == 0);
        assert_true(moving.stranded < .7 * still.stranded && moving.placed == still.placed);
        moves += moving.moves;
        moved_for += moving.moved_for;
    }
    assert_true(moved_for > 80 && moves >= moved_for);
}

static void test_a_pod_without_failures_takes_every_slice(void **state)
{
    for (int way = 0; way < PACKING_WAYS; way++)
        assert_int_equal(run(way, 1, 5).refused, 0);
}

static void test_a_pod_without_hosts_takes_none(void **state)
{
    for (int way = 0; way < PACKING_WAYS; way++)
        assert_int_equal(run(way, 0, 5).placed, 0);
}

static void test_equal_orders_give_equal_results(void **state)
{
    for (int way = 0; way < PACKING_WAYS; way++) {
        struct packing_result a = run(way, .98, 9), b = run(way, .98, 9);
        assert_true(a.placed == b.placed && a.moves == b.moves && a.choices == b.choices &&
                    a.time == b.time && a.stranded == b.stranded && a.busy == b.busy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_switches_strand_fewer_chips),
        cmocka_unit_test(test_small_slices_move_for_others),
        cmocka_unit_test(test_a_pod_without_failures_takes_every_slice),
        cmocka_unit_test(test_a_pod_without_hosts_takes_none),
        cmocka_unit_test(test_equal_orders_give_equal_results),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
