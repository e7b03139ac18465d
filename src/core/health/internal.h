/* internal.h - the store of faults, for the files of this folder only.
 *
 *   store.c    faults and their indexes
 *   fault.c    what signals, people and timers do to one fault
 *   sender.c   other systems that report                                     (sender.h)
 *   isolate.c  what open faults make of their machine; the breaker; orders
 */
#ifndef PHX_CORE_HEALTH_INTERNAL_H
#define PHX_CORE_HEALTH_INTERNAL_H

#include "core/health/fault.h"
#include "core/step.h"

/* A machine that has, or had, faults. */
struct ward {
    struct str machine;      /* name; owned */
    struct list_node faults; /* of struct fault.on_machine; any order */
    uint32_t count;
    bool marked;  /* is in health.marked */
    bool waiting; /* is in health.waiting */
};
/* The faults of one code that struck one JobSet. */
struct kindred {
    struct str key;             /* owned */
    VEC(struct fault *) faults; /* by uid */
};

struct health {
    struct fault_table *table;
    VEC(struct fault *) sorted; /* by name */
    struct str_map by_key;      /* -> struct fault */
    struct str_map wards;       /* -> struct ward */
    VEC(struct ward *) all_wards;
    struct str_map kindred;  /* code and JobSet -> struct kindred */
    struct heap due, closed; /* struct fault.due, .closed */
    uint64_t dropped;
    VEC(struct ward *) marked; /* to be looked at before the step ends, in this order */
    size_t next_marked;
    VEC(struct fault *) restarts; /* whose jobs are to restart */
    size_t next_restart;
    VEC(struct ward *) waiting; /* by name: draining, or held back by the breaker */
    VEC(int64_t) isolations;    /* stamps of the last hour, ascending */
    size_t isolated;            /* machines that are DRAINING or QUARANTINED */
    bool released;              /* one of them came back: the breaker has room */
    VEC(struct sender *) senders; /* by name */
    uint64_t closings;          /* faults that closed since this process began */
    VEC(struct fault *) dead;   /* freed when the next step begins */
};

/* --- store.c -------------------------------------------------------------------------------------------- */

struct fault *store_find(const struct health *health, struct str machine, struct str code, struct str place);
/* A new one with the strings and the uid of `from`, closed, in every index. NULL: its name or key is
 * taken. */
struct fault *store_add(struct health *health, const struct fault *from);
/* Removes the closed one that makes room for another of this machine; false: all are open. */
bool store_make_room(struct step *step, struct str machine);
/* Out of every index; freed when the next step begins. */
void store_remove(struct health *health, struct fault *fault);
/* Moves it among the kindred of its code to those of `job`. */
void store_set_job(struct health *health, struct fault *fault, obj_id job);
const struct kindred *store_kindred(const struct health *health, const struct fault *fault);
struct ward *store_ward(struct health *health, struct str machine); /* made if there is none */

/* --- fault.c -------------------------------------------------------------------------------------------- */

const struct fault_rule *fault_rule(const struct health *health, const struct fault *fault);
/* Its timer and its place among the closed, from its state. */
void fault_arm(struct health *health, struct fault *fault);

/* --- isolate.c ------------------------------------------------------------------------------------------ */

void ward_mark(struct step *step, struct ward *ward);
/* What its open faults ask for; *ret_cause is the worst of them, NULL: none. */
enum isolation ward_wanted(const struct ward *ward, const struct machine *machine, struct fault **ret_cause);
bool ward_is_suspect(const struct ward *ward); /* SUSPECT_FAULT is open */
void ward_wait(struct health *health, struct ward *ward, bool waits);
void breaker_forget(struct health *health, int64_t now_ns); /* what is older than its window */

/* --- sender.c ------------------------------------------------------------------------------------------- */

/* Made if there is none; NULL: too many are known. */
struct sender *sender_need(struct health *health, struct str name, int64_t now_ns);
/* One more report of it came in. */
void sender_charge(struct sender *sender, const struct fault_table *table, int64_t now_ns);
void senders_free(struct health *health);

#endif
