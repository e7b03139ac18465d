/* snapshot_recovery.c - the recovery of a JobSet in snapshots: its state and path, absent replicas, the
 * ladder's memory, crashes, the move off a machine, and the last save before a suspension. */
#include "core/agent/codec_pb.h"
#include "core/job/job.h"
#include "core/recover/recover.h"
#include "core/log/snapshot.h"

#include <stdio.h>

static void write_ladder(struct arena *arena, const struct ladder *ladder, Snapshot__Recovery *pb)
{
    CHECK(ladder->uses.len <= LADDER_USES_MAX);
    CHECK(ladder->rung < RUNGS && ladder->cause < LOSS_CAUSES && ladder->best_step >= -1);
    Snapshot__Ladder *item = pb->ladder = ARENA_NEW(arena, Snapshot__Ladder);
    snapshot__ladder__init(item);
    item->rung = ladder->rung;
    item->cause = ladder->cause;
    item->decided_ns = ladder->decided_ns;
    item->due_ns = ladder->due_ns;
    item->wait_ns = ladder->wait_ns;
    item->best_step = ladder->best_step;
    item->progressed = ladder->progressed;
    item->stalled = ladder->stalled;
    item->n_uses = ladder->uses.len;
    item->uses = ARENA_ARRAY(arena, Snapshot__LadderUse *, ladder->uses.len);
    for (size_t i = 0; i < ladder->uses.len; i++) {
        const struct ladder_use *use = &ladder->uses.items[i];
        item->uses[i] = ARENA_NEW(arena, Snapshot__LadderUse);
        snapshot__ladder_use__init(item->uses[i]);
        item->uses[i]->at_ns = use->at_ns;
        item->uses[i]->rung = use->rung;
        item->uses[i]->cause = use->cause;
        item->uses[i]->fell = use->fell;
    }
}

static bool read_use(const Snapshot__LadderUse *pb, int64_t now_ns, struct ladder *ladder)
{
    if (pb->rung >= RUNGS || pb->cause >= LOSS_CAUSES || pb->at_ns > now_ns ||
        (ladder->uses.len > 0 && pb->at_ns < vec_last(&ladder->uses).at_ns))
        return false;
    struct ladder_use use = {
        .at_ns = pb->at_ns, .rung = (uint8_t)pb->rung, .cause = (uint8_t)pb->cause, .fell = pb->fell};
    vec_push(&ladder->uses, use);
    return true;
}

static bool read_ladder(const Snapshot__Ladder *item, int64_t now_ns, struct ladder *ladder)
{
    if (!item || item->rung >= RUNGS || item->cause >= LOSS_CAUSES || item->decided_ns > now_ns ||
        item->best_step < -1 || item->stalled < 0 || item->n_uses > LADDER_USES_MAX || ladder->uses.len)
        return false;
    ladder->rung = (uint8_t)item->rung;
    ladder->cause = (uint8_t)item->cause;
    ladder->decided_ns = item->decided_ns;
    ladder->due_ns = item->due_ns;
    ladder->wait_ns = item->wait_ns;
    ladder->best_step = item->best_step;
    ladder->progressed = item->progressed;
    ladder->stalled = item->stalled;
    bool read = true;
    for (size_t i = 0; i < item->n_uses && read; i++)
        read = read_use(item->uses[i], now_ns, ladder);
    return read;
}

static void write_move(struct arena *arena, const struct move *move, Snapshot__Recovery *pb)
{
    CHECK(move->state < MOVE_STATES);
    if (move->state == MOVE_NONE)
        return;
    pb->move = ARENA_NEW(arena, Snapshot__Move);
    snapshot__move__init(pb->move);
    pb->move->machine = move->machine;
    pb->move->policy = move->policy;
    pb->move->noticed_ns = move->noticed_ns;
    pb->move->due_ns = move->due_ns;
    pb->move->state = move->state;
    pb->move->by_spares = move->by_spares;
    pb->move->planned = move->planned;
    pb->move->why = codec_text(arena, str_from(move->why));
}

/* Reads the move off a machine; `pb` NULL: no move is under way. */
static bool read_move(const struct cluster *cluster, int64_t now_ns, const Snapshot__Move *pb,
                      struct move *ret)
{
    if (!pb)
        return true;
    if ((pb->machine != MACHINE_NONE && pb->machine >= cluster->machine_count) || pb->policy >= SUB_HEALTHS ||
        pb->noticed_ns > now_ns || pb->state == MOVE_NONE || pb->state >= MOVE_STATES)
        return false;
    *ret = (struct move){.state = (uint8_t)pb->state,
                         .by_spares = pb->by_spares,
                         .planned = pb->planned,
                         .machine = pb->machine,
                         .policy = (enum sub_health)pb->policy,
                         .noticed_ns = pb->noticed_ns,
                         .due_ns = pb->due_ns};
    snprintf(ret->why, sizeof(ret->why), "%s", pb->why);
    return true;
}

void snapshot_write_recovery(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *jobset_pb)
{
    const struct jobset_recovery *recovery = &jobset->recovery;
    Snapshot__Recovery *pb = jobset_pb->recovery = ARENA_NEW(arena, Snapshot__Recovery);
    CHECK(recovery_state_fits(recovery->state, recovery->path));
    CHECK(recovery->seen_attempt == 0); /* between two steps */
    CHECK(!incident_is_open(&recovery->incident));
    snapshot__recovery__init(pb);
    pb->state = recovery->state;
    pb->path = recovery->path;
    pb->counted = recovery->counted;
    pb->since_ns = recovery->since_ns;
    pb->rejoin_since_ns = recovery->rejoin_since_ns;
    pb->apart_ns = recovery->apart_ns;
    pb->attempt_epoch = recovery->attempt_epoch;
    pb->in_place_restarts = recovery->in_place_restarts;
    pb->in_place_counted = recovery->in_place_counted;
    pb->joined_ns = recovery->joins.newest_ns;
    pb->join_due_ns = recovery->joins.due_ns;
    pb->unjoined_ns = recovery->joins.blamed_ns;
    pb->n_away_replicas = recovery->absence.replicas.len;
    pb->away_replicas = recovery->absence.replicas.items;
    pb->away_size = recovery->absence.size;
    pb->away_since_ns = recovery->absence.since_ns;
    pb->away_grow_ns = recovery->absence.grow_ns;
    pb->away_overdue = recovery->absence.overdue;
    pb->crashes = recovery->crashes.count;
    pb->crashes_best_step = recovery->crashes.best_step;
    pb->crashes_due_ns = recovery->crashes.due_ns;
    pb->suspend_noticed_ns = recovery->suspend_grace.noticed_ns;
    pb->suspend_due_ns = recovery->suspend_grace.due_ns;
    write_ladder(arena, &recovery->ladder, pb);
    write_move(arena, &recovery->move, pb);
}

/* Whether the values of a record are consistent. */
static bool is_sane(const Snapshot__Recovery *pb, int64_t now_ns)
{
    const int64_t past[] = {pb->rejoin_since_ns, pb->apart_ns,      pb->joined_ns,
                            pb->unjoined_ns,     pb->away_since_ns, pb->suspend_noticed_ns};
    for (size_t i = 0; i < sizeof(past) / sizeof(*past); i++)
        if (past[i] < 0 || past[i] > now_ns)
            return false;
    if (pb->state >= RECOVERY_STATES || pb->path >= PATHS ||
        !recovery_state_fits((uint8_t)pb->state, (uint8_t)pb->path))
        return false;
    return pb->join_due_ns >= 0 && pb->in_place_restarts >= 0 && pb->in_place_counted >= 0 &&
           (pb->suspend_noticed_ns == 0) == (pb->suspend_due_ns == 0) &&
           (pb->state != RECOVERY_DUMPING || pb->n_away_replicas == 0);
}

bool snapshot_read_recovery(const struct cluster *cluster, int64_t now_ns, struct jobset *jobset,
                            const Snapshot__Recovery *pb)
{
    struct jobset_recovery *recovery = &jobset->recovery;
    if (!pb || !is_sane(pb, now_ns))
        return false;
    recovery->state = (uint8_t)pb->state;
    recovery->path = (uint8_t)pb->path;
    recovery->counted = pb->counted;
    recovery->since_ns = pb->since_ns;
    recovery->rejoin_since_ns = pb->rejoin_since_ns;
    recovery->apart_ns = pb->apart_ns;
    recovery->attempt_epoch = pb->attempt_epoch;
    recovery->in_place_restarts = pb->in_place_restarts;
    recovery->in_place_counted = pb->in_place_counted;
    recovery->joins = (struct joins){pb->joined_ns, pb->join_due_ns, pb->unjoined_ns};
    for (size_t i = 0; i < pb->n_away_replicas; i++)
        vec_push(&recovery->absence.replicas, pb->away_replicas[i]);
    recovery->absence.size = pb->away_size;
    recovery->absence.since_ns = pb->away_since_ns;
    recovery->absence.grow_ns = pb->away_grow_ns;
    recovery->absence.overdue = pb->away_overdue;
    recovery->crashes = (struct crashes){pb->crashes, pb->crashes_best_step, pb->crashes_due_ns};
    recovery->suspend_grace = (struct suspend_grace){pb->suspend_noticed_ns, pb->suspend_due_ns};
    return shrink_restored(jobset) && read_ladder(pb->ladder, now_ns, &recovery->ladder) &&
           read_move(cluster, now_ns, pb->move, &recovery->move);
}
