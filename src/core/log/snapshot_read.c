/* snapshot_read.c - restores the state from its records. Everything is checked: an inconsistent snapshot is
 * ERROR_CORRUPT. The caller then discards the core, so a partial state is never used. */
#include "core/gang/gang.h"
#include "core/internal.h"
#include "core/react/react.h"

#include <inttypes.h>

#include "doc/json.h"
#include "core/admit/admit.h"
#include "core/agent/codec_pb.h"
#include "core/log/record.h"
#include "core/sched/capacity.h"
#include "core/log/snapshot.h"

enum { LABEL_VALUE_BYTES = 63 }; /* a DNS-1123 label */

struct reader {
    struct core *core;
    struct jobset *jobset; /* owner of the next gangs and jobs */
    struct job *job;       /* owner of the next tasks */
    struct error *error;
    bool has_header;
};

static int corrupt(struct reader *reader, const char *what, uint64_t id)
{
    CHECK(what && what[0]);
    return error_set(reader->error, ERROR_CORRUPT, "%s %" PRIx64 " does not fit", what, id);
}

static int read_header(struct reader *reader, const Snapshot__Header *pb)
{
    struct core *core = reader->core;
    if (pb->version > SNAPSHOT_VERSION)
        return error_set(reader->error, ERROR_UNSUPPORTED, "it has version %u, this build knows %d",
                         pb->version, SNAPSHOT_VERSION);
    if (!snapshot_read_ledger(pb, &core->ledger))
        return corrupt(reader, "ledger", pb->n_chips);
    if (reader->has_header || pb->first_note > UINT64_MAX / 2)
        return corrupt(reader, "header", pb->seq);
    core->seq = pb->seq;
    core->epoch = pb->epoch;
    core->first_epoch = pb->first_epoch;
    core->uids_ahead = pb->uids_ahead;
    core->hearing.until_ns = pb->hearing_until_ns;
    core->hearing.heard = pb->hearing_heard;
    for (size_t i = 0; i < pb->n_hearing_strangers; i++)
        vec_push(&core->hearing.strangers, pb->hearing_strangers[i]);
    if (pb->hearing_until_ns < 0 ||
        (pb->hearing_until_ns == 0 && (pb->hearing_heard > 0 || pb->n_hearing_strangers > 0)))
        return corrupt(reader, "hearing", pb->hearing_heard);
    if (pb->first_epoch > pb->epoch || pb->uids_ahead >> UID_POSITION_BITS)
        return corrupt(reader, "epoch", pb->epoch);
    core->outage = (struct outage){pb->boot_ns, pb->paused_ns};
    core->identity = pb->identity;
    if (pb->secret.len != 0 && pb->secret.len != GANG_KEY_BYTES)
        return corrupt(reader, "secret", pb->secret.len);
    if (pb->secret.len > 0)
        core_keep_secret(core, (struct str){(const char *)pb->secret.data, pb->secret.len});
    core->hold = (struct lease_hold){pb->hold_number, pb->hold_until_ns, pb->hold_owed_ns};
    if (!lease_hold_fits(&core->hold))
        return corrupt(reader, "hold", pb->hold_number);
    if (pb->level > this_release.level)
        return level_unread(pb->level, reader->error);
    core->level = pb->level;
    if (pb->level >= LEVEL_RECEIPTS &&
        !receipts_restore_since(core->receipts, pb->now_ns, pb->receipts_since_ns))
        return corrupt(reader, "the time since which receipts are kept", (uint64_t)pb->receipts_since_ns);
    core->now_ns = pb->now_ns;
    core->notes.first = core->notes.next = pb->first_note;
    core->jobs.completed_total = pb->jobsets_completed;
    core->jobs.failed_total = pb->jobsets_failed;
    reader->has_header = true;
    struct str json = str_from(pb->cluster);
    if (json.len == 0)
        return 0;
    struct arena arena ARENA_CLEANUP = {0};
    struct field_errors errors = {.arena = &arena};
    struct doc *document;
    bool loaded = json_parse(&arena, json, &document, reader->error) == 0 &&
                  cluster_load(document, &core->cluster, &errors);
    field_errors_done(&errors);
    if (!loaded)
        return corrupt(reader, "the cluster document", pb->seq);
    buf_add_str(&core->cluster_json, json);
    jobs_bind_machines(&core->jobs, core->cluster.machine_count);
    slices_cluster(NULL, core->slices, &core->cluster);
    return 0;
}

static int read_note(struct reader *reader, const Snapshot__Note *pb)
{
    if (pb->regarding < OBJECT_JOBSET || pb->regarding >= OBJECT_KINDS ||
        reader->core->notes.next - reader->core->notes.first >= EVENT_OBJECTS_MAX)
        return corrupt(reader, "note", pb->uid);
    struct note_saved saved = {
        .uid = pb->uid,
        .warning = pb->warning,
        .reason = pb->reason,
        .message = str_from(pb->message),
        .about = {(enum object_kind)pb->regarding, str_from(pb->namespace_), str_from(pb->name),
                  pb->regarding_uid, 0},
        .first_ns = pb->first_ns,
        .last_ns = pb->last_ns,
        .count = pb->count,
        .changed_seq = pb->changed_seq,
    };
    note_restore(&reader->core->notes, &saved);
    return 0;
}

static int read_account(struct reader *reader, const Snapshot__Account *pb, struct ledger_account *ret)
{
    if (!snapshot_read_account(reader->core->now_ns, pb, ret))
        return corrupt(reader, "account", pb ? pb->n_chip_us : 0);
    return 0;
}

static void read_conditions(struct jobset *jobset, const Snapshot__Jobset *pb)
{
    CHECK(!jobset->conditions[CONDITION_COMPLETED].present);
    for (size_t i = 0; i < pb->n_conditions && i < CONDITION_KINDS; i++) {
        const Snapshot__Condition *item = pb->conditions[i];
        struct condition *condition = &jobset->conditions[i];
        condition->present = item->present;
        condition->status = item->status;
        if (item->present || item->reason[0] || item->message[0])
            condition_say(condition, str_from(item->reason), str_from(item->message));
        condition->changed_ns = item->changed_ns;
    }
}

static void read_restarts(struct jobset *jobset, const Snapshot__Jobset *pb)
{
    CHECK(!jobset->history.records);
    jobset->history.record_count = pb->record_count;
    if (pb->record_count || pb->n_records)
        restart_history_need(&jobset->history);
    CHECK(jobset->history.records || pb->n_records == 0);
    for (size_t i = 0; i < pb->n_records && i < RESTART_RECORDS_MAX; i++) {
        const Snapshot__Restart *item = pb->records[i];
        struct restart_record *record = &jobset->history.records[i];
        record->attempt = item->attempt;
        restart_copy_text(record->cause, sizeof(record->cause), str_from(item->cause));
        restart_copy_text(record->machine, sizeof(record->machine), str_from(item->machine));
        restart_copy_text(record->detail, sizeof(record->detail), str_from(item->detail));
        record->fault_ns = item->fault_ns;
        record->evidence_ns = item->evidence_ns;
        record->started_ns = item->started_ns;
        record->stepped_ns = item->stepped_ns;
        record->step_at_fault = item->step_at_fault;
        record->step_resumed_from = item->step_resumed_from;
        record->redone_us = item->redone_us > 0 ? item->redone_us : 0;
        record->cause_plus_1 = item->cause_plus_1 <= LEDGER_CAUSES ? (uint8_t)item->cause_plus_1 : 0;
        record->size = item->size < LEDGER_SIZES ? (uint8_t)item->size : 0;
        record->assumed_us = item->assumed_us > 0 ? item->assumed_us : 0;
    }
}

static int read_progress(struct reader *reader, const Snapshot__Progress *pb, struct progress *progress)
{
    if (!pb || pb->n_metrics > METRICS_MAX || pb->source >= STEP_SOURCES)
        return corrupt(reader, "progress", 0);
    progress->attempt = pb->attempt;
    progress->step = pb->step;
    progress->total = pb->total;
    progress->source = (enum step_source)pb->source;
    progress->step_ns = pb->step_ns;
    progress->base_step = pb->base_step;
    progress->base_ns = pb->base_ns;
    progress->metric_count = pb->n_metrics;
    for (size_t i = 0; i < pb->n_metrics; i++) {
        restart_copy_text(progress->metric_names[i], sizeof(progress->metric_names[i]),
                          str_from(pb->metrics[i]->name));
        progress->metrics[i] =
            (struct step_metric){str_from(progress->metric_names[i]), pb->metrics[i]->micro};
    }
    return 0;
}

static bool machines_exist(const struct reader *reader, const uint32_t *ids, size_t count)
{
    CHECK(ids || count == 0);
    for (size_t i = 0; i < count; i++)
        if (ids[i] != MACHINE_NONE && ids[i] >= reader->core->cluster.machine_count)
            return false;
    return true;
}

/* Reads the widths; older snapshots have none, and the spec's are used. */
static bool read_widths(struct jobset *jobset, const Snapshot__Jobset *pb)
{
    if (pb->n_widths != 0 && pb->n_widths != jobset->spec.rjob_count)
        return false;
    for (size_t r = 0; r < pb->n_widths; r++)
        if (pb->widths[r] < jobset->widths[r] || pb->widths[r] > TASKS_PER_JOBSET_MAX ||
            (uint64_t)pb->widths[r] * (uint32_t)jobset->spec.rjobs[r].replicas > TASKS_PER_JOBSET_MAX)
            return false;
    if (pb->n_widths)
        jobset_widen(jobset, pb->widths);
    return true;
}

static int read_jobset_lists(struct reader *reader, struct jobset *jobset, const Snapshot__Jobset *pb)
{
    if (!read_widths(jobset, pb))
        return corrupt(reader, "jobset", pb->uid);
    if (pb->n_job_attempts_counted == jobset->job_count)
        mem_copy(jobset->job_attempts_counted, pb->job_attempts_counted,
                 jobset->job_count * sizeof(*jobset->job_attempts_counted));
    if (pb->n_rjob_status != 5 * jobset->spec.rjob_count || pb->n_job_attempts != jobset->job_count ||
        pb->n_last_machines != jobset->slots.count || !machines_exist(reader, pb->suspects, pb->n_suspects) ||
        !machines_exist(reader, pb->last_machines, pb->n_last_machines))
        return corrupt(reader, "jobset", pb->uid);
    mem_copy(jobset->rjob_status, pb->rjob_status, pb->n_rjob_status * sizeof(int32_t));
    mem_copy(jobset->job_attempts, pb->job_attempts, pb->n_job_attempts * sizeof(int32_t));
    mem_copy(jobset->slots.last_machines, pb->last_machines, pb->n_last_machines * sizeof(uint32_t));
    jobset->history.suspect_count = pb->n_suspects;
    jobset->history.suspects = mem_alloc(pb->n_suspects * sizeof(*jobset->history.suspects));
    mem_copy(jobset->history.suspects, pb->suspects, pb->n_suspects * sizeof(*jobset->history.suspects));
    return 0;
}

/* Whether the sizes in the document are within bounds. The document was valid when it was written, but
 * memory depends on these. */
static bool jobset_is_bounded(const struct jobset_spec *spec)
{
    int64_t tasks = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct rjob_spec *rjob = &spec->rjobs[r];
        int64_t each = job_index_count(rjob) ? job_index_count(rjob) : 1;
        if (rjob->name.len > LABEL_VALUE_BYTES || rjob->replicas < 0 || rjob->job.parallelism < 0 ||
            rjob->replicas > TASKS_PER_JOBSET_MAX || each > TASKS_PER_JOBSET_MAX)
            return false;
        tasks += rjob->replicas * each;
    }
    return tasks <= TASKS_PER_JOBSET_MAX && spec->rjob_count <= REPLICATED_JOBS_MAX;
}

static bool is_new_jobset(const struct reader *reader, const struct doc *document, obj_id uid, bool hidden)
{
    struct str ns = doc_str(doc_path(document, "metadata", "namespace", NULL), STR("default"));
    struct str name = doc_str(doc_path(document, "metadata", "name", NULL), STR(""));
    if (uid == 0 || ns.len > LABEL_VALUE_BYTES || name.len == 0 || name.len > NAME_MAX_BYTES ||
        jobs_find_uid(&reader->core->jobs, uid))
        return false;
    const struct job_store *store = &reader->core->jobs;
    switch (workload_form(document)) {
    case FORM_JOB:
        return hidden || !jobs_find_job(store, ns, name);
    case FORM_POD:
        return !hidden && !jobs_find_pod(store, ns, name);
    case FORM_WORKLOAD:
        return !hidden;
    case FORM_JOBSET:
        break;
    }
    return hidden || !jobs_find(store, ns, name);
}

static bool is_past(const struct reader *reader, int64_t stamp_ns)
{
    return stamp_ns >= 0 && stamp_ns <= reader->core->now_ns;
}

/* Sets the number of executions. For a JobSet that ran before executions were counted, derives it from the
 * restarts. */
static void read_runs(struct jobset *jobset, const Snapshot__Jobset *pb)
{
    bool ran = jobset->restarts > 0 || !jobset->conditions[CONDITION_SUSPENDED].status;
    jobset->executions = pb->runs ? pb->runs->executions : ran ? jobset->restarts : -1;
    jobset->executions = jobset->executions < -1 ? -1 : jobset->executions;
}

/* Reads the recovery, and the restarts other than those in place. Returns false if they are inconsistent. */
static bool read_restart_counts(const struct reader *reader, struct jobset *jobset,
                                const Snapshot__Jobset *pb)
{
    const struct jobset_recovery *recovery = &jobset->recovery;
    if (!snapshot_read_recovery(&reader->core->cluster, reader->core->now_ns, jobset, pb->recovery) ||
        pb->restarts - recovery->in_place_restarts < jobset_parks(jobset) ||
        recovery->in_place_counted > pb->restarts_counted)
        return false;
    jobset->restarts = pb->restarts - recovery->in_place_restarts - jobset_parks(jobset);
    jobset->restarts_counted = pb->restarts_counted - recovery->in_place_counted;
    return true;
}

static int read_jobset(struct reader *reader, const Snapshot__Jobset *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *document;
    struct jobset_spec spec;
    struct field_errors errors = {.arena = &arena};
    bool read = json_parse(&arena, str_from(pb->document), &document, NULL) == 0;
    read = read && workload_read(&arena, document, &spec, &errors);
    field_errors_done(&errors);
    bool hidden = pb->runs && pb->runs->hidden;
    if (!read || !jobset_is_bounded(&spec) || !is_new_jobset(reader, document, pb->uid, hidden) ||
        pb->terminal_state >= TERMINAL_STATES || !is_past(reader, pb->finished_ns) ||
        !is_past(reader, pb->shown_ns) || pb->loose_tasks != 0 || pb->first_attempt < 0 || pb->restarts < 0 ||
        pb->first_attempt > INT32_MAX - pb->restarts)
        return corrupt(reader, "jobset", pb->uid);
    struct jobset *jobset =
        jobs_restore_jobset(&reader->core->jobs, pb->uid, &arena, document, &spec, hidden);
    reader->jobset = jobset;
    reader->job = NULL;
    jobset->generation = pb->generation;
    jobset->created_ns = pb->created_ns;
    jobset->deleted_ns = pb->deleted_ns;
    jobset->changed_seq = pb->changed_seq;
    read_conditions(jobset, pb);
    jobset->first_attempt = pb->first_attempt;
    jobset->attempt = pb->first_attempt + pb->restarts;
    jobset->terminal_state = (uint8_t)pb->terminal_state;
    jobset->first_queued_ns = pb->first_queued_ns;
    jobset->checkpoint = (struct checkpoint_state){.committed_step = pb->committed_step,
                                                   .committed_attempt = pb->committed_attempt,
                                                   .committed_ns = pb->committed_ns,
                                                   .fallback_step = pb->fallback_step_plus_1 - 1,
                                                   .count = pb->checkpoints};
    if (pb->fallback_step_plus_1 < 0 ||
        (pb->fallback_step_plus_1 && pb->fallback_step_plus_1 > pb->committed_step))
        return corrupt(reader, "the checkpoints of jobset", pb->uid);
    read_restarts(jobset, pb);
    jobset->finished_ns = pb->finished_ns;
    jobset->failures_wait = pb->failures_wait;
    if (!read_restart_counts(reader, jobset, pb))
        return corrupt(reader, "the recovery of jobset", pb->uid);
    read_runs(jobset, pb);
    jobset->usage.shown_ns = pb->shown_ns;
    if (pb->foreign_status[0] &&
        json_parse(&jobset->foreign.arena, str_from(pb->foreign_status), &jobset->foreign.status, NULL) < 0)
        return corrupt(reader, "the status of jobset", pb->uid);
    if (!snapshot_read_terms(&reader->core->jobs, &reader->core->cluster, jobset, pb))
        return corrupt(reader, "the terms of jobset", pb->uid);
    if (!snapshot_read_failure(pb, &jobset->usage))
        return corrupt(reader, "the failure of jobset", pb->uid);
    if (!snapshot_read_ends(reader->core->now_ns, jobset, pb))
        return corrupt(reader, "the restarts of jobset", pb->uid);
    int rc = read_jobset_lists(reader, jobset, pb);
    if (rc == 0)
        rc = read_progress(reader, pb->progress, &jobset->progress);
    if (rc == 0 && pb->shown)
        rc = read_account(reader, pb->shown, &jobset->usage.shown);
    return rc < 0 ? rc : read_account(reader, pb->closed, &jobset->usage.closed);
}

static int read_gang(struct reader *reader, const Snapshot__Gang *pb)
{
    if (!reader->jobset || pb->state >= GANG_ENDED || pb->n_tasks == 0 || !pb->account ||
        (pb->why_due && (pb->state != GANG_QUEUED || pb->why_since_ns > reader->core->now_ns)))
        return corrupt(reader, "gang", pb->uid);
    struct gang *gang = jobs_restore_gang(reader->jobset, pb->uid);
    gang->attempt = pb->attempt;
    gang->state = (uint8_t)pb->state;
    gang->replaces = pb->replaces;
    buf_add_str(&gang->why_text, str_from(pb->why));
    gang->why = buf_str(&gang->why_text);
    gang->why_since_ns = pb->why_since_ns;
    gang->why_changes = pb->why_changes;
    gang->why_due = pb->why_due;
    if (gang->why_due)
        gang_restore_why_timer(&reader->core->jobs, gang);
    gang->waiting = pb->waiting;
    gang->alive = pb->alive;
    gang->queued_ns = pb->queued_ns;
    gang->placed_ns = pb->placed_ns;
    gang->running_ns = pb->running_ns;
    gang->queued.priority = pb->priority;
    gang->queued.submitted_ns = pb->submitted_ns;
    gang->queued.head_since_ns = pb->head_since_ns;
    gang->min_count = pb->min_count <= pb->n_tasks ? pb->min_count : 0;
    gang->mixed_plus_1 = pb->mixed_plus_1;
    gang->told = pb->told;
    /* Reserves places for the gang's tasks, which are read later, in order. */
    for (size_t i = 0; i < pb->n_tasks; i++)
        vec_push(&gang->tasks, NULL);
    struct u64_map *places = &reader->core->restore_places;
    for (size_t i = 0; i < pb->n_tasks; i++)
        u64_map_put(places, pb->tasks[i], (void *)(uintptr_t)(i + 1));
    return read_account(reader, pb->account, &gang->account);
}

static void read_meta(struct user_meta **place, const Snapshot__Meta *pb)
{
    CHECK(!*place);
    struct arena arena ARENA_CLEANUP = {0};
    if (!pb)
        return;
    struct labels labels = snapshot_read_labels(&arena, pb->labels, pb->n_labels);
    struct labels annotations = snapshot_read_labels(&arena, pb->annotations, pb->n_annotations);
    user_meta_restore(place, &labels, &annotations);
}

static int read_job(struct reader *reader, const Snapshot__Job *pb)
{
    struct jobset *jobset = reader->jobset;
    if (!jobset || pb->position >= jobset->job_count || pb->state >= JOB_STATES ||
        (pb->current && jobset->jobs[pb->position]) || pb->current == pb->doomed ||
        !is_past(reader, pb->start_ns) || !is_past(reader, pb->doomed_ns) ||
        pb->doomed != (pb->doomed_ns > 0))
        return corrupt(reader, "job", pb->uid);
    struct job *job = jobs_restore_job(&reader->core->jobs, jobset, pb->uid, pb->position, pb->current);
    reader->job = job;
    if (pb->n_indexes != job->index_count)
        return corrupt(reader, "job", pb->uid);
    job->attempt = pb->attempt;
    job->state = (uint8_t)pb->state;
    job->doomed = pb->doomed;
    job->doomed_ns = pb->doomed_ns;
    job->active = pb->active;
    job->ready = pb->ready;
    job->succeeded = pb->succeeded;
    job->failed = pb->failed;
    job->reason = pb->reason[0] ? arena_strdup(&job->arena, str_from(pb->reason)) : NULL;
    job->message = arena_str(&job->arena, str_from(pb->message));
    job->created_ns = pb->created_ns;
    job->start_ns = pb->start_ns;
    job->finished_ns = pb->finished_ns;
    job->retry_due_ns = pb->retry_due_ns;
    job->success_rule = pb->success_rule - 1;
    job->job_attempt = pb->job_attempt;
    job->execution = pb->execution;
    job->spare_failures = pb->spare_failures;
    job->spare_due_ns = pb->spare_due_ns;
    if (job->spare_due_ns && !job_goes_on(job))
        return corrupt(reader, "job", pb->uid);
    read_meta(&job->meta, pb->meta);
    job->changed_seq = pb->changed_seq;
    if (pb->dirty)
        job_touch(job);
    job->restore_culprit = pb->culprit;
    for (uint32_t i = 0; i < job->index_count; i++) {
        job->indexes[i] = (struct job_index){.made = pb->indexes[i]->made,
                                             .failures = pb->indexes[i]->failures,
                                             .retry_due_ns = pb->indexes[i]->retry_due_ns,
                                             .succeeded = pb->indexes[i]->succeeded,
                                             .failed = pb->indexes[i]->failed};
        job->failed_indexes += job->indexes[i].failed;
        if (pb->indexes[i]->task) /* set when the task's record is read */
            u64_map_put(&reader->core->restore_newest, pb->indexes[i]->task, job);
    }
    return 0;
}

static int join_gang(struct reader *reader, struct task *task, obj_id gang)
{
    CHECK(task->job && !task->gang);
    if (!gang)
        return 0;
    size_t place = (uintptr_t)u64_map_get(&reader->core->restore_places, task->uid);
    for (size_t i = 0; i < reader->jobset->gangs.len; i++) {
        struct gang *candidate = reader->jobset->gangs.items[i];
        if (candidate->uid != gang || place == 0 || place > candidate->tasks.len)
            continue;
        if (candidate->tasks.items[place - 1])
            break;
        candidate->tasks.items[place - 1] = task;
        task->gang = candidate;
        return 0;
    }
    return corrupt(reader, "the gang of task", task->uid);
}

static void read_task_flags(struct task *task, uint32_t flags)
{
    bool *const bits[] = {&task->doomed, &task->ready, &task->joined, &task->evicted,   &task->counted,
                          &task->holds,  &task->oom,   &task->fenced, &task->peers_lost};
    for (size_t i = 0; i < sizeof(bits) / sizeof(*bits); i++)
        *bits[i] = flags >> i & 1;
}

/* Reads how the task may continue in another attempt, and why it cannot. */
static void read_ways_on(struct task *task, const Snapshot__Task *pb)
{
    task->parked = pb->parked;
    task->can_rejoin = pb->rejoin & 1;
    task->spare = pb->rejoin >> 1 & 1;
    task->was_spare = pb->was_spare;
    task->keep = (uint8_t)pb->keep;
    task->loss = (uint8_t)pb->loss;
}

static void read_gates(struct task *task, const Snapshot__Task *pb)
{
    CHECK(!task->gates && task->gate_count == 0);
    task->gate_count = (uint32_t)pb->n_gates;
    task->gates = ARENA_ARRAY(&task->arena, struct str, pb->n_gates);
    for (size_t i = 0; i < pb->n_gates; i++)
        task->gates[i] = arena_str(&task->arena, str_from(pb->gates[i]));
}

static bool task_fits(const struct job *job, const Snapshot__Task *pb)
{
    bool spare = pb->index < 0;
    return pb->index >= -SPARES_PER_JOB_MAX && pb->index < (int64_t)job->index_count &&
           pb->state < TASK_STATES && pb->n_times == SNAPSHOT_TASK_TIMES_COUNT &&
           pb->n_saved_before <= SAVED_BEFORE_MAX && pb->keep <= KEEP_TOLD && pb->loss < LOSS_CAUSES &&
           (pb->n_gates == 0 || pb->state == TASK_PENDING || pb->state == TASK_FAILED) &&
           (pb->keep == KEEP_NO || (!pb->parked && pb->state >= TASK_RUNNING && !spare)) &&
           (!spare ||
            (pb->was_spare && !pb->parked && pb->saved_step < 0 && !task_ended((uint8_t)pb->state)));
}

static int read_task(struct reader *reader, const Snapshot__Task *pb)
{
    struct job *job = reader->job;
    uint32_t machine = pb->machine;
    if (!job || !task_fits(job, pb) || !machines_exist(reader, &machine, 1) || !pb->uid ||
        jobs_find_task(&reader->core->jobs, pb->uid))
        return corrupt(reader, "task", pb->uid);
    struct task *task = jobs_restore_task(&reader->core->jobs, job, pb->uid, pb->index, str_from(pb->name));
    read_task_flags(task, pb->flags);
    int64_t *const times[] = {&task->created_ns, &task->placed_ns, &task->start_sent_ns,
                              &task->started_ns, &task->ended_ns,  &task->stopping_since_ns};
    for (size_t i = 0; i < SNAPSHOT_TASK_TIMES_COUNT; i++)
        *times[i] = pb->times[i];
    task->retry = pb->retry;
    task->pod_uid = pb->pod_uid ? pb->pod_uid : pb->uid;
    task->runs_before = pb->runs_before;
    task->failed_runs = pb->failed_runs;
    task->execution = pb->execution;
    task->priority = pb->n_priority == 1 ? pb->priority[0] : job->rjob->job.pod.priority;
    bool said = pb->n_held == 2;
    task->cpu_milli = said ? pb->held[0] : job->rjob->job.pod.cpu_request_milli;
    task->memory_bytes = said ? pb->held[1] : job->rjob->job.pod.memory_request_bytes;
    read_ways_on(task, pb);
    if (pb->attempt > 0)
        task->attempt = pb->attempt - 1;
    task->began_attempt = pb->began_attempt > 0 ? pb->began_attempt - 1 : task->attempt;
    task->state = (uint8_t)pb->state;
    task->end = (uint8_t)pb->end;
    task->machine = machine;
    task->chips = pb->chips;
    task->chips_were = pb->chips_were;
    task->rank = pb->rank;
    task->world = pb->world;
    task->port = (uint16_t)pb->port;
    task->stop_grace_ns = pb->stop_grace_ns;
    task->exit_code = pb->exit_code;
    task->signal = pb->signal;
    task->message = arena_str(&task->arena, str_from(pb->message));
    task->reason = arena_str(&task->arena, str_from(pb->reason));
    read_meta(&task->meta, pb->meta);
    read_gates(task, pb);
    task->saved_step = pb->saved_step;
    task->routes = codec_read_routes(pb->routes);
    task->saved_before_count = (uint32_t)pb->n_saved_before;
    for (size_t i = 0; i < pb->n_saved_before; i++)
        task->saved_before[i] = pb->saved_before[i];
    task->changed_seq = pb->changed_seq;
    struct container_status *containers = NULL;
    if (pb->n_containers > 0 &&
        codec_read_statuses(&task->containers_arena, pb->containers, pb->n_containers, &containers, NULL) < 0)
        return corrupt(reader, "the containers of task", pb->uid);
    containers_restore(task, containers, (uint32_t)pb->n_containers);
    if (task->state == TASK_PLACED && job->rjob->job.pod.uses_config)
        vec_push(&reader->core->jobs.config_waiters, task->uid);
    if (!task_is_spare(task) && u64_map_get(&reader->core->restore_newest, task->uid) == job) {
        job->indexes[pb->index].task = task;
        if (job->indexes[pb->index].made <= task->retry)
            return corrupt(reader, "the index of task", pb->uid);
    }
    if (job->restore_culprit == task->uid)
        job->culprit = task;
    bool living = !task_ended(task->state), placed = living && task->state != TASK_PENDING;
    if ((task->holds && (!placed || machine == MACHINE_NONE || !pb->gang)) ||
        (placed && (machine == MACHINE_NONE || !pb->gang)) || (task->chips && !task->holds) ||
        (task->state == TASK_PENDING && machine != MACHINE_NONE))
        return corrupt(reader, "the place of task", pb->uid);
    return join_gang(reader, task, pb->gang);
}

static void read_labels(struct machine *machine, const Snapshot__Machine *pb)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct labels annotations = snapshot_read_labels(&arena, pb->annotations, pb->n_annotations);
    struct machine_user user = {.labels = snapshot_read_labels(&arena, pb->labels, pb->n_labels),
                                .annotations = annotations,
                                .taints = ARENA_ARRAY(&arena, struct taint, pb->n_taints),
                                .taint_count = pb->n_taints,
                                .managed_fields = str_from(pb->managed_fields)};
    for (size_t i = 0; i < pb->n_taints; i++)
        user.taints[i] = (struct taint){str_from(pb->taints[i]->key), str_from(pb->taints[i]->value),
                                        str_from(pb->taints[i]->effect)};
    machine_set_user(machine, &user);
}

static int read_machine(struct reader *reader, const Snapshot__Machine *pb)
{
    struct core *core = reader->core;
    if (pb->id >= core->cluster.machine_count || pb->state >= MACHINE_STATES || pb->isolation >= ISOLATIONS ||
        pb->isolated_ns > core->now_ns || pb->qualified_ns > core->now_ns || pb->paired_ns > core->now_ns ||
        pb->noticed_ns > core->now_ns || pb->blamed_ns > core->now_ns || pb->n_labels > LABELS_MAX ||
        pb->n_taints > LABELS_MAX || pb->found_cpu_milli < 0 || pb->found_memory_bytes < 0)
        return corrupt(reader, "machine", pb->id);
    struct machine *machine = &core->cluster.machines[pb->id];
    machine->state = (uint8_t)pb->state;
    machine->cordoned = pb->cordoned;
    machine->isolation = (uint8_t)pb->isolation;
    machine->isolated_ns = pb->isolated_ns;
    machine->noticed_ns = pb->noticed_ns;
    machine->leave_ns = pb->leave_ns;
    machine->last_job = pb->last_job;
    machine->last_job_ns = pb->last_job_ns;
    machine->blamed_job = pb->blamed_job;
    machine->blamed_ns = pb->blamed_ns;
    machine->incarnation = pb->incarnation;
    machine->found_plus_1 = pb->found_plus_1;
    machine_found(&core->cluster, machine, pb->found_cpu_milli, pb->found_memory_bytes);
    machine->errands = pb->errands;
    machine->injection = pb->injection;
    machine->qualified_ns = pb->qualified_ns;
    machine->paired_ns = pb->paired_ns;
    machine->qualifying = pb->qualifying;
    machine->state_since_ns = pb->state_since_ns;
    machine->changed_seq = pb->changed_seq;
    machine->uid = pb->uid;
    machine->created_ns = pb->created_ns;
    read_labels(machine, pb);
    for (size_t i = 0; i < pb->n_tasks; i++) {
        struct task *task = jobs_find_task(&core->jobs, pb->tasks[i]);
        if (!task || task->machine != machine->id || task_ended(task->state) ||
            !list_empty(&task->on_machine))
            return corrupt(reader, "a task of machine", pb->id);
        list_append(&core->jobs.machine_tasks[machine->id], &task->on_machine);
    }
    return 0;
}

/* Makes the parts of a step that the restoration of repairs uses. */
static struct step make_step(struct core *core)
{
    return (struct step){.cluster = &core->cluster,
                         .objects = core->objects,
                         .health = core->health,
                         .errands = core->errands,
                         .repairs = core->repairs,
                         .seq = core->seq,
                         .now_ns = core->now_ns};
}

static int read_repair(struct reader *reader, const Snapshot__Record *pb)
{
    struct step step = make_step(reader->core);
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_REPAIR)
        return snapshot_read_repair(&step, pb->repair) ? 0 : corrupt(reader, "repair", pb->repair->uid);
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_REPAIR_TOTALS)
        return snapshot_read_repair_totals(step.repairs, pb->repair_totals)
                   ? 0
                   : corrupt(reader, "the sums of repairs", 0);
    return snapshot_read_maintenance(&step, pb->maintenance)
               ? 0
               : corrupt(reader, "maintenance", pb->maintenance->uid);
}

static int read_health(struct reader *reader, const Snapshot__Record *pb)
{
    struct health *health = reader->core->health;
    int64_t now_ns = reader->core->now_ns;
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_FAULT)
        return snapshot_read_fault(health, now_ns, pb->fault) ? 0 : corrupt(reader, "fault", pb->fault->uid);
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_FAULT_SENDER)
        return snapshot_read_sender(health, now_ns, pb->fault_sender)
                   ? 0
                   : corrupt(reader, "a sender of faults", 0);
    if (pb->kind_case == SNAPSHOT__RECORD__KIND_BREAKER)
        return snapshot_read_breaker(health, now_ns, pb->breaker) ? 0 : corrupt(reader, "the breaker", 0);
    return snapshot_read_lemon(reader->core->lemons, now_ns, pb->lemon)
               ? 0
               : corrupt(reader, "what was counted of a machine", 0);
}

/* Reads slices, switches and cubes; refuses records of a later version. */
static int read_fabric(struct reader *reader, const Snapshot__Record *pb)
{
    struct core *core = reader->core;
    switch (pb->kind_case) {
    case SNAPSHOT__RECORD__KIND_SLICE_TOTALS:
        if (!snapshot_read_slice_totals(core->slices, pb->slice_totals))
            return corrupt(reader, "the totals of slices", 0);
        return 0;
    case SNAPSHOT__RECORD__KIND_OPTICAL_SWITCH:
        if (!snapshot_read_switch(core->slices, core->now_ns, pb->optical_switch))
            return corrupt(reader, "switch", pb->optical_switch->number);
        return 0;
    case SNAPSHOT__RECORD__KIND_CUBE:
        if (!snapshot_read_cube(core->slices, core->now_ns, pb->cube))
            return corrupt(reader, "cube", pb->cube->number);
        return 0;
    case SNAPSHOT__RECORD__KIND_SLICE:
        if (!snapshot_read_slice(core->slices, &core->jobs, &core->cluster, core->now_ns, pb->slice))
            return corrupt(reader, "the slice of jobset", pb->slice->jobset);
        return 0;
    default:
        return error_set(reader->error, ERROR_UNSUPPORTED,
                         "a record of a kind that this version does not know");
    }
}

static int read_record(struct reader *reader, const Snapshot__Record *pb)
{
    if (!reader->has_header && pb->kind_case != SNAPSHOT__RECORD__KIND_HEADER)
        return error_set(reader->error, ERROR_CORRUPT, "it does not begin with a header");
    switch (pb->kind_case) {
    case SNAPSHOT__RECORD__KIND_HEADER:
        return read_header(reader, pb->header);
    case SNAPSHOT__RECORD__KIND_NOTE:
        return read_note(reader, pb->note);
    case SNAPSHOT__RECORD__KIND_JOBSET:
        return read_jobset(reader, pb->jobset);
    case SNAPSHOT__RECORD__KIND_PACE:
        if (!reader->jobset || !snapshot_read_pace(reader->jobset, pb->pace))
            return corrupt(reader, "the pace of jobset", reader->jobset ? reader->jobset->uid : 0);
        return 0;
    case SNAPSHOT__RECORD__KIND_GANG:
        return read_gang(reader, pb->gang);
    case SNAPSHOT__RECORD__KIND_JOB:
        return read_job(reader, pb->job);
    case SNAPSHOT__RECORD__KIND_TASK:
        return read_task(reader, pb->task);
    case SNAPSHOT__RECORD__KIND_MACHINE:
        return read_machine(reader, pb->machine);
    case SNAPSHOT__RECORD__KIND_OBJECT:
        if (!snapshot_read_object(reader->core->objects, reader->core->now_ns, pb->object))
            return corrupt(reader, "object", pb->object->uid);
        return 0;
    case SNAPSHOT__RECORD__KIND_WORKLOAD:
        if (!snapshot_read_workload(reader->core->admit, &reader->core->jobs, reader->core->now_ns,
                                    pb->workload))
            return corrupt(reader, "workload", pb->workload->uid);
        return 0;
    case SNAPSHOT__RECORD__KIND_QUEUE_SHOWN:
        if (!snapshot_read_shown(reader->core->admit, reader->core->now_ns, pb->queue_shown))
            return corrupt(reader, "the status of queue", pb->queue_shown->uid);
        return 0;
    case SNAPSHOT__RECORD__KIND_FAULT:
    case SNAPSHOT__RECORD__KIND_FAULT_SENDER:
    case SNAPSHOT__RECORD__KIND_BREAKER:
    case SNAPSHOT__RECORD__KIND_LEMON:
        return read_health(reader, pb);
    case SNAPSHOT__RECORD__KIND_REPAIR_TOTALS:
    case SNAPSHOT__RECORD__KIND_REPAIR:
    case SNAPSHOT__RECORD__KIND_MAINTENANCE:
        return read_repair(reader, pb);
    case SNAPSHOT__RECORD__KIND_PREFLIGHT:
        if (!reader->jobset || !snapshot_read_preflight(reader->jobset, &reader->core->cluster,
                                                        reader->core->now_ns, pb->preflight))
            return corrupt(reader, "the preflight of gang", pb->preflight->gang);
        return 0;
    case SNAPSHOT__RECORD__KIND_ERRAND:
        if (!snapshot_read_errand(reader->core->errands, &reader->core->cluster, reader->core->now_ns,
                                  pb->errand))
            return corrupt(reader, "errand", pb->errand->uid);
        return 0;
    case SNAPSHOT__RECORD__KIND_HANG:
        if (!snapshot_read_hang(reader->core->hangs, reader->core->now_ns, pb->hang))
            return corrupt(reader, "the watch over jobset", pb->hang->jobset);
        return 0;
    case SNAPSHOT__RECORD__KIND_CHECKPOINT_FOLDER:
        if (!snapshot_read_folder(&reader->core->jobs, pb->checkpoint_folder))
            return corrupt(reader, "a checkpoint folder", 0);
        return 0;
    case SNAPSHOT__RECORD__KIND_RECEIPT:
        if (!snapshot_read_receipt(reader->core->receipts, reader->core->now_ns, pb->receipt))
            return corrupt(reader, "a receipt of", pb->receipt->object);
        return 0;
    default:
        return read_fabric(reader, pb);
    }
}

static bool gangs_are_whole(const struct core *core)
{
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        for (size_t g = 0; g < jobset->gangs.len; g++)
            for (size_t t = 0; t < jobset->gangs.items[g]->tasks.len; t++)
                if (!jobset->gangs.items[g]->tasks.items[t])
                    return false;
    }
    return true;
}

/* Checks that every hidden JobSet still has objects that it made. */
static bool orphans_are_left(const struct core *core)
{
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        if (jobset->hidden && jobset->made == 0 && jobset->old_jobs.len == 0)
            return false;
    }
    return true;
}

static int read_all(struct reader *reader, struct str bytes)
{
    CHECK(reader->core->seq == 0);
    size_t at = 0;
    while (at < bytes.len) {
        const uint8_t *data = (const uint8_t *)bytes.data + at;
        size_t left = bytes.len - at;
        size_t size = left < 4 ? SIZE_MAX : data[0] | data[1] << 8 | data[2] << 16 | (size_t)data[3] << 24;
        if (left < 4 || size > left - 4)
            return error_set(reader->error, ERROR_CORRUPT, "it ends in the middle of a record at byte %zu",
                             at);
        Snapshot__Record *pb = snapshot__record__unpack(NULL, size, data + 4);
        if (!pb)
            return error_set(reader->error, ERROR_CORRUPT, "the bytes at %zu are not a record", at);
        int rc = read_record(reader, pb);
        snapshot__record__free_unpacked(pb, NULL);
        if (rc < 0)
            return error_wrap(reader->error, "the record at byte %zu", at);
        at += 4 + size;
    }
    if (!reader->has_header || !gangs_are_whole(reader->core) || !orphans_are_left(reader->core))
        return error_set(reader->error, ERROR_CORRUPT, "it is not whole");
    return 0;
}

int core_snapshot_read(struct core *core, struct str bytes, struct error *error)
{
    CHECK(core->seq == 0);
    struct error own = {0};
    struct reader reader = {.core = core, .error = error ? error : &own};
    int rc = read_all(&reader, bytes);
    u64_map_done(&core->restore_places);
    u64_map_done(&core->restore_newest);
    if (rc == 0 && !jobs_restored(&core->jobs, &core->cluster))
        rc = error_set(reader.error, ERROR_CORRUPT, "its tasks do not fit their machines");
    if (rc == 0)
        jobs_set_timers(&core->jobs);
    if (rc == 0 && !preflight_restored(&core->jobs, &core->cluster, core->errands))
        rc = error_set(reader.error, ERROR_CORRUPT, "its preflights do not fit");
    if (rc == 0) {
        struct step step = make_step(core);
        repairs_restored(&step);
    }
    if (rc == 0 && !health_restored(core->health, &core->cluster))
        rc = error_set(reader.error, ERROR_CORRUPT, "its faults do not fit");
    if (rc == 0 && !admit_restore_gangs(core->admit))
        rc = error_set(reader.error, ERROR_CORRUPT, "its pod groups do not fit");
    if (rc == 0 && !snapshot_ledger_restored(core))
        rc = error_set(reader.error, ERROR_CORRUPT, "its ledger does not fit");
    if (rc == 0) {
        capacity_forget(core->jobs.capacity);
        core_read_fault_table(core);
        core_leaving_restored(core);
        core_collect_restored(core->objects, &core->jobs);
        core_admit_restored(core);
    }
    return rc;
}
