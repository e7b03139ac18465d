/* record_switch.h - the part of record.c for answers and health of optical switches (switch.h).
 *
 * Reading checks every number: ports must be 1 .. SWITCH_PORTS_MAX, lists must be within the limits of
 * switch.h. All memory comes from the arena, within its limit.
 */
#ifndef PHX_CORE_LOG_RECORD_SWITCH_H
#define PHX_CORE_LOG_RECORD_SWITCH_H

#include "base/arena.h"
#include "base/error.h"
#include "core/words/switch.h"
#include "proto/log.pb-c.h"

Log__SwitchReport *record_write_report(struct arena *arena, const struct switch_report *report);
Log__SwitchHealth *record_write_health(struct arena *arena, const struct switch_health *health);
/* Return 0, or ERROR_INVALID or ERROR_LIMIT with the field's name. */
int record_read_report(struct arena *arena, const Log__SwitchReport *pb, struct switch_report *ret,
                       struct error *error);
int record_read_health(struct arena *arena, const Log__SwitchHealth *pb, struct switch_health *ret,
                       struct error *error);
/* Append one line for people. */
void record_describe_report(struct buf *out, const struct switch_report *report);
void record_describe_health(struct buf *out, const struct switch_health *health);

#endif
