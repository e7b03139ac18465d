/* decisions.h - what the controller decided at one event of its log, and why, in words.
 *
 *     struct decisions decisions = {0};
 *     decisions_of(&decisions, core, effects);                // after each step; replaces the list
 *     decisions_done(&decisions);
 *
 * Orders to tasks (start, rejoin, stop), to machines (errands) and to switches come from the effects; all
 * other decisions leave a note for the API's Events (core/note.h), whose message is the reason. Equal
 * decisions of one event about many objects of one owner are one decision with a count, so a gang of a
 * thousand ranks is a line. Pure; the strings live until the next call.
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
    DECISION_REFUSE, /* an API write */
    DECISION_KINDS
};
/* "note", "start", "rejoin", ... */
extern const char *const decision_kind_names[DECISION_KINDS];

struct decision {
    enum decision_kind kind;
    bool warning;       /* of a note: something is wrong */
    struct str what;    /* a note's reason, "RecoveryDecided"; else the kind's name */
    struct str subject; /* "JobSet default/train", of the first object */
    struct str reason;  /* of the first object; empty: none is given */
    uint32_t count;     /* objects that are meant */
    obj_id owner;       /* private: what is grouped; 0: nothing is */
};
struct decisions {
    VEC(struct decision) list; /* in the order in which they were made */
    struct arena arena;
};

void decisions_of(struct decisions *decisions, const struct core *core, const struct effects *effects);
void decisions_done(struct decisions *decisions);

#endif
