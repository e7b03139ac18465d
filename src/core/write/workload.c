/* workload.c - API writes to JobSets, and to Jobs and Pods without one. */
#include "doc/json.h"
#include "core/admit/admit.h"
#include "core/job/store.h"
#include "core/react/disruption.h"
#include "core/react/react.h"
#include "core/job/folder.h"
#include "core/words/limits.h"
#include "core/object/life.h"

/* Estimate of a small workload's memory: for its defaults and typed view, and for each byte of its text. */
enum { PREPARED_BYTES = 4 * 1024, PREPARED_BYTES_PER_BYTE = 9 };

static enum form form_of(const struct writing *writing)
{
    CHECK(resource_row(writing->write->object)->rules == RULES_WORKLOAD);
    return writing->write->object == OBJECT_POD   ? FORM_POD
           : writing->write->object == OBJECT_JOB ? FORM_JOB
                                                  : FORM_JOBSET;
}

static bool find_target(const struct writing *writing, struct jobset **ret_jobset,
                        struct object_ref *ret_ref);

/* Returns the JobSet of the object that the write replaces, or NULL. */
static const struct jobset *target_of(const struct writing *writing)
{
    struct jobset *jobset;
    struct object_ref ref;
    return writing->write->verb == WRITE_REPLACE && find_target(writing, &jobset, &ref) ? jobset : NULL;
}

/* Parses, defaults, reads and validates the document. Returns false if the write is refused. */
static bool prepare(const struct writing *writing, struct arena *arena, struct doc **ret_document,
                    struct jobset_spec *ret_spec)
{
    struct doc *document;
    if (writing->write->body.len <= OBJECT_BYTES_MAX)
        arena_reserve(arena, PREPARED_BYTES + writing->write->body.len * PREPARED_BYTES_PER_BYTE);
    if (!write_parse(writing, arena, OBJECT_BYTES_MAX, &document))
        return false;
    if (workload_form(document) != form_of(writing))
        return write_refuse_kind(writing, object_kind_name(writing->write->object), document);
    write_set_name(writing, arena, document, true);
    const struct jobset *target = target_of(writing);
    if (target && target->form == FORM_POD && form_of(writing) == FORM_POD)
        jobset_keep_node_name(writing->step, target, document);
    struct field_errors *errors = write_new_errors(writing);
    workload_default(arena, document);
    admit_default(writing->core->admit, target, arena, document);
    if (workload_read(arena, document, ret_spec, errors)) {
        workload_validate(document, ret_spec, errors);
        workload_validate_replicas(document, ret_spec, target ? &target->spec : NULL, errors);
        workload_validate_slice(document, ret_spec, errors);
        workload_validate_topology(document, ret_spec, target ? &target->spec : NULL, errors);
        if (form_of(writing) == FORM_JOBSET)
            jobset_validate_new(document, ret_spec, errors);
        if (writing->write->verb == WRITE_CREATE)
            admit_validate_new(document, ret_spec, errors);
    }
    if (errors->list.len == 0) {
        field_errors_done(errors);
        *ret_document = document;
        return true;
    }
    return write_refuse_invalid(writing, errors,
                                doc_str(doc_path(document, "metadata", "name", NULL), STR("")));
}

/* Returns whether a new workload that names no queue gets the LocalQueue "default". */
static bool has_default_queue(const struct writing *writing)
{
    return admit_has_default_queue(writing->core->admit, write_namespace(writing));
}

/* Takes the check's result. Returns false if there is none, or prepare() would give another one now. */
static bool take_prepared(const struct writing *writing, struct arena *arena, struct doc **ret_document,
                          struct jobset_spec *ret_spec)
{
    struct prepared_write *prepared = writing->write->prepared;
    if (writing->dry || !prepared || !prepared->document ||
        prepared->default_queue != has_default_queue(writing))
        return false;
    CHECK(workload_form(prepared->document) == form_of(writing));
    *arena = prepared->arena;
    *ret_document = prepared->document;
    *ret_spec = prepared->spec;
    *prepared = (struct prepared_write){0};
    return true;
}

/* Passes the prepared document and spec to the caller of the check, if it wants them. */
static void keep_prepared(const struct writing *writing, struct arena *arena, struct doc *document,
                          const struct jobset_spec *spec)
{
    CHECK(writing->dry && writing->write->verb == WRITE_CREATE);
    if (!writing->ret_prepared)
        return;
    struct prepared_write *prepared = mem_alloc(sizeof(*prepared));
    prepared->arena = *arena;
    prepared->document = document;
    prepared->spec = *spec;
    prepared->default_queue = has_default_queue(writing);
    *arena = (struct arena){0};
    *writing->ret_prepared = prepared;
}

/* Finds the object to write and its JobSet. Returns false if there is none. */
static bool find_target(const struct writing *writing, struct jobset **ret_jobset, struct object_ref *ret_ref)
{
    const struct job_store *store = &writing->core->jobs;
    struct str ns = writing->write->namespace_, name = writing->write->name;
    if (writing->write->object == OBJECT_JOBSET) {
        struct jobset *jobset = jobs_find(store, ns, name);
        *ret_jobset = jobset;
        *ret_ref = (struct object_ref){OBJECT_JOBSET, {.jobset = jobset}};
    } else if (writing->write->object == OBJECT_JOB) {
        struct job *job = jobs_find_job(store, ns, name);
        *ret_jobset = job ? job->jobset : NULL;
        *ret_ref = (struct object_ref){OBJECT_JOB, {.job = job}};
    } else {
        struct task *task = jobs_find_pod(store, ns, name);
        *ret_jobset = task ? task->job->jobset : NULL;
        *ret_ref = (struct object_ref){OBJECT_POD, {.task = task}};
    }
    return *ret_jobset != NULL;
}

/* Does the same, and checks the write's preconditions. Returns false if the write is refused. */
static bool find_to_change(const struct writing *writing, struct jobset **ret_jobset,
                           struct object_ref *ret_ref)
{
    if (!find_target(writing, ret_jobset, ret_ref))
        return write_refuse_missing(writing);
    return write_still_holds(writing, *ret_ref);
}

/* Checks that every name that the workload generates is unused. */
static bool check_names(const struct writing *writing, struct str ns, struct str name,
                        const struct jobset_spec *spec)
{
    CHECK(name.len > 0);
    const struct job_store *store = &writing->core->jobs;
    enum form form = form_of(writing);
    struct str taken;
    if ((form == FORM_JOBSET && jobs_find(store, ns, name)) ||
        (form == FORM_JOB && jobs_find_job(store, ns, name)) ||
        (form == FORM_POD && jobs_find_pod(store, ns, name)))
        return write_refuse_taken(writing, object_kind_title(writing->write->object), name);
    if (form != FORM_POD && jobs_names_taken(store, form, ns, name, spec, writing->reply, &taken))
        return write_refuse_taken(writing, "jobs.batch", taken);
    return true;
}

/* Checks the claims that the JobSet would make. The step repeats it: stored objects may have changed. */
static bool check_claims(const struct writing *writing, const struct doc *document, struct str name)
{
    struct field_errors *errors = write_new_errors(writing);
    jobset_check_claims(writing->core->objects, document, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, name);
    field_errors_done(errors);
    return true;
}

/* Refuses a Pod of a group whose Workload would have the name of one that a user made. */
static bool check_group(const struct writing *writing, struct str ns, const struct jobset_spec *spec)
{
    struct str group = labels_get(&spec->labels, STR("kueue.x-k8s.io/pod-group-name"), STR(""));
    const struct workload *workload =
        form_of(writing) == FORM_POD && group.len ? workload_find(writing->core->admit, ns, group) : NULL;
    if (!workload || !workload->own)
        return true;
    return write_refuse(writing, 409, "Conflict", NULL,
                        "there is a Workload \"" STR_FORMAT "\" already, which no Pod made: give the group "
                        "(label kueue.x-k8s.io/pod-group-name) another name, or delete the Workload",
                        STR_ARG(group));
}

/* Refuses the checkpoint folder of another unfinished JobSet: the two would delete each other's steps. */
static bool check_folder(const struct writing *writing, struct str ns, const struct jobset_spec *spec)
{
    struct str folder = labels_get(&spec->annotations, STR(CHECKPOINT_FOLDER_KEY), STR(""));
    const struct jobset *writer = folder.len ? folder_writer(&writing->core->jobs, ns, folder) : NULL;
    if (!writer)
        return true;
    return write_refuse(writing, 409, "Conflict", NULL,
                        "checkpoint folder \"" STR_FORMAT "\" (annotation " CHECKPOINT_FOLDER_KEY
                        ") is JobSet " STR_FORMAT
                        "'s, which has not finished: delete that one first, or name "
                        "another folder",
                        STR_ARG(folder), STR_ARG(writer->name));
}

static struct object_ref shown(const struct jobset *jobset)
{
    CHECK(jobset->form != FORM_WORKLOAD);
    if (jobset->form == FORM_JOBSET)
        return ref_jobset(jobset);
    const struct job *job = jobset->jobs[0];
    return jobset->form == FORM_JOB ? ref_job(job) : ref_task(job->indexes[0].task);
}

static bool create_workload(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_CREATE);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    struct jobset_spec spec;
    if (!take_prepared(writing, &arena, &document, &spec) && !prepare(writing, &arena, &document, &spec))
        return false;
    struct str ns = doc_str(doc_path(document, "metadata", "namespace", NULL), STR(""));
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (!check_claims(writing, document, name) || !check_names(writing, ns, name, &spec) ||
        !check_group(writing, ns, &spec) || !check_folder(writing, ns, &spec) ||
        !write_namespace_open(writing, ns) || !write_quota_allows(writing, ns, document, &spec) ||
        !write_budget_allows(writing, ns, 0, document))
        return false;
    if (writing->core->jobs.jobsets.len >= JOBSETS_MAX)
        return write_refuse(writing, 403, "Forbidden", NULL, "there are %d JobSets already (JOBSETS_MAX)",
                            JOBSETS_MAX);
    if (writing->dry) {
        write_advise(writing, document, &spec);
        keep_prepared(writing, &arena, document, &spec);
        return true;
    }
    namespace_need(writing->step, ns);
    struct jobset *jobset = jobset_create(writing->step, &arena, document, &spec);
    owners_change(writing->core->objects, jobset->uid, NULL, jobset->document);
    objects_doubt(writing->core->objects, jobset->uid, jobset->document);
    core_excluded_by(writing->core, writing->step, &jobset->spec);
    return write_accept(writing, 201, shown(jobset));
}

/* Returns whether the containers' requests may change. The workload must hold no quota. A JobSet must be
 * suspended before or after the write (its ending tasks hold resources by the old spec), a Job must be
 * suspended and its pods must have ended. */
static bool may_ask_anew(const struct writing *writing, const struct jobset *jobset,
                         const struct doc *document)
{
    const struct workload *workload = workload_of(writing->core->admit, jobset->uid);
    bool booked = workload && workload->state != WORKLOAD_PENDING && workload->state != WORKLOAD_FINISHED;
    bool suspends = doc_bool(doc_path(document, "spec", "suspend", NULL), false);
    bool free_of_pods = jobset->form == FORM_JOBSET ? jobset->spec.suspend || suspends
                                                    : jobset->spec.suspend && !jobset_has_living(jobset);
    return free_of_pods && !booked;
}

static bool check_update(const struct writing *writing, const struct jobset *jobset,
                         const struct doc *document)
{
    struct field_errors *errors = write_new_errors(writing);
    bool started = jobset->form == FORM_JOB && jobset->jobs[0] && jobset->jobs[0]->start_ns;
    workload_validate_update(jobset->document, document, started, errors);
    if (jobset->form != FORM_POD && errors->list.len == 0 && !may_ask_anew(writing, jobset, document))
        workload_validate_resources_kept(jobset->document, document, errors);
    if (jobset->form == FORM_JOBSET && jobset_finished(jobset) && errors->list.len == 0)
        jobset_validate_sizes_kept(jobset->document, document, errors);
    admit_validate_update(writing->core->admit, jobset, document, errors);
    if (errors->list.len == 0) {
        field_errors_done(errors);
        return true;
    }
    return write_refuse_invalid(writing, errors, jobset->name);
}

/* Refuses a change of an object that a JobSet or a Job made: users change its owner instead. */
static bool refuse_owned(const struct writing *writing, const struct jobset *jobset)
{
    if (jobset->hidden)
        return write_refuse(
            writing, 403, "Forbidden", NULL,
            "%s \"" STR_FORMAT
            "\" is forbidden: its owner was deleted, so only its labels and annotations may change",
            object_kind_title(writing->write->object), STR_ARG(writing->write->name));
    static const char *const owners[] = {[FORM_JOBSET] = "JobSet", [FORM_JOB] = "Job", [FORM_POD] = "Pod"};
    CHECK((size_t)jobset->form < sizeof owners / sizeof *owners);
    return write_refuse(writing, 403, "Forbidden", NULL,
                        "%s \"" STR_FORMAT "\" is forbidden: it belongs to %s " STR_FORMAT ": change that",
                        object_kind_title(writing->write->object), STR_ARG(writing->write->name),
                        owners[jobset->form], STR_ARG(jobset->name));
}

static bool replace_workload(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_REPLACE);
    struct jobset *jobset;
    struct object_ref ref;
    if (!find_target(writing, &jobset, &ref))
        return write_refuse_missing(writing);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    struct jobset_spec spec;
    if (!write_still_holds(writing, ref))
        return false;
    if (jobset->form != form_of(writing) || jobset->hidden)
        return refuse_owned(writing, jobset);
    if (!prepare(writing, &arena, &document, &spec))
        return false;
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (!str_equal(name, jobset->name))
        return write_refuse(writing, 400, "BadRequest", NULL,
                            "the name of the object (" STR_FORMAT
                            ") does not match the name on the URL (" STR_FORMAT ")",
                            STR_ARG(name), STR_ARG(jobset->name));
    if (!check_update(writing, jobset, document) ||
        !write_finalizers_hold(writing, jobset->deleted_ns, jobset->document, document) ||
        !write_budget_allows(writing, jobset->namespace_, objects_charge(writing->core->objects, jobset->uid),
                             document))
        return false;
    if (writing->dry) {
        write_advise(writing, document, &spec);
        return true;
    }
    owners_change(writing->core->objects, jobset->uid, jobset->document, document);
    jobset_replace(writing->step, jobset, &arena, document, &spec);
    objects_doubt(writing->core->objects, jobset->uid, jobset->document);
    return write_accept(writing, 200, ref);
}

static bool has_children(const struct jobset *jobset, struct object_ref ref)
{
    CHECK(ref.kind == OBJECT_JOB || ref.kind == OBJECT_JOBSET);
    return ref.kind == OBJECT_JOB ? ref.job->tasks.len > 0 : jobset->made > 0 || jobset->old_jobs.len > 0;
}

/* Removes the workload and leaves the objects that it made as orphans. */
static bool orphan_workload(const struct writing *writing, struct jobset *jobset, struct object_ref ref)
{
    CHECK(writing->write->propagation == PROPAGATION_ORPHAN);
    const struct doc *finalizers = doc_path(jobset->document, "metadata", "finalizers", NULL);
    const char *why = NULL;
    if (jobset->form != form_of(writing))
        why = "its JobSet makes it anew at once, under host names that its pods would still have";
    else if (workload_of(writing->core->admit, jobset->uid))
        why = "a queue has admitted it as a whole and would take its quota back";
    else if (jobset->deleted_ns || doc_len(finalizers) > 0)
        why = "it is being deleted already, or has finalizers that have to go first";
    if (why)
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "%s \"" STR_FORMAT "\" is forbidden: its dependents cannot outlive it (%s): "
                            "delete it with propagationPolicy Background or Foreground",
                            object_kind_title(writing->write->object), STR_ARG(writing->write->name), why);
    if (writing->dry)
        return true;
    core_orphan_jobset(writing->step, jobset);
    return write_accept(writing, 200, ref);
}

/* Records the user's deletion or eviction as the cause of the task ends that follow from it. */
static void note_order(const struct writing *writing, const struct task *task)
{
    struct buf text BUF_CLEANUP = {0};
    struct end_fault order;
    if (task_ended(task->state) || task->doomed || task->state == TASK_STOPPING ||
        task->machine == MACHINE_NONE)
        return;
    const struct machine *machine = &writing->core->cluster.machines[task->machine];
    const char *code = machine->cordoned       ? ORDER_DRAIN
                       : writing->write->evict ? ORDER_EVICTION
                                               : ORDER_DELETION;
    buf_printf(&text, "Pod " STR_FORMAT "/" STR_FORMAT " was %s%s", STR_ARG(task->job->jobset->namespace_),
               STR_ARG(task->name), writing->write->evict ? "evicted" : "deleted",
               machine->cordoned ? " from its machine, which is cordoned" : "");
    end_fault_ordered(code, machine->name, writing->write->user, buf_str(&text), writing->step->now_ns,
                      &order);
    ends_strike(writing->step, task->job->jobset, &order);
}

/* Deletes or evicts a Pod. An eviction from a draining machine is not a request about this Pod. */
static void evict(const struct writing *writing, struct task *task)
{
    bool evicted = writing->write->evict;
    if (evicted && jobs_are_drained(task))
        return;
    note_order(writing, task);
    if (evicted && jobs_drain(writing->step, task, writing->write->grace_s))
        return;
    if (task->machine != MACHINE_NONE && writing->core->cluster.machines[task->machine].cordoned)
        task->loss = LOSS_EVICTED;
    task_evict(writing->step, task, writing->write->grace_s);
}

/* Deletes a workload, or a Job or Pod that a workload made: the workload then makes a new one. */
static bool delete_workload(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_DELETE);
    struct jobset *jobset;
    struct object_ref ref;
    if (!find_to_change(writing, &jobset, &ref))
        return false;
    if (writing->write->propagation == PROPAGATION_ORPHAN && ref.kind != OBJECT_POD &&
        has_children(jobset, ref))
        return orphan_workload(writing, jobset, ref);
    if (writing->write->evict && ref.kind == OBJECT_POD && !disruption_allows(writing, ref.task))
        return false;
    if (writing->dry)
        return true;
    if (ref.kind == OBJECT_POD)
        evict(writing, (struct task *)ref.task);
    else if (jobset->form == form_of(writing))
        core_delete_jobset(writing->step, jobset, writing->write->propagation);
    else
        job_delete(writing->step, (struct job *)ref.job);
    return write_accept(writing, 200, ref);
}

/* Stores the status of an object that another controller manages. */
static bool write_foreign_status(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_STATUS);
    struct jobset *jobset;
    struct object_ref ref;
    if (!find_to_change(writing, &jobset, &ref))
        return false;
    if (jobset->form != form_of(writing) || !jobset_is_foreign(jobset))
        return write_refuse(writing, 403, "Forbidden", NULL,
                            "%s \"" STR_FORMAT
                            "\" is forbidden: its status is written by the control plane (spec.managedBy "
                            "names no other controller)",
                            object_kind_title(writing->write->object), STR_ARG(writing->write->name));
    struct arena arena ARENA_CLEANUP = {0};
    struct error error = {0};
    struct doc *document, *status;
    if (writing->write->body.len > OBJECT_BYTES_MAX)
        return write_refuse(writing, 413, "RequestEntityTooLarge", NULL, "the object is larger than %d bytes",
                            OBJECT_BYTES_MAX);
    if (json_parse(&arena, writing->write->body, &document, &error) < 0)
        return write_refuse(writing, 400, "BadRequest", NULL, "the object is not JSON: %s", error.text);
    status = doc_get(document, "status");
    if (!status || status->kind != DOC_OBJECT)
        return write_refuse(writing, 400, "BadRequest", NULL, "status must be an object");
    if (writing->dry)
        return true;
    jobset_set_foreign_status(writing->step, jobset, status);
    return write_accept(writing, 200, ref);
}

/* Checks that no label that controllers set is changed, added or removed. */
static void check_controlled(const struct labels *now, const struct doc *map, const char *field,
                             struct field_errors *errors)
{
    for (size_t i = 0; i < now->len; i++) {
        const struct doc *value = doc_get_str(map, now->items[i].key);
        if (meta_is_controlled(now->items[i].key) &&
            (!value || !str_equal(doc_str(value, STR("")), now->items[i].value)))
            field_error_add(errors, now->items[i].key, "FieldValueForbidden", NULL,
                            "Forbidden: metadata.%s of its controller may not be changed", field);
    }
    for (size_t i = 0; map && map->kind == DOC_OBJECT && i < map->object.len; i++) {
        struct str key = map->object.members[i].key;
        if (meta_is_controlled(key) && !labels_get(now, key, (struct str){0}).data)
            field_error_add(errors, key, "FieldValueForbidden", NULL,
                            "Forbidden: metadata.%s of this name are the controllers'", field);
    }
}

static bool write_metadata(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_METADATA);
    struct jobset *jobset;
    struct object_ref ref;
    if (!find_to_change(writing, &jobset, &ref))
        return false;
    bool pod = ref.kind == OBJECT_POD;
    if (ref.kind == OBJECT_JOBSET || jobset->form == form_of(writing))
        return write_refuse_verb(writing);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    if (!write_parse(writing, &arena, OBJECT_BYTES_MAX, &document))
        return false;
    struct field_errors *errors = write_new_errors(writing);
    const struct doc *labels = doc_path(document, "metadata", "labels", NULL);
    const struct doc *annotations = doc_path(document, "metadata", "annotations", NULL);
    struct task *task = pod ? (struct task *)ref.task : NULL;
    struct job *job = pod ? task->job : (struct job *)ref.job;
    struct labels now = job_labels(job, task, &arena), notes = job_annotations(job, task, &arena);
    metadata_check(document, errors);
    check_controlled(&now, labels, "labels", errors);
    check_controlled(&notes, annotations, "annotations", errors);
    const struct doc *gates = pod ? doc_path(document, "spec", "schedulingGates", NULL) : NULL;
    validate_gates_kept(pod ? task_gates(task, &arena) : NULL, gates, errors);
    if (errors->list.len)
        return write_refuse_invalid(writing, errors, writing->write->name);
    field_errors_done(errors);
    if (writing->dry)
        return true;
    job_set_meta(writing->step, job, task, labels, annotations);
    if (gates && task_keep_gates(task, gates)) {
        writing->step->schedule = true;
        step_changed(writing->step, CHANGE_MODIFIED, ref);
    }
    return write_accept(writing, 200, ref);
}

/* Diagnoses all living tasks of the object. Refuses a Job or Pod that a JobSet made, and any Pod. */
static bool diagnose_workload(const struct writing *writing)
{
    CHECK(writing->write->verb == WRITE_DIAGNOSE);
    struct jobset *jobset;
    struct object_ref ref;
    if (!find_target(writing, &jobset, &ref))
        return write_refuse_missing(writing);
    if (ref.kind == OBJECT_POD || jobset->form != form_of(writing))
        return write_refuse_verb(writing);
    if (!hang_may_ask(jobset))
        return write_refuse(writing, 409, "Conflict", NULL, "%s \"" STR_FORMAT "\" has no task that runs",
                            object_kind_title(writing->write->object), STR_ARG(writing->write->name));
    if (writing->dry)
        return true;
    hang_ask(writing->step, jobset);
    return write_accept(writing, 200, ref);
}

bool write_workload(const struct writing *writing)
{
    switch (writing->write->verb) {
    case WRITE_CREATE:
        return create_workload(writing);
    case WRITE_REPLACE:
        return replace_workload(writing);
    case WRITE_DELETE:
        return delete_workload(writing);
    case WRITE_STATUS:
        return write_foreign_status(writing);
    case WRITE_METADATA:
        return write_metadata(writing);
    case WRITE_DIAGNOSE:
        return diagnose_workload(writing);
    case WRITE_INJECT:
        break;
    }
    return write_refuse_verb(writing);
}
