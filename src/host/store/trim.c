#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/check.h"

/* Limits of one slice; together about a millisecond of work. */
enum { SLICE_RECORDS = 256, SLICE_BYTES = 256 << 10, SLICE_PAGES = 64, FREE_PAGES_KEPT = 256 };

int store_size(struct store *store, struct store_size *ret_size, struct error *error)
{
    int64_t pages, free_pages;
    int rc = store_db_number(store, "PRAGMA page_count", &pages, error);
    if (rc == 0)
        rc = store_db_number(store, "PRAGMA freelist_count", &free_pages, error);
    if (rc < 0)
        return rc;
    if (free_pages < 0 || free_pages > pages)
        return error_set(error, ERROR_CORRUPT,
                         "the file's header is damaged: %" PRId64 " of %" PRId64 " pages free", free_pages,
                         pages);
    *ret_size = (struct store_size){(uint64_t)pages, (uint64_t)free_pages};
    return 0;
}

/* Counts the WAL at its largest size, so that both files together stay below the limit. */
bool store_size_over(const struct store *store, const struct store_size *size)
{
    uint64_t used = (size->pages - size->free_pages) * STORE_PAGE_BYTES;
    return store->options.bytes_max != 0 && used + store->options.wal_bytes > store->options.bytes_max;
}

/* --- records --- */

/* Sets *ret_seq to the record of the oldest kept snapshot, 0 if there is none. */
static int oldest_snapshot(struct store *store, uint64_t *ret_seq, struct error *error)
{
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    if (rc < 0)
        return rc;
    *ret_seq = 0;
    for (size_t i = 0; i < rows.len; i++)
        if (rows.items[i].valid)
            *ret_seq = rows.items[i].seq;
    return 0;
}

/* Finds where the log begins after this slice. */
static int find_cut(struct store *store, int64_t keep_after_ns, uint64_t snapshot_seq,
                    struct store_state *cut, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_LOG_LIST);
    (void)sqlite3_bind_int64(statement, 1, SLICE_RECORDS);
    uint64_t bytes = 0;
    int rc, result = 0;
    while (bytes < SLICE_BYTES && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        int64_t seq = sqlite3_column_int64(statement, 0);
        if (seq != (int64_t)cut->base_seq + 1) {
            result = error_set(error, ERROR_CORRUPT, "table log: record %" PRIu64 " is missing",
                               cut->base_seq + 1);
            break;
        }
        if ((uint64_t)seq > snapshot_seq || sqlite3_column_int64(statement, 1) >= keep_after_ns)
            break;
        cut->base_seq = (uint64_t)seq;
        cut->base_crc = (uint32_t)sqlite3_column_int64(statement, 2);
        bytes += (uint64_t)sqlite3_column_int64(statement, 3);
        rc = SQLITE_DONE;
    }
    if (result == 0 && rc != SQLITE_DONE && rc != SQLITE_ROW)
        result = store_db_error(store, rc, "table log", error);
    (void)sqlite3_reset(statement);
    return result;
}

static int delete_records(struct store *store, const struct store_state *cut, struct error *error)
{
    int rc = store_db_begin(store, false, error);
    if (rc < 0)
        return rc;
    sqlite3_stmt *statement = store_db_get(store, STMT_LOG_DELETE);
    (void)sqlite3_bind_int64(statement, 1, (int64_t)cut->base_seq);
    rc = store_db_run(statement);
    if (rc == SQLITE_DONE)
        rc = store_state_save(store, cut);
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "trimming the log", error);
    rc = store_db_commit(store, "trimming the log", error);
    if (rc == 0)
        store->state = *cut;
    return rc < 0 ? rc : 1;
}

/* Returns 1 if records were deleted. */
static int trim_records(struct store *store, int64_t keep_after_ns, const struct store_size *size,
                        struct error *error)
{
    uint64_t snapshot_seq;
    struct store_state cut = store->state;
    int rc = oldest_snapshot(store, &snapshot_seq, error);
    if (rc < 0 || snapshot_seq <= cut.base_seq)
        return rc;
    /* Open cursors would miss records. */
    if (store->cursors > 0)
        return 0;
    rc = find_cut(store, store_size_over(store, size) ? INT64_MAX : keep_after_ns, snapshot_seq, &cut, error);
    if (rc < 0 || cut.base_seq == store->state.base_seq)
        return rc;
    return delete_records(store, &cut, error);
}

int store_begin_behind(struct store *store, uint64_t seq, uint32_t crc, struct error *error)
{
    struct store_state state = store->state;
    if (store->last_seq > 0)
        return error_set(error, ERROR_EXISTS, "the log holds records up to %" PRIu64, store->last_seq);
    CHECK(seq <= INT64_MAX);
    state.base_seq = seq;
    state.base_crc = crc;
    int rc = store_db_begin(store, false, error);
    if (rc < 0)
        return rc;
    int code = store_state_save(store, &state);
    if (code != SQLITE_DONE)
        return store_db_abort(store, code, "beginning the log", error);
    rc = store_db_commit(store, "beginning the log", error);
    if (rc < 0)
        return rc;
    store->state = state;
    store->last_seq = seq;
    store->last_crc = crc;
    return 0;
}

/* --- left-overs of snapshots, free pages --- */

/* Deletes a chunk that belongs to no snapshot. Returns 1 if there was one. */
static int trim_chunk(struct store *store, struct error *error)
{
    if (!store->maybe_orphans)
        return 0;
    int64_t below = store->writer ? (int64_t)store_snapshot_writer_first_chunk(store->writer) : INT64_MAX;
    sqlite3_stmt *statement = store_db_get(store, STMT_CHUNK_ORPHAN);
    (void)sqlite3_bind_int64(statement, 1, below);
    int rc = sqlite3_step(statement);
    int64_t id = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE) {
        int code = store_db_error(store, rc, "table snapshot_chunk", error);
        (void)sqlite3_reset(statement);
        return code;
    }
    (void)sqlite3_reset(statement);
    if (rc == SQLITE_DONE) {
        store->maybe_orphans = false;
        return 0;
    }
    rc = store_db_begin(store, false, error);
    if (rc < 0)
        return rc;
    statement = store_db_get(store, STMT_CHUNK_DELETE);
    (void)sqlite3_bind_int64(statement, 1, id);
    rc = store_db_run(statement);
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "dropping a snapshot", error);
    rc = store_db_commit(store, "dropping a snapshot", error);
    return rc < 0 ? rc : 1;
}

/* Gives free pages back, but keeps those that the log will soon need: an eighth of the pages in use. Returns
 * 1 if pages were given back. */
static int shrink(struct store *store, const struct store_size *size, struct error *error)
{
    uint64_t kept = (size->pages - size->free_pages) / 8;
    bool tight = store->options.bytes_max != 0 &&
                 size->pages * STORE_PAGE_BYTES + store->options.wal_bytes > store->options.bytes_max;
    if (size->free_pages == 0 ||
        (!tight && size->free_pages <= (kept > FREE_PAGES_KEPT ? kept : FREE_PAGES_KEPT)))
        return 0;
    int rc = store_db_begin(store, false, error);
    if (rc < 0)
        return rc;
    char sql[64];
    (void)snprintf(sql, sizeof sql, "PRAGMA incremental_vacuum(%d)", SLICE_PAGES);
    int code = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    if (code != SQLITE_OK)
        return store_db_abort(store, code, "shrinking the file", error);
    rc = store_db_commit(store, "shrinking the file", error);
    return rc < 0 ? rc : 1;
}

int store_trim(struct store *store, int64_t keep_after_ns, struct error *error)
{
    if (store->options.read_only)
        return error_set(error, ERROR_DENIED, "the store is open for reading only");
    struct store_size size;
    int rc = store_size(store, &size, error);
    if (rc == 0)
        rc = trim_records(store, keep_after_ns, &size, error);
    if (rc == 0)
        rc = trim_chunk(store, error);
    if (rc == 0)
        rc = shrink(store, &size, error);
    if (rc >= 0)
        store_db_fold(store, (int)(store->options.wal_bytes / STORE_PAGE_BYTES));
    return rc;
}
