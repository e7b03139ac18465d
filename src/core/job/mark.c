/* mark.c - marks for JobSets and Jobs that are reconciled before the step ends. */
#include "core/job/facts.h"

void jobset_mark(struct step *step, struct jobset *jobset)
{
    if (jobset->entry.dirty)
        return;
    jobset->entry.dirty = true;
    vec_push(&step->jobs->dirty, jobset);
}

void jobs_mark_all(struct step *step)
{
    for (size_t i = 0; i < step->jobs->jobsets.len; i++)
        jobset_mark(step, step->jobs->jobsets.items[i]);
}

void job_count(struct job *job)
{
    if (job->uncounted)
        return;
    job->uncounted = true;
    vec_push(&job->jobset->work.uncounted, job);
}

void job_touch(struct job *job)
{
    job_count(job);
    if (job->dirty)
        return;
    job->dirty = true;
    vec_push(&job->jobset->work.dirty, job);
}
