/* facts.c - questions about JobSets, Jobs, gangs and tasks. Nothing here changes anything. */
#include "core/job/facts.h"

#define DISABLE_KEY "jobset.sigs.k8s.io/disable-in-place-restart"
#define ELASTIC_KEY "phalanx.dev/elastic"

bool jobset_is_foreign(const struct jobset *jobset)
{
    const char *ours =
        jobset->form == FORM_JOBSET ? "jobset.sigs.k8s.io/jobset-controller" : "kubernetes.io/job-controller";
    return jobset->spec.managed_by.len && !str_is(jobset->spec.managed_by, ours);
}

bool job_over(const struct job *job)
{
    return job->state == JOB_FAILED || job->state == JOB_COMPLETE;
}

bool job_failed(const struct job *job)
{
    return job->state == JOB_FAILED || job->state == JOB_FAILING;
}

bool job_has_failed(const struct job *job)
{
    return job->jobset->failures_wait ? job->state == JOB_FAILED : job_failed(job);
}

uint32_t job_index_count(const struct rjob_spec *rjob)
{
    CHECK(rjob->job.parallelism >= 0);
    return (uint32_t)(rjob->job.completions >= 0 ? rjob->job.completions : rjob->job.parallelism);
}

int32_t job_wanted(const struct job *job)
{
    CHECK(job->rjob->job.parallelism >= 0);
    const struct job_spec *spec = &job->rjob->job;
    return spec->completions >= 0 && spec->completions < spec->parallelism ? spec->completions
                                                                           : spec->parallelism;
}

bool job_alive(const struct job *job)
{
    return job->active > 0 || job->spares.len > 0;
}

bool move_by_spares(const struct jobset *jobset)
{
    return jobset->recovery.move.state != MOVE_NONE && jobset->recovery.move.by_spares;
}

bool jobset_is_elastic(const struct jobset *jobset)
{
    return jobset->form == FORM_JOB ||
           str_is(labels_get(&jobset->spec.annotations, STR(ELASTIC_KEY), STR("")), "true");
}

uint32_t jobset_first_slot(const struct jobset *jobset, uint32_t rjob, uint32_t index)
{
    CHECK(rjob < jobset->spec.rjob_count);
    uint32_t slot = 0;
    for (uint32_t r = 0; r < rjob; r++)
        slot += (uint32_t)jobset->spec.rjobs[r].replicas * jobset->widths[r];
    return slot + index * jobset->widths[rjob];
}

bool recovery_keeps(const struct task *task)
{
    return task->state == TASK_RUNNING && !task_is_dead(task) && task->can_rejoin &&
           (task->joined || task->keep != KEEP_NO) && !task->doomed && !task->evicted && !task->fenced;
}

bool attempt_within_max(const struct jobset *jobset)
{
    int64_t counted = (int64_t)jobset->restarts_counted + jobset->recovery.in_place_counted;
    for (uint32_t i = 0; i < jobset->job_count; i++)
        counted += jobset->job_attempts_counted[i];
    CHECK(counted >= 0);
    return counted < jobset->spec.max_restarts;
}

bool inplace_is_asked(const struct jobset *jobset)
{
    return jobset->form == FORM_JOBSET && jobset->spec.has_failure_policy &&
           jobset->spec.strategy == RESTART_IN_PLACE;
}

bool inplace_is_disabled(const struct jobset *jobset)
{
    return str_is(labels_get(&jobset->spec.annotations, STR(DISABLE_KEY), STR("")), "true");
}

/* A rank that has succeeded is missing in another attempt of its peers. */
bool inplace_has_succeeded(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i] && jobset->jobs[i]->succeeded > 0)
            return true;
    return false;
}

bool inplace_is_whole(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        bool active = job && job->state == JOB_ACTIVE;
        if (active && job->succeeded > 0)
            return false;
        for (size_t t = 0; active && t < job->tasks.len; t++)
            if (job->tasks.items[t]->state == TASK_PENDING && !task_is_away(job->tasks.items[t]))
                return false;
    }
    return true;
}

bool inplace_is_shared(const struct task *task)
{
    const struct jobset *jobset = task->job->jobset;
    return jobset->form == FORM_JOBSET && !inplace_is_asked(jobset) && !inplace_is_disabled(jobset) &&
           task->joined && task->job->rjob->job.pod.restart_policy == RESTART_ON_FAILURE;
}

bool inplace_is_exhausted(const struct task *task)
{
    CHECK(task->job->rjob->job.backoff_limit >= 0);
    return job_container_restarts(task->job, task) + 1 >= (uint64_t)task->job->rjob->job.backoff_limit;
}

bool inplace_may(const struct task *task)
{
    CHECK(!task_is_spare(task));
    const struct jobset *jobset = task->job->jobset;
    if (jobset->deleted_ns || jobset_finished(jobset) || jobset_rests(jobset) || inplace_is_disabled(jobset))
        return false;
    if (jobset_parks(jobset))
        return true;
    if (inplace_is_asked(jobset))
        return attempt_within_max(jobset) && !inplace_has_succeeded(jobset);
    return inplace_is_shared(task) && !inplace_is_exhausted(task) && inplace_is_whole(jobset);
}

bool recovery_charges_job(const struct task *culprit)
{
    const struct job *job = culprit->job;
    return job->jobset->form == FORM_JOB ||
           (!inplace_is_asked(job->jobset) && job->rjob->job.pod.restart_policy == RESTART_ON_FAILURE);
}

int64_t recovery_limit_ns(const struct jobset *jobset)
{
    uint8_t rung = jobset->recovery.ladder.rung == RUNG_NONE || jobset->recovery.ladder.rung == RUNG_REQUEUE
                       ? (uint8_t)RUNG_RESTART_PROCESS
                       : jobset->recovery.ladder.rung;
    CHECK(rung < RUNGS);
    return jobset->spec.recovery.limit_ns[rung];
}

bool gang_is_named(const struct gang *gang)
{
    return gang->tasks.len == 1 && task_is_named(gang->tasks.items[0]);
}

int64_t dump_deadline(const struct jobset *jobset)
{
    CHECK(jobset->recovery.state == RECOVERY_DUMPING && jobset->recovery.since_ns > 0);
    return jobset->recovery.since_ns + jobset->spec.recovery.limit_ns[RUNG_DUMP];
}

bool task_is_named(const struct task *task)
{
    return task->job->rjob->job.pod.node_name.len > 0;
}

const struct machine *gang_named_machine(const struct step *step, const struct gang *gang)
{
    CHECK(gang_is_named(gang));
    const struct machine *machine =
        cluster_find(step->cluster, gang->tasks.items[0]->job->rjob->job.pod.node_name);
    return machine && machine->state == MACHINE_READY ? machine : NULL;
}

bool shrink_is_allowed(const struct jobset *jobset)
{
    const struct ladder_settings *settings = &jobset->spec.recovery;
    return jobset_keeps(jobset) && !settings->off && settings->allowed[RUNG_SHRINK];
}

bool shrink_may_answer(const struct jobset *jobset)
{
    return jobset_parks(jobset) && shrink_is_allowed(jobset) && replica_size(jobset) > 0;
}

bool dump_has_member(const struct task *task, const struct jobset *jobset)
{
    return task && task->state == TASK_RUNNING && task->attempt == jobset->attempt;
}

const struct task *dump_rank_zero(const struct jobset *jobset)
{
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        const struct job *job = jobset->jobs[i];
        for (uint32_t s = 0; job && s < job->index_count; s++)
            if (dump_has_member(job->indexes[s].task, jobset)) /* the first member has rank 0 */
                return job->indexes[s].task;
    }
    return NULL;
}

bool task_step_counts(const struct task *task, const struct task_step *step)
{
    if (task_is_spare(task) || task_ended(task->state) || task->job->doomed ||
        task->attempt != task->job->jobset->attempt)
        return false;
    return step->attempt_plus_1 ? step->attempt_plus_1 == (uint32_t)task->attempt + 1 : task->keep == KEEP_NO;
}

int64_t progress_rate_milli(const struct progress *progress)
{
    int64_t elapsed_ns = progress->step_ns - progress->base_ns;
    if (progress->step <= progress->base_step || elapsed_ns < NS_PER_MS)
        return 0;
    return (int64_t)((__int128)(progress->step - progress->base_step) * 1000 * NS_PER_SECOND / elapsed_ns);
}

int64_t progress_mfu_ppm(const struct progress *progress, int64_t chips, int64_t chip_teraflops)
{
    int64_t rate_milli = progress_rate_milli(progress), step_micro = 0;
    CHECK(chips >= 0 && chip_teraflops >= 0);
    for (size_t i = 0; i < progress->metric_count; i++)
        if (str_is(progress->metrics[i].name, "step_teraflop"))
            step_micro = progress->metrics[i].micro;
    if (rate_milli <= 0 || step_micro <= 0 || !chips || !chip_teraflops)
        return -1;
    __int128 ppm = (__int128)step_micro * rate_milli / ((__int128)chips * chip_teraflops * 1000);
    return ppm < INT64_MAX ? (int64_t)ppm : INT64_MAX;
}

int64_t jobset_chips(const struct jobset *jobset)
{
    int64_t chips = 0;
    for (size_t r = 0; r < jobset->spec.rjob_count; r++) {
        const struct rjob_spec *rjob = &jobset->spec.rjobs[r];
        chips += (int64_t)rjob->replicas * rjob->job.parallelism * rjob->job.pod.chips;
    }
    CHECK(chips >= 0);
    return chips;
}

uint8_t jobset_size_class(const struct jobset *jobset)
{
    return ledger_size_of(jobset_chips(jobset));
}

struct ledger_account jobset_account(const struct jobset *jobset, int64_t now_ns)
{
    struct ledger_account sum = jobset->usage.closed;
    for (size_t i = 0; i < jobset->gangs.len; i++) {
        struct ledger_account account =
            ledger_account_at(&jobset->gangs.items[i]->account, now_ns / NS_PER_US);
        ledger_account_add(&sum, &account);
        sum.chips += account.chips;
    }
    return sum;
}

uint32_t job_ranks_on(const struct job *job, machine_id machine)
{
    CHECK(machine != MACHINE_NONE);
    uint32_t count = 0;
    for (size_t t = 0; t < job->tasks.len; t++) {
        const struct task *task = job->tasks.items[t];
        count += task->machine == machine && !task_ended(task->state) && !task->doomed;
    }
    return count;
}

bool jobset_is_running(const struct jobset *jobset)
{
    for (size_t g = 0; g < jobset->gangs.len; g++) {
        const struct gang *gang = jobset->gangs.items[g];
        if ((gang->state == GANG_PLACED || gang->state == GANG_RUNNING) && !gang_is_spare(gang))
            return true;
    }
    return false;
}

bool jobset_has_living(const struct jobset *jobset)
{
    bool some = false;
    for (uint32_t i = 0; i < jobset->job_count && !some; i++)
        some = jobset->jobs[i] && job_alive(jobset->jobs[i]);
    for (size_t i = 0; i < jobset->old_jobs.len && !some; i++)
        some = job_alive(jobset->old_jobs.items[i]);
    return some;
}
