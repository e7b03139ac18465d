/* catch_up.c - a controller whose log was restored from a backup meets machines that have seen newer
 * attempts.
 *
 * An agent fences every START of an attempt older than the newest it has seen, and reports that newest
 * attempt; a running task reports its attempt too. The attempts in between are lost, so the workload goes
 * on with the attempt after the newest, made anew as a whole, at once. This is no failure: it counts
 * towards no limit, no machine is blamed, and no progress is expected. If another machine knows a still
 * newer attempt, the same happens again. */
#include "core/recover/internal.h"

void catch_up_note(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(task->machine != MACHINE_NONE);
    struct jobset *jobset = task->job->jobset;
    int64_t seen = (int64_t)report->attempt_plus_1 - 1;
    bool managed = jobset->form != FORM_POD && !jobset->deleted_ns && !jobset->hidden &&
                   !jobset_finished(jobset) && !jobset_rests(jobset) && !jobset_is_foreign(jobset);
    if (!managed || task->job->doomed || seen <= jobset->attempt || seen <= jobset->recovery.seen_attempt ||
        seen >= INT32_MAX)
        return;
    struct buf text BUF_CLEANUP = {0};
    struct end_fault found;
    struct str machine = step->cluster->machines[task->machine].name;
    buf_printf(&text,
               STR_FORMAT
               " has seen attempt %lld, the controller's log only %d: it was restored from a backup",
               STR_ARG(machine), (long long)seen, jobset->attempt);
    end_fault_ordered(ORDER_RESTORE, STR(""), STR(""), buf_str(&text), step->now_ns, &found);
    ends_strike(step, jobset, &found);
    jobset->recovery.seen_attempt = (int32_t)seen;
    jobset_mark(step, jobset);
}

/* A Job without a JobSet is not made anew: its Pods are. */
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
    if (seen <= before)
        return false;
    inplace_cancel(jobset);
    restart_begin(step, jobset, seen + 1, "LogRestored", NULL);
    step_note_late(step, true, "LogRestored", ref_jobset(jobset),
                   "machines have seen attempt %d, the log only %d: it goes on as attempt %d", seen, before,
                   seen + 1);
    jobset->recovery.in_place_restarts += seen + 1 - before;
    jobset->attempt = seen + 1;
    jobset->executions++;
    ladder_stop(&jobset->recovery.ladder);
    begin_again(step, jobset);
    shrink_forget(jobset);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return true;
}
