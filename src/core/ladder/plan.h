/* plan.h - the recovery of a JobSet as a state machine (docs/recovery.md).
 *
 * clang-format off
 *
 *            +-------------+  due   +--------+  all dead and placed   +-----------+  all made a step
 *   NONE --> | BACKING_OFF | -----> | PARKED | ---------------------> | REJOINING | ----------------> NONE
 *    |       +-------------+        +--------+  (no process is kept:  +-----------+
 *    |              |                 |    ^     NONE at once)
 *    |              v                 v    | the failure policy restarts all
 *    |         +---------+ <----------+    |
 *    +-------> | DUMPING | ----------------+
 *              +---------+ --> SAVED or REFUSED --> NONE, by the failure policy
 *
 * clang-format on
 *
 * Every state but SAVED and REFUSED may also end at once: the JobSet is suspended, deleted, finished or
 * given up. A loss while ranks rejoin is a new recovery, which begins from NONE.
 *
 * The path says what becomes of the processes that still live. Grown and moved JobSets go the planned path;
 * shrinking happens on the way from PARKED to REJOINING. Pure; one owner thread. States and paths are part
 * of snapshots.
 */
#ifndef PHX_CORE_LADDER_PLAN_H
#define PHX_CORE_LADDER_PLAN_H

#include "core/words/lifecycle.h"

enum recovery_state {
    RECOVERY_NONE,        /* no restart in place is under way */
    RECOVERY_BACKING_OFF, /* tasks end and keep their places; none runs again before a stamp */
    RECOVERY_PARKED,      /* tasks end and keep their places, until all are dead and placed */
    RECOVERY_DUMPING,     /* survivors write a dying checkpoint, and no rank is made anew */
    RECOVERY_SAVED,       /* the dying checkpoint is committed: the failure policy answers */
    RECOVERY_REFUSED,     /* the dying checkpoint failed: likewise */
    RECOVERY_REJOINING,   /* the attempt has begun with kept processes; not every rank has made a step */
    RECOVERY_STATES
};
extern const struct lifecycle recovery_lifecycle;

/* The path of a recovery: what becomes of the processes that still live when it begins. */
enum recovery_path {
    PATH_RESTART, /* all of them end, and start again */
    PATH_KEEP,    /* after a loss: those that can rejoin wait inside */
    PATH_PLANNED, /* a planned change without a loss: likewise, after their step and without a short limit */
    PATHS
};
const char *recovery_path_name(enum recovery_path path); /* "restart", "keep", "planned" */

/* Whether tasks that end keep their places, and no task starts. */
static inline bool recovery_state_parks(uint8_t state)
{
    return state == RECOVERY_BACKING_OFF || state == RECOVERY_PARKED || state == RECOVERY_DUMPING;
}

/* Whether processes are kept, or have been kept until now. */
static inline bool recovery_state_keeps(uint8_t state, uint8_t path)
{
    return state == RECOVERY_REJOINING || (path != PATH_RESTART && recovery_state_parks(state));
}

/* Whether a recovery can be in this state on this path. */
static inline bool recovery_state_fits(uint8_t state, uint8_t path)
{
    if (state >= RECOVERY_STATES || path >= PATHS)
        return false;
    return state == RECOVERY_DUMPING ? path == PATH_KEEP
                                     : state != RECOVERY_REJOINING || path != PATH_RESTART;
}

/* Moves *state to `to`, unless it is there. */
void recovery_state_move(uint8_t *state, enum recovery_state to);

#endif
