/* quota.h - the arithmetic of shared quota: a tree of queues and cohorts that lend to each other.
 *
 * Pure numbers: each node has a parent (or is a root) and, for every *cell* (one resource of one flavour), a
 * nominal quota, a borrowing limit and a lending limit. Leaves are ClusterQueues, inner nodes cohorts.
 *
 *     local(n)      what n keeps to itself:  max(0, subtree(n) - lending(n)), 0 without a lending limit
 *     subtree(n)    nominal(n) + sum over children c of  subtree(c) - local(c)
 *     usage(n)      of a cohort: sum over children c of  max(0, usage(c) - local(c))
 *     available(n)  root: subtree - usage; else max(0, local - usage)
 *                   + min(available(parent), (subtree - local) - max(0, usage - local) + borrowing)
 *     potential(n)  the same with nothing used
 *
 * Units are the caller's (milli-CPUs, bytes, chips); values are at most QUOTA_MAX, sums saturate there.
 * Source: kubernetes-sigs/kueue, "Hierarchical cohorts" (KEP-79). No recursion deeper than QUOTA_DEPTH_MAX.
 */
#ifndef PHX_CORE_SCHED_QUOTA_H
#define PHX_CORE_SCHED_QUOTA_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUOTA_MAX  (INT64_C(1) << 60)
#define QUOTA_NONE UINT32_MAX  /* no node */
enum { QUOTA_NO_LIMIT = -1 };  /* as a borrowing or lending limit */
enum { QUOTA_DEPTH_MAX = 64 }; /* deeper trees are refused like cycles */

struct quota_cell {
    int64_t nominal, borrowing, lending; /* the last two may be QUOTA_NO_LIMIT */
    int64_t subtree, usage;              /* derived */
};
struct quota_node {
    uint32_t parent;          /* QUOTA_NONE: a root */
    uint32_t depth;           /* of a root: 0 */
    bool broken;              /* on a cycle, below one, or too deep: the node has no quota */
    struct quota_cell *cells; /* [tree->cell_count] */
};
struct quota_tree {
    struct quota_node *nodes;
    size_t node_count, cell_count;
    struct quota_cell *cells; /* owns the cells of all nodes */
    uint32_t *order;          /* nodes, children before their parents */
};

/* Makes nodes without parent, quota, usage and limits. The caller sets nominal, borrowing, lending and
 * parents, then calls quota_tree_bind. */
void quota_tree_init(struct quota_tree *tree, size_t node_count, size_t cell_count);
void quota_tree_done(struct quota_tree *tree);
/* Finds cycles, derives subtree quotas, and clears usage. Every nominal quota must be 0 to QUOTA_MAX. */
void quota_tree_bind(struct quota_tree *tree);
/* Copies a bound tree with its usage, for a simulation; released with quota_tree_done. */
struct quota_tree quota_tree_copy(const struct quota_tree *tree);
/* Returns the node's parent, or QUOTA_NONE if the node is a root or broken. */
uint32_t quota_parent(const struct quota_tree *tree, uint32_t node);

/* Return local(n), available(n) and potential(n) as defined above. quota_available is negative if usage
 * exceeds a quota that was reduced. */
int64_t quota_local(const struct quota_tree *tree, uint32_t node, size_t cell);
int64_t quota_available(const struct quota_tree *tree, uint32_t node, size_t cell);
int64_t quota_potential(const struct quota_tree *tree, uint32_t node, size_t cell);
/* Add usage to the node and, where it exceeds the node's local quota, to its ancestors; remove it again. The
 * two are exact inverses of each other, in any order. `amount` must not be negative. */
void quota_use(struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount);
void quota_release(struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount);
/* Returns whether the usage of the node and of all its ancestors can be `amount` larger without coming near
 * the range of int64_t. Quotas that are practically infinite can fill it; then nothing is left to be kept
 * from others. */
bool quota_can_count(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount);
/* Returns whether the node, with `amount` more, would use more than its subtree's own quota. */
bool quota_borrows(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount);
/* Returns how far up `amount` must be borrowed: 0 if the node has enough, otherwise the height of the lowest
 * ancestor whose subtree has enough, or of the root if none has. *ret_above: further nodes exist above that
 * node, from which quota can be reclaimed. */
uint32_t quota_borrow_height(const struct quota_tree *tree, uint32_t node, size_t cell, int64_t amount,
                             bool *ret_above);
/* Reduces `rest` ([cell_count], the amounts requested from `node`; -1: not requested) to the amounts that
 * remain to be requested from the node's parent. Returns whether the unused part of the subtree's own quota
 * covers every amount. */
bool quota_climb(const struct quota_tree *tree, uint32_t node, int64_t *rest);
/* Returns the root above the node, or the first broken node on the way. */
uint32_t quota_root(const struct quota_tree *tree, uint32_t node);

#endif
