/* update_stored.c - the rules for changes of an existing stored object. */
#include "core/spec/stored.h"
#include "core/spec/validate.h"

static void immutable(const struct field_path *path, const struct doc *changed, const char *why,
                      struct field_errors *errors)
{
    path_error(errors, path, "FieldValueInvalid", changed, "Invalid value: %s", why);
}

static bool same(const struct stored_kind *kind, const char *field, const struct doc *old,
                 const struct doc *changed)
{
    const struct schema_field *row = schema_field_of(kind->schema, str_from(field));
    CHECK(row); /* the table of the kind has the fields that are compared */
    return schema_equal(row, doc_get(old, field), doc_get(changed, field));
}

/* Checks a ConfigMap or Secret. Once `immutable` is set, it cannot be unset, nor the data changed. */
static void check_data(const struct stored_kind *kind, const struct doc *old, const struct doc *changed,
                       struct field_errors *errors)
{
    CHECK(kind->id == OBJECT_CONFIG_MAP || kind->id == OBJECT_SECRET);
    static const char *const fields[] = {"data", "binaryData"};
    if (kind->id == OBJECT_SECRET && !same(kind, "type", old, changed))
        immutable(AT(NULL, "type"), doc_get(changed, "type"), "field is immutable", errors);
    if (!doc_bool(doc_get(old, "immutable"), false))
        return;
    if (!doc_bool(doc_get(changed, "immutable"), false))
        path_forbidden(errors, AT(NULL, "immutable"), changed, "field is immutable when `immutable` is set");
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (schema_field_of(kind->schema, str_from(fields[i])) && !same(kind, fields[i], old, changed))
            path_forbidden(errors, AT(NULL, fields[i]), changed,
                           "field is immutable when `immutable` is set");
}

static void check_claim(const struct stored_kind *kind, const struct doc *old, const struct doc *changed,
                        struct field_errors *errors)
{
    CHECK(kind->id == OBJECT_CLAIM);
    struct arena arena ARENA_CLEANUP = {0};
    struct doc *a = doc_clone(&arena, doc_get(old, "spec")), *b = doc_clone(&arena, doc_get(changed, "spec"));
    int64_t before = 0, after = 0;
    const struct doc *was = doc_path(a, "resources", "requests", "storage", NULL);
    const struct doc *is = doc_path(b, "resources", "requests", "storage", NULL);
    if (was && is && schema_quantity(was, &before) && schema_quantity(is, &after) && after < before)
        path_forbidden(errors, AT(AT(AT(AT(NULL, "spec"), "resources"), "requests"), "storage"), is,
                       "field can not be less than status.capacity");
    doc_unset(doc_get(a, "resources"), "requests");
    doc_unset(doc_get(b, "resources"), "requests");
    doc_unset(a, "volumeName"); /* bound later */
    doc_unset(b, "volumeName");
    const struct schema_field *row = schema_field_of(kind->schema, STR("spec"));
    if (!schema_equal(row, a, b))
        path_forbidden(errors, AT(NULL, "spec"), doc_get(changed, "spec"),
                       "spec is immutable after creation except resources.requests and "
                       "volumeAttributesClassName for bound claims");
}

static bool ends_in_hosts(const struct doc *levels)
{
    const struct doc *last = doc_len(levels) ? doc_at(levels, doc_len(levels) - 1) : NULL;
    return str_is(doc_str(doc_get(last, "nodeLabel"), STR("")), "kubernetes.io/hostname");
}

/* Refuses a change of levels, unless the host name is the lowest level before and after: then assignments
 * name only hosts. */
static void check_topology(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    const struct doc *was = doc_path(old, "spec", "levels", NULL);
    const struct doc *is = doc_path(changed, "spec", "levels", NULL);
    if (!spec_equal(was, is) && !(ends_in_hosts(was) && ends_in_hosts(is)))
        immutable(AT(AT(NULL, "spec"), "levels"), is,
                  "\"array\": levels are mutable only when kubernetes.io/hostname is the lowest level both "
                  "before and after the change",
                  errors);
}

static struct str spec_text(const struct doc *object, const char *field)
{
    return doc_str(doc_path(object, "spec", field, NULL), STR(""));
}

static void check_queue(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    if (!str_equal(spec_text(old, "clusterQueue"), spec_text(changed, "clusterQueue")))
        immutable(AT(AT(NULL, "spec"), "clusterQueue"), doc_path(changed, "spec", "clusterQueue", NULL),
                  "\"string\": field is immutable", errors);
}

static void check_flavor(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    struct str was = spec_text(old, "topologyName");
    if (was.len && !str_equal(was, spec_text(changed, "topologyName")))
        immutable(AT(NULL, "spec"), doc_get(changed, "spec"),
                  "\"object\": topologyName is immutable when topologyName is set", errors);
}

static void check_controller(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    const struct doc *is = doc_path(changed, "spec", "controllerName", NULL);
    if (!str_equal(doc_str(doc_path(old, "spec", "controllerName", NULL), STR("")), doc_str(is, STR(""))))
        immutable(AT(AT(NULL, "spec"), "controllerName"), is, "\"string\": field is immutable", errors);
}

static void check_subject(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    static const char *const keys[] = {"machine", "place"};
    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        const struct doc *is = doc_path(changed, "spec", keys[i], NULL);
        if (!str_equal(doc_str(doc_path(old, "spec", keys[i], NULL), STR("")), doc_str(is, STR(""))))
            immutable(AT(AT(NULL, "spec"), keys[i]), is, "\"string\": field is immutable", errors);
    }
}

void stored_check_update(const struct doc *old, const struct doc *changed, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    struct stored_kind found = stored_kind_of(changed), *kind = &found;
    if (!kind->schema)
        return; /* stored_check reports it */
    switch (kind->id) {
    case OBJECT_CONFIG_MAP:
    case OBJECT_SECRET:
        check_data(kind, old, changed, errors);
        break;
    case OBJECT_CLAIM:
        check_claim(kind, old, changed, errors);
        break;
    case OBJECT_PRIORITY_CLASS:
        if (!same(kind, "value", old, changed))
            path_forbidden(errors, AT(NULL, "value"), doc_get(changed, "value"),
                           "may not be changed in an update.");
        if (!same(kind, "preemptionPolicy", old, changed))
            path_forbidden(errors, AT(NULL, "preemptionPolicy"), doc_get(changed, "preemptionPolicy"),
                           "may not be changed in an update.");
        break;
    case OBJECT_WORKLOAD_PRIORITY_CLASS:
        if (!same(kind, "value", old, changed))
            immutable(AT(NULL, "value"), doc_get(changed, "value"), "field is immutable", errors);
        break;
    case OBJECT_LOCAL_QUEUE:
        check_queue(old, changed, errors);
        break;
    case OBJECT_RESOURCE_FLAVOR:
        check_flavor(old, changed, errors);
        break;
    case OBJECT_TOPOLOGY:
        check_topology(old, changed, errors);
        break;
    case OBJECT_ADMISSION_CHECK:
        check_controller(old, changed, errors);
        break;
    case OBJECT_ROLE_BINDING:
    case OBJECT_CLUSTER_ROLE_BINDING:
        if (!same(kind, "roleRef", old, changed))
            immutable(AT(NULL, "roleRef"), doc_get(changed, "roleRef"), "\"object\": cannot change roleRef",
                      errors);
        break;
    case OBJECT_REPAIR:
        check_subject(old, changed, errors);
        break;
    case OBJECT_USER_EVENT:
        validate_event_update(kind->schema, old, changed, errors);
        break;
    default:
        break;
    }
}
