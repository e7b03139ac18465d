/* dump.c - a dying checkpoint: before all of a JobSet runs again, its surviving processes write the state
 * of all ranks, which they hold in memory, to storage (src/job/checkpoint/dump.c).
 *
 * The dump is a separate attempt, whose members are the survivors only. They are told to rejoin with the flag
 * DUMP, as contiguous ranks of a smaller world, and each reports its part as saved. With the last report the
 * step is committed, and the failure policy continues from there. No task starts during the dump. If a
 * survivor is lost, another such attempt begins with the rest. If a member that has joined exits, the shards
 * were not complete, and the last committed step counts.
 */
#include "core/recover/internal.h"

/* --- beginning -------------------------------------------------------------------------------- */

static void keep_or_stop(struct step *step, struct jobset *jobset, const struct task *culprit)
{
    CHECK(jobset->recovery.state == RECOVERY_DUMPING && jobset_keeps(jobset));
    rejoin_keep_or_stop(step, jobset, culprit);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task->state != TASK_RUNNING || task->keep != KEEP_WAITS || dump_has_state(task))
                continue;
            task->keep = KEEP_NO;
            task_stop(step, task, false, job->rjob->job.pod.grace_s * NS_PER_SECOND);
        }
    }
}

void dump_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                const struct recovery *recovery)
{
    CHECK(!culprit || culprit->job->jobset == jobset);
    CHECK(recovery->rung == RUNG_DUMP && jobset->recovery.state != RECOVERY_DUMPING);
    struct arena arena ARENA_CLEANUP = {0};
    bool same = restart_is_same_incident(step, jobset, culprit);
    if (!jobset_parks(jobset)) { /* otherwise no task knows the attempt that is being prepared */
        restart_begin(step, jobset, jobset->attempt + 1, NULL, culprit);
        attempt_raise(step, jobset, jobset->attempt + 1);
        jobset->recovery.counted = false;
    }
    recovery_state_move(&jobset->recovery.state, RECOVERY_DUMPING);
    jobset->recovery.path = PATH_KEEP;
    jobset->recovery.since_ns = step->now_ns;
    recovery_begin(step, jobset, recovery, same);
    step_note(step, true, "RecoveryDecided", ref_jobset(jobset), "dump as attempt %d: " STR_FORMAT STR_FORMAT,
              jobset->attempt, STR_ARG(culprit ? culprit->message : STR("places are missing")),
              STR_ARG(recovery_passed(recovery, &arena)));
    keep_or_stop(step, jobset, culprit);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset); /* dump_go_on tells the members when all losses of this step are known */
}

static bool waits(const struct task *task)
{
    return task && task->state == TASK_RUNNING && task->keep == KEEP_WAITS;
}

static uint32_t count(const struct jobset *jobset, bool waiting)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (uint32_t s = 0; job && s < job->index_count; s++)
            sum += waiting ? waits(job->indexes[s].task) : dump_has_member(job->indexes[s].task, jobset);
    }
    return sum;
}

static void tell(struct step *step, struct jobset *jobset, uint32_t world)
{
    CHECK(world > 0 && world <= jobset->slots.count);
    uint32_t rank = 0;
    jobset->checkpoint.laggard = NULL;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (uint32_t s = 0; job && s < job->index_count; s++) {
            struct task *task = job->indexes[s].task;
            if (!waits(task))
                continue;
            rejoin_tell_one(step, task);
            task->rank = rank++;
            task->world = world;
        }
    }
    CHECK(rank == world);
}

/* --- ending ----------------------------------------------------------------------------------- */

static bool is_saved(const struct jobset *jobset)
{
    return jobset->checkpoint.committed_step >= 0 && jobset->checkpoint.committed_attempt == jobset->attempt;
}

/* Fails the Jobs that have lost ranks, for the failure policy to answer. Otherwise the survivors would wait
 * for ranks that no Job makes. */
static void fail_lacking(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.state == RECOVERY_SAVED || jobset->recovery.state == RECOVERY_REFUSED);
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        int32_t members = 0;
        for (uint32_t s = 0; job && s < job->index_count; s++)
            members += dump_has_member(job->indexes[s].task, jobset);
        if (job && job->state == JOB_ACTIVE && members < job_wanted(job))
            job_fail(step, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        else if (job)
            job_touch(job);
    }
}

static void finish(struct step *step, struct jobset *jobset, bool saved, struct str why)
{
    CHECK(jobset->recovery.state == RECOVERY_DUMPING);
    if (saved)
        step_note(step, false, "DyingCheckpoint", ref_jobset(jobset),
                  "step %lld is committed as attempt %d: the survivors wrote the state of all ranks",
                  (long long)jobset->checkpoint.committed_step, jobset->attempt);
    else
        step_note(step, true, "DyingCheckpoint", ref_jobset(jobset),
                  "refused as attempt %d, the previous commit stays: " STR_FORMAT, jobset->attempt,
                  STR_ARG(why));
    inplace_end(jobset, saved ? RECOVERY_SAVED : RECOVERY_REFUSED);
    fail_lacking(step, jobset);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void dump_lost(struct step *step, struct task *task)
{
    struct jobset *jobset = task->job->jobset;
    CHECK(jobset->recovery.state == RECOVERY_DUMPING && task_ended(task->state));
    if (task->attempt != jobset->attempt || is_saved(jobset))
        return;
    if (task->end == END_EXIT && !task->signal && task->joined) {
        struct arena arena ARENA_CLEANUP = {0};
        finish(step, jobset, false,
               arena_printf(&arena, STR_FORMAT " ended, " STR_FORMAT, STR_ARG(task->name),
                            STR_ARG(task->message.len ? task->message : STR("exit code 0"))));
        return;
    }
    attempt_raise(step, jobset, jobset->attempt + 1); /* the remaining members meet without it */
    jobset->recovery.in_place_restarts++;
    restart_follow(jobset);
    keep_or_stop(step, jobset, task);
    jobset_mark(step, jobset);
}

void dump_go_on(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.state == RECOVERY_DUMPING && jobset->recovery.path == PATH_KEEP);
    uint32_t waiting = count(jobset, true);
    if (is_saved(jobset))
        finish(step, jobset, true, STR(""));
    else if (waiting + count(jobset, false) == 0)
        finish(step, jobset, false, STR("no survivor is left"));
    else if (dump_deadline(jobset) <= step->now_ns)
        finish(step, jobset, false, STR("not all have saved in time"));
    else if (waiting > 0 && !step_is_hearing(step))
        tell(step, jobset, waiting);
}
