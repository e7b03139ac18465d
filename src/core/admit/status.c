/* status.c - the status of ClusterQueues, LocalQueues and Cohorts: numbers of the workloads in them. */
#include "core/admit/internal.h"

#include <stdlib.h>

#include "base/hash.h"

static const struct cluster_queue *find_queue(const struct admit *admit, const struct object *object)
{
    const struct cluster_queue *queue =
        object->kind == OBJECT_CLUSTER_QUEUE ? tree_queue(&admit->tree, object->name) : NULL;
    return queue && queue->object == object ? queue : NULL;
}

static const struct local_queue *find_local(const struct admit *admit, const struct object *object)
{
    return object->kind == OBJECT_LOCAL_QUEUE ? tree_local(&admit->tree, object->namespace_, object->name)
                                              : NULL;
}

static struct queue_shown *find_shown(const struct admit *admit, obj_id uid)
{
    size_t low = 0, high = admit->shown.len;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (admit->shown.items[middle].uid < uid)
            low = middle + 1;
        else
            high = middle;
    }
    return low < admit->shown.len && admit->shown.items[low].uid == uid ? &admit->shown.items[low] : NULL;
}

bool queue_status(const struct admit *admit, const struct object *object,
                  struct queue_condition *ret_condition, struct queue_counts *ret_counts)
{
    const struct cluster_queue *queue = find_queue(admit, object);
    const struct local_queue *local = find_local(admit, object);
    const struct queue_shown *shown = find_shown(admit, object->uid);
    if (!queue && !local)
        return false;
    *ret_counts = queue ? queue->counts : local->counts;
    *ret_condition = (struct queue_condition){
        .active = queue ? queue->active : local->active,
        .reason = queue ? queue->reason : local->reason,
        .message = queue ? queue->message : local->message,
        .changed_ns = shown ? shown->changed_ns : object->created_ns,
    };
    return true;
}

/* --- usage ------------------------------------------------------------------------------------ */

/* Returns the workload's usage as its user sees it: a victim has its quota until it has ended, and its
 * preemptor has none before that. */
static int64_t usage_in(const struct workload *workload, uint32_t cell)
{
    if (workload->state == WORKLOAD_HOLDING && !workload_holds(workload, WORKLOAD_QUOTA_RESERVED))
        return 0;
    if (workload->given)
        return workload_uses(workload, cell);
    for (size_t i = 0; i < workload->booked.len; i++)
        if (workload->booked.items[i].cell == cell)
            return workload->booked.items[i].amount;
    return 0;
}

void queue_usage_visit(const struct admit *admit, const struct object *object,
                       void (*visit)(void *context, const struct queue_usage *usage), void *context)
{
    const struct local_queue *local = find_local(admit, object);
    const struct cluster_queue *queue = local ? local->queue : find_queue(admit, object);
    for (size_t g = 0; queue && g < queue->group_count; g++) {
        const struct resource_group *group = &queue->groups[g];
        for (size_t f = 0; f < group->flavor_count; f++) {
            for (size_t r = 0; r < group->resource_count; r++) {
                uint32_t cell = group->flavors[f].cells[r];
                CHECK(cell < admit->tree.quota.cell_count);
                struct queue_usage usage = {.flavor = group->flavors[f].name,
                                            .resource = group->resources[r]};
                list_for_each(node, &queue->booked)
                {
                    const struct workload *workload = container_of(node, struct workload, link);
                    if (local && workload->local != local)
                        continue;
                    usage.reserved += usage_in(workload, cell);
                    if (workload->state != WORKLOAD_HOLDING)
                        usage.admitted += usage_in(workload, cell);
                }
                CHECK(usage.admitted >= 0 && usage.admitted <= usage.reserved);
                int64_t over = usage.reserved - admit->tree.quota.nodes[queue->node].cells[cell].subtree;
                usage.borrowed = !local && over > 0 ? over : 0;
                visit(context, &usage);
            }
        }
    }
}

int64_t queue_weighted_share(const struct admit *admit, const struct object *object)
{
    const struct tree *tree = &admit->tree;
    const struct cluster_queue *queue = find_queue(admit, object);
    void *cohort = object->kind == OBJECT_COHORT ? str_map_get(&tree->cohort_names, object->name) : NULL;
    if (!queue && !cohort)
        return 0;
    CHECK(queue || (uintptr_t)cohort - 1 < tree->cohort_count);
    struct fair_share share =
        fair_share(tree, &tree->quota, queue ? queue->node : (uint32_t)((uintptr_t)cohort - 1));
    __int128 rounded = (share.amount + FAIR_SHARE_UNIT - 1) / FAIR_SHARE_UNIT;
    CHECK(rounded >= 0);
    return share.endless || rounded > INT64_MAX ? INT64_MAX : (int64_t)rounded;
}

/* --- notifying watchers ------------------------------------------------------------------------- */

static uint64_t hash_cells(const struct tree *tree, const struct cluster_queue *queue)
{
    uint64_t hash = 0;
    for (size_t c = 0; c < tree->quota.cell_count; c++) {
        int64_t usage = tree->quota.nodes[queue->node].cells[c].usage;
        hash = usage ? hash64(hash + c, &usage, sizeof(usage)) : hash;
    }
    return hash;
}

/* A LocalQueue's usage is part of its ClusterQueue's, so both change together. */
static struct queue_shown now_shown(const struct tree *tree, const struct object *object,
                                    const struct cluster_queue *queue, const struct queue_counts *counts,
                                    bool active, const char *reason, struct str message)
{
    CHECK(reason && (!queue || queue->node < tree->quota.node_count));
    struct queue_shown shown = {.uid = object->uid, .active = active, .reason = reason};
    shown.hash = hash64(active, counts, sizeof(*counts));
    shown.hash = hash64(shown.hash, reason, strlen(reason));
    shown.hash = hash64(shown.hash, message.data, message.len);
    if (queue)
        shown.hash ^= hash_cells(tree, queue);
    return shown;
}

typedef VEC(struct queue_shown) shown_list;

static int by_uid(const void *a, const void *b)
{
    const struct queue_shown *x = a, *y = b;
    return x->uid < y->uid ? -1 : x->uid > y->uid;
}

/* Collects the present status of all queues, by uid. */
static void collect(const struct admit *admit, shown_list *list)
{
    const struct tree *tree = &admit->tree;
    for (size_t q = 0; q < tree->queue_count; q++) {
        const struct cluster_queue *queue = &tree->queues[q];
        vec_push(list, now_shown(tree, queue->object, queue, &queue->counts, queue->active, queue->reason,
                                 queue->message));
    }
    for (size_t l = 0; l < tree->local_count; l++) {
        const struct local_queue *local = &tree->locals[l];
        vec_push(list, now_shown(tree, local->object, local->queue, &local->counts, local->active,
                                 local->reason, local->message));
    }
    if (list->len > 1)
        qsort(list->items, list->len, sizeof(*list->items), by_uid);
}

static void replace_shown(struct admit *admit, shown_list *list)
{
    vec_done(&admit->shown);
    admit->shown.items = list->items;
    admit->shown.len = list->len;
    admit->shown.cap = list->cap;
}

void status_publish(struct step *step)
{
    struct admit *admit = step->admit;
    shown_list list = {0};
    collect(admit, &list);
    for (size_t i = 0; i < list.len; i++) {
        struct queue_shown *is = &list.items[i];
        CHECK(i == 0 || list.items[i - 1].uid < is->uid); /* find_shown searches by halves */
        const struct queue_shown *was = find_shown(admit, is->uid);
        is->changed_ns = was && was->active == is->active ? was->changed_ns : step->now_ns;
        const struct object *object = object_find_uid(step->objects, is->uid);
        if (object && (!was || was->hash != is->hash))
            object_touch(step, object);
    }
    replace_shown(admit, &list);
    admit->tree.versions = tree_versions(step->objects); /* notifying watchers does not count as a change */
}

/* Called when the times are restored (snapshot_admit.c): takes the present status as published. */
void status_restore(struct admit *admit)
{
    shown_list list = {0};
    collect(admit, &list);
    for (size_t i = 0; i < list.len; i++) {
        const struct queue_shown *was = find_shown(admit, list.items[i].uid);
        list.items[i].changed_ns = was ? was->changed_ns : 0;
    }
    replace_shown(admit, &list);
}

/* --- snapshots -------------------------------------------------------------------------------- */

const struct queue_shown *queue_shown_all(const struct admit *admit, size_t *ret_count)
{
    *ret_count = admit->shown.len;
    return admit->shown.items;
}

bool queue_shown_restore(struct admit *admit, obj_id uid, bool active, int64_t changed_ns)
{
    if (admit->shown.len && vec_last(&admit->shown).uid >= uid)
        return false;
    struct queue_shown shown = {.uid = uid, .active = active, .changed_ns = changed_ns};
    vec_push(&admit->shown, shown);
    return true;
}
