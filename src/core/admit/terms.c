/* terms.c - the terms that admission adds to the spec of a workload's tasks: the labels, tolerations and
 * levels of its flavours, its queue's spares, the labels of its Pods, and the podSetUpdates of its
 * AdmissionChecks.
 */
#include "core/admit/internal.h"

/* --- terms of flavours -------------------------------------------------------- */

static void add_flavor(const struct flavor *flavor, struct rjob_terms *terms, struct arena *arena)
{
    struct labels labels = {ARENA_ARRAY(arena, struct label, terms->node_labels.len + flavor->labels.len), 0};
    for (size_t i = 0; i < terms->node_labels.len; i++)
        labels.items[labels.len++] = terms->node_labels.items[i];
    for (size_t i = 0; i < flavor->labels.len; i++)
        if (!labels_get(&terms->node_labels, flavor->labels.items[i].key, STR("")).len)
            labels.items[labels.len++] = flavor->labels.items[i];
    size_t count = terms->toleration_count + flavor->toleration_count;
    struct toleration *tolerations = ARENA_ARRAY(arena, struct toleration, count);
    mem_copy(tolerations, terms->tolerations, terms->toleration_count * sizeof(*tolerations));
    mem_copy(tolerations + terms->toleration_count, flavor->tolerations,
             flavor->toleration_count * sizeof(*tolerations));
    terms->node_labels = labels;
    terms->tolerations = tolerations;
    terms->toleration_count = count;
    if (flavor->level_count) {
        terms->levels = flavor->levels;
        terms->level_count = flavor->level_count;
    }
}

const struct group_flavor *assigned_flavor(const struct workload *workload,
                                           const struct assignment *assignment, size_t podset,
                                           size_t resource)
{
    CHECK(resource < podset_at(workload, podset)->resource_count);
    const struct cluster_queue *queue = workload->queue;
    int32_t index = assignment->flavors[podset][resource];
    for (size_t g = 0; index >= 0 && g < queue->group_count; g++)
        for (size_t r = 0; r < queue->groups[g].resource_count; r++)
            if (str_equal(queue->groups[g].resources[r],
                          podset_at(workload, podset)->resources[resource].name))
                return &queue->groups[g].flavors[index];
    return NULL;
}

static struct rjob_terms *make_terms(const struct cluster_queue *queue, const struct workload *workload,
                                     const struct assignment *assignment, struct arena *arena)
{
    CHECK(queue);
    size_t podsets = podset_count(workload);
    struct rjob_terms *terms = ARENA_ARRAY(arena, struct rjob_terms, podsets);
    for (size_t p = 0; p < podsets; p++) {
        const struct flavor *done[PODSET_RESOURCES_MAX] = {0};
        CHECK(podset_at(workload, p)->resource_count <= PODSET_RESOURCES_MAX);
        for (size_t i = 0; i < podset_at(workload, p)->resource_count; i++) {
            const struct podset_resource *resource = &podset_at(workload, p)->resources[i];
            const struct flavor *flavor = NULL;
            size_t at;
            const struct group_flavor *chosen =
                assignment ? assigned_flavor(workload, assignment, p, i) : NULL;
            flavor = chosen ? chosen->flavor : NULL;
            if (!assignment && resource->flavor.len) {
                const struct group_flavor *found = group_flavor(queue, resource->name, resource->flavor, &at);
                flavor = found ? found->flavor : NULL;
            }
            bool twice = !flavor;
            for (size_t k = 0; k < i; k++)
                twice |= done[k] == flavor;
            done[i] = flavor;
            if (!twice)
                add_flavor(flavor, &terms[p], arena);
        }
    }
    return terms;
}

struct rjob_terms *assignment_terms(const struct workload *workload, const struct assignment *assignment,
                                    struct arena *arena)
{
    return make_terms(workload->queue, workload, assignment, arena);
}

struct rjob_terms *flavor_terms(const struct admit *admit, const struct workload *workload,
                                struct arena *arena)
{
    const struct cluster_queue *queue = tree_queue(&admit->tree, workload->reserved_in);
    return queue ? make_terms(queue, workload, NULL, arena) : NULL;
}

/* Returns the spares that the LocalQueue sets, or else those of the ClusterQueue. */
static struct queue_spares queue_spares(const struct admit *admit, const struct workload *workload)
{
    const struct cluster_queue *queue = tree_queue(&admit->tree, workload->reserved_in);
    struct queue_spares spares = {0};
    if ((!workload->local || !spares_of_queue(workload->local->object->document, &spares)) && queue)
        (void)spares_of_queue(queue->object->document, &spares);
    return spares;
}

static void add_label(struct labels *labels, const char *key, struct str value, struct arena *arena)
{
    struct labels all = {ARENA_ARRAY(arena, struct label, labels->len + 1), labels->len};
    mem_copy(all.items, labels->items, labels->len * sizeof(*all.items));
    all.items[all.len++] = (struct label){str_from(key), value};
    *labels = all;
}

/* Labels the Pods with their queue and PodSet, by which dashboards and scripts find them. A ClusterQueue
 * whose name is not a valid label value is left out. */
static void mark_pods(const struct workload *workload, size_t podset, struct rjob_terms *terms,
                      struct arena *arena)
{
    const struct workload *owner = podset_owner(workload, podset);
    add_label(&terms->labels, "kueue.x-k8s.io/podset", podset_at(workload, podset)->name, arena);
    add_label(&terms->labels, "kueue.x-k8s.io/local-queue-name", owner->queue_name, arena);
    if (name_is_dns1123_label(owner->reserved_in))
        add_label(&terms->labels, "kueue.x-k8s.io/cluster-queue-name", owner->reserved_in, arena);
    add_label(&terms->annotations, "kueue.x-k8s.io/workload", owner->name, arena);
}

struct rjob_terms *workload_terms(const struct admit *admit, const struct workload *workload,
                                  struct arena *arena)
{
    struct rjob_terms *terms = flavor_terms(admit, workload, arena);
    struct queue_spares spares = queue_spares(admit, workload);
    for (size_t p = 0; terms && p < podset_count(workload); p++) {
        terms[p].spares = spares;
        mark_pods(workload, p, &terms[p], arena);
    }
    for (size_t p = 0; terms && p < podset_count(workload); p++)
        updates_add_terms(podset_owner(workload, p), workload->gang.len ? 0 : p, &terms[p], arena);
    return terms;
}
