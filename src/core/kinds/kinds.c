/* kinds.c - the rows of kinds.h. */
#include "core/kinds/kinds.h"

#include "base/check.h"
#include "core/words/limits.h"

enum {
    PER_NAMESPACE = 10000, /* objects of one kind */
    PER_CLUSTER = 10000,
    QUEUES = 5000, /* ClusterQueues, Cohorts: each admission cycle visits all of them */
    BUDGETS = 100, /* PodDisruptionBudgets: each counts again at every change of a pod that it selects */
    SMALL_BYTES = 256 * 1024,
    DATA_BYTES = 1024 * 1024 + 256 * 1024, /* 1 MiB of data, and the metadata around it */
};

#define VERBS_ALL (VERBS_READ | VERB_CREATE | VERB_UPDATE | VERB_PATCH | VERB_DELETE | VERB_DELETE_COLLECTION)
#define EVENT_FIELDS(about)                                                                                  \
    about ".kind " about ".namespace " about ".name " about ".uid " about                                    \
          ".apiVersion reason type reportingComponent"

/* A row that shows `o` and is named after `n`: of the core group (v1), or of group `g` in version `v`. */
#define CORE_ROW(i, o, n, p, s, k, ...)                                                                      \
    [RESOURCE_##i] = {.id = RESOURCE_##i,                                                                    \
                      .object = OBJECT_##o,                                                                  \
                      .named = (n),                                                                          \
                      .group = "",                                                                           \
                      .version = "v1",                                                                       \
                      .api_version = "v1",                                                                   \
                      .title = (p),                                                                          \
                      .plural = (p),                                                                         \
                      .singular = (s),                                                                       \
                      .kind = (k),                                                                           \
                      __VA_ARGS__}
#define TITLED_ROW(i, o, n, g, v, t, p, s, k, ...)                                                           \
    [RESOURCE_##i] = {.id = RESOURCE_##i,                                                                    \
                      .object = OBJECT_##o,                                                                  \
                      .named = (n),                                                                          \
                      .group = (g),                                                                          \
                      .version = (v),                                                                        \
                      .api_version = g "/" v,                                                                \
                      .title = (t),                                                                          \
                      .plural = (p),                                                                         \
                      .singular = (s),                                                                       \
                      .kind = (k),                                                                           \
                      __VA_ARGS__}
#define GROUP_ROW(i, o, n, g, v, p, s, k, ...) TITLED_ROW(i, o, n, g, v, p "." g, p, s, k, __VA_ARGS__)

/* Columns that rows have in common. */
#define ALSO(names)   .short_name = (names)
#define FIELDS(paths) .fields = (paths)
#define STRATEGIC     .patch_types = "application/strategic-merge-patch+json"
#define SPACED        .namespaced = true
#define COUNTED       .counts_generations = true
#define VIEWED(r, v)  .rules = RULES_##r, .view = VIEW_##v
#define KEPT(count, bytes)                                                                                   \
    .verbs = VERBS_ALL, .rules = RULES_STORED, .per_namespace_max = (count), .bytes_max = (bytes)

#define KEPT_CORE(i, o, p, s, k, ...) CORE_ROW(i, o, OBJECT_##o, p, s, k, STRATEGIC, __VA_ARGS__)
#define RBAC(i, o, p, s, k, ...)                                                                             \
    GROUP_ROW(i, o, OBJECT_##o, "rbac.authorization.k8s.io", "v1", p, s, k, STRATEGIC, __VA_ARGS__)
#define OURS(i, o, p, s, k, ...) GROUP_ROW(i, o, OBJECT_##o, "phalanx.dev", "v1", p, s, k, __VA_ARGS__)

/* The two versions of Kueue's kinds: `old` is nothing or OLD_. */
#define KUEUE(old, i, o, v, p, s, k, ...)                                                                    \
    GROUP_ROW(old##i, o, OBJECT_##o, "kueue.x-k8s.io", v, p, s, k, COUNTED, __VA_ARGS__)
/* clang-format off */
#define KUEUE_ROWS(old, v)                                                                                   \
    KUEUE(old, CLUSTER_QUEUES, CLUSTER_QUEUE, v, "clusterqueues", "clusterqueue", "ClusterQueue",            \
          ALSO("cq"), KEPT(QUEUES, DATA_BYTES)),                                                             \
    KUEUE(old, LOCAL_QUEUES, LOCAL_QUEUE, v, "localqueues", "localqueue", "LocalQueue",                      \
          ALSO("queue queues lq"), SPACED, KEPT(PER_NAMESPACE, SMALL_BYTES)),                                \
    KUEUE(old, RESOURCE_FLAVORS, RESOURCE_FLAVOR, v, "resourceflavors", "resourceflavor", "ResourceFlavor",  \
          ALSO("flavor flavors rf"), KEPT(QUEUES, SMALL_BYTES)),                                             \
    KUEUE(old, COHORTS, COHORT, v, "cohorts", "cohort", "Cohort", KEPT(QUEUES, DATA_BYTES)),                 \
    KUEUE(old, WORKLOAD_PRIORITY_CLASSES, WORKLOAD_PRIORITY_CLASS, v, "workloadpriorityclasses",             \
          "workloadpriorityclass", "WorkloadPriorityClass", KEPT(PER_CLUSTER, SMALL_BYTES)),                 \
    KUEUE(old, TOPOLOGIES, TOPOLOGY, v, "topologies", "topology", "Topology", KEPT(1000, SMALL_BYTES)),      \
    KUEUE(old, ADMISSION_CHECKS, ADMISSION_CHECK, v, "admissionchecks", "admissioncheck", "AdmissionCheck",  \
          KEPT(1000, SMALL_BYTES)),                                                                          \
    KUEUE(old, PROVISIONING_CONFIGS, PROVISIONING_CONFIG, v, "provisioningrequestconfigs",                   \
          "provisioningrequestconfig", "ProvisioningRequestConfig", ALSO("prc"), KEPT(1000, SMALL_BYTES)),   \
    KUEUE(old, MULTIKUEUE_CONFIGS, MULTIKUEUE_CONFIG, v, "multikueueconfigs", "multikueueconfig",            \
          "MultiKueueConfig", ALSO("mkconf"), KEPT(1000, SMALL_BYTES)),                                      \
    KUEUE(old, MULTIKUEUE_CLUSTERS, MULTIKUEUE_CLUSTER, v, "multikueueclusters", "multikueuecluster",        \
          "MultiKueueCluster", ALSO("mkc"), KEPT(1000, SMALL_BYTES)),                                        \
    KUEUE(old, WORKLOADS, WORKLOAD, v, "workloads", "workload", "Workload",                                  \
          ALSO("kwl wl"), SPACED, .verbs = VERBS_ALL, VIEWED(PODSETS, WORKLOAD))

/* Rows whose objects have only a subresource. */
#define PENDING_ROWS(old, v)                                                                                 \
    GROUP_ROW(old##PENDING_OF_CLUSTER_QUEUES, CLUSTER_QUEUE, 0, "visibility.kueue.x-k8s.io", v,              \
              "clusterqueues", "clusterqueue", "ClusterQueue", VIEWED(NONE, PENDING)),                       \
    GROUP_ROW(old##PENDING_OF_LOCAL_QUEUES, LOCAL_QUEUE, 0, "visibility.kueue.x-k8s.io", v,                  \
              "localqueues", "localqueue", "LocalQueue", SPACED, VIEWED(NONE, PENDING))

const struct resource resource_table[RESOURCES] = {
    GROUP_ROW(JOBSETS, JOBSET, OBJECT_JOBSET, "jobset.x-k8s.io", "v1alpha2", "jobsets", "jobset", "JobSet",
              .aliases = "js", .category = "all", FIELDS("status.terminalState"), SPACED, .verbs = VERBS_ALL,
              VIEWED(WORKLOAD, JOBSET)),
    GROUP_ROW(JOBS, JOB, OBJECT_JOB, "batch", "v1", "jobs", "job", "Job", .category = "all",
              FIELDS("status.successful"), SPACED, .verbs = VERBS_ALL, VIEWED(WORKLOAD, JOB)),
    CORE_ROW(PODS, POD, OBJECT_POD, "pods", "pod", "Pod", ALSO("po"), .aliases = "task tasks",
             .category = "all", FIELDS("spec.nodeName status.phase status.podIP spec.restartPolicy"), SPACED,
             .verbs = VERBS_ALL, VIEWED(WORKLOAD, POD)),
    CORE_ROW(NODES, NODE, OBJECT_NODE, "nodes", "node", "Node", ALSO("no"), .aliases = "machine machines",
             FIELDS("spec.unschedulable"), STRATEGIC, .verbs = VERBS_READ | VERB_UPDATE | VERB_PATCH,
             VIEWED(NODE, NODE)),
    CORE_ROW(EVENTS, EVENT, OBJECT_EVENT, "events", "event", "Event", ALSO("ev"),
             FIELDS(EVENT_FIELDS("involvedObject")), STRATEGIC, SPACED, .verbs = VERBS_ALL,
             VIEWED(STORED, EVENT)),
    TITLED_ROW(NEW_EVENTS, EVENT, OBJECT_USER_EVENT, "events.k8s.io", "v1", "events", "events", "event",
               "Event", ALSO("ev"), FIELDS(EVENT_FIELDS("regarding")), STRATEGIC, SPACED,
               .view = VIEW_NEW_EVENT, KEPT(USER_EVENTS_PER_NAMESPACE_MAX, USER_EVENT_BYTES_MAX)),
    KEPT_CORE(NAMESPACES, NAMESPACE, "namespaces", "namespace", "Namespace", ALSO("ns"),
              FIELDS("status.phase"), KEPT(PER_CLUSTER, SMALL_BYTES)),
    KEPT_CORE(CONFIG_MAPS, CONFIG_MAP, "configmaps", "configmap", "ConfigMap", ALSO("cm"), SPACED,
              KEPT(PER_NAMESPACE, DATA_BYTES)),
    /* base64 makes four bytes of three. */
    KEPT_CORE(SECRETS, SECRET, "secrets", "secret", "Secret", FIELDS("type"), SPACED,
              KEPT(PER_NAMESPACE, OBJECT_BYTES_MAX)),
    KEPT_CORE(SERVICES, SERVICE, "services", "service", "Service", ALSO("svc"), .category = "all",
              FIELDS("spec.clusterIP spec.type"), SPACED, KEPT(PER_NAMESPACE, SMALL_BYTES)),
    KEPT_CORE(SERVICE_ACCOUNTS, SERVICE_ACCOUNT, "serviceaccounts", "serviceaccount", "ServiceAccount",
              ALSO("sa"), SPACED, KEPT(PER_NAMESPACE, SMALL_BYTES)),
    KEPT_CORE(CLAIMS, CLAIM, "persistentvolumeclaims", "persistentvolumeclaim", "PersistentVolumeClaim",
              ALSO("pvc"), SPACED, KEPT(PER_NAMESPACE, SMALL_BYTES)),
    KEPT_CORE(RESOURCE_QUOTAS, RESOURCE_QUOTA, "resourcequotas", "resourcequota", "ResourceQuota",
              ALSO("quota"), SPACED, KEPT(100, SMALL_BYTES)),
    GROUP_ROW(PRIORITY_CLASSES, PRIORITY_CLASS, OBJECT_PRIORITY_CLASS, "scheduling.k8s.io", "v1",
              "priorityclasses", "priorityclass", "PriorityClass", ALSO("pc"), STRATEGIC, COUNTED,
              KEPT(PER_CLUSTER, SMALL_BYTES)),
    KUEUE_ROWS(, "v1beta2"),
    KUEUE_ROWS(OLD_, "v1beta1"),
    RBAC(ROLES, ROLE, "roles", "role", "Role", SPACED, KEPT(PER_NAMESPACE, SMALL_BYTES)),
    RBAC(ROLE_BINDINGS, ROLE_BINDING, "rolebindings", "rolebinding", "RoleBinding", SPACED,
         KEPT(PER_NAMESPACE, SMALL_BYTES)),
    RBAC(CLUSTER_ROLES, CLUSTER_ROLE, "clusterroles", "clusterrole", "ClusterRole",
         KEPT(PER_CLUSTER, SMALL_BYTES)),
    RBAC(CLUSTER_ROLE_BINDINGS, CLUSTER_ROLE_BINDING, "clusterrolebindings", "clusterrolebinding",
         "ClusterRoleBinding", KEPT(PER_CLUSTER, SMALL_BYTES)),
    OURS(FAULTS, FAULT, "faults", "fault", "Fault", ALSO("flt"),
         FIELDS("spec.machine spec.code status.state status.level"),
         .verbs = VERBS_READ | VERB_CREATE | VERB_DELETE | VERB_DELETE_COLLECTION, VIEWED(FAULT, FAULT)),
    OURS(FAULT_TABLES, FAULT_TABLE, "faulttables", "faulttable", "FaultTable", COUNTED,
         KEPT(1, OBJECT_BYTES_MAX)),
    OURS(REPAIRS, REPAIR, "repairs", "repair", "Repair", ALSO("rep"), FIELDS("spec.machine status.state"),
         COUNTED, KEPT(REPAIRS_MAX, SMALL_BYTES)),
    OURS(MAINTENANCES, MAINTENANCE, "maintenances", "maintenance", "Maintenance", ALSO("maint"),
         FIELDS("status.phase"), COUNTED, KEPT(MAINTENANCES_MAX, SMALL_BYTES)),
    OURS(CUBES, CUBE, "cubes", "cube", "Cube", FIELDS("spec.unschedulable"),
         .verbs = VERBS_READ | VERB_UPDATE | VERB_PATCH, VIEWED(FABRIC, FABRIC)),
    OURS(SWITCHES, SWITCH, "switches", "switch", "Switch", ALSO("ocs"), FIELDS("spec.unschedulable"),
         .verbs = VERBS_READ | VERB_UPDATE | VERB_PATCH, VIEWED(FABRIC, FABRIC)),
    OURS(SLICES, SLICE, "slices", "slice", "Slice", FIELDS("status.phase"), SPACED, .verbs = VERBS_READ,
         VIEWED(FABRIC, FABRIC)),
    OURS(FABRIC_SESSIONS, FABRIC_SESSION, "fabricsessions", "fabricsession", "FabricSession", ALSO("fs"),
         SPACED, .verbs = VERBS_READ, VIEWED(FABRIC, FABRIC)),
    GROUP_ROW(DISRUPTION_BUDGETS, DISRUPTION_BUDGET, OBJECT_DISRUPTION_BUDGET, "policy", "v1",
              "poddisruptionbudgets", "poddisruptionbudget", "PodDisruptionBudget", ALSO("pdb"), STRATEGIC,
              SPACED, COUNTED, KEPT(BUDGETS, SMALL_BYTES)),
    GROUP_ROW(NODE_METRICS, NODE, 0, "metrics.k8s.io", "v1beta1", "nodes", "", "NodeMetrics",
              .verbs = VERB_GET | VERB_LIST, VIEWED(NONE, METRICS)),
    GROUP_ROW(POD_METRICS, POD, 0, "metrics.k8s.io", "v1beta1", "pods", "", "PodMetrics", SPACED,
              .verbs = VERB_GET | VERB_LIST, VIEWED(NONE, METRICS)),
    PENDING_ROWS(, "v1beta2"),
    PENDING_ROWS(OLD_, "v1beta1"),
    GROUP_ROW(LEMONS, NODE, 0, "phalanx.dev", "v1", "lemons", "lemon", "Lemon",
              .verbs = VERB_GET | VERB_LIST, VIEWED(NONE, LEMON)),
};

/* The row that is named after each kind, of the preferred version. */
static const uint8_t row_of[OBJECT_KINDS] = {
    [OBJECT_JOBSET] = RESOURCE_JOBSETS,
    [OBJECT_JOB] = RESOURCE_JOBS,
    [OBJECT_POD] = RESOURCE_PODS,
    [OBJECT_NODE] = RESOURCE_NODES,
    [OBJECT_EVENT] = RESOURCE_EVENTS,
    [OBJECT_NAMESPACE] = RESOURCE_NAMESPACES,
    [OBJECT_CONFIG_MAP] = RESOURCE_CONFIG_MAPS,
    [OBJECT_SECRET] = RESOURCE_SECRETS,
    [OBJECT_SERVICE] = RESOURCE_SERVICES,
    [OBJECT_SERVICE_ACCOUNT] = RESOURCE_SERVICE_ACCOUNTS,
    [OBJECT_CLAIM] = RESOURCE_CLAIMS,
    [OBJECT_PRIORITY_CLASS] = RESOURCE_PRIORITY_CLASSES,
    [OBJECT_RESOURCE_QUOTA] = RESOURCE_RESOURCE_QUOTAS,
    [OBJECT_CLUSTER_QUEUE] = RESOURCE_CLUSTER_QUEUES,
    [OBJECT_LOCAL_QUEUE] = RESOURCE_LOCAL_QUEUES,
    [OBJECT_RESOURCE_FLAVOR] = RESOURCE_RESOURCE_FLAVORS,
    [OBJECT_COHORT] = RESOURCE_COHORTS,
    [OBJECT_WORKLOAD_PRIORITY_CLASS] = RESOURCE_WORKLOAD_PRIORITY_CLASSES,
    [OBJECT_TOPOLOGY] = RESOURCE_TOPOLOGIES,
    [OBJECT_WORKLOAD] = RESOURCE_WORKLOADS,
    [OBJECT_ROLE] = RESOURCE_ROLES,
    [OBJECT_ROLE_BINDING] = RESOURCE_ROLE_BINDINGS,
    [OBJECT_CLUSTER_ROLE] = RESOURCE_CLUSTER_ROLES,
    [OBJECT_CLUSTER_ROLE_BINDING] = RESOURCE_CLUSTER_ROLE_BINDINGS,
    [OBJECT_USER_EVENT] = RESOURCE_NEW_EVENTS,
    [OBJECT_DISRUPTION_BUDGET] = RESOURCE_DISRUPTION_BUDGETS,
    [OBJECT_ADMISSION_CHECK] = RESOURCE_ADMISSION_CHECKS,
    [OBJECT_REPAIR] = RESOURCE_REPAIRS,
    [OBJECT_MAINTENANCE] = RESOURCE_MAINTENANCES,
    [OBJECT_FAULT] = RESOURCE_FAULTS,
    [OBJECT_FAULT_TABLE] = RESOURCE_FAULT_TABLES,
    [OBJECT_CUBE] = RESOURCE_CUBES,
    [OBJECT_SWITCH] = RESOURCE_SWITCHES,
    [OBJECT_SLICE] = RESOURCE_SLICES,
    [OBJECT_FABRIC_SESSION] = RESOURCE_FABRIC_SESSIONS,
    [OBJECT_PROVISIONING_CONFIG] = RESOURCE_PROVISIONING_CONFIGS,
    [OBJECT_MULTIKUEUE_CONFIG] = RESOURCE_MULTIKUEUE_CONFIGS,
    [OBJECT_MULTIKUEUE_CLUSTER] = RESOURCE_MULTIKUEUE_CLUSTERS,
};
_Static_assert((int)RESOURCES <= UINT8_MAX, "row_of has bytes");
_Static_assert((int)SMALL_BYTES <= (int)DATA_BYTES && (int)DATA_BYTES <= (int)OBJECT_BYTES_MAX, "one object");
_Static_assert(RESOURCE_JOBSETS == 0 && OBJECT_JOBSET == 1, "0 names no kind");
_Static_assert((int)USER_EVENT_BYTES_MAX <= (int)SMALL_BYTES, "Events are small objects");
_Static_assert((int)USER_EVENTS_PER_NAMESPACE_MAX <= (int)USER_EVENTS_MAX, "a namespace has a part of all");
_Static_assert(RESOURCE_OLD_WORKLOADS - RESOURCE_WORKLOADS ==
                   RESOURCE_OLD_CLUSTER_QUEUES - RESOURCE_CLUSTER_QUEUES,
               "both versions of Kueue's kinds have one order");
/* clang-format on */

const struct resource *resource_row(enum object_kind kind)
{
    if (kind < OBJECT_JOBSET || kind >= OBJECT_KINDS)
        return NULL;
    CHECK(row_of[kind] < RESOURCES);
    const struct resource *row = &resource_table[row_of[kind]];
    CHECK(row->named == kind && row->id == row_of[kind]);
    CHECK(row->title && row->kind && row->rules != RULES_NONE);
    return row;
}

const struct resource *resource_served(struct str api_version, struct str kind)
{
    for (int i = 0; i < RESOURCES; i++)
        if (str_is(kind, resource_table[i].kind) && str_is(api_version, resource_table[i].api_version))
            return &resource_table[i];
    return NULL;
}

const struct resource *object_kind_info(enum object_kind kind)
{
    const struct resource *row = resource_row(kind);
    if (!row || !row->bytes_max)
        return NULL;
    CHECK(row->rules == RULES_STORED);
    CHECK(row->bytes_max <= OBJECT_BYTES_MAX && row->per_namespace_max > 0);
    return row;
}

const char *object_kind_title(enum object_kind kind)
{
    const struct resource *row = resource_row(kind);
    return row ? row->title : "objects";
}

const char *object_kind_name(enum object_kind kind)
{
    const struct resource *row = resource_row(kind);
    return row ? row->kind : "object";
}

enum object_kind object_kind_of(struct str api_version, struct str kind)
{
    struct str group, version;
    CHECK(resource_table[RESOURCE_EVENTS].named == OBJECT_EVENT); /* v1 is also the form of notes */
    CHECK(resource_table[RESOURCE_NEW_EVENTS].named == OBJECT_USER_EVENT);
    if (!str_cut(api_version, '/', &group, &version))
        group = STR("");
    for (int i = 0; i < RESOURCES; i++)
        if (resource_table[i].named && str_is(kind, resource_table[i].kind) &&
            str_is(group, resource_table[i].group))
            return resource_table[i].named;
    return 0;
}
