/* members.c - the members of a gang: tasks that run, wait, leave or end. */
#include "core/gang/internal.h"

static void gang_runs(struct step *step, struct gang *gang)
{
    CHECK(gang->waiting == 0 && gang->alive > 0);
    lifecycle_move(&gang_lifecycle, &gang->state, GANG_RUNNING);
    gang->running_ns = step->now_ns;
    if (!gang_is_spare(gang))
        usage_running(step, gang);
}

void gang_go_on(struct step *step, struct gang *gang)
{
    if (gang->state == GANG_PLACED && gang->waiting == 0 && gang->alive > 0 && !gang_is_away(gang))
        gang_runs(step, gang);
}

void gang_task_started(struct step *step, struct task *task)
{
    CHECK(task->state == TASK_RUNNING);
    struct gang *gang = task->gang;
    CHECK(gang->waiting > 0 && gang->waiting <= gang->alive && !task->counted);
    task->counted = true;
    if (--gang->waiting == 0 && gang->state == GANG_PLACED)
        gang_runs(step, gang);
}

void gang_leave(struct task *task)
{
    if (!task->gang)
        return;
    task->gang->thinned = true;
    task->gang = NULL;
}

void gang_thin(struct gang *gang)
{
    if (!gang->thinned)
        return;
    size_t kept = 0;
    for (size_t i = 0; i < gang->tasks.len; i++)
        if (gang->tasks.items[i]->gang == gang)
            gang->tasks.items[kept++] = gang->tasks.items[i];
    CHECK(kept >= gang->alive); /* only ended tasks left */
    gang->tasks.len = kept;
    if (gang->min_count >= kept)
        gang->min_count = 0; /* all remaining tasks are needed */
    gang->thinned = false;
}

void gang_task_parked(struct step *step, struct task *task)
{
    CHECK(task->parked && task->state == TASK_PLACED);
    struct gang *gang = task->gang;
    CHECK(gang->state == GANG_PLACED || gang->state == GANG_RUNNING);
    if (gang->state == GANG_RUNNING)
        lifecycle_move(&gang_lifecycle, &gang->state, GANG_PLACED);
    if (task->counted)
        gang->waiting++;
    task->counted = false;
    CHECK(gang->waiting <= gang->alive);
    gang_book(step, gang, OWNER_RESTARTING);
}

void gang_judge_anew(struct gang *gang)
{
    gang->feasible_shape = 0;
    gang->refused_at = 0;
    gang->rival_shape = 0;
}

/* Removes a task that ends before its gang was placed. The rest of the gang may fit now, and so may gangs
 * that it held back as the head of the queue, although no machine has changed. */
static void leave_queued(struct step *step, struct gang *gang, struct task *task)
{
    CHECK(task->gang == gang && task_ended(task->state));
    CHECK(gang->waiting > 0 && !task->counted);
    gang_leave(task);
    gang_judge_anew(gang);
    step->schedule = true;
    gang->waiting--;
    gang_chips_left(step, gang, task->asked_chips);
    if (gang->alive == 0) {
        sched_queue_remove(&step->jobs->queue, &gang->queued);
        gang_waits_no_more(step, gang);
    }
}

void gang_task_ended(struct step *step, struct task *task)
{
    struct gang *gang = task->gang;
    CHECK(gang->alive > 0);
    gang->alive--;
    if (gang->state == GANG_QUEUED) {
        leave_queued(step, gang, task);
    } else if (!task->counted) {
        CHECK(gang->waiting > 0);
        task->counted = true;
        gang->waiting--;
    }
    CHECK(gang->waiting <= gang->alive);
    if (gang->alive == 0) {
        lifecycle_move(&gang_lifecycle, &gang->state, GANG_ENDED);
        CHECK(gang->account.chips == 0);
    } else if (gang->waiting == 0 && gang->state == GANG_PLACED) {
        gang_runs(step, gang);
    }
}

static void unplace_task(struct step *step, struct task *task)
{
    CHECK(task->state == TASK_PLACED && !task->parked && !task->counted);
    list_remove(&task->on_machine);
    task_release_chips(step, task);
    lifecycle_move(&task_lifecycle, &task->state, TASK_PENDING);
    task->machine = MACHINE_NONE;
    task->chips_were = 0;
    task->placed_ns = 0;
    step_changed(step, CHANGE_MODIFIED, ref_task(task));
}

void gang_unplace(struct step *step, struct gang *gang)
{
    CHECK(gang->state == GANG_PLACED && gang->alive > 0 && !gang->preflight);
    int64_t chips = 0;
    for (size_t t = 0; t < gang->tasks.len; t++) {
        struct task *task = gang->tasks.items[t];
        if (task->gang != gang)
            continue;
        if (task_ended(task->state)) {
            gang_leave(task);
            continue;
        }
        unplace_task(step, task);
        chips += task->asked_chips;
    }
    gang_thin(gang);
    CHECK(gang->tasks.len == gang->alive);
    lifecycle_move(&gang_lifecycle, &gang->state, GANG_QUEUED);
    gang->waiting = gang->alive;
    gang->placed_ns = 0;
    gang->replaces = true; /* it may use spare machines now */
    gang_judge_anew(gang);
    gang->told = false;
    ledger_account_want(&gang->account, step->ledger, gang_is_spare(gang) ? OWNER_SPARE : OWNER_AWAITING,
                        chips, step_now_us(step));
    sched_queue_add(&step->jobs->queue, &gang->queued);
    step->schedule = true;
    step_changed(step, CHANGE_MODIFIED, ref_jobset(gang->jobset));
    jobset_mark(step, gang->jobset);
}
