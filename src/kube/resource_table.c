/* resource_table.c - the rows of resource.h. */
#include "kube/resource.h"

#define VERBS_WRITE (VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE | VERB_DELETE_COLLECTION)
#define EVENT_FIELDS(about)                                                                                  \
    about ".kind " about ".namespace " about ".name " about ".uid " about                                    \
          ".apiVersion reason type reportingComponent"

/* Rows of stored kinds. */
#define STORED(i, o, g, v, a, p, s, k, short, ...)                                                           \
    {                                                                                                        \
        .id = RESOURCE_##i, .object = OBJECT_##o, .group = (g), .version = (v), .api_version = (a),          \
        .plural = (p), .singular = (s), .kind = (k), .short_name = (short),                                  \
        .verbs = VERBS_READ | VERBS_WRITE, __VA_ARGS__                                                       \
    }
#define STRATEGIC .patch_types = "application/strategic-merge-patch+json"
#define SPACED    .namespaced = true
#define CORE(i, o, p, s, k, short, ...)                                                                      \
    STORED(i, o, "", "v1", "v1", p, s, k, short, STRATEGIC, __VA_ARGS__)
#define RBAC_GROUP "rbac.authorization.k8s.io"
#define RBAC(i, o, p, s, k, ...)                                                                             \
    STORED(i, o, RBAC_GROUP, "v1", RBAC_GROUP "/v1", p, s, k, NULL, STRATEGIC, __VA_ARGS__)
/* The two versions of Kueue's kinds: `old` is nothing or OLD_. */
#define KUEUE(old, i, o, v, p, s, k, short, spaced)                                                          \
    [RESOURCE_##old##i] =                                                                                    \
        STORED(old##i, o, "kueue.x-k8s.io", v, "kueue.x-k8s.io/" v, p, s, k, short, .namespaced = (spaced))
#define KUEUE_ROWS(old, v)                                                                                   \
    KUEUE(old, CLUSTER_QUEUES, CLUSTER_QUEUE, v, "clusterqueues", "clusterqueue", "ClusterQueue", "cq",      \
          false),                                                                                            \
        KUEUE(old, LOCAL_QUEUES, LOCAL_QUEUE, v, "localqueues", "localqueue", "LocalQueue",                  \
              "queue queues lq", true),                                                                      \
        KUEUE(old, RESOURCE_FLAVORS, RESOURCE_FLAVOR, v, "resourceflavors", "resourceflavor",                \
              "ResourceFlavor", "flavor flavors rf", false),                                                 \
        KUEUE(old, COHORTS, COHORT, v, "cohorts", "cohort", "Cohort", NULL, false),                          \
        KUEUE(old, WORKLOAD_PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASS, v, "workloadpriorityclasses",         \
              "workloadpriorityclass", "WorkloadPriorityClass", NULL, false),                                \
        KUEUE(old, TOPOLOGIES, TOPOLOGY, v, "topologies", "topology", "Topology", NULL, false),              \
        KUEUE(old, ADMISSION_CHECKS, ADMISSION_CHECK, v, "admissionchecks", "admissioncheck",                \
              "AdmissionCheck", NULL, false),                                                                \
        [RESOURCE_##old##WORKLOADS] = {                                                                      \
            .id = RESOURCE_##old##WORKLOADS,                                                                 \
            .object = OBJECT_WORKLOAD,                                                                       \
            .group = "kueue.x-k8s.io",                                                                       \
            .version = (v),                                                                                  \
            .api_version = "kueue.x-k8s.io/" v,                                                              \
            .plural = "workloads",                                                                           \
            .singular = "workload",                                                                          \
            .kind = "Workload",                                                                              \
            .short_name = "kwl wl",                                                                          \
            .verbs = VERBS_READ | VERBS_WRITE,                                                               \
            .namespaced = true,                                                                              \
    }

/* Names with nothing but a subresource below them. */
#define VISIBILITY(old, i, o, v, p, s, k, spaced)                                                            \
    [RESOURCE_##old##PENDING_OF_##i] = {.id = RESOURCE_##old##PENDING_OF_##i,                                \
                                        .object = OBJECT_##o,                                                \
                                        .group = "visibility.kueue.x-k8s.io",                                \
                                        .version = (v),                                                      \
                                        .api_version = "visibility.kueue.x-k8s.io/" v,                       \
                                        .plural = (p),                                                       \
                                        .singular = (s),                                                     \
                                        .kind = (k),                                                         \
                                        .namespaced = (spaced)}
#define VISIBILITY_ROWS(old, v)                                                                              \
    VISIBILITY(old, CLUSTER_QUEUES, CLUSTER_QUEUE, v, "clusterqueues", "clusterqueue", "ClusterQueue",       \
               false),                                                                                       \
        VISIBILITY(old, LOCAL_QUEUES, LOCAL_QUEUE, v, "localqueues", "localqueue", "LocalQueue", true)

const struct resource resource_table[RESOURCES] = {
    [RESOURCE_JOBSETS] = {.id = RESOURCE_JOBSETS,
                          .object = OBJECT_JOBSET,
                          .group = "jobset.x-k8s.io",
                          .version = "v1alpha2",
                          .api_version = "jobset.x-k8s.io/v1alpha2",
                          .plural = "jobsets",
                          .singular = "jobset",
                          .kind = "JobSet",
                          .category = "all",
                          .fields = "status.terminalState",
                          .verbs = VERBS_READ | VERBS_WRITE,
                          .namespaced = true},
    [RESOURCE_JOBS] = {.id = RESOURCE_JOBS,
                       .object = OBJECT_JOB,
                       .group = "batch",
                       .version = "v1",
                       .api_version = "batch/v1",
                       .plural = "jobs",
                       .singular = "job",
                       .kind = "Job",
                       .category = "all",
                       .fields = "status.successful",
                       .verbs = VERBS_READ | VERBS_WRITE,
                       .namespaced = true},
    [RESOURCE_PODS] = {.id = RESOURCE_PODS,
                       .object = OBJECT_POD,
                       .group = "",
                       .version = "v1",
                       .api_version = "v1",
                       .plural = "pods",
                       .singular = "pod",
                       .kind = "Pod",
                       .short_name = "po",
                       .category = "all",
                       .fields = "spec.nodeName status.phase status.podIP spec.restartPolicy",
                       .verbs = VERBS_READ | VERBS_WRITE,
                       .namespaced = true},
    [RESOURCE_NODES] = {.id = RESOURCE_NODES,
                        .object = OBJECT_NODE,
                        .group = "",
                        .version = "v1",
                        .api_version = "v1",
                        .plural = "nodes",
                        .singular = "node",
                        .kind = "Node",
                        .short_name = "no",
                        .fields = "spec.unschedulable",
                        .patch_types = "application/strategic-merge-patch+json",
                        .verbs = VERBS_READ | VERB_UPDATE | VERB_PATCH},
    [RESOURCE_EVENTS] = {.id = RESOURCE_EVENTS,
                         .object = OBJECT_EVENT,
                         .group = "",
                         .version = "v1",
                         .api_version = "v1",
                         .plural = "events",
                         .singular = "event",
                         .kind = "Event",
                         .short_name = "ev",
                         .fields = EVENT_FIELDS("involvedObject"),
                         .patch_types = "application/strategic-merge-patch+json",
                         .verbs = VERBS_READ | VERBS_WRITE,
                         .namespaced = true},
    [RESOURCE_NEW_EVENTS] = {.id = RESOURCE_NEW_EVENTS,
                             .object = OBJECT_EVENT,
                             .group = "events.k8s.io",
                             .version = "v1",
                             .api_version = "events.k8s.io/v1",
                             .plural = "events",
                             .singular = "event",
                             .kind = "Event",
                             .short_name = "ev",
                             .fields = EVENT_FIELDS("regarding"),
                             .patch_types = "application/strategic-merge-patch+json",
                             .verbs = VERBS_READ | VERBS_WRITE,
                             .namespaced = true},
    [RESOURCE_NAMESPACES] =
        CORE(NAMESPACES, NAMESPACE, "namespaces", "namespace", "Namespace", "ns", .fields = "status.phase"),
    [RESOURCE_CONFIG_MAPS] =
        CORE(CONFIG_MAPS, CONFIG_MAP, "configmaps", "configmap", "ConfigMap", "cm", SPACED),
    [RESOURCE_SECRETS] = CORE(SECRETS, SECRET, "secrets", "secret", "Secret", NULL, SPACED, .fields = "type"),
    [RESOURCE_SERVICES] = CORE(SERVICES, SERVICE, "services", "service", "Service", "svc", SPACED,
                               .category = "all", .fields = "spec.clusterIP spec.type"),
    [RESOURCE_SERVICE_ACCOUNTS] = CORE(SERVICE_ACCOUNTS, SERVICE_ACCOUNT, "serviceaccounts", "serviceaccount",
                                       "ServiceAccount", "sa", SPACED),
    [RESOURCE_CLAIMS] = CORE(CLAIMS, CLAIM, "persistentvolumeclaims", "persistentvolumeclaim",
                             "PersistentVolumeClaim", "pvc", SPACED),
    [RESOURCE_RESOURCE_QUOTAS] = CORE(RESOURCE_QUOTAS, RESOURCE_QUOTA, "resourcequotas", "resourcequota",
                                      "ResourceQuota", "quota", SPACED),
    [RESOURCE_PRIORITY_CLASSES] =
        STORED(PRIORITY_CLASSES, PRIORITY_CLASS, "scheduling.k8s.io", "v1", "scheduling.k8s.io/v1",
               "priorityclasses", "priorityclass", "PriorityClass", "pc", STRATEGIC),
    KUEUE_ROWS(, "v1beta2"),
    KUEUE_ROWS(OLD_, "v1beta1"),
    [RESOURCE_ROLES] = RBAC(ROLES, ROLE, "roles", "role", "Role", SPACED),
    [RESOURCE_ROLE_BINDINGS] =
        RBAC(ROLE_BINDINGS, ROLE_BINDING, "rolebindings", "rolebinding", "RoleBinding", SPACED),
    [RESOURCE_CLUSTER_ROLES] =
        RBAC(CLUSTER_ROLES, CLUSTER_ROLE, "clusterroles", "clusterrole", "ClusterRole", .namespaced = false),
    [RESOURCE_CLUSTER_ROLE_BINDINGS] =
        RBAC(CLUSTER_ROLE_BINDINGS, CLUSTER_ROLE_BINDING, "clusterrolebindings", "clusterrolebinding",
             "ClusterRoleBinding", .namespaced = false),
    [RESOURCE_FAULTS] = {.id = RESOURCE_FAULTS,
                         .object = OBJECT_FAULT,
                         .group = "phalanx.dev",
                         .version = "v1",
                         .api_version = "phalanx.dev/v1",
                         .plural = "faults",
                         .singular = "fault",
                         .kind = "Fault",
                         .short_name = "flt",
                         .fields = "spec.machine spec.code status.state status.level",
                         .verbs = VERBS_READ | VERB_CREATE | VERB_DELETE | VERB_DELETE_COLLECTION},
    [RESOURCE_FAULT_TABLES] = STORED(FAULT_TABLES, FAULT_TABLE, "phalanx.dev", "v1", "phalanx.dev/v1",
                                     "faulttables", "faulttable", "FaultTable", NULL, .namespaced = false),
    [RESOURCE_REPAIRS] = STORED(REPAIRS, REPAIR, "phalanx.dev", "v1", "phalanx.dev/v1", "repairs", "repair",
                                "Repair", "rep", .fields = "spec.machine status.state"),
    [RESOURCE_MAINTENANCES] = STORED(MAINTENANCES, MAINTENANCE, "phalanx.dev", "v1", "phalanx.dev/v1",
                                     "maintenances", "maintenance", "Maintenance", "maint",
                                     .fields = "status.phase"),
    [RESOURCE_DISRUPTION_BUDGETS] =
        STORED(DISRUPTION_BUDGETS, DISRUPTION_BUDGET, "policy", "v1", "policy/v1", "poddisruptionbudgets",
               "poddisruptionbudget", "PodDisruptionBudget", "pdb", STRATEGIC, SPACED),
    [RESOURCE_NODE_METRICS] = {.id = RESOURCE_NODE_METRICS,
                               .object = OBJECT_NODE,
                               .group = "metrics.k8s.io",
                               .version = "v1beta1",
                               .api_version = "metrics.k8s.io/v1beta1",
                               .plural = "nodes",
                               .singular = "",
                               .kind = "NodeMetrics",
                               .verbs = VERB_GET | VERB_LIST},
    [RESOURCE_POD_METRICS] = {.id = RESOURCE_POD_METRICS,
                              .object = OBJECT_POD,
                              .group = "metrics.k8s.io",
                              .version = "v1beta1",
                              .api_version = "metrics.k8s.io/v1beta1",
                              .plural = "pods",
                              .singular = "",
                              .kind = "PodMetrics",
                              .verbs = VERB_GET | VERB_LIST,
                              .namespaced = true},
    VISIBILITY_ROWS(, "v1beta2"),
    VISIBILITY_ROWS(OLD_, "v1beta1"),
    [RESOURCE_LEMONS] = {.id = RESOURCE_LEMONS,
                         .object = OBJECT_NODE,
                         .group = "phalanx.dev",
                         .version = "v1",
                         .api_version = "phalanx.dev/v1",
                         .plural = "lemons",
                         .singular = "lemon",
                         .kind = "Lemon",
                         .verbs = VERB_GET | VERB_LIST},
};

const struct resource_group resource_groups[] = {
    {"", "v1"},
    {"authentication.k8s.io", "v1"},
    {"authorization.k8s.io", "v1"},
    {"batch", "v1"},
    {"events.k8s.io", "v1"},
    {"jobset.x-k8s.io", "v1alpha2"},
    {"kueue.x-k8s.io", "v1beta2"},
    {"kueue.x-k8s.io", "v1beta1"},
    {"metrics.k8s.io", "v1beta1"},
    {"phalanx.dev", "v1"},
    {"policy", "v1"},
    {"rbac.authorization.k8s.io", "v1"},
    {"scheduling.k8s.io", "v1"},
    {"visibility.kueue.x-k8s.io", "v1beta2"},
    {"visibility.kueue.x-k8s.io", "v1beta1"},
};
const size_t resource_group_count = sizeof resource_groups / sizeof *resource_groups;
