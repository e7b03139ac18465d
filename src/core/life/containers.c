/* containers.c - the containers of a task as its agent reports them. They are kept for the API, for
 * readiness, for backoffLimit (their restarts) and for podFailurePolicy (their exit codes). The agent reports
 * the end of a task separately. */
#include "core/life/internal.h"

static bool same_status(const struct container_status *a, const struct container_status *b)
{
    return a->phase == b->phase && a->ready == b->ready && a->started == b->started &&
           a->restarts == b->restarts && a->started_ns == b->started_ns && str_equal(a->reason, b->reason) &&
           str_equal(a->message, b->message) && a->end.finished_ns == b->end.finished_ns &&
           a->end.exit_code == b->end.exit_code && a->end.signal == b->end.signal;
}

static bool same_statuses(const struct task *task, const struct task_report *report)
{
    bool same = task->container_count == report->container_count;
    for (uint32_t i = 0; i < task->container_count && same; i++)
        same = same_status(&task->containers[i], &report->containers[i]);
    return same;
}

void task_forget_containers(struct task *task)
{
    CHECK(task->parked && !task->ready);
    uint32_t most = 0;
    for (uint32_t i = 0; i < task->container_count; i++)
        if (task->containers[i].role == CONTAINER_MAIN && task->containers[i].restarts > most)
            most = task->containers[i].restarts;
    task->failed_runs = (uint32_t)task_container_restarts(task);
    task->runs_before += most;
    containers_restore(task, NULL, 0);
}

/* Fails the Job if its containers' restarts reach backoffLimit, by the Job controller's rule for
 * restartPolicy OnFailure. */
static void count_restarts(struct step *step, const struct task *task)
{
    CHECK(task->container_count > 0);
    struct job *job = task->job;
    bool counts = job->jobset->form != FORM_POD && !job_is_hidden(job) && job->state == JOB_ACTIVE &&
                  job->rjob->job.pod.restart_policy == RESTART_ON_FAILURE;
    uint64_t restarts = counts ? job_container_restarts(job, NULL) : 0;
    if (restarts == 0 || restarts < (uint64_t)job->rjob->job.backoff_limit)
        return;
    job_fail(step, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    jobset_mark(step, job->jobset);
}

void containers_take(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(report->container_count <= TASK_CONTAINERS_MAX);
    if (report->container_count == 0 || same_statuses(task, report))
        return;
    containers_restore(task, report->containers, (uint32_t)report->container_count);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    count_restarts(step, task);
}

void task_set_ready(struct step *step, struct task *task, bool ready)
{
    CHECK(task->state == TASK_RUNNING || !ready);
    if (task->ready == ready)
        return;
    struct job *job = task->job;
    task->ready = ready;
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    if (task_is_spare(task))
        return;
    CHECK(ready || job->ready > 0);
    job->ready = ready ? job->ready + 1 : job->ready - 1;
    CHECK(job->ready <= job->active);
    job_count(job);
    if (job_spares(job) > 0 && ready && (int32_t)job->ready >= job_wanted(job))
        job_touch(job); /* all ranks are ready, so spares may be made */
    jobset_mark(step, job->jobset);
}

void containers_note(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(report->kind == REPORT_NOTE && report->task == task->uid);
    char reason[64];
    size_t len = 0;
    for (; len < report->reason.len && len < sizeof reason - 1; len++) {
        char c = report->reason.data[len];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z')))
            return; /* an invalid reason */
        reason[len] = c;
    }
    reason[len] = 0;
    if (len > 0)
        step_note(step, report->warning, reason, ref_task(task), STR_FORMAT, STR_ARG(report->message));
}
