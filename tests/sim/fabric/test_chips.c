/* The emulated chip network: light from emulated switches, data when both ends ask, every packet once over
 * links that damage frames, nothing across sessions, and a deadlock where the tables have a circle. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/crossconnect.h"
#include "core/fabric/prove.h"
#include "sim/fabric/chips.h"

struct pod {
    struct chips *net;
    struct ocs ocs[POD_SWITCHES];
    struct torus torus;
    struct route route;
    uint32_t chip_of[SLICE_CHIPS_MAX]; /* by number in the slice */
};

/* A slice of all cubes of a pod: joined, trained, with tables around its dead switch ("": none). */
static struct pod *pod_of(const char *text, const char *dead, uint32_t loss_ppm, uint32_t buffers)
{
    struct pod *pod = mem_alloc(sizeof *pod);
    struct slice_shape shape;
    CHECK(slice_shape_parse(str_from(text), &shape, NULL) == 0);
    uint32_t cubes = slice_shape_cubes(&shape), side[AXES];
    struct chips_settings settings = {.cubes = cubes,
                                      .memory_bytes = 64 * 1024,
                                      .buffers = buffers,
                                      .packet_ns = 82,
                                      .copper_ns = 20,
                                      .optical_ns = 200,
                                      .loss_ppm = loss_ppm,
                                      .seed = 7};
    struct pod_switch out;
    pod->net = chips_new(&settings);
    torus_init(&pod->torus, &shape);
    bool broken = dead[0] && pod_switch_parse(str_from(dead), &out, NULL) == 0;
    if (broken)
        torus_kill_switch(&pod->torus, out);
    CHECK(route_build(&pod->torus, &pod->route, NULL) == 0);
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        struct ocs_settings ocs = {.a_ports = 64, .b_ports = 64};
        ocs_init(&pod->ocs[i], &ocs);
        for (uint32_t c = 0; c < cubes && !(broken && i == pod_switch_number(out)); c++)
            ocs_join(&pod->ocs[i], 1 + c, 65 + slice_next_place(&shape, c, pod_switch_at(i).axis), 0);
        chips_follow(pod->net, i, &pod->ocs[i]);
    }
    for (int axis = 0; axis < AXES; axis++)
        side[axis] = shape.extent[axis] / 4u;
    for (uint16_t n = 0; n < pod->torus.chips; n++) {
        uint32_t x = pod->torus.at[0][n], y = pod->torus.at[1][n], z = pod->torus.at[2][n];
        uint32_t cube = x / 4 + side[0] * (y / 4 + side[1] * (z / 4));
        pod->chip_of[n] = cube * 64 + x % 4 + 4 * (y % 4) + 16 * (z % 4);
        chips_load(pod->net, pod->chip_of[n], n, 1, &pod->route);
        for (uint32_t port = 0; port < CHIP_PORTS; port++)
            chips_ask(pod->net, pod->chip_of[n], port, true);
    }
    return pod;
}

static void pod_done(struct pod *pod)
{
    chips_free(pod->net);
    torus_done(&pod->torus);
    route_done(&pod->route);
    mem_free(pod);
}

/* Every chip writes its number to every other one: how many writes are delivered, whole. */
static uint32_t all_to_all(struct pod *pod, struct chips_counts *ret_counts)
{
    uint32_t chips = pod->torus.chips, delivered = 0;
    struct chips_done done;
    for (uint16_t from = 0; from < chips; from++)
        for (uint16_t step = 1; step < chips; step++) {
            uint16_t to = (uint16_t)((from + step) % chips);
            uint32_t word = 0x1000000u + from;
            chips_write(pod->net, pod->chip_of[from], to, from * 4u, &word, sizeof word, 1);
        }
    chips_run(pod->net, INT64_MAX);
    while (chips_take_done(pod->net, &done))
        delivered += done.delivered;
    for (uint32_t to = 0; to < chips; to++)
        for (uint32_t from = 0; from < chips; from++) {
            uint32_t word;
            memcpy(&word, chips_memory(pod->net, pod->chip_of[to]) + from * 4, sizeof word);
            CHECK(word == (from == to ? 0 : 0x1000000u + from) || delivered < chips * (chips - 1));
        }
    chips_count(pod->net, ret_counts);
    return delivered;
}

static void links_are_those_of_the_torus(void **state)
{
    static const char *const shapes[] = {"4x4x4", "4x4x8-twisted", "4x8x8-twisted"};
    for (size_t i = 0; i < 3; i++) {
        struct pod *pod = pod_of(shapes[i], "", 0, 4);
        uint32_t chip;
        enum chip_port port;
        assert_false(chips_neighbor(pod->net, pod->chip_of[0], PORT_X_PLUS, &chip, &port));
        chips_run(pod->net, INT64_MAX);
        for (uint32_t n = 0; n < pod->torus.chips; n++)
            for (uint32_t p = 0; p < CHIP_PORTS; p++) {
                assert_true(chips_neighbor(pod->net, pod->chip_of[n], p, &chip, &port));
                assert_int_equal(chip, pod->chip_of[pod->torus.next[n * CHIP_PORTS + p]]);
                assert_int_equal(port, p ^ 1);
            }
        pod_done(pod);
    }
}

static void every_packet_arrives_once_over_bad_links(void **state)
{
    struct pod *pod = pod_of("4x4x8-twisted", "", 20000, 2);
    struct chips_counts counts;
    assert_int_equal(all_to_all(pod, &counts), 128 * 127);
    assert_int_equal(counts.delivered, 128 * 127);
    assert_true(counts.resent > 1000);
    assert_int_equal(counts.waiting + counts.lost + counts.refused, 0);
    pod_done(pod);
}

static void routes_lead_around_a_dead_switch(void **state)
{
    struct pod *pod = pod_of("4x4x8", "z5", 0, 1);
    struct chips_counts counts;
    assert_int_equal(all_to_all(pod, &counts), 128 * 127);
    assert_int_equal(counts.waiting, 0);
    pod_done(pod);
}

/* Dimension order without a dateline closes a circle on every ring of eight chips. */
static void tables_with_a_circle_deadlock(void **state)
{
    struct pod *pod = pod_of("8x8x8", "", 0, 1);
    struct chips_counts counts;
    static uint8_t bytes[16 * CHIPS_PACKET_BYTES];
    for (uint32_t i = 0; i < pod->route.chips * pod->route.chips; i++)
        if (pod->route.transit[i] < ROUTE_NONE)
            pod->route.transit[i] = route_entry(route_port(pod->route.transit[i]), 0);
    assert_true(route_prove(&pod->torus, &pod->route, &(struct proof){0}, NULL, NULL) < 0);
    for (uint16_t n = 0; n < 8; n++) /* one ring, each to the chip half-way round, the same direction */
        chips_write(pod->net, pod->chip_of[n], (uint16_t)((n + 3) % 8), 0, bytes, 12 * CHIPS_PACKET_BYTES, 1);
    chips_run(pod->net, INT64_MAX);
    chips_count(pod->net, &counts);
    assert_true(counts.waiting > 0);
    pod_done(pod);
}

static void data_flows_only_when_both_ends_ask(void **state)
{
    struct pod *pod = pod_of("4x4x4", "", 0, 2);
    struct chips_done done;
    struct chips_counts counts;
    uint32_t word = 42;
    chips_ask(pod->net, pod->chip_of[1], PORT_X_MINUS, false);
    chips_write(pod->net, pod->chip_of[0], 1, 0, &word, sizeof word, 9);
    chips_run(pod->net, INT64_MAX);
    assert_false(chips_take_done(pod->net, &done));
    chips_ask(pod->net, pod->chip_of[1], PORT_X_MINUS, true);
    chips_run(pod->net, INT64_MAX);
    assert_true(chips_take_done(pod->net, &done) && done.delivered && done.tag == 9);
    chips_count(pod->net, &counts);
    assert_int_equal(counts.hops, 1);
    pod_done(pod);
}

static void nothing_crosses_sessions_or_comes_back_with_the_light(void **state)
{
    struct pod *pod = pod_of("4x4x8", "", 0, 2);
    struct chips_done done;
    struct chips_counts counts;
    static uint8_t bytes[8 * CHIPS_PACKET_BYTES];
    uint16_t top = torus_chip(&pod->torus, 0, 0, 3), over = torus_chip(&pod->torus, 0, 0, 4);
    int64_t now_ns = chips_run(pod->net, INT64_MAX);
    chips_write(pod->net, pod->chip_of[top], over, 0, bytes, sizeof bytes, 5);
    chips_run(pod->net, now_ns + 150); /* one packet is under way */
    uint32_t z0 = pod_switch_number((struct pod_switch){2, 0});
    ocs_part(&pod->ocs[z0], 1, 0, 0);
    chips_follow(pod->net, z0, &pod->ocs[z0]);
    chips_run(pod->net, INT64_MAX);
    chips_load(pod->net, pod->chip_of[over], over, 2, &pod->route);
    ocs_join(&pod->ocs[z0], 1, 66, 0);
    chips_follow(pod->net, z0, &pod->ocs[z0]);
    chips_run(pod->net, INT64_MAX);
    chips_count(pod->net, &counts);
    assert_true(chips_take_done(pod->net, &done) && !done.delivered && done.tag == 5);
    assert_true(counts.lost >= 1 && counts.delivered == 0);
    assert_int_equal(counts.lost + counts.refused, 8);
    pod_done(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(links_are_those_of_the_torus),
        cmocka_unit_test(every_packet_arrives_once_over_bad_links),
        cmocka_unit_test(routes_lead_around_a_dead_switch),
        cmocka_unit_test(tables_with_a_circle_deadlock),
        cmocka_unit_test(data_flows_only_when_both_ends_ask),
        cmocka_unit_test(nothing_crosses_sessions_or_comes_back_with_the_light),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
