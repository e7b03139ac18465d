#include "host/store/private.h"

#include <inttypes.h>
#include <stdio.h>
#include "base/arena.h"
#include "base/check.h"
#include "base/crc32c.h"
#include "host/store/pack.h"

uint32_t store_snapshot_row_crc(const struct store_snapshot_row *row)
{
    uint8_t bytes[56];
    store_put_u64(bytes, row->seq);
    store_put_u64(bytes + 8, (uint64_t)row->stamp_ns);
    store_put_u32(bytes + 16, row->log_crc);
    store_put_u64(bytes + 20, row->raw_bytes);
    store_put_u64(bytes + 28, row->packed_bytes);
    store_put_u64(bytes + 36, row->first_chunk);
    store_put_u64(bytes + 44, row->chunks);
    store_put_u32(bytes + 52, row->packed_crc);
    return crc32c(0, bytes, sizeof bytes);
}

uint32_t store_chunk_crc_first(uint64_t seq)
{
    uint8_t bytes[8];
    store_put_u64(bytes, seq);
    return crc32c(0, bytes, sizeof bytes);
}

int store_snapshot_rows(struct store *store, struct store_snapshot_rows *ret_rows, struct error *error)
{
    struct store_snapshot_rows rows = {.len = 0};
    sqlite3_stmt *statement = store_db_get(store, STMT_SNAPSHOT_ALL);
    int rc = SQLITE_DONE, result = 0;
    while (rows.len < STORE_SNAPSHOT_ROWS_MAX && (rc = sqlite3_step(statement)) == SQLITE_ROW) {
        struct store_snapshot_row *row = &rows.items[rows.len++];
        row->seq = (uint64_t)sqlite3_column_int64(statement, 0);
        row->stamp_ns = sqlite3_column_int64(statement, 1);
        row->log_crc = (uint32_t)sqlite3_column_int64(statement, 2);
        row->raw_bytes = (uint64_t)sqlite3_column_int64(statement, 3);
        row->packed_bytes = (uint64_t)sqlite3_column_int64(statement, 4);
        row->first_chunk = (uint64_t)sqlite3_column_int64(statement, 5);
        row->chunks = (uint64_t)sqlite3_column_int64(statement, 6);
        row->packed_crc = (uint32_t)sqlite3_column_int64(statement, 7);
        row->crc = (uint32_t)sqlite3_column_int64(statement, 8);
        row->valid = row->crc == store_snapshot_row_crc(row) && row->seq <= INT64_MAX &&
                     row->raw_bytes <= STORE_SNAPSHOT_BYTES_MAX;
    }
    if (rc != SQLITE_DONE && rc != SQLITE_ROW)
        result = store_db_error(store, rc, "table snapshot", error);
    (void)sqlite3_reset(statement);
    if (result == 0)
        *ret_rows = rows;
    return result;
}

struct unpacking {
    struct store_unpacker unpacker;
    uint32_t crc;
    struct buf plain; /* decrypted bytes of a sealed chunk */
};

static int read_chunk(struct store *store, const struct store_snapshot_row *row, uint64_t id,
                      struct unpacking *unpacking, struct error *error)
{
    sqlite3_stmt *statement = store_db_get(store, STMT_CHUNK_GET);
    (void)sqlite3_bind_int64(statement, 1, (int64_t)id);
    int rc = sqlite3_step(statement), result = 0;
    const char *wrong = NULL;
    if (rc == SQLITE_ROW) {
        struct str bytes = {sqlite3_column_blob(statement, 1), (size_t)sqlite3_column_bytes(statement, 1)};
        unpacking->crc = crc32c(unpacking->crc, bytes.data, bytes.len);
        struct store_seal_place place = {STORE_SEAL_CHUNK, row->seq, id - row->first_chunk};
        if (sqlite3_column_int64(statement, 0) != unpacking->crc)
            wrong = "checksum differs";
        else if ((result = store_unseal(store->options.keys, &place, bytes, &unpacking->plain, &bytes,
                                        error)) == 0)
            wrong = store_unpacker_step(&unpacking->unpacker, bytes);
    } else if (rc == SQLITE_DONE) {
        wrong = "it is missing";
    } else {
        result = store_db_error(store, rc, "table snapshot_chunk", error);
    }
    (void)sqlite3_reset(statement);
    if (wrong)
        result = error_set(error, ERROR_CORRUPT,
                           "table snapshot_chunk: snapshot %" PRIu64 ", chunk %" PRIu64 ": %s", row->seq, id,
                           wrong);
    return result;
}

int store_snapshot_unpack(struct store *store, const struct store_snapshot_row *row, struct buf *out,
                          struct error *error)
{
    if (!row->valid)
        return error_set(error, ERROR_CORRUPT, "table snapshot: snapshot %" PRIu64 ": checksum differs",
                         row->seq);
    struct unpacking unpacking = {.crc = store_chunk_crc_first(row->seq)};
    store_unpacker_begin(&unpacking.unpacker, out, row->raw_bytes);
    int rc = 0;
    for (uint64_t i = 0; i < row->chunks && rc == 0; i++)
        rc = read_chunk(store, row, row->first_chunk + i, &unpacking, error);
    bool whole = store_unpacker_done(&unpacking.unpacker) && unpacking.crc == row->packed_crc;
    buf_done(&unpacking.plain);
    if (rc == 0 && !whole)
        rc = error_set(error, ERROR_CORRUPT, "table snapshot: snapshot %" PRIu64 " is not whole", row->seq);
    return rc;
}

/* Loads a snapshot, if the log holds its record or begins after it. */
static int try_load(struct store *store, const struct store_snapshot_row *row, struct buf *bytes,
                    struct error *error)
{
    uint32_t log_crc = 0;
    int rc = 0;
    if (!row->valid)
        return error_set(error, ERROR_CORRUPT, "table snapshot: snapshot %" PRIu64 ": checksum differs",
                         row->seq);
    if (row->seq < store->state.base_seq || row->seq > store->last_seq)
        return error_set(error, ERROR_CORRUPT, "table snapshot: snapshot %" PRIu64 " lies outside the log",
                         row->seq);
    rc = store_log_crc(store, row->seq, &log_crc, error);
    if (rc < 0)
        return rc;
    if (log_crc != row->log_crc)
        return error_set(error, ERROR_CORRUPT,
                         "table snapshot: snapshot %" PRIu64 " does not belong to the record of that number",
                         row->seq);
    return store_snapshot_unpack(store, row, bytes, error);
}

static int load(struct store *store, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                struct error *error)
{
    struct store_snapshot_rows rows;
    int rc = store_snapshot_rows(store, &rows, error);
    if (rc < 0)
        return rc;
    struct store_snapshot snapshot = {0};
    for (size_t i = 0; i < rows.len; i++) {
        struct error reason;
        if (rows.items[i].seq > max_seq && rows.items[i].valid)
            continue;
        rc = try_load(store, &rows.items[i], &snapshot.bytes, &reason);
        if (rc == 0) {
            snapshot.seq = rows.items[i].seq;
            snapshot.stamp_ns = rows.items[i].stamp_ns;
            *ret_snapshot = snapshot;
            return 0;
        }
        if (rc != ERROR_CORRUPT) {
            buf_done(&snapshot.bytes);
            return error_set(error, (enum error_code)rc, "%s", reason.text);
        }
        if (snapshot.skipped++ == 0)
            memcpy(snapshot.skipped_text, reason.text, sizeof snapshot.skipped_text);
    }
    buf_done(&snapshot.bytes);
    if (store->state.base_seq == 0)
        return error_set(error, ERROR_NOT_FOUND, "no snapshot%s%s", snapshot.skipped ? ": " : "",
                         snapshot.skipped_text);
    return error_set(error, ERROR_CORRUPT,
                     "the log begins behind record %" PRIu64 " and no snapshot is valid%s%s",
                     store->state.base_seq, snapshot.skipped ? ": " : "", snapshot.skipped_text);
}

int store_snapshot_load(struct store *store, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                        struct error *error)
{
    int rc = store_view_begin(store, error);
    if (rc < 0)
        return rc;
    rc = load(store, max_seq, ret_snapshot, error);
    store_db_read_end(store);
    return rc;
}
