/* capacity.h - how many tasks of a shape each machine could take now, summed by block, pod and class: kept
 * between searches, so that placing a small gang does not look at every machine.
 *
 * A shape is what tasks ask of one machine: chips, cpu, memory, labels, tolerations. The shapes asked for
 * last are kept (CAPACITY_SHAPES); each is brought up to date from the cluster's journal of changed machines
 * (struct machine_changes) when it is asked for. It is derived from the cluster alone and no part of the
 * state: a search gives the same places with it as without it.
 */
#ifndef PHX_CORE_SCHED_CAPACITY_H
#define PHX_CORE_SCHED_CAPACITY_H

#include "core/model/model.h"

struct capacity;
struct capacity *capacity_new(void);
void capacity_free(struct capacity *capacity);
/* The machines, or all that is known of them, are others now. */
void capacity_forget(struct capacity *capacity);
/* Returns the number of the shape that was asked for last; 0: none was. Numbers are not used again. */
uint64_t capacity_asked(const struct capacity *capacity);
struct place_request;
/* Whether the machines lack room for so many tasks of the numbered shape; false also where that shape is not
 * kept any more. Of `request`, `holder` and `capacity` are used, with its context. */
bool capacity_lacks(const struct cluster *cluster, const struct place_request *request, const void *context,
                    uint64_t shape, uint64_t tasks);
/* Returns why the machines lack room for so many tasks of the numbered shape, as a search has told since they
 * changed last; no data: none has, or there may be room. As capacity_lacks. */
struct str capacity_known_why(const struct cluster *cluster, const struct place_request *request,
                              const void *context, uint64_t shape, uint64_t tasks);
/* CHECKs that what is kept is what a count of all machines gives. */
void capacity_check(struct capacity *capacity, const struct cluster *cluster);

#endif
