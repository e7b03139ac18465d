/* make.c - the creation of an attempt's Jobs. */
#include "core/recover/internal.h"

/* Returns whether the replicated job's Jobs may exist. The Jobs of a suspended JobSet exist, suspended,
 * except those that wait for dependsOn. */
static bool may_exist(const struct jobset *jobset, uint32_t rjob)
{
    return startup_allows(jobset, rjob) ||
           (jobset->spec.suspend && jobset->spec.rjobs[rjob].depend_count == 0);
}

static bool waits_for_old_jobs(const struct jobset *jobset)
{
    return jobset->spec.strategy == RESTART_BLOCKING_RECREATE && jobset->old_jobs.len > 0;
}

bool jobset_wants_jobs(const struct jobset *jobset)
{
    if (jobset->made == jobset->job_count || waits_for_old_jobs(jobset))
        return false;
    uint32_t position = 0;
    for (uint32_t r = 0; r < jobset->spec.rjob_count; r++) {
        bool exists = may_exist(jobset, r);
        for (int32_t i = 0; i < jobset->spec.rjobs[r].replicas; i++, position++)
            if (exists && !jobset->jobs[position])
                return true;
    }
    return false;
}

/* Returns whether no current Job exists, while tasks of older Jobs may still run under the number of this
 * attempt. */
static bool meets_old_tasks(const struct jobset *jobset)
{
    bool meets = false;
    for (size_t i = 0; jobset->made == 0 && i < jobset->old_jobs.len; i++)
        for (size_t t = 0; t < jobset->old_jobs.items[i]->tasks.len; t++) {
            const struct task *task = jobset->old_jobs.items[i]->tasks.items[t];
            meets = meets ||
                    (task->start_sent_ns && !task_ended(task->state) && task->attempt == jobset->attempt);
        }
    return meets;
}

bool jobset_make_jobs(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->made <= jobset->job_count);
    if (!jobset_wants_jobs(jobset) || attempt_due(jobset) > step->now_ns)
        return false;
    jobset->recovery.ladder.wait_ns = jobset->recovery.crashes.due_ns = 0;
    if (jobset->recovery.state == RECOVERY_SAVED || jobset->recovery.state == RECOVERY_REFUSED ||
        meets_old_tasks(jobset))
        inplace_retire(step, jobset); /* as when a user has deleted the Jobs */
    uint32_t position = 0, made = jobset->made;
    for (uint32_t r = 0; r < jobset->spec.rjob_count; r++) {
        bool exists = may_exist(jobset, r), runs = !jobset->spec.suspend && startup_allows(jobset, r);
        for (int32_t i = 0; i < jobset->spec.rjobs[r].replicas; i++, position++)
            if (exists && !jobset->jobs[position])
                job_new(step, jobset, position, !runs);
    }
    return jobset->made > made;
}
