/* stored.h - stored kinds (core/object/object.h) in the API: the object, its status, its cells. Private to
 * kube. */
#ifndef PHX_KUBE_STORED_H
#define PHX_KUBE_STORED_H

#include "kube/table.h"

/* Writes the object in the version in which the resource is served. */
void render_stored(struct render *render, const struct resource *resource, const struct object *object);
/* Returns the columns of the resource's table, ended by an entry without a name; NULL if it is not a stored
 * kind. */
const struct table_column *stored_columns(const struct resource *resource);
void stored_cells(struct render *render, const struct object *object);
/* Returns "Active" or "Terminating". */
const char *stored_namespace_phase(const struct object *object);

/* render_queue.c: writes the status of a ClusterQueue, LocalQueue or Cohort. */
void render_queue_status(struct render *render, const struct resource *resource, const struct object *object);
/* Writes the status of an AdmissionCheck, which is not active if no client may act for its controller. */
void render_check_status(struct render *render, const struct object *object);
/* Stores how many Workloads wait in a queue, and how many were admitted through it. */
void render_queue_counts(const struct render *render, const struct object *object, int64_t *ret_pending,
                         int64_t *ret_admitted);

#endif
