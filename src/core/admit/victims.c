/* victims.c - who may be preempted for a workload, and in which order (Kueue, "Preemption"). */
#include "core/admit/internal.h"

#include <stdlib.h>

bool victims_borrow(const struct search *search, const struct cluster_queue *queue)
{
    const struct tree *tree = &search->step->admit->tree;
    for (size_t c = 0; c < tree->quota.cell_count; c++)
        if (search->wanted[c] && quota_borrows(&tree->quota, queue->node, c, 0))
            return true;
    return false;
}

static bool uses_wanted(const struct search *search, const struct workload *victim)
{
    for (size_t i = 0; i < victim->booked.len; i++)
        if (victim->booked.items[i].amount > 0 && search->wanted[victim->booked.items[i].cell])
            return true;
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

/* One that has just begun is left alone for a while, so that it gets something done. */
static bool is_protected(struct search *search, const struct workload *victim)
{
    if (victim->state == WORKLOAD_HOLDING)
        return false; /* it has not begun */
    int64_t until_ns = victim->admitted_ns + search->step->cluster->queues.min_run_ns;
    if (until_ns <= search->step->now_ns)
        return false;
    if (!search->protected_until_ns || until_ns < search->protected_until_ns)
        search->protected_until_ns = until_ns;
    return true;
}

/* It runs, or has quota and waits for checks alone. */
bool may_be_taken(const struct workload *victim)
{
    return victim->state == WORKLOAD_ADMITTED ||
           (victim->state == WORKLOAD_HOLDING && workload_holds(victim, WORKLOAD_QUOTA_RESERVED));
}

/* Of a group the first stands for all. */
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

static void add_from(struct search *search, const struct cluster_queue *queue, victims *list)
{
    const struct workload *preemptor = search->workload;
    bool own = queue == preemptor->queue;
    enum preempt_policy policy = own ? preemptor->queue->within : preemptor->queue->reclaim;
    bool fair = search->step->cluster->queues.fair;
    if (policy == PREEMPT_NEVER && (own || preemptor->queue->borrow == PREEMPT_NEVER))
        return;
    if (!own && !victims_borrow(search, queue))
        return;
    list_for_each(node, &queue->booked)
    {
        struct workload *victim = container_of(node, struct workload, link);
        if (!may_be_taken(victim) || !stands_for_all(victim) || victim == preemptor ||
            (victim->group && victim->group == preemptor->group) || !uses_wanted(search, victim) ||
            !policy_allows(policy, preemptor, victim) || is_protected(search, victim))
            continue;
        const char *reason = own ? "InClusterQueue" : fair ? "InCohortFairSharing" : "InCohortReclamation";
        struct victim item = {victim, reason};
        vec_push(list, item);
    }
}

/* Other queues' first, then the lowest priority, then the newest. */
static int by_fitness(const void *a, const void *b)
{
    const struct victim *x = a, *y = b;
    bool x_own = x->reason[2] == 'C' && x->reason[3] == 'l',
         y_own = y->reason[2] == 'C' && y->reason[3] == 'l';
    if (x_own != y_own)
        return x_own ? 1 : -1;
    if (x->workload->priority != y->workload->priority)
        return x->workload->priority < y->workload->priority ? -1 : 1;
    if (since_ns(x->workload) != since_ns(y->workload))
        return since_ns(x->workload) > since_ns(y->workload) ? -1 : 1;
    return x->workload->uid < y->workload->uid ? -1 : 1;
}

void victims_find(struct search *search, victims *ret_victims)
{
    struct tree *tree = &search->step->admit->tree;
    const struct cluster_queue *queue = search->workload->queue;
    uint32_t root = quota_root(&tree->quota, queue->node);
    add_from(search, queue, ret_victims);
    for (size_t q = 0; q < tree->queue_count && queue->cohort.len; q++)
        if (&tree->queues[q] != queue && quota_root(&tree->quota, tree->queues[q].node) == root)
            add_from(search, &tree->queues[q], ret_victims);
    if (ret_victims->len > 1)
        qsort(ret_victims->items, ret_victims->len, sizeof(*ret_victims->items), by_fitness);
}
