/* snapshot_ledger.c - the books in snapshots: the cluster's, in the header, and the accounts of gangs and
 * JobSets. The numbers of chips are derived from machines and gangs, and must equal those that were
 * written. */
#include "core/agent/codec_pb.h"
#include "core/internal.h"
#include "core/life/life.h"
#include "core/gang/trial.h"
#include "core/log/snapshot.h"

static int64_t *copy_i64(struct arena *arena, const int64_t *from, size_t count)
{
    CHECK(from || count == 0);
    int64_t *to = ARENA_ARRAY(arena, int64_t, count);
    mem_copy(to, from, count * sizeof(*to));
    return to;
}

/* --- accounts --------------------------------------------------------------------------------- */

Snapshot__Account *snapshot_write_account(struct arena *arena, const struct ledger_account *account)
{
    CHECK(account->owner < LEDGER_OWNERS && account->opened_us <= account->since_us);
    Snapshot__Account *pb = ARENA_NEW(arena, Snapshot__Account);
    snapshot__account__init(pb);
    pb->n_chip_us = LEDGER_OWNERS;
    pb->chip_us = copy_i64(arena, account->chip_us, LEDGER_OWNERS);
    pb->chips = account->chips;
    pb->since_us = account->since_us;
    pb->opened_us = account->opened_us;
    pb->wanted_chip_us = account->wanted_chip_us;
    pb->owner = account->owner;
    pb->size = account->size;
    return pb;
}

bool snapshot_read_account(int64_t now_ns, const Snapshot__Account *pb, struct ledger_account *ret)
{
    if (!pb || pb->n_chip_us != LEDGER_OWNERS || pb->owner >= LEDGER_OWNERS || pb->chips < 0 ||
        pb->size >= LEDGER_SIZES || pb->since_us > now_ns / NS_PER_US || pb->opened_us > pb->since_us ||
        ledger_owner_is_free((enum ledger_owner)pb->owner))
        return false;
    *ret = (struct ledger_account){.chips = pb->chips,
                                   .since_us = pb->since_us,
                                   .opened_us = pb->opened_us,
                                   .wanted_chip_us = pb->wanted_chip_us,
                                   .owner = (enum ledger_owner)pb->owner,
                                   .size = (uint8_t)pb->size};
    mem_copy(ret->chip_us, pb->chip_us, sizeof ret->chip_us);
    return true;
}

/* --- the cluster's book ----------------------------------------------------------------------- */

static Snapshot__LedgerSize *write_size(struct arena *arena, const struct ledger_size *size)
{
    Snapshot__LedgerSize *pb = ARENA_NEW(arena, Snapshot__LedgerSize);
    snapshot__ledger_size__init(pb);
    pb->chip_us = size->chip_us;
    pb->since_us = size->since_us;
    pb->n_ends = LEDGER_CAUSES;
    pb->ends = ARENA_ARRAY(arena, uint64_t, LEDGER_CAUSES);
    mem_copy(pb->ends, size->ends, sizeof size->ends);
    return pb;
}

void snapshot_write_ledger(struct arena *arena, const struct ledger *ledger, Snapshot__Header *header)
{
    CHECK(ledger->opened_us <= ledger->since_us);
    header->n_chips = header->n_chip_us = LEDGER_OWNERS;
    header->chips = copy_i64(arena, ledger->chips, LEDGER_OWNERS);
    header->chip_us = copy_i64(arena, ledger->chip_us, LEDGER_OWNERS);
    header->all_chip_us = ledger->all_chip_us;
    header->since_us = ledger->since_us;
    header->opened_us = ledger->opened_us;
    Snapshot__Ledger *pb = header->ledger = ARENA_NEW(arena, Snapshot__Ledger);
    snapshot__ledger__init(pb);
    pb->n_gone_chip_us = LEDGER_OWNERS;
    pb->gone_chip_us = copy_i64(arena, ledger->gone_chip_us, LEDGER_OWNERS);
    pb->gone_wanted_chip_us = ledger->gone_wanted_chip_us;
    pb->n_first_order = pb->n_second_order = 2 * LEDGER_CAUSES;
    pb->first_order = copy_i64(arena, &ledger->first_order[0].count, pb->n_first_order);
    pb->second_order = copy_i64(arena, &ledger->second_order[0].count, pb->n_second_order);
    pb->n_sizes = LEDGER_SIZES;
    pb->sizes = ARENA_ARRAY(arena, Snapshot__LedgerSize *, LEDGER_SIZES);
    for (int size = 0; size < LEDGER_SIZES; size++)
        pb->sizes[size] = write_size(arena, &ledger->sizes[size]);
}

void snapshot_write_failure(struct arena *arena, const struct jobset_usage *usage, Snapshot__Jobset *pb)
{
    CHECK(usage->failed_plus_1 <= LEDGER_CAUSES && usage->failed_size < LEDGER_SIZES);
    const int64_t numbers[] = {usage->failed_plus_1, usage->failed_size, usage->failed_us,
                               usage->failed_assumed_us};
    pb->n_failure = usage->failed_plus_1 ? sizeof numbers / sizeof *numbers : 0;
    pb->failure = copy_i64(arena, numbers, pb->n_failure);
}

bool snapshot_read_failure(const Snapshot__Jobset *pb, struct jobset_usage *usage)
{
    if (pb->n_failure == 0)
        return true;
    if (pb->n_failure != 4 || pb->failure[0] < 1 || pb->failure[0] > LEDGER_CAUSES || pb->failure[1] < 0 ||
        pb->failure[1] >= LEDGER_SIZES || pb->failure[2] < 0 || pb->failure[3] < 0)
        return false;
    usage->failed_plus_1 = (uint8_t)pb->failure[0];
    usage->failed_size = (uint8_t)pb->failure[1];
    usage->failed_us = pb->failure[2];
    usage->failed_assumed_us = pb->failure[3];
    return true;
}

static bool read_more(struct ledger *ledger, const Snapshot__Ledger *pb)
{
    enum { NUMBERS = 2 * LEDGER_CAUSES };
    _Static_assert(sizeof ledger->first_order == NUMBERS * sizeof(int64_t), "two numbers for each cause");
    if (pb->n_gone_chip_us != LEDGER_OWNERS || pb->n_sizes != LEDGER_SIZES || pb->n_first_order != NUMBERS ||
        pb->n_second_order != NUMBERS)
        return false;
    mem_copy(ledger->first_order, pb->first_order, sizeof ledger->first_order);
    mem_copy(ledger->second_order, pb->second_order, sizeof ledger->second_order);
    mem_copy(ledger->gone_chip_us, pb->gone_chip_us, sizeof ledger->gone_chip_us);
    ledger->gone_wanted_chip_us = pb->gone_wanted_chip_us;
    for (int i = 0; i < LEDGER_SIZES; i++) {
        struct ledger_size *size = &ledger->sizes[i];
        if (pb->sizes[i]->n_ends != LEDGER_CAUSES || pb->sizes[i]->since_us > ledger->since_us)
            return false;
        size->chip_us = pb->sizes[i]->chip_us;
        size->since_us = pb->sizes[i]->since_us;
        mem_copy(size->ends, pb->sizes[i]->ends, sizeof size->ends);
    }
    return true;
}

bool snapshot_read_ledger(const Snapshot__Header *pb, struct ledger *ledger)
{
    if (!pb->ledger || pb->n_chips != LEDGER_OWNERS || pb->n_chip_us != LEDGER_OWNERS || pb->now_ns < 0 ||
        pb->since_us > pb->now_ns / NS_PER_US || pb->opened_us > pb->since_us)
        return false;
    ledger->all_chip_us = pb->all_chip_us;
    ledger->since_us = pb->since_us;
    ledger->opened_us = pb->opened_us;
    mem_copy(ledger->chips, pb->chips, sizeof ledger->chips);
    mem_copy(ledger->chip_us, pb->chip_us, sizeof ledger->chip_us);
    return read_more(ledger, pb->ledger);
}

/* --- derived state --------------------------------------------------------------- */

static void count_gang(const struct gang *gang, struct ledger *ret_counted)
{
    CHECK(gang->account.owner < LEDGER_OWNERS && gang->account.size < LEDGER_SIZES);
    if (!gang->account.held)
        return;
    ret_counted->chips[gang->account.owner] += gang->account.chips;
    if (gang->account.owner != OWNER_SPARE)
        ret_counted->sizes[gang->account.size].chips += gang->account.chips;
}

bool snapshot_ledger_restored(struct core *core)
{
    struct ledger counted = {0}, *ledger = &core->ledger;
    jobs_restore_reserved(&core->jobs, &core->cluster);
    for (size_t m = 0; m < core->cluster.machine_count; m++) {
        struct machine *machine = &core->cluster.machines[m];
        machine->booked = machine_to_book(machine);
        counted.chips[machine->booked.owner] += machine->booked.chips;
        counted.chips[OWNER_RESERVED] += machine->booked.reserved;
    }
    for (size_t i = 0; i < core->jobs.jobsets.len; i++)
        for (size_t g = 0; g < core->jobs.jobsets.items[i]->gangs.len; g++) {
            struct gang *gang = core->jobs.jobsets.items[i]->gangs.items[g];
            gang->account.held = gang->state != GANG_QUEUED;
            count_gang(gang, &counted);
        }
    for (int size = 0; size < LEDGER_SIZES; size++)
        ledger->sizes[size].chips = counted.sizes[size].chips;
    return memcmp(ledger->chips, counted.chips, sizeof ledger->chips) == 0;
}
