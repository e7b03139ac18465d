/* validate_event.c - rules of Events in both forms (Kubernetes, pkg/apis/core/validation/events.go): a v1
 * Event without an eventTime is of the old form and nearly free; one with an eventTime, and all of
 * events.k8s.io/v1, must name the reporter and the action. */
#include "base/units.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

enum { WORD_BYTES_MAX = 128, NOTE_BYTES_MAX = 1024 };

static struct str text_of(const struct doc *object, const char *field)
{
    return doc_str(doc_get(object, field), STR(""));
}

static void check_time(const struct doc *object, const char *field, const struct field_path *path,
                       struct field_errors *errors)
{
    CHECK(typed_as(object, DOC_OBJECT));
    const struct doc *node = doc_get(object, field);
    int64_t time_ns;
    if (node && node->kind == DOC_STRING && !time_parse(node->text, &time_ns))
        path_invalid(errors, AT(path, field), node, node->text, "is not a time as of RFC 3339");
}

/* Checks that an Event is in the namespace of its object. The Event of a cluster-wide object must be in
 * `default` or, if it has an eventTime, in kube-system. */
static void check_namespace(const struct doc *object, const char *about, bool dated,
                            struct field_errors *errors)
{
    CHECK(typed_as(doc_get(object, about), DOC_OBJECT));
    const struct doc *node = doc_path(object, about, "namespace", NULL);
    struct str of = doc_str(node, STR(""));
    struct str in = doc_str(doc_path(object, "metadata", "namespace", NULL), STR("default"));
    bool fits = of.len ? str_equal(of, in) : str_is(in, "default") || (dated && str_is(in, "kube-system"));
    if (!fits)
        path_invalid(errors, AT(AT(NULL, about), "namespace"), node ? node : object, of,
                     "does not match event.namespace");
}

static void check_word(const struct doc *object, const char *field, struct field_errors *errors)
{
    struct str value = text_of(object, field);
    if (value.len == 0)
        path_required(errors, AT(NULL, field), object, "");
    else if (value.len > WORD_BYTES_MAX)
        path_invalid(errors, AT(NULL, field), doc_get(object, field), STR(""),
                     "can have at most 128 characters");
}

static void check_report(const struct doc *object, bool new_form, struct field_errors *errors)
{
    const char *controller = new_form ? "reportingController" : "reportingComponent";
    const char *note = new_form ? "note" : "message";
    struct str name = text_of(object, controller);
    if (name.len == 0)
        path_required(errors, AT(NULL, controller), object, "");
    else if (!name_is_label_key(name))
        path_invalid(errors, AT(NULL, controller), doc_get(object, controller), name, WHY_LABEL_KEY);
    check_word(object, "reportingInstance", errors);
    check_word(object, "action", errors);
    check_word(object, "reason", errors);
    if (text_of(object, note).len > NOTE_BYTES_MAX)
        path_invalid(errors, AT(NULL, note), doc_get(object, note), STR(""),
                     "can have at most 1024 characters");
}

static void unset(const struct doc *object, const char *field, struct field_errors *errors)
{
    const struct doc *node = doc_get(object, field);
    bool zero = !node || node->kind == DOC_NULL || (node->kind == DOC_INT && node->integer == 0) ||
                (node->kind == DOC_OBJECT && doc_len(node) == 0);
    if (!zero)
        path_invalid(errors, AT(NULL, field), node, STR(""), "needs to be unset");
}

static void check_new(const struct doc *object, struct field_errors *errors)
{
    static const char *const old_fields[] = {"deprecatedFirstTimestamp", "deprecatedLastTimestamp",
                                             "deprecatedCount", "deprecatedSource"};
    const struct doc *series = doc_get(object, "series"), *type = doc_get(object, "type");
    struct str word = doc_str(type, STR(""));
    if (text_of(object, "eventTime").len == 0)
        path_required(errors, AT(NULL, "eventTime"), object, "");
    if (!str_is(word, "Normal") && !str_is(word, "Warning"))
        path_invalid(errors, AT(NULL, "type"), type ? type : object, word, "has invalid value");
    for (size_t i = 0; i < sizeof old_fields / sizeof *old_fields; i++)
        unset(object, old_fields[i], errors);
    if (!series || series->kind != DOC_OBJECT)
        return;
    if (doc_int(doc_get(series, "count"), 0) < 2)
        path_invalid_int(errors, AT(AT(NULL, "series"), "count"), series,
                         doc_int(doc_get(series, "count"), 0), "should be at least 2");
    if (text_of(series, "lastObservedTime").len == 0)
        path_required(errors, AT(AT(NULL, "series"), "lastObservedTime"), series, "");
}

void validate_event_kind(const struct doc *object, enum object_kind id, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    static const char *const times[] = {"eventTime", "firstTimestamp", "lastTimestamp",
                                        "deprecatedFirstTimestamp", "deprecatedLastTimestamp"};
    bool new_form = id == OBJECT_USER_EVENT, dated = text_of(object, "eventTime").len > 0;
    if (id != OBJECT_EVENT && !new_form)
        return;
    check_namespace(object, new_form ? "regarding" : "involvedObject", dated, errors);
    for (size_t i = 0; i < sizeof times / sizeof *times; i++)
        check_time(object, times[i], NULL, errors);
    check_time(doc_get(object, "series"), "lastObservedTime", AT(NULL, "series"), errors);
    if (dated || new_form)
        check_report(object, new_form, errors);
    if (new_form)
        check_new(object, errors);
}

void validate_event_update(const struct schema *schema, const struct doc *old, const struct doc *changed,
                           struct field_errors *errors)
{
    CHECK(schema && errors->arena);
    static const char *const fixed[] = {"regarding",
                                        "reason",
                                        "note",
                                        "type",
                                        "eventTime",
                                        "action",
                                        "related",
                                        "reportingController",
                                        "reportingInstance",
                                        "deprecatedSource",
                                        "deprecatedFirstTimestamp",
                                        "deprecatedLastTimestamp",
                                        "deprecatedCount"};
    for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++)
        validate_unchanged(schema, fixed[i], old, changed, NULL, errors);
}
