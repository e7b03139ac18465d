/* extract.h - START HERE: extracts the external inputs from a controller's log, and lists the controller's
 * decisions with their reasons (decisions.h).
 *
 * A log records what happened and how the controller reacted. Under another policy the reactions would
 * differ, so only their causes go into a history (sim/trace/history.h):
 *
 *     struct extract *extract = extract_new(core);             // the state before the first record
 *     ... after each step: extract_event(extract, core, event, effects)
 *     extract_end(extract, core, &history);                    // frees it
 *
 *   - Machines: those of the cluster document. A machine without an agent is down, from the beginning or from
 *     the evidence that it is lost, until its agent says Hello. A connection that breaks and is restored is
 *     no outage. The absence of a machine that a repair reboots is the controller's own action.
 *   - Faults: an outage with a code, from the fault's opening to its end, if its level keeps the machine from
 *     work. Codes that announce a deliberate act are left out, because its effects are recorded themselves.
 *   - Jobs: JobSets, Jobs and Pods. Their work is the time in which steps ran (core/ledger/ledger.h),
 *     without repeated work. The process that died first in an attempt, without an order, a lost machine or a
 *     fault of its machine, is a crash of the job itself. The crash with which a job fails for good is its
 *     end.
 *   - Gaps: from the last record before a boot of the controller to the boot.
 *
 * Objects that exist at the beginning of the log count as created then. No function does I/O. One thread.
 */
#ifndef PHX_SIM_REPLAY_EXTRACT_H
#define PHX_SIM_REPLAY_EXTRACT_H

#include "core/core.h"
#include "sim/trace/history.h"

struct extract;

/* Makes an extraction. `core` is the state before the first record that extract_event() will see; its
 * sequence number is 0 if the log is whole. */
struct extract *extract_new(const struct core *core);
void extract_event(struct extract *extract, const struct core *core, const struct event *event,
                   const struct effects *effects);
/* Closes the history at the last event and frees `extract`. The caller owns *ret_history and frees it with
 * history_done(). */
void extract_end(struct extract *extract, const struct core *core, struct history *ret_history);
/* Frees the extraction without a result. */
void extract_free(struct extract *extract);

#endif
