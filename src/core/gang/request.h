/* request.h - requests to the scheduler: for the tasks of a gang, or of a whole JobSet on trial. Private to
 * gang/ and to life/spare.c.
 *
 * A request points into the store, the cluster and the JobSet. It is built, placed and dropped while these do
 * not change.
 */
#ifndef PHX_CORE_GANG_REQUEST_H
#define PHX_CORE_GANG_REQUEST_H

#include "core/gang/gang.h"
#include "core/gang/trial.h"
#include "core/slice/slice.h"

struct request {
    struct place_request place;
    const struct job_store *store;
    const struct cluster *cluster;
    const struct jobset *jobset;
    struct arena arena;
    int32_t priority;          /* topology domains are exclusive among tasks of this priority */
    const struct trial *trial; /* NULL: a gang is placed */
    uint32_t first_podset;     /* first podset of `jobset` in the trial's terms and counts */
    VEC(struct place_job) jobs;
    VEC(machine_id) prefer;
    VEC(uint32_t) rjobs, indexes; /* for each of `jobs`: its replicated job, and its index there */
    VEC(uint32_t) ordinals;
    VEC(uint32_t) slots;       /* for each task, its index in the JobSet */
    struct slice_place *found; /* JobSets that ask for a slice: the cubes that were found; in `arena` */
    VEC(struct placed_task) others;
    uint64_t *own_chips, *reserved;
    int64_t *own_cpu_milli, *own_memory_bytes;
    int64_t *reserved_cpu_milli, *reserved_memory_bytes;
    obj_id *domain_owner;
    uint8_t *closed;              /* for a spare: [machine_count] */
    const struct gang *yields_to; /* spares that give way to this gang count as gone; NULL: all stay */
};

/* Make a request, whose old contents are not freed: for the first `count` tasks of a gang, or for a JobSet on
 * trial. The caller ends it with request_drop. */
void request_gang(struct request *request, const struct job_store *store, const struct cluster *cluster,
                  const struct gang *gang, size_t count);
void request_jobset(struct request *request, const struct job_store *store, const struct cluster *cluster,
                    const struct jobset *jobset, const struct trial *trial);
/* Adds the resources and domains of spares that give way to the gang. Returns false if there are none. */
bool request_add_spares(struct request *request, const struct gang *gang);
void request_drop(struct request *request);

/* Returns whether the machines still lack the capacity for a gang that they refused before (refused_shape).
 * Uses the capacity index only and does not visit the gang's tasks. False means unknown: search. */
bool request_lacks_room(const struct job_store *store, const struct cluster *cluster,
                        const struct gang *gang);

/* Returns the reason for which a gang with the same request was refused since the last change of the
 * machines, or no data if there was none. Valid until the machines change. */
struct str request_known_why(const struct job_store *store, const struct cluster *cluster,
                             const struct gang *gang);

/* Finds a place for each task, in the request's order, by sched_place or, for a slice, slice_request_place.
 * Returns false and appends one sentence to `why` if there are none. */
bool request_place(const struct request *request, struct placement *ret_places, struct buf *why);

/* slice.c: finds cubes for a request that asks for a slice, and stores them in request->found. Tasks that
 * replace some ranks of an existing slice get these ranks' own machines. */
bool slice_request_place(const struct request *request, const struct slice_shape *shape,
                         struct placement *ret_places, struct buf *why);

#endif
