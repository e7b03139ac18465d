/* stored.c - stored kinds (object/object.h): their schemas, and the server's defaults. */
#include "base/base64.h"
#include "core/spec/schema_stored.h"
#include "core/spec/stored.h"

static const struct stored_kind kinds[] = {
    {"v1", "Namespace", &schema_namespace, STORED_NAMESPACE},
    {"v1", "ConfigMap", &schema_config_map, STORED_CONFIG_MAP},
    {"v1", "Secret", &schema_secret, STORED_SECRET},
    {"v1", "Service", &schema_service, STORED_SERVICE},
    {"v1", "ServiceAccount", &schema_service_account, STORED_SERVICE_ACCOUNT},
    {"v1", "PersistentVolumeClaim", &schema_claim, STORED_CLAIM},
    {"v1", "ResourceQuota", &schema_resource_quota, STORED_RESOURCE_QUOTA},
    {"scheduling.k8s.io/v1", "PriorityClass", &schema_priority_class, STORED_PRIORITY_CLASS},
    {"kueue.x-k8s.io/v1beta2", "ClusterQueue", &schema_cluster_queue, STORED_CLUSTER_QUEUE},
    {"kueue.x-k8s.io/v1beta1", "ClusterQueue", &schema_cluster_queue_v1beta1, STORED_CLUSTER_QUEUE},
    {"kueue.x-k8s.io/v1beta2", "LocalQueue", &schema_local_queue, STORED_LOCAL_QUEUE},
    {"kueue.x-k8s.io/v1beta1", "LocalQueue", &schema_local_queue, STORED_LOCAL_QUEUE},
    {"kueue.x-k8s.io/v1beta2", "ResourceFlavor", &schema_resource_flavor, STORED_RESOURCE_FLAVOR},
    {"kueue.x-k8s.io/v1beta1", "ResourceFlavor", &schema_resource_flavor, STORED_RESOURCE_FLAVOR},
    {"kueue.x-k8s.io/v1beta2", "Cohort", &schema_cohort, STORED_COHORT},
    {"kueue.x-k8s.io/v1beta1", "Cohort", &schema_cohort, STORED_COHORT},
    {"kueue.x-k8s.io/v1beta2", "WorkloadPriorityClass", &schema_workload_priority_class,
     STORED_WORKLOAD_PRIORITY_CLASS},
    {"kueue.x-k8s.io/v1beta1", "WorkloadPriorityClass", &schema_workload_priority_class,
     STORED_WORKLOAD_PRIORITY_CLASS},
    {"kueue.x-k8s.io/v1beta2", "Topology", &schema_topology, STORED_TOPOLOGY},
    {"kueue.x-k8s.io/v1beta1", "Topology", &schema_topology, STORED_TOPOLOGY},
    {"kueue.x-k8s.io/v1beta2", "AdmissionCheck", &schema_admission_check, STORED_ADMISSION_CHECK},
    {"kueue.x-k8s.io/v1beta1", "AdmissionCheck", &schema_admission_check, STORED_ADMISSION_CHECK},
    {"rbac.authorization.k8s.io/v1", "Role", &schema_role, STORED_ROLE},
    {"rbac.authorization.k8s.io/v1", "ClusterRole", &schema_cluster_role, STORED_CLUSTER_ROLE},
    {"rbac.authorization.k8s.io/v1", "RoleBinding", &schema_role_binding, STORED_ROLE_BINDING},
    {"rbac.authorization.k8s.io/v1", "ClusterRoleBinding", &schema_cluster_role_binding,
     STORED_CLUSTER_ROLE_BINDING},
    {"phalanx.dev/v1", "FaultTable", &schema_fault_table, STORED_FAULT_TABLE},
    {"phalanx.dev/v1", "Repair", &schema_repair, STORED_REPAIR},
    {"phalanx.dev/v1", "Maintenance", &schema_maintenance, STORED_MAINTENANCE},
    {"v1", "Event", &schema_event, STORED_EVENT},
    {"events.k8s.io/v1", "Event", &schema_new_event, STORED_NEW_EVENT},
    {"policy/v1", "PodDisruptionBudget", &schema_disruption_budget, STORED_DISRUPTION_BUDGET},
};

const struct stored_kind *stored_kind_of(const struct doc *object)
{
    struct str api_version = doc_str(doc_get(object, "apiVersion"), STR(""));
    struct str kind = doc_str(doc_get(object, "kind"), STR(""));
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (str_is(kind, kinds[i].kind) && str_is(api_version, kinds[i].api_version))
            return &kinds[i];
    return NULL;
}

/* --- defaults ------------------------------------------------------------------------------------------- */

static bool is_object(const struct doc *node)
{
    return node && node->kind == DOC_OBJECT;
}

/* Every Namespace has its name as a label, and a finalizer for its content. */
static void default_namespace(struct arena *arena, struct doc *object)
{
    struct doc *metadata = doc_need_object(arena, object, "metadata");
    struct doc *labels = metadata ? doc_need_object(arena, metadata, "labels") : NULL;
    struct str name = doc_str(doc_get(metadata, "name"), STR(""));
    if (labels)
        doc_set(arena, labels, STR("kubernetes.io/metadata.name"), doc_new_str(arena, name));
    struct doc *spec = doc_need_object(arena, object, "spec");
    if (!spec || doc_get(spec, "finalizers"))
        return;
    struct doc *finalizers = doc_new(arena, DOC_ARRAY);
    doc_push(arena, finalizers, doc_new_str(arena, STR("kubernetes")));
    doc_set(arena, spec, STR("finalizers"), finalizers);
}

/* stringData is write-only: it becomes data. */
static void default_secret(struct arena *arena, struct doc *object)
{
    const struct doc *plain = doc_get(object, "stringData");
    if (!is_object(plain)) {
        if (plain && plain->kind == DOC_NULL)
            doc_unset(object, "stringData");
        return;
    }
    struct doc *data = doc_need_object(arena, object, "data");
    for (size_t i = 0; data && i < plain->object.len; i++) {
        const struct doc_member *member = &plain->object.members[i];
        if (!member->value || member->value->kind != DOC_STRING)
            return; /* reported by the check of types */
        struct buf text BUF_CLEANUP = {0};
        base64_encode(member->value->text, &text);
        doc_set(arena, data, member->key, doc_new_str(arena, buf_str(&text)));
    }
    if (data)
        doc_unset(object, "stringData");
}

static void default_service(struct arena *arena, struct doc *object)
{
    const struct doc *ports = doc_path(object, "spec", "ports", NULL);
    for (size_t i = 0; i < doc_len(ports); i++) {
        struct doc *port = doc_at(ports, i);
        const struct doc *number = doc_get(port, "port");
        if (is_object(port) && !doc_get(port, "targetPort") && number && number->kind == DOC_INT)
            doc_set(arena, port, STR("targetPort"), doc_new_int(arena, number->integer));
    }
}

static void default_claim(struct arena *arena, struct doc *object)
{
    struct doc *spec = doc_get(object, "spec");
    if (is_object(spec) && !doc_get(spec, "volumeMode"))
        doc_set(arena, spec, STR("volumeMode"), doc_new_str(arena, STR("Filesystem")));
}

static void default_subjects(struct arena *arena, struct doc *object)
{
    const struct doc *subjects = doc_get(object, "subjects");
    for (size_t i = 0; i < doc_len(subjects); i++) {
        struct doc *subject = doc_at(subjects, i);
        struct str kind = doc_str(doc_get(subject, "kind"), STR(""));
        if (is_object(subject) && !doc_get(subject, "apiGroup") &&
            (str_is(kind, "User") || str_is(kind, "Group")))
            doc_set(arena, subject, STR("apiGroup"), doc_new_str(arena, STR("rbac.authorization.k8s.io")));
    }
}

void stored_default(struct arena *arena, struct doc *object)
{
    const struct stored_kind *kind = stored_kind_of(object);
    if (!kind || !is_object(object))
        return;
    schema_default(kind->schema, arena, object);
    switch (kind->id) {
    case STORED_NAMESPACE:
        default_namespace(arena, object);
        break;
    case STORED_SECRET:
        default_secret(arena, object);
        break;
    case STORED_SERVICE:
        default_service(arena, object);
        break;
    case STORED_CLAIM:
        default_claim(arena, object);
        break;
    case STORED_ROLE_BINDING:
    case STORED_CLUSTER_ROLE_BINDING:
        default_subjects(arena, object);
        break;
    default:
        break;
    }
}
