/* lease_hold.h - a longer lease for a planned restart of the controller.
 *
 * A Maintenance with spec.controller orders a hold. While it is in force, the controller grants what is left
 * of it with each Welcome and each acknowledged heartbeat. The agent then fences its tasks a lease *and* the
 * grant after the sending of what was acknowledged. Both sides count durations on clocks of their own.
 *
 * Invariant: a task is started elsewhere only when its process is dead, or when every grant that its machine
 * may count on has ended, and the lease after it. The rules that keep it:
 *   - The controller counts a grant from the receipt of the heartbeat, with the margin of the lease
 *     (limits.h). It takes no machine for silent before the latest end of all its grants (evidence.h).
 *   - Each change of the hold has a new number: a new hold, its end, a boot of the controller. An agent that
 *     hears another number forgets the grants before it, and says the number in its heartbeats. From then on,
 *     and not before, the controller forgets these grants too: an early end takes nothing back by itself.
 *   - An agent takes no grant from an answer that took longer than the lease: counted from the sending of the
 *     question, it could end before the hold does. What the agent was granted before stands until it has
 *     asked again.
 *   - A restarted controller does not know what was granted. It counts `owed_ns`, the longest time that was
 *     ever granted and may still run, from its boot, for each machine that it has not heard of. Only its
 *     monotonic clock ends that (EVENT_HOLD_OVER), so a wall clock that is set forward breaks no promise.
 *   - While anything is owed, ranks that have lost their peers prove nothing about a machine (node_judge): a
 *     silent machine's connections break before its tasks end themselves.
 * Closed connections and tethers prove deaths as ever. Wall clocks shorten or lengthen what is left of a
 * hold, never what is waited for.
 */
#ifndef PHX_CORE_HEALTH_LEASE_HOLD_H
#define PHX_CORE_HEALTH_LEASE_HOLD_H

#include "core/agent/message.h"

/* Zeroed: there never was a hold. */
struct lease_hold {
    uint64_t number;  /* log position of its newest change; 0: none ever */
    int64_t until_ns; /* stamp at which the hold in force ends; 0: none is */
    int64_t owed_ns;  /* the longest time granted that may still run; 0: none does */
};

/* The hold is to end at that stamp; 0: there is none. `seq`: log position of the step. */
void lease_hold_set(struct lease_hold *hold, int64_t until_ns, uint64_t seq, int64_t now_ns);
/* The grants of the controller before are not known any more. */
void lease_hold_boot(struct lease_hold *hold, uint64_t seq);
/* All that was owed under that number has been counted to its end. */
void lease_hold_over(struct lease_hold *hold, uint64_t number);

/* Returns the grant that an agent gets at that stamp. */
struct lease_grant lease_hold_grant(const struct lease_hold *hold, int64_t stamp_ns);
bool lease_hold_fits(const struct lease_hold *hold); /* what holds in every state */

#endif
