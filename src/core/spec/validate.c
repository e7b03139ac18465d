/* validate.c - the create-time rules of a JobSet: names that it generates, counts, network, coordinator. */
#include "core/words/limits.h"
#include "core/spec/validate.h"

#include <stdio.h>

#define JOB_NAME_TOO_LONG                                                                                    \
    "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
#define POD_NAME_TOO_LONG                                                                                    \
    "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
#define EXCLUSIVE_TOPOLOGY_KEY "alpha.jobset.sigs.k8s.io/exclusive-topology"

struct check {
    struct field_errors *errors;
    const struct doc *object, *node; /* the JobSet, its spec */
    const struct jobset_spec *spec;
    struct str name; /* metadata.name; for an unused generateName, with five characters appended */
    bool name_too_long;
};

/* --- metadata ------------------------------------------------------------------------------------------- */
static void validate_object_meta(struct check *check)
{
    const struct doc *meta = doc_get(check->object, "metadata"), *name = doc_get(meta, "name");
    const struct doc *prefix = doc_get(meta, "generateName"), *space = doc_get(meta, "namespace");
    const struct field_path *path = AT(NULL, "metadata");
    struct field_errors *errors = check->errors;
    if (check->name.len == 0)
        path_required(errors, AT(path, "name"), meta, "name or generateName is required");
    else if (!name_is_dns1123_subdomain(check->name))
        path_invalid(errors, AT(path, name ? "name" : "generateName"), name ? name : prefix, check->name,
                     check->name.len > NAME_MAX_BYTES ? "must be no more than 253 bytes"
                                                      : WHY_DNS1123_SUBDOMAIN);
    if (doc_str(space, STR("")).len > 0 && !name_is_dns1123_label(space->text))
        path_invalid(errors, AT(path, "namespace"), space, space->text, WHY_DNS1123_LABEL);
    validate_meta(meta, path, errors);
    validate_pace(meta, path, errors);
    validate_recovery(meta, path, errors);
}

static void validate_topology(const struct doc *meta, const struct field_path *path,
                              struct field_errors *errors)
{
    const struct doc *node = doc_get(doc_get(meta, "annotations"), EXCLUSIVE_TOPOLOGY_KEY);
    struct str key = doc_str(node, STR(""));
    if (node && !name_is_label_key(key))
        path_invalid(errors, AT_KEY(AT(path, "annotations"), STR(EXCLUSIVE_TOPOLOGY_KEY)), node, key,
                     WHY_LABEL_KEY);
}

/* --- generated names ------------------------------------------------------------------------------------ */
static void report_generated(struct check *check, struct str generated, const char *too_long,
                             const struct field_path *path, const struct doc *place)
{
    if (generated.len <= 63) {
        path_invalid(check->errors, path, place, generated, WHY_DNS1035);
        return;
    }
    CHECK(check->name.len > 0); /* the name that others are made of */
    if (check->name_too_long)
        return; /* the longest name is enough */
    check->name_too_long = true;
    const struct doc *name = doc_path(check->object, "metadata", "name", NULL);
    path_invalid(check->errors, AT(AT(NULL, "metadata"), name ? "name" : "generateName"),
                 name ? name : doc_path(check->object, "metadata", "generateName", NULL), check->name,
                 too_long);
}

/* Checks the longest names: those of the last job and its last pod. */
static void validate_names(struct check *check, size_t index, const struct field_path *path)
{
    CHECK(index < check->spec->rjob_count);
    const struct rjob_spec *rjob = &check->spec->rjobs[index];
    const struct doc *place = doc_get(doc_at(doc_get(check->node, "replicatedJobs"), index), "name");
    if (rjob->name.len == 0) {
        path_required(check->errors, AT(path, "name"), place, NULL);
        return;
    }
    if (check->name.len == 0)
        return;
    struct arena *arena = check->errors->arena;
    struct str job = job_name(arena, check->name, rjob->name, rjob->replicas > 0 ? rjob->replicas - 1 : 0);
    if (!name_is_dns1035_label(job)) {
        report_generated(check, job, JOB_NAME_TOO_LONG, AT(path, "name"), place);
        return;
    }
    if (!rjob->job.indexed || rjob->job.completions <= 0)
        return;
    struct str host = pod_hostname(arena, job, rjob->job.completions - 1);
    struct str pod = ARENA_CONCAT(arena, host, STR("-abcde"));
    if (!name_is_dns1035_label(pod))
        report_generated(check, pod, POD_NAME_TOO_LONG, AT(path, "name"), place);
}

/* --- replicated jobs ------------------------------------------------------------------------------------ */
static void validate_rjob(struct check *check, size_t index, const struct field_path *path)
{
    const struct rjob_spec *rjob = &check->spec->rjobs[index];
    const struct doc *node = doc_at(doc_get(check->node, "replicatedJobs"), index);
    const struct doc *group = doc_get(node, "groupName"), *replicas = doc_get(node, "replicas");
    struct field_errors *errors = check->errors;
    validate_names(check, index, path);
    if (!name_is_dns1035_label(rjob->group))
        path_invalid(errors, AT(path, "groupName"), group, rjob->group,
                     rjob->group.len > 63 ? WHY_63_BYTES : WHY_DNS1035);
    validate_min(replicas, 0, AT(path, "replicas"), errors);
    if ((int64_t)rjob->replicas * rjob->job.parallelism > INT32_MAX) {
        struct str why = arena_printf(
            errors->arena,
            "the product of replicas and parallelism must not exceed %d for replicatedJob '" STR_FORMAT "'",
            INT32_MAX, STR_ARG(rjob->name));
        path_invalid_int(errors, AT(path, "replicas"), replicas, rjob->replicas, why.data);
    }
    validate_job(doc_get(node, "template"), &rjob->job, AT(path, "template"), errors);
    validate_topology(doc_path(node, "template", "metadata", NULL), AT(AT(path, "template"), "metadata"),
                      errors);
}

/* Bounds the memory that the JobSet takes: each Job counts as its concurrent tasks or its indexes, whichever
 * are more, and at least as one. */
static void validate_task_count(struct check *check, const struct field_path *path)
{
    _Static_assert(TASKS_PER_JOBSET_MAX <= INT32_MAX, "one product of two counts beyond it fits 64 bits");
    int64_t count = 0;
    for (size_t i = 0; i < check->spec->rjob_count; i++) {
        const struct rjob_spec *rjob = &check->spec->rjobs[i];
        int64_t width = 1;
        width = rjob->job.parallelism > width ? rjob->job.parallelism : width;
        width = rjob->job.completions > width ? rjob->job.completions : width;
        count += rjob->replicas > 0 ? rjob->replicas * width
                                    : 0; /* < 2^62, and only one beyond the limit counts */
        CHECK(count >= 0 && width >= 1);
        if (count > TASKS_PER_JOBSET_MAX) {
            char why[128];
            snprintf(why, sizeof why,
                     "the sum of replicas x max(parallelism, completions, 1) must be at most %d",
                     (int)TASKS_PER_JOBSET_MAX);
            path_invalid_int(check->errors, AT(path, "replicatedJobs"),
                             doc_get(check->node, "replicatedJobs"), count, why);
            return;
        }
    }
}

/* --- network, coordinator and the rest ------------------------------------------------------------------ */
static void validate_network(struct check *check, const struct field_path *path)
{
    const struct doc *node = doc_path(check->node, "network", "subdomain", NULL);
    const struct field_path *here = AT(AT(path, "network"), "subdomain");
    struct str subdomain = check->spec->subdomain;
    if (subdomain.len > 63)
        path_invalid(check->errors, here, node, subdomain,
                     ".spec.network.subdomain is too long, must be less than 63 characters");
    else if (subdomain.len > 0 && !name_is_dns1123_subdomain(subdomain))
        path_invalid(check->errors, here, node, subdomain, WHY_DNS1123_SUBDOMAIN);
    else if (subdomain.len > 0 && !name_is_dns1035_label(subdomain))
        path_invalid(check->errors, here, node, subdomain, WHY_DNS1035);
}

static const struct rjob_spec *find_rjob(const struct jobset_spec *spec, struct str name)
{
    for (size_t i = 0; i < spec->rjob_count; i++) {
        if (str_equal(spec->rjobs[i].name, name))
            return &spec->rjobs[i];
    }
    return NULL;
}

static void validate_endpoint(struct check *check, const struct doc *node, const struct field_path *path)
{
    struct str endpoint = check->spec->coordinator;
    if (endpoint.len > 0 && !name_is_label_value(endpoint))
        path_invalid(
            check->errors, path, node, endpoint,
            endpoint.len > 63
                ? "the coordinator endpoint \"<jobset>-<replicatedJob>-<jobIndex>-<podIndex>.<subdomain>\" "
                  "is put into a label and must be no more than 63 bytes"
                : WHY_LABEL_VALUE);
}

static void validate_coordinator(struct check *check, const struct field_path *path)
{
    const struct doc *node = doc_get(check->node, "coordinator"), *name = doc_get(node, "replicatedJob");
    const struct doc *job = doc_get(node, "jobIndex"), *pod = doc_get(node, "podIndex");
    struct field_errors *errors = check->errors;
    char why[96];
    if (!node || node->kind != DOC_OBJECT)
        return;
    const struct rjob_spec *rjob = find_rjob(check->spec, doc_str(name, STR("")));
    if (!rjob) {
        path_invalid(errors, AT(path, "replicatedJob"), name, doc_str(name, STR("")),
                     "coordinator replicatedJob does not exist");
        return;
    }
    if (doc_int(job, 0) < 0 || doc_int(job, 0) >= rjob->replicas) {
        snprintf(why, sizeof why, "coordinator job index must be at least 0 and less than replicas, %d",
                 (int)rjob->replicas);
        path_invalid_int(errors, AT(path, "jobIndex"), job, doc_int(job, 0), why);
    }
    if (!rjob->job.indexed || rjob->job.completions < 0) {
        path_invalid(
            errors, AT(path, "replicatedJob"), name, rjob->name,
            "job for coordinator must be indexed completion mode, and completions number must be set");
    } else if (doc_int(pod, 0) < 0 || doc_int(pod, 0) >= rjob->job.completions) {
        snprintf(why, sizeof why, "coordinator pod index must be at least 0 and less than completions, %d",
                 (int)rjob->job.completions);
        path_invalid_int(errors, AT(path, "podIndex"), pod, doc_int(pod, 0), why);
    }
    validate_endpoint(check, node, path);
}

/* "<DNS subdomain>/<path>" */
static bool is_domain_path(struct str text)
{
    struct str domain, path;
    if (!str_cut(text, '/', &domain, &path) || !name_is_dns1123_subdomain(domain) || path.len == 0)
        return false;
    for (size_t i = 0; i < path.len; i++) {
        char c = path.data[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!plain && (c == 0 || !strchr("/-._~%!$&'()*+,;=:", c)))
            return false;
    }
    return true;
}

void validate_managed_by(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    struct str text = doc_str(node, STR(""));
    if (!node || node->kind != DOC_STRING)
        return;
    if (!is_domain_path(text))
        path_invalid(errors, path, node, text, "must be a domain-prefixed path (such as \"acme.io/foo\")");
    if (text.len > 63)
        path_error(errors, path, "FieldValueTooLong", node, "Too long: may not be more than 63 bytes");
}

void jobset_validate(const struct doc *object, const struct jobset_spec *spec, struct field_errors *errors)
{
    CHECK(object && spec && errors && errors->arena);
    CHECK(doc_len(doc_path(object, "spec", "replicatedJobs", NULL)) == spec->rjob_count); /* read from it */
    struct str prefix = doc_str(doc_path(object, "metadata", "generateName", NULL), STR(""));
    struct check check = {.errors = errors, .object = object, .node = doc_get(object, "spec"), .spec = spec};
    const struct field_path *path = AT(NULL, "spec");
    check.name = doc_str(doc_path(object, "metadata", "name", NULL), STR(""));
    if (check.name.len == 0 && prefix.len > 0)
        check.name = arena_printf(errors->arena, STR_FORMAT "abcde", STR_ARG(prefix));
    validate_object_meta(&check);
    validate_topology(doc_get(object, "metadata"), AT(NULL, "metadata"), errors);
    for (size_t i = 0; i < spec->rjob_count; i++)
        validate_rjob(&check, i, AT_INDEX(AT(path, "replicatedJobs"), i));
    validate_task_count(&check, path);
    validate_network(&check, path);
    validate_policies(check.node, spec, path, errors);
    validate_coordinator(&check, AT(path, "coordinator"));
    validate_managed_by(doc_get(check.node, "managedBy"), AT(path, "managedBy"), errors);
    validate_min(doc_get(check.node, "ttlSecondsAfterFinished"), 0, AT(path, "ttlSecondsAfterFinished"),
                 errors);
    validate_claims(check.node, check.name, path, errors);
}
