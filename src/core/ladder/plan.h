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
 * Every state but SAVED and REFUSED may also end at once: when the JobSet is suspended, deleted, finished or
 * given up. A loss while ranks rejoin is a new recovery, which begins from NONE.
 *
 * The path decides what happens to the processes that still live. JobSets that grow take the planned path;
 * shrinking happens between PARKED and REJOINING. Pure; one owner thread. States and paths are part of
 * snapshots.
 */
#ifndef PHX_CORE_LADDER_PLAN_H
#define PHX_CORE_LADDER_PLAN_H

#include "core/words/lifecycle.h"

enum recovery_state {
    RECOVERY_NONE,        /* no restart in place is under way */
    RECOVERY_BACKING_OFF, /* tasks end and keep their places; none runs again before a stamp */
    RECOVERY_PARKED,      /* tasks end and keep their places, until all are dead and placed */
    RECOVERY_DUMPING,     /* survivors write a dying checkpoint, and no rank is replaced */
    RECOVERY_SAVED,       /* the dying checkpoint is committed: the failure policy answers */
    RECOVERY_REFUSED,     /* the dying checkpoint failed: the failure policy answers */
    RECOVERY_REJOINING,   /* the attempt has begun with kept processes; not every rank has made a step */
    RECOVERY_STATES
};
extern const struct lifecycle recovery_lifecycle;

/* The path of a recovery: what happens to the processes that still live when it begins. */
enum recovery_path {
    PATH_RESTART, /* all processes end, and start again */
    PATH_KEEP,    /* after a loss: processes that can rejoin wait for the next attempt */
    PATH_PLANNED, /* a planned change without a loss: as PATH_KEEP, but they finish their step first, without
                   * a short limit */
    PATHS
};
const char *recovery_path_name(enum recovery_path path); /* "restart", "keep", "planned" */

/* Returns whether tasks that end keep their places, and no task starts. */
static inline bool recovery_state_parks(uint8_t state)
{
    return state == RECOVERY_BACKING_OFF || state == RECOVERY_PARKED || state == RECOVERY_DUMPING;
}

/* Returns whether processes are being kept for the next attempt, or were kept and are rejoining. */
static inline bool recovery_state_keeps(uint8_t state, uint8_t path)
{
    return state == RECOVERY_REJOINING || (path != PATH_RESTART && recovery_state_parks(state));
}

/* Returns whether a recovery can be in this state on this path. */
static inline bool recovery_state_fits(uint8_t state, uint8_t path)
{
    if (state >= RECOVERY_STATES || path >= PATHS)
        return false;
    return state == RECOVERY_DUMPING ? path == PATH_KEEP
                                     : state != RECOVERY_REJOINING || path != PATH_RESTART;
}

/* Moves *state to `to`, if it differs. CHECKs that the lifecycle has the move. */
void recovery_state_move(uint8_t *state, enum recovery_state to);

#endif
