/* validate_core.c - rules of the stored kinds of v1, scheduling.k8s.io/v1 and policy/v1 (Kubernetes,
 * pkg/apis/core/validation, pkg/apis/scheduling/validation and pkg/apis/policy/validation). */
#include "base/base64.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

enum { DATA_BYTES_MAX = 1024 * 1024, DATA_KEY_MAX = 253 };
static const int64_t HIGHEST_USER_PRIORITY = 1000000000;

#define WHY_DATA_KEY                                                                                         \
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. 'key.name',  or "     \
    "'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"

static bool is_data_key(struct str key)
{
    if (key.len == 0 || key.len > DATA_KEY_MAX || str_is(key, ".") || str_starts(key, STR("..")))
        return false;
    for (size_t i = 0; i < key.len; i++) {
        char c = key.data[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        if (!alnum && c != '-' && c != '_' && c != '.')
            return false;
    }
    return true;
}

/* Checks the keys and, if `encoded`, the base64 values. Returns the number of bytes of the data. */
static size_t check_data(const struct doc *map, bool encoded, const struct field_path *path,
                         struct field_errors *errors)
{
    CHECK(typed_as(map, DOC_OBJECT));
    size_t bytes = 0;
    for (size_t i = 0; i < doc_len(map); i++) {
        const struct doc_member *member = &map->object.members[i];
        const struct field_path *here = AT_KEY(path, member->key);
        struct str value = doc_str(member->value, STR(""));
        if (!is_data_key(member->key))
            path_invalid(errors, here, member->value, member->key, WHY_DATA_KEY);
        if (!encoded) {
            bytes += value.len;
            continue;
        }
        struct buf plain BUF_CLEANUP = {0};
        if (!base64_decode(value, &plain))
            path_error(errors, here, "FieldValueInvalid", member->value,
                       "Invalid value: \"\": illegal base64 data");
        bytes += plain.len;
    }
    return bytes;
}

static void check_size(const struct doc *object, size_t bytes, struct field_errors *errors)
{
    if (bytes > DATA_BYTES_MAX)
        path_error(errors, AT(NULL, "data"), "FieldValueTooLong", object,
                   "Too long: may not be more than %d bytes", (int)DATA_BYTES_MAX);
}

static void check_config_map(const struct doc *object, struct field_errors *errors)
{
    const struct doc *data = doc_get(object, "data"), *binary = doc_get(object, "binaryData");
    size_t bytes = check_data(data, false, AT(NULL, "data"), errors);
    bytes += check_data(binary, true, AT(NULL, "binaryData"), errors);
    for (size_t i = 0; i < doc_len(binary); i++) {
        const struct doc_member *member = &binary->object.members[i];
        if (doc_get_str(data, member->key))
            path_invalid(errors, AT_KEY(AT(NULL, "data"), member->key), member->value, member->key,
                         "duplicate of key present in binaryData");
    }
    check_size(object, bytes, errors);
}

/* Checks the keys that secrets of some types must have. */
static void check_secret(const struct doc *object, struct field_errors *errors)
{
    static const struct {
        const char *type, *keys[3];
    } needed[] = {
        {"kubernetes.io/dockercfg", {".dockercfg"}},
        {"kubernetes.io/dockerconfigjson", {".dockerconfigjson"}},
        {"kubernetes.io/ssh-auth", {"ssh-privatekey"}},
        {"kubernetes.io/tls", {"tls.crt", "tls.key"}},
    };
    const struct doc *data = doc_get(object, "data");
    struct str type = doc_str(doc_get(object, "type"), STR(""));
    check_size(object, check_data(data, true, AT(NULL, "data"), errors), errors);
    for (size_t i = 0; i < sizeof needed / sizeof *needed; i++)
        for (size_t k = 0; str_is(type, needed[i].type) && k < 3 && needed[i].keys[k]; k++)
            if (!doc_get(data, needed[i].keys[k]))
                path_required(errors, AT_KEY(AT(NULL, "data"), str_from(needed[i].keys[k])), object, NULL);
}

static void check_port(const struct doc *node, const struct field_path *path, struct field_errors *errors)
{
    CHECK(!node || node->kind == DOC_INT || node->kind == DOC_STRING || node->kind == DOC_NULL);
    if (node && node->kind == DOC_INT && (node->integer < 1 || node->integer > 65535))
        path_invalid_int(errors, path, node, node->integer, "must be between 1 and 65535, inclusive");
}

static void check_service(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(object, "spec"), DOC_OBJECT));
    const struct doc *spec = doc_get(object, "spec"), *ports = doc_get(spec, "ports");
    const struct field_path *path = AT(NULL, "spec");
    if (!spec) {
        path_required(errors, path, object, NULL);
        return;
    }
    bool headless = str_is(doc_str(doc_get(spec, "clusterIP"), STR("")), "None");
    bool external = str_is(doc_str(doc_get(spec, "type"), STR("")), "ExternalName");
    if (doc_len(ports) == 0 && !headless && !external)
        path_required(errors, AT(path, "ports"), spec, NULL);
    if (external && doc_str(doc_get(spec, "externalName"), STR("")).len == 0)
        path_required(errors, AT(path, "externalName"), spec, NULL);
    for (size_t i = 0; i < doc_len(ports); i++) {
        const struct doc *port = doc_at(ports, i), *name = doc_get(port, "name");
        const struct field_path *here = AT_INDEX(AT(path, "ports"), i);
        check_port(doc_get(port, "port"), AT(here, "port"), errors);
        check_port(doc_get(port, "targetPort"), AT(here, "targetPort"), errors);
        if (doc_len(ports) > 1 && doc_str(name, STR("")).len == 0)
            path_required(errors, AT(here, "name"), port, NULL);
        else if (doc_str(name, STR("")).len && !name_is_dns1123_label(name->text))
            path_invalid(errors, AT(here, "name"), name, name->text, WHY_DNS1123_LABEL);
    }
    validate_labels(doc_get(spec, "selector"), AT(path, "selector"), errors);
}

static void check_claim(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_path(object, "spec", "accessModes", NULL), DOC_ARRAY));
    const struct doc *spec = doc_get(object, "spec"), *modes = doc_get(spec, "accessModes");
    const struct field_path *path = AT(NULL, "spec");
    if (doc_len(modes) == 0)
        path_required(errors, AT(path, "accessModes"), object, "at least 1 access mode is required");
    for (size_t i = 0; i < doc_len(modes); i++) {
        const char *known = "ReadOnlyMany,ReadWriteMany,ReadWriteOnce,ReadWriteOncePod";
        struct str mode = doc_str(doc_at(modes, i), STR(""));
        if (!path_one_of(mode, known))
            path_unsupported(errors, AT_INDEX(AT(path, "accessModes"), i), doc_at(modes, i), mode, known);
    }
    const struct doc *storage = doc_path(spec, "resources", "requests", "storage", NULL);
    int64_t milli = 0;
    if (!storage)
        path_required(errors, AT_KEY(AT(AT(path, "resources"), "requests"), STR("storage")), object, NULL);
    else if (schema_quantity(storage, &milli) && milli == 0)
        path_invalid(errors, AT_KEY(AT(AT(path, "resources"), "requests"), STR("storage")), storage, STR("0"),
                     "must be greater than zero");
}

static void check_priority_class(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(object, "value"), DOC_INT));
    const struct doc *value = doc_get(object, "value"), *name = doc_path(object, "metadata", "name", NULL);
    bool system = str_starts(doc_str(name, STR("")), STR("system-"));
    if (system)
        path_forbidden(errors, AT(AT(NULL, "metadata"), "name"), name,
                       "priority class names with 'system-' prefix are reserved for system use only");
    else if (value && value->integer > HIGHEST_USER_PRIORITY)
        path_forbidden(errors, AT(NULL, "value"), value,
                       "maximum allowed value of a user defined priority is 1000000000");
}

static void check_quota(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_path(object, "spec", "hard", NULL), DOC_OBJECT));
    const struct doc *hard = doc_path(object, "spec", "hard", NULL);
    for (size_t i = 0; i < doc_len(hard); i++) {
        const struct doc_member *member = &hard->object.members[i];
        int64_t milli = 0;
        const struct field_path *here = AT_KEY(AT(AT(NULL, "spec"), "hard"), member->key);
        if (!name_is_label_key(member->key))
            path_invalid(errors, here, member->value, member->key, WHY_LABEL_KEY);
        bool counts = str_starts(member->key, STR("count/")) || str_is(member->key, "pods");
        if (counts && schema_quantity(member->value, &milli) && milli % 1000 != 0)
            path_invalid(errors, here, member->value, member->value->text, "must be an integer");
    }
}

/* Checks a count of pods, or a share of them in percent. */
static void check_share(const struct doc *spec, const char *field, struct field_errors *errors)
{
    const struct doc *node = doc_get(spec, field);
    const struct field_path *path = AT(AT(NULL, "spec"), field);
    int64_t percent = 0;
    validate_min(node, 0, path, errors);
    if (!node || node->kind != DOC_STRING)
        return;
    struct str digits = node->text;
    bool marked = str_ends(digits, STR("%"));
    digits.len -= marked;
    if (!marked || !str_to_i64(digits, 0, INT64_MAX, &percent) || digits.data[0] == '+')
        path_invalid(
            errors, path, node, node->text,
            "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
            "'93%', regex used for validation is '[0-9]+%')");
    else if (percent > 100)
        path_invalid(errors, path, node, node->text, "must not be greater than 100%");
}

static void check_budget(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(object, "spec"), DOC_OBJECT));
    const struct doc *spec = doc_get(object, "spec");
    const struct field_path *path = AT(NULL, "spec");
    if (doc_get(spec, "minAvailable") && doc_get(spec, "maxUnavailable"))
        path_error(errors, path, "FieldValueInvalid", spec,
                   "Invalid value: \"object\": minAvailable and maxUnavailable cannot be both set");
    check_share(spec, "minAvailable", errors);
    check_share(spec, "maxUnavailable", errors);
    validate_selector(doc_get(spec, "selector"), AT(path, "selector"), errors);
}

void validate_core_kind(const struct doc *object, enum object_kind id, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    switch (id) {
    case OBJECT_CONFIG_MAP:
        check_config_map(object, errors);
        break;
    case OBJECT_SECRET:
        check_secret(object, errors);
        break;
    case OBJECT_SERVICE:
        check_service(object, errors);
        break;
    case OBJECT_CLAIM:
        check_claim(object, errors);
        break;
    case OBJECT_PRIORITY_CLASS:
        check_priority_class(object, errors);
        break;
    case OBJECT_RESOURCE_QUOTA:
        check_quota(object, errors);
        break;
    case OBJECT_DISRUPTION_BUDGET:
        check_budget(object, errors);
        break;
    default:
        break;
    }
}
