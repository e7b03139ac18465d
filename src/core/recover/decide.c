/* decide.c - the answer to an incident: all losses of a JobSet in one step (ladder/incident.h).
 *
 * The end of a process is only noted when it is reported. Until the step settles the task is *dead*: it keeps
 * its state and its place. Then one function reads the whole incident, finds the loss that explains the
 * others, and asks the ladder once. It carries the answer out for each task, the root first: the task stays
 * in its place for the next attempt (parked), or ends and is counted by its Job.
 */
#include "core/recover/internal.h"

/* Returns whether the task's end is wanted, so that it needs no answer. */
static bool is_asked(const struct task *task)
{
    return task->doomed || task->job->doomed || task->job->state != JOB_ACTIVE || job_is_hidden(task->job);
}

static bool succeeds(const struct task *task)
{
    return task->end == END_EXIT && task->exit_code == 0 && task->signal == 0 && !task->doomed &&
           !task->evicted;
}

/* --- judging the losses ----------------------------------------------------------------------- */

/* Returns whether the dead task can keep its place for another attempt. It cannot if it was lost with its
 * machine, has succeeded, or is not wanted any more. */
static bool can_stay(const struct step *step, const struct task *task)
{
    CHECK(!task_is_spare(task));
    const struct jobset *jobset = task->job->jobset;
    bool lost = task->machine != MACHINE_NONE && step->cluster->machines[task->machine].state == MACHINE_LOST;
    bool dead = task->end == END_EXIT || task->end == END_STOPPED || task->end == END_START_FAILED;
    bool over = task->end == END_EXIT && task->exit_code == 0 && task->signal == 0;
    bool through = over && (!jobset_parks(jobset) || (task->keep != KEEP_NO && task->state == TASK_RUNNING));
    return task_is_dead(task) && task->state >= TASK_STARTING && dead && !lost && !through &&
           jobset->recovery.state != RECOVERY_DUMPING && !task->doomed && !task->evicted &&
           !task->job->doomed && task->job->state == JOB_ACTIVE;
}

/* Returns whether the ladder may answer the loss. A task that keeps its place for the attempt that is being
 * prepared needs no new answer. */
static bool asks(const struct step *step, const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    bool stays = jobset_parks(jobset) && can_stay(step, task) && !job_policy_fails(task->job, task);
    return !is_asked(task) && !succeeds(task) && task->end != END_REFUSED && task->machine != MACHINE_NONE &&
           !task_is_away(task) && jobset->recovery.state != RECOVERY_DUMPING && !stays;
}

/* Returns whether the task left the signature that explains the end of this attempt. */
static bool is_proven(const struct step *step, const struct task *task)
{
    const struct end_signature *root = end_signatures_root(&task->job->jobset->history.signatures);
    return root && root->rank == task->rank &&
           str_is(step->cluster->machines[task->machine].name, root->machine);
}

void incident_judge(const struct step *step, struct incident *incident)
{
    for (size_t i = 0; i < incident->losses.len; i++) {
        struct loss *loss = &incident->losses.items[i];
        const struct task *task = jobs_find_task(step->jobs, loss->task);
        loss->asks = task && asks(step, task);
        if (!loss->asks)
            continue;
        loss->barred = job_policy_fails(task->job, task);
        loss->proven = is_proven(step, task);
        recovery_judge(step, task, loss);
    }
}

/* --- carrying out the answer ------------------------------------------------------------------ */

/* Keeps the dead task in its place for the next attempt, and begins to prepare one if none is being prepared.
 * Returns false if the task cannot stay. */
static bool stay(struct step *step, struct task *task, const struct incident *incident,
                 const struct loss *loss, const struct recovery *recovery)
{
    CHECK(loss->task == task->uid);
    struct jobset *jobset = task->job->jobset;
    bool parks = jobset_parks(jobset), ladder = recovery->rung != RUNG_REQUEUE;
    if (!can_stay(step, task))
        return false;
    if (!parks && task_is_away(task)) {
        inplace_park(step, task); /* the replica was absent, so no peer has lost the task */
        return true;
    }
    if (job_policy_fails(task->job, task) || (!parks && recovery->no_progress) ||
        (ladder && recovery->rung > RUNG_RESTART_PROCESS && incident_gives_up_place(incident, loss)) ||
        (!ladder && !inplace_may(task)))
        return false;
    inplace_begin(step, jobset, task, ladder ? recovery : NULL);
    step_note(step, true, "Restarting", ref_task(task), "Restarting in place: " STR_FORMAT,
              STR_ARG(task->message.len ? task->message : STR("stopped")));
    inplace_park(step, task);
    return true;
}

/* Returns whether the ladder has used up the Pod's restarts. Runs that the ladder restarted in the Pod of a
 * Job without a JobSet count as failed Pods. */
static bool ladder_ran_out(const struct job *job, const struct task *task)
{
    return job->jobset->form == FORM_JOB && task->can_rejoin && task->end == END_EXIT &&
           job->failed + job_container_restarts(job, task) > (uint64_t)job->rjob->job.backoff_limit;
}

/* Counts the failure of a task that the ladder does not answer, and applies the policies of its Job. */
static void fail_task(struct step *step, struct task *task, const struct recovery *recovery)
{
    CHECK(task->state == TASK_FAILED && task->job->jobset->recovery.state != RECOVERY_DUMPING);
    struct job *job = task->job;
    struct arena arena ARENA_CLEANUP = {0};
    if (!job->culprit)
        job->culprit = task;
    if (recovery->no_progress)
        job_fail(step, job, NO_PROGRESS, STR_FORMAT,
                 STR_ARG(recovery_give_up_text(job->jobset, recovery, &arena)));
    else
        job_count_failure(step, job, task);
    bool ran_out = inplace_is_asked(job->jobset) ||
                   (task->end == END_EXIT && inplace_is_shared(task) && inplace_is_exhausted(task)) ||
                   ladder_ran_out(job, task);
    if (job->state == JOB_ACTIVE && (inplace_is_asked(job->jobset) || inplace_is_shared(task)) &&
        inplace_may(task))
        inplace_begin(step, job->jobset, task, NULL); /* a new task is made, and its peers run again */
    else if (job->state == JOB_ACTIVE && ran_out)
        job_fail(step, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    if (job->state == JOB_ACTIVE && (task->end == END_EXIT || task->end == END_REFUSED))
        job_retry_later(step, job, task);
}

/* Carries the answer out for a task that has ended. */
static void answer_end(struct step *step, struct task *task, const struct recovery *recovery)
{
    struct job *job = task->job;
    struct jobset *jobset = job->jobset;
    CHECK(task_ended(task->state) && (uint32_t)task->index < job->index_count);
    job_count_end(job, task);
    if (task->state == TASK_SUCCEEDED) {
        shrink_some_through(jobset);
        if (jobset->recovery.state == RECOVERY_DUMPING)
            dump_lost(step, task);
        return;
    }
    if (is_asked(task))
        return;
    if (task->end != END_REFUSED) /* REFUSED was announced with its reason */
        step_note(step, true, task->end == END_MACHINE_LOST ? "MachineLost" : "Failed", ref_task(task),
                  STR_FORMAT, STR_ARG(task->message));
    if (task_is_away(
            task)) /* no rank waits for an absent replica: its task is made again, and placed when possible */
        return;
    bool barred = job_policy_fails(job, task);
    if (jobset->recovery.state == RECOVERY_DUMPING)
        dump_lost(step, task);
    else if (!barred && recovery->rung == RUNG_DUMP)
        dump_begin(step, jobset, task, recovery);
    else if (!barred && recovery->rung != RUNG_REQUEUE)
        inplace_begin(step, jobset, task, recovery); /* a new task is made */
    else
        fail_task(step, task, recovery);
}

static void note_start(struct jobset *jobset, const struct task *task, bool again)
{
    CHECK(task->job->jobset == jobset);
    struct task_due due = {task->uid, again};
    vec_push(&jobset->work.starts, due);
}

/* Notes that the start of the task which waited for the end of this one may be due. */
static void note_successor(const struct task *task)
{
    CHECK(task->end != END_NONE && !task_is_spare(task));
    struct jobset *jobset = task->job->jobset;
    const struct job *job = jobset->jobs[task->job->global_index];
    if (task->job->doomed && job && job->indexes[task->index].task)
        note_start(jobset, job->indexes[task->index].task, false);
}

static void answer(struct step *step, const struct incident *incident, const struct loss *loss,
                   const struct recovery *recovery)
{
    CHECK(loss->end != END_NONE);
    const struct recovery none = {.rung = RUNG_REQUEUE};
    struct task *task = jobs_find_task(step->jobs, loss->task);
    if (!task) /* the task ended at once, and its Job was removed since */
        return;
    if (!loss->asks)
        recovery = &none;
    if (stay(step, task, incident, loss, recovery))
        return;
    bool dead = task_is_dead(task);
    if (dead)
        task_end(step, task, (enum task_end)loss->end);
    answer_end(step, task, recovery);
    if (dead)
        task_leave_gang(step, task);
    job_touch(task->job);
    note_successor(task);
    jobset_mark(step, task->job->jobset);
}

/* Repeats an order to start that was lost. A task that the answer has stopped meanwhile has no process to
 * wait for, and ends here. */
static void start_again(struct step *step, struct task *task)
{
    if (task->state == TASK_STARTING && !task_is_dead(task)) {
        if (step_is_hearing(step) || slice_start_waits(step, task))
            return; /* hearing.c repeats it */
        effect_add(step->effects, EFFECT_TASK_START)->start = task;
        slice_tell_tables(step, task);
    } else if (task->state == TASK_STOPPING && !task_is_dead(task)) {
        task_message(task, "stopped before it was started");
        task_finish(step, task, END_STOPPED);
    }
}

void incident_start(struct step *step, struct jobset *jobset)
{
    CHECK(!incident_is_open(&jobset->recovery.incident) || jobset->entry.dirty);
    for (size_t i = 0; i < jobset->work.starts.len; i++) {
        const struct task_due *due = &jobset->work.starts.items[i];
        struct task *task = jobs_find_task(step->jobs, due->task);
        if (task && due->again)
            start_again(step, task);
        else if (task)
            task_start_if_free(step, task);
    }
    vec_clear(&jobset->work.starts);
    CHECK(jobset->work.dirty.len == 0 || jobset->entry.dirty);
}

static void answer_requests(struct step *step, struct jobset *jobset, const struct incident *incident)
{
    for (size_t i = 0; i < incident->requests.len; i++) {
        const struct loss_request *request = &incident->requests.items[i];
        struct task *task = jobs_find_task(step->jobs, request->task);
        if (task && request->kind == REQUEST_RETRY)
            inplace_retry(step, task, request->why);
        else if (task)
            note_start(jobset, task, true);
    }
}

static void answer_all(struct step *step, struct jobset *jobset, struct incident *incident)
{
    incident_judge(step, incident);
    const struct loss *root = incident_root(incident);
    struct recovery recovery = {.rung = RUNG_REQUEUE};
    bool decided = false;
    for (size_t i = 0; i < incident->losses.len; i++) {
        const struct loss *loss = &incident->losses.items[i];
        if (loss->asks &&
            !decided) { /* asked only now: ends that precede the first one may rule a rung out */
            decided = true;
            recovery = recovery_ask(step, jobset, (struct trouble){TROUBLE_LOSSES, .incident = incident});
            answer(step, incident, root, &recovery);
        }
        if (loss != root)
            answer(step, incident, loss, &recovery);
    }
    answer_requests(step, jobset, incident);
}

void incident_answer(struct step *step, struct jobset *jobset)
{
    while (incident_is_open(&jobset->recovery.incident)) { /* an answer may end tasks that have no process */
        struct incident incident = jobset->recovery.incident;
        jobset->recovery.incident = (struct incident){0};
        CHECK(step->jobs->incidents > 0);
        step->jobs->incidents--;
        answer_all(step, jobset, &incident);
        incident_done(&incident);
    }
}
