/* inuse.c - keeps deleted objects while they are in use (Kueue's finalizer kueue.x-k8s.io/resource-in-use). A
 * ClusterQueue is removed when its last workload has given its quota back, a ResourceFlavor or AdmissionCheck
 * when no ClusterQueue names it, and a Topology when no ResourceFlavor does. Until then the object has a
 * deletionTimestamp.
 */
#include "core/admit/internal.h"

static const enum object_kind kinds[] = {OBJECT_CLUSTER_QUEUE, OBJECT_RESOURCE_FLAVOR, OBJECT_ADMISSION_CHECK,
                                         OBJECT_TOPOLOGY};
enum { KINDS = sizeof(kinds) / sizeof(*kinds) };

bool admit_keeps(enum object_kind kind)
{
    for (size_t k = 0; k < KINDS; k++)
        if (kinds[k] == kind)
            return true;
    return false;
}

static bool queue_uses(const struct cluster_queue *queue, const struct object *object)
{
    for (size_t g = 0; object->kind == OBJECT_RESOURCE_FLAVOR && g < queue->group_count; g++)
        for (size_t f = 0; f < queue->groups[g].flavor_count; f++)
            if (str_equal(queue->groups[g].flavors[f].name, object->name))
                return true;
    for (size_t c = 0; object->kind == OBJECT_ADMISSION_CHECK && c < queue->check_count; c++)
        if (str_equal(queue->checks[c].name, object->name))
            return true;
    return object->kind == OBJECT_CLUSTER_QUEUE && queue->object == object && !list_empty(&queue->booked);
}

static bool is_used(const struct tree *tree, const struct object *object)
{
    CHECK(admit_keeps(object->kind));
    bool used = false;
    for (size_t q = 0; q < tree->queue_count && !used; q++)
        used = queue_uses(&tree->queues[q], object);
    for (size_t f = 0; object->kind == OBJECT_TOPOLOGY && f < tree->flavor_count && !used; f++)
        used = str_equal(tree->flavors[f].topology, object->name);
    return used;
}

struct ending {
    const struct tree *tree;
    VEC(const struct object *) free;
    size_t count;
};

static bool is_ending(const struct object *object)
{
    return object->deleted_ns && object_has_finalizer(object->document, FINALIZER_IN_USE);
}

static void collect(void *context, const struct object *object)
{
    struct ending *ending = context;
    if (!is_ending(object))
        return;
    ending->count++;
    if (ending->tree && !is_used(ending->tree, object))
        vec_push(&ending->free, object);
}

size_t tree_count_ending(const struct object_store *objects)
{
    struct ending ending = {0};
    for (size_t k = 0; k < KINDS; k++)
        object_visit(objects, kinds[k], STR(""), collect, &ending);
    return ending.count;
}

/* Visits kinds in an order in which a referring object precedes those to which it refers, so that one step
 * removes a chain. */
bool inuse_release(struct step *step)
{
    struct ending ending = {.tree = &step->admit->tree};
    for (size_t k = 0; k < KINDS && !ending.free.len; k++)
        object_visit(step->objects, kinds[k], STR(""), collect, &ending);
    for (size_t i = 0; i < ending.free.len; i++)
        object_release(step, ending.free.items[i], FINALIZER_IN_USE);
    CHECK(ending.free.len <= ending.count); /* only deleted objects are released */
    bool some = ending.free.len > 0;
    vec_done(&ending.free);
    return some;
}
