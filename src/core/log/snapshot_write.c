/* snapshot_write.c - the state as records (proto/snapshot.proto), in one fixed order. */
#include "core/internal.h"

#include "base/hash.h"
#include "doc/json.h"
#include "core/agent/codec_pb.h"
#include "core/log/record.h"
#include "core/log/snapshot.h"

struct writer {
    struct arena arena; /* of the present record */
    struct buf *out;    /* for a digest: only the present record */
    bool digests;
    uint64_t record_hash, digest; /* of the last record; of all so far */
};

static uint64_t digest_join(uint64_t digest, uint64_t record_hash)
{
    return hash_mix(digest ^ record_hash);
}

static void digest_record(struct writer *writer)
{
    writer->record_hash = hash_words(0, writer->out->data, writer->out->len);
    writer->digest = digest_join(writer->digest, writer->record_hash);
    buf_clear(writer->out);
}

static void put(struct writer *writer, Snapshot__Record *record)
{
    CHECK(record->kind_case != SNAPSHOT__RECORD__KIND__NOT_SET);
    size_t size = snapshot__record__get_packed_size(record);
    CHECK(size <= UINT32_MAX);
    uint8_t length[4] = {(uint8_t)size, (uint8_t)(size >> 8), (uint8_t)(size >> 16), (uint8_t)(size >> 24)};
    if (!writer->digests)
        buf_add(writer->out, length, sizeof(length));
    buf_reserve(writer->out, size);
    size_t packed = snapshot__record__pack(record, (uint8_t *)writer->out->data + writer->out->len);
    CHECK(packed == size);
    writer->out->len += packed;
    writer->out->data[writer->out->len] = 0;
    if (writer->digests)
        digest_record(writer);
    arena_clear(&writer->arena);
}

static void write_header(struct writer *writer, const struct core *core)
{
    CHECK(core->first_epoch <= core->epoch && core->level <= this_release.level);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Header header = SNAPSHOT__HEADER__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_HEADER;
    record.header = &header;
    header.version = SNAPSHOT_VERSION;
    header.seq = core->seq;
    header.epoch = core->epoch;
    header.first_epoch = core->first_epoch;
    header.uids_ahead = core->uids_ahead;
    if (core->level >= LEVEL_RECEIPTS)
        header.receipts_since_ns = receipts_since(core->receipts);
    header.hearing_until_ns = core->hearing.until_ns;
    header.hearing_heard = core->hearing.heard;
    header.n_hearing_strangers = core->hearing.strangers.len;
    header.hearing_strangers = core->hearing.strangers.items; /* only read */
    header.boot_ns = core->outage.boot_ns;
    header.paused_ns = core->outage.paused_ns;
    header.identity = core->identity;
    header.secret.data = (uint8_t *)(uintptr_t)core->secret; /* only read */
    header.secret.len = core->has_secret ? sizeof core->secret : 0;
    header.hold_number = core->hold.number;
    header.hold_until_ns = core->hold.until_ns;
    header.hold_owed_ns = core->hold.owed_ns;
    header.level = core->level;
    header.now_ns = core->now_ns;
    header.cluster = codec_text(&writer->arena, buf_str(&core->cluster_json));
    snapshot_write_ledger(&writer->arena, &core->ledger, &header);
    header.first_note = core->notes.first;
    header.jobsets_completed = core->jobs.completed_total;
    header.jobsets_failed = core->jobs.failed_total;
    put(writer, &record);
}

static void write_note(struct writer *writer, const struct note *note)
{
    CHECK(note->regarding >= OBJECT_JOBSET && note->regarding < OBJECT_KINDS);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Note pb = SNAPSHOT__NOTE__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_NOTE;
    record.note = &pb;
    pb.uid = note->uid;
    pb.warning = note->warning;
    pb.reason = codec_text(&writer->arena, note->reason);
    pb.message = codec_text(&writer->arena, note->message);
    pb.regarding = note->regarding;
    pb.namespace_ = codec_text(&writer->arena, note->namespace_);
    pb.name = codec_text(&writer->arena, note->name);
    pb.regarding_uid = note->regarding_uid;
    pb.first_ns = note->first_ns;
    pb.last_ns = note->last_ns;
    pb.count = note->count;
    pb.changed_seq = note->changed_seq;
    put(writer, &record);
}

/* Adds a note to the digest. There are thousands of notes, and most do not change, so the hash of each is
 * cached. */
static void digest_note(struct writer *writer, const struct note_ring *notes, uint64_t slot)
{
    CHECK(slot >= notes->first && slot < notes->next);
    uint64_t *kept = &notes->hashes[slot % EVENT_OBJECTS_MAX];
    if (*kept) {
        writer->digest = digest_join(writer->digest, *kept);
        return;
    }
    write_note(writer, note_at(notes, slot));
    *kept = writer->record_hash;
}

static void write_conditions(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb)
{
    pb->n_conditions = CONDITION_KINDS;
    pb->conditions = ARENA_ARRAY(arena, Snapshot__Condition *, CONDITION_KINDS);
    for (int kind = 0; kind < CONDITION_KINDS; kind++) {
        const struct condition *condition = &jobset->conditions[kind];
        Snapshot__Condition *item = pb->conditions[kind] = ARENA_NEW(arena, Snapshot__Condition);
        snapshot__condition__init(item);
        item->present = condition->present;
        item->status = condition->status;
        item->reason = codec_text(arena, str_from(condition->reason));
        item->message = codec_text(arena, condition->message);
        item->changed_ns = condition->changed_ns;
    }
}

static void write_restarts(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb)
{
    size_t count = restarts_kept(&jobset->history);
    pb->record_count = jobset->history.record_count;
    pb->n_records = count;
    pb->records = ARENA_ARRAY(arena, Snapshot__Restart *, count);
    for (size_t i = 0; i < count; i++) {
        const struct restart_record *record = &jobset->history.records[i];
        Snapshot__Restart *item = pb->records[i] = ARENA_NEW(arena, Snapshot__Restart);
        snapshot__restart__init(item);
        item->attempt = record->attempt;
        item->cause = codec_text(arena, str_from(record->cause));
        item->machine = codec_text(arena, str_from(record->machine));
        item->detail = codec_text(arena, str_from(record->detail));
        item->fault_ns = record->fault_ns;
        item->evidence_ns = record->evidence_ns;
        item->started_ns = record->started_ns;
        item->stepped_ns = record->stepped_ns;
        item->step_at_fault = record->step_at_fault;
        item->step_resumed_from = record->step_resumed_from;
        item->rung = record->rung;
        item->passed = codec_text(arena, str_from(record->passed));
        item->redone_us = record->redone_us;
        item->cause_plus_1 = record->cause_plus_1;
        item->size = record->size;
        item->assumed_us = record->assumed_us;
    }
}

static Snapshot__Progress *write_progress(struct arena *arena, const struct progress *progress)
{
    CHECK(progress->metric_count <= METRICS_MAX && progress->source < STEP_SOURCES);
    Snapshot__Progress *pb = ARENA_NEW(arena, Snapshot__Progress);
    snapshot__progress__init(pb);
    pb->attempt = progress->attempt;
    pb->step = progress->step;
    pb->total = progress->total;
    pb->source = progress->source;
    pb->step_ns = progress->step_ns;
    pb->base_step = progress->base_step;
    pb->base_ns = progress->base_ns;
    pb->n_metrics = progress->metric_count;
    pb->metrics = ARENA_ARRAY(arena, Wire__StepMetric *, progress->metric_count);
    for (size_t i = 0; i < progress->metric_count; i++) {
        pb->metrics[i] = ARENA_NEW(arena, Wire__StepMetric);
        wire__step_metric__init(pb->metrics[i]);
        pb->metrics[i]->name = codec_text(arena, progress->metrics[i].name);
        pb->metrics[i]->micro = progress->metrics[i].micro;
    }
    return pb;
}

static void write_jobset_lists(struct arena *arena, const struct jobset *jobset, Snapshot__Jobset *pb)
{
    CHECK(jobset->spec.rjob_count <= REPLICATED_JOBS_MAX);
    _Static_assert(sizeof(struct rjob_status) == 5 * sizeof(int32_t), "five numbers a replicated job");
    pb->n_rjob_status = 5 * jobset->spec.rjob_count;
    pb->rjob_status = ARENA_ARRAY(arena, int32_t, pb->n_rjob_status);
    mem_copy(pb->rjob_status, jobset->rjob_status, pb->n_rjob_status * sizeof(int32_t));
    pb->n_job_attempts = jobset->job_count;
    pb->job_attempts = jobset->job_attempts;
    pb->n_job_attempts_counted = jobset->job_count;
    pb->job_attempts_counted = jobset->job_attempts_counted;
    pb->n_widths = jobset->spec.rjob_count;
    pb->widths = jobset->widths;
    pb->n_suspects = jobset->history.suspect_count;
    pb->suspects = jobset->history.suspects;
    pb->n_last_machines = jobset->slots.count;
    pb->last_machines = jobset->slots.last_machines;
}

static void write_jobset(struct writer *writer, const struct jobset *jobset)
{
    CHECK(jobset->uid && !jobset->entry.gone && !jobset->entry.dirty);
    struct buf json BUF_CLEANUP = {0}, status BUF_CLEANUP = {0};
    json_write(&json, jobset->document);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Jobset pb = SNAPSHOT__JOBSET__INIT;
    Snapshot__Runs runs = SNAPSHOT__RUNS__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_JOBSET;
    record.jobset = &pb;
    pb.uid = jobset->uid;
    pb.document = json.data;
    pb.generation = jobset->generation;
    pb.created_ns = jobset->created_ns;
    pb.deleted_ns = jobset->deleted_ns;
    pb.changed_seq = jobset->changed_seq;
    write_conditions(&writer->arena, jobset, &pb);
    pb.restarts = jobset->attempt - jobset->first_attempt;
    pb.first_attempt = jobset->first_attempt;
    pb.restarts_counted = jobset->restarts_counted + jobset->recovery.in_place_counted;
    pb.terminal_state = jobset->terminal_state;
    write_jobset_lists(&writer->arena, jobset, &pb);
    pb.first_queued_ns = jobset->first_queued_ns;
    pb.progress = write_progress(&writer->arena, &jobset->progress);
    pb.committed_step = jobset->checkpoint.committed_step;
    pb.committed_attempt = jobset->checkpoint.committed_attempt;
    pb.committed_ns = jobset->checkpoint.committed_ns;
    pb.fallback_step_plus_1 = jobset->checkpoint.fallback_step + 1;
    pb.checkpoints = jobset->checkpoint.count;
    pb.closed = snapshot_write_account(&writer->arena, &jobset->usage.closed);
    if (jobset->foreign.status) {
        json_write(&status, jobset->foreign.status);
        pb.foreign_status = status.data;
    }
    pb.shown_ns = jobset->usage.shown_ns;
    if (jobset->usage.shown_ns)
        pb.shown = snapshot_write_account(&writer->arena, &jobset->usage.shown);
    write_restarts(&writer->arena, jobset, &pb);
    snapshot_write_ends(&writer->arena, jobset, &pb);
    pb.finished_ns = jobset->finished_ns;
    snapshot_write_failure(&writer->arena, &jobset->usage, &pb);
    pb.loose_tasks = jobset->work.loose_tasks;
    pb.failures_wait = jobset->failures_wait;
    runs.executions = jobset->executions;
    runs.hidden = jobset->hidden;
    pb.runs = &runs;
    snapshot_write_recovery(&writer->arena, jobset, &pb);
    snapshot_write_terms(&writer->arena, jobset, &pb);
    put(writer, &record);
}

static void write_gang(struct writer *writer, const struct gang *gang)
{
    CHECK(gang->state < GANG_STATES && gang->account.owner < LEDGER_OWNERS);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Gang pb = SNAPSHOT__GANG__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_GANG;
    record.gang = &pb;
    CHECK(!gang->thinned && gang->tasks.len > 0); /* between two steps */
    pb.uid = gang->uid;
    pb.attempt = gang->attempt;
    pb.state = gang->state;
    pb.replaces = gang->replaces;
    pb.why = codec_text(&writer->arena, gang->why);
    pb.why_since_ns = gang->why_since_ns;
    pb.why_changes = gang->why_changes;
    pb.why_due = gang->why_due;
    pb.waiting = gang->waiting;
    pb.alive = gang->alive;
    pb.account = snapshot_write_account(&writer->arena, &gang->account);
    pb.queued_ns = gang->queued_ns;
    pb.placed_ns = gang->placed_ns;
    pb.running_ns = gang->running_ns;
    pb.priority = gang->queued.priority;
    pb.submitted_ns = gang->queued.submitted_ns;
    pb.head_since_ns = gang->queued.head_since_ns;
    pb.min_count = gang->min_count;
    pb.mixed_plus_1 = gang->mixed_plus_1;
    pb.told = gang->told;
    pb.n_tasks = gang->tasks.len;
    pb.tasks = ARENA_ARRAY(&writer->arena, uint64_t, gang->tasks.len);
    for (size_t i = 0; i < gang->tasks.len; i++)
        pb.tasks[i] = gang->tasks.items[i]->uid;
    put(writer, &record);
}

static void write_indexes(struct arena *arena, const struct job *job, Snapshot__Job *pb)
{
    CHECK(job->indexes || job->index_count == 0);
    pb->n_indexes = job->index_count;
    pb->indexes = ARENA_ARRAY(arena, Snapshot__Index *, job->index_count);
    Snapshot__Index *items = ARENA_ARRAY(arena, Snapshot__Index, job->index_count);
    for (uint32_t i = 0; i < job->index_count; i++) {
        snapshot__index__init(&items[i]);
        items[i].task = job->indexes[i].task ? job->indexes[i].task->uid : 0;
        items[i].made = job->indexes[i].made;
        items[i].failures = job->indexes[i].failures;
        items[i].retry_due_ns = job->indexes[i].retry_due_ns;
        items[i].succeeded = job->indexes[i].succeeded;
        items[i].failed = job->indexes[i].failed;
        pb->indexes[i] = &items[i];
    }
}

static Snapshot__Meta *write_meta(struct arena *arena, const struct user_meta *meta)
{
    if (!meta)
        return NULL;
    Snapshot__Meta *pb = ARENA_NEW(arena, Snapshot__Meta);
    snapshot__meta__init(pb);
    pb->labels = snapshot_write_labels(arena, &meta->labels, &pb->n_labels);
    pb->annotations = snapshot_write_labels(arena, &meta->annotations, &pb->n_annotations);
    return pb;
}

static void write_task(struct writer *writer, const struct task *task)
{
    CHECK(task->state < TASK_STATES && !task_is_dead(task));
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Task pb = SNAPSHOT__TASK__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_TASK;
    record.task = &pb;
    const bool flags[] = SNAPSHOT_TASK_FLAGS(task);
    for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++)
        pb.flags |= (uint32_t)flags[i] << i;
    int64_t times[] = SNAPSHOT_TASK_TIMES(task);
    _Static_assert(sizeof flags / sizeof *flags <= 32, "a bit for each");
    _Static_assert(sizeof times / sizeof *times == SNAPSHOT_TASK_TIMES_COUNT, "what the reader asks for");
    pb.uid = task->uid;
    pb.index = task->index;
    pb.retry = task->retry;
    pb.state = task->state;
    pb.end = task->end;
    pb.machine = task->machine;
    pb.chips = task->chips;
    pb.chips_were = task->chips_were;
    pb.rank = task->rank;
    pb.world = task->world;
    pb.port = task->port;
    pb.n_times = sizeof(times) / sizeof(*times);
    pb.times = times;
    pb.stop_grace_ns = task->stop_grace_ns;
    pb.exit_code = task->exit_code;
    pb.signal = task->signal;
    pb.message = codec_text(&writer->arena, task->message);
    pb.name = codec_text(&writer->arena, task->name);
    pb.pod_uid = task->pod_uid;
    pb.runs_before = task->runs_before;
    pb.failed_runs = task->failed_runs;
    pb.execution = task->execution;
    int32_t priority = task->priority;
    pb.n_priority = 1;
    pb.priority = &priority;
    int64_t held[] = {task->cpu_milli, task->memory_bytes};
    pb.n_held = task->holds ? 2 : 0;
    pb.held = held;
    pb.parked = task->parked;
    pb.rejoin = (uint32_t)task->can_rejoin | (uint32_t)task->spare << 1;
    pb.was_spare = task->was_spare;
    pb.keep = task->keep;
    pb.loss = task->loss;
    pb.reason = codec_text(&writer->arena, task->reason);
    pb.attempt = task->attempt == task->job->jobset->attempt ? 0 : task->attempt + 1;
    pb.began_attempt = task->began_attempt == task->attempt ? 0 : task->began_attempt + 1;
    pb.saved_step = task->saved_step;
    pb.routes = codec_write_routes(&writer->arena, &task->routes);
    pb.n_saved_before = task->saved_before_count;
    pb.saved_before = (int64_t *)task->saved_before;
    pb.n_containers = task->container_count;
    if (task->container_count > 0)
        pb.containers = codec_write_statuses(&writer->arena, task->containers, task->container_count);
    pb.changed_seq = task->changed_seq;
    pb.gang = task->gang ? task->gang->uid : 0;
    pb.meta = write_meta(&writer->arena, task->meta);
    pb.n_gates = task->gate_count;
    pb.gates = ARENA_ARRAY(&writer->arena, char *, task->gate_count);
    for (uint32_t i = 0; i < task->gate_count; i++)
        pb.gates[i] = codec_text(&writer->arena, task->gates[i]);
    put(writer, &record);
}

static void write_job(struct writer *writer, const struct job *job, bool current)
{
    CHECK(job->state < JOB_STATES && !job->gone && current == !job->doomed);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Job pb = SNAPSHOT__JOB__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_JOB;
    record.job = &pb;
    pb.uid = job->uid;
    pb.position = job->global_index;
    pb.current = current;
    pb.attempt = job->attempt;
    pb.state = job->state;
    pb.doomed = job->doomed;
    pb.doomed_ns = job->doomed_ns;
    write_indexes(&writer->arena, job, &pb);
    pb.active = job->active;
    pb.ready = job->ready;
    pb.succeeded = job->succeeded;
    pb.failed = job->failed;
    pb.reason = codec_text(&writer->arena, str_from(job->reason));
    pb.message = codec_text(&writer->arena, job->message);
    pb.culprit = job->culprit ? job->culprit->uid : 0;
    pb.created_ns = job->created_ns;
    pb.start_ns = job->start_ns;
    pb.finished_ns = job->finished_ns;
    pb.retry_due_ns = job->retry_due_ns;
    pb.success_rule = job->success_rule + 1;
    pb.job_attempt = job->job_attempt;
    pb.execution = job->execution;
    pb.spare_failures = job->spare_failures;
    pb.spare_due_ns = job->spare_due_ns;
    pb.meta = write_meta(&writer->arena, job->meta);
    pb.changed_seq = job->changed_seq;
    pb.dirty = job->dirty;
    put(writer, &record);
    for (size_t t = 0; t < job->tasks.len; t++)
        write_task(writer, job->tasks.items[t]);
    for (size_t s = 0; s < job->spares.len; s++)
        write_task(writer, job->spares.items[s]);
}

static void write_labels(struct arena *arena, const struct machine *machine, Snapshot__Machine *pb)
{
    pb->n_taints = machine->taint_count;
    pb->taints = ARENA_ARRAY(arena, Snapshot__Label *, machine->taint_count);
    for (size_t i = 0; i < machine->taint_count; i++) {
        pb->taints[i] = ARENA_NEW(arena, Snapshot__Label);
        snapshot__label__init(pb->taints[i]);
        pb->taints[i]->key = codec_text(arena, machine->taints[i].key);
        pb->taints[i]->value = codec_text(arena, machine->taints[i].value);
        pb->taints[i]->effect = codec_text(arena, machine->taints[i].effect);
    }
    pb->labels = snapshot_write_labels(arena, &machine->user_labels, &pb->n_labels);
    pb->annotations = snapshot_write_labels(arena, &machine->annotations, &pb->n_annotations);
    pb->managed_fields = codec_text(arena, machine->managed_fields);
}

static void write_machine(struct writer *writer, const struct core *core, const struct machine *machine)
{
    CHECK(machine->id < core->cluster.machine_count);
    CHECK(machine->state < MACHINE_STATES && machine->isolation < ISOLATIONS);
    Snapshot__Record record = SNAPSHOT__RECORD__INIT;
    Snapshot__Machine pb = SNAPSHOT__MACHINE__INIT;
    record.kind_case = SNAPSHOT__RECORD__KIND_MACHINE;
    record.machine = &pb;
    pb.id = machine->id;
    pb.state = machine->state;
    pb.cordoned = machine->cordoned;
    pb.isolation = machine->isolation;
    pb.isolated_ns = machine->isolated_ns;
    pb.noticed_ns = machine->noticed_ns;
    pb.leave_ns = machine->leave_ns;
    pb.last_job = machine->last_job;
    pb.last_job_ns = machine->last_job_ns;
    pb.blamed_job = machine->blamed_job;
    pb.blamed_ns = machine->blamed_ns;
    pb.incarnation = machine->incarnation;
    pb.found_plus_1 = machine->found_plus_1;
    pb.found_cpu_milli = machine->found_cpu_milli;
    pb.found_memory_bytes = machine->found_memory_bytes;
    pb.errands = machine->errands;
    pb.injection = machine->injection;
    pb.qualified_ns = machine->qualified_ns;
    pb.paired_ns = machine->paired_ns;
    pb.qualifying = machine->qualifying;
    pb.state_since_ns = machine->state_since_ns;
    pb.changed_seq = machine->changed_seq;
    pb.uid = machine->uid;
    pb.created_ns = machine->created_ns;
    write_labels(&writer->arena, machine, &pb);
    struct list_node *head = &core->jobs.machine_tasks[machine->id];
    list_for_each(node, head) pb.n_tasks++;
    pb.tasks = ARENA_ARRAY(&writer->arena, uint64_t, pb.n_tasks);
    size_t at = 0;
    list_for_each(node, head) pb.tasks[at++] = container_of(node, struct task, on_machine)->uid;
    CHECK(at == pb.n_tasks);
    put(writer, &record);
}

static void put_record(void *context, Snapshot__Record *record)
{
    put(context, record);
}

static void write_all(struct writer *writer, const struct core *core)
{
    CHECK(core->jobs.incidents == 0);
    write_header(writer, core);
    for (uint64_t slot = core->notes.first; slot < core->notes.next; slot++) {
        if (writer->digests)
            digest_note(writer, &core->notes, slot);
        else
            write_note(writer, note_at(&core->notes, slot));
    }
    snapshot_write_objects(core->objects, put_record, writer);
    for (size_t i = 0; i < core->jobs.jobsets.len; i++) {
        const struct jobset *jobset = core->jobs.jobsets.items[i];
        write_jobset(writer, jobset);
        snapshot_write_pace(jobset, put_record, writer);
        for (size_t g = 0; g < jobset->gangs.len; g++) {
            write_gang(writer, jobset->gangs.items[g]);
            snapshot_write_preflight(jobset->gangs.items[g], put_record, writer);
        }
        for (size_t j = 0; j < jobset->old_jobs.len; j++)
            write_job(writer, jobset->old_jobs.items[j], false);
        for (uint32_t j = 0; j < jobset->job_count; j++)
            if (jobset->jobs[j])
                write_job(writer, jobset->jobs[j], true);
    }
    for (size_t i = 0; i < core->cluster.machine_count; i++)
        write_machine(writer, core, &core->cluster.machines[i]);
    snapshot_write_admit(core->admit, put_record, writer);
    snapshot_write_health(core->health, put_record, writer);
    snapshot_write_lemons(core->lemons, put_record, writer);
    snapshot_write_errands(core->errands, put_record, writer);
    snapshot_write_hangs(core->hangs, put_record, writer);
    snapshot_write_repairs(core->repairs, put_record, writer);
    snapshot_write_slices(core->slices, put_record, writer);
    snapshot_write_folders(&core->jobs, put_record, writer);
    snapshot_write_receipts(core->receipts, put_record, writer);
    arena_done(&writer->arena);
}

void core_snapshot_write(const struct core *core, struct buf *out)
{
    struct writer writer = {.out = out};
    write_all(&writer, core);
}

uint64_t core_digest(const struct core *core)
{
    struct buf record BUF_CLEANUP = {0};
    struct writer writer = {.out = &record, .digests = true};
    write_all(&writer, core);
    return writer.digest;
}

uint64_t core_snapshot_digest(struct str bytes)
{
    uint64_t digest = 0;
    while (bytes.len) {
        const uint8_t *length = (const uint8_t *)bytes.data;
        CHECK(bytes.len >= 4);
        size_t size = length[0] | (size_t)length[1] << 8 | (size_t)length[2] << 16 | (size_t)length[3] << 24;
        CHECK(size <= bytes.len - 4);
        digest = digest_join(digest, hash_words(0, bytes.data + 4, size));
        bytes = (struct str){bytes.data + 4 + size, bytes.len - 4 - size};
    }
    return digest;
}
