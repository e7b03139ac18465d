#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>

struct verification {
    struct store *store;
    store_report *report;
    void *context;
    struct store_verify_result result;
    struct error first;
};

/* Records a problem; also serves as the report function of store_meta_verify(). */
static void note(void *context, const struct store_problem *problem)
{
    struct verification *verification = context;
    if (verification->result.problems++ == 0)
        (void)error_set(&verification->first, ERROR_CORRUPT, "%s", problem->text);
    if (verification->report)
        verification->report(verification->context, problem);
}

static void __attribute__((format(printf, 4, 5)))
found(struct verification *verification, const char *table, uint64_t seq, const char *format, ...)
{
    char text[ERROR_TEXT_MAX];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(text, sizeof text, format, args);
    va_end(args);
    note(verification, &(struct store_problem){table, seq, text});
}

/* Continues after a damaged record with the stored checksum, so that one damage is reported once. */
static void verify_row(struct verification *verification, sqlite3_stmt *statement, uint64_t *expected,
                       uint32_t *crc)
{
    uint64_t seq = (uint64_t)sqlite3_column_int64(statement, 0);
    struct str bytes = {sqlite3_column_blob(statement, 3), (size_t)sqlite3_column_bytes(statement, 3)};
    int64_t stored = sqlite3_column_int64(statement, 2);
    if (seq != *expected) {
        if (seq == *expected + 1)
            found(verification, "log", *expected, "table log: record %" PRIu64 " is missing", *expected);
        else
            found(verification, "log", *expected, "table log: records %" PRIu64 " to %" PRIu64 " are missing",
                  *expected, seq - 1);
    } else if (stored != store_record_crc(*crc, seq, sqlite3_column_int64(statement, 1), bytes)) {
        found(verification, "log", seq,
              "table log: record %" PRIu64 ": its checksum, or that of the record before it, differs", seq);
    }
    *crc = (uint32_t)stored;
    *expected = seq + 1;
    verification->result.records++;
}

static void verify_log(struct verification *verification)
{
    struct store *store = verification->store;
    uint64_t expected = store->state.base_seq + 1;
    uint32_t crc = store->state.base_crc;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(store->db, "SELECT seq, stamp_ns, crc, bytes FROM log ORDER BY seq", -1,
                                &statement, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        if (rc == SQLITE_ROW)
            verify_row(verification, statement, &expected, &crc);
    }
    if (rc != SQLITE_DONE)
        found(verification, "log", expected, "table log: cannot be read from record %" PRIu64 " on: %s",
              expected, sqlite3_errmsg(store->db));
    (void)sqlite3_finalize(statement);
    uint64_t last = store->last_seq;
    if (store->lock.has_head && store->lock.head_seq > last)
        last = store->lock.head_seq;
    if (rc == SQLITE_DONE && expected <= last)
        found(verification, "log", expected,
              "table log: records %" PRIu64 " to %" PRIu64
              " are missing: they were acknowledged, but the log ends before"
              " them",
              expected, last);
}

static void verify_snapshots(struct verification *verification)
{
    struct store_snapshot_rows rows;
    struct error error;
    if (store_snapshot_rows(verification->store, &rows, &error) < 0) {
        found(verification, "snapshot", 0, "%s", error.text);
        return;
    }
    struct buf bytes BUF_CLEANUP = {0};
    for (size_t i = 0; i < rows.len; i++) {
        const struct store_snapshot_row *row = &rows.items[i];
        verification->result.snapshots++;
        if (store_snapshot_unpack(verification->store, row, &bytes, &error) < 0)
            found(verification, row->valid ? "snapshot_chunk" : "snapshot", row->seq, "%s", error.text);
        else if (row->seq > verification->store->last_seq)
            found(verification, "snapshot", row->seq,
                  "table snapshot: snapshot %" PRIu64 " lies behind the log's end", row->seq);
    }
    if (rows.len == 0 && verification->store->state.base_seq > 0)
        found(verification, "snapshot", 0,
              "table snapshot: there is none, but the log begins behind record %" PRIu64,
              verification->store->state.base_seq);
}

static void verify_file(struct verification *verification)
{
    sqlite3 *db = verification->store->db;
    sqlite3_stmt *statement = NULL;
    int rc = sqlite3_prepare_v2(db, "PRAGMA integrity_check(100)", -1, &statement, NULL);
    while (rc == SQLITE_OK || rc == SQLITE_ROW) {
        rc = sqlite3_step(statement);
        const char *text = rc == SQLITE_ROW ? (const char *)sqlite3_column_text(statement, 0) : NULL;
        if (text && strcmp(text, "ok") != 0)
            found(verification, "file", 0, "file: %s", text);
    }
    if (rc != SQLITE_DONE)
        found(verification, "file", 0, "file: %s", sqlite3_errmsg(db));
    (void)sqlite3_finalize(statement);
}

static void verify_all(struct verification *verification)
{
    struct store *store = verification->store;
    struct error error;
    if (store_state_load(store, &store->state, &error) < 0)
        found(verification, "state", 0, "%s", error.text);
    if (store->options.read_only && store_log_load(store, 0, &error) < 0)
        found(verification, "log", 0, "%s", error.text);
    (void)store_meta_verify(store, note, verification, NULL);
    verify_log(verification);
    verify_snapshots(verification);
    verify_file(verification);
}

int store_verify(struct store *store, store_report *report, void *context,
                 struct store_verify_result *ret_result, struct error *error)
{
    struct verification verification = {.store = store, .report = report, .context = context};
    int rc = store_db_read_begin(store, error);
    if (rc < 0)
        return rc;
    verify_all(&verification);
    store_db_read_end(store);
    *ret_result = verification.result;
    if (verification.result.problems == 0)
        return 0;
    return error_set(error, ERROR_CORRUPT, "%s (%" PRIu64 " problem%s in all)", verification.first.text,
                     verification.result.problems, verification.result.problems == 1 ? "" : "s");
}
