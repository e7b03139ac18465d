/* slow.c - windows of step times become faults of machines. pace/ decides which rank is slow; this file
 * carries out the consequences for its machine and its JobSet. */
#include "core/react/react.h"

#define PACE_CODE STR("pace/slow")

/* Returns the newest task of a slot, or NULL if there is none. */
static const struct task *task_of_slot(const struct jobset *jobset, uint32_t slot)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (job && slot >= job->first_slot && slot - job->first_slot < job->index_count)
            return job->indexes[slot - job->first_slot].task;
    }
    return NULL;
}

/* Sets *ret_ends to the ends of the replicated jobs' slots, whose ranks are peers. Returns their number. */
static size_t peer_groups(const struct jobset *jobset, struct arena *arena, uint32_t **ret_ends)
{
    CHECK(jobset->widths || jobset->spec.rjob_count == 0);
    size_t groups = 0;
    uint32_t end = 0, next = 0;
    *ret_ends = ARENA_ARRAY(arena, uint32_t, jobset->spec.rjob_count + 1);
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        next += (uint32_t)jobset->spec.rjobs[r].replicas * jobset->widths[r];
        end = next < jobset->slots.count ? next : jobset->slots.count;
        (*ret_ends)[groups++] = end;
    }
    if (groups && end < jobset->slots.count)
        (*ret_ends)[groups - 1] = jobset->slots.count;
    return groups;
}

/* Returns whether none of the JobSet's ranks on this machine is slow, or becoming slow. */
static bool all_are_well(const struct core *core, const struct jobset *jobset, const struct machine *machine)
{
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        uint32_t slot = task->job->first_slot + (uint32_t)task->index;
        if (task->job->jobset == jobset && !task_is_spare(task) && slot < jobset->pace.count &&
            (jobset->pace.ranks[slot].slow || jobset->pace.ranks[slot].bad))
            return false;
    }
    return true;
}

static void describe(const struct pace_event *window, const struct jobset *jobset, const struct task *task,
                     const struct pace_finding *finding, struct buf *out)
{
    uint64_t usual_us = finding->usual_us ? finding->usual_us : 1;
    buf_printf(out,
               "rank %u of " STR_FORMAT
               " works %u.%03u ms a step, %llu.%02llu times what %s, in %d windows of "
               "%lld.%lld s",
               task->rank, STR_ARG(jobset->key), finding->own_us / 1000, finding->own_us % 1000,
               (unsigned long long)(finding->own_us / usual_us),
               (unsigned long long)(finding->own_us % usual_us * 100 / usual_us),
               finding->by_past ? "it did before" : "its peers do", PACE_WINDOWS,
               (long long)(window->window_ns / NS_PER_SECOND),
               (long long)(window->window_ns % NS_PER_SECOND / (NS_PER_SECOND / 10)));
}

static void take_finding(struct core *core, struct step *step, const struct pace_event *window,
                         struct jobset *jobset, const struct pace_finding *finding)
{
    CHECK(finding->slot < jobset->slots.count);
    const struct task *task = task_of_slot(jobset, finding->slot);
    if (!task || task->machine == MACHINE_NONE || task_ended(task->state))
        return;
    const struct machine *machine = &core->cluster.machines[task->machine];
    if (!finding->slow && !all_are_well(core, jobset, machine))
        return;
    struct buf evidence BUF_CLEANUP = {0};
    describe(window, jobset, task, finding, &evidence);
    struct signal signal = signal_now(PACE_CODE, finding->slow ? SIGNAL_OCCUR : SIGNAL_RECOVER,
                                      SEVERITY_MINOR, buf_str(&evidence), step->now_ns);
    struct sighting sighting = {.machine = machine->name, .signal = &signal};
    bool suspect = machine->isolation != ISOLATION_HEALTHY && machine->isolation != ISOLATION_RETURNED;
    struct fault *fault = core_sighted(core, step, &sighting);
    if (!finding->slow || !fault)
        return;
    step_note(step, true, "SlowMachine", ref_jobset(jobset), STR_FORMAT ": " STR_FORMAT,
              STR_ARG(machine->name), STR_ARG(buf_str(&evidence)));
    /* If the machine becomes suspect only now, core_sub_health moves all its JobSets. The fault table may
     * give the code no level. */
    if (suspect && fault->level >= LEVEL_SUB_HEALTH)
        jobs_move(step, machine, jobset, buf_str(&evidence));
}

void core_pace(struct core *core, struct step *step, const struct pace_event *window)
{
    struct jobset *jobset = jobs_find_uid(step->jobs, window->jobset);
    if (!jobset || window->attempt != jobset->attempt || window->count != jobset->slots.count ||
        jobset->finished_ns || jobset_parks(jobset))
        return;
    struct arena arena ARENA_CLEANUP = {0};
    uint32_t *ends;
    struct pace_finding *findings;
    size_t groups = peer_groups(jobset, &arena, &ends);
    size_t count = pace_window(&jobset->pace, window->attempt, window->own_us, window->count, ends, groups,
                               &arena, &findings);
    for (size_t i = 0; i < count; i++)
        take_finding(core, step, window, jobset, &findings[i]);
}

void core_sub_health(struct core *core, struct step *step, const struct machine *machine,
                     const struct fault *fault)
{
    CHECK(fault && machine->id < core->cluster.machine_count);
    struct buf why BUF_CLEANUP = {0};
    VEC(struct jobset *) there = {0};
    list_for_each(node, &core->jobs.machine_tasks[machine->id])
    {
        struct jobset *jobset = container_of(node, struct task, on_machine)->job->jobset;
        bool known = false;
        for (size_t i = 0; i < there.len && !known; i++)
            known = there.items[i] == jobset;
        if (!known)
            vec_push(&there, jobset);
    }
    fault_describe(fault, &why);
    for (size_t i = 0; i < there.len; i++)
        jobs_move(step, machine, there.items[i], buf_str(&why));
    vec_done(&there);
}
