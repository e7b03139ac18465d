/* validate_scheduling.c - rules of a JobSet's spec.scheduling. */
#include "core/words/limits.h"
#include "core/spec/validate.h"

struct check {
    struct field_errors *errors;
    const struct jobset_spec *spec;
    int64_t *tasks; /* [rjob_count] */
    uint8_t *seen;  /* [rjob_count] named by a group */
};

static bool is_object(const struct doc *node)
{
    return node && node->kind == DOC_OBJECT;
}

static void check_policy(const struct check *check, const struct doc *policy, const struct field_path *path,
                         int64_t tasks)
{
    CHECK(tasks >= 0);
    const struct doc *gang = doc_get(policy, "gang"), *least = doc_get(gang, "minCount");
    if (!is_object(policy))
        return;
    if (is_object(gang) == is_object(doc_get(policy, "basic")))
        path_error(check->errors, path, "FieldValueInvalid", policy,
                   "Invalid value: exactly one of gang, basic must be set");
    if (least && least->kind == DOC_INT && (least->integer < 1 || least->integer > tasks))
        path_invalid_int(check->errors, AT(AT(path, "gang"), "minCount"), least, least->integer,
                         "must be at least 1 and at most the number of pods");
}

static void check_topology(const struct check *check, const struct doc *list, const struct field_path *path)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *key = doc_get(item, "key"),
                         *level = doc_get(item, "level");
        const struct doc *named = key ? key : level;
        if (!named)
            path_required(check->errors, AT(AT_INDEX(path, i), "key"), item, NULL);
        else if (!name_is_label_key(doc_str(named, STR(""))))
            path_invalid(check->errors, AT(AT_INDEX(path, i), key ? "key" : "level"), named,
                         doc_str(named, STR("")), WHY_LABEL_KEY);
    }
}

static void check_terms(const struct check *check, const struct doc *node, const struct field_path *path,
                        int64_t tasks)
{
    const struct doc *mode = doc_get(node, "disruptionMode");
    check_policy(check, doc_get(node, "schedulingPolicy"), AT(path, "schedulingPolicy"), tasks);
    check_topology(check, doc_path(node, "schedulingConstraints", "topology", NULL),
                   AT(AT(path, "schedulingConstraints"), "topology"));
    if (mode && mode->kind == DOC_STRING && !path_one_of(mode->text, "Pod,PodGroup,Single,All"))
        path_unsupported(check->errors, AT(path, "disruptionMode"), mode, mode->text,
                         "Pod,PodGroup,Single,All");
}

static bool has_terms(const struct doc *node)
{
    return is_object(doc_get(node, "schedulingPolicy")) ||
           is_object(doc_get(node, "schedulingConstraints")) || doc_get(node, "disruptionMode") ||
           doc_len(doc_get(node, "resourceClaims"));
}

/* Returns the number of tasks of the replicated jobs that the group names. */
static int64_t check_targets(struct check *check, const struct doc *targets, const struct field_path *path,
                             int64_t *ret_job_tasks)
{
    CHECK(typed_as(targets, DOC_ARRAY));
    int64_t tasks = 0;
    for (size_t t = 0; t < doc_len(targets); t++) {
        const struct doc *target = doc_at(targets, t);
        struct str name = doc_str(target, STR(""));
        size_t r = 0;
        while (r < check->spec->rjob_count && !str_equal(check->spec->rjobs[r].name, name))
            r++;
        if (r == check->spec->rjob_count) {
            path_invalid(check->errors, AT_INDEX(path, t), target, name, "is not a replicated job");
            continue;
        }
        if (check->seen[r])
            path_duplicate(check->errors, AT_INDEX(path, t), target, name);
        check->seen[r] = 1;
        tasks += check->tasks[r];
        *ret_job_tasks =
            check->spec->rjobs[r].replicas ? check->tasks[r] / check->spec->rjobs[r].replicas : 0;
    }
    return tasks;
}

static void check_groups(struct check *check, const struct doc *groups, const struct field_path *path)
{
    CHECK(typed_as(groups, DOC_ARRAY) && check->tasks && check->seen);
    for (size_t g = 0; g < doc_len(groups); g++) {
        const struct doc *group = doc_at(groups, g), *job = doc_get(group, "job");
        const struct doc *targets = doc_get(group, "targetReplicatedJobs");
        const struct field_path *here = AT_INDEX(path, g), *names = AT(here, "targetReplicatedJobs");
        int64_t job_tasks = 0, tasks = check_targets(check, targets, names, &job_tasks);
        if (doc_len(targets) == 0)
            path_required(check->errors, names, group, NULL);
        check_terms(check, group, here, tasks);
        if (!is_object(job))
            continue;
        if (doc_len(targets) > 1)
            path_forbidden(check->errors, AT(here, "job"), job, "needs a single target replicated job");
        if (has_terms(group))
            path_forbidden(check->errors, AT(here, "job"), job,
                           "may not be set together with terms of the whole group");
        check_terms(check, job, AT(here, "job"), job_tasks);
    }
    for (size_t r = 0; r < check->spec->rjob_count; r++)
        if (!check->seen[r])
            path_error(check->errors, path, "FieldValueRequired", groups,
                       "Required value: every replicated job must be a target once: " STR_FORMAT " is none",
                       STR_ARG(check->spec->rjobs[r].name));
}

void jobset_validate_scheduling(const struct doc *object, const struct jobset_spec *spec,
                                struct field_errors *errors)
{
    CHECK(errors && errors->arena && spec->rjob_count <= REPLICATED_JOBS_MAX);
    const struct doc *node = doc_path(object, "spec", "scheduling", NULL),
                     *groups = doc_get(node, "replicatedJobs");
    const struct field_path *path = AT(AT(NULL, "spec"), "scheduling");
    if (!node || node->kind == DOC_NULL || !schema_check_scheduling(object, errors))
        return;
    struct check check = {errors, spec, ARENA_ARRAY(errors->arena, int64_t, spec->rjob_count),
                          ARENA_ARRAY(errors->arena, uint8_t, spec->rjob_count)};
    int64_t all = 0;
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct job_spec *job = &spec->rjobs[r].job;
        bool fewer = job->completions >= 0 && job->completions < job->parallelism;
        check.tasks[r] = (int64_t)spec->rjobs[r].replicas * (fewer ? job->completions : job->parallelism);
        if (__builtin_add_overflow(all, check.tasks[r], &all))
            all = INT64_MAX;
    }
    check_terms(&check, node, path, all);
    if (doc_len(groups) && has_terms(node))
        path_forbidden(errors, AT(path, "replicatedJobs"), groups,
                       "may not be set together with terms of the whole JobSet");
    if (doc_len(groups))
        check_groups(&check, groups, AT(path, "replicatedJobs"));
}
