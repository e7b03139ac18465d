/* state.c - the end of a recovery, of a move, and of waits for ranks. No task is stopped or started here. */
#include "core/recover/internal.h"

void inplace_cancel(struct jobset *jobset)
{
    inplace_end(jobset, RECOVERY_NONE);
}

void inplace_end(struct jobset *jobset, enum recovery_state to)
{
    CHECK(!recovery_state_parks(to) && to != RECOVERY_REJOINING);
    jobset->recovery.in_place_restarts += jobset_parks(jobset); /* counts the attempt that was prepared */
    recovery_state_move(&jobset->recovery.state, to);
    jobset->recovery.path = PATH_RESTART;
    jobset->recovery.rejoin_since_ns = jobset->recovery.apart_ns = 0;
    unjoined_forget(jobset);
    shrink_forget(jobset);
}

void attempt_raise(const struct step *step, struct jobset *jobset, int32_t attempt)
{
    CHECK(attempt > jobset->attempt);
    jobset->attempt = attempt;
    jobset->recovery.attempt_epoch = step->epoch;
}

void inplace_retire(const struct step *step, struct jobset *jobset)
{
    CHECK(jobset->attempt < INT32_MAX);
    attempt_raise(step, jobset, jobset->attempt + 1);
    jobset->recovery.in_place_restarts++;
    inplace_forget_dump(jobset);
}

bool inplace_forget_dump(struct jobset *jobset)
{
    struct jobset_recovery *recovery = &jobset->recovery;
    bool over = recovery->state == RECOVERY_SAVED || recovery->state == RECOVERY_REFUSED;
    if (recovery->state == RECOVERY_DUMPING)
        recovery_state_move(&recovery->state, RECOVERY_PARKED);
    else if (over)
        recovery_state_move(&recovery->state, RECOVERY_NONE);
    return over;
}

void inplace_forget_keepers(struct jobset *jobset)
{
    struct jobset_recovery *recovery = &jobset->recovery;
    if (recovery->state == RECOVERY_REJOINING)
        recovery_state_move(&recovery->state, RECOVERY_NONE);
    else if (jobset_parks(jobset))
        recovery->path = PATH_RESTART;
    recovery->rejoin_since_ns = recovery->apart_ns = 0;
    unjoined_forget(jobset);
    CHECK(!jobset_keeps(jobset));
}

bool inplace_is_left(const struct task *task)
{
    return task->parked || (task->keep == KEEP_WAITS && !task_ended(task->state));
}

bool inplace_left_some(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count && !jobset_parks(jobset); i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (inplace_is_left(task) && !task_is_away(task))
                return true;
        }
    }
    return false;
}

void unjoined_forget(struct jobset *jobset)
{
    jobset->recovery.joins.newest_ns = jobset->recovery.joins.due_ns = 0;
}

void move_end(struct jobset *jobset)
{
    if (jobset->recovery.move.state != MOVE_NONE)
        lifecycle_move(&move_lifecycle, &jobset->recovery.move.state, MOVE_NONE);
}
