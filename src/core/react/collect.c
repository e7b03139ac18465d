/* collect.c - the consequences of a deletion, over all kinds: dependents of removed objects, owners that
 * wait for their dependents, namespaces that end.
 *
 * Source of the rules: Kubernetes, "Garbage Collection", "Finalizers", "Namespaces". All consequences follow
 * in the step of the deletion. Objects that must wait (for tasks that end, or for finalizers of others) are
 * listed in the store by uid (objects_wait), and are checked again whenever an object was removed.
 */
#include "core/admit/admit.h"
#include "core/react/react.h"
#include "core/object/life.h"

static const char *const permanent[] = {"default", "kube-node-lease", "kube-public", "kube-system"};

/* --- namespaces ----------------------------------------------------------------------------------------- */

bool namespace_is_permanent(struct str name)
{
    /* Kubernetes lets users delete kube-node-lease; it is made again at the next start. */
    return str_is(name, "default") || str_is(name, "kube-public") || str_is(name, "kube-system");
}

void namespace_need(struct step *step, struct str name)
{
    CHECK(name.len > 0 && name.len <= NAME_MAX_BYTES);
    if (object_find(step->objects, OBJECT_NAMESPACE, STR(""), name))
        return;
    struct arena arena = {0};
    struct doc *document = doc_new(&arena, DOC_OBJECT);
    doc_set(&arena, document, STR("apiVersion"), doc_new_str(&arena, STR("v1")));
    doc_set(&arena, document, STR("kind"), doc_new_str(&arena, STR("Namespace")));
    struct doc *metadata = doc_need_object(&arena, document, "metadata");
    doc_set(&arena, metadata, STR("name"), doc_new_str(&arena, name));
    stored_default(&arena, document);
    object_create(step, OBJECT_NAMESPACE, &arena, document);
}

void namespaces_boot(struct step *step)
{
    for (size_t i = 0; i < sizeof permanent / sizeof *permanent; i++)
        namespace_need(step, str_from(permanent[i]));
}

/* --- any object that may own or be owned: a stored one or a workload ------------------------------------ */

struct member {
    struct object *object; /* at most one is set */
    struct jobset *jobset;
    struct str namespace_;
    const struct doc *document;
    int64_t deleted_ns;
};

static bool find_member(const struct step *step, obj_id uid, struct member *ret_member)
{
    struct object *object = (struct object *)object_find_uid(step->objects, uid);
    struct jobset *jobset = object ? NULL : jobs_find_uid(step->jobs, uid);
    if (object)
        *ret_member = (struct member){object, NULL, object->namespace_, object->document, object->deleted_ns};
    else if (jobset)
        *ret_member = (struct member){NULL, jobset, jobset->namespace_, jobset->document, jobset->deleted_ns};
    return object || jobset;
}

/* --- owners --------------------------------------------------------------------------------------------- */

/* Returns whether the owner in the reference still exists; owners of unknown kinds count as existing.
 * *ret_uid becomes the owner's uid, or 0 if the reference has none. */
static bool owner_lives(const struct step *step, const struct doc *reference, struct str namespace_,
                        obj_id *ret_uid)
{
    enum object_kind kind = object_kind_of(doc_str(doc_get(reference, "apiVersion"), STR("")),
                                           doc_str(doc_get(reference, "kind"), STR("")));
    struct str name = doc_str(doc_get(reference, "name"), STR(""));
    obj_id uid = 0;
    bool has_uid = uid_parse(doc_str(doc_get(reference, "uid"), STR("")), &uid);
    *ret_uid = uid;
    if (kind == 0 || kind == OBJECT_EVENT || kind == OBJECT_NODE || kind == OBJECT_FAULT ||
        resource_row(kind)->rules == RULES_FABRIC)
        return true;
    if (!has_uid)
        return false;
    if (kind == OBJECT_WORKLOAD)
        return workload_lives(step->admit, uid);
    if (kind == OBJECT_JOBSET) {
        const struct jobset *jobset = jobs_find_uid(step->jobs, uid);
        return jobset && jobset_is_seen(jobset) && str_equal(jobset->name, name);
    }
    if (kind == OBJECT_JOB) {
        const struct job *job = jobs_find_job(step->jobs, namespace_, name);
        return job && job->uid == uid;
    }
    if (kind == OBJECT_POD) { /* a Pod keeps its uid when it runs again in its place; a task does not */
        const struct task *task = jobs_find_pod(step->jobs, namespace_, name);
        return task && task->pod_uid == uid;
    }
    const struct object *object = object_find_uid(step->objects, uid);
    /* An owner in another namespace does not count. */
    return object && (object->namespace_.len == 0 || str_equal(object->namespace_, namespace_));
}

/* Returns whether the owner exists and is not being deleted in the foreground, as dependents count it. */
static bool is_solid(const struct step *step, const struct doc *reference, struct str namespace_)
{
    struct member owner;
    obj_id uid;
    if (!owner_lives(step, reference, namespace_, &uid))
        return false;
    if (uid == 0 || !find_member(step, uid, &owner))
        return true;
    return !owner.deleted_ns || !object_has_finalizer(owner.document, FINALIZER_FOREGROUND);
}

/* Removes references from a document: those to deleted owners, or all to `owner` if that is not 0. */
static void strip_references(const struct step *step, struct doc *document, struct str namespace_,
                             obj_id owner)
{
    struct doc *list = doc_path(document, "metadata", "ownerReferences", NULL);
    size_t kept = 0;
    for (size_t i = 0; list && list->kind == DOC_ARRAY && i < list->array.len; i++) {
        const struct doc *reference = list->array.items[i];
        obj_id uid = 0;
        uid_parse(doc_str(doc_get(reference, "uid"), STR("")), &uid);
        if (owner ? uid != owner : is_solid(step, reference, namespace_))
            list->array.items[kept++] = list->array.items[i];
    }
    if (list && list->kind == DOC_ARRAY)
        list->array.len = kept;
    if (kept == 0)
        doc_unset(doc_get(document, "metadata"), "ownerReferences");
}

/* Stores the document of a member, which was changed in a copy. */
static void replace_member(struct step *step, const struct member *member, struct arena *arena,
                           struct doc *document)
{
    CHECK(!member->object != !member->jobset);
    if (member->object) {
        object_replace(step, member->object, arena, document);
        return;
    }
    struct field_errors errors = {.arena = arena};
    struct jobset_spec spec;
    bool read = workload_read(arena, document, &spec, &errors);
    field_errors_done(&errors);
    CHECK(read); /* only metadata has changed since it was read */
    owners_change(step->objects, member->jobset->uid, member->jobset->document, document);
    jobset_replace(step, member->jobset, arena, document, &spec);
}

void core_delete_jobset(struct step *step, struct jobset *jobset, enum propagation propagation)
{
    CHECK(!jobset->entry.gone);
    bool foreground = propagation == PROPAGATION_FOREGROUND, orphan = propagation == PROPAGATION_ORPHAN;
    if (!jobset->deleted_ns && (foreground || orphan)) {
        struct member member = {NULL, jobset, jobset->namespace_, jobset->document, 0};
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *document = doc_clone(&arena, jobset->document);
        finalizer_add(&arena, document, foreground ? FINALIZER_FOREGROUND : FINALIZER_ORPHAN);
        replace_member(step, &member, &arena, document);
    }
    if (!jobset->deleted_ns && (object_has_finalizer(jobset->document, FINALIZER_FOREGROUND) ||
                                object_has_finalizer(jobset->document, FINALIZER_ORPHAN)))
        objects_wait(step->objects, jobset->uid);
    jobset_delete(step, jobset);
}

static void delete_member(struct step *step, const struct member *member, enum propagation propagation)
{
    CHECK(!member->object != !member->jobset && !member->deleted_ns);
    if (member->object)
        object_delete(step, member->object, propagation);
    else
        core_delete_jobset(step, member->jobset, propagation);
}

static void drop_finalizer(struct step *step, const struct member *member, const char *name)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, member->document);
    finalizer_drop(document, name);
    replace_member(step, member, &arena, document);
}

/* Deletes a dependent with the last of its owners, or removes its references to owners that are deleted. */
static void judge_dependent(struct step *step, obj_id uid, enum propagation propagation)
{
    struct member member;
    if (!find_member(step, uid, &member))
        return;
    const struct doc *list = doc_path(member.document, "metadata", "ownerReferences", NULL);
    size_t solid = 0;
    for (size_t i = 0; i < doc_len(list); i++)
        solid += is_solid(step, doc_at(list, i), member.namespace_);
    if (doc_len(list) == 0 || solid == doc_len(list))
        return;
    if (solid == 0) {
        if (!member.deleted_ns) /* otherwise it is being deleted, and its end wakes the objects that wait
                                 * for it */
            delete_member(step, &member, propagation);
        return;
    }
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, member.document);
    strip_references(step, document, member.namespace_, 0);
    replace_member(step, &member, &arena, document);
}

/* Copies the list of dependents, which changes while they are processed. */
static obj_id *copy_dependents(const struct step *step, struct arena *arena, obj_id owner, size_t *ret_count)
{
    CHECK(owner != 0);
    struct dependents dependents = owners_dependents(step->objects, owner);
    obj_id *uids = ARENA_ARRAY(arena, obj_id, dependents.count);
    mem_copy(uids, dependents.uids, dependents.count * sizeof(*uids));
    *ret_count = dependents.count;
    return uids;
}

static void judge_dependents(struct step *step, obj_id owner, enum propagation propagation)
{
    if (owners_dependents(step->objects, owner).count == 0)
        return; /* nearly always: tasks own nothing */
    struct arena arena ARENA_CLEANUP = {0};
    size_t count;
    const obj_id *uids = copy_dependents(step, &arena, owner, &count);
    for (size_t i = 0; i < count; i++)
        judge_dependent(step, uids[i], propagation);
}

static void orphan_dependents(struct step *step, obj_id owner)
{
    struct arena arena ARENA_CLEANUP = {0};
    size_t count;
    const obj_id *uids = copy_dependents(step, &arena, owner, &count);
    for (size_t i = 0; i < count; i++) {
        struct member member;
        if (!find_member(step, uids[i], &member))
            continue;
        struct arena own ARENA_CLEANUP = {0};
        struct doc *document = doc_clone(&own, member.document);
        strip_references(step, document, member.namespace_, owner);
        replace_member(step, &member, &own, document);
    }
}

void core_orphan_jobset(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset->hidden && !jobset->deleted_ns);
    orphan_dependents(step, jobset->uid);
    if (jobset->form == FORM_JOB)
        orphan_dependents(step, jobset->jobs[0]->uid);
    owners_change(step->objects, jobset->uid, jobset->document, NULL);
    jobset_hide(step, jobset);
}

/* Returns whether `owner` is itself a dependent of `dependent`. Each would wait for the other for ever. */
static bool is_circle(const struct step *step, obj_id dependent, obj_id owner)
{
    CHECK(dependent && owner);
    VEC(obj_id) open = {0};
    struct u64_map seen = {0};
    bool found = false;
    vec_push(&open, dependent);
    while (open.len > 0 && !found) {
        obj_id uid = open.items[--open.len];
        if (u64_map_put(&seen, uid, (void *)step))
            continue;
        found = uid == owner;
        struct dependents below = owners_dependents(step->objects, uid);
        for (size_t i = 0; i < below.count; i++)
            vec_push(&open, below.uids[i]);
    }
    vec_done(&open);
    u64_map_done(&seen);
    return found;
}

/* Returns whether a living dependent blocks its owner's removal (blockOwnerDeletion). */
static bool is_blocked(const struct step *step, obj_id owner)
{
    CHECK(owner != 0);
    struct dependents dependents = owners_dependents(step->objects, owner);
    for (size_t i = 0; i < dependents.count; i++) {
        struct member member;
        if (!find_member(step, dependents.uids[i], &member))
            continue;
        const struct doc *list = doc_path(member.document, "metadata", "ownerReferences", NULL);
        for (size_t r = 0; r < doc_len(list); r++) {
            obj_id uid = 0;
            uid_parse(doc_str(doc_get(doc_at(list, r), "uid"), STR("")), &uid);
            if (uid == owner && doc_bool(doc_get(doc_at(list, r), "blockOwnerDeletion"), false) &&
                !is_circle(step, dependents.uids[i], owner))
                return true;
        }
    }
    return false;
}

/* --- namespaces that end -------------------------------------------------------------------------------- */

struct emptying {
    struct step *step;
    struct arena arena;
    VEC(obj_id) uids;
};

static void note_object(void *context, const struct object *object)
{
    struct emptying *emptying = context;
    vec_push(&emptying->uids, object->uid);
}

/* Deletes all objects in the namespace. Returns whether none is left. */
static bool empty_namespace(struct step *step, const struct object *namespace_)
{
    CHECK(namespace_->kind == OBJECT_NAMESPACE);
    struct emptying emptying = {.step = step};
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++) {
        const struct resource *info = object_kind_info((enum object_kind)kind);
        if (info && info->namespaced)
            object_visit(step->objects, (enum object_kind)kind, namespace_->name, note_object, &emptying);
    }
    for (size_t i = 0; i < step->jobs->jobsets.len; i++)
        if (str_equal(step->jobs->jobsets.items[i]->namespace_, namespace_->name))
            vec_push(&emptying.uids, step->jobs->jobsets.items[i]->uid);
    size_t left = 0;
    for (size_t i = 0; i < emptying.uids.len; i++) {
        struct member member;
        if (!find_member(step, emptying.uids.items[i], &member))
            continue;
        if (!member.deleted_ns)
            delete_member(step, &member, PROPAGATION_BACKGROUND);
        left += find_member(step, emptying.uids.items[i], &member);
    }
    vec_done(&emptying.uids);
    return left == 0;
}

static void end_namespace(struct step *step, struct object *namespace_)
{
    CHECK(namespace_->kind == OBJECT_NAMESPACE);
    if (doc_len(doc_path(namespace_->document, "spec", "finalizers", NULL)) == 0 ||
        !empty_namespace(step, namespace_))
        return;
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, namespace_->document);
    doc_unset(doc_get(document, "spec"), "finalizers");
    object_replace(step, namespace_, &arena, document);
}

/* --- a step --------------------------------------------------------------------------------------------- */

/* Returns whether Jobs or tasks of the JobSet (or processes of a Job or Pod without one) must end before it
 * is removed. */
static bool is_busy(const struct jobset *jobset)
{
    if (jobset->form == FORM_JOBSET)
        return jobset->made > 0 || jobset->old_jobs.len > 0;
    return jobset->old_jobs.len > 0 || (jobset->jobs[0] && jobset->jobs[0]->active > 0);
}

/* Wakes waiting Jobs and Pods without a JobSet whose processes have ended, which removes no object. */
static void wake_own(struct step *step)
{
    size_t count;
    const obj_id *waiting = objects_waiting(step->objects, &count);
    for (size_t i = 0; i < count; i++) {
        const struct jobset *jobset = jobs_find_uid(step->jobs, waiting[i]);
        if (jobset && jobset->form != FORM_JOBSET && !is_busy(jobset))
            objects_wait(step->objects, jobset->uid); /* in the list already: only woken */
    }
}

/* Advances the deletion of a waiting object as far as possible. */
static void look_at_waiting(struct step *step, obj_id uid)
{
    struct member member;
    if (!find_member(step, uid, &member) || !member.deleted_ns) {
        objects_waits_no_more(step->objects, uid);
        return;
    }
    if (object_has_finalizer(member.document, FINALIZER_ORPHAN)) {
        orphan_dependents(step, uid);
        drop_finalizer(step, &member, FINALIZER_ORPHAN);
    } else if (object_has_finalizer(member.document, FINALIZER_FOREGROUND)) {
        judge_dependents(step, uid, PROPAGATION_FOREGROUND);
        bool busy = member.jobset && is_busy(member.jobset);
        if (!busy && !is_blocked(step, uid) && find_member(step, uid, &member))
            drop_finalizer(step, &member, FINALIZER_FOREGROUND);
    } else if (member.object && member.object->kind == OBJECT_NAMESPACE) {
        end_namespace(step, member.object);
    }
}

/* Processes the objects that job/ has removed from its store since the last call. */
static void take_dead(struct step *step, struct collected *seen)
{
    const struct job_store *jobs = step->jobs;
    for (; seen->jobsets < jobs->dead_jobsets.len; seen->jobsets++) {
        const struct jobset *jobset = jobs->dead_jobsets.items[seen->jobsets];
        owners_change(step->objects, jobset->uid, jobset->document, NULL);
        objects_owner_gone(step->objects, jobset->uid);
    }
    for (; seen->jobs < jobs->dead_jobs.len; seen->jobs++) {
        const struct job *job = jobs->dead_jobs.items[seen->jobs];
        objects_owner_gone(step->objects, job->uid);
        for (size_t t = 0; t < job->tasks.len; t++) /* its Pods go with it */
            if (owners_dependents(step->objects, job->tasks.items[t]->pod_uid).count)
                objects_owner_gone(step->objects, job->tasks.items[t]->pod_uid);
    }
    for (; seen->tasks < jobs->dead_tasks.len; seen->tasks++)
        objects_owner_gone(step->objects, jobs->dead_tasks.items[seen->tasks]->pod_uid);
}

bool core_collect(struct step *step, struct collected *seen)
{
    struct object_store *store = step->objects;
    obj_id uid;
    size_t changes = step->effects->list.len;
    take_dead(step, seen);
    wake_own(step);
    while (objects_awake(store)) {
        for (const struct object *gone; (gone = objects_removed(store, seen->objects)); seen->objects++)
            jobs_object_gone(step, gone);
        while (objects_take_gone(store, &uid))
            judge_dependents(step, uid, PROPAGATION_BACKGROUND);
        while (objects_take_doubtful(store, &uid))
            judge_dependent(step, uid, PROPAGATION_BACKGROUND);
        struct arena arena ARENA_CLEANUP = {0};
        size_t count;
        const obj_id *waiting = objects_waiting(store, &count);
        obj_id *copy = ARENA_ARRAY(&arena, obj_id, count); /* the list changes in the loop */
        mem_copy(copy, waiting, count * sizeof(*copy));
        for (size_t i = 0; i < count; i++)
            look_at_waiting(step, copy[i]);
    }
    /* A removed object may have been a queue: admission acts again in this step, as it would after a
     * snapshot. */
    return step->jobs->dirty.len > 0 || step->schedule || step->effects->list.len > changes;
}

void core_collect_restored(struct object_store *store, const struct job_store *jobs)
{
    for (size_t i = 0; i < jobs->jobsets.len; i++) {
        const struct jobset *jobset = jobs->jobsets.items[i];
        if (jobset->hidden)
            continue; /* a hidden JobSet takes no part in ownership */
        owners_change(store, jobset->uid, NULL, jobset->document);
        if (jobset->deleted_ns && (object_has_finalizer(jobset->document, FINALIZER_FOREGROUND) ||
                                   object_has_finalizer(jobset->document, FINALIZER_ORPHAN)))
            objects_wait(store, jobset->uid);
    }
    (void)objects_awake(store); /* all possible actions were done before the snapshot */
}
