#include "cmd/log_walk.h"

#include "base/units.h"
#include "drive/drive.h"

bool log_limits_parse(const char *text, struct log_limits *limits)
{
    int64_t number;
    if (time_parse(str_from(text), &limits->until_ns))
        return true;
    if (!str_to_i64(str_from(text), 1, INT64_MAX, &number))
        return false;
    limits->until_seq = (uint64_t)number;
    return true;
}

int log_walk_begin(const struct log_store *log, const struct log_limits *limits, struct core *core,
                   struct error *error)
{
    struct store_stats stats;
    int rc = log->stats(log->context, &stats, error);
    if (rc < 0 || stats.first_seq <= 1)
        return rc;
    uint64_t until = stats.snapshot_seq < limits->until_seq ? stats.snapshot_seq : limits->until_seq;
    struct store_snapshot snapshot = {0};
    rc = log->snapshot_load(log->context, until, &snapshot, error);
    if (rc < 0)
        return rc;
    rc = core_snapshot_read(core, buf_str(&snapshot.bytes), error);
    buf_done(&snapshot.bytes);
    return rc;
}

int log_walk(const struct log_store *log, const struct log_limits *limits, struct core *core,
             log_walk_seen *seen, void *context, struct error *error)
{
    void *cursor;
    struct effects effects = {0};
    struct store_record record;
    int rc = log->read(log->context, core_seq(core) + 1, &cursor, error);
    if (rc < 0)
        return rc;
    while ((rc = log->next(cursor, &record, error)) > 0) {
        struct drive_record stored = {record.seq, record.stamp_ns, record.bytes};
        if (record.seq > limits->until_seq || record.stamp_ns > limits->until_ns)
            break;
        rc = drive_replay(core, &stored, &effects, seen, context, error);
        if (rc < 0)
            break;
    }
    vec_done(&effects.list);
    log->cursor_free(cursor);
    return rc < 0 ? rc : 0;
}
