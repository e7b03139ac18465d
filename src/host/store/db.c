#include "host/store/private.h"

#include <errno.h>
#include <string.h>
#include "base/check.h"

static const char *const statement_sql[STMT_COUNT] = {
    [STMT_BEGIN_READ] = "BEGIN",
    [STMT_BEGIN_WRITE] = "BEGIN IMMEDIATE",
    [STMT_COMMIT] = "COMMIT",
    [STMT_ROLLBACK] = "ROLLBACK",
    [STMT_LOG_INSERT] = "INSERT INTO log(seq, stamp_ns, crc, bytes) VALUES(?1, ?2, ?3, ?4)",
    [STMT_LOG_CRC] = "SELECT crc FROM log WHERE seq = ?1",
    [STMT_LOG_LAST] = "SELECT seq FROM log ORDER BY seq DESC LIMIT 1",
    [STMT_LOG_FIRST] = "SELECT seq FROM log ORDER BY seq LIMIT 1",
    [STMT_LOG_LIST] = "SELECT seq, stamp_ns, crc, length(bytes) FROM log ORDER BY seq LIMIT ?1",
    [STMT_LOG_DELETE] = "DELETE FROM log WHERE seq <= ?1",
    [STMT_STATE_GET] = "SELECT version, base_seq, base_crc, meta_crc, crc FROM state WHERE id = 1",
    [STMT_STATE_SET] = "INSERT OR REPLACE INTO state(id, version, base_seq, base_crc, meta_crc, crc)"
                       " VALUES(1, ?1, ?2, ?3, ?4, ?5)",
    [STMT_META_GET] = "SELECT crc, value FROM meta WHERE key = ?1",
    [STMT_META_SET] = "INSERT OR REPLACE INTO meta(key, crc, value) VALUES(?1, ?2, ?3)",
    [STMT_META_ALL] = "SELECT key, crc, value FROM meta ORDER BY key",
    [STMT_SNAPSHOT_ALL] =
        "SELECT seq, stamp_ns, log_crc, raw_bytes, packed_bytes, first_chunk, chunks, packed_crc,"
        " crc FROM snapshot ORDER BY seq DESC",
    [STMT_SNAPSHOT_INSERT] =
        "INSERT OR REPLACE INTO snapshot(seq, stamp_ns, log_crc, raw_bytes, packed_bytes,"
        " first_chunk, chunks, packed_crc, crc) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
    [STMT_SNAPSHOT_DELETE] = "DELETE FROM snapshot WHERE seq = ?1",
    [STMT_CHUNK_GET] = "SELECT crc, bytes FROM snapshot_chunk WHERE id = ?1",
    [STMT_CHUNK_INSERT] = "INSERT INTO snapshot_chunk(id, crc, bytes) VALUES(?1, ?2, ?3)",
    [STMT_CHUNK_LAST] = "SELECT id FROM snapshot_chunk ORDER BY id DESC LIMIT 1",
    [STMT_CHUNK_ORPHAN] = "SELECT id FROM snapshot_chunk WHERE id < ?1 AND NOT EXISTS (SELECT 1 FROM snapshot"
                          " WHERE id >= first_chunk AND id < first_chunk + chunks) LIMIT 1",
    [STMT_CHUNK_DELETE] = "DELETE FROM snapshot_chunk WHERE id = ?1",
};

/* A write that fails for lack of space leaves nothing behind. A failed sync is different, whatever its
 * reason: the kernel may have dropped the dirty pages. */
static bool is_no_space(int sqlite_code, int errno_value)
{
    if ((sqlite_code & 0xff) == SQLITE_FULL)
        return true;
    bool write = sqlite_code == SQLITE_IOERR_WRITE || sqlite_code == SQLITE_IOERR_SHMSIZE ||
                 sqlite_code == SQLITE_IOERR_SHMMAP;
    return write && (errno_value == ENOSPC || errno_value == EDQUOT);
}

int store_db_error(struct store *store, int sqlite_code, const char *what, struct error *error)
{
    int errno_value = sqlite3_system_errno(store->db);
    const char *text = sqlite3_errmsg(store->db);
    if (is_no_space(sqlite_code, errno_value)) {
        store->full_errors++;
        return error_set(error, ERROR_NO_SPACE, "%s: the disk is full", what);
    }
    switch (sqlite_code & 0xff) {
    case SQLITE_IOERR:
    case SQLITE_CANTOPEN:
        if (errno_value != 0)
            return error_set(error, ERROR_IO, "%s: %s: %s", what, text, strerror(errno_value));
        return error_set(error, ERROR_IO, "%s: %s", what, text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
    case SQLITE_PROTOCOL:
        return error_set(error, ERROR_UNAVAILABLE, "%s: another program holds the file: %s", what, text);
    case SQLITE_READONLY:
    case SQLITE_PERM:
    case SQLITE_AUTH:
        return error_set(error, ERROR_DENIED, "%s: %s", what, text);
    case SQLITE_TOOBIG:
        return error_set(error, ERROR_LIMIT, "%s: %s", what, text);
    case SQLITE_NOMEM:
        CHECK(!"out of memory");
        break;
    default:
        break;
    }
    /* SQLITE_CORRUPT and SQLITE_NOTADB, but also "no such column", a duplicate key or a wrong type: only we
     * write the file, so each of them means that its contents were changed. */
    return error_set(error, ERROR_CORRUPT, "%s: %s", what, text);
}

int store_db_prepare(struct store *store, struct error *error)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        int rc = sqlite3_prepare_v3(store->db, statement_sql[i], -1, SQLITE_PREPARE_PERSISTENT,
                                    &store->statements[i], NULL);
        if (rc != SQLITE_OK)
            return store_db_error(store, rc, "preparing the store's statements", error);
    }
    return 0;
}

void store_db_finalize(struct store *store)
{
    for (int i = 0; i < STMT_COUNT; i++) {
        (void)sqlite3_finalize(store->statements[i]);
        store->statements[i] = NULL;
    }
}

int store_db_exec(struct store *store, const char *sql, struct error *error)
{
    int rc = sqlite3_exec(store->db, sql, NULL, NULL, NULL);
    return rc == SQLITE_OK ? 0 : store_db_error(store, rc, sql, error);
}

int store_db_number(struct store *store, const char *sql, int64_t *ret_value, struct error *error)
{
    sqlite3_stmt *statement;
    int rc = sqlite3_prepare_v2(store->db, sql, -1, &statement, NULL);
    if (rc != SQLITE_OK)
        return store_db_error(store, rc, sql, error);
    int result = 0;
    rc = sqlite3_step(statement);
    if (rc == SQLITE_ROW)
        *ret_value = sqlite3_column_int64(statement, 0);
    else if (rc == SQLITE_DONE)
        result = error_set(error, ERROR_CORRUPT, "%s: no answer", sql);
    else
        result = store_db_error(store, rc, sql, error);
    (void)sqlite3_finalize(statement);
    return result;
}

sqlite3_stmt *store_db_get(struct store *store, enum store_statement which)
{
    sqlite3_stmt *statement = store->statements[which];
    CHECK(statement != NULL);
    (void)sqlite3_reset(statement);
    (void)sqlite3_clear_bindings(statement);
    return statement;
}

int store_db_run(sqlite3_stmt *statement)
{
    int rc = sqlite3_step(statement);
    CHECK(rc != SQLITE_ROW);
    int reset = sqlite3_reset(statement); /* returns the code of the failure again, or a later one */
    return rc == SQLITE_DONE && reset != SQLITE_OK ? reset : rc;
}

static void set_synchronous(struct store *store, bool low)
{
    if (store->synchronous_low == low)
        return;
    /* Only sets a field of the connection: the one possible failure is lack of memory. */
    int rc = sqlite3_exec(store->db, low ? "PRAGMA synchronous=NORMAL" : "PRAGMA synchronous=FULL", NULL,
                          NULL, NULL);
    CHECK(rc == SQLITE_OK);
    store->synchronous_low = low;
}

int store_db_begin(struct store *store, bool durable, struct error *error)
{
    CHECK(!store->in_write);
    if (store->options.read_only)
        return error_set(error, ERROR_DENIED, "the store is open for reading only");
    if (store->broken)
        return error_set(error, ERROR_IO,
                         "an earlier write failed, so what is durable is unknown: open the store anew");
    set_synchronous(store, !durable);
    int rc = store_db_run(store_db_get(store, STMT_BEGIN_WRITE));
    if (rc != SQLITE_DONE) {
        int code = store_db_error(store, rc, "beginning a transaction", error);
        store->broken = store->broken || code == ERROR_IO;
        return code;
    }
    store->in_write = true;
    return 0;
}

void store_db_rollback(struct store *store)
{
    CHECK(store->in_write);
    store->in_write = false;
    if (sqlite3_get_autocommit(store->db)) /* SQLite has rolled back by itself: full disk, I/O error */
        return;
    if (store_db_run(store_db_get(store, STMT_ROLLBACK)) != SQLITE_DONE)
        store->broken = true;
}

int store_db_abort(struct store *store, int sqlite_code, const char *what, struct error *error)
{
    int code = store_db_error(store, sqlite_code, what, error);
    store_db_rollback(store);
    if (code == ERROR_IO)
        store->broken = true;
    return code;
}

int store_db_commit(struct store *store, const char *what, struct error *error)
{
    CHECK(store->in_write);
    int rc = store_db_run(store_db_get(store, STMT_COMMIT));
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, what, error);
    store->in_write = false;
    store->commits++;
    return 0;
}

void store_db_fold(struct store *store, int frames)
{
    if (store->wal_frames < frames || store->wal_folded || store->broken || store->options.read_only)
        return;
    int wal_frames = 0, done_frames = 0;
    set_synchronous(store, false);
    int rc =
        sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_PASSIVE, &wal_frames, &done_frames);
    if (rc == SQLITE_OK) {
        store->checkpoints++;
        store->wal_folded = wal_frames == done_frames; /* otherwise a reader is in the way: next time */
    } else if ((rc & 0xff) == SQLITE_IOERR && !is_no_space(rc, sqlite3_system_errno(store->db))) {
        store->broken = true;
    } else if (is_no_space(rc, sqlite3_system_errno(store->db))) {
        store->full_errors++;
    }
}

int store_db_read_begin(struct store *store, struct error *error)
{
    if (!store->options.read_only || store->read_depth++ > 0)
        return 0;
    int rc = store_db_run(store_db_get(store, STMT_BEGIN_READ));
    if (rc == SQLITE_DONE)
        return 0;
    store->read_depth--;
    return store_db_error(store, rc, "beginning to read", error);
}

void store_db_read_end(struct store *store)
{
    if (!store->options.read_only)
        return;
    CHECK(store->read_depth > 0);
    if (--store->read_depth == 0)
        (void)store_db_run(store_db_get(store, STMT_COMMIT));
}
