/* start.c - when a placed task is told to start: everything that has to hold before. */
#include "core/gang/internal.h"

const struct task *next_elder(const struct job **old, int32_t index)
{
    CHECK(index >= 0);
    while (*old) {
        const struct task *task = (*old)->indexes[index].task; /* its predecessors ended before it was made */
        *old = (*old)->before;
        if (task && !task_ended(task->state))
            return task;
    }
    return NULL;
}

/* Whether a living task elsewhere has the same host name: this one must not start before that one is dead.
 * On one machine the agent keeps the order, if it knows the other task by this name. */
static bool name_is_taken(const struct task *task)
{
    CHECK(task->state == TASK_PLACED);
    if (task_is_spare(task))
        return false;
    const struct job *old = task->job->jobset->ending[task->job->global_index];
    const struct task *other;
    while ((other = next_elder(&old, task->index)))
        if (other->machine != task->machine || other->was_spare)
            return true;
    return false;
}

void task_start_if_free(struct step *step, struct task *task)
{
    if (task->state != TASK_PLACED || task_is_dead(task) || jobset_parks(task->job->jobset) ||
        step_is_hearing(step) || task_is_away(task) || name_is_taken(task) || spare_start_waits(task))
        return;
    CHECK(task->machine != MACHINE_NONE && task->gang);
    if (task->gang->preflight || slice_start_waits(step, task))
        return;
    if (task->job->rjob->job.pod.uses_config && task_config_waits(step, task))
        return;
    lifecycle_move(&task_lifecycle, &task->state, TASK_STARTING);
    task->start_sent_ns = step->now_ns;
    if (!task->gang->told)
        jobset_mark(step, task->job->jobset); /* usage_phases: its chips have another owner */
    task->gang->told = true;
    task->attempt = task->began_attempt = task->job->jobset->attempt;
    effect_add(step->effects, EFFECT_TASK_START)->start = task;
    slice_tell_tables(step, task);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
}

void config_wake_waiters(struct step *step)
{
    struct job_store *store = step->jobs;
    uint64_t version = object_kind_version(step->objects, OBJECT_CONFIG_MAP) +
                       object_kind_version(step->objects, OBJECT_SECRET) +
                       object_kind_version(step->objects, OBJECT_CLAIM);
    if (version == store->config_version || store->config_waiters.len == 0)
        return;
    store->config_version = version;
    size_t waiting = store->config_waiters.len;
    for (size_t i = 0; i < waiting; i++) {
        struct task *task = jobs_find_task(store, store->config_waiters.items[i]);
        if (task && task->state == TASK_PLACED)
            task_start_if_free(step, task);
    }
    size_t left = store->config_waiters.len - waiting;
    memmove(store->config_waiters.items, store->config_waiters.items + waiting,
            left * sizeof *store->config_waiters.items);
    store->config_waiters.len = left;
}
