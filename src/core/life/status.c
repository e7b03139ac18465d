/* status.c - a JobSet's numbers and timers. They are updated from changed Jobs alone: with 10,000 Jobs a
 * report about one must not visit the others. */
#include "core/life/internal.h"

static bool is_current(const struct job *job)
{
    return job->jobset->jobs[job->global_index] == job;
}

/* Returns the job's part of its replicated job's status. */
static struct rjob_status status_of(const struct job *job)
{
    struct rjob_status status = {0};
    if (!is_current(job))
        return status;
    status.failed = job_has_failed(job);
    status.succeeded = job->state == JOB_COMPLETE || job->state == JOB_COMPLETING;
    status.suspended = job->state == JOB_SUSPENDED;
    if (job->state == JOB_ACTIVE) {
        status.active = job->active > 0;
        status.ready = (int32_t)(job->succeeded + job->ready) >= job_wanted(job) && job->index_count > 0;
    }
    return status;
}

int64_t job_due_ns(const struct job *job)
{
    return is_current(job) ? job_deadline(job) : INT64_MAX;
}

static void set_job_timer(struct job *job)
{
    int64_t due_ns = job_due_ns(job);
    if (heap_has(&job->timer) && job->timer.key == due_ns)
        return;
    if (heap_has(&job->timer))
        heap_remove(&job->jobset->work.timers, &job->timer);
    CHECK(due_ns == INT64_MAX || !job->gone);
    job->timer.key = due_ns;
    job->timer.tie = job->uid;
    if (due_ns != INT64_MAX)
        heap_insert(&job->jobset->work.timers, &job->timer);
}

void jobset_set_foreign_status(struct step *step, struct jobset *jobset, const struct doc *status)
{
    CHECK(jobset_is_foreign(jobset) && status && status->kind == DOC_OBJECT);
    if (jobset->foreign.status && spec_equal(jobset->foreign.status, status))
        return;
    vec_push(&step->jobs->dead_arenas, jobset->foreign.arena);
    jobset->foreign.arena = (struct arena){0};
    jobset->foreign.status = doc_clone(&jobset->foreign.arena, status);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void jobset_recount(struct step *step, struct jobset *jobset)
{
    if (jobset->work.uncounted.len == 0)
        return;
    CHECK(jobset->spec.rjob_count <= REPLICATED_JOBS_MAX);
    struct rjob_status before[REPLICATED_JOBS_MAX];
    size_t bytes = jobset->spec.rjob_count * sizeof(*before);
    mem_copy(before, jobset->rjob_status, bytes);
    for (size_t i = 0; i < jobset->work.uncounted.len; i++) {
        struct job *job = jobset->work.uncounted.items[i];
        CHECK(job->jobset == jobset && job->rjob_index < jobset->spec.rjob_count && job->uncounted);
        struct rjob_status *sum = &jobset->rjob_status[job->rjob_index], now = status_of(job);
        sum->ready += now.ready - job->counted.ready;
        sum->succeeded += now.succeeded - job->counted.succeeded;
        sum->failed += now.failed - job->counted.failed;
        sum->active += now.active - job->counted.active;
        sum->suspended += now.suspended - job->counted.suspended;
        job->counted = now;
        job->uncounted = false;
        if (!job_goes_on(job))
            job->spare_due_ns = 0; /* the Job makes no more spares */
        if (!job->gone)
            set_job_timer(job);
    }
    vec_clear(&jobset->work.uncounted);
    if (bytes && memcmp(before, jobset->rjob_status, bytes) != 0)
        step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void jobset_restored(struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        if (!job)
            continue;
        job->counted = status_of(job);
        set_job_timer(job);
    }
}
