/* port.c - the port of log_store.h to the log on etcd. */
#include <inttypes.h>
#include <stdio.h>

#include "host/store/etcd/internal.h"

static int port_append(void *context, const struct store_record *records, size_t count, struct error *error)
{
    return etcd_log_append(context, records, count, error);
}

static struct log_ends port_ends(void *context)
{
    const struct etcd_head *head = &((const struct etcd_log *)context)->head;
    return (struct log_ends){head->base_seq, head->last_seq, head->base_crc, head->last_crc};
}

static int port_begin_behind(void *context, uint64_t seq, uint32_t crc, struct error *error)
{
    struct etcd_log *log = context;
    struct etcd_head head = {seq, seq, crc, crc, log->options.restores};
    struct etcd_txn txn ETCD_TXN_CLEANUP = {0};
    if (log->head.last_seq > 0)
        return error_set(error, ERROR_EXISTS, "the log holds records up to %" PRIu64, log->head.last_seq);
    if (!log->term)
        return etcd_fenced(log, error, "it has not taken the lead");
    etcd_txn_head(&txn, log);
    return etcd_put_head(log, &txn, &head, error);
}

static int port_read(void *context, uint64_t from_seq, void **ret_cursor, struct error *error)
{
    struct etcd_cursor *cursor;
    int rc = etcd_read(context, from_seq, &cursor, error);
    if (rc == 0)
        *ret_cursor = cursor;
    return rc;
}

static int port_next(void *cursor, struct store_record *ret_record, struct error *error)
{
    return etcd_next(cursor, ret_record, error);
}

static void port_cursor_free(void *cursor)
{
    etcd_cursor_free(cursor);
}

static int port_snapshot_begin(void *context, uint64_t seq, int64_t stamp_ns, struct str bytes,
                               void **ret_writer, struct error *error)
{
    struct etcd_writer *writer;
    int rc = etcd_snapshot_begin(context, seq, stamp_ns, bytes, &writer, error);
    if (rc == 0)
        *ret_writer = writer;
    return rc;
}

static int port_snapshot_step(void *writer, struct error *error)
{
    return etcd_snapshot_step(writer, error);
}

static void port_snapshot_free(void *writer)
{
    etcd_writer_free(writer);
}

static int port_snapshot_load(void *context, uint64_t max_seq, struct store_snapshot *ret_snapshot,
                              struct error *error)
{
    return etcd_snapshot_load(context, max_seq, ret_snapshot, error);
}

static int port_trim(void *context, int64_t keep_after_ns, struct error *error)
{
    return etcd_log_trim(context, keep_after_ns, error);
}

/* --- inspection --------------------------------------------------------------------------------------- */

struct findings {
    store_report *report;
    void *context;
    struct store_verify_result result;
    struct error first;
};

static void find(struct findings *findings, const char *table, uint64_t seq, const struct error *why)
{
    if (findings->result.problems++ == 0)
        findings->first = *why;
    if (findings->report)
        findings->report(findings->context, &(struct store_problem){table, seq, why->text});
}

static int verify_records(struct etcd_log *log, struct findings *findings, struct error *error)
{
    struct etcd_cursor *cursor = NULL;
    struct store_record record;
    struct error why;
    int rc = etcd_read(log, log->head.base_seq + 1, &cursor, &why);
    while (rc >= 0 && (rc = etcd_next(cursor, &record, &why)) > 0)
        findings->result.records++;
    etcd_cursor_free(cursor);
    if (rc == ERROR_CORRUPT)
        find(findings, "log", log->head.base_seq + findings->result.records + 1, &why);
    else if (rc < 0)
        return error_set(error, (enum error_code)rc, "%s", why.text);
    return 0;
}

static int port_verify(void *context, store_report *report, void *report_context,
                       struct store_verify_result *ret_result, struct error *error)
{
    struct etcd_log *log = context;
    struct findings findings = {.report = report, .context = report_context};
    struct etcd_rows rows;
    struct buf bytes BUF_CLEANUP = {0};
    int rc = verify_records(log, &findings, error);
    if (rc == 0)
        rc = etcd_rows_read(log, &rows, error);
    for (size_t i = 0; rc == 0 && i < rows.len; i++) {
        struct error why;
        findings.result.snapshots++;
        rc = etcd_snapshot_unpack(log, &rows.items[i], &bytes, &why);
        if (rc == ERROR_CORRUPT) {
            find(&findings, "snapshot", rows.items[i].seq, &why);
            rc = 0;
        } else if (rc < 0) {
            rc = error_set(error, (enum error_code)rc, "%s", why.text);
        }
    }
    if (rc < 0)
        return rc;
    if (ret_result)
        *ret_result = findings.result;
    return findings.result.problems ? error_set(error, ERROR_CORRUPT, "%s", findings.first.text) : 0;
}

static int port_stats(void *context, struct store_stats *ret_stats, struct error *error)
{
    struct etcd_log *log = context;
    struct etcd_rows rows;
    uint64_t used, file;
    int rc = etcd_rows_read(log, &rows, error);
    if (rc == 0)
        rc = etcd_data_bytes(log, &used, &file, error);
    if (rc < 0)
        return rc;
    *ret_stats = (struct store_stats){
        .first_seq = log->head.base_seq + 1,
        .last_seq = log->head.last_seq,
        .file_bytes = file,
        .free_bytes = file > used ? file - used : 0,
        .bytes_max = log->options.bytes_max,
        .over = used > log->options.bytes_max,
        .restored = log->head.restored,
        .snapshots = (uint32_t)rows.len,
        .snapshot_seq = rows.len ? rows.items[0].seq : 0,
        .snapshot_stamp_ns = rows.len ? rows.items[0].stamp_ns : 0,
        .snapshot_bytes = rows.len ? rows.items[0].packed_bytes : 0,
        .appended_records = log->appended_records,
        .appended_bytes = log->appended_bytes,
        .commits = log->commits,
        .full_errors = log->full_errors,
    };
    return 0;
}

static void port_close(void *context)
{
    etcd_log_close(context);
}

struct log_store etcd_log_store(struct etcd_log *log)
{
    return (struct log_store){log,
                              port_append,
                              port_ends,
                              port_begin_behind,
                              port_read,
                              port_next,
                              port_cursor_free,
                              port_snapshot_begin,
                              port_snapshot_step,
                              port_snapshot_free,
                              port_snapshot_load,
                              port_trim,
                              port_verify,
                              port_stats,
                              port_close};
}
