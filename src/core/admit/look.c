/* look.c - reactions to changes of a Workload's JobSet, and to time-outs: readiness, deadlines, stops, quota
 * that is given back early. */
#include "core/admit/internal.h"

static bool all_ready(const struct jobset *jobset)
{
    for (size_t r = 0; r < jobset->spec.rjob_count; r++)
        if (jobset->rjob_status[r].ready + jobset->rjob_status[r].succeeded < jobset->spec.rjobs[r].replicas)
            return false;
    return !jobset->spec.suspend;
}

static void look_ready(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_ADMITTED);
    bool ready = all_ready(workload->jobset);
    if (ready && (!workload->ready_ns || workload->unready_ns)) {
        workload_condition_set(step, workload, WORKLOAD_PODS_READY, true,
                               workload->ready_ns ? "Recovered" : "Started",
                               "All pods reached readiness and the workload is running");
        workload->ready_ns = workload->ready_ns ? workload->ready_ns : step->now_ns;
        workload->unready_ns = 0;
        workload->requeues = 0;
        if (settings(step)->block_admission)
            wake_all(step->admit);
    } else if (!ready && workload->ready_ns && !workload->unready_ns) {
        workload->unready_ns = step->now_ns;
        workload_condition_set(step, workload, WORKLOAD_PODS_READY, false, "WaitForRecovery",
                               "At least one pod has failed, waiting for recovery");
    }
}

static int64_t execution_limit_ns(const struct workload *workload)
{
    int64_t seconds = 0;
    const struct jobset *says = workload->own ? workload->own : workload->jobset;
    struct str text = labels_get(&says->spec.labels, STR("kueue.x-k8s.io/max-exec-time-seconds"), STR(""));
    return text.len && str_to_i64(text, 1, INT32_MAX, &seconds) ? seconds * NS_PER_SECOND : 0;
}

/* Whether the admission must end because the workload never became ready within the timeout, or within the
 * longest time of one admission. Such an eviction backs off: otherwise the next admission would block others
 * again at once. */
static bool never_became_ready(const struct queue_settings *set, const struct workload *workload,
                               int64_t now_ns)
{
    int64_t limit_ns = set->ready_timeout_ns;
    if (set->max_life_ns && set->max_life_ns < limit_ns)
        limit_ns = set->max_life_ns;
    return set->wait_ready && !workload->ready_ns && workload->admitted_ns + limit_ns <= now_ns;
}

static bool times_out(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_ADMITTED);
    const struct queue_settings *set = settings(step);
    int64_t now_ns = step->now_ns, limit_ns = execution_limit_ns(workload);
    if (limit_ns && workload->admitted_ns + limit_ns - workload->ran_ns <= now_ns) {
        workload_evict(step, workload, "DeactivatedDueToMaximumExecutionTimeExceeded",
                       "The workload is deactivated due to exceeding the maximum execution time");
        return true;
    }
    bool late = never_became_ready(set, workload, now_ns);
    if (!late && set->max_life_ns && workload->admitted_ns + set->max_life_ns <= now_ns) {
        workload_evict(step, workload, "MaximumLifetimeExceeded",
                       "Ran for the longest time that one admission lasts (%lld s)",
                       (long long)(set->max_life_ns / NS_PER_SECOND));
        return true;
    }
    bool stuck = set->wait_ready && set->recovery_timeout_ns >= 0 && workload->unready_ns &&
                 workload->unready_ns + set->recovery_timeout_ns <= now_ns;
    if (!late && !stuck)
        return false;
    workload->requeues++;
    if (set->backoff_limit >= 0 && workload->requeues > set->backoff_limit)
        workload_evict(step, workload, "DeactivatedDueToRequeuingLimitExceeded",
                       "The workload is deactivated due to exceeding the maximum number of re-queuing "
                       "retries");
    else
        workload_evict(step, workload, "PodsReadyTimeout",
                       "Exceeded the PodsReady timeout " STR_FORMAT "/" STR_FORMAT,
                       STR_ARG(workload->jobset->namespace_), STR_ARG(workload->name));
    return true;
}

static bool is_stopped(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING);
    if (!workload->active) {
        workload_evict(step, workload, "Deactivated", "The workload is deactivated");
    } else if (workload->booked_in && workload->booked_in->stop == STOP_DRAIN) {
        workload_evict(step, workload, "ClusterQueueStopped", "The ClusterQueue is stopped");
    } else if (workload->local && workload->local->stop == STOP_DRAIN) {
        workload_evict(step, workload, "LocalQueueStopped", "The LocalQueue is stopped");
    } else if (workload->local && workload->queue &&
               !str_equal(workload->queue->name, workload->reserved_in)) {
        workload_evict(step, workload, "QueueChanged", "The LocalQueue points to another ClusterQueue");
    } else {
        return false;
    }
    return true;
}

static void look_leaving(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_LEAVING);
    const struct jobset *jobset = workload->jobset;
    bool told = jobset->form == FORM_POD ? jobset->deleted_ns != 0 : jobset->spec.suspend;
    if (told)
        workload->leave_ns = 0; /* the user did not wait for the end of the notice */
    if (!told && (workload->leave_ns <= step->now_ns || jobset_has_answered(jobset, workload->noticed_ns)))
        workload_suspend(step, workload);
    else if (told && !jobset_is_running(jobset))
        workload_left(step, workload);
}

static void look_holding(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING);
    checks_sync(step, workload);
    if (!is_stopped(step, workload))
        checks_refuse(step, workload);
}

static void look_pending(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_PENDING);
    struct jobset *jobset = workload->jobset;
    bool due = workload->requeue_ns && workload->requeue_ns <= step->now_ns;
    bool retry = workload->retry_ns && workload->retry_ns <= step->now_ns;
    if (due) {
        workload->requeue_ns = 0;
        workload_condition_set(step, workload, WORKLOAD_REQUEUED, true, "BackoffFinished",
                               "The workload backoff was finished");
    }
    if (retry) {
        workload->retry_ns = 0;
        workload->parked = false;
    }
    bool goes = jobset->deleted_ns && (workload->parked || heap_has(&workload->place) || workload->leader);
    if (goes) {
        workload->parked = false; /* it is in no list, so nothing can wake it */
        group_wake(workload);
    }
    if (due || retry || goes)
        workload_bind(step, workload);
    if (due || retry || goes)
        group_form(step, workload->group);
    if (jobset->form != FORM_POD)
        jobset_set_suspend(step, jobset, true);
}

/* Whether the held quota is for a number of tasks that the job accepts now. */
static bool holds_enough(const struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING);
    bool enough = true;
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++) {
        const struct podset *podset = &workload->podsets[r];
        enough &= podset->admitted >= podset->least && podset->admitted <= podset->count;
    }
    return enough;
}

void workload_look(struct step *step, struct workload *workload)
{
    CHECK(!workload->gone);
    if (workload->own)
        prebuilt_look(step, workload);
    const struct jobset *jobset = workload->jobset;
    if (jobset->entry.gone) {
        if (workload->state == WORKLOAD_HOLDING)
            workload_drop_hold(step, workload);
        if (workload->state == WORKLOAD_LEAVING)
            workload_left(step, workload);
        if (!workload->gone) {
            workload_release(step, workload);
            workload_remove(step, workload);
        }
        return;
    }
    if (!jobset_managed(jobset) && workload->state == WORKLOAD_PENDING) {
        group_let_go(step, workload);
        if (workload->own)
            prebuilt_release(step, workload);
        else
            workload_remove(step, workload); /* the label was removed, so the user starts the job */
        return;
    }
    if (workload->seen != jobset->document) {
        workload->seen = jobset->document;
        workload->parked = false;
        group_wake(workload);
        workload_refresh(step, workload);
        if (workload->state == WORKLOAD_HOLDING && !holds_enough(workload))
            workload_drop_hold(step, workload);
        workload_bind(step, workload);
        group_form(step, workload->group);
    }
    if (workload->state != WORKLOAD_FINISHED && jobset_finished(jobset)) {
        workload_finish(step, workload);
        if (workload->own && workload->own->deleted_ns) { /* only the job had kept it (prebuilt_look) */
            workload_look(step, workload);
            return;
        }
    }
    if (workload->state == WORKLOAD_LEAVING)
        look_leaving(step, workload);
    if (workload->gone)
        return;
    bool over = jobset->deleted_ns && pod_is_over(workload);
    if (workload->group && workload->state == WORKLOAD_ADMITTED && over)
        workload_pod_deleted(step, workload);
    if (workload->state == WORKLOAD_PENDING)
        look_pending(step, workload);
    if (workload->state == WORKLOAD_ADMITTED) {
        workload_reclaim(step, workload);
        look_ready(step, workload);
        checks_sync(step, workload);
        if (!is_stopped(step, workload) && !checks_refuse(step, workload))
            times_out(step, workload);
    }
    if (workload->state == WORKLOAD_HOLDING && jobset->deleted_ns)
        workload_drop_hold(step, workload);
    else if (workload->state == WORKLOAD_HOLDING)
        look_holding(step, workload);
    group_release(step, workload->group);
    workload_set_timer(step, workload);
}

static void sooner(int64_t *due_ns, int64_t at_ns)
{
    *due_ns = at_ns < *due_ns ? at_ns : *due_ns;
}

int64_t workload_due(const struct step *step, const struct workload *workload)
{
    const struct queue_settings *set = settings(step);
    int64_t due_ns = INT64_MAX, limit_ns = execution_limit_ns(workload);
    if (workload->state == WORKLOAD_LEAVING && workload->leave_ns)
        sooner(&due_ns, workload->leave_ns);
    if (workload->state == WORKLOAD_PENDING && workload->requeue_ns)
        sooner(&due_ns, workload->requeue_ns);
    if (workload->state == WORKLOAD_PENDING && workload->retry_ns)
        sooner(&due_ns, workload->retry_ns);
    if (workload->state != WORKLOAD_ADMITTED)
        return due_ns;
    if (limit_ns)
        sooner(&due_ns, workload->admitted_ns + limit_ns - workload->ran_ns);
    if (set->max_life_ns)
        sooner(&due_ns, workload->admitted_ns + set->max_life_ns);
    if (set->wait_ready && !workload->ready_ns)
        sooner(&due_ns, workload->admitted_ns + set->ready_timeout_ns);
    if (set->wait_ready && workload->unready_ns && set->recovery_timeout_ns >= 0)
        sooner(&due_ns, workload->unready_ns + set->recovery_timeout_ns);
    return due_ns;
}
