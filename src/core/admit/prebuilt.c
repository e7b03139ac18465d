/* prebuilt.c - Workloads that users make themselves (Kueue, "prebuilt workloads"), and the jobs that take
 * them over.
 *
 * The Workload that a user wrote is stored as a JobSet record of FORM_WORKLOAD (`own`), which runs nothing
 * and is always suspended. While no job has taken it over, the Workload is *bare*: `jobset` equals `own`, and
 * admission reserves machines for that record. A job whose label kueue.x-k8s.io/prebuilt-workload-name names
 * the Workload becomes its controller and takes over the reservation. A Workload whose requests differ from
 * its job's is finished as OutOfSync.
 *
 * Source of the rules: kubernetes-sigs/kueue, the job framework's reconciler.
 */
#include "core/admit/internal.h"

#define LABEL_PREBUILT STR("kueue.x-k8s.io/prebuilt-workload-name")
#define LABEL_JOB_UID  STR("kueue.x-k8s.io/job-uid")

struct str prebuilt_name(const struct jobset *jobset)
{
    bool in_group = jobset->form == FORM_POD &&
                    labels_get(&jobset->spec.labels, STR("kueue.x-k8s.io/pod-group-name"), STR("")).len > 0;
    if (jobset->form == FORM_WORKLOAD || in_group)
        return STR("");
    return labels_get(&jobset->spec.labels, LABEL_PREBUILT, STR(""));
}

bool workload_lives(const struct admit *admit, obj_id uid)
{
    bool lives = u64_map_get(&admit->by_uid, uid) != NULL;
    for (size_t i = 0; i < admit->workloads.len && !lives; i++)
        lives = workload_shown_uid(admit->workloads.items[i]) == uid;
    return lives;
}

/* --- its document ----------------------------------------------------------------------------- */

static void set_document(struct step *step, struct workload *workload, struct arena *arena,
                         struct doc *document, const struct jobset_spec *spec)
{
    CHECK(workload->own && workload->own->form == FORM_WORKLOAD);
    struct jobset *own = workload->own;
    CHECK(workload_is_bare(workload) || spec->rjob_count == own->spec.rjob_count); /* in step with its job */
    owners_change(step->objects, own->uid, own->document, document);
    if (workload_is_bare(workload) && spec->rjob_count != own->spec.rjob_count) {
        mem_free(workload->podsets);
        workload->podsets = NULL;
    }
    jobset_replace(step, own, arena, document, spec);
    workload_refresh(step, workload);
}

static const struct doc *controller_of(const struct doc *document)
{
    const struct doc *list = doc_path(document, "metadata", "ownerReferences", NULL);
    for (size_t i = 0; i < doc_len(list); i++)
        if (doc_bool(doc_get(doc_at(list, i), "controller"), false))
            return doc_at(list, i);
    return NULL;
}

static struct doc *reference_to(struct arena *arena, const struct jobset *jobset, struct str uid)
{
    static const char *const kinds[][2] = {[FORM_JOBSET] = {"jobset.x-k8s.io/v1alpha2", "JobSet"},
                                           [FORM_JOB] = {"batch/v1", "Job"},
                                           [FORM_POD] = {"v1", "Pod"}};
    struct doc *reference = doc_new(arena, DOC_OBJECT);
    doc_set(arena, reference, STR("apiVersion"), doc_new_str(arena, str_from(kinds[jobset->form][0])));
    doc_set(arena, reference, STR("kind"), doc_new_str(arena, str_from(kinds[jobset->form][1])));
    doc_set(arena, reference, STR("name"), doc_new_str(arena, arena_str(arena, jobset->name)));
    doc_set(arena, reference, STR("uid"), doc_new_str(arena, uid));
    doc_set(arena, reference, STR("controller"), doc_new_bool(arena, true));
    doc_set(arena, reference, STR("blockOwnerDeletion"), doc_new_bool(arena, true));
    return reference;
}

/* Makes the job the Workload's controller, and adds the finalizer that keeps the Workload until the job is
 * gone. */
static void claim(struct arena *arena, struct doc *document, const struct jobset *jobset)
{
    char text[UID_TEXT_MAX];
    uid_text(jobset_shown_uid(jobset), text);
    struct str uid = arena_str(arena, str_from(text));
    struct doc *metadata = doc_get(document, "metadata"), *list = doc_get(metadata, "ownerReferences");
    if (!list || list->kind != DOC_ARRAY) {
        list = doc_new(arena, DOC_ARRAY);
        doc_set(arena, metadata, STR("ownerReferences"), list);
    }
    if (!controller_of(document))
        doc_push(arena, list, reference_to(arena, jobset, uid));
    doc_set(arena, doc_need_object(arena, metadata, "labels"), LABEL_JOB_UID, doc_new_str(arena, uid));
    finalizer_add(arena, document, FINALIZER_IN_USE);
}

/* Stores `document`, in which only metadata was changed. */
static void set_metadata(struct step *step, struct workload *workload, struct arena *arena,
                         struct doc *document)
{
    struct field_errors errors = {.arena = arena};
    struct jobset_spec spec;
    bool read = workload_read(arena, document, &spec, &errors);
    field_errors_done(&errors);
    CHECK(read);
    set_document(step, workload, arena, document, &spec);
}

void workload_rewrite(struct step *step, struct workload *workload, struct arena *arena, struct doc *document,
                      const struct jobset_spec *spec)
{
    CHECK(workload->own && !workload->gone);
    const struct jobset *own = workload->own;
    const struct doc *podsets = doc_path(document, "spec", "podSets", NULL);
    if (workload->state == WORKLOAD_HOLDING &&
        !doc_equal(podsets, doc_path(own->document, "spec", "podSets", NULL)))
        workload_drop_hold(step, workload); /* its quota and machines are those of the old PodSets */
    if (!workload_is_bare(workload))
        claim(arena, document, workload->jobset); /* whatever owners the user wrote */
    if (!workload_is_bare(workload) && spec->rjob_count != own->spec.rjob_count)
        prebuilt_release(step, workload);
    workload->generation += !spec_equal(doc_get(own->document, "spec"), doc_get(document, "spec"));
    set_document(step, workload, arena, document, spec);
}

/* --- making one ------------------------------------------------------------------------------- */

struct workload *workload_create(struct step *step, struct arena *arena, struct doc *document,
                                 const struct jobset_spec *spec, bool active)
{
    struct jobset *own = jobset_create(step, arena, document, spec);
    owners_change(step->objects, own->uid, NULL, own->document);
    struct workload *workload = workload_new(step, own);
    CHECK(workload->own == own && workload_is_bare(workload) && own->form == FORM_WORKLOAD);
    workload->active = active;
    for (size_t i = 0; i < step->jobs->jobsets.len; i++) {
        struct jobset *jobset = step->jobs->jobsets.items[i];
        if (str_equal(jobset->namespace_, own->namespace_) && str_equal(prebuilt_name(jobset), own->name) &&
            !workload_of(step->admit, jobset->uid))
            workload_look_again(step, jobset); /* it has waited for this Workload */
    }
    return workload;
}

/* --- comparison of requests --------------------------------------------------- */

/* Whether both have the same amounts; quantities are in their canonical form. */
static bool same_amounts(const struct doc *a, const struct doc *b, const char *which)
{
    const struct doc *x = doc_path(a, "resources", which, NULL), *y = doc_path(b, "resources", which, NULL);
    bool same = doc_len(x) == doc_len(y);
    for (size_t i = 0; same && i < doc_len(x); i++) {
        const struct doc *other = doc_get_str(y, x->object.members[i].key);
        same = other && doc_equal(x->object.members[i].value, other);
    }
    return same;
}

static bool same_containers(const struct doc *a, const struct doc *b, const char *which)
{
    const struct doc *x = doc_path(a, "spec", which, NULL), *y = doc_path(b, "spec", which, NULL);
    bool same = doc_len(x) == doc_len(y);
    for (size_t i = 0; same && i < doc_len(x); i++)
        same = same_amounts(doc_at(x, i), doc_at(y, i), "requests") &&
               same_amounts(doc_at(x, i), doc_at(y, i), "limits");
    return same;
}

static bool same_tolerations(const struct pod_spec *a, const struct pod_spec *b)
{
    bool same = a->toleration_count == b->toleration_count;
    for (size_t i = 0; same && i < a->toleration_count; i++) {
        const struct toleration *x = &a->tolerations[i], *y = &b->tolerations[i];
        same = str_equal(x->key, y->key) && str_equal(x->op, y->op) && str_equal(x->value, y->value) &&
               str_equal(x->effect, y->effect);
    }
    return same;
}

static bool in_sync(const struct jobset *own, const struct jobset *jobset)
{
    CHECK(own->form == FORM_WORKLOAD && own != jobset);
    size_t count = own->spec.rjob_count;
    if (count != jobset->spec.rjob_count)
        return false;
    struct podset *asked = podsets_make(own, own, 0), *asks = podsets_make(jobset, own, 0);
    bool same = true;
    for (size_t r = 0; same && r < count; r++) {
        const struct doc *x = workload_pod_template(own->document, r);
        const struct doc *y = workload_pod_template(jobset->document, r);
        same = asked[r].count == asks[r].count && asked[r].least == asks[r].least &&
               same_containers(x, y, "containers") && same_containers(x, y, "initContainers") &&
               same_tolerations(&own->spec.rjobs[r].job.pod, &jobset->spec.rjobs[r].job.pod);
    }
    mem_free(asked);
    mem_free(asks);
    return same;
}

static void end_out_of_sync(struct step *step, struct workload *workload)
{
    if (!workload_is_bare(workload))
        prebuilt_release(step, workload);
    workload_abandon(step, workload, "OutOfSync",
                     STR("The prebuilt workload is out of sync with its user job"));
    step->admit->acted = true;
}

/* --- taking it over --------------------------------------------------------------------------- */

static void own_by(struct step *step, struct workload *workload, const struct jobset *jobset)
{
    CHECK(workload->own && jobset->form != FORM_WORKLOAD);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document = doc_clone(&arena, workload->own->document);
    claim(&arena, document, jobset);
    set_metadata(step, workload, &arena, document);
}

static void attach(struct step *step, struct workload *workload, struct jobset *jobset)
{
    CHECK(workload_is_bare(workload) && !workload_of(step->admit, jobset->uid));
    CHECK(workload->own->spec.rjob_count == jobset->spec.rjob_count); /* in_sync */
    struct jobset *own = workload->own;
    jobset_keep_reserved(step->jobs, jobset, own->grant.reserved, own->grant.reserved_count);
    jobset_keep_reserved(step->jobs, own, NULL, 0);
    u64_map_put(&step->admit->by_jobset, jobset->uid, workload);
    workload_unbind(workload);
    workload->jobset = jobset;
    workload->parked = false;
    workload->seen = jobset->document;
    workload_refresh(step, workload);
    workload_bind(step, workload);
    workload_changed(step, CHANGE_MODIFIED, workload);
    step->admit->acted = true;
    if (workload->state == WORKLOAD_ADMITTED)
        workload_start(step, workload, true);
}

/* Returns why the job cannot take over the Workload that it names, or NULL if it can. */
static const char *refusal(const struct workload *workload, const struct jobset *jobset)
{
    char uid[UID_TEXT_MAX];
    uid_text(jobset_shown_uid(jobset), uid);
    if (!workload)
        return "does not exist";
    const struct doc *owner = workload->own ? controller_of(workload->own->document) : NULL;
    bool ours = owner && str_is(doc_str(doc_get(owner, "uid"), STR("")), uid);
    if (!workload->own || !workload_is_bare(workload) || (owner && !ours))
        return "belongs to another job";
    if (workload->own->deleted_ns)
        return "is being deleted";
    return workload->state == WORKLOAD_FINISHED ? "is finished: delete it and create it anew" : NULL;
}

struct workload *prebuilt_take(struct step *step, struct jobset *jobset, struct str name)
{
    CHECK(jobset->form != FORM_WORKLOAD && name.len > 0);
    struct workload *workload = (struct workload *)workload_find(step->admit, jobset->namespace_, name);
    const char *why = refusal(workload, jobset);
    if (jobset->form != FORM_POD)
        jobset_set_suspend(step, jobset, true);
    if (why && jobset->changed_seq == step->seq)
        step_note(step, true, "PrebuiltWorkloadUnavailable", ref_jobset(jobset),
                  "Waits for Workload " STR_FORMAT "/" STR_FORMAT
                  " (label kueue.x-k8s.io/prebuilt-workload-name), which %s",
                  STR_ARG(jobset->namespace_), STR_ARG(name), why);
    if (why)
        return NULL;
    own_by(step, workload, jobset);
    if (!in_sync(workload->own, jobset)) {
        end_out_of_sync(step, workload);
        return NULL;
    }
    attach(step, workload, jobset);
    return workload;
}

/* --- letting go ------------------------------------------------------------------------------- */

void prebuilt_release(struct step *step, struct workload *workload)
{
    struct jobset *jobset = workload->jobset, *own = workload->own;
    CHECK(own && (workload->state == WORKLOAD_PENDING || workload->state == WORKLOAD_FINISHED));
    if (jobset != own) {
        u64_map_remove(&step->admit->by_jobset, jobset->uid);
        workload_unbind(workload);
        workload->jobset = own;
        workload->seen = own->document;
        workload->full = 0;
        workload->parked = false;
        workload_refresh(step, workload);
        workload_bind(step, workload);
        if (!jobset->entry.gone)
            workload_look_again(step, jobset); /* the job waits for its Workload again */
        workload_changed(step, CHANGE_MODIFIED, workload);
    }
    if (object_has_finalizer(own->document, FINALIZER_IN_USE)) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *document = doc_clone(&arena, own->document);
        finalizer_drop(document, FINALIZER_IN_USE);
        set_metadata(step, workload, &arena, document);
    }
    step->admit->acted = true;
    CHECK(workload_is_bare(workload) && workload_of(step->admit, own->uid) == workload);
}

/* --- reactions to the document ----------------------------------------------------------- */

static void look_deleted(struct step *step, struct workload *workload)
{
    CHECK(workload->own && workload->own->deleted_ns);
    static const char message[] = "The workload was deleted";
    if (workload->state == WORKLOAD_ADMITTED || workload->state == WORKLOAD_HOLDING)
        workload_evict(step, workload, REASON_DELETED, message);
    else if (workload->state == WORKLOAD_LEAVING)
        workload_condition_set(step, workload, WORKLOAD_EVICTED, true, REASON_DELETED, message);
    else if (!workload_is_bare(workload) || object_has_finalizer(workload->own->document, FINALIZER_IN_USE))
        prebuilt_release(step, workload);
}

void prebuilt_look(struct step *step, struct workload *workload)
{
    CHECK(workload->own && !workload->gone);
    const struct jobset *own = workload->own;
    if (!workload_is_bare(workload) && workload->jobset->entry.gone) {
        workload_lose_job(step, workload);
        prebuilt_release(step, workload);
    }
    if (own->entry.gone) {
        CHECK(workload_is_bare(workload)); /* and is removed with it */
        return;
    }
    if (own->deleted_ns)
        look_deleted(step, workload);
    if (workload->seen_own != own->document) {
        workload->seen_own = own->document;
        workload->parked = false;
        workload_refresh(step, workload);
        workload_bind(step, workload);
    }
    bool waits = workload->state == WORKLOAD_PENDING && !workload_is_bare(workload);
    if (waits && !own->deleted_ns && !in_sync(own, workload->jobset))
        end_out_of_sync(step, workload);
}
