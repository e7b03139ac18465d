/* reconcile.c - the reconciliation of marked JobSets, each as a whole and until nothing changes: Jobs,
 * policies, suspension, deletion, TTL. */
#include "core/job/folder.h"
#include "core/recover/internal.h"

/* Removes an ended old job from its JobSet. */
static void leave_old_jobs(struct jobset *jobset, struct job *job)
{
    CHECK(jobset->old_jobs.len > 0 && job->old_place < jobset->old_jobs.len);
    struct job *last = vec_last(&jobset->old_jobs);
    CHECK(jobset->old_jobs.items[job->old_place] == job);
    jobset->old_jobs.items[job->old_place] = last;
    last->old_place = job->old_place;
    jobset->old_jobs.len--;
    struct job **link = &jobset->ending[job->global_index];
    while (*link != job) {
        CHECK(*link);
        link = &(*link)->before;
    }
    *link = job->before;
}

/* Shows the next Job of the place to users, once no older Job has its name. */
static void show_next(struct step *step, const struct jobset *jobset, uint32_t place)
{
    CHECK(place < jobset->job_count);
    struct job *next = jobset_seen_job(jobset, place);
    if (!next || jobset->form != FORM_JOBSET ||
        jobs_find_job(step->jobs, jobset->namespace_, next->name) == next)
        return;
    store_add_job(step->jobs, next);
    step_changed(step, CHANGE_ADDED, ref_job(next));
}

/* Reconciles touched Jobs until none is left; buries doomed Jobs whose tasks have ended. */
static void reconcile_jobs(struct step *step, struct jobset *jobset)
{
    incident_answer(step, jobset);
    for (size_t i = 0; i < jobset->work.dirty.len; i++) { /* the list may grow in the loop */
        struct job *job = jobset->work.dirty.items[i];
        job->dirty = false;
        if (job->gone)
            continue;
        job_reconcile(step, job);
        if (job->doomed && !job_alive(job)) {
            job_bury(step, job);
            leave_old_jobs(jobset, job);
            show_next(step, jobset, job->global_index);
        }
    }
    vec_clear(&jobset->work.dirty);
}

/* Adds the accounts of ended gangs to the JobSet's account, and removes these gangs. After the last gang the
 * account does not change until the next one, and is shown to users. */
static void close_gangs(struct step *step, struct jobset *jobset)
{
    bool some = jobset->gangs.len > 0;
    for (size_t i = 0; i < jobset->gangs.len;) {
        struct gang *gang = jobset->gangs.items[i];
        if (gang->state != GANG_ENDED) {
            gang_thin(gang);
            i++;
            continue;
        }
        CHECK(gang->account.chips == 0 && gang->alive == 0 && gang->waiting == 0);
        struct ledger_account final = ledger_account_at(&gang->account, step_now_us(step));
        ledger_account_add(&jobset->usage.closed, &final);
        for (size_t t = 0; t < gang->tasks.len; t++)
            if (gang->tasks.items[t]->gang == gang)
                gang->tasks.items[t]->gang = NULL;
        vec_remove(&jobset->gangs, i);
        vec_push(&step->jobs->dead_gangs, gang);
    }
    if (some && jobset->gangs.len == 0)
        step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

static bool success_policy(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_finished(jobset));
    int32_t succeeded = 0, wanted = 0, any = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        any += jobset->rjob_status[r].succeeded;
        if (jobset->spec.success_targets && !jobset->spec.success_targets[r])
            continue;
        succeeded += jobset->rjob_status[r].succeeded;
        wanted += jobset->spec.rjobs[r].replicas;
    }
    bool met = jobset->spec.success_operator == OPERATOR_ANY ? succeeded > 0 : any > 0 && succeeded >= wanted;
    if (met)
        jobset_finish(step, jobset, CONDITION_COMPLETED, "AllJobsCompleted", "jobset completed successfully");
    return met;
}

static void resume_jobs(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset->spec.suspend);
    uint32_t first = 0;
    for (uint32_t r = 0; r < jobset->spec.rjob_count; r++) {
        uint32_t end = first + (uint32_t)jobset->spec.rjobs[r].replicas;
        bool some = jobset->rjob_status[r].suspended > 0 && startup_allows(jobset, r);
        for (uint32_t i = first; some && i < end; i++)
            if (jobset->jobs[i])
                job_resume(step, jobset->jobs[i]);
        first = end;
        CHECK(first <= jobset->job_count);
    }
}

static void suspend_or_resume(struct step *step, struct jobset *jobset)
{
    if (jobset->form == FORM_POD)
        return; /* a Pod waits at its gates (gang/gates.c), and cannot be suspended while it runs */
    if (jobset->spec.suspend) {
        if (!suspend_waits(step, jobset))
            suspend_stop(step, jobset);
        return;
    }
    jobset->recovery.suspend_grace = (struct suspend_grace){0}; /* resumed during the wait for the save */
    bool resumes = jobset->conditions[CONDITION_SUSPENDED].status;
    if (jobset->executions < 0)
        jobset->executions = 0;
    else
        jobset->executions += resumes;
    if (resumes) {
        usage_resumed(step, jobset);
        condition_set(step, jobset, CONDITION_SUSPENDED, false, "ResumeJobs", "jobset is resumed");
    }
    resume_jobs(step, jobset);
}

static bool has_finalizers(const struct jobset *jobset)
{
    return doc_len(doc_path(jobset->document, "metadata", "finalizers", NULL)) > 0;
}

static void remove_jobset(struct step *step, struct jobset *jobset)
{
    struct job_store *store = step->jobs;
    CHECK(jobset->made == 0 && jobset->old_jobs.len == 0 && jobset->gangs.len == 0);
    CHECK(!jobset->entry.gone);
    ledger_bury(step->ledger, &jobset->usage.closed);
    step_changed(step, CHANGE_DELETED, ref_jobset(jobset));
    store_remove_jobset(store, jobset);
    jobset_keep_reserved(store, jobset, NULL, 0);
    if (heap_has(&jobset->entry.timer))
        heap_remove(&store->timers, &jobset->entry.timer);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        if (store->jobsets.items[i] == jobset) {
            vec_remove(&store->jobsets, i);
            break;
        }
    }
    jobset->entry.gone = true;
    folder_remember(store, jobset);
    vec_push(&store->dead_jobsets, jobset);
}

/* Returns whether a deleted Job or Pod without a JobSet still has living processes or finalizers. Until then
 * users see it, and its name stays in use. */
static bool own_remains(struct step *step, struct jobset *jobset)
{
    if (jobset->form == FORM_JOBSET || !jobset->jobs[0])
        return false;
    job_touch(jobset->jobs[0]);
    reconcile_jobs(step, jobset);
    jobset_recount(step, jobset);
    close_gangs(step, jobset);
    return job_alive(jobset->jobs[0]) || has_finalizers(jobset);
}

/* Dooms the Jobs of a deleted JobSet, and removes the JobSet when they have ended. Returns whether it did. */
static bool wind_down(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->deleted_ns && !jobset->entry.gone);
    if (own_remains(step, jobset))
        return false;
    attempt_doom_jobs(step, jobset, 0, jobset->job_count);
    reconcile_jobs(step, jobset);
    jobset_recount(step, jobset);
    close_gangs(step, jobset);
    if (jobset->old_jobs.len > 0 || has_finalizers(jobset))
        return false;
    remove_jobset(step, jobset);
    return true;
}

static bool all_pods_deleted(const struct job *job)
{
    for (size_t t = 0; t < job->tasks.len; t++)
        if (!task_ended(job->tasks.items[t]->state) || !job->tasks.items[t]->evicted)
            return false;
    return true;
}

/* Reconciles the orphans of a hidden JobSet. When the last of them has been deleted, removes the JobSet and
 * returns true. */
static bool orphans_gone(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->hidden && !jobset->deleted_ns);
    do {
        reconcile_jobs(step, jobset);
        shrink_look(step, jobset);
        inplace_go_on(step, jobset);
        if (jobset->form == FORM_JOB && jobset->jobs[0])
            shrink_part(step, jobset->jobs[0]);
        jobset_recount(step, jobset);
        if (jobset->form == FORM_JOB && jobset->jobs[0] && all_pods_deleted(jobset->jobs[0]))
            attempt_doom_jobs(step, jobset, 0, jobset->job_count);
    } while (jobset->work.dirty.len > 0);
    if (jobset->made > 0 || jobset->old_jobs.len > 0)
        return false;
    close_gangs(step, jobset);
    remove_jobset(step, jobset);
    return true;
}

static bool all_ready(const struct jobset *jobset)
{
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_status *status = &jobset->rjob_status[r];
        if (status->ready + status->succeeded < jobset->spec.rjobs[r].replicas)
            return false;
    }
    return true;
}

/* Reconciles a living JobSet until nothing changes. The loop ends: every round finishes the JobSet, restarts
 * it, makes Jobs, or moves Jobs between suspended and active, each once and in one direction. A resumed Job
 * may be complete at once by tasks that succeeded before. No report will follow then, so the JobSet is
 * checked again. */
static void move_on(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset->deleted_ns && !jobset->hidden);
    catch_up(step, jobset);
    for (;;) {
        move_look(step, jobset);
        reconcile_jobs(step, jobset);
        shrink_look(step, jobset);
        inplace_go_on(step, jobset);
        jobset_recount(step, jobset);
        if (jobset_finished(jobset) || jobset->deleted_ns) /* a bare Pod that leaves its machine is deleted */
            break;
        if (jobset->conditions[CONDITION_RESTARTING].status && all_ready(jobset))
            condition_set(step, jobset, CONDITION_RESTARTING, false, "JobsReady", "all jobs are ready");
        if (attempt_failure_policy(step, jobset) || success_policy(step, jobset))
            continue;
        if (jobset_is_foreign(jobset))
            break;
        suspend_or_resume(step, jobset);
        if (!jobset_make_jobs(step, jobset) && jobset->work.dirty.len == 0)
            break;
    }
    reconcile_jobs(step, jobset);
    jobset_recount(step, jobset);
    if (!jobset_finished(jobset))
        startup_conditions(step, jobset);
}

static void touch_due_jobs(struct step *step, struct jobset *jobset)
{
    struct heap_node *node;
    while ((node = heap_min(&jobset->work.timers)) && node->key <= step->now_ns) {
        heap_remove(&jobset->work.timers, node);
        job_touch(container_of(node, struct job, timer));
    }
}

static void jobset_reconcile(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset->entry.gone);
    if (jobset->form == FORM_WORKLOAD) { /* a Workload runs nothing: it is only deleted here */
        if (jobset->deleted_ns && !has_finalizers(jobset))
            remove_jobset(step, jobset);
        return;
    }
    incident_answer(step, jobset);
    touch_due_jobs(step, jobset);
    gang_judge_named(step, jobset);
    if (jobset_finished(jobset) && jobset->spec.ttl_s >= 0 && !jobset->deleted_ns && !jobset->hidden &&
        jobset->finished_ns + jobset->spec.ttl_s * NS_PER_SECOND <= step->now_ns)
        jobset_delete(step, jobset);
    if (jobset->deleted_ns) {
        inplace_cancel(jobset);
        if (wind_down(step, jobset))
            return;
    } else if (jobset->hidden) {
        if (orphans_gone(step, jobset))
            return;
    } else {
        move_on(step, jobset);
    }
    do {
        gang_form(step, jobset);
        gang_place_admitted(step, jobset); /* a gang that starts with fewer tasks leaves the others loose */
    } while (jobset->work.loose_tasks > 0);
    shrink_divide(step, jobset); /* tasks that were made together may belong to several replicas */
    close_gangs(step, jobset);
    usage_phases(step, jobset);
    CHECK(jobset->work.loose_tasks == 0 && jobset->work.dirty.len == 0 && jobset->work.uncounted.len == 0);
    incident_start(step, jobset); /* if this ends tasks, it marks the JobSet again */
    if (gang_some_wait_named(step, jobset))
        jobset_mark(step, jobset);
    jobset_set_timer(step->jobs, jobset);
}

static void reconcile_marked(struct step *step)
{
    for (size_t i = 0; i < step->jobs->dirty.len; i++) { /* the list may grow in the loop */
        struct jobset *jobset = step->jobs->dirty.items[i];
        jobset->entry.dirty = false;
        if (!jobset->entry.touched)
            vec_push(&step->jobs->touched, jobset);
        jobset->entry.touched = true;
        if (!jobset->entry.gone) /* a removed JobSet may be marked once more */
            jobset_reconcile(step, jobset);
    }
    vec_clear(&step->jobs->dirty);
}

void jobs_settle(struct step *step)
{
    config_wake_waiters(step);
    do {
        reconcile_marked(step);
        while (step->schedule) {
            step->schedule = false;
            gang_mark_named(step);
            gang_schedule(step);
            spare_yield(step);
            reconcile_marked(step);
        }
        preflight_settle(step);
    } while (step->jobs->dirty.len > 0);
    owned_objects_make(step);
    CHECK(step->jobs->dirty.len == 0 && !step->schedule && step->jobs->incidents == 0);
}
