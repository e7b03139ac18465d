/* usage.c - the use of chips by a JobSet: who owns them while it starts, runs and restarts, and what is lost
 * or kept of their work. */
#include "core/job/internal.h"

/* Whether the gang is productive from its first step on, because one of its tasks has joined; otherwise it
 * is productive while it runs. */
static bool counts_steps(const struct gang *gang)
{
    for (size_t i = 0; i < gang->tasks.len; i++)
        if (gang->tasks.items[i]->joined || gang->tasks.items[i]->keep == KEEP_TOLD)
            return true;
    return false;
}

/* Whether the JobSet reports absolute steps. Then the cost of a restart is known: all since the newest
 * checkpoint, less what the first step after it proves to be kept. Without steps, or with counted lines
 * only, nothing is known before the job's end. */
static bool says_its_place(const struct jobset *jobset)
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

/* Books everything since the last checkpoint as lost, in every gang. */
int64_t usage_lose(struct step *step, struct jobset *jobset)
{
    int64_t lost_us = 0;
    if (!says_its_place(jobset))
        return 0;
    for (size_t i = 0; i < jobset->gangs.len; i++)
        lost_us += ledger_account_lose(&jobset->gangs.items[i]->account, step->ledger, step_now_us(step));
    return lost_us + ledger_account_lose(&jobset->usage.closed, step->ledger, step_now_us(step));
}

/* Books back the part that ranks still held in memory, which is not computed again. */
void usage_regain(struct step *step, struct jobset *jobset, int64_t chip_us)
{
    CHECK(chip_us >= 0);
    for (size_t i = 0; i < jobset->gangs.len && chip_us > 0; i++)
        chip_us -=
            ledger_account_regain(&jobset->gangs.items[i]->account, step->ledger, chip_us, step_now_us(step));
    (void)ledger_account_regain(&jobset->usage.closed, step->ledger, chip_us, step_now_us(step));
}

/* Gives the chips that are held now another owner. */
void usage_book(struct step *step, struct jobset *jobset, enum ledger_owner owner)
{
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        if (gang->state == GANG_PLACED || gang->state == GANG_RUNNING)
            gang_book(step, gang, owner);
    }
}

/* Without a restart record, the part that was kept cannot be booked later, so only work covered by a
 * checkpoint counts. */
void usage_resumed(struct step *step, struct jobset *jobset)
{
    if (jobset->progress.source == STEP_SAID)
        usage_lose(step, jobset);
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
            peer->account.owner == OWNER_RESTARTING && !counts_steps(peer) && !gang_is_away(peer))
            gang_book(step, peer, OWNER_UNKEPT);
    }
    bool silent =
        jobset->recovery.ladder.best_step < 0; /* without reported steps, running counts as progress */
    if ((silent || jobset->progress.source == STEP_READ) && all_gangs_run(jobset))
        usage_rung_helped(step, jobset, -1);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void usage_settle(struct step *step, struct jobset *jobset, bool kept)
{
    CHECK(!jobset_finished(jobset));
    for (size_t i = 0; i <= jobset->gangs.len; i++) {
        struct ledger_account *account =
            i < jobset->gangs.len ? &jobset->gangs.items[i]->account : &jobset->usage.closed;
        if (kept)
            ledger_account_keep(account, step->ledger, step_now_us(step));
        else
            ledger_account_lose(account, step->ledger, step_now_us(step));
        if (i < jobset->gangs.len && jobset->gangs.items[i]->state != GANG_QUEUED && account->chips > 0)
            gang_book(step, jobset->gangs.items[i], OWNER_STOPPING);
    }
}

struct ledger_account jobset_account(const struct jobset *jobset, int64_t now_ns)
{
    struct ledger_account sum = jobset->usage.closed;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct ledger_account account =
            ledger_account_at(&jobset->gangs.items[i]->account, now_ns / NS_PER_US);
        for (int owner = 0; owner < LEDGER_OWNERS; owner++)
            sum.chip_us[owner] += account.chip_us[owner];
        sum.wanted_chip_us += account.wanted_chip_us;
        sum.chips += account.chips;
    }
    return sum;
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
