/* gates.c - gangs whose Pods have scheduling gates (job/gates.c). Such a gang waits until none of its Pods
 * has a gate. It takes no machines until then, and no other gang waits for it. */
#include "core/gang/internal.h"

static bool some_gated(const struct gang *gang)
{
    for (size_t t = 0; t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        if (task->gang == gang && task->gate_count > 0 && !task_ended(task->state))
            return true;
    }
    return false;
}

void gang_look_at_gates(struct gang *gang)
{
    CHECK(gang->tasks.len > 0 && gang->state == GANG_QUEUED);
    gang->gated = some_gated(gang);
}

bool gang_is_gated(const struct gang *gang)
{
    if (gang->barred)
        return true;
    if (gang->jobset->form == FORM_POD)
        return gang->jobset->spec.suspend;
    return gang->gated && some_gated(gang);
}

typedef VEC(struct str) name_list;

static void add_names(name_list *names, const struct task *task)
{
    for (uint32_t i = 0; i < task->gate_count; i++) {
        bool seen = false;
        for (size_t n = 0; n < names->len && !seen; n++)
            seen = str_equal(names->items[n], task->gates[i]);
        if (!seen)
            vec_push(names, task->gates[i]);
    }
}

/* Returns the gates in the document of a Pod without a Job, or NULL for other forms. */
static const struct doc *own_gates(const struct gang *gang)
{
    bool own = gang->jobset->form == FORM_POD;
    return own ? doc_path(gang->jobset->document, "spec", "schedulingGates", NULL) : NULL;
}

void gang_say_gated(const struct gang *gang, struct buf *why)
{
    CHECK(gang_is_gated(gang));
    name_list names = {0};
    const struct doc *own = own_gates(gang);
    size_t held = 0;
    for (size_t i = 0; i < doc_len(own); i++)
        vec_push(&names, doc_str(doc_get(doc_at(own, i), "name"), STR("")));
    for (size_t t = 0; t < gang->tasks.len; t++) {
        const struct task *task = gang->tasks.items[t];
        add_names(&names, task);
        held += task->gate_count > 0;
    }
    buf_add_str(why, STR("Scheduling is blocked due to non-empty scheduling gates:"));
    for (size_t n = 0; n < names.len; n++)
        buf_printf(why, " " STR_FORMAT, STR_ARG(names.items[n]));
    if (gang->tasks.len > 1)
        buf_printf(why, " (of %zu of %zu Pods)", held, gang->tasks.len);
    vec_done(&names);
}
