/* Collective plans: carried out on arrays in memory, they give what the operation promises on every kind of
 * shape, and cost what the links must carry. tests/sim/fabric/test_collective.c moves the bytes over emulated
 * links. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "core/fabric/collective.h"
#include "core/fabric/prove.h"

static struct torus torus_named(const char *text)
{
    struct slice_shape shape;
    struct torus torus;
    assert_int_equal(slice_shape_parse(str_from(text), &shape, NULL), 0);
    torus_init(&torus, &shape);
    return torus;
}

static uint64_t value_of(uint32_t chip, uint32_t element)
{
    return (uint64_t)chip * chip * 1000003 + element * 17 + 1;
}

/* All transfers of a step read before any of them writes. */
static void carry_out(const struct collective_plan *plan, uint64_t *arrays, uint32_t stride)
{
    struct collective_transfer *transfers = mem_alloc(collective_transfers_max(plan) * sizeof *transfers);
    uint64_t *before = mem_alloc((size_t)plan->torus->chips * stride * sizeof *before);
    for (uint32_t step = 0; step < plan->steps; step++) {
        uint32_t count = collective_transfers(plan, step, transfers);
        mem_copy(before, arrays, (size_t)plan->torus->chips * stride * sizeof *before);
        for (uint32_t i = 0; i < count; i++)
            for (uint32_t k = 0; k < transfers[i].count; k++) {
                uint64_t *to = &arrays[transfers[i].to * stride + transfers[i].to_first + k];
                uint64_t sent = before[transfers[i].from * stride + transfers[i].from_first + k];
                *to = transfers[i].add ? *to + sent : sent;
            }
    }
    mem_free(before);
    mem_free(transfers);
}

static uint64_t *fresh_arrays(uint32_t chips, uint32_t elements, uint32_t stride)
{
    uint64_t *arrays = mem_alloc((size_t)chips * stride * sizeof *arrays);
    for (uint32_t chip = 0; chip < chips; chip++)
        for (uint32_t i = 0; i < elements; i++)
            arrays[chip * stride + i] = value_of(chip, i);
    return arrays;
}

static uint64_t sum_at(uint32_t chips, uint32_t element)
{
    uint64_t sum = 0;
    for (uint32_t chip = 0; chip < chips; chip++)
        sum += value_of(chip, element);
    return sum;
}

/* Reduces, looks at the parts that chips own, gathers, and does both at once. */
static void check_reductions(const struct torus *torus, enum collective_algorithm algorithm,
                             uint32_t elements)
{
    struct collective_plan scatter = collective_plan(torus, COLLECTIVE_REDUCE_SCATTER, algorithm, elements);
    struct collective_plan gather = collective_plan(torus, COLLECTIVE_ALL_GATHER, algorithm, elements);
    struct collective_plan both = collective_plan(torus, COLLECTIVE_ALL_REDUCE, algorithm, elements);
    uint64_t *arrays = fresh_arrays(torus->chips, elements, elements);
    uint64_t *owned = mem_alloc((size_t)torus->chips * elements * sizeof *owned);
    uint32_t all_owned = 0;
    carry_out(&scatter, arrays, elements);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        for (uint32_t color = 0; color < scatter.colors; color++) {
            uint32_t first, count;
            collective_owned(&scatter, (uint16_t)chip, color, &first, &count);
            for (uint32_t i = first; i < first + count; i++, all_owned++) {
                assert_int_equal(arrays[chip * elements + i], sum_at(torus->chips, i));
                owned[chip * elements + i] = arrays[chip * elements + i];
            }
        }
    assert_int_equal(all_owned, elements);
    carry_out(&gather, owned, elements);
    mem_free(arrays);
    arrays = fresh_arrays(torus->chips, elements, elements);
    carry_out(&both, arrays, elements);
    for (uint32_t chip = 0; chip < torus->chips; chip++)
        for (uint32_t i = 0; i < elements; i++) {
            assert_int_equal(arrays[chip * elements + i], sum_at(torus->chips, i));
            assert_int_equal(owned[chip * elements + i], sum_at(torus->chips, i));
        }
    mem_free(owned);
    mem_free(arrays);
}

static void test_all_algorithms_reduce_and_gather(void **state)
{
    static const char *const shapes[] = {"2x2x1", "2x4x4", "4x4x4", "4x4x8", "4x4x8-twisted"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t algorithm = 0; algorithm < COLLECTIVE_ALGORITHMS; algorithm++) {
            struct torus torus = torus_named(shapes[i]);
            check_reductions(&torus, algorithm, 1);
            check_reductions(&torus, algorithm, 101);
            check_reductions(&torus, algorithm, 384);
            torus_done(&torus);
        }
}

static void test_all_to_all_transposes(void **state)
{
    static const char *const shapes[] = {"2x2x1", "4x4x4", "4x4x8-twisted"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct torus torus = torus_named(shapes[i]);
        uint32_t part = 3, elements = part * torus.chips;
        struct collective_plan plan = collective_plan(&torus, COLLECTIVE_ALL_TO_ALL, 0, elements);
        uint64_t *arrays = fresh_arrays(torus.chips, elements, 2 * elements);
        carry_out(&plan, arrays, 2 * elements);
        for (uint32_t to = 0; to < torus.chips; to++)
            for (uint32_t from = 0; from < torus.chips; from++)
                for (uint32_t k = 0; k < part; k++)
                    assert_int_equal(arrays[to * 2 * elements + elements + from * part + k],
                                     value_of(from, to * part + k));
        mem_free(arrays);
        torus_done(&torus);
    }
}

static struct collective_cost cost_of(const char *shape, const char *dead, enum collective_op op,
                                      enum collective_algorithm algorithm, uint32_t elements)
{
    struct collective_rates rates = {.element_bytes = 4, .bytes_per_us = 50000, .hop_ns = 250};
    struct torus torus = torus_named(shape);
    struct pod_switch out;
    struct route route;
    struct collective_cost cost;
    if (pod_switch_parse(str_from(dead), &out, NULL) == 0)
        torus_kill_switch(&torus, out);
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    struct collective_plan plan = collective_plan(&torus, op, algorithm, elements);
    collective_cost(&plan, &route, &rates, &cost);
    route_done(&route);
    torus_done(&torus);
    return cost;
}

/* Each chip must send and get 2 (N - 1) / N of the array over six links. */
static void test_rotated_all_reduce_is_optimal_on_cubes(void **state)
{
    uint32_t elements = 6 * 512 * 8;
    struct collective_cost rotated =
        cost_of("8x8x8", "", COLLECTIVE_ALL_REDUCE, COLLECTIVE_ROTATED, elements);
    assert_int_equal(rotated.link_bytes, 4 * 2 * (elements / 6) / 512 * 511);
    uint64_t ns = rotated.link_bytes / 50 + 42 * 250; /* each of 42 steps is rounded down */
    assert_in_range(rotated.ns, ns - 42, ns);
    struct collective_cost two = cost_of("8x8x8", "", COLLECTIVE_ALL_REDUCE, COLLECTIVE_TWO_WAY, elements);
    struct collective_cost one = cost_of("8x8x8", "", COLLECTIVE_ALL_REDUCE, COLLECTIVE_ONE_WAY, elements);
    assert_int_equal(two.link_bytes, 3 * rotated.link_bytes);
    assert_int_equal(one.link_bytes, 6 * rotated.link_bytes);
}

static void test_costs_of_other_operations(void **state)
{
    uint32_t elements = 6 * 512 * 8;
    struct collective_cost all = cost_of("8x8x8", "", COLLECTIVE_ALL_REDUCE, COLLECTIVE_ROTATED, elements);
    struct collective_cost half = cost_of("8x8x8", "", COLLECTIVE_ALL_GATHER, COLLECTIVE_ROTATED, elements);
    struct collective_cost broken =
        cost_of("8x8x8", "x5", COLLECTIVE_ALL_REDUCE, COLLECTIVE_ROTATED, elements);
    struct collective_cost plain = cost_of("4x4x8", "", COLLECTIVE_ALL_TO_ALL, 0, 128);
    struct collective_cost twisted = cost_of("4x4x8-twisted", "", COLLECTIVE_ALL_TO_ALL, 0, 128);
    assert_int_equal(2 * half.link_bytes, all.link_bytes);
    assert_true(broken.link_bytes > all.link_bytes && broken.link_bytes <= 2 * all.link_bytes);
    assert_int_equal(plain.link_bytes, 128 * 4);
    assert_int_equal(twisted.link_bytes, 74 * 4);
}

static void test_the_best_algorithm_is_the_cheapest(void **state)
{
    struct collective_rates rates = {.element_bytes = 4, .bytes_per_us = 50000, .hop_ns = 250};
    struct torus torus = torus_named("4x4x8");
    struct collective_cost best;
    struct route route;
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    assert_int_equal(collective_best(&torus, &route, COLLECTIVE_ALL_REDUCE, 1 << 20, &rates, &best),
                     COLLECTIVE_ROTATED);
    for (uint32_t i = 0; i < COLLECTIVE_ALGORITHMS; i++) {
        struct collective_plan plan = collective_plan(&torus, COLLECTIVE_ALL_REDUCE, i, 1 << 20);
        struct collective_cost cost;
        collective_cost(&plan, &route, &rates, &cost);
        assert_true(cost.ns >= best.ns);
    }
    route_done(&route);
    torus_done(&torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_algorithms_reduce_and_gather),
        cmocka_unit_test(test_all_to_all_transposes),
        cmocka_unit_test(test_rotated_all_reduce_is_optimal_on_cubes),
        cmocka_unit_test(test_costs_of_other_operations),
        cmocka_unit_test(test_the_best_algorithm_is_the_cheapest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
