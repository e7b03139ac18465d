/* podsets.c - Workloads of kueue.x-k8s.io/v1beta2 as users write them: reading and rules.
 *
 * Source of the rules: the CRD of kubernetes-sigs/kueue (apis/kueue/v1beta2) and its webhook for Workloads.
 */
#include "base/check.h"
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

/* --- reading -------------------------------------------------------------------------------------------- */

static void add_label(struct arena *arena, struct labels *labels, struct str key, struct str value)
{
    struct labels more = {ARENA_ARRAY(arena, struct label, labels->len + 1), 0};
    for (size_t i = 0; i < labels->len; i++)
        if (!str_equal(labels->items[i].key, key))
            more.items[more.len++] = labels->items[i];
    if (value.len)
        more.items[more.len++] = (struct label){key, value};
    CHECK(more.len <= labels->len + 1);
    *labels = more;
}

/* Returns the Workload's labels, with the fields of its spec that a Job has as labels. */
static struct labels labels_of(struct arena *arena, const struct doc *object)
{
    CHECK(typed_as(doc_path(object, "spec", "priorityClassRef", NULL), DOC_OBJECT));
    struct labels labels = read_labels(arena, doc_path(object, "metadata", "labels", NULL));
    const struct doc *spec = doc_get(object, "spec"), *class = doc_get(spec, "priorityClassRef");
    bool ours = str_is(doc_str(doc_get(class, "kind"), STR("")), "WorkloadPriorityClass");
    int64_t longest_s = doc_int(doc_get(spec, "maximumExecutionTimeSeconds"), 0);
    add_label(arena, &labels, STR("kueue.x-k8s.io/queue-name"), doc_str(doc_get(spec, "queueName"), STR("")));
    add_label(arena, &labels, STR("kueue.x-k8s.io/priority-class"),
              ours ? doc_str(doc_get(class, "name"), STR("")) : STR(""));
    add_label(arena, &labels, STR("kueue.x-k8s.io/max-exec-time-seconds"),
              longest_s > 0 ? arena_printf(arena, "%lld", (long long)longest_s) : STR(""));
    return labels;
}

/* Returns a topologyRequest in the form of a Pod template's annotations. */
static struct labels topology_notes(struct arena *arena, const struct doc *request)
{
    CHECK(request && request->kind == DOC_OBJECT);
    static const struct {
        const char *field, *key;
    } names[] = {{"required", "kueue.x-k8s.io/podset-required-topology"},
                 {"preferred", "kueue.x-k8s.io/podset-preferred-topology"},
                 {"podSetGroupName", "kueue.x-k8s.io/podset-group-name"},
                 {"podSetSliceRequiredTopology", "kueue.x-k8s.io/podset-slice-required-topology"}};
    struct labels notes = {0};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        add_label(arena, &notes, str_from(names[i].key), doc_str(doc_get(request, names[i].field), STR("")));
    int64_t size = doc_int(doc_get(request, "podSetSliceSize"), 0);
    if (doc_bool(doc_get(request, "unconstrained"), false))
        add_label(arena, &notes, STR("kueue.x-k8s.io/podset-unconstrained-topology"), STR("true"));
    if (size)
        add_label(arena, &notes, STR("kueue.x-k8s.io/podset-slice-size"),
                  arena_printf(arena, "%lld", (long long)size));
    return notes;
}

static void read_podset(struct arena *arena, const struct doc *node, struct rjob_spec *rjob)
{
    struct pod_spec pod;
    const struct doc *request = doc_get(node, "topologyRequest");
    struct str key = STR("alpha.jobset.sigs.k8s.io/exclusive-topology");
    int32_t count = (int32_t)doc_int(doc_get(node, "count"), 1);
    read_pod(arena, doc_get(node, "template"), &pod);
    if (request && request->kind == DOC_OBJECT) {
        struct labels notes = topology_notes(arena, request);
        (void)read_topology(arena, &notes, &pod.topology, NULL, NULL);
    }
    *rjob = (struct rjob_spec){.name = doc_str(doc_get(node, "name"), STR("main")),
                               .group = STR("default"),
                               .replicas = 1,
                               .job = {.parallelism = count,
                                       .completions = count,
                                       .backoff_limit_per_index = -1,
                                       .max_failed_indexes = -1,
                                       .active_deadline_s = -1,
                                       .pod = pod},
                               .exclusive_topology = labels_get(&pod.annotations, key, STR(""))};
}

bool podsets_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                  struct field_errors *errors)
{
    CHECK(arena && ret_spec && errors && errors->arena);
    size_t errors_before = errors->list.len + errors->dropped;
    schema_check_types(&schema_workload, object, errors);
    if (errors->list.len + errors->dropped > errors_before)
        return false;
    const struct doc *podsets = doc_path(object, "spec", "podSets", NULL);
    struct jobset_spec spec = {
        .rjobs = ARENA_ARRAY(arena, struct rjob_spec, doc_len(podsets)),
        .rjob_count = doc_len(podsets),
        .publish_not_ready = true,
        .ttl_s = -1,
        .suspend = true,
        .labels = labels_of(arena, object),
        .annotations = read_labels(arena, doc_path(object, "metadata", "annotations", NULL)),
    };
    for (size_t i = 0; i < spec.rjob_count; i++)
        read_podset(arena, doc_at(podsets, i), &spec.rjobs[i]);
    *ret_spec = spec;
    return true;
}

int32_t podsets_least(const struct doc *object, size_t podset)
{
    const struct doc *node = doc_at(doc_path(object, "spec", "podSets", NULL), podset);
    int64_t count = doc_int(doc_get(node, "count"), 1);
    return (int32_t)doc_int(doc_get(node, "minCount"), count);
}

/* --- rules ---------------------------------------------------------------------------------------------- */

static void validate_requests(const struct doc *containers, const struct field_path *path,
                              struct field_errors *errors)
{
    CHECK(typed_as(containers, DOC_ARRAY));
    for (size_t i = 0; i < doc_len(containers); i++) {
        const struct doc *asks = doc_path(doc_at(containers, i), "resources", "requests", NULL);
        const struct field_path *here = AT(AT(AT_INDEX(path, i), "resources"), "requests");
        if (doc_get(asks, "pods"))
            path_invalid(errors, AT_KEY(here, STR("pods")), doc_get(asks, "pods"), STR("pods"),
                         "the key is reserved for internal kueue use");
    }
}

struct topology_report {
    struct field_errors *errors;
    const struct field_path *path;
    const struct doc *node;
};

static void report_topology(void *context, struct str key, struct str value, const char *why)
{
    const struct topology_report *report = context;
    (void)key;
    path_invalid(report->errors, report->path, report->node, value, why);
}

static void validate_podset(const struct doc *node, const struct field_path *path,
                            struct field_errors *errors)
{
    CHECK(typed_as(node, DOC_OBJECT));
    const struct doc *name = doc_get(node, "name"), *count = doc_get(node, "count");
    const struct doc *least = doc_get(node, "minCount"), *request = doc_get(node, "topologyRequest");
    const struct doc *template = doc_get(node, "template"), *spec = doc_get(template, "spec");
    const struct field_path *pod = AT(AT(path, "template"), "spec");
    if (name && !name_is_dns1123_label(doc_str(name, STR(""))))
        path_invalid(errors, AT(path, "name"), name, doc_str(name, STR("")), WHY_DNS1123_LABEL);
    validate_min(count, 0, AT(path, "count"), errors);
    validate_min(least, 1, AT(path, "minCount"), errors);
    if (least && doc_int(least, 0) > doc_int(count, 1))
        path_invalid_int(errors, path, least, doc_int(least, 0),
                         "minCount should be positive and less or equal to count");
    validate_pod(template, AT(path, "template"), errors);
    validate_requests(doc_get(spec, "containers"), AT(pod, "containers"), errors);
    validate_requests(doc_get(spec, "initContainers"), AT(pod, "initContainers"), errors);
    if (!request || request->kind != DOC_OBJECT)
        return;
    struct topology_report report = {errors, AT(path, "topologyRequest"), request};
    struct labels notes = topology_notes(errors->arena, request);
    struct topology_rule rule;
    (void)read_topology(errors->arena, &notes, &rule, report_topology, &report);
}

static void validate_class(const struct doc *spec, const struct field_path *path, struct field_errors *errors)
{
    const struct doc *class = doc_get(spec, "priorityClassRef"), *name = doc_get(class, "name");
    const struct doc *priority = doc_get(spec, "priority");
    bool group = str_is(doc_str(doc_get(class, "group"), STR("")), "kueue.x-k8s.io");
    bool kind = str_is(doc_str(doc_get(class, "kind"), STR("")), "WorkloadPriorityClass");
    if (!class || class->kind != DOC_OBJECT)
        return;
    if (!priority || priority->kind == DOC_NULL)
        path_invalid(errors, path->up, spec, STR("object"),
                     "priority should not be nil when priorityClassRef is set");
    if (group != kind)
        path_invalid(errors, AT(path, "kind"), doc_get(class, "kind"),
                     doc_str(doc_get(class, "kind"), STR("")),
                     group ? "only the WorkloadPriorityClass kind is allowed for the kueue.x-k8s.io group"
                           : "only the PriorityClass kind is allowed for the scheduling.k8s.io group");
    if (!name_is_dns1123_subdomain(doc_str(name, STR(""))))
        path_invalid(errors, AT(path, "name"), name ? name : class, doc_str(name, STR("")),
                     WHY_DNS1123_SUBDOMAIN);
}

void podsets_validate(const struct doc *object, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *spec = doc_get(object, "spec"), *podsets = doc_get(spec, "podSets");
    const struct doc *queue = doc_get(spec, "queueName");
    const struct field_path *path = AT(NULL, "spec"), *list = AT(path, "podSets");
    int64_t tasks = 0, variable = 0;
    if (doc_len(podsets) == 0)
        path_required(errors, list, spec, "at least one PodSet");
    for (size_t i = 0; i < doc_len(podsets); i++) {
        const struct doc *podset = doc_at(podsets, i), *least = doc_get(podset, "minCount");
        validate_podset(podset, AT_INDEX(list, i), errors);
        tasks += doc_int(doc_get(podset, "count"), 1);
        variable += least && least->kind == DOC_INT;
    }
    if (variable > 1)
        path_invalid_int(errors, list, podsets, variable, "at most one podSet can use minCount");
    if (tasks > TASKS_PER_JOBSET_MAX)
        path_invalid_int(errors, list, podsets, tasks, "their counts together must be at most 65536");
    if (doc_str(queue, STR("")).len && !name_is_dns1123_subdomain(queue->text))
        path_invalid(errors, AT(path, "queueName"), queue, queue->text, WHY_DNS1123_SUBDOMAIN);
    validate_class(spec, AT(path, "priorityClassRef"), errors);
    validate_min(doc_get(spec, "maximumExecutionTimeSeconds"), 1, AT(path, "maximumExecutionTimeSeconds"),
                 errors);
}

/* Returns whether a change of the reference is allowed: the name of a WorkloadPriorityClass may change, all
 * else must be the same. */
static bool same_class(const struct doc *was, const struct doc *is)
{
    static const char *const fields[] = {"group", "kind", "name"};
    bool same = doc_len(was) == doc_len(is);
    bool ours = str_is(doc_str(doc_get(was, "kind"), STR("")), "WorkloadPriorityClass");
    for (size_t i = 0; same && i < (ours ? 2 : 3); i++)
        same = str_equal(doc_str(doc_get(was, fields[i]), STR("")), doc_str(doc_get(is, fields[i]), STR("")));
    return same;
}

void podsets_validate_update(const struct doc *old, const struct doc *changed, bool reserved, bool admitted,
                             struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *was = doc_get(old, "spec"), *is = doc_get(changed, "spec");
    const struct schema *schema = schema_field_of(&schema_workload, STR("spec"))->object;
    const struct field_path *path = AT(NULL, "spec");
    if (reserved) {
        validate_unchanged(schema, "podSets", was, is, path, errors);
        validate_unchanged(schema, "queueName", was, is, path, errors);
    }
    if (admitted)
        validate_unchanged(schema, "maximumExecutionTimeSeconds", was, is, path, errors);
    const struct doc *class = doc_get(is, "priorityClassRef");
    if (reserved && !same_class(doc_get(was, "priorityClassRef"), class))
        path_invalid(errors, AT(path, "priorityClassRef"), class ? class : is,
                     doc_str(doc_get(class, "name"), STR("")), "field is immutable");
}
