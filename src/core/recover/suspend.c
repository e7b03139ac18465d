/* suspend.c - the last save before a suspension, by a user or by a queue that takes quota back
 * (admit/life.c). The ranks get a notice, agree on a step, and are stopped when that step is committed, at
 * the latest after the longest grace among them. The JobSet waits only if a save is likely: all its ranks run
 * and have joined, and either have committed a step before or can rejoin another attempt. The end of any rank
 * ends the wait. */
#include "core/recover/internal.h"

struct ranks {
    bool some, all_run, keepers; /* keepers: all ranks wait after a save, because they can rejoin */
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

static void suspend_begin(struct step *step, struct jobset *jobset)
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

/* Ends all recovery that is under way: it does not continue when the JobSet is resumed. */
static void suspend_recovery(struct step *step, struct jobset *jobset)
{
    ladder_stop(&jobset->recovery.ladder);
    jobset->recovery.crashes = (struct crashes){.best_step = jobset->recovery.ladder.best_step};
    /* While a restart is prepared, no task knows of the smaller world yet. */
    bool shrunk = jobset->recovery.absence.replicas.len > 0 && !jobset_parks(jobset);
    uint8_t state = jobset->recovery.state;
    if (shrunk || state == RECOVERY_DUMPING || state == RECOVERY_SAVED || state == RECOVERY_REFUSED)
        inplace_retire(step, jobset); /* the ranks of a shrunk world differ from the indexes */
    shrink_forget(jobset);            /* the JobSet resumes with the whole world */
    usage_book(step, jobset, OWNER_DRAINING);
}

void suspend_stop(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->spec.suspend);
    jobset->recovery.suspend_grace = (struct suspend_grace){0};
    if (!jobset->conditions[CONDITION_SUSPENDED].status)
        suspend_recovery(step, jobset);
    suspend_jobs(step, jobset);
    condition_set(step, jobset, CONDITION_SUSPENDED, true, "SuspendedJobs", "jobset is suspended");
    if (jobset->conditions[CONDITION_RESTARTING].status)
        condition_set(step, jobset, CONDITION_RESTARTING, false, "JobSetSuspended", "jobset is suspended");
}

/* Returns whether both specs request the same resources. If not, the running tasks, which hold resources by
 * the old spec, cannot stay for a last save. */
static bool asks_the_same(const struct jobset_spec *a, const struct jobset_spec *b)
{
    if (a->rjob_count != b->rjob_count)
        return false;
    for (size_t r = 0; r < a->rjob_count; r++) {
        const struct pod_spec *before = &a->rjobs[r].job.pod, *now = &b->rjobs[r].job.pod;
        if (before->chips != now->chips || before->cpu_request_milli != now->cpu_request_milli ||
            before->memory_request_bytes != now->memory_request_bytes)
            return false;
    }
    return true;
}

void jobset_replace(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                    const struct jobset_spec *spec)
{
    if (spec_equal(jobset->document, document))
        return;
    bool same = asks_the_same(&jobset->spec, spec), suspends = spec->suspend && !jobset->spec.suspend;
    if (jobset->recovery.suspend_grace.noticed_ns && !same)
        suspend_stop(step, jobset);
    jobset_set_document(step, jobset, arena, document, spec);
    if (suspends && same)
        suspend_begin(step, jobset);
}
