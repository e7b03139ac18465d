/* snapshot_ledger.c - the books: the cluster's in the header, and the accounts of gangs and JobSets. The
 * numbers of chips are derived from machines and gangs, and must be those that were written. */
#include "core/agent/codec_pb.h"
#include "core/internal.h"
#include "core/job/life.h"
#include "core/job/trial.h"
#include "core/snapshot.h"

/* Number of owners in snapshots from before the ledger was complete, and from before there were spares. */
enum { OWNERS_OLD = OWNER_SPARE + 1, OWNERS_OLDEST = OWNER_SPARE };

static int64_t *copy_i64(struct arena *arena, const int64_t *from, size_t count)
{
    int64_t *to = ARENA_ARRAY(arena, int64_t, count);
    mem_copy(to, from, count * sizeof(*to));
    return to;
}

static bool owners_fit(size_t count)
{
    return count == LEDGER_OWNERS || count == OWNERS_OLD || count == OWNERS_OLDEST;
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
    if (!pb || !owners_fit(pb->n_chip_us) || pb->owner >= LEDGER_OWNERS || pb->chips < 0 ||
        pb->size >= LEDGER_SIZES || pb->since_us > now_ns / NS_PER_US || pb->opened_us > pb->since_us ||
        ledger_owner_is_free((enum ledger_owner)pb->owner))
        return false;
    *ret = (struct ledger_account){.chips = pb->chips,
                                   .since_us = pb->since_us,
                                   .opened_us = pb->opened_us,
                                   .wanted_chip_us = pb->wanted_chip_us,
                                   .owner = (enum ledger_owner)pb->owner,
                                   .size = (uint8_t)pb->size};
    mem_copy(ret->chip_us, pb->chip_us, pb->n_chip_us * sizeof(*pb->chip_us));
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
    if (!owners_fit(pb->n_chips) || pb->n_chip_us != pb->n_chips || pb->now_ns < 0 ||
        pb->since_us > pb->now_ns / NS_PER_US || pb->opened_us > pb->since_us)
        return false;
    ledger->all_chip_us = pb->all_chip_us;
    ledger->since_us = pb->since_us;
    ledger->opened_us = pb->opened_us;
    mem_copy(ledger->chips, pb->chips, pb->n_chips * sizeof(*pb->chips));
    mem_copy(ledger->chip_us, pb->chip_us, pb->n_chip_us * sizeof(*pb->chip_us));
    if (pb->ledger)
        return read_more(ledger, pb->ledger);
    for (int size = 0; size < LEDGER_SIZES; size++) /* exposure is counted from now on */
        ledger->sizes[size].since_us = ledger->since_us;
    return true;
}

/* --- what follows from the rest --------------------------------------------------------------- */

/* An old snapshot has one owner for all preparations, and no classes of sizes. */
static void derive_gang(struct gang *gang, bool old)
{
    for (size_t t = 0; old && t < gang->tasks.len; t++)
        gang->told |= gang->tasks.items[t]->start_sent_ns > 0;
    gang->account.held = gang->state != GANG_QUEUED;
    if (old)
        gang->account.size = jobset_size_class(gang->jobset);
    if (old && gang->state == GANG_QUEUED && gang->account.owner == OWNER_RESTARTING)
        gang->account.owner = OWNER_AWAITING;
    else if (old && !gang->told && !gang_is_spare(gang) && gang->account.held)
        gang->account.owner = gang->preflight ? OWNER_PREFLIGHT : OWNER_PLACING;
    else if (old && gang->account.owner == OWNER_QUEUED && gang->account.held)
        gang->account.owner = OWNER_STARTING;
}

static void count_gang(const struct gang *gang, struct ledger *ret_counted)
{
    if (!gang->account.held)
        return;
    ret_counted->chips[gang->account.owner] += gang->account.chips;
    if (gang->account.owner != OWNER_SPARE)
        ret_counted->sizes[gang->account.size].chips += gang->account.chips;
}

/* Old books do not have the accounts of deleted JobSets: the difference of the two books is theirs. */
static void derive_gone(struct core *core)
{
    struct ledger *ledger = &core->ledger;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++)
        ledger->gone_chip_us[owner] =
            ledger_owner_is_free((enum ledger_owner)owner) ? 0 : ledger->chip_us[owner];
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        struct ledger_account account = jobset_account(jobset, ledger->since_us * NS_PER_US);
        for (int owner = 0; owner < LEDGER_OWNERS; owner++)
            ledger->gone_chip_us[owner] -= account.chip_us[owner];
    }
    ledger->gone_wanted_chip_us = 0;
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (ledger->gone_chip_us[owner] < 0)
            ledger->gone_chip_us[owner] = 0;
        ledger->gone_wanted_chip_us += ledger->gone_chip_us[owner];
    }
}

/* Books in which reserved chips were not told from other usable ones take the present owners. */
static void adopt_reserved(struct ledger *ledger, const struct ledger *counted)
{
    static const enum ledger_owner usable[] = {OWNER_IDLE, OWNER_FRAGMENTED, OWNER_STANDBY, OWNER_RESERVED};
    int64_t more = 0;
    for (size_t i = 0; i < sizeof usable / sizeof *usable; i++)
        more += ledger->chips[usable[i]] - counted->chips[usable[i]];
    if (ledger->chips[OWNER_RESERVED] || more)
        return;
    for (size_t i = 0; i < sizeof usable / sizeof *usable; i++)
        ledger->chips[usable[i]] = counted->chips[usable[i]];
}

bool snapshot_ledger_restored(struct core *core, bool old)
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
            derive_gang(core->jobs.jobsets.items[i]->gangs.items[g], old);
            count_gang(core->jobs.jobsets.items[i]->gangs.items[g], &counted);
        }
    for (int size = 0; size < LEDGER_SIZES; size++)
        ledger->sizes[size].chips = counted.sizes[size].chips;
    if (old) {
        mem_copy(ledger->chips, counted.chips, sizeof ledger->chips);
        derive_gone(core);
    }
    adopt_reserved(ledger, &counted);
    return memcmp(ledger->chips, counted.chips, sizeof ledger->chips) == 0;
}
