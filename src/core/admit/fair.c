/* fair.c - dominant resource shares and the preemption by them (Kueue, "Fair sharing").
 *
 *     share(n) = max over resources r of  borrowed(n, r) / lendable(parent(n), r) * 1000 / weight(n)
 *
 * The share is 0 for a node that borrows nothing, and infinite for one that borrows with weight 0. Resources
 * are summed over flavours. The search for victims descends from the root, at each cohort into the child with
 * the largest share. Whether a victim may be preempted is decided where the paths from the root to the two
 * queues part.
 */
#include "core/admit/internal.h"

/* Returns how much of a resource the parent could lend: over all its flavours, its subtree's quota and the
 * quota that it may borrow itself. */
static int64_t lendable(const struct tree *tree, const struct quota_tree *quota, uint32_t parent,
                        struct str resource)
{
    CHECK(parent < quota->node_count);
    int64_t sum = 0;
    for (size_t c = 0; c < quota->cell_count; c++)
        if (str_equal(tree->cell_resources[c], resource))
            sum += quota_potential(quota, parent, c);
    return sum;
}

static bool is_first_of_resource(const struct tree *tree, size_t cell)
{
    for (size_t c = 0; c < cell; c++)
        if (str_equal(tree->cell_resources[c], tree->cell_resources[cell]))
            return false;
    return true;
}

static int64_t borrowed_of(const struct tree *tree, const struct quota_node *node, size_t cell)
{
    CHECK(cell < tree->quota.cell_count);
    int64_t borrowed = 0;
    for (size_t c = cell; c < tree->quota.cell_count; c++) {
        int64_t over = node->cells[c].usage - node->cells[c].subtree;
        if (over > 0 && str_equal(tree->cell_resources[c], tree->cell_resources[cell]))
            borrowed += over;
    }
    return borrowed;
}

struct fair_share fair_share(const struct tree *tree, const struct quota_tree *quota, uint32_t node)
{
    CHECK(node < quota->node_count && quota->node_count == tree->quota.node_count);
    CHECK(quota->cell_count == tree->quota.cell_count); /* `quota` is the tree's, or a copy */
    CHECK(tree->weights_milli[node] >= 0);
    struct fair_share share = {0};
    if (quota_parent(quota, node) == QUOTA_NONE)
        return share;
    for (size_t c = 0; c < quota->cell_count; c++) {
        if (!is_first_of_resource(tree, c))
            continue;
        int64_t borrowed = borrowed_of(tree, &quota->nodes[node], c);
        if (borrowed <= 0)
            continue;
        int64_t of = lendable(tree, quota, quota_parent(quota, node), tree->cell_resources[c]);
        __int128 amount = of > 0 ? (__int128)borrowed * 1000 * FAIR_SHARE_UNIT / of : 0;
        share.amount = amount > share.amount ? amount : share.amount;
        share.borrows = true;
    }
    share.endless = share.amount > 0 && tree->weights_milli[node] == 0;
    if (tree->weights_milli[node] > 0)
        share.amount = share.amount * 1000 / tree->weights_milli[node];
    CHECK(share.amount >= 0 && (share.borrows || share.amount == 0));
    return share;
}

int fair_share_compare(struct fair_share a, struct fair_share b)
{
    if (a.endless != b.endless)
        return a.endless ? 1 : -1;
    return a.amount < b.amount ? -1 : a.amount > b.amount;
}

/* --- the order of queues ---------------------------------------------------------------------- */

/* Candidates of one queue, the best first. */
struct fair_queue {
    const struct cluster_queue *queue;
    VEC(struct victim) left;
};
typedef VEC(struct fair_queue) fair_queues;

/* The order in which the tree is searched for victims. Nodes that will yield no more victims are pruned. */
struct fair_order {
    struct search *search;
    fair_queues queues;
    struct fair_queue **by_node; /* [node_count] NULL: no candidates */
    bool *pruned, *ours;         /* [node_count] `ours`: the preemptor's queue and the cohorts above it */
};

static void order_init(struct fair_order *order, struct search *search, const victims *candidates)
{
    size_t nodes = search->quota->node_count;
    *order = (struct fair_order){.search = search};
    order->by_node = ARENA_ARRAY(&search->arena, struct fair_queue *, nodes);
    order->pruned = ARENA_ARRAY(&search->arena, bool, nodes);
    order->ours = ARENA_ARRAY(&search->arena, bool, nodes);
    for (uint32_t at = search->workload->queue->node; at != QUOTA_NONE; at = quota_parent(search->quota, at))
        order->ours[at] = true;
    for (size_t i = 0; i < candidates->len; i++) {
        const struct cluster_queue *queue = candidates->items[i].workload->booked_in;
        CHECK(queue); /* a candidate has quota */
        size_t q = 0;
        while (q < order->queues.len && order->queues.items[q].queue != queue)
            q++;
        struct fair_queue fresh = {.queue = queue};
        if (q == order->queues.len)
            vec_push(&order->queues, fresh);
        vec_push(&order->queues.items[q].left, candidates->items[i]);
    }
    for (size_t q = 0; q < order->queues.len; q++) {
        uint32_t node = order->queues.items[q].queue->node;
        CHECK(node < nodes && !order->by_node[node]);
        order->by_node[node] = &order->queues.items[q];
    }
}

static void order_done(struct fair_order *order)
{
    for (size_t q = 0; q < order->queues.len; q++)
        vec_done(&order->queues.items[q].left);
    vec_done(&order->queues);
}

static bool has_left(const struct fair_order *order, uint32_t node)
{
    CHECK(node < order->search->quota->node_count);
    return order->by_node[node] && order->by_node[node]->left.len > 0;
}

static struct victim pop_first(struct fair_queue *queue)
{
    CHECK(queue->left.len > 0);
    struct victim first = queue->left.items[0];
    vec_remove(&queue->left, 0);
    return first;
}

/* Whether the child will yield no more victims. A cohort above the preemptor stays even if it does not
 * borrow, because its children may be out of balance. */
static bool is_spent(const struct fair_order *order, uint32_t child, struct fair_share share)
{
    bool is_queue = child >= order->search->admit->tree.cohort_count;
    return (!share.borrows && !order->ours[child]) || (is_queue && !has_left(order, child));
}

/* Whether `child` is searched before `best`: a larger share first; of equal shares a cohort before a
 * queue, and of two queues the one with the better victim. */
static bool looks_better(const struct fair_order *order, uint32_t child, struct fair_share share,
                         uint32_t best, struct fair_share best_share)
{
    size_t cohorts = order->search->admit->tree.cohort_count;
    int by_share = best == QUOTA_NONE ? 1 : fair_share_compare(share, best_share);
    if (by_share != 0)
        return by_share > 0;
    if (child < cohorts || best < cohorts)
        return best >= cohorts;
    CHECK(has_left(order, child) && has_left(order, best));
    return victims_compare(&order->by_node[child]->left.items[0], &order->by_node[best]->left.items[0]) < 0;
}

/* Returns the child of a cohort with the largest share; QUOTA_NONE: all are pruned. */
static uint32_t largest_child(struct fair_order *order, uint32_t cohort)
{
    CHECK(cohort < order->search->admit->tree.cohort_count); /* queues have no children */
    const struct quota_tree *quota = order->search->quota;
    uint32_t best = QUOTA_NONE;
    struct fair_share best_share = {0};
    for (uint32_t n = 0; n < quota->node_count; n++) {
        if (order->pruned[n] || quota_parent(quota, n) != cohort)
            continue;
        struct fair_share share = fair_share(&order->search->admit->tree, quota, n);
        order->pruned[n] = is_spent(order, n, share);
        if (!order->pruned[n] && looks_better(order, n, share, best, best_share)) {
            best = n;
            best_share = share;
        }
    }
    return best;
}

/* Returns the queue of the next victim; NULL: none is left. */
static struct fair_queue *next_queue(struct fair_order *order)
{
    const struct search *search = order->search;
    uint32_t root = quota_root(search->quota, search->workload->queue->node);
    if (root == search->workload->queue->node)
        return has_left(order, root) && !order->pruned[root] ? order->by_node[root] : NULL;
    while (!order->pruned[root]) {
        uint32_t at = root;
        while (at < search->admit->tree.cohort_count) {
            uint32_t child = largest_child(order, at);
            order->pruned[at] = child == QUOTA_NONE;
            at = child; /* the path also ends at QUOTA_NONE */
        }
        CHECK(at == QUOTA_NONE || has_left(order, at));
        if (at != QUOTA_NONE)
            return order->by_node[at];
    }
    return NULL;
}

/* --- strategies ------------------------------------------------------------------------------- */

/* Returns the nodes just below the lowest cohort above both queues, where the two shares are compared. */
static void below_common(const struct quota_tree *quota, uint32_t a, uint32_t b, uint32_t *ret_a,
                         uint32_t *ret_b)
{
    CHECK(quota_root(quota, a) == quota_root(quota, b)); /* the paths meet */
    *ret_a = a;
    *ret_b = b;
    while (quota->nodes[*ret_a].depth > quota->nodes[*ret_b].depth)
        *ret_a = quota->nodes[*ret_a].parent;
    while (quota->nodes[*ret_b].depth > quota->nodes[*ret_a].depth)
        *ret_b = quota->nodes[*ret_b].parent;
    while (*ret_a != *ret_b && quota->nodes[*ret_a].parent != quota->nodes[*ret_b].parent) {
        *ret_a = quota->nodes[*ret_a].parent;
        *ret_b = quota->nodes[*ret_b].parent;
    }
    CHECK(*ret_a < quota->node_count && *ret_b < quota->node_count);
}

/* Whether the victim may be preempted with the present shares. Under LessThanOrEqualToFinalShare, the
 * preemptor's new share must be at most the remaining share of the victim's queue; under
 * LessThanInitialShare, it must be below the present share of that queue. */
static bool strategy_allows(struct search *search, enum fair_strategy strategy, const struct workload *victim)
{
    CHECK(victim->booked_in && victim != search->workload);
    const struct tree *tree = &search->admit->tree;
    uint32_t ours, theirs;
    below_common(search->quota, search->workload->queue->node, victim->booked_in->node, &ours, &theirs);
    struct fair_share mine = fair_share(tree, search->quota, ours);
    if (strategy != FAIR_LESS_OR_EQUAL_FINAL)
        return fair_share_compare(mine, fair_share(tree, search->quota, theirs)) < 0;
    search_take(search, victim);
    struct fair_share final = fair_share(tree, search->quota, theirs);
    search_give(search, victim);
    return fair_share_compare(mine, final) <= 0;
}

/* Adds the preemptor's request to its queue's usage, or removes it again. */
static void add_request(struct search *search, bool add)
{
    uint32_t node = search->workload->queue->node;
    for (size_t i = 0; i < search->assignment->usage.len; i++) {
        struct booking wanted = search->assignment->usage.items[i];
        if (add)
            quota_use(search->quota, node, wanted.cell, wanted.amount);
        else
            quota_release(search->quota, node, wanted.cell, wanted.amount);
    }
}

/* Takes one more victim. Returns true if the victims suffice. */
static bool take_one(struct search *search, struct victim victim, const char *reason, victims *ret_chosen)
{
    victim.reason = reason;
    search_take(search, victim.workload);
    vec_push(ret_chosen, victim);
    add_request(search, false);
    bool enough =
        search_fits_quota(search, true) && search_has_chips(search) && search_fits_machines(search, NULL);
    add_request(search, true);
    return enough;
}

/* Takes the queue's first victim that the strategy allows, and adds those before it to `spared`. Returns true
 * if the victims suffice. */
static bool take_allowed(struct search *search, enum fair_strategy strategy, struct fair_queue *queue,
                         victims *spared, victims *ret_chosen)
{
    while (queue->left.len > 0) {
        struct victim victim = pop_first(queue);
        if (strategy_allows(search, strategy, victim.workload))
            return take_one(search, victim, "InCohortFairSharing", ret_chosen);
        vec_push(spared, victim);
    }
    return false;
}

/* Applies the first strategy. A queue that stays within its own quota of the contested cells is entitled to
 * that quota, whatever the shares are. Returns true if the victims suffice. */
static bool take_first(struct search *search, enum fair_strategy strategy, const victims *candidates,
                       victims *spared, victims *ret_chosen)
{
    bool entitled = !node_borrows_wanted(search, search->workload->queue->node), enough = false;
    struct fair_order order;
    struct fair_queue *queue;
    order_init(&order, search, candidates);
    while (!enough && (queue = next_queue(&order))) {
        bool own = queue->queue == search->workload->queue;
        if (own || entitled)
            enough = take_one(search, pop_first(queue), own ? "InClusterQueue" : "InCohortReclamation",
                              ret_chosen);
        else
            enough = take_allowed(search, strategy, queue, spared, ret_chosen);
    }
    order_done(&order);
    return enough;
}

/* Applies the second strategy to the victims that the first one spared, one of each queue. */
static bool take_second(struct search *search, enum fair_strategy strategy, const victims *spared,
                        victims *ret_chosen)
{
    bool enough = false;
    struct fair_order order;
    struct fair_queue *queue;
    order_init(&order, search, spared);
    while (!enough && (queue = next_queue(&order))) {
        struct victim victim = pop_first(queue);
        if (strategy_allows(search, strategy, victim.workload))
            enough = take_one(search, victim, "InCohortFairSharing", ret_chosen);
        order.pruned[queue->queue->node] = true;
    }
    order_done(&order);
    return enough;
}

bool fair_victims(struct search *search, const victims *candidates, victims *ret_chosen)
{
    CHECK(ret_chosen->len == 0 && search->cluster->policy.queues.strategy_count <= 2);
    const struct queue_settings *set = &search->cluster->policy.queues;
    victims spared = {0};
    add_request(search, true);
    bool enough = take_first(search, set->strategies[0], candidates, &spared, ret_chosen);
    if (!enough && set->strategy_count > 1)
        enough = take_second(search, set->strategies[1], &spared, ret_chosen);
    add_request(search, false);
    if (enough)
        search_give_back(search, ret_chosen, true);
    for (size_t i = 0; i < ret_chosen->len && !enough; i++)
        search_give(search, ret_chosen->items[i].workload);
    if (!enough)
        vec_clear(ret_chosen);
    vec_done(&spared);
    CHECK(enough == (ret_chosen->len > 0));
    return enough;
}
