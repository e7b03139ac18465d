/* restart.c - the end of an attempt: the record of its restart begins, and unsaved work is booked as lost. */
#include "core/recover/internal.h"

#include <stdio.h>

/* Returns the name of the machine where the incident began by the signatures, or "" if they tell none;
 * `otherwise` if there are no signatures. Victims may have been reported first. */
static struct str blamed(const struct end_signatures *signatures, struct str otherwise)
{
    const struct end_signature *root = end_signatures_root(signatures);
    return root ? str_from(root->machine) : signatures->count ? STR("") : otherwise;
}

/* Returns whether the next placement avoids the culprit's machine. A process that ended may run again on its
 * machine, next to its state in memory there. Avoided is a machine that is itself at fault, or where restarts
 * have begun before. */
static bool is_to_avoid(const struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    CHECK(culprit->machine < step->cluster->machine_count && culprit->end != END_NONE);
    struct str machine = step->cluster->machines[culprit->machine].name;
    if (culprit->end != END_EXIT)
        return true;
    if (!str_equal(blamed(&jobset->history.signatures, machine), machine))
        return false;
    const struct restart_record *record;
    for (uint32_t back = 0; (record = restart_back(&jobset->history, back)); back++)
        if (str_equal(machine, blamed(&record->signatures, str_from(record->machine))))
            return true;
    return false;
}

static const char *cause_of(const struct task *culprit)
{
    switch (culprit->end) {
    case END_MACHINE_LOST:
        return "MachineLost";
    case END_START_FAILED:
        return "StartFailed";
    case END_REFUSED:
        return "Refused";
    case END_STOPPED:
        return "Evicted";
    default:
        return culprit->oom ? "OutOfMemory" : "TaskFailed";
    }
}

/* Returns the step of the newest checkpoint that ranks have not passed over, or -1 if there is none. */
static int64_t newest_good(const struct checkpoint_state *checkpoint)
{
    return checkpoint->fallback_step >= 0 ? checkpoint->fallback_step : checkpoint->committed_step;
}

/* Returns the record to fill in: a new one, or the newest if the loss belongs to its incident. In that case
 * the machine that was suspected first is no longer suspected. */
static struct restart_record *open_record(struct step *step, struct jobset *jobset,
                                          const struct task *culprit, int64_t *ret_fault_ns)
{
    *ret_fault_ns = step->now_ns;
    restart_history_need(&jobset->history);
    if (!restart_is_same_incident(step, jobset, culprit))
        return &jobset->history.records[jobset->history.record_count++ % RESTART_RECORDS_MAX];
    struct restart_record *record = restart_newest(jobset);
    *ret_fault_ns = record->fault_ns;
    if (jobset->history.suspect_count > 0) {
        machine_id last = jobset->history.suspects[jobset->history.suspect_count - 1];
        if (last != MACHINE_NONE && str_is(step->cluster->machines[last].name, record->machine))
            jobset->history.suspect_count--;
    }
    return record;
}

/* Takes the loss of the previous restart if that did not reach a step: the new restart bears it. */
static int64_t unstepped_us(struct jobset *jobset)
{
    struct restart_record *before = restart_newest(jobset);
    if (!before || before->stepped_ns)
        return 0;
    int64_t redone_us = before->redone_us;
    before->redone_us = 0;
    return redone_us;
}

void restart_begin(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                   const struct task *culprit)
{
    CHECK(attempt >= jobset->attempt);
    CHECK(culprit || cause);
    int64_t fault_ns;
    if (inplace_forget_dump(jobset) &&
        restart_newest(jobset)) { /* the dump was part of this restart, whose record exists */
        restart_newest(jobset)->attempt = attempt;
        ends_give(step, jobset, restart_newest(jobset));
        return;
    }
    bool same = restart_is_same_incident(step, jobset, culprit);
    bool somewhere = culprit && culprit->machine != MACHINE_NONE;
    bool avoid = somewhere && is_to_avoid(step, jobset, culprit); /* before the new record is made */
    enum ledger_owner before = usage_loser(restart_newest(jobset));
    int64_t redone_us = unstepped_us(jobset);
    struct restart_record *record = open_record(step, jobset, culprit, &fault_ns);
    if (!same)
        restart_record_done(record); /* frees the older record in this slot */
    struct end_signatures signatures = record->signatures;
    struct end_faults faults = record->faults;
    bool counted = jobset->progress.source == STEP_COUNTED;
    int64_t stepped = counted ? -1 : jobset->progress.step;
    char *passed = record->passed;
    *record = (struct restart_record){
        .signatures = signatures,
        .faults = faults,
        .rung = same ? record->rung : RUNG_NONE,
        .passed = passed,
        .cause_plus_1 = same ? record->cause_plus_1 : 0,
        .size = record->size,
        .assumed_us = record->assumed_us,
        .attempt = attempt,
        .fault_ns = fault_ns,
        /* Steps are reported at intervals: a newer checkpoint proves that they were made. */
        .step_at_fault =
            stepped > jobset->checkpoint.committed_step ? stepped : jobset->checkpoint.committed_step,
        .step_resumed_from = newest_good(&jobset->checkpoint),
    };
    restart_copy_text(record->cause, sizeof(record->cause), str_from(culprit ? cause_of(culprit) : cause));
    if (somewhere)
        restart_copy_text(record->machine, sizeof(record->machine),
                          step->cluster->machines[culprit->machine].name);
    if (somewhere)
        suspect_blame(step, jobset, culprit);
    if (avoid)
        restart_suspect(jobset, culprit->machine);
    if (culprit) {
        char detail[sizeof(record->detail)];
        snprintf(detail, sizeof(detail), STR_FORMAT ": " STR_FORMAT, STR_ARG(culprit->name),
                 STR_ARG(culprit->message));
        restart_copy_text(record->detail, sizeof(record->detail), str_from(detail));
        record->evidence_ns = culprit->ended_ns < step->now_ns ? culprit->ended_ns : 0;
    }
    if (somewhere && culprit->evicted && (culprit->loss == LOSS_NONE || culprit->loss == LOSS_EVICTED))
        ends_confirm_order(jobset, step->cluster->machines[culprit->machine].name, step->now_ns);
    ends_give(step, jobset, record);
    move_end(jobset);
    inplace_forget_keepers(jobset);
    usage_end(step, jobset, record, redone_us, before);
    /* Books all chips as restarting, even if only one Job restarts, because its peers wait for it. */
    usage_book(step, jobset, OWNER_RESTARTING);
}
