/* validate_pod.c - pod templates: names, environment, resources, tolerations. Wording as in kubernetes'
 * pkg/apis/core/validation. Errors are reported when the JobSet is written, not when the first pod cannot
 * be made. */
#include "core/words/limits.h"
#include "core/spec/read.h"
#include "core/spec/schema.h"
#include "core/spec/validate.h"

#include <stdio.h>

/* --- environment ---------------------------------------------------------------------------------------- */
static bool is_env_name(struct str name)
{
    for (size_t i = 0; i < name.len; i++) {
        if (name.data[i] < ' ' || name.data[i] > '~' || name.data[i] == '=')
            return false;
    }
    return name.len > 0;
}

/* Returns whether the path is FIELD['<key>'], such as metadata.labels['<key>']. */
static bool is_subscript(struct str path, const char *field)
{
    struct str prefix = str_from(field);
    return str_starts(path, prefix) && path.len > prefix.len + 4 &&
           memcmp(path.data + prefix.len, "['", 2) == 0 && str_ends(path, STR("']"));
}

static void validate_field_ref(const struct doc *ref, const struct field_path *path,
                               struct field_errors *errors)
{
    CHECK(ref->kind == DOC_OBJECT && errors->arena);
    const struct doc *node = doc_get(ref, "fieldPath");
    struct str text = doc_str(node, STR(""));
    if (text.len == 0) {
        path_required(errors, AT(path, "fieldPath"), node ? node : ref, NULL);
    } else if (!is_subscript(text, "metadata.labels") && !is_subscript(text, "metadata.annotations") &&
               !path_one_of(
                   text, "metadata.name,metadata.namespace,metadata.uid,spec.nodeName,"
                         "spec.serviceAccountName,status.hostIP,status.hostIPs,status.podIP,status.podIPs")) {
        struct str why =
            arena_printf(errors->arena, "error converting fieldPath: field label not supported: " STR_FORMAT,
                         (int)(text.len < 256 ? text.len : 256), text.data);
        path_invalid(errors, AT(path, "fieldPath"), node, text, why.data);
    }
}

static void validate_resource_ref(const struct doc *ref, const struct field_path *path,
                                  struct field_errors *errors)
{
    CHECK(ref->kind == DOC_OBJECT && errors->arena);
    static const char names[] = "limits.cpu,limits.ephemeral-storage,limits.memory,requests.cpu,"
                                "requests.ephemeral-storage,requests.memory";
    const struct doc *node = doc_get(ref, "resource");
    struct str text = doc_str(node, STR(""));
    if (!path_one_of(text, names) && !str_starts(text, STR("limits.hugepages-")) &&
        !str_starts(text, STR("requests.hugepages-")))
        path_unsupported(errors, AT(path, "resource"), node ? node : ref, text, names);
}

static void validate_env_source(const struct doc *from, bool has_value, const struct field_path *path,
                                struct field_errors *errors)
{
    static const char *const sources[] = {"fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef",
                                          "fileKeyRef"};
    size_t count = 0;
    for (size_t i = 0; i < 5; i++) {
        const struct doc *source = doc_get(from, sources[i]);
        count += source && source->kind == DOC_OBJECT;
    }
    if (count == 0)
        path_invalid(
            errors, path, from, STR(""),
            "must specify one of: `fieldRef`, `resourceFieldRef`, `configMapKeyRef`, `secretKeyRef` or "
            "`fileKeyRef`");
    else if (count > 1)
        path_invalid(errors, path, from, STR(""), "may not have more than one field specified at a time");
    else if (has_value)
        path_invalid(errors, path, from, STR(""), "may not be specified when `value` is not empty");
    const struct doc *field = doc_get(from, "fieldRef"), *resource = doc_get(from, "resourceFieldRef");
    if (field && field->kind == DOC_OBJECT)
        validate_field_ref(field, AT(path, "fieldRef"), errors);
    if (resource && resource->kind == DOC_OBJECT)
        validate_resource_ref(resource, AT(path, "resourceFieldRef"), errors);
}

static void validate_env(const struct doc *list, const struct field_path *path, struct field_errors *errors)
{
    CHECK(typed_as(list, DOC_ARRAY));
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *item = doc_at(list, i), *name = doc_get(item, "name"),
                         *from = doc_get(item, "valueFrom");
        const struct field_path *here = AT_INDEX(path, i);
        if (doc_str(name, STR("")).len == 0)
            path_required(errors, AT(here, "name"), name, NULL);
        else if (!is_env_name(name->text))
            path_invalid(
                errors, AT(here, "name"), name, name->text,
                "a valid environment variable name must consist only of printable ASCII characters other "
                "than '='");
        if (from && from->kind == DOC_OBJECT)
            validate_env_source(from, doc_str(doc_get(item, "value"), STR("")).len > 0, AT(here, "valueFrom"),
                                errors);
    }
}

/* --- resources ------------------------------------------------------------------------------------------ */
static void validate_resource_name(const struct doc_member *member, const struct field_path *path,
                                   struct field_errors *errors)
{
    CHECK(member->value);
    if (path_one_of(member->key, "cpu,memory,ephemeral-storage") ||
        str_starts(member->key, STR("hugepages-")))
        return;
    if (!name_is_label_key(member->key))
        path_invalid(errors, path, member->value, member->key, WHY_LABEL_KEY);
    else if (!memchr(member->key.data, '/', member->key.len))
        path_invalid(errors, path, member->value, member->key,
                     "must be a standard resource type or fully qualified");
}

static void validate_chip_count(const struct doc *node, const struct field_path *path,
                                struct field_errors *errors)
{
    int64_t milli = 0;
    if (!schema_quantity(node, &milli) ||
        (milli % 1000 == 0 && milli / 1000 <= (int64_t)CHIPS_PER_MACHINE_MAX))
        return;
    struct str text =
        node->kind == DOC_INT ? arena_printf(errors->arena, "%lld", (long long)node->integer) : node->text;
    char why[96];
    snprintf(why, sizeof why, "must be at most %d: the chips of a task are those of one machine",
             (int)CHIPS_PER_MACHINE_MAX);
    if (milli % 1000 != 0)
        path_invalid(errors, path, node, text, "must be an integer");
    else
        path_invalid(errors, path, node, text, why);
}

/* Compares requests[name] with limits[name] of the same container: chips must be equal, others not above. */
static void validate_request(const struct doc_member *request, const struct doc *limits,
                             const struct field_path *path, struct field_errors *errors)
{
    const struct doc *limit = doc_get_str(limits, request->key);
    int64_t asked = 0, most = 0;
    if (!limit || !schema_quantity(request->value, &asked) || !schema_quantity(limit, &most))
        return;
    bool exact = resource_is_chip(request->key);
    if (exact ? asked == most : asked <= most)
        return;
    struct str text[2];
    const struct doc *nodes[2] = {request->value, limit};
    for (size_t i = 0; i < 2; i++)
        text[i] = nodes[i]->kind == DOC_INT
                      ? arena_printf(errors->arena, "%lld", (long long)nodes[i]->integer)
                      : nodes[i]->text;
    struct str why =
        arena_printf(errors->arena, "must be %s " STR_FORMAT " limit of " STR_FORMAT,
                     exact ? "equal to" : "less than or equal to", STR_ARG(request->key), STR_ARG(text[1]));
    path_invalid(errors, path, request->value, text[0], why.data);
}

/* Checks a container's resources. *chip is the pod's first chip resource so far; empty: none. */
static void validate_resources(const struct doc *resources, struct str *chip, const struct field_path *path,
                               struct field_errors *errors)
{
    static const char *const parts[] = {"limits", "requests"};
    for (size_t p = 0; p < 2; p++) {
        const struct doc *map = doc_get(resources, parts[p]);
        const struct field_path *here = AT(path, parts[p]);
        CHECK(doc_len(map) == 0 || map->kind == DOC_OBJECT); /* types have been checked */
        for (size_t i = 0; i < doc_len(map); i++) {
            const struct doc_member *member = &map->object.members[i];
            const struct field_path *item = AT_KEY(here, member->key);
            validate_resource_name(member, item, errors);
            if (p == 1)
                validate_request(member, doc_get(resources, "limits"), item, errors);
            if (!resource_is_chip(member->key))
                continue;
            validate_chip_count(member->value, item, errors);
            if (chip->len == 0)
                *chip = member->key;
            if (!str_equal(*chip, member->key)) {
                struct str why = arena_printf(
                    errors->arena, "a pod can ask for one kind of chips; it asks for " STR_FORMAT " too",
                    STR_ARG(*chip));
                path_forbidden(errors, item, member->value, why.data);
            }
        }
    }
}

/* --- containers ----------------------------------------------------------------------------------------- */
static void validate_ports(const struct doc *list, const struct field_path *path, struct field_errors *errors)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        const struct doc *port = doc_get(doc_at(list, i), "containerPort");
        CHECK(typed_as(port, DOC_INT));
        if (port && (port->integer < 1 || port->integer > 65535))
            path_invalid_int(errors, AT(AT_INDEX(path, i), "containerPort"), port, port->integer,
                             "must be between 1 and 65535, inclusive");
    }
}

static void validate_container(const struct doc *container, struct str *chip, const struct field_path *path,
                               struct field_errors *errors)
{
    const struct doc *name = doc_get(container, "name");
    struct str text = doc_str(name, STR(""));
    if (text.len == 0)
        path_required(errors, AT(path, "name"), name ? name : container, NULL);
    else if (!name_is_dns1123_label(text))
        path_invalid(errors, AT(path, "name"), name, text, text.len > 63 ? WHY_63_BYTES : WHY_DNS1123_LABEL);
    const struct doc *image = doc_get(container, "image");
    struct str image_text = doc_str(image, STR(""));
    if (image_text.len == 0)
        path_required(errors, AT(path, "image"), image ? image : container, NULL);
    else if (str_trim(image_text).len != image_text.len)
        path_invalid(errors, AT(path, "image"), image, image_text,
                     "must not have leading or trailing whitespace");
    validate_env(doc_get(container, "env"), AT(path, "env"), errors);
    validate_ports(doc_get(container, "ports"), AT(path, "ports"), errors);
    validate_resources(doc_get(container, "resources"), chip, AT(path, "resources"), errors);
    validate_container_security(container, path, errors);
}

static bool has_container(const struct doc *list, struct str name)
{
    for (size_t i = 0; i < doc_len(list); i++) {
        if (str_equal(doc_str(doc_get(doc_at(list, i), "name"), STR("")), name))
            return true;
    }
    return false;
}

static void validate_containers(const struct doc *spec, const struct field_path *path,
                                struct field_errors *errors)
{
    CHECK(spec->kind == DOC_OBJECT && typed_as(doc_get(spec, "containers"), DOC_ARRAY));
    const struct doc *containers = doc_get(spec, "containers"), *initial = doc_get(spec, "initContainers");
    struct str chip = STR("");
    if (doc_len(containers) == 0)
        path_required(errors, AT(path, "containers"), containers, NULL);
    for (size_t i = 0; i < doc_len(containers); i++)
        validate_container(doc_at(containers, i), &chip, AT_INDEX(AT(path, "containers"), i), errors);
    for (size_t i = 0; i < doc_len(initial); i++) {
        const struct field_path *here = AT_INDEX(AT(path, "initContainers"), i);
        const struct doc *container = doc_at(initial, i), *name = doc_get(container, "name");
        validate_container(container, &chip, here, errors);
        if (has_container(containers, doc_str(name, STR(""))))
            path_duplicate(errors, AT(here, "name"), name, doc_str(name, STR("")));
    }
}

/* --- the rest of the pod -------------------------------------------------------------------------------- */
static void validate_toleration(const struct doc *item, const struct field_path *path,
                                struct field_errors *errors)
{
    CHECK(typed_as(item, DOC_OBJECT));
    const struct doc *key = doc_get(item, "key"), *op = doc_get(item, "operator"),
                     *value = doc_get(item, "value");
    struct str key_text = doc_str(key, STR("")), effect = doc_str(doc_get(item, "effect"), STR(""));
    bool exists = str_is(doc_str(op, STR("")), "Exists");
    if (key_text.len > 0 && !name_is_label_key(key_text))
        path_invalid(errors, AT(path, "key"), key, key_text, WHY_LABEL_KEY);
    if (key_text.len == 0 && !exists)
        path_invalid(
            errors, AT(path, "operator"), op ? op : item, doc_str(op, STR("")),
            "operator must be Exists when `key` is empty, which means \"match all values and all keys\"");
    if (exists && doc_str(value, STR("")).len > 0)
        path_invalid(errors, AT(path, "operator"), value, value->text,
                     "value must be empty when `operator` is 'Exists'");
    else if (!exists && !name_is_label_value(doc_str(value, STR(""))))
        path_invalid(errors, AT(path, "value"), value, value->text, WHY_LABEL_VALUE);
    const struct doc *seconds = doc_get(item, "tolerationSeconds");
    if (seconds && seconds->kind == DOC_INT && !str_is(effect, "NoExecute"))
        path_invalid(errors, AT(path, "effect"), doc_get(item, "effect"), effect,
                     "effect must be 'NoExecute' when `tolerationSeconds` is set");
}

void validate_pod(const struct doc *pod_template, const struct field_path *path, struct field_errors *errors)
{
    CHECK(errors && errors->arena);
    const struct doc *spec = doc_get(pod_template, "spec"), *tolerations = doc_get(spec, "tolerations");
    const struct field_path *here = AT(path, "spec");
    validate_meta(doc_get(pod_template, "metadata"), AT(path, "metadata"), errors);
    validate_recovery(doc_get(pod_template, "metadata"), AT(path, "metadata"), errors);
    validate_replicas(doc_get(pod_template, "metadata"), AT(path, "metadata"), errors);
    if (!spec || spec->kind != DOC_OBJECT) {
        path_required(errors, AT(here, "containers"), pod_template, NULL);
        return;
    }
    validate_containers(spec, here, errors);
    validate_labels(doc_get(spec, "nodeSelector"), AT(here, "nodeSelector"), errors);
    for (size_t i = 0; i < doc_len(tolerations); i++)
        validate_toleration(doc_at(tolerations, i), AT_INDEX(AT(here, "tolerations"), i), errors);
    validate_min(doc_get(spec, "terminationGracePeriodSeconds"), 0, AT(here, "terminationGracePeriodSeconds"),
                 errors);
    validate_min(doc_get(spec, "activeDeadlineSeconds"), 1, AT(here, "activeDeadlineSeconds"), errors);
    validate_pod_security(spec, here, errors);
    const struct doc *class = doc_get(spec, "priorityClassName");
    if (doc_str(class, STR("")).len > 0 && !name_is_dns1123_subdomain(class->text))
        path_invalid(errors, AT(here, "priorityClassName"), class, class->text, WHY_DNS1123_SUBDOMAIN);
}
