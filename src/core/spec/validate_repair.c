/* validate_repair.c - rules of Repairs and Maintenances. The schema checks types. */
#include "base/units.h"
#include "core/words/limits.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

enum { REASON_BYTES_MAX = 1024, NAMES_MAX = 16384 };
#define NOTICE_LONGEST_NS (INT64_C(366) * 24 * 3600 * NS_PER_SECOND)

static void check_machine_name(const struct doc *node, const struct field_path *path,
                               struct field_errors *errors)
{
    CHECK(typed_as(node, DOC_STRING));
    struct str name = doc_str(node, STR(""));
    if (!name_is_dns1123_subdomain(name))
        path_invalid(errors, path, node, name, WHY_DNS1123_SUBDOMAIN);
}

/* Checks a Repair of a switch or link, for which there are no hooks and no tests. */
static void check_place(const struct doc *spec, const struct field_path *path, struct field_errors *errors)
{
    static const char *const others[] = {"machine", "action", "now", "qualify"};
    const struct doc *node = doc_get(spec, "place");
    struct str place = doc_str(node, STR("")), kind, name = STR("");
    if (!str_cut(place, '/', &kind, &name) || (!str_is(kind, "switch") && !str_is(kind, "link")) ||
        !name_is_dns1123_subdomain(name))
        path_invalid(errors, AT(path, "place"), node, place, "must be switch/NAME or link/NAME");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (doc_get(spec, others[i]))
            path_forbidden(errors, AT(path, others[i]), doc_get(spec, others[i]),
                           "may not be set together with place");
}

static void check_action(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    struct str action = doc_str(node, STR(""));
    if (node && action.len && !name_is_dns1123_label(action))
        path_invalid(errors, path, node, action, WHY_DNS1123_LABEL);
}

static void check_reason(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    struct str reason = doc_str(node, STR(""));
    if (reason.len > REASON_BYTES_MAX)
        path_error(errors, path, "FieldValueTooLong", node, "Too long: may not be more than %d bytes",
                   REASON_BYTES_MAX);
}

void validate_repair(const struct doc *object, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    const struct field_path *path = AT(NULL, "spec");
    const struct doc *spec = doc_get(object, "spec");
    if (doc_get(spec, "place"))
        check_place(spec, path, errors);
    else if (!doc_get(spec, "machine"))
        path_required(errors, AT(path, "machine"), spec, "machine or place");
    else
        check_machine_name(doc_get(spec, "machine"), AT(path, "machine"), errors);
    check_action(doc_get(spec, "action"), AT(path, "action"), errors);
    check_reason(doc_get(spec, "reason"), AT(path, "reason"), errors);
}

static int64_t check_time(const struct doc *spec, const char *key, const struct field_path *path,
                          struct field_errors *errors)
{
    int64_t at_ns = 0;
    const struct doc *node = doc_get(spec, key);
    struct str text = doc_str(node, STR(""));
    if (!node)
        path_required(errors, AT(path, key), spec, NULL);
    else if (!time_parse(text, &at_ns))
        path_invalid(errors, AT(path, key), node, text, "must be a time like 2026-01-31T12:00:00Z");
    return at_ns;
}

static void check_notice(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    int64_t ns;
    struct str text = doc_str(node, STR("0s"));
    if (!duration_parse(text, &ns) || ns > NOTICE_LONGEST_NS)
        path_invalid(errors, path, node, text, "must be a duration like 30m or 2h, at most a year");
}

/* Checks a Maintenance of the controller, which holds all machines' leases from its creation on. */
static void check_hold(const struct doc *spec, const struct field_path *path, struct field_errors *errors)
{
    CHECK(doc_get(spec, "controller"));
    static const char *const others[] = {"machines", "selector", "start", "end", "qualify"};
    const struct doc *node = doc_get(spec, "controller");
    struct str text = doc_str(node, STR(""));
    int64_t ns;
    if (!duration_parse(text, &ns) || ns <= 0)
        path_invalid(errors, AT(path, "controller"), node, text, "must be a duration like 90s or 5m");
    else if (ns > LEASE_HOLD_MAX_NS)
        path_invalid(
            errors, AT(path, "controller"), node, text,
            "leases are held for at most 30m: a machine that dies meanwhile is replaced only after it");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (doc_get(spec, others[i]))
            path_forbidden(errors, AT(path, others[i]), doc_get(spec, others[i]),
                           "may not be set together with controller");
    if (!str_is(doc_str(doc_get(spec, "action"), STR("drain")), "drain"))
        path_forbidden(errors, AT(path, "action"), doc_get(spec, "action"),
                       "may not be set together with controller");
}

void validate_maintenance(const struct doc *object, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    const struct field_path *path = AT(NULL, "spec");
    const struct doc *spec = doc_get(object, "spec"), *machines = doc_get(spec, "machines");
    size_t before = errors->list.len;
    check_reason(doc_get(spec, "reason"), AT(path, "reason"), errors);
    if (doc_get(spec, "controller")) {
        check_hold(spec, path, errors);
        return;
    }
    if (doc_len(machines) == 0 && !doc_get(spec, "selector"))
        path_required(errors, AT(path, "machines"), spec, "machines, a selector, or controller");
    if (doc_len(machines) > NAMES_MAX)
        path_error(errors, AT(path, "machines"), "FieldValueTooMany", machines,
                   "Too many: at most %d machines: use a selector", NAMES_MAX);
    for (size_t i = 0; i < doc_len(machines) && errors->list.len == before; i++)
        check_machine_name(doc_at(machines, i), AT_INDEX(AT(path, "machines"), i), errors);
    int64_t start_ns = check_time(spec, "start", path, errors);
    int64_t end_ns = check_time(spec, "end", path, errors);
    if (errors->list.len == before && end_ns <= start_ns)
        path_invalid(errors, AT(path, "end"), doc_get(spec, "end"), doc_str(doc_get(spec, "end"), STR("")),
                     "must be later than start");
    check_notice(doc_get(spec, "notice"), AT(path, "notice"), errors);
    check_action(doc_get(spec, "action"), AT(path, "action"), errors);
}
