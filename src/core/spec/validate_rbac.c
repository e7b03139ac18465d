/* validate_rbac.c - rules of roles and bindings (Kubernetes, pkg/apis/rbac/validation). */
#include "core/spec/stored.h"
#include "core/spec/validate.h"

static void check_rule(const struct doc *rule, bool namespaced, const struct field_path *path,
                       struct field_errors *errors)
{
    const struct doc *urls = doc_get(rule, "nonResourceURLs");
    if (doc_len(doc_get(rule, "verbs")) == 0)
        path_required(errors, AT(path, "verbs"), rule, "verbs must contain at least one value");
    if (doc_len(urls) > 0) {
        if (namespaced)
            path_invalid(errors, AT(path, "nonResourceURLs"), urls, STR("array"),
                         "namespaced rules cannot apply to non-resource URLs");
        if (doc_len(doc_get(rule, "apiGroups")) > 0 || doc_len(doc_get(rule, "resources")) > 0 ||
            doc_len(doc_get(rule, "resourceNames")) > 0)
            path_invalid(errors, AT(path, "nonResourceURLs"), urls, STR("array"),
                         "rules cannot apply to both regular resources and non-resource URLs");
        return;
    }
    if (doc_len(doc_get(rule, "apiGroups")) == 0)
        path_required(errors, AT(path, "apiGroups"), rule,
                      "resource rules must supply at least one api group");
    if (doc_len(doc_get(rule, "resources")) == 0)
        path_required(errors, AT(path, "resources"), rule,
                      "resource rules must supply at least one resource");
}

static void check_rules(const struct doc *object, bool namespaced, struct field_errors *errors)
{
    const struct doc *rules = doc_get(object, "rules");
    for (size_t i = 0; i < doc_len(rules); i++)
        check_rule(doc_at(rules, i), namespaced, AT_INDEX(AT(NULL, "rules"), i), errors);
}

static void check_subject(const struct doc *subject, bool namespaced, const struct field_path *path,
                          struct field_errors *errors)
{
    static const char group[] = "rbac.authorization.k8s.io";
    struct str kind = doc_str(doc_get(subject, "kind"), STR(""));
    struct str api_group = doc_str(doc_get(subject, "apiGroup"), STR(""));
    struct str name = doc_str(doc_get(subject, "name"), STR(""));
    if (name.len == 0)
        path_required(errors, AT(path, "name"), subject, NULL);
    if (str_is(kind, "ServiceAccount")) {
        if (name.len && !name_is_dns1123_subdomain(name))
            path_invalid(errors, AT(path, "name"), subject, name, WHY_DNS1123_SUBDOMAIN);
        if (api_group.len)
            path_unsupported(errors, AT(path, "apiGroup"), subject, api_group, "");
        if (!namespaced && doc_str(doc_get(subject, "namespace"), STR("")).len == 0)
            path_required(errors, AT(path, "namespace"), subject, NULL);
    } else if (str_is(kind, "User") || str_is(kind, "Group")) {
        if (!str_is(api_group, group))
            path_unsupported(errors, AT(path, "apiGroup"), subject, api_group, group);
    } else {
        path_unsupported(errors, AT(path, "kind"), subject, kind, "ServiceAccount,User,Group");
    }
}

static void check_binding(const struct doc *object, bool namespaced, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(object, "roleRef"), DOC_OBJECT));
    const struct doc *ref = doc_get(object, "roleRef"), *subjects = doc_get(object, "subjects");
    const struct field_path *path = AT(NULL, "roleRef");
    const char *kinds = namespaced ? "Role,ClusterRole" : "ClusterRole";
    struct str group = doc_str(doc_get(ref, "apiGroup"), STR("")),
               kind = doc_str(doc_get(ref, "kind"), STR(""));
    if (!str_is(group, "rbac.authorization.k8s.io"))
        path_unsupported(errors, AT(path, "apiGroup"), ref, group, "rbac.authorization.k8s.io");
    if (!path_one_of(kind, kinds))
        path_unsupported(errors, AT(path, "kind"), ref, kind, kinds);
    if (doc_str(doc_get(ref, "name"), STR("")).len == 0)
        path_required(errors, AT(path, "name"), ref, NULL);
    for (size_t i = 0; i < doc_len(subjects); i++)
        check_subject(doc_at(subjects, i), namespaced, AT_INDEX(AT(NULL, "subjects"), i), errors);
}

void validate_rbac_kind(const struct doc *object, enum object_kind id, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    switch (id) {
    case OBJECT_ROLE:
    case OBJECT_CLUSTER_ROLE:
        check_rules(object, id == OBJECT_ROLE, errors);
        break;
    case OBJECT_ROLE_BINDING:
    case OBJECT_CLUSTER_ROLE_BINDING:
        check_binding(object, id == OBJECT_ROLE_BINDING, errors);
        break;
    default:
        break;
    }
}
