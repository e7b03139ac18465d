/* explain.c - why a workload waits, judged when it is read: tries the present quota tree and machines as an
 * admission cycle would. Changes nothing; a search costs as much as a trial. */
#include "core/admit/internal.h"
#include "core/core.h"

/* Returns the first parked workload of a StrictFIFO queue that comes before this one; NULL: none does. */
static const struct workload *stands_before(const struct workload *workload)
{
    CHECK(workload->queue && workload->queue->strict); /* others may pass each other */
    const struct workload *first = NULL;
    list_for_each(node, &workload->queue->parked)
    {
        const struct workload *other = container_of(node, struct workload, link);
        bool before = other->place.key != workload->place.key ? other->place.key < workload->place.key
                                                              : other->place.tie < workload->place.tie;
        if (before && other != workload && (!first || other->ticket < first->ticket))
            first = other;
    }
    return first;
}

static bool machines_lack(const struct core *core, const struct workload *workload,
                          const struct assignment *assignment, struct buf *out)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct trial trial = {.terms = assignment_terms(workload, assignment, &arena),
                          .counts = assignment->counts};
    gang_trial(workload, &trial, &arena);
    return !jobset_trial(core_jobs(core), core_cluster(core), workload->jobset, &trial, NULL, out);
}

const char *workload_explain(const struct core *core, const struct workload *workload, struct buf *out)
{
    const struct cluster_queue *queue = workload->queue;
    bool tried = workload->state == WORKLOAD_PENDING && queue && queue->active &&
                 (workload->parked || heap_has(&workload->place));
    if (!tried)
        return NULL;
    const char *reason = NULL;
    struct assignment assignment;
    assignment_make(core_admit(core), core_cluster(core), core_now(core), workload, NULL, 0, &assignment);
    const struct workload *before = queue->strict && !workload->parked ? stands_before(workload) : NULL;
    CHECK((assignment.fit == FIT_NOW) == !assignment.reason);
    if (assignment.fit != FIT_NOW) {
        reason = assignment.reason;
        buf_add_str(out, buf_str(&assignment.why));
    } else if (machines_lack(core, workload, &assignment, out)) {
        reason = "TopologyPlacementFailed";
    } else if (before) {
        reason = "PendingEvaluation";
        buf_printf(out, "waits behind " STR_FORMAT " in StrictFIFO ClusterQueue " STR_FORMAT,
                   STR_ARG(before->jobset->key), STR_ARG(queue->name));
    }
    assignment_done(&assignment);
    return reason;
}
