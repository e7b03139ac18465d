/* validate_topology.c - rules of topology annotations and node affinity, for objects that are being written.
 * read_topology.c and read_affinity.c ignore malformed ones, which an earlier version's log may contain. */
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

struct place {
    struct field_errors *errors;
    const struct field_path *path; /* of the annotations */
    const struct doc *annotations;
};

static void problem(void *context, struct str key, struct str value, const char *why)
{
    CHECK(why && why[0]);
    const struct place *place = context;
    const struct doc *node = doc_get_str(place->annotations, key);
    path_invalid(place->errors, AT_KEY(place->path, key), node, value, why);
}

static int64_t tasks_of(const struct rjob_spec *rjob)
{
    CHECK(rjob->replicas >= 0 && rjob->job.parallelism >= 0);
    const struct job_spec *job = &rjob->job;
    bool fewer = job->completions >= 0 && job->completions < job->parallelism;
    return (int64_t)rjob->replicas * (fewer ? job->completions : job->parallelism);
}

static bool same_sizes(const struct rjob_spec *a, const struct rjob_spec *b)
{
    const struct topology_rule *x = &a->job.pod.topology, *y = &b->job.pod.topology;
    return a->replicas == b->replicas && a->job.parallelism == b->job.parallelism &&
           a->job.completions == b->job.completions && x->slice_count == y->slice_count &&
           (!x->slice_count || x->slices[0].size == y->slices[0].size);
}

static void check_sizes(const struct rjob_spec *rjob, const struct topology_rule *rule, struct place *place)
{
    const struct job_spec *job = &rjob->job;
    if (!rule->slice_count || !rjob->replicas)
        return;
    const char *why = NULL;
    const char *larger = arena_printf(place->errors->arena, "must not be greater than pod set count %lld",
                                      (long long)tasks_of(rjob))
                             .data;
    if (rule->slices[0].size > tasks_of(rjob))
        why = larger;
    else if (job->completions > job->parallelism)
        why = "slices need as many pods at once as there are completions";
    if (why)
        path_invalid_int(place->errors, place->path, place->annotations, rule->slices[0].size, why);
}

static void check_requirements(const struct doc *list, const struct field_path *path,
                               struct field_errors *errors)
{
    CHECK(typed_as(list, DOC_ARRAY));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *values = doc_get(item, "values");
        const struct field_path *here = AT_INDEX(path, i);
        struct str op = doc_str(doc_get(item, "operator"), STR(""));
        int64_t number;
        if (!path_one_of(op, "In,NotIn,Exists,DoesNotExist,Gt,Lt"))
            path_unsupported(errors, AT(here, "operator"), item, op, "In,NotIn,Exists,DoesNotExist,Gt,Lt");
        else if (path_one_of(op, "In,NotIn") && doc_len(values) == 0)
            path_required(errors, AT(here, "values"), item,
                          "must be specified when `operator` is 'In' or 'NotIn'");
        else if (path_one_of(op, "Exists,DoesNotExist") && doc_len(values) > 0)
            path_forbidden(errors, AT(here, "values"), values,
                           "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
        else if (path_one_of(op, "Gt,Lt") &&
                 (doc_len(values) != 1 ||
                  !str_to_i64(doc_str(doc_at(values, 0), STR("")), INT64_MIN, INT64_MAX, &number)))
            path_required(errors, AT(here, "values"), item,
                          "must be specified single value when `operator` is 'Lt' or 'Gt'");
    }
}

static void check_affinity(const struct doc *pod_spec, const struct field_path *path,
                           struct field_errors *errors)
{
    static const char required[] = "requiredDuringSchedulingIgnoredDuringExecution";
    const struct doc *terms =
        doc_path(pod_spec, "affinity", "nodeAffinity", required, "nodeSelectorTerms", NULL);
    const struct field_path *list =
        AT(AT(AT(AT(path, "affinity"), "nodeAffinity"), required), "nodeSelectorTerms");
    for (size_t t = 0; t < doc_len(terms); t++) {
        const struct doc *term = doc_at(terms, t);
        const struct field_path *at = AT_INDEX(list, t);
        check_requirements(doc_get(term, "matchExpressions"), AT(at, "matchExpressions"), errors);
        check_requirements(doc_get(term, "matchFields"), AT(at, "matchFields"), errors);
    }
}

static void check_node_name(const struct doc *pod_spec, const struct field_path *path,
                            struct field_errors *errors)
{
    const struct doc *name = doc_get(pod_spec, "nodeName");
    struct str text = doc_str(name, STR(""));
    if (text.len && !name_is_dns1123_subdomain(text))
        path_invalid(errors, AT(path, "nodeName"), name, text, WHY_DNS1123_SUBDOMAIN);
    if (text.len && doc_len(doc_get(pod_spec, "schedulingGates")) > 0)
        path_forbidden(errors, AT(path, "nodeName"), name,
                       "cannot be set until all schedulingGates have been cleared");
}

static bool same_group(const struct topology_rule *a, const struct topology_rule *b)
{
    return a->group.len && str_equal(a->group, b->group);
}

void workload_validate_topology(const struct doc *object, const struct jobset_spec *spec,
                                const struct jobset_spec *before, struct field_errors *errors)
{
    CHECK(errors && errors->arena && spec->rjob_count <= REPLICATED_JOBS_MAX);
    enum form form = workload_form(object);
    const struct field_path *list = AT(AT(NULL, "spec"), "replicatedJobs");
    for (size_t r = 0; r < spec->rjob_count; r++) {
        const struct field_path *job = form == FORM_JOBSET ? AT(AT_INDEX(list, r), "template") : NULL;
        const struct field_path *pod = form == FORM_POD ? NULL : AT(AT(job, "spec"), "template");
        const struct doc *template = workload_pod_template(object, r);
        struct place place = {errors, AT(AT(pod, "metadata"), "annotations"),
                              doc_path(template, "metadata", "annotations", NULL)};
        struct topology_rule rule;
        check_affinity(doc_get(template, "spec"), AT(pod, "spec"), errors);
        check_node_name(doc_get(template, "spec"), AT(pod, "spec"), errors);
        if (!read_topology(errors->arena, &spec->rjobs[r].job.pod.annotations, &rule, problem, &place))
            continue;
        if (!before || r >= before->rjob_count || !same_sizes(&spec->rjobs[r], &before->rjobs[r]))
            check_sizes(&spec->rjobs[r], &rule, &place);
        for (size_t other = 0; other < r; other++) {
            const struct topology_rule *earlier = &spec->rjobs[other].job.pod.topology;
            if (same_group(earlier, &rule) &&
                (earlier->mode != rule.mode || !str_equal(earlier->key, rule.key))) {
                problem(&place, STR("kueue.x-k8s.io/podset-group-name"), rule.group,
                        "all of a group must request the same topology");
                break;
            }
        }
    }
}
