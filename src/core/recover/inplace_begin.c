/* inplace_begin.c - the begin of a restart in place (inplace.c): its charge, its delay, and the processes
 * that still live. */
#include "base/backoff.h"
#include "core/recover/internal.h"

/* The kubelet's back-off, as in agent_container.c. */
#define BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
#define BACKOFF_RESET_NS (600 * NS_PER_SECOND)

/* Returns the kubelet's delay before the next run. */
static int64_t backoff_ns(const struct step *step, const struct task *culprit)
{
    CHECK(culprit->attempt <= culprit->job->jobset->attempt);
    bool long_run = culprit->start_sent_ns > 0 && step->now_ns - culprit->start_sent_ns >= BACKOFF_RESET_NS;
    if (culprit->failed_runs == 0 || long_run)
        return 0;
    return backoff_wait(BACKOFF_FIRST_NS, BACKOFF_MAX_NS, culprit->failed_runs - 1);
}

/* The limits towards which a restart in place counts, and its delay. */
struct charge {
    bool jobset;      /* towards maxRestarts */
    bool its_own;     /* towards the backoffLimit of the culprit's Job, after that task's back-off */
    int64_t delay_ns; /* before all tasks run again */
};

static struct charge charge_of(const struct step *step, const struct jobset *jobset,
                               const struct task *culprit, const struct recovery *recovery)
{
    CHECK(culprit->job->jobset == jobset && !jobset_parks(jobset));
    struct charge charge = {0};
    bool asked = inplace_is_asked(jobset);
    if (recovery) {
        charge.its_own = recovery->counted && recovery_charges_job(culprit);
        charge.jobset = recovery->counted && !charge.its_own;
    } else {
        charge.its_own = !asked && !task_ended(culprit->state); /* the machine runs it again */
        charge.jobset = asked && !restart_is_same_incident(step, jobset, culprit);
    }
    charge.delay_ns = charge.its_own ? backoff_ns(step, culprit) : 0;
    if (charge.jobset && !recovery && jobset->recovery.crashes.due_ns > step->now_ns)
        charge.delay_ns = jobset->recovery.crashes.due_ns - step->now_ns;
    if (recovery && recovery->decision.wait_ns > charge.delay_ns)
        charge.delay_ns = recovery->decision.wait_ns;
    int64_t loop_ns = recovery ? attempt_due(jobset) - step->now_ns : 0; /* as for new Jobs */
    if (loop_ns > charge.delay_ns)
        charge.delay_ns = loop_ns;
    return charge;
}

static void begin(struct step *step, struct jobset *jobset, enum recovery_path path,
                  const struct charge *charge)
{
    CHECK(jobset->attempt < INT32_MAX && path < PATHS);
    struct jobset_recovery *recovery = &jobset->recovery;
    int64_t delay_ns = charge->delay_ns > 0 ? charge->delay_ns : 0;
    CHECK(recovery->state == RECOVERY_NONE); /* restart_begin has ended what was under way */
    attempt_raise(step, jobset, jobset->attempt + 1);
    recovery->in_place_counted += charge->jobset;
    recovery->absence.overdue = false;
    recovery->counted = charge->jobset;
    recovery->since_ns = step->now_ns + delay_ns;
    recovery->path = (uint8_t)path;
    recovery_state_move(&recovery->state, delay_ns > 0 ? RECOVERY_BACKING_OFF : RECOVERY_PARKED);
}

void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit,
                   const struct recovery *recovery)
{
    CHECK(culprit->job->jobset == jobset && !task_is_spare(culprit));
    if (jobset_parks(jobset))
        return;
    if (!recovery && inplace_is_asked(jobset))
        backoff_begin(step, jobset, culprit);
    struct charge charge = charge_of(step, jobset, culprit, recovery);
    bool same = restart_is_same_incident(step, jobset, culprit);
    restart_begin(step, jobset, jobset->attempt + 1, NULL, culprit);
    begin(step, jobset, recovery ? PATH_KEEP : PATH_RESTART, &charge);
    culprit->failed_runs += charge.its_own;
    if (recovery) {
        struct arena arena ARENA_CLEANUP = {0};
        recovery_begin(step, jobset, recovery, same);
        step_note(step, true, "RecoveryDecided", ref_jobset(jobset),
                  "%s as attempt %d: " STR_FORMAT ": " STR_FORMAT STR_FORMAT, rung_name(recovery->rung),
                  jobset->attempt, STR_ARG(culprit->name), STR_ARG(culprit->message),
                  STR_ARG(recovery_passed(recovery, &arena)));
    } else
        step_note(step, true, "InPlaceRestart", ref_jobset(jobset),
                  "restarting all tasks in place as attempt %d (first failed task: " STR_FORMAT ")",
                  jobset->attempt, STR_ARG(culprit->name));
    rejoin_keep_or_stop(step, jobset, culprit);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void inplace_begin_planned(struct step *step, struct jobset *jobset, const char *cause, const char *why)
{
    const struct charge nothing = {0};
    CHECK(!jobset_parks(jobset));
    restart_begin(step, jobset, jobset->attempt + 1, cause, NULL);
    begin(step, jobset, PATH_PLANNED, &nothing);
    step_note(step, false, "PlannedChange", ref_jobset(jobset), "attempt %d: %s", jobset->attempt, why);
    rejoin_keep_or_stop(step, jobset, NULL);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

/* Gives the attempt up: the JobSet's Jobs fail, and its failure policy answers. */
static void give_all_up(struct step *step, struct jobset *jobset, const struct recovery *recovery)
{
    CHECK(recovery->rung == RUNG_REQUEUE);
    struct arena arena ARENA_CLEANUP = {0};
    struct str why = recovery->no_progress ? recovery_give_up_text(jobset, recovery, &arena)
                                           : STR("Job has reached the specified backoff limit");
    inplace_cancel(jobset);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && jobset->jobs[i]->state == JOB_ACTIVE)
            job_fail(step, jobset->jobs[i], recovery->no_progress ? NO_PROGRESS : "BackoffLimitExceeded",
                     STR_FORMAT, STR_ARG(why));
}

/* Begins the next attempt although no task has ended. Keeps the processes that can rejoin; stops the
 * others. */
static void begin_without_loss(struct step *step, struct jobset *jobset, const char *cause, struct str why,
                               const struct recovery *recovery)
{
    CHECK(recovery->rung != RUNG_REQUEUE && !recovery->no_progress && !jobset_parks(jobset));
    struct arena arena ARENA_CLEANUP = {0};
    struct charge nothing = {.delay_ns = attempt_due(jobset) - step->now_ns};
    if (recovery->decision.wait_ns > nothing.delay_ns)
        nothing.delay_ns = recovery->decision.wait_ns;
    restart_begin(step, jobset, jobset->attempt + 1, cause, NULL);
    begin(step, jobset, PATH_KEEP, &nothing);
    recovery_begin(step, jobset, recovery, false);
    step_note(step, true, "RecoveryDecided", ref_jobset(jobset), "%s as attempt %d: " STR_FORMAT STR_FORMAT,
              rung_name(recovery->rung), jobset->attempt, STR_ARG(why),
              STR_ARG(recovery_passed(recovery, &arena)));
    rejoin_keep_or_stop(step, jobset, NULL);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void inplace_go_on_without_loss(struct step *step, struct jobset *jobset, const char *cause, bool all_live,
                                struct str why)
{
    struct recovery recovery =
        recovery_ask(step, jobset, (struct trouble){.kind = all_live ? TROUBLE_CUT_OFF : TROUBLE_NOT_JOINED});
    recovery.decision.wait_ns = 0; /* the ranks have waited already */
    if (recovery.rung == RUNG_REQUEUE)
        give_all_up(step, jobset, &recovery);
    else
        begin_without_loss(step, jobset, cause, why, &recovery);
}

static void end_process(struct step *step, struct task *task)
{
    task->keep = KEEP_NO;
    task_stop(step, task, false, task->job->rjob->job.pod.grace_s * NS_PER_SECOND);
}

void inplace_retry(struct step *step, struct task *asker, struct str why)
{
    struct jobset *jobset = asker->job->jobset;
    struct arena arena ARENA_CLEANUP = {0};
    if (jobset_parks(jobset) || asker->state != TASK_RUNNING || task_is_spare(asker) || task_is_away(asker))
        return; /* another attempt follows, or the process is ending */
    step_note(step, true, "RetryAsked", ref_task(asker), "rank %u cannot go on from its state%s" STR_FORMAT,
              asker->rank, why.len ? ": " : "", STR_ARG(why));
    if (!recovery_may_retry(jobset)) {
        if (recovery_may_retry_soon(jobset)) /* a report of another loss is on its way */
            rejoin_note_apart(step, asker);
        else
            end_process(step, asker);
        return;
    }
    struct recovery recovery = recovery_ask(step, jobset, (struct trouble){.kind = TROUBLE_CUT_OFF});
    if (recovery.no_progress)
        give_all_up(step, jobset, &recovery);
    else if (recovery.rung == RUNG_REQUEUE)
        end_process(step, asker);
    else
        begin_without_loss(step, jobset, "RetryAsked",
                           arena_printf(&arena, STR_FORMAT " cannot go on from its state%s" STR_FORMAT,
                                        STR_ARG(asker->name), why.len ? ": " : "", STR_ARG(why)),
                           &recovery);
    if (recovery.rung == RUNG_RESTART_PROCESS)
        end_process(step, asker);
}
