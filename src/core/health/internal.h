/* internal.h - the store of faults, for the files of this folder only.
 *
 *   store.c    faults and their indexes
 *   fault.c    how signals, people and timers change one fault
 *   sender.c   other systems that report faults                              (sender.h)
 *   isolate.c  the isolation that follows from open faults; the breaker; orders
 *   restore.c  restoring from a snapshot; invariants
 */
#ifndef PHX_CORE_HEALTH_INTERNAL_H
#define PHX_CORE_HEALTH_INTERNAL_H

#include "core/health/fault.h"
#include "core/step.h"

/* The faults of one machine. */
struct machine_faults {
    struct str machine;      /* name; owned */
    struct list_node faults; /* of struct fault.on_machine; any order */
    uint32_t count;
    bool marked;  /* listed in health.marked */
    bool waiting; /* listed in health.waiting */
};
/* The faults of one code that struck one JobSet. */
struct correlated_faults {
    struct str key;             /* owned */
    VEC(struct fault *) faults; /* by uid */
};

struct health {
    struct fault_table *table;
    VEC(struct fault *) sorted; /* by name */
    struct str_map by_key;      /* -> struct fault */
    struct str_map by_machine;  /* -> struct machine_faults */
    VEC(struct machine_faults *) all_machines;
    struct str_map correlated; /* code and JobSet -> struct correlated_faults */
    struct heap due, closed;   /* struct fault.due, .closed */
    uint64_t dropped;
    VEC(struct machine_faults *) marked; /* machines to be judged before the step ends, in this order */
    size_t next_marked;
    VEC(struct fault *) restarts; /* faults that restart their machine's jobs in this step */
    size_t next_restart;
    VEC(struct machine_faults *) waiting; /* by name: machines that drain, or that the breaker holds back */
    VEC(int64_t) isolations;              /* stamps in the breaker's window, ascending */
    size_t isolated;                      /* number of machines out of service (isolation_is_out) */
    bool released;                        /* a machine returned: the breaker may allow another one */
    VEC(struct sender *) senders;         /* by name */
    uint64_t closings;                    /* number of faults that closed since this process began */
    VEC(struct fault *) dead;             /* freed when the next step begins */
};

/* --- store.c -------------------------------------------------------------------------------------------- */

/* Returns the fault with this key, open or closed; NULL: none. */
struct fault *store_find(const struct health *health, struct str machine, struct str code, struct str place);
/* Adds a closed fault, with the uid and copies of the strings of `from`, to every index. Returns NULL if its
 * name or key is taken, or if its sender is new and too many are known. */
struct fault *store_add(struct health *health, const struct fault *from);
/* Removes a closed fault if another one of this machine would exceed a limit. Returns false if all are
 * open. */
bool store_make_room(struct step *step, struct str machine);
/* Takes the fault out of every index; it is freed when the next step begins. */
void store_remove(struct health *health, struct fault *fault);
/* Moves the fault to the faults of its code that struck `job`. */
void store_set_job(struct health *health, struct fault *fault, obj_id job);
/* Returns the faults of the fault's code that struck the fault's job, including itself; NULL: it struck
 * none. */
const struct correlated_faults *store_correlated(const struct health *health, const struct fault *fault);
/* Returns the machine's record, made if there is none. */
struct machine_faults *store_machine_faults(struct health *health, struct str machine);

/* --- fault.c -------------------------------------------------------------------------------------------- */

const struct fault_rule *fault_rule(const struct health *health, const struct fault *fault);
/* Sets the fault's timer and its place among the closed faults from its state. */
void fault_arm(struct health *health, struct fault *fault);

/* --- isolate.c ------------------------------------------------------------------------------------------ */

/* Has the machine judged before the step ends. */
void machine_faults_mark(struct step *step, struct machine_faults *at_machine);
/* Returns the isolation that the machine's open faults ask for. *ret_cause is the worst fault that asks for
 * it; NULL: none asks for any. */
enum isolation machine_faults_wanted(const struct machine_faults *at_machine, const struct machine *machine,
                                     struct fault **ret_cause);
bool machine_faults_suspect(const struct machine_faults *at_machine); /* whether SUSPECT_FAULT is open */
/* Adds the machine to health.waiting, or removes it. */
void machine_faults_wait(struct health *health, struct machine_faults *at_machine, bool waits);
void breaker_forget(const struct step *step); /* drops stamps that are older than the window */

/* --- sender.c ------------------------------------------------------------------------------------------- */

/* Finds the sender, or makes it; NULL: too many are known. */
struct sender *sender_need(struct health *health, struct str name, int64_t now_ns);
/* Charges the sender for one more report. */
void sender_charge(struct sender *sender, const struct fault_table *table, int64_t now_ns);
void senders_free(struct health *health);

#endif
