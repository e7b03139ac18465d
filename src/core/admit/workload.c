/* workload.c - the Workload of a managed JobSet: its name, its requests, its conditions. */
#include "core/admit/internal.h"

#include "base/hash.h"

#define LABEL_QUEUE    STR("kueue.x-k8s.io/queue-name")
#define LABEL_PRIORITY STR("kueue.x-k8s.io/priority-class")
#define NOTE_LEAST     STR("kueue.x-k8s.io/job-min-parallelism")
#define NOTE_FOLLOW    STR("kueue.x-k8s.io/job-completions-equal-parallelism")

_Static_assert(QUOTA_MAX / TASKS_PER_JOBSET_MAX > 0,
               "the requests of all tasks of a JobSet fit into a quota");

const char *workload_condition_name(enum workload_condition_kind kind)
{
    static const char *const names[WORKLOAD_CONDITIONS] = {
        "QuotaReserved", "Admitted", "PodsReady",          "Evicted",
        "Preempted",     "Requeued", "DeactivationTarget", "WaitingForReplacementPods",
        "Finished",
    };
    CHECK((unsigned)kind < WORKLOAD_CONDITIONS);
    return names[kind];
}

const char *workload_reason(struct str reason)
{
    static const char *const reasons[] = {
        "QuotaReserved",
        "Admitted",
        "NoReservation",
        "Pending",
        "PendingEvaluation",
        "NoMatchingFlavor",
        "WaitingForQuota",
        "ExceedsMaxQuota",
        "TopologyPlacementFailed",
        "WaitingForPreemptedWorkloads",
        "Misconfigured",
        "Suspended",
        "WaitingForPodsReady",
        "Preempted",
        "PodsReadyTimeout",
        "MaximumLifetimeExceeded",
        "DeactivatedDueToMaximumExecutionTimeExceeded",
        "ClusterQueueStopped",
        "LocalQueueStopped",
        "Deactivated",
        "QueueChanged",
        "DeactivatedDueToRequeuingLimitExceeded",
        "InClusterQueue",
        "InCohortReclamation",
        "InCohortReclaimWhileBorrowing",
        "InCohortFairSharing",
        "WaitForStart",
        "Started",
        "WaitForRecovery",
        "Recovered",
        "BackoffFinished",
        "Reactivated",
        "ClusterQueueRestarted",
        "LocalQueueRestarted",
        "Succeeded",
        "Failed",
        "Backoff",
        "AdmissionCheck",
        "DeactivatedDueToAdmissionCheck",
        "FailedToStart",
        "AdmissionGated",
        "OutOfSync",
        "PodsFailed",
        "PodsReady",
        REASON_DELETED,
    };
    for (size_t i = 0; i < sizeof(reasons) / sizeof(*reasons); i++)
        if (str_is(reason, reasons[i]))
            return reasons[i];
    return "Pending";
}

/* A JobSet with another manager (MultiKueue, for example) is admitted by that manager. A Pod created without
 * the gate runs already. A hidden JobSet has been deleted: its orphans would never give quota and machines
 * back. */
bool jobset_managed(const struct jobset *jobset)
{
    struct str by = jobset->spec.managed_by;
    if (jobset->hidden)
        return false;
    if (jobset->form == FORM_WORKLOAD)
        return true;
    return (jobset->form != FORM_POD || jobset->spec.suspend) &&
           labels_get(&jobset->spec.labels, LABEL_QUEUE, STR("")).len > 0 &&
           (!by.len || str_is(by, "jobset.sigs.k8s.io/jobset-controller"));
}

/* --- requests ------------------------------------------------------------------------- */

static void ask(struct podset *podset, struct str name, int64_t per_task)
{
    if (!name.len || per_task <= 0)
        return;
    CHECK(podset->resource_count < PODSET_RESOURCES_MAX);
    podset->resources[podset->resource_count++] = (struct podset_resource){
        .name = name,
        .per_task =
            per_task < QUOTA_MAX / TASKS_PER_JOBSET_MAX ? per_task : QUOTA_MAX / TASKS_PER_JOBSET_MAX};
}

bool completions_follow(const struct jobset *jobset)
{
    return jobset->form == FORM_JOB && jobset->spec.rjobs[0].job.indexed &&
           str_is(labels_get(&jobset->spec.annotations, NOTE_FOLLOW, STR("")), "true");
}

/* Returns the least acceptable number of tasks. Partial admission exists only for batch Jobs: one replicated
 * job with one Job. */
static int32_t least_of(const struct jobset *jobset, int32_t count)
{
    int64_t least = count;
    struct str text = labels_get(&jobset->spec.annotations, NOTE_LEAST, STR(""));
    const struct rjob_spec *rjob = &jobset->spec.rjobs[0];
    bool may = jobset->form == FORM_JOB && rjob->replicas == 1;
    if (jobset->form == FORM_WORKLOAD)
        return podsets_least(jobset->document, 0);
    if (may && text.len)
        str_to_i64(text, 1, count, &least);
    return (int32_t)least;
}

/* Returns the PodSet's name in the user-made Workload, or else in the job. */
static struct str podset_name(const struct jobset *jobset, const struct jobset *own, size_t r)
{
    if (own)
        return own->spec.rjobs[r].name;
    return jobset->form == FORM_JOBSET ? jobset->spec.rjobs[r].name : STR("main");
}

struct podset *podsets_make(const struct jobset *jobset, const struct jobset *own, int32_t full)
{
    struct podset *podsets = mem_alloc((jobset->spec.rjob_count + 1) * sizeof(*podsets));
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        const struct pod_spec *pod = &rjob->job.pod;
        podsets[r].name = podset_name(jobset, own, r);
        podsets[r].count = podsets[r].least = rjob_task_count(rjob);
        ask(&podsets[r], STR("cpu"), pod->cpu_request_milli);
        ask(&podsets[r], STR("memory"), pod->memory_request_bytes);
        ask(&podsets[r], pod->chip_resource, pod->chips);
        ask(&podsets[r], STR("pods"), 1);
        CHECK(podsets[r].resource_count > 0 && podsets[r].count >= 0);
    }
    if (full > podsets[0].count) {
        int32_t completions = jobset->spec.rjobs[0].job.completions;
        bool fewer = completions >= 0 && completions < full && !completions_follow(jobset);
        podsets[0].count = fewer ? completions : full;
    }
    if (jobset->spec.rjob_count == 1)
        podsets[0].least = least_of(jobset, podsets[0].count);
    return podsets;
}

/* Copies the assigned flavours and counts to the podsets of the same index. */
static void keep_assigned(const struct podset *old, struct podset *podsets, size_t count)
{
    for (size_t r = 0; old && r < count; r++) {
        podsets[r].admitted = old[r].admitted;
        podsets[r].done = old[r].done;
        for (size_t i = 0; i < podsets[r].resource_count; i++)
            for (size_t k = 0; k < old[r].resource_count; k++)
                if (str_equal(old[r].resources[k].name, podsets[r].resources[i].name))
                    podsets[r].resources[i].flavor = old[r].resources[k].flavor;
    }
}

static uint64_t hash_labels(uint64_t seed, const struct labels *labels)
{
    for (size_t i = 0; i < labels->len; i++) {
        seed = hash64(seed, labels->items[i].key.data, labels->items[i].key.len);
        seed = hash64(seed, labels->items[i].value.data, labels->items[i].value.len);
    }
    return seed;
}

/* Hashes everything that decides whether a workload fits: if one does not fit, none of equal hash does. */
static uint64_t shape_of(const struct workload *workload)
{
    const struct jobset *jobset = workload->jobset;
    uint64_t hash = hash64((uint64_t)workload->priority, workload->queue_name.data, workload->queue_name.len);
    hash = hash64(hash, jobset->namespace_.data, jobset->namespace_.len);
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        const struct podset *podset = &workload->podsets[r];
        int64_t numbers[3 + PODSET_RESOURCES_MAX] = {podset->count, podset->least, rjob->replicas};
        for (size_t i = 0; i < podset->resource_count; i++) {
            numbers[3 + i] = podset->resources[i].per_task;
            hash = hash64(hash, podset->resources[i].name.data, podset->resources[i].name.len);
        }
        hash = hash64(hash, numbers, sizeof(numbers));
        hash = hash_labels(hash, &rjob->job.pod.node_selector);
        hash = hash_labels(hash, &rjob->job.pod.annotations);
        hash = hash64(hash, rjob->exclusive_topology.data, rjob->exclusive_topology.len);
        for (size_t t = 0; t < rjob->job.pod.toleration_count; t++) {
            const struct toleration *item = &rjob->job.pod.tolerations[t];
            hash = hash64(hash, item->key.data, item->key.len);
            hash = hash64(hash, item->value.data, item->value.len);
            hash = hash64(hash, item->effect.data, item->effect.len);
        }
    }
    return hash;
}

static int64_t class_value(const struct object *class)
{
    const struct doc *value = doc_get(class->document, "value");
    return value ? doc_int(value, 0) : doc_int(doc_path(class->document, "spec", "value", NULL), 0);
}

/* Returns the priority: that of a user-made Workload, the value of the WorkloadPriorityClass in the label, or
 * the priority of the first pod that has one. */
static int32_t priority_of(const struct step *step, const struct workload *workload)
{
    const struct jobset *jobset = workload->jobset;
    const struct doc *said =
        workload->own ? doc_path(workload->own->document, "spec", "priority", NULL) : NULL;
    struct str name = workload->priority_class;
    const struct object *class =
        name.len ? object_find(step->objects, OBJECT_WORKLOAD_PRIORITY_CLASS, STR(""), name) : NULL;
    int64_t value = 0;
    if (said && said->kind == DOC_INT)
        return (int32_t)said->integer;
    if (class)
        return (int32_t)class_value(class);
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct pod_spec *pod = &jobset->spec.rjobs[r].job.pod;
        if (!pod->priority_class.len && !pod->priority)
            continue;
        struct str text = labels_get(&step->cluster->priority_classes, pod->priority_class, STR(""));
        class = object_find(step->objects, OBJECT_PRIORITY_CLASS, STR(""), pod->priority_class);
        if (class)
            return (int32_t)class_value(class);
        return text.len && str_to_i64(text, INT32_MIN, INT32_MAX, &value) ? (int32_t)value : pod->priority;
    }
    return 0;
}

void workload_refresh(struct step *step, struct workload *workload)
{
    const struct jobset *jobset = workload->jobset, *says = workload->own ? workload->own : jobset;
    struct podset *podsets = podsets_make(jobset, workload->own, workload->full);
    keep_assigned(workload->podsets, podsets, jobset->spec.rjob_count);
    mem_free(workload->podsets);
    workload->podsets = podsets;
    workload->queue_name = labels_get(&says->spec.labels, LABEL_QUEUE, STR(""));
    workload->priority_class = labels_get(&says->spec.labels, LABEL_PRIORITY, STR(""));
    workload->priority = priority_of(step, workload);
    if (workload->group)
        group_name_role(workload);
    workload->shape = workload->group ? hash_mix(workload->uid) : shape_of(workload);
}

obj_id jobset_shown_uid(const struct jobset *jobset)
{
    const struct job *job = jobset->form == FORM_JOBSET || !jobset->job_count ? NULL : jobset->jobs[0];
    if (job && jobset->form == FORM_POD && job->indexes[0].task)
        return job->indexes[0].task->pod_uid;
    return job ? job->uid : jobset->uid;
}

obj_id workload_owner_uid(const struct workload *workload)
{
    return jobset_shown_uid(workload->jobset);
}

/* --- making and ending ------------------------------------------------------------------------ */

static const char *owner_word(const struct jobset *jobset)
{
    return jobset->form == FORM_JOB ? "job" : jobset->form == FORM_POD ? "pod" : "jobset";
}

enum { NAME_HASH_CHARS = 5 };

/* Computes Kueue's name suffix, from the owner's kind, group, name and uid. */
static void name_hash(const struct workload *workload, char ret_hash[NAME_HASH_CHARS + 1])
{
    static const char *const kinds[] = {
        [FORM_JOBSET] = "JobSet\njobset.x-k8s.io", [FORM_JOB] = "Job\nbatch", [FORM_POD] = "Pod\n"};
    const struct jobset *jobset = workload->jobset;
    CHECK(jobset->form < sizeof(kinds) / sizeof(*kinds)); /* user-made Workloads have names */
    struct buf text BUF_CLEANUP = {0};
    char uid[UID_TEXT_MAX], hex[41];
    uint8_t digest[20];
    uid_text(workload_owner_uid(workload), uid);
    buf_printf(&text, "%s\n" STR_FORMAT "\n%s", kinds[jobset->form], STR_ARG(jobset->name), uid);
    sha1(text.data, text.len, digest);
    hex_encode(digest, sizeof(digest), hex);
    mem_copy(ret_hash, hex, NAME_HASH_CHARS);
    ret_hash[NAME_HASH_CHARS] = 0;
}

static void set_name(struct workload *workload)
{
    const struct jobset *jobset = workload->jobset;
    char suffix[NAME_HASH_CHARS + 1];
    struct buf text = {0};
    if (!workload->own)
        name_hash(workload, suffix);
    if (workload->own)
        buf_add_str(&text, workload->own->key);
    else if (workload->group)
        buf_add_str(&text, buf_str(&workload->group->key)); /* all members of a group share one name */
    else
        buf_printf(&text, STR_FORMAT "/%s-" STR_FORMAT "-%s", STR_ARG(jobset->namespace_), owner_word(jobset),
                   STR_ARG(jobset->name), suffix);
    mem_free(workload->text);
    workload->text = text.data;
    workload->name =
        (struct str){text.data + jobset->namespace_.len + 1, text.len - jobset->namespace_.len - 1};
}

void admit_add(struct admit *admit, struct workload *workload)
{
    CHECK(workload->uid && !workload->gone && !workload->counted);
    list_init(&workload->link);
    vec_push(&admit->workloads, workload);
    u64_map_put(&admit->by_uid, workload->uid, workload);
    u64_map_put(&admit->by_jobset, workload->jobset->uid, workload);
    if (workload->own) {
        u64_map_put(&admit->by_jobset, workload->own->uid, workload);
        workload->own->workload = workload;
    } else {
        group_join(admit, workload);
    }
    set_name(workload);
    struct str key = {workload->text, workload->jobset->namespace_.len + 1 + workload->name.len};
    if (!workload->group)
        str_map_put(&admit->by_name, key, workload);
    else if (workload->podsets)
        group_name_role(workload);
}

struct workload *workload_new(struct step *step, struct jobset *jobset)
{
    struct workload *workload = mem_alloc(sizeof(*workload));
    if (jobset->form == FORM_WORKLOAD)
        workload->own = jobset;
    workload->uid = workload->ticket = workload->own ? jobset->uid : step_uid(step);
    workload->jobset = jobset;
    workload->active = true;
    workload->generation = 1;
    workload->created_ns = workload->queued_ns = step->now_ns;
    admit_add(step->admit, workload);
    workload_refresh(step, workload);
    bool joins = workload->group && workload->group->members.len > 1;
    workload_changed(step, joins ? CHANGE_MODIFIED : CHANGE_ADDED, workload);
    if (!workload->own)
        step_note(step, false, "CreatedWorkload", ref_jobset(jobset),
                  "Created Workload: " STR_FORMAT "/" STR_FORMAT, STR_ARG(jobset->namespace_),
                  STR_ARG(workload->name));
    return workload;
}

void workload_free(struct workload *workload)
{
    CHECK(!heap_has(&workload->place) && !heap_has(&workload->timer) && list_empty(&workload->link));
    CHECK(!workload->group && !workload->leader && workload->gang.len == 0);
    for (int kind = 0; kind < WORKLOAD_CONDITIONS; kind++)
        buf_done(&workload->conditions[kind].message);
    vec_done(&workload->booked);
    vec_done(&workload->evictions);
    vec_done(&workload->gang);
    checks_done(workload);
    arena_done(&workload->assigned);
    mem_free(workload->podsets);
    mem_free(workload->text);
    mem_free(workload);
}

/* Removes the Workload, notifies watchers, and lets the rest of its group form again. */
void workload_remove(struct step *step, struct workload *workload)
{
    CHECK(!workload->gone && workload->state != WORKLOAD_HOLDING);
    struct admit *admit = step->admit;
    size_t before = admit->workloads.len;
    struct str key = {workload->text, workload->jobset->namespace_.len + 1 + workload->name.len};
    workload_unbook(admit, workload);
    workload_unbind(workload);
    if (heap_has(&workload->timer))
        heap_remove(&admit->timers, &workload->timer);
    if (!workload->group)
        str_map_remove(&admit->by_name, key);
    u64_map_remove(&admit->by_uid, workload->uid);
    u64_map_remove(&admit->by_jobset, workload->jobset->uid);
    if (workload->own) {
        u64_map_remove(&admit->by_jobset, workload->own->uid);
        workload->own->workload = NULL;
    }
    for (size_t i = 0; i < admit->workloads.len; i++) {
        if (admit->workloads.items[i] == workload) {
            vec_remove(&admit->workloads, i);
            break;
        }
    }
    CHECK(admit->workloads.len + 1 == before);
    workload->gone = true;
    group_wake(workload);
    struct pod_group *left = group_leave(admit, workload);
    group_form(step, left);
    if (left)
        left->told_seq = 0; /* watchers may have been notified of the removed member */
    if (left)
        workload_changed(step, CHANGE_MODIFIED, left->members.items[0]);
    else
        workload_changed(step, CHANGE_DELETED, workload);
    vec_push(&admit->dead, workload);
    CHECK(!workload->group && !heap_has(&workload->place) && list_empty(&workload->link));
}

void workload_remake(struct step *step, struct workload *workload)
{
    struct jobset *jobset = workload->jobset;
    if (workload->own) {
        prebuilt_release(step, workload);
        workload_bind(step, workload); /* the Workload waits while finalizers keep it */
        return;
    }
    workload_remove(step, workload);
    workload_look_again(step, jobset);
}

void workload_look_again(struct step *step, struct jobset *jobset)
{
    if (!jobset->entry.touched)
        vec_push(&step->jobs->touched, jobset);
    jobset->entry.touched = true;
}

static bool is_any(const struct workload *workload)
{
    return !workload->gone;
}

static void delete_one(struct step *step, struct workload *workload)
{
    static const char message[] = "The workload was deleted";
    if (workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING)
        workload_evict(step, workload, REASON_DELETED, message);
    else if (workload->state == WORKLOAD_LEAVING)
        workload_condition_set(step, workload, WORKLOAD_EVICTED, true, REASON_DELETED, message);
    else
        workload_remake(step, workload);
}

void workload_delete(struct step *step, struct workload *workload)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct workload **list;
    size_t count = group_fellows(workload, is_any, &arena, &list);
    for (size_t i = 0; i < count; i++)
        group_let_go(step, list[i]);
    for (size_t i = 0; i < count; i++)
        if (!list[i]->gone)
            delete_one(step, list[i]);
}

/* --- conditions ------------------------------------------------------------------------------- */

bool workload_condition_set(struct step *step, struct workload *workload, enum workload_condition_kind kind,
                            bool status, const char *reason, const char *format, ...)
{
    CHECK((unsigned)kind < WORKLOAD_CONDITIONS && reason && reason[0]);
    struct workload_condition *condition = &workload->conditions[kind];
    struct buf text = {0};
    reason = workload_reason(str_from(reason)); /* equal reasons are one static string */
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    if (text.len > 1024) { /* Kueue's limit is 32 KiB, but a list of a thousand machines is useless */
        text.len = 1021;
        buf_printf(&text, "...");
    }
    bool moved = !condition->present || condition->status != status;
    if (!moved && condition->reason == reason && str_equal(buf_str(&condition->message), buf_str(&text))) {
        buf_done(&text);
        return false;
    }
    if (moved)
        condition->changed_ns = step->now_ns;
    buf_done(&condition->message);
    condition->message = text;
    condition->present = true;
    condition->status = status;
    condition->reason = reason;
    workload_changed(step, CHANGE_MODIFIED, workload);
    return moved;
}

/* --- validation, as Kueue's webhooks do ------------------------------------------------------------- */

static void refuse_note(struct field_errors *errors, struct str key, struct str value, struct str why)
{
    field_error_add(errors, arena_printf(errors->arena, "metadata.annotations[" STR_FORMAT "]", STR_ARG(key)),
                    "FieldValueInvalid", NULL, "Invalid value: \"" STR_FORMAT "\": " STR_FORMAT,
                    STR_ARG(value), STR_ARG(why));
}

#define BOTH                                                                                                 \
    "Required value: both the 'kueue.x-k8s.io/pod-group-total-count' annotation and the "                    \
    "'kueue.x-k8s.io/pod-group-name' label should be set"

static void check_pod_group(const struct jobset_spec *spec, struct field_errors *errors)
{
    struct str name = labels_get(&spec->labels, STR("kueue.x-k8s.io/pod-group-name"), STR(""));
    struct str key = STR("kueue.x-k8s.io/pod-group-total-count");
    struct str total = labels_get(&spec->annotations, key, (struct str){0});
    int64_t number;
    if (total.data && !name.len)
        field_error_add(errors, STR("metadata.labels[kueue.x-k8s.io/pod-group-name]"), "FieldValueRequired",
                        NULL, BOTH);
    if (name.len && !total.data)
        field_error_add(errors, STR("metadata.annotations[kueue.x-k8s.io/pod-group-total-count]"),
                        "FieldValueRequired", NULL, BOTH);
    if (total.data && !str_to_i64(total, 1, TASKS_PER_JOBSET_MAX, &number))
        refuse_note(errors, key, total, STR("group total count should be a number greater than zero"));
}

void admit_validate_new(const struct doc *document, const struct jobset_spec *spec,
                        struct field_errors *errors)
{
    struct str least = labels_get(&spec->annotations, NOTE_LEAST, (struct str){0});
    struct str follow = labels_get(&spec->annotations, NOTE_FOLLOW, (struct str){0});
    int64_t number;
    gates_validate(STR(""), labels_get(&spec->annotations, STR("kueue.x-k8s.io/admission-gated-by"), STR("")),
                   true, errors);
    labels_validate_new(spec, errors);
    if (workload_form(document) == FORM_POD)
        check_pod_group(spec, errors);
    if (workload_form(document) != FORM_JOB)
        return;
    const struct job_spec *job = &spec->rjobs[0].job;
    int32_t count = rjob_task_count(&spec->rjobs[0]);
    if (least.data && (!str_to_i64(least, INT32_MIN, INT32_MAX, &number) || number <= 0 || number >= count))
        refuse_note(errors, NOTE_LEAST, least,
                    arena_printf(errors->arena, "should be between 0 and %d", count - 1));
    if (follow.data && !str_is(follow, "true") && !str_is(follow, "false"))
        refuse_note(errors, NOTE_FOLLOW, follow, STR("must be true or false"));
    if (str_is(follow, "true") && !job->indexed)
        refuse_note(errors, NOTE_FOLLOW, follow, STR("should not be enabled for NonIndexed jobs"));
    else if (str_is(follow, "true") && job->parallelism != job->completions)
        refuse_note(errors, NOTE_FOLLOW, follow,
                    STR("should not be enabled when parallelism and completions differ"));
}

/* --- for readers ------------------------------------------------------------------------------ */

enum { KEY_MAX = 2 * NAME_MAX_BYTES + 32 };

const struct workload *workload_find(const struct admit *admit, struct str namespace_, struct str name)
{
    char key[KEY_MAX];
    if (namespace_.len + name.len + 1 > KEY_MAX)
        return NULL;
    mem_copy(key, namespace_.data, namespace_.len);
    key[namespace_.len] = '/';
    mem_copy(key + namespace_.len + 1, name.data, name.len);
    struct str whole = {key, namespace_.len + 1 + name.len};
    const struct pod_group *group = str_map_get(&admit->groups, whole);
    CHECK(!group || group->members.len > 0);
    return group ? workload_representative(group->members.items[0]) : str_map_get(&admit->by_name, whole);
}

const struct workload *workload_of(const struct admit *admit, obj_id jobset)
{
    return u64_map_get(&admit->by_jobset, jobset);
}

void workload_visit(const struct admit *admit, void (*visit)(void *context, const struct workload *workload),
                    void *context)
{
    for (size_t i = 0; i < admit->workloads.len; i++)
        visit(context, admit->workloads.items[i]);
}

static void set_active(struct step *step, struct workload *workload, bool active)
{
    if (active == workload->active || workload->state == WORKLOAD_FINISHED)
        return;
    workload->active = active;
    workload->generation++;
    workload_changed(step, CHANGE_MODIFIED, workload);
    if (active) {
        workload->requeues = 0;
        workload->requeue_ns = 0;
        if (workload->state == WORKLOAD_PENDING) {
            workload_condition_set(step, workload, WORKLOAD_REQUEUED, true, "Reactivated",
                                   "The workload was reactivated");
            workload_bind(step, workload);
            group_form(step, workload->group);
        }
    } else if (workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING) {
        workload_evict(step, workload, "Deactivated", "The workload is deactivated");
    } else {
        if (workload->state == WORKLOAD_PENDING)
            workload_bind(step, workload);
        group_form(step, workload->group);
    }
    workload_look(step, workload);
}

void workload_replace(struct step *step, struct workload *workload, const struct doc *document)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct workload **list;
    bool active = doc_bool(doc_path(document, "spec", "active", NULL), true);
    size_t count = group_fellows(workload, is_any, &arena, &list);
    for (size_t i = 0; i < count; i++)
        if (!list[i]->gone)
            set_active(step, list[i], active);
}
