/* admit.c - the module's state and its turn in a step. */
#include "core/admit/internal.h"
#include "core/object/object.h"

struct admit *admit_new(void)
{
    return mem_alloc(sizeof(struct admit));
}

void admit_bury(struct admit *admit)
{
    for (size_t i = 0; i < admit->dead.len; i++) {
        CHECK(admit->dead.items[i]->gone);
        workload_free(admit->dead.items[i]);
    }
    vec_clear(&admit->dead);
}

static void unbind_all(struct admit *admit)
{
    for (size_t i = 0; i < admit->workloads.len; i++) {
        struct workload *workload = admit->workloads.items[i];
        workload_unbind(workload);
        workload->booked_in = NULL;
        vec_clear(&workload->booked); /* the tree that the bookings refer to is freed */
    }
}

void admit_free(struct admit *admit)
{
    if (!admit)
        return;
    admit_bury(admit);
    unbind_all(admit);
    heap_done(&admit->timers);
    tree_done(&admit->tree);
    for (size_t i = 0; i < admit->workloads.len; i++) {
        (void)group_leave(admit, admit->workloads.items[i]);
        workload_free(admit->workloads.items[i]);
    }
    CHECK(admit->groups.len == 0); /* a group is freed when its last member leaves */
    vec_done(&admit->workloads);
    vec_done(&admit->dead);
    vec_done(&admit->holding);
    vec_done(&admit->shown);
    str_map_done(&admit->by_name);
    str_map_done(&admit->groups);
    u64_map_done(&admit->by_uid);
    u64_map_done(&admit->by_jobset);
    u64_map_done(&admit->failed);
    mem_free(admit);
}

/* --- writes ----------------------------------------------------------------------------------- */

static struct str queue_label(const struct doc *document)
{
    return doc_str(
        doc_get_str(doc_path(document, "metadata", "labels", NULL), STR("kueue.x-k8s.io/queue-name")),
        STR(""));
}

/* Whether the workload may run: it is admitted, has finished, or is leaving and not suspended yet. Its queue
 * then decides how long it runs, whatever its document says. */
static bool may_run(const struct admit *admit, const struct jobset *jobset)
{
    const struct workload *workload = jobset ? workload_of(admit, jobset->uid) : NULL;
    return workload && (workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_FINISHED ||
                        (workload->state == WORKLOAD_LEAVING && !jobset->spec.suspend));
}

/* Adds the label of Kueue's webhook to a managed Pod. The label stays. */
static void mark_managed(struct arena *arena, struct doc *document)
{
    doc_set(arena, doc_need_object(arena, doc_get(document, "metadata"), "labels"),
            STR("kueue.x-k8s.io/managed"), doc_new_str(arena, STR("true")));
}

/* Adds a finalizer to a managed Pod of a group; group.c removes it. */
static void hold_member(struct arena *arena, struct doc *document)
{
    const struct doc *metadata = doc_get(document, "metadata"), *list = doc_get(metadata, "finalizers");
    bool odd = list && list->kind != DOC_ARRAY; /* the schema refuses it */
    if (!odd && doc_str(doc_path(metadata, "labels", "kueue.x-k8s.io/pod-group-name", NULL), STR("")).len)
        finalizer_add(arena, document, POD_FINALIZER);
}

/* Adds the scheduling gate to a managed Pod. The gate is removed when the Pod is admitted. */
static void add_gate(struct arena *arena, struct doc *spec)
{
    struct doc *gates = doc_get(spec, "schedulingGates");
    if (gates && gates->kind != DOC_ARRAY)
        return; /* the schema refuses it */
    if (!gates) {
        gates = doc_new(arena, DOC_ARRAY);
        doc_set(arena, spec, STR("schedulingGates"), gates);
    }
    for (size_t i = 0; i < doc_len(gates); i++)
        if (str_is(doc_str(doc_get(doc_at(gates, i), "name"), STR("")), POD_GATE))
            return;
    struct doc *gate = doc_new(arena, DOC_OBJECT);
    doc_set(arena, gate, STR("name"), doc_new_str(arena, STR(POD_GATE)));
    doc_push(arena, gates, gate);
}

bool admit_has_default_queue(const struct admit *admit, struct str namespace_)
{
    return tree_local(&admit->tree, namespace_, STR("default")) != NULL;
}

/* Names the LocalQueue "default" of the namespace in a document without a queue (Kueue's
 * LocalQueueDefaulting). */
static void name_default_queue(const struct admit *admit, struct arena *arena, struct doc *document)
{
    struct doc *metadata = doc_get(document, "metadata");
    struct str namespace_ = doc_str(doc_get(metadata, "namespace"), STR(""));
    const struct doc *labels = doc_get(metadata, "labels");
    bool odd = !metadata || metadata->kind != DOC_OBJECT || (labels && labels->kind != DOC_OBJECT);
    if (odd || queue_label(document).len || !admit_has_default_queue(admit, namespace_))
        return;
    doc_set(arena, doc_need_object(arena, metadata, "labels"), STR("kueue.x-k8s.io/queue-name"),
            doc_new_str(arena, STR("default")));
}

void admit_default(const struct admit *admit, const struct jobset *jobset, struct arena *arena,
                   struct doc *document)
{
    struct str by = doc_str(doc_path(document, "spec", "managedBy", NULL), STR(""));
    bool foreign = by.len && !str_is(by, "jobset.sigs.k8s.io/jobset-controller");
    struct doc *spec = doc_get(document, "spec");
    const struct workload *workload = jobset ? workload_of(admit, jobset->uid) : NULL;
    if (!jobset && !foreign)
        name_default_queue(admit, arena, document);
    if (jobset)
        document_strip_terms(jobset, document);
    if (!queue_label(document).len || foreign || !spec || spec->kind != DOC_OBJECT)
        return;
    if (workload && workload->state == WORKLOAD_FINISHED)
        return;
    if (workload_form(document) == FORM_POD) {
        if (!jobset || workload)
            mark_managed(arena, document);
        if (!jobset)
            hold_member(arena, document);
        if (may_run(admit, jobset))
            doc_unset(spec, "schedulingGates");
        else if (!jobset || (workload && jobset->spec.suspend)) /* no gate after an admission */
            add_gate(arena, spec);
        return;
    }
    if (workload && workload->full)
        doc_set(arena, spec, STR("parallelism"), doc_new_int(arena, jobset->spec.rjobs[0].job.parallelism));
    if (workload && workload->full && completions_follow(jobset))
        doc_set(arena, spec, STR("completions"), doc_new_int(arena, jobset->spec.rjobs[0].job.completions));
    doc_set(arena, spec, STR("suspend"), doc_new_bool(arena, !may_run(admit, jobset)));
}

void admit_validate_update(const struct admit *admit, const struct jobset *jobset, const struct doc *document,
                           struct field_errors *errors)
{
    struct str queue = queue_label(document), was = queue_label(jobset->document);
    const struct workload *workload = workload_of(admit, jobset->uid);
    bool runs = workload ? workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_LEAVING
                         : !jobset->spec.suspend;
    const struct doc *labels = doc_path(document, "metadata", "labels", NULL);
    struct str group = doc_str(doc_get(labels, "kueue.x-k8s.io/pod-group-name"), STR(""));
    if (workload && jobset->form == FORM_POD &&
        !str_equal(group, labels_get(&jobset->spec.labels, STR("kueue.x-k8s.io/pod-group-name"), STR(""))))
        field_error_add(errors, STR("metadata.labels[kueue.x-k8s.io/pod-group-name]"), "FieldValueInvalid",
                        NULL, "Invalid value: \"" STR_FORMAT "\": field is immutable", STR_ARG(group));
    static const char prebuilt[] = "kueue.x-k8s.io/prebuilt-workload-name";
    struct str names = doc_str(doc_get(labels, prebuilt), STR(""));
    if (workload && !str_equal(names, labels_get(&jobset->spec.labels, str_from(prebuilt), STR(""))))
        field_error_add(errors, STR("metadata.labels[kueue.x-k8s.io/prebuilt-workload-name]"),
                        "FieldValueInvalid", NULL, "Invalid value: \"" STR_FORMAT "\": field is immutable",
                        STR_ARG(names));
    labels_validate_update(jobset, labels, runs, errors);
    static const char gates[] = "kueue.x-k8s.io/admission-gated-by";
    const struct doc *notes = doc_path(document, "metadata", "annotations", NULL);
    if (was.len)
        gates_validate(labels_get(&jobset->spec.annotations, str_from(gates), STR("")),
                       doc_str(doc_get(notes, gates), STR("")), false, errors);
    if (!str_equal(queue, was) && runs)
        field_error_add(errors, STR("metadata.labels[kueue.x-k8s.io/queue-name]"), "FieldValueInvalid", NULL,
                        "Invalid value: \"" STR_FORMAT "\": field is immutable", STR_ARG(queue));
}

/* --- the turn in a step --------------------------------------------------------------------------------- */

/* Rebuilds all state that is derived from the queue objects. */
static void rebuild(struct step *step)
{
    struct admit *admit = step->admit;
    bool wake = !admit->restored;
    unbind_all(admit);
    tree_done(&admit->tree);
    tree_read(&admit->tree, step->objects);
    u64_map_done(&admit->failed);
    for (size_t i = 0; i < admit->workloads.len; i++) {
        struct workload *workload = admit->workloads.items[i];
        workload_refresh(step, workload);
        if (workload->state != WORKLOAD_PENDING && workload->state != WORKLOAD_FINISHED)
            workload_book(admit, workload);
    }
    for (size_t i = 0; i < admit->workloads.len; i++) {
        struct pod_group *group = admit->workloads.items[i]->group;
        CHECK(!group || group->members.len > 0);
        if (group && group->members.items[0] == admit->workloads.items[i])
            group_choose(group);
    }
    for (size_t i = 0; i < admit->workloads.len; i++) {
        struct workload *workload = admit->workloads.items[i];
        workload->parked &= !wake;
        workload_bind(step, workload);
    }
    admit->restored = false;
}

static void look_at_touched(struct step *step)
{
    struct admit *admit = step->admit;
    for (size_t i = 0; i < step->jobs->touched.len; i++) { /* the list may grow in this loop */
        struct jobset *jobset = step->jobs->touched.items[i];
        struct workload *workload = u64_map_get(&admit->by_jobset, jobset->uid);
        jobset->entry.touched = false;
        bool wants = !workload && !jobset->entry.gone && !jobset->deleted_ns && !jobset_finished(jobset) &&
                     jobset_managed(jobset);
        struct str named = wants ? prebuilt_name(jobset) : STR("");
        if (wants)
            workload = named.len ? prebuilt_take(step, jobset, named) : workload_new(step, jobset);
        CHECK(!workload || workload->jobset == jobset || workload->own == jobset);
        if (workload)
            workload_look(step, workload);
    }
    vec_clear(&step->jobs->touched);
}

static void look_at_due(struct step *step)
{
    struct heap_node *node;
    while ((node = heap_min(&step->admit->timers)) && node->key <= step->now_ns) {
        struct workload *workload = container_of(node, struct workload, timer);
        CHECK(!workload->gone && node->key != INT64_MAX);
        heap_remove(&step->admit->timers, node);
        workload_look(step, workload);
    }
}

static void look_at_all(struct step *step)
{
    for (size_t i = step->admit->workloads.len; i-- > 0;) /* workload_look may remove the workload */
        workload_look(step, step->admit->workloads.items[i]);
}

bool admit_act(struct step *step)
{
    struct admit *admit = step->admit;
    bool fresh = admit->seq != step->seq;
    admit->acted = false;
    admit->fair = step->cluster->policy.queues.fair;
    if (fresh) {
        admit->seq = step->seq;
        admit->trials = TRIALS_PER_STEP;
        u64_map_done(&admit->failed);
        for (size_t q = 0; q < admit->tree.queue_count; q++)
            admit->tree.queues[q].told = 0;
    }
    bool changed = tree_versions(step->objects) != admit->tree.versions || step->settings_changed;
    CHECK(admit->trials <= TRIALS_PER_STEP);
    if (admit->workloads.len == 0 && step->jobs->touched.len == 0 && !changed && !admit->untold)
        return false; /* returns at once where no queues are used */
    step->settings_changed = false;
    if (changed)
        rebuild(step);
    look_at_touched(step);
    look_at_due(step);
    if (changed)
        look_at_all(step);
    if (step->room || admit->shape != step->jobs->shape)
        wake_all(admit);
    step->room = false;
    admit->shape = step->jobs->shape;
    cycle_run(step);
    if (admit->tree.ending_count && inuse_release(step))
        admit->acted = true;
    admit->untold = admit->acted;
    if (!admit->acted)
        status_publish(step);
    return admit->acted;
}

int64_t admit_deadline(const struct admit *admit, int64_t now_ns)
{
    const struct heap_node *node = heap_min(&admit->timers);
    CHECK(!node || node->key != INT64_MAX); /* no timer without a deadline */
    if (admit->workloads.len > 0 && cycle_unfinished(admit))
        return now_ns;
    return node ? node->key : INT64_MAX;
}

/* --- snapshots -------------------------------------------------------------------------------- */

uint32_t workload_hold_place(const struct admit *admit, const struct workload *workload)
{
    bool holds = workload->state == WORKLOAD_HOLDING;
    for (size_t i = 0; holds && i < admit->holding.len; i++)
        if (admit->holding.items[i] == workload)
            return (uint32_t)i + 1;
    CHECK(!holds);
    return 0;
}

struct workload *workload_restore(struct admit *admit, struct jobset *jobset, struct jobset *own, obj_id uid,
                                  int32_t full, obj_id group_uid, int64_t group_created_ns)
{
    CHECK(uid && jobset && (!own || own->form == FORM_WORKLOAD)); /* checked by snapshot_admit.c */
    if (u64_map_get(&admit->by_uid, uid) || u64_map_get(&admit->by_jobset, jobset->uid) ||
        (own && u64_map_get(&admit->by_jobset, own->uid)))
        return NULL;
    struct workload *workload = mem_alloc(sizeof(*workload));
    workload->uid = uid;
    workload->jobset = jobset;
    workload->own = own;
    workload->full = full;
    workload->group_uid = group_uid;
    workload->group_created_ns = group_created_ns;
    workload->podsets = podsets_make(jobset, own, full);
    admit_add(admit, workload);
    return workload;
}

/* Workloads are not restored in the order of their places, so the list may have gaps until admit_restored. */
bool workload_restore_hold(struct admit *admit, struct workload *workload, uint32_t place, obj_id leader)
{
    CHECK(workload->state == WORKLOAD_HOLDING);
    if (place == 0 || place > JOBSETS_MAX)
        return false;
    while (admit->holding.len < place)
        vec_push(&admit->holding, NULL);
    if (admit->holding.items[place - 1])
        return false;
    admit->holding.items[place - 1] = workload;
    workload->led_by = leader;
    return true;
}

bool admit_restore_gangs(struct admit *admit)
{
    for (size_t i = 0; i < admit->holding.len; i++) {
        const struct workload *workload = admit->holding.items[i];
        const struct workload *leader = workload ? u64_map_get(&admit->by_uid, workload->led_by) : NULL;
        if (workload && workload->led_by && (!leader || !group_may_lead(leader, workload)))
            return false;
    }
    for (size_t i = 0; i < admit->holding.len; i++) {
        struct workload *workload = admit->holding.items[i];
        if (workload && workload->led_by)
            group_restore_gang(u64_map_get(&admit->by_uid, workload->led_by), workload);
    }
    return true;
}

/* Called after a snapshot was read: derives the tree and all lists, without waking workloads or notifying
 * watchers. */
void admit_restored(struct step *step)
{
    struct admit *admit = step->admit;
    admit->restored = true;
    admit->fair = step->cluster->policy.queues.fair;
    for (size_t i = admit->holding.len; i-- > 0;)
        if (!admit->holding.items[i])
            vec_remove(&admit->holding, i);
    for (size_t i = 0; i < admit->holding.len; i++)
        CHECK(admit->holding.items[i]->state == WORKLOAD_HOLDING);
    rebuild(step);
    admit->shape = step->jobs->shape;
    for (size_t i = 0; i < admit->workloads.len; i++) {
        struct workload *workload = admit->workloads.items[i];
        struct workload *preemptor = u64_map_get(&admit->by_uid, workload->preemptor);
        if (preemptor && preemptor->state == WORKLOAD_HOLDING && workload->state == WORKLOAD_LEAVING)
            preemptor->waits_for++;
        workload->seen = workload->jobset->document;
        workload->seen_own = workload->own ? workload->own->document : NULL;
        workload->jobset->grant.promised = workload->given && workload->preemptor;
        workload->timer.key = workload_due(step, workload);
        workload->timer.tie = workload->uid;
        if (workload->timer.key != INT64_MAX)
            heap_insert(&admit->timers, &workload->timer);
    }
    status_restore(admit);
}

/* --- invariants ------------------------------------------------------------------------------- */

/* Checks that a workload is in at most one list, and in the one of its state. */
static void check_lists(const struct workload *workload)
{
    bool queued = heap_has(&workload->place), listed = !list_empty(&workload->link);
    CHECK(!queued || (workload->state == WORKLOAD_PENDING && workload->queue && !workload->parked));
    CHECK(!queued || !listed);
    CHECK(!listed || workload->state == WORKLOAD_PENDING || workload->booked_in);
    CHECK(!listed || workload->state != WORKLOAD_FINISHED);
    CHECK(!heap_has(&workload->timer) || workload->timer.key != INT64_MAX);
    CHECK(workload->counted < QUEUE_COUNTS && workload->state < WORKLOAD_STATES);
}

/* Checks that the leader of a gang is its first member, and that all members are of one group. */
static void check_gang(const struct workload *workload)
{
    CHECK((workload->gang.len > 0) == (workload->leader == workload));
    CHECK(!workload->leader || (workload->group && workload->leader->group == workload->group));
    for (size_t i = 0; i < workload->gang.len; i++)
        CHECK(workload->gang.items[i]->leader == workload);
    CHECK(workload->gang.len == 0 || workload->gang.items[0] == workload);
}

/* Checks that each count of a group equals the number of its members that are counted in that kind. */
static void check_group(const struct pod_group *group)
{
    uint32_t counted[QUEUE_COUNTS] = {0};
    for (size_t i = 0; i < group->members.len; i++) {
        CHECK(group->members.items[i]->group == group && !group->members.items[i]->gone);
        counted[group->members.items[i]->counted]++;
    }
    for (size_t as = 1; as < QUEUE_COUNTS; as++) /* 0: not counted */
        CHECK(group->counted[as].members == counted[as]);
    CHECK(!group->forming && group->uid != 0);
}

static void check_podsets(const struct workload *workload)
{
    for (size_t r = 0; r < workload->jobset->spec.rjob_count; r++) {
        const struct podset *podset = &workload->podsets[r];
        CHECK(podset->resource_count <= PODSET_RESOURCES_MAX && podset->count >= 0);
        CHECK(podset->done >= 0 && podset->done <= podset->admitted);
    }
    for (size_t i = 0; i < workload->booked.len; i++)
        CHECK(workload->booked.items[i].amount >= 0);
}

static void check_workload(const struct admit *admit, const struct workload *workload)
{
    const struct jobset *jobset = workload->jobset;
    bool booked = workload->state == WORKLOAD_HOLDING || workload->state == WORKLOAD_ADMITTED ||
                  (workload->state == WORKLOAD_LEAVING && !workload->given);
    CHECK(!workload->gone && workload_of(admit, jobset->uid) == workload);
    CHECK(booked || workload->booked.len == 0);
    CHECK(!workload->parked || workload->state == WORKLOAD_PENDING);
    CHECK(workload->counted || workload->state != WORKLOAD_PENDING || workload_is_stopped(workload));
    CHECK(!workload->own || (workload_of(admit, workload->own->uid) == workload && !workload->group &&
                             workload->own->form == FORM_WORKLOAD && !workload->own->entry.gone &&
                             workload->own->workload == workload));
    CHECK(!workload->group || workload->changed_seq == workload->group->members.items[0]->changed_seq);
    CHECK(jobset->form != FORM_WORKLOAD || workload_is_bare(workload));
    CHECK(!workload_is_bare(workload) || workload->state != WORKLOAD_LEAVING);
    CHECK(workload->state != WORKLOAD_ADMITTED || workload_is_bare(workload) || !jobset->spec.suspend);
    CHECK(workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_LEAVING ||
          workload->state == WORKLOAD_FINISHED || jobset->deleted_ns || jobset->spec.suspend);
    CHECK(workload->waits_for == 0 || workload->state == WORKLOAD_HOLDING);
    check_lists(workload);
    check_gang(workload);
    check_podsets(workload);
    if (workload->group && workload->group->members.items[0] == workload)
        check_group(workload->group);
}

/* Checks that a cohort's usage is the usage of its children beyond their own quota. */
static void check_cohorts(const struct quota_tree *quota)
{
    struct arena arena ARENA_CLEANUP = {0};
    int64_t *sums = ARENA_ARRAY(&arena, int64_t, quota->node_count);
    bool *inner = ARENA_ARRAY(&arena, bool, quota->node_count);
    for (size_t c = 0; c < quota->cell_count; c++) {
        for (size_t n = 0; n < quota->node_count; n++)
            sums[n] = 0;
        for (uint32_t n = 0; n < quota->node_count; n++) {
            const struct quota_node *node = &quota->nodes[n];
            int64_t more = node->cells[c].usage - quota_local(quota, n, c);
            if (node->broken || node->parent == QUOTA_NONE)
                continue;
            inner[node->parent] = true;
            sums[node->parent] += more > 0 ? more : 0;
        }
        for (size_t n = 0; n < quota->node_count; n++)
            CHECK(!inner[n] || quota->nodes[n].broken || quota->nodes[n].cells[c].usage == sums[n]);
    }
}

void admit_check(const struct admit *admit)
{
    check_cohorts(&admit->tree.quota);
    const struct tree *tree = &admit->tree;
    size_t holding = 0;
    for (size_t i = 0; i < admit->workloads.len; i++) {
        check_workload(admit, admit->workloads.items[i]);
        holding += admit->workloads.items[i]->state == WORKLOAD_HOLDING;
    }
    CHECK(holding == admit->holding.len && admit->by_uid.len == admit->workloads.len);
    for (size_t q = 0; q < tree->queue_count; q++) {
        for (size_t c = 0; c < tree->quota.cell_count; c++) {
            int64_t sum = 0;
            list_for_each(node, &tree->queues[q].booked)
            {
                const struct workload *workload = container_of(node, struct workload, link);
                for (size_t b = 0; b < workload->booked.len; b++)
                    sum += workload->booked.items[b].cell == c ? workload->booked.items[b].amount : 0;
            }
            CHECK(sum == tree->quota.nodes[tree->queues[q].node].cells[c].usage);
        }
    }
}
