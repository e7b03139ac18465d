#include "kube/select.h"

#include "core/health/fault.h"
#include "core/slice/slice.h"
#include "kube/stored.h"

#include <stdio.h>

#include "kube/render.h"

/* --- parsing ----------------------------------------------------------------------------------- */

static bool word_char(char c)
{
    return c && !strchr(" \t(),=!", c);
}

static struct str take_word(struct str *text)
{
    *text = str_trim(*text);
    size_t len = 0;
    while (len < text->len && word_char(text->data[len]))
        len++;
    struct str word = {text->data, len};
    *text = str_trim((struct str){text->data + len, text->len - len});
    return word;
}

static bool take(struct str *text, const char *token)
{
    size_t len = strlen(token);
    if (text->len < len || memcmp(text->data, token, len) != 0)
        return false;
    *text = str_trim((struct str){text->data + len, text->len - len});
    return true;
}

static int take_set(struct arena *arena, struct str *text, struct select_term *term, struct error *error)
{
    if (!take(text, "("))
        return error_set(error, ERROR_INVALID, "expected ( after in or notin");
    size_t count = 1;
    for (size_t i = 0; i < text->len && text->data[i] != ')'; i++)
        count += text->data[i] == ',';
    if (count > SELECT_VALUES_MAX)
        return error_set(error, ERROR_LIMIT, "at most %d values", SELECT_VALUES_MAX);
    term->values = ARENA_ARRAY(arena, struct str, count);
    do {
        CHECK(term->value_count < count);
        term->values[term->value_count++] = arena_str(arena, take_word(text));
    } while (take(text, ","));
    if (!take(text, ")"))
        return error_set(error, ERROR_INVALID, "expected , or ) in a set of values");
    return 0;
}

static void one_value(struct arena *arena, struct select_term *term, enum select_op op, struct str value)
{
    term->op = op;
    term->values = ARENA_NEW(arena, struct str);
    term->values[0] = arena_str(arena, value);
    term->value_count = 1;
}

static int take_label(struct arena *arena, struct str *text, struct select_term *term, struct error *error)
{
    bool negated = take(text, "!");
    struct str key = take_word(text);
    if (!name_is_label_key(key))
        return error_set(error, ERROR_INVALID, "\"" STR_FORMAT "\" is not a label key", STR_ARG(key));
    term->key = arena_str(arena, key);
    term->op = negated ? SELECT_NOT_EXISTS : SELECT_EXISTS;
    if (negated || text->len == 0 || text->data[0] == ',')
        return 0;
    if (take(text, "==") || take(text, "=")) {
        one_value(arena, term, SELECT_IN, take_word(text));
        return 0;
    }
    if (take(text, "!=")) {
        one_value(arena, term, SELECT_NOT_IN, take_word(text));
        return 0;
    }
    struct str word = take_word(text);
    if (str_is(word, "in"))
        term->op = SELECT_IN;
    else if (str_is(word, "notin"))
        term->op = SELECT_NOT_IN;
    else
        return error_set(error, ERROR_INVALID, "expected =, !=, in or notin after \"" STR_FORMAT "\"",
                         STR_ARG(key));
    return take_set(arena, text, term, error);
}

static bool field_known(const struct resource *resource, struct str path)
{
    if (str_is(path, "metadata.name") || (str_is(path, "metadata.namespace") && resource->namespaced))
        return true;
    struct str fields = str_from(resource->fields), field, rest;
    while (str_cut(fields, ' ', &field, &rest)) {
        if (str_equal(field, path))
            return true;
        fields = rest;
    }
    return str_equal(fields, path);
}

static int take_field(struct arena *arena, const struct resource *resource, struct str *text,
                      struct select_term *term, struct error *error)
{
    struct str key = take_word(text);
    if (!field_known(resource, key))
        return error_set(error, ERROR_INVALID, "field label not supported: " STR_FORMAT, STR_ARG(key));
    term->key = arena_str(arena, key);
    enum select_op op = take(text, "!=") ? SELECT_NOT_IN : SELECT_IN;
    if (op == SELECT_IN && !take(text, "==") && !take(text, "="))
        return error_set(error, ERROR_INVALID, "expected = or != after \"" STR_FORMAT "\"", STR_ARG(key));
    size_t len = 0;
    while (len < text->len && text->data[len] != ',')
        len++;
    one_value(arena, term, op, str_trim((struct str){text->data, len}));
    *text = (struct str){text->data + len, text->len - len};
    return 0;
}

static int parse_terms(struct arena *arena, const struct resource *resource, struct str text, bool fields,
                       struct select_term **ret_terms, size_t *ret_count, struct error *error)
{
    text = str_trim(text);
    if (text.len == 0)
        return 0;
    struct select_term terms[SELECT_TERMS_MAX] = {0};
    size_t count = 0;
    do {
        if (count == SELECT_TERMS_MAX)
            return error_set(error, ERROR_LIMIT, "at most %d terms", SELECT_TERMS_MAX);
        struct select_term *term = &terms[count++];
        int rc =
            fields ? take_field(arena, resource, &text, term, error) : take_label(arena, &text, term, error);
        if (rc < 0)
            return rc;
    } while (take(&text, ","));
    if (text.len)
        return error_set(error, ERROR_INVALID, "unexpected \"" STR_FORMAT "\"", STR_ARG(text));
    *ret_terms = ARENA_ARRAY(arena, struct select_term, count);
    memcpy(*ret_terms, terms, count * sizeof *terms);
    *ret_count = count;
    return 0;
}

int select_parse(struct arena *arena, const struct resource *resource, struct str labels, struct str fields,
                 struct selector *ret_selector, struct error *error)
{
    struct selector parsed = {0};
    if (!str_is_utf8(labels) || !str_is_utf8(fields))
        return error_set(error, ERROR_INVALID, "a selector is UTF-8");
    int rc = parse_terms(arena, resource, labels, false, &parsed.labels, &parsed.label_count, error);
    if (rc < 0)
        return rc;
    rc = parse_terms(arena, resource, fields, true, &parsed.fields, &parsed.field_count, error);
    if (rc < 0)
        return rc;
    for (size_t i = 0; i < parsed.field_count; i++) {
        const struct select_term *term = &parsed.fields[i];
        bool fixed = str_starts(term->key, STR("metadata.")) || resource->object == OBJECT_EVENT;
        if (str_is(term->key, "metadata.name") && term->op == SELECT_IN)
            parsed.name = term->values[0];
        parsed.mutable |= !fixed;
    }
    parsed.mutable |= parsed.label_count > 0;
    *ret_selector = parsed;
    return 0;
}

/* --- matching ---------------------------------------------------------------------------------- */

/* Returns whether a term holds. `value.data` is NULL if the label or field is absent. */
static bool term_holds(const struct select_term *term, struct str value)
{
    bool found = false;
    for (size_t i = 0; i < term->value_count && !found; i++)
        found = str_equal(term->values[i], value);
    switch (term->op) {
    case SELECT_IN:
        return value.data && found;
    case SELECT_NOT_IN:
        return !value.data || !found;
    case SELECT_EXISTS:
        return value.data != NULL;
    default:
        return value.data == NULL;
    }
}

static struct str present(struct str value)
{
    return value.data ? value : STR("");
}

static struct str doc_label(const struct doc *labels, struct str key)
{
    const struct doc *value = doc_get_str(labels, key);
    return value && value->kind == DOC_STRING ? present(value->text) : (struct str){0};
}

static struct str label_of(const struct core *core, struct object_ref object, struct str key,
                           const struct labels *ours)
{
    struct str value = labels_get(ours, key, (struct str){0});
    if (value.data)
        return value;
    switch (object.kind) {
    case OBJECT_JOBSET:
        return doc_label(doc_path(object.jobset->document, "metadata", "labels", NULL), key);
    case OBJECT_JOB:
        if (object.job->meta)
            return (struct str){0};
        return doc_label(doc_path(render_job_template(object.job), "metadata", "labels", NULL), key);
    case OBJECT_POD:
        if (object.task->meta)
            return (struct str){0};
        return doc_label(
            doc_path(render_job_template(object.task->job), "spec", "template", "metadata", "labels", NULL),
            key);
    case OBJECT_NODE:
        return machine_label(object.machine, key, &value) ? present(value) : (struct str){0};
    case OBJECT_EVENT:
        return (struct str){0};
    case OBJECT_WORKLOAD:
        if (object.workload->own)
            return doc_label(doc_path(object.workload->own->document, "metadata", "labels", NULL), key);
        return str_is(key, "kueue.x-k8s.io/queue-name") ? present(object.workload->queue_name)
                                                        : (struct str){0};
    default:
        if (!object_kind_info(object.kind))
            return (struct str){0};
        return doc_label(doc_path(object.object->document, "metadata", "labels", NULL), key);
    }
}

/* Returns the value at a dotted path of a rendered object: "" for an absent member, "false" for an absent
 * boolean. */
static struct str field_in(const struct doc *object, struct str path, struct arena *scratch)
{
    const struct doc *node = object;
    struct str step, rest;
    if (str_is(path, "status.successful"))
        return arena_printf(scratch, "%lld",
                            (long long)doc_int(doc_path(object, "status", "succeeded", NULL), 0));
    bool boolean = str_is(path, "spec.unschedulable");
    while (str_cut(path, '.', &step, &rest)) {
        node = doc_get_str(node, step);
        path = rest;
    }
    node = doc_get_str(node, path);
    if (node && node->kind == DOC_STRING)
        return present(node->text);
    if (node && node->kind == DOC_INT)
        return arena_printf(scratch, "%lld", (long long)node->integer);
    if (boolean)
        return doc_bool(node, false) ? STR("true") : STR("false");
    return STR("");
}

static struct str pod_field(const struct core *core, const struct task *task, struct str path)
{
    const struct cluster *cluster = core_cluster(core);
    bool placed = cluster && task->machine < cluster->machine_count;
    if (str_is(path, "spec.nodeName"))
        return placed ? cluster->machines[task->machine].name : STR("");
    if (str_is(path, "status.podIP"))
        return placed ? cluster->machines[task->machine].address : STR("");
    if (str_is(path, "status.phase"))
        return str_from(render_pod_phase(task));
    switch (task->job->rjob->job.pod.restart_policy) {
    case RESTART_NEVER:
        return STR("Never");
    case RESTART_ALWAYS:
        return STR("Always");
    default:
        return STR("OnFailure");
    }
}

static struct str note_field(const struct note *note, struct str path, struct arena *scratch)
{
    const struct resource *about = resource_of_kind(note->regarding);
    char uid[UID_TEXT_MAX];
    if (str_is(path, "reason"))
        return present(note->reason);
    if (str_is(path, "type"))
        return note->warning ? STR("Warning") : STR("Normal");
    if (str_is(path, "reportingComponent"))
        return STR("phalanx-controller");
    if (str_ends(path, STR(".kind")))
        return str_from(about ? about->kind : "");
    if (str_ends(path, STR(".apiVersion")))
        return str_from(about ? resource_api_version(about) : "");
    if (str_ends(path, STR(".namespace")))
        return present(note->namespace_);
    if (str_ends(path, STR(".name")) || note->regarding == OBJECT_NODE)
        return present(note->name);
    uid_text(note->regarding_uid, uid);
    return arena_str(scratch, str_from(uid));
}

/* Reads a field of a client's Event, which is kept as v1 and has another name for the regarded object. */
static struct str event_field(const struct object *event, struct str path, struct arena *scratch)
{
    struct str prefix = STR("regarding");
    if (str_starts(path, prefix)) {
        struct str rest = {path.data + prefix.len, path.len - prefix.len};
        path = arena_printf(scratch, "involvedObject" STR_FORMAT, STR_ARG(rest));
    }
    return field_in(event->document, path, scratch);
}

static struct str fault_field(const struct fault *fault, struct str path)
{
    if (str_is(path, "spec.machine"))
        return fault->machine;
    if (str_is(path, "spec.code"))
        return fault->code;
    if (str_is(path, "status.state"))
        return fault->open ? STR("Open") : STR("Closed");
    return str_from(fault_level_names[fault->level]);
}

static struct str namespace_of(struct object_ref object)
{
    switch (object.kind) {
    case OBJECT_JOBSET:
        return object.jobset->namespace_;
    case OBJECT_JOB:
        return object.job->jobset->namespace_;
    case OBJECT_POD:
        return object.task->job->jobset->namespace_;
    case OBJECT_EVENT:
        return render_note_namespace(object.note);
    case OBJECT_WORKLOAD:
        return object.workload->jobset->namespace_;
    case OBJECT_SLICE:
    case OBJECT_FABRIC_SESSION:
        return shown_of(object)->namespace_;
    default:
        return object_kind_info(object.kind) ? object.object->namespace_ : STR("");
    }
}

static struct str field_of(const struct core *core, struct object_ref object, struct str name,
                           struct str path, struct arena *scratch)
{
    if (str_is(path, "metadata.name"))
        return name;
    if (str_is(path, "metadata.namespace"))
        return namespace_of(object);
    switch (object.kind) {
    case OBJECT_JOBSET:
        return str_from(terminal_state_name(object.jobset->terminal_state));
    case OBJECT_JOB:
        return arena_printf(scratch, "%u", object.job->succeeded);
    case OBJECT_POD:
        return pod_field(core, object.task, path);
    case OBJECT_NODE:
        return object.machine->cordoned ? STR("true") : STR("false");
    case OBJECT_FAULT:
        return fault_field(object.fault, path);
    case OBJECT_CUBE:
        return object.cube->drain ? STR("true") : STR("false");
    case OBJECT_SWITCH:
        return object.optical_switch->drain ? STR("true") : STR("false");
    case OBJECT_SLICE:
        return str_from(slice_word(object.slice));
    case OBJECT_EVENT:
        return note_field(object.note, path, scratch);
    case OBJECT_NAMESPACE:
        return str_from(stored_namespace_phase(object.object));
    case OBJECT_USER_EVENT:
        return event_field(object.object, path, scratch);
    default:
        return object_kind_info(object.kind) ? field_in(object.object->document, path, scratch) : STR("");
    }
}

bool select_object(const struct selector *selector, const struct core *core, struct object_ref object,
                   struct str name, struct arena *scratch)
{
    for (size_t i = 0; i < selector->field_count; i++)
        if (!term_holds(&selector->fields[i], field_of(core, object, name, selector->fields[i].key, scratch)))
            return false;
    if (selector->label_count == 0)
        return true;
    struct labels ours = {0};
    if (object.kind == OBJECT_JOB || object.kind == OBJECT_POD)
        ours = job_labels(object.kind == OBJECT_POD ? object.task->job : object.job,
                          object.kind == OBJECT_POD ? object.task : NULL, scratch);
    for (size_t i = 0; i < selector->label_count; i++) {
        struct str key = selector->labels[i].key;
        struct str value = label_of(core, object, key, &ours);
        if (!term_holds(&selector->labels[i], value))
            return false;
    }
    return true;
}

bool select_json(const struct selector *selector, struct str object, struct str metadata)
{
    struct arena arena __attribute__((cleanup(arena_done))) = {0};
    struct doc *whole = NULL, *labels = NULL;
    bool holds = true;
    if (selector->field_count) {
        if (json_parse(&arena, object, &whole, NULL) < 0)
            return false;
        for (size_t i = 0; i < selector->field_count && holds; i++)
            holds = term_holds(&selector->fields[i], field_in(whole, selector->fields[i].key, &arena));
    }
    if (!holds || selector->label_count == 0)
        return holds;
    if (json_parse(&arena, metadata, &labels, NULL) < 0)
        return false;
    labels = doc_get(labels, "labels");
    for (size_t i = 0; i < selector->label_count && holds; i++)
        holds = term_holds(&selector->labels[i], doc_label(labels, selector->labels[i].key));
    return holds;
}
