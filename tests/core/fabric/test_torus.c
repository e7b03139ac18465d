/* Shapes as text, the wiring of a pod, and the chip graph of slices against the rules of torus.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>

#include "base/arena.h"
#include "core/fabric/torus.h"

static struct slice_shape shape_from(const char *text)
{
    struct slice_shape shape;
    struct error error = {0};
    if (slice_shape_parse(str_from(text), &shape, &error) < 0)
        fail_msg("%s: %s", text, error.text);
    return shape;
}

static void test_shapes_are_read_and_written(void **state)
{
    static const struct {
        const char *text;
        uint32_t chips, cubes;
    } good[] = {{"2x2x1", 4, 1},
                {"2x4x4", 32, 1},
                {"4x4x4", 64, 1},
                {"4x4x8", 128, 2},
                {"4x12x8", 384, 6},
                {"4x4x8-twisted", 128, 2},
                {"4x4x256", 4096, 64},
                {"16x24x24", 9216, 144},
                {"12x12x24-twisted", 3456, 54},
                {"8x16x16-twisted", 2048, 32}};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        struct slice_shape shape = shape_from(good[i].text);
        char text[SHAPE_TEXT_MAX];
        slice_shape_format(&shape, text);
        assert_string_equal(text, good[i].text);
        assert_int_equal(slice_shape_chips(&shape), good[i].chips);
        assert_int_equal(slice_shape_cubes(&shape), good[i].cubes);
    }
}

static void test_wrong_shapes_are_named(void **state)
{
    static const char *const bad[][2] = {
        {"", "expected three extents"},
        {"4x4", "expected three extents"},
        {"4x4x", "extent along Z is \"\""},
        {"4x4x8x4", "extent along Z is \"8x4\""},
        {"4x-4x8", "suffix \"-4x8\""},
        {"4xax8", "extent along Y is \"a\""},
        {"4x4x0", "extent along Z is \"0\""},
        {"4x4x6", "6 chips along Z: expected a multiple of 4"},
        {"2x4x8", "2 chips along X: expected a multiple of 4"},
        {"16x24x25", "25 chips along Z: expected a multiple of 4"},
        {"1x2x2", "1 chips along X: expected 2 or 4"},
        {"2x2x3", "3 chips along Z: expected 1, 2 or 4"},
        {"4x4x8-bent", "suffix \"-bent\": expected \"-twisted\""},
        {"4x4x4-twisted", "only (4k, 4k, 8k) and (4k, 8k, 8k)"},
        {"4x8x4-twisted", "only (4k, 4k, 8k) and (4k, 8k, 8k)"},
        {"2x2x4-twisted", "" /* a mesh has no wraps to twist */},
        {"24x24x24", "216 cubes"},
        {"4x4x99999999999999999999", "extent along Z"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        struct slice_shape shape = {.extent = {7, 7, 7}};
        struct error error = {0};
        assert_int_equal(slice_shape_parse(str_from(bad[i][0]), &shape, &error), ERROR_INVALID);
        if (!strstr(error.text, bad[i][1]))
            fail_msg("%s: %s", bad[i][0], error.text);
        assert_int_equal(shape.extent[0], 7); /* untouched */
    }
}

static void test_wiring_of_a_cube(void **state)
{
    uint32_t optical = 0, machines[CUBE_MACHINES] = {0};
    for (uint32_t chip = 0; chip < CUBE_CHIPS; chip++) {
        machines[cube_chip_machine(chip)]++;
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            struct link_end end, back;
            if (!cube_chip_optical(63, chip, port, &end))
                continue;
            optical++;
            assert_int_equal(link_end_chip(end), chip);
            assert_int_equal(2 * end.axis + end.polarity, port);
            struct pod_switch which = {end.axis, end.index};
            assert_true(switch_port_end(64, which, link_end_port(64, end), &back));
            assert_memory_equal(&back, &end, sizeof end);
        }
    }
    assert_int_equal(optical, CUBE_LINKS);
    for (int i = 0; i < CUBE_MACHINES; i++)
        assert_int_equal(machines[i], 4);
    assert_int_equal(link_end_port(64, (struct link_end){3, 0, 0, POLARITY_PLUS}), 4);
    assert_int_equal(link_end_port(64, (struct link_end){3, 0, 0, POLARITY_MINUS}), 68);
    assert_int_equal(link_end_port(144, (struct link_end){3, 0, 0, POLARITY_MINUS}), 154);
    struct link_end end;
    struct pod_switch which;
    assert_false(switch_port_end(16, (struct pod_switch){0, 0}, 0, &end));
    assert_false(switch_port_end(16, (struct pod_switch){0, 0}, 17, &end));
    assert_false(switch_port_end(16, (struct pod_switch){0, 0}, 129, &end));
    assert_int_equal(pod_switch_parse(STR("z15"), &which, NULL), 0);
    assert_int_equal(pod_switch_number(which), 47);
    assert_int_equal(pod_switch_parse(STR("z16"), &which, NULL), ERROR_INVALID);
    assert_int_equal(pod_switch_parse(STR("x05"), &which, NULL), ERROR_INVALID);
}

/* Every link leads back, and rings are as long as they are said to be, with their places in order. */
static void check_graph(const char *text)
{
    struct slice_shape shape = shape_from(text);
    struct torus torus;
    torus_init(&torus, &shape);
    for (uint32_t chip = 0; chip < torus.chips; chip++)
        for (uint32_t port = 0; port < CHIP_PORTS; port++) {
            uint16_t next = torus.next[chip * CHIP_PORTS + port];
            if (next == TORUS_NONE)
                continue;
            assert_int_equal(torus.next[next * CHIP_PORTS + (port ^ 1)], chip);
            uint32_t length = torus_ring_length(&torus, port / 2),
                     at = torus_ring_at(&torus, port / 2, (uint16_t)chip);
            if (slice_shape_is_whole(&shape))
                assert_int_equal(torus_ring_at(&torus, port / 2, next),
                                 (at + (port % 2 ? length - 1 : 1)) % length);
        }
    assert_true(torus_connected(&torus));
    torus_done(&torus);
}

static void test_graphs_are_symmetric(void **state)
{
    static const char *const shapes[] = {"2x2x1",         "2x4x4",         "4x4x4",         "4x8x12",
                                         "4x4x8-twisted", "4x8x8-twisted", "8x8x16-twisted"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++)
        check_graph(shapes[i]);
}

/* The longest way and the sum of all ways from a chip, as the theory of these lattices has them. */
static void check_distances(const char *text, uint32_t longest, uint32_t sum)
{
    struct slice_shape shape = shape_from(text);
    struct torus torus;
    torus_init(&torus, &shape);
    uint16_t *steps = mem_alloc(2 * torus.chips * sizeof *steps);
    for (uint32_t from = 0; from < torus.chips; from += 1 + torus.chips / 7) {
        uint32_t most = 0, all = 0;
        torus_distances(&torus, (uint16_t)from, steps + torus.chips, steps);
        for (uint32_t chip = 0; chip < torus.chips; chip++) {
            most = steps[chip] > most ? steps[chip] : most;
            all += steps[chip];
        }
        assert_int_equal(most, longest);
        assert_int_equal(all, sum);
    }
    mem_free(steps);
    torus_done(&torus);
}

static void test_distances_are_those_of_the_theory(void **state)
{
    check_distances("4x4x4", 6, 192);
    check_distances("4x4x8", 8, 512);
    check_distances("4x4x8-twisted", 6, 440);
    check_distances("4x8x8-twisted", 6, 1104);
    check_distances("8x8x16-twisted", 12, 7136);
    check_distances("8x16x16-twisted", 12, 17856);
    check_distances("12x12x24-twisted", 18, 36216);
}

static void test_a_switch_kills_one_link_of_every_cube(void **state)
{
    static const char *const shapes[] = {"4x4x4", "8x8x8", "4x4x8-twisted", "8x16x16-twisted"};
    for (size_t i = 0; i < sizeof shapes / sizeof *shapes; i++) {
        struct slice_shape shape = shape_from(shapes[i]);
        for (uint32_t number = 0; number < POD_SWITCHES; number += 5) {
            struct torus torus, copy;
            struct pod_switch which = pod_switch_at(number), other;
            torus_init(&torus, &shape);
            assert_int_equal(torus_kill_switch(&torus, which), slice_shape_cubes(&shape));
            assert_int_equal(torus_kill_switch(&torus, which), 0);
            assert_int_equal(torus.dead[which.axis], slice_shape_cubes(&shape));
            for (uint32_t link = 0; link < torus.chips * CHIP_PORTS; link++) {
                uint16_t chip = (uint16_t)(link / CHIP_PORTS);
                uint32_t port = link % CHIP_PORTS;
                bool same = torus_link_switch(&torus, chip, port, &other) && other.axis == which.axis &&
                            other.index == which.index;
                assert_int_equal(torus_link_live(&torus, chip, port), !same);
            }
            assert_true(torus_connected(&torus));
            torus_copy(&copy, &torus);
            assert_memory_equal(copy.live, torus.live, torus.chips);
            torus_done(&copy);
            torus_done(&torus);
        }
    }
}

static void test_a_chip_without_links_is_noticed(void **state)
{
    struct slice_shape shape = shape_from("4x4x4");
    struct torus torus;
    torus_init(&torus, &shape);
    uint16_t chip = torus_chip(&torus, 1, 2, 3);
    for (uint32_t port = 0; port < CHIP_PORTS; port++) {
        assert_true(torus_connected(&torus));
        assert_true(torus_kill_link(&torus, chip, port));
        assert_false(torus_kill_link(&torus, chip, port));
    }
    assert_false(torus_connected(&torus));
    torus_done(&torus);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shapes_are_read_and_written),
        cmocka_unit_test(test_wrong_shapes_are_named),
        cmocka_unit_test(test_wiring_of_a_cube),
        cmocka_unit_test(test_graphs_are_symmetric),
        cmocka_unit_test(test_distances_are_those_of_the_theory),
        cmocka_unit_test(test_a_switch_kills_one_link_of_every_cube),
        cmocka_unit_test(test_a_chip_without_links_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
