/* incident.h - what one step of the core brought upon one JobSet: the losses of its tasks, collected until
 * the step settles and answered together.
 *
 *     incident_note(&incident, task->uid, END_EXIT);         // as reports arrive: nothing is decided yet
 *     ...                                                    // the step settles: the caller judges each loss
 *     const struct loss *root = incident_root(&incident);    // the loss that explains the others
 *     incident_question(&incident, now_ns, &question);       // one question to the ladder for all of them
 *     incident_done(&incident);
 *
 * A report of a victim may precede the report of the task that broke it. Collecting them means that the
 * order within a step decides neither the cause nor the rung.
 *
 * Pure; one owner thread. Tasks are named by uid. An incident is empty between steps, so no snapshot holds
 * one.
 */
#ifndef PHX_CORE_LADDER_INCIDENT_H
#define PHX_CORE_LADDER_INCIDENT_H

#include "core/words/ids.h"
#include "core/ladder/ladder.h"

struct loss {
    obj_id task;
    uint8_t end; /* the caller's word for how the task ended */
    /* The caller's judgement, once all losses of the step are known. */
    uint8_t cause;     /* enum loss_cause */
    bool asks;         /* the ladder may answer the loss; false: the rest is not judged */
    bool barred;       /* a policy of the task's Job rules every rung out */
    bool proven;       /* the end left the signature that explains the others (health/signature.h) */
    bool place_is_bad; /* the machine must not, or should not, be used again for this job */
    bool again;        /* one more loss of the incident before, which is not counted again */
    bool runs_long;    /* as ladder_incident.runs_long */
};

enum loss_request_kind {
    REQUEST_RETRY, /* a rank asks that all ranks return to the state they hold; `why` belongs to the event */
    REQUEST_START, /* an order to start was lost */
};
/* A need of a living task, unless the answer to the losses sees to it. */
struct loss_request {
    enum loss_request_kind kind;
    obj_id task;
    struct str why;
};

struct incident {
    VEC(struct loss) losses; /* in the order of their reports */
    VEC(struct loss_request) requests;
};

/* Whether anything waits for its answer. */
bool incident_is_open(const struct incident *incident);
void incident_note(struct incident *incident, obj_id task, uint8_t end);
void incident_note_request(struct incident *incident, enum loss_request_kind kind, obj_id task,
                           struct str why);

/* Returns the loss that explains the others, of those that ask: the first that a policy bars, else the first
 * proven one, else the first; NULL: none asks. */
const struct loss *incident_root(const struct incident *incident);
/* Makes the ladder's question for all losses that ask; there is at least one. */
void incident_question(const struct incident *incident, int64_t now_ns, struct ladder_incident *ret);
/* Whether the loss's place is given up under a rung coarser than RUNG_RESTART_PROCESS: a bad place is, and
 * the root's where no place is bad. */
bool incident_gives_up_place(const struct incident *incident, const struct loss *loss);
void incident_done(struct incident *incident); /* empties it */

#endif
