/* pending.c - the waiting workloads of a queue, in order: Kueue's visibility API. */
#include <stdlib.h>

#include "core/admit/internal.h"

static int by_turn(const void *a, const void *b)
{
    const struct workload *x = ((const struct pending_workload *)a)->workload;
    const struct workload *y = ((const struct pending_workload *)b)->workload;
    if (x->priority != y->priority)
        return x->priority > y->priority ? -1 : 1;
    return x->ticket != y->ticket ? (x->ticket < y->ticket ? -1 : 1) : x->uid < y->uid ? -1 : 1;
}

/* Whether the workload is listed for the queue. A deactivated workload, or one whose LocalQueue is stopped,
 * is not waiting; a group is listed once. */
static bool waits_in(const struct workload *workload, const struct cluster_queue *queue)
{
    return workload->state == WORKLOAD_PENDING && !workload_is_stopped(workload) &&
           workload->queue == queue && workload_representative(workload) == workload;
}

size_t queue_pending(const struct admit *admit, const struct object *object, struct arena *arena,
                     struct pending_workload **ret_list)
{
    const struct local_queue *local = object->kind == OBJECT_LOCAL_QUEUE
                                          ? tree_local(&admit->tree, object->namespace_, object->name)
                                          : NULL;
    const struct cluster_queue *queue = local ? local->queue : tree_queue(&admit->tree, object->name);
    size_t count = 0, kept = 0;
    struct pending_workload *list =
        ARENA_ARRAY(arena, struct pending_workload, queue ? admit->workloads.len : 0);
    for (size_t i = 0; queue && i < admit->workloads.len; i++)
        if (waits_in(admit->workloads.items[i], queue))
            list[count++].workload = admit->workloads.items[i];
    if (count > 1)
        qsort(list, count, sizeof(*list), by_turn);
    /* The number of workloads listed so far, by LocalQueue. */
    uint32_t *places = ARENA_ARRAY(arena, uint32_t, admit->tree.local_count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct workload *workload = list[i].workload;
        size_t index = (size_t)(workload->local - admit->tree.locals);
        CHECK(index < admit->tree.local_count && workload->local->queue == queue);
        uint32_t place = places[index]++;
        if (!local || workload->local == local)
            list[kept++] = (struct pending_workload){workload, (uint32_t)i, place};
    }
    CHECK(kept <= count && (local || kept == count));
    *ret_list = list;
    return kept;
}
