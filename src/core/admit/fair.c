/* fair.c - dominant resource shares and the preemption by them (Kueue, "Fair sharing").
 *
 *     share(n) = max over resources r of  borrowed(n, r) / lendable(parent(n), r) * 1000 / weight(n)
 *
 * 0 for who borrows nothing; endless for who borrows with weight 0. Resources are summed over flavours.
 */
#include "core/admit/internal.h"

/* What the parent could lend of a resource: of all its flavours, its subtree's quota and what it may borrow.
 * */
static int64_t lendable(const struct tree *tree, uint32_t parent, struct str resource)
{
    int64_t sum = 0;
    for (size_t c = 0; c < tree->quota.cell_count; c++)
        if (str_equal(tree->cell_resources[c], resource))
            sum += quota_potential(&tree->quota, parent, c);
    return sum;
}

static int64_t amount_in(const struct assignment *assignment, uint32_t cell)
{
    for (size_t i = 0; assignment && i < assignment->usage.len; i++)
        if (assignment->usage.items[i].cell == cell)
            return assignment->usage.items[i].amount;
    return 0;
}

int64_t fair_share(const struct tree *tree, uint32_t node, const struct assignment *more)
{
    const struct quota_node *at = &tree->quota.nodes[node];
    int64_t largest = 0;
    if (at->parent == QUOTA_NONE || at->broken)
        return 0;
    for (size_t c = 0; c < tree->quota.cell_count; c++) {
        struct str resource = tree->cell_resources[c];
        bool done = false;
        for (size_t k = 0; k < c; k++)
            done |= str_equal(tree->cell_resources[k], resource);
        int64_t borrowed = 0;
        for (size_t k = c; !done && k < tree->quota.cell_count; k++) {
            int64_t over = at->cells[k].usage + amount_in(more, (uint32_t)k) - at->cells[k].subtree;
            if (str_equal(tree->cell_resources[k], resource) && over > 0)
                borrowed += over;
        }
        if (borrowed <= 0)
            continue;
        int64_t of = lendable(tree, at->parent, resource);
        int64_t share = of > 0 ? (int64_t)((__int128)borrowed * 1000 / of) : 1000;
        largest = share > largest ? share : largest;
        if (tree->weights_milli[node] == 0)
            return INT64_MAX;
    }
    int64_t weight = tree->weights_milli[node] ? tree->weights_milli[node] : 1000;
    __int128 weighted = (__int128)largest * 1000 / weight;
    return weighted > INT64_MAX - 1 ? INT64_MAX - 1 : (int64_t)weighted;
}

/* --- preemption ------------------------------------------------------------------------------- */

/* The nodes just below the lowest cohort that both queues are in: there the two shares are compared. */
static void below_common(const struct quota_tree *quota, uint32_t a, uint32_t b, uint32_t *ret_a,
                         uint32_t *ret_b)
{
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
}

/* May the victim go, as shares stand? LessThanOrEqualToFinalShare: the preemptor's new share is at most what
 * is left to the victim's queue; LessThanInitialShare: it is below what that queue has now. */
static bool strategy_allows(struct search *search, enum fair_strategy strategy, const struct workload *victim)
{
    const struct tree *tree = &search->step->admit->tree;
    uint32_t ours, theirs;
    if (victim->booked_in == search->workload->queue)
        return true;
    below_common(&tree->quota, search->workload->queue->node, victim->booked_in->node, &ours, &theirs);
    int64_t initial = fair_share(tree, theirs, NULL);
    search_take(search, victim);
    int64_t mine = fair_share(tree, ours, search->assignment), final = fair_share(tree, theirs, NULL);
    search_give(search, victim);
    return strategy == FAIR_LESS_OR_EQUAL_FINAL ? mine <= final : mine < initial;
}

/* Candidates of one queue, the best first. */
struct fair_queue {
    const struct cluster_queue *queue;
    VEC(struct victim) left;
    size_t next;
    bool dropped;
};
typedef VEC(struct fair_queue) fair_queues;

static void group_candidates(const victims *candidates, fair_queues *ret_queues)
{
    for (size_t i = 0; i < candidates->len; i++) {
        size_t q = 0;
        while (q < ret_queues->len && ret_queues->items[q].queue != candidates->items[i].workload->booked_in)
            q++;
        if (q == ret_queues->len) {
            struct fair_queue queue = {.queue = candidates->items[i].workload->booked_in};
            vec_push(ret_queues, queue);
        }
        vec_push(&ret_queues->items[q].left, candidates->items[i]);
    }
}

/* The queue with the largest share that has candidates left and still borrows; NULL: none. */
static struct fair_queue *largest_queue(const struct search *search, fair_queues *queues)
{
    const struct tree *tree = &search->step->admit->tree;
    struct fair_queue *best = NULL;
    int64_t best_share = 0;
    for (size_t q = 0; q < queues->len; q++) {
        struct fair_queue *queue = &queues->items[q];
        bool own = queue->queue == search->workload->queue;
        if (queue->dropped || queue->next == queue->left.len ||
            (!own && !victims_borrow(search, queue->queue)))
            continue;
        int64_t share = fair_share(tree, queue->queue->node, NULL);
        if (!best || share > best_share) {
            best = queue;
            best_share = share;
        }
    }
    return best;
}

static bool is_enough(struct search *search)
{
    return search_fits_quota(search, true) && search_has_chips(search) && search_fits_machines(search, NULL);
}

/* Takes victims by one strategy until it is enough. A candidate that the strategy spares is asked again by
 * the next one only; the second strategy takes one of each queue. */
static bool take_by(struct search *search, enum fair_strategy strategy, bool one_each, fair_queues *queues,
                    victims *ret_chosen)
{
    struct fair_queue *queue;
    bool enough = false;
    for (size_t q = 0; q < queues->len; q++) {
        queues->items[q].next = 0;
        queues->items[q].dropped = false;
    }
    while (!enough && (queue = largest_queue(search, queues))) {
        struct victim victim = queue->left.items[queue->next];
        if (!strategy_allows(search, strategy, victim.workload)) {
            queue->next++;
            continue;
        }
        vec_remove(&queue->left, queue->next);
        queue->dropped = one_each;
        search_take(search, victim.workload);
        vec_push(ret_chosen, victim);
        enough = is_enough(search);
    }
    return enough;
}

bool fair_victims(struct search *search, const victims *candidates, victims *ret_chosen)
{
    const struct queue_settings *set = settings(search->step);
    fair_queues queues = {0};
    bool enough = false;
    group_candidates(candidates, &queues);
    for (size_t s = 0; s < set->strategy_count && !enough; s++)
        enough = take_by(search, set->strategies[s], s > 0, &queues, ret_chosen);
    if (enough)
        search_give_back(search, ret_chosen, true);
    for (size_t i = 0; i < ret_chosen->len && !enough; i++)
        search_give(search, ret_chosen->items[i].workload);
    if (!enough)
        vec_clear(ret_chosen);
    for (size_t q = 0; q < queues.len; q++)
        vec_done(&queues.items[q].left);
    vec_done(&queues);
    return enough;
}
