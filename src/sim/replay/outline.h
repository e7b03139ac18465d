/* outline.h - a log reduced to the controller's decisions, so that two runs of one story can be compared with
 * diff(1): no times, uids, numbers of records, random suffixes or messages.
 *
 *     struct outline *outline = outline_new(core);             // before the first event, or behind it
 *     ... after each step: outline_event(outline, core, event, effects)
 *     outline_text(outline, STR(""), &out);
 *     outline_free(outline);
 *
 * What came from outside stands at the margin, what the controller decided then is below it:
 *
 *     create JobSet
 *       created          JobSet default/a
 *       start            JobSet default/a: attempt 0: a-w-0-0 on m-1, a-w-0-1 on m-2
 *     lost m-2
 *       RestartCause     JobSet default/a: rank 1 on m-2: machine-lost
 *       RecoveryDecided  JobSet default/a: replace-machine as attempt 1, cause MachineLost on m-2
 *       MachineLost      Node m-2
 *
 *   - From outside: a write of the API that was not refused, a machine's Hello, its loss, a fault of it that
 *     begins or ends, the first process of an attempt that ended without an order, a boot, a cluster file.
 *     What brought no decision is not in the outline. All other records (ends of processes that were told to
 *     stop, started processes, timers) belong to what came before them.
 *   - created, removed: JobSets, and Jobs and Pods of their own.
 *   - start, rejoin, stop: orders to ranks of one attempt below one thing from outside are one line, at the
 *     place of the first of them, by their names. Machines start and end processes at once, so the order
 *     among ranks is nobody's decision. The end of what a machine still has of a task that was lost with it
 *     is no decision.
 *   - all others: notes for the API's Events (core/note.h), by their reason; a note that repeats the newest
 *     line of its object is left out. Left out too are notes of Pods, and of a JobSet's Jobs, which repeat
 *     the orders or what agents report of containers; and those that repeat what a machine or a person said.
 *
 * Lines below one thing from outside are ordered by their objects, and those of one object as they were
 * decided: of two objects that react to one thing, which comes first depends on whose machine answers first.
 * Every line is kept in memory to the end. Pure; one thread.
 */
#ifndef PHX_SIM_REPLAY_OUTLINE_H
#define PHX_SIM_REPLAY_OUTLINE_H

#include "core/core.h"

struct outline;

struct outline *outline_new(const struct core *core);
void outline_event(struct outline *outline, const struct core *core, const struct event *event,
                   const struct effects *effects);
/* Appends the lines whose object or details have `about`; empty: all. No event may follow. */
void outline_text(struct outline *outline, struct str about, struct buf *out);
/* The same, a JSON object a line, with the number and time of the record: {"seq", "time", "cause", "what",
 * "object", "detail"}. */
void outline_json(struct outline *outline, struct str about, struct buf *out);
void outline_free(struct outline *outline);

#endif
