/* repair.h - how a machine that its faults, a person or planned maintenance took out of service comes back.
 *
 *   WAITING      until the machine is idle, or its agent is there
 *   RESETTING    a hook runs: an operator's script on the machine, or on the one that the hook names
 *   RETURNING    the hook takes the machine down: it is expected to come back
 *   PAUSED       until the next try
 *   QUALIFYING   what the repair should have cleared is closed, probes say again what stands, the machine is
 *                tested
 *   TICKETED     a person must do something
 *   CLOSED       history
 *
 * A repair begins when a machine that is out is idle and a fault of LEVEL_PRE_SEPARATE or more is open. The
 * action is the hardest that these faults ask for, in the order of the cluster file's hooks (spec.repair).
 * Where every such fault has a code that the fault table does not know, the ticket is a question: the machine
 * stays DRAINING until a person answers it, or a fault of a known code takes it out of service.
 * What is no hook (inspect, nothing at all), a fault that is LEVEL_MANUALLY_SEPARATE, a hook that the machine
 * does not have, a code that comes back after so many reboots, and the end of the hooks are a ticket at once,
 * so that no machine is out without somebody being told. A hook that fails or is not heard of is tried again,
 * then the next harder one is. When it succeeds, the open faults that it can clear are closed; what stands
 * after the test is a fault again, and the next harder action's turn.
 * A ticket of a machine on which nothing has been done closes with the last of its faults; when something was
 * done, the machine is tested first. A ticket that is there because a test failed closes only by a person,
 * who says so (spec.done, or deletes it): faults are closed, the machine is tested and comes back.
 *
 * A repair is an object of the API (Repair, object/object.h) that people may write, too, and the record here;
 * the object's status is made from the record. One repair of a machine is open at a time. Of ended ones the
 * newest are kept: they are what "the same code after two reboots" is counted by.
 *
 * Maintenance (maintenance.c): machines that a Maintenance names or selects take no new work from its notice
 * on, no work at all in its window; hooks and tests are repairs as above. Windows may overlap: a machine
 * comes back with the end of the last. One whose spec.controller is a duration is the controller's own: it
 * takes no machine, and orders a hold of the leases for so long from its creation on (lease_hold.h).
 *
 * What all this makes of a machine is machine.kept (model.h), derived from here; health/ joins it with what
 * faults ask for. One owner thread (core.h). Above health/, errand/ and object/; knows no jobs.
 */
#ifndef PHX_CORE_REPAIR_REPAIR_H
#define PHX_CORE_REPAIR_REPAIR_H

#include "base/arena.h"
#include "base/vec.h"
#include "core/errand/errand.h"
#include "core/health/fault.h"

struct object;

enum repair_state {
    REPAIR_WAITING,
    REPAIR_RESETTING,
    REPAIR_RETURNING,
    REPAIR_PAUSED,
    REPAIR_QUALIFYING,
    REPAIR_TICKETED,
    REPAIR_CLOSED,
    REPAIR_STATES
};
extern const struct lifecycle repair_lifecycle;

enum repair_origin { REPAIR_BY_FAULT, REPAIR_BY_PERSON, REPAIR_BY_MAINTENANCE, REPAIR_ORIGINS };
extern const char *const repair_origin_names[REPAIR_ORIGINS];

/* How an attempt ended. */
enum repair_outcome {
    REPAIR_RUNS,
    REPAIR_OK,
    REPAIR_FAILED,
    REPAIR_TIMED_OUT,
    REPAIR_LOST,    /* nobody knows */
    REPAIR_MISSING, /* the machine has no such hook */
    REPAIR_STOPPED, /* by a person */
    REPAIR_OUTCOMES
};
extern const char *const repair_outcome_names[REPAIR_OUTCOMES];

enum {
    REPAIR_CODES_MAX = 8,     /* fault codes of one repair; further ones are not remembered */
    REPAIR_ATTEMPTS_MAX = 16, /* the newest */
    REPAIR_HISTORY_MAX = 24,  /* likewise */
    REPAIR_OUTPUT_MAX = 1024, /* bytes of an attempt's output */
};

struct repair_attempt {
    struct str action; /* owned by the repair, as all its texts; a test's is "qualify" */
    bool test, reboots;
    enum repair_outcome outcome;
    int32_t exit_code;
    int64_t began_ns, ended_ns; /* ended_ns 0: it runs */
    struct str output;
};
struct repair_change {
    enum repair_state state;
    int64_t at_ns;
    struct str why;
};
struct repair {
    obj_id uid; /* of its object */
    struct str machine;
    enum repair_state state;
    enum repair_origin origin;
    bool now;          /* a person's: what runs on the machine is evicted */
    bool asked;        /* `action` is the one that was asked for: no other is tried */
    bool tested;       /* test it before it comes back, if the cluster file does not say otherwise */
    bool testing;      /* the test is what runs, or is waited for, not the hook */
    bool heals;        /* TICKETED: the ticket closes with the last fault */
    bool asks;         /* TICKETED: about codes that no table knows; the machine only drains meanwhile */
    struct str action; /* hook; empty: none yet, or none at all */
    uint32_t tries;    /* of it, or of the test */
    uint32_t tag;      /* grows with each errand */
    int64_t heard;     /* generation of its object that was acted upon */
    obj_id errand;     /* 0: none runs */
    int64_t due_ns;    /* PAUSED, RETURNING: until then; 0: no */
    int64_t opened_ns, changed_ns, closed_ns; /* closed_ns 0: it is open */
    int64_t watch_ns; /* CLOSED: the machine counts as RETURNED until this stamp; 0: no */
    struct str codes[REPAIR_CODES_MAX];
    size_t code_count;
    struct repair_attempt attempts[REPAIR_ATTEMPTS_MAX]; /* oldest first */
    size_t attempt_count;
    struct repair_change history[REPAIR_HISTORY_MAX]; /* likewise */
    size_t history_count;
    struct arena text; /* owns the texts */
};

enum maintenance_phase {
    MAINTENANCE_PENDING,
    MAINTENANCE_DRAINING, /* within its notice: no new work */
    MAINTENANCE_ACTIVE,
    MAINTENANCE_DONE,
    MAINTENANCE_PHASES
};
extern const char *const maintenance_phase_names[MAINTENANCE_PHASES];

/* Of all repairs since the log began. */
struct repair_totals {
    uint64_t opened, tickets, returned;
    uint64_t attempts[REPAIR_OUTCOMES]; /* that ended, by outcome; tests among them */
};

struct repairs; /* one a core; in struct step as `repairs` */

struct repairs *repairs_new(void);
void repairs_free(struct repairs *repairs); /* NULL is allowed */

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct repair *repair_find(const struct repairs *repairs, obj_id uid);               /* NULL: none */
const struct repair *repair_of_machine(const struct repairs *repairs, struct str machine); /* the open one */
size_t repairs_count(const struct repairs *repairs);
const struct repair *repairs_at(const struct repairs *repairs, size_t index); /* by uid */
const struct repair_totals *repairs_totals(const struct repairs *repairs);
/* Why the machine is kept (machine.kept), for people: "repair m-1.abcde: reboot". False: it is not. */
bool repair_describe(const struct repairs *repairs, const struct machine *machine, struct buf *out);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Faults took it out of service: it is looked at when it is idle. */
void repairs_watch(struct step *step, const struct machine *machine);
void repairs_machine_moved(struct step *step); /* an agent came or went */
/* Before errands_hello: a hook that takes the machine down must not begin again. */
void repairs_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void repairs_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
void repairs_cluster(struct step *step); /* machines and settings may be others */
/* All that is due or possible now, when what faults ask for has been done; true: machines are kept otherwise
 * than before, faults have closed, errands have begun: all others must look again. */
bool repairs_act(struct step *step);
/* Stamp at which the last hold of the leases ends that a Maintenance orders now; 0: none does. */
int64_t repairs_hold_until(const struct repairs *repairs);
int64_t repairs_deadline(const struct repairs *repairs); /* stamp; INT64_MAX: none */

/* --- for snapshots -------------------------------------------------------------------------------------- */

/* What a Maintenance has come to. */
struct maintenance_saved {
    obj_id uid;
    enum maintenance_phase phase;
};
size_t maintenance_count(const struct repairs *repairs);
struct maintenance_saved maintenance_at(const struct repairs *repairs, size_t index); /* by uid */
/* Copies. False: it does not fit. Objects and machines are there. */
bool repair_restore(struct step *step, const struct repair *saved);
bool maintenance_restore(struct step *step, const struct maintenance_saved *saved);
void repairs_restore_totals(struct repairs *repairs, const struct repair_totals *totals);
/* Everything is there but what faults make of machines: sets machine.kept. */
void repairs_restored(struct step *step);
void repairs_check(const struct repairs *repairs, const struct cluster *cluster); /* aborts through CHECK */

#endif
