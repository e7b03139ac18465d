/* capacity.h - a cache for placement: how many tasks of a shape each machine can take now, summed by block,
 * pod and class. With it, placing a small gang does not inspect every machine.
 *
 * A shape is what a task requests of a machine: chips, cpu, memory, labels, tolerations. The cache keeps the
 * CAPACITY_SHAPES most recently used shapes, and updates a shape on use from the cluster's journal of changed
 * machines (struct machine_changes). The cache is derived from the cluster and no part of the core's state: a
 * search gives the same places with it as without it.
 */
#ifndef PHX_CORE_SCHED_CAPACITY_H
#define PHX_CORE_SCHED_CAPACITY_H

#include "core/model/model.h"

struct capacity;
struct capacity *capacity_new(void);
void capacity_free(struct capacity *capacity); /* NULL is fine */
/* Drops all shapes. Called when the cluster, or the state of all its machines, is replaced. */
void capacity_forget(struct capacity *capacity);
/* Returns the number of the most recently used shape, or 0 if there is none. Numbers are never reused. */
uint64_t capacity_asked(const struct capacity *capacity);
struct place_request;
/* Returns true if the machines certainly cannot take `tasks` tasks of the numbered shape; false also if the
 * cache has dropped the shape. Uses only `holder` and `capacity` of the request, and the holder's context. */
bool capacity_lacks(const struct cluster *cluster, const struct place_request *request, const void *context,
                    uint64_t shape, uint64_t tasks);
/* Returns the sentence of the last search for `tasks` tasks of the numbered shape that failed. The result has
 * no data if a machine has changed since, or the tasks may fit. Arguments as for capacity_lacks. Valid until
 * the cache changes. */
struct str capacity_known_why(const struct cluster *cluster, const struct place_request *request,
                              const void *context, uint64_t shape, uint64_t tasks);
/* CHECKs the cache against a count of all machines. */
void capacity_check(struct capacity *capacity, const struct cluster *cluster);

#endif
