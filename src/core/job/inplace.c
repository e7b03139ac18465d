/* inplace.c - a task fails, and all of the JobSet run again where they are: by restartStrategy
 * InPlaceRestart, or because a rank that has joined through libphalanx failed under restartPolicy OnFailure.
 *
 * Nothing is made anew: Jobs, Pods and their chips stay; each process is ended, and when all are known dead
 * they start together as the next attempt (JobSet's barrier, without an agent in every pod). A task that
 * ends meanwhile is *parked*: PLACED, with its chips, under the same Pod. What was lost with its machine is
 * made anew by its Job and placed elsewhere; the others wait for it, at most PARK_LIMIT_NS: then the JobSet
 * is restarted as Recreate does. As upstream, status.restarts counts only such restarts, and maxRestarts
 * bounds both kinds together.
 *
 * OnFailure asks for the container to run again in its Pod, and the machine does that by itself while the
 * process has met nobody. A rank's peers have lost it with its process, and the next one could not come back
 * into their attempt: so all of them run again with it, and the failure counts once towards the backoffLimit
 * of its Job, after the kubelet's back-off. It stands for a container's restart: maxRestarts is not asked.
 *
 * jobset.sigs.k8s.io/disable-in-place-restart: "true" on the JobSet makes its failures ordinary ones.
 */
#include "core/job/internal.h"

#define DISABLE_KEY   "jobset.sigs.k8s.io/disable-in-place-restart"
#define PARK_LIMIT_NS (300 * NS_PER_SECOND)
/* A kubelet's back-off, as of agent_container.c. */
#define BACKOFF_FIRST_NS (10 * NS_PER_SECOND)
#define BACKOFF_MAX_NS   (300 * NS_PER_SECOND)
#define BACKOFF_RESET_NS (600 * NS_PER_SECOND)

bool inplace_is_asked(const struct jobset *jobset)
{
    return jobset->form == FORM_JOBSET && jobset->spec.has_failure_policy &&
           jobset->spec.strategy == RESTART_IN_PLACE;
}

static bool is_disabled(const struct jobset *jobset)
{
    return str_is(labels_get(&jobset->spec.annotations, STR(DISABLE_KEY), STR("")), "true");
}

/* A rank that is through is not there for another attempt of its peers. */
static bool has_succeeded_task(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && jobset->jobs[i]->succeeded > 0)
            return true;
    return false;
}

/* Every task that its Jobs want has a place, and none is through. */
static bool is_whole(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        bool active = job && job->state == JOB_ACTIVE;
        if (active && job->succeeded > 0)
            return false;
        for (size_t t = 0; active && t < job->tasks.len; t++)
            if (job->tasks.items[t]->state == TASK_PENDING)
                return false;
    }
    return true;
}

bool inplace_is_shared(const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    return jobset->form == FORM_JOBSET && !inplace_is_asked(jobset) && !is_disabled(jobset) && task->joined &&
           task->job->rjob->job.pod.restart_policy == RESTART_ON_FAILURE;
}

bool inplace_is_exhausted(const struct task *task)
{
    return job_container_restarts(task->job, task) + 1 >= (uint64_t)task->job->rjob->job.backoff_limit;
}

bool inplace_may(const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    if (jobset->deleted_ns || jobset_finished(jobset) || jobset->spec.suspend || is_disabled(jobset))
        return false;
    if (jobset->parking)
        return true;
    if (inplace_is_asked(jobset))
        return attempt_within_max(jobset) && !has_succeeded_task(jobset);
    return inplace_is_shared(task) && !inplace_is_exhausted(task) && is_whole(jobset);
}

static bool runs(const struct task *task)
{
    return task->state == TASK_STARTING || task->state == TASK_RUNNING || task->state == TASK_STOPPING;
}

/* What a kubelet waits before the next run. */
static int64_t backoff_ns(const struct step *step, const struct task *culprit)
{
    bool long_run = culprit->start_sent_ns > 0 && step->now_ns - culprit->start_sent_ns >= BACKOFF_RESET_NS;
    int64_t delay_ns = culprit->failed_runs > 0 && !long_run ? BACKOFF_FIRST_NS : 0;
    for (uint32_t i = 1; i < culprit->failed_runs && delay_ns > 0 && delay_ns < BACKOFF_MAX_NS; i++)
        delay_ns *= 2;
    return delay_ns < BACKOFF_MAX_NS ? delay_ns : BACKOFF_MAX_NS;
}

void inplace_begin(struct step *step, struct jobset *jobset, struct task *culprit)
{
    if (jobset->parking)
        return;
    bool asked = inplace_is_asked(jobset);
    bool its_own = !asked && !task_ended(culprit->state); /* it runs again itself */
    int64_t delay_ns = its_own ? backoff_ns(step, culprit) : 0;
    bool counted = !asked || progress_same_incident(step, jobset, culprit);
    progress_restart(step, jobset, jobset->attempt + 1, NULL, culprit);
    jobset->attempt++;
    jobset->in_place_counted += !counted;
    jobset->parking = true;
    jobset->parking_counted = !counted;
    jobset->parking_since_ns = step->now_ns + delay_ns;
    jobset->backing_off = delay_ns > 0;
    culprit->failed_runs += its_own;
    step_note(step, true, "InPlaceRestart", ref_jobset(jobset),
              "restarting all tasks in place as attempt %d (first failed task: " STR_FORMAT ")",
              jobset->attempt, STR_ARG(culprit->name));
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++)
            if (job->tasks.items[t] != culprit && runs(job->tasks.items[t]))
                task_stop(step, job->tasks.items[t], false, job->rjob->job.pod.grace_s * NS_PER_SECOND);
    }
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

static void park(struct step *step, struct task *task)
{
    struct job *job = task->job;
    CHECK(task->holds && task->gang && runs(task) && (!task->ready || job->ready > 0));
    lifecycle_move(&task_lifecycle, &task->state, TASK_PLACED);
    job->ready -= task->ready;
    task->end = END_NONE;
    task->parked = true;
    task->ready = task->joined = task->peers_lost = task->oom = task->fenced = false;
    task->exit_code = task->signal = 0;
    task->start_sent_ns = task->started_ns = task->ended_ns = task->stopping_since_ns = 0;
    task->stop_grace_ns = 0;
    task->saved_step = -1;
    task->saved_before_count = 0;
    task_forget_containers(task);
    if (job->jobset->laggard == task)
        job->jobset->laggard = NULL;
    gang_task_parked(step, task);
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
    jobset_mark(step, job->jobset);
}

bool inplace_takes(struct step *step, struct task *task, enum task_end end)
{
    struct jobset *jobset = task->job->jobset;
    /* With its machine it has lost its place. */
    bool lost = task->machine != MACHINE_NONE && step->cluster->machines[task->machine].state == MACHINE_LOST;
    bool dead = !lost && (end == END_EXIT || end == END_STOPPED || end == END_START_FAILED);
    bool over = end == END_EXIT && task->exit_code == 0 && task->signal == 0;
    if (!dead || !runs(task) || task->doomed || task->evicted || task->job->doomed ||
        task->job->state != JOB_ACTIVE || !inplace_may(task) || (over && !jobset->parking) ||
        job_policy_fails(task->job, task))
        return false;
    task->end = (uint8_t)end; /* for the record of the restart */
    inplace_begin(step, jobset, task);
    step_note(step, true, "Restarting", ref_task(task), "Restarting in place: " STR_FORMAT,
              STR_ARG(task->message.len ? task->message : STR("stopped")));
    park(step, task);
    return true;
}

/* Every task that it wants has its place, and none runs. */
static bool job_is_parked(const struct job *job)
{
    int32_t placed = 0;
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        if (!task_ended(task->state) && task->state != TASK_PLACED)
            return false;
        placed += task->state == TASK_PLACED;
    }
    return job->state != JOB_ACTIVE || placed >= job_wanted(job);
}

static bool all_parked(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && !job_is_parked(jobset->jobs[i]))
            return false;
    return true;
}

static void run_again(struct step *step, struct jobset *jobset)
{
    jobset->parking = false;
    jobset->in_place_restarts++;
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (jobset->gangs.items[g]->state == GANG_PLACED) {
            jobset->gangs.items[g]->attempt = jobset->attempt;
            jobset->gangs.items[g]->replaces = true;
        }
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (task->state != TASK_PLACED)
                continue;
            task_rename(step, task);
            task_start_if_free(step, task);
        }
    }
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void inplace_cancel(struct jobset *jobset)
{
    jobset->in_place_restarts += jobset->parking; /* when it is resumed its tasks begin anew in any case */
    jobset->parking = jobset->backing_off = false;
}

int64_t inplace_deadline(const struct jobset *jobset)
{
    if (!jobset->parking)
        return INT64_MAX;
    return jobset->parking_since_ns + (jobset->backing_off ? 0 : PARK_LIMIT_NS);
}

/* A place is missing for too long. What was to be one restart of the whole becomes one; a container's becomes
 * the failure of the Jobs that are not whole. */
static void give_up(struct step *step, struct jobset *jobset)
{
    if (!inplace_is_asked(jobset)) {
        inplace_cancel(jobset);
        for (uint32_t i = 0; i < jobset->job_count; i++)
            if (jobset->jobs[i] && !job_is_parked(jobset->jobs[i]))
                job_fail(step, jobset->jobs[i], "BackoffLimitExceeded",
                         "Job has reached the specified backoff limit");
        return;
    }
    jobset->parking = false;
    jobset->restarts++;
    jobset->executions++;
    jobset->restarts_counted += jobset->parking_counted;
    jobset->in_place_counted -= jobset->parking_counted;
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    attempt_doom_jobs(step, jobset, 0, jobset->job_count);
}

void inplace_go_on(struct step *step, struct jobset *jobset)
{
    if (!jobset->parking)
        return;
    jobset->backing_off = jobset->backing_off && step->now_ns < jobset->parking_since_ns;
    if (jobset_finished(jobset) || jobset->spec.suspend)
        inplace_cancel(jobset);
    else if (!jobset->backing_off && all_parked(jobset))
        run_again(step, jobset);
    else if (inplace_deadline(jobset) <= step->now_ns)
        give_up(step, jobset);
}
