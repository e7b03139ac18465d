#include "sim/capacity/scenario_queues.h"

#include <stdio.h>
#include <string.h>

#include "doc/json.h"
#include "sim/capacity/field.h"

#define QUEUE_ALL STR("*")

/* --- reading -------------------------------------------------------------------------------------- */

/* Returns whether the API accepts the text as the name of an object. */
static bool queue_is_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        bool is_letter =
            (name.data[i] >= 'a' && name.data[i] <= 'z') || (name.data[i] >= '0' && name.data[i] <= '9');
        if (!is_letter && (name.data[i] != '-' || i == 0 || i == name.len - 1))
            return false;
    }
    return name.len > 0 && name.len <= SCENARIO_QUEUE_NAME_MAX;
}

static void queue_read_name(struct reader *reader, struct sim_scenario *scenario, const struct place *place,
                            struct str *ret)
{
    if (!place->doc && ret->data)
        return;
    if (!place->doc || place->doc->kind != DOC_STRING || !queue_is_name(place->doc->text))
        field_wrong(reader, place, "a name of at most 50 lower-case letters, digits and dashes");
    else
        *ret = arena_str(&scenario->arena, place->doc->text);
}

/* Returns the queue that has the name in its list, or NULL. */
static const struct scenario_queue *queue_matching(const struct sim_scenario *scenario, struct str name)
{
    for (size_t i = 0; i < scenario->queues.len; i++)
        for (size_t m = 0; m < scenario->queues.items[i].match_count; m++)
            if (str_equal(scenario->queues.items[i].match[m], name))
                return &scenario->queues.items[i];
    return NULL;
}

static void queue_read_match(struct reader *reader, struct sim_scenario *scenario, const struct place *list,
                             struct scenario_queue *queue)
{
    size_t count = list->doc ? doc_len(list->doc) : 1;
    if (list->doc && (!field_array(reader, list) || count == 0 || count > SCENARIO_MATCHES_MAX)) {
        field_wrong(reader, list, "a list of 1 to 1000 names");
        return;
    }
    struct str *match = ARENA_ARRAY(&scenario->arena, struct str, count);
    match[0] = queue->name;
    for (size_t i = 0; list->doc && i < count; i++) {
        struct place item = field_item(list, i);
        struct buf text BUF_CLEANUP = {0};
        if (item.doc->kind == DOC_INT) { /* SWF's queues are numbers */
            json_write(&text, item.doc);
            match[i] = arena_str(&scenario->arena, buf_str(&text));
        } else if (item.doc->kind == DOC_STRING && item.doc->text.len > 0) {
            match[i] = arena_str(&scenario->arena, item.doc->text);
        } else {
            field_wrong(reader, &item, "the name that the trace has for it");
            return;
        }
        const struct scenario_queue *other = queue_matching(scenario, match[i]);
        if (other) {
            field_says(reader, &item, "\"" STR_FORMAT "\" is matched by queue " STR_FORMAT " already",
                       STR_ARG(match[i]), STR_ARG(other->name));
            return;
        }
    }
    queue->match = match;
    queue->match_count = count;
}

static void queue_read(struct reader *reader, struct sim_scenario *scenario, const struct place *item)
{
    static const char *const known[] = {"name", "match",    "quota", "cohort", "borrow",
                                        "lend", "priority", "spec",  NULL};
    struct place name = field_of(item, "name"), match = field_of(item, "match");
    struct place quota = field_of(item, "quota"), cohort = field_of(item, "cohort");
    struct place borrow = field_of(item, "borrow"), lend = field_of(item, "lend");
    struct place priority = field_of(item, "priority"), spec = field_of(item, "spec");
    struct scenario_queue queue = {.borrow = -1, .lend = -1, .cohort = STR("")};
    if (!field_object(reader, item, known) || !quota.doc) {
        field_says(reader, item, "expected name and quota");
        return;
    }
    queue_read_name(reader, scenario, &name, &queue.name);
    for (size_t i = 0; i < scenario->queues.len && !reader->failed; i++)
        if (str_equal(scenario->queues.items[i].name, queue.name))
            field_says(reader, &name, "there is a queue of this name already");
    queue_read_name(reader, scenario, &cohort, &queue.cohort);
    field_count(reader, &quota, 0, TRACE_CHIPS_MAX, &queue.quota);
    field_count(reader, &borrow, 0, TRACE_CHIPS_MAX, &queue.borrow);
    field_count(reader, &lend, 0, TRACE_CHIPS_MAX, &queue.lend);
    scenario_read_priority(reader, scenario, &priority, &queue.priority);
    if (spec.doc && spec.doc->kind != DOC_OBJECT)
        field_wrong(reader, &spec, "an object");
    if (reader->failed)
        return;
    queue_read_match(reader, scenario, &match, &queue);
    queue.spec = spec.doc ? doc_clone(&scenario->arena, spec.doc) : NULL;
    queue.at = arena_printf(&scenario->arena, "%s:%u:%u: %s", reader->file, item->doc->line,
                            item->doc->column, item->path)
                   .data;
    vec_push(&scenario->queues, queue);
}

void scenario_read_queues(struct reader *reader, struct sim_scenario *scenario, const struct place *list)
{
    if (!field_array(reader, list))
        return;
    if (doc_len(list->doc) > SCENARIO_QUEUES_MAX) {
        field_says(reader, list, "expected at most %d queues, got %zu", SCENARIO_QUEUES_MAX,
                   doc_len(list->doc));
        return;
    }
    for (size_t i = 0; i < doc_len(list->doc) && !reader->failed; i++) {
        struct place item = field_item(list, i);
        queue_read(reader, scenario, &item);
    }
}

void scenario_read_queue_name(struct reader *reader, const struct sim_scenario *scenario,
                              const struct place *place, uint32_t *ret)
{
    if (!place->doc)
        return;
    for (size_t i = 0; i < scenario->queues.len && place->doc->kind == DOC_STRING; i++)
        if (str_equal(scenario->queues.items[i].name, place->doc->text)) {
            *ret = (uint32_t)i + 1;
            return;
        }
    field_wrong(reader, place, "the name of one of the queues");
}

void scenario_read_priority(struct reader *reader, struct sim_scenario *scenario, const struct place *place,
                            int32_t *ret)
{
    int64_t value = *ret;
    struct error error = {0};
    field_count(reader, place, -TRACE_PRIORITY_MAX, TRACE_PRIORITY_MAX, &value);
    if (!reader->failed && scenario_note_priority(scenario, (int32_t)value, &error) < 0)
        field_says(reader, place, "%s", error.text);
    *ret = (int32_t)value;
}

void scenario_read_classes(struct reader *reader, struct sim_scenario *scenario, const struct place *place)
{
    if (!place->doc)
        return;
    if (place->doc->kind != DOC_OBJECT) {
        field_wrong(reader, place, "an object: priorities by QoS");
        return;
    }
    for (size_t i = 0; i < place->doc->object.len && !reader->failed; i++) {
        const struct doc_member *member = &place->doc->object.members[i];
        struct scenario_class class = {.name = arena_str(&scenario->arena, member->key)};
        struct place value = {.doc = member->value, .parent = place->doc};
        snprintf(value.path, sizeof value.path, "%.120s.%.70s", place->path, class.name.data);
        scenario_read_priority(reader, scenario, &value, &class.priority);
        vec_push(&scenario->trace.classes, class);
    }
}

/* --- of jobs -------------------------------------------------------------------------------------- */

uint32_t scenario_queue_of(const struct sim_scenario *scenario, struct str name, bool *ret_found)
{
    const struct scenario_queue *queue = name.len ? queue_matching(scenario, name) : NULL;
    if (!queue)
        queue = queue_matching(scenario, QUEUE_ALL);
    *ret_found = queue || name.len == 0 || scenario->queues.len == 0;
    return queue ? (uint32_t)(queue - scenario->queues.items) + 1 : 0;
}

int scenario_no_queue(const struct sim_scenario *scenario, struct str name, struct error *error)
{
    return error_set(error, ERROR_INVALID,
                     "%s: the trace has jobs of the queue \"" STR_FORMAT
                     "\", and no queue matches it; name it, "
                     "or \"*\", in a list `match`",
                     scenario->queues.items[0].at, STR_ARG(name));
}

int scenario_note_priority(struct sim_scenario *scenario, int32_t priority, struct error *error)
{
    size_t at = sorted_place(scenario->priorities.len, i, scenario->priorities.items[i], priority);
    if (priority == 0 || (at < scenario->priorities.len && scenario->priorities.items[at] == priority))
        return 0;
    if (scenario->priorities.len == SCENARIO_PRIORITIES_MAX)
        return error_set(error, ERROR_LIMIT, "more than %d different priorities; give them by QoS",
                         SCENARIO_PRIORITIES_MAX);
    vec_push(&scenario->priorities, priority);
    for (size_t i = scenario->priorities.len - 1; i > at; i--)
        scenario->priorities.items[i] = scenario->priorities.items[i - 1];
    scenario->priorities.items[at] = priority;
    return 0;
}

bool scenario_class_of(const struct sim_scenario *scenario, struct str qos, int32_t *ret)
{
    for (size_t i = 0; i < scenario->trace.classes.len; i++)
        if (str_equal(scenario->trace.classes.items[i].name, qos)) {
            *ret = scenario->trace.classes.items[i].priority;
            return true;
        }
    return false;
}

/* --- objects -------------------------------------------------------------------------------------- */

static void object_begin(struct json_writer *json, const char *api, const char *kind, struct str name,
                         const char *namespace_)
{
    json_begin_object(json);
    json_pair_text(json, "apiVersion", api);
    json_pair_text(json, "kind", kind);
    json_key(json, "metadata");
    json_begin_object(json);
    json_pair_str(json, "name", name);
    if (namespace_)
        json_pair_text(json, "namespace", namespace_);
    json_end_object(json);
}

static void object_put_quota(struct json_writer *json, const struct scenario_queue *queue)
{
    json_key(json, "resourceGroups");
    json_begin_array(json);
    json_begin_object(json);
    json_key(json, "coveredResources");
    json_begin_array(json);
    json_put_text(json, "nvidia.com/gpu");
    json_end_array(json);
    json_key(json, "flavors");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", "machines");
    json_key(json, "resources");
    json_begin_array(json);
    json_begin_object(json);
    json_pair_text(json, "name", "nvidia.com/gpu");
    json_pair_int(json, "nominalQuota", queue->quota);
    if (queue->borrow >= 0)
        json_pair_int(json, "borrowingLimit", queue->borrow);
    if (queue->lend >= 0)
        json_pair_int(json, "lendingLimit", queue->lend);
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
    json_end_array(json);
    json_end_object(json);
    json_end_array(json);
}

static void object_put_cluster_queue(struct json_writer *json, const struct scenario_queue *queue)
{
    object_begin(json, "kueue.x-k8s.io/v1beta2", "ClusterQueue", queue->name, NULL);
    json_key(json, "spec");
    json_begin_object(json);
    json_key(json, "namespaceSelector");
    json_begin_object(json);
    json_end_object(json);
    if (queue->cohort.len)
        json_pair_str(json, "cohortName", queue->cohort);
    object_put_quota(json, queue);
    for (size_t i = 0; i < doc_len(queue->spec); i++) {
        json_key_str(json, queue->spec->object.members[i].key);
        json_put_doc(json, queue->spec->object.members[i].value);
    }
    json_end_object(json);
    json_end_object(json);
}

static void object_put_local_queue(struct json_writer *json, const struct scenario_queue *queue)
{
    object_begin(json, "kueue.x-k8s.io/v1beta2", "LocalQueue", queue->name, "default");
    json_key(json, "spec");
    json_begin_object(json);
    json_pair_str(json, "clusterQueue", queue->name);
    json_end_object(json);
    json_end_object(json);
}

size_t sim_scenario_object_count(const struct sim_scenario *scenario)
{
    size_t queues = scenario->queues.len;
    return (queues ? 1 + 2 * queues : 0) + scenario->priorities.len;
}

void sim_scenario_object(const struct sim_scenario *scenario, size_t number, struct buf *out,
                         enum sim_object *ret_kind, const char **ret_at)
{
    struct json_writer json = {.out = out};
    size_t queues = scenario->queues.len, of_queues = queues ? 1 + 2 * queues : 0;
    char name[32];
    *ret_at = NULL;
    if (number >= of_queues) {
        int32_t priority = scenario->priorities.items[number - of_queues];
        *ret_kind = SIM_PRIORITY_CLASS;
        sim_scenario_class_name(priority, name);
        object_begin(&json, "scheduling.k8s.io/v1", "PriorityClass", str_from(name), NULL);
        json_pair_int(&json, "value", priority);
        json_end_object(&json);
    } else if (number == 0) {
        *ret_kind = SIM_FLAVOR;
        object_begin(&json, "kueue.x-k8s.io/v1beta2", "ResourceFlavor", STR("machines"), NULL);
        json_end_object(&json);
    } else {
        const struct scenario_queue *queue = &scenario->queues.items[(number - 1) % queues];
        *ret_kind = number <= queues ? SIM_CLUSTER_QUEUE : SIM_LOCAL_QUEUE;
        *ret_at = queue->at;
        if (number <= queues)
            object_put_cluster_queue(&json, queue);
        else
            object_put_local_queue(&json, queue);
    }
}

void sim_scenario_class_name(int32_t priority, char ret_name[32])
{
    snprintf(ret_name, 32, priority < 0 ? "priority-minus-%lld" : "priority-%lld",
             priority < 0 ? -(long long)priority : (long long)priority);
}
