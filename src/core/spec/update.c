/* update.c - the rules for changes of an existing JobSet (jobset's ValidateUpdate and the CRD's `self ==
 * oldSelf` rules).
 *
 * Mutable are
 *   - always: metadata, suspend, coordinator, ttlSecondsAfterFinished;
 *   - while the JobSet is or becomes suspended: spec.scheduling and, in pod templates, labels, annotations,
 *     nodeSelector, tolerations, schedulingGates, and requests and limits of containers (unless the JobSet
 *     holds quota: workload_validate_resources_kept);
 *   - with the annotation phalanx.dev/elastic: parallelism and completions of Indexed Jobs, together.
 * All other fields must mean the same as before. Each difference is reported at its place, as deep as
 * possible. Fields that the schema does not know are not compared, because no code acts on them.
 */
#include "base/check.h"
#include "core/spec/schema.h"
#include "core/spec/validate.h"

struct compare {
    struct field_errors *errors;
    bool suspended;
    bool elastic; /* parallelism and completions of Indexed Jobs may change together */
};

static void report_change(const struct compare *compare, const struct doc *changed,
                          const struct field_path *path)
{
    static const char why[] = "field is immutable";
    if (!changed || changed->kind == DOC_NULL)
        path_error(compare->errors, path, "FieldValueInvalid", changed, "Invalid value: null: %s", why);
    else if (changed->kind == DOC_STRING)
        path_invalid(compare->errors, path, changed, changed->text, why);
    else if (changed->kind == DOC_INT)
        path_invalid_int(compare->errors, path, changed, changed->integer, why);
    else if (changed->kind == DOC_BOOL)
        path_error(compare->errors, path, "FieldValueInvalid", changed, "Invalid value: %s: %s",
                   changed->boolean ? "true" : "false", why);
    else
        path_error(compare->errors, path, "FieldValueInvalid", changed, "Invalid value: \"%s\": %s",
                   doc_kind_name(changed->kind), why);
}

/* Returns whether the field may change: of a pod template while suspended, or a size of an elastic Job. */
static bool is_masked(const struct compare *compare, const struct schema *outer, const struct schema *schema,
                      const char *field)
{
    if (compare->elastic && schema == &schema_job_spec)
        return path_one_of(str_from(field), "parallelism,completions");
    if (!compare->suspended)
        return false;
    if (outer == &schema_container && schema == &schema_resources)
        return path_one_of(str_from(field), "requests,limits");
    if (schema == &schema_pod_spec)
        return path_one_of(str_from(field), "nodeSelector,tolerations,schedulingGates");
    return outer == &schema_pod_template && schema == &schema_embedded_meta &&
           path_one_of(str_from(field), "labels,annotations");
}

static void compare_field(const struct compare *compare, const struct schema *outer,
                          const struct schema_field *field, const struct doc *old, const struct doc *changed,
                          const struct field_path *path);

/* Compares two objects field by field. NULL is an object without members, so an absent metadata can be
 * compared with one that is present. */
static void compare_object(const struct compare *compare, const struct schema *outer,
                           const struct schema *schema, const struct doc *old, const struct doc *changed,
                           const struct field_path *path)
{
    CHECK(compare->errors->arena && schema->fields);
    for (const struct schema_field *field = schema->fields; field->name; field++) {
        if (!is_masked(compare, outer, schema, field->name))
            compare_field(compare, schema, field, doc_get(old, field->name), doc_get(changed, field->name),
                          AT(path, field->name));
    }
}

static bool is_kind(const struct doc *node, enum doc_kind kind)
{
    return node && node->kind == kind;
}

static void compare_field(const struct compare *compare, const struct schema *outer,
                          const struct schema_field *field, const struct doc *old, const struct doc *changed,
                          const struct field_path *path)
{
    if (schema_equal(field, old, changed))
        return;
    CHECK(old || changed); /* both absent are equal */
    CHECK(field->kind != SCHEMA_OBJECT || field->object);
    if (field->kind == SCHEMA_OBJECT && field->list == SCHEMA_SINGLE) {
        /* An absent metadata or resources is compared as an empty one, so the mask applies to its fields. */
        bool split = field->object == &schema_embedded_meta ||
                     (compare->suspended && field->object == &schema_resources);
        if (split || (is_kind(old, DOC_OBJECT) && is_kind(changed, DOC_OBJECT))) {
            compare_object(compare, outer, field->object, old, changed, path);
            return;
        }
    } else if (field->kind == SCHEMA_OBJECT && is_kind(old, DOC_ARRAY) && is_kind(changed, DOC_ARRAY) &&
               old->array.len == changed->array.len) {
        for (size_t i = 0; i < old->array.len; i++)
            compare_object(compare, outer, field->object, old->array.items[i], changed->array.items[i],
                           AT_INDEX(path, i));
        return;
    }
    report_change(compare, changed, path);
}

void validate_unchanged(const struct schema *schema, const char *field, const struct doc *old,
                        const struct doc *changed, const struct field_path *path, struct field_errors *errors)
{
    struct compare compare = {.errors = errors};
    const struct schema_field *row = schema_field_of(schema, str_from(field));
    CHECK(row);
    compare_field(&compare, schema, row, doc_get(old, field), doc_get(changed, field), AT(path, field));
}

/* Reports a change of a Job's template. Until the Job has run once, the fields that place its pods may
 * change. As in Kubernetes, the message is about the template as a whole; it also names the place within. */
static void compare_job_template(const struct doc *old, const struct doc *changed, bool started,
                                 const struct field_path *path, struct field_errors *errors)
{
    struct field_errors found = {.arena = errors->arena};
    struct compare compare = {.errors = &found, .suspended = !started};
    const struct schema_field *row = schema_field_of(&schema_job_spec, STR("template"));
    compare_field(&compare, &schema_job_spec, row, doc_get(old, "template"), doc_get(changed, "template"),
                  AT(path, "template"));
    if (found.list.len)
        path_error(errors, AT(path, "template"), "FieldValueInvalid", doc_get(changed, "template"),
                   "Invalid value: \"object\": field is immutable (" STR_FORMAT ")",
                   STR_ARG(found.list.items[0].path));
    field_errors_done(&found);
}

void validate_job_update(const struct doc *old_object, const struct doc *object, bool started,
                         struct field_errors *errors)
{
    static const char *const fixed[] = {"selector",       "manualSelector",       "completionMode",
                                        "podFailurePolicy", "backoffLimitPerIndex", "managedBy",
                                        "successPolicy"};
    const struct doc *old = doc_get(old_object, "spec"), *changed = doc_get(object, "spec");
    const struct doc *completions = doc_get(changed, "completions");
    const struct field_path *path = AT(NULL, "spec");
    bool indexed = str_is(doc_str(doc_get(changed, "completionMode"), STR("")), "Indexed");
    int64_t before = doc_int(doc_get(old, "completions"), -1), after = doc_int(completions, -1);
    bool elastic = indexed && before >= 0 && after >= 0;
    if (elastic && before != after && after != doc_int(doc_get(changed, "parallelism"), -1))
        path_invalid_int(errors, AT(path, "completions"), completions, after,
                         "can only be modified in tandem with spec.parallelism");
    else if (!elastic)
        validate_unchanged(&schema_job_spec, "completions", old, changed, path, errors);
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        validate_unchanged(&schema_job_spec, fixed[i], old, changed, path, errors);
    compare_job_template(old, changed, started || !doc_bool(doc_get(old, "suspend"), false), path, errors);
}

/* Returns whether the containers differ at most in their images. */
static bool same_containers(const struct schema *schema, const struct doc *old, const struct doc *changed)
{
    if (doc_len(old) != doc_len(changed))
        return false;
    for (size_t i = 0; i < doc_len(old); i++)
        for (const struct schema_field *field = schema->fields; field->name; field++)
            if (!str_is(str_from(field->name), "image") &&
                !schema_equal(field, doc_get(doc_at(old, i), field->name),
                              doc_get(doc_at(changed, i), field->name)))
                return false;
    return true;
}

/* Returns whether `all` contains every item of `some`. */
static bool holds_all(const struct doc *all, const struct doc *some)
{
    for (size_t i = 0; i < doc_len(some); i++) {
        bool found = false;
        for (size_t k = 0; k < doc_len(all) && !found; k++)
            found = doc_equal(doc_at(some, i), doc_at(all, k));
        if (!found)
            return false;
    }
    return true;
}

static bool has_gate(const struct doc *gates, struct str name)
{
    for (size_t i = 0; i < doc_len(gates); i++)
        if (str_equal(doc_str(doc_get(doc_at(gates, i), "name"), STR("")), name))
            return true;
    return false;
}

void validate_gates_kept(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    const struct field_path *path = AT(AT(NULL, "spec"), "schedulingGates");
    if (changed && changed->kind != DOC_ARRAY && changed->kind != DOC_NULL)
        path_invalid(errors, path, changed, STR(""), "must be a list of objects with a name");
    for (size_t i = 0; changed && changed->kind == DOC_ARRAY && i < doc_len(changed); i++) {
        struct str name = doc_str(doc_get(doc_at(changed, i), "name"), STR(""));
        if (!has_gate(old, name))
            path_error(errors, path, "FieldValueForbidden", changed,
                       "Forbidden: only deletion is allowed, but found new scheduling gate '" STR_FORMAT "'",
                       STR_ARG(name));
    }
}

void validate_pod_update(const struct doc *old_object, const struct doc *object, struct field_errors *errors)
{
    const struct doc *old = doc_get(old_object, "spec"), *changed = doc_get(object, "spec");
    bool same = true;
    validate_gates_kept(doc_get(old, "schedulingGates"), doc_get(changed, "schedulingGates"), errors);
    for (const struct schema_field *field = schema_pod_spec.fields; field->name && same; field++) {
        const struct doc *a = doc_get(old, field->name), *b = doc_get(changed, field->name);
        struct str name = str_from(field->name);
        if (path_one_of(name, "containers,initContainers"))
            same = same_containers(&schema_container, a, b);
        else if (str_is(name, "tolerations")) /* more may come */
            same = holds_all(b, a);
        else if (str_is(name, "activeDeadlineSeconds")) /* it may be set, and lowered */
            same = doc_int(a, INT32_MAX) >= doc_int(b, INT64_MAX) || schema_equal(field, a, b);
        else if (str_is(name, "schedulingGates"))
            continue;
        else
            same = schema_equal(field, a, b);
    }
    if (!same)
        path_forbidden(errors, AT(NULL, "spec"), changed,
                       "pod updates may not change fields other than `spec.containers[*].image`,"
                       "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only "
                       "additions to existing tolerations),`spec.terminationGracePeriodSeconds` (allow it to "
                       "be set to 1 if it was previously negative)");
}

void workload_validate_resources_kept(const struct doc *old, const struct doc *changed,
                                      struct field_errors *errors)
{
    static const char *const lists[] = {"containers", "initContainers"};
    const struct schema_field *row = schema_field_of(&schema_container, STR("resources"));
    const struct doc *rjobs = doc_path(changed, "spec", "replicatedJobs", NULL);
    enum form form = workload_form(changed);
    for (size_t r = 0; r < (form == FORM_JOBSET ? doc_len(rjobs) : 1); r++) {
        const struct field_path *list = AT(AT(NULL, "spec"), "replicatedJobs");
        const struct field_path *job = form == FORM_JOBSET ? AT(AT_INDEX(list, r), "template") : NULL;
        const struct field_path *pod = AT(AT(AT(job, "spec"), "template"), "spec");
        const struct doc *before = doc_get(workload_pod_template(old, r), "spec");
        const struct doc *after = doc_get(workload_pod_template(changed, r), "spec");
        for (size_t l = 0; l < 2; l++)
            for (size_t i = 0; i < doc_len(doc_get(after, lists[l])); i++) {
                const struct doc *was = doc_get(doc_at(doc_get(before, lists[l]), i), "resources");
                const struct doc *is = doc_get(doc_at(doc_get(after, lists[l]), i), "resources");
                if (!schema_equal(row, was, is))
                    path_forbidden(errors, AT(AT_INDEX(AT(pod, lists[l]), i), "resources"), is,
                                   "may only change while the workload is suspended, holds no quota, and, "
                                   "of a Job, all of its pods have ended");
            }
    }
}

static bool is_elastic(const struct doc *object)
{
    const struct doc *annotations = doc_path(object, "metadata", "annotations", NULL);
    return str_is(doc_str(doc_get(annotations, "phalanx.dev/elastic"), STR("")), "true");
}

/* Checks that each Job with a changed size is Indexed, with equal parallelism and completions. */
static void check_sizes(const struct doc *old_spec, const struct doc *spec, struct field_errors *errors)
{
    const struct doc *before = doc_get(old_spec, "replicatedJobs"), *after = doc_get(spec, "replicatedJobs");
    const struct field_path *list = AT(AT(NULL, "spec"), "replicatedJobs");
    for (size_t i = 0; i < doc_len(after) && i < doc_len(before); i++) {
        const struct doc *old = doc_path(doc_at(before, i), "template", "spec", NULL);
        const struct doc *job = doc_path(doc_at(after, i), "template", "spec", NULL);
        const struct doc *completions = doc_get(job, "completions");
        const struct field_path *path = AT(AT(AT_INDEX(list, i), "template"), "spec");
        int64_t size = doc_int(completions, -1), parallel = doc_int(doc_get(job, "parallelism"), -1);
        if (size == doc_int(doc_get(old, "completions"), -1) &&
            parallel == doc_int(doc_get(old, "parallelism"), -1))
            continue;
        if (size < 1 || size != parallel || doc_int(doc_get(old, "completions"), -1) < 1 ||
            !str_is(doc_str(doc_get(job, "completionMode"), STR("")), "Indexed"))
            path_invalid_int(errors, AT(path, "completions"), completions ? completions : job, size,
                             "completions and parallelism of an elastic, Indexed Job must be at least 1 and "
                             "equal to each other");
    }
}

void jobset_validate_sizes_kept(const struct doc *old, const struct doc *changed,
                                struct field_errors *errors)
{
    const struct doc *before = doc_path(old, "spec", "replicatedJobs", NULL);
    const struct doc *after = doc_path(changed, "spec", "replicatedJobs", NULL);
    for (size_t i = 0; i < doc_len(after) && i < doc_len(before); i++) {
        const struct doc *was = doc_path(doc_at(before, i), "template", "spec", NULL);
        const struct doc *is = doc_path(doc_at(after, i), "template", "spec", NULL);
        if (doc_int(doc_get(was, "parallelism"), -1) != doc_int(doc_get(is, "parallelism"), -1) ||
            doc_int(doc_get(was, "completions"), -1) != doc_int(doc_get(is, "completions"), -1))
            path_forbidden(errors,
                           AT(AT(AT_INDEX(AT(AT(NULL, "spec"), "replicatedJobs"), i), "template"), "spec"),
                           is,
                           "cannot mutate parallelism or completions when JobSet is in a terminal state "
                           "(Completed or Failed)");
    }
}

void jobset_validate_update(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *old_spec = doc_get(old, "spec"), *spec = doc_get(changed, "spec");
    struct compare compare = {
        .errors = errors,
        .suspended =
            doc_bool(doc_get(old_spec, "suspend"), false) || doc_bool(doc_get(spec, "suspend"), false),
        .elastic = is_elastic(changed),
    };
    if (compare.elastic)
        check_sizes(old_spec, spec, errors);
    for (const struct schema_field *field = schema_jobset_spec.fields; field->name; field++) {
        if (path_one_of(str_from(field->name), "suspend,coordinator,ttlSecondsAfterFinished"))
            continue;
        if (compare.suspended && str_is(str_from(field->name), "scheduling"))
            continue;
        compare_field(&compare, &schema_jobset_spec, field, doc_get(old_spec, field->name),
                      doc_get(spec, field->name), AT(AT(NULL, "spec"), field->name));
    }
}
