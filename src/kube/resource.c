#include "kube/resource.h"

#include "core/health/fault.h"
#include "core/slice/slice.h"
#include "kube/render.h"

const struct resource *resource_find(struct str group, struct str version, struct str plural)
{
    for (int i = 0; i < RESOURCES; i++) {
        const struct resource *resource = &resource_table[i];
        if (str_is(group, resource->group) && str_is(version, resource->version) &&
            str_is(plural, resource->plural))
            return resource;
    }
    return NULL;
}

const struct resource *resource_of_kind(enum object_kind kind)
{
    for (int i = 0; i < RESOURCES; i++)
        if (resource_table[i].object == kind)
            return &resource_table[i];
    return NULL;
}

const char *resource_api_version(const struct resource *resource)
{
    return resource->api_version;
}

const struct resource_group resource_groups[] = {
    {"", "v1"},
    {"authentication.k8s.io", "v1"},
    {"authorization.k8s.io", "v1"},
    {"batch", "v1"},
    {"events.k8s.io", "v1"},
    {"jobset.x-k8s.io", "v1alpha2"},
    {"kueue.x-k8s.io", "v1beta2"},
    {"kueue.x-k8s.io", "v1beta1"},
    {"metrics.k8s.io", "v1beta1"},
    {"phalanx.dev", "v1"},
    {"policy", "v1"},
    {"rbac.authorization.k8s.io", "v1"},
    {"scheduling.k8s.io", "v1"},
    {"visibility.kueue.x-k8s.io", "v1beta2"},
    {"visibility.kueue.x-k8s.io", "v1beta1"},
};
const size_t resource_group_count = sizeof resource_groups / sizeof *resource_groups;

/* --- one --------------------------------------------------------------------------------------- */

/* An Event's name is "<object>.<slot in hexadecimal>", so that it is found without an index. */
static const struct note *find_note(const struct note_ring *ring, struct str namespace_, struct str name)
{
    size_t dot = name.len;
    while (dot > 0 && name.data[dot - 1] != '.')
        dot--;
    if (dot == 0 || name.len - dot == 0 || name.len - dot > 16)
        return NULL;
    uint64_t slot = 0;
    for (size_t i = dot; i < name.len; i++) {
        char c = name.data[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (digit < 0)
            return NULL;
        slot = slot << 4 | (unsigned)digit;
    }
    if (slot < ring->first || slot >= ring->next)
        return NULL;
    const struct note *note = note_at(ring, slot);
    char text[NOTE_NAME_MAX];
    render_note_name(note, text);
    bool match = note && str_is(name, text) && str_equal(namespace_, render_note_namespace(note));
    return match ? note : NULL;
}

bool resource_is_gone(struct object_ref object)
{
    return object.kind == OBJECT_POD && object.task->evicted && task_ended(object.task->state);
}

struct str resource_namespace(struct object_ref object)
{
    return object.kind == OBJECT_EVENT ? render_note_namespace(object.note) : object_name(object).namespace_;
}

/* Returns the thing that the kind shows, or NULL if there is none, or none that watchers have seen yet. */
static const void *find_fabric(const struct slices *slices, enum object_kind kind, struct str namespace_,
                               struct str name)
{
    struct object_ref found = {.kind = kind};
    if (kind == OBJECT_SWITCH)
        found.optical_switch = switch_find(slices, name);
    else if (kind == OBJECT_CUBE)
        found.cube = cube_find(slices, name);
    else
        found.slice = slice_named(slices, namespace_, name);
    return found.any && shown_of(found)->uid ? found.any : NULL;
}

bool resource_get(const struct resource *resource, const struct core *core, struct str namespace_,
                  struct str name, struct object_ref *ret_object)
{
    struct object_ref found = {.kind = resource->object};
    switch (resource->object) {
    case OBJECT_JOBSET:
        found.jobset = jobs_find(core_jobs(core), namespace_, name);
        break;
    case OBJECT_JOB:
        found.job = jobs_find_job(core_jobs(core), namespace_, name);
        break;
    case OBJECT_POD:
        found.task = jobs_find_pod(core_jobs(core), namespace_, name);
        break;
    case OBJECT_NODE: {
        const struct cluster *cluster = core_cluster(core);
        found.machine = cluster ? cluster_find(cluster, name) : NULL;
        break;
    }
    case OBJECT_EVENT:
        found.object = object_find(core_objects(core), OBJECT_USER_EVENT, namespace_, name);
        if (found.object)
            found.kind = OBJECT_USER_EVENT;
        else
            found.note = find_note(core_notes(core), namespace_, name);
        break;
    case OBJECT_WORKLOAD:
        found.workload = workload_find(core_admit(core), namespace_, name);
        break;
    case OBJECT_FAULT:
        found.fault = fault_find(core_health(core), name);
        break;
    case OBJECT_CUBE:
    case OBJECT_SWITCH:
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION:
        found.any = find_fabric(core_slices(core), resource->object, namespace_, name);
        break;
    default:
        CHECK(resource_is_stored(resource));
        found.object = object_find(core_objects(core), resource->object, namespace_, name);
    }
    if (!found.any || resource_is_gone(found))
        return false;
    *ret_object = found;
    return true;
}

/* --- all --------------------------------------------------------------------------------------- */

struct visiting {
    resource_visit_fn *visit;
    void *context;
    struct str namespace_; /* empty: all */
};

static bool in_namespace(const struct visiting *visiting, struct str namespace_)
{
    return visiting->namespace_.len == 0 || str_equal(visiting->namespace_, namespace_);
}

static void visit_job(void *context, const struct job *job)
{
    struct visiting *visiting = context;
    if (in_namespace(visiting, job->jobset->namespace_))
        visiting->visit(visiting->context, (struct object_ref){.kind = OBJECT_JOB, .job = job}, job->name);
}

static void visit_task(void *context, const struct task *task)
{
    struct visiting *visiting = context;
    struct object_ref pod = {.kind = OBJECT_POD, .task = task};
    if (in_namespace(visiting, task->job->jobset->namespace_) && !resource_is_gone(pod))
        visiting->visit(visiting->context, pod, task->name);
}

static void visit_object(void *context, const struct object *object)
{
    struct visiting *visiting = context;
    struct object_ref ref = {.kind = object->kind, .object = object};
    visiting->visit(visiting->context, ref, object->name);
}

static void visit_workload(void *context, const struct workload *workload)
{
    struct visiting *visiting = context;
    const struct workload *const *members;
    if (workload_members(workload, &members) && members[0] != workload)
        return; /* a group is shown once, at the place of its first member */
    workload = workload_representative(workload);
    if (in_namespace(visiting, workload->jobset->namespace_))
        visiting->visit(visiting->context, (struct object_ref){.kind = OBJECT_WORKLOAD, .workload = workload},
                        workload->name);
}

static void visit_fault(void *context, const struct fault *fault)
{
    struct visiting *visiting = context;
    struct object_ref ref = {.kind = OBJECT_FAULT, .fault = fault};
    visiting->visit(visiting->context, ref, fault->name);
}

/* Visits the control plane's Events. A client's Event of the same name takes precedence. */
static void visit_notes(struct visiting *visiting, const struct core *core)
{
    const struct note_ring *ring = core_notes(core);
    for (uint64_t slot = ring->first; slot < ring->next; slot++) {
        const struct note *note = note_at(ring, slot);
        if (!note || !in_namespace(visiting, render_note_namespace(note)))
            continue;
        char name[NOTE_NAME_MAX];
        render_note_name(note, name);
        if (object_find(core_objects(core), OBJECT_USER_EVENT, render_note_namespace(note), str_from(name)))
            continue;
        visiting->visit(visiting->context, (struct object_ref){.kind = OBJECT_EVENT, .note = note},
                        str_from(name));
    }
}

static void visit_shown(const struct visiting *visiting, struct object_ref object)
{
    const struct shown *shown = shown_of(object);
    if (shown->uid && in_namespace(visiting, shown->namespace_))
        visiting->visit(visiting->context, object, shown->name);
}

/* Visits Cubes or Switches by pod and number; they have no namespace. */
static void visit_pods(const struct visiting *visiting, const struct slices *slices, enum object_kind kind)
{
    struct visiting all = {visiting->visit, visiting->context, STR("")};
    for (size_t p = 0; p < slices->pod_count; p++) {
        const struct pod_now *pod = slices->pods[p];
        uint32_t count = !pod->switches ? 0 : kind == OBJECT_CUBE ? pod->cubes : POD_SWITCHES;
        for (uint32_t i = 0; i < count; i++)
            visit_shown(&all, kind == OBJECT_CUBE
                                  ? (struct object_ref){kind, {.cube = &pod->all_cubes[i]}}
                                  : (struct object_ref){kind, {.optical_switch = &pod->switches[i]}});
    }
}

/* Visits Slices or FabricSessions by the creation of their JobSets. */
static void visit_slices(const struct visiting *visiting, const struct slices *slices, enum object_kind kind)
{
    for (size_t i = 0; i < slices->list.len; i++)
        visit_shown(visiting, (struct object_ref){kind, {.slice = slices->list.items[i]}});
}

void resource_visit(const struct resource *resource, const struct core *core, struct str namespace_,
                    resource_visit_fn *visit, void *context)
{
    struct visiting visiting = {visit, context, namespace_};
    const struct job_store *jobs = core_jobs(core);
    const struct cluster *cluster = core_cluster(core);
    switch (resource->object) {
    case OBJECT_JOBSET:
        for (size_t i = 0; i < jobs->jobsets.len; i++) {
            const struct jobset *jobset = jobs->jobsets.items[i];
            if (jobset_is_seen(jobset) && in_namespace(&visiting, jobset->namespace_))
                visit(context, (struct object_ref){.kind = OBJECT_JOBSET, .jobset = jobset}, jobset->name);
        }
        break;
    case OBJECT_JOB:
        jobs_visit_jobs(jobs, visit_job, &visiting);
        break;
    case OBJECT_POD:
        jobs_visit_tasks(jobs, visit_task, &visiting);
        break;
    case OBJECT_NODE:
        for (size_t i = 0; cluster && i < cluster->machine_count; i++) {
            const struct machine *machine = &cluster->machines[i];
            visit(context, (struct object_ref){.kind = OBJECT_NODE, .machine = machine}, machine->name);
        }
        break;
    case OBJECT_EVENT:
        visit_notes(&visiting, core);
        object_visit(core_objects(core), OBJECT_USER_EVENT, namespace_, visit_object, &visiting);
        break;
    case OBJECT_WORKLOAD:
        workload_visit(core_admit(core), visit_workload, &visiting);
        break;
    case OBJECT_FAULT:
        fault_visit(core_health(core), visit_fault, &visiting);
        break;
    case OBJECT_CUBE:
    case OBJECT_SWITCH:
        visit_pods(&visiting, core_slices(core), resource->object);
        break;
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION:
        visit_slices(&visiting, core_slices(core), resource->object);
        break;
    default:
        CHECK(resource_is_stored(resource));
        object_visit(core_objects(core), resource->object, namespace_, visit_object, &visiting);
    }
}
