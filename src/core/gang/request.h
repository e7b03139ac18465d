/* request.h - what the scheduler is asked for: the tasks of a gang, or of a whole JobSet on trial. Private
 * to gang/ and to life/spare.c.
 *
 * A request points into the store, the cluster and the JobSet: it is built, placed and dropped between two
 * changes of them.
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
    int32_t priority;          /* of those of its Jobs that want an exclusive topology domain */
    const struct trial *trial; /* NULL: a gang is placed */
    uint32_t first_podset;     /* first podset of `jobset` in the trial's terms and counts */
    VEC(struct place_job) jobs;
    VEC(machine_id) prefer;
    VEC(uint32_t) rjobs, indexes; /* of each of `jobs`: its replicated job, and its index there */
    VEC(uint32_t) ordinals;
    VEC(uint32_t) slots;       /* of each task, its index in the JobSet */
    struct slice_place *found; /* for a JobSet that asks for a slice: the cubes that were found; in `arena` */
    VEC(struct placed_task) others;
    uint64_t *own_chips, *reserved;
    int64_t *own_cpu_milli, *own_memory_bytes;
    int64_t *reserved_cpu_milli, *reserved_memory_bytes;
    obj_id *domain_owner;
    uint8_t *closed;              /* for a spare: [machine_count] */
    const struct gang *yields_to; /* spares that give way to this gang count as gone; NULL: all stay */
};

/* Fills in `request`, whatever it held. */
void request_gang(struct request *request, const struct job_store *store, const struct cluster *cluster,
                  const struct gang *gang, size_t count); /* the first so many of its tasks */
void request_jobset(struct request *request, const struct job_store *store, const struct cluster *cluster,
                    const struct jobset *jobset, const struct trial *trial);
/* Allows the request to take the resources of spares that give way to the gang, and frees their domains;
 * false: there are none. */
bool request_add_spares(struct request *request, const struct gang *gang);
void request_drop(struct request *request);

/* Whether the machines lack room for a gang that they refused before (refused_shape), by what is kept between
 * searches: costs no look at the gang's tasks. False: unknown, a search has to tell. */
bool request_lacks_room(const struct job_store *store, const struct cluster *cluster,
                        const struct gang *gang);

/* Returns why they do, if a gang that asks for the same was told so since the machines changed last; no data:
 * unknown. Lives as long as the machines do not change. */
struct str request_known_why(const struct job_store *store, const struct cluster *cluster,
                             const struct gang *gang);

/* Calls sched_place: a place for each task in the request's order. */
bool request_place(const struct request *request, struct placement *ret_places, struct buf *why);

/* slice.c: finds cubes for a request that asks for a slice, into request->found, or the task's own places in
 * the slice that its JobSet has. */
bool slice_request_place(const struct request *request, const struct slice_shape *shape,
                         struct placement *ret_places, struct buf *why);

#endif
