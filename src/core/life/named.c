/* named.c - pods that name their machine (spec.nodeName). The machine takes or refuses them, as a kubelet
 * does, without the scheduler.
 *
 * Each such pod is a separate gang. It waits while its machine is unknown or not ready, and is then judged
 * once: it gets its chips, or fails with the kubelet's reason ("OutOfcpu", "NodeAffinity", ...). A workload
 * that a queue admitted has got its quota for this machine, and waits for free resources like any other.
 */
#include "core/life/internal.h"
#include "core/gang/request.h"

#include <stdio.h>

static bool waits_named(const struct step *step, const struct gang *gang)
{
    return step->jobs->naming > 0 && gang->state == GANG_QUEUED && gang_is_named(gang) &&
           !gang->jobset->grant.terms && !gang->jobset->deleted_ns && !gang_is_gated(gang) &&
           gang_named_machine(step, gang);
}

/* Sets the reason "OutOf<resource>" for the first missing resource, in a kubelet's order. Returns false if
 * nothing is missing. */
static bool lacks_resource(struct task *task, const struct machine *machine)
{
    const struct pod_spec *pod = &task->job->rjob->job.pod;
    uint32_t free = (uint32_t)__builtin_popcountll(machine->free_mask);
    struct str lacks = {0};
    int64_t wanted = 0, used = 0, all = 0;
    if (machine->cpu_milli && machine->cpu_milli - machine->cpu_used_milli < pod->cpu_request_milli) {
        lacks = STR("cpu");
        wanted = pod->cpu_request_milli;
        used = machine->cpu_used_milli;
        all = machine->cpu_milli;
    } else if (machine->memory_bytes &&
               machine->memory_bytes - machine->memory_used_bytes < pod->memory_request_bytes) {
        lacks = STR("memory");
        wanted = pod->memory_request_bytes;
        used = machine->memory_used_bytes;
        all = machine->memory_bytes;
    } else if (pod->chips > free) {
        lacks = pod->chip_resource;
        wanted = pod->chips;
        used = machine->chip_count - free;
        all = machine->chip_count;
    }
    if (!lacks.len)
        return false;
    task->reason = arena_printf(&task->arena, "OutOf" STR_FORMAT, STR_ARG(lacks));
    task_message(task,
                 "Pod was rejected: Node didn't have enough resource: " STR_FORMAT
                 ", requested: %lld, used: %lld, capacity: %lld",
                 STR_ARG(lacks), (long long)wanted, (long long)used, (long long)all);
    return true;
}

static void explain(struct task *task, const struct place_job *job, const struct machine *machine,
                    struct str why)
{
    if (lacks_resource(task, machine))
        return;
    if (!sched_matches(job, machine)) {
        task->reason = STR("NodeAffinity");
        task_message(task, "Pod was rejected: Predicate NodeAffinity failed: node(s) didn't match Pod's node "
                           "affinity/selector");
    } else if (sched_repels(job, machine)) {
        task->reason = STR("TaintToleration");
        task_message(task, "Pod was rejected: Predicate TaintToleration failed: node(s) had taints that the "
                           "pod didn't tolerate");
    } else { /* reasons that Kubernetes does not have: exclusive domains, reserved chips */
        task->reason = STR("UnexpectedAdmissionError");
        task_message(task, "Pod was rejected: " STR_FORMAT, STR_ARG(why));
    }
}

static void refuse(struct step *step, struct gang *gang, struct str why)
{
    CHECK(gang_is_named(gang) && gang->tasks.len == 1 && why.len > 0);
    struct task *task = gang->tasks.items[0];
    struct request request;
    request_gang(&request, step->jobs, step->cluster, gang, 1);
    explain(task, request.place.jobs, gang_named_machine(step, gang), why);
    request_drop(&request);
    CHECK(task->reason.len > 0 && task->reason.len < 128);
    struct str text = task->message, prefix = STR("Pod was rejected: ");
    CHECK(str_starts(text, prefix));
    text = (struct str){text.data + prefix.len, text.len - prefix.len};
    char reason[128];
    snprintf(reason, sizeof(reason), STR_FORMAT, STR_ARG(task->reason));
    step_note(step, true, reason, ref_task(task), STR_FORMAT, STR_ARG(text));
    task_finish(step, task, END_REFUSED);
}

void gang_judge_named(struct step *step, struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        if (!waits_named(step, gang))
            continue;
        if (gang_try(step, gang))
            sched_queue_remove(&step->jobs->queue, &gang->queued);
        else
            refuse(step, gang, gang->why);
    }
}

bool gang_some_wait_named(const struct step *step, const struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++)
        if (waits_named(step, jobset->gangs.items[g]))
            return true;
    return false;
}

void gang_mark_named(struct step *step)
{
    const struct sched_queue *queue = &step->jobs->queue;
    for (size_t i = 0; step->jobs->naming && i < queue->gangs.len; i++) {
        struct gang *gang = container_of(queue->gangs.items[i], struct gang, queued);
        if (waits_named(step, gang))
            jobset_mark(step, gang->jobset);
    }
}

void jobset_keep_node_name(const struct step *step, const struct jobset *jobset, struct doc *document)
{
    CHECK(jobset->form == FORM_POD && jobset->jobs[0]);
    struct doc *spec = doc_get(document, "spec");
    const struct task *task = jobset->jobs[0]->indexes[0].task;
    struct str named = jobset->spec.rjobs[0].job.pod.node_name;
    bool placed = task && task->machine != MACHINE_NONE;
    struct str shown = placed ? step->cluster->machines[task->machine].name : named;
    struct doc *given = doc_get(spec, "nodeName");
    bool same = !given || given->kind == DOC_NULL || str_equal(doc_str(given, STR("")), shown);
    if (same && !named.len)
        doc_unset(spec, "nodeName");
}
