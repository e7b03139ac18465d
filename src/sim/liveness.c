/* liveness.c - what must be reached after everything has healed: every machine is ready, no task is starting
 * or stopping, nothing waits that could run, and every JobSet has ended unless its user suspended it. */
#include "sim/world.h"

#include "doc/json.h"
#include "core/gang/trial.h"

static bool machines_ready(const struct world *world, char *ret_why, size_t size)
{
    const struct cluster *cluster = core_cluster(world->controller.core);
    for (size_t i = 0; i < cluster->machine_count; i++) {
        const struct machine *machine = &cluster->machines[i];
        if (machine->state == MACHINE_READY && !machine->cordoned &&
            (machine->isolation == ISOLATION_HEALTHY || machine->isolation == ISOLATION_RETURNED))
            continue;
        snprintf(ret_why, size, "machine " STR_FORMAT " is %s, %s%s", STR_ARG(machine->name),
                 machine_lifecycle.names[machine->state], isolation_lifecycle.names[machine->isolation],
                 machine->cordoned ? ", cordoned" : "");
        return false;
    }
    return true;
}

struct stuck {
    const struct task *task;
};

static void find_stuck(void *context, const struct task *task)
{
    struct stuck *stuck = context;
    if (!task_ended(task->state) && task->state != TASK_PENDING)
        stuck->task = task;
}

static bool tasks_quiet(const struct world *world, char *ret_why, size_t size)
{
    struct stuck stuck = {0};
    jobs_visit_tasks(core_jobs(world->controller.core), find_stuck, &stuck);
    if (!stuck.task)
        return true;
    snprintf(ret_why, size, "task " STR_FORMAT " is %s on m-%u", STR_ARG(stuck.task->name),
             task_lifecycle.names[stuck.task->state], stuck.task->machine + 1);
    return false;
}

/* Returns whether a gang of the JobSet can never run, even on an empty cluster with every machine ready. Then
 * its user asked for too much. */
static bool waits_for_ever(const struct world *world, const struct jobset *jobset)
{
    const struct core *core = world->controller.core;
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (jobset->gangs.items[g]->state == GANG_QUEUED && !gang_is_spare(jobset->gangs.items[g]))
            return !gang_feasible(core_jobs(core), core_cluster(core), jobset->gangs.items[g], NULL);
    return false;
}

/* Returns whether a workload may stay as it is. Quotas are generous by now, so a workload waits only for
 * machines that the cluster does not have, and its condition must say so. */
static bool workload_settled(const struct world *world, const struct workload *workload, char *ret_why,
                             size_t size)
{
    const struct core *core = world->controller.core;
    const struct workload_condition *reserved = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
    const struct workload_condition *evicted = &workload->conditions[WORKLOAD_EVICTED];
    const char *reason = reserved->present ? reserved->reason : "";
    struct buf why BUF_CLEANUP = {0};
    if (!workload->active && evicted->present &&
        !strcmp(evicted->reason, "DeactivatedDueToMaximumExecutionTimeExceeded"))
        return true;
    if (workload->state == WORKLOAD_PENDING && workload->active &&
        !strcmp(reason, "TopologyPlacementFailed") &&
        !jobset_trial(core_jobs(core), core_cluster(core), workload->jobset, &(struct trial){0}, NULL, &why))
        return true;
    static const char *const states[] = {"pending", "holding", "admitted", "leaving", "finished"};
    snprintf(ret_why, size, "workload " STR_FORMAT " is %s%s: %s: %.200s", STR_ARG(workload->name),
             states[workload->state], workload->active ? "" : ", inactive", reason,
             reserved->message.data ? reserved->message.data : "");
    return false;
}

/* Returns whether the owner was deleted, its objects remain as orphans, and none of its jobs is active. */
static bool orphans_rest(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        bool rests = !job || job->active == 0;
        if (!rests || (job && jobset->form == FORM_JOBSET && job->state == JOB_ACTIVE))
            return false;
    }
    return jobset->hidden && !jobset->deleted_ns;
}

static bool jobsets_ended(const struct world *world, char *ret_why, size_t size)
{
    const struct job_store *store = core_jobs(world->controller.core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        const struct workload *workload = workload_of(core_admit(world->controller.core), jobset->uid);
        bool ended = (jobset_finished(jobset) && !jobset->deleted_ns) || orphans_rest(jobset);
        /* A Workload that a job has taken over is judged with the job. */
        ended |= workload && jobset == workload->own && !workload_is_bare(workload) && !jobset->deleted_ns;
        if (workload && !ended && !jobset->deleted_ns && workload->state != WORKLOAD_ADMITTED) {
            if (!workload_settled(world, workload, ret_why, size))
                return false;
            continue;
        }
        if (ended || (jobset->spec.suspend && !jobset->deleted_ns) ||
            (!jobset->deleted_ns && waits_for_ever(world, jobset)))
            continue;
        const struct gang *waits = NULL;
        for (size_t g = 0; g < jobset->gangs.len; g++)
            if (jobset->gangs.items[g]->state == GANG_QUEUED)
                waits = jobset->gangs.items[g];
        snprintf(ret_why, size, "JobSet " STR_FORMAT " has not come to its end%s%s" STR_FORMAT,
                 STR_ARG(jobset->key), jobset->deleted_ns ? " (deleted)" : "", waits ? ": " : "",
                 waits ? (int)waits->why.len : 0, waits ? waits->why.data : "");
        return false;
    }
    return true;
}

/* Finds an object that was deleted but still exists, although every finalizer was removed. */
static void find_deleted(void *context, const struct object *object)
{
    if (object->deleted_ns)
        *(const struct object **)context = object;
}

static bool objects_settled(const struct world *world, char *ret_why, size_t size)
{
    const struct object *left = NULL;
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        object_visit(core_objects(world->controller.core), (enum object_kind)kind, STR(""), find_deleted,
                     &left);
    if (left)
        snprintf(ret_why, size, "%s " STR_FORMAT " was deleted and stays", object_kind_name(left->kind),
                 STR_ARG(left->key));
    return !left;
}

bool liveness_reached(const struct world *world, char *ret_why, size_t size)
{
    if (!controller_is_open(world)) {
        snprintf(ret_why, size, "the controller is down");
        return false;
    }
    return machines_ready(world, ret_why, size) && tasks_quiet(world, ret_why, size) &&
           jobsets_ended(world, ret_why, size) && objects_settled(world, ret_why, size);
}

static void trace_task(void *context, const struct task *task)
{
    world_trace(context, "  task " STR_FORMAT " %d of attempt %d: %s%s%s%s on m-%d, chips %llx, gang %llx",
                STR_ARG(task->name), task->index, task->attempt, task_lifecycle.names[task->state],
                task->doomed ? " (doomed)" : "", task->joined ? ", joined" : "", task->keep ? ", keeps" : "",
                task->machine == MACHINE_NONE ? 0 : (int)task->machine + 1, (unsigned long long)task->chips,
                (unsigned long long)(task->gang ? task->gang->uid : 0));
}

static void trace_job(void *context, const struct job *job)
{
    world_trace(context,
                "  job " STR_FORMAT ": %s, active %u, ready %u, succeeded %u, failed %u, retry at %.3f",
                STR_ARG(job->name), job_lifecycle.names[job->state], job->active, job->ready, job->succeeded,
                job->failed, (double)job->retry_due_ns / 1e9);
}

static void trace_workload(void *context, const struct workload *workload)
{
    static const char *const states[] = {"pending", "holding", "admitted", "leaving", "finished"};
    const struct workload_condition *reserved = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
    world_trace(context, "  workload " STR_FORMAT ": %s%s, %s: %.200s", STR_ARG(workload->name),
                states[workload->state], workload->active ? "" : ", inactive",
                reserved->present ? reserved->reason : "",
                reserved->message.data ? reserved->message.data : "");
}

static void trace_object(void *context, const struct object *object)
{
    struct buf text BUF_CLEANUP = {0};
    json_write(&text, doc_get(object->document, "metadata"));
    world_trace(context, "%s " STR_FORMAT "%s: %s", object_kind_name(object->kind), STR_ARG(object->key),
                object->deleted_ns ? " (deleted)" : "", text.data);
}

void liveness_trace(struct world *world)
{
    const struct core *core = world->controller.core;
    if (!core || !world->options.trace)
        return;
    const struct job_store *store = core_jobs(core);
    for (size_t i = 0; i < store->jobsets.len; i++) {
        const struct jobset *jobset = store->jobsets.items[i];
        world_trace(world, "JobSet " STR_FORMAT ": %s%s%s%s%s, attempt %d, %zu away, %zu old jobs, %zu gangs",
                    STR_ARG(jobset->key), terminal_state_name(jobset->terminal_state),
                    jobset->spec.suspend ? " suspended" : "", jobset->deleted_ns ? " deleted" : "",
                    jobset_parks(jobset) ? " parking" : "",
                    jobset->recovery.state == RECOVERY_DUMPING ? " dumping" : "", jobset->attempt,
                    jobset->recovery.absence.replicas.len, jobset->old_jobs.len, jobset->gangs.len);
    }
    for (int kind = OBJECT_JOBSET; kind < OBJECT_KINDS; kind++)
        object_visit(core_objects(core), (enum object_kind)kind, STR(""), trace_object, world);
    workload_visit(core_admit(core), trace_workload, world);
    jobs_visit_jobs(store, trace_job, world);
    jobs_visit_tasks(store, trace_task, world);
    for (size_t i = 0; i < store->queue.gangs.len; i++) {
        const struct gang *gang = container_of(store->queue.gangs.items[i], struct gang, queued);
        world_trace(world, "  queued gang %llx: " STR_FORMAT, (unsigned long long)gang->uid,
                    STR_ARG(gang->why));
    }
    world_trace(world, "now %.3f, deadline %.3f", (double)core_now(core) / 1e9,
                (double)core_deadline(core) / 1e9);
}
