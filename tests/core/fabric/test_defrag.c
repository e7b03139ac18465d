/* Plans that move few small jobs: each does what it says, and none has fewer moves, by brute force. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include <stdlib.h>

#include "base/rng.h"
#include "core/fabric/defrag.h"

enum { PARTS_MAX = 64 };

static struct slice_shape shape_of(const char *text)
{
    struct slice_shape shape;
    assert_int_equal(slice_shape_parse(str_from(text), &shape, NULL), 0);
    return shape;
}

static uint16_t taken_of(const struct defrag_pod *pod, uint32_t cube)
{
    uint16_t taken = pod->blocked[cube];
    for (uint32_t i = 0; i < pod->part_count; i++)
        if (pod->parts[i].cube == cube)
            taken |= pod->parts[i].mask;
    return taken;
}

/* Adds a job of the shape at a place; false where it is not free. */
static bool add_part(struct defrag_pod *pod, uint32_t cube, uint8_t x, uint8_t y, uint8_t z,
                     const char *shape)
{
    struct slice_shape of = shape_of(shape);
    struct defrag_part part = {.cube = (uint16_t)cube};
    defrag_extent(&of, part.extent);
    part.mask = defrag_mask((uint8_t[]){x, y, z}, part.extent);
    if (taken_of(pod, cube) & part.mask)
        return false;
    assert_true(pod->part_count < PARTS_MAX);
    pod->parts[pod->part_count++] = part;
    return true;
}

static const char *const small_shapes[] = {"2x2x1", "2x2x2", "2x2x4", "2x4x4",
                                           "4x4x1", "4x4x2", "4x2x4", "2x4x1"};
enum { SMALL_SHAPES = sizeof small_shapes / sizeof *small_shapes };

static void fill_randomly(struct defrag_pod *pod, struct rng *rng, uint32_t tries)
{
    for (uint32_t i = 0; i < tries && pod->part_count < PARTS_MAX; i++) {
        struct slice_shape of = shape_of(small_shapes[rng_below(rng, SMALL_SHAPES)]);
        uint8_t extent[AXES], at[AXES];
        char text[SHAPE_TEXT_MAX];
        static const uint8_t cube[AXES] = {2, 2, 4};
        defrag_extent(&of, extent);
        for (int axis = 0; axis < AXES; axis++)
            at[axis] = (uint8_t)(extent[axis] * rng_below(rng, cube[axis] / extent[axis]));
        slice_shape_format(&of, text);
        if (add_part(pod, (uint32_t)rng_below(rng, pod->cubes), at[0], at[1], at[2], text))
            pod->parts[pod->part_count - 1].fixed = rng_below(rng, 12) == 0;
    }
}

/* --- brute force: every sequence of at most `depth` moves ------------------------------------------ */

static bool is_there(const struct defrag_pod *pod, const struct slice_shape *shape)
{
    uint8_t extent[AXES];
    defrag_extent(shape, extent);
    for (uint32_t cube = 0; cube < pod->cubes; cube++)
        for (uint8_t z = 0; z < 4; z = (uint8_t)(z + extent[2]))
            for (uint8_t y = 0; y < 2; y = (uint8_t)(y + extent[1]))
                for (uint8_t x = 0; x < 2; x = (uint8_t)(x + extent[0]))
                    if (!(taken_of(pod, cube) & defrag_mask((uint8_t[]){x, y, z}, extent)))
                        return true;
    return false;
}

static bool reach(struct defrag_pod *pod, const struct slice_shape *shape, uint32_t depth, bool *moved)
{
    if (is_there(pod, shape))
        return true;
    for (uint32_t i = 0; i < pod->part_count && depth > 0; i++) {
        struct defrag_part before = pod->parts[i];
        if (moved[i] || before.fixed)
            continue;
        for (uint32_t cube = 0; cube < pod->cubes; cube++)
            for (uint8_t z = 0; z < 4; z = (uint8_t)(z + before.extent[2]))
                for (uint8_t y = 0; y < 2; y = (uint8_t)(y + before.extent[1]))
                    for (uint8_t x = 0; x < 2; x = (uint8_t)(x + before.extent[0])) {
                        uint16_t mask = defrag_mask((uint8_t[]){x, y, z}, before.extent);
                        if (taken_of(pod, cube) & mask)
                            continue;
                        pod->parts[i].cube = (uint16_t)cube;
                        pod->parts[i].mask = mask;
                        moved[i] = true;
                        bool found = reach(pod, shape, depth - 1, moved);
                        moved[i] = false;
                        pod->parts[i] = before;
                        if (found)
                            return true;
                    }
    }
    return false;
}

static void compare(struct defrag_pod *pod, const char *text, uint32_t depth, uint32_t *ret_found,
                    uint32_t *ret_none)
{
    struct slice_shape shape = shape_of(text);
    struct defrag_plan plan;
    bool moved[PARTS_MAX] = {0};
    bool found = defrag_find(pod, &shape, depth, &plan);
    assert_true(plan.proved);
    if (found) {
        assert_true(plan.count <= depth && defrag_check(pod, &shape, &plan));
        if (plan.count > 0 && reach(pod, &shape, plan.count - 1, moved))
            fail_msg("%s: %u moves, and fewer will do", text, plan.count);
        *ret_found += plan.count > 0;
    } else {
        assert_false(reach(pod, &shape, depth, moved));
        ++*ret_none;
    }
}

static void test_no_plan_has_fewer_moves(void **state)
{
    struct rng rng;
    uint32_t found = 0, none = 0;
    rng_seed(&rng, 13);
    for (uint32_t run = 0; run < 3000; run++) {
        struct defrag_part parts[PARTS_MAX];
        struct defrag_pod pod = {.cubes = 2 + run % 2, .parts = parts};
        for (uint32_t cube = 0; cube < pod.cubes; cube++)
            if (rng_below(&rng, 4) == 0)
                pod.blocked[cube] = (uint16_t)(1u << rng_below(&rng, 16));
        fill_randomly(&pod, &rng, 3 + (uint32_t)rng_below(&rng, 12));
        compare(&pod, run % 3 ? small_shapes[rng_below(&rng, SMALL_SHAPES)] : "4x4x4", 2 + run % 5 / 3,
                &found, &none);
    }
    assert_true(found > 500 && none > 500);
}

static void test_jobs_make_room_for_each_other(void **state)
{
    struct defrag_part parts[PARTS_MAX];
    struct defrag_pod pod = {.cubes = 2, .parts = parts};
    struct slice_shape whole = shape_of("4x4x4");
    struct defrag_plan plan;
    /* Cube 0 has a half of a cube; cube 1 a machine in each half, of which one may join the other. */
    assert_true(add_part(&pod, 0, 0, 0, 0, "4x4x2"));
    assert_true(add_part(&pod, 1, 0, 0, 0, "2x2x1"));
    assert_true(add_part(&pod, 1, 1, 1, 3, "2x2x1"));
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_true(plan.proved && defrag_check(&pod, &whole, &plan));
    assert_int_equal(plan.count, 2);
    /* A third of them in the way, and nothing may stand in cube 0's other half. */
    pod.blocked[0] = 0x8000;
    parts[0].fixed = true;
    assert_true(add_part(&pod, 1, 0, 1, 1, "2x2x1"));
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_int_equal(plan.count, 3);
    assert_int_equal(plan.cube, 1);
    assert_false(defrag_find(&pod, &whole, 2, &plan));
    assert_true(plan.proved);
}

static void test_nothing_moves_where_a_place_is_free(void **state)
{
    struct defrag_part parts[PARTS_MAX];
    struct defrag_pod pod = {.cubes = 3, .parts = parts};
    struct slice_shape whole = shape_of("4x4x4");
    struct defrag_plan plan;
    assert_true(add_part(&pod, 0, 0, 0, 0, "2x2x1"));
    pod.blocked[1] = 1;
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_int_equal(plan.count, 0);
    assert_int_equal(plan.cube, 2);
    pod.blocked[2] = 0x0100;
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_int_equal(plan.count, 1);
    parts[0].fixed = true;
    assert_false(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_true(plan.proved);
}

/* Carries the moves out on a copy, one after the other, and looks at the places. */
static void check_room(const struct defrag_pod *before, const struct slice_shape *shape,
                       const struct defrag_room *room)
{
    struct defrag_part parts[PARTS_MAX];
    struct defrag_pod pod = *before;
    pod.parts = parts;
    memcpy(parts, before->parts, before->part_count * sizeof *parts);
    for (uint32_t i = 0; i < room->move_count; i++) {
        const struct defrag_move *move = &room->moves[i];
        struct defrag_part *part = &parts[move->part];
        assert_true(!part->fixed && part->cube == move->from_cube && part->mask == move->from_mask);
        assert_true(defrag_is_place(move->mask, part->extent));
        assert_int_equal(taken_of(&pod, move->cube) & move->mask, 0);
        part->cube = move->cube;
        part->mask = move->mask;
    }
    assert_int_equal(room->place_count, slice_shape_cubes(shape));
    for (uint32_t i = 0; i < room->place_count; i++) {
        assert_int_equal(taken_of(&pod, room->places[i].cube) & room->places[i].mask, 0);
        pod.blocked[room->places[i].cube] |= room->places[i].mask; /* each place once */
    }
}

static void test_room_for_several_cubes(void **state)
{
    static const char *const shapes[] = {"4x4x4", "4x4x8", "4x4x8-twisted", "4x4x12", "4x8x8", "2x4x4"};
    struct rng rng;
    uint32_t found = 0, none = 0;
    rng_seed(&rng, 21);
    for (uint32_t run = 0; run < 600; run++) {
        struct defrag_part parts[PARTS_MAX], moved[PARTS_MAX];
        struct defrag_pod pod = {.cubes = 6, .parts = parts}, after;
        struct slice_shape shape = shape_of(shapes[run % 6]);
        struct defrag_room room;
        fill_randomly(&pod, &rng, (uint32_t)rng_below(&rng, 20));
        after = pod;
        after.parts = moved;
        memcpy(moved, parts, sizeof parts);
        uint32_t most = (uint32_t)rng_below(&rng, DEFRAG_MOVES_MAX + 1);
        if (defrag_make_room(&after, &shape, most, &room)) {
            assert_true(room.move_count <= most);
            check_room(&pod, &shape, &room);
            found += room.move_count > 0;
        } else {
            none++;
        }
    }
    assert_true(found > 100 && none > 100);
}

static void test_the_check_notices_wrong_plans(void **state)
{
    struct defrag_part parts[PARTS_MAX];
    struct defrag_pod pod = {.cubes = 2, .parts = parts};
    struct slice_shape whole = shape_of("4x4x4");
    struct defrag_plan plan, wrong;
    assert_true(add_part(&pod, 0, 0, 0, 0, "2x2x2"));
    assert_true(add_part(&pod, 1, 0, 0, 0, "2x4x4"));
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_int_equal(plan.count, 1);
    assert_true(defrag_check(&pod, &whole, &plan));
    wrong = plan;
    wrong.count = 0;
    assert_false(defrag_check(&pod, &whole, &wrong)); /* nothing has moved */
    wrong = plan;
    wrong.cube = 1;
    assert_false(defrag_check(&pod, &whole, &wrong)); /* another cube than the one that is freed */
    wrong = plan;
    wrong.moves[0].mask = parts[1].mask;
    assert_false(defrag_check(&pod, &whole, &wrong)); /* no place of its shape */
    wrong = plan;
    wrong.moves[0].mask = 0x0011;
    assert_false(defrag_check(&pod, &whole, &wrong)); /* onto another job */
    parts[0].fixed = true;
    assert_false(defrag_check(&pod, &whole, &plan));
}

/* A full-sized pod: few moves are found within the limit of tries, and equal pods have equal plans. */
static void test_a_large_pod(void **state)
{
    struct rng rng;
    static struct defrag_part parts[DEFRAG_PARTS_MAX];
    struct defrag_pod pod = {.cubes = POD_CUBES_MAX, .parts = parts};
    struct slice_shape whole = shape_of("4x4x4");
    struct defrag_plan plan, again;
    rng_seed(&rng, 3);
    for (uint32_t cube = 0; cube < pod.cubes; cube++)
        for (uint32_t machine = 0; machine < CUBE_MACHINES; machine++) {
            struct defrag_part part = {.cube = (uint16_t)cube, .mask = (uint16_t)(1u << machine), {1, 1, 1}};
            if (rng_below(&rng, 4) == 0 || machine == cube % CUBE_MACHINES)
                parts[pod.part_count++] = part;
        }
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &plan));
    assert_true(plan.proved && defrag_check(&pod, &whole, &plan));
    assert_true(plan.count >= 1 && plan.count <= 3);
    assert_true(defrag_find(&pod, &whole, DEFRAG_MOVES_MAX, &again));
    assert_memory_equal(&plan, &again, sizeof plan);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_plan_has_fewer_moves),
        cmocka_unit_test(test_jobs_make_room_for_each_other),
        cmocka_unit_test(test_nothing_moves_where_a_place_is_free),
        cmocka_unit_test(test_room_for_several_cubes),
        cmocka_unit_test(test_the_check_notices_wrong_plans),
        cmocka_unit_test(test_a_large_pod),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
