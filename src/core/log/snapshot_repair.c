/* snapshot_repair.c - repairs and maintenance in snapshots. */
#include "core/agent/codec_pb.h"
#include "core/repair/repair.h"
#include "core/log/snapshot.h"
#include "core/step.h"

/* --- writing -------------------------------------------------------------------------------------------- */

static void write_attempts(struct arena *arena, const struct repair *repair, Snapshot__Repair *pb)
{
    CHECK(repair->attempts || repair->attempt_count == 0);
    pb->n_attempts = repair->attempt_count;
    pb->attempts = ARENA_ARRAY(arena, Snapshot__RepairAttempt *, repair->attempt_count);
    for (size_t i = 0; i < repair->attempt_count; i++) {
        const struct repair_attempt *attempt = &repair->attempts[i];
        CHECK(attempt->outcome < REPAIR_OUTCOMES);
        Snapshot__RepairAttempt *to = pb->attempts[i] = ARENA_NEW(arena, Snapshot__RepairAttempt);
        snapshot__repair_attempt__init(to);
        to->action = codec_text(arena, attempt->action);
        to->test = attempt->test;
        to->reboots = attempt->reboots;
        to->outcome = attempt->outcome;
        to->exit_code = attempt->exit_code;
        to->began_ns = attempt->began_ns;
        to->ended_ns = attempt->ended_ns;
        to->output = codec_text(arena, attempt->output);
    }
}

static void write_history(struct arena *arena, const struct repair *repair, Snapshot__Repair *pb)
{
    CHECK(repair->history || repair->history_count == 0);
    pb->n_history = repair->history_count;
    pb->history = ARENA_ARRAY(arena, Snapshot__RepairChange *, repair->history_count);
    for (size_t i = 0; i < repair->history_count; i++) {
        pb->history[i] = ARENA_NEW(arena, Snapshot__RepairChange);
        snapshot__repair_change__init(pb->history[i]);
        pb->history[i]->state = repair->history[i].state;
        pb->history[i]->at_ns = repair->history[i].at_ns;
        pb->history[i]->why = codec_text(arena, repair->history[i].why);
    }
    pb->n_codes = repair->code_count;
    pb->codes = ARENA_ARRAY(arena, char *, repair->code_count);
    for (size_t i = 0; i < repair->code_count; i++)
        pb->codes[i] = codec_text(arena, repair->codes[i]);
}

static void write_repair(struct arena *arena, const struct repair *repair, Snapshot__Repair *pb)
{
    CHECK(repair->uid && repair->subject.len > 0 && repair->state < REPAIR_STATES);
    pb->uid = repair->uid;
    pb->subject = codec_text(arena, repair->subject);
    pb->state = repair->state;
    pb->origin = repair->origin;
    pb->now = repair->now;
    pb->asked = repair->asked;
    pb->tested = repair->tested;
    pb->testing = repair->testing;
    pb->heals = repair->heals;
    pb->asks = repair->asks;
    pb->action = codec_text(arena, repair->action);
    pb->tries = repair->tries;
    pb->tag = repair->tag;
    pb->heard = repair->heard;
    pb->errand = repair->errand;
    pb->due_ns = repair->due_ns;
    pb->opened_ns = repair->opened_ns;
    pb->changed_ns = repair->changed_ns;
    pb->closed_ns = repair->closed_ns;
    pb->watch_ns = repair->watch_ns;
    write_attempts(arena, repair, pb);
    write_history(arena, repair, pb);
}

static void write_totals(const struct repairs *repairs, void (*put)(void *context, Snapshot__Record *record),
                         void *context)
{
    const struct repair_totals *totals = repairs_totals(repairs);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__RepairTotals pb = SNAPSHOT__REPAIR_TOTALS__INIT;
    if (!totals->opened)
        return;
    record.kind_case = SNAPSHOT__RECORD__KIND_REPAIR_TOTALS;
    record.repair_totals = &pb;
    pb.opened = totals->opened;
    pb.tickets = totals->tickets;
    pb.returned = totals->returned;
    pb.attempts = (uint64_t *)totals->attempts;
    pb.n_attempts = REPAIR_OUTCOMES;
    put(context, &record);
}

void snapshot_write_repairs(const struct repairs *repairs,
                            void (*put)(void *context, Snapshot__Record *record), void *context)
{
    write_totals(repairs, put, context);
    for (size_t i = 0; i < repairs_count(repairs); i++) {
        struct arena arena ARENA_CLEANUP = {0};
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        Snapshot__Repair pb = SNAPSHOT__REPAIR__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_REPAIR;
        record.repair = &pb;
        write_repair(&arena, repairs_at(repairs, i), &pb);
        put(context, &record);
    }
    for (size_t i = 0; i < maintenance_count(repairs); i++) {
        struct maintenance_saved saved = maintenance_at(repairs, i);
        CHECK(saved.phase < MAINTENANCE_PHASES);
        Snapshot__Record record = SNAPSHOT__RECORD__INIT;
        Snapshot__Maintenance pb = SNAPSHOT__MAINTENANCE__INIT;
        record.kind_case = SNAPSHOT__RECORD__KIND_MAINTENANCE;
        record.maintenance = &pb;
        pb.uid = saved.uid;
        pb.phase = saved.phase;
        put(context, &record);
    }
}

/* --- reading -------------------------------------------------------------------------------------------- */

static bool fits(int64_t now_ns, const Snapshot__Repair *pb)
{
    if (pb->n_attempts > REPAIR_ATTEMPTS_MAX || pb->n_history > REPAIR_HISTORY_MAX ||
        pb->n_codes > REPAIR_CODES_MAX || pb->state >= REPAIR_STATES || pb->origin >= REPAIR_ORIGINS ||
        pb->opened_ns > now_ns || pb->changed_ns > now_ns || pb->closed_ns > now_ns || pb->due_ns < 0 ||
        pb->watch_ns < 0)
        return false;
    bool runs = pb->n_attempts && pb->attempts[pb->n_attempts - 1]->outcome == REPAIR_RUNS;
    bool acts = pb->state == REPAIR_RESETTING || pb->state == REPAIR_QUALIFYING;
    for (size_t i = 0; i < pb->n_attempts; i++)
        if (pb->attempts[i]->outcome >= REPAIR_OUTCOMES ||
            (pb->attempts[i]->outcome == REPAIR_RUNS && i + 1 < pb->n_attempts))
            return false;
    for (size_t i = 0; i < pb->n_history; i++)
        if (pb->history[i]->state >= REPAIR_STATES)
            return false;
    return pb->n_history > 0 && acts == (pb->errand != 0) &&
           runs == (acts || pb->state == REPAIR_RETURNING) &&
           (pb->watch_ns == 0 || pb->state == REPAIR_CLOSED);
}

static void read_lists(const Snapshot__Repair *pb, struct repair *ret)
{
    for (size_t i = 0; i < pb->n_attempts; i++)
        ret->attempts[i] = (struct repair_attempt){.action = str_from(pb->attempts[i]->action),
                                                   .test = pb->attempts[i]->test,
                                                   .reboots = pb->attempts[i]->reboots,
                                                   .outcome = (enum repair_outcome)pb->attempts[i]->outcome,
                                                   .exit_code = pb->attempts[i]->exit_code,
                                                   .began_ns = pb->attempts[i]->began_ns,
                                                   .ended_ns = pb->attempts[i]->ended_ns,
                                                   .output = str_from(pb->attempts[i]->output)};
    ret->attempt_count = pb->n_attempts;
    for (size_t i = 0; i < pb->n_history; i++)
        ret->history[i] = (struct repair_change){(enum repair_state)pb->history[i]->state,
                                                 pb->history[i]->at_ns, str_from(pb->history[i]->why)};
    ret->history_count = pb->n_history;
    for (size_t i = 0; i < pb->n_codes; i++)
        ret->codes[i] = str_from(pb->codes[i]);
    ret->code_count = pb->n_codes;
}

bool snapshot_read_repair(struct step *step, const Snapshot__Repair *pb)
{
    if (!fits(step->now_ns, pb))
        return false;
    struct repair saved = {.uid = pb->uid,
                           .subject = str_from(pb->subject),
                           .state = (enum repair_state)pb->state,
                           .origin = (enum repair_origin)pb->origin,
                           .now = pb->now,
                           .asked = pb->asked,
                           .tested = pb->tested,
                           .testing = pb->testing,
                           .heals = pb->heals,
                           .asks = pb->asks,
                           .action = str_from(pb->action),
                           .tries = pb->tries,
                           .tag = pb->tag,
                           .heard = pb->heard,
                           .errand = pb->errand,
                           .due_ns = pb->due_ns,
                           .opened_ns = pb->opened_ns,
                           .changed_ns = pb->changed_ns,
                           .closed_ns = pb->closed_ns,
                           .watch_ns = pb->watch_ns};
    read_lists(pb, &saved);
    return repair_restore(step, &saved);
}

bool snapshot_read_maintenance(struct step *step, const Snapshot__Maintenance *pb)
{
    struct maintenance_saved saved = {pb->uid, (enum maintenance_phase)pb->phase};
    return pb->phase < MAINTENANCE_PHASES && maintenance_restore(step, &saved);
}

bool snapshot_read_repair_totals(struct repairs *repairs, const Snapshot__RepairTotals *pb)
{
    struct repair_totals totals = {.opened = pb->opened, .tickets = pb->tickets, .returned = pb->returned};
    if (pb->n_attempts > REPAIR_OUTCOMES)
        return false;
    for (size_t i = 0; i < pb->n_attempts; i++)
        totals.attempts[i] = pb->attempts[i];
    repairs_restore_totals(repairs, &totals);
    return true;
}
