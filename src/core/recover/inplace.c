/* inplace.c - restarts in place: when a task fails, all tasks of the JobSet run again where they are. The
 * reason is restartStrategy InPlaceRestart, or restartPolicy OnFailure of a rank that has joined through
 * libphalanx.
 *
 * Jobs, Pods and their chips stay. Each process is ended, and when all are known to be dead they start
 * together as the next attempt (JobSet's barrier, without an agent in every pod). A task that ends
 * meanwhile is *parked*: PLACED, with its chips, under the same Pod. For a task that was lost with its
 * machine the Job makes a new one, which is placed elsewhere. The others wait for it, at most PARK_LIMIT_NS;
 * then the JobSet is restarted as Recreate does. As upstream, status.restarts counts only such restarts, and
 * maxRestarts bounds both kinds together.
 *
 * Under OnFailure a container runs again in its Pod. The machine restarts the container alone while its
 * process has joined no peers. Once it has joined, the peers lose the rank with its process, and a new
 * process could not rejoin their attempt. All of them therefore run again. The failure counts once towards
 * the backoffLimit of the rank's Job, after the kubelet's back-off. Because the restart replaces a
 * container's restart, maxRestarts does not apply.
 *
 * Under the ladder (ladder/ladder.h), processes that can rejoin are not ended: they wait (rejoin.c) while
 * lost tasks are parked or replaced, as above. Such processes are *keepers*.
 *
 * The annotation jobset.sigs.k8s.io/disable-in-place-restart: "true" of a JobSet turns all of this off.
 */
#include "core/recover/internal.h"

#define PARK_LIMIT_NS (300 * NS_PER_SECOND)

static void look_at_keepers(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_parks(jobset));
    bool late = rejoin_is_late(step, jobset), apart = rejoin_is_apart(step, jobset);
    if (jobset_finished(jobset) || jobset_rests(jobset) || jobset->deleted_ns || jobset->hidden)
        return;
    if (late)
        inplace_go_on_without_loss(step, jobset, "RejoinTimeout", false,
                                   STR("processes that were told to rejoin did not"));
    else if (apart && recovery_may_retry(jobset))
        inplace_go_on_without_loss(step, jobset, "PeersApart", true,
                                   STR("ranks lost their connection to each other, and all of them live"));
}

void inplace_park(struct step *step, struct task *task)
{
    CHECK(task->job->jobset->recovery.state != RECOVERY_DUMPING);
    struct job *job = task->job;
    CHECK(task_is_dead(task) && task->holds && task->gang && (!task->ready || job->ready > 0));
    lifecycle_move(&task_lifecycle, &task->state, TASK_PLACED);
    job->ready -= task->ready;
    task->end = END_NONE;
    task->parked = true;
    task->keep = KEEP_NO;
    task->ready = task->joined = task->peers_lost = task->oom = task->fenced = false;
    task->exit_code = task->signal = 0;
    task->start_sent_ns = task->started_ns = task->ended_ns = task->stopping_since_ns = 0;
    task->stop_grace_ns = 0;
    task->saved_step = -1;
    task->saved_before_count = 0;
    slice_rank_ended(step, task);
    task_forget_containers(task);
    if (job->jobset->checkpoint.laggard == task)
        job->jobset->checkpoint.laggard = NULL;
    gang_task_parked(step, task);
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    jobset_mark(step, job->jobset);
}

/* Returns how many tasks the job needs at once for its undecided indexes. */
static int32_t open_tasks(const struct job *job)
{
    int32_t open = (int32_t)(job_index_count(job->rjob) - job->succeeded - job->failed_indexes);
    int32_t most = job_wanted(job);
    return job->rjob->job.completions < 0 || most < open ? most : open;
}

/* Returns whether every task that the Job needs has its place, and only keepers run. With `tested`, a place
 * that is still being tested does not count, because the task may yet move. */
static bool job_is_parked(const struct job *job, bool tested)
{
    int32_t placed = 0;
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        bool keeps = task->keep == KEEP_WAITS && task->state == TASK_RUNNING;
        bool moves = tested && task->gang && task->gang->preflight;
        bool waits = task->state == TASK_PLACED && !moves;
        if (!task_ended(task->state) && !keeps && !waits)
            return false;
        placed += waits || keeps;
    }
    return job->state != JOB_ACTIVE || placed >= open_tasks(job);
}

static bool all_parked(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && !job_is_parked(jobset->jobs[i], jobset_keeps(jobset)))
            return false;
    return true;
}

static void run_again(struct step *step, struct jobset *jobset)
{
    CHECK(jobset_parks(jobset) && jobset->recovery.state == RECOVERY_PARKED);
    recovery_state_move(&jobset->recovery.state, jobset_keeps(jobset) ? RECOVERY_REJOINING : RECOVERY_NONE);
    jobset->recovery.ladder.wait_ns = jobset->recovery.crashes.due_ns = 0;
    jobset->recovery.in_place_restarts++;
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (jobset->gangs.items[g]->state == GANG_PLACED && !gang_is_away(jobset->gangs.items[g])) {
            jobset->gangs.items[g]->attempt = jobset->attempt;
            jobset->gangs.items[g]->replaces = true;
        }
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task->state != TASK_PLACED || task_is_away(task))
                continue;
            task_rename(step, task);
            task_start_if_free(step, task);
        }
    }
    rejoin_tell(step, jobset);
    spare_resized(step, jobset); /* spares may be made, and started, again */
    for (size_t g = 0; g < jobset->gangs.len; g++)
        gang_go_on(step, jobset->gangs.items[g]); /* absent replicas no longer hold it back */
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

/* Returns the longest grace period, during which a stopped task may still occupy its place. */
static int64_t grace_max_ns(const struct jobset *jobset)
{
    int64_t most_s = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        int64_t grace_s = jobset->spec.rjobs[r].job.pod.grace_s;
        most_s = grace_s > most_s ? grace_s : most_s;
    }
    return (most_s < PARK_LIMIT_NS / NS_PER_SECOND ? most_s : PARK_LIMIT_NS / NS_PER_SECOND) * NS_PER_SECOND;
}

/* Returns the stamp at which the JobSet stops waiting for places, or at which its back-off ends. */
static int64_t park_deadline(const struct jobset *jobset)
{
    CHECK(jobset_parks(jobset) && jobset->recovery.since_ns > 0);
    if (jobset->recovery.state == RECOVERY_BACKING_OFF)
        return jobset->recovery.since_ns;
    /* The Pods of a Job without a JobSet wait for a place without limit. */
    bool waits = jobset_keeps(jobset) && jobset->form == FORM_JOB && !jobset->hidden;
    bool limited = jobset_keeps(jobset) && jobset->recovery.path != PATH_PLANNED;
    int64_t limit_ns = limited ? recovery_limit_ns(jobset) + grace_max_ns(jobset) : PARK_LIMIT_NS;
    return waits ? INT64_MAX : jobset->recovery.since_ns + limit_ns;
}

int64_t inplace_deadline(const struct jobset *jobset)
{
    if (jobset->recovery.state == RECOVERY_DUMPING)
        return dump_deadline(jobset);
    if (!jobset_parks(jobset)) {
        int64_t rejoin_ns = rejoin_deadline(jobset), grow_ns = shrink_deadline(jobset);
        int64_t join_ns = unjoined_deadline(jobset), first_ns = rejoin_ns < grow_ns ? rejoin_ns : grow_ns;
        return first_ns < join_ns ? first_ns : join_ns;
    }
    int64_t limit_ns = park_deadline(jobset), shrink_ns = shrink_deadline(jobset);
    return shrink_ns < limit_ns && jobset->recovery.state != RECOVERY_BACKING_OFF ? shrink_ns : limit_ns;
}

static bool has_left(const struct job *job)
{
    for (size_t t = 0; t < job->tasks.len; t++)
        if (inplace_is_left(job->tasks.items[t]))
            return true;
    return false;
}

/* Starts the tasks that were placed while starts were held back, in the present attempt. */
static void start_placed(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_parks(jobset));
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && job->state == JOB_ACTIVE && t < job->tasks.len; t++)
            if (!job->tasks.items[t]->parked)
                task_start_if_free(step, job->tasks.items[t]);
    }
}

/* Stops the tasks of an orphaned Job that wait for another attempt; the others continue. */
static void let_go(struct step *step, struct job *job)
{
    CHECK(job_is_hidden(job));
    for (size_t t = 0; t < job->tasks.len; t++) {
        struct task *task = job->tasks.items[t];
        if (!inplace_is_left(task))
            continue;
        task->keep = KEEP_NO;
        task_stop(step, task, false, job->rjob->job.pod.grace_s * NS_PER_SECOND);
    }
}

/* Gives up the attempt that is being prepared, because places were missing for too long, or because a rank
 * has succeeded and will not return. A restart of the whole JobSet becomes a Recreate; a container's restart,
 * or a recovery with keepers, becomes the failure of the incomplete Jobs. A place that is still being tested
 * counts as missing if other tasks wait for it; otherwise its task starts after the test. */
static void give_up(struct step *step, struct jobset *jobset)
{
    CHECK(jobset_parks(jobset) && jobset->recovery.state != RECOVERY_DUMPING);
    bool kept = jobset_keeps(jobset);
    if (kept || !inplace_is_asked(jobset)) {
        bool through = inplace_has_succeeded(jobset), away = jobset->recovery.absence.replicas.len > 0;
        jobset->recovery.in_place_counted -=
            kept && jobset->recovery.counted; /* the failure policy counts it */
        inplace_cancel(jobset);
        bool tested = kept && inplace_left_some(jobset); /* some have waited for the tests */
        for (uint32_t i = 0; i < jobset->job_count; i++) {
            struct job *job = jobset->jobs[i];
            if (job && job_is_hidden(job))
                let_go(step, job);
            else if (job && (away || !job_is_parked(job, tested) || (through && has_left(job))))
                job_fail(step, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
        }
        start_placed(step, jobset);
        return;
    }
    recovery_state_move(&jobset->recovery.state, RECOVERY_NONE);
    jobset->restarts++;
    jobset->executions++;
    jobset->restarts_counted += jobset->recovery.counted;
    jobset->recovery.in_place_counted -= jobset->recovery.counted;
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    attempt_doom_jobs(step, jobset, 0, jobset->job_count);
}

/* Falls to another rung when places are missing at the end of the present rung's time. Returns false if no
 * rung is left. */
static bool falls(struct step *step, struct jobset *jobset)
{
    CHECK(jobset_parks(jobset));
    struct recovery recovery = {.rung = RUNG_REQUEUE};
    if (jobset_keeps(jobset))
        recovery = recovery_ask(step, jobset, (struct trouble){.kind = TROUBLE_PLACES});
    if (recovery.rung == RUNG_REQUEUE)
        return false;
    if (recovery.rung == RUNG_DUMP) {
        dump_begin(step, jobset, NULL, &recovery);
        return true;
    }
    struct arena arena ARENA_CLEANUP = {0};
    recovery_begin(step, jobset, &recovery, false);
    jobset->recovery.since_ns = step->now_ns;
    step_note(step, true, "RecoveryDecided", ref_jobset(jobset),
              "%s for attempt %d: places are missing" STR_FORMAT, rung_name(recovery.rung), jobset->attempt,
              STR_ARG(recovery_passed(&recovery, &arena)));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    return true;
}

/* Ends the preparation of a restart for a JobSet that stops. Members of a dying checkpoint have ranks in this
 * attempt that differ from their indexes, so new tasks then belong to the next attempt. */
static void call_off(const struct step *step, struct jobset *jobset)
{
    CHECK(jobset_parks(jobset));
    bool told = jobset->recovery.state == RECOVERY_DUMPING;
    inplace_cancel(jobset);
    if (told)
        inplace_retire(step, jobset);
}

void inplace_go_on(struct step *step, struct jobset *jobset)
{
    if (!jobset_parks(jobset)) {
        if (rejoin_deadline(jobset) <= step->now_ns)
            look_at_keepers(step, jobset);
        if (!jobset_parks(jobset) && unjoined_deadline(jobset) <= step->now_ns)
            unjoined_look(step, jobset);
        if (!jobset_parks(jobset))
            return;
    }
    if (jobset->recovery.state == RECOVERY_BACKING_OFF && jobset->recovery.since_ns <= step->now_ns)
        recovery_state_move(&jobset->recovery.state, RECOVERY_PARKED);
    bool stops = jobset_suspends(jobset) && !suspend_waits(step, jobset); /* the JobSet stops in this step */
    if (jobset_finished(jobset) || stops)
        call_off(step, jobset);
    else if (jobset->recovery.state == RECOVERY_DUMPING)
        dump_go_on(step, jobset);
    else if (jobset_keeps(jobset) && inplace_has_succeeded(jobset))
        give_up(step, jobset);
    else if (jobset->recovery.state == RECOVERY_BACKING_OFF || step_is_hearing(step))
        return; /* during a back-off or the wait for machines (hearing.c) no place counts as missing */
    else if (shrink_settle(step, jobset) || all_parked(jobset))
        run_again(step, jobset);
    else if (park_deadline(jobset) <= step->now_ns && !falls(step, jobset))
        give_up(step, jobset);
}
