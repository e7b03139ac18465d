/* flavor.c - chooses a flavour for each resource of each PodSet: the first one that suits, according to the
 * queue's flavorFungibility (Kueue, "Flavor fungibility"). */
#include "core/admit/internal.h"

/* How well a flavour suits: a larger fit is better, and borrowing from a more distant cohort is worse. */
struct suit {
    enum fit fit;
    uint32_t borrow;
};

struct choosing {
    const struct admit *admit;
    const struct cluster *cluster;
    int64_t now_ns;
    const struct workload *workload;
    const struct cluster_queue *queue;
    struct assignment *to;
    int32_t from;
    struct buf why; /* reasons of the flavours that did not suit */
    const char *reason;
};

/* --- nodes ------------------------------------------------------------------------------------ */

bool tolerated(const struct toleration *tolerations, size_t count, const struct taint *taint)
{
    for (size_t i = 0; i < count; i++) {
        const struct toleration *item = &tolerations[i];
        if (item->effect.len && !str_equal(item->effect, taint->effect))
            continue;
        if (item->key.len && !str_equal(item->key, taint->key))
            continue;
        if (str_is(item->op, "Exists") || (item->key.len && str_equal(item->value, taint->value)))
            return true;
    }
    return false;
}

/* Whether the PodSet's tasks may run on the flavour's nodes. Only the nodeSelector keys that the group's
 * flavours set are compared. */
static bool nodes_suit(struct choosing *choosing, size_t podset, const struct resource_group *group,
                       const struct flavor *flavor)
{
    const struct pod_spec *pod = &podset_rjob(choosing->workload, podset)->job.pod;
    for (size_t i = 0; i < flavor->taint_count; i++) {
        const struct taint *taint = &flavor->taints[i];
        if (str_is(taint->effect, "PreferNoSchedule") ||
            tolerated(pod->tolerations, pod->toleration_count, taint) ||
            tolerated(flavor->tolerations, flavor->toleration_count, taint))
            continue;
        buf_printf(&choosing->why,
                   "%suntolerated taint {" STR_FORMAT " " STR_FORMAT " " STR_FORMAT "} in flavor " STR_FORMAT,
                   choosing->why.len ? ", " : "", STR_ARG(taint->key), STR_ARG(taint->value),
                   STR_ARG(taint->effect), STR_ARG(flavor->name));
        return false;
    }
    for (size_t i = 0; i < pod->node_selector.len; i++) {
        const struct label *wanted = &pod->node_selector.items[i];
        bool known = false;
        for (size_t f = 0; f < group->flavor_count; f++)
            known |= group->flavors[f].flavor &&
                     labels_get(&group->flavors[f].flavor->labels, wanted->key, STR("")).len > 0;
        if (known && !str_equal(labels_get(&flavor->labels, wanted->key, STR("")), wanted->value)) {
            buf_printf(&choosing->why, "%sflavor " STR_FORMAT " doesn't match node affinity",
                       choosing->why.len ? ", " : "", STR_ARG(flavor->name));
            return false;
        }
    }
    return true;
}

/* --- quota ------------------------------------------------------------------------------------ */

static int64_t *used_by(struct assignment *assignment, uint32_t cell)
{
    for (size_t i = 0; i < assignment->usage.len; i++)
        if (assignment->usage.items[i].cell == cell)
            return &assignment->usage.items[i].amount;
    return NULL;
}

static void why_not(struct choosing *choosing, uint32_t cell, int64_t needs, int64_t available, int64_t most)
{
    const struct tree *tree = &choosing->admit->tree;
    struct str resource = tree->cell_resources[cell];
    buf_printf(&choosing->why, "%sinsufficient %squota for " STR_FORMAT " in flavor " STR_FORMAT,
               choosing->why.len ? ", " : "", needs > most ? "" : "unused ", STR_ARG(resource),
               STR_ARG(tree->cell_flavors[cell]));
    if (needs > most) {
        buf_printf(&choosing->why, ", request > maximum capacity (");
        amount_format(&choosing->why, resource, needs);
        buf_printf(&choosing->why, " > ");
        amount_format(&choosing->why, resource, most);
        buf_printf(&choosing->why, ")");
        return;
    }
    buf_printf(&choosing->why, ", ");
    amount_format(&choosing->why, resource, needs - (available > 0 ? available : 0));
    buf_printf(&choosing->why, " more needed (");
    why_quota(choosing->admit, choosing->queue, cell, needs, &choosing->why);
    buf_printf(&choosing->why, ")");
}

static void keep_reason(struct choosing *choosing, const char *reason)
{
    /* Keeps the mildest of the flavours' reasons: the one most likely to change. */
    if (!choosing->reason || strcmp(reason, "WaitingForQuota") == 0 ||
        strcmp(choosing->reason, "NoMatchingFlavor") == 0)
        choosing->reason = reason;
}

/* Whether the queue may preempt while it borrows. It must be allowed to if the request exceeds its nominal
 * quota, and there is no cohort above the lender from which quota could be reclaimed. */
static bool preempts_to_borrow(const struct choosing *choosing)
{
    const struct cluster_queue *queue = choosing->queue;
    return queue->borrow != PREEMPT_NEVER ||
           (choosing->cluster->policy.queues.fair && queue->reclaim != PREEMPT_NEVER);
}

static struct suit quota_suits(struct choosing *choosing, uint32_t cell, int64_t amount)
{
    CHECK(amount >= 0 && cell < choosing->admit->tree.quota.cell_count);
    const struct quota_tree *quota = &choosing->admit->tree.quota;
    const struct cluster_queue *queue = choosing->queue;
    const int64_t *used = used_by(choosing->to, cell);
    int64_t needs = amount + (used ? *used : 0);
    int64_t available = quota_available(quota, queue->node, cell);
    int64_t most = quota_potential(quota, queue->node, cell);
    bool above;
    struct suit suit = {FIT_NONE, quota_borrow_height(quota, queue->node, cell, needs, &above)};
    if (needs <= most && needs <= available) {
        suit.fit = FIT_NOW;
        return suit;
    }
    why_not(choosing, cell, needs, available, most);
    keep_reason(choosing, needs > most ? "ExceedsMaxQuota" : "WaitingForQuota");
    bool own = quota->nodes[queue->node].cells[cell].nominal >= needs;
    if (needs > most || !(own || above || preempts_to_borrow(choosing)))
        return suit;
    struct preemption_outlook outlook =
        preemption_outlook(choosing->admit, choosing->cluster, choosing->now_ns, choosing->workload,
                           (struct booking){cell, needs});
    suit.fit = !outlook.possible ? FIT_NO_VICTIMS : outlook.own ? FIT_PREEMPT : FIT_RECLAIM;
    suit.borrow = outlook.borrow;
    return suit;
}

/* --- comparing -------------------------------------------------------------------------------- */

static bool is_better(const struct cluster_queue *queue, struct suit a, struct suit b)
{
    if (a.fit == FIT_NONE || b.fit == FIT_NONE)
        return a.fit > b.fit;
    if ((a.fit == FIT_NO_VICTIMS) != (b.fit == FIT_NO_VICTIMS))
        return b.fit == FIT_NO_VICTIMS; /* it cannot succeed now, whatever is preferred */
    if (queue->preempt_before_borrow)
        return a.borrow != b.borrow ? a.borrow < b.borrow : a.fit > b.fit;
    return a.fit != b.fit ? a.fit > b.fit : a.borrow < b.borrow;
}

static bool tries_next(const struct cluster_queue *queue, struct suit suit)
{
    if (suit.fit == FIT_NONE || suit.fit == FIT_NO_VICTIMS)
        return true;
    if (suit.fit != FIT_NOW && queue->try_next_to_preempt)
        return true;
    return suit.borrow > 0 && queue->try_next_to_borrow;
}

/* Returns how well the flavour suits: as well as its worst resource. *ret_borrow is the greatest height from
 * which any resource borrows. */
static struct suit flavor_suits(struct choosing *choosing, size_t podset, const struct resource_group *group,
                                const struct group_flavor *flavor, uint32_t *ret_borrow)
{
    const struct podset *asks = podset_at(choosing->workload, podset);
    CHECK(choosing->to->counts[podset] >= 0 && asks->resource_count <= PODSET_RESOURCES_MAX);
    struct suit worst = {FIT_NOW, 0};
    *ret_borrow = 0;
    if (!flavor->flavor || !nodes_suit(choosing, podset, group, flavor->flavor)) {
        keep_reason(choosing, "NoMatchingFlavor");
        return (struct suit){FIT_NONE, 0};
    }
    for (size_t r = 0; r < group->resource_count && worst.fit != FIT_NONE; r++) {
        for (size_t i = 0; i < asks->resource_count; i++) {
            if (!str_equal(asks->resources[i].name, group->resources[r]))
                continue;
            struct suit suit = quota_suits(choosing, flavor->cells[r],
                                           asks->resources[i].per_task * choosing->to->counts[podset]);
            *ret_borrow = suit.borrow > *ret_borrow ? suit.borrow : *ret_borrow;
            if (is_better(choosing->queue, worst, suit))
                worst = suit;
        }
    }
    return worst;
}

/* --- choosing --------------------------------------------------------------------------------- */

static void use(struct assignment *to, uint32_t cell, int64_t amount)
{
    CHECK(amount >= 0);
    int64_t *used = used_by(to, cell);
    struct booking booking = {cell, amount};
    if (used)
        *used += amount;
    else
        vec_push(&to->usage, booking);
}

static void take_flavor(struct choosing *choosing, size_t podset, const struct resource_group *group,
                        int32_t chosen)
{
    CHECK(chosen >= 0 && (size_t)chosen < group->flavor_count);
    const struct podset *asks = podset_at(choosing->workload, podset);
    struct assignment *to = choosing->to;
    for (size_t r = 0; r < group->resource_count; r++) {
        for (size_t i = 0; i < asks->resource_count; i++) {
            if (!str_equal(asks->resources[i].name, group->resources[r]))
                continue;
            to->flavors[podset][i] = chosen;
            use(to, group->flavors[chosen].cells[r], asks->resources[i].per_task * to->counts[podset]);
        }
    }
    to->last_flavor = chosen > to->last_flavor ? chosen : to->last_flavor;
    if ((int32_t)group->flavor_count > to->most_flavors)
        to->most_flavors = (int32_t)group->flavor_count;
}

static bool covers_any(const struct resource_group *group, const struct podset *asks)
{
    for (size_t r = 0; r < group->resource_count; r++)
        for (size_t i = 0; i < asks->resource_count; i++)
            if (str_equal(group->resources[r], asks->resources[i].name))
                return true;
    return false;
}

static void choose_for_group(struct choosing *choosing, size_t podset, const struct resource_group *group)
{
    CHECK(choosing->from >= 0);
    struct assignment *to = choosing->to;
    struct suit best = {FIT_NONE, 0};
    int32_t chosen = -1;
    uint32_t borrow = 0, best_borrow = 0;
    int32_t from = choosing->from < (int32_t)group->flavor_count ? choosing->from : 0;
    for (int32_t f = from; f < (int32_t)group->flavor_count; f++) {
        struct suit suit = flavor_suits(choosing, podset, group, &group->flavors[f], &borrow);
        bool stops = !tries_next(choosing->queue, suit);
        if (stops || (chosen < 0 ? suit.fit != FIT_NONE : is_better(choosing->queue, suit, best))) {
            best = suit;
            best_borrow = borrow;
            chosen = f;
        }
        if (stops)
            break;
    }
    CHECK((chosen >= 0) == (best.fit != FIT_NONE));
    if (chosen < 0 && !choosing->why.len)
        buf_printf(&choosing->why, "no flavor of the ClusterQueue suits");
    if (chosen >= 0)
        take_flavor(choosing, podset, group, chosen);
    to->fit = best.fit < to->fit ? best.fit : to->fit;
    to->borrow = best_borrow > to->borrow ? best_borrow : to->borrow;
    CHECK(to->fit <= best.fit && to->borrow >= best_borrow); /* as bad as the worst group */
}

/* Whether the queue does not cover a resource. "pods" may be uncovered. */
static bool uncovered(struct choosing *choosing, size_t podset)
{
    const struct podset *asks = podset_at(choosing->workload, podset);
    for (size_t i = 0; i < asks->resource_count; i++) {
        bool covered = str_is(asks->resources[i].name, "pods");
        for (size_t g = 0; !covered && g < choosing->queue->group_count; g++)
            for (size_t r = 0; r < choosing->queue->groups[g].resource_count; r++)
                covered |= str_equal(choosing->queue->groups[g].resources[r], asks->resources[i].name);
        if (covered)
            continue;
        buf_printf(&choosing->why, "resource " STR_FORMAT " unavailable in ClusterQueue",
                   STR_ARG(asks->resources[i].name));
        choosing->reason = "NoMatchingFlavor";
        choosing->to->fit = FIT_NONE;
        return true;
    }
    return false;
}

static void choose_for_podset(struct choosing *choosing, size_t podset)
{
    CHECK(choosing->to->fit != FIT_NONE);
    struct assignment *to = choosing->to;
    buf_clear(&choosing->why);
    if (!uncovered(choosing, podset))
        for (size_t g = 0; g < choosing->queue->group_count && to->fit != FIT_NONE; g++)
            if (covers_any(&choosing->queue->groups[g], podset_at(choosing->workload, podset)))
                choose_for_group(choosing, podset, &choosing->queue->groups[g]);
    if (to->fit == FIT_NOW || !choosing->why.len || to->why.len)
        return;
    buf_printf(&to->why, "couldn't assign flavors to pod set " STR_FORMAT ": " STR_FORMAT,
               STR_ARG(podset_at(choosing->workload, podset)->name), STR_ARG(buf_str(&choosing->why)));
    to->reason = choosing->reason;
}

void assignment_make(const struct admit *admit, const struct cluster *cluster, int64_t now_ns,
                     const struct workload *workload, const int32_t *counts, int32_t from,
                     struct assignment *ret)
{
    CHECK(workload->queue && from >= 0);
    size_t podsets = podset_count(workload);
    CHECK(!counts || podsets == 1); /* partial admission is for one PodSet */
    *ret = (struct assignment){.fit = FIT_NOW};
    ret->counts = ARENA_ARRAY(&ret->arena, int32_t, podsets);
    ret->flavors = arena_alloc_array(&ret->arena, podsets, sizeof(*ret->flavors));
    struct choosing choosing = {.admit = admit,
                                .cluster = cluster,
                                .now_ns = now_ns,
                                .workload = workload,
                                .queue = workload->queue,
                                .to = ret,
                                .from = from};
    for (size_t p = 0; p < podsets; p++) {
        ret->counts[p] = counts ? counts[p] : podset_at(workload, p)->count;
        for (size_t i = 0; i < PODSET_RESOURCES_MAX; i++)
            ret->flavors[p][i] = -1;
    }
    for (size_t p = 0; p < podsets && ret->fit != FIT_NONE; p++)
        choose_for_podset(&choosing, p);
    buf_done(&choosing.why);
    if (ret->fit != FIT_NOW && !ret->reason)
        ret->reason = "WaitingForQuota";
    CHECK(ret->fit == FIT_NOW || ret->why.len > 0);
    CHECK((ret->fit == FIT_NOW) == !ret->reason);
    CHECK(ret->most_flavors == 0 ? ret->last_flavor == 0 : ret->last_flavor < ret->most_flavors);
}

void assignment_done(struct assignment *assignment)
{
    vec_done(&assignment->usage);
    buf_done(&assignment->why);
    arena_done(&assignment->arena);
}

/* --- the checks that an assignment asks for ----------------------------------------------------- */

static bool assigns_flavor(const struct workload *workload, const struct assignment *assignment,
                           size_t podset, struct str name)
{
    CHECK(podset < podset_count(workload));
    for (size_t i = 0; i < podset_at(workload, podset)->resource_count; i++) {
        const struct group_flavor *flavor = assigned_flavor(workload, assignment, podset, i);
        if (flavor && str_equal(flavor->name, name))
            return true;
    }
    return false;
}

bool assignment_is_checked(const struct workload *workload, const struct assignment *assignment)
{
    CHECK(workload->queue && assignment->fit == FIT_NOW);
    const struct cluster_queue *queue = workload->queue;
    for (size_t c = 0; c < queue->check_count; c++) {
        const struct queue_check *check = &queue->checks[c];
        if (!check->flavor_count)
            return true;
        for (size_t f = 0; f < check->flavor_count; f++)
            for (size_t p = 0; p < podset_count(workload); p++)
                if (assigns_flavor(workload, assignment, p, check->flavors[f]))
                    return true;
    }
    return false;
}
