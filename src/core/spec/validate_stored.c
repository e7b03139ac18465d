/* validate_stored.c - rules of every stored kind: types, names, finalizers, changes. */
#include "core/words/limits.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

/* Returns whether the text can be the name of an RBAC object: no '/', no '%', not "." or "..". */
static bool is_path_segment(struct str name)
{
    if (str_is(name, ".") || str_is(name, "..") || name.len > NAME_MAX_BYTES)
        return false;
    for (size_t i = 0; i < name.len; i++)
        if (name.data[i] == '/' || name.data[i] == '%')
            return false;
    return name.len > 0;
}

static const char *wrong_name(enum object_kind id, struct str name)
{
    switch (id) {
    case OBJECT_ROLE:
    case OBJECT_CLUSTER_ROLE:
    case OBJECT_ROLE_BINDING:
    case OBJECT_CLUSTER_ROLE_BINDING:
        return is_path_segment(name) ? NULL : "may not be '.' or '..' nor contain '/' or '%'";
    case OBJECT_NAMESPACE:
        return name_is_dns1123_label(name) ? NULL : WHY_DNS1123_LABEL;
    case OBJECT_SERVICE:
        return name_is_dns1035_label(name) ? NULL : WHY_DNS1035;
    default:
        return name_is_dns1123_subdomain(name) ? NULL : WHY_DNS1123_SUBDOMAIN;
    }
}

static void check_name(const struct doc *metadata, enum object_kind id, const struct field_path *path,
                       struct field_errors *errors)
{
    const struct doc *node = doc_get(metadata, "name");
    struct str name = doc_str(node, STR(""));
    if (name.len == 0) {
        path_required(errors, AT(path, "name"), metadata, "name or generateName is required");
        return;
    }
    const struct doc *space = doc_get(metadata, "namespace");
    if (doc_str(space, STR("")).len > 0 && !name_is_dns1123_label(space->text))
        path_invalid(errors, AT(path, "namespace"), space, space->text, WHY_DNS1123_LABEL);
    const char *why = wrong_name(id, name);
    if (why)
        path_invalid(errors, AT(path, "name"), node, name, why);
}

static void check_finalizers(const struct doc *metadata, const struct field_path *path,
                             struct field_errors *errors)
{
    const struct doc *list = doc_get(metadata, "finalizers");
    for (size_t i = 0; i < doc_len(list); i++) {
        struct str name = doc_str(doc_at(list, i), STR(""));
        if (!name_is_label_key(name))
            path_invalid(errors, AT(path, "finalizers"), doc_at(list, i), name, WHY_LABEL_KEY);
    }
}

/* Checks that at most one owner is the controller. */
static void check_owners(const struct doc *metadata, const struct field_path *path,
                         struct field_errors *errors)
{
    const struct doc *list = doc_get(metadata, "ownerReferences");
    size_t controllers = 0;
    for (size_t i = 0; i < doc_len(list); i++)
        controllers += doc_bool(doc_get(doc_at(list, i), "controller"), false);
    if (controllers > 1)
        path_error(errors, AT(path, "ownerReferences"), "FieldValueInvalid", list,
                   "Invalid value: \"array\": Only one reference can have Controller set to true");
}

void stored_check(const struct doc *object, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    struct stored_kind kind = stored_kind_of(object);
    if (!kind.schema) {
        struct str version = doc_str(doc_get(object, "apiVersion"), STR(""));
        path_invalid(errors, AT(NULL, "apiVersion"), doc_get(object, "apiVersion"), version,
                     "no such version of this kind is served");
        return;
    }
    size_t before = errors->list.len;
    schema_check_types(kind.schema, object, errors);
    if (errors->list.len > before)
        return;
    const struct doc *metadata = doc_get(object, "metadata");
    const struct field_path *path = AT(NULL, "metadata");
    check_name(metadata, kind.id, path, errors);
    validate_meta(metadata, path, errors);
    check_finalizers(metadata, path, errors);
    check_owners(metadata, path, errors);
    validate_core_kind(object, kind.id, errors);
    validate_event_kind(object, kind.id, errors);
    validate_kueue_kind(object, kind.id, errors);
    if (kind.id == OBJECT_FAULT_TABLE)
        validate_fault_table(object, errors);
    else if (kind.id == OBJECT_NAMESPACE)
        validate_uid_range(object, errors);
    else if (kind.id == OBJECT_REPAIR)
        validate_repair(object, errors);
    else if (kind.id == OBJECT_MAINTENANCE)
        validate_maintenance(object, errors);
    validate_rbac_kind(object, kind.id, errors);
}
