/* evict.c - tasks that are ended from outside: by users, hangs, broken slices and isolated machines. */
#include "core/life/internal.h"

void task_evict(struct step *step, struct task *task, int64_t grace_s)
{
    bool single = task->job->jobset->form == FORM_POD, own = single || job_is_hidden(task->job);
    if (single)
        jobset_delete(step, task->job->jobset);
    if (task_ended(task->state)) { /* the Job has booked the end: the Pod is only hidden */
        if (!single && !task->evicted) {
            task->evicted = true;
            step_changed(step, CHANGE_MODIFIED, ref_task(task));
            jobset_mark(step, task->job->jobset);
        }
        return;
    }
    task->evicted = !own;
    int64_t wanted_s = grace_s >= 0 ? grace_s : task->job->rjob->job.pod.grace_s;
    wanted_s = wanted_s < INT32_MAX ? wanted_s : INT32_MAX; /* a client may ask for any number */
    task_stop(step, task, own, wanted_s * NS_PER_SECOND);
    step_note(step, false, "Killing", ref_task(task), "Stopping container " STR_FORMAT,
              STR_ARG(task->job->rjob->job.pod.container));
    jobset_mark(step, task->job->jobset);
}

void jobs_end_hung(struct step *step, struct task *task, struct str why)
{
    CHECK(why.len > 0);
    if (task_ended(task->state) || task_is_dead(task) || task->doomed)
        return;
    task_message(task, "its job hangs because of it: " STR_FORMAT, STR_ARG(why));
    task->loss = LOSS_HANG;
    task_evict(step, task, 0);
}

void jobs_end_broken(struct step *step, struct task *task, struct str why)
{
    CHECK(why.len > 0 && !task_ended(task->state) && !task_is_dead(task) && !task->doomed);
    task_message(task, "its slice is broken: " STR_FORMAT, STR_ARG(why));
    task->loss = LOSS_FAULT;
    task_evict(step, task, -1);
}

void jobs_vacate(struct step *step, const struct machine *machine, struct str why)
{
    CHECK(machine->id < step->cluster->machine_count && why.len > 0);
    preflight_leave(step, machine, why);
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->state == TASK_STOPPING || task_is_dead(task) || task->doomed)
            continue;
        task_message(task, "evicted from " STR_FORMAT ": " STR_FORMAT, STR_ARG(machine->name), STR_ARG(why));
        task->loss = LOSS_FAULT;
        task_evict(step, task, -1);
    }
}
