/* internal.h - repairs and maintenance, for the files of this folder only.
 *
 *   book.c         repairs and their indexes; snapshots
 *   repair.c       the course of one repair
 *   choose.c       the choice of the next action
 *   ticket.c       Repair objects of the API: reads what people wrote, writes the status
 *   maintenance.c  maintenance windows
 *   place.c        tickets of switches and links
 *   keep.c         machine.kept, from all of the above; the module's turn in a step
 */
#ifndef PHX_CORE_REPAIR_INTERNAL_H
#define PHX_CORE_REPAIR_INTERNAL_H

#include "core/object/object.h"
#include "core/repair/repair.h"
#include "core/step.h"

struct maintenance {
    obj_id uid;
    enum maintenance_phase phase;
    /* Read from its object, and read again when the object or the cluster changes. */
    int64_t start_ns, end_ns, notice_ns;
    struct str hook; /* empty: none; owned */
    bool qualify;
    bool holds;               /* the controller's own: it holds the leases and takes no machine out */
    VEC(machine_id) machines; /* ascending */
    struct arena text;
};

struct repairs {
    VEC(struct repair *) all;          /* by uid */
    struct str_map open;               /* subject -> its open repair */
    VEC(struct maintenance *) windows; /* by uid */
    /* Machines to be checked by repairs_act, ascending: out of service by their faults, or under a waiting
     * repair. */
    VEC(machine_id) watched;
    struct repair_totals totals;
    /* The versions from which this state was derived. */
    uint64_t object_version, window_version, closings;
    int64_t due_ns; /* stamp of the next timer; INT64_MAX: none */
    bool stirred;   /* an event may concern any repair */
    bool sent;      /* errands were begun, some of which may have ended at once */
    bool changed;   /* machine.kept may have to change */
};

/* --- book.c --------------------------------------------------------------------------------------------- */

/* Adds a new repair, WAITING. The subject is copied. */
struct repair *book_new(struct repairs *repairs, obj_id uid, struct str subject);
void book_drop(struct repairs *repairs, struct repair *repair);              /* removes and frees it */
struct repair *book_open(const struct repairs *repairs, struct str subject); /* NULL: none */
/* Removes the repair from the open ones. */
void book_shut(struct repairs *repairs, struct repair *repair);
void book_watch(struct repairs *repairs, machine_id machine); /* adds the machine to repairs.watched */
/* Add an attempt or a change, whose texts are in repair->text. At the limit, the oldest is dropped. */
struct repair_attempt *book_attempt(struct repair *repair, const struct repair_attempt *attempt);
void book_change(struct repair *repair, const struct repair_change *change);

/* --- choose.c ------------------------------------------------------------------------------------------- */

/* Returns the action's index among the hooks; -1: it has no hook. */
int hook_rank(const struct repair_settings *settings, struct str action);
struct choice {
    int rank;      /* index of the hook to try; -1: none */
    bool test;     /* rank -1: true: only a test is needed; false: a ticket is */
    char why[200]; /* the reason for the ticket */
};
/* Returns the next action, not milder than `least` (-1: any). */
struct choice choose_action(const struct step *step, const struct repair *repair, int least);
/* Whether a hook of this rank would clear the fault. */
bool hook_clears(const struct repair_settings *settings, int rank, const struct fault *fault);
/* Records the codes of the faults that keep the machine out of service. Returns the number of these
 * faults. */
size_t take_codes(const struct step *step, struct repair *repair);

/* --- repair.c ------------------------------------------------------------------------------------------- */

struct repair_wish {
    enum repair_origin origin;
    struct str action; /* the only action to try; empty: the one that the faults ask for */
    bool now, test_only, untested;
};
/* Begins the repair of a machine or place without an open repair. `uid` is that of its Repair object. */
struct repair *repair_begin(struct step *step, obj_id uid, struct str subject,
                            const struct repair_wish *wish);
void repair_gone(struct step *step, struct repair *repair); /* called when its subject left the cluster */
/* Moves the repair to another state. The text is the reason, which people read. */
void repair_move(struct step *step, struct repair *repair, enum repair_state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds an Event to the Repair, and to its machine if it has one. */
void repair_note(struct step *step, const struct repair *repair, bool warning, const char *reason,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* Called when a person reports the repair as done: closes the faults and tests the machine. */
void repair_done(struct step *step, struct repair *repair);
/* Tries the action that a person requested for a ticket. */
void repair_ask(struct step *step, struct repair *repair, struct str action);
/* Closes the repair. `returned`: the machine returns to service, and is watched for a while. */
void repair_close(struct step *step, struct repair *repair, const char *why, bool returned);
/* Carries out the repair's next action, if it is due and possible now. */
void repair_advance(struct step *step, struct repair *repair);
int64_t repair_due(const struct step *step, const struct repair *repair); /* stamp; INT64_MAX: none */
/* Whether the machine is out of service and idle. */
bool repair_can_begin(const struct machine *machine);

/* --- ticket.c ------------------------------------------------------------------------------------------- */

/* Creates a Repair object and begins the repair; NULL: too many objects exist. */
struct repair *ticket_open(struct step *step, struct str subject, const struct repair_wish *wish,
                           struct str reason);
/* Updates the object's status from the record. */
void ticket_show(struct step *step, const struct repair *repair);
/* Processes the changes that people made to Repair objects since the last call. */
void tickets_sync(struct step *step);
const struct object *repair_object(const struct step *step, obj_id uid); /* NULL: the object is gone */
struct doc *doc_time(struct arena *arena, int64_t at_ns);

/* --- place.c -------------------------------------------------------------------------------------------- */

bool repair_is_of_place(const struct repair *repair);
void place_ask(struct step *step, struct repair *repair); /* opens the ticket that a person requested */
/* Called when a person reports the ticket as done: closes its faults until they are found again, and the
 * ticket. */
void place_done(struct step *step, struct repair *repair);
/* Whether a person may open a ticket for it: a switch of the cluster file, or a place with an open fault. */
bool place_is_known(const struct step *step, struct str subject);

/* --- maintenance.c -------------------------------------------------------------------------------------- */

void windows_sync(struct step *step); /* called after a change of objects or machines */
void window_read(const struct step *step, struct maintenance *window); /* reads its object */
void windows_advance(struct step *step); /* moves windows to the phases of the present time */
int64_t windows_due(const struct repairs *repairs, int64_t now_ns); /* of a phase's change; INT64_MAX: none */
void windows_free(struct repairs *repairs);
/* Returns the window that keeps the machine, an active one before one in its notice; NULL: none. */
const struct maintenance *window_of(const struct repairs *repairs, machine_id machine);

/* --- keep.c --------------------------------------------------------------------------------------------- */

/* Sets machine.kept of all machines and reports changes to health/. Returns true if there were any. */
bool keep_machines(struct step *step);

#endif
