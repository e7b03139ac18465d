/* internal.h - repairs and maintenance, for the files of this folder only.
 *
 *   book.c         repairs and their indexes; snapshots
 *   repair.c       the way of one repair
 *   choose.c       which action is next
 *   ticket.c       Repairs of the API: what people wrote, what is shown
 *   maintenance.c  windows
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
    /* Of its object, read anew when that or the cluster changes. */
    int64_t start_ns, end_ns, notice_ns;
    struct str hook; /* empty: none; owned */
    bool qualify;
    bool holds;               /* it is the controller's own: no machine's, a hold of the leases */
    VEC(machine_id) machines; /* ascending */
    struct arena text;
};

struct repairs {
    VEC(struct repair *) all;          /* by uid */
    struct str_map open;               /* machine -> the open one */
    VEC(struct maintenance *) windows; /* by uid */
    VEC(machine_id) watched;           /* out by their faults, and not being repaired; ascending */
    struct repair_totals totals;
    /* What all was derived from. */
    uint64_t object_version, window_version, closings;
    int64_t due_ns; /* the next timer; INT64_MAX: none */
    bool stirred;   /* something happened that may concern any of them */
    bool sent;      /* errands were begun: some may have ended at once */
    bool changed;   /* machines may be kept otherwise than they are */
};

/* --- book.c --------------------------------------------------------------------------------------------- */

/* A new one, WAITING. The machine's name is copied. */
struct repair *book_new(struct repairs *repairs, obj_id uid, struct str machine);
void book_drop(struct repairs *repairs, struct repair *repair);
struct repair *book_open(const struct repairs *repairs, struct str machine); /* NULL: none */
void book_shut(struct repairs *repairs,
               struct repair *repair); /* it is not the machine's open one any more */
void book_watch(struct repairs *repairs, machine_id machine);
/* Keeps an attempt or a change, whose texts live in repair->text; the oldest makes room. */
struct repair_attempt *book_attempt(struct repair *repair, const struct repair_attempt *attempt);
void book_change(struct repair *repair, const struct repair_change *change);

/* --- choose.c ------------------------------------------------------------------------------------------- */

/* The place of the action among the hooks, -1: it is none. */
int hook_rank(const struct repair_settings *settings, struct str action);
struct choice {
    int rank;  /* of the hook to try; -1: */
    bool test; /* nothing is to be done but a test; else a ticket: */
    char why[200];
};
/* What is next, not milder than `least` (-1: any). */
struct choice choose_action(const struct step *step, const struct repair *repair, int least);
/* Would a hook of this rank clear it? */
bool hook_clears(const struct repair_settings *settings, int rank, const struct fault *fault);
/* Codes of the faults that keep the machine out are remembered; how many there are. */
size_t take_codes(const struct step *step, struct repair *repair);

/* --- repair.c ------------------------------------------------------------------------------------------- */

struct repair_wish {
    enum repair_origin origin;
    struct str action; /* that one and no other; empty: by faults */
    bool now, test_only, untested;
};
/* Begins to repair a machine that has no open repair; `uid`: of its object. */
struct repair *repair_begin(struct step *step, obj_id uid, const struct machine *machine,
                            const struct repair_wish *wish);
void repair_gone(struct step *step, struct repair *repair); /* its machine left the cluster */
/* A person says that it is done. */
void repair_done(struct step *step, struct repair *repair);
/* Of a ticket: this action is to be tried. */
void repair_ask(struct step *step, struct repair *repair, struct str action);
void repair_close(struct step *step, struct repair *repair, const char *why, bool returned);
/* On, as far as possible now. */
void repair_advance(struct step *step, struct repair *repair);
int64_t repair_due(const struct step *step, const struct repair *repair); /* INT64_MAX: nothing */
bool repair_can_begin(const struct machine *machine);                     /* it is out and idle */

/* --- ticket.c ------------------------------------------------------------------------------------------- */

/* A Repair of our own; NULL: there are as many as may be. */
struct repair *ticket_open(struct step *step, const struct machine *machine, const struct repair_wish *wish,
                           struct str reason);
/* The status follows the record. */
void ticket_show(struct step *step, const struct repair *repair);
/* What people wrote since the last time. */
void tickets_sync(struct step *step);
const struct object *repair_object(const struct step *step, obj_id uid); /* NULL: it is gone */
struct doc *doc_time(struct arena *arena, int64_t at_ns);

/* --- maintenance.c -------------------------------------------------------------------------------------- */

void windows_sync(struct step *step); /* objects or machines are others than before */
void window_read(const struct step *step, struct maintenance *window); /* what its object says */
void windows_advance(struct step *step);
int64_t windows_due(const struct repairs *repairs, int64_t now_ns);
void windows_free(struct repairs *repairs);
/* The first that keeps the machine; NULL: none. */
const struct maintenance *window_of(const struct repairs *repairs, machine_id machine);

/* --- keep.c --------------------------------------------------------------------------------------------- */

/* Sets machine.kept of all; true: some are others than before, and health/ was told. */
bool keep_machines(struct step *step);

#endif
