/* read_topology.c - reads the pod template's kueue.x-k8s.io/podset-... annotations. Source of the rules:
 * Kueue's "Topology Aware Scheduling". */
#include "core/spec/read.h"

#include "doc/json.h"
#include "core/spec/validate.h"

#define PREFIX "kueue.x-k8s.io/podset-"

struct reading {
    struct arena *arena;
    const struct labels *annotations;
    topology_problem_fn *problem;
    void *context;
};

static struct str get(const struct reading *reading, const char *name)
{
    char key[96];
    struct str suffix = str_from(name);
    CHECK(suffix.len <= sizeof key - (sizeof(PREFIX) - 1));
    mem_copy(key, PREFIX, sizeof(PREFIX) - 1);
    mem_copy(key + sizeof(PREFIX) - 1, suffix.data, suffix.len);
    return labels_get(reading->annotations, (struct str){key, sizeof(PREFIX) - 1 + suffix.len},
                      (struct str){0});
}

static bool fails(const struct reading *reading, const char *name, struct str value, const char *why)
{
    if (reading->problem)
        reading->problem(reading->context, arena_printf(reading->arena, PREFIX "%s", name), value, why);
    return false;
}

static bool read_mode(const struct reading *reading, struct topology_rule *rule)
{
    static const struct {
        const char *name;
        enum topology_mode mode;
    } modes[] = {{"required-topology", TOPOLOGY_REQUIRED},
                 {"preferred-topology", TOPOLOGY_PREFERRED},
                 {"unconstrained-topology", TOPOLOGY_UNCONSTRAINED}};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        struct str value = get(reading, modes[i].name);
        bool word =
            modes[i].mode == TOPOLOGY_UNCONSTRAINED && (str_is(value, "true") || str_is(value, "false"));
        if (!value.data || (word && str_is(value, "false")))
            continue;
        if (rule->mode)
            return fails(reading, modes[i].name, value,
                         "must not be set together with another topology request");
        if (!word && !name_is_label_key(value))
            return fails(reading, modes[i].name, value, WHY_LABEL_KEY);
        rule->mode = modes[i].mode;
        rule->key = modes[i].mode == TOPOLOGY_UNCONSTRAINED ? (struct str){0} : value;
    }
    rule->group = get(reading, "group-name");
    if (!rule->group.data)
        return true;
    if (rule->mode != TOPOLOGY_REQUIRED && rule->mode != TOPOLOGY_PREFERRED)
        return fails(reading, "group-name", rule->group,
                     "needs podset-required-topology or podset-preferred-topology");
    return name_is_label_value(rule->group) && rule->group.len
               ? true
               : fails(reading, "group-name", rule->group, WHY_LABEL_VALUE);
}

static bool add_slice(const struct reading *reading, const char *name, struct str value, struct str key,
                      int64_t size, struct topology_rule *rule)
{
    CHECK(rule->slice_count <= TOPOLOGY_SLICES_MAX);
    if (!name_is_label_key(key))
        return fails(reading, name, value, WHY_LABEL_KEY);
    if (rule->slice_count == TOPOLOGY_SLICES_MAX)
        return fails(reading, name, value, "must have at most 3 layers");
    if (size < 1 || size > INT32_MAX)
        return fails(reading, name, value, "sizes must be whole numbers greater than 0");
    if (rule->slice_count && rule->slices[rule->slice_count - 1].size % size)
        return fails(reading, name, value, "each size must divide the one of the layer around it");
    rule->slices[rule->slice_count++] = (struct topology_slice){key, (int32_t)size};
    return true;
}

static bool read_layers(const struct reading *reading, struct str text, struct topology_rule *rule)
{
    static const char *const name = "slice-required-topology-constraints";
    struct doc *list;
    if (json_parse(reading->arena, text, &list, NULL) < 0 || list->kind != DOC_ARRAY || doc_len(list) == 0)
        return fails(reading, name, text, "must be a JSON list of {\"topology\": KEY, \"size\": NUMBER}");
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *size = doc_get(item, "size");
        int64_t number = doc_int(size, 0);
        if (size && size->kind == DOC_STRING && !str_to_i64(size->text, 1, INT32_MAX, &number))
            number = 0;
        if (!add_slice(reading, name, text, doc_str(doc_get(item, "topology"), STR("")), number, rule))
            return false;
    }
    return true;
}

static bool read_slices(const struct reading *reading, struct topology_rule *rule)
{
    struct str key = get(reading, "slice-required-topology"), size = get(reading, "slice-size");
    struct str layers = get(reading, "slice-required-topology-constraints");
    int64_t number = 0;
    if (layers.data && (key.data || size.data))
        return fails(reading, "slice-required-topology-constraints", layers,
                     "must not be set together with podset-slice-required-topology or podset-slice-size");
    if (layers.data)
        return read_layers(reading, layers, rule);
    if (key.data && !size.data)
        return fails(reading, "slice-required-topology", key, "needs podset-slice-size");
    if (size.data && !key.data)
        return fails(reading, "slice-size", size, "needs podset-slice-required-topology");
    if (!key.data)
        return true;
    if (!str_to_i64(size, 1, INT32_MAX, &number))
        return fails(reading, "slice-size", size, "must be a whole number greater than 0");
    return add_slice(reading, "slice-required-topology", key, key, number, rule);
}

bool read_topology(struct arena *arena, const struct labels *annotations, struct topology_rule *ret_rule,
                   topology_problem_fn *problem, void *context)
{
    struct reading reading = {arena, annotations, problem, context};
    struct topology_rule rule = {0};
    *ret_rule = (struct topology_rule){0};
    bool any = false;
    for (size_t i = 0; i < annotations->len; i++)
        any |= str_starts(annotations->items[i].key, STR(PREFIX));
    if (!any)
        return true;
    if (!read_mode(&reading, &rule) || !read_slices(&reading, &rule))
        return false;
    if (rule.slice_count && !rule.mode)
        rule.mode = TOPOLOGY_UNCONSTRAINED; /* slices anywhere */
    CHECK(!rule.slice_count || rule.mode);
    *ret_rule = rule;
    return true;
}
