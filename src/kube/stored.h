/* stored.h - stored kinds (core/object/object.h) in the API: the object, its status, its cells. Private to
 * api. */
#ifndef PHX_KUBE_STORED_H
#define PHX_KUBE_STORED_H

#include "kube/table.h"

/* In the version that the resource is served in. */
void render_stored(struct render *render, const struct resource *resource, const struct object *object);
/* The columns of its table; an entry without a name ends them. NULL: not a stored kind. */
const struct table_column *stored_columns(const struct resource *resource);
void stored_cells(struct render *render, const struct object *object);
/* "Active", "Terminating". */
const char *stored_namespace_phase(const struct object *object);

/* render_queue.c: the status member of ClusterQueues, LocalQueues, Cohorts; nothing for others. */
void render_queue_status(struct render *render, const struct resource *resource, const struct object *object);
/* The same of AdmissionChecks: whether anybody may answer for its controller. */
void render_check_status(struct render *render, const struct object *object);
/* Workloads that wait in a queue, and that were admitted through it. */
void render_queue_counts(const struct render *render, const struct object *object, int64_t *ret_pending,
                         int64_t *ret_admitted);

#endif
