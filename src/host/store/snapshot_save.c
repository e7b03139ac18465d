#include "host/store/private.h"

#include <inttypes.h>
#include "base/arena.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "host/store/pack.h"

struct store_snapshot_writer {
    struct store *store;
    struct store_packer packer;
    struct store_snapshot_row row; /* grows with every chunk; written last */
};

uint64_t store_snapshot_writer_first_chunk(const struct store_snapshot_writer *writer)
{
    return writer->row.first_chunk;
}

static int next_chunk_id(struct store *store, uint64_t *ret_id, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_CHUNK_LAST);
    int rc = sqlite3_step(statement), result = 0;
    int64_t last = rc == SQLITE_ROW ? sqlite3_column_int64(statement, 0) : 0;
    if (rc != SQLITE_ROW && rc != SQLITE_DONE)
        result = store_db_error(store, rc, "table snapshot_chunk", error);
    else if (last < 0 || last > INT64_MAX / 2)
        result = error_set(error, ERROR_CORRUPT, "table snapshot_chunk: chunk %" PRId64, last);
    else
        *ret_id = (uint64_t)last + 1;
    (void)sqlite3_reset(statement);
    return result;
}

static int check_place(struct store *store, uint64_t seq, struct str bytes, struct error *error)
{
    if (bytes.len > STORE_SNAPSHOT_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "a snapshot of %zu bytes, the limit is %d", bytes.len,
                         (int)STORE_SNAPSHOT_BYTES_MAX);
    if (seq < store->state.base_seq || seq > store->last_seq)
        return error_set(error, ERROR_INVALID,
                         "a snapshot behind record %" PRIu64 ", but the log holds %" PRIu64 " to %" PRIu64,
                         seq, store->state.base_seq + 1, store->last_seq);
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    for (size_t i = 0; rc == 0 && i < rows.len; i++) {
        if (rows.items[i].valid && rows.items[i].seq >= seq)
            rc = error_set(error, ERROR_INVALID,
                           "a snapshot behind record %" PRIu64 ", but there is one behind %" PRIu64, seq,
                           rows.items[i].seq);
    }
    return rc;
}

int store_snapshot_begin(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                         struct store_snapshot_writer **ret_writer, struct error *error)
{
    CHECK(store->writer == NULL);
    struct store_snapshot_row row = {.seq = seq, .stamp_ns = stamp_ns, .raw_bytes = bytes.len};
    int rc = check_place(store, seq, bytes, error);
    if (rc == 0)
        rc = store_log_crc(store, seq, &row.log_crc, error);
    if (rc == 0)
        rc = next_chunk_id(store, &row.first_chunk, error);
    if (rc < 0)
        return error_wrap(error, "saving a snapshot");
    row.packed_crc = store_chunk_crc_first(seq);
    struct store_snapshot_writer *writer = mem_alloc(sizeof *writer);
    writer->store = store;
    writer->row = row;
    store_packer_begin(&writer->packer, bytes);
    store->writer = writer;
    *ret_writer = writer;
    return 0;
}

/* Writes the complete chunks of the packed bytes, and at the end also the rest. Not synced: the row that
 * makes the chunks visible is. */
static int write_chunks(struct store_snapshot_writer *writer, struct error *error)
{
    struct store *store = writer->store;
    struct store_snapshot_row row = writer->row;
    struct buf sealed BUF_CLEANUP = {0};
    size_t written = 0;
    int rc = store_db_begin(store, false, error);
    if (rc < 0)
        return rc;
    while (writer->packer.packed.len - written >= STORE_CHUNK_BYTES ||
           (writer->packer.all && writer->packer.packed.len > written)) {
        size_t len = writer->packer.packed.len - written;
        len = len < STORE_CHUNK_BYTES ? len : STORE_CHUNK_BYTES;
        struct store_seal_place place = {STORE_SEAL_CHUNK, row.seq, row.chunks};
        struct str stored = store_seal(store->options.keys, &place,
                                       (struct str){writer->packer.packed.data + written, len}, &sealed);
        row.packed_crc = crc32c(row.packed_crc, stored.data, stored.len);
        sqlite3_stmt *statement = store_db_get(store, STMT_CHUNK_INSERT);
        (void)sqlite3_bind_int64(statement, 1, (int64_t)(row.first_chunk + row.chunks));
        (void)sqlite3_bind_int64(statement, 2, row.packed_crc);
        (void)sqlite3_bind_blob64(statement, 3, stored.data, stored.len, SQLITE_STATIC);
        rc = store_db_run(statement);
        (void)sqlite3_clear_bindings(statement);
        if (rc != SQLITE_DONE)
            return store_db_abort(store, rc, "saving a snapshot", error);
        written += len;
        row.chunks++;
        row.packed_bytes += stored.len;
    }
    rc = store_db_commit(store, "saving a snapshot", error);
    if (rc < 0)
        return rc;
    writer->row = row;
    buf_drop_front(&writer->packer.packed, written);
    return 0;
}

static int drop_old_rows(struct store *store, struct error *error)
{
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    uint32_t kept = 1; /* counts the new snapshot */
    for (size_t i = 0; rc == 0 && i < rows.len; i++) {
        if (rows.items[i].valid && kept < store->options.snapshots_keep) {
            kept++;
            continue;
        }
        sqlite3_stmt *statement = store_db_get(store, STMT_SNAPSHOT_DELETE);
        (void)sqlite3_bind_int64(statement, 1, (int64_t)rows.items[i].seq);
        int step = store_db_run(statement);
        if (step != SQLITE_DONE)
            rc = store_db_error(store, step, "dropping an old snapshot", error);
    }
    return rc;
}

static int insert_row(struct store *store, const struct store_snapshot_row *row)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_SNAPSHOT_INSERT);
    (void)sqlite3_bind_int64(statement, 1, (int64_t)row->seq);
    (void)sqlite3_bind_int64(statement, 2, row->stamp_ns);
    (void)sqlite3_bind_int64(statement, 3, row->log_crc);
    (void)sqlite3_bind_int64(statement, 4, (int64_t)row->raw_bytes);
    (void)sqlite3_bind_int64(statement, 5, (int64_t)row->packed_bytes);
    (void)sqlite3_bind_int64(statement, 6, (int64_t)row->first_chunk);
    (void)sqlite3_bind_int64(statement, 7, (int64_t)row->chunks);
    (void)sqlite3_bind_int64(statement, 8, row->packed_crc);
    (void)sqlite3_bind_int64(statement, 9, store_snapshot_row_crc(row));
    return store_db_run(statement);
}

static int publish(struct store_snapshot_writer *writer, struct error *error)
{
    struct store *store = writer->store;
    int rc = store_db_begin(store, true, error);
    if (rc < 0)
        return rc;
    rc = drop_old_rows(store, error);
    if (rc < 0) {
        store_db_rollback(store);
        store->broken = store->broken || rc == ERROR_IO;
        return rc;
    }
    rc = insert_row(store, &writer->row);
    if (rc != SQLITE_DONE)
        return store_db_abort(store, rc, "saving a snapshot", error);
    rc = store_db_commit(store, "saving a snapshot", error);
    if (rc < 0)
        return rc;
    store->maybe_orphans = true;
    store->writer = NULL; /* the caller frees the writer */
    return 0;
}

int store_snapshot_step(struct store_snapshot_writer *writer, struct error *error)
{
    CHECK(writer->store->writer == writer);
    if (!writer->packer.all && writer->packer.packed.len < STORE_CHUNK_BYTES)
        store_packer_step(&writer->packer);
    bool write = writer->packer.packed.len >= STORE_CHUNK_BYTES ||
                 (writer->packer.all && writer->packer.packed.len > 0);
    int rc = 0;
    if (write)
        rc = write_chunks(writer, error);
    else if (writer->packer.all)
        rc = publish(writer, error);
    if (rc < 0)
        return rc;
    store_db_fold(writer->store, (int)(writer->store->options.wal_bytes / STORE_PAGE_BYTES));
    return writer->store->writer == writer ? 1 : 0;
}

void store_snapshot_writer_free(struct store_snapshot_writer *writer)
{
    if (!writer)
        return;
    if (writer->store->writer == writer) {
        writer->store->writer = NULL;
        writer->store->maybe_orphans = true;
    }
    store_packer_done(&writer->packer);
    mem_free(writer);
}

int store_snapshot_save(struct store *store, uint64_t seq, int64_t stamp_ns, struct str bytes,
                        struct error *error)
{
    struct store_snapshot_writer *writer;
    int rc = store_snapshot_begin(store, seq, stamp_ns, bytes, &writer, error);
    if (rc < 0)
        return rc;
    while ((rc = store_snapshot_step(writer, error)) > 0)
        ;
    store_snapshot_writer_free(writer);
    return rc;
}
