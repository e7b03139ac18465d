/* validate_kueue.c - rules of Kueue's objects (kubernetes-sigs/kueue: the CRDs' CEL rules and
 * pkg/webhooks). */
#include "base/map.h"
#include "base/units.h"
#include "core/spec/stored.h"
#include "core/spec/validate.h"

enum { NODE_LABELS_MAX = 8, TOTAL_MAX = 256 };

static void check_subdomain(const struct doc *node, const struct field_path *path,
                            struct field_errors *errors)
{
    CHECK(typed_as(node, DOC_STRING));
    struct str name = doc_str(node, STR(""));
    if (name.len && !name_is_dns1123_subdomain(name))
        path_invalid(errors, path, node, name, WHY_DNS1123_SUBDOMAIN);
}

/* --- quotas --------------------------------------------------------------------------------------------- */

struct quotas {
    struct field_errors *errors;
    bool in_cohort, of_cohort; /* the ClusterQueue or Cohort has a parent; the rules are for a Cohort */
    struct str_map *flavors, *resources; /* of all groups: each flavour and resource belongs to one group */
    size_t flavor_count, resource_count;
};

static void check_limits(const struct quotas *quotas, const struct doc *resource,
                         const struct field_path *path)
{
    CHECK(resource && resource->kind == DOC_OBJECT);
    const struct doc *borrow = doc_get(resource, "borrowingLimit"), *lend = doc_get(resource, "lendingLimit");
    int64_t nominal = 0, limit = 0;
    if (borrow && !quotas->in_cohort)
        path_invalid(quotas->errors, AT(path, "borrowingLimit"), borrow, doc_str(borrow, STR("0")),
                     "must be nil when cohort is empty");
    if (lend && !quotas->in_cohort)
        path_invalid(quotas->errors, AT(path, "lendingLimit"), lend, doc_str(lend, STR("0")),
                     "must be nil when cohort is empty");
    const struct doc *quota = doc_get(resource, "nominalQuota");
    if (quotas->of_cohort)
        return; /* a Cohort's children may lend more than its own quota */
    if (lend && quota && schema_quantity(quota, &nominal) && schema_quantity(lend, &limit) && limit > nominal)
        path_invalid(quotas->errors, AT(path, "lendingLimit"), lend, doc_str(lend, STR("")),
                     "must be less than or equal to the nominalQuota");
}

static void check_flavor(struct quotas *quotas, const struct doc *covered, const struct doc *flavor,
                         const struct field_path *path)
{
    const struct doc *resources = doc_get(flavor, "resources"), *name = doc_get(flavor, "name");
    check_subdomain(name, AT(path, "name"), quotas->errors);
    if (name && str_map_put(quotas->flavors, name->text, (void *)flavor))
        path_duplicate(quotas->errors, AT(path, "name"), name, name->text);
    if (doc_len(resources) != doc_len(covered)) {
        path_error(quotas->errors, AT(path, "resources"), "FieldValueInvalid", resources,
                   "Invalid value: \"array\": flavors must have the same number of resources as the "
                   "coveredResources");
        return;
    }
    for (size_t i = 0; i < doc_len(resources); i++) {
        const struct field_path *here = AT_INDEX(AT(path, "resources"), i);
        const struct doc *resource = doc_at(resources, i), *own = doc_get(resource, "name");
        if (!str_equal(doc_str(own, STR("")), doc_str(doc_at(covered, i), STR(""))))
            path_invalid(quotas->errors, AT(here, "name"), own, doc_str(own, STR("")),
                         "must match the name in coveredResources");
        check_limits(quotas, resource, here);
    }
}

static void check_group(struct quotas *quotas, const struct doc *group, const struct field_path *path)
{
    CHECK(typed_as(group, DOC_OBJECT) && quotas->flavors && quotas->resources);
    const struct doc *covered = doc_get(group, "coveredResources"), *flavors = doc_get(group, "flavors");
    if (doc_len(covered) == 0)
        path_required(quotas->errors, AT(path, "coveredResources"), group, NULL);
    if (doc_len(flavors) == 0)
        path_required(quotas->errors, AT(path, "flavors"), group, NULL);
    for (size_t i = 0; i < doc_len(covered); i++) {
        const struct doc *name = doc_at(covered, i);
        CHECK(name->kind == DOC_STRING);
        const struct field_path *here = AT_INDEX(AT(path, "coveredResources"), i);
        if (!name_is_label_key(name->text))
            path_invalid(quotas->errors, here, name, name->text, WHY_LABEL_KEY);
        if (str_map_put(quotas->resources, name->text, (void *)name))
            path_duplicate(quotas->errors, here, name, name->text);
    }
    for (size_t i = 0; i < doc_len(flavors); i++)
        check_flavor(quotas, covered, doc_at(flavors, i), AT_INDEX(AT(path, "flavors"), i));
    quotas->flavor_count += doc_len(flavors);
    quotas->resource_count += doc_len(covered);
}

static void check_groups(const struct doc *spec, bool in_cohort, bool of_cohort, struct field_errors *errors)
{
    CHECK(!of_cohort || typed_as(doc_get(spec, "parentName"), DOC_STRING));
    struct str_map flavors = {0}, resources = {0};
    struct quotas quotas = {.errors = errors,
                            .in_cohort = in_cohort,
                            .of_cohort = of_cohort,
                            .flavors = &flavors,
                            .resources = &resources};
    const struct doc *groups = doc_get(spec, "resourceGroups");
    const struct field_path *path = AT(AT(NULL, "spec"), "resourceGroups");
    for (size_t i = 0; i < doc_len(groups); i++)
        check_group(&quotas, doc_at(groups, i), AT_INDEX(path, i));
    if (quotas.flavor_count > TOTAL_MAX)
        path_too_many(errors, path, groups, quotas.flavor_count, TOTAL_MAX);
    if (quotas.resource_count > TOTAL_MAX)
        path_too_many(errors, path, groups, quotas.resource_count, TOTAL_MAX);
    str_map_done(&flavors);
    str_map_done(&resources);
}

/* --- kinds ---------------------------------------------------------------------------------------------- */

static void check_preemption(const struct doc *spec, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(spec, "preemption"), DOC_OBJECT));
    const struct field_path *path = AT(AT(NULL, "spec"), "preemption");
    const struct doc *preemption = doc_get(spec, "preemption"),
                     *borrow = doc_get(preemption, "borrowWithinCohort");
    struct str policy = doc_str(doc_get(borrow, "policy"), STR("Never"));
    struct str reclaim = doc_str(doc_get(preemption, "reclaimWithinCohort"), STR("Never"));
    if (str_is(reclaim, "Never") && !str_is(policy, "Never"))
        path_invalid(errors, path, preemption, STR("object"),
                     "reclaimWithinCohort=Never and borrowWithinCohort.Policy!=Never");
    if (doc_get(borrow, "maxPriorityThreshold") && str_is(policy, "Never"))
        path_invalid(errors, AT(path, "borrowWithinCohort"), borrow, STR("object"),
                     "maxPriorityThreshold can only be set when policy is not Never");
}

/* Refuses a weight that is so small that shares would overflow. 0 is allowed: such a queue borrows last. */
static void check_weight(const struct doc *spec, struct field_errors *errors)
{
    const struct doc *weight = doc_path(spec, "fairSharing", "weight", NULL);
    int64_t nano = 0;
    bool tiny = weight && weight->kind != DOC_INT && quantity_parse_nano(weight->text, &nano) && nano == 1;
    if (tiny)
        path_invalid(errors, AT(AT(AT(NULL, "spec"), "fairSharing"), "weight"), weight, weight->text,
                     "when not 0, weight must be greater than 10^-9");
}

static void check_fungibility(const struct doc *spec, struct field_errors *errors)
{
    CHECK(typed_as(doc_get(spec, "flavorFungibility"), DOC_OBJECT));
    const struct doc *fungibility = doc_get(spec, "flavorFungibility");
    const struct doc *preference = doc_get(fungibility, "preference");
    bool both = str_is(doc_str(doc_get(fungibility, "whenCanBorrow"), STR("")), "TryNextFlavor") &&
                str_is(doc_str(doc_get(fungibility, "whenCanPreempt"), STR("")), "TryNextFlavor");
    if (preference && !both)
        path_invalid(errors, AT(AT(AT(NULL, "spec"), "flavorFungibility"), "preference"), preference,
                     doc_str(preference, STR("")),
                     "can only be set when both whenCanBorrow and whenCanPreempt are TryNextFlavor");
}

static bool has_flavor(const struct doc *spec, struct str name)
{
    CHECK(typed_as(doc_get(spec, "resourceGroups"), DOC_ARRAY));
    const struct doc *groups = doc_get(spec, "resourceGroups");
    for (size_t g = 0; g < doc_len(groups); g++) {
        const struct doc *flavors = doc_get(doc_at(groups, g), "flavors");
        for (size_t f = 0; f < doc_len(flavors); f++)
            if (str_equal(doc_str(doc_get(doc_at(flavors, f), "name"), STR("")), name))
                return true;
    }
    return false;
}

static void check_on_flavors(const struct doc *spec, struct field_errors *errors)
{
    const struct doc *checks = doc_path(spec, "admissionChecksStrategy", "admissionChecks", NULL);
    const struct field_path *path = AT(AT(AT(NULL, "spec"), "admissionChecksStrategy"), "admissionChecks");
    for (size_t c = 0; c < doc_len(checks); c++) {
        const struct doc *flavors = doc_get(doc_at(checks, c), "onFlavors");
        for (size_t f = 0; f < doc_len(flavors); f++) {
            struct str name = doc_str(doc_at(flavors, f), STR(""));
            if (!has_flavor(spec, name))
                path_error(errors, AT_INDEX(AT(AT_INDEX(path, c), "onFlavors"), f), "FieldValueNotSupported",
                           doc_at(flavors, f),
                           "Unsupported value: \"" STR_FORMAT "\": is not a flavor of this ClusterQueue",
                           STR_ARG(name));
        }
    }
}

static void check_cluster_queue(const struct doc *object, struct field_errors *errors)
{
    const struct doc *spec = doc_get(object, "spec"), *cohort = doc_get(spec, "cohortName");
    const struct field_path *path = AT(NULL, "spec");
    check_subdomain(cohort, AT(path, "cohortName"), errors);
    validate_selector(doc_get(spec, "namespaceSelector"), AT(path, "namespaceSelector"), errors);
    check_groups(spec, doc_str(cohort, STR("")).len > 0, false, errors);
    check_preemption(spec, errors);
    check_weight(spec, errors);
    check_fungibility(spec, errors);
    check_on_flavors(spec, errors);
}

static void check_cohort(const struct doc *object, struct field_errors *errors)
{
    const struct doc *spec = doc_get(object, "spec"), *parent = doc_get(spec, "parentName");
    check_subdomain(parent, AT(AT(NULL, "spec"), "parentName"), errors);
    check_groups(spec, doc_str(parent, STR("")).len > 0, true, errors);
    check_weight(spec, errors);
}

static void check_resource_flavor(const struct doc *object, struct field_errors *errors)
{
    const struct doc *spec = doc_get(object, "spec"), *labels = doc_get(spec, "nodeLabels");
    const struct field_path *path = AT(NULL, "spec");
    if (doc_len(labels) > NODE_LABELS_MAX)
        path_too_many(errors, AT(path, "nodeLabels"), labels, doc_len(labels), NODE_LABELS_MAX);
    validate_labels(labels, AT(path, "nodeLabels"), errors);
    check_subdomain(doc_get(spec, "topologyName"), AT(path, "topologyName"), errors);
    if (doc_str(doc_get(spec, "topologyName"), STR("")).len && doc_len(labels) == 0)
        path_invalid(errors, path, spec, STR("object"),
                     "at least one nodeLabel is required when topology is set");
    const struct doc *taints = doc_get(spec, "nodeTaints"), *tolerations = doc_get(spec, "tolerations");
    for (size_t i = 0; i < doc_len(taints); i++) {
        const struct doc *key = doc_get(doc_at(taints, i), "key");
        if (!name_is_label_key(doc_str(key, STR(""))))
            path_invalid(errors, AT(AT_INDEX(AT(path, "nodeTaints"), i), "key"), key, doc_str(key, STR("")),
                         WHY_LABEL_KEY);
    }
    for (size_t i = 0; i < doc_len(tolerations); i++) {
        const struct doc *item = doc_at(tolerations, i);
        const struct field_path *here = AT_INDEX(AT(path, "tolerations"), i);
        bool exists = str_is(doc_str(doc_get(item, "operator"), STR("")), "Exists");
        if (!exists && doc_str(doc_get(item, "key"), STR("")).len == 0)
            path_invalid(
                errors, AT(here, "operator"), item, doc_str(doc_get(item, "operator"), STR("")),
                "operator must be Exists when 'key' is empty, which means \"match all values and all "
                "keys\"");
        if (doc_get(item, "tolerationSeconds") &&
            !str_is(doc_str(doc_get(item, "effect"), STR("")), "NoExecute"))
            path_invalid(errors, AT(here, "effect"), item, doc_str(doc_get(item, "effect"), STR("")),
                         "effect must be 'NoExecute' when 'tolerationSeconds' is set");
        if (exists && doc_str(doc_get(item, "value"), STR("")).len)
            path_invalid(errors, AT(here, "value"), item, doc_str(doc_get(item, "value"), STR("")),
                         "a value must be empty when 'operator' is 'Exists'");
    }
}

static void check_topology(const struct doc *object, struct field_errors *errors)
{
    CHECK(typed_as(doc_path(object, "spec", "levels", NULL), DOC_ARRAY));
    const struct doc *levels = doc_path(object, "spec", "levels", NULL);
    const struct field_path *path = AT(AT(NULL, "spec"), "levels");
    struct str_map seen = {0};
    if (doc_len(levels) == 0)
        path_required(errors, path, object, NULL);
    for (size_t i = 0; i < doc_len(levels); i++) {
        const struct doc *label = doc_get(doc_at(levels, i), "nodeLabel");
        const struct field_path *here = AT(AT_INDEX(path, i), "nodeLabel");
        struct str key = doc_str(label, STR(""));
        if (!name_is_label_key(key))
            path_invalid(errors, here, label, key, WHY_LABEL_KEY);
        if (str_map_put(&seen, key, (void *)levels))
            path_duplicate(errors, here, label, key);
        if (str_is(key, "kubernetes.io/hostname") && i + 1 < doc_len(levels))
            path_invalid(errors, here, label, key,
                         "the kubernetes.io/hostname label can only be used at the lowest level of topology");
    }
    str_map_done(&seen);
}

#define WHY_KIND "must be at most 63 letters, digits and '-', and begin with a letter"
enum { CONTROLLER_BYTES_MAX = 153, DNS_LABEL_BYTES_MAX = 63 };

/* Returns whether the text can be the name of a kind: a DNS label in any case that begins with a letter. */
static bool is_kind_name(struct str text)
{
    char lower[DNS_LABEL_BYTES_MAX];
    if (text.len == 0 || text.len > sizeof lower)
        return false;
    for (size_t i = 0; i < text.len; i++)
        lower[i] =
            text.data[i] >= 'A' && text.data[i] <= 'Z' ? (char)(text.data[i] + 'a' - 'A') : text.data[i];
    return name_is_dns1035_label((struct str){lower, text.len});
}

/* Checks the reference of an AdmissionCheck to the object with its parameters. */
static void check_parameters(const struct doc *parameters, const struct field_path *path,
                             struct field_errors *errors)
{
    CHECK(typed_as(parameters, DOC_OBJECT));
    static const struct {
        const char *name, *why;
        bool (*is_good)(struct str text);
    } fields[] = {{"apiGroup", WHY_DNS1123_SUBDOMAIN, name_is_dns1123_subdomain},
                  {"kind", WHY_KIND, is_kind_name},
                  {"name", WHY_DNS1123_LABEL, name_is_dns1123_label}};
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const struct doc *field = doc_get(parameters, fields[i].name);
        struct str text = doc_str(field, STR(""));
        if (field && field->kind == DOC_STRING && !fields[i].is_good(text))
            path_invalid(errors, AT(path, fields[i].name), field, text,
                         text.len ? fields[i].why : "should be at least 1 chars long");
    }
}

static void check_admission_check(const struct doc *object, struct field_errors *errors)
{
    const struct doc *controller = doc_path(object, "spec", "controllerName", NULL);
    struct str name = doc_str(controller, STR(""));
    if (!name.len || name.len > CONTROLLER_BYTES_MAX)
        path_invalid(errors, AT(AT(NULL, "spec"), "controllerName"), controller, name,
                     "must be 1 to 153 bytes long");
    check_parameters(doc_path(object, "spec", "parameters", NULL), AT(AT(NULL, "spec"), "parameters"),
                     errors);
}

static void check_provisioning(const struct doc *object, struct field_errors *errors)
{
    const struct field_path *path = AT(AT(NULL, "spec"), "provisioningClassName");
    const struct doc *name = doc_path(object, "spec", "provisioningClassName", NULL);
    if (name && doc_str(name, STR("x")).len == 0)
        path_invalid(errors, path, name, STR(""), WHY_DNS1123_SUBDOMAIN);
    check_subdomain(name, path, errors);
}

static void check_multikueue(const struct doc *object, struct field_errors *errors)
{
    const struct field_path *path = AT(AT(NULL, "spec"), "clusters");
    const struct doc *clusters = doc_path(object, "spec", "clusters", NULL);
    struct str_map seen = {0};
    if (clusters && doc_len(clusters) == 0)
        path_required(errors, path, clusters, NULL);
    for (size_t i = 0; i < doc_len(clusters); i++) {
        const struct doc *cluster = doc_at(clusters, i);
        struct str name = doc_str(cluster, STR(""));
        if (name.len == 0 || name.len > TOTAL_MAX)
            path_invalid(errors, AT_INDEX(path, i), cluster, name, "must be 1 to 256 bytes long");
        else if (str_map_put(&seen, name, (void *)clusters))
            path_duplicate(errors, AT_INDEX(path, i), cluster, name);
    }
    str_map_done(&seen);
}

/* Checks that exactly one source for the remote cluster is set. In v1beta1 the sources are in spec itself. */
static void check_remote_cluster(const struct doc *object, struct field_errors *errors)
{
    const struct field_path *path = AT(NULL, "spec");
    const struct doc *spec = doc_get(object, "spec"), *source = doc_get(spec, "clusterSource");
    const struct doc *sources = source ? source : spec;
    if (!sources || sources->kind != DOC_OBJECT)
        return;
    if (!doc_get(sources, "kubeConfig") == !doc_get(sources, "clusterProfileRef"))
        path_invalid(errors, source ? AT(path, "clusterSource") : path, sources, STR(""),
                     "exactly one of kubeConfig and clusterProfileRef must be set");
}

void validate_kueue_kind(const struct doc *object, enum object_kind id, struct field_errors *errors)
{
    CHECK(object && object->kind == DOC_OBJECT && errors->arena);
    if (id == OBJECT_CLUSTER_QUEUE || id == OBJECT_LOCAL_QUEUE)
        validate_spares(doc_get(object, "metadata"), AT(NULL, "metadata"), errors);
    switch (id) {
    case OBJECT_CLUSTER_QUEUE:
        check_cluster_queue(object, errors);
        break;
    case OBJECT_COHORT:
        check_cohort(object, errors);
        break;
    case OBJECT_LOCAL_QUEUE:
        check_subdomain(doc_path(object, "spec", "clusterQueue", NULL), AT(AT(NULL, "spec"), "clusterQueue"),
                        errors);
        break;
    case OBJECT_RESOURCE_FLAVOR:
        check_resource_flavor(object, errors);
        break;
    case OBJECT_TOPOLOGY:
        check_topology(object, errors);
        break;
    case OBJECT_ADMISSION_CHECK:
        check_admission_check(object, errors);
        break;
    case OBJECT_PROVISIONING_CONFIG:
        check_provisioning(object, errors);
        break;
    case OBJECT_MULTIKUEUE_CONFIG:
        check_multikueue(object, errors);
        break;
    case OBJECT_MULTIKUEUE_CLUSTER:
        check_remote_cluster(object, errors);
        break;
    default:
        break;
    }
}
