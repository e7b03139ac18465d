/* snapshot.c - snapshots: first the chunks, then the row that makes them a snapshot. */
#include <inttypes.h>

#include "base/crc32c.h"
#include "host/store/etcd/internal.h"
#include "host/store/pack.h"

enum { CHUNK_BYTES = 512 << 10, READ_CHUNKS = 16 };

struct etcd_writer {
    struct etcd_log *log;
    struct store_packer packer;
    struct etcd_row row; /* grows with every chunk; written last */
};

/* --- rows --------------------------------------------------------------------------------------------- */

/* Reads the rows of snapshots. Leaves out damaged ones, and counts them in *ret_damaged. */
static int rows_read(struct etcd_log *log, struct etcd_rows *ret_rows, uint32_t *ret_damaged,
                     struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_ROW, 0, 0);
    struct etcd_key to = etcd_key_end(log->options.prefix, ETCD_ROW);
    struct doc *range;
    struct etcd_pair pair;
    ret_rows->len = 0;
    *ret_damaged = 0;
    int rc = etcd_range(log->client, etcd_key_str(&from), etcd_key_str(&to), ETCD_SNAPSHOTS_MAX, true, false,
                        etcd_deadline(log), &arena, &range, error);
    for (size_t i = 0; rc >= 0 && (rc = etcd_pair_at(range, i, &arena, &pair, error)) > 0; i++) {
        struct etcd_row row;
        uint64_t seq;
        uint32_t part;
        if (etcd_row_read(pair.value, &row) &&
            etcd_key_read(pair.key, log->options.prefix, ETCD_ROW, &seq, &part) && seq == row.seq)
            ret_rows->items[ret_rows->len++] = row;
        else
            ++*ret_damaged;
    }
    return rc < 0 ? rc : 0;
}

int etcd_rows_read(struct etcd_log *log, struct etcd_rows *ret_rows, struct error *error)
{
    uint32_t damaged;
    return rows_read(log, ret_rows, &damaged, error);
}

/* --- saving ------------------------------------------------------------------------------------------- */

int etcd_snapshot_begin(struct etcd_log *log, uint64_t seq, int64_t stamp_ns, struct str bytes,
                        struct etcd_writer **ret_writer, struct error *error)
{
    struct etcd_row row = {.seq = seq, .stamp_ns = stamp_ns, .raw_bytes = bytes.len};
    struct etcd_rows rows;
    CHECK(!log->writer);
    if (!log->term)
        return etcd_fenced(log, error, "it has not taken the lead");
    if (bytes.len > STORE_SNAPSHOT_BYTES_MAX)
        return error_set(error, ERROR_LIMIT, "a snapshot of %zu bytes, the limit is %d", bytes.len,
                         (int)STORE_SNAPSHOT_BYTES_MAX);
    if (seq < log->head.base_seq || seq > log->head.last_seq)
        return error_set(error, ERROR_INVALID,
                         "a snapshot behind record %" PRIu64 ", but the log holds %" PRIu64 " to %" PRIu64,
                         seq, log->head.base_seq + 1, log->head.last_seq);
    int rc = etcd_rows_read(log, &rows, error);
    if (rc == 0 && rows.len > 0 && rows.items[0].seq >= seq)
        rc = error_set(error, ERROR_INVALID,
                       "a snapshot behind record %" PRIu64 ", but there is one behind %" PRIu64, seq,
                       rows.items[0].seq);
    if (rc == 0)
        rc = etcd_record_crc(log, seq, &row.log_crc, error);
    if (rc < 0)
        return error_wrap(error, "saving a snapshot");
    row.packed_crc = store_chunk_crc_first(seq);
    struct etcd_writer *writer = mem_alloc(sizeof *writer);
    writer->log = log;
    writer->row = row;
    store_packer_begin(&writer->packer, bytes);
    log->writer = writer;
    *ret_writer = writer;
    return 0;
}

/* Puts the first `len` packed bytes as the next chunk. */
static int put_chunk(struct etcd_writer *writer, size_t len, struct error *error)
{
    struct etcd_log *log = writer->log;
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct buf sealed BUF_CLEANUP = {0};
    struct etcd_row *row = &writer->row;
    struct store_seal_place place = {STORE_SEAL_CHUNK, row->seq, row->chunks};
    struct str bytes =
        store_seal(log->options.keys, &place, (struct str){writer->packer.packed.data, len}, &sealed);
    struct etcd_key key = etcd_key_of(log->options.prefix, ETCD_CHUNK, row->seq, row->chunks);
    struct doc *reply;
    bool held;
    log->left_overs = true;
    etcd_txn_lead(&txn, log);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&key), bytes, 0);
    int rc = etcd_txn_lead_run(&txn, log, &arena, &reply, &held, error);
    if (rc == 0 && !held)
        rc = etcd_fenced(log, error, "another one has taken over");
    if (rc < 0)
        return rc;
    row->packed_crc = crc32c(row->packed_crc, bytes.data, bytes.len);
    row->packed_bytes += bytes.len;
    row->chunks++;
    buf_drop_front(&writer->packer.packed, len);
    return 0;
}

/* Puts the row, and deletes the snapshots beyond those to keep, in one transaction. */
static int put_row(struct etcd_writer *writer, struct error *error)
{
    struct etcd_log *log = writer->log;
    const char *prefix = log->options.prefix;
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct buf text BUF_CLEANUP = {0};
    struct etcd_rows rows;
    struct doc *reply;
    bool held;
    int rc = etcd_rows_read(log, &rows, error);
    if (rc < 0)
        return rc;
    etcd_row_write(&writer->row, &text);
    struct etcd_key key = etcd_key_of(prefix, ETCD_ROW, writer->row.seq, 0);
    etcd_txn_lead(&txn, log);
    etcd_txn_then(&txn);
    etcd_txn_put(&txn, etcd_key_str(&key), buf_str(&text), 0);
    for (size_t i = log->options.snapshots_keep - 1; i < rows.len; i++) {
        struct etcd_key old = etcd_key_of(prefix, ETCD_ROW, rows.items[i].seq, 0);
        struct etcd_key from = etcd_key_of(prefix, ETCD_CHUNK, rows.items[i].seq, 0);
        struct etcd_key to = etcd_key_behind(prefix, ETCD_CHUNK, rows.items[i].seq);
        etcd_txn_delete(&txn, etcd_key_str(&old), (struct str){0});
        etcd_txn_delete(&txn, etcd_key_str(&from), etcd_key_str(&to));
    }
    rc = etcd_txn_lead_run(&txn, log, &arena, &reply, &held, error);
    return rc < 0 || held ? rc : etcd_fenced(log, error, "another one has taken over");
}

int etcd_snapshot_step(struct etcd_writer *writer, struct error *error)
{
    if (!writer->packer.all && writer->packer.packed.len < CHUNK_BYTES) {
        store_packer_step(&writer->packer);
        return 1;
    }
    if (!writer->log->term)
        return etcd_fenced(writer->log, error, "it has not taken the lead");
    if (writer->packer.packed.len > 0) {
        size_t len = writer->packer.packed.len < CHUNK_BYTES ? writer->packer.packed.len : CHUNK_BYTES;
        int rc = put_chunk(writer, len, error);
        return rc < 0 ? rc : 1;
    }
    return put_row(writer, error);
}

void etcd_writer_free(struct etcd_writer *writer)
{
    if (!writer)
        return;
    CHECK(writer->log->writer == writer);
    writer->log->writer = NULL;
    store_packer_done(&writer->packer);
    mem_free(writer);
}

/* --- loading ------------------------------------------------------------------------------------------ */

struct unpacked {
    struct store_unpacker unpacker;
    struct buf plain; /* decrypted bytes of a sealed chunk */
    uint32_t crc;
    uint64_t packed_bytes;
};

static int take_chunk(struct etcd_log *log, const struct etcd_row *row, uint32_t number,
                      const struct etcd_pair *pair, struct unpacked *unpacked, struct error *error)
{
    struct store_seal_place place = {STORE_SEAL_CHUNK, row->seq, number};
    const char *wrong = NULL;
    uint64_t seq;
    uint32_t part;
    struct str bytes;
    int rc = 0;
    if (!etcd_key_read(pair->key, log->options.prefix, ETCD_CHUNK, &seq, &part) || seq != row->seq ||
        part != number)
        wrong = "it is missing";
    else if ((rc = store_unseal(log->options.keys, &place, pair->value, &unpacked->plain, &bytes, error)) ==
             0)
        wrong = store_unpacker_step(&unpacked->unpacker, bytes);
    if (wrong)
        return error_set(error, ERROR_CORRUPT, "snapshot %" PRIu64 ", chunk %" PRIu32 ": %s", row->seq,
                         number, wrong);
    unpacked->crc = crc32c(unpacked->crc, pair->value.data, pair->value.len);
    unpacked->packed_bytes += pair->value.len;
    return rc;
}

static int take_chunks(struct etcd_log *log, const struct etcd_row *row, struct unpacked *unpacked,
                       struct error *error)
{
    struct etcd_key to = etcd_key_behind(log->options.prefix, ETCD_CHUNK, row->seq);
    int rc = 0;
    for (uint32_t at = 0; rc == 0 && at < row->chunks;) {
        struct arena arena ARENA_CLEANUP = {0};
        struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_CHUNK, row->seq, at);
        struct etcd_pair pair;
        struct doc *range;
        size_t i = 0;
        rc = etcd_range(log->client, etcd_key_str(&from), etcd_key_str(&to), READ_CHUNKS, false, false,
                        etcd_deadline(log), &arena, &range, error);
        for (; rc == 0 && at < row->chunks && (rc = etcd_pair_at(range, i, &arena, &pair, error)) > 0; i++)
            rc = take_chunk(log, row, at++, &pair, unpacked, error);
        if (rc == 0 && i == 0)
            rc = error_set(error, ERROR_CORRUPT, "snapshot %" PRIu64 ", chunk %" PRIu32 ": it is missing",
                           row->seq, at);
    }
    return rc;
}

int etcd_snapshot_unpack(struct etcd_log *log, const struct etcd_row *row, struct buf *out,
                         struct error *error)
{
    struct unpacked unpacked = {.crc = store_chunk_crc_first(row->seq)};
    store_unpacker_begin(&unpacked.unpacker, out, row->raw_bytes);
    int rc = take_chunks(log, row, &unpacked, error);
    bool whole = store_unpacker_done(&unpacked.unpacker) && unpacked.crc == row->packed_crc &&
                 unpacked.packed_bytes == row->packed_bytes;
    buf_done(&unpacked.plain);
    return rc < 0 || whole ? rc
                           : error_set(error, ERROR_CORRUPT, "snapshot %" PRIu64 " is not whole", row->seq);
}

/* Loads a snapshot, if the log holds its record or begins after it. */
static int load_row(struct etcd_log *log, const struct etcd_row *row, struct buf *bytes, struct error *error)
{
    uint32_t log_crc;
    if (row->seq < log->head.base_seq || row->seq > log->head.last_seq)
        return error_set(error, ERROR_CORRUPT, "snapshot %" PRIu64 " lies outside the log", row->seq);
    int rc = etcd_record_crc(log, row->seq, &log_crc, error);
    if (rc < 0)
        return rc;
    if (log_crc != row->log_crc)
        return error_set(error, ERROR_CORRUPT,
                         "snapshot %" PRIu64 " does not belong to the record of that number", row->seq);
    return etcd_snapshot_unpack(log, row, bytes, error);
}

int etcd_snapshot_load(struct etcd_log *log, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                       struct error *error)
{
    struct store_snapshot snapshot = {0};
    struct etcd_rows rows;
    int rc = rows_read(log, &rows, &snapshot.skipped, error);
    if (rc < 0)
        return rc;
    if (snapshot.skipped)
        memcpy(snapshot.skipped_text, "its row is damaged", sizeof "its row is damaged");
    for (size_t i = 0; i < rows.len; i++) {
        struct error reason;
        if (rows.items[i].seq > max_seq)
            continue;
        rc = load_row(log, &rows.items[i], &snapshot.bytes, &reason);
        if (rc == 0) {
            snapshot.seq = rows.items[i].seq;
            snapshot.stamp_ns = rows.items[i].stamp_ns;
            *ret_snapshot = snapshot;
            return 0;
        }
        if (rc != ERROR_CORRUPT && rc != ERROR_NOT_FOUND) {
            buf_done(&snapshot.bytes);
            return error_set(error, (enum error_code)rc, "%s", reason.text);
        }
        if (snapshot.skipped++ == 0)
            memcpy(snapshot.skipped_text, reason.text, sizeof snapshot.skipped_text);
    }
    buf_done(&snapshot.bytes);
    if (log->head.base_seq == 0)
        return error_set(error, ERROR_NOT_FOUND, "no snapshot%s%s", snapshot.skipped ? ": " : "",
                         snapshot.skipped_text);
    return error_set(error, ERROR_CORRUPT,
                     "the log begins behind record %" PRIu64 " and no snapshot is valid%s%s",
                     log->head.base_seq, snapshot.skipped ? ": " : "", snapshot.skipped_text);
}
