/* read_scheduling.c - reads spec.scheduling into rules for the division of tasks into gangs. A malformed part
 * makes no rule; validate_scheduling.c refuses it when the object is written. */
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/validate.h"

static void read_terms(const struct doc *node, struct gang_rule *rule)
{
    const struct doc *policy = doc_get(node, "schedulingPolicy");
    const struct doc *topology = doc_at(doc_path(node, "schedulingConstraints", "topology", NULL), 0);
    struct str key = doc_str(doc_get(topology, "key"), doc_str(doc_get(topology, "level"), STR("")));
    rule->basic = doc_get(policy, "basic") && !doc_get(policy, "gang");
    rule->min_count = (int32_t)doc_int(doc_path(policy, "gang", "minCount", NULL), 0);
    rule->topology = (struct topology_rule){0};
    if (name_is_label_key(key))
        rule->topology = (struct topology_rule){.mode = TOPOLOGY_REQUIRED, .key = key};
}

static bool is_object(const struct doc *node)
{
    return node && node->kind == DOC_OBJECT;
}

void read_scheduling(struct arena *arena, const struct doc *node, struct jobset_spec *spec)
{
    CHECK(arena && spec->rjob_count <= REPLICATED_JOBS_MAX);
    const struct doc *groups = doc_get(node, "replicatedJobs");
    if (!is_object(node) || !spec->rjob_count)
        return;
    struct gang_rule *rules = ARENA_ARRAY(arena, struct gang_rule, spec->rjob_count);
    for (size_t r = 0; r < spec->rjob_count; r++)
        read_terms(node, &rules[r]);
    for (size_t g = 0; g < doc_len(groups); g++) {
        const struct doc *group = doc_at(groups, g), *job = doc_get(group, "job");
        const struct doc *targets = doc_get(group, "targetReplicatedJobs");
        for (size_t t = 0; t < doc_len(targets); t++)
            for (size_t r = 0; r < spec->rjob_count; r++) {
                if (!str_equal(spec->rjobs[r].name, doc_str(doc_at(targets, t), STR(""))))
                    continue;
                read_terms(is_object(job) ? job : group, &rules[r]);
                rules[r].group = (uint32_t)g + 1;
                rules[r].per_job = is_object(job);
            }
    }
    spec->gang_rules = rules;
}
