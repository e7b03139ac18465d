/* resource.h - the objects that the API serves, by the rows of core/kinds/kinds.h.
 *
 * A kind may be served under two groups (Events: v1 and events.k8s.io/v1) or versions (Kueue's); each is a
 * resource of its own there, so that routing, discovery, tables and watches need no special case.
 */
#ifndef PHX_KUBE_RESOURCE_H
#define PHX_KUBE_RESOURCE_H

#include "core/core.h"

/* Is it a JobSet, Job or Pod, for which core/spec has the rules? */
static inline bool resource_is_workload(const struct resource *resource)
{
    return resource->rules == RULES_WORKLOAD;
}

/* Rows that show another kind's objects, those of which a measurement is at hand. */
static inline bool resource_is_metrics(const struct resource *resource)
{
    return resource->view == VIEW_METRICS;
}

/* Does the row serve only the list of workloads that wait in a queue? */
static inline bool resource_is_visibility(const struct resource *resource)
{
    return resource->view == VIEW_PENDING;
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
 * they were created, Nodes by place, Cubes and Switches by pod and number, Slices as their JobSets, Events
 * from the oldest (those of clients last), stored objects by namespace and name. */
typedef void resource_visit_fn(void *context, struct object_ref object, struct str name);
void resource_visit(const struct resource *resource, const struct core *core, struct str namespace_,
                    resource_visit_fn *visit, void *context);

#endif
