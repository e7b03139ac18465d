/* reach.c - counts the parts of the recovery ladder that a run has reached: what no run reaches is not
 * tested. Decisions are read where the ladder keeps them; of several in one event the newest counts. */
#include "sim/world.h"

#include <string.h>

#include "core/slice/slice.h"

const char *torture_reach_name(enum torture_reach reach)
{
    static const char *const names[REACHES] = {
        "retry",
        "restart-process",
        "replace-machine",
        "shrink",
        "dump",
        "requeue",
        "rejoined",
        "spare used",
        "dying checkpoint",
        "shrunk",
        "grown",
        "moved",
        "turn cut",
        "append refused",
        "append failed",
        "write refused",
        "news missed",
        "away again",
        "controller paused",
        "heartbeat answered by the stand-in",
        "rank table sent",
        "log restored",
        "stranger stopped",
        "caught up",
        "drained",
        "rerouted",
        "slice moved",
        "rerouted back",
        "slice lost",
        "slice lost, no reroute",
        "drained under a slice",
        "session of chips",
        "wrong wire",
        "drain answered",
        "drain answer overdue",
    };
    CHECK((unsigned)reach < REACHES);
    return names[reach];
}

void reach_add(struct world *world, const struct driver_stats *stats)
{
    uint64_t *reached = world->outcome->reached;
    reached[REACH_TURN_CUT] += stats->cut_turns;
    reached[REACH_APPEND_REFUSED] += stats->failed_appends;
    reached[REACH_APPEND_FAILED] += stats->late_failures;
    reached[REACH_WRITE_REFUSED] += stats->refused_writes;
    reached[REACH_NEWS_MISSED] += stats->missed_news;
    reached[REACH_AWAY_AGAIN] += stats->known_aways;
    reached[REACH_PAUSED] += stats->pauses;
    reached[REACH_RANK_TABLE] += stats->rank_tables;
}

static bool is_new(const struct reach_seen *seen, const struct ladder *ladder)
{
    const struct ladder_use *use = &ladder->uses.items[ladder->uses.len - 1];
    return ladder->uses.len != seen->uses || use->at_ns != seen->use.at_ns || use->rung != seen->use.rung;
}

static void look_at_slice(struct world *world, const struct jobset *jobset, struct reach_seen *seen)
{
    const struct slices *slices = core_slices(world->controller.core);
    const struct slice *slice = slices->list.len ? slice_find(slices, jobset->uid) : NULL;
    uint64_t *reached = world->outcome->reached;
    if (!slice) {
        seen->tables = seen->wrong = 0;
        seen->slice_moves = seen->slice_lost = false;
        return;
    }
    if (slice->tables > 1 && slice->tables > seen->tables) {
        reached[REACH_REROUTED]++;
        reached[REACH_REPAIRED] += (seen->tables_out & ~slice->tables_out) != 0;
    }
    reached[REACH_WRONG_WIRE] += (slice->wrong & ~seen->wrong) != 0;
    seen->wrong = slice->wrong;
    bool lost = slice->lost && !slice->leave_ns;
    reached[REACH_SLICE_LOST] += lost && !seen->slice_lost;
    reached[REACH_SWITCH_LOST] += lost && !seen->slice_lost && slice->moves;
    seen->slice_lost = lost;
    seen->tables_out = slice->tables_out;
    reached[REACH_SLICE_MOVED] += slice->leave_ns && slice->lost && !seen->slice_moves;
    seen->tables = slice->tables;
    seen->slice_moves = slice->leave_ns && slice->lost;
}

void reach_look(struct world *world, const struct jobset *jobset, struct reach_seen *seen)
{
    _Static_assert((int)REACH_REQUEUE - (int)REACH_RETRY == (int)RUNG_REQUEUE - (int)RUNG_RETRY,
                   "rungs are counted in their order");
    const struct ladder *ladder = &jobset->recovery.ladder;
    uint64_t *reached = world->outcome->reached;
    if (ladder->uses.len > 0 && is_new(seen, ladder)) {
        seen->use = ladder->uses.items[ladder->uses.len - 1];
        CHECK(seen->use.rung >= RUNG_RETRY && seen->use.rung <= RUNG_REQUEUE);
        reached[seen->use.rung - RUNG_RETRY + REACH_RETRY]++;
    }
    seen->uses = ladder->uses.len;
    size_t away = jobset->recovery.absence.replicas.len;
    reached[REACH_SHRUNK] += away > seen->away;
    reached[REACH_GROWN] += away < seen->away && jobset_keeps(jobset);
    seen->away = away;
    const struct move *move = &jobset->recovery.move;
    bool leaving = move->by_spares && move->state == MOVE_LEAVING;
    reached[REACH_MOVED] += leaving && !seen->leaving;
    seen->leaving = leaving;
    uint32_t restarts = jobset->history.record_count;
    if (restarts > seen->restarts)
        reached[REACH_CAUGHT_UP] += strcmp(restart_newest(jobset)->cause, "LogRestored") == 0;
    seen->restarts = restarts;
    look_at_slice(world, jobset, seen);
}
