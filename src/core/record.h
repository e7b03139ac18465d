/* record.h - events as bytes: the form in which they are stored in the log (proto/log.proto) and in
 * traces.
 *
 * A record is the event without seq and stamp, which the log keeps beside it. Kinds and fields are only
 * added: a record of an older version decodes under a newer one.
 */
#ifndef PHX_CORE_RECORD_H
#define PHX_CORE_RECORD_H

#include "base/arena.h"
#include "base/error.h"
#include "core/event.h"

void record_encode(struct buf *out, const struct event *event); /* appends */
/* Decodes into `arena` (its limit holds). The caller sets seq and stamp_ns of *ret_event. ERROR_CORRUPT if
 * the bytes are not a record, ERROR_UNSUPPORTED if the kind is newer than this build. */
int record_decode(struct arena *arena, struct str bytes, struct event *ret_event, struct error *error);
/* Appends one line for people: "machine-gone m-3: connection and 2 tethers closed". Tasks and JobSets are
 * numbers, or names if `core`, the state before the event, knows them: "reports m-1: joined
 * default/train-w-0-0".
 */
void record_describe(struct buf *out, const struct event *event);
struct core;
void record_describe_named(struct buf *out, const struct event *event, const struct core *core);

#endif
