/* start.c - the start of a placed task, and the preparations that come first. */
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

/* Returns whether a living task elsewhere has the same host name, and must be dead before this one starts. On
 * the same machine the agent keeps the order, if the other task has this name there, too. */
static bool name_waits(struct step *step, struct task *task)
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

static bool next_attempt_waits(struct step *step, struct task *task)
{
    return jobset_parks(task->job->jobset);
}

static bool hearing_waits(struct step *step, struct task *task)
{
    return step_is_hearing(step);
}

static bool replica_waits(struct step *step, struct task *task)
{
    return task_is_away(task);
}

static bool cold_spare_waits(struct step *step, struct task *task)
{
    return spare_start_waits(task);
}

static bool preflight_waits(struct step *step, struct task *task)
{
    CHECK(task->machine != MACHINE_NONE && task->gang);
    return task->gang->preflight;
}

static bool slice_waits(struct step *step, struct task *task)
{
    return slice_start_waits(step, task);
}

static bool config_waits(struct step *step, struct task *task)
{
    return task->job->rjob->job.pod.uses_config && task_config_waits(step, task);
}

/* Preparations that have to be complete before a placed task is told to start. Each function returns whether
 * its preparation is still missing. The order matters: the last one tells users which object is missing. */
static bool (*const preparations[])(struct step *step, struct task *task) = {
    next_attempt_waits, /* the JobSet's next attempt is being prepared: the task starts with that one */
    hearing_waits,      /* after a restore, some machine has not been heard yet (recover/hearing.c) */
    replica_waits,      /* the task's replica takes no part in this attempt */
    name_waits,         /* an older task of the same name may be alive elsewhere */
    cold_spare_waits,   /* the task is a cold spare, which only holds resources for a rank */
    preflight_waits,    /* the gang's machines are being tested */
    slice_waits,        /* the slice has no cross-connects yet */
    config_waits,       /* a ConfigMap, Secret or claim that the Pod needs is missing */
};

void task_start_if_free(struct step *step, struct task *task)
{
    if (task->state != TASK_PLACED || task_is_dead(task))
        return;
    for (size_t i = 0; i < sizeof preparations / sizeof *preparations; i++)
        if (preparations[i](step, task))
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
