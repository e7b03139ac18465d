#include "host/controller/internal.h"

#include <inttypes.h>

int controller_load(const struct log_store *log, uint64_t until, struct core *core, struct error *error)
{
    struct store_snapshot snapshot = {0};
    int rc = log->snapshot_load(log->context, until, &snapshot, error);
    if (rc < 0)
        return rc;
    if (snapshot.skipped)
        fprintf(stderr, "warning: %u newer snapshot%s damaged (%s); an older one is used\n", snapshot.skipped,
                snapshot.skipped == 1 ? " is" : "s are", snapshot.skipped_text);
    rc = core_snapshot_read(core, buf_str(&snapshot.bytes), error);
    buf_done(&snapshot.bytes);
    return rc < 0 ? error_wrap(error, "snapshot at record %" PRIu64, snapshot.seq) : 0;
}

int controller_apply(const struct log_store *log, uint64_t until, int64_t until_ns, struct core *core,
                     controller_replay_step *step, void *context, struct error *error)
{
    void *cursor;
    int rc = log->read(log->context, core_seq(core) + 1, &cursor, error);
    if (rc < 0)
        return rc;
    struct effects effects = {0};
    struct store_record record;
    while (core_seq(core) < until && (rc = log->next(cursor, &record, error)) > 0) {
        struct drive_record stored = {record.seq, record.stamp_ns, record.bytes};
        if (record.stamp_ns > until_ns)
            break;
        rc = drive_replay(core, &stored, &effects, step, context, error);
        if (rc < 0)
            break;
    }
    vec_done(&effects.list);
    log->cursor_free(cursor);
    return rc < 0 ? rc : 0;
}

int controller_replay(const struct log_store *log, uint64_t until, bool from_snapshot, struct core *core,
                      controller_replay_step *step, void *context, struct error *error)
{
    int rc = from_snapshot ? controller_load(log, until, core, error) : 0;
    if (rc < 0 && rc != ERROR_NOT_FOUND)
        return rc;
    return controller_apply(log, until, INT64_MAX, core, step, context, error);
}
