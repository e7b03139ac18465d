/* validate_policies.c - success, failure and startup policies and dependsOn. Words as in jobset's webhook
 * if it has some; in contrast to it, every error has the path of the field. */
#include "core/spec/validate.h"

#include <stdio.h>

enum { RULE_NAME_BYTES_MAX = 128, SINGLE_RESTART_REPLICAS_MAX = 1024 };

static size_t rjob_index(const struct jobset_spec *spec, struct str name)
{
    CHECK(spec->rjobs || spec->rjob_count == 0);
    for (size_t i = 0; i < spec->rjob_count; i++) {
        if (str_equal(spec->rjobs[i].name, name))
            return i;
    }
    return spec->rjob_count;
}

static void validate_targets(const struct doc *names, const struct jobset_spec *spec, const char *where,
                             const struct field_path *path, struct field_errors *errors)
{
    for (size_t i = 0; i < doc_len(names); i++) {
        const struct doc *item = doc_at(names, i);
        struct str name = doc_str(item, STR(""));
        if (rjob_index(spec, name) < spec->rjob_count)
            continue;
        struct str why = arena_printf(errors->arena,
                                      "invalid replicatedJob name '" STR_FORMAT
                                      "'%s does not appear in .spec.ReplicatedJobs",
                                      (int)(name.len < 256 ? name.len : 256), name.data, where);
        path_invalid(errors, AT_INDEX(path, i), item, name, why.data);
    }
}

/* --- failure policy ------------------------------------------------------------------------------------- */
/* ^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$ */
static bool is_rule_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        char c = name.data[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        bool inside = letter || (c >= '0' && c <= '9') || c == '_';
        if (i == 0 ? !letter : i == name.len - 1 ? !inside : !inside && c != ',' && c != ':')
            return false;
    }
    return name.len > 0;
}

static void validate_rule_name(const struct doc *rules, const struct jobset_spec *spec, size_t index,
                               const struct field_path *path, struct field_errors *errors)
{
    CHECK(index < spec->rule_count && doc_len(rules) == spec->rule_count);
    const struct doc *node = doc_get(doc_at(rules, index), "name");
    struct str name = spec->rules[index].name;
    char why[160];
    if (name.len < 1 || name.len > RULE_NAME_BYTES_MAX) {
        snprintf(why, sizeof why,
                 "invalid failure policy rule name of length %zu, the rule name must be of length at least 1 "
                 "and at "
                 "most %d",
                 name.len, (int)RULE_NAME_BYTES_MAX);
        path_invalid(errors, path, node, name, why);
    } else if (!is_rule_name(name)) {
        path_invalid(
            errors, path, node, name,
            "a failure policy rule name must start with an alphabetic character, optionally followed by a "
            "string of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'");
    }
    for (size_t i = 0; i < index; i++) {
        if (str_equal(spec->rules[i].name, name)) {
            path_duplicate(errors, path, node, name);
            break;
        }
    }
}

bool jobset_restarts_jobs(const struct jobset_spec *spec)
{
    for (size_t i = 0; i < spec->rule_count; i++) {
        if (spec->rules[i].action == FAILURE_RESTART_JOB ||
            spec->rules[i].action == FAILURE_RESTART_JOB_IGNORE_MAX)
            return true;
    }
    return false;
}

/* Checks a Job of a JobSet with InPlaceRestart: its own rules may neither fail nor replace its tasks. */
static void validate_in_place(const struct doc *rjob, const struct job_spec *job,
                              const struct field_path *path, struct field_errors *errors)
{
    const struct doc *spec = doc_path(rjob, "template", "spec", NULL);
    const struct doc *backoff = doc_get(spec, "backoffLimit"), *parallelism = doc_get(spec, "parallelism");
    const struct doc *replacement = doc_get(spec, "podReplacementPolicy"),
                     *completions = doc_get(spec, "completions");
    const struct field_path *here = AT(AT(path, "template"), "spec");
    if (job->backoff_limit != INT32_MAX)
        path_invalid_int(errors, AT(here, "backoffLimit"), backoff ? backoff : spec, job->backoff_limit,
                         "must be 2147483647 when the restart strategy is InPlaceRestart");
    if (!str_is(doc_str(replacement, STR("")), "Failed"))
        path_invalid(errors, AT(here, "podReplacementPolicy"), replacement ? replacement : spec,
                     doc_str(replacement, STR("")),
                     "must be Failed when the restart strategy is InPlaceRestart");
    if (doc_int(parallelism, -1) < 0 || doc_int(completions, -1) != doc_int(parallelism, -1))
        path_invalid_int(errors, AT(here, "completions"), completions ? completions : spec, job->completions,
                         "completions and parallelism must be set and equal when the restart strategy is "
                         "InPlaceRestart");
}

static void validate_failure_policy(const struct doc *node, const struct jobset_spec *spec,
                                    const struct field_path *path, struct field_errors *errors)
{
    static const char reasons[] =
        "BackoffLimitExceeded,DeadlineExceeded,FailedIndexes,MaxFailedIndexesExceeded,PodFailurePolicy";
    const struct doc *rules = doc_path(node, "failurePolicy", "rules", NULL),
                     *rjobs = doc_get(node, "replicatedJobs");
    for (size_t i = 0; i < spec->rule_count; i++) {
        const struct field_path *here = AT_INDEX(AT(AT(path, "failurePolicy"), "rules"), i);
        const struct doc *rule = doc_at(rules, i), *list = doc_get(rule, "onJobFailureReasons");
        validate_rule_name(rules, spec, i, AT(here, "name"), errors);
        for (size_t k = 0; k < doc_len(list); k++) {
            struct str reason = doc_str(doc_at(list, k), STR(""));
            if (!path_one_of(reason, reasons))
                path_unsupported(errors, AT_INDEX(AT(here, "onJobFailureReasons"), k), doc_at(list, k),
                                 reason, reasons);
        }
        validate_targets(doc_get(rule, "targetReplicatedJobs"), spec, " in failure policy",
                         AT(here, "targetReplicatedJobs"), errors);
    }
    CHECK(doc_len(rjobs) == spec->rjob_count);
    bool single = jobset_restarts_jobs(spec);
    for (size_t i = 0; i < spec->rjob_count; i++) {
        const struct field_path *here = AT_INDEX(AT(path, "replicatedJobs"), i);
        const struct doc *rjob = doc_at(rjobs, i);
        if (single && spec->rjobs[i].replicas > SINGLE_RESTART_REPLICAS_MAX)
            path_invalid_int(
                errors, AT(here, "replicas"), doc_get(rjob, "replicas"), spec->rjobs[i].replicas,
                "must be less than or equal to 1024 when a failure policy rule restarts single jobs");
        if (spec->has_failure_policy && spec->strategy == RESTART_IN_PLACE)
            validate_in_place(rjob, &spec->rjobs[i].job, here, errors);
    }
}

/* --- startup order -------------------------------------------------------------------------------------- */
/* Checks a dependency. Refuses one of a replicated job on itself, which upstream accepts and never starts. */
static void validate_dependency(const struct doc *item, const struct jobset_spec *spec, size_t self,
                                const struct field_path *path, struct field_errors *errors)
{
    const struct doc *node = doc_get(item, "name");
    struct str name = doc_str(node, STR(""));
    CHECK(self > 0 && self < spec->rjob_count); /* the first one has no dependency */
    size_t index = rjob_index(spec, name);
    if (index == self) {
        path_invalid(errors, path, node, name, "a replicatedJob cannot depend on itself");
    } else if (index == spec->rjob_count) {
        struct str quoted = path_quote(errors->arena, name);
        path_error(errors, path, "FieldValueNotFound", node, "Not found: " STR_FORMAT, STR_ARG(quoted));
    } else if (index > self) {
        path_invalid(errors, path, node, name,
                     "a replicatedJob can depend only on replicatedJobs listed before it");
    }
}

static void validate_depends(const struct doc *node, const struct jobset_spec *spec,
                             const struct field_path *path, struct field_errors *errors)
{
    const struct doc *rjobs = doc_get(node, "replicatedJobs");
    for (size_t i = 0; i < spec->rjob_count; i++) {
        const struct doc *list = doc_get(doc_at(rjobs, i), "dependsOn");
        const struct field_path *here = AT(AT_INDEX(path, i), "dependsOn");
        if (doc_len(list) == 0)
            continue;
        if (i == 0)
            path_forbidden(errors, here, list, "dependsOn can't be set for the first replicatedJob");
        if (spec->in_order)
            path_forbidden(errors, here, list, "StartupPolicy and DependsOn APIs are mutually exclusive");
        for (size_t k = 0; i > 0 && k < doc_len(list); k++)
            validate_dependency(doc_at(list, k), spec, i, AT(AT_INDEX(here, k), "name"), errors);
    }
}

void validate_policies(const struct doc *spec_node, const struct jobset_spec *spec,
                       const struct field_path *path, struct field_errors *errors)
{
    validate_targets(doc_path(spec_node, "successPolicy", "targetReplicatedJobs", NULL), spec, "",
                     AT(AT(path, "successPolicy"), "targetReplicatedJobs"), errors);
    validate_failure_policy(spec_node, spec, path, errors);
    validate_depends(spec_node, spec, AT(path, "replicatedJobs"), errors);
}
