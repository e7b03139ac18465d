/* refusals.h - how many machines refuse a shape's tasks, why, and which are the first: kept machine by
 * machine (capacity.h), so that the sentence of a gang that waits costs no look at every machine.
 *
 * Not thread-safe. A zeroed structure is empty.
 */
#ifndef PHX_CORE_SCHED_REFUSALS_H
#define PHX_CORE_SCHED_REFUSALS_H

#include "base/arena.h"
#include "base/map.h"
#include "core/model/model.h"

/* Why a machine cannot take a task, in the order of checking: lasting reasons are checked first. */
enum refusal {
    FITS,
    REFUSED_LABEL, /* has no value for the exclusive topology's key */
    REFUSED_SELECTOR,
    REFUSED_NAME,  /* bound to another machine */
    REFUSED_SMALL, /* never had enough chips */
    REFUSED_SPARE,
    REFUSED_UNSEEN,
    REFUSED_AWAY,
    REFUSED_LOST,
    REFUSED_CORDONED, /* cordoned by a user; earlier tasks are still on it */
    REFUSED_DRAINED,  /* cordoned by a user; no task is on it */
    REFUSED_DRAINING, /* by its faults (enum isolation) */
    REFUSED_QUARANTINED,
    REFUSED_TAINT,
    REFUSED_OWNED,    /* in a domain that another job holds exclusively */
    REFUSED_CLOSED,   /* closed by the request */
    REFUSED_GANG,     /* other tasks of this gang are on it */
    REFUSED_RESERVED, /* free, and reserved for another gang */
    REFUSED_TAKEN,
    REFUSED_CPU,
    REFUSED_MEMORY,
    REFUSALS
};

struct refusals {
    uint32_t fitting;             /* machines that refuse nothing */
    uint32_t counts[REFUSALS];    /* machines */
    uint64_t *machines[REFUSALS]; /* a bit for each machine; NULL: none was refused so yet */
    size_t words;                 /* of each array of bits */
    struct u64_map holders;       /* machines that are REFUSED_TAKEN, by their holder; none: no entry */
};

/* Counts the machine: `refusal` FITS: it takes a task. `arena` must outlive it; `machine_count`: of the
 * cluster. */
void refusals_add(struct refusals *refusals, struct arena *arena, size_t machine_count, machine_id id,
                  enum refusal refusal, obj_id holder);
/* Takes back what was added for the machine, with the same arguments. */
void refusals_remove(struct refusals *refusals, machine_id id, enum refusal refusal, obj_id holder);
/* Returns the first machine from `from` on that is refused so; MACHINE_NONE: there is none. */
machine_id refusals_next(const struct refusals *refusals, enum refusal refusal, machine_id from);
/* Returns how many machines are taken by the holder. */
uint32_t refusals_held(const struct refusals *refusals, obj_id holder);
/* Forgets all machines; the arrays of bits stay. */
void refusals_clear(struct refusals *refusals);
void refusals_done(struct refusals *refusals);

#endif
