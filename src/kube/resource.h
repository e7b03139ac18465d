/* resource.h - the objects that the API serves, by the rows of core/kinds/kinds.h.
 *
 * A kind may be served under two groups (Events: v1 and events.k8s.io/v1) or versions (Kueue's). Each is then
 * a separate resource, so routing, discovery, tables and watches need no special case.
 */
#ifndef PHX_KUBE_RESOURCE_H
#define PHX_KUBE_RESOURCE_H

#include "core/core.h"

/* Returns whether the row is a JobSet, Job or Pod, for which core/spec has the rules. */
static inline bool resource_is_workload(const struct resource *resource)
{
    return resource->rules == RULES_WORKLOAD;
}

/* Returns whether the row shows measurements of another kind's objects, as far as there are any. */
static inline bool resource_is_metrics(const struct resource *resource)
{
    return resource->view == VIEW_METRICS;
}

/* Returns whether the row serves only the list of workloads that wait in a queue. */
static inline bool resource_is_visibility(const struct resource *resource)
{
    return resource->view == VIEW_PENDING;
}

/* Returns whether objects of the row, or some of them, are kept as clients wrote them. */
static inline bool resource_is_kept(const struct resource *resource)
{
    return object_kind_info(resource->object) != NULL || resource->object == OBJECT_EVENT;
}

/* Returns whether the row shows objects of this kind. Events of the control plane (notes) and of clients are
 * two kinds, but one row shows both. */
static inline bool resource_shows(const struct resource *resource, enum object_kind kind)
{
    return resource->object == (kind == OBJECT_USER_EVENT ? OBJECT_EVENT : kind);
}

/* Finds the resource of a path; NULL if it is not served. */
const struct resource *resource_find(struct str group, struct str version, struct str plural);
/* Returns the first resource that shows objects of this kind; NULL if there is none. */
const struct resource *resource_of_kind(enum object_kind kind);
const char *resource_api_version(const struct resource *resource); /* "v1", "jobset.x-k8s.io/v1alpha2" */

/* Returns whether core/object/ keeps the row's objects; render_stored.c renders them. */
static inline bool resource_is_stored(const struct resource *resource)
{
    return object_kind_info(resource->object) != NULL;
}

/* Groups and versions in the order of discovery; the versions of a group are adjacent, the preferred one
 * first. */
struct resource_group {
    const char *group, *version;
};
extern const struct resource_group resource_groups[];
extern const size_t resource_group_count;

/* Finds the object with this name. Returns false if there is none. */
bool resource_get(const struct resource *resource, const struct core *core, struct str namespace_,
                  struct str name, struct object_ref *ret_object);

/* Returns whether an object is hidden: a Pod that a user deleted is shown only until it has ended, although
 * the core keeps it while its Job needs it.
 * */
bool resource_is_gone(struct object_ref object);

struct str resource_namespace(struct object_ref object); /* as the API shows it; empty: cluster-scoped */

/* Calls `visit` for each object in the namespace (empty: all), in a fixed order: JobSets, Jobs and Pods by
 * creation, Nodes by place, Cubes and Switches by pod and number, Slices by creation of their JobSets, Events
 * from the oldest (those of clients last), stored objects by namespace and name. */
typedef void resource_visit_fn(void *context, struct object_ref object, struct str name);
void resource_visit(const struct resource *resource, const struct core *core, struct str namespace_,
                    resource_visit_fn *visit, void *context);

#endif
