/* Forwarding tables: every table that is built is proved, its loads are compared with the bounds, and the
 * proof itself is shown to notice what is wrong. bench/fabric has the exhaustive sweeps. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "core/fabric/bound.h"
#include "core/fabric/prove.h"

static struct torus torus_from(const char *text)
{
    struct slice_shape shape;
    struct torus torus;
    struct error error = {0};
    if (slice_shape_parse(str_from(text), &shape, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    torus_init(&torus, &shape);
    return torus;
}

static void kill_switch(struct torus *torus, const char *name)
{
    struct pod_switch which;
    assert_int_equal(pod_switch_parse(str_from(name), &which, NULL), 0);
    assert_true(torus_kill_switch(torus, which) > 0);
}

static void kill_random(struct torus *torus, struct rng *rng, uint32_t count)
{
    while (count > 0)
        count -= torus_kill_link(torus, (uint16_t)rng_below(rng, torus->chips),
                                 (uint32_t)rng_below(rng, CHIP_PORTS));
}

/* Builds and proves, and lets go of the torus. */
static struct proof prove(struct torus *torus, const char *name)
{
    struct route route;
    struct proof proof;
    struct error error = {0};
    if (route_build(torus, &route, &error) < 0 || route_prove(torus, &route, &proof, NULL, &error) < 0)
        fail_msg("%s: %s", name, error.text);
    assert_int_equal(proof.pairs, (uint64_t)torus->chips * (torus->chips - 1));
    assert_true(proof.vcs <= ROUTE_VCS && proof.tables <= 2);
    struct load_bound bound = torus_load_bound(torus);
    assert_true(proof.load_max >= load_bound_ceiling(bound));
    route_done(&route);
    torus_done(torus);
    return proof;
}

static void test_plain_shapes_reach_the_optimum(void **state)
{
    static const struct {
        const char *shape;
        uint32_t load;
    } cases[] = {{"4x4x4", 32},   {"4x4x8", 128},  {"4x8x8", 256},   {"8x8x8", 512},   {"4x4x12", 288},
                 {"8x4x12", 576}, {"12x4x8", 576}, {"4x12x12", 864}, {"8x8x16", 2048}, {"4x4x32", 2048}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_from(cases[i].shape);
        assert_int_equal(load_bound_ppm(torus_load_bound(&torus), cases[i].load), 1000000);
        struct proof proof = prove(&torus, cases[i].shape);
        assert_int_equal(proof.load_max, cases[i].load);
        assert_int_equal(proof.tables, 1);
        assert_int_equal(proof.vcs, 2);
    }
}

static void test_meshes_reach_the_optimum(void **state)
{
    static const char *const shapes[] = {"2x2x1", "2x2x2", "2x2x4", "2x4x1",
                                         "2x4x4", "4x4x2", "4x2x4", "4x4x1"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct torus torus = torus_from(shapes[i]);
        struct load_bound bound = torus_load_bound(&torus);
        assert_int_equal(load_bound_ppm(bound, prove(&torus, shapes[i]).load_max), 1000000);
    }
}

static void test_twisted_shapes_come_near_it(void **state)
{
    static const struct {
        const char *shape;
        uint32_t load, hops;
    } cases[] = {{"4x4x8-twisted", 75, 6},
                 {"4x8x8-twisted", 186, 6},
                 {"8x8x16-twisted", 1195, 12},
                 {"8x16x16-twisted", 2985, 12}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_from(cases[i].shape);
        struct proof proof = prove(&torus, cases[i].shape);
        assert_true(proof.load_max <= cases[i].load);
        assert_true(proof.hops_max <= cases[i].hops + 1);
    }
}

/* In thousandths of the bound without faults, which plain shapes reach. Loads are whole numbers: the least
 * one that the dead switch permits will do in any case. */
static void check_every_switch(const char *shape, uint32_t stride, uint64_t limit_permille)
{
    struct torus whole = torus_from(shape);
    struct load_bound bound = torus_load_bound(&whole);
    torus_done(&whole);
    for (uint32_t number = 0; number < POD_SWITCHES; number += stride) {
        struct torus torus = torus_from(shape);
        const char *name = pod_switch_name(pod_switch_at(number));
        kill_switch(&torus, name);
        uint64_t least = load_bound_ceiling(torus_load_bound(&torus));
        struct proof proof = prove(&torus, name);
        if (proof.load_max > least && load_bound_ppm(bound, proof.load_max) > limit_permille * 1000)
            fail_msg("%s without switch %s: load %u", shape, name, proof.load_max);
    }
}

static void test_any_switch_may_die(void **state)
{
    check_every_switch("4x4x4", 1, 1070);
    check_every_switch("4x4x8", 1, 1070);
    check_every_switch("8x4x4", 1, 1070);
    check_every_switch("4x8x8", 5, 1070);
    check_every_switch("4x4x8-twisted", 1, 1020);
    check_every_switch("4x8x8-twisted", 5, 1020);
}

static void test_large_slices_lose_a_switch(void **state)
{
    static const struct {
        const char *shape, *dead;
        uint32_t load;
    } cases[] = {{"8x8x8", "x5", 547}, {"8x8x16", "z5", 2185}, {"8x8x16-twisted", "z5", 1213}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_from(cases[i].shape);
        kill_switch(&torus, cases[i].dead);
        assert_true(prove(&torus, cases[i].shape).load_max <= cases[i].load);
    }
}

/* The longer of two axes with equally many dead links has the busier links and must go first. */
static void test_the_longer_axis_goes_first(void **state)
{
    static const char *const shapes[] = {"16x4x4", "4x4x24"};
    static const uint32_t loads[] = {548, 1231};
    for (size_t i = 0; i < 2; i++) {
        struct torus torus = torus_from(shapes[i]);
        kill_switch(&torus, "x1");
        kill_switch(&torus, "z3");
        assert_true(prove(&torus, shapes[i]).load_max <= loads[i]);
    }
}

static void test_several_switches_may_die(void **state)
{
    static const char *const shapes[] = {"4x4x4", "4x4x8", "8x8x4", "4x4x8-twisted", "4x8x8-twisted"};
    struct rng rng;
    rng_seed(&rng, 18);
    for (uint32_t run = 0; run < 60; run++) {
        const char *shape = shapes[run % 5];
        struct torus torus = torus_from(shape);
        for (uint32_t dead = 0; dead < 2 + run / 20; dead++) /* two, three and four, in any axes */
            torus_kill_switch(&torus, pod_switch_at((uint32_t)rng_below(&rng, POD_SWITCHES)));
        prove(&torus, shape);
    }
}

static void test_random_links_may_die(void **state)
{
    static const struct {
        const char *shape;
        uint32_t most, runs;
    } cases[] = {{"4x4x4", 60, 60},        {"4x4x8", 100, 40}, {"4x4x8-twisted", 100, 40},
                 {"4x8x8-twisted", 64, 8}, {"8x8x8", 64, 4},   {"2x4x4", 6, 40}};
    struct rng rng;
    rng_seed(&rng, 5);
    uint32_t proved = 0;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        for (uint32_t run = 0; run < cases[i].runs; run++) {
            struct torus torus = torus_from(cases[i].shape);
            kill_random(&torus, &rng, 1 + (uint32_t)rng_below(&rng, cases[i].most));
            struct route route = {0};
            struct error error = {0};
            if (torus_connected(&torus)) {
                prove(&torus, cases[i].shape);
                proved++;
            } else {
                assert_int_equal(route_build(&torus, &route, &error), ERROR_UNAVAILABLE);
                assert_non_null(strstr(error.text, "do not connect all"));
                assert_null(route.transit);
                torus_done(&torus);
            }
        }
    assert_true(proved > 120);
}

/* Every pair's way by the chips' own tables, one hop after the other. */
static void test_loads_are_those_of_the_ways(void **state)
{
    struct torus torus = torus_from("4x4x8-twisted");
    kill_switch(&torus, "y6");
    struct route route;
    struct proof proof;
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    uint32_t links = torus.chips * CHIP_PORTS, *counted = mem_alloc(links * sizeof *counted);
    uint32_t *load = mem_alloc(links * sizeof *load);
    uint8_t *tables = mem_alloc(2 * (size_t)torus.chips * torus.chips);
    for (uint32_t chip = 0; chip < torus.chips; chip++)
        for (uint32_t inject = 0; inject < 2; inject++)
            route_chip_table(&route, (uint16_t)chip, inject, tables + (2 * chip + inject) * torus.chips);
    uint64_t hops = 0;
    for (uint32_t from = 0; from < torus.chips; from++)
        for (uint32_t to = 0; to < torus.chips; to++)
            for (uint32_t chip = from, inject = 1; chip != to; inject = 0, hops++) {
                uint32_t port = route_port(tables[(2 * chip + inject) * torus.chips + to]);
                counted[chip * CHIP_PORTS + port]++;
                chip = torus.next[chip * CHIP_PORTS + port];
            }
    assert_int_equal(route_prove(&torus, &route, &proof, load, NULL), 0);
    assert_memory_equal(load, counted, links * sizeof *load);
    assert_int_equal(proof.hops_sum, hops);
    mem_free(counted);
    mem_free(load);
    mem_free(tables);
    route_done(&route);
    torus_done(&torus);
}

static void test_equal_fabrics_have_equal_tables(void **state)
{
    struct torus a = torus_from("4x8x8-twisted"), b = torus_from("4x8x8-twisted");
    struct route of_a, of_b;
    kill_switch(&a, "x3");
    kill_switch(&b, "x3");
    assert_int_equal(route_build(&a, &of_a, NULL), 0);
    assert_int_equal(route_build(&b, &of_b, NULL), 0);
    size_t size = (size_t)a.chips * a.chips;
    assert_memory_equal(of_a.transit, of_b.transit, size);
    assert_memory_equal(of_a.inject, of_b.inject, size);
    route_done(&of_a);
    route_done(&of_b);
    torus_done(&a);
    torus_done(&b);
}

/* The tables of a torus without each switch are those of the canonical torus, shifted. */
static void check_shifts(const char *shape, uint32_t number)
{
    struct torus torus = torus_from(shape), canonical;
    struct route route, of_canonical;
    struct error error = {0};
    kill_switch(&torus, pod_switch_name(pod_switch_at(number)));
    uint16_t shift = route_canonical(&torus, &canonical), again_shift;
    struct torus again;
    again_shift = route_canonical(&canonical, &again);
    assert_int_equal(again_shift, 0); /* canonical itself */
    if (route_shift_check(&torus, &canonical, shift, &error) < 0)
        fail_msg("%s without switch %u: %s", shape, number, error.text);
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    assert_int_equal(route_build(&canonical, &of_canonical, NULL), 0);
    for (uint32_t to = 0; to < torus.chips; to++)
        for (uint32_t chip = 0; chip < torus.chips; chip++) {
            size_t at = (size_t)to * torus.chips + chip,
                   moved = (size_t)torus_add(&torus, (uint16_t)to, shift) * torus.chips +
                           torus_add(&torus, (uint16_t)chip, shift);
            assert_int_equal(route.transit[moved], of_canonical.transit[at]);
            assert_int_equal(route.inject[moved], of_canonical.inject[at]);
        }
    /* One more dead link is no such pattern; nor is another shift. */
    assert_int_equal(route_shift_check(&torus, &canonical, (uint16_t)((shift + 1) % torus.chips), &error),
                     ERROR_CORRUPT);
    assert_true(torus_kill_link(&torus, 21, PORT_Z_PLUS));
    assert_int_equal(route_shift_check(&torus, &canonical, shift, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "does not lead its link"));
    route_done(&route);
    route_done(&of_canonical);
    torus_done(&torus);
    torus_done(&canonical);
    torus_done(&again);
}

static void test_the_switches_of_an_axis_have_shifted_tables(void **state)
{
    static const char *const shapes[] = {"4x4x4", "8x4x4", "4x4x8-twisted", "4x8x8-twisted"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        for (uint32_t number = 0; number < POD_SWITCHES; number += i < 2 ? 1 : 5)
            check_shifts(shapes[i], number);
}

/* One canonical torus for the 16 switches of each axis: three for a shape. */
static void test_an_axis_has_one_canonical_torus(void **state)
{
    struct torus first[AXES];
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        struct torus torus = torus_from("8x8x16-twisted"), canonical;
        torus_kill_switch(&torus, pod_switch_at(number));
        route_canonical(&torus, &canonical);
        torus_done(&torus);
        if (number % 16 == 0)
            first[number / 16] = canonical;
        else {
            assert_memory_equal(canonical.live, first[number / 16].live, canonical.chips);
            torus_done(&canonical);
        }
    }
    for (int axis = 0; axis < AXES; axis++)
        torus_done(&first[axis]);
}

/* The proof of 4x4x8's tables after `entry` was written for packets from `chip` to `to`. */
static void check_fault(uint16_t chip, uint16_t to, uint8_t entry, const char *message)
{
    struct torus torus = torus_from("4x4x8");
    struct route route;
    struct proof proof = {.pairs = 7};
    struct error error = {0};
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    route.transit[to * torus.chips + chip] = entry;
    assert_int_equal(route_prove(&torus, &route, &proof, NULL, &error), ERROR_CORRUPT);
    if (!strstr(error.text, message))
        fail_msg("%s", error.text);
    assert_int_equal(proof.pairs, 7); /* untouched */
    route_done(&route);
    torus_done(&torus);
}

static void test_the_proof_notices_bad_entries(void **state)
{
    check_fault(1, 9, ROUTE_NONE, "chip (1,0,0), packets for (1,2,0): no entry");
    check_fault(1, 9, ROUTE_SELF, "no entry");
    check_fault(1, 9, route_entry(6, 0), "does not exist");
    check_fault(1, 9, route_entry(7, 1), "does not exist");
    check_fault(1, 9, route_entry(PORT_Y_PLUS, ROUTE_VCS), "does not exist");
    /* (0,0,0) goes to (2,0,0) by (1,0,0), which sends it back. */
    check_fault(1, 2, route_entry(PORT_X_MINUS, 0), "round a loop");
}

static void test_the_proof_notices_dead_links(void **state)
{
    struct torus torus = torus_from("4x4x8");
    struct route route;
    struct proof proof;
    struct error error = {0};
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    assert_true(torus_kill_link(&torus, 100, PORT_Z_PLUS));
    assert_int_equal(route_prove(&torus, &route, &proof, NULL, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "a port without a live link"));
    route_done(&route);
    torus_done(&torus);
    torus = torus_from("4x4x4");
    route.chips = 128;
    assert_int_equal(route_prove(&torus, &route, &proof, NULL, &error), ERROR_CORRUPT);
    torus_done(&torus);
}

static void test_the_proof_notices_a_deadlock(void **state)
{
    struct torus torus = torus_from("4x4x8");
    struct route route;
    struct proof proof;
    struct error error = {0};
    assert_int_equal(route_build(&torus, &route, NULL), 0);
    for (uint32_t i = 0; i < torus.chips * torus.chips; i++)
        if (route.transit[i] < ROUTE_NONE)
            route.transit[i] = route_entry(route_port(route.transit[i]), 0); /* no datelines */
    assert_int_equal(route_prove(&torus, &route, &proof, NULL, &error), ERROR_CORRUPT);
    assert_non_null(strstr(error.text, "wait for each other in a circle"));
    route_done(&route);
    torus_done(&torus);
}

/* Rings of neighbours would pay for a detour that levels all-to-all a little. */
static void test_neighbours_keep_their_link(void **state)
{
    static const char *const cases[][2] = {
        {"4x4x8", "z5"}, {"8x8x8", "x5"}, {"4x4x8-twisted", "x5"}, {"4x8x8-twisted", "y0"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct torus torus = torus_from(cases[i][0]);
        struct route route;
        kill_switch(&torus, cases[i][1]);
        assert_int_equal(route_build(&torus, &route, NULL), 0);
        assert_non_null(route.inject);
        for (uint32_t link = 0; link < torus.chips * CHIP_PORTS; link++) {
            uint32_t chip = link / CHIP_PORTS, port = link % CHIP_PORTS;
            if (torus_link_live(&torus, chip, port))
                assert_int_equal(route_port(route.inject[(size_t)torus.next[link] * torus.chips + chip]),
                                 port);
        }
        route_done(&route);
        torus_done(&torus);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_switches_of_an_axis_have_shifted_tables),
        cmocka_unit_test(test_an_axis_has_one_canonical_torus),
        cmocka_unit_test(test_plain_shapes_reach_the_optimum),
        cmocka_unit_test(test_meshes_reach_the_optimum),
        cmocka_unit_test(test_twisted_shapes_come_near_it),
        cmocka_unit_test(test_any_switch_may_die),
        cmocka_unit_test(test_large_slices_lose_a_switch),
        cmocka_unit_test(test_the_longer_axis_goes_first),
        cmocka_unit_test(test_several_switches_may_die),
        cmocka_unit_test(test_random_links_may_die),
        cmocka_unit_test(test_loads_are_those_of_the_ways),
        cmocka_unit_test(test_neighbours_keep_their_link),
        cmocka_unit_test(test_equal_fabrics_have_equal_tables),
        cmocka_unit_test(test_the_proof_notices_bad_entries),
        cmocka_unit_test(test_the_proof_notices_dead_links),
        cmocka_unit_test(test_the_proof_notices_a_deadlock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
