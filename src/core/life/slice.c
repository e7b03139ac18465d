/* slice.c - consequences for a JobSet of the state of its slice: it starts, takes other cubes, or runs again.
 * Called by core/react/slices.c. */
#include "core/life/internal.h"

void jobs_slice_connected(struct step *step, struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        for (size_t t = 0; gang->state == GANG_PLACED && t < gang->tasks.len; t++)
            if (gang->tasks.items[t]->gang == gang)
                task_start_if_free(step, gang->tasks.items[t]);
    }
    jobset_mark(step, jobset); /* usage_phases: tasks that still wait do so for another reason now */
}

/* Returns whether none of the gang's tasks was told to start, so that its machines can be released. */
static bool is_idle(const struct gang *gang)
{
    if (gang->state != GANG_PLACED || gang->alive == 0 || gang_is_spare(gang))
        return false;
    for (size_t t = 0; t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        if (!task_ended(task->state) && (task->state != TASK_PLACED || task->parked || task->counted))
            return false;
    }
    return true;
}

void jobs_slice_failed(struct step *step, struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        if (!is_idle(gang))
            continue;
        if (gang->preflight)
            preflight_drop(step, gang);
        gang_unplace(step, gang);
    }
    jobset_mark(step, jobset); /* usage_phases */
}

/* Returns whether the task holds a machine of the slice and was not told to end yet. */
static bool is_on_slice(const struct task *task)
{
    return task->state >= TASK_PLACED && task->state < TASK_STOPPING && !task_is_dead(task) && !task->doomed;
}

bool jobs_slice_lost(struct step *step, struct jobset *jobset, struct str why)
{
    bool some = false;
    for (uint32_t j = 0; j < jobset->job_count; j++)
        for (size_t t = 0; jobset->jobs[j] && t < jobset->jobs[j]->tasks.len; t++)
            if (is_on_slice(jobset->jobs[j]->tasks.items[t])) {
                jobs_end_broken(step, jobset->jobs[j]->tasks.items[t], why);
                some = true;
            }
    return some;
}

void jobs_slice_leave(struct step *step, struct jobset *jobset, struct str why)
{
    struct end_fault order;
    end_fault_ordered(ORDER_MAINTENANCE, STR(""), STR(""), why, step->now_ns, &order);
    ends_strike(step, jobset, &order);
    for (uint32_t j = 0; j < jobset->job_count; j++)
        for (size_t t = 0; jobset->jobs[j] && t < jobset->jobs[j]->tasks.len; t++) {
            struct task *task = jobset->jobs[j]->tasks.items[t];
            if (!is_on_slice(task))
                continue;
            task_message(task, "its slice moves to other cubes: " STR_FORMAT, STR_ARG(why));
            task->loss = LOSS_EVICTED;
            task_evict(step, task, -1);
        }
}
