/* lemons.c - counts failures of machines from events of jobs and machines, and carries out the verdicts of
 * lemon/lemon.h. */
#include "core/react/react.h"

bool core_excuses(const struct step *step, const struct machine *machine)
{
    return step_is_after(step, step->outage.paused_ns) ||
           health_on_purpose(step->health, machine->name, step->now_ns);
}

static bool fails(const struct task *task)
{
    return task->state != TASK_STOPPING && !task_ended(task->state);
}

/* Returns whether the gang holds resources on other machines as well. */
static bool is_spread(const struct gang *gang, const struct machine *machine)
{
    CHECK(gang->tasks.len > 0 && machine->id != MACHINE_NONE);
    for (size_t t = 0; t < gang->tasks.len; t++)
        if (gang->tasks.items[t]->holds && gang->tasks.items[t]->machine != machine->id)
            return true;
    return false;
}

void core_failed_on(struct core *core, struct step *step, const struct machine *machine)
{
    CHECK(machine->id < core->cluster.machine_count);
    VEC(const struct gang *) seen = {0};
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        bool known = !fails(task);
        for (size_t i = 0; !known && i < seen.len; i++)
            known = seen.items[i] == task->gang;
        if (known)
            continue;
        vec_push(&seen, task->gang);
        lemon_count(step, machine,
                    is_spread(task->gang, machine) ? LEMON_MULTI_NODE_FAILURE : LEMON_SINGLE_NODE_FAILURE);
    }
    vec_done(&seen);
}

/* Counts the machines that nodeAffinity excludes by kubernetes.io/hostname NotIn. Terms are alternatives,
 * so only a single term counts. */
static void count_excluded(struct core *core, struct step *step, const struct pod_spec *pod)
{
    if (pod->node_term_count != 1)
        return;
    for (size_t r = 0; r < pod->node_terms[0].rule_count; r++) {
        const struct node_rule *rule = &pod->node_terms[0].rules[r];
        bool by_name = str_is(rule->key, "kubernetes.io/hostname") || !rule->key.len; /* or metadata.name */
        for (size_t v = 0; by_name && rule->op == NODE_NOT_IN && v < rule->value_count; v++) {
            const struct machine *machine = cluster_find(&core->cluster, rule->values[v]);
            if (machine)
                lemon_count(step, machine, LEMON_EXCLUSION);
        }
    }
}

/* Replicated jobs mostly exclude the same machines, so only the first is read. */
void core_excluded_by(struct core *core, struct step *step, const struct jobset_spec *spec)
{
    if (spec->rjob_count > 0)
        count_excluded(core, step, &spec->rjobs[0].job.pod);
}

/* --- verdicts --------------------------------------------------------------------------------- */

/* Reports a lemon signal to health. The fault is about the past, so it does not strike the JobSets there. */
static bool signal_it(struct step *step, const struct machine *machine, enum signal_assertion assertion,
                      struct str evidence)
{
    struct signal signal = signal_now(STR(LEMON_FAULT), assertion, SEVERITY_MINOR, evidence, step->now_ns);
    struct sighting sighting = {.machine = machine->name, .signal = &signal};
    return health_signal(step, &sighting) != NULL;
}

bool core_judge_lemons(struct core *core, struct step *step)
{
    const struct lemon_settings *settings = &core->cluster.policy.lemons;
    struct lemon_verdict verdict;
    bool any = false;
    while (lemon_next_verdict(step, &verdict)) {
        const struct machine *machine = cluster_find(&core->cluster, verdict.lemon->machine);
        struct buf why BUF_CLEANUP = {0};
        if (!machine)
            continue; /* the machine was removed from the cluster file */
        lemon_describe(verdict.lemon, settings, &why);
        if (verdict.turned && verdict.lemon->is_lemon)
            step_note(step, true, "LemonDetected", ref_machine(machine),
                      "The machine fails repeatedly: " STR_FORMAT " in %lld days", STR_ARG(buf_str(&why)),
                      (long long)settings->window_days);
        else if (verdict.turned)
            step_note(step, false, "LemonCleared", ref_machine(machine),
                      "It has failed too rarely in the last %lld days to remain a lemon",
                      (long long)settings->window_days);
        if (verdict.turned)
            step_changed(step, CHANGE_MODIFIED, ref_machine(machine));
        if (!verdict.lemon->is_lemon)
            any |= signal_it(step, machine, SIGNAL_RECOVER, STR("its failures are too long ago"));
        else if (settings->remove)
            any |= signal_it(step, machine, SIGNAL_OCCUR, buf_str(&why));
    }
    return any;
}
