/* read.c - reads the queue objects into a typed tree. Reading is tolerant: a document that the schema
 * accepted is never an error here, at worst an inactive queue with a message. */
#include "base/units.h"
#include "core/admit/internal.h"

#include <stdlib.h>

/* --- names ------------------------------------------------------------------------------------ */

/* Maps store indexes as pointers, plus one so that none is NULL. */
static void *as_pointer(size_t index)
{
    return (void *)(uintptr_t)(index + 1);
}
static size_t as_index(const void *pointer)
{
    CHECK(pointer); /* absent: no index */
    return (size_t)(uintptr_t)pointer - 1;
}

struct cluster_queue *tree_queue(const struct tree *tree, struct str name)
{
    void *found = str_map_get(&tree->queue_names, name);
    CHECK(!found || as_index(found) < tree->queue_count);
    return found ? &tree->queues[as_index(found)] : NULL;
}

struct local_queue *tree_local(const struct tree *tree, struct str namespace_, struct str name)
{
    size_t low = 0, high = tree->local_count;
    while (low < high) { /* the objects come in order of namespace and name */
        size_t middle = (low + high) / 2;
        const struct object *object = tree->locals[middle].object;
        int order = str_compare(object->namespace_, namespace_);
        order = order ? order : str_compare(object->name, name);
        if (order == 0)
            return &tree->locals[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

const struct group_flavor *group_flavor(const struct cluster_queue *queue, struct str resource,
                                        struct str flavor, size_t *ret_resource)
{
    for (size_t g = 0; g < queue->group_count; g++) {
        const struct resource_group *group = &queue->groups[g];
        for (size_t r = 0; r < group->resource_count; r++) {
            if (!str_equal(group->resources[r], resource))
                continue;
            for (size_t f = 0; f < group->flavor_count; f++) {
                if (str_equal(group->flavors[f].name, flavor)) {
                    *ret_resource = r;
                    return &group->flavors[f];
                }
            }
        }
    }
    return NULL;
}

/* --- flavours --------------------------------------------------------------------------------- */

struct reading {
    struct tree *tree;
    const struct object_store *objects;
    size_t at;
};

static struct str text_of(struct reading *reading, const struct doc *node)
{
    return arena_str(&reading->tree->arena, doc_str(node, STR("")));
}

static void read_toleration(struct reading *reading, const struct doc *doc, struct toleration *to)
{
    to->key = text_of(reading, doc_get(doc, "key"));
    to->op = text_of(reading, doc_get(doc, "operator"));
    if (!to->op.len)
        to->op = STR("Equal");
    to->value = text_of(reading, doc_get(doc, "value"));
    to->effect = text_of(reading, doc_get(doc, "effect"));
}

static int by_key(const void *a, const void *b)
{
    return str_compare(((const struct label *)a)->key, ((const struct label *)b)->key);
}

static void read_flavor_spec(struct reading *reading, const struct doc *spec, struct flavor *flavor)
{
    struct arena *arena = &reading->tree->arena;
    const struct doc *labels = doc_get(spec, "nodeLabels"), *taints = doc_get(spec, "nodeTaints");
    const struct doc *tolerations = doc_get(spec, "tolerations");
    if (labels && labels->kind == DOC_OBJECT) {
        flavor->labels = (struct labels){ARENA_ARRAY(arena, struct label, doc_len(labels)), doc_len(labels)};
        for (size_t i = 0; i < flavor->labels.len; i++)
            flavor->labels.items[i] = (struct label){arena_str(arena, labels->object.members[i].key),
                                                     text_of(reading, labels->object.members[i].value)};
        qsort(flavor->labels.items, flavor->labels.len, sizeof(struct label), by_key);
    }
    if (taints && taints->kind == DOC_ARRAY) {
        flavor->taint_count = doc_len(taints);
        flavor->taints = ARENA_ARRAY(arena, struct taint, flavor->taint_count);
        for (size_t i = 0; i < flavor->taint_count; i++)
            flavor->taints[i] = (struct taint){text_of(reading, doc_get(doc_at(taints, i), "key")),
                                               text_of(reading, doc_get(doc_at(taints, i), "value")),
                                               text_of(reading, doc_get(doc_at(taints, i), "effect"))};
    }
    if (tolerations && tolerations->kind == DOC_ARRAY) {
        flavor->toleration_count = doc_len(tolerations);
        flavor->tolerations = ARENA_ARRAY(arena, struct toleration, flavor->toleration_count);
        for (size_t i = 0; i < flavor->toleration_count; i++)
            read_toleration(reading, doc_at(tolerations, i), &flavor->tolerations[i]);
    }
}

static void read_levels(struct reading *reading, struct flavor *flavor)
{
    const struct object *topology = object_find(reading->objects, OBJECT_TOPOLOGY, STR(""), flavor->topology);
    if (!topology)
        return;
    const struct doc *levels = doc_path(topology->document, "spec", "levels", NULL);
    flavor->topology_found = true;
    flavor->level_count = doc_len(levels);
    flavor->levels = ARENA_ARRAY(&reading->tree->arena, struct str, flavor->level_count);
    for (size_t i = 0; i < flavor->level_count; i++)
        flavor->levels[i] = text_of(reading, doc_get(doc_at(levels, i), "nodeLabel"));
}

static void read_flavor(void *context, const struct object *object)
{
    struct reading *reading = context;
    CHECK(reading->at < reading->tree->flavor_count);
    struct flavor *flavor = &reading->tree->flavors[reading->at];
    const struct doc *spec = doc_get(object->document, "spec");
    flavor->name = arena_str(&reading->tree->arena, object->name);
    read_flavor_spec(reading, spec, flavor);
    flavor->topology = text_of(reading, doc_get(spec, "topologyName"));
    if (flavor->topology.len)
        read_levels(reading, flavor);
    str_map_put(&reading->tree->flavor_names, flavor->name, as_pointer(reading->at++));
}

/* --- ClusterQueues ---------------------------------------------------------------------------- */

static enum stop_policy read_stop(const struct doc *spec)
{
    struct str policy = doc_str(doc_get(spec, "stopPolicy"), STR(""));
    return str_is(policy, "Hold") ? STOP_HOLD : str_is(policy, "HoldAndDrain") ? STOP_DRAIN : STOP_NONE;
}

static enum preempt_policy read_policy(const struct doc *doc, const char *key)
{
    struct str policy = doc_str(doc_get(doc, key), STR(""));
    if (str_is(policy, "LowerPriority"))
        return PREEMPT_LOWER;
    if (str_is(policy, "LowerOrNewerEqualPriority"))
        return PREEMPT_LOWER_OR_NEWER;
    return str_is(policy, "Any") ? PREEMPT_ANY : PREEMPT_NEVER;
}

/* Returns the index of a flavour's resource in every node's cells. */
static uint32_t cell_number(struct reading *reading, struct str flavor, struct str resource)
{
    struct tree *tree = reading->tree;
    struct str key =
        arena_printf(&tree->arena, STR_FORMAT "\n" STR_FORMAT, STR_ARG(flavor), STR_ARG(resource));
    void *found = str_map_get(&tree->cell_names, key);
    if (found)
        return (uint32_t)as_index(found);
    size_t number = tree->cell_names.len;
    CHECK(number < UINT32_MAX);
    str_map_put(&tree->cell_names, key, as_pointer(number));
    return (uint32_t)number;
}

static void read_group_flavor(struct reading *reading, const struct doc *doc,
                              const struct resource_group *group, struct group_flavor *to)
{
    to->name = text_of(reading, doc_get(doc, "name"));
    void *found = str_map_get(&reading->tree->flavor_names, to->name);
    CHECK(!found || as_index(found) < reading->tree->flavor_count);
    to->flavor = found ? &reading->tree->flavors[as_index(found)] : NULL;
    to->cells = ARENA_ARRAY(&reading->tree->arena, uint32_t, group->resource_count);
    for (size_t r = 0; r < group->resource_count; r++)
        to->cells[r] = cell_number(reading, to->name, group->resources[r]);
}

static void read_group(struct reading *reading, const struct doc *doc, struct resource_group *group)
{
    struct arena *arena = &reading->tree->arena;
    const struct doc *covered = doc_get(doc, "coveredResources"), *flavors = doc_get(doc, "flavors");
    group->resource_count = doc_len(covered);
    group->resources = ARENA_ARRAY(arena, struct str, group->resource_count);
    for (size_t r = 0; r < group->resource_count; r++)
        group->resources[r] = text_of(reading, doc_at(covered, r));
    group->flavor_count = doc_len(flavors);
    group->flavors = ARENA_ARRAY(arena, struct group_flavor, group->flavor_count);
    for (size_t f = 0; f < group->flavor_count; f++)
        read_group_flavor(reading, doc_at(flavors, f), group, &group->flavors[f]);
}

/* Returns the name of the cohort, which is `cohort` in Kueue's v1beta1 and `cohortName` in v1beta2. */
static struct str cohort_of(const struct doc *spec)
{
    struct str name = doc_str(doc_get(spec, "cohortName"), STR(""));
    return name.len ? name : doc_str(doc_get(spec, "cohort"), STR(""));
}

static void read_preemption(const struct doc *spec, struct cluster_queue *queue)
{
    const struct doc *preemption = doc_get(spec, "preemption");
    const struct doc *borrow = doc_get(preemption, "borrowWithinCohort");
    const struct doc *fungibility = doc_get(spec, "flavorFungibility");
    const struct doc *threshold = doc_get(borrow, "maxPriorityThreshold");
    queue->within = read_policy(preemption, "withinClusterQueue");
    queue->reclaim = read_policy(preemption, "reclaimWithinCohort");
    queue->borrow = read_policy(borrow, "policy");
    queue->has_threshold = threshold && threshold->kind == DOC_INT;
    queue->threshold = (int32_t)doc_int(threshold, 0);
    queue->try_next_to_borrow =
        str_is(doc_str(doc_get(fungibility, "whenCanBorrow"), STR("")), "TryNextFlavor");
    struct str when = doc_str(doc_get(fungibility, "whenCanPreempt"), STR("TryNextFlavor"));
    queue->try_next_to_preempt = str_is(when, "TryNextFlavor");
    queue->preempt_before_borrow =
        str_is(doc_str(doc_get(fungibility, "preference"), STR("")), "PreemptionOverBorrowing");
}

bool admission_check_served(const struct object *check)
{
    return !str_starts(doc_str(doc_path(check->document, "spec", "controllerName", NULL), STR("")),
                       STR("kueue.x-k8s.io/"));
}

bool admission_check_active(const struct object *check)
{
    const struct doc *conditions = doc_path(check->document, "status", "conditions", NULL);
    bool active = false;
    for (size_t i = 0; i < doc_len(conditions); i++)
        if (str_is(doc_str(doc_get(doc_at(conditions, i), "type"), STR("")), "Active"))
            active = str_is(doc_str(doc_get(doc_at(conditions, i), "status"), STR("")), "True");
    return active && admission_check_served(check);
}

static void read_checks(struct reading *reading, const struct doc *spec, struct cluster_queue *queue)
{
    const struct doc *list = doc_path(spec, "admissionChecksStrategy", "admissionChecks", NULL);
    struct arena *arena = &reading->tree->arena;
    queue->check_count = doc_len(list);
    queue->checks = ARENA_ARRAY(arena, struct queue_check, queue->check_count);
    for (size_t c = 0; c < queue->check_count; c++) {
        struct queue_check *check = &queue->checks[c];
        const struct doc *flavors = doc_get(doc_at(list, c), "onFlavors");
        check->name = text_of(reading, doc_get(doc_at(list, c), "name"));
        check->flavor_count = doc_len(flavors);
        check->flavors = ARENA_ARRAY(arena, struct str, check->flavor_count);
        for (size_t f = 0; f < check->flavor_count; f++)
            check->flavors[f] = text_of(reading, doc_at(flavors, f));
        const struct object *object =
            object_find(reading->objects, OBJECT_ADMISSION_CHECK, STR(""), check->name);
        check->found = object && !object->deleted_ns;
        check->active = object && admission_check_active(object);
    }
}

static void read_queue(void *context, const struct object *object)
{
    struct reading *reading = context;
    CHECK(reading->at < reading->tree->queue_count);
    struct cluster_queue *queue = &reading->tree->queues[reading->at];
    const struct doc *spec = doc_get(object->document, "spec"), *groups = doc_get(spec, "resourceGroups");
    queue->object = object;
    queue->name = arena_str(&reading->tree->arena, object->name);
    queue->cohort = arena_str(&reading->tree->arena, cohort_of(spec));
    queue->strict = str_is(doc_str(doc_get(spec, "queueingStrategy"), STR("")), "StrictFIFO");
    queue->stop = read_stop(spec);
    const struct doc *selector = doc_get(spec, "namespaceSelector");
    queue->selector = selector ? doc_clone(&reading->tree->arena, selector) : NULL;
    read_preemption(spec, queue);
    read_checks(reading, spec, queue);
    queue->group_count = doc_len(groups);
    queue->groups = ARENA_ARRAY(&reading->tree->arena, struct resource_group, queue->group_count);
    for (size_t g = 0; g < queue->group_count; g++)
        read_group(reading, doc_at(groups, g), &queue->groups[g]);
    list_init(&queue->parked);
    list_init(&queue->booked);
    str_map_put(&reading->tree->queue_names, queue->name, as_pointer(reading->at++));
}

/* --- cohorts and quota ------------------------------------------------------------------------ */

/* Returns the node of the cohort, made if it is new: a cohort needs no object, only a reference to it. */
static uint32_t cohort_node(struct tree *tree, struct str name)
{
    void *found = str_map_get(&tree->cohort_names, name);
    if (found)
        return (uint32_t)as_index(found);
    str_map_put(&tree->cohort_names, arena_str(&tree->arena, name), as_pointer(tree->cohort_count));
    return (uint32_t)tree->cohort_count++;
}

static struct str parent_of(const struct object *cohort)
{
    const struct doc *spec = doc_get(cohort->document, "spec");
    struct str name = doc_str(doc_get(spec, "parentName"), STR(""));
    return name.len ? name : doc_str(doc_get(spec, "parent"), STR(""));
}

static void name_cohort(void *context, const struct object *object)
{
    struct reading *reading = context;
    cohort_node(reading->tree, object->name);
    if (parent_of(object).len)
        cohort_node(reading->tree, parent_of(object));
    const struct doc *groups = doc_path(object->document, "spec", "resourceGroups", NULL);
    for (size_t g = 0; g < doc_len(groups); g++) {
        const struct doc *flavors = doc_get(doc_at(groups, g), "flavors");
        for (size_t f = 0; f < doc_len(flavors); f++) {
            const struct doc *flavor = doc_at(flavors, f), *resources = doc_get(flavor, "resources");
            for (size_t r = 0; r < doc_len(resources); r++)
                cell_number(reading, doc_str(doc_get(flavor, "name"), STR("")),
                            doc_str(doc_get(doc_at(resources, r), "name"), STR("")));
        }
    }
}

/* Reads a quantity in thousandths. Returns false if it is malformed, negative or too large. */
static bool read_milli(const struct doc *node, int64_t *ret_milli)
{
    if (node->kind == DOC_INT) {
        bool fits = node->integer >= 0 && node->integer <= INT64_MAX / 1000;
        *ret_milli = fits ? node->integer * 1000 : 0;
        return fits;
    }
    return (node->kind == DOC_STRING || node->kind == DOC_FLOAT) &&
           quantity_parse_milli(node->text, ret_milli);
}

/* Reads an amount: cpu in thousandths, all other resources in whole units. */
static int64_t read_amount(const struct doc *node, struct str resource, int64_t absent)
{
    int64_t milli;
    if (!node || node->kind == DOC_NULL)
        return absent;
    if (!read_milli(node, &milli)) /* more thousandths than an int64_t can hold: practically infinite */
        return QUOTA_MAX;
    int64_t amount = str_is(resource, "cpu") ? milli : milli / 1000 + (milli % 1000 > 0);
    CHECK(amount >= 0); /* read_milli refuses others */
    return amount > QUOTA_MAX ? QUOTA_MAX : amount;
}

static void read_quotas(struct reading *reading, uint32_t node, const struct doc *spec)
{
    CHECK(node < reading->tree->quota.node_count);
    const struct doc *groups = doc_get(spec, "resourceGroups");
    for (size_t g = 0; g < doc_len(groups); g++) {
        const struct doc *flavors = doc_get(doc_at(groups, g), "flavors");
        for (size_t f = 0; f < doc_len(flavors); f++) {
            const struct doc *flavor = doc_at(flavors, f), *resources = doc_get(flavor, "resources");
            for (size_t r = 0; r < doc_len(resources); r++) {
                const struct doc *item = doc_at(resources, r);
                struct str resource = doc_str(doc_get(item, "name"), STR(""));
                uint32_t cell = cell_number(reading, doc_str(doc_get(flavor, "name"), STR("")), resource);
                if (cell >= reading->tree->quota.cell_count)
                    continue; /* the group does not cover the resource */
                struct quota_cell *to = &reading->tree->quota.nodes[node].cells[cell];
                to->nominal = read_amount(doc_get(item, "nominalQuota"), resource, 0);
                to->borrowing = read_amount(doc_get(item, "borrowingLimit"), resource, QUOTA_NO_LIMIT);
                to->lending = read_amount(doc_get(item, "lendingLimit"), resource, QUOTA_NO_LIMIT);
            }
        }
    }
}

static int64_t read_weight(const struct doc *spec)
{
    const struct doc *weight = doc_path(spec, "fairSharing", "weight", NULL);
    int64_t milli;
    int64_t read = weight && read_milli(weight, &milli) ? milli : 1000;
    CHECK(read >= 0);
    return read;
}

static void read_cohort(void *context, const struct object *object)
{
    struct reading *reading = context;
    struct tree *tree = reading->tree;
    uint32_t node = cohort_node(tree, object->name);
    CHECK(node < tree->cohort_count && tree->cohort_count <= tree->quota.node_count);
    struct str parent = parent_of(object);
    if (parent.len)
        tree->quota.nodes[node].parent = cohort_node(tree, parent);
    tree->weights_milli[node] = read_weight(doc_get(object->document, "spec"));
    read_quotas(reading, node, doc_get(object->document, "spec"));
}

static void name_cells(struct tree *tree)
{
    size_t count = tree->cell_names.len;
    tree->cell_flavors = ARENA_ARRAY(&tree->arena, struct str, count);
    tree->cell_resources = ARENA_ARRAY(&tree->arena, struct str, count);
    for (size_t q = 0; q < tree->queue_count; q++) {
        for (size_t g = 0; g < tree->queues[q].group_count; g++) {
            const struct resource_group *group = &tree->queues[q].groups[g];
            for (size_t f = 0; f < group->flavor_count; f++) {
                for (size_t r = 0; r < group->resource_count; r++) {
                    CHECK(group->flavors[f].cells[r] < count);
                    tree->cell_flavors[group->flavors[f].cells[r]] = group->flavors[f].name;
                    tree->cell_resources[group->flavors[f].cells[r]] = group->resources[r];
                }
            }
        }
    }
}

static void read_tree(struct reading *reading)
{
    struct tree *tree = reading->tree;
    object_visit(reading->objects, OBJECT_COHORT, STR(""), name_cohort, reading);
    for (size_t q = 0; q < tree->queue_count; q++)
        if (tree->queues[q].cohort.len)
            cohort_node(tree, tree->queues[q].cohort);
    size_t nodes = tree->cohort_count + tree->queue_count;
    name_cells(tree);
    quota_tree_init(&tree->quota, nodes, tree->cell_names.len);
    tree->weights_milli = ARENA_ARRAY(&tree->arena, int64_t, nodes);
    for (size_t n = 0; n < nodes; n++)
        tree->weights_milli[n] = 1000;
    object_visit(reading->objects, OBJECT_COHORT, STR(""), read_cohort, reading);
    for (size_t q = 0; q < tree->queue_count; q++) {
        struct cluster_queue *queue = &tree->queues[q];
        const struct doc *spec = doc_get(queue->object->document, "spec");
        queue->node = (uint32_t)(tree->cohort_count + q);
        if (queue->cohort.len)
            tree->quota.nodes[queue->node].parent = cohort_node(tree, queue->cohort);
        tree->weights_milli[queue->node] = read_weight(spec);
        read_quotas(reading, queue->node, spec);
    }
    /* Every cohort that is named has a node: name_cohort has made all of them. */
    CHECK(tree->cohort_count + tree->queue_count == nodes && tree->cohort_names.len == tree->cohort_count);
    quota_tree_bind(&tree->quota);
}

/* --- active queues --------------------------------------------------------------------------- */

/* The obstacles that make a queue inactive: its message has all of them, its reason is the first. */
struct judging {
    struct cluster_queue *queue;
    struct buf text;
};

/* Adds an obstacle: appends "references missing ResourceFlavor(s): a,b" to the message. `names` are
 * comma-separated. */
static void complain(struct judging *judging, const char *reason, const char *what, struct str names)
{
    if (!judging->text.len)
        judging->queue->reason = reason;
    buf_printf(&judging->text, "%s%s" STR_FORMAT, judging->text.len ? ", " : "", what, STR_ARG(names));
}

static void add_name(struct buf *names, struct str name)
{
    buf_printf(names, "%s" STR_FORMAT, names->len ? "," : "", STR_ARG(name));
}

/* Whether an earlier group or flavour of the queue has the same name. */
static bool named_before(const struct cluster_queue *queue, size_t group, size_t flavor)
{
    struct str name = queue->groups[group].flavors[flavor].name;
    for (size_t g = 0; g <= group; g++)
        for (size_t f = 0; f < (g < group ? queue->groups[g].flavor_count : flavor); f++)
            if (str_equal(queue->groups[g].flavors[f].name, name))
                return true;
    return false;
}

static void judge_flavors(struct judging *judging)
{
    const struct cluster_queue *queue = judging->queue;
    struct buf missing BUF_CLEANUP = {0};
    for (size_t g = 0; g < queue->group_count; g++)
        for (size_t f = 0; f < queue->groups[g].flavor_count; f++)
            if (!queue->groups[g].flavors[f].flavor && !named_before(queue, g, f))
                add_name(&missing, queue->groups[g].flavors[f].name);
    if (missing.len)
        complain(judging, "FlavorNotFound", "references missing ResourceFlavor(s): ", buf_str(&missing));
}

static void judge_topologies(struct judging *judging)
{
    const struct cluster_queue *queue = judging->queue;
    for (size_t g = 0; g < queue->group_count; g++) {
        for (size_t f = 0; f < queue->groups[g].flavor_count; f++) {
            const struct flavor *flavor = queue->groups[g].flavors[f].flavor;
            if (!flavor || !flavor->topology.len || flavor->topology_found || named_before(queue, g, f))
                continue;
            struct buf text BUF_CLEANUP = {0};
            buf_printf(&text, "\"" STR_FORMAT "\" for TAS flavor \"" STR_FORMAT "\"",
                       STR_ARG(flavor->topology), STR_ARG(flavor->name));
            complain(judging, "TopologyNotFound", "there is no Topology ", buf_str(&text));
        }
    }
}

/* A queue with a check that no controller answers is inactive, rather than open to all. */
static void judge_checks(struct judging *judging)
{
    const struct cluster_queue *queue = judging->queue;
    struct buf missing BUF_CLEANUP = {0}, idle BUF_CLEANUP = {0};
    for (size_t c = 0; c < queue->check_count; c++) {
        struct buf *names = !queue->checks[c].found ? &missing : !queue->checks[c].active ? &idle : NULL;
        if (names)
            add_name(names, queue->checks[c].name);
    }
    if (missing.len)
        complain(judging, "AdmissionCheckNotFound",
                 "references missing AdmissionCheck(s): ", buf_str(&missing));
    if (idle.len)
        complain(judging, "AdmissionCheckInactive",
                 "references inactive AdmissionCheck(s): ", buf_str(&idle));
}

static void judge_queue(struct tree *tree, struct cluster_queue *queue)
{
    CHECK(queue->node < tree->quota.node_count);
    struct judging judging = {.queue = queue};
    queue->active = false;
    if (queue->object->deleted_ns) {
        queue->reason = "Terminating";
        queue->message = STR("Can't admit new workloads; clusterQueue is terminating");
        return;
    }
    if (tree->quota.nodes[queue->node].broken)
        complain(&judging, "CohortCycle", "its cohorts form a cycle", STR(""));
    if (queue->stop != STOP_NONE)
        complain(&judging, "Stopped", "is stopped", STR(""));
    judge_flavors(&judging);
    judge_checks(&judging);
    judge_topologies(&judging);
    queue->active = judging.text.len == 0;
    if (queue->active) {
        queue->reason = "Ready";
        queue->message = STR("Can admit new workloads");
    } else {
        queue->message = arena_printf(&tree->arena, "Can't admit new workloads: " STR_FORMAT ".",
                                      STR_ARG(buf_str(&judging.text)));
    }
    CHECK(queue->reason && queue->message.len > 0);
    buf_done(&judging.text);
}

static void read_local(void *context, const struct object *object)
{
    struct reading *reading = context;
    CHECK(reading->at < reading->tree->local_count);
    struct local_queue *local = &reading->tree->locals[reading->at++];
    const struct doc *spec = doc_get(object->document, "spec");
    local->object = object;
    local->queue_name = text_of(reading, doc_get(spec, "clusterQueue"));
    local->queue = tree_queue(reading->tree, local->queue_name);
    local->stop = read_stop(spec);
    local->active = false;
    if (local->stop != STOP_NONE) {
        local->reason = "Stopped";
        local->message = STR("LocalQueue is stopped");
    } else if (!local->queue) {
        local->reason = "ClusterQueueDoesNotExist";
        local->message = STR("Can't submit new workloads to clusterQueue");
    } else if (!local->queue->active) {
        local->reason = "ClusterQueueIsInactive";
        local->message = STR("Can't submit new workloads to clusterQueue");
    } else {
        local->active = true;
        local->reason = "Ready";
        local->message = STR("Can submit new workloads to localQueue");
    }
}

uint64_t tree_versions(const struct object_store *objects)
{
    static const enum object_kind kinds[] = {
        OBJECT_CLUSTER_QUEUE,  OBJECT_LOCAL_QUEUE, OBJECT_RESOURCE_FLAVOR,         OBJECT_COHORT,
        OBJECT_TOPOLOGY,       OBJECT_NAMESPACE,   OBJECT_WORKLOAD_PRIORITY_CLASS, OBJECT_ADMISSION_CHECK,
        OBJECT_PRIORITY_CLASS,
    };
    uint64_t sum = 1;
    for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++)
        sum += object_kind_version(objects, kinds[i]);
    return sum;
}

void tree_read(struct tree *tree, const struct object_store *objects)
{
    CHECK(tree->versions == 0 && tree->queue_count == 0); /* fresh, or after tree_done */
    struct reading reading = {.tree = tree, .objects = objects};
    tree->versions = tree_versions(objects);
    tree->ending_count = tree_count_ending(objects);
    tree->flavor_count = object_count(objects, OBJECT_RESOURCE_FLAVOR);
    tree->flavors = ARENA_ARRAY(&tree->arena, struct flavor, tree->flavor_count);
    object_visit(objects, OBJECT_RESOURCE_FLAVOR, STR(""), read_flavor, &reading);
    CHECK(reading.at == tree->flavor_count);
    reading.at = 0;
    tree->queue_count = object_count(objects, OBJECT_CLUSTER_QUEUE);
    tree->queues = ARENA_ARRAY(&tree->arena, struct cluster_queue, tree->queue_count);
    object_visit(objects, OBJECT_CLUSTER_QUEUE, STR(""), read_queue, &reading);
    CHECK(reading.at == tree->queue_count && tree->queue_names.len == tree->queue_count);
    read_tree(&reading);
    for (size_t q = 0; q < tree->queue_count; q++)
        judge_queue(tree, &tree->queues[q]);
    reading.at = 0;
    tree->local_count = object_count(objects, OBJECT_LOCAL_QUEUE);
    tree->locals = ARENA_ARRAY(&tree->arena, struct local_queue, tree->local_count);
    object_visit(objects, OBJECT_LOCAL_QUEUE, STR(""), read_local, &reading);
    CHECK(reading.at == tree->local_count);
}

void tree_done(struct tree *tree)
{
    for (size_t q = 0; q < tree->queue_count; q++) {
        struct cluster_queue *queue = &tree->queues[q];
        CHECK(queue->pending.len == 0 && list_empty(&queue->parked) && list_empty(&queue->booked));
        CHECK(queue->counts.pending == 0 && queue->counts.reserving == 0); /* all are unbound */
        heap_done(&queue->pending);
    }
    quota_tree_done(&tree->quota);
    str_map_done(&tree->flavor_names);
    str_map_done(&tree->queue_names);
    str_map_done(&tree->cohort_names);
    str_map_done(&tree->cell_names);
    arena_done(&tree->arena);
    *tree = (struct tree){0};
}
