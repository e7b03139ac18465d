/* hold.c - the chips that tasks and gangs hold. */
#include "core/job/facts.h"

#include <stdio.h>

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
    CHECK(gang->state != GANG_ENDED); /* an ended gang holds no chips */
    owner = gang_is_spare(gang) ? OWNER_SPARE : owner;
    if (ledger_owner_prepares(owner) && !ledger_owner_prepares(gang->account.owner))
        jobset_mark(step, gang->jobset); /* usage_phases then books what the chips wait for */
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
    uint64_t open = machine->free_mask & ~machine->reserved_mask;
    return open == machine_all_chips(machine) ? OWNER_IDLE : OWNER_FRAGMENTED;
}

/* Reserved chips that cannot be used at present have the owner that tells why, not OWNER_RESERVED. */
uint64_t machine_free_reserved(const struct machine *machine)
{
    enum ledger_owner owner = machine_free_owner(machine);
    bool usable = owner == OWNER_IDLE || owner == OWNER_FRAGMENTED || owner == OWNER_STANDBY;
    return usable ? machine->free_mask & machine->reserved_mask : 0;
}

struct booked_chips machine_to_book(const struct machine *machine)
{
    enum ledger_owner owner = machine_free_owner(machine);
    int chips = __builtin_popcountll(machine->free_mask);
    int reserved = __builtin_popcountll(machine_free_reserved(machine));
    CHECK(chips <= CHIPS_PER_MACHINE_MAX && reserved <= chips && ledger_owner_is_free(owner));
    return (struct booked_chips){(uint8_t)owner, (uint8_t)(chips - reserved), (uint8_t)reserved};
}

void machine_book_chips(struct step *step, struct booked_chips booked, int sign)
{
    CHECK(sign == 1 || sign == -1);
    ledger_free_chips(step->ledger, (enum ledger_owner)booked.owner, sign * booked.chips, step_now_us(step));
    ledger_free_chips(step->ledger, OWNER_RESERVED, sign * booked.reserved, step_now_us(step));
}

void machine_book_free(struct step *step, struct machine *machine)
{
    CHECK(machine->id < step->cluster->machine_count);
    struct booked_chips now = machine_to_book(machine);
    if (booked_equal(now, machine->booked))
        return;
    machine_book_chips(step, machine->booked, -1);
    machine->booked = now;
    machine_book_chips(step, machine->booked, 1);
}
