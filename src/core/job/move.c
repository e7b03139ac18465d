/* move.c - a JobSet leaves a machine that is slow or otherwise not well: its ranks are told, save, and its
 * tasks there are stopped like those of evicted Pods; what follows is the failure policy's, on other machines
 * where there are some. */
#include "core/job/internal.h"

#include <stdio.h>

/* MindCluster: grace, then force after 900 s; a hot switch waits 15 minutes for the job's step. */
#define GRACE_MAX_NS  (900 * NS_PER_SECOND)
#define SWITCH_MAX_NS (900 * NS_PER_SECOND)

enum sub_health jobset_sub_health(const struct jobset *jobset, const struct cluster *cluster)
{
    enum sub_health policy = cluster->sub_health;
    sub_health_read(labels_get(&jobset->spec.annotations, STR(SUB_HEALTH_KEY), STR("")), &policy);
    return policy;
}

static bool works_there(const struct step *step, const struct machine *machine, const struct jobset *jobset)
{
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->job->jobset == jobset && !task->doomed && task->state != TASK_STOPPING &&
            !task_is_spare(task))
            return true;
    }
    return false;
}

static uint64_t chips_there(const struct step *step, const struct machine *machine,
                            const struct jobset *jobset)
{
    uint64_t chips = 0;
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        const struct task *task = container_of(node, struct task, on_machine);
        if (task->job->jobset == jobset && !task->job->doomed && !task_is_spare(task))
            chips |= task->chips;
    }
    return chips;
}

/* Another machine is well and has as many free chips. */
static bool has_elsewhere(const struct step *step, const struct machine *machine, const struct jobset *jobset)
{
    int wanted = __builtin_popcountll(chips_there(step, machine, jobset));
    for (size_t i = 0; i < step->cluster->machine_count; i++) {
        const struct machine *other = &step->cluster->machines[i];
        if (other != machine && machine_schedulable(other) && other->isolation == ISOLATION_HEALTHY &&
            __builtin_popcountll(other->free_mask) >= wanted)
            return true;
    }
    return false;
}

static void leave(struct step *step, struct jobset *jobset, const struct machine *machine, const char *why,
                  int64_t grace_s)
{
    jobset->move.under_way = false;
    progress_suspect(jobset, machine->id);
    step_note_late(step, true, "LeftSubHealthy", ref_jobset(jobset), "leaves " STR_FORMAT ": %s",
                   STR_ARG(machine->name), why);
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->job->jobset != jobset || task->state == TASK_STOPPING || task->doomed)
            continue;
        task_message(task, "moved away from " STR_FORMAT ": %s", STR_ARG(machine->name), why);
        task->loss = LOSS_SLOW;
        task_evict(step, task, grace_s);
    }
}

/* They have nothing to save and nobody waits for them: another one is made elsewhere. */
static void move_spares(struct step *step, const struct machine *machine, const struct jobset *jobset,
                        struct str why)
{
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->job->jobset == jobset && task_is_spare(task))
            spare_leave(step, task, why);
    }
}

void jobs_move(struct step *step, const struct machine *machine, struct jobset *jobset, struct str why)
{
    enum sub_health policy = jobset_sub_health(jobset, step->cluster);
    if (policy != SUB_HEALTH_IGNORE)
        move_spares(step, machine, jobset, why);
    if (policy == SUB_HEALTH_IGNORE || jobset->move.under_way || jobset_finished(jobset) ||
        !works_there(step, machine, jobset) || jobset->deleted_ns || jobset->spec.suspend || jobset->parking)
        return;
    struct move *move = &jobset->move;
    *move = (struct move){.machine = machine->id, .policy = policy, .noticed_ns = step->now_ns};
    snprintf(move->why, sizeof(move->why), STR_FORMAT, STR_ARG(why));
    if (policy == SUB_HEALTH_FORCE_EXIT) {
        leave(step, jobset, machine, move->why, 0);
        return;
    }
    if (policy == SUB_HEALTH_HOT_SWITCH && !has_elsewhere(step, machine, jobset)) {
        step_note_late(step, true, "HotSwitchImpossible", ref_jobset(jobset),
                       "stays on " STR_FORMAT ", no other machine has room: %s", STR_ARG(machine->name),
                       move->why);
        return;
    }
    int64_t grace_ns = jobset_notice_end(step, jobset);
    if (grace_ns == 0 && policy == SUB_HEALTH_HOT_SWITCH) {
        step_note_late(step, true, "HotSwitchImpossible", ref_jobset(jobset),
                       "stays on " STR_FORMAT ", none of its ranks speaks libphalanx: %s",
                       STR_ARG(machine->name), move->why);
        return;
    }
    if (grace_ns == 0) {
        leave(step, jobset, machine, move->why, -1);
        return;
    }
    grace_ns = grace_ns < GRACE_MAX_NS ? grace_ns : GRACE_MAX_NS;
    move->due_ns = step->now_ns + (policy == SUB_HEALTH_HOT_SWITCH ? SWITCH_MAX_NS : grace_ns);
    move->under_way = true;
    jobset_mark(step, jobset);
}

void move_look(struct step *step, struct jobset *jobset)
{
    struct move *move = &jobset->move;
    if (!move->under_way)
        return;
    bool saved = jobset->checkpoint.committed_ns > move->noticed_ns, due = step->now_ns >= move->due_ns;
    if (jobset_finished(jobset) || move->machine == MACHINE_NONE || jobset->spec.suspend) {
        move->under_way = false;
    } else if (saved || (due && move->policy == SUB_HEALTH_GRACE_EXIT)) {
        leave(step, jobset, &step->cluster->machines[move->machine], move->why, -1);
    } else if (due) {
        move->under_way = false;
        step_note_late(step, true, "HotSwitchGivenUp", ref_jobset(jobset),
                       "stays on " STR_FORMAT ", no checkpoint came in %d s: %s",
                       STR_ARG(step->cluster->machines[move->machine].name),
                       (int)(SWITCH_MAX_NS / NS_PER_SECOND), move->why);
    }
}

int64_t move_deadline(const struct jobset *jobset)
{
    return jobset->move.under_way ? jobset->move.due_ns : INT64_MAX;
}

void move_remap(struct jobset *jobset, const machine_id *map)
{
    if (jobset->move.under_way && jobset->move.machine != MACHINE_NONE)
        jobset->move.machine = map[jobset->move.machine];
}
