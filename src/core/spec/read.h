/* read.h - the Job and pod parts of reading a workload. Private to spec.
 *
 * All functions expect documents whose types have been checked against the schema. Results live in the arena
 * and point into the document. A NULL document reads as an absent field.
 */
#ifndef PHX_CORE_SPEC_READ_H
#define PHX_CORE_SPEC_READ_H

#include "core/spec/spec.h"

enum { GRACE_DEFAULT_S = 30 };

/* Returns a time in seconds, or `fallback` if it is unset. The result is at most 2^31 - 1 (68 years), so it
 * fits a 64-bit count of nanoseconds. */
int64_t read_seconds(const struct doc *node, int64_t fallback);

/* Reads a map of strings, in order of appearance. */
struct labels read_labels(struct arena *arena, const struct doc *map);
struct str *read_strings(struct arena *arena, const struct doc *list, size_t *ret_count);
/* Reads the spec of a Job. */
void read_job(struct arena *arena, const struct doc *spec, struct job_spec *job);
/* Reads "0,2-4" as ranges. Returns false if the text is malformed or does not ascend. Indexes are 0 to
 * 2^31 - 1. */
bool read_ranges(struct arena *arena, struct str text, struct index_range **ret_ranges, size_t *ret_count);
/* Reads a pod template: its metadata and spec. */
void read_pod(struct arena *arena, const struct doc *pod_template, struct pod_spec *ret_pod);

/* Reads spec.affinity.nodeAffinity of a pod. */
void read_affinity(struct arena *arena, const struct doc *affinity, struct pod_spec *pod);
/* Reads spec.scheduling. The replicated jobs must have been read. */
void read_scheduling(struct arena *arena, const struct doc *node, struct jobset_spec *spec);
/* Reads the annotations of the recovery ladder and of spares. All else must have been read. */
void read_recovery(struct jobset_spec *spec);
/* Reads the division of the world into replicas. The replicated jobs must have been read. */
void read_replicas(struct jobset_spec *spec);
/* security.c: reads the securityContext of a container, with that of its pod. */
void read_security(struct arena *arena, const struct doc *spec, const struct doc *container,
                   struct container_security *ret);
bool security_is_default(const struct container_security *security);
/* Reads a pod's containers and volumes. */
void read_containers(struct arena *arena, const struct doc *spec, struct pod_spec *pod);
struct env_spec *read_env(struct arena *arena, const struct doc *list, size_t *ret_count);
/* Returns the container's own setting, else the pod's, else -1. */
int64_t read_security_id(const struct doc *spec, const struct doc *container, const char *field);
void read_container_resources(const struct doc *container, struct container_spec *ret);

/* Reads the topology annotations of a pod template. If one is malformed, returns false, leaves an empty rule,
 * and calls `problem` (may be NULL) with the annotation, its value and the reason. */
typedef void topology_problem_fn(void *context, struct str key, struct str value, const char *why);
bool read_topology(struct arena *arena, const struct labels *annotations, struct topology_rule *ret_rule,
                   topology_problem_fn *problem, void *context);

/* podsets.c: reads a Workload's PodSets, each as a replicated job of one Job. The Workload's queue,
 * WorkloadPriorityClass and maximum time go into `labels`, under the keys of a Job's labels. Errors are those
 * of jobset_read. */
bool podsets_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                  struct field_errors *errors);

/* Returns whether the resource counts chips: "vendor/accelerator", where the vendor's domain is not one of
 * Kubernetes. */
bool resource_is_chip(struct str name);

#endif
