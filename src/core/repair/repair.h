/* repair.h - repairs: how a machine returns to service after its faults, a person or planned maintenance took
 * it out.
 *
 *   WAITING      until the machine is idle and its agent is connected
 *   RESETTING    a hook runs: an operator's script on the machine, or on another one that the hook names
 *   RETURNING    the hook takes the machine down, and the machine is expected to return
 *   PAUSED       until the next try
 *   QUALIFYING   faults that the repair should have cleared are closed, probes repeat those that persist, and
 *                the machine is tested
 *   TICKETED     a person must act
 *   CLOSED       history
 *
 * A repair begins when a machine that is out of service is idle and has an open fault of LEVEL_PRE_SEPARATE
 * or above. The action is the hardest that these faults ask for, in the order of the cluster file's hooks
 * (spec.repair). If the fault table knows the code of none of these faults, the ticket is a question: the
 * machine stays DRAINING until a person answers it, or until a fault of a known code takes it out of service.
 *
 * A ticket tells a person that the machine is out of service. It is opened at once for an action without a
 * hook (inspect, or none), for a fault of LEVEL_MANUALLY_SEPARATE, for a hook that the machine does not have,
 * for a code that recurs after too many reboots, and when there is no harder hook. A hook that fails, or ends
 * without a report, is tried again; then the next harder one follows. When a hook succeeds, the open faults
 * that it can clear are closed. A fault that persists after the test counts as new, and leads to the next
 * harder action.
 *
 * The ticket of a machine on which no action was tried closes with the last of the machine's faults; after an
 * action, the machine is tested first. A ticket for a failed test is closed only by a person (spec.done, or
 * by deleting it): then the faults are closed, the machine is tested, and it returns to service.
 *
 * A switch or link of a pod has no hooks, no agent and no test: its repair is a ticket from the beginning,
 * and ends with its faults or when a person closes it (place.c).
 *
 * A repair consists of an object of the API (Repair, object/object.h), which people may also write, and of
 * the record here. The object's status is made from the record. A machine has at most one open repair. The
 * newest ended repairs are kept, to detect the same code after two reboots, for example.
 *
 * Maintenance (maintenance.c). Machines that a Maintenance names or selects take no new work during its
 * notice, and no work at all during its window. Its hooks and tests are repairs as above. Windows may
 * overlap: a machine returns when the last one ends. A Maintenance whose spec.controller is a duration is the
 * controller's own: it takes no machine out of service, and holds the leases for that long from its creation
 * on (lease_hold.h).
 *
 * The result for a machine is machine.kept (model.h), derived here; health/ joins it with the isolation that
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

/* The outcome of an attempt. */
enum repair_outcome {
    REPAIR_RUNS, /* not ended yet */
    REPAIR_OK,
    REPAIR_FAILED,
    REPAIR_TIMED_OUT,
    REPAIR_LOST,    /* no report of its end arrived */
    REPAIR_MISSING, /* the machine does not have the hook */
    REPAIR_STOPPED, /* stopped by a person */
    REPAIR_OUTCOMES
};
extern const char *const repair_outcome_names[REPAIR_OUTCOMES];

enum {
    REPAIR_CODES_MAX = 8,     /* fault codes of one repair; further ones are not recorded */
    REPAIR_ATTEMPTS_MAX = 16, /* attempts of one repair: the newest */
    REPAIR_HISTORY_MAX = 24,  /* state changes of one repair: the newest */
    REPAIR_OUTPUT_MAX = 1024, /* bytes of an attempt's output */
};

struct repair_attempt {
    struct str action; /* a hook, or "qualify" for a test; the repair owns it and all texts below */
    bool test, reboots;
    enum repair_outcome outcome;
    int32_t exit_code;
    int64_t began_ns, ended_ns; /* ended_ns 0: not ended yet */
    struct str output;
};
struct repair_change {
    enum repair_state state;
    int64_t at_ns;
    struct str why;
};
struct repair {
    obj_id uid; /* uid of its object */
    /* The machine's name; for another place "switch/NAME" and so on, as in struct fault. */
    struct str subject;
    enum repair_state state;
    enum repair_origin origin;
    bool now;          /* a person requested it: tasks on the machine are evicted */
    bool asked;        /* a person requested `action`: no other is tried */
    bool tested;       /* the machine is tested before it returns, unless the cluster file disables tests */
    bool testing;      /* a test, not a hook, is running or awaited */
    bool heals;        /* TICKETED: the ticket closes with the last fault */
    bool asks;         /* TICKETED: a question about unknown codes; until answered, the machine only drains */
    struct str action; /* the hook; empty: none yet, or none at all */
    uint32_t tries;    /* number of tries of the action, or of the test */
    uint32_t tag;      /* incremented for each errand */
    int64_t heard;     /* the newest generation of its object that was processed */
    obj_id errand;     /* 0: none runs */
    int64_t due_ns;    /* PAUSED, RETURNING: stamp at which the state ends; 0: none */
    int64_t opened_ns, changed_ns, closed_ns; /* closed_ns 0: open */
    int64_t watch_ns; /* CLOSED: the machine counts as RETURNED until this stamp; 0: it does not */
    struct str codes[REPAIR_CODES_MAX];
    size_t code_count;
    struct repair_attempt attempts[REPAIR_ATTEMPTS_MAX]; /* oldest first */
    size_t attempt_count;
    struct repair_change history[REPAIR_HISTORY_MAX]; /* oldest first */
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
/* open; NULL: none */
const struct repair *repair_of_machine(const struct repairs *repairs, struct str machine);
size_t repairs_count(const struct repairs *repairs);
const struct repair *repairs_at(const struct repairs *repairs, size_t index); /* by uid */
const struct repair_totals *repairs_totals(const struct repairs *repairs);
/* Appends why the machine is kept (machine.kept), for people: "repair: reboot, try 1", "maintenance: Active".
 * Returns false if it is not kept. */
bool repair_describe(const struct repairs *repairs, const struct machine *machine, struct buf *out);

/* --- for core.c ----------------------------------------------------------------------------------------- */

/* Called when a fault takes the place ("switch/NAME", "link/NAME") out of service: opens a ticket, or adds
 * the fault's code to the open one. */
void repairs_watch_place(struct step *step, struct str subject);
/* Called when faults took the machine out of service: a repair begins once it is idle. */
void repairs_watch(struct step *step, const struct machine *machine);
void repairs_machine_moved(struct step *step); /* called when an agent connected or was lost */
/* Called before errands_hello, so that a hook that takes the machine down does not begin again. */
void repairs_hello(struct step *step, const struct machine *machine, const struct hello *hello);
void repairs_errand_ended(struct step *step, const struct errand *errand, const struct errand_end *end);
void repairs_cluster(struct step *step); /* called after a change of machines or settings */
/* Does everything that is due or possible now, after the orders of faults were carried out. Returns true if
 * machine.kept changed, faults closed, or errands began, so that other modules must act again. */
bool repairs_act(struct step *step);
/* Returns the stamp at which the last hold of the leases ends that a Maintenance orders now; 0: none does. */
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
/* Restore copies from a snapshot, after objects and machines. Return false if the record does not fit. */
bool repair_restore(struct step *step, const struct repair *saved);
bool maintenance_restore(struct step *step, const struct maintenance_saved *saved);
void repairs_restore_totals(struct repairs *repairs, const struct repair_totals *totals);
/* Called when all but the isolation by faults is restored: sets machine.kept. */
void repairs_restored(struct step *step);
void repairs_check(const struct repairs *repairs, const struct cluster *cluster); /* aborts through CHECK */

#endif
