/* victims.c - the workloads that may be preempted for another, and their order (Kueue, "Preemption"). */
#include "core/admit/internal.h"

#include <stdlib.h>

bool node_borrows_wanted(const struct search *search, uint32_t node)
{
    for (size_t c = 0; c < search->quota->cell_count; c++)
        if (search->wanted[c] && quota_borrows(search->quota, node, c, 0))
            return true;
    return false;
}

bool victim_still_borrows(const struct search *search, const struct victim *victim)
{
    for (uint32_t at = victim->workload->booked_in->node; at != victim->common && at != QUOTA_NONE;
         at = quota_parent(search->quota, at))
        if (!node_borrows_wanted(search, at))
            return false;
    return true;
}

static bool uses_wanted(const struct search *search, const struct workload *victim)
{
    CHECK(victim->booked.len == 0 || search->wanted);
    for (size_t i = 0; i < victim->booked.len; i++) {
        CHECK(victim->booked.items[i].cell < search->quota->cell_count);
        if (victim->booked.items[i].amount > 0 && search->wanted[victim->booked.items[i].cell])
            return true;
    }
    return false;
}

static bool policy_allows(enum preempt_policy policy, const struct workload *preemptor,
                          const struct workload *victim)
{
    bool lower = victim->priority < preemptor->priority;
    bool newer = victim->priority == preemptor->priority && victim->ticket > preemptor->ticket;
    return policy == PREEMPT_ANY || (policy != PREEMPT_NEVER && lower) ||
           (policy == PREEMPT_LOWER_OR_NEWER && newer);
}

/* Whether the candidate is protected because it began so recently: it must be able to make some progress. */
static bool is_protected(struct search *search, const struct workload *victim)
{
    CHECK(may_be_taken(victim));
    if (victim->state == WORKLOAD_HOLDING)
        return false; /* it has not begun */
    int64_t until_ns = victim->admitted_ns + search->cluster->policy.queues.min_run_ns;
    if (until_ns <= search->now_ns)
        return false;
    if (!search->protected_until_ns || until_ns < search->protected_until_ns)
        search->protected_until_ns = until_ns;
    CHECK(search->protected_until_ns > search->now_ns);
    return true;
}

/* Whether the workload runs, or has quota and waits only for checks. */
bool may_be_taken(const struct workload *victim)
{
    return victim->state == WORKLOAD_ADMITTED ||
           (victim->state == WORKLOAD_HOLDING && workload_holds(victim, WORKLOAD_QUOTA_RESERVED));
}

/* Whether the candidate represents its group: the first member that may be preempted does. */
static bool stands_for_all(const struct workload *victim)
{
    for (size_t i = 0; victim->group && i < victim->group->members.len; i++)
        if (may_be_taken(victim->group->members.items[i]))
            return victim->group->members.items[i] == victim;
    return true;
}

static int64_t since_ns(const struct workload *victim)
{
    return victim->state == WORKLOAD_HOLDING ? victim->reserved_ns : victim->admitted_ns;
}

/* --- candidates of the cohort ----------------------------------------------------------------- */

/* The nodes between the preemptor's queue and its root. */
struct ancestry {
    uint32_t nodes[QUOTA_DEPTH_MAX + 1];
    bool ours[QUOTA_DEPTH_MAX + 1]; /* borrowers below the node hold quota that is nearer to the preemptor */
    size_t count;
};

/* Finds the nodes above the preemptor's queue. Once a queue or cohort covers the whole request with its own
 * quota, more distant borrowers hold quota that belongs to it (Kueue's "hierarchical advantage"). */
static struct ancestry find_ancestry(struct search *search)
{
    struct ancestry ancestry = {0};
    size_t cells = search->quota->cell_count;
    int64_t *rest = ARENA_ARRAY(&search->arena, int64_t, cells);
    for (size_t c = 0; c < cells; c++)
        rest[c] = -1;
    CHECK(search->workload->queue->node < search->quota->node_count);
    for (size_t i = 0; i < search->assignment->usage.len; i++)
        rest[search->assignment->usage.items[i].cell] = search->assignment->usage.items[i].amount;
    uint32_t at = search->workload->queue->node;
    bool ours = quota_climb(search->quota, at, rest);
    while ((at = quota_parent(search->quota, at)) != QUOTA_NONE) {
        CHECK(ancestry.count <= QUOTA_DEPTH_MAX);
        ancestry.nodes[ancestry.count] = at;
        ancestry.ours[ancestry.count++] = ours;
        ours = quota_climb(search->quota, at, rest) || ours;
    }
    return ancestry;
}

/* Returns the index of the lowest cohort above both queues; ancestry->count: there is none. */
static size_t common_with(const struct search *search, const struct ancestry *ancestry,
                          const struct cluster_queue *queue)
{
    uint32_t at = queue->node;
    while ((at = quota_parent(search->quota, at)) != QUOTA_NONE)
        for (size_t i = 0; i < ancestry->count; i++)
            if (ancestry->nodes[i] == at)
                return i;
    return ancestry->count;
}

static enum victim_tie tie_of(const struct search *search, const struct workload *victim, bool ours)
{
    const struct cluster_queue *queue = search->workload->queue;
    if (ours)
        return VICTIM_BELOW_OURS;
    bool above = queue->has_threshold && victim->priority > queue->threshold;
    return queue->borrow == PREEMPT_NEVER || above || victim->priority >= search->workload->priority
               ? VICTIM_NOT_WHILE_BORROWING
               : VICTIM_WHILE_BORROWING;
}

static bool is_candidate(struct search *search, enum preempt_policy policy, const struct workload *victim)
{
    const struct workload *preemptor = search->workload;
    return may_be_taken(victim) && stands_for_all(victim) && victim != preemptor &&
           !(victim->group && victim->group == preemptor->group) && uses_wanted(search, victim) &&
           policy_allows(policy, preemptor, victim) && !is_protected(search, victim);
}

static void add_own(struct search *search, victims *list)
{
    const struct cluster_queue *queue = search->workload->queue;
    if (queue->within == PREEMPT_NEVER)
        return;
    list_for_each(node, &queue->booked)
    {
        struct workload *victim = container_of(node, struct workload, link);
        CHECK(victim->booked_in == queue);
        struct victim item = {victim, "InClusterQueue", VICTIM_OWN_QUEUE, QUOTA_NONE};
        if (is_candidate(search, queue->within, victim))
            vec_push(list, item);
    }
}

static void add_from(struct search *search, const struct ancestry *ancestry,
                     const struct cluster_queue *queue, victims *list)
{
    bool fair = search->cluster->policy.queues.fair;
    size_t common = common_with(search, ancestry, queue);
    if (common == ancestry->count || !node_borrows_wanted(search, queue->node))
        return;
    list_for_each(node, &queue->booked)
    {
        struct workload *victim = container_of(node, struct workload, link);
        CHECK(victim->booked_in == queue);
        struct victim item = {victim, "InCohortReclamation", VICTIM_BELOW_OURS, ancestry->nodes[common]};
        if (!fair)
            item.tie = tie_of(search, victim, ancestry->ours[common]);
        if (item.tie == VICTIM_WHILE_BORROWING)
            item.reason = "InCohortReclaimWhileBorrowing";
        if (is_candidate(search, search->workload->queue->reclaim, victim) &&
            (fair || victim_still_borrows(search, &item)))
            vec_push(list, item);
    }
}

/* Ranks holders of the preemptor's quota first, then other queues, then the preemptor's own queue. */
static int rank(const struct victim *victim)
{
    return victim->tie == VICTIM_BELOW_OURS ? 0 : victim->tie == VICTIM_OWN_QUEUE ? 2 : 1;
}

/* Compares by rank, then by priority, the lowest first, then by time, the newest first. */
int victims_compare(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;
    if (rank(x) != rank(y))
        return rank(x) < rank(y) ? -1 : 1;
    if (x->workload->priority != y->workload->priority)
        return x->workload->priority < y->workload->priority ? -1 : 1;
    if (since_ns(x->workload) != since_ns(y->workload))
        return since_ns(x->workload) > since_ns(y->workload) ? -1 : 1;
    return x->workload->uid < y->workload->uid ? -1 : 1;
}

void victims_find(struct search *search, victims *ret_victims)
{
    CHECK(ret_victims->len == 0 && search->wanted && search->workload->queue);
    const struct tree *tree = &search->admit->tree;
    const struct cluster_queue *queue = search->workload->queue;
    add_own(search, ret_victims);
    if (queue->cohort.len && queue->reclaim != PREEMPT_NEVER) {
        struct ancestry ancestry = find_ancestry(search);
        for (size_t q = 0; q < tree->queue_count; q++)
            if (&tree->queues[q] != queue)
                add_from(search, &ancestry, &tree->queues[q], ret_victims);
    }
    if (ret_victims->len > 1)
        qsort(ret_victims->items, ret_victims->len, sizeof(*ret_victims->items), victims_compare);
}
