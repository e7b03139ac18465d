/* jobset.c - the JobSet as users write it: creation, new generations, deletion, its end. */
#include "core/job/folder.h"
#include "core/life/internal.h"
#include "core/gang/trial.h"

#include <stdio.h>

/* --- writes ----------------------------------------------------------------------------------- */

struct jobset *jobset_make(struct arena *arena, struct doc *document, const struct jobset_spec *spec)
{
    struct jobset *jobset = mem_alloc(sizeof(*jobset));
    const struct doc *metadata = doc_get(document, "metadata");
    struct str ns = doc_str(doc_get(metadata, "namespace"), STR("default"));
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    struct buf key = {0};
    buf_reserve(&key, ns.len + 1 + name.len);
    buf_add_str(&key, ns);
    buf_add_char(&key, '/');
    buf_add_str(&key, name);
    CHECK(key.len == ns.len + 1 + name.len);
    jobset->key = buf_str(&key);
    jobset->namespace_ = (struct str){key.data, ns.len};
    jobset->name = (struct str){key.data + ns.len + 1, name.len};
    jobset->arena = *arena;
    *arena = (struct arena){0};
    jobset->document = document;
    jobset->form = workload_form(document);
    jobset->spec = *spec;
    jobset->executions = -1;
    jobset_bind(jobset);
    return jobset;
}

#define ACT_KEY "phalanx.dev/act-on-failure-target"

static void set_failures_wait(const struct step *step, struct jobset *jobset)
{
    CHECK(!jobset_finished(jobset) || jobset->finished_ns > 0);
    struct str asked = labels_get(&jobset->spec.annotations, STR(ACT_KEY), STR(""));
    bool waits = str_is(asked, "true")    ? false
                 : str_is(asked, "false") ? true
                                          : !step->cluster->policy.act_on_failure;
    if (jobset->failures_wait == waits || jobset->form != FORM_JOBSET)
        return;
    jobset->failures_wait = waits;
    for (uint32_t i = 0; i < jobset->job_count; i++)
        if (jobset->jobs[i])
            job_touch(jobset->jobs[i]);
}

/* Makes a Job or Pod without a JobSet at once, because the reply to the writer shows it. */
static void make_own(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->job_count == 1);
    struct job *job = job_new(step, jobset, 0, jobset->spec.suspend && jobset->form != FORM_POD);
    if (jobset->form == FORM_POD)
        task_create(step, job, 0);
}

struct jobset *jobset_create(struct step *step, struct arena *arena, struct doc *document,
                             const struct jobset_spec *spec)
{
    struct jobset *jobset = jobset_make(arena, document, spec);
    CHECK(jobset->form != FORM_JOBSET || !jobs_find(step->jobs, jobset->namespace_, jobset->name));
    jobset->uid = step_uid(step);
    jobset->generation = 1;
    jobset->created_ns = jobset->first_queued_ns = step->now_ns;
    jobset->progress.step = -1;
    jobset->progress.attempt = -1;
    jobset->checkpoint.committed_step = jobset->checkpoint.fallback_step = -1;
    jobset->recovery.ladder.best_step = -1;
    ledger_account_open(&jobset->usage.closed, 0, OWNER_QUEUED, 0, step_now_us(step));
    set_failures_wait(step, jobset);
    store_add_jobset(step->jobs, jobset);
    folder_resume(step, jobset);
    step_changed(step, CHANGE_ADDED, ref_jobset(jobset));
    if (jobset->form == FORM_JOB || jobset->form == FORM_POD)
        make_own(step, jobset);
    owned_objects_mark(step, jobset);
    jobset_mark(step, jobset);
    return jobset;
}

static void repoint(struct jobset *jobset, struct job *job)
{
    CHECK(!job || job->rjob_index < jobset->spec.rjob_count);
    if (job)
        job->rjob = &jobset->spec.rjobs[job->rjob_index];
}

void jobset_set_document(struct step *step, struct jobset *jobset, struct arena *arena, struct doc *document,
                         const struct jobset_spec *spec)
{
    CHECK(!spec_equal(jobset->document, document));
    if (!spec_equal(doc_get(jobset->document, "spec"), doc_get(document, "spec")))
        jobset->generation++;
    bool runs_nothing = jobset->form == FORM_WORKLOAD;
    CHECK(runs_nothing || spec->rjob_count == jobset->spec.rjob_count); /* immutable, as are replicas */
    vec_push(&step->jobs->dead_arenas, jobset->arena);
    jobset->arena = *arena;
    *arena = (struct arena){0};
    jobset->document = document;
    jobset->spec = *spec;
    store_count_naming(step->jobs, jobset);
    for (uint32_t i = 0; i < jobset->job_count; i++)
        repoint(jobset, jobset->jobs[i]);
    for (size_t i = 0; i < jobset->old_jobs.len; i++)
        repoint(jobset, jobset->old_jobs.items[i]);
    if (runs_nothing)
        jobset_rebind(jobset);
    else
        jobset_fit(jobset);
    set_failures_wait(step, jobset);
    spare_resized(step, jobset);
    for (uint32_t i = 0; i < jobset->job_count && jobset_is_elastic(jobset); i++)
        if (jobset->jobs[i])
            job_resized(jobset->jobs[i]);
    step->schedule |= jobset->form == FORM_POD; /* its scheduling gates may have been removed */
    step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    jobset_mark(step, jobset);
}

void jobset_delete(struct step *step, struct jobset *jobset)
{
    CHECK(!jobset->entry.gone);
    if (!jobset->deleted_ns) {
        jobset->deleted_ns = step->now_ns;
        /* tasks of a deleted JobSet do not save */
        jobset->recovery.suspend_grace = (struct suspend_grace){0};
        jobset_reserve(step, jobset, NULL);
        step_changed(step, CHANGE_MODIFIED, ref_jobset(jobset));
    }
    jobset_mark(step, jobset);
}

void jobset_hide(struct step *step, struct jobset *jobset)
{
    CHECK(jobset->form != FORM_POD && !jobset->deleted_ns && !jobset->hidden);
    struct job *own = jobset->form == FORM_JOB ? jobset->jobs[0] : NULL;
    step_changed(step, CHANGE_DELETED, own ? ref_job(own) : ref_jobset(jobset));
    store_hide_jobset(step->jobs, jobset);
    for (uint32_t i = 0; i < jobset->job_count; i++) { /* the orphans lose their owner reference */
        struct job *job = jobset->jobs[i];
        if (!job)
            continue;
        job_touch(job); /* an orphan has no deadline */
        if (!own)
            step_changed(step, CHANGE_MODIFIED, ref_job(job));
        for (size_t t = 0; own && t < job->tasks.len; t++)
            step_changed(step, CHANGE_MODIFIED, ref_task(job->tasks.items[t]));
    }
    jobset_mark(step, jobset);
}

void job_delete(struct step *step, struct job *job)
{
    CHECK(job->jobset->form == FORM_JOBSET);
    if (job->doomed)
        return;
    attempt_doom_jobs(step, job->jobset, job->global_index, job->global_index + 1);
    jobset_mark(step, job->jobset);
}

void jobset_finish(struct step *step, struct jobset *jobset, enum condition_kind kind, const char *reason,
                   const char *format, ...)
{
    CHECK(kind == CONDITION_COMPLETED || kind == CONDITION_FAILED);
    CHECK(!jobset_finished(jobset));
    struct buf text BUF_CLEANUP = {0};
    va_list args;
    va_start(args, format);
    buf_vprintf(&text, format, args);
    va_end(args);
    bool completed = kind == CONDITION_COMPLETED;
    usage_settle(step, jobset, completed);
    jobset_reserve(step, jobset, NULL);
    jobset->terminal_state = completed ? TERMINAL_COMPLETED : TERMINAL_FAILED;
    step->jobs->completed_total += jobset->form == FORM_JOBSET && completed;
    step->jobs->failed_total += jobset->form == FORM_JOBSET && !completed;
    jobset->finished_ns = step->now_ns;
    jobset->recovery.suspend_grace = (struct suspend_grace){0};
    condition_set(step, jobset, kind, true, reason, STR_FORMAT, STR_ARG(buf_str(&text)));
    if (jobset->conditions[CONDITION_RESTARTING].present && jobset->conditions[CONDITION_RESTARTING].status)
        condition_set(step, jobset, CONDITION_RESTARTING, false,
                      completed ? "JobSetCompleted" : "JobSetFailed",
                      completed ? "jobset completed successfully" : "jobset failed");
    for (uint32_t i = 0; i < jobset->job_count; i++) {
        struct job *job = jobset->jobs[i];
        if (job && (job->state == JOB_ACTIVE || job->state == JOB_SUSPENDED))
            attempt_doom_jobs(step, jobset, i, i + 1); /* foreground deletion; finished jobs stay */
    }
}
