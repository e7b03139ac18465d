#include "core/sched/quota.h"

#include "base/arena.h"
#include "base/check.h"

static int64_t saturate(int64_t value)
{
    return value > QUOTA_MAX ? QUOTA_MAX : value;
}

static int64_t positive(int64_t value)
{
    return value > 0 ? value : 0;
}

static struct quota_cell *cell_of(const struct quota_tree *tree, uint32_t node, size_t cell)
{
    CHECK(node < tree->node_count && cell < tree->cell_count);
    return &tree->nodes[node].cells[cell];
}

void quota_tree_init(struct quota_tree *tree, size_t node_count, size_t cell_count)
{
    *tree = (struct quota_tree){.node_count = node_count, .cell_count = cell_count};
    tree->nodes = mem_alloc((node_count + 1) * sizeof(*tree->nodes));
    tree->cells = mem_alloc((node_count * cell_count + 1) * sizeof(*tree->cells));
    tree->order = mem_alloc((node_count + 1) * sizeof(*tree->order));
    for (size_t n = 0; n < node_count; n++) {
        tree->nodes[n].parent = QUOTA_NONE;
        tree->nodes[n].cells = &tree->cells[n * cell_count];
        for (size_t c = 0; c < cell_count; c++)
            tree->nodes[n].cells[c].borrowing = tree->nodes[n].cells[c].lending = QUOTA_NO_LIMIT;
    }
}

void quota_tree_done(struct quota_tree *tree)
{
    mem_free(tree->nodes);
    mem_free(tree->cells);
    mem_free(tree->order);
    *tree = (struct quota_tree){0};
}

struct quota_tree quota_tree_copy(const struct quota_tree *tree)
{
    struct quota_tree copy;
    quota_tree_init(&copy, tree->node_count, tree->cell_count);
    mem_copy(copy.nodes, tree->nodes, tree->node_count * sizeof(*tree->nodes));
    mem_copy(copy.cells, tree->cells, tree->node_count * tree->cell_count * sizeof(*tree->cells));
    mem_copy(copy.order, tree->order, tree->node_count * sizeof(*tree->order));
    for (size_t n = 0; n < tree->node_count; n++)
        copy.nodes[n].cells = &copy.cells[n * tree->cell_count];
    return copy;
}

/* Computes depths. Marks nodes that reach no root within QUOTA_DEPTH_MAX as broken: those on or below a
 * cycle, and those that are too deep. */
static void find_depths(struct quota_tree *tree)
{
    for (uint32_t n = 0; n < tree->node_count; n++) {
        uint32_t depth = 0;
        for (uint32_t at = tree->nodes[n].parent; at != QUOTA_NONE && depth <= QUOTA_DEPTH_MAX; depth++) {
            CHECK(at < tree->node_count);
            at = tree->nodes[at].parent;
        }
        tree->nodes[n].broken = depth > QUOTA_DEPTH_MAX;
        tree->nodes[n].depth = depth;
    }
}

/* Sorts nodes deepest first, with a counting sort: it is stable, so equal trees give equal orders. */
static void sort_by_depth(struct quota_tree *tree)
{
    uint32_t counts[QUOTA_DEPTH_MAX + 3] = {0};
    for (uint32_t n = 0; n < tree->node_count; n++) {
        CHECK(tree->nodes[n].depth <= QUOTA_DEPTH_MAX + 1);
        counts[QUOTA_DEPTH_MAX + 1 - tree->nodes[n].depth + 1]++;
    }
    for (size_t d = 1; d < sizeof(counts) / sizeof(*counts); d++)
        counts[d] += counts[d - 1];
    for (uint32_t n = 0; n < tree->node_count; n++)
        tree->order[counts[QUOTA_DEPTH_MAX + 1 - tree->nodes[n].depth]++] = n;
}

void quota_tree_bind(struct quota_tree *tree)
{
    find_depths(tree);
    sort_by_depth(tree);
    for (uint32_t n = 0; n < tree->node_count; n++) {
        for (size_t c = 0; c < tree->cell_count; c++) {
            struct quota_cell *cell = &tree->nodes[n].cells[c];
            CHECK(cell->nominal >= 0 && cell->nominal <= QUOTA_MAX);
            cell->subtree = tree->nodes[n].broken ? 0 : cell->nominal;
            cell->usage = 0;
        }
    }
    for (size_t i = 0; i < tree->node_count; i++) {
        uint32_t n = tree->order[i], parent = tree->nodes[n].parent;
        if (parent == QUOTA_NONE || tree->nodes[n].broken)
            continue;
        for (size_t c = 0; c < tree->cell_count; c++) {
            struct quota_cell *above = cell_of(tree, parent, c);
            above->subtree =
                saturate(above->subtree + tree->nodes[n].cells[c].subtree - quota_local(tree, n, c));
        }
    }
}

int64_t quota_local(const struct quota_tree *tree, uint32_t node, size_t cell)
{
    const struct quota_cell *at = cell_of(tree, node, cell);
    return at->lending == QUOTA_NO_LIMIT ? 0 : positive(at->subtree - at->lending);
}

int64_t quota_available(const struct quota_tree *tree, uint32_t node, size_t cell)
{
    const struct quota_cell *at = cell_of(tree, node, cell);
    if (tree->nodes[node].parent == QUOTA_NONE || tree->nodes[node].broken)
        return at->subtree - at->usage;
    int64_t local = quota_local(tree, node, cell);
    int64_t above = quota_available(tree, tree->nodes[node].parent, cell);
    if (at->borrowing != QUOTA_NO_LIMIT) {
        int64_t most = at->subtree - local - positive(at->usage - local) + at->borrowing;
        above = most < above ? most : above;
    }
    return positive(local - at->usage) + above;
}

int64_t quota_potential(const struct quota_tree *tree, uint32_t node, size_t cell)
{
    const struct quota_cell *at = cell_of(tree, node, cell);
    if (tree->nodes[node].parent == QUOTA_NONE || tree->nodes[node].broken)
        return at->subtree;
    int64_t most =
        saturate(quota_local(tree, node, cell) + quota_potential(tree, tree->nodes[node].parent, cell));
    if (at->borrowing != QUOTA_NO_LIMIT && saturate(at->subtree + at->borrowing) < most)
        most = saturate(at->subtree + at->borrowing);
    return most;
}

bool quota_can_count(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount)
{
    CHECK(amount >= 0);
    for (; node != QUOTA_NONE && !tree->nodes[node].broken; node = tree->nodes[node].parent)
        if (tree->nodes[node].cells[cell].usage > INT64_MAX / 2 - amount)
            return false;
    return true;
}

void quota_use(struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount)
{
    CHECK(amount >= 0);
    while (amount > 0) {
        struct quota_cell *at = cell_of(tree, node, cell);
        int64_t kept = positive(quota_local(tree, node, cell) - at->usage);
        at->usage += amount;
        amount -= kept;
        node = tree->nodes[node].parent;
        if (node == QUOTA_NONE || tree->nodes[node].broken)
            return;
    }
}

void quota_release(struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount)
{
    CHECK(amount >= 0);
    while (amount > 0) {
        struct quota_cell *at = cell_of(tree, node, cell);
        int64_t above = at->usage - quota_local(tree, node, cell);
        CHECK(at->usage >= amount);
        at->usage -= amount;
        amount = amount < above ? amount : above;
        node = tree->nodes[node].parent;
        if (node == QUOTA_NONE || tree->nodes[node].broken)
            return;
    }
}

bool quota_borrows(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount)
{
    CHECK(amount >= 0);
    const struct quota_cell *at = cell_of(tree, node, cell);
    return at->usage + amount > at->subtree;
}

static uint32_t height(const struct quota_tree *tree, uint32_t node)
{
    uint32_t deepest = tree->nodes[node].depth;
    for (uint32_t n = 0; n < tree->node_count; n++) {
        if (tree->nodes[n].broken || tree->nodes[n].depth <= deepest)
            continue;
        uint32_t at = n;
        while (at != QUOTA_NONE && at != node)
            at = tree->nodes[at].parent;
        if (at == node)
            deepest = tree->nodes[n].depth;
    }
    CHECK(deepest - tree->nodes[node].depth <= QUOTA_DEPTH_MAX);
    return deepest - tree->nodes[node].depth;
}

uint32_t quota_borrow_height(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount,
                             bool *ret_above)
{
    CHECK(node < tree->node_count && amount >= 0);
    uint32_t parent = tree->nodes[node].broken ? QUOTA_NONE : tree->nodes[node].parent;
    *ret_above = parent != QUOTA_NONE;
    if (parent == QUOTA_NONE || !quota_borrows(tree, node, cell, amount))
        return 0;
    int64_t left = amount - positive(quota_local(tree, node, cell) - cell_of(tree, node, cell)->usage);
    for (uint32_t at = parent;; at = tree->nodes[at].parent) {
        *ret_above = tree->nodes[at].parent != QUOTA_NONE;
        if (!*ret_above || !quota_borrows(tree, at, cell, left))
            return height(tree, at);
        left -= positive(quota_local(tree, at, cell) - cell_of(tree, at, cell)->usage);
    }
}

uint32_t quota_parent(const struct quota_tree *tree, uint32_t node)
{
    CHECK(node < tree->node_count);
    return tree->nodes[node].broken ? QUOTA_NONE : tree->nodes[node].parent;
}

bool quota_climb(const struct quota_tree *tree, uint32_t node, int64_t *rest)
{
    bool covered = true;
    for (size_t c = 0; c < tree->cell_count; c++) {
        if (rest[c] < 0)
            continue;
        covered &= !quota_borrows(tree, node, c, rest[c]);
        rest[c] = positive(rest[c] - positive(quota_local(tree, node, c) - cell_of(tree, node, c)->usage));
    }
    return covered;
}

uint32_t quota_root(const struct quota_tree *tree, uint32_t node)
{
    while (quota_parent(tree, node) != QUOTA_NONE)
        node = tree->nodes[node].parent;
    return node;
}
