/* gates.c - scheduling gates (spec.schedulingGates) of Pods that a Job makes.
 *
 * Each new Pod gets the gates of its template. As in Kubernetes, gates that were removed from a Pod return
 * with the Pod that replaces it. A Pod that runs again in its place is the same Pod, and has none. */
#include "core/job/facts.h"

void task_take_gates(struct task *task)
{
    CHECK(task->state == TASK_PENDING && !task->gates && task->gate_count == 0);
    const struct job *job = task->job;
    if (job->jobset->form == FORM_POD)
        return;
    const struct doc *template = workload_pod_template(job->jobset->document, job->rjob_index);
    const struct doc *gates = doc_path(template, "spec", "schedulingGates", NULL);
    size_t count = doc_len(gates);
    task->gates = count ? ARENA_ARRAY(&task->arena, struct str, count) : NULL;
    for (size_t i = 0; i < count; i++)
        task->gates[task->gate_count++] =
            arena_str(&task->arena, doc_str(doc_get(doc_at(gates, i), "name"), STR("")));
}

struct doc *task_gates(const struct task *task, struct arena *arena)
{
    CHECK(task->gates || task->gate_count == 0);
    struct doc *list = doc_new(arena, DOC_ARRAY);
    for (uint32_t i = 0; i < task->gate_count; i++) {
        struct doc *gate = doc_new(arena, DOC_OBJECT);
        doc_set(arena, gate, STR("name"), doc_new_str(arena, task->gates[i]));
        doc_push(arena, list, gate);
    }
    return list;
}

static bool is_listed(const struct doc *gates, struct str name)
{
    for (size_t i = 0; i < doc_len(gates); i++)
        if (str_equal(doc_str(doc_get(doc_at(gates, i), "name"), STR("")), name))
            return true;
    return false;
}

bool task_keep_gates(struct task *task, const struct doc *left)
{
    CHECK(task->gates || task->gate_count == 0);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < task->gate_count; i++)
        if (is_listed(left, task->gates[i]))
            task->gates[kept++] = task->gates[i];
    bool some_go = kept < task->gate_count;
    task->gate_count = kept;
    return some_go;
}
