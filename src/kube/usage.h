/* usage.h - metrics.k8s.io/v1beta1: the usage of Nodes and Pods. Only the newest measurement of each machine
 * is kept, in memory.
 *
 * Agents measure usage (host/agent/usage.c). A machine without a measurement for USAGE_KEPT_S has no metrics;
 * simulated machines never have any. Source of the formats: k8s.io/metrics v1beta1, metrics-server.
 */
#ifndef PHX_KUBE_USAGE_H
#define PHX_KUBE_USAGE_H

#include "kube/render.h"

enum { USAGE_KEPT_S = 120 };

struct usage_table;
struct usage_table *usage_table_new(void);
void usage_table_free(struct usage_table *table);
/* Replaces the machine's measurement; `usage` is copied. */
void usage_put(struct usage_table *table, machine_id machine, const struct usage *usage, int64_t now_ns);

/* Returns false only for a metrics resource whose object has no current measurement. */
bool usage_shows(const struct usage_table *table, const struct resource *resource, struct object_ref object,
                 int64_t now_ns);

/* Write the metrics of an object for which usage_shows() is true. */
void render_node_metrics(struct render *render, const struct machine *machine);
void render_pod_metrics(struct render *render, const struct task *task);
void metrics_cells(struct render *render, struct object_ref object, struct str name);

#endif
