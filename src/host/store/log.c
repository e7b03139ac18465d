#include "host/store/private.h"

#include <inttypes.h>
#include "base/arena.h"
#include "base/check.h"

struct store_cursor {
    struct store *store;
    sqlite3_stmt *statement;
    uint64_t previous_seq;
    uint32_t previous_crc;
    uint64_t end_seq; /* the last record to read */
    int failed;       /* the error code that every later call returns */
    struct error error;
    struct buf plain; /* decrypted bytes of a sealed record */
};

static int insert_records(struct store *store, const struct store_record *records, size_t count,
                          uint32_t *crc)
{
    struct buf sealed BUF_CLEANUP = {0};
    for (size_t i = 0; i < count; i++) {
        const struct store_record *record = &records[i];
        struct store_seal_place place = {STORE_SEAL_RECORD, record->seq, (uint64_t)record->stamp_ns};
        struct str bytes = store_seal(store->options.keys, &place, record->bytes, &sealed);
        *crc = store_record_crc(*crc, record->seq, record->stamp_ns, bytes);
        sqlite3_stmt *statement = store->statements[STMT_LOG_INSERT]; /* every parameter is bound again */
        (void)sqlite3_bind_int64(statement, 1, (int64_t)record->seq);
        (void)sqlite3_bind_int64(statement, 2, record->stamp_ns);
        (void)sqlite3_bind_int64(statement, 3, *crc);
        const char *data = bytes.len ? bytes.data : ""; /* a NULL pointer would bind NULL */
        int rc = sqlite3_bind_blob64(statement, 4, data, bytes.len, SQLITE_STATIC);
        if (rc != SQLITE_OK)
            return rc;
        rc = store_db_run(statement);
        if (rc != SQLITE_DONE)
            return rc;
    }
    return SQLITE_DONE;
}

int store_append(struct store *store, const struct store_record *records, size_t count, struct error *error)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++) {
        CHECK(records[i].seq == store->last_seq + 1 + i && records[i].seq <= INT64_MAX);
        if (records[i].bytes.len > STORE_RECORD_BYTES_MAX)
            return error_set(error, ERROR_LIMIT, "record %" PRIu64 " has %zu bytes, the limit is %d",
                             records[i].seq, records[i].bytes.len, (int)STORE_RECORD_BYTES_MAX);
        bytes += records[i].bytes.len;
    }
    if (count == 0)
        return 0;
    int rc = store_db_begin(store, true, error);
    if (rc < 0)
        return error_wrap(error, "appending to the log");
    uint32_t crc = store->last_crc;
    rc = insert_records(store, records, count, &crc);
    (void)sqlite3_clear_bindings(store->statements[STMT_LOG_INSERT]); /* the caller owns the records */
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "appending to the log", error);
    rc = store_db_commit(store, "appending to the log", error);
    if (rc < 0)
        return rc;
    store->last_seq += count;
    store->last_crc = crc;
    store->appended_records += count;
    store->appended_bytes += bytes;
    store_lock_head(&store->lock, store->last_seq, store->last_crc);
    store_db_fold(store, (int)(store->options.wal_bytes / STORE_PAGE_BYTES));
    return 0;
}

uint64_t store_last_seq(const struct store *store)
{
    return store->last_seq;
}

uint64_t store_first_seq(const struct store *store)
{
    return store->state.base_seq + 1;
}

int store_log_crc(struct store *store, uint64_t seq, uint32_t *ret_crc, struct error *error)
{
    if (seq == store->state.base_seq) {
        *ret_crc = store->state.base_crc;
        return 0;
    }
    sqlite3_stmt *statement = store_db_get(store, STMT_LOG_CRC);
    (void)sqlite3_bind_int64(statement, 1, (int64_t)seq);
    int rc = sqlite3_step(statement), result = 0;
    if (rc == SQLITE_ROW)
        *ret_crc = (uint32_t)sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE)
        result = error_set(error, ERROR_CORRUPT, "table log: record %" PRIu64 " is missing", seq);
    else
        result = store_db_error(store, rc, "table log", error);
    (void)sqlite3_reset(statement);
    return result;
}

/* Sets *ret_seq to the number that the statement gives, 0 if the table is empty. */
static int edge(struct store *store, enum store_statement which, int64_t *ret_seq, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, which);
    int rc = sqlite3_step(statement), result = 0;
    if (rc == SQLITE_ROW)
        *ret_seq = sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE)
        *ret_seq = 0;
    else
        result = store_db_error(store, rc, "table log", error);
    (void)sqlite3_reset(statement);
    return result;
}

int store_log_load(struct store *store, uint32_t records, struct error *error)
{
    uint64_t base = store->state.base_seq;
    int64_t first, last;
    int rc = edge(store, STMT_LOG_FIRST, &first, error);
    if (rc == 0)
        rc = edge(store, STMT_LOG_LAST, &last, error);
    if (rc < 0)
        return rc;
    store->last_seq = base;
    store->last_crc = store->state.base_crc;
    if (first == 0 && last == 0)
        return 0;
    if (first != (int64_t)base + 1 || last < first)
        return error_set(error, ERROR_CORRUPT,
                         "table log: it should begin with record %" PRIu64 ", but holds %" PRId64
                         " to %" PRId64,
                         base + 1, first, last);
    store->last_seq = (uint64_t)last;
    uint64_t from = (uint64_t)last - base > records ? (uint64_t)last - records + 1 : base + 1;
    if (records == 0)
        return store_log_crc(store, (uint64_t)last, &store->last_crc, error);
    struct store_cursor *cursor;
    rc = store_read(store, from, &cursor, error);
    if (rc < 0)
        return rc;
    struct store_record record;
    while ((rc = store_next(cursor, &record, error)) > 0)
        ;
    store->last_crc = cursor->previous_crc;
    store_cursor_free(cursor);
    return rc;
}

int store_view_begin(struct store *store, struct error *error)
{
    int rc = store_db_read_begin(store, error);
    if (rc < 0 || !store->options.read_only || store->read_depth > 1)
        return rc;
    rc = store_state_load(store, &store->state, error);
    if (rc == 0)
        rc = store_log_load(store, 0, error);
    if (rc < 0)
        store_db_read_end(store);
    return rc;
}

static int cursor_open(struct store *store, uint64_t from_seq, struct store_cursor *cursor,
                       struct error *error)
{
    uint64_t first = store->state.base_seq + 1, end = store->last_seq + 1;
    if (from_seq < first || from_seq > end)
        return error_set(error, ERROR_NOT_FOUND,
                         "record %" PRIu64 " is not in the log, which holds %" PRIu64 " to %" PRIu64,
                         from_seq, first, store->last_seq);
    cursor->store = store;
    cursor->previous_seq = from_seq - 1;
    cursor->end_seq = store->last_seq;
    int rc = store_log_crc(store, from_seq - 1, &cursor->previous_crc, error);
    if (rc < 0)
        return rc;
    rc = sqlite3_prepare_v2(store->db,
                            "SELECT seq, stamp_ns, crc, bytes FROM log WHERE seq >= ?1 ORDER BY seq", -1,
                            &cursor->statement, NULL);
    if (rc == SQLITE_OK)
        rc = sqlite3_bind_int64(cursor->statement, 1, (int64_t)from_seq);
    return rc == SQLITE_OK ? 0 : store_db_error(store, rc, "reading the log", error);
}

int store_read(struct store *store, uint64_t from_seq, struct store_cursor **ret_cursor, struct error *error)
{
    int rc = store_view_begin(store, error);
    if (rc < 0)
        return rc;
    struct store_cursor *cursor = mem_alloc(sizeof *cursor);
    rc = cursor_open(store, from_seq, cursor, error);
    if (rc < 0) {
        (void)sqlite3_finalize(cursor->statement);
        mem_free(cursor);
        store_db_read_end(store);
        return rc;
    }
    store->cursors++;
    *ret_cursor = cursor;
    return 0;
}

/* Verifies the statement's current row, and decrypts it. */
static int take_row(struct store_cursor *cursor, struct store_record *ret_record)
{
    int64_t seq = sqlite3_column_int64(cursor->statement, 0);
    uint64_t expected = cursor->previous_seq + 1;
    if (seq < 0 || (uint64_t)seq != expected)
        return error_set(&cursor->error, ERROR_CORRUPT,
                         "table log: record %" PRIu64 " is missing (the next one is %" PRId64 ")", expected,
                         seq);
    struct store_record record = {
        .seq = expected,
        .stamp_ns = sqlite3_column_int64(cursor->statement, 1),
        .bytes.data = sqlite3_column_blob(cursor->statement, 3),
        .bytes.len = (size_t)sqlite3_column_bytes(cursor->statement, 3),
    };
    uint32_t crc = store_record_crc(cursor->previous_crc, record.seq, record.stamp_ns, record.bytes);
    if (sqlite3_column_int64(cursor->statement, 2) != crc)
        return error_set(&cursor->error, ERROR_CORRUPT,
                         "table log: record %" PRIu64
                         ": its checksum, or that of the record before it, differs",
                         expected);
    struct store_seal_place place = {STORE_SEAL_RECORD, record.seq, (uint64_t)record.stamp_ns};
    int rc = store_unseal(cursor->store->options.keys, &place, record.bytes, &cursor->plain, &record.bytes,
                          &cursor->error);
    if (rc < 0)
        return rc;
    cursor->previous_seq = record.seq;
    cursor->previous_crc = crc;
    *ret_record = record;
    return 1;
}

int store_next(struct store_cursor *cursor, struct store_record *ret_record, struct error *error)
{
    if (cursor->failed == 0) {
        int rc = sqlite3_step(cursor->statement);
        int result = 0;
        if (rc == SQLITE_ROW)
            result = take_row(cursor, ret_record);
        else if (rc != SQLITE_DONE) {
            result = store_db_error(cursor->store, rc, "table log", &cursor->error);
            (void)error_wrap(&cursor->error, "behind record %" PRIu64, cursor->previous_seq);
        } else if (cursor->previous_seq < cursor->end_seq)
            result = error_set(&cursor->error, ERROR_CORRUPT,
                               "table log: records %" PRIu64 " to %" PRIu64 " are missing",
                               cursor->previous_seq + 1, cursor->end_seq);
        if (result >= 0)
            return result;
        cursor->failed = result;
    }
    return error_set(error, (enum error_code)cursor->failed, "%s", cursor->error.text);
}

void store_cursor_free(struct store_cursor *cursor)
{
    if (!cursor)
        return;
    CHECK(cursor->store->cursors > 0);
    cursor->store->cursors--;
    (void)sqlite3_finalize(cursor->statement);
    store_db_read_end(cursor->store);
    buf_done(&cursor->plain);
    mem_free(cursor);
}
