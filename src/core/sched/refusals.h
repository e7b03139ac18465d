/* refusals.h - how many machines refuse the tasks of a shape, why, and which are the first. capacity.c
 * updates the counts machine by machine, so explaining why a gang waits does not inspect every machine.
 *
 * Not thread-safe. A zeroed structure is empty.
 */
#ifndef PHX_CORE_SCHED_REFUSALS_H
#define PHX_CORE_SCHED_REFUSALS_H

#include "base/arena.h"
#include "base/map.h"
#include "core/model/model.h"

/* Why a machine cannot take a task. Lasting reasons are checked before passing ones (place_fit.c). */
enum refusal {
    FITS,
    REFUSED_LABEL, /* has no value for the exclusive topology's key */
    REFUSED_SELECTOR,
    REFUSED_NAME,  /* the task names another machine */
    REFUSED_SMALL, /* has too few chips even when empty */
    REFUSED_SPARE,
    REFUSED_UNSEEN,
    REFUSED_AWAY,
    REFUSED_LOST,
    REFUSED_CORDONED, /* cordoned by a user; tasks still run on it */
    REFUSED_DRAINED,  /* cordoned by a user; no task runs on it */
    REFUSED_DRAINING, /* by its faults (enum isolation) */
    REFUSED_QUARANTINED,
    REFUSED_TAINT,
    REFUSED_OWNED,    /* in a domain that another job holds exclusively */
    REFUSED_CLOSED,   /* closed by the request */
    REFUSED_GANG,     /* used by other tasks of this gang */
    REFUSED_RESERVED, /* free, and reserved for another gang */
    REFUSED_TAKEN,    /* its chips are held by other tasks */
    REFUSED_CPU,
    REFUSED_MEMORY,
    REFUSALS
};

struct refusals {
    uint32_t fitting;             /* machines that refuse nothing */
    uint32_t counts[REFUSALS];    /* machines */
    uint64_t *machines[REFUSALS]; /* a bit for each machine; NULL: no machine had this refusal yet */
    size_t words;                 /* of each array of bits */
    struct u64_map holders;       /* holder -> number of its REFUSED_TAKEN machines; none: no entry */
};

/* Counts the machine under `refusal`; FITS: it takes a task. `holder` is used for REFUSED_TAKEN alone. The
 * arrays are allocated in `arena`. `machine_count` is that of the cluster. */
void refusals_add(struct refusals *refusals, struct arena *arena, size_t machine_count, machine_id id,
                  enum refusal refusal, obj_id holder);
/* Undoes refusals_add for the machine, with the same refusal and holder. */
void refusals_remove(struct refusals *refusals, machine_id id, enum refusal refusal, obj_id holder);
/* Returns the first machine with this refusal whose id is at least `from`, or MACHINE_NONE. */
machine_id refusals_next(const struct refusals *refusals, enum refusal refusal, machine_id from);
/* Returns how many REFUSED_TAKEN machines the holder has. */
uint32_t refusals_held(const struct refusals *refusals, obj_id holder);
/* Removes all machines; the arrays of bits stay allocated. */
void refusals_clear(struct refusals *refusals);
void refusals_done(struct refusals *refusals);

#endif
