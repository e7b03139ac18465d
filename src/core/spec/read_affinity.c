/* read_affinity.c - the machines that a pod's nodeAffinity allows. Source: the Kubernetes API's
 * NodeSelector. */
#include "core/spec/read.h"

static const char *const operators[] = {"In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"};

static void read_rules(struct arena *arena, const struct doc *list, bool fields, struct node_term *term)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i);
        struct str op = doc_str(doc_get(item, "operator"), STR(""));
        CHECK(term->rules);
        struct node_rule *rule = &term->rules[term->rule_count++];
        rule->key = fields ? STR("") : doc_str(doc_get(item, "key"), STR(""));
        rule->values = read_strings(arena, doc_get(item, "values"), &rule->value_count);
        for (size_t o = 0; o < sizeof operators / sizeof *operators; o++)
            if (str_is(op, operators[o]))
                rule->op = (enum node_operator)o;
    }
}

void read_affinity(struct arena *arena, const struct doc *affinity, struct pod_spec *pod)
{
    const struct doc *terms =
        doc_path(affinity, "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution",
                 "nodeSelectorTerms", NULL);
    pod->node_term_count = doc_len(terms);
    pod->node_terms = ARENA_ARRAY(arena, struct node_term, pod->node_term_count);
    for (size_t t = 0; t < pod->node_term_count; t++) {
        const struct doc *labels = doc_get(doc_at(terms, t), "matchExpressions");
        const struct doc *fields = doc_get(doc_at(terms, t), "matchFields");
        pod->node_terms[t].rules = ARENA_ARRAY(arena, struct node_rule, doc_len(labels) + doc_len(fields));
        read_rules(arena, labels, false, &pod->node_terms[t]);
        read_rules(arena, fields, true, &pod->node_terms[t]);
    }
}
