/* Slurm's topology/torus3d: files that are read or refused, and boxes that are chosen by its rules. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <cmocka.h>
#include <stdio.h>

#include "doc/yaml.h"
#include "sim/capacity/torus3d.h"

static int read_text(struct arena *arena, const char *text, struct torus3d_file *ret_file,
                     struct error *error)
{
    struct doc_list docs;
    arena->limit_bytes = 64 << 20;
    if (yaml_parse_all(arena, str_from(text), &docs, error) < 0)
        fail_msg("%s", error->text);
    return torus3d_read(arena, docs.len ? docs.items[0] : NULL, ret_file, error);
}

static const char good[] = "- topology: flat\n"
                           "  flat: true\n"
                           "- topology: pods\n"
                           "  cluster_default: true\n"
                           "  torus3d:\n"
                           "    toruses:\n"
                           "    - name: pod1\n"
                           "      dims: {x: 4, y: 4, z: 2}\n"
                           "      nodes: node[01-31],spare\n"
                           "      placements:\n"
                           "      - dims: {x: 2, y: 2, z: 1}\n"
                           "      - dims: {x: 2, y: 2, z: 2}\n"
                           "        anchor_seed: {x: 3, y: 0, z: 0}\n"
                           "        anchor_spacing: {x: 1, y: 2, z: 2}\n"
                           "      - dims: {x: 4, y: 4, z: 2}\n"
                           "    - name: pod2\n"
                           "      dims: {x: 3, y: 1, z: 1}\n"
                           "      regions:\n"
                           "      - {anchor: {x: 1, y: 0, z: 0}, dims: {x: 2, y: 1, z: 1}, nodes: 'a,b'}\n"
                           "      placements: [{dims: {x: 2, y: 1, z: 1}}]\n";

static void test_a_file_is_read(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct torus3d_file file;
    struct error error = {0};
    if (read_text(&arena, good, &file, &error) < 0)
        fail_msg("%s", error.text);
    assert_int_equal(file.count, 2);
    const struct torus3d *pod = &file.toruses[0];
    assert_true(str_equal(pod->name, STR("pod1")) && pod->cells == 32 && pod->placement_count == 3);
    assert_true(str_equal(pod->nodes[0], STR("node01")) && str_equal(pod->nodes[30], STR("node31")) &&
                str_equal(pod->nodes[31], STR("spare")));
    assert_int_equal(pod->placements[0].anchors, 2 * 2 * 2);
    assert_int_equal(pod->placements[1].anchors, 4 * 2 * 1); /* a step of 1 goes round all four */
    assert_int_equal(pod->placements[2].anchors, 1);
    /* The first anchor of the second placement wraps from x = 3 to 0. */
    uint32_t cells[32], expected[] = {3, 0, 7, 4, 19, 16, 23, 20};
    torus3d_box(pod, &pod->placements[1], 0, cells);
    assert_memory_equal(cells, expected, sizeof expected);
    assert_true(file.toruses[1].nodes[0].len == 0 && str_equal(file.toruses[1].nodes[1], STR("a")));
}

static void check_refused(const char *torus, const char *message)
{
    char text[1024];
    struct arena arena ARENA_CLEANUP = {0};
    struct torus3d_file file = {.count = 77};
    struct error error = {0};
    snprintf(text, sizeof text, "- topology: t\n  torus3d:\n    toruses: [%s]\n", torus);
    assert_true(read_text(&arena, text, &file, &error) < 0);
    if (!strstr(error.text, message))
        fail_msg("%s: %s", torus, error.text);
    assert_int_equal(file.count, 77); /* untouched */
}

static void test_bad_files_are_refused(void **state)
{
    check_refused("{dims: {x: 1, y: 1, z: 1}, nodes: a}", "a name");
    check_refused("{name: t, nodes: a}", "toruses: expected dims");
    check_refused("{name: t, dims: {x: 1, y: 1}, nodes: a}", "dims.z: expected a number from 1 to 4096");
    check_refused("{name: t, dims: {x: 0, y: 1, z: 1}, nodes: a}", "dims.x");
    check_refused("{name: t, dims: {x: 4096, y: 4096, z: 4096}, nodes: a}", "together can have 65536");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: 'a,b'}", "more than 1 nodes");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: 'a['}", "one range in brackets");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: 'a[3-1]'}", "expected a number, or low-high");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: 'a[0-99999999999]'}", "expected a number");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: ''}", "a node without a name");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: [a]}", "nodes: expected a list such as");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: a, regions: []}", "no regions beside nodes");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, nodes: a, size: 3}", "unknown field size");
    check_refused("{name: t, dims: {x: 2, y: 1, z: 1}, nodes: a, placements: [{dims: {x: 3, y: 1, z: 1}}]}",
                  "dims.x: expected a number from 1 to 2");
    check_refused("{name: t, dims: {x: 2, y: 1, z: 1}, nodes: a, placements: [{anchor_seed: {}}]}", "dims");
    check_refused("{name: t, dims: {x: 2, y: 1, z: 1}, nodes: a, placements: {}}", "a list of at most 128");
    check_refused("{name: t, dims: {x: 2, y: 1, z: 1}, regions: [{anchor: {x: 1, y: 0, z: 0}, dims: "
                  "{x: 2, y: 1, z: 1}, nodes: a}]}",
                  "a region within the torus");
    check_refused("{name: t, dims: {x: 1, y: 1, z: 1}, regions: [{dims: {x: 1, y: 1, z: 1}, nodes: a}, "
                  "{dims: {x: 1, y: 1, z: 1}, nodes: b}]}",
                  "belongs to another region already");
    check_refused("", "one with torus3d");
}

/* Places a job, and takes its cells. */
static bool place(const struct torus3d_file *file, uint8_t is_free[2][32], uint32_t nodes,
                  uint32_t *ret_torus, uint32_t *ret_cells)
{
    const uint8_t *all[] = {is_free[0], is_free[1]};
    if (!torus3d_place(file, all, nodes, ret_torus, ret_cells))
        return false;
    for (uint32_t i = 0; i < nodes; i++)
        is_free[*ret_torus][ret_cells[i]] = 0;
    return true;
}

static void test_boxes_are_chosen_by_the_rules(void **state)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct torus3d_file file;
    struct error error = {0};
    uint8_t is_free[2][32];
    uint32_t torus, cells[32];
    memset(is_free, 1, sizeof is_free);
    assert_int_equal(read_text(&arena, good, &file, &error), 0);
    assert_false(place(&file, is_free, 3, &torus, cells)); /* no placement has three nodes */
    assert_true(place(&file, is_free, 2, &torus, cells));
    assert_true(torus == 1 && cells[0] == 1 && cells[1] == 2);
    assert_false(place(&file, is_free, 2, &torus, cells)); /* cell 0 has no node, so that none wraps */
    /* A small box goes where larger ones are spoiled already: the other level of the first one's box. */
    assert_true(place(&file, is_free, 4, &torus, cells));
    assert_true(torus == 0 && cells[0] == 0);
    assert_true(place(&file, is_free, 4, &torus, cells));
    assert_true(torus == 0 && cells[0] == 16);
    assert_false(place(&file, is_free, 32, &torus, cells));
    for (int i = 0; i < 3; i++)
        assert_true(place(&file, is_free, 8, &torus, cells));
    assert_false(place(&file, is_free, 8, &torus, cells));
    assert_false(place(&file, is_free, 4, &torus, cells));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_file_is_read),
        cmocka_unit_test(test_bad_files_are_refused),
        cmocka_unit_test(test_boxes_are_chosen_by_the_rules),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
