/* kinds.h - the kinds of API objects, as one table: a row for each group and version under which a kind is
 * served (a *resource*, in Kubernetes' words).
 *
 * A row describes a kind: its names, the API versions and verbs under which it is served, how the core keeps
 * it, and the rules by which its documents are defaulted, validated and shown. All other folders read this
 * table and have no table of names of their own:
 *   core/object   which kinds it keeps, and their limits (bytes_max, per_namespace_max, counts_generations)
 *   core/spec     `rules`; the schema of each row, keyed by `id` (schemas.c)
 *   core          which writer takes a write (`rules`); titles in refusals
 *   kube          routing, discovery, tables; which writer shows an object (`view`)
 *   cmd           names on the command line, paths of requests
 *
 *     const struct resource *row = resource_row(OBJECT_CLUSTER_QUEUE);      // the preferred version's
 *     const struct resource *old = resource_served(STR("kueue.x-k8s.io/v1beta1"), STR("ClusterQueue"));
 *
 * Invariants, checked by tests/core/kinds:
 *   - Every object kind has a row that is named after it (`named`), the preferred version first. Every row
 *     has a value in each column that its rules and its view need.
 *   - No two rows have the same apiVersion and kind, nor the same group, version and plural.
 *   - Rows that show objects of another kind (metrics, waiting workloads, lemons) have `named` 0.
 *   - The rows of one kind differ only in `id` and version. Events have two rows of different kinds:
 *     OBJECT_EVENT (v1, which also shows the control plane's Events) and OBJECT_USER_EVENT
 *     (events.k8s.io/v1).
 * A new kind is a number in enum object_kind, a row in kinds.c, a schema in spec/, and columns in
 * kube/table_stored.c.
 */
#ifndef PHX_CORE_KINDS_KINDS_H
#define PHX_CORE_KINDS_KINDS_H

#include "base/str.h"

/* Kinds of API objects. The order is part of the log format. */
enum object_kind {
    OBJECT_JOBSET = 1,
    OBJECT_JOB = 2,
    OBJECT_POD = 3,
    OBJECT_NODE = 4,
    OBJECT_EVENT = 5,
    OBJECT_NAMESPACE = 6,
    /* Kinds from here on, and Namespaces, are stored as they were written: object/object.h. */
    OBJECT_CONFIG_MAP = 7,
    OBJECT_SECRET = 8,
    OBJECT_SERVICE = 9,
    OBJECT_SERVICE_ACCOUNT = 10,
    OBJECT_CLAIM = 11, /* PersistentVolumeClaim */
    OBJECT_PRIORITY_CLASS = 12,
    OBJECT_RESOURCE_QUOTA = 13,
    OBJECT_CLUSTER_QUEUE = 14,
    OBJECT_LOCAL_QUEUE = 15,
    OBJECT_RESOURCE_FLAVOR = 16,
    OBJECT_COHORT = 17,
    OBJECT_WORKLOAD_PRIORITY_CLASS = 18,
    OBJECT_TOPOLOGY = 19,
    OBJECT_WORKLOAD = 20, /* made by admit/, never stored */
    OBJECT_ROLE = 21,
    OBJECT_ROLE_BINDING = 22,
    OBJECT_CLUSTER_ROLE = 23,
    OBJECT_CLUSTER_ROLE_BINDING = 24,
    OBJECT_USER_EVENT = 25,        /* Events that clients wrote; writes name them OBJECT_EVENT */
    OBJECT_DISRUPTION_BUDGET = 26, /* PodDisruptionBudget */
    OBJECT_ADMISSION_CHECK = 27,
    OBJECT_REPAIR = 28, /* repair/repair.h */
    OBJECT_MAINTENANCE = 29,
    OBJECT_FAULT = 30, /* health/fault.h, never stored */
    OBJECT_FAULT_TABLE = 31,
    OBJECT_CUBE = 32, /* slice/slice.h; this kind and the next three are never stored */
    OBJECT_SWITCH = 33,
    OBJECT_SLICE = 34,
    OBJECT_FABRIC_SESSION = 35,
    OBJECT_PROVISIONING_CONFIG = 36, /* this kind and the next two are kept for external controllers */
    OBJECT_MULTIKUEUE_CONFIG = 37,
    OBJECT_MULTIKUEUE_CLUSTER = 38,
    OBJECT_KINDS
};

enum resource_id {
    RESOURCE_JOBSETS,
    RESOURCE_JOBS,
    RESOURCE_PODS,
    RESOURCE_NODES,
    RESOURCE_EVENTS,
    RESOURCE_NEW_EVENTS, /* events.k8s.io/v1 */
    RESOURCE_NAMESPACES,
    RESOURCE_CONFIG_MAPS,
    RESOURCE_SECRETS,
    RESOURCE_SERVICES,
    RESOURCE_SERVICE_ACCOUNTS,
    RESOURCE_CLAIMS,
    RESOURCE_RESOURCE_QUOTAS,
    RESOURCE_PRIORITY_CLASSES,
    RESOURCE_CLUSTER_QUEUES, /* Kueue's kinds: v1beta2, then the same under v1beta1 */
    RESOURCE_LOCAL_QUEUES,
    RESOURCE_RESOURCE_FLAVORS,
    RESOURCE_COHORTS,
    RESOURCE_WORKLOAD_PRIORITY_CLASSES,
    RESOURCE_TOPOLOGIES,
    RESOURCE_ADMISSION_CHECKS,
    RESOURCE_PROVISIONING_CONFIGS,
    RESOURCE_MULTIKUEUE_CONFIGS,
    RESOURCE_MULTIKUEUE_CLUSTERS,
    RESOURCE_WORKLOADS,
    RESOURCE_OLD_CLUSTER_QUEUES,
    RESOURCE_OLD_LOCAL_QUEUES,
    RESOURCE_OLD_RESOURCE_FLAVORS,
    RESOURCE_OLD_COHORTS,
    RESOURCE_OLD_WORKLOAD_PRIORITY_CLASSES,
    RESOURCE_OLD_TOPOLOGIES,
    RESOURCE_OLD_ADMISSION_CHECKS,
    RESOURCE_OLD_PROVISIONING_CONFIGS,
    RESOURCE_OLD_MULTIKUEUE_CONFIGS,
    RESOURCE_OLD_MULTIKUEUE_CLUSTERS,
    RESOURCE_OLD_WORKLOADS,
    RESOURCE_ROLES,
    RESOURCE_ROLE_BINDINGS,
    RESOURCE_CLUSTER_ROLES,
    RESOURCE_CLUSTER_ROLE_BINDINGS,
    RESOURCE_FAULTS,
    RESOURCE_FAULT_TABLES,
    RESOURCE_REPAIRS,
    RESOURCE_MAINTENANCES,
    RESOURCE_CUBES,
    RESOURCE_SWITCHES,
    RESOURCE_SLICES,
    RESOURCE_FABRIC_SESSIONS,
    RESOURCE_DISRUPTION_BUDGETS,
    RESOURCE_NODE_METRICS, /* usage of Nodes and Pods: kube/usage.h */
    RESOURCE_POD_METRICS,
    RESOURCE_PENDING_OF_CLUSTER_QUEUES, /* Kueue's visibility API: v1beta2, then v1beta1 */
    RESOURCE_PENDING_OF_LOCAL_QUEUES,
    RESOURCE_OLD_PENDING_OF_CLUSTER_QUEUES,
    RESOURCE_OLD_PENDING_OF_LOCAL_QUEUES,
    RESOURCE_LEMONS, /* failures counted of Nodes */
    RESOURCES
};

enum resource_verb {
    VERB_GET = 1 << 0,
    VERB_LIST = 1 << 1,
    VERB_WATCH = 1 << 2,
    VERB_CREATE = 1 << 3,
    VERB_UPDATE = 1 << 4,
    VERB_PATCH = 1 << 5,
    VERB_DELETE = 1 << 6,
    VERB_DELETE_COLLECTION = 1 << 7,
};
#define VERBS_READ (VERB_GET | VERB_LIST | VERB_WATCH)

/* The rules by which documents of a kind are defaulted and validated (spec/spec.h), and written to the core
 * (core/write/write.h). */
enum kind_rules {
    RULES_NONE,     /* never written */
    RULES_WORKLOAD, /* JobSets, Jobs, Pods: spec/workload.c; write/workload.c */
    RULES_PODSETS,  /* Workloads: spec/podsets.c; write/podsets.c */
    RULES_STORED,   /* spec/stored.c; write/object.c */
    RULES_NODE,     /* of the cluster file; clients change metadata, taints and unschedulable */
    RULES_FAULT,    /* write/fault.c */
    RULES_FABRIC,   /* made by slice/; clients change the fields of Cubes and Switches in write/fabric.c */
};

/* The renderer of the row's objects (kube/render.h). */
enum kind_view {
    VIEW_STORED, /* the document as it was written */
    VIEW_JOBSET,
    VIEW_JOB,
    VIEW_POD,
    VIEW_NODE,
    VIEW_EVENT, /* of the control plane; Events of clients are VIEW_STORED */
    VIEW_NEW_EVENT,
    VIEW_WORKLOAD,
    VIEW_FAULT,
    VIEW_FABRIC,  /* Cubes, Switches, Slices, FabricSessions */
    VIEW_METRICS, /* measured usage of a Node or Pod */
    VIEW_PENDING, /* the list of workloads that wait in a queue */
    VIEW_LEMON,
};

struct resource {
    enum resource_id id;
    enum object_kind object;     /* the kind whose objects the row shows */
    enum object_kind named;      /* the kind that the row's apiVersion and kind name; 0: none */
    const char *group, *version; /* group "": the core group */
    const char *api_version;     /* "v1", "jobset.x-k8s.io/v1alpha2" */
    const char *title;           /* in messages and keys of quotas: "jobs.batch", "pods" */
    const char *plural, *singular, *kind;
    const char *short_name;  /* NULL: none; several are separated by spaces */
    const char *aliases;     /* more names on our own command line; NULL: none; separated by spaces */
    const char *category;    /* "all" or NULL */
    const char *fields;      /* field selectors besides metadata.name and .namespace, space-separated */
    const char *patch_types; /* media types besides json-patch and merge-patch, or NULL */
    unsigned verbs;
    bool namespaced;
    uint8_t rules, view; /* enum kind_rules, enum kind_view */
    /* For kinds that the store keeps (core/object/object.h): */
    bool counts_generations;    /* changes of spec raise metadata.generation */
    uint32_t per_namespace_max; /* objects in one namespace (cluster-wide kinds: in all) */
    uint32_t bytes_max;         /* of one object as JSON; 0: the store does not keep it */
};
extern const struct resource resource_table[RESOURCES];

/* Returns the row that is named after the kind, of the preferred version, or NULL for an unknown kind. */
const struct resource *resource_row(enum object_kind kind);
/* Returns the row of an apiVersion and a kind's name, or NULL if they are not served. */
const struct resource *resource_served(struct str api_version, struct str kind);
/* Returns resource_row of a kind that the store keeps, or NULL if the store does not keep the kind. */
const struct resource *object_kind_info(enum object_kind kind);
/* Returns the kind's name in messages: "configmaps", "clusterqueues.kueue.x-k8s.io"; unknown: "objects". */
const char *object_kind_title(enum object_kind kind);
const char *object_kind_name(enum object_kind kind); /* "ConfigMap"; unknown: "object" */
/* Returns the kind of an apiVersion's group, in any version, and a kind's name; 0: unknown. */
enum object_kind object_kind_of(struct str api_version, struct str kind);

#endif
