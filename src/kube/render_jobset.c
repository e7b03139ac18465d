#include <stdio.h>
#include <stdlib.h>

#include "core/health/attribute.h"
#include "core/hang/hang.h"
#include "core/job/folder.h"
#include "core/gang/trial.h"
#include "kube/render.h"

bool render_condition_holds(const struct jobset *jobset, enum condition_kind kind)
{
    return jobset->conditions[kind].present && jobset->conditions[kind].status;
}

struct str render_jobset_why(const struct jobset *jobset)
{
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        const struct gang *gang = jobset->gangs.items[i];
        if ((gang->state == GANG_QUEUED || gang->preflight) && gang->why.len && !gang_is_spare(gang))
            return gang->why;
    }
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        const struct gang *gang = jobset->gangs.items[i];
        for (size_t t = 0; t < gang->tasks.len; t++) {
            const struct task *task = gang->tasks.items[t];
            if (task->container_count && task->containers[0].phase == CONTAINER_WAITING &&
                task->containers[0].message.len)
                return task->containers[0].message;
        }
    }
    return (struct str){0};
}

const char *render_jobset_state(const struct jobset *jobset)
{
    if (render_condition_holds(jobset, CONDITION_COMPLETED))
        return "Completed";
    if (render_condition_holds(jobset, CONDITION_FAILED))
        return "Failed";
    if (jobset->deleted_ns)
        return "Terminating";
    if (jobset_rests(jobset))
        return "Suspended";
    size_t waiting = 0, starting = 0, running = 0;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        const struct gang *gang = jobset->gangs.items[i];
        if (gang_is_spare(gang) || (gang_is_away(gang) && !jobset_parks(jobset)))
            continue;
        waiting += gang->state == GANG_QUEUED;
        starting += gang->state == GANG_PLACED;
        running += gang->state == GANG_RUNNING && gang->attempt == jobset->attempt;
    }
    bool again = jobset->attempt > jobset->first_attempt && running == 0;
    if (waiting)
        return again ? "Restarting" : "Queued";
    if (starting)
        return again ? "Restarting" : "Starting";
    return running ? "Running" : again ? "Restarting" : "Starting";
}

static void put_conditions(struct render *render, const struct jobset *jobset)
{
    bool any = false;
    for (int kind = 0; kind < CONDITION_KINDS; kind++) {
        const struct condition *condition = &jobset->conditions[kind];
        if (!condition->present)
            continue;
        if (!any) {
            json_key(&render->out, "conditions");
            json_begin_array(&render->out);
            any = true;
        }
        render_condition(render, condition_name(kind), condition->status ? "True" : "False",
                         condition->changed_ns, condition->reason, condition->message);
    }
    if (any)
        json_end_array(&render->out);
}

static int compare_names_down(const void *a, const void *b, void *context)
{
    const struct jobset *jobset = context;
    return str_compare(jobset->spec.rjobs[*(const uint32_t *)b].name,
                       jobset->spec.rjobs[*(const uint32_t *)a].name);
}

/* Writes a number for each Job of the replicated job; nothing before the first restart. */
static void put_job_restarts(struct render *render, const char *key, const struct jobset *jobset,
                             uint32_t rjob, const int32_t *restarts)
{
    uint32_t first = 0, used = 0;
    for (uint32_t r = 0; r < rjob; r++)
        first += (uint32_t)jobset->spec.rjobs[r].replicas;
    for (uint32_t i = 0; i < (uint32_t)jobset->spec.rjobs[rjob].replicas; i++)
        used += restarts[first + i] != 0;
    if (used == 0)
        return;
    json_key(&render->out, key);
    json_begin_array(&render->out);
    for (uint32_t i = 0; i < (uint32_t)jobset->spec.rjobs[rjob].replicas; i++)
        json_put_int(&render->out, restarts[first + i]);
    json_end_array(&render->out);
}

/* Writes the replicated jobs' status sorted by name, descending, as JobSet's controller stores it. */
static void put_rjob_status(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    size_t count = jobset->spec.rjob_count;
    if (count == 0 || !jobset->rjob_status)
        return;
    uint32_t order[REPLICATED_JOBS_MAX];
    CHECK(count <= REPLICATED_JOBS_MAX);
    for (size_t i = 0; i < count; i++)
        order[i] = (uint32_t)i;
    qsort_r(order, count, sizeof *order, compare_names_down, (void *)jobset);
    json_key(out, "replicatedJobsStatus");
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        const struct rjob_status *status = &jobset->rjob_status[order[i]];
        json_begin_object(out);
        json_pair_str(out, "name", jobset->spec.rjobs[order[i]].name);
        json_pair_int(out, "ready", status->ready);
        json_pair_int(out, "succeeded", status->succeeded);
        json_pair_int(out, "failed", status->failed);
        json_pair_int(out, "active", status->active);
        json_pair_int(out, "suspended", status->suspended);
        if (jobset_restarts_jobs(&jobset->spec)) {
            put_job_restarts(render, "jobRestarts", jobset, order[i], jobset->job_attempts);
            put_job_restarts(render, "jobRestartsCountTowardsMax", jobset, order[i],
                             jobset->job_attempts_counted);
        }
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_committed(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    struct arena arena ARENA_CLEANUP = {0};
    struct str dir = core_cluster(render->core)->checkpoint_dir, folder = jobset_folder(&arena, jobset);
    if (jobset->checkpoint.committed_step < 0)
        return;
    json_pair_int(out, "checkpointStep", jobset->checkpoint.committed_step);
    json_pair_int(out, "checkpointAttempt", jobset->checkpoint.committed_attempt);
    json_pair_int(out, "checkpoints", (int64_t)jobset->checkpoint.count);
    json_pair_str(out, "checkpointFolder", folder);
    if (dir.len)
        json_pair_str(out, "checkpointDir",
                      arena_printf(&arena, STR_FORMAT "/" STR_FORMAT "/" STR_FORMAT, STR_ARG(dir),
                                   STR_ARG(jobset->namespace_), STR_ARG(folder)));
}

static void put_steps(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    const struct progress *progress = &jobset->progress;
    if (progress->step >= 0) {
        json_pair_int(out, "step", progress->step);
        if (progress->total > 0)
            json_pair_int(out, "totalSteps", progress->total);
        render_micro_time(render, "stepTime", progress->step_ns);
    }
    int64_t rate_milli = progress_rate_milli(progress);
    if (rate_milli > 0) {
        json_key(out, "stepsPerSecond");
        json_put_fixed(out, rate_milli, 3);
    }
    if (progress->metric_count) {
        json_key(out, "metrics");
        json_begin_object(out);
        for (size_t i = 0; i < progress->metric_count; i++) {
            json_key(out, progress->metric_names[i]);
            json_put_fixed(out, progress->metrics[i].micro, 6);
        }
        json_end_object(out);
    }
    put_committed(render, jobset);
}

static void put_signature(struct json_writer *out, const struct end_signature *signature)
{
    json_pair_text(out, "machine", signature->machine);
    json_pair_int(out, "rank", signature->rank);
    json_pair_int(out, "tasks", signature->tasks);
    if (signature->line[0])
        json_pair_text(out, "evidence", signature->line);
}

static void put_signatures(struct json_writer *out, const struct attribution *found)
{
    if (found->signature_count == 0)
        return;
    json_key(out, "signatures");
    json_begin_array(out);
    for (size_t i = 0; i < found->signature_count; i++) {
        json_begin_object(out);
        json_pair_text(out, "kind", signature_name(found->signatures[i]->kind));
        put_signature(out, found->signatures[i]);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_faults(struct json_writer *out, const char *key, const struct end_fault *const *faults,
                       size_t count)
{
    if (count == 0)
        return;
    json_key(out, key);
    json_begin_array(out);
    for (size_t i = 0; i < count; i++) {
        json_begin_object(out);
        json_pair_text(out, "cause", faults[i]->code);
        if (faults[i]->name[0])
            json_pair_text(out, "fault", faults[i]->name);
        json_pair_text(out, "machine", faults[i]->machine);
        if (faults[i]->user[0])
            json_pair_text(out, "user", faults[i]->user);
        json_pair_text(out, "evidence", faults[i]->evidence);
        json_end_object(out);
    }
    json_end_array(out);
}

static void put_primary(struct json_writer *out, const struct end_fault *primary)
{
    if (primary->name[0])
        json_pair_text(out, "fault", primary->name);
    if (primary->machine[0])
        json_pair_text(out, "machine", primary->machine);
    if (primary->user[0])
        json_pair_text(out, "user", primary->user);
    json_pair_text(out, "evidence", primary->evidence);
}

/* Writes the attribution, only for a client that requests this object alone. */
static void put_attribution(struct render *render, const struct end_faults *faults,
                            const struct end_signatures *signatures, struct str machine, int64_t end_ns)
{
    struct json_writer *out = &render->out;
    struct attribution found;
    struct buf cause BUF_CLEANUP = {0};
    if (!render->fresh)
        return;
    attribute(faults, signatures, machine, end_ns, &found);
    attribution_cause(&found, &cause);
    json_key(out, "attribution");
    json_begin_object(out);
    json_pair_text(out, "domain", fault_domain_names[found.domain]);
    json_pair_str(out, "cause", buf_str(&cause));
    if (found.primary)
        put_primary(out, found.primary);
    else if (found.signature)
        put_signature(out, found.signature);
    put_faults(out, "supporting", found.supporting, found.supporting_count);
    put_faults(out, "later", found.later, found.later_count);
    put_signatures(out, &found);
    json_end_object(out);
}

/* Writes a restart. `number` is its place among all restarts of the JobSet, from 1. */
static void put_restart(struct render *render, const struct restart_record *record, uint32_t number)
{
    struct json_writer *out = &render->out;
    json_begin_object(out);
    json_pair_int(out, "number", number);
    json_pair_int(out, "attempt", record->attempt);
    json_pair_text(out, "cause", record->cause);
    if (record->rung != RUNG_NONE)
        json_pair_text(out, "rung", rung_name((enum rung)record->rung));
    if (record->passed)
        json_pair_text(out, "passedOver", record->passed);
    if (record->machine[0])
        json_pair_text(out, "machine", record->machine);
    if (record->detail[0])
        json_pair_text(out, "detail", record->detail);
    render_micro_time(render, "evidenceTime", record->evidence_ns);
    render_micro_time(render, "faultTime", record->fault_ns);
    render_micro_time(render, "startedTime", record->started_ns);
    render_micro_time(render, "steppedTime", record->stepped_ns);
    if (record->step_at_fault >= 0)
        json_pair_int(out, "stepAtFault", record->step_at_fault);
    if (record->step_resumed_from >= 0 && record->stepped_ns) /* before its first step it may be newer yet */
        json_pair_int(out, "resumedFrom", record->step_resumed_from);
    put_attribution(render, &record->faults, &record->signatures, str_from(record->machine),
                    record->fault_ns);
    json_end_object(out);
}

static void put_ledger(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    int64_t now_ns = render->now_ns > jobset->usage.shown_ns ? render->now_ns : jobset->usage.shown_ns;
    struct ledger_account account = render->live ? jobset_account(jobset, now_ns) : jobset->usage.shown;
    json_key(out, "ledger");
    json_begin_object(out);
    render_micro_time(render, "asOf", render->live ? now_ns : jobset->usage.shown_ns);
    json_key(out, "chipSeconds");
    json_begin_object(out);
    for (int owner = 0; owner < LEDGER_OWNERS; owner++) {
        if (account.chip_us[owner] == 0)
            continue;
        json_key(out, ledger_owner_name(owner));
        json_put_fixed(out, account.chip_us[owner], 6);
    }
    json_end_object(out);
    int64_t ettr_ppm = ledger_ettr_ppm(&account);
    if (ettr_ppm >= 0)
        json_pair_int(out, "ettrPpm", ettr_ppm);
    json_end_object(out);
}

/* Writes why the JobSet waits: for machines, or in its queue. */
static void put_why(struct render *render, const struct jobset *jobset)
{
    struct str why = render_jobset_why(jobset);
    struct buf fresh BUF_CLEANUP = {0};
    const struct workload *workload = workload_of(core_admit(render->core), jobset->uid);
    if (!why.len && workload && jobset->spec.suspend && !jobset->deleted_ns) {
        bool anew = render->fresh && workload_explain(render->core, workload, &fresh);
        const struct workload_condition *quota = &workload->conditions[WORKLOAD_QUOTA_RESERVED];
        why = buf_str(anew ? &fresh : &quota->message);
    }
    struct str named = prebuilt_name(jobset);
    if (!why.len && !workload && named.len && jobset->spec.suspend && !jobset->deleted_ns)
        why = arena_printf(render->scratch,
                           "waits for Workload " STR_FORMAT
                           " (label kueue.x-k8s.io/prebuilt-workload-name) to be there for it",
                           STR_ARG(named));
    if (why.len)
        json_pair_str(&render->out, "why", why);
}

/* Writes the last diagnosis of a hang, if there was one. */
static void put_hang(struct render *render, const struct jobset *jobset)
{
    const struct hang_watch *watch = hang_find(core_hang_watches(render->core), jobset->uid);
    struct json_writer *out = &render->out;
    if (!watch || watch->number == 0)
        return;
    json_key(out, "diagnosis");
    json_begin_object(out);
    json_pair_text(out, "state", watch->phase == HANG_COLLECTING ? "Collecting" : "Judged");
    json_pair_text(out, "reason", watch->asked ? "Asked" : "NoSteps");
    render_time(render, "startTime", watch->begun_ns);
    if (watch->phase == HANG_WATCHING) {
        json_pair_text(out, "verdict", hang_verdict_names[watch->verdict]);
        json_pair_str(out, "message", watch->text);
    }
    json_end_object(out);
}

static void put_spares(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    struct spare_counts counts = jobset_spares(jobset, core_cluster(render->core));
    if (counts.wanted == 0)
        return;
    json_key(out, "spares");
    json_begin_object(out);
    json_pair_int(out, "wanted", counts.wanted);
    json_pair_int(out, "ready", counts.ready);
    json_end_object(out);
}

/* Writes the replicas that left for lack of machines. */
static void put_shrunk(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    uint32_t away = (uint32_t)jobset->recovery.absence.replicas.len, all = jobset_replicas(jobset);
    if (away == 0)
        return;
    json_key(out, "shrunk");
    json_begin_object(out);
    json_pair_int(out, "replicas", all > away ? all - away : 0);
    json_pair_int(out, "of", all);
    render_time(render, "since", jobset->recovery.absence.since_ns);
    json_end_object(out);
}

static const struct step_metric *metric_of(const struct progress *progress, const char *name)
{
    for (size_t i = 0; i < progress->metric_count; i++)
        if (strcmp(progress->metric_names[i], name) == 0)
            return &progress->metrics[i];
    return NULL;
}

/* Writes the checkpoint interval that rank 0 has chosen (job/loop/auto.h). */
static void put_checkpoint(struct render *render, const struct jobset *jobset)
{
    static const struct {
        const char *metric, *key;
        int digits;
    } shown[] = {
        {"checkpoint_save_steps", "interval", 0},        {"checkpoint_hold_steps", "holdInterval", 0},
        {"checkpoint_interval_s", "intervalSeconds", 6}, {"checkpoint_mttf_s", "mttfSeconds", 0},
        {"checkpoint_write_s", "writeSeconds", 6},       {"checkpoint_restart_s", "restartSeconds", 6},
        {"checkpoint_ettr", "expectedETTR", 6},
    };
    struct json_writer *out = &render->out;
    if (!metric_of(&jobset->progress, "checkpoint_mttf_s"))
        return;
    json_key(out, "checkpoint");
    json_begin_object(out);
    for (size_t i = 0; i < sizeof shown / sizeof *shown; i++) {
        const struct step_metric *metric = metric_of(&jobset->progress, shown[i].metric);
        if (!metric)
            continue;
        json_key(out, shown[i].key);
        json_put_fixed(out, shown[i].digits ? metric->micro : metric->micro / 1000000, shown[i].digits);
    }
    json_end_object(out);
}

/* Writes the fields for which Kubernetes has no place. */
static void put_phalanx(struct render *render, const struct jobset *jobset)
{
    struct json_writer *out = &render->out;
    json_key(out, "phalanx");
    json_begin_object(out);
    json_pair_text(out, "state", render_jobset_state(jobset));
    json_pair_int(out, "attempt", jobset->attempt);
    put_why(render, jobset);
    put_steps(render, jobset);
    put_checkpoint(render, jobset);
    put_spares(render, jobset);
    put_shrunk(render, jobset);
    put_hang(render, jobset);
    uint32_t kept = restarts_kept(&jobset->history);
    json_pair_int(out, "restartCount", jobset->history.record_count);
    if (kept) {
        json_key(out, "restarts");
        json_begin_array(out);
        for (uint32_t back = kept; back-- > 0;)
            put_restart(render, restart_back(&jobset->history, back), jobset->history.record_count - back);
        json_end_array(out);
    }
    render_time(render, "finishedTime", jobset->finished_ns);
    const struct end_signature *root = end_signatures_root(&jobset->history.signatures);
    bool numeric = jobset->finished_ns && root && root->kind == SIGNATURE_NUMERIC;
    bool failed = jobset->conditions[CONDITION_FAILED].status;
    if (numeric || (failed && (jobset->history.signatures.count || jobset->history.faults.count))) {
        json_key(out, "end");
        json_begin_object(out);
        put_attribution(render, &jobset->history.faults, &jobset->history.signatures, STR(""),
                        jobset->finished_ns);
        json_end_object(out);
    }
    put_ledger(render, jobset);
    json_end_object(out);
}

void render_jobset(struct render *render, const struct jobset *jobset)
{
    static const char *const top[] = {"apiVersion", "kind", "metadata", "status", NULL};
    struct json_writer *out = &render->out;
    json_begin_object(out);
    render_type(render, "jobset.x-k8s.io/v1alpha2", "JobSet");
    render_metadata_begin(render, &(struct render_metadata){.name = jobset->name,
                                                            .namespace_ = jobset->namespace_,
                                                            .uid = jobset->uid,
                                                            .version = jobset->changed_seq,
                                                            .generation = jobset->generation,
                                                            .created_ns = jobset->created_ns,
                                                            .deleted_ns = jobset->deleted_ns});
    render_user_metadata(render, doc_get(jobset->document, "metadata"));
    render_metadata_end(render);
    render_members(render, document_with_terms(render->scratch, jobset), top);
    json_key(out, "status");
    if (jobset->foreign.status) {
        json_put_doc(out, jobset->foreign.status);
        json_end_object(out);
        return;
    }
    json_begin_object(out);
    put_conditions(render, jobset);
    json_pair_int(out, "restarts", jobset->restarts);
    json_pair_int(out, "restartsCountTowardsMax", jobset->restarts_counted);
    if (jobset->executions >= 0)
        json_pair_int(out, "executionAttempts", jobset->executions);
    if (jobset_finished(jobset))
        json_pair_text(out, "terminalState", terminal_state_name(jobset->terminal_state));
    put_rjob_status(render, jobset);
    if (jobset->spec.has_failure_policy && jobset->spec.strategy == RESTART_IN_PLACE) {
        if (jobset->attempt > 0)
            json_pair_int(out, "previousInPlaceRestartAttempt", jobset->attempt - 1);
        json_pair_int(out, "currentInPlaceRestartAttempt", jobset->attempt - jobset_parks(jobset));
    }
    put_phalanx(render, jobset);
    json_end_object(out);
    json_end_object(out);
}
