/* record.h - events as bytes: the form in which they are stored in the log (proto/log.proto) and in
 * traces.
 *
 * A record is the event without seq and stamp, which the log keeps beside it. Kinds and fields are only
 * added: a record of an older version decodes under a newer one.
 */
#ifndef PHX_CORE_LOG_RECORD_H
#define PHX_CORE_LOG_RECORD_H

#include "base/arena.h"
#include "base/error.h"
#include "core/event.h"
#include "core/words/release.h"

void record_encode(struct buf *out, const struct event *event); /* appends */
/* The same for one event after the other: `scratch`, empty before and after, keeps the memory in between. */
void record_encode_next(struct buf *out, const struct event *event, struct arena *scratch);
/* Decodes into `arena` (its limit holds). The caller sets seq and stamp_ns of *ret_event. ERROR_CORRUPT if
 * the bytes are not a record, ERROR_UNSUPPORTED if the kind is newer than this build. */
int record_decode(struct arena *arena, struct str bytes, struct event *ret_event, struct error *error);
/* "create", "replace", "delete", ... */
const char *record_verb_name(enum write_verb verb);
/* Appends one line for people: "machine-gone m-3: connection and 2 tethers closed". Tasks and JobSets are
 * numbers, or names if `core`, the state before the event, knows them: "reports m-1: joined
 * default/train-w-0-0".
 */
void record_describe(struct buf *out, const struct event *event);
struct core;
void record_describe_named(struct buf *out, const struct event *event, const struct core *core);

/* --- levels --------------------------------------------------------------------------------------------- */

/* Up to which release the log may be written: feature gates for replicas of neighbouring releases.
 *
 * Replicas of a log (host/standby) apply each other's records, so a controller may write only what every
 * other one reads. The level is that bound: one number, part of the state, 0 in a new log. It only grows, by
 * EVENT_LEVEL, and the leader appends that once all replicas have announced that they read it. A record's
 * level is that of its newest kind or field:
 *
 *     level_of_event(event) <= core_level(core)    before the driver appends it
 *
 * EVENT_LEVEL itself has level 0: the rule by which it is appended protects it. A build that reads less than
 * the log's level refuses record and snapshot with ERROR_UNSUPPORTED, so it does not take part, and cannot
 * lead.
 *
 * A new record kind or field gets a new level here, is left out below it by its writer, and is read by this
 * release and all later ones. The release after that may rely on it where the level is open.
 */
enum {
    LEVEL_PLACE = 1,    /* boot.place */
    LEVEL_RECEIPTS = 2, /* write.request */
};
_Static_assert((int)LEVEL_NEWEST == (int)LEVEL_RECEIPTS, "release.h names the last of the levels");

uint32_t level_of_event(const struct event *event); /* the lowest level at which it may be written */
/* Returns ERROR_UNSUPPORTED: the log is at `level`, beyond what this release reads. */
int level_unread(uint32_t level, struct error *error);

#endif
