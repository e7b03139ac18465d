/* move.c - a JobSet leaves a machine that is slow or otherwise unhealthy, or needed for something else. Its
 * ranks get a notice and save, and its tasks on the machine are stopped like evicted Pods. The failure policy
 * decides what follows, on other machines if there are any.
 *
 * If its processes survive their peers, the move is a switch at a step boundary, which loses nothing and
 * stops no other task. First, replacements start elsewhere while the job runs on: spares beyond those that
 * its users ask for (MOVE_ROOM). When these wait for a rank, all ranks get a notice, save the same step and
 * wait (MOVE_SAVING). When that step is committed, the tasks on the machine are killed (MOVE_LEAVING), and
 * the ladder answers as for a lost machine: spares take their ranks. */
#include "core/recover/internal.h"

#include <stdio.h>

/* MindCluster: grace, then force after 900 s; a hot switch waits 15 minutes for the job's step. */
#define GRACE_MAX_NS (900 * NS_PER_SECOND)
/* The ranks wait no longer than this after a commit; then a slightly older commit is accepted. */
#define STAND_MAX_NS (60 * NS_PER_SECOND)
/* Limit for the end of a process that was killed. */
#define LEAVE_MAX_NS (60 * NS_PER_SECOND)

static enum sub_health move_policy(const struct jobset *jobset, const struct cluster *cluster)
{
    enum sub_health policy = cluster->policy.sub_health;
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

/* Returns whether another machine is healthy and has as many free chips. */
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

static void leave(struct step *step, struct jobset *jobset, const struct machine *machine, int64_t grace_s)
{
    struct move *move = &jobset->recovery.move;
    const char *why = move->why;
    CHECK(!move->by_spares || move->state == MOVE_SAVING);
    if (move->by_spares) /* the move goes on until the ladder has answered, to keep its spares */
        lifecycle_move(&move_lifecycle, &move->state, MOVE_LEAVING);
    else
        move_end(jobset);
    move->noticed_ns = step->now_ns;
    move->due_ns = step->now_ns + LEAVE_MAX_NS;
    if (!move->planned)
        restart_suspect(jobset, machine->id);
    step_note(step, !move->planned, move->planned ? "LeftMachine" : "LeftSubHealthy", ref_jobset(jobset),
              "leaves " STR_FORMAT ": %s", STR_ARG(machine->name), why);
    if (move->planned) {
        struct end_fault order;
        end_fault_ordered(ORDER_MAINTENANCE, machine->name, STR(""), str_from(why), step->now_ns, &order);
        ends_strike(step, jobset, &order);
    }
    list_for_each_safe(node, after, &step->jobs->machine_tasks[machine->id])
    {
        struct task *task = container_of(node, struct task, on_machine);
        if (task->job->jobset != jobset || task->state == TASK_STOPPING || task->doomed)
            continue;
        task_message(task, "moved away from " STR_FORMAT ": %s", STR_ARG(machine->name), why);
        task->loss = move->planned ? LOSS_EVICTED : LOSS_SLOW;
        task_evict(step, task, grace_s);
    }
    jobset_mark(step, jobset);
}

/* Replaces the spares on the machine at once: they have nothing to save, and no rank depends on them. */
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

/* --- by spares -------------------------------------------------------------------------------- */

/* Returns whether the JobSet's processes survive the end of its tasks on the machine, and spares can take
 * their ranks. */
static bool can_go_by_spares(const struct jobset *jobset, machine_id machine)
{
    if (!recovery_may_retry(jobset) || !jobset->spec.recovery.allowed[RUNG_REPLACE_MACHINE])
        return false;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        uint32_t count = jobset->jobs[i] ? job_ranks_on(jobset->jobs[i], machine) : 0;
        if (count > 0 && !spare_may_be(jobset->jobs[i], count))
            return false;
    }
    return true;
}

static bool room_is_ready(const struct step *step, const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        if (job && spare_ready(job, step->cluster) < job_ranks_on(job, jobset->recovery.move.machine))
            return false;
    }
    return true;
}

static void make_room(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.move.state == MOVE_NONE && jobset->recovery.move.machine != MACHINE_NONE);
    struct move *move = &jobset->recovery.move;
    move->by_spares = true;
    lifecycle_move(&move_lifecycle, &move->state, MOVE_ROOM);
    move->due_ns = step->now_ns + jobset->spec.recovery.limit_ns[RUNG_REPLACE_MACHINE];
    step_note(step, false, "HotSwitch", ref_jobset(jobset),
              "others are started for its ranks on " STR_FORMAT ": %s",
              STR_ARG(step->cluster->machines[move->machine].name), move->why);
    spare_resized(step, jobset);
    jobset_mark(step, jobset);
}

static void ask_to_save(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.move.state == MOVE_ROOM && jobset->recovery.move.by_spares);
    struct move *move = &jobset->recovery.move;
    lifecycle_move(&move_lifecycle, &move->state, MOVE_SAVING);
    move->noticed_ns = step->now_ns;
    move->due_ns = step->now_ns + MOVE_LIMIT_NS;
    jobset_notice_hot_switch(step, jobset);
    jobset_mark(step, jobset); /* its timer */
}

static void stay(struct step *step, struct jobset *jobset, const char *reason, const char *because)
{
    CHECK(jobset->recovery.move.machine < step->cluster->machine_count);
    const struct move *move = &jobset->recovery.move;
    move_end(jobset);
    step_note(step, true, reason, ref_jobset(jobset), "stays on " STR_FORMAT ", %s: %s",
              STR_ARG(step->cluster->machines[move->machine].name), because, move->why);
    spare_resized(step, jobset);
}

static void look_at_room(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.move.by_spares && jobset->recovery.move.machine != MACHINE_NONE);
    if (!jobset_parks(jobset) && room_is_ready(step, jobset))
        ask_to_save(step, jobset);
    else if (step->now_ns >= jobset->recovery.move.due_ns) {
        stay(step, jobset, "HotSwitchImpossible", "no replacement for its ranks could be started elsewhere");
        if (jobset->recovery.move.planned)
            (void)jobset_notice(step, jobset, DRAIN_MAINTENANCE); /* the machine's tasks will be stopped */
    }
}

/* --- the policies ----------------------------------------------------------------------------- */

static bool may_move(const struct step *step, const struct machine *machine, const struct jobset *jobset)
{
    return jobset->recovery.move.state == MOVE_NONE && !jobset_finished(jobset) &&
           works_there(step, machine, jobset) && !jobset->deleted_ns && !jobset->spec.suspend &&
           !jobset_parks(jobset);
}

static void begin(const struct step *step, const struct machine *machine, struct jobset *jobset,
                  enum sub_health policy, struct str why)
{
    CHECK(jobset->recovery.move.state == MOVE_NONE && policy != SUB_HEALTH_IGNORE);
    struct move *move = &jobset->recovery.move;
    *move = (struct move){.machine = machine->id, .policy = policy, .noticed_ns = step->now_ns};
    snprintf(move->why, sizeof(move->why), STR_FORMAT, STR_ARG(why));
}

void jobs_replace(struct step *step, const struct machine *machine, struct str why)
{
    VEC(struct jobset *) there = {0};
    list_for_each(node, &step->jobs->machine_tasks[machine->id])
    {
        struct jobset *jobset = container_of(node, struct task, on_machine)->job->jobset;
        if (may_move(step, machine, jobset) && can_go_by_spares(jobset, machine->id) &&
            (there.len == 0 || there.items[there.len - 1] != jobset))
            vec_push(&there, jobset);
    }
    for (size_t i = 0; i < there.len; i++) {
        if (there.items[i]->recovery.move.state != MOVE_NONE)
            continue; /* it is in the list twice */
        begin(step, machine, there.items[i], SUB_HEALTH_HOT_SWITCH, why);
        there.items[i]->recovery.move.planned = true;
        make_room(step, there.items[i]);
    }
    vec_done(&there);
}

void jobs_move(struct step *step, const struct machine *machine, struct jobset *jobset, struct str why)
{
    enum sub_health policy = move_policy(jobset, step->cluster);
    if (policy != SUB_HEALTH_IGNORE)
        move_spares(step, machine, jobset, why);
    if (policy == SUB_HEALTH_IGNORE || !may_move(step, machine, jobset))
        return;
    begin(step, machine, jobset, policy, why);
    struct move *move = &jobset->recovery.move;
    if (policy == SUB_HEALTH_FORCE_EXIT) {
        leave(step, jobset, machine, 0);
        return;
    }
    if (policy == SUB_HEALTH_HOT_SWITCH && can_go_by_spares(jobset, machine->id)) {
        make_room(step, jobset);
        return;
    }
    if (policy == SUB_HEALTH_HOT_SWITCH && !has_elsewhere(step, machine, jobset)) {
        stay(step, jobset, "HotSwitchImpossible", "no other machine has room");
        return;
    }
    int64_t grace_ns = jobset_notice(step, jobset, DRAIN_FAULT);
    if (grace_ns == 0 && policy == SUB_HEALTH_HOT_SWITCH) {
        stay(step, jobset, "HotSwitchImpossible", "none of its ranks speaks libphalanx");
        return;
    }
    if (grace_ns == 0) {
        leave(step, jobset, machine, -1);
        return;
    }
    grace_ns = grace_ns < GRACE_MAX_NS ? grace_ns : GRACE_MAX_NS;
    move->due_ns = step->now_ns + (policy == SUB_HEALTH_HOT_SWITCH ? MOVE_LIMIT_NS : grace_ns);
    lifecycle_move(&move_lifecycle, &move->state, MOVE_SAVING);
    jobset_mark(step, jobset);
}

bool jobs_are_drained(const struct task *task)
{
    const struct move *move = &task->job->jobset->recovery.move;
    return move->state == MOVE_SAVING && move->machine == task->machine;
}

void jobs_drained_ended(struct step *step, struct task *task)
{
    const struct move *move = &task->job->jobset->recovery.move;
    if (jobs_are_drained(task) && move->planned && !move->by_spares)
        leave(step, task->job->jobset, &step->cluster->machines[task->machine], -1);
}

bool jobs_drain(struct step *step, const struct task *task, int64_t grace_s)
{
    struct jobset *jobset = task->job->jobset;
    struct move *move = &jobset->recovery.move;
    if (task->state != TASK_RUNNING || task_is_spare(task) || grace_s == 0)
        return false;
    const struct machine *machine = &step->cluster->machines[task->machine];
    if (!machine->cordoned || !may_move(step, machine, jobset) || !suspend_is_worth_it(jobset))
        return false;
    int64_t grace_ns = jobset_notice(step, jobset, DRAIN_FAULT);
    if (grace_s > 0 && grace_s < grace_ns / NS_PER_SECOND)
        grace_ns = grace_s * NS_PER_SECOND;
    if (grace_ns == 0)
        return false;
    begin(step, machine, jobset, SUB_HEALTH_GRACE_EXIT, STR("it is drained"));
    move->planned = true;
    move->due_ns = step->now_ns + (grace_ns < GRACE_MAX_NS ? grace_ns : GRACE_MAX_NS);
    lifecycle_move(&move_lifecycle, &move->state, MOVE_SAVING);
    step_note(step, false, "SavingBeforeDrain", ref_jobset(jobset),
              "its ranks save before those on " STR_FORMAT " are stopped, for %lld s at most",
              STR_ARG(machine->name), (long long)((move->due_ns - step->now_ns) / NS_PER_SECOND));
    jobset_mark(step, jobset);
    return true;
}

/* Returns whether the ranks have saved. Drained ranks may wait after their save, so an older commit that
 * arrives late does not count. */
static bool has_saved(const struct jobset *jobset)
{
    const struct move *move = &jobset->recovery.move;
    if (move->planned && !move->by_spares)
        return jobset_has_answered(jobset, move->noticed_ns);
    return jobset->checkpoint.committed_ns > move->noticed_ns;
}

static void look_at_saving(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->recovery.move.machine < step->cluster->machine_count);
    struct move *move = &jobset->recovery.move;
    bool saved = has_saved(jobset), due = step->now_ns >= move->due_ns;
    /* A commit below the present step was on its way to storage before the notice. */
    if (move->by_spares && jobset->checkpoint.committed_step < jobset->progress.step)
        saved = saved && step->now_ns - move->noticed_ns >= STAND_MAX_NS;
    /* Without any commit, a move by spares leaves in any case: the ranks return to the state that they hold
     * in memory. */
    bool regardless =
        move->policy == SUB_HEALTH_GRACE_EXIT || (move->by_spares && jobset->checkpoint.committed_step < 0);
    if (saved || (due && regardless)) {
        leave(step, jobset, &step->cluster->machines[move->machine], move->by_spares ? 0 : -1);
    } else if (due) {
        char text[48];
        snprintf(text, sizeof(text), "no checkpoint came in %d s", (int)(MOVE_LIMIT_NS / NS_PER_SECOND));
        stay(step, jobset, "HotSwitchGivenUp", text);
    }
}

void move_look(struct step *step, struct jobset *jobset)
{
    struct move *move = &jobset->recovery.move;
    if (move->state == MOVE_NONE)
        return;
    if (jobset_finished(jobset) || move->machine == MACHINE_NONE || jobset->spec.suspend ||
        (move->state == MOVE_LEAVING && step->now_ns >= move->due_ns)) {
        move_end(jobset);
        spare_resized(step, jobset);
    } else if (move->state == MOVE_ROOM) {
        look_at_room(step, jobset);
    } else if (move->state == MOVE_SAVING) {
        look_at_saving(step, jobset);
    }
}

int64_t move_deadline(const struct jobset *jobset)
{
    return jobset->recovery.move.state != MOVE_NONE ? jobset->recovery.move.due_ns : INT64_MAX;
}
