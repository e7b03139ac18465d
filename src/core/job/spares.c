/* spares.c - questions about spares, which are tasks that wait for a rank. */
#include "core/job/facts.h"

/* Returns the queue's spares as of the JobSet's admission, or none if the Job has no ranks. */
static struct queue_spares given(const struct job *job)
{
    const struct jobset *jobset = job->jobset;
    CHECK(job->rjob_index < jobset->spec.rjob_count);
    if (!jobset->grant.terms || !spares_allowed(&job->rjob->job))
        return (struct queue_spares){0};
    return jobset->grant.terms[job->rjob_index].spares;
}

uint32_t job_spares(const struct job *job)
{
    return job->rjob->spares_said ? job->rjob->spares : given(job).count;
}

bool spares_are_cold(const struct job *job)
{
    CHECK(job->rjob_index < job->jobset->spec.rjob_count);
    return job->rjob->spare_kind_said ? job->rjob->cold_spares : given(job).cold;
}

bool spare_start_waits(const struct task *task)
{
    return task_is_spare(task) && spares_are_cold(task->job);
}

bool spare_gives_way(const struct task *spare, const struct gang *gang)
{
    CHECK(task_is_spare(spare));
    return spare->job->jobset == gang->jobset || spare->priority < gang->queued.priority;
}

uint32_t move_extra_spares(const struct job *job)
{
    const struct move *move = &job->jobset->recovery.move;
    return move_by_spares(job->jobset) && move->machine != MACHINE_NONE ? job_ranks_on(job, move->machine)
                                                                        : 0;
}

uint32_t spares_wanted(const struct job *job)
{
    const struct jobset *jobset = job->jobset;
    bool lives = job->state == JOB_ACTIVE && !job->doomed && !jobset->deleted_ns && !jobset->hidden &&
                 !jobset_finished(jobset) && !jobset->spec.suspend && !jobset_is_foreign(jobset);
    uint32_t count = job_spares(job) + move_extra_spares(job);
    return lives && jobset->form != FORM_POD ? count : 0;
}

bool spare_may_be(const struct job *job, uint32_t count)
{
    return job->jobset->form != FORM_POD && spares_allowed(&job->rjob->job) &&
           job_spares(job) + count <= SPARES_PER_JOB_MAX;
}

static bool on_ready_machine(const struct task *task, const struct cluster *cluster)
{
    CHECK(task->machine < cluster->machine_count);
    const struct machine *machine = &cluster->machines[task->machine];
    return machine->state == MACHINE_READY && machine_schedulable(machine);
}

bool task_is_ready_spare(const struct task *task, const struct cluster *cluster)
{
    if (!task_is_spare(task) || task->doomed || task->evicted || task->machine == MACHINE_NONE ||
        !on_ready_machine(task, cluster))
        return false;
    if (spares_are_cold(task->job))
        return task->state == TASK_PLACED && task->gang && !task->gang->preflight;
    return task->state == TASK_RUNNING && task->joined && task->spare && task->can_rejoin;
}

uint32_t spare_ready(const struct job *job, const struct cluster *cluster)
{
    uint32_t count = 0;
    for (size_t s = 0; s < job->spares.len; s++)
        count += task_is_ready_spare(job->spares.items[s], cluster);
    return count;
}

struct spare_counts jobset_spares(const struct jobset *jobset, const struct cluster *cluster)
{
    struct spare_counts counts = {0};
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        counts.wanted += job ? spares_wanted(job) : 0;
        counts.ready += job ? spare_ready(job, cluster) : 0;
    }
    return counts;
}
