/* outline.h - a log reduced to the controller's decisions, without times, uids, record numbers, random
 * suffixes or messages, so that diff(1) can compare two runs of one story.
 *
 *     struct outline *outline = outline_new(core);             // before the first event, or after it
 *     ... after each step: outline_event(outline, core, event, effects)
 *     outline_text(outline, STR(""), &out);
 *     outline_free(outline);
 *
 * External inputs are at the margin, and the controller's decisions about each are indented below it:
 *
 *     create JobSet
 *       created          JobSet default/a
 *       start            JobSet default/a: attempt 0: a-w-0-0 on m-1, a-w-0-1 on m-2
 *     lost m-2
 *       RestartCause     JobSet default/a: rank 1 on m-2: machine-lost
 *       RecoveryDecided  JobSet default/a: replace-machine as attempt 1, cause MachineLost on m-2
 *       MachineLost      Node m-2
 *
 *   - External inputs: an API write that was not refused, a machine's Hello, its loss, a fault of it that
 *     begins or ends, the first process of an attempt that ended without an order, a boot, a cluster file.
 *     Inputs without a decision are left out. All other records (ends of processes that were told to stop,
 *     started processes, timers) belong to the input before them.
 *   - created, removed: JobSets, and Jobs and Pods without a JobSet.
 *   - start, rejoin, stop: all orders to ranks of one attempt below one input are one line, at the place of
 *     the first of them, sorted by name. Machines start and end processes at the same time, so the order
 *     among ranks is not a decision. An order to end what a lost machine still has of a task is left out.
 *   - all others: notes for the API's Events (core/note.h), by their reason. A note that repeats the newest
 *     line of its object is left out. So are notes of Pods and of a JobSet's Jobs, which repeat orders or
 *     agents' reports of containers, and notes that repeat what a machine or a person reported.
 *
 * Lines below one input are sorted by object; lines of one object keep the order of their decisions. If two
 * objects react to one input, their order depends on whose machine answers first, so it is not kept. Every
 * line stays in memory until the end. No function does I/O. One thread.
 */
#ifndef PHX_SIM_REPLAY_OUTLINE_H
#define PHX_SIM_REPLAY_OUTLINE_H

#include "core/core.h"

struct outline;

struct outline *outline_new(const struct core *core);
void outline_event(struct outline *outline, const struct core *core, const struct event *event,
                   const struct effects *effects);
/* Appends the lines whose object or details contain `about`, or all lines if it is empty. No outline_event()
 * may follow. */
void outline_text(struct outline *outline, struct str about, struct buf *out);
/* As outline_text(), with a JSON object on each line that also has the number and time of the record: {"seq",
 * "time", "cause", "what", "object", "detail"}. */
void outline_json(struct outline *outline, struct str about, struct buf *out);
void outline_free(struct outline *outline);

#endif
