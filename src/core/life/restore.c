/* restore.c - objects restored from a snapshot: the reader sets the saved fields, and these functions derive
 * the rest. */
#include "core/life/internal.h"

struct jobset *jobs_restore_jobset(struct job_store *store, obj_id uid, struct arena *arena,
                                   struct doc *document, const struct jobset_spec *spec, bool hidden)
{
    struct jobset *jobset = jobset_make(arena, document, spec);
    jobset->uid = uid;
    jobset->hidden = hidden;
    store_add_jobset(store, jobset);
    return jobset;
}

struct job *jobs_restore_job(struct job_store *store, struct jobset *jobset, obj_id uid, uint32_t position,
                             bool current)
{
    CHECK(!current || !jobset->jobs[position]);
    struct job *job = job_make(jobset, position);
    job->uid = uid;
    if (current) {
        jobset->jobs[position] = job;
        jobset->made++;
        store_add_job(store, job);
    } else {
        job->old_place = (uint32_t)jobset->old_jobs.len;
        vec_push(&jobset->old_jobs, job);
        job->before = jobset->ending[position];
        jobset->ending[position] = job;
        store_add_job(store, job);
    }
    return job;
}

struct task *jobs_restore_task(struct job_store *store, struct job *job, obj_id uid, int32_t index,
                               struct str name)
{
    struct task *task = task_make(job, uid, index, name);
    store->spares += task_is_spare(task);
    if (task_is_spare(task))
        vec_push(&job->spares, task);
    else
        vec_push(&job->tasks, task);
    store_add_task(store, task);
    return task;
}

struct gang *jobs_restore_gang(struct jobset *jobset, obj_id uid)
{
    struct gang *gang = mem_alloc(sizeof(*gang));
    gang->uid = gang->queued.id = uid;
    gang->jobset = jobset;
    vec_push(&jobset->gangs, gang);
    return gang;
}

/* Takes the task's resources from its machine. Returns false if they are not free, or if the task is not in
 * the list where it belongs. */
static bool take_task(const struct job *job, struct task *task, struct cluster *cluster)
{
    task->asked_chips = job->rjob->job.pod.chips; /* the same as saved: a change ends PENDING tasks at once */
    bool listed = !list_empty(&task->on_machine);
    if (listed != (!task_ended(task->state) && task->machine != MACHINE_NONE))
        return false;
    if (!task->holds)
        return true;
    struct machine *machine = &cluster->machines[task->machine];
    if (task->chips & ~machine->free_mask)
        return false;
    machine_take(machine, task->chips, task->cpu_milli, task->memory_bytes);
    return true;
}

static bool take_chips(const struct job *job, struct cluster *cluster)
{
    for (size_t t = 0; t < job->tasks.len; t++)
        if (!take_task(job, job->tasks.items[t], cluster))
            return false;
    for (size_t s = 0; s < job->spares.len; s++)
        if (!take_task(job, job->spares.items[s], cluster))
            return false;
    return true;
}

/* Returns whether the Job's numbers match its tasks, and no decided index has a living task. Steps rely on
 * both. */
static bool job_adds_up(const struct job *job)
{
    uint32_t active = 0, ready = 0, succeeded = 0, decided = 0;
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        const struct job_index *slot = &job->indexes[task->index];
        bool lives = !task_ended(task->state);
        if ((lives && (slot->task != task || slot->succeeded || slot->failed)) || (task->ready && !lives))
            return false;
        active += lives;
        ready += task->ready;
        succeeded += task->state == TASK_SUCCEEDED;
    }
    for (size_t s = 0; s < job->spares.len; s++) {
        const struct task *task = job->spares.items[s];
        if (!task->gang || !gang_is_spare(task->gang) || task->gang->account.owner != OWNER_SPARE)
            return false;
        for (size_t other = 0; other < s; other++)
            if (job->spares.items[other]->index == task->index)
                return false;
    }
    for (uint32_t i = 0; i < job->index_count; i++)
        decided += job->indexes[i].succeeded;
    return job->active == active && job->ready == ready && job->succeeded == succeeded &&
           decided == succeeded && job_failed(job) == (job->reason != NULL) && (!job_over(job) || !active);
}

static bool gang_adds_up(const struct gang *gang)
{
    uint32_t alive = 0, waiting = 0;
    for (size_t t = 0; t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        if ((gang->state == GANG_QUEUED) != (task->state == TASK_PENDING))
            return false;
        alive += !task_ended(task->state);
        waiting += !task->counted;
    }
    return alive > 0 && gang->alive == alive && gang->waiting == waiting;
}

static bool jobset_adds_up(const struct jobset *jobset)
{
    for (uint32_t j = 0; j < jobset->job_count; j++)
        if (jobset->jobs[j] && !job_adds_up(jobset->jobs[j]))
            return false;
    for (size_t j = 0; j < jobset->old_jobs.len; j++)
        if (!job_adds_up(jobset->old_jobs.items[j]))
            return false;
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (!gang_adds_up(jobset->gangs.items[g]))
            return false;
    return true;
}

bool jobs_restored(struct job_store *store, struct cluster *cluster)
{
    for (size_t i = 0; i < store->jobsets.len; i++) {
        struct jobset *jobset = store->jobsets.items[i];
        if (!jobset_adds_up(jobset))
            return false;
        for (uint32_t j = 0; j < jobset->job_count; j++)
            if (jobset->jobs[j] && !take_chips(jobset->jobs[j], cluster))
                return false;
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            if (!take_chips(jobset->old_jobs.items[j], cluster))
                return false;
        for (size_t g = 0; g < jobset->gangs.len; g++)
            if (jobset->gangs.items[g]->state == GANG_QUEUED) {
                gang_look_at_gates(jobset->gangs.items[g]);
                gang_judge(store, jobset->gangs.items[g]);
                sched_queue_add(&store->queue, &jobset->gangs.items[g]->queued);
            }
        jobset_restored(jobset);
    }
    return true;
}
