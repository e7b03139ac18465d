/* The quota tree: the five formulas by example, and what must hold in every tree. */
#include <stdarg.h>
#include <stddef.h>
#include <setjmp.h>
#include <stdint.h>
#include <cmocka.h>

#include "base/arena.h"
#include "base/rng.h"
#include "core/sched/quota.h"

static void set(struct quota_tree *tree, uint32_t node, uint32_t parent, int64_t nominal, int64_t borrowing,
                int64_t lending)
{
    tree->nodes[node].parent = parent;
    tree->nodes[node].cells[0].nominal = nominal;
    tree->nodes[node].cells[0].borrowing = borrowing;
    tree->nodes[node].cells[0].lending = lending;
}

/* A cohort of two queues: one lends 4 of its 10. */
static void test_two_queues(void **state)
{
    (void)state;
    struct quota_tree tree;
    quota_tree_init(&tree, 3, 1);
    set(&tree, 0, QUOTA_NONE, 2, -1, -1);
    set(&tree, 1, 0, 10, -1, 4);
    set(&tree, 2, 0, 5, 3, -1);
    quota_tree_bind(&tree);
    assert_int_equal(quota_local(&tree, 1, 0), 6);
    assert_int_equal(tree.nodes[0].cells[0].subtree, 2 + 4 + 5);
    assert_int_equal(quota_potential(&tree, 1, 0), 6 + 11);
    assert_int_equal(quota_potential(&tree, 2, 0), 8); /* its own 5 and 3 borrowed */
    quota_use(&tree, 1, 0, 7);                         /* 6 stay below, 1 is seen above */
    assert_int_equal(tree.nodes[0].cells[0].usage, 1);
    assert_int_equal(quota_available(&tree, 1, 0), 10);
    assert_int_equal(quota_available(&tree, 2, 0), 8);
    quota_use(&tree, 2, 0, 8);
    assert_true(quota_borrows(&tree, 2, 0, 0));
    assert_int_equal(quota_available(&tree, 2, 0), 0);
    assert_int_equal(quota_available(&tree, 1, 0), 2);
    bool above;
    assert_int_equal(quota_borrow_height(&tree, 1, 0, 3, &above), 0);
    assert_int_equal(quota_borrow_height(&tree, 1, 0, 4, &above), 1);
    assert_false(above);
    quota_tree_done(&tree);
}

static void test_cycle(void **state)
{
    (void)state;
    struct quota_tree tree;
    quota_tree_init(&tree, 5, 1);
    set(&tree, 0, 1, 1, -1, -1);
    set(&tree, 1, 0, 1, -1, -1);
    set(&tree, 2, 1, 10, -1, -1);
    set(&tree, 3, QUOTA_NONE, 0, -1, -1);
    set(&tree, 4, 3, 7, -1, -1);
    quota_tree_bind(&tree);
    assert_true(tree.nodes[0].broken && tree.nodes[1].broken && tree.nodes[2].broken);
    assert_false(tree.nodes[3].broken || tree.nodes[4].broken);
    assert_int_equal(quota_available(&tree, 2, 0), 0);
    assert_int_equal(quota_available(&tree, 4, 0), 7);
    quota_tree_done(&tree);
}

static int64_t random_limit(struct rng *rng)
{
    return rng_below(rng, 3) == 0 ? QUOTA_NO_LIMIT : (int64_t)rng_below(rng, 30);
}

/* usage of a cohort, as the formula says, from its children. */
static int64_t usage_by_formula(const struct quota_tree *tree, uint32_t node, size_t cell)
{
    int64_t sum = 0;
    for (uint32_t n = 0; n < tree->node_count; n++) {
        if (tree->nodes[n].parent != node)
            continue;
        int64_t over = tree->nodes[n].cells[cell].usage - quota_local(tree, n, cell);
        sum += over > 0 ? over : 0;
    }
    return sum;
}

static void check_tree(const struct quota_tree *tree, size_t leaves_from)
{
    for (uint32_t n = 0; n < tree->node_count; n++) {
        for (size_t c = 0; c < tree->cell_count; c++) {
            if (n < leaves_from)
                assert_int_equal(tree->nodes[n].cells[c].usage, usage_by_formula(tree, n, c));
            assert_true(quota_available(tree, n, c) <= quota_potential(tree, n, c));
        }
    }
}

static void one_walk(uint64_t seed)
{
    enum { COHORTS = 6, QUEUES = 10, CELLS = 3, STEPS = 400 };
    struct rng rng;
    rng_seed(&rng, seed);
    struct quota_tree tree;
    quota_tree_init(&tree, COHORTS + QUEUES, CELLS);
    for (uint32_t n = 0; n < COHORTS + QUEUES; n++) {
        uint32_t most = n < COHORTS ? n : COHORTS;
        if (most > 0 && rng_below(&rng, 8) > 0)
            tree.nodes[n].parent = (uint32_t)rng_below(&rng, most);
        for (size_t c = 0; c < CELLS; c++) {
            tree.nodes[n].cells[c].nominal = (int64_t)rng_below(&rng, 40);
            tree.nodes[n].cells[c].borrowing = random_limit(&rng);
            tree.nodes[n].cells[c].lending = random_limit(&rng);
        }
    }
    quota_tree_bind(&tree);
    int64_t held[QUEUES][CELLS] = {{0}};
    for (int step = 0; step < STEPS; step++) {
        uint32_t q = (uint32_t)rng_below(&rng, QUEUES), node = COHORTS + q;
        size_t c = rng_below(&rng, CELLS);
        int64_t amount = (int64_t)rng_below(&rng, 20), available = quota_available(&tree, node, c);
        if (rng_below(&rng, 2) && amount <= available) {
            quota_use(&tree, node, c, amount);
            held[q][c] += amount;
            /* Usage through available() comes off available() one to one. */
            assert_int_equal(quota_available(&tree, node, c), available - amount);
        } else if (amount <= held[q][c]) {
            quota_release(&tree, node, c, amount);
            held[q][c] -= amount;
            assert_true(quota_available(&tree, node, c) <= available + amount);
        }
        check_tree(&tree, COHORTS);
        for (uint32_t n = 0; n < COHORTS; n++)
            for (size_t k = 0; k < CELLS; k++) /* nobody was given what is not there */
                assert_true(tree.nodes[n].cells[k].usage <= tree.nodes[n].cells[k].subtree ||
                            tree.nodes[n].parent != QUOTA_NONE);
    }
    for (uint32_t q = 0; q < QUEUES; q++)
        for (size_t c = 0; c < CELLS; c++)
            quota_release(&tree, COHORTS + q, c, held[q][c]);
    for (uint32_t n = 0; n < COHORTS + QUEUES; n++)
        for (size_t c = 0; c < CELLS; c++)
            assert_int_equal(tree.nodes[n].cells[c].usage, 0);
    quota_tree_done(&tree);
}

static void test_walks(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 100; seed++)
        one_walk(seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_two_queues),
        cmocka_unit_test(test_cycle),
        cmocka_unit_test(test_walks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
