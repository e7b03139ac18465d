/* read.h - the Job and pod parts of reading. Private to spec; the types have been checked against the schema
 * before. */
#ifndef PHX_CORE_SPEC_READ_H
#define PHX_CORE_SPEC_READ_H

#include "core/spec/spec.h"

enum { GRACE_DEFAULT_S = 30 };

/* Reads a time in seconds, at most 2^31 - 1 (68 years), so that it can be counted in nanoseconds;
 * `fallback` if unset. */
int64_t read_seconds(const struct doc *node, int64_t fallback);

/* A map of strings in order of appearance. */
struct labels read_labels(struct arena *arena, const struct doc *map);
struct str *read_strings(struct arena *arena, const struct doc *list, size_t *ret_count);
/* The spec of a Job. */
void read_job(struct arena *arena, const struct doc *spec, struct job_spec *job);
/* "0,2-4" as ranges; false: malformed, or not ascending. Negative and beyond 2^31 - 1 are malformed. */
bool read_ranges(struct arena *arena, struct str text, struct index_range **ret_ranges, size_t *ret_count);
/* The pod template (its metadata and spec). */
void read_pod(struct arena *arena, const struct doc *pod_template, struct pod_spec *ret_pod);

/* spec.affinity.nodeAffinity of a pod. */
void read_affinity(struct arena *arena, const struct doc *affinity, struct pod_spec *pod);
/* spec.scheduling, after the replicated jobs. */
void read_scheduling(struct arena *arena, const struct doc *node, struct jobset_spec *spec);
/* The annotations of the recovery ladder, of the whole workload; last. */
void read_recovery(struct jobset_spec *spec);
/* The division of its world into replicas; last as well. */
void read_replicas(struct jobset_spec *spec);
/* Reads its containers and volumes. */
/* security.c */
void read_security(struct arena *arena, const struct doc *spec, const struct doc *container,
                   struct container_security *ret);
bool security_is_default(const struct container_security *security);
void read_containers(struct arena *arena, const struct doc *spec, struct pod_spec *pod);
struct env_spec *read_env(struct arena *arena, const struct doc *list, size_t *ret_count);
/* The container's own setting, else the pod's, else -1. */
int64_t read_security_id(const struct doc *spec, const struct doc *container, const char *field);
void read_container_resources(const struct doc *container, struct container_spec *ret);

/* Reads the topology annotations of a pod template. False: malformed; then there is no rule, and `problem`
 * (may be NULL) is called with the annotation, its value and the reason. */
typedef void topology_problem_fn(void *context, struct str key, struct str value, const char *why);
bool read_topology(struct arena *arena, const struct labels *annotations, struct topology_rule *ret_rule,
                   topology_problem_fn *problem, void *context);

/* podsets.c: reads a Workload's PodSets, each as a replicated job of one Job; its queue,
 * WorkloadPriorityClass and maximum time are put into `labels`, under the keys of a Job's labels. */
bool podsets_read(struct arena *arena, const struct doc *object, struct jobset_spec *ret_spec,
                  struct field_errors *errors);

/* Whether the resource counts chips: "vendor/accelerator" with a vendor's domain that is not Kubernetes'
 * own. */
bool resource_is_chip(struct str name);

#endif
