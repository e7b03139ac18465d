/* suspend.c - a JobSet that its user suspends saves first, as does one whose quota a queue takes
 * (admit/life.c): its ranks are told, agree on a step, and are stopped when that step is committed, at the
 * latest after the longest grace among them. The JobSet waits only if a save is likely: all its ranks run
 * and have joined, and either have committed a step before or can go on under another attempt. The end of
 * any rank ends the wait. */
#include "core/job/internal.h"

struct ranks {
    bool some, all_run, keepers; /* keepers: they stand still where they have saved */
};

static struct ranks look_at_ranks(const struct jobset *jobset)
{
    struct ranks ranks = {.all_run = true, .keepers = true};
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (task_ended(task->state) || task_is_away(task))
                continue;
            ranks.some = true;
            ranks.all_run &= task->state == TASK_RUNNING && task->joined && !task->doomed;
            ranks.keepers &= task->can_rejoin;
        }
    }
    return ranks;
}

bool jobset_has_answered(const struct jobset *jobset, int64_t noticed_ns)
{
    const struct checkpoint_state *checkpoint = &jobset->checkpoint;
    bool behind =
        jobset->progress.attempt == jobset->attempt && checkpoint->committed_step < jobset->progress.step;
    return checkpoint->committed_ns > noticed_ns && !(behind && look_at_ranks(jobset).keepers);
}

bool suspend_is_worth_it(const struct jobset *jobset)
{
    struct ranks ranks = look_at_ranks(jobset);
    return ranks.some && ranks.all_run && (ranks.keepers || jobset->checkpoint.committed_step >= 0);
}

void suspend_begin(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->spec.suspend);
    bool lives = jobset->form != FORM_POD && !jobset_finished(jobset) && !jobset->deleted_ns &&
                 !jobset->hidden && !jobset_is_foreign(jobset);
    if (!lives || jobset_parks(jobset) || jobset->conditions[CONDITION_SUSPENDED].status ||
        !suspend_is_worth_it(jobset))
        return;
    int64_t grace_ns = jobset_notice(step, jobset, DRAIN_PREEMPTION);
    if (grace_ns == 0)
        return;
    jobset->recovery.suspend_grace =
        (struct suspend_grace){.noticed_ns = step->now_ns, .due_ns = step->now_ns + grace_ns};
    step_note(step, false, "SavingBeforeSuspension", ref_jobset(jobset),
              "its ranks save a last time before they are stopped, for %lld s at most",
              (long long)(grace_ns / NS_PER_SECOND));
}

bool suspend_waits(const struct step *step, const struct jobset *jobset)
{
    const struct suspend_grace *suspend_grace = &jobset->recovery.suspend_grace;
    if (!suspend_grace->noticed_ns)
        return false;
    return step->now_ns < suspend_grace->due_ns && !jobset_has_answered(jobset, suspend_grace->noticed_ns) &&
           !jobset_parks(jobset) && suspend_is_worth_it(jobset);
}

int64_t suspend_deadline(const struct jobset *jobset)
{
    return jobset->recovery.suspend_grace.noticed_ns ? jobset->recovery.suspend_grace.due_ns : INT64_MAX;
}

static void suspend_jobs(struct step *step, struct jobset *jobset)
{
    int32_t resting = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_status *status = &jobset->rjob_status[r];
        resting += status->suspended + status->succeeded + status->failed;
    }
    for (uint32_t i = 0; resting < (int32_t)jobset->made && i < jobset->job_count; i++)
        if (jobset->jobs[i])
            job_suspend(step, jobset->jobs[i]);
}

void jobset_stop(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->spec.suspend);
    jobset->recovery.suspend_grace = (struct suspend_grace){0};
    if (!jobset->conditions[CONDITION_SUSPENDED].status)
        progress_suspended(step, jobset);
    suspend_jobs(step, jobset);
    condition_set(step, jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    if (jobset->conditions[CONDITION_RESTARTING].status)
        condition_set(step, jobset, CONDITION_RESTARTING, false, "JobSetSuspended", "jobset is suspended");
}
