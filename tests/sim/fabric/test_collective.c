/* Collective plans with real data: every transfer is a write over the emulated links of a slice that a fabric
 * session has brought up, without one switch as well. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "core/fabric/collective.h"
#include "sim/fabric/bring_up.h"

struct slice_up {
    struct chips *net;
    struct bring_up *up;
    struct cube_slice slice;
    struct fabric_session *session;
    struct torus torus;
    uint32_t elements;
};

/* Memory of a chip: the array, the second array, and a place for what is to be added, `elements` each. */
static void bring_slice_up(struct slice_up *up, const char *text, const char *dead, uint32_t elements)
{
    struct chips_settings settings = {.cubes = 2,
                                      .memory_bytes = 12 * elements,
                                      .buffers = 4,
                                      .packet_ns = 82,
                                      .copper_ns = 20,
                                      .optical_ns = 200,
                                      .loss_ppm = 1000,
                                      .seed = 11};
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    struct pod_switch out;
    struct ocs *ocs = mem_alloc(sizeof *ocs);
    *up = (struct slice_up){.slice.cube = {1, 0}, .elements = elements};
    assert_int_equal(slice_shape_parse(str_from(text), &up->slice.shape, NULL), 0);
    up->slice.count = slice_shape_cubes(&up->slice.shape);
    bool broken = pod_switch_parse(str_from(dead), &out, NULL) == 0;
    up->net = chips_new(&settings);
    up->up = bring_up_new(up->net, 2);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        ocs_init(ocs, &ports);
        for (uint32_t place = 0; place < up->slice.count; place++)
            ocs_join(ocs, 1u + up->slice.cube[place],
                     65u + up->slice.cube[slice_next_place(&up->slice.shape, place, pod_switch_at(i).axis)],
                     0);
        ocs->dead = broken && i == pod_switch_number(out);
        chips_follow(up->net, i, ocs);
    }
    mem_free(ocs);
    chips_run(up->net, INT64_MAX);
    struct fabric_session_terms terms = {
        .slice = &up->slice, .number = 1, .bytes_per_us = 50000, .packet_bytes = 4096, .route_around = true};
    assert_int_equal(fabric_session_new(&terms, &up->session, NULL), 0);
    bring_up_carry_out(up->up, up->session);
    assert_int_equal(fabric_session_state(up->session), FABRIC_SESSION_RUN);
    torus_init(&up->torus, &up->slice.shape);
}

static void slice_done(struct slice_up *up)
{
    fabric_session_free(up->session);
    bring_up_free(up->up);
    chips_free(up->net);
    torus_done(&up->torus);
}

/* The chip in the pod with a number in the slice: cubes lie along Z. */
static uint32_t chip_numbered(const struct slice_up *up, uint32_t number)
{
    return up->slice.cube[number / CUBE_CHIPS] * CUBE_CHIPS + number % CUBE_CHIPS;
}

static uint32_t number_at(const struct slice_up *up, uint32_t number, uint32_t element)
{
    uint32_t value;
    memcpy(&value, chips_memory(up->net, chip_numbered(up, number)) + 4 * element, sizeof value);
    return value;
}

static void write_numbers(struct slice_up *up, uint32_t from, uint32_t to, uint32_t first,
                          const uint32_t *numbers, uint32_t count)
{
    chips_write(up->net, chip_numbered(up, from), (uint16_t)to, 4 * first, numbers, 4 * count, 0);
}

static void await_writes(struct slice_up *up)
{
    struct chips_done done;
    chips_run(up->net, INT64_MAX);
    while (chips_take_done(up->net, &done))
        assert_true(done.delivered);
}

/* The host of a chip adds what came to what is there. */
static void add_arrivals(struct slice_up *up, const struct collective_transfer *transfer)
{
    uint32_t sums[4096];
    for (uint32_t k = 0; k < transfer->count; k++)
        sums[k] = number_at(up, transfer->to, transfer->to_first + k) +
                  number_at(up, transfer->to, 2 * up->elements + transfer->to_first + k);
    write_numbers(up, transfer->to, transfer->to, transfer->to_first, sums, transfer->count);
}

static void run_plan(struct slice_up *up, const struct collective_plan *plan)
{
    struct collective_transfer *transfers = mem_alloc(collective_transfers_max(plan) * sizeof *transfers);
    uint32_t numbers[4096];
    for (uint32_t step = 0; step < plan->steps; step++) {
        uint32_t count = collective_transfers(plan, step, transfers);
        for (uint32_t i = 0; i < count; i++) {
            const struct collective_transfer *at = &transfers[i];
            for (uint32_t k = 0; k < at->count; k++)
                numbers[k] = number_at(up, at->from, at->from_first + k);
            write_numbers(up, at->from, at->to, (at->add ? 2 * up->elements : 0) + at->to_first, numbers,
                          at->count);
        }
        await_writes(up);
        for (uint32_t i = 0; i < count; i++)
            if (transfers[i].add)
                add_arrivals(up, &transfers[i]);
        await_writes(up);
    }
    mem_free(transfers);
}

static uint32_t number_of(uint32_t chip, uint32_t element)
{
    return chip * 100003u + element * 7u + 1;
}

static void fill_arrays(struct slice_up *up)
{
    uint32_t numbers[4096];
    for (uint32_t chip = 0; chip < up->torus.chips; chip++) {
        for (uint32_t i = 0; i < up->elements; i++)
            numbers[i] = number_of(chip, i);
        write_numbers(up, chip, chip, 0, numbers, up->elements);
    }
    await_writes(up);
}

static uint32_t sum_of(const struct slice_up *up, uint32_t element)
{
    uint32_t sum = 0;
    for (uint32_t chip = 0; chip < up->torus.chips; chip++)
        sum += number_of(chip, element);
    return sum;
}

static void check_sums(const struct slice_up *up)
{
    for (uint32_t i = 0; i < up->elements; i++) {
        uint32_t sum = sum_of(up, i);
        for (uint32_t chip = 0; chip < up->torus.chips; chip++)
            assert_int_equal(number_at(up, chip, i), sum);
    }
}

static void check_all_reduce(const char *shape, const char *dead, enum collective_algorithm algorithm)
{
    struct slice_up up;
    bring_slice_up(&up, shape, dead, 700);
    struct collective_plan plan = collective_plan(&up.torus, COLLECTIVE_ALL_REDUCE, algorithm, up.elements);
    fill_arrays(&up);
    run_plan(&up, &plan);
    check_sums(&up);
    slice_done(&up);
}

/* Every element has one owner, which has its sum. Chips forget all that they do not own. */
static void keep_owned(struct slice_up *up, const struct collective_plan *scatter)
{
    uint32_t numbers[4096], owned = 0;
    for (uint32_t chip = 0; chip < up->torus.chips; chip++) {
        memset(numbers, 0, sizeof numbers);
        for (uint32_t color = 0; color < scatter->colors; color++) {
            uint32_t first, count;
            collective_owned(scatter, (uint16_t)chip, color, &first, &count);
            for (uint32_t i = first; i < first + count; i++, owned++) {
                numbers[i] = number_at(up, chip, i);
                assert_int_equal(numbers[i], sum_of(up, i));
            }
        }
        write_numbers(up, chip, chip, 0, numbers, up->elements);
    }
    assert_int_equal(owned, up->elements);
    await_writes(up);
}

static void check_scatter_and_gather(const char *shape, const char *dead, enum collective_algorithm algorithm)
{
    struct slice_up up;
    bring_slice_up(&up, shape, dead, 700);
    struct collective_plan scatter =
        collective_plan(&up.torus, COLLECTIVE_REDUCE_SCATTER, algorithm, up.elements);
    struct collective_plan gather = collective_plan(&up.torus, COLLECTIVE_ALL_GATHER, algorithm, up.elements);
    fill_arrays(&up);
    run_plan(&up, &scatter);
    keep_owned(&up, &scatter);
    run_plan(&up, &gather);
    check_sums(&up);
    slice_done(&up);
}

static void test_reduce_scatter_and_all_gather_over_emulated_links(void **state)
{
    check_scatter_and_gather("4x4x4", "", COLLECTIVE_ONE_WAY);
    check_scatter_and_gather("4x4x8", "x9", COLLECTIVE_TWO_WAY);
    check_scatter_and_gather("4x4x8-twisted", "z2", COLLECTIVE_ROTATED);
}

static void test_all_reduce_over_emulated_links(void **state)
{
    check_all_reduce("4x4x4", "", COLLECTIVE_ROTATED);
    check_all_reduce("4x4x8", "z5", COLLECTIVE_ROTATED);
    check_all_reduce("4x4x8-twisted", "x3", COLLECTIVE_TWO_WAY);
}

static void test_all_to_all_over_emulated_links(void **state)
{
    struct slice_up up;
    bring_slice_up(&up, "4x4x8-twisted", "y7", 256);
    struct collective_plan plan = collective_plan(&up.torus, COLLECTIVE_ALL_TO_ALL, 0, up.elements);
    fill_arrays(&up);
    run_plan(&up, &plan);
    for (uint32_t to = 0; to < 128; to++)
        for (uint32_t i = 0; i < up.elements; i++)
            assert_int_equal(number_at(&up, to, up.elements + i), number_of(i / 2, to * 2 + i % 2));
    slice_done(&up);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_reduce_over_emulated_links),
        cmocka_unit_test(test_reduce_scatter_and_all_gather_over_emulated_links),
        cmocka_unit_test(test_all_to_all_over_emulated_links),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
