/* hold.c - the states of a task, and the chips that tasks and gangs hold. */
#include "core/job/internal.h"

#include <stdio.h>

static const char *const task_names[TASK_STATES] = {"Pending",  "Placed",    "Starting", "Running",
                                                    "Stopping", "Succeeded", "Failed"};
static const uint32_t task_next[TASK_STATES] = {
    [TASK_PENDING] = LIFECYCLE_TO(TASK_PLACED) | LIFECYCLE_TO(TASK_FAILED),
    [TASK_PLACED] = LIFECYCLE_TO(TASK_STARTING) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PENDING),
    [TASK_STARTING] = LIFECYCLE_TO(TASK_RUNNING) | LIFECYCLE_TO(TASK_STOPPING) |
                      LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PLACED),
    [TASK_RUNNING] = LIFECYCLE_TO(TASK_STOPPING) | LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) |
                     LIFECYCLE_TO(TASK_PLACED),
    [TASK_STOPPING] = LIFECYCLE_TO(TASK_SUCCEEDED) | LIFECYCLE_TO(TASK_FAILED) | LIFECYCLE_TO(TASK_PLACED),
};
const struct lifecycle task_lifecycle = {"task", TASK_STATES, task_names, task_next};

/* Gives the chips back to the machine. The next attempt may take them over while the process is still
 * ending: the machine's agent keeps the order on the chips themselves. */
void task_release_chips(struct step *step, struct task *task)
{
    if (task->machine == MACHINE_NONE || !task->holds)
        return;
    CHECK(task->gang && task->machine < step->cluster->machine_count);
    struct machine *machine = &step->cluster->machines[task->machine];
    int64_t count = __builtin_popcountll(task->chips);
    task->holds = false;
    step->room = true;
    machine_give(machine, task->chips, task->cpu_milli, task->memory_bytes);
    task->chips = 0;
    machine_book_free(step, machine);
    if (count > 0)
        gang_chips_left(step, task->gang, count);
    step->schedule = true;
}

void task_message(struct task *task, const char *format, ...)
{
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    task->message = arena_str(&task->arena, buf_str(&text));
}

void gang_chips_left(struct step *step, struct gang *gang, int64_t count)
{
    CHECK(count >= 0 && gang->account.chips >= count);
    ledger_account_leave(&gang->account, step->ledger, count, step_now_us(step));
}

void gang_book(struct step *step, struct gang *gang, enum ledger_owner owner)
{
    CHECK(gang->state != GANG_ENDED); /* it holds nothing */
    owner = gang_is_spare(gang) ? OWNER_SPARE : owner;
    if (ledger_owner_prepares(owner) && !ledger_owner_prepares(gang->account.owner))
        jobset_mark(step, gang->jobset); /* usage_phases tells what the chips wait for */
    ledger_account_book(&gang->account, step->ledger, owner, step_now_us(step));
}

enum ledger_owner machine_free_owner(const struct machine *machine)
{
    enum isolation isolation = (enum isolation)machine->isolation;
    if (isolation == ISOLATION_RESETTING || isolation == ISOLATION_QUALIFYING ||
        isolation == ISOLATION_TICKETED)
        return OWNER_REPAIR;
    if (isolation == ISOLATION_QUARANTINED)
        return OWNER_QUARANTINED;
    if (machine->state != MACHINE_READY)
        return OWNER_DOWN;
    if (!machine_schedulable(machine)) /* cordoned, or draining */
        return OWNER_CORDONED;
    if (machine->spare)
        return OWNER_STANDBY;
    return machine->free_mask == machine_all_chips(machine) ? OWNER_IDLE : OWNER_FRAGMENTED;
}

void machine_book_free(struct step *step, struct machine *machine)
{
    enum ledger_owner owner = machine_free_owner(machine);
    int chips = __builtin_popcountll(machine->free_mask);
    CHECK(chips <= CHIPS_PER_MACHINE_MAX && ledger_owner_is_free(owner));
    if (owner == (enum ledger_owner)machine->booked_owner && chips == machine->booked_chips)
        return;
    ledger_free_chips(step->ledger, (enum ledger_owner)machine->booked_owner, -machine->booked_chips,
                      step_now_us(step));
    machine->booked_owner = (uint8_t)owner;
    machine->booked_chips = (uint8_t)chips;
    ledger_free_chips(step->ledger, owner, chips, step_now_us(step));
}
