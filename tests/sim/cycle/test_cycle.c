/* The cycle-level simulation: times that can be worked out by hand, throughput beside the bounds, no deadlock
 * with proved tables under dead switches and tiny buffers, and a deadlock, found and named, with bad tables.
 * bench/fabric has the long runs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "core/fabric/prove.h"
#include "sim/cycle/traffic.h"

struct scene {
    struct torus torus;
    struct route route;
    struct proof proof;
    struct traffic traffic;
    struct cycle_net *net;
};

/* The net keeps pointers to torus and tables, so the scene stays where it is. */
static void scene_init(struct scene *scene, const char *text, const char *dead,
                       const struct cycle_terms *terms)
{
    struct slice_shape shape;
    struct pod_switch out;
    *scene = (struct scene){0};
    assert_int_equal(slice_shape_parse(str_from(text), &shape, NULL), 0);
    torus_init(&scene->torus, &shape);
    if (pod_switch_parse(str_from(dead), &out, NULL) == 0)
        assert_true(torus_kill_switch(&scene->torus, out) > 0);
    assert_int_equal(route_build(&scene->torus, &scene->route, NULL), 0);
    assert_int_equal(route_prove(&scene->torus, &scene->route, &scene->proof, NULL, NULL), 0);
    scene->net = cycle_net_new(&scene->torus, &scene->route, terms);
}

static void scene_done(struct scene *scene)
{
    cycle_net_free(scene->net);
    traffic_done(&scene->traffic);
    route_done(&scene->route);
    torus_done(&scene->torus);
}

static void offer(struct scene *scene, enum traffic_pattern pattern, uint64_t packets, uint32_t pace_percent)
{
    struct traffic_order order = {pattern, packets, pace_percent, 1};
    assert_int_equal(traffic_offer(scene->net, &scene->torus, &scene->route, &order, &scene->traffic, NULL),
                     0);
}

/* Lets all packets of a pattern arrive; returns the bound in percent of the time that it took. */
static uint32_t percent_of_bound(const char *shape, const char *dead, enum traffic_pattern pattern,
                                 uint64_t packets, uint64_t *ret_end)
{
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct scene scene;
    scene_init(&scene, shape, dead, &terms);
    struct cycle_counts counts;
    offer(&scene, pattern, packets, TRAFFIC_PACE_PERCENT);
    cycle_net_run(scene.net, UINT64_MAX);
    cycle_net_count(scene.net, &counts);
    assert_int_equal(counts.delivered, scene.traffic.packets * packets);
    assert_int_equal(counts.moving, 0);
    assert_int_equal(counts.waiting, 0);
    if (pattern == TRAFFIC_ALL_TO_ALL)
        assert_int_equal(counts.hops, scene.proof.hops_sum * packets);
    struct load_bound bound = scene.traffic.bound;
    uint64_t least = bound.units * packets * terms.packet_cycles / bound.links;
    assert_true(counts.end > least);
    *ret_end = counts.end;
    scene_done(&scene);
    return (uint32_t)(100 * least / counts.end);
}

static void test_a_packet_takes_the_time_of_its_links(void **state)
{
    struct cycle_terms terms = {
        .buffers = 1, .packet_cycles = 16, .copper_cycles = 4, .optical_cycles = 39, .chip_cycles = 8};
    struct scene scene;
    scene_init(&scene, "4x4x4", "", &terms);
    struct cycle_counts counts;
    uint16_t to[] = {1}, far[] = {torus_chip(&scene.torus, 3, 0, 0)};
    cycle_net_lane(scene.net, 0, to, 1, 1, UINT64_MAX);
    cycle_net_lane(scene.net, torus_chip(&scene.torus, 0, 0, 0), far, 1, 1, UINT64_MAX);
    cycle_net_run(scene.net, 28);
    cycle_net_count(scene.net, &counts);
    assert_int_equal(counts.delivered, 1); /* born in cycle 1, 1 + 4 + 8 to the chip */
    assert_int_equal(counts.end, 1 + 13 + 15);
    cycle_net_run(scene.net, UINT64_MAX);
    cycle_net_count(scene.net, &counts);
    assert_int_equal(counts.delivered, 2); /* (3,0,0) is one optical link away */
    assert_int_equal(counts.end, 1 + 48 + 15);
    assert_int_equal(counts.time_max, 48 + 15);
    scene_done(&scene);
}

/* One buffer and a wire of 39 cycles: 16 cycles to send, and a credit comes back after it. */
static void test_few_credits_limit_a_long_link(void **state)
{
    uint64_t ends[2];
    for (uint32_t i = 0; i < 2; i++) {
        struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
        struct cycle_counts counts;
        terms.buffers = i ? 16 : 1;
        struct scene scene;
        scene_init(&scene, "4x4x4", "", &terms);
        uint16_t far[] = {torus_chip(&scene.torus, 3, 0, 0)};
        cycle_net_lane(scene.net, 0, far, 1, 100, UINT64_MAX);
        cycle_net_run(scene.net, UINT64_MAX);
        cycle_net_count(scene.net, &counts);
        ends[i] = counts.end;
        scene_done(&scene);
    }
    assert_int_equal(ends[1], 1 + 99 * 16 + 48 + 15);
    assert_int_equal(ends[0], 1 + 99 * (48 + 16 + 39) + 48 + 15);
}

static void test_all_to_all_nearly_reaches_the_bound(void **state)
{
    uint64_t end, again;
    assert_in_range(percent_of_bound("8x8x8", "", TRAFFIC_ALL_TO_ALL, 4, &end), 90, 99);
    assert_in_range(percent_of_bound("8x8x8", "", TRAFFIC_ALL_TO_ALL, 4, &again), 90, 99);
    assert_int_equal(end, again);
    assert_in_range(percent_of_bound("8x8x8", "x5", TRAFFIC_ALL_TO_ALL, 4, &end), 90, 99);
    assert_in_range(percent_of_bound("4x4x8-twisted", "", TRAFFIC_ALL_TO_ALL, 8, &end), 90, 99);
    assert_in_range(percent_of_bound("4x8x8-twisted", "y3", TRAFFIC_ALL_TO_ALL, 8, &end), 88, 99);
}

/* A ring that is broken goes round by another ring's links, which then carry twice as much. */
static void test_a_dead_switch_halves_ring_all_reduce(void **state)
{
    uint64_t whole, broken;
    assert_in_range(percent_of_bound("8x8x8", "", TRAFFIC_ALL_REDUCE, 32, &whole), 97, 99);
    percent_of_bound("8x8x8", "x5", TRAFFIC_ALL_REDUCE, 32, &broken);
    assert_in_range(1000 * whole / broken, 480, 520);
    percent_of_bound("4x4x8", "", TRAFFIC_ALL_REDUCE, 32, &whole);
    percent_of_bound("4x4x8", "z5", TRAFFIC_ALL_REDUCE, 32, &broken);
    assert_in_range(1000 * whole / broken, 480, 520);
}

static void test_pairs_of_chips(void **state)
{
    uint64_t end;
    assert_in_range(percent_of_bound("4x4x8-twisted", "", TRAFFIC_PERMUTATION, 16, &end), 10, 99);
    assert_in_range(percent_of_bound("8x8x8", "", TRAFFIC_MIRROR, 16, &end), 20, 99);
    assert_in_range(percent_of_bound("8x8x8", "z0", TRAFFIC_HALFWAY, 64, &end), 40, 99);
    assert_in_range(percent_of_bound("2x4x4", "", TRAFFIC_ALL_TO_ALL, 64, &end), 50, 99);
}

static void test_rings_need_a_torus(void **state)
{
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct scene scene;
    scene_init(&scene, "2x4x4", "", &terms);
    struct traffic_order order = {.pattern = TRAFFIC_ALL_REDUCE, .packets = 1};
    struct error error = {0};
    assert_int_equal(traffic_offer(scene.net, &scene.torus, &scene.route, &order, &scene.traffic, &error),
                     ERROR_INVALID);
    assert_non_null(strstr(error.text, "needs rings"));
    scene_done(&scene);
}

static void test_proved_tables_never_deadlock(void **state)
{
    static const char *const cases[][2] = {
        {"4x4x4", "x5"},         {"4x4x4", "z0"},         {"4x4x8", "z5"},  {"4x4x8", "x15"},
        {"4x4x8-twisted", "x5"}, {"4x4x8-twisted", "z9"}, {"4x8x8", "y1"},  {"4x8x8-twisted", "y12"},
        {"8x8x8", "x5"},         {"4x4x12", "z3"},        {"4x8x12", "x8"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
        struct cycle_counts early, late;
        terms.buffers = 1 + i % 2;
        struct scene scene;
        scene_init(&scene, cases[i][0], cases[i][1], &terms);
        offer(&scene, TRAFFIC_ALL_TO_ALL, 0, 0);
        cycle_net_run(scene.net, 40000);
        cycle_net_count(scene.net, &early);
        cycle_net_run(scene.net, 50000);
        cycle_net_count(scene.net, &late);
        assert_int_equal(cycle_net_circle(scene.net, NULL, 0), 0);
        assert_int_equal(late.now, 50000);
        assert_true(late.delivered > early.delivered);
        scene_done(&scene);
    }
}

/* All packets on one virtual channel: the rings' buffers fill, and each waits for the next. */
static void test_a_deadlock_is_found_and_named(void **state)
{
    struct cycle_terms terms = CYCLE_TERMS_DEFAULT;
    struct cycle_channel circle[64];
    struct cycle_counts counts;
    terms.buffers = 2;
    struct scene scene;
    scene_init(&scene, "8x8x8", "", &terms);
    for (size_t i = 0; i < (size_t)scene.torus.chips * scene.torus.chips; i++)
        if (scene.route.transit[i] < ROUTE_NONE)
            scene.route.transit[i] = route_entry(route_port(scene.route.transit[i]), 0);
    assert_int_equal(route_prove(&scene.torus, &scene.route, &scene.proof, NULL, NULL), ERROR_CORRUPT);
    offer(&scene, TRAFFIC_ALL_TO_ALL, 0, 0);
    assert_int_equal(cycle_net_circle(scene.net, circle, 64), 0);
    cycle_net_run(scene.net, 200000);
    uint32_t length = cycle_net_circle(scene.net, circle, 64);
    assert_in_range(length, 2, 64);
    for (uint32_t i = 0; i < length; i++) {
        struct cycle_channel next = circle[(i + 1) % length];
        assert_int_equal(scene.torus.next[circle[i].chip * CHIP_PORTS + circle[i].port], next.chip);
        assert_int_equal(circle[i].vc, 0);
    }
    cycle_net_count(scene.net, &counts);
    assert_true(counts.moving > 0);
    scene_done(&scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_packet_takes_the_time_of_its_links),
        cmocka_unit_test(test_few_credits_limit_a_long_link),
        cmocka_unit_test(test_all_to_all_nearly_reaches_the_bound),
        cmocka_unit_test(test_a_dead_switch_halves_ring_all_reduce),
        cmocka_unit_test(test_pairs_of_chips),
        cmocka_unit_test(test_rings_need_a_torus),
        cmocka_unit_test(test_proved_tables_never_deadlock),
        cmocka_unit_test(test_a_deadlock_is_found_and_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
