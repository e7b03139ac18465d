/* batch.c - the batch/v1 Job: the tasks of its indexes, its failure, its completion.
 *
 * Rules: Kubernetes' job controller (Job API reference, "Handling Pod and container failures", "Pod failure
 * policy", "Backoff limit per index"). A difference, documented in docs/jobset.md: unless the JobSet or the
 * cluster asks for upstream's rule (failures_wait), a JobSet treats a Job that will fail as failed at once,
 * while the Job's other tasks still end.
 */
#include "core/life/internal.h"

#include "base/backoff.h"

/* Back-off between retries of a task: 10 s, doubling, at most 10 minutes (the job controller's). */
enum { RETRY_BASE_S = 10, RETRY_CAP_S = 600 };
_Static_assert(RETRY_BASE_S > 0 && RETRY_BASE_S <= RETRY_CAP_S, "a delay that grows");

struct job *job_make(struct jobset *jobset, uint32_t position)
{
    CHECK(position < jobset->job_count);
    struct job *job = mem_alloc(sizeof(*job));
    uint32_t rjob = 0, index = position;
    while (index >= (uint32_t)jobset->spec.rjobs[rjob].replicas)
        index -= (uint32_t)jobset->spec.rjobs[rjob++].replicas;
    job->jobset = jobset;
    job->rjob = &jobset->spec.rjobs[rjob];
    job->rjob_index = rjob;
    job->index = index;
    job->global_index = position;
    job->name = jobset->name;
    if (jobset->form == FORM_JOBSET) { /* the name is nearly all that the arena ever holds */
        arena_reserve(&job->arena, jobset->name.len + job->rjob->name.len + 2 + DECIMAL_TEXT_MAX);
        job->name = job_name(&job->arena, jobset->name, job->rjob->name, (int32_t)index);
    }
    job->success_rule = -1;
    job->sift = true;
    job->index_count = jobset->widths[rjob];
    job->first_slot = jobset_first_slot(jobset, rjob, index);
    CHECK(rjob < jobset->spec.rjob_count && job->first_slot + job->index_count <= jobset->slots.count);
    job->indexes = mem_alloc(job->index_count * sizeof(*job->indexes));
    return job;
}

struct job *job_new(struct step *step, struct jobset *jobset, uint32_t position, bool suspended)
{
    CHECK(!jobset->jobs[position]);
    struct job *job = job_make(jobset, position);
    job->uid = step_uid(step);
    job->attempt = jobset->restarts;
    job->job_attempt = jobset->job_attempts[position];
    job->execution = jobset->executions > 0 ? jobset->executions : 0;
    job->state = suspended ? JOB_SUSPENDED : JOB_ACTIVE;
    job->created_ns = step->now_ns;
    job->start_ns = suspended ? 0 : step->now_ns;
    jobset->jobs[position] = job;
    jobset->made++;
    CHECK(jobset->made <= jobset->job_count);
    job_touch(job);
    store_add_job(step->jobs, job);
    step_changed(step, CHANGE_ADDED, ref_job(job));
    if (suspended && jobset->form != FORM_POD)
        step_note(step, false, "Suspended", ref_job(job), "Job suspended");
    return job;
}

/* --- failure ---------------------------------------------------------------------------------- */

static void stop_tasks(struct step *step, struct job *job, bool doom)
{
    CHECK(!job->gone);
    bool own = job->jobset->form != FORM_JOBSET; /* a user's deletion may have given its tasks more time */
    for (size_t i = 0; i < job->tasks.len; i++)
        if (!own || job->tasks.items[i]->state != TASK_STOPPING)
            task_stop(step, job->tasks.items[i], doom, job->rjob->job.pod.grace_s * NS_PER_SECOND);
        else
            job->tasks.items[i]->doomed |= doom;
    spare_stop_all(step, job);
}

/* The Job controller's Events about pods that are made or deleted together. The first PODS_NOTED_MAX pods get
 * an Event each, and the last one an Event for all others, as Kubernetes' clients combine them. */
enum { PODS_NOTED_MAX = 10 };
struct pods_noted {
    const char *reason, *verb;
    const struct task *last;
    size_t count;
};

static void note_pod(struct step *step, struct pods_noted *noted, const struct task *task)
{
    CHECK(noted->reason && noted->verb && !task_is_spare(task));
    if (noted->count++ < PODS_NOTED_MAX)
        step_note(step, false, noted->reason, ref_job(task->job), "%s pod: " STR_FORMAT, noted->verb,
                  STR_ARG(task->name));
    noted->last = task;
}

static void note_pods_done(struct step *step, const struct pods_noted *noted)
{
    if (noted->count > PODS_NOTED_MAX)
        step_note(step, false, noted->reason, ref_job(noted->last->job),
                  "(combined from similar events): %s pod: " STR_FORMAT, noted->verb,
                  STR_ARG(noted->last->name));
}

/* Deletes the Job's pods with Events, because the Job controller deletes them. The pods of a deleted Job are
 * deleted without Events. */
static void delete_tasks(struct step *step, struct job *job)
{
    struct pods_noted noted = {.reason = "SuccessfulDelete", .verb = "Deleted"};
    for (size_t i = 0; i < job->tasks.len; i++)
        if (!task_ended(job->tasks.items[i]->state) && !job->tasks.items[i]->doomed)
            note_pod(step, &noted, job->tasks.items[i]);
    note_pods_done(step, &noted);
    stop_tasks(step, job, true);
}

/* An exited container and its exit code. */
struct exit {
    struct str container;
    int32_t code; /* 128 plus the number of a signal */
};

static bool exit_matches(const struct pod_failure_rule *rule, struct exit exit)
{
    bool in = false;
    if (rule->container.len && !str_equal(rule->container, exit.container))
        return false;
    for (size_t i = 0; i < rule->code_count; i++)
        in |= rule->codes[i] == exit.code;
    return exit.code != 0 && in != rule->not_in;
}

/* Finds the first exit to which the rule applies, among the containers and then the init containers. */
static bool find_exit(const struct pod_failure_rule *rule, const struct task *task, struct exit *ret_exit)
{
    struct exit whole = {task->job->rjob->job.pod.container,
                         task->signal ? 128 + task->signal : task->exit_code};
    if (task->end == END_MACHINE_LOST)
        return false;
    for (uint32_t i = 0; i < task->container_count; i++) {
        const struct container_status *status = &task->containers[i];
        struct exit one = {status->name,
                           status->end.signal ? 128 + status->end.signal : status->end.exit_code};
        if (status->phase == CONTAINER_TERMINATED && exit_matches(rule, one)) {
            *ret_exit = one;
            return true;
        }
    }
    if (task->container_count > 0 || !exit_matches(rule, whole))
        return false;
    *ret_exit = whole;
    return true;
}

static bool rule_matches(const struct pod_failure_rule *rule, const struct task *task)
{
    CHECK(task->end != END_NONE);
    struct exit exit;
    if (rule->on_exit_codes)
        return find_exit(rule, task, &exit);
    bool disrupted = task->end == END_MACHINE_LOST || task->evicted;
    for (size_t i = 0; i < rule->condition_count; i++)
        if (str_is(rule->conditions[i].key, "DisruptionTarget") &&
            str_is(rule->conditions[i].value, "True") == disrupted)
            return true;
    return false;
}

/* Returns the action of the pod failure policy for a failed task, or POD_COUNT if no rule matches. */
static enum pod_failure_action policy_action(const struct job *job, const struct task *task, size_t *ret_rule)
{
    CHECK(task->job == job);
    const struct job_spec *spec = &job->rjob->job;
    for (size_t i = 0; i < spec->pod_failure_rule_count; i++) {
        if (rule_matches(&spec->pod_failure_rules[i], task)) {
            *ret_rule = i;
            return spec->pod_failure_rules[i].action;
        }
    }
    return POD_COUNT;
}

bool job_policy_fails(const struct job *job, const struct task *task)
{
    size_t rule;
    bool failed = task->exit_code || task->signal || task->evicted || task->end == END_MACHINE_LOST ||
                  task->end == END_START_FAILED;
    return failed && policy_action(job, task, &rule) == POD_FAIL_JOB;
}

static void fail_by_policy(struct step *step, struct job *job, const struct task *task, size_t rule)
{
    CHECK(rule < job->rjob->job.pod_failure_rule_count);
    const struct pod_failure_rule *matched = &job->rjob->job.pod_failure_rules[rule];
    struct str ns = job->jobset->namespace_;
    struct exit exit;
    if (matched->on_exit_codes && find_exit(matched, task, &exit))
        job_fail(step, job, "PodFailurePolicy",
                 "Container " STR_FORMAT " for pod " STR_FORMAT "/" STR_FORMAT
                 " failed with exit code %d matching FailJob rule at index %zu",
                 STR_ARG(exit.container), STR_ARG(ns), STR_ARG(task->name), exit.code, rule);
    else
        job_fail(step, job, "PodFailurePolicy",
                 "Pod " STR_FORMAT "/" STR_FORMAT
                 " has condition DisruptionTarget matching FailJob rule at index %zu",
                 STR_ARG(ns), STR_ARG(task->name), rule);
}

void job_count_failure(struct step *step, struct job *job, struct task *task)
{
    CHECK(task->job == job && task->state == TASK_FAILED && !task_is_spare(task));
    size_t rule = 0;
    enum pod_failure_action action = policy_action(job, task, &rule);
    if (action == POD_FAIL_JOB)
        fail_by_policy(step, job, task, rule);
    if (action == POD_FAIL_JOB || action == POD_IGNORE)
        return;
    const struct job_spec *spec = &job->rjob->job;
    struct job_index *slot = &job->indexes[task->index];
    CHECK(!slot->failed && !slot->succeeded); /* a decided index has no task that could fail */
    job->failed++;
    slot->failures++;
    if (spec->backoff_limit_per_index >= 0 || action == POD_FAIL_INDEX) {
        slot->failed = action == POD_FAIL_INDEX || slot->failures > (uint32_t)spec->backoff_limit_per_index;
        job->failed_indexes += slot->failed;
    }
    if (job->failed > (uint32_t)spec->backoff_limit) /* job_fail keeps an earlier reason */
        job_fail(step, job, "BackoffLimitExceeded", "Job has reached the specified backoff limit");
    if (spec->max_failed_indexes >= 0 && job->failed_indexes > (uint32_t)spec->max_failed_indexes)
        job_fail(step, job, "MaxFailedIndexesExceeded",
                 "Job has exceeded the specified maximal number of failed indexes");
    CHECK(job->failed_indexes <= job->index_count);
}

/* Number of replaced failed tasks that are kept for their logs, besides one for each index. */
enum { REPLACED_KEPT_MAX = 16 };

static bool may_hold_surplus(const struct job *job)
{
    return job->tasks.len > REPLACED_KEPT_MAX + (size_t)job->index_count;
}

/* Delays the next try of one index, but not of others. */
static void index_waits(struct job *job, struct job_index *slot, int64_t due_ns)
{
    CHECK(due_ns > 0 && !slot->succeeded);
    slot->retry_due_ns = due_ns;
    if (!job->retry_due_ns || due_ns < job->retry_due_ns)
        job->retry_due_ns = due_ns;
}

void job_retry_later(struct step *step, struct job *job, const struct task *task)
{
    CHECK(job->state == JOB_ACTIVE && (uint32_t)task->index < job->index_count);
    struct job_index *slot = &job->indexes[task->index];
    uint32_t doublings = slot->failures > 1 ? slot->failures - 1 : 0;
    int64_t due_ns = step->now_ns + backoff_wait(RETRY_BASE_S, RETRY_CAP_S, doublings) * NS_PER_SECOND;
    if (job->rjob->job.backoff_limit_per_index >= 0)
        index_waits(job, slot, due_ns);
    else
        job->retry_due_ns = due_ns;
}

void job_count_end(struct job *job, struct task *task)
{
    CHECK(task->job == job && task_ended(task->state) && (uint32_t)task->index < job->index_count);
    struct job_index *slot = &job->indexes[task->index];
    if (task->state == TASK_SUCCEEDED) {
        CHECK(!slot->succeeded && job->succeeded < job->index_count);
        slot->succeeded = true;
        job->succeeded++;
        return;
    }
    job->sift |= task->doomed || may_hold_surplus(job);
}

/* --- reconciliation --------------------------------------------------------------------------- */

void job_suspend(struct step *step, struct job *job)
{
    CHECK(!job->doomed && !job->gone);
    if (job->state != JOB_ACTIVE)
        return;
    lifecycle_move(&job_lifecycle, &job->state, JOB_SUSPENDED);
    job_touch(job);
    delete_tasks(step, job);
    job->start_ns = 0;
    step_changed(step, CHANGE_MODIFIED, ref_job(job));
    step_note(step, false, "Suspended", ref_job(job), "Job suspended");
}

void job_resume(struct step *step, struct job *job)
{
    CHECK(!job->doomed && !job->gone);
    if (job->state != JOB_SUSPENDED)
        return;
    lifecycle_move(&job_lifecycle, &job->state, JOB_ACTIVE);
    job->execution = job->jobset->executions;
    job->start_ns = step->now_ns;
    job_touch(job);
    step_changed(step, CHANGE_MODIFIED, ref_job(job));
    step_note(step, false, "Resumed", ref_job(job), "Job resumed");
}

int64_t job_deadline(const struct job *job)
{
    int64_t due_ns = INT64_MAX;
    /* A Job that is being deleted, or whose pods are orphaned, has no timer: a finalizer may keep it for
     * ever. */
    if (!job_goes_on(job))
        return due_ns;
    if (job->rjob->job.active_deadline_s >= 0)
        due_ns = job->start_ns + job->rjob->job.active_deadline_s * NS_PER_SECOND;
    if (job->retry_due_ns && job->retry_due_ns < due_ns)
        due_ns = job->retry_due_ns;
    int64_t spare_ns = spare_deadline(job);
    return spare_ns < due_ns ? spare_ns : due_ns;
}

/* Counts over the indexes that the spec has now. Indexes beyond them do not count. */
struct tally {
    uint32_t wanted, succeeded, failed, active;
};

static struct tally tally(const struct job *job)
{
    uint32_t wanted = job_index_count(job->rjob);
    struct tally sum = {wanted, job->succeeded, job->failed_indexes, job->active};
    if (wanted == job->index_count)
        return sum;
    sum.succeeded = sum.failed = sum.active = 0;
    for (uint32_t i = 0; i < wanted; i++) {
        const struct job_index *slot = &job->indexes[i];
        sum.succeeded += slot->succeeded;
        sum.failed += slot->failed;
        sum.active += slot->task && !task_ended(slot->task->state);
    }
    return sum;
}

static bool rule_is_met(const struct job *job, const struct job_success_rule *rule)
{
    CHECK(rule->range_count == 0 || rule->ranges);
    uint32_t succeeded = 0, all = 0, wanted = job_index_count(job->rjob);
    for (size_t r = 0; r < rule->range_count; r++)
        for (uint32_t i = (uint32_t)rule->ranges[r].first; i <= (uint32_t)rule->ranges[r].last && i < wanted;
             i++) {
            succeeded += job->indexes[i].succeeded;
            all++;
        }
    if (rule->range_count == 0)
        succeeded = job->succeeded;
    return rule->count >= 0 ? succeeded >= (uint32_t)rule->count : all > 0 && succeeded == all;
}

static bool success_policy(struct job *job)
{
    const struct job_spec *spec = &job->rjob->job;
    for (size_t i = 0; i < spec->success_rule_count && job->succeeded > 0; i++) {
        if (rule_is_met(job, &spec->success_rules[i])) {
            job->success_rule = (int32_t)i;
            return true;
        }
    }
    return false;
}

/* Moves the Job to COMPLETING or FAILING if its indexes decide so. Returns whether it did. */
static bool decide(struct step *step, struct job *job)
{
    CHECK(job->state == JOB_ACTIVE && job->success_rule < 0);
    struct tally sum = tally(job); /* each index succeeds or fails once */
    CHECK(sum.succeeded + sum.failed <= sum.wanted);
    bool queue = job->rjob->job.completions < 0;
    /* Absent replicas need not run any more once a rank has succeeded. */
    uint32_t away = inplace_has_succeeded(job->jobset) ? shrink_away_in(job) : 0;
    if (success_policy(job) ||
        (queue ? job->succeeded > 0 && job->active == 0 : sum.succeeded + away == sum.wanted)) {
        lifecycle_move(&job_lifecycle, &job->state, JOB_COMPLETING);
        job->finished_ns = step->now_ns;
        step_changed(step, CHANGE_MODIFIED, ref_job(job));
        return true;
    }
    if (sum.failed > 0 && sum.succeeded + sum.failed + away == sum.wanted && job->active <= away) {
        job_fail(step, job, "FailedIndexes", "Job has failed indexes");
        return true;
    }
    return false;
}

void job_resized(struct job *job)
{
    CHECK(!job->gone && job_index_count(job->rjob) <= job->index_count);
    job->first_open = 0;
    job->sift = true;
    job_touch(job);
}

/* Stops the surplus tasks after a decrease of parallelism or completions, those with the highest indexes
 * first. Stopped tasks do not count as failed. */
static void stop_surplus(struct step *step, struct job *job, uint32_t wanted)
{
    CHECK(wanted <= job->index_count);
    int64_t living = 0, grace_ns = job->rjob->job.pod.grace_s * NS_PER_SECOND;
    struct pods_noted noted = {.reason = "SuccessfulDelete", .verb = "Deleted"};
    for (uint32_t i = 0; i < job->index_count; i++)
        living +=
            job->indexes[i].task && !task_ended(job->indexes[i].task->state) && !job->indexes[i].task->doomed;
    for (uint32_t i = job->index_count; i > 0; i--) {
        struct task *task = job->indexes[i - 1].task;
        if (!task || task_ended(task->state) || task->doomed)
            continue;
        if (i - 1 < wanted && living <= job->rjob->job.parallelism)
            break;
        note_pod(step, &noted, task);
        task_stop(step, task, true, grace_ns);
        living--;
    }
    note_pods_done(step, &noted);
}

static void make_tasks(struct step *step, struct job *job)
{
    CHECK(job->state == JOB_ACTIVE && !job->doomed && job->first_open <= job->index_count);
    bool each = job->rjob->job.backoff_limit_per_index >= 0;
    if ((job->retry_due_ns > step->now_ns && !each) || job->jobset->recovery.state == RECOVERY_DUMPING)
        return;
    job->retry_due_ns = 0;
    bool queue_is_draining = job->rjob->job.completions < 0 && job->succeeded > 0;
    if (queue_is_draining)
        return;
    struct tally sum = tally(job);
    CHECK(sum.succeeded + sum.failed + sum.active <= sum.wanted);
    struct pods_noted noted = {.reason = "SuccessfulCreate", .verb = "Created"};
    int32_t room = job->rjob->job.parallelism - (int32_t)job->active;
    int32_t open = (int32_t)(sum.wanted - sum.succeeded - sum.failed - sum.active);
    room = room < open ? room : open;
    for (uint32_t i = job->first_open; i < sum.wanted && room > 0; i++) {
        struct job_index *slot = &job->indexes[i];
        bool decided = slot->succeeded || slot->failed;
        job->first_open += decided && i == job->first_open;
        if (decided || (slot->task && !task_ended(slot->task->state)))
            continue;
        if (slot->retry_due_ns > step->now_ns) {
            index_waits(job, slot, slot->retry_due_ns);
            continue;
        }
        if (!spare_take(step, job, (int32_t)i))
            note_pod(step, &noted, task_create(step, job, (int32_t)i));
        room--;
    }
    note_pods_done(step, &noted);
    job->sift |= may_hold_surplus(job);
}

/* Moves a FAILING or COMPLETING Job to its final state, once its tasks have ended. */
static void settle_end(struct step *step, struct job *job)
{
    if (job->state != JOB_FAILING && job->state != JOB_COMPLETING)
        return;
    if (!job->told_stop)
        delete_tasks(step, job);
    job->told_stop = true;
    if (job->active > 0)
        return;
    bool failed = job->state == JOB_FAILING;
    lifecycle_move(&job_lifecycle, &job->state, failed ? JOB_FAILED : JOB_COMPLETE);
    job_touch(job); /* with failures_wait, it counts as failed only now */
    step_changed(step, CHANGE_MODIFIED, ref_job(job));
    if (failed)
        job_note_failure(step, job);
    else
        step_note(step, false, "Completed", ref_job(job), "Job completed");
}

static bool is_replaced(const struct job *job, const struct task *task)
{
    CHECK(task->job == job && (uint32_t)task->index < job->index_count);
    return task->state == TASK_FAILED && task != job->culprit && job->indexes[task->index].task != task;
}

/* Removes stopped Pods that have ended, and the oldest of the replaced failed Pods. */
static void drop_ended(struct step *step, struct job *job)
{
    if (!job->sift) /* without this, each report of one task would visit all of them */
        return;
    job->sift = false;
    size_t replaced = 0, kept = 0;
    for (size_t i = 0; i < job->tasks.len; i++)
        replaced += is_replaced(job, job->tasks.items[i]);
    for (size_t i = 0; i < job->tasks.len; i++) {
        struct task *task = job->tasks.items[i];
        bool stopped = task->doomed && task->state == TASK_FAILED && task != job->culprit;
        bool surplus = is_replaced(job, task) && replaced > REPLACED_KEPT_MAX + job->index_count;
        if (!stopped && !surplus) {
            job->tasks.items[kept++] = task;
            continue;
        }
        replaced -= is_replaced(job, task);
        if (job->indexes[task->index].task == task)
            job->indexes[task->index].task = NULL;
        task_bury(step, task);
        vec_push(&step->jobs->dead_tasks, task);
    }
    job->tasks.len = kept;
}

void job_reconcile(struct step *step, struct job *job)
{
    CHECK(!job->gone && job->active <= job->index_count && job->ready <= job->active);
    job_count(job);
    spare_look(step, job);
    if (job->doomed || job->jobset->deleted_ns) {
        if (!job->told_doom)
            stop_tasks(step, job, true); /* once: a doomed job makes no tasks */
        job->told_doom = true;
        return;
    }
    const struct job_spec *spec = &job->rjob->job;
    if (job_is_hidden(job)) {
        drop_ended(step, job);
        return;
    }
    if (jobset_is_foreign(job->jobset))
        return;
    if (job->state == JOB_ACTIVE && spec->active_deadline_s >= 0 &&
        job->start_ns + spec->active_deadline_s * NS_PER_SECOND <= step->now_ns)
        job_fail(step, job, "DeadlineExceeded", "Job was active longer than specified deadline");
    if (job->state == JOB_ACTIVE && jobset_is_elastic(job->jobset))
        stop_surplus(step, job, job_index_count(job->rjob));
    if (job->state == JOB_ACTIVE && !decide(step, job))
        make_tasks(step, job);
    settle_end(step, job);
    drop_ended(step, job);
    CHECK(!job_over(job) || job->active == 0);
}

void job_bury(struct step *step, struct job *job)
{
    CHECK(!job_alive(job) && job->doomed && !job->gone);
    step_changed(step, CHANGE_DELETED, ref_job(job));
    store_hide_job(step->jobs, job);
    if (heap_has(&job->timer))
        heap_remove(&job->jobset->work.timers, &job->timer);
    job->gone = true;
    for (size_t i = 0; i < job->tasks.len; i++)
        task_bury(step, job->tasks.items[i]);
    vec_push(&step->jobs->dead_jobs, job);
}

void attempt_doom_jobs(struct step *step, struct jobset *jobset, uint32_t first, uint32_t end)
{
    CHECK(first <= end && end <= jobset->job_count);
    for (uint32_t i = first; i < end; i++) {
        struct job *job = jobset->jobs[i];
        if (!job)
            continue;
        CHECK(!job->doomed && job->global_index == i && jobset->made > 0);
        if (job->state == JOB_FAILING) /* settle_end will not run for this Job */
            job_note_failure(step, job);
        job->doomed = true;
        job->doomed_ns = step->now_ns;
        jobset->jobs[i] = NULL;
        jobset->made--;
        job_touch(job);
        job->old_place = (uint32_t)jobset->old_jobs.len;
        vec_push(&jobset->old_jobs, job);
        job->before = jobset->ending[i];
        jobset->ending[i] = job;
        step_changed(step, CHANGE_MODIFIED, ref_job(job));
        job_reconcile(step, job);
    }
}
