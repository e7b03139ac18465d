/* The planner of cross-connects: what it plans is what torus.h says, touches no running slice, is the
 * smallest change and can be taken back; and every refusal names its reason. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/check.h"
#include "base/rng.h"
#include "core/fabric/crossconnect.h"
#include "core/fabric/torus.h"

static struct slice_shape shape_from(const char *text)
{
    struct slice_shape shape;
    CHECK(slice_shape_parse(str_from(text), &shape, NULL) == 0);
    return shape;
}

/* Each inter-cube link of the chip graph is the cross-connect of its switch. */
static void check_against_graph(const char *text)
{
    struct slice_shape shape = shape_from(text);
    struct torus torus;
    torus_init(&torus, &shape);
    uint32_t cubes_x = shape.extent[0] / 4u, cubes_y = shape.extent[1] / 4u;
    for (uint32_t chip = 0; chip < torus.chips; chip++)
        for (uint32_t axis = 0; axis < AXES; axis++) {
            struct pod_switch which;
            if (!torus_link_switch(&torus, (uint16_t)chip, 2 * axis, &which))
                continue;
            uint32_t place[2], ends[2] = {chip, torus.next[chip * CHIP_PORTS + 2 * axis]};
            for (int i = 0; i < 2; i++)
                place[i] = torus.at[0][ends[i]] / 4u +
                           cubes_x * (torus.at[1][ends[i]] / 4u + cubes_y * (torus.at[2][ends[i]] / 4u));
            assert_int_equal(slice_next_place(&shape, place[0], axis), place[1]);
        }
    torus_done(&torus);
}

static void test_cubes_are_joined_as_the_chips_are(void **state)
{
    static const char *const shapes[] = {
        "4x4x4", "8x4x12", "4x4x8-twisted", "4x8x8-twisted", "8x8x16-twisted", "8x16x16-twisted", "16x24x24"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_against_graph(shapes[i]);
}

static struct cube_slice arrange(const struct crossconnects *now, const char *shape, const uint16_t *cubes)
{
    struct slice_shape wanted = shape_from(shape);
    struct cube_slice slice;
    struct error error = {0};
    if (crossconnect_arrange(now, &wanted, cubes, slice_shape_cubes(&wanted), &slice, &error) < 0)
        fail_msg("%s", error.text);
    return slice;
}

static void test_a_slice_and_its_change_of_shape(void **state)
{
    static const uint16_t cubes[] = {9, 3, 60, 17, 5, 6, 7, 8};
    struct crossconnects now;
    struct crossconnect_limits limits = {0};
    struct crossconnect_plan plan;
    struct arena arena ARENA_CLEANUP = {0};
    crossconnects_init(&now, 64);
    struct cube_slice slice = arrange(&now, "8x8x8", cubes);
    assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
    assert_int_equal(plan.count, 48 * 8);
    assert_int_equal(plan.kept, 0);
    assert_int_equal(crossconnect_apply(&now, &plan, NULL), 0);
    assert_true(crossconnects_valid(&now));
    /* Another order of the same cubes finds the places that they have. */
    static const uint16_t again[] = {17, 5, 6, 3, 60, 7, 8, 9};
    slice = arrange(&now, "8x8x8", again);
    assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.kept, 48 * 8);
    /* Two of its cubes as a twisted slice: Z stays, or is joined anew; X and Y change from a ring of two
     * cubes. */
    static const uint16_t two[] = {9, 3};
    slice = arrange(&now, "4x4x8-twisted", two);
    assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
    assert_true(plan.count > 0 && plan.kept + plan.count >= 96);
    for (uint32_t i = 0; i < plan.count; i++)
        assert_true(!plan.changes[i].add || ((plan.changes[i].plus == 9 || plan.changes[i].plus == 3) &&
                                             (plan.changes[i].minus == 9 || plan.changes[i].minus == 3)));
    assert_int_equal(crossconnect_apply(&now, &plan, NULL), 0);
    assert_true(crossconnects_valid(&now));
    static const uint16_t one[] = {3};
    slice =
        arrange(&now, "2x2x4", one); /* part of a cube needs nothing, and parts the cube from the other one */
    assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
    assert_int_equal(plan.count, 2 * POD_SWITCHES);
    for (uint32_t i = 0; i < plan.count; i++)
        assert_false(plan.changes[i].add);
}

/* On every switch, the cubes of a slice along its axis form rings of the slice's extent. */
static void check_rings(const struct crossconnects *now, const struct cube_slice *slice)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++) {
        uint32_t length = slice->shape.extent[pod_switch_at(number).axis] / 4u;
        for (uint32_t place = 0; place < slice->count; place++) {
            uint16_t cube = slice->cube[place];
            for (uint32_t step = 1; step < length; step++) {
                cube = now->next[number][cube];
                assert_true(cube != slice->cube[place] && cube < now->cubes);
            }
            assert_int_equal(now->next[number][cube], slice->cube[place]);
        }
    }
}

/* Pods of TPU v5p, Ironwood and 8t have 140, 144 and 150 cubes (news-2026.md, section D). */
static void test_the_largest_slices_of_the_largest_pods(void **state)
{
    static const struct {
        uint32_t cubes;
        const char *shape;
    } pods[] = {{140, "16x16x24"}, {144, "16x24x24"}, {150, "16x24x24"}};
    for (size_t p = 0; p < sizeof pods / sizeof *pods; p++) {
        struct arena arena ARENA_CLEANUP = {0};
        struct crossconnects now;
        struct crossconnect_limits limits = {0};
        struct crossconnect_plan plan;
        struct rng rng;
        uint16_t cubes[POD_CUBES_MAX];
        rng_seed(&rng, p);
        for (uint32_t i = 0; i < pods[p].cubes; i++) { /* in any order */
            uint32_t k = (uint32_t)rng_below(&rng, i + 1);
            cubes[i] = cubes[k];
            cubes[k] = (uint16_t)i;
        }
        crossconnects_init(&now, pods[p].cubes);
        struct cube_slice slice = arrange(&now, pods[p].shape, cubes);
        assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
        assert_int_equal(plan.count, POD_SWITCHES * slice.count);
        assert_int_equal(crossconnect_apply(&now, &plan, NULL), 0);
        assert_true(crossconnects_valid(&now));
        check_rings(&now, &slice);
        assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
        assert_true(plan.count == 0 && plan.kept == POD_SWITCHES * slice.count);
    }
}

static void check_refusal(const struct crossconnects *now, const struct crossconnect_limits *limits,
                          const struct cube_slice *slice, int code, const char *message)
{
    struct crossconnect_plan plan = {.kept = 77};
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    assert_int_equal(crossconnect_plan(now, limits, slice, &arena, &plan, &error), code);
    if (!strstr(error.text, message))
        fail_msg("%s", error.text);
    assert_int_equal(plan.kept, 77); /* untouched */
}

static void test_refusals_name_their_reason(void **state)
{
    static const uint16_t cubes[] = {4, 5};
    struct crossconnects now;
    crossconnects_init(&now, 16);
    struct crossconnect_limits limits = {0};
    struct cube_slice good = arrange(&now, "4x4x8", cubes), bad = good;
    bad.count = 1;
    check_refusal(&now, &limits, &bad, ERROR_INVALID, "slice 4x4x8: 1 cubes were given, it needs 2");
    bad = good;
    bad.cube[1] = 4;
    check_refusal(&now, &limits, &bad, ERROR_INVALID, "cube 4 is given twice");
    bad.cube[1] = 16;
    check_refusal(&now, &limits, &bad, ERROR_INVALID, "cube 16: the pod has cubes 0 to 15");
    bad = good;
    bad.shape.extent[2] = 6;
    check_refusal(&now, &limits, &bad, ERROR_INVALID, "6 chips along Z");
    limits.slice_of[5] = 3;
    check_refusal(&now, &limits, &good, ERROR_CONFLICT, "cube 5 belongs to running slice 3");
    limits = (struct crossconnect_limits){.cube_out[4] = true};
    check_refusal(&now, &limits, &good, ERROR_UNAVAILABLE, "cube 4 is out of service");
    limits = (struct crossconnect_limits){.end_out[20][POLARITY_MINUS][5] = true};
    check_refusal(&now, &limits, &good, ERROR_UNAVAILABLE, "switch y4, port 70: the minus end of cube 5");
    limits = (struct crossconnect_limits){.switch_out[47] = true};
    check_refusal(&now, &limits, &good, ERROR_UNAVAILABLE, "switch z15 is out of service");
    limits.switches_out_max = 1;
    struct crossconnect_plan plan;
    struct arena arena ARENA_CLEANUP = {0};
    assert_int_equal(crossconnect_plan(&now, &limits, &good, &arena, &plan, NULL), 0);
    assert_int_equal(plan.count, 94);
    assert_int_equal(plan.left_out, 2);
    /* A switch that holds a cross-connect from this cube into a running slice. */
    now.next[2][4] = 9;
    now.prior[2][9] = 4;
    limits = (struct crossconnect_limits){.slice_of[9] = 8};
    check_refusal(&now, &limits, &good, ERROR_CONFLICT, "switch x2, port 74: cube 9 of running slice 8");
}

static void test_a_plan_for_another_state_changes_nothing(void **state)
{
    static const uint16_t cubes[] = {0, 1};
    struct crossconnects now, before;
    struct crossconnect_limits limits = {0};
    struct crossconnect_plan plan;
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    crossconnects_init(&now, 16);
    struct cube_slice slice = arrange(&now, "4x4x8", cubes);
    assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
    now.next[40][7] = 1;
    now.prior[40][1] = 7;
    before = now;
    assert_int_equal(crossconnect_apply(&now, &plan, &error), ERROR_CONFLICT);
    assert_non_null(strstr(error.text, "switch z8: cannot join"));
    assert_memory_equal(&now, &before, sizeof now);
}

/* --- random slices come and go -------------------------------------------------------------------- */

enum { PLAY_SLICES = 24, PLAY_STEPS = 1500 };
struct play {
    struct rng rng;
    struct crossconnects now;
    struct crossconnect_limits limits;
    struct cube_slice slices[PLAY_SLICES]; /* count 0: none */
    uint32_t placed;
};

static void check_untouched(const struct play *play, const struct crossconnect_plan *plan)
{
    for (uint32_t i = 0; i < plan->count; i++)
        assert_true(play->limits.slice_of[plan->changes[i].plus] == 0 &&
                    play->limits.slice_of[plan->changes[i].minus] == 0);
}

static void place(struct play *play, uint32_t slot)
{
    static const char *const shapes[] = {"4x4x4",         "4x4x8", "4x4x8-twisted", "4x8x8",
                                         "4x8x8-twisted", "8x8x8", "4x12x4",        "2x4x4"};
    struct slice_shape shape = shape_from(shapes[rng_below(&play->rng, 8)]);
    uint16_t cubes[SLICE_CUBES_MAX];
    uint32_t count = 0, needed = slice_shape_cubes(&shape), from = (uint32_t)rng_below(&play->rng, 64);
    for (uint32_t i = 0; i < 64 && count < needed; i++)
        if (play->limits.slice_of[(from + 7 * i) % 64] == 0)
            cubes[count++] = (uint16_t)((from + 7 * i) % 64);
    if (count < needed)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct crossconnect_plan plan, back, again;
    struct crossconnects before = play->now;
    struct cube_slice slice;
    assert_int_equal(crossconnect_arrange(&play->now, &shape, cubes, count, &slice, NULL), 0);
    assert_int_equal(crossconnect_plan(&play->now, &play->limits, &slice, &arena, &plan, NULL), 0);
    check_untouched(play, &plan);
    assert_int_equal(crossconnect_apply(&play->now, &plan, NULL), 0);
    assert_true(crossconnects_valid(&play->now));
    assert_int_equal(crossconnect_plan(&play->now, &play->limits, &slice, &arena, &again, NULL), 0);
    assert_int_equal(again.count, 0);
    crossconnect_undo(&plan, &arena, &back);
    if (rng_chance(&play->rng, 300000)) {
        assert_int_equal(crossconnect_apply(&play->now, &back, NULL), 0);
        assert_memory_equal(&play->now, &before, sizeof before);
        return;
    }
    play->slices[slot] = slice;
    play->placed++;
    for (uint32_t i = 0; i < count; i++)
        play->limits.slice_of[cubes[i]] = slot + 1;
}

/* Ends a slice. Its cross-connects stay until another slice needs the ends, or are cleared. */
static void end(struct play *play, uint32_t slot)
{
    struct cube_slice *slice = &play->slices[slot];
    struct arena arena ARENA_CLEANUP = {0};
    struct crossconnect_plan plan;
    assert_int_equal(
        crossconnect_plan_clear(&play->now, &play->limits, slice->cube, slice->count, &arena, &plan, NULL),
        ERROR_CONFLICT);
    for (uint32_t i = 0; i < slice->count; i++)
        play->limits.slice_of[slice->cube[i]] = 0;
    if (rng_chance(&play->rng, 500000)) {
        assert_int_equal(crossconnect_plan_clear(&play->now, &play->limits, slice->cube, slice->count, &arena,
                                                 &plan, NULL),
                         0);
        check_untouched(play, &plan);
        assert_int_equal(crossconnect_apply(&play->now, &plan, NULL), 0);
        for (uint32_t number = 0; number < POD_SWITCHES; number++)
            for (uint32_t i = 0; i < slice->count; i++)
                assert_true(play->now.next[number][slice->cube[i]] == CUBE_NONE &&
                            play->now.prior[number][slice->cube[i]] == CUBE_NONE);
    }
    slice->count = 0;
}

static void check_running(const struct play *play)
{
    for (uint32_t slot = 0; slot < PLAY_SLICES; slot++) {
        const struct cube_slice *slice = &play->slices[slot];
        for (uint32_t place = 0; place < slice->count && slice_shape_is_whole(&slice->shape); place++)
            for (uint32_t number = 0; number < POD_SWITCHES; number++)
                assert_int_equal(play->now.next[number][slice->cube[place]],
                                 slice->cube[slice_next_place(&slice->shape, place, number / FACE_LINKS)]);
    }
}

static void test_random_slices_come_and_go(void **state)
{
    static struct play play;
    rng_seed(&play.rng, 48);
    crossconnects_init(&play.now, 64);
    for (uint32_t step = 0; step < PLAY_STEPS; step++) {
        uint32_t slot = (uint32_t)rng_below(&play.rng, PLAY_SLICES);
        if (play.slices[slot].count == 0)
            place(&play, slot);
        else
            end(&play, slot);
        if (step % 16 == 0)
            check_running(&play);
    }
    check_running(&play);
    assert_true(play.placed > 200);
}

/* Takes the cross-connects of these switches away, as if they were out and forgotten. */
static void forget(struct crossconnects *now, uint64_t switches)
{
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        if (switches >> number & 1) {
            memset(now->next[number], 0xff, sizeof now->next[number]);
            memset(now->prior[number], 0xff, sizeof now->prior[number]);
        }
}

static uint32_t kept_of(const struct crossconnects *now, const struct cube_slice *slice)
{
    uint32_t kept = 0;
    for (uint32_t number = 0; number < POD_SWITCHES; number++)
        for (uint32_t place = 0; place < slice->count; place++)
            kept += now->next[number][slice->cube[place]] ==
                    slice->cube[slice_next_place(&slice->shape, place, number / FACE_LINKS)];
    return kept;
}

/* Cubes stay where they are when a switch of an axis is out. */
static void test_a_switch_that_is_out_moves_no_cube(void **state)
{
    static const uint16_t cubes[] = {9, 3, 60, 17, 5, 6, 7, 8}, again[] = {17, 5, 6, 3, 60, 7, 8, 9};
    struct crossconnect_limits limits = {0};
    for (uint32_t out = 0; out < POD_SWITCHES; out++) {
        struct crossconnects now;
        struct crossconnect_plan plan;
        struct arena arena ARENA_CLEANUP = {0};
        crossconnects_init(&now, 64);
        struct cube_slice slice = arrange(&now, "8x8x8", cubes);
        assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
        assert_int_equal(crossconnect_apply(&now, &plan, NULL), 0);
        forget(&now, UINT64_C(1) << out);
        slice = arrange(&now, "8x8x8", again);
        assert_int_equal(kept_of(&now, &slice), 47 * 8);
    }
}

/* Tries the cubes from `from` on in every order; returns the most that any keeps. */
static uint32_t most_kept(const struct crossconnects *now, struct cube_slice *slice, uint32_t from)
{
    uint32_t most = from == slice->count ? kept_of(now, slice) : 0;
    for (uint32_t i = from; i < slice->count; i++) {
        uint16_t first = slice->cube[from], other = slice->cube[i];
        slice->cube[from] = other, slice->cube[i] = first;
        uint32_t kept = most_kept(now, slice, from + 1);
        slice->cube[from] = first, slice->cube[i] = other;
        most = kept > most ? kept : most;
    }
    return most;
}

/* Beside all orders of the cubes. The search follows joined cubes from each of them, and may miss the best
 * order of cubes that are hardly joined. */
static void test_the_change_is_nearly_always_the_smallest(void **state)
{
    static const char *const shapes[] = {"4x4x4",         "4x4x8",  "4x4x12", "4x8x8",
                                         "4x4x8-twisted", "4x12x4", "4x4x20", "8x4x12"};
    enum { CUBES = 6, SHAPES = sizeof shapes / sizeof *shapes };
    struct crossconnect_limits limits = {0};
    struct rng rng;
    int worse = 0, all = 0;
    rng_seed(&rng, 7);
    for (int round = 0; round < 300; round++) {
        struct crossconnects now;
        crossconnects_init(&now, CUBES);
        for (int i = 0; i < 4; i++) {
            uint16_t cubes[CUBES] = {0, 1, 2, 3, 4, 5};
            struct arena arena ARENA_CLEANUP = {0};
            struct crossconnect_plan plan;
            for (uint64_t c = CUBES; c > 1; c--) {
                uint64_t other = rng_below(&rng, c);
                uint16_t cube = cubes[c - 1];
                cubes[c - 1] = cubes[other], cubes[other] = cube;
            }
            struct cube_slice slice = arrange(&now, shapes[rng_below(&rng, SHAPES)], cubes), tried = slice;
            uint32_t kept = kept_of(&now, &slice), most = most_kept(&now, &tried, 0);
            all++;
            worse += kept < most;
            assert_int_equal(crossconnect_plan(&now, &limits, &slice, &arena, &plan, NULL), 0);
            assert_int_equal(crossconnect_apply(&now, &plan, NULL), 0);
            if (rng_chance(&rng, 300000))
                forget(&now, rng_next(&rng) & rng_next(&rng) & ((UINT64_C(1) << POD_SWITCHES) - 1));
        }
    }
    assert_true(worse * 500 <= all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cubes_are_joined_as_the_chips_are),
        cmocka_unit_test(test_a_slice_and_its_change_of_shape),
        cmocka_unit_test(test_the_largest_slices_of_the_largest_pods),
        cmocka_unit_test(test_a_switch_that_is_out_moves_no_cube),
        cmocka_unit_test(test_the_change_is_nearly_always_the_smallest),
        cmocka_unit_test(test_refusals_name_their_reason),
        cmocka_unit_test(test_a_plan_for_another_state_changes_nothing),
        cmocka_unit_test(test_random_slices_come_and_go),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
