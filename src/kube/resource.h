/* resource.h - the kinds that the API serves, as one table.
 *
 * A kind may be served under two groups (Events: v1 and events.k8s.io/v1) or versions (Kueue's); each is a
 * resource of its own here, so that routing, discovery, tables and watches need no special case. A new kind
 * is a row here and a render_*.c file.
 */
#ifndef PHX_KUBE_RESOURCE_H
#define PHX_KUBE_RESOURCE_H

#include "core/core.h"

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
    RESOURCE_WORKLOADS,
    RESOURCE_OLD_CLUSTER_QUEUES,
    RESOURCE_OLD_LOCAL_QUEUES,
    RESOURCE_OLD_RESOURCE_FLAVORS,
    RESOURCE_OLD_COHORTS,
    RESOURCE_OLD_WORKLOAD_PRIORITY_CLASSES,
    RESOURCE_OLD_TOPOLOGIES,
    RESOURCE_OLD_ADMISSION_CHECKS,
    RESOURCE_OLD_WORKLOADS,
    RESOURCE_ROLES,
    RESOURCE_ROLE_BINDINGS,
    RESOURCE_CLUSTER_ROLES,
    RESOURCE_CLUSTER_ROLE_BINDINGS,
    RESOURCE_FAULTS,
    RESOURCE_FAULT_TABLES,
    RESOURCE_REPAIRS,
    RESOURCE_MAINTENANCES,
    RESOURCE_DISRUPTION_BUDGETS,
    RESOURCE_NODE_METRICS, /* usage of Nodes and Pods: usage.h */
    RESOURCE_POD_METRICS,
    RESOURCE_PENDING_OF_CLUSTER_QUEUES, /* Kueue's visibility API: v1beta2, then v1beta1; visibility.c */
    RESOURCE_PENDING_OF_LOCAL_QUEUES,
    RESOURCE_OLD_PENDING_OF_CLUSTER_QUEUES,
    RESOURCE_OLD_PENDING_OF_LOCAL_QUEUES,
    RESOURCE_LEMONS, /* failures counted of Nodes: render_lemon.c */
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

struct resource {
    enum resource_id id;
    enum object_kind object;
    const char *group, *version; /* group "": the core group */
    const char *api_version;     /* "v1", "jobset.x-k8s.io/v1alpha2" */
    const char *plural, *singular, *kind;
    const char *short_name;  /* NULL: none; several are separated by spaces */
    const char *category;    /* "all" or NULL */
    const char *fields;      /* field selectors besides metadata.name and .namespace, space-separated */
    const char *patch_types; /* media types besides json-patch and merge-patch, or NULL */
    unsigned verbs;
    bool namespaced;
};
extern const struct resource resource_table[RESOURCES];

/* Is it a JobSet, Job or Pod, for which core/spec has the rules? */
static inline bool resource_is_workload(const struct resource *resource)
{
    return resource->object == OBJECT_JOBSET || resource->object == OBJECT_JOB ||
           resource->object == OBJECT_POD;
}

/* Rows that show another kind's objects, those of which a measurement is at hand. */
static inline bool resource_is_metrics(const struct resource *resource)
{
    return resource->id == RESOURCE_NODE_METRICS || resource->id == RESOURCE_POD_METRICS;
}

/* Does the row serve only the list of workloads that wait in a queue? */
static inline bool resource_is_visibility(const struct resource *resource)
{
    return resource->id >= RESOURCE_PENDING_OF_CLUSTER_QUEUES &&
           resource->id <= RESOURCE_OLD_PENDING_OF_LOCAL_QUEUES;
}

/* Are objects of the row, or some of them, kept as clients wrote them? */
static inline bool resource_is_kept(const struct resource *resource)
{
    return object_kind_info(resource->object) != NULL || resource->object == OBJECT_EVENT;
}

/* Events of two kinds are shown as one: those of the control plane (notes), and those of clients. */
static inline bool resource_shows(const struct resource *resource, enum object_kind kind)
{
    return resource->object == (kind == OBJECT_USER_EVENT ? OBJECT_EVENT : kind);
}

/* NULL: not served. */
const struct resource *resource_find(struct str group, struct str version, struct str plural);
/* The first resource that shows objects of this kind. */
const struct resource *resource_of_kind(enum object_kind kind);
const char *resource_api_version(const struct resource *resource); /* "v1", "jobset.x-k8s.io/v1alpha2" */

/* A row that core/object/ keeps: rendered by render_stored.c. */
static inline bool resource_is_stored(const struct resource *resource)
{
    return object_kind_info(resource->object) != NULL;
}

/* Groups and versions in the order of discovery; the versions of a group stand together, the preferred one
 * first. */
struct resource_group {
    const char *group, *version;
};
extern const struct resource_group resource_groups[];
extern const size_t resource_group_count;

/* The object with this name; false: there is none. */
bool resource_get(const struct resource *resource, const struct core *core, struct str namespace_,
                  struct str name, struct object_ref *ret_object);

/* A Pod that a user deleted is shown until it has ended; the core remembers it as long as its Job needs it.
 * */
bool resource_is_gone(struct object_ref object);

struct str resource_namespace(struct object_ref object); /* as the API shows it; empty: cluster-wide */

/* Calls `visit` for each object in the namespace (empty: all), in a fixed order: JobSets, Jobs and Pods as
 * they were created, Nodes by place, Events from the oldest (those of clients last), stored objects
 * by namespace and name. */
typedef void resource_visit_fn(void *context, struct object_ref object, struct str name);
void resource_visit(const struct resource *resource, const struct core *core, struct str namespace_,
                    resource_visit_fn *visit, void *context);

#endif
