/* Fabric sessions on emulated chips: discovery, wrong wires that are named, one start for all chips, tables
 * around a switch that dies, and no packet of an old session in a new one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/check.h"
#include "core/fabric/pattern.h"
#include "sim/fabric/bring_up.h"

enum { CUBES = 8 };

struct pod {
    struct chips *net;
    struct bring_up *up;
    struct cube_slice slice;
    struct ocs ocs[POD_SWITCHES];
    struct fabric_session *session;
};

static void follow_all(struct pod *pod)
{
    for (uint32_t i = 0; i < POD_SWITCHES; i++)
        chips_follow(pod->net, i, &pod->ocs[i]);
    chips_run(pod->net, INT64_MAX);
}

/* A pod whose switches form a slice of the cubes listed. */
static void pod_init_of(struct pod *pod, uint32_t pod_cubes, const char *text, const uint16_t *cubes)
{
    struct chips_settings settings = {.cubes = pod_cubes,
                                      .memory_bytes = 8192,
                                      .buffers = 8,
                                      .packet_ns = 82,
                                      .copper_ns = 20,
                                      .optical_ns = 200,
                                      .seed = 3};
    struct ocs_settings ports = {.a_ports = 64, .b_ports = 64};
    assert_int_equal(slice_shape_parse(str_from(text), &pod->slice.shape, NULL), 0);
    pod->slice.count = slice_shape_cubes(&pod->slice.shape);
    memcpy(pod->slice.cube, cubes, pod->slice.count * sizeof *cubes);
    pod->net = chips_new(&settings);
    pod->up = bring_up_new(pod->net, pod_cubes);
    pod->session = NULL;
    for (uint32_t i = 0; i < POD_SWITCHES; i++) {
        ocs_init(&pod->ocs[i], &ports);
        for (uint32_t place = 0; place < pod->slice.count; place++) {
            uint32_t next = slice_next_place(&pod->slice.shape, place, pod_switch_at(i).axis);
            ocs_join(&pod->ocs[i], 1u + cubes[place], 65u + cubes[next], 0);
        }
    }
    follow_all(pod);
}

static void pod_init(struct pod *pod, const char *text, const uint16_t *cubes)
{
    pod_init_of(pod, CUBES, text, cubes);
}

static void pod_done(struct pod *pod)
{
    if (pod->session)
        fabric_session_free(pod->session);
    bring_up_free(pod->up);
    chips_free(pod->net);
}

static void begin_session(struct pod *pod, uint32_t number, bool route_around)
{
    struct fabric_session_terms terms = {.slice = &pod->slice,
                                         .number = number,
                                         .bytes_per_us = 50000,
                                         .packet_bytes = CHIPS_PACKET_BYTES,
                                         .route_around = route_around};
    if (pod->session)
        fabric_session_free(pod->session);
    assert_int_equal(fabric_session_new(&terms, &pod->session, NULL), 0);
    bring_up_carry_out(pod->up, pod->session);
}

static void assert_fails(struct pod *pod, const char *expected)
{
    if (fabric_session_state(pod->session) != FABRIC_SESSION_FAILED ||
        strcmp(fabric_session_error(pod->session), expected) != 0)
        fail_msg("%s: \"%s\" is not \"%s\"", fabric_session_state_names[fabric_session_state(pod->session)],
                 fabric_session_error(pod->session), expected);
}

/* Joins the plus ends of cubes a and b, at one switch, with each other's next cubes. */
static void swap_wires(struct pod *pod, const char *name, uint32_t a, uint32_t b)
{
    struct pod_switch which;
    assert_int_equal(pod_switch_parse(str_from(name), &which, NULL), 0);
    struct ocs *ocs = &pod->ocs[pod_switch_number(which)];
    uint32_t of_a = ocs_peer(ocs, 1 + a), of_b = ocs_peer(ocs, 1 + b);
    assert_true(of_a && of_b);
    ocs_part(ocs, 1 + a, of_a, 0);
    ocs_part(ocs, 1 + b, of_b, 0);
    ocs_join(ocs, 1 + a, of_b, 0);
    ocs_join(ocs, 1 + b, of_a, 0);
    follow_all(pod);
}

/* The number of writes that arrive, of one from each chip of the slice to the chip `step` behind it. */
static uint32_t write_all(struct pod *pod, uint32_t step, uint32_t word)
{
    struct chips_done done;
    uint32_t chips = slice_shape_chips(&pod->slice.shape), delivered = 0;
    for (uint32_t place = 0; place < pod->slice.count; place++)
        for (uint32_t inside = 0; inside < CUBE_CHIPS; inside++) {
            uint32_t chip = pod->slice.cube[place] * CUBE_CHIPS + inside;
            chips_write(pod->net, chip, (uint16_t)((place * CUBE_CHIPS + inside + step) % chips), 0, &word,
                        sizeof word, 0);
        }
    chips_run(pod->net, INT64_MAX);
    while (chips_take_done(pod->net, &done))
        delivered += done.delivered;
    return delivered;
}

/* All chips start at the same time, with every link of the shape, and deliver what they write. */
static void check_comes_up(struct pod *pod)
{
    struct fabric_session_summary summary;
    int64_t first_ns, last_ns;
    begin_session(pod, 100, false);
    assert_string_equal(fabric_session_error(pod->session), "");
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_RUN);
    fabric_session_summary(pod->session, &summary);
    assert_int_equal(summary.chips, slice_shape_chips(&pod->slice.shape));
    assert_int_equal(summary.links, 3 * summary.chips);
    assert_int_equal(summary.dark, 0);
    assert_int_equal(summary.rtt_ns_max, 400);
    assert_int_equal(summary.buffer_bytes_max, 20000 + 4096);
    bring_up_started(pod->up, &first_ns, &last_ns);
    assert_int_equal(first_ns, last_ns);
    assert_true(summary.tree_ns > 0);
    assert_int_equal(write_all(pod, 17, 1), summary.chips);
}

static void test_a_slice_comes_up(void **state)
{
    static const struct {
        const char *shape;
        uint16_t cubes[CUBES];
    } cases[] = {{"4x4x4", {5}},
                 {"4x4x8-twisted", {3, 1}},
                 {"4x8x8-twisted", {7, 0, 2, 5}},
                 {"8x8x8", {0, 7, 1, 6, 2, 5, 3, 4}}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct pod *pod = mem_alloc(sizeof *pod);
        pod_init(pod, cases[i].shape, cases[i].cubes);
        check_comes_up(pod);
        pod_done(pod);
        mem_free(pod);
    }
}

static void test_4096_chips_come_up(void **state)
{
    uint16_t cubes[64];
    struct pod *pod = mem_alloc(sizeof *pod);
    for (uint16_t place = 0; place < 64; place++)
        cubes[place] = place * 37 % 64; /* each cube once */
    pod_init_of(pod, 64, "16x16x16", cubes);
    check_comes_up(pod);
    assert_true(fabric_session_stop(pod->session));
    bring_up_carry_out(pod->up, pod->session);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_ENDED);
    pod_done(pod);
    mem_free(pod);
}

/* Two halves of a cube and a machine of another one: each chip writes to the next of its part, and nothing of
 * one part reaches another. */
static void test_parts_of_a_cube_are_networks_of_their_own(void **state)
{
    static const struct {
        const char *shape;
        uint16_t cube;
        uint8_t origin[AXES];
        uint32_t links;
    } parts[] = {{"4x4x2", 1, {0, 0, 0}, 64}, {"4x4x2", 1, {0, 0, 2}, 64}, {"2x2x1", 2, {2, 0, 3}, 4}};
    enum { PARTS = sizeof parts / sizeof *parts };
    struct pod *pod = mem_alloc(sizeof *pod);
    struct fabric_session *sessions[PARTS];
    pod_init(pod, "4x4x8", (const uint16_t[]){1, 2});
    for (uint32_t i = 0; i < PARTS; i++) {
        struct cube_slice slice = {.count = 1, .cube = {parts[i].cube}};
        struct fabric_session_summary summary;
        assert_int_equal(slice_shape_parse(str_from(parts[i].shape), &slice.shape, NULL), 0);
        struct fabric_session_terms terms = {
            .slice = &slice, .number = 7, .bytes_per_us = 50000, .packet_bytes = CHIPS_PACKET_BYTES};
        memcpy(terms.origin, parts[i].origin, sizeof terms.origin);
        assert_int_equal(fabric_session_new(&terms, &sessions[i], NULL), 0);
        bring_up_carry_out(pod->up, sessions[i]);
        assert_int_equal(fabric_session_state(sessions[i]), FABRIC_SESSION_RUN);
        fabric_session_summary(sessions[i], &summary);
        assert_int_equal(summary.links, parts[i].links);
        assert_int_equal(summary.dark, 0);
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        struct slice_shape shape;
        slice_shape_parse(str_from(parts[i].shape), &shape, NULL);
        uint32_t chips = slice_shape_chips(&shape), delivered = 0, word = 1 + i;
        for (uint32_t number = 0; number < chips; number++) {
            uint32_t x = parts[i].origin[0] + number % shape.extent[0],
                     y = parts[i].origin[1] + number / shape.extent[0] % shape.extent[1],
                     z = parts[i].origin[2] + number / (shape.extent[0] * shape.extent[1]);
            chips_write(pod->net, parts[i].cube * CUBE_CHIPS + x + 4 * y + 16 * z,
                        (uint16_t)((number + 1) % chips), 0, &word, sizeof word, 0);
        }
        chips_run(pod->net, INT64_MAX);
        for (struct chips_done done; chips_take_done(pod->net, &done); delivered += done.delivered)
            assert_int_equal(done.at / CUBE_CHIPS, parts[i].cube);
        assert_int_equal(delivered, chips);
    }
    for (uint32_t z = 0; z < 4; z++) /* each half has what it wrote itself */
        assert_int_equal(*(const uint32_t *)(const void *)chips_memory(pod->net, CUBE_CHIPS + 16 * z),
                         1 + z / 2);
    for (uint32_t i = 0; i < PARTS; i++)
        fabric_session_free(sessions[i]);
    pod_done(pod);
    mem_free(pod);
}

static void test_a_wrong_wire_is_named(void **state)
{
    static const uint16_t cubes[] = {3, 1, 4};
    struct pod *pod = mem_alloc(sizeof *pod);
    pod_init(pod, "4x4x12", cubes);
    swap_wires(pod, "z6", 3, 1);
    begin_session(pod, 1, true);
    assert_fails(pod,
                 "4 wires are wrong; the first: wrong wire: cube 3 chip (2,1,3) port z+: expected cube 1 "
                 "chip (2,1,0) port z-, found cube 4 chip (2,1,0) port z-");
    assert_true(fabric_session_stop(pod->session));
    bring_up_carry_out(pod->up, pod->session);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_ENDED);
    pod_done(pod);
    mem_free(pod);
}

/* The wires form the shape, but with other cubes at its places. */
static void test_a_relabelled_torus_is_refused(void **state)
{
    static const uint16_t wired[] = {0, 1, 2}, asked[] = {0, 2, 1};
    struct pod *pod = mem_alloc(sizeof *pod);
    pod_init(pod, "4x4x12", wired);
    memcpy(pod->slice.cube, asked, sizeof asked);
    begin_session(pod, 1, true);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_FAILED);
    assert_non_null(strstr(fabric_session_error(pod->session),
                           "cube 0 chip (0,0,0) port z-: expected cube 1 chip "
                           "(0,0,3) port z+, found cube 2 chip (0,0,3)"));
    pod_done(pod);
    mem_free(pod);
}

static void test_a_dark_link_is_named_or_routed_around(void **state)
{
    static const uint16_t cubes[] = {0, 1};
    struct pod *pod = mem_alloc(sizeof *pod);
    struct fabric_session_summary summary;
    pod_init(pod, "4x4x8", cubes);
    pod->ocs[5].dead = true;
    follow_all(pod);
    begin_session(pod, 1, false);
    assert_fails(pod, "no light: cube 0 chip (3,1,1) port x+, or the other end of its link");
    begin_session(pod, 2, true);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_RUN);
    fabric_session_summary(pod->session, &summary);
    assert_int_equal(summary.dark, 2);
    assert_int_equal(write_all(pod, 3, 1), summary.chips);
    pod_done(pod);
    mem_free(pod);
}

static void test_a_switch_dies_and_tables_lead_around(void **state)
{
    static const uint16_t cubes[] = {2, 6};
    struct pod *pod = mem_alloc(sizeof *pod);
    struct fabric_session_summary summary;
    struct chips_counts before, after;
    int64_t first_ns, last_ns;
    pod_init(pod, "4x4x8", cubes);
    begin_session(pod, 40, true);
    assert_int_equal(write_all(pod, 64, 1), 128);
    chips_count(pod->net, &before);
    pod->ocs[37].dead = true; /* z5 */
    chips_follow(pod->net, 37, &pod->ocs[37]);
    assert_int_equal(bring_up_watch(pod->up, pod->session), 2);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_LOAD);
    bring_up_carry_out(pod->up, pod->session);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_RUN);
    fabric_session_summary(pod->session, &summary);
    assert_int_equal(summary.reroutes, 1);
    assert_int_equal(summary.dark, 2);
    assert_int_equal(bring_up_watch(pod->up, pod->session), 0);
    bring_up_started(pod->up, &first_ns, &last_ns);
    assert_int_equal(first_ns, last_ns);
    assert_int_equal(write_all(pod, 64, 2), 128);
    chips_count(pod->net, &after);
    assert_int_equal(after.lost, before.lost);
    pod_done(pod);
    mem_free(pod);
}

/* Writes that wait when their session ends never reach the memory of chips in the next one. */
static void test_no_packet_crosses_into_the_next_session(void **state)
{
    static const uint16_t cubes[] = {2, 6};
    struct pod *pod = mem_alloc(sizeof *pod);
    struct chips_counts counts;
    uint32_t word = 0xdead, delivered = 0;
    struct chips_done done;
    pod_init(pod, "4x4x8", cubes);
    begin_session(pod, 7, false);
    for (uint32_t i = 0; i < 1000; i++)
        chips_write(pod->net, 2 * CUBE_CHIPS, 127, 0, &word, sizeof word, 0);
    assert_true(fabric_session_stop(pod->session));
    bring_up_carry_out(pod->up, pod->session);
    assert_int_equal(fabric_session_state(pod->session), FABRIC_SESSION_ENDED);
    begin_session(pod, 7 + FABRIC_REROUTES_MAX, false);
    assert_int_equal(write_all(pod, 3, 1), 128);
    chips_count(pod->net, &counts);
    assert_int_equal(counts.refused, 1000);
    assert_int_equal(counts.waiting, 0);
    while (chips_take_done(pod->net, &done))
        delivered += done.delivered;
    assert_int_equal(delivered, 0);
    memcpy(&word, chips_memory(pod->net, 6 * CUBE_CHIPS + 63), sizeof word);
    assert_int_equal(word, 1);
    pod_done(pod);
    mem_free(pod);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_slice_comes_up),
        cmocka_unit_test(test_4096_chips_come_up),
        cmocka_unit_test(test_parts_of_a_cube_are_networks_of_their_own),
        cmocka_unit_test(test_a_wrong_wire_is_named),
        cmocka_unit_test(test_a_relabelled_torus_is_refused),
        cmocka_unit_test(test_a_dark_link_is_named_or_routed_around),
        cmocka_unit_test(test_a_switch_dies_and_tables_lead_around),
        cmocka_unit_test(test_no_packet_crosses_into_the_next_session),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
