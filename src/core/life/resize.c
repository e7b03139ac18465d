/* resize.c - the arrays that a JobSet keeps for each place of its spec: Jobs, their indexes, their last
 * machines.
 *
 * parallelism and completions may change while a Job lives (of a Job without a JobSet, or of an elastic
 * JobSet). The number of places of a replicated job never decreases while its JobSet lives. Places beyond the
 * spec are empty, and keep their state until the spec includes them again.
 */
#include "core/life/internal.h"

enum { PLACES_BYTES = 128 }; /* size of the arrays of a JobSet with one Job */

static uint32_t lay_out(const struct jobset *jobset, const uint32_t *widths)
{
    uint32_t slots = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        slots += (uint32_t)jobset->spec.rjobs[r].replicas * widths[r];
    return slots;
}

void jobset_unbind(struct jobset *jobset)
{
    arena_done(&jobset->slots.arena);
    mem_free(jobset->slots.last_machines);
}

void jobset_bind(struct jobset *jobset)
{
    size_t rjobs = jobset->spec.rjob_count;
    uint32_t count = 0;
    arena_reserve(&jobset->slots.arena, PLACES_BYTES);
    jobset->widths = ARENA_ARRAY(&jobset->slots.arena, uint32_t, rjobs);
    for (size_t r = 0; r < rjobs; r++) {
        count += (uint32_t)jobset->spec.rjobs[r].replicas;
        jobset->widths[r] = job_index_count(&jobset->spec.rjobs[r]);
    }
    jobset->job_count = count;
    jobset->slots.count = lay_out(jobset, jobset->widths);
    CHECK(count <= TASKS_PER_JOBSET_MAX && jobset->slots.count <= TASKS_PER_JOBSET_MAX);
    jobset->slots.last_machines = mem_alloc(jobset->slots.count * sizeof(*jobset->slots.last_machines));
    for (uint32_t i = 0; i < jobset->slots.count; i++)
        jobset->slots.last_machines[i] = MACHINE_NONE;
    jobset->jobs = ARENA_ARRAY(&jobset->slots.arena, struct job *, count);
    jobset->ending = ARENA_ARRAY(&jobset->slots.arena, struct job *, count);
    jobset->job_attempts = ARENA_ARRAY(&jobset->slots.arena, int32_t, count);
    jobset->job_attempts_counted = ARENA_ARRAY(&jobset->slots.arena, int32_t, count);
    jobset->rjob_status = ARENA_ARRAY(&jobset->slots.arena, struct rjob_status, rjobs);
}

void jobset_rebind(struct jobset *jobset)
{
    CHECK(jobset->form == FORM_WORKLOAD && jobset->made == 0 && jobset->old_jobs.len == 0);
    jobset_unbind(jobset);
    jobset_bind(jobset);
}

static void widen_job(struct job *job)
{
    if (!job)
        return;
    uint32_t width = job->jobset->widths[job->rjob_index];
    job->first_slot = jobset_first_slot(job->jobset, job->rjob_index, job->index);
    if (width <= job->index_count)
        return;
    job->indexes = mem_realloc(job->indexes, width * sizeof(*job->indexes));
    for (uint32_t i = job->index_count; i < width; i++)
        job->indexes[i] = (struct job_index){0};
    job->index_count = width;
}

void jobset_widen(struct jobset *jobset, const uint32_t *widths)
{
    bool wider = false;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        wider |= widths[r] > jobset->widths[r];
    if (!wider)
        return;
    uint32_t old_slot = 0, slot = 0, slots = lay_out(jobset, widths);
    machine_id *machines = mem_alloc(slots * sizeof(*machines));
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        CHECK(widths[r] >= jobset->widths[r]);
        for (int32_t i = 0; i < jobset->spec.rjobs[r].replicas; i++)
            for (uint32_t w = 0; w < widths[r]; w++)
                machines[slot++] =
                    w < jobset->widths[r] ? jobset->slots.last_machines[old_slot++] : MACHINE_NONE;
    }
    CHECK(slot == slots && old_slot == jobset->slots.count);
    mem_free(jobset->slots.last_machines);
    jobset->slots.last_machines = machines;
    jobset->slots.count = slots;
    mem_copy(jobset->widths, widths, jobset->spec.rjob_count * sizeof(*widths));
    for (uint32_t i = 0; i < jobset->job_count; i++)
        widen_job(jobset->jobs[i]);
    for (size_t i = 0; i < jobset->old_jobs.len; i++)
        widen_job(jobset->old_jobs.items[i]);
}

void jobset_fit(struct jobset *jobset)
{
    uint32_t widths[REPLICATED_JOBS_MAX];
    CHECK(jobset->spec.rjob_count <= REPLICATED_JOBS_MAX);
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        uint32_t wanted = job_index_count(&jobset->spec.rjobs[r]);
        widths[r] = wanted > jobset->widths[r] ? wanted : jobset->widths[r];
    }
    jobset_widen(jobset, widths);
}
