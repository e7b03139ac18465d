/* trim.c - deletes records that the oldest snapshot covers, left-overs of snapshots, and etcd's old
 * revisions. */
#include <inttypes.h>

#include "base/units.h"
#include "host/store/etcd/internal.h"

enum { SLICE_KEYS = 64, SLICE_BYTES = 8 << 20 };
#define COMPACT_NS (60 * NS_PER_SECOND) /* age of the revisions that a compaction drops */

int etcd_data_bytes(struct etcd_log *log, uint64_t *ret_used, uint64_t *ret_file, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct doc *reply;
    int rc = etcd_call(log->client, "/v3/maintenance/status", STR("{}"), etcd_deadline(log), &arena, &reply,
                       NULL, error);
    *ret_file = *ret_used = 0;
    if (rc < 0)
        return rc == ERROR_DENIED ? 0 : rc;
    int64_t file = etcd_number(doc_get(reply, "dbSize")), used = etcd_number(doc_get(reply, "dbSizeInUse"));
    if (file < 0 || used < 0)
        return error_set(error, ERROR_CORRUPT, "etcd says that its data have a negative size");
    *ret_file = (uint64_t)file;
    *ret_used = used > 0 ? (uint64_t)used : (uint64_t)file;
    return 0;
}

/* --- records ------------------------------------------------------------------------------------------ */

/* Finds where the log begins after this slice: after whole groups, at most 256 * SLICE_KEYS records or about
 * SLICE_BYTES. An error after the first group ends the slice there. */
static int find_base(struct etcd_log *log, int64_t keep_after_ns, uint64_t snapshot_seq,
                     struct etcd_head *head, struct error *error)
{
    struct etcd_cursor *cursor;
    struct store_record record;
    int rc = etcd_read(log, head->base_seq + 1, &cursor, error);
    if (rc < 0)
        return rc;
    uint64_t begin = head->base_seq, most = begin + 256 * SLICE_KEYS;
    size_t bytes = 0;
    while ((rc = etcd_next(cursor, &record, error)) > 0) {
        bool full = record.seq > most || bytes > SLICE_BYTES;
        if (record.seq > snapshot_seq || record.stamp_ns >= keep_after_ns || (full && head->base_seq > begin))
            break;
        bytes += record.bytes.len;
        if (!etcd_cursor_ends_group(cursor))
            continue;
        head->base_seq = record.seq;
        head->base_crc = etcd_cursor_crc(cursor);
    }
    etcd_cursor_free(cursor);
    return rc < 0 && head->base_seq == begin ? rc : 0;
}

static int drop_records(struct etcd_log *log, const struct etcd_head *head, struct error *error)
{
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_GROUP, 0, 0);
    struct etcd_key to = etcd_key_behind(log->options.prefix, ETCD_GROUP, head->base_seq);
    etcd_txn_head(&txn, log);
    etcd_txn_delete(&txn, etcd_key_str(&from), etcd_key_str(&to));
    int rc = etcd_put_head(log, &txn, head, error);
    return rc < 0 ? rc : 1;
}

/* Returns 1 if groups were dropped. */
static int trim_groups(struct etcd_log *log, int64_t keep_after_ns, bool over, struct error *error)
{
    struct etcd_rows rows;
    struct etcd_head head = log->head;
    int rc = etcd_rows_read(log, &rows, error);
    if (rc < 0 || rows.len == 0 || rows.items[rows.len - 1].seq <= head.base_seq || log->cursors > 0)
        return rc;
    rc = find_base(log, over ? INT64_MAX : keep_after_ns, rows.items[rows.len - 1].seq, &head, error);
    if (rc < 0 || head.base_seq == log->head.base_seq)
        return rc;
    return drop_records(log, &head, error);
}

/* --- left-overs --------------------------------------------------------------------------------------- */

static bool has_row(const struct etcd_rows *rows, uint64_t seq)
{
    for (size_t i = 0; i < rows->len; i++)
        if (rows->items[i].seq == seq)
            return true;
    return false;
}

static int drop_chunks(struct etcd_log *log, uint64_t seq, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {0};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    struct etcd_key from = etcd_key_of(log->options.prefix, ETCD_CHUNK, seq, 0);
    struct etcd_key to = etcd_key_behind(log->options.prefix, ETCD_CHUNK, seq);
    struct doc *reply;
    bool held;
    etcd_txn_lead(&txn, log);
    etcd_txn_then(&txn);
    etcd_txn_delete(&txn, etcd_key_str(&from), etcd_key_str(&to));
    int rc = etcd_txn_lead_run(&txn, log, &arena, &reply, &held, error);
    return rc < 0 || held ? rc : etcd_fenced(log, error, "another one has taken over");
}

/* Drops the chunks of one snapshot that was never completed. Returns 1 if there may be another. */
static int trim_chunks(struct etcd_log *log, struct error *error)
{
    struct etcd_key at = etcd_key_of(log->options.prefix, ETCD_CHUNK, 0, 0);
    struct etcd_key to = etcd_key_end(log->options.prefix, ETCD_CHUNK);
    struct etcd_rows rows;
    if (!log->left_overs || log->writer)
        return 0;
    int rc = etcd_rows_read(log, &rows, error);
    while (rc == 0) {
        struct arena arena ARENA_CLEANUP = {0};
        struct doc *range;
        struct etcd_pair pair;
        uint64_t seq;
        uint32_t part;
        rc = etcd_range(log->client, etcd_key_str(&at), etcd_key_str(&to), 1, false, true, etcd_deadline(log),
                        &arena, &range, error);
        if (rc == 0)
            rc = etcd_pair_at(range, 0, &arena, &pair, error);
        if (rc == 0) {
            log->left_overs = false;
            return 0;
        }
        if (rc < 0 || !etcd_key_read(pair.key, log->options.prefix, ETCD_CHUNK, &seq, &part) ||
            seq == UINT64_MAX)
            return rc < 0 ? rc
                          : error_set(error, ERROR_CORRUPT, "a key of the snapshots in etcd is not ours");
        if (!has_row(&rows, seq)) {
            rc = drop_chunks(log, seq, error);
            return rc < 0 ? rc : 1;
        }
        at = etcd_key_behind(log->options.prefix, ETCD_CHUNK, seq);
        rc = 0;
    }
    return rc;
}

/* --- etcd's revisions --------------------------------------------------------------------------------- */

/* Reports once that etcd lets only root compact (3.5.28 and later), so that etcd's own compaction must do
 * it. `error` NULL: reports it the next time. */
static int say_once_denied(struct etcd_log *log, struct error *error)
{
    if (log->said_denied || !error)
        return 0;
    log->said_denied = true;
    return error_set(error, ERROR_DENIED,
                     "etcd lets its user root alone compact old revisions: start etcd with "
                     "--auto-compaction-mode=periodic --auto-compaction-retention=5m, or give the "
                     "controllers' user the role root");
}

/* Compacts etcd's store, which keeps the old value of each write until then. `now`: space is short. */
static int compact(struct etcd_log *log, bool now, struct error *error)
{
    struct arena arena ARENA_CLEANUP = {.limit_bytes = 1 << 20};
    struct buf body BUF_CLEANUP = {0};
    struct doc *reply;
    int64_t revision = now ? log->revision : log->compact_revision;
    if (!now && etcd_mono_ns() < log->compact_ns)
        return 0;
    log->compact_revision = log->revision;
    log->compact_ns = etcd_mono_ns() + COMPACT_NS;
    if (revision <= 0)
        return 0;
    buf_printf(&body, "{\"revision\":\"%" PRId64 "\"}", revision);
    int rc = etcd_call(log->client, "/v3/kv/compaction", buf_str(&body), etcd_deadline(log), &arena, &reply,
                       NULL, error);
    if (rc == ERROR_DENIED)
        return say_once_denied(log, error);
    return rc == ERROR_INVALID ? 0 : rc; /* another client has compacted further */
}

int etcd_log_trim(struct etcd_log *log, int64_t keep_after_ns, struct error *error)
{
    uint64_t used, file;
    if (!log->term)
        return etcd_fenced(log, error, "it has not taken the lead");
    int rc = etcd_data_bytes(log, &used, &file, error);
    if (rc < 0)
        return rc;
    bool over = used > log->options.bytes_max;
    rc = trim_groups(log, keep_after_ns, over, error);
    if (rc == 0)
        rc = trim_chunks(log, error);
    /* A full etcd refuses the writes of trimming, but not a compaction, which lets its operator free
     * space. */
    if (rc == ERROR_NO_SPACE)
        (void)compact(log, true, NULL);
    if (rc != 0)
        return rc;
    return compact(log, over, error);
}
