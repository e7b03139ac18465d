/* form.c - gangs of tasks that are created together, or that spec.scheduling divides. */
#include "core/gang/internal.h"

static bool is_loose(const struct task *task)
{
    return !task->gang && task->state == TASK_PENDING;
}

static const struct gang_rule *rule_of(const struct job *job)
{
    const struct gang_rule *rules = job->jobset->spec.gang_rules;
    return rules ? &rules[job->rjob_index] : NULL;
}

/* Returns whether the Job's pods name their machine. Each of them then forms a gang (life/named.c). */
static bool is_named(const struct job *job)
{
    return job->rjob->job.pod.node_name.len > 0;
}

/* Returns whether tasks of the two Jobs belong to one gang. */
static bool same_gang(const struct job *a, const struct job *b)
{
    const struct gang_rule *x = rule_of(a), *y = rule_of(b);
    if (is_named(a) || is_named(b))
        return a == b;
    return !x || (x->group == y->group && x->per_job == y->per_job && (!x->per_job || a == b));
}

/* Counts the living, placed tasks of the job's gang. */
static int64_t count_placed(const struct job *like)
{
    CHECK(!like->doomed);
    const struct jobset *jobset = like->jobset;
    int64_t count = 0;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && same_gang(job, like) && t < job->tasks.len; t++)
            count += job->tasks.items[t]->state != TASK_PENDING && !task_ended(job->tasks.items[t]->state);
    }
    return count;
}

static struct gang *open_gang(struct step *step, struct jobset *jobset)
{
    struct gang *gang = mem_alloc(sizeof(*gang));
    gang->uid = gang->queued.id = step_uid(step);
    gang->jobset = jobset;
    gang->attempt = jobset->attempt;
    gang->queued.priority = INT32_MIN;
    return gang;
}

static void join(struct step *step, struct gang *gang, struct task *task)
{
    CHECK(!task->gang && task->state == TASK_PENDING && !task_is_spare(task));
    const struct job *job = task->job;
    const struct jobset *jobset = gang->jobset;
    task->gang = gang;
    vec_push(&gang->tasks, task);
    gang->replaces |= (task->retry > 0 && job->culprit) || jobset->attempt > jobset->first_attempt ||
                      jobset->job_attempts[job->global_index] > 0;
    int32_t priority = job_priority(step->jobs, step->cluster, job->rjob);
    gang->queued.priority = priority > gang->queued.priority ? priority : gang->queued.priority;
}

static bool may_run(const struct job *job, int32_t attempt)
{
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        if (task->doomed && task->start_sent_ns && !task_ended(task->state) && task->attempt == attempt)
            return true;
    }
    return false;
}

/* Returns whether a process that was told to stop may still live under the present attempt: of a Job that was
 * replaced, or that was suspended and resumed. */
static bool meets_older(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && may_run(jobset->jobs[i], jobset->attempt))
            return true;
    for (size_t i = 0; i < jobset->old_jobs.len; i++)
        if (may_run(jobset->old_jobs.items[i], jobset->attempt))
            return true;
    return false;
}

static void close_gang(struct step *step, struct gang *gang)
{
    struct jobset *jobset = gang->jobset;
    int64_t chips = 0;
    CHECK(gang->tasks.len > 0 && gang->tasks.len <= jobset->work.loose_tasks);
    for (size_t t = 0; t < gang->tasks.len; t++) {
        struct task *task = gang->tasks.items[t];
        task->asked_chips = task->job->rjob->job.pod.chips;
        chips += task->asked_chips;
    }
    jobset->work.loose_tasks -= (uint32_t)gang->tasks.len;
    gang->waiting = gang->alive = (uint32_t)gang->tasks.len;
    gang->mixed_plus_1 = meets_older(jobset) ? (uint32_t)jobset->attempt + 1 : 0;
    gang->queued_ns = step->now_ns;
    gang->queued.submitted_ns = gang->replaces ? jobset->first_queued_ns : step->now_ns;
    gang_look_at_gates(gang);
    gang_judge(step->jobs, gang);
    ledger_account_open(&gang->account, jobset_size_class(jobset),
                        gang->replaces ? OWNER_AWAITING : OWNER_QUEUED, chips, step_now_us(step));
    vec_push(&jobset->gangs, gang);
    sched_queue_add(&step->jobs->queue, &gang->queued);
    step->schedule = true;
}

void gang_form_spare(struct step *step, struct task *task)
{
    CHECK(task_is_spare(task) && task->state == TASK_PENDING && !task->gang);
    struct gang *gang = open_gang(step, task->job->jobset); /* a spare gang has the lowest priority */
    task->gang = gang;
    task->asked_chips = task->job->rjob->job.pod.chips;
    vec_push(&gang->tasks, task);
    gang_look_at_gates(gang);
    gang_judge(step->jobs, gang);
    gang->replaces = true;
    gang->waiting = gang->alive = 1;
    gang->queued_ns = gang->queued.submitted_ns = step->now_ns;
    ledger_account_open(&gang->account, jobset_size_class(gang->jobset), OWNER_SPARE, task->asked_chips,
                        step_now_us(step));
    vec_push(&gang->jobset->gangs, gang);
    sched_queue_add(&step->jobs->queue, &gang->queued);
    step->schedule = true;
}

void gang_adopt_spare(struct step *step, struct gang *gang)
{
    CHECK(gang->tasks.len == 1 && !gang_is_spare(gang) && gang->state != GANG_QUEUED);
    gang->queued.priority = job_priority(step->jobs, step->cluster, gang->tasks.items[0]->job->rjob);
    gang->queued.submitted_ns = gang->jobset->first_queued_ns;
    gang_book(step, gang, OWNER_RESTARTING);
}

/* Makes a separate gang of each loose task of the Job. */
static void form_singles(struct step *step, struct job *job)
{
    CHECK(!job->doomed);
    for (size_t t = 0; t < job->tasks.len; t++) {
        if (!is_loose(job->tasks.items[t]))
            continue;
        struct gang *gang = open_gang(step, job->jobset);
        join(step, gang, job->tasks.items[t]);
        close_gang(step, gang);
    }
}

static bool has_loose(const struct job *job)
{
    for (size_t t = 0; t < job->tasks.len; t++)
        if (is_loose(job->tasks.items[t]))
            return true;
    return false;
}

/* Makes the gang of the loose tasks of the Job at `first` and of later Jobs that belong to it. */
static void form_from(struct step *step, struct jobset *jobset, uint32_t first)
{
    CHECK(first < jobset->job_count && jobset->jobs[first]);
    struct job *head = jobset->jobs[first];
    const struct gang_rule *rule = rule_of(head);
    int64_t least = rule ? rule->min_count : 0;
    int64_t missing = least ? least - count_placed(head) : 0;
    if (is_named(head) || (rule && (rule->basic || (least && missing <= 0)))) {
        form_singles(step, head);
        return;
    }
    struct gang *gang = open_gang(step, jobset);
    for (uint32_t i = first; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && same_gang(job, head) && t < job->tasks.len; t++)
            if (is_loose(job->tasks.items[t]))
                join(step, gang, job->tasks.items[t]);
    }
    gang->min_count = missing < (int64_t)gang->tasks.len ? (uint32_t)missing : 0;
    close_gang(step, gang);
}

void gang_form(struct step *step, struct jobset *jobset)
{
    for (uint32_t i = 0; jobset->work.loose_tasks && i < jobset->job_count; i++)
        if (jobset->jobs[i] && has_loose(jobset->jobs[i]))
            form_from(step, jobset, i);
    CHECK(jobset->work.loose_tasks == 0);
}

void gang_shrink(struct step *step, struct gang *gang, uint32_t count)
{
    CHECK(gang->state == GANG_QUEUED && count > 0 && count < gang->tasks.len && !gang->thinned);
    int64_t chips = 0;
    for (size_t t = count; t < gang->tasks.len; t++) {
        struct task *task = gang->tasks.items[t];
        chips += task->asked_chips;
        gang_leave(task);
        gang->waiting--;
        gang->alive--;
        gang->jobset->work.loose_tasks++;
    }
    gang_thin(gang);
    gang_chips_left(step, gang, chips);
    gang->min_count = 0;
    gang_judge_anew(gang);
    jobset_mark(step, gang->jobset);
}
