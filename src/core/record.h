/* record.h - events as bytes: the form in which they stand in the log (proto/log.proto) and travel in traces.
 *
 * A record is the event without seq and stamp, which the log keeps beside it. Kinds and fields are only ever
 * added: a record of an older version decodes under a newer one.
 */
#ifndef PHX_CORE_RECORD_H
#define PHX_CORE_RECORD_H

#include "base/arena.h"
#include "base/error.h"
#include "core/event.h"

void record_encode(struct buf *out, const struct event *event); /* appends */
/* Into `arena` (its limit holds). seq and stamp_ns of *ret_event are left for the caller. ERROR_CORRUPT when
 * the bytes are not a record, ERROR_UNSUPPORTED when the kind is newer than this build. */
int record_decode(struct arena *arena, struct str bytes, struct event *ret_event, struct error *error);
/* One line for people: "machine-gone m-3: connection and 2 tethers closed". Tasks and JobSets are numbers,
 * but names where `core`, the state before the event, knows them: "reports m-1: joined default/train-w-0-0".
 */
void record_describe(struct buf *out, const struct event *event);
struct core;
void record_describe_named(struct buf *out, const struct event *event, const struct core *core);

#endif
