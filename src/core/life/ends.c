/* ends.c - the signatures that the ends of tasks leave (health/signature.h). They are kept in the record of
 * the restart that ended their attempt or, until there is one, in the JobSet.
 *
 * The first failure to be reported is seldom the first that happened: a rank that dies of a broken connection
 * may be reported before the rank that broke it. Reports of an attempt are therefore accepted for
 * ATTRIBUTE_AFTER_NS after its end, even of tasks that were stopped since. */
#include "core/life/internal.h"

#include <stdio.h>

/* Returns the record of the restart that ended the task's attempt: the oldest with a higher number or, for a
 * Job that was restarted alone, with the same number. Returns NULL if the attempt has not ended. */
static struct restart_record *record_of(struct jobset *jobset, const struct task *task)
{
    struct restart_record *found = NULL, *record;
    for (uint32_t back = 0; (record = restart_back(&jobset->history, back)); back++) {
        bool later = record->attempt > task->attempt;
        if (!later && !(task->job->doomed && record->attempt == task->attempt && !found))
            break;
        found = record;
    }
    return found;
}

/* Returns the number of the restart among all restarts of the JobSet, from 1. It is not the attempt's number:
 * attempts may begin at another number, and one incident may take two of them. */
static uint32_t number_of(const struct jobset *jobset, const struct restart_record *record)
{
    uint32_t at = (uint32_t)(record - jobset->history.records), newest = jobset->history.record_count - 1;
    CHECK(jobset->history.record_count > 0 && at < RESTART_RECORDS_MAX);
    return newest - (newest % RESTART_RECORDS_MAX + RESTART_RECORDS_MAX - at) % RESTART_RECORDS_MAX + 1;
}

/* Announces the cause of a restart in an Event, unless the cause is the same as before. */
static void tell(struct step *step, const struct jobset *jobset, const struct restart_record *record,
                 const struct end_signature *before)
{
    const struct end_signature *root = end_signatures_root(&record->signatures);
    if (!root || (before && before->kind == root->kind && before->rank == root->rank))
        return;
    step_note(step, true, "RestartCause", ref_jobset(jobset), "restart %u: rank %u on %s: %s%s%s",
              number_of(jobset, record), root->rank, root->machine[0] ? root->machine : "no machine",
              signature_name(root->kind), root->line[0] ? ": " : "", root->line);
}

static void add(struct step *step, struct jobset *jobset, struct restart_record *record,
                const struct end_signature *signature)
{
    struct end_signature before = {0};
    const struct end_signature *root = record ? end_signatures_root(&record->signatures) : NULL;
    if (root)
        before = *root;
    end_signatures_add(record ? &record->signatures : &jobset->history.signatures, signature);
    if (!record)
        return;
    tell(step, jobset, record, root ? &before : NULL);
    usage_attribute(step, jobset, record);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

static enum signature_kind kind_of_exit(const struct task_report *report, bool stopped, bool explained)
{
    struct signature_exit how = {.exit_code = report->exit_code,
                                 .signal = report->signal,
                                 .oom = report->oom,
                                 .stopped = stopped,
                                 .explained = explained};
    return report->fenced ? SIGNATURE_TEARDOWN : signature_of_exit(&how);
}

void ends_take(struct step *step, const struct task *task, const struct task_report *report,
               enum signature_kind kind)
{
    struct jobset *jobset = task->job->jobset;
    bool past = task->job->doomed || task->attempt < jobset->attempt;
    struct restart_record *record = past ? record_of(jobset, task) : NULL;
    bool stopped = task->state == TASK_STOPPING;
    if (past && (!record || step->now_ns - record->fault_ns > ATTRIBUTE_AFTER_NS))
        return;
    if (kind == SIGNATURE_MACHINE_LOST && stopped)
        return;
    struct end_signature signature = {
        .rank = task->rank, .tasks = 1, .at_ns = step->now_ns, .stopped = stopped};
    if (task->machine != MACHINE_NONE)
        restart_copy_text(signature.machine, sizeof(signature.machine),
                          step->cluster->machines[task->machine].name);
    bool failed = !report || report->exit_code != 0 || report->signal != 0 || report->oom;
    bool explained = false;
    for (size_t i = 0; report && i < report->signature_count; i++) {
        signature.kind = report->signatures[i].kind;
        if (signature_class_of(signature.kind) == SIGNATURE_IS_TEARDOWN ||
            (!failed && signature.kind != SIGNATURE_NUMERIC))
            continue;
        restart_copy_text(signature.line, sizeof(signature.line), report->signatures[i].line);
        add(step, jobset, record, &signature);
        explained = true;
    }
    signature.kind = kind ? kind : kind_of_exit(report, stopped, explained);
    if (signature_class_of(signature.kind) == SIGNATURE_IS_TEARDOWN)
        return;
    struct arena arena ARENA_CLEANUP = {0};
    restart_copy_text(signature.line, sizeof(signature.line), signature_line(&arena, task->message));
    add(step, jobset, record, &signature);
}

/* Returns the record of the recent restart whose attempt was struck at `at_ns`, or NULL if the present
 * attempt was struck. */
static struct restart_record *record_before(struct jobset *jobset, int64_t at_ns, int64_t now_ns)
{
    struct restart_record *found = NULL, *record;
    for (uint32_t back = 0; (record = restart_back(&jobset->history, back)); back++) {
        if (record->fault_ns < at_ns || now_ns - record->fault_ns > ATTRIBUTE_AFTER_NS)
            break;
        found = record;
    }
    return found;
}

/* Adds a fault that was found later on the machine where the newest restart began. It may be of interest, but
 * is not the cause. */
static void add_later(struct jobset *jobset, const struct end_fault *found, int64_t now_ns)
{
    struct restart_record *record = restart_newest(jobset);
    if (!record || end_fault_is_ordered(found))
        return;
    const struct end_signature *root = end_signatures_root(&record->signatures);
    const char *machine = root && root->machine[0] ? root->machine : record->machine;
    size_t later = 0;
    for (size_t i = 0; i < record->faults.count; i++)
        later += record->faults.items[i].at_ns > record->fault_ns;
    if (now_ns - record->fault_ns <= ATTRIBUTE_AFTER_NS && later < ATTRIBUTE_LATER_MAX &&
        record->faults.count < END_FAULTS_MAX && (!machine[0] || strcmp(machine, found->machine) == 0) &&
        !end_faults_find(&record->faults, found))
        end_faults_add(&record->faults, found);
}

void ends_strike(struct step *step, struct jobset *jobset, const struct end_fault *found)
{
    CHECK(found->at_ns <= step->now_ns && found->last_ns <= step->now_ns);
    struct restart_record *record = record_before(jobset, found->at_ns, step->now_ns);
    if (record && !end_faults_find(&record->faults, found)) {
        struct end_fault before = *found;
        before.last_ns = found->at_ns; /* later occurrences do not concern this restart */
        end_faults_add(&record->faults, &before);
        usage_attribute(step, jobset, record);
    } else if (!record && jobset_finished(jobset)) {
        if (!end_faults_find(&jobset->history.faults, found) &&
            step->now_ns - jobset->finished_ns <= ATTRIBUTE_AFTER_NS)
            end_faults_add(&jobset->history.faults, found);
        usage_attribute_finish(step, jobset);
    } else if (!record) {
        end_faults_forget(&jobset->history.faults, step->now_ns - ATTRIBUTE_BEFORE_NS);
        add_later(jobset, found, step->now_ns);
        end_faults_add(&jobset->history.faults, found);
    }
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void ends_confirm_order(struct jobset *jobset, struct str machine, int64_t now_ns)
{
    for (size_t i = 0; i < jobset->history.faults.count; i++) {
        struct end_fault *found = &jobset->history.faults.items[i];
        if (found->fault == 0 && str_is(machine, found->machine))
            found->last_ns = now_ns;
    }
}

static void give_faults(struct step *step, struct jobset *jobset, struct restart_record *record)
{
    end_faults_forget(&jobset->history.faults, step->now_ns - ATTRIBUTE_BEFORE_NS);
    for (size_t i = 0; i < jobset->history.faults.count; i++)
        if (!end_faults_find(&record->faults, &jobset->history.faults.items[i]))
            end_faults_add(&record->faults, &jobset->history.faults.items[i]);
    end_faults_done(&jobset->history.faults);
}

void ends_give(struct step *step, struct jobset *jobset, struct restart_record *record)
{
    struct end_signature before = {0};
    const struct end_signature *root = end_signatures_root(&record->signatures);
    if (root)
        before = *root;
    give_faults(step, jobset, record);
    end_signatures_forget(&jobset->history.signatures, step->now_ns - ATTRIBUTE_BEFORE_NS);
    if (record->signatures.count == 0) {
        end_signatures_done(&record->signatures);
        record->signatures = jobset->history.signatures;
        jobset->history.signatures = (struct end_signatures){0};
    }
    for (size_t i = 0; i < jobset->history.signatures.count; i++) {
        jobset->history.signatures.items[i].tasks =
            1; /* counts as one task, however many left the signature in this incident */
        end_signatures_add(&record->signatures, &jobset->history.signatures.items[i]);
    }
    end_signatures_done(&jobset->history.signatures);
    tell(step, jobset, record, root ? &before : NULL);
}
