/* cost.c - the cost of the end of an attempt, and its cause in the ledger: the infrastructure, the user's
 * program, or an order.
 *
 * Attribution (health/attribute.h) finds the cause. Faults and signatures that arrive up to
 * ATTRIBUTE_AFTER_NS later may therefore change it: the end is then counted again, and the lost time gets
 * another owner. */
#include "core/life/internal.h"

#include <string.h>

/* --- causes ----------------------------------------------------------------------------------- */

static enum ledger_cause cause_of_end(const struct end_faults *faults,
                                      const struct end_signatures *signatures, const char *machine,
                                      const char *named, int64_t end_ns)
{
    static const char *const ordered[] = {"Grown", "LogRestored", "Evicted"};
    static const char *const lost[] = {"MachineLost", "StartFailed", "Refused"};
    struct attribution found;
    attribute(faults, signatures, str_from(machine), end_ns, &found);
    if (found.primary && end_fault_is_ordered(found.primary))
        return CAUSE_ORDERED;
    for (size_t i = 0; i < sizeof lost / sizeof *lost; i++)
        if (strcmp(named, lost[i]) == 0)
            return CAUSE_INFRASTRUCTURE;
    if (found.signature && found.signature->kind == SIGNATURE_MACHINE_LOST)
        return CAUSE_INFRASTRUCTURE;
    if (found.primary || found.signature) {
        bool shared = found.primary && found.primary->software; /* the fault struck several chips at once */
        return found.domain >= DOMAIN_SOFTWARE && !shared ? CAUSE_INFRASTRUCTURE : CAUSE_PROGRAM;
    }
    for (size_t i = 0; i < sizeof ordered / sizeof *ordered; i++)
        if (strcmp(named, ordered[i]) == 0)
            return CAUSE_ORDERED;
    return CAUSE_PROGRAM;
}

static enum ledger_owner loser_of(enum ledger_cause cause)
{
    return cause == CAUSE_PROGRAM ? OWNER_FAILED : OWNER_REDONE;
}

static enum ledger_cause cause_of_restart(const struct restart_record *record)
{
    return cause_of_end(&record->faults, &record->signatures, record->machine, record->cause,
                        record->fault_ns);
}

/* --- time ------------------------------------------------------------------------------------- */

static int64_t lose(struct step *step, struct jobset *jobset, enum ledger_owner to)
{
    int64_t lost_us = 0;
    for (size_t i = 0; i < jobset->gangs.len; i++)
        lost_us += ledger_account_lose(&jobset->gangs.items[i]->account, step->ledger, to, step_now_us(step));
    return lost_us + ledger_account_lose(&jobset->usage.closed, step->ledger, to, step_now_us(step));
}

/* Moves `chip_us` of the JobSet's time, in whichever gang it was booked, from one owner to another. */
static void move_time(struct step *step, struct jobset *jobset, enum ledger_owner from, enum ledger_owner to,
                      int64_t chip_us)
{
    CHECK(chip_us >= 0);
    if (from == to)
        return;
    for (size_t i = 0; i < jobset->gangs.len && chip_us > 0; i++)
        chip_us -= ledger_account_move(&jobset->gangs.items[i]->account, step->ledger, from, to, chip_us,
                                       step_now_us(step));
    (void)ledger_account_move(&jobset->usage.closed, step->ledger, from, to, chip_us, step_now_us(step));
}

void usage_regain(struct step *step, struct jobset *jobset, int64_t chip_us)
{
    const struct restart_record *record = restart_newest(jobset);
    CHECK(record && chip_us >= 0);
    enum ledger_owner from =
        record->cause_plus_1 ? loser_of((enum ledger_cause)(record->cause_plus_1 - 1)) : OWNER_REDONE;
    move_time(step, jobset, from, OWNER_UNKEPT, chip_us);
}

void usage_unkeep(struct step *step, struct jobset *jobset, int64_t steps, int64_t all)
{
    struct restart_record *record = restart_newest(jobset);
    int64_t kept_us = jobset->usage.closed.chip_us[OWNER_KEPT];
    CHECK(record && steps >= 0 && steps <= all && all > 0);
    for (size_t i = 0; i < jobset->gangs.len; i++)
        kept_us += jobset->gangs.items[i]->account.chip_us[OWNER_KEPT];
    int64_t lost_us = (int64_t)((__int128)kept_us * steps / all);
    move_time(step, jobset, OWNER_KEPT, usage_loser(record), lost_us);
    record->redone_us += lost_us;
}

/* Returns the time for which the present attempt has run: since all tasks of its first gang ran. 0 if none
 * runs yet. */
static int64_t runtime_us(const struct step *step, const struct jobset *jobset)
{
    int64_t since_ns = step->now_ns;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        const struct gang *gang = jobset->gangs.items[i];
        if (gang->state == GANG_RUNNING && !gang_is_spare(gang) && gang->running_ns < since_ns)
            since_ns = gang->running_ns;
    }
    CHECK(since_ns <= step->now_ns);
    return (step->now_ns - since_ns) / NS_PER_US;
}

/* --- ends of attempts ------------------------------------------------------------------------- */

void usage_end(struct step *step, struct jobset *jobset, struct restart_record *record, int64_t before_us,
               enum ledger_owner before)
{
    enum ledger_cause cause = cause_of_restart(record);
    int64_t ran_us = runtime_us(step, jobset), chips = jobset_chips(jobset);
    if (!record->cause_plus_1) {
        record->size = ledger_size_of(chips);
        ledger_count_end(step->ledger, record->size, cause);
        record->assumed_us = ledger_assumed_loss(ran_us, chips);
        ledger_count_loss(&step->ledger->first_order[cause], 1, record->assumed_us);
    } else {
        usage_recount(step, record, cause);
    }
    record->cause_plus_1 = (uint8_t)(cause + 1);
    move_time(step, jobset, before, loser_of(cause), before_us);
    record->redone_us = before_us;
    if (usage_knows_place(jobset))
        record->redone_us += lose(step, jobset, loser_of(cause));
}

enum ledger_owner usage_loser(const struct restart_record *record)
{
    return record && record->cause_plus_1 ? loser_of((enum ledger_cause)(record->cause_plus_1 - 1))
                                          : OWNER_REDONE;
}

void usage_recount(struct step *step, struct restart_record *record, enum ledger_cause cause)
{
    CHECK(record->cause_plus_1 > 0);
    enum ledger_cause was = (enum ledger_cause)(record->cause_plus_1 - 1);
    if (was == cause)
        return;
    ledger_recount_end(step->ledger, record->size, was, cause);
    ledger_count_loss(&step->ledger->first_order[was], -1, -record->assumed_us);
    ledger_count_loss(&step->ledger->first_order[cause], 1, record->assumed_us);
    record->cause_plus_1 = (uint8_t)(cause + 1);
}

void usage_attribute(struct step *step, struct jobset *jobset, struct restart_record *record)
{
    if (!record->cause_plus_1) /* the restart is being recorded in this step, or is older than the ledger */
        return;
    enum ledger_owner before = usage_loser(record);
    usage_recount(step, record, cause_of_restart(record));
    move_time(step, jobset, before, usage_loser(record), record->redone_us);
}

static enum ledger_cause cause_of_finish(const struct step *step, const struct jobset *jobset)
{
    int64_t end_ns = jobset->finished_ns ? jobset->finished_ns : step->now_ns;
    return cause_of_end(&jobset->history.faults, &jobset->history.signatures, "", "", end_ns);
}

void usage_fail(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_finished(jobset) && !jobset->usage.failed_plus_1);
    enum ledger_cause cause = cause_of_finish(step, jobset);
    jobset->usage.failed_plus_1 = (uint8_t)(cause + 1);
    jobset->usage.failed_size = jobset_size_class(jobset);
    jobset->usage.failed_assumed_us = ledger_assumed_loss(runtime_us(step, jobset), jobset_chips(jobset));
    ledger_count_end(step->ledger, jobset->usage.failed_size, cause);
    ledger_count_loss(&step->ledger->first_order[cause], 1, jobset->usage.failed_assumed_us);
    jobset->usage.failed_us = lose(step, jobset, loser_of(cause));
}

void usage_settle(struct step *step, struct jobset *jobset, bool kept)
{
    CHECK(!jobset_finished(jobset));
    if (!kept)
        usage_fail(step, jobset);
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        ledger_account_keep(&gang->account, step->ledger, step_now_us(step));
        if (gang->state != GANG_QUEUED && gang->account.chips > 0)
            gang_book(step, gang, OWNER_DRAINING);
    }
    ledger_account_keep(&jobset->usage.closed, step->ledger, step_now_us(step));
}

void usage_attribute_finish(struct step *step, struct jobset *jobset)
{
    if (!jobset->usage.failed_plus_1)
        return;
    struct restart_record end = {.cause_plus_1 = jobset->usage.failed_plus_1,
                                 .size = jobset->usage.failed_size,
                                 .assumed_us = jobset->usage.failed_assumed_us};
    enum ledger_owner before = usage_loser(&end);
    usage_recount(step, &end, cause_of_finish(step, jobset));
    jobset->usage.failed_plus_1 = end.cause_plus_1;
    move_time(step, jobset, before, usage_loser(&end), jobset->usage.failed_us);
}

/* --- preemption ------------------------------------------------------------------------------- */

void jobset_count_preemption(struct step *step, const struct jobset *victim, struct jobset *preemptor)
{
    const struct restart_record *record = restart_newest(preemptor);
    bool returns = record && record->cause_plus_1 && !record->stepped_ns;
    enum ledger_cause cause =
        returns ? (enum ledger_cause)(record->cause_plus_1 - 1) : CAUSE_ORDERED; /* no failure caused it */
    ledger_count_loss(&step->ledger->second_order[cause], 1,
                      ledger_assumed_loss(runtime_us(step, victim), jobset_chips(victim)));
}
