/* progress.c - reported steps and checkpoints, and the cost of each restart. */
#include "core/job/internal.h"

#include <stdio.h>

#include "base/hash.h"

/* Shortest span over which the rate is taken. */
#define RATE_WINDOW_NS (2 * NS_PER_SECOND)

static struct restart_record *newest_record(struct jobset *jobset)
{
    if (!jobset->history.record_count)
        return NULL;
    return &jobset->history.records[(jobset->history.record_count - 1) % RESTART_RECORDS_MAX];
}

static void copy_text(char *to, size_t size, struct str from)
{
    CHECK(size > 0);
    snprintf(to, size, STR_FORMAT, (int)(from.len < size ? from.len : size - 1), from.data ? from.data : "");
}

void restart_record_done(struct restart_record *record)
{
    end_clues_done(&record->clues);
    end_faults_done(&record->faults);
    mem_free(record->passed);
    record->passed = NULL;
}

void restart_record_decided(struct restart_record *record, enum rung rung, struct str passed)
{
    mem_free(record->passed);
    record->rung = (uint8_t)rung;
    record->passed = NULL;
    if (passed.len == 0)
        return;
    record->passed = mem_alloc(passed.len + 1);
    mem_copy(record->passed, passed.data, passed.len);
    record->passed[passed.len] = 0;
}

void progress_decided(struct jobset *jobset, enum rung rung, struct str passed)
{
    if (newest_record(jobset))
        restart_record_decided(newest_record(jobset), rung, passed);
}

void progress_follow(struct jobset *jobset)
{
    CHECK(jobset->history.record_count > 0);
    newest_record(jobset)->attempt = jobset->attempt;
}

void progress_suspect(struct jobset *jobset, machine_id machine)
{
    CHECK(machine != MACHINE_NONE);
    for (size_t i = 0; i < jobset->history.suspect_count; i++)
        if (jobset->history.suspects[i] == machine)
            return;
    jobset->history.suspects = mem_realloc(jobset->history.suspects, (jobset->history.suspect_count + 1) *
                                                                         sizeof(*jobset->history.suspects));
    jobset->history.suspects[jobset->history.suspect_count++] = machine;
}

/* Returns the task or machine where the incident began, as far as the clues say: victims may have been
 * reported first. */
static struct str blamed(const struct end_clues *clues, struct str otherwise)
{
    const struct end_clue *root = end_clues_root(clues);
    return root ? str_from(root->machine) : clues->count ? STR("") : otherwise;
}

/* Whether the next placement avoids the culprit's machine. A process that ended may run again on its
 * machine, next to the state it holds in memory there; but a machine where that has happened before, or
 * that is itself at fault, is avoided. */
static bool is_to_avoid(const struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    struct str machine = step->cluster->machines[culprit->machine].name;
    if (culprit->end != END_EXIT)
        return true;
    if (!str_equal(blamed(&jobset->history.clues, machine), machine))
        return false;
    size_t first = jobset->history.record_count > RESTART_RECORDS_MAX
                       ? jobset->history.record_count - RESTART_RECORDS_MAX
                       : 0;
    for (size_t i = first; i < jobset->history.record_count; i++) {
        const struct restart_record *record = &jobset->history.records[i % RESTART_RECORDS_MAX];
        if (str_equal(machine, blamed(&record->clues, str_from(record->machine))))
            return true;
    }
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
static int64_t lose_unkept(struct step *step, struct jobset *jobset)
{
    int64_t lost_us = 0;
    if (!says_its_place(jobset))
        return 0;
    for (size_t i = 0; i < jobset->gangs.len; i++)
        lost_us += ledger_account_lose(&jobset->gangs.items[i]->account, step->ledger, step_now_us(step));
    return lost_us + ledger_account_lose(&jobset->usage.closed, step->ledger, step_now_us(step));
}

/* Books back the part that ranks still held in memory, which is not computed again. */
static void regain(struct step *step, struct jobset *jobset, int64_t chip_us)
{
    for (size_t i = 0; i < jobset->gangs.len && chip_us > 0; i++)
        chip_us -=
            ledger_account_regain(&jobset->gangs.items[i]->account, step->ledger, chip_us, step_now_us(step));
    (void)ledger_account_regain(&jobset->usage.closed, step->ledger, chip_us, step_now_us(step));
}

/* Gives the chips that are held now another owner. */
static void book_held(struct step *step, struct jobset *jobset, enum ledger_owner owner)
{
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        if (gang->state == GANG_PLACED || gang->state == GANG_RUNNING)
            gang_book(step, gang, owner);
    }
}

void progress_suspended(struct step *step, struct jobset *jobset)
{
    ladder_stop(&jobset->recovery.ladder);
    jobset->recovery.crashes = (struct crashes){.best_step = jobset->recovery.ladder.best_step};
    /* Otherwise no task was told of it. */
    bool shrunk = jobset->recovery.absence.replicas.len > 0 && !jobset_parks(jobset);
    uint8_t state = jobset->recovery.state;
    if (shrunk || state == RECOVERY_DUMPING || state == RECOVERY_SAVED || state == RECOVERY_REFUSED)
        inplace_retire(jobset); /* the ranks of a shrunk world differ from the indexes */
    shrink_forget(jobset);      /* the whole world comes back, or nothing */
    book_held(step, jobset, OWNER_STOPPING);
}

/* Without a restart record, the part that was kept cannot be booked later, so only work covered by a
 * checkpoint counts. */
void progress_resumed(struct step *step, struct jobset *jobset)
{
    if (jobset->progress.source == STEP_SAID)
        lose_unkept(step, jobset);
}

/* When a machine dies, a rank that loses its peer may end, and restart the JobSet, a moment before the
 * machine's own death is known. Both are one incident: it is recorded once, under its true cause, and
 * counts once. */
bool progress_same_incident(const struct step *step, const struct jobset *jobset, const struct task *culprit)
{
    if (!jobset->history.record_count || !culprit || culprit->end != END_MACHINE_LOST)
        return false;
    const struct restart_record *newest =
        &jobset->history.records[(jobset->history.record_count - 1) % RESTART_RECORDS_MAX];
    /* Keepers are not started, so they never set started_ns. */
    bool over = newest->started_ns || newest->stepped_ns;
    return !over && step->now_ns - newest->fault_ns <= INCIDENT_WINDOW_NS;
}

/* Returns the record to write. If it continues an incident, the first sign's suspect is cleared. */
static struct restart_record *open_record(struct step *step, struct jobset *jobset,
                                          const struct task *culprit, int64_t *ret_fault_ns)
{
    *ret_fault_ns = step->now_ns;
    if (!progress_same_incident(step, jobset, culprit))
        return &jobset->history.records[jobset->history.record_count++ % RESTART_RECORDS_MAX];
    struct restart_record *record = newest_record(jobset);
    *ret_fault_ns = record->fault_ns;
    if (jobset->history.suspect_count > 0) {
        machine_id last = jobset->history.suspects[jobset->history.suspect_count - 1];
        if (last != MACHINE_NONE && str_is(step->cluster->machines[last].name, record->machine))
            jobset->history.suspect_count--;
    }
    return record;
}

/* Returns the previous restart's cost if it did not reach a step: the new restart bears it. */
static int64_t unstepped_us(struct jobset *jobset)
{
    struct restart_record *before = newest_record(jobset);
    if (!before || before->stepped_ns)
        return 0;
    int64_t redone_us = before->redone_us;
    before->redone_us = 0;
    return redone_us;
}

void progress_restart(struct step *step, struct jobset *jobset, int32_t attempt, const char *cause,
                      const struct task *culprit)
{
    CHECK(culprit || cause);
    int64_t fault_ns;
    if (inplace_forget_dump(jobset) &&
        newest_record(jobset)) { /* the dump was part of this restart, whose record exists */
        newest_record(jobset)->attempt = attempt;
        ends_give(step, jobset, newest_record(jobset));
        return;
    }
    bool same = progress_same_incident(step, jobset, culprit);
    bool somewhere = culprit && culprit->machine != MACHINE_NONE;
    bool avoid = somewhere && is_to_avoid(step, jobset, culprit); /* judged by the earlier records */
    int64_t redone_us = unstepped_us(jobset);
    struct restart_record *record = open_record(step, jobset, culprit, &fault_ns);
    if (!same)
        restart_record_done(record); /* frees the older record in this slot */
    struct end_clues clues = record->clues;
    struct end_faults faults = record->faults;
    bool counted = jobset->progress.source == STEP_COUNTED;
    int64_t stepped = counted ? -1 : jobset->progress.step;
    char *passed = record->passed;
    *record = (struct restart_record){
        .clues = clues,
        .faults = faults,
        .rung = same ? record->rung : RUNG_NONE,
        .passed = passed,
        .attempt = attempt,
        .fault_ns = fault_ns,
        /* Steps are reported at intervals: a newer checkpoint proves that they were made. */
        .step_at_fault =
            stepped > jobset->checkpoint.committed_step ? stepped : jobset->checkpoint.committed_step,
        .step_resumed_from = jobset->checkpoint.committed_step,
    };
    copy_text(record->cause, sizeof(record->cause), str_from(culprit ? cause_of(culprit) : cause));
    if (somewhere)
        copy_text(record->machine, sizeof(record->machine), step->cluster->machines[culprit->machine].name);
    if (somewhere)
        suspect_blame(step, jobset, culprit);
    if (avoid)
        progress_suspect(jobset, culprit->machine);
    if (culprit) {
        char detail[sizeof(record->detail)];
        snprintf(detail, sizeof(detail), STR_FORMAT ": " STR_FORMAT, STR_ARG(culprit->name),
                 STR_ARG(culprit->message));
        copy_text(record->detail, sizeof(record->detail), str_from(detail));
        record->evidence_ns = culprit->ended_ns < step->now_ns ? culprit->ended_ns : 0;
    }
    if (somewhere && culprit->evicted && (culprit->loss == LOSS_NONE || culprit->loss == LOSS_EVICTED))
        ends_confirm_order(jobset, step->cluster->machines[culprit->machine].name, step->now_ns);
    ends_give(step, jobset, record);
    move_end(jobset);
    inplace_forget_keepers(jobset);
    record->redone_us = redone_us + lose_unkept(step, jobset);
    /* All chips wait for the restart, even if only one job restarts: its peers stand still meanwhile. */
    book_held(step, jobset, OWNER_RESTARTING);
}

static bool all_gangs_run(const struct jobset *jobset)
{
    for (size_t i = 0; i < jobset->gangs.len; i++)
        if (jobset->gangs.items[i]->attempt == jobset->attempt &&
            jobset->gangs.items[i]->state != GANG_RUNNING && !gang_is_away(jobset->gangs.items[i]))
            return false;
    return true;
}

void progress_running(struct step *step, struct gang *gang)
{
    CHECK(gang->state == GANG_RUNNING && gang->waiting == 0);
    struct jobset *jobset = gang->jobset;
    struct restart_record *record = newest_record(jobset);
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
        ladder_stepped(&jobset->recovery.ladder, -1);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

void progress_joined(struct step *step, struct task *task, const struct task_report *report)
{
    struct gang *gang = task->gang;
    if (task->keep == KEEP_TOLD && report->attempt_plus_1 == (uint32_t)task->attempt + 1)
        task->keep = KEEP_NO;
    if (rejoin_is_old_word(task, report))
        return;
    task->joined = true;
    task->can_rejoin = report->can_rejoin;
    task->spare = report->spare;
    if (task_is_spare(task)) {
        spare_joined(step, task);
        return;
    }
    unjoined_note_join(step, task->job->jobset);
    if (gang && gang->account.owner == OWNER_UNKEPT && gang->jobset->progress.attempt != gang->attempt)
        gang_book(step, gang, gang->replaces ? OWNER_RESTARTING : OWNER_STARTING);
}

static void copy_metrics(struct progress *progress, const struct progress_event *event)
{
    progress->metric_count = event->metric_count < METRICS_MAX ? event->metric_count : METRICS_MAX;
    for (size_t i = 0; i < progress->metric_count; i++) {
        copy_text(progress->metric_names[i], sizeof(progress->metric_names[i]), event->metrics[i].name);
        progress->metrics[i].name = str_from(progress->metric_names[i]);
        progress->metrics[i].micro = event->metrics[i].micro;
    }
}

/* Books from where the ranks resumed, by their first step: from their memory, which is newer than the last
 * commit, or from checkpoints of their own. */
static void note_resumed(struct step *step, struct jobset *jobset, const struct progress_event *event)
{
    struct restart_record *record = newest_record(jobset);
    bool counted = event->source == STEP_COUNTED || jobset->progress.source == STEP_COUNTED;
    if (!record || record->attempt != jobset->attempt || record->stepped_ns || counted)
        return;
    int64_t first = event->first_plus_1 > 0 ? event->first_plus_1 - 1 : event->step;
    int64_t resumed = first > 1 ? first - 1 : 0;
    if (resumed > record->step_at_fault && event->first_plus_1 > 0)
        record->step_at_fault = resumed; /* reports lag: that ranks hold a step proves that it was made */
    if (resumed > record->step_at_fault)
        resumed = record->step_at_fault;
    int64_t kept = record->step_resumed_from > 0 ? record->step_resumed_from : 0;
    if (event->source == STEP_READ && record->step_resumed_from < 0)
        record->step_resumed_from = resumed;
    if (resumed <= kept)
        return;
    regain(step, jobset,
           (int64_t)((__int128)record->redone_us * (resumed - kept) / (record->step_at_fault - kept)));
    record->step_resumed_from = resumed;
}

/* Called for a step of every rank: starting and restarting gangs are productive now. */
static void steps_go_on(struct step *step, struct jobset *jobset)
{
    struct restart_record *record = newest_record(jobset);
    bool fresh = jobset->progress.attempt != jobset->attempt;
    if (fresh && jobset->recovery.state == RECOVERY_REJOINING) /* all are back */
        recovery_state_move(&jobset->recovery.state, RECOVERY_NONE);
    bool began = record && record->attempt == jobset->attempt && (fresh || record->started_ns);
    if (began && !record->stepped_ns) {
        record->stepped_ns = step->now_ns;
        jobset_mark(step, jobset); /* attempt_due: restarts need not wait any more */
    }
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        bool live =
            fresh ? gang->state == GANG_PLACED || gang->state == GANG_RUNNING : gang->state == GANG_RUNNING;
        if (live && gang->attempt == jobset->attempt && gang->account.owner != OWNER_UNKEPT &&
            !gang_is_away(gang))
            gang_book(step, gang, OWNER_UNKEPT);
    }
}

/* Switches the source of steps. Counts of lines begin anew with each attempt, so their highest value is no
 * measure of progress. */
static void take_source(struct jobset *jobset, enum step_source source)
{
    bool counted = source == STEP_COUNTED || jobset->progress.source == STEP_COUNTED;
    if (counted)
        jobset->recovery.ladder.best_step = -1;
    jobset->progress.source = counted ? STEP_COUNTED : source;
}

void jobs_progress(struct step *step, const struct progress_event *event)
{
    struct jobset *jobset = jobs_find_uid(step->jobs, event->jobset);
    if (!jobset || event->attempt != jobset->attempt || jobset_finished(jobset) || jobset_rests(jobset) ||
        event->step < 0)
        return;
    struct progress *progress = &jobset->progress;
    if (progress->attempt == event->attempt && event->step <= progress->step)
        return;
    if (progress->attempt != event->attempt)
        note_resumed(step, jobset, event);
    rejoin_note_step(step, jobset);
    steps_go_on(step, jobset);
    take_source(jobset, event->source);
    ladder_stepped(&jobset->recovery.ladder, progress->source == STEP_COUNTED ? -1 : event->step);
    if (progress->attempt != event->attempt) {
        progress->attempt = event->attempt;
        progress->base_step = event->step;
        progress->base_ns = step->now_ns;
    } else if (step->now_ns - progress->base_ns >= 2 * RATE_WINDOW_NS) {
        progress->base_step = progress->step;
        progress->base_ns = progress->step_ns;
    }
    CHECK(progress->attempt == jobset->attempt);
    progress->step = event->step;
    progress->step_ns = step->now_ns;
    progress->total = event->total;
    copy_metrics(progress, event);
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
}

int64_t progress_rate_milli(const struct progress *progress)
{
    int64_t elapsed_ns = progress->step_ns - progress->base_ns;
    if (progress->step <= progress->base_step || elapsed_ns < NS_PER_MS)
        return 0;
    return (int64_t)((__int128)(progress->step - progress->base_step) * 1000 * NS_PER_SECOND / elapsed_ns);
}

/* Whether the task's shards count for a checkpoint of this attempt. A task that is restarted in place may
 * still save for an earlier one. */
static bool checkpoints(const struct task *task)
{
    return task->joined && task->attempt == task->job->jobset->attempt && task->end != END_MACHINE_LOST &&
           (!task_ended(task->state) || task->state == TASK_SUCCEEDED);
}

static bool has_saved(const struct task *task, int64_t number)
{
    bool saved = task->saved_step == number;
    for (uint32_t i = 0; i < task->saved_before_count; i++)
        saved |= task->saved_before[i] == number;
    return saved;
}

static bool all_have_saved(const struct jobset *jobset, int64_t number)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++)
            if (checkpoints(job->tasks.items[t]) && !has_saved(job->tasks.items[t], number))
                return false;
    }
    return true;
}

/* Returns the newest step, at most `lowest` (the laggard's newest), that all have saved; -1: none. Ranks
 * need not save the same steps. */
static int64_t common_step(const struct jobset *jobset, int64_t lowest)
{
    const struct task *laggard = jobset->checkpoint.laggard;
    if (lowest < 0 || all_have_saved(jobset, lowest))
        return lowest;
    CHECK(laggard && laggard->saved_step == lowest);
    for (uint32_t i = 0; i < laggard->saved_before_count; i++)
        if (all_have_saved(jobset, laggard->saved_before[i]))
            return laggard->saved_before[i];
    return -1;
}

static void remember_saved(struct task *task, int64_t number)
{
    CHECK(number > task->saved_step && task->saved_before_count <= SAVED_BEFORE_MAX);
    if (task->saved_step >= 0) {
        uint32_t kept =
            task->saved_before_count < SAVED_BEFORE_MAX ? task->saved_before_count : SAVED_BEFORE_MAX - 1;
        memmove(task->saved_before + 1, task->saved_before, kept * sizeof(*task->saved_before));
        task->saved_before[0] = task->saved_step;
        task->saved_before_count = kept + 1;
    }
    task->saved_step = number;
}

/* Returns the newest step that every rank of every checkpointing world has saved in this attempt; -1:
 * none. Remembers one of the ranks that are behind, chosen by hash, so that few reports have to visit all
 * ranks, whatever the order in which they arrive. */
static int64_t complete_step(struct jobset *jobset)
{
    int64_t lowest = INT64_MAX;
    uint64_t joined = 0, wanted = 0;
    jobset->checkpoint.laggard = NULL;
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (size_t t = 0; job && t < job->tasks.len; t++) {
            struct task *task = job->tasks.items[t];
            if (!checkpoints(task))
                continue;
            joined++;
            wanted += task->rank == 0 ? task->world : 0;
            if (task->saved_step < lowest ||
                (task->saved_step == lowest && jobset->checkpoint.laggard &&
                 hash_mix(task->uid) < hash_mix(jobset->checkpoint.laggard->uid)))
                jobset->checkpoint.laggard = task;
            lowest = task->saved_step < lowest ? task->saved_step : lowest;
        }
    }
    return joined > 0 && joined == wanted ? common_step(jobset, lowest) : -1;
}

static void notice_committed(struct step *step, const struct task *task, int64_t number)
{
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
    effect->notice.machine = task->machine;
    effect->notice.notice = (struct task_notice){NOTICE_CHECKPOINT_COMMITTED, task->uid, number, 0, 0};
}

void progress_shard_saved(struct step *step, struct task *task, int64_t number)
{
    struct jobset *jobset = task->job->jobset;
    if (task->job->doomed || task->gang == NULL || task->attempt != jobset->attempt || task_is_spare(task))
        return;
    if (number <= jobset->checkpoint.committed_step &&
        jobset->checkpoint.committed_attempt == jobset->attempt)
        notice_committed(step, task, jobset->checkpoint.committed_step); /* the first notice was lost */
    if (number <= task->saved_step)
        return;
    remember_saved(task, number);
    int64_t committed =
        jobset->checkpoint.committed_attempt >= jobset->attempt ? jobset->checkpoint.committed_step : -1;
    if (jobset->checkpoint.laggard && checkpoints(jobset->checkpoint.laggard) &&
        jobset->checkpoint.laggard->saved_step <= committed)
        return;
    int64_t complete = complete_step(jobset);
    if (complete <= committed)
        return;
    jobset->checkpoint.committed_step = complete;
    jobset->checkpoint.committed_attempt = jobset->attempt;
    jobset->checkpoint.committed_ns = step->now_ns;
    jobset->checkpoint.count++;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        ledger_account_keep(&gang->account, step->ledger, step_now_us(step));
        for (size_t t = 0; t < gang->tasks.len; t++) {
            const struct task *member = gang->tasks.items[t];
            if (!member->joined || task_ended(member->state) || task_is_spare(member))
                continue;
            notice_committed(step, member, complete);
        }
    }
    ledger_account_keep(&jobset->usage.closed, step->ledger, step_now_us(step));
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    if (jobset->recovery.move.state != MOVE_NONE || jobset->recovery.state == RECOVERY_DUMPING ||
        jobset->recovery.farewell.noticed_ns)
        jobset_mark(step, jobset);
}

void progress_settle(struct step *step, struct jobset *jobset, bool kept)
{
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
