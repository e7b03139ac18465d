/* startup.c - which replicated jobs may start now: all (AnyOrder), one after the other (InOrder), or when
 * the jobs they depend on are ready or complete (dependsOn). Always judged on the jobs of the current
 * attempt.
 */
#include "core/job/internal.h"

static bool reached(const struct jobset *jobset, uint32_t rjob, enum depends_status wanted)
{
    CHECK(rjob < jobset->spec.rjob_count);
    const struct rjob_status *status = &jobset->rjob_status[rjob];
    int32_t replicas = jobset->spec.rjobs[rjob].replicas;
    if (wanted == DEPENDS_COMPLETE)
        return status->succeeded == replicas;
    return status->failed + status->ready + status->succeeded == replicas;
}

bool startup_allows(const struct jobset *jobset, uint32_t rjob)
{
    CHECK(rjob < jobset->spec.rjob_count);
    const struct rjob_spec *spec = &jobset->spec.rjobs[rjob];
    if (jobset->spec.in_order)
        return rjob == 0 || (startup_allows(jobset, rjob - 1) && reached(jobset, rjob - 1, DEPENDS_READY));
    for (size_t i = 0; i < spec->depend_count; i++) {
        CHECK(spec->depends[i].rjob < rjob); /* only on earlier ones: no circle */
        if (!reached(jobset, spec->depends[i].rjob, spec->depends[i].status))
            return false;
    }
    return true;
}

void startup_conditions(struct step *step, struct jobset *jobset)
{
    size_t count = jobset->spec.rjob_count;
    if (!jobset->spec.in_order || count == 0 || jobset->spec.suspend)
        return;
    bool done =
        startup_allows(jobset, (uint32_t)count - 1) && reached(jobset, (uint32_t)count - 1, DEPENDS_READY);
    struct condition *other =
        &jobset->conditions[done ? CONDITION_STARTUP_IN_PROGRESS : CONDITION_STARTUP_COMPLETED];
    bool changed =
        done ? condition_set(step, jobset, CONDITION_STARTUP_COMPLETED, true, "InOrderStartupPolicyCompleted",
                             "in order startup policy has completed")
             : condition_set(step, jobset, CONDITION_STARTUP_IN_PROGRESS, true,
                             "InOrderStartupPolicyInProgress", "in order startup policy is in progress");
    if (changed && other->present && other->status) {
        other->status = false;
        other->changed_ns = step->now_ns;
    }
}
