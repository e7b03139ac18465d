/* notice.c - notices to tasks that will be stopped or moved, so that they can save first. */
#include "core/life/internal.h"

/* Sends the task a notice that it has `left_ns` to save, or, if that is 0, its grace. Returns the task's
 * grace, or 0 without a notice if the task does not run or does not use libphalanx. */
static int64_t notice_task(struct step *step, const struct task *task, enum drain_reason reason,
                           int64_t left_ns)
{
    int64_t grace_ns = task->job->rjob->job.pod.grace_s * NS_PER_SECOND;
    if (task->state != TASK_RUNNING || !task->joined || task->doomed)
        return 0;
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
    effect->notice.machine = task->machine;
    effect->notice.notice = (struct task_notice){.kind = NOTICE_DRAIN,
                                                 .task = task->uid,
                                                 .deadline_ns = left_ns ? left_ns : grace_ns,
                                                 .reason = reason};
    return grace_ns;
}

static int64_t notice_all(struct step *step, const struct jobset *jobset, enum drain_reason reason,
                          int64_t left_ns)
{
    int64_t longest_ns = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            int64_t grace_ns = notice_task(step, job->tasks.items[t], reason, left_ns);
            longest_ns = grace_ns > longest_ns ? grace_ns : longest_ns;
        }
    }
    return longest_ns;
}

int64_t jobset_notice(struct step *step, const struct jobset *jobset, enum drain_reason reason)
{
    return notice_all(step, jobset, reason, 0);
}

void jobset_notice_hot_switch(struct step *step, const struct jobset *jobset)
{
    (void)notice_all(step, jobset, DRAIN_MOVE, MOVE_LIMIT_NS);
}

int64_t jobs_notice_drain(struct step *step, const struct machine *machine, enum drain_reason reason)
{
    CHECK(machine->id < step->cluster->machine_count);
    int64_t longest_ns = 0;
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task_is_spare(task) || (reason == DRAIN_MAINTENANCE && move_by_spares(task->job->jobset)))
            continue;
        int64_t grace_ns = notice_task(step, task, reason, 0);
        longest_ns = grace_ns > longest_ns ? grace_ns : longest_ns;
    }
    return longest_ns;
}

bool jobs_have_saved(const struct job_store *store, const struct machine *machine, int64_t noticed_ns)
{
    CHECK(machine->id < store->machine_count);
    list_for_each(node, &store->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        bool told = task->state == TASK_RUNNING && task->joined && !task_is_spare(task);
        if (told && task->job->jobset->checkpoint.committed_ns <= noticed_ns)
            return false;
    }
    return true;
}
