/* life.c - the states of a Workload: queued, holding, admitted, leaving, queued again, finished. */
#include "core/admit/internal.h"

#include "base/backoff.h"

enum queue_count { COUNTED_NOWHERE, COUNTED_PENDING, COUNTED_RESERVING, COUNTED_ADMITTED };
_Static_assert(COUNTED_ADMITTED + 1 == QUEUE_COUNTS, "a pod group has a count of each kind");

/* --- lists ------------------------------------------------------------------------------------ */

static void count(struct queue_counts *counts, uint8_t as, int32_t by)
{
    CHECK(by == 1 || by == -1);
    CHECK(as != COUNTED_NOWHERE && as < QUEUE_COUNTS);
    CHECK(by > 0 || (as == COUNTED_PENDING ? counts->pending : counts->reserving) > 0);
    counts->pending += as == COUNTED_PENDING ? (uint32_t)by : 0;
    counts->reserving += as >= COUNTED_RESERVING ? (uint32_t)by : 0;
    counts->admitted += as == COUNTED_ADMITTED ? (uint32_t)by : 0;
    CHECK(counts->admitted <= counts->reserving); /* admitted workloads have quota, too */
}

static void count_in(struct cluster_queue *queue, struct local_queue *local, uint8_t as, int32_t by)
{
    if (queue)
        count(&queue->counts, as, by);
    if (local)
        count(&local->counts, as, by);
}

static void count_as(struct workload *workload, uint8_t as, int32_t by)
{
    CHECK(as != COUNTED_NOWHERE && as < QUEUE_COUNTS);
    CHECK(workload->counted == (by > 0 ? COUNTED_NOWHERE : as)); /* a workload is counted once */
    struct cluster_queue *queue = as >= COUNTED_RESERVING ? workload->booked_in : workload->queue;
    struct pod_group *group = workload->group;
    workload->counted = by > 0 ? as : COUNTED_NOWHERE;
    if (!group) {
        count_in(queue, workload->local, as, by);
        return;
    }
    bool first = by > 0 && group->counted[as].members == 0;
    CHECK(by > 0 || group->counted[as].members > 0);
    group->counted[as].members += (uint32_t)by;
    if (first) {
        group->counted[as].queue = queue;
        group->counted[as].local = workload->local;
    }
    if (first || group->counted[as].members == 0)
        count_in(group->counted[as].queue, group->counted[as].local, as, by);
}

void workload_unbind(struct workload *workload)
{
    CHECK(!heap_has(&workload->place) || (workload->queue && list_empty(&workload->link)));
    CHECK(workload->local || !workload->queue); /* its ClusterQueue is its LocalQueue's */
    if (workload->counted)
        count_as(workload, workload->counted, -1);
    if (heap_has(&workload->place))
        heap_remove(&workload->queue->pending, &workload->place);
    else if (workload->queue && workload->queue->strict && !workload->booked_in &&
             !list_empty(&workload->link))
        workload->queue->head_left = true;
    list_remove(&workload->link);
    workload->queue = NULL;
    workload->local = NULL;
}

/* Whether the Pod has a scheduling gate of another controller, so that it must wait before it gets quota. */
static bool gated_by_others(const struct jobset *jobset, struct buf *why)
{
    const struct doc *gates =
        jobset->form == FORM_POD ? doc_path(jobset->document, "spec", "schedulingGates", NULL) : NULL;
    for (size_t i = 0; i < doc_len(gates); i++) {
        struct str name = doc_str(doc_get(doc_at(gates, i), "name"), STR(""));
        if (str_is(name, POD_GATE))
            continue;
        buf_printf(why, "Waits for scheduling gate " STR_FORMAT, STR_ARG(name));
        return true;
    }
    return false;
}

/* Returns the reason why the queue cannot take the workload, and appends the details. Returns NULL if it
 * can. */
static const char *obstacle(const struct step *step, const struct workload *workload, struct buf *why)
{
    const struct local_queue *local = workload->local;
    const struct cluster_queue *queue = workload->queue;
    if (!workload->active) {
        buf_printf(why, "The workload is deactivated");
        return "Suspended";
    }
    if (workload->jobset->spec.rjob_count > PODSETS_MAX) {
        buf_printf(why, "A Workload has at most %d PodSets; this one would have %zu", PODSETS_MAX,
                   workload->jobset->spec.rjob_count);
        return "Misconfigured";
    }
    if (!local) {
        buf_printf(why, "LocalQueue " STR_FORMAT " doesn't exist", STR_ARG(workload->queue_name));
        return "Misconfigured";
    }
    if (!queue) {
        buf_printf(why, "ClusterQueue " STR_FORMAT " doesn't exist", STR_ARG(local->queue_name));
        return "Misconfigured";
    }
    if (local->stop != STOP_NONE) {
        buf_printf(why, "LocalQueue " STR_FORMAT " is stopped", STR_ARG(workload->queue_name));
        return "Suspended";
    }
    if (!queue->active) {
        buf_printf(why, "ClusterQueue " STR_FORMAT " is inactive: " STR_FORMAT, STR_ARG(queue->name),
                   STR_ARG(queue->message));
        return "Suspended";
    }
    for (size_t p = 0; p < (workload->gang.len ? workload->gang.len : 1); p++) {
        struct str gates = admission_gates(podset_owner(workload, p)->jobset);
        if (gates.len) {
            buf_printf(why, "Admission is gated by: " STR_FORMAT, STR_ARG(gates));
            return "AdmissionGated";
        }
        if (gated_by_others(podset_owner(workload, p)->jobset, why))
            return "Suspended";
    }
    const char *lacks = group_obstacle(workload, why);
    if (lacks)
        return lacks;
    const struct object *ns =
        object_find(step->objects, OBJECT_NAMESPACE, STR(""), workload->jobset->namespace_);
    const struct doc *labels = ns ? doc_path(ns->document, "metadata", "labels", NULL) : NULL;
    if (!selector_matches(queue->selector, labels)) {
        buf_printf(why, "Workload namespace doesn't match ClusterQueue selector");
        return "Misconfigured";
    }
    return NULL;
}

/* Whether the workload waits for something other than quota, which its queue cannot give. */
bool workload_is_stopped(const struct workload *workload)
{
    return !workload->active || (workload->local && workload->local->stop != STOP_NONE) ||
           admission_gates(workload->jobset).len > 0;
}

static void bind_pending(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_PENDING && !workload->counted);
    struct buf why BUF_CLEANUP = {0};
    const char *reason = obstacle(step, workload, &why);
    if (!workload_is_stopped(workload))
        count_as(workload, COUNTED_PENDING, 1);
    if (reason) {
        workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, reason, STR_FORMAT,
                               STR_ARG(buf_str(&why)));
        workload->parked = false;
        return;
    }
    const struct workload_condition *was = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
    if (was->present && !was->status &&
        (strcmp(was->reason, "Misconfigured") == 0 || strcmp(was->reason, "Suspended") == 0 ||
         strcmp(was->reason, "AdmissionGated") == 0))
        workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "PendingEvaluation",
                               "Waits for its turn in ClusterQueue " STR_FORMAT,
                               STR_ARG(workload->queue->name));
    if (is_follower(workload)) {
        if (!was->present)
            workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "PendingEvaluation",
                                   "Waits with the Pods of its group");
        return;
    }
    for (size_t p = 0; p < (workload->gang.len ? workload->gang.len : 1); p++) {
        const struct workload *one = podset_owner(workload, p);
        if (one->requeue_ns > step->now_ns || one->jobset->deleted_ns || one->jobset->entry.gone ||
            !one->active)
            return;
    }
    workload->place.key = -(int64_t)workload->priority;
    workload->place.tie = workload->ticket;
    CHECK(workload->queue && list_empty(&workload->link) && !heap_has(&workload->place));
    if (workload->parked)
        list_append(&workload->queue->parked, &workload->link);
    else
        heap_insert(&workload->queue->pending, &workload->place);
}

/* Returns the kind as which a workload with quota is counted. A preemptor counts as pending until its victims
 * have ended, and the victims count as admitted. */
static uint8_t booked_as(const struct workload *workload)
{
    CHECK(workload->state != WORKLOAD_PENDING && workload->state != WORKLOAD_FINISHED);
    if (workload->state != WORKLOAD_HOLDING)
        return COUNTED_ADMITTED;
    return workload_holds(workload, WORKLOAD_QUOTA_RESERVED) ? COUNTED_RESERVING : COUNTED_PENDING;
}

void workload_bind(struct step *step, struct workload *workload)
{
    CHECK(!workload->gone); /* no list may keep a workload that is freed */
    const struct tree *tree = &step->admit->tree;
    workload_unbind(workload);
    workload->local = tree_local(tree, workload->jobset->namespace_, workload->queue_name);
    workload->queue = workload->local ? workload->local->queue : NULL;
    if (workload->state == WORKLOAD_PENDING) {
        bind_pending(step, workload);
    } else if (workload->state != WORKLOAD_FINISHED && workload->booked_in) {
        list_append(&workload->booked_in->booked, &workload->link);
        count_as(workload, booked_as(workload), 1);
    }
}

void wake_queue(struct admit *admit, struct cluster_queue *queue)
{
    (void)admit;
    list_for_each_safe(node, after, &queue->parked)
    {
        struct workload *workload = container_of(node, struct workload, link);
        CHECK(workload->parked && workload->state == WORKLOAD_PENDING && workload->queue == queue);
        list_remove(node);
        workload->parked = false;
        heap_insert(&queue->pending, &workload->place);
    }
}

void wake_cohort(struct admit *admit, const struct cluster_queue *queue)
{
    struct tree *tree = &admit->tree;
    uint32_t root = quota_root(&tree->quota, queue->node);
    for (size_t q = 0; q < tree->queue_count; q++)
        if (quota_root(&tree->quota, tree->queues[q].node) == root)
            wake_queue(admit, &tree->queues[q]);
    u64_map_done(&admit->failed);
}

void wake_all(struct admit *admit)
{
    for (size_t q = 0; q < admit->tree.queue_count; q++)
        wake_queue(admit, &admit->tree.queues[q]);
    u64_map_done(&admit->failed);
}

/* --- quota ------------------------------------------------------------------------------------ */

static void add_booking(struct workload *workload, struct booking use)
{
    CHECK(use.amount >= 0);
    for (size_t i = 0; i < workload->booked.len; i++) {
        if (workload->booked.items[i].cell == use.cell) {
            workload->booked.items[i].amount += use.amount;
            return;
        }
    }
    vec_push(&workload->booked, use);
}

/* Gets how much quota a resource of a PodSet uses in the queue in which the workload is booked. Returns false
 * if it uses none, or if the queue no longer has the flavour. */
static bool use_of(const struct workload *workload, const struct podset *podset, size_t resource,
                   struct booking *ret_use)
{
    CHECK(resource < podset->resource_count && podset->resource_count <= PODSET_RESOURCES_MAX);
    CHECK(podset->done >= 0 && podset->done <= podset->admitted);
    const struct podset_resource *asks = &podset->resources[resource];
    size_t at;
    const struct group_flavor *flavor =
        asks->flavor.len ? group_flavor(workload->booked_in, asks->name, asks->flavor, &at) : NULL;
    if (flavor)
        *ret_use = (struct booking){flavor->cells[at], asks->per_task * (podset->admitted - podset->done)};
    return flavor != NULL;
}

int64_t workload_uses(const struct workload *workload, uint32_t cell)
{
    int64_t sum = 0;
    struct booking use;
    for (size_t r = 0; workload->booked_in && r < workload->jobset->spec.rjob_count; r++)
        for (size_t i = 0; i < workload->podsets[r].resource_count; i++)
            if (use_of(workload, &workload->podsets[r], i, &use) && use.cell == cell)
                sum += use.amount;
    return sum;
}

void workload_book(struct admit *admit, struct workload *workload)
{
    struct tree *tree = &admit->tree;
    struct booking use;
    CHECK(workload->booked.len == 0);
    workload->booked_in = tree_queue(tree, workload->reserved_in);
    if (!workload->booked_in || workload->given)
        return;
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++)
        for (size_t i = 0; i < workload->podsets[r].resource_count; i++)
            if (use_of(workload, &workload->podsets[r], i, &use))
                add_booking(workload, use);
    for (size_t i = 0; i < workload->booked.len; i++)
        quota_use(&tree->quota, workload->booked_in->node, workload->booked.items[i].cell,
                  workload->booked.items[i].amount);
}

void workload_unbook(struct admit *admit, struct workload *workload)
{
    CHECK(workload->booked.len == 0 || workload->booked_in);
    for (size_t i = 0; i < workload->booked.len; i++)
        quota_release(&admit->tree.quota, workload->booked_in->node, workload->booked.items[i].cell,
                      workload->booked.items[i].amount);
    vec_clear(&workload->booked);
}

/* Frees the workload's quota and wakes the workloads that share it. Wakes all workloads if those of any queue
 * may wait for this one to be ready (blockAdmission). */
void workload_release(struct step *step, struct workload *workload)
{
    struct cluster_queue *queue = workload->booked_in;
    workload_unbook(step->admit, workload);
    if (queue && settings(step)->wait_ready && settings(step)->block_admission)
        wake_all(step->admit);
    else if (queue)
        wake_cohort(step->admit, queue);
}

static void forget_assignment(struct workload *workload)
{
    CHECK(!workload->counted && !heap_has(&workload->place) && list_empty(&workload->link));
    CHECK(workload->booked.len == 0);
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++) {
        workload->podsets[r].admitted = workload->podsets[r].done = 0;
        for (size_t i = 0; i < workload->podsets[r].resource_count; i++)
            workload->podsets[r].resources[i].flavor = STR("");
    }
    workload->reserved_in = STR("");
    workload->booked_in = NULL;
    workload->given = workload->jobset->grant.promised = false;
    arena_done(&workload->assigned);
}

/* Copies the assignment to the workload's podsets and books it. `first` is the index of the workload's first
 * PodSet in the assignment. */
static void keep_assignment(struct step *step, struct workload *workload, struct cluster_queue *queue,
                            const struct assignment *assignment, size_t first)
{
    CHECK(queue && workload->booked.len == 0);
    workload->reserved_in = arena_str(&workload->assigned, queue->name);
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++) {
        struct podset *podset = &workload->podsets[r];
        podset->admitted = assignment->counts[first + r];
        CHECK(podset->admitted >= 0 && podset->admitted <= podset->count);
        podset->done = 0;
        for (size_t i = 0; i < podset->resource_count; i++) {
            int32_t flavor = assignment->flavors[first + r][i];
            podset->resources[i].flavor = STR("");
            for (size_t g = 0; flavor >= 0 && g < queue->group_count; g++)
                for (size_t k = 0; k < queue->groups[g].resource_count; k++)
                    if (str_equal(queue->groups[g].resources[k], podset->resources[i].name))
                        podset->resources[i].flavor =
                            arena_str(&workload->assigned, queue->groups[g].flavors[flavor].name);
        }
    }
    workload_book(step->admit, workload);
}

/* --- admission -------------------------------------------------------------------------------- */

void workload_set_timer(struct step *step, struct workload *workload)
{
    int64_t due_ns = workload_due(step, workload);
    if (heap_has(&workload->timer) && workload->timer.key == due_ns)
        return;
    if (heap_has(&workload->timer))
        heap_remove(&step->admit->timers, &workload->timer);
    workload->timer.key = due_ns;
    workload->timer.tie = workload->uid;
    if (due_ns != INT64_MAX && !workload->gone)
        heap_insert(&step->admit->timers, &workload->timer);
    CHECK(heap_has(&workload->timer) == (due_ns != INT64_MAX && !workload->gone));
}

void workload_park(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_PENDING && heap_has(&workload->place));
    workload->parked = true;
    heap_remove(&workload->queue->pending, &workload->place);
    list_append(&workload->queue->parked, &workload->link);
    workload_set_timer(step, workload);
}

static int64_t seconds_since(const struct step *step, int64_t then_ns)
{
    return (step->now_ns - then_ns) / NS_PER_SECOND;
}

static void leave_holding(struct admit *admit, struct workload *workload)
{
    for (size_t i = 0; i < admit->holding.len; i++) {
        if (admit->holding.items[i] == workload) {
            vec_remove(&admit->holding, i);
            return;
        }
    }
    CHECK(workload->state != WORKLOAD_HOLDING); /* all that hold are in the list */
}

static void clear_eviction(struct step *step, struct workload *workload)
{
    static const enum workload_condition_kind kinds[] = {WORKLOAD_EVICTED, WORKLOAD_PREEMPTED};
    for (size_t i = 0; i < 2; i++)
        if (workload_holds(workload, kinds[i]))
            workload_condition_set(step, workload, kinds[i], false, "QuotaReserved",
                                   "Previously: " STR_FORMAT,
                                   STR_ARG(buf_str(&workload->conditions[kinds[i]].message)));
}

void workload_show_quota(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING || workload->state == WORKLOAD_ADMITTED);
    struct str queue = workload->reserved_in;
    clear_eviction(step, workload);
    workload->reserved_ns = step->now_ns;
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, true, "QuotaReserved",
                           "Quota reserved in ClusterQueue " STR_FORMAT, STR_ARG(queue));
    if (workload->state == WORKLOAD_HOLDING)
        workload_bind(step, workload); /* from now on it counts as having quota */
    step_note(step, false, "QuotaReserved", ref_workload(workload),
              "Quota reserved in ClusterQueue " STR_FORMAT ", wait time since queued was %llds",
              STR_ARG(queue), (long long)seconds_since(step, workload->queued_ns));
}

void workload_start(struct step *step, struct workload *workload, bool reserved_before)
{
    struct jobset *jobset = workload->jobset;
    struct arena arena ARENA_CLEANUP = {0};
    CHECK(workload->state == WORKLOAD_ADMITTED && !workload_is_bare(workload));
    step_note(step, false, "Started", ref_jobset(jobset), "Admitted by clusterQueue " STR_FORMAT,
              STR_ARG(workload->reserved_in));
    jobset_set_terms(step, jobset, workload_terms(step->admit, workload, &arena));
    if (workload->podsets[0].admitted < workload->podsets[0].count) {
        workload->full = jobset->spec.rjobs[0].job.parallelism;
        jobset_set_parallelism(step, jobset, workload->podsets[0].admitted, completions_follow(jobset));
    }
    if (reserved_before && jobset->grant.reserved_count)
        jobset_reserve_by_terms(step, jobset);
    jobset_set_suspend(step, jobset, false);
    step->admit->acted = true;
}

void workload_admit(struct step *step, struct workload *workload, const struct assignment *assignment)
{
    CHECK(workload->state == (assignment ? WORKLOAD_PENDING : WORKLOAD_HOLDING));
    CHECK(!workload->gone && !workload->leader && workload->gang.len == 0); /* a gang parts when it starts */
    if (assignment)
        keep_assignment(step, workload, workload->queue, assignment, 0);
    else
        leave_holding(step->admit, workload);
    workload->state = WORKLOAD_ADMITTED;
    workload->parked = false;
    workload->admitted_ns = step->now_ns;
    workload->ready_ns = workload->unready_ns = workload->retry_ns = 0;
    workload_bind(step, workload);
    struct str queue = workload->reserved_in;
    if (!workload_holds(workload, WORKLOAD_QUOTA_RESERVED))
        workload_show_quota(step, workload);
    workload_condition_set(step, workload, WORKLOAD_IS_ADMITTED, true, "Admitted",
                           "The workload is admitted");
    workload_condition_set(step, workload, WORKLOAD_PODS_READY, false, "WaitForStart",
                           "Not all pods are ready or succeeded");
    step_note(step, false, "Admitted", ref_workload(workload),
              "Admitted by ClusterQueue " STR_FORMAT ", wait time since reservation was %llds",
              STR_ARG(queue), (long long)seconds_since(step, workload->reserved_ns));
    step->admit->acted = true;
    if (!workload_is_bare(workload))
        workload_start(step, workload, !assignment);
    workload_set_timer(step, workload);
}

static void hold_one(struct step *step, struct workload *workload, struct cluster_queue *queue,
                     const struct assignment *assignment, size_t first)
{
    CHECK(!workload->gone && workload->state == WORKLOAD_PENDING);
    keep_assignment(step, workload, queue, assignment, first);
    workload->state = WORKLOAD_HOLDING;
    workload->parked = false;
    workload->reserved_ns = step->now_ns;
    vec_push(&step->admit->holding, workload);
    checks_sync(step, workload);
    workload_bind(step, workload);
}

void workload_hold(struct step *step, struct workload *workload, const struct assignment *assignment)
{
    CHECK(!is_follower(workload)); /* the leader holds for the whole gang */
    struct cluster_queue *queue = workload->queue;
    size_t count = workload->gang.len ? workload->gang.len : 1;
    for (size_t p = 0; p < count; p++)
        hold_one(step, podset_owner(workload, p), queue, assignment, workload->gang.len ? p : 0);
}

/* Removes the workload as the preemptor of its victims, which still leave. */
static void forget_victims(struct admit *admit, struct workload *workload)
{
    for (size_t i = 0; workload->waits_for && i < admit->workloads.len; i++) {
        struct workload *victim = admit->workloads.items[i];
        if (victim->preemptor != workload->uid || victim->state != WORKLOAD_LEAVING)
            continue;
        victim->preemptor = 0;
        victim->jobset->grant.promised = false;
        workload->waits_for--;
    }
    CHECK(workload->waits_for == 0);
}

static void stop_one(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING ||
          (workload->state == WORKLOAD_ADMITTED && workload_is_bare(workload)));
    forget_victims(step->admit, workload);
    leave_holding(step->admit, workload);
    workload_release(step, workload);
    workload_unbind(workload);
    forget_assignment(workload);
    workload->state = WORKLOAD_PENDING;
    workload->parked = false;
    workload->reserved_ns = workload->admitted_ns = workload->ready_ns = workload->unready_ns = 0;
    if (!workload->gone && !workload->jobset->entry.gone)
        jobset_reserve(step, workload->jobset, NULL);
    step->admit->acted = true;
}

/* Ends the hold of the workload and its gang; the members wait again. */
static void stop_holding(struct step *step, struct workload *workload)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct workload *leader = workload->leader ? workload->leader : workload;
    size_t count = leader->gang.len;
    struct workload **gang = ARENA_ARRAY(&arena, struct workload *, count + 1);
    mem_copy(gang, leader->gang.items, count * sizeof(*gang));
    group_disband(workload);
    CHECK(!workload->leader && leader->gang.len == 0);
    stop_one(step, workload);
    for (size_t i = 0; i < count; i++) {
        if (gang[i] == workload)
            continue;
        stop_one(step, gang[i]);
        checks_reset(step, gang[i]);
        workload_condition_set(step, gang[i], WORKLOAD_QUOTA_RESERVED, false, "Pending",
                               "Another Pod of its group gave up what was kept for them");
    }
}

/* Returns the workload to its old place in the queue. */
void workload_drop_hold(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_HOLDING);
    stop_holding(step, workload);
    checks_reset(step, workload);
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "Pending",
                           "The room that was kept for it was not enough after all");
    workload_bind(step, workload);
    group_form(step, workload->group);
}

/* --- eviction --------------------------------------------------------------------------------- */

/* Suspends the workload's job. A Pod without a controller cannot be suspended: it is deleted, as in Kueue. */
void workload_suspend(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_LEAVING);
    struct jobset *jobset = workload->jobset;
    workload->leave_ns = 0;
    if (jobset->form != FORM_POD) {
        jobset_set_suspend(step, jobset, true);
    } else {
        group_let_go(step, workload);
        task_evict(step, jobset->jobs[0]->indexes[0].task, -1);
    }
    step_note(step, false, "Stopped", ref_jobset(workload->jobset), STR_FORMAT,
              STR_ARG(buf_str(&workload->conditions[WORKLOAD_EVICTED].message)));
    step->admit->acted = true;
}

static void count_eviction(struct workload *workload, const char *reason)
{
    reason = workload_reason(str_from(reason));
    for (size_t i = 0; i < workload->evictions.len; i++) {
        if (workload->evictions.items[i].reason == reason) {
            workload->evictions.items[i].count++;
            return;
        }
    }
    struct workload_eviction eviction = {reason, 1};
    vec_push(&workload->evictions, eviction);
}

static void evict_held(struct step *step, struct workload *workload);

static bool is_admitted(const struct workload *workload)
{
    return workload->state == WORKLOAD_ADMITTED;
}

/* Evicts the other admitted members of the workload's group, which runs as a whole or not at all. */
static void evict_fellows(struct step *step, const struct workload *workload, const char *reason,
                          struct str message)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct workload **list;
    size_t count = group_fellows(workload, is_admitted, &arena, &list);
    for (size_t i = 0; i < count; i++)
        if (list[i]->state == WORKLOAD_ADMITTED) /* the first eviction has evicted the rest */
            workload_evict(step, list[i], reason, STR_FORMAT, STR_ARG(message));
}

void workload_evict(struct step *step, struct workload *workload, const char *reason, const char *format, ...)
{
    CHECK(workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING);
    CHECK(!workload->gone);
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    count_eviction(workload, reason);
    workload_condition_set(step, workload, WORKLOAD_EVICTED, true, reason, STR_FORMAT,
                           STR_ARG(buf_str(&text)));
    step_note(step, strcmp(reason, "Preempted") == 0 || strcmp(reason, "PodsReadyTimeout") == 0, reason,
              ref_workload(workload), STR_FORMAT, STR_ARG(buf_str(&text)));
    if (workload->state == WORKLOAD_HOLDING) {
        evict_held(step, workload);
        return;
    }
    if (workload_is_bare(workload)) {
        workload->ran_ns += step->now_ns - workload->admitted_ns;
        evict_held(step, workload);
        return;
    }
    workload->state = WORKLOAD_LEAVING;
    workload->ran_ns += step->now_ns - workload->admitted_ns;
    int64_t grace_ns = jobset_notice(step, workload->jobset, DRAIN_PREEMPTION);
    workload->noticed_ns = step->now_ns;
    workload->leave_ns = grace_ns ? step->now_ns + grace_ns : 0;
    if (!grace_ns)
        workload_suspend(step, workload);
    workload_bind(step, workload);
    workload_set_timer(step, workload);
    evict_fellows(step, workload, reason, buf_str(&text));
    group_form(step, workload->group); /* it no longer fills a place of the group */
}

static bool deactivates(const char *reason)
{
    return str_starts(str_from(reason), STR("Deactivated"));
}

static void back_off(struct step *step, struct workload *workload)
{
    const struct queue_settings *set = settings(step);
    uint32_t doublings = workload->requeues > 1 ? (uint32_t)workload->requeues - 1 : 0;
    int64_t wait_ns = backoff_wait(set->backoff_base_ns, set->backoff_max_ns, doublings);
    workload->requeue_ns = wait_ns > 0 ? step->now_ns + wait_ns : 0;
    if (wait_ns > 0)
        workload_condition_set(step, workload, WORKLOAD_REQUEUED, false, "PodsReadyTimeout", STR_FORMAT,
                               STR_ARG(buf_str(&workload->conditions[WORKLOAD_EVICTED].message)));
}

static void queue_again(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_PENDING && !workload->parked);
    const char *reason = workload->conditions[WORKLOAD_EVICTED].reason;
    struct str message = buf_str(&workload->conditions[WORKLOAD_EVICTED].message);
    bool timeout = strcmp(reason, "PodsReadyTimeout") == 0;
    bool late = timeout || strcmp(reason, "MaximumLifetimeExceeded") == 0;
    workload->queued_ns = step->now_ns;
    workload->ticket = late && !settings(step)->creation_timestamp ? step_uid(step) : workload->uid;
    workload->preempted = 0;
    if (deactivates(reason)) {
        workload->active = false;
        return;
    }
    if (timeout)
        back_off(step, workload);
    int64_t asked_ns = checks_backoff_ns(workload);
    if (asked_ns > 0 && step->now_ns + asked_ns > workload->requeue_ns) {
        workload->requeue_ns = step->now_ns + asked_ns;
        workload_condition_set(step, workload, WORKLOAD_REQUEUED, false, reason, STR_FORMAT,
                               STR_ARG(message));
    }
    if (!workload->requeue_ns)
        workload_condition_set(step, workload, WORKLOAD_REQUEUED, true, reason, STR_FORMAT, STR_ARG(message));
}

/* Returns an evicted workload to the queue once its last task has ended. */
static void enter_queue(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_PENDING && !workload->booked_in && workload->booked.len == 0);
    struct str message = buf_str(&workload->conditions[WORKLOAD_EVICTED].message);
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "Pending", STR_FORMAT,
                           STR_ARG(message));
    workload_condition_set(step, workload, WORKLOAD_IS_ADMITTED, false, "NoReservation",
                           "The workload has no reservation");
    step->admit->acted = true;
    if (strcmp(workload->conditions[WORKLOAD_EVICTED].reason, REASON_DELETED) == 0) {
        workload_remake(step, workload);
        return;
    }
    queue_again(step, workload);
    checks_reset(step, workload);
    workload_bind(step, workload);
    group_form(step, workload->group);
}

/* Evicts a workload that has not begun, which need not wait for tasks. */
static void evict_held(struct step *step, struct workload *workload)
{
    stop_holding(step, workload);
    enter_queue(step, workload);
    workload_set_timer(step, workload);
}

/* Called when the workload's last task has ended. */
void workload_left(struct step *step, struct workload *workload)
{
    CHECK(workload->state == WORKLOAD_LEAVING);
    struct workload *preemptor = u64_map_get(&step->admit->by_uid, workload->preemptor);
    if (preemptor && preemptor->waits_for > 0)
        preemptor->waits_for--;
    workload_release(step, workload);
    workload_unbind(workload);
    forget_assignment(workload);
    workload->preemptor = 0;
    workload->state = WORKLOAD_PENDING;
    workload->parked = false;
    workload->reserved_ns = workload->admitted_ns = workload->ready_ns = workload->unready_ns = 0;
    workload->leave_ns = workload->noticed_ns = 0;
    if (!workload->jobset->entry.gone) {
        jobset_set_terms(step, workload->jobset, NULL);
        if (workload->full)
            jobset_set_parallelism(step, workload->jobset, workload->full,
                                   completions_follow(workload->jobset));
        workload->full = 0;
        jobset_reserve(step, workload->jobset, NULL);
        workload_look_again(step, workload->jobset); /* the Workload of a deleted Pod is removed now */
    }
    workload_condition_set(step, workload, WORKLOAD_PODS_READY, false, "WaitForStart",
                           "Not all pods are ready or succeeded");
    enter_queue(step, workload);
}

static void finish_as(struct step *step, struct workload *workload, const char *reason, struct str why)
{
    CHECK(workload->state != WORKLOAD_HOLDING && workload->state != WORKLOAD_FINISHED);
    struct workload *preemptor = u64_map_get(&step->admit->by_uid, workload->preemptor);
    workload_release(step, workload);
    workload_unbind(workload);
    workload->booked_in = NULL; /* its quota is free already, so its end wakes no workload */
    workload->given = workload->jobset->grant.promised = false;
    workload->state = WORKLOAD_FINISHED;
    workload->parked = false;
    if (preemptor && preemptor->waits_for > 0)
        preemptor->waits_for--;
    workload->preemptor = 0;
    workload_condition_set(step, workload, WORKLOAD_IS_FINISHED, true, reason, STR_FORMAT, STR_ARG(why));
    step_note(step, false, "FinishedWorkload", ref_jobset(workload->jobset),
              "Workload '" STR_FORMAT "/" STR_FORMAT "' is declared finished",
              STR_ARG(workload->jobset->namespace_), STR_ARG(workload->name));
    CHECK(workload->booked.len == 0 && !workload->counted);
}

void workload_finish(struct step *step, struct workload *workload)
{
    CHECK(jobset_finished(workload->jobset));
    const struct jobset *jobset = workload->jobset;
    bool well = jobset->terminal_state == TERMINAL_COMPLETED;
    const struct condition *why = &jobset->conditions[well ? CONDITION_COMPLETED : CONDITION_FAILED];
    if (workload->state == WORKLOAD_HOLDING)
        workload_drop_hold(step, workload);
    finish_as(step, workload, well ? "Succeeded" : "Failed", why->message);
    group_form(step, workload->group); /* a failed member may be replaced */
}

void workload_pod_deleted(struct step *step, struct workload *workload)
{
    CHECK(workload->group && workload->state == WORKLOAD_ADMITTED);
    finish_as(step, workload, "Failed", STR("The Pod was deleted"));
    group_form(step, workload->group);
}

void workload_abandon(struct step *step, struct workload *workload, const char *reason, struct str why)
{
    CHECK(workload_is_bare(workload) && workload->state != WORKLOAD_LEAVING);
    bool held = workload->state == WORKLOAD_HOLDING || workload->state == WORKLOAD_ADMITTED;
    if (workload->state == WORKLOAD_FINISHED)
        return;
    if (held)
        stop_holding(step, workload);
    if (held && workload_holds(workload, WORKLOAD_IS_ADMITTED))
        workload_condition_set(step, workload, WORKLOAD_IS_ADMITTED, false, "NoReservation",
                               "The workload has no reservation");
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "Pending", STR_FORMAT,
                           STR_ARG(why));
    finish_as(step, workload, reason, why);
    workload_set_timer(step, workload);
}

void workload_lose_job(struct step *step, struct workload *workload)
{
    CHECK(workload->own && workload->jobset->entry.gone);
    static const char why[] = "The job of the workload is gone";
    if (workload->state == WORKLOAD_HOLDING)
        workload_drop_hold(step, workload);
    if (workload->state == WORKLOAD_LEAVING)
        workload_left(step, workload);
    if (workload->state != WORKLOAD_ADMITTED || workload_is_bare(workload))
        return;
    workload_release(step, workload);
    workload_unbind(workload);
    forget_assignment(workload);
    workload->state = WORKLOAD_PENDING;
    workload->full = 0;
    workload->reserved_ns = workload->admitted_ns = workload->ready_ns = workload->unready_ns = 0;
    workload_condition_set(step, workload, WORKLOAD_QUOTA_RESERVED, false, "Pending", why);
    workload_condition_set(step, workload, WORKLOAD_IS_ADMITTED, false, "NoReservation", why);
}

void workload_cannot_start(struct step *step, struct workload *workload, struct str why)
{
    CHECK(workload->state == WORKLOAD_HOLDING && !is_follower(workload));
    struct arena arena ARENA_CLEANUP = {0};
    size_t count = workload->gang.len;
    struct workload **list = ARENA_ARRAY(&arena, struct workload *, count + 1);
    mem_copy(list, workload->gang.items, count * sizeof(*list));
    if (!count)
        list[count++] = workload;
    stop_holding(step, workload);
    for (size_t i = 0; i < count; i++) {
        workload_condition_set(step, list[i], WORKLOAD_QUOTA_RESERVED, false, "Pending", STR_FORMAT,
                               STR_ARG(why));
        finish_as(step, list[i], "FailedToStart", why);
        workload_set_timer(step, list[i]);
    }
    group_form(step, workload->group);
}
