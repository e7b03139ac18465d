/* validate_job.c - Job templates: counts, completion mode, podFailurePolicy. Wording as in kubernetes'
 * pkg/apis/batch/validation. */
#include "core/spec/read.h"
#include "core/spec/validate.h"

static void validate_exit_codes(const struct doc *node, const struct field_path *path,
                                struct field_errors *errors)
{
    const struct doc *values = doc_get(node, "values");
    const struct field_path *list = AT(path, "values");
    bool in = str_is(doc_str(doc_get(node, "operator"), STR("")), "In");
    if (doc_len(values) == 0)
        path_invalid(errors, list, values, STR(""), "at least one value is required");
    for (size_t i = 0; i < doc_len(values); i++) {
        const struct doc *value = doc_at(values, i);
        CHECK(value->kind == DOC_INT); /* types have been checked */
        if (in && value->integer == 0)
            path_invalid_int(errors, AT_INDEX(list, i), value, 0, "must not be 0 for the In operator");
        else if (value->integer < 0)
            path_invalid_int(errors, AT_INDEX(list, i), value, value->integer, WHY_NOT_NEGATIVE);
        if (i > 0 && doc_at(values, i - 1)->integer > value->integer) {
            path_error(errors, list, "FieldValueInvalid", values,
                       "Invalid value: \"array\": must be ordered");
            return;
        }
    }
}

static void validate_failure_rule(const struct doc *rule, const struct job_spec *job,
                                  const struct field_path *path, struct field_errors *errors)
{
    const struct doc *codes = doc_get(rule, "onExitCodes"), *conditions = doc_get(rule, "onPodConditions");
    const struct doc *action = doc_get(rule, "action");
    bool has_codes = codes && codes->kind == DOC_OBJECT;
    if (has_codes && doc_len(conditions) > 0)
        path_error(
            errors, path, "FieldValueInvalid", rule,
            "Invalid value: \"object\": specifying both OnExitCodes and OnPodConditions is not supported");
    if (!has_codes && doc_len(conditions) == 0)
        path_error(
            errors, path, "FieldValueInvalid", rule,
            "Invalid value: \"object\": specifying one of OnExitCodes and OnPodConditions is required");
    if (has_codes)
        validate_exit_codes(codes, AT(path, "onExitCodes"), errors);
    for (size_t i = 0; i < doc_len(conditions); i++) {
        const struct doc *status = doc_get(doc_at(conditions, i), "status");
        if (doc_str(status, STR("")).len > 0 && !path_one_of(status->text, "True,False,Unknown"))
            path_unsupported(errors, AT(AT_INDEX(AT(path, "onPodConditions"), i), "status"), status,
                             status->text, "False,True,Unknown");
    }
    CHECK(action && action->kind == DOC_STRING); /* required */
    if (str_is(doc_str(action, STR("")), "FailIndex") && job->backoff_limit_per_index < 0)
        path_invalid(errors, AT(path, "action"), action, action->text,
                     "requires the backoffLimitPerIndex to be set");
}

static void validate_failure_policy(const struct doc *spec, const struct job_spec *job,
                                    const struct field_path *path, struct field_errors *errors)
{
    const struct doc *policy = doc_get(spec, "podFailurePolicy"), *rules = doc_get(policy, "rules");
    const struct doc *replacement = doc_get(spec, "podReplacementPolicy");
    if (!policy || policy->kind != DOC_OBJECT)
        return;
    for (size_t i = 0; i < doc_len(rules); i++)
        validate_failure_rule(doc_at(rules, i), job, AT_INDEX(AT(AT(path, "podFailurePolicy"), "rules"), i),
                              errors);
    if (doc_str(replacement, STR("")).len > 0 && !str_is(replacement->text, "Failed"))
        path_unsupported(errors, AT(path, "podReplacementPolicy"), replacement, replacement->text, "Failed");
}

/* Checks that restartPolicy is OnFailure or Never, and Never where other fields of the Job need it. */
static void validate_restart_policy(const struct doc *spec, const struct job_spec *job,
                                    const struct field_path *path, struct field_errors *errors)
{
    const struct doc *policy = doc_path(spec, "template", "spec", "restartPolicy", NULL);
    const struct field_path *here = AT(AT(AT(path, "template"), "spec"), "restartPolicy");
    struct str text = doc_str(policy, STR("OnFailure"));
    const struct doc *failure = doc_get(spec, "podFailurePolicy");
    if (job->pod.restart_policy == RESTART_ALWAYS)
        path_unsupported(errors, here, policy, text, "OnFailure,Never");
    else if (job->pod.restart_policy != RESTART_NEVER && failure && failure->kind == DOC_OBJECT)
        path_invalid(errors, here, policy, text,
                     "only \"Never\" is supported when podFailurePolicy is specified");
    else if (job->pod.restart_policy != RESTART_NEVER && job->backoff_limit_per_index >= 0)
        path_invalid(errors, here, policy, text,
                     "only \"Never\" is supported when backoffLimitPerIndex is specified");
}

void validate_success_policy(const struct doc *spec, const struct job_spec *job,
                             const struct field_path *path, struct field_errors *errors)
{
    const struct doc *policy = doc_get(spec, "successPolicy"), *rules = doc_get(policy, "rules");
    const struct field_path *list = AT(AT(path, "successPolicy"), "rules");
    if (!policy || policy->kind != DOC_OBJECT)
        return;
    if (!job->indexed)
        path_invalid(errors, AT(path, "successPolicy"), policy, STR("object"),
                     "requires indexed completion mode");
    if (doc_len(rules) == 0)
        path_required(errors, list, policy, "at least one rules must be specified when the successPolicy is "
                                            "specified");
    for (size_t i = 0; i < doc_len(rules); i++) {
        const struct doc *rule = doc_at(rules, i), *indexes = doc_get(rule, "succeededIndexes");
        const struct doc *count = doc_get(rule, "succeededCount");
        CHECK(i < job->success_rule_count); /* read from the same document */
        const struct job_success_rule *read = &job->success_rules[i];
        const struct field_path *here = AT_INDEX(list, i);
        struct str text = doc_str(indexes, STR(""));
        struct index_range *ranges;
        size_t range_count = 0;
        if (text.len == 0 && !(count && count->kind == DOC_INT))
            path_required(errors, here, rule, "at least one of succeededCount or succeededIndexes must be "
                                              "specified");
        if (!read_ranges(errors->arena, text, &ranges, &range_count)) {
            path_invalid(errors, AT(here, "succeededIndexes"), indexes, text,
                         "must be ascending numbers and intervals such as \"1,3-5,7\"");
            continue;
        }
        int64_t all = 0;
        for (size_t r = 0; r < range_count; r++) {
            CHECK(ranges[r].first >= 0 && ranges[r].first <= ranges[r].last);
            all += (int64_t)ranges[r].last - ranges[r].first + 1;
        }
        if (range_count > 0 && job->completions >= 0 && ranges[range_count - 1].last >= job->completions)
            path_invalid(errors, AT(here, "succeededIndexes"), indexes, text,
                         "too large index: must be less than completions");
        validate_min(count, 0, AT(here, "succeededCount"), errors);
        if (job->completions >= 0 && read->count > job->completions && read->count != INT32_MAX)
            path_invalid_int(errors, AT(here, "succeededCount"), count, read->count,
                             "must be less than or equal to completions");
        else if (range_count > 0 && count && count->kind == DOC_INT && count->integer > all)
            path_invalid_int(errors, AT(here, "succeededCount"), count, count->integer,
                             "must be less than or equal to the number of indexes in the specified "
                             "succeededIndexes field");
    }
}

static void validate_per_index(const struct doc *spec, const struct job_spec *job,
                               const struct field_path *path, struct field_errors *errors)
{
    const struct doc *limit = doc_get(spec, "backoffLimitPerIndex"),
                     *failed = doc_get(spec, "maxFailedIndexes");
    if (job->backoff_limit_per_index >= 0 && !job->indexed)
        path_invalid_int(errors, AT(path, "backoffLimitPerIndex"), limit, job->backoff_limit_per_index,
                         "requires indexed completion mode");
    if (job->max_failed_indexes < 0)
        return;
    if (job->backoff_limit_per_index < 0)
        path_required(errors, AT(path, "backoffLimitPerIndex"), failed, "when maxFailedIndexes is specified");
    if (job->completions >= 0 && job->max_failed_indexes > job->completions)
        path_invalid_int(errors, AT(path, "maxFailedIndexes"), failed, job->max_failed_indexes,
                         "must be less than or equal to completions");
}

void validate_job_spec(const struct doc *spec, const struct job_spec *job, const struct field_path *here,
                       struct field_errors *errors)
{
    static const char *const counts[] = {
        "parallelism",      "completions",           "backoffLimit",           "backoffLimitPerIndex",
        "maxFailedIndexes", "activeDeadlineSeconds", "ttlSecondsAfterFinished"};
    const struct doc *completions = doc_get(spec, "completions");
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        validate_min(doc_get(spec, counts[i]), 0, AT(here, counts[i]), errors);
    if (job->indexed && job->completions < 0 && (!completions || completions->kind == DOC_NULL))
        path_required(errors, AT(here, "completions"), doc_get(spec, "parallelism"),
                      "when completion mode is Indexed");
    validate_per_index(spec, job, here, errors);
    validate_failure_policy(spec, job, here, errors);
    validate_restart_policy(spec, job, here, errors);
    validate_pod(doc_get(spec, "template"), AT(here, "template"), errors);
}

void validate_job(const struct doc *job_template, const struct job_spec *job, const struct field_path *path,
                  struct field_errors *errors)
{
    const struct doc *spec = doc_get(job_template, "spec");
    const struct field_path *here = AT(path, "spec");
    validate_meta(doc_get(job_template, "metadata"), AT(path, "metadata"), errors);
    validate_spares(doc_get(job_template, "metadata"), AT(path, "metadata"), errors);
    if (spec && spec->kind == DOC_OBJECT)
        validate_job_spec(spec, job, here, errors);
    else
        path_required(errors, AT(here, "template"), job_template, NULL);
}
