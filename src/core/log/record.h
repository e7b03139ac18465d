/* record.h - records: events as bytes, the form in which the log (proto/log.proto) and traces store them.
 *
 * A record is the event without seq and stamp, which the log keeps beside it. Kinds and fields are only
 * added, so a newer version decodes the records of an older one.
 */
#ifndef PHX_CORE_LOG_RECORD_H
#define PHX_CORE_LOG_RECORD_H

#include "base/arena.h"
#include "base/error.h"
#include "core/event.h"
#include "core/words/release.h"

void record_encode(struct buf *out, const struct event *event); /* appends the record */
/* As record_encode, for many events in turn: `scratch`, empty before and after each call, keeps its
 * memory. */
void record_encode_next(struct buf *out, const struct event *event, struct arena *scratch);
/* Decodes a record into `arena`, within its limit; *ret_event points into the arena. The caller sets seq and
 * stamp_ns of *ret_event. Returns ERROR_CORRUPT if the bytes are not a record, ERROR_INVALID if a value is
 * out of range, ERROR_LIMIT beyond the arena's limit, and ERROR_UNSUPPORTED if the kind is newer than this
 * build. */
int record_decode(struct arena *arena, struct str bytes, struct event *ret_event, struct error *error);
/* Returns "create", "replace", "delete", ... */
const char *record_verb_name(enum write_verb verb);
/* Appends one line for people: "machine-gone m-3: connection and 2 tethers closed". record_describe writes
 * tasks and JobSets as numbers. record_describe_named writes their names if `core`, the state before the
 * event, knows them: "reports m-1: joined default/train-w-0-0".
 */
void record_describe(struct buf *out, const struct event *event);
struct core;
void record_describe_named(struct buf *out, const struct event *event, const struct core *core);

/* --- levels --------------------------------------------------------------------------------------------- */

/* Levels: feature gates that let replicas of neighbouring releases share a log.
 *
 * Replicas of a log (host/standby) apply each other's records, so a controller may write only what every
 * other replica can read. The level bounds that: one number, part of the state, 0 in a new log. Only
 * EVENT_LEVEL raises it; the leader appends this event once all replicas have announced that they read the
 * new level. The level of a record is that of its newest kind or field:
 *
 *     level_of_event(event) <= core_level(core)    before the driver appends it
 *
 * EVENT_LEVEL itself has level 0: the rule by which it is appended protects it. A build that reads less than
 * the log's level refuses records and snapshots with ERROR_UNSUPPORTED, so it applies nothing and cannot
 * lead.
 *
 * A new record kind or field gets a new level here. Below that level its writer leaves it out; this release
 * and all later ones read it. The next release may rely on it where the log has the level.
 */
enum {
    LEVEL_PLACE = 1,    /* boot.place */
    LEVEL_RECEIPTS = 2, /* write.request */
};
_Static_assert((int)LEVEL_NEWEST == (int)LEVEL_RECEIPTS, "release.h names the last of the levels");

uint32_t level_of_event(const struct event *event); /* the lowest level at which it may be written */
/* Returns ERROR_UNSUPPORTED with the message that the log is at `level`, beyond what this release reads. */
int level_unread(uint32_t level, struct error *error);

#endif
