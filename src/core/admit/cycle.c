/* cycle.c - admission cycles: tries the heads of all queues in order, each against the quota that earlier
 * ones left.
 *
 * A workload that could not be admitted is parked until something that it may lack changes (wake_* in
 * life.c). A step tries a bounded number of placements; the others follow in the next tick, which is due at
 * once.
 */
#include "core/admit/internal.h"

#include <stdlib.h>

struct entry {
    struct workload *workload;
    struct assignment assignment; /* made before the cycle; used only for the order */
    bool waits; /* a parked head of a StrictFIFO queue: its quota is kept for it, and it is not
                                   * tried */
};
typedef VEC(struct entry) entries;

/* Quota that is kept for one round for workloads that wait for preemption. */
struct reserve {
    uint32_t node, cell;
    int64_t amount;
};
typedef VEC(struct reserve) reserves;

/* --- heads ------------------------------------------------------------------------------------ */

static bool is_before(const struct heap_node *a, const struct heap_node *b)
{
    return a->key != b->key ? a->key < b->key : a->tie < b->tie;
}

/* Whether a parked workload comes before the head in a StrictFIFO queue, where no workload may pass
 * another. */
static bool is_blocked(const struct cluster_queue *queue, const struct heap_node *head)
{
    if (!queue->strict)
        return false;
    list_for_each(node, &queue->parked)
    {
        if (is_before(&container_of(node, struct workload, link)->place, head))
            return true;
    }
    return false;
}

/* Whether the queue waits for the victims of one of its workloads. Under fair sharing, a queue preempts for
 * one workload at a time, and the heads of other queues are tried in the meantime, so that shares grow
 * evenly. */
static bool is_preempting(const struct admit *admit, const struct cluster_queue *queue)
{
    for (size_t i = 0; admit->fair && i < admit->holding.len; i++)
        if (admit->holding.items[i]->waits_for > 0 && admit->holding.items[i]->booked_in == queue)
            return true;
    return false;
}

static struct workload *head_of(const struct admit *admit, const struct cluster_queue *queue)
{
    struct heap_node *head = queue->active ? heap_min(&queue->pending) : NULL;
    bool may = head && !is_blocked(queue, head) && !is_preempting(admit, queue);
    struct workload *workload = may ? container_of(head, struct workload, place) : NULL;
    CHECK(!workload || (workload->queue == queue && workload->state == WORKLOAD_PENDING));
    return workload;
}

bool cycle_unfinished(const struct admit *admit)
{
    for (size_t q = 0; q < admit->tree.queue_count; q++)
        if (head_of(admit, &admit->tree.queues[q]))
            return true;
    return false;
}

/* --- order ------------------------------------------------------------------------------------ */

static bool goes_first(const struct entry *a, const struct entry *b)
{
    if (a->assignment.borrow != b->assignment.borrow)
        return a->assignment.borrow < b->assignment.borrow;
    return is_before(&a->workload->place, &b->workload->place);
}

static int by_order(const void *a, const void *b)
{
    return goes_first(a, b) ? -1 : 1; /* tickets are unique: the order is total */
}

/* Returns the node below `node` on the way to the entry's queue; QUOTA_NONE: the queue is not below it. */
static uint32_t child_towards(const struct quota_tree *quota, uint32_t node, const struct entry *entry)
{
    uint32_t at = entry->workload->queue->node;
    while (at != QUOTA_NONE && quota_parent(quota, at) != node)
        at = quota_parent(quota, at);
    return at;
}

/* A contender of the tournament at one cohort: a child, in the state that it would have with its own winner
 * admitted. */
struct contender {
    struct entry *entry;
    struct fair_share share;
    bool borrows; /* with the winner admitted, the child borrows a resource that the winner asks for */
};

static struct contender contend(struct tree *tree, uint32_t child, struct entry *entry)
{
    CHECK(entry && child < tree->quota.node_count);
    struct contender contender = {.entry = entry};
    uint32_t node = entry->workload->queue->node;
    const struct assignment *more = &entry->assignment;
    for (size_t i = 0; i < more->usage.len; i++)
        quota_use(&tree->quota, node, more->usage.items[i].cell, more->usage.items[i].amount);
    contender.share = fair_share(tree, &tree->quota, child);
    for (size_t i = 0; i < more->usage.len; i++)
        contender.borrows |= more->usage.items[i].amount > 0 &&
                             quota_borrows(&tree->quota, child, more->usage.items[i].cell, 0);
    for (size_t i = 0; i < more->usage.len; i++)
        quota_release(&tree->quota, node, more->usage.items[i].cell, more->usage.items[i].amount);
    return contender;
}

static bool wins(const struct contender *a, const struct contender *b)
{
    if (a->borrows != b->borrows)
        return b->borrows;
    int by_share = fair_share_compare(a->share, b->share);
    return by_share ? by_share < 0 : is_before(&a->entry->workload->place, &b->entry->workload->place);
}

/* Plays fair sharing's tournament and returns the winning entry. At each cohort, a child that borrows nothing
 * with its own winner admitted wins; otherwise the child with the least resulting share does. */
static struct entry *fair_winner(struct tree *tree, uint32_t node, const entries *list)
{
    struct contender best = {0};
    for (size_t i = 0; i < list->len; i++) {
        uint32_t child = child_towards(&tree->quota, node, &list->items[i]);
        bool again = child == QUOTA_NONE;
        for (size_t k = 0; k < i && !again; k++)
            again = child_towards(&tree->quota, node, &list->items[k]) == child;
        if (again)
            continue;
        struct entry *entry =
            child == list->items[i].workload->queue->node ? &list->items[i] : fair_winner(tree, child, list);
        struct contender contender = contend(tree, child, entry);
        if (!best.entry || wins(&contender, &best))
            best = contender;
    }
    CHECK(best.entry); /* the caller plays at nodes above an entry's queue */
    return best.entry;
}

static struct entry *next_entry(struct step *step, entries *list)
{
    CHECK(list->len > 0);
    struct tree *tree = &step->admit->tree;
    struct entry *first = &list->items[0];
    if (!settings(step)->fair || list->len == 1)
        return first;
    uint32_t root = quota_root(&tree->quota, first->workload->queue->node);
    return root == first->workload->queue->node ? first : fair_winner(tree, root, list);
}

/* A verdict holds for all workloads with the same request. The conditions of this many in each queue are set
 * at once; the others are explained when they are read (explain.c). */
enum { TOLD_PER_STEP = 64 };

/* Parks the workload if one of equal shape was tried in this step and nothing was freed since. */
static bool fails_alike(struct step *step, struct workload *workload)
{
    const struct workload *like = u64_map_get(&step->admit->failed, workload->shape);
    if (!like)
        return false;
    const struct workload_condition *why = &like->conditions[WORKLOAD_QUOTA_RESERVED];
    if (workload->queue->told < TOLD_PER_STEP && why->present && !why->status)
        workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, why->reason, STR_FORMAT,
                               STR_ARG(buf_str(&why->message)));
    else if (!workload->conditions[WORKLOAD_QUOTA_RESERVED].present)
        workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "PendingEvaluation",
                               "Waits behind another workload that asks for the same");
    workload->queue->told++;
    workload_park(step, workload);
    return true;
}

/* Returns the first parked workload of a StrictFIFO queue, unless a workload that is yet to be tried comes
 * before it. */
static struct workload *waiting_head(const struct cluster_queue *queue)
{
    const struct heap_node *fresh = heap_min(&queue->pending);
    struct workload *first = NULL;
    list_for_each(node, &queue->parked)
    {
        struct workload *workload = container_of(node, struct workload, link);
        if (!first || is_before(&workload->place, &first->place))
            first = workload;
    }
    return first && fresh && is_before(fresh, &first->place) ? NULL : first;
}

/* Adds waiting heads to the order, so that they keep their quota from the entries after them. */
static void add_waiting(struct step *step, entries *list)
{
    struct tree *tree = &step->admit->tree;
    for (size_t q = 0; q < tree->queue_count && list->len > 0; q++) {
        const struct cluster_queue *queue = &tree->queues[q];
        struct workload *head = queue->strict && queue->active ? waiting_head(queue) : NULL;
        CHECK(!head || (head->parked && head->queue == queue));
        struct entry entry = {.workload = head, .waits = true};
        if (head)
            vec_push(list, entry);
    }
}

static void collect(struct step *step, entries *list)
{
    struct tree *tree = &step->admit->tree;
    for (size_t q = 0; q < tree->queue_count; q++) {
        struct workload *workload;
        do
            workload = head_of(step->admit, &tree->queues[q]);
        while (workload && fails_alike(step, workload));
        if (!workload)
            continue;
        struct entry entry = {.workload = workload};
        vec_push(list, entry);
    }
    add_waiting(step, list);
    for (size_t i = 0; list->len > 1 && i < list->len; i++)
        assignment_make(step->admit, step->cluster, step->now_ns, list->items[i].workload, NULL, 0,
                        &list->items[i].assignment);
    if (list->len > 1)
        qsort(list->items, list->len, sizeof(*list->items), by_order);
}

/* --- placement -------------------------------------------------------------------------------- */

bool cycle_trial(struct step *step, const struct workload *workload, const struct trial *trial,
                 struct room *rooms, struct buf *why)
{
    size_t tasks = 0;
    struct arena arena ARENA_CLEANUP = {0};
    struct trial joint = *trial;
    CHECK(!trial->with); /* the gang is added here */
    for (size_t p = 0; p < podset_count(workload); p++) {
        int32_t count = trial->counts ? trial->counts[p] : podset_at(workload, p)->count;
        CHECK(count >= 0);
        tasks += (size_t)count;
    }
    gang_trial(workload, &joint, &arena);
    trial = &joint;
    struct placement *places = mem_alloc((tasks + 1) * sizeof(*places));
    step->admit->trials -= step->admit->trials > 0;
    bool found = jobset_trial(step->jobs, step->cluster, workload->jobset, trial, places, why);
    if (found && rooms)
        trial_add_rooms(workload->jobset, trial, places, rooms);
    mem_free(places);
    return found;
}

/* Admits the workload on the machines where it fits. Its tasks are placed at once, before another workload is
 * tried. */
static void admit_there(struct step *step, struct workload *workload, const struct assignment *assignment,
                        const struct room *rooms)
{
    if (workload->gang.len) {
        bool started = gang_start(step, workload); /* admits each member on its machines */
        CHECK(started);
        return;
    }
    jobset_reserve(step, workload->jobset, rooms);
    workload_admit(step, workload, assignment);
    jobs_settle(step);
}

static void show_quota(struct step *step, struct workload *workload)
{
    for (size_t p = 0; p < (workload->gang.len ? workload->gang.len : 1); p++)
        workload_show_quota(step, podset_owner(workload, p));
}

/* Holds quota and machines for a workload until its AdmissionChecks are answered. */
static void hold_there(struct step *step, struct workload *workload, const struct assignment *assignment,
                       const struct room *rooms)
{
    jobset_reserve(step, workload->jobset, rooms);
    workload_hold(step, workload, assignment);
    show_quota(step, workload);
    step->admit->acted = true;
}

/* Compares the chips that any placement needs with all free chips: if fewer are free, a search is
 * pointless. A search gives a better explanation, so a part of a step's trials is spent on it regardless. */
static bool lacks_chips(struct step *step, const struct workload *workload,
                        const struct assignment *assignment, struct buf *why)
{
    CHECK(assignment->fit != FIT_NONE);
    enum { SEARCHES = 8 };
    _Static_assert((int)SEARCHES < (int)TRIALS_PER_STEP, "some trials are spent on what fits");
    uint64_t needs = 0, free = 0;
    if (step->admit->trials > TRIALS_PER_STEP - SEARCHES)
        return false;
    for (size_t p = 0; p < podset_count(workload); p++)
        needs += (uint64_t)assignment->counts[p] * podset_rjob(workload, p)->job.pod.chips;
    for (size_t m = 0; m < step->cluster->machine_count && free < needs; m++)
        if (machine_schedulable(&step->cluster->machines[m]))
            free += (uint64_t)__builtin_popcountll(step->cluster->machines[m].free_mask);
    if (free >= needs)
        return false;
    buf_printf(why, "needs %llu chips; %llu are free on all machines", (unsigned long long)needs,
               (unsigned long long)free);
    return true;
}

static bool try_assignment(struct step *step, struct workload *workload, const struct assignment *assignment,
                           struct buf *why)
{
    CHECK(assignment->fit == FIT_NOW && workload->state == WORKLOAD_PENDING);
    struct arena arena ARENA_CLEANUP = {0};
    struct room *rooms = ARENA_ARRAY(&arena, struct room, step->cluster->machine_count);
    struct trial trial = {.terms = assignment_terms(workload, assignment, &arena),
                          .counts = assignment->counts};
    if (lacks_chips(step, workload, assignment, why) || !cycle_trial(step, workload, &trial, rooms, why))
        return false;
    bool checked = assignment_is_checked(workload, assignment);
    if (checked)
        hold_there(step, workload, assignment, rooms);
    else if (workload->gang.len)
        workload_hold(step, workload, assignment); /* ends in admit_there */
    if (!checked)
        admit_there(step, workload, assignment, rooms);
    return true;
}

/* Partial admission: tries the largest number of tasks that fits, not below the least acceptable one. */
static bool try_fewer(struct step *step, struct workload *workload)
{
    CHECK(podset_count(workload) == 1); /* `count` and `found` are the counts of all PodSets */
    struct podset *podset = &workload->podsets[0];
    int32_t low = podset->least, high = podset->count - 1, found = 0;
    struct arena arena ARENA_CLEANUP = {0};
    while (low <= high) {
        int32_t count = low + (high - low) / 2;
        CHECK(count >= low && count <= high);
        struct assignment assignment;
        struct buf why BUF_CLEANUP = {0};
        assignment_make(step->admit, step->cluster, step->now_ns, workload, &count, 0, &assignment);
        struct trial trial = {.terms = assignment_terms(workload, &assignment, &arena), .counts = &count};
        bool fits = assignment.fit == FIT_NOW && cycle_trial(step, workload, &trial, NULL, &why);
        assignment_done(&assignment);
        if (fits)
            found = count;
        if (fits)
            low = count + 1;
        else
            high = count - 1;
    }
    if (!found)
        return false;
    CHECK(found >= podset->least && found < podset->count);
    struct assignment assignment;
    struct buf why BUF_CLEANUP = {0};
    assignment_make(step->admit, step->cluster, step->now_ns, workload, &found, 0, &assignment);
    bool admitted = try_assignment(step, workload, &assignment, &why);
    assignment_done(&assignment);
    return admitted;
}

/* --- one entry -------------------------------------------------------------------------------- */

static void give_up(struct step *step, struct workload *workload, const char *reason, struct str why)
{
    CHECK(!is_follower(workload)); /* the leader fails for the whole gang */
    bool first = !workload->conditions[WORKLOAD_QUOTA_RESERVED].present ||
                 workload->conditions[WORKLOAD_QUOTA_RESERVED].reason != workload_reason(str_from(reason));
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, reason, STR_FORMAT, STR_ARG(why));
    if (first)
        step_note(step, true, "Pending", ref_jobset(workload->jobset), STR_FORMAT, STR_ARG(why));
    for (size_t i = 1; i < workload->gang.len; i++)
        workload_condition_set(step, workload->gang.items[i], WORKLOAD_QUOTA_RESERVED, false, reason,
                               STR_FORMAT, STR_ARG(why));
    u64_map_put(&step->admit->failed, workload->shape, workload);
    workload_park(step, workload);
}

static bool waits_for_others(struct step *step, struct workload *workload)
{
    const struct queue_settings *set = settings(step);
    if (!set->wait_ready || !set->block_admission)
        return false;
    for (size_t i = 0; i < step->admit->workloads.len; i++) {
        const struct workload *other = step->admit->workloads.items[i];
        if (other->state != WORKLOAD_ADMITTED || other->ready_ns)
            continue;
        struct buf why BUF_CLEANUP = {0};
        buf_printf(&why,
                   "waiting for all admitted workloads to be in PodsReady condition: " STR_FORMAT
                   "/" STR_FORMAT " is not",
                   STR_ARG(other->jobset->namespace_), STR_ARG(other->name));
        give_up(step, workload, "WaitingForPodsReady", buf_str(&why));
        u64_map_done(&step->admit->failed); /* the reason does not concern the capacity for equal shapes */
        return true;
    }
    return false;
}

/* Reserves the quota that the workload waits for, up to its queue's own, against borrowers in this round,
 * unless the queue can reclaim it at any time. Also reserves it for a StrictFIFO head that lacks only
 * machines. */
static void keep_quota(struct step *step, const struct workload *workload,
                       const struct assignment *assignment, reserves *kept)
{
    struct quota_tree *quota = &step->admit->tree.quota;
    const struct cluster_queue *queue = workload->queue;
    bool lacks = assignment->fit != FIT_NONE && (assignment->fit != FIT_NOW || queue->strict);
    if (!lacks || queue->reclaim == PREEMPT_ANY)
        return;
    for (size_t i = 0; i < assignment->usage.len; i++) {
        struct booking wanted = assignment->usage.items[i];
        CHECK(wanted.cell < quota->cell_count && wanted.amount >= 0);
        const struct quota_cell *cell = &quota->nodes[queue->node].cells[wanted.cell];
        int64_t most = cell->nominal - cell->usage;
        if (assignment->borrow)
            most = cell->borrowing == QUOTA_NO_LIMIT ? wanted.amount : most + cell->borrowing;
        struct reserve reserve = {queue->node, wanted.cell, wanted.amount < most ? wanted.amount : most};
        if (reserve.amount <= 0 || !quota_can_count(quota, reserve.node, wanted.cell, wanted.amount))
            continue;
        quota_use(quota, reserve.node, reserve.cell, reserve.amount);
        vec_push(kept, reserve);
    }
}

static void process(struct step *step, struct workload *workload, reserves *kept)
{
    CHECK(workload->state == WORKLOAD_PENDING && heap_has(&workload->place));
    if (fails_alike(step, workload) || waits_for_others(step, workload))
        return;
    struct assignment first, next;
    struct buf why BUF_CLEANUP = {0};
    assignment_make(step->admit, step->cluster, step->now_ns, workload, NULL, 0, &first);
    bool quota = first.fit == FIT_NOW;
    bool admitted = quota && try_assignment(step, workload, &first, &why);
    CHECK(first.last_flavor >= 0); /* the next try begins after it */
    /* The chosen flavours lack machines; the next flavours may have some. */
    for (int32_t from = first.last_flavor + 1; quota && !admitted && from < first.most_flavors; from++) {
        struct buf other BUF_CLEANUP = {0};
        assignment_make(step->admit, step->cluster, step->now_ns, workload, NULL, from, &next);
        admitted = next.fit == FIT_NOW && try_assignment(step, workload, &next, &other);
        from = next.last_flavor > from ? next.last_flavor : from;
        assignment_done(&next);
    }
    if (!admitted && workload->podsets[0].least < workload->podsets[0].count)
        admitted = try_fewer(step, workload);
    if (!admitted && first.fit != FIT_NONE)
        admitted = preempt(step, workload, &first);
    if (!admitted) {
        keep_quota(step, workload, &first, kept);
        give_up(step, workload, quota ? "TopologyPlacementFailed" : first.reason,
                quota ? buf_str(&why) : buf_str(&first.why));
    }
    assignment_done(&first);
    CHECK(admitted ? workload->state == WORKLOAD_HOLDING || workload->state == WORKLOAD_ADMITTED
                   : workload->parked);
}

/* Reserves the quota of a StrictFIFO head whose last try failed. The head is tried again when something that
 * it lacks changes. */
static void keep_quota_of(struct step *step, const struct workload *workload, reserves *kept)
{
    struct assignment assignment;
    assignment_make(step->admit, step->cluster, step->now_ns, workload, NULL, 0, &assignment);
    keep_quota(step, workload, &assignment, kept);
    assignment_done(&assignment);
}

/* --- rounds ----------------------------------------------------------------------------------- */

/* Whether the workload waits neither for victims nor for checks. */
static bool may_start(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING);
    bool waits = false;
    if (workload->waits_for > 0 || is_follower(workload))
        return false;
    for (size_t p = 0; p < (workload->gang.len ? workload->gang.len : 1); p++)
        waits |= checks_wait(podset_owner(workload, p));
    if (waits && !workload_holds(workload, WORKLOAD_QUOTA_RESERVED))
        show_quota(step, workload);
    return !waits;
}

/* Starts the holding workloads whose victims have ended and whose checks are ready. */
static void place_holding(struct step *step)
{
    struct admit *admit = step->admit;
    for (size_t i = 0; i < admit->holding.len;) {
        struct workload *workload = admit->holding.items[i];
        struct arena arena ARENA_CLEANUP = {0};
        struct buf why BUF_CLEANUP = {0};
        if (!may_start(step, workload)) {
            i++;
            continue;
        }
        if (updates_conflict(admit, workload, &why)) {
            workload_cannot_start(step, workload, buf_str(&why));
            i = 0;
            continue;
        }
        int32_t *counts = ARENA_ARRAY(&arena, int32_t, podset_count(workload));
        for (size_t p = 0; p < podset_count(workload); p++)
            counts[p] = podset_at(workload, p)->admitted;
        struct room *rooms = ARENA_ARRAY(&arena, struct room, step->cluster->machine_count);
        struct trial trial = {.terms = workload_terms(admit, workload, &arena), .counts = counts};
        if (cycle_trial(step, workload, &trial, rooms, &why))
            admit_there(step, workload, NULL, rooms);
        else
            workload_drop_hold(step, workload);
        i = 0; /* a gang leaves the list as a whole */
    }
}

static void run_round(struct step *step, entries *list)
{
    reserves kept = {0};
    while (list->len > 0 && step->admit->trials > 0) {
        struct entry *entry = next_entry(step, list);
        struct workload *workload = entry->workload;
        CHECK(entry >= list->items && entry < list->items + list->len);
        bool waits = entry->waits;
        assignment_done(&entry->assignment);
        vec_remove(list, (size_t)(entry - list->items));
        if (waits && workload->parked)
            keep_quota_of(step, workload, &kept);
        else if (heap_has(&workload->place)) /* the workload is still queued */
            process(step, workload, &kept);
    }
    for (size_t i = 0; i < kept.len; i++)
        quota_release(&step->admit->tree.quota, kept.items[i].node, kept.items[i].cell, kept.items[i].amount);
    vec_done(&kept);
    for (size_t i = 0; i < list->len; i++)
        assignment_done(&list->items[i].assignment);
    vec_clear(list);
}

/* Wakes the cohorts of StrictFIFO heads that were deleted, stopped or moved: their quota is free for
 * others. */
static void wake_after_heads(struct admit *admit)
{
    for (size_t q = 0; q < admit->tree.queue_count; q++) {
        struct cluster_queue *queue = &admit->tree.queues[q];
        if (queue->head_left)
            wake_cohort(admit, queue);
        queue->head_left = false;
    }
}

void cycle_run(struct step *step)
{
    CHECK(step->admit->trials <= TRIALS_PER_STEP);
    entries list = {0};
    wake_after_heads(step->admit);
    place_holding(step);
    while (step->admit->trials > 0) {
        collect(step, &list);
        if (list.len == 0)
            break;
        run_round(step, &list);
    }
    vec_done(&list);
}
