/* sim.h - a small training job with tensor, pipeline and data parallel groups, run until it hangs.
 *
 * Operations stand in one order of the whole job; each rank calls its own in that order, a few ahead of what
 * its device has finished. A device carries out one after the other; one is finished when all its members
 * have come to it. Sends may overtake: they wait beside the others. Ranks go on in random order, so they are
 * skewed, until none can; then each writes its dump as JSON. */
#ifndef PHX_TESTS_CORE_DIAGNOSE_SIM_H
#define PHX_TESTS_CORE_DIAGNOSE_SIM_H

#include <stdio.h>

#include "doc/json.h"
#include "base/rng.h"
#include "base/vec.h"
#include "core/diagnose/diagnose.h"

enum { SIM_RANKS_MAX = 64, SIM_GROUPS_MAX = 256, SIM_OPS_MAX = 8192 };

/* A fault of one rank, at the place `at` of its own operations. */
enum sim_fault {
    SIM_WELL,
    SIM_PROCESS_STOPS, /* it does not call it */
    SIM_DIES,          /* the same, and it leaves no dump */
    SIM_DEVICE_ERROR,  /* the others finish it, on this rank it stays open and nothing behind it begins */
    SIM_DEVICE_HANGS,  /* it is called, but never begun */
};

struct sim_group {
    char name[8];
    uint32_t members[SIM_RANKS_MAX], count;
};
struct sim_op {
    uint32_t group, source, target; /* ranks of the job */
    bool p2p;
    uint64_t finished; /* by rank, one bit each */
};
struct sim_call {
    uint32_t op, batch; /* not 0: called together with those of the same number, and begun together */
    int64_t seq, p2p_seq;
};
struct sim_rank {
    VEC(struct sim_call) calls; /* its program */
    size_t called, first_open;  /* places: called are those before the one, finished those before the other */
    enum sim_fault fault;
    size_t at, ahead;
};
struct sim {
    struct rng rng;
    uint32_t ranks;
    struct sim_group groups[SIM_GROUPS_MAX];
    uint32_t group_count;
    struct sim_op ops[SIM_OPS_MAX];
    uint32_t op_count;
    struct sim_rank rank[SIM_RANKS_MAX];
    bool sends_overtake, timing, status, only_open, wide_pipeline, batched;
    size_t kept; /* newest entries in a dump, where not only open ones */
};

static inline bool sim_member(const struct sim *sim, const struct sim_op *op, uint32_t rank)
{
    const struct sim_group *group = &sim->groups[op->group];
    if (op->p2p)
        return rank == op->source || rank == op->target;
    for (uint32_t i = 0; i < group->count; i++)
        if (group->members[i] == rank)
            return true;
    return false;
}

static inline uint32_t sim_group(struct sim *sim, const uint32_t *members, uint32_t count)
{
    struct sim_group *group = &sim->groups[sim->group_count];
    CHECK(sim->group_count < SIM_GROUPS_MAX);
    snprintf(group->name, sizeof group->name, "%u", sim->group_count * 3);
    memcpy(group->members, members, count * sizeof *members);
    group->count = count;
    return sim->group_count++;
}

static inline void sim_add(struct sim *sim, struct sim_op op)
{
    CHECK(sim->op_count < SIM_OPS_MAX);
    if (sim->groups[op.group].count > 1)
        sim->ops[sim->op_count++] = op;
}

/* Ranks are (data, pipeline, tensor), the last one next to each other. */
static inline void sim_schedule(struct sim *sim, uint32_t tp, uint32_t pp, uint32_t dp, uint32_t steps)
{
    uint32_t world[SIM_RANKS_MAX], tensor[SIM_RANKS_MAX], data[SIM_RANKS_MAX], pipe[SIM_RANKS_MAX] = {0};
    uint32_t links[SIM_RANKS_MAX] = {0}, members[SIM_RANKS_MAX];
    sim->ranks = tp * pp * dp;
    for (uint32_t i = 0; i < sim->ranks; i++)
        world[i] = i;
    uint32_t all = sim_group(sim, world, sim->ranks);
    for (uint32_t first = 0; first < sim->ranks; first += tp) {
        uint32_t group = sim_group(sim, world + first, tp);
        for (uint32_t i = 0; i < tp; i++)
            tensor[first + i] = group;
    }
    for (uint32_t i = 0; i < tp * pp; i++) {
        for (uint32_t d = 0; d < dp; d++)
            members[d] = d * tp * pp + i;
        uint32_t group = sim_group(sim, members, dp);
        for (uint32_t d = 0; d < dp; d++)
            data[members[d]] = group;
    }
    for (uint32_t i = 0; i < sim->ranks; i++) { /* links[i]: from i's stage to the next */
        uint32_t stage = i / tp % pp;
        if (sim->wide_pipeline && stage == 0) {
            for (uint32_t p = 0; p < pp; p++)
                members[p] = i + p * tp;
            pipe[i] = sim_group(sim, members, pp);
        } else if (sim->wide_pipeline) {
            pipe[i] = pipe[i - tp];
        } else if (stage + 1 < pp) {
            members[0] = i;
            members[1] = i + tp;
            links[i] = sim_group(sim, members, 2);
        }
        if (sim->wide_pipeline)
            links[i] = pipe[i];
    }
    for (uint32_t step = 0; step < steps; step++) {
        for (uint32_t half = 0; half < 4; half++) { /* forward, backward, twice */
            for (uint32_t k = 0; k < pp; k++) {
                uint32_t stage = half % 2 ? pp - 1 - k : k;
                for (uint32_t i = 0; i < sim->ranks; i++)
                    if (i / tp % pp == stage && i % tp == 0)
                        for (uint32_t times = 0; times < 2; times++)
                            sim_add(sim, (struct sim_op){.group = tensor[i]});
                for (uint32_t i = 0; i < sim->ranks; i++) {
                    if (i / tp % pp != stage)
                        continue;
                    if (half % 2 == 0 && stage + 1 < pp)
                        sim_add(sim, (struct sim_op){links[i], i, i + tp, true, 0});
                    if (half % 2 == 1 && stage > 0)
                        sim_add(sim, (struct sim_op){links[i - tp], i, i - tp, true, 0});
                }
            }
        }
        for (uint32_t i = 0; i < tp * pp; i++)
            sim_add(sim, (struct sim_op){.group = data[i]});
        if (step % 2 || step + 1 == steps) /* nobody is through before the others */
            sim_add(sim, (struct sim_op){.group = all});
    }
}

/* Every rank's own operations, with the numbers that its process gives them. */
static inline void sim_programs(struct sim *sim)
{
    for (uint32_t r = 0; r < sim->ranks; r++) {
        int64_t seq[SIM_GROUPS_MAX] = {0}, p2p[SIM_GROUPS_MAX] = {0};
        sim->rank[r].ahead = 1 + rng_below(&sim->rng, 8);
        for (uint32_t i = 0; i < sim->op_count; i++) {
            const struct sim_op *op = &sim->ops[i];
            if (!sim_member(sim, op, r))
                continue;
            ++*(op->p2p ? &p2p[op->group] : &seq[op->group]);
            struct sim_call call = {i, 0, seq[op->group], p2p[op->group]};
            vec_push(&sim->rank[r].calls, call);
        }
        for (size_t i = 0; sim->batched && i + 1 < sim->rank[r].calls.len; i++) {
            struct sim_call *call = &sim->rank[r].calls.items[i];
            const struct sim_op *op = &sim->ops[call[0].op], *next = &sim->ops[call[1].op];
            if (!call->batch && op->p2p && next->p2p && op->group == next->group &&
                op->source != next->source)
                call[0].batch = call[1].batch = (uint32_t)i + 1;
        }
    }
}

static inline bool sim_finished(const struct sim *sim, uint32_t rank, size_t place)
{
    return sim->ops[sim->rank[rank].calls.items[place].op].finished >> rank & 1;
}

static inline bool sim_stopped(const struct sim_rank *rank)
{
    return (rank->fault == SIM_PROCESS_STOPS || rank->fault == SIM_DIES) && rank->called == rank->at;
}

static inline bool sim_overtakes(const struct sim *sim, uint32_t rank, size_t place)
{
    const struct sim_op *op = &sim->ops[sim->rank[rank].calls.items[place].op];
    return sim->sends_overtake && op->p2p && op->source == rank;
}

/* Has the rank's device come to this operation? */
static inline bool sim_at(const struct sim *sim, uint32_t r, uint32_t op)
{
    const struct sim_rank *rank = &sim->rank[r];
    uint32_t within = 0; /* the batch that is begun */
    for (size_t i = rank->first_open; i < rank->called; i++) {
        bool faulty = rank->fault == SIM_DEVICE_HANGS || rank->fault == SIM_DEVICE_ERROR;
        if (faulty && i >= rank->at && (rank->fault == SIM_DEVICE_HANGS || i > rank->at))
            return false;
        if (within && rank->calls.items[i].batch != within)
            return false;
        if (rank->calls.items[i].op == op)
            return !sim_finished(sim, r, i);
        if (!sim_finished(sim, r, i) && !sim_overtakes(sim, r, i)) {
            within = rank->calls.items[i].batch;
            if (!within)
                return false;
        }
    }
    return false;
}

static inline bool sim_try(struct sim *sim, uint32_t index)
{
    struct sim_op *op = &sim->ops[index];
    if (op->finished)
        return false;
    for (uint32_t r = 0; r < sim->ranks; r++)
        if (sim_member(sim, op, r) && !sim_at(sim, r, index))
            return false;
    for (uint32_t r = 0; r < sim->ranks; r++) {
        struct sim_rank *rank = &sim->rank[r];
        bool fails = rank->fault == SIM_DEVICE_ERROR && rank->at < rank->called &&
                     rank->calls.items[rank->at].op == index;
        if (sim_member(sim, op, r) && !fails)
            op->finished |= UINT64_C(1) << r;
    }
    return true;
}

/* One rank calls what it may, and finishes what can be. False: nothing changed. */
static inline bool sim_go(struct sim *sim, uint32_t r)
{
    struct sim_rank *rank = &sim->rank[r];
    bool changed = false;
    size_t open = 0;
    while (rank->first_open < rank->called && sim_finished(sim, r, rank->first_open))
        rank->first_open++;
    for (size_t i = rank->first_open; i < rank->called; i++)
        open += !sim_finished(sim, r, i);
    for (; open < rank->ahead && rank->called < rank->calls.len && !sim_stopped(rank); changed = true)
        do {
            rank->called++;
            open++;
        } while (rank->called < rank->calls.len && rank->calls.items[rank->called].batch &&
                 rank->calls.items[rank->called].batch == rank->calls.items[rank->called - 1].batch);
    for (size_t i = rank->first_open; i < rank->called; i++)
        if (!sim_finished(sim, r, i))
            changed = sim_try(sim, rank->calls.items[i].op) || changed;
    return changed;
}

static inline void sim_run(struct sim *sim)
{
    for (uint32_t idle = 0; idle < 4 * sim->ranks;) {
        uint32_t r = (uint32_t)rng_below(&sim->rng, sim->ranks);
        idle = sim_go(sim, r) ? 0 : idle + 1;
    }
    for (bool changed = true; changed;) {
        changed = false;
        for (uint32_t r = 0; r < sim->ranks; r++)
            changed = sim_go(sim, r) || changed;
    }
}

/* Is it finished as the dump says: with all of its batch? */
static inline bool sim_finished_whole(const struct sim *sim, uint32_t r, size_t place)
{
    const struct sim_rank *rank = &sim->rank[r];
    bool finished = sim_finished(sim, r, place);
    for (size_t i = place ? place - 1 : 0; i < rank->calls.len && i <= place + 1; i++)
        if (rank->calls.items[place].batch && rank->calls.items[i].batch == rank->calls.items[place].batch)
            finished = finished && sim_finished(sim, r, i);
    return finished;
}

/* Did the fault come to be? */
static inline bool sim_manifest(const struct sim *sim, uint32_t r)
{
    const struct sim_rank *rank = &sim->rank[r];
    switch (rank->fault) {
    case SIM_WELL:
        return false;
    case SIM_DIES:
    case SIM_PROCESS_STOPS:
        return sim_stopped(rank) && rank->at < rank->calls.len;
    case SIM_DEVICE_ERROR:
        return rank->at < rank->called && sim->ops[rank->calls.items[rank->at].op].finished;
    case SIM_DEVICE_HANGS:
        break;
    }
    for (size_t i = 0; i < rank->at && i < rank->called; i++)
        if (!sim_finished(sim, r, i))
            return false;
    return rank->at < rank->called;
}

static inline bool sim_done(const struct sim *sim)
{
    for (uint32_t r = 0; r < sim->ranks; r++)
        if (sim->rank[r].called < sim->rank[r].calls.len || !sim_finished(sim, r, sim->rank[r].called - 1))
            return false;
    return true;
}

static inline void sim_state(const struct sim *sim, struct buf *out, uint32_t r, size_t place, bool part)
{
    const struct sim_call *call = &sim->rank[r].calls.items[place];
    const struct sim_op *op = &sim->ops[call->op];
    bool finished = sim_finished_whole(sim, r, place), begun = sim->timing && sim_at(sim, r, call->op);
    buf_printf(out, ",\"collective_seq_id\":%lld,\"p2p_seq_id\":%lld,\"time_created_ns\":%llu,",
               (long long)call->seq, (long long)call->p2p_seq, 1700000000000000000ull + call->op);
    buf_printf(out, "\"pg_id\":%u,\"process_group\":[\"%s\",\"g\"],\"is_p2p\":%s,\"state\":\"%s\"",
               op->group * 2, sim->groups[op->group].name, op->p2p ? "true" : "false",
               part       ? "scheduled"
               : finished ? "completed"
               : begun    ? "started"
                          : "scheduled");
}

/* Parts of a batch stand one behind the other, and behind them the whole, which alone has their state. */
static inline void sim_entry(const struct sim *sim, struct buf *out, uint32_t r, size_t place)
{
    const struct sim_call *call = &sim->rank[r].calls.items[place];
    const struct sim_op *op = &sim->ops[call->op];
    const struct sim_group *group = &sim->groups[op->group];
    bool second = call->batch && place > 0 && call[-1].batch == call->batch;
    size_t record = second ? 3 * place - 2 : 3 * place;
    uint32_t ends[2] = {0};
    for (uint32_t i = 0; i < group->count; i++) {
        ends[0] = group->members[i] == op->source ? i : ends[0];
        ends[1] = group->members[i] == op->target ? i : ends[1];
    }
    buf_printf(out, "{\"record_id\":%zu,\"profiling_name\":", record);
    if (!op->p2p)
        buf_printf(out, "\"nccl:all_reduce\"");
    else if (op->source == r)
        buf_printf(out, "\"nccl:send %u->%u\"", ends[0], ends[1]);
    else
        buf_printf(out, "\"nccl:recv %u<-%u\"", ends[1], ends[0]);
    sim_state(sim, out, r, place, call->batch != 0);
    buf_printf(out, ",\"input_sizes\":[[4,2]],\"output_sizes\":[[4,2]],\"input_dtypes\":[\"Float\"],"
                    "\"output_dtypes\":[\"Float\"]},");
    if (!second)
        return;
    buf_printf(out, "{\"record_id\":%zu,\"profiling_name\":\"nccl:coalesced\"", record + 1);
    sim_state(sim, out, r, place, false);
    buf_printf(out, "},");
}

/* pg_status has the number of whatever came last in the group. */
static inline void sim_status(const struct sim *sim, struct buf *out, uint32_t r)
{
    const struct sim_rank *rank = &sim->rank[r];
    buf_printf(out, "\"pg_status\":{");
    for (uint32_t g = 0; g < sim->group_count; g++) {
        bool member = false;
        long long enqueued = 0, completed = 0;
        for (uint32_t i = 0; i < sim->groups[g].count; i++)
            member = member || sim->groups[g].members[i] == r;
        for (size_t i = 0; i < rank->called; i++) {
            const struct sim_call *call = &rank->calls.items[i];
            const struct sim_op *op = &sim->ops[call->op];
            long long number = op->p2p ? call->p2p_seq : call->seq;
            enqueued = op->group == g ? number : enqueued;
            completed = op->group == g && sim_finished_whole(sim, r, i) ? number : completed;
        }
        if (member)
            buf_printf(out, "\"%u\":{\"last_enqueued_collective\":%lld,\"last_completed_collective\":%lld},",
                       g * 2, enqueued, completed);
    }
    out->len -= out->data[out->len - 1] == ',';
    buf_printf(out, "},");
}

static inline void sim_dump(const struct sim *sim, struct buf *out, uint32_t r)
{
    const struct sim_rank *rank = &sim->rank[r];
    buf_clear(out);
    buf_printf(out, "{\"version\":\"2.9\",\"pg_config\":{");
    for (uint32_t g = 0; g < sim->group_count; g++) {
        const struct sim_group *group = &sim->groups[g];
        bool member = false;
        for (uint32_t i = 0; i < group->count; i++)
            member = member || group->members[i] == r;
        if (!member)
            continue;
        buf_printf(out, "\"%s\":{\"name\":\"%s\",\"desc\":\"g\",\"ranks\":\"[", group->name, group->name);
        for (uint32_t i = 0; i < group->count; i++)
            buf_printf(out, i ? ", %u" : "%u", group->members[i]);
        buf_printf(out, "]\"},");
    }
    out->len -= out->data[out->len - 1] == ',';
    buf_printf(out, "},");
    if (sim->status)
        sim_status(sim, out, r);
    buf_printf(out, "\"entries\":[");
    for (size_t i = 0; i < rank->called; i++)
        if (!sim_finished_whole(sim, r, i) || (!sim->only_open && i + sim->kept >= rank->called))
            sim_entry(sim, out, r, i);
    out->len -= out->data[out->len - 1] == ',';
    buf_printf(out, "]}");
}

static inline void sim_free(struct sim *sim)
{
    for (uint32_t r = 0; r < SIM_RANKS_MAX; r++)
        vec_done(&sim->rank[r].calls);
    mem_free(sim);
}

#endif
