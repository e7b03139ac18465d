#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/check.h"

enum {
    BUSY_MS = 1000,
    SNAPSHOTS_KEEP = 3,
    SNAPSHOTS_KEEP_MAX = 16,
    TAIL_RECORDS = 1024,
    WAL_BYTES = 4 << 20
};

static int note_commit(void *context, sqlite3 *db, const char *name, int frames)
{
    struct store *store = context;
    store->wal_frames = frames;
    store->wal_folded = false;
    return SQLITE_OK;
}

static void fill_options(struct store_options *options)
{
    if (options->snapshots_keep == 0)
        options->snapshots_keep = SNAPSHOTS_KEEP;
    if (options->snapshots_keep > SNAPSHOTS_KEEP_MAX)
        options->snapshots_keep = SNAPSHOTS_KEEP_MAX;
    if (options->tail_records == 0)
        options->tail_records = TAIL_RECORDS;
    if (options->wal_bytes == 0)
        options->wal_bytes = WAL_BYTES;
}

static bool file_exists(const char *vfs_name, const char *path)
{
    sqlite3_vfs *vfs = sqlite3_vfs_find(vfs_name);
    int exists = 0;
    return vfs && vfs->xAccess(vfs, path, SQLITE_ACCESS_EXISTS, &exists) == SQLITE_OK && exists != 0;
}

static int open_database(struct store *store, const char *path, struct error *error)
{
    int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    flags |= store->options.read_only ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
    struct buf plain BUF_CLEANUP = {0};
    buf_printf(&plain, "%s%s", strncmp(path, "file:", 5) == 0 ? "./" : "", path); /* never a URI */
    int rc = sqlite3_open_v2(plain.data, &store->db, flags, store->options.vfs);
    if (rc != SQLITE_OK && store->db)
        return store_db_error(store, rc, "opening", error);
    if (rc != SQLITE_OK)
        return error_set(error, ERROR_IO, "%s", sqlite3_errstr(rc));
    if (!store->options.read_only && sqlite3_db_readonly(store->db, "main") == 1)
        return error_set(error, ERROR_DENIED, "no permission to write to the file");
    /* Until the log has been verified, closing must leave the WAL as evidence. */
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, NULL);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
    (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
    (void)sqlite3_busy_timeout(store->db, BUSY_MS);
    (void)sqlite3_wal_hook(store->db, note_commit, store); /* also turns off SQLite's automatic checkpoints */
    return store_db_exec(store,
                         "PRAGMA synchronous=FULL; PRAGMA cell_size_check=ON; PRAGMA temp_store=MEMORY;"
                         "PRAGMA cache_size=-8192; PRAGMA mmap_size=0",
                         error);
}

/* Checks that the log reaches the newest acknowledged record in FILE-lock, and that the record is the
 * same. */
static int verify_head(struct store *store, struct error *error)
{
    const struct store_lock *lock = &store->lock;
    store->restored = store->last_seq > 0 && (!lock->has_head || store->options.accept_loss);
    if (!lock->has_head || store->options.accept_loss)
        return 0;
    if (lock->head_seq > store->last_seq)
        return error_set(error, ERROR_CORRUPT,
                         "table log: records %" PRIu64 " to %" PRIu64
                         " are missing: they were acknowledged (%s), but the log ends before them",
                         store->last_seq + 1, lock->head_seq, lock->path);
    if (lock->head_seq <= store->state.base_seq)
        return 0;
    uint32_t crc;
    int rc = store_log_crc(store, lock->head_seq, &crc, error);
    if (rc == 0 && crc != lock->head_crc)
        rc = error_set(error, ERROR_CORRUPT,
                       "table log: record %" PRIu64 " is not the one that was acknowledged (%s)",
                       lock->head_seq, lock->path);
    return rc;
}

/* There is a snapshot of a record that the log has lost, so the state survives without the log. With
 * accept_loss the log begins again after that record. */
static int restart_log(struct store *store, const struct store_snapshot_row *row, struct error *error)
{
    int rc = store_db_begin(store, true, error);
    if (rc < 0)
        return rc;
    struct store_state state = store->state;
    state.base_seq = row->seq;
    state.base_crc = row->log_crc;
    sqlite3_stmt *statement = store_db_get(store, STMT_LOG_DELETE);
    (void)sqlite3_bind_int64(statement, 1, INT64_MAX);
    rc = store_db_run(statement);
    if (rc == SQLITE_DONE)
        rc = store_state_save(store, &state);
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "beginning the log anew", error);
    rc = store_db_commit(store, "beginning the log anew", error);
    if (rc < 0)
        return rc;
    store->state = state;
    store->last_seq = row->seq;
    store->last_crc = row->log_crc;
    return 0;
}

static int verify_snapshots(struct store *store, struct error *error)
{
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    for (size_t i = 0; rc == 0 && i < rows.len; i++) {
        const struct store_snapshot_row *row = &rows.items[i];
        if (!row->valid || row->seq <= store->last_seq)
            continue;
        if (store->options.accept_loss)
            rc = restart_log(store, row, error);
        else
            rc = error_set(error, ERROR_CORRUPT,
                           "table log: it ends with record %" PRIu64
                           ", but there is a snapshot of record %" PRIu64,
                           store->last_seq, row->seq);
    }
    return rc;
}

static int create(struct store *store, struct error *error)
{
    store->lock.has_head = false;
    store_lock_head(&store->lock, 0, 0);
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "PRAGMA page_size=%d; PRAGMA auto_vacuum=INCREMENTAL; PRAGMA journal_mode=WAL",
                   STORE_PAGE_BYTES);
    int rc = store_db_exec(store, sql, error);
    return rc < 0 ? rc : store_schema_create(store, error);
}

/* Empties the WAL, so that later it holds only what this process wrote. Checks that SQLite's idea of the
 * file's length is correct: otherwise it would write over pages in use. */
static int settle(struct store *store, struct error *error)
{
    char sql[128];
    (void)snprintf(sql, sizeof sql,
                   "PRAGMA journal_mode=WAL; PRAGMA secure_delete=OFF; PRAGMA journal_size_limit=%" PRIu32,
                   store->options.wal_bytes);
    int rc = store_db_exec(store, sql, error);
    if (rc < 0)
        return rc;
    int code = sqlite3_wal_checkpoint_v2(store->db, "main", SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL);
    if ((code & 0xff) == SQLITE_BUSY ||
        (code & 0xff) == SQLITE_FULL) /* a reader or a full disk: it can wait */
        return 0;
    if (code != SQLITE_OK)
        return store_db_error(store, code, "folding the WAL into the file", error);
    int64_t pages, page_bytes;
    rc = store_db_number(store, "PRAGMA page_count", &pages, error);
    if (rc == 0)
        rc = store_db_number(store, "PRAGMA page_size", &page_bytes, error);
    if (rc < 0)
        return rc;
    sqlite3_file *file = NULL;
    sqlite3_int64 size = 0;
    code = sqlite3_file_control(store->db, "main", SQLITE_FCNTL_FILE_POINTER, &file);
    if (code != SQLITE_OK || (code = file->pMethods->xFileSize(file, &size)) != SQLITE_OK)
        return store_db_error(store, code, "the file's size", error);
    if (size != pages * page_bytes)
        return error_set(error, ERROR_CORRUPT,
                         "the file's header is damaged: it tells of %" PRId64 " bytes, the file has %" PRId64,
                         pages * page_bytes, (int64_t)size);
    return 0;
}

/* Verifies what opening has to verify, before anything is written. */
static int verify_on_open(struct store *store, struct error *error)
{
    int rc = store_schema_verify(store, error);
    if (rc == 0)
        rc = store_db_prepare(store, error);
    if (rc == 0)
        rc = store_state_load(store, &store->state, error);
    if (rc == 0)
        rc = store_log_load(store, store->options.read_only ? 0 : store->options.tail_records, error);
    if (rc < 0 || store->options.read_only)
        return rc;
    rc = verify_head(store, error);
    if (rc == 0)
        rc = store_meta_verify(store, NULL, NULL, error);
    if (rc == 0)
        rc = verify_snapshots(store, error);
    return rc;
}

static int open_store(struct store *store, const char *path, struct error *error)
{
    int rc = store->options.read_only ? store_lock_peek(&store->lock, path, error)
                                      : store_lock_take(&store->lock, path, error);
    if (rc < 0)
        return rc;
    bool existed = file_exists(store->options.vfs, path);
    if (!existed && store->options.read_only)
        return error_set(error, ERROR_NOT_FOUND, "there is no such file");
    rc = open_database(store, path, error);
    int64_t objects = 0, application = 0;
    if (rc == 0)
        rc = store_db_number(store, "SELECT count(*) FROM sqlite_schema", &objects, error);
    if (rc == 0)
        rc = store_db_number(store, "PRAGMA application_id", &application, error);
    if (rc < 0)
        return rc;
    if (!store->options.read_only &&
        /* an unknown version in the first page makes it read-only */
        sqlite3_db_readonly(store->db, "main") == 1)
        return error_set(error, ERROR_CORRUPT, "the file's header is damaged");
    if (objects == 0 && application == 0) { /* the file is new, or its creation was interrupted */
        bool was_used = existed && store->lock.has_head && store->lock.head_seq > 0;
        if (store->options.read_only || (was_used && !store->options.accept_loss))
            return error_set(error, ERROR_CORRUPT, "the file is empty");
        rc = create(store, error);
        if (rc < 0)
            return rc;
    }
    rc = verify_on_open(store, error);
    if (rc < 0 || store->options.read_only)
        return rc;
    rc = settle(store, error);
    if (rc < 0)
        return rc;
    /* otherwise the boot record, which marks the log as restored, writes the head */
    if (store->lock.has_head || !store->restored)
        store_lock_head(&store->lock, store->last_seq, store->last_crc);
    store->maybe_orphans = true;
    return 0;
}

static void free_store(struct store *store)
{
    store_db_finalize(store);
    if (store->db) {
        int rc = sqlite3_close(store->db);
        CHECK(rc == SQLITE_OK); /* otherwise a statement was not finalized */
    }
    store_lock_release(&store->lock); /* last: SQLite has folded its WAL by now */
    mem_free(store);
}

int store_open(const char *path, const struct store_options *options, struct store **ret_store,
               struct error *error)
{
    struct store *store = mem_alloc(sizeof *store);
    store->lock.fd = -1;
    if (options)
        store->options = *options;
    fill_options(&store->options);
    int rc = open_store(store, path, error);
    if (rc < 0) {
        free_store(store);
        return error_wrap(error, "%s", path), rc;
    }
    *ret_store = store;
    return 0;
}

void store_close(struct store *store)
{
    if (!store)
        return;
    CHECK(store->cursors == 0 && store->writer == NULL && !store->in_write);
    if (!store->broken && !store->options.read_only) /* the last close folds and removes the WAL */
        (void)sqlite3_db_config(store->db, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0, NULL);
    free_store(store);
}

static int newest_snapshot(struct store *store, struct store_stats *stats, struct error *error)
{
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    for (size_t i = 0; rc == 0 && i < rows.len; i++) {
        if (!rows.items[i].valid)
            continue;
        if (stats->snapshots++ == 0) {
            stats->snapshot_seq = rows.items[i].seq;
            stats->snapshot_stamp_ns = rows.items[i].stamp_ns;
            stats->snapshot_bytes = rows.items[i].packed_bytes;
        }
    }
    return rc;
}

static int stats_of_view(struct store *store, struct store_stats *ret_stats, struct error *error)
{
    struct store_stats stats = {
        .first_seq = store_first_seq(store),
        .last_seq = store->last_seq,
        .bytes_max = store->options.bytes_max,
        .appended_records = store->appended_records,
        .appended_bytes = store->appended_bytes,
        .commits = store->commits,
        .checkpoints = store->checkpoints,
        .full_errors = store->full_errors,
    };
    struct store_size size;
    int rc = store_size(store, &size, error);
    if (rc == 0)
        rc = newest_snapshot(store, &stats, error);
    if (rc < 0)
        return rc;
    stats.file_bytes = size.pages * STORE_PAGE_BYTES;
    stats.free_bytes = size.free_pages * STORE_PAGE_BYTES;
    stats.wal_bytes = store->wal_folded ? 0 : (uint64_t)store->wal_frames * (STORE_PAGE_BYTES + 24);
    stats.over = store_size_over(store, &size);
    stats.restored = store->restored;
    *ret_stats = stats;
    return 0;
}

int store_stats(struct store *store, struct store_stats *ret_stats, struct error *error)
{
    int rc = store_view_begin(store, error);
    if (rc < 0)
        return rc;
    rc = stats_of_view(store, ret_stats, error);
    store_db_read_end(store);
    return rc;
}
