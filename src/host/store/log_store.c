/* log_store.c - the port to a log on SQLite, and copying a log from one store to another. */
#include "host/store/log_store.h"

#include <inttypes.h>

#include "base/arena.h"
#include "base/check.h"
#include "base/vec.h"
#include "host/store/private.h"

static int sqlite_append(void *context, const struct store_record *records, size_t count, struct error *error)
{
    return store_append(context, records, count, error);
}

static struct log_ends sqlite_ends(void *context)
{
    const struct store *store = context;
    return (struct log_ends){store->state.base_seq, store->last_seq, store->state.base_crc, store->last_crc};
}

static int sqlite_begin_behind(void *context, uint64_t seq, uint32_t crc, struct error *error)
{
    return store_begin_behind(context, seq, crc, error);
}

static int sqlite_read(void *context, uint64_t from_seq, void **ret_cursor, struct error *error)
{
    struct store_cursor *cursor;
    int rc = store_read(context, from_seq, &cursor, error);
    if (rc == 0)
        *ret_cursor = cursor;
    return rc;
}

static int sqlite_next(void *cursor, struct store_record *ret_record, struct error *error)
{
    return store_next(cursor, ret_record, error);
}

static void sqlite_cursor_free(void *cursor)
{
    store_cursor_free(cursor);
}

static int sqlite_snapshot_begin(void *context, uint64_t seq, int64_t stamp_ns, struct str bytes,
                                 void **ret_writer, struct error *error)
{
    struct store_snapshot_writer *writer;
    int rc = store_snapshot_begin(context, seq, stamp_ns, bytes, &writer, error);
    if (rc == 0)
        *ret_writer = writer;
    return rc;
}

static int sqlite_snapshot_step(void *writer, struct error *error)
{
    return store_snapshot_step(writer, error);
}

static void sqlite_snapshot_free(void *writer)
{
    store_snapshot_writer_free(writer);
}

static int sqlite_snapshot_load(void *context, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                                struct error *error)
{
    return store_snapshot_load(context, max_seq, ret_snapshot, error);
}

static int sqlite_trim(void *context, int64_t keep_after_ns, struct error *error)
{
    return store_trim(context, keep_after_ns, error);
}

static int sqlite_verify(void *context, store_report *report, void *report_context,
                         struct store_verify_result *ret_result, struct error *error)
{
    return store_verify(context, report, report_context, ret_result, error);
}

static int sqlite_stats(void *context, struct store_stats *ret_stats, struct error *error)
{
    return store_stats(context, ret_stats, error);
}

static void sqlite_close(void *context)
{
    store_close(context);
}

struct log_store log_store_sqlite(struct store *store)
{
    return (struct log_store){store,
                              sqlite_append,
                              sqlite_ends,
                              sqlite_begin_behind,
                              sqlite_read,
                              sqlite_next,
                              sqlite_cursor_free,
                              sqlite_snapshot_begin,
                              sqlite_snapshot_step,
                              sqlite_snapshot_free,
                              sqlite_snapshot_load,
                              sqlite_trim,
                              sqlite_verify,
                              sqlite_stats,
                              sqlite_close};
}

/* --- copying ---------------------------------------------------------------------------------- */

enum { COPY_RECORDS = 512, COPY_BYTES = 512 << 10 };

/* Records that were read but not appended yet; `bytes` holds their bytes, one record after another. */
struct copying {
    const struct log_store *to;
    VEC(struct store_record) records;
    struct buf bytes;
};

static int copy_flush(struct copying *copying, struct error *error)
{
    const char *at = copying->bytes.data;
    for (size_t i = 0; i < copying->records.len; i++) {
        struct str *bytes = &copying->records.items[i].bytes;
        bytes->data = at;
        at += bytes->len;
    }
    int rc = copying->to->append(copying->to->context, copying->records.items, copying->records.len, error);
    vec_clear(&copying->records);
    buf_clear(&copying->bytes);
    return rc;
}

static int copy_records(const struct log_store *from, struct copying *copying, uint64_t base, uint64_t last,
                        struct error *error)
{
    struct store_record record;
    void *cursor;
    int rc = from->read(from->context, base + 1, &cursor, error);
    if (rc < 0)
        return rc;
    for (uint64_t seq = base; rc >= 0 && seq < last; seq++) {
        rc = from->next(cursor, &record, error);
        if (rc == 0)
            rc = error_set(error, ERROR_CORRUPT, "the log ends before record %" PRIu64, last);
        if (rc < 0)
            break;
        buf_add_str(&copying->bytes, record.bytes);
        vec_push(&copying->records, record);
        if (copying->records.len == COPY_RECORDS || copying->bytes.len >= COPY_BYTES)
            rc = copy_flush(copying, error);
    }
    if (rc >= 0)
        rc = copy_flush(copying, error);
    from->cursor_free(cursor);
    return rc < 0 ? rc : 0;
}

static int copy_snapshot(const struct log_store *from, const struct log_store *to, uint64_t last,
                         struct error *error)
{
    struct store_snapshot snapshot = {0};
    void *writer;
    int rc = from->snapshot_load(from->context, last, &snapshot, error);
    if (rc == ERROR_NOT_FOUND)
        return 0;
    if (rc < 0)
        return rc;
    rc = to->snapshot_begin(to->context, snapshot.seq, snapshot.stamp_ns, buf_str(&snapshot.bytes), &writer,
                            error);
    if (rc == 0) {
        do
            rc = to->snapshot_step(writer, error);
        while (rc > 0);
        to->snapshot_free(writer);
    }
    buf_done(&snapshot.bytes);
    return rc;
}

int log_store_copy(const struct log_store *from, const struct log_store *to, struct log_ends *ret_ends,
                   struct error *error)
{
    struct log_ends ends = from->ends(from->context), there = to->ends(to->context);
    struct copying copying = {.to = to};
    int rc = 0;
    if (there.last > 0)
        return error_set(error, ERROR_EXISTS, "there is a log already, up to record %" PRIu64, there.last);
    if (ends.base > 0)
        rc = to->begin_behind(to->context, ends.base, ends.base_crc, error);
    if (rc == 0)
        rc = copy_records(from, &copying, ends.base, ends.last, error);
    vec_done(&copying.records);
    buf_done(&copying.bytes);
    if (rc == 0)
        rc = copy_snapshot(from, to, ends.last, error);
    if (rc == 0)
        *ret_ends = ends;
    return rc;
}
