/* read.c - reads a JobSet document into its typed view. jobset_read checks types first, so the other
 * functions see no wrong type. */
#include "core/spec/read.h"
#include "core/spec/schema.h"

#define EXCLUSIVE_TOPOLOGY_KEY "alpha.jobset.sigs.k8s.io/exclusive-topology"
#define NODE_SELECTOR_KEY      "alpha.jobset.sigs.k8s.io/node-selector"

enum { BACKOFF_LIMIT_DEFAULT = 6 };

/* Returns the index of `name` among the texts, or `count` if it is not one of them. */
static size_t index_of(struct str name, const char *const *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (str_is(name, texts[i]))
            return i;
    }
    return count;
}

static size_t rjob_index(const struct jobset_spec *spec, struct str name)
{
    for (size_t i = 0; i < spec->rjob_count; i++) {
        if (str_equal(spec->rjobs[i].name, name))
            return i;
    }
    return spec->rjob_count;
}

/* Returns a flag for each replicated job, set if it is named. Returns NULL, which means all, if the list is
 * empty. Unknown names are left to validation.
 */
static uint8_t *read_targets(struct arena *arena, const struct jobset_spec *spec, const struct doc *names)
{
    if (doc_len(names) == 0)
        return NULL;
    uint8_t *flags = ARENA_ARRAY(arena, uint8_t, spec->rjob_count);
    for (size_t i = 0; i < doc_len(names); i++) {
        size_t index = rjob_index(spec, doc_str(doc_at(names, i), STR("")));
        if (index < spec->rjob_count)
            flags[index] = 1;
    }
    return flags;
}

/* --- Job ------------------------------------------------------------------------------------------------ */

static void read_exit_codes(struct arena *arena, const struct doc *node, struct pod_failure_rule *rule)
{
    CHECK(node->kind == DOC_OBJECT);
    const struct doc *values = doc_get(node, "values");
    rule->on_exit_codes = true;
    rule->container = doc_str(doc_get(node, "containerName"), STR(""));
    rule->not_in = str_is(doc_str(doc_get(node, "operator"), STR("")), "NotIn");
    rule->code_count = doc_len(values);
    rule->codes = ARENA_ARRAY(arena, int32_t, rule->code_count);
    for (size_t i = 0; i < rule->code_count; i++)
        rule->codes[i] = (int32_t)doc_int(doc_at(values, i), 0);
}

static void read_pod_failure_rule(struct arena *arena, const struct doc *node, struct pod_failure_rule *rule)
{
    static const char *const actions[] = {"FailJob", "Ignore", "Count", "FailIndex"};
    _Static_assert(POD_FAIL_JOB == 0 && POD_IGNORE == 1 && POD_COUNT == 2 && POD_FAIL_INDEX == 3,
                   "order of names");
    _Static_assert(sizeof actions / sizeof *actions == POD_FAIL_INDEX + 1, "a name for each");
    size_t action = index_of(doc_str(doc_get(node, "action"), STR("")), actions, 4);
    CHECK(action < 4);
    rule->action = (enum pod_failure_action)action;
    const struct doc *codes = doc_get(node, "onExitCodes"), *conditions = doc_get(node, "onPodConditions");
    if (codes && codes->kind == DOC_OBJECT)
        read_exit_codes(arena, codes, rule);
    rule->condition_count = doc_len(conditions);
    rule->conditions = ARENA_ARRAY(arena, struct label, rule->condition_count);
    for (size_t i = 0; i < rule->condition_count; i++) {
        const struct doc *item = doc_at(conditions, i);
        struct str status = doc_str(doc_get(item, "status"), STR(""));
        rule->conditions[i].key = doc_str(doc_get(item, "type"), STR(""));
        rule->conditions[i].value = status.len > 0 ? status : STR("True");
    }
}

/* Returns completions: 1 without any count, and -1 (unset) with parallelism alone, which validation refuses
 * for Indexed Jobs. */
static int32_t read_completions(const struct doc *spec)
{
    const struct doc *completions = doc_get(spec, "completions"), *parallelism = doc_get(spec, "parallelism");
    if (completions && completions->kind == DOC_INT)
        return (int32_t)completions->integer;
    CHECK(!completions || completions->kind == DOC_NULL); /* types have been checked */
    return parallelism && parallelism->kind == DOC_INT ? -1 : 1;
}

static int64_t read_number(struct str text)
{
    int64_t number;
    return str_to_i64(text, 0, INT32_MAX, &number) ? number : -1;
}

bool read_ranges(struct arena *arena, struct str text, struct index_range **ret_ranges, size_t *ret_count)
{
    size_t count = text.len > 0;
    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == ',';
    struct index_range *ranges = ARENA_ARRAY(arena, struct index_range, count);
    struct str part, rest = text, first, last;
    for (size_t i = 0; i < count; i++) {
        if (!str_cut(rest, ',', &part, &rest))
            part = rest;
        if (!str_cut(part, '-', &first, &last))
            first = last = part;
        int64_t from = read_number(first), to = read_number(last);
        if (from < 0 || to < from || (i > 0 && from <= ranges[i - 1].last))
            return false;
        ranges[i] = (struct index_range){(int32_t)from, (int32_t)to};
    }
    CHECK((count > 0) == (text.len > 0));
    *ret_ranges = ranges;
    *ret_count = count;
    return true;
}

/* Reads the rules. A malformed list of indexes is read as a rule that never holds; validation refuses it. */
static void read_success_rules(struct arena *arena, const struct doc *rules, struct job_spec *job)
{
    job->success_rule_count = doc_len(rules);
    job->success_rules = ARENA_ARRAY(arena, struct job_success_rule, job->success_rule_count);
    for (size_t i = 0; i < job->success_rule_count; i++) {
        const struct doc *node = doc_at(rules, i);
        struct job_success_rule *rule = &job->success_rules[i];
        rule->count = (int32_t)doc_int(doc_get(node, "succeededCount"), -1);
        if (!read_ranges(arena, doc_str(doc_get(node, "succeededIndexes"), STR("")), &rule->ranges,
                         &rule->range_count))
            rule->count = INT32_MAX;
    }
}

void read_job(struct arena *arena, const struct doc *spec, struct job_spec *job)
{
    const struct doc *rules = doc_path(spec, "podFailurePolicy", "rules", NULL);
    bool per_index = doc_int(doc_get(spec, "backoffLimitPerIndex"), -1) >= 0;
    struct str replacement = doc_str(doc_get(spec, "podReplacementPolicy"), STR(""));
    *job = (struct job_spec){
        .parallelism = (int32_t)doc_int(doc_get(spec, "parallelism"), 1),
        .completions = read_completions(spec),
        .indexed = str_is(doc_str(doc_get(spec, "completionMode"), STR("")), "Indexed"),
        .backoff_limit =
            (int32_t)doc_int(doc_get(spec, "backoffLimit"), per_index ? INT32_MAX : BACKOFF_LIMIT_DEFAULT),
        .backoff_limit_per_index = (int32_t)doc_int(doc_get(spec, "backoffLimitPerIndex"), -1),
        .max_failed_indexes = (int32_t)doc_int(doc_get(spec, "maxFailedIndexes"), -1),
        .active_deadline_s = read_seconds(doc_get(spec, "activeDeadlineSeconds"), -1),
        .replace_failed_only = replacement.len > 0 ? str_is(replacement, "Failed")
                                                   : doc_len(doc_get(spec, "podFailurePolicy")) > 0,
        .pod_failure_rules = ARENA_ARRAY(arena, struct pod_failure_rule, doc_len(rules)),
        .pod_failure_rule_count = doc_len(rules),
    };
    for (size_t i = 0; i < job->pod_failure_rule_count; i++)
        read_pod_failure_rule(arena, doc_at(rules, i), &job->pod_failure_rules[i]);
    read_success_rules(arena, doc_path(spec, "successPolicy", "rules", NULL), job);
    read_pod(arena, doc_get(spec, "template"), &job->pod);
}

/* --- JobSet --------------------------------------------------------------------------------------------- */

/* Reads dependencies on earlier replicated jobs. Other names are ignored, so the graph has no cycle. */
static void read_depends(struct arena *arena, const struct doc *list, const struct jobset_spec *spec,
                         size_t self)
{
    CHECK(self < spec->rjob_count);
    struct rjob_spec *rjob = &spec->rjobs[self];
    rjob->depends = ARENA_ARRAY(arena, struct depends_on, doc_len(list));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        size_t index = rjob_index(spec, doc_str(doc_get(item, "name"), STR("")));
        if (index >= self)
            continue;
        rjob->depends[rjob->depend_count++] = (struct depends_on){
            .rjob = (uint32_t)index,
            .status = str_is(doc_str(doc_get(item, "status"), STR("")), "Complete") ? DEPENDS_COMPLETE
                                                                                    : DEPENDS_READY,
        };
    }
    CHECK(rjob->depend_count <= doc_len(list));
}

static void read_rjobs(struct arena *arena, const struct doc *list, struct jobset_spec *spec)
{
    struct str topology = labels_get(&spec->annotations, STR(EXCLUSIVE_TOPOLOGY_KEY), STR(""));
    struct str selector = labels_get(&spec->annotations, STR(NODE_SELECTOR_KEY), (struct str){0});
    spec->rjob_count = doc_len(list);
    spec->rjobs = ARENA_ARRAY(arena, struct rjob_spec, spec->rjob_count);
    for (size_t i = 0; i < spec->rjob_count; i++) {
        const struct doc *node = doc_at(list, i), *meta = doc_path(node, "template", "metadata", NULL);
        struct rjob_spec *rjob = &spec->rjobs[i];
        rjob->name = doc_str(doc_get(node, "name"), STR(""));
        rjob->group = doc_str(doc_get(node, "groupName"), STR("default"));
        rjob->replicas = (int32_t)doc_int(doc_get(node, "replicas"), 1);
        rjob->labels = read_labels(arena, doc_get(meta, "labels"));
        rjob->annotations = read_labels(arena, doc_get(meta, "annotations"));
        rjob->exclusive_topology = labels_get(&rjob->annotations, STR(EXCLUSIVE_TOPOLOGY_KEY), topology);
        rjob->node_selector_strategy = labels_get(&rjob->annotations, STR(NODE_SELECTOR_KEY), selector).data;
        if (rjob->node_selector_strategy)
            rjob->exclusive_topology = STR("");
        read_job(arena, doc_path(node, "template", "spec", NULL), &rjob->job);
        read_depends(arena, doc_get(node, "dependsOn"), spec, i);
    }
}

static void read_failure_policy(struct arena *arena, const struct doc *policy, struct jobset_spec *spec)
{
    static const char *const strategies[] = {"Recreate", "BlockingRecreate", "InPlaceRestart"};
    static const char *const actions[] = {"FailJobSet", "RestartJobSet", "RestartJobSetAndIgnoreMaxRestarts",
                                          "RestartJob", "RestartJobAndIgnoreMaxRestarts"};
    _Static_assert(RESTART_RECREATE == 0 && RESTART_BLOCKING_RECREATE == 1 && RESTART_IN_PLACE == 2, "names");
    _Static_assert(FAILURE_FAIL_JOBSET == 0 && FAILURE_RESTART_JOB_IGNORE_MAX == 4, "order of names");
    _Static_assert(sizeof strategies / sizeof *strategies == RESTART_IN_PLACE + 1, "a name for each");
    _Static_assert(sizeof actions / sizeof *actions == FAILURE_RESTART_JOB_IGNORE_MAX + 1, "a name for each");
    if (!policy || policy->kind != DOC_OBJECT)
        return;
    const struct doc *rules = doc_get(policy, "rules");
    size_t strategy = index_of(doc_str(doc_get(policy, "restartStrategy"), STR("")), strategies, 3);
    spec->has_failure_policy = true;
    spec->max_restarts = (int32_t)doc_int(doc_get(policy, "maxRestarts"), 0);
    spec->strategy = strategy < 3 ? (enum restart_strategy)strategy : RESTART_RECREATE;
    spec->rule_count = doc_len(rules);
    spec->rules = ARENA_ARRAY(arena, struct failure_rule, spec->rule_count);
    for (size_t i = 0; i < spec->rule_count; i++) {
        const struct doc *node = doc_at(rules, i);
        struct failure_rule *rule = &spec->rules[i];
        size_t action = index_of(doc_str(doc_get(node, "action"), STR("")), actions, 5);
        CHECK(action < 5);
        rule->action = (enum failure_action)action;
        rule->name = doc_str(doc_get(node, "name"), STR(""));
        rule->reasons = read_strings(arena, doc_get(node, "onJobFailureReasons"), &rule->reason_count);
        rule->patterns =
            read_strings(arena, doc_get(node, "onJobFailureMessagePatterns"), &rule->pattern_count);
        rule->targets = read_targets(arena, spec, doc_get(node, "targetReplicatedJobs"));
    }
}

/* Returns the endpoint of pod podIndex of job jobIndex. Empty without a coordinator or a name. */
static struct str read_coordinator(struct arena *arena, const struct doc *object,
                                   const struct jobset_spec *spec)
{
    const struct doc *node = doc_path(object, "spec", "coordinator", NULL);
    struct str name = doc_str(doc_path(object, "metadata", "name", NULL), STR(""));
    if (!node || node->kind != DOC_OBJECT || name.len == 0)
        return STR("");
    struct str job = job_name(arena, name, doc_str(doc_get(node, "replicatedJob"), STR("")),
                              (int32_t)doc_int(doc_get(node, "jobIndex"), 0));
    struct str host = pod_hostname(arena, job, (int32_t)doc_int(doc_get(node, "podIndex"), 0));
    struct str subdomain = spec->subdomain.len > 0 ? spec->subdomain : name;
    return arena_printf(arena, STR_FORMAT "." STR_FORMAT, STR_ARG(host), STR_ARG(subdomain));
}

bool jobset_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                 struct field_errors *errors)
{
    CHECK(arena && ret_spec && errors && errors->arena);
    size_t errors_before = errors->list.len + errors->dropped;
    schema_check_types(&schema_jobset, object, errors);
    if (errors->list.len + errors->dropped > errors_before)
        return false;
    const struct doc *node = doc_get(object, "spec"), *network = doc_get(node, "network");
    CHECK(!node || node->kind == DOC_OBJECT || node->kind == DOC_NULL); /* types have been checked */
    const struct doc *success = doc_get(node, "successPolicy");
    struct jobset_spec spec = {
        .suspend = doc_bool(doc_get(node, "suspend"), false),
        .success_operator =
            str_is(doc_str(doc_get(success, "operator"), STR("")), "Any") ? OPERATOR_ANY : OPERATOR_ALL,
        .in_order =
            str_is(doc_str(doc_path(node, "startupPolicy", "startupPolicyOrder", NULL), STR("")), "InOrder"),
        .dns_hostnames = doc_bool(doc_get(network, "enableDNSHostnames"), true),
        .publish_not_ready = doc_bool(doc_get(network, "publishNotReadyAddresses"), true),
        .subdomain = doc_str(doc_get(network, "subdomain"), STR("")),
        .managed_by = doc_str(doc_get(node, "managedBy"), STR("")),
        .ttl_s = doc_int(doc_get(node, "ttlSecondsAfterFinished"), -1),
        .labels = read_labels(arena, doc_path(object, "metadata", "labels", NULL)),
        .annotations = read_labels(arena, doc_path(object, "metadata", "annotations", NULL)),
    };
    read_rjobs(arena, doc_get(node, "replicatedJobs"), &spec);
    read_scheduling(arena, doc_get(node, "scheduling"), &spec);
    spec.success_targets = read_targets(arena, &spec, doc_get(success, "targetReplicatedJobs"));
    read_failure_policy(arena, doc_get(node, "failurePolicy"), &spec);
    spec.coordinator = read_coordinator(arena, object, &spec);
    read_recovery(&spec);
    read_replicas(&spec);
    *ret_spec = spec;
    return true;
}
