/* usage.c - the ledger's owner of a JobSet's chips, and the work that is lost or kept. */
#include "core/gang/internal.h"

/* Returns whether the gang counts as productive from its first step on, because one of its tasks has joined.
 * Other gangs count as productive while they run. */
static bool counts_steps(const struct gang *gang)
{
    for (size_t i = 0; i < gang->tasks.len; i++)
        if (gang->tasks.items[i]->joined || gang->tasks.items[i]->keep == KEEP_TOLD)
            return true;
    return false;
}

bool usage_knows_place(const struct jobset *jobset)
{
    if (jobset->checkpoint.count > 0)
        return true;
    if (jobset->progress.attempt >= 0)
        return jobset->progress.source != STEP_COUNTED;
    for (size_t i = 0; i < jobset->gangs.len; i++)
        if (counts_steps(jobset->gangs.items[i]))
            return true;
    return false;
}

void usage_book(struct step *step, struct jobset *jobset, enum ledger_owner owner)
{
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        if (gang->state == GANG_PLACED || gang->state == GANG_RUNNING)
            gang_book(step, gang, owner);
    }
}

/* There is no restart record from which a kept part could be booked later, so only work covered by a
 * checkpoint is kept. */
void usage_resumed(struct step *step, struct jobset *jobset)
{
    if (jobset->progress.source != STEP_SAID || !usage_knows_place(jobset))
        return;
    for (size_t i = 0; i < jobset->gangs.len; i++)
        ledger_account_lose(&jobset->gangs.items[i]->account, step->ledger, OWNER_REDONE, step_now_us(step));
    ledger_account_lose(&jobset->usage.closed, step->ledger, OWNER_REDONE, step_now_us(step));
}

static bool all_gangs_run(const struct jobset *jobset)
{
    for (size_t i = 0; i < jobset->gangs.len; i++)
        if (jobset->gangs.items[i]->attempt == jobset->attempt &&
            jobset->gangs.items[i]->state != GANG_RUNNING && !gang_is_away(jobset->gangs.items[i]))
            return false;
    return true;
}

void usage_rung_helped(struct step *step, struct jobset *jobset, int64_t at)
{
    if (ladder_stepped(&jobset->recovery.ladder, at))
        jobset_mark(step, jobset);
}

void usage_running(struct step *step, struct gang *gang)
{
    CHECK(gang->state == GANG_RUNNING && gang->waiting == 0);
    struct jobset *jobset = gang->jobset;
    struct restart_record *record = restart_newest(jobset);
    if (record && !record->started_ns && record->attempt == gang->attempt)
        record->started_ns = step->now_ns;
    if ((!counts_steps(gang) || jobset->progress.attempt == gang->attempt) && !gang_is_away(gang))
        gang_book(step, gang, OWNER_UNKEPT);
    for (size_t i = 0; i < jobset->gangs.len; i++) { /* gangs that waited for a job that restarted alone */
        struct gang *peer = jobset->gangs.items[i];
        if (peer->state == GANG_RUNNING && peer->attempt == gang->attempt &&
            (peer->account.owner == OWNER_RESTARTING || peer->account.owner == OWNER_AWAITING) &&
            !counts_steps(peer) && !gang_is_away(peer))
            gang_book(step, peer, OWNER_UNKEPT);
    }
    bool silent =
        jobset->recovery.ladder.best_step < 0; /* without reported steps, running counts as progress */
    if ((silent || jobset->progress.source == STEP_READ) && all_gangs_run(jobset))
        usage_rung_helped(step, jobset, -1);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void usage_stall(struct step *step, struct jobset *jobset)
{
    const struct progress *progress = &jobset->progress;
    int64_t stall_us = 0;
    for (size_t i = 0; i < progress->metric_count; i++)
        if (str_is(progress->metrics[i].name, "checkpoint_write_s"))
            stall_us = progress->metrics[i].micro; /* millionths of a second */
    for (size_t g = 0; stall_us > 0 && g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        int64_t chip_us = 0;
        CHECK(gang->account.chips >= 0);
        if (gang->account.owner != OWNER_UNKEPT ||
            __builtin_mul_overflow(stall_us, gang->account.chips, &chip_us))
            continue;
        (void)ledger_account_move(&gang->account, step->ledger, OWNER_UNKEPT, OWNER_STALLED, chip_us,
                                  step_now_us(step));
    }
}

/* Returns the owner of the chips of a gang that prepares for steps. `lacking`: a peer waits for a machine. */
static enum ledger_owner phase_of(const struct step *step, const struct gang *gang, bool lacking)
{
    enum ledger_owner owner = gang->account.owner;
    bool first =
        owner == OWNER_STARTING || (!gang->replaces && (owner == OWNER_QUEUED || owner == OWNER_PLACING ||
                                                        owner == OWNER_WIRING || owner == OWNER_PREFLIGHT));
    CHECK(ledger_owner_prepares(owner) && !gang_is_spare(gang));
    if (gang_is_away(gang))
        return OWNER_DEGRADED;
    if (gang->state == GANG_QUEUED)
        return gang->replaces ? OWNER_AWAITING : OWNER_QUEUED;
    if (gang->preflight)
        return OWNER_PREFLIGHT;
    if (!gang->told)
        return slice_start_waits(step, gang->tasks.items[0]) ? OWNER_WIRING : OWNER_PLACING;
    if (first)
        return OWNER_STARTING;
    bool present = gang->attempt == gang->jobset->attempt || jobset_parks(gang->jobset);
    return lacking && present ? OWNER_AWAITING : OWNER_RESTARTING;
}

void usage_phases(struct step *step, struct jobset *jobset)
{
    bool lacking = false;
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        const struct gang *gang = jobset->gangs.items[g];
        lacking |=
            gang->state == GANG_QUEUED && gang->replaces && !gang_is_spare(gang) && !gang_is_away(gang);
    }
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        struct gang *gang = jobset->gangs.items[g];
        if (ledger_owner_prepares(gang->account.owner))
            gang_book(step, gang, phase_of(step, gang, lacking));
    }
}

void jobs_show_accounts(struct step *step)
{
    for (size_t i = 0; i < step->effects->list.len; i++) {
        const struct effect *effect = &step->effects->list.items[i];
        if (effect->kind != EFFECT_CHANGED || effect->changed.object.kind != OBJECT_JOBSET)
            continue;
        struct jobset *jobset = (struct jobset *)effect->changed.object.jobset;
        if (jobset->entry.gone || jobset->usage.shown_seq == step->seq)
            continue;
        jobset->usage.shown_seq = step->seq;
        jobset->usage.shown_ns = step->now_ns;
        jobset->usage.shown = jobset_account(jobset, step->now_ns);
    }
}
