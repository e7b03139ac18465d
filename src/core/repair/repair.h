/* repair.h - the return of a machine that its faults, a person or planned maintenance took out of service.
 *
 *   WAITING      until the machine is idle, or its agent is there
 *   RESETTING    a hook runs: an operator's script on the machine, or on another one that the hook names
 *   RETURNING    the hook takes the machine down: it is expected to come back
 *   PAUSED       until the next try
 *   QUALIFYING   faults that the repair should have cleared are closed, probes repeat those that stand, and
 *                the machine is tested
 *   TICKETED     a person must act
 *   CLOSED       history
 *
 * A repair begins when a machine that is out is idle and a fault of LEVEL_PRE_SEPARATE or more is open.
 * The action is the hardest that these faults ask for, in the order of the cluster file's hooks
 * (spec.repair). Where every such fault has a code that the fault table does not know, the ticket is a
 * question: the machine stays DRAINING until a person answers it, or a fault of a known code takes it out
 * of service.
 *
 * A ticket is opened at once, so that no machine is out without a person being told, for: an action
 * without a hook (inspect, or none), a fault that is LEVEL_MANUALLY_SEPARATE, a hook that the machine does
 * not have, a code that comes back after so many reboots, and the end of the hooks. A hook that fails, or
 * ends without a report, is tried again; then the next harder one follows. When a hook succeeds, the open
 * faults that it can clear are closed; a fault that stands after the test counts anew, and leads to the
 * next harder action.
 *
 * A ticket of a machine on which no action was tried closes with the last of its faults; after an action
 * the machine is tested first. A ticket for a failed test is closed only by a person (spec.done, or by
 * deleting it): faults are closed, the machine is tested and comes back.
 *
 * A switch or link of a pod has no hooks, no agent and no test: its repair is a ticket from the beginning,
 * and ends with its faults or by a person's word (place.c).
 *
 * A repair is an object of the API (Repair, object/object.h) that people may write too, and the record
 * here; the object's status is made from the record. One repair of a machine is open at a time. The newest
 * ended ones are kept, to count "the same code after two reboots".
 *
 * Maintenance (maintenance.c): machines that a Maintenance names or selects take no new work from its
 * notice on, no work at all in its window; hooks and tests are repairs as above. Windows may overlap: a
 * machine comes back with the end of the last. One whose spec.controller is a duration is the controller's
 * own: it takes no machine, and holds the leases for that long from its creation on (lease_hold.h).
 *
 * The result for a machine is machine.kept (model.h), derived here; health/ joins it with the isolation
 * that faults ask for. One owner thread (core.h). Above health/, errand/ and object/; knows no jobs.
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

/* The end of an attempt. */
enum repair_outcome {
    REPAIR_RUNS,
    REPAIR_OK,
    REPAIR_FAILED,
    REPAIR_TIMED_OUT,
    REPAIR_LOST,    /* nobody knows */
    REPAIR_MISSING, /* the machine does not have the hook */
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
    struct str action; /* owned by the repair, as are all its texts; of a test "qualify" */
    bool test, reboots;
    enum repair_outcome outcome;
    int32_t exit_code;
    int64_t began_ns, ended_ns; /* ended_ns 0: it is running */
    struct str output;
};
struct repair_change {
    enum repair_state state;
    int64_t at_ns;
    struct str why;
};
struct repair {
    obj_id uid; /* of its object */
    struct str
        subject; /* the machine's name; of another place "switch/NAME" and so on, as struct fault has it */
    enum repair_state state;
    enum repair_origin origin;
    bool now;          /* a person's request: tasks on the machine are evicted */
    bool asked;        /* `action` was requested: no other is tried */
    bool tested;       /* tested before it comes back, unless the cluster file says otherwise */
    bool testing;      /* a test, and not a hook, is running or awaited */
    bool heals;        /* TICKETED: the ticket closes with the last fault */
    bool asks;         /* TICKETED: a question about unknown codes; meanwhile the machine only drains */
    struct str action; /* the hook; empty: none yet, or none at all */
    uint32_t tries;    /* of the action, or of the test */
    uint32_t tag;      /* incremented for each errand */
    int64_t heard;     /* generation of its object that was processed */
    obj_id errand;     /* 0: none runs */
    int64_t due_ns;    /* PAUSED, RETURNING: end of that; 0: none */
    int64_t opened_ns, changed_ns, closed_ns; /* closed_ns 0: open */
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
    MAINTENANCE_DRAINING, /* during its notice: no new work */
    MAINTENANCE_ACTIVE,
    MAINTENANCE_DONE,
    MAINTENANCE_PHASES
};
extern const char *const maintenance_phase_names[MAINTENANCE_PHASES];

/* Totals over all repairs since the log began. */
struct repair_totals {
    uint64_t opened, tickets, returned;
    uint64_t attempts[REPAIR_OUTCOMES]; /* ended ones by outcome, including tests */
};

struct repairs; /* one for each core; `repairs` of struct step */

struct repairs *repairs_new(void);
void repairs_free(struct repairs *repairs); /* NULL is allowed */

/* --- for readers ---------------------------------------------------------------------------------------- */

const struct repair *repair_find(const struct repairs *repairs, obj_id uid);               /* NULL: none */
const struct repair *repair_of_machine(const struct repairs *repairs, struct str machine); /* the open one */
size_t repairs_count(const struct repairs *repairs);
const struct repair *repairs_at(const struct repairs *repairs, size_t index); /* by uid */
const struct repair_totals *repairs_totals(const struct repairs *repairs);
/* Appends why the machine is kept (machine.kept), for people: "repair m-1.abcde: reboot". False: it is not
 * kept. */
bool repair_describe(const struct repairs *repairs, const struct machine *machine, struct buf *out);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* A fault takes the place ("switch/NAME", "link/NAME") out of service: a ticket is opened, or gets its
 * code. */
void repairs_watch_place(struct step *step, struct str subject);
/* Faults took the machine out of service: it is checked again when it is idle. */
void repairs_watch(struct step *step, const struct machine *machine);
void repairs_machine_moved(struct step *step); /* an agent came or went */
/* Called before errands_hello, so that a hook that takes the machine down does not begin again. */
void repairs_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void repairs_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
void repairs_cluster(struct step *step); /* called after a change of machines or settings */
/* Does all that is due or possible now, after the orders of faults were carried out; true: machine.kept
 * changed, faults have closed, or errands have begun, so other modules must act again. */
bool repairs_act(struct step *step);
/* Stamp at which the last hold of the leases ends that a Maintenance orders now; 0: none does. */
int64_t repairs_hold_until(const struct repairs *repairs);
int64_t repairs_deadline(const struct repairs *repairs); /* stamp; INT64_MAX: none */

/* --- for snapshots -------------------------------------------------------------------------------------- */

/* The saved state of a Maintenance. */
struct maintenance_saved {
    obj_id uid;
    enum maintenance_phase phase;
};
size_t maintenance_count(const struct repairs *repairs);
struct maintenance_saved maintenance_at(const struct repairs *repairs, size_t index); /* by uid */
/* Restores from a snapshot; copies. Objects and machines are restored before. False: it does not fit. */
bool repair_restore(struct step *step, const struct repair *saved);
bool maintenance_restore(struct step *step, const struct maintenance_saved *saved);
void repairs_restore_totals(struct repairs *repairs, const struct repair_totals *totals);
/* Called when all but the isolation by faults is restored: sets machine.kept. */
void repairs_restored(struct step *step);
void repairs_check(const struct repairs *repairs, const struct cluster *cluster); /* aborts through CHECK */

#endif
