/* catch_up.c - machines that know newer attempts than the log, which was restored from a backup and lacks its
 * newest part.
 *
 * Agents report with each hello the attempts that they have seen, and refuse every START of an older one. The
 * log cannot know the lost attempts, so the whole workload begins again at once, as the attempt after the
 * newest. This does not count as a failure, no machine is blamed, and no progress is expected. If another
 * machine knows a still newer attempt, the workload begins again once more.
 *
 * The restored controller may have begun an attempt with the number of a lost one. The epoch tells them
 * apart: the lost attempt has an older epoch.
 */
#include "core/recover/internal.h"

static bool is_managed(const struct jobset *jobset)
{
    return jobset->form != FORM_POD && !jobset->deleted_ns && !jobset->hidden && !jobset_finished(jobset) &&
           !jobset_rests(jobset) && !jobset_is_foreign(jobset);
}

/* The lost part of a log has not begun more attempts of a JobSet than this: a machine that has seen more is
 * not believed, because attempts are numbers that a JobSet can use up. */
enum { ATTEMPT_LEAP_MAX = 1000000 };

static void take_seen(struct step *step, struct jobset *jobset, const struct machine *machine, int32_t seen)
{
    CHECK(seen >= jobset->attempt && seen < INT32_MAX);
    if (seen - jobset->attempt > ATTEMPT_LEAP_MAX || seen > INT32_MAX / 2) {
        step_note(step, true, "AttemptNotBelieved", ref_jobset(jobset),
                  STR_FORMAT " has seen attempt %d, the controller's log only %d: ignored",
                  STR_ARG(machine->name), seen, jobset->attempt);
        return;
    }
    if (!is_managed(jobset) || seen <= jobset->recovery.seen_attempt)
        return;
    struct buf text BUF_CLEANUP = {0};
    struct end_fault found;
    buf_printf(&text,
               STR_FORMAT " has seen attempt %d, the controller's log only %d: it was restored from a backup",
               STR_ARG(machine->name), seen, jobset->attempt);
    end_fault_ordered(ORDER_RESTORE, STR(""), STR(""), buf_str(&text), step->now_ns, &found);
    ends_strike(step, jobset, &found);
    jobset->recovery.seen_attempt = seen;
    jobset_mark(step, jobset);
}

void catch_up_note(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(task->machine != MACHINE_NONE);
    struct jobset *jobset = task->job->jobset;
    int64_t seen = (int64_t)report->attempt_plus_1 - 1;
    if (seen > task->attempt) /* the lost part has moved the task to that attempt, with any rank */
        hearing_stranger(step, task->uid);
    if (!task->job->doomed && seen > jobset->attempt && seen < INT32_MAX)
        take_seen(step, jobset, &step->cluster->machines[task->machine], (int32_t)seen);
}

/* Returns whether the attempt belongs to the lost part: this log has not begun it. */
static bool is_lost(const struct jobset *jobset, const struct attempt_seen *seen)
{
    bool older = seen->epoch > 0 && seen->epoch < jobset->recovery.attempt_epoch;
    return seen->attempt > jobset->attempt || (seen->attempt == jobset->attempt && older);
}

void catch_up_hello(struct step *step, const struct machine *machine, const struct hello *hello)
{
    CHECK(hello->seen || hello->seen_count == 0);
    for (size_t i = 0; i < hello->seen_count; i++) {
        const struct attempt_seen *seen = &hello->seen[i];
        struct jobset *jobset = jobs_find_uid(step->jobs, seen->jobset);
        if (jobset && seen->attempt < INT32_MAX && is_lost(jobset, seen))
            take_seen(step, jobset, machine, seen->attempt);
    }
}

bool catch_up_ends(struct step *step, struct task *task)
{
    if (task->job->jobset->recovery.seen_attempt == 0)
        return false;
    task->doomed = true;
    task_finish(step, task, END_STOPPED);
    return true;
}

/* Replaces the Jobs of a JobSet, or the Pods of a Job without a JobSet. */
static void begin_again(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->form != FORM_POD && jobset->executions >= 0);
    if (jobset->form == FORM_JOBSET) {
        attempt_doom_jobs(step, jobset, 0, jobset->job_count);
        return;
    }
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && jobset->jobs[i]->state == JOB_ACTIVE) {
            job_suspend(step, jobset->jobs[i]);
            job_resume(step, jobset->jobs[i]);
        }
}

bool catch_up(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.seen_attempt >= 0);
    int32_t seen = jobset->recovery.seen_attempt, before = jobset->attempt;
    jobset->recovery.seen_attempt = 0;
    if (seen == 0 || seen < before)
        return false;
    inplace_cancel(jobset);
    restart_begin(step, jobset, seen + 1, "LogRestored", NULL);
    step_note(step, true, "LogRestored", ref_jobset(jobset),
              "machines have seen attempt %d, the log only %d: it goes on as attempt %d", seen, before,
              seen + 1);
    jobset->recovery.in_place_restarts += seen + 1 - before;
    attempt_raise(step, jobset, seen + 1);
    jobset->executions++;
    ladder_stop(&jobset->recovery.ladder);
    begin_again(step, jobset);
    shrink_forget(jobset);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return true;
}
