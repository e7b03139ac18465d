#include "core/level.h"

#include <inttypes.h>

uint32_t level_of_event(const struct event *event)
{
    return event->kind == EVENT_BOOT && event->boot.place.len > 0 ? LEVEL_PLACE : 0;
}

int level_unread(uint32_t level, struct error *error)
{
    return error_set(error, ERROR_UNSUPPORTED,
                     "the log was raised to level %" PRIu32
                     ", and this version reads up to level %d: run the "
                     "version that raised it, or a newer one",
                     level, LEVEL_NEWEST);
}
