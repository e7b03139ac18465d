#include "host/controller/internal.h"

#include <inttypes.h>

static int load_snapshot(const struct log_store *log, uint64_t until, struct core *core, uint64_t *ret_seq,
                         struct error *error)
{
    struct store_snapshot snapshot = {0};
    int rc = log->snapshot_load(log->context, until, &snapshot, error);
    if (rc == ERROR_NOT_FOUND)
        return 0;
    if (rc < 0)
        return rc;
    if (snapshot.skipped)
        fprintf(stderr, "warning: %u newer snapshot%s damaged (%s); an older one is used\n", snapshot.skipped,
                snapshot.skipped == 1 ? " is" : "s are", snapshot.skipped_text);
    rc = core_snapshot_read(core, buf_str(&snapshot.bytes), error);
    *ret_seq = snapshot.seq;
    buf_done(&snapshot.bytes);
    return rc < 0 ? error_wrap(error, "snapshot at record %" PRIu64, *ret_seq) : 0;
}

int controller_replay(const struct log_store *log, uint64_t until, bool from_snapshot, struct core *core,
                      controller_replay_step *step, void *context, struct error *error)
{
    uint64_t seq = 0;
    int rc = from_snapshot ? load_snapshot(log, until, core, &seq, error) : 0;
    if (rc < 0)
        return rc;
    void *cursor;
    rc = log->read(log->context, seq + 1, &cursor, error);
    if (rc < 0)
        return rc;
    struct effects effects = {0};
    struct store_record record;
    while (seq < until && (rc = log->next(cursor, &record, error)) > 0) {
        struct drive_record stored = {record.seq, record.stamp_ns, record.bytes};
        rc = drive_replay(core, &stored, &effects, step, context, error);
        if (rc < 0)
            break;
        seq = record.seq;
    }
    vec_done(&effects.list);
    log->cursor_free(cursor);
    return rc < 0 ? rc : 0;
}
