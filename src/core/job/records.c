/* records.c - the records of a JobSet's restarts. */
#include "core/job/facts.h"

#include <stdio.h>

uint32_t restarts_kept(const struct restart_history *history)
{
    CHECK(history->records || history->record_count == 0);
    return history->record_count < RESTART_RECORDS_MAX ? history->record_count : RESTART_RECORDS_MAX;
}

struct restart_record *restart_back(const struct restart_history *history, uint32_t back)
{
    if (back >= restarts_kept(history))
        return NULL;
    return &history->records[(history->record_count - 1 - back) % RESTART_RECORDS_MAX];
}

struct restart_record *restart_newest(const struct jobset *jobset)
{
    return restart_back(&jobset->history, 0);
}

void restart_history_need(struct restart_history *history)
{
    if (!history->records)
        history->records = mem_alloc(RESTART_RECORDS_MAX * sizeof(*history->records));
}

void restart_record_done(struct restart_record *record)
{
    end_signatures_done(&record->signatures);
    end_faults_done(&record->faults);
    mem_free(record->passed);
    record->passed = NULL;
}

void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed)
{
    CHECK((unsigned)rung < RUNGS);
    mem_free(record->passed);
    record->rung = (uint8_t)rung;
    record->passed = NULL;
    if (passed.len == 0)
        return;
    record->passed = mem_alloc(passed.len + 1);
    mem_copy(record->passed, passed.data, passed.len);
    record->passed[passed.len] = 0;
}

void restart_decided(struct jobset *jobset, enum rung rung, struct str passed)
{
    if (restart_newest(jobset))
        restart_record_decided(restart_newest(jobset), rung, passed);
}

void restart_follow(struct jobset *jobset)
{
    CHECK(jobset->history.record_count > 0);
    restart_newest(jobset)->attempt = jobset->attempt;
}

void restart_suspect(struct jobset *jobset, machine_id machine)
{
    CHECK(machine != MACHINE_NONE);
    for (size_t i = 0; i < jobset->history.suspect_count; i++)
        if (jobset->history.suspects[i] == machine)
            return;
    jobset->history.suspects = mem_realloc(jobset->history.suspects, (jobset->history.suspect_count + 1) *
                                                                         sizeof(*jobset->history.suspects));
    jobset->history.suspects[jobset->history.suspect_count++] = machine;
}

/* When a machine dies, a rank that loses its peer may end, and restart the JobSet, a moment before the
 * machine's death is known. Both are one incident, recorded once under its true cause, and counted once. */
bool restart_is_same_incident(const struct step *step, const struct jobset *jobset,
                              const struct task *culprit)
{
    const struct restart_record *newest = restart_newest(jobset);
    if (!newest || !culprit || culprit->end != END_MACHINE_LOST)
        return false;
    /* Keepers are not started, so they never set started_ns. */
    bool over = newest->started_ns || newest->stepped_ns;
    return !over && step->now_ns - newest->fault_ns <= INCIDENT_WINDOW_NS;
}

void restart_copy_text(char *to, size_t size, struct str from)
{
    CHECK(size > 0);
    snprintf(to, size, STR_FORMAT, (int)(from.len < size ? from.len : size - 1), from.data ? from.data : "");
}
