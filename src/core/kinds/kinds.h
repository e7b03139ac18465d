/* kinds.h - the kinds of API objects, as one table: a row for each group and version under which a kind is
 * served (a *resource*, in Kubernetes' words).
 *
 * A row has all that is known of a kind without its objects: its names, where it is served and to which
 * verbs, how the core keeps it, and by which rules its documents are defaulted, validated and shown. All
 * other folders read it and have no table of names of their own:
 *   core/object   what it keeps, and how much of it (bytes_max, per_namespace_max, counts_generations)
 *   core/spec     `rules`; the schema of each row, keyed by `id` (schemas.c)
 *   core          which writer takes a write (`rules`); titles in refusals
 *   kube          routing, discovery, tables; which writer shows an object (`view`)
 *   cmd           names on the command line, paths of requests
 *
 *     const struct resource *row = resource_row(OBJECT_CLUSTER_QUEUE);      // the preferred version's
 *     const struct resource *old = resource_served(STR("kueue.x-k8s.io/v1beta1"), STR("ClusterQueue"));
 *
 * Invariants, checked by tests/core/kinds:
 *   - Every object kind has a row that is named after it (`named`), the preferred version first; every row
 *     has a value in each column that its rules and its view need.
 *   - No two rows have the same apiVersion and kind, nor the same group, version and plural.
 *   - Rows that show objects of another kind (metrics, waiting workloads, lemons) have `named` 0.
 *   - The rows of one kind differ in `id` and in the version alone. Events are two rows of different kinds:
 *     OBJECT_EVENT (v1, which has the control plane's own as well) and OBJECT_USER_EVENT (events.k8s.io/v1).
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
    OBJECT_USER_EVENT = 25,        /* Events that clients wrote; a write to one has OBJECT_EVENT */
    OBJECT_DISRUPTION_BUDGET = 26, /* PodDisruptionBudget */
    OBJECT_ADMISSION_CHECK = 27,
    OBJECT_REPAIR = 28, /* repair/repair.h */
    OBJECT_MAINTENANCE = 29,
    OBJECT_FAULT = 30, /* health/fault.h, never stored */
    OBJECT_FAULT_TABLE = 31,
    OBJECT_CUBE = 32, /* slice/slice.h, never stored; likewise the next three */
    OBJECT_SWITCH = 33,
    OBJECT_SLICE = 34,
    OBJECT_FABRIC_SESSION = 35,
    OBJECT_PROVISIONING_CONFIG = 36, /* kept for controllers outside; so are the next two */
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
    RULES_NONE,     /* nobody writes it */
    RULES_WORKLOAD, /* JobSets, Jobs, Pods: spec/workload.c; write/workload.c */
    RULES_PODSETS,  /* Workloads: spec/podsets.c; write/podsets.c */
    RULES_STORED,   /* spec/stored.c; write/object.c */
    RULES_NODE,     /* made by agents; clients change what write.c names */
    RULES_FAULT,    /* write/fault.c */
    RULES_FABRIC,   /* derived from slice/; of Cubes and Switches clients change what write/fabric.c names */
};

/* The renderer of the row's objects (kube/render.h). */
enum kind_view {
    VIEW_STORED, /* the document as it was written */
    VIEW_JOBSET,
    VIEW_JOB,
    VIEW_POD,
    VIEW_NODE,
    VIEW_EVENT, /* one of the control plane's own; those of clients are VIEW_STORED */
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
    enum object_kind named;      /* the kind that its apiVersion and kind name; 0: none has this name */
    const char *group, *version; /* group "": the core group */
    const char *api_version;     /* "v1", "jobset.x-k8s.io/v1alpha2" */
    const char *title;           /* in messages and keys of quotas: "jobs.batch", "pods" */
    const char *plural, *singular, *kind;
    const char *short_name;  /* NULL: none; several are separated by spaces */
    const char *aliases;     /* more names on our own command line, likewise */
    const char *category;    /* "all" or NULL */
    const char *fields;      /* field selectors besides metadata.name and .namespace, space-separated */
    const char *patch_types; /* media types besides json-patch and merge-patch, or NULL */
    unsigned verbs;
    bool namespaced;
    uint8_t rules, view; /* enum kind_rules, enum kind_view */
    /* Kinds that the store keeps (core/object/object.h): */
    bool counts_generations;    /* changes of spec raise metadata.generation */
    uint32_t per_namespace_max; /* objects in one namespace (cluster-wide kinds: in all) */
    uint32_t bytes_max;         /* of one object as JSON; 0: the store does not keep it */
};
extern const struct resource resource_table[RESOURCES];

/* Returns the row that is named after the kind, of the preferred version. NULL: no such kind. */
const struct resource *resource_row(enum object_kind kind);
/* Returns the row of an apiVersion and a kind's name; NULL: not served. */
const struct resource *resource_served(struct str api_version, struct str kind);
/* The same, of a kind that the store keeps; NULL: it does not. */
const struct resource *object_kind_info(enum object_kind kind);
/* Returns the name of any kind in messages: "configmaps", "clusterqueues.kueue.x-k8s.io". */
const char *object_kind_title(enum object_kind kind);
const char *object_kind_name(enum object_kind kind); /* "ConfigMap" */
/* Returns the kind of an apiVersion (of any version of its group) and a kind's name; 0: unknown. */
enum object_kind object_kind_of(struct str api_version, struct str kind);

#endif
