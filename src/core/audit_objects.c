/* audit_objects.c - invariants of stored objects, their names and their Workloads, in every state between
 * two steps. */
#include "core/internal.h"

#include "core/admit/admit.h"
#include "core/react/disruption.h"
#include "core/object/life.h"

static void check_namespace(const struct core *core, struct str ns)
{
    CHECK(object_find(core->objects, OBJECT_NAMESPACE, STR(""), ns));
}

static bool is_held(const struct object *object)
{
    return doc_len(doc_path(object->document, "metadata", "finalizers", NULL)) > 0 ||
           (object->kind == OBJECT_NAMESPACE &&
            doc_len(doc_path(object->document, "spec", "finalizers", NULL)) > 0);
}

static void check_object(void *context, const struct object *object)
{
    const struct core *core = context;
    if (object->namespace_.len)
        check_namespace(core, object->namespace_);
    /* An object without finalizers is removed when it is deleted. */
    CHECK(!object->deleted_ns || is_held(object));
}

/* Checks that a workload without quota has no running or starting process. A Pod without a JobSet waits in
 * its gang. */
static void check_at_rest(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            uint8_t state = job->tasks.items[t]->state;
            CHECK(task_ended(state) || state == TASK_STOPPING || state == TASK_PENDING);
        }
    }
}

static void check_workload(void *context, const struct workload *workload)
{
    const struct core *core = context;
    const struct jobset *jobset = workload->jobset;
    CHECK(jobs_find_uid(&core->jobs, jobset->uid) == jobset && !jobset->entry.gone);
    if (workload->state == WORKLOAD_PENDING || workload->state == WORKLOAD_HOLDING)
        check_at_rest(jobset);
}

void core_check_objects(const struct core *core)
{
    objects_visit_all(core->objects, check_object, (void *)core);
    disruptions_check(core);
    workload_visit(core->admit, check_workload, (void *)core);
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        check_namespace(core, jobset->namespace_);
        CHECK(!jobset->grant.reserved || (!jobset->deleted_ns && !jobset_finished(jobset)));
    }
}
