/* fail.c - the failure of a Job: it is decided at once, and the tasks end later. */
#include "core/life/internal.h"

void job_fail(struct step *step, struct job *job, const char *reason, const char *format, ...)
{
    CHECK(reason && reason[0]);
    if (job->state != JOB_ACTIVE)
        return;
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    lifecycle_move(&job_lifecycle, &job->state, JOB_FAILING);
    job->reason = reason;
    job->message = arena_str(&job->arena, buf_str(&text));
    job->finished_ns = step->now_ns;
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_job(job));
    jobset_mark(step, job->jobset);
}

void job_note_failure(struct step *step, const struct job *job)
{
    CHECK(job_failed(job));
    step_note(step, true, job->reason, ref_job(job), STR_FORMAT, STR_ARG(job->message));
}

void jobs_fail_hung(struct step *step, struct job *job, const char *reason, struct str why)
{
    if (!job->doomed)
        job_fail(step, job, reason, "The job hangs. " STR_FORMAT, STR_ARG(why));
}
