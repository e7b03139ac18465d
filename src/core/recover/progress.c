/* progress.c - reports of joins, steps and checkpoints. */
#include "core/recover/internal.h"

#include "base/hash.h"

/* Shortest span over which the rate is taken. */
#define RATE_WINDOW_NS (2 * NS_PER_SECOND)

void progress_joined(struct step *step, struct task *task, const struct task_report *report)
{
    CHECK(report->kind == REPORT_JOINED && !task_ended(task->state));
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
    if (task->job->jobset->recovery.absence.replicas.len)
        jobset_mark(step, task->job->jobset); /* shrink_look: absent replicas return when all others can */
    if (gang && gang->account.owner == OWNER_UNKEPT && gang->jobset->progress.attempt != gang->attempt)
        gang_book(step, gang, gang->replaces ? OWNER_RESTARTING : OWNER_STARTING);
}

static void copy_metrics(struct progress *progress, const struct progress_event *event)
{
    progress->metric_count = event->metric_count < METRICS_MAX ? event->metric_count : METRICS_MAX;
    for (size_t i = 0; i < progress->metric_count; i++) {
        restart_copy_text(progress->metric_names[i], sizeof(progress->metric_names[i]),
                          event->metrics[i].name);
        progress->metrics[i].name = str_from(progress->metric_names[i]);
        progress->metrics[i].micro = event->metrics[i].micro;
    }
}

/* Books a restart from an older checkpoint, because the newest one was damaged or wrong: the work since the
 * older one is lost after all. Ranks that number their steps from 0 begin with the number of their checkpoint
 * itself. */
static void note_fallback(struct step *step, struct jobset *jobset, struct restart_record *record,
                          int64_t kept, int64_t resumed)
{
    CHECK(resumed < kept && record == restart_newest(jobset));
    usage_unkeep(step, jobset, kept - resumed, kept);
    record->step_resumed_from = resumed;
    if (resumed < jobset->checkpoint.committed_step)
        jobset->checkpoint.fallback_step = resumed;
}

/* Books where the ranks resumed, by their first step: they may have resumed from memory, which is newer than
 * the last commit, or from their own checkpoints. */
static void note_resumed(struct step *step, struct jobset *jobset, const struct progress_event *event)
{
    struct restart_record *record = restart_newest(jobset);
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
    if (event->source == STEP_SAID && event->first_plus_1 > 0 && first < kept) {
        note_fallback(step, jobset, record, kept, resumed);
        return;
    }
    if (resumed <= kept)
        return;
    usage_regain(step, jobset,
                 (int64_t)((__int128)record->redone_us * (resumed - kept) / (record->step_at_fault - kept)));
    record->step_resumed_from = resumed;
}

/* Called when every rank has made a step: books starting and restarting gangs as productive. */
static void steps_go_on(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_finished(jobset));
    struct restart_record *record = restart_newest(jobset);
    bool fresh = jobset->progress.attempt != jobset->attempt;
    if (fresh && jobset->recovery.state == RECOVERY_REJOINING) { /* all ranks have rejoined */
        recovery_state_move(&jobset->recovery.state, RECOVERY_NONE);
        jobset_mark(step, jobset); /* shrink_look: absent replicas may return now */
    }
    bool began = record && record->attempt == jobset->attempt && (fresh || record->started_ns);
    if (began && !record->stepped_ns) {
        record->stepped_ns = step->now_ns;
        jobset_mark(step, jobset); /* attempt_due: restarts need not wait any more */
    }
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct gang *gang = jobset->gangs.items[i];
        bool live =
            fresh ? gang->state == GANG_PLACED || gang->state == GANG_RUNNING : gang->state == GANG_RUNNING;
        if (live && gang->told && gang->attempt == jobset->attempt && gang->account.owner != OWNER_UNKEPT &&
            !gang_is_away(gang))
            gang_book(step, gang, OWNER_UNKEPT);
    }
}

/* Switches the source of steps. Counts of lines restart with each attempt, so their highest value does not
 * measure progress. */
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
    usage_rung_helped(step, jobset, progress->source == STEP_COUNTED ? -1 : event->step);
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

/* Returns whether the task's shards count for a checkpoint of this attempt. A task that is restarted in place
 * may still save for an earlier attempt. The tasks of a Job that is being replaced do not count. */
static bool checkpoints(const struct task *task)
{
    return task->joined && !task->job->doomed && task->attempt == task->job->jobset->attempt &&
           task->end != END_MACHINE_LOST && (!task_ended(task->state) || task->state == TASK_SUCCEEDED);
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

/* Returns the newest step, at most `lowest` (the laggard's newest), that all have saved, or -1 if there is
 * none. Ranks need not save the same steps. */
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

/* Returns the newest step that every rank of every checkpointing world has saved in this attempt, or -1 if
 * there is none. Stores one of the ranks that lag as the laggard, chosen by hash: few reports then have to
 * visit all ranks, in whatever order they arrive. */
static int64_t complete_step(struct jobset *jobset)
{
    CHECK(jobset->job_count > 0);
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
    CHECK(task->machine != MACHINE_NONE && number >= 0);
    struct effect *effect = effect_add(step->effects, EFFECT_TASK_NOTICE);
    effect->notice.machine = task->machine;
    effect->notice.notice =
        (struct task_notice){.kind = NOTICE_CHECKPOINT_COMMITTED, .task = task->uid, .step = number};
}

void progress_shard_saved(struct step *step, struct task *task, int64_t number)
{
    struct jobset *jobset = task->job->jobset;
    if (task->job->doomed || task->gang == NULL || task->attempt != jobset->attempt || task_is_spare(task) ||
        number < 0) /* a wrong report: no rank saves such a step */
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
    jobset->checkpoint.fallback_step = -1;
    jobset->checkpoint.committed_attempt = jobset->attempt;
    jobset->checkpoint.committed_ns = step->now_ns;
    jobset->checkpoint.count++;
    usage_stall(step, jobset);
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
    jobset_mark(step,
                jobset); /* a move, a suspension, a dying checkpoint or a queue's eviction may wait for it */
}
