/* lease_hold.h - a longer lease for a planned restart of the controller.
 *
 * A Maintenance with spec.controller orders a hold of the leases. While the hold is in force, the controller
 * grants the rest of it with each Welcome and each acknowledged heartbeat. The agent then fences its tasks a
 * lease *and* the grant after it sent the acknowledged message. Each side counts durations on its own clock.
 *
 * Invariant: a task is started elsewhere only when its process is dead, or when every grant on which its
 * machine may rely has ended, and the lease after it. These rules keep the invariant:
 *   - The controller counts a grant from the receipt of the heartbeat, with the margin of the lease
 *     (limits.h). It does not consider a machine silent before the latest end of all its grants (evidence.h).
 *   - Each change of the hold has a new number: a new hold, its end, a boot of the controller. An agent that
 *     receives another number drops its earlier grants, and names the number in its heartbeats. Only then
 *     does the controller drop these grants too: ending a hold early does not by itself revoke a grant.
 *   - An agent takes no grant from an answer that took longer than the lease: counted from the sending of the
 *     question, the grant could end before the hold does. Earlier grants stay valid until the agent has asked
 *     again.
 *   - A restarted controller does not know what was granted. For each machine from which it has not received
 *     anything, it counts `owed_ns` from its boot: the longest time that was ever granted and may still run.
 *     Only its monotonic clock ends that (EVENT_HOLD_OVER), so a wall clock that is set forward breaks no
 *     promise.
 *   - While anything is owed, ranks that have lost their peers prove nothing about a machine (node_judge): a
 *     silent machine's connections break before its tasks end themselves.
 * Closed connections and tethers prove deaths as always. Wall clocks shorten or lengthen the rest of a hold,
 * but never the time for which the controller waits.
 */
#ifndef PHX_CORE_HEALTH_LEASE_HOLD_H
#define PHX_CORE_HEALTH_LEASE_HOLD_H

#include "core/agent/message.h"

/* Zeroed: there never was a hold. */
struct lease_hold {
    uint64_t number;  /* log position of its newest change; 0: none ever */
    int64_t until_ns; /* stamp at which the hold in force ends; 0: none is in force */
    int64_t owed_ns;  /* the longest time granted that may still run; 0: none does */
};

/* Sets the end of the hold to a stamp, or ends the hold (0). `seq` is the log position of the step. */
void lease_hold_set(struct lease_hold *hold, int64_t until_ns, uint64_t seq, int64_t now_ns);
/* Gives the hold a new number when a controller boots, which does not know the earlier grants. */
void lease_hold_boot(struct lease_hold *hold, uint64_t seq);
/* Clears what is owed, once a controller has waited for all that was owed under that number. */
void lease_hold_over(struct lease_hold *hold, uint64_t number);

/* Returns the grant that an agent receives at that stamp. */
struct lease_grant lease_hold_grant(const struct lease_hold *hold, int64_t stamp_ns);
bool lease_hold_fits(const struct lease_hold *hold); /* whether its invariants hold */

#endif
