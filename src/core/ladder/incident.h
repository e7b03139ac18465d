/* incident.h - an incident: the losses of a JobSet's tasks in one step of the core, collected until the step
 * settles and answered together.
 *
 *     incident_note(&incident, task->uid, END_EXIT);         // as reports arrive: nothing is decided yet
 *     ...                                                    // the step settles: the caller judges each loss
 *     const struct loss *root = incident_root(&incident);    // the loss that explains the others
 *     incident_question(&incident, now_ns, &question);       // one question to the ladder for all of them
 *     incident_done(&incident);
 *
 * A report of a victim may precede the report of the task that broke it. Because losses are collected, the
 * order of reports within a step decides neither the cause nor the rung.
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
    uint8_t end; /* the caller's code for how the task ended */
    /* The caller's judgement, once all losses of the step are known. */
    uint8_t cause;     /* enum loss_cause */
    bool asks;         /* the ladder may answer the loss; false: the other judgements are not set */
    bool barred;       /* a policy of the task's Job rules every rung out */
    bool proven;       /* the end left the signature that explains the others (health/signature.h) */
    bool place_is_bad; /* the machine must not, or should not, be used again for this job */
    bool again;        /* one more loss of the previous incident, which is not counted again */
    bool runs_long;    /* as ladder_incident.runs_long */
};

enum loss_request_kind {
    REQUEST_RETRY, /* a rank asks that all ranks return to the state they hold; `why` belongs to the event */
    REQUEST_START, /* an order to start was lost */
};
/* A request of a living task, which is met unless the answer to the losses already does so. */
struct loss_request {
    enum loss_request_kind kind;
    obj_id task;
    struct str why;
};

struct incident {
    VEC(struct loss) losses; /* in the order of their reports */
    VEC(struct loss_request) requests;
};

/* Returns whether a loss or a request waits for its answer. */
bool incident_is_open(const struct incident *incident);
/* Adds the loss of a task, which can be lost only once in a step. */
void incident_note(struct incident *incident, obj_id task, uint8_t end);
/* Adds a request. `why` is not copied and must live until the incident is answered. */
void incident_note_request(struct incident *incident, enum loss_request_kind kind, obj_id task,
                           struct str why);

/* Returns the loss that explains the others, among those that ask: the first that a policy bars, else the
 * first proven one, else the first. Returns NULL if none asks. */
const struct loss *incident_root(const struct incident *incident);
/* Makes the ladder's question for all losses that ask. There must be at least one. */
void incident_question(const struct incident *incident, int64_t now_ns, struct ladder_incident *ret);
/* Returns whether the loss gives up its place under a rung coarser than RUNG_RESTART_PROCESS: if its place is
 * bad, or if it is the root and no place is bad. */
bool incident_gives_up_place(const struct incident *incident, const struct loss *loss);
void incident_done(struct incident *incident); /* empties the incident and frees its memory */

#endif
