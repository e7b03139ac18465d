/* stand_in.h - decides when a stand-in answers heartbeats for a driver whose thread is busy elsewhere. Pure.
 *
 *     struct stand_in_clock clock = {.limit_ns = 0};
 *     stand_in_busy(&clock, now_ns);             // the host began something that may take long
 *     if (stand_in_due(&clock, now_ns)) { ...one round: driver_stand_in() for what has come...
 *         stand_in_round(&clock, now_ns); }
 *     driver_attended(driver, stand_in_turn(&clock));    // the host has looked at its sockets again
 *
 * Rules.
 *   - No heartbeat is answered before the host is STAND_IN_LATE_NS late: its own answers are better.
 *   - No heartbeat is answered once the host has made no turn for the limit: a hung host keeps no task alive.
 *     After that, only a turn lets the stand-in answer again.
 *   - Time between two rounds counts as attended only if it is short: a stopped process attended nothing, and
 *     its driver has to detect that (driver_turn).
 * driver_stand_in() says which messages may be answered.
 */
#ifndef PHX_DRIVE_STAND_IN_H
#define PHX_DRIVE_STAND_IN_H

#include <stdbool.h>

#include "base/units.h"

#define STAND_IN_LATE_NS   (100 * NS_PER_MS)
#define STAND_IN_PERIOD_NS (50 * NS_PER_MS)
#define STAND_IN_GAP_NS    (10 * STAND_IN_PERIOD_NS)
#define STAND_IN_LIMIT_NS  (30 * NS_PER_SECOND)

struct stand_in_clock {
    int64_t limit_ns;    /* 0: STAND_IN_LIMIT_NS */
    int64_t busy_ns;     /* monotonic: since when the host is busy; 0: it waits, or has just turned */
    int64_t round_ns;    /* the last round since then; 0: none */
    int64_t attended_ns; /* how long the rounds since then cover */
};

void stand_in_busy(struct stand_in_clock *clock, int64_t now_ns); /* no effect while it is busy already */
bool stand_in_due(const struct stand_in_clock *clock, int64_t now_ns);
void stand_in_round(struct stand_in_clock *clock, int64_t now_ns);
int64_t stand_in_turn(struct stand_in_clock *clock); /* returns the time attended since the last turn */

#endif
