/* ask.c - questions to the ladder. The ladder answers the losses of a JobSet, or of a Job without one, whose
 * ranks have all reported that they can rejoin, or that asks for the ladder by an annotation. All other
 * losses follow their failure policy. This file makes the ladder's question from tasks and machines; the
 * answer is kept in the JobSet.
 *
 * A process that ends unasked counts towards maxRestarts (backoffLimit) of its JobSet, unless a budget of its
 * cause bounds such ends. Losses that infrastructure caused never count. */
#include "core/recover/ask.h"

#include "core/recover/internal.h"

/* Returns whether every living rank has joined and can continue under another attempt. With `midst`, during
 * an incident, ranks that have not joined again count by their last report, or replace a rank that could. */
static bool living_can_rejoin(const struct jobset *jobset, bool midst)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            const struct task *task = job->tasks.items[t];
            if (task_is_dead(task) || task_ended(task->state) || task_is_away(task))
                continue;
            bool met = task->joined || (midst && task->keep != KEEP_NO);
            if (met ? !task->can_rejoin : !midst)
                return false;
        }
    }
    return true;
}

/* Returns whether the processes that survive the incident can rejoin, and those that ended could have. */
static bool all_can_rejoin(const struct step *step, const struct jobset *jobset,
                           const struct incident *incident)
{
    if (jobset_keeps(jobset) && jobset_parks(jobset)) /* answered when the recovery began */
        return true;
    for (size_t i = 0; i < incident->losses.len && !jobset_keeps(jobset); i++) {
        const struct loss *loss = &incident->losses.items[i];
        const struct task *task = loss->asks ? jobs_find_task(step->jobs, loss->task) : NULL;
        if (task && !(task->can_rejoin && task->joined))
            return false;
    }
    return living_can_rejoin(jobset, jobset_keeps(jobset));
}

/* Returns whether the whole JobSet has run, so that the ladder may apply. Until then its Jobs make new Pods,
 * and no process waits for them. */
static bool is_under_way(const struct jobset *jobset)
{
    return jobset->form != FORM_POD && !jobset->deleted_ns && !jobset->hidden && !jobset_finished(jobset) &&
           !jobset_rests(jobset) && !jobset_is_foreign(jobset) && !inplace_is_disabled(jobset) &&
           (jobset_parks(jobset) ? !inplace_has_succeeded(jobset) : inplace_is_whole(jobset));
}

bool recovery_may_retry(const struct jobset *jobset)
{
    return is_under_way(jobset) && !jobset_parks(jobset) && !jobset->spec.recovery.off &&
           living_can_rejoin(jobset, false);
}

bool recovery_may_retry_soon(const struct jobset *jobset)
{
    return is_under_way(jobset) && !jobset_parks(jobset) && !jobset->spec.recovery.off &&
           living_can_rejoin(jobset, true);
}

/* Returns whether no further failure of the task's own is allowed. */
static bool is_exhausted(const struct task *culprit)
{
    CHECK(!task_is_spare(culprit));
    const struct job *job = culprit->job;
    if (job->jobset->form == FORM_JOB)
        return job->failed + job_container_restarts(job, culprit) >= (uint64_t)job->rjob->job.backoff_limit;
    return recovery_charges_job(culprit) ? inplace_is_exhausted(culprit) : !attempt_within_max(job->jobset);
}

/* --- judging a loss --------------------------------------------------------------------------- */

static enum loss_cause cause_of(const struct task *task, enum task_end end)
{
    if (end == END_MACHINE_LOST)
        return LOSS_MACHINE;
    if (task->evicted)
        return task->loss ? (enum loss_cause)task->loss : LOSS_USER;
    if (end == END_START_FAILED)
        return LOSS_START_FAILED;
    if (end == END_STOPPED || task->fenced)
        return LOSS_FAULT;
    return task->oom ? LOSS_OUT_OF_MEMORY : LOSS_EXIT;
}

/* Returns whether the machine is out of service or suspect, or the same start failed there before. */
static bool place_is_bad(const struct step *step, const struct task *task, enum task_end end)
{
    CHECK(task->machine < step->cluster->machine_count);
    const struct machine *machine = &step->cluster->machines[task->machine];
    const struct restart_record *before = restart_newest(task->job->jobset);
    bool again = end == END_START_FAILED && before && str_is(machine->name, before->machine);
    return isolation_is_out(machine->isolation) || machine->suspect || again;
}

void recovery_judge(const struct step *step, const struct task *task, struct loss *loss)
{
    CHECK(task->end != END_NONE && loss->task == task->uid);
    const struct jobset *jobset = task->job->jobset;
    enum task_end end = (enum task_end)task->end;
    loss->cause = (uint8_t)cause_of(task, end);
    loss->place_is_bad = task->machine != MACHINE_NONE && place_is_bad(step, task, end);
    /* A keeper that ends before it has joined, and a machine that is lost before the attempt has begun, are
     * further losses of an incident that was counted already. */
    bool waits = task->keep == KEEP_TOLD || (task->keep == KEEP_WAITS && jobset_keeps(jobset));
    loss->again = waits || restart_is_same_incident(step, jobset, task);
    loss->runs_long = jobset->recovery.ladder.best_step < 0 && task->started_ns &&
                      step->now_ns - task->started_ns >= LADDER_RUN_NS;
}

/* --- means ------------------------------------------------------------------------------------ */

static void means_of(const struct step *step, const struct task *culprit, bool counted,
                     struct ladder_means *ret)
{
    CHECK(!counted || culprit->job->jobset->form != FORM_POD);
    *ret = (struct ladder_means){0};
    ret->lacks[RUNG_RETRY] = "its ranks do it by themselves";
    ret->lacks[RUNG_SHRINK] =
        shrink_lacks(culprit->job->jobset, culprit->job->jobset->recovery.absence.replicas.len + 1);
    ret->lacks[RUNG_DUMP] = dump_lacks(step, culprit->job->jobset);
    if (culprit->evicted)
        ret->lacks[RUNG_RESTART_PROCESS] = "its Pod is gone";
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE && counted && is_exhausted(culprit); rung++)
        ret->lacks[rung] = "no failures of its own are left";
}

static void means_not(const char *why, struct ladder_means *ret)
{
    ladder_means_none(ret);
    for (int rung = RUNG_RETRY; rung < RUNG_REQUEUE; rung++)
        ret->lacks[rung] = why;
}

/* --- questions, by trouble; each returns false where the ladder does not apply -------------------------- */

static bool put_losses(const struct step *step, const struct jobset *jobset, const struct incident *incident,
                       struct recovery *recovery, struct ladder_means *ret_means)
{
    const struct ladder_settings *settings = &jobset->spec.recovery;
    const struct loss *root = incident_root(incident);
    if (!root || root->barred || settings->off || !is_under_way(jobset) ||
        (!settings->given && !all_can_rejoin(step, jobset, incident)))
        return false;
    incident_question(incident, step->now_ns, &recovery->incident);
    enum loss_cause cause = recovery->incident.cause;
    recovery->counted = !recovery->incident.again && !settings->causes[cause].given &&
                        (cause == LOSS_EXIT || cause == LOSS_OUT_OF_MEMORY || cause == LOSS_START_FAILED);
    means_of(step, jobs_find_task(step->jobs, root->task), recovery->counted, ret_means);
    return true;
}

/* Returns the rung that is under way if it is finer than `limit`, else RUNG_NONE. */
static enum rung rung_below(const struct jobset *jobset, enum rung limit)
{
    enum rung rung = (enum rung)jobset->recovery.ladder.rung;
    return rung < limit ? rung : RUNG_NONE;
}

static bool put_failed_job(const struct step *step, const struct job *failed, struct recovery *recovery,
                           struct ladder_means *ret_means)
{
    CHECK(job_failed(failed));
    const struct jobset *jobset = failed->jobset;
    const struct task *culprit = failed->culprit;
    enum rung below = rung_below(jobset, RUNG_REQUEUE);
    if (jobset->spec.recovery.off || (!jobset->spec.recovery.given && below == RUNG_NONE))
        return false;
    if (culprit) {
        struct incident incident = {0};
        incident_note(&incident, culprit->uid, culprit->end);
        incident.losses.items[0].asks = true;
        recovery_judge(step, culprit, &incident.losses.items[0]);
        incident_question(&incident, step->now_ns, &recovery->incident);
        incident_done(&incident);
    } else {
        recovery->incident.below = below;
        recovery->incident.cause =
            below != RUNG_NONE ? (enum loss_cause)jobset->recovery.ladder.cause : LOSS_HANG;
    }
    means_not("its Job has failed", ret_means);
    if (dump_lacks(step, jobset))
        ret_means->lacks[RUNG_DUMP] = dump_lacks(step, jobset);
    return true;
}

static bool put_no_loss(bool all_live, struct recovery *recovery, struct ladder_means *ret_means)
{
    recovery->incident.cause = all_live ? LOSS_FAULT : LOSS_HANG;
    recovery->incident.processes_live = all_live;
    means_not("nobody has left", ret_means);
    ret_means->lacks[RUNG_RETRY] = ret_means->lacks[RUNG_RESTART_PROCESS] = NULL;
    return true;
}

static bool put_places(const struct step *step, const struct jobset *jobset, struct recovery *recovery,
                       struct ladder_means *ret_means)
{
    enum rung below = rung_below(jobset, RUNG_REQUEUE);
    if (below == RUNG_NONE || jobset->spec.recovery.off)
        return false;
    recovery->incident.cause = (enum loss_cause)jobset->recovery.ladder.cause;
    recovery->incident.below = below;
    means_not("places are missing", ret_means);
    ret_means->lacks[RUNG_REPLACE_MACHINE] = NULL;
    ret_means->lacks[RUNG_DUMP] = dump_lacks(step, jobset);
    return true;
}

static bool put_no_room(const struct jobset *jobset, struct recovery *recovery,
                        struct ladder_means *ret_means)
{
    const struct ladder *ladder = &jobset->recovery.ladder;
    recovery->incident.cause = ladder->rung != RUNG_NONE ? (enum loss_cause)ladder->cause : LOSS_MACHINE;
    recovery->incident.below = rung_below(jobset, RUNG_SHRINK);
    means_not("there is no room", ret_means);
    ret_means->lacks[RUNG_SHRINK] = NULL;
    return true;
}

static bool put_trouble(const struct step *step, const struct jobset *jobset, struct trouble trouble,
                        struct recovery *recovery, struct ladder_means *ret_means)
{
    switch (trouble.kind) {
    case TROUBLE_LOSSES:
        return put_losses(step, jobset, trouble.incident, recovery, ret_means);
    case TROUBLE_FAILED_JOB:
        CHECK(trouble.failed->jobset == jobset);
        return put_failed_job(step, trouble.failed, recovery, ret_means);
    case TROUBLE_CUT_OFF:
    case TROUBLE_NOT_JOINED:
        return put_no_loss(trouble.kind == TROUBLE_CUT_OFF, recovery, ret_means);
    case TROUBLE_PLACES:
        return put_places(step, jobset, recovery, ret_means);
    case TROUBLE_NO_ROOM:
        return put_no_room(jobset, recovery, ret_means);
    }
    CHECK(!"no such trouble");
    return false;
}

struct recovery recovery_ask(const struct step *step, const struct jobset *jobset, struct trouble trouble)
{
    CHECK((trouble.kind == TROUBLE_LOSSES) == (trouble.incident != NULL));
    CHECK((trouble.kind == TROUBLE_FAILED_JOB) == (trouble.failed != NULL));
    struct recovery recovery = {.rung = RUNG_REQUEUE, .incident.now_ns = step->now_ns};
    struct ladder_means means;
    if (!put_trouble(step, jobset, trouble, &recovery, &means))
        return (struct recovery){.rung = RUNG_REQUEUE};
    /* Asks on a copy of the ladder, in which the incident is counted already. The copy shares the list of
     * uses, which stays unchanged. */
    struct ladder ladder = jobset->recovery.ladder;
    const struct ladder_incident *incident = &recovery.incident;
    if (!incident->again && incident->below == RUNG_NONE)
        ladder_loss(&ladder, incident);
    ladder_decide(&ladder, &jobset->spec.recovery, &means, incident, &recovery.decision);
    recovery.holds = true;
    recovery.no_progress = recovery.decision.no_progress;
    recovery.rung = recovery.no_progress ? RUNG_REQUEUE : recovery.decision.rung;
    if (trouble.kind == TROUBLE_FAILED_JOB) {
        const char *reason = trouble.failed->reason;
        recovery.no_progress |= reason && str_is(str_from(reason), NO_PROGRESS);
        CHECK(recovery.rung == RUNG_REQUEUE);
    }
    return recovery;
}

/* --- beginning a rung ------------------------------------------------------------------------- */

void recovery_begin(struct step *step, struct jobset *jobset, const struct recovery *recovery, bool same)
{
    CHECK(recovery->rung != RUNG_NONE);
    struct ladder_incident incident = recovery->incident;
    if (!recovery->holds || recovery->no_progress)
        return;
    incident.again |= same;
    if (!incident.again && incident.below == RUNG_NONE)
        ladder_loss(&jobset->recovery.ladder, &incident);
    ladder_begin(&jobset->recovery.ladder, &incident, &recovery->decision);
    restart_decided(jobset, recovery->rung, str_from(recovery->decision.passed));
}

struct str recovery_passed(const struct recovery *recovery, struct arena *arena)
{
    return recovery->decision.passed[0] ? arena_printf(arena, " (%s)", recovery->decision.passed) : STR("");
}

struct str recovery_give_up_text(const struct jobset *jobset, const struct recovery *recovery,
                                 struct arena *arena)
{
    const struct end_signature *root = end_signatures_root(&jobset->history.signatures);
    struct buf text BUF_CLEANUP = {0};
    buf_printf(&text, "%lld attempts in a row ended without a new step",
               (long long)jobset->spec.recovery.no_progress_attempts);
    if (jobset->recovery.ladder.best_step >= 0)
        buf_printf(&text, " (the highest is %lld)", (long long)jobset->recovery.ladder.best_step);
    buf_printf(&text, "; the last: %s", loss_name(recovery->incident.cause));
    if (root)
        buf_printf(&text, ", rank %u on %s, %s%s%s", root->rank,
                   root->machine[0] ? root->machine : "no machine", signature_name(root->kind),
                   root->line[0] ? ": " : "", root->line);
    return arena_printf(arena, STR_FORMAT, STR_ARG(buf_str(&text)));
}
