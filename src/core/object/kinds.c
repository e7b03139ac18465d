/* kinds.c - the kinds of the API: names, scope and limits of stored kinds, names of the others. */
#include "core/limits.h"
#include "core/object/object.h"

enum {
    PER_NAMESPACE = 10000, /* objects of one kind */
    PER_CLUSTER = 10000,
    QUEUES = 5000, /* ClusterQueues, Cohorts: each admission cycle visits all of them */
    BUDGETS = 100, /* PodDisruptionBudgets: each change of a selected pod makes it count again */
    SMALL_BYTES = 256 * 1024,
    DATA_BYTES = 1024 * 1024 + 256 * 1024, /* 1 MiB of data, and the metadata around it */
};

#define KUEUE   .group = "kueue.x-k8s.io", .version = "v1beta2", .counts_generations = true
#define RBAC    .group = "rbac.authorization.k8s.io", .version = "v1"
#define CORE_V1 .group = "", .version = "v1"
#define SPACED  .namespaced = true, .per_namespace_max = PER_NAMESPACE
#define WIDE(n) .per_namespace_max = (n)

static const struct object_kind_info table[OBJECT_KINDS] = {
    [OBJECT_NAMESPACE] = {OBJECT_NAMESPACE, CORE_V1, .name = "Namespace", .plural = "namespaces",
                          WIDE(PER_CLUSTER), .bytes_max = SMALL_BYTES},
    [OBJECT_CONFIG_MAP] = {OBJECT_CONFIG_MAP, CORE_V1, .name = "ConfigMap", .plural = "configmaps", SPACED,
                           .bytes_max = DATA_BYTES},
    /* base64 makes four bytes of three. */
    [OBJECT_SECRET] = {OBJECT_SECRET, CORE_V1, .name = "Secret", .plural = "secrets", SPACED,
                       .bytes_max = OBJECT_BYTES_MAX},
    [OBJECT_SERVICE] = {OBJECT_SERVICE, CORE_V1, .name = "Service", .plural = "services", SPACED,
                        .bytes_max = SMALL_BYTES},
    [OBJECT_SERVICE_ACCOUNT] = {OBJECT_SERVICE_ACCOUNT, CORE_V1, .name = "ServiceAccount",
                                .plural = "serviceaccounts", SPACED, .bytes_max = SMALL_BYTES},
    [OBJECT_CLAIM] = {OBJECT_CLAIM, CORE_V1, .name = "PersistentVolumeClaim",
                      .plural = "persistentvolumeclaims", SPACED, .bytes_max = SMALL_BYTES},
    [OBJECT_PRIORITY_CLASS] = {OBJECT_PRIORITY_CLASS, .group = "scheduling.k8s.io", .version = "v1",
                               .name = "PriorityClass", .plural = "priorityclasses",
                               .counts_generations = true, WIDE(PER_CLUSTER), .bytes_max = SMALL_BYTES},
    [OBJECT_RESOURCE_QUOTA] = {OBJECT_RESOURCE_QUOTA, CORE_V1, .name = "ResourceQuota",
                               .plural = "resourcequotas", .namespaced = true, .per_namespace_max = 100,
                               .bytes_max = SMALL_BYTES},
    [OBJECT_CLUSTER_QUEUE] = {OBJECT_CLUSTER_QUEUE, KUEUE, .name = "ClusterQueue", .plural = "clusterqueues",
                              WIDE(QUEUES), .bytes_max = DATA_BYTES},
    [OBJECT_LOCAL_QUEUE] = {OBJECT_LOCAL_QUEUE, KUEUE, .name = "LocalQueue", .plural = "localqueues", SPACED,
                            .bytes_max = SMALL_BYTES},
    [OBJECT_RESOURCE_FLAVOR] = {OBJECT_RESOURCE_FLAVOR, KUEUE, .name = "ResourceFlavor",
                                .plural = "resourceflavors", WIDE(QUEUES), .bytes_max = SMALL_BYTES},
    [OBJECT_COHORT] = {OBJECT_COHORT, KUEUE, .name = "Cohort", .plural = "cohorts", WIDE(QUEUES),
                       .bytes_max = DATA_BYTES},
    [OBJECT_WORKLOAD_PRIORITY_CLASS] = {OBJECT_WORKLOAD_PRIORITY_CLASS, KUEUE,
                                        .name = "WorkloadPriorityClass", .plural = "workloadpriorityclasses",
                                        WIDE(PER_CLUSTER), .bytes_max = SMALL_BYTES},
    [OBJECT_TOPOLOGY] = {OBJECT_TOPOLOGY, KUEUE, .name = "Topology", .plural = "topologies", WIDE(1000),
                         .bytes_max = SMALL_BYTES},
    [OBJECT_ADMISSION_CHECK] = {OBJECT_ADMISSION_CHECK, KUEUE, .name = "AdmissionCheck",
                                .plural = "admissionchecks", WIDE(1000), .bytes_max = SMALL_BYTES},
    [OBJECT_ROLE] = {OBJECT_ROLE, RBAC, .name = "Role", .plural = "roles", SPACED, .bytes_max = SMALL_BYTES},
    [OBJECT_ROLE_BINDING] = {OBJECT_ROLE_BINDING, RBAC, .name = "RoleBinding", .plural = "rolebindings",
                             SPACED, .bytes_max = SMALL_BYTES},
    [OBJECT_CLUSTER_ROLE] = {OBJECT_CLUSTER_ROLE, RBAC, .name = "ClusterRole", .plural = "clusterroles",
                             WIDE(PER_CLUSTER), .bytes_max = SMALL_BYTES},
    [OBJECT_CLUSTER_ROLE_BINDING] = {OBJECT_CLUSTER_ROLE_BINDING, RBAC, .name = "ClusterRoleBinding",
                                     .plural = "clusterrolebindings", WIDE(PER_CLUSTER),
                                     .bytes_max = SMALL_BYTES},
    [OBJECT_FAULT_TABLE] = {OBJECT_FAULT_TABLE, .group = "phalanx.dev", .version = "v1",
                            .name = "FaultTable", .plural = "faulttables", .counts_generations = true,
                            WIDE(1), .bytes_max = OBJECT_BYTES_MAX},
    [OBJECT_REPAIR] = {OBJECT_REPAIR, .group = "phalanx.dev", .version = "v1", .name = "Repair",
                       .plural = "repairs", .counts_generations = true, WIDE(REPAIRS_MAX),
                       .bytes_max = SMALL_BYTES},
    [OBJECT_MAINTENANCE] = {OBJECT_MAINTENANCE, .group = "phalanx.dev", .version = "v1",
                            .name = "Maintenance", .plural = "maintenances", .counts_generations = true,
                            WIDE(MAINTENANCES_MAX), .bytes_max = SMALL_BYTES},
    [OBJECT_DISRUPTION_BUDGET] = {OBJECT_DISRUPTION_BUDGET, .group = "policy", .version = "v1",
                                  .name = "PodDisruptionBudget", .plural = "poddisruptionbudgets",
                                  .namespaced = true, .counts_generations = true,
                                  .per_namespace_max = BUDGETS, .bytes_max = SMALL_BYTES},
    [OBJECT_USER_EVENT] = {OBJECT_USER_EVENT, CORE_V1, .name = "Event", .plural = "events",
                           .namespaced = true, .per_namespace_max = USER_EVENTS_PER_NAMESPACE_MAX,
                           .bytes_max = USER_EVENT_BYTES_MAX},
};

/* Kinds that are stored elsewhere, and the title of every kind: "<plural>[.<group>]". */
static const struct {
    const char *group, *name, *title;
} names[OBJECT_KINDS] = {
    [OBJECT_JOBSET] = {"jobset.x-k8s.io", "JobSet", "jobsets.jobset.x-k8s.io"},
    [OBJECT_JOB] = {"batch", "Job", "jobs.batch"},
    [OBJECT_POD] = {"", "Pod", "pods"},
    [OBJECT_NODE] = {"", "Node", "nodes"},
    [OBJECT_EVENT] = {"", "Event", "events"},
    [OBJECT_NAMESPACE] = {"", "Namespace", "namespaces"},
    [OBJECT_CONFIG_MAP] = {"", "ConfigMap", "configmaps"},
    [OBJECT_SECRET] = {"", "Secret", "secrets"},
    [OBJECT_SERVICE] = {"", "Service", "services"},
    [OBJECT_SERVICE_ACCOUNT] = {"", "ServiceAccount", "serviceaccounts"},
    [OBJECT_CLAIM] = {"", "PersistentVolumeClaim", "persistentvolumeclaims"},
    [OBJECT_PRIORITY_CLASS] = {"scheduling.k8s.io", "PriorityClass", "priorityclasses.scheduling.k8s.io"},
    [OBJECT_RESOURCE_QUOTA] = {"", "ResourceQuota", "resourcequotas"},
    [OBJECT_CLUSTER_QUEUE] = {"kueue.x-k8s.io", "ClusterQueue", "clusterqueues.kueue.x-k8s.io"},
    [OBJECT_LOCAL_QUEUE] = {"kueue.x-k8s.io", "LocalQueue", "localqueues.kueue.x-k8s.io"},
    [OBJECT_RESOURCE_FLAVOR] = {"kueue.x-k8s.io", "ResourceFlavor", "resourceflavors.kueue.x-k8s.io"},
    [OBJECT_COHORT] = {"kueue.x-k8s.io", "Cohort", "cohorts.kueue.x-k8s.io"},
    [OBJECT_WORKLOAD_PRIORITY_CLASS] = {"kueue.x-k8s.io", "WorkloadPriorityClass",
                                        "workloadpriorityclasses.kueue.x-k8s.io"},
    [OBJECT_TOPOLOGY] = {"kueue.x-k8s.io", "Topology", "topologies.kueue.x-k8s.io"},
    [OBJECT_ADMISSION_CHECK] = {"kueue.x-k8s.io", "AdmissionCheck", "admissionchecks.kueue.x-k8s.io"},
    [OBJECT_WORKLOAD] = {"kueue.x-k8s.io", "Workload", "workloads.kueue.x-k8s.io"},
    [OBJECT_ROLE] = {"rbac.authorization.k8s.io", "Role", "roles.rbac.authorization.k8s.io"},
    [OBJECT_ROLE_BINDING] = {"rbac.authorization.k8s.io", "RoleBinding",
                             "rolebindings.rbac.authorization.k8s.io"},
    [OBJECT_CLUSTER_ROLE] = {"rbac.authorization.k8s.io", "ClusterRole",
                             "clusterroles.rbac.authorization.k8s.io"},
    [OBJECT_CLUSTER_ROLE_BINDING] = {"rbac.authorization.k8s.io", "ClusterRoleBinding",
                                     "clusterrolebindings.rbac.authorization.k8s.io"},
    [OBJECT_FAULT] = {"phalanx.dev", "Fault", "faults.phalanx.dev"},
    [OBJECT_FAULT_TABLE] = {"phalanx.dev", "FaultTable", "faulttables.phalanx.dev"},
    [OBJECT_REPAIR] = {"phalanx.dev", "Repair", "repairs.phalanx.dev"},
    [OBJECT_MAINTENANCE] = {"phalanx.dev", "Maintenance", "maintenances.phalanx.dev"},
    [OBJECT_DISRUPTION_BUDGET] = {"policy", "PodDisruptionBudget", "poddisruptionbudgets.policy"},
    /* A v1 Event is found as OBJECT_EVENT: both have the same title. */
    [OBJECT_USER_EVENT] = {"events.k8s.io", "Event", "events"},
};

const struct object_kind_info *object_kind_info(enum object_kind kind)
{
    return (unsigned)kind < OBJECT_KINDS && table[kind].kind ? &table[kind] : NULL;
}

const char *object_kind_title(enum object_kind kind)
{
    return (unsigned)kind < OBJECT_KINDS && names[kind].title ? names[kind].title : "objects";
}

const char *object_kind_name(enum object_kind kind)
{
    return (unsigned)kind < OBJECT_KINDS && names[kind].name ? names[kind].name : "object";
}

enum object_kind object_kind_of(struct str api_version, struct str kind)
{
    struct str group, version;
    if (!str_cut(api_version, '/', &group, &version))
        group = STR("");
    for (int i = OBJECT_JOBSET; i < OBJECT_KINDS; i++)
        if (names[i].name && str_is(kind, names[i].name) && str_is(group, names[i].group))
            return (enum object_kind)i;
    return 0;
}
