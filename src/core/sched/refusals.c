#include "core/sched/refusals.h"

#include "base/check.h"

enum { BITS = 64 };

static void hold(struct refusals *refusals, obj_id holder, bool more)
{
    uint32_t count = refusals_held(refusals, holder) + (more ? 1 : UINT32_MAX);
    CHECK(count < UINT32_MAX);
    if (count)
        u64_map_put(&refusals->holders, holder, (void *)(uintptr_t)count);
    else
        u64_map_remove(&refusals->holders, holder);
}

void refusals_add(struct refusals *refusals, struct arena *arena, size_t machine_count, machine_id id,
                  enum refusal refusal, obj_id holder)
{
    CHECK((unsigned)refusal < REFUSALS && id < machine_count);
    if (refusal == FITS) {
        refusals->fitting++;
        return;
    }
    uint64_t **machines = &refusals->machines[refusal];
    refusals->words = (machine_count + BITS - 1) / BITS;
    if (!*machines)
        *machines = ARENA_ARRAY(arena, uint64_t, refusals->words);
    CHECK(!((*machines)[id / BITS] >> id % BITS & 1));
    (*machines)[id / BITS] |= (uint64_t)1 << id % BITS;
    refusals->counts[refusal]++;
    if (refusal == REFUSED_TAKEN)
        hold(refusals, holder, true);
}

void refusals_remove(struct refusals *refusals, machine_id id, enum refusal refusal, obj_id holder)
{
    CHECK((unsigned)refusal < REFUSALS);
    if (refusal == FITS) {
        CHECK(refusals->fitting > 0);
        refusals->fitting--;
        return;
    }
    uint64_t *machines = refusals->machines[refusal];
    CHECK(machines && id / BITS < refusals->words && (machines[id / BITS] >> id % BITS & 1));
    machines[id / BITS] &= ~((uint64_t)1 << id % BITS);
    refusals->counts[refusal]--;
    if (refusal == REFUSED_TAKEN)
        hold(refusals, holder, false);
}

machine_id refusals_next(const struct refusals *refusals, enum refusal refusal, machine_id from)
{
    CHECK((unsigned)refusal < REFUSALS);
    const uint64_t *machines = refusals->machines[refusal];
    if (!machines)
        return MACHINE_NONE;
    uint64_t mask = UINT64_MAX << from % BITS;
    for (size_t word = from / BITS; word < refusals->words; word++, mask = UINT64_MAX)
        if (machines[word] & mask)
            return (machine_id)(word * BITS + (size_t)__builtin_ctzll(machines[word] & mask));
    return MACHINE_NONE;
}

uint32_t refusals_held(const struct refusals *refusals, obj_id holder)
{
    return (uint32_t)(uintptr_t)u64_map_get(&refusals->holders, holder);
}

void refusals_clear(struct refusals *refusals)
{
    refusals->fitting = 0;
    memset(refusals->counts, 0, sizeof refusals->counts);
    for (int refusal = 0; refusal < REFUSALS; refusal++)
        if (refusals->machines[refusal])
            memset(refusals->machines[refusal], 0, refusals->words * sizeof(uint64_t));
    u64_map_done(&refusals->holders);
}

void refusals_done(struct refusals *refusals)
{
    u64_map_done(&refusals->holders);
}
