/* preempt.c - finds victims for a workload that lacks quota or machines. Candidates are taken out one by one
 * until the workload fits, then those that are not needed are given back (Kueue's "classic" preemption). The
 * search is simulated on the quota tree and on the machines at once.
 *
 * Trials on machines are rare, because they are expensive: one with all candidates, then a binary search for
 * the shortest sufficient row, then at most GIVE_BACK_TRIALS for giving back.
 */
#include "core/admit/internal.h"

enum { GIVE_BACK_TRIALS = 64 };

/* --- the simulated state --------------------------------------------------------------- */

static void move_one(struct search *search, const struct workload *victim, bool out);

/* Takes out the victim, with all Pods of its group, or puts them back. */
static void move_all(struct search *search, const struct workload *victim, bool out)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct workload **list;
    size_t count = group_fellows(victim, may_be_taken, &arena, &list);
    for (size_t i = 0; i < count; i++)
        move_one(search, list[i], out);
}

static void move_machines(struct search *search, const struct workload *victim, bool out)
{
    if (!search->step)
        return;
    const struct jobset *jobset = victim->jobset;
    for (size_t i = 0; i < jobset->grant.reserved_count; i++) { /* reserved for gangs that are placed later */
        struct room kept = jobset->grant.reserved[i];
        CHECK(kept.machine < search->cluster->machine_count);
        search->may_free_cpu_milli[kept.machine] += out ? kept.cpu_milli : -kept.cpu_milli;
        search->may_free_memory_bytes[kept.machine] += out ? kept.memory_bytes : -kept.memory_bytes;
        uint64_t chips = kept.chips & search->cluster->machines[kept.machine].free_mask;
        search->may_free[kept.machine] =
            out ? search->may_free[kept.machine] | chips : search->may_free[kept.machine] & ~chips;
    }
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task->holds || task->machine == MACHINE_NONE)
                continue;
            CHECK(task->machine < search->cluster->machine_count);
            search->may_free_cpu_milli[task->machine] += out ? task->cpu_milli : -task->cpu_milli;
            search->may_free_memory_bytes[task->machine] += out ? task->memory_bytes : -task->memory_bytes;
            if (out)
                search->may_free[task->machine] |= task->chips;
            else
                search->may_free[task->machine] &= ~task->chips;
        }
    }
}

static void move_one(struct search *search, const struct workload *victim, bool out)
{
    CHECK(victim->booked.len == 0 || victim->booked_in);
    struct quota_tree *quota = search->quota;
    for (size_t i = 0; i < victim->booked.len; i++) {
        struct booking booking = victim->booked.items[i];
        if (out)
            quota_release(quota, victim->booked_in->node, booking.cell, booking.amount);
        else
            quota_use(quota, victim->booked_in->node, booking.cell, booking.amount);
    }
    move_machines(search, victim, out);
}

void search_take(struct search *search, const struct workload *victim)
{
    move_all(search, victim, true);
}

void search_give(struct search *search, const struct workload *victim)
{
    move_all(search, victim, false);
}

bool search_fits_quota(const struct search *search, bool may_borrow)
{
    const struct quota_tree *quota = search->quota;
    uint32_t node = search->workload->queue->node;
    for (size_t i = 0; i < search->assignment->usage.len; i++) {
        struct booking wanted = search->assignment->usage.items[i];
        if (!may_borrow && quota_borrows(quota, node, wanted.cell, wanted.amount))
            return false;
        if (wanted.amount > quota_available(quota, node, wanted.cell))
            return false;
    }
    return true;
}

/* Whether enough chips are free. With fewer free chips than the request a search is pointless. */
bool search_has_chips(const struct search *search)
{
    CHECK(!search->step || search->may_free);
    const struct cluster *cluster = search->cluster;
    uint64_t needs = 0, free = 0;
    if (!search->step)
        return true;
    for (size_t p = 0; p < podset_count(search->workload); p++)
        needs += (uint64_t)search->assignment->counts[p] * podset_rjob(search->workload, p)->job.pod.chips;
    for (size_t m = 0; m < cluster->machine_count && free < needs; m++)
        if (machine_schedulable(&cluster->machines[m]))
            free += (uint64_t)__builtin_popcountll(cluster->machines[m].free_mask | search->may_free[m]);
    return free >= needs;
}

bool search_fits_machines(struct search *search, struct room *rooms)
{
    CHECK(search->step || !rooms); /* without machines there are no shares of them */
    struct buf why BUF_CLEANUP = {0};
    if (!search->step)
        return true;
    struct trial trial = {
        .terms = search->terms,
        .counts = search->assignment->counts,
        .may_free = search->may_free,
        .may_free_cpu_milli = search->may_free_cpu_milli,
        .may_free_memory_bytes = search->may_free_memory_bytes,
    };
    return cycle_trial(search->step, search->workload, &trial, rooms, &why);
}

/* --- giving back ------------------------------------------------------------------------------ */

struct giving {
    struct search *search;
    const victims *row;
    bool may_borrow;
    bool room_anyway; /* machines suffice anyway: only quota is checked */
    uint32_t trials;
    bool *stays;
};

static bool still_fits(struct giving *giving)
{
    if (!search_fits_quota(giving->search, giving->may_borrow))
        return false;
    if (giving->room_anyway)
        return true;
    if (!search_has_chips(giving->search) || giving->trials == 0)
        return false;
    giving->trials--;
    return search_fits_machines(giving->search, NULL);
}

/* Gives back all victims of [first, end) that are not needed, the last ones first. If the workload fits
 * without a whole range, it fits without each victim of it, so ranges are tried as a whole and halved only if
 * needed. */
static void give_range(struct giving *giving, size_t first, size_t end)
{
    CHECK(end <= giving->row->len);
    if (first >= end)
        return;
    for (size_t i = first; i < end; i++)
        search_give(giving->search, giving->row->items[i].workload);
    bool fits = still_fits(giving);
    for (size_t i = first; i < end; i++) {
        giving->stays[i] = fits;
        if (!fits)
            search_take(giving->search, giving->row->items[i].workload);
    }
    if (fits || end - first == 1)
        return;
    size_t middle = first + (end - first) / 2;
    give_range(giving, middle, end);
    give_range(giving, first, middle);
}

static bool fits_as_it_stands(struct search *search)
{
    struct buf why BUF_CLEANUP = {0};
    if (!search->step)
        return true;
    struct trial trial = {.terms = search->terms, .counts = search->assignment->counts};
    return cycle_trial(search->step, search->workload, &trial, NULL, &why);
}

void search_give_back(struct search *search, victims *row, bool may_borrow)
{
    if (row->len < 2)
        return;
    struct giving giving = {.search = search, .row = row, .may_borrow = may_borrow};
    giving.trials = GIVE_BACK_TRIALS;
    giving.room_anyway = fits_as_it_stands(search);
    giving.stays = ARENA_ARRAY(&search->arena, bool, row->len);
    give_range(&giving, 0, row->len - 1); /* the last victim taken was needed */
    size_t kept = 0;
    for (size_t i = 0; i < row->len; i++)
        if (!giving.stays[i])
            row->items[kept++] = row->items[i];
    CHECK(kept > 0 && kept <= row->len);
    row->len = kept;
}

/* --- the classic search ----------------------------------------------------------------------- */

/* Takes out or puts back candidates so that the first `want` of the row are out, instead of the first
 * `*have`. */
static void take_row(struct search *search, const victims *row, size_t *have, size_t want)
{
    CHECK(*have <= row->len && want <= row->len);
    for (; *have < want; ++*have)
        search_take(search, row->items[*have].workload);
    while (*have > want)
        search_give(search, row->items[--*have].workload);
}

/* Returns the length of the shortest part of the row, at least `least`, that suffices; the whole row does. */
static size_t shorten(struct search *search, const victims *row, size_t least)
{
    CHECK(least > 0 && least <= row->len);
    size_t have = row->len, low = least, high = row->len;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        take_row(search, row, &have, middle);
        if (search_fits_machines(search, NULL))
            high = middle;
        else
            low = middle + 1;
    }
    take_row(search, row, &have, low);
    CHECK(have == low && low >= least);
    return low;
}

/* Finds the victims among the candidates and leaves them taken out. Returns false, with an empty row, if none
 * help. */
static bool search_row(struct search *search, const victims *candidates, bool may_borrow, victims *row)
{
    size_t enough = 0; /* 1 + the first length at which quota fits */
    vec_clear(row);
    for (size_t i = 0; i < candidates->len; i++) {
        struct victim item = candidates->items[i];
        bool own = item.tie == VICTIM_OWN_QUEUE;
        if (!own &&
            ((may_borrow && item.tie == VICTIM_NOT_WHILE_BORROWING) || !victim_still_borrows(search, &item)))
            continue;
        search_take(search, item.workload);
        vec_push(row, item);
        if (!enough && search_fits_quota(search, may_borrow))
            enough = row->len;
    }
    size_t have = row->len;
    if (enough && search_fits_machines(search, NULL)) {
        row->len = shorten(search, row, enough);
        search_give_back(search, row, may_borrow);
        return true;
    }
    take_row(search, row, &have, 0);
    vec_clear(row);
    return false;
}

static bool is_under_nominal(const struct search *search)
{
    const struct quota_cell *cells = search->quota->nodes[search->workload->queue->node].cells;
    for (size_t c = 0; c < search->quota->cell_count; c++)
        if (search->wanted[c] && cells[c].usage >= cells[c].nominal)
            return false;
    return true;
}

/* Searches once with borrowing and once without, in Kueue's order. Without borrowing, more candidates may be
 * preempted, but the preemptor's queue must stay within its own quota. */
static bool classic_victims(struct search *search, const victims *candidates, victims *row)
{
    const struct cluster_queue *queue = search->workload->queue;
    bool never = queue->borrow == PREEMPT_NEVER, others = false, ours = false;
    for (size_t i = 0; i < candidates->len; i++) {
        others |= candidates->items[i].tie != VICTIM_OWN_QUEUE;
        ours |= candidates->items[i].tie == VICTIM_BELOW_OURS;
    }
    if (!others || (never && !is_under_nominal(search)))
        return search_row(search, candidates, true, row);
    bool first = !(never && !ours);
    return search_row(search, candidates, first, row) || search_row(search, candidates, !first, row);
}

/* --- taking them ------------------------------------------------------------------------------ */

static const char *in_words(const char *reason)
{
    if (strcmp(reason, "InClusterQueue") == 0)
        return "prioritization in the ClusterQueue";
    if (strcmp(reason, "InCohortReclamation") == 0)
        return "reclamation within the cohort";
    if (strcmp(reason, "InCohortFairSharing") == 0)
        return "Fair Sharing within the cohort";
    CHECK(strcmp(reason, "InCohortReclaimWhileBorrowing") == 0);
    return "reclamation within the cohort while borrowing";
}

/* Gives the victim's quota and machines to the preemptor. */
static void give_to(struct step *step, const struct workload *preemptor, const struct victim *victim,
                    struct workload *workload)
{
    CHECK(workload != preemptor && may_be_taken(workload));
    char uid[UID_TEXT_MAX], job_uid[UID_TEXT_MAX];
    uid_text(preemptor->uid, uid);
    uid_text(workload_owner_uid(preemptor), job_uid);
    if (workload->state == WORKLOAD_ADMITTED &&
        !workload_is_bare(workload)) { /* otherwise its quota and machines are free at once */
        workload_unbook(step->admit, workload);
        workload->given = workload->jobset->grant.promised = true;
        workload->preemptor = preemptor->uid;
    }
    workload_condition_set(step, workload, WORKLOAD_PREEMPTED, true, victim->reason,
                           "Preempted to accommodate a workload (UID: %s, JobUID: %s) due to %s", uid,
                           job_uid, in_words(victim->reason));
}

/* Evicts the victim, with its whole group. Returns the number of evicted workloads that have running
 * tasks. */
static uint32_t evict_victim(struct step *step, const struct workload *preemptor, const struct victim *victim)
{
    struct arena arena ARENA_CLEANUP = {0};
    char uid[UID_TEXT_MAX], job_uid[UID_TEXT_MAX];
    struct workload **list;
    uint32_t running = 0;
    size_t count = group_fellows(victim->workload, may_be_taken, &arena, &list);
    uid_text(preemptor->uid, uid);
    uid_text(workload_owner_uid(preemptor), job_uid);
    for (size_t i = 0; i < count; i++) {
        running += list[i]->state == WORKLOAD_ADMITTED && !workload_is_bare(list[i]);
        give_to(step, preemptor, victim, list[i]);
    }
    for (size_t i = 0; i < count; i++) {
        if (!may_be_taken(list[i]))
            continue; /* evicted with an earlier member of its group */
        jobset_count_preemption(step, list[i]->jobset, preemptor->jobset);
        workload_evict(step, list[i], "Preempted",
                       "Preempted to accommodate a workload (UID: %s, JobUID: %s, " STR_FORMAT "/" STR_FORMAT
                       ") due to %s",
                       uid, job_uid, STR_ARG(preemptor->jobset->namespace_), STR_ARG(preemptor->jobset->name),
                       in_words(victim->reason));
    }
    CHECK(running <= count);
    return running;
}

static void say_waiting(struct step *step, struct workload *workload, const victims *chosen)
{
    struct buf text BUF_CLEANUP = {0};
    enum { NAMED = 8 };
    buf_printf(&text, "Waiting for %zu preempted workload%s to end: ", chosen->len,
               chosen->len == 1 ? "" : "s");
    for (size_t i = 0; i < chosen->len && i < NAMED; i++)
        buf_printf(&text, "%s" STR_FORMAT, i ? ", " : "", STR_ARG(chosen->items[i].workload->jobset->key));
    if (chosen->len > NAMED)
        buf_printf(&text, " and %zu more", chosen->len - NAMED);
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "WaitingForPreemptedWorkloads",
                           STR_FORMAT, STR_ARG(buf_str(&text)));
    step_note(step, false, "WaitingForPreemptedWorkloads", ref_jobset(workload->jobset), STR_FORMAT,
              STR_ARG(buf_str(&text)));
}

static void take_victims(struct search *search, struct workload *workload, const victims *chosen)
{
    CHECK(search->step && search->workload == workload && chosen->len > 0);
    struct step *step = search->step;
    struct room *rooms = ARENA_ARRAY(&search->arena, struct room, step->cluster->machine_count);
    uint32_t running = 0;
    bool found = search_fits_machines(search, rooms);
    CHECK(found);
    for (size_t i = 0; i < chosen->len; i++)
        search_give(search, chosen->items[i].workload); /* ends the simulation; the real eviction follows */
    workload->preempted += (int32_t)chosen->len;
    for (size_t i = 0; i < chosen->len; i++)
        running += evict_victim(step, workload, &chosen->items[i]);
    CHECK(workload->state == WORKLOAD_PENDING); /* no victim is of its own group */
    workload->waits_for = running;
    jobset_reserve(step, workload->jobset, rooms);
    workload_hold(step, workload, search->assignment);
    say_waiting(step, workload, chosen);
    step->admit->acted = true;
}

/* Finds the cells that lack quota, or all cells that the workload uses if only machines lack. */
static void find_wanted(struct search *search)
{
    bool some = false;
    search->wanted = ARENA_ARRAY(&search->arena, bool, search->quota->cell_count);
    for (int pass = 0; pass < 2 && !some; pass++) {
        for (size_t i = 0; i < search->assignment->usage.len; i++) {
            struct booking wanted = search->assignment->usage.items[i];
            CHECK(wanted.cell < search->quota->cell_count);
            bool lacks =
                wanted.amount > quota_available(search->quota, search->workload->queue->node, wanted.cell);
            search->wanted[wanted.cell] = pass || lacks;
            some |= search->wanted[wanted.cell];
        }
    }
}

static bool choose_victims(struct search *search, const victims *candidates, victims *chosen)
{
    if (!candidates->len)
        return false;
    return search->cluster->policy.queues.fair ? fair_victims(search, candidates, chosen)
                                               : classic_victims(search, candidates, chosen);
}

bool preempt(struct step *step, struct workload *workload, const struct assignment *assignment)
{
    CHECK(workload->state == WORKLOAD_PENDING && assignment->fit != FIT_NONE);
    const struct cluster_queue *queue = workload->queue;
    const struct queue_settings *set = settings(step);
    if (queue->within == PREEMPT_NEVER && queue->reclaim == PREEMPT_NEVER)
        return false;
    struct search search = {.admit = step->admit,
                            .cluster = step->cluster,
                            .now_ns = step->now_ns,
                            .step = step,
                            .quota = &step->admit->tree.quota,
                            .workload = workload,
                            .assignment = assignment};
    size_t machines = step->cluster->machine_count;
    victims candidates = {0}, chosen = {0};
    find_wanted(&search);
    victims_find(&search, &candidates);
    search.terms = assignment_terms(workload, assignment, &search.arena);
    search.may_free = ARENA_ARRAY(&search.arena, uint64_t, machines);
    search.may_free_cpu_milli = ARENA_ARRAY(&search.arena, int64_t, machines);
    search.may_free_memory_bytes = ARENA_ARRAY(&search.arena, int64_t, machines);
    bool found = choose_victims(&search, &candidates, &chosen);
    CHECK(found == (chosen.len > 0) && chosen.len <= candidates.len);
    bool too_many = set->victims_max && workload->preempted + (int64_t)chosen.len > set->victims_max;
    if (found && too_many)
        for (size_t i = 0; i < chosen.len; i++)
            search_give(&search, chosen.items[i].workload);
    if (found && !too_many)
        take_victims(&search, workload, &chosen);
    else if (search.protected_until_ns)
        workload->retry_ns = search.protected_until_ns;
    vec_done(&candidates);
    vec_done(&chosen);
    arena_done(&search.arena);
    return found && !too_many;
}

struct preemption_outlook preemption_outlook(const struct admit *admit, const struct cluster *cluster,
                                             int64_t now_ns, const struct workload *workload,
                                             struct booking wanted)
{
    CHECK(wanted.cell < admit->tree.quota.cell_count && wanted.amount >= 0);
    const struct cluster_queue *queue = workload->queue;
    struct preemption_outlook outlook = {0};
    bool above;
    if (queue->within == PREEMPT_NEVER && queue->reclaim == PREEMPT_NEVER) {
        outlook.borrow =
            quota_borrow_height(&admit->tree.quota, queue->node, wanted.cell, wanted.amount, &above);
        return outlook;
    }
    struct quota_tree quota = quota_tree_copy(&admit->tree.quota);
    struct assignment assignment = {0};
    struct search search = {.admit = admit,
                            .cluster = cluster,
                            .now_ns = now_ns,
                            .quota = &quota,
                            .workload = workload,
                            .assignment = &assignment};
    victims candidates = {0}, chosen = {0};
    vec_push(&assignment.usage, wanted);
    search.wanted = ARENA_ARRAY(&search.arena, bool, quota.cell_count);
    search.wanted[wanted.cell] = true;
    victims_find(&search, &candidates);
    outlook.possible = choose_victims(&search, &candidates, &chosen);
    for (size_t i = 0; i < chosen.len; i++)
        outlook.own |= chosen.items[i].tie == VICTIM_OWN_QUEUE;
    outlook.borrow = quota_borrow_height(&quota, queue->node, wanted.cell, wanted.amount, &above);
    vec_done(&candidates);
    vec_done(&chosen);
    vec_done(&assignment.usage);
    arena_done(&search.arena);
    quota_tree_done(&quota);
    return outlook;
}
