/* The state machine of fabric sessions, without a network: answers that lie, come late or twice, the clock
 * tree, buffers, and tables from a cache. tests/sim/fabric/test_bring_up.c runs it on emulated chips. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "core/fabric/pattern.h"
#include "core/fabric/session.h"

struct stage {
    struct cube_slice slice;
    struct torus torus;
    struct fabric_session *session;
};

static void stage_init(struct stage *stage, bool route_around, const struct str *pattern)
{
    *stage = (struct stage){.slice = {.shape = {{4, 4, 8}, false}, .count = 2, .cube = {9, 3}}};
    struct fabric_session_terms terms = {.slice = &stage->slice,
                                         .number = 5,
                                         .bytes_per_us = 50000,
                                         .packet_bytes = 4096,
                                         .route_around = route_around,
                                         .patterns = pattern,
                                         .pattern_count = pattern ? 1 : 0};
    torus_init(&stage->torus, &stage->slice.shape);
    assert_int_equal(fabric_session_new(&terms, &stage->session, NULL), 0);
}

static void stage_done(struct stage *stage)
{
    fabric_session_free(stage->session);
    torus_done(&stage->torus);
}

static uint32_t label_of(uint16_t chip)
{
    return (chip < 64 ? 9u : 3u) * 64 + chip % 64;
}

static uint16_t chip_of(uint32_t label)
{
    return (uint16_t)((label / 64 == 9 ? 0 : 64) + label % 64);
}

/* The neighbours that a chip of a slice without faults sees: 40 ns over copper, 400 by a switch. */
static void true_answer(const struct stage *stage, uint32_t label, struct fabric_neighbour seen[CHIP_PORTS])
{
    uint16_t chip = chip_of(label);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        struct pod_switch which;
        bool optical = torus_link_switch(&stage->torus, chip, port, &which);
        seen[port] = (struct fabric_neighbour){.light = true,
                                               .port = (uint8_t)(port ^ 1),
                                               .chip = label_of(stage->torus.next[chip * CHIP_PORTS + port]),
                                               .rtt_ns = optical ? 400 : 40};
    }
}

/* Answers all questions of the discovery; the chip `liar` sees `lie` at its port z+. */
static void discover(struct stage *stage, uint32_t liar, struct fabric_neighbour lie)
{
    struct fabric_neighbour seen[CHIP_PORTS];
    for (struct fabric_order order; fabric_session_state(stage->session) == FABRIC_SESSION_DISCOVER &&
                                    fabric_session_order(stage->session, &order);) {
        assert_int_equal(order.kind, FABRIC_ASK);
        true_answer(stage, order.chip, seen);
        if (order.chip == liar)
            seen[PORT_Z_PLUS] = lie;
        assert_true(fabric_session_neighbours(stage->session, order.chip, seen));
    }
}

static void discover_truth(struct stage *stage)
{
    discover(stage, UINT32_MAX, (struct fabric_neighbour){0});
}

/* Carries out the orders of a state; sums up the waits and paths in `loads`. */
static void obey(struct stage *stage, enum fabric_order_kind kind, struct fabric_order *loads)
{
    struct fabric_order order;
    uint32_t numbers[128], count = 0;
    while (fabric_session_order(stage->session, &order)) {
        assert_int_equal(order.kind, kind);
        numbers[count++] = order.chip;
        if (loads)
            loads[chip_of(order.chip)] = order;
    }
    for (uint32_t i = 0; i < (kind == FABRIC_START ? 128 : count); i++)
        assert_true(fabric_session_done(
            stage->session, kind == FABRIC_START ? label_of((uint16_t)i) : numbers[i], kind, order.number));
}

static void test_lies_are_named(void **state)
{
    static const struct {
        struct fabric_neighbour lie;
        const char *why;
    } cases[] = {
        {{true, 5, 9 * 64, 40}, "found cube 9 chip (0,0,0) port z-"},
        {{true, 9, 9 * 64 + 16, 40}, "found an answer that names no chip of a pod"},
        {{true, 5, 1000000, 40}, "found an answer that names no chip of a pod"},
        {{true, 4, 9 * 64 + 16, 40}, "found cube 9 chip (0,0,1) port z+"},
        {{true, 5, 9 * 64 + 16, 0}, "found a round-trip time that no link has"},
        {{true, 5, 9 * 64 + 16, 2000000}, "found a round-trip time that no link has"},
        {{false, 0, 0, 0}, "no light: cube 9 chip (0,0,0) port z+, or the other end of its link"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct stage stage;
        stage_init(&stage, false, NULL);
        discover(&stage, 9 * 64, cases[i].lie);
        assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_FAILED);
        if (!strstr(fabric_session_error(stage.session), cases[i].why))
            fail_msg("%s is not in: %s", cases[i].why, fabric_session_error(stage.session));
        stage_done(&stage);
    }
}

static void test_late_and_repeated_answers_change_nothing(void **state)
{
    struct stage stage;
    struct fabric_neighbour seen[CHIP_PORTS];
    struct fabric_order order;
    stage_init(&stage, true, NULL);
    true_answer(&stage, label_of(1), seen);
    assert_false(fabric_session_neighbours(stage.session, label_of(1), seen)); /* was not asked */
    assert_false(fabric_session_neighbours(stage.session, 4 * 64, seen));      /* not of the slice */
    assert_false(fabric_session_neighbours(stage.session, UINT32_MAX, seen));
    assert_true(fabric_session_order(stage.session, &order));
    true_answer(&stage, order.chip, seen);
    assert_true(fabric_session_neighbours(stage.session, order.chip, seen));
    assert_false(fabric_session_neighbours(stage.session, order.chip, seen));
    discover_truth(&stage);
    assert_false(fabric_session_neighbours(stage.session, order.chip, seen));
    assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_LOAD);
    assert_false(fabric_session_done(stage.session, label_of(0), FABRIC_LOAD, 5)); /* not ordered yet */
    assert_true(fabric_session_order(stage.session, &order));
    assert_false(fabric_session_done(stage.session, order.chip, FABRIC_START, 5));
    assert_false(fabric_session_done(stage.session, order.chip, FABRIC_LOAD, 4));
    assert_true(fabric_session_done(stage.session, order.chip, FABRIC_LOAD, 5));
    assert_false(fabric_session_done(stage.session, order.chip, FABRIC_LOAD, 5));
    assert_false(fabric_session_link_down(stage.session, order.chip, 6));
    assert_true(fabric_session_link_down(stage.session, order.chip, 0));
    assert_false(fabric_session_link_down(stage.session, order.chip, 0));
    assert_false(fabric_session_done(stage.session, order.chip, FABRIC_LOAD, 5)); /* of the old number */
    obey(&stage, FABRIC_LOAD, NULL);
    assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_START);
    assert_true(fabric_session_stop(stage.session));
    assert_false(fabric_session_stop(stage.session));
    obey(&stage, FABRIC_STOP, NULL);
    assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_ENDED);
    assert_false(fabric_session_order(stage.session, &order));
    stage_done(&stage);
}

/* Copper is 40 ns and a switch 400: the tree crosses to the other cube once. */
static void test_the_clock_tree_is_minimal(void **state)
{
    struct stage stage;
    struct fabric_order loads[128];
    struct fabric_session_summary summary;
    uint32_t sum_ns = 0, roots = 0, children = 0;
    stage_init(&stage, false, NULL);
    discover_truth(&stage);
    obey(&stage, FABRIC_LOAD, loads);
    fabric_session_summary(stage.session, &summary);
    for (uint16_t chip = 0; chip < 128; chip++) {
        assert_int_equal(loads[chip].chip_number, chip);
        assert_int_equal(loads[chip].number, 5);
        children += (uint32_t)__builtin_popcount(loads[chip].children);
        int64_t path_ns = 0;
        uint32_t hops = 0;
        for (uint16_t at = chip; loads[at].parent != FABRIC_NO_PORT; hops++) {
            uint32_t port = loads[at].parent;
            struct pod_switch which;
            path_ns += torus_link_switch(&stage.torus, at, port, &which) ? 200 : 20;
            at = stage.torus.next[at * CHIP_PORTS + port];
            assert_true(loads[at].children >> (port ^ 1) & 1);
            assert_true(hops < 128);
        }
        assert_int_equal(loads[chip].wait_ns, summary.tree_ns - path_ns);
        roots += loads[chip].parent == FABRIC_NO_PORT;
        if (loads[chip].parent != FABRIC_NO_PORT) {
            struct pod_switch which;
            sum_ns += torus_link_switch(&stage.torus, chip, loads[chip].parent, &which) ? 400 : 40;
        }
    }
    assert_int_equal(roots, 1);
    assert_int_equal(children, 127);
    assert_int_equal(sum_ns, 126 * 40 + 400);
    assert_int_equal(loads[0].buffer_bytes[PORT_X_PLUS], 50 * 40 + 4096);
    assert_int_equal(loads[0].buffer_bytes[PORT_X_MINUS], 50 * 400 + 4096);
    obey(&stage, FABRIC_START, NULL);
    assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_RUN);
    stage_done(&stage);
}

static void test_solved_patterns_are_used_after_their_proof(void **state)
{
    struct stage stage;
    struct fabric_session_summary summary;
    struct route route;
    struct buf bytes BUF_CLEANUP = {0};
    stage_init(&stage, true, NULL);
    torus_kill_link(&stage.torus, 0, PORT_Z_PLUS);
    assert_int_equal(route_build(&stage.torus, &route, NULL), 0);
    pattern_pack(&stage.torus, &route, &bytes);
    route_done(&route);
    stage_done(&stage);
    for (int damaged = 0; damaged < 2; damaged++) {
        struct str pattern = buf_str(&bytes);
        bytes.data[bytes.len - 1] ^= (char)damaged;
        stage_init(&stage, true, &pattern);
        discover(&stage, 9 * 64, (struct fabric_neighbour){0});
        fabric_session_summary(stage.session, &summary);
        assert_int_equal(fabric_session_state(stage.session), FABRIC_SESSION_LOAD);
        assert_int_equal(summary.from_pattern, !damaged);
        assert_int_equal(summary.dark, 1);
        stage_done(&stage);
    }
}

static void test_bad_terms_are_refused(void **state)
{
    struct cube_slice slices[] = {{{{4, 4, 8}, false}, 1, {9}},
                                  {{{4, 4, 8}, false}, 2, {9, 9}},
                                  {{{4, 4, 8}, false}, 2, {9, 150}},
                                  {{{2, 2, 1}, false}, 2, {9, 3}},
                                  {{{4, 4, 6}, false}, 1, {9}}};
    struct fabric_session *session = NULL;
    struct error error;
    for (size_t i = 0; i < sizeof slices / sizeof *slices; i++) {
        struct fabric_session_terms terms = {.slice = &slices[i], .bytes_per_us = 1, .packet_bytes = 1};
        assert_int_equal(fabric_session_new(&terms, &session, &error), ERROR_INVALID);
    }
    struct cube_slice good = {{{4, 4, 8}, false}, 2, {9, 3}};
    struct fabric_session_terms terms = {.slice = &good, .packet_bytes = 1};
    assert_int_equal(fabric_session_new(&terms, &session, &error), ERROR_INVALID);
    terms.bytes_per_us = 1;
    terms.origin[2] = 1; /* whole cubes begin where they begin */
    assert_int_equal(fabric_session_new(&terms, &session, &error), ERROR_INVALID);
    struct cube_slice part = {{{4, 4, 2}, false}, 1, {9}};
    terms.slice = &part;
    terms.origin[2] = 3;
    assert_int_equal(fabric_session_new(&terms, &session, &error), ERROR_INVALID);
    assert_non_null(strstr(error.text, "begins at z 3"));
    assert_null(session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lies_are_named),
        cmocka_unit_test(test_late_and_repeated_answers_change_nothing),
        cmocka_unit_test(test_the_clock_tree_is_minimal),
        cmocka_unit_test(test_solved_patterns_are_used_after_their_proof),
        cmocka_unit_test(test_bad_terms_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
