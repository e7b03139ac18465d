/* snapshot_preflight.c - gangs whose machines are tested before they start, in snapshots. */
#include "core/gang/preflight.h"
#include "core/log/snapshot.h"

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_members(struct arena *arena, const struct preflight *preflight, Snapshot__Preflight *pb)
{
    pb->n_members = preflight->members.len;
    pb->members = ARENA_ARRAY(arena, Snapshot__Paired *, pb->n_members);
    for (size_t i = 0; i < pb->n_members; i++) {
        const struct paired *member = &preflight->members.items[i];
        CHECK(member->machine != MACHINE_NONE);
        Snapshot__Paired *one = pb->members[i] = ARENA_NEW(arena, Snapshot__Paired);
        snapshot__paired__init(one);
        one->machine = member->machine;
        one->n_times_ns = one->n_partners = PREFLIGHT_ROUNDS;
        one->times_ns = (int64_t *)member->times_ns;
        one->partners = (uint32_t *)member->partners;
    }
}

static void write_pairs(struct arena *arena, const struct preflight *preflight, Snapshot__Preflight *pb)
{
    pb->n_pairs = preflight->pairs.len;
    pb->pairs = ARENA_ARRAY(arena, Snapshot__Pair *, pb->n_pairs);
    for (size_t i = 0; i < pb->n_pairs; i++) {
        const struct pair *pair = &preflight->pairs.items[i];
        Snapshot__Pair *one = pb->pairs[i] = ARENA_NEW(arena, Snapshot__Pair);
        snapshot__pair__init(one);
        one->n_machines = one->n_errands = one->n_times_ns = 2;
        one->machines = (uint32_t *)pair->machines;
        one->errands = (uint64_t *)pair->errands;
        one->times_ns = (int64_t *)pair->times_ns;
    }
}

void snapshot_write_preflight(const struct gang *gang, void (*put)(void *context, Snapshot__Record *record),
                              void *context)
{
    const struct preflight *preflight = gang->preflight;
    if (!preflight)
        return;
    CHECK(gang->state == GANG_PLACED); /* its tasks have not started */
    CHECK(preflight->phase >= PREFLIGHT_ALONE && preflight->phase < PREFLIGHT_PHASES);
    struct arena arena ARENA_CLEANUP = {0};
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Preflight pb = SNAPSHOT__PREFLIGHT__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_PREFLIGHT;
    record.preflight = &pb;
    pb.gang = gang->uid;
    pb.phase = preflight->phase;
    pb.in_pairs = preflight->in_pairs;
    pb.begun_ns = preflight->begun_ns;
    write_members(&arena, preflight, &pb);
    write_pairs(&arena, preflight, &pb);
    put(context, &record);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool machine_fits(const struct cluster *cluster, uint32_t machine)
{
    return machine == MACHINE_NONE || machine < cluster->machine_count;
}

static bool read_member(const struct cluster *cluster, struct preflight *preflight,
                        const Snapshot__Paired *pb)
{
    struct paired member = {.machine = pb->machine};
    bool first = preflight->members.len == 0;
    if (pb->n_times_ns != PREFLIGHT_ROUNDS || pb->n_partners != PREFLIGHT_ROUNDS ||
        pb->machine >= cluster->machine_count ||
        (!first && vec_last(&preflight->members).machine >= pb->machine))
        return false;
    for (int r = 0; r < PREFLIGHT_ROUNDS; r++) {
        member.times_ns[r] = pb->times_ns[r];
        member.partners[r] = pb->partners[r];
        if (pb->times_ns[r] < -1 || !machine_fits(cluster, pb->partners[r]))
            return false;
    }
    if (preflight->phase != PREFLIGHT_EXTREMES && pb->partners[1] != MACHINE_NONE)
        return false;
    vec_push(&preflight->members, member);
    return true;
}

static bool is_member(const struct preflight *preflight, machine_id machine)
{
    for (size_t i = 0; i < preflight->members.len; i++)
        if (preflight->members.items[i].machine == machine)
            return true;
    return false;
}

static bool read_pair(struct preflight *preflight, const Snapshot__Pair *pb)
{
    struct pair pair = {0};
    if (pb->n_machines != 2 || pb->n_errands != 2 || pb->n_times_ns != 2)
        return false;
    for (int end = 0; end < 2; end++) {
        pair.machines[end] = pb->machines[end];
        pair.errands[end] = pb->errands[end];
        pair.times_ns[end] = pb->times_ns[end];
        if (!is_member(preflight, pair.machines[end]) || pair.times_ns[end] < 0)
            return false;
    }
    vec_push(&preflight->pairs, pair);
    return true;
}

bool snapshot_read_preflight(struct jobset *jobset, const struct cluster *cluster, int64_t now_ns,
                             const Snapshot__Preflight *pb)
{
    struct gang *gang = jobset->gangs.len ? vec_last(&jobset->gangs) : NULL;
    bool alone = pb->phase == PREFLIGHT_ALONE;
    if (!gang || gang->uid != pb->gang || gang->preflight || gang->state != GANG_PLACED ||
        pb->phase < PREFLIGHT_ALONE || pb->phase >= PREFLIGHT_PHASES || pb->begun_ns > now_ns ||
        alone != (pb->n_pairs == 0) || alone != (pb->n_members == 0))
        return false;
    struct preflight *preflight = gang->preflight = mem_alloc(sizeof *preflight);
    preflight->phase = (uint8_t)pb->phase;
    preflight->in_pairs = pb->in_pairs;
    preflight->begun_ns = pb->begun_ns;
    for (size_t i = 0; i < pb->n_members; i++)
        if (!read_member(cluster, preflight, pb->members[i]))
            return false;
    for (size_t i = 0; i < pb->n_pairs; i++)
        if (!read_pair(preflight, pb->pairs[i]))
            return false;
    return true;
}
