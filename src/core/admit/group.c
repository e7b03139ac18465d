/* group.c - pod groups (Kueue, "Run a group of Pods"): Pods of one kueue.x-k8s.io/pod-group-name are
 * admitted together, when kueue.x-k8s.io/pod-group-total-count of them exist.
 *
 * Each Pod has its own Workload; the API shows one for all of them (group_view.c). The oldest waiting Pods,
 * as many as the group lacks, form the *gang*. The first of them is the leader: it alone is in the queue,
 * with the podsets of all, and quota, machines and victims are sought for all at once. An eviction evicts all
 * members. A failed member may be replaced by a later Pod, and surplus Pods are deleted.
 *
 * All of this is derived from the Workloads' states and the Pods' labels, except the HOLDING gangs, whose
 * leaders a snapshot records.
 */
#include <stdlib.h>

#include "core/admit/internal.h"
#include "core/object/object.h"

#define LABEL_GROUP STR("kueue.x-k8s.io/pod-group-name")
#define NOTE_FAST   STR("kueue.x-k8s.io/pod-group-fast-admission")

static struct str group_name(const struct jobset *jobset)
{
    return jobset->form == FORM_POD ? labels_get(&jobset->spec.labels, LABEL_GROUP, STR("")) : STR("");
}

void group_join(struct admit *admit, struct workload *workload)
{
    CHECK(!workload->group && !workload->own); /* a user-made Workload is in no group */
    struct str name = group_name(workload->jobset);
    struct buf key BUF_CLEANUP = {0};
    if (!name.len)
        return;
    buf_printf(&key, STR_FORMAT "/" STR_FORMAT, STR_ARG(workload->jobset->namespace_), STR_ARG(name));
    struct pod_group *group = str_map_get(&admit->groups, buf_str(&key));
    if (!group) {
        group = mem_alloc(sizeof(*group));
        group->key = key;
        group->uid = workload->group_uid ? workload->group_uid : workload->uid;
        group->created_ns = workload->group_uid ? workload->group_created_ns : workload->created_ns;
        key = (struct buf){0};
        str_map_put(&admit->groups, buf_str(&group->key), group);
    }
    vec_push(&group->members, workload);
    CHECK(group->uid != 0);
    workload->group = group;
    workload->group_uid = group->uid;
    workload->group_created_ns = group->created_ns;
}

static void disband(struct workload *leader)
{
    CHECK(leader->leader == leader && leader->gang.len > 0);
    for (size_t i = 0; i < leader->gang.len; i++) {
        CHECK(leader->gang.items[i]->leader == leader);
        leader->gang.items[i]->leader = NULL;
    }
    vec_clear(&leader->gang);
}

void group_disband(struct workload *workload)
{
    if (workload->leader)
        disband(workload->leader);
}

void group_wake(struct workload *workload)
{
    if (workload->leader) /* the gang's request has changed: group_form() queues it anew */
        workload->leader->parked = false;
}

struct pod_group *group_leave(struct admit *admit, struct workload *workload)
{
    struct pod_group *group = workload->group;
    size_t before = group ? group->members.len : 0;
    if (!group)
        return NULL;
    group_disband(workload);
    for (size_t i = 0; i < group->members.len; i++) {
        if (group->members.items[i] == workload) {
            vec_remove(&group->members, i);
            break;
        }
    }
    CHECK(group->members.len + 1 == before && !workload->leader && !workload->counted);
    workload->group = NULL;
    if (group->members.len)
        return group;
    for (size_t as = 0; as < QUEUE_COUNTS; as++)
        CHECK(group->counted[as].members == 0);
    str_map_remove(&admit->groups, buf_str(&group->key));
    vec_done(&group->members);
    buf_done(&group->key);
    buf_done(&group->why);
    mem_free(group);
    return NULL;
}

/* --- the gang --------------------------------------------------------------------------------- */

static int by_ticket(const void *a, const void *b)
{
    const struct workload *x = *(struct workload *const *)a, *y = *(struct workload *const *)b;
    return x->ticket != y->ticket ? (x->ticket < y->ticket ? -1 : 1) : x->uid < y->uid ? -1 : 1;
}

/* Whether the Pod fills one of the group's places. A failed Pod does not, unless a Pod of the group forbids
 * to replace failed ones. */
static bool has_its_place(const struct workload *workload)
{
    CHECK(workload->group);
    const struct workload_condition *end = &workload->conditions[WORKLOAD_IS_FINISHED];
    if (workload->state == WORKLOAD_FINISHED)
        return (end->reason && strcmp(end->reason, "Succeeded") == 0) || !group_retries(workload->group);
    return workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING;
}

bool group_may_join(const struct workload *workload)
{
    return workload->state == WORKLOAD_PENDING && !workload->gone && !workload->jobset->entry.gone &&
           !workload->jobset->deleted_ns;
}

static void make_gang(struct workload *const *list, size_t count)
{
    CHECK(count > 0 && list[0]->gang.len == 0);
    for (size_t i = 0; i < count; i++) {
        CHECK(!list[i]->leader && list[i]->group == list[0]->group);
        list[i]->leader = list[0];
        vec_push(&list[0]->gang, list[i]);
    }
}

bool group_may_lead(const struct workload *leader, const struct workload *member)
{
    CHECK(member->led_by == leader->uid);
    return leader->state == WORKLOAD_HOLDING && member->state == WORKLOAD_HOLDING && leader->group &&
           leader->group == member->group && leader->led_by == leader->uid &&
           (leader == member || by_ticket(&leader, &member) < 0);
}

void group_restore_gang(struct workload *leader, struct workload *member)
{
    CHECK(group_may_lead(leader, member) && !member->leader);
    size_t place = leader->gang.len;
    vec_push(&leader->gang, member);
    for (; place > 0 && by_ticket(&leader->gang.items[place], &leader->gang.items[place - 1]) < 0; place--) {
        leader->gang.items[place] = leader->gang.items[place - 1];
        leader->gang.items[place - 1] = member;
    }
    member->leader = leader;
}

/* Chooses the waiting gang. HOLDING gangs stay as they are, because each has its machines; there may be
 * several if Pods are admitted as they arrive. HOLDING Pods count as filling the group's places. */
void group_choose(struct pod_group *group)
{
    int64_t lacks = group_total(group);
    VEC(struct workload *) waiting = {0}, holding = {0};
    for (size_t i = 0; i < group->members.len; i++) {
        struct workload *member = group->members.items[i];
        lacks -= has_its_place(member);
        if (member->state == WORKLOAD_HOLDING && member->leader)
            continue;
        group_disband(member);
        if (group_may_join(member))
            vec_push(&waiting, member);
        else if (member->state == WORKLOAD_HOLDING)
            vec_push(&holding, member);
    }
    if (waiting.len > 1)
        qsort(waiting.items, waiting.len, sizeof(*waiting.items), by_ticket);
    if (holding.len > 1)
        qsort(holding.items, holding.len, sizeof(*holding.items), by_ticket);
    if (holding.len)
        make_gang(holding.items, holding.len);
    if (lacks > 0 && waiting.len >= (size_t)lacks)
        make_gang(waiting.items, (size_t)lacks);
    else if (lacks > 0 && waiting.len && group_says(group, NOTE_FAST, "true"))
        make_gang(waiting.items, waiting.len); /* later Pods are admitted as they arrive */
    vec_done(&waiting);
    vec_done(&holding);
}

/* --- ended Pods ----------------------------------------------------------------------- */

/* Whether the Pod has the finalizer kueue.x-k8s.io/managed. An ended Pod of a group, deleted or not, keeps it
 * until one of these is true:
 *   - the group has finished, or its Workload is deleted;
 *   - the Pod has failed, or was deleted, and a later Pod has taken its place;
 *   - all Pods of the group are deleted, so that none is left to be replaced.
 * Pods that were deleted before they were admitted, that exceed the group's count, or that are evicted lose
 * it at once. While an admitted group lacks Pods, the Workloads of its Pods have the condition
 * WaitingForReplacementPods. */
static bool is_kept(const struct workload *workload)
{
    return object_has_finalizer(workload->jobset->document, POD_FINALIZER);
}

void group_let_go(struct step *step, const struct workload *workload)
{
    if (workload->jobset->entry.gone || workload->jobset->form != FORM_POD || !is_kept(workload))
        return;
    jobset_drop_finalizer(step, workload->jobset, POD_FINALIZER);
    step->admit->acted = true;
}

bool pod_is_over(const struct workload *workload)
{
    return !jobset_has_living(workload->jobset);
}

/* Whether the member's Pod runs, may still run, or has succeeded. */
static bool is_active(const struct workload *member)
{
    const struct jobset *jobset = member->jobset;
    if (jobset->entry.gone || (jobset->deleted_ns && member->state == WORKLOAD_PENDING))
        return false;
    if (member->state == WORKLOAD_FINISHED)
        return strcmp(member->conditions[WORKLOAD_IS_FINISHED].reason, "Succeeded") == 0;
    return !jobset->deleted_ns || !pod_is_over(member);
}

static bool all_deleted(const struct pod_group *group)
{
    for (size_t i = 0; i < group->members.len; i++)
        if (!group->members.items[i]->jobset->deleted_ns && !group->members.items[i]->jobset->entry.gone)
            return false;
    return true;
}

struct census {
    int64_t total, active, failed; /* failed: ended, not replaced yet, and kept by the finalizer */
    bool begun;                    /* a Pod of the group has been admitted */
};

static struct census take_census(const struct pod_group *group)
{
    struct census census = {.total = group_total(group)};
    for (size_t i = 0; i < group->members.len; i++) {
        const struct workload *member = group->members.items[i];
        bool active = is_active(member);
        census.active += active;
        census.failed += !active && member->state != WORKLOAD_PENDING && is_kept(member);
        census.begun |=
            member->state != WORKLOAD_PENDING || member->conditions[WORKLOAD_WAITS_FOR_PODS].present;
    }
    CHECK(census.active + census.failed <= (int64_t)group->members.len);
    return census;
}

static void say(struct step *step, struct pod_group *group, bool waits)
{
    CHECK(group->members.len > 0);
    bool said = false;
    const struct workload_condition *why = NULL;
    for (size_t i = 0; i < group->members.len; i++) {
        const struct workload *member = group->members.items[i];
        said |= member->conditions[WORKLOAD_WAITS_FOR_PODS].present;
        if (workload_holds(member, WORKLOAD_EVICTED))
            why = &member->conditions[WORKLOAD_EVICTED];
    }
    for (size_t i = 0; (said || waits) && i < group->members.len; i++) {
        struct workload *member = group->members.items[i];
        if (!waits)
            workload_condition_set(step, member, WORKLOAD_WAITS_FOR_PODS, false, "PodsReady",
                                   "No pods need replacement");
        else if (why)
            workload_condition_set(step, member, WORKLOAD_WAITS_FOR_PODS, true, why->reason, STR_FORMAT,
                                   STR_ARG(buf_str(&why->message)));
        else
            workload_condition_set(step, member, WORKLOAD_WAITS_FOR_PODS, true, "PodsFailed",
                                   "Some Failed pods need replacement");
    }
}

void group_release(struct step *step, struct pod_group *group)
{
    if (!group || group->members.len == 0)
        return;
    struct census census = take_census(group);
    bool finished = workload_group_end(group->members.items[0]).finished;
    bool none = all_deleted(group) || !census.total;
    int64_t replaced = census.active + census.failed - census.total;
    for (size_t i = 0; i < group->members.len; i++) { /* in order of arrival */
        const struct workload *member = group->members.items[i];
        bool deleted = member->jobset->deleted_ns, active = is_active(member);
        bool failed = !active && member->state != WORKLOAD_PENDING && is_kept(member);
        bool goes = deleted && (none || member->state == WORKLOAD_PENDING);
        if (failed && replaced > 0) {
            replaced--;
            goes = true;
        }
        if (finished || goes)
            group_let_go(step, member);
    }
    say(step, group, census.begun && !finished && census.total > census.active);
}

/* --- the group's places ---------------------------------------------------------------------- */

/* Deletes the newest waiting Pods beyond the group's count, which the group will never need. */
static void delete_excess(struct step *step, struct pod_group *group)
{
    int64_t total = group_total(group), room = total;
    VEC(struct workload *) waiting = {0};
    for (size_t i = 0; i < group->members.len; i++) {
        struct workload *member = group->members.items[i];
        room -= has_its_place(member);
        if (group_may_join(member))
            vec_push(&waiting, member);
    }
    if (waiting.len > 1)
        qsort(waiting.items, waiting.len, sizeof(*waiting.items), by_ticket);
    for (size_t i = room > 0 ? (size_t)room : 0; total && i < waiting.len; i++) {
        struct task *task = waiting.items[i]->jobset->jobs[0]->indexes[0].task;
        CHECK(waiting.items[i]->jobset->form == FORM_POD && waiting.items[i]->state == WORKLOAD_PENDING);
        step_note(step, false, "ExcessPodDeleted", ref_task(task),
                  "Excess pod deleted: group %s has its %lld Pods", group->key.data, (long long)total);
        group_let_go(step, waiting.items[i]);
        task_evict(step, task, -1);
        step->admit->acted = true;
    }
    vec_done(&waiting);
}

/* Returns the reason why members outside of the gang wait, and appends the details. */
static const char *obstacle_of(const struct pod_group *group, struct buf *why)
{
    int64_t total = group_total(group), placed = 0, waiting = 0;
    for (size_t i = 0; i < group->members.len; i++) {
        placed += has_its_place(group->members.items[i]);
        waiting += group_may_join(group->members.items[i]);
    }
    CHECK(placed + waiting <= (int64_t)group->members.len); /* no Pod is both */
    if (!total) {
        buf_printf(why,
                   "The Pods of group %s must agree on its queue and, in the annotation "
                   "kueue.x-k8s.io/pod-group-total-count, on its size",
                   group->key.data);
        return "Misconfigured";
    }
    if (placed + waiting < total)
        buf_printf(why, "Group %s has %lld of %lld Pods", group->key.data, (long long)(placed + waiting),
                   (long long)total);
    else
        buf_printf(why, "Group %s has its %lld Pods", group->key.data, (long long)total);
    return "Suspended";
}

void group_form(struct step *step, struct pod_group *group)
{
    if (!group)
        return;
    group_choose(group);
    CHECK(group->members.len > 0 && !group->forming);
    delete_excess(step, group);
    buf_clear(&group->why);
    group->reason = obstacle_of(group, &group->why);
    group->forming = true;
    for (size_t i = 0; i < group->members.len; i++)
        if (group->members.items[i]->state == WORKLOAD_PENDING)
            workload_bind(step, group->members.items[i]);
    group->forming = false;
    group_release(step, group);
}

const char *group_obstacle(const struct workload *workload, struct buf *why)
{
    const struct pod_group *group = workload->group;
    if (!group || workload->leader)
        return NULL;
    if (!group->forming)
        return obstacle_of(group, why);
    CHECK(group->reason);
    buf_add_str(why, buf_str(&group->why));
    return group->reason;
}

/* --- members together ------------------------------------------------------------------- */

size_t group_fellows(const struct workload *workload, bool (*is_one)(const struct workload *),
                     struct arena *arena, struct workload ***ret_list)
{
    const struct pod_group *group = workload->group;
    struct workload **list = ARENA_ARRAY(arena, struct workload *, group ? group->members.len : 1);
    size_t count = 0;
    if (!group)
        list[count++] = (struct workload *)workload;
    for (size_t i = 0; group && i < group->members.len; i++)
        if (is_one(group->members.items[i]))
            list[count++] = group->members.items[i];
    *ret_list = list;
    return count;
}

void gang_trial(const struct workload *workload, struct trial *trial, struct arena *arena)
{
    const struct jobset **list = ARENA_ARRAY(arena, const struct jobset *, workload->gang.len);
    for (size_t i = 0; i < workload->gang.len; i++)
        list[i] = workload->gang.items[i]->jobset;
    trial->with = list;
    trial->with_count = workload->gang.len;
}

/* Pins the Pod to the machine that the joint trial found for it, because under a topology constraint no other
 * machine may suit. */
static void pin(struct step *step, struct workload *workload, machine_id machine)
{
    CHECK(machine < step->cluster->machine_count && workload->jobset->form == FORM_POD);
    struct arena arena ARENA_CLEANUP = {0};
    if (!workload->jobset->spec.rjobs[0].job.pod.topology.mode)
        return;
    struct rjob_terms *terms = workload_terms(step->admit, workload, &arena);
    size_t count = terms[0].node_labels.len;
    struct labels labels = {ARENA_ARRAY(&arena, struct label, count + 1), count + 1};
    mem_copy(labels.items, terms[0].node_labels.items, count * sizeof(*labels.items));
    labels.items[count] =
        (struct label){STR("kubernetes.io/hostname"), step->cluster->machines[machine].name};
    terms[0].node_labels = labels;
    jobset_set_terms(step, workload->jobset, terms);
}

bool gang_start(struct step *step, struct workload *leader)
{
    CHECK(leader->leader == leader && leader->gang.len > 0);
    struct arena arena ARENA_CLEANUP = {0};
    struct buf why BUF_CLEANUP = {0};
    size_t count = leader->gang.len;
    struct workload **list = ARENA_ARRAY(&arena, struct workload *, count);
    mem_copy(list, leader->gang.items, count * sizeof(*list));
    struct placement *places = ARENA_ARRAY(&arena, struct placement, count);
    struct trial trial = {.terms = workload_terms(step->admit, leader, &arena)};
    gang_trial(leader, &trial, &arena);
    if (!jobset_trial(step->jobs, step->cluster, leader->jobset, &trial, places, &why))
        return false;
    disband(leader);
    for (size_t i = 0; i < count; i++) {
        const struct pod_spec *pod = &list[i]->jobset->spec.rjobs[0].job.pod;
        CHECK(list[i]->state == WORKLOAD_HOLDING && places[i].machine < step->cluster->machine_count);
        struct room *rooms = ARENA_ARRAY(&arena, struct room, step->cluster->machine_count);
        rooms[places[i].machine] =
            (struct room){0, places[i].chips, pod->cpu_request_milli, pod->memory_request_bytes};
        jobset_reserve(step, list[i]->jobset, rooms);
    }
    for (size_t i = 0; i < count; i++) {
        workload_admit(step, list[i], NULL);
        pin(step, list[i], places[i].machine);
    }
    jobs_settle(step);
    return true;
}
