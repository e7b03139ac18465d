/* internal.h - repairs and maintenance, for the files of this folder only.
 *
 *   book.c         repairs and their indexes; snapshots
 *   repair.c       the course of one repair
 *   choose.c       the choice of the next action
 *   ticket.c       Repairs of the API: what people wrote, what is shown
 *   maintenance.c  windows
 *   place.c        tickets of switches and links
 *   keep.c         machine.kept, from all of the above
 */
#ifndef PHX_CORE_REPAIR_INTERNAL_H
#define PHX_CORE_REPAIR_INTERNAL_H

#include "core/object/object.h"
#include "core/repair/repair.h"
#include "core/step.h"

struct maintenance {
    obj_id uid;
    enum maintenance_phase phase;
    /* Read from its object, again after a change of it or of the cluster. */
    int64_t start_ns, end_ns, notice_ns;
    struct str hook; /* empty: none; owned */
    bool qualify;
    bool holds;               /* it is the controller's own: no machine's, a hold of the leases */
    VEC(machine_id) machines; /* ascending */
    struct arena text;
};

struct repairs {
    VEC(struct repair *) all;          /* by uid */
    struct str_map open;               /* subject -> its open repair */
    VEC(struct maintenance *) windows; /* by uid */
    VEC(machine_id)
    watched; /* machines out of service by their faults and not under repair;
                                        * ascending */
    struct repair_totals totals;
    /* The versions from which all was derived. */
    uint64_t object_version, window_version, closings;
    int64_t due_ns; /* the next timer; INT64_MAX: none */
    bool stirred;   /* an event may concern any repair */
    bool sent;      /* errands were begun, some of which may have ended at once */
    bool changed;   /* machine.kept may have to change */
};

/* --- book.c --------------------------------------------------------------------------------------------- */

/* Adds a new repair, WAITING. The subject is copied. */
struct repair *book_new(struct repairs *repairs, obj_id uid, struct str subject);
void book_drop(struct repairs *repairs, struct repair *repair);
struct repair *book_open(const struct repairs *repairs, struct str subject); /* NULL: none */
void book_shut(struct repairs *repairs,
               struct repair *repair); /* it is no longer its subject's open repair */
void book_watch(struct repairs *repairs, machine_id machine);
/* Adds an attempt or a change, whose texts live in repair->text; the oldest makes room. */
struct repair_attempt *book_attempt(struct repair *repair, const struct repair_attempt *attempt);
void book_change(struct repair *repair, const struct repair_change *change);

/* --- choose.c ------------------------------------------------------------------------------------------- */

/* Returns the action's index among the hooks, -1: it has none. */
int hook_rank(const struct repair_settings *settings, struct str action);
struct choice {
    int rank;  /* index of the hook to try; -1: none */
    bool test; /* rank -1: only a test is needed; false: a ticket, because of: */
    char why[200];
};
/* Returns the next action, not milder than `least` (-1: any). */
struct choice choose_action(const struct step *step, const struct repair *repair, int least);
/* Whether a hook of this rank would clear the fault. */
bool hook_clears(const struct repair_settings *settings, int rank, const struct fault *fault);
/* Remembers the codes of the faults that keep the machine out of service; returns their number. */
size_t take_codes(const struct step *step, struct repair *repair);

/* --- repair.c ------------------------------------------------------------------------------------------- */

struct repair_wish {
    enum repair_origin origin;
    struct str action; /* the only action to try; empty: as the faults ask */
    bool now, test_only, untested;
};
/* Begins the repair of a machine or place without an open repair; `uid`: of its Repair object. */
struct repair *repair_begin(struct step *step, obj_id uid, struct str subject,
                            const struct repair_wish *wish);
void repair_gone(struct step *step, struct repair *repair); /* called when its subject left the cluster */
/* Moves the repair to another state, for a reason that people read. */
void repair_move(struct step *step, struct repair *repair, enum repair_state state, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* Adds an Event to the Repair, and to the machine if it is one's. */
void repair_note(struct step *step, const struct repair *repair, bool warning, const char *reason,
                 const char *format, ...) __attribute__((format(printf, 5, 6)));
/* A person reports the repair as done. */
void repair_done(struct step *step, struct repair *repair);
/* Tries this action for a ticket. */
void repair_ask(struct step *step, struct repair *repair, struct str action);
void repair_close(struct step *step, struct repair *repair, const char *why, bool returned);
/* Moves the repair on as far as possible now. */
void repair_advance(struct step *step, struct repair *repair);
int64_t repair_due(const struct step *step, const struct repair *repair); /* INT64_MAX: nothing */
/* The machine is out of service and idle. */
bool repair_can_begin(const struct machine *machine);

/* --- ticket.c ------------------------------------------------------------------------------------------- */

/* Creates a Repair object of our own; NULL: the limit is reached. */
struct repair *ticket_open(struct step *step, struct str subject, const struct repair_wish *wish,
                           struct str reason);
/* Updates the object's status from the record. */
void ticket_show(struct step *step, const struct repair *repair);
/* Takes in what people wrote since the last call. */
void tickets_sync(struct step *step);
const struct object *repair_object(const struct step *step, obj_id uid); /* NULL: the object is gone */
struct doc *doc_time(struct arena *arena, int64_t at_ns);

/* --- place.c -------------------------------------------------------------------------------------------- */

bool repair_is_of_place(const struct repair *repair);
void place_ask(struct step *step, struct repair *repair); /* opens the ticket that a person asked for */
/* A person reports the ticket as done: its faults are closed, until they are found again. */
void place_done(struct step *step, struct repair *repair);
/* Whether a ticket may be asked for: a switch of the cluster file, or a place with an open fault. */
bool place_is_known(const struct step *step, struct str subject);

/* --- maintenance.c -------------------------------------------------------------------------------------- */

void windows_sync(struct step *step); /* called after a change of objects or machines */
void window_read(const struct step *step, struct maintenance *window); /* reads its object */
void windows_advance(struct step *step);
int64_t windows_due(const struct repairs *repairs, int64_t now_ns);
void windows_free(struct repairs *repairs);
/* Returns the first window that keeps the machine; NULL: none. */
const struct maintenance *window_of(const struct repairs *repairs, machine_id machine);

/* --- keep.c --------------------------------------------------------------------------------------------- */

/* Sets machine.kept of all machines; true: some changed, and health/ was told. */
bool keep_machines(struct step *step);

#endif
