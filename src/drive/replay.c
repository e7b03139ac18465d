/* replay.c - applies the records of a log to a core. */
#include "drive/internal.h"

#include <inttypes.h>

#include "core/log/record.h"

enum { RECORD_ARENA_BYTES = 256 * 1024 * 1024 };

int drive_replay(struct core *core, const struct drive_record *record, struct effects *effects,
                 drive_seen *seen, void *context, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = RECORD_ARENA_BYTES};
    struct event event;
    int rc = record_decode(&arena, record->bytes, &event, error);
    if (rc < 0)
        return error_wrap(error, "record %" PRIu64, record->seq);
    event.seq = record->seq;
    event.stamp_ns = record->stamp_ns;
    if (event.stamp_ns < core_now(core))
        return error_set(error, ERROR_CORRUPT, "record %" PRIu64 ": its stamp runs backwards", record->seq);
    core_step(core, &event, effects);
    if (seen)
        seen(context, core, &event, effects);
    return 0;
}
