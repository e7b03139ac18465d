#include <stdio.h>

#include "core/gang/trial.h"
#include "kube/render.h"

const struct doc *render_job_template(const struct job *job)
{
    return workload_job_template(job->jobset->document, job->rjob_index);
}

const struct doc *render_pod_template(const struct job *job)
{
    return workload_pod_template(job->jobset->document, job->rjob_index);
}

void render_own_metadata(struct render *render, const struct jobset *jobset)
{
    static const char *const ours[] = {"name",        "namespace",         "uid",
                                       "labels",      "resourceVersion",   "generation",
                                       "annotations", "creationTimestamp", "deletionTimestamp",
                                       "selfLink",    "deletionGracePeriodSeconds",
                                       NULL};
    render_members(render, doc_get(jobset->document, "metadata"), ours);
}

const char *render_job_word(const struct job *job)
{
    switch (job->state) {
    case JOB_FAILED:
        return "Failed";
    case JOB_COMPLETE:
        return "Complete";
    case JOB_SUSPENDED:
        return job->doomed ? "Terminating" : "Suspended";
    case JOB_FAILING:
        return job->doomed ? "Terminating" : "FailureTarget";
    case JOB_COMPLETING:
        return job->doomed ? "Terminating" : "SuccessCriteriaMet";
    default:
        return job->doomed ? "Terminating" : "Running";
    }
}

/* Writes the indexes that have failed (`failed`) or succeeded, as "0,2-4". */
static void put_indexes(struct render *render, const char *key, const struct job *job, bool failed)
{
    struct buf text BUF_CLEANUP = {0};
    for (uint32_t i = 0; job->indexes && i < job->index_count; i++) {
        uint32_t first = i;
        while (i < job->index_count && (failed ? job->indexes[i].failed : job->indexes[i].succeeded))
            i++;
        if (i == first)
            continue;
        buf_printf(&text,
                   i - first == 1   ? "%s%u"
                   : i - first == 2 ? "%s%u,%u"
                                    : "%s%u-%u",
                   text.len ? "," : "", first, i - 1);
    }
    if (text.len)
        json_pair_str(&render->out, key, buf_str(&text));
}

/* Returns when the Job was suspended or resumed. */
static int64_t since_ns(const struct job *job)
{
    const struct condition *suspended = &job->jobset->conditions[CONDITION_SUSPENDED];
    return suspended->present ? suspended->changed_ns : job->created_ns;
}

static struct str success_reason(const struct job *job, struct arena *scratch, const char **ret_reason)
{
    *ret_reason = job->success_rule >= 0 ? "SuccessPolicy" : "CompletionsReached";
    return job->success_rule >= 0 ? arena_printf(scratch, "Matched rules at index %d", job->success_rule)
                                  : STR("Reached expected number of succeeded pods");
}

static void put_conditions(struct render *render, const struct job *job)
{
    const struct condition *suspended = &job->jobset->conditions[CONDITION_SUSPENDED];
    bool resumed = suspended->present && !suspended->status;
    const char *reason;
    struct str message = success_reason(job, render->scratch, &reason);
    struct json_writer *out = &render->out;
    int64_t end_ns = job->finished_ns ? job->finished_ns : job->start_ns;
    bool failed = job->state == JOB_FAILED || job->state == JOB_FAILING;
    bool complete = job->state == JOB_COMPLETE || job->state == JOB_COMPLETING;
    if (!failed && !complete && !resumed && job->state != JOB_SUSPENDED)
        return;
    json_key(out, "conditions");
    json_begin_array(out);
    if (job->state == JOB_SUSPENDED)
        render_condition(render, "Suspended", "True", since_ns(job), "JobSuspended", STR("Job suspended"));
    else if (resumed)
        render_condition(render, "Suspended", "False", since_ns(job), "JobResumed", STR("Job resumed"));
    if (failed)
        render_condition(render, "FailureTarget", "True", end_ns, job->reason, job->message);
    if (job->state == JOB_FAILED)
        render_condition(render, "Failed", "True", end_ns, job->reason, job->message);
    if (complete)
        render_condition(render, "SuccessCriteriaMet", "True", end_ns, reason, message);
    if (job->state == JOB_COMPLETE)
        render_condition(render, "Complete", "True", end_ns, reason, message);
    json_end_array(out);
}

static void put_status(struct render *render, const struct job *job)
{
    struct json_writer *out = &render->out;
    int64_t terminating = 0;
    for (size_t i = 0; i < job->tasks.len; i++)
        terminating += job->tasks.items[i]->state == TASK_STOPPING;
    json_key(out, "status");
    if (job->jobset->form == FORM_JOB && job->jobset->foreign.status) {
        json_put_doc(out, job->jobset->foreign.status);
        return;
    }
    json_begin_object(out);
    put_conditions(render, job);
    render_time(render, "startTime", job->start_ns);
    if (job->state == JOB_COMPLETE)
        render_time(render, "completionTime", job->finished_ns);
    if (job->active)
        json_pair_int(out, "active", job->active);
    json_pair_int(out, "ready", job->ready);
    if (job->succeeded)
        json_pair_int(out, "succeeded", job->succeeded);
    if (job->failed)
        json_pair_int(out, "failed", job->failed);
    json_pair_int(out, "terminating", terminating);
    if (job->rjob->job.indexed) {
        put_indexes(render, "completedIndexes", job, false);
        if (job->rjob->job.backoff_limit_per_index >= 0)
            put_indexes(render, "failedIndexes", job, true);
    }
    json_key(out, "uncountedTerminatedPods");
    json_begin_object(out);
    json_end_object(out);
    json_end_object(out);
}

/* Returns the labels of every pod of a Job without a JobSet. */
static struct labels own_pod_labels(struct render *render, const struct job *job)
{
    char uid[UID_TEXT_MAX];
    uid_text(job->uid, uid);
    struct str text = arena_str(render->scratch, str_from(uid));
    struct labels labels = {ARENA_ARRAY(render->scratch, struct label, 4), 4};
    labels.items[0] = (struct label){STR("batch.kubernetes.io/controller-uid"), text};
    labels.items[1] = (struct label){STR("batch.kubernetes.io/job-name"), job->name};
    labels.items[2] = (struct label){STR("controller-uid"), text};
    labels.items[3] = (struct label){STR("job-name"), job->name};
    return labels;
}

/* Writes the pod template with the labels that its pods get; `kubectl logs job/x` finds pods by the
 * selector. */
static void put_template(struct render *render, const struct job *job, const struct labels *labels)
{
    static const char *const none[] = {"metadata", NULL};
    struct labels of_pods = *labels;
    struct job plain = *job; /* without the labels that a user changed on the Job itself */
    plain.meta = NULL;
    if (job->meta)
        of_pods = job_labels(&plain, NULL, render->scratch);
    static const char *const maps[] = {"labels", "annotations", NULL};
    struct json_writer *out = &render->out;
    const struct rjob_terms *terms =
        job->jobset->grant.terms ? &job->jobset->grant.terms[job->rjob_index] : NULL;
    const struct doc *pod = template_with_terms(render->scratch, render_pod_template(job), terms);
    if (job->jobset->form != FORM_JOBSET)
        of_pods = own_pod_labels(render, job);
    const struct doc *metadata = doc_get(pod, "metadata");
    json_key(out, "template");
    json_begin_object(out);
    json_key(out, "metadata");
    json_begin_object(out);
    render_members(render, metadata, maps);
    render_labels(render, "labels", &of_pods, doc_get(metadata, "labels"));
    struct labels annotations = {0};
    if (job->jobset->form == FORM_JOBSET)
        annotations = job_annotations(&plain, NULL, render->scratch);
    render_labels(render, "annotations", &annotations, doc_get(metadata, "annotations"));
    json_end_object(out);
    render_members(render, pod, none);
    json_end_object(out);
}

static void put_spec(struct render *render, const struct job *job, const struct labels *labels)
{
    static const char *const ours[] = {"selector", "suspend", "template", "parallelism", "completions", NULL};
    struct json_writer *out = &render->out;
    const struct job_spec *spec = &job->rjob->job;
    char uid[UID_TEXT_MAX];
    uid_text(job->uid, uid);
    json_key(out, "spec");
    json_begin_object(out);
    json_pair_int(out, "parallelism", spec->parallelism);
    if (spec->completions >= 0)
        json_pair_int(out, "completions", spec->completions);
    render_members(render, doc_get(render_job_template(job), "spec"), ours);
    json_key(out, "selector");
    json_begin_object(out);
    json_key(out, "matchLabels");
    json_begin_object(out);
    json_pair_text(out, "batch.kubernetes.io/controller-uid", uid);
    json_end_object(out);
    json_end_object(out);
    json_pair_bool(out, "suspend",
                   job->jobset->form == FORM_JOB ? job->jobset->spec.suspend : job->state == JOB_SUSPENDED);
    put_template(render, job, labels);
    json_end_object(out);
}

/* Writes the finalizer of foreground deletion, as JobSet's controller uses it: the Job is removed after its
 * Pods. */
static void put_foreground(struct json_writer *out)
{
    json_pair_int(out, "deletionGracePeriodSeconds", 0);
    json_key(out, "finalizers");
    json_begin_array(out);
    json_put_text(out, "foregroundDeletion");
    json_end_array(out);
}

void render_job(struct render *render, const struct job *job)
{
    struct json_writer *out = &render->out;
    const struct jobset *jobset = job->jobset;
    struct labels labels = job_labels(job, NULL, render->scratch);
    const struct doc *metadata = job->meta ? NULL : doc_get(render_job_template(job), "metadata");
    bool own = jobset->form != FORM_JOBSET;
    json_begin_object(out);
    render_type(render, "batch/v1", "Job");
    render_metadata_begin(render,
                          &(struct render_metadata){.name = job->name,
                                                    .namespace_ = jobset->namespace_,
                                                    .uid = job->uid,
                                                    .version = job->changed_seq,
                                                    .generation = own ? jobset->generation : 1,
                                                    .created_ns = job->created_ns,
                                                    .deleted_ns = own ? jobset->deleted_ns : job->doomed_ns});
    render_labels(render, "labels", &labels, doc_get(metadata, "labels"));
    if (own) {
        render_labels(render, "annotations", &(struct labels){0}, doc_get(metadata, "annotations"));
        render_own_metadata(render, jobset);
    } else {
        struct labels annotations = job_annotations(job, NULL, render->scratch);
        render_labels(render, "annotations", &annotations, doc_get(metadata, "annotations"));
        if (job->doomed)
            put_foreground(out);
        if (!jobset->hidden)
            render_owner(render, "jobset.x-k8s.io/v1alpha2", "JobSet", jobset->name, jobset->uid);
    }
    render_metadata_end(render);
    put_spec(render, job, &labels);
    put_status(render, job);
    json_end_object(out);
}
