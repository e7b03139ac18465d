/* decisions.h - what the controller decided at one event of its log, and why, as text.
 *
 *     struct decisions decisions = {0};
 *     decisions_of(&decisions, core, effects);                // after each step; replaces the list
 *     decisions_done(&decisions);
 *
 * Orders to tasks (start, rejoin, stop), to machines (errands) and to switches come from the effects. All
 * other decisions leave a note for the API's Events (core/note.h), whose message is the reason. Equal
 * decisions of one event about several objects of one owner are one decision with a count, so a gang of a
 * thousand ranks is one line. No function does I/O. The strings live until the next call.
 */
#ifndef PHX_SIM_REPLAY_DECISIONS_H
#define PHX_SIM_REPLAY_DECISIONS_H

#include "core/core.h"

enum decision_kind {
    DECISION_NOTE,
    DECISION_START,
    DECISION_REJOIN,
    DECISION_STOP,
    DECISION_ERRAND,
    DECISION_SWITCH,
    DECISION_REFUSE, /* an API write was refused */
    DECISION_KINDS
};
/* Such as "note", "start" or "rejoin". */
extern const char *const decision_kind_names[DECISION_KINDS];

struct decision {
    enum decision_kind kind;
    bool warning;       /* a note that reports a problem */
    struct str what;    /* a note's reason, such as "RecoveryDecided"; else the kind's name */
    struct str subject; /* the first object, such as "JobSet default/train" */
    struct str reason;  /* reason for the first object; empty: none */
    uint32_t count;     /* number of objects */
    obj_id owner;       /* private: objects of this owner are grouped; 0: no grouping */
};
struct decisions {
    VEC(struct decision) list; /* in the order in which they were made */
    struct arena arena;
};

void decisions_of(struct decisions *decisions, const struct core *core, const struct effects *effects);
void decisions_done(struct decisions *decisions);

#endif
