/* rejoin.c - keepers: processes that survive a restart in place, wait for the next attempt, are told of it,
 * and join it.
 *
 * A keeper's Pod, uid, chips and machine stay. Its attempt rises when the new one begins, which is when every
 * rank has a place. From then on the keeper counts as not joined, and reports about older attempts are
 * ignored. A keeper that has not joined by the rung's limit is ended, and starts again in the attempt after.
 *
 * Ranks that all live but lose their connection to each other wait for a new attempt as well, because only
 * the controller can end the present one. For them an attempt begins without a loss.
 */
#include "core/recover/internal.h"

/* The death of a process is reported within this time. */
#define APART_LIMIT_NS (5 * NS_PER_SECOND)
/* Steps from before a break may arrive within this time, because agents and the host collect them. */
#define STEPS_LATE_NS (2 * NS_PER_SECOND)
/* The limit for joins on the planned path, on which ranks finish their step first. */
#define PLANNED_LIMIT_NS (900 * NS_PER_SECOND)

static bool runs(const struct task *task)
{
    if (task_is_dead(task))
        return false;
    return task->state == TASK_STARTING || task->state == TASK_RUNNING || task->state == TASK_STOPPING;
}

void rejoin_keep_or_stop(struct step *step, struct jobset *jobset, const struct task *culprit)
{
    CHECK(!culprit || culprit->job->jobset == jobset);
    CHECK(jobset_parks(jobset));
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task == culprit || !runs(task))
                continue;
            bool keeps = jobset_keeps(jobset) && job->state == JOB_ACTIVE && recovery_keeps(task);
            task->keep = keeps ? KEEP_WAITS : KEEP_NO;
            if (!keeps)
                task_stop(step, task, false, job->rjob->job.pod.grace_s * NS_PER_SECOND);
        }
    }
}

void rejoin_tell_one(struct step *step, struct task *task)
{
    CHECK(task->state == TASK_RUNNING && task->gang && !task->parked);
    task->keep = KEEP_TOLD;
    task->joined = task->peers_lost = false;
    task->saved_step = -1;
    task->saved_before_count = 0;
    task->attempt = task->gang->attempt = task->job->jobset->attempt;
    task->gang->replaces = true;
    task_rank(task); /* its ports depend on the attempt */
    effect_add(step->effects, EFFECT_TASK_REJOIN)->rejoin = task;
    step_changed(step, CHANGE_MODIFIED, ref_task(task)); /* its Pod shows the attempt */
}

void rejoin_tell(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_parks(jobset));
    bool some = false;
    jobset->checkpoint.laggard = NULL;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task->keep != KEEP_WAITS || task->state != TASK_RUNNING || task_is_away(task))
                continue;
            rejoin_tell_one(step, task);
            some = true;
        }
    }
    jobset->recovery.rejoin_since_ns = some ? step->now_ns : 0;
}

bool rejoin_is_old_word(const struct task *task, const struct task_report *report)
{
    if (report->attempt_plus_1 == 0) /* the agent does not know Rejoin */
        return task->keep == KEEP_TOLD;
    return report->attempt_plus_1 != (uint32_t)task->attempt + 1 ||
           (task->keep == KEEP_TOLD && report->kind != REPORT_JOINED);
}

void rejoin_say_again(struct step *step, const struct task *task, const struct task_report *report)
{
    CHECK(task->state == TASK_RUNNING);
    if (task->keep ==
        KEEP_WAITS) /* Rejoin for the next attempt follows soon; this attempt has no rendezvous any more */
        return;
    if (!task->can_rejoin || report->attempt_plus_1 == 0 || report->attempt_plus_1 > (uint32_t)task->attempt)
        return;
    effect_add(step->effects, EFFECT_TASK_REJOIN)->rejoin = task;
}

void rejoin_note_apart(struct step *step, const struct task *reporter)
{
    CHECK(!task_is_spare(reporter));
    struct jobset *jobset = reporter->job->jobset;
    if (jobset->recovery.apart_ns || jobset_parks(jobset) || !recovery_keeps(reporter) ||
        reporter->attempt != jobset->attempt)
        return;
    jobset->recovery.apart_ns = step->now_ns;
    jobset_mark(step, jobset); /* its timer */
}

void rejoin_note_step(struct step *step, struct jobset *jobset)
{
    if (!jobset->recovery.apart_ns || step->now_ns - jobset->recovery.apart_ns < STEPS_LATE_NS)
        return;
    jobset->recovery.apart_ns = 0;
    jobset_mark(step, jobset);
}

static int64_t after(int64_t since_ns, int64_t wait_ns)
{
    return since_ns ? since_ns + wait_ns : INT64_MAX;
}

/* Returns the stamp from which keepers that have not joined are late. */
static int64_t join_deadline(const struct jobset *jobset)
{
    return after(jobset->recovery.rejoin_since_ns,
                 jobset->recovery.path == PATH_PLANNED ? PLANNED_LIMIT_NS : recovery_limit_ns(jobset));
}

int64_t rejoin_deadline(const struct jobset *jobset)
{
    int64_t late_ns = join_deadline(jobset);
    int64_t apart_ns = after(jobset->recovery.apart_ns, APART_LIMIT_NS);
    return late_ns < apart_ns ? late_ns : apart_ns;
}

bool rejoin_is_late(const struct step *step, struct jobset *jobset)
{
    bool some = false;
    if (join_deadline(jobset) > step->now_ns)
        return false;
    jobset->recovery.rejoin_since_ns = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task->keep != KEEP_TOLD)
                continue;
            task->keep = KEEP_NO;
            some |= task->state == TASK_RUNNING && !task->joined;
        }
    }
    return some;
}

/* Returns whether the machines of all tasks are READY. An AWAY machine may turn out to be lost, and would
 * then be the cause. */
static bool all_are_heard(const struct step *step, const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (!task_ended(task->state) && task->machine != MACHINE_NONE &&
                step->cluster->machines[task->machine].state != MACHINE_READY)
                return false;
        }
    }
    return true;
}

bool rejoin_is_apart(const struct step *step, struct jobset *jobset)
{
    if (after(jobset->recovery.apart_ns, APART_LIMIT_NS) > step->now_ns)
        return false;
    bool heard = all_are_heard(step, jobset);
    jobset->recovery.apart_ns = heard ? 0 : step->now_ns;
    return heard;
}
