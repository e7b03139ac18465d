/* startup.c - the order in which replicated jobs start: all at once (AnyOrder), one after the other
 * (InOrder), or when the jobs on which they depend are ready or complete (dependsOn). Always judged on the
 * Jobs of the current attempt.
 */
#include "core/life/internal.h"

/* Returns whether every rank of the Job is ready, has succeeded, or belongs to an absent replica, for which
 * no other rank waits. */
static bool lacks_only_absent(const struct job *job)
{
    for (uint32_t i = 0; i < job->index_count; i++) {
        const struct task *task = job->indexes[i].task;
        if (!job->indexes[i].succeeded && !(task && (task->ready || task_is_away(task))))
            return false;
    }
    return job->state == JOB_ACTIVE && job->index_count > 0;
}

/* Returns the number of the replicated job's Jobs that are not ready only because replicas are absent. */
static int32_t count_without_absent(const struct jobset *jobset, uint32_t rjob)
{
    int32_t count = 0;
    for (uint32_t i = 0; jobset->recovery.absence.replicas.len && i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        count += job && job->rjob_index == rjob && !job->counted.ready && lacks_only_absent(job);
    }
    return count;
}

static bool reached(const struct jobset *jobset, uint32_t rjob, enum depends_status wanted)
{
    CHECK(rjob < jobset->spec.rjob_count);
    const struct rjob_status *status = &jobset->rjob_status[rjob];
    int32_t replicas = jobset->spec.rjobs[rjob].replicas;
    if (wanted == DEPENDS_COMPLETE)
        return status->succeeded == replicas;
    int32_t there = status->failed + status->ready + status->succeeded;
    return there == replicas || there + count_without_absent(jobset, rjob) == replicas;
}

bool startup_allows(const struct jobset *jobset, uint32_t rjob)
{
    CHECK(rjob < jobset->spec.rjob_count);
    const struct rjob_spec *spec = &jobset->spec.rjobs[rjob];
    if (jobset->spec.in_order)
        return rjob == 0 || (startup_allows(jobset, rjob - 1) && reached(jobset, rjob - 1, DEPENDS_READY));
    for (size_t i = 0; i < spec->depend_count; i++) {
        CHECK(spec->depends[i].rjob < rjob); /* jobs depend on earlier ones only, so there is no cycle */
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
