/* workload.c - the same functions for JobSets, Jobs, Pods and Workloads: calls the rules of each kind, and
 * reads a Job or Pod without a JobSet as a JobSet of one Job. */
#include "base/check.h"
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

enum form workload_form(const struct doc *object)
{
    struct str kind = doc_str(doc_get(object, "kind"), STR(""));
    if (str_is(kind, "JobSet")) /* most often */
        return FORM_JOBSET;
    struct str version = doc_str(doc_get(object, "apiVersion"), STR(""));
    if (str_is(version, "batch/v1") && str_is(kind, "Job"))
        return FORM_JOB;
    if (str_is(kind, "Workload") && str_starts(version, STR("kueue.x-k8s.io/")))
        return FORM_WORKLOAD;
    return str_is(version, "v1") && str_is(kind, "Pod") ? FORM_POD : FORM_JOBSET;
}

const struct doc *workload_job_template(const struct doc *object, size_t rjob)
{
    switch (workload_form(object)) {
    case FORM_JOB:
        return object;
    case FORM_POD:
    case FORM_WORKLOAD:
        return NULL;
    case FORM_JOBSET:
        break;
    }
    return doc_get(doc_at(doc_path(object, "spec", "replicatedJobs", NULL), rjob), "template");
}

const struct doc *workload_pod_template(const struct doc *object, size_t rjob)
{
    if (workload_form(object) == FORM_POD)
        return object;
    if (workload_form(object) == FORM_WORKLOAD)
        return doc_get(doc_at(doc_path(object, "spec", "podSets", NULL), rjob), "template");
    return doc_path(workload_job_template(object, rjob), "spec", "template", NULL);
}

/* --- reading -------------------------------------------------------------------------------------------- */

static void read_own_job(struct arena *arena, const struct doc *object, struct rjob_spec *rjob,
                         struct jobset_spec *spec)
{
    const struct doc *node = doc_get(object, "spec");
    const struct doc *pod = doc_path(node, "template", "spec", NULL);
    read_job(arena, node, &rjob->job);
    spec->suspend = doc_bool(doc_get(node, "suspend"), false);
    spec->ttl_s = read_seconds(doc_get(node, "ttlSecondsAfterFinished"), -1);
    spec->managed_by = doc_str(doc_get(node, "managedBy"), STR(""));
    spec->subdomain = doc_str(doc_get(pod, "subdomain"), STR(""));
}

/* Reads a Pod as one task that is tried once. restartPolicy restarts its process in place (task.c). */
static void read_own_pod(struct arena *arena, const struct doc *object, struct rjob_spec *rjob,
                         struct jobset_spec *spec)
{
    struct pod_spec pod;
    read_pod(arena, object, &pod);
    struct str policy = doc_str(doc_path(object, "spec", "restartPolicy", NULL), STR("Always"));
    if (str_is(policy, "Always"))
        pod.restart_policy = RESTART_ALWAYS;
    rjob->job = (struct job_spec){
        .parallelism = 1,
        .completions = 1,
        .backoff_limit = 0,
        .backoff_limit_per_index = -1,
        .max_failed_indexes = -1,
        .active_deadline_s = pod.active_deadline_s,
        .pod = pod,
    };
    spec->subdomain = doc_str(doc_path(object, "spec", "subdomain", NULL), STR(""));
    spec->suspend = doc_len(doc_path(object, "spec", "schedulingGates", NULL)) > 0;
}

bool workload_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                   struct field_errors *errors)
{
    enum form form = workload_form(object);
    if (form == FORM_JOBSET)
        return jobset_read(arena, object, ret_spec, errors);
    if (form == FORM_WORKLOAD)
        return podsets_read(arena, object, ret_spec, errors);
    CHECK(arena && ret_spec && errors && errors->arena);
    size_t errors_before = errors->list.len + errors->dropped;
    schema_check_builtin(form == FORM_JOB ? &schema_job : &schema_pod, object, errors, NULL);
    if (errors->list.len + errors->dropped > errors_before)
        return false;
    const struct doc *meta = doc_get(object, "metadata");
    struct jobset_spec spec = {
        .rjobs = ARENA_ARRAY(arena, struct rjob_spec, 1),
        .rjob_count = 1,
        .publish_not_ready = true,
        .ttl_s = -1,
        .labels = read_labels(arena, doc_get(meta, "labels")),
        .annotations = read_labels(arena, doc_get(meta, "annotations")),
    };
    struct rjob_spec *rjob = &spec.rjobs[0];
    rjob->group = STR("default");
    rjob->replicas = 1;
    if (form == FORM_JOB)
        read_own_job(arena, object, rjob, &spec);
    else
        read_own_pod(arena, object, rjob, &spec);
    rjob->labels = spec.labels;
    rjob->annotations = spec.annotations;
    struct str key = STR("alpha.jobset.sigs.k8s.io/exclusive-topology");
    rjob->exclusive_topology =
        labels_get(&rjob->job.pod.annotations, key, labels_get(&spec.annotations, key, STR("")));
    read_recovery(&spec);
    read_replicas(&spec);
    *ret_spec = spec;
    return true;
}

/* --- rules ---------------------------------------------------------------------------------------------- */

void validate_own_meta(const struct doc *object, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *meta = doc_get(object, "metadata"), *node = doc_get(meta, "name");
    const struct doc *prefix = doc_get(meta, "generateName"), *space = doc_get(meta, "namespace");
    const struct field_path *path = AT(NULL, "metadata");
    struct str name = doc_str(node, STR(""));
    if (name.len == 0 && doc_str(prefix, STR("")).len > 0)
        name = arena_printf(errors->arena, STR_FORMAT "abcde", STR_ARG(prefix->text));
    if (name.len == 0)
        path_required(errors, AT(path, "name"), meta, "name or generateName is required");
    else if (!name_is_dns1123_subdomain(name))
        path_invalid(errors, AT(path, node ? "name" : "generateName"), node ? node : prefix, name,
                     name.len > 253 ? "must be no more than 253 bytes" : WHY_DNS1123_SUBDOMAIN);
    if (doc_str(space, STR("")).len > 0 && !name_is_dns1123_label(space->text))
        path_invalid(errors, AT(path, "namespace"), space, space->text, WHY_DNS1123_LABEL);
    validate_meta(meta, path, errors);
    validate_pace(meta, path, errors);
}

static void validate_own_job(const struct doc *object, const struct jobset_spec *spec,
                             struct field_errors *errors)
{
    CHECK(spec->rjob_count == 1);
    const struct doc *node = doc_get(object, "spec"), *name = doc_path(object, "metadata", "name", NULL);
    const struct job_spec *job = &spec->rjobs[0].job;
    const struct field_path *path = AT(NULL, "spec"), *pod = AT(AT(path, "template"), "spec");
    const struct doc *policy = doc_path(node, "template", "spec", "restartPolicy", NULL);
    const struct doc *manager = doc_get(node, "managedBy");
    if (doc_str(name, STR("")).len > 63) /* it becomes the label job-name */
        path_invalid(errors, AT(AT(NULL, "metadata"), "name"), name, name->text, WHY_63_BYTES);
    if (!node || node->kind != DOC_OBJECT) {
        path_required(errors, AT(path, "template"), object, NULL);
        return;
    }
    if (job->pod.restart_policy == RESTART_ALWAYS)
        path_required(errors, AT(pod, "restartPolicy"), policy ? policy : node,
                      "valid values: \"OnFailure\", \"Never\"");
    else
        validate_job_spec(node, job, path, errors);
    validate_success_policy(node, job, path, errors);
    if (job->completions < 0 && job->parallelism > TASKS_PER_JOBSET_MAX)
        path_invalid_int(errors, AT(path, "parallelism"), node, job->parallelism, "must be at most 65536");
    if (job->completions > TASKS_PER_JOBSET_MAX)
        path_invalid_int(errors, AT(path, "completions"), node, job->completions, "must be at most 65536");
    if (doc_bool(doc_get(node, "manualSelector"), false))
        path_forbidden(errors, AT(path, "manualSelector"), node, "a Job's selector is generated");
    validate_managed_by(manager, AT(path, "managedBy"), errors);
    validate_recovery(doc_get(object, "metadata"), AT(NULL, "metadata"), errors);
    validate_pod_mounts(doc_path(node, "template", "spec", NULL), pod, errors);
}

static void validate_own_pod(const struct doc *object, struct field_errors *errors)
{
    const struct doc *node = doc_get(object, "spec"), *host = doc_get(node, "hostname");
    const struct doc *subdomain = doc_get(node, "subdomain");
    const struct field_path *path = AT(NULL, "spec");
    validate_pod(object, NULL, errors);
    if (doc_str(host, STR("")).len > 0 && !name_is_dns1123_label(host->text))
        path_invalid(errors, AT(path, "hostname"), host, host->text, WHY_DNS1123_LABEL);
    if (doc_str(subdomain, STR("")).len > 0 && !name_is_dns1123_label(subdomain->text))
        path_invalid(errors, AT(path, "subdomain"), subdomain, subdomain->text, WHY_DNS1123_LABEL);
    validate_pod_mounts(node, path, errors);
}

void workload_validate(const struct doc *object, const struct jobset_spec *spec, struct field_errors *errors)
{
    enum form form = workload_form(object);
    if (form == FORM_JOBSET) {
        jobset_validate(object, spec, errors);
        return;
    }
    validate_own_meta(object, errors);
    if (form == FORM_WORKLOAD)
        podsets_validate(object, errors);
    else if (form == FORM_JOB)
        validate_own_job(object, spec, errors);
    else
        validate_own_pod(object, errors);
}

void jobset_validate_new(const struct doc *object, const struct jobset_spec *spec,
                         struct field_errors *errors)
{
    CHECK(errors && errors->arena && spec->rjob_count <= REPLICATED_JOBS_MAX);
    const struct doc *rjobs = doc_path(object, "spec", "replicatedJobs", NULL);
    const struct field_path *list = AT(AT(NULL, "spec"), "replicatedJobs");
    for (size_t i = 0; i < spec->rjob_count; i++)
        validate_success_policy(doc_path(doc_at(rjobs, i), "template", "spec", NULL), &spec->rjobs[i].job,
                                AT(AT(AT_INDEX(list, i), "template"), "spec"), errors);
    jobset_validate_scheduling(object, spec, errors);
}

/* Refuses a change of the checkpoint folder, which running ranks have in their environment. */
static void check_folder_kept(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    const struct doc *was =
        doc_get_str(doc_path(old, "metadata", "annotations", NULL), STR(CHECKPOINT_FOLDER_KEY));
    const struct doc *is =
        doc_get_str(doc_path(changed, "metadata", "annotations", NULL), STR(CHECKPOINT_FOLDER_KEY));
    if (!str_equal(doc_str(was, STR("")), doc_str(is, STR(""))))
        path_invalid(errors, AT_KEY(AT(AT(NULL, "metadata"), "annotations"), STR(CHECKPOINT_FOLDER_KEY)), is,
                     doc_str(is, STR("")), "field is immutable");
}

void workload_validate_update(const struct doc *old, const struct doc *changed, bool started,
                              struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    enum form form = workload_form(old);
    check_folder_kept(old, changed, errors);
    if (form == FORM_JOBSET)
        jobset_validate_update(old, changed, errors);
    else if (form == FORM_JOB)
        validate_job_update(old, changed, started, errors);
    else
        validate_pod_update(old, changed, errors);
}
